/* What operations refuse, and what they say about it. */
#include "op_values.h"

static sgm_value input(sgm_graph *graph, const char *name, sgm_dtype dtype, const sgm_shape *shape)
{
    return sgm_input_value(graph, name, dtype, shape);
}

/* Examples `expression`, with inputs to name in it, and expects its failure. */
#define REFUSES(expression, message)                                                                         \
    do {                                                                                                     \
        sgm_graph *g = sgm_graph_create();                                                                   \
        sgm_value x = input(g, "x", SGM_FLOAT32, OP_DIMS(2, 3)), y = input(g, "y", SGM_FLOAT32, OP_DIMS(4)); \
        sgm_value n = input(g, "n", SGM_INT64, OP_DIMS(3)), b = input(g, "b", SGM_BOOL, OP_DIMS(3));         \
        (void)x, (void)y, (void)n, (void)b;                                                                  \
        CHECK(!sgm_value_exists(expression));                                                                \
        CHECK_ERROR(sgm_graph_status(g), message);                                                           \
        sgm_graph_free(g);                                                                                   \
    } while (0)

TEST(shapes_that_do_not_fit_are_named)
{
    REFUSES(sgm_add(g, x, y), "(2, 3)");
    REFUSES(sgm_matmul(g, x, x),
            "matmul: wants (..., m, k) x (..., k, n) with equal leading dimensions, got float32 (2, 3) x "
            "float32 (2, 3)");
    REFUSES(sgm_matmul(g, x, y), "got float32 (2, 3) x float32 (4,)");
    REFUSES(sgm_dot(g, x, y), "two vectors");
    REFUSES(sgm_reshape(g, x, OP_DIMS(4, 2)), "reshape: (2, 3) has 6 elements and cannot become (4, 2)");
    REFUSES(sgm_reshape(g, x, OP_DIMS(-1, 4)), "one dimension may be -1");
    REFUSES(sgm_reshape(g, x, OP_DIMS(-1, -1)), "one dimension may be -1");
    REFUSES(sgm_broadcast(g, x, OP_DIMS(3, 3)), "broadcast: (2, 3) cannot become (3, 3)");
    REFUSES(sgm_broadcast(g, x, OP_DIMS(3)), "(2, 3) cannot become (3,)");
    const sgm_shape nine = {.rank = 9};
    REFUSES(sgm_broadcast(g, x, &nine), "broadcast: a shape has 0 to 8 dimensions, not 9");
    REFUSES(sgm_reshape(g, x, &nine), "reshape: a shape has 0 to 8 dimensions, not 9");
    REFUSES(sgm_iota(g, SGM_INT64, &nine, 0), "iota: a shape has 0 to 8 dimensions, not 9");
    REFUSES(sgm_random_uniform(g, x, x, 0, SGM_FLOAT32, &nine),
            "random_uniform: a shape has 0 to 8 dimensions, not 9");
    REFUSES(sgm_random_normal(g, x, x, 0, SGM_FLOAT32, &nine),
            "random_normal: a shape has 0 to 8 dimensions, not 9");
    REFUSES(sgm_permute(g, x, OP_AXES(0, 0)),
            "permute: shape (2, 3) wants each of its 2 axes once, got (0, 0)");
    REFUSES(sgm_permute(g, x, OP_AXES(0, 2)), "got (0, 2)");
    REFUSES(sgm_transpose(g, y), "transpose: swaps the last two axes");
    REFUSES(sgm_slice(g, x, 1, 1, 4, 1), "slice: 1 to 4 by 1 is not within axis 1 of (2, 3)");
    REFUSES(sgm_slice(g, x, 1, 2, 1, 1), "2 to 1 by 1");
    REFUSES(sgm_slice(g, x, 1, 0, 1, 0), "a step above 0");
    REFUSES(sgm_slice(g, x, 1, -4, 3, 1), "-1 to 3");
    REFUSES(sgm_pad(g, x, 0, -1, 0, 0), "none may be negative");
    REFUSES(sgm_pad(g, x, 0, INT64_MAX, 1, 0), "too large");
    REFUSES(sgm_pad(g, x, 0, 0, 0, INT64_MAX), "too large");
    REFUSES(sgm_concatenate(g, (sgm_value[]){x, y}, 2, 0),
            "input 0 is float32 (2, 3) and input 1 is float32 (4,)");
    REFUSES(sgm_concatenate(g, NULL, 0, 0), "at least one value");
    REFUSES(sgm_select(g, b, x, y), "select");
    REFUSES(sgm_inverse(g, x), "inverse: wants square matrices (..., n, n), got float32 (2, 3)");
    REFUSES(sgm_determinant(g, input(g, "large", SGM_FLOAT32, OP_DIMS(65, 65))), "at most 64 x 64");
    REFUSES(sgm_softmax(g, input(g, "none", SGM_FLOAT32, OP_DIMS(3, 0))), "wants classes in the last axis");
    REFUSES(sgm_softmax_cross_entropy_values(g, x, y),
            "wants equal shapes, got float32 (2, 3) and float32 (4,)");
    REFUSES(sgm_gather_along(g, x, n, 0), "gather_along: wants int64 or int32 indices that are shaped");
    REFUSES(sgm_scatter_add(g, y, n, 0, 5), "updates (4,) do not have the dimensions of indices (3,)");
    REFUSES(
        sgm_write_at(g, x, y, sgm_sum(g, n), 0),
        "write_at: wants a part that is as float32 (2, 3) but for axis 0, of which it has 1 to 2 entries, "
        "got float32 (4,)");
    REFUSES(sgm_write_at(g, y, sgm_slice(g, y, 0, 0, 0, 1), sgm_sum(g, n), 0), "got float32 (0,)");
    REFUSES(sgm_write_at(g, x, x, n, 0),
            "write_at: wants one index, of rank 0, as the place, got int64 (3,)");
    REFUSES(sgm_write_at(g, x, x, sgm_sum(g, n), 2), "write_at: shape (2, 3) has no axis 2");
    REFUSES(
        sgm_attention_at(g, x, x, y, sgm_sum(g, n)),
        "attention_at: wants queries (..., t, d), keys (..., s, d) and values (..., s, e) of one type, got "
        "float32 (2, 3), float32 (2, 3) and float32 (4,)");
    REFUSES(
        sgm_attention_at(g, x, x, x, n),
        "attention_at: wants one index, of rank 0, as the place, or one for each of the 2 queries, got int64 "
        "(3,)");
    REFUSES(sgm_top_k(g, y, 0, 5), "top_k: axis 0 of (4,) has no 5 largest elements");
    REFUSES(sgm_gather(g, input(g, "deep", SGM_FLOAT32, OP_DIMS(1, 1, 1, 1, 1, 1, 1, 1)),
                       input(g, "rows", SGM_INT64, OP_DIMS(1, 1)), 0),
            "more than 8 dimensions");
}

