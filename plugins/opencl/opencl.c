/* Drives OpenCL devices, of any vendor, by OpenCL 1.2: the table of functions that the plug-in gives
 * (sgm_plugin_opencl).
 *
 * What is run is decided by src/handlers/device, whose interface is src/handlers/device/driver.h; plans
 * and operations are not known here. A device has one queue, in order. Places in buffers are a buffer and
 * an offset: OpenCL 1.2 has no pointers on the host, so each argument of a kernel is passed as two, and
 * the prelude (prelude_opencl.h) adds them. Products by a vendor's library, recordings and sums over
 * devices are not offered. */
#include "errors.h"
#include "staging.h"

#include "handlers/device/code/prelude_opencl.h"
#include "handlers/device/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAXIMUM_PLATFORMS 16
#define MAXIMUM_DEVICES 64
#define MINIMUM_LOCAL 16384 /* bytes of a group's memory, */
#define MINIMUM_GROUP 64    /* and its work-items: kernels count on that */
#define TOGETHER 32         /* launches that are handed to the device at once: a flush takes time */
#define NO_PLATFORM (-1001) /* of the loader: CL_PLATFORM_NOT_FOUND_KHR */

/* An opened device, the `self` of the driver's functions. */
typedef struct device {
    cl_device_id id;
    cl_context context;
    cl_command_queue queue;
    opencl_staging staging;
    const char *options; /* of the compiler */
    bool keeps_itself;   /* what it compiles, on disk */
    uint32_t waiting;    /* launches that were not handed over yet */
} device;

/* A loaded program and its kernels, which are released with it. */
typedef struct module {
    cl_program program;
    cl_kernel *kernels;
    size_t count;
} module;

__attribute__((visibility("default"))) const sgm_device_driver *sgm_plugin_opencl(void);

/* --- devices --- */

/* The order in which devices are numbered: GPUs, accelerators, others, and the computer's own processor
 * last, for which the handler `cpu` is better. */
static int rank_of(cl_device_type type)
{
    return (type & CL_DEVICE_TYPE_GPU) != 0           ? 0
           : (type & CL_DEVICE_TYPE_ACCELERATOR) != 0 ? 1
           : (type & CL_DEVICE_TYPE_CPU) != 0         ? 3
                                                      : 2;
}

/* Adds a platform's devices of one rank. */
static void add_devices(cl_platform_id platform, int rank, cl_device_id *devices, uint32_t *count)
{
    cl_device_id found[MAXIMUM_DEVICES];
    cl_uint found_count = 0;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MAXIMUM_DEVICES, found, &found_count) != CL_SUCCESS)
        return; /* a platform without devices says so by an error */
    for (cl_uint i = 0; i < found_count && i < MAXIMUM_DEVICES && *count < MAXIMUM_DEVICES; i++) {
        cl_device_type type = 0;
        if (clGetDeviceInfo(found[i], CL_DEVICE_TYPE, sizeof type, &type, NULL) == CL_SUCCESS &&
            rank_of(type) == rank)
            devices[(*count)++] = found[i];
    }
}

/* All devices of all platforms, in the order of their ranks; the numbers are stable as long as the drivers
 * are the same. Without any, the message tells a missing driver from a driver without devices. */
static sgm_device_result find_devices(cl_device_id *devices, uint32_t *count, char *message)
{
    cl_platform_id platforms[MAXIMUM_PLATFORMS];
    cl_uint platform_count = 0;
    *count = 0;
    cl_int error = clGetPlatformIDs(MAXIMUM_PLATFORMS, platforms, &platform_count);
    if (error == NO_PLATFORM || (error == CL_SUCCESS && platform_count == 0))
        return opencl_fail(SGM_DEVICE_ABSENT, message,
                           "no OpenCL driver is installed: see the vendor of the graphics card, or Debian's "
                           "pocl-opencl-icd for the processor");
    if (error != CL_SUCCESS)
        return opencl_fail(SGM_DEVICE_ABSENT, message,
                           "the OpenCL drivers cannot be listed: %s (OpenCL error %d)", opencl_text(error),
                           (int)error);
    for (int rank = 0; rank < 4; rank++)
        for (cl_uint i = 0; i < platform_count && i < MAXIMUM_PLATFORMS; i++)
            add_devices(platforms[i], rank, devices, count);
    if (*count == 0)
        return opencl_fail(SGM_DEVICE_ABSENT, message,
                           "an OpenCL driver is installed, but it finds no device");
    return SGM_DEVICE_OK;
}

/* The library counts devices before it opens one of them. */
static sgm_device_result count_devices(uint32_t *count, char *message)
{
    cl_device_id devices[MAXIMUM_DEVICES];
    return find_devices(devices, count, message);
}

