/* Errors of OpenCL: as sentences for users, and as what the library distinguishes.
 *
 * The library only distinguishes memory that is used up, after which the device still works and the caller
 * may free some, from all other failures. The number of the error stands in each message, since drivers
 * differ in what they mean by it. */
#include "errors.h"

#include <stdarg.h>
#include <stdio.h>

/* Cuts the sentence to the size that the interface gives a message. */
sgm_device_result opencl_fail(sgm_device_result result, char *message, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, SGM_DEVICE_MESSAGE, format, arguments);
    va_end(arguments);
    return result;
}

/* The errors that users meet, with what to look for. */
const char *opencl_text(cl_int error)
{
    static const struct {
        cl_int error;
        const char *text;
    } known[] = {{CL_DEVICE_NOT_FOUND, "there is no such device"},
                 {CL_DEVICE_NOT_AVAILABLE, "the device is in use or switched off"},
                 {CL_COMPILER_NOT_AVAILABLE, "there is no compiler"},
                 {CL_MEM_OBJECT_ALLOCATION_FAILURE, "its memory is used up"},
                 {CL_OUT_OF_RESOURCES, "out of resources: registers, the memory that a group shares, or a "
                                       "kernel before it that failed"},
                 {CL_OUT_OF_HOST_MEMORY, "the computer's memory is used up"},
                 {CL_BUILD_PROGRAM_FAILURE, "the source was not accepted"},
                 {CL_INVALID_BINARY, "the binary is of another device or driver"},
                 {CL_INVALID_BUFFER_SIZE, "the buffer is too large"},
                 {CL_INVALID_WORK_GROUP_SIZE, "the group has too many work-items"},
                 {CL_INVALID_KERNEL_NAME, "there is no such kernel"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].error == error)
            return known[i].text;
    return "it failed";
}

/* A buffer beyond the largest size that the device gives counts as memory that is used up. */
sgm_device_result opencl_result(cl_int error, const char *doing, char *message)
{
    if (error == CL_SUCCESS)
        return SGM_DEVICE_OK;
    bool memory = error == CL_MEM_OBJECT_ALLOCATION_FAILURE || error == CL_INVALID_BUFFER_SIZE ||
                  error == CL_OUT_OF_HOST_MEMORY;
    return opencl_fail(memory ? SGM_DEVICE_MEMORY : SGM_DEVICE_FAILED, message, "%s: %s (OpenCL error %d)",
                       doing, opencl_text(error), (int)error);
}

sgm_device_result opencl_result_of_memory(cl_int error, const char *doing, char *message)
{
    if (error != CL_OUT_OF_RESOURCES)
        return opencl_result(error, doing, message);
    return opencl_fail(SGM_DEVICE_MEMORY, message, "%s: %s (OpenCL error %d)", doing,
                       opencl_text(CL_MEM_OBJECT_ALLOCATION_FAILURE), (int)error);
}
