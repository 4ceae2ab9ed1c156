/* Makes results that are too small for full precision (subnormal numbers) zero while programs run. Internal.
 *
 * Averages of an optimiser decay towards zero where gradients stay zero, and would end as subnormal numbers,
 * with which processors compute a hundred times slower: a step with Adam took 77 ms in place of 9 after some
 * hundred iterations. The setting is a bit of each thread's control register (MXCSR, FPCR). run_part
 * (run/execute.c) sets it for the duration of a run, pool.c for the life of each worker. On other processors
 * than these two nothing is done. */
#ifndef SGM_HANDLERS_CPU_FLUSH_H
#define SGM_HANDLERS_CPU_FLUSH_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
/* MXCSR: FTZ, for results. */
#define SGM__FLUSH_TO_ZERO 0x8000u
#define SGM__OPERANDS_ARE_ZERO                                                                               \
    0x40u /* MXCSR: DAZ, for operands; set by programs compiled with -ffast-math, never here */
#elif defined(__aarch64__)
/* FPCR: FZ, for results and operands. */
#define SGM__FLUSH_TO_ZERO (1u << 24)
#endif

/* Sets the mode for this thread, whatever the program around the library has set. Returns the control
 * register's previous value, for sgm__flush_end. `keeps`: subnormal results are kept. */
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
