/* Reads a journal as a whole: what holds, and what was lost; see history.h.
 *
 * Lines are read in order, and so two lists grow. A beginning that goes on from a checkpoint cuts the first
 * list behind that checkpoint, and what persons and the program had asked for goes to the second. A line that
 * makes such a request again ("again") takes it out of there, and so does a newer request for the same
 * entry, as the trainer itself then forgets the older one (planned.h). */
#include "journal/history.h"
#include "journal/change_record.h"
#include "journal/journal_file.h"
#include "text/json_text.h"

#include <time.h>

/* --- lists of entries --- */

void sgm__entry_clear(sgm__journal_entry *entry)
{
    sgm__free(entry->identifier);
    sgm__free(entry->text);
    sgm__free(entry->average);
    sgm__free(entry->old);
    sgm__free(entry->new);
    sgm__free(entry->who);
    sgm__free(entry->reason);
    sgm__free(entry->checksum);
    *entry = (sgm__journal_entry){0};
}

static char *copy_text(const char *text)
{
    return sgm__strdup(text != NULL ? text : "");
}

sgm_status sgm__entries_add(sgm__journal_entries *list, const sgm__journal_entry *entry)
{
    SGM_TRY(sgm__reserve(&list->items, &list->capacity, list->count + 1, sizeof *list->items));
    sgm__journal_entry made = *entry;
    made.identifier = copy_text(entry->identifier);
    made.text = copy_text(entry->text);
    made.average = copy_text(entry->average);
    made.old = copy_text(entry->old);
    made.new = copy_text(entry->new);
    made.who = copy_text(entry->who);
    made.reason = copy_text(entry->reason);
    made.checksum = copy_text(entry->checksum);
    if (made.identifier != NULL && made.text != NULL && made.average != NULL && made.old != NULL &&
        made.new != NULL &&made.who != NULL &&made.reason != NULL &&made.checksum != NULL) {
        list->items[list->count++] = made;
        return SGM_OK;
    }
    sgm__entry_clear(&made);
    return SGM_ERROR_MEMORY;
}

void sgm__entries_remove(sgm__journal_entries *list, size_t index)
{
    sgm__entry_clear(&list->items[index]);
    list->count--;
    memmove(&list->items[index], &list->items[index + 1], (list->count - index) * sizeof *list->items);
}

void sgm__entries_clear(sgm__journal_entries *list)
{
    for (size_t i = 0; i < list->count; i++)
        sgm__entry_clear(&list->items[i]);
    sgm__free(list->items);
    *list = (sgm__journal_entries){0};
}

void sgm__history_free(sgm__history *history)
{
    sgm__entries_clear(&history->held);
    sgm__entries_clear(&history->lost);
    json_decref(history->beginnings);
    history->beginnings = NULL;
}

/* --- reading a line --- */

static const char *const events[SGM__ENTRY_KIND_COUNT] = {
    [SGM__ENTRY_VALUE] = "change",          [SGM__ENTRY_TENSOR] = "change",   [SGM__ENTRY_ATTACH] = "change",
    [SGM__ENTRY_DETACH] = "change",         [SGM__ENTRY_PRESS] = "press",     [SGM__ENTRY_UNKNOWN] = "change",
    [SGM__ENTRY_RESET] = "reset",           [SGM__ENTRY_RESTORE] = "restore", [SGM__ENTRY_SAVE] = "save",
    [SGM__ENTRY_UPLOAD] = "upload",         [SGM__ENTRY_PAUSE] = "pause",     [SGM__ENTRY_RESUME] = "resume",
    [SGM__ENTRY_BEGIN] = "begin",           [SGM__ENTRY_END] = "end",         [SGM__ENTRY_BRANCH] = "branch",
    [SGM__ENTRY_CHECKPOINT] = "checkpoint",
};

const char *sgm__entry_event(sgm__entry_kind kind)
{
    return events[kind];
}

bool sgm__entry_is_change(sgm__entry_kind kind)
{
    return kind <= SGM__ENTRY_UNKNOWN;
}