/* A property that is a number. Some have 4 bytes and some 8; little-endian, both fill the low bytes of
 * `value` (check() refuses devices that are not, and the host is little-endian, too). 0: not known. */
static uint64_t number_of(cl_device_id id, cl_device_info what)
{
    /* Numbers are of 4 or 8 bytes, little end first. */
    uint64_t value = 0;
    size_t size = 0;
    unsigned char bytes[sizeof value] = {0};
    if (clGetDeviceInfo(id, what, sizeof bytes, bytes, &size) == CL_SUCCESS)
        memcpy(&value, bytes, sizeof value);
    return value;
}

/* A property that is a text, without spaces in front, cut to `size`. */
static void string_of(cl_device_id id, cl_device_info what, char *text, size_t size)
{
    char found[1024] = "";
    if (clGetDeviceInfo(id, what, sizeof found, found, NULL) != CL_SUCCESS)
        found[0] = '\0';
    found[sizeof found - 1] = '\0';
    const char *start = found + strspn(found, " ");
    snprintf(text, size, "%.*s", (int)size - 1, start);
}

/* The compiler's options. Division and square root are rounded correctly where the device can; -w, as
 * warnings about generated text help nobody. */
static const char *options_for(cl_device_id id)
{
    bool rounds =
        (number_of(id, CL_DEVICE_SINGLE_FP_CONFIG) & (uint64_t)CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
    return rounds ? "-cl-std=CL1.2 -w -cl-fp32-correctly-rounded-divide-sqrt" : "-cl-std=CL1.2 -w";
}

/* Whether the device is PoCL's, which keeps what it compiles on disk by itself: it compiles a kernel when
 * it is first started, and finds it again by its source. */
static bool is_pocl(cl_device_id id)
{
    char name[64] = "";
    cl_platform_id platform;
    return clGetDeviceInfo(id, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL) == CL_SUCCESS &&
           clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name, name, NULL) == CL_SUCCESS &&
           strcmp(name, "Portable Computing Language") == 0;
}

/* What a compiled source depends on beside device and driver. The platform's version names the compiler's
 * (LLVM's for PoCL), which can change while the driver's stays. */
static void describe_compiler(cl_device_id id, sgm_device_info *info)
{
    char version[sizeof info->compiler - 128] = "";
    cl_platform_id platform;
    if (clGetDeviceInfo(id, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL) != CL_SUCCESS ||
        clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof version, version, NULL) != CL_SUCCESS)
        version[0] = '\0';
    snprintf(info->compiler, sizeof info->compiler, "%.*s; %s", (int)sizeof version - 1, version,
             options_for(id));
}

/* All that the library must know of a device. */
static void describe(cl_device_id id, sgm_device_info *info)
{
    char version[128], driver[96];
    *info =
        (sgm_device_info){.memory = number_of(id, CL_DEVICE_GLOBAL_MEM_SIZE),
                          .largest = number_of(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE),
                          .local = (uint32_t)number_of(id, CL_DEVICE_LOCAL_MEM_SIZE),
                          .units = (uint32_t)number_of(id, CL_DEVICE_MAX_COMPUTE_UNITS),
                          .group = (uint32_t)number_of(id, CL_DEVICE_MAX_WORK_GROUP_SIZE),
                          .is_processor = (number_of(id, CL_DEVICE_TYPE) & (uint64_t)CL_DEVICE_TYPE_CPU) != 0,
                          .has_float64 = number_of(id, CL_DEVICE_DOUBLE_FP_CONFIG) != 0};
    string_of(id, CL_DEVICE_NAME, info->name, sizeof info->name);
    string_of(id, CL_DEVICE_VERSION, version, sizeof version);
    string_of(id, CL_DRIVER_VERSION, driver, sizeof driver);
    /* PoCL's version has its whole configuration in it. */
    version[strcspn(version, ",")] = '\0';
    snprintf(info->driver, sizeof info->driver, "%s, driver %s", version, driver);
    describe_compiler(id, info);
}

