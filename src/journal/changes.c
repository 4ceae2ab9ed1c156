/* What a run's folder keeps of changes: lines of JSON that tell who changed what (changes.jsonl), and the
 * tensors that persons set.
 *
 * What a resumed run makes of them is in src/runs/remade.c. Lines of the other files (metrics.jsonl,
 * histograms.jsonl, branches.jsonl) are appended here, too. The record in memory is in change_record.c, the
 * folder itself in src/runs/run_folder.c. */
#include "journal/changes.h"
#include "base/base.h"
#include "journal/change_record.h"
#include "journal/run_lines.h"
#include "trainer/trainer.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SAMPLE 8 /* elements of a tensor that a line shows */

static const char *const persons[] = {"ctl", "monitor", "terminal"};

bool sgm__is_person(const char *who)
{
    for (size_t i = 0; i < sizeof persons / sizeof *persons; i++)
        if (strcmp(who, persons[i]) == 0)
            return true;
    return false;
}

/* A resume repeats what persons and the program set; hooks set their values again by themselves. */
bool sgm__is_request(const char *who)
{
    return sgm__is_person(who) || strcmp(who, "program") == 0;
}

/* A number that JSON does not have (NaN, infinity) becomes a text, so that a line never lacks a value. */
static json_t *number_json(double value)
{
    char text[32];
    snprintf(text, sizeof text, "%g", value);
    return isfinite(value) ? json_real(value) : json_string(text);
}

/* {"shape", "norm" (L2), "sample"}: enough to see what was set, without the file growing by whole tensors. */
static json_t *tensor_json(const sgm_tensor *tensor)
{
    const sgm_shape *shape = sgm_tensor_shape(tensor);
    int64_t count = sgm_shape_elements(shape);
    double *values = sgm__calloc((size_t)count + 1, sizeof *values), squares = 0;
    json_t *dims = json_array(), *sample = json_array();
    if (values != NULL && sgm_tensor_read(tensor, values, count) != SGM_OK)
        count = 0;
    for (int32_t i = 0; i < shape->rank; i++)
        json_array_append_new(dims, json_integer(shape->dims[i]));
    for (int64_t i = 0; values != NULL && i < count; i++) {
        squares += values[i] * values[i];
        if (i < SAMPLE)
            json_array_append_new(sample, number_json(values[i]));
    }
    sgm__free(values);
    return json_pack("{s:o, s:o, s:o}", "shape", dims, "norm", number_json(sqrt(squares)), "sample", sample);
}

json_t *sgm__content_change_json(const sgm_content *content)
{
    switch (content->kind) {
    case SGM_KIND_BOOLEAN:
        return json_boolean(content->as.boolean);
    case SGM_KIND_INTEGER:
        return json_integer(content->as.integer);
    case SGM_KIND_NUMBER:
        return number_json(content->as.number);
    case SGM_KIND_TEXT:
        return json_string(content->as.text);
    case SGM_KIND_TENSOR:
        return tensor_json(content->as.tensor);
    case SGM_KIND_NOTHING:
    case SGM_KIND_REGISTRY:
        break;
    }
    return json_null();
}

/* The shortest text that reads back as the same number, of 15 to 17 digits: "0.1" and not
 * "0.10000000000000001". Freed with free(), as jansson allocates it. */
static char *value_text(const json_t *value)
{
    int digits = json_is_real(value) ? 15 : 6;
    for (double again = 0;; digits++) {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_PRESERVE_ORDER |
                                           JSON_REAL_PRECISION(digits));
        if (text == NULL || !json_is_real(value) || digits == 17 ||
            (sgm__parse_double(text, &again) && again == json_real_value(value)))
            return text;
        free(text);
    }
}

/* The members of `head`, then the two values and the branch, as one line; free with sgm__free. The values
 * are put in as texts, since jansson has one precision for a whole object. */
static char *change_line(const json_t *head, const json_t *before, const json_t *after, int64_t branch)
{
    char *start = json_dumps(head, JSON_COMPACT | JSON_PRESERVE_ORDER);
    char *old = value_text(before), *new = value_text(after), *line = NULL;
    if (start != NULL && old != NULL && new != NULL)
        line = sgm__format("%.*s,\"old\":%s,\"new\":%s,\"branch\":%lld}", (int)strlen(start) - 1, start, old,
                           new, (long long)branch);
    else
        sgm__fail_memory(256);
    free(start);
    free(old);
    free(new);
    return line;
}

/* --- appending a line ---
 *
 * A line is written by one write call to a file that is opened for appending: a process that is killed
 * leaves the whole line or nothing, and several writers do not mix. If the system went down in the middle
 * of a line, the next line begins behind a line end, so that only the torn one is lost. */

#define LARGEST_BRANCHES ((size_t)1 << 30) /* bytes of a file that is read in full */

