/* Networks as C: what the exported file computes is what the library computes. */
#include "export_c_test.h"

typedef int (*predict_function)(const float *inputs, float *outputs);
typedef int (*train_function)(const float *inputs, const float *targets, float rate, float *loss);
typedef int64_t *(*count_function)(int index, const char **name);
typedef float *(*state_function)(int index, const char **name, long *count);

static void check_equal(const char *what, const float *values, const sgm_tensor *expected, double tolerance)
{
    int64_t count = sgm_shape_elements(sgm_tensor_shape(expected));
    double *numbers = malloc((size_t)count * sizeof *numbers);
    CHECK_OK(sgm_tensor_read(expected, numbers, (size_t)count));
    for (int64_t i = 0; i < count; i++)
        if (!(fabs((double)values[i] - numbers[i]) <= tolerance * (1 + fabs(numbers[i]))))
            TEST_FAIL("%s, element %lld: the file has %.9g, the library %.9g", what, (long long)i,
                      (double)values[i], numbers[i]);
    free(numbers);
}

/* The first minibatch, asked of both. */
static void check_predictions(exported *e, const export_case *c, double tolerance)
{
    predict_function predict;
    find_c(e->library, "net_predict", &predict);
    sgm_tensor *examples = sgm_tensor_slice(e->inputs, 0, 0, c->batch, 1);
    sgm_tensor *expected = sgm_trainer_predict(e->trainer, examples, NULL);
    CHECK(expected != NULL);
    float *outputs = malloc((size_t)sgm_shape_elements(sgm_tensor_shape(expected)) * sizeof(float));
    CHECK_INT(predict(sgm_tensor_const_data(e->inputs), outputs), 0);
    check_equal(c->network, outputs, expected, tolerance);
    free(outputs);
    sgm_tensor_free(expected);
    sgm_tensor_free(examples);
}

static void check_training(exported *e, const export_case *c, double tolerance)
{
    train_function step;
    state_function state;
    find_c(e->library, "net_train_step", &step);
    find_c(e->library, "net_state", &state);
    const float *inputs = sgm_tensor_const_data(e->inputs), *targets = sgm_tensor_const_data(e->targets);
    float loss = 0, *values;
    const char *name;
    long count;
    for (int i = 0; i < EXPORT_STEPS; i++)
        CHECK_INT(step(inputs + i * e->input_size, targets + i * e->target_size, (float)EXPORT_RATE, &loss),
                  0);
    CHECK(isfinite(loss));
    CHECK_OK(sgm_trainer_run(e->trainer, .iterations = EXPORT_STEPS));
    int index = 0;
    for (; (values = state(index, &name, &count)) != NULL; index++) {
        sgm_tensor *expected = sgm_trainer_get(e->trainer, name);
        if (expected == NULL)
            TEST_FAIL("%s", sgm_last_error());
        CHECK_INT(count, sgm_shape_elements(sgm_tensor_shape(expected)));
        check_equal(name, values, expected, tolerance);
        sgm_tensor_free(expected);
    }
    CHECK(index > 1);
    check_predictions(e, c, tolerance);
}

static void check(const export_case *c)
{
    exported e = export_start(c);
    CHECK_OK(sgm_trainer_export_c(e.trainer, e.path, .name = "net", .batch = c->batch, .train = c->batch));
    export_load(&e, c->fast ? "-O2" : "");
    check_predictions(&e, c, 1e-5);
    check_training(&e, c, 1e-5);
    export_end(&e);
}

static float take_steps(const exported *e, train_function step, int count)
{
    float loss = 0;
    for (int i = 0; i < count; i++)
        CHECK_INT(step(sgm_tensor_const_data(e->inputs), sgm_tensor_const_data(e->targets),
                       (float)EXPORT_RATE, &loss),
                  0);
    return loss;
}

/* Arrays and counts are the whole state: set again, the same steps follow, to the bit. */
TEST(a_device_that_starts_again_goes_on)
{
    const export_case dropped = {.network = "input(4) + dense(8, tanh) + dropout(0.5) + dense(3)"
                                            " + softmax_cross_entropy",
                                 .optimiser = "adam",
                                 .batch = 4};
    exported e = export_start(&dropped);
    CHECK_OK(sgm_trainer_export_c(e.trainer, e.path, .name = "net", .train = dropped.batch));
    export_load(&e, "");
    train_function step;
    state_function state;
    count_function counts;
    find_c(e.library, "net_train_step", &step);
    find_c(e.library, "net_state", &state);
    find_c(e.library, "net_count", &counts);
    take_steps(&e, step, 3);
    float kept[32][64], *values;
    int64_t kept_counts[8], *number;
    const char *name;
    long length;
    for (int i = 0; (values = state(i, &name, &length)) != NULL; i++)
        memcpy(kept[i], values, (size_t)length * sizeof *values);
    int count = 0;
    for (; (number = counts(count, &name)) != NULL; count++)
        kept_counts[count] = *number;
    CHECK_INT(count, 2);
    CHECK_INT(kept_counts[0], 3);
    float expected = take_steps(&e, step, 2);
    CHECK(take_steps(&e, step, 2) != expected);
    for (int i = 0; (values = state(i, &name, &length)) != NULL; i++)
        memcpy(values, kept[i], (size_t)length * sizeof *values);
    for (int i = 0; i < count; i++)
        *counts(i, &name) = kept_counts[i];
    CHECK(take_steps(&e, step, 2) == expected);
    export_end(&e);
}

