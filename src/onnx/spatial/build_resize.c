/* Build functions of Resize and Upsample: each axis is resized by itself, as a choice of entries or as a
 * product with a matrix of weights.
 *
 * For each entry of the result `origin_of` computes the place in the data that it comes from, by one of
 * ONNX's coordinate transformations. Mode `nearest` gathers the entry next to that place; `linear` and
 * `cubic` weigh 2 or 4 neighbours, which is linear in the data: the weights of all entries form a constant
 * matrix (in, out) that multiplies the axis. Interpolation over several axes is the product of those over
 * each, so the axes follow one another.
 *
 * Scales and sizes must be known while the model is recorded. Called by import.c through operators.c. */
#include "onnx/nodes/onnx.h"

#include <math.h>

/* Elements of a matrix of weights, and entries of a resized axis. */
#define MAXIMUM_WEIGHTS ((int64_t)1 << 26)

/* coordinate_transformation_mode, in the order of the texts in read_modes. */
typedef enum placing {
    HALF_PIXEL,
    HALF_PIXEL_SYMMETRIC,
    PYTORCH_HALF_PIXEL,
    ALIGN_CORNERS,
    ASYMMETRIC,
    TF_HALF_PIXEL,
    TF_CROP
} placing;
/* nearest_mode, in the order of the texts in read_modes. */
typedef enum rounding { PREFER_FLOOR, PREFER_CEIL, FLOOR, CEIL } rounding;

/* The resizing of one axis from `in` to `out` entries by `scale`. `begin` and `end` bound the part that is
 * cropped (tf_crop_and_resize), as shares of the axis. */
typedef struct line {
    int64_t in, out;
    double scale, begin, end;
} line;

/* What the node asks for. `cubic_a` is the parameter of the cubic weights; `exclude` sets cubic weights of
 * neighbours outside the data to 0; `outside` is the value of results that lie outside
 * (tf_crop_and_resize). `smooth`: where the result is smaller, each entry weighs all entries that it covers
 * (antialias). */
typedef struct resizing {
    sgm__onnx_node *n;
    placing place;
    rounding round;
    bool nearest, cubic, exclude, smooth;
    double cubic_a, outside;
    line lines[SGM_MAX_RANK];
    int32_t rank;
} resizing;

/* The index of the attribute's text in a list that begins with the default; -1: it is none of them. */
static int choice(const sgm__onnx_node *n, const char *name, const char *const *texts, int count)
{
    for (int i = 0; i < count; i++)
        if (sgm__onnx_text_is(n, name, texts[0], texts[i]))
            return i;
    return -1;
}

/* The place in the data, in entries from 0, of entry x of the result. Computed in float32 as ONNX Runtime
 * and PyTorch do: a place that is half-way or nearly whole then falls to the same side as theirs. */
static double origin_of(const resizing *r, const line *l, int64_t x)
{
    float at = (float)x, last = (float)(l->in - 1), last_out = (float)(l->out - 1);
    float scale = (float)l->scale, begin = (float)l->begin, end = (float)l->end;
    switch (r->place) {
    case HALF_PIXEL:
        return (double)((at + 0.5f) / scale - 0.5f);
    case HALF_PIXEL_SYMMETRIC: { /* the same around the centre, where the size has lost a fraction */
        float lost = (float)l->out / (scale * (float)l->in);
        return (double)((float)l->in / 2 * (1 - lost) + (at + 0.5f) / scale - 0.5f);
    }
    case PYTORCH_HALF_PIXEL:
        return l->out > 1 ? (double)((at + 0.5f) / scale - 0.5f) : 0;
    case ALIGN_CORNERS:
        return l->out == 1 ? 0 : (double)(at * last / last_out);
    case ASYMMETRIC:
        return (double)(at / scale);
    case TF_HALF_PIXEL:
        return (double)((at + 0.5f) / scale);
    case TF_CROP:
        return l->out == 1 ? (double)((end + begin) * last / 2)
                           : (double)(begin * last + at * (end - begin) * last / last_out);
    }
    return 0;
}

