/* Data of tensors that lies in other files, as torch.onnx.export and ONNX's own tools write it beside a
 * model.
 *
 * A tensor then names a file, a place in it and a length (TensorProto.external_data). Nothing of that is
 * believed: the file must lie in the model's folder or below it, no part of its path may be a symbolic link,
 * it must be an ordinary file, and place and length must lie within it. */
#include "onnx/wire/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The text under a key; NULL: none. */
static const char *entry(const Onnx__TensorProto *proto, const char *key)
{
    for (size_t i = 0; i < proto->n_external_data; i++)
        if (strcmp(sgm__onnx_text(proto->external_data[i]->key), key) == 0)
            return sgm__onnx_text(proto->external_data[i]->value);
    return NULL;
}

/* Digits alone, up to INT64_MAX; a missing entry leaves the number as it is. */
static sgm_status read_number(const Onnx__TensorProto *proto, const char *key, int64_t *number)
{
    const char *text = entry(proto, key);
    int64_t value = 0;
    for (const char *at = text; at != NULL && *at != '\0'; at++)
        if (*at < '0' || *at > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *at - '0', &value))
            return sgm_fail(SGM_ERROR_FORMAT, "the '%s' of its data in another file is '%.40s': no number",
                            key, text);
    if (text != NULL)
        *number = value;
    return SGM_OK;
}

/* The next part of a path, up to the next slash; NULL: it is empty, "." or "..", or too long. */
static const char *next_part(const char **path, char part[256])
{
    size_t length = strcspn(*path, "/");
    if (length == 0 || length > 255)
        return NULL;
    memcpy(part, *path, length);
    part[length] = '\0';
    *path += length + ((*path)[length] == '/');
    return strcmp(part, ".") == 0 || strcmp(part, "..") == 0 ? NULL : part;
}

/* Opens a file below `folder`, part by part: O_NOFOLLOW concerns only the last part of a path. O_NONBLOCK: a
 * pipe does not wait. */
static sgm_status open_below(const char *folder, const char *path, int *file)
{
    const char *rest = path, *failed = path;
    char part[256];
    int at = open(*folder != '\0' ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (at >= 0) {
        const char *name = next_part(&rest, part);
        if (name == NULL) {
            close(at);
            return sgm_fail(SGM_ERROR_FORMAT,
                            "its data lies in '%.200s': only files in the model's folder or below are read",
                            path);
        }
        bool last = *rest == '\0';
        int inner =
            openat(at, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | (last ? 0 : O_DIRECTORY));
        int error = errno;
        close(at);
        at = inner;
        errno = error;
        if (inner >= 0 && last) {
            *file = inner;
            return SGM_OK;
        }
    }
    return sgm_fail(errno == ENOENT ? SGM_ERROR_NOT_FOUND : SGM_ERROR_FILE,
                    "its data lies in '%.200s' beside the model, which cannot be opened: %s", failed,
                    errno == ELOOP || errno == ENOTDIR ? "it is, or leads through, a symbolic link"
                                                       : sgm__errno_text(errno));
}

/* Without a length the data goes on to the file's end. */
static sgm_status map_part(int file, const char *path, int64_t offset, int64_t length, sgm__onnx_bytes *bytes)
{
    struct stat status;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
        return sgm_fail(SGM_ERROR_FILE, "its data lies in '%.200s', which is no ordinary file", path);
    length = length < 0 && offset <= status.st_size ? status.st_size - offset : length;
    if (length < 0 || offset > status.st_size || length > status.st_size - offset)
        return sgm_fail(SGM_ERROR_FORMAT,
                        "its data lies in '%.200s' from byte %lld on, %lld bytes; the file has %lld", path,
                        (long long)offset, (long long)length, (long long)status.st_size);
    if (length == 0)
        return SGM_OK;
    size_t before = (size_t)offset % (size_t)sysconf(_SC_PAGESIZE); /* a map begins at a page */
    void *map = mmap(NULL, (size_t)length + before, PROT_READ, MAP_PRIVATE, file, offset - (int64_t)before);
    if (map == MAP_FAILED)
        return sgm_fail(SGM_ERROR_MEMORY, "'%.200s' cannot be mapped into memory: %s", path,
                        sgm__errno_text(errno));
    *bytes = (sgm__onnx_bytes){(const char *)map + before, (size_t)length, map, (size_t)length + before};
    return SGM_OK;
}

sgm_status sgm__onnx_external_open(const Onnx__TensorProto *proto, const char *folder, sgm__onnx_bytes *bytes)
{
    int64_t offset = 0, length = -1;
    int file;
    const char *path = entry(proto, "location");
    *bytes = (sgm__onnx_bytes){"", 0, NULL, 0};
    if (folder == NULL)
        return sgm_fail(
            SGM_ERROR_UNSUPPORTED,
            "its data lies in another file, and the model is not read from a folder: load it by its "
            "path");
    if (path == NULL)
        return sgm_fail(SGM_ERROR_FORMAT, "its data lies in another file, of which it has no 'location'");
    SGM_TRY(read_number(proto, "offset", &offset));
    SGM_TRY(read_number(proto, "length", &length));
    SGM_TRY(open_below(folder, path, &file));
    sgm_status status = map_part(file, path, offset, length, bytes);
    close(file);
    return status;
}

void sgm__onnx_external_close(sgm__onnx_bytes *bytes)
{
    if (bytes->map != NULL)
        munmap(bytes->map, bytes->map_length);
}
