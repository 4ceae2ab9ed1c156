/* Machine code for x86-64 with AVX-512: an instruction is a row of numbers from Intel's manual (Software
 * Developer's Manual, volume 2), and is written into a growing buffer. Internal.
 */
#ifndef SGM_HANDLERS_CPU_ELEMENTWISE_ASSEMBLER_H
#define SGM_HANDLERS_CPU_ELEMENTWISE_ASSEMBLER_H

#include "base/base.h"

typedef struct sgm__assembler {
    unsigned char *bytes;
    size_t count, capacity;
    bool failed; /* out of memory: what follows is dropped */
} sgm__assembler;

/* Registers for addresses and counts. */
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

/* What an instruction reads or writes besides registers: [base + index * scale + offset]. */
typedef struct sgm__address {
    sgm__general base;
    bool indexed;  /* by r13 */
    uint8_t scale; /* 1, 2, 4 or 8 */
    int32_t offset;
} sgm__address;

/* The encoding of a vector instruction. `map`: 1 0F, 2 0F38, 3 0F3A; `prefix`: 0 none, 1 66, 2 F3, 3 F2;
 * `length`: 0 for 16 bytes, 2 for 64; `wide`: the bit W. */
typedef struct sgm__encoding {
    uint8_t map, prefix, opcode, length;
    bool wide;
} sgm__encoding;

/* Mask registers: 0 is none; `zeroes` what it leaves out, else the target keeps that. */
typedef struct sgm__mask {
    uint8_t number;
    bool zeroes;
} sgm__mask;

void sgm__assembler_free(sgm__assembler *assembler);
/* The bytes as they are. */
void sgm__emit(sgm__assembler *assembler, const unsigned char *bytes, size_t count);
#define SGM__EMIT(assembler, ...)                                                                            \
    sgm__emit(assembler, (const unsigned char[]){__VA_ARGS__}, sizeof((const unsigned char[]){__VA_ARGS__}))
void sgm__emit_word(sgm__assembler *assembler, uint32_t word);
/* target = left OP right; for instructions of two operands `left` is 0. */
void sgm__emit_vector(sgm__assembler *assembler, sgm__encoding encoding, uint8_t target, uint8_t left,
                      uint8_t right, sgm__mask mask);
/* One of the operands is memory: the last one for reading, the target for writing (as the opcode says). */
void sgm__emit_memory(sgm__assembler *assembler, sgm__encoding encoding, uint8_t vector, uint8_t left,
                      sgm__address address, sgm__mask mask);
/* Operations on masks: target = left OP right, of 16 bits; opcodes of VEX's map 0F. */
void sgm__emit_masks(sgm__assembler *assembler, uint8_t opcode, uint8_t target, uint8_t left, uint8_t right);
/* A mask and memory at [rsp + offset]. */
void sgm__emit_mask_load(sgm__assembler *assembler, uint8_t mask, int32_t offset);
void sgm__emit_mask_store(sgm__assembler *assembler, uint8_t mask, int32_t offset);
/* target = the 8 bytes at [base + offset] */
void sgm__emit_pointer(sgm__assembler *assembler, sgm__general target, sgm__general base, int32_t offset);

/* Jumps forward: a place to fill in later. */
size_t sgm__emit_jump(sgm__assembler *assembler, uint8_t condition);
void sgm__land(sgm__assembler *assembler, size_t jump);
void sgm__emit_jump_back(sgm__assembler *assembler, size_t to);
#define SGM__ALWAYS 0
#define SGM__GREATER 0x8f
#define SGM__NOT_POSITIVE 0x8e

/* Memory of the code, which can be run and no longer be written; NULL without an error where the system
 * refuses that. */
void *sgm__code_map(const sgm__assembler *assembler, size_t *size);
void sgm__code_unmap(void *code, size_t size);
/* The system lets this process make code and run it. */
bool sgm__code_allowed(void);

#endif
