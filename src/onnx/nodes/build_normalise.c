/* Build functions of normalisations.
 *
 * Data is (batch, channels, places ...), if not said otherwise. Called by import.c through operators.c. */
#include "onnx/nodes/onnx.h"

/* Shapes a list with one number for each channel as (channels, 1, ...), which broadcasts against (batch,
 * channels, ...). */
static sgm_value by_channel(sgm__onnx_node *n, sgm_value numbers)
{
    sgm_shape shape = {.rank = sgm__onnx_type(n, n->inputs[0]).shape.rank - 1, .dims = {-1}};
    for (int32_t i = 1; i < shape.rank; i++)
        shape.dims[i] = 1;
    return shape.rank < 1 ? sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "data of batch and channels is needed")
                          : sgm_reshape(n->graph, numbers, &shape);
}

/* scale (x - mean) / sqrt(variance + epsilon) + bias, with one factor for each channel: where the variance is
 * known, so is that, before the run. */
static sgm_value normalise(sgm__onnx_node *n, sgm_value x, sgm_value mean, sgm_value variance)
{
    sgm_graph *g = n->graph;
    sgm_value epsilon = sgm_number(g, sgm__onnx_number(n, "epsilon", 1e-5));
    sgm_value factor =
        sgm_divide(g, by_channel(n, n->inputs[1]), sgm_square_root(g, sgm_add(g, variance, epsilon)));
    return sgm_add(g, sgm_multiply(g, sgm_subtract(g, x, mean), factor), by_channel(n, n->inputs[2]));
}

/* Running statistics: momentum * old + (1 - momentum) * batch. In ONNX momentum is the share of the old
 * value, in PyTorch that of the new one. */
static sgm_value moved(sgm__onnx_node *n, sgm_value old, sgm_value batch)
{
    double momentum = sgm__onnx_number(n, "momentum", 0.9);
    sgm_value kept = sgm_multiply(n->graph, old, sgm_number(n->graph, momentum));
    batch = sgm_reshape(n->graph, batch, SGM__ONNX_SHAPE(-1));
    return sgm_add(n->graph, kept, sgm_multiply(n->graph, batch, sgm_number(n->graph, 1 - momentum)));
}

/* scale (x - mean) / sqrt(variance + epsilon) + bias, with the statistics of the inputs, or in training
 * mode with those of the batch over all axes but the channels; the new running statistics are further
 * outputs then. The variance is that of the population (divided by the number of elements). */
sgm_value sgm__onnx_batch_normalisation(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value x = n->inputs[0], mean = by_channel(n, n->inputs[3]), variance = by_channel(n, n->inputs[4]);
    if (sgm__onnx_integer(n, "spatial", 1) != 1)
        return sgm__onnx_unsupported(n, "statistics for each place (spatial is 0) are not supported");
    if (sgm__onnx_integer(n, "training_mode", 0) != 0) {
        int32_t axes[SGM_MAX_RANK] = {0}, count = 1, rank = sgm__onnx_type(n, x).shape.rank;
        for (int32_t i = 2; i < rank; i++)
            axes[count++] = i;
        sgm_value batch_mean = sgm_reduce_mean(g, x, axes, count, true);
        sgm_value batch_variance = sgm_reduce_variance(g, x, axes, count, true);
        n->outputs[1] = moved(n, n->inputs[3], batch_mean);
        n->outputs[2] = moved(n, n->inputs[4], batch_variance);
        mean = batch_mean;
        variance = batch_variance;
    }
    return normalise(n, x, mean, variance);
}

sgm_value sgm__onnx_instance_normalisation(sgm__onnx_node *n)
{
    sgm_value x = n->inputs[0];
    return normalise(n, x, sgm__onnx_over_places(n, x, sgm_reduce_mean),
                     sgm__onnx_over_places(n, x, sgm_reduce_variance));
}

/* Normalises over all axes from `axis` on together. The variance is the mean of the squared centred
 * values, which does not cancel as mean(x^2) - mean^2 would. Over one axis the result is the library's
 * single operation, which has a kernel of its own. Outputs 1 and 2 are the mean and 1 / standard
 * deviation; simplification drops them where nothing reads them. */
