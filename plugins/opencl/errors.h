/* What went wrong with OpenCL, as a sentence and as a result of the driver's table
 * (src/handlers/device/driver.h). */
#ifndef SGM_OPENCL_ERRORS_H
#define SGM_OPENCL_ERRORS_H

#include "handlers/device/driver.h"
#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>

/* Writes the sentence into `message`; returns `result`. */
sgm_device_result opencl_fail(sgm_device_result result, char *message, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* What an error means, as the end of a sentence; for those that are not known "it failed". */
const char *opencl_text(cl_int error);
/* CL_SUCCESS is SGM_DEVICE_OK; other errors say that something failed while `doing`. */
sgm_device_result opencl_result(cl_int error, const char *doing, char *message);
/* The same for calls that give memory: there some drivers report CL_OUT_OF_RESOURCES when none is left. */
sgm_device_result opencl_result_of_memory(cl_int error, const char *doing, char *message);

#endif
