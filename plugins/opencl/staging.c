/* Stages in turn, each with the event of its newest transfer: the queue is in order, so the older
 * transfers of a stage are done when that one is.
 *
 * The host copies into the mapped memory of a stage and queues the transfer out of it; before it fills a
 * stage anew, it waits for that stage's event. opencl.c writes only through here; reads go directly, as
 * they wait anyway. */
#include "staging.h"

#include <string.h>

/* CL_MEM_ALLOC_HOST_PTR makes drivers take page-locked memory, which the device can fetch by itself. */
cl_int opencl_staging_open(opencl_staging *staging, cl_context context, cl_command_queue queue)
{
    cl_int error;
    const size_t bytes = OPENCL_STAGES * OPENCL_STAGE_BYTES;
    staging->buffer = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, NULL, &error);
    if (error == CL_SUCCESS)
        staging->memory = clEnqueueMapBuffer(queue, staging->buffer, CL_TRUE, CL_MAP_WRITE, 0, bytes, 0, NULL,
                                             NULL, &error);
    return error;
}

/* An event must be released before another one takes its place. */
static void forget(opencl_staging *staging, int stage)
{
    if (staging->fetched[stage] != NULL)
        clReleaseEvent(staging->fetched[stage]);
    staging->fetched[stage] = NULL;
}

/* Also of stages that could not be opened to the end. The buffer is unmapped before it goes. */
void opencl_staging_close(opencl_staging *staging, cl_command_queue queue)
{
    for (int i = 0; i < OPENCL_STAGES; i++)
        forget(staging, i);
    if (staging->memory != NULL &&
        clEnqueueUnmapMemObject(queue, staging->buffer, staging->memory, 0, NULL, NULL) == CL_SUCCESS)
        clFinish(queue);
    if (staging->buffer != NULL)
        clReleaseMemObject(staging->buffer);
}

/* Goes on to the next stage, once the device has fetched what was in it. Without the flush the transfer
 * might not have been handed to the device at all, and the wait would not end. */
static cl_int next_stage(opencl_staging *staging, cl_command_queue queue)
{
    staging->current = (staging->current + 1) % OPENCL_STAGES;
    staging->used = 0;
    if (staging->fetched[staging->current] == NULL)
        return CL_SUCCESS;
    cl_int error = clFlush(queue);
    if (error == CL_SUCCESS)
        error = clWaitForEvents(1, &staging->fetched[staging->current]);
    forget(staging, staging->current);
    return error;
}

/* More than all stages hold is written directly and waited for: the host would wait for the stages anyway,
 * and the copies would be in vain. Parts in a stage begin at multiples of 64 bytes. */
cl_int opencl_staging_write(opencl_staging *staging, cl_command_queue queue, cl_mem to, uint64_t offset,
                            const void *host, uint64_t bytes)
{
    const unsigned char *from = host;
    cl_int error = CL_SUCCESS;
    if (bytes > OPENCL_STAGES * OPENCL_STAGE_BYTES)
        return clEnqueueWriteBuffer(queue, to, CL_TRUE, (size_t)offset, (size_t)bytes, host, 0, NULL, NULL);
    while (bytes > 0 && error == CL_SUCCESS) {
        if (staging->used >= OPENCL_STAGE_BYTES)
            error = next_stage(staging, queue);
        if (error != CL_SUCCESS)
            break;
        size_t left = OPENCL_STAGE_BYTES - staging->used, part = left < bytes ? left : (size_t)bytes;
        unsigned char *room = staging->memory + (size_t)staging->current * OPENCL_STAGE_BYTES + staging->used;
        memcpy(room, from, part);
        forget(staging, staging->current);
        error = clEnqueueWriteBuffer(queue, to, CL_FALSE, (size_t)offset, part, room, 0, NULL,
                                     &staging->fetched[staging->current]);
        staging->used += (part + 63) & ~(size_t)63;
        offset += part;
        from += part;
        bytes -= part;
    }
    return error;
}
