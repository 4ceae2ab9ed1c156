/* Build functions of reductions, of orders along an axis (ArgMax, TopK, CumSum, Softmax) and of matrix
 * products.
 *
 * Called by import.c through the table in operators.c. Attributes and inputs are read by the functions of
 * node.c. `axes` is an attribute in older opsets and an input that must be known in newer ones;
 * sgm__onnx_list takes either. */
#include "onnx/nodes/onnx.h"

/* Fills `axes`; *count 0 means all axes. Returns false if nothing is to be reduced: a value of rank 0, or
 * no axes and noop_with_empty_axes. */
static bool read_axes(sgm__onnx_node *n, int32_t *axes, int32_t *count)
{
    int64_t list[SGM_MAX_RANK];
    int32_t rank = sgm__onnx_type(n, n->inputs[0]).shape.rank;
    *count = sgm__onnx_list(n, "axes", 1, list, SGM_MAX_RANK);
    for (int32_t i = 0; i < *count; i++)
        axes[i] = sgm__onnx_axis(n, list[i], rank);
    bool noop = sgm__onnx_integer(n, "noop_with_empty_axes", 0) != 0;
    if (*count > 0)
        return true;
    *count = 0;
    return rank > 0 && !noop;
}

/* Reduces x, which may differ from the input in its values but not in its shape. */
static sgm_value reduce_by(sgm__onnx_node *n, sgm_value x, sgm__onnx_reduction function)
{
    int32_t axes[SGM_MAX_RANK], count;
    bool reduces = read_axes(n, axes, &count), keep = sgm__onnx_integer(n, "keepdims", 1) != 0;
    if (n->graph->status != SGM_OK)
        return (sgm_value){-1};
    return reduces ? function(n->graph, x, axes, count, keep) : sgm_copy(n->graph, x);
}

SGM__ONNX_BUILD(reduce_sum, n, reduce_by(n, n->inputs[0], sgm_reduce_sum))
SGM__ONNX_BUILD(reduce_mean, n, reduce_by(n, n->inputs[0], sgm_reduce_mean))
SGM__ONNX_BUILD(reduce_max, n, reduce_by(n, n->inputs[0], sgm_reduce_max))
SGM__ONNX_BUILD(reduce_min, n, reduce_by(n, n->inputs[0], sgm_reduce_min))

/* sum |x| */
SGM__ONNX_BUILD(reduce_l1, n, reduce_by(n, sgm_absolute(n->graph, n->inputs[0]), sgm_reduce_sum))

/* sqrt(sum x^2) */
SGM__ONNX_BUILD(reduce_l2, n, sgm_square_root(n->graph, sgm__onnx_reduce_sum_square(n)))

/* log(sum x) */
SGM__ONNX_BUILD(reduce_log_sum, n, sgm_log(n->graph, sgm__onnx_reduce_sum(n)))

/* sum x^2 */
SGM__ONNX_BUILD(reduce_sum_square, n, reduce_by(n, sgm_square(n->graph, n->inputs[0]), sgm_reduce_sum))

/* log(sum exp(x)) as m + log(sum exp(x - m)) with the maximum m, so that no exponential overflows. Where m
 * is infinite, 0 is subtracted instead: infinity minus infinity would be NaN. The axes are kept for the
 * subtraction and taken away at the end by a sum over dimensions of 1. */
static sgm_value log_sum_exp(sgm_graph *g, sgm_value x, const int32_t *axes, int32_t count, bool keep)
{
    sgm_value maximum = sgm_reduce_max(g, x, axes, count, true);
    maximum = sgm_select(g, sgm_is_finite(g, maximum), maximum, sgm_filled_like(g, maximum, 0));
    sgm_value sum = sgm_reduce_sum(g, sgm_exp(g, sgm_subtract(g, x, maximum)), axes, count, true);
    sgm_value y = sgm_add(g, sgm_log(g, sum), maximum);
    return keep ? y : sgm_reduce_sum(g, y, axes, count, false);
}

SGM__ONNX_BUILD(reduce_log_sum_exp, n, reduce_by(n, n->inputs[0], log_sum_exp))

/* A product along axes; the library has no such reduction. Each axis is sliced entry by entry and the
 * slices are multiplied, so the number of instructions grows with the entries: at most MAXIMUM of them.
 * `goes` says which axes are reduced, `kept` is the shape of the result. The loop over the shape stops
 * multiplying `entries` once it is too large, so that it cannot wrap around to a small number. */
