/* Compiles elementwise steps: slots for values, instructions, the shape of tiles. */
#include "handlers/cpu/elementwise.h"
#include "ops/ops.h"

#define TILE_BYTES 24576 /* of buffers, so that they and the operands' tiles stay in the first cache */
#define LARGEST_TILE 4096
#define SMALLEST_TILE 256
#define TASKS_PER_THREAD 3

static int32_t find_slot(const sgm__elementwise *e, int32_t node)
{
    for (int32_t i = 0; i < e->slot_count; i++)
        if (e->slots[i].node == node)
            return i;
    return -1;
}

static int32_t add_slot(sgm__elementwise *e, int32_t node)
{
    const sgm__node *value = &e->plan->nodes[node];
    sgm__slot *slot = &e->slots[e->slot_count];
    *slot = (sgm__slot){.kind = SGM__SLOT_DENSE,
                        .node = node,
                        .buffer = -1,
                        .size = sgm_dtype_size(value->type.dtype),
                        .place = value->place};
    memcpy(slot->strides, value->place.strides, sizeof slot->strides);
    return e->slot_count++;
}

static void move_elements(int64_t n, void *out, const void *const *in, size_t size)
{
    if (out != in[0])
        memcpy(out, in[0], (size_t)n * size);
}

#define DEFINE_MOVE(size)                                                                                    \
    static void move_##size(int64_t n, void *out, const void *const *in)                                     \
    {                                                                                                        \
        move_elements(n, out, in, size);                                                                     \
    }
DEFINE_MOVE(1)
DEFINE_MOVE(2)
DEFINE_MOVE(4)
DEFINE_MOVE(8)

static bool is_move(const sgm_op *op)
{
    return op == &sgm__op_copy || op == &sgm__op_stop_gradient;
}

static sgm__vector_function find_function(const sgm__cpu *cpu, const sgm__plan *plan, const sgm__node *node)
{
    size_t size = sgm_dtype_size(node->type.dtype);
    if (is_move(node->op))
        return size == 1 ? move_1 : size == 2 ? move_2 : size == 4 ? move_4 : move_8;
    if (node->input_count == 0)
        return NULL;
    int32_t typed = node->op == &sgm__op_select ? 1 : 0; /* the operand that has the type */
    return sgm__vector_find(cpu->vector, node->op,
                            plan->nodes[plan->operands[node->first_input + typed]].type.dtype,
                            node->type.dtype);
}

static sgm_status add_micro(sgm__elementwise *e, const sgm__cpu *cpu, int32_t index)
{
    const sgm__node *node = &e->plan->nodes[index];
    sgm__micro *micro = &e->micros[e->micro_count++];
    *micro = (sgm__micro){.function = find_function(cpu, e->plan, node),
                          .op = node->op,
                          .attributes = &node->attributes,
                          .input_count = node->input_count};
    if (node->input_count > SGM__ELEMENTWISE_MOST_INPUTS)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "operation %s has %d inputs, the cpu handler takes up to %d",
                        node->op->name, node->input_count, SGM__ELEMENTWISE_MOST_INPUTS);
    for (int32_t k = 0; k < node->input_count; k++) {
        int32_t operand = e->plan->operands[node->first_input + k], slot = find_slot(e, operand);
        micro->inputs[k] = slot >= 0 ? slot : add_slot(e, operand);
    }
    micro->output = add_slot(e, index);
    e->slots[micro->output].written = true;
    return SGM_OK;
}

/* --- copies at the end --- */

static bool is_dense(const sgm__elementwise *e, const sgm__slot *slot)
{
    int64_t stride = 1;
    for (int32_t i = e->rank; i-- > 0;) {
        if (e->dims[i] != 1 && slot->strides[i] != stride)
            return false;
        stride *= e->dims[i];
    }
    return true;
}

static bool overlaps(const sgm__elementwise *e, const sgm__slot *a, const sgm__slot *b)
{
    if (a->place.store != b->place.store || a->place.index != b->place.index)
        return false;
    int64_t bytes_a = e->elements * (int64_t)a->size, bytes_b = e->elements * (int64_t)b->size;
    bool apart = a->place.offset + bytes_a <= b->place.offset || b->place.offset + bytes_b <= a->place.offset;
    return a->place.store != SGM__STORE_ARENA || !apart || !is_dense(e, a);
}

/* Where a value is only made to be copied into memory, it is computed there: unless what lies there is still
 * read after. */
