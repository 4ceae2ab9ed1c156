/* The checkpoints of a trainer by name: where they lie, listing, adding one that came from elsewhere,
 * removing.
 *
 * The folder is the run's, or a temporary one of the trainer's own while it has had no run. Any thread may
 * ask; the folder's name is guarded by the control's lock. Names come from outside (the page, the command
 * line), so a name can never be a path. A file that is added is written under a hidden name, checked whole
 * against the trainer, and only then linked to its name: a link, unlike a rename, fails where there is
 * something already. */
#include "runs/checkpoints.h"
#include "journal/run_lines.h"
#include "persistence/bundle.h"
#include "runs/parts/parts.h"
#include "trainer/trainer_lock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAXIMUM_TOLD 5 /* checkpoints that a message names */
#define ENDING ".safetensors"
#define MAXIMUM_COPIED ((size_t)1 << 30) /* bytes of one call of sendfile */
#define NEWEST_OF_RUN "checkpoint"       /* the checkpoint from which a resume goes on */

/* --- names --- */

sgm_status sgm__checkpoint_name_check(const char *name)
{
    size_t length = strlen(name);
    bool good = length > 0 && length <= SGM__CHECKPOINT_NAME && *name != '.' && strchr(name, '/') == NULL;
    for (const char *c = name; good && *c != '\0'; c++)
        good = (unsigned char)*c >= ' ' && *c != 127;
    return good ? SGM_OK
                : sgm_fail(SGM_ERROR_ARGUMENT,
                           "a checkpoint cannot be named '%.100s': 1 to %d bytes, no slash, no dot in front",
                           name, SGM__CHECKPOINT_NAME);
}

sgm_status sgm__checkpoint_name_is_free(const char *name)
{
    SGM_TRY(sgm__checkpoint_name_check(name));
    return strcmp(name, SGM__ORIGIN_NAME) != 0
               ? SGM_OK
               : sgm_fail(SGM_ERROR_ARGUMENT,
                          "'" SGM__ORIGIN_NAME "' is the state that a branch began with, from which it is "
                          "replayed: choose another name");
}

/* Length of a checkpoint's name in the name of its file; 0: the file is no checkpoint. */
static size_t name_length(const char *file)
{
    size_t length = strlen(file), end = strlen(ENDING);
    return file[0] != '.' && length > end && length - end <= SGM__CHECKPOINT_NAME &&
                   strcmp(file + length - end, ENDING) == 0
               ? length - end
               : 0;
}

/* --- the folder --- */

/* Removes a folder and the files in it. "." and ".." cannot be unlinked, so they need no test. */
static void remove_files(const char *folder)
{
    DIR *entries = opendir(folder);
    const struct dirent *entry;
    while (entries != NULL && (entry = readdir(entries)) != NULL)
        unlinkat(dirfd(entries), entry->d_name, 0); /* fails for "." and ".." */
    if (entries != NULL)
        closedir(entries);
    rmdir(folder);
}

/* Forgets the folder; a temporary folder of the trainer's own is removed with all its files. */
static void leave(sgm__checkpoint_place *place)
{
    if (place->own && place->folder != NULL)
        remove_files(place->folder);
    sgm__free(place->folder);
    *place = (sgm__checkpoint_place){0};
}

/* Files of the trainer's own folder are removed when a run gets a folder. The function `leave` goes along
 * as `release`, so that whoever frees the trainer needs no header of this floor. */
sgm_status sgm__checkpoints_begin(sgm_trainer *trainer, const char *folder)
{
    sgm__control *control = sgm__control_of(trainer);
    char *copy = sgm__strdup(folder);
    if (copy == NULL)
        return SGM_ERROR_MEMORY;
    pthread_mutex_lock(&control->lock);
    leave(&control->place);
    control->place = (sgm__checkpoint_place){.folder = copy, .release = leave};
    pthread_mutex_unlock(&control->lock);
    return SGM_OK;
}

/* A folder that only this user may look into; mkdtemp makes it so. */
static char *make_own(const sgm_trainer *trainer)
{
    const char *base = getenv("TMPDIR");
    char *path = sgm__format("%s/sigma-XXXXXX", base != NULL && *base != '\0' ? base : "/tmp");
    if (path == NULL)
        return NULL;
    if (mkdtemp(path) != NULL) {
        sgm__log(SGM_LOG_INFO, sgm_trainer_name(trainer),
                 "the run has no folder: checkpoints are kept in '%s' as long as the trainer", path);
        return path;
    }
    sgm_fail(SGM_ERROR_FILE, "cannot make a folder for checkpoints, '%s': %s", path, sgm__errno_text(errno));
    sgm__free(path);
    return NULL;
}

