/* Training with adapters: what is trained, what memory it takes, resuming, merging. */
#include "waves.h"

#include <stdlib.h>

#define ADAPTERS "lora(3, alpha=6, dropout=0.1, on=\"2-dense.weights 3-dense\", train=\"3-dense.biases\")"

/* The golden parameters, then adapters. */
static wave_trainer adapted(const char *handler, sgm_dtype precision)
{
    wave_trainer made = make_wave_trainer(
        (wave_options){.handler = handler,
                       .precision = precision,
                       .seed = 5,
                       .optimiser = sgm_adamw(.learning_rate = 0.02, .average = 0.5, .accumulate = 2)});
    CHECK_OK(sgm_trainer_adapt(made.trainer, sgm_layer_parse(ADAPTERS)));
    set_golden_parameters(made.trainer, precision);
    return made;
}

static bool has_state(const wave_trainer *made, const char *format, const char *parameter)
{
    char name[200];
    snprintf(name, sizeof name, format, parameter);
    return sgm_session_has(made->trainer->learner.session, name);
}

/* What is not trained has no gradients, and none of the states that an optimiser keeps. */
TEST(adapters_alone_are_trained)
{
    static const char *const frozen[] = {"1-dense.weights", "1-dense.biases", "2-dense.weights",
                                         "2-dense.biases", "3-dense.weights"};
    static const char *const trained[] = {"2-dense.weights_lora_a", "2-dense.weights_lora_b",
                                          "3-dense.weights_lora_a", "3-dense.weights_lora_b",
                                          "3-dense.biases"};
    wave_trainer whole = make_wave_trainer((wave_options){0}), made = adapted("cpu", SGM_FLOAT32);
    set_golden_parameters(whole.trainer, SGM_FLOAT32);
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
    for (size_t i = 0; i < 5; i++) {
        sgm_tensor *now = sgm_trainer_get(made.trainer, frozen[i]);
        sgm_tensor *before = sgm_trainer_get(whole.trainer, frozen[i]);
        check_near_tensors(now, before, 0);
        sgm_tensor_free(now);
        sgm_tensor_free(before);
        CHECK(!has_state(&made, "optimiser.momentum.%s", frozen[i]));
        CHECK(!has_state(&made, "optimiser.accumulated.%s", frozen[i]));
        CHECK(!has_state(&made, "average.%s", frozen[i]));
        CHECK(has_state(&made, "optimiser.accumulated.%s", trained[i]));
        CHECK(has_state(&made, "average.%s", trained[i]));
    }
    free_wave_trainer(whole);
    free_wave_trainer(made);
}

/* At first predictions are those of the network without adapters. */
TEST(an_adapter_begins_without_an_effect)
{
    wave_trainer whole = make_wave_trainer((wave_options){0}), made = adapted("reference", SGM_FLOAT32);
    set_golden_parameters(whole.trainer, SGM_FLOAT32);
    sgm_tensor *inputs = wave(4, 6, 1, 1, SGM_FLOAT32);
    sgm_tensor *a = sgm_trainer_predict(whole.trainer, inputs, NULL);
    sgm_tensor *b = sgm_trainer_predict(made.trainer, inputs, NULL);
    check_near_tensors(a, b, 0);
    sgm_tensor_free(a);
    sgm_tensor_free(b);
    sgm_tensor_free(inputs);
    free_wave_trainer(whole);
    free_wave_trainer(made);
}

static void check_merge(const char *handler, sgm_dtype precision, double tolerance)
{
    char path[] = "/tmp/sigma-test-XXXXXX";
    CHECK(mkstemp(path) >= 0);
    wave_trainer made = adapted(handler, precision);
    CHECK_OK(sgm_trainer_set_optimiser(made.trainer, sgm_adamw(.learning_rate = 0.02)));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 3));
    sgm_tensor *inputs = wave(4, 6, 1, 1, precision);
    sgm_tensor *before = sgm_trainer_predict(made.trainer, inputs, NULL);
    sgm_tensor *plain = sgm_trainer_get(made.trainer, "2-dense.weights");
    CHECK_OK(sgm_trainer_merge(made.trainer));
    sgm_tensor *merged = sgm_trainer_get(made.trainer, "2-dense.weights");
    CHECK(fabs(sgm_tensor_get(plain, (const int64_t[]){1, 1}) -
               sgm_tensor_get(merged, (const int64_t[]){1, 1})) > 1e-3);
    sgm_tensor *after = sgm_trainer_predict(made.trainer, inputs, NULL);
    check_near_tensors(before, after, tolerance);
    char *network = sgm_trainer_network(made.trainer);
    CHECK_STR(network, WAVE_NETWORK);
    CHECK(!has_state(&made, "%s", "2-dense.weights_lora_a"));
    CHECK(!has_state(&made, "optimiser.momentum.%s", "2-dense.weights_lora_a"));
    CHECK(has_state(&made, "optimiser.momentum.%s", "3-dense.biases"));
    /* A network like any other: it is saved, loaded, and trained as a whole. */
    wave_trainer other = make_wave_trainer((wave_options){.precision = precision});
    CHECK_OK(sgm_trainer_save(made.trainer, path));
    CHECK_OK(sgm_trainer_load_parts(other.trainer, path, .parts = SGM_PART_NETWORK | SGM_PART_PARAMETERS));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 4));
    CHECK(has_state(&made, "optimiser.momentum.%s", "1-dense.weights"));
    sgm_string_free(network);
    sgm_tensor *tensors[] = {inputs, before, plain, merged, after};
    for (size_t i = 0; i < 5; i++)
        sgm_tensor_free(tensors[i]);
    free_wave_trainer(other);
    free_wave_trainer(made);
    remove(path);
}