static sgm_value product(sgm_graph *g, sgm_value x, const int32_t *axes, int32_t count, bool keep)
{
    enum { MAXIMUM = 65536 };
    sgm_shape shape = sgm_value_type(g, x).shape, kept = {0};
    int64_t entries = 1;
    bool goes[SGM_MAX_RANK] = {0};
    for (int32_t i = 0; i < shape.rank; i++)
        goes[i] = count == 0;
    for (int32_t i = 0; i < count; i++)
        goes[axes[i]] = true;
    for (int32_t i = 0; i < shape.rank; i++) {
        entries = goes[i] && entries <= MAXIMUM ? sgm__onnx_times(entries, shape.dims[i]) : entries;
        if (!goes[i] || keep)
            kept.dims[kept.rank++] = goes[i] ? 1 : shape.dims[i];
    }
    if (entries > MAXIMUM || entries < 1)
        return sgm_graph_fail(g, SGM_ERROR_UNSUPPORTED, "a product of 1 to %d entries is supported", MAXIMUM);
    for (int32_t axis = 0; axis < shape.rank; axis++) {
        sgm_value all = {-1};
        for (int64_t i = 0; i < shape.dims[axis] && goes[axis]; i++) {
            sgm_value entry = sgm_slice(g, x, axis, i, i + 1, 1);
            all = i == 0 ? entry : sgm_multiply(g, all, entry);
        }
        x = goes[axis] ? all : x;
    }
    return sgm_reshape(g, x, &kept);
}

SGM__ONNX_BUILD(reduce_product, n, reduce_by(n, n->inputs[0], product))

/* --- places along an axis --- */

/* ArgMax and ArgMin. With select_last_index the axis is flipped, the first place taken, and the place
 * counted back from the end. Places are int64, without the axis; keepdims puts it back as a dimension of
 * 1. */
static sgm_value place(sgm__onnx_node *n, sgm_value (*function)(sgm_graph *, sgm_value, int32_t))
{
    sgm_graph *g = n->graph;
    sgm_value x = n->inputs[0];
    sgm_shape shape = sgm__onnx_type(n, x).shape;
    int32_t axis = sgm__onnx_axis(n, sgm__onnx_integer(n, "axis", 0), shape.rank);
    bool is_last = sgm__onnx_integer(n, "select_last_index", 0) != 0;
    if (axis < 0)
        return (sgm_value){-1};
    sgm_value y = function(g, is_last ? sgm_flip(g, x, axis) : x, axis);
    if (is_last) {
        int64_t last = shape.dims[axis] - 1;
        sgm_value end = sgm__onnx_constant(g, sgm_tensor_create_from(SGM_INT64, &(sgm_shape){0}, &last));
        y = sgm_subtract(g, end, y);
    }
    shape.dims[axis] = 1;
    return sgm__onnx_integer(n, "keepdims", 1) != 0 ? sgm_reshape(g, y, &shape) : y;
}

SGM__ONNX_BUILD(arg_max, n, place(n, sgm_arg_max))
SGM__ONNX_BUILD(arg_min, n, place(n, sgm_arg_min))

/* The axis is an input. An exclusive sum leaves each entry itself out: it is the inclusive one of a 0 and the
 * entries, moved by one. */
sgm_value sgm__onnx_cumulative_sum(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value x = n->inputs[0];
    sgm_shape shape = sgm__onnx_type(n, x).shape;
    int64_t given = 0;
    sgm__onnx_known_integers(n, 1, &given, 1);
    int32_t axis = sgm__onnx_axis(n, given, shape.rank);
    bool reverse = sgm__onnx_integer(n, "reverse", 0) != 0;
    if (n->graph->status != SGM_OK)
        return (sgm_value){-1};
    if (sgm__onnx_integer(n, "exclusive", 0) == 0)
        return sgm_cumulative_sum(g, x, axis, reverse);
    sgm_value sum = sgm_cumulative_sum(g, sgm_pad(g, x, axis, !reverse, reverse, 0), axis, reverse);
    return sgm_slice(g, sum, axis, reverse, shape.dims[axis] + reverse, 1);
}

/* The first k of a stable order, and the entries at those places. k is an attribute up to opset 9, an
 * input since. The places are the second output. */
sgm_value sgm__onnx_top_k(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value x = n->inputs[0];
    sgm_shape shape = sgm__onnx_type(n, x).shape;
    int32_t axis = sgm__onnx_axis(n, sgm__onnx_integer(n, "axis", -1), shape.rank);
    int64_t count = n->opset < 10 ? sgm__onnx_integer(n, "k", -1) : 0;
    if (n->opset >= 10 && sgm__onnx_known_integers(n, 1, &count, 1) != 1)
        return sgm_graph_fail(g, SGM_ERROR_SHAPE, "input 1 should be one integer");
    if (axis < 0 || count < 0 || count > shape.dims[axis])
        return sgm_graph_fail(g, SGM_ERROR_SHAPE, "the first %lld of %lld entries", (long long)count,
                              (long long)(axis < 0 ? 0 : shape.dims[axis]));
    bool largest = sgm__onnx_integer(n, "largest", 1) != 0;
    sgm_value order = sgm_slice(g, sgm_argsort(g, x, axis, largest), axis, 0, count, 1);
    n->outputs[1] = order;
    return sgm_gather_along(g, x, order, axis);
}

/* --- along one axis; up to opset 12 along all from that one on --- */

/* Applies a function of the last axis (softmax, log_softmax, hardmax). Since opset 13 it works along one
 * axis, which is exchanged with the last. Before, it works on all axes from `axis` on together: the value
 * is flattened to a matrix (axes before, axes from there on), and reshaped at the end. */
