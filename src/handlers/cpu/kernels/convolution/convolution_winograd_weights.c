/* The gradient of convolutions of 3 x 3 by their weights, by Winograd's minimal filtering
 * (vector/vector_convolution.h has the transforms and the source).
 *
 * Gradients of the results are cut into tiles of 2 x 2, or of 4 x 4 of float32, whichever is estimated to be
 * faster, and images into the 4 x 4 or 6 x 6 pixels that each such tile came from. Transformed, they are rows
 * of 16 or 36 matrices, (filters, tiles) and (channels, tiles), whose products summed over all tiles are as
 * many matrices (filters, channels); these are transformed to kernels of 3 x 3 in the end. Some images, or
 * rows of tiles of one (a unit), are transformed and multiplied at once, so that what lies between stays in
 * the caches. Of bfloat16, two neighbouring tiles are a step. Channels and
 * filters, then matrices and panels of channels, are what threads share; sums go in the order of the tiles,
 * so they depend on shapes alone. */
#include "handlers/cpu/kernels/convolution/convolution_phases.h"
#include "handlers/cpu/kernels/convolution/convolution_winograd.h"

/* Tiles of a unit, and of the units that are done at once, about, by the size of a tile: with 64 channels and
 * filters, what is transformed of these is 1.2 MB. */
#define UNIT_TILES(tile) ((tile) == 2 ? 96 : 48)
#define TOGETHER_TILES(tile) ((tile) == 2 ? 144 : 64)
/* What a number of a transformed image, gradient or kernel costs, in multiply-adds of the products. */
#define TRANSFORM_COST(tile) ((tile) == 2 ? 20.0 : 28.0)
#define KERNEL_COST(tile) ((tile) == 2 ? 16.0 : 32.0)

/* How the products are cut, and where memory is; tasks get a copy. Sizes are in numbers (float) or pairs, but
 * `tiles`, and those that end in `_at` or `_bytes`. */
typedef struct weights_run {
    const sgm__cpu_call *call;
    int64_t tile, elements; /* results of a tile in each direction; numbers of a transformed one */
    /* One channel of an image, and of a gradient, in steps of a tile: windows are those of a unit's tiles. */
    sgm__convolution image, gradient;
    const sgm__tiles *products; /* that multiply */
    /* That make what is multiplied, and that make kernels of the sums, which are float32. */
    const sgm__winograd *transforms, *back;
    int64_t pair; /* tiles of a step of the products: 1, or of bfloat16 2 */
    int64_t channels, filters;
    int64_t rows, bands;     /* rows of tiles of a unit, units of an image */
    int64_t tiles, pitch;    /* of a unit, with gaps as in a phase; from a row of tiles to the next */
    int64_t units, together; /* of the batch; those that are done at once */
    int64_t first;           /* the first of the ones that are done now */
    int64_t panels;          /* of channels */
    int64_t stride, sum_row; /* from a channel or filter to the next: of tiles, of sums */
    int64_t images_apart, gradients_apart, sums_apart;        /* from one element's matrix to the next */
    size_t images_at, gradients_at, own_at, own_bytes, total; /* the sums come first */
} weights_run;

/* One channel of `in` pixels with `before` zeros in front of it, of which `out` tiles are made. */
static sgm__convolution channel_of(const sgm__convolution *c, int64_t tile, const int64_t *in,
                                   const int64_t *before, const int64_t *out)
{
    sgm__convolution one = *c;
    one.channels = 1;
    one.plane = in[0] * in[1];
    for (int i = 0; i < 2; i++) {
        one.window.in[i] = in[i];
        one.window.before[i] = before[i];
        one.window.out[i] = out[i];
        one.window.size[i] = tile + 2;
        one.window.stride[i] = tile;
    }
    return one;
}

/* Units of equal numbers of rows, and equal numbers of units at once. */
static void cut(weights_run *r, const sgm__convolution *c)
{
    int64_t out[2] = {sgm__divide_up(c->window.out[0], r->tile), sgm__divide_up(c->window.out[1], r->tile)};
    static const int64_t nothing[2];
    r->pitch = out[1] + 1;
    int64_t most = UNIT_TILES(r->tile) / r->pitch, together;
    r->bands = sgm__divide_up(out[0], most > 1 ? most : 1);
    r->rows = sgm__divide_up(out[0], r->bands);
    r->bands = sgm__divide_up(out[0], r->rows);
    r->tiles = sgm__divide_up((r->rows - 1) * r->pitch + out[1], r->pair) * r->pair; /* the gap: zeros */
    r->units = c->window.batch * r->bands;
    together = TOGETHER_TILES(r->tile) / r->tiles;
    r->together = sgm__divide_up(r->units, sgm__divide_up(r->units, together > 1 ? together : 1));
    out[0] = r->rows;
    r->image = channel_of(c, r->tile, c->window.in, c->window.before, out);
    r->gradient = channel_of(c, r->tile, c->window.out, nothing, out);
}

