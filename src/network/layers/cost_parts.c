/* Functions that costs share: targets in the prediction's shape, means and sums over the steps that count.
 *
 * Steps that do not count are set to 0 by a select, never multiplied by 0: data there may be NaN, and 0 *
 * NaN is NaN, as is the gradient. costs.h says what each function returns. */
#include "network/layers/blocks.h"
#include "network/layers/costs.h"

sgm_value sgm__cost_targets(sgm_layer_call *call, sgm_graph *graph, sgm_value prediction)
{
    sgm_shape shape = sgm_value_type(graph, prediction).shape;
    if (shape.rank < 2) {
        char text[128];
        return sgm_graph_fail(graph, SGM_ERROR_SHAPE, "%s: expected a prediction (batch, features), got %s",
                              call->entry->layer->type->name, sgm_shape_text(&shape, text, sizeof text));
    }
    sgm_shape example = sgm_shape_create(shape.rank - 1, shape.dims + 1);
    sgm_value targets = sgm_layer_field(call, graph, sgm_layer_text(call, "targets"), &example);
    /* Targets at steps that do not count may be NaN, and 0 times the gradient of NaN would be NaN. */
    return sgm__cost_counted(call, graph, targets); /* 0 times the gradient of NaN is NaN */
}

/* Without lengths the range of the numbers is checked when they are fed (sgm__layer_index). With lengths the
 * numbers at steps that do not count may be anything, so they are replaced by 0, and who reads the others
 * checks them. */
sgm_value sgm__cost_classes(sgm_layer_call *call, sgm_graph *graph, sgm_value prediction)
{
    sgm_shape shape = sgm_value_type(graph, prediction).shape;
    bool classes = sgm_layer_flag(call, "classes"), shares = sgm_layer_flag(call, "shares");
    if (classes && shares)
        return sgm_graph_fail(graph, SGM_ERROR_ARGUMENT,
                              "%s: targets are numbers of classes or shares, not both",
                              call->entry->layer->type->name);
    if (shares || shape.rank < 2 || (shape.rank == 2 && !classes))
        return (sgm_value){-1};
    sgm_shape example = sgm_shape_create(shape.rank - 2, shape.dims + 1);
    sgm_value numbers = sgm_layer_field(call, graph, sgm_layer_text(call, "targets"), &example);
    /* sgm__cost_counted returns its argument itself if all steps count. */
    sgm_value counted = sgm__cost_counted(call, graph, numbers); /* the others may be anything */
    return counted.index == numbers.index
               ? sgm__layer_index(call, graph, numbers, shape.dims[shape.rank - 1] - 1)
               : sgm__layer_whole(graph, counted);
}

/* Numbers of classes become one-hot in the layer's type. */
sgm_value sgm__cost_shares(sgm_layer_call *call, sgm_graph *graph, sgm_value prediction)
{
    sgm_shape shape = sgm_value_type(graph, prediction).shape;
    sgm_value classes = sgm__cost_classes(call, graph, prediction);
    if (sgm_graph_status(graph) != SGM_OK)
        return (sgm_value){-1};
    return sgm_value_exists(classes)
               ? sgm_one_hot_classes(graph, classes, shape.dims[shape.rank - 1], sgm_layer_dtype(call))
               : sgm__cost_targets(call, graph, prediction);
}

/* x where step < length, else 0, for x (batch, steps, ...). */
sgm_value sgm__cost_counted(sgm_layer_call *call, sgm_graph *graph, sgm_value x)
{
    sgm_value lengths = sgm_layer_lengths(call);
    sgm_shape shape = sgm_value_type(graph, x).shape;
    if (!sgm_value_exists(lengths) || shape.rank < 2)
        return x;
    sgm_value counts = sgm__layer_steps(graph, lengths, shape.dims[1]);
    sgm_shape wide = sgm_shape_of(shape.dims[0], shape.dims[1]);
    while (wide.rank < shape.rank)
        wide.dims[wide.rank++] = 1;
    return sgm_select(graph, sgm_reshape(graph, counts, &wide), x, sgm_filled_like(graph, x, 0));
}

sgm_value sgm__cost_weighted(sgm_layer_call *call, sgm_graph *graph, sgm_value x)
{
    const char *field = sgm_layer_text(call, "weights");
    sgm_shape one = sgm_shape_of(1), wide = {.rank = sgm_value_type(graph, x).shape.rank};
    if (field == NULL || *field == '\0')
        return x;
    sgm_value weights = sgm_layer_field(call, graph, field, &one);
    for (int32_t i = 0; i < wide.rank; i++)
        wide.dims[i] = i == 0 ? sgm_layer_batch(call) : 1;
    return sgm_multiply(graph, x, sgm_reshape(graph, weights, &wide));
}

