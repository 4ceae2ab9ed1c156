/* Loads a user's plug-ins, which extend the library through its public functions: sgm_plugin_load.
 *
 * plugin.c loads the library's own, which are found by name and use nothing of the library. A plug-in stays
 * loaded, as its tables are in use from its init() on, also when that fails after it has registered one. A
 * file that is refused before its init() is closed again. The list below is of those whose init() succeeded,
 * or is running. */
#include "base/base.h"
#include <sigma/plugin.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SYMBOL "sigma_plugin"
#define MAXIMUM_LOADED 32

typedef struct loaded_plugin {
    const sgm_plugin *plugin;
    char *path; /* absolute, without links; stays */
} loaded_plugin;

/* Recursive: an init() may load another plug-in. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static loaded_plugin loaded[MAXIMUM_LOADED];
static size_t loaded_count;

const sgm_plugin *sgm_plugin_at(size_t index, const char **path)
{
    const sgm_plugin *plugin = NULL;
    pthread_mutex_lock(&lock);
    if (index < loaded_count) {
        plugin = loaded[index].plugin;
        if (path != NULL)
            *path = loaded[index].path;
    }
    pthread_mutex_unlock(&lock);
    return plugin;
}

static bool is_loaded(const char *path)
{
    for (size_t i = 0; i < loaded_count; i++)
        if (strcmp(loaded[i].path, path) == 0)
            return true;
    return false;
}

/* What can be wrong with a plug-in before any function of it is called. */
static sgm_status check(const sgm_plugin *plugin, const char *path)
{
    if (plugin == NULL)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "'%s' is no plug-in: it has no symbol " SYMBOL
                        "; define `SGM_API const sgm_plugin " SYMBOL "` in it, as <sigma/plugin.h> shows",
                        path);
    if (plugin->api != SGM_PLUGIN_API)
        return sgm_fail(
            SGM_ERROR_UNSUPPORTED,
            "the plug-in '%s' has the API number %u, this library wants %d: compile it again with "
            "the headers of this version, %s",
            path, plugin->api, SGM_PLUGIN_API, sgm_version());
    if (plugin->name == NULL || plugin->name[0] == '\0' || plugin->init == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "the plug-in '%s' wants a .name and an .init in its " SYMBOL,
                        path);
    for (size_t i = 0; i < loaded_count; i++)
        if (strcmp(loaded[i].plugin->name, plugin->name) == 0)
            return sgm_fail(SGM_ERROR_STATE,
                            "the plug-in '%s' of '%s' is loaded already, from '%s'; leave one of them out",
                            plugin->name, path, loaded[i].path);
    if (loaded_count == MAXIMUM_LOADED)
        return sgm_fail(SGM_ERROR_STATE, "'%s': %d plug-ins are loaded, which is all there is room for", path,
                        MAXIMUM_LOADED);
    return SGM_OK;
}

/* Takes a plug-in whose init() failed off the list; those that it loaded stay behind it. */
static void forget(const char *path)
{
    size_t at = 0;
    while (loaded[at].path != path)
        at++;
    loaded_count--;
    memmove(&loaded[at], &loaded[at + 1], (loaded_count - at) * sizeof *loaded);
}

/* `path` belongs to the list on success. The plug-in is on the list before its init(), so that two which load
 * each other come to an end. */
static sgm_status begin(const sgm_plugin *plugin, char *path)
{
    loaded[loaded_count++] = (loaded_plugin){plugin, path};
    sgm_clear_error();
    if (plugin->init() == SGM_OK)
        return SGM_OK;
    forget(path);
    if (sgm_last_status() == SGM_OK)
        sgm_fail(SGM_ERROR_STATE, "it does not say why");
    return sgm__fail_within("the plug-in '%s' of '%s' could not begin", plugin->name, path);
}

/* The sections' table stands at the end of a shared library. The dynamic loader does not look whether the
 * file ends before, and is killed by the system where it does. */
static sgm_status check_file(const char *path)
{
    ElfW(Ehdr) header = {0};
    struct stat info = {0};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &info) != 0) {
        int error = errno;
        if (file >= 0)
            close(file);
        return sgm_fail(SGM_ERROR_FILE, "cannot read '%s': %s", path, sgm__errno_text(error));
    }
    ssize_t got = S_ISREG(info.st_mode) ? read(file, &header, sizeof header) : 0;
    close(file);
    if (got != (ssize_t)sizeof header || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return sgm_fail(
            SGM_ERROR_UNSUPPORTED,
            "'%s' is no shared library; build one with cc -shared -fPIC, as <sigma/plugin.h> shows", path);
    uint64_t size = (uint64_t)info.st_size, sections = (uint64_t)header.e_shnum * header.e_shentsize;
    if (header.e_shoff > size || sections > size - header.e_shoff)
        return sgm_fail(SGM_ERROR_FILE, "'%s' has %llu bytes, which is not all of it; build or copy it again",
                        path, (unsigned long long)size);
    return SGM_OK;
}

/* RTLD_NOW: a missing symbol shows here, as a message, not amid a training. The caller holds the lock. */
static sgm_status load(char *path)
{
    SGM_TRY(check_file(path));
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "the plug-in cannot be loaded: %s", dlerror());
    const sgm_plugin *plugin = dlsym(library, SYMBOL);
    sgm_status status = check(plugin, path);
    if (status != SGM_OK) {
        dlclose(library);
        return status;
    }
    return begin(plugin, path);
}

sgm_status sgm_plugin_load(const char *path)
{
    if (path == NULL || path[0] == '\0')
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_plugin_load: expected the path of a plug-in");
    char *real = realpath(path, NULL);
    if (real == NULL)
        return sgm_fail(SGM_ERROR_FILE, "there is no plug-in '%s': %s", path, sgm__errno_text(errno));
    char *own = sgm__strdup(real);
    free(real);
    if (own == NULL)
        return SGM_ERROR_MEMORY;
    pthread_mutex_lock(&lock);
    bool again = is_loaded(own);
    sgm_status status = again ? SGM_OK : load(own);
    pthread_mutex_unlock(&lock);
    if (again || status != SGM_OK)
        sgm__free(own);
    return status;
}
