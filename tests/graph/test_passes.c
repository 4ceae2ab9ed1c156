/* Passes: what they leave out, what they keep. */
#include "graph/passes.h"
#include "handlers/graphs.h"

static sgm_value input(sgm_graph *graph, const sgm_shape *shape)
{
    return sgm_input_value(graph, "x", SGM_FLOAT32, shape);
}

static int count_ops(const sgm_graph *graph, const char *name)
{
    int count = 0;
    for (int32_t i = 0; i < sgm_graph_count(graph); i++)
        count += strcmp(sgm_value_op(graph, (sgm_value){i})->name, name) == 0;
    return count;
}

static sgm_graph *simplify(sgm_graph *graph)
{
    CHECK_OK(sgm_graph_status(graph));
    sgm_graph *simple = sgm__pass_simplify(graph);
    CHECK_OK(simple);
    CHECK_OK(sgm_graph_verify(simple));
    CHECK_INT(simple->output_count, graph->output_count);
    CHECK_INT(simple->assignment_count, graph->assignment_count);
    sgm_graph_free(graph);
    return simple;
}

/* What is left has this text. */
static void check_simplified(sgm_graph *graph, const char *expected)
{
    sgm_graph *simple = simplify(graph);
    char *text = sgm_graph_text(simple);
    CHECK_STR(text, expected);
    sgm_string_free(text);
    sgm_graph_free(simple);
}

TEST(what_nothing_needs_goes)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = input(graph, DIMS(2)), w = sgm_state(graph, "w", SGM_FLOAT32, DIMS(2));
    sgm_state(graph, "unused", SGM_FLOAT32, DIMS(2));
    sgm_tanh(graph, sgm_exp(graph, x));
    sgm_value sum = sgm_add(graph, x, w);
    sgm_sum(graph, sum);
    sgm_graph_push_label(graph, "layer");
    sgm_assign(graph, w, sgm_sin(graph, sum));
    sgm_graph_add_output(graph, "y", sgm_cos(graph, x));
    check_simplified(graph, "%0 = input 'x' : float32 (2,)\n"
                            "%1 = state 'w' : float32 (2,)\n"
                            "%2 = add %0 %1 : float32 (2,)\n"
                            "%3 = sin %2 : float32 (2,)  # layer\n"
                            "%4 = cos %0 : float32 (2,)  # layer\n"
                            "assign 'w' = %3\n"
                            "output 'y' = %4\n");
}

/* A state is kept also if only its new value counts. */
TEST(an_assigned_state_stays)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value w = sgm_state(graph, "w", SGM_FLOAT32, DIMS(2));
    sgm_assign(graph, w, input(graph, DIMS(2)));
    check_simplified(graph, "%0 = state 'w' : float32 (2,)\n"
                            "%1 = input 'x' : float32 (2,)\n"
                            "assign 'w' = %1\n");
    check_simplified(sgm_graph_create(), "");
}

TEST(duplicates_are_one)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = input(graph, DIMS(2, 3));
    const int32_t rows[] = {0}, columns[] = {1};
    sgm_value a = sgm_exp(graph, sgm_add(graph, x, sgm_number(graph, 2)));
    sgm_value b = sgm_exp(graph, sgm_add(graph, x, sgm_number(graph, 2)));
    sgm_graph_add_output(graph, "product", sgm_multiply(graph, a, b));
    sgm_graph_add_output(graph, "a", a);
    sgm_graph_add_output(graph, "b", b);
    sgm_graph_add_output(graph, "rows",
                         sgm_reduce_sum(graph, x, rows, 1, false)); /* alike, but not the same: */
    sgm_graph_add_output(graph, "columns", sgm_reduce_sum(graph, x, columns, 1, false));
    sgm_graph_add_output(graph, "kept", sgm_reduce_sum(graph, x, columns, 1, true));
    sgm_graph_add_output(graph, "difference", sgm_subtract(graph, x, sgm_number(graph, 2)));
    sgm_graph_add_output(graph, "zero", sgm_multiply(graph, x, sgm_number(graph, 0)));
    sgm_graph_add_output(graph, "minus", sgm_multiply(graph, x, sgm_number(graph, -0.0)));
    sgm_graph *simple = simplify(graph);
    CHECK_INT(count_ops(simple, "exp"), 1);
    CHECK_INT(count_ops(simple, "add"), 1);
    CHECK_INT(count_ops(simple, "number"), 3);
    CHECK_INT(count_ops(simple, "reduce_sum"), 3);
    CHECK_INT(count_ops(simple, "multiply"), 3);
    CHECK_INT(simple->outputs[1].value.index, simple->outputs[2].value.index);
    sgm_graph_free(simple);
}

