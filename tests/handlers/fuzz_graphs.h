/* Random graphs that are valid, small, and whose values stay within about -1 to 1, so that handlers may be
 * compared closely. The same seed gives the same graph, in any type. */
#ifndef SIGMA_TEST_FUZZ_GRAPHS_H
#define SIGMA_TEST_FUZZ_GRAPHS_H

#include "base/base.h"
#include "handlers/graphs.h"

#define FUZZ_VALUES 160
#define FUZZ_ELEMENTS 256
#define FUZZ_STATES 4

typedef struct fuzz {
    sgm__random random;
    sgm_graph *graph;
    sgm_dtype dtype;
    bool smooth; /* nothing that a rounding error could make jump */
    sgm_value pool[FUZZ_VALUES];
    int count;
    sgm_value states[FUZZ_STATES];
} fuzz;

static int64_t fuzz_below(fuzz *f, int64_t bound)
{
    return (int64_t)sgm__random_below(&f->random, (uint64_t)bound);
}

static bool fuzz_chance(fuzz *f, int64_t percent)
{
    return fuzz_below(f, 100) < percent;
}

static sgm_shape fuzz_shape_of(const fuzz *f, sgm_value value)
{
    return sgm_value_type(f->graph, value).shape;
}

static int64_t fuzz_elements(const fuzz *f, sgm_value value)
{
    sgm_shape shape = fuzz_shape_of(f, value);
    return sgm_shape_elements(&shape);
}

/* New values are more likely: chains get long. */
static sgm_value fuzz_pick(fuzz *f)
{
    int64_t recent = f->count < 6 ? f->count : 6;
    return fuzz_chance(f, 50) ? f->pool[f->count - 1 - fuzz_below(f, recent)]
                              : f->pool[fuzz_below(f, f->count)];
}

static void fuzz_add(fuzz *f, sgm_value value)
{
    if (sgm_value_exists(value) && f->count < FUZZ_VALUES && fuzz_elements(f, value) <= FUZZ_ELEMENTS)
        f->pool[f->count++] = value;
}

static sgm_value fuzz_scale(fuzz *f, sgm_value value, double factor)
{
    return sgm_multiply(f->graph, value, sgm_number(f->graph, factor));
}

static sgm_shape fuzz_shape(fuzz *f)
{
    sgm_shape shape = {.rank = (int32_t)fuzz_below(f, 4)};
    for (int32_t i = 0; i < shape.rank; i++)
        shape.dims[i] = fuzz_chance(f, 1) ? 0 : 1 + fuzz_below(f, 4);
    return shape;
}

static sgm_tensor *fuzz_tensor(fuzz *f, sgm_dtype dtype, const sgm_shape *shape)
{
    double values[FUZZ_ELEMENTS];
    int64_t count = sgm_shape_elements(shape);
    CHECK(count <= FUZZ_ELEMENTS);
    for (int64_t i = 0; i < count; i++) /* exact in float32: the same graph in all types */
        values[i] = (double)fuzz_below(f, 2001) / 1024 - 1000.0 / 1024;
    return tensor_of(dtype, shape, values);
}

static sgm_value fuzz_constant(fuzz *f, const sgm_shape *shape)
{
    sgm_tensor *tensor = fuzz_tensor(f, f->dtype, shape);
    sgm_value value = sgm_constant(f->graph, tensor);
    sgm_tensor_free(tensor);
    return value;
}

/* A value that broadcasts with `a`. */
static sgm_value fuzz_partner(fuzz *f, sgm_value a)
{
    sgm_shape shape = fuzz_shape_of(f, a), wide;
    for (int tries = 0; tries < 8; tries++) {
        sgm_value b = fuzz_pick(f);
        sgm_shape other = fuzz_shape_of(f, b);
        if (sgm_shape_broadcast(&shape, &other, &wide) == SGM_OK && sgm_shape_elements(&wide) <= 256)
            return b;
    }
    return fuzz_constant(f, SCALAR);
}

