/* Convolution (forward) and its gradient by the input.
 *
 * Images are (batch, channels, height, width), weights (filters, channels of a group, height, width); groups
 * are computed as convolutions of their own. Forward: rows are pixels of the result, steps are (channel,
 * place of the kernel), lanes are filters. A block of BLOCK_PIXELS pixels by one panel of filters is computed
 * with channels innermost in a thread's memory and transposed to its place, where biases are added. The
 * weights are packed at the beginning of each run, as they change with each update; constant ones once
 * (forward_pack). Of bfloat16, steps are pairs of channels, and by the input of filters. Tasks are parts of
 * images; sums depend on shapes alone. run/fused.c may run forward image by image with an activation behind
 * it (forward_parts). Groups of few channels are computed in another way, convolution_slide.c's, windows of 3
 * x 3 by convolution_winograd.c, those of one place by convolution_pointwise.c. */
#include "handlers/cpu/kernels/convolution/convolution.h"
#include "handlers/cpu/kernels/convolution/convolution_pointwise.h"
#include "handlers/cpu/kernels/convolution/convolution_slide.h"
#include "handlers/cpu/kernels/convolution/convolution_winograd.h"

/* Pixels of a result that are computed, then transposed, while they are in the first cache. */
#define BLOCK_PIXELS 96
#define TASKS_PER_THREAD 4
/* Bytes of an image's result up to which images are parts for run/fused.c: a part is read again at once, from
 * the second cache. */
#define MAXIMUM_PART_BYTES (1 << 19)

/* --- scratch --- */

/* Scratch memory. Shared by all threads: offsets of pixels and of steps, packed weights. Of each thread: a
 * copied image, a block of results. Members are bytes from the beginning of the shared or of a thread's
 * memory. */
typedef struct layout {
    /* Where the shared tables, the weights and the threads' memory begin. */
    size_t pixels, steps, weights, threads;
    /* A thread's memory has the image first and the block of results at `block`; its size; bytes in all. */
    size_t block, thread_bytes, total;
} layout;

static layout lay_out(const sgm__convolution *c, int64_t copied, int64_t steps, int64_t weights,
                      int64_t block, int32_t threads)
{
    layout l = {.pixels = 0};
    l.steps = sgm__convolution_align(c->pixels * (int64_t)sizeof(int64_t));
    l.weights = l.steps + sgm__convolution_align(steps * (int64_t)sizeof(int64_t));
    l.threads = l.weights + sgm__convolution_align(weights * (int64_t)c->size);
    l.block = copied > 0 ? sgm__convolution_align(copied * (int64_t)c->size) : 0;
    l.thread_bytes = l.block + sgm__convolution_align(block * (int64_t)c->size);
    l.total = l.threads + l.thread_bytes * (size_t)threads;
    return l;
}

/* The window from the operands' types, by the reader for this operation. Types were checked when the graph
 * was recorded. */
static sgm__window window_of(const sgm__cpu_call *call,
                             sgm_status (*read)(const sgm_type *a, const sgm_type *b,
                                                const sgm_attributes *attributes, sgm__window *window))
{
    sgm_type a = sgm__window_type(&call->inputs[0]), b = sgm__window_type(&call->inputs[1]);
    sgm__window w = {0};
    read(&a, &b, &call->node->attributes, &w);
    return w;
}

/* Parts into which each image's pixels are divided, so that there are tasks for all threads where images are
 * few. */
static int64_t choose_parts(const sgm__cpu_call *call, int64_t images, int64_t maximum)
{
    int64_t wanted = (int64_t)call->cpu->threads * TASKS_PER_THREAD;
    if (call->cpu->threads == 1 || images >= wanted || images == 0)
        return 1;
    return sgm__minimum((wanted + images - 1) / images, maximum > 0 ? maximum : 1);
}

typedef struct run_state {
    const sgm__cpu_call *call;
    sgm__convolution c;
    layout at;
    unsigned char *shared; /* the tables and packed weights, at->pixels to at->threads */
    int64_t parts;         /* of each image */
    bool copies;           /* images, to threads' memory: they get padding, or become pairs */
    /* As convolution_slide.c, convolution_winograd.c or convolution_pointwise.c do: there are no parts, and
     * no packed weights. */
    bool slides, winograd, pointwise;
} run_state;

