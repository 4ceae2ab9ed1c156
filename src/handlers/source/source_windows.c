/* Convolutions, poolings and their gradients as loops (src/ops/window.h has what a window is).
 *
 * Data is (examples, channels, height, width), with height 1 if it has one dimension. Loops go over results
 * and, within, over the places of the window; "y" and "x" are then the row and column in the data, and places
 * outside are left out by `continue`. All arrays are contiguous, so an element is found by its number.
 * Poolings without gradients also write kernels for devices.
 */
#include "handlers/source/source.h"
#include "ops/window.h"

/* The window's sizes follow from the operands' types, which are checked already. */
sgm_status sgm__source_measure(const sgm__source_writer *w, int32_t number, sgm__window *window)
{
    const sgm__node *node = &w->plan->nodes[number];
    const sgm_type *a = &w->plan->nodes[sgm__source_operand(w, number, 0)].type;
    const sgm_type *b =
        node->input_count > 1 ? &w->plan->nodes[sgm__source_operand(w, number, 1)].type : NULL;
    if (node->op == &sgm__op_convolution)
        return sgm__window_convolution(a, b, &node->attributes, window);
    if (node->op == &sgm__op_convolution_input_gradient)
        return sgm__window_input_gradient(a, b, &node->attributes, window);
    if (node->op == &sgm__op_convolution_weights_gradient)
        return sgm__window_weights_gradient(a, b, &node->attributes, window);
    if (node->op == &sgm__op_average_pooling_gradient)
        return sgm__window_pooling_gradient(a, &node->attributes, window);
    return sgm__window_pooling(a, &node->attributes, window);
}

/* --- numbers of elements --- */

/* The type that a node is computed in. */
static const char *type_of(const sgm__source_writer *w, int32_t number)
{
    return sgm__source_type_name(w, w->plan->nodes[number].type.dtype);
}

const char *sgm__source_nest(sgm__source_writer *w, const char *a, int64_t size, const char *b)
{
    return sgm__source_plus(w, sgm__source_times(w, a, size), b);
}

const char *sgm__source_in_image(sgm__source_writer *w, const char *example, const char *channel,
                                 int64_t channels, const char *row, const char *column, const int64_t *extent)
{
    const char *plane = sgm__source_nest(w, example, channels, channel);
    return sgm__source_nest(w, sgm__source_nest(w, plane, extent[0], row), extent[1], column);
}

/* Lines that compute the data's row or column, "position stride + place dilation - before", as `variable`,
 * and leave out places outside of the data, unless there can be none. */
static void find_place(sgm__source_writer *w, const sgm__window *window, int axis, const char *position,
                       const char *place, const char *variable)
{
    const char *sum = sgm__source_nest(w, position, window->stride[axis], NULL);
    sum = sgm__source_plus(w, sum, sgm__source_times(w, place, window->dilation[axis]));
    if (window->before[axis] != 0)
        sum = sgm__source_format(w, "%s - %lld", sum != NULL ? sum : "0", (long long)window->before[axis]);
    sgm__source_line(w, "const %s %s = %s;", w->dialect->counter, variable, sum != NULL ? sum : "0");
    int64_t last = (window->out[axis] - 1) * window->stride[axis] +
                   (window->size[axis] - 1) * window->dilation[axis] - window->before[axis];
    if (window->before[axis] != 0 || last >= window->in[axis]) {
        sgm__source_line(w, "if (%s < 0 || %s >= %lld)", variable, variable, (long long)window->in[axis]);
        sgm__source_line(w, "    continue;");
    }
}

/* A loop even if there is only one turn, so that `continue` leaves a place out. */
static const char *place_loop(sgm__source_writer *w, const char *variable, int64_t count)
{
    sgm__source_open(w, "for (%s %s = 0; %s < %lld; %s++)", w->dialect->counter, variable, variable,
                     (long long)count, variable);
    return variable;
}

/* --- convolutions --- */

/* The loop variables of a convolution or pooling, as expressions; NULL stands for 0. Poolings count planes in
 * `example`. */
typedef struct names {
    const char *example, *filter, *row, *column, *channel, *place[2];
    const char *whole; /* the channel among those of all groups; `channel` is within its group */
} names;

/* The channel among all, from the filter, which decides the group, and the channel within it. */
static const char *whole_channel(sgm__source_writer *w, const sgm__window *window, const names *n)
{
    int64_t each = window->channels / window->groups, filters = window->filters / window->groups;
    if (window->groups == 1 || n->filter == NULL)
        return n->channel;
    const char *group =
        filters == 1 ? n->filter : sgm__source_format(w, "%s / %lld", n->filter, (long long)filters);
    return sgm__source_plus(w, sgm__source_times(w, group, each), n->channel);
}

/* Expressions for elements: of the data at "y" and "x", of the results, of the weights. */
static const char *of_data(sgm__source_writer *w, int32_t node, const sgm__window *window, const names *n)
{
    return sgm__source_flat(
        w, node, sgm__source_in_image(w, n->example, n->whole, window->channels, "y", "x", window->in));
}

