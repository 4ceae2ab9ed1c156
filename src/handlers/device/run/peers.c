/* Sums over several devices: the functions of sgm__peers for drivers that have them (NCCL in the plug-in for
 * CUDA).
 *
 * src/parallel/operator_peers.c calls them, each device from a thread of its own. `join` and `sum` hold the
 * device's lock while they wait for the other devices; `give_up`, which ends such a wait, must not take it.
 */
#include "handlers/device/run/device.h"

/* A driver has all functions of sums or none. */
static sgm_status check_driver(const sgm__device *device)
{
    if (device->driver->sum != NULL)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_UNSUPPORTED, "%s '%s' cannot sum with other devices", device->driver->name,
                    device->info.name);
}

sgm_status sgm__device_identify(void *self, unsigned char *identity)
{
    sgm__device *device = self;
    char message[SGM_DEVICE_MESSAGE] = "";
    SGM_TRY(check_driver(device));
    pthread_mutex_lock(&device->lock);
    sgm_device_result result = device->driver->identify(device->self, identity, message);
    pthread_mutex_unlock(&device->lock);
    return result == SGM_DEVICE_OK ? SGM_OK : sgm__device_fail(device, result, message);
}

/* Without the lock: an invitation belongs to no device. */
sgm_status sgm__device_invite(void *self, unsigned char *invitation)
{
    const sgm__device *device = self;
    char message[SGM_DEVICE_MESSAGE] = "";
    SGM_TRY(check_driver(device));
    SGM__DEVICE_TRY(device, device->driver->invite(invitation, message));
    return SGM_OK;
}

sgm_status sgm__device_join(void *self, const sgm__peer_place *place)
{
    sgm__device *device = self;
    char message[SGM_DEVICE_MESSAGE] = "";
    SGM_TRY(check_driver(device));
    pthread_mutex_lock(&device->lock);
    sgm_device_result result = device->driver->join(device->self, place->invitation, (uint32_t)place->number,
                                                    (uint32_t)place->of, place->seconds, message);
    pthread_mutex_unlock(&device->lock);
    return result == SGM_DEVICE_OK ? SGM_OK : sgm__device_fail(device, result, message);
}

/* Whole buffers from their beginning become addends of the driver. */
static sgm_status sum(sgm__device *device, const sgm__addend *addends, size_t count, sgm_device_type type,
                      double seconds)
{
    char message[SGM_DEVICE_MESSAGE] = "";
    SGM_TRY(sgm__reserve(&device->addends, &device->addend_capacity, count, sizeof *device->addends));
    for (size_t i = 0; i < count; i++) {
        const sgm__device_buffer *buffer = addends[i].buffer;
        device->addends[i] = (sgm_device_addend){{buffer->memory, 0}, (uint64_t)addends[i].elements};
    }
    device->runs = 0; /* a sum is complete on return, and so is all work queued before */
    SGM__DEVICE_TRY(
        device, device->driver->sum(device->self, device->addends, (uint32_t)count, type, seconds, message));
    return SGM_OK;
}

sgm_status sgm__device_sum(void *self, const sgm__addend *addends, size_t count, sgm_dtype dtype,
                           double seconds)
{
    sgm__device *device = self;
    SGM_TRY(check_driver(device));
    if (dtype != SGM_FLOAT32 && dtype != SGM_FLOAT64)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "%s '%s': devices sum float32 and float64, not %s",
                        device->driver->name, device->info.name, sgm_dtype_name(dtype));
    pthread_mutex_lock(&device->lock);
    sgm_status status =
        sum(device, addends, count, dtype == SGM_FLOAT32 ? SGM_DEVICE_FLOAT32 : SGM_DEVICE_FLOAT64, seconds);
    pthread_mutex_unlock(&device->lock);
    return status;
}

/* Called by another thread while this device's thread holds the lock in `join` or `sum`. */
void sgm__device_give_up(void *self)
{
    const sgm__device *device = self;
    if (device->driver->give_up != NULL)
        device->driver->give_up(device->self);
}

void sgm__device_leave(void *self)
{
    sgm__device *device = self;
    if (device->driver->leave == NULL)
        return;
    pthread_mutex_lock(&device->lock);
    device->driver->leave(device->self);
    pthread_mutex_unlock(&device->lock);
}

/* A driver with the functions may still lack something, a library for instance; `identify` says what. */
void sgm__device_describe_sums(sgm__device *device, sgm__text *text)
{
    char message[SGM_DEVICE_MESSAGE] = "";
    unsigned char identity[SGM_DEVICE_IDENTITY];
    if (device->driver->identify == NULL)
        return;
    pthread_mutex_lock(&device->lock);
    sgm_device_result result = device->driver->identify(device->self, identity, message);
    pthread_mutex_unlock(&device->lock);
    if (result == SGM_DEVICE_OK)
        sgm__text_append(text, "gradients of several devices: summed between them, by %s\n",
                         device->driver->sums_by);
    else
        sgm__text_append(text, "gradients of several devices: merged in the computer's memory, as %s\n",
                         message);
}
