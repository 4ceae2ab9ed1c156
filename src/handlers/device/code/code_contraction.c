/* Elements of contractions (code_contraction.h): matrices by their strides, convolutions by places of the
 * window.
 *
 * Data is (examples, channels, height, width), weights are (filters, channels of a group, height, width) and
 * results (examples, filters, height, width); one-dimensional data has height 1. A column or depth number of
 * a convolution is taken apart into such indices by divisions by constants, which compilers turn into
 * multiplications.
 */
#include "handlers/device/code/code_contraction.h"

#include <stdlib.h>

/* The sizes follow the table in sgm__contraction_kind. */
sgm_status sgm__contraction_of(const sgm__device_render *r, int32_t number, sgm__contraction *p)
{
    const sgm__node *node = sgm__device_node(r, number);
    const sgm_shape *shape = &node->type.shape;
    *p = (sgm__contraction){
        .node = number, .batch = 1, .type = sgm__source_type_name(&r->writer, node->type.dtype)};
    if (node->op == &sgm__op_matmul) {
        for (int32_t i = 0; i < shape->rank - 2; i++)
            p->batch *= shape->dims[i];
        p->rows = shape->dims[shape->rank - 2];
        p->columns = shape->dims[shape->rank - 1];
        p->depth = sgm__device_operand(r, number, 0)->type.shape.dims[shape->rank - 1];
        return SGM_OK;
    }
    sgm__window *window = &p->window;
    SGM_TRY(sgm__source_measure(&r->writer, number, window));
    int64_t filters = window->filters / window->groups, channels = window->channels / window->groups;
    int64_t places = window->size[0] * window->size[1], results = window->out[0] * window->out[1];
    p->batch = window->groups;
    if (node->op == &sgm__op_convolution) {
        p->kind = SGM__CONVOLUTION;
        p->rows = filters;
        p->columns = window->batch * results;
        p->depth = channels * places;
    } else if (node->op == &sgm__op_convolution_input_gradient) {
        p->kind = SGM__INPUT_GRADIENT;
        p->rows = channels;
        p->columns = window->batch * window->in[0] * window->in[1];
        p->depth = filters * places;
    } else {
        p->kind = SGM__WEIGHTS_GRADIENT;
        p->rows = filters;
        p->columns = channels * places;
        p->depth = window->batch * results;
    }
    return SGM_OK;
}

/* Names of the variables for leading axes of matrices. */
static const char *const batch_axes[] = {"b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7"};

void sgm__contraction_begin(sgm__device_render *r, const sgm__contraction *p)
{
    const sgm_shape *shape = &sgm__device_node(r, p->node)->type.shape;
    int64_t below = 1;
    if (p->kind != SGM__MATRICES)
        return;
    for (int32_t i = shape->rank - 2; i-- > 0; below *= shape->dims[i])
        if (shape->dims[i] != 1)
            sgm__source_line(&r->writer, "const %s %s = batch / %lld %% %lld;", sgm__device_counter(r),
                             batch_axes[i], (long long)below, (long long)shape->dims[i]);
}

/* --- matrices --- */

/* The index of a matrix element in the operand's axes. Repeated leading axes have stride 0 in the plan. */
static void matrix_index(const sgm__device_render *r, const sgm__contraction *p, const char *row,
                         const char *column, const char **index)
{
    const sgm_shape *shape = &sgm__device_node(r, p->node)->type.shape;
    for (int32_t i = 0; i < shape->rank - 2; i++)
        index[i] = shape->dims[i] != 1 ? batch_axes[i] : NULL;
    index[shape->rank - 2] = row;
    index[shape->rank - 1] = column;
}

static const char *matrix_element(sgm__device_render *r, const sgm__contraction *p, int32_t side,
                                  const char *row, const char *column)
{
    const char *index[SGM_MAX_RANK] = {NULL};
    matrix_index(r, p, row, column, index);
    return sgm__source_element(&r->writer, sgm__source_operand(&r->writer, p->node, side), index);
}

/* --- convolutions --- */

/* Lines that take a number apart as an index into three axes of `sizes`; parts[i] is a variable, or NULL for
 * an axis of length 1. The first axis needs no remainder. */
