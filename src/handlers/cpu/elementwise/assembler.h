/* An assembler for the few x86-64, AVX2 and AVX-512 instructions that machine code needs (generate.h).
 * Internal.
 *
 * An instruction is written as its encoding, after Intel's Software Developer's Manual (volume 2), and
 * appended to a growing buffer of bytes. Addresses always have a base and an offset of 32 bits; vector
 * instructions have the EVEX prefix of AVX-512 or the VEX prefix of AVX2, those on mask registers VEX.
 * sgm__code_map copies the finished bytes to memory that can be run. Errors are not returned but kept in
 * `failed`, so that a sequence of emissions needs one check. */
#ifndef SGM_HANDLERS_CPU_ELEMENTWISE_ASSEMBLER_H
#define SGM_HANDLERS_CPU_ELEMENTWISE_ASSEMBLER_H

#include "base/base.h"

typedef struct sgm__assembler {
    unsigned char *bytes;
    size_t count, capacity;
    bool vex;    /* vector instructions are AVX2's: vectors of 32 bytes, registers 0 to 15, no masks */
    bool failed; /* memory was short: further bytes are dropped and sgm__code_map gives NULL */
} sgm__assembler;

/* General registers that generated code uses, for addresses and counts, by their numbers in encodings. */
typedef enum sgm__general {
    SGM__RAX = 0,
    SGM__RCX = 1,
    SGM__RBX = 3,
    SGM__RSP = 4,
    SGM__RSI = 6,
    SGM__RDI = 7,
    SGM__R12 = 12,
    SGM__R13 = 13,
    SGM__R14 = 14
} sgm__general;

/* An operand in memory: [base + index * scale + offset], in bytes. */
typedef struct sgm__address {
    sgm__general base;
    bool indexed;  /* by r13, the number of the element; else without an index */
    uint8_t scale; /* 1, 2, 4 or 8 */
    int32_t offset;
} sgm__address;

/* The encoding of a vector instruction, the same for both prefixes where both have it. `map`: 1 0F, 2 0F38, 3
 * 0F3A; `prefix`: 0 none, 1 66, 2 F3, 3 F2; `length`: 0 for vectors of 16 bytes, 2 for whole ones, of 64 or
 * with VEX of 32; `wide`: the bit W. */
typedef struct sgm__encoding {
    uint8_t map, prefix, opcode, length;
    bool wide;
} sgm__encoding;

/* A mask register: 0 is none. Lanes that the mask leaves out become 0 (`zeroes`) or keep the target's old
 * value. */
typedef struct sgm__mask {
    uint8_t number;
    bool zeroes;
} sgm__mask;

void sgm__assembler_free(sgm__assembler *assembler);
/* Appends bytes as they are. */
void sgm__emit(sgm__assembler *assembler, const unsigned char *bytes, size_t count);
#define SGM__EMIT(assembler, ...)                                                                            \
    sgm__emit(assembler, (const unsigned char[]){__VA_ARGS__}, sizeof((const unsigned char[]){__VA_ARGS__}))
void sgm__emit_word(sgm__assembler *assembler, uint32_t word);
/* target = left OP right; for instructions of two operands (target = OP right) `left` is 0. */
void sgm__emit_vector(sgm__assembler *assembler, sgm__encoding encoding, uint8_t target, uint8_t left,
                      uint8_t right, sgm__mask mask);
/* The same with memory as the last operand, for reading, or as the target, for writing: which one, the opcode
 * says. */
void sgm__emit_memory(sgm__assembler *assembler, sgm__encoding encoding, uint8_t vector, uint8_t left,
                      sgm__address address, sgm__mask mask);
/* Operations on masks of 16 bits: target = left OP right, or target = OP right if `left` is 0. `opcode`: of
 * VEX's map 0F. */
void sgm__emit_masks(sgm__assembler *assembler, uint8_t opcode, uint8_t target, uint8_t left, uint8_t right);
/* A mask register from or to memory at [rsp + offset]. */
void sgm__emit_mask_load(sgm__assembler *assembler, uint8_t mask, int32_t offset);
void sgm__emit_mask_store(sgm__assembler *assembler, uint8_t mask, int32_t offset);
/* target = the 8 bytes at [base + offset]. */
void sgm__emit_pointer(sgm__assembler *assembler, sgm__general target, sgm__general base, int32_t offset);

/* A jump forward to a place that is not known yet: sgm__land makes it end at the current end of the code.
 * `condition`: one of those below. */
size_t sgm__emit_jump(sgm__assembler *assembler, uint8_t condition);
void sgm__land(sgm__assembler *assembler, size_t jump);
/* An unconditional jump to position `to` of the code. */
void sgm__emit_jump_back(sgm__assembler *assembler, size_t to);
/* Conditions of jumps: the second byte of the instruction's opcode. */
#define SGM__ALWAYS 0
#define SGM__ZERO 0x84
#define SGM__GREATER 0x8f
#define SGM__NOT_POSITIVE 0x8e

/* Copies the code to memory of its own, which can be run and no longer be written (W^X). NULL, without an
 * error, where the system refuses that or nothing was assembled. */
void *sgm__code_map(const sgm__assembler *assembler, size_t *size);
void sgm__code_unmap(void *code, size_t size);
/* Whether the system lets this process make code and run it: tried with one instruction. */
bool sgm__code_allowed(void);

#endif