/* --- forward --- */

/* Shapes and scratch memory; cheap enough to be found anew by each run and part. */
static run_state forward_plan(const sgm__cpu_call *call)
{
    sgm__window w = window_of(call, sgm__window_convolution);
    run_state r = {.call = call, .parts = 1};
    r.c = sgm__convolution_make(call->cpu, call->output.dtype, &w);
    r.slides = sgm__slide_is_faster(&r.c, r.c.filters);
    r.winograd = !r.slides && sgm__winograd_is_faster(call, &r.c, SGM__WINOGRAD_FORWARD);
    r.pointwise = !r.slides && r.c.pairs == NULL && sgm__pointwise_is_faster(&r.c);
    r.copies = r.c.pads || r.c.pairs != NULL;
    int64_t planes = sgm__convolution_planes(&r.c, r.c.channels), steps = planes * r.c.places;
    int64_t copied = r.copies ? planes * r.c.padded_plane : 0;
    int64_t block = r.c.pairs != NULL && r.c.places > BLOCK_PIXELS ? r.c.places : BLOCK_PIXELS;
    sgm__slide_layout l = sgm__slide_layout_make(&r.c);
    if (r.slides)
        r.at = lay_out(&r.c, copied, w.size[1], 0, sgm__slide_room(&r.c, &l), call->cpu->threads);
    else
        r.at = lay_out(&r.c, copied, steps, w.groups * steps * sgm__convolution_width(&r.c, r.c.filters),
                       block * r.c.tiles->gather_columns, call->cpu->threads);
    r.shared = call->packed != NULL ? (unsigned char *)(uintptr_t)call->packed : call->scratch;
    return r;
}

bool sgm__convolution_is_native(const sgm__cpu_call *call)
{
    return !forward_plan(call).slides;
}

static size_t forward_scratch(const sgm__cpu_call *call)
{
    run_state r = forward_plan(call);
    if (r.winograd)
        return sgm__winograd_scratch(call, &r.c, SGM__WINOGRAD_FORWARD);
    return r.pointwise ? sgm__pointwise_scratch(call, &r.c) : r.at.total;
}

/* What comes before all groups if they slide. */
static void make_slide_steps(void *context, int64_t index, int32_t thread)
{
    (void)index, (void)thread;
    const run_state *r = context;
    sgm__slide_layout l = sgm__slide_layout_make(&r->c);
    sgm__slide_steps(&r->c, &l, (int64_t *)(r->shared + r->at.steps));
}

/* One panel of a group's weights of bfloat16, as pairs of channels, by way of `own`: the kernels of a pair
 * for all filters of the panel. */
static void pack_pairs(const sgm__convolution *c, const sgm__panel *p, const unsigned char *from,
                       unsigned char *to, unsigned char *own)
{
    int64_t planes = sgm__convolution_planes(c, c->channels), kernels = c->channels * c->places;
    int64_t size = (int64_t)c->size, stored = (int64_t)c->stored;
    for (int64_t plane = 0; plane < planes; plane++, to += c->places * p->width * size) {
        int64_t count = sgm__minimum(c->channels - 2 * plane, 2);
        for (int64_t i = 0; i < p->count; i++)
            c->pairs->copy_rows(own + i * c->places * size, c->places,
                                from + ((p->first + i) * kernels + 2 * plane * c->places) * stored, c->places,
                                c->places, count);
        c->tiles->transpose(to, p->width, own, c->places, p->count, c->places);
    }
}

/* Weights of one group: (filters, steps) to panels of (steps, lanes). `own`: places * gather_columns elements
 * for those of bfloat16. */
static void pack_group(const run_state *r, int64_t group, unsigned char *own)
{
    const sgm__convolution *c = &r->c;
    int64_t steps = sgm__convolution_planes(c, c->channels) * c->places, size = (int64_t)c->size;
    unsigned char *to =
        r->shared + r->at.weights + group * steps * sgm__convolution_width(c, c->filters) * size;
    const unsigned char *from = r->call->inputs[1].data;
    from += group * c->filters * c->channels * c->places * (int64_t)c->stored;
    for (int64_t i = 0; i < sgm__convolution_panels(c, c->filters); i++) {
        sgm__panel p = sgm__convolution_panel(c, c->filters, i);
        unsigned char *panel = to + p.first * steps * size;
        if (c->pairs != NULL)
            pack_pairs(c, &p, from, panel, own);
        else
            c->tiles->transpose(panel, p.width, from + p.first * steps * size, steps, p.count, steps);
    }
}

