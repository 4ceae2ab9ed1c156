/* Opening files to read them. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* A pipe with a name would be waited for until somebody writes to it, maybe for ever. What a process is given
 * as /dev/fd/N, /dev/stdin or /proc/.../fd/N has somebody at its other end. */
static bool is_given(const char *path)
{
    return strncmp(path, "/dev/fd/", 8) == 0 || strcmp(path, "/dev/stdin") == 0 ||
           strncmp(path, "/proc/self/fd/", 14) == 0;
}

static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode)    ? "a folder"
           : S_ISFIFO(mode) ? "a named pipe"
           : S_ISSOCK(mode) ? "a socket"
                            : "a device";
}

/* Reads wait again: O_NONBLOCK is for opening only. */
static bool waits(int file)
{
    int flags = fcntl(file, F_GETFL);
    return flags >= 0 && fcntl(file, F_SETFL, flags & ~O_NONBLOCK) == 0;
}

sgm_status sgm__file_open(const char *path, int *file)
{
    struct stat about;
    const bool given = is_given(path);
    *file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | (given ? 0 : O_NONBLOCK));
    if (*file < 0 && errno == ENXIO)
        return sgm_fail(SGM_ERROR_FILE, "cannot open '%s': it is a socket or a device, expected a file",
                        path);
    if (*file < 0)
        return sgm_fail(SGM_ERROR_FILE, "cannot open '%s': %s", path, sgm__errno_text(errno));
    sgm_status status = SGM_OK;
    if (fstat(*file, &about) != 0 || (!given && !waits(*file)))
        status = sgm_fail(SGM_ERROR_FILE, "cannot open '%s': %s", path, sgm__errno_text(errno));
    else if (S_ISDIR(about.st_mode) || (!given && !S_ISREG(about.st_mode)))
        status = sgm_fail(SGM_ERROR_FILE, "cannot read '%s': it is %s, expected a file", path,
                          kind_of(about.st_mode));
    if (status != SGM_OK) {
        close(*file);
        *file = -1;
    }
    return status;
}

FILE *sgm__file_open_stream(const char *path)
{
    int file;
    if (sgm__file_open(path, &file) != SGM_OK)
        return NULL;
    FILE *stream = fdopen(file, "rb");
    if (stream == NULL) {
        sgm_fail(SGM_ERROR_FILE, "cannot open '%s': %s", path, sgm__errno_text(errno));
        close(file);
    }
    return stream;
}
