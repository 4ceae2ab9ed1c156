/* Source text to machine code, by NVRTC, and machine code to kernels.
 *
 * Products and sums are not contracted to fused multiply-adds unless the text says so (sgm_fma), division
 * and square root are exact, denormal numbers stay: formulas give what they give on the host, but for the
 * last bits of the functions. Which text is compiled, and what is kept on disk, is decided by
 * src/handlers/device/run; here nothing is remembered. */
#include "plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Chooses what is compiled for a device of this compute capability (10 * major + minor): the device's own
 * code ("sm_90") if the compiler knows it; else PTX of the newest capability below it that the compiler
 * knows ("compute_90"), which the driver translates when it loads it. */
sgm_device_result cuda_choose_target(cuda_device *device, int capability, char *message)
{
    const cuda_libraries *l = device->library;
    int known[128], count = 0, best = 0;
    nvrtc_result result = l->nvrtc.nvrtcGetNumSupportedArchs(&count);
    if (result == NVRTC_DONE && count > 0 && count <= (int)(sizeof known / sizeof *known))
        result = l->nvrtc.nvrtcGetSupportedArchs(known);
    else
        count = 0;
    for (int i = 0; i < count && result == NVRTC_DONE; i++)
        if (known[i] <= capability && known[i] > best)
            best = known[i];
    if (best == 0) {
        cuda_say(message, "NVRTC does not compile for this device, of compute capability %d.%d: %s",
                 capability / 10, capability % 10, "an older one may (libnvrtc.so.12 or 11)");
        return SGM_DEVICE_ABSENT;
    }
    snprintf(device->target, sizeof device->target, "%s_%d", best == capability ? "sm" : "compute", best);
    return SGM_DEVICE_OK;
}

#define OPTIONS 2

/* The compiler's options. They are part of what a compiled source depends on (cuda_describe_options), so
 * that a cache on disk does not outlive a change of them. */
static void take_options(const cuda_device *device, char target[64], const char *options[OPTIONS])
{
    snprintf(target, 64, "--gpu-architecture=%s", device->target);
    options[0] = target;
    options[1] = "--fmad=false";
}

/* The options as they are given to the compiler, for the cache's key and for users. */
void cuda_describe_options(const cuda_device *device, char *text, size_t size)
{
    char target[64];
    const char *options[OPTIONS];
    take_options(device, target, options);
    snprintf(text, size, "%s %s", options[0], options[1]);
}

/* The compiler's complaint, cut to the room that `message` has. */
static void take_log(const cuda_device *device, nvrtc_program program, char *message)
{
    size_t bytes = 0;
    char *text = NULL;
    if (device->library->nvrtc.nvrtcGetProgramLogSize(program, &bytes) == NVRTC_DONE && bytes > 1)
        text = calloc(1, bytes + 1);
    if (text != NULL && device->library->nvrtc.nvrtcGetProgramLog(program, text) == NVRTC_DONE)
        cuda_say(message, "%s", text);
    else
        cuda_say(message, "the compiler gives no reason");
    free(text);
}

/* The result as machine code (CUBIN) or as PTX, in memory of this file's own allocator: cuda_drop frees
 * it. */
static sgm_device_result take_binary(const cuda_device *device, nvrtc_program program, void **binary,
                                     size_t *bytes, char *message)
{
    const cuda_libraries *l = device->library;
    bool is_code = device->target[0] == 's';
    nvrtc_result result =
        is_code ? l->nvrtc.nvrtcGetCUBINSize(program, bytes) : l->nvrtc.nvrtcGetPTXSize(program, bytes);
    char *room = result == NVRTC_DONE && *bytes > 0 ? malloc(*bytes) : NULL;
    if (room != NULL)
        result = is_code ? l->nvrtc.nvrtcGetCUBIN(program, room) : l->nvrtc.nvrtcGetPTX(program, room);
    if (room == NULL || result != NVRTC_DONE) {
        cuda_say(message, "what was compiled cannot be taken: %s", l->nvrtc.nvrtcGetErrorString(result));
        free(room);
        return SGM_DEVICE_FAILED;
    }
    *binary = room;
    return SGM_DEVICE_OK;
}

