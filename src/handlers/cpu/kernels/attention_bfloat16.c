/* self_attention and packed_attention of bfloat16 and their gradients by the handler's own tiles of pairs
 * (vector/vector_pairs.h), or by blocks, as AMX multiplies them, head by head, with the scores of a few rows
 * of queries at a time.
 *
 * The operand is that of attention.c, and so are the products: of queries by keys, whose steps are pairs of
 * features, and of what softmax makes of those by values, whose steps are pairs of keys; in the gradient also
 * products that sum over the queries of a block, whose steps are pairs of those. What a product reads is
 * packed for it, keys and values once for all blocks of a head that a task does. Scores, softmax and sums are
 * float32; weights are rounded for the products after softmax, results once. Odd numbers of features and of
 * keys are filled up with zeros. Blocks of packed sequences leave out panels of keys that none of their rows
 * sees. */
#include "handlers/cpu/cpu.h"
#include "handlers/cpu/kernels/kernels.h"
#include "handlers/cpu/kernels/packed_rows.h"
#include "ops/ops.h"

#include <math.h>

/* Rows of queries whose scores are alive: whole tiles of any instruction set, and pairs; two blocks. */
#define TILE_QUERIES 42
#define BLOCK_QUERIES (2 * SGM__BLOCK_ROWS)
#define TASKS_PER_THREAD 4

/* One call of either kernel. Sizes are in numbers; those that end in `_at` count bytes of a thread's memory.
 */
typedef struct heads {
    const sgm__cpu_call *call;
    const sgm__tiles *tiles;
    sgm__vector_function narrow;
    bool back; /* the gradient */
    /* (batch, time, 3 * features); (batch, time, features), NULL in the forward pass. */
    const uint16_t *x, *gradient;
    uint16_t *result; /* (batch, time, features), or in the gradient the shape of x */
    int64_t batch, time, features, heads, size; /* size: features of a head */
    int64_t queries, blocks, parts; /* of a block of queries; of a head: such blocks; tasks that share them */
    bool causal;
    sgm__packed_rows packed;
    float scale;
    /* size as whole pairs; rows with a column for each feature, and for each key, as whole panels */
    int64_t even, feature_row, key_row;
    /* Keys and values with features as steps, then with keys as steps (pairs); a copy of rows. */
    size_t keys_by_feature_at, values_by_feature_at, by_key_at, copy_at;
    /* Of a block: queries and gradients as rows; scores, and gradients by them; both rounded, and with
     * queries as steps (pairs); queries or gradients so; sums of a product. */
    size_t queries_at, gradients_at, scores_at, slopes_at, rounded_at, by_query_at, right_at, sums_at;
    size_t transposed_at;            /* for blocks: by_query_at transposed, as their left operand has rows */
    size_t configured_at;            /* for blocks: sgm__tile has it */
    size_t by_keys_at, by_values_at; /* gradients of a head: sums */
    size_t bytes;
} heads;

/* Where the next `numbers` numbers of 4 bytes begin. */
static size_t take(size_t *bytes, int64_t numbers)
{
    size_t at = *bytes;
    *bytes += sgm__align((size_t)numbers * sizeof(float) + SGM__ALIGNMENT);
    return at;
}

static int64_t round_up(int64_t number, int64_t unit)
{
    return sgm__divide_up(number, unit) * unit;
}

static void lay_out(heads *h)
{
    int64_t pairs = h->even / 2, rows = sgm__minimum(h->queries, h->time);
    h->keys_by_feature_at = take(&h->bytes, pairs * h->key_row);
    h->values_by_feature_at = take(&h->bytes, h->back ? pairs * h->key_row : 0);
    h->by_key_at = take(&h->bytes, sgm__divide_up(h->time, 2) * h->feature_row);
    h->copy_at = take(&h->bytes, h->time * pairs);
    h->queries_at = take(&h->bytes, rows * pairs);
    h->gradients_at = take(&h->bytes, rows * pairs);
    h->scores_at = take(&h->bytes, rows * h->key_row);
    h->slopes_at = take(&h->bytes, rows * h->key_row);
    h->rounded_at = take(&h->bytes, rows * h->key_row / 2);
    h->by_query_at = take(&h->bytes, h->queries / 2 * h->key_row);
    h->transposed_at = take(&h->bytes, h->back && h->tiles->block != NULL ? h->queries / 2 * h->key_row : 0);
    h->configured_at = take(&h->bytes, 1);
    h->right_at = take(&h->bytes, h->queries / 2 * h->feature_row);
    h->sums_at = take(&h->bytes, rows * h->feature_row);
    int64_t sums = h->back ? h->time * h->feature_row : 0;
    h->by_keys_at = take(&h->bytes, sums);
    h->by_values_at = take(&h->bytes, sums);
}

