/* The handlers `opencl` and `cuda`: opening a device, describing it, its memory functions, and the two
 * tables.
 *
 * Both handlers are the same code over a table of functions that a plug-in gives (../driver.h), found by
 * src/base/plugin.c. Plans are compiled and run in run.c. The lock of a device serialises its sessions, since
 * a driver's functions must not run at the same time; buffers belong to sessions, but their memory is counted
 * and kept here.
 */
#include "handlers/device/run/device.h"

#include "base/plugin.h"

#include <sigma/base.h>
#include <stdio.h>

/* Runs in the queue before `wait` really waits. Reads wait in any case; without a limit, a loop that reads
 * nothing would queue work without end. */
#define MAXIMUM_RUNS 16

/* --- opening --- */

/* Also for a device that could not be opened: `self` of the driver is NULL then. */
static void close_device(void *self)
{
    sgm__device *device = self;
    sgm__device_empty(device);
    if (device->self != NULL)
        device->driver->close(device->self);
    pthread_mutex_destroy(&device->lock);
    sgm__free(device->addends);
    sgm__free(device);
}

/* Opens the device of that number. The driver's message says what is missing. */
static sgm_status open_number(sgm__device *device, int number)
{
    char message[SGM_DEVICE_MESSAGE] = "";
    sgm_device_result result = device->driver->count(&device->of, message);
    if (result == SGM_DEVICE_OK && (uint32_t)number >= device->of)
        return sgm_fail(SGM_ERROR_NOT_FOUND, "%s: there is no device %d: %u of them %s here, numbered from 0",
                        device->driver->name, number, device->of, device->of == 1 ? "is" : "are");
    device->number = (uint32_t)number;
    if (result == SGM_DEVICE_OK)
        result = device->driver->open(device->number, &device->self, &device->info, message);
    if (result == SGM_DEVICE_OK)
        return SGM_OK;
    return sgm_fail(result == SGM_DEVICE_MEMORY ? SGM_ERROR_MEMORY : SGM_ERROR_UNSUPPORTED, "%s: %s",
                    device->driver->name, message);
}

/* `package` says what to install if the plug-in is missing. */
static sgm_status open_device(const char *name, const char *package, const sgm_handler_options *options,
                              void **self)
{
    const void *driver;
    SGM_TRY(sgm__plugin_open(name, SGM_DEVICE_DRIVER_VERSION, package, &driver));
    sgm__device *device = sgm__calloc(1, sizeof *device);
    if (device == NULL)
        return SGM_ERROR_MEMORY;
    pthread_mutex_init(&device->lock, NULL);
    device->driver = driver;
    device->narrow = options->tf32;
    sgm_status status = open_number(device, options->device);
    if (status == SGM_OK)
        *self = device;
    else
        close_device(device);
    return status;
}

static sgm_status open_opencl(const sgm_handler_options *options, void **self)
{
    if (options->tf32)
        return sgm_fail(SGM_ERROR_ARGUMENT, "handler 'opencl': opencl has no option 'tf32', which is one of "
                                            "cuda: leave it out, or take that handler");
    return open_device("opencl", "Debian: ocl-icd-opencl-dev, then build again", options, self);
}

static sgm_status open_cuda(const sgm_handler_options *options, void **self)
{
    return open_device("cuda", "for this one a compiler is enough", options, self);
}

/* --- what it is --- */

static void describe_device(const sgm__device *device, const sgm_device_info *info, uint32_t number,
                            sgm__text *text)
{
    char memory[64];
    sgm__text_append(text, "%s: device %u: %s, %s, %u units%s%s%s\n", device->driver->name, number,
                     info->name, sgm_bytes_text((double)info->memory, memory, sizeof memory), info->units,
                     info->is_processor ? ", this computer's processor" : "",
                     info->has_float64 ? "" : ", no float64",
                     number == device->number && device->of > 1 ? " (this one)" : "");
}

/* Whether the driver multiplies matrices by a vendor's library, found out by asking for a product that every
 * library takes. */
static bool has_library(const sgm__device *device, sgm_device_type type)
{
    const sgm_device_matrix matrix = {.type = type, .row = 64, .column = 1, .batch = 4096};
    const sgm_device_product product = {.rows = 64,
                                        .columns = 64,
                                        .depth = 64,
                                        .batch = 1,
                                        .left = matrix,
                                        .right = matrix,
                                        .result = matrix};
    return device->driver->takes != NULL && device->driver->takes(device->self, &product);
}

/* Lists all devices of the driver, for which the others are opened for a moment. */
static void describe(void *self, sgm__text *text)
{
    sgm__device *device = self;
    char message[SGM_DEVICE_MESSAGE] = "";
    pthread_mutex_lock(&device->lock);
    for (uint32_t i = 0; i < device->of; i++) {
        sgm_device_info info;
        void *other = NULL;
        if (i == device->number) {
            describe_device(device, &device->info, i, text);
        } else if (device->driver->open(i, &other, &info, message) == SGM_DEVICE_OK) {
            describe_device(device, &info, i, text);
            device->driver->close(other);
        } else {
            sgm__text_append(text, "%s: device %u is not usable: %s\n", device->driver->name, i, message);
        }
    }
    bool library = has_library(device, SGM_DEVICE_FLOAT32);
    pthread_mutex_unlock(&device->lock);
    sgm__text_append(text, "driver: %s\n", device->info.driver);
    sgm__text_append(text, "matrix products: %s\n", library ? "the vendor's library" : "own kernels");
    sgm__device_describe_sums(device, text);
}

