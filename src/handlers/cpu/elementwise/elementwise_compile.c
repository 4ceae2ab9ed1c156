/* Compiles an elementwise step of a plan: slots for its values, a list of instructions, and machine code
 * where possible.
 *
 * Each node of the step becomes a slot and an instruction (sgm__micro) with the vector loop of its operation
 * and types, if there is one; each operand from outside becomes a slot. Draws of random numbers become slots
 * without an instruction. Copies whose source is made here are dropped by computing the source in the copy's
 * place. Then elementwise_tiles.c lays out tiles, and generate.c tries to write machine code;
 * elementwise_run.c runs the result. Called by run/compile.c for each step of kind SGM__STEP_ELEMENTWISE. */
#include "handlers/cpu/elementwise/elementwise.h"
#include "handlers/cpu/elementwise/step.h"
#include "ops/ops.h"

/* The slot of a node; -1: the node has none yet. */
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

/* The loop of operations that only copy; a single number is repeated by blocks of SGM__STILL_BYTES. */
static void move_elements(int64_t n, void *out, const void *const *in, uint32_t still, size_t size)
{
    size_t bytes = (size_t)n * size;
    if (out == in[0])
        return;
    for (size_t at = 0; still != 0 && at < bytes; at += SGM__STILL_BYTES)
        memcpy((char *)out + at, in[0], bytes - at < SGM__STILL_BYTES ? bytes - at : SGM__STILL_BYTES);
    if (still == 0)
        memcpy(out, in[0], bytes);
}

/* Vector functions are told a number of elements and not their size, so there is one for each size. */
#define DEFINE_MOVE(size)                                                                                    \
    static void move_##size(int64_t n, void *out, const void *const *in, uint32_t still)                     \
    {                                                                                                        \
        move_elements(n, out, in, still, size);                                                              \
    }
DEFINE_MOVE(1)
DEFINE_MOVE(2)
DEFINE_MOVE(4)
DEFINE_MOVE(8)

static bool is_move(const sgm_op *op)
{
    return op == &sgm__op_copy || op == &sgm__op_stop_gradient;
}

/* NULL: no loop for this operation and these types, so that run_formula (elementwise_run.c) computes it
 * element by element. */
static sgm__vector_function find_function(const sgm__cpu *cpu, const sgm__plan *plan, const sgm__node *node)
{
    size_t size = sgm_dtype_size(node->type.dtype);
    if (is_move(node->op))
        return size == 1 ? move_1 : size == 2 ? move_2 : size == 4 ? move_4 : move_8;
    if (node->input_count == 0)
        return NULL;
    int32_t typed = node->op == &sgm__op_select ? 1 : 0; /* the operand by whose type loops are found */
    return sgm__vector_find(cpu->vector, node->op,
                            plan->nodes[plan->operands[node->first_input + typed]].type.dtype,
                            node->type.dtype);
}

/* Adds a node of the step, with slots for operands that are new. Nodes come in the order of execution, so
 * operands made in the step have slots already. */
static sgm_status add_micro(sgm__elementwise *e, const sgm__cpu *cpu, int32_t index)
{
    const sgm__node *node = &e->plan->nodes[index];
    if (node->op == &sgm__op_random_uniform) {
        sgm__slot *slot = &e->slots[add_slot(e, index)];
        slot->written = slot->drawn = true;
        e->draws++;
        return SGM_OK;
    }
    sgm__micro *micro = &e->micros[e->micro_count++];
    *micro = (sgm__micro){.function = find_function(cpu, e->plan, node),
                          .op = node->op,
                          .attributes = &node->attributes,
                          .input_count = node->input_count};
    if (node->input_count > SGM__ELEMENTWISE_MAXIMUM_INPUTS)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "operation %s has %d inputs, the cpu handler takes up to %d",
                        node->op->name, node->input_count, SGM__ELEMENTWISE_MAXIMUM_INPUTS);
    for (int32_t k = 0; k < node->input_count; k++) {
        int32_t operand = e->plan->operands[node->first_input + k], slot = find_slot(e, operand);
        micro->inputs[k] = slot >= 0 ? slot : add_slot(e, operand);
    }
    micro->output = add_slot(e, index);
    e->slots[micro->output].written = true;
    return SGM_OK;
}