/* Whether the device has what all kernels need; the message tells the user what it lacks. */
static sgm_device_result check(cl_device_id id, const sgm_device_info *info, char *message)
{
    char version[128];
    int major = 0, minor = 0;
    string_of(id, CL_DEVICE_VERSION, version, sizeof version);
    bool known = sscanf(version, "OpenCL %d.%d", &major, &minor) == 2;
    if (!known || major * 10 + minor < 12)
        return opencl_fail(SGM_DEVICE_ABSENT, message, "device '%s' has '%s'; OpenCL 1.2 or newer is needed",
                           info->name, version);
    if (number_of(id, CL_DEVICE_AVAILABLE) == 0)
        return opencl_fail(SGM_DEVICE_ABSENT, message, "device '%s' is in use or switched off", info->name);
    if (number_of(id, CL_DEVICE_COMPILER_AVAILABLE) == 0)
        return opencl_fail(SGM_DEVICE_ABSENT, message,
                           "device '%s' comes without a compiler, which is needed", info->name);
    if (number_of(id, CL_DEVICE_ENDIAN_LITTLE) == 0)
        return opencl_fail(SGM_DEVICE_ABSENT, message, "device '%s' stores the high byte first", info->name);
    if (info->local < MINIMUM_LOCAL || info->group < MINIMUM_GROUP)
        return opencl_fail(
            SGM_DEVICE_ABSENT, message,
            "device '%s' has groups of %u work-items with %u bytes; %u with %u bytes are needed", info->name,
            info->group, info->local, (unsigned)MINIMUM_GROUP, (unsigned)MINIMUM_LOCAL);
    return SGM_DEVICE_OK;
}

/* Also of a device that could not be opened to the end; queued work is finished first. */
static void close_device(void *self)
{
    device *d = self;
    if (d->queue != NULL) {
        clFinish(d->queue);
        opencl_staging_close(&d->staging, d->queue);
        clReleaseCommandQueue(d->queue);
    }
    if (d->context != NULL)
        clReleaseContext(d->context);
    free(d);
}

/* Context, queue and staging. After a failure close_device releases what there is. */
static sgm_device_result start(device *d, const sgm_device_info *info, char *message)
{
    cl_int error = CL_SUCCESS;
    d->context = clCreateContext(NULL, 1, &d->id, NULL, NULL, &error);
    if (error == CL_SUCCESS)
        d->queue = clCreateCommandQueue(d->context, d->id, 0, &error);
    if (error == CL_SUCCESS)
        error = opencl_staging_open(&d->staging, d->context, d->queue);
    if (error != CL_SUCCESS)
        return opencl_fail(SGM_DEVICE_ABSENT, message, "device '%s' cannot be opened: %s (OpenCL error %d)",
                           info->name, opencl_text(error), (int)error);
    d->options = options_for(d->id);
    d->keeps_itself = is_pocl(d->id);
    return SGM_DEVICE_OK;
}

/* Devices are looked for anew, as their handles are not kept; the order is always the same. */
static sgm_device_result open_device(uint32_t number, void **self, sgm_device_info *info, char *message)
{
    cl_device_id devices[MAXIMUM_DEVICES];
    uint32_t count;
    sgm_device_result result = find_devices(devices, &count, message);
    if (result != SGM_DEVICE_OK)
        return result;
    if (number >= count)
        return opencl_fail(SGM_DEVICE_ABSENT, message, "there is no device %u: there are %u, numbered from 0",
                           number, count);
    describe(devices[number], info);
    result = check(devices[number], info, message);
    if (result != SGM_DEVICE_OK)
        return result;
    device *d = calloc(1, sizeof *d);
    if (d == NULL)
        return opencl_fail(SGM_DEVICE_FAILED, message, "the computer's memory is used up");
    d->id = devices[number];
    result = start(d, info, message);
    if (result == SGM_DEVICE_OK)
        *self = d;
    else
        close_device(d);
    return result;
}

/* --- memory --- */

/* Drivers may defer the allocation until the buffer is first used: then clear() is the one that fails. */
static sgm_device_result allocate(void *self, uint64_t bytes, void **buffer, char *message)
{
    const device *d = self;
    cl_int error;
    cl_mem memory = clCreateBuffer(d->context, CL_MEM_READ_WRITE, (size_t)bytes, NULL, &error);
    *buffer = memory;
    return opencl_result_of_memory(error, "giving memory", message);
}

/* OpenCL counts references: queued work keeps the buffer until it is done. */
static void release(void *self, void *buffer)
{
    (void)self;
    clReleaseMemObject(buffer); /* it stays until the queue is done with it */
}

/* Queued. This is often the first use of a buffer, so here it may turn out that there is no memory for it. */
static sgm_device_result clear(void *self, sgm_device_place place, uint64_t bytes, char *message)
{
    const device *d = self;
    const unsigned char zero = 0;
    return opencl_result_of_memory(clEnqueueFillBuffer(d->queue, place.buffer, &zero, 1, (size_t)place.offset,
                                                       (size_t)bytes, 0, NULL, NULL),
                                   "clearing memory", message);
}

