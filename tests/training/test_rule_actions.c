/* What rules do to a training that runs, beyond stopping, saving and setting for good. */
#include "base/folder.h"
#include "by_name.h"
#include "journal/change_record.h"

#include <jansson.h>

#define RATE "optimiser.learning_rate"

/* The learning rate after each iteration and epoch, times 1000. */
typedef struct rates {
    char text[2000];
} rates;

static bool note_rate(void *user, const sgm_training_progress *progress)
{
    rates *to = user;
    if (progress->kind != SGM_PROGRESS_ITERATION && progress->kind != SGM_PROGRESS_EPOCH)
        return true;
    size_t length = strlen(to->text);
    snprintf(to->text + length, sizeof to->text - length, "%s%g",
             progress->kind == SGM_PROGRESS_EPOCH ? "|"
             : length > 0                         ? " "
                                                  : "",
             progress->learning_rate * 1000);
    return true;
}

/* Trains for 4 epochs of 4 iterations with these rules, and compares what the rate is after each iteration
 * and, behind '|', each epoch. The rate is 100 at first. */
static void check_rates(const char *const *rules, size_t count, const char *expected)
{
    rates seen = {.text = ""};
    wave_trainer made = make_wave_trainer((wave_options){.seed = 5, .shuffle = true});
    for (size_t i = 0; i < count; i++)
        CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_rule_hook(rules[i])));
    CHECK_OK(sgm_trainer_on_progress(made.trainer, note_rate, &seen));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 4));
    CHECK_STR(seen.text, expected);
    free_wave_trainer(made);
}

TEST(a_value_that_is_set_for_a_time_goes_back)
{
    static const struct {
        const char *rules[3], *rates;
    } cases[] = {
        {{"after 2 iterations set " RATE " *= 0.5 for 3 iterations"},
         "100 50 50 50|50 100 100 100 100|100 100 100 100 100|100 100 100 100 100|100"},
        {{"at start set " RATE " = 0.01 for 2 epochs"},
         "10 10 10 10|10 10 10 10 10|100 100 100 100 100|100 100 100 100 100|100"},
        {{"at epoch 1 set " RATE " = 0.01 for 1 epoch"},
         "100 100 100 100|10 10 10 10 10|100 100 100 100 100|100 100 100 100 100|100"},
        /* a rule that fires again begins its time anew, and starts from the value of before */
        {{"every 2 iterations, 3 times set " RATE " *= 0.5 for 3 iterations"},
         "100 50 50 50|50 50 50 50 50|50 100 100 100 100|100 100 100 100 100|100"},
        /* so does another rule for the same value */
        {{"after 1 iteration set " RATE " *= 0.5 for 3 iterations",
          "after 2 iterations set " RATE " *= 0.25 for 4 iterations"},
         "50 25 25 25|25 25 100 100 100|100 100 100 100 100|100 100 100 100 100|100"},
        /* what somebody else sets meanwhile stays */
        {{"after 1 iteration set " RATE " *= 0.5 for 3 iterations", "after 2 iterations set " RATE " = 0.02"},
         "50 20 20 20|20 20 20 20 20|20 20 20 20 20|20 20 20 20 20|20"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_rates(cases[i].rules, cases[i].rules[1] == NULL ? 1 : 2, cases[i].rates);
}

TEST(a_reset_sets_back_what_was_set_for_a_time)
{
    wave_trainer made = make_wave_trainer((wave_options){.seed = 5, .shuffle = true});
    CHECK_OK(sgm_trainer_add_hook(made.trainer,
                                  sgm_rule_hook("after 3 iterations set " RATE " = 0.01 for 100 epochs")));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 4));
    CHECK_NEAR(number_of(made.trainer, RATE), 0.01, 0);
    CHECK_OK(sgm_trainer_reset(made.trainer));
    CHECK_NEAR(number_of(made.trainer, RATE), 0.1, 0);
    free_wave_trainer(made);
}

