/* Writes machine code for an elementwise step: one loop over the elements, a vector at a time, with all
 * values in between in registers.
 *
 * For float32, bfloat16 (in registers a float32 that is rounded after each operation) and bool on processors
 * with AVX-512 or AVX2, whose encoders write the instructions (generate.h). Other steps, and all steps where
 * the system allows no code to be made, are interpreted (elementwise_run.c). The bits are the same: the same
 * operations are done in the same order, without multiply-adds, and exp and its kind are calls of the
 * functions that the loops use (vector_kernels.h). Called by elementwise_compile.c; gains are in
 * docs/performance.md, Elementwise steps. */
#include "handlers/cpu/elementwise/generate.h"
#include "ops/ops.h"

#define MASK_BYTES 8 /* of the stack for each mask */

/* How the instruction of an operation is written. */
typedef enum form {
    FORM_VECTOR,  /* one instruction on vectors; `code` is its opcode */
    FORM_CHOSEN,  /* one of two operands: `code` is the kind of the comparison that takes the second */
    FORM_COMPARE, /* `code` is the kind of comparison */
    FORM_SELF,    /* comparison of an operand with itself */
    FORM_FINITE,  /* the operand is neither infinite nor NaN */
    FORM_BITS,    /* with a constant: `code` 0 is negate, 1 is absolute */
    FORM_FLOOR,
    FORM_AND, /* of bools */
    FORM_OR,
    FORM_NOT,
    FORM_MOVE,
    FORM_SELECT,
    FORM_TO_FLOAT, /* from bool */
    FORM_CALL      /* a function for one vector */
} form;

/* An operation's form. `code` is an opcode of map 1, the kind of a comparison, or what the form says. */
typedef struct recipe {
    const sgm_op *op;
    form form;
    uint8_t code;
} recipe;

static const recipe recipes[] = {
    {&sgm__op_add, FORM_VECTOR, 0x58},
    {&sgm__op_subtract, FORM_VECTOR, 0x5c},
    {&sgm__op_multiply, FORM_VECTOR, 0x59},
    {&sgm__op_divide, FORM_VECTOR, 0x5e},
    {&sgm__op_square_root, FORM_VECTOR, 0x51},
    {&sgm__op_maximum, FORM_CHOSEN, 0x09},
    {&sgm__op_minimum, FORM_CHOSEN, 0x06},
    {&sgm__op_equal, FORM_COMPARE, 0x00},
    {&sgm__op_not_equal, FORM_COMPARE, 0x04},
    {&sgm__op_less, FORM_COMPARE, 0x01},
    {&sgm__op_less_equal, FORM_COMPARE, 0x02},
    {&sgm__op_greater, FORM_COMPARE, 0x0e},
    {&sgm__op_greater_equal, FORM_COMPARE, 0x0d},
    {&sgm__op_is_nan, FORM_SELF, SGM__UNORDERED},
    {&sgm__op_is_finite, FORM_FINITE, 0},
    {&sgm__op_negate, FORM_BITS, 0},
    {&sgm__op_absolute, FORM_BITS, 1},
    {&sgm__op_floor, FORM_FLOOR, 0x09},
    {&sgm__op_logical_and, FORM_AND, 0},
    {&sgm__op_logical_or, FORM_OR, 0},
    {&sgm__op_logical_not, FORM_NOT, 0},
    {&sgm__op_copy, FORM_MOVE, 0},
    {&sgm__op_stop_gradient, FORM_MOVE, 0},
    {&sgm__op_select, FORM_SELECT, 0},
    {&sgm__op_cast, FORM_TO_FLOAT, 0},
};

static sgm_dtype dtype_of(const sgm__generator *g, int32_t slot)
{
    return g->e->plan->nodes[g->e->slots[slot].node].type.dtype;
}

static bool is_bool(const sgm__generator *g, int32_t slot)
{
    return dtype_of(g, slot) == SGM_BOOL;
}

static bool is_half(const sgm__generator *g, int32_t slot)
{
    return dtype_of(g, slot) == SGM_BFLOAT16;
}

/* The function that computes the operation for one vector; the approximate one if the handler's option says
 * so. NULL: none. */
