/* Writes tensors as text in the manner of NumPy's print, shortened in the middle of long axes.
 *
 * sgm_tensor_text first measures and then prints, both with the same recursion over the axes and over the
 * same elements, since all columns have one width and all floats one number of digits: a pass for the range
 * (plain or scientific notation), one for the digits, one for the width. Works on views of any strides. */
#include "tensor/tensor_internal.h"

#include <math.h>

#define EDGE 3           /* items that stay at both ends of a shortened axis */
#define LINE_LENGTH 75   /* characters, as in NumPy */
#define MAXIMUM_DIGITS 8 /* after the point, as in NumPy */

/* What the passes pass on to each other. */
typedef struct printer {
    const sgm_tensor *tensor;
    bool shorten; /* more elements than wanted: axes longer than 2 * EDGE are shortened */
    bool scientific;
    double largest, smallest; /* magnitudes of the finite elements other than 0 */
    int digits;               /* after the point, the same for all elements */
    size_t left, width;       /* of the widest element, in characters: before the point, and altogether */
    sgm__text element;        /* the element at hand */
    sgm__text text;
    size_t line; /* where the current line starts in `text` */
} printer;

/* --- one element, written to p->element --- */

static void write_digits(printer *p, double value, int digits)
{
    p->element.length = 0;
    /* '#' keeps the point, the mark of a float: "1." and "1.e+10". */
    if (p->scientific)
        sgm__text_append(&p->element, "%#.*e", digits, value);
    else
        sgm__text_append(&p->element, "%#.*f", digits, value);
}

/* Whether p->element, read again and stored in the tensor's type, has the same bits as `value`. So float32
 * 0.1 needs one digit, though its double has many more. */
static bool reads_back(const printer *p, double value)
{
    char stored[8], read[8];
    double parsed;
    sgm_dtype dtype = sgm_tensor_dtype(p->tensor);
    if (p->element.failed || !sgm__parse_double(p->element.data, &parsed))
        return false;
    sgm__element_store(dtype, stored, value);
    sgm__element_store(dtype, read, parsed);
    return memcmp(stored, read, sgm_dtype_size(dtype)) == 0;
}

/* Writes `value` with the fewest digits after the point that distinguish it from its neighbours, at most
 * MAXIMUM_DIGITS; returns their number. */
static int write_shortest(printer *p, double value)
{
    int digits = 0;
    for (; digits <= MAXIMUM_DIGITS; digits++) {
        write_digits(p, value, digits);
        if (reads_back(p, value))
            return digits;
    }
    /* Rounding to MAXIMUM_DIGITS may leave zeros at the end: 0.30000000000000004 is written as 0.3. */
    for (digits = MAXIMUM_DIGITS; !p->scientific && !p->element.failed && digits > 0; digits--) {
        if (p->element.data[p->element.length - 1] != '0')
            break;
        p->element.data[--p->element.length] = '\0';
    }
    return digits;
}

/* Writes p->element; returns the number of characters before the point, 0 if there is no point. In plain
 * notation spaces stand for the digits that this element has less than others, as NumPy pads. */
