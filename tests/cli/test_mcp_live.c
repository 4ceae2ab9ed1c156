/* `sigma mcp` beside trainings that run: looking at them, waiting for them, steering them, branches. */
#include "mcp_client.h"

/* A training that has begun. */
static pid_t begin_training(client *c, const char *folder, const char *last)
{
    pid_t process = start_training(folder, "live", "epochs=100000000", last);
    for (int i = 0; i < 1500; i++) {
        json_t *list = call(c, "list_runs", "{\"state\":\"running\",\"metrics\":[]}", false);
        bool there = json_integer_value(at(list, "total")) == 1;
        json_decref(list);
        if (there)
            return process;
        usleep(20000);
    }
    TEST_FAIL("the training does not begin");
    return process;
}

TEST(a_training_is_looked_at)
{
    const char *folder = new_folder();
    client *c = begin_server(folder, "look");
    pid_t process = begin_training(c, folder, NULL);
    json_t *waited = call(c, "wait_for_run", "{\"run\":\"live\",\"iteration\":50}", false);
    CHECK(json_is_true(at(waited, "reached")) && json_is_false(at(waited, "ended")));
    CHECK(json_integer_value(at(waited, "status/iteration")) >= 50);
    json_decref(waited);
    json_t *run = call(c, "get_run", "{\"run\":\"live\"}", false);
    CHECK_STR(text_at(run, "now/state"), "running");
    json_decref(run);
    json_t *values = call(c, "get_values", "{\"run\":\"live\",\"identifier\":\"optimiser.*rate\"}", false);
    CHECK_INT(json_array_size(at(values, "values")), 2);
    json_decref(values);
    refused(c, "get_values", "{\"run\":\"live\",\"identifier\":\"optimiser.lerning_rate\"}", "run 'live': ");
    json_t *settings =
        call(c, "list_settings", "{\"run\":\"live\",\"identifier\":\"optimiser.learning_rate\"}", false);
    CHECK_INT(json_array_size(at(settings, "settings")), 1);
    CHECK_NEAR(json_number_value(at(settings, "settings/0/value")), 0.01, 0);
    CHECK_STR(text_at(settings, "settings/0/effect"), "from the next iteration on");
    json_decref(settings);
    settings = call(c, "list_settings", "{\"run\":\"live\",\"identifier\":\"network\"}", false);
    size_t without = json_array_size(at(settings, "settings"));
    json_decref(settings);
    settings =
        call(c, "list_settings", "{\"run\":\"live\",\"identifier\":\"network\",\"tensors\":true}", false);
    CHECK(json_array_size(at(settings, "settings")) == without + 4);
    json_decref(settings);
    json_t *layers = call(c, "get_layers", "{\"run\":\"live\"}", false);
    CHECK_INT(json_array_size(at(layers, "layers")), 4);
    CHECK_STR(text_at(layers, "layers/1/tensors/weights"), "float32 (4, 16)");
    CHECK_INT(json_integer_value(at(layers, "layers/1/options/size")), 16);
    json_decref(layers);
    /* A run that is killed while it is waited for. */
    request(c, "tools/call",
            "{\"name\":\"wait_for_run\",\"arguments\":{\"run\":\"live\",\"iteration\":900000000000,"
            "\"seconds\":60},"
            "\"_meta\":{\"progressToken\":\"p\"}}");
    json_t *progress = read_message(c);
    CHECK_STR(text_at(progress, "method"), "notifications/progress");
    CHECK_STR(text_at(progress, "params/progressToken"), "p");
    CHECK(json_number_value(at(progress, "params/progress")) > 0);
    json_decref(progress);
    end_training(process, SIGKILL);
    for (;;) {
        json_t *answer = read_message(c);
        bool is = at(answer, "id") != NULL;
        if (is) {
            CHECK(json_is_false(at(answer, "result/structuredContent/reached")));
            CHECK(json_is_true(at(answer, "result/structuredContent/ended")));
        }
        json_decref(answer);
        if (is)
            break;
    }
    refused(c, "get_values", "{\"run\":\"live\",\"identifier\":\"epoch\"}",
            "run 'live' does not train now (it is failed)");
    CHECK_INT(end_server(c), 0);
    remove_folder(folder);
}

