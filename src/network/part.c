/* Parts: minibatches that several workers share, each recording the network with some of the examples.
 *
 * Each worker's recording adds its part to the costs of the whole minibatch, so that costs and gradients,
 * summed over the workers (src/parallel), are those of one worker with all examples. A cost that is a mean
 * counts in each part as much as the part has of what it is a mean over: its examples, or the steps that
 * count. cost = sum over parts p of share_p * cost_p, where share_p = count_p / sum of all counts. Parts of
 * a sum (SGM_LAYER_SUM) are added as they are. The share of examples is an input that the worker feeds
 * (SGM__SHARE); other counts are summed amid the program by all_reduce (src/ops/all_reduce.c). */
#include "network/network_internal.h"
#include "network/rerecord.h"
#include "ops/ops.h"
#include <sigma/graph.h>

/* The least divisor of a share. If nothing counts in any part, all counts are 0, and the shares become 0
 * instead of 0 / 0. */
#define MINIMUM_COUNT 1e-30 /* of all parts: nothing counts in them, and nothing is divided by 0 */

void sgm_layer_set_count(sgm_layer_call *call, sgm_value count)
{
    call->count = count;
}

bool sgm_layer_is_part(const sgm_layer_call *call)
{
    return call->options->part;
}

/* An input of rank 0 in the master type, since an input of one name has one type throughout a graph,
 * whatever the type of the layer that asks for it. */
static sgm_value share_of_examples(const sgm_layer_call *call)
{
    sgm_shape scalar = sgm_scalar_shape();
    return sgm_input_value(call->graph, SGM__SHARE, sgm__master_dtype(call->options), &scalar);
}

/* The share cast to the layer's type; the graph fails if the recording is of a whole minibatch. */
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

/* count / max(sum over workers of count, MINIMUM_COUNT). What is counted may depend on parameters, such as
 * weights of examples that are learnt, so gradients go through the share. */
sgm_value sgm__part_share_of(sgm_graph *graph, sgm_value count, sgm_dtype dtype)
{
    sgm_value own = sgm_cast(graph, count, dtype);
    sgm_value all = sgm_maximum(graph, sgm__all_reduce(graph, own), sgm_number(graph, MINIMUM_COUNT));
    return sgm_divide(graph, own, all);
}

/* `cost` is one number, the mean or sum over this part. A layer that called sgm_layer_set_count has its own
 * count; for any other the share of examples is right, because the recorder takes the mean over the batch. */
sgm_value sgm__part_of_cost(sgm_layer_call *call, sgm_value cost)
{
    if ((call->entry->layer->type->flags & SGM_LAYER_SUM) != 0)
        return cost;
    sgm_value share = sgm_value_exists(call->count)
                          ? sgm__part_share_of(call->graph, call->count, sgm__master_dtype(call->options))
                          : share_of_examples(call);
    return sgm_multiply(call->graph, cost, share);
}

/* The total that gradients of a part start from; nothing if there are no costs. Importances are live
 * numbers, so that a change of one needs no new kernels. */
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
