/* The functions that are used of CUDA's libraries: X(result, name, parameters), a list for each library.
 *
 * libraries.c looks all of them up by name, so each function in a list is one that the library must have;
 * plugin.h makes a struct of pointers out of each list. Their types are those of cuda_types.h, or, where
 * these lists are held against NVIDIA's own headers, other names for NVIDIA's. A name that ends in _v2 is
 * what NVIDIA's headers give to the plain name. */
#ifndef SGM_CUDA_FUNCTIONS_H
#define SGM_CUDA_FUNCTIONS_H

/* libcuda.so.1, of the driver: devices, contexts, streams, graphs, events, memory, modules, kernels. */
#define SGM_CUDA_FUNCTIONS(X)                                                                                \
    X(cu_result, cuInit, (unsigned int flags))                                                               \
    X(cu_result, cuDriverGetVersion, (int *version))                                                         \
    X(cu_result, cuGetErrorName, (cu_result error, const char **text))                                       \
    X(cu_result, cuGetErrorString, (cu_result error, const char **text))                                     \
    X(cu_result, cuDeviceGetCount, (int *count))                                                             \
    X(cu_result, cuDeviceGet, (cu_device * device, int number))                                              \
    X(cu_result, cuDeviceGetName, (char *name, int size, cu_device device))                                  \
    X(cu_result, cuDeviceTotalMem_v2, (size_t * bytes, cu_device device))                                    \
    X(cu_result, cuDeviceGetAttribute, (int *value, cu_attribute attribute, cu_device device))               \
    X(cu_result, cuDeviceGetUuid_v2, (cu_identity * identity, cu_device device))                             \
    X(cu_result, cuDevicePrimaryCtxRetain, (cu_context * context, cu_device device))                         \
    X(cu_result, cuDevicePrimaryCtxRelease_v2, (cu_device device))                                           \
    X(cu_result, cuCtxPushCurrent_v2, (cu_context context))                                                  \
    X(cu_result, cuCtxPopCurrent_v2, (cu_context * context))                                                 \
    X(cu_result, cuStreamCreate, (cu_stream * stream, unsigned int flags))                                   \
    X(cu_result, cuStreamDestroy_v2, (cu_stream stream))                                                     \
    X(cu_result, cuStreamSynchronize, (cu_stream stream))                                                    \
    X(cu_result, cuStreamQuery, (cu_stream stream))                                                          \
    X(cu_result, cuStreamBeginCapture_v2, (cu_stream stream, cu_capture_mode mode))                          \
    X(cu_result, cuStreamEndCapture, (cu_stream stream, cu_graph * graph))                                   \
    X(cu_result, cuGraphInstantiateWithFlags,                                                                \
      (cu_graph_run * run, cu_graph graph, unsigned long long flags))                                        \
    X(cu_result, cuGraphDestroy, (cu_graph graph))                                                           \
    X(cu_result, cuGraphExecDestroy, (cu_graph_run run))                                                     \
    X(cu_result, cuGraphLaunch, (cu_graph_run run, cu_stream stream))                                        \
    X(cu_result, cuEventCreate, (cu_event * event, unsigned int flags))                                      \
    X(cu_result, cuEventDestroy_v2, (cu_event event))                                                        \
    X(cu_result, cuEventRecord, (cu_event event, cu_stream stream))                                          \
    X(cu_result, cuEventSynchronize, (cu_event event))                                                       \
    X(cu_result, cuDeviceGetDefaultMemPool, (cu_pool * pool, cu_device device))                              \
    X(cu_result, cuMemPoolSetAttribute, (cu_pool pool, cu_pool_attribute attribute, void *value))            \
    X(cu_result, cuMemPoolTrimTo, (cu_pool pool, size_t bytes))                                              \
    X(cu_result, cuMemGetInfo_v2, (size_t * unused, size_t * all))                                           \
    X(cu_result, cuMemAlloc_v2, (cu_pointer * memory, size_t bytes))                                         \
    X(cu_result, cuMemFree_v2, (cu_pointer memory))                                                          \
    X(cu_result, cuMemAllocAsync, (cu_pointer * memory, size_t bytes, cu_stream stream))                     \
    X(cu_result, cuMemFreeAsync, (cu_pointer memory, cu_stream stream))                                      \
    X(cu_result, cuMemHostAlloc, (void **memory, size_t bytes, unsigned int flags))                          \
    X(cu_result, cuMemFreeHost, (void *memory))                                                              \
    X(cu_result, cuMemcpyHtoDAsync_v2, (cu_pointer to, const void *from, size_t bytes, cu_stream stream))    \
    X(cu_result, cuMemcpyDtoHAsync_v2, (void *to, cu_pointer from, size_t bytes, cu_stream stream))          \
    X(cu_result, cuMemcpyDtoDAsync_v2, (cu_pointer to, cu_pointer from, size_t bytes, cu_stream stream))     \
    X(cu_result, cuMemsetD8Async, (cu_pointer to, unsigned char value, size_t bytes, cu_stream stream))      \
    X(cu_result, cuModuleLoadData, (cu_module * module, const void *image))                                  \
    X(cu_result, cuModuleUnload, (cu_module module))                                                         \
    X(cu_result, cuModuleGetFunction, (cu_function * function, cu_module module, const char *name))          \
    X(cu_result, cuLaunchKernel,                                                                             \
      (cu_function function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,                  \
       unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,                \
       cu_stream stream, void **parameters, void **extra))

