/* Writes machine code for an elementwise step: one loop over the elements, 16 at a time, with all values in
 * between in registers.
 *
 * For float32, bfloat16 (in registers a float32 that is rounded after each operation) and bool on processors
 * with AVX-512. Other steps, and all steps where the system allows no code to be made, are interpreted
 * (elementwise_run.c). The bits are the same: the same operations are done in the same order, without
 * multiply-adds, and exp and its kind are calls of the functions that the loops use (vector_kernels.h).
 * Called by elementwise_compile.c; gains are in docs/performance.md, Elementwise steps.
 *
 * The function is void (int64_t n, void **addresses, int64_t rows). rbx: n, the elements of a row; r12:
 * addresses of the slots; r13: number of the vector's first element; r14: bits of the elements that exist in
 * the last vector; r15: rows that are left. All five survive calls by the ABI (System V, AMD64). zmm0, zmm1
 * and k7 are free within an instruction; during the last, partial vector k7 is the mask of the elements that
 * exist, and code that changes k7 restores it from r14. */
#include "handlers/cpu/elementwise/assembler.h"
#include "handlers/cpu/elementwise/elementwise.h"
#include "ops/ops.h"

#define FIRST_VECTOR 2 /* zmm2 to zmm31 hold values */
#define VECTORS 32
#define FIRST_MASK 1
#define MASKS 6 /* k1 to k6 */
#define PART 7  /* k7 */
/* Elements of a vector, also of bfloat16 and bool, which are widened. */
#define LANES 16
#define VECTOR_BYTES 64
#define MAXIMUM_KEPT 12 /* operands of one number that stay in registers during the whole loop */
#define MASK_BYTES 8    /* of the stack for each mask */
/* The stack frame: room for all vectors and masks during a call, then at SECOND_AT the second result of a
 * pair of functions. FRAME_BYTES is a multiple of 16, as the five pushes and the return address are, so that
 * the stack is aligned at calls. */
#define SECOND_AT (VECTORS * VECTOR_BYTES + (MASKS + 2) * MASK_BYTES)
#define FRAME_BYTES (SECOND_AT + VECTOR_BYTES)

/* What is known while the code of one step is written. The code is written in order, once for whole vectors
 * and once for the last, partial one, with the same registers. */
typedef struct generator {
    const sgm__elementwise *e;
    const sgm__vector *vector;
    sgm__assembler *assembler;
    int32_t *last;      /* for each slot: the last instruction that reads it; -1: none does */
    int32_t *place;     /* for each slot: the vector or mask register that holds it now; -1: none */
    bool used[VECTORS]; /* by number, the vector registers that hold something */
    bool used_masks[MASKS + FIRST_MASK];
    bool calls;  /* functions are called, which keep no vector register */
    bool part;   /* this is the last, partial vector */
    bool failed; /* more registers are needed than there are: the step is interpreted */
} generator;

static const sgm__mask no_mask = {0};
/* Encodings as assembler.h lists their members: {map, prefix, opcode, length, wide}. In this order VMOVUPS
 * (load, store), VMOVAPS, VMOVDQU8 (load, store), VPTESTMB, VPMOVM2B, VPABSB, VPMOVZXWD, VPMOVDW, the shifts
 * of VPSRLD and VPSLLD, VPADDD, VPBROADCASTD, VCMPPS, VBLENDMPS, VPANDD, VPORD, VPXORD, VRNDSCALEPS. */
static const sgm__encoding load_floats = {1, 0, 0x10, 2, false}, store_floats = {1, 0, 0x11, 2, false},
                           move_floats = {1, 0, 0x28, 2, false}, load_bytes = {1, 3, 0x6f, 0, false},
                           store_bytes = {1, 3, 0x7f, 0, false}, bytes_to_mask = {2, 1, 0x26, 0, false},
                           mask_to_bytes = {2, 2, 0x28, 0, false}, absolute_bytes = {2, 1, 0x1c, 0, false},
                           load_halves = {2, 1, 0x33, 2, false}, store_halves = {2, 2, 0x33, 2, false},
                           shift = {1, 1, 0x72, 2, false}, add_integers = {1, 1, 0xfe, 2, false},
                           broadcast = {2, 1, 0x7c, 2, false}, compare = {1, 0, 0xc2, 2, false},
                           blend = {2, 1, 0x65, 2, false}, and_bits = {1, 1, 0xdb, 2, false},
                           or_bits = {1, 1, 0xeb, 2, false}, exclusive_or = {1, 1, 0xef, 2, false},
                           round_to = {3, 1, 0x08, 2, false};

