/* Windows of convolutions and poolings: reading attributes, the rule of shapes, and its errors.
 *
 * The rule: a window of size s with dilation d reaches over (s - 1) d + 1 places, and gives (in + before +
 * after - reach) / stride + 1 positions, rounded down, along each axis. Data of one dimension is treated
 * as of height 1, so that all loops have two axes. The functions here are called by `infer` while
 * recording, and again by kernels, which get the same numbers. */
#include "ops/window.h"

#define LARGEST ((int64_t)1 << 40) /* so that no sum or product below overflows */

/* For messages; data of one dimension uses the second. */
static const char *const axis_names[] = {"height", "width"};

/* The number of axes that the window moves over: 1 or 2; batch and channels come before them. */
static int32_t space(const sgm_type *type)
{
    return type->shape.rank - 2;
}

/* (batch, channels, [height,] width) of a float type. */
static sgm_status want_data(const sgm_type *type, const char *what)
{
    char text[SGM__TYPE_TEXT];
    SGM_TRY(sgm__want_float(type));
    if (type->shape.rank != 3 && type->shape.rank != 4)
        return sgm_fail(SGM_ERROR_SHAPE,
                        "wants %s as (batch, channels, height, width) or (batch, channels, length), got %s: "
                        "reshape it",
                        what, sgm__type_text(type, text));
    return SGM_OK;
}

/* Height and width; height 1 for data of one dimension. */
static void read_extent(const sgm_type *type, int64_t *extent)
{
    extent[0] = space(type) == 2 ? type->shape.dims[2] : 1;
    extent[1] = type->shape.dims[type->shape.rank - 1];
}

sgm_shape sgm__window_shape(const sgm_type *like, int64_t batch, int64_t channels, const int64_t *extent)
{
    return like->shape.rank == 4 ? sgm_shape_of(batch, channels, extent[0], extent[1])
                                 : sgm_shape_of(batch, channels, extent[1]);
}

/* Copies the attributes into `w` and checks each integer by itself; whether they fit together is checked by
 * measure(). */
static sgm_status read_attributes(const sgm_attributes *attributes, sgm__window *w)
{
    const int64_t *integers = attributes->integers;
    SGM_TRY(sgm__want_integers(attributes, SGM__WINDOW_INTEGERS));
    for (int i = 0; i < 2; i++) {
        w->size[i] = integers[SGM__WINDOW_SIZE + i];
        w->stride[i] = integers[SGM__WINDOW_STRIDE + i];
        w->before[i] = integers[SGM__WINDOW_BEFORE + i];
        w->after[i] = integers[SGM__WINDOW_AFTER + i];
        w->dilation[i] = integers[SGM__WINDOW_DILATION + i];
        bool good = w->size[i] >= 0 && w->stride[i] >= 1 && w->before[i] >= 0 && w->after[i] >= 0 &&
                    w->dilation[i] >= 1;
        bool small = w->size[i] <= LARGEST && w->stride[i] <= LARGEST && w->before[i] <= LARGEST &&
                     w->after[i] <= LARGEST && w->dilation[i] <= LARGEST;
        if (!good || !small)
            return sgm_fail(SGM_ERROR_ARGUMENT,
                            "size %lld, stride %lld, padding %lld and %lld, dilation %lld along the %s: "
                            "strides and dilations are at least 1, padding at least 0, all at most 2^40",
                            (long long)w->size[i], (long long)w->stride[i], (long long)w->before[i],
                            (long long)w->after[i], (long long)w->dilation[i], axis_names[i]);
    }
    w->groups = integers[SGM__WINDOW_GROUPS];
    w->exclude_padding = integers[SGM__WINDOW_FLAG] != 0;
    return SGM_OK;
}

/* out = floor((in + before + after - reach) / stride) + 1 along both axes, where `reach` here is (size - 1)
 * dilation. LARGEST keeps all sums from overflowing; only the product needs a check. */
static sgm_status measure(sgm__window *w)
{
    for (int i = 0; i < 2; i++) {
        int64_t reach, room = w->in[i] + w->before[i] + w->after[i];
        if (w->in[i] > LARGEST || __builtin_mul_overflow(w->size[i] - 1, w->dilation[i], &reach))
            return sgm_fail(SGM_ERROR_SHAPE, "a %s of %lld and a window of %lld by %lld are too large",
                            axis_names[i], (long long)w->in[i], (long long)w->size[i],
                            (long long)w->dilation[i]);
        if (w->size[i] < 1 || room <= reach)
            return sgm_fail(SGM_ERROR_SHAPE,
                            "the %s of %lld, %lld with padding, is smaller than the window's %lld: take a "
                            "smaller window, more padding, or fewer layers that shrink the image before it",
                            axis_names[i], (long long)w->in[i], (long long)room, (long long)reach + 1);
        w->out[i] = (room - reach - 1) / w->stride[i] + 1;
    }
    return SGM_OK;
}

