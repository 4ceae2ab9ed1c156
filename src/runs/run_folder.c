/* The folder of a run: opening and locking it, its version, its log, the line of each epoch, its checkpoints,
 * and the lines of its journal about beginnings and checkpoints.
 *
 * Opening with `resume` loads the checkpoint and then drops lines about later epochs and iterations, since
 * the run will write them again. If the folder has lines but no checkpoint, training begins anew and the
 * old lines are kept in other files. Every file is appended to in one write, or replaced by a rename, so
 * that a process that is killed leaves no half line that matters. src/loop/trainer_run.c calls this;
 * src/journal/changes.c appends lines to the journal, and checkpoints.c finds checkpoints by name. */
#include "runs/run_folder.h"
#include "persistence/bundle.h"
#include "runs/checkpoints.h"
#include "runs/origin.h"
#include "runs/parts/files_version.h"
#include "runs/replay.h"
#include "runs/run_identity.h"
#include "trainer/trainer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <sigma/training.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LARGEST_RUN ((size_t)1 << 16) /* bytes of run.json */

/* FOLDER/FILE; free with sgm__free. */
static char *path_of(const char *folder, const char *file)
{
    return sgm__format("%s/%s", folder, file);
}

/* Where a run goes on from: lines of its branch that are of later epochs or iterations will be written again.
 */
typedef struct cut {
    int64_t epoch, iteration, branch;
} cut;

/* Whether a line has no number under the key, or one from 0 to the newest. */
static bool is_within(const json_t *values, const char *key, int64_t newest)
{
    const json_t *number = json_object_get(values, key);
    return number == NULL || (json_is_integer(number) && json_integer_value(number) >= 0 &&
                              json_integer_value(number) <= newest);
}

/* Whether a line stays. Lines of other branches do, as they are the history of the run; a line that is no
 * JSON, or has no position, goes. */
static bool stays(const char *line, size_t length, const cut *at)
{
    json_t *values = json_loadb(line, length, 0, NULL);
    bool other = json_integer_value(json_object_get(values, "branch")) != at->branch;
    bool placed = json_object_get(values, "epoch") != NULL || json_object_get(values, "iteration") != NULL;
    bool good = placed && is_within(values, "epoch", other ? INT64_MAX : at->epoch) &&
                is_within(values, "iteration", other ? INT64_MAX : at->iteration);
    json_decref(values);
    return good;
}

/* Copies the lines that stay. A last line without its end, which a crash cut off, is dropped. */
static sgm_status copy_lines(FILE *from, FILE *to, const cut *at)
{
    char *line = NULL;
    size_t capacity = 0;
    bool good = true;
    for (ssize_t length; good && (length = getline(&line, &capacity, from)) > 0 && line[length - 1] == '\n';)
        if (stays(line, (size_t)length, at))
            good = fwrite(line, 1, (size_t)length, to) == (size_t)length;
    free(line);
    good = good && feof(from) != 0 && fflush(to) == 0 && fsync(fileno(to)) == 0;
    return good ? SGM_OK : SGM_ERROR_FILE;
}

static sgm_status fail_lines(const char *path)
{
    return sgm_fail(SGM_ERROR_FILE, "cannot shorten '%s': %s", path, sgm__errno_text(errno));
}

/* Writes the lines that stay into a temporary file, which then replaces the old one. */
static sgm_status write_lines(const char *path, const char *temporary, const cut *at)
{
    FILE *from = sgm__file_open_stream(path);
    if (from == NULL)
        return sgm_last_status();
    FILE *to = fopen(temporary, "wbe");
    sgm_status status = to != NULL && copy_lines(from, to, at) == SGM_OK ? SGM_OK : fail_lines(path);
    fclose(from);
    if (to != NULL && fclose(to) != 0 && status == SGM_OK)
        status = fail_lines(path);
    if (status == SGM_OK)
        return sgm__file_replace(path, temporary);
    unlink(temporary);
    return status;
}

/* Rewrites a file without the lines that the run will write again; line by line, as a file of histograms
 * may be larger than the memory. */
static sgm_status drop_newer_lines(const char *path, const cut *at)
{
    if (!sgm__file_exists(path))
        return SGM_OK;
    char *temporary = sgm__format("%s.tmp", path);
    sgm_status status = temporary != NULL ? write_lines(path, temporary, at) : SGM_ERROR_MEMORY;
    sgm__free(temporary);
    return status;
}

