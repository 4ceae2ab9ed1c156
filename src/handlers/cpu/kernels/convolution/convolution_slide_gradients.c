/* Both gradients of convolutions of groups with few channels (convolution_slide.c is forward).
 *
 * By the input: each phase of the image, its rows and columns whose numbers leave one remainder when divided
 * by the stride, is a convolution of the gradient with those weights that meet it, flipped. With a
 * stride of one there is one phase, which is the image; else the phases of some rows are computed side by
 * side and put together. By the weights: the sum over all positions of the gradient times the image under a
 * weight, vector by vector, some examples a task. Vectors at the end of a row multiply what lies behind it by
 * 0: so beside an infinite pixel more of a channel's gradients are NaN than the definition says. */
#include "handlers/cpu/kernels/convolution/convolution_slide.h"

/* Tasks that the groups of a batch make at least for a gradient by weights, if the batch has the examples. */
#define WEIGHTS_TASKS 16
/* Rows of phases, at most, that lie side by side. */
#define PHASE_ROWS 16

/* --- by the input --- */

/* A phase of the image: the window's places that meet it, as a window of their own, how many rows of a band
 * lie before its first one, and where its steps and its weights begin in the tables. */
typedef struct phase {
    int64_t height, width, dilation, above, steps, weights;
} phase;

/* A call's tables and a thread's memory; tasks get a copy. */
typedef struct input_run {
    const sgm__cpu_call *call;
    sgm__convolution c;
    sgm__convolution transposed; /* the convolution of the gradient that gives all phases of the image */
    sgm__slide_layout l;         /* of its bands */
    sgm__phases columns;         /* of the image */
    int64_t phases;              /* of the image's rows */
    bool whole;                  /* the stride is one */
    int64_t entries;             /* weights that make one channel: filters * places */
    /* Bytes in scratch memory: the phases; steps; the numbers of weights in the order of phases; threads'. */
    size_t steps_at, numbers_at, own_at;
    /* A thread's memory: a band, a group's weights, phases of some rows. */
    size_t weights_at, rows_at, own_bytes, total;
} input_run;

/* Rows or columns of a phase from a window's first place to its last. */
static int64_t reach(const sgm__window *w, int axis)
{
    return sgm__phases_reach(w, axis) / w->stride[axis];
}

/* The results are the image, or with a stride the pixels of a phase, from the padded image's first on. */
static sgm__convolution transpose(const sgm__convolution *c, bool whole)
{
    sgm__convolution t = *c;
    t.channels = c->filters, t.filters = c->channels;
    t.pixels = c->plane, t.plane = c->pixels;
    for (int i = 0; i < 2; i++) {
        int64_t far = reach(&c->window, i);
        t.window.in[i] = c->window.out[i];
        t.window.out[i] = whole ? c->window.in[i] : c->window.out[i] + far;
        t.window.before[i] = whole ? far - c->window.before[i] : far;
        t.window.size[i] = far + 1;
        t.window.stride[i] = t.window.dilation[i] = 1;
    }
    return t;
}

static input_run input_plan(const sgm__cpu_call *call, const sgm__convolution *c)
{
    const sgm__window *w = &c->window;
    input_run r = {.call = call, .c = *c, .entries = c->filters * c->places};
    r.whole = w->stride[0] == 1 && w->stride[1] == 1;
    r.transposed = transpose(c, r.whole);
    r.l = sgm__slide_layout_make(&r.transposed);
    r.columns = sgm__phases_make(c);
    r.phases = sgm__minimum(w->stride[0], sgm__phases_reach(w, 0) + 1);
    if (!r.whole)
        r.l.rows = sgm__minimum(r.l.rows, PHASE_ROWS);
    int64_t size = (int64_t)c->size, integer = (int64_t)sizeof(int64_t);
    int64_t phases = r.phases * r.columns.count, plane = r.l.rows * r.transposed.window.out[1];
    r.steps_at = sgm__convolution_align(phases * (int64_t)sizeof(phase));
    r.numbers_at = r.steps_at + sgm__convolution_align(r.phases * w->size[1] * integer);
    r.own_at = r.numbers_at + sgm__convolution_align(r.entries * integer);
    r.weights_at = sgm__convolution_align(sgm__slide_room(&r.transposed, &r.l) * size);
    r.rows_at = r.weights_at + sgm__convolution_align(c->channels * r.entries * size);
    r.own_bytes = r.rows_at + sgm__convolution_align(r.whole ? 0 : phases * plane * size);
    r.total = r.own_at + r.own_bytes * (size_t)call->cpu->threads;
    return r;
}

size_t sgm__slide_input_scratch(const sgm__cpu_call *call, const sgm__convolution *c)
{
    return input_plan(call, c).total;
}

