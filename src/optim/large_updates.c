/* Updates that were made for large networks: lion, lamb, adafactor, muon. The same letters as in
 * optimisers.c; d: weight decay. */
#include "optim/updates.h"

#include <float.h>
#include <math.h>

static sgm_value plus(const sgm_update_call *call, sgm_value a, sgm_value b)
{
    return sgm_add(call->graph, a, b);
}

static sgm_value share(const sgm_update_call *call, sgm_value value, double factor)
{
    return sgm__update_times(call, value, sgm__update_number(call, factor));
}

/* The root of the sum of squares, of rank 0 */
static sgm_value norm(const sgm_update_call *call, sgm_value value)
{
    return sgm_square_root(call->graph, sgm_sum(call->graph, sgm_square(call->graph, value)));
}

/* p (1 - r d) - r sign(b1 m + (1 - b1) g); m = b2 m + (1 - b2) g (Chen et al., 2023) */
sgm_value sgm__update_lion(const sgm_update_call *call)
{
    const sgm_optimiser_options *options = call->options;
    sgm_value old = sgm_optimiser_slot(call, "momentum");
    sgm_value direction =
        plus(call, share(call, old, options->beta1), share(call, call->gradient, 1 - options->beta1));
    sgm__update_blend(call, "momentum", options->beta2, 1 - options->beta2, call->gradient);
    sgm_value step = sgm__update_times(call, sgm_sign(call->graph, direction), call->learning_rate);
    return sgm_subtract(call->graph, sgm__update_decayed(call), step);
}

/* u = m' / (sqrt(s') + e) + d p; p - r u |p| / |u|, where 0 lengths count as equal (You et al., 2019) */
sgm_value sgm__update_lamb(const sgm_update_call *call)
{
    sgm_graph *graph = call->graph;
    const sgm_optimiser_options *options = call->options;
    sgm_value zero = sgm__update_number(call, 0);
    sgm_value mean = sgm__update_blend(call, "momentum", options->beta1, 1 - options->beta1, call->gradient);
    sgm_value squares = sgm__update_blend(call, "squared_gradient", options->beta2, 1 - options->beta2,
                                          sgm_square(graph, call->gradient));
    sgm__bias_corrections corrections = sgm__update_corrections(call);
    mean = sgm_divide(graph, mean, corrections.mean);
    squares = sgm_divide(graph, squares, corrections.squares);
    sgm_value root = plus(call, sgm_square_root(graph, squares), sgm__update_number(call, options->epsilon));
    sgm_value update =
        plus(call, sgm_divide(graph, mean, root), share(call, call->parameter, options->weight_decay));
    sgm_value length = norm(call, call->parameter), step = norm(call, update);
    sgm_value both = sgm_logical_and(graph, sgm_greater(graph, length, zero), sgm_greater(graph, step, zero));
    sgm_value one = sgm_filled_like(graph, length, 1);
    sgm_value ratio =
        sgm_divide(graph, sgm_select(graph, both, length, one), sgm_select(graph, both, step, one));
    return sgm_subtract(graph, call->parameter,
                        sgm__update_times(call, update, sgm__update_times(call, ratio, call->learning_rate)));
}

/* The parameter's shape as rows and columns: its first dimension, and all others. */
static sgm_shape matrix_shape(const sgm_update_call *call)
{
    sgm_shape shape = sgm_value_type(call->graph, call->parameter).shape;
    int64_t elements = sgm_shape_elements(&shape);
    return sgm_shape_of(shape.dims[0], shape.dims[0] > 0 ? elements / shape.dims[0] : 0);
}

static bool is_matrix(const sgm_update_call *call)
{
    sgm_shape shape = sgm_value_type(call->graph, call->parameter).shape;
    return shape.rank > 1 && sgm_shape_elements(&shape) > 0;
}

/* --- adafactor (Shazeer and Stern, 2018) --- */

/* slot + (value - slot) t^-decay_rate, which is assigned to the slot: of all values alike at first */
static sgm_value follow(const sgm_update_call *call, const char *slot, sgm_value value)
{
    sgm_graph *graph = call->graph;
    sgm_shape shape = sgm_value_type(graph, value).shape;
    sgm_value state = sgm_optimiser_slot_shaped(call, slot, &shape);
    sgm_value part = sgm_power(graph, call->step, sgm__update_number(call, -call->options->decay_rate));
    sgm_value now = plus(call, state, sgm__update_times(call, sgm_subtract(graph, value, state), part));
    sgm_assign(graph, state, now);
    return now;
}