static void drop_copies(sgm__elementwise *e)
{
    for (int32_t c = 0; c < e->micro_count; c++) {
        sgm__micro *copy = &e->micros[c];
        if (!is_move(copy->op))
            continue;
        sgm__slot *from = &e->slots[copy->inputs[0]], *to = &e->slots[copy->output];
        if (!from->written || from->place.store != SGM__STORE_NONE || to->place.store == SGM__STORE_NONE)
            continue;
        bool safe = true;
        int32_t made = c;
        while (e->micros[made].output != copy->inputs[0])
            made--;
        for (int32_t m = made + 1; m < c && safe; m++) {
            for (int32_t k = 0; k < e->micros[m].input_count; k++)
                safe = safe && !overlaps(e, &e->slots[e->micros[m].inputs[k]], to);
            safe = safe && !overlaps(e, &e->slots[e->micros[m].output], to);
        }
        if (!safe)
            continue;
        from->place = to->place;
        for (int32_t m = c + 1; m < e->micro_count; m++)
            for (int32_t k = 0; k < e->micros[m].input_count; k++)
                if (e->micros[m].inputs[k] == copy->output)
                    e->micros[m].inputs[k] = copy->inputs[0];
        memmove(copy, copy + 1, (size_t)(e->micro_count - c - 1) * sizeof *copy);
        e->micro_count--;
        c--;
    }
}

/* --- tiles --- */

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

static bool is_equal_in_rows(const sgm__elementwise *e, const sgm__slot *slot)
{
    for (int32_t i = 0; i + 1 < e->rank; i++)
        if (slot->strides[i] != 0)
            return false;
    return true;
}

static void choose_kinds(sgm__elementwise *e)
{
    for (int32_t i = 0; i < e->slot_count; i++) {
        sgm__slot *slot = &e->slots[i];
        bool same = is_equal_in_rows(e, slot);
        int64_t step = slot->strides[e->rank - 1];
        if (slot->written && slot->place.store == SGM__STORE_NONE)
            slot->kind = SGM__SLOT_BUFFER;
        else if (is_dense(e, slot))
            slot->kind = SGM__SLOT_DENSE;
        else if (e->tile_rows == 1 && step == 1)
            slot->kind = SGM__SLOT_ROW;
        else if (same && (step == 0 || e->tile_columns == e->columns))
            slot->kind = SGM__SLOT_FIXED;
        else
            slot->kind = SGM__SLOT_LOADED;
    }
}

/* Buffers are given when a value is made and taken back after its last reader. Loaded operands keep theirs.
 */
static sgm_status give_buffers(sgm__elementwise *e)
{
    int32_t *last = sgm__alloc((size_t)e->slot_count * 2 * sizeof(int32_t));
    if (last == NULL)
        return SGM_ERROR_MEMORY;
    int32_t *unused = last + e->slot_count, unused_count = 0;
    for (int32_t i = 0; i < e->slot_count; i++) {
        last[i] = -1;
        if (e->slots[i].kind == SGM__SLOT_FIXED || e->slots[i].kind == SGM__SLOT_LOADED)
            e->slots[i].buffer = e->buffers++;
    }
    for (int32_t m = 0; m < e->micro_count; m++)
        for (int32_t k = 0; k < e->micros[m].input_count; k++)
            last[e->micros[m].inputs[k]] = m;
    for (int32_t m = 0; m < e->micro_count; m++) {
        const sgm__micro *micro = &e->micros[m];
        sgm__slot *output = &e->slots[micro->output];
        if (output->kind == SGM__SLOT_BUFFER)
            output->buffer = unused_count > 0 ? unused[--unused_count] : e->buffers++;
        for (int32_t k = 0; k < micro->input_count; k++) {
            sgm__slot *input = &e->slots[micro->inputs[k]];
            if (input->kind == SGM__SLOT_BUFFER && last[micro->inputs[k]] == m) {
                unused[unused_count++] = input->buffer;
                last[micro->inputs[k]] = -1; /* once, also if it is read twice */
            }
        }
    }
    sgm__free(last);
    return SGM_OK;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return b > 0 ? (a + b - 1) / b : 0;
}

