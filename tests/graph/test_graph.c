/* Recording: what graphs hold, what they refuse, and how they say so. */
#include "base/allocator.h"
#include "graph/graph_internal.h"
#include "handlers/graphs.h"

static sgm_value input(sgm_graph *graph, const char *name, const sgm_shape *shape)
{
    return sgm_input_value(graph, name, SGM_FLOAT32, shape);
}

static bool has_shape(const sgm_graph *graph, sgm_value value, const sgm_shape *shape)
{
    sgm_type type = sgm_value_type(graph, value);
    return sgm_shape_equal(&type.shape, shape);
}

/* --- failures --- */

TEST(errors_name_layer_operation_and_both_shapes)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_graph_push_label(graph, "2-dense");
    CHECK(!sgm_value_exists(
        sgm_matmul(graph, input(graph, "x", DIMS(100, 784)), input(graph, "w", DIMS(10, 32)))));
    CHECK_ERROR(sgm_graph_status(graph), "layer 2-dense: matmul: ");
    CHECK_ERROR(sgm_graph_status(graph), "(100, 784)");
    CHECK_ERROR(sgm_graph_status(graph), "(10, 32)");
    CHECK_INT(sgm_graph_status(graph), SGM_ERROR_SHAPE);
    sgm_graph_clear(graph);
    CHECK(!sgm_value_exists(sgm_add(graph, input(graph, "x", DIMS(2, 3)), input(graph, "w", DIMS(4)))));
    CHECK_ERROR(sgm_graph_status(graph), "add: the shapes (2, 3) and (4,)");
    sgm_graph_clear(graph);
    sgm_value counts = sgm_input_value(graph, "counts", SGM_INT64, DIMS(3));
    CHECK(!sgm_value_exists(sgm_multiply(graph, input(graph, "x", DIMS(3)), counts)));
    CHECK_ERROR(sgm_graph_status(graph), "multiply: wants equal types, got float32 (3,) and int64 (3,)");
    CHECK_INT(sgm_graph_status(graph), SGM_ERROR_TYPE);
    sgm_graph_free(graph);
}

TEST(the_first_failure_stays)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = input(graph, "x", DIMS(2));
    sgm_value bad = sgm_reshape(graph, x, DIMS(3));
    int32_t count = sgm_graph_count(graph);
    sgm_value next = sgm_add(graph, bad, x);
    sgm_graph_add_output(graph, "", next);
    sgm_assign(graph, x, x);
    CHECK(!sgm_value_exists(sgm_tanh(graph, x)));
    CHECK(!sgm_value_exists(sgm_number(graph, 1)));
    CHECK(!sgm_value_exists(sgm_constant(graph, NULL)));
    CHECK(!sgm_value_exists(sgm_state(graph, "s", SGM_FLOAT32, DIMS(2))));
    sgm_value gradient;
    CHECK_ERROR(sgm_gradients(graph, next, &x, 1, &gradient), "reshape: ");
    CHECK_INT(sgm_graph_count(graph), count);
    sgm_fail(SGM_ERROR_FILE, "something else");
    CHECK_ERROR(sgm_graph_status(graph), "reshape: (2,) has 2 elements and cannot become (3,)");
    CHECK(sgm_graph_text(graph) == NULL);
    sgm_graph_clear(graph);
    CHECK_OK(sgm_graph_status(graph));
    CHECK_INT(sgm_graph_count(graph), 0);
    sgm_graph_add_output(graph, "y", sgm_tanh(graph, input(graph, "x", DIMS(5))));
    CHECK_OK(sgm_graph_verify(graph));
    sgm_graph_free(graph);
}

TEST(without_a_graph_nothing_happens)
{
    sgm_graph_push_label(NULL, "a");
    sgm_graph_pop_label(NULL);
    sgm_graph_clear(NULL);
    sgm_graph_free(NULL);
    sgm_graph_add_output(NULL, "y", (sgm_value){0});
    sgm_assign(NULL, (sgm_value){0}, (sgm_value){0});
    CHECK(!sgm_value_exists(input(NULL, "x", DIMS(2))));
    CHECK(!sgm_value_exists(sgm_add(NULL, (sgm_value){0}, (sgm_value){0})));
    CHECK(!sgm_value_exists(sgm_number(NULL, 1)));
    CHECK_INT(sgm_graph_count(NULL), 0);
    CHECK_ERROR(sgm_graph_status(NULL), "the graph is NULL");
    sgm_type type = sgm_value_type(NULL, (sgm_value){0});
    CHECK(type.dtype == SGM_FLOAT32 && type.shape.rank == 0);
}

