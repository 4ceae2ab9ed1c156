/* Appends lines to the files of a run's folder: metrics.jsonl, histograms.jsonl, changes.jsonl,
 * branches.jsonl.
 *
 * A line is written by one write call to a file that is opened for appending: a process that is killed
 * leaves the whole line or nothing, and several writers do not mix. If the system went down in the middle
 * of a line, the next line begins behind a line end, so that only the torn one is lost. */
#include "journal/run_lines.h"
#include "journal/changes.h"
#include "trainer/trainer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define LARGEST_BRANCHES ((size_t)1 << 30)

/* True if the file's last line has no end: the system went down while it was written. */
static bool is_torn(int file)
{
    char last;
    off_t size = lseek(file, 0, SEEK_END);
    return size > 0 && pread(file, &last, 1, size - 1) == 1 && last != '\n';
}

/* In one write, so that a process that is killed leaves the whole line or nothing. */
static sgm_status append_line(const char *path, const char *text)
{
    int file = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0)
        return sgm_fail(SGM_ERROR_FILE, "cannot open '%s': %s", path, sgm__errno_text(errno));
    char *line = sgm__format("%s%s\n", is_torn(file) ? "\n" : "", text);
    ssize_t length = line != NULL ? (ssize_t)strlen(line) : -1;
    sgm_status status = line != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    if (line != NULL && write(file, line, (size_t)length) != length)
        status = sgm_fail(SGM_ERROR_FILE, "cannot write '%s': %s", path, sgm__errno_text(errno));
    sgm__free(line);
    close(file);
    return status;
}

sgm_status sgm__run_folder_append(const char *folder, const char *file, const char *line)
{
    char *path = sgm__format("%s/%s", folder, file);
    sgm_status status = path != NULL ? append_line(path, line) : SGM_ERROR_MEMORY;
    sgm__free(path);
    return status;
}

static void set_when(json_t *line, time_t when)
{
    char text[32];
    struct tm parts;
    if (gmtime_r(&when, &parts) != NULL && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts) > 0)
        json_object_set_new(line, "when", json_string(text));
}

sgm_status sgm__run_folder_change(const char *folder, const sgm__noted_change *change)
{
    json_t *head = json_object();
    set_when(head, (time_t)change->when);
    json_object_set_new(head, "epoch", json_integer(change->epoch));
    json_object_set_new(head, "iteration", json_integer(change->iteration));
    json_object_set_new(head, "who", json_string(change->who));
    json_object_set_new(head, "what", json_string(change->identifier));
    char *line = sgm__change_line(head, change->before, change->after, change->branch);
    sgm_status status =
        line != NULL ? sgm__run_folder_append(folder, SGM__CHANGES_FILE, line) : SGM_ERROR_MEMORY;
    sgm__free(line);
    json_decref(head);
    return status;
}

/* --- branches --- */

/* The greatest number in branches.jsonl; lines that are no JSON count as 0. */
static sgm_status newest_branch(const char *path, int64_t *number)
{
    char *text;
    size_t length;
    if (!sgm__file_exists(path))
        return SGM_OK;
    SGM_TRY(sgm__file_read(path, LARGEST_BRANCHES, &text, &length));
    for (size_t start = 0; start < length;) {
        const char *end = memchr(text + start, '\n', length - start);
        size_t line = end != NULL ? (size_t)(end - (text + start)) + 1 : length - start;
        json_t *values = json_loadb(text + start, line, 0, NULL);
        int64_t branch = json_integer_value(json_object_get(values, "branch"));
        *number = branch > *number && branch < INT32_MAX ? branch : *number;
        json_decref(values);
        start += line;
    }
    sgm__free(text);
    return SGM_OK;
}

sgm_status sgm__run_folder_next_branch(const sgm_trainer *trainer, int64_t *number)
{
    const sgm__trainer_journal *journal = sgm__journal_of(trainer);
    char *path = sgm__format("%s/" SGM__BRANCHES_FILE, journal->folder);
    *number = journal->branch;
    sgm_status status = path != NULL ? newest_branch(path, number) : SGM_ERROR_MEMORY;
    ++*number;
    sgm__free(path);
    return status;
}

sgm_status sgm__run_folder_branch(const sgm_trainer *trainer, const sgm__branch *branch, const char *from)
{
    const sgm__training_position *position = sgm__position_of(trainer);
    json_t *line = json_object();
    set_when(line, time(NULL));
    json_object_set_new(line, "branch", json_integer(branch->number));
    json_object_set_new(line, "who", json_string(branch->who));
    json_object_set_new(line, "from", from != NULL ? json_string(from) : json_null());
    json_object_set_new(line, "epoch", json_integer(position->epoch));
    json_object_set_new(line, "iteration", json_integer(position->iteration));
    json_object_set_new(line, "left", json_integer(branch->of));
    json_object_set_new(line, "left_epoch", json_integer(branch->left_epoch));
    json_object_set_new(line, "left_iteration", json_integer(branch->left_iteration));
    json_object_set_new(line, "left_checkpoint", json_string(branch->left));
    char *text = json_dumps(line, JSON_COMPACT | JSON_PRESERVE_ORDER);
    sgm_status status =
        text != NULL ? sgm__run_folder_append(sgm__journal_of(trainer)->folder, SGM__BRANCHES_FILE, text)
                     : sgm__fail_memory(256);
    free(text);
    json_decref(line);
    return status;
}
