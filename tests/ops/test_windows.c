/* Convolutions and poolings against PyTorch's values and gradients (windows_data.py), with one and two
 * threads, where elements are equal or not numbers, and what they say about shapes that do not fit. */
#include "op_values.h"

enum kind { CONVOLUTION, TRANSPOSED, MAX, AVERAGE };

typedef struct window_case {
    enum kind kind;
    int32_t count;
    sgm_shape shapes[3];
    int64_t size[2], stride[2], before[2], after[2], dilation[2], output_padding[2];
    int64_t groups;
    int exclude_padding;
    size_t value_count;
    const double *values; /* the result, then the gradients by all inputs */
} window_case;

static const window_case cases[] = {
#include "windows_data.h"
};
#define BLOCK_VALUES 60000
#define CASES (sizeof cases / sizeof *cases)

/* Whether operands are numbers that bfloat16 has, so that double computes with the same ones. */
static bool short_numbers;

/* The same formula as in windows_data.py. */
static sgm_value numbers(sgm_graph *graph, sgm_dtype dtype, const sgm_shape *shape, int64_t which)
{
    int64_t count = sgm_shape_elements(shape);
    double *values = malloc((size_t)count * sizeof *values);
    for (int64_t i = 0; i < count; i++)
        values[i] = short_numbers ? (double)((i * 7919 + which * 104729 + 13) % 257) / 128 - 1
                                  : (double)((i * 7919 + which * 104729 + 13) % 2003) / 1000 - 1;
    sgm_value constant = op_constant(graph, dtype, shape, (size_t)count, values);
    free(values);
    return constant;
}

static sgm_value record(sgm_graph *g, const window_case *c, const sgm_value *x)
{
    sgm_window_options options = {
        .struct_size = sizeof options, .groups = c->groups, .exclude_padding = c->exclude_padding != 0};
    memcpy(options.size, c->size, sizeof c->size);
    memcpy(options.stride, c->stride, sizeof c->stride);
    memcpy(options.before, c->before, sizeof c->before);
    memcpy(options.after, c->after, sizeof c->after);
    memcpy(options.dilation, c->dilation, sizeof c->dilation);
    sgm_value biases = c->count > 2 ? x[2] : (sgm_value){-1};
    switch (c->kind) {
    case CONVOLUTION:
        return sgm_convolution(g, x[0], x[1], biases, &options);
    case TRANSPOSED:
        return sgm_transposed_convolution(g, x[0], x[1], biases, c->output_padding, &options);
    case MAX:
        return sgm_max_pooling(g, x[0], &options);
    case AVERAGE:
        break;
    }
    return sgm_average_pooling(g, x[0], &options);
}

/* All outputs of a graph, one after the other. */
static size_t run_graph(const char *name, int32_t threads, sgm_graph *g, const char *const *names,
                        int32_t outputs, double *values, size_t room)
{
    CHECK_OK(sgm_graph_verify(g));
    sgm_handler *handler = sgm_handler_create(name, .threads = threads);
    sgm_session *session = sgm_session_create(handler);
    sgm_program *program = sgm_session_prepare(session, g);
    CHECK_OK(program);
    CHECK_OK(sgm_session_run(session, program));
    size_t filled = 0;
    for (int32_t i = 0; i < outputs; i++) {
        sgm_type result = sgm_program_output_type(program, names[i]);
        sgm_tensor *tensor = sgm_tensor_create(result.dtype, &result.shape);
        size_t count = (size_t)sgm_shape_elements(&result.shape);
        CHECK(filled + count <= room);
        CHECK_OK(sgm_session_read(session, program, names[i], tensor));
        CHECK_OK(sgm_tensor_read(tensor, values + filled, count));
        sgm_tensor_free(tensor);
        filled += count;
    }
    sgm_session_free(session);
    sgm_handler_free(handler);
    return filled;
}

