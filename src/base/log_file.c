/* This is the log's sink for files, with rotation: PATH is renamed to PATH.1 when it gets large, PATH.1 to
 * PATH.2, and so on.
 *
 * log.c calls write_to_file under its lock, so one thread at a time is here; other processes may write to the
 * same file. A line is therefore written under a lock on the file itself (flock), after a check that the open
 * file is still the one with the name (same device and inode): processes that share a log neither lose nor
 * mix lines, and only the process that holds the lock of the named file rotates it. Nothing here needs memory
 * beyond the sink. Failures are told to the other sinks by way of `trouble`, once for each kind. */
#include "base/log_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_BYTES 15000000 /* of a file before it is rotated */
#define DEFAULT_FILES 5        /* rotated files that are kept */
/* to get hold of a file that other processes keep rotating; afterwards the message is given up */
#define MAXIMUM_ATTEMPTS 100

typedef struct file_sink {
    sgm_log_sink base;
    int64_t bytes;         /* rotate before the file would exceed this size; -1: never */
    int64_t grown;         /* after a failed rotation at a smaller size: do not try again below this size */
    int files, descriptor; /* descriptor -1: not open */
    pid_t process; /* opened the descriptor: after a fork, parent and child would share it, and with it the
                      flock */
    bool told_of_writing, told_of_rotating;
    char path[PATH_MAX]; /* absolute */
} file_sink;
_Static_assert(sizeof(file_sink) <= SGM__LOG_FILE_ROOM, "the room for a file sink is too small");

/* Leaves a report for log.c's tell_troubles, unless `*told` says that this kind of trouble was reported
 * before. */
static void tell(file_sink *self, bool *told, const char *what, int error)
{
    if (!*told)
        snprintf(self->base.trouble, sizeof self->base.trouble, "the file '%.200s' cannot be %s: %s",
                 self->path, what, sgm__errno_text(error));
    *told = true;
}

static void close_file(file_sink *self)
{
    if (self->descriptor >= 0)
        close(self->descriptor);
    self->descriptor = -1;
}

static bool open_file(file_sink *self)
{
    close_file(self);
    self->descriptor = open(self->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
    self->process = getpid();
    return self->descriptor >= 0;
}

/* Locks the file that has the name at this moment, opening it anew if another process has rotated it in
 * between; true with `*info` about it. A failing flock is ignored: file systems without locks work, but lines
 * of several processes may then mix. */
static bool lock_current(file_sink *self, struct stat *info)
{
    for (int attempt = 0; attempt < MAXIMUM_ATTEMPTS; attempt++) {
        struct stat named;
        if ((self->descriptor < 0 || self->process != getpid()) && !open_file(self))
            return false;
        while (flock(self->descriptor, LOCK_EX) != 0 && errno == EINTR)
            ;
        if (fstat(self->descriptor, info) == 0 && stat(self->path, &named) == 0 &&
            named.st_ino == info->st_ino && named.st_dev == info->st_dev)
            return true;
        close_file(self);
    }
    errno = EBUSY;
    return false;
}

static void unlock(const file_sink *self)
{
    flock(self->descriptor, LOCK_UN);
}

/* Shifts the old files by one, from the oldest on, and takes the name from the current file. Closing the file
 * gives its lock back; a process that waited for that lock then finds that the name has moved on. False, with
 * errno, when a rename fails: the file is still open and locked then. */
static bool rotate(file_sink *self)
{
    char older[PATH_MAX + 16], newer[PATH_MAX + 16];
    for (int i = self->files; i > 1; i--) {
        snprintf(older, sizeof older, "%s.%d", self->path, i);
        snprintf(newer, sizeof newer, "%s.%d", self->path, i - 1);
        if (rename(newer, older) != 0 && errno != ENOENT)
            return false;
    }
    snprintf(newer, sizeof newer, "%s.1", self->path);
    if ((self->files > 0 ? rename(self->path, newer) : unlink(self->path)) != 0)
        return false;
    close_file(self);
    return true;
}

/* Rotates until `length` more bytes fit; the file is locked before, and after if this returns true. A file
 * that holds nothing is not rotated, so a single line longer than the limit is still written. A loop, as the
 * next file may be large already when another process wrote to it meanwhile. */
static bool make_room(file_sink *self, size_t length, struct stat *info)
{
    while (S_ISREG(info->st_mode) && self->bytes > 0 && info->st_size > 0 &&
           info->st_size + (int64_t)length > self->bytes && info->st_size >= self->grown) {
        if (!rotate(self)) {
            tell(self, &self->told_of_rotating, "rotated and grows on", errno);
            self->grown = info->st_size + self->bytes;
            return true;
        }
        self->grown = 0;
        if (!lock_current(self, info))
            return false;
    }
    return true;
}

static bool write_line(int file, const char *line, size_t length)
{
    while (length > 0) {
        ssize_t written = write(file, line, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        line += written;
        length -= (size_t)written;
    }
    return true;
}

/* Takes a half-written line (a full disk) away again by cutting the file to its former size, so that the next
 * line does not begin in the middle of one. */
static void write_to_file(sgm_log_sink *sink, const sgm__log_entry *entry)
{
    file_sink *self = (file_sink *)sink;
    char line[SGM__LOG_LINE];
    struct tm local;
    struct stat info;
    localtime_r(&entry->time.tv_sec, &local);
    int start =
        snprintf(line, sizeof line, "%04d-%02d-%02d %02d:%02d:%02d.%03d [%d] %s ", local.tm_year + 1900,
                 local.tm_mon + 1, local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec,
                 (int)(entry->time.tv_nsec / 1000000), (int)getpid(), sgm_log_level_name(entry->level));
    size_t length = sgm__log_end_line(line, (size_t)start, entry);
    if (!lock_current(self, &info) || !make_room(self, length, &info)) {
        tell(self, &self->told_of_writing, "opened", errno);
        return;
    }
    if (!write_line(self->descriptor, line, length)) {
        tell(self, &self->told_of_writing, "written", errno);
        if (S_ISREG(info.st_mode) && ftruncate(self->descriptor, info.st_size) != 0)
            close_file(self); /* half a line stays, and a later attempt opens the file anew */
    }
    if (self->descriptor >= 0)
        unlock(self);
}

static void close_sink(sgm_log_sink *sink)
{
    close_file((file_sink *)sink);
    sgm__free(sink);
}

/* Makes the path absolute, so that rotation and reopening still mean the same file after the program has
 * called chdir. Returns an errno value, 0 for success. */
static int set_path(file_sink *self, const char *path)
{
    size_t length = 0;
    if (path[0] != '/') {
        if (getcwd(self->path, sizeof self->path) == NULL)
            return errno;
        length = strlen(self->path);
    }
    int rest = snprintf(self->path + length, sizeof self->path - length, "%s%s", length > 0 ? "/" : "", path);
    return rest > 0 && (size_t)rest < sizeof self->path - length ? 0 : ENAMETOOLONG;
}

int sgm__log_file_open(void *memory, const char *path, const sgm_log_file_options *options)
{
    file_sink *self = memory;
    self->base = (sgm_log_sink){.minimum = options->level, .write = write_to_file, .close = close_sink};
    self->bytes = options->bytes != 0 ? options->bytes : DEFAULT_BYTES;
    self->files = options->files == 0 ? DEFAULT_FILES : options->files > 0 ? options->files : 0;
    self->descriptor = -1;
    int error = set_path(self, path);
    if (error != 0)
        return error;
    return open_file(self) ? 0 : errno;
}
