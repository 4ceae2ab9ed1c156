/* Runs a sum together with the elementwise step that makes its terms, part by part.
 *
 * Terms are the squares of a gradient, say, or the products of a dot product. Each part of them is added
 * while it is in the cache, and if only the sum reads the terms they are never in memory. Where the
 * elementwise step reads the result of a matrix product just before it, blocks of that product can be
 * computed in the same pass (the norm of a gradient, right after the gradient). The parts and their order are
 * those of the sum alone (kernels/reduce.c), and so are the bits. compile.c finds such steps when it compiles
 * (fuse_sums); in contrast to fused.c the product's result is written to memory, as other steps read it, too.
 * Measurements: docs/performance.md, Elementwise steps. */
#include "handlers/cpu/elementwise/elementwise.h"
#include "handlers/cpu/elementwise/step.h"
#include "handlers/cpu/kernels/kernels.h"
#include "handlers/cpu/product/dense.h"
#include "handlers/cpu/run/program.h"
#include "ops/ops.h"

#define MINIMUM_ELEMENTS 4096 /* terms; fewer stay in the first cache anyway */

/* A sum with its terms' step, and perhaps a product. Constant after compiling. */
struct sgm__summed {
    const sgm__elementwise *elementwise;
    sgm__cpu_call call; /* of the sum */
    int32_t terms;      /* the node that is summed */
    bool moved;         /* only the sum reads the terms: they go to a thread's memory, not to their place */
    int64_t parts;      /* of the sum, as sgm__cpu_sum_parts says */
    const sgm__node *made; /* the product's result; NULL: without one */
    sgm__product product;
    /* Parts of the sum whose terms come from one block of the product. */
    int64_t parts_at_once;
    size_t product_bytes;
    /* Of each thread: a part's terms (if moved), the elementwise step's buffers, the product's scratch
     * memory; thread_bytes is the sum. In front of all threads' memory: sums that are not complete. */
    size_t block_bytes, thread_bytes, partial_bytes;
};

/* --- compiling --- */

/* The sum must not lie where the elementwise step reads or writes: some of its results are stored before
 * other parts have begun. */
bool sgm__summed_is_possible(const sgm__plan *plan, int32_t step)
{
    const sgm__node *sum = &plan->nodes[plan->order[plan->steps[step].first]];
    if (step == 0 || sum->op != &sgm__op_reduce_sum || plan->steps[step - 1].kind != SGM__STEP_ELEMENTWISE)
        return false;
    int32_t terms = plan->operands[sum->first_input];
    const sgm__node *node = &plan->nodes[terms];
    return node->place.store == SGM__STORE_ARENA && sgm__step_makes(plan, &plan->steps[step - 1], terms) &&
           sgm_shape_elements(&node->type.shape) >= MINIMUM_ELEMENTS &&
           !sgm__flow_touches(plan, step - 1, sum);
}

sgm_status sgm__summed_create(const sgm__plan *plan, const sgm__cpu_call *call,
                              const sgm__elementwise *elementwise, sgm__summed **summed)
{
    int64_t maximum, unit, parts = sgm__cpu_sum_parts(call, &maximum, &unit);
    int32_t terms = plan->operands[call->node->first_input];
    *summed = NULL;
    if (parts == 0 || !sgm__elementwise_makes(elementwise, terms) ||
        !sgm__elementwise_has_parts(elementwise, terms, unit))
        return SGM_OK;
    sgm__summed *s = sgm__calloc(1, sizeof *s);
    if (s == NULL)
        return SGM_ERROR_MEMORY;
    *s = (sgm__summed){.elementwise = elementwise, .call = *call, .terms = terms, .parts = parts};
    /* Decides whether the terms are written at all. */
    s->moved = sgm__plan_readers(plan, terms) == 1;
    s->block_bytes = s->moved ? sgm__align((size_t)maximum * sgm_dtype_size(call->output.dtype) + 64) : 0;
    s->thread_bytes = s->block_bytes + sgm__align(sgm__elementwise_buffers(elementwise));
    s->partial_bytes = sgm__align((size_t)sgm__cpu_sum_partials(call) * sizeof(double));
    *summed = s;
    return SGM_OK;
}

/* Whether the elementwise step in `step` writes where the product's operand lies. Terms that only the sum
 * reads are not written; the sum itself, which is one number here, is written when all products are done. */
static bool is_overwritten(const sgm__plan *plan, const sgm__summed *s, const sgm__node *operand,
                           int32_t step)
{
    for (int32_t i = 0; i < plan->steps[step].count; i++) {
        int32_t node = plan->order[plan->steps[step].first + i];
        if ((node != s->terms || !s->moved) && sgm__cpu_overlap(&plan->nodes[node], operand))
            return true;
    }
    return false;
}

/* The conditions: the product's result has the terms' shape and is read in place; everything is summed to one
 * number; parts of the sum are whole rows, so that a block of rows gives whole parts. Steps between product
 * and sum: only the elementwise step, `step` - 1. */
