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

/* For bfloat16. */
static bool processor_has_amx(void)
{
    unsigned a, b, c, d;
    return __get_cpuid_count(LEAF_FEATURES, 0, &a, &b, &c, &d) != 0 && (d & AMX_BF16) != 0;
}

/* Whether the system can save AMX's registers, and permits this process to use them. It refuses where a
 * thread has a stack for signals that those would not fit into (sigaltstack); oneDNN would then compute
 * without AMX, and not say so. */
static bool system_permits_amx(void)
{
    uint64_t kept = 0;
    return syscall(SYS_arch_prctl, ARCH_GET_XCOMP_SUPP, &kept) == 0 && (kept >> TILE_DATA & 1) != 0 &&
           syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0;
}

static bool processor_has_pairs(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512bf16");
}

/* Whether the table has the vectors of processors with AMX or AVX512_BF16. */
static bool has_wide_vectors(const sgm__cpu *cpu)
{
    return strcmp(cpu->table.name, sgm__vector_avx512.name) == 0;
}

/* Puts tiles of instructions for pairs into the handler's table, if processor and table have them. */
static bool use_instructions(sgm__cpu *cpu)
{
    if (!has_wide_vectors(cpu) || !processor_has_pairs())
        return false;
    cpu->table.pairs = sgm__pairs_avx512;
    return true;
}
#else
static bool processor_has_amx(void)
{
    return false;
}

static bool system_permits_amx(void)
{
    return false;
}

static bool processor_has_pairs(void)
{
    return false;
}

static bool has_wide_vectors(const sgm__cpu *cpu)
{
    (void)cpu;
    return false;
}

static bool use_instructions(sgm__cpu *cpu)
{
    (void)cpu;
    return false;
}
#endif

static bool has_amx(void)
{
    return processor_has_amx() && system_permits_amx();
}

static bool takes_amx(const sgm__cpu *cpu)
{
    return has_wide_vectors(cpu) && has_amx();
}

/* Our own blocks for AMX; NULL: there is none to use, or they are not compiled in. */
static const sgm__tiles *amx_blocks(const sgm__cpu *cpu)
{
    return sgm__blocks_amx.block != NULL && takes_amx(cpu) ? &sgm__blocks_amx : NULL;
}

/* Puts blocks in place of tiles of pairs into the handler's table. They pack as those do. */
static void use_blocks(sgm__cpu *cpu, const sgm__tiles *blocks)
{
    sgm__tiles pairs = cpu->table.pairs;
    cpu->table.pairs = *blocks;
    cpu->table.pairs.copy_rows = pairs.copy_rows;
    cpu->table.pairs.transpose = pairs.transpose;
}

/* --- how it is told --- */

/* Times as fast from which on another way is taken: well above 1, so that a bad moment of measuring does not
 * change a run's numbers when it is resumed. */
#define WORTH_IT 1.25

const char *const sgm__bfloat16_ways[] = {"own", "amx", "onednn", "float32", NULL};

