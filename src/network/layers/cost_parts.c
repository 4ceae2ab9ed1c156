/* What costs share: their targets, sums over a record. */
#include "network/layers/costs.h"

sgm_value sgm__cost_targets(sgm_layer_call *call, sgm_graph *graph, sgm_value prediction)
{
    sgm_shape shape = sgm_value_type(graph, prediction).shape;
    if (shape.rank < 2) {
        char text[128];
        return sgm_graph_fail(graph, SGM_ERROR_SHAPE, "%s: expected a prediction (batch, features), got %s",
                              call->entry->layer->type->name, sgm_shape_text(&shape, text, sizeof text));
    }
    sgm_shape record = sgm_shape_make(shape.rank - 1, shape.dims + 1);
    return sgm_layer_section(call, graph, sgm_layer_text(call, "targets"), &record);
}

sgm_value sgm__cost_shares(sgm_layer_call *call, sgm_graph *graph, sgm_value prediction)
{
    sgm_shape shape = sgm_value_type(graph, prediction).shape;
    bool classes = sgm_layer_flag(call, "classes"), shares = sgm_layer_flag(call, "shares");
    const char *layer = call->entry->layer->type->name;
    if (classes && shares)
        return sgm_graph_fail(graph, SGM_ERROR_ARGUMENT,
                              "%s: targets are numbers of classes or shares, not both", layer);
    if (shares || shape.rank < 2 || (shape.rank == 2 && !classes))
        return sgm__cost_targets(call, graph, prediction);
    sgm_shape record = sgm_shape_make(shape.rank - 2, shape.dims + 1);
    sgm_value numbers = sgm_layer_section(call, graph, sgm_layer_text(call, "targets"), &record);
    return sgm_one_hot_classes(graph, sgm_cast(graph, numbers, SGM_INT64), shape.dims[shape.rank - 1],
                               sgm_layer_dtype(call));
}

sgm_value sgm__cost_mean_of_steps(sgm_graph *graph, sgm_value x)
{
    if (sgm_value_type(graph, x).shape.rank == 1)
        return x;
    return sgm_reduce_mean(graph, sgm_flatten(graph, x, 0), (const int32_t[]){1}, 1, false);
}

sgm_value sgm__cost_sum_of_records(sgm_graph *graph, sgm_value x)
{
    return sgm_reduce_sum(graph, sgm_flatten(graph, x, 0), (const int32_t[]){1}, 1, false);
}

sgm_value sgm__cost_sum_of_last(sgm_graph *graph, sgm_value x, bool keep)
{
    return sgm_reduce_sum(graph, x, (const int32_t[]){-1}, 1, keep);
}

sgm_value sgm__cost_margin(const sgm_layer_call *call, sgm_graph *graph, sgm_value x)
{
    sgm_value margin = sgm_number(graph, sgm_layer_number(call, "margin"));
    sgm_value missing = sgm_relu(graph, sgm_subtract(graph, margin, x));
    return sgm_layer_flag(call, "squared") ? sgm_square(graph, missing) : missing;
}
