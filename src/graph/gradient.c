/* Differentiates graphs in reverse mode: records the instructions of the gradient behind those of the cost.
 *
 * sgm_gradients is called by sgm__optimiser_record (src/optim/optimiser.c) and by programs. It marks the
 * instructions on a path from a wanted value to the cost, walks from the cost backwards, and lets each
 * operation's `gradient` record the gradients of its operands given that of its result (vector-Jacobian
 * products). Gradients that reach a value along several paths are added. Because every reader of a value
 * comes behind it, the sum of a value is complete when the walk arrives there. Results are instructions like
 * all others, so gradients can be differentiated again; handlers know nothing of them. Operations without a
 * rule that are composed of others are differentiated by way of their parts. */
#include "graph/graph_internal.h"
#include <sigma/graph.h>

#include <stdio.h>

/* Asks for the gradients of sum(root * seed) with respect to `count` values; seed is treated as constant.
 * Instructions before `first` are not looked into: they belong to what was recorded before. */
typedef struct request {
    sgm_value root, seed;
    const sgm_value *with_respect_to;
    int32_t count, first;
} request;

/* The work for one request. Arrays have an entry for each instruction up to the root; instructions recorded
 * meanwhile lie behind. */
typedef struct autodiff {
    sgm_graph *graph;
    int32_t count;        /* instructions up to and with the cost */
    bool *needed;         /* on a path from a wanted value to the root */
    sgm_value *gradients; /* by value: the sum so far; nothing: zero */
} autodiff;

/* An instruction is needed if one of its operands is. Integers and stop_gradient end a path. */
static void mark_needed(autodiff *work, const request *wanted)
{
    for (int32_t i = 0; i < wanted->count; i++)
        if (wanted->with_respect_to[i].index < work->count)
            work->needed[wanted->with_respect_to[i].index] = true;
    for (int32_t i = wanted->first; i < work->count; i++) {
        const sgm__instruction *instruction = &work->graph->instructions[i];
        bool differentiable =
            sgm_dtype_is_float(instruction->type.dtype) && instruction->op != &sgm__op_stop_gradient;
        for (int32_t k = 0; k < instruction->input_count && differentiable && !work->needed[i]; k++)
            work->needed[i] = work->needed[work->graph->operands[instruction->first_input + k].index];
    }
}

static sgm_status fail_memory(sgm_graph *graph)
{
    sgm_graph_fail(graph, SGM_ERROR_MEMORY, "no memory to differentiate %zu instructions", graph->count);
    return SGM_ERROR_MEMORY;
}

static void accumulate(autodiff *work, sgm_value value, sgm_value gradient)
{
    sgm_value *sum = &work->gradients[value.index];
    *sum = sgm_value_exists(*sum) ? sgm_add(work->graph, *sum, gradient) : gradient;
}

static sgm_status backpropagate(sgm_graph *graph, const request *wanted, sgm_value *gradients);

/* The wanted operands, each once: an operation with two equal operands (x * x) has one gradient for both.
 * positions[i] is where list[i] comes first. Returns how many there are. */
static int32_t list_wanted(const sgm_gradient_call *call, sgm_value *list, int32_t *positions)
{
    int32_t count = 0;
    for (int32_t k = 0; k < call->input_count; k++) {
        bool listed = !call->wanted[k];
        for (int32_t i = 0; i < count && !listed; i++)
            listed = list[i].index == call->inputs[k].index;
        if (listed)
            continue;
        positions[count] = k;
        list[count++] = call->inputs[k];
    }
    return count;
}

/* Differentiates a composed operation that has no rule: its parts are recorded once more, and a request for
 * the gradients of these parts alone is answered. The operands count as leaves, even where one is computed
 * from another, since the outer walk goes on from there. The simplifying pass removes the second copy of the
 * parts where the forward pass has the same ones. */
static sgm_status differentiate_parts(autodiff *work, const sgm_gradient_call *call, const sgm_op *op,
                                      sgm_value *gradients)
{
    int32_t first = sgm_graph_count(work->graph);
    sgm_value output = op->compose(work->graph, call->inputs, call->input_count, call->attributes);
    if (!sgm_value_exists(output))
        return sgm_graph_status(work->graph);
    sgm_value *list = sgm__alloc((size_t)call->input_count * (2 * sizeof(sgm_value) + sizeof(int32_t)));
    if (list == NULL)
        return fail_memory(work->graph);
    sgm_value *found = list + call->input_count;
    int32_t *positions = (int32_t *)(found + call->input_count);
    request wanted = {.root = output,
                      .seed = call->gradient,
                      .with_respect_to = list,
                      .count = list_wanted(call, list, positions),
                      .first = first};
    sgm_status status = backpropagate(work->graph, &wanted, found);
    for (int32_t i = 0; i < wanted.count && status == SGM_OK; i++)
        gradients[positions[i]] = found[i];
    sgm__free(list);
    return status;
}