/* Leading dimensions count as batch. */
static heads see(const sgm__cpu_call *call)
{
    bool back = call->node->op == &sgm__op_self_attention_gradient ||
                call->node->op == &sgm__op_packed_attention_gradient;
    const sgm_array *x = &call->inputs[0];
    int32_t rank = x->shape.rank;
    const sgm__vector *vector = call->cpu->vector;
    heads h = {.call = call,
               .tiles = &vector->pairs,
               .narrow = sgm__vector_find(vector, &sgm__op_cast, SGM_FLOAT32, SGM_BFLOAT16),
               .x = x->data,
               .gradient = back ? call->inputs[call->input_count - 1].data : NULL,
               .back = back,
               .result = call->output.data,
               .batch = 1,
               .time = x->shape.dims[rank - 2],
               .features = x->shape.dims[rank - 1] / 3,
               .heads = call->node->attributes.integers[0],
               .causal = call->node->attributes.integers[1] != 0,
               .packed = sgm__packed_rows_of(call)};
    for (int32_t i = 0; i + 2 < rank; i++)
        h.batch *= x->shape.dims[i];
    h.size = h.features / h.heads;
    h.queries = h.tiles->block != NULL ? BLOCK_QUERIES : TILE_QUERIES;
    h.blocks = sgm__divide_up(h.time, h.queries);
    int64_t all = h.batch * h.heads, wanted = call->cpu->threads * TASKS_PER_THREAD;
    h.parts = back || all == 0 ? 1 : sgm__minimum(sgm__divide_up(wanted, all), h.blocks);
    h.scale = (float)(1 / sqrt((double)h.size));
    h.even = round_up(h.size, 2);
    h.feature_row = round_up(h.size, h.tiles->columns);
    h.key_row = round_up(h.time, h.tiles->columns);
    lay_out(&h);
    return h;
}

static size_t scratch(const sgm__cpu_call *call)
{
    return see(call).bytes * (size_t)call->cpu->threads;
}

/* --- products --- */

/* A left operand: rows of pairs of steps, `row` pairs apart; or steps of pairs of columns, `step` apart. */
typedef struct left {
    const void *at;
    int64_t row, step;
} left;

static int32_t *configured(const heads *h, unsigned char *own)
{
    return (int32_t *)(void *)(own + h->configured_at);
}

/* By tiles: the rows of a are divided evenly among them. */
static void multiply_tiles(const heads *h, int64_t m, left a, bool narrow, sgm__tile tile, float *c)
{
    int64_t panels = sgm__divide_up(m, h->tiles->rows);
    const sgm__tile_functions *kind = a.step != 0 ? &h->tiles->packed : &h->tiles->apart;
    const sgm__tile_function *functions = narrow ? kind->narrow : kind->wide;
    tile.a_step = a.step;
    for (int64_t i = 0; i < panels; i++) {
        int64_t first = m * i / panels, last = m * (i + 1) / panels;
        tile.a = (const uint32_t *)a.at + first * (a.step != 0 ? 1 : a.row);
        tile.sums = c + first * tile.sums_stride;
        functions[last - first - 1](&tile);
    }
}

/* By blocks, whose left operand has rows. */
static void multiply_blocks(const heads *h, int64_t m, left a, bool narrow, sgm__tile tile, float *c)
{
    tile.columns = narrow ? SGM__BLOCK_COLUMNS / 2 : SGM__BLOCK_COLUMNS;
    for (int64_t first = 0; first < m; first += SGM__BLOCK_ROWS) {
        tile.rows = (int32_t)sgm__minimum(m - first, SGM__BLOCK_ROWS);
        tile.a = (const uint32_t *)a.at + first * a.row;
        tile.sums = c + first * tile.sums_stride;
        h->tiles->block(&tile);
    }
}

