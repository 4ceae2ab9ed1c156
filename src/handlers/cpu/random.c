/* The operation random_uniform: numbers of [0, 1) that depend only on seed, step, stream and their position.
 *
 * Number i of a node is word i % 4 of the block that Philox 4x32 (10 rounds; Salmon et al., 2011) makes of
 * (seed, step, stream * 2^40 + i / 4); its upper 24 bits are divided by 2^24. As no number depends on the one
 * before, threads can share an array, and an elementwise step can draw just the numbers of its tile
 * (sgm__cpu_draw, called by elementwise_run.c). sgm__philox and the definition for one element are in
 * src/ops; loops for many numbers at once are `uniform_f32` of vector/vector_random.h. */
#include "handlers/cpu/cpu.h"
#include "ops/ops.h"

#define STREAM_SHIFT 40 /* as in the operation's definition in src/ops: 2^40 blocks for each stream */
/* A block is four numbers. 4096 numbers take some 3 microseconds. */
#define BLOCKS_PER_TASK 1024

/* Where numbers come from and go to; tasks get a copy. */
typedef struct draw {
    const sgm__vector *vector;
    uint64_t seed, step, block; /* block: the first one of this node's stream */
    int64_t count;
    float *f32;
    /* One of f32 and f64 is NULL: it says the type. */
    double *f64;
} draw;

/* Numbers first .. first + count - 1 (at most up to 4) of one block, to the places from `at` on. float32 and
 * float64 get the same 24 bits, so that both types draw the same numbers. */
static void draw_words(const draw *d, uint64_t block, int64_t first, int64_t count, int64_t at)
{
    uint32_t words[4];
    sgm__philox(d->seed, d->step, block, words);
    for (int64_t i = 0; i < count; i++) {
        uint32_t word = words[first + i] >> 8;
        if (d->f32 != NULL)
            d->f32[at + i] = (float)word * 0x1p-24f;
        else if (d->f64 != NULL)
            d->f64[at + i] = (double)word * 0x1p-24;
    }
}

/* Numbers first .. first + count - 1 of the node, to the first places of the target. The rest of a begun
 * block comes first, so that the vector loop starts with a whole block. */
static void draw_numbers(const draw *d, int64_t first, int64_t count)
{
    uint64_t block = d->block + (uint64_t)(first / 4);
    int64_t at = 0;
    if (first % 4 != 0) {
        at = 4 - first % 4 < count ? 4 - first % 4 : count;
        draw_words(d, block++, first % 4, at, 0);
    }
    if (d->f32 != NULL) {
        d->vector->uniform_f32(count - at, d->f32 + at, d->seed, d->step, block);
        return;
    }
    for (; at < count; at += 4)
        draw_words(d, block++, 0, count - at < 4 ? count - at : 4, at);
}

static void run_task(void *context, int64_t index, int32_t thread)
{
    (void)thread;
    draw d = *(const draw *)context;
    int64_t first = index * BLOCKS_PER_TASK * 4, last = first + BLOCKS_PER_TASK * 4;
    last = last < d.count ? last : d.count;
    if (d.f32 != NULL)
        d.f32 += first;
    else
        d.f64 += first;
    draw_numbers(&d, first, last - first);
}

/* `seed` and `step` are the node's operands: one 8-byte integer each, of any alignment. */
static draw make(const sgm__vector *vector, const sgm__node *node, const void *seed, const void *step,
                 void *to)
{
    draw d = {.vector = vector, .block = (uint64_t)node->attributes.integers[0] << STREAM_SHIFT};
    memcpy(&d.seed, seed, sizeof d.seed);
    memcpy(&d.step, step, sizeof d.step);
    if (node->type.dtype == SGM_FLOAT32)
        d.f32 = to;
    else
        d.f64 = to;
    return d;
}

void sgm__cpu_draw(const sgm__vector *vector, const sgm__plan *plan, const sgm__node *node,
                   const sgm__memory *memory, int64_t first, int64_t count, void *to)
{
    const int32_t *operands = plan->operands + node->first_input;
    draw d = make(vector, node, sgm__place_address(&plan->nodes[operands[0]].place, memory),
                  sgm__place_address(&plan->nodes[operands[1]].place, memory), to);
    draw_numbers(&d, first, count);
}

static sgm_status run(const sgm__cpu_call *call)
{
    draw d =
        make(call->cpu->vector, call->node, call->inputs[0].data, call->inputs[1].data, call->output.data);
    d.count = sgm_shape_elements(&call->output.shape);
    int64_t part = BLOCKS_PER_TASK * 4;
    sgm__pool_run(call->cpu->pool, (d.count + part - 1) / part, run_task, &d);
    return SGM_OK;
}

const sgm__cpu_kernel sgm__cpu_random_uniform = {
    .op = &sgm__op_random_uniform, .types = SGM__CPU_FLOATS, .run = run};
