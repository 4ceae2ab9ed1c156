/* random_uniform by all threads: a task's numbers follow from their place alone. */
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

static void run_task(void *context, int64_t index, int32_t thread)
{
    (void)thread;
    const draw *d = context;
    int64_t first = index * BLOCKS_PER_TASK * 4, last = first + BLOCKS_PER_TASK * 4;
    last = last < d->count ? last : d->count;
    uint64_t block = d->block + (uint64_t)(first / 4);
    if (d->f32 != NULL) {
        d->vector->uniform_f32(last - first, d->f32 + first, d->seed, d->step, block);
        return;
    }
    for (int64_t i = first; i < last; i += 4) {
        uint32_t words[4];
        sgm__philox(d->seed, d->step, block++, words);
        for (int64_t k = i; k < i + 4 && k < last; k++)
            d->f64[k] = (double)(words[k - i] >> 8) * 0x1p-24;
    }
}

static sgm_status run(const sgm__cpu_call *call)
{
    int64_t seed, step;
    memcpy(&seed, call->inputs[0].data, sizeof seed);
    memcpy(&step, call->inputs[1].data, sizeof step);
    draw d = {.vector = call->cpu->vector,
              .seed = (uint64_t)seed,
              .step = (uint64_t)step,
              .block = (uint64_t)call->node->attributes.integers[0] << STREAM_SHIFT,
              .count = sgm_shape_elements(&call->output.shape)};
    if (call->output.dtype == SGM_FLOAT32)
        d.f32 = call->output.data;
    else
        d.f64 = call->output.data;
    int64_t part = BLOCKS_PER_TASK * 4;
    sgm__pool_run(call->cpu->pool, (d.count + part - 1) / part, run_task, &d);
    return SGM_OK;
}

static bool takes(sgm_dtype dtype)
{
    return dtype == SGM_FLOAT32 || dtype == SGM_FLOAT64;
}

const sgm__cpu_kernel sgm__cpu_random_uniform = {.op = &sgm__op_random_uniform, .takes = takes, .run = run};
