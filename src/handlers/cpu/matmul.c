/* The matmul kernel: batches of products, bfloat16 through float32. */
#include "handlers/cpu/cpu.h"
#include "ops/ops.h"

typedef struct batches {
    const sgm__cpu_call *call;
    sgm__product product; /* the first */
    int32_t rank;         /* of the leading dimensions */
    int64_t count;
    int64_t a_strides[SGM_MAX_RANK], b_strides[SGM_MAX_RANK];
    bool together;                    /* a thread does whole products */
    size_t a_bytes, b_bytes, c_bytes; /* of float32 copies */
} batches;

static size_t align(int64_t bytes)
{
    return ((size_t)bytes + 63) / 64 * 64;
}

/* Products that share b are one with more rows, if a's rows follow each other. */
static void join_rows(batches *b, const sgm_array *a)
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

static batches prepare(const sgm__cpu_call *call)
{
    const sgm_array *left = &call->inputs[0], *right = &call->inputs[1];
    int32_t rank = left->shape.rank, row = rank - 2, column = rank - 1;
    batches b = {.call = call, .rank = row, .count = 1};
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
                               .c = call->output.data};
    b.product.c_row = b.product.n;
    for (int32_t i = 0; i < row; i++) {
        b.count *= left->shape.dims[i];
        b.a_strides[i] = left->strides[i];
        b.b_strides[i] = right->strides[i];
    }
    if (b.count > 1)
        join_rows(&b, left);
    if (call->output.dtype == SGM_BFLOAT16) { /* computed in float32, in memory of our own */
        sgm__product *p = &b.product;
        p->dtype = SGM_FLOAT32;
        b.a_bytes = align(p->m * p->k * 4);
        b.b_bytes = align(p->k * p->n * 4);
        b.c_bytes = align(p->m * p->n * 4);
    }
    double work = (double)b.product.m * (double)b.product.n * (double)b.product.k;
    b.together =
        b.count > 1 && (work < SGM__PRODUCT_SMALL_WORK || b.count >= 4 * (int64_t)call->cpu->threads);
    return b;
}

static void plan(const sgm__cpu_call *call, void *to)
{
    *(batches *)to = prepare(call);
}

static size_t product_scratch(const batches *b)
{
    const sgm__cpu *cpu = b->call->cpu;
    return align((int64_t)sgm__dense_scratch(cpu->dense, cpu->vector, &b->product, cpu->threads));
}

static size_t scratch_of_one(const batches *b)
{
    return product_scratch(b) + b->a_bytes + b->b_bytes + b->c_bytes;
}

static size_t scratch(const sgm__cpu_call *call)
{
    batches b = prepare(call);
    return scratch_of_one(&b) * (b.together ? (size_t)call->cpu->threads : 1);
}

/* --- bfloat16 --- */

/* A matrix as float32, contiguous along the side that was; its strides change. */
static const void *widen(const sgm__cpu_call *call, const void *matrix, int64_t rows, int64_t columns,
                         int64_t *row, int64_t *column, float *to)
{
    sgm__vector_function function =
        sgm__vector_find(call->cpu->vector, &sgm__op_cast, SGM_BFLOAT16, SGM_FLOAT32);
    const uint16_t *from = matrix;
    bool by_rows = *column == 1 || *row != 1;
    int64_t lines = by_rows ? rows : columns, length = by_rows ? columns : rows;
    int64_t step = by_rows ? *row : *column, inner = by_rows ? *column : *row;
    for (int64_t i = 0; i < lines; i++) {
        const uint16_t *line = from + i * step;
        if (inner == 1)
            function(length, to + i * length, (const void *[]){line});
        else
            for (int64_t k = 0; k < length; k++)
                function(1, to + i * length + k, (const void *[]){line + k * inner});
    }
    *row = by_rows ? columns : 1;
    *column = by_rows ? 1 : rows;
    return to;
}

static void run_bfloat16(const batches *b, sgm__product p, sgm__pool *pool, unsigned char *memory)
{
    const sgm__cpu *cpu = b->call->cpu;
    unsigned char *a = memory + product_scratch(b), *other = a + b->a_bytes;
    float *c = (float *)(void *)(other + b->b_bytes);
    void *result = p.c;
    p.a = widen(b->call, p.a, p.m, p.k, &p.a_row, &p.a_column, (float *)(void *)a);
    p.b = widen(b->call, p.b, p.k, p.n, &p.b_row, &p.b_column, (float *)(void *)other);
    p.c = c;
    sgm__dense_run(cpu->dense, cpu->vector, pool, &p, memory);
    sgm__vector_find(cpu->vector, &sgm__op_cast, SGM_FLOAT32, SGM_BFLOAT16)(p.m * p.n, result,
                                                                            (const void *[]){c});
}

/* --- running --- */

static void run_one(const batches *b, int64_t index, sgm__pool *pool, unsigned char *memory)
{
    const sgm__cpu *cpu = b->call->cpu;
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
    if (b->call->output.dtype == SGM_BFLOAT16)
        run_bfloat16(b, p, pool, memory);
    else
        sgm__dense_run(cpu->dense, cpu->vector, pool, &p, memory);
}

static void run_task(void *context, int64_t index, int32_t thread)
{
    const batches *b = context;
    run_one(b, index, NULL, b->call->scratch + (size_t)thread * scratch_of_one(b));
}

static sgm_status run(const sgm__cpu_call *call)
{
    batches b = *(const batches *)call->plan;
    b.call = call;
    b.product.a = call->inputs[0].data;
    b.product.b = call->inputs[1].data;
    b.product.c = call->output.data;
    if (b.together)
        sgm__pool_run(call->cpu->pool, b.count, run_task, &b);
    else
        for (int64_t i = 0; i < b.count; i++)
            run_one(&b, i, call->cpu->pool, call->scratch);
    return SGM_OK;
}

static bool takes(sgm_dtype dtype)
{
    return sgm_dtype_is_float(dtype);
}

const sgm__cpu_kernel sgm__cpu_matmul = {.op = &sgm__op_matmul,
                                         .takes = takes,
                                         .scratch = scratch,
                                         .plan_size = sizeof(batches),
                                         .plan = plan,
                                         .run = run};
