/* Convolutions of 3 x 3 in steps of one by Winograd's minimal filtering (vector/vector_convolution.h has
 * the transforms and the source).
 *
 * Results are tiles of 2 x 2, or of 4 x 4 of float32, whichever is estimated to be faster. A block is some
 * images, or some rows of tiles of one, so that what belongs to it stays in the second cache. For a block,
 * the rows and columns of each channel are split as for a stride of a tile (convolution_phases.h), so that
 * neighbouring tiles are neighbours in memory; transformed, it is a row of each of 16 (or 36) matrices
 * (channels, tiles). These are multiplied by as many matrices of the weights (filters, channels), which are
 * made once in each run, or once for all if the weights are constant, and the products (filters, tiles) are
 * transformed to results. Sums go in the order of the channels, so they depend on shapes alone.
 *
 * Images and weights of bfloat16 are transformed as float32 and rounded; two channels are a pair of what is
 * multiplied (vector/vector_pairs.h), and a step of its products. */
#include "handlers/cpu/kernels/convolution/convolution_winograd.h"
#include "handlers/cpu/kernels/convolution/convolution_phases.h"

#define BLOCK_POSITIONS 96 /* tiles of a block, about */
/* What costs what, in multiply-adds of the products by float32, as measured with AVX-512
 * (docs/performance.md, Convolutions): a number of the transformed image or results, or of the weights, in
 * tiles of 2 x 2 and of 4 x 4; a row of a channel's image, whose calls are many where images are small; one
 * multiply-add of direct sums; and bringing a pair to them. */
#define TRANSFORM_COST(tile) ((tile) == 2 ? 9.0 : 20.0)
#define WEIGHT_COST(tile) ((tile) == 2 ? 16.0 : 32.0)
#define ROW_COST 550
#define DIRECT_COST 1.22
#define PAIR_COST 10
/* Numbers of a cache line; and of a page, in which lines at one place compete for the same few places of the
 * first cache. */
#define LINE 16
#define PAGE 1024

/* The convolution that is computed, how it is cut, and where memory is; tasks get a copy. Sizes are in
 * numbers (float) or pairs, but those that end in `_at` or `_bytes`. */
typedef struct winograd_run {
    const sgm__cpu_call *call;
    sgm__winograd_kind kind;
    int64_t tile, elements; /* results of a tile in each direction; numbers of a transformed one */
    /* One image of one channel in steps of a tile, whose results are tiles. */
    sgm__convolution tiles;
    const sgm__tiles *products; /* that multiply */
    /* That make what is multiplied, and that make results of it, which are float32. */
    const sgm__winograd *transforms, *back;
    int64_t channels, filters, out[2];
    int64_t pair, steps; /* channels of a step: 1, or 2; and steps of all channels */
    /* Of a block: rows of tiles, images; how many blocks an image makes, or 1. */
    int64_t rows, images, bands;
    int64_t stride;     /* from a channel or filter of a block to the next: all its tiles, and more */
    int64_t weight_row; /* from a filter's transformed weights to the next one's */
    int64_t place_row;  /* of a filter's weights before that: from a place of the kernel to the next one */
    int64_t weights_apart, image_apart, results_apart; /* from one matrix of an element to the next */
    float *weights; /* transformed; at the beginning of scratch, or packed */
    size_t own_at;  /* threads' memory behind that of the weights */
    /* Of a thread's memory, whose beginning has the phases of a channel, and before all blocks a filter's
     * kernels by places, and as float32: transformed image and results; tiles of one filter. */
    size_t image_at, results_at, tiles_at, own_bytes, total;
} winograd_run;

static int64_t round_up(int64_t number, int64_t unit)
{
    return (number + unit - 1) / unit * unit;
}

int64_t sgm__winograd_apart(int64_t numbers)
{
    return round_up(numbers, PAGE) + 5 * LINE;
}

int64_t sgm__winograd_stride(int64_t numbers)
{
    int64_t lines = (numbers + LINE - 1) / LINE;
    return (lines % 2 == 0 ? lines + 1 : lines) * LINE;
}

/* Tiles of one image that lie between the first and the last one of a block, with gaps as in a phase. */
static int64_t positions_of(int64_t rows, int64_t columns)
{
    return (rows - 1) * (columns + 1) + columns;
}

