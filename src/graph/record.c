/* Turns a call such as sgm_add into an instruction, with broadcasting, types of numbers, and checks on the
 * way.
 *
 * All functions of sigma/graph.h end in sgm_record. It makes the operands of an elementwise operation
 * equal in shape (by recording broadcasts) and gives plain numbers the type of the operands that they meet,
 * asks the operation's `infer` for the type of the result, and appends the instruction; an operation without
 * `infer` is only composed, and records its parts. Handlers and passes therefore never see operands of
 * different shapes in an elementwise operation. */
#include "graph/graph_internal.h"
#include <sigma/graph.h>

#include <math.h>
#include <stdio.h>

#define MAX_ADAPTED 8 /* operands of an elementwise operation; others may have any number */

/* Puts "layer 2-dense: matmul: " before the newest message, and keeps it as the graph's failure. The message
 * is copied first, because sgm_graph_fail overwrites it. */
static sgm_value fail_within(sgm_graph *graph, const sgm_op *op)
{
    char message[400];
    snprintf(message, sizeof message, "%s", sgm_last_error());
    sgm_status status = sgm_last_status();
    return sgm_graph_fail(graph, status != SGM_OK ? status : SGM_ERROR_ARGUMENT, "%s: %s", op->name, message);
}

/* Numbers are recorded as float32 (sgm_number); one that meets another type is recorded again in that type.
 * The unused one is dropped by the simplifying pass. */
static sgm_value adapt_number(sgm_graph *graph, sgm_value value, sgm_dtype dtype)
{
    const sgm__instruction *number = &graph->instructions[value.index];
    if (number->op != &sgm__op_number || number->type.dtype == dtype)
        return value;
    sgm__instruction adapted = *number;
    adapted.type.dtype = dtype;
    adapted.input_count = 0;
    return sgm__graph_append(graph, &adapted, NULL);
}

/* A number with a fraction is refused beside integers, which would lose the fraction silently. */
static sgm_status check_number(const sgm_graph *graph, sgm_value value, sgm_dtype dtype)
{
    const sgm__instruction *number = &graph->instructions[value.index];
    if (number->op != &sgm__op_number || sgm_dtype_is_float(dtype) || dtype == SGM_BOOL ||
        number->attributes->numbers[0] == floor(number->attributes->numbers[0]))
        return SGM_OK;
    return sgm_fail(SGM_ERROR_TYPE, "the number %g is no %s: cast the other operand to a float type",
                    number->attributes->numbers[0], sgm_dtype_name(dtype));
}

static bool is_plain_number(const sgm_graph *graph, sgm_value value)
{
    return graph->instructions[value.index].op == &sgm__op_number;
}

/* The operand whose type plain numbers take; -1: none, and numbers stay float32. An operand that is no number
 * leads; among numbers alone, one that has taken another type than float32 before does. The condition of
 * select, a bool with two further operands, does not count. */
static int32_t find_leader(const sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    int32_t adapted = -1;
    for (int32_t i = 0; i < count; i++) {
        sgm_dtype dtype = sgm_value_type(graph, inputs[i]).dtype;
        if (dtype == SGM_BOOL && count == 3)
            continue;
        if (!is_plain_number(graph, inputs[i]))
            return i;
        if (dtype != SGM_FLOAT32 && adapted < 0)
            adapted = i;
    }
    return adapted;
}

/* Broadcasts all operands to their common shape and adapts numbers to the leader's type, in place in
 * `inputs`, which is the caller's copy. A failure is in the thread's error, or in the graph if it came from
 * recording. */
static sgm_status adapt_operands(sgm_graph *graph, sgm_value *inputs, int32_t count)
{
    int32_t leader = find_leader(graph, inputs, count);
    sgm_shape shape = sgm_scalar_shape();
    for (int32_t i = 0; i < count; i++) {
        sgm_type type = sgm_value_type(graph, inputs[i]);
        sgm_shape wider;
        SGM_TRY(sgm_shape_broadcast(&shape, &type.shape, &wider));
        shape = wider;
    }
    for (int32_t i = 0; i < count; i++) {
        if (leader >= 0) {
            sgm_dtype dtype = sgm_value_type(graph, inputs[leader]).dtype;
            SGM_TRY(check_number(graph, inputs[i], dtype));
            inputs[i] = adapt_number(graph, inputs[i], dtype);
        }
        sgm_type type = sgm_value_type(graph, inputs[i]);
        if (sgm_value_exists(inputs[i]) && !sgm_shape_equal(&type.shape, &shape))
            inputs[i] = sgm_broadcast(graph, inputs[i], &shape);
        if (!sgm_value_exists(inputs[i]))
            return graph->status;
    }
    return SGM_OK;
}

