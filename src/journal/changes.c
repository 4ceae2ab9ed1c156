/* What a run's folder keeps of changes: lines of JSON that tell who changed what (changes.jsonl), and what a
 * resumed run makes of them.
 *
 * A program that resumes sets its own values first. Changes that were made before the checkpoint come back
 * with it (settings.c). Changes that a person or the program made after the checkpoint are read from the
 * file and made again at the same iterations, so that a run that was killed goes on as it would have.
 * Lines of the other files (metrics.jsonl, histograms.jsonl, branches.jsonl) are appended here, too. The
 * record in memory is in change_record.c, the folder itself in src/runs/run_folder.c. */
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

/* --- changes that are newer than the checkpoint of a resume --- */

/* A change that a resumed run will make again. The trainer's list of them is in the order of the file,
 * that is, of iterations. */
struct sgm__remade {
    char *identifier, *text, *who;
    int64_t iteration;
};

/* Removes a planned change and keeps the order of the others. */
static void remove_at(sgm_trainer *trainer, size_t index)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    struct sgm__remade *old = &journal->remade[index];
    sgm__free(old->identifier);
    sgm__free(old->text);
    sgm__free(old->who);
    journal->remade_count--;
    memmove(old, old + 1, (journal->remade_count - index) * sizeof *old);
}

void sgm__changes_forget(sgm_trainer *trainer)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    while (journal->remade_count > 0)
        remove_at(trainer, journal->remade_count - 1);
    sgm__free(journal->remade);
    journal->remade = NULL;
    journal->remade_capacity = 0;
}

void sgm__changes_supersede(sgm_trainer *trainer, const char *identifier, int64_t iteration)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    for (size_t i = journal->remade_count; i-- > 0;)
        if (journal->remade[i].iteration >= iteration &&
            strcmp(journal->remade[i].identifier, identifier) == 0)
            remove_at(trainer, i);
}

/* Plans to make the change of a line again. A text is kept as it is, any other value as its JSON, which
 * reads back as the same value. */
static sgm_status add(sgm_trainer *trainer, const json_t *line, const json_t *value)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    const char *what = json_string_value(json_object_get(line, "what"));
    char *text = json_is_string(value) ? NULL : value_text(value);
    struct sgm__remade made = {.identifier = sgm__strdup(what),
                               .text = sgm__strdup(text != NULL ? text : json_string_value(value)),
                               .who = sgm__strdup(json_string_value(json_object_get(line, "who"))),
                               .iteration = json_integer_value(json_object_get(line, "iteration"))};
    free(text);
    sgm_status status = sgm__reserve(&journal->remade, &journal->remade_capacity, journal->remade_count + 1,
                                     sizeof *journal->remade);
    if (status == SGM_OK && made.identifier != NULL && made.text != NULL && made.who != NULL) {
        journal->remade[journal->remade_count++] = made;
        return SGM_OK;
    }
    sgm__free(made.identifier);
    sgm__free(made.text);
    sgm__free(made.who);
    return status != SGM_OK ? status : SGM_ERROR_MEMORY;
}

/* Whether the entry is a boolean, a number or a text, which can be set from a text. */
static bool is_value(const sgm_trainer *trainer, const char *identifier)
{
    sgm_content content = {0};
    bool plain = sgm_registry_resolve_one(sgm__registry_of(trainer), identifier, &content) == SGM_OK &&
                 content.kind >= SGM_KIND_BOOLEAN && content.kind <= SGM_KIND_TEXT;
    sgm_content_clear(&content);
    return plain;
}

/* Decides what becomes of a line of changes.jsonl. Lines of earlier iterations or of other branches stay.
 * A request (by a person or the program) from this iteration on is planned, and stays, too: making it
 * again writes no line. Lines of hooks that are newer than the checkpoint go, as the hooks will write them
 * again; so do requests that cannot be made from a text, with a warning. *stays: whether the line stays in
 * the file. */
