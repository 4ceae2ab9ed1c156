/* The cpu handler opens and describes itself. Its programs are compiled by compile.c and run by execute.c.
 * The interface that sessions call is sgm__handler_type in src/handlers/handler.h, filled in at the end of
 * this file. */
#include "handlers/cpu/elementwise/assembler.h"
#include "handlers/cpu/product/dense.h"
#include "handlers/cpu/product/matmul.h"
#include "handlers/cpu/product/onednn.h"
#include "handlers/cpu/product/quantized.h"
#include "handlers/cpu/run/executable.h"
#include "handlers/cpu/run/packed_store.h"
#include "handlers/host.h"

static void close_cpu(void *self)
{
    sgm__cpu *cpu = self;
    if (cpu == NULL)
        return;
    sgm__pool_free(cpu->pool);
    sgm__dense_free(cpu->dense);
    sgm__onednn_free(cpu->onednn);
    sgm__packed_store_free(cpu->store);
    pthread_mutex_destroy(&cpu->busy);
    sgm__free(cpu);
}

/* On failure the error is set by whatever failed: an unknown instruction set, library, or number of threads.
 */
static sgm_status open_cpu(const sgm_handler_options *options, void **self)
{
    sgm__cpu *cpu = sgm__calloc(1, sizeof *cpu);
    if (cpu == NULL)
        return SGM_ERROR_MEMORY;
    pthread_mutex_init(&cpu->busy, NULL);
    cpu->interprets = options->no_machine_code || !sgm__code_allowed();
    cpu->told = options->no_machine_code;
    cpu->keeps_subnormals = options->keep_subnormals;
    cpu->exact = options->exact;
    const sgm__vector *vector =
        options->instructions != NULL ? sgm__vector_named(options->instructions) : sgm__vector_best();
    if (vector != NULL) {
        cpu->table = *vector;
        cpu->table.approximate = options->approximate;
        cpu->vector = &cpu->table;
        cpu->int8 = sgm__int8_tiles_for(cpu->vector);
    }
    cpu->store = sgm__packed_store_create();
    cpu->dense = vector != NULL && cpu->store != NULL ? sgm__dense_create(options->dense) : NULL;
    bool good = cpu->dense != NULL && sgm__cpu_choose_bfloat16(cpu, options) == SGM_OK;
    cpu->pool = good ? sgm__pool_create(options->threads, options->keep_subnormals) : NULL;
    if (cpu->pool == NULL) {
        close_cpu(cpu);
        return sgm_last_status();
    }
    cpu->threads = sgm__pool_threads(cpu->pool);
    *self = cpu;
    return SGM_OK;
}

/* Fails if the options name an instruction set or a library that does not exist. A library that exists may
 * still not be installed on this computer. */
sgm_status sgm__cpu_check(const sgm_handler_options *options)
{
    if (options->instructions != NULL && sgm__vector_named(options->instructions) == NULL)
        return sgm__last_failure();
    SGM_TRY(sgm__cpu_check_bfloat16(options->bfloat16));
    return sgm__dense_check(options->dense);
}

/* The processor's name as /proc/cpuinfo gives it; "" if it does not. */
static void processor_name(char *name, size_t size)
{
    char *text = NULL;
    size_t length = 0;
    name[0] = '\0';
    if (sgm__file_read("/proc/cpuinfo", (size_t)1 << 24, &text, &length) != SGM_OK) {
        sgm_clear_error();
        return;
    }
    const char *line = strstr(text, "model name");
    const char *value = line != NULL ? strchr(line, ':') : NULL;
    if (value != NULL) {
        value += 1 + strspn(value + 1, " ");
        size_t end = strcspn(value, "\n");
        end = end < size - 1 ? end : size - 1;
        memcpy(name, value, end);
        name[end] = '\0';
    }
    sgm__free(text);
}

/* The lines of `sigma info`. */
static void describe(void *self, sgm__text *text)
{
    const sgm__cpu *cpu = self;
    char name[128];
    processor_name(name, sizeof name);
    sgm__text_append(text, "cpu: %s\n", name[0] != '\0' ? name : "unknown");
    sgm__text_append(text, "instructions: %s\n", cpu->vector->name);
    if (cpu->vector->approximate)
        sgm__text_append(text, "approximate: exp to 0.011 %%, tanh to 0.0001\n");
    if (cpu->exact)
        sgm__text_append(text, "convolutions: as they are defined\n");
    if (cpu->keeps_subnormals)
        sgm__text_append(text, "subnormal numbers: kept\n");
    sgm__text_append(text, "threads: %d\n", cpu->threads);
    sgm__text_append(text, "elementwise steps: %s\n",
                     cpu->vector->functions == NULL ? "interpreted: no AVX2"
                     : cpu->told                    ? "interpreted, as told"
                     : cpu->interprets              ? "interpreted: the system lets no code be made"
                                                    : "machine code");
    sgm__text_append(text, "matrix products: %s\n", sgm__dense_text(cpu->dense));
    sgm__text_append(text, "products of bfloat16: %s\n", sgm__cpu_bfloat16(self));
    sgm__text_append(text, "products of int8: %s\n", cpu->int8->name);
    if (cpu->bfloat16_speed > 0)
        sgm__text_append(text, "measured: %s multiplies %.2g times as fast as float32\n",
                         cpu->bfloat16_measured, cpu->bfloat16_speed);
}