TEST(values_of_another_graph_are_refused)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = input(graph, "x", DIMS(2)), far = {7};
    CHECK(!sgm_value_exists(sgm_add(graph, x, far)));
    CHECK_ERROR(sgm_graph_status(graph), "add: input 1 is not a value of this graph");
    sgm_graph_clear(graph);
    sgm_tanh(graph, (sgm_value){-1});
    CHECK_ERROR(sgm_graph_status(graph), "tanh: input 0 is nothing");
    sgm_graph_clear(graph);
    sgm_graph_add_output(graph, "y", far);
    CHECK_ERROR(sgm_graph_status(graph), "output 'y' has no name or no value of this graph");
    sgm_graph_clear(graph);
    sgm_assign(graph, far, far);
    CHECK_ERROR(sgm_graph_status(graph), "only a state of this graph can be assigned");
    sgm_graph_free(graph);
}

TEST(wrong_numbers_of_inputs)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = input(graph, "x", DIMS(2)), three[] = {x, x, x};
    sgm_record(graph, sgm_find_op("add"), three, 3, NULL);
    CHECK_ERROR(sgm_graph_status(graph), "add: takes 2 to 2 inputs, 3 were given");
    static const sgm_op old = {.api = 77, .name = "old", .min_inputs = 1, .max_inputs = 1};
    static const sgm_op empty = {.api = SGM_OP_API, .name = "empty", .min_inputs = 1, .max_inputs = 1};
    sgm_graph_clear(graph);
    x = input(graph, "x", DIMS(2));
    sgm_record(graph, &old, &x, 1, NULL);
    CHECK_ERROR(sgm_graph_status(graph), "old: made for interface 77");
    sgm_graph_clear(graph);
    x = input(graph, "x", DIMS(2));
    sgm_record(graph, &empty, &x, 1, NULL);
    CHECK_ERROR(sgm_graph_status(graph), "empty: its table has neither infer nor compose");
    sgm_graph_free(graph);
}

TEST(results_too_large_for_any_memory)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = input(graph, "x", DIMS(1, INT64_C(1) << 31));
    sgm_value column = input(graph, "column", DIMS(INT64_C(1) << 31, 1));
    CHECK(!sgm_value_exists(sgm_add(graph, x, column)));
    CHECK_ERROR(sgm_graph_status(graph), "add: ");
    CHECK_INT(sgm_graph_status(graph), SGM_ERROR_SHAPE);
    sgm_graph_clear(graph);
    input(graph, "x", &(const sgm_shape){2, {-1, 3}});
    CHECK_ERROR(sgm_graph_status(graph), "input 'x' has the impossible shape (-1, 3)");
    sgm_graph_free(graph);
}

/* --- numbers and broadcasting --- */

TEST(numbers_take_the_type_they_meet)
{
    sgm_graph *graph = sgm_graph_create();
    static const sgm_dtype dtypes[] = {SGM_FLOAT64, SGM_INT32, SGM_BFLOAT16, SGM_UINT8};
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        sgm_value x = sgm_input_value(graph, sgm_dtype_name(dtypes[i]), dtypes[i], DIMS(2, 3));
        sgm_value two = sgm_number(graph, 2);
        CHECK_INT(sgm_value_type(graph, sgm_add(graph, x, two)).dtype, dtypes[i]);
        CHECK_INT(sgm_value_type(graph, sgm_add(graph, two, x)).dtype, dtypes[i]);
        CHECK_INT(sgm_value_type(graph, two).dtype, SGM_FLOAT32); /* the number itself stays */
        CHECK_INT(sgm_value_type(graph, sgm_less(graph, x, two)).dtype, SGM_BOOL);
        sgm_value chosen = sgm_select(graph, sgm_less(graph, x, two), two, x);
        CHECK_INT(sgm_value_type(graph, chosen).dtype, dtypes[i]);
        CHECK(has_shape(graph, chosen, DIMS(2, 3)));
    }
    sgm_value sum = sgm_add(graph, sgm_number(graph, 1), sgm_number(graph, 2));
    CHECK(sgm_value_type(graph, sum).dtype == SGM_FLOAT32 && has_shape(graph, sum, SCALAR));
    CHECK_OK(sgm_graph_verify(graph));
    sgm_value counts = sgm_input_value(graph, "counts", SGM_INT64, DIMS(3));
    sgm_multiply(graph, counts, sgm_number(graph, 0.5));
    CHECK_ERROR(sgm_graph_status(graph), "multiply: the number 0.5 is no int64");
    sgm_graph_free(graph);
}