static void fuzz_unary(fuzz *f)
{
    static sgm_value (*const smooth[])(sgm_graph *, sgm_value) = {
        sgm_negate, sgm_tanh, sgm_sin,  sgm_cos,           sgm_sigmoid,  sgm_square,
        sgm_erf,    sgm_copy, sgm_atan, sgm_stop_gradient, sgm_identity, sgm_silu};
    static sgm_value (*const others[])(sgm_graph *, sgm_value) = {sgm_sign, sgm_floor, sgm_relu,
                                                                  sgm_absolute};
    sgm_value x = fuzz_pick(f);
    if (!f->smooth && fuzz_chance(f, 25))
        fuzz_add(f, others[fuzz_below(f, 4)](f->graph, x));
    else if (fuzz_chance(f, 20))
        fuzz_add(f, fuzz_scale(f, sgm_exp(f->graph, x), 0.25));
    else
        fuzz_add(f, smooth[fuzz_below(f, 12)](f->graph, x));
}

static void fuzz_binary(fuzz *f)
{
    sgm_value a = fuzz_pick(f), b = fuzz_partner(f, a), one = sgm_number(f->graph, 1);
    sgm_graph *graph = f->graph;
    int64_t choice = fuzz_below(f, f->smooth ? 5 : 8);
    if (fuzz_chance(f, 50)) {
        sgm_value swap = a;
        a = b;
        b = swap;
    }
    if (choice == 0)
        fuzz_add(f, fuzz_scale(f, sgm_add(graph, a, b), 0.5));
    else if (choice == 1)
        fuzz_add(f, fuzz_scale(f, sgm_subtract(graph, a, b), 0.5));
    else if (choice <= 3)
        fuzz_add(f, sgm_multiply(graph, fuzz_chance(f, 10) ? one : a, b));
    else if (choice == 4)
        fuzz_add(f, sgm_divide(graph, a, sgm_add(graph, sgm_square(graph, b), one)));
    else if (choice == 5)
        fuzz_add(f, sgm_maximum(graph, a, b));
    else if (choice == 6)
        fuzz_add(f, sgm_select(graph, sgm_less(graph, a, b), a, sgm_negate(graph, b)));
    else
        fuzz_add(f, sgm_cast(graph, sgm_cast(graph, sgm_minimum(graph, a, b), SGM_BFLOAT16), f->dtype));
}

static int32_t fuzz_axis(fuzz *f, const sgm_shape *shape)
{
    return (int32_t)fuzz_below(f, shape->rank);
}

static void fuzz_reduce(fuzz *f)
{
    sgm_value x = fuzz_pick(f);
    sgm_shape shape = fuzz_shape_of(f, x);
    if (sgm_shape_elements(&shape) == 0)
        return;
    int32_t axes[2] = {0, 0}, count = 0;
    if (shape.rank > 0)
        axes[count++] = fuzz_axis(f, &shape);
    if (shape.rank > 1 && fuzz_chance(f, 40))
        axes[count++] = (axes[0] + 1) % shape.rank;
    if (fuzz_chance(f, 20))
        count = 0;
    bool keep = fuzz_chance(f, 50);
    int64_t choice = fuzz_below(f, f->smooth ? 3 : 5);
    if (choice == 0)
        fuzz_add(f, fuzz_scale(f, sgm_reduce_sum(f->graph, x, axes, count, keep),
                               1 / (double)sgm_shape_elements(&shape)));
    else if (choice == 1)
        fuzz_add(f, sgm_reduce_mean(f->graph, x, axes, count, keep));
    else if (choice == 2 && shape.rank > 0)
        fuzz_add(f, fuzz_scale(f, sgm_cumulative_sum(f->graph, x, axes[0], keep),
                               1 / (double)shape.dims[axes[0]]));
    else if (choice == 3)
        fuzz_add(f, sgm_reduce_max(f->graph, x, axes, count, keep));
    else if (choice == 4)
        fuzz_add(f, sgm_reduce_min(f->graph, x, axes, count, keep));
}

static void fuzz_softmax(fuzz *f)
{
    sgm_value x = fuzz_pick(f);
    sgm_shape shape = fuzz_shape_of(f, x);
    if (shape.rank == 0 || shape.dims[shape.rank - 1] == 0)
        return;
    int64_t choice = fuzz_below(f, 3);
    if (choice == 0)
        fuzz_add(f, sgm_softmax(f->graph, x));
    else if (choice == 1)
        fuzz_add(f, fuzz_scale(f, sgm_log_softmax(f->graph, x), 0.25));
    else
        fuzz_add(f,
                 sgm_tanh(f->graph, sgm_softmax_cross_entropy_values(f->graph, x, sgm_square(f->graph, x))));
}

