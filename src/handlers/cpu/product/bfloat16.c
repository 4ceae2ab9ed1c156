/* Decides how products of bfloat16 are computed on this processor: by oneDNN or through float32.
 *
 * With AMX, which multiplies tiles of bfloat16 many times faster than AVX-512 multiplies float32, oneDNN
 * computes them if it is installed. The instructions of AVX512_BF16 alone multiply fewer numbers a second
 * than those of float32 where they were measured (docs/performance.md, Mixed precision); without AMX products
 * go through float32 unless oneDNN was asked for by name. Through float32 means that the plan casts operands
 * and results (SGM__THROUGH_FLOAT32). Called by open_cpu (run/cpu.c); matmul_bfloat16.c computes. */
#include "handlers/cpu/cpu.h"
#include "handlers/cpu/product/matmul.h"
#include "handlers/cpu/product/onednn.h"

#include <stdio.h>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LEAF_FEATURES 7
#define AMX_BF16 (1U << 22)        /* in edx */
#define ARCH_GET_XCOMP_SUPP 0x1021 /* arch_prctl: which register states the kernel can save */
#define TILE_DATA (1ULL << 18)     /* the state of AMX's tiles */

/* Whether the processor has AMX for bfloat16 and the system can save its registers; oneDNN asks the system
 * for the permission itself. */
static bool has_amx(void)
{
    unsigned a, b, c, d;
    uint64_t kept = 0;
    return __get_cpuid_count(LEAF_FEATURES, 0, &a, &b, &c, &d) != 0 && (d & AMX_BF16) != 0 &&
           syscall(SYS_arch_prctl, ARCH_GET_XCOMP_SUPP, &kept) == 0 && (kept & TILE_DATA) != 0;
}
#else
static bool has_amx(void)
{
    return false;
}
#endif

/* A library that is missing or refuses is no error, only a reason in the text; being out of memory is one. */
sgm_status sgm__cpu_choose_bfloat16(sgm__cpu *cpu, const char *dense)
{
    bool amx = has_amx(), asked = dense != NULL && strcmp(dense, "onednn") == 0;
    size_t size = sizeof cpu->bfloat16;
    if (dense != NULL && !asked) {
        snprintf(cpu->bfloat16, size, "through float32: dense is '%s'", dense);
        return SGM_OK;
    }
    if (!asked && !amx) {
        snprintf(cpu->bfloat16, size, "through float32: no AMX here");
        return SGM_OK;
    }
    cpu->onednn = sgm__onednn_create();
    if (cpu->onednn != NULL)
        snprintf(cpu->bfloat16, size, "%s, %s", sgm__onednn_text(cpu->onednn),
                 amx ? "with AMX" : "as asked for: no AMX here, through float32 would be faster");
    else if (sgm_last_status() == SGM_ERROR_MEMORY)
        return SGM_ERROR_MEMORY;
    else
        snprintf(cpu->bfloat16, size, "through float32: %s%s", amx ? "there is AMX here, but " : "",
                 sgm_last_error());
    sgm_clear_error();
    return SGM_OK;
}

const char *sgm__cpu_bfloat16(void *self)
{
    return ((const sgm__cpu *)self)->bfloat16;
}
