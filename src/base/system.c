/* Provides the clock and the computer's size, reads whole files into memory, and writes files so that a crash
 * leaves no half file.
 *
 * Opening files of the user safely is in file_open.c. A file is replaced in the order write `path`.tmp,
 * fsync, rename, fsync of the folder: after a crash or a power failure `path` has either its old or its new
 * content. Checkpoints, tensors and configurations are written this way. All reads and writes go on after a
 * signal (EINTR) and after partial transfers. */
#include "base/base.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Sizes of tensors and files are counted in size_t and int64_t alike. */
_Static_assert(sizeof(void *) == 8 && sizeof(size_t) == 8, "Sigma wants a processor of 64 bits");

/* Counts the processors of the affinity mask, which taskset and containers restrict; the number of those
 * online would start too many threads there. */
int32_t sgm__processors(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int32_t)online : 1;
}

/* Physical memory of the computer, not what a container may use of it. */
uint64_t sgm__memory_size(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : UINT64_MAX;
}

/* From an arbitrary beginning: only differences mean anything. */
double sgm__now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void sgm__cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attributes);
    pthread_condattr_destroy(&attributes);
}

struct timespec sgm__time_in(double seconds)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    long nanoseconds = at.tv_nsec + (long)(seconds * 1e9);
    at.tv_sec += nanoseconds / 1000000000;
    at.tv_nsec = nanoseconds % 1000000000;
    return at;
}

double sgm__wall_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    long microseconds = now.tv_nsec / 1000;
    return (double)now.tv_sec + 1e-6 * (double)microseconds;
}

/* A new thread inherits the mask of the one that makes it. */
int sgm__thread_start(pthread_t *thread, void *(*run)(void *argument), void *argument)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

bool sgm__file_exists(const char *path)
{
    struct stat information;
    return stat(path, &information) == 0;
}

bool sgm__is_folder(const char *path)
{
    struct stat information;
    return stat(path, &information) == 0 && S_ISDIR(information.st_mode);
}

/* `action` is a verb, as in "cannot read 'path': reason"; the reason is errno's, saved before anything can
 * change it. */
static sgm_status fail_file(const char *action, const char *path)
{
    int error = errno;
    return sgm_fail(SGM_ERROR_FILE, "cannot %s '%s': %s", action, path, sgm__errno_text(error));
}

/* --- reading --- */

/* Reads up to `size` bytes; less only at the end of the file; -1 on failure. */
static ssize_t read_fully(int file, char *data, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t got = read(file, data + done, size - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

/* Reads to the end of the file into *data, which the caller frees even on failure. One byte more than
 * expected is asked for: if it does not come, the file has ended and no second read is needed. A regular file
 * that is too large fails before memory is taken for it. */
static sgm_status read_open_file(int file, const char *path, size_t limit, char **data, size_t *length)
{
    struct stat information;
    if (fstat(file, &information) != 0)
        return fail_file("read", path);
    /* The size is only a first guess: pipes and files in /proc have none, and a file may grow meanwhile. */
    size_t guess = information.st_size > 0 ? (size_t)information.st_size : 4096;
    size_t capacity = 0, done = 0;
    if (S_ISREG(information.st_mode) && information.st_size > 0 && guess > limit)
        return sgm_fail(SGM_ERROR_FILE, "cannot read '%s': it has %zu bytes, at most %zu are expected", path,
                        guess, limit);
    for (;;) {
        SGM_TRY(sgm__reserve(data, &capacity, done + guess + 1, 1));
        ssize_t got = read_fully(file, *data + done, capacity - 1 - done);
        if (got < 0)
            return fail_file("read", path);
        done += (size_t)got;
        if (done > limit)
            return sgm_fail(SGM_ERROR_FILE, "cannot read '%s': it has more than the %zu bytes expected", path,
                            limit);
        if (done < capacity - 1)
            break;
        guess = 4096;
    }
    (*data)[done] = '\0';
    *length = done;
    return SGM_OK;
}

/* *data belongs to the caller on success, and is NULL on failure. */
sgm_status sgm__file_read(const char *path, size_t limit, char **data, size_t *length)
{
    *data = NULL;
    *length = 0;
    int file;
    SGM_TRY(sgm__file_open(path, &file));
    sgm_status status = read_open_file(file, path, limit, data, length);
    close(file);
    if (status != SGM_OK) {
        sgm__free(*data);
        *data = NULL;
    }
    return status;
}

/* --- writing --- */

bool sgm__write_fully(int file, const void *data, size_t size)
{
    for (const char *rest = data; size > 0;) {
        ssize_t wrote = write(file, rest, size);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return false;
        rest += wrote;
        size -= (size_t)wrote;
    }
    return true;
}

static bool write_pieces(int file, const sgm__file_piece *pieces, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!sgm__write_fully(file, pieces[i].data, pieces[i].size))
            return false;
    return true;
}

/* Makes a rename durable: the name lies in the folder, which has a buffer of its own. Some file systems
 * cannot sync folders, and a folder may be writable yet unreadable; both are taken as success, because
 * nothing more can be done. */
static sgm_status sync_folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? sgm__strndup(path, slash == path ? 1 : (size_t)(slash - path)) : sgm__strdup(".");
    if (!folder)
        return SGM_ERROR_MEMORY;
    sgm_status status = SGM_OK;
    int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0) {
        if (errno != EACCES)
            status = fail_file("open the folder", folder);
    } else {
        if (fsync(file) != 0 && errno != EINVAL && errno != EROFS && errno != ENOTSUP)
            status = fail_file("write the folder", folder);
        close(file);
    }
    sgm__free(folder);
    return status;
}

