/* Autodiff: derivatives known by hand, gradients of gradients, and rules that are missing or wrong. */
#include "handlers/graphs.h"

#define MAXIMUM 16

/* Runs a graph in float64 on the reference with input 'x', and reads an output. */
typedef struct machine {
    sgm_handler *handler;
    sgm_session *session;
    sgm_graph *graph;
    sgm_value x;
    sgm_shape shape;
} machine;

static machine set_up(const sgm_shape *shape)
{
    machine m = {.handler = sgm_handler_create("reference"), .graph = sgm_graph_create(), .shape = *shape};
    CHECK_OK(m.session = sgm_session_create(m.handler));
    m.x = sgm_input_value(m.graph, "x", SGM_FLOAT64, shape);
    return m;
}

static void evaluate(machine *m, sgm_value value, const double *x, double *result)
{
    char name[32];
    snprintf(name, sizeof name, "y%d", value.index);
    sgm_program *program;
    sgm_graph_add_output(m->graph, name, value);
    CHECK_OK(sgm_graph_verify(m->graph));
    CHECK_OK(program = sgm_session_prepare(m->session, m->graph));
    if (sgm_program_has_input(program, "x"))
        feed(m->session, program, "x", SGM_FLOAT64, &m->shape, x);
    CHECK_OK(sgm_session_run(m->session, program));
    sgm_type type = sgm_program_output_type(program, name);
    sgm_tensor *tensor = sgm_tensor_create(type.dtype, &type.shape);
    CHECK_OK(sgm_session_read(m->session, program, name, tensor));
    CHECK_OK(sgm_tensor_read(tensor, result, (size_t)sgm_shape_elements(&type.shape)));
    sgm_tensor_free(tensor);
}

static void check_value(machine *m, sgm_value value, const double *x, const double *expected,
                        double tolerance)
{
    double result[MAXIMUM];
    sgm_type type = sgm_value_type(m->graph, value);
    evaluate(m, value, x, result);
    for (int64_t i = 0; i < sgm_shape_elements(&type.shape); i++)
        CHECK_NEAR(result[i], expected[i], tolerance);
}

static void tear_down(machine *m)
{
    sgm_session_free(m->session);
    sgm_handler_free(m->handler);
    sgm_graph_free(m->graph);
}

static sgm_value gradient(machine *m, sgm_value cost, sgm_value with_respect_to)
{
    sgm_value result;
    CHECK_OK(sgm_gradients(m->graph, cost, &with_respect_to, 1, &result));
    return result;
}

/* --- known derivatives --- */

TEST(a_polynomial)
{
    machine m = set_up(DIMS(3));
    sgm_value cube = sgm_multiply(m.graph, m.x, sgm_square(m.graph, m.x));
    sgm_value cost = sgm_sum(m.graph, sgm_add(m.graph, cube, m.x)); /* x^3 + x: 3x^2 + 1 */
    check_value(&m, gradient(&m, cost, m.x), NUMBERS(2, -1, 0.5), NUMBERS(13, 4, 1.75), 1e-14);
    tear_down(&m);
}

/* x'Ax: (A + A')x */
TEST(a_quadratic_form)
{
    machine m = set_up(DIMS(2, 1));
    sgm_tensor *tensor = tensor_of(SGM_FLOAT64, DIMS(2, 2), NUMBERS(1, 2, 3, 4));
    sgm_value a = sgm_constant(m.graph, tensor), ax = sgm_matmul(m.graph, a, m.x);
    sgm_value cost = sgm_matmul(m.graph, sgm_transpose(m.graph, m.x), ax); /* (1, 1) is one number, too */
    sgm_value found = gradient(&m, cost, m.x);
    check_value(&m, found, NUMBERS(5, -2), NUMBERS(2 * 5 - 5 * 2, 5 * 5 - 8 * 2), 1e-13);
    tear_down(&m);
    sgm_tensor_free(tensor);
}