static void make_forward_tables(const run_state *r)
{
    sgm__convolution_pixels(&r->c, (int64_t *)(r->shared + r->at.pixels));
    sgm__convolution_steps(&r->c, sgm__convolution_planes(&r->c, r->c.channels),
                           (int64_t *)(r->shared + r->at.steps));
}

/* The last task makes the tables of offsets. */
static void pack_forward(void *context, int64_t group, int32_t thread)
{
    const run_state *r = context;
    if (group == r->c.window.groups)
        make_forward_tables(r);
    else
        pack_group(r, group,
                   r->call->scratch + r->at.threads + (size_t)thread * r->at.thread_bytes + r->at.block);
}

/* Eight numbers of the table below. */
#define EIGHT(n) n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7
/* Rows of a block of results lie one after the other. */
static const int64_t block_rows[BLOCK_PIXELS] = {EIGHT(0),  EIGHT(8),  EIGHT(16), EIGHT(24),
                                                 EIGHT(32), EIGHT(40), EIGHT(48), EIGHT(56),
                                                 EIGHT(64), EIGHT(72), EIGHT(80), EIGHT(88)};

/* Pixels first .. last - 1 (one block) of all filters of a group. `image`: the group's channels, padded;
 * `to`: the result of the whole example. More steps than a panel may have are added block by block. */
static void forward_pixels(const run_state *r, const unsigned char *image, int64_t group, int64_t first,
                           int64_t last, unsigned char *block, unsigned char *to)
{
    const sgm__convolution *c = &r->c;
    const int64_t *pixels = (const int64_t *)(r->shared + r->at.pixels);
    const int64_t *all_steps = (const int64_t *)(r->shared + r->at.steps);
    int64_t steps = sgm__convolution_planes(c, c->channels) * c->places, size = (int64_t)c->size;
    int64_t stored = (int64_t)c->stored;
    const unsigned char *weights =
        r->shared + r->at.weights + group * steps * sgm__convolution_width(c, c->filters) * size;
    for (int64_t i = 0; i < sgm__convolution_panels(c, c->filters); i++) {
        sgm__panel p = sgm__convolution_panel(c, c->filters, i);
        int64_t depth = sgm__convolution_depth(c, p.width);
        int64_t filter = group * c->filters + p.first;
        for (int64_t k = 0; k < steps; k += depth) {
            sgm__gather tile = {.depth = sgm__minimum(depth, steps - k),
                                .a = image,
                                .b = weights + (p.first * steps + k * p.width) * size,
                                .steps = all_steps + k,
                                .c = block,
                                .add = k > 0};
            sgm__convolution_rows(&p, &tile, pixels + first, block_rows, last - first);
        }
        const unsigned char *biases = r->call->input_count == 3 ? r->call->inputs[2].data : NULL;
        sgm__convolution_tiles(c)->spread(to + (filter * c->pixels + first) * stored, c->pixels, block,
                                          p.width, p.count, last - first,
                                          biases != NULL ? biases + filter * stored : NULL, r->call->limits);
    }
}

/* Groups first .. last - 1 of an example; `to` as above. */
static void slide_groups(const run_state *r, int64_t example, int64_t first, int64_t last, int32_t thread,
                         unsigned char *to)
{
    const sgm__convolution *c = &r->c;
    int64_t size = (int64_t)c->size, depth = c->channels * c->places;
    const int64_t *steps = (const int64_t *)(r->shared + r->at.steps);
    unsigned char *own = r->call->scratch + r->at.threads + (size_t)thread * r->at.thread_bytes + r->at.block;
    const unsigned char *images = r->call->inputs[0].data, *weights = r->call->inputs[1].data;
    const unsigned char *biases = r->call->input_count == 3 ? r->call->inputs[2].data : NULL;
    images += example * c->window.channels * c->plane * size;
    sgm__slide_layout l = sgm__slide_layout_make(c);
    sgm__slide_clear(c, &l, own);
    for (int64_t group = first; group < last; group++)
        sgm__slide_forward(c, steps, images + group * c->channels * c->plane * size,
                           weights + group * c->filters * depth * size,
                           biases != NULL ? biases + group * c->filters * size : NULL, r->call->limits, own,
                           to + group * c->filters * c->pixels * size);
}

