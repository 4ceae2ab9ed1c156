/* Adapters over matrices that are kept as 8 bits: against the same training with the floats that the codes
 * stand for, in double. */
#include "waves.h"

#include <stdlib.h>

#define PLAIN "lora(3, alpha=6, dropout=0.1, on=\"2-dense.weights 3-dense\", train=\"3-dense.biases\")"
#define CODED                                                                                                \
    "lora(3, alpha=6, dropout=0.1, on=\"2-dense.weights 3-dense\", train=\"3-dense.biases\", quantize=int8)"

static wave_trainer adapted(const char *handler, sgm_dtype precision, const char *adapters)
{
    wave_trainer made = make_wave_trainer(
        (wave_options){.handler = handler,
                       .precision = precision,
                       .seed = 5,
                       .optimiser = sgm_adamw(.learning_rate = 0.02, .average = 0.5, .accumulate = 2)});
    CHECK_OK(sgm_trainer_adapt(made.trainer, sgm_layer_parse(adapters)));
    set_golden_parameters(made.trainer, precision);
    return made;
}

static bool has_state(const wave_trainer *made, const char *name)
{
    return sgm_session_has(made->trainer->learner.session, name);
}

/* Codes and scales in the place of the matrix, which are not trained; each number is off by at most half a
 * step. */
TEST(codes_are_kept_in_the_place_of_floats)
{
    wave_trainer made = adapted("cpu", SGM_FLOAT32, CODED);
    sgm_type type;
    CHECK_OK(sgm_session_state_type(made.trainer->learner.session, "2-dense.weights_codes", &type));
    CHECK_INT(type.dtype, SGM_UINT8);
    CHECK_INT(type.shape.dims[0], 8);
    CHECK(has_state(&made, "2-dense.weights_scales") && !has_state(&made, "2-dense.weights"));
    CHECK(has_state(&made, "1-dense.weights") && !has_state(&made, "1-dense.weights_codes"));
    sgm_tensor *given = wave(8, 5, 1, 0.5, SGM_FLOAT32);
    sgm_tensor *kept = sgm_trainer_get(made.trainer, "2-dense.weights");
    sgm_tensor *scales = sgm_trainer_get(made.trainer, "2-dense.weights_scales");
    for (int64_t j = 0; j < 5; j++) {
        double largest = 0, scale = sgm_tensor_get(scales, &j);
        for (int64_t i = 0; i < 8; i++) {
            const int64_t at[] = {i, j};
            largest = fmax(largest, fabs(sgm_tensor_get(given, at)));
            CHECK_NEAR(sgm_tensor_get(kept, at), sgm_tensor_get(given, at), 0.5 * scale * (1 + 1e-5));
        }
        CHECK_NEAR(scale, largest / 127, 1e-9);
    }
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1));
    sgm_tensor *after = sgm_trainer_get(made.trainer, "2-dense.weights");
    check_near_tensors(kept, after, 0);
    CHECK(!has_state(&made, "optimiser.accumulated.2-dense.weights_codes"));
    CHECK(!has_state(&made, "average.2-dense.weights_scales"));
    sgm_tensor *tensors[] = {given, kept, scales, after};
    for (size_t i = 0; i < 4; i++)
        sgm_tensor_free(tensors[i]);
    free_wave_trainer(made);
}

/* The values that codes stand for, as those of a trainer without codes. */
static void give_dequantized(wave_trainer *from, wave_trainer *to)
{
    static const char *const names[] = {"2-dense.weights", "3-dense.weights"};
    for (size_t i = 0; i < 2; i++) {
        sgm_tensor *value = sgm_trainer_get(from->trainer, names[i]);
        CHECK_OK(sgm_trainer_set(to->trainer, names[i], value));
        sgm_tensor_free(value);
    }
}

static void check_same_learnt(sgm_trainer *one, sgm_trainer *other, double tolerance)
{
    static const char *const names[] = {"2-dense.weights_lora_a", "2-dense.weights_lora_b",
                                        "3-dense.weights_lora_a", "3-dense.weights_lora_b", "3-dense.biases"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        sgm_tensor *a = sgm_trainer_get(one, names[i]), *b = sgm_trainer_get(other, names[i]);
        check_near_tensors(a, b, tolerance);
        sgm_tensor_free(a);
        sgm_tensor_free(b);
    }
}

/* The adapters of 2-dense have gradients that went through the codes of 3-dense. */
static void check_training(const char *handler, sgm_dtype precision, double tolerance)
{
    wave_trainer coded = adapted(handler, precision, CODED), plain = adapted("reference", precision, PLAIN);
    give_dequantized(&coded, &plain);
    CHECK_OK(sgm_trainer_run(coded.trainer, .epochs = 4));
    CHECK_OK(sgm_trainer_run(plain.trainer, .epochs = 4));
    check_same_learnt(coded.trainer, plain.trainer, tolerance);
    free_wave_trainer(coded);
    free_wave_trainer(plain);
}

