/* matmul: matrix products, one for each entry of the leading dimensions; and dot of two vectors.
 *
 * (..., m, k) x (..., k, n) gives (..., m, n): y[i, j] = sum over l of a[i, l] b[l, j]. Any type but bool;
 * sums are in double, of int64 exactly, and rounded once. NaN and infinity follow IEEE 754: 0 * infinity is
 * NaN, and no product is left out because a factor is 0. The loops here are the reference; handlers have the
 * fast ones (src/handlers/cpu/product). Both operands may have any strides, so a transpose before the
 * product is a view. */
#include "ops/rules.h"

/* The rule of the instruction: equal leading dimensions. sgm_matmul broadcasts them before. */
static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count, (void)attributes;
    char first[SGM__TYPE_TEXT], second[SGM__TYPE_TEXT];
    const sgm_type *a = &inputs[0], *b = &inputs[1];
    SGM_TRY(sgm__want_number(a));
    if (a->dtype != b->dtype)
        return sgm_fail(SGM_ERROR_TYPE, "wants equal types, got %s and %s: cast one of them",
                        sgm__type_text(a, first), sgm__type_text(b, second));
    int32_t rank = a->shape.rank;
    bool fits = rank >= 2 && b->shape.rank == rank && a->shape.dims[rank - 1] == b->shape.dims[rank - 2];
    for (int32_t i = 0; i + 2 < rank && fits; i++)
        fits = a->shape.dims[i] == b->shape.dims[i];
    if (!fits)
        return sgm_fail(SGM_ERROR_SHAPE,
                        "wants (..., m, k) x (..., k, n) with equal leading dimensions, got %s x %s: reshape "
                        "or transpose one of them",
                        sgm__type_text(a, first), sgm__type_text(b, second));
    *result = *a;
    result->shape.dims[rank - 1] = b->shape.dims[rank - 1];
    return SGM_OK;
}

/* --- loops --- */

/* A row of one matrix times a column of the other: `count` products, with offsets and strides in elements. */
typedef struct dot_product {
    const sgm_array *a, *b;
    int64_t a_offset, b_offset, a_stride, b_stride, count;
} dot_product;

#define DOT(type)                                                                                            \
    for (int64_t k = 0; k < dot->count; k++)                                                                 \
    sum += (double)((const type *)dot->a->data)[dot->a_offset + k * dot->a_stride] *                         \
           (double)((const type *)dot->b->data)[dot->b_offset + k * dot->b_stride]

/* In double, rounded once to the result's type; usual types without a call for each element. */
static double compute_dot(const dot_product *dot)
{
    double sum = 0;
    if (dot->a->dtype == SGM_FLOAT32)
        DOT(float);
    else if (dot->a->dtype == SGM_FLOAT64)
        DOT(double);
    else
        for (int64_t k = 0; k < dot->count; k++)
            sum += sgm_array_load(dot->a, dot->a_offset + k * dot->a_stride) *
                   sgm_array_load(dot->b, dot->b_offset + k * dot->b_stride);
    return sum;
}

/* int64 exactly modulo 2^64. */
static uint64_t compute_whole_dot(const dot_product *dot)
{
    uint64_t sum = 0; /* wraps around like machine arithmetic */
    for (int64_t k = 0; k < dot->count; k++)
        sum += (uint64_t)sgm__array_index(dot->a, dot->a_offset + k * dot->a_stride) *
               (uint64_t)sgm__array_index(dot->b, dot->b_offset + k * dot->b_stride);
    return sum;
}

/* int64 is summed exactly, and wraps around. */
static void store_dot(const dot_product *dot, const sgm_array *y, int64_t offset)
{
    if (y->dtype == SGM_INT64)
        ((uint64_t *)y->data)[offset] = compute_whole_dot(dot);
    else
        sgm_array_store(y, offset, compute_dot(dot));
}

