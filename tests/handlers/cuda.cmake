# Tests of the CUDA plug-in. Where NVIDIA's headers are, our declarations are held against them: one source, twice.
find_path(SIGMA_CUDA_INCLUDE_DIR NAMES cublasLt.h HINTS ENV CUDA_HOME PATH_SUFFIXES include
    PATHS /usr/local/cuda/include /usr/local/cuda /usr/lib/cuda)
if(SIGMA_CUDA_INCLUDE_DIR)
    add_library(test_cuda_functions OBJECT tests/handlers/test_cuda_api.c)
    target_compile_definitions(test_cuda_functions PRIVATE SIGMA_CUDA_HEADERS SIGMA_CUDA_FUNCTIONS)
    target_compile_definitions(test_handlers_cuda_api PRIVATE SIGMA_CUDA_HEADERS)
    foreach(target test_cuda_functions test_handlers_cuda_api)
        target_include_directories(${target} SYSTEM PRIVATE "${SIGMA_CUDA_INCLUDE_DIR}")
    endforeach()
    add_dependencies(test_handlers_cuda_api test_cuda_functions)
endif()
