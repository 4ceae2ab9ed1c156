/* Sums together with the elementwise step before them: near the reference's sums in double, the same bits for
 * any number of threads, with machine code and without, and whether or not somebody looks at what is added.
 */
#include "handlers/comparison.h"

#define WAYS 3

static sgm_handler *handler_of(int way)
{
    static const sgm_handler_options options[WAYS] = {
        {.struct_size = sizeof(sgm_handler_options), .threads = 1},
        {.struct_size = sizeof(sgm_handler_options), .threads = 3},
        {.struct_size = sizeof(sgm_handler_options), .threads = 2, .no_machine_code = true}};
    sgm_handler *handler = sgm_handler_create_with("cpu", &options[way]);
    CHECK_OK(handler);
    ((sgm__cpu *)handler->self)->shares_all = true;
    return handler;
}

static sgm_session *run_once(sgm_handler *handler, const sgm_graph *graph, const input *inputs, int count,
                             sgm_program **program)
{
    static const char *const names[] = {"0", "1"};
    sgm_session *session = sgm_session_create(handler);
    CHECK_OK(*program = sgm_session_prepare(session, graph));
    sgm__random random = sgm__random_make(9, 1);
    for (int i = 0; i < count; i++) {
        sgm_tensor *tensor = random_input(&inputs[i], &random);
        if (sgm_program_has_input(*program, names[i]))
            CHECK_OK(sgm_session_feed(session, *program, names[i], tensor));
        sgm_tensor_free(tensor);
    }
    CHECK_OK(sgm_session_run(session, *program));
    CHECK_OK(sgm_session_run(session, *program));
    return session;
}

static sgm_tensor *output_of(sgm_session *session, sgm_program *program, const char *name)
{
    sgm_type type = sgm_program_output_type(program, name);
    sgm_tensor *result = sgm_tensor_create(type.dtype, &type.shape);
    CHECK_OK(sgm_session_read(session, program, name, result));
    return result;
}

static sgm_tensor *result_of(sgm_handler *handler, const sgm_graph *graph, const input *inputs, int count,
                             const char *name)
{
    sgm_program *program;
    sgm_session *session = run_once(handler, graph, inputs, count, &program);
    sgm_tensor *result = output_of(session, program, name);
    sgm_session_free(session);
    sgm_handler_free(handler);
    return result;
}

/* The graph's output "sum", and "terms" where it has that. */
static sgm_tensor *check_sum(const sgm_graph *graph, const input *inputs, int count, bool terms)
{
    CHECK_OK(sgm_graph_status(graph));
    sgm_tensor *expected = result_of(sgm_handler_create("reference"), graph, inputs, count, "sum");
    sgm_tensor *first = result_of(handler_of(0), graph, inputs, count, "sum");
    check_near(first, expected, 2e-6, "sum");
    for (int way = 1; way < WAYS; way++) {
        sgm_tensor *got = result_of(handler_of(way), graph, inputs, count, "sum");
        if (!same_bits(got, first))
            TEST_FAIL("way %d has other bits", way);
        sgm_tensor_free(got);
    }
    sgm_tensor_free(expected);
    for (int way = 0; way < WAYS - 1 && terms; way++) {
        sgm_tensor *got = result_of(handler_of(way), graph, inputs, count, "terms");
        expected = result_of(sgm_handler_create("reference"), graph, inputs, count, "terms");
        CHECK(same_bits(got, expected));
        sgm_tensor_free(expected);
        sgm_tensor_free(got);
    }
    return first;
}

/* sum(x * y) over axes; as y has `second` for its shape, it may be the same in all rows. */
static void check_products(const sgm_shape *shape, const sgm_shape *second, sgm_dtype dtype,
                           const int32_t *axes, int32_t count)
{
    sgm_tensor *bits = NULL;
    for (int seen = 0; seen < 2; seen++) {
        sgm_graph *g = sgm_graph_create();
        sgm_value x = sgm_input_value(g, "0", dtype, shape), y = sgm_input_value(g, "1", dtype, second);
        sgm_value terms = sgm_multiply(g, x, y);
        sgm_graph_add_output(g, "sum", sgm_reduce_sum(g, terms, axes, count, false));
        if (seen == 1)
            sgm_graph_add_output(g, "terms", terms);
        input inputs[] = {{dtype, *shape, -0.5, 1}, {dtype, *second, 0, 1}};
        sgm_tensor *got = check_sum(g, inputs, 2, seen == 1);
        if (seen == 1) {
            CHECK(same_bits(got, bits));
            sgm_tensor_free(bits);
            sgm_tensor_free(got);
        }
        bits = got;
        sgm_graph_free(g);
    }
}