static sgm__one_vector function_of(const sgm__generator *g, const sgm_op *op)
{
    const sgm__vector *v = g->vector;
    for (int32_t i = 0; i < v->fast_function_count && v->approximate; i++)
        if (v->fast_functions[i].op == op)
            return v->fast_functions[i].function;
    for (int32_t i = 0; i < v->function_count; i++)
        if (v->functions[i].op == op)
            return v->functions[i].function;
    return NULL;
}

/* How an instruction is written; false: it cannot be. Operands of one operation have one type, but for
 * select, casts and comparisons. */
static bool find_recipe(const sgm__generator *g, const sgm__micro *micro, recipe *found)
{
    bool all_bool = is_bool(g, micro->output), all_float = !all_bool, same = true;
    for (int32_t k = 0; k < micro->input_count; k++) {
        all_bool = all_bool && is_bool(g, micro->inputs[k]);
        all_float = all_float && !is_bool(g, micro->inputs[k]);
        same = same && dtype_of(g, micro->inputs[k]) == dtype_of(g, micro->output);
    }
    if (micro->op == &sgm__op_cast && all_float) {
        *found = (recipe){micro->op, FORM_MOVE, 0};
        return true;
    }
    if (all_float && same && micro->input_count == 1 && function_of(g, micro->op) != NULL) {
        *found = (recipe){micro->op, FORM_CALL, 0};
        return true;
    }
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        *found = recipes[i];
        if (recipes[i].op != micro->op)
            continue;
        switch (found->form) {
        case FORM_AND:
        case FORM_OR:
        case FORM_NOT:
            return all_bool;
        case FORM_MOVE:
            return all_bool || (all_float && same);
        case FORM_COMPARE:
        case FORM_SELF:
        case FORM_FINITE:
            return !is_bool(g, micro->inputs[0]);
        case FORM_SELECT:
            return !is_bool(g, micro->output);
        case FORM_TO_FLOAT:
            return is_bool(g, micro->inputs[0]) && !is_bool(g, micro->output);
        default:
            return all_float && same;
        }
    }
    return false;
}

/* --- registers --- */

/* Whether the slot's register is a mask. */
static bool in_mask(const sgm__generator *g, int32_t slot)
{
    return g->encoder->masks && is_bool(g, slot);
}

/* Single numbers are loaded once, before the loop, if they are few and no calls would put them on the stack
 * each time. */
static bool is_kept(const sgm__generator *g, int32_t slot)
{
    return g->keeps && g->e->slots[slot].kind == SGM__SLOT_STILL;
}

/* The slot's register is free again. */
static void release(sgm__generator *g, int32_t slot)
{
    if (g->place[slot] < 0)
        return;
    (in_mask(g, slot) ? g->used_masks : g->used)[g->place[slot]] = false;
    g->place[slot] = -1;
}

/* Frees the register of a value that is in memory, too, of which the instruction at hand is no reader: that
 * which is read last. It will be loaded again, as the interpreter loads all values. */
static void evict(sgm__generator *g, bool mask)
{
    int32_t found = -1;
    for (int32_t i = 0; i < g->e->slot_count; i++) {
        bool needed = g->place[i] < 0 || in_mask(g, i) != mask || is_kept(g, i) ||
                      g->e->slots[i].kind == SGM__SLOT_BUFFER || i == g->current->output;
        for (int32_t k = 0; k < g->current->input_count; k++)
            needed = needed || g->current->inputs[k] == i;
        if (!needed && (found < 0 || g->last[i] > g->last[found]))
            found = i;
    }
    if (found >= 0)
        release(g, found);
}

static int32_t find_free(const sgm__generator *g, bool mask)
{
    const bool *used = mask ? g->used_masks : g->used;
    int32_t end = mask ? SGM__MASKS + SGM__FIRST_MASK : g->encoder->vectors;
    for (int32_t i = mask ? SGM__FIRST_MASK : g->encoder->first_vector; i < end; i++)
        if (!used[i])
            return i;
    return -1;
}

/* A free register, a mask or a vector; `failed` if there is none. */
static int32_t take(sgm__generator *g, bool mask)
{
    int32_t free = find_free(g, mask);
    if (free < 0 && g->current != NULL) {
        evict(g, mask);
        free = find_free(g, mask);
    }
    if (free < 0) {
        g->failed = true;
        return mask ? SGM__FIRST_MASK : g->encoder->first_vector;
    }
    (mask ? g->used_masks : g->used)[free] = true;
    return free;
}

