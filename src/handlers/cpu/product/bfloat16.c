/* Decides how products of bfloat16 are computed on this processor: by oneDNN, by our own loops, or through
 * float32.
 *
 * With AMX, which multiplies tiles of bfloat16 many times faster than AVX-512 multiplies float32, oneDNN
 * computes them if it is installed. With AVX512_BF16 our own tiles (vector/vector_avx512_bfloat16.c) do, but
 * only where they are faster than those of float32: on some processors its instruction multiplies twice as
 * many numbers a second, on others half as many (docs/performance.md, Mixed precision), so both are timed.
 * Through float32 means that the plan casts operands and results (SGM__THROUGH_FLOAT32). Called by open_cpu
 * (run/cpu.c). */
#include "handlers/cpu/cpu.h"
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

static bool use_instructions(sgm__cpu *cpu)
{
    (void)cpu;
    return false;
}
#endif

/* --- how fast --- */

#define PROBE_NUMBERS 256 /* along k: so deep is a tile in the first cache */
#define PROBE_TILES 16    /* at a time, some 30 microseconds */
#define PROBES 12         /* of which the fastest counts */

/* The largest tile of one type: seconds of the fastest of some runs, kept in *fastest. */
static void time_tile(const sgm__tiles *tiles, int64_t numbers, unsigned char *memory, size_t bytes,
                      double *fastest)
{
    sgm__tile tile = {.depth = PROBE_NUMBERS / numbers,
                      .a = memory,
                      .a_step = tiles->rows,
                      .b = memory + bytes,
                      .b_stride = tiles->columns,
                      .c = memory + 2 * bytes,
                      .c_stride = tiles->columns,
                      .sums = (float *)(void *)(memory + 2 * bytes),
                      .sums_stride = tiles->columns};
    double since = sgm__now();
    for (int i = 0; i < PROBE_TILES; i++)
        tiles->packed.wide[tiles->rows - 1](&tile);
    double seconds = sgm__now() - since;
    *fastest = seconds < *fastest ? seconds : *fastest;
}

/* How many times as many multiplications a second tiles of pairs do as those of float32; 0: out of memory.
 * They take turns, so that whatever else runs meanwhile slows both. */
static double measure(const sgm__vector *vector)
{
    size_t bytes = (size_t)PROBE_NUMBERS * (size_t)vector->f32.columns * sizeof(float);
    unsigned char *memory = sgm__calloc(3, bytes);
    double pairs = 1, singles = 1;
    for (int i = 0; memory != NULL && i < PROBES; i++) {
        time_tile(&vector->pairs, 2, memory, bytes, &pairs);
        time_tile(&vector->f32, 1, memory, bytes, &singles);
    }
    sgm__free(memory);
    return memory != NULL && pairs > 0 ? singles / pairs : 0;
}

/* The same, kept for the process, so that all of its handlers decide alike. */
static double speed_of_pairs(const sgm__vector *vector)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static double speed;
    pthread_mutex_lock(&lock);
    if (speed == 0)
        speed = measure(vector);
    double now = speed;
    pthread_mutex_unlock(&lock);
    return now;
}

/* --- the choice --- */

/* Times as fast from which on our own tiles are taken: well above 1, so that a bad moment of measuring does
 * not change a run's numbers when it is resumed. */
#define WORTH_IT 1.25

static const char *const ways[] = {"own", "onednn", "float32"};

sgm_status sgm__cpu_check_bfloat16(const char *name)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (name == NULL || strcmp(name, ways[i]) == 0)
            return SGM_OK;
    return sgm_fail(SGM_ERROR_ARGUMENT, "bfloat16 is '%s'; give \"own\", \"onednn\" or \"float32\"", name);
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
static sgm_status choose_named(sgm__cpu *cpu, const char *way, bool amx, bool instructions)
{
    SGM_TRY(sgm__cpu_check_bfloat16(way));
    if (strcmp(way, "own") == 0)
        choose(cpu, SGM__BFLOAT16_OWN, "own loops, as asked for%s",
               instructions ? ", with AVX512_BF16" : ": no AVX512_BF16 here, float32 would be faster");
    else if (strcmp(way, "float32") == 0)
        choose(cpu, SGM__BFLOAT16_WIDENED, "through float32, as asked for");
    else if (choose_onednn(cpu, amx) != SGM_OK || cpu->onednn == NULL)
        return sgm__last_failure();
    return SGM_OK;
}

/* Our own tiles where they are faster than float32's; else what was chosen before stays. */
static sgm_status choose_faster(sgm__cpu *cpu)
{
    double speed = speed_of_pairs(cpu->vector);
    if (speed == 0)
        return SGM_ERROR_MEMORY;
    if (speed >= WORTH_IT)
        choose(cpu, SGM__BFLOAT16_OWN, "own loops with AVX512_BF16, %.2g times as fast as float32", speed);
    else if (cpu->bfloat16[0] == '\0')
        choose(cpu, SGM__BFLOAT16_WIDENED, "through float32: AVX512_BF16 is %.2g times as fast here", speed);
    return SGM_OK;
}

sgm_status sgm__cpu_choose_bfloat16(sgm__cpu *cpu, const sgm_handler_options *options)
{
    const char *dense = options->dense;
    bool amx = has_amx(), instructions = use_instructions(cpu);
    if (options->bfloat16 != NULL)
        return choose_named(cpu, options->bfloat16, amx, instructions);
    if (dense != NULL && strcmp(dense, "openblas") == 0)
        choose(cpu, SGM__BFLOAT16_WIDENED, "through float32: dense is '%s'", dense);
    else if (dense == NULL ? amx : strcmp(dense, "onednn") == 0)
        SGM_TRY(choose_onednn(cpu, amx));
    if (instructions && cpu->onednn == NULL)
        SGM_TRY(choose_faster(cpu));
    if (cpu->bfloat16[0] == '\0')
        choose(cpu, SGM__BFLOAT16_WIDENED, "through float32: no AMX and no AVX512_BF16 here");
    sgm_clear_error();
    return SGM_OK;
}

const char *sgm__cpu_bfloat16(void *self)
{
    return ((const sgm__cpu *)self)->bfloat16;
}