/* The places of one axis that meet a phase: `first`, first + apart, ...; as many times the stride apart as
 * make a multiple of it with the dilation. */
typedef struct meeting {
    int64_t first, apart, count;
} meeting;

static meeting meet(const sgm__window *w, int axis, int64_t number)
{
    int64_t stride = w->stride[axis], dilation = w->dilation[axis], size = w->size[axis];
    meeting m = {.apart = 1};
    while (m.apart * dilation % stride != 0)
        m.apart++;
    while (m.first < size && m.first * dilation % stride != number)
        m.first++;
    m.count = m.first < size ? (size - 1 - m.first) / m.apart + 1 : 0;
    return m;
}

/* One phase, by its numbers among the rows' and the columns'; its entries of the tables come behind the
 * `steps` and `weights` that are there already. Rows of the window are flipped; columns need not be, as
 * their steps say where they lie. */
static phase make_phase(const input_run *r, int64_t row, int64_t column, int64_t steps, int64_t weights)
{
    const sgm__convolution *c = &r->c;
    const sgm__window *w = &c->window;
    meeting down = meet(w, 0, row), across = meet(w, 1, column);
    int64_t *step = (int64_t *)(r->call->scratch + r->steps_at) + steps;
    int64_t *number = (int64_t *)(r->call->scratch + r->numbers_at) + weights;
    int64_t last = down.first + (down.count - 1) * down.apart;
    phase p = {.height = down.count,
               .width = across.count,
               .dilation = down.apart * w->dilation[0] / w->stride[0],
               .above = down.count > 0 ? reach(w, 0) - last * w->dilation[0] / w->stride[0] : 0,
               .steps = steps,
               .weights = weights};
    for (int64_t j = 0; j < across.count; j++)
        step[j] = reach(w, 1) - (across.first + j * across.apart) * w->dilation[1] / w->stride[1];
    for (int64_t filter = 0; filter < c->filters; filter++)
        for (int64_t k = 0; k < down.count; k++)
            for (int64_t j = 0; j < across.count; j++)
                *number++ = filter * c->channels * c->places + (last - k * down.apart) * w->size[1] +
                            across.first + j * across.apart;
    return p;
}

/* One task before all others. */
static void make_input_tables(void *context, int64_t index, int32_t thread)
{
    (void)index, (void)thread;
    const input_run *r = context;
    phase *phases = (phase *)(void *)r->call->scratch;
    int64_t steps = 0, weights = 0;
    for (int64_t row = 0; row < r->phases; row++)
        for (int64_t column = 0; column < r->columns.count; column++) {
            phase p = make_phase(r, row, column, steps, weights);
            steps += p.width;
            weights += r->c.filters * p.height * p.width;
            *phases++ = p;
        }
}

/* The phase's rows of a band, of one channel whose weights are `packed`. */
static void slide_phase(const input_run *r, const phase *p, const unsigned char *own,
                        const unsigned char *packed, int64_t rows, unsigned char *to)
{
    int64_t size = (int64_t)r->c.size;
    sgm__slide slide = {.rows = rows,
                        .columns = r->transposed.window.out[1],
                        .channels = r->c.filters,
                        .height = p->height,
                        .width = p->width,
                        .stride = 1,
                        .dilation = p->dilation,
                        .image = own + p->above * r->l.line * size,
                        .channel = r->l.channel,
                        .line = r->l.line,
                        .steps = (const int64_t *)(r->call->scratch + r->steps_at) + p->steps,
                        .weights = packed + p->weights * size,
                        .to = to,
                        .limits = SGM__NO_LIMITS};
    r->c.tiles->slide(&slide);
}

/* Rows of the image whose phases' rows are first .. end - 1; `phases` holds those from `first` on. The last
 * band also has the rows behind all windows. Where no window came, the gradient is 0. */
static void join_rows(const input_run *r, unsigned char *image, const unsigned char *phases, int64_t first,
                      int64_t end)
{
    const sgm__convolution *c = &r->c;
    const sgm__window *w = &c->window;
    bool every = r->columns.all && w->stride[1] * r->columns.whole == w->in[1]; /* column is in a phase */
    int64_t columns = r->transposed.window.out[1], apart = r->l.rows * columns, size = (int64_t)c->size;
    int64_t stop = end < r->transposed.window.out[0] ? end * w->stride[0] - w->before[0] : w->in[0];
    int64_t i = first * w->stride[0] - w->before[0];
    for (i = i > 0 ? i : 0; i < sgm__minimum(stop, w->in[0]); i++) {
        int64_t number = (i + w->before[0]) % w->stride[0], row = (i + w->before[0]) / w->stride[0];
        bool met = number < r->phases && row < end;
        unsigned char *to = image + i * w->in[1] * size;
        if (!met || !every)
            memset(to, 0, (size_t)(w->in[1] * size));
        if (met)
            sgm__phases_join(c, &r->columns, apart, to,
                             phases + (number * r->columns.count * apart + (row - first) * columns) * size);
    }
}

