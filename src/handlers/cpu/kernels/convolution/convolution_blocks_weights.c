/* The gradient of a convolution of bfloat16 by its weights, by blocks; see convolution_blocks.h.
 *
 * Rows of a block are channels, its columns filters, its steps pairs of neighbouring pixels of the result:
 * one product for each place of the kernel, whose left operand is the place's sheet, as it lies, and whose
 * right one is the gradient, transposed. Images are taken some at a time, side by side: they are copied by
 * one loop, and multiplied by a second one, which adds to the sums of all weights. How many are together
 * depends on shapes alone, and so do sums. */
#include "handlers/cpu/kernels/convolution/convolution_blocks.h"
#include "ops/ops.h"

/* Elements along the steps from which on sums are read and written seldom enough. */
#define CHUNK_PIXELS 1024
#define TASKS_PER_THREAD 4
/* Pairs of pixels at a time: so that of both operands, what the places of one sheet read stays in the first
 * cache. */
#define TASK_STEPS (16 * SGM__BLOCK_STEPS)
/* A step in elements, and how far the last one may read behind what there is. */
#define STEP_PIXELS (2 * SGM__BLOCK_STEPS)
#define PAIR_BYTES 4

/* Members that end in `_at` are bytes from the beginning of scratch memory. */
typedef struct run_state {
    const sgm__cpu_call *call;
    const sgm__sheets *s;
    const sgm__sheet_pass *pass;
    sgm__sheet_layout layout; /* of the images of a chunk, side by side */
    int64_t steps;            /* pairs of pixels of a chunk */
    int64_t left, right;      /* blocks of channels, of filters */
    int64_t parts;            /* of the kernel's places */
    int64_t pixels;           /* of an image of the gradient */
    int64_t first, last;      /* the chunk: images first .. last - 1 */
    size_t gradient_at, sums_at, threads_at, thread_bytes, total;
} run_state;

/* Images that are multiplied together: so many that rows of all of them are whole steps, if that is not too
 * many. */
static int64_t choose_images(const sgm__sheets *s, const sgm__sheet_pass *pass)
{
    int64_t pixels = pass->out[0] * pass->out[1], unit = 1, images = sgm__divide_up(CHUNK_PIXELS, pixels);
    while (unit * pass->out[1] % STEP_PIXELS != 0)
        unit *= 2;
    int64_t whole = sgm__divide_up(images, unit) * unit;
    return sgm__minimum(whole * pixels <= 2 * CHUNK_PIXELS ? whole : images, s->window.batch);
}

static run_state plan(const sgm__cpu_call *call, const sgm__sheets *s)
{
    const sgm__sheet_pass *pass = &s->passes[0];
    run_state r = {.call = call, .s = s, .pass = pass, .pixels = pass->out[0] * pass->out[1]};
    int64_t places = pass->place_count, threads = call->cpu->threads, wanted = threads * TASKS_PER_THREAD;
    r.layout.images = choose_images(s, pass);
    r.layout.length = r.layout.row = r.layout.images * pass->out[1];
    r.steps = sgm__divide_up(pass->out[0] * r.layout.length, STEP_PIXELS) * SGM__BLOCK_STEPS;
    r.layout.apart =
        sgm__sheet_spread((pass->rows * r.layout.length / STEP_PIXELS + 2) * STEP_PIXELS, STEP_PIXELS);
    r.left = sgm__divide_up(s->window.channels, SGM__BLOCK_ROWS);
    r.right = sgm__divide_up(s->window.filters, SGM__BLOCK_COLUMNS);
    r.parts = threads == 1 ? 1 : sgm__minimum(sgm__divide_up(wanted, r.left * r.right), places);
    r.gradient_at = sgm__convolution_align(pass->sheet_count * s->window.channels * r.layout.apart *
                                           (int64_t)sizeof(uint16_t));
    r.sums_at = r.gradient_at + sgm__convolution_align(r.right * r.steps * SGM__BLOCK_COLUMNS * PAIR_BYTES);
    int64_t sums = SGM__BLOCK_ROWS * SGM__BLOCK_COLUMNS * places;
    r.threads_at = r.sums_at + sgm__convolution_align(r.left * r.right * sums * (int64_t)sizeof(float));
    size_t lines = sgm__convolution_align(SGM__BLOCK_COLUMNS * 2 * r.steps * (int64_t)sizeof(uint16_t));
    size_t transposed = sgm__convolution_align(sums * (int64_t)sizeof(float));
    r.thread_bytes = lines > transposed ? lines : transposed;
    r.total = r.threads_at + r.thread_bytes * (size_t)threads;
    return r;
}

size_t sgm__blocks_weights_scratch(const sgm__cpu_call *call, const sgm__sheets *s)
{
    return plan(call, s).total;
}

