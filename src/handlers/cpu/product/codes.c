/* The kernel of code_matmul: some columns of the codes at a time become floats in scratch memory, and are
 * multiplied there by the loops of all products (dense.c).
 *
 * A block of columns stays in the second cache between the two, so that of the float matrix that codes stand
 * for no more than this is ever there. Making it costs k n conversions to m k n products. Codes may be
 * transposed, as they are in gradients: the block then lies so, too, and each is read in the order of memory.
 */
#include "handlers/cpu/product/codes.h"

#include "handlers/cpu/product/dense.h"
#include "ops/ops.h"
#include "ops/quantized.h"

/* Bytes of floats that are made at a time, and the columns that a block has at least, in multiples of them.
 */
#define BLOCK_BYTES ((int64_t)1 << 20)
#define BLOCK_COLUMNS 64
/* Numbers from which on making them is shared among threads. */
#define SHARED_NUMBERS 16384
#define TASKS_PER_THREAD 4

/* The product of one block: its b are floats in scratch memory, columns or rows of which are contiguous as
 * those of the codes are. Where it writes to is the caller's to say: there is no output yet when memory is
 * planned. */
static sgm__product block_of(const sgm__cpu_call *call, int64_t columns)
{
    const sgm_array *x = &call->inputs[0], *codes = &call->inputs[1];
    const int64_t depth = x->shape.dims[1];
    const bool transposed = codes->strides[0] == 1 && codes->strides[1] != 1;
    return (sgm__product){.dtype = call->output.dtype,
                          .m = x->shape.dims[0],
                          .n = columns,
                          .k = depth,
                          .a = x->data,
                          .a_row = x->strides[0],
                          .a_column = x->strides[1],
                          .b = call->scratch,
                          .b_row = transposed ? 1 : columns,
                          .b_column = transposed ? depth : 1,
                          .c_row = codes->shape.dims[1]};
}

/* Columns of a block: all, if they are few. */
static int64_t columns_of(const sgm__cpu_call *call)
{
    const sgm_shape *codes = &call->inputs[1].shape;
    const int64_t line =
        sgm__minimum(codes->dims[0], BLOCK_BYTES) * (int64_t)sgm_dtype_size(call->output.dtype);
    const int64_t fitting = line > 0 ? BLOCK_BYTES / line / BLOCK_COLUMNS * BLOCK_COLUMNS : codes->dims[1];
    return sgm__minimum(codes->dims[1], fitting > 0 ? fitting : BLOCK_COLUMNS);
}

static size_t floats_bytes(const sgm__cpu_call *call)
{
    const int64_t numbers = call->inputs[1].shape.dims[0] * columns_of(call);
    return sgm__align((size_t)numbers * sgm_dtype_size(call->output.dtype));
}

/* A last block is smaller, and cut in another way, but needs no more memory than some whole one. */
static size_t scratch(const sgm__cpu_call *call)
{
    const int64_t columns = columns_of(call),
                  rest = columns > 0 ? call->inputs[1].shape.dims[1] % columns : 0;
    const sgm__product whole = block_of(call, columns), last = block_of(call, rest);
    const sgm__cpu *cpu = call->cpu;
    const size_t most = sgm__dense_scratch(cpu->dense, cpu->vector, &whole, cpu->threads);
    const size_t other = rest > 0 ? sgm__dense_scratch(cpu->dense, cpu->vector, &last, cpu->threads) : 0;
    return floats_bytes(call) + (most > other ? most : other);
}

/* --- making floats --- */

/* Lines of codes, of `length` numbers each, to lines of floats one after the other. */
typedef struct widening {
    const unsigned char *codes;
    int64_t line, step; /* from one line of codes to the next, and from number to number */
    int64_t count, length, tasks;
    sgm_dtype dtype;
    void *to;
} widening;

static void widen_float(const widening *w, int64_t index)
{
    const unsigned char *codes = w->codes + index * w->line;
    float *to = (float *)w->to + index * w->length;
    if (w->step == 1)
        for (int64_t i = 0; i < w->length; i++)
            to[i] = (float)(codes[i] - SGM__QUANTIZED_ZERO);
    else
        for (int64_t i = 0; i < w->length; i++)
            to[i] = (float)(codes[i * w->step] - SGM__QUANTIZED_ZERO);
}

static void widen_double(const widening *w, int64_t index)
{
    const unsigned char *codes = w->codes + index * w->line;
    double *to = (double *)w->to + index * w->length;
    for (int64_t i = 0; i < w->length; i++)
        to[i] = codes[i * w->step] - SGM__QUANTIZED_ZERO;
}

static void widen_task(void *context, int64_t index, int32_t thread)
{
    (void)thread;
    const widening *w = context;
    int64_t first, last;
    sgm__pool_part(w->count, 1, w->tasks, index, &first, &last);
    for (int64_t i = first; i < last; i++)
        if (w->dtype == SGM_FLOAT32)
            widen_float(w, i);
        else
            widen_double(w, i);
}

static void post_widening(const sgm__cpu_call *call, const sgm__product *block, int64_t first)
{
    const sgm_array *codes = &call->inputs[1];
    const bool by_rows = block->b_column == 1;
    widening w = {.codes = (const unsigned char *)codes->data + first * codes->strides[1],
                  .line = codes->strides[by_rows ? 0 : 1],
                  .step = codes->strides[by_rows ? 1 : 0],
                  .count = by_rows ? block->k : block->n,
                  .length = by_rows ? block->n : block->k,
                  .dtype = block->dtype,
                  .to = call->scratch};
    const int64_t shared = sgm__minimum(w.count, TASKS_PER_THREAD * (int64_t)call->cpu->threads);
    w.tasks = w.count * w.length >= SHARED_NUMBERS ? shared : 1;
    sgm__pool_post(call->cpu->pool, w.tasks, widen_task, &w, sizeof w);
}

/* Each loop waits for the one before it, so that all blocks share one scratch memory. */
static sgm_status run(const sgm__cpu_call *call)
{
    const sgm__cpu *cpu = call->cpu;
    const int64_t columns = call->inputs[1].shape.dims[1], width = columns_of(call),
                  size = (int64_t)sgm_dtype_size(call->output.dtype);
    unsigned char *rest = call->scratch + floats_bytes(call);
    for (int64_t first = 0; first < columns; first += width) {
        sgm__product block = block_of(call, sgm__minimum(columns - first, width));
        block.c = (unsigned char *)call->output.data + first * size;
        post_widening(call, &block, first);
        sgm__dense_post(cpu->dense, cpu->vector, cpu->pool, &block, rest);
    }
    return SGM_OK;
}

const sgm__cpu_kernel sgm__cpu_code_matmul = {
    .op = &sgm__op_code_matmul, .types = SGM__CPU_FLOATS, .scratch = scratch, .posts = true, .run = run};