/* True if the file's last line has no end: the system went down while it was written. */
static bool is_torn(int file)
{
    char last;
    off_t size = lseek(file, 0, SEEK_END);
    return size > 0 && pread(file, &last, 1, size - 1) == 1 && last != '\n';
}

/* Appends a line with its end, in one write. */
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

/* Adds the time in UTC, to the second. */
static void set_when(json_t *line, time_t when)
{
    char text[32];
    struct tm parts;
    if (gmtime_r(&when, &parts) != NULL && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts) > 0)
        json_object_set_new(line, "when", json_string(text));
}

/* Keys: when (UTC), epoch, iteration, who, what, old, new, branch. */
sgm_status sgm__run_folder_change(const char *folder, const sgm__noted_change *change)
{
    json_t *head = json_object();
    set_when(head, (time_t)change->when);
    json_object_set_new(head, "epoch", json_integer(change->epoch));
    json_object_set_new(head, "iteration", json_integer(change->iteration));
    json_object_set_new(head, "who", json_string(change->who));
    json_object_set_new(head, "what", json_string(change->identifier));
    char *line = change_line(head, change->before, change->after, change->branch);
    sgm_status status =
        line != NULL ? sgm__run_folder_append(folder, SGM__CHANGES_FILE, line) : SGM_ERROR_MEMORY;
    sgm__free(line);
    json_decref(head);
    return status;
}

/* --- tensors --- */

sgm_status sgm__run_folder_tensor(const char *folder, int64_t iteration, const sgm_tensor *tensor,
                                  char **file)
{
    char *below = sgm__format("%s/" SGM__TENSORS_FOLDER, folder), *path = NULL;
    sgm_status status = below != NULL ? sgm__make_folders(below) : SGM_ERROR_MEMORY;
    *file = NULL;
    for (int number = 1; status == SGM_OK && path == NULL; number++) {
        sgm__free(*file);
        *file = sgm__format(SGM__TENSORS_FOLDER "%lld-%d.npy", (long long)iteration, number);
        path = *file != NULL ? sgm__format("%s/%s", folder, *file) : NULL;
        if (path == NULL) {
            status = SGM_ERROR_MEMORY;
        } else if (sgm__file_exists(path)) {
            sgm__free(path);
            path = NULL;
        }
    }
    if (status == SGM_OK)
        status = sgm_npy_save(path, tensor);
    sgm__free(path);
    sgm__free(below);
    return status;
}

char *sgm__run_folder_tensor_path(const char *folder, const char *file)
{
    size_t length = strlen(SGM__TENSORS_FOLDER);
    if (file == NULL || strncmp(file, SGM__TENSORS_FOLDER, length) != 0 || strchr(file + length, '/') != NULL)
        return NULL;
    return sgm__format("%s/%s", folder, file);
}

/* --- branches --- */

/* Raises *number to the greatest number in branches.jsonl. Lines that are no JSON count as 0; the bound
 * keeps a damaged number from making the next one overflow. */
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

/* One more than the greatest number in the file and the present branch. */
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

/* Keys: when, branch, who, from (the checkpoint, or null for a reset), the position that the branch begins
 * at, and the branch, position and checkpoint that were left. */
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

#define LARGEST_CHANGES ((size_t)1 << 30) /* bytes of a file that is read in full */

/* --- the running time that a folder's metrics tell --- */

/* Checkpoints have no running time, as equal trainings write equal ones; metrics.jsonl has it for each
 * epoch. The newest line up to the present epoch counts, of this branch if it has one, else of another. */
double sgm__run_folder_seconds(const sgm_trainer *trainer, const char *folder)
{
    const sgm__training_position *position = sgm__position_of(trainer);
    char *text = NULL, *path = sgm__format("%s/" SGM__METRICS_FILE, folder);
    size_t length = 0;
    double own = -1, other = 0;
    if (path == NULL || !sgm__file_exists(path) ||
        sgm__file_read(path, LARGEST_CHANGES, &text, &length) != SGM_OK)
        length = 0;
    for (size_t start = 0; start < length && position->epoch > 0;) {
        const char *end = memchr(text + start, '\n', length - start);
        size_t size = end != NULL ? (size_t)(end - (text + start)) + 1 : length - start;
        json_t *line = json_loadb(text + start, size, 0, NULL);
        double seconds = json_number_value(json_object_get(line, "seconds"));
        if (json_is_object(line) && json_integer_value(json_object_get(line, "epoch")) <= position->epoch &&
            seconds > 0) {
            if (json_integer_value(json_object_get(line, "branch")) == sgm__journal_of(trainer)->branch)
                own = seconds;
            else
                other = seconds;
        }
        json_decref(line);
        start += size;
    }
    sgm__free(text);
    sgm__free(path);
    return own >= 0 ? own : other;
}
