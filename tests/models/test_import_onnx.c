/* Files of ONNX as networks: what PyTorch computes with the same models (onnx_models.py), losses of a
 * training on from there, and what is refused. */
#include "models/folders.h"
#include "models/losses.h"
#include "test.h"

#include <math.h>
#include <sigma/models.h>
#include <sigma/sigma.h>

#define FOLDER "tests/models/onnx"
#define STEPS 10
#define BATCH 4

static void skip_without_onnx(void)
{
    sgm_onnx_free(sgm_onnx_parse("", 0, NULL));
    if (sgm_last_status() == SGM_ERROR_UNSUPPORTED)
        SKIP("built without ONNX");
}

static sgm_bundle *load_expected(void)
{
    sgm_bundle *expected = sgm_bundle_load(FOLDER "/expected.safetensors");
    CHECK_OK(expected);
    return expected;
}

static sgm_tensor *part_of(const sgm_bundle *expected, const char *name, const char *what)
{
    char key[100];
    snprintf(key, sizeof key, "%s.%s", name, what);
    sgm_tensor *tensor = sgm_bundle_get(expected, key);
    CHECK_OK(tensor);
    return tensor;
}

static void compare_outputs(const sgm_bundle *expected, const char *name)
{
    char path[200];
    snprintf(path, sizeof path, FOLDER "/%s.onnx", name);
    sgm_env *env = sgm_env_create("onnx");
    sgm_model *model = sgm_model_import(env, path);
    CHECK_OK(model);
    sgm_tensor *outputs = sgm_model_predict(model, part_of(expected, name, "inputs"));
    sgm_tensor *wanted = part_of(expected, name, "outputs");
    CHECK_OK(outputs);
    size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(wanted));
    CHECK_INT(sgm_shape_elements(sgm_tensor_shape(outputs)), count);
    double *a = calloc(2 * count, sizeof *a), *b = a + count;
    CHECK_OK(sgm_tensor_read(outputs, a, count));
    CHECK_OK(sgm_tensor_read(wanted, b, count));
    for (size_t i = 0; i < count; i++)
        if (!test_near(a[i], b[i], 1e-5))
            TEST_FAIL("%s: output %zu is %.9g, expected %.9g", name, i, a[i], b[i]);
    free(a);
    sgm_tensor_free(outputs);
    sgm_env_free(env);
}