TEST(axes_that_do_not_exist_are_named)
{
    REFUSES(sgm_reduce_sum(g, x, OP_AXES(2), 1, false), "reduce_sum: shape (2, 3) has no axis 2");
    REFUSES(sgm_reduce_sum(g, x, OP_AXES(0, -2), 2, false), "axis 0 is named twice");
    REFUSES(sgm_arg_max(g, x, -3), "arg_max: shape (2, 3) has no axis -3");
    REFUSES(sgm_cumulative_sum(g, sgm_sum(g, x), 0, false), "shape () has no axis 0");
    REFUSES(sgm_iota(g, SGM_INT64, OP_DIMS(2), 1), "iota: shape (2,) has no axis 1");
    REFUSES(sgm_flip(g, x, 5), "flip: shape (2, 3) has no axis 5");
    REFUSES(sgm_flatten(g, x, 2), "flatten: shape (2, 3) has no axis 2");
}

TEST(types_that_do_not_fit_are_named)
{
    REFUSES(sgm_add(g, n, b), "add");
    REFUSES(sgm_exp(g, n), "exp: wants a float type, got int64: cast it first");
    REFUSES(sgm_divide(g, n, n), "divide: wants a float type, got int64");
    REFUSES(sgm_negate(g, b), "wants numbers, got bool");
    REFUSES(sgm_logical_and(g, b, n), "logical_and");
    REFUSES(sgm_logical_not(g, n), "wants bool, got int64: compare it with something first");
    REFUSES(sgm_select(g, n, n, n), "wants bool, got int64");
    REFUSES(sgm_gather(g, x, y, 0), "wants indices of type int64 or int32, got float32");
    REFUSES(sgm_write_at(g, x, sgm_cast(g, x, SGM_FLOAT64), sgm_sum(g, n), 0), "got float64 (2, 3)");
    REFUSES(sgm_write_at(g, x, x, sgm_sum(g, x), 0), "write_at: wants indices of type int64 or int32");
    REFUSES(sgm_attention_at(g, x, sgm_cast(g, x, SGM_FLOAT64), x, sgm_sum(g, n)), "of one type");
    REFUSES(sgm_attention_at(g, n, n, n, sgm_sum(g, n)), "attention_at: wants a float type, got int64");
    REFUSES(sgm_reduce_sum(g, b, NULL, 0, false), "wants numbers, got bool");
    REFUSES(sgm_reduce_mean(g, n, NULL, 0, false), "reduce_mean: wants a float type, got int64");
    REFUSES(sgm_matmul(g, x, sgm_cast(g, x, SGM_FLOAT64)), "wants equal types");
    REFUSES(sgm_cast(g, x, (sgm_dtype)99), "there is no type number 99");
    REFUSES(sgm_random_uniform(g, x, x, 0, SGM_FLOAT32, OP_DIMS(2)), "wants a seed as one int64");
    REFUSES(sgm_one_hot_values(g, x, 3, SGM_FLOAT32), "one_hot");
    REFUSES(sgm_clip(g, x, 2, 1), "clip: the minimum 2 is not below the maximum 1");
}