/* The slot's elements in memory. Emits a load of the slot's address into rax. A single number is not indexed:
 * SGM__STILL_BYTES of it lie there. */
static sgm__address address_of(sgm__generator *g, int32_t slot)
{
    const sgm__slot *s = &g->e->slots[slot];
    sgm__emit_pointer(g->assembler, SGM__RAX, SGM__R12, slot * (int32_t)sizeof(void *));
    return (sgm__address){.base = SGM__RAX, .indexed = s->kind != SGM__SLOT_STILL, .scale = (uint8_t)s->size};
}

/* The register that holds the slot, loaded now if none does. */
static uint8_t load(sgm__generator *g, int32_t slot)
{
    if (g->place[slot] >= 0)
        return (uint8_t)g->place[slot];
    int32_t to = take(g, in_mask(g, slot));
    g->place[slot] = to;
    g->encoder->load(g, dtype_of(g, slot), (uint8_t)to, address_of(g, slot));
    return (uint8_t)to;
}

/* Stores the slot's register to its place. */
static void store(sgm__generator *g, int32_t slot)
{
    g->encoder->store(g, dtype_of(g, slot), (uint8_t)g->place[slot], address_of(g, slot));
}

/* --- instructions --- */

/* Bytes of the stack frame: room for all vectors and masks during a call, then the second result of a pair of
 * functions. The frame is a multiple of 16, as the five pushes and the return address are, so that the stack
 * is aligned at calls. */
static int32_t masks_at(const sgm__generator *g)
{
    return g->encoder->vectors * g->encoder->vector_bytes;
}

static int32_t second_at(const sgm__generator *g)
{
    return masks_at(g) + (SGM__MASKS + 2) * MASK_BYTES;
}

static int32_t frame_bytes(const sgm__generator *g)
{
    return second_at(g) + g->encoder->vector_bytes;
}

/* Vectors and masks that are in use, but `to`, to the stack or back. */
static void move_registers(sgm__generator *g, uint8_t to, bool back)
{
    sgm__address stack = {.base = SGM__RSP, .scale = 1};
    for (uint8_t i = g->encoder->first_vector; i < g->encoder->vectors; i++) {
        stack.offset = i * g->encoder->vector_bytes;
        if (g->used[i] && i != to)
            sgm__emit_memory(g->assembler, back ? sgm__load_floats : sgm__store_floats, i, 0, stack,
                             sgm__no_mask);
    }
    for (uint8_t i = SGM__FIRST_MASK; i < SGM__FIRST_MASK + SGM__MASKS; i++)
        if (g->used_masks[i])
            (back ? sgm__emit_mask_load : sgm__emit_mask_store)(g->assembler, i,
                                                                masks_at(g) + i * MASK_BYTES);
}

/* to = function(from). All vector registers and masks may be changed by the function, so those that are in
 * use go to the stack meanwhile. rdi is the address of a second result, which only pairs write. */
static void emit_call(sgm__generator *g, sgm__one_vector function, uint8_t to, uint8_t from)
{
    sgm__assembler *a = g->assembler;
    move_registers(g, to, false);
    sgm__emit_vector(a, sgm__move_floats, 0, 0, from, sgm__no_mask);
    SGM__EMIT(a, 0x48, 0x8d, 0xbc, 0x24); /* lea rdi, [rsp + second_at] */
    sgm__emit_word(a, (uint32_t)second_at(g));
    uint64_t target = (uint64_t)(uintptr_t)function;
    SGM__EMIT(a, 0x48, 0xb8); /* mov rax, function */
    sgm__emit_word(a, (uint32_t)target);
    sgm__emit_word(a, (uint32_t)(target >> 32));
    SGM__EMIT(a, 0xff, 0xd0); /* call rax */
    move_registers(g, to, true);
    g->encoder->restore_part(g);
    sgm__emit_vector(a, sgm__move_floats, to, 0, 0, sgm__no_mask);
}

static void emit_bits(sgm__generator *g, uint8_t code, uint8_t to, uint8_t x)
{
    g->encoder->constant(g, 0, code == 0 ? SGM__SIGN_BIT : ~SGM__SIGN_BIT);
    sgm__emit_vector(g->assembler, code == 0 ? sgm__exclusive_or : sgm__and_bits, to, x, 0, sgm__no_mask);
}