/* Example i of `x` (batch, steps...), zeros where nothing counts, gets sum_i * batch / (places * all), where
 * `all` of the minibatch's steps count and each has `places` values: its mean over the batch is the mean over
 * all steps that count, long examples counting more. `all` is told to part.c, which weighs the parts of
 * several workers by it. A minibatch without any step costs 0. */
static sgm_value mean_of_all(sgm_layer_call *call, sgm_graph *graph, sgm_value x, sgm_value all,
                             double places)
{
    double batch = (double)sgm_value_type(graph, x).shape.dims[0];
    sgm_layer_set_count(call, all);
    sgm_value factor =
        sgm_divide(graph, sgm_number(graph, batch / places), sgm_maximum(graph, all, sgm_number(graph, 1)));
    return sgm_multiply(graph, sgm__cost_sum_of_examples(call, graph, x), factor);
}

/* Without lengths the mean over all axes but the first. */
sgm_value sgm__cost_mean_of_steps(sgm_layer_call *call, sgm_graph *graph, sgm_value x)
{
    static const int32_t second[] = {1};
    sgm_value lengths = sgm_layer_lengths(call);
    sgm_type type = sgm_value_type(graph, x);
    if (type.shape.rank == 1)
        return sgm__cost_weighted(call, graph, x);
    if (!sgm_value_exists(lengths))
        return sgm__cost_weighted(call, graph,
                                  sgm_reduce_mean(graph, sgm_flatten(graph, x, 0), second, 1, false));
    /* Values that each step has (axes behind the second), of which the mean is taken, too. */
    double places =
        (double)sgm_shape_elements(&type.shape) / (double)(type.shape.dims[0] * type.shape.dims[1]);
    return mean_of_all(call, graph, x, sgm_cast(graph, sgm_sum(graph, lengths), type.dtype), places);
}

/* Numbers of classes below 0 become 0, and what they cost is left out. */
sgm_value sgm__cost_of_known_classes(sgm_layer_call *call, sgm_graph *graph, sgm_value logits)
{
    sgm_shape shape = sgm_value_type(graph, logits).shape;
    if (shape.rank < 2)
        return sgm__cost_targets(call, graph, logits); /* which fails */
    sgm_shape example = sgm_shape_create(shape.rank - 2, shape.dims + 1);
    sgm_value numbers = sgm_layer_field(call, graph, sgm_layer_text(call, "targets"), &example);
    numbers = sgm__mixed_cast(graph, numbers, sgm__master_dtype(call->options));
    numbers = sgm__layer_whole(graph, sgm__cost_counted(call, graph, numbers));
    sgm_value zero = sgm_filled_like(graph, numbers, 0), unknown = sgm_less(graph, numbers, zero);
    sgm_value cost = sgm_class_cross_entropy(graph, logits, sgm_select(graph, unknown, zero, numbers));
    cost = sgm_select(graph, unknown, sgm_filled_like(graph, cost, 0), cost);
    sgm_value known =
        sgm_select(graph, unknown, sgm_filled_like(graph, cost, 0), sgm_filled_like(graph, cost, 1));
    return mean_of_all(call, graph, cost, sgm_sum(graph, sgm__cost_counted(call, graph, known)), 1);
}

sgm_value sgm__cost_sum_of_examples(sgm_layer_call *call, sgm_graph *graph, sgm_value x)
{
    x = sgm__cost_counted(call, graph, x);
    x = sgm_reduce_sum(graph, sgm_flatten(graph, x, 0), (const int32_t[]){1}, 1, false);
    return sgm__cost_weighted(call, graph, x);
}

/* Without lengths and weights it is one number; else one for each example, whose mean the recorder takes. */
sgm_value sgm__cost_mean(sgm_layer_call *call, sgm_graph *graph, sgm_value x)
{
    const char *weights = sgm_layer_text(call, "weights");
    bool all = !sgm_value_exists(sgm_layer_lengths(call)) || sgm_value_type(graph, x).shape.rank < 2;
    return all && (weights == NULL || *weights == '\0') ? sgm_mean(graph, x)
                                                        : sgm__cost_mean_of_steps(call, graph, x);
}

sgm_value sgm__cost_sum_of_last(sgm_graph *graph, sgm_value x, bool keep)
{
    return sgm_reduce_sum(graph, x, (const int32_t[]){-1}, 1, keep);
}

sgm_value sgm__cost_margin(const sgm_layer_call *call, sgm_graph *graph, sgm_value x)
{
    sgm_value margin = sgm_live_number(graph, sgm_layer_number(call, "margin"));
    sgm_value missing = sgm_relu(graph, sgm_subtract(graph, margin, x));
    return sgm_layer_flag(call, "squared") ? sgm_square(graph, missing) : missing;
}