/* c (m x n, rows `c_row` apart, filled up to whole panels) = or += a times b, whose rows are `b_row` apart.
 */
static void multiply(const heads *h, unsigned char *own, int64_t m, int64_t n, int64_t steps, left a,
                     const uint32_t *b, int64_t b_row, float *c, int64_t c_row, bool add)
{
    int64_t width = h->tiles->columns;
    sgm__tile tile = {.depth = steps,
                      .a_row = a.row,
                      .b_stride = b_row,
                      .sums_stride = c_row,
                      .add = add,
                      .configured = configured(h, own)};
    for (int64_t column = 0; column < n; column += width) {
        bool narrow = n - column <= width / 2;
        tile.b = b + column;
        if (h->tiles->block != NULL)
            multiply_blocks(h, m, a, narrow, tile, c + column);
        else
            multiply_tiles(h, m, a, narrow, tile, c + column);
    }
}

/* Rounds rows of sums to where they belong. */
static void round_rows(const heads *h, int64_t rows, int64_t count, const float *from, int64_t from_row,
                       uint16_t *to, int64_t to_row)
{
    for (int64_t i = 0; i < rows; i++)
        h->narrow(count, to + i * to_row, (const void *const[]){from + i * from_row}, 0);
}

/* --- operands --- */

/* A head's rows of queries, keys, values or gradients: `row` numbers apart. */
typedef struct rows {
    const uint16_t *at;
    int64_t row;
} rows;

/* Copies rows as whole pairs, one after the other. */
static void copy_rows(const heads *h, rows from, int64_t count, uint16_t *to)
{
    for (int64_t i = 0; i < count; i++, to += h->even) {
        memcpy(to, from.at + i * from.row, (size_t)h->size * sizeof *to);
        if (h->even > h->size)
            to[h->size] = 0;
    }
}

/* A panel whose steps are pairs of features, and whose columns are `count` rows. */
static void pack_by_feature(const heads *h, rows from, int64_t count, unsigned char *own, size_t at)
{
    copy_rows(h, from, count, (uint16_t *)(void *)(own + h->copy_at));
    h->tiles->transpose(own + at, h->key_row, own + h->copy_at, h->even, count, h->even);
}

/* A panel whose steps are pairs of rows, and whose columns are features. */
static void pack_by_row(const heads *h, rows from, int64_t count, unsigned char *own, size_t at)
{
    h->tiles->copy_rows(own + at, h->feature_row, from.at, from.row, h->size, count);
}

static float *numbers(unsigned char *own, size_t at)
{
    return (float *)(void *)(own + at);
}

/* One block of rows of one head. */
typedef struct block {
    /* Queries `first` to `first + count - 1` of a sequence of the batch; columns of scores are the keys from
     * first_key on, where a panel begins, of which causal blocks have no more than their last row sees. */
    int64_t sequence, first, count, first_key, columns;
    rows q; /* from the block's first row on */
    unsigned char *own;
} block;

static rows rows_of(const heads *h, int64_t head, int64_t which)
{
    int64_t wide = 3 * h->features;
    return (rows){h->x + head / h->heads * h->time * wide + which * h->features + head % h->heads * h->size,
                  wide};
}

static block block_at(const heads *h, int64_t head, int64_t index, unsigned char *own)
{
    block b = {
        .sequence = head / h->heads, .first = index * h->queries, .q = rows_of(h, head, 0), .own = own};
    b.count = sgm__minimum(h->queries, h->time - b.first);
    b.first_key = sgm__packed_rows_first(&h->packed, b.sequence, b.first, b.count);
    b.first_key -= b.first_key % h->tiles->columns;
    b.columns = (h->causal ? b.first + b.count : h->time) - b.first_key;
    b.q.at += b.first * b.q.row;
    return b;
}

