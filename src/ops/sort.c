/* argsort: a stable order of the entries along an axis; sort and top_k are composed of it and
 * gather_along.
 *
 * A kernel must not allocate, so positions are sorted in place: blocks by insertion, then merged by
 * rotations (SymMerge: Kim and Kutzner, 2004), n log^2 n steps. NaN is above all numbers. Stability makes
 * results the same on every handler where elements are equal. */
#include "ops/rules.h"

/* One line of `x` along the axis and the positions that are sorted, which lie in the memory of the result. */
typedef struct sort_line {
    const sgm_array *x;
    int64_t first, stride; /* of x */
    int64_t *positions;
    int64_t step; /* between the positions */
    bool descending;
} sort_line;

/* Place i of the line. */
static int64_t *at(const sort_line *line, int64_t i)
{
    return line->positions + i * line->step;
}

/* Whether the entry at place a must come before the one at place b; equal ones never must. */
static bool before(const sort_line *line, int64_t a, int64_t b)
{
    int order = sgm__array_compare(line->x, line->first + *at(line, a) * line->stride,
                                   line->first + *at(line, b) * line->stride);
    return line->descending ? order > 0 : order < 0;
}

static void swap(const sort_line *line, int64_t a, int64_t b)
{
    int64_t kept = *at(line, a);
    *at(line, a) = *at(line, b);
    *at(line, b) = kept;
}

/* Reverses [start, stop). */
static void reverse(const sort_line *line, int64_t start, int64_t stop)
{
    while (start < --stop)
        swap(line, start++, stop);
}

/* [start, middle) and [middle, stop) change places, by three reversals. */
static void rotate(const sort_line *line, int64_t start, int64_t middle, int64_t stop)
{
    reverse(line, start, middle);
    reverse(line, middle, stop);
    reverse(line, start, stop);
}

/* Stable: an entry moves before another one only if it must. */
static void insertion_sort(const sort_line *line, int64_t start, int64_t stop)
{
    for (int64_t i = start + 1; i < stop; i++)
        for (int64_t k = i; k > start && before(line, k, k - 1); k--)
            swap(line, k, k - 1);
}

/* SymMerge compares each place of the left half with its mirror image in the right half, place + image =
 * mirror. Bisection finds the first place whose entry belongs behind its image: from there on, left and
 * right change sides. */
static int64_t find_cut(const sort_line *line, int64_t low, int64_t high, int64_t mirror)
{
    while (low < high) {
        int64_t probe = low + (high - low) / 2;
        if (before(line, mirror - probe, probe))
            high = probe;
        else
            low = probe + 1;
    }
    return low;
}

/* Merges the sorted [start, middle) and [middle, stop) in place: rotates what belongs to the other side of
 * the centre, then merges both halves. Each call halves its range, so the recursion is as deep as the
 * logarithm of the length. */
static void merge(const sort_line *line, int64_t start, int64_t middle, int64_t stop)
{
    if (start >= middle || middle >= stop || !before(line, middle, middle - 1))
        return;
    if (stop - start == 2) {
        swap(line, start, middle);
        return;
    }
    int64_t half = start + (stop - start) / 2, sum = half + middle;
    int64_t cut =
        middle > half ? find_cut(line, sum - stop, half, sum - 1) : find_cut(line, start, middle, sum - 1);
    int64_t end = sum - cut;
    if (cut < middle && middle < end)
        rotate(line, cut, middle, end);
    merge(line, start, cut, half);
    merge(line, half, end, stop);
}

/* Blocks of 12 by insertion, which is the fastest for so few, then merges of twice the width. */
static void sort_all(const sort_line *line, int64_t size)
{
    enum { BLOCK = 12 };
    for (int64_t i = 0; i < size; i++)
        *at(line, i) = i;
    for (int64_t i = 0; i < size; i += BLOCK)
        insertion_sort(line, i, i + BLOCK < size ? i + BLOCK : size);
    for (int64_t width = BLOCK; width < size; width *= 2)
        for (int64_t i = 0; i + width < size; i += 2 * width)
            merge(line, i, i + width, i + 2 * width < size ? i + 2 * width : size);
}

/* integers: axis, descending. The result has the input's shape. */
static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count;
    SGM_TRY(sgm__want_integers(attributes, 2));
    SGM_TRY(sgm__want_axis(&inputs[0], attributes->integers[0]));
    *result = (sgm_type){.dtype = SGM_INT64, .shape = inputs[0].shape};
    return SGM_OK;
}

/* One sort for each position of the other axes. */
static sgm_status forward(const sgm_kernel_call *call)
{
    const sgm_array *x = &call->inputs[0], *y = &call->output;
    int32_t axis = (int32_t)call->attributes->integers[0];
    if (sgm_shape_elements(&x->shape) == 0)
        return SGM_OK;
    sgm_array x_rest = sgm__array_pick(x, axis, 0), y_rest = sgm__array_pick(y, axis, 0);
    sgm__cursor read = sgm__cursor_make(&x_rest.shape, x_rest.strides);
    sgm__cursor write = sgm__cursor_make(&y_rest.shape, y_rest.strides);
    int64_t lines = sgm_shape_elements(&x_rest.shape);
    for (int64_t i = 0; i < lines; i++) {
        sort_line line = {.x = x,
                          .first = read.offset,
                          .stride = x->strides[axis],
                          .positions = (int64_t *)y->data + write.offset,
                          .step = y->strides[axis],
                          .descending = call->attributes->integers[1] != 0};
        sort_all(&line, x->shape.dims[axis]);
        sgm__cursor_next(&read);
        sgm__cursor_next(&write);
    }
    return SGM_OK;
}

/* No gradient: positions are integers. The gradient of sort goes through gather_along. */
const sgm_op sgm__op_argsort = {
    SGM__OP("argsort", 1,
            "positions in the order of their elements along an axis; stable, NaN above all numbers"),
    .flags = SGM_OP_STRIDED, .infer = infer, .forward = forward};

sgm_value sgm_argsort(sgm_graph *graph, sgm_value x, int32_t axis, bool descending)
{
    if (!sgm__resolve_axis(graph, "argsort", x, &axis))
        return (sgm_value){-1};
    return sgm__record_one(graph, &sgm__op_argsort, x, &SGM__INTEGERS(axis, descending));
}

/* x gathered in the order of argsort, so the gradient of each entry goes back to where it came from. */
sgm_value sgm_sort(sgm_graph *graph, sgm_value x, int32_t axis, bool descending)
{
    return sgm_gather_along(graph, x, sgm_argsort(graph, x, axis, descending), axis);
}

/* The first k of the whole order: of equal elements the first. */
sgm_value sgm_top_k_indices(sgm_graph *graph, sgm_value x, int32_t axis, int64_t k)
{
    if (!sgm__resolve_axis(graph, "top_k", x, &axis))
        return (sgm_value){-1};
    sgm_type type = sgm_value_type(graph, x);
    char text[128];
    if (k < 0 || k > type.shape.dims[axis])
        return sgm_graph_fail(graph, SGM_ERROR_ARGUMENT, "top_k: axis %d of %s has no %lld largest elements",
                              axis, sgm_shape_text(&type.shape, text, sizeof text), (long long)k);
    return sgm_slice(graph, sgm_argsort(graph, x, axis, true), axis, 0, k, 1);
}

sgm_value sgm_top_k(sgm_graph *graph, sgm_value x, int32_t axis, int64_t k)
{
    return sgm_gather_along(graph, x, sgm_top_k_indices(graph, x, axis, k), axis);
}
