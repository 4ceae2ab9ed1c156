/* Convolutions of bfloat16 by blocks, forward and the gradient by the input; see convolution_blocks.h.
 *
 * Weights are packed first, so that what a step of a block reads is together: 32 filters, of each 16 pairs of
 * channels. A task is some images, so many that a row of weights that is fetched is used for several
 * blocks: it copies them into sheets, and computes all blocks, of some steps at a time, so that what a block
 * reads stays in the first cache. Sums depend on shapes alone. */
#include "handlers/cpu/kernels/convolution/convolution_blocks.h"

#define TILE_COLUMNS (SGM__BLOCK_COLUMNS / 2)
#define PAIRS SGM__BLOCK_STEPS          /* of channels, of one step */
#define CHANNELS (2 * SGM__BLOCK_STEPS) /* of one step */
/* Steps of a block at a time. */
#define CHUNK_STEPS 28
/* Columns of a task from which on weights are used often enough. */
#define TASK_COLUMNS 256
#define TASKS_PER_THREAD 2
#define PAIR_BYTES 4

/* One pass; all it needs, for tasks. Members that end in `_at` are bytes from the beginning of scratch
 * memory, or of a thread's. */
typedef struct run_state {
    const sgm__cpu_call *call;
    const sgm__sheets *s;
    const sgm__sheet_pass *pass;
    sgm__sheet_layout layout;
    int64_t channel_steps; /* of 32 channels */
    int64_t rows;          /* of packed weights: filled up */
    int64_t pixels;        /* that the pass computes of an image and filter */
    int64_t tiles;         /* vectors of pixels of images that are side by side */
    int64_t images;        /* of a task: some times those that are side by side */
    int64_t parts;         /* of the rows, of a task's images */
    int64_t chunk;         /* channel_steps that are computed at a time */
    size_t weights_at, a_steps_at, b_steps_at, threads_at, sums_at, results_at, thread_bytes, total;
} run_state;

static int64_t blocks_of(const run_state *r)
{
    return r->rows / SGM__BLOCK_ROWS;
}

/* Pairs of all sheets of images that are side by side. */
static int64_t group_pairs(const run_state *r)
{
    return r->pass->sheet_count * r->layout.size;
}

static bool is_scattered(const run_state *r)
{
    return r->s->target_stride[0] != 1 || r->s->target_stride[1] != 1;
}

static void choose_tasks(run_state *r)
{
    int64_t beside = r->layout.images, threads = r->call->cpu->threads;
    int64_t groups = sgm__divide_up(r->s->window.batch, beside);
    int64_t each =
        sgm__minimum(sgm__divide_up(TASK_COLUMNS, r->tiles * TILE_COLUMNS), sgm__divide_up(groups, threads));
    r->images = each * beside;
    int64_t tasks = sgm__divide_up(groups, each), wanted = threads > 1 ? threads * TASKS_PER_THREAD : 1;
    r->parts = tasks >= wanted ? 1 : sgm__minimum(sgm__divide_up(wanted, tasks), blocks_of(r));
}

static run_state plan_pass(const sgm__cpu_call *call, const sgm__sheets *s, int32_t index)
{
    const sgm__sheet_pass *pass = &s->passes[index];
    run_state r = {.call = call, .s = s, .pass = pass};
    r.channel_steps = sgm__divide_up(s->depth, CHANNELS);
    r.layout = sgm__sheets_of_pairs(pass, r.channel_steps * PAIRS);
    r.rows = sgm__divide_up(s->width, SGM__BLOCK_ROWS) * SGM__BLOCK_ROWS;
    r.pixels = pass->out[0] * pass->out[1];
    r.tiles = sgm__divide_up(pass->out[0] * r.layout.length, TILE_COLUMNS);
    r.chunk = pass->place_count < CHUNK_STEPS && pass->place_count > 0 ? CHUNK_STEPS / pass->place_count : 1;
    choose_tasks(&r);
    int64_t steps = r.channel_steps * pass->place_count, groups = r.images / r.layout.images;
    int64_t blocks = r.chunk < r.channel_steps ? blocks_of(&r) * sgm__divide_up(groups * r.tiles, 2) : 1;
    r.a_steps_at = sgm__convolution_align(r.rows * steps * PAIRS * PAIR_BYTES);
    r.b_steps_at = r.a_steps_at + sgm__convolution_align(steps * (int64_t)sizeof(int64_t));
    r.threads_at = r.b_steps_at + sgm__convolution_align(steps * (int64_t)sizeof(int64_t));
    r.sums_at = sgm__convolution_align(groups * group_pairs(&r) * PAIR_BYTES);
    r.results_at = r.sums_at + sgm__convolution_align(blocks * SGM__BLOCK_ROWS * SGM__BLOCK_COLUMNS *
                                                      (int64_t)sizeof(float));
    int64_t results = is_scattered(&r) ? r.images * s->width * r.pixels * (int64_t)sizeof(uint16_t) : 0;
    /* Packing weights uses the same memory: twice 16 pairs of all places of a block's rows. */
    int64_t packing = 2 * PAIRS * SGM__BLOCK_ROWS * s->window.size[0] * s->window.size[1] * PAIR_BYTES;
    size_t own = r.results_at + sgm__convolution_align(results), least = sgm__convolution_align(packing);
    r.thread_bytes = own > least ? own : least;
    r.total = r.threads_at + r.thread_bytes * (size_t)call->cpu->threads;
    return r;
}

