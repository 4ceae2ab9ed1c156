/* Convolutions of groups with few channels, depthwise ones above all: images are copied, a channel at a time,
 * into an order in which each weight's products are one run of pixels (sgm__slide_layout).
 *
 * Forward: a result is the sum of the image slid by each weight's step. By the input: the gradient is slid
 * the other way, with zeros in the gaps, each phase of the image by itself; then phases are put together. By
 * the weights: the sum over all positions of the gradient times the slid image, for all steps in one pass.
 * Copies stay in the first cache. Sums depend on shapes alone. Gaps are multiplied, too, by 0: so beside an
 * infinite pixel or weight more of its channel's gradients are NaN than the definition says. */
#include "handlers/cpu/kernels/convolution_slide.h"

/* Multiply-adds of a task, about; below that the sharing of tasks would show. */
#define TASK_OPERATIONS (1 << 17)
/* Tasks that the groups of a batch make at least for a gradient by weights, if the batch has the examples. */
#define WEIGHTS_TASKS 16

sgm__slide_layout sgm__slide_layout_make(const sgm__convolution *c)
{
    const sgm__window *w = &c->window;
    sgm__slide_layout l = {.rows = 0};
    for (int i = 0; i < 2; i++) {
        l.reach[i] = (w->size[i] - 1) * w->dilation[i];
        l.phases[i] = sgm__minimum(w->stride[i], l.reach[i] + 1);
        l.reach[i] /= w->stride[i];
    }
    l.rows = w->out[0] + l.reach[0];
    l.pitch = w->out[1] + l.reach[1];
    l.plane = l.rows * l.pitch;
    l.positions = (w->out[0] - 1) * l.pitch + w->out[1];
    l.channel = l.phases[0] * l.phases[1] * l.plane;
    return l;
}

bool sgm__slide_is_faster(const sgm__convolution *c, int64_t lanes)
{
    int64_t vector = c->tiles->vector_lanes, positions = sgm__slide_layout_make(c).positions;
    int64_t slid = (positions + vector - 1) / vector * lanes;
    int64_t by_panels = c->pixels * sgm__convolution_width(c, lanes) / vector;
    /* a vector of pixels is loaded for each multiplication, one of a panel for six */
    return 5 * slid <= 4 * by_panels;
}

int64_t sgm__slide_bundle(const sgm__convolution *c)
{
    int64_t operations = c->pixels * c->places * c->channels * c->filters;
    int64_t bundle = operations > 0 ? TASK_OPERATIONS / operations : 1;
    return bundle < 1 ? 1 : sgm__minimum(bundle, c->window.groups);
}

int64_t sgm__slide_bundles(const sgm__convolution *c)
{
    int64_t bundle = sgm__slide_bundle(c);
    return (c->window.groups + bundle - 1) / bundle;
}

/* --- copying --- */

/* Where a phase's row or column `index` lies in the image without padding. */
static int64_t unpadded(const sgm__window *w, int axis, int64_t phase, int64_t index)
{
    return index * w->stride[axis] + phase - w->before[axis];
}

/* The rows (or columns) *first to *last - 1 of a phase that lie in the image. */
static void inside(const sgm__window *w, int axis, int64_t phase, int64_t count, int64_t *first,
                   int64_t *last)
{
    int64_t stride = w->stride[axis], before = w->before[axis] - phase;
    *first = before > 0 ? sgm__minimum((before + stride - 1) / stride, count) : 0;
    int64_t end = w->in[axis] + before;
    *last = end > 0 ? sgm__minimum((end + stride - 1) / stride, count) : 0;
    if (*last < *first)
        *last = *first;
}

/* Where the pixels of a row go: pixel 0 to column left[0] of phase[0], pixel 1 to column left[1] of the
 * other, and so on in turns for a stride of two, as far as `paired` goes in both, which may be all of the
 * row. Other strides have no pairs. */
typedef struct pairing {
    int64_t phase[2], left[2], paired;
    bool all;
} pairing;

static pairing pairing_of(const sgm__window *w, const sgm__slide_layout *l)
{
    pairing p = {.paired = 0};
    if (w->stride[1] != 2 || l->phases[1] != 2)
        return p;
    int64_t count[2];
    for (int i = 0; i < 2; i++) {
        int64_t last;
        p.phase[i] = (w->before[1] + i) % 2;
        inside(w, 1, p.phase[i], l->pitch, &p.left[i], &last);
        count[i] = last - p.left[i];
    }
    p.paired = sgm__minimum(count[0], count[1]);
    p.all = count[0] == count[1];
    return p;
}

