/* The encoder of AVX-512: vectors of 64 bytes, bools in mask registers; see generate.h.
 *
 * zmm0, zmm1 and k7 are free within an instruction; during the last, partial vector k7 is the mask of the
 * elements that exist, whose bits are also in r14, and code that changes k7 restores it from there. */
#include "handlers/cpu/elementwise/generate.h"

#define PART 7 /* k7 */

/* VMOVDQU8 (load, store), VPTESTMB, VPMOVM2B, VPABSB, VPMOVDW, VPBROADCASTD, VBLENDMPS. */
static const sgm__encoding load_bytes = {1, 3, 0x6f, 0, false}, store_bytes = {1, 3, 0x7f, 0, false},
                           bytes_to_mask = {2, 1, 0x26, 0, false}, mask_to_bytes = {2, 2, 0x28, 0, false},
                           absolute_bytes = {2, 1, 0x1c, 0, false}, store_halves = {2, 2, 0x33, 2, false},
                           broadcast = {2, 1, 0x7c, 2, false}, blend = {2, 1, 0x65, 2, false};
/* Opcodes of KMOVW, KANDW, KNOTW and KORW. */
#define MASK_MOVE 0x90
#define MASK_AND 0x41
#define MASK_NOT 0x44
#define MASK_OR 0x45

/* The mask for loads and stores: k7 in the last vector, else none. */
static sgm__mask part_mask(const sgm__generator *g, bool zeroes)
{
    return (sgm__mask){g->part ? PART : 0, g->part && zeroes};
}

/* bool becomes a mask register: bytes are tested for being other than 0. Elements that do not exist are 0. */
static void load(sgm__generator *g, sgm_dtype dtype, uint8_t to, sgm__address address)
{
    sgm__mask mask = part_mask(g, true);
    if (dtype == SGM_BOOL) {
        sgm__emit_memory(g->assembler, load_bytes, 0, 0, address, mask);
        sgm__emit_vector(g->assembler, bytes_to_mask, to, 0, 0, sgm__no_mask);
    } else if (dtype == SGM_BFLOAT16) {
        sgm__emit_memory(g->assembler, sgm__load_halves, to, 0, address, mask);
        sgm__emit_shift(g, SGM__SHIFT_LEFT, to, to, 16);
    } else {
        sgm__emit_memory(g->assembler, sgm__load_floats, to, 0, address, mask);
    }
}

/* A mask becomes bytes of 0 or 1. */
static void store(sgm__generator *g, sgm_dtype dtype, uint8_t from, sgm__address address)
{
    sgm__mask mask = part_mask(g, false);
    if (dtype == SGM_BOOL) { /* VPMOVM2B gives bytes of 0 and -1, their absolute value is 0 and 1 */
        sgm__emit_vector(g->assembler, mask_to_bytes, 0, 0, from, sgm__no_mask);
        sgm__emit_vector(g->assembler, absolute_bytes, 0, 0, 0, sgm__no_mask);
        sgm__emit_memory(g->assembler, store_bytes, 0, 0, address, mask);
    } else if (dtype == SGM_BFLOAT16) {
        sgm__emit_shift(g, SGM__SHIFT_RIGHT, 0, from, 16);
        sgm__emit_memory(g->assembler, store_halves, 0, 0, address, mask);
    } else {
        sgm__emit_memory(g->assembler, sgm__store_floats, from, 0, address, mask);
    }
}

/* After a use of k7, and after calls. */
static void restore_part(sgm__generator *g)
{
    if (g->part)
        SGM__EMIT(g->assembler, 0x44, 0x89, 0xf0, 0xc5, 0xf8, 0x92, 0xf8); /* mov eax, r14d; kmovw k7, eax */
}

/* Bits of the elements that exist: 2^count - 1. */
static void begin_part(sgm__generator *g)
{
    SGM__EMIT(g->assembler, 0x41, 0xbe, 1, 0, 0, 0); /* mov r14d, 1 */
    SGM__EMIT(g->assembler, 0x41, 0xd3, 0xe6);       /* shl r14d, cl */
    SGM__EMIT(g->assembler, 0x41, 0xff, 0xce);       /* dec r14d */
    restore_part(g);
}

