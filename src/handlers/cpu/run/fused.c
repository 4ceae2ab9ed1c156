/* Runs a kernel together with the one elementwise step that reads its result, part by part, or in one go.
 *
 * A part of the result goes to a thread's scratch memory and from there through the elementwise step while it
 * is in the second cache; the whole result is never in memory. Kernels are matrix products, in blocks of rows
 * (the gradient of many parameters and their update; a layer and its bias and activation), and all that have
 * `parts` (cpu.h): convolutions before an activation, gradients of poolings before its gradient. Both steps
 * run at the time of the elementwise step, so no step up to then may overwrite what the kernel reads. Each
 * element is computed by the same operations as without, so the bits are the same, but that a zero may lose
 * its sign where it is the limit of a convolution's results: a step that only keeps them between two numbers
 * (relu) is done by kernels that can do so (`limits`, cpu.h) as they write. compile.c finds pairs when it
 * compiles (fuse_steps), and runs them. Gains are in docs/performance.md, A training step. */
#include "handlers/cpu/cpu.h"
#include "handlers/cpu/elementwise/step.h"
#include "handlers/cpu/product/dense.h"
#include "handlers/cpu/run/program.h"
#include "ops/ops.h"

/* Bytes of b up to which a product runs in blocks: each block reads all of b again, which has to stay in the
 * second cache. */
#define MAXIMUM_RIGHT_BYTES (1 << 20)
/* Bytes of the whole result from which it is worth it: smaller ones stay in the cache anyway. */
#define MINIMUM_BYTES (1 << 18)

/* A pair of steps. For a matrix product `kernel` is NULL and the first two lines count, for others `call`
 * does. */
struct sgm__fused {
    sgm__product product;
    int32_t left, right, result; /* nodes of plan->nodes */
    const sgm__elementwise *elementwise;
    const sgm__cpu_kernel *kernel; /* NULL: a matrix product */
    int32_t limited; /* the kernel's `run` writes this node, the elementwise step's result; -1: in parts */
    /* A copy of the kernel step's call whose scratch memory is that of the pair. */
    sgm__cpu_call call;
    size_t kernel_bytes;  /* scratch memory of the kernel, in front of the threads' memory */
    int64_t rows, blocks; /* rows of a product's block; how many blocks or parts */
    /* Of each thread: its block, then the product's scratch memory, then the elementwise step's buffers;
     * thread_bytes is the sum. */
    size_t block_bytes, product_bytes, thread_bytes;
};

/* --- compiling --- */

/* Whether two values of one store have the same elements at the same addresses. */
static bool lies_as(const sgm__node *a, const sgm__node *b)
{
    bool same = a->type.dtype == b->type.dtype && sgm_shape_equal(&a->type.shape, &b->type.shape) &&
                a->place.offset == b->place.offset;
    for (int32_t i = 0; i < a->type.shape.rank && same; i++)
        same = a->place.strides[i] == b->place.strides[i];
    return same;
}

/* Whether a node of steps first .. last is written where `operand` lies. If the operand is `aligned` (cpu.h),
 * nodes of the last step may be written exactly over it, as each element is read by the part that overwrites
 * it. */
static bool is_overwritten(const sgm__plan *plan, const sgm__node *operand, int32_t first, int32_t last,
                           bool aligned)
{
    int32_t end = plan->steps[last].first + plan->steps[last].count;
    for (int32_t i = plan->steps[first].first; i < end; i++) {
        const sgm__node *node = &plan->nodes[plan->order[i]];
        bool in_place = aligned && i >= plan->steps[last].first && lies_as(node, operand);
        if (sgm__cpu_overlap(node, operand) && !in_place)
            return true;
    }
    return false;
}

/* The only step that reads `node`, and reads it directly, not through a view; -1 if there is none, or if the
 * node is an output of the program. */
static int32_t only_reader(const sgm__plan *plan, int32_t node, int32_t after)
{
    int32_t found = 0, reader = -1;
    for (int32_t s = after + 1; s < plan->step_count && reader < 0; s++)
        for (int32_t i = 0; i < plan->steps[s].count; i++) {
            const sgm__node *at = &plan->nodes[plan->order[plan->steps[s].first + i]];
            for (int32_t k = 0; k < at->input_count; k++)
                if (plan->operands[at->first_input + k] == node) {
                    found++;
                    reader = s;
                }
        }
    return found == sgm__plan_readers(plan, node) ? reader : -1;
}