TEST(it_learns_what_the_dequantized_weights_would)
{
    check_training("reference", SGM_FLOAT64, 1e-12);
    check_training("cpu", SGM_FLOAT64, 1e-12);
    check_training("cpu", SGM_FLOAT32, 2e-4);
}

/* Matrices whose products are made for each step, and a layer that shares another one's. */
TEST(recurrent_and_shared_matrices)
{
    static const char *const network =
        "input(2, 3) + lstm(4, name=l) + dense(8, tanh, name=d) + dense(8, share=d) + dense(3) + "
        "softmax_cross_entropy";
    wave_trainer made[2];
    for (int i = 0; i < 2; i++) {
        made[i] = make_wave_trainer((wave_options){.network = network, .precision = SGM_FLOAT64, .seed = 5});
        CHECK_OK(sgm_trainer_adapt(made[i].trainer,
                                   sgm_lora(.rank = 2, .on = "l d", .quantize = i == 0 ? "int8" : NULL)));
        CHECK_OK(sgm_trainer_prepare(made[i].trainer));
    }
    CHECK(has_state(&made[0], "l.recurrent_codes") && has_state(&made[0], "d.weights_scales"));
    static const char *const names[] = {"l.weights", "l.recurrent", "d.weights"};
    for (size_t i = 0; i < 3; i++) {
        sgm_tensor *value = sgm_trainer_get(made[0].trainer, names[i]);
        CHECK_OK(sgm_trainer_set(made[1].trainer, names[i], value));
        sgm_tensor_free(value);
    }
    for (int i = 0; i < 2; i++)
        CHECK_OK(sgm_trainer_run(made[i].trainer, .epochs = 3));
    sgm_tensor *a = sgm_trainer_get(made[0].trainer, "l.recurrent_lora_b");
    sgm_tensor *b = sgm_trainer_get(made[1].trainer, "l.recurrent_lora_b");
    check_near_tensors(a, b, 1e-12);
    CHECK(fabs(sgm_tensor_get(a, (const int64_t[]){0, 0})) > 1e-6);
    sgm_tensor_free(a);
    sgm_tensor_free(b);
    free_wave_trainer(made[0]);
    free_wave_trainer(made[1]);
}

/* In whole checkpoints, and in files of what is trained alone, which have no codes. */
TEST(a_resume_is_exact)
{
    char folder[] = "/tmp/sigma-test-XXXXXX", path[] = "/tmp/sigma-test-XXXXXX", command[64];
    CHECK(mkdtemp(folder) != NULL);
    CHECK(mkstemp(path) >= 0);
    wave_trainer whole = adapted("cpu", SGM_FLOAT32, CODED), part = adapted("cpu", SGM_FLOAT32, CODED);
    CHECK_OK(sgm_trainer_run(whole.trainer, .epochs = 3));
    CHECK_OK(sgm_trainer_run(part.trainer, .epochs = 3, .iterations = 5, .folder = folder));
    CHECK_OK(sgm_trainer_save_parts(part.trainer, path, .trained = true));
    free_wave_trainer(part);
    part = adapted("cpu", SGM_FLOAT32, CODED);
    CHECK_OK(sgm_trainer_run(part.trainer, .epochs = 3, .folder = folder, .resume = true));
    check_same_learnt(whole.trainer, part.trainer, 0);
    free_wave_trainer(part);
    sgm_bundle *bundle = sgm_bundle_load(path);
    CHECK(sgm_bundle_has(bundle, "2-dense.weights_lora_a") &&
          !sgm_bundle_has(bundle, "2-dense.weights_codes"));
    CHECK(!sgm_bundle_has(bundle, "2-dense.weights_scales"));
    sgm_bundle_free(bundle);
    part = adapted("cpu", SGM_FLOAT32, CODED);
    CHECK_OK(sgm_trainer_load_parts(part.trainer, path, .trained = true));
    CHECK_OK(sgm_trainer_run(part.trainer, .epochs = 3));
    check_same_learnt(whole.trainer, part.trainer, 0);
    free_wave_trainer(whole);
    free_wave_trainer(part);
    remove(path);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    CHECK_INT(system(command), 0);
}

