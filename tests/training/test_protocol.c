/* What all requests have in common: roles, names of askers, reasons, dry runs; and the answer to `describe`.
 */
#include "requests_test.h"

#include "control/command_table.h"
#include "runs/checkpoints.h"
#include "runs/run_folder.h"
#include "show/show.h"

/* --- asking --- */

#define CALL(of, in) (&(sgm__control_call){.trainer = of, .who = "ctl", .role = in, .files = true})
#define CHECK_AS(trainer, role, request, part) CHECK_OBEYED(CALL(trainer, role), request, part)
#define CHECK_ANSWER(trainer, request, part) CHECK_AS(trainer, SGM__ROLE_ADMIN, request, part)

static json_t *newest_change(sgm_trainer *trainer)
{
    json_t *list = sgm__changes_json(trainer, 0);
    json_t *change = json_incref(json_array_get(list, json_array_size(list) - 1));
    json_decref(list);
    return change;
}

static char *journal_text(void)
{
    char *text;
    size_t length;
    CHECK_OK(sgm__file_read(in_folder("journal.jsonl"), 1 << 20, &text, &length));
    return text;
}

static wave_trainer make_ready(void)
{
    wave_trainer made = make();
    CHECK_OK(sgm_trainer_prepare(made.trainer));
    CHECK_OK(sgm__trainer_publish_states(made.trainer));
    return made;
}

/* --- the table --- */

TEST(each_command_says_what_it_is)
{
    const sgm__command_row *row;
    for (size_t i = 0; (row = sgm__command_at(i)) != NULL; i++) {
        const sgm__command_row *found;
        CHECK_OK(sgm__command_find(row->name, &found));
        CHECK(found == row);
        CHECK(row->doc != NULL && row->doc[0] != '\0' && row->doc[strlen(row->doc) - 1] != '.');
        CHECK((row->when != NULL) == (row->try != NULL));           /* what changes can be tried */
        CHECK((row->when != NULL) == (row->role > SGM__ROLE_LOOK)); /* and takes more than looking */
        CHECK(row->minimum_words <= row->maximum_words && row->maximum_words <= row->field_count);
        CHECK((row->maximum_words > 0) == (row->words[0] != '\0'));
        for (size_t k = 0; k < row->field_count; k++)
            CHECK(row->fields[k].name != NULL && row->fields[k].doc != NULL);
    }
}

TEST(describe_tells_commands_and_settings)
{
    wave_trainer made = make_ready();
    obey(CALL(made.trainer, SGM__ROLE_STEER), "{\"command\":\"describe\"}");
    json_t *told = json_loads(answer, 0, NULL), *item;
    CHECK(told != NULL);
    CHECK_STR(text_of(told, "role"), "steer");
    CHECK_INT(json_integer_value(json_object_get(told, "protocol")), 1);
    size_t i, found = 0;
    json_array_foreach(json_object_get(told, "commands"), i, item)
    {
        CHECK_STR(text_of(item, "name"), sgm__command_at(i)->name);
        if (strcmp(text_of(item, "name"), "step") == 0) {
            const json_t *field = json_array_get(json_object_get(item, "fields"), 0);
            CHECK_STR(text_of(field, "name"), "iterations");
            CHECK_STR(text_of(field, "kind"), "integer");
            CHECK(json_is_true(json_object_get(field, "required")));
            CHECK_NEAR(json_number_value(json_object_get(field, "minimum")), 1, 0);
            CHECK_STR(text_of(item, "role"), "steer");
            CHECK_STR(text_of(item, "effect"), "at once");
            CHECK(json_is_true(json_object_get(item, "dry_run")));
            CHECK(json_is_true(json_object_get(item, "allowed")));
        }
    }
    CHECK(sgm__command_at(i) == NULL);
    json_array_foreach(json_object_get(told, "settings"), i, item)
    {
        CHECK(json_is_true(json_object_get(item, "settable")));
        if (strcmp(text_of(item, "identifier"), "iterator.minibatch_size") == 0) {
            found++;
            CHECK_STR(text_of(item, "kind"), "integer");
            CHECK_STR(text_of(item, "unit"), "examples");
            CHECK_STR(text_of(item, "effect"), "from the next epoch on");
            CHECK_NEAR(json_number_value(json_object_get(item, "minimum")), 1, 0);
        }
        CHECK(strcmp(text_of(item, "identifier"), "epoch") != 0);
    }
    CHECK_INT(found, 1);
    json_decref(told);
    CHECK_ANSWER(made.trainer, "{\"command\":\"describe\",\"identifier\":\"optimiser.learning_rate\"}",
                 "\"settings\":[{\"identifier\":\"optimiser.learning_rate\",\"kind\":\"number\"");
    free_wave_trainer(made);
}