/* A product of two matrices that is large while b fits into the second cache. */
static bool is_worth_it(const sgm__cpu *cpu, const sgm__node *left, const sgm__node *right,
                        const sgm__node *result)
{
    sgm_dtype dtype = result->type.dtype;
    int64_t size = (int64_t)sgm_dtype_size(dtype);
    bool type = dtype == SGM_FLOAT32 || dtype == SGM_FLOAT64 ||
                (dtype == SGM_BFLOAT16 && cpu->products == SGM__BFLOAT16_OWN);
    return type && result->type.shape.rank == 2 && left->type.shape.dims[1] > 0 &&
           sgm_shape_elements(&right->type.shape) * size <= MAXIMUM_RIGHT_BYTES &&
           sgm_shape_elements(&result->type.shape) * size >= MINIMUM_BYTES;
}

bool sgm__fused_is_product(const sgm__cpu *cpu, const sgm__plan *plan, const sgm__node *node)
{
    if (node->op != &sgm__op_matmul)
        return false;
    const sgm__node *left = &plan->nodes[plan->operands[node->first_input]];
    const sgm__node *right = &plan->nodes[plan->operands[node->first_input + 1]];
    return is_worth_it(cpu, left, right, node);
}

static bool has_parts(const sgm__node *node, const sgm__cpu_kernel *kernel, const sgm__cpu_call *call)
{
    int64_t maximum, size = (int64_t)sgm_dtype_size(node->type.dtype);
    return kernel->parts != NULL && sgm_shape_elements(&node->type.shape) * size >= MINIMUM_BYTES &&
           kernel->parts(call, &maximum) > 0;
}

int32_t sgm__fused_find(const sgm__plan *plan, int32_t step, const sgm__cpu_kernel *kernel,
                        const sgm__cpu_call *call)
{
    int32_t result = plan->order[plan->steps[step].first];
    const sgm__node *node = &plan->nodes[result];
    if (plan->steps[step].kind != SGM__STEP_KERNEL ||
        (!sgm__fused_is_product(call->cpu, plan, node) && !has_parts(node, kernel, call) && !kernel->limits))
        return -1;
    int32_t reader = only_reader(plan, result, step);
    if (reader < 0 || plan->steps[reader].kind != SGM__STEP_ELEMENTWISE)
        return -1;
    for (int32_t i = 0; i < node->input_count; i++)
        if (is_overwritten(plan, &plan->nodes[plan->operands[node->first_input + i]], step + 1, reader,
                           kernel->aligned && i == 0))
            return -1;
    return reader;
}

int64_t sgm__fused_share(int64_t count, int64_t each, int32_t threads)
{
    int64_t blocks = sgm__divide_up(count, each > 1 ? each : 1);
    return sgm__divide_up(count, sgm__divide_up(blocks, threads) * threads);
}

/* Blocks are whole rows. */
static void choose_blocks(sgm__fused *f, const sgm__cpu *cpu)
{
    int64_t size = (int64_t)sgm_dtype_size(f->product.dtype), m = f->product.m;
    f->rows = sgm__fused_share(m, SGM__FUSED_BLOCK_BYTES / (f->product.n * size), cpu->threads);
    f->blocks = sgm__divide_up(m, f->rows);
    sgm__product block = f->product;
    block.m = f->rows;
    f->block_bytes = sgm__align((size_t)(f->rows * block.n * size));
    f->product_bytes = sgm__align(sgm__dense_scratch(cpu->dense, cpu->vector, &block, 1));
    f->thread_bytes =
        f->block_bytes + f->product_bytes + sgm__align(sgm__elementwise_buffers(f->elementwise));
}

sgm__product sgm__fused_product(const sgm__plan *plan, const sgm__node *node)
{
    const sgm__node *left = &plan->nodes[plan->operands[node->first_input]];
    const sgm__node *right = &plan->nodes[plan->operands[node->first_input + 1]];
    return (sgm__product){.dtype = left->type.dtype,
                          .m = left->type.shape.dims[0],
                          .n = right->type.shape.dims[1],
                          .k = left->type.shape.dims[1],
                          .a_row = left->place.strides[0],
                          .a_column = left->place.strides[1],
                          .b_row = right->place.strides[0],
                          .b_column = right->place.strides[1],
                          .c_row = right->type.shape.dims[1],
                          .rounds_b = sgm__matmul_rounds(&node->attributes)};
}

