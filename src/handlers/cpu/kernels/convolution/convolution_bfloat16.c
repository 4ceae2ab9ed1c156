/* Convolutions of bfloat16 where the handler's own tiles multiply it: the same three kernels.
 *
 * All but groups of few channels (convolution_slide.c) are multiplied as pairs, by the kernels of float32.
 * Those are computed in float32: operands are copied to scratch memory, and the result is rounded from there.
 */
#include "handlers/cpu/kernels/convolution/convolution.h"
#include "handlers/cpu/kernels/kernels.h"
#include "ops/ops.h"

#define OPERANDS 3
#define NUMBERS_PER_TASK (1 << 14)

/* A plan: the call of float32, whose operands and result lie in scratch memory; none of what is `native`. */
typedef struct singles {
    const sgm__cpu_kernel *kernel;
    bool native;
    sgm__cpu_call inner;
    sgm_array inputs[OPERANDS];
    size_t at[OPERANDS], result_at, scratch_at, total;
} singles;

static singles plan_of(const sgm__cpu_call *call, const sgm__cpu_kernel *kernel, bool native)
{
    singles s = {.kernel = kernel, .native = native, .inner = *call};
    size_t total = 0;
    if (native)
        return s;
    for (int32_t i = 0; i < call->input_count; i++) {
        s.inputs[i] = call->inputs[i];
        s.inputs[i].dtype = SGM_FLOAT32;
        s.at[i] = total;
        total += sgm__convolution_align(sgm_shape_elements(&call->inputs[i].shape) * (int64_t)sizeof(float));
    }
    s.inner.inputs = s.inputs; /* for kernel->scratch */
    s.inner.output.dtype = SGM_FLOAT32;
    s.inner.plan = NULL;
    s.result_at = total;
    total += sgm__convolution_align(sgm_shape_elements(&call->output.shape) * (int64_t)sizeof(float));
    s.scratch_at = total;
    total += kernel->scratch(&s.inner);
    s.total = total;
    return s;
}

static size_t scratch_of(const sgm__cpu_call *call, const sgm__cpu_kernel *kernel, bool native)
{
    return native ? kernel->scratch(call) : plan_of(call, kernel, native).total;
}

/* A loop of casts. */
typedef struct cast_loop {
    sgm__vector_function cast;
    const unsigned char *from;
    unsigned char *to;
    size_t from_size, to_size;
    int64_t count;
} cast_loop;

static void cast_task(void *context, int64_t index, int32_t thread)
{
    (void)thread;
    const cast_loop *l = context;
    int64_t first = index * NUMBERS_PER_TASK, count = sgm__minimum(l->count - first, NUMBERS_PER_TASK);
    l->cast(count, l->to + (size_t)first * l->to_size,
            (const void *const[]){l->from + (size_t)first * l->from_size}, 0);
}

static void cast(const sgm__cpu *cpu, const sgm_array *from, const sgm_array *to)
{
    cast_loop l = {.cast = sgm__vector_find(cpu->vector, &sgm__op_cast, from->dtype, to->dtype),
                   .from = from->data,
                   .to = to->data,
                   .from_size = sgm_dtype_size(from->dtype),
                   .to_size = sgm_dtype_size(to->dtype),
                   .count = sgm_shape_elements(&from->shape)};
    sgm__pool_post(cpu->pool, sgm__divide_up(l.count, NUMBERS_PER_TASK), cast_task, &l, sizeof l);
}

static sgm_status run(const sgm__cpu_call *call)
{
    singles *s = (singles *)(uintptr_t)call->plan;
    if (s->native)
        return s->kernel->run(call);
    s->inner.inputs = s->inputs; /* the plan is where it stays, now */
    s->inner.limits = call->limits;
    s->inner.scratch = call->scratch + s->scratch_at;
    s->inner.output.data = call->scratch + s->result_at;
    for (int32_t i = 0; i < call->input_count; i++) {
        s->inputs[i].data = call->scratch + s->at[i];
        cast(call->cpu, &call->inputs[i], &s->inputs[i]);
    }
    SGM_TRY(s->kernel->run(&s->inner));
    cast(call->cpu, &s->inner.output, &call->output);
    return SGM_OK;
}

/* The functions of one of the three kernels. */
#define HALVES(name, kernel, is_native)                                                                      \
    static size_t name##_scratch(const sgm__cpu_call *call)                                                  \
    {                                                                                                        \
        return scratch_of(call, &(kernel), is_native(call));                                                 \
    }                                                                                                        \
    static sgm_status name##_plan(const sgm__cpu_call *call, void *plan)                                     \
    {                                                                                                        \
        *(singles *)plan = plan_of(call, &(kernel), is_native(call));                                        \
        return SGM_OK;                                                                                       \
    }
HALVES(forward, sgm__cpu_convolution, sgm__convolution_is_native)
HALVES(input, sgm__cpu_convolution_input_gradient, sgm__convolution_input_is_native)
HALVES(weights, sgm__cpu_convolution_weights_gradient, sgm__convolution_weights_is_native)

static size_t forward_packed_bytes(const sgm__cpu_call *call)
{
    return sgm__convolution_is_native(call) ? sgm__cpu_convolution.packed_bytes(call) : 0;
}

static sgm_status forward_pack(const sgm__cpu_call *call, unsigned char *to)
{
    return sgm__cpu_convolution.pack(call, to);
}

static int64_t forward_parts(const sgm__cpu_call *call, int64_t *maximum)
{
    return sgm__convolution_is_native(call) ? sgm__cpu_convolution.parts(call, maximum) : 0;
}

static void forward_begin(const sgm__cpu_call *call)
{
    sgm__cpu_convolution.begin(call);
}

static void forward_part(const sgm__cpu_call *call, int64_t index, int32_t thread, void *to, int64_t *first,
                         int64_t *last)
{
    sgm__cpu_convolution.part(call, index, thread, to, first, last);
}

const sgm__cpu_kernel sgm__cpu_convolution_bfloat16 = {.op = &sgm__op_convolution,
                                                       .types = (uint32_t)1 << SGM_BFLOAT16,
                                                       .scratch = forward_scratch,
                                                       .plan_size = sizeof(singles),
                                                       .plan = forward_plan,
                                                       .packed_bytes = forward_packed_bytes,
                                                       .pack = forward_pack,
                                                       .posts = true,
                                                       .run = run,
                                                       .parts = forward_parts,
                                                       .begin = forward_begin,
                                                       .part = forward_part,
                                                       .limits = true};
const sgm__cpu_kernel sgm__cpu_convolution_input_gradient_bfloat16 = {.op =
                                                                          &sgm__op_convolution_input_gradient,
                                                                      .types = (uint32_t)1 << SGM_BFLOAT16,
                                                                      .scratch = input_scratch,
                                                                      .plan_size = sizeof(singles),
                                                                      .plan = input_plan,
                                                                      .posts = true,
                                                                      .run = run};
const sgm__cpu_kernel sgm__cpu_convolution_weights_gradient_bfloat16 = {
    .op = &sgm__op_convolution_weights_gradient,
    .types = (uint32_t)1 << SGM_BFLOAT16,
    .scratch = weights_scratch,
    .plan_size = sizeof(singles),
    .plan = weights_plan,
    .posts = true,
    .run = run};
