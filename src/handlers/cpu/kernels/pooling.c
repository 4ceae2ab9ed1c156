/* Max and average pooling and their gradients, plane by plane.
 *
 * A plane is one channel of one example, (height, width); all planes are independent, and a task does some of
 * them. Loops for any window are made by one macro for each type (DEFINE_PLANES); max pooling of float32 with
 * windows of two by two, side by side, has loops of vectors (vector_product_convolution.h), as the plain
 * loops took 50 of 65 ms of a step of LeNet. Windows and their places in padding are those of ops/window.h.
 * All four kernels have `parts`, so run/fused.c can run them with the elementwise step that follows. */
#include "handlers/cpu/cpu.h"
#include "ops/window.h"

#include <math.h>

/* Bytes of planes that a task has at least. */
#define PLANES_BYTES (1 << 15)
/* Columns of a plane whose largest elements are found together. */
#define COLUMNS 512

/* A pooling or its gradient. `in` is the larger plane, `out` the one with an element for each window,
 * whichever of the two is computed. */
typedef struct pooling {
    const sgm__cpu_call *call;
    sgm__window window;
    int64_t planes, each; /* all, and how many of them a task does */
    int64_t in, out;      /* elements of a plane of both kinds */
    bool pairs;           /* windows of two by two, side by side, in float32 */
    void *to;             /* where plane `first` of the result goes */
    int64_t first;
} pooling;

/* `extent`: the larger plane's size comes from the attributes, as the gradient of average pooling has no
 * operand of that size. */
static pooling begin(const sgm__cpu_call *call, bool extent)
{
    sgm_type type = sgm__window_type(&call->inputs[0]);
    pooling p = {.call = call, .to = call->output.data};
    sgm__window *w = &p.window;
    if (extent)
        sgm__window_pooling_gradient(&type, &call->node->attributes, w);
    else
        sgm__window_pooling(&type, &call->node->attributes, w);
    p.planes = w->batch * w->channels;
    p.in = w->in[0] * w->in[1];
    p.out = w->out[0] * w->out[1];
    p.each = 1 + PLANES_BYTES / ((p.in + 1) * (int64_t)sgm_dtype_size(type.dtype));
    p.pairs = type.dtype == SGM_FLOAT32;
    for (int i = 0; i < 2; i++)
        p.pairs = p.pairs && w->size[i] == 2 && w->stride[i] == 2 && w->dilation[i] == 1 &&
                  w->before[i] == 0 && 2 * w->out[i] <= w->in[i];
    return p;
}

/* Posts the planes as tasks. */
static sgm_status share(pooling *p, sgm__pool_task task)
{
    sgm__pool_post(p->call->cpu->pool, (p->planes + p->each - 1) / p->each, task, p, sizeof *p);
    return SGM_OK;
}

/* --- one plane, any window --- */

/* Loops over one plane, for float and double. largest_: the position of a window's largest element, the first
 * of equal ones or the last NaN; -1 if the window is all padding. max_: that element, -infinity for padding
 * alone, by the largest of each column first, which neighbouring windows share; max_wide_ of windows of any
 * width. max_gradient_: adds each window's gradient to its largest element. average_: sums in double, times
 * the share that sgm__window_share gives, which depends on whether padding counts. average_gradient_: that
 * share of the gradient to each element. */