/* --- roles --- */

TEST(a_role_does_what_it_may)
{
    wave_trainer made = make_ready();
    CHECK_AS(made.trainer, SGM__ROLE_LOOK,
             "{\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":0.5}",
             "set needs the role 'steer', this is 'look'");
    CHECK_AS(made.trainer, SGM__ROLE_LOOK, "{\"command\":\"status\"}", "\"state\":\"idle\"");
    CHECK_AS(made.trainer, SGM__ROLE_STEER,
             "{\"command\":\"get\",\"identifier\":\"network.layers.3-dense.biases\",\"file\":\"x.npy\"}",
             "naming a file needs the role 'admin', this is 'steer'");
    CHECK_ANSWER(made.trainer,
                 "{\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":0.5,"
                 "\"role\":\"look\"}",
                 "set needs the role 'steer', this is 'look'");
    CHECK_AS(made.trainer, SGM__ROLE_LOOK, "{\"command\":\"status\",\"role\":\"admin\"}",
             "a request cannot raise its role: this is 'look', not 'admin'");
    CHECK_ANSWER(made.trainer, "{\"command\":\"status\",\"role\":\"root\"}",
                 "a role is 'look', 'steer' or 'admin', not 'root'");
    CHECK_INT(change_count(made.trainer), 0);
    free_wave_trainer(made);
}

/* --- names and reasons --- */

TEST(the_journal_says_who_and_why)
{
    wave_trainer made = make();
    background run;
    begin(&run, made.trainer, open_folder());
    CHECK_ANSWER(made.trainer, "{\"command\":\"pause\"}", "{}");
    wait_for_pause(made.trainer);
    CHECK_ANSWER(made.trainer,
                 "{\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":0.25,"
                 "\"by\":\"anna\",\"reason\":\"the loss \\\"jumps\\\"\"}",
                 "\"value\":0.25");
    json_t *change = newest_change(made.trainer);
    CHECK_STR(text_of(change, "who"), "ctl:anna");
    CHECK_STR(text_of(change, "reason"), "the loss \"jumps\"");
    CHECK(json_is_true(json_object_get(change, "undoable")));
    CHECK(json_is_true(json_object_get(change, "person")));
    json_decref(change);
    CHECK_ANSWER(made.trainer, "{\"command\":\"undo\",\"by\":\"mcp:claude\",\"reason\":\"no better\"}",
                 "\"undone\":1");
    change = newest_change(made.trainer);
    CHECK_STR(text_of(change, "who"), "mcp:claude");
    CHECK_STR(text_of(change, "reason"), "no better");
    json_decref(change);
    CHECK_ANSWER(made.trainer,
                 "{\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":0.125}",
                 "\"value\":0.125");
    change = newest_change(made.trainer);
    CHECK_STR(text_of(change, "who"), "ctl");
    CHECK(json_is_null(json_object_get(change, "reason"))); /* not that of the last one */
    json_decref(change);
    CHECK_ANSWER(made.trainer, "{\"command\":\"save\",\"name\":\"here\",\"reason\":\"before a try\"}",
                 "here");
    CHECK_ANSWER(made.trainer, "{\"command\":\"restore\",\"name\":\"here\",\"reason\":\"it failed\"}", "{}");
    CHECK_ANSWER(made.trainer, "{\"command\":\"stop\",\"by\":\"anna\",\"reason\":\"enough\"}", "{}");
    pthread_join(run.thread, NULL);
    char *text = journal_text();
    static const char *const lines[] = {
        "\"reason\":\"the loss \\\"jumps\\\"\",\"what\":\"optimiser.learning_rate\",\"old\":",
        "\"who\":\"ctl:anna\"",
        "\"who\":\"mcp:claude\",\"reason\":\"no better\",\"what\":\"optimiser.learning_rate\",\"old\":0.25,",
        "\"who\":\"ctl\",\"what\":\"optimiser.learning_rate\",\"old\":",
        "\"who\":\"ctl\",\"name\":\"here\",\"of\":",
        "\"reason\":\"before a try\"",
        "\"event\":\"restore\"",
        "\"who\":\"ctl\",\"reason\":\"it failed\",\"name\":\"here\"",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (strstr(text, lines[i]) == NULL)
            TEST_FAIL("the journal has no %s: %s", lines[i], text);
    sgm__free(text);
    free_wave_trainer(made);
    close_folder();
}