/* What stands in the register field of `shift` and says which way. */
#define SHIFT_RIGHT 2
#define SHIFT_LEFT 6
/* Opcodes of KMOVW, KANDW, KNOTW and KORW. */
#define MASK_MOVE 0x90
#define MASK_AND 0x41
#define MASK_NOT 0x44
#define MASK_OR 0x45

/* How the instruction of an operation is written. */
typedef enum form {
    FORM_VECTOR,  /* one instruction on vectors; `code` is its opcode */
    FORM_CHOSEN,  /* one of two operands: `code` is the kind of the comparison that takes the second */
    FORM_COMPARE, /* `code` is the kind of comparison */
    FORM_SELF,    /* comparison of an operand with itself */
    FORM_FINITE,  /* the operand is neither infinite nor NaN */
    FORM_BITS,    /* with a constant: `code` 0 is negate, 1 is absolute */
    FORM_FLOOR,
    FORM_MASK, /* one instruction on masks; `code` is its opcode */
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

/* Parts of a float32, by their bits. */
#define SIGN_BIT 0x80000000u
#define ONE 0x3f800000u
#define INFINITE 0x7f800000u
#define QUIET_BIT 0x00400000u
/* Kinds of VCMPPS. */
#define LESS 0x01
#define UNORDERED 0x03
#define ORDERED 0x07

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
    {&sgm__op_is_nan, FORM_SELF, UNORDERED},
    {&sgm__op_is_finite, FORM_FINITE, 0},
    {&sgm__op_negate, FORM_BITS, 0},
    {&sgm__op_absolute, FORM_BITS, 1},
    {&sgm__op_floor, FORM_FLOOR, 0x09},
    {&sgm__op_logical_and, FORM_MASK, MASK_AND},
    {&sgm__op_logical_or, FORM_MASK, MASK_OR},
    {&sgm__op_logical_not, FORM_MASK, MASK_NOT},
    {&sgm__op_copy, FORM_MOVE, 0},
    {&sgm__op_stop_gradient, FORM_MOVE, 0},
    {&sgm__op_select, FORM_SELECT, 0},
    {&sgm__op_cast, FORM_TO_FLOAT, 0},
};

static sgm_dtype dtype_of(const generator *g, int32_t slot)
{
    return g->e->plan->nodes[g->e->slots[slot].node].type.dtype;
}

static bool is_bool(const generator *g, int32_t slot)
{
    return dtype_of(g, slot) == SGM_BOOL;
}

static bool is_half(const generator *g, int32_t slot)
{
    return dtype_of(g, slot) == SGM_BFLOAT16;
}

/* The function that computes the operation for one vector; the approximate one if the handler's option says
 * so. NULL: none. */
static sgm__one_vector function_of(const generator *g, const sgm_op *op)
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
static bool find_recipe(const generator *g, const sgm__micro *micro, recipe *found)
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
        case FORM_MASK:
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

/* A free register, a mask or a vector; `failed` if there is none. */
static int32_t take(generator *g, bool mask)
{
    bool *used = mask ? g->used_masks : g->used;
    int32_t end = mask ? MASKS + FIRST_MASK : VECTORS;
    for (int32_t i = mask ? FIRST_MASK : FIRST_VECTOR; i < end; i++)
        if (!used[i]) {
            used[i] = true;
            return i;
        }
    g->failed = true;
    return mask ? FIRST_MASK : FIRST_VECTOR;
}

/* The slot's register is free again. */
static void release(generator *g, int32_t slot)
{
    if (g->place[slot] < 0)
        return;
    (is_bool(g, slot) ? g->used_masks : g->used)[g->place[slot]] = false;
    g->place[slot] = -1;
}

/* The mask for loads and stores: k7 in the last vector, else none. */
static uint8_t part_mask(const generator *g)
{
    return g->part ? PART : 0;
}

