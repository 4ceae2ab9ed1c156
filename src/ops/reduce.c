/* Reductions over axes: sum, largest, smallest, and what is composed of them (mean, variance, standard
 * deviation).
 *
 * Axes are a bit mask in the attributes; `keep` leaves dimensions of 1 in their place. Sums are in double,
 * rounded once, of int64 exactly. The largest and the smallest are elements of the input, bit for bit; NaN
 * is before all numbers, so a NaN anywhere is the result. The sum over nothing is 0; the largest of nothing
 * is an error. Loops here are the reference; handlers have their own. */
#include "ops/rules.h"

/* --- rules; integers: bit mask of axes, keep --- */

/* The mask must have no bit beyond the rank. */
static sgm_status check_axes(const sgm_type *x, const sgm_attributes *attributes)
{
    char text[128];
    SGM_TRY(sgm__want_integers(attributes, 2));
    int64_t mask = attributes->integers[0];
    if (mask < 0 || mask >> x->shape.rank != 0)
        return sgm_fail(SGM_ERROR_SHAPE, "the mask of axes is %#llx, but shape %s has %d axes",
                        (unsigned long long)mask, sgm_shape_text(&x->shape, text, sizeof text),
                        x->shape.rank);
    return SGM_OK;
}

/* `x` without the axes of the mask, or with dimensions of 1 there. */
static sgm_shape reduced_shape(const sgm_shape *x, int64_t mask, bool keep)
{
    sgm_shape shape = {0};
    for (int32_t i = 0; i < x->rank; i++)
        if ((mask >> i & 1) == 0)
            shape.dims[shape.rank++] = x->dims[i];
        else if (keep)
            shape.dims[shape.rank++] = 1;
    return shape;
}

/* Any type but bool; the result has the input's type. */
static sgm_status infer_sum(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                            sgm_type *result)
{
    (void)count;
    SGM_TRY(sgm__want_number(&inputs[0]));
    SGM_TRY(check_axes(&inputs[0], attributes));
    result->dtype = inputs[0].dtype;
    result->shape = reduced_shape(&inputs[0].shape, attributes->integers[0], attributes->integers[1] != 0);
    return SGM_OK;
}

/* Any type; an empty axis that is reduced has no largest or smallest element. */
static sgm_status infer_extremum(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                                 sgm_type *result)
{
    (void)count;
    char text[128];
    SGM_TRY(check_axes(&inputs[0], attributes));
    for (int32_t i = 0; i < inputs[0].shape.rank; i++)
        if ((attributes->integers[0] >> i & 1) != 0 && inputs[0].shape.dims[i] == 0)
            return sgm_fail(SGM_ERROR_SHAPE,
                            "axis %d of %s is empty: there is no largest or smallest element", i,
                            sgm_shape_text(&inputs[0].shape, text, sizeof text));
    result->dtype = inputs[0].dtype;
    result->shape = reduced_shape(&inputs[0].shape, attributes->integers[0], attributes->integers[1] != 0);
    return SGM_OK;
}

/* --- loops --- */

/* Two cursors: over the input's axes that stay (outer, in the result's order), and over those that go
 * (inner). */
static void split_axes(const sgm_kernel_call *call, sgm__cursor *outer, sgm__cursor *inner)
{
    const sgm_array *x = &call->inputs[0];
    *outer = *inner = (sgm__cursor){0};
    for (int32_t i = 0; i < x->shape.rank; i++) {
        sgm__cursor *cursor = (call->attributes->integers[0] >> i & 1) != 0 ? inner : outer;
        cursor->strides[cursor->shape.rank] = x->strides[i];
        cursor->shape.dims[cursor->shape.rank++] = x->shape.dims[i];
    }
}

/* Sums what the inner cursor visits from `base` on, and leaves the cursor at its beginning. */
static void store_sum(const sgm_array *x, sgm__cursor *inner, int64_t base, const sgm_array *output,
                      int64_t number)
{
    int64_t count = sgm_shape_elements(&inner->shape);
    if (x->dtype == SGM_INT64) {
        uint64_t sum = 0; /* wraps around like machine arithmetic */
        for (int64_t i = 0; i < count; i++, sgm__cursor_next(inner))
            sum += (uint64_t)sgm__array_index(x, base + inner->offset);
        memcpy(sgm__array_at(output, number), &sum, sizeof sum);
        return;
    }
    double sum = 0;
    for (int64_t i = 0; i < count; i++, sgm__cursor_next(inner))
        sum += sgm_array_load(x, base + inner->offset);
    sgm_array_store(output, number, sum);
}

