/* Build functions of operators that make constants, change shapes, take parts of values, and pad.
 *
 * Called by import.c through the table in operators.c. Shapes, axes, sizes and steps must be known while
 * the model is recorded: they come from attributes or, by way of evaluate.c, from inputs. Shape and Size
 * become constants here, so a model that computes with shapes costs nothing for it when it runs. Nodes
 * that pick entries by numbers are in build_gather.c, those whose result has a size that depends on data
 * in build_choose.c.
 *
 * Files are not trusted: dimensions may be huge or negative, so sums and products of them are checked or
 * wrap (sgm__onnx_times) before sgm_reshape and its like check the shape. */
#include "onnx/nodes/onnx.h"

/* --- constants --- */

/* A constant with one axis. */
static sgm_value constant_list(sgm__onnx_node *n, sgm_dtype dtype, size_t count, const void *values)
{
    return sgm__onnx_constant(n->graph,
                              sgm_tensor_create_from(dtype, SGM__ONNX_SHAPE((int64_t)count), values));
}

/* Constant has exactly one of these attributes. value_string, value_strings and sparse_value are not
 * supported. */
sgm_value sgm__onnx_constant_node(sgm__onnx_node *n)
{
    static const sgm_shape one = {0};
    const Onnx__AttributeProto *a;
    if ((a = sgm__onnx_attribute(n, "value")) != NULL && a->t != NULL)
        return sgm__onnx_constant_tensor(n->import, a->t);
    if ((a = sgm__onnx_attribute(n, "value_float")) != NULL)
        return sgm__onnx_constant(n->graph, sgm_tensor_create_from(SGM_FLOAT32, &one, &a->f));
    if ((a = sgm__onnx_attribute(n, "value_int")) != NULL)
        return sgm__onnx_constant(n->graph, sgm_tensor_create_from(SGM_INT64, &one, &a->i));
    if ((a = sgm__onnx_attribute(n, "value_floats")) != NULL)
        return constant_list(n, SGM_FLOAT32, a->n_floats, a->floats);
    if ((a = sgm__onnx_attribute(n, "value_ints")) != NULL)
        return constant_list(n, SGM_INT64, a->n_ints, a->ints);
    return sgm__onnx_unsupported(n, "a constant should be a tensor, numbers or integers");
}

/* Reads a shape from an input that is known; false and a failure of the graph if it is not, or has too
 * many dimensions. */
static bool known_shape(sgm__onnx_node *n, int32_t input, sgm_shape *shape)
{
    *shape = (sgm_shape){0};
    shape->rank = sgm__onnx_known_integers(n, input, shape->dims, SGM_MAX_RANK);
    return shape->rank >= 0;
}

/* A constant with one element (0 in float32 by default), broadcast to the shape: no large constant is
 * stored. */
sgm_value sgm__onnx_constant_of_shape(sgm__onnx_node *n)
{
    sgm_shape shape;
    const Onnx__AttributeProto *value = sgm__onnx_attribute(n, "value");
    bool given = value != NULL && value->t != NULL;
    sgm_value one = given ? sgm__onnx_constant_tensor(n->import, value->t)
                          : sgm__onnx_constant(n->graph, sgm_tensor_create(SGM_FLOAT32, SGM__ONNX_SHAPE(1)));
    if (!known_shape(n, 0, &shape) || !sgm_value_exists(one))
        return (sgm_value){-1};
    sgm_value filled = sgm_broadcast(n->graph, sgm_reshape(n->graph, one, &(sgm_shape){0}), &shape);
    return sgm__onnx_mark(n->import, filled, given ? value->t->data_type : 0);
}

#define LONGEST_RANGE (1 << 27)

/* How many numbers a range of int64 has: its distance divided by the step, rounded up. Unsigned, since the
 * distance of two ends need not fit into int64. A step of 0 never arrives. */
static uint64_t count_whole(int64_t first, int64_t end, int64_t step)
{
    if (step == 0)
        return UINT64_MAX;
    if (step > 0 ? first >= end : first <= end)
        return 0;
    uint64_t distance = step > 0 ? (uint64_t)end - (uint64_t)first : (uint64_t)first - (uint64_t)end;
    return (distance - 1) / (step > 0 ? (uint64_t)step : -(uint64_t)step) + 1;
}