/* --- copies at the end --- */

/* Whether writing to `b` early might change `a`. Errs on the safe side: apart are only contiguous parts of
 * the arena. */
static bool overlaps(const sgm__elementwise *e, const sgm__slot *a, const sgm__slot *b)
{
    if (a->place.store != b->place.store || a->place.index != b->place.index)
        return false;
    int64_t bytes_a = e->elements * (int64_t)a->size, bytes_b = e->elements * (int64_t)b->size;
    bool apart = a->place.offset + bytes_a <= b->place.offset || b->place.offset + bytes_b <= a->place.offset;
    return a->place.store != SGM__STORE_ARENA || !apart || !sgm__slot_is_dense(e, a);
}

/* If a value is only made to be copied into memory, it is computed there, and the copy's readers read the
 * value. Not if an instruction between the value and its copy touches the memory in question, as old contents
 * (of a state, say) may still be read there. */
static void drop_copies(sgm__elementwise *e)
{
    for (int32_t c = 0; c < e->micro_count; c++) {
        sgm__micro *copy = &e->micros[c];
        if (!is_move(copy->op))
            continue;
        sgm__slot *from = &e->slots[copy->inputs[0]], *to = &e->slots[copy->output];
        if (!from->written || from->drawn || from->place.store != SGM__STORE_NONE ||
            to->place.store == SGM__STORE_NONE)
            continue;
        bool safe = sgm__slot_is_dense(e, to); /* the value keeps the strides of a whole array */
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

/* Lays out for machine code first, and once more for loops if no code could be written. */
static sgm_status build(sgm__elementwise *e, const sgm__cpu *cpu, const sgm__step *step,
                        sgm__assembler *assembler)
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
    SGM_TRY(sgm__elementwise_lay_out(e, assembler != NULL));
    e->copies = e->draws == 0 && e->micro_count == 1 && is_move(e->micros[0].op) &&
                e->slots[e->micros[0].inputs[0]].kind != SGM__SLOT_DENSE;
    if (assembler != NULL)
        sgm__generate(e, cpu->vector, assembler);
    return e->code_at < 0 && assembler != NULL ? sgm__elementwise_lay_out(e, false) : SGM_OK;
}

sgm_status sgm__elementwise_compile(const sgm__cpu *cpu, const sgm__plan *plan, const sgm__step *step,
                                    sgm__assembler *assembler, sgm__elementwise **compiled)
{
    sgm__elementwise *e = sgm__calloc(1, sizeof *e);
    if (e == NULL)
        return SGM_ERROR_MEMORY;
    e->plan = plan;
    e->code_at = -1;
    sgm_status status = build(e, cpu, step, assembler);
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

/* C has no conversion from a pointer to an object to one to a function, so the bytes are copied. */
void sgm__elementwise_set_code(sgm__elementwise *compiled, unsigned char *code)
{
    if (compiled->code_at < 0)
        return;
    code += compiled->code_at;
    memcpy(&compiled->code, &code, sizeof code);
}

bool sgm__elementwise_makes(const sgm__elementwise *compiled, int32_t node)
{
    for (int32_t m = 0; m < compiled->micro_count; m++)
        if (compiled->slots[compiled->micros[m].output].node == node)
            return true;
    return false;
}

size_t sgm__elementwise_scratch(const sgm__elementwise *compiled)
{
    return compiled->thread_bytes * (size_t)compiled->threads;
}

size_t sgm__elementwise_buffers(const sgm__elementwise *compiled)
{
    return compiled->thread_bytes;
}

bool sgm__elementwise_has_parts(const sgm__elementwise *compiled, int32_t node, int64_t unit)
{
    int32_t slot = find_slot(compiled, node);
    return compiled->elements > 0 && !compiled->copies && slot >= 0 &&
           compiled->slots[slot].kind == SGM__SLOT_DENSE &&
           (compiled->rank == 1 || unit % compiled->columns == 0);
}
