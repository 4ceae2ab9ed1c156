/* Finds the runs in a folder, and reads again only those files that have changed.
 *
 * A scan lists the folder and the folders in it (two levels), keeps the runs that it knows, adds new ones and
 * drops those that are gone. Of each run every file is compared with its mark (inode, size, time of change),
 * so that a scan of unchanged runs costs a few system calls each. A run is running if the folder's lock is
 * held, as /proc/locks says, or if its control socket answers.
 *
 * During a scan, runs->runs is sorted by name up to scan.known, and new runs are behind; drop_unseen sorts
 * it again. */
#include "journal/run_lines.h"
#include "monitors/runs/runs_internal.h"
#include "runs/parts/files_version.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* Limits in bytes of the files that are read here, and of the list of locks. */
#define MAXIMUM_CONFIGURATION ((size_t)1 << 20)
#define MAXIMUM_VERSION ((size_t)1 << 16)
#define MAXIMUM_LOCKS ((size_t)4 << 20)

/* --- files --- */

int sgm__runs_open_folder(int folder, const char *name)
{
    return openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* O_NONBLOCK: opening a FIFO that somebody has put there must not block. Everything but regular files is
 * refused. */
int sgm__runs_open_file(int folder, const char *name, struct stat *info)
{
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0 || (fstat(file, info) == 0 && S_ISREG(info->st_mode)))
        return file;
    close(file);
    return -1;
}

/* Opens "." anew, because fdopendir takes over its descriptor and readdir moves the offset. */
DIR *sgm__runs_entries(int folder)
{
    int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = own >= 0 ? fdopendir(own) : NULL;
    if (entries == NULL && own >= 0)
        close(own);
    return entries;
}

/* *length may be less than wanted if the file has become shorter meanwhile. */
sgm_status sgm__runs_read_end(int file, off_t size, size_t limit, char **text, size_t *length)
{
    size_t wanted = (size_t)size < limit ? (size_t)size : limit;
    *text = sgm__alloc(wanted + 1);
    if (*text == NULL)
        return SGM_ERROR_MEMORY;
    ssize_t part = 1;
    for (off_t start = size - (off_t)wanted; *length < wanted && part > 0;
         *length += part > 0 ? (size_t)part : 0)
        part = pread(file, *text + *length, wanted - *length, start + (off_t)*length);
    (*text)[*length] = '\0';
    return SGM_OK;
}

sgm_status sgm__runs_read(int folder, const char *name, size_t limit, char **text, size_t *length)
{
    struct stat info;
    *text = NULL;
    *length = 0;
    int file = sgm__runs_open_file(folder, name, &info);
    if (file < 0)
        return SGM_OK;
    sgm_status status = sgm__runs_read_end(file, info.st_size, limit, text, length);
    close(file);
    return status;
}

/* --- which of them run --- */

/* A file as /proc/locks names it. */
typedef struct lock_place {
    unsigned major, minor;
    unsigned long inode;
} lock_place;

typedef struct lock_list {
    lock_place *places;
    size_t count, capacity;
} lock_list;

/* All flock locks that are held on this machine. /proc/locks is read rather than each lock tried, because
 * trying takes the lock for a moment, in which a run that begins would find its folder in use. Without
 * memory the list is incomplete. */
static lock_list held_locks(void)
{
    lock_list list = {0};
    FILE *file = fopen("/proc/locks", "re");
    char line[256], kind[16], way[16], mode[16];
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        lock_place place;
        if (sscanf(line, "%*s %15s %15s %15s %*d %x:%x:%lu", kind, way, mode, &place.major, &place.minor,
                   &place.inode) != 6 ||
            strcmp(kind, "FLOCK") != 0 || list.count * sizeof place >= MAXIMUM_LOCKS ||
            sgm__reserve(&list.places, &list.capacity, list.count + 1, sizeof place) != SGM_OK)
            continue;
        list.places[list.count++] = place;
    }
    if (file != NULL)
        fclose(file);
    return list;
}

static bool is_held(const lock_list *list, const struct stat *folder)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->places[i].inode == folder->st_ino && list->places[i].major == major(folder->st_dev) &&
            list->places[i].minor == minor(folder->st_dev))
            return true;
    return false;
}

/* Connects by way of /proc/self/fd, as a socket's address has room for 107 bytes only, and a run's path
 * may be longer. EAGAIN: somebody listens, but the queue is full. */
bool sgm__runs_answers(int folder)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat info;
    if (fstatat(folder, "control.sock", &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISSOCK(info.st_mode))
        return false;
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/control.sock", folder);
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool answers = descriptor >= 0 &&
                   (connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0 || errno == EAGAIN);
    if (descriptor >= 0)
        close(descriptor);
    return answers;
}

/* --- what a run's files say --- */

void sgm__runs_set_text(char **text, const char *with, size_t length)
{
    sgm__free(*text);
    *text = with != NULL ? sgm__strndup(with, length) : NULL;
}