TEST(a_rule_for_a_time_is_of_the_trainer)
{
    CHECK_ERROR(sgm_hook_parse("local every epoch set " RATE " = 1 for 3 epochs"), "cannot be local");
    CHECK_ERROR(sgm_hook_parse("local every epoch restore \"best\""), "cannot be local");
    sgm_hook *hook = sgm_hook_parse("local every epoch notify \"here\"");
    CHECK_OK(hook);
    sgm_hook_free(hook);
}

/* The sum of the differences between a state's elements and those in a file. */
static double distance(sgm_trainer *trainer, const char *state, const char *path)
{
    sgm_bundle *bundle = sgm_bundle_load(path);
    CHECK_OK(bundle);
    sgm_tensor *now;
    CHECK_OK(now = sgm_trainer_get(trainer, state));
    sgm_tensor *saved = sgm_bundle_get(bundle, state); /* borrowed */
    CHECK_OK(saved);
    double a[64], b[64], sum = 0;
    size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(now));
    CHECK(count <= 64);
    CHECK_OK(sgm_tensor_read(now, a, count));
    CHECK_OK(sgm_tensor_read(saved, b, count));
    for (size_t i = 0; i < count; i++)
        sum += fabs(a[i] - b[i]);
    sgm_tensor_free(now);
    sgm_bundle_free(bundle);
    return sum;
}

static char seen_log[2000];

static void keep_log(void *user, sgm_log_level level, const char *source, const char *message)
{
    size_t length = strlen(seen_log);
    (void)user;
    (void)level;
    snprintf(seen_log + length, sizeof seen_log - length, "%s: %s\n", source, message);
}

static wave_trainer make_with(const char *const *rules)
{
    wave_trainer made = make_wave_trainer((wave_options){.seed = 5, .shuffle = true});
    for (size_t i = 0; rules[i] != NULL; i++)
        CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_rule_hook(rules[i])));
    seen_log[0] = '\0';
    sgm_set_logger(keep_log, NULL, SGM_LOG_WARNING);
    return made;
}

static void end_with(wave_trainer made)
{
    sgm_set_logger(NULL, NULL, SGM_LOG_WARNING);
    free_wave_trainer(made);
}

/* Weights and momentum are those of the checkpoint; the place, and a rate that was set meanwhile, are not. */
TEST(restore_brings_back_weights_and_goes_on)
{
    static const char *const rules[] = {
        "at epoch 1 save \"one\"", "at epoch 2 set " RATE " = 0.05",
        "at epoch 3 restore \"one\" and set " RATE " *= 0.5 and save \"three\"", NULL};
    open_folder();
    wave_trainer made = make_with(rules);
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 3, .folder = folder));
    CHECK_STR(seen_log, "");
    CHECK_NEAR(number_of(made.trainer, "iteration"), 12, 0);
    CHECK_NEAR(number_of(made.trainer, RATE), 0.025, 0);
    CHECK_NEAR(distance(made.trainer, "1-dense.weights", in_folder("one.safetensors")), 0, 0);
    CHECK_NEAR(distance(made.trainer, "1-dense.weights", in_folder("three.safetensors")), 0, 0);
    CHECK_NEAR(distance(made.trainer, "optimiser.momentum.1-dense.weights", in_folder("one.safetensors")), 0,
               0);
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 5, .folder = folder, .resume = true));
    CHECK(distance(made.trainer, "1-dense.weights", in_folder("one.safetensors")) > 0);

    /* another one resumes behind the restore, and ends at the same bits */
    wave_trainer other = make_with(rules);
    CHECK_OK(sgm_trainer_load(other.trainer, in_folder("three.safetensors")));
    CHECK_OK(sgm_trainer_run(other.trainer, .epochs = 5));
    CHECK_NEAR(distance(other.trainer, "1-dense.weights", in_folder("checkpoint.safetensors")), 0, 0);
    free_wave_trainer(other);
    end_with(made);
    close_folder();
}