/* Rows first .. end - 1 of the phases of a channel, or of the image, whose filters' gradients are in `own`.
 */
static void input_rows(const input_run *r, unsigned char *own, int64_t channel, int64_t first, int64_t end,
                       unsigned char *image)
{
    const phase *p = (const phase *)(const void *)r->call->scratch;
    int64_t size = (int64_t)r->c.size, columns = r->transposed.window.out[1];
    const unsigned char *packed = own + r->weights_at + channel * r->entries * size;
    if (r->whole) {
        slide_phase(r, p, own, packed, end - first, image + first * columns * size);
        return;
    }
    for (int64_t i = 0; i < r->phases * r->columns.count; i++)
        slide_phase(r, &p[i], own, packed, end - first, own + r->rows_at + i * r->l.rows * columns * size);
    join_rows(r, image, own + r->rows_at, first, end);
}

/* The weights of all channels of a group, in the order of the tables. */
static void pack_weights(const input_run *r, unsigned char *to, const unsigned char *weights)
{
    const int64_t *numbers = (const int64_t *)(r->call->scratch + r->numbers_at);
    for (int64_t channel = 0; channel < r->c.channels; channel++)
        for (int64_t i = 0; i < r->entries; i++, to += r->c.size)
            memcpy(to, weights + (numbers[i] + channel * r->c.places) * (int64_t)r->c.size, r->c.size);
}

/* Some groups of one example. */
static void input_task(void *context, int64_t index, int32_t thread)
{
    const input_run *r = context;
    const sgm__convolution *c = &r->c;
    const sgm__window *w = &c->window;
    int64_t size = (int64_t)c->size, bundle = sgm__slide_bundle(c), count = sgm__slide_bundles(c);
    int64_t example = index / count, begin = index % count * bundle, rows = r->transposed.window.out[0];
    unsigned char *own = r->call->scratch + r->own_at + (size_t)thread * r->own_bytes;
    sgm__slide_clear(&r->transposed, &r->l, own);
    for (int64_t group = begin; group < sgm__minimum(begin + bundle, w->groups); group++) {
        const unsigned char *gradient = r->call->inputs[0].data, *weights = r->call->inputs[1].data;
        unsigned char *to = r->call->output.data;
        gradient += (example * w->filters + group * c->filters) * c->pixels * size;
        to += (example * w->channels + group * c->channels) * c->plane * size;
        pack_weights(r, own + r->weights_at, weights + group * c->channels * r->entries * size);
        for (int64_t first = 0; first < rows; first += r->l.rows) {
            int64_t end = sgm__minimum(first + r->l.rows, rows);
            sgm__slide_copy(&r->transposed, &r->l, own, gradient, first, end - first);
            for (int64_t i = 0; i < c->channels; i++)
                input_rows(r, own, i, first, end, to + i * c->plane * size);
        }
    }
}

void sgm__slide_input_run(const sgm__cpu_call *call, const sgm__convolution *c)
{
    input_run r = input_plan(call, c);
    sgm__pool_post(call->cpu->pool, 1, make_input_tables, &r, sizeof r);
    sgm__pool_post(call->cpu->pool, c->window.batch * sgm__slide_bundles(c), input_task, &r, sizeof r);
}

/* --- by the weights --- */

/* As input_run. Each chunk of the batch has sums of its own, a vector for each weight. */
typedef struct weights_run {
    const sgm__cpu_call *call;
    sgm__convolution c;
    sgm__slide_layout l;
    int64_t depth, chunks;
    size_t sums_at, chunk_bytes, own_at; /* steps come first */
    size_t own_bytes, total;             /* a thread's memory: a band */
} weights_run;

static weights_run weights_plan(const sgm__cpu_call *call, const sgm__convolution *c)
{
    weights_run r = {.call = call, .c = *c, .l = sgm__slide_layout_make(c), .depth = c->channels * c->places};
    int64_t size = (int64_t)c->size;
    r.chunks = sgm__minimum(c->window.batch, (WEIGHTS_TASKS + c->window.groups - 1) / c->window.groups);
    r.sums_at = sgm__convolution_align(c->window.size[1] * (int64_t)sizeof(int64_t));
    r.chunk_bytes = (size_t)(c->window.filters * r.depth * c->tiles->vector_lanes * size);
    r.own_at = r.sums_at + sgm__convolution_align(r.chunks * (int64_t)r.chunk_bytes);
    r.own_bytes = sgm__convolution_align(sgm__slide_room(c, &r.l) * size);
    r.total = r.own_at + r.own_bytes * (size_t)call->cpu->threads;
    return r;
}