/* So that there are blocks for all threads. */
static void cut(winograd_run *r, int64_t threads)
{
    const sgm__window *w = &r->tiles.window;
    int64_t rows = w->out[0], most = BLOCK_POSITIONS / (w->out[1] + 1);
    r->bands = (rows + (most > 1 ? most : 1) - 1) / (most > 1 ? most : 1);
    r->rows = (rows + r->bands - 1) / r->bands;
    r->bands = (rows + r->rows - 1) / r->rows;
    r->images = 1;
    int64_t positions = positions_of(r->rows, w->out[1]);
    if (r->bands == 1 && positions > 0 && w->batch > 0) {
        int64_t images = BLOCK_POSITIONS / positions, each = (w->batch + threads - 1) / threads;
        r->images = sgm__minimum(images > 1 ? images : 1, each);
        int64_t blocks = (w->batch + r->images - 1) / r->images;
        r->images = (w->batch + blocks - 1) / blocks;
    }
    int64_t lanes = r->tiles.tiles->vector_lanes;
    r->stride = sgm__winograd_stride(r->images * positions + 3 * lanes);
}

static void lay_out(winograd_run *r)
{
    int64_t lanes = r->tiles.tiles->vector_lanes, number = (int64_t)sizeof(float);
    int64_t plane = (r->rows + 1) * (r->tiles.window.out[1] + 1);
    r->weight_row = round_up(r->steps, lanes);
    r->place_row = round_up(r->channels, lanes);
    r->weights_apart = sgm__winograd_apart(r->filters * r->weight_row);
    r->image_apart = sgm__winograd_apart(r->steps * r->stride);
    r->results_apart = sgm__winograd_apart(r->filters * r->stride);
    r->own_at = sgm__convolution_align(r->elements * r->weights_apart * number);
    int64_t phases = r->tile * r->tile * plane + SGM__PHASES_SLACK, places = r->pair * 9 * r->place_row;
    r->image_at = sgm__convolution_align((phases > places ? phases : places) * number);
    r->results_at = r->image_at + sgm__convolution_align(r->elements * r->image_apart * number);
    r->tiles_at = r->results_at + sgm__convolution_align(r->elements * r->results_apart * number);
    r->own_bytes = r->tiles_at + sgm__convolution_align(r->tile * r->tile * r->stride * number);
    r->total = r->own_at + r->own_bytes * (size_t)r->call->cpu->threads;
}

void sgm__winograd_fetch(const sgm__convolution *c, const unsigned char *plane)
{
    const sgm__window *w = &c->window;
    int64_t first = -w->before[0] > 0 ? -w->before[0] : 0, row = w->in[1] * (int64_t)c->stored;
    int64_t last = sgm__minimum(w->stride[0] * w->out[0] + 2 - w->before[0], w->in[0]);
    for (int64_t at = first * row; at < last * row; at += LINE * (int64_t)sizeof(float))
        __builtin_prefetch(plane + at);
}

/* By tiles of `tile` results in each direction. */
static winograd_run plan_tiles(const sgm__cpu_call *call, const sgm__convolution *c, sgm__winograd_kind kind,
                               int64_t threads, int64_t tile)
{
    const sgm__window *w = &c->window;
    bool forward = kind == SGM__WINOGRAD_FORWARD;
    winograd_run r = {.call = call, .kind = kind, .tiles = *c, .tile = tile};
    r.elements = (tile + 2) * (tile + 2);
    r.weights = (float *)(uintptr_t)(call->packed != NULL ? call->packed : call->scratch);
    r.channels = forward ? c->channels : c->filters;
    r.filters = forward ? c->filters : c->channels;
    r.products = sgm__convolution_tiles(c);
    r.transforms = tile == 2 ? &r.products->winograd : &r.products->winograd_fours;
    r.back = tile == 2 ? &c->tiles->winograd : &c->tiles->winograd_fours;
    r.pair = c->pairs != NULL ? 2 : 1;
    r.steps = sgm__divide_up(r.channels, r.pair);
    r.tiles.channels = 1;
    r.tiles.plane = forward ? c->plane : c->pixels;
    sgm__window *t = &r.tiles.window;
    for (int i = 0; i < 2; i++) {
        r.out[i] = forward ? w->out[i] : w->in[i];
        t->in[i] = forward ? w->in[i] : w->out[i];
        t->before[i] = forward ? w->before[i] : 2 - w->before[i];
        t->out[i] = sgm__divide_up(r.out[i], tile);
        t->size[i] = tile + 2;
        t->stride[i] = tile;
    }
    cut(&r, threads);
    lay_out(&r);
    return r;
}