/* `host` has been read when this returns. Before new bytes come, all launches so far are handed to the
 * device: a write is the beginning of the next minibatch, and the device may work on this one meanwhile. */
static sgm_device_result write_buffer(void *self, sgm_device_place place, const void *host, uint64_t bytes,
                                      char *message)
{
    device *d = self;
    if (d->waiting > 0) /* the next minibatch comes: the device may begin with the rest of this one */
        clFlush(d->queue);
    d->waiting = 0;
    return opencl_result(opencl_staging_write(&d->staging, d->queue, place.buffer, place.offset, host, bytes),
                         "writing to its memory", message);
}

/* Blocks, and flushes by that. */
static sgm_device_result read_buffer(void *self, sgm_device_place place, void *host, uint64_t bytes,
                                     char *message)
{
    device *d = self;
    d->waiting = 0;
    return opencl_result(clEnqueueReadBuffer(d->queue, place.buffer, CL_TRUE, (size_t)place.offset,
                                             (size_t)bytes, host, 0, NULL, NULL),
                         "reading its memory", message);
}

/* Queued; both places are on this device. */
static sgm_device_result copy(void *self, sgm_device_place from, sgm_device_place to, uint64_t bytes,
                              char *message)
{
    const device *d = self;
    return opencl_result(clEnqueueCopyBuffer(d->queue, from.buffer, to.buffer, (size_t)from.offset,
                                             (size_t)to.offset, (size_t)bytes, 0, NULL, NULL),
                         "copying in its memory", message);
}

/* --- programs --- */

/* The compiler's complaint, cut to the room that `message` has. */
static sgm_device_result fail_source(const device *d, cl_program program, char *message)
{
    size_t size = 0;
    char *log = NULL;
    if (clGetProgramBuildInfo(program, d->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &size) == CL_SUCCESS)
        log = calloc(1, size + 1);
    if (log != NULL)
        clGetProgramBuildInfo(program, d->id, CL_PROGRAM_BUILD_LOG, size, log, NULL);
    opencl_fail(SGM_DEVICE_SOURCE, message, "%s",
                log != NULL && log[0] != '\0' ? log : "the compiler says nothing");
    free(log);
    return SGM_DEVICE_SOURCE;
}

/* The binary in memory of this file's own allocator. The program is of one device, so there is one binary. */
static sgm_device_result take_binary(cl_program program, void **binary, size_t *bytes, char *message)
{
    cl_int error = clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof *bytes, bytes, NULL);
    if (error == CL_SUCCESS && *bytes == 0)
        return opencl_fail(SGM_DEVICE_FAILED, message, "the driver gives no binary");
    unsigned char *room = error == CL_SUCCESS ? malloc(*bytes) : NULL;
    if (error == CL_SUCCESS && room == NULL)
        return opencl_fail(SGM_DEVICE_FAILED, message, "the computer's memory is used up");
    if (error == CL_SUCCESS)
        error = clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof room, &room, NULL);
    if (error != CL_SUCCESS) {
        free(room);
        return opencl_result(error, "taking the binary", message);
    }
    *binary = room;
    return SGM_DEVICE_OK;
}

/* For a driver that keeps what it compiles, the source is the binary: a real binary of PoCL's would have
 * all kernels compiled for groups of any size, which takes as long as compiling those that are started. */
static sgm_device_result take_source(const char *source, void **binary, size_t *bytes, char *message)
{
    *binary = strdup(source);
    *bytes = strlen(source);
    return *binary != NULL ? SGM_DEVICE_OK
                           : opencl_fail(SGM_DEVICE_FAILED, message, "the computer's memory is used up");
}

/* SGM_DEVICE_SOURCE means that the text was refused, with the compiler's words in `message`. */
static sgm_device_result build(void *self, const char *source, void **binary, size_t *bytes, char *message)
{
    const device *d = self;
    cl_int error;
    cl_program program = clCreateProgramWithSource(d->context, 1, &source, NULL, &error);
    if (error != CL_SUCCESS)
        return opencl_result(error, "taking the source", message);
    error = clBuildProgram(program, 1, &d->id, d->options, NULL, NULL);
    sgm_device_result result = error == CL_BUILD_PROGRAM_FAILURE ? fail_source(d, program, message)
                               : error != CL_SUCCESS             ? opencl_result(error, "compiling", message)
                               : d->keeps_itself                 ? take_source(source, binary, bytes, message)
                                                 : take_binary(program, binary, bytes, message);
    clReleaseProgram(program);
    return result;
}

/* For memory that build() gave: the library's own allocator is another one. */
static void drop(void *binary)
{
    free(binary);
}

