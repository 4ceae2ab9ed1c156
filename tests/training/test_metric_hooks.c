/* Metrics as hooks of trainers: what they leave, when, and for whom. */
#include "by_name.h"
#include "hooks_test.h"
#include "train/train.h"

#include <unistd.h>

/* By the definitions, from predictions made one example at a time. */
typedef struct by_hand {
    double top_1, top_2, macro_f1;
    double counts[3][3];
} by_hand;

static by_hand measure_by_hand(sgm_trainer *trainer)
{
    by_hand found = {0};
    sgm_tensor *inputs = wave(WAVE_EXAMPLES, 6, 0.3, 1, SGM_FLOAT32);
    for (int64_t i = 0; i < WAVE_EXAMPLES; i++) {
        double o[3];
        int64_t target = i * 7 % 3, larger = 0, prediction = 0;
        sgm_tensor *one = sgm_tensor_slice(inputs, 0, i, i + 1, 1);
        sgm_tensor *outputs = sgm_trainer_predict(trainer, one, NULL);
        CHECK_OK(sgm_tensor_read(outputs, o, 3));
        sgm_tensor_free(one);
        sgm_tensor_free(outputs);
        for (int j = 0; j < 3; j++) {
            larger += o[j] > o[target];
            prediction = o[j] > o[prediction] ? j : prediction;
        }
        found.top_1 += (larger == 0) / (double)WAVE_EXAMPLES;
        found.top_2 += (larger <= 1) / (double)WAVE_EXAMPLES;
        found.counts[target][prediction]++;
    }
    for (int k = 0; k < 3; k++) {
        double in_row = 0, in_column = 0;
        for (int j = 0; j < 3; j++) {
            in_row += found.counts[k][j];
            in_column += found.counts[j][k];
        }
        found.macro_f1 += in_row + in_column > 0 ? 2 * found.counts[k][k] / (in_row + in_column) / 3 : 0;
    }
    sgm_tensor_free(inputs);
    return found;
}

static int64_t observed;

static void count_observed(void *user, const char *identifier, const sgm_content *before,
                           const sgm_content *after)
{
    (void)user;
    (void)identifier;
    (void)before;
    (void)after;
    observed++;
}

TEST(metrics_of_one_event_share_one_pass)
{
    wave_trainer made = make_validated_trainer(3);
    observed = 0;
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_metric("f1", "validation")));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_metric("top_k", "validation", .tops = {1, 2})));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_metric("confusion", "validation")));
    CHECK_OK(sgm_trainer_add_hook(made.trainer,
                                  sgm_metric("roc_auc", "validation", .when = sgm_every(2, SGM_EPOCH))));
    CHECK_INT(sgm__hooks_count(made.trainer->hooks), 6); /* two of them pass */
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_metric("f1", "validation")));
    CHECK_INT(sgm__hooks_count(made.trainer->hooks), 6);
    CHECK_OK(sgm_registry_observe(sgm_trainer_registry(made.trainer), "validation.outputs", count_observed,
                                  NULL, NULL));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 5));
    CHECK_INT(observed, 5);
    by_hand expected = measure_by_hand(made.trainer);
    sgm_content confusion;
    double counts[9];
    CHECK_NEAR(number_of(made.trainer, "validation.top_1"), expected.top_1, 1e-12);
    CHECK_NEAR(number_of(made.trainer, "validation.top_1"), number_of(made.trainer, "validation.accuracy"),
               1e-12);
    CHECK_NEAR(number_of(made.trainer, "validation.top_2"), expected.top_2, 1e-12);
    CHECK_NEAR(number_of(made.trainer, "validation.f1"), expected.macro_f1, 1e-12);
    CHECK_NEAR(number_of(made.trainer, "validation.cost"), number_of(made.trainer, "validation.loss"), 0);
    CHECK(number_of(made.trainer, "validation.roc_auc") > 0); /* of epoch 4 */
    CHECK_OK(
        sgm_registry_resolve_one(sgm_trainer_registry(made.trainer), "validation.confusion", &confusion));
    CHECK_OK(sgm_tensor_read(confusion.as.tensor, counts, 9));
    sgm_content_clear(&confusion);
    for (int i = 0; i < 9; i++)
        CHECK_NEAR(counts[i], expected.counts[i / 3][i % 3], 0);
    free_wave_trainer(made);
}