bool sgm__entry_is_move(sgm__entry_kind kind)
{
    return kind == SGM__ENTRY_RESET || kind == SGM__ENTRY_RESTORE;
}

/* Texts of a line are borrowed from it, as entries that are added are copied. */
static char *text_of(const json_t *line, const char *key)
{
    return (char *)(uintptr_t)json_string_value(json_object_get(line, key));
}

/* Finds the kind of a line by its event; a change is a VALUE until it is looked at. False: no such event. */
static bool kind_of(const char *event, sgm__entry_kind *kind)
{
    for (size_t i = 0; event != NULL && i < SGM__ENTRY_KIND_COUNT; i++)
        if (strcmp(events[i], event) == 0) {
            *kind = (sgm__entry_kind)i;
            return true;
        }
    return false;
}

/* The text of a hook that came or went; NULL: its line has its name alone, as a program made it. */
static char *hook_text(const json_t *line, const char *key)
{
    char *text = text_of(line, key);
    const char *name = text_of(line, "what") + strlen(SGM__HOOK_CHANGE);
    return text == NULL || strcmp(text, SGM__NO_HOOK) == 0 || strcmp(text, name) == 0 ? NULL : text;
}

/* Texts that are made of a line, and freed when its entry was copied. */
typedef struct made_texts {
    char *text, *old, *new;
} made_texts;

