/* Reverse-mode autodiff on instructions: it records the gradient's instructions behind those it
 * differentiates, so a gradient can be differentiated again. Written once, for all operations and handlers.
 */
#include "graph/graph_internal.h"
#include <sigma/operations.h>

typedef struct autodiff {
    sgm_graph *graph;
    int32_t count;        /* instructions up to and with the cost */
    bool *needed;         /* on a path from what is differentiated by to the cost */
    sgm_value *gradients; /* summed up so far; nothing: zero */
} autodiff;

static void mark_needed(autodiff *work, const sgm_value *with_respect_to, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        if (with_respect_to[i].index < work->count)
            work->needed[with_respect_to[i].index] = true;
    for (int32_t i = 0; i < work->count; i++) {
        const sgm__instruction *instruction = &work->graph->instructions[i];
        const sgm_value *inputs = work->graph->operands + instruction->first_input;
        bool differentiable =
            sgm_dtype_is_float(instruction->type.dtype) && instruction->op != &sgm__op_stop_gradient;
        for (int32_t k = 0; k < instruction->input_count && differentiable && !work->needed[i]; k++)
            work->needed[i] = work->needed[inputs[k].index];
    }
}

static void accumulate(autodiff *work, sgm_value value, sgm_value gradient)
{
    sgm_value *sum = &work->gradients[value.index];
    *sum = sgm_value_is(*sum) ? sgm_add(work->graph, *sum, gradient) : gradient;
}

static sgm_status backpropagate(sgm_graph *graph, sgm_value root, sgm_value seed,
                                const sgm_value *with_respect_to, int32_t count, sgm_value *gradients);

/* A composed operation without a rule of its own is differentiated as its parts are: it is recorded again,
 * expanded. */
static sgm_status differentiate_parts(autodiff *work, const sgm_gradient_call *call, const sgm_op *op,
                                      sgm_value *gradients)
{
    sgm_value output = op->compose(work->graph, call->inputs, call->input_count, call->attributes);
    if (!sgm_value_is(output))
        return sgm_graph_status(work->graph);
    return backpropagate(work->graph, output, call->gradient, call->inputs, call->input_count, gradients);
}

static sgm_status check_gradient(autodiff *work, const char *op, sgm_value input, sgm_value gradient)
{
    sgm_type wanted = sgm_value_type(work->graph, input), got = sgm_value_type(work->graph, gradient);
    if (wanted.dtype == got.dtype && sgm_shape_equal(&wanted.shape, &got.shape))
        return SGM_OK;
    char a[128], b[128];
    sgm_graph_fail(work->graph, SGM_ERROR_SHAPE,
                   "%s: its gradient rule gave %s %s for an input that is %s %s", op,
                   sgm_dtype_name(got.dtype), sgm_shape_text(&got.shape, a, sizeof a),
                   sgm_dtype_name(wanted.dtype), sgm_shape_text(&wanted.shape, b, sizeof b));
    return sgm_graph_status(work->graph);
}

static sgm_status apply_rule(autodiff *work, const sgm_op *op, const sgm_gradient_call *call,
                             sgm_value *gradients)
{
    if (op->gradient != NULL)
        op->gradient(work->graph, call, gradients);
    else if (op->compose != NULL)
        SGM_TRY(differentiate_parts(work, call, op, gradients));
    else
        sgm_graph_fail(work->graph, SGM_ERROR_UNSUPPORTED,
                       "%s has no gradient; give its table one, or stop the gradient before it", op->name);
    return sgm_graph_status(work->graph);
}

static sgm_status differentiate(autodiff *work, int32_t index)
{
    sgm__instruction instruction = work->graph->instructions[index]; /* copies: recording moves the arrays */
    int32_t count = instruction.input_count;
    if (count == 0)
        return SGM_OK;
    sgm_value *inputs = sgm__calloc((size_t)count, 2 * sizeof(sgm_value) + sizeof(bool));
    if (inputs == NULL)
        return SGM_ERROR_MEMORY;
    sgm_value *gradients = inputs + count;
    bool *wanted = (bool *)(gradients + count);
    memcpy(inputs, work->graph->operands + instruction.first_input, (size_t)count * sizeof(sgm_value));
    for (int32_t k = 0; k < count; k++) {
        gradients[k] = (sgm_value){-1};
        wanted[k] = work->needed[inputs[k].index];
    }
    int32_t label = work->graph->label_name;
    work->graph->label_name = instruction.label;
    sgm_gradient_call call = {.inputs = inputs,
                              .input_count = count,
                              .output = {index},
                              .gradient = work->gradients[index],
                              .attributes = &instruction.attributes,
                              .wanted = wanted};
    sgm_status status = apply_rule(work, instruction.op, &call, gradients);
    for (int32_t k = 0; k < count && status == SGM_OK; k++) {
        if (!wanted[k] || !sgm_value_is(gradients[k]))
            continue;
        status = check_gradient(work, instruction.op->name, inputs[k], gradients[k]);
        if (status == SGM_OK)
            accumulate(work, inputs[k], gradients[k]);
    }
    work->graph->label_name = label;
    sgm__free(inputs);
    return status;
}