size_t sgm__blocks_scratch(const sgm__cpu_call *call, const sgm__sheets *s)
{
    size_t largest = 0;
    for (int32_t i = 0; i < s->pass_count; i++) {
        run_state r = plan_pass(call, s, i);
        largest = r.total > largest ? r.total : largest;
    }
    return largest;
}

/* --- weights --- */

/* Pairs of a step of a block of rows. */
#define STEP_PAIRS (SGM__BLOCK_ROWS * PAIRS)

/* Where the pairs of a row (filter, or channel if backward) for place `place` of the pass lie. */
static uint32_t *packed_row(const run_state *r, int64_t channel_step, int64_t place, int64_t row)
{
    uint32_t *packed = (uint32_t *)(void *)(r->call->scratch + r->weights_at);
    int64_t block = channel_step * blocks_of(r) + row / SGM__BLOCK_ROWS;
    return packed + (block * r->pass->place_count + place) * STEP_PAIRS + row % SGM__BLOCK_ROWS * PAIRS;
}

/* The pairs of a row, of each place of the kernel 16, to where those of the pass lie. */
static void place_row(const run_state *r, int64_t channel_step, int64_t row, const uint32_t *from)
{
    for (int32_t i = 0; i < r->pass->place_count; i++)
        memcpy(packed_row(r, channel_step, i, row), from + r->pass->places[i].place * PAIRS,
               PAIRS * sizeof *from);
}

/* Some filters: pairs of their channels, which lie places apart, become neighbours. */
static void pack_filters(const run_state *r, int64_t step, int64_t first, int64_t last, uint32_t *own)
{
    const sgm__window *w = &r->s->window;
    int64_t places = w->size[0] * w->size[1];
    int64_t count = sgm__minimum(w->channels - step * CHANNELS, CHANNELS);
    const uint16_t *from = r->call->inputs[1].data;
    uint32_t *transposed = own + PAIRS * places;
    for (int64_t row = first; row < last; row++) {
        r->call->cpu->vector->pairs.copy_rows(
            own, places, from + (row * w->channels + step * CHANNELS) * places, places, places, count);
        r->call->cpu->vector->f32.transpose(transposed, PAIRS, own, places, sgm__divide_up(count, 2), places);
        place_row(r, step, row, transposed);
    }
}

/* Some channels: of each place pairs of filters. */
static void pack_channels(const run_state *r, int64_t step, int64_t first, int64_t last, uint32_t *own)
{
    const sgm__window *w = &r->s->window;
    int64_t places = w->size[0] * w->size[1], all = (last - first) * places;
    int64_t count = sgm__minimum(w->filters - step * CHANNELS, CHANNELS);
    const uint16_t *from = r->call->inputs[1].data;
    uint32_t *transposed = own + PAIRS * all;
    r->call->cpu->vector->pairs.copy_rows(own, all, from + (step * CHANNELS * w->channels + first) * places,
                                          w->channels * places, all, count);
    r->call->cpu->vector->f32.transpose(transposed, PAIRS, own, all, sgm__divide_up(count, 2), all);
    for (int64_t row = first; row < last; row++)
        place_row(r, step, row, transposed + (row - first) * places * PAIRS);
}

