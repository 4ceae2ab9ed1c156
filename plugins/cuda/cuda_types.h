/* What is used of CUDA, declared here so that a build needs none of NVIDIA's files: types and numbers.
 *
 * Functions are in cuda_functions.h. Names are this plug-in's own, so that both can be included side by side:
 * where NVIDIA's files are, tests/handlers/test_cuda_api.c holds these declarations against them. Handles are
 * pointers to structs that only the libraries know; enumerations are unsigned int, which has their size.
 */
#ifndef SGM_CUDA_TYPES_H
#define SGM_CUDA_TYPES_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

/* --- the driver: libcuda.so.1 --- */
typedef unsigned int cu_result, cu_attribute, cu_pool_attribute, cu_capture_mode;
typedef int cu_device;
typedef unsigned long long cu_pointer;
typedef struct cu_context_ *cu_context;
typedef struct cu_stream_ *cu_stream;
typedef struct cu_event_ *cu_event;
typedef struct cu_module_ *cu_module;
typedef struct cu_function_ *cu_function;
typedef struct cu_graph_ *cu_graph;
typedef struct cu_graph_run_ *cu_graph_run;
typedef struct cu_pool_ *cu_pool;
/* A device's UUID. */
typedef struct cu_identity {
    char bytes[16];
} cu_identity;