/* Beside the weights: what the file's object has in memory that can be written to, and on no stack. */
TEST(digits_in_less_than_100_kilobytes)
{
    const export_case digits = {.network = "input(8, 8) + dense(256, relu) + dropout(0.4) + dense(10)"
                                           " + softmax_cross_entropy",
                                .batch = 1};
    exported e = export_start(&digits);
    CHECK_OK(sgm_trainer_export_c(e.trainer, e.path, .name = "net"));
    export_load(&e, "-O2");
    char object[80], command[256], line[128] = "";
    snprintf(object, sizeof object, "%s.o", e.path);
    compile_c(e.path, "-O2 -ffreestanding -nostdlib -c",
              object); /* for a place without an operating system */
    check_predictions(&e, &digits, 1e-5);
    snprintf(command, sizeof command, "size -A %s", object);
    FILE *sizes = popen(command, "r");
    CHECK(sizes != NULL);
    long written = 0, constant = 0, size;
    char field[64];
    while (fgets(line, sizeof line, sizes) != NULL)
        if (sscanf(line, "%63s %ld", field, &size) == 2) {
            written += strncmp(field, ".bss", 4) == 0 || strncmp(field, ".data", 5) == 0 ? size : 0;
            constant += strncmp(field, ".rodata", 7) == 0 ? size : 0;
        }
    CHECK_INT(pclose(sizes), 0);
    CHECK(constant >= 4 * (64 * 256 + 256 + 2560 + 10)); /* the weights are where nothing is written */
    CHECK(written > 0);
    CHECK(written < 100000);
    export_end(&e);
}

#define EXPORT_CHECK(...) check(&(export_case){__VA_ARGS__})

TEST(multi_layer_perceptron)
{
    EXPORT_CHECK(.network = "input(8, 8) + dense(32, relu) + dense(10) + softmax_cross_entropy", .batch = 3,
                 .fast = true);
    EXPORT_CHECK(.network = "input(8, 8) + dense(32, relu) + dense(10) + softmax_cross_entropy", .batch = 3,
                 .optimiser = "adam");
}

TEST(dropout_draws_the_same_numbers)
{
    EXPORT_CHECK(.network = "input(12) + dropout(0.2) + dense(16, tanh) + dropout(0.5) + dense(3)"
                            " + softmax_cross_entropy",
                 .batch = 5, .optimiser = "adam");
}

TEST(le_net)
{
    EXPORT_CHECK(.network =
                     "input(1, 14, 14) + convolution(6, 5, padding=2, activation=relu) + max_pooling(2)"
                     " + convolution(8, 3, activation=tanh) + average_pooling(2) + dense(20, relu)"
                     " + dense(10) + softmax_cross_entropy",
                 .batch = 2);
}

TEST(lstm)
{
    EXPORT_CHECK(.network = "input(6, 3) + lstm(5) + dense(4, time_distributed) + softmax_cross_entropy",
                 .batch = 3, .optimiser = "adam");
}

TEST(transformer)
{
    EXPORT_CHECK(.network =
                     "input(6) + embedding(9, 8) + positions + transformer(heads=2, causal) + layer_norm"
                     " + dense(9, time_distributed) + softmax_cross_entropy",
                 .batch = 2, .tokens = 9);
}

TEST(layers_of_all_kinds)
{
    EXPORT_CHECK(.network =
                     "input(2, 6, 6) + batch_norm + convolution(4, 3, groups=2, stride=2, padding=1)"
                     " + add(identity, convolution(4, 1)) + group_norm(2) + activation(gelu)"
                     " + transposed_convolution(3, 2, stride=2) + max_pooling(3, stride=2, padding=1)"
                     " + average_pooling(2, padding=1, exclude_padding) + flatten + dense(2) + mean_squared",
                 .batch = 3);
    EXPORT_CHECK(.network =
                     "input(5, 4) + gru(6, bidirectional) + attention(heads=3) + rms_norm + rnn(3, last)"
                     " + dense(4, silu) + dense(1) + binary_cross_entropy",
                 .batch = 2);
    EXPORT_CHECK(.network = "input(6, 4) + concatenate(dense(3, sigmoid, time_distributed), dense(3, elu, "
                            "time_distributed))"
                            " + layer_norm + swiglu + dropout(0.3) + dense(6, softplus)"
                            " + dense(3) + huber",
                 .batch = 4, .optimiser = "adagrad");
    EXPORT_CHECK(.network = "input(4) + dense(5, tanh) + dense(2) + root_mean_squared", .batch = 3);
    EXPORT_CHECK(.network =
                     "input(3, 4) + attention(heads=2, key_heads=1, rotary) + transformer(heads=2, rotary)"
                     " + dense(2) + mean_squared",
                 .batch = 2, .optimiser = "muon");
    EXPORT_CHECK(.network =
                     "input(12) + dense(24, tanh) + reshape(4, 2, 3) + permute(3, 1, 2) + convolution(2, 2)"
                     " + flatten + dense(2) + mean_squared",
                 .batch = 3);
    EXPORT_CHECK(.network = "input(2, 4, 4) + upsampling(2) + adaptive_average_pooling(3) + instance_norm"
                            " + adaptive_max_pooling(2) + flatten + dense(4, hard_silu) + dense(4, mish)"
                            " + dense(4, erf) + dense(3, cos) + kl_divergence",
                 .batch = 2);
    EXPORT_CHECK(.network = "input(2, 9) + convolution_1d(4, 3, dilation=2, same) + max_pooling_1d(2)"
                            " + transposed_convolution_1d(2, 3, stride=2) + global_max_pooling + elementwise"
                            " + dense(4, softsign) + dense(3, atan) + hinge",
                 .batch = 3, .optimiser = "lamb");
}