/* Checks run.json. A folder without it is read as it is: other programs may write metrics too. A wrong
 * version keeps all other files from being read. */
static void read_version(sgm__runs *runs, sgm__run *run, int folder)
{
    struct stat info = {0};
    char *text = NULL;
    size_t length = 0;
    int file = sgm__runs_open_file(folder, SGM__RUN_FILE, &info);
    if (!sgm__run_is_same(&run->version_mark, &info)) {
        runs->changed = true;
        sgm__runs_set_text(&run->version_error, NULL, 0);
        if (file >= 0 && sgm__runs_read_end(file, info.st_size, MAXIMUM_VERSION, &text, &length) == SGM_OK) {
            json_t *version = json_loadb(text, length, 0, NULL);
            if (sgm__files_version_check(version) != SGM_OK)
                sgm__runs_set_text(&run->version_error, sgm_last_error(), strlen(sgm_last_error()));
            json_decref(version);
        }
        sgm__free(text);
    }
    if (file >= 0)
        close(file);
}

/* Reads config.yaml, if it has changed, through the function of the caller. An error is kept for the page. */
static void read_configuration(sgm__runs *runs, sgm__run *run, int folder)
{
    struct stat info = {0};
    char *text = NULL;
    size_t length = 0;
    int file = sgm__runs_open_file(folder, "config.yaml", &info);
    bool same = sgm__run_is_same(&run->configuration_mark, &info);
    if (!same) {
        runs->changed = true;
        json_decref(run->configuration);
        run->configuration = NULL;
        sgm__runs_set_text(&run->configuration_error, NULL, 0);
    }
    if (file >= 0 && !same && runs->configuration != NULL) {
        sgm_status status =
            (size_t)info.st_size > MAXIMUM_CONFIGURATION
                ? sgm_fail(SGM_ERROR_FORMAT, "config.yaml is too long")
                : sgm__runs_read_end(file, info.st_size, MAXIMUM_CONFIGURATION, &text, &length);
        run->configuration = status == SGM_OK ? runs->configuration(text, length) : NULL;
        if (run->configuration == NULL)
            sgm__runs_set_text(&run->configuration_error, sgm_last_error(), strlen(sgm_last_error()));
        sgm__free(text);
    }
    if (file >= 0)
        close(file);
}

/* Reads what has changed of one run. A lock or socket decides over the log, since the log of a killed run
 * has no end. */
static void look_at(sgm__runs *runs, sgm__run *run, int folder, bool is_running)
{
    runs->changed |= sgm__run_read_notes(run, folder);
    read_version(runs, run, folder);
    if (run->version_error != NULL)
        return;
    runs->changed |= sgm__run_read_metrics(run, folder);
    read_configuration(runs, run, folder);
    runs->changed |= sgm__run_read_branched(run, folder);
    runs->changed |= sgm__run_read_log(run, folder);
    sgm__run_state state = is_running ? SGM__RUN_RUNNING : run->ended;
    runs->changed |= state != run->state;
    run->state = state;
}

/* --- which there are --- */

void sgm__run_free(sgm__run *run)
{
    if (run == NULL)
        return;
    sgm__run_columns_free(&run->metrics);
    json_decref(run->configuration);
    json_decref(run->set);
    json_decref(run->notes);
    sgm__free(run->version_error);
    sgm__free(run->configuration_error);
    sgm__free(run->reason);
    sgm__free(run->name);
    sgm__free(run);
}

/* started -1: not known. */
static sgm__run *create_run(const char *name, const struct stat *info)
{
    sgm__run *run = sgm__calloc(1, sizeof *run);
    if (run == NULL)
        return NULL;
    *run =
        (sgm__run){.name = sgm__strdup(name), .inode = info->st_ino, .device = info->st_dev, .started = -1};
    if (run->name != NULL)
        return run;
    sgm__run_free(run);
    return NULL;
}

static int compare_runs(const void *a, const void *b)
{
    return strcmp((*(sgm__run *const *)a)->name, (*(sgm__run *const *)b)->name);
}

static int compare_with_name(const void *name, const void *run)
{
    return strcmp(name, (*(sgm__run *const *)run)->name);
}

/* Among the first `count` runs, which are sorted. */
static sgm__run *find(const sgm__runs *runs, size_t count, const char *name)
{
    sgm__run **found =
        count > 0 ? bsearch(name, runs->runs, count, sizeof *runs->runs, compare_with_name) : NULL;
    return found != NULL ? *found : NULL;
}

sgm__run *sgm__runs_find(const sgm__runs *runs, const char *name)
{
    sgm__run *run = find(runs, runs->count, name);
    if (run == NULL)
        sgm_fail(SGM_ERROR_NOT_FOUND, "there is no run '%.200s'", name);
    return run;
}