static void masked_constant(sgm__generator *g, uint8_t to, uint32_t bits, sgm__mask mask)
{
    SGM__EMIT(g->assembler, 0xb8); /* mov eax, bits */
    sgm__emit_word(g->assembler, bits);
    sgm__emit_vector(g->assembler, broadcast, to, 0, SGM__RAX, mask);
}

static void constant(sgm__generator *g, uint8_t to, uint32_t bits)
{
    masked_constant(g, to, bits, sgm__no_mask);
}

/* Of the lanes in `mask`. */
static void masked_compare(sgm__generator *g, uint8_t to, uint8_t x, uint8_t y, uint8_t kind, sgm__mask mask)
{
    sgm__emit_vector(g->assembler, sgm__compare, to, x, y, mask);
    SGM__EMIT(g->assembler, kind);
}

static void compare(sgm__generator *g, uint8_t to, uint8_t x, uint8_t y, uint8_t kind)
{
    masked_compare(g, to, x, y, kind, sgm__no_mask);
}

static void both(sgm__generator *g, uint8_t to, uint8_t a, uint8_t b)
{
    sgm__emit_masks(g->assembler, MASK_AND, to, a, b);
}

static void either(sgm__generator *g, uint8_t to, uint8_t a, uint8_t b)
{
    sgm__emit_masks(g->assembler, MASK_OR, to, a, b);
}

static void none(sgm__generator *g, uint8_t to, uint8_t a)
{
    sgm__emit_masks(g->assembler, MASK_NOT, to, 0, a);
}

static void copy(sgm__generator *g, uint8_t to, uint8_t a)
{
    sgm__emit_masks(g->assembler, MASK_MOVE, to, 0, a);
}

static void chosen(sgm__generator *g, uint8_t kind, uint8_t to, uint8_t x, uint8_t y)
{
    const sgm__mask part = {PART, false};
    compare(g, PART, x, x, SGM__ORDERED);
    masked_compare(g, PART, x, y, kind, part);
    sgm__emit_vector(g->assembler, blend, to, x, y, part);
    restore_part(g);
}

static void choose(sgm__generator *g, uint8_t to, uint8_t which, uint8_t x, uint8_t y)
{
    sgm__emit_vector(g->assembler, blend, to, y, x, (sgm__mask){which, false});
}

static void to_float(sgm__generator *g, uint8_t to, uint8_t which)
{
    masked_constant(g, to, SGM__ONE, (sgm__mask){which, true});
}

static void to_bfloat16(sgm__generator *g, uint8_t x)
{
    sgm__assembler *a = g->assembler;
    sgm__emit_shift(g, SGM__SHIFT_RIGHT, 0, x, 16);
    constant(g, 1, 1);
    sgm__emit_vector(a, sgm__and_bits, 0, 0, 1, sgm__no_mask);
    constant(g, 1, 0x7fff);
    sgm__emit_vector(a, sgm__add_integers, 0, 0, 1, sgm__no_mask);
    sgm__emit_vector(a, sgm__add_integers, 0, 0, x, sgm__no_mask);
    compare(g, PART, x, x, SGM__UNORDERED);
    constant(g, 1, SGM__QUIET_BIT);
    sgm__emit_vector(a, sgm__or_bits, 0, x, 1, (sgm__mask){PART, false});
    constant(g, 1, 0xffff0000u);
    sgm__emit_vector(a, sgm__and_bits, x, 0, 1, sgm__no_mask);
    restore_part(g);
}

const sgm__encoder sgm__encoder_avx512 = {.lanes = 16,
                                          .vector_bytes = 64,
                                          .vectors = 32,
                                          .first_vector = 2,
                                          .maximum_kept = 12,
                                          .masks = true,
                                          .load = load,
                                          .store = store,
                                          .begin_part = begin_part,
                                          .restore_part = restore_part,
                                          .constant = constant,
                                          .compare = compare,
                                          .both = both,
                                          .either = either,
                                          .none = none,
                                          .copy = copy,
                                          .chosen = chosen,
                                          .select = choose,
                                          .to_float = to_float,
                                          .round = to_bfloat16};