sgm_value sgm__onnx_layer_normalisation(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value x = n->inputs[0];
    int32_t axes[SGM_MAX_RANK], count = 0, rank = sgm__onnx_type(n, x).shape.rank;
    int32_t first = sgm__onnx_axis(n, sgm__onnx_integer(n, "axis", -1), rank);
    double epsilon = sgm__onnx_number(n, "epsilon", 1e-5);
    for (int32_t i = first; i < rank; i++)
        axes[count++] = i;
    if (first < 0)
        return (sgm_value){-1};
    sgm_value mean = sgm_reduce_mean(g, x, axes, count, true), centred = sgm_subtract(g, x, mean);
    sgm_value variance = sgm_reduce_mean(g, sgm_square(g, centred), axes, count, true);
    sgm_value standard_deviation = sgm_square_root(g, sgm_add(g, variance, sgm_number(g, epsilon)));
    sgm_value inverse = sgm_reciprocal(g, standard_deviation);
    n->outputs[1] = mean;
    n->outputs[2] = inverse;
    sgm_value y = count == 1 ? sgm_layer_norm(g, x, epsilon) : sgm_multiply(g, centred, inverse);
    y = sgm_multiply(g, y, n->inputs[1]);
    return sgm_value_exists(sgm__onnx_in(n, 2)) ? sgm_add(g, y, n->inputs[2]) : y;
}

/* x / sqrt(mean(x^2) + epsilon) over all axes from `axis` on together, times the scale; float16 and bfloat16
 * in float32. */
sgm_value sgm__onnx_rms_normalisation(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value x = n->inputs[0];
    int32_t axes[SGM_MAX_RANK], count = 0, rank = sgm__onnx_type(n, x).shape.rank;
    int32_t first = sgm__onnx_axis(n, sgm__onnx_integer(n, "axis", -1), rank);
    double epsilon = sgm__onnx_number(n, "epsilon", 1e-5);
    if (sgm__onnx_integer(n, "stash_type", 1) != 1)
        return sgm__onnx_unsupported(n, "'stash_type' is not 1");
    for (int32_t i = first; i < rank; i++)
        axes[count++] = i;
    if (first < 0)
        return (sgm_value){-1};
    if (count == 1)
        return sgm_multiply(g, sgm_rms_norm(g, x, epsilon), n->inputs[1]);
    sgm_value square = sgm_reduce_mean(g, sgm_square(g, x), axes, count, true);
    sgm_value root = sgm_square_root(g, sgm_add(g, square, sgm_number(g, epsilon)));
    return sgm_multiply(g, sgm_divide(g, x, root), n->inputs[1]);
}

/* Channels in groups: each group of an example is normalised over its channels and places. Up to opset 20
 * there is a factor for each group, since then for each channel. */
sgm_value sgm__onnx_group_normalisation(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value x = n->inputs[0], numbers[2];
    sgm_shape s = sgm__onnx_type(n, x).shape;
    int64_t groups = sgm__onnx_integer(n, "num_groups", 0);
    double epsilon = sgm__onnx_number(n, "epsilon", 1e-5);
    if (sgm__onnx_integer(n, "stash_type", 1) != 1)
        return sgm__onnx_unsupported(n, "'stash_type' is not 1");
    if (s.rank < 3 || groups < 1 || s.dims[1] % groups != 0)
        return sgm_graph_fail(g, SGM_ERROR_SHAPE, "%lld groups of channels", (long long)groups);
    x = sgm_reshape(g, x, SGM__ONNX_SHAPE(s.dims[0], groups, -1));
    x = sgm_reshape(g, sgm_layer_norm(g, x, epsilon), &s);
    for (int i = 0; i < 2; i++) {
        numbers[i] = n->inputs[i + 1];
        if (n->opset < 21) {
            numbers[i] = sgm_reshape(g, numbers[i], SGM__ONNX_SHAPE(groups, 1));
            numbers[i] = sgm_broadcast(g, numbers[i], SGM__ONNX_SHAPE(groups, s.dims[1] / groups));
            numbers[i] = sgm_reshape(g, numbers[i], SGM__ONNX_SHAPE(s.dims[1]));
        }
        numbers[i] = by_channel(n, numbers[i]);
    }
    return sgm_add(g, sgm_multiply(g, x, numbers[0]), numbers[1]);
}

