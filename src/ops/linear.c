/* Linear algebra on small square matrices: inverse, determinant, solving.
 *
 * Matrices are (..., n, n) of a float type, any strides. Elimination is with partial pivoting, one matrix
 * after the other over the leading dimensions, in plain loops: no handler has kernels of its own for these.
 * A singular matrix stops the run, as it has no inverse; its determinant is 0. NaN is never chosen for
 * another pivot, and spreads into the result. */
#include "ops/rules.h"

#include <math.h>

/* A kernel must not allocate: matrices up to this size are worked on in double precision on the stack (32
 * kB). Larger inverses are computed in the result's memory, in the result's precision, up to a size whose
 * pivots' numbers fit in int16_t and the stack (8 kB). For bfloat16, which would be rounded at every step,
 * sgm_inverse has them computed in float32. */
#define MAX_ON_STACK 64
#define MAX_INVERSE 4096

/* A view of one square matrix; its memory belongs to an array or the stack. */
typedef struct matrix {
    sgm_array array; /* rank 2 */
    int64_t size;
} matrix;

static double get(const matrix *m, int64_t row, int64_t column)
{
    return sgm_array_load(&m->array, row * m->array.strides[0] + column * m->array.strides[1]);
}

static void set(const matrix *m, int64_t row, int64_t column, double value)
{
    sgm_array_store(&m->array, row * m->array.strides[0] + column * m->array.strides[1], value);
}

/* A contiguous matrix over `data`. */
static matrix make_matrix(sgm_dtype dtype, void *data, int64_t size)
{
    matrix m = {{.dtype = dtype, .shape = sgm_shape_of(size, size), .data = data}, size};
    m.array.strides[0] = size;
    m.array.strides[1] = 1;
    return m;
}

static void copy_matrix(const matrix *from, const matrix *to)
{
    for (int64_t i = 0; i < from->size; i++)
        for (int64_t k = 0; k < from->size; k++)
            set(to, i, k, get(from, i, k));
}

static void swap_rows(const matrix *m, int64_t a, int64_t b)
{
    for (int64_t k = 0; k < m->size && a != b; k++) {
        double kept = get(m, a, k);
        set(m, a, k, get(m, b, k));
        set(m, b, k, kept);
    }
}

static void swap_columns(const matrix *m, int64_t a, int64_t b)
{
    for (int64_t i = 0; i < m->size && a != b; i++) {
        double kept = get(m, i, a);
        set(m, i, a, get(m, i, b));
        set(m, i, b, kept);
    }
}

/* The row of the largest magnitude in a column, from the diagonal on: factors of the rows below then are at
 * most 1, which keeps rounding errors small. */
static int64_t find_pivot(const matrix *m, int64_t column)
{
    int64_t best = column;
    for (int64_t i = column + 1; i < m->size; i++)
        if (fabs(get(m, i, column)) > fabs(get(m, best, column)))
            best = i;
    return best;
}

/* Square matrices of a float type, not larger than `maximum`. */
static sgm_status want_square(const sgm_type *x, int64_t maximum)
{
    char text[SGM__TYPE_TEXT];
    SGM_TRY(sgm__want_float(x));
    int32_t rank = x->shape.rank;
    if (rank < 2 || x->shape.dims[rank - 1] != x->shape.dims[rank - 2])
        return sgm_fail(SGM_ERROR_SHAPE, "wants square matrices (..., n, n), got %s",
                        sgm__type_text(x, text));
    if (x->shape.dims[rank - 1] > maximum)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "matrices are at most %lld x %lld, got %s", (long long)maximum,
                        (long long)maximum, sgm__type_text(x, text));
    return SGM_OK;
}

/* The matrix at the batch's current place, as a view. */
static matrix matrix_at(const sgm_array *x, const sgm__cursor *batch)
{
    int32_t rank = x->shape.rank;
    matrix m = {.size = x->shape.dims[rank - 1]};
    m.array = (sgm_array){.dtype = x->dtype, .shape = sgm_shape_of(m.size, m.size)};
    m.array.data = sgm__array_at(x, batch->offset);
    m.array.strides[0] = x->strides[rank - 2];
    m.array.strides[1] = x->strides[rank - 1];
    return m;
}

