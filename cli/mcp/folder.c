/* Finding runs, and places for new ones. */
#include "mcp/folder.h"
#include "runs/flat.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

static bool is_run(const char *path)
{
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is = folder >= 0 && sgm__runs_is_run(folder);
    if (folder >= 0)
        close(folder);
    return is;
}

/* The folder of a run is looked at through the one that it lies in, so that it has the name that it has
 * there. */
sgm_status mcp_folder_open(mcp_folder *folder, const char *path)
{
    char whole[PATH_MAX];
    *folder = (mcp_folder){0};
    if (realpath(path, whole) == NULL)
        return sgm_fail(SGM_ERROR_NOT_FOUND, "there is no folder '%s'", path);
    char *slash = strrchr(whole, '/');
    bool single = is_run(whole) && slash[1] != '\0';
    if (single) {
        folder->only = sgm__strdup(slash + 1);
        slash[slash == whole] = '\0'; /* the root keeps its name */
    }
    folder->runs = sgm__runs_open(whole, flat_configuration);
    if (folder->runs == NULL || (single && folder->only == NULL))
        return sgm__last_failure();
    folder->runs->only = folder->only;
    return SGM_OK;
}

void mcp_folder_close(mcp_folder *folder)
{
    sgm__runs_close(folder->runs);
    sgm__free(folder->only);
}

const char *mcp_run_state(const sgm__run *run)
{
    static const char *const names[] = {"finished", "stopped", "failed", "running"};
    return names[run->state];
}

/* Bytes of metrics that were read of all runs; *whole: there are no more. */
static off_t bytes_read(const sgm__runs *runs, bool *whole)
{
    off_t bytes = 0;
    *whole = true;
    for (size_t i = 0; i < runs->count; i++) {
        bytes += runs->runs[i]->read;
        *whole = *whole && !runs->runs[i]->reading;
    }
    return bytes;
}

/* A scan reads a long file in part; one that cannot be read any further is left. */
sgm_status mcp_folder_look(mcp_folder *folder)
{
    off_t before, now = -1;
    bool whole;
    do {
        before = now;
        SGM_TRY(sgm__runs_scan(folder->runs));
        now = bytes_read(folder->runs, &whole);
    } while (!whole && now != before);
    return SGM_OK;
}

/* The error for a name that no run has: the nearest one, or how the names are learnt. */
static sgm_status fail_unknown(const mcp_folder *folder, const char *name)
{
    const sgm__runs *runs = folder->runs;
    const char **names = sgm__calloc(runs->count + 1, sizeof *names);
    for (size_t i = 0; names != NULL && i < runs->count; i++)
        names[i] = runs->runs[i]->name;
    const char *near = names != NULL ? sgm__nearest(name, names, runs->count) : NULL;
    sgm_status status =
        near != NULL
            ? sgm_fail(SGM_ERROR_NOT_FOUND, "there is no run '%.200s'; did you mean '%s'?", name, near)
            : sgm_fail(SGM_ERROR_NOT_FOUND, "there is no run '%.200s'; list_runs has the names of all", name);
    sgm__free(names);
    return status;
}

/* The folder of a run is opened by way of the one that it lies in, one part of the name after the other. */
static int open_parts(int top, const char *name)
{
    char part[NAME_MAX + 1];
    const char *slash = strchr(name, '/');
    size_t length = slash != NULL ? (size_t)(slash - name) : strlen(name);
    if (length == 0 || length >= sizeof part)
        return -1;
    memcpy(part, name, length);
    part[length] = '\0';
    int outer = sgm__runs_open_folder(top, part);
    if (slash == NULL || outer < 0)
        return outer;
    int inner = open_parts(outer, slash + 1);
    close(outer);
    return inner;
}