/* Kernels before their program; queued launches keep what they need. */
static void unload(void *self, void *loaded)
{
    (void)self;
    module *m = loaded;
    for (size_t i = 0; i < m->count; i++)
        clReleaseKernel(m->kernels[i]);
    if (m->program != NULL)
        clReleaseProgram(m->program);
    free(m->kernels);
    free(m);
}

/* OpenCL wants a program built also when it comes from a binary. A binary of another driver fails here,
 * and the library compiles anew. */
static sgm_device_result load(void *self, const void *binary, size_t bytes, void **loaded, char *message)
{
    const device *d = self;
    const unsigned char *binaries[] = {binary};
    cl_int error, status = CL_SUCCESS;
    module *m = calloc(1, sizeof *m);
    if (m == NULL)
        return opencl_fail(SGM_DEVICE_FAILED, message, "the computer's memory is used up");
    m->program = d->keeps_itself
                     ? clCreateProgramWithSource(d->context, 1, &(const char *){binary}, &bytes, &error)
                     : clCreateProgramWithBinary(d->context, 1, &d->id, &bytes, binaries, &status, &error);
    if (error == CL_SUCCESS && status != CL_SUCCESS)
        error = status;
    if (error == CL_SUCCESS)
        error = clBuildProgram(m->program, 1, &d->id, d->options, NULL, NULL);
    if (error != CL_SUCCESS) {
        unload(self, m);
        return opencl_result(error, "loading the binary", message);
    }
    *loaded = m;
    return SGM_DEVICE_OK;
}

/* Makes the kernel object and notes it in its module. */
static sgm_device_result find_kernel(void *self, void *loaded, const char *name, void **kernel, char *message)
{
    (void)self;
    module *m = loaded;
    cl_kernel *more = realloc(m->kernels, (m->count + 1) * sizeof *more);
    if (more == NULL)
        return opencl_fail(SGM_DEVICE_FAILED, message, "the computer's memory is used up");
    m->kernels = more;
    cl_int error;
    cl_kernel found = clCreateKernel(m->program, name, &error);
    if (error != CL_SUCCESS)
        return opencl_fail(SGM_DEVICE_FAILED, message, "taking kernel '%s': %s (OpenCL error %d)", name,
                           opencl_text(error), (int)error);
    m->kernels[m->count++] = found;
    *kernel = found;
    return SGM_DEVICE_OK;
}

/* --- running --- */

/* Queues a launch. Arguments are set on the kernel object and copied by the enqueueing, so the next launch
 * may set others. Drivers hand work to the device when they are told to: every TOGETHER launches. */
static sgm_device_result launch(void *self, const sgm_device_launch *launched, char *message)
{
    device *d = self;
    cl_int error = CL_SUCCESS;
    for (uint32_t i = 0; i < launched->place_count && error == CL_SUCCESS; i++) {
        cl_mem buffer = launched->places[i].buffer;
        cl_ulong offset = launched->places[i].offset;
        error = clSetKernelArg(launched->kernel, 2 * i, sizeof buffer, &buffer);
        if (error == CL_SUCCESS)
            error = clSetKernelArg(launched->kernel, 2 * i + 1, sizeof offset, &offset);
    }
    size_t group = launched->group, all = (size_t)launched->groups * group;
    if (error == CL_SUCCESS)
        error = clEnqueueNDRangeKernel(d->queue, launched->kernel, 1, NULL, &all, &group, 0, NULL, NULL);
    if (error == CL_SUCCESS && ++d->waiting == TOGETHER) {
        d->waiting = 0;
        error = clFlush(d->queue);
    }
    return opencl_result(error, "starting a kernel", message);
}

/* Until the queue is empty; tells of failures of earlier work. */
static sgm_device_result wait_for(void *self, char *message)
{
    device *d = self;
    d->waiting = 0;
    return opencl_result(clFinish(d->queue), "waiting", message);
}

/* The only name that the plug-in exports. Functions that are not here are NULL: the library does without. */
const sgm_device_driver *sgm_plugin_opencl(void)
{
    static const sgm_device_driver driver = {.version = SGM_DEVICE_DRIVER_VERSION,
                                             .name = "opencl",
                                             .prelude = SGM_PRELUDE_OPENCL,
                                             .count = count_devices,
                                             .open = open_device,
                                             .close = close_device,
                                             .allocate = allocate,
                                             .release = release,
                                             .clear = clear,
                                             .write = write_buffer,
                                             .read = read_buffer,
                                             .copy = copy,
                                             .build = build,
                                             .drop = drop,
                                             .load = load,
                                             .unload = unload,
                                             .kernel = find_kernel,
                                             .launch = launch,
                                             .wait = wait_for};
    return &driver;
}
