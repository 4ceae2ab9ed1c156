/* The kernel of matmul: batches of products by way of dense.c. Those of bfloat16 come here if our own loops
 * are to compute them.
 *
 * A batch is computed in one of four ways, chosen when the plan is compiled: one small product at once in the
 * calling thread; products that share b joined to one product with more rows; many or small products as one
 * loop in which each task does whole products; else product after product, each shared among all threads.
 * Products with a single elementwise reader may run in run/fused.c instead. */
#include "handlers/cpu/product/matmul.h"
#include "handlers/cpu/product/dense.h"
#include "ops/ops.h"

/* Products with the same b are one product with more rows, if the rows of all the a's lie at equal distances:
 * (batch, time, features) times (features, n) becomes (batch * time, features) times (features, n). */
static void join_rows(sgm__batches *b, const sgm_array *a)
{
    int64_t dims[SGM_MAX_RANK], strides[SGM_MAX_RANK];
    int32_t rank = b->rank + 1;
    for (int32_t i = 0; i < b->rank; i++)
        if (b->b_strides[i] != 0 && a->shape.dims[i] != 1)
            return;
    memcpy(dims, a->shape.dims, sizeof dims);
    memcpy(strides, a->strides, sizeof strides);
    sgm__cpu_collapse(&rank, dims, (int64_t *[]){strides}, 1);
    if (rank != 1)
        return;
    b->product.m = dims[0];
    b->product.a_row = strides[0];
    b->count = 1;
    b->rank = 0;
}

sgm__batches sgm__batches_of(const sgm__cpu_call *call)
{
    const sgm_array *left = &call->inputs[0], *right = &call->inputs[1];
    int32_t rank = left->shape.rank, row = rank - 2, column = rank - 1;
    sgm__batches b = {.call = call, .rank = row, .count = 1};
    b.product = (sgm__product){.dtype = call->output.dtype,
                               .m = left->shape.dims[row],
                               .n = right->shape.dims[column],
                               .k = left->shape.dims[column],
                               .a = left->data,
                               .a_row = left->strides[row],
                               .a_column = left->strides[column],
                               .b = right->data,
                               .b_row = right->strides[row],
                               .b_column = right->strides[column],
                               .c = call->output.data,
                               .rounds_b = sgm__matmul_rounds(&call->node->attributes)};
    b.product.c_row = b.product.n;
    for (int32_t i = 0; i < row; i++) {
        b.count *= left->shape.dims[i];
        b.a_strides[i] = left->strides[i];
        b.b_strides[i] = right->strides[i];
    }
    if (b.count > 1)
        join_rows(&b, left);
    b.small = b.count == 1 && !sgm__dense_for_library(call->cpu->dense, &b.product) &&
              sgm__product_is_small(call->cpu->vector, &b.product);
    double work = (double)b.product.m * (double)b.product.n * (double)b.product.k;
    /* Whole products for each task where each is too small to share, or where there are enough to keep all
     * threads busy. */
    b.together =
        b.count > 1 && (work < SGM__PRODUCT_SMALL_WORK || b.count >= 4 * (int64_t)call->cpu->threads);
    return b;
}

static sgm_status plan(const sgm__cpu_call *call, void *to)
{
    *(sgm__batches *)to = sgm__batches_of(call);
    return SGM_OK;
}

/* Bytes of scratch memory for one product. Where threads compute whole products, each of them needs as much.
 */
static size_t scratch_of_one(const sgm__batches *b)
{
    const sgm__cpu *cpu = b->call->cpu;
    return sgm__align(sgm__dense_scratch(cpu->dense, cpu->vector, &b->product, cpu->threads));
}

static size_t scratch(const sgm__cpu_call *call)
{
    sgm__batches b = sgm__batches_of(call);
    return scratch_of_one(&b) * (b.together ? (size_t)call->cpu->threads : 1);
}

