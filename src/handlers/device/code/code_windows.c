/* Gradients of poolings: a work-item for each element of the data asks which windows see it.
 *
 * In C each window adds to the elements that it sees; here several windows would write the same element at
 * once. So an element sums over the windows that cover it, always in the same order, and needs no atomic
 * operations. Max pooling finds the largest element of each of these windows again. Poolings themselves are
 * written by handlers/source/source_windows.c.
 */
#include "handlers/device/code/code_internal.h"

/* The element of a work-item: its plane (example and channel), row and column, as expressions. */
typedef struct covering {
    const char *plane, *place[2]; /* NULL: 0 */
} covering;

/* A loop over the window's places, "p" or "q", at which it sees the element's row or column `place`; "row" or
 * "column" becomes the window's position, (place + before - p dilation) / stride. Places where that is not
 * whole or is outside are left out. */
static void cover(sgm__device_render *r, const sgm__window *window, int axis, const char *place)
{
    static const char *const windows[] = {"row", "column"}, *const places[] = {"p", "q"};
    sgm__source_writer *w = &r->writer;
    const char *counter = sgm__device_counter(r), *name = windows[axis], *p = places[axis];
    sgm__source_open(w, "for (int %s = 0; %s < %lld; %s++)", p, p, (long long)window->size[axis], p);
    const char *moved =
        sgm__source_format(w, "%s + %lld - %s", place != NULL ? place : "0", (long long)window->before[axis],
                           sgm__source_times(w, p, window->dilation[axis]));
    if (window->stride[axis] == 1) {
        sgm__source_line(w, "const %s %s = %s;", counter, name, moved);
        sgm__source_line(w, "if (%s < 0 || %s >= %lld)", name, name, (long long)window->out[axis]);
    } else {
        sgm__source_line(w, "const %s moved_%s = %s, %s = moved_%s / %lld;", counter, name, moved, name, name,
                         (long long)window->stride[axis]);
        sgm__source_line(w, "if (moved_%s < 0 || moved_%s %% %lld != 0 || %s >= %lld)", name, name,
                         (long long)window->stride[axis], name, (long long)window->out[axis]);
    }
    sgm__source_line(w, "    continue;");
}

/* A work-item, "n", for each element of the data. */
static void open_elements(sgm__device_render *r, const sgm__window *window, covering *c)
{
    sgm__source_writer *w = &r->writer;
    sgm_shape planes = sgm_shape_of(window->batch * window->channels, window->in[0], window->in[1]);
    const char *index[SGM_MAX_RANK] = {NULL};
    sgm__source_turns(w, &planes, ~(uint32_t)0, index);
    c->plane = index[0];
    c->place[0] = index[1];
    c->place[1] = index[2];
}

/* The number of an element in (planes, height, width). */
static const char *in_plane(sgm__device_render *r, const covering *c, const char *row, const char *column,
                            const int64_t *extent)
{
    return sgm__source_in_image(&r->writer, c->plane, NULL, 1, row, column, extent);
}

/* Lines that find the number of the element that the window at "row" and "column" has taken, "largest": the
 * first largest one, and the last NaN if there is one. */
static void find_largest(sgm__device_render *r, int32_t data, const sgm__window *window, const covering *c)
{
    static const char *const windows[] = {"row", "column"}, *const places[] = {"s", "t"},
                             *const elements[] = {"y", "x"};
    sgm__source_writer *w = &r->writer;
    const char *counter = sgm__device_counter(r);
    const char *type = sgm__source_type_name(w, sgm__device_node(r, data)->type.dtype);
    sgm__source_line(w, "%s best = 0;", type);
    sgm__source_line(w, "%s largest = -1;", counter);
    int32_t before = w->opened;
    for (int axis = 0; axis < 2; axis++) {
        const char *p = places[axis], *name = elements[axis];
        sgm__source_open(w, "for (int %s = 0; %s < %lld; %s++)", p, p, (long long)window->size[axis], p);
        sgm__source_line(w, "const %s %s = %s * %lld + %s * %lld - %lld;", counter, name, windows[axis],
                         (long long)window->stride[axis], p, (long long)window->dilation[axis],
                         (long long)window->before[axis]);
        sgm__source_line(w, "if (%s < 0 || %s >= %lld)", name, name, (long long)window->in[axis]);
        sgm__source_line(w, "    continue;");
    }
    sgm__source_line(w, "const %s here = %s;", counter, in_plane(r, c, "y", "x", window->in));
    sgm__source_line(w, "const %s value = %s;", type, sgm__source_flat(w, data, "here"));
    sgm__source_line(w, "if (largest < 0 || value > best || value != value) {");
    sgm__source_line(w, "    best = value;");
    sgm__source_line(w, "    largest = here;");
    sgm__source_line(w, "}");
    sgm__source_close(w, w->opened - before);
}