/* The slot's elements in memory. Emits a load of the slot's address into rax. A single number is not indexed:
 * SGM__STILL_BYTES of it lie there. */
static sgm__address address_of(generator *g, int32_t slot)
{
    const sgm__slot *s = &g->e->slots[slot];
    sgm__emit_pointer(g->assembler, SGM__RAX, SGM__R12, slot * (int32_t)sizeof(void *));
    return (sgm__address){.base = SGM__RAX, .indexed = s->kind != SGM__SLOT_STILL, .scale = (uint8_t)s->size};
}

/* Shifts each lane by the 16 bits by which bfloat16 is narrower than float32. */
static void emit_shift(generator *g, uint8_t way, uint8_t to, uint8_t from)
{
    sgm__emit_vector(g->assembler, shift, way, to, from, no_mask);
    SGM__EMIT(g->assembler, 16);
}

/* The register that holds the slot, loaded now if none does. bool becomes a mask register: bytes are tested
 * for being other than 0. Elements that do not exist are 0. */
static uint8_t load(generator *g, int32_t slot)
{
    sgm__mask mask = {part_mask(g), g->part};
    if (g->place[slot] >= 0)
        return (uint8_t)g->place[slot];
    int32_t to = g->place[slot] = take(g, is_bool(g, slot));
    sgm__address address = address_of(g, slot);
    if (is_bool(g, slot)) {
        sgm__emit_memory(g->assembler, load_bytes, 0, 0, address, mask);
        sgm__emit_vector(g->assembler, bytes_to_mask, (uint8_t)to, 0, 0, no_mask);
    } else if (is_half(g, slot)) {
        sgm__emit_memory(g->assembler, load_halves, (uint8_t)to, 0, address, mask);
        emit_shift(g, SHIFT_LEFT, (uint8_t)to, (uint8_t)to);
    } else {
        sgm__emit_memory(g->assembler, load_floats, (uint8_t)to, 0, address, mask);
    }
    return (uint8_t)to;
}

/* Stores the slot's register to its place. A mask becomes bytes of 0 or 1. */
static void store(generator *g, int32_t slot)
{
    sgm__mask mask = {part_mask(g), false};
    uint8_t from = (uint8_t)g->place[slot];
    sgm__address address = address_of(g, slot);
    if (is_bool(g, slot)) { /* VPMOVM2B gives bytes of 0 and -1, their absolute value is 0 and 1 */
        sgm__emit_vector(g->assembler, mask_to_bytes, 0, 0, from, no_mask);
        sgm__emit_vector(g->assembler, absolute_bytes, 0, 0, 0, no_mask);
        sgm__emit_memory(g->assembler, store_bytes, 0, 0, address, mask);
    } else if (is_half(g, slot)) {
        emit_shift(g, SHIFT_RIGHT, 0, from);
        sgm__emit_memory(g->assembler, store_halves, 0, 0, address, mask);
    } else {
        sgm__emit_memory(g->assembler, store_floats, from, 0, address, mask);
    }
}

/* --- instructions --- */

/* The same 4 bytes in each lane, by way of eax. */
static void emit_constant(generator *g, uint8_t to, uint32_t bits, sgm__mask mask)
{
    SGM__EMIT(g->assembler, 0xb8); /* mov eax, bits */
    sgm__emit_word(g->assembler, bits);
    sgm__emit_vector(g->assembler, broadcast, to, 0, SGM__RAX, mask);
}

/* A mask register of the lanes, of those in `mask`, in which the comparison holds. */
static void emit_compare(generator *g, uint8_t to, uint8_t left, uint8_t right, uint8_t kind, sgm__mask mask)
{
    sgm__emit_vector(g->assembler, compare, to, left, right, mask);
    SGM__EMIT(g->assembler, kind);
}

/* After a use of k7, and after calls. */
static void restore_part(generator *g)
{
    if (g->part)
        SGM__EMIT(g->assembler, 0x44, 0x89, 0xf0, 0xc5, 0xf8, 0x92, 0xf8); /* mov eax, r14d; kmovw k7, eax */
}

/* to = function(from). All vector registers and masks may be changed by the function, so those that are in
 * use go to the stack meanwhile. rdi is the address of a second result, which only pairs write. */