bool sgm__summed_add_product(const sgm__cpu *cpu, const sgm__plan *plan, int32_t step,
                             const sgm__cpu_call *call, sgm__summed *summed)
{
    int32_t made = plan->order[plan->steps[step - 2].first];
    const sgm__node *node = &plan->nodes[made];
    const sgm_shape *shape = &plan->nodes[summed->terms].type.shape;
    if (!sgm__fused_is_product(cpu, plan, node) || node->place.store != SGM__STORE_ARENA ||
        !sgm_shape_equal(&node->type.shape, shape) || summed->call.output.shape.rank != 0 ||
        !sgm__elementwise_has_parts(summed->elementwise, made, shape->dims[1]))
        return false;
    for (int32_t k = 0; k < 2; k++)
        if (is_overwritten(plan, summed, &plan->nodes[plan->operands[node->first_input + k]], step - 1))
            return false;
    int64_t maximum, unit, row = shape->dims[1] * (int64_t)sgm_dtype_size(node->type.dtype);
    sgm__cpu_sum_parts(&summed->call, &maximum, &unit);
    if (unit != shape->dims[1])
        return false;
    summed->parts_at_once =
        sgm__fused_share(summed->parts, SGM__FUSED_BLOCK_BYTES / (maximum / unit * row), cpu->threads);
    summed->made = node;
    summed->product = sgm__fused_product(plan, node);
    summed->product.packed = call->packed;
    sgm__product block = summed->product;
    block.m = summed->parts_at_once * (maximum / unit);
    summed->product_bytes = sgm__align(sgm__dense_scratch(cpu->dense, cpu->vector, &block, 1));
    summed->thread_bytes += summed->product_bytes;
    return true;
}

void sgm__summed_free(sgm__summed *summed)
{
    sgm__free(summed);
}

size_t sgm__summed_scratch(const sgm__summed *summed, const sgm__cpu *cpu)
{
    return summed->partial_bytes + summed->thread_bytes * (size_t)cpu->threads;
}

/* --- running --- */

/* What a task needs; copied when it is posted. `product` has its addresses. */
typedef struct run {
    const sgm__cpu *cpu;
    const sgm__summed *s;
    const sgm__memory *memory;
    unsigned char *scratch, *result;
    sgm__product product;
} run;

/* One part: the terms by the elementwise step, then their sum. */
static void run_part(void *context, int64_t index, int32_t thread)
{
    const run *r = context;
    const sgm__summed *s = r->s;
    const sgm__node *node = &s->elementwise->plan->nodes[s->terms];
    unsigned char *block = r->scratch + s->partial_bytes + (size_t)thread * s->thread_bytes;
    unsigned char *buffers = block + s->block_bytes;
    int64_t first, last;
    sgm__cpu_sum_range(&s->call, index, &first, &last);
    if (!s->moved)
        block =
            sgm__place_address(&node->place, r->memory) + first * (int64_t)sgm_dtype_size(node->type.dtype);
    sgm__elementwise_run_part(r->cpu, s->elementwise, r->memory, buffers, first, last, s->terms, block);
    sgm__cpu_sum_part(&s->call, index, block, (double *)(void *)r->scratch, r->result);
}

/* Some rows of the product, then the parts of the sum whose terms these rows give. */
static void run_block(void *context, int64_t index, int32_t thread)
{
    const run *r = context;
    const sgm__summed *s = r->s;
    int64_t part = index * s->parts_at_once, first, last, unused;
    int64_t end = sgm__minimum(part + s->parts_at_once, s->parts);
    if (part >= end)
        return;
    sgm__cpu_sum_range(&s->call, part, &first, &unused);
    sgm__cpu_sum_range(&s->call, end - 1, &unused, &last);
    sgm__product p = r->product;
    int64_t row = first / p.n, size = (int64_t)sgm_dtype_size(p.dtype);
    p.m = last / p.n - row;
    p.a = (const unsigned char *)p.a + row * p.a_row * size;
    p.c = (unsigned char *)p.c + first * size;
    unsigned char *own = r->scratch + s->partial_bytes + (size_t)thread * s->thread_bytes;
    sgm__dense_run(r->cpu->dense, r->cpu->vector, NULL, &p, own + s->thread_bytes - s->product_bytes);
    for (; part < end; part++)
        run_part(context, part, thread);
}

/* Adds the parts' sums in their order. One task, when all parts are done. */
static void end_sum(void *context, int64_t index, int32_t thread)
{
    (void)index;
    (void)thread;
    const run *r = context;
    sgm__cpu_sum_end(&r->s->call, (const double *)(const void *)r->scratch, r->result);
}

void sgm__summed_run(const sgm__cpu *cpu, const sgm__summed *summed, bool product, const sgm__memory *memory,
                     unsigned char *scratch)
{
    run r = {.cpu = cpu, .s = summed, .memory = memory, .scratch = scratch};
    r.result = sgm__place_address(&summed->call.node->place, memory);
    if (product) {
        const sgm__plan *plan = summed->elementwise->plan;
        const int32_t *operands = plan->operands + summed->made->first_input;
        r.product = summed->product;
        r.product.a = sgm__place_address(&plan->nodes[operands[0]].place, memory);
        r.product.b = sgm__place_address(&plan->nodes[operands[1]].place, memory);
        r.product.c = sgm__place_address(&summed->made->place, memory);
        int64_t blocks = sgm__divide_up(summed->parts, summed->parts_at_once);
        sgm__pool_post(cpu->pool, blocks, run_block, &r, sizeof r);
    } else {
        sgm__pool_post(cpu->pool, summed->parts, run_part, &r, sizeof r);
    }
    sgm__pool_post(cpu->pool, 1, end_sum, &r, sizeof r);
}