/* Only tf_crop_and_resize has places outside that get a value of their own; else the nearest entry counts. A
 * place that is NaN, of a part whose ends are no numbers, is outside as well. */
static bool is_outside(const resizing *r, const line *l, double origin)
{
    return r->place == TF_CROP && !(origin >= 0 && origin <= (double)(l->in - 1));
}

/* A place that is whole, kept within the data. */
static int64_t within(double at, int64_t size)
{
    return at < 0 ? 0 : at > (double)(size - 1) ? size - 1 : (int64_t)at;
}

/* The entry next to a place: halves go down (round_prefer_floor) or up, or all places go down or up. */
static int64_t nearest_of(const resizing *r, const line *l, double origin)
{
    double at = r->round == PREFER_FLOOR  ? ceil(origin - 0.5)
                : r->round == PREFER_CEIL ? floor(origin + 0.5)
                : r->round == FLOOR       ? floor(origin)
                                          : ceil(origin);
    return within(at, l->in);
}

/* The weight of an entry at a distance: 1 - d, or of cubic convolution (Keys, 1981) (a + 2) d^3 - (a + 3) d^2
 * + 1 up to d = 1, and a d^3 - 5 a d^2 + 8 a d - 4 a up to 2; 0 beyond. */
static double weight_at(const resizing *r, double d)
{
    double a = r->cubic_a;
    if (!r->cubic)
        return d < 1 ? 1 - d : 0;
    if (d >= 2)
        return 0;
    return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

/* Adds the weights of one entry of the result to its column of the matrix; `step` is the distance of the
 * column's elements. Neighbours beyond an end are that end, so weights may add up in one element. Where the
 * result is smaller, a smooth one has wider weights: distances count less. Dividing by the sum compensates
 * for that and for excluded neighbours; otherwise the sum is 1. */
static void add_weights(const resizing *r, const line *l, double origin, double *column, int64_t step)
{
    double narrow = r->smooth && l->scale < 1 ? l->scale : 1, reach = (r->cubic ? 2 : 1) / narrow, sum = 0;
    origin = fmin(fmax(origin, -reach - 1), (double)l->in + reach); /* further away it is the same */
    int64_t first = (int64_t)ceil(origin - reach), last = (int64_t)floor(origin + reach);
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = first; i <= last; i++) {
            double at = (double)i;
            bool outside = at < 0 || at > (double)(l->in - 1);
            double weight = r->exclude && r->cubic && outside ? 0 : weight_at(r, fabs(at - origin) * narrow);
            if (pass == 0)
                sum += weight;
            else
                column[within(at, l->in) * step] += weight / sum;
        }
}

/* The last axis of x, (..., in), times the matrix (in, out), plus the values of results that lie outside,
 * whose columns are zero. Weights are computed in float64 and rounded to the type of x. */
static sgm_value weigh(const resizing *r, const line *l, sgm_value x)
{
    sgm_graph *g = r->n->graph;
    sgm_dtype dtype = sgm_value_type(g, x).dtype;
    if (l->in > MAXIMUM_WEIGHTS / l->out)
        return sgm__onnx_unsupported(r->n, "from %lld to %lld entries", (long long)l->in, (long long)l->out);
    double *weights = sgm__calloc((size_t)(l->in * l->out), sizeof *weights);
    double *outside = sgm__calloc((size_t)l->out, sizeof *outside);
    sgm_tensor *matrix = sgm_tensor_create(dtype, SGM__ONNX_SHAPE(l->in, l->out));
    sgm_tensor *more = sgm_tensor_create(dtype, SGM__ONNX_SHAPE(l->out));
    bool any = false, good = weights != NULL && outside != NULL && matrix != NULL && more != NULL;
    for (int64_t i = 0; i < l->out && good; i++) {
        double origin = origin_of(r, l, i);
        if (is_outside(r, l, origin)) {
            outside[i] = r->outside;
            any = true;
        } else {
            add_weights(r, l, origin, weights + i, l->out);
        }
    }
    good = good && sgm_tensor_write(matrix, weights, (size_t)(l->in * l->out)) == SGM_OK &&
           sgm_tensor_write(more, outside, (size_t)l->out) == SGM_OK;
    sgm__free(weights);
    sgm__free(outside);
    sgm_value y =
        good ? sgm_matmul(g, x, sgm__onnx_constant(g, sgm_tensor_retain(matrix))) : sgm__onnx_fail(g);
    if (any)
        y = sgm_add(g, y, sgm__onnx_constant(g, sgm_tensor_retain(more)));
    sgm_tensor_free(matrix);
    sgm_tensor_free(more);
    return y;
}