/* The place in the training is the same, but not the parameters. */
TEST(what_is_loaded_is_measured_anew)
{
    char folder[] = "/tmp/sigma-metrics-XXXXXX", path[128];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/other.safetensors", folder);
    wave_trainer made = make_validated_trainer(3), other = make_validated_trainer(8);
    sgm_hook *f1 = sgm_metric("f1", "validation");
    sgm_metrics measured;
    CHECK_OK(sgm_trainer_add_hook(made.trainer, f1));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
    CHECK_OK(sgm_trainer_run(other.trainer, .epochs = 2));
    CHECK_OK(sgm_trainer_save(other.trainer, path));
    CHECK_OK(sgm_trainer_load_parts(made.trainer, path, .parts = SGM_PART_PARAMETERS));
    CHECK_OK(sgm__trainer_pass_for_hooks(made.trainer, f1, "validation", NULL, NULL, false));
    CHECK_OK(sgm_trainer_evaluate(other.trainer, other.trainer->data.validation[0].iterator, &measured));
    CHECK_NEAR(number_of(made.trainer, "validation.cost"), measured.loss, 0);
    free_wave_trainer(made);
    free_wave_trainer(other);
    CHECK_INT(unlink(path), 0);
    CHECK_INT(rmdir(folder), 0);
}

/* A pass over the data that is trained on, in the middle of epochs, changes nothing of the training. */
TEST(training_goes_on_as_without_metrics)
{
    sgm_tensor *weights[2];
    for (int i = 0; i < 2; i++) {
        wave_trainer made = make_validated_trainer(5);
        if (i == 1)
            CHECK_OK(sgm_trainer_add_hook(made.trainer,
                                          sgm_metric("f1", "training", .when = sgm_every(3, SGM_ITERATION))));
        CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 4));
        CHECK(i == 0 || number_of(made.trainer, "training.f1") > 0);
        weights[i] = sgm_trainer_get(made.trainer, "2-dense.weights");
        CHECK_OK(weights[i]);
        free_wave_trainer(made);
    }
    CHECK(memcmp(sgm_tensor_data(weights[0]), sgm_tensor_data(weights[1]), 40 * sizeof(float)) == 0);
    sgm_tensor_free(weights[0]);
    sgm_tensor_free(weights[1]);
}

TEST(rules_see_the_metrics_of_their_event)
{
    char folder[64] = "/tmp/sigma-test-XXXXXX", path[128], command[128];
    wave_trainer made = make_validated_trainer(3);
    CHECK(mkdtemp(folder) != NULL);
    CHECK_OK(
        sgm_trainer_add_hook(made.trainer, sgm_rule_hook("if validation.top_1 >= 0 then stop \"measured\"")));
    CHECK_OK(sgm_trainer_add_hook(
        made.trainer, sgm_rule_hook("every epoch if validation.f1 reaches maximum then save \"best\"")));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_metric("top_k", "validation")));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_metric("f1", "validation")));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 5, .folder = folder));
    CHECK_INT(made.trainer->position.epoch, 1);
    snprintf(path, sizeof path, "%s/best.safetensors", folder);
    CHECK(access(path, R_OK) == 0);
    free_wave_trainer(made);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    CHECK_INT(system(command), 0);
}

/* metrics.jsonl without what differs between runs; sgm__free. */
static char *read_lines(const char *folder)
{
    char path[128], *text, *from, *to;
    size_t length;
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    CHECK_OK(sgm__file_read(path, 65536, &text, &length));
    while ((from = strstr(text, "\"seconds\":")) != NULL && (to = strchr(from, ',')) != NULL)
        memmove(from, to + 1, strlen(to));
    return text;
}

static void run_in(const char *folder, int64_t epochs)
{
    wave_trainer made = make_validated_trainer(11);
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_metric("f1", "validation")));
    CHECK_OK(sgm_trainer_add_hook(made.trainer,
                                  sgm_metric("perplexity", "validation", .when = sgm_every(2, SGM_EPOCH))));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = epochs, .folder = folder, .resume = true));
    free_wave_trainer(made);
}

