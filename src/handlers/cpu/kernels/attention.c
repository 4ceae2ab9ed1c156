/* self_attention, packed_attention and their gradients, head by head, with the scores of a few rows of
 * queries at a time.
 *
 * The operand x is (batch, time, 3 * features): queries, keys and values of all heads, as the product before
 * it left them. For each head, with columns of `size` features: softmax(q k' / sqrt(size)) v. Only BLOCK rows
 * of scores exist at a time, in a thread's memory, so they stay in the first cache; queries, keys and values
 * are read in place with strides, only keys (and values in the gradient) are transposed, and causal rows
 * leave out the columns that they do not see: keys that come later and, of packed sequences, all before the
 * first one that a row of the block sees. The gradient computes the scores again, as they were not kept.
 * A task of the forward pass is one block of one head; of the gradient one head, as blocks add to the same
 * gradients by keys and values. float32 only. Products are those without packing (`small` in
 * vector_product.h). */
#include "handlers/cpu/cpu.h"
#include "handlers/cpu/kernels/kernels.h"
#include "handlers/cpu/kernels/packed_rows.h"
#include "ops/ops.h"

#include <math.h>

#define BLOCK 32 /* rows of queries whose scores are alive */
#define CACHE_LINE 64
/* Numbers added to rows of transposed keys whose length is a multiple of LONG: rows at distances of powers of
 * two push each other out of the first cache. */
#define PADDING 16
#define LONG 256

/* One call of either kernel: operands, sizes, and how a thread's memory is divided. */
typedef struct heads {
    const sgm__cpu_call *call;
    /* (batch, time, 3 * features); (batch, time, features), NULL in the forward pass. */
    const float *x, *gradient;
    float *result; /* (batch, time, features), or in the gradient the shape of x */
    int64_t batch, time, features, heads, size; /* size: features of a head */
    int64_t blocks;
    bool causal;
    sgm__packed_rows packed;
    float scale;
    /* Of each thread's memory: transposed keys or values (size, time); scores (BLOCK, time), and as many
     * gradients; sums (time, size). */
    size_t transposed_bytes, scores_bytes, sums_bytes;
} heads;

static bool is_gradient(const sgm__cpu_call *call)
{
    return call->node->op == &sgm__op_self_attention_gradient ||
           call->node->op == &sgm__op_packed_attention_gradient;
}