/* 0.1f / 3 in single precision; what is left is the product. */
TEST(arithmetic_of_numbers_is_done_before)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = input(graph, DIMS(2)),
              third = sgm_divide(graph, sgm_number(graph, 0.1), sgm_number(graph, 3));
    sgm_graph_add_output(graph, "y", sgm_multiply(graph, x, sgm_add(graph, third, sgm_number(graph, 1))));
    sgm_graph *simple = simplify(graph);
    CHECK_INT(count_ops(simple, "number"), 1);
    CHECK_INT(count_ops(simple, "divide"), 0);
    CHECK_INT(count_ops(simple, "add"), 0);
    for (size_t i = 0; i < simple->count; i++)
        if (simple->instructions[i].op == &sgm__op_number)
            CHECK_NEAR(simple->instructions[i].attributes->numbers[0], (double)(0.1f / 3.0f + 1.0f), 0);
    sgm_graph_free(simple);
}

/* What is computed from them does not hang on what they are now. */
TEST(live_numbers_are_neither_merged_nor_left_out)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = input(graph, DIMS(2)), one = sgm_live_number(graph, 1), other = sgm_live_number(graph, 1);
    sgm_value half = sgm_divide(graph, one, sgm_number(graph, 2));
    sgm_graph_add_output(graph, "a", sgm_multiply(graph, x, one));
    sgm_graph_add_output(graph, "b", sgm_multiply(graph, x, other));
    sgm_graph_add_output(graph, "c", sgm_multiply(graph, x, half));
    sgm_graph_add_output(graph, "d", sgm_multiply(graph, x, sgm_multiply(graph, half, sgm_number(graph, 2))));
    sgm_graph *simple = simplify(graph);
    CHECK_INT(count_ops(simple, "multiply"), 4);
    CHECK_INT(count_ops(simple, "divide"), 0);
    CHECK_INT(count_ops(simple, "number"), 4);
    for (size_t i = 0; i < simple->count; i++)
        CHECK_INT(sgm__number_is_live(&simple->instructions[i]),
                  simple->instructions[i].op == &sgm__op_number);
    sgm_graph_free(simple);
}

TEST(chains_of_reshapes_are_one)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = input(graph, DIMS(4, 6)), flat = sgm_reshape(graph, x, DIMS(24));
    sgm_value y = sgm_reshape(graph, sgm_reshape(graph, flat, DIMS(2, 12)), DIMS(8, 3));
    sgm_graph_add_output(graph, "y", sgm_exp(graph, y));
    sgm_graph_add_output(graph, "same", sgm_reshape(graph, sgm_reshape(graph, flat, DIMS(3, 8)), DIMS(4, 6)));
    check_simplified(graph, "%0 = input 'x' : float32 (4, 6)\n"
                            "%1 = reshape %0 [8, 3] : float32 (8, 3)\n"
                            "%2 = exp %1 : float32 (8, 3)\n"
                            "output 'y' = %2\n"
                            "output 'same' = %0\n");
}

