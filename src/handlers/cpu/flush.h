/* Results too small for full precision become zero while programs run. Internal.
 *
 * The averages of an optimiser decay towards zero where slopes stay zero, and would end as such numbers, with
 * which processors compute a hundred times slower. */
#ifndef SGM_HANDLERS_CPU_FLUSH_H
#define SGM_HANDLERS_CPU_FLUSH_H

#include <stdint.h>

#define SGM__FLUSH_TO_ZERO 0x8000u

/* Sets it for this thread; returns what to restore. */
static inline uint32_t sgm__flush_begin(void)
{
#if defined(__x86_64__)
    uint32_t before = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before | SGM__FLUSH_TO_ZERO);
    return before;
#else
    return 0;
#endif
}

static inline void sgm__flush_end(uint32_t before)
{
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(before);
#else
    (void)before;
#endif
}

#endif
