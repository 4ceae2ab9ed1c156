/* The gradient of convolution by its weights.
 *
 * A product (convolution.h): rows are (channel, place of the kernel), lanes are filters, steps are the pixels
 * of all images. The gradient of an image (filters, pixels) is transposed into panels (pixels, lanes) block
 * by block, and the image is read in place by offsets. The batch is cut into up to MAXIMUM_CHUNKS chunks of
 * images; a task sums one chunk (and perhaps only some channels), then chunks are added in their order and
 * transposed to (filters, channels, places). Of bfloat16, steps are pairs of images. How many chunks and
 * parts there are depends on shapes alone, so the bits do not depend on the number of threads. */
#include "handlers/cpu/kernels/convolution/convolution_slide.h"
#include "handlers/cpu/kernels/convolution/convolution_winograd.h"
#include "handlers/cpu/kernels/kernels.h"

/* Chunks, or chunks times parts of the channels: tasks of a group. */
#define MAXIMUM_CHUNKS 8
#define MAXIMUM_SUM_BYTES (4 << 20) /* of the sums of all chunks together */

/* How the product is cut, and where scratch memory begins; tasks get a copy. */
typedef struct weights_run {
    const sgm__cpu_call *call;
    sgm__convolution c;
    /* Rows (channels times places) and lanes of a group's sums. */
    int64_t steps, width;
    /* Chunks of the batch; images, or pairs of them, that are computed at once, where an image has few
     * pixels; parts of the channels. */
    int64_t chunks, together, parts;
    int64_t pair; /* images of a step: 1, or 2 */
    bool copies;  /* images, to threads' memory: they get padding, or become pairs */
    /* Bytes in scratch memory: offsets of pixels (of `together` images), offsets and numbers of rows, sums of
     * all chunks, threads' memory. */
    size_t pixels_at, rows_at, sums_at, own_at;
    /* A thread's memory: copied images, then at gradient_at the transposed panel of the gradient, and behind
     * that its pairs before. */
    size_t gradient_at, own_bytes, total;
} weights_run;

