# Tests of parts of the OpenCL plug-in, where there is OpenCL.
if(OpenCL_FOUND)
    foreach(part errors staging)
        target_sources(test_handlers_opencl_${part} PRIVATE plugins/opencl/${part}.c)
        target_include_directories(test_handlers_opencl_${part} PRIVATE plugins/opencl)
        target_compile_definitions(test_handlers_opencl_${part} PRIVATE SIGMA_OPENCL)
        target_link_libraries(test_handlers_opencl_${part} PRIVATE OpenCL::OpenCL)
    endforeach()
endif()
