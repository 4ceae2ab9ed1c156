/* Chooses how a compiled elementwise step goes over its elements: the shape of tiles, the tasks, and the
 * buffers in between.
 *
 * The dimensions are collapsed over all slots at once, which gives `rows` of `columns`. A tile is as large as
 * the first cache allows for all values that are alive at once. Then each slot gets its kind
 * (sgm__slot_kind): whether its elements are used in place or go through a buffer. Values between
 * instructions share buffers, as registers are shared by a compiler. Called twice for a step for which no
 * machine code could be written (elementwise_compile.c); everything here can be done again on a step that was
 * laid out before. */
#include "handlers/cpu/elementwise/elementwise.h"

/* Bytes of all tiles in use at once, so that they stay in the first cache. */
#define TILE_BYTES 32768
#define LARGEST_TILE 4096  /* elements */
#define SMALLEST_TILE 256  /* elements: below that, the calls of loops cost too much */
#define MINIMUM_COLUMNS 32 /* from which on machine code goes row by row: two vectors */
#define TASKS_PER_THREAD 3
#define DRAW_WORK 8 /* of a random number, in instructions: they decide whether a step is shared */
/* Tiles that each slot of random numbers counts for when machine code runs: only the drawn numbers are read
 * from a buffer again. Tiles of 1024 numbers were slower than a pass of their own (docs/performance.md,
 * Elementwise steps). */
#define DRAWN_TILES 4

/* Joins dimensions that all slots walk through in one go. */
static sgm_status collapse(sgm__elementwise *e)
{
    int64_t **lists = sgm__alloc((size_t)e->slot_count * sizeof(int64_t *));
    if (lists == NULL)
        return SGM_ERROR_MEMORY;
    for (int32_t i = 0; i < e->slot_count; i++)
        lists[i] = e->slots[i].strides;
    sgm__cpu_collapse(&e->rank, e->dims, lists, e->slot_count);
    sgm__free(lists);
    e->columns = e->dims[e->rank - 1];
    e->rows = e->columns > 0 ? e->elements / e->columns : 0;
    return SGM_OK;
}

bool sgm__slot_is_dense(const sgm__elementwise *e, const sgm__slot *slot)
{
    int64_t stride = 1;
    for (int32_t i = e->rank; i-- > 0;) {
        if (e->dims[i] != 1 && slot->strides[i] != stride)
            return false;
        stride *= e->dims[i];
    }
    return true;
}

/* All rows of the operand are the same one (a bias). */
static bool is_equal_in_rows(const sgm__elementwise *e, const sgm__slot *slot)
{
    for (int32_t i = 0; i + 1 < e->rank; i++)
        if (slot->strides[i] != 0)
            return false;
    return true;
}

/* The value is made here and has no place in memory. */
static bool is_between(const sgm__slot *slot)
{
    return slot->written && slot->place.store == SGM__STORE_NONE;
}

/* The operand is one number for all elements. */
static bool is_still(const sgm__elementwise *e, const sgm__slot *slot)
{
    return is_equal_in_rows(e, slot) && slot->strides[e->rank - 1] == 0;
}

/* After choose_tiles, as it depends on the shape of tiles whether a row can be used in place. */
static void choose_kinds(sgm__elementwise *e)
{
    for (int32_t i = 0; i < e->slot_count; i++) {
        sgm__slot *slot = &e->slots[i];
        bool same = is_equal_in_rows(e, slot);
        int64_t step = slot->strides[e->rank - 1];
        if (is_between(slot))
            slot->kind = slot->drawn ? SGM__SLOT_DRAWN : SGM__SLOT_BUFFER;
        else if (sgm__slot_is_dense(e, slot))
            slot->kind = SGM__SLOT_DENSE;
        else if (is_still(e, slot))
            slot->kind = SGM__SLOT_STILL;
        else if ((e->tile_rows == 1 || e->by_rows) && step == 1)
            slot->kind = SGM__SLOT_ROW;
        else if (slot->written)
            slot->kind = SGM__SLOT_STORED;
        else if (same && e->tile_columns == e->columns)
            slot->kind = SGM__SLOT_FIXED;
        else
            slot->kind = SGM__SLOT_LOADED;
    }
}

/* For each slot the last instruction that reads it; -1: none does. */
static void find_last_readers(const sgm__elementwise *e, int32_t *last)
{
    for (int32_t i = 0; i < e->slot_count; i++)
        last[i] = -1;
    for (int32_t m = 0; m < e->micro_count; m++)
        for (int32_t k = 0; k < e->micros[m].input_count; k++)
            last[e->micros[m].inputs[k]] = m;
}

/* A value between instructions gets a buffer when it is made, which is free again after its last reader; an
 * instruction's output is given its buffer before its inputs' are taken back, so output and input never share
 * one. Slots that are loaded, drawn or stored keep theirs. `unused` is room for a stack of free buffers. */
static void give_buffers(sgm__elementwise *e, int32_t *last, int32_t *unused)
{
    int32_t unused_count = 0;
    e->buffers = e->stills = 0;
    for (int32_t i = 0; i < e->slot_count; i++) {
        e->slots[i].buffer = -1;
        if (e->slots[i].kind == SGM__SLOT_FIXED || e->slots[i].kind == SGM__SLOT_LOADED ||
            e->slots[i].kind == SGM__SLOT_DRAWN || e->slots[i].kind == SGM__SLOT_STORED)
            e->slots[i].buffer = e->buffers++;
        if (e->slots[i].kind == SGM__SLOT_STILL)
            e->slots[i].buffer = e->stills++;
    }
    for (int32_t m = 0; m < e->micro_count; m++) {
        sgm__micro *micro = &e->micros[m];
        sgm__slot *output = &e->slots[micro->output];
        if (output->kind == SGM__SLOT_BUFFER)
            output->buffer = unused_count > 0 ? unused[--unused_count] : e->buffers++;
        for (int32_t k = 0; k < micro->input_count; k++) {
            sgm__slot *input = &e->slots[micro->inputs[k]];
            micro->still |= (uint32_t)(input->kind == SGM__SLOT_STILL) << k;
            if (input->kind == SGM__SLOT_BUFFER && last[micro->inputs[k]] == m) {
                unused[unused_count++] = input->buffer;
                last[micro->inputs[k]] = -1; /* an operand that is read twice gives its buffer back once */
            }
        }
    }
}