static const char *of_result(sgm__source_writer *w, int32_t node, const sgm__window *window, const names *n)
{
    return sgm__source_flat(
        w, node,
        sgm__source_in_image(w, n->example, n->filter, window->filters, n->row, n->column, window->out));
}

static const char *of_weights(sgm__source_writer *w, int32_t node, const sgm__window *window, const names *n)
{
    return sgm__source_flat(w, node,
                            sgm__source_in_image(w, n->filter, n->channel, window->channels / window->groups,
                                                 n->place[0], n->place[1], window->size));
}

/* Loops over (examples, filters, height, width) of the results. */
static void open_results(sgm__source_writer *w, const sgm__window *window, names *n)
{
    n->example = sgm__source_loop(w, "n", window->batch);
    n->filter = sgm__source_loop(w, "f", window->filters);
    n->row = sgm__source_loop(w, "i", window->out[0]);
    n->column = sgm__source_loop(w, "j", window->out[1]);
    sgm__source_block(w);
}

/* Loops over the channels of a group and the window's places. */
static void open_window(sgm__source_writer *w, const sgm__window *window, names *n)
{
    n->channel = sgm__source_loop(w, "c", window->channels / window->groups);
    n->place[0] = place_loop(w, "p", window->size[0]);
    find_place(w, window, 0, n->row, n->place[0], "y");
    n->place[1] = place_loop(w, "q", window->size[1]);
    find_place(w, window, 1, n->column, n->place[1], "x");
    n->whole = whole_channel(w, window, n);
}

/* Each result is its bias, if there is one, plus the sum over the window. */
static void write_convolution(sgm__source_writer *w, int32_t number, const sgm__window *window)
{
    names n = {0};
    bool biased = w->plan->nodes[number].input_count == 3;
    open_results(w, window, &n);
    sgm__source_line(w, "%s sum = %s;", type_of(w, number),
                     biased ? sgm__source_flat(w, sgm__source_operand(w, number, 2), n.filter) : "0");
    int32_t before = w->opened;
    open_window(w, window, &n);
    sgm__source_line(w, "sum += %s * %s;", of_weights(w, sgm__source_operand(w, number, 1), window, &n),
                     of_data(w, sgm__source_operand(w, number, 0), window, &n));
    sgm__source_close(w, w->opened - before);
    sgm__source_line(w, "%s = sum;", of_result(w, number, window, &n));
}

static void clear(sgm__source_writer *w, int32_t number)
{
    int64_t count = sgm_shape_elements(&w->plan->nodes[number].type.shape);
    sgm__source_line(w, "for (%s i = 0; i < %lld; i++)", w->dialect->counter, (long long)count);
    sgm__source_line(w, "    %s = 0;", sgm__source_flat(w, number, "i"));
}

/* Each result's gradient is added to everything that the result was computed from: the data, or the weights
 * if `to_weights`. */
static void write_gradient(sgm__source_writer *w, int32_t number, const sgm__window *window, bool to_weights)
{
    names n = {0};
    int32_t gradient = sgm__source_operand(w, number, to_weights ? 1 : 0);
    int32_t other = sgm__source_operand(w, number, to_weights ? 0 : 1);
    clear(w, number);
    open_results(w, window, &n);
    sgm__source_line(w, "const %s gradient = %s;", type_of(w, number), of_result(w, gradient, window, &n));
    open_window(w, window, &n);
    if (to_weights)
        sgm__source_line(w, "%s += gradient * %s;", of_weights(w, number, window, &n),
                         of_data(w, other, window, &n));
    else
        sgm__source_line(w, "%s += gradient * %s;", of_data(w, number, window, &n),
                         of_weights(w, other, window, &n));
}

/* --- poolings --- */

/* Turns over the results of a pooling, in (planes, height, width). A plane is a channel of an example. */
static void open_planes(sgm__source_writer *w, const sgm__window *window, names *n)
{
    if (w->dialect->turns != NULL) {
        sgm_shape planes = sgm_shape_of(window->batch * window->channels, window->out[0], window->out[1]);
        const char *index[SGM_MAX_RANK] = {NULL};
        sgm__source_turns(w, &planes, ~(uint32_t)0, index);
        n->example = index[0];
        n->row = index[1];
        n->column = index[2];
        return;
    }
    n->example = sgm__source_loop(w, "n", window->batch * window->channels);
    n->row = sgm__source_loop(w, "i", window->out[0]);
    n->column = sgm__source_loop(w, "j", window->out[1]);
    sgm__source_block(w);
}

/* Loops over the window's places; returns how many were opened. */
static int32_t open_places(sgm__source_writer *w, const sgm__window *window, names *n)
{
    int32_t before = w->opened;
    n->place[0] = place_loop(w, "p", window->size[0]);
    find_place(w, window, 0, n->row, n->place[0], "y");
    n->place[1] = place_loop(w, "q", window->size[1]);
    find_place(w, window, 1, n->column, n->place[1], "x");
    return w->opened - before;
}

/* The number of an element in (planes, height, width). */
static const char *in_plane(sgm__source_writer *w, const names *n, const char *row, const char *column,
                            const int64_t *extent)
{
    return sgm__source_in_image(w, n->example, NULL, 1, row, column, extent);
}