static void take_apart(sgm__device_render *r, const char *prefix, const char *number, const int64_t *sizes,
                       const char **parts)
{
    sgm__source_writer *w = &r->writer;
    int64_t below = 1;
    for (int32_t i = 3; i-- > 0; below *= sizes[i]) {
        parts[i] = sizes[i] != 1 ? sgm__source_format(w, "%s%c", prefix, 'a' + i) : NULL;
        if (parts[i] == NULL)
            continue;
        const char *above = below > 1 ? sgm__source_format(w, " / %lld", (long long)below) : "";
        const char *within = i > 0 && (sizes[0] != 1 || (i == 2 && sizes[1] != 1))
                                 ? sgm__source_format(w, " %% %lld", (long long)sizes[i])
                                 : "";
        sgm__source_line(w, "const %s %s = %s%s%s;", sgm__device_counter(r), parts[i], number, above, within);
    }
}

/* A channel among those of all groups from a channel of the group "batch", which has `each` of them. */
static const char *of_group(sgm__device_render *r, const sgm__contraction *p, int64_t each, const char *own)
{
    return p->batch == 1 ? own : sgm__source_nest(&r->writer, "batch", each, own);
}

/* The row or column of the data that the window at `position` sees at `place`: position stride + place
 * dilation - before. A condition that it lies within the data is added to *inside unless that is certain. */
static const char *data_place(sgm__device_render *r, const sgm__window *window, int axis, const char *prefix,
                              const char *position, const char *place, const char **inside)
{
    sgm__source_writer *w = &r->writer;
    const char *name = sgm__source_format(w, "%s%c", prefix, "yx"[axis]);
    const char *sum = sgm__source_plus(w, sgm__source_times(w, position, window->stride[axis]),
                                       sgm__source_times(w, place, window->dilation[axis]));
    int64_t last = (window->out[axis] - 1) * window->stride[axis] +
                   (window->size[axis] - 1) * window->dilation[axis] - window->before[axis];
    sum = sum != NULL ? sum : "0";
    sgm__source_line(w, "const %s %s = %s - %lld;", sgm__device_counter(r), name, sum,
                     (long long)window->before[axis]);
    if (window->before[axis] != 0 || last >= window->in[axis])
        *inside = sgm__source_format(w, "%s%s%s >= 0 && %s < %lld", *inside != NULL ? *inside : "",
                                     *inside != NULL ? " && " : "", name, name, (long long)window->in[axis]);
    return name;
}

/* The opposite: which position of the window sees the data at `position` at its `place`: (position + before -
 * place dilation) / stride, which must be whole and within the result. */
static const char *result_place(sgm__device_render *r, const sgm__window *window, int axis,
                                const char *prefix, const char *position, const char *place,
                                const char **inside)
{
    sgm__source_writer *w = &r->writer;
    const char *moved = sgm__source_format(w, "%s%c", prefix, "yx"[axis]);
    const char *sum = position != NULL ? position : "0";
    if (place != NULL)
        sum = sgm__source_format(w, "%s - %s", sum, sgm__source_times(w, place, window->dilation[axis]));
    sgm__source_line(w, "const %s %s = %s + %lld;", sgm__device_counter(r), moved, sum,
                     (long long)window->before[axis]);
    const char *found = moved;
    const char *condition = sgm__source_format(w, "%s >= 0", moved);
    if (window->stride[axis] != 1) {
        found = sgm__source_format(w, "%s / %lld", moved, (long long)window->stride[axis]);
        condition =
            sgm__source_format(w, "%s && %s %% %lld == 0", condition, moved, (long long)window->stride[axis]);
    }
    condition = sgm__source_format(w, "%s && %s < %lld", condition, found, (long long)window->out[axis]);
    *inside = *inside != NULL ? sgm__source_format(w, "%s && %s", *inside, condition) : condition;
    return window->stride[axis] != 1 ? sgm__source_format(w, "(%s)", found) : found;
}

/* Places outside of the data or result count as 0. */
static const char *or_zero(sgm__device_render *r, const char *inside, const char *element)
{
    return inside != NULL ? sgm__source_format(&r->writer, "%s ? %s : 0", inside, element) : element;
}

/* The element of the data that the window at `position` (example, row, column) sees at `place` (channel, row,
 * column). */
static const char *of_data(sgm__device_render *r, const sgm__contraction *p, const char *prefix,
                           int32_t operand, const char *const *position, const char *const *place)
{
    const sgm__window *window = &p->window;
    const char *inside = NULL;
    const char *y = data_place(r, window, 0, prefix, position[1], place[1], &inside);
    const char *x = data_place(r, window, 1, prefix, position[2], place[2], &inside);
    const char *channel = of_group(r, p, window->channels / window->groups, place[0]);
    const char *at =
        sgm__source_in_image(&r->writer, position[0], channel, window->channels, y, x, window->in);
    return or_zero(r, inside, sgm__source_flat(&r->writer, operand, at));
}

