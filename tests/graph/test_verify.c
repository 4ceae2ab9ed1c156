/* The grammar check finds each way in which a graph can be broken. */
#include "graph/graph_internal.h"
#include "handlers/graphs.h"

/* %0 input x, %1 state w, %2 matmul, %3 constant, %4 number, %5 broadcast, %6 add, %7 broadcast, %8 add; an
 * assignment and two outputs */
static sgm_graph *whole_graph(void)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_tensor *tensor = tensor_of(SGM_FLOAT32, DIMS(3), NUMBERS(1, 2, 3));
    sgm_graph_push_label(graph, "layer");
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(3, 3));
    sgm_value w = sgm_state(graph, "w", SGM_FLOAT32, DIMS(3, 3));
    sgm_value product = sgm_matmul(graph, x, w), constant = sgm_constant(graph, tensor);
    sgm_value sum = sgm_add(graph, product, sgm_number(graph, 1));
    sgm_value all = sgm_add(graph, sum, constant);
    sgm_assign(graph, w, all);
    sgm_graph_add_output(graph, "sum", sum);
    sgm_graph_add_output(graph, "all", all);
    sgm_tensor_free(tensor);
    CHECK_OK(sgm_graph_verify(graph));
    CHECK_INT(sgm_graph_count(graph), 9);
    return graph;
}

/* Breaks a whole graph by `damage` and wants the check to say `part`. */
#define CHECK_BROKEN(damage, part)                                                                           \
    do {                                                                                                     \
        sgm_graph *graph = whole_graph();                                                                    \
        sgm__instruction *at = graph->instructions;                                                          \
        (void)at;                                                                                            \
        damage;                                                                                              \
        CHECK_ERROR(sgm_graph_verify(graph), part);                                                          \
        CHECK_OK(sgm_graph_status(graph)); /* looking changes nothing */                                     \
        sgm_graph_free(graph);                                                                               \
    } while (0)

TEST(operations)
{
    static const sgm_op composed = {.api = SGM_OP_API, .name = "composed", .max_inputs = 2};
    CHECK_BROKEN(at[2].op = NULL, "instruction %2 has no operation");
    CHECK_BROKEN(at[2].op = &composed, "or one that cannot be an instruction");
}

TEST(operands)
{
    CHECK_BROKEN(at[2].input_count = 1, "instruction %2 = matmul has 1 inputs, expected 2 to 2");
    CHECK_BROKEN(at[2].input_count = 3, "instruction %2 = matmul has 3 inputs");
    CHECK_BROKEN(at[2].input_count = -1, "instruction %2 = matmul has -1 inputs");
    CHECK_BROKEN(at[2].first_input = -1, "instruction %2 = matmul has operands outside the graph");
    CHECK_BROKEN(at[2].first_input = 1000, "instruction %2 = matmul has operands outside the graph");
    CHECK_BROKEN(graph->operands[at[2].first_input].index = 2,
                 "instruction %2 = matmul reads %2, which does not come before it");
    CHECK_BROKEN(graph->operands[at[2].first_input].index = 7, "reads %7, which does not come before it");
    CHECK_BROKEN(graph->operands[at[2].first_input].index = -1, "reads %-1, which does not come before it");
}

static const sgm_attributes none = {0}, many = {.integer_count = 20},
                            other_shape = {.integer_count = 2, .integers = {4, 3}};

TEST(types)
{
    CHECK_BROKEN(at[2].type.dtype = SGM_FLOAT64,
                 "instruction %2 = matmul is float64 (3, 3), its rule gives float32 (3, 3)");
    CHECK_BROKEN(at[6].type.shape = *DIMS(9), "is float32 (9,), its rule gives float32 (3, 3)");
    CHECK_BROKEN(at[5].attributes = &other_shape, "is float32 (3, 3), its rule gives float32 (4, 3)");
    CHECK_BROKEN(at[0].type.shape = *DIMS(3, 4), "wants (..., m, k) x (..., k, n)");
    CHECK_BROKEN(at[5].attributes = &many, "wants 0 integers and up to 8 dimensions");
}