/* Gives a copy of the folder's name, as another thread may begin a run at any time; *folder NULL: there is
 * no folder. `make`: a temporary folder is made if there is none. *run: the folder is a run's. */
static sgm_status folder_of(sgm_trainer *trainer, bool make, char **folder, bool *run)
{
    sgm__control *control = sgm__control_of(trainer);
    pthread_mutex_lock(&control->lock);
    sgm__checkpoint_place *place = &control->place;
    if (place->folder == NULL && make)
        *place = (sgm__checkpoint_place){.folder = make_own(trainer), .own = true, .release = leave};
    bool has = place->folder != NULL;
    *folder = sgm__strdup(place->folder);
    *run = !place->own;
    pthread_mutex_unlock(&control->lock);
    return *folder != NULL || (!has && !make) ? SGM_OK : sgm__last_failure();
}

/* A link is no checkpoint, so nobody can make the trainer read a file outside its folder by its name. */
static bool is_file(const char *path, struct stat *about)
{
    return lstat(path, about) == 0 && S_ISREG(about->st_mode);
}

/* "there are late, early, and 3 more", the newest first. */
static void append_names(sgm__text *text, const sgm__checkpoint *list, size_t count)
{
    sgm__text_append(text, count == 0 ? "there is none yet" : count == 1 ? "there is " : "there are ");
    for (size_t i = 0; i < count && i < MAXIMUM_TOLD; i++)
        sgm__text_append(text, "%s%s", i > 0 ? ", " : "", list[i].name);
    if (count > MAXIMUM_TOLD)
        sgm__text_append(text, ", and %zu more", count - MAXIMUM_TOLD);
}

/* The error for a name that no checkpoint has; it names the nearest that exists. */
static sgm_status not_there(sgm_trainer *trainer, const char *name)
{
    sgm__checkpoint *list;
    size_t count;
    sgm__text hint = {0};
    if (sgm__checkpoints_list(trainer, &list, &count) != SGM_OK)
        return sgm__last_failure();
    const char **names = sgm__calloc(count + 1, sizeof *names);
    for (size_t i = 0; names != NULL && i < count; i++)
        names[i] = list[i].name;
    const char *near = names != NULL ? sgm__nearest(name, names, count) : NULL;
    if (near != NULL)
        sgm__text_append(&hint, "did you mean '%s'?", near);
    else
        append_names(&hint, list, count);
    sgm_status status = sgm_fail(SGM_ERROR_NOT_FOUND, "trainer '%s' has no checkpoint '%.200s'; %s",
                                 sgm_trainer_name(trainer), name, hint.data != NULL ? hint.data : "");
    sgm__text_free(&hint);
    sgm__free(names);
    sgm__free(list);
    return status;
}

/* First NAME.safetensors; then, for a checkpoint that exists, NAME itself, if it has the ending already. */
sgm_status sgm__checkpoint_path(sgm_trainer *trainer, const char *name, bool make, char **path)
{
    struct stat about;
    char *folder = NULL;
    bool run;
    *path = NULL;
    SGM_TRY(make ? sgm__checkpoint_name_is_free(name) : sgm__checkpoint_name_check(name));
    SGM_TRY(folder_of(trainer, make, &folder, &run));
    bool failed = false, found = false;
    /* whole 0: "best"; whole 1: "best.safetensors", as the file is called in the folder */
    for (int whole = 0; folder != NULL && !failed && !found && whole <= (!make && name_length(name) > 0);
         whole++) {
        sgm__free(*path);
        *path = sgm__format("%s/%s%s", folder, name, whole ? "" : ENDING);
        failed = *path == NULL;
        found = make || (!failed && is_file(*path, &about));
    }
    sgm__free(folder);
    if (failed)
        return SGM_ERROR_MEMORY;
    if (found)
        return SGM_OK;
    sgm__free(*path);
    *path = NULL;
    return not_there(trainer, name);
}

bool sgm__checkpoint_exists(sgm_trainer *trainer, const char *name)
{
    char *path, *folder = NULL;
    struct stat about;
    bool run;
    if (folder_of(trainer, false, &folder, &run) != SGM_OK || folder == NULL)
        return false;
    path = sgm__format("%s/%s" ENDING, folder, name);
    bool there = path != NULL && is_file(path, &about);
    sgm__free(path);
    sgm__free(folder);
    return there;
}

/* --- listing --- */

/* Reads the position from the file's header. A damaged file is listed all the same, as only a list shows a
 * user that it exists. */
static void read_position(const char *path, sgm__checkpoint *checkpoint)
{
    sgm__saved_state state = {0};
    sgm_bundle *texts = sgm__bundle_load_texts(path);
    if (texts != NULL && sgm__state_open(&state, texts, path) == SGM_OK &&
        (state.parts & SGM_PART_POSITION) != 0) {
        checkpoint->epoch = state.position.epoch;
        checkpoint->iteration = state.position.iteration;
    }
    sgm__state_close(&state);
    sgm_bundle_free(texts);
    sgm_clear_error();
}