/* A gather along the axis with constant places. Results that lie outside are replaced. */
static sgm_value pick_nearest(const resizing *r, const line *l, sgm_value x, int32_t axis)
{
    sgm_graph *g = r->n->graph;
    sgm_shape along = {.rank = r->rank};
    for (int32_t i = 0; i < r->rank; i++)
        along.dims[i] = i == axis ? l->out : 1;
    sgm_tensor *places = sgm_tensor_create(SGM_INT64, SGM__ONNX_SHAPE(l->out));
    sgm_tensor *outside = places != NULL ? sgm_tensor_create(SGM_BOOL, &along) : NULL;
    bool any = false;
    for (int64_t i = 0; i < l->out && outside != NULL; i++) {
        double origin = origin_of(r, l, i);
        bool is_out = is_outside(r, l, origin);
        any |= is_out;
        ((bool *)sgm_tensor_data(outside))[i] = is_out;
        ((int64_t *)sgm_tensor_data(places))[i] = is_out ? 0 : nearest_of(r, l, origin);
    }
    sgm_value y = outside != NULL ? sgm_gather(g, x, sgm__onnx_constant(g, sgm_tensor_retain(places)), axis)
                                  : sgm__onnx_fail(g);
    if (any)
        y = sgm_select(g, sgm__onnx_constant(g, sgm_tensor_retain(outside)),
                       sgm_filled_like(g, y, r->outside), y);
    sgm_tensor_free(places);
    sgm_tensor_free(outside);
    return y;
}

/* Resizes all axes. An axis that stays as it is is left out, which is the case for batch and channels;
 * cropping may move entries even then. A product needs the axis last and a matrix, hence the exchange of
 * axes and the row for rank 1. */
static sgm_value resize(resizing *r)
{
    sgm_graph *g = r->n->graph;
    sgm_value x = r->n->inputs[0];
    for (int32_t i = 0; i < r->rank && g->status == SGM_OK; i++) {
        const line *l = &r->lines[i];
        if (l->in < 1 || l->out < 1 || !(l->scale > 0) || !isfinite(l->scale))
            return sgm_graph_fail(g, SGM_ERROR_SHAPE, "axis %d from %lld to %lld entries", i,
                                  (long long)l->in, (long long)l->out);
        if (l->in == l->out && l->scale == 1 && r->place != TF_CROP)
            continue;
        if (r->nearest) {
            x = pick_nearest(r, l, x, i);
            continue;
        }
        sgm_value last = sgm__onnx_swap_last(g, x, i);
        if (sgm_value_type(g, last).shape.rank == 1) {
            sgm_value row = sgm_reshape(g, last, SGM__ONNX_SHAPE(1, l->in));
            x = sgm_reshape(g, weigh(r, l, row), SGM__ONNX_SHAPE(l->out));
        } else {
            x = sgm__onnx_swap_last(g, weigh(r, l, last), i);
        }
    }
    return x.index == r->n->inputs[0].index ? sgm_copy(g, x) : x;
}

/* --- what the node says --- */