TEST(what_is_empty_has_no_largest_element)
{
    REFUSES(sgm_reduce_max(g, input(g, "e", SGM_FLOAT32, OP_DIMS(2, 0)), OP_AXES(1), 1, false),
            "axis 1 of (2, 0) is empty");
    REFUSES(sgm_arg_min(g, input(g, "e", SGM_FLOAT32, OP_DIMS(0)), 0), "axis 0 of (0,) is empty");
    REFUSES(sgm_mean(g, input(g, "e", SGM_FLOAT32, OP_DIMS(0))), "is empty");
    REFUSES(sgm_accuracy(g, input(g, "e", SGM_FLOAT32, OP_DIMS(0)), x), "wants rows with classes");
    REFUSES(sgm_accuracy(g, x, input(g, "e", SGM_FLOAT32, OP_DIMS(3))), "or that of their rows");
}

TEST(random_streams_have_24_bits)
{
    sgm_graph *g = sgm_graph_create();
    sgm_value seed = input(g, "seed", SGM_INT64, &(const sgm_shape){0});
    CHECK(sgm_value_exists(sgm_random_uniform(g, seed, seed, 0xffffff, SGM_FLOAT32, OP_DIMS(2))));
    CHECK(!sgm_value_exists(sgm_random_uniform(g, seed, seed, 0x1000000, SGM_FLOAT32, OP_DIMS(2))));
    CHECK_ERROR(sgm_graph_status(g), "stream 16777216 is not between 0 and 16777215");
    sgm_graph_free(g);
    g = sgm_graph_create();
    seed = input(g, "seed", SGM_INT64, &(const sgm_shape){0});
    sgm_random_uniform(g, seed, seed, 0, SGM_BFLOAT16, OP_DIMS(2));
    CHECK_ERROR(sgm_graph_status(g), "gives float32 or float64, not bfloat16");
    sgm_graph_free(g);
}

static void expect_run_error(sgm_graph *graph, sgm_value value, const char *message)
{
    CHECK_OK(sgm_graph_status(graph));
    CHECK_ERROR(op_compute(graph, value), message);
    sgm_graph_free(graph);
}

/* On the reference, and on a handler with kernels. */
static void expect_place_error(sgm_graph *graph, sgm_value value, const char *message)
{
    CHECK_OK(sgm_graph_status(graph));
    sgm_graph_add_output(graph, "y", value);
    static const char *const names[] = {"reference", "cpu"};
    for (int i = 0; i < 2; i++) {
        sgm_handler *handler = sgm_handler_create(names[i]);
        sgm_session *session = sgm_session_create(handler);
        sgm_program *program = sgm_session_prepare(session, graph);
        CHECK_ERROR(program != NULL ? sgm_session_run(session, program) : SGM_ERROR_ARGUMENT, message);
        sgm_session_free(session);
        sgm_handler_free(handler);
    }
    sgm_graph_free(graph);
}