/* The result is contiguous, so its elements are numbered in the order of the outer cursor. */
static sgm_status forward_sum(const sgm_kernel_call *call)
{
    sgm__cursor outer, inner;
    split_axes(call, &outer, &inner);
    int64_t count = sgm_shape_elements(&outer.shape);
    for (int64_t i = 0; i < count; i++, sgm__cursor_next(&outer))
        store_sum(&call->inputs[0], &inner, outer.offset, &call->output, i);
    return SGM_OK;
}

/* The element is copied as bytes, so int64 keeps all digits. */
static sgm_status forward_extremum(const sgm_kernel_call *call, bool largest)
{
    const sgm_array *x = &call->inputs[0];
    sgm__cursor outer, inner;
    split_axes(call, &outer, &inner);
    int64_t count = sgm_shape_elements(&outer.shape), inner_count = sgm_shape_elements(&inner.shape);
    for (int64_t i = 0; i < count; i++, sgm__cursor_next(&outer)) {
        int64_t best = outer.offset;
        for (int64_t k = 0; k < inner_count; k++, sgm__cursor_next(&inner))
            if (sgm__array_beats(x, outer.offset + inner.offset, best, largest))
                best = outer.offset + inner.offset;
        size_t size = sgm_dtype_size(x->dtype);
        memcpy(sgm__array_at(&call->output, i), sgm__array_at(x, best), size);
    }
    return SGM_OK;
}

static sgm_status forward_max(const sgm_kernel_call *call)
{
    return forward_extremum(call, true);
}

static sgm_status forward_min(const sgm_kernel_call *call)
{
    return forward_extremum(call, false);
}

/* --- gradients --- */

/* A reduced value, repeated along the axes that went away. */
static sgm_value expand(sgm_graph *graph, sgm_value value, const sgm_shape *x, int64_t mask)
{
    sgm_shape kept = reduced_shape(x, mask, true);
    return sgm_broadcast(graph, sgm_reshape(graph, value, &kept), x);
}

/* The gradient, repeated along the axes that were summed. */
static void gradient_sum(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    sgm_shape shape = sgm_value_type(graph, call->inputs[0]).shape;
    if (call->wanted[0])
        gradients[0] = expand(graph, call->gradient, &shape, call->attributes->integers[0]);
}

/* Equal largest elements share the gradient equally: g / (number of ties) for each, which keeps its sum. If
 * the result is NaN, no element equals it, and 0 / 0 makes the gradient NaN, too. */
static void gradient_extremum(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    if (!call->wanted[0])
        return;
    sgm_value x = call->inputs[0];
    sgm_type type = sgm_value_type(graph, x);
    int64_t mask = call->attributes->integers[0];
    sgm_value chosen = sgm_equal(graph, x, expand(graph, call->output, &type.shape, mask));
    chosen = sgm_cast(graph, chosen, type.dtype);
    sgm_value ties = sgm__record_one(graph, &sgm__op_reduce_sum, chosen, &SGM__INTEGERS(mask, 1));
    sgm_shape kept = reduced_shape(&type.shape, mask, true);
    sgm_value share = sgm_divide(graph, sgm_reshape(graph, call->gradient, &kept), ties);
    gradients[0] = sgm_multiply(graph, chosen, sgm_broadcast(graph, share, &type.shape));
}

/* --- tables --- */

/* `kind` names the loop, `rule` the functions that infer types and record gradients. */
#define DEFINE_OP(op_name, kind, rule, op_doc)                                                               \
    const sgm_op sgm__op_##op_name = {SGM__OP(#op_name, 1, op_doc), .flags = SGM_OP_STRIDED,                 \
                                      .infer = infer_##rule, .gradient = gradient_##rule,                    \
                                      .forward = forward_##kind};
DEFINE_OP(reduce_sum, sum, sum, "sum over axes")
DEFINE_OP(reduce_max, max, extremum, "largest over axes; equal ones share its gradient")
DEFINE_OP(reduce_min, min, extremum, "smallest over axes; equal ones share its gradient")

/* --- recording --- */

/* The mask of a list of axes, negative ones counted from the end; no axes mean all of them. */
static bool read_axes(sgm_graph *graph, const char *name, sgm_value x, const int32_t *axes, int32_t count,
                      int64_t *mask)
{
    if (!sgm__can_record(graph, name, x))
        return false;
    *mask = count == 0 ? (1 << sgm_value_type(graph, x).shape.rank) - 1 : 0;
    for (int32_t i = 0; i < count; i++) {
        int32_t axis = axes[i];
        if (!sgm__resolve_axis(graph, name, x, &axis))
            return false;
        if ((*mask >> axis & 1) != 0) {
            sgm_graph_fail(graph, SGM_ERROR_ARGUMENT, "%s: axis %d is named twice", name, axis);
            return false;
        }
        *mask |= (int64_t)1 << axis;
    }
    return true;
}