/* Reads `count` numbers from an input that is known; false if it is left out or empty (Resize has either
 * scales or sizes, the other is empty), and on failure. */
static bool read_numbers(sgm__onnx_node *n, int32_t input, double *list, int32_t count)
{
    const sgm_tensor *tensor = sgm_value_exists(sgm__onnx_in(n, input)) ? sgm__onnx_known(n, input) : NULL;
    int64_t have = tensor != NULL ? sgm_shape_elements(sgm_tensor_shape(tensor)) : 0;
    if (have == 0)
        return false;
    if (have != count || sgm_tensor_read(tensor, list, (size_t)count) != SGM_OK)
        sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "input %d has %lld numbers, expected %d", input,
                       (long long)have, count);
    return n->graph->status == SGM_OK;
}

/* The size is floor(in * scale). One that is too large becomes 0, which `resize` refuses with a message. */
static void set_scale(line *l, double scale)
{
    double size = floor((double)l->in * scale);
    l->scale = scale;
    l->out = size >= 0 && size <= (double)MAXIMUM_WEIGHTS ? (int64_t)size : 0;
}

/* What Resize and Upsample have in common: the mode, and lines that change nothing. */
static bool begin(sgm__onnx_node *n, resizing *r)
{
    sgm_shape shape = sgm__onnx_type(n, n->inputs[0]).shape;
    *r = (resizing){.n = n, .rank = shape.rank};
    for (int32_t i = 0; i < shape.rank; i++)
        r->lines[i] = (line){.in = shape.dims[i], .out = shape.dims[i], .scale = 1, .end = 1};
    r->nearest = sgm__onnx_text_is(n, "mode", "nearest", "nearest");
    r->cubic = sgm__onnx_text_is(n, "mode", "nearest", "cubic");
    bool linear = sgm__onnx_text_is(n, "mode", "nearest", "linear") ||
                  sgm__onnx_text_is(n, "mode", "nearest", "bilinear");
    if (!r->nearest && !r->cubic && !linear)
        sgm__onnx_unsupported(n, "the mode is none of nearest, linear and cubic");
    return n->graph->status == SGM_OK;
}

/* Upsample, and Resize of opset 10: places are asymmetric (x / scale), and the nearest entry is the one
 * before. The scales are an attribute up to opset 8, an input since. */
sgm_value sgm__onnx_upsample(sgm__onnx_node *n)
{
    resizing r;
    double scales[SGM_MAX_RANK] = {0};
    const Onnx__AttributeProto *given = sgm__onnx_attribute(n, "scales");
    if (!begin(n, &r))
        return (sgm_value){-1};
    if (given != NULL && given->n_floats != (size_t)r.rank)
        return sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "'scales' has %zu numbers, expected %d",
                              given->n_floats, r.rank);
    if (given == NULL && !read_numbers(n, 1, scales, r.rank))
        return sgm_graph_fail(n->graph, SGM_ERROR_FORMAT, "its scales are missing");
    r.place = ASYMMETRIC;
    r.round = FLOOR;
    for (int32_t i = 0; i < r.rank; i++)
        set_scale(&r.lines[i], given != NULL ? (double)given->floats[i] : scales[i]);
    return resize(&r);
}