TEST(networks_give_what_the_models_gave)
{
    skip_without_onnx();
    sgm_bundle *expected = load_expected();
    static const char *const names[] = {"residual",    "mobile",     "decoder", "signal", "joined",
                                        "activations", "reductions", "tokens",  "means"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        compare_outputs(expected, names[i]);
    sgm_bundle_free(expected);
}

TEST(layers_have_the_names_of_their_tensors)
{
    skip_without_onnx();
    sgm_pretrained *p = sgm_pretrained_open(FOLDER "/joined.onnx");
    CHECK_OK(p);
    CHECK_STR(sgm_pretrained_network(p),
              "x1 = input(5, 4); x2 = x1 + dense(6, time_distributed, name=first); concatenate(x2 + "
              "activation(gelu), x1 + dense(3, time_distributed, no_bias, name=second) + activation(tanh)) + "
              "layer_norm(1e-05, name=norm) + dense(2, time_distributed, name=last) + permute(2, 1) + "
              "reshape(2, 5) + global_average_pooling");
    CHECK_INT(sgm_pretrained_describe(p)->parameters, 30 + 12 + 18 + 20);
    CHECK_STR(sgm_pretrained_describe(p)->architecture, "onnx");
    CHECK_STR(sgm_pretrained_describe(p)->task, "predict");
    sgm_pretrained_free(p);
    p = sgm_pretrained_open(FOLDER "/signal.onnx");
    CHECK_OK(p);
    CHECK_STR(sgm_pretrained_describe(p)->task, "classify");
    sgm_pretrained_free(p);
    p = sgm_pretrained_open(FOLDER "/mobile.onnx");
    CHECK_OK(p);
    CHECK_INT(sgm_pretrained_describe(p)->parameters, 520);
    CHECK_INT(sgm_pretrained_describe(p)->untrained, 8 + 8); /* means and variances of a batch norm */
    sgm_pretrained_free(p);
}

/* --- training on --- */

/* Its batch norms take part: they use the minibatch while training. */
TEST(a_training_goes_on_as_in_pytorch)
{
    skip_without_onnx();
    static const char *const fields[] = {"inputs", "targets"};
    sgm_bundle *expected = load_expected();
    sgm_env *env = sgm_env_create("onnx");
    sgm_model *model = sgm_model_import(env, FOLDER "/mobile.onnx", .task = "classify");
    CHECK_OK(model);
    sgm_tensor *parts[] = {part_of(expected, "mobile", "batches"), part_of(expected, "mobile", "targets")};
    sgm_dataset *data = sgm_dataset_create_from("batches", fields, parts, 2);
    sgm_trainer *trainer = sgm_model_trainer(model);
    compare_losses_of("mobile", trainer, data, BATCH, 1e-2,
                      sgm_tensor_const_data(part_of(expected, "mobile", "losses")), STEPS);
    sgm_dataset_free(data);
    sgm_env_free(env);
    sgm_bundle_free(expected);
}

/* --- what is refused --- */

/* A copy of a model with other bytes in the place of some. */
static void write_changed(const char *name, const void *from, const void *to, size_t length)
{
    size_t size;
    char *bytes = read_file(FOLDER, name, &size);
    char *at = memmem(bytes, size, from, length);
    CHECK(at != NULL);
    memcpy(at, to, length);
    write_file(".", "changed.onnx", bytes, size);
    free(bytes);
}

TEST(a_node_that_is_no_layer_is_named)
{
    skip_without_onnx();
    write_changed("joined.onnx", "\x04Tanh", "\x04Sinh", 5);
    CHECK(sgm_pretrained_open("changed.onnx") == NULL);
    CHECK(strstr(sgm_last_error(), "'changed.onnx': node ") != NULL);
    CHECK(strstr(sgm_last_error(),
                 "'/Tanh' (Sinh): no layer does what it does; 'sigma predict' runs the model") != NULL);
    write_changed("joined.onnx",
                  "\x03"
                  "Erf",
                  "\x03"
                  "Exp",
                  4);
    CHECK(sgm_pretrained_open("changed.onnx") == NULL);
    CHECK(strstr(sgm_last_error(), "(Div): a division that is not the beginning of gelu") != NULL);
    unlink("changed.onnx");
}

/* Also where a node before it is no layer, as the one here that computes the matrix. */
TEST(a_product_of_computed_values_is_named_as_such)
{
    skip_without_onnx();
    write_changed("reductions.onnx", "matrix\x22\x08Identity", "matrix\x22\x08Softsign", 16);
    CHECK(sgm_pretrained_open("changed.onnx") == NULL);
    CHECK(strstr(sgm_last_error(),
                 "'v6' (MatMul): attention, or another product of two values that are "
                 "computed, becomes no layer; 'sigma import' reads a transformer's folder") != NULL);
    unlink("changed.onnx");
}

/* Results that are no numbers are equal to none. */
TEST(a_network_that_gives_something_else_is_refused)
{
    skip_without_onnx();
    sgm_onnx *model = sgm_onnx_load(FOLDER "/decoder.onnx");
    CHECK_OK(model);
    sgm_tensor *biases = sgm_onnx_constant(model, "0.bias");
    CHECK_OK(biases);
    const float nan[] = {NAN, NAN, NAN, NAN};
    write_changed("decoder.onnx", sgm_tensor_const_data(biases), nan, sizeof nan);
    sgm_tensor_free(biases);
    sgm_onnx_free(model);
    CHECK(sgm_pretrained_open("changed.onnx") == NULL);
    CHECK(strstr(sgm_last_error(), "'changed.onnx': as a network its output 0 is ") != NULL);
    CHECK(strstr(sgm_last_error(), "nan; 'sigma predict' runs the model as it is") != NULL);
    unlink("changed.onnx");
}

TEST(what_an_onnx_model_does_not_have_is_said)
{
    skip_without_onnx();
    CHECK(sgm_pretrained_open(FOLDER "/joined.onnx", .context = 5) == NULL);
    CHECK(strstr(sgm_last_error(), "no context can be chosen") != NULL);
    CHECK(sgm_pretrained_open(FOLDER "/joined.onnx", .task = "generate") == NULL);
    CHECK(strstr(sgm_last_error(), "for 'classify' or 'predict', not 'generate'") != NULL);
    CHECK(sgm_pretrained_open("missing.onnx") == NULL);
    CHECK(strstr(sgm_last_error(), "missing.onnx") != NULL);
    sgm_env *env = sgm_env_create("onnx");
    sgm_pretrained *p = sgm_pretrained_open(FOLDER "/joined.onnx");
    sgm_trainer *trainer = sgm_trainer_create(env, "other");
    CHECK_OK(sgm_trainer_set_network(trainer, "input(5, 4) + dense(3) + mean_squared"));
    CHECK_OK(sgm_trainer_prepare(trainer));
    CHECK_ERROR(sgm_pretrained_load(p, trainer), "its parameter 'first.weights' is not there");
    CHECK_ERROR(sgm_pretrained_export(p, trainer, "folder"), "is an ONNX model, not a folder");
    sgm_pretrained_free(p);
    sgm_env_free(env);
}

/* --- walking through a model --- */

TEST(nodes_tell_what_they_are)
{
    skip_without_onnx();
    sgm_onnx *model = sgm_onnx_load(FOLDER "/decoder.onnx");
    sgm_onnx_node_info info;
    sgm_onnx_attribute attribute;
    CHECK_OK(model);
    CHECK(sgm_onnx_node_at(model, 1, &info) && !sgm_onnx_node_at(model, 4, &info));
    CHECK_STR(info.type, "LeakyRelu");
    CHECK_STR(info.domain, "");
    CHECK_INT(info.input_count, 1);
    CHECK_STR(sgm_onnx_node_input(model, 1, 0), sgm_onnx_node_output(model, 0, 0));
    CHECK(sgm_onnx_node_input(model, 1, 1) == NULL && sgm_onnx_node_output(model, 4, 0) == NULL);
    CHECK(sgm_onnx_node_attribute(model, 1, 0, &attribute) && attribute.integers == NULL &&
          attribute.count == 1);
    CHECK_STR(attribute.name, "alpha");
    CHECK_NEAR(attribute.numbers[0], 0.01, 1e-7);
    bool found = false;
    for (size_t i = 0; sgm_onnx_node_attribute(model, 0, i, &attribute); i++)
        if (strcmp(attribute.name, "strides") == 0) {
            CHECK(attribute.count == 2 && attribute.integers[0] == 2 && attribute.integers[1] == 2);
            found = true;
        }
    CHECK(found);
    CHECK(sgm_onnx_constant(model, "y") == NULL && sgm_onnx_constant(NULL, "0.bias") == NULL);
    sgm_onnx_free(model);
}