/* The number that all elements of a node are, if it is constant. */
static bool is_number(const sgm__plan *plan, int32_t index, double *number)
{
    const sgm__node *node = &plan->nodes[index];
    if (node->place.store != SGM__STORE_CONSTANT)
        return false;
    for (int32_t i = 0; i < node->type.shape.rank; i++)
        if (node->type.shape.dims[i] != 1 && node->place.strides[i] != 0)
            return false;
    const sgm_array array = {.dtype = node->type.dtype, .data = sgm__plan_constant(plan, index)};
    *number = sgm_array_load(&array, 0);
    return true;
}

/* Adds what a maximum or minimum of `result` and a number does. */
static bool add_limit(const sgm__plan *plan, const sgm__node *node, int32_t result, sgm__limits *limits)
{
    double number;
    if (node->op != &sgm__op_maximum && node->op != &sgm__op_minimum)
        return false;
    const int32_t *operands = plan->operands + node->first_input;
    int32_t other = operands[0] == result ? operands[1] : operands[0];
    if ((operands[0] != result && operands[1] != result) || !is_number(plan, other, &number) || isnan(number))
        return false;
    double (*choose)(double, double) = node->op == &sgm__op_maximum ? fmax : fmin;
    *limits = (sgm__limits){choose(limits->low, number), choose(limits->high, number)};
    return true;
}

/* Whether the elementwise step `reader` only keeps `result` between limits, and writes no more than that, in
 * the order of a kernel's results: *limited is the node. */
static bool find_limits(const sgm__plan *plan, int32_t result, int32_t reader, int32_t *limited,
                        sgm__limits *limits)
{
    const sgm__step *step = &plan->steps[reader];
    *limits = SGM__NO_LIMITS;
    for (int32_t i = 0; i < step->count; i++) {
        const sgm__node *node = &plan->nodes[plan->order[step->first + i]];
        bool last = i + 1 == step->count, stored = node->place.store != SGM__STORE_NONE;
        if (stored != last || !add_limit(plan, node, result, limits))
            return false;
        result = plan->order[step->first + i];
    }
    *limited = result;
    return !sgm__node_span(&plan->nodes[result]).gaps;
}

/* For kernels that say themselves how their result is cut. A part has 64 bytes more, since vectors may be
 * written to their end. */
static void plan_parts(sgm__fused *f, const sgm__cpu_kernel *kernel, const sgm__cpu_call *call)
{
    int64_t maximum = 0;
    f->kernel = kernel;
    f->call = *call;
    f->blocks = kernel->parts(call, &maximum);
    f->block_bytes = sgm__align((size_t)maximum * sgm_dtype_size(call->output.dtype) + 64);
    f->thread_bytes = f->block_bytes + sgm__align(sgm__elementwise_buffers(f->elementwise));
    f->kernel_bytes = kernel->scratch != NULL ? sgm__align(kernel->scratch(call)) : 0;
}

sgm_status sgm__fused_create(const sgm__cpu *cpu, const sgm__plan *plan, int32_t step,
                             const sgm__cpu_kernel *kernel, const sgm__cpu_call *call, int32_t reader,
                             const sgm__elementwise *elementwise, sgm__fused **fused)
{
    int32_t result = plan->order[plan->steps[step].first], limited = -1;
    sgm__limits limits;
    *fused = NULL;
    if (kernel->limits && !find_limits(plan, result, reader, &limited, &limits)) {
        limited = -1;
        if (!has_parts(&plan->nodes[result], kernel, call))
            return SGM_OK;
    }
    /* Blocks of a product are whole rows; parts of other kernels may begin anywhere. */
    const sgm_shape *shape = &plan->nodes[result].type.shape;
    int64_t unit = kernel->parts != NULL ? 1 : shape->dims[shape->rank - 1];
    if (limited < 0 && !sgm__elementwise_has_parts(elementwise, result, unit))
        return SGM_OK;
    sgm__fused *f = sgm__calloc(1, sizeof *f);
    if (f == NULL)
        return SGM_ERROR_MEMORY;
    *f = (sgm__fused){.result = result,
                      .left = plan->operands[plan->nodes[result].first_input],
                      .elementwise = elementwise,
                      .limited = limited};
    if (limited >= 0) {
        f->kernel = kernel;
        f->call = *call;
        f->call.limits = limits;
        f->kernel_bytes = kernel->scratch != NULL ? kernel->scratch(call) : 0;
    } else if (kernel->parts != NULL) {
        plan_parts(f, kernel, call);
    } else {
        f->right = plan->operands[plan->nodes[result].first_input + 1];
        f->product = sgm__fused_product(plan, &plan->nodes[result]);
        f->product.packed = call->packed;
        choose_blocks(f, cpu);
    }
    *fused = f;
    return SGM_OK;
}