TEST(a_checkpoint_that_is_not_there_ends_no_run)
{
    static const char *const rules[] = {"at epoch 1 save \"best\"", "at epoch 2 restore \"bst\"", NULL};
    open_folder();
    wave_trainer made = make_with(rules);
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 3, .folder = folder));
    CHECK(strstr(seen_log, "bst") != NULL && strstr(seen_log, "best") != NULL);
    CHECK_NEAR(number_of(made.trainer, "epoch"), 3, 0);
    end_with(made);
    close_folder();
}

TEST(notify_tells_values)
{
    static const char *const rules[] = {"at epoch 2 notify \"epoch {epoch}: rate {" RATE "}\"", NULL};
    wave_trainer made = make_with(rules);
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 3));
    CHECK_STR(seen_log, "waves: notify: epoch 2: rate 0.1\n");
    end_with(made);
    static const struct {
        const char *rule, *error;
    } bad[] = {
        {"at epoch 2 notify \"{optimiser.learning_rat}\"", "learning_rate"},
        {"at epoch 2 notify \"{training.loss:.3}\"", "expected letters, digits"},
        {"at epoch 2 notify \"it is {training.loss\"", "has a '{' without its '}'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        made = make_with((const char *const[]){bad[i].rule, NULL});
        CHECK_ERROR(sgm_trainer_run(made.trainer, .epochs = 3), bad[i].error);
        end_with(made);
    }
}

/* A list that is not readable is refused before anything is changed. */
TEST(a_damaged_list_of_values_that_go_back_is_refused)
{
    static const char *const rules[] = {"after 2 iterations set " RATE " = 0.05 for 3 epochs", NULL};
    static const char *const rows[] = {"\"x\"", "[3]", "[[\"a\",\"b\",\"c\",\"start\",4]]",
                                       "[[\"a\",\"b\",\"c\",\"epoch\",-4]]",
                                       "[[\"a\",\"b\",\"c\",\"epoch\"]]"};
    open_folder();
    wave_trainer made = make_with(rules), victim = make_with(rules);
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 3));
    CHECK_OK(sgm_trainer_save(made.trainer, in_folder("good.safetensors")));
    sgm_bundle *bundle = sgm_bundle_load(in_folder("good.safetensors"));
    CHECK_OK(bundle);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *state = json_loads(sgm_bundle_get_text(bundle, "sigma.state"), 0, NULL);
        CHECK(json_array_size(json_object_get(state, "temporary")) == 1);
        json_object_set_new(state, "temporary", json_loads(rows[i], JSON_DECODE_ANY, NULL));
        char *text = json_dumps(state, JSON_COMPACT);
        CHECK_OK(sgm_bundle_set_text(bundle, "sigma.state", text));
        CHECK_OK(sgm_bundle_save(bundle, in_folder("bad.safetensors")));
        CHECK_ERROR(sgm_trainer_load(victim.trainer, in_folder("bad.safetensors")), "lacks a number");
        CHECK_NEAR(number_of(victim.trainer, "iteration"), 0, 0);
        free(text);
        json_decref(state);
        sgm_bundle_free(bundle);
        bundle = sgm_bundle_load(in_folder("good.safetensors"));
        CHECK_OK(bundle);
    }
    sgm_bundle_free(bundle);
    free_wave_trainer(victim);
    end_with(made);
    close_folder();
}

/* --- with workers --- */

enum { ALONE, GRADIENTS, PARAMETERS, WAYS };

static wave_trainer make_way(int way, const char *const *rules)
{
    wave_trainer made = make_with(rules);
    if (way != ALONE)
        CHECK_OK(sgm_trainer_set_operator(
            made.trainer, way == GRADIENTS ? sgm_gradient_operator(.workers = 2)
                                           : sgm_parameter_operator(.workers = 2, .every = 3)));
    return made;
}

