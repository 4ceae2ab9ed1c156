/* Build functions of operators that take or put entries by their numbers: Gather, Scatter and their
 * variants.
 *
 * Numbers may be negative in ONNX (counted from the end), not in the library, so each list of indices is
 * first brought to numbers from 0 on. Variants with several numbers for one entry (GatherElements,
 * GatherND, ScatterND) are done on the value as one list of all its elements, in row-major order: the
 * place of an element there is the sum of number * stride over its axes. Called by import.c through
 * operators.c. */
#include "onnx/nodes/onnx.h"

sgm_value sgm__onnx_from_start(sgm_graph *g, sgm_value indices, sgm_value size)
{
    indices = sgm_cast(g, indices, SGM_INT64);
    sgm_value negative = sgm_less(g, indices, sgm_number(g, 0));
    return sgm_select(g, negative, sgm_add(g, indices, size), indices);
}

/* For indices into axis `axis` of the node's first input. */
static sgm_value from_start_of(sgm__onnx_node *n, sgm_value indices, int32_t axis)
{
    int64_t size = sgm__onnx_type(n, n->inputs[0]).shape.dims[axis];
    return sgm__onnx_from_start(n->graph, indices, sgm_number(n->graph, (double)size));
}

static int32_t read_axis(sgm__onnx_node *n)
{
    return sgm__onnx_axis(n, sgm__onnx_integer(n, "axis", 0), sgm__onnx_type(n, n->inputs[0]).shape.rank);
}

sgm_value sgm__onnx_gather(sgm__onnx_node *n)
{
    int32_t axis = read_axis(n);
    if (axis < 0)
        return (sgm_value){-1};
    return sgm_gather(n->graph, n->inputs[0], from_start_of(n, n->inputs[1], axis), axis);
}

/* x as a list of all elements. */
static sgm_value flat(sgm_graph *g, sgm_value x)
{
    return sgm_reshape(g, x, SGM__ONNX_SHAPE(-1));
}

/* For each element of `indices`, which has the rank of x, its place in x as one list: along `axis` the
 * number that the index says, along the other axes the coordinates of the index itself. Indices may have
 * fewer entries along those axes, not more. All multiplications are with strides of x, from the last axis
 * to the first. */
static sgm_value places_along(sgm__onnx_node *n, sgm_value indices, int32_t axis)
{
    sgm_graph *g = n->graph;
    sgm_shape x = sgm__onnx_type(n, n->inputs[0]).shape, shape = sgm__onnx_type(n, indices).shape;
    if (axis < 0 || shape.rank != x.rank)
        return sgm_graph_fail(g, SGM_ERROR_SHAPE,
                              "indices should have as many dimensions as what they index");
    indices = from_start_of(n, indices, axis);
    sgm_value place = {-1};
    int64_t stride = 1;
    for (int32_t i = x.rank; i-- > 0; stride = sgm__onnx_times(stride, x.dims[i])) {
        sgm_value along = i == axis ? indices : sgm_iota(g, SGM_INT64, &shape, i);
        along = sgm_multiply(g, along, sgm_number(g, (double)stride));
        place = sgm_value_exists(place) ? sgm_add(g, place, along) : along;
        if (i != axis && shape.dims[i] > x.dims[i])
            return sgm_graph_fail(g, SGM_ERROR_SHAPE,
                                  "indices have %lld entries along axis %d, which has %lld",
                                  (long long)shape.dims[i], i, (long long)x.dims[i]);
    }
    return flat(g, place);
}

/* The result has the shape of the indices. */
sgm_value sgm__onnx_gather_elements(sgm__onnx_node *n)
{
    sgm_shape shape = sgm__onnx_type(n, n->inputs[1]).shape;
    sgm_value places = places_along(n, n->inputs[1], read_axis(n));
    return sgm_reshape(n->graph, sgm_gather(n->graph, flat(n->graph, n->inputs[0]), places, 0), &shape);
}

/* The node's first input with updates at `places` of it as one list. reduction "add" adds to what is
 * there, "mul", "max" and "min" go by an operation of their own; "none" replaces: an element is replaced
 * where at least one update fell, which a second scatter of ones counts. ONNX leaves open what several
 * updates for one place give with "none"; here it is their sum. */
static sgm_value put(sgm__onnx_node *n, sgm_value places, sgm_value updates)
{
    sgm_graph *g = n->graph;
    sgm_value x = n->inputs[0];
    sgm_type type = sgm__onnx_type(n, x);
    int64_t count = sgm_shape_elements(&type.shape);
    static const char *const kinds[] = {"mul", "max", "min"}; /* as in sgm__onnx_scatter_kind */
    bool adds = sgm__onnx_text_is(n, "reduction", "none", "add");
    for (int i = 0; i < 3; i++)
        if (sgm__onnx_text_is(n, "reduction", "none", kinds[i]))
            return sgm_reshape(
                g, sgm__onnx_scatter_by(g, (sgm__onnx_scatter_kind)i, flat(g, x), flat(g, updates), places),
                &type.shape);
    if (!adds && !sgm__onnx_text_is(n, "reduction", "none", "none"))
        return sgm__onnx_unsupported(n, "the reduction is none of none, add, mul, max and min");
    sgm_value sums = sgm_reshape(g, sgm_scatter_add(g, flat(g, updates), places, 0, count), &type.shape);
    if (adds)
        return sgm_add(g, x, sums);
    sgm_value ones = sgm_filled_like(g, places, 1);
    sgm_value hits = sgm_reshape(g, sgm_scatter_add(g, ones, places, 0, count), &type.shape);
    return sgm_select(g, sgm_greater(g, hits, sgm_number(g, 0)), sums, x);
}