/* A name for a file of `path` that does not exist yet: "metrics-before-1.jsonl" for "metrics.jsonl";
 * sgm__free. */
static char *name_aside(const char *path)
{
    int stem = (int)(strrchr(path, '.') - path);
    for (int number = 1;; number++) {
        char *name = sgm__format("%.*s-before-%d%s", stem, path, number, path + stem);
        if (name == NULL || !sgm__file_exists(name))
            return name;
        sgm__free(name);
    }
}

/* Renames a file of a run that ended before its first checkpoint: the next run begins anew and would write
 * lines of the same epochs again. */
static sgm_status put_aside(const sgm_trainer *trainer, const char *path)
{
    struct stat about;
    if (stat(path, &about) != 0 || about.st_size == 0)
        return SGM_OK;
    char *aside = name_aside(path);
    sgm_status status = aside != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    if (status == SGM_OK && rename(path, aside) != 0)
        status =
            sgm_fail(SGM_ERROR_FILE, "cannot rename '%s' to '%s': %s", path, aside, sgm__errno_text(errno));
    if (status == SGM_OK)
        sgm__log(
            SGM_LOG_WARNING, sgm_trainer_name(trainer),
            "the folder has no checkpoint, as the run in it ended before its first: training begins anew, "
            "and what '%s' had is kept in '%s'; checkpoint_every says how often one is written",
            path, aside);
    sgm__free(aside);
    return status;
}

/* Files whose lines are of positions of the training: a resume cuts them back to its checkpoint. */
static const char *const line_files[] = {SGM__HISTOGRAMS_FILE, SGM__SAMPLES_FILE, SGM__METRICS_FILE};
#define LINE_FILE_COUNT (sizeof line_files / sizeof *line_files)

/* Puts aside what a run has left that ended before its first checkpoint. */
static sgm_status begin_lines(const sgm_trainer *trainer, const char *folder)
{
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < LINE_FILE_COUNT && status == SGM_OK; i++) {
        char *path = path_of(folder, line_files[i]);
        status = path != NULL ? put_aside(trainer, path) : SGM_ERROR_MEMORY;
        sgm__free(path);
    }
    return status;
}

static sgm_status cut_lines(const sgm_trainer *trainer, const char *folder)
{
    const sgm__training_position *position = sgm__position_of(trainer);
    const cut at = {position->epoch, position->iteration, sgm__journal_of(trainer)->branch};
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < LINE_FILE_COUNT && status == SGM_OK; i++) {
        char *path = path_of(folder, line_files[i]);
        status = path != NULL ? drop_newer_lines(path, &at) : SGM_ERROR_MEMORY;
        sgm__free(path);
    }
    return status;
}

/* Loads the checkpoint of a resumed run and cuts files of lines back to it; a new run begins with branch 0
 * and empty files. A folder that has a checkpoint is refused without `resume`. */
static sgm_status open_files(sgm_trainer *trainer, const char *folder, const char *checkpoint, bool resume)
{
    bool there = sgm__file_exists(checkpoint);
    if (there && !resume)
        return sgm_fail(SGM_ERROR_STATE,
                        "'%s' holds a run already; resume it (.resume = true) or choose another folder",
                        checkpoint);
    if (!there) {
        sgm__journal_of(trainer)->branch = 0;
        return begin_lines(trainer, folder);
    }
    SGM_TRY(sgm_trainer_load_parts(trainer, checkpoint, .parts = SGM_PART_EVERYTHING));
    return cut_lines(trainer, folder);
}

/* The name of a file that was being written under a temporary name. */
static bool is_leftover(const char *name)
{
    static const char *const ends[] = {".safetensors.tmp", ".jsonl.tmp", ".json.tmp", ".yaml.tmp"};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t end = strlen(ends[i]);
        if (length > end && strcmp(name + length - end, ends[i]) == 0)
            return true;
    }
    return false;
}

/* Removes files that a run was writing when it was killed; they are temporary, and nothing refers to them. */
static void remove_leftovers(const char *folder, int descriptor)
{
    DIR *entries = opendir(folder);
    const struct dirent *entry;
    while (entries != NULL && (entry = readdir(entries)) != NULL)
        if (is_leftover(entry->d_name))
            unlinkat(descriptor, entry->d_name, 0);
    if (entries != NULL)
        closedir(entries);
}