size_t sgm__slide_weights_scratch(const sgm__cpu_call *call, const sgm__convolution *c)
{
    return weights_plan(call, c).total;
}

static void make_weights_steps(void *context, int64_t index, int32_t thread)
{
    (void)index, (void)thread;
    const weights_run *r = context;
    sgm__slide_steps(&r->c, &r->l, (int64_t *)r->call->scratch);
}

/* Adds the rows of one band, of all filters of a group, to their `sums`; `gradient`: the group's. */
static void sum_band(const weights_run *r, const unsigned char *own, const unsigned char *gradient,
                     int64_t first, int64_t rows, unsigned char *sums)
{
    const sgm__convolution *c = &r->c;
    const sgm__window *w = &c->window;
    int64_t size = (int64_t)c->size;
    sgm__slide_sums slide = {.rows = rows,
                             .columns = w->out[1],
                             .channels = c->channels,
                             .height = w->size[0],
                             .width = w->size[1],
                             .stride = w->stride[0],
                             .dilation = w->dilation[0],
                             .image = own,
                             .channel = r->l.channel,
                             .line = r->l.line,
                             .steps = (const int64_t *)r->call->scratch};
    for (int64_t i = 0; i < c->filters; i++) {
        slide.factors = gradient + (i * c->pixels + first * w->out[1]) * size;
        slide.sums = sums + i * r->depth * c->tiles->vector_lanes * size;
        c->tiles->slide_sums(&slide);
    }
}

/* One group of a chunk of the batch. */
static void sum_task(void *context, int64_t index, int32_t thread)
{
    const weights_run *r = context;
    const sgm__convolution *c = &r->c;
    const sgm__window *w = &c->window;
    int64_t group = index / r->chunks, chunk = index % r->chunks, size = (int64_t)c->size;
    unsigned char *own = r->call->scratch + r->own_at + (size_t)thread * r->own_bytes;
    unsigned char *sums = r->call->scratch + r->sums_at + (size_t)chunk * r->chunk_bytes;
    int64_t bytes = c->filters * r->depth * c->tiles->vector_lanes * size;
    sums += group * bytes;
    memset(sums, 0, (size_t)bytes);
    sgm__slide_clear(c, &r->l, own);
    for (int64_t example = w->batch * chunk / r->chunks; example < w->batch * (chunk + 1) / r->chunks;
         example++) {
        const unsigned char *image = r->call->inputs[0].data, *gradient = r->call->inputs[1].data;
        image += (example * w->channels + group * c->channels) * c->plane * size;
        gradient += (example * w->filters + group * c->filters) * c->pixels * size;
        for (int64_t first = 0; first < w->out[0]; first += r->l.rows) {
            int64_t rows = sgm__minimum(r->l.rows, w->out[0] - first);
            sgm__slide_copy(c, &r->l, own, image, first, rows);
            sum_band(r, own, gradient, first, rows, sums);
        }
    }
}

/* The sum of `lanes` numbers in their order, in double. */
static double sum_lanes(const sgm__convolution *c, const unsigned char *from)
{
    double sum = 0;
    for (int64_t i = 0; i < c->tiles->vector_lanes; i++)
        sum += c->size == 4 ? (double)((const float *)(const void *)from)[i]
                            : ((const double *)(const void *)from)[i];
    return sum;
}

/* One group: adds the chunks in their order, and the lanes of each weight. */
static void finish_task(void *context, int64_t group, int32_t thread)
{
    (void)thread;
    const weights_run *r = context;
    const sgm__convolution *c = &r->c;
    int64_t count = c->filters * r->depth, size = (int64_t)c->size, first = group * count;
    unsigned char *to = r->call->output.data;
    for (int64_t i = first; i < first + count; i++) {
        const unsigned char *from = r->call->scratch + r->sums_at + i * c->tiles->vector_lanes * size;
        double sum = 0;
        for (int64_t chunk = 0; chunk < r->chunks; chunk++, from += r->chunk_bytes)
            sum += sum_lanes(c, from);
        if (c->size == 4)
            ((float *)(void *)to)[i] = (float)sum;
        else
            ((double *)(void *)to)[i] = sum;
    }
}

void sgm__slide_weights_run(const sgm__cpu_call *call, const sgm__convolution *c)
{
    weights_run r = weights_plan(call, c);
    sgm__pool_post(call->cpu->pool, 1, make_weights_steps, &r, sizeof r);
    sgm__pool_post(call->cpu->pool, r.chunks * c->window.groups, sum_task, &r, sizeof r);
    sgm__pool_post(call->cpu->pool, c->window.groups, finish_task, &r, sizeof r);
}