/* Results that may not be a bfloat16 already: comparisons, signs and selections need no rounding. */
static bool is_rounded(const sgm__generator *g, const sgm__micro *micro, form way)
{
    return is_half(g, micro->output) &&
           (way == FORM_VECTOR || way == FORM_CALL || micro->op == &sgm__op_cast);
}

/* One instruction: registers `in` to register `to`, before any rounding. */
static void emit_micro(sgm__generator *g, const sgm__micro *micro, const recipe *how, uint8_t to,
                       const uint8_t *in)
{
    sgm__assembler *a = g->assembler;
    const sgm__encoder *c = g->encoder;
    switch (how->form) {
    case FORM_VECTOR: {
        uint8_t left = micro->input_count == 2 ? in[0] : 0, right = in[micro->input_count - 1];
        sgm__emit_vector(a, (sgm__encoding){1, 0, how->code, 2, false}, to, left, right, sgm__no_mask);
        return;
    }
    case FORM_CHOSEN:
        c->chosen(g, how->code, to, in[0], in[1]);
        return;
    case FORM_COMPARE:
        c->compare(g, to, in[0], in[1], how->code);
        return;
    case FORM_SELF:
        c->compare(g, to, in[0], in[0], how->code);
        return;
    case FORM_FINITE:
        emit_bits(g, 1, 1, in[0]);
        c->constant(g, 0, SGM__INFINITE);
        c->compare(g, to, 1, 0, SGM__LESS);
        return;
    case FORM_BITS:
        emit_bits(g, how->code, to, in[0]);
        return;
    case FORM_FLOOR:
        sgm__emit_vector(a, sgm__round_to, to, 0, in[0], sgm__no_mask);
        SGM__EMIT(a, how->code);
        return;
    case FORM_AND:
        c->both(g, to, in[0], in[1]);
        return;
    case FORM_OR:
        c->either(g, to, in[0], in[1]);
        return;
    case FORM_NOT:
        c->none(g, to, in[0]);
        return;
    case FORM_MOVE:
        if (is_bool(g, micro->output))
            c->copy(g, to, in[0]);
        else
            sgm__emit_vector(a, sgm__move_floats, to, 0, in[0], sgm__no_mask);
        return;
    case FORM_SELECT:
        c->select(g, to, in[0], in[1], in[2]);
        return;
    case FORM_TO_FLOAT:
        c->to_float(g, to, in[0]);
        return;
    case FORM_CALL:
        emit_call(g, function_of(g, micro->op), to, in[0]);
        return;
    }
}

/* --- the loop --- */

/* The instruction after `first` that gives the second result of the same function (gelu and its derivative,
 * of the same operand); NULL: there is none. */
static const sgm__micro *find_second(const sgm__generator *g, int32_t first)
{
    const sgm__elementwise *e = g->e;
    const sgm__vector_pair *pair = g->vector->pair;
    for (int32_t m = first + 1; m < e->micro_count && pair != NULL && e->micros[first].op == pair->first; m++)
        if (e->micros[m].op == pair->second && e->micros[m].inputs[0] == e->micros[first].inputs[0] &&
            dtype_of(g, e->micros[m].output) == SGM_FLOAT32)
            return &e->micros[m];
    return NULL;
}

/* Both results of a pair by one call. The second one is in its register before its instruction's turn, which
 * then is skipped. */
static void emit_pair(sgm__generator *g, const sgm__micro *second, uint8_t to, uint8_t from)
{
    sgm__address stack = {.base = SGM__RSP, .scale = 1, .offset = second_at(g)};
    emit_call(g, g->vector->pair->function, to, from);
    g->place[second->output] = take(g, false);
    sgm__emit_memory(g->assembler, sgm__load_floats, (uint8_t)g->place[second->output], 0, stack,
                     sgm__no_mask);
}