/* The result and the gradients. */
static size_t compute(const char *name, sgm_dtype dtype, int32_t threads, const window_case *c,
                      double *values, size_t room)
{
    sgm_graph *g = sgm_graph_create();
    sgm_value x[3], gradients[3];
    for (int32_t i = 0; i < c->count; i++)
        x[i] = sgm_copy(g, numbers(g, dtype, &c->shapes[i], i));
    sgm_value y = record(g, c, x);
    CHECK_OK(sgm_graph_status(g));
    sgm_type type = sgm_value_type(g, y);
    sgm_value cost = sgm_sum(g, sgm_multiply(g, y, numbers(g, dtype, &type.shape, 9)));
    CHECK_OK(sgm_gradients(g, cost, x, c->count, gradients));
    const char *const names[] = {"y", "a", "b", "c"};
    sgm_graph_add_output(g, "y", y);
    for (int32_t i = 0; i < c->count; i++)
        sgm_graph_add_output(g, names[i + 1], gradients[i]);
    size_t filled = run_graph(name, threads, g, names, c->count + 1, values, room);
    sgm_graph_free(g);
    return filled;
}

static void compare(const char *name, sgm_dtype dtype, double tolerance)
{
    double values[1024];
    for (size_t i = 0; i < CASES; i++) {
        size_t count = compute(name, dtype, 2, &cases[i], values, 1024);
        CHECK_INT(count, cases[i].value_count);
        for (size_t k = 0; k < count; k++)
            if (!test_near(values[k], cases[i].values[k], tolerance * (1 + fabs(cases[i].values[k]))))
                TEST_FAIL("case %zu on %s: value %zu is %.17g, PyTorch has %.17g", i, name, k, values[k],
                          cases[i].values[k]);
    }
}

TEST(the_reference_has_pytorchs_values_and_gradients)
{
    compare("reference", SGM_FLOAT64, 1e-10);
}

TEST(the_cpu_has_pytorchs_values_and_gradients)
{
    compare("cpu", SGM_FLOAT64, 1e-10);
    compare("cpu", SGM_FLOAT32, 1e-5);
}

/* Large enough to be shared. */
TEST(one_and_two_threads_give_the_same_bits)
{
    static const window_case large[] = {
        {CONVOLUTION, 3, {{4, {9, 3, 13, 12}}, {4, {5, 3, 4, 3}}, {1, {5}}}, .dilation = {1, 1}, .groups = 1},
        {CONVOLUTION,
         2,
         {{4, {2, 4, 20, 21}}, {4, {6, 2, 3, 3}}},
         .stride = {2, 1},
         .before = {1, 1},
         .groups = 2},
        {CONVOLUTION, 3, {{4, {4, 7, 19, 21}}, {4, {5, 7, 1, 1}}, {1, {5}}}, .groups = 1},
        {MAX, 1, {{4, {7, 3, 20, 20}}}, .size = {2, 2}, .stride = {2, 2}},
        {AVERAGE, 1, {{4, {7, 3, 20, 20}}}, .size = {3, 2}, .stride = {2, 1}},
    };
    static double one[40000], two[40000];
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        window_case c = large[i];
        size_t count = compute("cpu", SGM_FLOAT32, 1, &c, one, 40000);
        CHECK_INT(compute("cpu", SGM_FLOAT32, 2, &c, two, 40000), count);
        CHECK(memcmp(one, two, count * sizeof *one) == 0);
    }
}

/* Wider than what is found together: windows that fit, and windows that do not. */
TEST(the_largest_of_wide_images_agree_with_the_reference)
{
    static const window_case wide[] = {
        {MAX, 1, {{3, {1, 2, 1500}}}, .size = {5}, .stride = {1}, .dilation = {3}, .before = {4}},
        {MAX, 1, {{3, {1, 2, 1500}}}, .size = {5}, .stride = {2}, .dilation = {3}},
        {MAX, 1, {{4, {1, 2, 5, 700}}}, .size = {3, 4}, .stride = {2, 3}, .before = {1, 2}},
        {MAX, 1, {{3, {1, 2, 1500}}}, .size = {600}, .stride = {7}, .before = {3}},
    };
    static double expected[10000], values[10000];
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        window_case c = wide[i];
        size_t count = compute("reference", SGM_FLOAT64, 1, &c, expected, 10000);
        CHECK_INT(compute("cpu", SGM_FLOAT32, 2, &c, values, 10000), count);
        for (size_t k = 0; k < count; k++)
            CHECK_NEAR(values[k], expected[k], 1e-5 * (1 + fabs(expected[k])));
    }
}

