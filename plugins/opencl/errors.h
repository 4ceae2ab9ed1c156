/* What went wrong with OpenCL, as a sentence and as what it is to the driver's table. */
#ifndef SGM_OPENCL_ERRORS_H
#define SGM_OPENCL_ERRORS_H

#include "handlers/device/driver.h"
#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>

/* The sentence goes into `message`; gives `result`. */
sgm_device_result opencl_fail(sgm_device_result result, char *message, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
const char *opencl_text(cl_int error);
/* CL_SUCCESS is SGM_DEVICE_OK; else says that it failed while `doing`. */
sgm_device_result opencl_result(cl_int error, const char *doing, char *message);
/* The same of what gives memory: there some drivers say in general terms that none is left. */
sgm_device_result opencl_result_of_memory(cl_int error, const char *doing, char *message);

#endif