/* One row of an image to the rows of its phases of columns, the first of which is `to`. What of a phase lies
 * outside of the image is left as it is. */
static void split_row(const sgm__convolution *c, const sgm__slide_layout *l, const pairing *p,
                      unsigned char *to, const unsigned char *image)
{
    const sgm__window *w = &c->window;
    int64_t size = (int64_t)c->size, first, last;
    if (p->paired > 0)
        c->tiles->split_pairs(p->paired, to + (p->phase[0] * l->plane + p->left[0]) * size,
                              to + (p->phase[1] * l->plane + p->left[1]) * size, image);
    for (int64_t k = 0; k < l->phases[1] && !p->all; k++) {
        inside(w, 1, k, l->pitch, &first, &last);
        first += p->paired;
        if (first < last)
            sgm__cpu_copy_row(to + (k * l->plane + first) * size, 1, image + unpadded(w, 1, k, first) * size,
                              w->stride[1], last - first, c->size);
    }
}

/* The other way round. */
static void join_row(const sgm__convolution *c, const sgm__slide_layout *l, const pairing *p,
                     unsigned char *image, const unsigned char *from)
{
    const sgm__window *w = &c->window;
    int64_t size = (int64_t)c->size, first, last;
    if (p->paired > 0)
        c->tiles->join_pairs(p->paired, image, from + (p->phase[0] * l->plane + p->left[0]) * size,
                             from + (p->phase[1] * l->plane + p->left[1]) * size);
    for (int64_t k = 0; k < l->phases[1] && !p->all; k++) {
        inside(w, 1, k, l->pitch, &first, &last);
        first += p->paired;
        if (first < last)
            sgm__cpu_copy_row(image + unpadded(w, 1, k, first) * size, w->stride[1],
                              from + (k * l->plane + first) * size, 1, last - first, c->size);
    }
}

/* The phases of a channel's columns, for one phase of its rows. Without a stride along the columns there is
 * one, whose rows end in zeros that go on to the next row's pixels. */
static void copy_phases(const sgm__convolution *c, const sgm__slide_layout *l, const pairing *p,
                        unsigned char *to, const unsigned char *image, int64_t row_phase)
{
    const sgm__window *w = &c->window;
    int64_t size = (int64_t)c->size, top, bottom, rows, row_bytes = w->in[1] * size;
    inside(w, 0, row_phase, l->rows, &top, &bottom);
    rows = bottom - top;
    int64_t begin = top * l->pitch + w->before[1], end = begin + rows * l->pitch;
    const unsigned char *from = image + (rows > 0 ? unpadded(w, 0, row_phase, top) * row_bytes : 0);
    if (w->stride[1] == 1 && rows > 0) {
        memset(to, 0, (size_t)(begin * size));
        c->tiles->copy_rows(to + begin * size, l->pitch, from, w->stride[0] * w->in[1], w->in[1], rows);
        memset(to + end * size, 0, (size_t)(l->plane > end ? (l->plane - end) * size : 0));
        return;
    }
    memset(to, 0, (size_t)(l->phases[1] * l->plane * size));
    for (int64_t i = 0; i < rows; i++)
        split_row(c, l, p, to + (top + i) * l->pitch * size, from + i * w->stride[0] * row_bytes);
}

void sgm__slide_copy(const sgm__convolution *c, const sgm__slide_layout *l, unsigned char *to,
                     const unsigned char *image)
{
    pairing p = pairing_of(&c->window, l);
    int64_t size = (int64_t)c->size;
    for (int64_t channel = 0; channel < c->channels; channel++, image += c->plane * size)
        for (int64_t i = 0; i < l->phases[0]; i++, to += l->phases[1] * l->plane * size)
            copy_phases(c, l, &p, to, image, i);
    memset(to, 0, (size_t)(SGM__SLIDE_SLACK * size));
}

/* A filter's gradient at the distances of a phase, with zeros in the gaps and to the end of the plane. */
static void copy_gradient(const sgm__convolution *c, const sgm__slide_layout *l, unsigned char *to,
                          const unsigned char *gradient)
{
    const sgm__window *w = &c->window;
    int64_t size = (int64_t)c->size;
    c->tiles->copy_rows(to, l->pitch, gradient, w->out[1], w->out[1], w->out[0]);
    memset(to + w->out[0] * l->pitch * size, 0, (size_t)(l->reach[0] * l->pitch * size));
}

