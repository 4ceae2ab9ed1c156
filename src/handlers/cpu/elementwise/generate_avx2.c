/* The encoder of AVX2: vectors of 32 bytes, bools in vectors whose lanes are all ones or zeros; see
 * generate.h.
 *
 * ymm0, ymm1 and ymm2 are free within an instruction. In the last, partial vector r14 is the number of its
 * elements. Whole vectors are loaded there, too: behind each buffer as many bytes may be read (host.c). They
 * are stored in pieces of four, two and one elements: storing by a mask takes some processors twenty
 * operations, and there is none of bytes. */
#include "handlers/cpu/elementwise/generate.h"

/* VPMOVZXBD, VPCMPGTD, VPCMPEQD, VEXTRACTI128, VPACKUSDW, VPACKSSDW, VPACKUSWB, VPSRLDQ, VMOVD from eax,
 * VPBROADCASTD, VBLENDVPS. */
static const sgm__encoding load_bytes = {2, 1, 0x31, 2, false}, greater = {1, 1, 0x66, 2, false},
                           equal = {1, 1, 0x76, 2, false}, upper_half = {3, 1, 0x39, 2, false},
                           pack_halves = {2, 1, 0x2b, 0, false}, pack_words = {1, 1, 0x6b, 0, false},
                           pack_bytes = {1, 1, 0x67, 0, false}, shift_bytes = {1, 1, 0x73, 0, false},
                           from_general = {1, 1, 0x6e, 0, false}, broadcast = {2, 1, 0x58, 2, false},
                           blend = {3, 1, 0x4a, 2, false};
#define SHIFT_BYTES_RIGHT 3 /* in the register field of `shift_bytes` */

static void load(sgm__generator *g, sgm_dtype dtype, uint8_t to, sgm__address address)
{
    sgm__assembler *a = g->assembler;
    if (dtype == SGM_BOOL) { /* any byte but 0 is true */
        sgm__emit_memory(a, load_bytes, 0, 0, address, sgm__no_mask);
        sgm__emit_vector(a, sgm__exclusive_or, 1, 1, 1, sgm__no_mask);
        sgm__emit_vector(a, greater, to, 0, 1, sgm__no_mask);
    } else if (dtype == SGM_BFLOAT16) {
        sgm__emit_memory(a, sgm__load_halves, to, 0, address, sgm__no_mask);
        sgm__emit_shift(g, SGM__SHIFT_LEFT, to, to, 16);
    } else {
        sgm__emit_memory(a, sgm__load_floats, to, 0, address, sgm__no_mask);
    }
}

/* Elements of 2 and 1 bytes, in the lower part of register 0, from lanes of 4. */
static void pack(sgm__generator *g, bool bytes, uint8_t from)
{
    sgm__assembler *a = g->assembler;
    sgm__emit_shift(g, SGM__SHIFT_RIGHT, 0, from, bytes ? 31 : 16); /* all ones become 1 */
    sgm__emit_vector(a, upper_half, 0, 0, 1, sgm__no_mask);
    SGM__EMIT(a, 1);
    sgm__emit_vector(a, bytes ? pack_words : pack_halves, 0, 0, 1, sgm__no_mask);
    if (bytes)
        sgm__emit_vector(a, pack_bytes, 0, 0, 0, sgm__no_mask);
}

/* The first bytes of a register: VMOVUPS (of 32 and of 16), VMOVQ, VMOVD, VPEXTRW, VPEXTRB. */
static void store_bytes(sgm__generator *g, uint8_t from, uint8_t bytes, sgm__address address)
{
    static const sgm__encoding halves = {1, 0, 0x11, 0, false}, eight = {1, 1, 0xd6, 0, false},
                               four = {1, 1, 0x7e, 0, false}, two = {3, 1, 0x15, 0, false},
                               one = {3, 1, 0x14, 0, false};
    sgm__encoding how = bytes == 32   ? sgm__store_floats
                        : bytes == 16 ? halves
                        : bytes == 8  ? eight
                        : bytes == 4  ? four
                        : bytes == 2  ? two
                                      : one;
    sgm__emit_memory(g->assembler, how, from, 0, address, sgm__no_mask);
    if (bytes < 4)
        SGM__EMIT(g->assembler, 0); /* of its elements the first */
}

/* Register 0 piece by piece; what is stored moves out of it, and the address, in rax, goes on. */
static void store_part(sgm__generator *g, uint8_t size, sgm__address address)
{
    sgm__assembler *a = g->assembler;
    for (uint8_t count = 4; count > 0; count /= 2) {
        uint8_t bytes = (uint8_t)(count * size);
        SGM__EMIT(a, 0x41, 0xf6, 0xc6, count); /* test r14b, count */
        size_t without = sgm__emit_jump(a, SGM__ZERO);
        store_bytes(g, 0, bytes, address);
        SGM__EMIT(a, 0x48, 0x83, 0xc0, bytes); /* add rax, bytes */
        if (bytes == 16) {
            sgm__emit_vector(a, upper_half, 0, 0, 0, sgm__no_mask);
            SGM__EMIT(a, 1);
        } else if (count > 1) {
            sgm__emit_vector(a, shift_bytes, SHIFT_BYTES_RIGHT, 0, 0, sgm__no_mask);
            SGM__EMIT(a, bytes);
        }
        sgm__land(a, without);
    }
}