/* Pixels begin .. end - 1 of one group of an example; `to` as above. */
static void forward_group(const run_state *r, int64_t example, int64_t group, int64_t begin, int64_t end,
                          int32_t thread, unsigned char *to)
{
    const sgm__convolution *c = &r->c;
    unsigned char *own = r->call->scratch + r->at.threads + (size_t)thread * r->at.thread_bytes;
    const unsigned char *image = r->call->inputs[0].data;
    image += (size_t)((example * c->window.channels + group * c->channels) * c->plane) * c->stored;
    if (r->copies) {
        sgm__convolution_pad_steps(c, own, image, c->channels);
        image = own;
    }
    for (int64_t first = begin; first < end; first += BLOCK_PIXELS)
        forward_pixels(r, image, group, first, sgm__minimum(first + BLOCK_PIXELS, end), own + r->at.block,
                       to);
}

/* One part of the pixels of one group of an example. The padded image is made anew for each part. */
static void forward_task(void *context, int64_t index, int32_t thread)
{
    const run_state *r = context;
    const sgm__window *w = &r->c.window;
    int64_t image = index / r->parts, example = image / w->groups, begin, end;
    sgm__pool_part(r->c.pixels, SGM__GATHER_ROWS, r->parts, index % r->parts, &begin, &end);
    unsigned char *to = r->call->output.data;
    forward_group(r, example, image % w->groups, begin, end, thread,
                  to + (size_t)(example * w->filters * r->c.pixels) * r->c.stored);
}

/* Some groups of an example. */
static void slide_task(void *context, int64_t index, int32_t thread)
{
    const run_state *r = context;
    const sgm__window *w = &r->c.window;
    int64_t bundle = sgm__slide_bundle(&r->c), bundles = sgm__slide_bundles(&r->c);
    int64_t example = index / bundles, first = index % bundles * bundle;
    unsigned char *to = r->call->output.data;
    slide_groups(r, example, first, sgm__minimum(first + bundle, w->groups), thread,
                 to + (size_t)(example * w->filters * r->c.pixels) * r->c.size);
}

/* Posts what comes before all images: packing, if it was not done. */
static void forward_begin(const sgm__cpu_call *call)
{
    run_state r = forward_plan(call);
    if (call->packed != NULL || r.pointwise)
        return;
    if (r.winograd)
        sgm__winograd_begin(call, &r.c);
    else if (r.slides)
        sgm__pool_post(call->cpu->pool, 1, make_slide_steps, &r, sizeof r);
    else
        sgm__pool_post(call->cpu->pool, r.c.window.groups + 1, pack_forward, &r, sizeof r);
}

static sgm_status forward_run(const sgm__cpu_call *call)
{
    run_state r = forward_plan(call);
    const sgm__window *w = &r.c.window;
    int64_t images = w->batch * w->groups;
    if (sgm_shape_elements(&call->output.shape) == 0)
        return SGM_OK;
    if (r.winograd) {
        sgm__winograd_run(call, &r.c, SGM__WINOGRAD_FORWARD);
        return SGM_OK;
    }
    if (r.pointwise) {
        sgm__pointwise_run(call, &r.c);
        return SGM_OK;
    }
    forward_begin(call);
    if (r.slides) {
        sgm__pool_post(call->cpu->pool, w->batch * sgm__slide_bundles(&r.c), slide_task, &r, sizeof r);
        return SGM_OK;
    }
    r.parts = choose_parts(call, images, r.c.pixels / BLOCK_PIXELS);
    sgm__pool_post(call->cpu->pool, images * r.parts, forward_task, &r, sizeof r);
    return SGM_OK;
}