TEST(names_and_reasons_are_short_lines)
{
    wave_trainer made = make_ready();
    char request[900], filled[600];
    memset(filled, 'a', sizeof filled);
    filled[501] = '\0';
    snprintf(request, sizeof request, "{\"command\":\"status\",\"reason\":\"%s\"}", filled);
    CHECK_ANSWER(made.trainer, request, "'reason' is a text of 1 to 500 bytes on one line");
    filled[500] = '\0';
    snprintf(request, sizeof request, "{\"command\":\"status\",\"reason\":\"%s\"}", filled);
    CHECK_ANSWER(made.trainer, request, "\"state\"");
    filled[65] = '\0';
    snprintf(request, sizeof request, "{\"command\":\"status\",\"by\":\"%s\"}", filled);
    CHECK_ANSWER(made.trainer, request, "'by' is a text of 1 to 64 bytes on one line");
    CHECK_ANSWER(made.trainer, "{\"command\":\"status\",\"by\":\"a\\nb\"}", "'by' is a text of 1 to 64");
    CHECK_ANSWER(made.trainer, "{\"command\":\"status\",\"by\":\"\"}", "'by' is a text of 1 to 64");
    CHECK_ANSWER(made.trainer, "{\"command\":\"status\",\"by\":7}", "'by' is a text of 1 to 64");
    CHECK_ANSWER(made.trainer, "{\"command\":\"status\",\"dry_run\":1}", "'dry_run' is true or false");
    free_wave_trainer(made);
}

/* --- dry runs --- */