TEST(elementwise_operations_broadcast)
{
    static const struct {
        sgm_shape a, b, result;
    } cases[] = {{TEST_SHAPE(2, 3), TEST_SHAPE(3), TEST_SHAPE(2, 3)},
                 {TEST_SHAPE(4, 1, 3), TEST_SHAPE(2, 1), TEST_SHAPE(4, 2, 3)},
                 {{0}, TEST_SHAPE(5), TEST_SHAPE(5)},
                 {TEST_SHAPE(1), TEST_SHAPE(0), TEST_SHAPE(0)},
                 {TEST_SHAPE(1, 1), {0}, TEST_SHAPE(1, 1)}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sgm_graph *graph = sgm_graph_create();
        sgm_value a = input(graph, "a", &cases[i].a), b = input(graph, "b", &cases[i].b);
        CHECK(has_shape(graph, sgm_subtract(graph, a, b), &cases[i].result));
        CHECK(has_shape(graph, sgm_subtract(graph, b, a), &cases[i].result));
        CHECK_OK(sgm_graph_verify(graph));
        sgm_graph_free(graph);
    }
}

/* The operands of another instruction, and its attributes, live in arrays that grow. */
TEST(operands_may_be_those_of_another_instruction)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = input(graph, "x", DIMS(2, 2)), many[10];
    for (int i = 0; i < 10; i++)
        many[i] = x;
    sgm_value wide = sgm_concatenate(graph, many, 10, 1);
    for (int i = 0; i < 100; i++) {
        const sgm_value *inputs;
        sgm_value product = sgm_matmul(graph, x, x), before = i % 2 == 0 ? product : wide;
        int32_t count = sgm_value_inputs(graph, before, &inputs);
        sgm_value again = sgm_record(graph, sgm_value_op(graph, before), inputs, count,
                                     sgm_value_attributes(graph, before));
        CHECK_INT(sgm_value_inputs(graph, again, &inputs), count);
        for (int32_t k = 0; k < count; k++)
            CHECK_INT(inputs[k].index, x.index);
    }
    CHECK_OK(sgm_graph_verify(graph));
    sgm_graph_free(graph);
}

/* --- names and labels --- */

TEST(labels_nest)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = input(graph, "x", DIMS(2));
    CHECK_STR(sgm_value_label(graph, x), "");
    sgm_graph_push_label(graph, "1-block");
    sgm_graph_push_label(graph, "0-dense.inner"); /* popped as one, though it has a dot */
    sgm_value inner = sgm_tanh(graph, x);
    sgm_graph_pop_label(graph);
    sgm_value outer = sgm_tanh(graph, inner);
    sgm_graph_push_label(graph, "");
    sgm_value same = sgm_sin(graph, x);
    sgm_graph_pop_label(graph);
    sgm_graph_pop_label(graph);
    sgm_graph_pop_label(graph); /* one too many */
    sgm_value none = sgm_tanh(graph, outer);
    CHECK_STR(sgm_value_label(graph, inner), "1-block.0-dense.inner");
    CHECK_STR(sgm_value_label(graph, outer), "1-block");
    CHECK_STR(sgm_value_label(graph, same), "1-block");
    CHECK_STR(sgm_value_label(graph, none), "");
    for (int i = 0; i < 100; i++)
        sgm_graph_push_label(graph, "a-rather-long-name-of-a-layer");
    sgm_value deep = sgm_cos(graph, x);
    CHECK(strlen(sgm_value_label(graph, deep)) > 200);
    for (int i = 0; i < 99; i++)
        sgm_graph_pop_label(graph);
    CHECK_STR(sgm_value_label(graph, sgm_cos(graph, x)), "a-rather-long-name-of-a-layer");
    sgm_graph_pop_label(graph);
    CHECK_STR(sgm_value_label(graph, sgm_cos(graph, x)), "");
    CHECK_OK(sgm_graph_verify(graph));
    sgm_graph_free(graph);
}