/* --- inverse --- */

static sgm_status infer_inverse(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                                sgm_type *result)
{
    (void)count, (void)attributes;
    SGM_TRY(want_square(&inputs[0], MAX_INVERSE));
    *result = inputs[0];
    return SGM_OK;
}

/* One step of the Gauss-Jordan elimination in place: row p is divided by the pivot, and a multiple of it is
 * subtracted from all others. Column p, which becomes a column of the identity, holds the inverse so far
 * instead. */
static void eliminate(const matrix *m, int64_t p)
{
    double scale = 1 / get(m, p, p);
    set(m, p, p, 1);
    for (int64_t k = 0; k < m->size; k++)
        set(m, p, k, get(m, p, k) * scale);
    for (int64_t i = 0; i < m->size; i++) {
        double factor = get(m, i, p);
        if (i == p)
            continue;
        set(m, i, p, 0);
        for (int64_t k = 0; k < m->size; k++)
            set(m, i, k, get(m, i, k) - factor * get(m, p, k));
    }
}

/* Inverts in place. P A = B for the exchanges of rows P, so A^-1 = B^-1 P: the columns of the result are
 * exchanged, in reverse order. */
static sgm_status invert(const matrix *m)
{
    int16_t pivots[MAX_INVERSE];
    for (int64_t p = 0; p < m->size; p++) {
        int64_t pivot = find_pivot(m, p);
        if (get(m, pivot, p) == 0)
            return sgm_fail(SGM_ERROR_NUMERIC,
                            "a matrix is singular (column %lld depends on those before): "
                            "it has no inverse",
                            (long long)p);
        pivots[p] = (int16_t)pivot;
        swap_rows(m, p, pivot);
        eliminate(m, p);
    }
    for (int64_t p = m->size; p-- > 0;)
        swap_columns(m, p, pivots[p]);
    return SGM_OK;
}

/* Small matrices are worked on in double on the stack, whatever their type. */
static sgm_status forward_inverse(const sgm_kernel_call *call)
{
    double stack[MAX_ON_STACK * MAX_ON_STACK];
    sgm__cursor read = sgm__cursor_leading(&call->inputs[0]), write = sgm__cursor_leading(&call->output);
    int64_t count = sgm_shape_elements(&read.shape);
    for (int64_t i = 0; i < count; i++) {
        matrix x = matrix_at(&call->inputs[0], &read), y = matrix_at(&call->output, &write);
        matrix work = x.size <= MAX_ON_STACK ? make_matrix(SGM_FLOAT64, stack, x.size) : y;
        copy_matrix(&x, &work);
        SGM_TRY(invert(&work));
        if (x.size <= MAX_ON_STACK)
            copy_matrix(&work, &y);
        sgm__cursor_next(&read);
        sgm__cursor_next(&write);
    }
    return SGM_OK;
}

/* -Y^T G Y^T for the inverse Y. */
static void gradient_inverse(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    if (!call->wanted[0])
        return;
    sgm_value transposed = sgm_transpose(graph, call->output);
    sgm_value product = sgm_matmul(graph, sgm_matmul(graph, transposed, call->gradient), transposed);
    gradients[0] = sgm_negate(graph, product);
}

/* --- determinant --- */

static sgm_status infer_determinant(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                                    sgm_type *result)
{
    (void)count, (void)attributes;
    SGM_TRY(want_square(&inputs[0], MAX_ON_STACK));
    *result = (sgm_type){inputs[0].dtype, sgm_shape_create(inputs[0].shape.rank - 2, inputs[0].shape.dims)};
    return SGM_OK;
}