/* By tiles of `tile` results in each direction. */
static weights_run plan_tiles(const sgm__cpu_call *call, const sgm__convolution *c, int64_t tile)
{
    weights_run r = {.call = call, .tile = tile, .channels = c->channels, .filters = c->filters};
    r.elements = (tile + 2) * (tile + 2);
    r.products = sgm__convolution_tiles(c);
    r.transforms = tile == 2 ? &r.products->winograd : &r.products->winograd_fours;
    r.back = tile == 2 ? &c->tiles->winograd : &c->tiles->winograd_fours;
    r.pair = c->pairs != NULL ? 2 : 1;
    int64_t lanes = c->tiles->vector_lanes, number = (int64_t)sizeof(float);
    cut(&r, c);
    r.panels = sgm__divide_up(r.channels, 2 * lanes);
    int64_t left = r.channels - (r.panels - 1) * 2 * lanes;
    r.sum_row = (r.panels - 1) * 2 * lanes + (left > lanes ? 2 : 1) * lanes;
    r.stride = sgm__winograd_stride(r.together * r.tiles / r.pair + lanes);
    r.images_apart = sgm__winograd_apart(r.channels * r.stride);
    r.gradients_apart = sgm__winograd_apart(r.filters * r.stride);
    r.sums_apart = sgm__winograd_apart(r.filters * r.sum_row);
    r.images_at = sgm__convolution_align(r.elements * r.sums_apart * number);
    r.gradients_at = r.images_at + sgm__convolution_align(r.elements * r.images_apart * number);
    r.own_at = r.gradients_at + sgm__convolution_align(r.elements * r.gradients_apart * number);
    /* The phases of a channel, a panel of channels, or the places of a filter's kernels, then in order. */
    int64_t phases = tile * tile * (r.rows + 1) * r.pitch + SGM__PHASES_SLACK, panel = r.stride * 2 * lanes;
    int64_t places = r.pair * 9 * r.sum_row, most = phases > panel ? phases : panel;
    r.own_bytes = sgm__convolution_align((most > places ? most : places) * number);
    r.total = r.own_at + r.own_bytes * (size_t)call->cpu->threads;
    return r;
}

/* In multiply-adds of the products by float32. */
static double cost_of(const weights_run *r)
{
    double tiles = (double)(r->units * r->tiles), filters = (double)r->filters;
    double products = tiles / (double)r->pair * filters * (double)r->sum_row;
    double transforms = TRANSFORM_COST(r->tile) * tiles * ((double)r->channels + filters) +
                        KERNEL_COST(r->tile) * filters * (double)r->sum_row;
    return (double)r->elements * (products + transforms);
}

static weights_run plan(const sgm__cpu_call *call, const sgm__convolution *c)
{
    weights_run twos = plan_tiles(call, c, 2);
    if (sgm__convolution_tiles(c)->winograd_fours.input == NULL)
        return twos;
    weights_run fours = plan_tiles(call, c, 4);
    return cost_of(&fours) < cost_of(&twos) ? fours : twos;
}

bool sgm__winograd_weights_is_faster(const sgm__cpu_call *call, const sgm__convolution *c)
{
    if (!sgm__winograd_suits(call, c) || c->window.batch == 0)
        return false;
    weights_run r = plan(call, c);
    return cost_of(&r) < sgm__winograd_direct_cost(c, c->pixels * c->window.batch, r.channels, r.filters);
}

size_t sgm__winograd_weights_scratch(const sgm__cpu_call *call, const sgm__convolution *c)
{
    return plan(call, c).total;
}

static float *numbers_at(const weights_run *r, size_t at)
{
    return (float *)(void *)(r->call->scratch + at);
}

static float *own_memory(const weights_run *r, int32_t thread)
{
    return numbers_at(r, r->own_at + (size_t)thread * r->own_bytes);
}

/* Units that are done now. */
static int64_t count_of(const weights_run *r)
{
    return sgm__minimum(r->together, r->units - r->first);
}

