/* Records values that are not computed: inputs, states, constants and numbers.
 *
 * Each is an instruction without operands, whose operation has the flag SGM_OP_SOURCE; the planner gives it a
 * place instead of a kernel. Inputs are fed before each run, states live in the session under their names
 * from run to run, constants belong to the graph, numbers are attributes and end up in the code of kernels.
 * They have functions of their own instead of sgm_record, because a name, a type or a tensor is more than
 * attributes can express. */
#include "graph/graph_internal.h"
#include <sigma/graph.h>

/* Only there to fail if somebody passes a source to sgm_record. */
static sgm_status infer_source(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                               sgm_type *result)
{
    (void)inputs, (void)count, (void)attributes, (void)result;
    return sgm_fail(SGM_ERROR_ARGUMENT,
                    "inputs, states and constants are recorded by functions of their own");
}

const sgm_op sgm__op_input = {.api = SGM_OP_API,
                              .name = "input",
                              .doc = "fed anew at each run",
                              .flags = SGM_OP_SOURCE,
                              .infer = infer_source};
const sgm_op sgm__op_state = {.api = SGM_OP_API,
                              .name = "state",
                              .doc = "outlives runs",
                              .flags = SGM_OP_SOURCE,
                              .infer = infer_source};
const sgm_op sgm__op_constant = {
    .api = SGM_OP_API, .name = "constant", .doc = "a tensor", .flags = SGM_OP_SOURCE, .infer = infer_source};
const sgm_op sgm__op_number = {.api = SGM_OP_API,
                               .name = "number",
                               .doc =
                                   "a number of rank 0; takes the type that an elementwise operation needs",
                               .flags = SGM_OP_SOURCE,
                               .infer = infer_source};

/* Recording a name a second time gives the same value, if its type is the same: layers that share a parameter
 * ask for it independently. */
static sgm_value named_source(sgm_graph *graph, const sgm_op *op, const char *name, sgm_dtype dtype,
                              const sgm_shape *shape)
{
    if (graph == NULL || graph->status != SGM_OK)
        return (sgm_value){-1};
    char text[128];
    if (name == NULL || *name == '\0')
        return sgm_graph_fail(graph, SGM_ERROR_ARGUMENT, "%s without a name", op->name);
    if (sgm_shape_elements(shape) < 0)
        return sgm_graph_fail(graph, SGM_ERROR_SHAPE, "%s '%s' has the impossible shape %s", op->name, name,
                              sgm_shape_text(shape, text, sizeof text));
    int32_t offset = sgm__graph_name(graph, name);
    if (offset < 0)
        return sgm_graph_fail(graph, SGM_ERROR_MEMORY, "no memory for the name '%s'", name);
    const sgm__instruction *known = sgm__graph_source(graph, op, offset);
    if (known == NULL)
        return sgm__graph_append(
            graph, &(sgm__instruction){.op = op, .type = {dtype, *shape}, .name = offset, .constant = -1},
            NULL);
    if (known->type.dtype == dtype && sgm_shape_equal(&known->type.shape, shape))
        return (sgm_value){(int32_t)(known - graph->instructions)};
    char known_text[128];
    return sgm_graph_fail(graph, SGM_ERROR_SHAPE, "%s '%s' is %s %s here and was %s %s before", op->name,
                          name, sgm_dtype_name(dtype), sgm_shape_text(shape, text, sizeof text),
                          sgm_dtype_name(known->type.dtype),
                          sgm_shape_text(&known->type.shape, known_text, sizeof known_text));
}

sgm_value sgm_input_value(sgm_graph *graph, const char *name, sgm_dtype dtype, const sgm_shape *shape)
{
    return named_source(graph, &sgm__op_input, name, dtype, shape);
}

sgm_value sgm_state(sgm_graph *graph, const char *name, sgm_dtype dtype, const sgm_shape *shape)
{
    return named_source(graph, &sgm__op_state, name, dtype, shape);
}

/* The graph keeps its own contiguous copy: the caller's tensor may change later, and hashes and comparisons
 * read the elements in a row. */
sgm_value sgm_constant(sgm_graph *graph, const sgm_tensor *tensor)
{
    if (graph == NULL || graph->status != SGM_OK)
        return (sgm_value){-1};
    sgm_tensor *copy = tensor != NULL ? sgm_tensor_copy(tensor) : NULL;
    if (copy == NULL)
        return sgm_graph_fail(graph, SGM_ERROR_ARGUMENT, "a constant without a tensor, or no memory for it");
    int32_t index = sgm__graph_add_constant(graph, copy);
    sgm_tensor_free(copy);
    if (index < 0)
        return (sgm_value){-1};
    sgm_type type = {sgm_tensor_dtype(tensor), *sgm_tensor_shape(tensor)};
    return sgm__graph_append(
        graph, &(sgm__instruction){.op = &sgm__op_constant, .type = type, .constant = index}, NULL);
}

/* Records a number of rank 0. A live number has an integer attribute besides, and so never equals another
 * one. */
static sgm_value record_number(sgm_graph *graph, double number, sgm_dtype dtype, bool live)
{
    if (graph == NULL || graph->status != SGM_OK)
        return (sgm_value){-1};
    const sgm_attributes attributes = {
        .integer_count = live, .integers = {live}, .number_count = 1, .numbers = {number}};
    const sgm__instruction instruction = {
        .op = &sgm__op_number, .type = {.dtype = dtype}, .attributes = &attributes, .constant = -1};
    return sgm__graph_append(graph, &instruction, NULL);
}

sgm_value sgm_number(sgm_graph *graph, double number)
{
    return record_number(graph, number, SGM_FLOAT32, false);
}

sgm_value sgm_live_number(sgm_graph *graph, double number)
{
    return record_number(graph, number, SGM_FLOAT32, true);
}

bool sgm__number_is_live(const sgm__instruction *instruction)
{
    return instruction->op == &sgm__op_number && instruction->attributes->integer_count > 0;
}

/* A number with a broadcast: it takes no memory of the size of `like`. */
sgm_value sgm_filled_like(sgm_graph *graph, sgm_value like, double number)
{
    if (graph == NULL || graph->status != SGM_OK || !sgm_value_exists(like))
        return (sgm_value){-1};
    sgm_type type = sgm_value_type(graph, like);
    return sgm_broadcast(graph, record_number(graph, number, type.dtype, false), &type.shape);
}