/* A range of int64, exactly. */
static sgm_value whole_range(sgm__onnx_node *n)
{
    int64_t given[3] = {0};
    for (int32_t i = 0; i < 3; i++)
        if (sgm__onnx_known_integers(n, i, &given[i], 1) != 1)
            return sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "input %d should be one number", i);
    uint64_t count = count_whole(given[0], given[1], given[2]);
    if (count >= LONGEST_RANGE)
        return sgm_graph_fail(n->graph, SGM_ERROR_UNSUPPORTED,
                              "a range has at most %d numbers, this has %llu", LONGEST_RANGE,
                              (unsigned long long)count);
    sgm_tensor *tensor = sgm_tensor_create(SGM_INT64, SGM__ONNX_SHAPE((int64_t)count));
    uint64_t *numbers = tensor != NULL ? sgm_tensor_data(tensor) : NULL;
    for (uint64_t i = 0; i < count && numbers != NULL; i++)
        numbers[i] = (uint64_t)given[0] + i * (uint64_t)given[2];
    return sgm__onnx_constant(n->graph, tensor);
}

/* first, first + step, ... below the end (above it for a negative step), as a constant. Each number is
 * first + i * step and not a running sum, so rounding does not accumulate; in float64, which is exact for
 * all types but int64. The number of entries is (end - first) / step rounded up, and none if that is
 * negative. For a step of 0 it is an infinity or NaN, which the comparison refuses as well. */
sgm_value sgm__onnx_range(sgm__onnx_node *n)
{
    if (sgm__onnx_type(n, n->inputs[0]).dtype == SGM_INT64)
        return whole_range(n);
    double first = sgm__onnx_known_number(n, 0, 0), end = sgm__onnx_known_number(n, 1, 0);
    double step = sgm__onnx_known_number(n, 2, 1), steps = (end - first) / step;
    if (n->graph->status != SGM_OK)
        return (sgm_value){-1};
    if (!(steps < LONGEST_RANGE))
        return sgm_graph_fail(n->graph, SGM_ERROR_UNSUPPORTED, "a range has at most %d numbers, this has %g",
                              LONGEST_RANGE, steps);
    int64_t count = steps > 0 ? (int64_t)steps + ((double)(int64_t)steps < steps) : 0;
    sgm_tensor *tensor = sgm_tensor_create(sgm__onnx_type(n, n->inputs[0]).dtype, SGM__ONNX_SHAPE(count));
    for (int64_t i = 0; i < count && tensor != NULL; i++)
        sgm_tensor_set(tensor, &i, first + (double)i * step);
    return sgm__onnx_constant(n->graph, tensor);
}

/* A matrix with 1 on the diagonal that is shifted by k to the right: where column = row + k. */
sgm_value sgm__onnx_eye_like(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_type type = sgm__onnx_type(n, n->inputs[0]);
    int64_t shift = sgm__onnx_integer(n, "k", 0);
    int64_t number = sgm__onnx_integer(n, "dtype", sgm__onnx_element(n, n->inputs[0]));
    if (type.shape.rank != 2)
        return sgm_graph_fail(g, SGM_ERROR_SHAPE, "an identity is a matrix");
    sgm_value row = sgm_iota(g, SGM_INT64, &type.shape, 0), column = sgm_iota(g, SGM_INT64, &type.shape, 1);
    sgm_value is_one = sgm_equal(g, column, sgm_add(g, row, sgm_number(g, (double)shift)));
    return sgm__onnx_cast_to(n, is_one, number, (sgm__onnx_cast_options){0});
}

/* OneHot of `depth` classes with its own levels {off, on}. Negative indices count from the end; what is no
 * class then gives `off` everywhere. The classes are recorded as the last axis and permuted to `axis` at
 * the end. */
