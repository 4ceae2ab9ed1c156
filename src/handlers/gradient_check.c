/* Gradients against central differences, in double precision on the reference handler.
 *
 * The value to check is made one number, a sum with weights: a plain sum would not notice elements that
 * changed places. What sgm_gradients records of it is compared, element by element, with (f(x + h) - f(x -
 * h)) / 2h, which costs two runs for each element. A run may write states (running means, the step of random
 * numbers), so all operands are given again before each. */
#include "base/base.h"
#include "graph/graph_internal.h"
#include <sigma/handler.h>

#include <math.h>
#include <stdio.h>

#define DEFAULT_STEP 1e-5
#define DEFAULT_TOLERANCE 2e-6
#define COST "gradient_check"

typedef struct check {
    sgm_graph *graph;
    const sgm_operand *operands;
    size_t count;
    sgm_gradient_check_options options;
    sgm_handler *handler;
    sgm_session *session;
    sgm_program *program;
    sgm_gradient_difference worst; /* of all elements so far */
    int64_t wrong;                 /* elements whose difference is beyond the tolerance */
} check;

static const char *name_of(const check *c, size_t operand)
{
    return sgm_value_name(c->graph, c->operands[operand].value);
}

static bool is_state(const check *c, size_t operand)
{
    return c->graph->instructions[c->operands[operand].value.index].op == &sgm__op_state;
}

/* Whether it is differentiated by. */
static bool is_checked(const check *c, size_t operand)
{
    const sgm_operand *o = &c->operands[operand];
    return !o->fixed && sgm_dtype_is_float(sgm_value_type(c->graph, o->value).dtype);
}

/* An operand has to be a source of the graph, with a value of its shape, and of float64 if it is checked. */
static sgm_status look_at(const check *c, size_t operand)
{
    const sgm_operand *o = &c->operands[operand];
    char wanted[128], got[128];
    if (o->value.index < 0 || o->value.index >= sgm_graph_count(c->graph) ||
        (c->graph->instructions[o->value.index].op != &sgm__op_input && !is_state(c, operand)))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "gradient check: operand %zu is no input and no state of the graph: give what "
                        "sgm_input_value or sgm_state recorded",
                        operand);
    sgm_type type = sgm_value_type(c->graph, o->value);
    if (o->at == NULL || !sgm_shape_equal(sgm_tensor_shape(o->at), &type.shape))
        return sgm_fail(SGM_ERROR_SHAPE, "gradient check: '%s' is %s, but its tensor is %s",
                        name_of(c, operand), sgm_shape_text(&type.shape, wanted, sizeof wanted),
                        o->at != NULL ? sgm_shape_text(sgm_tensor_shape(o->at), got, sizeof got) : "none");
    if (is_checked(c, operand) && type.dtype != SGM_FLOAT64)
        return sgm_fail(SGM_ERROR_TYPE,
                        "gradient check: '%s' is %s, too coarse for differences: record it as float64, or "
                        "make it .fixed",
                        name_of(c, operand), sgm_dtype_name(type.dtype));
    return SGM_OK;
}

/* sum(y * weights), the weights between 0.5 and 1.5; one number is taken as it is. */
static sgm_value weighted_sum(sgm_graph *graph, sgm_value y)
{
    sgm_type type = sgm_value_type(graph, y);
    if (type.shape.rank == 0)
        return y;
    sgm_tensor *weights = sgm_tensor_create(SGM_FLOAT64, &type.shape);
    sgm_value sum = {-1};
    if (weights == NULL)
        return sum;
    double *numbers = sgm_tensor_data(weights);
    for (int64_t i = 0; i < sgm_shape_elements(&type.shape); i++)
        numbers[i] = 0.5 + (double)(i * 7919 % 2003) / 2003;
    sum = sgm_sum(graph, sgm_multiply(graph, y, sgm_constant(graph, weights)));
    sgm_tensor_free(weights);
    return sum;
}

/* The gradient by operand i is the output "gradient_check.i". */
static char *gradient_name(size_t operand, char name[48])
{
    snprintf(name, 48, COST ".%zu", operand);
    return name;
}