/* --- operands --- */

static uint16_t *sheet_of(const run_state *r, int64_t sheet, int64_t channel)
{
    return (uint16_t *)(void *)r->call->scratch + (sheet * r->s->window.channels + channel) * r->layout.apart;
}

static uint32_t *gradient_of(const run_state *r, int64_t block)
{
    return (uint32_t *)(void *)(r->call->scratch + r->gradient_at) + block * r->steps * SGM__BLOCK_COLUMNS;
}

/* Sheets of some channels of a chunk. What images there are too few for is 0. */
static void copy_sheets(const run_state *r, int64_t block)
{
    const sgm__window *w = &r->s->window;
    int64_t channel = block * SGM__BLOCK_ROWS, size = w->in[0] * w->in[1];
    int64_t count = sgm__minimum(w->channels - channel, SGM__BLOCK_ROWS);
    bool few = r->last - r->first < r->layout.images;
    for (int32_t i = 0; i < r->pass->sheet_count; i++) {
        if (few)
            memset(sheet_of(r, i, channel), 0, (size_t)(count * r->layout.apart) * sizeof(uint16_t));
        for (int64_t image = r->first; image < r->last && sgm__sheet_base(r->s, r->pass, i) < 0; image++)
            sgm__sheets_copy(r->call->cpu, r->s, r->pass, i, &r->layout,
                             (const uint16_t *)r->call->inputs[0].data +
                                 (image * w->channels + channel) * size,
                             count, image - r->first, sheet_of(r, i, channel));
    }
    for (int32_t i = 0; i < r->pass->sheet_count; i++) {
        int32_t base = sgm__sheet_base(r->s, r->pass, i);
        if (base >= 0)
            sgm__sheets_shift(r->pass, i, &r->layout, count, sheet_of(r, base, channel),
                              sheet_of(r, i, channel));
    }
}

/* Some filters' gradient of a chunk: pairs of pixels become rows, by way of `own`, where the images are side
 * by side as in the sheets. */
static void transpose_gradient(const run_state *r, int64_t block, uint16_t *own)
{
    const sgm__window *w = &r->s->window;
    int64_t filter = block * SGM__BLOCK_COLUMNS, stride = 2 * r->steps, width = r->pass->out[1];
    int64_t count = sgm__minimum(w->filters - filter, SGM__BLOCK_COLUMNS);
    const uint16_t *from = (const uint16_t *)r->call->inputs[1].data;
    for (int64_t i = 0; i < count; i++) {
        uint16_t *line = own + i * stride;
        int64_t end = r->last - r->first < r->layout.images ? 0 : r->pass->out[0] * r->layout.length;
        memset(line + end, 0, (size_t)(stride - end) * sizeof *line);
        for (int64_t image = r->first; image < r->last; image++)
            for (int64_t row = 0; row < r->pass->out[0]; row++)
                memcpy(line + row * r->layout.length + (image - r->first) * width,
                       from + (image * w->filters + filter + i) * r->pixels + row * width,
                       (size_t)width * sizeof *line);
    }
    r->call->cpu->vector->pairs.transpose(gradient_of(r, block), SGM__BLOCK_COLUMNS, own, stride, count,
                                          stride);
}

static void copy_task(void *context, int64_t index, int32_t thread)
{
    const run_state *r = context;
    if (index < r->left)
        copy_sheets(r, index);
    else
        transpose_gradient(
            r, index - r->left,
            (uint16_t *)(void *)(r->call->scratch + r->threads_at + (size_t)thread * r->thread_bytes));
}

/* --- products --- */

/* The sums of a block of weights: of each channel its places, of each place 32 filters. */
static float *sums_of(const run_state *r, int64_t left, int64_t right)
{
    return (float *)(void *)(r->call->scratch + r->sums_at) +
           (left * r->right + right) * SGM__BLOCK_ROWS * r->pass->place_count * SGM__BLOCK_COLUMNS;
}

/* The last step of a place, which the pixels of the result do not fill. The sheet goes on behind them, and is
 * left out there: an infinity times the gradient's filling of 0 would be no number. */
static void add_last_step(const run_state *r, sgm__tile tile)
{
    _Alignas(64) uint16_t rows[SGM__BLOCK_ROWS][STEP_PIXELS] = {{0}};
    int64_t pixels = r->pass->out[0] * r->layout.length % STEP_PIXELS;
    for (int64_t i = 0; i < tile.rows; i++)
        memcpy(rows[i], (const uint16_t *)tile.a + i * r->layout.apart, (size_t)pixels * sizeof **rows);
    tile.a = rows;
    tile.a_row = tile.depth = SGM__BLOCK_STEPS;
    r->call->cpu->vector->pairs.block(&tile);
}