#define DEFINE_PLANES(type)                                                                                  \
    static int64_t largest_##type(const type *x, const sgm__window *w, const sgm__window_span *down,         \
                                  const sgm__window_span *along)                                             \
    {                                                                                                        \
        int64_t best = -1;                                                                                   \
        type value = 0;                                                                                      \
        for (int64_t i = down->first; i < down->last; i++) {                                                 \
            int64_t at = (down->origin + i * w->dilation[0]) * w->in[1] + along->origin;                     \
            for (int64_t k = along->first; k < along->last; k++) {                                           \
                type candidate = x[at + k * w->dilation[1]];                                                 \
                if (best < 0 || candidate > value || isnan(candidate)) {                                     \
                    best = at + k * w->dilation[1];                                                          \
                    value = candidate;                                                                       \
                }                                                                                            \
            }                                                                                                \
        }                                                                                                    \
        return best;                                                                                         \
    }                                                                                                        \
    static inline type larger_##type(type best, type x)                                                      \
    {                                                                                                        \
        return ((x > best) | (x != x)) ? x : best;                                                           \
    }                                                                                                        \
    static void max_wide_##type(const sgm__window *w, const type *x, type *y)                                \
    {                                                                                                        \
        for (int64_t i = 0; i < w->out[0]; i++) {                                                            \
            sgm__window_span down = sgm__window_at(w, 0, i);                                                 \
            for (int64_t k = 0; k < w->out[1]; k++) {                                                        \
                sgm__window_span along = sgm__window_at(w, 1, k);                                            \
                int64_t best = largest_##type(x, w, &down, &along);                                          \
                *y++ = best < 0 ? -(type)INFINITY : x[best];                                                 \
            }                                                                                                \
        }                                                                                                    \
    }                                                                                                        \
    /* The largest of each of `count` columns, from `column` on, over the rows of a window. */               \
    static void down_##type(const sgm__window *w, const type *x, const sgm__window_span *down,               \
                            int64_t column, int64_t count, type *best)                                       \
    {                                                                                                        \
        int64_t first = column < 0 ? sgm__minimum(-column, count) : 0;                                       \
        int64_t last = sgm__minimum(w->in[1] - column, count);                                               \
        for (int64_t k = 0; k < count; k++)                                                                  \
            best[k] = -(type)INFINITY;                                                                       \
        for (int64_t i = down->first; i < down->last; i++) {                                                 \
            const type *row = x + (down->origin + i * w->dilation[0]) * w->in[1] + column;                   \
            for (int64_t k = first; k < last; k++)                                                           \
                best[k] = larger_##type(best[k], row[k]);                                                    \
        }                                                                                                    \
    }                                                                                                        \
    /* The largest of every `stride`-th element of `from`. */                                                \
    static inline void along_##type(type *y, const type *from, int64_t count, int64_t stride)                \
    {                                                                                                        \
        for (int64_t k = 0; k < count; k++)                                                                  \
            y[k] = larger_##type(y[k], from[k * stride]);                                                    \
    }                                                                                                        \
    static void max_##type(const sgm__window *w, const type *x, type *y)                                     \
    {                                                                                                        \
        type best[COLUMNS] = {0};                                                                            \
        int64_t reach = (w->size[1] - 1) * w->dilation[1] + 1, stride = w->stride[1];                        \
        int64_t together = (COLUMNS - reach) / stride + 1;                                                   \
        if (reach > COLUMNS) {                                                                               \
            max_wide_##type(w, x, y);                                                                        \
            return;                                                                                          \
        }                                                                                                    \
        for (int64_t i = 0; i < w->out[0]; i++) {                                                            \
            sgm__window_span down = sgm__window_at(w, 0, i);                                                 \
            for (int64_t k = 0, count; k < w->out[1]; k += count, y += count) {                              \
                count = sgm__minimum(together, w->out[1] - k);                                               \
                down_##type(w, x, &down, k *stride - w->before[1], (count - 1) * stride + reach, best);      \
                for (int64_t n = 0; n < count; n++)                                                          \
                    y[n] = -(type)INFINITY;                                                                  \
                for (int64_t n = 0; n < w->size[1]; n++)                                                     \
                    if (stride == 1)                                                                         \
                        along_##type(y, best + n * w->dilation[1], count, 1);                                \
                    else if (stride == 2)                                                                    \
                        along_##type(y, best + n * w->dilation[1], count, 2);                                \
                    else                                                                                     \
                        along_##type(y, best + n * w->dilation[1], count, stride);                           \
            }                                                                                                \
        }                                                                                                    \
    }                                                                                                        \
    static void max_gradient_##type(const sgm__window *w, const type *x, const type *gradient, type *y)      \
    {                                                                                                        \
        memset(y, 0, (size_t)(w->in[0] * w->in[1]) * sizeof(type));                                          \
        for (int64_t i = 0; i < w->out[0]; i++) {                                                            \
            sgm__window_span down = sgm__window_at(w, 0, i);                                                 \
            for (int64_t k = 0; k < w->out[1]; k++, gradient++) {                                            \
                sgm__window_span along = sgm__window_at(w, 1, k);                                            \
                int64_t best = largest_##type(x, w, &down, &along);                                          \
                if (best >= 0)                                                                               \
                    y[best] += *gradient;                                                                    \
            }                                                                                                \
        }                                                                                                    \
    }                                                                                                        \
    static void average_##type(const sgm__window *w, const type *x, type *y)                                 \
    {                                                                                                        \
        for (int64_t i = 0; i < w->out[0]; i++) {                                                            \
            sgm__window_span down = sgm__window_at(w, 0, i);                                                 \
            for (int64_t k = 0; k < w->out[1]; k++) {                                                        \
                sgm__window_span along = sgm__window_at(w, 1, k);                                            \
                double sum = 0;                                                                              \
                for (int64_t row = down.first; row < down.last; row++)                                       \
                    for (int64_t column = along.first; column < along.last; column++)                        \
                        sum += (double)x[(down.origin + row) * w->in[1] + along.origin + column];            \
                *y++ = (type)(sum * sgm__window_share(w, &down, &along));                                    \
            }                                                                                                \
        }                                                                                                    \
    }                                                                                                        \
    static void average_gradient_##type(const sgm__window *w, const type *gradient, type *y)                 \
    {                                                                                                        \
        memset(y, 0, (size_t)(w->in[0] * w->in[1]) * sizeof(type));                                          \
        for (int64_t i = 0; i < w->out[0]; i++) {                                                            \
            sgm__window_span down = sgm__window_at(w, 0, i);                                                 \
            for (int64_t k = 0; k < w->out[1]; k++) {                                                        \
                sgm__window_span along = sgm__window_at(w, 1, k);                                            \
                type part = (type)((double)*gradient++ * sgm__window_share(w, &down, &along));               \
                for (int64_t row = down.first; row < down.last; row++)                                       \
                    for (int64_t column = along.first; column < along.last; column++)                        \
                        y[(down.origin + row) * w->in[1] + along.origin + column] += part;                   \
            }                                                                                                \
        }                                                                                                    \
    }

