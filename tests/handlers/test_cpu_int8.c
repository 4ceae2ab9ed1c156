/* Products of integers of 8 bits: each bit of the cpu handler's results against sums in 64 bits, for all
 * tiles that run here, at the ends of what sums may be. */
#include "base/base.h"
#include "graphs.h"
#include "handlers/cpu/vector/vector.h"
#include "handlers/session.h"

#include <math.h>

/* What a product is made of. */
typedef struct product {
    int64_t m, k, n;
    float *x, *scales;
    unsigned char *weights;
    float *expected;
} product;

static product product_create(int64_t m, int64_t k, int64_t n)
{
    product p = {.m = m, .k = k, .n = n};
    p.x = sgm__calloc((size_t)(m * k), sizeof *p.x);
    p.weights = sgm__calloc((size_t)(k * n), 1);
    p.scales = sgm__calloc((size_t)n, sizeof *p.scales);
    p.expected = sgm__calloc((size_t)(m * n), sizeof *p.expected);
    CHECK(p.x != NULL && p.weights != NULL && p.scales != NULL && p.expected != NULL);
    sgm__random random = sgm__random_make(3, (uint64_t)(m * 1000 + k * 10 + n));
    for (int64_t i = 0; i < m * k; i++)
        p.x[i] = (float)sgm__random_normal(&random);
    for (int64_t i = 0; i < k * n; i++)
        p.weights[i] = (unsigned char)(1 + (int64_t)(sgm__random_uniform(&random) * 255));
    for (int64_t i = 0; i < n; i++)
        p.scales[i] = (float)(0.001 + 0.01 * sgm__random_uniform(&random));
    return p;
}

static void product_free(product *p)
{
    sgm__free(p->x);
    sgm__free(p->weights);
    sgm__free(p->scales);
    sgm__free(p->expected);
}

/* The formula of sgm_quantized_matmul, one sum after the other. */
static void compute(product *p)
{
    for (int64_t i = 0; i < p->m; i++) {
        const float *x = p->x + i * p->k;
        float largest = 0x1p-100f;
        bool finite = true;
        for (int64_t l = 0; l < p->k; l++) {
            finite = finite && isfinite(x[l]);
            largest = fmaxf(largest, fabsf(x[l]));
        }
        float factor = 127.0f / largest, row_scale = largest / 127.0f;
        for (int64_t j = 0; j < p->n; j++) {
            int64_t sum = 0;
            for (int64_t l = 0; l < p->k && finite; l++) {
                float scaled = x[l] * factor;
                sum += (int64_t)floorf(scaled + 0.5f) * (p->weights[l * p->n + j] - 128);
            }
            float scale = row_scale * p->scales[j];
            p->expected[i * p->n + j] = finite ? (float)sum * scale : NAN;
        }
    }
}

/* Feeds an input, or makes it a constant. */
static sgm_value operand(sgm_graph *graph, const char *name, sgm_dtype dtype, const sgm_shape *shape,
                         const void *values, bool constant)
{
    if (!constant)
        return sgm_input_value(graph, name, dtype, shape);
    sgm_tensor *tensor = sgm_tensor_create_from(dtype, shape, values);
    sgm_value value = sgm_constant(graph, tensor);
    sgm_tensor_free(tensor);
    return value;
}

static void feed_values(sgm_session *session, sgm_program *program, const char *name, sgm_dtype dtype,
                        const sgm_shape *shape, const void *values)
{
    sgm_tensor *tensor = sgm_tensor_create_from(dtype, shape, values);
    CHECK_OK(sgm_session_feed(session, program, name, tensor));
    sgm_tensor_free(tensor);
}