/* --- movement --- */

static sgm_value fuzz_reshape(fuzz *f, sgm_value x)
{
    sgm_shape old = fuzz_shape_of(f, x), shape = {0};
    int64_t rest = sgm_shape_elements(&old);
    if (rest == 0)
        return x;
    for (int tries = 0; rest > 1 && tries < 4; tries++) {
        int64_t factor = 2 + fuzz_below(f, 3);
        if (rest % factor != 0)
            continue;
        shape.dims[shape.rank++] = factor;
        rest /= factor;
    }
    if (fuzz_chance(f, 30))
        shape.dims[shape.rank++] = 1;
    if (rest > 1)
        shape.dims[shape.rank++] = rest;
    return sgm_reshape(f->graph, x, &shape);
}

static sgm_value fuzz_broadcast(fuzz *f, sgm_value x)
{
    sgm_shape shape = fuzz_shape_of(f, x), wide = {0};
    if (shape.rank < 4 && fuzz_chance(f, 50))
        wide.dims[wide.rank++] = 1 + fuzz_below(f, 3);
    for (int32_t i = 0; i < shape.rank; i++)
        wide.dims[wide.rank++] = shape.dims[i] == 1 ? 1 + fuzz_below(f, 3) : shape.dims[i];
    return sgm_shape_elements(&wide) <= FUZZ_ELEMENTS ? sgm_broadcast(f->graph, x, &wide) : x;
}

static sgm_value fuzz_permute(fuzz *f, sgm_value x)
{
    sgm_shape shape = fuzz_shape_of(f, x);
    int32_t axes[SGM_MAX_RANK];
    for (int32_t i = 0; i < shape.rank; i++) {
        int32_t k = (int32_t)fuzz_below(f, i + 1);
        axes[i] = axes[k];
        axes[k] = i;
    }
    return sgm_permute(f->graph, x, axes);
}

static sgm_value fuzz_slice(fuzz *f, sgm_value x, int32_t axis)
{
    int64_t size = fuzz_shape_of(f, x).dims[axis];
    int64_t start = size > 0 ? fuzz_below(f, size) : 0;
    int64_t stop = fuzz_chance(f, 2) ? start : size > 0 ? start + 1 + fuzz_below(f, size - start) : 0;
    return sgm_slice(f->graph, x, axis, start, stop, 1 + fuzz_below(f, 2));
}

static sgm_value fuzz_gather(fuzz *f, sgm_value x, int32_t axis)
{
    int64_t size = fuzz_shape_of(f, x).dims[axis], indices[3];
    if (size == 0)
        return x;
    for (int i = 0; i < 3; i++)
        indices[i] = fuzz_below(f, size);
    sgm_tensor *tensor = sgm_tensor_create_from(SGM_INT64, DIMS(3), indices);
    sgm_value at = sgm_constant(f->graph, tensor);
    sgm_tensor_free(tensor);
    return sgm_gather(f->graph, x, at, axis);
}

static sgm_value fuzz_view(fuzz *f, sgm_value x)
{
    sgm_shape shape = fuzz_shape_of(f, x);
    int64_t choice = fuzz_below(f, 6);
    if (choice == 0)
        return fuzz_reshape(f, x);
    if (choice == 1)
        return fuzz_broadcast(f, x);
    if (shape.rank == 0)
        return x;
    if (choice == 2)
        return fuzz_permute(f, x);
    return choice <= 4 ? fuzz_slice(f, x, fuzz_axis(f, &shape)) : sgm_flip(f->graph, x, fuzz_axis(f, &shape));
}