/* Needs no context: NVRTC compiles on the host. SGM_DEVICE_SOURCE means that the text was refused, with
 * the compiler's words in `message`; anything else that fails is not the text's fault. */
sgm_device_result cuda_build(void *self, const char *source, void **binary, size_t *bytes, char *message)
{
    const cuda_device *device = self;
    const cuda_libraries *l = device->library;
    char target[64];
    const char *options[OPTIONS];
    nvrtc_program program = NULL;
    take_options(device, target, options);
    nvrtc_result result = l->nvrtc.nvrtcCreateProgram(&program, source, "sigma.cu", 0, NULL, NULL);
    if (result != NVRTC_DONE) {
        cuda_say(message, "compiling cannot begin: %s", l->nvrtc.nvrtcGetErrorString(result));
        return SGM_DEVICE_FAILED;
    }
    result = l->nvrtc.nvrtcCompileProgram(program, OPTIONS, options);
    sgm_device_result status = SGM_DEVICE_SOURCE;
    if (result == NVRTC_DONE)
        status = take_binary(device, program, binary, bytes, message);
    else
        take_log(device, program, message);
    l->nvrtc.nvrtcDestroyProgram(&program);
    return status;
}

/* For memory that cuda_build gave: the library's own allocator is another one. */
void cuda_drop(void *binary)
{
    free(binary);
}

/* Whether a binary, perhaps from a file, has its whole length. The driver is given no length, and would
 * read beyond the end of a truncated one. An ELF file ends behind its table of sections, whose offset,
 * entry size and count stand at bytes 40, 58 and 60; PTX is a text that ends in 0. */
static bool is_whole(const unsigned char *binary, size_t bytes)
{
    uint64_t sections;
    uint16_t size, count;
    if (bytes < 64 || memcmp(binary, "\177ELF\2", 5) != 0)
        return bytes > 0 && binary[bytes - 1] == '\0'; /* a text for the driver */
    memcpy(&sections, binary + 40, sizeof sections);
    memcpy(&size, binary + 58, sizeof size);
    memcpy(&count, binary + 60, sizeof count);
    return sections <= bytes && (uint64_t)size * count <= bytes - sections;
}

/* The driver translates PTX here, which may take seconds; machine code is only copied to the device. */
sgm_device_result cuda_load_module(void *self, const void *binary, size_t bytes, void **module, char *message)
{
    const cuda_device *device = self;
    cu_module loaded = NULL;
    if (!is_whole(binary, bytes)) {
        cuda_say(message, "the compiled kernels are damaged");
        return SGM_DEVICE_FAILED;
    }
    sgm_device_result status = cuda_enter(device, message);
    if (status != SGM_DEVICE_OK)
        return status;
    status = cuda_check(device, device->library->cuda.cuModuleLoadData(&loaded, binary), "loading kernels",
                        message);
    cuda_leave(device);
    *module = loaded;
    return status;
}

/* The queue may still run kernels of the module, so it is drained first. */
void cuda_unload(void *self, void *module)
{
    const cuda_device *device = self;
    char message[SGM_DEVICE_MESSAGE];
    if (module == NULL || cuda_enter(device, message) != SGM_DEVICE_OK)
        return;
    device->library->cuda.cuStreamSynchronize(device->stream);
    device->library->cuda.cuModuleUnload(module);
    cuda_leave(device);
}

/* The function belongs to its module. */
sgm_device_result cuda_kernel(void *self, void *module, const char *name, void **kernel, char *message)
{
    const cuda_device *device = self;
    cu_function function = NULL;
    sgm_device_result status = cuda_enter(device, message);
    if (status != SGM_DEVICE_OK)
        return status;
    status = cuda_check(device, device->library->cuda.cuModuleGetFunction(&function, module, name),
                        "finding a kernel", message);
    cuda_leave(device);
    *kernel = function;
    return status;
}