bool sgm__winograd_suits(const sgm__cpu_call *call, const sgm__convolution *c)
{
    const sgm__window *w = &c->window;
    bool suits = c->size == 4 && w->groups == 1 && !call->cpu->exact;
    for (int i = 0; i < 2; i++)
        suits = suits && w->size[i] == 3 && w->stride[i] == 1 && w->dilation[i] == 1 && w->before[i] <= 2;
    return suits;
}

double sgm__winograd_direct_cost(const sgm__convolution *c, int64_t pixels, int64_t depth, int64_t lanes)
{
    double width = DIRECT_COST * (double)sgm__convolution_width(c, lanes);
    return 9.0 * (double)(pixels * depth) * (c->pairs != NULL ? PAIR_COST + width / 2 : width);
}

/* In multiply-adds of the products by float32, if planned for one thread: the choice must not depend on the
 * number of threads. */
static double cost_of(const winograd_run *r)
{
    int64_t lanes = r->tiles.tiles->vector_lanes, images = r->tiles.window.batch;
    int64_t positions = positions_of(r->rows, r->tiles.window.out[1]);
    /* Products take all tiles of a block in vectors, transforms those of an image. */
    int64_t multiplied =
        r->bands * sgm__divide_up(images, r->images) * round_up(r->images * positions, lanes);
    int64_t transformed = r->bands * images * round_up(positions, lanes);
    double channels = (double)r->channels, filters = (double)r->filters, both = channels + filters;
    double weights = r->call->packs ? 0 : WEIGHT_COST(r->tile) * channels * filters;
    return (double)r->elements * ((double)(multiplied * r->steps) * filters +
                                  TRANSFORM_COST(r->tile) * (double)transformed * both + weights) +
           ROW_COST * (double)(images * r->bands * r->rows * r->tile) * both;
}

static winograd_run plan(const sgm__cpu_call *call, const sgm__convolution *c, sgm__winograd_kind kind,
                         int64_t threads)
{
    int64_t tile = 2;
    if (sgm__convolution_tiles(c)->winograd_fours.input != NULL) {
        winograd_run twos = plan_tiles(call, c, kind, 1, 2), fours = plan_tiles(call, c, kind, 1, 4);
        tile = cost_of(&fours) < cost_of(&twos) ? 4 : 2;
    }
    return plan_tiles(call, c, kind, threads, tile);
}

bool sgm__winograd_is_faster(const sgm__cpu_call *call, const sgm__convolution *c, sgm__winograd_kind kind)
{
    if (!sgm__winograd_suits(call, c))
        return false;
    winograd_run r = plan(call, c, kind, 1);
    return cost_of(&r) <
           sgm__winograd_direct_cost(c, r.out[0] * r.out[1] * c->window.batch, r.channels, r.filters);
}

size_t sgm__winograd_scratch(const sgm__cpu_call *call, const sgm__convolution *c, sgm__winograd_kind kind)
{
    return plan(call, c, kind, call->cpu->threads).total;
}

/* --- weights --- */

/* The transformed weights of one filter: its row of each element's matrix. Of a gradient by the input
 * filters and channels change places, and kernels are flipped: their last place comes first. `places`
 * has room for 9 rows of weights, of bfloat16 for 18. */
static void transform_filter(const winograd_run *r, int64_t filter, float *places)
{
    const sgm__convolution *c = &r->tiles;
    bool forward = r->kind == SGM__WINOGRAD_FORWARD;
    int64_t kernels = forward ? r->channels : 1, stride = forward ? 9 : r->filters * 9;
    const unsigned char *from = r->call->inputs[1].data;
    from += filter * kernels * 9 * (int64_t)c->stored;
    if (c->widen != NULL) {
        float *wide = places + 9 * r->place_row;
        for (int64_t i = 0; i < r->channels; i += kernels)
            c->widen(kernels * 9, wide + i * 9, (const void *const[]){from + i * stride * 2}, 0);
        from = (const unsigned char *)wide;
        stride = 9;
    }
    c->tiles->transpose(places, r->place_row, from, stride, r->channels, 9);
    r->transforms->weights(r->channels, r->weights + filter * r->weight_row, r->weights_apart * r->pair,
                           forward ? places : places + 8 * r->place_row,
                           forward ? r->place_row : -r->place_row);
}

static void transform_weights(void *context, int64_t filter, int32_t thread)
{
    const winograd_run *r = context;
    transform_filter(r, filter,
                     (float *)(void *)(r->call->scratch + r->own_at + (size_t)thread * r->own_bytes));
}