/* s of each element, from the means of rows and columns: row column / mean of the rows */
static sgm_value factored_squares(const sgm_update_call *call, sgm_value squares, double minimum)
{
    static const int32_t axes[] = {0, 1, 2, 3, 4, 5, 6, 7};
    sgm_graph *graph = call->graph;
    int32_t rank = sgm_value_type(graph, squares).shape.rank;
    sgm_value rows = follow(call, "row_squares", sgm_reduce_mean(graph, squares, axes + 1, rank - 1, true));
    sgm_value columns = follow(call, "column_squares", sgm_reduce_mean(graph, squares, axes, 1, true));
    sgm_value mean = sgm_maximum(graph, sgm_mean(graph, rows), sgm__update_number(call, minimum));
    return sgm__update_times(call, sgm_divide(graph, rows, mean), columns);
}

/* u = g / sqrt(s); p (1 - r d) - max(e, rms(p)) min(r, 1 / sqrt(t)) u / max(1, rms(u)) */
sgm_value sgm__update_adafactor(const sgm_update_call *call)
{
    sgm_graph *graph = call->graph;
    sgm_type type = sgm_value_type(graph, call->parameter);
    double minimum = type.dtype == SGM_FLOAT64 ? DBL_EPSILON : FLT_EPSILON;
    double size = sqrt((double)sgm_shape_elements(&type.shape));
    sgm_value squares = sgm_square(graph, call->gradient);
    squares = is_matrix(call) ? factored_squares(call, squares, minimum)
                              : follow(call, "squared_gradient", squares);
    squares = sgm_maximum(graph, squares, sgm__update_number(call, minimum * minimum));
    sgm_value update = sgm_divide(graph, call->gradient, sgm_square_root(graph, squares));
    sgm_value bound =
        sgm_maximum(graph, share(call, norm(call, update), 1 / size), sgm__update_number(call, 1));
    sgm_value root = sgm_square_root(graph, call->step);
    sgm_value rate =
        sgm_minimum(graph, call->learning_rate, sgm_divide(graph, sgm__update_number(call, 1), root));
    sgm_value scale = sgm_maximum(graph, share(call, norm(call, call->parameter), 1 / size),
                                  sgm__update_number(call, call->options->epsilon));
    sgm_value factor = sgm_divide(graph, sgm__update_times(call, scale, rate), bound);
    return sgm_subtract(graph, sgm__update_decayed(call), sgm__update_times(call, update, factor));
}

/* --- muon (Jordan, 2024) --- */

/* U V' of a matrix U S V', nearly: five steps of Newton and Schulz with his coefficients. */
static sgm_value orthogonal(const sgm_update_call *call, sgm_value matrix)
{
    sgm_graph *graph = call->graph;
    sgm_shape shape = sgm_value_type(graph, matrix).shape;
    bool tall = shape.dims[0] > shape.dims[1];
    sgm_value x = tall ? sgm_transpose(graph, matrix) : matrix;
    x = sgm_divide(graph, x, sgm_maximum(graph, norm(call, x), sgm__update_number(call, 1e-7)));
    for (int32_t i = 0; i < 5; i++) {
        sgm_value gram = sgm_matmul(graph, x, sgm_transpose(graph, x));
        sgm_value change =
            plus(call, share(call, gram, -4.7750), share(call, sgm_matmul(graph, gram, gram), 2.0315));
        x = plus(call, share(call, x, 3.4445), sgm_matmul(graph, change, x));
    }
    return tall ? sgm_transpose(graph, x) : x;
}

/* v = m v + (1 - m) g; O = orthogonal(m v + (1 - m) g); p (1 - r d) - r 0.2 sqrt(max(rows, columns)) O: so
 * long are adamw's steps, and one learning rate does for both (Liu et al., 2025). */
sgm_value sgm__update_muon(const sgm_update_call *call)
{
    sgm_graph *graph = call->graph;
    double momentum = call->options->momentum;
    if (!is_matrix(call))
        return sgm__update_adamw(call);
    sgm_shape matrix = matrix_shape(call), whole = sgm_value_type(graph, call->parameter).shape;
    sgm_value velocity = sgm__update_blend(call, "momentum", momentum, 1 - momentum, call->gradient);
    sgm_value ahead = plus(call, share(call, velocity, momentum), share(call, call->gradient, 1 - momentum));
    sgm_value direction = orthogonal(call, sgm_reshape(graph, ahead, &matrix));
    double longer = (double)(matrix.dims[0] > matrix.dims[1] ? matrix.dims[0] : matrix.dims[1]);
    sgm_value step = sgm__update_times(call, sgm_reshape(graph, direction, &whole),
                                       share(call, call->learning_rate, 0.2 * sqrt(longer)));
    return sgm_subtract(graph, sgm__update_decayed(call), step);
}