TEST(a_dry_run_tells_and_changes_nothing)
{
    wave_trainer made = make();
    background run;
    begin(&run, made.trainer, open_folder());
    CHECK_ANSWER(made.trainer, "{\"command\":\"pause\"}", "{}");
    wait_for_pause(made.trainer);
    CHECK_ANSWER(made.trainer, "{\"command\":\"attach\",\"hook\":\"if external \\\"go\\\" then pause\"}",
                 "name");
    char *before = journal_text();
    static const struct {
        const char *request, *part;
    } tries[] = {
        {"\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":0.25",
         "\"would_change\":[{\"identifier\":\"optimiser.learning_rate\",\"old\":0.01,\"new\":0.25,\"effect\":"
         "\"from the next iteration on\"}]"},
        {"\"command\":\"set\",\"identifier\":\"iterator.minibatch_size\",\"value\":8",
         "\"new\":8,\"effect\":\"from the next epoch on\""},
        {"\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":-1",
         "optimiser.learning_rate: expected a number of at least 0, got -1"},
        {"\"command\":\"set\",\"identifier\":\"epoch\",\"value\":1", "epoch is read-only"},
        {"\"command\":\"set\",\"identifier\":\"network.layers.3-dense.biases\",\"value\":[1,2,3]",
         "\"new\":{\"shape\":[3],\"norm\":3.741657"},
        {"\"command\":\"set\",\"identifier\":\"network.layers.3-dense.biases\",\"value\":[1]",
         "expected values of shape (3,), got (1,)"},
        {"\"command\":\"undo\"", "\"identifier\":\"hook "},
        {"\"command\":\"undo\",\"number\":99", "has no change 99"},
        {"\"command\":\"attach\",\"hook\":\"every 2 epochs value_reporter(epoch)\"", "\"old\":\"none\""},
        {"\"command\":\"attach\",\"hook\":\"nonsense\"", "nonsense"},
        {"\"command\":\"detach\",\"name\":\"nobody\"", "no hook 'nobody' is attached"},
        {"\"command\":\"press\",\"name\":\"go\"", "\"identifier\":\"button go\""},
        {"\"command\":\"press\",\"name\":\"stay\"", "no rule waits for external \\\"stay\\\""},
        {"\"command\":\"save\",\"name\":\"here\"", "\"new\":\"here\",\"effect\":\"between two iterations\""},
        {"\"command\":\"save\",\"name\":\"../here\"", "here"},
        {"\"command\":\"restore\",\"name\":\"here\"", "here"},
        {"\"command\":\"reset\"", "\"new\":\"epoch 0, iteration 0\""},
        {"\"command\":\"step\",\"iterations\":3", "\"identifier\":\"iteration\""},
        {"\"command\":\"resume\"", "\"old\":\"paused\",\"new\":\"running\""},
        {"\"command\":\"stop\"", "\"new\":\"idle\""},
        {"\"command\":\"status\"", "status changes nothing: leave 'dry_run' out"},
    };
    size_t count = change_count(made.trainer);
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        char request[400];
        snprintf(request, sizeof request, "{%s,\"dry_run\":true}", tries[i].request);
        obey(CALL(made.trainer, SGM__ROLE_ADMIN), request);
        char *plain = strdup(tries[i].part), *to = plain; /* errors have no escapes */
        for (const char *from = tries[i].part; answer[0] != '{' && *from != '\0'; from++)
            if (*from != '\\')
                *to++ = *from;
        if (answer[0] != '{')
            *to = '\0';
        if (strstr(answer, plain) == NULL)
            TEST_FAIL("%s gives %.600s, expected %s in it", request, answer, plain);
        free(plain);
    }
    char *after = journal_text();
    CHECK_STR(after, before);
    sgm__free(before);
    sgm__free(after);
    CHECK_INT(change_count(made.trainer), count);
    CHECK_NEAR(number_of(made.trainer, "optimiser.learning_rate"), 0.01, 0);
    CHECK(!sgm__checkpoint_exists(made.trainer, "here"));
    CHECK_ANSWER(made.trainer, "{\"command\":\"status\"}", "\"state\":\"paused\"");
    CHECK_AS(made.trainer, SGM__ROLE_LOOK, "{\"command\":\"pause\",\"dry_run\":true}",
             "pause needs the role 'steer'");
    end(&run);
    free_wave_trainer(made);
    close_folder();
}

/* --- what the journal has --- */

/* Of this moment; valid until the next call. */
static const char *journal_text_now(void)
{
    static char *kept;
    sgm__free(kept);
    return kept = journal_text();
}

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (; (text = strstr(text, part)) != NULL; text += strlen(part))
        count++;
    return count;
}

/* Whether a line has both. */
static bool has_line(const char *text, const char *first, const char *second)
{
    bool found = false;
    for (const char *end; !found && (end = strchr(text, '\n')) != NULL; text = end + 1) {
        char *line = sgm__strndup(text, (size_t)(end - text));
        found = strstr(line, first) != NULL && strstr(line, second) != NULL;
        sgm__free(line);
    }
    return found;
}