static void fuzz_move(fuzz *f)
{
    sgm_value x = fuzz_pick(f);
    do
        x = fuzz_view(f, x);
    while (fuzz_chance(f, 30));
    sgm_shape shape = fuzz_shape_of(f, x);
    if (shape.rank > 0 && fuzz_chance(f, 15))
        x = sgm_pad(f->graph, x, fuzz_axis(f, &shape), fuzz_below(f, 2), fuzz_below(f, 2), fuzz_below(f, 2));
    else if (shape.rank > 0 && fuzz_chance(f, 15))
        x = fuzz_gather(f, x, fuzz_axis(f, &shape));
    else if (shape.rank > 0 && fuzz_chance(f, 20))
        x = sgm_concatenate(f->graph, (sgm_value[]){x, sgm_negate(f->graph, x), fuzz_view(f, x)},
                            fuzz_chance(f, 50) ? 1 : 2, fuzz_axis(f, &shape));
    fuzz_add(f, x);
}

static void fuzz_matmul(fuzz *f)
{
    sgm_value a = fuzz_pick(f);
    sgm_shape shape = fuzz_shape_of(f, a);
    if (shape.rank < 2)
        return;
    int64_t inner = shape.dims[shape.rank - 1];
    sgm_value b = fuzz_chance(f, 40)
                      ? sgm_transpose(f->graph, a)
                      : fuzz_constant(f, &(sgm_shape){.rank = 2, .dims = {inner, 1 + fuzz_below(f, 4)}});
    for (int tries = 0; tries < 6; tries++) {
        sgm_value other = fuzz_pick(f);
        sgm_shape fits = fuzz_shape_of(f, other);
        if (fits.rank == 2 && fits.dims[0] == inner)
            b = other;
    }
    fuzz_add(f, fuzz_scale(f, sgm_matmul(f->graph, a, b), 1 / (double)(inner > 0 ? inner : 1)));
}

/* A value as data of one or two dimensions, under windows that fit. */
static void fuzz_windows(fuzz *f)
{
    sgm_value x = fuzz_pick(f), y = {-1};
    sgm_shape shape = fuzz_shape_of(f, x);
    if (shape.rank < 2 || shape.rank > 4 || sgm_shape_elements(&shape) == 0)
        return;
    if (shape.rank == 2)
        x = sgm_reshape(f->graph, x, &(sgm_shape){.rank = 3, .dims = {shape.dims[0], 1, shape.dims[1]}});
    shape = fuzz_shape_of(f, x);
    sgm_window_options window = {.struct_size = sizeof window};
    sgm_shape kernel = {.rank = shape.rank, .dims = {1 + fuzz_below(f, 3), shape.dims[1]}};
    for (int32_t i = 0; i + 2 < shape.rank; i++) {
        window.size[i] = kernel.dims[2 + i] =
            1 + fuzz_below(f, shape.dims[2 + i] < 3 ? shape.dims[2 + i] : 3);
        window.stride[i] = 1 + fuzz_below(f, 2);
        window.before[i] = window.size[i] > 1 ? fuzz_below(f, 2) : 0;
        window.after[i] = window.size[i] > 1 ? fuzz_below(f, 2) : 0;
    }
    window.exclude_padding = fuzz_chance(f, 50);
    int64_t choice = fuzz_below(f, f->smooth ? 2 : 3), terms = sgm_shape_elements(&kernel) / kernel.dims[0];
    if (choice == 0)
        y = fuzz_scale(f, sgm_convolution(f->graph, x, fuzz_constant(f, &kernel), (sgm_value){-1}, &window),
                       1 / (double)terms);
    else
        y = choice == 1 ? sgm_average_pooling(f->graph, x, &window) : sgm_max_pooling(f->graph, x, &window);
    fuzz_add(f, y);
}

/* Parts that are cut out, changed and put together, as gates are: rows and columns of lengths that a handler
 * may write in place; a part, or a run of parts, may be used elsewhere too. */