/* An advisory lock on the folder's descriptor, which ends with the process, however that ends. On file
 * systems without locks the run does without one: only EWOULDBLOCK, a lock of another run, is an error. */
sgm_status sgm__run_folder_lock(const char *folder, int *lock)
{
    *lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*lock < 0)
        return sgm_fail(SGM_ERROR_FILE, "cannot open the folder '%s': %s", folder, sgm__errno_text(errno));
    if (flock(*lock, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_STATE,
                    "another run writes into '%s' now; wait for it, or choose another folder", folder);
}

void sgm__run_folder_close(int lock)
{
    if (lock >= 0)
        close(lock);
}

/* --- version --- */

/* Reads run.json and checks its version. */
static sgm_status read_version(const char *path)
{
    char *text;
    size_t length;
    SGM_TRY(sgm__file_read(path, LARGEST_RUN, &text, &length));
    json_t *run = json_loadb(text, length, 0, NULL);
    sgm__free(text);
    sgm_status status = json_is_object(run)
                            ? sgm__files_version_check(run)
                            : sgm_fail(SGM_ERROR_FORMAT, "this is no JSON object: restore it, or "
                                                         "begin in another folder");
    json_decref(run);
    return status;
}

/* Whether the folder has files of lines, which carry no version of their own. Checkpoints do. */
static bool holds_lines(const char *folder)
{
    bool holds = false;
    for (size_t i = 0; i <= LINE_FILE_COUNT && !holds; i++) {
        char *path = path_of(folder, i < LINE_FILE_COUNT ? line_files[i] : SGM__JOURNAL_FILE);
        holds = path != NULL && sgm__file_exists(path);
        sgm__free(path);
    }
    return holds;
}

/* A folder with lines and without run.json is of version 1. */
sgm_status sgm__run_folder_check(const char *folder)
{
    char *path = path_of(folder, SGM__RUN_FILE);
    sgm_status status = path != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    if (path != NULL && sgm__file_exists(path))
        status = read_version(path);
    else if (path != NULL && holds_lines(folder))
        status = sgm__files_version_check(NULL);
    if (status == SGM_ERROR_FORMAT)
        status = sgm__fail_within("'%s'", path);
    sgm__free(path);
    return status;
}

static sgm_status write_version(const char *path)
{
    char text[32];
    int length = snprintf(text, sizeof text, "{\"version\":%d}\n", SGM__FILES_VERSION);
    return sgm__file_exists(path) ? SGM_OK : sgm__file_write_atomic(path, text, (size_t)length);
}

/* *lock is the caller's also after a failure, and goes to sgm__run_folder_close. */
sgm_status sgm__run_folder_open(sgm_trainer *trainer, const char *folder, bool resume, int *lock)
{
    SGM_TRY(sgm__make_folders(folder));
    SGM_TRY(sgm__run_folder_lock(folder, lock));
    char *run = path_of(folder, SGM__RUN_FILE), *checkpoint = path_of(folder, SGM__CHECKPOINT_FILE);
    sgm_status status = run != NULL && checkpoint != NULL ? sgm__run_folder_check(folder) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        remove_leftovers(folder, *lock);
    if (status == SGM_OK)
        status = open_files(trainer, folder, checkpoint, resume);
    if (status == SGM_OK)
        status = write_version(run);
    sgm__free(run);
    sgm__free(checkpoint);
    return status;
}

/* A run goes on without its log: a full disk must not end it. */
sgm_log_sink *sgm__run_folder_log(const sgm_trainer *trainer, const char *folder)
{
    char *path = path_of(folder, SGM__LOG_FILE);
    sgm_log_sink *sink = path != NULL ? sgm_log_add_file(path, .level = SGM_LOG_INFO) : NULL;
    if (sink == NULL)
        sgm__log(SGM_LOG_WARNING, sgm_trainer_name(trainer), "the run goes on without a log: %s",
                 sgm_last_error());
    sgm__free(path);
    return sink;
}

/* Adds PREFIX NAME to the object. A value that is not finite, which JSON does not have, is left out. */
static void set_number(json_t *object, const char *prefix, const char *name, double value)
{
    char key[128];
    snprintf(key, sizeof key, "%s%s", prefix, name);
    if (isfinite(value))
        json_object_set_new(object, key, json_real(value));
}

/* The line of an epoch: losses, accuracies and scores of metrics by data set, learning rate, seconds,
 * branch. Values of data sets have keys "DATA.NAME". */