/* They are rounded as they are loaded, of any precision. */
TEST(parameters_of_floats_are_rounded)
{
    char path[] = "/tmp/sigma-test-XXXXXX";
    CHECK(mkstemp(path) >= 0);
    wave_trainer whole = make_wave_trainer((wave_options){.precision = SGM_FLOAT64, .seed = 9});
    wave_trainer made = adapted("cpu", SGM_FLOAT32, CODED);
    CHECK_OK(sgm_trainer_save(whole.trainer, path));
    CHECK_OK(sgm_trainer_load_parts(made.trainer, path, .parts = SGM_PART_PARAMETERS));
    sgm_tensor *a = sgm_trainer_get(whole.trainer, "2-dense.weights");
    sgm_tensor *b = sgm_trainer_get(made.trainer, "2-dense.weights");
    check_near_tensors(a, b, 0.005);
    CHECK(!has_state(&made, "2-dense.weights"));
    sgm_tensor_free(a);
    sgm_tensor_free(b);
    free_wave_trainer(whole);
    free_wave_trainer(made);
    remove(path);
}

/* The merged matrices are floats again. */
static void check_merge(const char *handler, sgm_dtype precision, double tolerance)
{
    wave_trainer made = adapted(handler, precision, CODED);
    CHECK_OK(sgm_trainer_set_optimiser(made.trainer, sgm_adamw(.learning_rate = 0.02)));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 3));
    sgm_tensor *inputs = wave(4, 6, 1, 1, precision);
    sgm_tensor *before = sgm_trainer_predict(made.trainer, inputs, NULL);
    CHECK_OK(sgm_trainer_merge(made.trainer));
    sgm_tensor *after = sgm_trainer_predict(made.trainer, inputs, NULL);
    check_near_tensors(before, after, tolerance);
    char *network = sgm_trainer_network(made.trainer);
    CHECK_STR(network, WAVE_NETWORK);
    CHECK(has_state(&made, "2-dense.weights") && !has_state(&made, "2-dense.weights_codes"));
    CHECK(!has_state(&made, "3-dense.weights_scales") && !has_state(&made, "3-dense.weights_lora_a"));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 4));
    sgm_string_free(network);
    sgm_tensor_free(inputs);
    sgm_tensor_free(before);
    sgm_tensor_free(after);
    free_wave_trainer(made);
}

TEST(merging_changes_no_prediction)
{
    check_merge("reference", SGM_FLOAT64, 1e-12);
    check_merge("cpu", SGM_FLOAT32, 1e-5);
}

/* Two workers, each with half of a minibatch, learn what one does with all of it. */
TEST(workers_train_them)
{
    wave_trainer made[2];
    for (int i = 0; i < 2; i++) {
        made[i] = make_wave_trainer((wave_options){.precision = SGM_FLOAT64, .seed = 5});
        CHECK_OK(sgm_trainer_adapt(made[i].trainer, sgm_layer_parse("lora(2, quantize=int8)")));
        if (i == 1)
            CHECK_OK(sgm_trainer_set_operator(made[i].trainer, sgm_gradient_operator(.workers = 2)));
        CHECK_OK(sgm_trainer_run(made[i].trainer, .epochs = 2));
    }
    sgm_tensor *a = sgm_trainer_get(made[0].trainer, "1-dense.weights_lora_b");
    sgm_tensor *b = sgm_trainer_get(made[1].trainer, "1-dense.weights_lora_b");
    check_near_tensors(a, b, 1e-12);
    sgm_tensor_free(a);
    sgm_tensor_free(b);
    free_wave_trainer(made[0]);
    free_wave_trainer(made[1]);
}

TEST(mistakes)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_ERROR(sgm_trainer_adapt(made.trainer, sgm_layer_parse("lora(2, quantize=int4)")),
                "lora: quantize is 'int4'; \"int8\" is the only way there is");
    free_wave_trainer(made);
    made = make_wave_trainer(
        (wave_options){.network = "input(6) + dense(6, name=d) + elementwise(share=d) + dense(3) + "
                                  "softmax_cross_entropy"});
    CHECK_OK(sgm_trainer_adapt(made.trainer, sgm_layer_parse("lora(2, on=d, quantize=int8)")));
    CHECK_ERROR(sgm_trainer_run(made.trainer, .epochs = 1),
                "share=d: 'd.weights' is kept as 8 bits, which this layer does not take");
    free_wave_trainer(made);
    made = adapted("cpu", SGM_FLOAT32, CODED);
    sgm_tensor *wrong = wave(5, 8, 0, 1, SGM_FLOAT32), *value = wave(8, 5, 0, 1, SGM_FLOAT32);
    CHECK_ERROR(sgm_trainer_set(made.trainer, "2-dense.weights", wrong),
                "'2-dense.weights' is float32 (8, 5)");
    sgm_tensor_set(value, (const int64_t[]){3, 2}, NAN);
    CHECK_ERROR(sgm_trainer_set(made.trainer, "2-dense.weights", value), "numbers that are not finite");
    sgm_tensor_free(wrong);
    sgm_tensor_free(value);
    free_wave_trainer(made);
}