/* Convolution, relu, pooling: large enough to run together with the elementwise steps between them. */
static size_t compute_block(const char *name, sgm_dtype dtype, int32_t threads, bool largest, double *values)
{
    sgm_graph *g = sgm_graph_create();
    sgm_value x[3], gradients[3];
    x[0] = sgm_copy(g, numbers(g, dtype, OP_DIMS(17, 4, 20, 20), 0));
    x[1] = sgm_copy(g, numbers(g, dtype, OP_DIMS(18, 2, 3, 3), 1));
    x[2] = sgm_copy(g, numbers(g, dtype, OP_DIMS(18), 2));
    sgm_value y = sgm_relu(g, sgm_convolution(g, x[0], x[1], x[2], SGM_WINDOW(.before = {1}, .groups = 2)));
    const sgm_window_options *window = SGM_WINDOW(.size = {2, 2}, .stride = {2, 2});
    y = largest ? sgm_max_pooling(g, y, window) : sgm_average_pooling(g, y, window);
    sgm_type type = sgm_value_type(g, y);
    sgm_value cost = sgm_sum(g, sgm_multiply(g, y, numbers(g, dtype, &type.shape, 9)));
    CHECK_OK(sgm_gradients(g, cost, x, 3, gradients));
    const char *const names[] = {"y", "a", "b", "c"};
    sgm_graph_add_output(g, "y", y);
    for (int i = 0; i < 3; i++)
        sgm_graph_add_output(g, names[i + 1], gradients[i]);
    size_t count = run_graph(name, threads, g, names, 4, values, BLOCK_VALUES);
    sgm_graph_free(g);
    return count;
}

TEST(blocks_of_layers_agree_with_the_reference)
{
    static double expected[BLOCK_VALUES], values[BLOCK_VALUES], again[BLOCK_VALUES];
    for (int largest = 0; largest < 2; largest++) {
        size_t count = compute_block("reference", SGM_FLOAT64, 1, largest != 0, expected);
        CHECK_INT(compute_block("cpu", SGM_FLOAT64, 2, largest != 0, values), count);
        for (size_t i = 0; i < count; i++)
            CHECK_NEAR(values[i], expected[i], 1e-11 * (1 + fabs(expected[i])));
        compute_block("cpu", SGM_FLOAT32, 1, largest != 0, values);
        for (int round = 0; round < 5; round++) {
            compute_block("cpu", SGM_FLOAT32, 2, largest != 0, again);
            CHECK(memcmp(values, again, count * sizeof *values) == 0);
        }
    }
}

#define RANDOM_VALUES 800000
static int64_t draw(uint64_t *state, int64_t least, int64_t most)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return least + (int64_t)(*state >> 33) % (most - least + 1);
}

/* Any window over any image: groups of one channel, of few, of many; strides beyond the window, borders wider
 * than it. */
static window_case random_convolution(uint64_t *state)
{
    window_case c = {CONVOLUTION, .count = (int32_t)draw(state, 2, 3), .groups = draw(state, 1, 5)};
    int64_t channels = draw(state, 1, draw(state, 0, 3) > 0 ? 2 : 9);
    int64_t filters = draw(state, 1, draw(state, 0, 3) > 0 ? 3 : 20), in[2], size[2];
    for (int i = 0; i < 2; i++) {
        size[i] = draw(state, 1, 4);
        c.stride[i] = draw(state, 1, 3);
        c.dilation[i] = draw(state, 1, 2);
        c.before[i] = draw(state, 0, 3);
        c.after[i] = draw(state, 0, 2);
        int64_t window = (size[i] - 1) * c.dilation[i] + 1 - c.before[i] - c.after[i];
        in[i] = draw(state, window > 1 ? window : 1, 19);
    }
    c.shapes[0] = sgm_shape_of(draw(state, 1, 4), channels * c.groups, in[0], in[1]);
    c.shapes[1] = sgm_shape_of(filters * c.groups, channels, size[0], size[1]);
    c.shapes[2] = sgm_shape_of(filters * c.groups);
    return c;
}

/* A filter or two for each channel, of the windows that have code of their own and some others, over images
 * of which no first cache holds a channel. */