/* Loads what an instruction needs, computes it, and notes the register of its result. */
static void emit_value(sgm__generator *g, int32_t index)
{
    const sgm__micro *micro = &g->e->micros[index], *second = find_second(g, index);
    recipe how;
    uint8_t in[SGM__ELEMENTWISE_MAXIMUM_INPUTS] = {0};
    g->current = micro;
    g->failed = !find_recipe(g, micro, &how);
    for (int32_t k = 0; k < micro->input_count; k++)
        in[k] = load(g, micro->inputs[k]);
    int32_t to = take(g, in_mask(g, micro->output));
    if (g->failed)
        return;
    if (second != NULL)
        emit_pair(g, second, (uint8_t)to, in[0]);
    else
        emit_micro(g, micro, &how, (uint8_t)to, in);
    if (is_rounded(g, micro, how.form))
        g->encoder->round(g, (uint8_t)to);
    g->place[micro->output] = to;
}

/* All instructions for one vector. A value with a place in memory is stored as soon as it is there; registers
 * are released after their last reader. */
static void emit_body(sgm__generator *g)
{
    const sgm__elementwise *e = g->e;
    for (int32_t m = 0; m < e->micro_count && !g->failed; m++) {
        const sgm__micro *micro = &e->micros[m];
        if (g->place[micro->output] < 0)
            emit_value(g, m);
        if (e->slots[micro->output].kind != SGM__SLOT_BUFFER)
            store(g, micro->output);
        for (int32_t k = 0; k < micro->input_count; k++)
            if (g->last[micro->inputs[k]] == m && !is_kept(g, micro->inputs[k]))
                release(g, micro->inputs[k]);
        if (g->last[micro->output] < 0)
            release(g, micro->output);
    }
}

/* One row: whole vectors in a loop, then the last, partial one. */
static void emit_loop(sgm__generator *g)
{
    sgm__assembler *a = g->assembler;
    size_t top = a->count;
    SGM__EMIT(a, 0x49, 0x8d, 0x45, g->encoder->lanes); /* lea rax, [r13 + lanes] */
    SGM__EMIT(a, 0x48, 0x39, 0xd8);                    /* cmp rax, rbx */
    size_t rest = sgm__emit_jump(a, SGM__GREATER);
    emit_body(g);
    SGM__EMIT(a, 0x49, 0x83, 0xc5, g->encoder->lanes); /* add r13, lanes */
    sgm__emit_jump_back(a, top);
    sgm__land(a, rest);
    SGM__EMIT(a, 0x48, 0x89, 0xd9); /* mov rcx, rbx */
    SGM__EMIT(a, 0x4c, 0x29, 0xe9); /* sub rcx, r13 */
    size_t end = sgm__emit_jump(a, SGM__NOT_POSITIVE);
    g->part = true;
    g->encoder->begin_part(g);
    emit_body(g);
    sgm__land(a, end);
}

/* Moves the slots' addresses on to the next row, in memory. Single numbers and rows that repeat stay. */
static void emit_next_row(sgm__generator *g)
{
    const sgm__elementwise *e = g->e;
    for (int32_t i = 0; i < e->slot_count; i++) {
        int64_t bytes = sgm__slot_row_bytes(e, &e->slots[i]);
        sgm__slot_kind kind = e->slots[i].kind;
        if ((kind != SGM__SLOT_DENSE && kind != SGM__SLOT_ROW && kind != SGM__SLOT_DRAWN) || bytes == 0)
            continue;
        SGM__EMIT(g->assembler, 0x49, 0x81, 0x84, 0x24); /* add qword [r12 + 8 i], bytes */
        sgm__emit_word(g->assembler, (uint32_t)(i * (int32_t)sizeof(void *)));
        sgm__emit_word(g->assembler, (uint32_t)bytes);
    }
}

/* The loop over rows, if the step goes by rows. */
static void emit_rows(sgm__generator *g)
{
    sgm__assembler *a = g->assembler;
    size_t top = a->count;
    SGM__EMIT(a, 0x45, 0x31, 0xed); /* xor r13d, r13d */
    emit_loop(g);
    if (!g->e->by_rows)
        return;
    SGM__EMIT(a, 0x49, 0xff, 0xcf); /* dec r15 */
    size_t end = sgm__emit_jump(a, SGM__NOT_POSITIVE);
    emit_next_row(g);
    sgm__emit_jump_back(a, top);
    sgm__land(a, end);
}