/* How many tiles are in use at once: operands and results in memory, and the largest number of values in
 * between that are alive together. */
static int64_t tiles_alive(const sgm__elementwise *e, const int32_t *last)
{
    int64_t memory = e->draws, alive = 0, maximum = 0;
    for (int32_t i = 0; i < e->slot_count; i++)
        memory +=
            !is_between(&e->slots[i]) && (last[i] >= 0 || e->slots[i].written) && !is_still(e, &e->slots[i]);
    for (int32_t m = 0; m < e->micro_count; m++) {
        const sgm__micro *micro = &e->micros[m];
        alive += is_between(&e->slots[micro->output]);
        maximum = alive > maximum ? alive : maximum;
        for (int32_t k = 0; k < micro->input_count; k++) {
            bool again = false;
            for (int32_t j = 0; j < k; j++)
                again = again || micro->inputs[j] == micro->inputs[k];
            alive -= !again && is_between(&e->slots[micro->inputs[k]]) && last[micro->inputs[k]] == m;
        }
    }
    return memory + maximum;
}

int64_t sgm__slot_row_bytes(const sgm__elementwise *e, const sgm__slot *slot)
{
    return e->rank > 1 ? slot->strides[e->rank - 2] * (int64_t)slot->size : 0;
}

/* Whether machine code can step from row to row: in each slot the elements of a row are contiguous, or one
 * number. The distance of rows has to fit the 32 bits of an instruction. */
static bool can_go_by_rows(const sgm__elementwise *e)
{
    bool can = e->rank > 1 && e->columns >= MINIMUM_COLUMNS && e->columns <= LARGEST_TILE;
    for (int32_t i = 0; i < e->slot_count && can; i++) {
        const sgm__slot *slot = &e->slots[i];
        int64_t bytes = sgm__slot_row_bytes(e, slot);
        can = is_between(slot) || is_still(e, slot) ||
              (slot->strides[e->rank - 1] == 1 && bytes == (int32_t)bytes);
    }
    return can;
}

/* Halves the tile until all values alive fit into TILE_BYTES. Neither the number of threads nor anything but
 * shapes decides. */
static void choose_tiles(sgm__elementwise *e, const int32_t *last, bool coded)
{
    size_t widest = 1;
    for (int32_t i = 0; i < e->slot_count; i++)
        widest = e->slots[i].size > widest ? e->slots[i].size : widest;
    int64_t tile = LARGEST_TILE,
            alive = coded && e->draws > 0 ? e->draws * DRAWN_TILES : tiles_alive(e, last);
    while (tile > SMALLEST_TILE && tile * alive * (int64_t)widest > TILE_BYTES)
        tile /= 2;
    bool whole_rows = e->rank > 1 && e->columns * 2 <= tile;
    e->tile_columns = whole_rows || e->columns < tile || e->by_rows ? e->columns : tile;
    e->tile_rows = whole_rows && (!e->by_rows || e->draws > 0) ? tile / e->columns : 1;
    if (e->tile_rows > e->rows && e->rows > 0)
        e->tile_rows = e->rows;
    e->tiles = e->columns > 0
                   ? sgm__divide_up(e->rows, e->tile_rows) * sgm__divide_up(e->columns, e->tile_columns)
                   : 0;
    e->buffer_bytes = sgm__align((size_t)(e->tile_rows * e->tile_columns) * widest + SGM__ALIGNMENT);
}

/* Small steps are one task. Tiles with random numbers take microseconds each and are shared one by one. */
static void choose_tasks(sgm__elementwise *e)
{
    int64_t work = e->elements * (e->micro_count + e->draws * DRAW_WORK);
    bool parallel = work >= SGM__CPU_PARALLEL_WORK && e->threads > 1;
    /* A tile of random numbers is work for microseconds. */
    int64_t maximum = e->draws > 0 ? e->tiles : (int64_t)e->threads * TASKS_PER_THREAD;
    int64_t tasks = parallel ? maximum : 1;
    e->tasks = tasks < e->tiles ? tasks : e->tiles;
}

sgm_status sgm__elementwise_lay_out(sgm__elementwise *e, bool coded)
{
    SGM_TRY(collapse(e));
    e->by_rows = coded && can_go_by_rows(e);
    int32_t *last = sgm__alloc((size_t)e->slot_count * 2 * sizeof(int32_t));
    if (last == NULL)
        return SGM_ERROR_MEMORY;
    find_last_readers(e, last);
    choose_tiles(e, last, coded);
    choose_kinds(e);
    choose_tasks(e);
    give_buffers(e, last, last + e->slot_count);
    size_t addresses = sgm__align((size_t)e->slot_count * sizeof(void *));
    e->thread_bytes = (size_t)e->stills * SGM__STILL_BYTES + (size_t)e->buffers * e->buffer_bytes + addresses;
    e->whole = (e->rows == 1 || e->by_rows) && e->draws == 0;
    for (int32_t i = 0; i < e->slot_count; i++)
        e->whole = e->whole && e->slots[i].kind != SGM__SLOT_LOADED && e->slots[i].kind != SGM__SLOT_FIXED;
    sgm__free(last);
    return SGM_OK;
}