static void make_steps(const run_state *r)
{
    int64_t *a_steps = (int64_t *)(void *)(r->call->scratch + r->a_steps_at);
    int64_t *b_steps = (int64_t *)(void *)(r->call->scratch + r->b_steps_at);
    for (int64_t step = 0; step < r->channel_steps; step++)
        for (int32_t i = 0; i < r->pass->place_count; i++) {
            const sgm__sheet_place *place = &r->pass->places[i];
            *a_steps++ = (step * blocks_of(r) * r->pass->place_count + i) * STEP_PAIRS;
            *b_steps++ =
                place->sheet * r->layout.size + step * PAIRS * r->layout.apart + place->row * r->layout.row;
        }
}

/* The rows of a block, of 32 channels of the other side. The last task makes the tables of steps. */
static void pack_task(void *context, int64_t index, int32_t thread)
{
    const run_state *r = context;
    int64_t blocks = blocks_of(r), step = index / blocks, first = index % blocks * SGM__BLOCK_ROWS;
    int64_t last = sgm__minimum(first + SGM__BLOCK_ROWS, r->s->width);
    if (step == r->channel_steps) {
        make_steps(r);
        return;
    }
    uint32_t *own = (uint32_t *)(void *)(r->call->scratch + r->threads_at + (size_t)thread * r->thread_bytes);
    if (r->s->backward)
        pack_channels(r, step, first, last, own);
    else
        pack_filters(r, step, first, last, own);
    for (int32_t i = 0; i < r->pass->place_count && last < first + SGM__BLOCK_ROWS; i++)
        memset(packed_row(r, step, i, first) + (last - first) * PAIRS, 0,
               (size_t)((first + SGM__BLOCK_ROWS - last) * PAIRS * PAIR_BYTES));
}

/* --- blocks --- */

/* What a task does: images first .. last - 1, blocks of rows begin .. end - 1, in a thread's memory. */
typedef struct share {
    int64_t first, last, begin, end;
    unsigned char *own;
    int32_t configured;
} share;

/* Images that are side by side, from `first` on. */
static void copy_group(const run_state *r, int64_t first, int64_t last, uint32_t *to)
{
    const uint16_t *images = r->call->inputs[0].data;
    int64_t size = r->s->depth * r->s->in[0] * r->s->in[1], sheet = r->layout.size;
    for (int32_t k = 0; k < r->pass->sheet_count; k++)
        for (int64_t i = first; i < last && sgm__sheet_base(r->s, r->pass, k) < 0; i++)
            sgm__sheets_copy(r->call->cpu, r->s, r->pass, k, &r->layout, images + i * size, r->s->depth,
                             i - first, to + k * sheet);
    for (int32_t k = 0; k < r->pass->sheet_count; k++) {
        int32_t base = sgm__sheet_base(r->s, r->pass, k);
        if (base >= 0)
            sgm__sheets_shift(r->pass, k, &r->layout, r->layout.planes, to + base * sheet, to + k * sheet);
    }
}

/* Where the results of an image's rows from `row` on go; scattered ones to the thread's memory first. */
static uint16_t *results_of(const run_state *r, const share *t, int64_t image, int64_t row)
{
    if (is_scattered(r))
        return (uint16_t *)(void *)(t->own + r->results_at) +
               ((image - t->first) * r->s->width + row) * r->pixels;
    return (uint16_t *)r->call->output.data + (image * r->s->width + row) * r->pixels;
}

/* Points one half of a block to tile `tile` of the task's images; none: there is no such tile. Where images
 * are side by side, a tile is a row of all of them. */
static void set_half(const run_state *r, const share *t, int64_t tile, int64_t row, int half,
                     sgm__block_gather *block)
{
    int64_t beside = r->layout.images, image = t->first + tile / r->tiles * beside;
    int64_t start = tile % r->tiles * TILE_COLUMNS, width = r->pass->out[1];
    block->columns[half] = 0;
    if (image >= t->last)
        return;
    const unsigned char *sheets = t->own + tile / r->tiles * group_pairs(r) * PAIR_BYTES;
    int64_t at = start / r->layout.length * r->layout.row + start % r->layout.length;
    block->b[half] = sheets + at * PAIR_BYTES;
    block->columns[half] = (int32_t)(beside > 1 ? sgm__minimum(t->last - image, beside) * width
                                                : sgm__minimum(r->pixels - start, TILE_COLUMNS));
    block->c[half] = results_of(r, t, image, row) + start / beside;
}