TEST(sums_over_everything)
{
    static const sgm_shape shapes[] = {TEST_SHAPE(5001), TEST_SHAPE(32768), TEST_SHAPE(301, 203),
                                       TEST_SHAPE(7, 20, 300)};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        check_products(&shapes[i], &shapes[i], SGM_FLOAT32, (const int32_t[]){0, 1, 2}, shapes[i].rank);
        sgm_shape row = {.rank = 1, .dims = {shapes[i].dims[shapes[i].rank - 1]}};
        check_products(&shapes[i], &row, SGM_FLOAT32, (const int32_t[]){0, 1, 2}, shapes[i].rank);
    }
    check_products(DIMS(70000), DIMS(70000), SGM_FLOAT64, (const int32_t[]){0}, 1);
}

TEST(sums_of_rows)
{
    static const sgm_shape shapes[] = {TEST_SHAPE(900, 5), TEST_SHAPE(33, 1000), TEST_SHAPE(2000, 17),
                                       TEST_SHAPE(3, 33000)};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        sgm_shape row = {.rank = 1, .dims = {shapes[i].dims[1]}};
        check_products(&shapes[i], &shapes[i], SGM_FLOAT32, (const int32_t[]){1}, 1);
        check_products(&shapes[i], &row, SGM_FLOAT32, (const int32_t[]){1}, 1);
        check_products(&shapes[i], &shapes[i], SGM_FLOAT32, (const int32_t[]){0}, 1);
    }
    check_products(DIMS(50, 300), DIMS(50, 300), SGM_FLOAT64, (const int32_t[]){1}, 1);
    check_products(DIMS(6, 70, 30), DIMS(6, 70, 30), SGM_FLOAT32, (const int32_t[]){1, 2}, 2);
}

/* Batches of channels, with lines that are long, short, and too short to be parts; factors of all elements,
 * of channels, and of places. */
TEST(sums_of_channels)
{
    static const sgm_shape shapes[] = {TEST_SHAPE(5, 40, 9, 8), TEST_SHAPE(64, 3, 50, 41),
                                       TEST_SHAPE(2, 7, 130, 126), TEST_SHAPE(9, 33, 5, 6),
                                       TEST_SHAPE(2, 2, 150, 121)};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const sgm_shape *shape = &shapes[i];
        const int32_t axes[] = {0, 2, 3};
        check_products(shape, shape, SGM_FLOAT32, axes, 3);
        check_products(shape, DIMS(1, shape->dims[1], 1, 1), SGM_FLOAT32, axes, 3);
        check_products(shape, DIMS(1, 1, shape->dims[2], shape->dims[3]), SGM_FLOAT32, axes, 3);
    }
    check_products(DIMS(8, 6, 64), DIMS(8, 6, 64), SGM_FLOAT64, (const int32_t[]){0, 2}, 2);
}

/* The step makes other values, too, which are read before and after. */
TEST(sums_of_steps_that_make_more)
{
    sgm_graph *g = sgm_graph_create();
    sgm_value x = sgm_input_value(g, "0", SGM_FLOAT32, DIMS(90, 700)),
              bias = sgm_input_value(g, "1", SGM_FLOAT32, DIMS(700));
    sgm_value y = sgm_maximum(g, sgm_add(g, x, bias), sgm_number(g, 0)), squares = sgm_square(g, y);
    sgm_value sum = sgm_reduce_sum(g, squares, (const int32_t[]){0, 1}, 2, false);
    sgm_graph_add_output(g, "sum", sum);
    sgm_graph_add_output(g, "terms", sgm_subtract(g, y, x));
    sgm_tensor_free(check_sum(g, (input[]){F32(90, 700), F32(700)}, 2, true));
    sgm_graph_free(g);
}

/* What is drawn at random is added up. */
TEST(sums_of_random_numbers)
{
    sgm_graph *g = sgm_graph_create();
    sgm_value seed = sgm_number(g, 5), x = sgm_input_value(g, "0", SGM_FLOAT32, DIMS(80, 90));
    seed = sgm_cast(g, sgm_add(g, seed, sgm_filled_like(g, seed, 1)), SGM_INT64);
    sgm_value r = sgm_random_uniform(g, seed, seed, 0, SGM_FLOAT32, DIMS(80, 90));
    sgm_graph_add_output(g, "sum",
                         sgm_reduce_sum(g, sgm_multiply(g, x, r), (const int32_t[]){0, 1}, 2, false));
    sgm_tensor_free(check_sum(g, (input[]){{SGM_FLOAT32, TEST_SHAPE(80, 90), 0, 1}}, 1, false));
    sgm_graph_free(g);
}