TEST(broadcast_operands_get_sums)
{
    machine m = set_up(DIMS(2));
    sgm_tensor *tensor = tensor_of(SGM_FLOAT64, DIMS(3, 1), NUMBERS(1, 10, 100));
    sgm_value column = sgm_constant(m.graph, tensor);
    sgm_value table = sgm_multiply(m.graph, m.x, column); /* (3, 2) */
    check_value(&m, gradient(&m, sgm_sum(m.graph, table), m.x), NUMBERS(4, 5), NUMBERS(111, 111), 0);
    check_value(&m, gradient(&m, sgm_sum(m.graph, sgm_square(m.graph, table)), column), NUMBERS(4, 5),
                NUMBERS(2 * 41, 20 * 41, 200 * 41), 1e-10);
    tear_down(&m);
    sgm_tensor_free(tensor);
}

/* One value read in many ways, in part and more than once. */
TEST(paths_add_up)
{
    machine m = set_up(DIMS(2, 2));
    sgm_value first = sgm_slice(m.graph, m.x, 0, 0, 1, 1), last = sgm_slice(m.graph, m.x, 0, 1, 2, 1);
    sgm_value parts[] = {m.x, sgm_transpose(m.graph, m.x), sgm_flip(m.graph, m.x, 0)};
    sgm_value all = sgm_concatenate(m.graph, parts, 3, 0); /* each element three times */
    sgm_value product = sgm_multiply(m.graph, first, last);
    sgm_value cost = sgm_add(m.graph, sgm_sum(m.graph, all), sgm_sum(m.graph, product));
    check_value(&m, gradient(&m, cost, m.x), NUMBERS(1, 2, 30, 40), NUMBERS(33, 43, 4, 5), 0);
    tear_down(&m);
}

TEST(mean_and_largest)
{
    machine m = set_up(DIMS(4));
    sgm_value cost = sgm_add(m.graph, sgm_mean(m.graph, m.x),
                             sgm_reduce_max(m.graph, m.x, NULL, 0, false)); /* two share the largest */
    check_value(&m, gradient(&m, cost, m.x), NUMBERS(1, 7, 7, 2), NUMBERS(0.25, 0.75, 0.75, 0.25), 0);
    tear_down(&m);
}

/* --- gradients of gradients --- */

/* The Hessian of sum(x^3) times v: 6xv. */
TEST(hessian_times_a_vector)
{
    machine m = set_up(DIMS(3));
    sgm_tensor *tensor = tensor_of(SGM_FLOAT64, DIMS(3), NUMBERS(1, -2, 3));
    sgm_value v = sgm_constant(m.graph, tensor), three = sgm_number(m.graph, 3);
    sgm_value found = gradient(&m, sgm_sum(m.graph, sgm_power(m.graph, m.x, three)), m.x);
    sgm_value product = gradient(&m, sgm_sum(m.graph, sgm_multiply(m.graph, found, v)), m.x);
    check_value(&m, product, NUMBERS(2, 0.5, -1), NUMBERS(12, -6, -18), 1e-12);
    sgm_value third = gradient(&m, sgm_sum(m.graph, product), m.x); /* 6v */
    check_value(&m, third, NUMBERS(2, 0.5, -1), NUMBERS(6, -12, 18), 1e-12);
    sgm_value fourth = gradient(&m, sgm_sum(m.graph, third), m.x);
    check_value(&m, fourth, NUMBERS(2, 0.5, -1), NUMBERS(0, 0, 0), 0);
    tear_down(&m);
    sgm_tensor_free(tensor);
}

static sgm_value cross_entropy(machine *m)
{
    sgm_tensor *tensor = tensor_of(SGM_FLOAT64, DIMS(2, 3), NUMBERS(0, 1, 0, 0.2, 0.3, 0.5));
    sgm_value targets = sgm_constant(m->graph, tensor);
    sgm_tensor_free(tensor);
    return sgm_mean(m->graph, sgm_softmax_cross_entropy_values(m->graph, m->x, targets));
}