sgm_status sgm__cpu_check_bfloat16(const char *name)
{
    if (name == NULL)
        return SGM_OK;
    for (size_t i = 0; sgm__bfloat16_ways[i] != NULL; i++)
        if (strcmp(name, sgm__bfloat16_ways[i]) == 0)
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

/* --- why something is not used --- */

#define WHY 100 /* bytes of a reason */

/* Whether `instructions` names vectors that AMX and AVX512_BF16 do not go with. */
static bool rules_out(const sgm__cpu *cpu, const sgm_handler_options *options)
{
    return options->instructions != NULL && !has_wide_vectors(cpu);
}

/* The option that is the cause, with the remedy, or what is missing. */
static const char *why_no_amx(const sgm__cpu *cpu, const sgm_handler_options *options, char why[WHY])
{
    if (processor_has_amx() && rules_out(cpu, options))
        snprintf(why, WHY, "instructions=%s rules out AMX (leave that option out)", options->instructions);
    else
        snprintf(why, WHY, "%s",
                 !processor_has_amx()            ? "no AMX here"
                 : !system_permits_amx()         ? "the system refuses AMX to this process"
                 : sgm__blocks_amx.block == NULL ? "this library's compiler did not know AMX"
                                                 : "no AVX-512 here, which goes with AMX");
    return why;
}

static const char *why_no_pairs(const sgm__cpu *cpu, const sgm_handler_options *options, char why[WHY])
{
    if (processor_has_pairs() && rules_out(cpu, options))
        snprintf(why, WHY, "instructions=%s rules out AVX512_BF16 (leave that option out)",
                 options->instructions);
    else
        snprintf(why, WHY, "no AVX512_BF16 here");
    return why;
}

#define FLOAT32_BUT_CONSTANTS "through float32, but by constant weights as they are"

/* Where nothing was tried, since there is nothing or an option rules it out. */
static void choose_float32(sgm__cpu *cpu, const sgm_handler_options *options)
{
    const bool amx = has_amx(), pairs = processor_has_pairs();
    if (rules_out(cpu, options) && (amx || pairs))
        choose(cpu, SGM__BFLOAT16_WIDENED,
               FLOAT32_BUT_CONSTANTS ": instructions=%s rules out %s%s%s (leave that option out)",
               options->instructions, amx ? "AMX" : "", amx && pairs ? " and " : "",
               pairs ? "AVX512_BF16" : "");
    else
        choose(cpu, SGM__BFLOAT16_WIDENED, FLOAT32_BUT_CONSTANTS ": no AMX and no AVX512_BF16 here");
    cpu->reads_halves = true;
}

/* --- the choice --- */

/* oneDNN chooses its instructions by itself, whatever `instructions` is. That it is missing or refuses is no
 * error, only a reason in the text; being out of memory is one. */
static sgm_status choose_onednn(sgm__cpu *cpu, bool amx)
{
    cpu->onednn = sgm__onednn_create();
    if (cpu->onednn != NULL)
        choose(cpu, SGM__BFLOAT16_ONEDNN, "%s, %s", sgm__onednn_text(cpu->onednn),
               amx                   ? "with AMX"
               : processor_has_amx() ? "as asked for: the system refuses AMX to this process, another way "
                                       "may be faster"
                                     : "as asked for: no AMX here, another way may be faster");
    else if (sgm_last_status() == SGM_ERROR_MEMORY)
        return SGM_ERROR_MEMORY;
    else
        choose(cpu, SGM__BFLOAT16_WIDENED, "through float32: %s%s", amx ? "there is AMX here, but " : "",
               sgm_last_error());
    return SGM_OK;
}

/* The way that was asked for by name. A library that is missing is an error then. */
static sgm_status choose_named(sgm__cpu *cpu, const sgm_handler_options *options)
{
    const char *way = options->bfloat16;
    char why[WHY];
    SGM_TRY(sgm__cpu_check_bfloat16(way));
    if (strcmp(way, "own") == 0) {
        if (use_instructions(cpu))
            choose(cpu, SGM__BFLOAT16_OWN, "own loops, as asked for, with AVX512_BF16");
        else
            choose(cpu, SGM__BFLOAT16_OWN, "own loops, as asked for: %s; float32 would be faster",
                   why_no_pairs(cpu, options, why));
    } else if (strcmp(way, "amx") == 0) {
        const sgm__tiles *blocks = amx_blocks(cpu);
        use_blocks(cpu, blocks != NULL ? blocks : &sgm__blocks_portable);
        if (blocks != NULL)
            choose(cpu, SGM__BFLOAT16_OWN, "own blocks, as asked for, with AMX");
        else
            choose(cpu, SGM__BFLOAT16_OWN, "own blocks, as asked for: %s; float32 would be faster",
                   why_no_amx(cpu, options, why));
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
        return choose_named(cpu, options);
    if (dense != NULL && strcmp(dense, "openblas") == 0)
        choose(cpu, SGM__BFLOAT16_WIDENED, "through float32: dense is '%s'", dense);
    else if (dense != NULL && strcmp(dense, "onednn") == 0)
        SGM_TRY(choose_onednn(cpu, has_amx()));
    else
        SGM_TRY(choose_own(cpu));
    if (cpu->bfloat16[0] == '\0')
        choose_float32(cpu, options);
    sgm_clear_error();
    return SGM_OK;
}

const char *sgm__cpu_bfloat16(void *self)
{
    return ((const sgm__cpu *)self)->bfloat16;
}