/* Whether all products of the batch have one b that panels are read of. */
static bool has_panels(const sgm__batches *b)
{
    bool panels = b->product.k > 0 && b->product.n > 0 &&
                  !sgm__product_is_small(b->call->cpu->vector, &b->product) &&
                  !sgm__dense_for_library(b->call->cpu->dense, &b->product);
    for (int32_t i = 0; i < b->rank && panels; i++)
        panels = b->b_strides[i] == 0 || b->call->inputs[1].shape.dims[i] == 1;
    return panels;
}

static size_t packed_bytes(const sgm__cpu_call *call)
{
    sgm__batches b = sgm__batches_of(call);
    return has_panels(&b) ? sgm__product_packed_bytes(call->cpu->vector, &b.product) : 0;
}

static sgm_status pack(const sgm__cpu_call *call, unsigned char *to)
{
    sgm__batches b = sgm__batches_of(call);
    sgm__product_pack(call->cpu->vector, &b.product, to);
    return SGM_OK;
}

/* --- running --- */

sgm__product sgm__batches_at(const sgm__batches *b, int64_t index)
{
    int64_t size = (int64_t)sgm_dtype_size(b->call->output.dtype), a = 0, other = 0, left = index;
    for (int32_t i = b->rank; i-- > 0;) {
        int64_t dim = b->call->inputs[0].shape.dims[i], at = left % dim;
        a += at * b->a_strides[i];
        other += at * b->b_strides[i];
        left /= dim;
    }
    sgm__product p = b->product;
    p.a = (const unsigned char *)p.a + a * size;
    p.b = (const unsigned char *)p.b + other * size;
    p.c = (unsigned char *)p.c + index * p.m * p.n * size;
    return p;
}

/* `pool` NULL: in this thread alone. */
static void run_one(const sgm__batches *b, int64_t index, sgm__pool *pool, unsigned char *memory)
{
    const sgm__cpu *cpu = b->call->cpu;
    sgm__product p = sgm__batches_at(b, index);
    sgm__dense_post(cpu->dense, cpu->vector, pool, &p, memory);
}

static void run_task(void *context, int64_t index, int32_t thread)
{
    const sgm__batches *b = context;
    run_one(b, index, NULL, b->call->scratch + (size_t)thread * scratch_of_one(b));
}

/* The shortest way for small networks, where each call counts: nothing is divided, packed or posted. */
static sgm_status run_small(const sgm__cpu_call *call)
{
    sgm__product p = ((const sgm__batches *)call->plan)->product;
    p.a = call->inputs[0].data;
    p.b = call->inputs[1].data;
    p.c = call->output.data;
    sgm__pool_ready(call->cpu->pool);
    sgm__product_run_small(call->cpu->vector, &p, call->scratch);
    return SGM_OK;
}

/* Products of a batch that are posted one after the other share one scratch memory: each loop waits for the
 * one before it. */
static sgm_status run(const sgm__cpu_call *call)
{
    if (((const sgm__batches *)call->plan)->small)
        return run_small(call);
    sgm__batches b = *(const sgm__batches *)call->plan;
    b.call = call;
    b.product.a = call->inputs[0].data;
    b.product.b = call->inputs[1].data;
    b.product.c = call->output.data;
    b.product.packed = call->packed;
    if (b.together)
        sgm__pool_post(call->cpu->pool, b.count, run_task, &b, sizeof b);
    else
        for (int64_t i = 0; i < b.count; i++)
            run_one(&b, i, call->cpu->pool, call->scratch);
    return SGM_OK;
}

const sgm__cpu_kernel sgm__cpu_matmul = {.op = &sgm__op_matmul,
                                         .types = SGM__CPU_FLOATS | (uint32_t)1 << SGM_BFLOAT16,
                                         .scratch = scratch,
                                         .plan_size = sizeof(sgm__batches),
                                         .plan = plan,
                                         .packed_bytes = packed_bytes,
                                         .pack = pack,
                                         .reads_packed_only = true,
                                         .posts = true,
                                         .run = run};
