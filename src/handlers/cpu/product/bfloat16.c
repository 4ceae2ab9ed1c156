/* Decides how products of bfloat16 are computed on this processor: by our own loops, by oneDNN, or through
 * float32.
 *
 * With AMX our own blocks are (blocks_amx.c), with AVX512_BF16 our own tiles
 * (vector/vector_avx512_bfloat16.c), where they are faster than those of float32: on some processors
 * vdpbf16ps multiplies twice as many numbers a second, on others half as many (docs/performance.md, Mixed
 * precision), so both are timed (bfloat16_speed.c). oneDNN is taken where it is asked for, or where there is
 * AMX but the compiler did not know it. Through float32 means that the plan casts operands and results
 * (SGM__THROUGH_FLOAT32). Called by open_cpu (run/cpu.c).
 */
#include "handlers/cpu/cpu.h"
#include "handlers/cpu/product/bfloat16_speed.h"
#include "handlers/cpu/product/blocks.h"
#include "handlers/cpu/product/matmul.h"
#include "handlers/cpu/product/onednn.h"

#include <stdarg.h>
#include <stdio.h>

/* --- what the processor has --- */

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LEAF_FEATURES 7
#define AMX_BF16 (1U << 22)        /* in edx */
#define ARCH_GET_XCOMP_SUPP 0x1021 /* arch_prctl: which register states the kernel can save */
#define ARCH_REQ_XCOMP_PERM 0x1023 /* asks for the permission to use one of them, for the whole process */
#define TILE_DATA 18               /* the state of AMX's tiles */

/* Whether the processor has AMX for bfloat16, the system can save its registers, and it permits this process
 * to use them. It refuses where a thread has a stack for signals that those would not fit into
 * (sigaltstack); oneDNN would then compute without AMX, and not say so. */
static bool has_amx(void)
{
    unsigned a, b, c, d;
    uint64_t kept = 0;
    return __get_cpuid_count(LEAF_FEATURES, 0, &a, &b, &c, &d) != 0 && (d & AMX_BF16) != 0 &&
           syscall(SYS_arch_prctl, ARCH_GET_XCOMP_SUPP, &kept) == 0 && (kept >> TILE_DATA & 1) != 0 &&
           syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0;
}

/* Whether the table has the instructions of processors with AMX; if not, somebody asked for older ones. */
static bool takes_amx(const sgm__cpu *cpu)
{
    return strcmp(cpu->table.name, sgm__vector_avx512.name) == 0 && has_amx();
}

/* Our own blocks for AMX; NULL: there is none to use, or they are not compiled in. */
static const sgm__tiles *amx_blocks(const sgm__cpu *cpu)
{
    return sgm__blocks_amx.block != NULL && takes_amx(cpu) ? &sgm__blocks_amx : NULL;
}

/* Puts tiles of instructions for pairs into the handler's table, if processor and table have them. */
static bool use_instructions(sgm__cpu *cpu)
{
    __builtin_cpu_init();
    if (strcmp(cpu->table.name, sgm__vector_avx512.name) != 0 || !__builtin_cpu_supports("avx512bf16"))
        return false;
    cpu->table.pairs = sgm__pairs_avx512;
    return true;
}
#else
static bool has_amx(void)
{
    return false;
}

static bool takes_amx(const sgm__cpu *cpu)
{
    (void)cpu;
    return false;
}

static const sgm__tiles *amx_blocks(const sgm__cpu *cpu)
{
    (void)cpu;
    return NULL;
}

static bool use_instructions(sgm__cpu *cpu)
{
    (void)cpu;
    return false;
}
#endif

/* Puts blocks in place of tiles of pairs into the handler's table. They pack as those do. */
static void use_blocks(sgm__cpu *cpu, const sgm__tiles *blocks)
{
    sgm__tiles pairs = cpu->table.pairs;
    cpu->table.pairs = *blocks;
    cpu->table.pairs.copy_rows = pairs.copy_rows;
    cpu->table.pairs.transpose = pairs.transpose;
}

/* --- the choice --- */

/* Times as fast from which on another way is taken: well above 1, so that a bad moment of measuring does not
 * change a run's numbers when it is resumed. */
#define WORTH_IT 1.25

static const char *const ways[] = {"own", "amx", "onednn", "float32"};

sgm_status sgm__cpu_check_bfloat16(const char *name)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (name == NULL || strcmp(name, ways[i]) == 0)
            return SGM_OK;
    return sgm_fail(SGM_ERROR_ARGUMENT, "bfloat16 is '%s'; give \"own\", \"amx\", \"onednn\" or \"float32\"",
                    name);
}