TEST(waiting_can_be_cancelled_and_ends_with_the_server)
{
    const char *folder = new_folder();
    client *c = begin_server(folder, "look");
    pid_t process = begin_training(c, folder, NULL);
    static const char wait_long[] = "{\"name\":\"wait_for_run\",\"arguments\":{\"run\":\"live\","
                                    "\"iteration\":900000000000,\"seconds\":600}}";
    char line[200];
    request(c, "tools/call", wait_long);
    int64_t first = c->id;
    request(c, "tools/call", wait_long);
    /* Pings are answered beside it. */
    json_decref(ask(c, "ping", "{}"));
    for (int64_t id = first + 1; id >= first; id--) {
        snprintf(
            line, sizeof line,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":%lld}}",
            (long long)id);
        send_line(c, line);
    }
    json_t *list =
        ask(c, "tools/call", "{\"name\":\"list_runs\"}"); /* the next answer: the others get none */
    json_decref(list);
    request(c, "tools/call", wait_long);
    CHECK_INT(end_server(c), 0);
    /* A signal ends it at once. */
    c = begin_server(folder, "look");
    request(c, "tools/call", wait_long);
    usleep(100000);
    CHECK_INT(terminate_server(c), 0);
    end_training(process, SIGTERM);
    remove_folder(folder);
}

/* Whether the journal has a line with these parts. */
static bool journal_has(const char *folder, const char *const *parts)
{
    char path[200], line[4096];
    bool has = false;
    snprintf(path, sizeof path, "%s/live/journal.jsonl", folder);
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    while (!has && fgets(line, sizeof line, file) != NULL) {
        has = true;
        for (size_t i = 0; parts[i] != NULL; i++)
            has &= strstr(line, parts[i]) != NULL;
    }
    fclose(file);
    return has;
}

static double rate_of(client *c)
{
    json_t *values =
        call(c, "get_values", "{\"run\":\"live\",\"identifier\":\"optimiser.learning_rate\"}", false);
    double rate = json_number_value(at(values, "values/0/value"));
    json_decref(values);
    return rate;
}

#define LIVE "{\"run\":\"live\",\"reason\":\"the loss\\njumps\""