/* The whole function: entry, kept numbers, rows, exit. */
static void emit_all(sgm__generator *g)
{
    sgm__assembler *a = g->assembler;
    SGM__EMIT(a, 0x53, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57); /* push rbx, r12, r13, r14, r15 */
    SGM__EMIT(a, 0x48, 0x81, 0xec); /* sub rsp, frame: a multiple of 16 with the pushes */
    sgm__emit_word(a, (uint32_t)frame_bytes(g));
    SGM__EMIT(a, 0x48, 0x89, 0xfb); /* mov rbx, rdi */
    SGM__EMIT(a, 0x49, 0x89, 0xf4); /* mov r12, rsi */
    SGM__EMIT(a, 0x49, 0x89, 0xd7); /* mov r15, rdx */
    for (int32_t i = 0; i < g->e->slot_count; i++)
        if (is_kept(g, i) && g->last[i] >= 0)
            load(g, i);
    emit_rows(g);
    SGM__EMIT(a, 0x48, 0x81, 0xc4); /* add rsp, frame */
    sgm__emit_word(a, (uint32_t)frame_bytes(g));
    SGM__EMIT(a, 0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5b); /* pop r15, r14, r13, r12, rbx */
    SGM__EMIT(a, 0xc5, 0xf8, 0x77, 0xc3);                               /* vzeroupper; ret */
}

/* Whether all types fit into registers, all instructions can be written, and the code is worth it. Also finds
 * the last readers and whether anything is called. */
static bool is_possible(sgm__generator *g)
{
    recipe how;
    int32_t simple = 0, calls = 0; /* calls that the interpreter would not make twice, as it does for pairs */
    for (int32_t m = 0; m < g->e->micro_count; m++) {
        const sgm__micro *micro = &g->e->micros[m];
        sgm_dtype to = dtype_of(g, micro->output);
        if (to != SGM_FLOAT32 && to != SGM_BFLOAT16 && to != SGM_BOOL)
            return false;
        for (int32_t k = 0; k < micro->input_count; k++) {
            sgm_dtype from = dtype_of(g, micro->inputs[k]);
            if (from != SGM_FLOAT32 && from != SGM_BFLOAT16 && from != SGM_BOOL)
                return false;
            g->last[micro->inputs[k]] = m;
        }
        if (!find_recipe(g, micro, &how))
            return false;
        g->calls = g->calls || how.form == FORM_CALL;
        simple += how.form != FORM_CALL;
        if (how.form == FORM_CALL)
            calls += find_second(g, m) != NULL ? -1 : 1;
    }
    return simple >= calls * g->encoder->call_price;
}

/* All of the code, or none if registers do not suffice. */
static bool write_code(sgm__generator *g, bool keeps)
{
    size_t before = g->assembler->count;
    g->keeps = keeps;
    g->part = g->failed = false;
    memset(g->used, 0, sizeof g->used);
    memset(g->used_masks, 0, sizeof g->used_masks);
    for (int32_t i = 0; i < g->e->slot_count; i++)
        g->place[i] = -1;
    emit_all(g);
    if (g->failed)
        g->assembler->count = before;
    return !g->failed;
}

/* If anything is in the way, the assembler's buffer is as before and the step stays interpreted. */
void sgm__generate(sgm__elementwise *e, const sgm__vector *vector, sgm__assembler *assembler)
{
    if (vector->functions == NULL || e->elements == 0 || e->micro_count == 0 || e->copies)
        return;
    const sgm__encoder *encoder = vector->f32.vector_lanes == 16 ? &sgm__encoder_avx512 : &sgm__encoder_avx2;
    sgm__generator g = {.e = e, .vector = vector, .encoder = encoder, .assembler = assembler};
    assembler->vex = encoder->vex;
    g.last = sgm__alloc((size_t)e->slot_count * 2 * sizeof(int32_t));
    if (g.last == NULL) {
        sgm_clear_error();
        return;
    }
    g.place = g.last + e->slot_count;
    for (int32_t i = 0; i < e->slot_count; i++)
        g.last[i] = -1;
    size_t before = assembler->count;
    if (is_possible(&g)) {
        bool few = !g.calls && e->stills <= encoder->maximum_kept;
        if ((few && write_code(&g, true)) || write_code(&g, false))
            e->code_at = (int64_t)before;
    }
    sgm__free(g.last);
}