TEST(what_does_nothing_goes)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = input(graph, DIMS(2, 3)), w = sgm_state(graph, "w", SGM_FLOAT32, DIMS(2, 3));
    sgm_value one = sgm_number(graph, 1), y = x;
    y = sgm_multiply(graph, y, one);
    y = sgm_multiply(graph, sgm_filled_like(graph, y, 1), y);
    y = sgm_copy(graph, sgm_stop_gradient(graph, y));
    y = sgm_permute(graph, y, (const int32_t[]){0, 1});
    y = sgm_record(graph, &sgm__op_cast, &y, 1,
                   &(const sgm_attributes){.integer_count = 1, .integers = {SGM_FLOAT32}});
    y = sgm_record(graph, &sgm__op_broadcast, &y, 1,
                   &(const sgm_attributes){.integer_count = 2, .integers = {2, 3}});
    sgm_graph_add_output(graph, "y", y);
    sgm_assign(graph, w, y);
    check_simplified(graph, "%0 = input 'x' : float32 (2, 3)\n"
                            "%1 = state 'w' : float32 (2, 3)\n"
                            "assign 'w' = %0\n"
                            "output 'y' = %0\n");
}

TEST(what_does_something_stays)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = input(graph, DIMS(3, 3));
    sgm_graph_add_output(graph, "transposed", sgm_transpose(graph, x)); /* the same shape */
    sgm_graph_add_output(graph, "double", sgm_multiply(graph, x, sgm_number(graph, 2)));
    sgm_graph_add_output(graph, "inverse", sgm_divide(graph, sgm_number(graph, 1), x));
    sgm_graph_add_output(graph, "sum", sgm_add(graph, x, sgm_number(graph, 1)));
    sgm_graph_add_output(graph, "rounded", sgm_cast(graph, sgm_cast(graph, x, SGM_BFLOAT16), SGM_FLOAT32));
    int32_t count = sgm_graph_count(graph);
    sgm_graph *simple = simplify(graph);
    CHECK_INT(sgm_graph_count(simple), count - 2); /* 1 is there once, broadcast once */
    sgm_graph_free(simple);
}

TEST(what_was_only_widened_is_itself_again)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_cast(graph, input(graph, DIMS(2, 3)), SGM_BFLOAT16);
    sgm_graph_add_output(graph, "y", sgm_cast(graph, sgm_cast(graph, x, SGM_FLOAT32), SGM_BFLOAT16));
    check_simplified(graph, "%0 = input 'x' : float32 (2, 3)\n"
                            "%1 = cast %0 [6] : bfloat16 (2, 3)\n"
                            "output 'y' = %1\n");
}

/* x is of bfloat16; what is left of it in `wide` and then in `narrow`. */
static void check_widened(sgm_dtype wide, sgm_dtype narrow, const char *expected)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_BFLOAT16, DIMS(2));
    sgm_graph_add_output(graph, "y", sgm_cast(graph, sgm_cast(graph, x, wide), narrow));
    check_simplified(graph, expected);
}

TEST(what_was_widened_to_another_type_has_that_type)
{
    check_widened(SGM_FLOAT64, SGM_BFLOAT16,
                  "%0 = input 'x' : bfloat16 (2,)\n"
                  "output 'y' = %0\n");
    check_widened(SGM_FLOAT64, SGM_FLOAT32,
                  "%0 = input 'x' : bfloat16 (2,)\n"
                  "%1 = cast %0 [1] : float64 (2,)\n"
                  "%2 = cast %1 [0] : float32 (2,)\n"
                  "output 'y' = %2\n");
}

/* Numbers of two types are alike but for the type. Where both have the same place in the table of what is
 * known differs from run to run of this program, so that there are many. */