static window_case random_depthwise(uint64_t *state)
{
    window_case c = {CONVOLUTION, .count = (int32_t)draw(state, 2, 3), .groups = draw(state, 2, 4)};
    int64_t in[2] = {draw(state, 5, 45), draw(state, 5, 140)}, size = 1 + draw(state, 1, 6), filters;
    for (int i = 0; i < 2; i++) {
        c.stride[i] = (int64_t[]){1, 1, 2, 2, 4}[draw(state, 0, 4)];
        c.before[i] = draw(state, 0, size - 1);
        c.after[i] = draw(state, size > 5 ? 2 : 0, 3);
        c.dilation[i] = 1;
    }
    filters = draw(state, 1, 2);
    c.shapes[0] = sgm_shape_of(draw(state, 1, 2), c.groups, in[0], in[1]);
    c.shapes[1] = sgm_shape_of(filters * c.groups, 1, size, draw(state, 0, 2) > 0 ? size : 2);
    c.shapes[2] = sgm_shape_of(filters * c.groups);
    return c;
}

/* Windows of 3 x 3 in steps of one with many channels, which are computed by Winograd's filtering. */
static window_case random_winograd(uint64_t *state)
{
    window_case c = {CONVOLUTION, .count = (int32_t)draw(state, 2, 3), .groups = 1};
    int64_t channels = draw(state, 64, 96), filters = draw(state, 64, 96), in[2];
    for (int i = 0; i < 2; i++) {
        c.before[i] = draw(state, 0, 2);
        c.after[i] = draw(state, 0, 2);
        in[i] = 4 * draw(state, 2, 6);
    }
    c.shapes[0] = sgm_shape_of(draw(state, 6, 9), channels, in[0], in[1]);
    c.shapes[1] = sgm_shape_of(filters, channels, 3, 3);
    c.shapes[2] = sgm_shape_of(filters);
    return c;
}

/* Rounding errors grow with the numbers that are added, so they are measured by the largest result. */
static double largest_error(const double *values, const double *expected, size_t count)
{
    double error = 0, largest = 0;
    for (size_t i = 0; i < count; i++) {
        error = fmax(error, fabs(values[i] - expected[i]));
        largest = fmax(largest, fabs(expected[i]));
    }
    return error / largest;
}

/* What the handler's two ways of a convolution have been seen to do. */
typedef struct rounding {
    double worst, direct; /* the largest errors: as it is faster, and with `exact` */
    int different;        /* cases in which the two were different numbers */
} rounding;

static void measure(rounding *r, const double *values, const double *direct, const double *expected,
                    size_t count)
{
    r->different += memcmp(values, direct, count * sizeof *values) != 0;
    r->worst = fmax(r->worst, largest_error(values, expected, count));
    r->direct = fmax(r->direct, largest_error(direct, expected, count));
}

/* If the two ways are hardly ever different, direct sums alone were seen. */
static void check_rounding(const rounding *r)
{
    CHECK(r->different >= 10);
    CHECK(r->worst <= 4 * r->direct);
    CHECK(r->worst < 6e-6);
}

/* The result and the gradient by the input, then that by the weights. */
TEST(winograd_rounds_at_most_four_times_as_much_as_direct_sums)
{
    static double expected[RANDOM_VALUES], values[RANDOM_VALUES], direct[RANDOM_VALUES];
    uint64_t state = 11;
    rounding images = {0}, weights = {0};
    for (int i = 0; i < 30; i++) {
        window_case c = random_winograd(&state);
        size_t all = compute("cpu", SGM_FLOAT64, 2, &c, expected, RANDOM_VALUES);
        CHECK_INT(compute("cpu", SGM_FLOAT32, 1, &c, values, RANDOM_VALUES), all);
        compute("cpu(exact=true)", SGM_FLOAT32, 1, &c, direct, RANDOM_VALUES);
        size_t kernels = (size_t)sgm_shape_elements(&c.shapes[1]);
        size_t first = all - kernels - (c.count == 3 ? (size_t)sgm_shape_elements(&c.shapes[2]) : 0);
        measure(&images, values, direct, expected, first);
        measure(&weights, values + first, direct + first, expected + first, kernels);
        compute("cpu", SGM_FLOAT32, 2, &c, direct, RANDOM_VALUES);
        CHECK(memcmp(values, direct, all * sizeof *values) == 0);
        compute("cpu(instructions=portable)", SGM_FLOAT32, 2, &c, direct, RANDOM_VALUES);
        /* without fused multiply-adds */
        CHECK(largest_error(direct, expected, first) < 6e-6);
        CHECK(largest_error(direct + first, expected + first, kernels) < 4e-6);
    }
    check_rounding(&images);
    check_rounding(&weights);
    CHECK(images.worst > images.direct); /* only tiles of 4 x 4 results are that far off */
}