static void collect(autodiff *work, const sgm_value *with_respect_to, int32_t count, sgm_value *gradients)
{
    for (int32_t i = 0; i < count; i++) {
        int32_t index = with_respect_to[i].index;
        bool reached = index < work->count && sgm_value_is(work->gradients[index]);
        gradients[i] = reached ? work->gradients[index] : sgm_filled_like(work->graph, with_respect_to[i], 0);
    }
}

/* Gradients of the sum of `root` * `seed`, where seed counts as constant. */
static sgm_status backpropagate(sgm_graph *graph, sgm_value root, sgm_value seed,
                                const sgm_value *with_respect_to, int32_t count, sgm_value *gradients)
{
    autodiff work = {.graph = graph, .count = root.index + 1};
    work.needed = sgm__calloc((size_t)work.count, sizeof(bool));
    work.gradients = sgm__alloc((size_t)work.count * sizeof(sgm_value));
    sgm_status status = SGM_OK;
    if (work.needed == NULL || work.gradients == NULL) {
        sgm_graph_fail(graph, SGM_ERROR_MEMORY, "no memory to differentiate %d instructions", work.count);
        status = SGM_ERROR_MEMORY;
    } else {
        for (int32_t i = 0; i < work.count; i++)
            work.gradients[i] = (sgm_value){-1};
        mark_needed(&work, with_respect_to, count);
        work.gradients[root.index] = seed;
        for (int32_t i = root.index; i >= 0 && status == SGM_OK; i--)
            if (work.needed[i] && sgm_value_is(work.gradients[i]))
                status = differentiate(&work, i);
        if (status == SGM_OK)
            collect(&work, with_respect_to, count, gradients);
    }
    sgm__free(work.needed);
    sgm__free(work.gradients);
    return status == SGM_OK ? sgm_graph_status(graph) : status;
}

static sgm_status check_request(sgm_graph *graph, sgm_value cost, const sgm_value *with_respect_to,
                                int32_t count)
{
    sgm_type type = sgm_value_type(graph, cost);
    if ((size_t)cost.index >= graph->count || !sgm_dtype_is_float(type.dtype) ||
        sgm_shape_elements(&type.shape) != 1) {
        char text[128];
        sgm_graph_fail(graph, SGM_ERROR_SHAPE,
                       "a gradient is of one number of a float type; the cost is %s %s: reduce it",
                       sgm_dtype_name(type.dtype), sgm_shape_text(&type.shape, text, sizeof text));
        return sgm_graph_status(graph);
    }
    for (int32_t i = 0; i < count; i++)
        if (!sgm_value_is(with_respect_to[i]) || (size_t)with_respect_to[i].index >= graph->count ||
            !sgm_dtype_is_float(sgm_value_type(graph, with_respect_to[i]).dtype)) {
            sgm_graph_fail(graph, SGM_ERROR_TYPE,
                           "gradient %d is with respect to nothing, or to a value that is no float", i);
            return sgm_graph_status(graph);
        }
    return SGM_OK;
}

sgm_status sgm_gradients(sgm_graph *graph, sgm_value cost, const sgm_value *with_respect_to, int32_t count,
                         sgm_value *gradients)
{
    for (int32_t i = 0; i < count; i++)
        gradients[i] = (sgm_value){-1};
    SGM_TRY(sgm_graph_status(graph));
    SGM_TRY(check_request(graph, cost, with_respect_to, count));
    sgm_value seed = sgm_filled_like(graph, cost, 1);
    return sgm_value_is(seed) ? backpropagate(graph, cost, seed, with_respect_to, count, gradients)
                              : sgm_graph_status(graph);
}