void sgm__fused_free(sgm__fused *fused)
{
    sgm__free(fused);
}

size_t sgm__fused_scratch(const sgm__fused *fused, const sgm__cpu *cpu)
{
    return fused->kernel_bytes + fused->thread_bytes * (size_t)cpu->threads;
}

/* --- running --- */

/* What a task needs; copied when it is posted. */
typedef struct run {
    const sgm__cpu *cpu;
    const sgm__fused *f;
    const sgm__memory *memory;
    const unsigned char *a;
    const void *b;
    unsigned char *scratch;
} run;

/* A block of rows of a product, and these rows through the elementwise step. */
static void run_block(void *context, int64_t index, int32_t thread)
{
    const run *r = context;
    const sgm__fused *f = r->f;
    unsigned char *block = r->scratch + (size_t)thread * f->thread_bytes;
    sgm__product p = f->product;
    int64_t first = index * f->rows, size = (int64_t)sgm_dtype_size(p.dtype);
    p.m = sgm__minimum(p.m - first, f->rows);
    p.a = r->a + first * p.a_row * size;
    p.b = r->b;
    p.c = block;
    sgm__dense_run(r->cpu->dense, r->cpu->vector, NULL, &p, block + f->block_bytes);
    sgm__elementwise_run_part(r->cpu, f->elementwise, r->memory, block + f->block_bytes + f->product_bytes,
                              first * p.n, (first + p.m) * p.n, f->result, block);
}

/* A part of another kernel's result, and its elements through the elementwise step. */
static void run_part(void *context, int64_t index, int32_t thread)
{
    const run *r = context;
    const sgm__fused *f = r->f;
    unsigned char *block = r->scratch + f->kernel_bytes + (size_t)thread * f->thread_bytes;
    int64_t first, last;
    f->kernel->part(&f->call, index, thread, block, &first, &last);
    sgm__elementwise_run_part(r->cpu, f->elementwise, r->memory, block + f->block_bytes, first, last,
                              f->result, block);
}

sgm_status sgm__fused_run(const sgm__cpu *cpu, const sgm__plan *plan, sgm__fused *fused,
                          const sgm__memory *memory, unsigned char *scratch)
{
    run r = {.cpu = cpu, .f = fused, .memory = memory, .scratch = scratch};
    if (fused->kernel != NULL) {
        int32_t first = fused->call.node->first_input;
        for (int32_t i = 0; i < fused->call.input_count; i++)
            fused->call.inputs[i].data =
                sgm__place_address(&plan->nodes[plan->operands[first + i]].place, memory);
        fused->call.scratch = scratch;
        if (fused->limited >= 0) {
            fused->call.output.data = sgm__place_address(&plan->nodes[fused->limited].place, memory);
            return fused->kernel->run(&fused->call);
        }
        if (fused->kernel->begin != NULL)
            fused->kernel->begin(&fused->call);
        sgm__pool_post(cpu->pool, fused->blocks, run_part, &r, sizeof r);
        return SGM_OK;
    }
    r.a = sgm__place_address(&plan->nodes[fused->left].place, memory);
    r.b = sgm__place_address(&plan->nodes[fused->right].place, memory);
    sgm__pool_post(cpu->pool, fused->blocks, run_block, &r, sizeof r);
    return SGM_OK;
}
