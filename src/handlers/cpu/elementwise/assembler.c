/* Encodes x86-64, AVX2 and AVX-512 instructions into a growing buffer, and makes the finished code
 * executable.
 *
 * generate.c and the two encoders decide what to emit; the interface and its types are in assembler.h.
 * Encodings follow Intel's Software Developer's Manual, volume 2: an instruction is [prefix] opcode ModRM
 * [SIB] [offset] [constant]. Numbers of vector registers have 5 bits, of which ModRM holds the lower 3; the
 * others are in the prefix, inverted. */
#include "handlers/cpu/elementwise/assembler.h"

#include <sys/mman.h>
#include <unistd.h>

/* Values of ModRM's first two bits, and of the register fields that mean something else than a register. */
#define MODE_REGISTER 3
#define MODE_OFFSET 2   /* an offset of four bytes follows */
#define INDEX_FOLLOWS 4 /* in place of a base: a SIB byte names base and index */
#define NO_INDEX 4

void sgm__assembler_free(sgm__assembler *assembler)
{
    sgm__free(assembler->bytes);
    *assembler = (sgm__assembler){0};
}

void sgm__emit(sgm__assembler *assembler, const unsigned char *bytes, size_t count)
{
    if (assembler->failed)
        return;
    if (sgm__reserve(&assembler->bytes, &assembler->capacity, assembler->count + count, 1) != SGM_OK) {
        sgm_clear_error(); /* the step will be interpreted */
        assembler->failed = true;
        return;
    }
    memcpy(assembler->bytes + assembler->count, bytes, count);
    assembler->count += count;
}

void sgm__emit_word(sgm__assembler *assembler, uint32_t word)
{
    SGM__EMIT(assembler, (unsigned char)word, (unsigned char)(word >> 8), (unsigned char)(word >> 16),
              (unsigned char)(word >> 24));
}

/* A ModRM or SIB byte: fields of 2, 3 and 3 bits. */
static unsigned char fields(unsigned mode, unsigned middle, unsigned last)
{
    return (unsigned char)(mode << 6 | (middle & 7) << 3 | (last & 7));
}

static unsigned bit(unsigned number, unsigned position)
{
    return number >> position & 1;
}

/* The VEX prefix of three bytes, and the opcode; `last_3` and `last_4` as below. */
static void emit_vex(sgm__assembler *assembler, const sgm__encoding *e, uint8_t target, uint8_t left,
                     unsigned last_3, unsigned last_4)
{
    unsigned first = (bit(target, 3) ^ 1) << 7 | (last_4 ^ 1) << 6 | (last_3 ^ 1) << 5 | e->map;
    unsigned second =
        (unsigned)e->wide << 7 | (~(unsigned)left & 15) << 3 | (unsigned)(e->length != 0) << 2 | e->prefix;
    SGM__EMIT(assembler, 0xc4, (unsigned char)first, (unsigned char)second, e->opcode);
}

/* The EVEX prefix of four bytes, or VEX, and the opcode. `last_3` is bit 3 of the base or the right operand;
 * `last_4` is bit 4 of a right operand or bit 3 of an index. */
static void emit_prefix(sgm__assembler *assembler, const sgm__encoding *e, uint8_t target, uint8_t left,
                        unsigned last_3, unsigned last_4, sgm__mask mask)
{
    if (assembler->vex) {
        emit_vex(assembler, e, target, left, last_3, last_4);
        return;
    }
    unsigned first = (bit(target, 3) ^ 1) << 7 | (last_4 ^ 1) << 6 | (last_3 ^ 1) << 5 |
                     (bit(target, 4) ^ 1) << 4 | e->map;
    unsigned second = (unsigned)e->wide << 7 | (~(unsigned)left & 15) << 3 | 4 | e->prefix;
    unsigned third =
        (unsigned)mask.zeroes << 7 | (unsigned)e->length << 5 | (bit(left, 4) ^ 1) << 3 | mask.number;
    SGM__EMIT(assembler, 0x62, (unsigned char)first, (unsigned char)second, (unsigned char)third, e->opcode);
}

void sgm__emit_vector(sgm__assembler *assembler, sgm__encoding encoding, uint8_t target, uint8_t left,
                      uint8_t right, sgm__mask mask)
{
    emit_prefix(assembler, &encoding, target, left, bit(right, 3), bit(right, 4), mask);
    SGM__EMIT(assembler, fields(MODE_REGISTER, target, right));
}

/* ModRM, SIB and an offset of 32 bits for [base + index * scale + offset]. With EVEX, offsets of 32 bits are
 * not scaled, unlike those of 8. */