TEST(a_dry_undo_sees_that_a_hook_is_gone)
{
    wave_trainer made = make();
    background run;
    begin(&run, made.trainer, open_folder());
    CHECK_ANSWER(made.trainer, "{\"command\":\"pause\"}", "{}");
    wait_for_pause(made.trainer);
    CHECK_ANSWER(made.trainer, "{\"command\":\"attach\",\"hook\":\"after 2 iterations notify \\\"seen\\\"\"}",
                 "name");
    CHECK_ANSWER(made.trainer, "{\"command\":\"undo\",\"dry_run\":true}", "would_change");
    step(made.trainer, 3);
    CHECK_ANSWER(made.trainer, "{\"command\":\"undo\",\"dry_run\":true}", "is not attached any more");
    CHECK_ANSWER(made.trainer, "{\"command\":\"undo\"}", "is not attached any more");
    end(&run);
    free_wave_trainer(made);
    close_folder();
}

/* --- approval --- */

static char warned[2000];

static void keep_warning(void *user, sgm_log_level level, const char *source, const char *message)
{
    size_t length = strlen(warned);
    (void)user;
    (void)level;
    snprintf(warned + length, sizeof warned - length, "%s: %s\n", source, message);
}

/* Names are known when the run begins; one that is wrong would protect nothing. */
TEST(a_pattern_of_nothing_is_warned_of)
{
    wave_trainer made = make();
    warned[0] = '\0';
    CHECK_OK(sgm_trainer_require_approval(made.trainer, "optimisers.*"));
    CHECK_OK(sgm_trainer_require_approval(made.trainer, "optimiser.*"));
    sgm_set_logger(keep_warning, NULL, SGM_LOG_WARNING);
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1));
    sgm_set_logger(NULL, NULL, SGM_LOG_ERROR);
    CHECK(strstr(warned, "waves: approve: nothing is called 'optimisers.*', so that protects nothing yet") !=
          NULL);
    CHECK(strstr(warned, "'optimiser.*'") == NULL);
    free_wave_trainer(made);
}