/* A part is an example, if there are enough of them for all threads and each is small. */
static int64_t forward_parts(const sgm__cpu_call *call, int64_t *maximum)
{
    run_state r = forward_plan(call);
    const sgm__window *w = &r.c.window;
    *maximum = w->filters * r.c.pixels;
    if (r.winograd && !sgm__winograd_has_parts(call, &r.c))
        return 0;
    bool small = *maximum * (int64_t)r.c.size <= MAXIMUM_PART_BYTES;
    return small && (call->cpu->threads == 1 || w->batch >= 4 * (int64_t)call->cpu->threads) ? w->batch : 0;
}

static void forward_part(const sgm__cpu_call *call, int64_t index, int32_t thread, void *to, int64_t *first,
                         int64_t *last)
{
    run_state r = forward_plan(call);
    int64_t elements = r.c.window.filters * r.c.pixels;
    if (r.winograd)
        sgm__winograd_part(call, &r.c, index, thread, to);
    else if (r.pointwise)
        sgm__pointwise_part(call, &r.c, index, thread, to);
    else if (r.slides)
        slide_groups(&r, index, 0, r.c.window.groups, thread, to);
    else
        for (int64_t group = 0; group < r.c.window.groups; group++)
            forward_group(&r, index, group, 0, r.c.pixels, thread, to);
    *first = index * elements;
    *last = *first + elements;
}

/* What forward_begin makes, of constant weights. */
static size_t forward_packed_bytes(const sgm__cpu_call *call)
{
    run_state r = forward_plan(call);
    if (r.winograd)
        return sgm__winograd_packed_bytes(call, &r.c);
    return r.pointwise ? 0 : r.at.threads;
}

static sgm_status forward_pack(const sgm__cpu_call *call, unsigned char *to)
{
    run_state r = forward_plan(call);
    r.shared = to;
    if (r.winograd)
        return sgm__winograd_pack(call, &r.c, to);
    if (r.slides) {
        make_slide_steps(&r, 0, 0);
        return SGM_OK;
    }
    size_t bytes = (size_t)(r.c.places * r.c.tiles->gather_columns) * r.c.size;
    unsigned char *own = r.c.pairs != NULL ? sgm__alloc_aligned(bytes) : NULL;
    if (r.c.pairs != NULL && own == NULL)
        return SGM_ERROR_MEMORY;
    for (int64_t group = 0; group < r.c.window.groups; group++)
        pack_group(&r, group, own);
    make_forward_tables(&r);
    sgm__free_aligned(own);
    return SGM_OK;
}

const sgm__cpu_kernel sgm__cpu_convolution = {.op = &sgm__op_convolution,
                                              .types = SGM__CPU_FLOATS,
                                              .scratch = forward_scratch,
                                              .packed_bytes = forward_packed_bytes,
                                              .pack = forward_pack,
                                              .posts = true,
                                              .run = forward_run,
                                              .parts = forward_parts,
                                              .begin = forward_begin,
                                              .part = forward_part,
                                              .limits = true};

/* --- by the input ---
 *
 * Each place of the kernel by itself is a product of the gradient (pixels x filters) with weights (filters x
 * channels), whose rows are added to the image's pixels under that place. */

/* As forward_plan. The table of steps is followed by one of pixels in order. */
static sgm__convolution input_plan(const sgm__cpu_call *call, layout *at)
{
    sgm__window w = window_of(call, sgm__window_input_gradient);
    sgm__convolution c = sgm__convolution_make(call->cpu, call->output.dtype, &w);
    int64_t planes = sgm__convolution_planes(&c, c.filters);
    *at = lay_out(&c, c.pairs != NULL ? planes * c.pixels : 0, planes + c.pixels,
                  w.groups * planes * c.places * sgm__convolution_width(&c, c.channels),
                  c.padded_plane * c.tiles->gather_columns, call->cpu->threads);
    return c;
}

bool sgm__convolution_input_is_native(const sgm__cpu_call *call)
{
    layout at;
    sgm__convolution c = input_plan(call, &at);
    return !sgm__slide_is_faster(&c, c.channels);
}

static size_t input_scratch(const sgm__cpu_call *call)
{
    layout at;
    sgm__convolution c = input_plan(call, &at);
    if (sgm__slide_is_faster(&c, c.channels))
        return sgm__slide_input_scratch(call, &c);
    return sgm__winograd_is_faster(call, &c, SGM__WINOGRAD_INPUT)
               ? sgm__winograd_scratch(call, &c, SGM__WINOGRAD_INPUT)
               : at.total;
}