static void emit_call(generator *g, sgm__one_vector function, uint8_t to, uint8_t from)
{
    sgm__assembler *a = g->assembler;
    sgm__address stack = {.base = SGM__RSP, .scale = 1};
    for (uint8_t i = FIRST_VECTOR; i < VECTORS; i++) {
        stack.offset = i * VECTOR_BYTES;
        if (g->used[i] && i != to)
            sgm__emit_memory(a, store_floats, i, 0, stack, no_mask);
    }
    for (uint8_t i = FIRST_MASK; i < FIRST_MASK + MASKS; i++)
        if (g->used_masks[i])
            sgm__emit_mask_store(a, i, VECTORS * VECTOR_BYTES + i * MASK_BYTES);
    sgm__emit_vector(a, move_floats, 0, 0, from, no_mask);
    SGM__EMIT(a, 0x48, 0x8d, 0xbc, 0x24); /* lea rdi, [rsp + SECOND_AT] */
    sgm__emit_word(a, SECOND_AT);
    uint64_t target = (uint64_t)(uintptr_t)function;
    SGM__EMIT(a, 0x48, 0xb8); /* mov rax, function */
    sgm__emit_word(a, (uint32_t)target);
    sgm__emit_word(a, (uint32_t)(target >> 32));
    SGM__EMIT(a, 0xff, 0xd0); /* call rax */
    for (uint8_t i = FIRST_VECTOR; i < VECTORS; i++) {
        stack.offset = i * VECTOR_BYTES;
        if (g->used[i] && i != to)
            sgm__emit_memory(a, load_floats, i, 0, stack, no_mask);
    }
    for (uint8_t i = FIRST_MASK; i < FIRST_MASK + MASKS; i++)
        if (g->used_masks[i])
            sgm__emit_mask_load(a, i, VECTORS * VECTOR_BYTES + i * MASK_BYTES);
    restore_part(g);
    sgm__emit_vector(a, move_floats, to, 0, 0, no_mask);
}

/* to = y where x is a number and the comparison of x with y fails, else x: NaN if either is, the first of
 * two. That uses k7. */
static void emit_chosen(generator *g, uint8_t kind, uint8_t to, uint8_t x, uint8_t y)
{
    const sgm__mask part = {PART, false};
    emit_compare(g, PART, x, x, ORDERED, no_mask);
    emit_compare(g, PART, x, y, kind, part);
    sgm__emit_vector(g->assembler, blend, to, x, y, part);
    restore_part(g);
}

static void emit_bits(generator *g, uint8_t code, uint8_t to, uint8_t x)
{
    emit_constant(g, 0, code == 0 ? SIGN_BIT : ~SIGN_BIT, no_mask);
    sgm__emit_vector(g->assembler, code == 0 ? exclusive_or : and_bits, to, x, 0, no_mask);
}

/* Rounds each lane to the nearest bfloat16 (ties to even), as a float32 whose lower 16 bits are 0: adds
 * 0x7fff and the lowest bit that stays, then clears. NaN is made quiet in place of rounded, which could make
 * it infinite. Same bits as narrow_h in vector_math.h. */
static void emit_rounding(generator *g, uint8_t x)
{
    sgm__assembler *a = g->assembler;
    emit_shift(g, SHIFT_RIGHT, 0, x);
    emit_constant(g, 1, 1, no_mask);
    sgm__emit_vector(a, and_bits, 0, 0, 1, no_mask);
    emit_constant(g, 1, 0x7fff, no_mask);
    sgm__emit_vector(a, add_integers, 0, 0, 1, no_mask);
    sgm__emit_vector(a, add_integers, 0, 0, x, no_mask);
    emit_compare(g, PART, x, x, UNORDERED, no_mask);
    emit_constant(g, 1, QUIET_BIT, no_mask);
    sgm__emit_vector(a, or_bits, 0, x, 1, (sgm__mask){PART, false});
    emit_constant(g, 1, 0xffff0000u, no_mask);
    sgm__emit_vector(a, and_bits, x, 0, 1, no_mask);
    restore_part(g);
}

