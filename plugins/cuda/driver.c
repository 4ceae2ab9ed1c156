/* CUDA devices found and opened, and the table of functions that the plug-in gives (sgm_plugin_cuda).
 *
 * The plug-in drives devices for src/handlers/device, which knows plans and kernels; it knows neither
 * (src/handlers/device/driver.h is the whole interface). A device is its primary context, which other
 * users of CUDA in this process share, with one stream of its own. CUDA's current context belongs to a
 * thread, so every function enters the context and leaves it again (cuda_enter, cuda_leave). Each file of
 * this folder has the functions of one concern: compile.c, queue.c, memory.c, products.c, peers.c,
 * libraries.c. */
#include "plugin.h"

#include "handlers/device/code/prelude_cuda.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes a sentence into a message of the interface's fixed size. */
void cuda_say(char *message, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, SGM_DEVICE_MESSAGE, format, arguments);
    va_end(arguments);
}

/* After these errors a context does nothing any more, nor does a new one in this process: the errors from
 * an illegal address (700) to a failed launch (719), without those that say nothing of the device's
 * health: too many resources wanted (701), peer access there already (704) or not there (705), a context
 * in use (708). */
static bool is_lost(cu_result result)
{
    return result >= CU_ILLEGAL_ADDRESS && result <= CU_LAUNCH_FAILED && result != 701 && result != 704 &&
           result != 705 && result != 708;
}

/* Memory that is used up is told apart from all other failures: the caller may free some and try again. */
sgm_device_result cuda_check(const cuda_device *device, cu_result result, const char *doing, char *message)
{
    if (result == CU_DONE)
        return SGM_DEVICE_OK;
    const char *name = NULL, *text = NULL;
    device->library->cuda.cuGetErrorName(result, &name);
    device->library->cuda.cuGetErrorString(result, &text);
    cuda_say(message, "%s failed: %s (%s)%s", doing, text != NULL ? text : "no reason is given",
             name != NULL ? name : "unknown",
             is_lost(result) ? "; this process cannot use the device any more: start it again" : "");
    return result == CU_OUT_OF_MEMORY ? SGM_DEVICE_MEMORY : SGM_DEVICE_FAILED;
}

/* Pushes the context onto this thread's stack of contexts, so that other users of CUDA on the thread find
 * theirs again behind cuda_leave. */
sgm_device_result cuda_enter(const cuda_device *device, char *message)
{
    return cuda_check(device, device->library->cuda.cuCtxPushCurrent_v2(device->context),
                      "entering the device", message);
}

void cuda_leave(const cuda_device *device)
{
    cu_context before;
    device->library->cuda.cuCtxPopCurrent_v2(&before);
}

/* Most functions end so: with one call that is checked, and the context left. */
sgm_device_result cuda_leave_with(const cuda_device *device, cu_result result, const char *doing,
                                  char *message)
{
    sgm_device_result status = cuda_check(device, result, doing, message);
    cuda_leave(device);
    return status;
}

/* A buffer of this plug-in is an address on the device. */
cu_pointer cuda_address(sgm_device_place place)
{
    return (cu_pointer)(uintptr_t)place.buffer + place.offset;
}

/* Devices of the driver, which CUDA_VISIBLE_DEVICES restricts and numbers. */
static sgm_device_result count_devices(uint32_t *devices, char *message)
{
    int count = 0;
    const cuda_libraries *library = cuda_load(message);
    *devices = 0;
    if (library == NULL)
        return SGM_DEVICE_ABSENT;
    cuda_device none = {.library = library};
    cu_result result = library->cuda.cuDeviceGetCount(&count);
    *devices = result == CU_DONE && count > 0 ? (uint32_t)count : 0;
    return cuda_check(&none, result, "counting the devices", message);
}

/* Asks for all that the library must know of the device, and chooses what to compile for it. A pool of
 * memory is used where the driver has one. */
static sgm_device_result ask(cuda_device *device, uint32_t number, sgm_device_info *info, char *message)
{
    const cuda_libraries *l = device->library;
    int group = 0, local = 0, units = 0, major = 0, minor = 0, pools = 0;
    const struct {
        cu_attribute attribute;
        int *value;
    } attributes[] = {{CU_MAX_THREADS_PER_BLOCK, &group}, {CU_SHARED_PER_BLOCK, &local},
                      {CU_MULTIPROCESSORS, &units},       {CU_CAPABILITY_MAJOR, &major},
                      {CU_CAPABILITY_MINOR, &minor},      {CU_HAS_POOLS, &pools}};
    size_t memory = 0;
    cu_result result = l->cuda.cuDeviceGet(&device->number, (int)number);
    if (result == CU_DONE)
        result = l->cuda.cuDeviceGetName(info->name, (int)sizeof info->name, device->number);
    if (result == CU_DONE)
        result = l->cuda.cuDeviceTotalMem_v2(&memory, device->number);
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes && result == CU_DONE; i++)
        result = l->cuda.cuDeviceGetAttribute(attributes[i].value, attributes[i].attribute, device->number);
    if (result == CU_DONE && pools != 0 &&
        l->cuda.cuDeviceGetDefaultMemPool(&device->pool, device->number) != CU_DONE)
        device->pool = NULL;
    if (result != CU_DONE)
        return cuda_check(device, result, "asking the device", message);
    info->memory = info->largest = memory;
    info->local = (uint32_t)local;
    info->units = (uint32_t)units;
    info->group = (uint32_t)group;
    info->has_float64 = true;
    return cuda_choose_target(device, 10 * major + minor, message);
}