/* steps: a filter's pixels from those of filter 0. order: pixels of the gradient, one after the other. The
 * forward offsets of pixels say where sums go. */
static void make_input_tables(const run_state *r)
{
    int64_t planes = sgm__convolution_planes(&r->c, r->c.filters);
    int64_t *steps = (int64_t *)(r->call->scratch + r->at.steps), *order = steps + planes;
    sgm__convolution_pixels(&r->c, (int64_t *)(r->call->scratch + r->at.pixels));
    for (int64_t i = 0; i < planes; i++)
        steps[i] = i * r->c.pixels;
    for (int64_t i = 0; i < r->c.pixels; i++)
        order[i] = i;
}

/* A row of a panel below: the weights of a filter, or of bfloat16 of two, for the panel's channels, which lie
 * `places` elements apart. `partner`: from those to the second filter's; 0: there is none. */
static void pack_row(const sgm__convolution *c, const sgm__panel *p, unsigned char *to,
                     const unsigned char *from, int64_t partner)
{
    if (c->pairs == NULL) {
        sgm__cpu_copy_row(to, 1, from, c->places, p->count, c->size);
        return;
    }
    uint16_t *pairs = (uint16_t *)(void *)to;
    const uint16_t *halves = (const uint16_t *)(const void *)from;
    for (int64_t i = 0; i < p->count; i++) {
        pairs[2 * i] = halves[i * c->places];
        pairs[2 * i + 1] = partner != 0 ? halves[partner + i * c->places] : 0;
    }
}

/* Weights of one group and one place of the kernel: (filters, channels, places) to panels of (places,
 * filters, lanes). The last task makes the tables. */
static void pack_input(void *context, int64_t index, int32_t thread)
{
    (void)thread;
    const run_state *r = context;
    const sgm__convolution *c = &r->c;
    int64_t group = index / c->places, place = index % c->places, size = (int64_t)c->size;
    int64_t planes = sgm__convolution_planes(c, c->filters), each = c->pairs != NULL ? 2 : 1;
    int64_t kernels = c->channels * c->places;
    if (group == c->window.groups) {
        make_input_tables(r);
        return;
    }
    unsigned char *to = r->call->scratch + r->at.weights +
                        group * planes * c->places * sgm__convolution_width(c, c->channels) * size;
    const unsigned char *from = r->call->inputs[1].data;
    from += (group * c->filters * kernels + place) * (int64_t)c->stored;
    for (int64_t i = 0; i < sgm__convolution_panels(c, c->channels); i++) {
        sgm__panel p = sgm__convolution_panel(c, c->channels, i);
        unsigned char *panel = to + (p.first * c->places + place * p.width) * planes * size;
        memset(panel, 0, (size_t)(planes * p.width * size));
        for (int64_t f = 0; f < c->filters; f += each)
            pack_row(c, &p, panel + f / each * p.width * size,
                     from + (f * kernels + p.first * c->places) * (int64_t)c->stored,
                     f + 1 < c->filters ? kernels : 0);
    }
}

/* Transposes sums (pixels, lanes) of a padded image to (channels, pixels) without padding. */
static void crop(const sgm__convolution *c, const sgm__panel *p, const unsigned char *from, unsigned char *to)
{
    const sgm__window *w = &c->window;
    const sgm__tiles *tiles = sgm__convolution_tiles(c);
    int64_t size = (int64_t)c->size;
    if (!c->pads) {
        tiles->spread(to, c->plane, from, p->width, p->count, c->plane, NULL, SGM__NO_LIMITS);
        return;
    }
    for (int64_t i = 0; i < w->in[0]; i++)
        tiles->spread(to + i * w->in[1] * (int64_t)c->stored, c->plane,
                      from + ((i + w->before[0]) * c->padded[1] + w->before[1]) * p->width * size, p->width,
                      p->count, w->in[1], NULL, SGM__NO_LIMITS);
}

/* Adds what a block of pixels of the gradient, from `first` on, gives to the pixels of the image under one
 * place of the kernel. Rows of a tile go to different pixels, so no two rows add to one element at once. */
