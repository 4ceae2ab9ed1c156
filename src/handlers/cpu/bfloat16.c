/* Which way products of bfloat16 go on this processor.
 *
 * AMX multiplies tiles of bfloat16 many times faster than AVX-512 does float32. The instructions of
 * AVX512_BF16 do not: where they were measured (docs/performance.md) they multiply fewer numbers in a second
 * than those of float32, which is why they are not used. */
#include "handlers/cpu/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>

#define LEAF_FEATURES 7
#define AMX_BF16 (1U << 22) /* in edx */

static bool has_amx(void)
{
    unsigned a, b, c, d;
    return __get_cpuid_count(LEAF_FEATURES, 0, &a, &b, &c, &d) != 0 && (d & AMX_BF16) != 0;
}
#else
static bool has_amx(void)
{
    return false;
}
#endif

const char *sgm__cpu_bfloat16(void *self)
{
    (void)self;
    return has_amx() ? "through float32: there is AMX here, but no kernel for it"
                     : "through float32: no AMX here";
}