TEST(a_resumed_run_writes_the_same_lines)
{
    char whole[64] = "/tmp/sigma-test-XXXXXX", parts[64] = "/tmp/sigma-test-XXXXXX", command[160];
    CHECK(mkdtemp(whole) != NULL && mkdtemp(parts) != NULL);
    run_in(whole, 5);
    for (int64_t epochs = 1; epochs <= 5; epochs += 2)
        run_in(parts, epochs);
    char *expected = read_lines(whole), *found = read_lines(parts);
    CHECK_STR(found, expected);
    size_t lines = 0, perplexities = 0;
    for (const char *at = expected; (at = strstr(at, "\"validation.f1\":")) != NULL; at++)
        lines++;
    for (const char *at = expected; (at = strstr(at, "\"validation.perplexity\":")) != NULL; at++)
        perplexities++;
    CHECK_INT(lines, 5);
    CHECK_INT(perplexities, 2);
    CHECK(strstr(expected, "\"validation.precision\":") != NULL);
    CHECK(strstr(expected, "f1_weighted") == NULL); /* only in the registry */
    sgm__free(expected);
    sgm__free(found);
    snprintf(command, sizeof command, "rm -r '%s' '%s'", whole, parts);
    CHECK_INT(system(command), 0);
}

static double score_seen;
static size_t scores_seen;

static bool see_scores(void *user, const sgm_training_progress *progress)
{
    (void)user;
    if (progress->kind != SGM_PROGRESS_EPOCH)
        return true;
    scores_seen = progress->score_count;
    for (size_t i = 0; i < progress->score_count; i++)
        if (strcmp(progress->scores[i].name, "left_top_2") == 0 && progress->scores[i].headline)
            score_seen = progress->scores[i].value;
    return true;
}

TEST(observers_are_told_what_was_measured_in_the_epoch)
{
    wave_trainer made = make_validated_trainer(3);
    score_seen = -1;
    CHECK_OK(sgm_trainer_on_progress(made.trainer, see_scores, NULL));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_metric("top_k", "validation", .name = "left",
                                                           .tops = {1, 2}, .when = sgm_after(1, SGM_EPOCH))));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1));
    CHECK_INT(scores_seen, 2);
    CHECK_NEAR(score_seen, number_of(made.trainer, "validation.left_top_2"), 0);
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
    CHECK_INT(scores_seen, 0);
    free_wave_trainer(made);
}

static sgm_status spoil(void *self, sgm_hook_call *call)
{
    (void)self;
    sgm_shape weights = sgm_shape_of(5, 3), biases = sgm_shape_of(3);
    sgm_tensor *zero = sgm_tensor_create(SGM_FLOAT32, &weights),
               *one = sgm_tensor_create_from(SGM_FLOAT32, &biases, (const float[]){0, 1, 0});
    SGM_TRY(sgm_trainer_set(sgm_hook_trainer(call), "3-dense.weights", zero));
    SGM_TRY(sgm_trainer_set(sgm_hook_trainer(call), "3-dense.biases", one));
    sgm_tensor_free(zero);
    sgm_tensor_free(one);
    return SGM_OK;
}

static const sgm_hook_type spoiler = {.api = SGM_HOOK_API, .name = "spoiler", .invoke = spoil};

/* All predictions are class 1, of which there are 13 of 40 examples. */
TEST(a_hook_that_sets_parameters_first_is_seen)
{
    wave_trainer made = make_validated_trainer(3);
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_metric("f1", "validation")));
    CHECK_OK(
        sgm_trainer_add_hook(made.trainer, sgm_hook_create(&spoiler, NULL, .when = sgm_every(2, SGM_EPOCH),
                                                           .priority = SGM_METRIC_PRIORITY - 1)));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 4));
    CHECK_NEAR(number_of(made.trainer, "validation.f1_micro"), 13 / 40.0, 1e-12);
    free_wave_trainer(made);
}