/* The attributes of Resize since opset 11. The defaults are those of ONNX. */
static bool read_modes(resizing *r)
{
    static const char *const places[] = {"half_pixel",        "half_pixel_symmetric", "pytorch_half_pixel",
                                         "align_corners",     "asymmetric",           "tf_half_pixel_for_nn",
                                         "tf_crop_and_resize"};
    static const char *const rounds[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
    sgm__onnx_node *n = r->n;
    int place = choice(n, "coordinate_transformation_mode", places, 7);
    int round = choice(n, "nearest_mode", rounds, 4);
    if (place < 0 || round < 0) {
        sgm__onnx_unsupported(n, "a mode of places or of rounding that is unknown");
        return false;
    }
    r->smooth = sgm__onnx_integer(n, "antialias", 0) != 0;
    r->place = (placing)place;
    r->round = (rounding)round;
    r->exclude = sgm__onnx_integer(n, "exclude_outside", 0) != 0;
    r->cubic_a = sgm__onnx_number(n, "cubic_coeff_a", -0.75);
    r->outside = sgm__onnx_number(n, "extrapolation_value", 0);
    return true;
}

/* With sizes the scale is computed from the whole sizes. Where the ratio of the axes is kept, the smallest or
 * the largest scale is that of all, and sizes are rounded, halves up. */
static void set_sizes(const resizing *r, line *const *lines, const double *sizes, int32_t count)
{
    bool at_most = sgm__onnx_text_is(r->n, "keep_aspect_ratio_policy", "stretch", "not_larger");
    bool at_least = sgm__onnx_text_is(r->n, "keep_aspect_ratio_policy", "stretch", "not_smaller");
    double scale = at_most ? INFINITY : 0;
    if (!at_most && !at_least && !sgm__onnx_text_is(r->n, "keep_aspect_ratio_policy", "stretch", "stretch"))
        sgm__onnx_unsupported(r->n,
                              "'keep_aspect_ratio_policy' is none of stretch, not_larger and not_smaller");
    for (int32_t i = 0; i < count; i++) {
        double own = sizes[i] / (double)lines[i]->in;
        scale = at_most ? fmin(scale, own) : fmax(scale, own);
    }
    for (int32_t i = 0; i < count; i++) {
        double size = at_most || at_least ? floor((double)lines[i]->in * scale + 0.5) : sizes[i];
        lines[i]->out = size >= 1 && size <= (double)MAXIMUM_WEIGHTS ? (int64_t)size : 0;
        lines[i]->scale = at_most || at_least ? scale : (double)lines[i]->out / (double)lines[i]->in;
    }
}

/* The lines of the axes that are resized: all, or those of the attribute `axes`. Returns how many. */
static int32_t choose_lines(resizing *r, line **lines)
{
    int64_t axes[SGM_MAX_RANK];
    int32_t count = sgm__onnx_integers(r->n, "axes", axes, SGM_MAX_RANK);
    for (int32_t i = 0; i < (count < 0 ? r->rank : count); i++) {
        int32_t axis = count < 0 ? i : sgm__onnx_axis(r->n, axes[i], r->rank);
        lines[i] = &r->lines[axis < 0 ? 0 : axis];
    }
    return count < 0 ? r->rank : count;
}

/* Inputs: x, the cropped part (all begins, then all ends), scales, sizes. */
sgm_value sgm__onnx_resize(sgm__onnx_node *n)
{
    resizing r;
    line *lines[SGM_MAX_RANK];
    double numbers[2 * SGM_MAX_RANK] = {0};
    if (n->opset < 11)
        return sgm__onnx_upsample(n);
    if (!begin(n, &r) || !read_modes(&r))
        return (sgm_value){-1};
    int32_t count = choose_lines(&r, lines);
    if (r.place == TF_CROP && read_numbers(n, 1, numbers, 2 * count))
        for (int32_t i = 0; i < count; i++) {
            lines[i]->begin = numbers[i];
            lines[i]->end = numbers[i + count];
        }
    if (read_numbers(n, 2, numbers, count)) {
        sgm__onnx_attribute(n, "keep_aspect_ratio_policy"); /* concerns sizes only */
        for (int32_t i = 0; i < count; i++)
            set_scale(lines[i], numbers[i]);
        return resize(&r);
    }
    if (!read_numbers(n, 3, numbers, count))
        return sgm_graph_fail(n->graph, SGM_ERROR_FORMAT, "scales or sizes are needed");
    set_sizes(&r, lines, numbers, count);
    return n->graph->status == SGM_OK ? resize(&r) : (sgm_value){-1};
}