/* The product of the pivots after elimination; each exchange of rows turns the sign. */
static double compute_determinant(const matrix *m)
{
    double product = 1;
    for (int64_t p = 0; p < m->size; p++) {
        int64_t pivot = find_pivot(m, p);
        if (get(m, pivot, p) == 0)
            return 0;
        swap_rows(m, p, pivot);
        product *= pivot == p ? get(m, p, p) : -get(m, p, p);
        for (int64_t i = p + 1; i < m->size; i++) {
            double factor = get(m, i, p) / get(m, p, p);
            for (int64_t k = p; k < m->size; k++)
                set(m, i, k, get(m, i, k) - factor * get(m, p, k));
        }
    }
    return product;
}

/* Works on a copy in double, whatever the type. */
static sgm_status forward_determinant(const sgm_kernel_call *call)
{
    double stack[MAX_ON_STACK * MAX_ON_STACK];
    sgm__cursor read = sgm__cursor_leading(&call->inputs[0]);
    int64_t count = sgm_shape_elements(&read.shape);
    for (int64_t i = 0; i < count; i++, sgm__cursor_next(&read)) {
        matrix x = matrix_at(&call->inputs[0], &read), work = make_matrix(SGM_FLOAT64, stack, x.size);
        copy_matrix(&x, &work);
        sgm_array_store(&call->output, i, compute_determinant(&work));
    }
    return SGM_OK;
}

/* g |X| X^-T, so it needs matrices that are not singular: there the run stops, although the determinant
 * exists. */
static void gradient_determinant(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    if (!call->wanted[0])
        return;
    sgm_shape shape = sgm_value_type(graph, call->inputs[0]).shape;
    shape.dims[shape.rank - 1] = shape.dims[shape.rank - 2] = 1;
    sgm_value factor = sgm_reshape(graph, sgm_multiply(graph, call->gradient, call->output), &shape);
    sgm_value transposed = sgm_transpose(graph, sgm_inverse(graph, call->inputs[0]));
    gradients[0] = sgm_multiply(graph, factor, transposed);
}

const sgm_op sgm__op_inverse = {
    SGM__OP("inverse", 1, "inverse of square matrices; a singular one is an error of the run"),
    .flags = SGM_OP_STRIDED, .infer = infer_inverse, .gradient = gradient_inverse,
    .forward = forward_inverse};
const sgm_op sgm__op_determinant = {SGM__OP("determinant", 1, "determinant of square matrices up to 64 x 64"),
                                    .flags = SGM_OP_STRIDED, .infer = infer_determinant,
                                    .gradient = gradient_determinant, .forward = forward_determinant};

sgm_value sgm_inverse(sgm_graph *graph, sgm_value x)
{
    const sgm_type type = sgm_value_type(graph, x);
    if (type.dtype == SGM_BFLOAT16 && type.shape.rank > 1 &&
        type.shape.dims[type.shape.rank - 1] > MAX_ON_STACK)
        return sgm_cast(graph, sgm_inverse(graph, sgm_cast(graph, x, SGM_FLOAT32)), SGM_BFLOAT16);
    return sgm__record_one(graph, &sgm__op_inverse, x, NULL);
}

sgm_value sgm_determinant(sgm_graph *graph, sgm_value x)
{
    return sgm__record_one(graph, &sgm__op_determinant, x, NULL);
}

/* A^-1 b: shorter than a factorisation, and with the inverse's gradient. b is (..., n, k), or one vector
 * (n), which is taken as a column. */
sgm_value sgm_solve(sgm_graph *graph, sgm_value a, sgm_value b)
{
    if (!sgm__can_record(graph, "solve", a) || !sgm__can_record(graph, "solve", b))
        return (sgm_value){-1};
    sgm_shape shape = sgm_value_type(graph, b).shape;
    if (shape.rank != 1)
        return sgm_matmul(graph, sgm_inverse(graph, a), b);
    sgm_shape column = sgm_shape_of(shape.dims[0], 1);
    sgm_value product = sgm_matmul(graph, sgm_inverse(graph, a), sgm_reshape(graph, b, &column));
    sgm_shape result = sgm_value_type(graph, product).shape;
    if (result.rank > 0)
        result.dims[--result.rank] = 0;
    return sgm_reshape(graph, product, &result);
}