/* The tile's steps of a place, from `first` on. */
static void add_place(const run_state *r, sgm__tile tile, int64_t first)
{
    int64_t filled = r->pass->out[0] * r->layout.length / STEP_PIXELS * SGM__BLOCK_STEPS - first;
    bool last = filled < tile.depth;
    tile.depth = last ? filled : tile.depth;
    if (tile.depth > 0)
        r->call->cpu->vector->pairs.block(&tile);
    if (!last)
        return;
    tile.add |= filled > 0;
    tile.a = (const uint32_t *)tile.a + filled;
    tile.b = (const uint32_t *)tile.b + filled * SGM__BLOCK_COLUMNS;
    add_last_step(r, tile);
}

/* Some places of some weights. */
static void sum_task(void *context, int64_t index, int32_t thread)
{
    (void)thread;
    const run_state *r = context;
    const sgm__window *w = &r->s->window;
    const sgm__tiles *tiles = &r->call->cpu->vector->pairs;
    int64_t places = r->pass->place_count, block = index / r->parts, begin, end;
    int64_t left = block / r->right, right = block % r->right, channel = left * SGM__BLOCK_ROWS;
    int64_t filters = w->filters - right * SGM__BLOCK_COLUMNS;
    int32_t configured = 0;
    sgm__pool_part(places, 1, r->parts, index % r->parts, &begin, &end);
    sgm__tile tile = {.a_row = r->layout.apart / 2,
                      .b_stride = SGM__BLOCK_COLUMNS,
                      .sums_stride = places * SGM__BLOCK_COLUMNS,
                      .rows = (int32_t)sgm__minimum(w->channels - channel, SGM__BLOCK_ROWS),
                      .columns =
                          filters > SGM__BLOCK_COLUMNS / 2 ? SGM__BLOCK_COLUMNS : SGM__BLOCK_COLUMNS / 2,
                      .configured = &configured};
    for (int64_t first = 0; first < r->steps; first += TASK_STEPS) {
        tile.depth = sgm__minimum(TASK_STEPS, r->steps - first);
        tile.b = gradient_of(r, right) + first * SGM__BLOCK_COLUMNS;
        tile.add = r->first > 0 || first > 0;
        for (int32_t sheet = 0; sheet < r->pass->sheet_count; sheet++)
            for (int64_t i = begin; i < end; i++) {
                const sgm__sheet_place *place = &r->pass->places[i];
                tile.a = sheet_of(r, sheet, channel) + place->row * r->layout.length + 2 * first;
                tile.sums = sums_of(r, left, right) + i * SGM__BLOCK_COLUMNS;
                if (place->sheet == sheet)
                    add_place(r, tile, first);
            }
    }
    if (tiles->block_end != NULL)
        tiles->block_end();
}

/* Sums of a block of weights to (filters, channels, places), rounded. */
static void round_task(void *context, int64_t index, int32_t thread)
{
    const run_state *r = context;
    const sgm__window *w = &r->s->window;
    const sgm__vector *vector = r->call->cpu->vector;
    sgm__vector_function round = sgm__vector_find(vector, &sgm__op_cast, SGM_FLOAT32, SGM_BFLOAT16);
    int64_t left = index / r->right, right = index % r->right, places = r->pass->place_count;
    int64_t channel = left * SGM__BLOCK_ROWS, filter = right * SGM__BLOCK_COLUMNS;
    int64_t width = sgm__minimum(w->channels - channel, SGM__BLOCK_ROWS) * places;
    int64_t filters = sgm__minimum(w->filters - filter, SGM__BLOCK_COLUMNS);
    float *transposed =
        (float *)(void *)(r->call->scratch + r->threads_at + (size_t)thread * r->thread_bytes);
    vector->f32.transpose(transposed, width, sums_of(r, left, right), SGM__BLOCK_COLUMNS, width, filters);
    uint16_t *to = (uint16_t *)r->call->output.data + (filter * w->channels + channel) * places;
    for (int64_t i = 0; i < filters; i++, to += w->channels * places)
        round(width, to, (const void *const[]){transposed + i * width}, 0);
}

void sgm__blocks_weights_run(const sgm__cpu_call *call, const sgm__sheets *s)
{
    run_state r = plan(call, s);
    sgm__pool *pool = call->cpu->pool;
    for (; r.first < s->window.batch; r.first = r.last) {
        r.last = sgm__minimum(r.first + r.layout.images, s->window.batch);
        sgm__pool_post(pool, r.left + r.right, copy_task, &r, sizeof r);
        sgm__pool_post(pool, r.left * r.right * r.parts, sum_task, &r, sizeof r);
    }
    sgm__pool_post(pool, r.left * r.right, round_task, &r, sizeof r);
}