TEST(random_convolutions_agree_with_the_reference)
{
    static double expected[RANDOM_VALUES], values[RANDOM_VALUES], again[RANDOM_VALUES];
    uint64_t state = 7;
    for (int i = 0; i < 330; i++) {
        window_case c = i < 250 ? random_convolution(&state) : random_depthwise(&state);
        size_t count = compute("reference", SGM_FLOAT64, 1, &c, expected, RANDOM_VALUES);
        const char *name = i % 2 == 0 ? "cpu" : "cpu(instructions=portable)";
        CHECK_INT(compute(name, SGM_FLOAT64, 2, &c, values, RANDOM_VALUES), count);
        for (size_t k = 0; k < count; k++)
            if (!test_near(values[k], expected[k], 1e-11 * (1 + fabs(expected[k]))))
                TEST_FAIL("case %d: value %zu is %.17g, expected %.17g", i, k, values[k], expected[k]);
        compute("cpu", SGM_FLOAT32, 1, &c, values, RANDOM_VALUES);
        for (size_t k = 0; k < count; k++)
            if (!test_near(values[k], expected[k], (i < 250 ? 3e-5 : 3e-4) * (1 + fabs(expected[k]))))
                TEST_FAIL("case %d: float32 %zu is %.9g, expected %.9g", i, k, values[k], expected[k]);
        compute("cpu", SGM_FLOAT32, 2, &c, again, RANDOM_VALUES);
        CHECK(memcmp(values, again, count * sizeof *values) == 0);
    }
}

/* Sums of pairs are of float32 and rounded once. Groups of few channels are computed in float32. */
TEST(random_convolutions_of_bfloat16_agree_with_the_reference)
{
    static double expected[RANDOM_VALUES], values[RANDOM_VALUES], again[RANDOM_VALUES];
    uint64_t state = 23;
    short_numbers = true;
    for (int i = 0; i < 150; i++) {
        window_case c = i % 10 < 8 ? random_convolution(&state) : random_depthwise(&state);
        c.groups = i % 3 != 0 ? 1 : c.groups;
        c.shapes[0].dims[1] = c.shapes[1].dims[1] * c.groups;
        size_t count = compute("reference", SGM_FLOAT64, 1, &c, expected, RANDOM_VALUES);
        const char *name = i % 2 == 0 ? "cpu(bfloat16=own)" : "cpu(bfloat16=own,instructions=portable)";
        CHECK_INT(compute(name, SGM_BFLOAT16, 1, &c, values, RANDOM_VALUES), count);
        for (size_t k = 0; k < count; k++)
            if (!test_near(values[k], expected[k], 0x1p-8 * fabs(expected[k]) + 3e-5))
                TEST_FAIL("case %d: value %zu is %.9g, expected %.9g", i, k, values[k], expected[k]);
        compute(name, SGM_BFLOAT16, 2, &c, again, RANDOM_VALUES);
        CHECK(memcmp(values, again, count * sizeof *values) == 0);
    }
}

/* Enough channels and filters for blocks, of all that windows can be, and with as many results as pixels. */
static window_case random_wide_convolution(uint64_t *state)
{
    window_case c = {CONVOLUTION, .count = (int32_t)draw(state, 2, 3), .groups = 1};
    int64_t channels = draw(state, 16, 70), filters = draw(state, 16, 70), in[2], size[2];
    bool same = draw(state, 0, 2) == 0;
    for (int i = 0; i < 2; i++) {
        size[i] = same ? 3 : draw(state, 1, 4);
        c.stride[i] = same ? 1 : draw(state, 1, 2);
        c.dilation[i] = same ? 1 : draw(state, 1, 2);
        c.before[i] = same ? 1 : draw(state, 0, 3);
        c.after[i] = same ? 1 : draw(state, 0, 3);
        int64_t least = (size[i] - 1) * c.dilation[i] + 1 - c.before[i] - c.after[i];
        in[i] = draw(state, least > 1 ? least : 1, 13);
    }
    c.shapes[0] = sgm_shape_of(draw(state, 1, 4), channels, in[0], in[1]);
    c.shapes[1] = sgm_shape_of(filters, channels, size[0], size[1]);
    c.shapes[2] = sgm_shape_of(filters);
    return c;
}

/* Blocks as AMX has them give the bits of those in plain C, with any number of threads. Sums are of float32.
 */