TEST(merging_changes_no_prediction)
{
    check_merge("reference", SGM_FLOAT64, 1e-12);
    check_merge("cpu", SGM_FLOAT32, 1e-6);
}

/* A unit matrix of more rows than are merged at once, 300 and 44 in the last part. */
TEST(merging_a_wide_layer)
{
    sgm_handler *handler = sgm_handler_create("cpu", .threads = 1);
    sgm__trainer_settings settings = {.seed = 1, .handler = handler};
    sgm_trainer *trainer = sgm__trainer_create("wide", &settings);
    CHECK_OK(sgm_trainer_set_network(trainer, "input(300) + dense(2, name=d); lora(2, on=d)"));
    sgm_tensor *b = wave(2, 2, 0, 1, SGM_FLOAT32);
    CHECK_OK(sgm_trainer_set(trainer, "d.weights_lora_b", b));
    sgm_tensor_free(b);
    sgm_shape shape = sgm_shape_of(1, 300);
    sgm_tensor *inputs = sgm_tensor_create(SGM_FLOAT32, &shape);
    for (int64_t i = 0; i < 300; i++)
        sgm_tensor_set(inputs, (const int64_t[]){0, i}, sin((double)i));
    sgm_tensor *before = sgm_trainer_predict(trainer, inputs, NULL);
    CHECK_OK(sgm_trainer_merge(trainer));
    sgm_tensor *after = sgm_trainer_predict(trainer, inputs, NULL);
    check_near_tensors(before, after, 1e-5);
    sgm_tensor_free(inputs);
    sgm_tensor_free(before);
    sgm_tensor_free(after);
    sgm__trainer_free(trainer);
    sgm_handler_free(handler);
}

static void check_same_learnt(sgm_trainer *one, sgm_trainer *other)
{
    static const char *const names[] = {"2-dense.weights_lora_a", "3-dense.weights_lora_b", "3-dense.biases",
                                        "average.2-dense.weights_lora_b"};
    for (size_t i = 0; i < 4; i++) {
        sgm_tensor *a = sgm_trainer_get(one, names[i]), *b = sgm_trainer_get(other, names[i]);
        check_near_tensors(a, b, 0);
        sgm_tensor_free(a);
        sgm_tensor_free(b);
    }
}

TEST(a_resume_is_exact)
{
    char folder[] = "/tmp/sigma-test-XXXXXX", command[64];
    CHECK(mkdtemp(folder) != NULL);
    wave_trainer whole = adapted("cpu", SGM_FLOAT32), part = adapted("cpu", SGM_FLOAT32);
    CHECK_OK(sgm_trainer_run(whole.trainer, .epochs = 3));
    CHECK_OK(sgm_trainer_run(part.trainer, .epochs = 3, .iterations = 5, .folder = folder));
    free_wave_trainer(part);
    part = adapted("cpu", SGM_FLOAT32);
    CHECK_OK(sgm_trainer_run(part.trainer, .epochs = 3, .folder = folder, .resume = true));
    check_same_learnt(whole.trainer, part.trainer);
    free_wave_trainer(whole);
    free_wave_trainer(part);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    CHECK_INT(system(command), 0);
}

