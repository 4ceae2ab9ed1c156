/* The reference handler: numbers that are known, rounding, exact integers, no memory taken in a run. */
#include "base/allocator.h"
#include "handlers/graphs.h"

typedef struct setting {
    sgm_handler *handler;
    sgm_session *session;
    sgm_graph *graph;
} setting;

static setting set_up(const char *name)
{
    setting it = {.handler = sgm_handler_create(name), .graph = sgm_graph_create()};
    it.session = sgm_session_create(it.handler);
    CHECK_OK(it.session);
    CHECK_OK(it.graph);
    return it;
}

static sgm_program *prepare(const setting *it)
{
    CHECK_OK(sgm_graph_status(it->graph));
    sgm_program *program = sgm_session_prepare(it->session, it->graph);
    CHECK_OK(program);
    return program;
}

static void tear_down(setting *it)
{
    sgm_session_free(it->session);
    sgm_handler_free(it->handler);
    sgm_graph_free(it->graph);
}

TEST(dense_layer_by_hand)
{
    setting it = set_up("reference");
    sgm_value x = sgm_input_value(it.graph, "x", SGM_FLOAT32, DIMS(2, 3));
    sgm_value w = sgm_state(it.graph, "w", SGM_FLOAT32, DIMS(3, 2));
    sgm_value b = sgm_state(it.graph, "b", SGM_FLOAT32, DIMS(2));
    sgm_value y = sgm_add(it.graph, sgm_matmul(it.graph, x, w), b);
    sgm_graph_add_output(it.graph, "y", y);
    sgm_graph_add_output(it.graph, "positive", sgm_maximum(it.graph, y, sgm_number(it.graph, 0)));
    sgm_graph_add_output(it.graph, "total", sgm_sum(it.graph, y));
    set_state(it.session, "w", SGM_FLOAT32, DIMS(3, 2), NUMBERS(1, -1, 2, 0, 0.5, 3));
    set_state(it.session, "b", SGM_FLOAT32, DIMS(2), NUMBERS(10, -20));
    sgm_program *program = prepare(&it);
    feed(it.session, program, "x", SGM_FLOAT32, DIMS(2, 3), NUMBERS(1, 2, 4, -1, 0, 2));
    CHECK_OK(sgm_session_run(it.session, program));
    check_output(it.session, program, "y", NUMBERS(17, -9, 10, -13), 0);
    check_output(it.session, program, "positive", NUMBERS(17, 0, 10, 0), 0);
    check_output(it.session, program, "total", NUMBERS(5), 0);
    tear_down(&it);
}

/* Views reach an elementwise step as strides: negative, zero, swapped. */
TEST(strided_operands)
{
    setting it = set_up("reference");
    sgm_value x = sgm_input_value(it.graph, "x", SGM_FLOAT64, DIMS(2, 3));
    sgm_value column = sgm_slice(it.graph, x, 1, 2, 3, 1);
    sgm_value transposed = sgm_transpose(it.graph, sgm_flip(it.graph, x, 1));
    sgm_graph_add_output(it.graph, "a", sgm_subtract(it.graph, x, column));
    sgm_graph_add_output(it.graph, "b", sgm_negate(it.graph, transposed));
    sgm_program *program = prepare(&it);
    feed(it.session, program, "x", SGM_FLOAT64, DIMS(2, 3), NUMBERS(1, 2, 3, 40, 50, 60));
    CHECK_OK(sgm_session_run(it.session, program));
    check_output(it.session, program, "a", NUMBERS(-2, -1, 0, -20, -10, 0), 0);
    check_output(it.session, program, "b", NUMBERS(-3, -60, -2, -50, -1, -40), 0);
    tear_down(&it);
}