sgm_value sgm__onnx_one_hot(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value indices = n->inputs[0], values = n->inputs[2];
    double given = sgm__onnx_known_number(n, 1, 0);
    if (!(given >= 1 && given <= INT32_MAX))
        return sgm_graph_fail(g, SGM_ERROR_ARGUMENT, "%g is no number of classes", given);
    int64_t depth = (int64_t)given;
    sgm_shape shape = sgm__onnx_type(n, indices).shape, level;
    int32_t axis = sgm__onnx_axis(n, sgm__onnx_integer(n, "axis", -1), shape.rank + 1), axes[SGM_MAX_RANK];
    if (axis < 0 || shape.rank == SGM_MAX_RANK || sgm__onnx_type(n, values).shape.rank != 1)
        return sgm_graph_fail(g, SGM_ERROR_SHAPE, "%lld classes for indices of %d dimensions",
                              (long long)depth, shape.rank);
    indices = sgm__onnx_from_start(g, indices, sgm_number(g, (double)depth));
    sgm_value is_one = sgm_not_equal(g, sgm_one_hot_values(g, indices, depth, SGM_INT32), sgm_number(g, 0));
    level = (sgm_shape){0};
    sgm_value off = sgm_reshape(g, sgm_slice(g, values, 0, 0, 1, 1), &level);
    sgm_value on = sgm_reshape(g, sgm_slice(g, values, 0, 1, 2, 1), &level);
    for (int32_t i = 0, from = 0; i <= shape.rank; i++)
        axes[i] = i == axis ? shape.rank : from++;
    return sgm_permute(g, sgm_select(g, is_one, on, off), axes);
}

/* --- the same elements in another shape --- */

/* A 0 in the new shape stands for the dimension at that place of the old one, unless allowzero is set; -1
 * is deduced by sgm_reshape. The shape is an attribute up to opset 4. */
sgm_value sgm__onnx_reshape(sgm__onnx_node *n)
{
    sgm_shape old = sgm__onnx_type(n, n->inputs[0]).shape, shape = {0};
    shape.rank = sgm__onnx_list(n, "shape", 1, shape.dims, SGM_MAX_RANK);
    bool copies = sgm__onnx_integer(n, "allowzero", 0) == 0;
    for (int32_t i = 0; i < shape.rank && i < old.rank && copies; i++)
        if (shape.dims[i] == 0)
            shape.dims[i] = old.dims[i];
    if (shape.rank < 0)
        return sgm_graph_fail(n->graph, SGM_ERROR_FORMAT, "its new shape is missing");
    return sgm_reshape(n->graph, n->inputs[0], &shape);
}

/* A matrix: the product of the dimensions before `axis`, and that of the others. `axis` may be the rank,
 * so sgm__onnx_axis cannot check it. */
sgm_value sgm__onnx_flatten(sgm__onnx_node *n)
{
    sgm_shape old = sgm__onnx_type(n, n->inputs[0]).shape, shape = sgm_shape_of(1, 1);
    int64_t axis = sgm__onnx_integer(n, "axis", 1);
    axis += axis < 0 ? old.rank : 0;
    if (axis < 0 || axis > old.rank)
        return sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "there is no axis %lld", (long long)axis);
    for (int32_t i = 0; i < old.rank; i++)
        shape.dims[i >= axis] = sgm__onnx_times(shape.dims[i >= axis], old.dims[i]);
    return sgm_reshape(n->graph, n->inputs[0], &shape);
}

/* Without axes all dimensions of 1 go away. */
sgm_value sgm__onnx_squeeze(sgm__onnx_node *n)
{
    int64_t list[SGM_MAX_RANK];
    sgm_shape old = sgm__onnx_type(n, n->inputs[0]).shape, shape = {0};
    bool goes[SGM_MAX_RANK] = {0};
    int32_t count = sgm__onnx_list(n, "axes", 1, list, SGM_MAX_RANK);
    for (int32_t i = 0; i < old.rank; i++)
        goes[i] = count < 0 && old.dims[i] == 1;
    for (int32_t i = 0; i < count; i++) {
        int32_t axis = sgm__onnx_axis(n, list[i], old.rank);
        if (axis < 0 || old.dims[axis] != 1)
            return sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "axis %lld is not of size 1",
                                  (long long)list[i]);
        goes[axis] = true;
    }
    for (int32_t i = 0; i < old.rank; i++)
        if (!goes[i])
            shape.dims[shape.rank++] = old.dims[i];
    return sgm_reshape(n->graph, n->inputs[0], &shape);
}

/* Axes count in the result. `shape` begins with zeros; a 1 marks the new dimensions, and the others are
 * filled in order with the old ones. An axis that is given twice is found by its mark. */