TEST(equal_numbers_of_two_types_stay_two)
{
    for (int i = 0; i < 200; i++) {
        sgm_graph *graph = sgm_graph_create();
        sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(1));
        sgm_value y = sgm_input_value(graph, "y", SGM_FLOAT64, DIMS(1));
        sgm_graph_add_output(graph, "x", sgm_multiply(graph, x, sgm_number(graph, 2 + i)));
        sgm_graph_add_output(graph, "y", sgm_multiply(graph, y, sgm_number(graph, 2 + i)));
        sgm_graph *simple = simplify(graph);
        CHECK_INT(count_ops(simple, "number"), 2);
        sgm_graph_free(simple);
    }
}

static bool is_sum(void *user, const sgm_op *op, sgm_dtype dtype)
{
    (void)user;
    return dtype == SGM_BFLOAT16 && strcmp(op->name, "reduce_sum") == 0;
}

TEST(operations_are_done_in_float32_between_casts)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = input(graph, DIMS(2, 3));
    sgm_value narrow = sgm_negate(graph, sgm_cast(graph, x, SGM_BFLOAT16));
    sgm_graph_add_output(graph, "wide", sgm_sum(graph, x));
    sgm_graph_add_output(graph, "narrow", sgm_sum(graph, narrow));
    sgm_graph *wide = sgm__pass_widen(graph, &(const sgm__widening){.widens = is_sum});
    CHECK_OK(wide);
    char *before = sgm_graph_text(graph), *after = sgm_graph_text(wide);
    CHECK_INT(sgm_graph_count(wide), sgm_graph_count(graph) + 2);
    CHECK(strstr(before, "%4 = reduce_sum %2 [3, 0] : bfloat16 ()") != NULL);
    CHECK(strstr(after, "%3 = reduce_sum %0 [3, 0] : float32 ()") != NULL);
    CHECK(strstr(after, "%4 = cast %2 [0] : float32 (2, 3)") != NULL);
    CHECK(strstr(after, "%5 = reduce_sum %4 [3, 0] : float32 ()") != NULL);
    CHECK(strstr(after, "%6 = cast %5 [6] : bfloat16 ()") != NULL);
    CHECK(strstr(after, "output 'narrow' = %6") != NULL);
    sgm_string_free(before);
    sgm_string_free(after);
    sgm_graph_free(wide);
    sgm_graph_free(graph);
}

/* --- expansion --- */

static sgm_value part(sgm_graph *graph, const sgm_value *inputs, int32_t count,
                      const sgm_attributes *attributes)
{
    (void)count, (void)attributes;
    return sgm_softplus(graph, sgm_sigmoid(graph, inputs[0]));
}

static sgm_status same_type(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                            sgm_type *result)
{
    (void)count, (void)attributes;
    *result = inputs[0];
    return SGM_OK;
}

static const sgm_op nested = {.api = SGM_OP_API,
                              .name = "nested",
                              .doc = "",
                              .min_inputs = 1,
                              .max_inputs = 1,
                              .compose = part,
                              .infer = same_type};

static bool keep_named(void *user, const sgm_op *op, sgm_dtype dtype)
{
    return dtype == SGM_FLOAT32 && strcmp(op->name, user) == 0;
}

TEST(parts_of_parts_are_expanded)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = input(graph, DIMS(2)), w = sgm_state(graph, "w", SGM_FLOAT32, DIMS(2));
    sgm_graph_push_label(graph, "layer");
    sgm_value y = sgm_record(graph, &nested, &x, 1, NULL);
    sgm_graph_pop_label(graph);
    sgm_graph_add_output(graph, "y", y);
    sgm_assign(graph, w, y);
    static char none[] = "", sigmoid[] = "sigmoid", whole[] = "nested";
    sgm_graph *all = sgm__pass_expand(graph, keep_named, none);
    CHECK_OK(all);
    for (int32_t i = 0; i < sgm_graph_count(all); i++) {
        CHECK(sgm_value_op(all, (sgm_value){i})->compose == NULL);
        CHECK_STR(sgm_value_label(all, (sgm_value){i}), i < 2 ? "" : "layer");
    }
    CHECK_INT(all->output_count, 1);
    CHECK_INT(all->assignments[0].value.index, all->outputs[0].value.index);
    sgm_graph *some = sgm__pass_expand(graph, keep_named, sigmoid);
    CHECK_INT(count_ops(some, "sigmoid"), 1);
    CHECK_INT(count_ops(some, "log1p"), 1);
    sgm_graph *same = sgm__pass_expand(graph, keep_named, whole);
    CHECK(sgm__graph_structure_equal(same, graph));
    sgm_graph_free(same);
    sgm_graph_free(some);
    sgm_graph_free(all);
    sgm_graph_free(graph);
}