/* Results that may not be a bfloat16 already: comparisons, signs and selections need no rounding. */
static bool is_rounded(const generator *g, const sgm__micro *micro, form way)
{
    return is_half(g, micro->output) &&
           (way == FORM_VECTOR || way == FORM_CALL || micro->op == &sgm__op_cast);
}

/* One instruction: registers `in` to register `to`, before any rounding. */
static void emit_micro(generator *g, const sgm__micro *micro, const recipe *how, uint8_t to,
                       const uint8_t *in)
{
    sgm__assembler *a = g->assembler;
    switch (how->form) {
    case FORM_VECTOR: {
        uint8_t left = micro->input_count == 2 ? in[0] : 0, right = in[micro->input_count - 1];
        sgm__emit_vector(a, (sgm__encoding){1, 0, how->code, 2, false}, to, left, right, no_mask);
        return;
    }
    case FORM_CHOSEN:
        emit_chosen(g, how->code, to, in[0], in[1]);
        return;
    case FORM_COMPARE:
        emit_compare(g, to, in[0], in[1], how->code, no_mask);
        return;
    case FORM_SELF:
        emit_compare(g, to, in[0], in[0], how->code, no_mask);
        return;
    case FORM_FINITE:
        emit_bits(g, 1, 1, in[0]);
        emit_constant(g, 0, INFINITE, no_mask);
        emit_compare(g, to, 1, 0, LESS, no_mask);
        return;
    case FORM_BITS:
        emit_bits(g, how->code, to, in[0]);
        return;
    case FORM_FLOOR:
        sgm__emit_vector(a, round_to, to, 0, in[0], no_mask);
        SGM__EMIT(a, how->code);
        return;
    case FORM_MASK:
        sgm__emit_masks(a, how->code, to, micro->input_count == 2 ? in[0] : 0, in[micro->input_count - 1]);
        return;
    case FORM_MOVE:
        if (is_bool(g, micro->output))
            sgm__emit_masks(a, MASK_MOVE, to, 0, in[0]);
        else
            sgm__emit_vector(a, move_floats, to, 0, in[0], no_mask);
        return;
    case FORM_SELECT:
        sgm__emit_vector(a, blend, to, in[2], in[1], (sgm__mask){in[0], false});
        return;
    case FORM_TO_FLOAT:
        emit_constant(g, to, ONE, (sgm__mask){in[0], true});
        return;
    case FORM_CALL:
        emit_call(g, function_of(g, micro->op), to, in[0]);
        return;
    }
}

/* --- the loop --- */

/* The instruction after `first` that gives the second result of the same function (gelu and its derivative,
 * of the same operand); NULL: there is none. */
static const sgm__micro *find_second(const generator *g, int32_t first)
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
static void emit_pair(generator *g, const sgm__micro *second, uint8_t to, uint8_t from)
{
    sgm__address stack = {.base = SGM__RSP, .scale = 1, .offset = SECOND_AT};
    emit_call(g, g->vector->pair->function, to, from);
    g->place[second->output] = take(g, false);
    sgm__emit_memory(g->assembler, load_floats, (uint8_t)g->place[second->output], 0, stack, no_mask);
}

/* Single numbers are loaded once, before the loop, if they are few and no calls would put them on the stack
 * each time. */
static bool is_kept(const generator *g, int32_t slot)
{
    return !g->calls && g->e->stills <= MAXIMUM_KEPT && g->e->slots[slot].kind == SGM__SLOT_STILL;
}

/* Loads what an instruction needs, computes it, and notes the register of its result. */
static void emit_value(generator *g, int32_t index)
{
    const sgm__micro *micro = &g->e->micros[index], *second = find_second(g, index);
    recipe how;
    uint8_t in[SGM__ELEMENTWISE_MAXIMUM_INPUTS] = {0};
    g->failed = !find_recipe(g, micro, &how);
    for (int32_t k = 0; k < micro->input_count; k++)
        in[k] = load(g, micro->inputs[k]);
    int32_t to = take(g, is_bool(g, micro->output));
    if (g->failed)
        return;
    if (second != NULL)
        emit_pair(g, second, (uint8_t)to, in[0]);
    else
        emit_micro(g, micro, &how, (uint8_t)to, in);
    if (is_rounded(g, micro, how.form))
        emit_rounding(g, (uint8_t)to);
    g->place[micro->output] = to;
}

