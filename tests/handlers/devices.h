/* Handlers for devices: those that tests can do without, with the reason. */
#ifndef SIGMA_TESTS_DEVICES_H
#define SIGMA_TESTS_DEVICES_H

#include <sigma/base.h>
#include <sigma/handler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* PoCL would compile each kernel again for each number of groups: faster to run, twice as slow to test. */
__attribute__((constructor)) static void set_up_devices(void)
{
    setenv("POCL_WORK_GROUP_SPECIALIZATION", "0", 0);
}

#ifdef SIGMA_ADDRESS_SANITIZER
/* PoCL and the compiler in it keep some of their memory to the end; what C++ takes is all theirs. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libpocl\nleak:libLLVM\nleak:libclang\nleak:libstdc++\n";
}
#endif

/* For hundreds of kernels that run once: PoCL compiles them in half the time if it does not optimise, as it
 * does for all other tests. They are kept in a folder of their own, where nobody else finds them. */
__attribute__((unused)) static void compile_in_haste(void)
{
    static bool done;
    char folder[4096];
    char *cache = done ? NULL : sgm_folder_path(SGM_FOLDER_CACHE);
    if (cache != NULL) {
        snprintf(folder, sizeof folder, "%s/tests", cache);
        setenv("SIGMA_CACHE_DIR", folder, 1);
        setenv("POCL_EXTRA_BUILD_FLAGS", "-cl-opt-disable", 0);
        done = true;
    }
    sgm_string_free(cache);
}

/* "opencl", "debug:cuda", ... */
__attribute__((unused)) static bool is_device_name(const char *name)
{
    const char *own = strncmp(name, "debug:", 6) == 0 ? name + 6 : name;
    return strncmp(own, "opencl", 6) == 0 || strncmp(own, "cuda", 4) == 0;
}

/* Whether this machine can run it; else sgm_last_error() says why not. */
__attribute__((unused)) static bool is_here(const char *name)
{
    sgm_handler *handler = sgm_handler_create_with(name, NULL);
    sgm_handler_free(handler);
    return handler != NULL;
}

#endif