/* softmax(x) - targets, by hand */
TEST(cross_entropy_once)
{
    machine m = set_up(DIMS(2, 3));
    const double x[] = {0, 0, 0, log(2), 0, log(5)};
    const double expected[] = {1 / 6.0, -1 / 3.0, 1 / 6.0, 0.025, -0.0875, 0.0625};
    check_value(&m, gradient(&m, cross_entropy(&m), m.x), x, expected, 1e-15);
    tear_down(&m);
}

TEST(cross_entropy_twice)
{
    static const double x[] = {0.3, -1, 2, 0.1, 0.7, -0.4}, h = 1e-5;
    machine m = set_up(DIMS(2, 3));
    sgm_value found = gradient(&m, cross_entropy(&m), m.x);
    sgm_value weighted = sgm_multiply(m.graph, found, sgm_sin(m.graph, found));
    sgm_value cost = sgm_sum(m.graph, weighted), second = gradient(&m, cost, m.x);
    double result[6], expected[6];
    evaluate(&m, second, x, result);
    sgm_program *program;
    sgm_graph_add_output(m.graph, "cost", cost);
    CHECK_OK(program = sgm_session_prepare(m.session, m.graph));
    for (int i = 0; i < 6; i++) {
        double costs[2];
        for (int k = 0; k < 2; k++) {
            double moved[6];
            memcpy(moved, x, sizeof moved);
            moved[i] += k == 0 ? -h : h;
            feed(m.session, program, "x", SGM_FLOAT64, &m.shape, moved);
            CHECK_OK(sgm_session_run(m.session, program));
            CHECK_OK(sgm_session_read_number(m.session, program, "cost", &costs[k]));
        }
        expected[i] = (costs[1] - costs[0]) / (2 * h);
        CHECK_NEAR(result[i], expected[i], 1e-9);
        CHECK(fabs(expected[i]) > 1e-5);
    }
    tear_down(&m);
}

/* --- what is asked for --- */

TEST(intermediate_values)
{
    machine m = set_up(DIMS(2));
    sgm_value y = sgm_multiply(m.graph, m.x, sgm_number(m.graph, 3)), gradients[3];
    sgm_value cost = sgm_sum(m.graph, sgm_square(m.graph, y));
    CHECK_OK(sgm_gradients(m.graph, cost, (const sgm_value[]){m.x, y, cost}, 3, gradients));
    check_value(&m, gradients[0], NUMBERS(1, 2), NUMBERS(18, 36), 0);
    check_value(&m, gradients[1], NUMBERS(1, 2), NUMBERS(6, 12), 0);
    check_value(&m, gradients[2], NUMBERS(1, 2), NUMBERS(1), 0);
    CHECK_OK(sgm_gradients(m.graph, cost, (const sgm_value[]){y, y}, 2, gradients)); /* each the whole */
    check_value(&m, gradients[1], NUMBERS(1, 2), NUMBERS(6, 12), 0);
    tear_down(&m);
}

TEST(no_gradient_flows_through_a_stop)
{
    machine m = set_up(DIMS(2));
    sgm_value stopped = sgm_stop_gradient(m.graph, m.x), gradients[2];
    sgm_value cost = sgm_sum(m.graph, sgm_multiply(m.graph, m.x, stopped));
    CHECK_OK(sgm_gradients(m.graph, cost, (const sgm_value[]){m.x, stopped}, 2, gradients));
    check_value(&m, gradients[0], NUMBERS(4, 5), NUMBERS(4, 5), 0);
    check_value(&m, gradients[1], NUMBERS(4, 5), NUMBERS(4, 5), 0); /* up to the stop */
    tear_down(&m);
}

/* Not even instructions that would then be left out: of the two factors only x gets a gradient. */
TEST(nothing_is_recorded_for_what_is_behind_a_stop)
{
    machine m = set_up(DIMS(3));
    sgm_value stopped = sgm_stop_gradient(m.graph, sgm_square_root(m.graph, m.x)), gradient;
    sgm_value cost = sgm_sum(m.graph, sgm_multiply(m.graph, m.x, stopped));
    CHECK_OK(sgm_gradients(m.graph, cost, &m.x, 1, &gradient));
    int products = 0;
    for (int32_t i = 0; i < sgm_graph_count(m.graph); i++)
        products += strcmp(sgm_value_op(m.graph, (sgm_value){i})->name, "multiply") == 0;
    CHECK_INT(products, 2);
    check_value(&m, gradient, NUMBERS(0, 4, 9), NUMBERS(0, 2, 3), 0);
    tear_down(&m);
}