/* A wrong rule of a program's own operation is reported here, with its name, instead of as a failure of some
 * addition. */
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

/* Calls the rule and adds its results to the gradients of the operands. A gradient that stays nothing is
 * zero. */
static sgm_status call_rule(autodiff *work, const sgm_op *op, const sgm_gradient_call *call,
                            sgm_value *gradients)
{
    sgm_status status = apply_rule(work, op, call, gradients);
    for (int32_t k = 0; k < call->input_count && status == SGM_OK; k++) {
        if (!call->wanted[k] || !sgm_value_exists(gradients[k]))
            continue;
        status = check_gradient(work, op->name, call->inputs[k], gradients[k]);
        if (status == SGM_OK)
            accumulate(work, call->inputs[k], gradients[k]);
    }
    return status;
}

/* Gives the gradient's instructions, and failures, the label of the layer that recorded the instruction. The
 * label is set directly, as it is a complete one and not nested in the present label. */
static sgm_status call_rule_in_layer(autodiff *work, const sgm__instruction *instruction,
                                     const sgm_gradient_call *call, sgm_value *gradients)
{
    sgm_graph *graph = work->graph;
    char label[sizeof graph->label];
    int32_t label_name = graph->label_name;
    memcpy(label, graph->label, sizeof label);
    snprintf(graph->label, sizeof graph->label, "%s", sgm__graph_string(graph, instruction->label));
    graph->label_name = instruction->label;
    sgm_status status = call_rule(work, instruction->op, call, gradients);
    memcpy(graph->label, label, sizeof label);
    graph->label_name = label_name;
    return status;
}

/* One block of memory holds the operands, their gradients and the flags. Instruction and operands are copied,
 * as recording moves the graph's arrays. */
static sgm_status differentiate(autodiff *work, int32_t index)
{
    sgm__instruction instruction = work->graph->instructions[index];
    int32_t count = instruction.input_count;
    if (count == 0)
        return SGM_OK;
    sgm_value *inputs = sgm__calloc((size_t)count, 2 * sizeof(sgm_value) + sizeof(bool));
    if (inputs == NULL)
        return fail_memory(work->graph);
    sgm_value *gradients = inputs + count;
    bool *wanted = (bool *)(gradients + count), any = false;
    memcpy(inputs, work->graph->operands + instruction.first_input, (size_t)count * sizeof(sgm_value));
    for (int32_t k = 0; k < count; k++) {
        gradients[k] = (sgm_value){-1};
        wanted[k] = work->needed[inputs[k].index];
        any = any || wanted[k];
    }
    sgm_gradient_call call = {.inputs = inputs,
                              .input_count = count,
                              .output = {index},
                              .gradient = work->gradients[index],
                              .attributes = instruction.attributes,
                              .wanted = wanted};
    sgm_status status = any ? call_rule_in_layer(work, &instruction, &call, gradients) : SGM_OK;
    sgm__free(inputs);
    return status;
}

/* Values that the cost does not depend on get zeros of their type. */
static void collect(autodiff *work, const request *wanted, sgm_value *gradients)
{
    for (int32_t i = 0; i < wanted->count; i++) {
        sgm_value value = wanted->with_respect_to[i];
        bool reached = value.index < work->count && sgm_value_exists(work->gradients[value.index]);
        gradients[i] = reached ? work->gradients[value.index] : sgm_filled_like(work->graph, value, 0);
    }
}

/* The walk backwards. It includes wanted values that have operands themselves (such as a hidden layer's
 * result): their gradient is complete, and earlier values may be wanted, too. */
static sgm_status backpropagate(sgm_graph *graph, const request *wanted, sgm_value *gradients)
{
    autodiff work = {.graph = graph, .count = wanted->root.index + 1};
    work.needed = sgm__calloc((size_t)work.count, sizeof(bool));
    work.gradients = sgm__alloc((size_t)work.count * sizeof(sgm_value));
    sgm_status status = SGM_OK;
    if (work.needed == NULL || work.gradients == NULL) {
        status = fail_memory(graph);
    } else {
        for (int32_t i = 0; i < work.count; i++)
            work.gradients[i] = (sgm_value){-1};
        mark_needed(&work, wanted);
        work.gradients[wanted->root.index] = wanted->seed;
        for (int32_t i = wanted->root.index; i >= wanted->first && status == SGM_OK; i--)
            if (work.needed[i] && sgm_value_exists(work.gradients[i]))
                status = differentiate(&work, i);
        if (status == SGM_OK)
            collect(&work, wanted, gradients);
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
        if (!sgm_value_exists(with_respect_to[i]) || (size_t)with_respect_to[i].index >= graph->count ||
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
    request wanted = {.root = cost,
                      .seed = sgm_filled_like(graph, cost, 1),
                      .with_respect_to = with_respect_to,
                      .count = count};
    return sgm_value_exists(wanted.seed) ? backpropagate(graph, &wanted, gradients) : sgm_graph_status(graph);
}