TEST(a_name_is_one_value)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = input(graph, "x", DIMS(2));
    sgm_value state = sgm_state(graph, "x", SGM_FLOAT64, DIMS(3)); /* states have names of their own */
    CHECK_INT(input(graph, "x", DIMS(2)).index, x.index);
    CHECK_INT(sgm_state(graph, "x", SGM_FLOAT64, DIMS(3)).index, state.index);
    CHECK(state.index != x.index);
    CHECK_INT(sgm_graph_count(graph), 2);
    CHECK_STR(sgm_value_name(graph, state), "x");
    CHECK_OK(sgm_graph_verify(graph));
    input(graph, "x", DIMS(3));
    CHECK_ERROR(sgm_graph_status(graph), "input 'x' is float32 (3,) here and was float32 (2,) before");
    sgm_graph_clear(graph);
    sgm_state(graph, "s", SGM_FLOAT64, DIMS(3));
    sgm_state(graph, "s", SGM_FLOAT32, DIMS(3));
    CHECK_ERROR(sgm_graph_status(graph), "state 's' is float32 (3,) here and was float64 (3,) before");
    sgm_graph_clear(graph);
    input(graph, "", DIMS(3));
    CHECK_ERROR(sgm_graph_status(graph), "input without a name");
    sgm_graph_clear(graph);
    input(graph, NULL, DIMS(3));
    CHECK_ERROR(sgm_graph_status(graph), "input without a name");
    sgm_graph_free(graph);
}

TEST(outputs_and_assignments_are_checked)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = input(graph, "x", DIMS(2));
    sgm_graph_add_output(graph, "y", x);
    sgm_graph_add_output(graph, "y", sgm_tanh(graph, x));
    CHECK_ERROR(sgm_graph_status(graph), "there are two outputs 'y'");
    sgm_graph_clear(graph);
    sgm_graph_add_output(graph, NULL, input(graph, "x", DIMS(2)));
    CHECK_ERROR(sgm_graph_status(graph), "output '' has no name");
    sgm_graph_clear(graph);
    x = input(graph, "x", DIMS(2));
    sgm_assign(graph, x, x);
    CHECK_ERROR(sgm_graph_status(graph), "only a state of this graph can be assigned");
    sgm_graph_clear(graph);
    sgm_value state = sgm_state(graph, "w", SGM_FLOAT32, DIMS(2));
    sgm_assign(graph, state, sgm_sum(graph, state));
    CHECK_ERROR(sgm_graph_status(graph), "state 'w' is float32 (2,) and cannot become float32 ()");
    sgm_graph_clear(graph);
    state = sgm_state(graph, "w", SGM_FLOAT32, DIMS(2));
    sgm_assign(graph, state, sgm_cast(graph, state, SGM_FLOAT64));
    CHECK_ERROR(sgm_graph_status(graph), "state 'w' is float32 (2,) and cannot become float64 (2,)");
    sgm_graph_clear(graph);
    state = sgm_state(graph, "w", SGM_FLOAT32, DIMS(2));
    sgm_assign(graph, state, sgm_tanh(graph, state));
    sgm_assign(graph, state, state);
    CHECK_ERROR(sgm_graph_status(graph), "state 'w' is assigned twice");
    sgm_graph_free(graph);
}

/* --- text and structure --- */

static void record_layer(sgm_graph *graph, double rate, const char *label)
{
    sgm_value x = input(graph, "x", DIMS(4, 2)), w = sgm_state(graph, "w", SGM_FLOAT32, DIMS(2, 3));
    sgm_graph_push_label(graph, label);
    sgm_value y = sgm_relu(graph, sgm_matmul(graph, x, w));
    sgm_graph_pop_label(graph);
    sgm_assign(graph, w, sgm_multiply(graph, w, sgm_number(graph, rate)));
    sgm_graph_add_output(graph, "y", y);
}