TEST(what_is_marked_waits_for_approval)
{
    wave_trainer made = make();
    background run;
    CHECK_ERROR(sgm_trainer_require_approval(made.trainer, "a..b"), "");
    CHECK_ERROR(sgm_trainer_require_approval(made.trainer, "stopp"),
                "what needs approval: unknown command 'stopp' (did you mean 'stop'?)");
    CHECK_ERROR(sgm_trainer_require_approval(made.trainer, "x*"), "unknown command 'x*'");
    CHECK_OK(sgm_trainer_require_approval(made.trainer, "stop"));
    CHECK_OK(sgm_trainer_require_approval(made.trainer, "optimiser.learning_rate"));
    begin(&run, made.trainer, open_folder());
    CHECK_ERROR(sgm_trainer_require_approval(made.trainer, "save"),
                "is said before a run of trainer 'waves'");
    CHECK_AS(made.trainer, SGM__ROLE_STEER, "{\"command\":\"pause\"}", "{}");
    wait_for_pause(made.trainer);
    CHECK_AS(made.trainer, SGM__ROLE_STEER,
             "{\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":0.25,\"dry_run\":"
             "true}",
             "\"would_change\"");
    CHECK_AS(made.trainer, SGM__ROLE_STEER,
             "{\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":0.25,"
             "\"by\":\"mcp:claude\",\"reason\":\"too slow\"}",
             "{\"pending\":1,\"expires\":");
    CHECK_ANSWER(made.trainer, /* an administrator's that lowers its role */
                 "{\"command\":\"set\",\"identifier\":\"optimiser.*rate\",\"value\":0.5,\"role\":\"steer\"}",
                 "{\"pending\":2,");
    CHECK_AS(made.trainer, SGM__ROLE_STEER, "{\"command\":\"undo\"}", "{\"pending\":3,");
    CHECK_AS(made.trainer, SGM__ROLE_STEER, "{\"command\":\"stop\"}", "{\"pending\":4,");
    /* Other ways to write what is protected: names of other programs, and spaces. */
    CHECK_AS(made.trainer, SGM__ROLE_STEER, "{\"command\":\"set\",\"identifier\":\"lr\",\"value\":1}",
             "{\"pending\":5,");
    CHECK_AS(made.trainer, SGM__ROLE_STEER,
             "{\"command\":\"set\",\"identifier\":\"optimizer.learning_rate\",\"value\":1}",
             "{\"pending\":6,");
    CHECK_AS(made.trainer, SGM__ROLE_STEER,
             "{\"command\":\"set\",\"identifier\":\"optimiser .learning_rate\",\"value\":1}",
             "{\"pending\":7,");
    CHECK_AS(made.trainer, SGM__ROLE_STEER,
             "{\"command\":\"set\",\"identifier\":\"iterator.minibatch_size\",\"value\":8}", "\"value\":8");
    CHECK_NEAR(number_of(made.trainer, "optimiser.learning_rate"), 0.01, 0);
    CHECK_AS(made.trainer, SGM__ROLE_LOOK, "{\"command\":\"pending\"}",
             "{\"number\":1,\"state\":\"pending\",\"who\":\"mcp:claude\",\"reason\":\"too "
             "slow\",\"command\":\"set\"");
    CHECK_AS(made.trainer, SGM__ROLE_STEER, "{\"command\":\"approve\",\"number\":1}",
             "approve needs the role 'admin', this is 'steer'");
    CHECK_ANSWER(made.trainer, "{\"command\":\"approve\",\"number\":9}", "there is no request 9");
    CHECK_ANSWER(made.trainer, "{\"command\":\"approve\",\"number\":1,\"reason\":\"go ahead\"}",
                 "\"value\":0.25");
    json_t *change = newest_change(made.trainer);
    CHECK_STR(text_of(change, "who"), "mcp:claude");
    CHECK_STR(text_of(change, "reason"), "too slow (approved by ctl: go ahead)");
    json_decref(change);
    CHECK_ANSWER(made.trainer, "{\"command\":\"approve\",\"number\":1}",
                 "request 1 does not wait any more: it is approved");
    CHECK_ANSWER(made.trainer, "{\"command\":\"deny\",\"number\":4,\"reason\":\"not yet\"}", "{}");
    CHECK_AS(made.trainer, SGM__ROLE_STEER, "{\"command\":\"pending\"}",
             "\"state\":\"denied\",\"who\":\"ctl\",\"command\":\"stop\"");
    CHECK(strstr(answer, "\"by\":\"ctl\",\"because\":\"not yet\"") != NULL);
    CHECK_ANSWER(made.trainer, "{\"command\":\"approve\",\"number\":2}",
                 "read-only"); /* current_learning_rate */
    CHECK_ANSWER(made.trainer, "{\"command\":\"pending\"}", "\"state\":\"failed\"");
    CHECK_ANSWER(made.trainer, "{\"command\":\"describe\"}",
                 "\"approve\":[\"stop\",\"optimiser.learning_rate\"]");
    end(&run); /* by the program, which asks nobody */
    free_wave_trainer(made);
    close_folder();
}

#define BRANCH_WITH(name)                                                                                    \
    "{\"command\":\"branch\",\"name\":\"b\",\"checkpoint\":\"here\",\"set\":{\"" name "\":4}}"

