/* Parts: a minibatch that several workers share, each with some of its examples. Each records the network
 * with its own, and with what it adds to the costs of the whole minibatch, so that gradients and costs are
 * those of one worker once they are summed.
 *
 * A cost that is a mean counts in each part as much as the part has of what it is a mean over: examples, or
 * the steps that count. Parts of a sum are summed as they are. */
#include "network/network_internal.h"
#include "network/rerecord.h"
#include "ops/ops.h"
#include <sigma/operations.h>

#define MINIMUM_COUNT 1e-30 /* of all parts: nothing counts in them, and nothing is divided by 0 */

void sgm_layer_count(sgm_layer_call *call, sgm_value count)
{
    call->count = count;
}

bool sgm_layer_is_part(const sgm_layer_call *call)
{
    return call->options->part;
}

/* In float32 or float64, as all inputs that share a name have one type. */
static sgm_value share_of_examples(const sgm_layer_call *call)
{
    sgm_shape scalar = sgm_shape_scalar();
    return sgm_input_value(call->graph, SGM__SHARE, sgm__master_dtype(call->options), &scalar);
}

sgm_value sgm_layer_share(sgm_layer_call *call, sgm_graph *graph)
{
    if (!call->options->part)
        return sgm_graph_fail(graph, SGM_ERROR_STATE,
                              "asks for the share of a part, but it has all examples");
    return sgm__mixed_cast(graph, share_of_examples(call), sgm_layer_dtype(call));
}

sgm_value sgm_layer_all_reduce(sgm_layer_call *call, sgm_graph *graph, sgm_value x)
{
    return call->options->part ? sgm__all_reduce(graph, x) : x;
}

/* Where nothing counts in any part, no part has a share. What is counted may depend on parameters, such as
 * weights that are learnt, so gradients go through the share. */
sgm_value sgm__part_share_of(sgm_graph *graph, sgm_value count, sgm_dtype dtype)
{
    sgm_value own = sgm_cast(graph, count, dtype);
    sgm_value all = sgm_maximum(graph, sgm__all_reduce(graph, own), sgm_number(graph, MINIMUM_COUNT));
    return sgm_divide(graph, own, all);
}

sgm_value sgm__part_of_cost(sgm_layer_call *call, sgm_value cost)
{
    if ((call->entry->layer->type->flags & SGM_LAYER_SUM) != 0)
        return cost;
    sgm_value share = sgm_value_is(call->count)
                          ? sgm__part_share_of(call->graph, call->count, sgm__master_dtype(call->options))
                          : share_of_examples(call);
    return sgm_multiply(call->graph, cost, share);
}

sgm_value sgm__part_of_costs(sgm_graph *graph, const sgm_named_value *costs, size_t count)
{
    sgm_value total = {-1};
    for (size_t i = 0; i < count; i++) {
        sgm_value part = costs[i].part;
        if (costs[i].importance != 1)
            part = sgm_multiply(graph, part, sgm_live_number(graph, costs[i].importance));
        total = i == 0 ? part : sgm_add(graph, total, part);
    }
    return total;
}