DEFINE_PLANES(float)
DEFINE_PLANES(double)

/* --- windows of two by two --- */

/* Each row of windows reads two rows. */
static void max_pairs(const pooling *p, const float *x, float *y)
{
    const sgm__window *w = &p->window;
    for (int64_t i = 0; i < w->out[0]; i++)
        p->call->cpu->vector->largest_pairs_f32(w->out[1], y + i * w->out[1], x + 2 * i * w->in[1],
                                                x + (2 * i + 1) * w->in[1]);
}

/* Each element belongs to one window at most, so all elements are written and none is added to. */
static void max_gradient_pairs(const pooling *p, const float *x, const float *gradient, float *y)
{
    const sgm__window *w = &p->window;
    int64_t rest = w->in[1] - 2 * w->out[1]; /* a last column that no window has */
    for (int64_t i = 0; i < w->out[0]; i++) {
        int64_t row = 2 * i * w->in[1], below = row + w->in[1];
        p->call->cpu->vector->spread_pairs_f32(w->out[1], y + row, y + below, x + row, x + below,
                                               gradient + i * w->out[1]);
        for (int64_t k = w->in[1] - rest; k < w->in[1]; k++)
            y[row + k] = y[below + k] = 0;
    }
    int64_t done = 2 * w->out[0] * w->in[1];
    memset(y + done, 0, (size_t)(p->in - done) * sizeof *y);
}

/* --- kernels --- */

/* A task: planes from index * each on. `pairs_first` is the special loop with an else behind it, or nothing.
 */
#define DEFINE_TASK(name, pairs_first, call_of_type)                                                         \
    static void name##_task(void *context, int64_t index, int32_t thread)                                    \
    {                                                                                                        \
        (void)thread;                                                                                        \
        const pooling *p = context;                                                                          \
        const sgm__window *w = &p->window;                                                                   \
        int64_t last = sgm__minimum(p->planes, (index + 1) * p->each);                                       \
        const void *a = p->call->inputs[0].data,                                                             \
                   *b = p->call->input_count > 1 ? p->call->inputs[1].data : a;                              \
        for (int64_t n = index * p->each; n < last; n++) {                                                   \
            pairs_first if (p->call->output.dtype == SGM_FLOAT32) call_of_type(float);                       \
            else call_of_type(double);                                                                       \
        }                                                                                                    \
        (void)b;                                                                                             \
    }