static bool same_bits(float a, float b)
{
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

static void check(const product *p, sgm_handler *handler, bool constant)
{
    const sgm_shape x = sgm_shape_of(p->m, p->k), weights = sgm_shape_of(p->k, p->n),
                    each = sgm_shape_of(p->n);
    const sgm_shape result = sgm_shape_of(p->m, p->n);
    sgm_graph *graph = sgm_graph_create();
    sgm_value w = operand(graph, "w", SGM_UINT8, &weights, p->weights, constant);
    sgm_value s = operand(graph, "s", SGM_FLOAT32, &each, p->scales, constant);
    sgm_graph_add_output(graph, "y",
                         sgm_quantized_matmul(graph, sgm_input_value(graph, "x", SGM_FLOAT32, &x), w, s));
    sgm_session *session = sgm_session_create(handler);
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    feed_values(session, program, "x", SGM_FLOAT32, &x, p->x);
    if (!constant) {
        feed_values(session, program, "w", SGM_UINT8, &weights, p->weights);
        feed_values(session, program, "s", SGM_FLOAT32, &each, p->scales);
    }
    CHECK_OK(sgm_session_run(session, program));
    sgm_tensor *output = sgm_tensor_create(SGM_FLOAT32, &result);
    CHECK_OK(sgm_session_read(session, program, "y", output));
    const float *y = sgm_tensor_const_data(output);
    for (int64_t i = 0; i < p->m * p->n; i++)
        if (!same_bits(y[i], p->expected[i]))
            TEST_FAIL("%lld x %lld x %lld, element %lld: %.9g, expected %.9g", (long long)p->m,
                      (long long)p->k, (long long)p->n, (long long)i, (double)y[i], (double)p->expected[i]);
    sgm_tensor_free(output);
    sgm_session_free(session);
    sgm_graph_free(graph);
}

/* On each instruction set that runs here, with one thread and with several. Subnormal numbers are kept, as
 * the formula has them. */
static void check_everywhere(product *p)
{
    const sgm__vector *vector;
    bool runs;
    compute(p);
    for (int32_t i = 0; (vector = sgm__vector_at(i, &runs)) != NULL; i++)
        for (int threads = 1; threads <= 3 && runs; threads += 2) {
            sgm_handler *handler = sgm_handler_create("cpu", .instructions = vector->name, .threads = threads,
                                                      .keep_subnormals = true);
            CHECK_OK(handler);
            check(p, handler, true);
            check(p, handler, false);
            sgm_handler_free(handler);
        }
}

TEST(sums_are_exact_whatever_the_shape)
{
    static const int64_t shapes[][3] = {
        {1, 1, 1},     {1, 4, 16}, {1, 5, 17},     {2, 3, 15},  {3, 784, 33}, {4, 16, 64},   {5, 63, 16},
        {7, 130, 200}, {9, 1, 40}, {1, 1000, 260}, {1, 37, 31}, {64, 65, 10}, {131, 96, 50}, {300, 20, 16}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        product p = product_create(shapes[i][0], shapes[i][1], shapes[i][2]);
        check_everywhere(&p);
        product_free(&p);
    }
}

/* All codes at their largest distance from 0: two products of neighbours are as large as they get. */
TEST(nothing_saturates)
{
    for (int turn = 0; turn < 4; turn++) {
        product p = product_create(5, 2050, 18);
        memset(p.weights, (turn & 1) != 0 ? 1 : 255, (size_t)(p.k * p.n));
        for (int64_t i = 0; i < p.m * p.k; i++)
            p.x[i] = (turn & 2) != 0 ? -3.25f : 3.25f;
        check_everywhere(&p);
        float largest = 127.0f * 127.0f * 2050.0f * (3.25f / 127.0f * p.scales[0]);
        CHECK_NEAR(fabsf(p.expected[0]), largest, 1e-6 * (double)largest);
        product_free(&p);
    }
}

/* The depth whose sums nearly fill 31 bits, and one more, which is refused. */
TEST(the_deepest_product_is_exact)
{
    product p = product_create(1, 1 << 17, 3);
    memset(p.weights, 1, (size_t)(p.k * p.n));
    for (int64_t i = 0; i < p.k; i++)
        p.x[i] = 1;
    check_everywhere(&p);
    CHECK_NEAR(p.expected[1], -127.0f * 127.0f * 131072.0f * (1.0f / 127.0f * p.scales[1]), 0);
    product_free(&p);
    sgm_graph *graph = sgm_graph_create();
    const int64_t k = (1 << 17) + 1;
    sgm_quantized_matmul(graph, sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(1, k)),
                         sgm_input_value(graph, "w", SGM_UINT8, DIMS(k, 2)),
                         sgm_input_value(graph, "s", SGM_FLOAT32, DIMS(2)));
    CHECK_ERROR(sgm_graph_status(graph), "at most 131072 products");
    sgm_graph_free(graph);
}