TEST(what_may_set_a_protected_value_unseen_waits_too)
{
    static const char *const rules[] = {
        "every 1 iteration set optimiser.learning_rate = 0.5",
        "every 1 iteration set optimiser.learn*=0.5",
        "after 1 iteration branch \\\"b\\\" with optimiser.learning_rate = 1",
        "every 1 iteration restore \\\"here\\\"",
        "after 1 iteration reset",
        "every 100 epochs early_stopper(training.loss)", /* which restores the best weights */
    };
    static const char *const waiting[] = {
        "{\"command\":\"reset\"}",
        "{\"command\":\"restore\",\"name\":\"here\"}",
        "{\"command\":\"set\",\"identifier\":\"s*d\",\"value\":4}",
    };
    wave_trainer made = make();
    background run;
    CHECK_OK(sgm_trainer_require_approval(made.trainer, "optimiser.learning_rate"));
    CHECK_OK(sgm_trainer_require_approval(made.trainer, "seed"));
    begin(&run, made.trainer, open_folder());
    CHECK_ANSWER(made.trainer, "{\"command\":\"pause\"}", "{}");
    wait_for_pause(made.trainer);
    CHECK_ANSWER(made.trainer, "{\"command\":\"save\",\"name\":\"here\"}", "here");
    for (size_t i = 0; i < sizeof waiting / sizeof *waiting; i++)
        CHECK_AS(made.trainer, SGM__ROLE_STEER, waiting[i], "{\"pending\":");
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        char request[200];
        snprintf(request, sizeof request, "{\"command\":\"attach\",\"hook\":\"%s\"}", rules[i]);
        CHECK_AS(made.trainer, SGM__ROLE_STEER, request, "{\"pending\":");
    }
    CHECK_AS(made.trainer, SGM__ROLE_STEER,
             "{\"command\":\"attach\",\"hook\":\"if training.loss increases 3 times then set "
             "iterator.minibatch_size = 4\"}",
             "\"name\"");
    /* The trainer's own run has no environment that could train a branch: who need not wait is told so. */
    CHECK_AS(made.trainer, SGM__ROLE_STEER, BRANCH_WITH("iterator.minibatch_size"),
             "belongs to no environment");
    CHECK_AS(made.trainer, SGM__ROLE_ADMIN, BRANCH_WITH("optimiser.learning_rate"),
             "belongs to no environment");
    CHECK_AS(made.trainer, SGM__ROLE_STEER, BRANCH_WITH("optimiser.learning_rate"), "{\"pending\":");
    CHECK_AS(made.trainer, SGM__ROLE_STEER, BRANCH_WITH("*rate"), "{\"pending\":");
    end(&run);
    free_wave_trainer(made);
    close_folder();
}

TEST(a_hook_that_stops_waits_where_stop_does)
{
    wave_trainer made = make();
    background run;
    CHECK_OK(sgm_trainer_require_approval(made.trainer, "stop"));
    begin(&run, made.trainer, open_folder());
    CHECK_AS(made.trainer, SGM__ROLE_STEER,
             "{\"command\":\"attach\",\"hook\":\"early_stopper(training.loss, patience=1)\"}",
             "{\"pending\":");
    CHECK_AS(made.trainer, SGM__ROLE_STEER,
             "{\"command\":\"attach\",\"hook\":\"every 100 epochs value_reporter(epoch)\"}", "\"name\"");
    CHECK_AS(made.trainer, SGM__ROLE_STEER, "{\"command\":\"attach\",\"hook\":\"nan_watch(pause=true)\"}",
             "\"name\"");
    end(&run);
    free_wave_trainer(made);
    close_folder();
}

TEST(requests_for_approval_expire)
{
    wave_trainer made = make();
    background run;
    CHECK_OK(sgm_trainer_require_approval(made.trainer, "stop"));
    begin(&run, made.trainer, open_folder());
    CHECK_ANSWER(made.trainer, "{\"command\":\"approve\",\"number\":1,\"dry_run\":true}",
                 "there is no request 1");
    CHECK_AS(made.trainer, SGM__ROLE_STEER, "{\"command\":\"stop\"}", "{\"pending\":1,");
    CHECK_ANSWER(made.trainer, "{\"command\":\"deny\",\"number\":1,\"dry_run\":true}", "\"new\":\"denied\"");
    sgm__control_of(made.trainer)->approval_seconds = 0.05;
    CHECK_AS(made.trainer, SGM__ROLE_STEER, "{\"command\":\"stop\"}", "{\"pending\":2,");
    usleep(100000);
    CHECK_ANSWER(made.trainer, "{\"command\":\"approve\",\"number\":2}",
                 "request 2 does not wait any more: it is expired");
    CHECK_ANSWER(made.trainer, "{\"command\":\"pending\"}", "{\"number\":1,\"state\":\"pending\"");
    CHECK(strstr(answer, "{\"number\":2,\"state\":\"expired\"") != NULL);
    CHECK_INT(sgm_trainer_get_state(made.trainer), SGM_TRAINER_RUNNING);
    end(&run);
    free_wave_trainer(made);
    close_folder();
}

