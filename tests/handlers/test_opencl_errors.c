/* What OpenCL's errors become: memory that is used up, or something else. */
#include "test.h"

#ifdef SIGMA_OPENCL
#include "errors.h"

typedef sgm_device_result result_function(cl_int error, const char *doing, char *message);

static void check_told(result_function *of, cl_int error, sgm_device_result expected, const char *words)
{
    char message[SGM_DEVICE_MESSAGE] = "";
    CHECK_INT(of(error, "doing it", message), expected);
    CHECK_STR(message, words);
}

/* A smaller batch would not help a kernel whose groups want too much. */
TEST(resources_of_a_kernel_are_no_memory)
{
    check_told(opencl_result, CL_OUT_OF_RESOURCES, SGM_DEVICE_FAILED,
               "doing it: out of resources: registers, the memory that a group shares, or a kernel before it "
               "that failed (OpenCL error -5)");
    check_told(opencl_result, CL_MEM_OBJECT_ALLOCATION_FAILURE, SGM_DEVICE_MEMORY,
               "doing it: its memory is used up (OpenCL error -4)");
    check_told(opencl_result, CL_INVALID_KERNEL_NAME, SGM_DEVICE_FAILED,
               "doing it: there is no such kernel (OpenCL error -46)");
    check_told(opencl_result, CL_SUCCESS, SGM_DEVICE_OK, "");
}

TEST(resources_of_an_allocation_are_memory)
{
    check_told(opencl_result_of_memory, CL_OUT_OF_RESOURCES, SGM_DEVICE_MEMORY,
               "doing it: its memory is used up (OpenCL error -5)");
    check_told(opencl_result_of_memory, CL_INVALID_VALUE, SGM_DEVICE_FAILED,
               "doing it: it failed (OpenCL error -30)");
    check_told(opencl_result_of_memory, CL_SUCCESS, SGM_DEVICE_OK, "");
}
#else
TEST(resources_of_a_kernel_are_no_memory)
{
    SKIP("there is no OpenCL (Debian: ocl-icd-opencl-dev)");
}
#endif