/* Rows do not see each other: of zeros, of tiny numbers, of the largest ones, with NaN and infinity. */
TEST(rows_of_any_numbers_are_defined)
{
    product p = product_create(12, 45, 20);
    float *x = p.x;
    for (int64_t l = 0; l < p.k; l++) {
        x[0 * p.k + l] = 0;
        x[1 * p.k + l] = -0.0f;
        x[2 * p.k + l] *= 1e-38f;
        x[3 * p.k + l] = l == 3 ? 1e-45f : 0;
        x[4 * p.k + l] = l % 2 == 0 ? 1e36f : -1e36f;
        x[5 * p.k + l] = 0x1p-101f;
        x[6 * p.k + l] = l == 44 ? 1e30f : 1;
    }
    x[7 * p.k + 44] = NAN;
    x[8 * p.k] = INFINITY;
    x[9 * p.k + 7] = -INFINITY;
    x[10 * p.k + 2] = -NAN;
    check_everywhere(&p);
    CHECK_NEAR(p.expected[0], 0, 0);
    CHECK_NEAR(p.expected[3 * p.n], 0, 0);
    CHECK(isnan(p.expected[7 * p.n]) && isnan(p.expected[10 * p.n + 19]));
    CHECK(isfinite(p.expected[11 * p.n]) && isfinite(p.expected[4 * p.n]));
    product_free(&p);
}

/* --- weights that become codes --- */

/* A product of random numbers by a session that takes the state "w" for a constant. */
typedef struct network {
    sgm_graph *graph;
    sgm_session *session;
    sgm_shape x, w;
} network;

static void fill_normal(sgm_tensor *tensor, uint64_t seed, double scale)
{
    sgm__random random = sgm__random_make(seed, 7);
    float *values = sgm_tensor_data(tensor);
    for (int64_t i = 0; i < sgm_shape_elements(sgm_tensor_shape(tensor)); i++)
        values[i] = (float)(scale * sgm__random_normal(&random));
}

static network network_create(sgm_handler *handler, int64_t m, int64_t k, int64_t n)
{
    network net = {sgm_graph_create(), sgm_session_create(handler), sgm_shape_of(m, k), sgm_shape_of(k, n)};
    sgm_value x = sgm_input_value(net.graph, "x", SGM_FLOAT32, &net.x);
    sgm_value w = sgm_state(net.graph, "w", SGM_FLOAT32, &net.w);
    sgm_graph_add_output(net.graph, "y", sgm_matmul(net.graph, x, w));
    return net;
}

static void set_weights(network *net, uint64_t seed, double scale)
{
    sgm_tensor *w = sgm_tensor_create(SGM_FLOAT32, &net->w);
    fill_normal(w, seed, scale);
    CHECK_OK(sgm_session_set(net->session, "w", w));
    sgm_tensor_free(w);
}

static sgm_tensor *run(network *net, sgm_program *program)
{
    const sgm_shape shape = sgm_shape_of(net->x.dims[0], net->w.dims[1]);
    sgm_tensor *x = sgm_tensor_create(SGM_FLOAT32, &net->x), *y = sgm_tensor_create(SGM_FLOAT32, &shape);
    CHECK_OK(program);
    fill_normal(x, 5, 1);
    CHECK_OK(sgm_session_feed(net->session, program, "x", x));
    CHECK_OK(sgm_session_run(net->session, program));
    CHECK_OK(sgm_session_read(net->session, program, "y", y));
    sgm_tensor_free(x);
    return y;
}