static void fuzz_parts(fuzz *f)
{
    sgm_value parts[4], x = fuzz_constant(f, DIMS(2, 96));
    int32_t axis = fuzz_chance(f, 70), count = 2 + (int32_t)fuzz_below(f, 2);
    for (int32_t i = 0; i < count; i++) {
        sgm_value cut = sgm_slice(f->graph, x, 1, 32 * i, 32 * (i + 1), 1);
        parts[i] = fuzz_chance(f, 50) ? sgm_tanh(f->graph, cut) : sgm_multiply(f->graph, cut, cut);
        if (i > 0 && fuzz_chance(f, 50))
            parts[i] = sgm_multiply(f->graph, parts[i], parts[i - 1]);
        if (fuzz_chance(f, 30))
            fuzz_add(f, parts[i]);
    }
    if (fuzz_chance(f, 10))
        parts[0] = parts[1];
    sgm_value whole = sgm_concatenate(f->graph, parts, count, axis);
    fuzz_add(f, whole);
    if (fuzz_chance(f, 40))
        fuzz_add(f, sgm_concatenate(f->graph, parts + fuzz_below(f, 2), count - 1, axis));
    if (fuzz_chance(f, 40))
        fuzz_add(f, sgm_sin(f->graph, sgm_slice(f->graph, whole, 1, 8, 24, 1)));
}

/* A sum of products, some of them of transposed factors, and of something else. */
static void fuzz_products(fuzz *f)
{
    sgm_value a = fuzz_constant(f, DIMS(8, 5)), b = fuzz_constant(f, DIMS(8, 6)), sum = {-1}, term;
    bool transposed = fuzz_chance(f, 60);
    if (fuzz_chance(f, 50))
        a = sgm_tanh(f->graph, a);
    for (int64_t count = 2 + fuzz_below(f, 3), i = 0; i < count; i++) {
        sgm_value left = sgm_slice(f->graph, a, 0, 2 * i, 2 * i + 2, 1);
        sgm_value right = sgm_slice(f->graph, b, 0, 2 * i, 2 * i + 2, 1);
        left = transposed || fuzz_chance(f, 80) ? sgm_transpose(f->graph, left)
                                                : sgm_reshape(f->graph, left, DIMS(5, 2));
        term = sgm_matmul(f->graph, left, right);
        if (fuzz_chance(f, 20))
            term = fuzz_scale(f, term, 0.5);
        if (fuzz_chance(f, 20))
            fuzz_add(f, fuzz_scale(f, term, 0.5));
        sum = sgm_value_exists(sum) ? sgm_add(f->graph, sum, term) : term;
    }
    fuzz_add(f, fuzz_scale(f, sum, 0.125));
}

/* A sum of parts among zeros, which may overlap. */
static void fuzz_padded(fuzz *f)
{
    sgm_value x = fuzz_constant(f, DIMS(3, 4)), sum = {-1};
    for (int64_t count = 2 + fuzz_below(f, 3), i = 0; i < count; i++) {
        int32_t axis = fuzz_chance(f, 20);
        int64_t before = fuzz_chance(f, 70) ? 2 * i : fuzz_below(f, 6);
        sgm_value part = sgm_slice(f->graph, x, axis, i % 2, i % 2 + 2, 1);
        part = sgm_pad(f->graph, part, axis, before, 6 - before, fuzz_chance(f, 10));
        sgm_shape shape = fuzz_shape_of(f, part), old = shape;
        if (sgm_value_exists(sum))
            old = fuzz_shape_of(f, sum);
        if (sgm_shape_equal(&shape, &old))
            sum = sgm_value_exists(sum) ? sgm_add(f->graph, sum, part) : part;
    }
    fuzz_add(f, fuzz_scale(f, sum, 0.25));
}

static void fuzz_gradients(fuzz *f)
{
    sgm_value with_respect_to[3], gradients[3];
    sgm_value cost = sgm_sum(f->graph, fuzz_pick(f));
    for (int i = 0; i < 3; i++)
        with_respect_to[i] = i == 0 ? f->states[fuzz_below(f, FUZZ_STATES)] : fuzz_pick(f);
    CHECK_OK(sgm_gradients(f->graph, cost, with_respect_to, 3, gradients));
    for (int i = 0; i < 3; i++)
        fuzz_add(f, sgm_tanh(f->graph, fuzz_scale(f, gradients[i], 0.125)));
}

/* --- ends --- */

