/* Activations and reductions where numbers end: values and gradients at infinities and near float32's largest
 * number, as limits have them, on each handler that is here. */
#include "handlers/devices.h"
#include "test.h"

#include <math.h>
#include <sigma/sigma.h>

#define POINTS 9
#define LARGE 3e38
#define ANY 12345.0 /* not compared: there is no limit, or it is no number in PyTorch either */

static const double points[POINTS] = {-INFINITY, -LARGE, -1e20, -100, 0, 100, 1e20, LARGE, INFINITY};

typedef sgm_value (*record_function)(sgm_graph *graph, sgm_value x);

/* `values` and `gradients` of `function` at `x`, in float32. */
static void run(const char *name, record_function function, const double *x, int64_t count, double *values,
                int64_t results, double *gradients)
{
    sgm_handler *handler = sgm_handler_create(name, .threads = 1);
    CHECK_OK(handler);
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = sgm_graph_create();
    sgm_shape shape = sgm_shape_of(count);
    sgm_value input = sgm_input_value(graph, "x", SGM_FLOAT32, &shape), gradient;
    sgm_value y = function(graph, input);
    CHECK_OK(sgm_gradients(graph, sgm_sum(graph, y), &input, 1, &gradient));
    sgm_graph_add_output(graph, "y", y);
    sgm_graph_add_output(graph, "gradient", gradient);
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    sgm_tensor *fed = sgm_tensor_create(SGM_FLOAT32, &shape), *read = sgm_tensor_create(SGM_FLOAT32, &shape);
    sgm_type type = sgm_program_output_type(program, "y");
    sgm_tensor *got = sgm_tensor_create(SGM_FLOAT32, &type.shape);
    CHECK_OK(sgm_tensor_write(fed, x, (size_t)count));
    CHECK_OK(sgm_session_feed(session, program, "x", fed));
    CHECK_OK(sgm_session_run(session, program));
    CHECK_OK(sgm_session_read(session, program, "y", got));
    CHECK_OK(sgm_tensor_read(got, values, (size_t)results));
    CHECK_OK(sgm_session_read(session, program, "gradient", read));
    CHECK_OK(sgm_tensor_read(read, gradients, (size_t)count));
    sgm_tensor_free(fed);
    sgm_tensor_free(got);
    sgm_tensor_free(read);
    sgm_graph_free(graph);
    sgm_session_free(session);
    sgm_handler_free(handler);
}

/* The processor's, and an OpenCL device where one is here. */
static const char *const handlers[] = {"reference", "cpu", "opencl"};

static void compare(const char *handler, const char *function, const char *what, const double *x,
                    const double *got, const double *expected, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (expected[i] != ANY && !test_near(got[i], expected[i], 1e-6 * (1 + fabs(expected[i]))))
            TEST_FAIL("%s: the %s of %s at %g is %.9g, expected %.9g", handler, what, function, x[i], got[i],
                      expected[i]);
}

typedef struct extreme {
    const char *name;
    record_function function;
    double values[POINTS], gradients[POINTS];
} extreme;