/* Records a reduction over a list of axes. */
static sgm_value reduce(sgm_graph *graph, const sgm_op *op, sgm_value x, const int32_t *axes, int32_t count,
                        bool keep)
{
    int64_t mask;
    if (!read_axes(graph, op->name, x, axes, count, &mask))
        return (sgm_value){-1};
    return sgm__record_one(graph, op, x, &SGM__INTEGERS(mask, keep));
}

sgm_value sgm_reduce_sum(sgm_graph *graph, sgm_value x, const int32_t *axes, int32_t count, bool keep)
{
    return reduce(graph, &sgm__op_reduce_sum, x, axes, count, keep);
}

sgm_value sgm_reduce_max(sgm_graph *graph, sgm_value x, const int32_t *axes, int32_t count, bool keep)
{
    return reduce(graph, &sgm__op_reduce_max, x, axes, count, keep);
}

sgm_value sgm_reduce_min(sgm_graph *graph, sgm_value x, const int32_t *axes, int32_t count, bool keep)
{
    return reduce(graph, &sgm__op_reduce_min, x, axes, count, keep);
}

/* The sum divided by a constant; an empty axis has no mean. */
sgm_value sgm_reduce_mean(sgm_graph *graph, sgm_value x, const int32_t *axes, int32_t count, bool keep)
{
    int64_t mask, elements = 1;
    if (!read_axes(graph, "reduce_mean", x, axes, count, &mask))
        return (sgm_value){-1};
    sgm_type type = sgm_value_type(graph, x);
    for (int32_t i = 0; i < type.shape.rank; i++)
        if ((mask >> i & 1) != 0)
            elements *= type.shape.dims[i];
    char text[128];
    if (elements == 0)
        return sgm_graph_fail(graph, SGM_ERROR_SHAPE, "reduce_mean: an axis of %s that shall go is empty",
                              sgm_shape_text(&type.shape, text, sizeof text));
    if (!sgm_dtype_is_float(type.dtype))
        return sgm_graph_fail(graph, SGM_ERROR_TYPE, "reduce_mean: wants a float type, got %s: cast it first",
                              sgm_dtype_name(type.dtype));
    return sgm_divide(graph, sgm_reduce_sum(graph, x, axes, count, keep),
                      sgm_number(graph, (double)elements));
}

/* mean((x - mean(x))^2), divided by n, not n - 1. mean(x^2) - mean(x)^2 would cancel where the mean is
 * large. */
sgm_value sgm_reduce_variance(sgm_graph *graph, sgm_value x, const int32_t *axes, int32_t count, bool keep)
{
    sgm_value mean = sgm_reduce_mean(graph, x, axes, count, true);
    return sgm_reduce_mean(graph, sgm_square(graph, sgm_subtract(graph, x, mean)), axes, count, keep);
}

sgm_value sgm_reduce_standard_deviation(sgm_graph *graph, sgm_value x, const int32_t *axes, int32_t count,
                                        bool keep)
{
    return sgm_square_root(graph, sgm_reduce_variance(graph, x, axes, count, keep));
}

sgm_value sgm_sum(sgm_graph *graph, sgm_value x)
{
    return sgm_reduce_sum(graph, x, NULL, 0, false);
}

sgm_value sgm_mean(sgm_graph *graph, sgm_value x)
{
    return sgm_reduce_mean(graph, x, NULL, 0, false);
}

/* Sums over the axes that a broadcast has added or repeated, and restores the shape: the gradient of a
 * broadcast. */
sgm_value sgm__unbroadcast(sgm_graph *graph, sgm_value gradient, const sgm_type *type)
{
    if (!sgm__can_record(graph, "unbroadcast", gradient))
        return (sgm_value){-1};
    sgm_shape wide = sgm_value_type(graph, gradient).shape;
    int32_t missing = wide.rank - type->shape.rank;
    int64_t mask = 0;
    for (int32_t i = 0; i < wide.rank; i++)
        if (i < missing || wide.dims[i] != type->shape.dims[i - missing])
            mask |= (int64_t)1 << i;
    if (mask != 0)
        gradient = sgm__record_one(graph, &sgm__op_reduce_sum, gradient, &SGM__INTEGERS(mask, 0));
    return sgm_reshape(graph, gradient, &type->shape);
}
