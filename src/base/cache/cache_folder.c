/* Bounds folders of files that can be made again; see cache_folder.h. */
#include "base/cache/cache_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sigma/base.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PART ".part"
#define MAGIC 0x3130656863616373u        /* "scache01" as bytes, with the version of the format */
#define LONGEST_FILE ((size_t)256 << 20) /* that is written at once */

/* The beginning of a file that is written at once. */
typedef struct header {
    uint64_t magic, bytes, check; /* of what follows */
} header;

/* A file in the folder. */
typedef struct entry {
    char name[128];
    struct timespec used;
    uint64_t bytes;
} entry;

static bool is_older(const entry *a, const entry *b)
{
    return a->used.tv_sec < b->used.tv_sec ||
           (a->used.tv_sec == b->used.tv_sec && a->used.tv_nsec < b->used.tv_nsec);
}

static bool is_part(const char *name)
{
    size_t length = strlen(name), ending = strlen(PART);
    return length > ending && strcmp(name + length - ending, PART) == 0;
}

/* The next file of the folder, whole or not; false at the end. */
static bool next_file(DIR *folder, entry *e)
{
    for (const struct dirent *found; (found = readdir(folder)) != NULL;) {
        struct stat information;
        if (strlen(found->d_name) >= sizeof e->name ||
            fstatat(dirfd(folder), found->d_name, &information, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(information.st_mode))
            continue;
        memcpy(e->name, found->d_name, strlen(found->d_name) + 1);
        e->used = information.st_mtim;
        e->bytes = (uint64_t)information.st_size;
        return true;
    }
    return false;
}

/* Deletes a file that is not whole, unless its writer still has the lock. A writer that is about to lock it
 * sees that it has no name any more. */
static void delete_part(DIR *folder, const char *name)
{
    int file = openat(dirfd(folder), name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
        return;
    if (flock(file, LOCK_EX | LOCK_NB) == 0)
        unlinkat(dirfd(folder), name, 0);
    close(file);
}

/* Finds the least recently used of the whole files, and the number and size of all. */
static bool find_oldest(DIR *folder, entry *oldest, sgm__cache_size *size)
{
    *size = (sgm__cache_size){0};
    rewinddir(folder);
    for (entry e; next_file(folder, &e);) {
        if (is_part(e.name)) {
            delete_part(folder, e.name);
            continue;
        }
        size->bytes += e.bytes;
        if (size->files++ == 0 || is_older(&e, oldest))
            *oldest = e;
    }
    return size->files > 0;
}

/* The folder is read anew for each file, as other processes may change it; there is rarely more than one to
 * delete. */
void sgm__cache_folder_limit(const char *path, uint64_t bytes, int64_t files)
{
    DIR *folder = opendir(path);
    entry oldest = {0};
    sgm__cache_size size;
    while (folder != NULL && find_oldest(folder, &oldest, &size) &&
           (size.bytes > bytes || size.files > files))
        if (unlinkat(dirfd(folder), oldest.name, 0) != 0 && errno != ENOENT)
            break;
    if (folder != NULL)
        closedir(folder);
}

sgm__cache_size sgm__cache_folder_measure(const char *path)
{
    sgm__cache_size size = {0};
    DIR *folder = opendir(path);
    entry e;
    while (folder != NULL && next_file(folder, &e)) {
        size.files++;
        size.bytes += e.bytes;
    }
    if (folder != NULL)
        closedir(folder);
    return size;
}

void sgm__cache_file_used(const char *path)
{
    utimensat(AT_FDCWD, path, NULL, 0);
}

/* Locks a new file, and makes sure that nobody has taken it for one that was left before it was locked. */
static bool lock_part(int file)
{
    struct stat information;
    while (flock(file, LOCK_EX) != 0)
        if (errno != EINTR)
            return errno == ENOLCK || errno == EOPNOTSUPP; /* a file system without locks */
    if (fstat(file, &information) == 0 && information.st_nlink > 0)
        return true;
    errno = EAGAIN;
    return false;
}

int sgm__cache_part_create(const char *folder, char **path)
{
    *path = NULL;
    if (sgm__make_folders(folder) != SGM_OK) {
        sgm_clear_error();
        errno = ENOTDIR;
        return -1;
    }
    *path = sgm__format("%s/XXXXXX" PART, folder);
    int file = *path != NULL ? mkostemps(*path, (int)strlen(PART), O_CLOEXEC) : -1;
    if (file >= 0 && lock_part(file))
        return file;
    int error = errno;
    if (file >= 0) {
        unlink(*path);
        close(file);
    }
    sgm__free(*path);
    *path = NULL;
    errno = error;
    return -1;
}

/* --- files that are written at once --- */

static bool write_all(int file, const void *begin, size_t length)
{
    const char *bytes = begin;
    while (length > 0) {
        ssize_t done = write(file, bytes, length);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        bytes += done;
        length -= (size_t)done;
    }
    return true;
}

void sgm__cache_file_write(const char *folder, const char *name, const char *bytes, size_t length)
{
    const header head = {MAGIC, length, sgm__hash(bytes, length, MAGIC)};
    char *path = sgm__format("%s/%s", folder, name), *part;
    int file = path != NULL ? sgm__cache_part_create(folder, &part) : -1;
    bool good = file >= 0 && write_all(file, &head, sizeof head) && write_all(file, bytes, length) &&
                rename(part, path) == 0;
    if (!good)
        sgm__log(SGM_LOG_INFO, "cache", "nothing is kept in '%s': %s", folder, sgm__errno_text(errno));
    if (file >= 0) {
        if (!good)
            unlink(part);
        close(file);
        sgm__free(part);
    }
    sgm__free(path);
}

char *sgm__cache_file_read(const char *folder, const char *name, size_t *length)
{
    char *path = sgm__format("%s/%s", folder, name), *bytes = NULL;
    header head;
    if (path == NULL || !sgm__file_exists(path) ||
        sgm__file_read(path, LONGEST_FILE, &bytes, length) != SGM_OK) {
        sgm_clear_error();
        sgm__free(path);
        return NULL;
    }
    bool good = *length >= sizeof head;
    if (good) {
        memcpy(&head, bytes, sizeof head);
        *length -= sizeof head;
        memmove(bytes, bytes + sizeof head, *length + 1);
        good = head.magic == MAGIC && head.bytes == *length && head.check == sgm__hash(bytes, *length, MAGIC);
    }
    if (good) {
        sgm__cache_file_used(path);
    } else {
        unlink(path);
        sgm__free(bytes);
        bytes = NULL;
    }
    sgm__free(path);
    return bytes;
}
