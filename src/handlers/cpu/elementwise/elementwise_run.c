/* Runs compiled elementwise steps: tile by tile, by machine code or by vector loops.
 *
 * For each tile: operands that do not lie as the result does are loaded into buffers, random numbers are
 * drawn, then machine code (run_code) or all instructions one after the other (run_micros) compute it, then
 * results with gaps are stored. A task does some tiles with its thread's memory: single numbers, buffers,
 * addresses (elementwise.h). Three ways in: sgm__elementwise_run posts all tiles, sgm__elementwise_run_part
 * does a range of elements for fused.c and summed.c, and sgm__bound_run does a step of one tile whose
 * addresses are known. */
#include "handlers/cpu/elementwise/elementwise.h"
#include "handlers/cpu/elementwise/step.h"
#include "ops/ops.h"
#include "tensor/tensor_internal.h"

/* A run of a step, copied into each posted loop. With sgm__elementwise_run_part `scratch` is one thread's
 * memory. */
typedef struct run {
    const sgm__cpu *cpu;
    const sgm__elementwise *e;
    const sgm__memory *memory;
    unsigned char *scratch;
    /* A node whose elements are not at its place; -1: none. */
    int32_t moved_node;
    unsigned char *moved_base; /* where element 0 of that node would be */
} run;

/* The part of the step's elements that a tile covers: `rows` rows from `row` on, of each `columns` elements
 * from `column` on. One of both is whole. */
typedef struct tile {
    int64_t row, rows, column, columns;
} tile;

/* Tiles of one row follow each other; those at the edges are smaller. */
static tile tile_at(const sgm__elementwise *e, int64_t index)
{
    int64_t across = (e->columns + e->tile_columns - 1) / e->tile_columns;
    tile t = {.row = index / across * e->tile_rows, .column = index % across * e->tile_columns};
    t.rows = e->rows - t.row < e->tile_rows ? e->rows - t.row : e->tile_rows;
    t.columns = e->columns - t.column < e->tile_columns ? e->columns - t.column : e->tile_columns;
    return t;
}

/* Elements from the slot's beginning to its row `row`, over all outer dimensions. */
static int64_t row_offset(const sgm__elementwise *e, const sgm__slot *slot, int64_t row)
{
    return sgm__cpu_offset(row, e->rank - 1, e->dims, slot->strides);
}

/* Fills `bytes` bytes with repetitions of the first `filled`, doubling each time. */
static void repeat(unsigned char *buffer, size_t filled, size_t bytes)
{
    while (filled < bytes) {
        size_t more = bytes - filled < filled ? bytes - filled : filled;
        memcpy(buffer + filled, buffer, more);
        filled += more;
    }
}

/* Spreads one number of `size` bytes over SGM__STILL_BYTES. A store of a local array is faster than copies
 * that double; by far the most numbers have 4 bytes. */
static void fill_still(unsigned char *still, const unsigned char *from, size_t size)
{
    if (size == sizeof(uint32_t)) { /* float32 and int32 */
        uint32_t one, all[SGM__STILL_BYTES / sizeof one] = {0};
        memcpy(&one, from, sizeof one);
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            all[i] = one;
        memcpy(still, all, sizeof all);
        return;
    }
    memcpy(still, from, size);
    repeat(still, size, SGM__STILL_BYTES);
}

/* Collects a tile of a strided operand into a contiguous buffer. Equal rows are loaded once and repeated. */
static void load_tile(const sgm__elementwise *e, const sgm__slot *slot, const unsigned char *base,
                      unsigned char *buffer, const tile *t)
{
    int64_t step = slot->strides[e->rank - 1], size = (int64_t)slot->size;
    if (e->rank == 2 && slot->strides[0] == 0) {
        size_t row = (size_t)t->columns * slot->size;
        sgm__cpu_copy_row(buffer, 1, base + t->column * step * size, step, t->columns, slot->size);
        repeat(buffer, row, row * (size_t)t->rows);
        return;
    }
    for (int64_t r = 0; r < t->rows; r++) {
        int64_t offset = row_offset(e, slot, t->row + r) + t->column * step;
        sgm__cpu_copy_row(buffer + r * t->columns * size, 1, base + offset * size, step, t->columns,
                          slot->size);
    }
}