static sgm_value become_float64(sgm_graph *graph, const sgm_value *inputs, int32_t count,
                                const sgm_attributes *attributes)
{
    (void)count, (void)attributes;
    return sgm_cast(graph, inputs[0], SGM_FLOAT64);
}

static const sgm_op endless;

static sgm_value itself(sgm_graph *graph, const sgm_value *inputs, int32_t count,
                        const sgm_attributes *attributes)
{
    return sgm_record(graph, &endless, inputs, count, attributes);
}

static sgm_value flatten(sgm_graph *graph, const sgm_value *inputs, int32_t count,
                         const sgm_attributes *attributes)
{
    (void)count, (void)attributes;
    return sgm_sum(graph, inputs[0]);
}

static sgm_value give_up(sgm_graph *graph, const sgm_value *inputs, int32_t count,
                         const sgm_attributes *attributes)
{
    (void)inputs, (void)count, (void)attributes;
    return sgm_graph_fail(graph, SGM_ERROR_UNSUPPORTED, "not on a %s", "Sunday");
}

static const sgm_op endless = {.api = SGM_OP_API,
                               .name = "endless",
                               .doc = "",
                               .min_inputs = 1,
                               .max_inputs = 1,
                               .compose = itself,
                               .infer = same_type};
static const sgm_op liar = {.api = SGM_OP_API,
                            .name = "liar",
                            .doc = "",
                            .min_inputs = 1,
                            .max_inputs = 1,
                            .compose = flatten,
                            .infer = same_type};
static const sgm_op stranger = {.api = SGM_OP_API,
                                .name = "stranger",
                                .doc = "",
                                .min_inputs = 1,
                                .max_inputs = 1,
                                .compose = become_float64,
                                .infer = same_type};
static const sgm_op lazy = {.api = SGM_OP_API,
                            .name = "lazy",
                            .doc = "",
                            .min_inputs = 1,
                            .max_inputs = 1,
                            .compose = give_up,
                            .infer = same_type};

TEST(wrong_compositions_are_errors)
{
    static char none[] = "";
    static const struct {
        const sgm_op *op;
        const char *message;
    } cases[] = {{&endless, "is it composed of itself?"},
                 {&liar, "liar: what it is composed of has another type than its rule says"},
                 {&stranger, "stranger: what it is composed of has another type than its rule says"},
                 {&lazy, "not on a Sunday"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sgm_graph *graph = sgm_graph_create();
        sgm_value x = input(graph, DIMS(2));
        sgm_graph_add_output(graph, "y", sgm_record(graph, cases[i].op, &x, 1, NULL));
        CHECK_OK(sgm_graph_status(graph));
        CHECK_ERROR(sgm__pass_expand(graph, keep_named, none), cases[i].message);
        sgm_graph_free(graph);
    }
}

TEST(a_copy_is_equal)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_tensor *tensor = tensor_of(SGM_FLOAT32, DIMS(2), NUMBERS(1, 2));
    sgm_value w = sgm_state(graph, "w", SGM_FLOAT32, DIMS(2));
    sgm_assign(graph, w, sgm_add(graph, w, sgm_constant(graph, tensor)));
    sgm_graph_add_output(graph, "y", sgm_softmax(graph, w));
    sgm_tanh(graph, w); /* also what is dead */
    sgm_graph *copy = sgm__graph_copy(graph);
    CHECK(sgm__graph_structure_equal(graph, copy));
    CHECK(sgm_graph_hash(graph) == sgm_graph_hash(copy));
    sgm_tensor_free(tensor);
    sgm_graph_free(graph);
    CHECK_OK(sgm_graph_verify(copy));
    sgm_graph_free(copy);
}