sgm_value sgm__onnx_unsqueeze(sgm__onnx_node *n)
{
    int64_t list[SGM_MAX_RANK];
    sgm_shape old = sgm__onnx_type(n, n->inputs[0]).shape, shape = {0};
    int32_t count = sgm__onnx_list(n, "axes", 1, list, SGM_MAX_RANK), rank = old.rank + count, from = 0;
    if (count < 0 || rank > SGM_MAX_RANK)
        return sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "at most %d dimensions are supported", SGM_MAX_RANK);
    for (int32_t i = 0; i < count; i++) {
        int32_t axis = sgm__onnx_axis(n, list[i], rank);
        if (axis < 0 || shape.dims[axis] == 1)
            return sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "axis %lld", (long long)list[i]);
        shape.dims[axis] = 1;
    }
    for (shape.rank = 0; shape.rank < rank; shape.rank++)
        if (shape.dims[shape.rank] != 1)
            shape.dims[shape.rank] = old.dims[from++];
    return sgm_reshape(n->graph, n->inputs[0], &shape);
}

/* Without `perm` the axes are reversed. sgm_permute refuses an order with an axis twice; rank 0 has no
 * axes to permute. */
sgm_value sgm__onnx_transpose(sgm__onnx_node *n)
{
    int64_t list[SGM_MAX_RANK];
    int32_t axes[SGM_MAX_RANK], rank = sgm__onnx_type(n, n->inputs[0]).shape.rank;
    int32_t count = sgm__onnx_integers(n, "perm", list, SGM_MAX_RANK);
    if (count >= 0 && count != rank)
        return sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "an order of %d axes for %d dimensions", count,
                              rank);
    for (int32_t i = 0; i < rank; i++)
        axes[i] = count < 0 ? rank - 1 - i : sgm__onnx_axis(n, list[i], rank);
    return rank > 0 ? sgm_permute(n->graph, n->inputs[0], axes) : sgm_copy(n->graph, n->inputs[0]);
}

/* Broadcasts in both directions: a dimension of the given shape may be 1 where the value's is larger. */
sgm_value sgm__onnx_expand(sgm__onnx_node *n)
{
    sgm_shape shape, result, old = sgm__onnx_type(n, n->inputs[0]).shape;
    if (!known_shape(n, 1, &shape))
        return (sgm_value){-1};
    if (sgm_shape_broadcast(&old, &shape, &result) != SGM_OK)
        return sgm__onnx_fail(n->graph);
    return sgm_broadcast(n->graph, n->inputs[0], &result);
}

/* --- shapes as values --- */

/* The dimensions from `start` to before `end`, both clamped to the rank as ONNX says. */
sgm_value sgm__onnx_shape(sgm__onnx_node *n)
{
    sgm_shape shape = sgm__onnx_type(n, n->inputs[0]).shape;
    int64_t start = sgm__onnx_integer(n, "start", 0), end = sgm__onnx_integer(n, "end", shape.rank);
    start += start < 0 ? shape.rank : 0;
    end += end < 0 ? shape.rank : 0;
    start = start < 0 ? 0 : start > shape.rank ? shape.rank : start;
    end = end < start ? start : end > shape.rank ? shape.rank : end;
    return sgm__onnx_constant_integers(n->graph, shape.dims + start, (int32_t)(end - start));
}

/* The number of elements, as a constant of rank 0. */
sgm_value sgm__onnx_size(sgm__onnx_node *n)
{
    sgm_shape shape = sgm__onnx_type(n, n->inputs[0]).shape;
    int64_t count = sgm_shape_elements(&shape);
    return sgm__onnx_constant(n->graph, sgm_tensor_create_from(SGM_INT64, &(sgm_shape){0}, &count));
}

/* --- parts --- */

static int64_t within(int64_t at, int64_t minimum, int64_t maximum)
{
    return at < minimum ? minimum : at > maximum ? maximum : at;
}

/* A slice of one axis: negative places count from the end, places beyond an end are clamped to it.
 * sgm_slice wants 0 <= start <= end and a step above 0. A negative step is a positive one on the flipped
 * axis, where place p is size - 1 - p; for it, the end is clamped to -1 to size - 1, but the start to 0 to
 * size - 1, so that x[-9::-1] has the first entry of x, where that of NumPy has none. A step beyond the size
 * selects the same entries as the size does, and clamping it keeps additions in the kernels from
 * overflowing. INT64_MIN has no positive counterpart. */