/* The phase that holds the pixels under a place of the window, and how far from the result. */
static int64_t phase_of(const sgm__convolution *c, const sgm__slide_layout *l, int64_t place)
{
    const sgm__window *w = &c->window;
    int64_t row = place / w->size[1] * w->dilation[0], column = place % w->size[1] * w->dilation[1];
    return row % w->stride[0] * l->phases[1] + column % w->stride[1];
}

static int64_t step_of(const sgm__convolution *c, const sgm__slide_layout *l, int64_t place)
{
    const sgm__window *w = &c->window;
    int64_t row = place / w->size[1] * w->dilation[0], column = place % w->size[1] * w->dilation[1];
    return row / w->stride[0] * l->pitch + column / w->stride[1];
}

/* --- forward --- */

/* The copied channels, then a result with gaps. */
int64_t sgm__slide_forward_room(const sgm__convolution *c)
{
    sgm__slide_layout l = sgm__slide_layout_make(c);
    return c->channels * l.channel + SGM__SLIDE_SLACK + l.positions;
}

void sgm__slide_steps(const sgm__convolution *c, int64_t *steps)
{
    sgm__slide_layout l = sgm__slide_layout_make(c);
    for (int64_t channel = 0; channel < c->channels; channel++)
        for (int64_t place = 0; place < c->places; place++)
            *steps++ = channel * l.channel + phase_of(c, &l, place) * l.plane + step_of(c, &l, place);
}

void sgm__slide_forward(const sgm__convolution *c, const int64_t *steps, const unsigned char *image,
                        const unsigned char *weights, const unsigned char *biases, sgm__limits limits,
                        unsigned char *own, unsigned char *to)
{
    const sgm__window *w = &c->window;
    sgm__slide_layout l = sgm__slide_layout_make(c);
    int64_t size = (int64_t)c->size, depth = c->channels * c->places;
    bool dense = w->out[0] == 1 || l.pitch == w->out[1]; /* there are no gaps */
    unsigned char *block = own + (c->channels * l.channel + SGM__SLIDE_SLACK) * size;
    sgm__slide_copy(c, &l, own, image);
    for (int64_t filter = 0; filter < c->filters; filter++, to += c->pixels * size) {
        sgm__slide slide = {.count = l.positions,
                            .depth = depth,
                            .image = own,
                            .steps = steps,
                            .weights = weights + filter * depth * size,
                            .bias = biases != NULL ? biases + filter * size : NULL,
                            .to = dense ? to : block,
                            .limits = limits};
        c->tiles->slide(&slide);
        if (!dense)
            c->tiles->copy_rows(to, w->out[1], block, l.pitch, w->out[1], w->out[0]);
    }
}

/* --- by the input --- */

/* A call's tables and a thread's memory; tasks get a copy. The tables have an entry for each filter and place
 * of the window, those of phase 0 first, then those of phase 1...: where the gradient lies for a pixel at the
 * beginning of the phase, and which of a channel's weights it is. */
typedef struct input_run {
    const sgm__cpu_call *call;
    sgm__convolution c;
    sgm__slide_layout l;
    int64_t entries;
    /* Bytes in scratch memory: steps, weights' numbers, how many entries phases have; threads' memory. */
    size_t numbers_at, counts_at, own_at;
    /* A thread's memory: gradients of the filters, a channel's weights, the phases of the image. */
    size_t weights_at, phases_at, own_bytes, total;
} input_run;

static input_run input_plan(const sgm__cpu_call *call, const sgm__convolution *c)
{
    input_run r = {.call = call, .c = *c, .l = sgm__slide_layout_make(c), .entries = c->filters * c->places};
    int64_t size = (int64_t)c->size, integer = (int64_t)sizeof(int64_t);
    r.numbers_at = sgm__convolution_align(r.entries * integer);
    r.counts_at = r.numbers_at + sgm__convolution_align(r.entries * integer);
    r.own_at = r.counts_at + sgm__convolution_align(r.l.phases[0] * r.l.phases[1] * integer);
    int64_t front = r.l.reach[0] * r.l.pitch + r.l.reach[1];
    r.weights_at = sgm__convolution_align((front + c->filters * r.l.plane + SGM__SLIDE_SLACK) * size);
    r.phases_at = r.weights_at + sgm__convolution_align(r.entries * size);
    r.own_bytes = r.phases_at + sgm__convolution_align(r.l.channel * size);
    r.total = r.own_at + r.own_bytes * (size_t)call->cpu->threads;
    return r;
}

size_t sgm__slide_input_scratch(const sgm__cpu_call *call, const sgm__convolution *c)
{
    return input_plan(call, c).total;
}