/* to = rows times a panel by feature: a column for each key. */
static void multiply_by_features(const heads *h, const block *b, rows from, size_t copy_at, size_t panel_at,
                                 size_t to_at)
{
    copy_rows(h, from, b->count, (uint16_t *)(void *)(b->own + copy_at));
    multiply(h, b->own, b->count, b->columns, h->even / 2, (left){b->own + copy_at, h->even / 2, 0},
             (const uint32_t *)(const void *)(b->own + panel_at) + b->first_key, h->key_row,
             numbers(b->own, to_at), h->key_row, false);
}

/* scores = softmax(q k' scale) row by row, with 0 in the columns that a row does not see, and behind them to
 * a whole pair. */
static void weigh(const heads *h, const block *b)
{
    multiply_by_features(h, b, b->q, h->queries_at, h->keys_by_feature_at, h->scores_at);
    for (int64_t row = 0; row < b->count; row++) {
        float *scores = numbers(b->own, h->scores_at) + row * h->key_row;
        int64_t begin = sgm__packed_rows_start(&h->packed, b->sequence, b->first + row) - b->first_key;
        int64_t end = h->causal ? b->first + row + 1 - b->first_key : b->columns;
        h->call->cpu->vector->softmax_f32(end - begin, scores + begin, scores + begin, h->scale);
        memset(scores, 0, (size_t)begin * sizeof(float));
        memset(scores + end, 0, (size_t)(round_up(b->columns, 2) - end) * sizeof(float));
    }
}

/* to (count x size) = weights or gradients, rounded, times a panel by key. */
static void multiply_by_keys(const heads *h, const block *b, size_t weights_at, uint16_t *to, int64_t to_row)
{
    int64_t even = round_up(b->columns, 2);
    uint16_t *rounded = (uint16_t *)(void *)(b->own + h->rounded_at);
    round_rows(h, b->count, even, numbers(b->own, weights_at), h->key_row, rounded, h->key_row);
    multiply(h, b->own, b->count, h->size, even / 2, (left){rounded, h->key_row / 2, 0},
             (const uint32_t *)(const void *)(b->own + h->by_key_at) + b->first_key / 2 * h->feature_row,
             h->feature_row, numbers(b->own, h->sums_at), h->feature_row, false);
    round_rows(h, b->count, h->size, numbers(b->own, h->sums_at), h->feature_row, to, to_row);
}

/* --- the kernels --- */

/* Before and after what a thread multiplies in a task. */
static void begin_products(const heads *h, unsigned char *own)
{
    *configured(h, own) = 0;
}

static void end_products(const heads *h)
{
    if (h->tiles->block_end != NULL)
        h->tiles->block_end();
}

/* Some blocks of a head. */
static void attend(void *context, int64_t index, int32_t thread)
{
    const heads *h = context;
    int64_t head = index / h->parts, part = index % h->parts;
    int64_t begin = h->blocks * part / h->parts, end = h->blocks * (part + 1) / h->parts;
    unsigned char *own = h->call->scratch + (size_t)thread * h->bytes;
    begin_products(h, own);
    int64_t columns = h->causal ? sgm__minimum(end * h->queries, h->time) : h->time;
    pack_by_feature(h, rows_of(h, head, 1), columns, own, h->keys_by_feature_at);
    pack_by_row(h, rows_of(h, head, 2), columns, own, h->by_key_at);
    for (int64_t i = begin; i < end; i++) {
        block b = block_at(h, head, i, own);
        weigh(h, &b);
        multiply_by_keys(h, &b, h->scores_at,
                         h->result + (head / h->heads * h->time + b.first) * h->features +
                             head % h->heads * h->size,
                         h->features);
    }
    end_products(h);
}

/* The sums of the block's keys (columns x size) += weights' times rows, whose panel is in right_at; the
 * weights are in rounded_at. */
static void add_by_queries(const heads *h, const block *b, size_t sums_at)
{
    h->tiles->copy_rows(b->own + h->by_query_at, h->key_row, b->own + h->rounded_at, h->key_row, b->columns,
                        b->count);
    left transposed = {b->own + h->by_query_at, 0, h->key_row};
    if (h->tiles->block != NULL) {
        transposed = (left){b->own + h->transposed_at, h->queries / 2, 0};
        h->call->cpu->vector->f32.transpose(b->own + h->transposed_at, h->queries / 2,
                                            b->own + h->by_query_at, h->key_row, sgm__divide_up(b->count, 2),
                                            b->columns);
    }
    multiply(h, b->own, b->columns, h->size, sgm__divide_up(b->count, 2), transposed,
             (const uint32_t *)(const void *)(b->own + h->right_at), h->feature_row,
             numbers(b->own, sums_at) + b->first_key * h->feature_row, h->feature_row, true);
}