/* Matrices, or the weights (CONVOLUTION, INPUT_GRADIENT), or the gradient of the results
 * (WEIGHTS_GRADIENT). */
const char *sgm__contraction_left(sgm__device_render *r, const sgm__contraction *p, const char *prefix,
                                  const char *row, const char *depth)
{
    sgm__source_writer *w = &r->writer;
    const sgm__window *window = &p->window;
    const char *parts[3];
    int64_t filters = window->groups > 0 ? window->filters / window->groups : 1;
    switch (p->kind) {
    case SGM__MATRICES:
        return matrix_element(r, p, 0, row, depth);
    case SGM__CONVOLUTION:
        return sgm__source_flat(w, sgm__source_operand(w, p->node, 1),
                                sgm__source_nest(w, of_group(r, p, filters, row), p->depth, depth));
    case SGM__INPUT_GRADIENT: {
        const int64_t sizes[] = {filters, window->size[0], window->size[1]};
        take_apart(r, prefix, depth, sizes, parts);
        return sgm__source_flat(w, sgm__source_operand(w, p->node, 1),
                                sgm__source_in_image(&r->writer, of_group(r, p, filters, parts[0]), row,
                                                     p->rows, parts[1], parts[2], window->size));
    }
    case SGM__WEIGHTS_GRADIENT: {
        const int64_t sizes[] = {window->batch, window->out[0], window->out[1]};
        take_apart(r, prefix, depth, sizes, parts);
        return sgm__source_flat(w, sgm__source_operand(w, p->node, 1),
                                sgm__source_in_image(&r->writer, parts[0], of_group(r, p, filters, row),
                                                     window->filters, parts[1], parts[2], window->out));
    }
    }
    return "0";
}

/* Matrices, or the data (CONVOLUTION, WEIGHTS_GRADIENT), or the gradient of the results (INPUT_GRADIENT). The
 * depth's and the column's variables begin with `prefix` and "k" or "n". */
const char *sgm__contraction_right(sgm__device_render *r, const sgm__contraction *p, const char *prefix,
                                   const char *depth, const char *column)
{
    sgm__source_writer *w = &r->writer;
    const sgm__window *window = &p->window;
    if (p->kind == SGM__MATRICES)
        return matrix_element(r, p, 1, depth, column);
    int64_t filters = window->filters / window->groups, channels = window->channels / window->groups;
    const char *of_depth = sgm__source_format(w, "%sk", prefix), *inside = NULL;
    const char *of_column = sgm__source_format(w, "%sn", prefix), *d[3], *c[3];
    const int64_t results[] = {window->batch, window->out[0], window->out[1]};
    const int64_t elements[] = {window->batch, window->in[0], window->in[1]};
    const int64_t of_filters[] = {filters, window->size[0], window->size[1]};
    const int64_t of_channels[] = {channels, window->size[0], window->size[1]};
    switch (p->kind) {
    case SGM__CONVOLUTION:
        take_apart(r, of_depth, depth, of_channels, d);
        take_apart(r, of_column, column, results, c);
        return of_data(r, p, prefix, sgm__source_operand(w, p->node, 0), c, d);
    case SGM__WEIGHTS_GRADIENT:
        take_apart(r, of_depth, depth, results, d);
        take_apart(r, of_column, column, of_channels, c);
        return of_data(r, p, prefix, sgm__source_operand(w, p->node, 0), d, c);
    default:
        take_apart(r, of_depth, depth, of_filters, d);
        take_apart(r, of_column, column, elements, c);
        const char *y = result_place(r, window, 0, prefix, c[1], d[1], &inside);
        const char *x = result_place(r, window, 1, prefix, c[2], d[2], &inside);
        const char *at = sgm__source_in_image(&r->writer, c[0], of_group(r, p, filters, d[0]),
                                              window->filters, y, x, window->out);
        return or_zero(r, inside, sgm__source_flat(w, sgm__source_operand(w, p->node, 0), at));
    }
}