static int64_t maximum(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static weights_run plan(const sgm__cpu_call *call)
{
    sgm_type x = sgm__window_type(&call->inputs[0]);
    sgm_type gradient = sgm__window_type(&call->inputs[1]);
    weights_run r = {.call = call};
    sgm__window w = {0};
    sgm__window_weights_gradient(&x, &gradient, &call->node->attributes, &w);
    r.c = sgm__convolution_make(call->cpu, call->output.dtype, &w);
    int64_t size = (int64_t)r.c.size;
    r.pair = r.c.pairs != NULL ? 2 : 1;
    r.copies = r.c.pads || r.pair > 1;
    r.steps = r.c.channels * r.c.places;
    r.width = sgm__convolution_width(&r.c, r.c.filters);
    int64_t sums = r.steps * r.width * w.groups * size;
    r.chunks =
        maximum(1, sgm__minimum(sgm__minimum(MAXIMUM_CHUNKS, w.batch), MAXIMUM_SUM_BYTES / maximum(sums, 1)));
    r.parts = maximum(1, sgm__minimum(r.c.channels, MAXIMUM_CHUNKS / maximum(1, r.chunks * w.groups)));
    int64_t depth = sgm__convolution_depth(&r.c, r.c.tiles->gather_columns);
    r.together = maximum(1, depth / maximum(r.c.pixels, 1));
    r.rows_at = sgm__convolution_align(r.together * r.c.pixels * (int64_t)sizeof(int64_t));
    r.sums_at = r.rows_at + sgm__convolution_align(2 * r.steps * (int64_t)sizeof(int64_t));
    r.own_at = r.sums_at + sgm__convolution_align(r.chunks * sums);
    r.gradient_at =
        r.copies ? sgm__convolution_align(r.together * r.c.channels * r.c.padded_plane * size) : 0;
    r.own_bytes = r.gradient_at + (size_t)r.pair * sgm__convolution_align(2 * SGM__CONVOLUTION_PANEL_BYTES);
    r.total = r.own_at + r.own_bytes * (size_t)call->cpu->threads;
    return r;
}

bool sgm__convolution_weights_is_native(const sgm__cpu_call *call)
{
    weights_run r = plan(call);
    return !sgm__slide_is_faster(&r.c, r.c.filters);
}

static size_t scratch(const sgm__cpu_call *call)
{
    weights_run r = plan(call);
    return sgm__slide_is_faster(&r.c, r.c.filters)       ? sgm__slide_weights_scratch(call, &r.c)
           : sgm__winograd_weights_is_faster(call, &r.c) ? sgm__winograd_weights_scratch(call, &r.c)
                                                         : r.total;
}

/* Elements from one image to the next in what add_pixels reads: copies of one group's channels, or the input
 * itself. */
static int64_t image_stride(const weights_run *r)
{
    return r->copies ? r->c.channels * r->c.padded_plane : r->c.window.channels * r->c.plane;
}

/* Images of a step from `example` on, of which there are `end`. */
static int64_t partners(const weights_run *r, int64_t example, int64_t end)
{
    return sgm__minimum(r->pair, end - example);
}

/* The gradient's panel of the image `example`, and of bfloat16 of the next one, if `images` is 2: pixels
 * first
 * .. last - 1, transposed. Pairs are put together in `own`. */
static void transpose_gradient(const weights_run *r, int64_t example, int64_t images, int64_t group,
                               const sgm__panel *p, int64_t first, int64_t last, unsigned char *panel,
                               unsigned char *own)
{
    const sgm__convolution *c = &r->c;
    int64_t row = c->pixels, pixels = last - first, image = c->window.filters * c->pixels;
    const unsigned char *from = r->call->inputs[1].data;
    from += (example * image + (group * c->filters + p->first) * c->pixels + first) * (int64_t)c->stored;
    if (r->pair > 1) {
        for (int64_t f = 0; f < p->count; f++)
            c->pairs->copy_rows(own + f * pixels * (int64_t)c->size, pixels,
                                from + f * c->pixels * (int64_t)c->stored, image, pixels, images);
        from = own;
        row = pixels;
    }
    c->tiles->transpose(panel, p->width, from, row, p->count, pixels);
}

/* What a task adds up: images example .. end - 1, of which `together` or fewer steps are computed at once. */
typedef struct image_run {
    int64_t example, end, group;
    const unsigned char *images; /* of the group's channels, or copies of them */
    unsigned char *sums, *own;
    bool add;
} image_run;

/* For pixels first .. last - 1: transposes the gradient's panel, and sums rows k .. k_last - 1 over these
 * pixels. More than one step of images only with all of their pixels. */
static void add_pixels(const weights_run *r, const image_run *t, const sgm__panel *p, int64_t first,
                       int64_t last, int64_t k, int64_t k_last, bool add)
{
    const sgm__convolution *c = &r->c;
    int64_t size = (int64_t)c->size, count = 0;
    unsigned char *panel = t->own + r->gradient_at;
    unsigned char *pairs = panel + sgm__convolution_align(2 * SGM__CONVOLUTION_PANEL_BYTES);
    for (int64_t example = t->example; example < t->end; example += r->pair, count++)
        transpose_gradient(r, example, partners(r, example, t->end), t->group, p, first, last,
                           panel + count * (last - first) * p->width * size, pairs);
    const int64_t *rows = (const int64_t *)(r->call->scratch + r->rows_at), *order = rows + r->steps;
    sgm__gather tile = {.depth = count * (last - first),
                        .a = t->images,
                        .b = panel,
                        .steps = (const int64_t *)(r->call->scratch + r->pixels_at) + first,
                        .c = t->sums + (p->first * r->steps) * size,
                        .add = add};
    sgm__convolution_rows(p, &tile, rows + k, order + k, k_last - k);
}

/* Copies channels first .. last - 1 of the images. */
static void copy_images(const weights_run *r, const image_run *t, int64_t first, int64_t last)
{
    const sgm__convolution *c = &r->c;
    int64_t image = c->window.channels * c->plane, copy = image_stride(r), count = 0;
    const unsigned char *from = t->images;
    for (int64_t example = t->example; example < t->end; example += r->pair, count++)
        sgm__convolution_pad(c, t->own + (count * copy + first * c->padded_plane) * (int64_t)c->size,
                             from + ((example - t->example) * image + first * c->plane) * (int64_t)c->stored,
                             last - first, partners(r, example, t->end) > 1 ? image : 0);
}

/* All panels of filters for some images of a chunk, channels first .. last - 1. */
static void add_images(const weights_run *r, image_run *t, int64_t first, int64_t last)
{
    const sgm__convolution *c = &r->c;
    t->images = r->call->inputs[0].data;
    t->images += (t->example * c->window.channels + t->group * c->channels) * c->plane * (int64_t)c->stored;
    if (r->copies) {
        copy_images(r, t, first, last);
        t->images = t->own;
    }
    for (int64_t i = 0; i < sgm__convolution_panels(c, c->filters); i++) {
        sgm__panel p = sgm__convolution_panel(c, c->filters, i);
        int64_t depth = maximum(1, sgm__convolution_depth(c, p.width));
        int64_t blocks = t->end - t->example > r->pair ? 1 : (c->pixels + depth - 1) / depth;
        for (int64_t b = 0; b < blocks; b++)
            add_pixels(r, t, &p, c->pixels * b / blocks, c->pixels * (b + 1) / blocks, first * c->places,
                       last * c->places, t->add || b > 0);
    }
}

/* (panels, rows, lanes) of one chunk and group. */
static unsigned char *sums_of(const weights_run *r, int64_t chunk, int64_t group)
{
    return r->call->scratch + r->sums_at +
           (size_t)((chunk * r->c.window.groups + group) * r->steps * r->width) * r->c.size;
}

/* One part of the channels of one group, for one chunk of the batch. */
static void sum_task(void *context, int64_t index, int32_t thread)
{
    const weights_run *r = context;
    const sgm__convolution *c = &r->c;
    int64_t part = index % r->parts, group = index / r->parts % c->window.groups;
    int64_t chunk = index / r->parts / c->window.groups, batch = c->window.batch;
    int64_t begin = batch * chunk / r->chunks, end = batch * (chunk + 1) / r->chunks;
    int64_t first = c->channels * part / r->parts, last = c->channels * (part + 1) / r->parts;
    image_run t = {.group = group,
                   .sums = sums_of(r, chunk, group),
                   .own = r->call->scratch + r->own_at + (size_t)thread * r->own_bytes};
    for (t.example = begin; t.example < end; t.example = t.end) {
        t.end = sgm__minimum(t.example + r->together * r->pair, end);
        t.add = t.example > begin;
        add_images(r, &t, first, last);
    }
}

/* sums += more, of n numbers of 4 or 8 bytes. */
static void add_sums(int64_t n, int64_t size, void *sums, const void *more)
{
    float *singles = sums;
    double *doubles = sums;
    const float *more_singles = more;
    const double *more_doubles = more;
    if (size == 4)
        for (int64_t i = 0; i < n; i++)
            singles[i] += more_singles[i];
    else
        for (int64_t i = 0; i < n; i++)
            doubles[i] += more_doubles[i];
}

/* For one channel of a group: adds the other chunks' sums to those of the first, in order, and transposes
 * them to (filters, places). */
static void finish_task(void *context, int64_t index, int32_t thread)
{
    (void)thread;
    const weights_run *r = context;
    const sgm__convolution *c = &r->c;
    int64_t channel = index % c->channels, group = index / c->channels, size = (int64_t)c->size;
    int64_t row = channel * c->places;
    unsigned char *to = r->call->output.data;
    for (int64_t i = 0; i < sgm__convolution_panels(c, c->filters); i++) {
        sgm__panel p = sgm__convolution_panel(c, c->filters, i);
        int64_t at = (p.first * r->steps + row * p.width) * size, n = c->places * p.width;
        unsigned char *all = sums_of(r, 0, group) + at;
        for (int64_t chunk = 1; chunk < r->chunks; chunk++) {
            const unsigned char *more = sums_of(r, chunk, group) + at;
            add_sums(n, size, all, more);
        }
        sgm__convolution_tiles(c)->spread(to + ((group * c->filters + p.first) * r->steps + row) *
                                                   (int64_t)c->stored,
                                          r->steps, all, p.width, p.count, c->places, NULL, SGM__NO_LIMITS);
    }
}

/* One task before all others: the offsets. */
static void make_tables(void *context, int64_t index, int32_t thread)
{
    (void)index, (void)thread;
    const weights_run *r = context;
    const sgm__convolution *c = &r->c;
    int64_t *pixels = (int64_t *)(r->call->scratch + r->pixels_at);
    int64_t *rows = (int64_t *)(r->call->scratch + r->rows_at);
    for (int64_t i = 0; i < r->together; i++) {
        sgm__convolution_pixels(c, pixels + i * c->pixels);
        for (int64_t k = 0; k < c->pixels; k++)
            pixels[i * c->pixels + k] += i * image_stride(r);
    }
    sgm__convolution_steps(c, c->channels, rows);
    for (int64_t i = 0; i < r->steps; i++)
        rows[r->steps + i] = i;
}

static sgm_status run(const sgm__cpu_call *call)
{
    weights_run r = plan(call);
    const sgm__convolution *c = &r.c;
    if (sgm_shape_elements(&call->output.shape) == 0)
        return SGM_OK;
    if (c->window.batch == 0) {
        sgm__pool_ready(call->cpu->pool);
        memset(call->output.data, 0, (size_t)sgm_shape_elements(&call->output.shape) * c->stored);
        return SGM_OK;
    }
    if (sgm__slide_is_faster(c, c->filters)) {
        sgm__slide_weights_run(call, c);
        return SGM_OK;
    }
    if (sgm__winograd_weights_is_faster(call, c)) {
        sgm__winograd_weights_run(call, c);
        return SGM_OK;
    }
    sgm__pool_post(call->cpu->pool, 1, make_tables, &r, sizeof r);
    sgm__pool_post(call->cpu->pool, r.chunks * c->window.groups * r.parts, sum_task, &r, sizeof r);
    sgm__pool_post(call->cpu->pool, c->window.groups * c->channels, finish_task, &r, sizeof r);
    return SGM_OK;
}

const sgm__cpu_kernel sgm__cpu_convolution_weights_gradient = {.op = &sgm__op_convolution_weights_gradient,
                                                               .types = SGM__CPU_FLOATS,
                                                               .scratch = scratch,
                                                               .posts = true,
                                                               .run = run};
