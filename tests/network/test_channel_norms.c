/* batch_norm and group_norm: PyTorch's values, gradients and running statistics (channel_norms_data.py). */
#include "bench.h"
#include "channel_norms_data.h"

#define EXAMPLES 3
#define ELEMENTS (EXAMPLES * 4 * 2 * 3)

/* The same formula as in channel_norms_data.py. */
static sgm_tensor *numbers(const sgm_shape *shape, int64_t which, bool variances)
{
    double values[ELEMENTS];
    int64_t count = sgm_shape_elements(shape);
    CHECK(count <= ELEMENTS);
    for (int64_t i = 0; i < count; i++) {
        values[i] = (double)((i * 7919 + which * 104729 + 13) % 2003) / 1000 - 1;
        values[i] = variances ? fabs(values[i]) + 0.5 : values[i];
    }
    sgm_tensor *tensor = sgm_tensor_create(SGM_FLOAT64, shape);
    CHECK_OK(sgm_tensor_write(tensor, values, (size_t)count));
    return tensor;
}

static const sgm_shape channels = {.rank = 1, .dims = {4}}, image = {.rank = 4, .dims = {EXAMPLES, 4, 2, 3}};

static void set_state(bench *r, const char *name, int64_t which, bool variances)
{
    sgm_tensor *tensor = numbers(&channels, which, variances);
    CHECK_OK(sgm_session_set(r->session, name, tensor));
    sgm_tensor_free(tensor);
}

/* The network recorded, with the gradients of sum(y * weights) by the input, "x", and both parameters. */
static void record(bench *r, const char *text, bool training)
{
    sgm_network_free(r->network);
    r->network = sgm_network_parse(text);
    CHECK_OK(r->network);
    sgm_graph_clear(r->graph);
    const sgm_recording_options options = {
        .struct_size = sizeof options, .batch = EXAMPLES, .dtype = SGM_FLOAT64, .training = training};
    CHECK_OK(sgm_network_record(r->network, r->graph, &options, &r->recording));
    sgm_value y = r->recording.outputs[0].value, values[3] = {r->recording.inputs[0].value}, gradients[3];
    sgm_tensor *weights = numbers(&image, 9, false);
    sgm_value cost = sgm_sum(r->graph, sgm_multiply(r->graph, y, sgm_constant(r->graph, weights)));
    sgm_tensor_free(weights);
    for (size_t i = 0, k = 1; i < r->recording.parameter_count; i++)
        if (r->recording.parameters[i].trainable)
            values[k++] = r->recording.parameters[i].value;
    CHECK_OK(sgm_gradients(r->graph, cost, values, 3, gradients));
    const char *const names[] = {"x", "gains", "biases"};
    sgm_graph_add_output(r->graph, "y", y);
    for (int i = 0; i < 3; i++)
        sgm_graph_add_output(r->graph, names[i], gradients[i]);
    r->program = sgm_session_prepare(r->session, r->graph);
    CHECK_OK(r->program);
}

static bench start(const char *text, const char *handler)
{
    bench r = {.graph = sgm_graph_create(), .handler = sgm_handler_create_with(handler, NULL)};
    r.session = sgm_session_create(r.handler);
    set_state(&r, "n.gains", 2, false);
    set_state(&r, "n.biases", 3, false);
    set_state(&r, "n.means", 4, false);
    set_state(&r, "n.variances", 5, true);
    record(&r, text, true);
    return r;
}

static void step(bench *r, int64_t which)
{
    sgm_tensor *x = numbers(&image, which, false);
    CHECK_OK(sgm_session_feed(r->session, r->program, "inputs", x));
    CHECK_OK(sgm_session_run(r->session, r->program));
    sgm_tensor_free(x);
}

static void check_values(const sgm_tensor *tensor, const char *name, const double *expected)
{
    double values[ELEMENTS];
    size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(tensor));
    CHECK_OK(sgm_tensor_read(tensor, values, count));
    for (size_t i = 0; i < count; i++)
        if (!test_near(values[i], expected[i], 1e-10 * (1 + fabs(expected[i]))))
            TEST_FAIL("element %zu of %s is %.17g, PyTorch has %.17g", i, name, values[i], expected[i]);
}

static void check_output(bench *r, const char *name, const double *expected)
{
    sgm_type type = sgm_program_output_type(r->program, name);
    sgm_tensor *tensor = sgm_tensor_create(type.dtype, &type.shape);
    CHECK_OK(sgm_session_read(r->session, r->program, name, tensor));
    check_values(tensor, name, expected);
    sgm_tensor_free(tensor);
}

static void check_state(bench *r, const char *name, const double *expected)
{
    sgm_tensor *tensor = sgm_session_get(r->session, name);
    CHECK_OK(tensor);
    check_values(tensor, name, expected);
    sgm_tensor_free(tensor);
}