/* Leading dimensions count as batch. */
static heads see(const sgm__cpu_call *call)
{
    const sgm_array *x = &call->inputs[0];
    int32_t rank = x->shape.rank;
    heads h = {.call = call,
               .x = x->data,
               .gradient = is_gradient(call) ? call->inputs[call->input_count - 1].data : NULL,
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
    h.blocks = (h.time + BLOCK - 1) / BLOCK;
    h.scale = (float)(1 / sqrt((double)h.size));
    h.transposed_bytes = sgm__align((size_t)((h.time + PADDING) * h.size) * sizeof(float));
    h.scores_bytes = sgm__align((size_t)(sgm__minimum(BLOCK, h.time) * h.time) * sizeof(float));
    h.sums_bytes = sgm__align((size_t)(h.time * h.size) * sizeof(float));
    return h;
}

static size_t thread_bytes(const heads *h)
{
    return h->transposed_bytes + 2 * h->scores_bytes + h->sums_bytes;
}

static size_t scratch(const sgm__cpu_call *call)
{
    heads h = see(call);
    return thread_bytes(&h) * (size_t)call->cpu->threads;
}

/* A matrix of floats: rows lie `row` elements apart, neighbours in a row `column` elements. */
typedef struct matrix {
    const float *at;
    int64_t row, column;
} matrix;

/* c (m x n) = a (m x k) b (k x n); rows of b and c are contiguous. All operands are small and near, so
 * nothing is packed. */
static void multiply(const heads *h, int64_t m, int64_t n, int64_t k, matrix a, matrix b, float *c,
                     int64_t c_row)
{
    sgm__small_product p = {.m = m,
                            .n = n,
                            .k = k,
                            .a = a.at,
                            .a_row = a.row,
                            .a_column = a.column,
                            .b = b.at,
                            .b_row = b.row,
                            .c = c,
                            .c_row = c_row};
    h->call->cpu->vector->f32.small(&p);
}

/* One block of rows of one head, with the thread's memory. */
typedef struct block {
    /* Queries `first` to `first + rows - 1` of a sequence of the batch; columns of scores are the keys from
     * first_key on, of which causal blocks have no more than their last row sees. */
    int64_t sequence, first, rows, first_key, columns;
    matrix q, k, v; /* of the head; q from the block's first row on, k and v from first_key on */
    float *transposed, *scores, *gradients, *sums;
} block;

/* Heads are numbered through the batch. */
static block block_at(const heads *h, int64_t head, int64_t index, unsigned char *memory)
{
    int64_t wide = 3 * h->features;
    const float *x = h->x + head / h->heads * h->time * wide + head % h->heads * h->size;
    block b = {.sequence = head / h->heads, .first = index * BLOCK};
    b.rows = sgm__minimum(BLOCK, h->time - b.first);
    b.first_key = sgm__packed_rows_first(&h->packed, b.sequence, b.first, b.rows);
    b.columns = (h->causal ? b.first + b.rows : h->time) - b.first_key;
    b.q = (matrix){x + b.first * wide, wide, 1};
    b.k = (matrix){x + b.first_key * wide + h->features, wide, 1};
    b.v = (matrix){x + b.first_key * wide + 2 * h->features, wide, 1};
    b.transposed = (float *)(void *)memory;
    b.scores = (float *)(void *)(memory + h->transposed_bytes);
    b.gradients = (float *)(void *)(memory + h->transposed_bytes + h->scores_bytes);
    b.sums = (float *)(void *)(memory + h->transposed_bytes + 2 * h->scores_bytes);
    return b;
}

/* c (rows x columns) = left right', where `right` has a row for each column of c. */
static void multiply_transposed(const heads *h, const block *b, matrix left, matrix right, float *c)
{
    int64_t stride = b->columns % LONG == 0 ? b->columns + PADDING : b->columns;
    h->call->cpu->vector->f32.transpose(b->transposed, stride, right.at, right.row, b->columns, h->size);
    multiply(h, b->rows, b->columns, h->size, left, (matrix){b->transposed, stride, 1}, c, b->columns);
}

/* Fetches rows that are read soon: they lie too far apart for the processor to guess. */
static void fetch(const heads *h, matrix m, int64_t rows)
{
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < h->size; i += CACHE_LINE / (int64_t)sizeof(float))
            __builtin_prefetch(m.at + row * m.row + i);
}

/* scores = softmax(q k' scale) row by row, with 0 in the columns that a row does not see. */
static void weigh(const heads *h, const block *b)
{
    fetch(h, b->k, b->columns);
    fetch(h, b->q, b->rows);
    fetch(h, b->v, b->columns);
    const sgm__vector *vector = h->call->cpu->vector;
    multiply_transposed(h, b, b->q, b->k, b->scores);
    for (int64_t row = 0; row < b->rows; row++) {
        float *scores = b->scores + row * b->columns;
        int64_t begin = sgm__packed_rows_start(&h->packed, b->sequence, b->first + row) - b->first_key;
        int64_t end = h->causal ? b->first + row + 1 - b->first_key : b->columns;
        vector->softmax_f32(end - begin, scores + begin, scores + begin, h->scale);
        memset(scores, 0, (size_t)begin * sizeof(float));
        memset(scores + end, 0, (size_t)(b->columns - end) * sizeof(float));
    }
}

/* One block of the result: scores times values. */
static void attend(void *context, int64_t index, int32_t thread)
{
    const heads *h = context;
    int64_t head = index / h->blocks, n = head / h->heads;
    block b = block_at(h, head, index % h->blocks, h->call->scratch + (size_t)thread * thread_bytes(h));
    float *y = h->result + (n * h->time + b.first) * h->features + head % h->heads * h->size;
    weigh(h, &b);
    multiply(h, b.rows, h->size, b.columns, (matrix){b.scores, b.columns, 1}, b.v, y, h->features);
}