static sgm_value slice_axis(sgm_graph *g, sgm_value x, int32_t axis, int64_t start, int64_t end, int64_t step)
{
    int64_t size = sgm_value_type(g, x).shape.dims[axis];
    if (step == 0 || step == INT64_MIN)
        return sgm_graph_fail(g, SGM_ERROR_ARGUMENT, "a step of %lld", (long long)step);
    start =
        within(start < 0 ? start + size : start, step < 0 && size == 0 ? -1 : 0, step < 0 ? size - 1 : size);
    end = within(end < 0 ? end + size : end, step < 0 ? -1 : 0, step < 0 ? size - 1 : size);
    int64_t longest = size > 0 ? size : 1; /* more takes no other entries */
    if (step > 0)
        return sgm_slice(g, x, axis, start, end > start ? end : start, within(step, 1, longest));
    start = size - 1 - start;
    end = size - 1 - end;
    return sgm_slice(g, sgm_flip(g, x, axis), axis, start, end > start ? end : start,
                     within(-step, 1, longest));
}

/* Attributes up to opset 9, inputs since. Axes default to 0, 1, ..., steps to 1. Slices follow one
 * another, an axis at a time. */
sgm_value sgm__onnx_slice(sgm__onnx_node *n)
{
    enum { MAXIMUM = SGM_MAX_RANK };
    int64_t starts[MAXIMUM], ends[MAXIMUM], axes[MAXIMUM], steps[MAXIMUM];
    sgm_value x = n->inputs[0];
    int32_t rank = sgm__onnx_type(n, x).shape.rank;
    int32_t count = sgm__onnx_list(n, "starts", 1, starts, MAXIMUM);
    int32_t end_count = sgm__onnx_list(n, "ends", 2, ends, MAXIMUM);
    int32_t axis_count = sgm__onnx_list(n, "axes", 3, axes, MAXIMUM);
    int32_t step_count = sgm__onnx_list(n, "steps", 4, steps, MAXIMUM);
    if (count < 0 || end_count != count || (axis_count >= 0 && axis_count != count) ||
        (step_count >= 0 && step_count != count))
        return sgm_graph_fail(n->graph, SGM_ERROR_SHAPE,
                              "starts, ends, axes and steps should be equally many");
    for (int32_t i = 0; i < count; i++) {
        int32_t axis = sgm__onnx_axis(n, axis_count < 0 ? i : axes[i], rank);
        if (axis < 0)
            return (sgm_value){-1};
        x = slice_axis(n->graph, x, axis, starts[i], ends[i], step_count < 0 ? 1 : steps[i]);
    }
    return count == 0 ? sgm_copy(n->graph, x) : x;
}

/* Up to opset 3 the axis defaulted to 1; since then it must be given, and 0 stands for a missing one. */
sgm_value sgm__onnx_concat(sgm__onnx_node *n)
{
    int32_t rank = sgm__onnx_type(n, n->inputs[0]).shape.rank;
    int32_t axis = sgm__onnx_axis(n, sgm__onnx_integer(n, "axis", n->opset < 4 ? 1 : 0), rank);
    if (axis < 0)
        return (sgm_value){-1};
    return sgm_concatenate(n->graph, n->inputs, n->input_count, axis);
}

/* One slice for each output. Without sizes the parts are equal, rounded up, and the last ones may be
 * smaller or empty. */
sgm_value sgm__onnx_split(sgm__onnx_node *n)
{
    int64_t sizes[SGM__ONNX_MAXIMUM_OUTPUTS], at = 0;
    sgm_shape shape = sgm__onnx_type(n, n->inputs[0]).shape;
    int32_t axis = sgm__onnx_axis(n, sgm__onnx_integer(n, "axis", 0), shape.rank);
    int32_t count = sgm__onnx_list(n, "split", 1, sizes, SGM__ONNX_MAXIMUM_OUTPUTS);
    int64_t parts = sgm__onnx_integer(n, "num_outputs", n->output_count);
    if (parts != n->output_count)
        return sgm_graph_fail(n->graph, SGM_ERROR_FORMAT, "'num_outputs' is %lld, and it has %d outputs",
                              (long long)parts, n->output_count);
    if (axis < 0)
        return (sgm_value){-1};
    int64_t size = shape.dims[axis], each = (size + n->output_count - 1) / n->output_count;
    for (int32_t i = 0; i < n->output_count && count < 0; i++)
        sizes[i] = within(size - i * each, 0, each);
    if (count >= 0 && count != n->output_count)
        return sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "%d sizes for %d outputs", count, n->output_count);
    for (int32_t i = 0; i < n->output_count; at += sizes[i], i++) {
        if (sizes[i] < 0 || sizes[i] > size - at)
            return sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "parts of more than %lld entries",
                                  (long long)size);
        n->outputs[i] = sgm_slice(n->graph, n->inputs[0], axis, at, at + sizes[i], 1);
    }
    return n->outputs[0];
}