#define IN(type, array) ((const type *)(array) + n * p->in)
#define OUT(type, array) ((const type *)(array) + n * p->out)
#define TO(type, size) ((type *)p->to + (n - p->first) * (size))
#define MAX(type) max_##type(w, IN(type, a), TO(type, p->out))
#define MAX_GRADIENT(type) max_gradient_##type(w, IN(type, a), OUT(type, b), TO(type, p->in))
#define AVERAGE(type) average_##type(w, IN(type, a), TO(type, p->out))
#define AVERAGE_GRADIENT(type) average_gradient_##type(w, OUT(type, a), TO(type, p->in))
/* Windows of two by two have loops of their own for max pooling. */
#define PAIRS(call)                                                                                          \
    if (p->pairs)                                                                                            \
        call;                                                                                                \
    else
#define NO_PAIRS
DEFINE_TASK(max, PAIRS(max_pairs(p, IN(float, a), TO(float, p->out))), MAX)
DEFINE_TASK(max_gradient, PAIRS(max_gradient_pairs(p, IN(float, a), OUT(float, b), TO(float, p->in))),
            MAX_GRADIENT)
DEFINE_TASK(average, NO_PAIRS, AVERAGE)
DEFINE_TASK(average_gradient, NO_PAIRS, AVERAGE_GRADIENT)

/* Parts for run/fused.c are the planes of a task. */
static int64_t count_parts(const pooling *p, int64_t plane, int64_t *maximum)
{
    *maximum = p->each * plane;
    return (p->planes + p->each - 1) / p->each;
}

/* Does the planes of task `index` into `to` in place of the result. */
static void run_part(pooling *p, sgm__pool_task task, int64_t plane, int64_t index, int32_t thread, void *to,
                     int64_t *first, int64_t *last)
{
    p->first = index * p->each;
    p->to = to;
    task(p, index, thread);
    *first = p->first * plane;
    *last = sgm__minimum(p->planes, p->first + p->each) * plane;
}

/* A kernel. `plane` is `in` or `out`: the elements of a plane of the result. */
#define DEFINE_KERNEL(name, operation, extent, plane, is_aligned)                                            \
    static sgm_status run_##name(const sgm__cpu_call *call)                                                  \
    {                                                                                                        \
        pooling p = begin(call, extent);                                                                     \
        return share(&p, name##_task);                                                                       \
    }                                                                                                        \
    static int64_t parts_of_##name(const sgm__cpu_call *call, int64_t *maximum)                              \
    {                                                                                                        \
        pooling p = begin(call, extent);                                                                     \
        return count_parts(&p, p.plane, maximum);                                                            \
    }                                                                                                        \
    static void part_of_##name(const sgm__cpu_call *call, int64_t index, int32_t thread, void *to,           \
                               int64_t *first, int64_t *last)                                                \
    {                                                                                                        \
        pooling p = begin(call, extent);                                                                     \
        run_part(&p, name##_task, p.plane, index, thread, to, first, last);                                  \
    }                                                                                                        \
    const sgm__cpu_kernel sgm__cpu_##operation = {.op = &sgm__op_##operation,                                \
                                                  .types = SGM__CPU_FLOATS,                                  \
                                                  .posts = true,                                             \
                                                  .run = run_##name,                                         \
                                                  .parts = parts_of_##name,                                  \
                                                  .part = part_of_##name,                                    \
                                                  .aligned = is_aligned};
DEFINE_KERNEL(max, max_pooling, false, out, false)
DEFINE_KERNEL(max_gradient, max_pooling_gradient, false, in, true)
DEFINE_KERNEL(average, average_pooling, false, out, false)
DEFINE_KERNEL(average_gradient, average_pooling_gradient, true, in, false)