TEST(random_convolutions_by_blocks_agree_with_the_reference)
{
    static double expected[RANDOM_VALUES], values[RANDOM_VALUES], again[RANDOM_VALUES];
    uint64_t state = 29;
    short_numbers = true;
    /* An image of one column, of which a stride of two leaves no second one. */
    const window_case narrow = {CONVOLUTION,
                                2,
                                {{4, {1, 63, 3, 1}}, {4, {17, 63, 4, 3}}},
                                .stride = {2, 2},
                                .before = {3, 1},
                                .after = {1, 3},
                                .dilation = {1, 1},
                                .groups = 1};
    for (int i = 0; i < 90; i++) {
        window_case c = i == 0 ? narrow : random_wide_convolution(&state);
        size_t count = compute("cpu", SGM_FLOAT64, 2, &c, expected, RANDOM_VALUES);
        CHECK_INT(compute("cpu(bfloat16=amx)", SGM_BFLOAT16, 1, &c, values, RANDOM_VALUES), count);
        for (size_t k = 0; k < count; k++)
            if (!test_near(values[k], expected[k], 0x1p-8 * fabs(expected[k]) + 3e-4))
                TEST_FAIL("case %d: value %zu is %.9g, expected %.9g", i, k, values[k], expected[k]);
        compute("cpu(bfloat16=amx)", SGM_BFLOAT16, 2, &c, again, RANDOM_VALUES);
        CHECK(memcmp(values, again, count * sizeof *values) == 0);
        compute("cpu(bfloat16=amx,instructions=portable)", SGM_BFLOAT16, 2, &c, again, RANDOM_VALUES);
        CHECK(memcmp(values, again, count * sizeof *values) == 0);
    }
}

/* 49 pixels of a result do not fill the steps of a block. Places of the kernel's first two rows do not see
 * the image's last row, which is infinite. */
TEST(infinities_that_a_place_does_not_see_leave_its_gradient_finite)
{
    enum { CHANNELS = 16, SIDE = 9, RESULTS = 7 * 7, PLACES = 9, SEEING = 6 };
    static double pixels[CHANNELS * SIDE * SIDE], values[CHANNELS * CHANNELS * PLACES];
    for (int i = 0; i < CHANNELS * SIDE * SIDE; i++)
        pixels[i] = i / SIDE % SIDE == SIDE - 1 ? INFINITY : 1;
    sgm_tensor *image = sgm_tensor_create(SGM_BFLOAT16, OP_DIMS(1, CHANNELS, SIDE, SIDE));
    CHECK_OK(sgm_tensor_write(image, pixels, sizeof pixels / sizeof *pixels));
    static const char *const names[] = {"cpu(bfloat16=amx)", "cpu(bfloat16=amx,instructions=portable)"};
    for (int i = 0; i < 2; i++) {
        sgm_graph *g = sgm_graph_create();
        sgm_value x = sgm_copy(g, sgm_constant(g, image)), gradient;
        sgm_value weights = sgm_copy(g, numbers(g, SGM_BFLOAT16, OP_DIMS(CHANNELS, CHANNELS, 3, 3), 1));
        sgm_value y = sgm_convolution(g, x, weights, (sgm_value){.index = -1}, SGM_WINDOW());
        CHECK_OK(sgm_gradients(g, sgm_sum(g, y), &weights, 1, &gradient));
        sgm_graph_add_output(g, "gradient", gradient);
        size_t room = sizeof values / sizeof *values;
        size_t count = run_graph(names[i], 1, g, (const char *const[]){"gradient"}, 1, values, room);
        sgm_graph_free(g);
        for (size_t k = 0; k < count; k++)
            CHECK_NEAR(values[k], k % PLACES < SEEING ? RESULTS : INFINITY, 0);
    }
    sgm_tensor_free(image);
}

/* A filter for each channel, which is computed in float32, and a relu that runs with it. */
static size_t compute_depthwise(const char *name, sgm_dtype dtype, int32_t threads, double *values)
{
    sgm_graph *g = sgm_graph_create();
    sgm_value x = sgm_copy(g, numbers(g, dtype, OP_DIMS(3, 8, 20, 20), 0));
    sgm_value weights = sgm_copy(g, numbers(g, dtype, OP_DIMS(8, 1, 3, 3), 1));
    sgm_value biases = sgm_copy(g, numbers(g, dtype, OP_DIMS(8), 2));
    const sgm_window_options *window = SGM_WINDOW(.before = {1, 1}, .after = {1, 1}, .groups = 8);
    sgm_graph_add_output(g, "y", sgm_relu(g, sgm_convolution(g, x, weights, biases, window)));
    size_t count = run_graph(name, threads, g, (const char *const[]){"y"}, 1, values, BLOCK_VALUES);
    sgm_graph_free(g);
    return count;
}