/* Names of driver and compiler for users, and all else that compiled sources depend on. */
static void describe_driver(const cuda_device *device, sgm_device_info *info)
{
    int major = 0, minor = 0;
    device->library->nvrtc.nvrtcVersion(&major, &minor);
    snprintf(info->driver, sizeof info->driver, "CUDA %d.%d, NVRTC %d.%d, %s",
             device->library->version / 1000, device->library->version % 1000 / 10, major, minor,
             device->target);
    cuda_describe_options(device, info->compiler, sizeof info->compiler);
}

/* Also for a device that could not be opened to the end: what is missing is NULL. Peers are left first, as
 * they may wait for this device. */
static void close_device(void *self)
{
    cuda_device *device = self;
    char message[SGM_DEVICE_MESSAGE];
    const cuda_libraries *l = device->library;
    cuda_leave_peers(device);
    if (device->context != NULL && cuda_enter(device, message) == SGM_DEVICE_OK) {
        if (device->stream != NULL)
            l->cuda.cuStreamSynchronize(device->stream);
        cuda_products_close(device);
        cuda_release_late(device);
        cuda_memory_close(device);
        if (device->stream != NULL)
            l->cuda.cuStreamDestroy_v2(device->stream);
        cuda_leave(device);
    }
    if (device->context != NULL)
        l->cuda.cuDevicePrimaryCtxRelease_v2(device->number);
    free(device->released);
    free(device);
}

/* Retains the primary context and makes the queue. The stream does not wait for the default stream, so
 * other users of CUDA in this process do not hold it up. */
static sgm_device_result begin(cuda_device *device, char *message)
{
    const cuda_libraries *l = device->library;
    cu_result result = l->cuda.cuDevicePrimaryCtxRetain(&device->context, device->number);
    if (result != CU_DONE)
        return cuda_check(device, result, "opening the device", message);
    sgm_device_result status = cuda_enter(device, message);
    if (status != SGM_DEVICE_OK)
        return status;
    status = cuda_check(device, l->cuda.cuStreamCreate(&device->stream, CU_STREAM_APART),
                        "making the device's queue", message);
    if (status == SGM_DEVICE_OK)
        status = cuda_memory_open(device, message);
    cuda_leave(device);
    return status;
}

/* The driver is loaded already, as count_devices has succeeded. *info is filled in by ask and
 * describe_driver. */
static sgm_device_result open_device(uint32_t number, void **self, sgm_device_info *info, char *message)
{
    uint32_t count;
    sgm_device_result status = count_devices(&count, message);
    if (status != SGM_DEVICE_OK)
        return status;
    if (number >= count) {
        cuda_say(message, "there is no device %u: the driver has %u, counted from 0", (unsigned)number,
                 (unsigned)count);
        return SGM_DEVICE_ABSENT;
    }
    cuda_device *device = calloc(1, sizeof *device);
    if (device == NULL) {
        cuda_say(message, "the computer's memory is used up");
        return SGM_DEVICE_MEMORY;
    }
    memset(info, 0, sizeof *info);
    device->library = cuda_load(message);
    status = cuda_load_compiler(message) ? ask(device, number, info, message) : SGM_DEVICE_ABSENT;
    if (status == SGM_DEVICE_OK)
        status = begin(device, message);
    if (status != SGM_DEVICE_OK) {
        close_device(device);
        return status;
    }
    describe_driver(device, info);
    *self = device;
    return SGM_DEVICE_OK;
}

__attribute__((visibility("default"))) sgm_device_plugin sgm_plugin_cuda;

/* The only name that the plug-in exports. */
const sgm_device_driver *sgm_plugin_cuda(void)
{
    static const sgm_device_driver driver = {
        .version = SGM_DEVICE_DRIVER_VERSION,
        .name = "cuda",
        .prelude = SGM_PRELUDE_CUDA,
        .count = count_devices,
        .open = open_device,
        .close = close_device,
        .allocate = cuda_allocate,
        .release = cuda_release,
        .clear = cuda_clear,
        .write = cuda_write,
        .read = cuda_read,
        .copy = cuda_copy,
        .build = cuda_build,
        .drop = cuda_drop,
        .load = cuda_load_module,
        .unload = cuda_unload,
        .kernel = cuda_kernel,
        .launch = cuda_launch,
        .wait = cuda_wait,
        .takes = cuda_takes,
        .multiply = cuda_multiply,
        .record = cuda_record,
        .keep = cuda_keep,
        .replay = cuda_replay,
        .forget = cuda_forget,
        .identify = cuda_identify,
        .invite = cuda_invite,
        .join = cuda_join,
        .sum = cuda_sum,
        .give_up = cuda_give_up,
        .leave = cuda_leave_peers,
        .sums_by = "NCCL",
    };
    return &driver;
}
