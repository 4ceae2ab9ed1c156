/* The kernels of a program: compiled when a step first needs them.
 *
 * The text of all kernels exists when a plan is compiled (../code/). Those of a product that the driver's
 * library computes are usually never needed, so run.c marks kernels as wanted step by step, and this file
 * compiles those that are wanted and not loaded, all in one source. All functions with the device's lock
 * held.
 */
#include "handlers/device/run/device.h"

#include <stdio.h>

sgm_status sgm__device_kernels_create(const sgm__device_code *code, sgm__device_kernels *kernels)
{
    *kernels = (sgm__device_kernels){.code = code};
    kernels->loaded = sgm__calloc((size_t)code->kernel_count + 1, sizeof *kernels->loaded);
    kernels->wanted = sgm__calloc((size_t)code->kernel_count + 1, sizeof *kernels->wanted);
    return kernels->loaded != NULL && kernels->wanted != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

void sgm__device_kernels_free(sgm__device *device, sgm__device_kernels *kernels)
{
    for (size_t i = 0; i < kernels->module_count; i++)
        device->driver->unload(device->self, kernels->modules[i]);
    sgm__free(kernels->modules);
    sgm__free(kernels->loaded);
    sgm__free(kernels->wanted);
}

void sgm__device_kernels_want(sgm__device_kernels *kernels, int32_t s)
{
    const sgm__device_step *step = &kernels->code->steps[s];
    for (int32_t c = step->first_call; c < step->first_call + step->call_count; c++) {
        int32_t k = kernels->code->calls[c].kernel;
        kernels->wanted[k] = true;
        kernels->incomplete = kernels->incomplete || kernels->loaded[k] == NULL;
    }
}

/* Writes the driver's prelude, the functions that kernels call, and the wanted kernels that are not loaded;
 * returns the number of the latter. */
static int32_t write_source(const sgm__device *device, const sgm__device_kernels *kernels, sgm__text *source)
{
    const sgm__device_code *code = kernels->code;
    int32_t count = 0;
    sgm__text_append(source, "%s", device->driver->prelude);
    if (code->kernel_count > 0)
        sgm__text_append_bytes(source, code->source.data, code->kernel_at[0]);
    for (int32_t k = 0; k < code->kernel_count; k++)
        if (kernels->wanted[k] && kernels->loaded[k] == NULL) {
            sgm__text_append_bytes(source, code->source.data + code->kernel_at[k],
                                   code->kernel_at[k + 1] - code->kernel_at[k]);
            count++;
        }
    return count;
}

/* Compiles and loads a source with the wanted kernels, and looks them up by name. */
static sgm_status load(sgm__device *device, sgm__device_kernels *kernels, const char *source)
{
    char message[SGM_DEVICE_MESSAGE] = "", name[32];
    void *module = NULL;
    SGM_TRY(sgm__reserve(&kernels->modules, &kernels->module_capacity, kernels->module_count + 1,
                         sizeof *kernels->modules));
    SGM_TRY(sgm__device_build(device, source, &module));
    kernels->modules[kernels->module_count++] = module;
    for (int32_t k = 0; k < kernels->code->kernel_count; k++) {
        if (!kernels->wanted[k] || kernels->loaded[k] != NULL)
            continue;
        snprintf(name, sizeof name, "sgm_k%d", k);
        SGM__DEVICE_TRY(device,
                        device->driver->kernel(device->self, module, name, &kernels->loaded[k], message));
    }
    return SGM_OK;
}

/* Returns at once if nothing is missing, as it is called in every run. After a failure it tries again in the
 * next run. */
sgm_status sgm__device_kernels_load(sgm__device *device, sgm__device_kernels *kernels)
{
    sgm__text source = {0};
    double begin = sgm__now();
    if (!kernels->incomplete)
        return SGM_OK;
    int32_t count = write_source(device, kernels, &source);
    sgm_status status = source.failed ? SGM_ERROR_MEMORY : SGM_OK;
    if (status == SGM_OK) {
        status = load(device, kernels, source.data);
        kernels->incomplete = status != SGM_OK;
        sgm__log(SGM_LOG_DEBUG, device->driver->name, "%d of %d kernels: %.2f s", count,
                 kernels->code->kernel_count, sgm__now() - begin);
    }
    sgm__text_free(&source);
    return status;
}