/* A row of each element's matrix: channel `index` of the images, or behind those, of the gradients. */
static void transform_task(void *context, int64_t index, int32_t thread)
{
    const weights_run *r = context;
    bool image = index < r->channels;
    const sgm__convolution *whole = image ? &r->image : &r->gradient;
    int64_t channel = image ? index : index - r->channels, channels = image ? r->channels : r->filters;
    int64_t apart = (image ? r->images_apart : r->gradients_apart) * r->pair;
    float *to = numbers_at(r, image ? r->images_at : r->gradients_at) + channel * r->stride;
    float *phases = own_memory(r, thread);
    const unsigned char *all = r->call->inputs[image ? 0 : 1].data;
    int64_t bytes = whole->plane * (int64_t)whole->stored;
    for (int64_t i = 0; i < count_of(r); i++, to += r->tiles / r->pair) {
        int64_t example = (r->first + i) / r->bands, band = (r->first + i) % r->bands;
        sgm__convolution c = *whole;
        c.window.before[0] -= r->tile * band * r->rows; /* a unit begins where its first tile does */
        int64_t plane = sgm__phases_plane(&c);
        const unsigned char *from = all + (example * channels + channel) * bytes;
        sgm__winograd_fetch(&c, from + bytes);
        sgm__phases_copy(&c, (unsigned char *)phases, from);
        if (image)
            r->transforms->input(r->tiles, to, apart, phases, plane, r->pitch);
        else
            r->transforms->results(r->tiles, to, apart, phases, plane);
    }
}

/* A panel of channels of one element's matrix of sums. */
static void multiply_task(void *context, int64_t index, int32_t thread)
{
    const weights_run *r = context;
    const sgm__tiles *tiles = r->products;
    int64_t lanes = tiles->columns / 2, element = index / r->panels, first = index % r->panels * 2 * lanes;
    int64_t columns = sgm__minimum(r->channels - first, 2 * lanes);
    bool narrow = columns <= lanes;
    int64_t width = (narrow ? 1 : 2) * lanes;
    float *panel = own_memory(r, thread);
    sgm__tile tile = {.depth = count_of(r) * r->tiles / r->pair,
                      .a_row = r->stride,
                      .a_step = 1,
                      .b = panel,
                      .b_stride = width,
                      .c_stride = r->sum_row,
                      .sums_stride = r->sum_row,
                      .add = r->first > 0};
    tiles->transpose(panel, width,
                     numbers_at(r, r->images_at) + element * r->images_apart + first * r->stride,
                     r->stride * r->pair, columns, tile.depth * r->pair);
    for (int64_t filter = 0; filter < r->filters; filter += tiles->rows) {
        int64_t rows = sgm__minimum(tiles->rows, r->filters - filter);
        tile.a = numbers_at(r, r->gradients_at) + element * r->gradients_apart + filter * r->stride;
        tile.c = tile.sums = numbers_at(r, 0) + element * r->sums_apart + filter * r->sum_row + first;
        (narrow ? tiles->apart.narrow : tiles->apart.wide)[rows - 1](&tile);
    }
}

/* The kernels of one filter. */
static void finish_task(void *context, int64_t filter, int32_t thread)
{
    const weights_run *r = context;
    float *places = own_memory(r, thread);
    int64_t count = r->channels * 9;
    unsigned char *to = (unsigned char *)r->call->output.data + filter * count * (int64_t)r->image.stored;
    void *kernels = r->image.narrow != NULL ? (void *)(places + 9 * r->sum_row) : to;
    r->back->kernels(r->channels, places, r->sum_row, numbers_at(r, 0) + filter * r->sum_row, r->sums_apart);
    r->image.tiles->spread(kernels, 9, places, r->sum_row, r->channels, 9, NULL, SGM__NO_LIMITS);
    if (r->image.narrow != NULL)
        r->image.narrow(count, to, (const void *const[]){kernels}, 0);
}

void sgm__winograd_weights_run(const sgm__cpu_call *call, const sgm__convolution *c)
{
    weights_run r = plan(call, c);
    sgm__pool *pool = call->cpu->pool;
    for (; r.first < r.units; r.first += r.together) {
        sgm__pool_post(pool, r.channels + r.filters, transform_task, &r, sizeof r);
        sgm__pool_post(pool, r.elements * r.panels, multiply_task, &r, sizeof r);
    }
    sgm__pool_post(pool, r.filters, finish_task, &r, sizeof r);
}
