/* Networks as C: what a caller can choose, and what cannot be written. */
#include "export_c_test.h"

static const export_case small = {.network = "input(4) + dense(3, gelu) + dense(2) + softmax_cross_entropy",
                                  .batch = 2};

static char *text_of(const char *path)
{
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    char *text = calloc(1, 1 << 20);
    CHECK(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    return text;
}

/* Numbers of the first examples, as the library has them. */
static void expect(const exported *e, int64_t examples, double *numbers, size_t count)
{
    sgm_tensor *asked = sgm_tensor_slice(e->inputs, 0, 0, examples, 1);
    sgm_tensor *output = sgm_trainer_predict(e->trainer, asked, NULL);
    CHECK(output != NULL);
    CHECK_OK(sgm_tensor_read(output, numbers, count));
    sgm_tensor_free(output);
    sgm_tensor_free(asked);
}

static void check_doubles(exported *e, double tolerance)
{
    int (*predict)(const double *inputs, double *outputs);
    double inputs[8], outputs[4], expected[4];
    find_c(e->library, "net_predict", &predict);
    expect(e, 2, expected, 4);
    for (int i = 0; i < 8; i++)
        inputs[i] = (double)((const float *)sgm_tensor_const_data(e->inputs))[i];
    CHECK_INT(predict(inputs, outputs), 0);
    for (int i = 0; i < 4; i++)
        CHECK_NEAR(outputs[i], expected[i], tolerance);
}

TEST(double_in_place_of_float)
{
    exported e = export_start(&small);
    CHECK_OK(sgm_trainer_export_c(e.trainer, e.path, .name = "net", .batch = 2, .train = 2));
    export_load(&e, "-DNET_REAL=double");
    check_doubles(&e, 1e-6);
    export_end(&e);
}

TEST(networks_of_float64_are_exact)
{
    export_case wide = small;
    wide.precision = SGM_FLOAT64;
    exported e = export_start(&wide);
    CHECK_OK(sgm_trainer_export_c(e.trainer, e.path, .name = "net", .batch = 2));
    export_load(&e, "");
    check_doubles(&e, 1e-12);
    export_end(&e);
}

TEST(networks_of_bfloat16_are_written_in_float32)
{
    export_case mixed = small;
    mixed.precision = SGM_BFLOAT16;
    exported e = export_start(&mixed);
    int (*predict)(const float *inputs, float *outputs);
    float outputs[4];
    double expected[4];
    CHECK_OK(sgm_trainer_export_c(e.trainer, e.path, .name = "net", .batch = 2, .train = 2));
    export_load(&e, "");
    find_c(e.library, "net_predict", &predict);
    expect(&e, 2, expected, 4);
    CHECK_INT(predict(sgm_tensor_const_data(e.inputs), outputs), 0);
    for (int i = 0; i < 4; i++)
        CHECK_NEAR((double)outputs[i], expected[i], 0.02);
    export_end(&e);
}

TEST(a_row_that_is_none_is_told)
{
    exported e = export_start(&(export_case){
        .network = "input(3) + embedding(5, 4) + dense(2) + mean_squared", .batch = 1, .tokens = 5});
    int (*predict)(const float *inputs, float *outputs);
    float outputs[2] = {7, 7};
    CHECK_OK(sgm_trainer_export_c(e.trainer, e.path));
    export_load(&e, "");
    find_c(e.library, "model_predict", &predict);
    CHECK_INT(predict((float[]){0, 4, 1}, outputs), 0);
    outputs[0] = 7;
    CHECK_INT(predict((float[]){0, 5, 1}, outputs), 1);
    CHECK_NEAR((double)outputs[0], 7, 0);
    CHECK_INT(predict((float[]){0, -1, 1}, outputs), 1);
    export_end(&e);
}

static sgm_tensor *some(int64_t examples, int64_t size)
{
    return export_values((sgm_type){SGM_FLOAT32, sgm_shape_of(examples, size)}, examples, 0);
}

static void check_output(const exported *e, const sgm_block *block, const char *name, const float *values)
{
    sgm_tensor *expected = sgm_trainer_predict_block(e->trainer, block, name);
    CHECK(expected != NULL);
    const float *numbers = sgm_tensor_const_data(expected);
    for (int64_t i = 0; i < sgm_shape_elements(sgm_tensor_shape(expected)); i++)
        CHECK_NEAR((double)values[i], (double)numbers[i], 1e-5);
    sgm_tensor_free(expected);
}

/* Fields whose names are words of C, or variables of the file. */
TEST(several_inputs_and_outputs)
{
    static const char *const fields[] = {"double", "x", "targets"};
    exported e = {.path = "/tmp/sigma-export-XXXXXX", .inputs = some(2, 4), .targets = some(2, 2)};
    sgm_tensor *right = some(2, 3);
    int file = mkstemp(e.path);
    CHECK(file >= 0);
    close(file);
    e.env = sgm_env_create("export", .seed = 7);
    e.trainer = sgm_trainer_create(e.env, "t");
    CHECK_OK(sgm_trainer_set_network(e.trainer,
                                     "a = input(4, name=double) + dense(3, tanh); b = input(3, name=x) +"
                                     " dense(3, tanh); concatenate(a, b) + output(name=seen) + dense(2)"
                                     " + softmax_cross_entropy"));
    CHECK_OK(sgm_trainer_export_c(e.trainer, e.path, .name = "net", .batch = 2));
    export_load(&e, "");
    char *text = text_of(e.path);
    CHECK(strstr(text, "int net_predict(const NET_REAL *double_values, const NET_REAL *x_values, "
                       "NET_REAL *outputs_") != NULL);
    free(text);
    int (*predict)(const float *left, const float *right, float *outputs, float *seen);
    float outputs[4], seen[12];
    find_c(e.library, "net_predict", &predict);
    CHECK_INT(predict(sgm_tensor_const_data(e.inputs), sgm_tensor_const_data(right), outputs, seen), 0);
    sgm_dataset *data =
        sgm_dataset_create_from("random", fields, (sgm_tensor *[]){e.inputs, right, e.targets}, 3);
    sgm_iterator *batches = sgm_minibatches(data, .size = 2, .no_shuffle = true);
    const sgm_block *block;
    CHECK_OK(sgm_iterator_next(batches, &block));
    check_output(&e, block, NULL, outputs);
    check_output(&e, block, "seen", seen);
    sgm_iterator_free(batches);
    sgm_dataset_free(data);
    sgm_tensor_free(right);
    export_end(&e);
}

TEST(the_file_says_what_it_is)
{
    exported e = export_start(&small);
    CHECK_OK(sgm_trainer_export_c(e.trainer, e.path, .name = "net", .train = 2));
    char *text = text_of(e.path);
    CHECK(strstr(text, "input(4) + dense(3, gelu) + dense(2) + softmax_cross_entropy") != NULL);
    CHECK(strstr(text, "int net_predict(const NET_REAL *inputs, NET_REAL *outputs);") != NULL);
    CHECK(strstr(text, "#define NET_PREDICT_INPUTS 4 /* (1, 4) */") != NULL);
    CHECK(strstr(text, "#define NET_TRAIN_STEP_TARGETS 4 /* (2, 2) */") != NULL);
    CHECK(strstr(text,
                 "int net_train_step(const NET_REAL *inputs, const NET_REAL *targets, NET_REAL learning_rate,"
                 " NET_REAL *loss);") != NULL);
    CHECK(strstr(text, "/* 1-dense.weights (4, 3) */\nstatic NET_REAL net_1_dense_weights[12] = {") != NULL);
    CHECK(strstr(text, "/* 2-dense: matmul -> (1, 2) */") != NULL);
    free(text);
    CHECK_OK(sgm_trainer_export_c(e.trainer, e.path, .name = "net"));
    text = text_of(e.path);
    CHECK(strstr(text, "static const NET_REAL net_1_dense_weights[12] = {") != NULL);
    CHECK(strstr(text, "net_train_step") == NULL);
    free(text);
    export_end(&e);
}

TEST(a_trainer_goes_on_after_its_export)
{
    export_seed = 1;
    exported e = export_start(&small);
    export_seed = 1;
    exported other = export_start(&small);
    CHECK_OK(sgm_trainer_run(e.trainer, .iterations = 2));
    CHECK_OK(sgm_trainer_export_c(e.trainer, e.path, .train = 2));
    CHECK_OK(sgm_trainer_run(e.trainer, .iterations = 4));
    CHECK_OK(sgm_trainer_run(other.trainer, .iterations = 4));
    sgm_tensor *a = sgm_trainer_get(e.trainer, "1-dense.weights");
    sgm_tensor *b = sgm_trainer_get(other.trainer, "1-dense.weights");
    CHECK(a != NULL && b != NULL);
    CHECK(memcmp(sgm_tensor_const_data(a), sgm_tensor_const_data(b), 12 * sizeof(float)) == 0);
    sgm_tensor_free(a);
    sgm_tensor_free(b);
    export_end(&e);
    export_end(&other);
}

/* --- what cannot be --- */

static double cube(const double *inputs, const sgm_attributes *attributes)
{
    (void)attributes;
    return inputs[0] * inputs[0] * inputs[0];
}

static sgm_status same_type(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                            sgm_type *result)
{
    (void)count, (void)attributes;
    *result = inputs[0];
    return SGM_OK;
}

static const sgm_op cube_op = {.api = SGM_OP_API,
                               .flags = SGM_OP_ELEMENTWISE | SGM_OP_ACTIVATION,
                               .name = "cube_of_a_test",
                               .doc = "x * x * x",
                               .min_inputs = 1,
                               .max_inputs = 1,
                               .infer = same_type,
                               .scalar = cube};

TEST(mistakes_are_named)
{
    CHECK_OK(sgm_register_op(&cube_op));
    sgm_env *env = sgm_env_create("export");
    sgm_trainer *trainer = sgm_trainer_create(env, "t");
    CHECK_ERROR(sgm_trainer_export_c(trainer, "/tmp/never.c"), "no network");
    CHECK_OK(
        sgm_trainer_set_network(trainer, "input(4) + dense(3, cube_of_a_test) + dense(2) + mean_squared"));
    CHECK_ERROR(sgm_trainer_export_c(trainer, "/tmp/never.c"),
                "cube_of_a_test, layer 1-dense: it cannot be written as C");
    CHECK_ERROR(sgm_trainer_export_c(trainer, "/tmp/never.c", .train = 1), "no optimiser");
    CHECK_ERROR(sgm_trainer_export_c(trainer, "/tmp/never.c", .name = "2 nets"), "cannot begin names of C");
    CHECK_ERROR(sgm_trainer_export_c(trainer, "/tmp/never.c", .batch = -1), "numbers of examples, not -1");
    CHECK_ERROR(sgm_trainer_export_c(trainer, ""), "the path of a file");
    CHECK_ERROR(sgm_trainer_export_c(NULL, "/tmp/never.c"), "NULL");
    CHECK(access("/tmp/never.c", F_OK) != 0);
    CHECK_OK(sgm_trainer_status(trainer));
    trainer = sgm_trainer_create(env, "other");
    CHECK_OK(sgm_trainer_set_network(trainer, "input(4) + dense(2) + mean_squared"));
    CHECK_OK(sgm_trainer_set_optimiser(trainer, sgm_adam(.accumulate = 4)));
    CHECK_ERROR(sgm_trainer_export_c(trainer, "/tmp/never.c", .train = 1),
                "accumulates gradients of 4 minibatches");
    CHECK_OK(sgm_trainer_status(trainer));
    CHECK_ERROR(sgm_trainer_export_c(trainer, "/nowhere/model.c"), "/nowhere/model.c");
    sgm_env_free(env);
}