TEST(a_relu_after_a_depthwise_convolution_of_bfloat16_is_done)
{
    static double expected[BLOCK_VALUES], values[BLOCK_VALUES];
    short_numbers = true;
    size_t count = compute_depthwise("reference", SGM_FLOAT64, 1, expected), zeros = 0;
    for (int32_t threads = 1; threads <= 2; threads++) {
        CHECK_INT(compute_depthwise("cpu(bfloat16=own)", SGM_BFLOAT16, threads, values), count);
        for (size_t i = 0; i < count; i++) {
            zeros += expected[i] == 0;
            CHECK_NEAR(values[i], expected[i], 0x1p-8 * expected[i] + 1e-6);
        }
    }
    CHECK(zeros > count / 8);
}

/* What is transformed is rounded once more. */
TEST(winograd_of_bfloat16_rounds_at_most_six_times_as_much_as_direct_sums)
{
    static double expected[RANDOM_VALUES], values[RANDOM_VALUES], direct[RANDOM_VALUES];
    static const char *const ways[][2] = {
        {"cpu(bfloat16=own)", "cpu(bfloat16=own,exact=true)"},
        {"cpu(bfloat16=own,instructions=portable)", "cpu(bfloat16=own,instructions=portable,exact=true)"}};
    uint64_t state = 12;
    int different = 0;
    short_numbers = true;
    for (int i = 0; i < 16; i++) {
        window_case c = random_winograd(&state);
        c.shapes[0].dims[1] -= i % 4 == 0; /* an odd number of channels, as often as not */
        c.shapes[1].dims[1] = c.shapes[0].dims[1];
        size_t count = compute("cpu", SGM_FLOAT64, 2, &c, expected, RANDOM_VALUES), from = 0;
        CHECK_INT(compute(ways[i % 2][0], SGM_BFLOAT16, 1, &c, values, RANDOM_VALUES), count);
        compute(ways[i % 2][1], SGM_BFLOAT16, 2, &c, direct, RANDOM_VALUES);
        different += memcmp(values, direct, count * sizeof *values) != 0;
        size_t kernels = (size_t)sgm_shape_elements(&c.shapes[1]);
        size_t parts[] = {count - kernels - (c.count == 3 ? (size_t)sgm_shape_elements(&c.shapes[2]) : 0),
                          kernels}; /* the result and the gradient by the input; that by the weights */
        for (int part = 0; part < 2; from += parts[part++]) {
            double error = largest_error(values + from, expected + from, parts[part]);
            double least = largest_error(direct + from, expected + from, parts[part]);
            if (!(error <= 6 * least && error < 0.015))
                TEST_FAIL("case %d: the error of part %d is %.3g, of direct sums %.3g", i, part, error,
                          least);
        }
        compute(ways[i % 2][0], SGM_BFLOAT16, 2, &c, direct, RANDOM_VALUES);
        CHECK(memcmp(values, direct, count * sizeof *values) == 0);
    }
    CHECK(different >= 8);
}

TEST(the_first_of_equal_elements_and_the_last_nan_get_the_gradient)
{
    const sgm_window_options *pairs = SGM_WINDOW(.size = {2}, .stride = {2});
    sgm_graph *g = sgm_graph_create();
    sgm_value x = op_constant(g, SGM_FLOAT64, OP_DIMS(1, 1, 6), OP_LIST(3, 3, NAN, 1, NAN, NAN));
    op_expect(g, sgm_max_pooling(g, x, pairs), OP_LIST(3, NAN, NAN));
    g = sgm_graph_create();
    x = sgm_copy(g, op_constant(g, SGM_FLOAT64, OP_DIMS(1, 1, 6), OP_LIST(3, 3, NAN, 1, NAN, NAN)));
    op_expect(g, op_gradient(g, sgm_max_pooling(g, x, pairs), x), OP_LIST(1, 0, 1, 0, 0, 1));
    g = sgm_graph_create();
    x = op_constant(g, SGM_FLOAT64, OP_DIMS(1, 1, 2), OP_LIST(-INFINITY, -INFINITY));
    op_expect(g, sgm_max_pooling(g, x, pairs), OP_LIST(-INFINITY));
}