static size_t write_float(printer *p, double value)
{
    p->element.length = 0;
    if (!isfinite(value)) {
        sgm__text_append(&p->element, "%s", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
        return 0;
    }
    if (p->scientific) {
        write_digits(p, value, p->digits);
    } else {
        int digits = write_shortest(p, value);
        sgm__text_append(&p->element, "%*s", p->digits > digits ? p->digits - digits : 0, "");
    }
    return p->element.failed ? 0 : strcspn(p->element.data, ".");
}

static size_t write_element(printer *p, const char *data)
{
    sgm_dtype dtype = sgm_tensor_dtype(p->tensor);
    int64_t integer;
    if (sgm_dtype_is_float(dtype))
        return write_float(p, sgm__element_load(dtype, data));
    p->element.length = 0;
    sgm__element_convert(SGM_INT64, &integer, dtype, data);
    if (dtype == SGM_BOOL)
        sgm__text_append(&p->element, "%s", integer ? "True" : "False");
    else
        sgm__text_append(&p->element, "%lld", (long long)integer);
    return 0;
}

/* --- measuring: passes over the elements that will be shown --- */

/* 0 does not count for the choice of the notation. */
static void measure_range(printer *p, const char *data)
{
    double magnitude = fabs(sgm__element_load(sgm_tensor_dtype(p->tensor), data));
    if (magnitude == 0 || !isfinite(magnitude))
        return;
    if (magnitude > p->largest)
        p->largest = magnitude;
    if (p->smallest == 0 || magnitude < p->smallest)
        p->smallest = magnitude;
}

static void measure_digits(printer *p, const char *data)
{
    double value = sgm__element_load(sgm_tensor_dtype(p->tensor), data);
    int digits = isfinite(value) ? write_shortest(p, value) : 0;
    if (digits > p->digits)
        p->digits = digits;
}

static void measure_width(printer *p, const char *data)
{
    size_t left = write_element(p, data);
    if (left > p->left)
        p->left = left;
    /* Numbers line up at the point; numbers without one (nan, inf, integers) end where the others end. */
    size_t width = left > 0 ? p->left + p->element.length - left : p->element.length;
    if (width > p->width)
        p->width = width;
}

/* Calls `visit` for each element that will be shown, skipping the middle of shortened axes; print_axis skips
 * the same ones. */
static void for_each(printer *p, void (*visit)(printer *p, const char *data), int32_t axis, const char *data)
{
    const sgm_shape *shape = sgm_tensor_shape(p->tensor);
    if (axis == shape->rank) {
        visit(p, data);
        return;
    }
    int64_t dim = shape->dims[axis];
    ptrdiff_t step = (ptrdiff_t)sgm_tensor_strides(p->tensor)[axis] *
                     (ptrdiff_t)sgm_dtype_size(sgm_tensor_dtype(p->tensor));
    for (int64_t i = 0; i < dim; i++) {
        if (p->shorten && i == EDGE && dim > 2 * EDGE)
            i = dim - EDGE;
        for_each(p, visit, axis + 1, data + (ptrdiff_t)i * step);
    }
}

/* NumPy's rule for scientific notation: a magnitude of 1e8 or more, one below 1e-4, or a ratio above 1000
 * between the largest and the smallest. */
static void measure(printer *p)
{
    const char *data = sgm_tensor_const_data(p->tensor);
    if (sgm_dtype_is_float(sgm_tensor_dtype(p->tensor))) {
        for_each(p, measure_range, 0, data);
        p->scientific =
            p->largest >= 1e8 || (p->smallest > 0 && (p->smallest < 1e-4 || p->largest / p->smallest > 1000));
        for_each(p, measure_digits, 0, data);
    }
    for_each(p, measure_width, 0, data);
}

/* --- printing --- */

static void print_element(printer *p, const char *data)
{
    write_element(p, data);
    if (p->element.failed)
        return;
    size_t padding = p->width > p->element.length ? p->width - p->element.length : 0;
    sgm__text_append(&p->text, "%*s%s", (int)padding, "", p->element.data);
}

static void break_line(printer *p, int32_t breaks, int32_t indent)
{
    for (int32_t i = 0; i < breaks; i++)
        sgm__text_append_bytes(&p->text, "\n", 1);
    p->line = p->text.length;
    sgm__text_append(&p->text, "%*s", (int)indent, "");
}

/* Between two items of an axis: a space in a row (a new line if the next item, `width` characters, does not
 * fit), a new line between rows, an empty line more between tables. */
static void print_separator(printer *p, int32_t axis, size_t width)
{
    int32_t rank = sgm_tensor_shape(p->tensor)->rank;
    if (axis < rank - 1)
        break_line(p, rank - 1 - axis, axis + 1);
    else if (p->text.length - p->line + 1 + width > LINE_LENGTH)
        break_line(p, 1, rank);
    else
        sgm__text_append_bytes(&p->text, " ", 1);
}

/* The recursion over the axes: brackets around each axis, items between separators. Ends early once memory
 * has run out. */
static void print_axis(printer *p, int32_t axis, const char *data)
{
    const sgm_shape *shape = sgm_tensor_shape(p->tensor);
    if (axis == shape->rank) {
        print_element(p, data);
        return;
    }
    int64_t dim = shape->dims[axis];
    ptrdiff_t step = (ptrdiff_t)sgm_tensor_strides(p->tensor)[axis] *
                     (ptrdiff_t)sgm_dtype_size(sgm_tensor_dtype(p->tensor));
    sgm__text_append_bytes(&p->text, "[", 1);
    for (int64_t i = 0; i < dim && !p->text.failed; i++) {
        if (p->shorten && i == EDGE && dim > 2 * EDGE) {
            print_separator(p, axis, 3);
            sgm__text_append_bytes(&p->text, "...", 3);
            i = dim - EDGE;
        }
        if (i > 0)
            print_separator(p, axis, p->width);
        print_axis(p, axis + 1, data + (ptrdiff_t)i * step);
    }
    sgm__text_append_bytes(&p->text, "]", 1);
}

/* A failure in either text is kept until the end, and gives NULL. */
char *sgm_tensor_text(const sgm_tensor *tensor, int64_t max_elements)
{
    if (!tensor) {
        if (sgm_last_status() == SGM_OK)
            sgm_fail(SGM_ERROR_ARGUMENT, "expected a tensor, got NULL");
        return NULL;
    }
    printer p = {.tensor = tensor};
    int64_t elements = sgm_shape_elements(sgm_tensor_shape(tensor));
    p.shorten = elements > max_elements;
    if (elements == 0) {
        sgm__text_append(&p.text, "[]");
    } else {
        measure(&p);
        print_axis(&p, 0, sgm_tensor_const_data(tensor));
    }
    p.text.failed = p.text.failed || p.element.failed;
    sgm__text_free(&p.element);
    return sgm__text_take(&p.text);
}