static const char *bfloat16(void *self)
{
    sgm__device *device = self;
    pthread_mutex_lock(&device->lock);
    bool taken = has_library(device, SGM_DEVICE_BFLOAT16);
    pthread_mutex_unlock(&device->lock);
    return taken ? "the vendor's library, with float32 sums" : "own kernels, with float32 sums";
}

/* What has no kernel at all runs on the host, so every operation with a formula or loop is supported. */
static const char *support(void *self, const sgm_op *op, sgm_dtype dtype)
{
    const sgm__device *device = self;
    if (sgm__device_code_has(op) && (dtype != SGM_FLOAT64 || device->info.has_float64))
        return "kernel";
    if (op->compose != NULL)
        return "composed";
    bool known =
        op->forward != NULL || op->scalar != NULL || (op->flags & (SGM_OP_VIEW | SGM_OP_SOURCE)) != 0;
    return known ? "reference loop" : "none";
}

/* --- memory --- */

static sgm_status allocate(void *self, size_t bytes, void **buffer)
{
    sgm__device *device = self;
    sgm__device_buffer *taken = NULL;
    pthread_mutex_lock(&device->lock);
    sgm_status status = sgm__device_take(device, bytes, &taken);
    pthread_mutex_unlock(&device->lock);
    *buffer = taken;
    return status;
}

static void release(void *self, void *buffer)
{
    sgm__device *device = self;
    pthread_mutex_lock(&device->lock);
    sgm__device_give(device, buffer);
    pthread_mutex_unlock(&device->lock);
}

/* Writes `from` to the buffer, or, if `to` is not NULL, reads the buffer into `to`. A read waits for all
 * queued work. */
static sgm_status transfer(sgm__device *device, const sgm__device_buffer *buffer, size_t offset,
                           const void *from, void *to, size_t bytes)
{
    char message[SGM_DEVICE_MESSAGE] = "";
    sgm_device_result result;
    if (bytes == 0)
        return SGM_OK;
    const sgm_device_place place = {buffer->memory, offset};
    pthread_mutex_lock(&device->lock);
    if (to == NULL) {
        result = device->driver->write(device->self, place, from, bytes, message);
    } else {
        result = device->driver->read(device->self, place, to, bytes, message);
        device->runs = 0;
    }
    pthread_mutex_unlock(&device->lock);
    return result == SGM_DEVICE_OK ? SGM_OK : sgm__device_fail(device, result, message);
}

static sgm_status write(void *self, void *buffer, size_t offset, const void *host, size_t bytes)
{
    return transfer(self, buffer, offset, host, NULL, bytes);
}

static sgm_status read(void *self, void *buffer, size_t offset, void *host, size_t bytes)
{
    return transfer(self, buffer, offset, NULL, host, bytes);
}

/* Later reads and writes are ordered after queued work in any case, so there is no need to wait for a few
 * runs. */
static sgm_status wait(void *self)
{
    sgm__device *device = self;
    char message[SGM_DEVICE_MESSAGE] = "";
    sgm_device_result result = SGM_DEVICE_OK;
    pthread_mutex_lock(&device->lock);
    if (device->runs >= MAXIMUM_RUNS) {
        device->runs = 0;
        result = device->driver->wait(device->self, message);
    }
    pthread_mutex_unlock(&device->lock);
    return result == SGM_DEVICE_OK ? SGM_OK : sgm__device_fail(device, result, message);
}

static const sgm__peers cuda_peers = {.identify = sgm__device_identify,
                                      .invite = sgm__device_invite,
                                      .join = sgm__device_join,
                                      .sum = sgm__device_sum,
                                      .give_up = sgm__device_give_up,
                                      .leave = sgm__device_leave};

/* OpenCL has the first one alone. The maximum only bounds mistakes in typing. */
static const sgm_setting settings[] = {
    SGM__HANDLER_SETTING(device, "which one, by the numbers that 'sigma info' has", .kind = SGM_KIND_INTEGER,
                         .maximum = 1023),
    SGM__HANDLER_SETTING(tf32,
                         "products of float32 may round their operands to 10 bits behind the point: faster",
                         .kind = SGM_KIND_BOOLEAN),
};

/* The table of a handler; only the driver's name, its options, its sums and its doc differ. */
#define DEVICE_HANDLER(handler, options, sums, text)                                                         \
    const sgm__handler_type sgm__##handler##_handler = {.name = #handler,                                    \
                                                        .doc = text,                                         \
                                                        .example = #handler "(device=1)",                    \
                                                        .settings = settings,                                \
                                                        .setting_count = options,                            \
                                                        .flags = SGM__HANDLER_PARTS | SGM__HANDLER_DRAWS |   \
                                                                 SGM__HANDLER_SCALES,                        \
                                                        .open = open_##handler,                              \
                                                        .close = close_device,                               \
                                                        .describe = describe,                                \
                                                        .bfloat16 = bfloat16,                                \
                                                        .support = support,                                  \
                                                        .allocate = allocate,                                \
                                                        .release = release,                                  \
                                                        .write = write,                                      \
                                                        .read = read,                                        \
                                                        .compile = sgm__device_compile,                      \
                                                        .discard = sgm__device_discard,                      \
                                                        .run = sgm__device_run,                              \
                                                        .time = sgm__device_time,                            \
                                                        .check = sgm__device_check,                          \
                                                        .wait = wait,                                        \
                                                        .peers = sums}

DEVICE_HANDLER(opencl, 1, NULL, "devices of any vendor, by OpenCL");
DEVICE_HANDLER(cuda, 2, &cuda_peers, "NVIDIA's GPUs");