static sgm_status record_gradients(const check *c, sgm_value cost, sgm_value *by, sgm_value *gradients)
{
    int32_t count = 0;
    char name[48];
    for (size_t i = 0; i < c->count; i++)
        if (is_checked(c, i))
            by[count++] = c->operands[i].value;
    if (count == 0)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "gradient check: there is no operand of float64 that is not fixed");
    SGM_TRY(sgm_gradients(c->graph, cost, by, count, gradients));
    sgm_graph_add_output(c->graph, COST, cost);
    count = 0;
    for (size_t i = 0; i < c->count; i++)
        if (is_checked(c, i))
            sgm_graph_add_output(c->graph, gradient_name(i, name), gradients[count++]);
    return sgm_graph_status(c->graph);
}

/* What a check has added to a graph is in the way of another. */
static sgm_status look_for_a_check(const sgm_graph *graph)
{
    for (size_t i = 0; i < graph->output_count; i++)
        if (strcmp(sgm__graph_string(graph, graph->outputs[i].name), COST) == 0)
            return sgm_fail(SGM_ERROR_STATE, "gradient check: this graph was checked already, and is of no "
                                             "other use: clear it and record it again, or make another");
    return SGM_OK;
}

static sgm_status record(const check *c, sgm_value y)
{
    SGM_TRY(sgm_graph_status(c->graph));
    SGM_TRY(look_for_a_check(c->graph));
    for (size_t i = 0; i < c->count; i++)
        SGM_TRY(look_at(c, i));
    if (!sgm_value_exists(y) || sgm_value_type(c->graph, y).dtype != SGM_FLOAT64)
        return sgm_fail(SGM_ERROR_TYPE, "gradient check: expected a value of float64");
    sgm_value cost = weighted_sum(c->graph, y);
    sgm_value *values = sgm__calloc(2 * c->count + 1, sizeof *values);
    if (values == NULL || !sgm_value_exists(cost)) {
        sgm__free(values);
        return sgm_last_status();
    }
    sgm_status status = record_gradients(c, cost, values, values + c->count);
    sgm__free(values);
    return status;
}

static sgm_status give(const check *c, size_t operand, const sgm_tensor *value)
{
    const char *name = name_of(c, operand);
    if (is_state(c, operand)) {
        sgm_tensor *same = sgm_tensor_cast(value, sgm_value_type(c->graph, c->operands[operand].value).dtype);
        sgm_status status = same != NULL ? sgm_session_set(c->session, name, same) : sgm_last_status();
        sgm_tensor_free(same);
        return status;
    }
    return sgm_program_has_input(c->program, name) ? sgm_session_feed(c->session, c->program, name, value)
                                                   : SGM_OK;
}

/* The states have to be there, of their types, before the graph is compiled. */
static sgm_status prepare(check *c)
{
    c->handler = sgm_handler_create("reference");
    c->session = c->handler != NULL ? sgm_session_create(c->handler) : NULL;
    if (c->session == NULL)
        return sgm_last_status();
    for (size_t i = 0; i < c->count; i++)
        if (is_state(c, i))
            SGM_TRY(give(c, i, c->operands[i].at));
    c->program = sgm_session_prepare(c->session, c->graph);
    return c->program != NULL ? SGM_OK : sgm_last_status();
}

/* Runs with all operands as they were given, but `changed` in the place of number `operand`. */
static sgm_status run(const check *c, size_t operand, const sgm_tensor *changed, double *cost)
{
    for (size_t i = 0; i < c->count; i++)
        SGM_TRY(give(c, i, i == operand ? changed : c->operands[i].at));
    SGM_TRY(sgm_session_run(c->session, c->program));
    return sgm_session_read_number(c->session, c->program, COST, cost);
}

/* "(1, 0)" */
static char *place_text(const sgm_shape *shape, int64_t element, char text[128])
{
    sgm_shape place = {.rank = shape->rank};
    for (int32_t i = shape->rank; i-- > 0; element /= shape->dims[i])
        place.dims[i] = element % shape->dims[i];
    return sgm_shape_text(&place, text, 128);
}

/* Keeps what it finds; what is wrong is told when all elements have been looked at. A gradient that is not a
 * number is worse than any. */