static sgm_status make_text(const json_t *value, char **made)
{
    *made = value != NULL ? sgm__json_text(value) : NULL;
    return *made != NULL || value == NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* Fills in what a change did. */
static sgm_status read_change(const json_t *line, sgm__journal_entry *entry, made_texts *made)
{
    const json_t *value = json_object_get(line, "new");
    SGM_TRY(make_text(json_object_get(line, "old"), &made->old));
    SGM_TRY(make_text(value, &made->new));
    entry->old = made->old;
    entry->new = made->new;
    entry->undoes = json_is_true(json_object_get(line, "undoes"));
    entry->joins = json_is_true(json_object_get(line, "joins"));
    entry->identifier = text_of(line, "what");
    if (sgm__begins_with(entry->identifier, SGM__HOOK_CHANGE)) {
        char *attached = hook_text(line, "new"), *detached = hook_text(line, "old");
        entry->kind = attached != NULL   ? SGM__ENTRY_ATTACH
                      : detached != NULL ? SGM__ENTRY_DETACH
                                         : SGM__ENTRY_UNKNOWN;
        entry->text = attached != NULL ? attached : detached;
    } else if (json_is_object(value)) {
        entry->text = text_of(value, "file");
        entry->average = text_of(value, "average");
        entry->kind = entry->text != NULL ? SGM__ENTRY_TENSOR : SGM__ENTRY_UNKNOWN;
    } else if (json_is_string(value)) {
        entry->text = text_of(line, "new");
    } else if (json_is_boolean(value) || json_is_number(value)) {
        entry->text = made->new;
    } else {
        entry->kind = SGM__ENTRY_UNKNOWN;
    }
    return SGM_OK;
}

/* What a line must have beside its event; NULL ends the list. */
static const char *const wanted_numbers[] = {"branch", "epoch", "iteration", NULL};

static sgm_status check_fields(const json_t *line, sgm__entry_kind kind)
{
    for (size_t i = 0; wanted_numbers[i] != NULL; i++) {
        const json_t *value = json_object_get(line, wanted_numbers[i]);
        if (!json_is_integer(value) || json_integer_value(value) < 0)
            return sgm_fail(SGM_ERROR_FORMAT, "'%s' must be a number from 0", wanted_numbers[i]);
    }
    bool named = kind == SGM__ENTRY_PRESS || kind == SGM__ENTRY_RESTORE || kind == SGM__ENTRY_BRANCH;
    const char *text = named ? "name" : sgm__entry_is_change(kind) ? "what" : NULL;
    if (text != NULL && (text_of(line, text) == NULL || text_of(line, "who") == NULL))
        return sgm_fail(SGM_ERROR_FORMAT, "'%s' and 'who' must be texts", text);
    return SGM_OK;
}

/* The identifier of a press is made: presses of one button are found by it, as changes of one value are. */
static sgm_status read_press(sgm__journal_entry *entry, made_texts *made)
{
    made->text = sgm__format(SGM__PRESS_CHANGE "%s", entry->text);
    entry->identifier = made->text;
    return made->text != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* "2026-11-21T10:34:22Z" in seconds since 1970; 0: it is no such text. */
static double read_when(const char *text)
{
    struct tm parts = {0};
    const char *end = text != NULL ? strptime(text, "%Y-%m-%dT%H:%M:%SZ", &parts) : NULL;
    return end != NULL && *end == '\0' ? (double)timegm(&parts) : 0;
}

/* Reads a line into *entry, whose texts are the line's or *made. */
static sgm_status read_entry(const json_t *line, int64_t number, sgm__journal_entry *entry, made_texts *made)
{
    const char *event = text_of(line, "event");
    if (!kind_of(event, &entry->kind))
        return sgm_fail(SGM_ERROR_FORMAT, "there is no event '%.100s'", event != NULL ? event : "");
    SGM_TRY(check_fields(line, entry->kind));
    entry->line = number;
    entry->who = text_of(line, "who");
    entry->reason = text_of(line, "reason");
    entry->when = read_when(text_of(line, "when"));
    entry->asked = entry->who != NULL && sgm__is_request(entry->who);
    entry->branch = json_integer_value(json_object_get(line, "branch"));
    entry->begun = json_integer_value(json_object_get(line, "begun"));
    entry->epoch = json_integer_value(json_object_get(line, "epoch"));
    entry->iteration = json_integer_value(json_object_get(line, "iteration"));
    entry->checksum = text_of(line, "of");
    entry->text = text_of(line, "name");
    entry->epochs = json_integer_value(json_object_get(line, "epochs"));
    entry->iterations = json_integer_value(json_object_get(line, "iterations"));
    if (entry->kind == SGM__ENTRY_PRESS)
        return read_press(entry, made);
    return entry->kind == SGM__ENTRY_VALUE ? read_change(line, entry, made) : SGM_OK;
}

/* --- what holds --- */

/* Whether an entry is of an earlier position than this one, of the same branch. Epochs count, too: between
 * the last iteration of an epoch and the first of the next one comes the epoch's end. */
static bool is_earlier(const sgm__journal_entry *entry, int64_t epoch, int64_t iteration)
{
    return entry->iteration < iteration || (entry->iteration == iteration && entry->epoch < epoch);
}

/* The first entry of the newest time that the run was on a branch. */
static size_t begin_of_branch(const sgm__journal_entries *held, int64_t branch)
{
    size_t i = held->count;
    while (i > 0 && !(sgm__entry_is_move(held->items[i - 1].kind) && held->items[i - 1].begun == branch))
        i--;
    return i == 0 && held->count > 0 ? 1 : i; /* behind the run's beginning */
}

/* Where what holds ends, if the run goes on from a checkpoint of this position: behind the newest line of
 * that checkpoint. If there is none, as the process died before it had one, or the file was replaced, then
 * before the first entry of this position: making a change twice does no harm. */
static size_t end_of_held(const sgm__history *history, int64_t branch, int64_t epoch, int64_t iteration)
{
    const sgm__journal_entries *held = &history->held;
    for (size_t i = held->count; i-- > 0;) {
        const sgm__journal_entry *entry = &held->items[i];
        if (entry->kind == SGM__ENTRY_CHECKPOINT && entry->branch == branch && entry->epoch == epoch &&
            entry->iteration == iteration)
            return i + 1;
    }
    size_t end = begin_of_branch(held, branch);
    while (end < held->count && !sgm__entry_is_move(held->items[end].kind) &&
           is_earlier(&held->items[end], epoch, iteration))
        end++;
    return end;
}

/* Moves what was asked for on this branch from the end of `held` in front of `lost`. Moves to other positions
 * are not made again, nor is what came behind them. */
sgm_status sgm__history_go_back(sgm__history *history, int64_t branch, int64_t epoch, int64_t iteration)
{
    sgm__journal_entries old = history->lost;
    sgm_status status = SGM_OK;
    size_t end = end_of_held(history, branch, epoch, iteration);
    history->lost = (sgm__journal_entries){0};
    for (size_t i = end; i < history->held.count && status == SGM_OK; i++) {
        const sgm__journal_entry *entry = &history->held.items[i];
        if (entry->asked && entry->branch == branch && sgm__entry_is_change(entry->kind))
            status = sgm__entries_add(&history->lost, entry);
    }
    while (history->held.count > end)
        sgm__entries_remove(&history->held, history->held.count - 1);
    for (size_t i = 0; i < old.count && status == SGM_OK; i++)
        if (old.items[i].branch == branch && !is_earlier(&old.items[i], epoch, iteration))
            status = sgm__entries_add(&history->lost, &old.items[i]);
    sgm__entries_clear(&old);
    return status;
}

/* Drops what is lost for good, when a line of a later position comes: it could not be made again. */
static void drop_missed(sgm__journal_entries *lost, const sgm__journal_entry *now)
{
    for (size_t i = lost->count; i-- > 0;) {
        const sgm__journal_entry *entry = &lost->items[i];
        if (entry->branch == now->branch && is_earlier(entry, now->epoch, now->iteration))
            sgm__entries_remove(lost, i);
    }
}

/* A request replaces what was lost of the same entry: the first of it, which is made again, or all. */
static void replace_lost(sgm__journal_entries *lost, const sgm__journal_entry *entry, bool again)
{
    for (size_t i = 0; i < lost->count;) {
        if (strcmp(lost->items[i].identifier, entry->identifier) != 0) {
            i++;
            continue;
        }
        sgm__entries_remove(lost, i);
        if (again)
            return;
    }
}

static sgm_status enter(sgm__history *history, const sgm__journal_entry *entry, bool again)
{
    bool change = sgm__entry_is_change(entry->kind);
    drop_missed(&history->lost, entry);
    if (change && !entry->asked)
        return SGM_OK;                                        /* hooks make theirs again by themselves */
    if (change && (again || entry->kind != SGM__ENTRY_PRESS)) /* pressed once more is not instead */
        replace_lost(&history->lost, entry, again);
    if (sgm__entry_is_move(entry->kind))
        sgm__entries_clear(&history->lost);
    return sgm__entries_add(&history->held, entry);
}

/* A process that resumes goes on from a checkpoint. One that does not begins anew, in a folder in which the
 * run before it had no checkpoint yet. */
static sgm_status begin(sgm__history *history, const json_t *line, const sgm__journal_entry *entry)
{
    bool resumed = json_is_true(json_object_get(line, "resumed"));
    if (!resumed) {
        sgm__entries_clear(&history->held);
        sgm__entries_clear(&history->lost);
        json_array_clear(history->beginnings);
    }
    json_array_append(history->beginnings, (json_t *)(uintptr_t)line);
    return resumed ? sgm__history_go_back(history, entry->branch, entry->epoch, entry->iteration) : SGM_OK;
}

static sgm_status take_line(void *user, int64_t number, const json_t *line)
{
    sgm__history *history = user;
    sgm__journal_entry entry = {0};
    made_texts made = {0};
    sgm_status status = read_entry(line, number, &entry, &made);
    if (status == SGM_OK && entry.kind == SGM__ENTRY_BEGIN)
        status = begin(history, line, &entry);
    if (status == SGM_OK)
        status = enter(history, &entry, json_is_true(json_object_get(line, "again")));
    sgm__free(made.text);
    sgm__free(made.old);
    sgm__free(made.new);
    return status;
}

sgm_status sgm__history_read(const char *folder, const char *warn_as, sgm__history *history)
{
    *history = (sgm__history){.beginnings = json_array()};
    return history->beginnings != NULL ? sgm__journal_read(folder, warn_as, take_line, history)
                                       : sgm__fail_memory(64);
}