TEST(a_training_is_steered_and_its_journal_says_by_whom_and_why)
{
    const char *folder = new_folder();
    client *c = begin_server(folder, "steer");
    pid_t process = begin_training(c, folder, NULL);
    /* What would change, which changes nothing. */
    json_t *would =
        call(c, "set_value",
             LIVE ",\"identifier\":\"optimiser.learning_rate\",\"value\":0.002,\"dry_run\":true}", false);
    CHECK_NEAR(json_number_value(at(would, "would_change/0/old")), 0.01, 0);
    CHECK_NEAR(json_number_value(at(would, "would_change/0/new")), 0.002, 0);
    json_decref(would);
    CHECK_NEAR(rate_of(c), 0.01, 0);
    static const char *const by_us[] = {"mcp:tester", NULL};
    CHECK(!journal_has(folder, by_us));
    json_t *done =
        call(c, "set_value", LIVE ",\"identifier\":\"optimiser.learning_rate\",\"value\":0.002}", false);
    CHECK(json_is_true(at(done, "ok")));
    CHECK_NEAR(json_number_value(at(done, "values/0/value")), 0.002, 0);
    json_decref(done);
    CHECK_NEAR(rate_of(c), 0.002, 0);
    static const char *const set[] = {
        "\"event\":\"change\"", "\"who\":\"mcp:tester\"",        "\"what\":\"optimiser.learning_rate\"",
        "\"new\":0.002",        "\"reason\":\"the loss jumps\"", NULL};
    CHECK(journal_has(folder, set));
    json_t *list = call(c, "list_interventions", "{\"run\":\"live\"}", false);
    CHECK_STR(text_at(list, "interventions/0/who"), "mcp:tester");
    CHECK_STR(text_at(list, "interventions/0/reason"), "the loss jumps");
    json_decref(list);
    json_t *changes = call(c, "list_changes", "{\"run\":\"live\"}", false);
    CHECK_STR(text_at(changes, "changes/0/reason"), "the loss jumps");
    json_decref(changes);
    /* The training's own refusals. */
    refused(c, "set_value", LIVE ",\"identifier\":\"optimiser.learning_rate\",\"value\":\"banana\"}",
            "run 'live': optimiser.learning_rate: expected a number, got 'banana'");
    refused(c, "set_value", LIVE ",\"identifier\":\"optimiser.learning_rate\",\"value\":-1}",
            "optimiser.learning_rate");
    refused(c, "set_value", LIVE ",\"identifier\":\"epoch\",\"value\":1}", "epoch");
    refused(c, "press_button", LIVE ",\"name\":\"x\"}", "no rule waits for external");
    refused(c, "restore_checkpoint", LIVE ",\"name\":\"../../x\"}", "run 'live': ");
    refused(c, "save_checkpoint", LIVE ",\"name\":\"../../x\"}", "run 'live': ");
    refused(c, "replay_run", LIVE "}", "--role admin");
    /* Rules, undo. */
    done = call(c, "attach_rule", LIVE ",\"rule\":\"if training.loss reaches -1 then stop\"}", false);
    CHECK_STR(text_at(done, "name"), "rule#1");
    json_decref(done);
    json_t *rules = call(c, "list_rules", "{\"run\":\"live\"}", false);
    CHECK_STR(text_at(rules, "rules/0/name"), "rule#1");
    json_decref(rules);
    json_decref(call(c, "detach_rule", LIVE ",\"name\":\"rule#1\"}", false));
    json_decref(call(c, "undo_change", LIVE "}", false));
    rules = call(c, "list_rules", "{\"run\":\"live\"}", false);
    CHECK_INT(json_array_size(at(rules, "rules")), 1);
    json_decref(rules);
    /* The clock. */
    json_decref(call(c, "pause_run", LIVE "}", false));
    json_t *waited = call(c, "wait_for_run", "{\"run\":\"live\",\"state\":\"paused\"}", false);
    CHECK(json_is_true(at(waited, "reached")));
    int64_t iteration = json_integer_value(at(waited, "status/iteration"));
    json_decref(waited);
    json_decref(call(c, "save_checkpoint", LIVE ",\"name\":\"here\"}", false));
    json_decref(call(c, "step_run", LIVE ",\"iterations\":3}", false));
    char arguments[100];
    snprintf(arguments, sizeof arguments, "{\"run\":\"live\",\"iteration\":%lld}", (long long)iteration + 3);
    waited = call(c, "wait_for_run", arguments, false);
    CHECK_INT(json_integer_value(at(waited, "status/iteration")), iteration + 3);
    json_decref(waited);
    json_decref(call(c, "restore_checkpoint", LIVE ",\"name\":\"here\"}", false));
    json_decref(call(c, "resume_run", LIVE "}", false));
    static const char *const restored[] = {"\"event\":\"restore\"", "mcp:tester", "the loss jumps", NULL};
    for (int i = 0; i < 200 && !journal_has(folder, restored); i++)
        usleep(20000);
    CHECK(journal_has(folder, restored));
    json_decref(call(c, "stop_run", LIVE "}", false));
    waited = call(c, "wait_for_run", "{\"run\":\"live\",\"state\":\"ended\"}", false);
    CHECK(json_is_true(at(waited, "reached")));
    json_decref(waited);
    int status = -1;
    waitpid(process, &status, 0);
    CHECK_INT(status, 0);
    json_t *run = call(c, "get_run", "{\"run\":\"live\"}", false);
    CHECK_STR(text_at(run, "state"), "stopped");
    CHECK(strstr(text_at(run, "reason"), "mcp:tester: the loss jumps") != NULL);
    json_decref(run);
    CHECK_INT(end_server(c), 0);
    remove_folder(folder);
}