static sgm_status open_found(mcp_folder *folder, mcp_run *run)
{
    const char *name = run->run->name;
    run->descriptor = open_parts(folder->runs->folder, name);
    run->path = sgm__format("%s/%s", folder->runs->path, name);
    if (run->descriptor < 0)
        return sgm_fail(SGM_ERROR_NOT_FOUND, "there is no run '%.200s' any more", name);
    snprintf(run->reach, sizeof run->reach, "/proc/self/fd/%d", run->descriptor);
    if (run->path == NULL)
        return sgm__last_failure();
    return run->run->version_error == NULL
               ? SGM_OK
               : sgm_fail(SGM_ERROR_FORMAT, "run '%s': %s", name, run->run->version_error);
}

sgm_status mcp_run_open(mcp_folder *folder, const char *name, mcp_run *run)
{
    *run = (mcp_run){.descriptor = -1};
    SGM_TRY(mcp_folder_look(folder));
    return mcp_run_again(folder, name, run);
}

sgm_status mcp_run_again(mcp_folder *folder, const char *name, mcp_run *run)
{
    *run = (mcp_run){.descriptor = -1};
    if (name == NULL)
        name = folder->only;
    if (name == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "which run? list_runs has the names of all");
    run->run = sgm__runs_find(folder->runs, name);
    return run->run != NULL ? open_found(folder, run) : fail_unknown(folder, name);
}

void mcp_run_close(mcp_run *run)
{
    if (run->descriptor >= 0)
        close(run->descriptor);
    sgm__free(run->path);
    *run = (mcp_run){.descriptor = -1};
}

sgm_status mcp_run_check_file(const mcp_run *run, const char *name)
{
    struct stat info;
    if (fstatat(run->descriptor, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return sgm_fail(SGM_ERROR_NOT_FOUND, "run '%s' has no %s", run->run->name, name);
    return S_ISREG(info.st_mode)
               ? SGM_OK
               : sgm_fail(SGM_ERROR_FILE, "the %s of run '%s' is no regular file", name, run->run->name);
}

/* --- new runs --- */

/* The first of LIKE-replay-1, LIKE-replay-2, ... that is not there. */
static char *free_name(int folder, const char *like)
{
    struct stat info;
    const char *slash = strrchr(like, '/');
    char *name = NULL;
    for (int number = 1; number < INT_MAX; number++) {
        sgm__free(name);
        name = sgm__format("%s-replay-%d", slash != NULL ? slash + 1 : like, number);
        if (name == NULL || fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
            break;
    }
    return name;
}

static sgm_status place_in(const mcp_folder *folder, int where, const char *name, const char *like,
                           char **path, char **made)
{
    struct stat info;
    char *own = name != NULL ? sgm__strdup(name) : free_name(where, like);
    sgm_status status = own != NULL ? SGM_OK : sgm__last_failure();
    if (status == SGM_OK && !sgm__is_plain_name(own))
        status =
            sgm_fail(SGM_ERROR_ARGUMENT,
                     "a new run cannot be named '%.100s': expected 1 to %d letters, digits, '-', '_' and "
                     "'.', beginning with a letter, a digit or '_'",
                     own, SGM__PLAIN_NAME_LONGEST);
    if (status == SGM_OK && fstatat(where, own, &info, AT_SYMLINK_NOFOLLOW) == 0)
        status = sgm_fail(SGM_ERROR_STATE, "there is '%s' already; choose another name", own);
    if (status == SGM_OK) {
        const char *within = folder->only;
        *made = within != NULL ? sgm__format("%s/%s", within, own) : sgm__strdup(own);
        *path = *made != NULL ? sgm__format("%s/%s", folder->runs->path, *made) : NULL;
        status = *path != NULL ? SGM_OK : sgm__last_failure();
    }
    sgm__free(own);
    return status;
}

sgm_status mcp_folder_place(mcp_folder *folder, const char *name, const char *like, char **path, char **made)
{
    *path = *made = NULL;
    int where = folder->only != NULL ? sgm__runs_open_folder(folder->runs->folder, folder->only)
                                     : dup(folder->runs->folder);
    if (where < 0)
        return sgm_fail(SGM_ERROR_NOT_FOUND, "the folder is not there any more");
    sgm_status status = place_in(folder, where, name, like, path, made);
    close(where);
    if (status != SGM_OK) {
        sgm__free(*made);
        *made = NULL;
    }
    return status;
}
