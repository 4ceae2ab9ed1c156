/* Compiled kernels on disk, so that a program starts at once the second time.
 *
 * A file's name is a hash of everything that it depends on: driver, device, versions, options, source. Its
 * contents begin with a header with length and checksum, and the driver itself checks what it loads. A cache
 * must never make a program fail: whatever goes wrong with a file, the source is compiled and the error is
 * only logged. Several processes may use the folder at the same time. kernels.c calls sgm__device_build. With
 * the device's lock held.
 */
#include "base/cache/cache_folder.h"
#include "handlers/device/run/device.h"

#include <errno.h>
#include <sigma/base.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define MAGIC 0x316c656e72656b73u           /* "skernel1" as bytes, with the version of the format */
#define MAXIMUM_BYTES ((uint64_t)256 << 20) /* of all files together; beyond it the oldest are deleted */
#define MAXIMUM_FILES 1024

/* The beginning of a file. `bytes` is the length of what follows, `check` its hash. */
typedef struct header {
    uint64_t magic, bytes, check;
} header;

static uint64_t add(uint64_t seed, const char *text)
{
    return sgm__hash(text, strlen(text) + 1, seed);
}

/* The path of the file for a source, and its folder; both are the caller's. 128 bits from two hashes with
 * different seeds: too many for a collision. NULL: there is no folder for the cache, which is no failure. */
static char *path_of(const sgm__device *device, const char *source, char **folder)
{
    uint64_t halves[2] = {1, 2};
    for (int i = 0; i < 2; i++) {
        halves[i] = add(halves[i], device->driver->name);
        halves[i] = add(halves[i], device->info.name);
        halves[i] = add(halves[i], device->info.driver);
        halves[i] = add(halves[i], device->info.compiler);
        halves[i] = add(halves[i], source);
    }
    char *cache = sgm_folder_path(SGM_FOLDER_CACHE);
    *folder = cache != NULL ? sgm__format("%s/kernels", cache) : NULL;
    sgm_string_free(cache);
    char *path = *folder != NULL ? sgm__format("%s/%s-%016llx%016llx", *folder, device->driver->name,
                                               (unsigned long long)halves[0], (unsigned long long)halves[1])
                                 : NULL;
    if (path == NULL)
        sgm_clear_error();
    return path;
}

/* --- files --- */

/* Writes under a name that only this process and thread uses, then renames it, so that other processes see a
 * whole file or none. What a process leaves that died in between is deleted like any old file. */
static sgm_status write_file(const char *path, const void *file, size_t bytes)
{
    static atomic_uint count;
    char *own = sgm__format("%s-%ld-%u", path, (long)getpid(), atomic_fetch_add(&count, 1));
    if (own == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = sgm__file_write_atomic(own, file, bytes);
    if (status == SGM_OK && rename(own, path) != 0) {
        status = sgm_fail(SGM_ERROR_FILE, "cannot name '%s' so: %s", path, sgm__errno_text(errno));
        unlink(own);
    }
    sgm__free(own);
    return status;
}

/* Keeps a compiled source; failures are only logged. */
static void store(const char *folder, const char *path, const void *binary, size_t bytes)
{
    header head = {MAGIC, bytes, sgm__hash(binary, bytes, MAGIC)};
    unsigned char *file = sgm__alloc(sizeof head + bytes);
    sgm_status status = file != NULL ? sgm__make_folders(folder) : SGM_ERROR_MEMORY;
    if (status == SGM_OK) {
        memcpy(file, &head, sizeof head);
        memcpy(file + sizeof head, binary, bytes);
        status = write_file(path, file, sizeof head + bytes);
    }
    if (status == SGM_OK) {
        sgm__cache_folder_limit(folder, MAXIMUM_BYTES, MAXIMUM_FILES);
    } else {
        sgm__log(SGM_LOG_DEBUG, "device", "compiled kernels are not kept: %s", sgm_last_error());
        sgm_clear_error();
    }
    sgm__free(file);
}

/* The module of a stored file; NULL: there is none, or it is damaged or refused by the driver, and then it is
 * deleted. */
static void *load_stored(sgm__device *device, const char *path)
{
    char *file = NULL, message[SGM_DEVICE_MESSAGE] = "";
    size_t length;
    header head;
    void *module = NULL;
    if (!sgm__file_exists(path))
        return NULL;
    if (sgm__file_read(path, MAXIMUM_BYTES, &file, &length) == SGM_OK && length > sizeof head) {
        memcpy(&head, file, sizeof head);
        const char *binary = file + sizeof head;
        length -= sizeof head;
        bool good =
            head.magic == MAGIC && head.bytes == length && head.check == sgm__hash(binary, length, MAGIC);
        if (!good || device->driver->load(device->self, binary, length, &module, message) != SGM_DEVICE_OK)
            module = NULL;
        else
            sgm__cache_file_used(path);
    }
    if (module == NULL) {
        sgm__log(SGM_LOG_INFO, "device", "'%s' is damaged or of another driver: it is made again", path);
        sgm_clear_error();
        unlink(path);
    }
    sgm__free(file);
    return module;
}

/* Compiles, and tells the user so, as it can take seconds. A source that is refused is a fault of ours: the
 * compiler's message is passed on. */
static sgm_status build(sgm__device *device, const char *source, void **binary, size_t *bytes)
{
    char message[SGM_DEVICE_MESSAGE] = "", what[160];
    snprintf(what, sizeof what, "kernels for %.100s; they are kept", device->info.name);
    sgm__log(SGM_LOG_INFO, device->driver->name, "compiling %s", what);
    sgm_task task = sgm_task_begin(SGM_TASK_COMPILE, what, NULL);
    sgm_device_result result = device->driver->build(device->self, source, binary, bytes, message);
    sgm_status status = result == SGM_DEVICE_OK ? SGM_OK : sgm__device_fail(device, result, message);
    sgm_task_end(task, status);
    return status;
}

/* The binary is loaded before it is kept: a file that cannot be loaded would be of no use. */
sgm_status sgm__device_build(sgm__device *device, const char *source, void **module)
{
    char *folder, *path = path_of(device, source, &folder), message[SGM_DEVICE_MESSAGE] = "";
    void *binary = NULL;
    size_t bytes = 0;
    *module = path != NULL ? load_stored(device, path) : NULL;
    sgm_status status = *module != NULL ? SGM_OK : build(device, source, &binary, &bytes);
    if (status == SGM_OK && *module == NULL) {
        sgm_device_result result = device->driver->load(device->self, binary, bytes, module, message);
        if (result != SGM_DEVICE_OK)
            status = sgm__device_fail(device, result, message);
        else if (path != NULL)
            store(folder, path, binary, bytes);
    }
    if (binary != NULL)
        device->driver->drop(binary);
    sgm__free(path);
    sgm__free(folder);
    return status;
}