/* Repeats x along each axis. For each axis a dimension of 1 is put in front of it, broadcast to the number
 * of repeats, and joined with the axis; no data is copied before the reshape. The extra dimension must
 * fit, so the rank is one below the library's maximum. */
sgm_value sgm__onnx_tile(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_shape old = sgm__onnx_type(n, n->inputs[0]).shape, times;
    sgm_value x = n->inputs[0];
    if (!known_shape(n, 1, &times) || times.rank != old.rank)
        return sgm_graph_fail(g, SGM_ERROR_SHAPE, "as many repeats as dimensions are needed");
    for (int32_t i = 0; i < old.rank; i++) { /* a dimension before it, broadcast, and both made one */
        sgm_shape split = sgm_value_type(g, x).shape, joined = split;
        if (split.rank == SGM_MAX_RANK)
            return sgm__onnx_unsupported(n, "at most %d dimensions are supported", SGM_MAX_RANK - 1);
        if (times.dims[i] < 0 || __builtin_mul_overflow(split.dims[i], times.dims[i], &joined.dims[i]))
            return sgm_graph_fail(g, SGM_ERROR_SHAPE, "%lld repeats", (long long)times.dims[i]);
        memmove(split.dims + i + 1, split.dims + i, (size_t)(split.rank - i) * sizeof split.dims[0]);
        split.rank++;
        split.dims[i] = 1;
        x = sgm_reshape(g, x, &split);
        split.dims[i] = times.dims[i];
        x = sgm_reshape(g, sgm_broadcast(g, x, &split), &joined);
    }
    return x;
}

/* --- padding --- */

/* The modes of Pad, in the order of the texts in sgm__onnx_pad. */
typedef enum padding { CONSTANT, EDGE, REFLECT, WRAP } padding;

/* Padding that repeats entries: reflect mirrors at the first and last entry without repeating them (place
 * -1 is entry 1, place size is entry size - 2), edge repeats the first and last, wrap begins anew. A gather
 * with constant indices does all three. */
static sgm_value pad_by_index(sgm__onnx_node *n, sgm_value x, int32_t axis, int64_t before, int64_t after,
                              padding mode)
{
    int64_t size = sgm__onnx_type(n, x).shape.dims[axis], count = before + size + after;
    if (size < 1 || (mode == REFLECT && (before >= size || after >= size)))
        return sgm__onnx_unsupported(n, "padding of %lld and %lld around %lld entries", (long long)before,
                                     (long long)after, (long long)size);
    sgm_tensor *numbers = sgm_tensor_create(SGM_INT64, SGM__ONNX_SHAPE(count));
    for (int64_t i = 0; i < count && numbers != NULL; i++) {
        int64_t at = i - before;
        if (mode == WRAP)
            at = (at % size + size) % size;
        if (mode == REFLECT)
            at = at < 0 ? -at : at >= size ? 2 * (size - 1) - at : at;
        ((int64_t *)sgm_tensor_data(numbers))[i] = within(at, 0, size - 1);
    }
    return sgm_gather(n->graph, x, sgm__onnx_constant(n->graph, numbers), axis);
}

/* `fill` around x; negative sizes cut entries off. Two broadcasts and a concatenation, because sgm_pad
 * knows only zeros. */
static sgm_value pad_by_value(sgm_graph *g, sgm_value x, int32_t axis, int64_t before, int64_t after,
                              sgm_value fill)
{
    sgm_shape shape = sgm_value_type(g, x).shape;
    sgm_value parts[3];
    int32_t count = 0;
    if (before < 0 || after < 0)
        x = sgm_slice(g, x, axis, before < 0 ? -before : 0, shape.dims[axis] + (after < 0 ? after : 0), 1);
    if (before > 0) {
        shape.dims[axis] = before;
        parts[count++] = sgm_broadcast(g, fill, &shape);
    }
    parts[count++] = x;
    if (after > 0) {
        shape.dims[axis] = after;
        parts[count++] = sgm_broadcast(g, fill, &shape);
    }
    return count == 1 ? x : sgm_concatenate(g, parts, count, axis);
}

