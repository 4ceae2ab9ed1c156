/* Convolutions of bfloat16 where the handler's own tiles multiply it: the same three kernels, in one of three
 * ways.
 *
 * With tiles of pairs, all but groups of few channels (convolution_slide.c) are multiplied as pairs, by the
 * kernels of float32. With blocks, those that fill them are (convolution_blocks.h). The others are computed
 * in float32: operands are copied to scratch memory, and the result is rounded from there.
 */
#include "handlers/cpu/kernels/convolution/convolution.h"
#include "handlers/cpu/kernels/convolution/convolution_blocks.h"
#include "handlers/cpu/kernels/kernels.h"
#include "ops/ops.h"

#define OPERANDS 3
#define NUMBERS_PER_TASK (1 << 14)

/* One of the three kernels. */
typedef struct kind {
    const sgm__cpu_kernel *kernel;                  /* of float32, and of pairs */
    bool (*takes_pairs)(const sgm__cpu_call *call); /* of these shapes */
    sgm_status (*read)(const sgm_type *a, const sgm_type *b, const sgm_attributes *attributes,
                       sgm__window *window);
    size_t (*scratch)(const sgm__cpu_call *call, const sgm__sheets *s);
    void (*run)(const sgm__cpu_call *call, const sgm__sheets *s);
    bool backward; /* sgm__sheets_make's */
} kind;

typedef enum way { AS_PAIRS, BY_BLOCKS, IN_FLOAT32 } way;

/* A plan: of blocks the sheets; in float32 the call, whose operands and result lie in scratch memory. */
typedef struct plan {
    const kind *of;
    way way;
    sgm__sheets sheets;
    sgm__cpu_call inner;
    sgm_array inputs[OPERANDS];
    size_t at[OPERANDS], result_at, scratch_at, total;
} plan;

static sgm__window window_of(const sgm__cpu_call *call, const kind *of)
{
    sgm_type a = sgm__window_type(&call->inputs[0]), b = sgm__window_type(&call->inputs[1]);
    sgm__window w = {0};
    of->read(&a, &b, &call->node->attributes, &w);
    return w;
}

static way way_of(const sgm__cpu_call *call, const kind *of)
{
    if (call->cpu->vector->pairs.block == NULL)
        return of->takes_pairs(call) ? AS_PAIRS : IN_FLOAT32;
    sgm__window w = window_of(call, of);
    return sgm__sheets_fit(call->cpu, &w) ? BY_BLOCKS : IN_FLOAT32;
}

static void plan_float32(const sgm__cpu_call *call, plan *p)
{
    size_t total = 0;
    for (int32_t i = 0; i < call->input_count; i++) {
        p->inputs[i] = call->inputs[i];
        p->inputs[i].dtype = SGM_FLOAT32;
        p->at[i] = total;
        total += sgm__convolution_align(sgm_shape_elements(&call->inputs[i].shape) * (int64_t)sizeof(float));
    }
    p->inner.inputs = p->inputs; /* for kernel->scratch */
    p->inner.output.dtype = SGM_FLOAT32;
    p->inner.plan = NULL;
    p->result_at = total;
    total += sgm__convolution_align(sgm_shape_elements(&call->output.shape) * (int64_t)sizeof(float));
    p->scratch_at = total;
    p->total = total + p->of->kernel->scratch(&p->inner);
}

static void plan_of(const sgm__cpu_call *call, const kind *of, plan *p)
{
    *p = (plan){.of = of, .way = way_of(call, of), .inner = *call};
    if (p->way == BY_BLOCKS) {
        sgm__window w = window_of(call, of);
        p->sheets = sgm__sheets_make(&w, of->backward);
        p->total = of->scratch(call, &p->sheets);
    } else if (p->way == IN_FLOAT32) {
        plan_float32(call, p);
    } else {
        p->total = of->kernel->scratch(call);
    }
}

static size_t scratch_of(const sgm__cpu_call *call, const kind *of)
{
    plan p;
    plan_of(call, of, &p);
    return p.total;
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
    plan *p = (plan *)(uintptr_t)call->plan;
    if (p->way == AS_PAIRS)
        return p->of->kernel->run(call);
    if (p->way == BY_BLOCKS) {
        p->of->run(call, &p->sheets);
        return SGM_OK;
    }
    p->inner.inputs = p->inputs; /* the plan is where it stays, now */
    p->inner.limits = call->limits;
    p->inner.scratch = call->scratch + p->scratch_at;
    p->inner.output.data = call->scratch + p->result_at;
    for (int32_t i = 0; i < call->input_count; i++) {
        p->inputs[i].data = call->scratch + p->at[i];
        cast(call->cpu, &call->inputs[i], &p->inputs[i]);
    }
    SGM_TRY(p->of->kernel->run(&p->inner));
    cast(call->cpu, &p->inner.output, &call->output);
    return SGM_OK;
}

static const kind forward = {.kernel = &sgm__cpu_convolution,
                             .takes_pairs = sgm__convolution_is_native,
                             .read = sgm__window_convolution,
                             .scratch = sgm__blocks_scratch,
                             .run = sgm__blocks_run};
static const kind input = {.kernel = &sgm__cpu_convolution_input_gradient,
                           .takes_pairs = sgm__convolution_input_is_native,
                           .read = sgm__window_input_gradient,
                           .scratch = sgm__blocks_scratch,
                           .run = sgm__blocks_run,
                           .backward = true};
static const kind weights = {.kernel = &sgm__cpu_convolution_weights_gradient,
                             .takes_pairs = sgm__convolution_weights_is_native,
                             .read = sgm__window_weights_gradient,
                             .scratch = sgm__blocks_weights_scratch,
                             .run = sgm__blocks_weights_run};

/* The functions of one of them. */
#define FUNCTIONS(name)                                                                                      \
    static size_t name##_scratch(const sgm__cpu_call *call)                                                  \
    {                                                                                                        \
        return scratch_of(call, &(name));                                                                    \
    }                                                                                                        \
    static sgm_status name##_plan(const sgm__cpu_call *call, void *to)                                       \
    {                                                                                                        \
        plan_of(call, &(name), to);                                                                          \
        return SGM_OK;                                                                                       \
    }
FUNCTIONS(forward)
FUNCTIONS(input)
FUNCTIONS(weights)

static size_t forward_packed_bytes(const sgm__cpu_call *call)
{
    return way_of(call, &forward) == AS_PAIRS ? sgm__cpu_convolution.packed_bytes(call) : 0;
}

static sgm_status forward_pack(const sgm__cpu_call *call, unsigned char *to)
{
    return sgm__cpu_convolution.pack(call, to);
}

static int64_t forward_parts(const sgm__cpu_call *call, int64_t *maximum)
{
    return way_of(call, &forward) == AS_PAIRS ? sgm__cpu_convolution.parts(call, maximum) : 0;
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
                                                       .plan_size = sizeof(plan),
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
                                                                      .plan_size = sizeof(plan),
                                                                      .plan = input_plan,
                                                                      .posts = true,
                                                                      .run = run};
const sgm__cpu_kernel sgm__cpu_convolution_weights_gradient_bfloat16 = {
    .op = &sgm__op_convolution_weights_gradient,
    .types = (uint32_t)1 << SGM_BFLOAT16,
    .scratch = weights_scratch,
    .plan_size = sizeof(plan),
    .plan = weights_plan,
    .posts = true,
    .run = run};