static void check_batch_norm(const char *handler)
{
    bench r = start("input(4, 2, 3) + batch_norm(name=n)", handler);
    step(&r, 0);
    step(&r, 1);
    check_output(&r, "y", trained);
    check_output(&r, "x", trained_x);
    check_output(&r, "gains", trained_gains);
    check_output(&r, "biases", trained_biases);
    check_state(&r, "n.means", trained_means);
    check_state(&r, "n.variances", trained_variances);
    record(&r, "input(4, 2, 3) + batch_norm(name=n)", false);
    step(&r, 1);
    check_output(&r, "y", validated);
    check_state(&r, "n.means", trained_means);
    stop(&r);
}

TEST(batches_are_normalised_as_pytorch_does_it)
{
    check_batch_norm("reference");
    check_batch_norm("cpu");
}

TEST(groups_are_normalised_as_pytorch_does_it)
{
    bench r = start("input(4, 2, 3) + group_norm(2, name=n)", "cpu");
    step(&r, 1);
    check_output(&r, "y", grouped);
    stop(&r);
}

static void check_refused(const char *text, int64_t batch, const char *message)
{
    sgm_network *network = sgm_network_parse(text);
    CHECK_OK(network);
    sgm_graph *graph = sgm_graph_create();
    sgm_recording recording;
    const sgm_recording_options options = {
        .struct_size = sizeof options, .batch = batch, .dtype = SGM_FLOAT32, .training = true};
    CHECK_ERROR(sgm_network_record(network, graph, &options, &recording), message);
    sgm_graph_free(graph);
    sgm_network_free(network);
}

TEST(what_has_no_variance_or_no_such_groups_is_refused)
{
    check_refused("input(4) + batch_norm", 1, "take minibatches of more than 1 example");
    check_refused("input(4, 3) + group_norm(3)", 2, "3 groups do not divide the 4 channels evenly");
    check_refused("input(4) + group_norm(4)", 2, "group_norm: a group of one number has no variance");
    check_refused("input(4, 1, 1) + group_norm(4)", 1, "group_norm: a group of one number has no variance");
}

/* --- second derivatives --- */

/* sum(weights y^2), whose gradient is taken, and the gradient of that one's sum over directions. */
static void record_second(bench *r)
{
    sgm_graph_clear(r->graph);
    const sgm_recording_options options = {
        .struct_size = sizeof options, .batch = EXAMPLES, .dtype = SGM_FLOAT64, .training = true};
    CHECK_OK(sgm_network_record(r->network, r->graph, &options, &r->recording));
    sgm_graph *g = r->graph;
    sgm_value y = r->recording.outputs[0].value, x = r->recording.inputs[0].value, first, second;
    sgm_tensor *weights = numbers(&image, 9, false), *directions = numbers(&image, 5, true);
    sgm_value cost = sgm_sum(g, sgm_multiply(g, sgm_multiply(g, y, y), sgm_constant(g, weights)));
    CHECK_OK(sgm_gradients(g, cost, &x, 1, &first));
    sgm_value slope = sgm_sum(g, sgm_multiply(g, first, sgm_constant(g, directions)));
    CHECK_OK(sgm_gradients(g, slope, &x, 1, &second));
    sgm_graph_add_output(g, "slope", slope);
    sgm_graph_add_output(g, "second", second);
    sgm_tensor_free(weights);
    sgm_tensor_free(directions);
    r->program = sgm_session_prepare(r->session, g);
    CHECK_OK(r->program);
}

/* Runs on `x` and reads an output of `count` numbers. */
static void run_on(bench *r, const double *x, const char *name, double *values, size_t count)
{
    sgm_tensor *input = sgm_tensor_create(SGM_FLOAT64, &image);
    CHECK_OK(sgm_tensor_write(input, x, ELEMENTS));
    CHECK_OK(sgm_session_feed(r->session, r->program, "inputs", input));
    CHECK_OK(sgm_session_run(r->session, r->program));
    sgm_tensor_free(input);
    sgm_type type = sgm_program_output_type(r->program, name);
    sgm_tensor *output = sgm_tensor_create(type.dtype, &type.shape);
    CHECK_OK(sgm_session_read(r->session, r->program, name, output));
    CHECK_OK(sgm_tensor_read(output, values, count));
    sgm_tensor_free(output);
}

TEST(second_derivatives_of_batch_norm_are_those_of_differences)
{
    bench r = start("input(4, 2, 3) + batch_norm(name=n)", "cpu");
    record_second(&r);
    double x[ELEMENTS], second[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++)
        x[i] = (double)((i * 7919 + 13) % 2003) / 1000 - 1;
    run_on(&r, x, "second", second, ELEMENTS);
    for (int i = 0; i < ELEMENTS; i += 5) {
        const double step = 1e-5, middle = x[i];
        double up, down;
        x[i] = middle + step;
        run_on(&r, x, "slope", &up, 1);
        x[i] = middle - step;
        run_on(&r, x, "slope", &down, 1);
        x[i] = middle;
        CHECK_NEAR(second[i], (up - down) / (2 * step), 1e-7 * (1 + fabs(second[i])));
    }
    stop(&r);
}