TEST(what_comes_after_the_cost_gets_zeros)
{
    machine m = set_up(DIMS(2));
    sgm_value cost = sgm_sum(m.graph, m.x), later = sgm_tanh(m.graph, cost), gradients[2];
    CHECK_OK(sgm_gradients(m.graph, cost, (const sgm_value[]){m.x, later}, 2, gradients));
    check_value(&m, gradients[0], NUMBERS(1, 2), NUMBERS(1, 1), 0);
    check_value(&m, gradients[1], NUMBERS(1, 2), NUMBERS(0), 0);
    tear_down(&m);
}

TEST(what_is_not_reached_gets_zeros)
{
    machine m = set_up(DIMS(2));
    sgm_value state = sgm_state(m.graph, "w", SGM_FLOAT32, DIMS(2, 2)), gradients[4];
    sgm_value side = sgm_exp(m.graph, m.x);
    sgm_value cost = sgm_sum(m.graph, sgm_cast(m.graph, sgm_floor(m.graph, m.x), SGM_FLOAT32));
    sgm_value counted = sgm_cast(m.graph, sgm_cast(m.graph, m.x, SGM_INT32), SGM_FLOAT32);
    cost = sgm_add(m.graph, cost, sgm_sum(m.graph, counted));
    sgm_value later = sgm_tanh(m.graph, cost);
    CHECK_OK(sgm_gradients(m.graph, cost, (const sgm_value[]){m.x, state, side, later}, 4, gradients));
    sgm_type type = sgm_value_type(m.graph, gradients[1]);
    CHECK(type.dtype == SGM_FLOAT32 && sgm_shape_equal(&type.shape, DIMS(2, 2)));
    for (int i = 0; i < 4; i++)
        check_value(&m, gradients[i], NUMBERS(1, 2), NUMBERS(0, 0, 0, 0), 0);
    tear_down(&m);
}

TEST(gradients_belong_to_the_layer)
{
    machine m = set_up(DIMS(2));
    sgm_graph_push_label(m.graph, "0-exp");
    sgm_value y = sgm_exp(m.graph, m.x);
    sgm_graph_pop_label(m.graph);
    sgm_graph_push_label(m.graph, "costs");
    sgm_value found = gradient(&m, sgm_sum(m.graph, sgm_sin(m.graph, y)), m.x);
    CHECK_STR(sgm_value_label(m.graph, found), "0-exp");
    CHECK_STR(sgm_value_label(m.graph, sgm_exp(m.graph, found)), "costs");
    sgm_graph_pop_label(m.graph);
    CHECK_STR(sgm_value_label(m.graph, sgm_exp(m.graph, found)), "");
    tear_down(&m);
}

TEST(impossible_requests)
{
    machine m = set_up(DIMS(2));
    sgm_value result[1] = {{0}}, whole = sgm_input_value(m.graph, "n", SGM_INT64, SCALAR);
    CHECK_ERROR(sgm_gradients(m.graph, m.x, &m.x, 1, result),
                "a gradient is of one number of a float type; the cost is float64 (2,): reduce it");
    CHECK(!sgm_value_exists(result[0]));
    sgm_graph_clear(m.graph);
    m.x = sgm_input_value(m.graph, "x", SGM_FLOAT64, SCALAR);
    whole = sgm_input_value(m.graph, "n", SGM_INT64, SCALAR);
    CHECK_ERROR(sgm_gradients(m.graph, whole, &m.x, 1, result), "the cost is int64 ()");
    sgm_graph_clear(m.graph);
    m.x = sgm_input_value(m.graph, "x", SGM_FLOAT64, SCALAR);
    whole = sgm_input_value(m.graph, "n", SGM_INT64, SCALAR);
    CHECK_ERROR(sgm_gradients(m.graph, m.x, &whole, 1, result), "gradient 0 is with respect to nothing, or");
    tear_down(&m);
}