/* Element `i` of an instruction by the operation's formula in double. */
static void compute_number(const sgm__micro *micro, const sgm_array *operands, const sgm_array *result,
                           int64_t i)
{
    double values[SGM__ELEMENTWISE_MAXIMUM_INPUTS];
    for (int32_t k = 0; k < micro->input_count; k++)
        values[k] = sgm_array_load(&operands[k], (micro->still >> k & 1) != 0 ? 0 : i);
    sgm_array_store(result, i, micro->op->scalar(values, micro->attributes));
}

/* The same for operations with a formula for int64, whose values a double could not hold. */
static void compute_whole(const sgm__micro *micro, const sgm_array *operands, const sgm_array *result,
                          int64_t i)
{
    int64_t values[SGM__ELEMENTWISE_MAXIMUM_INPUTS];
    for (int32_t k = 0; k < micro->input_count; k++)
        sgm__element_convert(SGM_INT64, &values[k], SGM_INT64,
                             (const int64_t *)operands[k].data + ((micro->still >> k & 1) != 0 ? 0 : i));
    int64_t value = micro->op->whole(values, micro->attributes);
    sgm__element_convert(result->dtype, (char *)result->data + (size_t)i * sgm_dtype_size(result->dtype),
                         SGM_INT64, &value);
}

/* Operations without a vector loop: element by element, in double, or in int64 if the operation has such a
 * formula and all operands are int64. */
static void run_formula(const sgm__elementwise *e, const sgm__micro *micro, int64_t n, void *out,
                        const void *const *in)
{
    sgm_array operands[SGM__ELEMENTWISE_MAXIMUM_INPUTS], result = {.data = out};
    result.dtype = e->plan->nodes[e->slots[micro->output].node].type.dtype;
    bool whole = micro->op->whole != NULL;
    for (int32_t k = 0; k < micro->input_count; k++) {
        operands[k] = (sgm_array){.dtype = e->plan->nodes[e->slots[micro->inputs[k]].node].type.dtype,
                                  .data = (void *)(uintptr_t)in[k]};
        whole = whole && operands[k].dtype == SGM_INT64;
    }
    for (int64_t i = 0; i < n; i++)
        (whole ? compute_whole : compute_number)(micro, operands, &result, i);
}

/* A slot's buffer in a thread's memory. */
static unsigned char *buffer_at(const sgm__elementwise *e, const sgm__slot *slot, unsigned char *buffers)
{
    return buffers + (size_t)e->stills * SGM__STILL_BYTES + (size_t)slot->buffer * e->buffer_bytes;
}

/* The address of the slot's first element of this tile, in a buffer or in memory. */
static unsigned char *locate(const run *r, const sgm__slot *slot, const tile *t, unsigned char *buffers)
{
    const sgm__elementwise *e = r->e;
    if (slot->kind == SGM__SLOT_STILL)
        return buffers + (size_t)slot->buffer * SGM__STILL_BYTES;
    if (slot->buffer >= 0)
        return buffer_at(e, slot, buffers);
    if (slot->node == r->moved_node)
        return r->moved_base + (t->row * e->columns + t->column) * (int64_t)slot->size;
    int64_t offset = slot->kind == SGM__SLOT_DENSE ? t->row * e->columns : row_offset(e, slot, t->row);
    return sgm__place_address(&slot->place, r->memory) + (offset + t->column) * (int64_t)slot->size;
}

/* Draws the tile's random numbers. A tile is a run of consecutive elements (whole rows, or a part of one), so
 * its numbers are, too. */
static void draw_tile(const run *r, const tile *t, unsigned char *buffers)
{
    const sgm__elementwise *e = r->e;
    for (int32_t i = 0; i < e->slot_count && e->draws > 0; i++)
        if (e->slots[i].drawn)
            sgm__cpu_draw(r->cpu->vector, e->plan, &e->plan->nodes[e->slots[i].node], r->memory,
                          t->row * e->columns + t->column, t->rows * t->columns,
                          locate(r, &e->slots[i], t, buffers));
}

/* The addresses of all slots for machine code, which lie behind the thread's buffers. Slots of kind BUFFER
 * are in registers and have none. */
static void **find_addresses(const run *r, const tile *t, unsigned char *buffers)
{
    const sgm__elementwise *e = r->e;
    size_t before = (size_t)e->stills * SGM__STILL_BYTES + (size_t)e->buffers * e->buffer_bytes;
    void **addresses = (void **)(void *)(buffers + before);
    for (int32_t i = 0; i < e->slot_count; i++)
        if (e->slots[i].kind != SGM__SLOT_BUFFER)
            addresses[i] = locate(r, &e->slots[i], t, buffers);
    return addresses;
}

