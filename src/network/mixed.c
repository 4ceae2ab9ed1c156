/* Mixed precision: layers in bfloat16 between float32 parameters and float32 costs.
 *
 * Parameters, inputs of the data, costs and outputs are float32 (the master type); each layer sees them cast
 * to bfloat16. Where a value leaves bfloat16, it is taken as it was before it was rounded, if it was float32
 * before: the probabilities of a softmax go into their logarithm with all their digits. After Micikevicius
 * et al. (2018), without their scaling of the cost, which bfloat16 does not need, as its exponent has as
 * many bits as float32's. With float32 or float64 recordings all casts here do nothing. */
#include "graph/graph_internal.h"
#include "network/network_internal.h"

sgm_dtype sgm__master_dtype(const sgm_recording_options *options)
{
    return options->dtype == SGM_BFLOAT16 ? SGM_FLOAT32 : options->dtype;
}

/* The float32 value of which `value` is the cast to bfloat16; nothing if it is no such cast. */
static sgm_value before_rounding(const sgm_graph *graph, sgm_value value)
{
    const sgm__instruction *instruction = &graph->instructions[value.index];
    if (instruction->op != &sgm__op_cast || instruction->type.dtype != SGM_BFLOAT16)
        return (sgm_value){-1};
    sgm_value origin = graph->operands[instruction->first_input];
    return graph->instructions[origin.index].type.dtype == SGM_FLOAT32 ? origin : (sgm_value){-1};
}

sgm_value sgm__mixed_cast(sgm_graph *graph, sgm_value value, sgm_dtype dtype)
{
    if (!sgm_value_exists(value))
        return value;
    sgm_dtype now = sgm_value_type(graph, value).dtype;
    bool widens = now == SGM_BFLOAT16 && dtype == SGM_FLOAT32;
    if (!widens && !(now == SGM_FLOAT32 && dtype == SGM_BFLOAT16))
        return value;
    sgm_value origin = widens ? before_rounding(graph, value) : (sgm_value){-1};
    return sgm_value_exists(origin) ? origin : sgm_cast(graph, value, dtype);
}

/* Elementwise activations run in bfloat16. Others, such as softmax, sum over a row: they run in float32, and
 * their result is rounded once. */
sgm_value sgm__mixed_activation(sgm_graph *graph, const sgm_op *op, sgm_value x)
{
    bool mixed = sgm_value_exists(x) && sgm_value_type(graph, x).dtype == SGM_BFLOAT16;
    if (!mixed || (op->flags & SGM_OP_ELEMENTWISE) != 0)
        return sgm_record(graph, op, &x, 1, NULL);
    x = sgm__mixed_cast(graph, x, SGM_FLOAT32);
    return sgm_cast(graph, sgm_record(graph, op, &x, 1, NULL), SGM_BFLOAT16);
}