/* All instructions for one vector. A value with a place in memory is stored as soon as it is there; registers
 * are released after their last reader. */
static void emit_body(generator *g)
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

/* One row: whole vectors in a loop, then the last, partial one, with a mask of its elements (2^rest - 1) in
 * r14 and k7. */
static void emit_loop(generator *g)
{
    sgm__assembler *a = g->assembler;
    size_t top = a->count;
    SGM__EMIT(a, 0x49, 0x8d, 0x45, LANES); /* lea rax, [r13 + 16] */
    SGM__EMIT(a, 0x48, 0x39, 0xd8);        /* cmp rax, rbx */
    size_t rest = sgm__emit_jump(a, SGM__GREATER);
    emit_body(g);
    SGM__EMIT(a, 0x49, 0x83, 0xc5, LANES); /* add r13, 16 */
    sgm__emit_jump_back(a, top);
    sgm__land(a, rest);
    SGM__EMIT(a, 0x48, 0x89, 0xd9); /* mov rcx, rbx */
    SGM__EMIT(a, 0x4c, 0x29, 0xe9); /* sub rcx, r13 */
    size_t end = sgm__emit_jump(a, SGM__NOT_POSITIVE);
    SGM__EMIT(a, 0x41, 0xbe, 1, 0, 0, 0); /* mov r14d, 1 */
    SGM__EMIT(a, 0x41, 0xd3, 0xe6);       /* shl r14d, cl */
    SGM__EMIT(a, 0x41, 0xff, 0xce);       /* dec r14d */
    g->part = true;
    restore_part(g);
    emit_body(g);
    sgm__land(a, end);
}

/* Moves the slots' addresses on to the next row, in memory. Single numbers and rows that repeat stay. */
static void emit_next_row(generator *g)
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
static void emit_rows(generator *g)
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
static void emit_all(generator *g)
{
    sgm__assembler *a = g->assembler;
    SGM__EMIT(a, 0x53, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57); /* push rbx, r12, r13, r14, r15 */
    SGM__EMIT(a, 0x48, 0x81, 0xec); /* sub rsp, frame: a multiple of 16 with the pushes */
    sgm__emit_word(a, FRAME_BYTES);
    SGM__EMIT(a, 0x48, 0x89, 0xfb); /* mov rbx, rdi */
    SGM__EMIT(a, 0x49, 0x89, 0xf4); /* mov r12, rsi */
    SGM__EMIT(a, 0x49, 0x89, 0xd7); /* mov r15, rdx */
    for (int32_t i = 0; i < g->e->slot_count; i++)
        if (is_kept(g, i) && g->last[i] >= 0)
            load(g, i);
    emit_rows(g);
    SGM__EMIT(a, 0x48, 0x81, 0xc4); /* add rsp, frame */
    sgm__emit_word(a, FRAME_BYTES);
    SGM__EMIT(a, 0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5b); /* pop r15, r14, r13, r12, rbx */
    SGM__EMIT(a, 0xc5, 0xf8, 0x77, 0xc3);                               /* vzeroupper; ret */
}

/* Whether all types fit into registers and all instructions can be written. Also finds the last readers and
 * whether anything is called. */
static bool is_possible(generator *g)
{
    recipe how;
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
    }
    return true;
}

/* If anything is in the way, the assembler's buffer is as before and the step stays interpreted. */
void sgm__generate(sgm__elementwise *e, const sgm__vector *vector, sgm__assembler *assembler)
{
    if (vector->functions == NULL || e->elements == 0 || e->micro_count == 0 || e->copies)
        return;
    generator g = {.e = e, .vector = vector, .assembler = assembler};
    g.last = sgm__alloc((size_t)e->slot_count * 2 * sizeof(int32_t));
    if (g.last == NULL) {
        sgm_clear_error();
        return;
    }
    g.place = g.last + e->slot_count;
    for (int32_t i = 0; i < 2 * e->slot_count; i++)
        g.last[i] = -1;
    size_t before = assembler->count;
    if (is_possible(&g)) {
        emit_all(&g);
        if (g.failed)
            assembler->count = before;
        else
            e->code_at = (int64_t)before;
    }
    sgm__free(g.last);
}