/* Calls machine code once for the tile, or, by rows, once for each run of rows at equal distances: these end
 * with the last dimension but one. */
static void run_code(const run *r, const tile *t, unsigned char *buffers)
{
    const sgm__elementwise *e = r->e;
    if (!e->by_rows) {
        draw_tile(r, t, buffers);
        e->code(t->rows * t->columns, find_addresses(r, t, buffers), 1);
        return;
    }
    int64_t plane = e->dims[e->rank - 2], end = t->row + t->rows;
    for (int64_t row = t->row, rows = 0; row < end; row += rows) {
        int64_t left = plane - row % plane;
        rows = end - row < left ? end - row : left;
        tile part = {row, rows, t->column, t->columns};
        draw_tile(r, &part, buffers);
        e->code(part.columns, find_addresses(r, &part, buffers), part.rows);
    }
}

/* Rows of a result from its buffer into memory with gaps between them. */
static void store_tile(const sgm__elementwise *e, const sgm__slot *slot, unsigned char *base,
                       const unsigned char *buffer, const tile *t)
{
    int64_t step = slot->strides[e->rank - 1], size = (int64_t)slot->size;
    for (int64_t r = 0; r < t->rows; r++) {
        int64_t offset = row_offset(e, slot, t->row + r) + t->column * step;
        sgm__cpu_copy_row(base + offset * size, step, buffer + r * t->columns * size, 1, t->columns,
                          slot->size);
    }
}

/* Interprets: each instruction over the whole tile. */
static void run_micros(const run *r, const tile *t, unsigned char *buffers)
{
    const sgm__elementwise *e = r->e;
    int64_t n = t->rows * t->columns;
    draw_tile(r, t, buffers);
    for (int32_t m = 0; m < e->micro_count; m++) {
        const sgm__micro *micro = &e->micros[m];
        const void *in[SGM__ELEMENTWISE_MAXIMUM_INPUTS];
        for (int32_t k = 0; k < micro->input_count; k++)
            in[k] = locate(r, &e->slots[micro->inputs[k]], t, buffers);
        void *out = locate(r, &e->slots[micro->output], t, buffers);
        if (micro->function != NULL)
            micro->function(n, out, in, micro->still);
        else
            run_formula(e, micro, n, out, in);
    }
}

static void run_tile(const run *r, const tile *t, unsigned char *buffers)
{
    const sgm__elementwise *e = r->e;
    for (int32_t i = 0; i < e->slot_count; i++)
        if (e->slots[i].kind == SGM__SLOT_LOADED)
            load_tile(e, &e->slots[i], sgm__place_address(&e->slots[i].place, r->memory),
                      buffer_at(e, &e->slots[i], buffers), t);
    if (e->code != NULL)
        run_code(r, t, buffers);
    else
        run_micros(r, t, buffers);
    for (int32_t i = 0; i < e->slot_count; i++)
        if (e->slots[i].kind == SGM__SLOT_STORED)
            store_tile(e, &e->slots[i], sgm__place_address(&e->slots[i].place, r->memory),
                       buffer_at(e, &e->slots[i], buffers), t);
}

/* What a task loads once: single numbers, and rows that are the same in each tile. */
static void load_fixed(const run *r, unsigned char *buffers)
{
    const sgm__elementwise *e = r->e;
    tile all = tile_at(e, 0);
    for (int32_t i = 0; i < e->slot_count; i++) {
        const sgm__slot *slot = &e->slots[i];
        if (slot->kind != SGM__SLOT_FIXED && slot->kind != SGM__SLOT_STILL)
            continue;
        const unsigned char *from = sgm__place_address(&slot->place, r->memory);
        if (slot->kind == SGM__SLOT_FIXED) {
            load_tile(e, slot, from, buffer_at(e, slot, buffers), &all);
            continue;
        }
        fill_still(buffers + (size_t)slot->buffer * SGM__STILL_BYTES, from, slot->size);
    }
}

/* Tasks divide the tiles; where machine code takes any number of tiles as one, the task is one call. */
static void run_task(void *context, int64_t index, int32_t thread)
{
    const run *r = context;
    const sgm__elementwise *e = r->e;
    unsigned char *buffers = r->scratch + (size_t)thread * e->thread_bytes;
    int64_t first = e->tiles * index / e->tasks, last = e->tiles * (index + 1) / e->tasks;
    load_fixed(r, buffers);
    for (int64_t i = first; i < last; i++) {
        tile t = tile_at(e, i);
        if (e->code != NULL && e->whole && e->by_rows) {
            t.rows = last - i;
            i = last;
        } else if (e->code != NULL && e->whole) {
            int64_t end = last * e->tile_columns;
            t.columns = (end < e->columns ? end : e->columns) - t.column;
            i = last;
        }
        run_tile(r, &t, buffers);
    }
}

