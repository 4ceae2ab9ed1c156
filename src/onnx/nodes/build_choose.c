/* Build functions of operators whose result has as many entries as the data says (Compress, NonZero), and
 * of ReverseSequence.
 *
 * A graph is static, so the data that decides about a size must be known while the model is recorded:
 * sgm__onnx_known computes it (evaluate.c), and the result becomes a constant list of places.
 * ReverseSequence changes no size and works on data that is not known. Called by import.c through
 * operators.c. */
#include "onnx/nodes/onnx.h"

/* The row-major places of the elements that are not 0; *count of them. Free with sgm__free. NULL: out of
 * memory, of which the graph knows. */
static int64_t *places_that_count(sgm_graph *g, const sgm_tensor *tensor, int64_t *count)
{
    size_t size = (size_t)sgm_shape_elements(sgm_tensor_shape(tensor));
    int64_t *places = sgm__calloc(size, sizeof *places);
    double *values = places != NULL ? sgm__calloc(size, sizeof *values) : NULL;
    *count = 0;
    if (values == NULL || sgm_tensor_read(tensor, values, size) != SGM_OK) {
        sgm__onnx_fail(g);
        sgm__free(places);
        places = NULL;
    }
    for (size_t i = 0; i < size && places != NULL; i++)
        if (values[i] != 0)
            places[(*count)++] = (int64_t)i;
    sgm__free(values);
    return places;
}

/* The entries of an axis (without `axis`: of all elements as a list) for which the condition is true. The
 * condition may be shorter than the axis: the entries beyond it are left out. */
sgm_value sgm__onnx_compress(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value x = n->inputs[0];
    const Onnx__AttributeProto *given = sgm__onnx_attribute(n, "axis");
    sgm_shape shape = sgm__onnx_type(n, x).shape;
    int32_t axis = given != NULL ? sgm__onnx_axis(n, given->i, shape.rank) : 0;
    const sgm_tensor *condition = axis >= 0 ? sgm__onnx_known(n, 1) : NULL;
    if (condition == NULL)
        return (sgm_value){-1};
    if (given == NULL)
        x = sgm_reshape(g, x, SGM__ONNX_SHAPE(-1));
    int64_t count, *places = places_that_count(g, condition, &count);
    if (places == NULL)
        return (sgm_value){-1};
    sgm_value list = sgm__onnx_constant_integers(g, places, (int32_t)count);
    sgm__free(places);
    return sgm_gather(g, x, list, axis);
}

/* (rank, count): the coordinates of each element that is not 0, one column for each. The row-major place
 * is divided by the dimensions from the last to the first. */
sgm_value sgm__onnx_non_zero(sgm__onnx_node *n)
{
    const sgm_tensor *x = sgm__onnx_known(n, 0);
    if (x == NULL)
        return (sgm_value){-1};
    sgm_shape shape = *sgm_tensor_shape(x);
    int64_t count, *places = places_that_count(n->graph, x, &count);
    if (places == NULL)
        return (sgm_value){-1};
    sgm_tensor *result = sgm_tensor_create(SGM_INT64, SGM__ONNX_SHAPE(shape.rank, count));
    for (int64_t i = 0; i < count && result != NULL; i++)
        for (int32_t k = shape.rank; k-- > 0; places[i] /= shape.dims[k])
            ((int64_t *)sgm_tensor_data(result))[k * count + i] = places[i] % shape.dims[k];
    sgm__free(places);
    return sgm__onnx_constant(n->graph, result);
}

/* Reverses the first `length` entries of the time axis of each example; the others stay. As a gather along
 * that axis from place length - 1 - t for t < length, else t. */
sgm_value sgm__onnx_reverse_sequence(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value x = n->inputs[0], lengths = n->inputs[1];
    sgm_shape shape = sgm__onnx_type(n, x).shape, column = {.rank = shape.rank};
    int32_t batch = sgm__onnx_axis(n, sgm__onnx_integer(n, "batch_axis", 1), shape.rank);
    int32_t time = sgm__onnx_axis(n, sgm__onnx_integer(n, "time_axis", 0), shape.rank);
    sgm_shape given = sgm__onnx_type(n, lengths).shape;
    if (batch < 0 || time < 0 || batch == time || given.rank != 1 || given.dims[0] != shape.dims[batch])
        return sgm_graph_fail(g, SGM_ERROR_SHAPE, "a length for each example is needed");
    for (int32_t i = 0; i < shape.rank; i++)
        column.dims[i] = i == batch ? given.dims[0] : 1;
    lengths = sgm_reshape(g, lengths, &column);
    sgm_value place = sgm_iota(g, SGM_INT64, &shape, time);
    sgm_value reversed = sgm_subtract(g, sgm_subtract(g, lengths, sgm_number(g, 1)), place);
    return sgm_gather_along(g, x, sgm_select(g, sgm_less(g, place, lengths), reversed, place), time);
}
