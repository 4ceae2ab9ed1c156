/* Results too small for full precision become zero while programs run. Internal.
 *
 * The averages of an optimiser decay towards zero where gradients stay zero, and would end as such numbers,
 * with which processors compute a hundred times slower. */
#ifndef SGM_HANDLERS_CPU_FLUSH_H
#define SGM_HANDLERS_CPU_FLUSH_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#define SGM__FLUSH_TO_ZERO 0x8000u
#define SGM__OPERANDS_ARE_ZERO                                                                               \
    0x40u /* never set here, but by programs whose compiler was told to be fast                              \
           */
#elif defined(__aarch64__)
#define SGM__FLUSH_TO_ZERO (1u << 24) /* of operands, too */
#endif

/* Decides it for this thread, whatever the program has set; returns what to restore. */
static inline uint64_t sgm__flush_begin(bool keeps)
{
#if defined(__x86_64__)
    uint32_t before = __builtin_ia32_stmxcsr();
    uint32_t others = before & ~(SGM__FLUSH_TO_ZERO | SGM__OPERANDS_ARE_ZERO);
    __builtin_ia32_ldmxcsr(keeps ? others : others | SGM__FLUSH_TO_ZERO);
    return before;
#elif defined(__aarch64__)
    uint64_t before;
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    uint64_t now = keeps ? before & ~(uint64_t)SGM__FLUSH_TO_ZERO : before | SGM__FLUSH_TO_ZERO;
    __asm__ volatile("msr fpcr, %0" : : "r"(now));
    return before;
#else
    (void)keeps;
    return 0;
#endif
}

static inline void sgm__flush_end(uint64_t before)
{
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr((uint32_t)before);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(before));
#else
    (void)before;
#endif
}

#endif