/* One task before all others. */
static void make_input_tables(void *context, int64_t index, int32_t thread)
{
    (void)index, (void)thread;
    const input_run *r = context;
    const sgm__convolution *c = &r->c;
    int64_t *steps = (int64_t *)r->call->scratch, *numbers = (int64_t *)(r->call->scratch + r->numbers_at);
    int64_t *counts = (int64_t *)(r->call->scratch + r->counts_at), filled = 0;
    int64_t front = r->l.reach[0] * r->l.pitch + r->l.reach[1];
    for (int64_t phase = 0; phase < r->l.phases[0] * r->l.phases[1]; phase++) {
        int64_t before = filled;
        for (int64_t filter = 0; filter < c->filters; filter++)
            for (int64_t place = 0; place < c->places; place++)
                if (phase_of(c, &r->l, place) == phase) {
                    steps[filled] = front + filter * r->l.plane - step_of(c, &r->l, place);
                    numbers[filled++] = filter * c->channels * c->places + place;
                }
        counts[phase] = filled - before;
    }
}

/* The phases of one channel's gradient, of which only the image's rows are computed where there is one. */
static void slide_phases(const input_run *r, const unsigned char *own, const unsigned char *weights,
                         unsigned char *phases, int64_t first, int64_t count)
{
    const int64_t *steps = (const int64_t *)r->call->scratch;
    const int64_t *counts = (const int64_t *)(r->call->scratch + r->counts_at);
    int64_t size = (int64_t)r->c.size;
    for (int64_t phase = 0; phase < r->l.phases[0] * r->l.phases[1]; phase++) {
        sgm__slide slide = {.count = count,
                            .depth = counts[phase],
                            .image = own + first * size,
                            .steps = steps,
                            .weights = weights,
                            .to = phases + phase * r->l.plane * size,
                            .limits = SGM__NO_LIMITS};
        r->c.tiles->slide(&slide);
        steps += counts[phase];
        weights += counts[phase] * size;
    }
}

/* One channel: `own` has the gradients of its group's filters. */
static void input_channel(const input_run *r, unsigned char *own, const unsigned char *weights,
                          unsigned char *to)
{
    const sgm__convolution *c = &r->c;
    const sgm__window *w = &c->window;
    int64_t size = (int64_t)c->size;
    const int64_t *numbers = (const int64_t *)(r->call->scratch + r->numbers_at);
    unsigned char *packed = own + r->weights_at, *phases = own + r->phases_at;
    for (int64_t i = 0; i < r->entries; i++)
        memcpy(packed + i * size, weights + numbers[i] * size, c->size);
    if (w->stride[0] == 1 && w->stride[1] == 1) {
        slide_phases(r, own, packed, phases, w->before[0] * r->l.pitch + w->before[1],
                     (w->in[0] - 1) * r->l.pitch + w->in[1]);
        c->tiles->copy_rows(to, w->in[1], phases, r->l.pitch, w->in[1], w->in[0]);
        return;
    }
    slide_phases(r, own, packed, phases, 0, r->l.plane);
    pairing p = pairing_of(w, &r->l);
    memset(to, 0, (size_t)(c->plane * size)); /* no window may have reached a pixel */
    for (int64_t i = 0; i < w->in[0]; i++) {
        int64_t phase = (i + w->before[0]) % w->stride[0], row = (i + w->before[0]) / w->stride[0];
        if (phase < r->l.phases[0] && row < r->l.rows)
            join_row(c, &r->l, &p, to + i * w->in[1] * size,
                     phases + (phase * r->l.phases[1] * r->l.plane + row * r->l.pitch) * size);
    }
}

