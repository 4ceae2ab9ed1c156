/* What tests of the CUDA plug-in's driver share. */
#ifndef SIGMA_TEST_CUDA_DRIVER_H
#define SIGMA_TEST_CUDA_DRIVER_H

#include "cuda_stand_in.h"

#include "base/plugin.h"
#include "handlers/device/driver.h"

static _Thread_local char message[SGM_DEVICE_MESSAGE];

#define DONE(call)                                                                                           \
    do {                                                                                                     \
        if ((call) != SGM_DEVICE_OK)                                                                         \
            TEST_FAIL("%s: %s", #call, message);                                                             \
    } while (0)
#define REFUSED(call, result, words)                                                                         \
    do {                                                                                                     \
        CHECK_INT(call, result);                                                                             \
        if (strstr(message, words) == NULL)                                                                  \
            TEST_FAIL("'%s' is not in '%s'", words, message);                                                \
    } while (0)

__attribute__((unused)) static const sgm_device_driver *load(void)
{
    const void *table = NULL;
    CHECK_OK(sgm__plugin_open("cuda", SGM_DEVICE_DRIVER_VERSION, "none", &table));
    return table;
}

__attribute__((unused)) static const sgm_device_driver *open_cuda(uint32_t device, void **self)
{
    sgm_device_info info;
    use_cuda();
    const sgm_device_driver *driver = load();
    DONE(driver->open(device, self, &info, message));
    return driver;
}

#endif