/* --- the gradient --- */

/* From gradients by the weights to gradients by the products q k'. */
static void gradient_of_softmax(const heads *h, const block *b)
{
    for (int64_t row = 0; row < b->rows; row++)
        h->call->cpu->vector->softmax_gradient_f32(b->columns, b->gradients + row * b->columns,
                                                   b->scores + row * b->columns, h->scale);
}

/* The result's rows of the block's keys (columns x size) = a' other in the first block, which has all keys
 * from 0 on, += in later ones; rows of the result are as far apart as those of x. */
static void add_product(const heads *h, const block *b, const float *a, matrix other, float *result)
{
    int64_t wide = 3 * h->features;
    matrix left = {a, 1, b->columns};
    result += b->first_key * wide;
    if (b->first == 0) {
        multiply(h, b->columns, h->size, b->rows, left, other, result, wide);
        return;
    }
    multiply(h, b->columns, h->size, b->rows, left, other, b->sums, h->size);
    for (int64_t row = 0; row < b->columns; row++)
        for (int64_t i = 0; i < h->size; i++)
            result[row * wide + i] += b->sums[row * h->size + i];
}

/* The first block of a causal head writes only the rows that it sees; later blocks add to the others. */
static void clear_rest(const heads *h, const block *b, float *result)
{
    for (int64_t row = b->columns; row < h->time; row++)
        memset(result + row * 3 * h->features, 0, (size_t)h->size * sizeof(float));
}

/* With w the weights (scores), g the result's gradient, s the gradient by q k': s = softmax'(g v'); by
 * queries s k, by keys s' q, by values w' g. */
static void attend_back(void *context, int64_t head, int32_t thread)
{
    const heads *h = context;
    int64_t n = head / h->heads, shift = head % h->heads * h->size, wide = 3 * h->features;
    float *by_q = h->result + n * h->time * wide + shift;
    float *by_k = by_q + h->features, *by_v = by_k + h->features;
    for (int64_t index = 0; index < h->blocks; index++) {
        block b = block_at(h, head, index, h->call->scratch + (size_t)thread * thread_bytes(h));
        matrix gradient = {h->gradient + (n * h->time + b.first) * h->features + shift, h->features, 1};
        weigh(h, &b);
        multiply_transposed(h, &b, gradient, b.v, b.gradients);
        gradient_of_softmax(h, &b);
        multiply(h, b.rows, h->size, b.columns, (matrix){b.gradients, b.columns, 1}, b.k,
                 by_q + b.first * wide, wide);
        if (index == 0) {
            clear_rest(h, &b, by_k);
            clear_rest(h, &b, by_v);
        }
        add_product(h, &b, b.gradients, b.q, by_k);
        add_product(h, &b, b.scores, gradient, by_v);
    }
}

static sgm_status run(const sgm__cpu_call *call)
{
    heads h = see(call);
    bool back = is_gradient(call);
    int64_t tasks = h.batch * h.heads * (back ? 1 : h.blocks);
    sgm__pool_post(call->cpu->pool, tasks, back ? attend_back : attend, &h, sizeof h);
    return SGM_OK;
}

#define KERNEL(operation)                                                                                    \
    {                                                                                                        \
        .op = &sgm__op_##operation, .types = SGM__CPU_FLOAT32, .scratch = scratch, .posts = true, .run = run \
    }
const sgm__cpu_kernel sgm__cpu_self_attention = KERNEL(self_attention);
const sgm__cpu_kernel sgm__cpu_self_attention_gradient = KERNEL(self_attention_gradient);
const sgm__cpu_kernel sgm__cpu_packed_attention = KERNEL(packed_attention);
const sgm__cpu_kernel sgm__cpu_packed_attention_gradient = KERNEL(packed_attention_gradient);