static void add_place(const run_state *r, const sgm__panel *p, const unsigned char *gradient,
                      const unsigned char *weights, int64_t place, int64_t first, unsigned char *sums)
{
    const sgm__convolution *c = &r->c;
    const sgm__window *w = &c->window;
    const int64_t *pixels = (const int64_t *)(r->call->scratch + r->at.pixels);
    int64_t planes = sgm__convolution_planes(c, c->filters);
    const int64_t *steps = (const int64_t *)(r->call->scratch + r->at.steps), *order = steps + planes;
    int64_t size = (int64_t)c->size, depth = sgm__convolution_depth(c, p->width);
    int64_t at = place / w->size[1] * w->dilation[0] * c->padded[1] + place % w->size[1] * w->dilation[1];
    for (int64_t k = 0; k < planes; k += depth) {
        sgm__gather tile = {.depth = sgm__minimum(depth, planes - k),
                            .a = gradient,
                            .b = weights +
                                 ((p->first * c->places + place * p->width) * planes + k * p->width) * size,
                            .steps = steps + k,
                            .c = sums + at * p->width * size,
                            .add = true};
        sgm__convolution_rows(p, &tile, order + first, pixels + first,
                              sgm__minimum(BLOCK_PIXELS, c->pixels - first));
    }
}

/* One panel of channels of one group of an example: all sums stay in the thread's memory until they are
 * complete. */
static void input_task(void *context, int64_t index, int32_t thread)
{
    const run_state *r = context;
    const sgm__convolution *c = &r->c;
    const sgm__window *w = &c->window;
    int64_t panels = sgm__convolution_panels(c, c->channels), image_number = index / panels;
    int64_t example = image_number / w->groups, group = image_number % w->groups, size = (int64_t)c->size;
    int64_t stored = (int64_t)c->stored, planes = sgm__convolution_planes(c, c->filters);
    sgm__panel p = sgm__convolution_panel(c, c->channels, index % panels);
    unsigned char *own = r->call->scratch + r->at.threads + (size_t)thread * r->at.thread_bytes;
    unsigned char *sums = own + r->at.block;
    const unsigned char *weights = r->call->scratch + r->at.weights +
                                   group * planes * c->places * sgm__convolution_width(c, c->channels) * size;
    const unsigned char *gradient = r->call->inputs[0].data;
    gradient += (example * w->filters + group * c->filters) * c->pixels * stored;
    if (c->pairs != NULL) {
        c->pairs->copy_rows(own, c->pixels, gradient, c->pixels, c->pixels, c->filters);
        gradient = own;
    }
    memset(sums, 0, (size_t)(c->padded_plane * p.width * size));
    for (int64_t first = 0; first < c->pixels; first += BLOCK_PIXELS)
        for (int64_t place = 0; place < c->places; place++)
            add_place(r, &p, gradient, weights, place, first, sums);
    unsigned char *to = r->call->output.data;
    to += (example * w->channels + group * c->channels + p.first) * c->plane * stored;
    crop(c, &p, sums, to);
}

static sgm_status input_run(const sgm__cpu_call *call)
{
    run_state r = {.call = call};
    r.c = input_plan(call, &r.at);
    const sgm__convolution *c = &r.c;
    if (sgm_shape_elements(&call->output.shape) == 0)
        return SGM_OK;
    if (sgm__slide_is_faster(c, c->channels)) {
        sgm__slide_input_run(call, c);
        return SGM_OK;
    }
    if (sgm__winograd_is_faster(call, c, SGM__WINOGRAD_INPUT)) {
        sgm__winograd_run(call, c, SGM__WINOGRAD_INPUT);
        return SGM_OK;
    }
    sgm__pool_post(call->cpu->pool, c->window.groups * c->places + 1, pack_input, &r, sizeof r);
    sgm__pool_post(call->cpu->pool,
                   c->window.batch * c->window.groups * sgm__convolution_panels(c, c->channels), input_task,
                   &r, sizeof r);
    return SGM_OK;
}

const sgm__cpu_kernel sgm__cpu_convolution_input_gradient = {.op = &sgm__op_convolution_input_gradient,
                                                             .types = SGM__CPU_FLOATS,
                                                             .scratch = input_scratch,
                                                             .posts = true,
                                                             .run = input_run};
