# Tests of the CUDA plug-in. Where NVIDIA's headers are, our declarations are held against them: one source, twice.
find_path(SIGMA_CUDA_INCLUDE_DIR NAMES cublasLt.h HINTS ENV CUDA_HOME PATH_SUFFIXES include
    PATHS /usr/local/cuda/include /usr/local/cuda /usr/lib/cuda)
if(SIGMA_CUDA_INCLUDE_DIR)
    add_library(test_cuda_functions OBJECT tests/handlers/test_cuda_api.c)
    target_compile_definitions(test_cuda_functions PRIVATE SIGMA_CUDA_HEADERS SIGMA_CUDA_FUNCTIONS)
    target_compile_definitions(test_handlers_cuda_api PRIVATE SIGMA_CUDA_HEADERS)
    foreach(target test_cuda_functions test_handlers_cuda_api)
        target_include_directories(${target} SYSTEM PRIVATE "${SIGMA_CUDA_INCLUDE_DIR}")
        if(EXISTS "${SIGMA_CUDA_INCLUDE_DIR}/nccl.h")
            target_compile_definitions(${target} PRIVATE SIGMA_NCCL_HEADER)
        endif()
    endforeach()
    add_dependencies(test_handlers_cuda_api test_cuda_functions)
endif()

# A stand-in for NVIDIA's driver, compiler, products and sums, by all their names.
file(GLOB fake_cuda_sources CONFIGURE_DEPENDS tests/handlers/fake_cuda/*.c)
add_library(test_fake_cuda MODULE ${fake_cuda_sources})
set_target_properties(test_fake_cuda PROPERTIES PREFIX "" OUTPUT_NAME libcuda SUFFIX .so.1
    C_VISIBILITY_PRESET hidden LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests/fake_cuda")
target_compile_definitions(test_fake_cuda PRIVATE
    SIGMA_FAKE_CUDA_WORDS="${CMAKE_SOURCE_DIR}/tests/handlers/fake_cuda/words.h")
target_link_libraries(test_fake_cuda PRIVATE sigma_flags Threads::Threads ${CMAKE_DL_LIBS})
# It changes stacks behind a sanitizer's back. Options of files come last: behind those that ask for one.
set_source_files_properties(${fake_cuda_sources} PROPERTIES COMPILE_OPTIONS -fno-sanitize=all)
foreach(name libnvrtc.so.12 libcublasLt.so.12 libnccl.so.2)
    add_custom_command(TARGET test_fake_cuda POST_BUILD
        COMMAND ${CMAKE_COMMAND} -E create_symlink libcuda.so.1 "${CMAKE_BINARY_DIR}/tests/fake_cuda/${name}")
endforeach()
add_custom_target(test_cuda_parts)
add_dependencies(test_cuda_parts test_fake_cuda sigma_plugin_cuda)
add_dependencies(tests test_cuda_parts)
foreach(name cuda_driver cuda_mistakes cuda_products cuda_peers device_products)
    add_dependencies(test_handlers_${name} test_cuda_parts)
endforeach()