/* --- sums and concatenations --- */

static sgm_graph *better(sgm_graph *graph, sgm_graph *(*pass)(const sgm_graph *))
{
    CHECK_OK(sgm_graph_status(graph));
    sgm_graph *result = pass(graph);
    CHECK_OK(result);
    CHECK_OK(sgm_graph_verify(result));
    sgm_graph_free(graph);
    return simplify(result);
}

static sgm_value add_padded(sgm_graph *graph, sgm_value sum, sgm_value part, int64_t before, int64_t after)
{
    sgm_value padded = sgm_pad(graph, part, 0, before, after, 0);
    return sgm_value_exists(sum) ? sgm_add(graph, sum, padded) : padded;
}

TEST(padded_parts_that_do_not_overlap_are_put_together)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = input(graph, DIMS(2, 3)), sum = {-1};
    sum = add_padded(graph, sum, sgm_exp(graph, x), 5, 0);
    sum = add_padded(graph, sum, sgm_sin(graph, x), 0, 5);
    sum = add_padded(graph, sum, sgm_cos(graph, x), 2, 3);
    sgm_graph_add_output(graph, "y", sum);
    graph = better(graph, sgm__pass_sums);
    CHECK_INT(count_ops(graph, "pad"), 0);
    CHECK_INT(count_ops(graph, "add"), 0);
    CHECK_INT(count_ops(graph, "concatenate"), 1);
    char *text = sgm_graph_text(graph);
    CHECK(strstr(text, "concatenate %2 %3 %5 %1") != NULL); /* sin, cos, zeros, exp */
    sgm_string_free(text);
    sgm_graph_free(graph);
}

TEST(padded_parts_that_overlap_or_are_used_stay_apart)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = input(graph, DIMS(2, 3)), y = {-1};
    y = add_padded(graph, y, sgm_exp(graph, x), 0, 4);
    y = add_padded(graph, y, sgm_sin(graph, x), 1, 3);
    sgm_graph_add_output(graph, "y", y);
    sgm_value used = sgm_pad(graph, sgm_tan(graph, x), 0, 0, 4, 0);
    sgm_graph_add_output(graph, "used", used);
    sgm_graph_add_output(graph, "z", sgm_add(graph, used, sgm_pad(graph, sgm_cos(graph, x), 0, 2, 2, 0)));
    graph = better(graph, sgm__pass_sums);
    CHECK_INT(count_ops(graph, "pad"), 4);
    CHECK_INT(count_ops(graph, "add"), 2);
    CHECK_INT(count_ops(graph, "concatenate"), 0);
    sgm_graph_free(graph);
}

/* x1' y1 + x2' y2 + ... with `count` terms; `other` is added in the middle. */
static sgm_graph *sum_of_products(int32_t count, int64_t depth, bool other)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = input(graph, DIMS(depth, 8)), sum = {-1}, steps[8];
    for (int32_t i = 0; i < count; i++) {
        steps[i] = sgm_multiply(graph, x, sgm_number(graph, i + 2));
        sgm_value term =
            sgm_matmul(graph, sgm_transpose(graph, steps[i]), sgm_add(graph, x, sgm_number(graph, i)));
        sum = sgm_value_exists(sum) ? sgm_add(graph, sum, term) : term;
        if (other && i == 1)
            sum = sgm_add(graph, sum, sgm_state(graph, "w", SGM_FLOAT32, DIMS(8, 8)));
    }
    sgm_graph_add_output(graph, "y", sum);
    sgm_graph_add_output(graph, "steps", sgm_concatenate(graph, steps, count, 0));
    return graph;
}