/* Squares of gradients and their sums come right after the products that make the gradients. */
TEST(norms_are_taken_while_gradients_are_made)
{
    sgm_graph *g = sgm_graph_create();
    sgm_value x = sgm_input_value(g, "0", SGM_FLOAT32, DIMS(20, 300)), w[2], gradients[2];
    w[0] = sgm_input_value(g, "1", SGM_FLOAT32, DIMS(300, 300));
    w[1] = sgm_input_value(g, "2", SGM_FLOAT32, DIMS(300, 300));
    sgm_value y = sgm_matmul(g, sgm_relu(g, sgm_matmul(g, x, w[0])), w[1]);
    CHECK_OK(sgm_gradients(g, sgm_mean(g, sgm_square(g, y)), w, 2, gradients));
    sgm_value squares[2];
    for (int i = 0; i < 2; i++)
        squares[i] = sgm_reduce_sum(g, sgm_square(g, gradients[i]), (const int32_t[]){0, 1}, 2, false);
    sgm_graph_add_output(g, "norm", sgm_square_root(g, sgm_add(g, squares[0], squares[1])));
    sgm_handler *handler = handler_of(0);
    sgm_session *session = sgm_session_create(handler);
    sgm_program *program = sgm_session_prepare(session, g);
    CHECK_OK(program);
    char *text = sgm_program_text(program);
    const char *sum, *product = text;
    CHECK((sum = strstr(text, "= reduce_sum")) != NULL);
    for (int i = 0; i < 5; i++)
        CHECK((product = strstr(product + 1, "= matmul")) != NULL);
    CHECK(sum < product);
    sgm_string_free(text);
    sgm_session_free(session);
    sgm_handler_free(handler);
    sgm_graph_free(g);
}

/* A layer's gradient, large enough that its blocks run with their squares, and what is clipped by its norm.
 */
static sgm_graph *clipped(const sgm_shape *weights, int64_t batch, bool seen)
{
    sgm_graph *g = sgm_graph_create();
    sgm_shape inputs = TEST_SHAPE(batch, weights->dims[0]);
    sgm_value x = sgm_input_value(g, "0", SGM_FLOAT32, &inputs),
              w = sgm_input_value(g, "1", SGM_FLOAT32, weights), gradient;
    CHECK_OK(sgm_gradients(g, sgm_mean(g, sgm_square(g, sgm_matmul(g, x, w))), &w, 1, &gradient));
    sgm_value squares = sgm_square(g, gradient);
    sgm_value norm = sgm_square_root(g, sgm_reduce_sum(g, squares, (const int32_t[]){0, 1}, 2, false));
    sgm_graph_add_output(g, "sum", norm);
    sgm_graph_add_output(
        g, "new", sgm_subtract(g, w, sgm_multiply(g, gradient, sgm_divide(g, sgm_number(g, 0.1), norm))));
    if (seen)
        sgm_graph_add_output(g, "squares", squares);
    CHECK_OK(sgm_graph_status(g));
    return g;
}

TEST(products_run_with_the_norm_of_what_they_make)
{
    static const sgm_shape shapes[] = {TEST_SHAPE(301, 257), TEST_SHAPE(384, 512)};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        sgm_graph *g = clipped(&shapes[i], 24, false), *seen = clipped(&shapes[i], 24, true);
        sgm_shape rows = TEST_SHAPE(24, shapes[i].dims[0]);
        input inputs[] = {{SGM_FLOAT32, rows, -1, 1}, {SGM_FLOAT32, shapes[i], -1, 1}};
        sgm_tensor *norm = check_sum(g, inputs, 2, false), *other = check_sum(seen, inputs, 2, false);
        CHECK(same_bits(norm, other));
        sgm_tensor *first = result_of(handler_of(0), g, inputs, 2, "new");
        sgm_tensor *expected = result_of(sgm_handler_create("reference"), g, inputs, 2, "new");
        check_near(first, expected, 1e-5, "clipped");
        for (int way = 1; way < WAYS; way++) {
            sgm_tensor *got = result_of(handler_of(way), g, inputs, 2, "new");
            CHECK(same_bits(got, first));
            sgm_tensor_free(got);
        }
        sgm_tensor_free(first);
        sgm_tensor_free(expected);
        sgm_tensor_free(norm);
        sgm_tensor_free(other);
        sgm_graph_free(g);
        sgm_graph_free(seen);
    }
}
