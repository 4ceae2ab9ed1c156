/* Makes products with constant weights products of integers of 8 bits: a pass.
 *
 * What is recorded of the weights, their codes and scales, is computed once (src/handlers/session_fold.c).
 * Small weights stay as they are: rounding the other side would cost more than is gained. */
#include "graph/constants.h"
#include "graph/passes.h"
#include "graph/rebuild.h"
#include "ops/ops.h"
#include "ops/quantized.h"

/* Weights from which on a product is worth it. */
#define MINIMUM_WEIGHTS 4096

/* The matrix that an operand is, seen through broadcasts: its leading dimensions are 1, if it has some.
 * False: there are several matrices. */
static bool find_matrix(const sgm_graph *graph, sgm_value operand, sgm_value *matrix)
{
    while (graph->instructions[operand.index].op == &sgm__op_broadcast)
        operand = graph->operands[graph->instructions[operand.index].first_input];
    const sgm_shape *shape = &graph->instructions[operand.index].type.shape;
    for (int32_t i = 0; i + 2 < shape->rank; i++)
        if (shape->dims[i] != 1)
            return false;
    *matrix = operand;
    return shape->rank >= 2;
}

/* Whether this is a product of float32 with constant weights of a suitable size. */
static bool is_suitable(const sgm_graph *graph, const sgm__constancy *constancy,
                        const sgm__instruction *instruction, sgm_value *weights)
{
    if (instruction->op != &sgm__op_matmul || instruction->type.dtype != SGM_FLOAT32)
        return false;
    const sgm_value *operands = graph->operands + instruction->first_input;
    if (constancy[operands[0].index] != SGM__CHANGES || constancy[operands[1].index] != SGM__CONSTANTS ||
        !find_matrix(graph, operands[1], weights))
        return false;
    const sgm_shape *shape = &graph->instructions[weights->index].type.shape;
    const sgm_shape *result = &instruction->type.shape;
    int64_t k = shape->dims[shape->rank - 2], n = shape->dims[shape->rank - 1];
    return n == result->dims[result->rank - 1] && k <= SGM__QUANTIZED_MAXIMUM_DEPTH &&
           k * n >= MINIMUM_WEIGHTS;
}

static sgm_value record(sgm__rebuild *work, const sgm__instruction *instruction, sgm_value weights)
{
    sgm_graph *graph = work->graph;
    sgm_value x = work->inputs[0], matrix = work->map[weights.index], codes, scales;
    if (!sgm__rebuild_label(work, instruction))
        return (sgm_value){-1};
    const sgm_shape shape = sgm_value_type(graph, matrix).shape;
    const sgm_shape flat = sgm_shape_of(shape.dims[shape.rank - 2], shape.dims[shape.rank - 1]);
    sgm_quantize(graph, shape.rank > 2 ? sgm_reshape(graph, matrix, &flat) : matrix, &codes, &scales);
    return sgm_quantized_matmul(graph, x, codes, scales);
}

sgm_graph *sgm__pass_quantized_products(const sgm_graph *graph, int32_t *count)
{
    sgm__rebuild work;
    sgm__constancy *constancy = sgm__constancy_of(graph);
    *count = 0;
    if (constancy == NULL || !sgm__rebuild_begin(&work, graph)) {
        sgm__free(constancy);
        return NULL;
    }
    for (size_t i = 0; i < graph->count && work.graph->status == SGM_OK; i++) {
        const sgm__instruction *instruction = &graph->instructions[i];
        sgm_value weights;
        sgm__rebuild_map(&work, instruction);
        bool suits = is_suitable(graph, constancy, instruction, &weights);
        work.map[i] =
            suits ? record(&work, instruction, weights) : sgm__rebuild_transcribe(&work, instruction);
        *count += suits;
    }
    sgm__free(constancy);
    return sgm__rebuild_finish(&work);
}
