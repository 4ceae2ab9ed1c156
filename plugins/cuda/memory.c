/* Memory of the device, given and taken in the order of the queue, and the ways to and from the host.
 *
 * With a pool (CUDA 11.2 and most devices), allocations and releases are queued like work: memory that is
 * released may be given again to work that is queued later, and nobody waits. Without one they are
 * immediate, and a release waits for the queue. Bytes from the host go through page-locked stages
 * (cuda_staging in plugin.h): the copy into a stage is the host's, the transfer out of it the device's,
 * and cuda_write returns after the first. */
#include "plugin.h"

#include <stdlib.h>
#include <string.h>

/* What is released stays with the process for the next allocation, however much it is: giving memory back
 * to the system and asking for it anew would stop the queue. */
sgm_device_result cuda_memory_open(cuda_device *device, char *message)
{
    const cuda_libraries *l = device->library;
    cuda_staging *staging = &device->staging;
    void *memory = NULL;
    uint64_t all = UINT64_MAX;
    /* What is released stays with the process for the next who asks. */
    if (device->pool != NULL)
        l->cuda.cuMemPoolSetAttribute(device->pool, CU_POOL_RELEASE_THRESHOLD, &all);
    cu_result result = l->cuda.cuMemHostAlloc(&memory, (STAGES + 1) * STAGE_BYTES, 0);
    staging->memory = memory;
    for (int i = 0; i < STAGES && result == CU_DONE; i++)
        result = l->cuda.cuEventCreate(&staging->fetched[i], CU_EVENT_UNTIMED);
    return cuda_check(device, result, "getting page-locked memory for transfers", message);
}

/* Only here the pool gives its memory back to the system. */
void cuda_memory_close(cuda_device *device)
{
    const cuda_libraries *l = device->library;
    for (int i = 0; i < STAGES; i++)
        if (device->staging.fetched[i] != NULL)
            l->cuda.cuEventDestroy_v2(device->staging.fetched[i]);
    if (device->staging.memory != NULL)
        l->cuda.cuMemFreeHost(device->staging.memory);
    if (device->pool != NULL && device->stream != NULL &&
        l->cuda.cuStreamSynchronize(device->stream) == CU_DONE)
        l->cuda.cuMemPoolTrimTo(device->pool, 0);
}

/* With a pool, memory that is used up gets a second chance: after the queue has been drained, the pool
 * gives back the pieces that were released, which do not fit together until then. 0 bytes become 1, so
 * that a buffer always has an address of its own. */
static cu_result allocate(const cuda_device *device, cu_pointer *memory, uint64_t bytes)
{
    const cuda_libraries *l = device->library;
    if (bytes == 0)
        bytes = 1;
    if (device->pool == NULL)
        return l->cuda.cuMemAlloc_v2(memory, bytes);
    cu_result result = l->cuda.cuMemAllocAsync(memory, bytes, device->stream);
    if (result != CU_OUT_OF_MEMORY || l->cuda.cuStreamSynchronize(device->stream) != CU_DONE)
        return result;
    /* Pieces that were released do not fit together until they are given back. */
    l->cuda.cuMemPoolTrimTo(device->pool, 0);
    return l->cuda.cuMemAllocAsync(memory, bytes, device->stream);
}

/* Memory that is used up is no broken device: SGM_DEVICE_MEMORY, with how much is free. */
sgm_device_result cuda_allocate(void *self, uint64_t bytes, void **buffer, char *message)
{
    cuda_device *device = self;
    cu_pointer memory = 0;
    if (device->recording) {
        cuda_say(message, "memory cannot be asked for while work is recorded");
        return SGM_DEVICE_FAILED;
    }
    sgm_device_result status = cuda_enter(device, message);
    if (status != SGM_DEVICE_OK)
        return status;
    cu_result result = allocate(device, &memory, bytes);
    size_t unused = 0, all = 0;
    if (result == CU_OUT_OF_MEMORY && device->library->cuda.cuMemGetInfo_v2(&unused, &all) == CU_DONE) {
        cuda_say(message, "the device has no %.1f MiB left: %.1f of its %.1f MiB are free",
                 (double)bytes / (1 << 20), (double)unused / (1 << 20), (double)all / (1 << 20));
        status = SGM_DEVICE_MEMORY;
    } else {
        status = cuda_check(device, result, "getting memory of the device", message);
    }
    cuda_leave(device);
    if (status == SGM_DEVICE_OK)
        *buffer = (void *)(uintptr_t)memory;
    return status;
}

/* With a pool in the order of the queue; without, cuMemFree waits for the queue. */
static void release(const cuda_device *device, cu_pointer memory)
{
    if (device->pool != NULL)
        device->library->cuda.cuMemFreeAsync(memory, device->stream);
    else
        device->library->cuda.cuMemFree_v2(memory); /* waits for the queue */
}

/* Notes memory for cuda_release_late. A recording would release it again at each replay. False: no room to
 * note it, and the memory is lost until the process ends. */
static bool note_released(cuda_device *device, cu_pointer memory)
{
    if (device->released_count == device->released_room) {
        size_t room = 2 * device->released_room + 16;
        cu_pointer *longer = realloc(device->released, room * sizeof *longer);
        if (longer == NULL)
            return false; /* it is lost until the process ends */
        device->released = longer;
        device->released_room = room;
    }
    device->released[device->released_count++] = memory;
    return true;
}