/* --- operations from outside --- */

static sgm_status first_type(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                             sgm_type *result)
{
    (void)count, (void)attributes;
    *result = inputs[0];
    return SGM_OK;
}

/* a^2 * b, with parts that a rule of its own would not have */
static sgm_value compose_product(sgm_graph *graph, const sgm_value *inputs, int32_t count,
                                 const sgm_attributes *attributes)
{
    (void)count, (void)attributes;
    return sgm_multiply(graph, sgm_square(graph, inputs[0]), inputs[1]);
}

static const sgm_op product_op = {.api = SGM_OP_API,
                                  .name = "product",
                                  .doc = "",
                                  .min_inputs = 2,
                                  .max_inputs = 2,
                                  .compose = compose_product,
                                  .infer = first_type};

TEST(a_composition_without_a_rule)
{
    machine m = set_up(DIMS(2));
    sgm_value three = sgm_filled_like(m.graph, m.x, 3);
    sgm_value y = sgm_record(m.graph, &product_op, (const sgm_value[]){m.x, three}, 2, NULL);
    sgm_value found = gradient(&m, sgm_sum(m.graph, y), m.x); /* 6x */
    check_value(&m, found, NUMBERS(1, -2), NUMBERS(6, -12), 0);
    check_value(&m, gradient(&m, sgm_sum(m.graph, found), m.x), NUMBERS(1, -2), NUMBERS(6, 6), 0);
    tear_down(&m);
}

TEST(a_composition_of_equal_inputs)
{
    machine m = set_up(DIMS(2));
    sgm_value y = sgm_record(m.graph, &product_op, (const sgm_value[]){m.x, m.x}, 2, NULL);
    check_value(&m, gradient(&m, sgm_sum(m.graph, y), m.x), NUMBERS(1, -2), NUMBERS(3, 12), 0);
    tear_down(&m);
}

/* x^2 * x^3: the second input depends on the first. */
TEST(a_composition_of_dependent_inputs)
{
    machine m = set_up(DIMS(2));
    sgm_value cube = sgm_multiply(m.graph, m.x, sgm_square(m.graph, m.x)), gradients[2];
    sgm_value y = sgm_record(m.graph, &product_op, (const sgm_value[]){m.x, cube}, 2, NULL);
    CHECK_OK(sgm_gradients(m.graph, sgm_sum(m.graph, y), (const sgm_value[]){m.x, cube}, 2, gradients));
    check_value(&m, gradients[0], NUMBERS(2, -1), NUMBERS(80, 5), 0);
    check_value(&m, gradients[1], NUMBERS(2, -1), NUMBERS(4, 1), 0);
    tear_down(&m);
}

static sgm_value compose_nothing(sgm_graph *graph, const sgm_value *inputs, int32_t count,
                                 const sgm_attributes *attributes)
{
    (void)graph, (void)count, (void)attributes;
    return inputs[1];
}

TEST(a_composition_that_is_one_of_its_inputs)
{
    static const sgm_op second = {.api = SGM_OP_API,
                                  .name = "second",
                                  .doc = "",
                                  .min_inputs = 2,
                                  .max_inputs = 2,
                                  .compose = compose_nothing,
                                  .infer = first_type};
    machine m = set_up(DIMS(2));
    sgm_value a = sgm_sin(m.graph, m.x), b = sgm_square(m.graph, m.x), gradients[2];
    sgm_value y = sgm_record(m.graph, &second, (const sgm_value[]){a, b}, 2, NULL);
    CHECK_OK(sgm_gradients(m.graph, sgm_sum(m.graph, y), (const sgm_value[]){m.x, a}, 2, gradients));
    check_value(&m, gradients[0], NUMBERS(2, -1), NUMBERS(4, -2), 0);
    check_value(&m, gradients[1], NUMBERS(2, -1), NUMBERS(0, 0), 0);
    tear_down(&m);
}