/* One scan. */
typedef struct scan {
    sgm__runs *runs;
    size_t known; /* runs that were there before, sorted by name */
    lock_list locks;
} scan;

/* log.txt and run.json are no sign of a run on their own. */
bool sgm__runs_is_run(int folder)
{
    static const char *const traces[] = {SGM__METRICS_FILE, SGM__CHECKPOINT_FILE, "config.yaml",
                                         "control.sock"};
    struct stat info;
    for (size_t i = 0; i < sizeof traces / sizeof *traces; i++)
        if (fstatat(folder, traces[i], &info, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(info.st_mode))
            return true;
    return false;
}

/* A run was found: takes the known one of that name, if it is the same folder, or adds a new one. A known
 * run of the name that is another folder is not marked as seen, and goes at the end of the scan. */
static sgm_status note_run(scan *s, const char *name, int folder)
{
    sgm__runs *runs = s->runs;
    struct stat info;
    if (fstat(folder, &info) != 0)
        return SGM_OK; /* the folder has just gone */
    sgm__run *run = find(runs, s->known, name);
    if (run != NULL && (run->seen || run->inode != info.st_ino || run->device != info.st_dev))
        run = NULL; /* another folder of that name */
    if (run == NULL) {
        if (runs->count >= SGM__RUNS_MAXIMUM) {
            runs->left_out++;
            return SGM_OK;
        }
        SGM_TRY(sgm__reserve(&runs->runs, &runs->capacity, runs->count + 1, sizeof(sgm__run *)));
        if ((run = create_run(name, &info)) == NULL)
            return sgm__last_failure();
        runs->runs[runs->count++] = run;
        runs->changed = true;
    }
    run->seen = true;
    look_at(runs, run, folder, is_held(&s->locks, &info) || sgm__runs_answers(folder));
    return SGM_OK;
}

/* Names that are no UTF-8 cannot be shown or asked for. */
static bool is_text(const char *name)
{
    json_t *text = json_string(name); /* NULL: the name is no UTF-8 */
    json_decref(text);
    return text != NULL;
}

static sgm_status scan_folder(scan *s, int folder, const char *within);

/* An entry that is a folder. A run may itself hold runs (trainers side by side), but only one level down. */
static sgm_status scan_entry(scan *s, int folder, const char *within, const char *entry)
{
    char *name = *within != '\0' ? sgm__format("%s/%s", within, entry) : sgm__strdup(entry);
    int inner = name != NULL ? sgm__runs_open_folder(folder, entry) : -1;
    sgm_status status = name != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    if (inner >= 0 && sgm__runs_is_run(inner))
        status = note_run(s, name, inner);
    if (inner >= 0 && status == SGM_OK && *within == '\0')
        status = scan_folder(s, inner, name);
    if (inner >= 0)
        close(inner);
    sgm__free(name);
    return status;
}

/* `within` is the name of the outer folder, "" at the top. Some file systems do not tell the type of an
 * entry (DT_UNKNOWN); opening it as a folder decides. */
static sgm_status scan_folder(scan *s, int folder, const char *within)
{
    DIR *entries = sgm__runs_entries(folder);
    const struct dirent *entry;
    sgm_status status = SGM_OK;
    if (entries == NULL)
        return *within != '\0' ? SGM_OK
                               : sgm_fail(SGM_ERROR_FILE, "the folder '%s' cannot be read: %s", s->runs->path,
                                          sgm__errno_text(errno));
    const char *only = *within == '\0' ? s->runs->only : NULL;
    while (status == SGM_OK && (entry = readdir(entries)) != NULL)
        if (entry->d_name[0] != '.' && (only == NULL || strcmp(entry->d_name, only) == 0) &&
            (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) && is_text(entry->d_name))
            status = scan_entry(s, folder, within, entry->d_name);
    closedir(entries);
    return status;
}

/* Removes the runs that are gone and sorts the others. */
static void drop_unseen(sgm__runs *runs)
{
    size_t kept = 0;
    for (size_t i = 0; i < runs->count; i++) {
        sgm__run *run = runs->runs[i];
        if (run->seen) {
            runs->runs[kept++] = run;
        } else {
            sgm__run_free(run);
            runs->changed = true;
        }
    }
    runs->count = kept;
    if (kept > 0)
        qsort(runs->runs, kept, sizeof *runs->runs, compare_runs);
}

/* After a failure runs that were not reached are dropped, and come back with the next scan. */
sgm_status sgm__runs_scan(sgm__runs *runs)
{
    scan s = {.runs = runs, .known = runs->count, .locks = held_locks()};
    for (size_t i = 0; i < runs->count; i++)
        runs->runs[i]->seen = false;
    runs->changed = false;
    runs->left_out = 0;
    sgm_status status = scan_folder(&s, runs->folder, "");
    sgm__free(s.locks.places);
    drop_unseen(runs);
    runs->revision += runs->changed;
    return status;
}