TEST(text)
{
    sgm_graph *graph = sgm_graph_create();
    record_layer(graph, 0.5, "0-dense");
    char *text = sgm_graph_text(graph);
    CHECK_STR(text, "%0 = input 'x' : float32 (4, 2)\n"
                    "%1 = state 'w' : float32 (2, 3)\n"
                    "%2 = matmul %0 %1 : float32 (4, 3)  # 0-dense\n"
                    "%3 = number [0] : float32 ()  # 0-dense\n"
                    "%4 = broadcast %3 [4, 3] : float32 (4, 3)  # 0-dense\n"
                    "%5 = maximum %4 %2 : float32 (4, 3)  # 0-dense\n"
                    "%6 = number [0.5] : float32 ()\n"
                    "%7 = broadcast %6 [2, 3] : float32 (2, 3)\n"
                    "%8 = multiply %1 %7 : float32 (2, 3)\n"
                    "assign 'w' = %8\n"
                    "output 'y' = %5\n");
    sgm_string_free(text);
    sgm_graph_clear(graph);
    text = sgm_graph_text(graph);
    CHECK_STR(text, "");
    sgm_string_free(text);
    sgm_graph_free(graph);
}

static void check_same(const sgm_graph *a, const sgm_graph *b, bool same)
{
    CHECK(sgm__graph_structure_equal(a, b) == same);
    CHECK((sgm_graph_hash(a) == sgm_graph_hash(b)) == same);
}

TEST(structure)
{
    sgm_graph *a = sgm_graph_create(), *b = sgm_graph_create();
    check_same(a, b, true);
    record_layer(a, 0.5, "0-dense");
    check_same(a, b, false);
    record_layer(b, 0.5, "7-other"); /* labels do not count */
    check_same(a, b, true);
    sgm_graph_clear(b);
    record_layer(b, 0.25, "0-dense"); /* a number does */
    check_same(a, b, false);
    sgm_graph_clear(a);
    sgm_graph_clear(b);
    sgm_graph_add_output(a, "y",
                         sgm_reduce_sum(a, input(a, "x", DIMS(2, 3)), (const int32_t[]){0}, 1, false));
    sgm_graph_add_output(b, "y", sgm_reduce_sum(b, input(b, "x", DIMS(2, 3)), (const int32_t[]){0}, 1, true));
    check_same(a, b, false);
    sgm_graph_clear(a);
    sgm_graph_clear(b);
    sgm_graph_add_output(a, "y", sgm_tanh(a, input(a, "x", DIMS(2))));
    sgm_graph_add_output(b, "y", sgm_tanh(b, input(b, "z", DIMS(2)))); /* names do */
    check_same(a, b, false);
    sgm_graph_clear(b);
    sgm_graph_add_output(b, "z", sgm_tanh(b, input(b, "x", DIMS(2))));
    check_same(a, b, false);
    sgm_graph_clear(b);
    sgm_graph_add_output(b, "y", sgm_tanh(b, input(b, "x", DIMS(3))));
    check_same(a, b, false);
    sgm_graph_clear(b);
    sgm_graph_add_output(b, "y", sgm_sin(b, input(b, "x", DIMS(2))));
    check_same(a, b, false);
    sgm_graph_clear(b);
    sgm_graph_add_output(b, "y", input(b, "x", DIMS(2)));
    sgm_tanh(b, (sgm_value){0});
    check_same(a, b, false);
    sgm_graph_free(a);
    sgm_graph_free(b);
}

/* Constants are no part of the hash, but of the structure. */
TEST(constants_are_copied_and_compared)
{
    sgm_graph *a = sgm_graph_create(), *b = sgm_graph_create();
    sgm_tensor *tensor = tensor_of(SGM_FLOAT32, DIMS(2), NUMBERS(1, 2));
    sgm_graph_add_output(a, "y", sgm_constant(a, tensor));
    sgm_graph_add_output(b, "y", sgm_constant(b, tensor));
    CHECK(sgm__graph_structure_equal(a, b));
    sgm_tensor_set(tensor, (const int64_t[]){1}, 7);
    sgm_graph_clear(b);
    sgm_graph_add_output(b, "y", sgm_constant(b, tensor));
    CHECK(!sgm__graph_structure_equal(a, b));
    CHECK_NEAR(sgm_tensor_get(a->constants[0], (const int64_t[]){1}), 2, 0);
    sgm_tensor_free(tensor);
    sgm_graph_free(a);
    sgm_graph_free(b);
}

