/* Memory through which the host's bytes go to an OpenCL device, so that a write need not wait for the work
 * that is queued before it: the device fetches a stage while the host fills the next one. */
#ifndef SGM_OPENCL_STAGING_H
#define SGM_OPENCL_STAGING_H

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>
#include <stdint.h>

/* As many and as large as those of the CUDA plug-in. */
#define OPENCL_STAGES 4
#define OPENCL_STAGE_BYTES ((size_t)2 << 20)

/* The stages lie one behind the other in one buffer that stays mapped. One queue, in order, uses them. */
typedef struct opencl_staging {
    cl_mem buffer; /* page-locked where the driver can */
    unsigned char *memory;
    cl_event fetched[OPENCL_STAGES]; /* of each stage's newest transfer; NULL: nothing is in it */
    size_t used;                     /* of the current stage */
    int current;
} opencl_staging;

cl_int opencl_staging_open(opencl_staging *staging, cl_context context, cl_command_queue queue);
/* What was written has been fetched. */
void opencl_staging_close(opencl_staging *staging, cl_command_queue queue);
/* `host` is free to change on return. What is too large for all stages together is waited for. */
cl_int opencl_staging_write(opencl_staging *staging, cl_command_queue queue, cl_mem to, uint64_t offset,
                            const void *host, uint64_t bytes);

#endif
