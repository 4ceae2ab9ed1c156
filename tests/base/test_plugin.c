/* Plug-ins: found, of the right version, and missed with a sentence. */
#include "test.h"

#include "base/folder.h"
#include "base/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <unistd.h>

typedef struct sample_table {
    uint32_t version;
    int (*twice)(int number);
} sample_table;

static void point_to(const char *before)
{
    char own[4096], folders[8192];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    CHECK(length > 0);
    own[length > 0 ? length : 0] = '\0';
    *strrchr(own, '/') = '\0';
    snprintf(folders, sizeof folders, "%s%s", before, own);
    setenv("SIGMA_PLUGIN_PATH", folders, 1);
}

TEST(a_plugin_is_found_in_the_folders_of_the_variable)
{
    static const char *const before[] = {"", "/nowhere:", ":", "::/nowhere:"};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        const void *table = NULL;
        point_to(before[i]);
        CHECK_OK(sgm__plugin_open("sample", 7, "Debian: sample-dev", &table));
        if (table != NULL)
            CHECK_INT(((const sample_table *)table)->twice(21), 42);
    }
}

TEST(another_version_is_refused)
{
    const void *table = NULL;
    point_to("");
    CHECK_ERROR(sgm__plugin_open("sample", 8, "Debian: sample-dev", &table),
                "of version 7, this library wants 8");
    CHECK(table == NULL);
}

/* The folder of the library, or of this program where it contains the library. */
static void own_folder(char path[PATH_MAX])
{
    Dl_info info;
    CHECK(dladdr((const void *)(uintptr_t)sgm__plugin_open, &info) != 0);
    CHECK(realpath(info.dli_fname, path) != NULL);
    *strrchr(path, '/') = '\0';
}

TEST(one_that_is_not_there_says_where_it_was_looked_for)
{
    const void *table = NULL;
    char own[PATH_MAX], beside[PATH_MAX + 20];
    own_folder(own);
    snprintf(beside, sizeof beside, "%s/plugins, ", own);
    setenv("SIGMA_PLUGIN_PATH", "/nowhere:/neither", 1);
    CHECK_ERROR(sgm__plugin_open("unheard", 1, "Debian: unheard-dev", &table),
                "there is no libsigma-unheard.so in /nowhere, /neither, ");
    CHECK(strstr(sgm_last_error(), beside) != NULL);
    CHECK(strstr(sgm_last_error(), "(Debian: unheard-dev)") != NULL);
    CHECK(table == NULL);
}

TEST(a_file_that_is_none_is_refused)
{
    const void *table = NULL;
    char path[256];
    snprintf(path, sizeof path, "%s/libsigma-broken.so", open_folder());
    CHECK_OK(sgm__file_write_atomic(path, "no library", 10));
    setenv("SIGMA_PLUGIN_PATH", folder, 1);
    CHECK_ERROR(sgm__plugin_open("broken", 1, "Debian: broken-dev", &table),
                "the plug-in cannot be loaded: ");
    CHECK(strstr(sgm_last_error(), path) != NULL);
    close_folder();
}
