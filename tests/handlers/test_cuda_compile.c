/* NVRTC, where it is, compiles every kernel that the tests of operations, of fused programs and of small
 * trainings launch on the handler 'cuda', in each type, for both kinds of GPU and without a warning, each
 * text once; gradients of operations, too, in float32. The device is made up and nothing runs. No library
 * takes products here, so that the kernels which stand in for one are compiled with all others. */
#include "ops/op_program.h"
#include "test.h"

#include "../../plugins/cuda/cuda_functions.h"
#include "../../plugins/cuda/cuda_types.h"
#include "handlers/device/code/prelude_cuda.h"
#include "handlers/device/run/device.h"
#include "handlers/fuzz_graphs.h"
#include "train/train.h"
#include "trainer/trainer_struct.h"
#include "training/device_trainings.h"

#include <dlfcn.h>

/* --- NVRTC --- */

#define MEMBER(result, name, parameters) result(*name) parameters;
static struct {
    SGM_NVRTC_FUNCTIONS(MEMBER)
} nvrtc;

static void *find_nvrtc(void)
{
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12",
                                        "/usr/local/cuda/lib64/libnvrtc.so.13",
                                        "/usr/local/cuda/lib64/libnvrtc.so.12"};
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && library == NULL; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static void need_nvrtc(void)
{
    static void *library;
    if (library == NULL)
        library = find_nvrtc();
    if (library == NULL)
        SKIP("libnvrtc.so.13 or 12, NVIDIA's compiler, is not on this computer");
#define TAKE(result, name, parameters)                                                                       \
    {                                                                                                        \
        void *address = dlsym(library, #name);                                                               \
        CHECK(address != NULL);                                                                              \
        memcpy(&nvrtc.name, &address, sizeof address);                                                       \
    }
    SGM_NVRTC_FUNCTIONS(TAKE)
}

static void compile_for(const char *target, const char *source)
{
    nvrtc_program program = NULL;
    size_t bytes = 0;
    const char *options[] = {target, "--fmad=false"};
    CHECK_INT(nvrtc.nvrtcCreateProgram(&program, source, "sigma.cu", 0, NULL, NULL), NVRTC_DONE);
    nvrtc_result result = nvrtc.nvrtcCompileProgram(program, 2, options);
    CHECK_INT(nvrtc.nvrtcGetProgramLogSize(program, &bytes), NVRTC_DONE);
    if (result != NVRTC_DONE || bytes > 1) { /* warnings, too */
        char *log = calloc(1, bytes + 1);
        nvrtc.nvrtcGetProgramLog(program, log);
        TEST_FAIL("%s: %.900s", target, log);
    }
    CHECK_INT(nvrtc.nvrtcGetCUBINSize(program, &bytes), NVRTC_DONE);
    CHECK(bytes > 1000);
    nvrtc.nvrtcDestroyProgram(&program);
}

/* For both kinds of GPU; with sanitizers for none: the text, which depends on no target, is what they watch.
 */
static void compile(const char *source)
{
#if defined SIGMA_ADDRESS_SANITIZER || defined SIGMA_THREAD_SANITIZER
    static const char *const targets[] = {NULL};
#else
    static const char *const targets[] = {"--gpu-architecture=sm_80", "--gpu-architecture=sm_90", NULL};
#endif
    for (int i = 0; targets[i] != NULL; i++)
        compile_for(targets[i], source);
}

/* --- kernels of plans --- */

#define MAXIMUM_KERNELS 16384
static uint64_t known[MAXIMUM_KERNELS]; /* hashes of the kernels that were compiled, in whichever program */
static int32_t known_count;

/* Whether a kernel is met for the first time; the number in its name does not make it another. */
static bool is_new(const sgm__device_code *code, int32_t number)
{
    static const char begin[] = ") sgm_k";
    const char *text = code->source.data + code->kernel_at[number], *name = strstr(text, begin);
    size_t length = code->kernel_at[number + 1] - code->kernel_at[number];
    CHECK(name != NULL && name < text + length);
    const char *rest = name + strlen(begin);
    rest += strspn(rest, "0123456789");
    uint64_t hash = sgm__hash(text, (size_t)(name - text), 1);
    hash = sgm__hash(rest, length - (size_t)(rest - text), hash);
    for (int32_t i = 0; i < known_count; i++)
        if (known[i] == hash)
            return false;
    CHECK(known_count < MAXIMUM_KERNELS);
    known[known_count++] = hash;
    return true;
}

/* As an H200 says of itself. */
static sgm__device gpu = {.info = {.name = "made up",
                                   .memory = 150000000000,
                                   .largest = 150000000000,
                                   .local = 49152,
                                   .units = 132,
                                   .group = 1024,
                                   .has_float64 = true}};

/* A plan's kernels that no earlier plan had, as one program. */
static sgm_status compile_plan(void *self, const sgm__plan *plan, void **executable)
{
    sgm__device_code *code = NULL;
    sgm__text source = {0};
    bool any = false;
    (void)self;
    CHECK_OK(sgm__device_code_create(plan, &gpu.info, &code));
    sgm__text_append(&source, "%s", SGM_PRELUDE_CUDA);
    if (code->kernel_count > 0)
        sgm__text_append_bytes(&source, code->source.data, code->kernel_at[0]);
    for (int32_t k = 0; k < code->kernel_count; k++)
        if (is_new(code, k)) {
            sgm__text_append_bytes(&source, code->source.data + code->kernel_at[k],
                                   code->kernel_at[k + 1] - code->kernel_at[k]);
            any = true;
        }
    for (int32_t s = 0; s < plan->step_count; s++) /* what a library may take has kernels of our own, too */
        CHECK(code->steps[s].kind != SGM__DEVICE_PRODUCT || code->steps[s].call_count > 0);
    if (any)
        compile(source.data);
    sgm__text_free(&source);
    sgm__device_code_free(code);
    *executable = (void *)(uintptr_t)plan; /* callers want something other than NULL */
    return SGM_OK;
}

/* Plans as 'cuda' has them, whose kernels are compiled; else it is 'null', which computes nothing. */
static sgm_handler make_compiler(void)
{
    static sgm__handler_type type;
    type = sgm__null_handler;
    type.flags |= sgm__cuda_handler.flags;
    type.support = sgm__cuda_handler.support;
    type.compile = compile_plan;
    return (sgm_handler){.type = &type, .self = &gpu, .name = "compiler"};
}

/* Of a graph, which is freed. */
static void compile_graph(sgm_graph *graph)
{
    const sgm_handler handler = make_compiler();
    sgm__plan *plan = NULL;
    void *executable;
    CHECK_OK(sgm_graph_status(graph));
    CHECK_OK(sgm__plan_create(graph, &handler, &plan));
    compile_plan(NULL, plan, &executable);
    sgm__plan_free(plan);
    sgm_graph_free(graph);
}

/* --- operations --- */

/* The gradients of what a case gives, with respect to its inputs of floating point. */
static void record_gradients(sgm_graph *graph, sgm_value result, const sgm_value *fed, int32_t count,
                             int32_t number)
{
    char name[64];
    sgm_value floats[OP_MAX_INPUTS], gradients[OP_MAX_INPUTS];
    int32_t float_count = 0;
    for (int32_t i = 0; i < count; i++)
        if (sgm_dtype_is_float(sgm_value_type(graph, fed[i]).dtype))
            floats[float_count++] = fed[i];
    CHECK_OK(sgm_gradients(graph, sgm_sum(graph, sgm_multiply(graph, result, result)), floats, float_count,
                           gradients));
    for (int32_t i = 0; i < float_count; i++) {
        snprintf(name, sizeof name, "g%d-%d", number, i);
        sgm_graph_add_output(graph, name, gradients[i]);
    }
}

/* Records a case beside others. */
static void record_case(sgm_graph *graph, const op_case *c, int32_t variant, op_view view, sgm_dtype dtype)
{
    static int32_t number;
    char name[64];
    sgm_value inputs[OP_MAX_INPUTS], fed[OP_MAX_INPUTS];
    for (int32_t i = 0; i < c->input_count; i++) {
        sgm_shape shape = op_input_shape(c, variant, i), from = op_fed_shape(&shape, view);
        snprintf(name, sizeof name, "x%d-%d", number, i);
        fed[i] = sgm_input_value(graph, name, op_dtype(c->inputs[i].kind, dtype), &from);
        inputs[i] = op_see(graph, fed[i], &shape, view);
    }
    snprintf(name, sizeof name, "y%d", number);
    sgm_value result = c->record(graph, inputs, dtype);
    sgm_graph_add_output(graph, name, result);
    if ((c->flags & OP_FIRST) != 0 && dtype == SGM_FLOAT32)
        record_gradients(graph, result, fed, c->input_count, number);
    number++;
}

/* The shapes and views that the tests of operations launch on the stand-in (tests/ops/test_ops_devices.c);
 * with SIGMA_TEST_SHAPES=all, in minutes, those that they launch on a GPU. */
static void compile_cases(sgm_dtype dtype)
{
    need_nvrtc();
    const char *shapes = getenv("SIGMA_TEST_SHAPES");
    bool all = shapes != NULL && strcmp(shapes, "all") == 0;
    uint32_t first = all ? 0 : op_cuda_shift(dtype), end = all ? OP_VIEWS : first + 1;
    int32_t before = known_count;
    for (uint32_t shift = first; shift < end; shift++) {
        sgm_graph *graph = sgm_graph_create();
        for (int32_t i = 0; i < OP_CASES_COUNT; i++) {
            int32_t variants = all ? op_variants(&op_cases[i], true) : 1;
            for (int32_t k = 0; k < variants && op_is_there(&op_cases[i], dtype); k++)
                record_case(graph, &op_cases[i], op_trial_variant(i, k, shift), op_trial_view(i, k, shift),
                            dtype);
        }
        compile_graph(graph);
    }
    if (known_count - before < 400)
        TEST_FAIL("there are only %d kernels", known_count - before);
}

TEST(operations_in_float32)
{
    compile_cases(SGM_FLOAT32);
}

TEST(operations_in_float64)
{
    compile_cases(SGM_FLOAT64);
}

TEST(operations_in_bfloat16)
{
    compile_cases(SGM_BFLOAT16);
}

/* --- fused programs, trainings --- */

static const sgm_dtype types[] = {SGM_FLOAT32, SGM_FLOAT64, SGM_BFLOAT16};
#define TYPES (sizeof types / sizeof *types)

TEST(random_graphs)
{
    need_nvrtc();
    for (size_t t = 0; t < TYPES; t++)
        for (uint64_t i = 0; i < FUZZ_STAND_IN_GRAPHS; i++) {
            compile_graph(fuzz_create(FUZZ_DEVICE_FLOAT32 + i, types[t], true).graph);
            compile_graph(fuzz_create(FUZZ_DEVICE_FLOAT64 + i, types[t], true).graph);
        }
}

/* An epoch: its last minibatch is smaller, so that all programs are made. */
static void compile_training(const char *network, sgm_dtype precision)
{
    sgm_handler handler = make_compiler();
    sgm__trainer_settings settings = {.seed = DEVICE_SEED, .handler = &handler, .precision = precision};
    sgm_trainer *trainer = sgm__trainer_create("t", &settings);
    CHECK_OK(trainer);
    CHECK_OK(set_device_training(trainer, network));
    int32_t before = known_count;
    CHECK_OK(sgm_trainer_run(trainer, .epochs = 1));
    CHECK(known_count > before);
    sgm__trainer_free(trainer);
}

TEST(small_trainings)
{
    static const char *const networks[] = {device_dense, device_convolution, device_recurrent};
    need_nvrtc();
    for (size_t t = 0; t < TYPES; t++)
        for (size_t i = 0; i < sizeof networks / sizeof *networks; i++)
            compile_training(networks[i], types[t]);
}