/* Some groups of one example. */
static void input_task(void *context, int64_t index, int32_t thread)
{
    const input_run *r = context;
    const sgm__convolution *c = &r->c;
    const sgm__window *w = &c->window;
    int64_t size = (int64_t)c->size, bundle = sgm__slide_bundle(c), count = sgm__slide_bundles(c);
    int64_t example = index / count, first = index % count * bundle;
    int64_t front = r->l.reach[0] * r->l.pitch + r->l.reach[1];
    unsigned char *own = r->call->scratch + r->own_at + (size_t)thread * r->own_bytes;
    memset(own, 0, (size_t)(front * size));
    for (int64_t group = first; group < sgm__minimum(first + bundle, w->groups); group++) {
        const unsigned char *gradient = r->call->inputs[0].data, *weights = r->call->inputs[1].data;
        gradient += (example * w->filters + group * c->filters) * c->pixels * size;
        weights += group * c->filters * c->channels * c->places * size;
        for (int64_t i = 0; i < c->filters; i++)
            copy_gradient(c, &r->l, own + (front + i * r->l.plane) * size, gradient + i * c->pixels * size);
        unsigned char *to = r->call->output.data;
        to += (example * w->channels + group * c->channels) * c->plane * size;
        for (int64_t i = 0; i < c->channels; i++)
            input_channel(r, own, weights + i * c->places * size, to + i * c->plane * size);
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
    size_t sums_at, chunk_bytes, own_at;  /* steps come first */
    size_t gradient_at, own_bytes, total; /* a thread's memory: the image, then the gradient */
} weights_run;

static weights_run weights_plan(const sgm__cpu_call *call, const sgm__convolution *c)
{
    weights_run r = {.call = call, .c = *c, .l = sgm__slide_layout_make(c), .depth = c->channels * c->places};
    int64_t size = (int64_t)c->size;
    r.chunks = sgm__minimum(c->window.batch, (WEIGHTS_TASKS + c->window.groups - 1) / c->window.groups);
    r.sums_at = sgm__convolution_align(r.depth * (int64_t)sizeof(int64_t));
    r.chunk_bytes = (size_t)(c->window.filters * r.depth * c->tiles->vector_lanes * size);
    r.own_at = r.sums_at + sgm__convolution_align(r.chunks * (int64_t)r.chunk_bytes);
    r.gradient_at = sgm__convolution_align((c->channels * r.l.channel + SGM__SLIDE_SLACK) * size);
    r.own_bytes = r.gradient_at + sgm__convolution_align((r.l.plane + SGM__SLIDE_SLACK) * size);
    r.total = r.own_at + r.own_bytes * (size_t)call->cpu->threads;
    return r;
}

size_t sgm__slide_weights_scratch(const sgm__cpu_call *call, const sgm__convolution *c)
{
    return weights_plan(call, c).total;
}

static void make_weights_tables(void *context, int64_t index, int32_t thread)
{
    (void)index, (void)thread;
    const weights_run *r = context;
    sgm__slide_steps(&r->c, (int64_t *)r->call->scratch);
}

/* One group of a chunk of the batch, examples begin .. end - 1. */
static void sum_group(const weights_run *r, int64_t begin, int64_t end, int64_t group, unsigned char *sums,
                      unsigned char *own)
{
    const sgm__convolution *c = &r->c;
    const sgm__window *w = &c->window;
    int64_t size = (int64_t)c->size;
    unsigned char *gradient = own + r->gradient_at;
    memset(sums, 0, (size_t)(c->filters * r->depth * c->tiles->vector_lanes * size));
    memset(gradient + r->l.plane * size, 0, (size_t)(SGM__SLIDE_SLACK * size));
    for (int64_t example = begin; example < end; example++) {
        const unsigned char *image = r->call->inputs[0].data, *from = r->call->inputs[1].data;
        sgm__slide_copy(c, &r->l, own,
                        image + (example * w->channels + group * c->channels) * c->plane * size);
        for (int64_t i = 0; i < c->filters; i++) {
            copy_gradient(c, &r->l, gradient,
                          from + (example * w->filters + group * c->filters + i) * c->pixels * size);
            sgm__slide_sums slide = {.count = r->l.positions,
                                     .depth = r->depth,
                                     .image = own,
                                     .factors = gradient,
                                     .steps = (const int64_t *)r->call->scratch,
                                     .sums = sums + i * r->depth * c->tiles->vector_lanes * size};
            c->tiles->slide_sums(&slide);
        }
    }
}

static void sum_task(void *context, int64_t index, int32_t thread)
{
    const weights_run *r = context;
    const sgm__convolution *c = &r->c;
    int64_t group = index / r->chunks, chunk = index % r->chunks, batch = c->window.batch;
    unsigned char *sums = r->call->scratch + r->sums_at + (size_t)chunk * r->chunk_bytes;
    sums += group * c->filters * r->depth * c->tiles->vector_lanes * (int64_t)c->size;
    sum_group(r, batch * chunk / r->chunks, batch * (chunk + 1) / r->chunks, group, sums,
              r->call->scratch + r->own_at + (size_t)thread * r->own_bytes);
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
    sgm__pool_post(call->cpu->pool, 1, make_weights_tables, &r, sizeof r);
    sgm__pool_post(call->cpu->pool, r.chunks * c->window.groups, sum_task, &r, sizeof r);
    sgm__pool_post(call->cpu->pool, c->window.groups, finish_task, &r, sizeof r);
}
