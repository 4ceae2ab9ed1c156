/* triplet: what belongs together shall lie nearer than what does not (Schroff et al., 2015).
 *
 * cost = max(margin + |a - p| - |a - n|, 0) for an anchor a, something like it p and something else n.
 * Either every example has the three rows (batch, 3, features), or the examples of a minibatch (batch,
 * features) with classes as targets choose p and n among each other, the hardest ones (Hermans et al.,
 * 2017). The margin is an argument that all hinges share (costs.h). */
#include "network/layers/costs.h"
#include "network/network_internal.h"

/* Nearly the largest float32: stands for entries that must not be chosen, as no distance is beyond it. */
#define FARTHEST 3e38

/* |a - b + 1e-6| along the last axis; the summand keeps the root from 0, where it has no gradient. */
static sgm_value distance(sgm_graph *graph, sgm_value a, sgm_value b)
{
    sgm_value difference = sgm_add(graph, sgm_subtract(graph, a, b), sgm_number(graph, 1e-6));
    return sgm_square_root(graph, sgm__cost_sum_of_last(graph, sgm_square(graph, difference), false));
}

/* max(margin + |a - p| - |a - n|, 0) */
static sgm_value cost_of(const sgm_layer_call *call, sgm_graph *graph, sgm_value anchor, sgm_value positive,
                         sgm_value negative)
{
    sgm_value near = distance(graph, anchor, positive), far = distance(graph, anchor, negative);
    return sgm__cost_margin(call, graph, sgm_subtract(graph, far, near));
}

/* Row `index` of each example, (batch, features). */
static sgm_value row(sgm_graph *graph, sgm_value x, int64_t index)
{
    return sgm_flatten(graph, sgm_slice(graph, x, 1, index, index + 1, 1), 0);
}

/* The field of classes, int64 (batch). Any whole number will do, as classes are only compared. */
static sgm_value numbers_of(sgm_layer_call *call, sgm_graph *graph)
{
    sgm_shape scalar = sgm_scalar_shape();
    sgm_value numbers = sgm_layer_field(call, graph, sgm_layer_text(call, "targets"), &scalar);
    return sgm_value_exists(numbers) ? sgm__layer_index(call, graph, numbers, INT32_MAX) : numbers;
}

/* |a|^2 + |b|^2 - 2 a.b for all pairs of rows, (batch, batch), by one product. Close pairs lose digits,
 * which is exact enough to choose among them; the cost itself uses distance(). */
static sgm_value all_distances(sgm_graph *graph, sgm_value x)
{
    int64_t batch = sgm_value_type(graph, x).shape.dims[0];
    sgm_shape across = sgm_shape_of(1, batch);
    sgm_value squares = sgm__cost_sum_of_last(graph, sgm_square(graph, x), true);
    sgm_value products = sgm_matmul(graph, x, sgm_transpose(graph, x));
    sgm_value sums = sgm_add(graph, squares, sgm_reshape(graph, squares, &across));
    return sgm_subtract(graph, sums, sgm_multiply(graph, products, sgm_number(graph, 2)));
}

/* For each example the farthest of its class and the nearest of the others. The choice has no gradient, the
 * chosen distances do. An example costs nothing if the minibatch has no other class. Workers that share a
 * minibatch see only their parts, so they are refused. */
static sgm_value of_batch(sgm_layer_call *call, sgm_graph *graph, sgm_value x)
{
    if (sgm_layer_is_part(call))
        return sgm_graph_fail(
            graph, SGM_ERROR_UNSUPPORTED,
            "triplet: compares the examples of a minibatch, of which a worker of a gradient "
            "operator has a part: train without workers, or merge parameters, where each "
            "worker has minibatches of its own");
    sgm_value numbers = numbers_of(call, graph);
    if (!sgm_value_exists(numbers))
        return numbers;
    int64_t batch = sgm_value_type(graph, x).shape.dims[0];
    sgm_shape down = sgm_shape_of(batch, 1), across = sgm_shape_of(1, batch);
    sgm_value same =
        sgm_equal(graph, sgm_reshape(graph, numbers, &down), sgm_reshape(graph, numbers, &across));
    sgm_value distances = all_distances(graph, sgm_stop_gradient(graph, x));
    sgm_value farthest = sgm_arg_max(
        graph, sgm_select(graph, same, distances, sgm_filled_like(graph, distances, -FARTHEST)), 1);
    sgm_value nearest = sgm_arg_min(
        graph, sgm_select(graph, same, sgm_filled_like(graph, distances, FARTHEST), distances), 1);
    sgm_value cost =
        cost_of(call, graph, x, sgm_gather(graph, x, farthest, 0), sgm_gather(graph, x, nearest, 0));
    sgm_value equal = sgm__cost_sum_of_last(graph, sgm_cast(graph, same, sgm_layer_dtype(call)), false);
    sgm_value alone = sgm_less(graph, equal, sgm_number(graph, (double)batch));
    return sgm_select(graph, alone, cost, sgm_filled_like(graph, cost, 0));
}

/* Rank 2 and rank 3 tell the two forms apart. */
static sgm_value triplet(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    sgm_value x = inputs[0];
    sgm_shape shape = sgm_value_type(graph, x).shape;
    char text[128];
    const char *weights = sgm_layer_text(call, "weights");
    if (weights != NULL && *weights != '\0')
        return sgm_graph_fail(
            graph, SGM_ERROR_UNSUPPORTED,
            "triplet: compares examples with each other, which have no weights of their own");
    if (shape.rank == 2)
        return of_batch(call, graph, x);
    if (shape.rank == 3 && shape.dims[1] == 3)
        return cost_of(call, graph, row(graph, x, 0), row(graph, x, 1), row(graph, x, 2));
    return sgm_graph_fail(graph, SGM_ERROR_SHAPE,
                          "triplet: expected (batch, features), whose classes are targets, or (batch, 3, "
                          "features) with something, its like and another in each example; got %s",
                          sgm_shape_text(&shape, text, sizeof text));
}

static const sgm_option arguments[] = {SGM__COST_ARGUMENTS, SGM__COST_MARGIN, SGM__COST_SQUARED};

SGM__COST(triplet,
          "what the like of an example lacks to be nearer than others by the margin: of the examples (batch, "
          "features) by their classes' numbers, or of the three rows of each (batch, 3, features)",
          arguments, 0, NULL, .formula = "max(0, margin + |a - like| - |a - other|)",
          .example = "triplet(margin=0.5)");