size_t sgm__winograd_packed_bytes(const sgm__cpu_call *call, const sgm__convolution *c)
{
    return plan(call, c, SGM__WINOGRAD_FORWARD, 1).own_at;
}

sgm_status sgm__winograd_pack(const sgm__cpu_call *call, const sgm__convolution *c, unsigned char *to)
{
    winograd_run r = plan(call, c, SGM__WINOGRAD_FORWARD, 1);
    float *places = sgm__alloc((size_t)(r.pair * 9 * r.place_row) * sizeof *places);
    if (places == NULL)
        return SGM_ERROR_MEMORY;
    r.weights = (float *)(void *)to;
    for (int64_t filter = 0; filter < r.filters; filter++)
        transform_filter(&r, filter, places);
    sgm__free(places);
    return SGM_OK;
}

/* --- blocks --- */

/* What a task computes: images first .. first + images - 1, rows of tiles row .. row + rows - 1. */
typedef struct block {
    int64_t first, images, row, rows, positions;
    float *phases, *image, *results, *tiles; /* the thread's memory */
} block;

/* What transforms a channel of an image. */
static void transform_channel(const winograd_run *r, const block *b, int64_t channel, float *to,
                              int64_t plane, int64_t pitch)
{
    const sgm__winograd *transforms = r->transforms;
    (r->pair == 1       ? transforms->input
     : channel % 2 == 0 ? transforms->input_first
                        : transforms->input_second)(b->positions, to + channel / r->pair * r->stride,
                                                    r->image_apart, b->phases, plane, pitch);
}

/* The matrices (channels, tiles) of a block's images. */
static void transform_images(const winograd_run *r, const block *b)
{
    sgm__convolution c = r->tiles;
    c.window.out[0] = b->rows;
    c.window.before[0] -= r->tile * b->row; /* a block begins where its first tile does */
    int64_t plane = sgm__phases_plane(&c), pitch = sgm__phases_make(&c).pitch;
    int64_t bytes = c.plane * (int64_t)c.stored;
    const unsigned char *from = r->call->inputs[0].data;
    from += b->first * r->channels * bytes;
    for (int64_t image = 0; image < b->images; image++)
        for (int64_t channel = 0; channel < r->channels; channel++, from += bytes) {
            sgm__winograd_fetch(&c, from + bytes);
            sgm__phases_copy(&c, (unsigned char *)b->phases, from);
            transform_channel(r, b, channel, b->image + image * b->positions, plane, pitch);
        }
}

/* results = weights image, for each element's matrices. The weights of a tile's filters stay in the first
 * cache while they meet all of the block, which is in the second. */
static void multiply(const winograd_run *r, const block *b)
{
    const sgm__tiles *tiles = r->products;
    int64_t lanes = r->tiles.tiles->vector_lanes, columns = b->images * b->positions;
    sgm__tile tile = {.depth = r->steps,
                      .a_row = r->weight_row,
                      .a_step = 1,
                      .b_stride = r->stride,
                      .c_stride = r->stride,
                      .sums_stride = r->stride};
    for (int64_t e = 0; e < r->elements; e++)
        for (int64_t filter = 0; filter < r->filters; filter += tiles->rows) {
            int64_t rows = sgm__minimum(tiles->rows, r->filters - filter);
            const float *image = b->image + e * r->image_apart;
            float *to = b->results + e * r->results_apart + filter * r->stride;
            tile.a = r->weights + e * r->weights_apart + filter * r->weight_row;
            for (int64_t column = 0; column < columns; column += 2 * lanes) {
                bool narrow = columns - column <= lanes;
                tile.b = image + column;
                tile.c = tile.sums = to + column;
                (narrow ? tiles->apart.narrow : tiles->apart.wide)[rows - 1](&tile);
            }
        }
}

/* A row of results, from the parts of the tiles' rows that it is made of, `r->stride` numbers apart. */
static void write_row(const winograd_run *r, unsigned char *row, const float *from)
{
    const sgm__convolution *c = &r->tiles;
    int64_t width = r->out[1], size = (int64_t)c->stored, whole = width / r->tile;
    if (r->tile == 2)
        r->products->join_pairs(whole, row, from, from + r->stride);
    else
        r->products->join_fours(
            whole, row,
            (const void *const[]){from, from + r->stride, from + 2 * r->stride, from + 3 * r->stride});
    for (int64_t x = whole * r->tile; x < width; x++) {
        const float *last = from + x % r->tile * r->stride + whole;
        if (c->narrow != NULL)
            c->narrow(1, row + x * size, (const void *const[]){last}, 0);
        else
            memcpy(row + x * size, last, sizeof *last);
    }
}