/* All blocks of a task, of the steps of some channels. */
static void run_chunk(const run_state *r, share *t, int64_t first_step, int64_t last_step)
{
    const sgm__cpu_call *call = r->call;
    int64_t places = r->pass->place_count, groups = sgm__divide_up(t->last - t->first, r->layout.images);
    int64_t pairs = sgm__divide_up(groups * r->tiles, 2);
    const uint16_t *biases = call->input_count == 3 ? call->inputs[2].data : NULL;
    bool one = r->chunk >= r->channel_steps;
    sgm__block_gather block = {.steps = (last_step - first_step) * places,
                               .a_row = PAIRS,
                               .b_row = r->layout.apart,
                               .add = first_step > 0,
                               .rounds = last_step == r->channel_steps,
                               .c_row = r->pixels,
                               .piece = r->layout.images > 1 ? (int32_t)r->pass->out[1] : TILE_COLUMNS,
                               .c_apart = r->s->width * r->pixels,
                               .low = (float)call->limits.low,
                               .high = (float)call->limits.high,
                               .configured = &t->configured};
    block.a_steps = (const int64_t *)(const void *)(call->scratch + r->a_steps_at) + first_step * places;
    block.b_steps = (const int64_t *)(const void *)(call->scratch + r->b_steps_at) + first_step * places;
    for (int64_t b = t->begin; b < t->end; b++) {
        int64_t row = b * SGM__BLOCK_ROWS;
        block.rows = (int32_t)sgm__minimum(r->s->width - row, SGM__BLOCK_ROWS);
        block.a = (const unsigned char *)packed_row(r, 0, 0, row);
        block.biases = biases != NULL ? biases + row : NULL;
        for (int64_t pair = 0; pair < pairs; pair++) {
            int64_t at = one ? 0 : (b - t->begin) * pairs + pair;
            block.sums = (float *)(void *)(t->own + r->sums_at) + at * SGM__BLOCK_ROWS * SGM__BLOCK_COLUMNS;
            set_half(r, t, 2 * pair, row, 0, &block);
            set_half(r, t, 2 * pair + 1, row, 1, &block);
            call->cpu->vector->pairs.block_gather(&block);
        }
    }
}

/* Rows of results to their places, which a stride leaves between those of other passes. */
static void scatter(const run_state *r, const share *t)
{
    const sgm__sheets *s = r->s;
    int64_t last_row = sgm__minimum(t->end * SGM__BLOCK_ROWS, s->width), stride = s->target_stride[1];
    uint16_t *all = r->call->output.data;
    for (int64_t image = t->first; image < t->last; image++)
        for (int64_t row = t->begin * SGM__BLOCK_ROWS; row < last_row; row++) {
            const uint16_t *from = results_of(r, t, image, row);
            uint16_t *to = all + (image * s->width + row) * s->out[0] * s->out[1];
            for (int64_t i = 0; i < r->pass->out[0]; i++, from += r->pass->out[1]) {
                uint16_t *line =
                    to + (i * s->target_stride[0] + r->pass->phase[0]) * s->out[1] + r->pass->phase[1];
                for (int64_t k = 0; k < r->pass->out[1]; k++)
                    line[k * stride] = from[k];
            }
        }
}

static void block_task(void *context, int64_t index, int32_t thread)
{
    const run_state *r = context;
    share t = {.first = index / r->parts * r->images,
               .own = r->call->scratch + r->threads_at + (size_t)thread * r->thread_bytes};
    t.last = sgm__minimum(t.first + r->images, r->s->window.batch);
    sgm__pool_part(blocks_of(r), 1, r->parts, index % r->parts, &t.begin, &t.end);
    for (int64_t first = t.first; first < t.last; first += r->layout.images)
        copy_group(r, first, sgm__minimum(first + r->layout.images, t.last),
                   (uint32_t *)(void *)t.own + (first - t.first) / r->layout.images * group_pairs(r));
    for (int64_t step = 0; step < r->channel_steps; step += r->chunk)
        run_chunk(r, &t, step, sgm__minimum(step + r->chunk, r->channel_steps));
    if (r->call->cpu->vector->pairs.block_end != NULL)
        r->call->cpu->vector->pairs.block_end();
    if (is_scattered(r))
        scatter(r, &t);
}

void sgm__blocks_run(const sgm__cpu_call *call, const sgm__sheets *s)
{
    if (sgm_shape_elements(&call->output.shape) == 0)
        return;
    for (int32_t i = 0; i < s->pass_count; i++) {
        run_state r = plan_pass(call, s, i);
        sgm__pool_post(call->cpu->pool, blocks_of(&r) * r.channel_steps + 1, pack_task, &r, sizeof r);
        sgm__pool_post(call->cpu->pool, sgm__divide_up(s->window.batch, r.images) * r.parts, block_task, &r,
                       sizeof r);
    }
}