static void emit_address(sgm__assembler *assembler, unsigned target, const sgm__address *address)
{
    unsigned scale = address->scale == 8 ? 3 : address->scale == 4 ? 2 : address->scale == 2 ? 1 : 0;
    unsigned index = address->indexed ? SGM__R13 : NO_INDEX;
    SGM__EMIT(assembler, fields(MODE_OFFSET, target, INDEX_FOLLOWS), fields(scale, index, address->base));
    sgm__emit_word(assembler, (uint32_t)address->offset);
}

void sgm__emit_memory(sgm__assembler *assembler, sgm__encoding encoding, uint8_t vector, uint8_t left,
                      sgm__address address, sgm__mask mask)
{
    unsigned index = address.indexed ? bit(SGM__R13, 3) : 0;
    emit_prefix(assembler, &encoding, vector, left, bit(address.base, 3), index, mask);
    emit_address(assembler, vector, &address);
}

/* The VEX prefix of two bytes. Its bit L is 1 for instructions of two operands, 0 for moves and complements.
 */
void sgm__emit_masks(sgm__assembler *assembler, uint8_t opcode, uint8_t target, uint8_t left, uint8_t right)
{
    bool two = left != 0; /* operands */
    SGM__EMIT(assembler, 0xc5, (unsigned char)(0x80 | (~(unsigned)left & 15) << 3 | (unsigned)two << 2),
              opcode, fields(MODE_REGISTER, target, right));
}

/* KMOVW between a mask register and the stack. */
static void emit_mask_move(sgm__assembler *assembler, uint8_t opcode, uint8_t mask, int32_t offset)
{
    SGM__EMIT(assembler, 0xc5, 0xf8, opcode);
    emit_address(assembler, mask, &(sgm__address){.base = SGM__RSP, .scale = 1, .offset = offset});
}

void sgm__emit_mask_load(sgm__assembler *assembler, uint8_t mask, int32_t offset)
{
    emit_mask_move(assembler, 0x90, mask, offset);
}

void sgm__emit_mask_store(sgm__assembler *assembler, uint8_t mask, int32_t offset)
{
    emit_mask_move(assembler, 0x91, mask, offset);
}

/* MOV with a REX prefix for 64 bits and registers from r8 on. */
void sgm__emit_pointer(sgm__assembler *assembler, sgm__general target, sgm__general base, int32_t offset)
{
    SGM__EMIT(assembler, (unsigned char)(0x48 | bit(target, 3) << 2 | bit(base, 3)), 0x8b);
    emit_address(assembler, target, &(sgm__address){.base = base, .scale = 1, .offset = offset});
}

/* --- jumps --- */

/* Jumps count bytes from their own end. */
static int32_t distance(size_t from, size_t to)
{
    return (int32_t)((int64_t)to - (int64_t)from);
}

/* Returns the position behind the jump, whose last four bytes sgm__land fills in. */
size_t sgm__emit_jump(sgm__assembler *assembler, uint8_t condition)
{
    if (condition == SGM__ALWAYS)
        SGM__EMIT(assembler, 0xe9);
    else
        SGM__EMIT(assembler, 0x0f, condition);
    sgm__emit_word(assembler, 0);
    return assembler->count;
}

void sgm__land(sgm__assembler *assembler, size_t jump)
{
    if (assembler->failed)
        return;
    int32_t far = distance(jump, assembler->count);
    memcpy(assembler->bytes + jump - sizeof far, &far, sizeof far);
}

void sgm__emit_jump_back(sgm__assembler *assembler, size_t to)
{
    SGM__EMIT(assembler, 0xe9);
    sgm__emit_word(assembler, (uint32_t)distance(assembler->count + 4, to));
}

/* --- memory --- */

/* The memory is writable first and executable afterwards, never both, as some systems allow nothing else. */
void *sgm__code_map(const sgm__assembler *assembler, size_t *size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    *size = (assembler->count + page - 1) / page * page;
    if (assembler->failed || assembler->count == 0)
        return NULL;
    void *code = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED)
        return NULL;
    memcpy(code, assembler->bytes, assembler->count);
    if (mprotect(code, *size, PROT_READ | PROT_EXEC) == 0)
        return code;
    munmap(code, *size);
    return NULL;
}

bool sgm__code_allowed(void)
{
    unsigned char nothing[] = {0xc3}; /* ret */
    size_t size;
    void *code = sgm__code_map(&(sgm__assembler){.bytes = nothing, .count = sizeof nothing}, &size);
    sgm__code_unmap(code, size);
    return code != NULL;
}

void sgm__code_unmap(void *code, size_t size)
{
    if (code != NULL)
        munmap(code, size);
}