#define REFUSES(expression, message)                                                                         \
    do {                                                                                                     \
        sgm_graph *g = sgm_graph_create();                                                                   \
        sgm_value x = sgm_input_value(g, "x", SGM_FLOAT32, OP_DIMS(2, 3, 4, 5));                             \
        sgm_value w = sgm_input_value(g, "w", SGM_FLOAT32, OP_DIMS(6, 3, 2, 2));                             \
        sgm_value b = sgm_input_value(g, "b", SGM_FLOAT32, OP_DIMS(5)), none = {-1};                         \
        (void)x, (void)w, (void)b, (void)none;                                                               \
        CHECK(!sgm_value_exists(expression));                                                                \
        CHECK_ERROR(sgm_graph_status(g), message);                                                           \
        sgm_graph_free(g);                                                                                   \
    } while (0)
#define OTHER(name, ...) sgm_input_value(g, name, SGM_FLOAT32, OP_DIMS(__VA_ARGS__))

TEST(shapes_that_do_not_fit_are_named)
{
    REFUSES(
        sgm_convolution(g, OTHER("flat", 2, 60), w, none, NULL),
        "wants data as (batch, channels, height, width) or (batch, channels, length), got float32 (2, 60)");
    REFUSES(sgm_convolution(g, x, OTHER("v", 6, 2, 2, 2), none, NULL),
            "data of 3 channels in 1 groups want weights (filters, 3, ...), got float32 (6, 2, 2, 2)");
    REFUSES(sgm_convolution(g, x, OTHER("v", 6, 3, 2), none, NULL), "equal type and number of axes");
    REFUSES(sgm_convolution(g, x, w, none, SGM_WINDOW(.groups = 2)), "2 groups: the 3 channels and the 6");
    REFUSES(sgm_convolution(g, x, w, b, NULL),
            "one bias for each of 6 filters, float32 (6,), got float32 (5,)");
    REFUSES(sgm_convolution(g, x, OTHER("v", 6, 3, 5, 2), none, NULL),
            "the height of 4, 4 with padding, is smaller than the window's 5: take a smaller window");
    REFUSES(sgm_convolution(g, x, w, none, SGM_WINDOW(.dilation = {1, 6}, .before = {0, 1})),
            "the width of 5, 6 with padding, is smaller than the window's 7");
    REFUSES(sgm_convolution(g, x, w, none, SGM_WINDOW(.stride = {-1})),
            "strides and dilations are at least 1");
    REFUSES(sgm_convolution(g, x, w, none, SGM_WINDOW(.before = {INT64_MAX})), "at most 2^40");
    REFUSES(sgm_convolution(g, OTHER("l", 1 << 20, 1, 1 << 20, 1), OTHER("v", 1 << 20, 1, 1, 1), none,
                            SGM_WINDOW(.before = {(int64_t)1 << 40})),
            "more elements than memory can address");
    REFUSES(sgm_max_pooling(g, x, NULL), "smaller than the window's 0");
    REFUSES(sgm_max_pooling(g, x, SGM_WINDOW(.size = {2, 2}, .before = {2})),
            "padding of 2 and 0 along the height: a window of 2 would see nothing else");
    REFUSES(sgm_average_pooling(g, x, SGM_WINDOW(.size = {2, 2}, .dilation = {2})), "an average has none");
    REFUSES(sgm_transposed_convolution(g, x, w, none, NULL, NULL),
            "weights begin with the 3 channels of the other operand, got float32 (6, 3, 2, 2)");
    REFUSES(
        sgm_transposed_convolution(g, x, OTHER("v", 3, 2, 2, 2), none, (const int64_t[]){1, 0}, NULL),
        "transposed_convolution: 1 output_padding along axis 2; it is at least 0 and less than the stride");
    REFUSES(sgm_convolution(g, x, sgm_cast(g, w, SGM_FLOAT64), none, NULL), "cast or reshape one of them");
    REFUSES(sgm_max_pooling(g, sgm_cast(g, x, SGM_INT32), SGM_WINDOW(.size = {2, 2})), "wants a float type");
}