/* Channels and filters are divided among groups, each of which is a convolution by itself. */
static sgm_status check_group_count(const sgm__window *w)
{
    if (w->groups >= 1 && w->channels % w->groups == 0 && w->filters % w->groups == 0)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_SHAPE,
                    "%lld groups: the %lld channels and the %lld filters must both be multiples of their "
                    "number",
                    (long long)w->groups, (long long)w->channels, (long long)w->filters);
}

/* Weights are (filters, channels / groups, ...): each filter sees the channels of its group. */
static sgm_status check_groups(const sgm__window *w, const sgm_type *weights)
{
    char text[SGM__TYPE_TEXT];
    int64_t each = weights->shape.dims[1];
    SGM_TRY(check_group_count(w));
    if (each != w->channels / w->groups)
        return sgm_fail(SGM_ERROR_SHAPE,
                        "data of %lld channels in %lld groups want weights (filters, %lld, ...), got %s",
                        (long long)w->channels, (long long)w->groups, (long long)(w->channels / w->groups),
                        sgm__type_text(weights, text));
    return SGM_OK;
}

/* Equal types and ranks of two operands. */
static sgm_status want_same(const sgm_type *a, const sgm_type *b)
{
    char first[SGM__TYPE_TEXT], second[SGM__TYPE_TEXT];
    if (a->dtype == b->dtype && a->shape.rank == b->shape.rank)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_SHAPE,
                    "wants two operands of equal type and number of axes, got %s and %s: cast or reshape one "
                    "of them",
                    sgm__type_text(a, first), sgm__type_text(b, second));
}

/* x (batch, channels, in...), weights (filters, channels / groups, size...): everything but `out` is known.
 */
sgm_status sgm__window_convolution(const sgm_type *x, const sgm_type *weights,
                                   const sgm_attributes *attributes, sgm__window *window)
{
    SGM_TRY(want_data(x, "data"));
    SGM_TRY(want_data(weights, "weights"));
    SGM_TRY(want_same(x, weights));
    SGM_TRY(read_attributes(attributes, window));
    window->batch = x->shape.dims[0];
    window->channels = x->shape.dims[1];
    window->filters = weights->shape.dims[0];
    read_extent(x, window->in);
    read_extent(weights, window->size);
    SGM_TRY(check_groups(window, weights));
    return measure(window);
}

/* The gradient of a window's result must have the result's shape. */
static sgm_status check_gradient(const sgm__window *w, const sgm_type *gradient)
{
    char text[SGM__TYPE_TEXT], wanted[128];
    sgm_shape shape = sgm__window_shape(gradient, w->batch, w->filters, w->out);
    if (sgm_shape_equal(&shape, &gradient->shape))
        return SGM_OK;
    return sgm_fail(SGM_ERROR_SHAPE, "such a window gives %s, but the gradient is %s",
                    sgm_shape_text(&shape, wanted, sizeof wanted), sgm__type_text(gradient, text));
}

/* The result's extent is an attribute; its channels are those of the weights times the groups. The gradient
 * must then have the shape that a convolution of such data would give. */
sgm_status sgm__window_input_gradient(const sgm_type *gradient, const sgm_type *weights,
                                      const sgm_attributes *attributes, sgm__window *window)
{
    char text[SGM__TYPE_TEXT];
    SGM_TRY(want_data(gradient, "a gradient"));
    SGM_TRY(want_data(weights, "weights"));
    SGM_TRY(want_same(gradient, weights));
    SGM_TRY(read_attributes(attributes, window));
    window->batch = gradient->shape.dims[0];
    window->filters = weights->shape.dims[0];
    read_extent(weights, window->size);
    for (int i = 0; i < 2; i++)
        window->in[i] = attributes->integers[SGM__WINDOW_EXTENT + i];
    if (gradient->shape.dims[1] != window->filters)
        return sgm_fail(SGM_ERROR_SHAPE, "weights begin with the %lld channels of the other operand, got %s",
                        (long long)gradient->shape.dims[1], sgm__type_text(weights, text));
    if (window->groups < 1 ||
        __builtin_mul_overflow(weights->shape.dims[1], window->groups, &window->channels))
        return sgm_fail(SGM_ERROR_ARGUMENT, "%lld groups: there is at least 1", (long long)window->groups);
    SGM_TRY(check_groups(window, weights));
    SGM_TRY(measure(window));
    return check_gradient(window, gradient);
}