TEST(sums_of_products_are_one_product)
{
    sgm_graph *graph = better(sum_of_products(4, 2, true), sgm__pass_sums);
    CHECK_INT(count_ops(graph, "matmul"), 1);
    CHECK_INT(count_ops(graph, "permute"), 1);
    CHECK_INT(count_ops(graph, "concatenate"), 2); /* one of the left sides is there anyway */
    sgm_graph_free(graph);
    graph = better(sum_of_products(2, 40, false), sgm__pass_sums); /* copies would cost more */
    CHECK_INT(count_ops(graph, "matmul"), 2);
    sgm_graph_free(graph);
}

TEST(concatenations_within_others_are_slices)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = input(graph, DIMS(2, 3)), parts[4];
    for (int32_t i = 0; i < 4; i++)
        parts[i] = sgm_add(graph, x, sgm_number(graph, i + 1));
    sgm_graph_add_output(graph, "before", sgm_exp(graph, sgm_concatenate(graph, parts + 1, 2, 0)));
    sgm_graph_add_output(graph, "other axis", sgm_concatenate(graph, parts + 1, 2, 1));
    sgm_graph_add_output(graph, "other order",
                         sgm_concatenate(graph, (sgm_value[]){parts[2], parts[1]}, 2, 0));
    sgm_graph_add_output(graph, "all", sgm_sin(graph, sgm_concatenate(graph, parts, 4, 0)));
    sgm_graph_add_output(graph, "after", sgm_concatenate(graph, parts, 3, 0));
    graph = better(graph, sgm__pass_runs);
    CHECK_INT(count_ops(graph, "concatenate"), 3);
    CHECK_INT(count_ops(graph, "slice"), 2);
    sgm_graph_free(graph);
}

/* What is made of the first part is in the whole, which cannot come first then. */
TEST(a_whole_that_is_made_of_its_part_is_not_waited_for)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = input(graph, DIMS(2, 3)), parts[3] = {sgm_exp(graph, x), sgm_sin(graph, x)};
    sgm_value first = sgm_concatenate(graph, parts, 2, 0);
    parts[2] = sgm_cos(graph, first);
    sgm_graph_add_output(graph, "y", sgm_concatenate(graph, parts, 3, 0));
    graph = better(graph, sgm__pass_runs);
    CHECK_INT(count_ops(graph, "concatenate"), 2);
    CHECK_INT(count_ops(graph, "slice"), 0);
    sgm_graph_free(graph);
}

/* Each of two could wait for a longer one that comes later, but not both: they would wait for each other. */
TEST(concatenations_do_not_wait_in_a_circle)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = input(graph, DIMS(2, 3)), p[3], q[3];
    p[0] = sgm_exp(graph, x), p[1] = sgm_sin(graph, x), q[0] = sgm_cos(graph, x), q[1] = sgm_tanh(graph, x);
    sgm_value a = sgm_concatenate(graph, p, 2, 0), b = sgm_concatenate(graph, q, 2, 0);
    p[2] = sgm_negate(graph, b);
    q[2] = sgm_negate(graph, a);
    sgm_graph_add_output(graph, "p", sgm_concatenate(graph, p, 3, 0));
    sgm_graph_add_output(graph, "q", sgm_concatenate(graph, q, 3, 0));
    graph = better(graph, sgm__pass_runs);
    CHECK_INT(graph->output_count, 2);
    CHECK_INT(count_ops(graph, "concatenate"), 4);
    sgm_graph_free(graph);
}

/* --- powers --- */

typedef sgm_value (*exponent_function)(sgm_graph *graph, double exponent);

static sgm_value as_number(sgm_graph *graph, double exponent)
{
    return sgm_number(graph, exponent);
}