/* Whether an operation in bfloat16 is computed by the float32 kernel, with casts that the planner adds.
 * Called where no kernel takes bfloat16; elementwise steps compute bfloat16 themselves. */
static bool goes_through_float32(const sgm__cpu *cpu, const sgm_op *op, sgm_dtype dtype)
{
    const sgm__cpu_kernel *kernel = sgm__cpu_find_kernel(cpu, op, SGM_FLOAT32, SGM_FLOAT32);
    return dtype == SGM_BFLOAT16 && (op->flags & (SGM_OP_ELEMENTWISE | SGM_OP_VIEW | SGM_OP_SOURCE)) == 0 &&
           kernel != NULL && !kernel->by_operand;
}

/* What the planner and the tables of operations ask: how the handler computes `op` with operands of `dtype`.
 * The order matters: composed operations without a kernel are expanded before vector loops are looked for. */
static const char *support(void *self, const sgm_op *op, sgm_dtype dtype)
{
    const sgm__cpu *cpu = self;
    const sgm__cpu_kernel *kernel = sgm__cpu_find_kernel(cpu, op, dtype, dtype);
    const bool by_constants = cpu->reads_halves && kernel == &sgm__cpu_matmul && dtype == SGM_BFLOAT16;
    if (kernel != NULL && !by_constants)
        return "kernel";
    if (goes_through_float32(cpu, op, dtype))
        return SGM__THROUGH_FLOAT32;
    if (op->compose != NULL)
        return "composed";
    if (sgm__vector_find(cpu->vector, op, dtype, dtype) != NULL ||
        sgm__vector_find(cpu->vector, op, dtype, SGM_BOOL) != NULL)
        return "kernel";
    bool known =
        op->forward != NULL || op->scalar != NULL || (op->flags & (SGM_OP_VIEW | SGM_OP_SOURCE)) != 0;
    return known ? "reference loop" : "none";
}

/* Libraries read operands as they are. */
static bool rounds(const void *self)
{
    const sgm__cpu *cpu = self;
    return cpu->products == SGM__BFLOAT16_WIDENED && sgm__dense_is_own(cpu->dense);
}

static bool reads_halves(const void *self)
{
    const sgm__cpu *cpu = self;
    return cpu->reads_halves && sgm__dense_is_own(cpu->dense);
}

static bool packs(const void *self)
{
    return sgm__dense_is_own(((const sgm__cpu *)self)->dense);
}

/* --- the table --- */

/* As dense.c reads them. */
static const char *const libraries[] = {"own", "openblas", "onednn", NULL};

static const sgm_setting settings[] = {
    SGM__HANDLER_SETTING(dense, "what multiplies matrices; onednn also those of bfloat16",
                         .kind = SGM_KIND_TEXT, .choices = libraries, .default_text = "own"),
    SGM__HANDLER_SETTING(
        instructions,
        "its vectors; if not given: the widest here; with the same ones processors give the same bits",
        .kind = SGM_KIND_TEXT, .choices = sgm__vector_names),
    SGM__HANDLER_SETTING(
        bfloat16,
        "what multiplies bfloat16: own loops (AVX512_BF16), own blocks (amx), a library, or float32 "
        "between casts; if not given: the fastest here",
        .kind = SGM_KIND_TEXT, .choices = sgm__bfloat16_ways),
    SGM__HANDLER_SETTING(
        approximate,
        "exp of float32 and bfloat16 to 0.011 %, so sigmoid and its like, too, and tanh to 0.0001",
        .kind = SGM_KIND_BOOLEAN),
    SGM__HANDLER_SETTING(
        exact,
        "convolutions of 3 x 3 are summed up as they are defined, and not by Winograd's filtering, which "
        "rounds differently",
        .kind = SGM_KIND_BOOLEAN),
    SGM__HANDLER_SETTING(keep_subnormals,
                         "results below 1.2e-38 in float32, 2.2e-308 in float64, do not become 0",
                         .kind = SGM_KIND_BOOLEAN),
};

const sgm__handler_type sgm__cpu_handler = {
    .name = "cpu",
    .doc = "vector loops and threads of this computer, as many as the key threads says",
    .example = "cpu(bfloat16=amx)",
    .settings = settings,
    .setting_count = sizeof settings / sizeof *settings,
    .flags = SGM__HANDLER_HOST | SGM__HANDLER_PARTS | SGM__HANDLER_DRAWS | SGM__HANDLER_SCALES |
             SGM__HANDLER_FILLS,
    .open = open_cpu,
    .close = close_cpu,
    .describe = describe,
    .bfloat16 = sgm__cpu_bfloat16,
    .support = support,
    .rounds = rounds,
    .reads_halves = reads_halves,
    .packs = packs,
    SGM__HOST_BUFFERS,
    .compile = sgm__cpu_compile,
    .discard = sgm__cpu_discard,
    .run = sgm__cpu_run,
    .time = sgm__cpu_time,
    .estimate = sgm__cpu_estimate,
};
