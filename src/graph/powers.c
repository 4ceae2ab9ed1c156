/* Turns powers with small whole exponents, known when a program is made, into products: a pass of the
 * planner.
 *
 * pow() takes a logarithm and an exponential, many times as long as a few products, on every handler: a
 * million squares take 0.08 ms instead of 3.3 on one thread. It is a pass over the handler's graph and no
 * rule of recording, so that graphs and exported models still say `power`. Live numbers are no known
 * exponents. bfloat16 is left alone, since each product would be rounded to 8 bits. */
#include "graph/passes.h"
#include "graph/rebuild.h"

#include <sigma/graph.h>

#include <math.h>

#define LARGEST_EXPONENT 8 /* up to four products, whose errors together are those of a fast pow() */

/* If all elements of the value are one number, known now and for good, gives the number: looks through
 * broadcasts, reshapes and casts to float types for a number or a constant of one element. */
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

/* x^exponent by repeated squaring; exponent is 0 or more. */
static sgm_value product(sgm_graph *graph, sgm_value x, int exponent)
{
    if (exponent == 0)
        return sgm_filled_like(graph, x, 1);
    if (exponent == 1)
        return x;
    sgm_value root = product(graph, x, exponent / 2), square = sgm_multiply(graph, root, root);
    return exponent % 2 == 0 ? square : sgm_multiply(graph, square, x);
}

/* For negative exponents the reciprocal comes first: where x^8 would overflow to infinity, whose reciprocal
 * is 0, the power of 1/x is still a (subnormal) number. */
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

/* Types whose rounding after each product is negligible. */
static bool is_wide(sgm_dtype dtype)
{
    return dtype == SGM_FLOAT32 || dtype == SGM_FLOAT64;
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
