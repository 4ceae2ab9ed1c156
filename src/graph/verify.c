/* Checks that a graph is well-formed: the grammar of graphs as a function.
 *
 * In builds with assertions sgm__rebuild_finish runs it on the result of every pass; programs may call it,
 * too. It checks each instruction (operation, operands before it, type as the operation's `infer` gives it,
 * names and tensors exactly where they belong), then outputs and assignments. Some checks compare all pairs:
 * it is meant for debugging, not for each iteration. */
#include "graph/graph_internal.h"

static bool same_type(const sgm_type *a, sgm_dtype dtype, const sgm_shape *shape)
{
    return a->dtype == dtype && sgm_shape_equal(&a->shape, shape);
}

/* Also fills types[k] with the operands' types, for check_type. */
static sgm_status check_inputs(const sgm_graph *graph, int32_t index, sgm_type *types)
{
    const sgm__instruction *instruction = &graph->instructions[index];
    const char *name = instruction->op->name;
    if (instruction->first_input < 0 ||
        (size_t)instruction->first_input + (size_t)instruction->input_count > graph->operand_count)
        return sgm_fail(SGM_ERROR_ARGUMENT, "instruction %%%d = %s has operands outside the graph", index,
                        name);
    for (int32_t k = 0; k < instruction->input_count; k++) {
        int32_t input = graph->operands[instruction->first_input + k].index;
        if (input < 0 || input >= index)
            return sgm_fail(SGM_ERROR_ARGUMENT,
                            "instruction %%%d = %s reads %%%d, which does not come before it", index, name,
                            input);
        types[k] = graph->instructions[input].type;
    }
    return SGM_OK;
}

/* Runs the operation's own rule again: a pass that built an instruction by hand must have agreed with it. */
static sgm_status check_type(const sgm_graph *graph, int32_t index, const sgm_type *types)
{
    const sgm__instruction *instruction = &graph->instructions[index];
    sgm_type expected = {0};
    SGM_TRY(instruction->op->infer(types, instruction->input_count, instruction->attributes, &expected));
    if (same_type(&instruction->type, expected.dtype, &expected.shape))
        return SGM_OK;
    char wanted[128], got[128];
    return sgm_fail(SGM_ERROR_SHAPE, "instruction %%%d = %s is %s %s, its rule gives %s %s", index,
                    instruction->op->name, sgm_dtype_name(instruction->type.dtype),
                    sgm_shape_text(&instruction->type.shape, got, sizeof got), sgm_dtype_name(expected.dtype),
                    sgm_shape_text(&expected.shape, wanted, sizeof wanted));
}

/* Sources have no rule for their type: a number has rank 0, a constant has its tensor's type, inputs and
 * states have any. */
static sgm_status check_source_type(const sgm_graph *graph, int32_t index)
{
    const sgm__instruction *instruction = &graph->instructions[index];
    char text[128];
    bool fits = (size_t)instruction->type.dtype < SGM_DTYPE_COUNT;
    if (instruction->op == &sgm__op_number)
        fits = fits && instruction->type.shape.rank == 0 && instruction->attributes->number_count == 1;
    if (instruction->op == &sgm__op_constant) {
        const sgm_tensor *tensor = graph->constants[instruction->constant];
        fits = same_type(&instruction->type, sgm_tensor_dtype(tensor), sgm_tensor_shape(tensor));
    }
    if (fits && sgm_shape_elements(&instruction->type.shape) >= 0 && instruction->input_count == 0)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_TYPE, "instruction %%%d = %s cannot be of type %s %s or have %d inputs", index,
                    instruction->op->name, sgm_dtype_name(instruction->type.dtype),
                    sgm_shape_text(&instruction->type.shape, text, sizeof text), instruction->input_count);
}

/* Names belong to inputs and states alone, tensors to constants alone; a name is there once for each of the
 * two operations. */
static sgm_status check_source(const sgm_graph *graph, int32_t index)
{
    const sgm__instruction *instruction = &graph->instructions[index];
    bool named = instruction->op == &sgm__op_input || instruction->op == &sgm__op_state;
    if (named != (instruction->name > 0))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "instruction %%%d = %s: only inputs and states have names, and need one", index,
                        instruction->op->name);
    bool constant = instruction->op == &sgm__op_constant;
    if (constant != (instruction->constant >= 0) ||
        (constant && (size_t)instruction->constant >= graph->constant_count))
        return sgm_fail(SGM_ERROR_ARGUMENT, "instruction %%%d = %s has no tensor, or one it should not have",
                        index, instruction->op->name);
    for (int32_t i = 0; named && i < index; i++)
        if (graph->instructions[i].op == instruction->op && graph->instructions[i].name == instruction->name)
            return sgm_fail(SGM_ERROR_ARGUMENT, "instructions %%%d and %%%d are the same %s '%s'", i, index,
                            instruction->op->name, sgm__graph_string(graph, instruction->name));
    return check_source_type(graph, index);
}

