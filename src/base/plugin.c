/* Finds and loads plug-ins: shared libraries such as libsigma-mpi.so that give the library a table of
 * functions.
 *
 * sgm__plugin_open is called by src/parallel/collective/ranks.c (MPI) and src/handlers/device/run/device.c
 * (CUDA, OpenCL). A plug-in stays loaded until the process ends, as tables of it may be in use anywhere;
 * dlopen counts references and returns the same library again. The folders are tried in order, and the first
 * file of the right name decides: one that cannot be loaded is an error, not a reason to go on, since the
 * reason (a missing library below it) is what the user must know. The interface that a plug-in has to offer
 * is described in plugin.h. */
#include "base/plugin.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDERS_VARIABLE "SIGMA_PLUGIN_PATH"

/* The folder of the file (program or shared library) that contains this code; "" if it cannot be found out.
 * The dynamic linker gives a shared library's path; the name that it has for the program itself is empty or
 * as typed, so that path comes from /proc/self/exe. */
static void own_folder(char *folder, size_t size)
{
    static const char anchor; /* any address of this file of code */
    Dl_info info;
    struct link_map *map = NULL;
    folder[0] = '\0';
    if (dladdr1(&anchor, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL)
        return;
    if (map->l_name != NULL && map->l_name[0] == '/') {
        if (strlen(map->l_name) < size)
            memcpy(folder, map->l_name, strlen(map->l_name) + 1);
    } else {
        ssize_t length = readlink("/proc/self/exe", folder, size - 1);
        folder[length > 0 ? length : 0] = '\0';
    }
    char *slash = strrchr(folder, '/');
    if (slash != NULL)
        *slash = '\0';
}

/* The state of one search, which ends at the first library or the first failure. */
typedef struct hunt {
    const char *file;
    void *library;
    sgm__text looked; /* the folders so far, for the message */
    sgm_status status;
} hunt;

/* Tries one folder; does nothing once the search has ended. RTLD_NOW: missing symbols show here, as a
 * message, not amid a training. RTLD_LOCAL: the plug-in's symbols do not mix with the program's. */
static void look_in(hunt *search, const char *folder, size_t length)
{
    if (length == 0 || search->library != NULL || search->status != SGM_OK)
        return;
    char *path = sgm__format("%.*s/%s", (int)length, folder, search->file);
    sgm__text_append(&search->looked, "%s%.*s", search->looked.length > 0 ? ", " : "", (int)length, folder);
    if (path == NULL || search->looked.failed) {
        search->status = SGM_ERROR_MEMORY;
    } else if (access(path, F_OK) == 0) {
        search->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (search->library == NULL)
            search->status = sgm_fail(SGM_ERROR_UNSUPPORTED, "the plug-in cannot be loaded: %s", dlerror());
    }
    sgm__free(path);
}

/* Tries `folder` beside this code's own file; a plain file of that name is skipped, because in an
 * installation the program itself is bin/sigma. */
static void look_beside(hunt *search, const char *own, const char *folder)
{
    struct stat found;
    if (own[0] == '\0')
        return;
    char *path = sgm__format("%s/%s", own, folder);
    if (path == NULL)
        search->status = SGM_ERROR_MEMORY;
    else if (stat(path, &found) != 0 || S_ISDIR(found.st_mode)) /* bin/sigma is a program */
        look_in(search, path, strlen(path));
    sgm__free(path);
}

static sgm_status find_library(hunt *search, const char *name, const char *package)
{
    char own[4096];
    const char *folders = getenv(FOLDERS_VARIABLE);
    for (const char *at = folders; at != NULL; at = strchr(at, ':') != NULL ? strchr(at, ':') + 1 : NULL)
        look_in(search, at, strcspn(at, ":"));
    own_folder(own, sizeof own);
    look_beside(search, own, "sigma");
    look_beside(search, own, "plugins");
#ifdef SIGMA_INSTALLED_PLUGIN_DIR
    look_beside(search, own, SIGMA_PLUGINS_FROM_PROGRAMS);
    look_in(search, SIGMA_INSTALLED_PLUGIN_DIR, strlen(SIGMA_INSTALLED_PLUGIN_DIR));
#endif
    if (search->status != SGM_OK || search->library != NULL)
        return search->status;
    return sgm_fail(
        SGM_ERROR_UNSUPPORTED,
        "this needs the plug-in '%s', but there is no %s in %s; it is built with the library, where "
        "what it stands on is installed (%s); " FOLDERS_VARIABLE " names more folders",
        name, search->file, search->looked.data, package);
}

/* Calls sgm_plugin_NAME, which gives the table, and checks its version (the first 4 bytes). memcpy turns
 * dlsym's object pointer into a function pointer, which ISO C has no cast for. */
static sgm_status take_table(void *library, const char *name, uint32_t version, const void **table)
{
    char symbol[128];
    const void *(*give)(void) = NULL;
    uint32_t found;
    snprintf(symbol, sizeof symbol, "sgm_plugin_%s", name);
    void *address = dlsym(library, symbol);
    memcpy(&give, &address, sizeof give);
    const void *given = give != NULL ? give() : NULL;
    if (given == NULL)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "the plug-in '%s' does not give its table (%s)", name, symbol);
    memcpy(&found, given, sizeof found);
    if (found != version)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "the plug-in '%s' is of version %u, this library wants %u: build both from the same "
                        "sources",
                        name, found, version);
    *table = given;
    return SGM_OK;
}

sgm_status sgm__plugin_open(const char *name, uint32_t version, const char *package, const void **table)
{
    char file[128];
    snprintf(file, sizeof file, "libsigma-%s.so", name);
    hunt search = {.file = file};
    sgm_status status = find_library(&search, name, package);
    if (status == SGM_OK)
        status = take_table(search.library, name, version, table);
    sgm__text_free(&search.looked);
    return status;
}

bool sgm__find_function(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}
