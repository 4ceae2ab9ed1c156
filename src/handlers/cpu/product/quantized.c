/* The kernel of quantized_matmul: rows are rounded to integers of 8 bits, and multiplied with packed ones.
 *
 * A first loop rounds the rows, each with a scale of its own (src/ops/quantized_matmul.c has the formula), to
 * codes in scratch memory. A second one computes tiles: some rows by a panel of SGM__INT8_COLUMNS columns. A
 * packed panel has four neighbouring numbers along k of each column together, group after group, so a tile
 * reads it in the order of memory. Weights that are constant are packed once; others by a loop of each run.
 * Which tiles there are depends on the processor (vector/vector_int8.h), but no bit of a result does. */
#include "handlers/cpu/product/quantized.h"
#include "ops/ops.h"
#include "ops/quantized.h"

#include <math.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* The bits of infinity: those of NaN are above. */
#define INFINITE 0x7f800000u
/* Rows of a task: their codes stay in the second cache while all panels go by. */
#define ROWS_TOGETHER 128
/* Products from which on tiles are shared among threads, and numbers from which on rounding is. */
#define SHARED_PRODUCTS (1 << 17)
#define ROUNDED_TOGETHER 8192
#define TASKS_PER_THREAD 4

/* --- which tiles --- */

#if defined(__x86_64__)
/* AVX_VNNI: bit 4 of eax of leaf 7, subleaf 1. */
static bool has_avx_vnni(void)
{
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
}

const sgm__int8_tiles *sgm__int8_tiles_for(const sgm__vector *vector)
{
    __builtin_cpu_init();
    if (strcmp(vector->name, sgm__vector_avx512.name) == 0)
        return __builtin_cpu_supports("avx512vnni") ? &sgm__int8_avx512_vnni : &sgm__int8_avx2;
    if (strcmp(vector->name, sgm__vector_avx2.name) == 0)
        return has_avx_vnni() ? &sgm__int8_avx_vnni : &sgm__int8_avx2;
    return &sgm__int8_portable;
}
#else
const sgm__int8_tiles *sgm__int8_tiles_for(const sgm__vector *vector)
{
    (void)vector;
    return &sgm__int8_portable;
}
#endif

/* --- shapes --- */

/* A call: m rows of x times k x n weights. */
typedef struct product {
    const sgm__cpu_call *call;
    const sgm__int8_tiles *tiles;
    int64_t m, n, k;
    int64_t groups, panels; /* of four along k, of SGM__INT8_COLUMNS along n */
    int64_t code_row;       /* bytes from one row of codes to the next */
    /* Scratch memory, of each row: codes, its scale, what is added to its sums. */
    int8_t *codes;
    float *row_scales;
    int32_t *corrections;
    const unsigned char *packed;
    int64_t row_tasks, column_tasks, round_tasks;
} product;

static size_t panel_bytes(const product *p)
{
    return (size_t)(p->groups * SGM__INT8_GROUP * SGM__INT8_COLUMNS);
}

/* All but addresses. */
static product product_of(const sgm__cpu_call *call)
{
    const sgm_shape *x = &call->inputs[0].shape, *weights = &call->inputs[1].shape;
    product p = {
        .call = call, .tiles = call->cpu->int8, .m = 1, .k = weights->dims[0], .n = weights->dims[1]};
    for (int32_t i = 0; i + 1 < x->rank; i++)
        p.m *= x->dims[i];
    p.groups = sgm__divide_up(p.k, SGM__INT8_GROUP);
    p.panels = sgm__divide_up(p.n, SGM__INT8_COLUMNS);
    p.code_row = (int64_t)sgm__align((size_t)(p.groups * SGM__INT8_GROUP));
    int64_t tasks = TASKS_PER_THREAD * (int64_t)call->cpu->threads;
    bool shared = p.m * p.n * p.k >= SHARED_PRODUCTS;
    p.row_tasks = sgm__divide_up(p.m, ROWS_TOGETHER);
    p.column_tasks =
        shared ? sgm__minimum(p.panels, sgm__divide_up(tasks, p.row_tasks > 0 ? p.row_tasks : 1)) : 1;
    p.round_tasks = sgm__minimum(sgm__divide_up(p.m * p.k, ROUNDED_TOGETHER), sgm__minimum(p.m, tasks));
    return p;
}

static size_t packed_bytes(const sgm__cpu_call *call)
{
    product p = product_of(call);
    return (size_t)p.panels * panel_bytes(&p);
}

/* Bytes of codes, scales, corrections. */
static size_t code_bytes(const product *p)
{
    return (size_t)(p->m * p->code_row);
}

static size_t row_bytes(const product *p)
{
    return sgm__align((size_t)p->m * sizeof(float));
}

static size_t scratch(const sgm__cpu_call *call)
{
    product p = product_of(call);
    return code_bytes(&p) + 2 * row_bytes(&p) + (call->packs ? 0 : packed_bytes(call));
}

/* --- packing --- */

static void pack_panel(const product *p, int64_t panel, unsigned char *to)
{
    const unsigned char *weights = p->call->inputs[1].data;
    int64_t first = panel * SGM__INT8_COLUMNS, columns = sgm__minimum(p->n - first, SGM__INT8_COLUMNS);
    unsigned char shift = (unsigned char)(SGM__QUANTIZED_ZERO - p->tiles->zero);
    memset(to, p->tiles->zero, panel_bytes(p));
    for (int64_t k = 0; k < p->k; k++) {
        const unsigned char *from = weights + k * p->n + first;
        unsigned char *group =
            to + k / SGM__INT8_GROUP * SGM__INT8_GROUP * SGM__INT8_COLUMNS + k % SGM__INT8_GROUP;
        for (int64_t j = 0; j < columns; j++)
            group[j * SGM__INT8_GROUP] = (unsigned char)(from[j] - shift);
    }
}