/* The gradients of all windows that have taken this element. */
static void write_largest(sgm__device_render *r, int32_t number, const sgm__window *window)
{
    sgm__source_writer *w = &r->writer;
    covering c = {0};
    open_elements(r, window, &c);
    sgm__source_line(w, "%s sum = 0;", sgm__source_type_name(w, sgm__device_node(r, number)->type.dtype));
    cover(r, window, 0, c.place[0]);
    cover(r, window, 1, c.place[1]);
    find_largest(r, sgm__source_operand(w, number, 0), window, &c);
    sgm__source_line(w, "if (largest == n)");
    sgm__source_line(w, "    sum += %s;",
                     sgm__source_flat(w, sgm__source_operand(w, number, 1),
                                      in_plane(r, &c, "row", "column", window->out)));
    sgm__source_close(w, w->opened);
    sgm__source_store_flat(w, number, "n", "sum");
}

/* Lines that count the elements of the window that are no padding, along an axis. */
static const char *seen(sgm__device_render *r, const sgm__window *window, int axis)
{
    static const char *const windows[] = {"row", "column"}, *const names[] = {"high", "wide"};
    sgm__source_writer *w = &r->writer;
    const char *begin = sgm__source_format(w, "%s * %lld - %lld", windows[axis],
                                           (long long)window->stride[axis], (long long)window->before[axis]);
    const char *counter = sgm__device_counter(r);
    sgm__source_line(w, "const %s first_%s = %s, last_%s = first_%s + %lld;", counter, names[axis], begin,
                     names[axis], names[axis], (long long)window->size[axis]);
    sgm__source_line(w, "const %s %s = (last_%s < %lld ? last_%s : %lld) - (first_%s > 0 ? first_%s : 0);",
                     counter, names[axis], names[axis], (long long)window->in[axis], names[axis],
                     (long long)window->in[axis], names[axis], names[axis]);
    return names[axis];
}

/* The gradients of all windows that cover this element, each divided by the number of elements that it
 * averages. */
static void write_average(sgm__device_render *r, int32_t number, const sgm__window *window)
{
    sgm__source_writer *w = &r->writer;
    const char *type = sgm__source_type_name(w, sgm__device_node(r, number)->type.dtype), *share;
    covering c = {0};
    open_elements(r, window, &c);
    sgm__source_line(w, "%s sum = 0;", type);
    cover(r, window, 0, c.place[0]);
    cover(r, window, 1, c.place[1]);
    if (window->exclude_padding)
        share = sgm__source_format(w, "(%s)(%s * %s)", type, seen(r, window, 0), seen(r, window, 1));
    else
        share = sgm__source_format(w, "%lld", (long long)(window->size[0] * window->size[1]));
    sgm__source_line(
        w, "sum += %s / %s;",
        sgm__source_flat(w, sgm__source_operand(w, number, 0), in_plane(r, &c, "row", "column", window->out)),
        share);
    sgm__source_close(w, w->opened);
    sgm__source_store_flat(w, number, "n", "sum");
}

sgm_status sgm__device_write_pooling(sgm__device_render *r, int32_t number)
{
    sgm__window window = {0};
    SGM_TRY(sgm__source_measure(&r->writer, number, &window));
    sgm__device_begin(r);
    if (sgm__device_node(r, number)->op == &sgm__op_average_pooling_gradient)
        write_average(r, number, &window);
    else
        write_largest(r, number, &window);
    return sgm__device_end(r);
}
