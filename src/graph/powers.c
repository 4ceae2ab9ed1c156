/* Powers of small whole numbers that are known as products: a logarithm and an exponential take many times as
 * long, on every handler. */
#include "graph/passes.h"
#include "graph/rebuild.h"

#include <sigma/operations.h>

#include <math.h>

#define LARGEST_EXPONENT 8 /* three products, whose errors add up to those of a fast pow() */

/* The one number that all elements of a value are, and will be. */
static bool known_number(const sgm_graph *graph, sgm_value value, double *number)
{
    const sgm__instruction *at = &graph->instructions[value.index];
    while (at->op == &sgm__op_broadcast || at->op == &sgm__op_reshape ||
           (at->op == &sgm__op_cast && sgm_dtype_is_float(at->type.dtype)))
        at = &graph->instructions[graph->operands[at->first_input].index];
    if (at->op == &sgm__op_number && !sgm__number_is_live(at)) {
        *number = at->attributes->numbers[0];
        return true;
    }
    return at->op == &sgm__op_constant && sgm_shape_elements(&at->type.shape) == 1 &&
           sgm_tensor_read(graph->constants[at->constant], number, 1) == SGM_OK;
}

static bool is_small(double exponent)
{
    return fabs(exponent) <= LARGEST_EXPONENT && exponent == floor(exponent);
}

/* By squaring; exponent from 0. */
static sgm_value product(sgm_graph *graph, sgm_value x, int exponent)
{
    if (exponent == 0)
        return sgm_filled_like(graph, x, 1);
    if (exponent == 1)
        return x;
    sgm_value root = product(graph, x, exponent / 2), square = sgm_multiply(graph, root, root);
    return exponent % 2 == 0 ? square : sgm_multiply(graph, square, x);
}

/* The reciprocal comes first: its powers stay numbers where those of x have become too small. */
static sgm_value record_product(sgm__rebuild *work, const sgm__instruction *instruction, int exponent)
{
    sgm_graph *graph = work->graph;
    sgm_value x = work->inputs[0];
    if (!sgm__rebuild_label(work, instruction))
        return (sgm_value){-1};
    if (exponent < 0)
        x = sgm_divide(graph, sgm_number(graph, 1), x);
    return product(graph, x, exponent < 0 ? -exponent : exponent);
}

static bool is_wide(sgm_dtype dtype)
{
    return dtype == SGM_FLOAT32 || dtype == SGM_FLOAT64; /* rounding each product is little */
}

sgm_graph *sgm__pass_powers(const sgm_graph *graph)
{
    sgm__rebuild work;
    if (!sgm__rebuild_begin(&work, graph))
        return NULL;
    for (size_t i = 0; i < graph->count && work.graph->status == SGM_OK; i++) {
        const sgm__instruction *instruction = &graph->instructions[i];
        double exponent = 0;
        sgm__rebuild_map(&work, instruction);
        bool small = instruction->op == &sgm__op_power && is_wide(instruction->type.dtype) &&
                     known_number(work.graph, work.inputs[1], &exponent) && is_small(exponent);
        work.map[i] = small ? record_product(&work, instruction, (int)exponent)
                            : sgm__rebuild_transcribe(&work, instruction);
    }
    return sgm__rebuild_finish(&work);
}