/* The value to pad with, rank 0, in the type of x: an input since opset 11, an attribute before. */
static sgm_value pad_fill(sgm__onnx_node *n)
{
    sgm_value fill = sgm__onnx_in(n, 2);
    if (sgm_value_exists(fill))
        return sgm_reshape(n->graph, fill, &(sgm_shape){0});
    sgm_value one = sgm_number(n->graph, sgm__onnx_number(n, "value", 0));
    return sgm__onnx_cast_like(n->graph, one, n->inputs[0]);
}

/* Pads one axis after the other. Sizes are bounded so that their sums do not overflow; pads that cut off
 * more than there is are refused. Since opset 18 an input may restrict padding to some axes. */
sgm_value sgm__onnx_pad(sgm__onnx_node *n)
{
    const int64_t maximum = (int64_t)1 << 40;
    int64_t sizes[2 * SGM_MAX_RANK], axes[SGM_MAX_RANK];
    sgm_value x = n->inputs[0];
    int32_t rank = sgm__onnx_type(n, x).shape.rank;
    int32_t count = sgm__onnx_list(n, "pads", 1, sizes, 2 * SGM_MAX_RANK);
    int32_t axis_count =
        sgm_value_exists(sgm__onnx_in(n, 3)) ? sgm__onnx_known_integers(n, 3, axes, SGM_MAX_RANK) : -1;
    static const char *const modes[] = {"constant", "edge", "reflect", "wrap"};
    int mode = -1;
    for (int i = 0; i < 4; i++)
        mode = sgm__onnx_text_is(n, "mode", "constant", modes[i]) ? i : mode;
    int32_t given = axis_count < 0 ? rank : axis_count;
    if (count != 2 * given)
        return sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "%d sizes of padding for %d axes", count, given);
    if (mode < 0)
        return sgm__onnx_unsupported(n, "the mode is none of constant, edge, reflect and wrap");
    sgm_value fill = mode == CONSTANT ? pad_fill(n) : (sgm_value){-1};
    sgm__onnx_attribute(n, "value"); /* of no use to the other modes */
    for (int32_t i = 0; i < given; i++) {
        int64_t before = sizes[i], after = sizes[i + given];
        int32_t axis = sgm__onnx_axis(n, axis_count < 0 ? i : axes[i], rank);
        int64_t size = axis < 0 ? 0 : sgm__onnx_type(n, x).shape.dims[axis];
        if (axis < 0 || before > maximum || after > maximum || before < -size || after < -size ||
            before + after < -size)
            return sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "padding of %lld and %lld around %lld entries",
                                  (long long)before, (long long)after, (long long)size);
        if (mode != CONSTANT && (before < 0 || after < 0))
            return sgm__onnx_unsupported(n, "negative padding that repeats entries");
        if (before != 0 || after != 0)
            x = mode != CONSTANT ? pad_by_index(n, x, axis, before, after, (padding)mode)
                                 : pad_by_value(n->graph, x, axis, before, after, fill);
    }
    return x.index == n->inputs[0].index ? sgm_copy(n->graph, x) : x;
}

/* The shape that the second input wants, of all axes or those of the attribute: what is too long is cut, what
 * is too short gets zeros, half on each side, an odd entry behind. */
sgm_value sgm__onnx_center_crop_pad(sgm__onnx_node *n)
{
    int64_t axes[SGM_MAX_RANK], sizes[SGM_MAX_RANK];
    sgm_value x = n->inputs[0];
    int32_t rank = sgm__onnx_type(n, x).shape.rank,
            axis_count = sgm__onnx_integers(n, "axes", axes, SGM_MAX_RANK);
    int32_t count = sgm__onnx_known_integers(n, 1, sizes, SGM_MAX_RANK);
    if (count != (axis_count < 0 ? rank : axis_count))
        return sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "a size for each axis is needed");
    for (int32_t i = 0; i < count; i++) {
        int32_t axis = sgm__onnx_axis(n, axis_count < 0 ? i : axes[i], rank);
        int64_t size = axis < 0 ? 0 : sgm__onnx_type(n, x).shape.dims[axis], more = sizes[i] - size;
        if (axis < 0 || sizes[i] < 0 || sizes[i] > (int64_t)1 << 40)
            return sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "a size of %lld", (long long)sizes[i]);
        if (more < 0)
            x = sgm_slice(n->graph, x, axis, -more / 2, -more / 2 + sizes[i], 1);
        else if (more > 0)
            x = sgm_pad(n->graph, x, axis, more / 2, more - more / 2, 0);
    }
    return x.index == n->inputs[0].index ? sgm_copy(n->graph, x) : x;
}

