/* Operations that only ONNX has and that are loops of their own: CumProd, and the reductions of
 * ScatterElements and ScatterND.
 *
 * Known here only; every handler runs them by their `forward`. They have no gradient: what trains through one
 * is told so. */
#include "onnx/nodes/onnx.h"

#include <math.h>

/* --- products up to an entry --- */

static sgm_status infer_same(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                             sgm_type *result)
{
    (void)count, (void)attributes;
    *result = inputs[0];
    return SGM_OK;
}

/* Integers: axis, whether each entry itself is left out, whether it goes from the end. In double, so integers
 * are exact up to 2^53. */
static sgm_status forward_product(const sgm_kernel_call *call)
{
    const sgm_array *x = &call->inputs[0], *y = &call->output;
    const int64_t *given = call->attributes->integers;
    int64_t size = x->shape.dims[given[0]], step = y->strides[given[0]],
            count = sgm_shape_elements(&x->shape);
    for (int64_t i = 0; i < count; i++) {
        if (i / step % size != 0) /* the first entry of each line */
            continue;
        double product = 1;
        for (int64_t k = 0; k < size; k++) {
            int64_t at = i + (given[2] != 0 ? size - 1 - k : k) * step;
            double entry = sgm_array_load(x, at);
            sgm_array_store(y, at, given[1] != 0 ? product : product * entry);
            product *= entry;
        }
    }
    return SGM_OK;
}

static const sgm_op op_product = {.api = SGM_OP_API,
                                  .name = "onnx_cumulative_product",
                                  .doc = "products of the entries up to each along an axis",
                                  .min_inputs = 1,
                                  .max_inputs = 1,
                                  .infer = infer_same,
                                  .forward = forward_product};

sgm_value sgm__onnx_cumulative_product(sgm__onnx_node *n)
{
    int64_t given = 0;
    sgm__onnx_known_integers(n, 1, &given, 1);
    int32_t axis = sgm__onnx_axis(n, given, sgm__onnx_type(n, n->inputs[0]).shape.rank);
    const sgm_attributes attributes = {.integer_count = 3,
                                       .integers = {axis, sgm__onnx_integer(n, "exclusive", 0) != 0,
                                                    sgm__onnx_integer(n, "reverse", 0) != 0}};
    if (axis < 0)
        return (sgm_value){-1};
    return sgm_record(n->graph, &op_product, n->inputs, 1, &attributes);
}

/* --- updates that meet what is there --- */

/* Integers: what sgm__onnx_scatter_kind says. Inputs: elements, updates, their places among the elements, all
 * as lists; the caller has brought the places within the list. */
static sgm_status forward_scatter(const sgm_kernel_call *call)
{
    const sgm_array *x = &call->inputs[0], *updates = &call->inputs[1], *places = &call->inputs[2];
    int64_t count = x->shape.dims[0];
    for (int64_t i = 0; i < count; i++)
        sgm_array_store(&call->output, i, sgm_array_load(x, i));
    for (int64_t i = 0; i < updates->shape.dims[0]; i++) {
        int64_t at = ((const int64_t *)places->data)[i];
        if (at < 0 || at >= count)
            return sgm_fail(SGM_ERROR_SHAPE, "there is no place %lld among %lld", (long long)at,
                            (long long)count);
        double old = sgm_array_load(&call->output, at), new = sgm_array_load(updates, i);
        switch ((sgm__onnx_scatter_kind)call->attributes->integers[0]) {
        case SGM__ONNX_SCATTER_MULTIPLY:
            new *= old;
            break;
        case SGM__ONNX_SCATTER_MAXIMUM:
            new = isnan(old) || old > new ? old : new;
            break;
        case SGM__ONNX_SCATTER_MINIMUM:
            new = isnan(old) || old < new ? old : new;
            break;
        }
        sgm_array_store(&call->output, at, new);
    }
    return SGM_OK;
}

static const sgm_op op_scatter = {.api = SGM_OP_API,
                                  .name = "onnx_scatter_reduce",
                                  .doc = "a list whose elements meet updates",
                                  .min_inputs = 3,
                                  .max_inputs = 3,
                                  .infer = infer_same,
                                  .forward = forward_scatter};

sgm_value sgm__onnx_scatter_by(sgm_graph *g, sgm__onnx_scatter_kind kind, sgm_value x, sgm_value updates,
                               sgm_value places)
{
    const sgm_attributes attributes = {.integer_count = 1, .integers = {kind}};
    return sgm_record(g, &op_scatter, (const sgm_value[]){x, updates, places}, 3, &attributes);
}
