# Tests of parts of the OpenCL plug-in, where there is OpenCL.
if(OpenCL_FOUND)
    target_sources(test_handlers_opencl_staging PRIVATE plugins/opencl/staging.c)
    target_include_directories(test_handlers_opencl_staging PRIVATE plugins/opencl)
    target_compile_definitions(test_handlers_opencl_staging PRIVATE SIGMA_OPENCL)
    target_link_libraries(test_handlers_opencl_staging PRIVATE OpenCL::OpenCL)
endif()
