/* random_uniform: numbers that follow from their place alone, so that each tile of an elementwise step draws
 * its own, and threads share what is drawn for others. */
#include "handlers/cpu/cpu.h"
#include "ops/ops.h"

#define STREAM_SHIFT 40      /* as in the operation's definition */
#define BLOCKS_PER_TASK 1024 /* of four numbers */

typedef struct draw {
    const sgm__vector *vector;
    uint64_t seed, step, block;
    int64_t count;
    float *f32;
    double *f64; /* one of both is NULL */
} draw;

/* Up to the end of a block, `first` of its words in. */
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

/* Numbers first .. first + count - 1 to the first places. */
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

static bool takes(sgm_dtype dtype)
{
    return dtype == SGM_FLOAT32 || dtype == SGM_FLOAT64;
}

const sgm__cpu_kernel sgm__cpu_random_uniform = {.op = &sgm__op_random_uniform, .takes = takes, .run = run};