/* Writes and synchronises the temporary file, which is removed on any failure. O_NOFOLLOW: a symbolic link
 * that somebody has put there would be written through. close() may report a late failure of a network file
 * system, so its result counts. */
static sgm_status write_temporary(const char *path, const sgm__file_piece *pieces, size_t count)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file < 0)
        return fail_file("create", path);
    sgm_status status = SGM_OK;
    if (!write_pieces(file, pieces, count) || fsync(file) != 0)
        status = fail_file("write", path);
    if (close(file) != 0 && status == SGM_OK)
        status = fail_file("write", path);
    if (status != SGM_OK)
        unlink(path);
    return status;
}

/* Whether it is what a descriptor of this process writes to. */
static bool is_open_as(int descriptor, const struct stat *information)
{
    struct stat own;
    return fstat(descriptor, &own) == 0 && own.st_dev == information->st_dev &&
           own.st_ino == information->st_ino;
}

/* Tells whether the path is a character device (/dev/null, /dev/stdout) or a pipe, which has to be written to
 * directly: a rename would put an ordinary file in its place. So would it be in the place of /dev/stdout
 * where that is redirected to a file. */
static bool is_stream(const char *path)
{
    struct stat information;
    return stat(path, &information) == 0 &&
           (S_ISCHR(information.st_mode) || S_ISFIFO(information.st_mode) ||
            is_open_as(STDOUT_FILENO, &information) || is_open_as(STDERR_FILENO, &information));
}

static sgm_status write_stream(const char *path, const sgm__file_piece *pieces, size_t count)
{
    int file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC); /* behind what `>>` found there */
    if (file < 0)
        return fail_file("open", path);
    sgm_status status = write_pieces(file, pieces, count) ? SGM_OK : fail_file("write", path);
    close(file);
    return status;
}

sgm_status sgm__file_replace(const char *path, const char *with)
{
    if (rename(with, path) == 0)
        return sync_folder_of(path);
    sgm_status status = fail_file("replace", path);
    unlink(with);
    return status;
}

/* The temporary file lies beside `path`, as a rename works only within a file system. */
sgm_status sgm__file_write_pieces(const char *path, const sgm__file_piece *pieces, size_t count,
                                  sgm__before_rename_function before_rename, void *user)
{
    if (is_stream(path))
        return write_stream(path, pieces, count);
    char *temporary = sgm__format("%s.tmp", path);
    if (!temporary)
        return sgm_last_status();
    sgm_status status = write_temporary(temporary, pieces, count);
    if (status == SGM_OK && before_rename != NULL) {
        status = before_rename(user, temporary);
        if (status != SGM_OK)
            unlink(temporary);
    }
    if (status == SGM_OK)
        status = sgm__file_replace(path, temporary);
    sgm__free(temporary);
    return status;
}

sgm_status sgm__file_write_atomic(const char *path, const void *data, size_t length)
{
    return sgm__file_write_pieces(path, &(sgm__file_piece){data, length}, 1, NULL, NULL);
}

/* --- folders --- */

/* A folder that exists already is fine, whatever error mkdir gave: a read-only file system answers EROFS
 * before it looks, and another process may have made the folder in between. */
static sgm_status make_folder(const char *path)
{
    struct stat information;
    if (mkdir(path, 0777) == 0)
        return SGM_OK;
    int error = errno;
    if (stat(path, &information) != 0) {
        errno = error;
        return fail_file("create the folder", path);
    }
    if (!S_ISDIR(information.st_mode))
        return sgm_fail(SGM_ERROR_FILE, "cannot create the folder '%s': a file of that name exists", path);
    return SGM_OK;
}

/* Creates each folder of the path from left to right. The search begins behind a first '/', so that the root
 * is not created. */
sgm_status sgm__make_folders(const char *path)
{
    char *partial = sgm__strdup(path);
    if (!partial)
        return path ? SGM_ERROR_MEMORY : sgm_fail(SGM_ERROR_ARGUMENT, "expected a folder, got no path");
    sgm_status status = SGM_OK;
    for (char *slash = partial; status == SGM_OK && *slash && (slash = strchr(slash + 1, '/')) != NULL;) {
        *slash = '\0';
        status = make_folder(partial);
        *slash = '/';
    }
    if (status == SGM_OK)
        status = make_folder(partial);
    sgm__free(partial);
    return status;
}