/* With w the weights (scores), g the result's gradient, s the gradient by q k': s = softmax'(g v'); by
 * queries s k, by keys s' q, by values w' g. */
static void back_block(const heads *h, const block *b, rows g, uint16_t *by_q)
{
    int64_t even = round_up(b->columns, 2);
    weigh(h, b);
    multiply_by_features(h, b, g, h->gradients_at, h->values_by_feature_at, h->slopes_at);
    round_rows(h, b->count, even, numbers(b->own, h->scores_at), h->key_row,
               (uint16_t *)(void *)(b->own + h->rounded_at), h->key_row);
    pack_by_row(h, g, b->count, b->own, h->right_at);
    add_by_queries(h, b, h->by_values_at);
    for (int64_t row = 0; row < b->count; row++) {
        float *slopes = numbers(b->own, h->slopes_at) + row * h->key_row;
        h->call->cpu->vector->softmax_gradient_f32(
            b->columns, slopes, numbers(b->own, h->scores_at) + row * h->key_row, h->scale);
        memset(slopes + b->columns, 0, (size_t)(even - b->columns) * sizeof(float));
    }
    multiply_by_keys(h, b, h->slopes_at, by_q, 3 * h->features);
    pack_by_row(h, b->q, b->count, b->own, h->right_at);
    add_by_queries(h, b, h->by_keys_at);
}

static void attend_back(void *context, int64_t head, int32_t thread)
{
    const heads *h = context;
    unsigned char *own = h->call->scratch + (size_t)thread * h->bytes;
    rows k = rows_of(h, head, 1), v = rows_of(h, head, 2);
    uint16_t *to = h->result + (rows_of(h, head, 0).at - h->x);
    const uint16_t *gradient =
        h->gradient + head / h->heads * h->time * h->features + head % h->heads * h->size;
    begin_products(h, own);
    pack_by_feature(h, k, h->time, own, h->keys_by_feature_at);
    pack_by_feature(h, v, h->time, own, h->values_by_feature_at);
    pack_by_row(h, k, h->time, own, h->by_key_at);
    size_t sums = (size_t)(h->time * h->feature_row) * sizeof(float);
    memset(own + h->by_keys_at, 0, sums);
    memset(own + h->by_values_at, 0, sums);
    for (int64_t i = 0; i < h->blocks; i++) {
        block b = block_at(h, head, i, own);
        back_block(h, &b, (rows){gradient + b.first * h->features, h->features},
                   to + b.first * 3 * h->features);
    }
    end_products(h);
    round_rows(h, h->time, h->size, numbers(own, h->by_keys_at), h->feature_row, to + h->features,
               3 * h->features);
    round_rows(h, h->time, h->size, numbers(own, h->by_values_at), h->feature_row, to + 2 * h->features,
               3 * h->features);
}

static sgm_status run(const sgm__cpu_call *call)
{
    heads h = see(call);
    sgm__pool_post(call->cpu->pool, h.batch * h.heads * h.parts, h.back ? attend_back : attend, &h, sizeof h);
    return SGM_OK;
}

#define KERNEL(operation)                                                                                    \
    {                                                                                                        \
        .op = &sgm__op_##operation, .types = (uint32_t)1 << SGM_BFLOAT16, .scratch = scratch, .posts = true, \
        .run = run                                                                                           \
    }
const sgm__cpu_kernel sgm__cpu_self_attention_bfloat16 = KERNEL(self_attention);
const sgm__cpu_kernel sgm__cpu_self_attention_gradient_bfloat16 = KERNEL(self_attention_gradient);
const sgm__cpu_kernel sgm__cpu_packed_attention_bfloat16 = KERNEL(packed_attention);
const sgm__cpu_kernel sgm__cpu_packed_attention_gradient_bfloat16 = KERNEL(packed_attention_gradient);