/* The slot as an array with collapsed dimensions, for sgm__cpu_copy. */
static sgm_array array_of(const sgm__elementwise *e, const sgm__slot *slot, const sgm__memory *memory)
{
    sgm_array array = {.dtype = e->plan->nodes[slot->node].type.dtype,
                       .shape = {.rank = e->rank},
                       .data = sgm__place_address(&slot->place, memory)};
    memcpy(array.shape.dims, e->dims, sizeof array.shape.dims);
    memcpy(array.strides, slot->strides, sizeof array.strides);
    return array;
}

static void run_copy(const sgm__cpu *cpu, const sgm__elementwise *e, const sgm__memory *memory)
{
    sgm_array from = array_of(e, &e->slots[e->micros[0].inputs[0]], memory);
    sgm_array to = array_of(e, &e->slots[e->micros[0].output], memory);
    sgm__cpu_copy(cpu, &from, &to);
}

void sgm__elementwise_run(const sgm__cpu *cpu, const sgm__elementwise *compiled, const sgm__memory *memory,
                          unsigned char *scratch)
{
    if (compiled->tiles == 0)
        return;
    if (compiled->copies) {
        run_copy(cpu, compiled, memory);
        return;
    }
    run r = {cpu, compiled, memory, scratch, -1, NULL};
    sgm__pool_post(cpu->pool, compiled->tasks, run_task, &r, sizeof r);
}

/* Rows `first` to `last` - 1, tile by tile. */
static void run_rows(const run *r, unsigned char *buffers, int64_t first, int64_t last)
{
    const sgm__elementwise *e = r->e;
    for (tile t = {.row = first}; t.row < last; t.row += e->tile_rows) {
        t.rows = last - t.row < e->tile_rows ? last - t.row : e->tile_rows;
        for (t.column = 0; t.column < e->columns; t.column += e->tile_columns) {
            t.columns = e->columns - t.column < e->tile_columns ? e->columns - t.column : e->tile_columns;
            run_tile(r, &t, buffers);
        }
    }
}

void sgm__elementwise_run_part(const sgm__cpu *cpu, const sgm__elementwise *compiled,
                               const sgm__memory *memory, unsigned char *buffers, int64_t first, int64_t last,
                               int32_t node, unsigned char *block)
{
    size_t size = sgm_dtype_size(compiled->plan->nodes[node].type.dtype);
    run r = {cpu, compiled, memory, buffers, node, block - (size_t)first * size};
    load_fixed(&r, buffers);
    if (compiled->rows > 1) {
        run_rows(&r, buffers, first / compiled->columns, last / compiled->columns);
        return;
    }
    int64_t maximum = compiled->code != NULL && compiled->whole ? last - first : compiled->tile_columns;
    for (int64_t at = first; at < last; at += maximum) {
        tile t = {.rows = 1, .column = at, .columns = last - at < maximum ? last - at : maximum};
        run_tile(&r, &t, buffers);
    }
}

/* --- steps of one tile --- */

#define BOUND_MAXIMUM_BYTES 16384 /* of buffers, which each bound step has for itself */
#define BOUND_MAXIMUM_INPUTS 4

/* A call of a vector loop with everything known. */
typedef struct bound_call {
    sgm__vector_function function;
    int64_t n;
    void *out;
    const void *in[BOUND_MAXIMUM_INPUTS];
    uint32_t still;
} bound_call;

/* `run.memory` is NULL but during sgm__bound_place; the buffers are those of `calls` and `addresses`. */
struct sgm__bound {
    run run;
    tile tile;
    /* Slots whose operands are copied into buffers anew by each run: all but constants, which
     * sgm__bound_place copies once. */
    int32_t *loaded;
    int32_t loaded_count;
    bound_call *calls;
    void **addresses; /* of all slots, for machine code; within `buffers` */
    unsigned char *buffers;
};

static bool is_loaded(const sgm__slot *slot)
{
    return slot->kind == SGM__SLOT_STILL || slot->kind == SGM__SLOT_FIXED || slot->kind == SGM__SLOT_LOADED;
}

