/* Our own declarations of CUDA against NVIDIA's headers, where those are: numbers, sizes, and, when this file
 * is compiled a second time, the types of functions. */
#ifdef SIGMA_CUDA_HEADERS
#include <cublasLt.h>
#include <cuda.h>
#include <nvrtc.h>
#endif
#ifdef SIGMA_NCCL_HEADER
#include <nccl.h>
#endif

#ifdef SIGMA_CUDA_FUNCTIONS

/* NVIDIA's types by the names of ours. */
typedef CUresult cu_result;
typedef CUdevice_attribute cu_attribute;
typedef CUmemPool_attribute cu_pool_attribute;
typedef CUstreamCaptureMode cu_capture_mode;
typedef CUdevice cu_device;
typedef CUdeviceptr cu_pointer;
typedef CUcontext cu_context;
typedef CUstream cu_stream;
typedef CUevent cu_event;
typedef CUmodule cu_module;
typedef CUfunction cu_function;
typedef CUgraph cu_graph;
typedef CUgraphExec cu_graph_run;
typedef CUmemoryPool cu_pool;
typedef CUuuid cu_identity;
typedef nvrtcResult nvrtc_result;
typedef nvrtcProgram nvrtc_program;
typedef cublasStatus_t cublas_status;
typedef cublasComputeType_t cublas_compute;
typedef cudaDataType cublas_type;
typedef cublasLtMatmulDescAttributes_t cublaslt_operation_attribute;
typedef cublasLtMatrixLayoutAttribute_t cublaslt_layout_attribute;
typedef cublasLtMatmulPreferenceAttributes_t cublaslt_preference_attribute;
typedef cublasLtHandle_t cublaslt_handle;
typedef cublasLtMatmulDesc_t cublaslt_operation;
typedef cublasLtMatrixLayout_t cublaslt_layout;
typedef cublasLtMatmulPreference_t cublaslt_preference;
typedef cublasLtMatmulAlgo_t cublaslt_algorithm;
typedef cublasLtMatmulHeuristicResult_t cublaslt_choice;

#ifdef SIGMA_NCCL_HEADER
typedef ncclResult_t nccl_result;
typedef ncclDataType_t nccl_type;
typedef ncclRedOp_t nccl_operation;
typedef ncclComm_t nccl_group;
typedef ncclUniqueId nccl_invitation;
typedef ncclConfig_t nccl_settings;
#endif

#include "../../plugins/cuda/cuda_functions.h"

/* A declaration that differs from the one before is refused by the compiler. */
#define REPEAT(result, name, parameters) extern result name parameters;
SGM_CUDA_FUNCTIONS(REPEAT)
SGM_NVRTC_FUNCTIONS(REPEAT)
SGM_CUBLASLT_FUNCTIONS(REPEAT)
#ifdef SIGMA_NCCL_HEADER
SGM_NCCL_FUNCTIONS(REPEAT)
#endif

#else

#include "../../plugins/cuda/cuda_types.h"
#include "test.h"

#ifdef SIGMA_CUDA_HEADERS
#define SAME_NUMBER(ours, theirs, value) CHECK_INT((int64_t)(ours), (int64_t)(theirs));
#define SAME_SIZE(ours, theirs) CHECK_INT(sizeof(ours), sizeof(theirs));

TEST(numbers_are_nvidias){SGM_CUDA_NUMBERS(SAME_NUMBER) SGM_NVRTC_NUMBERS(SAME_NUMBER)
                              SGM_CUBLAS_NUMBERS(SAME_NUMBER)}

TEST(types_have_nvidias_sizes)
{
    SAME_SIZE(cu_result, CUresult)
    SAME_SIZE(cu_attribute, CUdevice_attribute)
    SAME_SIZE(cu_pool_attribute, CUmemPool_attribute)
    SAME_SIZE(cu_capture_mode, CUstreamCaptureMode)
    SAME_SIZE(cu_device, CUdevice)
    SAME_SIZE(cu_pointer, CUdeviceptr)
    SAME_SIZE(cu_identity, CUuuid)
    SAME_SIZE(nvrtc_result, nvrtcResult)
    SAME_SIZE(cublas_status, cublasStatus_t)
    SAME_SIZE(cublas_compute, cublasComputeType_t)
    SAME_SIZE(cublas_type, cudaDataType)
    SAME_SIZE(cublaslt_operation_attribute, cublasLtMatmulDescAttributes_t)
    SAME_SIZE(cublaslt_layout_attribute, cublasLtMatrixLayoutAttribute_t)
    SAME_SIZE(cublaslt_preference_attribute, cublasLtMatmulPreferenceAttributes_t)
    SAME_SIZE(cublaslt_algorithm, cublasLtMatmulAlgo_t)
    SAME_SIZE(cublaslt_choice, cublasLtMatmulHeuristicResult_t)
    CHECK_INT(offsetof(cublaslt_choice, algorithm), offsetof(cublasLtMatmulHeuristicResult_t, algo));
    CHECK_INT(offsetof(cublaslt_choice, workspace), offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
    CHECK_INT(offsetof(cublaslt_choice, state), offsetof(cublasLtMatmulHeuristicResult_t, state));
}

#ifdef SIGMA_NCCL_HEADER
TEST(nccls_numbers_and_sizes_are_nvidias)
{
    const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
    SGM_NCCL_NUMBERS(SAME_NUMBER)
    SAME_SIZE(nccl_result, ncclResult_t)
    SAME_SIZE(nccl_type, ncclDataType_t)
    SAME_SIZE(nccl_operation, ncclRedOp_t)
    SAME_SIZE(nccl_invitation, ncclUniqueId)
    CHECK(sizeof(nccl_settings) <= sizeof(ncclConfig_t)); /* newer ones have grown at the end */
    CHECK_INT(offsetof(nccl_settings, size), offsetof(ncclConfig_t, size));
    CHECK_INT(offsetof(nccl_settings, magic), offsetof(ncclConfig_t, magic));
    CHECK_INT(offsetof(nccl_settings, version), offsetof(ncclConfig_t, version));
    CHECK_INT(offsetof(nccl_settings, blocking), offsetof(ncclConfig_t, blocking));
    CHECK_INT(offsetof(nccl_settings, unset), offsetof(ncclConfig_t, cgaClusterSize));
    CHECK_INT(NCCL_MAGIC, theirs.magic);
    CHECK_INT(NCCL_UNSET, theirs.cgaClusterSize);
    CHECK_INT(NCCL_SETTINGS_VERSION, NCCL_VERSION(2, 14, 0));
}
#else
TEST(nccls_numbers_and_sizes_are_nvidias)
{
    SKIP("NCCL's header (nccl.h) is not on this computer; our own declarations are held against nothing");
}
#endif
#else
TEST(numbers_are_nvidias)
{
    SKIP("NVIDIA's headers (cuda.h) are not on this computer; our own declarations are held against nothing");
}
#endif
#endif