/* The size of a tile does not depend on the number of threads, nor does any result. */
static void choose_tiles(sgm__elementwise *e)
{
    size_t widest = 1;
    for (int32_t i = 0; i < e->slot_count; i++)
        widest = e->slots[i].size > widest ? e->slots[i].size : widest;
    int64_t tile = LARGEST_TILE;
    while (tile > SMALLEST_TILE && (size_t)tile * widest * ((size_t)e->micro_count + 2) > TILE_BYTES)
        tile /= 2;
    bool whole_rows = e->rank > 1 && e->columns * 2 <= tile;
    e->tile_columns = whole_rows || e->columns < tile ? e->columns : tile;
    e->tile_rows = whole_rows ? tile / e->columns : 1;
    if (e->tile_rows > e->rows && e->rows > 0)
        e->tile_rows = e->rows;
    e->tiles = divide_up(e->rows, e->tile_rows) * divide_up(e->columns, e->tile_columns);
    e->buffer_bytes = ((size_t)(e->tile_rows * e->tile_columns) * widest + 127) / 64 * 64;
}

static void choose_tasks(sgm__elementwise *e)
{
    bool parallel = e->elements * e->micro_count >= SGM__CPU_PARALLEL_WORK && e->threads > 1;
    int64_t tasks = parallel ? (int64_t)e->threads * TASKS_PER_THREAD : 1;
    e->tasks = tasks < e->tiles ? tasks : e->tiles;
    e->thread_bytes = (size_t)e->buffers * e->buffer_bytes;
}

static sgm_status check_results(const sgm__elementwise *e)
{
    for (int32_t m = 0; m < e->micro_count; m++) {
        const sgm__slot *slot = &e->slots[e->micros[m].output];
        if (slot->kind != SGM__SLOT_BUFFER && slot->kind != SGM__SLOT_DENSE)
            return sgm_fail(
                SGM_ERROR_UNSUPPORTED,
                "the result of %s does not lie in contiguous memory: this plan is not for the cpu "
                "handler",
                e->micros[m].op->name);
    }
    return SGM_OK;
}

static sgm_status build(sgm__elementwise *e, const sgm__cpu *cpu, const sgm__step *step)
{
    const sgm__plan *plan = e->plan;
    size_t values = 0;
    for (int32_t i = 0; i < step->count; i++)
        values += (size_t)plan->nodes[plan->order[step->first + i]].input_count + 1;
    e->slots = sgm__calloc(values, sizeof(sgm__slot));
    e->micros = sgm__calloc((size_t)step->count, sizeof(sgm__micro));
    if (e->slots == NULL || e->micros == NULL)
        return SGM_ERROR_MEMORY;
    const sgm_shape *shape = &plan->nodes[plan->order[step->first]].type.shape;
    e->rank = shape->rank;
    memcpy(e->dims, shape->dims, sizeof e->dims);
    e->elements = sgm_shape_elements(shape);
    e->threads = cpu->threads;
    for (int32_t i = 0; i < step->count; i++)
        SGM_TRY(add_micro(e, cpu, plan->order[step->first + i]));
    if (e->elements == 0)
        return SGM_OK;
    drop_copies(e);
    SGM_TRY(collapse(e));
    choose_tiles(e);
    choose_kinds(e);
    SGM_TRY(give_buffers(e));
    choose_tasks(e);
    e->copies = e->micro_count == 1 && is_move(e->micros[0].op) &&
                e->slots[e->micros[0].inputs[0]].kind != SGM__SLOT_DENSE;
    return check_results(e);
}

sgm_status sgm__elementwise_compile(const sgm__cpu *cpu, const sgm__plan *plan, const sgm__step *step,
                                    sgm__elementwise **compiled)
{
    sgm__elementwise *e = sgm__calloc(1, sizeof *e);
    if (e == NULL)
        return SGM_ERROR_MEMORY;
    e->plan = plan;
    sgm_status status = build(e, cpu, step);
    if (status == SGM_OK)
        *compiled = e;
    else
        sgm__elementwise_free(e);
    return status;
}

void sgm__elementwise_free(sgm__elementwise *compiled)
{
    if (compiled == NULL)
        return;
    sgm__free(compiled->slots);
    sgm__free(compiled->micros);
    sgm__free(compiled);
}

size_t sgm__elementwise_scratch(const sgm__elementwise *compiled)
{
    return compiled->thread_bytes * (size_t)compiled->threads;
}

size_t sgm__elementwise_buffers(const sgm__elementwise *compiled)
{
    return compiled->thread_bytes;
}

bool sgm__elementwise_is_flat(const sgm__elementwise *compiled, int32_t node)
{
    int32_t slot = find_slot(compiled, node);
    return compiled->rank == 1 && compiled->elements > 0 && !compiled->copies && slot >= 0 &&
           compiled->slots[slot].kind == SGM__SLOT_DENSE;
}