#define FUNCTION(name) #name, sgm_##name
static const extreme extremes[] = {
    {FUNCTION(sigmoid), {0, 0, 0, 0, 0.5, 1, 1, 1, 1}, {0, 0, 0, 0, 0.25, 0, 0, 0, 0}},
    {FUNCTION(tanh), {-1, -1, -1, -1, 0, 1, 1, 1, 1}, {0, 0, 0, 0, 1, 0, 0, 0, 0}},
    {FUNCTION(softplus), {0, 0, 0, 0, 0.69314718, 100, 1e20, LARGE, INFINITY}, {0, 0, 0, 0, 0.5, 1, 1, 1, 1}},
    {FUNCTION(relu), {0, 0, 0, 0, 0, 100, 1e20, LARGE, INFINITY}, {0, 0, 0, 0, 0, 1, 1, 1, 1}},
    {FUNCTION(leaky_relu),
     {-INFINITY, -3e36, -1e18, -1, 0, 100, 1e20, LARGE, INFINITY},
     {0.01, 0.01, 0.01, 0.01, 0.01, 1, 1, 1, 1}},
    {FUNCTION(silu), {ANY, 0, 0, 0, 0, 100, 1e20, LARGE, INFINITY}, {ANY, 0, 0, 0, 0.5, 1, 1, 1, ANY}},
    {FUNCTION(gelu), {0, 0, 0, 0, 0, 100, 1e20, LARGE, INFINITY}, {0, 0, 0, 0, 0.5, 1, 1, 1, 1}},
    {FUNCTION(gelu_tanh), {ANY, 0, 0, 0, 0, 100, 1e20, LARGE, INFINITY}, {ANY, 0, 0, 0, 0.5, 1, 1, 1, ANY}},
    {FUNCTION(mish), {ANY, 0, 0, 0, 0, 100, 1e20, LARGE, INFINITY}, {ANY, 0, 0, 0, 0.6, 1, 1, 1, ANY}},
    {FUNCTION(elu), {-1, -1, -1, -1, 0, 100, 1e20, LARGE, INFINITY}, {0, 0, 0, 0, 1, 1, 1, 1, 1}},
    {FUNCTION(selu),
     {-1.7580993, -1.7580993, -1.7580993, -1.7580993, 0, 105.0701, 1.0507010e20, 3.1521030e38, INFINITY},
     {0, 0, 0, 0, 1.7580993, 1.0507010, 1.0507010, 1.0507010, 1.0507010}},
    {FUNCTION(relu6), {0, 0, 0, 0, 0, 6, 6, 6, 6}, {0, 0, 0, 0, 0, 0, 0, 0, 0}},
    {FUNCTION(hard_tanh), {-1, -1, -1, -1, 0, 1, 1, 1, 1}, {0, 0, 0, 0, 1, 0, 0, 0, 0}},
    {FUNCTION(hard_sigmoid), {0, 0, 0, 0, 0.5, 1, 1, 1, 1}, {0, 0, 0, 0, 1.0 / 6, 0, 0, 0, 0}},
    {FUNCTION(hard_silu), {ANY, 0, 0, 0, 0, 100, 1e20, LARGE, INFINITY}, {0, 0, 0, 0, 0.5, 1, 1, 1, 1}},
    {FUNCTION(softsign),
     {ANY, -1, -1, -100 / 101.0, 0, 100 / 101.0, 1, 1, ANY},
     {ANY, 0, 0, 9.8029605e-05, 1, 9.8029605e-05, 0, 0, ANY}},
    {FUNCTION(exp),
     {0, 0, 0, 0, 1, INFINITY, INFINITY, INFINITY, INFINITY},
     {0, 0, 0, 0, 1, INFINITY, INFINITY, INFINITY, INFINITY}},
    {FUNCTION(erf), {-1, -1, -1, -1, 0, 1, 1, 1, 1}, {0, 0, 0, 0, 1.1283792, 0, 0, 0, 0}},
    {FUNCTION(atan),
     {-M_PI_2, -M_PI_2, -M_PI_2, -1.5607967, 0, 1.5607967, M_PI_2, M_PI_2, M_PI_2},
     {0, 0, 0, 9.9990001e-05, 1, 9.9990001e-05, 0, 0, 0}},
    {FUNCTION(reciprocal), {0, 0, 0, -0.01, ANY, 0.01, 0, 0, 0}, {0, 0, 0, -1e-4, ANY, -1e-4, 0, 0, 0}},
};

TEST(activations)
{
    for (size_t k = 0; k < sizeof handlers / sizeof *handlers; k++)
        for (size_t i = 0; i < sizeof extremes / sizeof *extremes && is_here(handlers[k]); i++) {
            const extreme *e = &extremes[i];
            double values[POINTS], gradients[POINTS];
            run(handlers[k], e->function, points, POINTS, values, POINTS, gradients);
            compare(handlers[k], e->name, "value", points, values, e->values, POINTS);
            compare(handlers[k], e->name, "gradient", points, gradients, e->gradients, POINTS);
        }
}

/* --- over the last axis --- */

typedef struct row_extreme {
    const char *name;
    record_function function;
    double x[3], values[3], gradients[3];
    int64_t results;
} row_extreme;

static sgm_value second_of_log_softmax(sgm_graph *graph, sgm_value x)
{
    return sgm_slice(graph, sgm_log_softmax(graph, x), 0, 1, 2, 1);
}

static sgm_value second_of_softmax(sgm_graph *graph, sgm_value x)
{
    return sgm_slice(graph, sgm_softmax(graph, x), 0, 1, 2, 1);
}

static const row_extreme rows[] = {
    {"log_softmax", second_of_log_softmax, {-INFINITY, 1, 2}, {-1.3132617}, {0, 0.7310586, -0.7310586}, 1},
    {"log_softmax", second_of_log_softmax, {-LARGE, LARGE, 2}, {0}, {0, 0, 0}, 1},
    {"log_softmax", second_of_log_softmax, {0, -LARGE, 2}, {-LARGE}, {-0.1192029, 1, -0.8807971}, 1},
    {"softmax", second_of_softmax, {-INFINITY, 1, 2}, {0.2689414}, {0, 0.1966119, -0.1966119}, 1},
    {"softmax", second_of_softmax, {LARGE, -LARGE, 2}, {0}, {0, 0, 0}, 1},
};

TEST(rows_of_classes)
{
    for (size_t k = 0; k < sizeof handlers / sizeof *handlers; k++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows && is_here(handlers[k]); i++) {
            const row_extreme *r = &rows[i];
            double values[3], gradients[3];
            run(handlers[k], r->function, r->x, 3, values, r->results, gradients);
            compare(handlers[k], r->name, "value", r->x, values, r->values, r->results);
            compare(handlers[k], r->name, "gradient", r->x, gradients, r->gradients, 3);
        }
}