/* Checks the table as well as the operands, because it may come from a program. */
static sgm_status check_call(const sgm_graph *graph, const sgm_op *op, const sgm_value *inputs, int32_t count)
{
    if (op->api != SGM_OP_API)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "made for interface %u of operations, this library has %u: compile it again", op->api,
                        (unsigned)SGM_OP_API);
    if (count < op->min_inputs || count > op->max_inputs)
        return sgm_fail(SGM_ERROR_ARGUMENT, "takes %d to %d inputs, %d were given", op->min_inputs,
                        op->max_inputs, count);
    if (op->infer == NULL && op->compose == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "its table has neither infer nor compose");
    if ((op->flags & SGM_OP_ELEMENTWISE) != 0 && count > MAX_ADAPTED)
        return sgm_fail(SGM_ERROR_ARGUMENT, "an elementwise operation takes at most %d inputs", MAX_ADAPTED);
    for (int32_t i = 0; i < count; i++)
        if ((size_t)inputs[i].index >= graph->count)
            return sgm_fail(SGM_ERROR_ARGUMENT, "input %d is not a value of this graph", i);
    return SGM_OK;
}

/* Collects the operands' types on the stack, or in memory for concatenations of many parts. */
static sgm_status infer(const sgm_graph *graph, const sgm_op *op, const sgm_value *inputs, int32_t count,
                        const sgm_attributes *attributes, sgm_type *result)
{
    sgm_type few[MAX_ADAPTED];
    sgm_type *types = few;
    if (count > MAX_ADAPTED && (types = sgm__alloc((size_t)count * sizeof(sgm_type))) == NULL)
        return SGM_ERROR_MEMORY;
    for (int32_t i = 0; i < count; i++)
        types[i] = sgm_value_type(graph, inputs[i]);
    sgm_status status = op->infer(types, count, attributes, result);
    if (types != few)
        sgm__free(types);
    if (status == SGM_OK && sgm_shape_elements(&result->shape) < 0)
        status = sgm_fail(SGM_ERROR_SHAPE, "the result would have more elements than memory can address");
    return status;
}

/* The few operands of an elementwise operation are copied, because `inputs` may point into the graph's own
 * array, which moves as broadcasts are recorded, and because they are adapted in place. */
sgm_value sgm_record(sgm_graph *graph, const sgm_op *op, const sgm_value *inputs, int32_t count,
                     const sgm_attributes *attributes)
{
    if (graph == NULL || graph->status != SGM_OK)
        return (sgm_value){-1};
    for (int32_t i = 0; i < count; i++)
        if (!sgm_value_exists(inputs[i]))
            return sgm_graph_fail(graph, SGM_ERROR_ARGUMENT, "%s: input %d is nothing", op->name, i);
    attributes = sgm__graph_attributes(graph, attributes);
    if (attributes == NULL)
        return fail_within(graph, op);
    sgm_value adapted[MAX_ADAPTED];
    if (count > 0 && count <= MAX_ADAPTED)
        inputs = memcpy(adapted, inputs, (size_t)count * sizeof(sgm_value));
    if (check_call(graph, op, inputs, count) != SGM_OK)
        return fail_within(graph, op);
    if ((op->flags & SGM_OP_ELEMENTWISE) != 0 && op->infer != NULL &&
        adapt_operands(graph, adapted, count) != SGM_OK) {
        if (graph->status == SGM_OK)
            fail_within(graph, op);
        return (sgm_value){-1};
    }
    if (op->infer == NULL)
        return op->compose(graph, inputs, count, attributes);
    sgm__instruction instruction = {.op = op, .attributes = attributes, .input_count = count, .constant = -1};
    if (infer(graph, op, inputs, count, attributes, &instruction.type) != SGM_OK)
        return fail_within(graph, op);
    return sgm__graph_append(graph, &instruction, inputs);
}