static sgm_value as_live_number(sgm_graph *graph, double exponent)
{
    return sgm_live_number(graph, exponent);
}

/* As models have it: a tensor of another type. */
static sgm_value as_constant(sgm_graph *graph, double exponent)
{
    sgm_shape shape = sgm_shape_of(1);
    sgm_tensor *tensor = sgm_tensor_create_from(SGM_FLOAT64, &shape, &exponent);
    sgm_value value = sgm_cast(graph, sgm_constant(graph, tensor), SGM_FLOAT32);
    sgm_tensor_free(tensor);
    return value;
}

/* How many powers and how many products are left of one power. */
static void check_power(exponent_function given, double exponent, int powers, int products)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = input(graph, DIMS(2, 3));
    sgm_graph_add_output(graph, "y", sgm_power(graph, x, given(graph, exponent)));
    sgm_graph *made = sgm__pass_powers(graph);
    CHECK_OK(made);
    CHECK_OK(sgm_graph_verify(made));
    CHECK_INT(count_ops(made, "power"), powers);
    CHECK_INT(count_ops(made, "multiply"), products);
    sgm_graph_free(made);
    sgm_graph_free(graph);
}

TEST(small_powers_are_products)
{
    static const int products[] = {0, 0, 1, 2, 2, 3, 3, 4, 3};
    for (int i = 0; i <= 8; i++) {
        check_power(as_number, i, 0, products[i]);
        check_power(as_constant, i, 0, products[i]);
        check_power(as_number, -i, 0, products[i]);
        check_power(as_live_number, i, 1, 0); /* it may become another */
    }
    check_power(as_number, 9, 1, 0);
    check_power(as_number, 2.5, 1, 0);
    check_power(as_constant, 0.5, 1, 0);
    check_power(as_number, NAN, 1, 0);
    check_power(as_number, INFINITY, 1, 0);
}

/* What pow() of C says, on each handler of this process. */
TEST(powers_have_the_same_values)
{
    static const double x[] = {-INFINITY, -3, -1e-30, -0.0, 0, 1e-19, 0.7, 1, 1e19, 3e38, INFINITY, NAN};
    enum { COUNT = sizeof x / sizeof *x };
    static const char *const handlers[] = {"reference", "cpu"};
    for (int k = 0; k < 2; k++)
        for (int exponent = -8; exponent <= 8; exponent++) {
            sgm_handler *handler = sgm_handler_create(handlers[k], .threads = 1);
            sgm_session *session = sgm_session_create(handler);
            sgm_graph *graph = sgm_graph_create();
            sgm_value value = input(graph, DIMS(COUNT));
            sgm_graph_add_output(graph, "y", sgm_power(graph, value, sgm_number(graph, exponent)));
            sgm_program *program = sgm_session_prepare(session, graph);
            CHECK_OK(program);
            if (exponent != 0) /* then it is 1 */
                feed(session, program, "x", SGM_FLOAT32, DIMS(COUNT), x);
            CHECK_OK(sgm_session_run(session, program));
            double got[COUNT];
            sgm_tensor *tensor = sgm_tensor_create(SGM_FLOAT32, DIMS(COUNT));
            CHECK_OK(sgm_session_read(session, program, "y", tensor));
            CHECK_OK(sgm_tensor_read(tensor, got, COUNT));
            for (int i = 0; i < COUNT; i++) {
                double expected = (double)powf((float)x[i], (float)exponent);
                double size = fabs(expected) < 1.2e-38 ? 1.2e-38 : 1e-6 * fabs(expected);
                if (!test_near(got[i], expected, size))
                    TEST_FAIL("%s: %g to the %d is %.9g, expected %.9g", handlers[k], x[i], exponent, got[i],
                              expected);
            }
            sgm_tensor_free(tensor);
            sgm_graph_free(graph);
            sgm_session_free(session);
            sgm_handler_free(handler);
        }
}