static void network_free(network *net)
{
    sgm_session_free(net->session);
    sgm_graph_free(net->graph);
}

/* The root of the mean squared difference, as a share of that of the exact results. */
static double error_of(const sgm_tensor *a, const sgm_tensor *exact)
{
    double error = 0, size = 0;
    const float *x = sgm_tensor_const_data(a), *y = sgm_tensor_const_data(exact);
    for (int64_t i = 0; i < sgm_shape_elements(sgm_tensor_shape(a)); i++) {
        error += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
        size += (double)y[i] * (double)y[i];
    }
    return sqrt(error / size);
}

/* Rounding to steps of largest / 127 errs by a 12th of a step squared on average; the largest of 256 normal
 * numbers is about 2.8 times their standard deviation. Both sides together: sqrt(2 / 12) * 2.8 / 127 = 0.9 %.
 */
TEST(weights_of_a_session_become_codes)
{
    sgm_handler *handler = sgm_handler_create("cpu", .threads = 2);
    network net = network_create(handler, 8, 256, 64);
    set_weights(&net, 1, 0.1);
    sgm_tensor *exact = run(&net, sgm_session_prepare(net.session, net.graph));
    sgm_program *program = sgm__session_prepare_inference(net.session, net.graph,
                                                          SGM__INFERENCE_CONSTANTS | SGM__INFERENCE_INT8);
    sgm_tensor *rounded = run(&net, program);
    double error = error_of(rounded, exact);
    CHECK(error > 0.004 && error < 0.012);
    sgm_program_memory memory = sgm_program_get_memory(program);
    CHECK_INT(memory.state, 0);
    CHECK(memory.constants < 256 * 64 * 5 / 4); /* a quarter, and scales */
    sgm_tensor_free(exact);
    sgm_tensor_free(rounded);
    network_free(&net);
    sgm_handler_free(handler);
}

TEST(constants_of_a_session_follow_its_states)
{
    sgm_handler *handler = sgm_handler_create("cpu", .threads = 1);
    network net = network_create(handler, 3, 40, 50);
    set_weights(&net, 1, 1);
    sgm_program *program = sgm__session_prepare_inference(net.session, net.graph, SGM__INFERENCE_CONSTANTS);
    sgm_tensor *before = run(&net, program);
    CHECK(!sgm__session_is_outdated(net.session));
    CHECK(sgm__session_prepare_inference(net.session, net.graph, SGM__INFERENCE_CONSTANTS) == program);
    set_weights(&net, 2, 1);
    CHECK(sgm__session_is_outdated(net.session));
    program = sgm__session_prepare_inference(net.session, net.graph, SGM__INFERENCE_CONSTANTS);
    CHECK(!sgm__session_is_outdated(net.session));
    sgm_tensor *after = run(&net, program),
               *ordinary = run(&net, sgm_session_prepare(net.session, net.graph));
    CHECK_NEAR(error_of(after, ordinary), 0, 0);
    CHECK(error_of(before, ordinary) > 0.1);
    sgm_tensor_free(before);
    sgm_tensor_free(after);
    sgm_tensor_free(ordinary);
    network_free(&net);
    sgm_handler_free(handler);
}

/* 63 x 65 weights are one less than 4,096. */
TEST(nothing_to_quantize_is_an_error)
{
    sgm_handler *handler = sgm_handler_create("cpu", .threads = 1);
    network net = network_create(handler, 3, 63, 65);
    set_weights(&net, 1, 1);
    CHECK_ERROR(sgm__session_prepare_inference(net.session, net.graph,
                                               SGM__INFERENCE_CONSTANTS | SGM__INFERENCE_INT8),
                "nothing to quantize");
    network_free(&net);
    sgm_handler_free(handler);
}

/* By the parts that the operation is composed of. */
TEST(other_handlers_compute_the_same)
{
    product p = product_create(4, 100, 21);
    compute(&p);
    sgm_handler *handler = sgm_handler_create("reference");
    check(&p, handler, true);
    sgm_handler_free(handler);
    product_free(&p);
}