/* Adds a file of the folder to the list if it is a checkpoint. */
static sgm_status add_file(const char *folder, const char *file, sgm__checkpoint **list, size_t *count,
                           size_t *capacity)
{
    struct stat about;
    size_t length = name_length(file);
    char *path = length > 0 ? sgm__format("%s/%s", folder, file) : NULL;
    if (length > 0 && path == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = SGM_OK;
    if (path != NULL && is_file(path, &about)) {
        status = sgm__reserve(list, capacity, *count + 1, sizeof **list);
        if (status == SGM_OK) {
            sgm__checkpoint *added = &(*list)[(*count)++];
            *added = (sgm__checkpoint){.bytes = (uint64_t)about.st_size, .epoch = -1, .iteration = -1};
            added->time = (double)about.st_mtim.tv_sec + (double)about.st_mtim.tv_nsec * 1e-9;
            memcpy(added->name, file, length);
            read_position(path, added);
        }
    }
    sgm__free(path);
    return status;
}

/* For qsort: by time of writing, then by name. */
static int newest_first(const void *a, const void *b)
{
    const sgm__checkpoint *one = a, *other = b;
    if (one->time != other->time)
        return one->time > other->time ? -1 : 1;
    return strcmp(one->name, other->name);
}

/* A folder that is gone meanwhile has no checkpoints. */
sgm_status sgm__checkpoints_list(sgm_trainer *trainer, sgm__checkpoint **list, size_t *count)
{
    size_t capacity = 0;
    char *folder;
    bool run;
    *list = NULL;
    *count = 0;
    SGM_TRY(folder_of(trainer, false, &folder, &run));
    DIR *entries = folder != NULL ? opendir(folder) : NULL;
    const struct dirent *entry;
    sgm_status status = SGM_OK;
    while (entries != NULL && status == SGM_OK && (entry = readdir(entries)) != NULL)
        status = add_file(folder, entry->d_name, list, count, &capacity);
    if (entries != NULL)
        closedir(entries);
    sgm__free(folder);
    if (status != SGM_OK) {
        sgm__free(*list);
        *list = NULL;
        *count = 0;
        return status;
    }
    if (*count > 0) {
        qsort(*list, *count, sizeof **list, newest_first);
        (*list)[0].newest = true;
    }
    return SGM_OK;
}

/* --- adding and removing --- */

/* Reports why a file was refused. The message of the check names the hidden file, which means nothing to
 * the asker, so that name is removed. */
static sgm_status fail_added(const char *name, const char *path, sgm_status status)
{
    size_t length = strlen(path);
    const char *message = sgm_last_error();
    if (message[0] == '\'' && strncmp(message + 1, path, length) == 0 &&
        strncmp(message + 1 + length, "': ", 3) == 0)
        message += length + 4;
    char *copy = sgm__strdup(message);
    sgm_fail(status, "'%s' is no checkpoint: %s", name, copy != NULL ? copy : "it cannot be read");
    sgm__free(copy);
    return status;
}

/* A file that comes from elsewhere must be a checkpoint of this program with parameters; tensors alone are
 * refused. */
static sgm_status open_state(sgm__saved_state *state, const sgm_bundle *bundle, const char *path)
{
    SGM_TRY(sgm__state_open(state, bundle, path));
    if (state->json == NULL || (state->parts & SGM_PART_PARAMETERS) == 0)
        return sgm_fail(SGM_ERROR_FORMAT, "it has tensors, but does not say where a training stands");
    return SGM_OK;
}

/* Compares with the trainer between two steps; waits for the one that is running. */
static sgm_status compare(sgm_trainer *trainer, const sgm_bundle *bundle, const sgm__saved_state *state,
                          const char *name)
{
    SGM_TRY(sgm__trainer_enter(trainer));
    sgm_status status = sgm__checkpoint_fits(trainer, bundle, state, name);
    sgm__trainer_unlock(trainer);
    return status;
}

/* Reads the whole file and compares it with the trainer, as a restore would. */
static sgm_status check_file(sgm_trainer *trainer, const char *name, const char *path)
{
    sgm__saved_state state = {0};
    sgm_bundle *bundle = sgm_bundle_load(path);
    sgm_status status = bundle != NULL ? open_state(&state, bundle, path) : sgm__last_failure();
    status = status == SGM_OK ? compare(trainer, bundle, &state, name) : fail_added(name, path, status);
    sgm__state_close(&state);
    sgm_bundle_free(bundle);
    return status;
}

/* Copies from the present offset of `from` to its end; sendfile copies in the kernel, without a buffer. */
static sgm_status copy_all(int from, int file)
{
    for (ssize_t copied = 1; copied != 0;) {
        copied = sendfile(file, from, NULL, MAXIMUM_COPIED);
        if (copied < 0 && errno != EINTR)
            return sgm_fail(SGM_ERROR_FILE, "cannot write: %s", sgm__errno_text(errno));
    }
    return fsync(file) == 0 ? SGM_OK : sgm_fail(SGM_ERROR_FILE, "cannot write: %s", sgm__errno_text(errno));
}

/* Copies into a hidden file, checks it, and links it to its name. `hidden` is a template for mkostemps,
 * which fills in its X's. */
static sgm_status add_at(sgm_trainer *trainer, const char *name, const char *path, char *hidden, int from)
{
    int file = mkostemps(hidden, (int)strlen(ENDING ".tmp"), O_CLOEXEC);
    if (file < 0)
        return sgm_fail(SGM_ERROR_FILE, "cannot write '%s': %s", hidden, sgm__errno_text(errno));
    sgm_status status = copy_all(from, file);
    fchmod(file, 0644);
    close(file);
    if (status == SGM_OK)
        status = check_file(trainer, name, hidden);
    if (status == SGM_OK && link(hidden, path) != 0)
        status =
            errno == EEXIST
                ? sgm_fail(SGM_ERROR_STATE, "there is a checkpoint '%s' already; choose another name", name)
                : sgm_fail(SGM_ERROR_FILE, "cannot add '%s': %s", name, sgm__errno_text(errno));
    unlink(hidden);
    return status;
}

sgm_status sgm__checkpoint_tell(sgm_trainer *trainer, sgm__entry_kind kind, const char *who, const char *name,
                                const char *path)
{
    char checksum[SGM__CHECKSUM_DIGITS + 1] = "";
    sgm__checksum_of_file(path, checksum);
    return sgm__run_folder_event(trainer, kind,
                                 json_pack("{s:s, s:s, s:s}", "who", who, "name", name, "of", checksum));
}

/* Has the journal tell of a file that was added, between two steps. */
static sgm_status tell_added(sgm_trainer *trainer, const char *name, const char *who, const char *reason,
                             const char *path)
{
    SGM_TRY(sgm__trainer_enter(trainer));
    sgm__journal_of(trainer)->reason = reason;
    sgm_status status = sgm__checkpoint_tell(trainer, SGM__ENTRY_UPLOAD, who, name, path);
    sgm__journal_of(trainer)->reason = NULL;
    sgm__trainer_unlock(trainer);
    return status;
}

sgm_status sgm__checkpoint_add(sgm_trainer *trainer, const char *name, const char *who, const char *reason,
                               int file)
{
    struct stat about;
    char *path;
    SGM_TRY(sgm__checkpoint_path(trainer, name, true, &path));
    char *hidden = sgm__format("%.*s/.added-XXXXXX" ENDING ".tmp", (int)(strrchr(path, '/') - path), path);
    sgm_status status = hidden != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    if (status == SGM_OK && lstat(path, &about) == 0) /* before the file is copied and read */
        status = sgm_fail(SGM_ERROR_STATE, "there is a checkpoint '%s' already; choose another name", name);
    if (status == SGM_OK)
        status = add_at(trainer, name, path, hidden, file);
    if (status == SGM_OK)
        status = tell_added(trainer, name, who, reason, path);
    sgm__free(hidden);
    sgm__free(path);
    return status;
}

sgm_status sgm__checkpoint_remove(sgm_trainer *trainer, const char *name)
{
    char *path, *folder = NULL;
    bool run = false;
    SGM_TRY(sgm__checkpoint_path(trainer, name, false, &path));
    sgm_status status = path != NULL ? folder_of(trainer, false, &folder, &run) : SGM_ERROR_MEMORY;
    if (status == SGM_OK && run && strcmp(strrchr(path, '/') + 1, NEWEST_OF_RUN ENDING) == 0)
        status = sgm_fail(SGM_ERROR_STATE,
                          "'" NEWEST_OF_RUN "' is what the run goes on from when it is resumed: it stays");
    if (status == SGM_OK && run && strcmp(strrchr(path, '/') + 1, SGM__ORIGIN_NAME ENDING) == 0)
        status = sgm_fail(SGM_ERROR_STATE,
                          "'" SGM__ORIGIN_NAME "' is the state that the run began with, from which it is "
                          "replayed: it stays");
    if (status == SGM_OK && unlink(path) != 0)
        status = sgm_fail(SGM_ERROR_FILE, "cannot delete '%s': %s", name, sgm__errno_text(errno));
    sgm__free(folder);
    sgm__free(path);
    return status;
}