TEST(sources)
{
    CHECK_BROKEN(at[0].name = 0, "instruction %0 = input: only inputs and states have names, and need one");
    CHECK_BROKEN(at[4].name = at[0].name, "instruction %4 = number: only inputs and states have names");
    CHECK_BROKEN(at[0].name = 1 << 30, "instruction %0 = input has a name or label outside the graph");
    CHECK_BROKEN(at[2].label = -1, "instruction %2 = matmul has a name or label outside the graph");
    CHECK_BROKEN(at[2].name = at[0].name, "instruction %2 = matmul has a name or a tensor, but is no source");
    CHECK_BROKEN(at[2].constant = 0, "instruction %2 = matmul has a name or a tensor, but is no source");
    CHECK_BROKEN((at[1].op = at[0].op, at[1].name = at[0].name),
                 "instructions %0 and %1 are the same input 'x'");
    CHECK_BROKEN(at[3].constant = -1, "instruction %3 = constant has no tensor, or one it should not have");
    CHECK_BROKEN(at[3].constant = 1, "instruction %3 = constant has no tensor");
    CHECK_BROKEN(at[0].constant = 0, "instruction %0 = input has no tensor, or one it should not have");
    CHECK_BROKEN(at[3].type.shape = *DIMS(300), "%3 = constant cannot be of type float32 (300,)");
    CHECK_BROKEN(at[3].type.dtype = SGM_FLOAT64, "%3 = constant cannot be of type float64 (3,)");
    CHECK_BROKEN(at[4].type.shape = *DIMS(1), "%4 = number cannot be of type float32 (1,)");
    CHECK_BROKEN(at[4].attributes = &none, "%4 = number cannot be");
    CHECK_BROKEN(at[0].type.shape.rank = 9, "%0 = input cannot be of type");
    CHECK_BROKEN(at[1].type.shape.dims[0] = -3, "%1 = state cannot be of type float32 (-3, 3)");
    CHECK_BROKEN(at[1].type.dtype = (sgm_dtype)99, "%1 = state cannot be of type");
    CHECK_BROKEN(at[1].input_count = 1, "%1 = state cannot be of type float32 (3, 3) or have 1 inputs");
}

TEST(ends)
{
    CHECK_BROKEN(graph->outputs[1].value.index = 9, "output 'all' is not a value of the graph");
    CHECK_BROKEN(graph->outputs[1].value.index = -1, "output 'all' is not a value of the graph");
    CHECK_BROKEN(graph->outputs[1].name = graph->outputs[0].name, "there are two outputs 'sum'");
    CHECK_BROKEN(graph->outputs[0].name = 0, "output 0 has no name");
    CHECK_BROKEN(graph->outputs[0].name = 1 << 30, "output 0 has no name");
    CHECK_BROKEN(graph->assignments[0].state.index = 0, "assignment 0 is not of a value to a state");
    CHECK_BROKEN(graph->assignments[0].state.index = 99, "assignment 0 is not of a value to a state");
    CHECK_BROKEN(graph->assignments[0].value.index = -1, "assignment 0 is not of a value to a state");
    CHECK_BROKEN(graph->assignments[0].value.index = 3, "state 'w' is assigned a value of another type");
    CHECK_BROKEN(graph->assignments[graph->assignment_count++] = graph->assignments[0],
                 "state 'w' is assigned twice");
}

TEST(a_failed_graph_is_not_whole)
{
    sgm_graph *graph = whole_graph();
    sgm_reshape(graph, (sgm_value){0}, DIMS(5));
    CHECK_ERROR(sgm_graph_verify(graph), "layer layer: reshape: ");
    CHECK_ERROR(sgm_graph_verify(NULL), "the graph is NULL");
    sgm_graph_free(graph);
}