static sgm_status count_classes(void *self, sgm_hook_call *call)
{
    (void)self;
    sgm_content targets;
    SGM_TRY(sgm_hook_get(call, "validation.targets", &targets));
    int64_t examples = sgm_tensor_shape(targets.as.tensor)->dims[0];
    sgm_content_clear(&targets);
    CHECK_ERROR(sgm_hook_add_score(call, "validation", "loss", 1, false), "a name of its own, not 'loss'");
    CHECK_ERROR(sgm_hook_add_score(call, "", "x", 1, false), "expected the name of a trainer's data");
    return sgm_hook_add_score(call, "validation", "examples_seen", (double)examples, true);
}

static const sgm_hook_type counter = {.api = SGM_HOOK_API, .name = "counter", .invoke = count_classes};

TEST(hooks_of_a_program_use_the_pass_and_leave_scores)
{
    wave_trainer made = make_validated_trainer(3);
    sgm_hook *hook = sgm_hook_create(&counter, NULL, .when = sgm_every(1, SGM_EPOCH));
    CHECK_OK(sgm_hook_require(hook, sgm_predictions_hook("validation")));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, hook));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1));
    CHECK_NEAR(number_of(made.trainer, "validation.examples_seen"), 40, 0);
    hook = sgm_hook_create(&counter, &observed, .background = true, .when = sgm_every(1, SGM_EPOCH));
    CHECK_OK(sgm_hook_require(hook, sgm_predictions_hook("validation")));
    CHECK_ERROR(sgm_trainer_add_hook(made.trainer, hook),
                "hook 'counter' runs in the background, but 'predictions'");
    const sgm_metric_options unsized = {.struct_size = 0};
    CHECK_ERROR(sgm_predictions_hook_with("validation", &unsized),
                "sgm_predictions_hook: options have names");
    free_wave_trainer(made);
}

/* What a detached hook left goes with it, unless another one left it, too; so does what was gathered for it.
 */
TEST(values_go_with_a_detached_hook)
{
    wave_trainer made = make_validated_trainer(3);
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_metric("f1", "validation")));
    CHECK_OK(
        sgm_trainer_add_hook(made.trainer, sgm_metric("f1", "validation", .when = sgm_every(2, SGM_EPOCH))));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_metric("top_k", "validation", .name = "other")));
    CHECK_OK(sgm_trainer_add_hook(made.trainer,
                                  sgm_metric("perplexity", "training", .when = sgm_after(1, SGM_EPOCH))));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
    CHECK(number_of(made.trainer, "validation.f1_macro") >= 0 &&
          number_of(made.trainer, "validation.other_top_1") >= 0);
    CHECK_OK(sgm_trainer_detach_hook(made.trainer, "f1#1"));
    CHECK(number_of(made.trainer, "validation.f1_macro") >= 0);
    CHECK_OK(sgm_trainer_detach_hook(made.trainer, "f1"));
    CHECK(!has(made.trainer, "validation.f1_macro"));
    CHECK(number_of(made.trainer, "validation.other_top_1") >= 0 &&
          number_of(made.trainer, "validation.cost") >= 0);
    CHECK_OK(sgm_trainer_detach_hook(made.trainer, "top_k"));
    CHECK(!has(made.trainer, "validation.other_top_1") && !has(made.trainer, "validation.cost"));
    CHECK(number_of(made.trainer, "training.perplexity") >= 1); /* of a hook whose time was over */
    CHECK(number_of(made.trainer, "validation.loss") >= 0);
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 3)); /* nothing gathers any more */
    CHECK(!has(made.trainer, "validation.cost"));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_metric("f1", "validation")));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 4));
    CHECK(number_of(made.trainer, "validation.f1_macro") >= 0);
    free_wave_trainer(made);
}

static sgm_status leave_late(void *trainer, sgm_hook_call *call)
{
    CHECK_OK(sgm_trainer_detach_hook(trainer, "late"));
    return sgm_hook_add_score(call, "validation", "late", 1, false);
}

/* As when a person detaches it meanwhile. */
TEST(a_hook_that_was_detached_while_it_measured_leaves_nothing)
{
    static const sgm_hook_type late = {.api = SGM_HOOK_API, .name = "late", .invoke = leave_late};
    wave_trainer made = make_validated_trainer(3);
    sgm_hook *hook = sgm_hook_create(&late, made.trainer, .when = sgm_every(1, SGM_EPOCH));
    sgm_hook_retain(hook);
    CHECK_OK(sgm_trainer_add_hook(made.trainer, hook));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1));
    CHECK(!has(made.trainer, "validation.late"));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, hook)); /* again */
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
    CHECK(!has(made.trainer, "validation.late"));
    free_wave_trainer(made);
}