static sgm_status read_line(sgm_trainer *trainer, const json_t *line, bool *stays)
{
    sgm__training_position *position = sgm__position_of(trainer);
    const char *what = json_string_value(json_object_get(line, "what")),
               *who = json_string_value(json_object_get(line, "who"));
    const json_t *value = json_object_get(line, "new"), *iteration = json_object_get(line, "iteration");
    if (what == NULL || who == NULL || value == NULL || !json_is_integer(iteration) ||
        json_integer_value(json_object_get(line, "branch")) != sgm__journal_of(trainer)->branch ||
        json_integer_value(iteration) < position->iteration)
        return SGM_OK;
    bool newer = json_integer_value(iteration) > position->iteration;
    bool requested = sgm__is_request(who);
    if (requested && !json_is_object(value) && is_value(trainer, what)) {
        sgm__changes_supersede(trainer, what, json_integer_value(iteration));
        return add(trainer, line, value);
    }
    *stays = !newer;
    if (requested && newer)
        sgm__log(SGM_LOG_WARNING, sgm_trainer_name(trainer),
                 "%s was changed by %s at iteration %lld, after the checkpoint: that is lost, make it again",
                 what, who, (long long)json_integer_value(iteration));
    return SGM_OK;
}

/* Reads all lines, and moves those that stay to the beginning of `text`; *kept becomes their length. */
static sgm_status read_lines(sgm_trainer *trainer, char *text, size_t length, size_t *kept)
{
    sgm_status status = SGM_OK;
    for (size_t start = 0; start < length && status == SGM_OK;) {
        const char *end = memchr(text + start, '\n', length - start);
        size_t size = end != NULL ? (size_t)(end - (text + start)) + 1 : length - start;
        json_t *line = json_loadb(text + start, size, 0, NULL);
        bool stays = true;
        status = read_line(trainer, line, &stays);
        json_decref(line);
        if (stays) {
            memmove(text + *kept, text + start, size);
            *kept += size;
        }
        start += size;
    }
    return status;
}

/* The file is written anew only if a line has gone. */
sgm_status sgm__changes_read(sgm_trainer *trainer)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    char *text, *path = sgm__format("%s/" SGM__CHANGES_FILE, journal->folder);
    size_t length, kept = 0;
    sgm__changes_forget(trainer);
    if (path == NULL)
        return SGM_ERROR_MEMORY;
    if (!sgm__file_exists(path)) {
        sgm__free(path);
        return SGM_OK;
    }
    sgm_status status = sgm__file_read(path, LARGEST_CHANGES, &text, &length);
    if (status == SGM_OK) {
        status = read_lines(trainer, text, length, &kept);
        if (status == SGM_OK && kept < length)
            status = sgm__file_write_atomic(path, text, kept);
        sgm__free(text);
    }
    sgm__free(path);
    for (size_t i = 0; i < journal->remade_count; i++)
        if (journal->remade[i].iteration > sgm__position_of(trainer)->iteration)
            sgm__log(SGM_LOG_INFO, sgm_trainer_name(trainer),
                     "%s was set to %s by %s after the checkpoint: that is made again at iteration %lld",
                     journal->remade[i].identifier, journal->remade[i].text, journal->remade[i].who,
                     (long long)journal->remade[i].iteration);
    return status;
}

/* Called by the training's thread before each iteration. `restoring` keeps the record and the file from
 * noting the change: the file has its line already. */
void sgm__changes_remake(sgm_trainer *trainer)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    while (journal->remade_count > 0 &&
           journal->remade[0].iteration <= sgm__position_of(trainer)->iteration) {
        const struct sgm__remade *next = &journal->remade[0];
        bool restoring = journal->restoring;
        journal->restoring = true;
        if (sgm__settings_set(trainer, next->identifier, next->text) != SGM_OK)
            sgm__log(SGM_LOG_WARNING, sgm_trainer_name(trainer), "%s cannot be set to %s again: %s",
                     next->identifier, next->text, sgm_last_error());
        journal->restoring = restoring;
        remove_at(trainer, 0);
    }
}

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