/* 2^24 + 1 is no float32: also what only passes through a fused step must be rounded. */
TEST(values_in_passing_are_rounded_to_their_type)
{
    static const struct {
        sgm_dtype dtype;
        double large, difference;
    } cases[] = {{SGM_FLOAT32, 16777216, 0},
                 {SGM_FLOAT64, 16777216, 1},
                 {SGM_BFLOAT16, 256, 0},
                 {SGM_INT32, 16777216, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        setting it = set_up("reference");
        sgm_value x = sgm_input_value(it.graph, "x", cases[i].dtype, DIMS(2));
        sgm_value one = sgm_input_value(it.graph, "one", cases[i].dtype, DIMS(2));
        sgm_value sum = sgm_add(it.graph, x, one);
        sgm_graph_add_output(it.graph, "difference", sgm_subtract(it.graph, sum, x));
        sgm_program *program = prepare(&it);
        CHECK_INT(sgm_program_get_memory(program).fused, 1);
        feed(it.session, program, "x", cases[i].dtype, DIMS(2), NUMBERS(cases[i].large, 0));
        feed(it.session, program, "one", cases[i].dtype, DIMS(2), NUMBERS(1, 1));
        CHECK_OK(sgm_session_run(it.session, program));
        check_output(it.session, program, "difference", NUMBERS(cases[i].difference, 1), 0);
        tear_down(&it);
    }
}

/* 2^53 + 1 is no double. */
TEST(int64_moves_exactly)
{
    const int64_t a[] = {9007199254740993, INT64_MAX, 5}, b[] = {INT64_MIN + 1, -9007199254740993, 7};
    const int64_t expected[] = {a[0], b[1], a[2]};
    const uint8_t choice[] = {1, 0, 1};
    setting it = set_up("reference");
    sgm_value first = sgm_state(it.graph, "a", SGM_INT64, DIMS(3));
    sgm_value second = sgm_state(it.graph, "b", SGM_INT64, DIMS(3));
    sgm_value condition = sgm_state(it.graph, "choice", SGM_BOOL, DIMS(3));
    sgm_value chosen =
        sgm_select(it.graph, condition, sgm_stop_gradient(it.graph, first), sgm_copy(it.graph, second));
    sgm_assign(it.graph, second, chosen);
    sgm_graph_add_output(it.graph, "chosen", sgm_copy(it.graph, chosen));
    sgm_tensor *tensors[] = {sgm_tensor_create_from(SGM_INT64, DIMS(3), a),
                             sgm_tensor_create_from(SGM_INT64, DIMS(3), b),
                             sgm_tensor_create_from(SGM_BOOL, DIMS(3), choice)};
    CHECK_OK(sgm_session_set(it.session, "a", tensors[0]));
    CHECK_OK(sgm_session_set(it.session, "b", tensors[1]));
    CHECK_OK(sgm_session_set(it.session, "choice", tensors[2]));
    sgm_program *program = prepare(&it);
    CHECK_OK(sgm_session_run(it.session, program));
    CHECK_OK(sgm_session_read(it.session, program, "chosen", tensors[0]));
    sgm_tensor *state = sgm_session_get(it.session, "b");
    CHECK_OK(state);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(((const int64_t *)sgm_tensor_const_data(tensors[0]))[i], expected[i]);
        CHECK_INT(((const int64_t *)sgm_tensor_const_data(state))[i], expected[i]);
    }
    sgm_tensor_free(state);
    for (int i = 0; i < 3; i++)
        sgm_tensor_free(tensors[i]);
    tear_down(&it);
}

TEST(assignments_read_old_values)
{
    setting it = set_up("reference");
    sgm_value a = sgm_state(it.graph, "a", SGM_FLOAT32, DIMS(2));
    sgm_value b = sgm_state(it.graph, "b", SGM_FLOAT32, DIMS(2));
    sgm_assign(it.graph, a, b);
    sgm_assign(it.graph, b, a);
    set_state(it.session, "a", SGM_FLOAT32, DIMS(2), NUMBERS(1, 2));
    set_state(it.session, "b", SGM_FLOAT32, DIMS(2), NUMBERS(3, 4));
    sgm_program *program = prepare(&it);
    for (int run = 0; run < 3; run++)
        CHECK_OK(sgm_session_run(it.session, program));
    sgm_tensor *state = sgm_session_get(it.session, "a");
    double values[2];
    CHECK_OK(sgm_tensor_read(state, values, 2));
    CHECK_NEAR(values[0], 3, 0);
    CHECK_NEAR(values[1], 4, 0);
    sgm_tensor_free(state);
    tear_down(&it);
}

/* A step of gradient descent on a small network; its cost and its weights after three steps. */
static void train(const char *handler, double *cost, double *weights, bool count)
{
    setting it = set_up(handler);
    double inputs[12], w[24], v[12];
    for (int i = 0; i < 24; i++)
        w[i] = sin(i + 1) / 3;
    for (int i = 0; i < 12; i++) {
        inputs[i] = cos(3 * i);
        v[i] = cos(i) / 2;
    }
    sgm_value x = sgm_input_value(it.graph, "x", SGM_FLOAT32, DIMS(3, 4));
    sgm_value first = sgm_state(it.graph, "w", SGM_FLOAT32, DIMS(4, 6));
    sgm_value second = sgm_state(it.graph, "v", SGM_FLOAT32, DIMS(6, 2));
    sgm_value hidden = sgm_tanh(it.graph, sgm_matmul(it.graph, x, first));
    sgm_value chances = sgm_softmax(it.graph, sgm_matmul(it.graph, hidden, second));
    sgm_value error = sgm_mean(it.graph, sgm_square(it.graph, chances)), gradients[2];
    CHECK_OK(sgm_gradients(it.graph, error, (const sgm_value[]){first, second}, 2, gradients));
    sgm_value rate = sgm_number(it.graph, 0.5);
    sgm_assign(it.graph, first, sgm_subtract(it.graph, first, sgm_multiply(it.graph, rate, gradients[0])));
    sgm_assign(it.graph, second, sgm_subtract(it.graph, second, sgm_multiply(it.graph, rate, gradients[1])));
    sgm_graph_add_output(it.graph, "cost", error);
    set_state(it.session, "w", SGM_FLOAT32, DIMS(4, 6), w);
    set_state(it.session, "v", SGM_FLOAT32, DIMS(6, 2), v);
    sgm_program *program = prepare(&it);
    feed(it.session, program, "x", SGM_FLOAT32, DIMS(3, 4), inputs);
    if (count)
        allocator_start(0);
    for (int run = 0; run < 3; run++)
        CHECK_OK(sgm_session_run(it.session, program));
    if (count)
        CHECK_INT(atomic_load(&allocator_calls), 0);
    allocator_stop();
    CHECK_OK(sgm_session_read_number(it.session, program, "cost", cost));
    sgm_tensor *state = sgm_session_get(it.session, "w");
    CHECK_OK(sgm_tensor_read(state, weights, 24));
    sgm_tensor_free(state);
    tear_down(&it);
}