/* The name is that of the option, else of the client: of its handshake, or of each request. */
TEST(journals_name_the_agent_as_it_is_called)
{
    static const char later[] =
        "{\"name\":\"set_value\",\"arguments\":" LIVE
        ",\"identifier\":\"optimiser.learning_rate\",\"value\":0.003},\"_meta\":{\"io.modelcontextprotocol/"
        "protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{},"
        "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"a\\tlater one\",\"version\":\"1\"}}}";
    static const char *const named[][2] = {{"\"who\":\"mcp:a later one\"", NULL},
                                           {"\"who\":\"mcp:boss\"", NULL}};
    const char *folder = new_folder();
    client *c = start_server(folder, "steer", NULL);
    json_decref(begin_as(c, "2025-11-25"));
    pid_t process = begin_training(c, folder, NULL);
    json_t *answer = ask(c, "tools/call", later);
    CHECK(json_is_false(at(answer, "result/isError")));
    CHECK_STR(text_at(answer, "result/resultType"), "complete");
    json_decref(answer);
    CHECK(journal_has(folder, named[0]));
    CHECK_INT(end_server(c), 0);
    c = start_server(folder, "steer", "boss");
    json_decref(begin_as(c, "2025-11-25"));
    json_decref(
        call(c, "set_value", LIVE ",\"identifier\":\"optimiser.learning_rate\",\"value\":0.004}", false));
    CHECK(journal_has(folder, named[1]));
    CHECK_INT(end_server(c), 0);
    end_training(process, SIGTERM);
    remove_folder(folder);
}

/* A change that waits for its iteration, and is not wanted any more, is not made: here for a training whose
 * process is stopped. */
TEST(a_change_that_is_cancelled_is_not_made)
{
    char line[200];
    const char *folder = new_folder();
    client *c = begin_server(folder, "steer");
    pid_t process = begin_training(c, folder, NULL);
    kill(process, SIGSTOP);
    request(c, "tools/call",
            "{\"name\":\"set_value\",\"arguments\":" LIVE
            ",\"identifier\":\"optimiser.learning_rate\",\"value\":0.5}}");
    usleep(300000);
    snprintf(line, sizeof line,
             "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":%lld}}",
             (long long)c->id);
    send_line(c, line);
    json_decref(ask(c, "tools/call", "{\"name\":\"list_runs\"}")); /* the next answer is that of this one */
    refused(c, "set_value", LIVE ",\"identifier\":\"optimiser.learning_rate\",\"value\":0.5}",
            "is stopped and does not answer");
    kill(process, SIGCONT);
    CHECK_NEAR(rate_of(c), 0.01, 0);
    CHECK_INT(end_server(c), 0);
    end_training(process, SIGTERM);
    remove_folder(folder);
}

/* Waits until a run says of itself that it is in this state, which a branch does a moment after it was begun.
 */
static void await_state(client *c, const char *arguments, const char *state)
{
    char last[40] = "";
    for (int i = 0; i < 1500 && strcmp(last, state) != 0; i++) {
        json_t *status = call(c, "get_run", arguments, false);
        json_t *now = at(status, "now/state");
        snprintf(last, sizeof last, "%s", json_is_string(now) ? json_string_value(now) : "no answer");
        json_decref(status);
        usleep(20000);
    }
    CHECK_STR(last, state);
}