/* libnvrtc.so: from source text to machine code. */
#define SGM_NVRTC_FUNCTIONS(X)                                                                               \
    X(nvrtc_result, nvrtcVersion, (int *major, int *minor))                                                  \
    X(nvrtc_result, nvrtcGetNumSupportedArchs, (int *count))                                                 \
    X(nvrtc_result, nvrtcGetSupportedArchs, (int *architectures))                                            \
    X(nvrtc_result, nvrtcCreateProgram,                                                                      \
      (nvrtc_program * program, const char *source, const char *name, int header_count,                      \
       const char *const *headers, const char *const *header_names))                                         \
    X(nvrtc_result, nvrtcDestroyProgram, (nvrtc_program * program))                                          \
    X(nvrtc_result, nvrtcCompileProgram, (nvrtc_program program, int count, const char *const *options))     \
    X(nvrtc_result, nvrtcGetPTXSize, (nvrtc_program program, size_t * bytes))                                \
    X(nvrtc_result, nvrtcGetPTX, (nvrtc_program program, char *text))                                        \
    X(nvrtc_result, nvrtcGetCUBINSize, (nvrtc_program program, size_t * bytes))                              \
    X(nvrtc_result, nvrtcGetCUBIN, (nvrtc_program program, char *binary))                                    \
    X(nvrtc_result, nvrtcGetProgramLogSize, (nvrtc_program program, size_t * bytes))                         \
    X(nvrtc_result, nvrtcGetProgramLog, (nvrtc_program program, char *text))                                 \
    X(const char *, nvrtcGetErrorString, (nvrtc_result error))

/* libcublasLt.so: matrix products. */
#define SGM_CUBLASLT_FUNCTIONS(X)                                                                            \
    X(cublas_status, cublasLtCreate, (cublaslt_handle * handle))                                             \
    X(cublas_status, cublasLtDestroy, (cublaslt_handle handle))                                              \
    X(size_t, cublasLtGetVersion, (void))                                                                    \
    X(cublas_status, cublasLtMatmulDescCreate,                                                               \
      (cublaslt_operation * operation, cublas_compute compute, cublas_type scale))                           \
    X(cublas_status, cublasLtMatmulDescDestroy, (cublaslt_operation operation))                              \
    X(cublas_status, cublasLtMatmulDescSetAttribute,                                                         \
      (cublaslt_operation operation, cublaslt_operation_attribute attribute, const void *value,              \
       size_t bytes))                                                                                        \
    X(cublas_status, cublasLtMatrixLayoutCreate,                                                             \
      (cublaslt_layout * layout, cublas_type type, uint64_t rows, uint64_t columns, int64_t leading))        \
    X(cublas_status, cublasLtMatrixLayoutDestroy, (cublaslt_layout layout))                                  \
    X(cublas_status, cublasLtMatrixLayoutSetAttribute,                                                       \
      (cublaslt_layout layout, cublaslt_layout_attribute attribute, const void *value, size_t bytes))        \
    X(cublas_status, cublasLtMatmulPreferenceCreate, (cublaslt_preference * preference))                     \
    X(cublas_status, cublasLtMatmulPreferenceDestroy, (cublaslt_preference preference))                      \
    X(cublas_status, cublasLtMatmulPreferenceSetAttribute,                                                   \
      (cublaslt_preference preference, cublaslt_preference_attribute attribute, const void *value,           \
       size_t bytes))                                                                                        \
    X(cublas_status, cublasLtMatmulAlgoGetHeuristic,                                                         \
      (cublaslt_handle handle, cublaslt_operation operation, cublaslt_layout a, cublaslt_layout b,           \
       cublaslt_layout c, cublaslt_layout d, cublaslt_preference preference, int wanted,                     \
       cublaslt_choice *choices, int *count))                                                                \
    X(cublas_status, cublasLtMatmul,                                                                         \
      (cublaslt_handle handle, cublaslt_operation operation, const void *alpha, const void *a,               \
       cublaslt_layout layout_a, const void *b, cublaslt_layout layout_b, const void *beta, const void *c,   \
       cublaslt_layout layout_c, void *d, cublaslt_layout layout_d, const cublaslt_algorithm *algorithm,     \
       void *workspace, size_t workspace_bytes, cu_stream stream))

/* libnccl.so.2: sums over devices. */
#define SGM_NCCL_FUNCTIONS(X)                                                                                \
    X(nccl_result, ncclGetVersion, (int *version))                                                           \
    X(const char *, ncclGetErrorString, (nccl_result error))                                                 \
    X(const char *, ncclGetLastError, (nccl_group group))                                                    \
    X(nccl_result, ncclGetUniqueId, (nccl_invitation * invitation))                                          \
    X(nccl_result, ncclCommInitRankConfig,                                                                   \
      (nccl_group * group, int of, nccl_invitation invitation, int number, nccl_settings *settings))         \
    X(nccl_result, ncclCommGetAsyncError, (nccl_group group, nccl_result * error))                           \
    X(nccl_result, ncclCommFinalize, (nccl_group group))                                                     \
    X(nccl_result, ncclCommDestroy, (nccl_group group))                                                      \
    X(nccl_result, ncclCommAbort, (nccl_group group))                                                        \
    X(nccl_result, ncclGroupStart, (void))                                                                   \
    X(nccl_result, ncclGroupEnd, (void))                                                                     \
    X(nccl_result, ncclAllReduce,                                                                            \
      (const void *from, void *to, size_t count, nccl_type type, nccl_operation operation, nccl_group group, \
       cu_stream stream))

#endif