static sgm_status pack(const sgm__cpu_call *call, unsigned char *to)
{
    product p = product_of(call);
    for (int64_t i = 0; i < p.panels; i++)
        pack_panel(&p, i, to + (size_t)i * panel_bytes(&p));
    return SGM_OK;
}

static void pack_task(void *context, int64_t index, int32_t thread)
{
    (void)thread;
    const product *p = context;
    pack_panel(p, index, (unsigned char *)(uintptr_t)p->packed + (size_t)index * panel_bytes(p));
}

/* --- rounding --- */

static void round_row(const product *p, int64_t row)
{
    const float *x = (const float *)p->call->inputs[0].data + row * p->k;
    int8_t *codes = p->codes + row * p->code_row;
    uint32_t bits = p->tiles->largest(p->k, x);
    int64_t padded = p->groups * SGM__INT8_GROUP;
    float largest;
    if (bits >= INFINITE) { /* 0 * NaN is NaN: codes do not matter */
        memset(codes, 0, (size_t)padded);
        p->corrections[row] = 0;
        p->row_scales[row] = NAN;
        return;
    }
    memcpy(&largest, &bits, sizeof largest);
    largest = fmaxf(largest, (float)SGM__QUANTIZED_TINY);
    memset(codes + p->k, 0, (size_t)(padded - p->k));
    int32_t sum = p->tiles->round(p->k, codes, x, SGM__QUANTIZED_LARGEST / largest);
    p->corrections[row] = -p->tiles->zero * sum;
    p->row_scales[row] = largest / SGM__QUANTIZED_LARGEST;
}

static void round_task(void *context, int64_t index, int32_t thread)
{
    (void)thread;
    const product *p = context;
    int64_t first, last;
    sgm__pool_part(p->m, 1, p->round_tasks, index, &first, &last);
    for (int64_t row = first; row < last; row++)
        round_row(p, row);
}

/* --- tiles --- */

/* A tile at the right edge, whose columns do not fill the panel: computed in full on the stack. */
static void run_edge(const product *p, sgm__int8_tile tile, int64_t rows, int64_t columns)
{
    float full[SGM__INT8_ROWS * SGM__INT8_COLUMNS], scales[SGM__INT8_COLUMNS] = {0}, *c = tile.c;
    memcpy(scales, tile.scales, (size_t)columns * sizeof *scales);
    tile.scales = scales;
    tile.c = full;
    tile.c_row = SGM__INT8_COLUMNS;
    p->tiles->tiles[rows - 1](&tile);
    for (int64_t i = 0; i < rows; i++)
        memcpy(c + i * p->n, full + i * SGM__INT8_COLUMNS, (size_t)columns * sizeof *c);
}

static void run_panel(const product *p, int64_t panel, int64_t first, int64_t last)
{
    int64_t column = panel * SGM__INT8_COLUMNS, columns = sgm__minimum(p->n - column, SGM__INT8_COLUMNS);
    sgm__int8_tile tile = {.groups = p->groups,
                           .a_row = p->code_row,
                           .b = p->packed + (size_t)panel * panel_bytes(p),
                           .scales = (const float *)p->call->inputs[2].data + column,
                           .c_row = p->n};
    for (int64_t row = first; row < last; row += p->tiles->rows) {
        int64_t rows = sgm__minimum(last - row, p->tiles->rows);
        tile.a = p->codes + row * p->code_row;
        tile.corrections = p->corrections + row;
        tile.row_scales = p->row_scales + row;
        tile.c = (float *)p->call->output.data + row * p->n + column;
        if (columns == SGM__INT8_COLUMNS)
            p->tiles->tiles[rows - 1](&tile);
        else
            run_edge(p, tile, rows, columns);
    }
}

static void tile_task(void *context, int64_t index, int32_t thread)
{
    (void)thread;
    const product *p = context;
    int64_t first, last, panel, end;
    sgm__pool_part(p->m, p->tiles->rows, p->row_tasks, index % p->row_tasks, &first, &last);
    sgm__pool_part(p->panels, 1, p->column_tasks, index / p->row_tasks, &panel, &end);
    for (; panel < end; panel++)
        run_panel(p, panel, first, last);
}

static sgm_status run(const sgm__cpu_call *call)
{
    product p = product_of(call);
    if (p.m == 0 || p.n == 0)
        return SGM_OK;
    unsigned char *memory = call->scratch;
    p.codes = (int8_t *)memory;
    p.row_scales = (float *)(void *)(memory + code_bytes(&p));
    p.corrections = (int32_t *)(void *)(memory + code_bytes(&p) + row_bytes(&p));
    p.packed = call->packs ? call->packed : memory + code_bytes(&p) + 2 * row_bytes(&p);
    if (!call->packs)
        sgm__pool_post(call->cpu->pool, p.panels, pack_task, &p, sizeof p);
    sgm__pool_post(call->cpu->pool, p.round_tasks, round_task, &p, sizeof p);
    sgm__pool_post(call->cpu->pool, p.row_tasks * p.column_tasks, tile_task, &p, sizeof p);
    return SGM_OK;
}

const sgm__cpu_kernel sgm__cpu_quantized_matmul = {.op = &sgm__op_quantized_matmul,
                                                   .types = SGM__CPU_FLOAT32,
                                                   .scratch = scratch,
                                                   .packed_bytes = packed_bytes,
                                                   .pack = pack,
                                                   .reads_packed_only = true,
                                                   .posts = true,
                                                   .run = run};