/* --- channels and places --- */

/* Moves blocks of channels into blocks of places: (n, b b c, h, w) to (n, c, h b, w b). In DCR mode the
 * block is the slower part of the channel number, in CRD mode the faster one, as in PyTorch's
 * pixel_shuffle. */
sgm_value sgm__onnx_depth_to_space(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_shape s = sgm__onnx_type(n, n->inputs[0]).shape;
    int64_t b = sgm__onnx_integer(n, "blocksize", 1), *d = s.dims;
    if (s.rank != 4 || b < 1 || b > 65536 || d[1] % (b * b) != 0)
        return sgm_graph_fail(g, SGM_ERROR_SHAPE, "blocks of %lld", (long long)b);
    int64_t depth = d[1] / (b * b);
    bool by_column = sgm__onnx_text_is(n, "mode", "DCR", "CRD");
    sgm_shape split =
        by_column ? sgm_shape_of(d[0], depth, b, b, d[2], d[3]) : sgm_shape_of(d[0], b, b, depth, d[2], d[3]);
    const int32_t *axes =
        by_column ? (const int32_t[]){0, 1, 4, 2, 5, 3} : (const int32_t[]){0, 3, 4, 1, 5, 2};
    sgm_value x = sgm_permute(g, sgm_reshape(g, n->inputs[0], &split), axes);
    return sgm_reshape(g, x,
                       SGM__ONNX_SHAPE(d[0], depth, sgm__onnx_times(d[2], b), sgm__onnx_times(d[3], b)));
}

/* The inverse of DepthToSpace: (n, c, h b, w b) to (n, b b c, h, w). */
sgm_value sgm__onnx_space_to_depth(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_shape s = sgm__onnx_type(n, n->inputs[0]).shape;
    int64_t b = sgm__onnx_integer(n, "blocksize", 1), *d = s.dims;
    if (s.rank != 4 || b < 1 || b > 65536 || d[2] % b != 0 || d[3] % b != 0)
        return sgm_graph_fail(g, SGM_ERROR_SHAPE, "blocks of %lld", (long long)b);
    sgm_value x = sgm_reshape(g, n->inputs[0], SGM__ONNX_SHAPE(d[0], d[1], d[2] / b, b, d[3] / b, b));
    bool by_column = n->opset >= 28 && sgm__onnx_text_is(n, "mode", "DCR", "CRD");
    x = sgm_permute(g, x,
                    by_column ? (const int32_t[]){0, 1, 3, 5, 2, 4} : (const int32_t[]){0, 3, 5, 1, 2, 4});
    return sgm_reshape(g, x, SGM__ONNX_SHAPE(d[0], sgm__onnx_times(d[1], b * b), d[2] / b, d[3] / b));
}

/* The upper triangle of matrices (column >= row + k) or the lower one (column <= row + k); zeros
 * elsewhere. */
sgm_value sgm__onnx_trilu(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value x = n->inputs[0];
    sgm_type type = sgm__onnx_type(n, x);
    int64_t shift = 0;
    if (sgm_value_exists(sgm__onnx_in(n, 1)))
        sgm__onnx_known_integers(n, 1, &shift, 1);
    if (type.shape.rank < 2 || g->status != SGM_OK)
        return sgm_graph_fail(g, SGM_ERROR_SHAPE, "a triangle wants matrices");
    sgm_value row = sgm_iota(g, SGM_INT64, &type.shape, type.shape.rank - 2);
    sgm_value column = sgm_iota(g, SGM_INT64, &type.shape, type.shape.rank - 1);
    sgm_value diagonal = sgm_add(g, row, sgm_number(g, (double)shift));
    bool upper = sgm__onnx_integer(n, "upper", 1) != 0;
    sgm_value stays = upper ? sgm_greater_equal(g, column, diagonal) : sgm_less_equal(g, column, diagonal);
    return sgm_select(g, stays, x, sgm_filled_like(g, x, 0));
}