TEST(what_cannot_be_measured_is_said_and_training_goes_on)
{
    wave_trainer made = make_validated_trainer(3);
    seen_clear();
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_metric("binary_accuracy", "validation")));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_metric("roc_auc", "validation", .output = "9-none")));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_metric("roc_auc", "validation", .targets = "inputs")));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
    CHECK(strstr(seen_log,
                 "hook 'binary_accuracy' failed and is taken off: binary_accuracy wants one output") != NULL);
    CHECK(strstr(seen_log, "the network has no output '9-none'") != NULL);
    CHECK(strstr(seen_log, "got (40, 3) and (40, 6)") != NULL);
    CHECK_INT(sgm__hooks_count(made.trainer->hooks), 0);
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_metric("f1", "test", .failure = SGM_HOOK_STOP)));
    CHECK_ERROR(sgm_trainer_run(made.trainer, .epochs = 4),
                "the trainer has no data 'test'; it has validation, training");
    CHECK(strstr(sgm_last_error(), "hook 'f1'") != NULL); /* not the one that f1 requires */
    CHECK(strstr(sgm_last_error(), "'predictions'") == NULL);
    free_wave_trainer(made);
    CHECK_ERROR(sgm_metric_with("f2", "validation", NULL), "unknown metric 'f2' (did you mean 'f1'?)");
    CHECK_ERROR(sgm_metric("f1", NULL), "f1: expected the name of a trainer's data");
    CHECK_ERROR(sgm_metric("f1", "validation", .tops = {1}), "f1 has no .tops");
    CHECK_ERROR(sgm_metric("top_k", "validation", .lower = 1, .upper = 2), "top_k has no .lower");
    CHECK_ERROR(sgm_metric("top_k", "validation", .tops = {0, 2}), "must be 1 or more");
    floor_of_test at = open_floor();
    attach(&at, sgm_metric("f1", "validation", .when = sgm_every(1, SGM_ITERATION)));
    iterate(&at, 1);
    CHECK(strstr(seen_log, "metrics need their trainer") != NULL);
    close_floor(&at);
}

/* --- side by side --- */

TEST(each_of_two_trainers_has_its_own)
{
    sgm_env *env = sgm_env_create("two", .seed = 4, .threads = 2);
    sgm_trainer *trainers[2];
    CHECK_OK(env);
    for (int i = 0; i < 2; i++) {
        sgm_dataset *dataset = wave_dataset();
        trainers[i] = sgm_trainer_create(env, i == 0 ? "bold" : "careful");
        CHECK_OK(sgm_trainer_set_network(trainers[i], WAVE_NETWORK));
        CHECK_OK(sgm_trainer_set_data(trainers[i], sgm_minibatches(dataset, .size = 10)));
        CHECK_OK(sgm_trainer_add_data(trainers[i], "validation", sgm_by_block(dataset)));
        CHECK_OK(sgm_trainer_set_optimiser(trainers[i], sgm_momentum(.learning_rate = i == 0 ? 0.1 : 0.01)));
        CHECK_OK(sgm_trainer_add_hook(trainers[i], sgm_metric("f1", "validation")));
        CHECK_OK(sgm_trainer_add_hook(trainers[i], sgm_metric("top_k", "validation", .tops = {1, 2})));
        CHECK_OK(sgm_trainer_add_hook(trainers[i],
                                      sgm_metric("cost", "validation", .when = sgm_every(3, SGM_ITERATION))));
        sgm_dataset_free(dataset);
    }
    CHECK_OK(sgm_env_run(env, .epochs = 15));
    for (int i = 0; i < 2; i++) {
        by_hand expected = measure_by_hand(trainers[i]);
        CHECK_NEAR(number_of(trainers[i], "validation.f1"), expected.macro_f1, 1e-12);
        CHECK_NEAR(number_of(trainers[i], "validation.top_2"), expected.top_2, 1e-12);
    }
    CHECK(number_of(trainers[0], "validation.cost") != number_of(trainers[1], "validation.cost"));
    sgm_env_free(env);
}
