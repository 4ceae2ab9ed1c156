/* Buffers on a device: sizes in classes, and released buffers kept for the next one of their class.
 *
 * Allocation on a device is slow. Work is done in the order in which it was queued, so a buffer may be given
 * to a new owner while older work still uses it: the clearing of the new one comes after that. What fits is
 * decided by the memory that the driver reports; failures say how much is in use. All functions with the lock
 * held.
 */
#include "handlers/device/run/device.h"

#include <sigma/base.h>

#define MINIMUM 256 /* bytes: the smallest class, and the smallest step between classes */
/* Bytes above which classes are multiples of LARGE_STEP, the size of a page on large devices, rather than
 * quarters of a power of 2: a fifth of a large buffer would be too much to lose. */
#define LARGE ((uint64_t)64 << 20)
#define LARGE_STEP ((uint64_t)2 << 20)
/* Bytes of kept buffers; less on small devices, see limit_kept. */
#define MAXIMUM_KEPT ((uint64_t)256 << 20)

/* The size that a buffer of `bytes` really gets: rounded up to a quarter of the power of 2 below it, so that
 * buffers of similar sizes can replace each other. At most a fifth of the result is unused. */
static uint64_t class_of(uint64_t bytes)
{
    if (bytes > LARGE)
        return bytes > UINT64_MAX - LARGE_STEP ? UINT64_MAX
                                               : (bytes + LARGE_STEP - 1) / LARGE_STEP * LARGE_STEP;
    uint64_t power = MINIMUM;
    while (power * 2 <= bytes)
        power *= 2;
    uint64_t step = power / 4 > MINIMUM ? power / 4 : MINIMUM;
    return bytes <= MINIMUM ? MINIMUM : (bytes + step - 1) / step * step;
}

static void destroy(sgm__device *device, sgm__device_buffer *buffer)
{
    device->driver->release(device->self, buffer->memory);
    sgm__free(buffer);
}

void sgm__device_empty(sgm__device *device)
{
    while (device->kept != NULL) {
        sgm__device_buffer *next = device->kept->next;
        destroy(device, device->kept);
        device->kept = next;
    }
    device->kept_bytes = 0;
}

static sgm__device_buffer *take_kept(sgm__device *device, uint64_t bytes)
{
    for (sgm__device_buffer **at = &device->kept; *at != NULL; at = &(*at)->next)
        if ((*at)->bytes == bytes) {
            sgm__device_buffer *found = *at;
            *at = found->next;
            device->kept_bytes -= bytes;
            return found;
        }
    return NULL;
}

/* Says whether one buffer is too large for the device, or all together are. */
static sgm_status fail_full(const sgm__device *device, uint64_t bytes)
{
    char all[32], used[32], wanted[32];
    const sgm_device_info *info = &device->info;
    if (bytes > info->largest)
        return sgm_fail(SGM_ERROR_MEMORY,
                        "%s '%s': a buffer of %s is wanted, but there one has at most %s; a smaller batch "
                        "needs less",
                        device->driver->name, info->name,
                        sgm_bytes_text((double)bytes, wanted, sizeof wanted),
                        sgm_bytes_text((double)info->largest, all, sizeof all));
    return sgm_fail(SGM_ERROR_MEMORY,
                    "%s '%s': its memory of %s is used up: %s are in use by this handler, and %s more are "
                    "wanted; a smaller batch needs less",
                    device->driver->name, info->name, sgm_bytes_text((double)info->memory, all, sizeof all),
                    sgm_bytes_text((double)device->used, used, sizeof used),
                    sgm_bytes_text((double)bytes, wanted, sizeof wanted));
}

/* Allocates from the driver. Kept buffers are freed first if they stand in the way, whether by our count or
 * because the driver says so (other programs use the device, too). */
static sgm_status make(sgm__device *device, uint64_t bytes, sgm__device_buffer **buffer)
{
    char message[SGM_DEVICE_MESSAGE] = "";
    if (bytes > device->info.largest || bytes > device->info.memory ||
        device->used > device->info.memory - bytes)
        return fail_full(device, bytes);
    if (device->used + device->kept_bytes > device->info.memory - bytes)
        sgm__device_empty(device);
    sgm__device_buffer *made = sgm__calloc(1, sizeof *made);
    if (made == NULL)
        return SGM_ERROR_MEMORY;
    made->bytes = bytes;
    sgm_device_result result = device->driver->allocate(device->self, bytes, &made->memory, message);
    if (result == SGM_DEVICE_MEMORY && device->kept != NULL) {
        sgm__device_empty(device);
        result = device->driver->allocate(device->self, bytes, &made->memory, message);
    }
    if (result == SGM_DEVICE_OK) {
        *buffer = made;
        return SGM_OK;
    }
    sgm__free(made);
    return result == SGM_DEVICE_MEMORY ? fail_full(device, bytes) : sgm__device_fail(device, result, message);
}

/* Queues the zeroing of a buffer. Some drivers allocate only now, and so find out now that memory is used
 * up. */
static sgm_status clear(sgm__device *device, const sgm__device_buffer *buffer)
{
    char message[SGM_DEVICE_MESSAGE] = "";
    sgm_device_result result =
        device->driver->clear(device->self, (sgm_device_place){buffer->memory, 0}, buffer->bytes, message);
    if (result == SGM_DEVICE_MEMORY)
        return fail_full(device, buffer->bytes);
    return result == SGM_DEVICE_OK ? SGM_OK : sgm__device_fail(device, result, message);
}

/* A class may be larger than the largest buffer of the device though what is asked for is not. */
sgm_status sgm__device_take(sgm__device *device, uint64_t bytes, sgm__device_buffer **buffer)
{
    uint64_t size = class_of(bytes);
    if (size > device->info.largest && bytes <= device->info.largest)
        size = bytes;
    sgm__device_buffer *taken = take_kept(device, size);
    if (taken == NULL)
        SGM_TRY(make(device, size, &taken));
    sgm_status status = clear(device, taken);
    if (status != SGM_OK) {
        destroy(device, taken);
        return status;
    }
    taken->next = NULL;
    device->used += size;
    *buffer = taken;
    return SGM_OK;
}

/* Frees the oldest kept buffers beyond MAXIMUM_KEPT or an eighth of the device's memory. */
static void limit_kept(sgm__device *device)
{
    uint64_t maximum = device->info.memory / 8 < MAXIMUM_KEPT ? device->info.memory / 8 : MAXIMUM_KEPT;
    while (device->kept != NULL && device->kept_bytes > maximum) {
        sgm__device_buffer **last = &device->kept;
        while ((*last)->next != NULL)
            last = &(*last)->next;
        device->kept_bytes -= (*last)->bytes;
        destroy(device, *last);
        *last = NULL;
    }
}

void sgm__device_give(sgm__device *device, sgm__device_buffer *buffer)
{
    if (buffer == NULL)
        return;
    device->used -= buffer->bytes;
    device->kept_bytes += buffer->bytes;
    buffer->next = device->kept;
    device->kept = buffer;
    limit_kept(device);
}