/* The results of one filter of an image, from its tiles. */
static void write_rows(const winograd_run *r, const block *b, unsigned char *to)
{
    int64_t pitch = r->tiles.window.out[1] + 1, row = r->out[1] * (int64_t)r->tiles.stored;
    int64_t last = sgm__minimum(r->tile * (b->row + b->rows), r->out[0]);
    for (int64_t y = r->tile * b->row; y < last; y++)
        write_row(r, to + y * row,
                  b->tiles + y % r->tile * r->tile * r->stride + (y / r->tile - b->row) * pitch);
}

/* `to` is the first image's. */
static void transform_results(const winograd_run *r, const block *b, unsigned char *to)
{
    const sgm__convolution *c = &r->tiles;
    const unsigned char *biases = r->call->input_count == 3 ? r->call->inputs[2].data : NULL;
    int64_t size = (int64_t)c->stored;
    for (int64_t image = 0; image < b->images; image++)
        for (int64_t filter = 0; filter < r->filters; filter++, to += r->out[0] * r->out[1] * size) {
            float bias = 0;
            if (biases != NULL && c->widen != NULL)
                c->widen(1, &bias, (const void *const[]){biases + filter * size}, 0);
            else if (biases != NULL)
                memcpy(&bias, biases + filter * size, sizeof bias);
            r->back->output(b->positions, b->tiles, r->stride,
                            b->results + filter * r->stride + image * b->positions, r->results_apart, bias,
                            r->call->limits);
            write_rows(r, b, to);
        }
}

/* Block `index` of all; `to` is its first image's result. */
static void compute_block(const winograd_run *r, int64_t index, int32_t thread, unsigned char *to)
{
    const sgm__window *w = &r->tiles.window;
    unsigned char *own = r->call->scratch + r->own_at + (size_t)thread * r->own_bytes;
    block b = {.first = index / r->bands * r->images,
               .row = index % r->bands * r->rows,
               .phases = (float *)(void *)own,
               .image = (float *)(void *)(own + r->image_at),
               .results = (float *)(void *)(own + r->results_at),
               .tiles = (float *)(void *)(own + r->tiles_at)};
    b.images = sgm__minimum(r->images, w->batch - b.first);
    b.rows = sgm__minimum(r->rows, w->out[0] - b.row);
    b.positions = positions_of(b.rows, w->out[1]);
    transform_images(r, &b);
    multiply(r, &b);
    transform_results(r, &b, to);
}

static void block_task(void *context, int64_t index, int32_t thread)
{
    const winograd_run *r = context;
    unsigned char *to = r->call->output.data;
    compute_block(r, index, thread,
                  to + index / r->bands * r->images * r->filters * r->out[0] * r->out[1] *
                           (int64_t)r->tiles.stored);
}

void sgm__winograd_begin(const sgm__cpu_call *call, const sgm__convolution *c)
{
    winograd_run r = plan(call, c, SGM__WINOGRAD_FORWARD, call->cpu->threads);
    sgm__pool_post(call->cpu->pool, r.filters, transform_weights, &r, sizeof r);
}

bool sgm__winograd_has_parts(const sgm__cpu_call *call, const sgm__convolution *c)
{
    return plan(call, c, SGM__WINOGRAD_FORWARD, call->cpu->threads).images == 1;
}

void sgm__winograd_part(const sgm__cpu_call *call, const sgm__convolution *c, int64_t example, int32_t thread,
                        void *to)
{
    winograd_run r = plan(call, c, SGM__WINOGRAD_FORWARD, call->cpu->threads);
    for (int64_t band = 0; band < r.bands; band++)
        compute_block(&r, example * r.bands + band, thread, to);
}

void sgm__winograd_run(const sgm__cpu_call *call, const sgm__convolution *c, sgm__winograd_kind kind)
{
    winograd_run r = plan(call, c, kind, call->cpu->threads);
    int64_t images = (r.tiles.window.batch + r.images - 1) / r.images;
    if (call->packed == NULL)
        sgm__pool_post(call->cpu->pool, r.filters, transform_weights, &r, sizeof r);
    sgm__pool_post(call->cpu->pool, images * r.bands, block_task, &r, sizeof r);
}