/* Fused and in place, or each instruction for itself in memory: the same bits. */
TEST(fusing_changes_no_bit)
{
    double fused_cost, single_cost, fused[24], single[24];
    train("reference", &fused_cost, fused, false);
    train("debug:reference", &single_cost, single, false);
    CHECK(fused_cost > 0.25 && fused_cost < 0.5);
    CHECK_NEAR(fused_cost, single_cost, 0);
    for (int i = 0; i < 24; i++)
        CHECK_NEAR(fused[i], single[i], 0);
    CHECK(fabs(fused[0] - sin(1) / 3) > 1e-6);
}

TEST(runs_allocate_nothing)
{
    double cost, weights[24];
    train("reference", &cost, weights, true);
    train("debug:reference", &cost, weights, true);
}

TEST(empty_arrays)
{
    setting it = set_up("reference");
    sgm_value x = sgm_input_value(it.graph, "x", SGM_FLOAT32, DIMS(0, 3));
    sgm_graph_add_output(it.graph, "sum", sgm_sum(it.graph, sgm_exp(it.graph, x)));
    sgm_program *program = prepare(&it);
    feed(it.session, program, "x", SGM_FLOAT32, DIMS(0, 3), NUMBERS(0));
    CHECK_OK(sgm_session_run(it.session, program));
    check_output(it.session, program, "sum", NUMBERS(0), 0);
    tear_down(&it);
}

TEST(a_failing_kernel_names_instruction_and_layer)
{
    setting it = set_up("reference");
    sgm_value x = sgm_input_value(it.graph, "x", SGM_FLOAT32, DIMS(4));
    sgm_value at = sgm_input_value(it.graph, "at", SGM_INT64, DIMS(2));
    sgm_graph_push_label(it.graph, "0-embedding");
    sgm_graph_add_output(it.graph, "y", sgm_gather(it.graph, x, at, 0));
    sgm_graph_pop_label(it.graph);
    sgm_program *program = prepare(&it);
    feed(it.session, program, "x", SGM_FLOAT32, DIMS(4), NUMBERS(1, 2, 3, 4));
    feed(it.session, program, "at", SGM_INT64, DIMS(2), NUMBERS(3, 4));
    CHECK_ERROR(sgm_session_run(it.session, program), "= gather, layer 0-embedding: ");
    feed(it.session, program, "at", SGM_INT64, DIMS(2), NUMBERS(3, 0));
    CHECK_OK(sgm_session_run(it.session, program));
    check_output(it.session, program, "y", NUMBERS(4, 1), 0);
    tear_down(&it);
}

static sgm_status same_type(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                            sgm_type *result)
{
    (void)count, (void)attributes;
    *result = inputs[0];
    return SGM_OK;
}

TEST(an_operation_without_loops_is_refused)
{
    static const sgm_op hollow = {.api = SGM_OP_API,
                                  .name = "hollow",
                                  .doc = "a type rule and nothing else",
                                  .min_inputs = 1,
                                  .max_inputs = 1,
                                  .infer = same_type};
    setting it = set_up("reference");
    sgm_value x = sgm_input_value(it.graph, "x", SGM_FLOAT32, DIMS(4));
    sgm_graph_add_output(it.graph, "y", sgm_record(it.graph, &hollow, &x, 1, NULL));
    if (sgm_graph_status(it.graph) == SGM_OK)
        CHECK_ERROR(sgm_session_prepare(it.session, it.graph), "= hollow: the operation has no `forward`");
    else
        CHECK(strstr(sgm_last_error(), "hollow") != NULL);
    tear_down(&it);
}