static json_t *describe_epoch(const sgm_trainer *trainer, double seconds)
{
    const sgm__trainer_results *results = sgm__results_of(trainer);
    const sgm__trainer_data *data = sgm__data_of(trainer);
    const sgm__training_position *position = sgm__position_of(trainer);
    json_t *line = json_object();
    json_object_set_new(line, "epoch", json_integer(position->epoch));
    json_object_set_new(line, "iteration", json_integer(position->iteration));
    sgm_metrics training = sgm__metrics_of(&position->sums);
    set_number(line, "", "loss", training.loss);
    set_number(line, "", "accuracy", training.accuracy);
    set_number(line, "", "learning_rate", sgm__trainer_learning_rate(trainer, 0));
    set_number(line, "", "seconds", seconds);
    for (size_t i = 0; i < data->validation_count; i++) {
        char prefix[96];
        snprintf(prefix, sizeof prefix, "%s.", data->metrics[i].name);
        set_number(line, prefix, "loss", data->metrics[i].metrics.loss);
        set_number(line, prefix, "accuracy", data->metrics[i].metrics.accuracy);
    }
    for (size_t i = 0; i < results->score_count; i++) {
        char prefix[96];
        snprintf(prefix, sizeof prefix, "%s.", results->scores[i].data);
        set_number(line, prefix, results->scores[i].name, results->scores[i].value);
    }
    json_object_set_new(line, "branch", json_integer(sgm__journal_of(trainer)->branch));
    return line;
}

/* Nine digits are enough for a float32, and keep lines readable. */
sgm_status sgm__run_folder_epoch(const sgm_trainer *trainer, const char *folder, double seconds)
{
    json_t *line = describe_epoch(trainer, seconds);
    char *text = json_dumps(line, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
    sgm_status status =
        text != NULL ? sgm__run_folder_append(folder, SGM__METRICS_FILE, text) : sgm__fail_memory(256);
    free(text);
    json_decref(line);
    return status;
}

sgm_status sgm__run_folder_save_as(sgm_trainer *trainer, const char *folder, const char *name)
{
    SGM_TRY(sgm__checkpoint_name_is_free(name));
    char *path = sgm__format("%s/%s.safetensors", folder, name);
    if (path == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = sgm_trainer_save(trainer, path);
    sgm__free(path);
    return status;
}

/* A checkpoint that is being saved. */
typedef struct saving {
    sgm_trainer *trainer;
    char checksum[SGM__CHECKSUM_DIGITS + 1];
} saving;

/* The journal gets its line before the checkpoint takes its place: whenever the process is killed, there is a
 * line for the checkpoint that the folder has. A line whose checkpoint never came does no harm, as what
 * follows the line of the one that is there does not count. */
static sgm_status tell_saved(void *user, const char *file)
{
    saving *s = user;
    if (!sgm__checksum_of_file(file, s->checksum))
        return sgm_fail(SGM_ERROR_FILE, "cannot read '%s' again", file);
    return sgm__run_folder_event(s->trainer, SGM__ENTRY_CHECKPOINT, json_pack("{s:s}", "of", s->checksum));
}

sgm_status sgm__run_folder_save(sgm_trainer *trainer, const char *folder)
{
    saving s = {.trainer = trainer};
    char *path = path_of(folder, SGM__CHECKPOINT_FILE);
    sgm_status status =
        path != NULL ? sgm__trainer_save_with_callback(trainer, path, tell_saved, &s) : SGM_ERROR_MEMORY;
    sgm__free(path);
    return status == SGM_OK && sgm__journal_of(trainer)->replay != NULL
               ? sgm__replay_compare(trainer, s.checksum)
               : status;
}

sgm_status sgm__run_folder_begin(sgm_trainer *trainer, bool resumed)
{
    const sgm__trainer_progress *progress = sgm__progress_of(trainer);
    json_t *line = sgm__run_identity(trainer);
    if (line == NULL)
        return sgm__last_failure();
    json_object_set_new(line, "resumed", json_boolean(resumed));
    json_object_set_new(line, "epochs", json_integer(progress->epochs));
    json_object_set_new(line, "iterations", json_integer(progress->iterations));
    sgm_status status = resumed ? SGM_OK : sgm__origin_keep(trainer, line);
    if (status != SGM_OK) {
        json_decref(line);
        return status;
    }
    return sgm__run_folder_event(trainer, SGM__ENTRY_BEGIN, line);
}
