/* Runs a graph as it was recorded, instruction by instruction, each value in memory of its own: no plan, no
 * fused steps, no views, nothing left out. What handlers are compared with. */
#ifndef SIGMA_TEST_INTERPRETER_H
#define SIGMA_TEST_INTERPRETER_H

#include "graph/passes.h"
#include "tensor/tensor_internal.h"
#include "test.h"

typedef struct interpreter {
    sgm_graph *graph;    /* composed operations expanded */
    sgm_tensor **values; /* one for each instruction; inputs and states are set from outside */
} interpreter;

static bool interpreter_keeps(void *user, const sgm_op *op, sgm_dtype dtype)
{
    (void)user, (void)op, (void)dtype;
    return false;
}

static interpreter interpreter_create(const sgm_graph *graph)
{
    interpreter it = {.graph = sgm__pass_expand(graph, interpreter_keeps, NULL)};
    CHECK_OK(it.graph);
    it.values = calloc(it.graph->count + 1, sizeof(sgm_tensor *));
    for (size_t i = 0; i < it.graph->count; i++) {
        const sgm__instruction *instruction = &it.graph->instructions[i];
        it.values[i] = sgm_tensor_create(instruction->type.dtype, &instruction->type.shape);
        CHECK_OK(it.values[i]);
        if (instruction->constant >= 0)
            CHECK_OK(sgm_tensor_assign(it.values[i], it.graph->constants[instruction->constant]));
        if (instruction->op == &sgm__op_number)
            sgm_tensor_set(it.values[i], NULL, instruction->attributes->numbers[0]);
    }
    return it;
}

static void interpreter_free(interpreter *it)
{
    for (size_t i = 0; i < it->graph->count; i++)
        sgm_tensor_free(it->values[i]);
    free(it->values);
    sgm_graph_free(it->graph);
}

static sgm_tensor *interpreter_source(const interpreter *it, const char *name)
{
    for (size_t i = 0; i < it->graph->count; i++)
        if (it->graph->instructions[i].name > 0 &&
            strcmp(sgm__graph_string(it->graph, it->graph->instructions[i].name), name) == 0)
            return it->values[i];
    return NULL;
}

static sgm_array interpreter_array(sgm_tensor *tensor)
{
    sgm_array array = {sgm_tensor_dtype(tensor), *sgm_tensor_shape(tensor), {0}, sgm_tensor_data(tensor)};
    memcpy(array.strides, sgm_tensor_strides(tensor), (size_t)array.shape.rank * sizeof(int64_t));
    return array;
}

static void interpreter_step(interpreter *it, size_t index)
{
    const sgm__instruction *instruction = &it->graph->instructions[index];
    sgm_array inputs[16];
    CHECK(instruction->input_count <= 16);
    for (int32_t k = 0; k < instruction->input_count; k++)
        inputs[k] = interpreter_array(it->values[it->graph->operands[instruction->first_input + k].index]);
    sgm_kernel_call call = {.inputs = inputs,
                            .input_count = instruction->input_count,
                            .output = interpreter_array(it->values[index]),
                            .attributes = instruction->attributes};
    if (instruction->op->scalar == NULL) {
        CHECK_OK(instruction->op->forward(&call));
        return;
    }
    for (int64_t i = 0; i < sgm_shape_elements(&instruction->type.shape); i++) {
        double numbers[16];
        for (int32_t k = 0; k < instruction->input_count; k++)
            numbers[k] = sgm_array_load(&inputs[k], i);
        sgm_array_store(&call.output, i, instruction->op->scalar(numbers, instruction->attributes));
    }
}

static void interpreter_run(interpreter *it)
{
    for (size_t i = 0; i < it->graph->count; i++)
        if ((it->graph->instructions[i].op->flags & SGM_OP_SOURCE) == 0)
            interpreter_step(it, i);
}

/* States take their new values, all at once. After that, other values of the run are still to be had. */
static void interpreter_assign(interpreter *it)
{
    size_t count = it->graph->assignment_count;
    sgm_tensor **new_values = calloc(count + 1, sizeof(sgm_tensor *));
    for (size_t i = 0; i < count; i++)
        new_values[i] = sgm_tensor_copy(it->values[it->graph->assignments[i].value.index]);
    for (size_t i = 0; i < count; i++) {
        CHECK_OK(sgm_tensor_assign(it->values[it->graph->assignments[i].state.index], new_values[i]));
        sgm_tensor_free(new_values[i]);
    }
    free(new_values);
}

#endif