/* What is trained and all that is needed to go on, without what is frozen, which the next trainer has. */
TEST(a_file_without_what_is_frozen)
{
    char path[] = "/tmp/sigma-test-XXXXXX";
    CHECK(mkstemp(path) >= 0);
    wave_trainer whole = adapted("cpu", SGM_FLOAT32), part = adapted("cpu", SGM_FLOAT32);
    CHECK_OK(sgm_trainer_run(whole.trainer, .epochs = 3));
    CHECK_OK(sgm_trainer_run(part.trainer, .iterations = 5));
    CHECK_OK(sgm_trainer_save_parts(part.trainer, path, .trained = true));
    free_wave_trainer(part);
    sgm_bundle *bundle = sgm_bundle_load(path);
    CHECK(sgm_bundle_has(bundle, "2-dense.weights_lora_a"));
    CHECK(sgm_bundle_has(bundle, "optimiser.accumulated.3-dense.biases"));
    CHECK(!sgm_bundle_has(bundle, "2-dense.weights") && !sgm_bundle_has(bundle, "1-dense.biases"));
    sgm_bundle_free(bundle);
    part = adapted("cpu", SGM_FLOAT32);
    CHECK_OK(sgm_trainer_load_parts(part.trainer, path, .trained = true));
    CHECK_OK(sgm_trainer_run(part.trainer, .epochs = 3));
    check_same_learnt(whole.trainer, part.trainer);
    CHECK_ERROR(sgm_trainer_load(part.trainer, path), "'1-dense.weights' is missing");
    free_wave_trainer(whole);
    free_wave_trainer(part);
    remove(path);
}

/* Parameters of a run without adapters fit, and the adapters begin anew; a whole checkpoint of one does not.
 */
TEST(parameters_of_a_network_without_adapters)
{
    char path[] = "/tmp/sigma-test-XXXXXX";
    CHECK(mkstemp(path) >= 0);
    wave_trainer whole = make_wave_trainer((wave_options){0}), made = adapted("reference", SGM_FLOAT32);
    CHECK_OK(sgm_trainer_save(whole.trainer, path));
    CHECK_OK(sgm_trainer_load_parts(made.trainer, path, .parts = SGM_PART_PARAMETERS));
    sgm_tensor *a = sgm_trainer_get(whole.trainer, "2-dense.weights");
    sgm_tensor *b = sgm_trainer_get(made.trainer, "2-dense.weights");
    check_near_tensors(a, b, 0);
    CHECK_ERROR(sgm_trainer_load(made.trainer, path), "it is of the network ");
    sgm_tensor_free(a);
    sgm_tensor_free(b);
    free_wave_trainer(whole);
    free_wave_trainer(made);
    remove(path);
}

/* Two workers, each with half of a minibatch, learn what one does with all of it. */
TEST(workers_train_adapters)
{
    wave_trainer made[2];
    sgm_tensor *learnt[2];
    for (int i = 0; i < 2; i++) {
        made[i] = make_wave_trainer((wave_options){.precision = SGM_FLOAT64, .seed = 5});
        CHECK_OK(sgm_trainer_adapt(made[i].trainer, sgm_lora(.rank = 2)));
        CHECK_OK(sgm_trainer_freeze(made[i].trainer, "3-dense.weights_lora_*"));
        if (i == 1)
            CHECK_OK(sgm_trainer_set_operator(made[i].trainer, sgm_gradient_operator(.workers = 2)));
        CHECK_OK(sgm_trainer_run(made[i].trainer, .epochs = 2));
        sgm_tensor *frozen = sgm_trainer_get(made[i].trainer, "3-dense.weights_lora_b");
        CHECK_NEAR(sgm_tensor_get(frozen, (const int64_t[]){0, 0}), 0, 0);
        sgm_tensor_free(frozen);
        CHECK_OK(sgm_trainer_unfreeze(made[i].trainer, "3-dense.weights_lora_*"));
        CHECK_OK(sgm_trainer_merge(made[i].trainer));
        CHECK_OK(sgm_trainer_run(made[i].trainer, .epochs = 3));
        learnt[i] = sgm_trainer_get(made[i].trainer, "2-dense.weights");
        free_wave_trainer(made[i]);
    }
    check_near_tensors(learnt[0], learnt[1], 1e-12);
    sgm_tensor_free(learnt[0]);
    sgm_tensor_free(learnt[1]);
}

TEST(mistakes_with_adapters)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_ERROR(sgm_trainer_merge(made.trainer), "its network has no adapters to merge");
    free_wave_trainer(made);
    made = make_wave_trainer((wave_options){0});
    CHECK_ERROR(sgm_trainer_adapt(made.trainer, sgm_layer_parse("lora")), "lora needs");
    free_wave_trainer(made);
    made = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_adapt(made.trainer, sgm_lora(.rank = 2)));
    CHECK_OK(sgm_trainer_freeze(made.trainer, "*.*_lora_*"));
    CHECK_ERROR(sgm_trainer_run(made.trainer, .epochs = 1),
                "freezing '*.*_lora_*': nothing is left to train");
    free_wave_trainer(made);
}