static void choose(sgm__cpu *cpu, sgm__bfloat16_products products, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void choose(sgm__cpu *cpu, sgm__bfloat16_products products, const char *format, ...)
{
    va_list arguments;
    cpu->products = products;
    va_start(arguments, format);
    vsnprintf(cpu->bfloat16, sizeof cpu->bfloat16, format, arguments);
    va_end(arguments);
}

/* oneDNN that is missing or refuses is no error, only a reason in the text; being out of memory is one. */
static sgm_status choose_onednn(sgm__cpu *cpu, bool amx)
{
    cpu->onednn = sgm__onednn_create();
    if (cpu->onednn != NULL)
        choose(cpu, SGM__BFLOAT16_ONEDNN, "%s, %s", sgm__onednn_text(cpu->onednn),
               amx ? "with AMX" : "as asked for: no AMX here, another way may be faster");
    else if (sgm_last_status() == SGM_ERROR_MEMORY)
        return SGM_ERROR_MEMORY;
    else
        choose(cpu, SGM__BFLOAT16_WIDENED, "through float32: %s%s", amx ? "there is AMX here, but " : "",
               sgm_last_error());
    return SGM_OK;
}

/* The way that was asked for by name. A library that is missing is an error then. */
static sgm_status choose_named(sgm__cpu *cpu, const char *way)
{
    SGM_TRY(sgm__cpu_check_bfloat16(way));
    if (strcmp(way, "own") == 0) {
        choose(cpu, SGM__BFLOAT16_OWN, "own loops, as asked for%s",
               use_instructions(cpu) ? ", with AVX512_BF16"
                                     : ": no AVX512_BF16 here, float32 would be faster");
    } else if (strcmp(way, "amx") == 0) {
        const sgm__tiles *blocks = amx_blocks(cpu);
        use_blocks(cpu, blocks != NULL ? blocks : &sgm__blocks_portable);
        choose(cpu, SGM__BFLOAT16_OWN, "own blocks, as asked for%s",
               blocks != NULL ? ", with AMX" : ": no AMX that may be used here, float32 would be faster");
    } else if (strcmp(way, "float32") == 0) {
        choose(cpu, SGM__BFLOAT16_WIDENED, "through float32, as asked for");
    } else if (choose_onednn(cpu, has_amx()) != SGM_OK || cpu->onednn == NULL) {
        return sgm__last_failure();
    }
    return SGM_OK;
}

/* These tiles of our own, if they are faster than those of float32; else what was chosen before stays. */
static sgm_status choose_faster(sgm__cpu *cpu, const char *instructions)
{
    double speed = sgm__bfloat16_speed(&cpu->table.pairs, &cpu->table.f32);
    if (speed == 0)
        return SGM_ERROR_MEMORY;
    cpu->bfloat16_speed = speed;
    cpu->bfloat16_measured = instructions;
    if (speed >= WORTH_IT)
        choose(cpu, SGM__BFLOAT16_OWN, "own %s with %s", cpu->table.pairs.block != NULL ? "blocks" : "loops",
               instructions);
    else
        choose(cpu, SGM__BFLOAT16_WIDENED, "through float32: %s is too slow here", instructions);
    return SGM_OK;
}

/* What nobody asked for by name. */
static sgm_status choose_own(sgm__cpu *cpu)
{
    sgm__tiles portable = cpu->table.pairs;
    const sgm__tiles *blocks = amx_blocks(cpu);
    if (blocks != NULL) {
        use_blocks(cpu, blocks);
        SGM_TRY(choose_faster(cpu, "AMX"));
    } else if (takes_amx(cpu)) {
        SGM_TRY(choose_onednn(cpu, true));
    }
    if (cpu->products != SGM__BFLOAT16_WIDENED)
        return SGM_OK;
    cpu->table.pairs = portable;
    return use_instructions(cpu) ? choose_faster(cpu, "AVX512_BF16") : SGM_OK;
}

sgm_status sgm__cpu_choose_bfloat16(sgm__cpu *cpu, const sgm_handler_options *options)
{
    const char *dense = options->dense;
    if (options->bfloat16 != NULL)
        return choose_named(cpu, options->bfloat16);
    if (dense != NULL && strcmp(dense, "openblas") == 0)
        choose(cpu, SGM__BFLOAT16_WIDENED, "through float32: dense is '%s'", dense);
    else if (dense != NULL && strcmp(dense, "onednn") == 0)
        SGM_TRY(choose_onednn(cpu, has_amx()));
    else
        SGM_TRY(choose_own(cpu));
    if (cpu->bfloat16[0] == '\0')
        choose(cpu, SGM__BFLOAT16_WIDENED, "through float32: no AMX and no AVX512_BF16 here");
    sgm_clear_error();
    return SGM_OK;
}

const char *sgm__cpu_bfloat16(void *self)
{
    return ((const sgm__cpu *)self)->bfloat16;
}