/* Updates have the shape of the indices; each goes to the place that its index names. */
sgm_value sgm__onnx_scatter_elements(sgm__onnx_node *n)
{
    sgm_type indices = sgm__onnx_type(n, n->inputs[1]), updates = sgm__onnx_type(n, n->inputs[2]);
    if (!sgm_shape_equal(&indices.shape, &updates.shape))
        return sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "an update for each index is needed");
    return put(n, places_along(n, n->inputs[1], read_axis(n)), n->inputs[2]);
}

/* --- indices whose last axis names several axes at once --- */

/* Indices (..., k) name entries over the axes `first` to `first` + k - 1 of x. Returns (...): the number
 * of the part, counted over these axes in row-major order. */
static sgm_value places_of_parts(sgm_graph *g, const sgm_shape *x, sgm_value indices, int32_t first,
                                 int32_t k)
{
    int64_t sizes[SGM_MAX_RANK], strides[SGM_MAX_RANK], stride = 1;
    for (int32_t i = k; i-- > 0; stride = sgm__onnx_times(stride, x->dims[first + i])) {
        sizes[i] = x->dims[first + i];
        strides[i] = stride;
    }
    indices = sgm__onnx_from_start(g, indices, sgm__onnx_constant_integers(g, sizes, k));
    sgm_value weighted = sgm_multiply(g, indices, sgm__onnx_constant_integers(g, strides, k));
    return sgm_reduce_sum(g, weighted, (const int32_t[]){-1}, 1, false);
}

/* The number k of axes that the last axis of the indices names, behind `batch` axes that x and the indices
 * have in common; -1 and a failure if the shapes do not fit. */
static int32_t named_axes(sgm__onnx_node *n, int32_t batch)
{
    sgm_shape x = sgm__onnx_type(n, n->inputs[0]).shape, indices = sgm__onnx_type(n, n->inputs[1]).shape;
    int64_t k = indices.rank > 0 ? indices.dims[indices.rank - 1] : -1;
    bool fits = k >= 1 && batch >= 0 && batch + k <= x.rank && batch < indices.rank;
    for (int32_t i = 0; i < batch && fits; i++)
        fits = x.dims[i] == indices.dims[i];
    if (!fits)
        sgm_graph_fail(n->graph, SGM_ERROR_SHAPE,
                       "indices of %lld axes behind %d of the batch, for %d dimensions", (long long)k, batch,
                       x.rank);
    return fits ? (int32_t)k : -1;
}

/* GatherND: x is (batch..., named..., rest...), indices (batch..., more..., k), the result (batch...,
 * more..., rest...). x is reshaped to (rows * parts, rest...), with `rows` entries of the batch and
 * `parts` parts in each; the number of a part is row * parts + its number within the row. One gather along
 * axis 0 follows. */
sgm_value sgm__onnx_gather_nd(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_shape x = sgm__onnx_type(n, n->inputs[0]).shape, indices = sgm__onnx_type(n, n->inputs[1]).shape;
    int64_t given = sgm__onnx_integer(n, "batch_dims", 0), rows = 1, parts = 1;
    int32_t batch = given < 0 || given > SGM_MAX_RANK ? -1 : (int32_t)given, k = named_axes(n, batch);
    if (k < 0)
        return (sgm_value){-1};
    for (int32_t i = 0; i < batch + k; i++)
        if (i < batch)
            rows = sgm__onnx_times(rows, x.dims[i]);
        else
            parts = sgm__onnx_times(parts, x.dims[i]);
    sgm_shape list = {.rank = x.rank - batch - k + 1, .dims = {sgm__onnx_times(rows, parts)}},
              result = indices;
    result.dims[--result.rank] = 0;
    sgm_value places = places_of_parts(g, &x, n->inputs[1], batch, k);
    places = sgm_reshape(g, places, SGM__ONNX_SHAPE(rows, -1));
    sgm_shape pairs = sgm_value_type(g, places).shape;
    sgm_value row = sgm_multiply(g, sgm_iota(g, SGM_INT64, &pairs, 0), sgm_number(g, (double)parts));
    for (int32_t i = batch + k; i < x.rank; i++) {
        list.dims[i - batch - k + 1] = x.dims[i];
        if (result.rank == SGM_MAX_RANK)
            return sgm__onnx_unsupported(n, "at most %d dimensions are supported", SGM_MAX_RANK);
        result.dims[result.rank++] = x.dims[i];
    }
    sgm_value all = flat(g, sgm_add(g, places, row));
    return sgm_reshape(g, sgm_gather(g, sgm_reshape(g, n->inputs[0], &list), all, 0), &result);
}

/* ScatterND: each part of x is a run of `run` elements in a row, which begin at part * run. The places of
 * all their elements are a table (parts, run). */
sgm_value sgm__onnx_scatter_nd(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_shape x = sgm__onnx_type(n, n->inputs[0]).shape;
    int32_t k = named_axes(n, 0);
    int64_t run = 1;
    if (k < 0)
        return (sgm_value){-1};
    for (int32_t i = k; i < x.rank; i++)
        run = sgm__onnx_times(run, x.dims[i]);
    sgm_value first = sgm_reshape(g, places_of_parts(g, &x, n->inputs[1], 0, k), SGM__ONNX_SHAPE(-1, 1));
    sgm_shape grid = sgm_shape_of(sgm_value_type(g, first).shape.dims[0], run);
    sgm_value begin = sgm_multiply(g, first, sgm_number(g, (double)run));
    return put(n, flat(g, sgm_add(g, begin, sgm_iota(g, SGM_INT64, &grid, 1))), n->inputs[2]);
}