/* Lines that store `value`. A convolution with three operands adds a bias for each filter. */
void sgm__contraction_store(sgm__device_render *r, const sgm__contraction *p, const char *prefix,
                            const char *row, const char *column, const char *value)
{
    sgm__source_writer *w = &r->writer;
    const sgm__window *window = &p->window;
    const char *index[SGM_MAX_RANK] = {NULL}, *parts[3];
    if (p->kind == SGM__MATRICES) {
        matrix_index(r, p, row, column, index);
        sgm__source_store(w, p->node, index, value);
        return;
    }
    const char *whole = of_group(r, p, p->rows, row);
    if (p->kind == SGM__WEIGHTS_GRADIENT) {
        sgm__source_store_flat(w, p->node, sgm__source_nest(w, whole, p->columns, column), value);
        return;
    }
    bool forward = p->kind == SGM__CONVOLUTION;
    const int64_t *extent = forward ? window->out : window->in;
    const int64_t sizes[] = {window->batch, extent[0], extent[1]};
    take_apart(r, prefix, column, sizes, parts);
    if (sgm__device_node(r, p->node)->input_count == 3)
        value = sgm__source_format(w, "%s + %s", value,
                                   sgm__source_flat(w, sgm__source_operand(w, p->node, 2), whole));
    sgm__source_store_flat(w, p->node,
                           sgm__source_in_image(&r->writer, parts[0], whole,
                                                forward ? window->filters : window->channels, parts[1],
                                                parts[2], extent),
                           value);
}

/* The weights and gradients of convolutions are read along the depth. */
bool sgm__contraction_left_is_deep(const sgm__device_render *r, const sgm__contraction *p)
{
    const sgm__node *left = sgm__device_operand(r, p->node, 0);
    int32_t row = left->type.shape.rank - 2;
    return p->kind != SGM__MATRICES || llabs(left->place.strides[row + 1]) <= llabs(left->place.strides[row]);
}

/* Of convolutions only the gradient of the weights has its depth, places of the result, along the rows of
 * images. */
bool sgm__contraction_right_is_deep(const sgm__device_render *r, const sgm__contraction *p)
{
    const sgm__node *right = sgm__device_operand(r, p->node, 1);
    int32_t row = right->type.shape.rank - 2;
    if (p->kind != SGM__MATRICES)
        return p->kind == SGM__WEIGHTS_GRADIENT;
    return llabs(right->place.strides[row]) < llabs(right->place.strides[row + 1]);
}

/* Scratch memory for parts is of 8 bytes a number, which suits double, too. */
void sgm__contraction_open(sgm__device_render *r, const sgm__contraction *p, sgm__contraction_parts *parts,
                           int64_t row_tiles, int64_t column_tiles)
{
    sgm__source_writer *w = &r->writer;
    const char *counter = sgm__device_counter(r);
    if (parts->count > 1)
        parts->scratch = sgm__device_take_scratch(r, parts->count * p->batch * p->rows * p->columns * 8);
    sgm__source_line(w, "const %s column_tile = tile %% %lld, row_tile = tile / %lld %% %lld;", counter,
                     (long long)column_tiles, (long long)column_tiles, (long long)row_tiles);
    if (p->batch > 1)
        sgm__source_line(w, "const %s batch = tile / %lld %% %lld;", counter,
                         (long long)(column_tiles * row_tiles), (long long)p->batch);
    if (parts->count == 1) {
        sgm__source_line(w, "const %s from = 0, to = %lld;", counter, (long long)p->depth);
    } else {
        sgm__source_line(w, "const %s part = tile / %lld, from = part * %lld;", counter,
                         (long long)(column_tiles * row_tiles * p->batch), (long long)parts->depth);
        sgm__source_line(w, "const %s to = from + %lld < %lld ? from + %lld : %lld;", counter,
                         (long long)parts->depth, (long long)p->depth, (long long)parts->depth,
                         (long long)p->depth);
    }
    sgm__contraction_begin(r, p);
}

void sgm__contraction_keep(sgm__device_render *r, const sgm__contraction *p,
                           const sgm__contraction_parts *parts, const char *value)
{
    sgm__source_writer *w = &r->writer;
    if (parts->count == 1) {
        sgm__contraction_store(r, p, "c", "row", "column", value);
        return;
    }
    const char *whole = p->batch > 1 ? sgm__source_nest(w, "part", p->batch, "batch") : "part";
    const char *at = sgm__source_nest(w, sgm__source_nest(w, whole, p->rows, "row"), p->columns, "column");
    sgm__source_line(w, "%s[%s] = %s;", sgm__device_scratch(r, parts->scratch, p->type, true), at, value);
}