static sgm_value along(sgm__onnx_node *n, sgm_value (*function)(sgm_graph *, sgm_value))
{
    sgm_graph *g = n->graph;
    sgm_value x = n->inputs[0];
    sgm_shape shape = sgm__onnx_type(n, x).shape, flat = {.rank = 2, .dims = {1, 1}};
    int64_t given = sgm__onnx_integer(n, "axis", n->opset < 13 ? 1 : -1);
    if (n->opset < 13 && given == shape.rank)
        return sgm__onnx_unsupported(n, "axis %lld of %d dimensions", (long long)given, shape.rank);
    int32_t axis = sgm__onnx_axis(n, given, shape.rank);
    if (axis < 0)
        return (sgm_value){-1};
    if (n->opset >= 13) {
        sgm_value last = sgm__onnx_swap_last(g, x, axis);
        return sgm__onnx_swap_last(g, function(g, last), axis);
    }
    for (int32_t i = 0; i < shape.rank; i++)
        flat.dims[i >= axis] = sgm__onnx_times(flat.dims[i >= axis], shape.dims[i]);
    return sgm_reshape(g, function(g, sgm_reshape(g, x, &flat)), &shape);
}

SGM__ONNX_BUILD(softmax, n, along(n, sgm_softmax))
SGM__ONNX_BUILD(log_softmax, n, along(n, sgm_log_softmax))

/* 1 at the first largest entry of the last axis, 0 elsewhere. */
static sgm_value hardmax(sgm_graph *g, sgm_value x)
{
    sgm_type type = sgm_value_type(g, x);
    return sgm_one_hot_values(g, sgm_arg_max(g, x, -1), type.shape.dims[type.shape.rank - 1], type.dtype);
}

SGM__ONNX_BUILD(hardmax, n, along(n, hardmax))

/* --- products of matrices --- */

/* numpy.matmul: a vector on the left is a row, one on the right a column, and that dimension of 1 is taken
 * away from the result. Leading dimensions broadcast. */
static sgm_value product_of(sgm_graph *g, sgm_value a, sgm_value b)
{
    sgm_shape left = sgm_value_type(g, a).shape, right = sgm_value_type(g, b).shape;
    if (left.rank == 0 || right.rank == 0)
        return sgm_graph_fail(g, SGM_ERROR_SHAPE,
                              "a product of matrices wants operands of one dimension or more");
    if (left.rank == 1)
        a = sgm_reshape(g, a, SGM__ONNX_SHAPE(1, left.dims[0]));
    if (right.rank == 1)
        b = sgm_reshape(g, b, SGM__ONNX_SHAPE(right.dims[0], 1));
    sgm_value y = sgm_matmul(g, a, b);
    sgm_shape shape = sgm_value_type(g, y).shape, kept = {0};
    if (left.rank > 1 && right.rank > 1)
        return y;
    for (int32_t i = 0; i < shape.rank; i++)
        if (!(left.rank == 1 && i == shape.rank - 2) && !(right.rank == 1 && i == shape.rank - 1))
            kept.dims[kept.rank++] = shape.dims[i];
    return sgm_reshape(g, y, &kept);
}

/* Integers are multiplied and summed as int64, exactly. */
sgm_value sgm__onnx_matmul(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_dtype dtype = sgm__onnx_type(n, n->inputs[0]).dtype;
    if (sgm_dtype_is_float(dtype))
        return product_of(g, n->inputs[0], n->inputs[1]);
    sgm_value y = product_of(g, sgm_cast(g, n->inputs[0], SGM_INT64), sgm_cast(g, n->inputs[1], SGM_INT64));
    return sgm_cast(g, y, dtype);
}

/* alpha a' b' + beta c, where a' and b' may be transposed and c is optional and broadcasts. */
sgm_value sgm__onnx_gemm(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value a = n->inputs[0], b = n->inputs[1], c = sgm__onnx_in(n, 2);
    double alpha = sgm__onnx_number(n, "alpha", 1), beta = sgm__onnx_number(n, "beta", 1);
    if (sgm__onnx_type(n, a).shape.rank != 2 || sgm__onnx_type(n, b).shape.rank != 2)
        return sgm_graph_fail(g, SGM_ERROR_SHAPE, "both operands should be matrices");
    if (sgm__onnx_integer(n, "transA", 0) != 0)
        a = sgm_transpose(g, a);
    if (sgm__onnx_integer(n, "transB", 0) != 0)
        b = sgm_transpose(g, b);
    sgm_value y = sgm_matmul(g, a, b);
    if (alpha != 1)
        y = sgm_multiply(g, y, sgm_number(g, alpha));
    if (!sgm_value_exists(c))
        return y;
    return sgm_add(g, y, beta != 1 ? sgm_multiply(g, c, sgm_number(g, beta)) : c);
}

/* Of each matrix in the last two axes. */
SGM__ONNX_BUILD(determinant, n, sgm_determinant(n->graph, n->inputs[0]))