/* x / (sum |x|^p)^(1/p) along an axis, p 1 or 2; 0 where that is 0. */
sgm_value sgm__onnx_lp_normalisation(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value x = n->inputs[0];
    int32_t axis = sgm__onnx_axis(n, sgm__onnx_integer(n, "axis", -1), sgm__onnx_type(n, x).shape.rank);
    int64_t p = sgm__onnx_integer(n, "p", 2);
    if (p != 1 && p != 2)
        return sgm__onnx_unsupported(n, "'p' is %lld, not 1 or 2", (long long)p);
    if (axis < 0)
        return (sgm_value){-1};
    sgm_value size = sgm_reduce_sum(g, p == 1 ? sgm_absolute(g, x) : sgm_square(g, x), &axis, 1, true);
    size = p == 1 ? size : sgm_square_root(g, size);
    sgm_value is_zero = sgm_equal(g, size, sgm_number(g, 0));
    return sgm_select(g, is_zero, sgm_filled_like(g, x, 0), sgm_divide(g, x, size));
}

/* (x - mean) / (standard deviation + 1e-9), as the function body in ONNX's specification has it. */
sgm_value sgm__onnx_mean_variance_normalisation(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    int64_t list[SGM_MAX_RANK] = {0, 2, 3};
    int32_t axes[SGM_MAX_RANK], count = sgm__onnx_integers(n, "axes", list, SGM_MAX_RANK);
    sgm_value x = n->inputs[0];
    count = count < 0 ? 3 : count;
    for (int32_t i = 0; i < count; i++)
        axes[i] = sgm__onnx_axis(n, list[i], sgm__onnx_type(n, x).shape.rank);
    if (g->status != SGM_OK)
        return (sgm_value){-1};
    sgm_value centred = sgm_subtract(g, x, sgm_reduce_mean(g, x, axes, count, true));
    sgm_value standard_deviation = sgm_reduce_standard_deviation(g, x, axes, count, true);
    return sgm_divide(g, centred, sgm_add(g, standard_deviation, sgm_number(g, 1e-9)));
}

/* Local response normalisation (Krizhevsky et al., 2012): x / (bias + alpha / size * sum of squares of the
 * `size` channels around)^beta. The sum is one of `size` slices of the squares, padded with zeros along
 * the channels, of which (size - 1) / 2 lie in front. `size` is bounded because each slice is an
 * instruction. */
sgm_value sgm__onnx_lrn(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value x = n->inputs[0], sum = {-1};
    sgm_shape shape = sgm__onnx_type(n, x).shape;
    int64_t size = sgm__onnx_integer(n, "size", 1), before = (size - 1) / 2;
    if (shape.rank < 2 || size < 1 || size > 1024)
        return sgm_graph_fail(g, SGM_ERROR_SHAPE, "a sum over %lld channels", (long long)size);
    sgm_value padded = sgm_pad(g, sgm_square(g, x), 1, before, size - 1 - before, 0);
    for (int64_t i = 0; i < size; i++) {
        sgm_value part = sgm_slice(g, padded, 1, i, i + shape.dims[1], 1);
        sum = i == 0 ? part : sgm_add(g, sum, part);
    }
    sum = sgm_multiply(g, sum, sgm_number(g, sgm__onnx_number(n, "alpha", 1e-4) / (double)size));
    sum = sgm_add(g, sum, sgm_number(g, sgm__onnx_number(n, "bias", 1)));
    return sgm_divide(g, x, sgm_power(g, sum, sgm_number(g, sgm__onnx_number(n, "beta", 0.75))));
}
