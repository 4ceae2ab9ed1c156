/* How much memory a dataset takes by default. A program of its own, as it stands between the library and the
 * system's sysconf, which the sanitizer of threads calls before anything else. */
#include "pipeline_test.h"

#include <dlfcn.h>
#include <unistd.h>

static long fake_pages = -1; /* -1: as the system says */

/* The library asks this one. */
long sysconf(int name)
{
    static long (*real)(int name);
    if (name == _SC_AVPHYS_PAGES && fake_pages >= 0)
        return fake_pages;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "sysconf");
    return real(name);
}

static int64_t default_limit_with(int64_t megabytes)
{
    fake_pages = (long)(megabytes * (1 << 20) / getpagesize());
    sgm_dataset *read = sgm_dataset_create("read", .extractor = counting_extractor(10, 2));
    sgm_dataset_status status;
    CHECK_OK(sgm_dataset_get_status(read, &status));
    sgm_dataset_free(read);
    fake_pages = -1;
    return status.memory_limit;
}

TEST(the_default_limit_follows_free_memory)
{
    CHECK_INT(default_limit_with(64), 16 << 20);
    CHECK_INT(default_limit_with(256), 64 << 20);
    CHECK_INT(default_limit_with(64 << 10), 128 << 20);
}
