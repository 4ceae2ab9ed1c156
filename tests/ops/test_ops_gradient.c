/* Every operation's gradient, and its gradient's gradient, against central differences in double precision.
 */
#include "op_program.h"
#include "test.h"

#define STEP 1e-5

typedef struct subject {
    const op_case *c;
    int32_t variant;
    sgm_graph *graph;
    sgm_session *session;
    sgm_program *program;
    op_data data[OP_MAX_INPUTS];
    sgm_value inputs[OP_MAX_INPUTS], floats[OP_MAX_INPUTS];
    int32_t float_of[OP_MAX_INPUTS], float_count; /* inputs that can be differentiated by */
} subject;

/* sum(value * random weights): a plain sum would not notice elements that changed places. */
static sgm_value weighted_sum(sgm_graph *graph, sgm_value value, sgm__random *random)
{
    sgm_type type = sgm_value_type(graph, value);
    sgm_tensor *weights = sgm_tensor_create(type.dtype, &type.shape);
    size_t count = (size_t)sgm_shape_elements(&type.shape);
    double *numbers = malloc((count + 1) * sizeof(double));
    for (size_t i = 0; i < count; i++)
        numbers[i] = 0.5 + sgm__random_uniform(random);
    sgm_tensor_write(weights, numbers, count);
    sgm_value sum = sgm_sum(graph, sgm_multiply(graph, value, sgm_constant(graph, weights)));
    sgm_tensor_free(weights);
    free(numbers);
    return sum;
}

/* Examples cost and its gradients as "g0", ...; then the cost of those and its gradients as "h0", ... */
static void record(subject *s, sgm__random *random)
{
    sgm_graph *graph = s->graph;
    s->float_count = 0;
    for (int32_t i = 0; i < s->c->input_count; i++) {
        sgm_shape shape = op_input_shape(s->c, s->variant, i);
        s->data[i] = op_data_create(&s->c->inputs[i], &shape, SGM_FLOAT64, random);
        s->inputs[i] = sgm_input_value(graph, op_names[i], s->data[i].dtype, &shape);
        if (s->data[i].dtype == SGM_FLOAT64) {
            s->float_of[s->float_count] = i;
            s->floats[s->float_count++] = s->inputs[i];
        }
    }
    sgm_value gradients[OP_MAX_INPUTS], cost, second = sgm_number(graph, 0);
    cost = weighted_sum(graph, s->c->record(graph, s->inputs, SGM_FLOAT64), random);
    sgm_graph_add_output(graph, "cost", cost);
    sgm_gradients(graph, cost, s->floats, s->float_count, gradients);
    for (int32_t i = 0; i < s->float_count; i++) {
        char name[] = {'g', (char)('0' + i), '\0'};
        sgm_graph_add_output(graph, name, gradients[i]);
        second = sgm_add(graph, second, weighted_sum(graph, gradients[i], random));
    }
    if ((s->c->flags & OP_SECOND) != OP_SECOND)
        return;
    sgm_graph_add_output(graph, "second", second);
    sgm_gradients(graph, second, s->floats, s->float_count, gradients);
    for (int32_t i = 0; i < s->float_count; i++) {
        char name[] = {'h', (char)('0' + i), '\0'};
        sgm_graph_add_output(graph, name, gradients[i]);
    }
}

static double run(subject *s, int32_t changed, const char *output)
{
    double cost = NAN;
    CHECK_OK(op_feed(s->session, s->program, op_names[changed], &s->data[changed]));
    CHECK_OK(sgm_session_run(s->session, s->program));
    CHECK_OK(sgm_session_read_number(s->session, s->program, output, &cost));
    return cost;
}

/* The recorded gradient by float number `number` against differences of `output`. */
static void compare(subject *s, int32_t number, const char *output, char letter)
{
    char name[] = {letter, (char)('0' + number), '\0'};
    int32_t i = s->float_of[number];
    op_data *data = &s->data[i];
    size_t count;
    run(s, i, output);
    double *gradient = op_read(s->session, s->program, name, &count);
    CHECK_OK(gradient);
    CHECK_INT(count, data->count);
    for (size_t k = 0; k < count; k++) {
        double kept = data->values[k];
        data->values[k] = kept + STEP;
        double above = run(s, i, output);
        data->values[k] = kept - STEP;
        double below = run(s, i, output);
        data->values[k] = kept;
        double expected = (above - below) / (2 * STEP);
        if (!test_near(gradient[k], expected,
                       2e-6 * (1 + fabs(expected)) * (s->c->loose > 0 ? s->c->loose : 1)))
            TEST_FAIL("%s %s, %s by element %zu of input %d: recorded %.10g, differences give %.10g",
                      s->c->name, op_shape_text(&data->shape), output, k, i, gradient[k], expected);
    }
    run(s, i, output);
    free(gradient);
}

static void check_case(sgm_handler *handler, const op_case *c, int32_t variant)
{
    sgm__random random = sgm__random_make(7, (uint64_t)variant);
    subject s = {.c = c, .variant = variant, .graph = sgm_graph_create()};
    record(&s, &random);
    if (sgm_graph_status(s.graph) != SGM_OK)
        TEST_FAIL("%s: %s", c->name, sgm_last_error());
    CHECK_OK(sgm_graph_verify(s.graph));
    s.session = sgm_session_create(handler);
    s.program = sgm_session_prepare(s.session, s.graph);
    if (s.program == NULL)
        TEST_FAIL("%s: %s", c->name, sgm_last_error());
    for (int32_t i = 0; i < c->input_count; i++)
        CHECK_OK(op_feed(s.session, s.program, op_names[i], &s.data[i]));
    for (int32_t i = 0; i < s.float_count; i++) {
        compare(&s, i, "cost", 'g');
        if ((c->flags & OP_SECOND) == OP_SECOND)
            compare(&s, i, "second", 'h');
    }
    for (int32_t i = 0; i < c->input_count; i++)
        free(s.data[i].values);
    sgm_session_free(s.session);
    sgm_graph_free(s.graph);
}

TEST(gradients_are_what_differences_say)
{
    sgm_handler *handler = sgm_handler_create("reference");
    CHECK_OK(handler);
    for (int32_t i = 0; i < OP_CASES_COUNT; i++)
        for (int32_t variant = 0; variant < op_variants(&op_cases[i], false); variant++)
            if ((op_cases[i].flags & OP_FIRST) != 0)
                check_case(handler, &op_cases[i], variant);
    sgm_handler_free(handler);
}