/* Only steps for which a run is nothing but loading operands and calling loops or machine code. */
static bool can_be_bound(const sgm__elementwise *e)
{
    bool can = e->tiles == 1 && !e->by_rows && !e->copies && e->thread_bytes <= BOUND_MAXIMUM_BYTES;
    for (int32_t m = 0; m < e->micro_count && can; m++)
        can = e->micros[m].function != NULL && e->micros[m].input_count <= BOUND_MAXIMUM_INPUTS;
    for (int32_t i = 0; i < e->slot_count && can; i++)
        can = e->slots[i].kind != SGM__SLOT_STORED;
    return can;
}

sgm_status sgm__bound_create(const sgm__cpu *cpu, const sgm__elementwise *compiled, sgm__bound **bound)
{
    *bound = NULL;
    if (!can_be_bound(compiled))
        return SGM_OK;
    sgm__bound *b = sgm__calloc(1, sizeof *b);
    if (b == NULL)
        return SGM_ERROR_MEMORY;
    b->run = (run){.cpu = cpu, .e = compiled, .moved_node = -1};
    b->tile = tile_at(compiled, 0);
    b->loaded = sgm__calloc((size_t)compiled->slot_count + 1, sizeof *b->loaded);
    b->calls = sgm__calloc((size_t)compiled->micro_count + 1, sizeof *b->calls);
    b->buffers = sgm__alloc_aligned(compiled->thread_bytes + SGM__STILL_BYTES);
    if (b->loaded == NULL || b->calls == NULL || b->buffers == NULL) {
        sgm__bound_free(b);
        return SGM_ERROR_MEMORY;
    }
    for (int32_t i = 0; i < compiled->slot_count; i++)
        if (is_loaded(&compiled->slots[i]) && compiled->slots[i].place.store != SGM__STORE_CONSTANT)
            b->loaded[b->loaded_count++] = i;
    *bound = b;
    return SGM_OK;
}

void sgm__bound_free(sgm__bound *bound)
{
    if (bound == NULL)
        return;
    sgm__free(bound->loaded);
    sgm__free(bound->calls);
    sgm__free_aligned(bound->buffers);
    sgm__free(bound);
}

static void load_slot(const sgm__bound *b, const sgm__slot *slot, const sgm__memory *memory)
{
    const sgm__elementwise *e = b->run.e;
    const unsigned char *from = sgm__place_address(&slot->place, memory);
    if (slot->kind == SGM__SLOT_STILL) {
        fill_still(b->buffers + (size_t)slot->buffer * SGM__STILL_BYTES, from, slot->size);
    } else {
        load_tile(e, slot, from, buffer_at(e, slot, b->buffers), &b->tile);
    }
}

void sgm__bound_place(sgm__bound *bound, const sgm__memory *memory)
{
    const sgm__elementwise *e = bound->run.e;
    bound->run.memory = memory;
    for (int32_t i = 0; i < e->slot_count; i++)
        if (is_loaded(&e->slots[i]))
            load_slot(bound, &e->slots[i], memory);
    if (e->code != NULL)
        bound->addresses = find_addresses(&bound->run, &bound->tile, bound->buffers);
    for (int32_t m = 0; m < e->micro_count && e->code == NULL; m++) {
        const sgm__micro *micro = &e->micros[m];
        bound_call *call = &bound->calls[m];
        *call = (bound_call){
            .function = micro->function, .n = bound->tile.rows * bound->tile.columns, .still = micro->still};
        for (int32_t k = 0; k < micro->input_count; k++)
            call->in[k] = locate(&bound->run, &e->slots[micro->inputs[k]], &bound->tile, bound->buffers);
        call->out = locate(&bound->run, &e->slots[micro->output], &bound->tile, bound->buffers);
    }
    bound->run.memory = NULL;
}

void sgm__bound_run(const sgm__bound *bound, const sgm__memory *memory)
{
    const sgm__elementwise *e = bound->run.e;
    for (int32_t i = 0; i < bound->loaded_count; i++)
        load_slot(bound, &e->slots[bound->loaded[i]], memory);
    if (e->draws > 0) {
        run r = bound->run;
        r.memory = memory;
        draw_tile(&r, &bound->tile, bound->buffers);
    }
    if (e->code != NULL) {
        e->code(bound->tile.rows * bound->tile.columns, bound->addresses, 1);
        return;
    }
    for (const bound_call *call = bound->calls, *end = call + e->micro_count; call < end; call++)
        call->function(call->n, call->out, call->in, call->still);
}
