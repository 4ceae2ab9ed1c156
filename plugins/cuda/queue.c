/* The queue: one stream, and recordings (CUDA graphs) of what went into it.
 *
 * All work goes to the device's stream, in order. Between cuda_record and cuda_keep the stream is
 * captured: nothing runs, and what would have run becomes a graph that cuda_replay queues with one call,
 * which spares the host the time of each launch. What cannot be recorded (transfers to and from the host,
 * allocations, waits, sums over devices) is refused meanwhile; memory that is released while recording is
 * noted in device->released, and given back behind it. */
#include "plugin.h"

#include <stdlib.h>

#define DEFAULT_PLACES 48 /* arguments of a kernel that need no allocation */

/* Queues a kernel over launch->groups blocks of launch->group threads. Its arguments are addresses, of
 * which CUDA wants pointers; both arrays are only read during the call. */
sgm_device_result cuda_launch(void *self, const sgm_device_launch *launch, char *message)
{
    cuda_device *device = self;
    cu_pointer usual[DEFAULT_PLACES], *addresses = usual;
    void *usual_parameters[DEFAULT_PLACES], **parameters = usual_parameters;
    uint32_t count = launch->place_count;
    if (count > DEFAULT_PLACES) {
        addresses = malloc(count * sizeof *addresses);
        parameters = malloc(count * sizeof *parameters);
    }
    sgm_device_result status = SGM_DEVICE_MEMORY;
    if (addresses == NULL || parameters == NULL)
        cuda_say(message, "the computer's memory is used up");
    else
        status = cuda_enter(device, message);
    if (status == SGM_DEVICE_OK) {
        for (uint32_t i = 0; i < count; i++) {
            addresses[i] = cuda_address(launch->places[i]);
            parameters[i] = &addresses[i];
        }
        status = cuda_check(device,
                            device->library->cuda.cuLaunchKernel(launch->kernel, launch->groups, 1, 1,
                                                                 launch->group, 1, 1, 0, device->stream,
                                                                 parameters, NULL),
                            "starting a kernel", message);
        cuda_leave(device);
    }
    if (addresses != usual)
        free(addresses);
    if (parameters != usual_parameters)
        free(parameters);
    return status;
}

/* Also tells of failures of kernels that were queued before: CUDA reports them at the next
 * synchronisation. */
sgm_device_result cuda_wait(void *self, char *message)
{
    cuda_device *device = self;
    if (device->recording) {
        cuda_say(message, "what is recorded does not run, so that nothing can be waited for");
        return SGM_DEVICE_FAILED;
    }
    sgm_device_result status = cuda_enter(device, message);
    if (status != SGM_DEVICE_OK)
        return status;
    return cuda_leave_with(device, device->library->cuda.cuStreamSynchronize(device->stream), "a kernel",
                           message);
}

/* Captures what this thread queues; other threads may meanwhile do what cannot be recorded
 * (CU_CAPTURE_THREAD). */
sgm_device_result cuda_record(void *self, char *message)
{
    cuda_device *device = self;
    if (device->recording) {
        cuda_say(message, "a recording has begun already");
        return SGM_DEVICE_FAILED;
    }
    sgm_device_result status = cuda_enter(device, message);
    if (status != SGM_DEVICE_OK)
        return status;
    /* Other threads may do meanwhile what cannot be recorded. */
    status =
        cuda_check(device, device->library->cuda.cuStreamBeginCapture_v2(device->stream, CU_CAPTURE_THREAD),
                   "beginning a recording", message);
    device->recording = status == SGM_DEVICE_OK;
    cuda_leave(device);
    return status;
}

/* The graph is only the description; what is kept is its compiled form. *recording is NULL after a
 * failure, and nothing of what was recorded has run. */
sgm_device_result cuda_keep(void *self, void **recording, char *message)
{
    cuda_device *device = self;
    const cuda_libraries *l = device->library;
    cu_graph graph = NULL;
    cu_graph_run run = NULL;
    if (!device->recording) {
        cuda_say(message, "no recording has begun");
        return SGM_DEVICE_FAILED;
    }
    device->recording = false;
    sgm_device_result status = cuda_enter(device, message);
    if (status != SGM_DEVICE_OK)
        return status;
    status = cuda_check(device, l->cuda.cuStreamEndCapture(device->stream, &graph), "a recording", message);
    if (status == SGM_DEVICE_OK)
        status = cuda_check(device, l->cuda.cuGraphInstantiateWithFlags(&run, graph, 0),
                            "keeping a recording", message);
    if (graph != NULL)
        l->cuda.cuGraphDestroy(graph);
    cuda_release_late(device);
    cuda_leave(device);
    *recording = run;
    return status;
}

/* The recording has the addresses that it was made with: their memory must still be there. */
sgm_device_result cuda_replay(void *self, void *recording, char *message)
{
    cuda_device *device = self;
    sgm_device_result status = cuda_enter(device, message);
    if (status != SGM_DEVICE_OK)
        return status;
    return cuda_leave_with(device, device->library->cuda.cuGraphLaunch(recording, device->stream),
                           "running a recording", message);
}

/* The recording may still run, so the queue is drained first. */
void cuda_forget(void *self, void *recording)
{
    const cuda_device *device = self;
    char message[SGM_DEVICE_MESSAGE];
    if (recording == NULL || cuda_enter(device, message) != SGM_DEVICE_OK)
        return;
    device->library->cuda.cuStreamSynchronize(device->stream);
    device->library->cuda.cuGraphExecDestroy(recording);
    cuda_leave(device);
}
