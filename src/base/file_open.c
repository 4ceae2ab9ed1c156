/* Opens files for reading, and never waits while opening.
 *
 * All paths that come from a user or a data set go through sgm__file_open: readers (src/data/read), bundles
 * (src/persistence), configurations. Opening a named pipe with open(2) blocks until somebody opens its other
 * end, which may never happen; O_NONBLOCK avoids that, and fstat then tells what was opened. Checking the
 * path before opening would leave a gap in which the file can be exchanged. Reading whole files and writing
 * is in system.c. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Tells whether the path stands for a descriptor that the process inherited (a shell's `<(command)` gives
 * /dev/fd/N). A pipe is welcome there: the shell has connected its other end, so that reading it ends. */
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

/* Takes O_NONBLOCK away again once the file is open, so that reads wait for data as usual. */
static bool waits(int file)
{
    int flags = fcntl(file, F_GETFL);
    return flags >= 0 && fcntl(file, F_SETFL, flags & ~O_NONBLOCK) == 0;
}

/* Reports ENXIO on its own: open(2) answers so for a socket, and for a device without a driver, and its usual
 * text ("no such device or address") would send a user in the wrong direction. O_NOCTTY: opening a terminal
 * must not make it the process's controlling one. */
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
