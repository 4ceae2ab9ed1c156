/* Between the writer of machine code (generate.c) and the encoders of instruction sets (generate_avx2.c,
 * generate_avx512.c). Internal.
 *
 * generate.c knows operations, registers, loops and calls; an encoder knows how wide vectors are, how parts
 * of them are loaded and stored, and what a bool is: a mask register, or a vector whose lanes are all ones or
 * zeros. Instructions that both sets have under one encoding are below.
 *
 * The function is void (int64_t n, void **addresses, int64_t rows). rbx: n, the elements of a row; r12:
 * addresses of the slots; r13: number of the vector's first element; r14: what an encoder wants to know of
 * the last, partial vector; r15: rows that are left. All five survive calls by the ABI (System V, AMD64).
 * Vector registers below `first_vector` are free within an instruction. */
#ifndef SGM_HANDLERS_CPU_ELEMENTWISE_GENERATE_H
#define SGM_HANDLERS_CPU_ELEMENTWISE_GENERATE_H

#include "handlers/cpu/elementwise/elementwise.h"

#define SGM__MAXIMUM_VECTORS 32
#define SGM__FIRST_MASK 1
#define SGM__MASKS 6 /* k1 to k6 hold values */

typedef struct sgm__encoder sgm__encoder;

/* What is known while the code of one step is written. The code is written in order, once for whole vectors
 * and once for the last, partial one, with the same registers. */
typedef struct sgm__generator {
    const sgm__elementwise *e;
    const sgm__vector *vector;
    const sgm__encoder *encoder;
    sgm__assembler *assembler;
    int32_t *last;                   /* for each slot: the last instruction that reads it; -1: none does */
    int32_t *place;                  /* for each slot: the register that holds it now; -1: none */
    bool used[SGM__MAXIMUM_VECTORS]; /* by number, the vector registers that hold something */
    bool used_masks[SGM__MASKS + SGM__FIRST_MASK];
    const sgm__micro *current; /* the instruction whose operands are being loaded */
    bool calls;                /* functions are called, which keep no vector register */
    bool keeps;                /* single numbers stay in registers during the whole loop */
    bool part;                 /* this is the last, partial vector */
    bool failed;               /* more registers are needed than there are: the step is interpreted */
} sgm__generator;

/* One instruction set. `to`, `from`, x, y, a and b are registers; those of bools are masks if `masks`. */
struct sgm__encoder {
    uint8_t lanes; /* elements of a vector, also of bfloat16 and bool, which are widened */
    uint8_t vector_bytes, vectors, first_vector;
    uint8_t maximum_kept; /* operands of one number that stay in registers during the whole loop */
    /* Simple instructions whose passes in memory take as long as a call takes longer than a pass: a function
     * of one vector reads its constants anew, and fewer vectors are under way at once. */
    int32_t call_price;
    bool masks, vex;
    /* Of float32, bfloat16 or bool. In the last, partial vector load may read further, and store stores just
     * the elements that exist. */
    void (*load)(sgm__generator *g, sgm_dtype dtype, uint8_t to, sgm__address address);
    void (*store)(sgm__generator *g, sgm_dtype dtype, uint8_t from, sgm__address address);
    /* Before the partial vector's code: ecx has the number of its elements. And again after calls. */
    void (*begin_part)(sgm__generator *g);
    void (*restore_part)(sgm__generator *g);
    /* The same 4 bytes in each lane, by way of eax. */
    void (*constant)(sgm__generator *g, uint8_t to, uint32_t bits);
    /* Results that are bool. `kind`: of VCMPPS. */
    void (*compare)(sgm__generator *g, uint8_t to, uint8_t x, uint8_t y, uint8_t kind);
    void (*both)(sgm__generator *g, uint8_t to, uint8_t a, uint8_t b);
    void (*either)(sgm__generator *g, uint8_t to, uint8_t a, uint8_t b);
    void (*none)(sgm__generator *g, uint8_t to, uint8_t a); /* the opposite */
    void (*copy)(sgm__generator *g, uint8_t to, uint8_t a);
    /* to = y where x is a number and the comparison of x with y is true, else x: NaN if either is, the first
     * of two. */
    void (*chosen)(sgm__generator *g, uint8_t kind, uint8_t to, uint8_t x, uint8_t y);
    void (*select)(sgm__generator *g, uint8_t to, uint8_t which, uint8_t x, uint8_t y);
    void (*to_float)(sgm__generator *g, uint8_t to, uint8_t which); /* 1 or 0 */
    /* Rounds each lane to the nearest bfloat16 (ties to even), as a float32 whose lower 16 bits are 0: adds
     * 0x7fff and the lowest bit that stays, then clears. NaN is made quiet in place of rounded, which could
     * make it infinite. Same bits as narrow_h in vector_math.h. */
    void (*round)(sgm__generator *g, uint8_t x);
};

extern const sgm__encoder sgm__encoder_avx2, sgm__encoder_avx512;

static const sgm__mask sgm__no_mask = {0};
/* VMOVUPS (load, store), VMOVAPS, VPMOVZXWD, the shifts VPSRLD and VPSLLD, VPADDD, VPAND, VPOR, VPXOR,
 * VCMPPS, VROUNDPS (VRNDSCALEPS). AVX-512 calls some of them by other names. */
static const sgm__encoding sgm__load_floats = {1, 0, 0x10, 2, false},
                           sgm__store_floats = {1, 0, 0x11, 2, false},
                           sgm__move_floats = {1, 0, 0x28, 2, false},
                           sgm__load_halves = {2, 1, 0x33, 2, false}, sgm__shift = {1, 1, 0x72, 2, false},
                           sgm__add_integers = {1, 1, 0xfe, 2, false}, sgm__and_bits = {1, 1, 0xdb, 2, false},
                           sgm__or_bits = {1, 1, 0xeb, 2, false}, sgm__exclusive_or = {1, 1, 0xef, 2, false},
                           sgm__compare = {1, 0, 0xc2, 2, false}, sgm__round_to = {3, 1, 0x08, 2, false};
/* What stands in the register field of `sgm__shift` and says which way. */
#define SGM__SHIFT_RIGHT 2
#define SGM__SHIFT_LEFT 6

/* Parts of a float32, by their bits. */
#define SGM__SIGN_BIT 0x80000000u
#define SGM__ONE 0x3f800000u
#define SGM__INFINITE 0x7f800000u
#define SGM__QUIET_BIT 0x00400000u
/* Kinds of VCMPPS. */
#define SGM__LESS 0x01
#define SGM__UNORDERED 0x03
#define SGM__ORDERED 0x07

/* Shifts each lane by some bits: 16 are those by which bfloat16 is narrower than float32. */
static inline void sgm__emit_shift(sgm__generator *g, uint8_t way, uint8_t to, uint8_t from, uint8_t bits)
{
    sgm__emit_vector(g->assembler, sgm__shift, way, to, from, sgm__no_mask);
    SGM__EMIT(g->assembler, bits);
}

#endif