TEST(pauses_tell_who_and_why)
{
    wave_trainer made = make();
    background run;
    begin(&run, made.trainer, open_folder());
    CHECK_ANSWER(made.trainer, "{\"command\":\"pause\",\"by\":\"anna\",\"reason\":\"lunch\"}", "{}");
    wait_for_pause(made.trainer);
    CHECK_ANSWER(made.trainer, "{\"command\":\"step\",\"iterations\":2,\"by\":\"ben\"}", "{}");
    for (int i = 0; i < 10000 && count_of(journal_text_now(), "\"event\":\"pause\"") < 2; i++)
        usleep(1000);
    CHECK_ANSWER(made.trainer, "{\"command\":\"resume\",\"reason\":\"fed\"}", "{}");
    for (int i = 0; i < 10000 && count_of(journal_text_now(), "\"event\":\"resume\"") < 2; i++)
        usleep(1000);
    CHECK_OK(sgm_trainer_pause(made.trainer)); /* by the program */
    wait_for_pause(made.trainer);
    const char *text = journal_text_now();
    CHECK(has_line(text, "\"event\":\"pause\"", "\"who\":\"ctl:anna\",\"reason\":\"lunch\""));
    CHECK(has_line(text, "\"event\":\"resume\"", "\"who\":\"ctl:ben\""));
    CHECK(has_line(text, "\"event\":\"pause\"", "\"who\":\"ctl:ben\""));
    CHECK(has_line(text, "\"event\":\"resume\"", "\"who\":\"ctl\",\"reason\":\"fed\""));
    CHECK(has_line(text, "\"event\":\"pause\"", "\"who\":\"a person\""));
    end(&run);
    free_wave_trainer(made);
    close_folder();
}

TEST(rules_that_run_commands_are_an_administrators)
{
    const char *request = "{\"command\":\"attach\",\"hook\":\"if training.loss < 0 then run \\\"true\\\"\"}";
    const char *tried = "{\"command\":\"attach\",\"hook\":\"if training.loss < 0 then run "
                        "\\\"true\\\"\",\"dry_run\":true}";
    const char *part = "attaching a rule that runs a command needs the role 'admin', this is 'steer'";
    wave_trainer made = make();
    background run;
    CHECK_OK(sgm_trainer_allow_commands(made.trainer, 1));
    CHECK_OK(sgm_trainer_require_approval(made.trainer, "training.loss"));
    begin(&run, made.trainer, open_folder());
    CHECK_AS(made.trainer, SGM__ROLE_STEER, tried, part);
    CHECK_AS(made.trainer, SGM__ROLE_STEER, request, "{\"pending\":1,");
    CHECK_ANSWER(made.trainer, "{\"command\":\"approve\",\"number\":1}", "\"name\"");
    CHECK_AS(made.trainer, SGM__ROLE_STEER,
             "{\"command\":\"attach\",\"hook\":\"after 900000 epochs run \\\"true\\\"\"}", part);
    CHECK_ANSWER(made.trainer, "{\"command\":\"attach\",\"hook\":\"after 900000 epochs run \\\"true\\\"\"}",
                 "\"name\"");
    end(&run);
    free_wave_trainer(made);
    close_folder();
}