/* A value to assign: one of the pool, another state, or a view of the state itself. */
static sgm_value fuzz_new_state(fuzz *f, sgm_value state)
{
    sgm_shape shape = fuzz_shape_of(f, state);
    int64_t choice = fuzz_below(f, 10);
    if (choice == 0 && shape.rank > 0)
        return sgm_flip(f->graph, state, fuzz_axis(f, &shape));
    if (choice == 1 && shape.rank == 2 && shape.dims[0] == shape.dims[1])
        return sgm_transpose(f->graph, state);
    for (int tries = 0; tries < 40; tries++) {
        sgm_value value = choice <= 4 && tries < 8 ? f->states[fuzz_below(f, FUZZ_STATES)] : fuzz_pick(f);
        sgm_shape other = fuzz_shape_of(f, value), wide;
        if (sgm_shape_equal(&shape, &other))
            return value;
        if (sgm_shape_broadcast(&shape, &other, &wide) == SGM_OK && sgm_shape_equal(&wide, &shape))
            return choice <= 6 ? sgm_broadcast(f->graph, value, &shape)
                               : fuzz_scale(f, sgm_add(f->graph, state, value), 0.5);
    }
    return fuzz_scale(f, state, 0.5);
}

static void fuzz_ends(fuzz *f)
{
    char name[16];
    for (int i = 0; i < FUZZ_STATES; i++)
        if (fuzz_chance(f, 80))
            sgm_assign(f->graph, f->states[i], fuzz_new_state(f, f->states[i]));
    int64_t outputs = 1 + fuzz_below(f, 5);
    for (int i = 0; i < outputs; i++) {
        snprintf(name, sizeof name, "y%d", i);
        sgm_graph_add_output(f->graph, name, fuzz_pick(f));
    }
}

static void fuzz_sources(fuzz *f)
{
    sgm_shape shapes[2] = {fuzz_shape(f), fuzz_shape(f)};
    char name[16];
    for (int i = 0; i < FUZZ_STATES; i++) {
        snprintf(name, sizeof name, "s%d", i);
        f->states[i] = sgm_state(f->graph, name, f->dtype, &shapes[fuzz_below(f, 2)]);
        fuzz_add(f, f->states[i]);
    }
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "x%d", i);
        sgm_shape shape = fuzz_shape(f);
        fuzz_add(f, sgm_input_value(f->graph, name, f->dtype, fuzz_chance(f, 50) ? &shape : &shapes[i]));
    }
    sgm_shape shape = fuzz_shape(f);
    fuzz_add(f, fuzz_constant(f, &shape));
}

/* The graphs that devices are tested with: the first of each type. On the stand-in for a GPU so many: each is
 * compiled. */
#define FUZZ_DEVICE_FLOAT32 2000
#define FUZZ_DEVICE_FLOAT64 3000
#define FUZZ_STAND_IN_GRAPHS 3

static fuzz fuzz_create(uint64_t seed, sgm_dtype dtype, bool smooth)
{
    static void (*const steps[])(fuzz *) = {fuzz_unary,  fuzz_unary,   fuzz_binary, fuzz_binary,
                                            fuzz_binary, fuzz_reduce,  fuzz_move,   fuzz_move,
                                            fuzz_matmul, fuzz_softmax, fuzz_windows};
    const int64_t kinds = sizeof steps / sizeof *steps;
    fuzz f = {sgm__random_make(seed, 7), sgm_graph_create(), dtype, smooth, {{0}}, 0, {{0}}};
    fuzz_sources(&f);
    int64_t length = 5 + fuzz_below(&f, 40);
    for (int64_t i = 0; i < length; i++)
        steps[fuzz_below(&f, kinds)](&f);
    if (smooth && fuzz_chance(&f, 40)) { /* their sums may be done in another order */
        static void (*const sums[])(fuzz *) = {fuzz_parts, fuzz_products, fuzz_padded};
        for (int64_t i = 1 + fuzz_below(&f, 3); i-- > 0;)
            sums[fuzz_below(&f, 3)](&f);
    }
    if (fuzz_chance(&f, 40))
        fuzz_gradients(&f);
    for (int64_t i = fuzz_below(&f, 6); i-- > 0;)
        steps[fuzz_below(&f, kinds)](&f);
    fuzz_ends(&f);
    CHECK_OK(sgm_graph_status(f.graph));
    CHECK_OK(sgm_graph_verify(f.graph));
    return f;
}

#endif
