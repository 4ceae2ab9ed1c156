/* Build function of GridSample: a picture read at places that a grid lists.
 *
 * The operation is known here only, and every handler runs it by its `forward`; it has no gradient. Places
 * are computed in float32, as ONNX's reference does. */
#include "onnx/nodes/onnx.h"

#include <math.h>

#define MAXIMUM_AXES 3

/* In the order of the texts in sgm__onnx_grid_sample; of modes each has two. */
typedef enum mode { LINEAR, NEAREST, CUBIC } mode;
typedef enum padding { ZEROS, BORDER, REFLECTION } padding;

/* One axis of the picture: its size and the ends at which places are reflected. */
typedef struct axis {
    int64_t size;
    double low, high;
} axis;

/* A place between -1 and 1, in entries. */
static double place_of(float at, const axis *a, bool corners)
{
    float size = (float)a->size;
    return (double)(corners ? (at + 1) / 2 * (size - 1) : ((at + 1) * size - 1) / 2);
}

static double reflect(double x, const axis *a)
{
    double range = a->high - a->low, beyond = x < a->low ? a->low - x : x - a->high;
    if (!(beyond > 0))
        return x;
    if (!(range > 0))
        return a->low;
    double times = floor(beyond / range), rest = beyond - times * range;
    bool from_low = (x < a->low) == (fmod(times, 2) == 0);
    return from_low ? a->low + rest : a->high - rest;
}

/* A place outside goes to the border, or is reflected. */
static double within(double x, const axis *a, padding pad)
{
    if (pad == BORDER)
        return fmin(fmax(x, 0), (double)(a->size - 1));
    return pad == REFLECTION ? reflect(x, a) : x;
}

/* The entry of a whole place; -1: it is outside, where all is 0. */
static int64_t entry_at(double x, const axis *a, padding pad)
{
    x = trunc(within(x, a, pad));
    return x >= 0 && x < (double)a->size ? (int64_t)x : -1;
}

/* The weights of the entries around a place, `t` behind the first of them (cubic: the second); returns how
 * many. Cubic convolution has the parameter -3/4, as PyTorch has it. */
static int weights_of(mode how, double t, double weights[4])
{
    const double a = -0.75;
    weights[0] = how == LINEAR ? 1 - t : 1;
    weights[1] = t;
    for (int i = 0; i < 4 && how == CUBIC; i++) {
        double d = fabs(t + 1 - i);
        weights[i] = d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
    }
    return how == LINEAR ? 2 : how == NEAREST ? 1 : 4;
}

/* The sum of the entries around a place, weighted along each axis in turn. `first` is where the channel
 * begins. */
static double sample(const sgm_array *x, int64_t first, const axis *axes, int count, const double *places,
                     mode how, padding pad)
{
    double weights[4] = {0}, base = how == NEAREST ? rint(places[0]) : floor(places[0]), sum = 0;
    int taps = weights_of(how, places[0] - base, weights);
    int64_t inner = 1;
    for (int i = 1; i < count; i++)
        inner *= axes[i].size;
    for (int i = 0; i < taps; i++) {
        int64_t entry = entry_at(base + i - (how == CUBIC), axes, pad);
        if (entry < 0)
            continue;
        int64_t at = first + entry * inner;
        sum += weights[i] * (count == 1 ? sgm_array_load(x, at)
                                        : sample(x, at, axes + 1, count - 1, places + 1, how, pad));
    }
    return sum;
}

/* Integers: mode, padding, whether -1 and 1 are the centres of the first and last entry. */
static sgm_status forward(const sgm_kernel_call *call)
{
    const sgm_array *x = &call->inputs[0], *grid = &call->inputs[1];
    const int64_t *given = call->attributes->integers;
    int count = x->shape.rank - 2;
    int64_t channels = x->shape.dims[1], size = 1, points = 1;
    axis axes[MAXIMUM_AXES] = {0};
    for (int i = 0; i < count; i++) {
        bool corners = given[2] != 0;
        axes[i] = (axis){x->shape.dims[i + 2], corners ? 0 : -0.5,
                         (double)x->shape.dims[i + 2] - (corners ? 1 : 0.5)};
        size *= axes[i].size;
        points *= grid->shape.dims[i + 1];
    }
    for (int64_t i = 0; i < x->shape.dims[0] * points; i++) {
        double places[MAXIMUM_AXES] = {0};
        for (int k = 0; k < count; k++) { /* the grid has the last axis first */
            double at = sgm_array_load(grid, i * count + count - 1 - k);
            places[k] = place_of((float)at, &axes[k], given[2] != 0);
            places[k] = given[0] == NEAREST ? rint(places[k]) : places[k];
            if (given[0] != CUBIC) /* of which each entry is taken from within by itself, as PyTorch does */
                places[k] = within(places[k], &axes[k], (padding)given[1]);
        }
        for (int64_t c = 0; c < channels; c++) {
            int64_t row = i / points * channels + c;
            double y = sample(x, row * size, axes, count, places, (mode)given[0], (padding)given[1]);
            sgm_array_store(&call->output, row * points + i % points, y);
        }
    }
    return SGM_OK;
}

/* (batch, channels, sizes...) and (batch, points..., axes) to (batch, channels, points...). */
static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count, (void)attributes;
    const sgm_shape *x = &inputs[0].shape, *grid = &inputs[1].shape;
    if (x->rank < 3 || x->rank > MAXIMUM_AXES + 2 || grid->rank != x->rank ||
        grid->dims[grid->rank - 1] != x->rank - 2 || grid->dims[0] != x->dims[0])
        return sgm_fail(SGM_ERROR_SHAPE, "a grid of places for 1 to %d axes is needed, one for each example",
                        MAXIMUM_AXES);
    *result = inputs[0];
    for (int32_t i = 2; i < x->rank; i++)
        result->shape.dims[i] = grid->dims[i - 1];
    return SGM_OK;
}

static const sgm_op op_sample = {.api = SGM_OP_API,
                                 .name = "onnx_grid_sample",
                                 .doc = "a picture read at places that a grid lists",
                                 .min_inputs = 2,
                                 .max_inputs = 2,
                                 .infer = infer,
                                 .forward = forward};

/* The place of an attribute's text in a list of `count`; -1: it is not in it. */
static int choice(const sgm__onnx_node *n, const char *name, const char *otherwise, const char *const *texts,
                  int count)
{
    for (int i = 0; i < count; i++)
        if (sgm__onnx_text_is(n, name, otherwise, texts[i]))
            return i;
    return -1;
}

sgm_value sgm__onnx_grid_sample(sgm__onnx_node *n)
{
    static const char *const modes[] = {"linear", "nearest", "cubic", "bilinear", "nearest", "bicubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    int how = choice(n, "mode", "linear", modes, 6), pad = choice(n, "padding_mode", "zeros", paddings, 3);
    if (how < 0 || pad < 0)
        return sgm__onnx_unsupported(n, "an unknown 'mode' or 'padding_mode'");
    const sgm_attributes attributes = {
        .integer_count = 3, .integers = {how % 3, pad, sgm__onnx_integer(n, "align_corners", 0) != 0}};
    return sgm_record(n->graph, &op_sample, n->inputs, 2, &attributes);
}