static sgm_status compare_element(check *c, size_t operand, sgm_tensor *moved, int64_t element,
                                  double recorded)
{
    double *at = (double *)sgm_tensor_data(moved) + element, kept = *at, above, below;
    *at = kept + c->options.step;
    SGM_TRY(run(c, operand, moved, &above));
    *at = kept - c->options.step;
    SGM_TRY(run(c, operand, moved, &below));
    *at = kept;
    double numeric = (above - below) / (2 * c->options.step);
    double error = fabs(recorded - numeric) / (1 + fabs(numeric));
    error = isnan(error) ? INFINITY : error;
    c->wrong += !(error <= c->options.tolerance);
    if (!c->worst.known || error > c->worst.error)
        c->worst = (sgm_gradient_difference){true, operand, element, recorded, numeric, error};
    return SGM_OK;
}

static sgm_status compare_elements(check *c, size_t operand, sgm_tensor *moved, sgm_tensor *gradient)
{
    const double *recorded = sgm_tensor_data(gradient);
    int64_t count = sgm_shape_elements(sgm_tensor_shape(moved));
    double cost;
    char name[48];
    SGM_TRY(sgm_tensor_read(c->operands[operand].at, sgm_tensor_data(moved), (size_t)count));
    SGM_TRY(run(c, operand, moved, &cost));
    SGM_TRY(sgm_session_read(c->session, c->program, gradient_name(operand, name), gradient));
    for (int64_t i = 0; i < count; i++)
        SGM_TRY(compare_element(c, operand, moved, i, recorded[i]));
    return SGM_OK;
}

/* Told once for all elements, by the worst. */
static sgm_status verdict(const check *c)
{
    const sgm_gradient_difference *worst = &c->worst;
    char place[128], others[80] = "";
    if (c->wrong == 0)
        return SGM_OK;
    if (c->wrong > 1)
        snprintf(others, sizeof others, "; of %lld elements that are wrong it is the worst",
                 (long long)c->wrong);
    return sgm_fail(SGM_ERROR_NUMERIC,
                    "gradient by '%s' at element %s: recorded is %.10g, differences give %.10g (step %g, "
                    "tolerance %g)%s",
                    name_of(c, worst->operand),
                    place_text(sgm_tensor_shape(c->operands[worst->operand].at), worst->element, place),
                    worst->recorded, worst->differences, c->options.step, c->options.tolerance, others);
}

static sgm_status compare(check *c, size_t operand)
{
    const sgm_shape *shape = sgm_tensor_shape(c->operands[operand].at);
    sgm_tensor *moved = sgm_tensor_create(SGM_FLOAT64, shape);
    sgm_tensor *gradient = sgm_tensor_create(SGM_FLOAT64, shape);
    sgm_status status =
        moved != NULL && gradient != NULL ? compare_elements(c, operand, moved, gradient) : sgm_last_status();
    sgm_tensor_free(moved);
    sgm_tensor_free(gradient);
    return status;
}

sgm_status sgm_gradient_check_with(sgm_graph *graph, sgm_value y, const sgm_operand *operands, size_t count,
                                   const sgm_gradient_check_options *options)
{
    check c = {.graph = graph, .operands = operands, .count = count};
    SGM_TRY(sgm__options_read(&c.options, sizeof c.options, options, "sgm_gradient_check"));
    c.options.step = c.options.step == 0 ? DEFAULT_STEP : c.options.step;
    c.options.tolerance = c.options.tolerance == 0 ? DEFAULT_TOLERANCE : c.options.tolerance;
    if (!(c.options.step > 0 && c.options.tolerance > 0))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "gradient check: expected a .step and a .tolerance above 0, got %g and %g",
                        c.options.step, c.options.tolerance);
    sgm_status status = record(&c, y);
    if (status == SGM_OK)
        status = prepare(&c);
    for (size_t i = 0; i < count && status == SGM_OK; i++)
        if (is_checked(&c, i))
            status = compare(&c, i);
    if (status == SGM_OK)
        status = verdict(&c);
    if (c.options.worst != NULL)
        *c.options.worst = c.worst;
    sgm_session_free(c.session);
    sgm_handler_free(c.handler);
    return status;
}