/* An operation without `infer` is only ever composed, so it cannot be an instruction. */
static sgm_status check_instruction(const sgm_graph *graph, int32_t index)
{
    const sgm__instruction *instruction = &graph->instructions[index];
    if (instruction->op == NULL || (instruction->op->infer == NULL))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "instruction %%%d has no operation, or one that cannot be an instruction", index);
    size_t names = graph->names.length;
    if ((size_t)instruction->name >= names || (size_t)instruction->label >= names)
        return sgm_fail(SGM_ERROR_ARGUMENT, "instruction %%%d = %s has a name or label outside the graph",
                        index, instruction->op->name);
    if ((instruction->op->flags & SGM_OP_SOURCE) != 0)
        return check_source(graph, index);
    if (instruction->name != 0 || instruction->constant != -1)
        return sgm_fail(SGM_ERROR_ARGUMENT, "instruction %%%d = %s has a name or a tensor, but is no source",
                        index, instruction->op->name);
    if (instruction->input_count < instruction->op->min_inputs ||
        instruction->input_count > instruction->op->max_inputs)
        return sgm_fail(SGM_ERROR_ARGUMENT, "instruction %%%d = %s has %d inputs, expected %d to %d", index,
                        instruction->op->name, instruction->input_count, instruction->op->min_inputs,
                        instruction->op->max_inputs);
    sgm_type *types = sgm__calloc((size_t)instruction->input_count + 1, sizeof(sgm_type));
    if (types == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = check_inputs(graph, index, types);
    if (status == SGM_OK)
        status = check_type(graph, index, types);
    sgm__free(types);
    return status;
}

/* Every output has a value of the graph, and a name that no other output has. */
static sgm_status check_outputs(const sgm_graph *graph)
{
    for (size_t i = 0; i < graph->output_count; i++) {
        const sgm__named *output = &graph->outputs[i];
        if (output->name <= 0 || (size_t)output->name >= graph->names.length)
            return sgm_fail(SGM_ERROR_ARGUMENT, "output %zu has no name", i);
        if ((size_t)output->value.index >= graph->count)
            return sgm_fail(SGM_ERROR_ARGUMENT, "output '%s' is not a value of the graph",
                            sgm__graph_string(graph, output->name));
        for (size_t k = 0; k < i; k++)
            if (graph->outputs[k].name == output->name)
                return sgm_fail(SGM_ERROR_ARGUMENT, "there are two outputs '%s'",
                                sgm__graph_string(graph, output->name));
    }
    return SGM_OK;
}

/* Every assigned state is a state, is assigned once, and gets its own type. */
static sgm_status check_assignments(const sgm_graph *graph)
{
    for (size_t i = 0; i < graph->assignment_count; i++) {
        sgm_value state = graph->assignments[i].state, value = graph->assignments[i].value;
        if ((size_t)state.index >= graph->count || (size_t)value.index >= graph->count ||
            graph->instructions[state.index].op != &sgm__op_state)
            return sgm_fail(SGM_ERROR_ARGUMENT, "assignment %zu is not of a value to a state", i);
        const sgm_type *type = &graph->instructions[value.index].type;
        if (!same_type(&graph->instructions[state.index].type, type->dtype, &type->shape))
            return sgm_fail(SGM_ERROR_TYPE, "state '%s' is assigned a value of another type",
                            sgm_value_name(graph, state));
        for (size_t k = 0; k < i; k++)
            if (graph->assignments[k].state.index == state.index)
                return sgm_fail(SGM_ERROR_ARGUMENT, "state '%s' is assigned twice",
                                sgm_value_name(graph, state));
    }
    return SGM_OK;
}

sgm_status sgm_graph_verify(const sgm_graph *graph)
{
    SGM_TRY(sgm_graph_status(graph));
    for (int32_t i = 0; i < (int32_t)graph->count; i++)
        SGM_TRY(check_instruction(graph, i));
    SGM_TRY(check_outputs(graph));
    return check_assignments(graph);
}
