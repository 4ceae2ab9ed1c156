/* What a run's folder keeps of what happened: the lines of the journal, which tell who changed what and what
 * else was done, and the tensors that persons set.
 *
 * journal_file.c puts lines into the file; what a resumed run makes of them is in src/runs/remade.c. Lines of
 * metrics.jsonl and histograms.jsonl are appended here, too. The record in memory is in change_record.c, the
 * folder itself in src/runs/run_folder.c. */
#include "journal/changes.h"
#include "base/base.h"
#include "journal/change_record.h"
#include "journal/run_lines.h"
#include "persistence/bundle.h"
#include "trainer/trainer.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SAMPLE 8 /* elements of a tensor that a line shows */

/* Where requests come from; "mcp" is an agent that asks in a person's name. */
static const char *const persons[] = {"ctl", "monitor", "terminal", "mcp"};

/* What follows a colon is the name that the asker gave itself. */
bool sgm__is_person(const char *who)
{
    size_t length = strcspn(who, ":");
    for (size_t i = 0; i < sizeof persons / sizeof *persons; i++)
        if (strlen(persons[i]) == length && strncmp(who, persons[i], length) == 0)
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

/* The members of `head`, then the two values, as one line; free with sgm__free. The values are put in as
 * texts, since jansson has one precision for a whole object. */
static char *change_line(const json_t *head, const json_t *before, const json_t *after)
{
    char *start = json_dumps(head, JSON_COMPACT | JSON_PRESERVE_ORDER);
    char *old = value_text(before), *new = value_text(after), *line = NULL;
    if (start != NULL && old != NULL && new != NULL)
        line = sgm__format("%.*s,\"old\":%s,\"new\":%s}", (int)strlen(start) - 1, start, old, new);
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
    sgm_status status = line != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    if (line != NULL && !sgm__write_fully(file, line, strlen(line)))
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

/* The beginning of each line of the journal. */
static json_t *line_head(sgm__entry_kind kind, time_t when, int64_t branch, int64_t epoch, int64_t iteration)
{
    json_t *line = json_object();
    json_object_set_new(line, "event", json_string(sgm__entry_event(kind)));
    set_when(line, when);
    json_object_set_new(line, "branch", json_integer(branch));
    json_object_set_new(line, "epoch", json_integer(epoch));
    json_object_set_new(line, "iteration", json_integer(iteration));
    return line;
}

/* Nothing if no reason was given. */
static void set_reason(json_t *line, const char *reason)
{
    if (reason != NULL)
        json_object_set_new(line, "reason", json_string(reason));
}

/* What the lines of all changes begin with. */
static json_t *change_head(sgm__entry_kind kind, const sgm__noted_change *change)
{
    json_t *head = line_head(kind, (time_t)change->when, change->branch, change->epoch, change->iteration);
    if (change->again)
        json_object_set_new(head, "again", json_true());
    if (change->takes_back)
        json_object_set_new(head, "undoes", json_true());
    if (change->group > 0 && change->group != change->number)
        json_object_set_new(head, "joins", json_true());
    json_object_set_new(head, "who", json_string(change->who));
    set_reason(head, change->reason);
    return head;
}

/* Keys: event, when (UTC), branch, epoch, iteration, who, reason (if one was given), what, old, new. */
sgm_status sgm__run_folder_change(const char *folder, const sgm__noted_change *change)
{
    json_t *head = change_head(SGM__ENTRY_VALUE, change);
    json_object_set_new(head, "what", json_string(change->identifier));
    char *line = change_line(head, change->before, change->after);
    sgm_status status = line != NULL ? sgm__journal_append(folder, line) : SGM_ERROR_MEMORY;
    sgm__free(line);
    json_decref(head);
    return status;
}

static sgm_status append_event(const char *folder, json_t *line)
{
    char *text = json_dumps(line, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(17));
    sgm_status status = text != NULL ? sgm__journal_append(folder, text) : sgm__fail_memory(256);
    free(text);
    json_decref(line);
    return status;
}

/* Keys: event, when (UTC), branch, epoch, iteration, who, reason (if one was given), name. */
sgm_status sgm__run_folder_press(const char *folder, const sgm__noted_change *change)
{
    json_t *line = change_head(SGM__ENTRY_PRESS, change);
    json_object_set_new(line, "name", json_string(change->identifier + strlen(SGM__PRESS_CHANGE)));
    return append_event(folder, line);
}

sgm_status sgm__run_folder_event(const sgm_trainer *trainer, sgm__entry_kind kind, json_t *more)
{
    const sgm__trainer_journal *journal = sgm__journal_of(trainer);
    const sgm__training_position *position = sgm__position_of(trainer);
    sgm_status status = SGM_OK;
    if (journal->folder != NULL) {
        json_t *line = line_head(kind, time(NULL), journal->branch, position->epoch, position->iteration);
        json_object_update(line, more);
        if (json_object_get(line, "who") != NULL) /* else nobody has asked for it */
            set_reason(line, journal->reason);
        status = append_event(journal->folder, line);
    }
    json_decref(more);
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

/* Raises the number to that of a branch that the line begins. */
static sgm_status raise_branch(void *user, int64_t number, const json_t *line)
{
    int64_t *newest = user, branch = json_integer_value(json_object_get(line, "begun"));
    (void)number;
    *newest = branch > *newest && branch < INT32_MAX ? branch : *newest;
    return SGM_OK;
}

/* One more than the greatest number in the journal and the present branch. Also lines that no longer hold
 * count: their checkpoints lie in the folder. */
sgm_status sgm__run_folder_next_branch(const sgm_trainer *trainer, int64_t *number)
{
    const sgm__trainer_journal *journal = sgm__journal_of(trainer);
    *number = journal->branch;
    SGM_TRY(sgm__journal_read(journal->folder, sgm_trainer_name(trainer), raise_branch, number));
    ++*number;
    return SGM_OK;
}

/* Keys: those of all lines, of the branch that was left; who, reason (if one was given), name (the
 * checkpoint, or null for a reset), of (its checksum), begun, begun_epoch, begun_iteration, left_checkpoint.
 */
sgm_status sgm__run_folder_move(const sgm_trainer *trainer, const sgm__branch *branch, const char *from,
                                const char *path)
{
    const sgm__training_position *position = sgm__position_of(trainer);
    json_t *line = line_head(from != NULL ? SGM__ENTRY_RESTORE : SGM__ENTRY_RESET, time(NULL), branch->of,
                             branch->left_epoch, branch->left_iteration);
    char checksum[SGM__CHECKSUM_DIGITS + 1];
    json_object_set_new(line, "who", json_string(branch->who));
    set_reason(line, sgm__journal_of(trainer)->reason);
    json_object_set_new(line, "name", from != NULL ? json_string(from) : json_null());
    if (path != NULL && sgm__checksum_of_file(path, checksum))
        json_object_set_new(line, "of", json_string(checksum));
    json_object_set_new(line, "begun", json_integer(branch->number));
    json_object_set_new(line, "begun_epoch", json_integer(position->epoch));
    json_object_set_new(line, "begun_iteration", json_integer(position->iteration));
    json_object_set_new(line, "left_checkpoint", json_string(branch->left));
    return append_event(sgm__journal_of(trainer)->folder, line);
}

#define LARGEST_METRICS ((size_t)1 << 30) /* bytes of a file that is read in full */

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
        sgm__file_read(path, LARGEST_METRICS, &text, &length) != SGM_OK)
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
