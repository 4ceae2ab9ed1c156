/* NVRTC, where it is, compiles every kernel that the operations need, for the one or the other of two kinds
 * of GPU (no text depends on which), and without a warning: the text is that of plans for the CUDA handler,
 * the device is made up, and nothing runs. */
#include "ops/op_program.h"
#include "test.h"

#include "../../plugins/cuda/cuda_functions.h"
#include "../../plugins/cuda/cuda_types.h"
#include "handlers/device/code.h"
#include "handlers/device/prelude_cuda.h"
#include "handlers/fuzz_graphs.h"

#include <dlfcn.h>

#define MEMBER(result, name, parameters) result(*name) parameters;
static struct {
    SGM_NVRTC_FUNCTIONS(MEMBER)
} nvrtc;

static const char ampere[] = "--gpu-architecture=sm_80", hopper[] = "--gpu-architecture=sm_90";

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

/* As an H200 says of itself. */
static const sgm_device_info gpu = {.name = "made up",
                                    .memory = 150000000000,
                                    .largest = 150000000000,
                                    .local = 49152,
                                    .units = 132,
                                    .group = 1024,
                                    .warp = 32,
                                    .has_float64 = true};

static void compile_for(const char *target, const char *source, const char *what)
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
        TEST_FAIL("%s for %s: %.900s", what, target, log);
    }
    CHECK_INT(nvrtc.nvrtcGetCUBINSize(program, &bytes), NVRTC_DONE);
    CHECK(bytes > 1000);
    nvrtc.nvrtcDestroyProgram(&program);
}

/* Of a graph, which is freed; how many kernels. */
static int32_t compile_graph(sgm_graph *graph, const char *what, const char *target)
{
    const sgm_handler handler = {.type = &sgm__cuda_handler, .name = "cuda"};
    sgm__plan *plan = NULL;
    sgm__device_code *code = NULL;
    CHECK_OK(sgm__plan_create(graph, &handler, &plan));
    CHECK_OK(sgm__device_code_create(plan, &gpu, &code));
    int32_t kernels = code->kernel_count;
    if (kernels > 0) {
        char *source = sgm__format("%s%s", SGM_PRELUDE_CUDA, code->source.data);
        CHECK_OK(source);
        compile_for(target, source, what);
        sgm__free(source);
    }
    sgm__device_code_free(code);
    sgm__plan_free(plan);
    sgm_graph_free(graph);
    return kernels;
}

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
        sgm_output(graph, name, gradients[i]);
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
    sgm_output(graph, name, result);
    if ((c->flags & OP_FIRST) != 0 && dtype == SGM_FLOAT32)
        record_gradients(graph, result, fed, c->input_count, number);
    number++;
}

/* What the tests of operations launch on the stand-in (tests/ops/test_ops_devices.c), with gradients. */
static void compile_cases(sgm_dtype dtype, const char *target)
{
    need_nvrtc();
    uint32_t shift = op_cuda_shift(dtype);
    int32_t every = op_cuda_every(dtype);
    sgm_graph *graph = sgm_graph_create();
    for (int32_t i = (int32_t)shift % every; i < OP_CASES_COUNT; i += every)
        if (op_is_there(&op_cases[i], dtype))
            record_case(graph, &op_cases[i], op_trial_variant(i, 0, shift), op_trial_view(i, 0, shift),
                        dtype);
    CHECK_OK(sgm_graph_status(graph));
    int32_t kernels = compile_graph(graph, "operations", target);
    if (kernels < 100 / every)
        TEST_FAIL("there are only %d kernels", kernels);
}

TEST(operations_in_float32)
{
    compile_cases(SGM_FLOAT32, ampere);
}

TEST(operations_in_float64)
{
    compile_cases(SGM_FLOAT64, hopper);
}

TEST(operations_in_bfloat16)
{
    compile_cases(SGM_BFLOAT16, hopper);
}

TEST(random_graphs)
{
    need_nvrtc();
    for (uint64_t seed = 1; seed <= 6; seed++)
        compile_graph(fuzz_create(seed, SGM_FLOAT32, false).graph, "a random graph", hopper);
}