TEST(a_branch_trains_beside_the_run)
{
    const char *folder = new_folder();
    client *c = begin_server(folder, "steer");
    pid_t process = begin_training(c, folder, NULL);
    refused(c, "branch_run", LIVE ",\"name\":\"../x\"}", "the branch cannot be named '../x'");
    refused(c, "branch_run", LIVE ",\"name\":\"x\",\"set\":[1]}",
            "'set' must be an object of identifiers and their values");
    refused(c, "branch_run", LIVE ",\"name\":\"x\",\"set\":{\"optimiser.beta1\":{}}}", "'set' must be");
    refused(c, "branch_run", LIVE ",\"name\":\"x\",\"set\":{\"optimiser.no\":1}}", "optimiser.no");
    refused(c, "branch_run", LIVE ",\"name\":\"x\",\"checkpoint\":\"none\"}", "no checkpoint 'none'");
    json_t *would =
        call(c, "branch_run",
             LIVE ",\"name\":\"slow\",\"set\":{\"optimiser.learning_rate\":0.001},\"dry_run\":true}", false);
    CHECK_STR(text_at(would, "would_change/0/identifier"), "branch slow");
    CHECK_NEAR(json_number_value(at(would, "would_change/1/new")), 0.001, 0);
    json_decref(would);
    json_t *begun =
        call(c, "branch_run",
             LIVE ",\"name\":\"slow\",\"set\":{\"optimiser.learning_rate\":0.001,\"optimiser.beta1\":0.5},"
                  "\"paused\":true}",
             false);
    CHECK_STR(text_at(begun, "run"), "live-slow");
    json_decref(begun);
    await_state(c, "{\"run\":\"live-slow\"}", "paused");
    json_t *values =
        call(c, "get_values", "{\"run\":\"live-slow\",\"identifier\":\"optimiser.learning_rate\"}", false);
    CHECK_NEAR(json_number_value(at(values, "values/0/value")), 0.001, 0);
    json_decref(values);
    values = call(c, "get_values", "{\"run\":\"live-slow\",\"identifier\":\"optimiser.beta1\"}", false);
    CHECK_NEAR(json_number_value(at(values, "values/0/value")), 0.5, 0);
    json_decref(values);
    CHECK_NEAR(rate_of(c), 0.01, 0);
    json_t *compared = call(c, "compare_runs", "{\"runs\":[\"live*\"]}", false);
    CHECK_INT(json_object_size(at(compared, "differences")), 2);
    CHECK_NEAR(json_number_value(at(compared, "differences/optimiser.learning_rate/live-slow")), 0.001, 0);
    json_decref(compared);
    static const char *const attached[] = {"mcp:tester", "the loss jumps", "branch", NULL};
    CHECK(journal_has(folder, attached));
    refused(c, "branch_run", LIVE ",\"name\":\"slow\"}", "there is a run 'live-slow' already");
    CHECK_INT(end_server(c), 0);
    char path[100];
    snprintf(path, sizeof path, "%s/live", folder);
    c = begin_server(path, "steer");
    refused(c, "branch_run", "{\"name\":\"x\",\"reason\":\"r\"}", "start it for the folder of runs");
    CHECK_INT(end_server(c), 0);
    end_training(process, SIGTERM);
    remove_folder(folder);
}

/* A branch with a protected value waits for approval: the agent is told so at once. */
TEST(a_branch_that_waits_for_approval_is_told)
{
    const char *folder = new_folder();
    client *c = begin_server(folder, "steer");
    pid_t process = begin_training(c, folder, "approve=[optimiser.learning_rate]");
    json_t *asked = call(c, "branch_run",
                         LIVE ",\"name\":\"slow\",\"set\":{\"optimiser.learning_rate\":0.001},"
                              "\"timeout_seconds\":2}",
                         false);
    CHECK_INT(json_integer_value(at(asked, "pending")), 1);
    CHECK(at(asked, "run") == NULL);
    json_decref(asked);
    CHECK_INT(end_server(c), 0);
    end_training(process, SIGTERM);
    remove_folder(folder);
}