/* X(name here, NVIDIA's name, value) */
#define SGM_CUDA_NUMBERS(X)                                                                                  \
    X(CU_DONE, CUDA_SUCCESS, 0)                                                                              \
    X(CU_INVALID, CUDA_ERROR_INVALID_VALUE, 1)                                                               \
    X(CU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY, 2)                                                         \
    X(CU_STUB, CUDA_ERROR_STUB_LIBRARY, 34)                                                                  \
    X(CU_NO_DEVICE, CUDA_ERROR_NO_DEVICE, 100)                                                               \
    X(CU_INVALID_IMAGE, CUDA_ERROR_INVALID_IMAGE, 200)                                                       \
    X(CU_INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT, 201)                                                   \
    X(CU_INVALID_HANDLE, CUDA_ERROR_INVALID_HANDLE, 400)                                                     \
    X(CU_NOT_FOUND, CUDA_ERROR_NOT_FOUND, 500)                                                               \
    X(CU_NOT_READY, CUDA_ERROR_NOT_READY, 600)                                                               \
    X(CU_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS, 700)                                                   \
    X(CU_LAUNCH_TIMEOUT, CUDA_ERROR_LAUNCH_TIMEOUT, 702)                                                     \
    X(CU_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED, 719)                                                       \
    X(CU_CAPTURE_UNSUPPORTED, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)                                    \
    X(CU_CAPTURE_UNMATCHED, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 903)                                        \
    X(CU_MAX_THREADS_PER_BLOCK, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1)                                \
    X(CU_SHARED_PER_BLOCK, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 8)                               \
    X(CU_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                                      \
    X(CU_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                                 \
    X(CU_CAPABILITY_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)                                 \
    X(CU_HAS_POOLS, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 115)                                         \
    X(CU_POOL_RELEASE_THRESHOLD, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 4)                                       \
    X(CU_STREAM_APART, CU_STREAM_NON_BLOCKING, 1)                                                            \
    X(CU_EVENT_UNTIMED, CU_EVENT_DISABLE_TIMING, 2)                                                          \
    X(CU_CAPTURE_THREAD, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1)

/* --- the compiler: libnvrtc.so --- */
typedef unsigned int nvrtc_result;
typedef struct nvrtc_program_ *nvrtc_program;

/* Results of the compiler. */
#define SGM_NVRTC_NUMBERS(X)                                                                                 \
    X(NVRTC_DONE, NVRTC_SUCCESS, 0)                                                                          \
    X(NVRTC_OUT_OF_MEMORY, NVRTC_ERROR_OUT_OF_MEMORY, 1)                                                     \
    X(NVRTC_INVALID_INPUT, NVRTC_ERROR_INVALID_INPUT, 3)                                                     \
    X(NVRTC_REFUSED, NVRTC_ERROR_COMPILATION, 6)

/* --- products: libcublasLt.so --- */
typedef unsigned int cublas_status, cublas_compute, cublas_type;
typedef unsigned int cublaslt_operation_attribute, cublaslt_layout_attribute, cublaslt_preference_attribute;
typedef struct cublaslt_ *cublaslt_handle;
typedef struct cublaslt_operation_ *cublaslt_operation;
typedef struct cublaslt_layout_ *cublaslt_layout;
typedef struct cublaslt_preference_ *cublaslt_preference;
/* Opaque, but copied by value: its size counts. */
typedef struct cublaslt_algorithm {
    uint64_t data[8];
} cublaslt_algorithm;
/* One answer of the heuristic; `state` says whether it may be used. */
typedef struct cublaslt_choice {
    cublaslt_algorithm algorithm;
    size_t workspace;
    cublas_status state;
    float waves;
    int reserved[4];
} cublaslt_choice;

/* Results, types to compute in and of numbers, and which attribute of an operation, a layout or a
 * preference is set. */
#define SGM_CUBLAS_NUMBERS(X)                                                                                \
    X(CUBLAS_DONE, CUBLAS_STATUS_SUCCESS, 0)                                                                 \
    X(CUBLAS_NOT_INITIALISED, CUBLAS_STATUS_NOT_INITIALIZED, 1)                                              \
    X(CUBLAS_NO_MEMORY, CUBLAS_STATUS_ALLOC_FAILED, 3)                                                       \
    X(CUBLAS_INVALID, CUBLAS_STATUS_INVALID_VALUE, 7)                                                        \
    X(CUBLAS_ARCHITECTURE, CUBLAS_STATUS_ARCH_MISMATCH, 8)                                                   \
    X(CUBLAS_FAILED, CUBLAS_STATUS_EXECUTION_FAILED, 13)                                                     \
    X(CUBLAS_INTERNAL, CUBLAS_STATUS_INTERNAL_ERROR, 14)                                                     \
    X(CUBLAS_UNSUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED, 15)                                                   \
    X(CUBLAS_IN_FLOAT32, CUBLAS_COMPUTE_32F, 68)                                                             \
    X(CUBLAS_IN_FLOAT64, CUBLAS_COMPUTE_64F, 70)                                                             \
    X(CUBLAS_IN_TF32, CUBLAS_COMPUTE_32F_FAST_TF32, 77)                                                      \
    X(CUBLAS_FLOAT32, CUDA_R_32F, 0)                                                                         \
    X(CUBLAS_FLOAT64, CUDA_R_64F, 1)                                                                         \
    X(CUBLAS_BFLOAT16, CUDA_R_16BF, 14)                                                                      \
    X(CUBLAS_AS_IT_IS, CUBLAS_OP_N, 0)                                                                       \
    X(CUBLAS_TRANSPOSED, CUBLAS_OP_T, 1)                                                                     \
    X(CUBLASLT_TRANSPOSE_A, CUBLASLT_MATMUL_DESC_TRANSA, 3)                                                  \
    X(CUBLASLT_TRANSPOSE_B, CUBLASLT_MATMUL_DESC_TRANSB, 4)                                                  \
    X(CUBLASLT_EPILOGUE, CUBLASLT_MATMUL_DESC_EPILOGUE, 7)                                                   \
    X(CUBLASLT_BIAS, CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8)                                                   \
    X(CUBLASLT_NO_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT, 1)                                                    \
    X(CUBLASLT_RECTIFIED, CUBLASLT_EPILOGUE_RELU, 2)                                                         \
    X(CUBLASLT_BIASED, CUBLASLT_EPILOGUE_BIAS, 4)                                                            \
    X(CUBLASLT_BIASED_RECTIFIED, CUBLASLT_EPILOGUE_RELU_BIAS, 6)                                             \
    X(CUBLASLT_BATCH_COUNT, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 5)                                           \
    X(CUBLASLT_BATCH_STRIDE, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 6)                                 \
    X(CUBLASLT_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1)                                       \
    X(CUBLASLT_ALIGNMENT_A, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 5)                                   \
    X(CUBLASLT_ALIGNMENT_B, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 6)                                   \
    X(CUBLASLT_ALIGNMENT_C, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 7)                                   \
    X(CUBLASLT_ALIGNMENT_D, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 8)

/* --- sums over several devices: libnccl.so.2 --- */
typedef unsigned int nccl_result, nccl_type, nccl_operation;
typedef struct nccl_group_ *nccl_group;
typedef struct nccl_invitation {
    char bytes[128];
} nccl_invitation;
/* As NCCL 2.14 has it; newer ones read `version`, and no further than `size`. */
typedef struct nccl_settings {
    size_t size;
    unsigned int magic, version;
    int blocking, unset;
} nccl_settings;
#define NCCL_MAGIC 0xcafebeef
#define NCCL_SETTINGS_VERSION 21400
#define NCCL_UNSET INT_MIN

/* Results, types of numbers, and the one operation that is used. */
#define SGM_NCCL_NUMBERS(X)                                                                                  \
    X(NCCL_DONE, ncclSuccess, 0)                                                                             \
    X(NCCL_INVALID, ncclInvalidArgument, 4)                                                                  \
    X(NCCL_INVALID_USAGE, ncclInvalidUsage, 5)                                                               \
    X(NCCL_REMOTE, ncclRemoteError, 6)                                                                       \
    X(NCCL_UNDER_WAY, ncclInProgress, 7)                                                                     \
    X(NCCL_FLOAT32, ncclFloat32, 7)                                                                          \
    X(NCCL_FLOAT64, ncclFloat64, 8)                                                                          \
    X(NCCL_BFLOAT16, ncclBfloat16, 9)                                                                        \
    X(NCCL_ADD, ncclSum, 0)

/* All numbers of the four lists as constants. */
#define SGM_CUDA_NUMBER(name, theirs, value) name = (value),
enum {
    SGM_CUDA_NUMBERS(SGM_CUDA_NUMBER) SGM_NVRTC_NUMBERS(SGM_CUDA_NUMBER) SGM_CUBLAS_NUMBERS(SGM_CUDA_NUMBER)
        SGM_NCCL_NUMBERS(SGM_CUDA_NUMBER)
};
#undef SGM_CUDA_NUMBER

#endif