/* --- memory --- */

/* Everything from an empty graph to a number, as a user would write it. */
static sgm_status use_everything(double *cost)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_handler *handler = sgm_handler_create("reference");
    sgm_session *session = handler != NULL ? sgm_session_create(handler) : NULL;
    sgm_tensor *tensor = sgm_tensor_create(SGM_FLOAT64, DIMS(2, 3));
    sgm_status status = tensor != NULL && session != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    sgm_graph_push_label(graph, "0-dense");
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(2, 3)), gradient;
    sgm_value w = sgm_state(graph, "w", SGM_FLOAT32, DIMS(3, 4));
    sgm_value y = sgm_softmax(graph, sgm_flip(graph, sgm_matmul(graph, x, w), 1));
    sgm_graph_pop_label(graph);
    sgm_value error = sgm_mean(graph, sgm_softplus(graph, sgm_gelu(graph, y)));
    if (status == SGM_OK)
        status = sgm_gradients(graph, error, &w, 1, &gradient);
    if (status == SGM_OK) {
        sgm_assign(graph, w, sgm_subtract(graph, w, gradient));
        sgm_value parts[] = {error, sgm_sum(graph, sgm_sort(graph, y, 1, true))};
        sgm_value column = sgm_reshape(graph, parts[0], DIMS(1));
        sgm_graph_add_output(graph, "list",
                             sgm_concatenate(graph, (const sgm_value[]){column, column}, 2, 0));
        sgm_graph_add_output(graph, "error", sgm_add(graph, parts[0], sgm_number(graph, 0)));
        status = sgm_graph_status(graph);
    }
    sgm_tensor *weights = sgm_tensor_create(SGM_FLOAT32, DIMS(3, 4));
    if (status == SGM_OK)
        status = weights != NULL ? sgm_session_set(session, "w", weights) : SGM_ERROR_MEMORY;
    sgm_program *program = status == SGM_OK ? sgm_session_prepare(session, graph) : NULL;
    if (status == SGM_OK)
        status = program != NULL ? sgm_session_feed(session, program, "x", tensor) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = sgm_session_run(session, program);
    if (status == SGM_OK)
        status = sgm_session_read_number(session, program, "error", cost);
    char *text = status == SGM_OK ? sgm_program_text(program) : NULL;
    if (status == SGM_OK && text == NULL)
        status = SGM_ERROR_MEMORY;
    sgm_string_free(text);
    sgm_tensor_free(weights);
    sgm_tensor_free(tensor);
    sgm_session_free(session);
    sgm_handler_free(handler);
    sgm_graph_free(graph);
    return status;
}

TEST(every_allocation_may_fail)
{
    long failures = 0;
    for (bool done = false; !done; failures++) {
        double cost = 0;
        sgm_clear_error();
        allocator_start(failures + 1);
        sgm_status status = use_everything(&cost);
        long live = atomic_load(&allocator_live);
        allocator_stop();
        CHECK_INT(live, 0);
        done = status == SGM_OK;
        if (!done && (status != SGM_ERROR_MEMORY || strstr(sgm_last_error(), "memory") == NULL))
            TEST_FAIL("allocation %ld: status %d, \"%s\"", failures + 1, status, sgm_last_error());
        if (done)
            CHECK(cost > 0.5 && cost < 1);
    }
    CHECK(failures > 100);
}

TEST(a_graph_is_usable_after_a_failed_allocation)
{
    for (long fail_at = 1; fail_at < 20; fail_at++) {
        sgm_graph *graph = sgm_graph_create();
        allocator_start(fail_at);
        record_layer(graph, 0.5, "0-dense");
        allocator_stop();
        sgm_graph_clear(graph);
        record_layer(graph, 0.5, "0-dense");
        CHECK_OK(sgm_graph_verify(graph));
        CHECK_INT(sgm_graph_count(graph), 9);
        sgm_graph_free(graph);
    }
}