/* Queued work may still use the memory: the pool gives it away again only to work that is queued later. */
void cuda_release(void *self, void *buffer)
{
    cuda_device *device = self;
    char message[SGM_DEVICE_MESSAGE];
    cu_pointer memory = (cu_pointer)(uintptr_t)buffer;
    if (memory == 0)
        return;
    if (device->recording) {
        note_released(device, memory);
    } else if (cuda_enter(device, message) == SGM_DEVICE_OK) {
        release(device, memory);
        cuda_leave(device);
    }
}

/* Behind a recording. The context is current. */
void cuda_release_late(cuda_device *device)
{
    for (size_t i = 0; i < device->released_count; i++)
        release(device, device->released[i]);
    device->released_count = 0;
}

/* Queued, like all transfers; the memory is 0 for work that is queued from here on. */
sgm_device_result cuda_clear(void *self, sgm_device_place place, uint64_t bytes, char *message)
{
    cuda_device *device = self;
    if (bytes == 0)
        return SGM_DEVICE_OK;
    sgm_device_result status = cuda_enter(device, message);
    if (status != SGM_DEVICE_OK)
        return status;
    return cuda_leave_with(
        device, device->library->cuda.cuMemsetD8Async(cuda_address(place), 0, bytes, device->stream),
        "clearing memory", message);
}

/* Goes on to the next stage, once the device has fetched what was in it. The event in the old stage's
 * place is recorded behind its transfers, since the queue is in order. */
static cu_result next_stage(cuda_device *device)
{
    const cuda_libraries *l = device->library;
    cuda_staging *staging = &device->staging;
    cu_result result = l->cuda.cuEventRecord(staging->fetched[staging->current], device->stream);
    if (result != CU_DONE)
        return result;
    staging->filled[staging->current] = true;
    staging->current = (staging->current + 1) % STAGES;
    staging->used = 0;
    if (staging->filled[staging->current])
        result = l->cuda.cuEventSynchronize(staging->fetched[staging->current]);
    staging->filled[staging->current] = false;
    return result;
}

/* Queues a write through the stages, in parts that begin at multiples of 256 bytes. `host` has been read
 * when this returns. */
static cu_result stage(cuda_device *device, cu_pointer to, const unsigned char *host, uint64_t bytes)
{
    cuda_staging *staging = &device->staging;
    cu_result result = CU_DONE;
    while (bytes > 0 && result == CU_DONE) {
        if (staging->used >= STAGE_BYTES)
            result = next_stage(device);
        if (result != CU_DONE)
            break;
        size_t part = STAGE_BYTES - staging->used < bytes ? STAGE_BYTES - staging->used : (size_t)bytes;
        unsigned char *room = staging->memory + (size_t)staging->current * STAGE_BYTES + staging->used;
        memcpy(room, host, part);
        result = device->library->cuda.cuMemcpyHtoDAsync_v2(to, room, part, device->stream);
        staging->used += (part + 255) & ~(size_t)255;
        to += part;
        host += part;
        bytes -= part;
    }
    return result;
}

/* A replay would transfer what is in the stage by then. */
static sgm_device_result cannot_record(char *message)
{
    cuda_say(message, "transfers to and from the host cannot be recorded");
    return SGM_DEVICE_FAILED;
}

/* Returns when `host` has been read, not when the device has the bytes. */
sgm_device_result cuda_write(void *self, sgm_device_place place, const void *host, uint64_t bytes,
                             char *message)
{
    cuda_device *device = self;
    if (device->recording)
        return cannot_record(message);
    sgm_device_result status = cuda_enter(device, message);
    if (status != SGM_DEVICE_OK)
        return status;
    return cuda_leave_with(device, stage(device, cuda_address(place), host, bytes), "writing to the device",
                           message);
}

/* Reads through the last stage, which writes do not use, and waits for each part. */
static cu_result fetch(cuda_device *device, unsigned char *host, cu_pointer from, uint64_t bytes)
{
    const cuda_libraries *l = device->library;
    unsigned char *room = device->staging.memory + STAGES * STAGE_BYTES;
    cu_result result = CU_DONE;
    while (bytes > 0 && result == CU_DONE) {
        size_t part = bytes < STAGE_BYTES ? (size_t)bytes : STAGE_BYTES;
        result = l->cuda.cuMemcpyDtoHAsync_v2(room, from, part, device->stream);
        if (result == CU_DONE)
            result = l->cuda.cuStreamSynchronize(device->stream);
        if (result == CU_DONE)
            memcpy(host, room, part);
        host += part;
        from += part;
        bytes -= part;
    }
    return result;
}

/* Waits for all work that was queued before. */
sgm_device_result cuda_read(void *self, sgm_device_place place, void *host, uint64_t bytes, char *message)
{
    cuda_device *device = self;
    if (device->recording)
        return cannot_record(message);
    sgm_device_result status = cuda_enter(device, message);
    if (status != SGM_DEVICE_OK)
        return status;
    return cuda_leave_with(device, fetch(device, host, cuda_address(place), bytes), "reading from the device",
                           message);
}

/* Both places are on this device, and do not overlap. */
sgm_device_result cuda_copy(void *self, sgm_device_place from, sgm_device_place to, uint64_t bytes,
                            char *message)
{
    cuda_device *device = self;
    if (bytes == 0)
        return SGM_DEVICE_OK;
    sgm_device_result status = cuda_enter(device, message);
    if (status != SGM_DEVICE_OK)
        return status;
    return cuda_leave_with(device,
                           device->library->cuda.cuMemcpyDtoDAsync_v2(cuda_address(to), cuda_address(from),
                                                                      bytes, device->stream),
                           "copying on the device", message);
}