/* The window's size is an attribute, its filters are the gradient's channels. */
sgm_status sgm__window_weights_gradient(const sgm_type *x, const sgm_type *gradient,
                                        const sgm_attributes *attributes, sgm__window *window)
{
    SGM_TRY(want_data(x, "data"));
    SGM_TRY(want_data(gradient, "a gradient"));
    SGM_TRY(want_same(x, gradient));
    SGM_TRY(read_attributes(attributes, window));
    window->batch = x->shape.dims[0];
    window->channels = x->shape.dims[1];
    window->filters = gradient->shape.dims[1];
    read_extent(x, window->in);
    SGM_TRY(check_group_count(window));
    SGM_TRY(measure(window));
    return check_gradient(window, gradient);
}

/* Padding is less than the window's reach on each side, so that a window without holes always sees an
 * element: padding alone has no largest element and no mean. */
static sgm_status check_pooling(sgm__window *w)
{
    SGM_TRY(measure(w));
    for (int i = 0; i < 2; i++)
        if (w->before[i] > (w->size[i] - 1) * w->dilation[i] ||
            w->after[i] > (w->size[i] - 1) * w->dilation[i])
            return sgm_fail(SGM_ERROR_ARGUMENT,
                            "padding of %lld and %lld along the %s: a window of %lld would see nothing else; "
                            "take less padding",
                            (long long)w->before[i], (long long)w->after[i], axis_names[i],
                            (long long)w->size[i]);
    return SGM_OK;
}

sgm_status sgm__window_pooling(const sgm_type *x, const sgm_attributes *attributes, sgm__window *window)
{
    SGM_TRY(want_data(x, "data"));
    SGM_TRY(read_attributes(attributes, window));
    window->batch = x->shape.dims[0];
    window->channels = window->filters = x->shape.dims[1];
    read_extent(x, window->in);
    return check_pooling(window);
}

/* The extent of what was pooled is an attribute, as several extents give the same result. */
sgm_status sgm__window_pooling_gradient(const sgm_type *gradient, const sgm_attributes *attributes,
                                        sgm__window *window)
{
    SGM_TRY(want_data(gradient, "a gradient"));
    SGM_TRY(read_attributes(attributes, window));
    window->batch = gradient->shape.dims[0];
    window->channels = window->filters = gradient->shape.dims[1];
    for (int i = 0; i < 2; i++)
        window->in[i] = attributes->integers[SGM__WINDOW_EXTENT + i];
    SGM_TRY(check_pooling(window));
    return check_gradient(window, gradient);
}

/* --- attributes from options --- */

/* Attributes that gradients need; they are read from the types of the values that are there while recording.
 */
void sgm__window_set_extent(sgm_attributes *attributes, const sgm_type *x)
{
    read_extent(x, attributes->integers + SGM__WINDOW_EXTENT);
}

void sgm__window_set_size(sgm_attributes *attributes, const sgm_type *weights)
{
    read_extent(weights, attributes->integers + SGM__WINDOW_SIZE);
}

/* Options have one entry for each axis that there is: (length) or (height, width), and 0 stands for the
 * default of 1. Attributes always have two, of which the height is 1 for data of one dimension. */
bool sgm__window_attributes(sgm_graph *graph, const char *name, sgm_value x,
                            const sgm_window_options *options, sgm_attributes *attributes)
{
    if (!sgm__can_record(graph, name, x))
        return false;
    sgm_window_options own;
    if (sgm__options_read(&own, sizeof own, options, name) != SGM_OK) {
        sgm_graph_fail(graph, sgm_last_status(), "%s", sgm_last_error());
        return false;
    }
    int32_t first = sgm_value_type(graph, x).shape.rank == 3 ? 1 : 0; /* the options' first entry */
    *attributes = (sgm_attributes){.integer_count = SGM__WINDOW_INTEGERS};
    int64_t *integers = attributes->integers;
    for (int32_t i = 0; i < 2; i++) {
        bool given = i >= first;
        integers[SGM__WINDOW_SIZE + i] = given ? own.size[i - first] : 1;
        integers[SGM__WINDOW_BEFORE + i] = given ? own.before[i - first] : 0;
        integers[SGM__WINDOW_AFTER + i] = given ? own.after[i - first] : 0;
        integers[SGM__WINDOW_DILATION + i] =
            given && own.dilation[i - first] != 0 ? own.dilation[i - first] : 1;
        integers[SGM__WINDOW_STRIDE + i] = given && own.stride[i - first] != 0 ? own.stride[i - first] : 1;
    }
    integers[SGM__WINDOW_GROUPS] = own.groups != 0 ? own.groups : 1;
    integers[SGM__WINDOW_FLAG] = own.exclude_padding;
    return true;
}