static double scalar_cube(const double *inputs, const sgm_attributes *attributes)
{
    (void)attributes;
    return inputs[0] * inputs[0] * inputs[0];
}

TEST(an_operation_without_a_gradient)
{
    static const sgm_op cube = {.api = SGM_OP_API,
                                .flags = SGM_OP_ELEMENTWISE,
                                .name = "cube",
                                .doc = "",
                                .min_inputs = 1,
                                .max_inputs = 1,
                                .infer = first_type,
                                .scalar = scalar_cube};
    machine m = set_up(DIMS(2));
    sgm_graph_push_label(m.graph, "3-cube");
    sgm_value y = sgm_record(m.graph, &cube, &m.x, 1, NULL);
    sgm_graph_pop_label(m.graph);
    sgm_value cost = sgm_sum(m.graph, sgm_square(m.graph, y)), result;
    /* its result has one nevertheless, and nothing else wants it */
    check_value(&m, gradient(&m, cost, y), NUMBERS(1, 2), NUMBERS(2, 16), 0);
    CHECK_ERROR(sgm_gradients(m.graph, cost, &m.x, 1, &result),
                "layer 3-cube: cube has no gradient; give its table one, or stop the gradient before it");
    CHECK_INT(sgm_graph_status(m.graph), SGM_ERROR_UNSUPPORTED);
    CHECK(!sgm_value_exists(result));
    tear_down(&m);
}

static void wrong_shape(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    gradients[0] = sgm_sum(graph, call->gradient);
}

static void wrong_type(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    gradients[0] = sgm_cast(graph, call->gradient, SGM_FLOAT32);
}

static void failing(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    gradients[0] = sgm_matmul(graph, call->gradient, call->gradient);
}

static void nothing(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    (void)graph, (void)call, (void)gradients;
}

TEST(wrong_rules)
{
    static const struct {
        void (*rule)(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients);
        const char *message;
    } cases[] = {{wrong_shape, "layer 1-odd: odd: its gradient rule gave float64 () for an input that is "
                               "float64 (2,)"},
                 {wrong_type, "layer 1-odd: odd: its gradient rule gave float32 (2,) for an input that is "
                              "float64 (2,)"},
                 {failing, "layer 1-odd: matmul: "}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const sgm_op odd = {.api = SGM_OP_API,
                            .flags = SGM_OP_ELEMENTWISE,
                            .name = "odd",
                            .doc = "",
                            .min_inputs = 1,
                            .max_inputs = 1,
                            .infer = first_type,
                            .scalar = scalar_cube,
                            .gradient = cases[i].rule};
        machine m = set_up(DIMS(2));
        sgm_graph_push_label(m.graph, "1-odd");
        sgm_value y = sgm_record(m.graph, &odd, &m.x, 1, NULL), result;
        sgm_graph_pop_label(m.graph);
        CHECK_ERROR(sgm_gradients(m.graph, sgm_sum(m.graph, y), &m.x, 1, &result), cases[i].message);
        CHECK_ERROR(sgm_graph_status(m.graph), cases[i].message);
        tear_down(&m);
    }
}

TEST(a_rule_may_leave_out_what_is_zero)
{
    static const sgm_op flat = {.api = SGM_OP_API,
                                .flags = SGM_OP_ELEMENTWISE,
                                .name = "flat",
                                .doc = "",
                                .min_inputs = 1,
                                .max_inputs = 1,
                                .infer = first_type,
                                .scalar = scalar_cube,
                                .gradient = nothing};
    machine m = set_up(DIMS(2));
    sgm_value y = sgm_add(m.graph, sgm_record(m.graph, &flat, &m.x, 1, NULL), m.x);
    check_value(&m, gradient(&m, sgm_sum(m.graph, y), m.x), NUMBERS(3, 4), NUMBERS(1, 1), 0);
    tear_down(&m);
}