TEST(places_out_of_range_stop_the_run)
{
    static const struct {
        double place;
        const char *write, *attend;
    } cases[] = {
        {-1, "index -1 is out of range: axis 0 has 3 entries", "index -1 is out of range: axis 0 has 3"},
        {2, "index 3 is out of range: axis 0 has 3 entries", NULL},
        {4, "index 4 is out of range: axis 0 has 3 entries", "index 4 is out of range: axis 0 has 3"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sgm_graph *g = sgm_graph_create();
        sgm_value all = op_constant(g, SGM_FLOAT32, OP_DIMS(3, 2), OP_LIST(1, 2, 3, 4, 5, 6));
        sgm_value part = op_constant(g, SGM_FLOAT32, OP_DIMS(2, 2), OP_LIST(7, 8, 9, 0));
        sgm_value place = sgm_sum(g, op_constant(g, SGM_INT64, NULL, OP_LIST(cases[i].place)));
        expect_place_error(g, sgm_write_at(g, all, part, place, 0), cases[i].write);
        if (cases[i].attend == NULL)
            continue;
        g = sgm_graph_create();
        all = op_constant(g, SGM_FLOAT32, OP_DIMS(3, 2), OP_LIST(1, 2, 3, 4, 5, 6));
        part = op_constant(g, SGM_FLOAT32, OP_DIMS(2, 2), OP_LIST(7, 8, 9, 0));
        place = sgm_sum(g, op_constant(g, SGM_INT64, NULL, OP_LIST(cases[i].place)));
        expect_place_error(g, sgm_attention_at(g, part, all, all, place), cases[i].attend);
        g = sgm_graph_create();
        all = op_constant(g, SGM_FLOAT32, OP_DIMS(3, 2), OP_LIST(1, 2, 3, 4, 5, 6));
        part = op_constant(g, SGM_FLOAT32, OP_DIMS(2, 2), OP_LIST(7, 8, 9, 0));
        place = op_constant(g, SGM_INT64, OP_DIMS(2), OP_LIST(1, cases[i].place));
        expect_place_error(g, sgm_attention_at(g, part, all, all, place), cases[i].attend);
    }
}

TEST(indices_out_of_range_and_singular_matrices_stop_the_run)
{
    sgm_graph *g = sgm_graph_create();
    sgm_value x = op_constant(g, SGM_FLOAT32, OP_DIMS(2, 2), OP_LIST(1, 2, 2, 4));
    sgm_value rows = op_constant(g, SGM_INT64, NULL, OP_LIST(0, 2));
    expect_run_error(g, sgm_gather(g, x, rows, 0), "index 2 is out of range: axis 0 has 2 entries");
    g = sgm_graph_create();
    x = op_constant(g, SGM_FLOAT32, NULL, OP_LIST(1, 2));
    rows = op_constant(g, SGM_INT32, NULL, OP_LIST(0, -1));
    expect_run_error(g, sgm_scatter_add(g, x, rows, 0, 5), "index -1 is out of range: axis 0 has 5 entries");
    g = sgm_graph_create();
    x = op_constant(g, SGM_FLOAT32, OP_DIMS(2, 2), OP_LIST(1, 2, 2, 4));
    rows =
        op_constant(g, SGM_INT64, OP_DIMS(2, 1), OP_LIST(2, 0)); /* within all elements, not within a row */
    expect_run_error(g, sgm_gather_along(g, x, rows, 1), "is out of range");
    g = sgm_graph_create();
    x = op_constant(g, SGM_FLOAT32, OP_DIMS(2, 2), OP_LIST(1, 2, 2, 4));
    expect_run_error(g, sgm_inverse(g, x), "a matrix is singular");
}

TEST(attributes_from_outside_are_checked)
{
    const sgm_op *slice = sgm_find_op("slice"), *reduce = sgm_find_op("reduce_sum");
    const sgm_op *permute = sgm_find_op("permute"), *reshape = sgm_find_op("reshape");
    REFUSES(sgm_record(g, slice, &x, 1, NULL), "wants 4 integers as attributes, 0 came");
    REFUSES(sgm_record(g, reduce, &x, 1, &(sgm_attributes){.integer_count = 2, .integers = {4}}),
            "the mask of axes is 0x4, but shape (2, 3) has 2 axes");
    REFUSES(sgm_record(g, permute, &x, 1, &(sgm_attributes){.integer_count = 1}), "each of its 2 axes once");
    REFUSES(sgm_record(g, reshape, &x, 1, &(sgm_attributes){.integer_count = 24}), "up to 8 dimensions");
    REFUSES(sgm_record(g, reshape, &x, 1, &(sgm_attributes){.integer_count = 2, .integers = {-2, -3}}),
            "negative dimension");
}

TEST(calls_given_nothing_return_nothing)
{
    sgm_graph *g = sgm_graph_create();
    sgm_value nothing = sgm_exp(g, sgm_input_value(g, "n", SGM_INT64, OP_DIMS(3)));
    CHECK(!sgm_value_exists(nothing));
    CHECK(!sgm_value_exists(sgm_reduce_max(g, nothing, OP_AXES(7), 1, false)));
    CHECK(!sgm_value_exists(sgm_gather_along(g, nothing, nothing, 3)));
    CHECK(!sgm_value_exists(sgm_matmul(g, nothing, nothing)));
    CHECK_ERROR(sgm_graph_status(g), "exp: wants a float type"); /* the first failure stays */
    CHECK(!sgm_value_exists(sgm_reshape(NULL, nothing, OP_DIMS(2))));
    sgm_graph_free(g);
}
