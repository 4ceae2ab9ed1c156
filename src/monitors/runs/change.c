/* What a person does to runs on the page: rename, delete.
 *
 * Renaming and deleting first "take" the run: it must be in the newest scan, must not be running, and must
 * hold no other runs; its lock is held until the change is done, so that no run begins in it meanwhile.
 * Files are reached only by descriptors of folders, opened without following links, so that nothing
 * outside the folder of runs can be touched. */
#include "monitors/runs/runs_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

/* Bytes of a name; levels of folders. */
#define LONGEST_NAME 200
#define DEEPEST 32

int sgm__runs_open_parent(const sgm__runs *runs, const char *name, const char **leaf)
{
    const char *slash = strchr(name, '/');
    char *first = slash != NULL ? sgm__strndup(name, (size_t)(slash - name)) : NULL;
    *leaf = slash != NULL ? slash + 1 : name;
    int folder = slash == NULL   ? openat(runs->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                 : first != NULL ? sgm__runs_open_folder(runs->folder, first)
                                 : -1;
    sgm__free(first);
    if (folder < 0)
        sgm_fail(SGM_ERROR_NOT_FOUND, "there is no run '%.200s' any more", name);
    return folder;
}

/* --- a run that nobody else has --- */

/* A run that this process has locked. */
typedef struct taken {
    int parent, folder; /* descriptors; the lock is that of `folder` */
    const char *leaf;   /* the run's name in `parent`, part of the whole name */
} taken;

static void let_go(taken *own)
{
    if (own->folder >= 0)
        close(own->folder);
    if (own->parent >= 0)
        close(own->parent);
}

/* Refuses a run whose folder holds other runs of the list. */
static sgm_status check_alone(const sgm__runs *runs, const char *name)
{
    size_t length = strlen(name), inner = 0;
    for (size_t i = 0; i < runs->count; i++)
        inner += strncmp(runs->runs[i]->name, name, length) == 0 && runs->runs[i]->name[length] == '/';
    if (inner > 0)
        return sgm_fail(SGM_ERROR_STATE,
                        "the folder of '%.200s' holds %zu other runs; rename or delete those first", name,
                        inner);
    return SGM_OK;
}

/* Whether there is a run anywhere below, also deeper than the list goes. */
static bool holds_runs(int folder, int depth)
{
    DIR *entries = sgm__runs_entries(folder);
    const struct dirent *entry;
    bool found = false;
    while (entries != NULL && !found && (entry = readdir(entries)) != NULL) {
        bool is_inner = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
                        (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN);
        int inner = is_inner ? sgm__runs_open_folder(folder, entry->d_name) : -1;
        found = inner >= 0 && (sgm__runs_is_run(inner) || (depth < DEEPEST && holds_runs(inner, depth + 1)));
        if (inner >= 0)
            close(inner);
    }
    if (entries != NULL)
        closedir(entries);
    return found;
}

/* Tries the lock that a run holds. Other errors than "held" mean a file system without locks; the control
 * socket is then the only sign. */
static sgm_status lock(taken *own, const char *name)
{
    own->folder = sgm__runs_open_folder(own->parent, own->leaf);
    if (own->folder < 0)
        return sgm_fail(SGM_ERROR_NOT_FOUND, "there is no run '%.200s' any more", name);
    bool held = flock(own->folder, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (held || sgm__runs_answers(own->folder))
        return sgm_fail(SGM_ERROR_STATE, "'%.200s' runs now; stop it first", name);
    if (holds_runs(own->folder, 0))
        return sgm_fail(SGM_ERROR_STATE,
                        "the folder of '%.200s' holds other runs; move or delete those first", name);
    return SGM_OK;
}

/* On failure too, let_go must follow. */
static sgm_status take(sgm__runs *runs, const char *name, taken *own)
{
    *own = (taken){-1, -1, NULL};
    SGM_TRY(sgm__runs_scan(runs));
    if (sgm__runs_find(runs, name) == NULL)
        return sgm__last_failure();
    SGM_TRY(check_alone(runs, name));
    own->parent = sgm__runs_open_parent(runs, name, &own->leaf);
    return own->parent >= 0 ? lock(own, name) : sgm__last_failure();
}

/* --- names --- */

/* A new name: one component of a path, not hidden, without control characters. */
static sgm_status check_name(const char *name)
{
    size_t length = strlen(name);
    bool good = length > 0 && length <= LONGEST_NAME && name[0] != '.' && strchr(name, '/') == NULL;
    for (const char *c = name; *c != '\0'; c++)
        good &= (unsigned char)*c >= ' ' && *c != 127;
    return good ? SGM_OK
                : sgm_fail(SGM_ERROR_ARGUMENT,
                           "a run cannot be named '%.200s': 1 to %d bytes, no slash, no dot in front, no "
                           "control characters",
                           name, LONGEST_NAME);
}

/* RENAME_NOREPLACE: an existing folder is never replaced, not even by one that appeared in this moment. */
sgm_status sgm__runs_rename(sgm__runs *runs, const char *name, const char *to)
{
    taken own;
    SGM_TRY(check_name(to));
    sgm_status status = take(runs, name, &own);
    if (status == SGM_OK && renameat2(own.parent, own.leaf, own.parent, to, RENAME_NOREPLACE) != 0)
        status = errno == EEXIST ? sgm_fail(SGM_ERROR_STATE, "there is something named '%.200s' already", to)
                                 : sgm_fail(SGM_ERROR_FILE, "'%.200s' cannot be renamed: %s", name,
                                            sgm__errno_text(errno));
    let_go(&own);
    return status;
}

/* --- deleting --- */

static sgm_status empty_folder(int folder, const char *name, dev_t device, int depth);

/* Empties a folder in an open one. Another file system below (a mount) and folders that are nested too deeply
 * are refused. */
static sgm_status empty_inner(int folder, const char *name, dev_t of_it, dev_t device, int depth)
{
    if (of_it != device)
        return sgm_fail(SGM_ERROR_FILE, "'%.200s' is another file system: unmount it first", name);
    if (depth >= DEEPEST)
        return sgm_fail(SGM_ERROR_FILE, "'%.200s' is more than %d folders deep: delete it by hand", name,
                        DEEPEST);
    int inner = sgm__runs_open_folder(folder, name);
    if (inner < 0)
        return sgm_fail(SGM_ERROR_FILE, "the folder '%.200s' cannot be opened: %s", name,
                        sgm__errno_text(errno));
    sgm_status status = empty_folder(inner, name, device, depth + 1);
    close(inner);
    return status;
}

/* Removes one entry, a folder with its contents. Links are removed, not followed. */
static sgm_status remove_entry(int folder, const char *name, dev_t device, int depth)
{
    struct stat info;
    if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return SGM_OK;
    bool is_folder = S_ISDIR(info.st_mode);
    if (is_folder)
        SGM_TRY(empty_inner(folder, name, info.st_dev, device, depth));
    if (unlinkat(folder, name, is_folder ? AT_REMOVEDIR : 0) != 0 && errno != ENOENT)
        return sgm_fail(SGM_ERROR_FILE, "'%.200s' cannot be deleted: %s", name, sgm__errno_text(errno));
    return SGM_OK;
}

/* Removes all entries; stops at the first failure. */
static sgm_status empty_folder(int folder, const char *name, dev_t device, int depth)
{
    DIR *entries = sgm__runs_entries(folder);
    const struct dirent *entry;
    sgm_status status = SGM_OK;
    if (entries == NULL)
        return sgm_fail(SGM_ERROR_FILE, "the folder '%.200s' cannot be read: %s", name,
                        sgm__errno_text(errno));
    while (status == SGM_OK && (entry = readdir(entries)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            status = remove_entry(folder, entry->d_name, device, depth);
    closedir(entries);
    return status;
}

/* The confirmation must repeat the name, so that a wrong click deletes nothing. */
sgm_status sgm__runs_delete(sgm__runs *runs, const char *name, const char *confirmation)
{
    taken own;
    struct stat info;
    if (strcmp(name, confirmation) != 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "to delete '%.200s', its name must be repeated", name);
    sgm_status status = take(runs, name, &own);
    if (status == SGM_OK)
        status = fstat(own.folder, &info) == 0 ? empty_folder(own.folder, name, info.st_dev, 0)
                                               : sgm_fail(SGM_ERROR_FILE, "'%.200s' cannot be read", name);
    if (status == SGM_OK && unlinkat(own.parent, own.leaf, AT_REMOVEDIR) != 0)
        status = sgm_fail(SGM_ERROR_FILE, "the folder of '%.200s' cannot be deleted: %s", name,
                          sgm__errno_text(errno));
    let_go(&own);
    return status;
}