static void store(sgm__generator *g, sgm_dtype dtype, uint8_t from, sgm__address address)
{
    uint8_t size = (uint8_t)sgm_dtype_size(dtype);
    if (size < 4)
        pack(g, size == 1, from);
    else if (g->part)
        sgm__emit_vector(g->assembler, sgm__move_floats, 0, 0, from, sgm__no_mask);
    if (g->part)
        store_part(g, size, address);
    else
        store_bytes(g, size < 4 ? 0 : from, (uint8_t)(8 * size), address);
}

static void begin_part(sgm__generator *g)
{
    SGM__EMIT(g->assembler, 0x41, 0x89, 0xce); /* mov r14d, ecx */
}

/* r14 survives calls. */
static void restore_part(sgm__generator *g)
{
    (void)g;
}

static void constant(sgm__generator *g, uint8_t to, uint32_t bits)
{
    SGM__EMIT(g->assembler, 0xb8); /* mov eax, bits */
    sgm__emit_word(g->assembler, bits);
    sgm__emit_vector(g->assembler, from_general, to, 0, SGM__RAX, sgm__no_mask);
    sgm__emit_vector(g->assembler, broadcast, to, 0, to, sgm__no_mask);
}

static void compare(sgm__generator *g, uint8_t to, uint8_t x, uint8_t y, uint8_t kind)
{
    sgm__emit_vector(g->assembler, sgm__compare, to, x, y, sgm__no_mask);
    SGM__EMIT(g->assembler, kind);
}

static void both(sgm__generator *g, uint8_t to, uint8_t a, uint8_t b)
{
    sgm__emit_vector(g->assembler, sgm__and_bits, to, a, b, sgm__no_mask);
}

static void either(sgm__generator *g, uint8_t to, uint8_t a, uint8_t b)
{
    sgm__emit_vector(g->assembler, sgm__or_bits, to, a, b, sgm__no_mask);
}

static void none(sgm__generator *g, uint8_t to, uint8_t a)
{
    sgm__emit_vector(g->assembler, equal, 0, 0, 0, sgm__no_mask);
    sgm__emit_vector(g->assembler, sgm__exclusive_or, to, a, 0, sgm__no_mask);
}

static void copy(sgm__generator *g, uint8_t to, uint8_t a)
{
    sgm__emit_vector(g->assembler, sgm__move_floats, to, 0, a, sgm__no_mask);
}

/* The register of the mask is in the upper half of a constant. */
static void choose(sgm__generator *g, uint8_t to, uint8_t which, uint8_t x, uint8_t y)
{
    sgm__emit_vector(g->assembler, blend, to, y, x, sgm__no_mask);
    SGM__EMIT(g->assembler, (unsigned char)(which << 4));
}

static void chosen(sgm__generator *g, uint8_t kind, uint8_t to, uint8_t x, uint8_t y)
{
    compare(g, 0, x, x, SGM__ORDERED);
    compare(g, 1, x, y, kind);
    both(g, 0, 0, 1);
    choose(g, to, 0, y, x);
}

static void to_float(sgm__generator *g, uint8_t to, uint8_t which)
{
    constant(g, 0, SGM__ONE);
    both(g, to, which, 0);
}

static void to_bfloat16(sgm__generator *g, uint8_t x)
{
    sgm__assembler *a = g->assembler;
    sgm__emit_shift(g, SGM__SHIFT_RIGHT, 0, x, 16);
    constant(g, 1, 1);
    both(g, 0, 0, 1);
    constant(g, 1, 0x7fff);
    sgm__emit_vector(a, sgm__add_integers, 0, 0, 1, sgm__no_mask);
    sgm__emit_vector(a, sgm__add_integers, 0, 0, x, sgm__no_mask);
    constant(g, 1, SGM__QUIET_BIT);
    either(g, 1, x, 1);
    compare(g, 2, x, x, SGM__UNORDERED);
    choose(g, 0, 2, 1, 0);
    constant(g, 1, 0xffff0000u);
    both(g, x, 0, 1);
}

const sgm__encoder sgm__encoder_avx2 = {.lanes = 8,
                                        .vector_bytes = 32,
                                        .vectors = 16,
                                        .first_vector = 3,
                                        .maximum_kept = 5,
                                        .call_price = 8,
                                        .vex = true,
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