/* Lines after which "place" is the number of the window's largest element in the data and "best" that
 * element. The first of equal ones is taken, and NaN before all numbers; -1: all places are padding. */
static void find_largest(sgm__source_writer *w, int32_t data, const sgm__window *window, names *n)
{
    sgm__source_line(w, "%s best = 0;", type_of(w, data));
    sgm__source_line(w, "%s place = -1;", w->dialect->counter);
    int32_t opened = open_places(w, window, n);
    sgm__source_line(w, "const %s here = %s;", w->dialect->counter, in_plane(w, n, "y", "x", window->in));
    sgm__source_line(w, "const %s value = %s;", type_of(w, data), sgm__source_flat(w, data, "here"));
    sgm__source_line(w, "if (place < 0 || value > best || value != value) {");
    sgm__source_line(w, "    best = value;");
    sgm__source_line(w, "    place = here;");
    sgm__source_line(w, "}");
    sgm__source_close(w, opened);
}

/* Max pooling; or the element of another operand where the maximum is (max_pooling_pick); or the gradient,
 * which goes to that place. */
static void write_largest(sgm__source_writer *w, int32_t number, const sgm__window *window)
{
    const sgm_op *op = w->plan->nodes[number].op;
    names n = {0};
    if (op == &sgm__op_max_pooling_gradient)
        clear(w, number);
    open_planes(w, window, &n);
    find_largest(w, sgm__source_operand(w, number, 0), window, &n);
    const char *result = in_plane(w, &n, n.row, n.column, window->out);
    if (op == &sgm__op_max_pooling) {
        sgm__source_store_flat(w, number, result, "best");
        return;
    }
    int32_t other = sgm__source_operand(w, number, 1);
    if (op == &sgm__op_max_pooling_pick)
        sgm__source_store_flat(
            w, number, result,
            sgm__source_format(w, "place < 0 ? 0 : %s", sgm__source_flat(w, other, "place")));
    else
        sgm__source_line(w, "%s += %s;", sgm__source_flat(w, number, "place"),
                         sgm__source_flat(w, other, result));
}

/* By how many elements a window's sum is divided: all, or only those that are no padding, which are counted
 * where there is padding. */
static const char *share(sgm__source_writer *w, int32_t number, const sgm__window *window, names *n)
{
    bool padded = false;
    for (int axis = 0; axis < 2; axis++)
        padded = padded || window->before[axis] != 0 ||
                 (window->out[axis] - 1) * window->stride[axis] + window->size[axis] > window->in[axis];
    if (!window->exclude_padding || !padded)
        return sgm__source_format(w, "%lld", (long long)(window->size[0] * window->size[1]));
    sgm__source_line(w, "%s seen = 0;", w->dialect->counter);
    int32_t opened = open_places(w, window, n);
    sgm__source_line(w, "(void)y;");
    sgm__source_line(w, "(void)x;");
    sgm__source_line(w, "seen++;");
    sgm__source_close(w, opened);
    return sgm__source_format(w, "(%s)seen", type_of(w, number));
}

/* Average pooling, or its gradient (`backwards`): each element of the window gets an equal share. */
static void write_average(sgm__source_writer *w, int32_t number, const sgm__window *window, bool backwards)
{
    names n = {0};
    int32_t operand = sgm__source_operand(w, number, 0);
    if (backwards)
        clear(w, number);
    open_planes(w, window, &n);
    const char *elements = share(w, number, window, &n);
    const char *result = in_plane(w, &n, n.row, n.column, window->out);
    if (backwards)
        sgm__source_line(w, "const %s gradient = %s / %s;", type_of(w, number),
                         sgm__source_flat(w, operand, result), elements);
    else
        sgm__source_line(w, "%s sum = 0;", type_of(w, number));
    int32_t opened = open_places(w, window, &n);
    const char *place = in_plane(w, &n, "y", "x", window->in);
    if (backwards)
        sgm__source_line(w, "%s += gradient;", sgm__source_flat(w, number, place));
    else
        sgm__source_line(w, "sum += %s;", sgm__source_flat(w, operand, place));
    sgm__source_close(w, opened);
    if (!backwards)
        sgm__source_store_flat(w, number, result, sgm__source_format(w, "sum / %s", elements));
}

bool sgm__source_write_windows(sgm__source_writer *w, int32_t number)
{
    const sgm_op *op = w->plan->nodes[number].op;
    sgm__window window = {0};
    if (sgm__source_measure(w, number, &window) != SGM_OK)
        return false;
    if (op == &sgm__op_convolution)
        write_convolution(w, number, &window);
    else if (op == &sgm__op_convolution_input_gradient)
        write_gradient(w, number, &window, false);
    else if (op == &sgm__op_convolution_weights_gradient)
        write_gradient(w, number, &window, true);
    else if (op == &sgm__op_average_pooling)
        write_average(w, number, &window, false);
    else if (op == &sgm__op_average_pooling_gradient)
        write_average(w, number, &window, true);
    else
        write_largest(w, number, &window);
    return true;
}