/* One dot product for each element of the result. */
static sgm_status forward(const sgm_kernel_call *call)
{
    const sgm_array *a = &call->inputs[0], *b = &call->inputs[1], *y = &call->output;
    int32_t row = y->shape.rank - 2, column = y->shape.rank - 1;
    sgm__cursor a_batch = sgm__cursor_leading(a), b_batch = sgm__cursor_leading(b),
                y_batch = sgm__cursor_leading(y);
    int64_t batches = sgm_shape_elements(&y_batch.shape);
    dot_product dot = {a, b, 0, 0, a->strides[column], b->strides[row], a->shape.dims[column]};
    for (int64_t n = 0; n < batches; n++) {
        for (int64_t i = 0; i < y->shape.dims[row]; i++)
            for (int64_t k = 0; k < y->shape.dims[column]; k++) {
                dot.a_offset = a_batch.offset + i * a->strides[row];
                dot.b_offset = b_batch.offset + k * b->strides[column];
                store_dot(&dot, y, y_batch.offset + i * y->strides[row] + k * y->strides[column]);
            }
        sgm__cursor_next(&a_batch);
        sgm__cursor_next(&b_batch);
        sgm__cursor_next(&y_batch);
    }
    return SGM_OK;
}

/* dA = G B^T, dB = A^T G. Leading dimensions are equal here; where sgm_matmul has broadcast them, the
 * broadcast's gradient sums. */
static void gradient(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    if (call->wanted[0])
        gradients[0] = sgm_matmul(graph, call->gradient, sgm_transpose(graph, call->inputs[1]));
    if (call->wanted[1])
        gradients[1] = sgm_matmul(graph, sgm_transpose(graph, call->inputs[0]), call->gradient);
}

const sgm_op sgm__op_matmul = {SGM__OP("matmul", 2, "matrix product of the last two axes"),
                               .flags = SGM_OP_STRIDED, .infer = infer, .gradient = gradient,
                               .forward = forward};

/* --- recording --- */

/* x with the leading dimensions `batch` before its last two: a broadcast, which is a view. */
static sgm_value widen(sgm_graph *graph, sgm_value x, const sgm_shape *batch)
{
    sgm_shape shape = sgm_value_type(graph, x).shape, wide = *batch;
    wide.dims[wide.rank++] = shape.dims[shape.rank - 2];
    wide.dims[wide.rank++] = shape.dims[shape.rank - 1];
    return sgm_broadcast(graph, x, &wide);
}

/* Leading dimensions are broadcast like those of elementwise operations; what does not fit is left to the
 * rule, which has the message. */
sgm_value sgm_matmul(sgm_graph *graph, sgm_value a, sgm_value b)
{
    if (!sgm__can_record(graph, "matmul", a) || !sgm__can_record(graph, "matmul", b))
        return (sgm_value){-1};
    sgm_shape left = sgm_value_type(graph, a).shape, right = sgm_value_type(graph, b).shape, batch;
    if (left.rank >= 2 && right.rank >= 2) {
        sgm_shape left_batch = sgm_shape_create(left.rank - 2, left.dims);
        sgm_shape right_batch = sgm_shape_create(right.rank - 2, right.dims);
        if (sgm_shape_broadcast(&left_batch, &right_batch, &batch) == SGM_OK) {
            a = widen(graph, a, &batch);
            b = widen(graph, b, &batch);
        }
    }
    return sgm_record(graph, &sgm__op_matmul, (sgm_value[]){a, b}, 2, NULL);
}

/* sum(a b), composed of a product and a sum, whose gradients it has. */
sgm_value sgm_dot(sgm_graph *graph, sgm_value a, sgm_value b)
{
    if (!sgm__can_record(graph, "dot", a) || !sgm__can_record(graph, "dot", b))
        return (sgm_value){-1};
    sgm_type left = sgm_value_type(graph, a), right = sgm_value_type(graph, b);
    char first[SGM__TYPE_TEXT], second[SGM__TYPE_TEXT];
    if (left.shape.rank != 1 || !sgm_shape_equal(&left.shape, &right.shape))
        return sgm_graph_fail(graph, SGM_ERROR_SHAPE,
                              "dot: wants two vectors of equal length, got %s and %s; matmul multiplies "
                              "matrices",
                              sgm__type_text(&left, first), sgm__type_text(&right, second));
    return sgm_sum(graph, sgm_multiply(graph, a, b));
}