/* Going back is the same to the bit as a second rule that sets the first value at that moment. */
TEST(going_back_is_as_if_a_second_rule_did_it)
{
    static const char *const temporary[] = {"after 2 iterations set " RATE " *= 0.5 for 3 iterations", NULL},
                             *const both[] = {"after 2 iterations set " RATE " *= 0.5",
                                              "after 5 iterations set " RATE " = 0.1", NULL};
    for (int way = 0; way < WAYS; way++) {
        open_folder();
        wave_trainer made = make_way(way, temporary), other = make_way(way, both);
        CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 3));
        CHECK_OK(sgm_trainer_run(other.trainer, .epochs = 3));
        CHECK_NEAR(number_of(made.trainer, RATE), 0.1, 0);
        CHECK_OK(sgm_trainer_save(other.trainer, in_folder("other.safetensors")));
        CHECK_NEAR(distance(made.trainer, "1-dense.weights", in_folder("other.safetensors")), 0, 0);
        free_wave_trainer(other);
        end_with(made);
        close_folder();
    }
}

/* Workers go on from what was restored: so does a trainer that begins from the checkpoint behind it. */
TEST(workers_get_what_a_rule_restores)
{
    static const char *const rules[] = {"at epoch 1 save \"one\"",
                                        "at epoch 3 restore \"one\" and save \"three\"", NULL};
    for (int way = 0; way < WAYS; way++) {
        open_folder();
        wave_trainer made = make_way(way, rules), other = make_way(way, rules);
        CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 5, .folder = folder));
        CHECK_NEAR(distance(made.trainer, "1-dense.weights", in_folder("checkpoint.safetensors")), 0, 0);
        CHECK_OK(sgm_trainer_load(other.trainer, in_folder("three.safetensors")));
        CHECK_NEAR(distance(other.trainer, "1-dense.weights", in_folder("one.safetensors")), 0, 0);
        CHECK_OK(sgm_trainer_run(other.trainer, .epochs = 5));
        CHECK_NEAR(distance(other.trainer, "1-dense.weights", in_folder("checkpoint.safetensors")), 0, 0);
        free_wave_trainer(other);
        end_with(made);
        close_folder();
    }
}

/* All rules have one name: the text of the rule says which one made a change, or let it end. */
TEST(a_change_by_a_rule_has_the_rule_s_text)
{
    static const char *const rules[] = {"after 3 iterations set optimiser.momentum = 0.5",
                                        "after 2 iterations set " RATE " *= 0.5 for 1 epoch"};
    static const size_t expected[] = {1, 0, 1}; /* the last one goes back */
    wave_trainer made = make_wave_trainer((wave_options){.optimiser = sgm_momentum()});
    for (size_t i = 0; i < 2; i++)
        CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_rule_hook(rules[i])));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 3));
    json_t *list = sgm__changes_json(made.trainer, 0);
    CHECK_INT(json_array_size(list), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *change = json_array_get(list, i);
        CHECK_STR(json_string_value(json_object_get(change, "who")), "rule");
        CHECK_STR(json_string_value(json_object_get(change, "reason")), rules[expected[i]]);
    }
    json_decref(list);
    free_wave_trainer(made);
}

/* Rates of 4 iterations an epoch: the rule comes after the sixth. */
TEST(a_step_counts_from_the_attaching)
{
    static const char *const rules[] = {"after 2 iterations set " RATE " = 0.05",
                                        "at epoch 1 set " RATE " = 0.02"};
    rates seen = {.text = ""};
    wave_trainer made = make_wave_trainer((wave_options){.seed = 5});
    CHECK_OK(sgm_trainer_on_progress(made.trainer, note_rate, &seen));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 6));
    for (size_t i = 0; i < 2; i++)
        CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_rule_hook(rules[i])));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 12));
    CHECK_STR(seen.text, "100 100 100 100|100 100 100 100 50|20 20 20 20 20");
    free_wave_trainer(made);
}
