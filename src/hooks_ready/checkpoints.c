/* Keeps the last or the best few checkpoints in the run's folder (last_checkpoints, best_checkpoints).
 *
 * A save under one name is stop_save.c; the checkpoint that a resume goes on from is written by
 * src/runs/run_folder.c. invoke() only notes which checkpoint is wanted; keep() makes it as an act on the
 * training's thread after all hooks of the event.
 *
 * NAME.json beside the checkpoints lists the files that are this hook's, best or newest first. An entry is
 * written before its file comes and taken out after its file has gone, each time by an atomic replacement:
 * so at a crash at any moment the list names all of the hook's files, and a file that it does not name is
 * never removed or overwritten. */
#include "hooks/hook_text.h"
#include "hooks/when/criteria.h"
#include "metrics/metrics.h"
#include "runs/run_folder.h"

#include <jansson.h>
#include <math.h>
#include <sigma/hooks.h>
#include <unistd.h>

#define CHECKPOINTS_PRIORITY 9000 /* as saving: after what measures, before what stops */
#define MAXIMUM_CHECKPOINTS 10000
#define LARGEST_LIST ((size_t)1 << 24) /* bytes: 10000 entries need a tenth of it */
#define SUFFIX ".safetensors"

/* The hook's self. */
typedef struct keeper {
    int64_t count;    /* of checkpoints that stay */
    char *name;       /* files and the list begin with it */
    char *identifier; /* of the value that is compared; NULL: the newest stay */
    sgm_extremum extremum;
    bool told_missing; /* the warning that the value is missing was logged */
} keeper;

/* A checkpoint to be made, with all that keep() needs of the hook: the hook may be taken off before the
 * act is carried out. `value` is that of the event, which may have changed by then. */
typedef struct checkpoint_request {
    char *name;
    int64_t count;
    bool best;
    sgm_extremum extremum;
    double value;
} checkpoint_request;

/* --- the list: best or newest first --- */

/* The list while it is read, changed and written. The texts `folder` and `path` belong to it, `name` to
 * the request. */
typedef struct kept {
    char *folder, *path; /* of the list */
    const char *name;
    json_t *items; /* objects with "file", "epoch", "iteration" and, of the best ones, "value" */
} kept;

static const char *file_of(const kept *list, size_t index)
{
    return json_string_value(json_object_get(json_array_get(list->items, index), "file"));
}

static char *path_in(const kept *list, const char *file, const char *suffix)
{
    return sgm__format("%s/%s%s", list->folder, file, suffix);
}

/* Whether `file` is a name that this hook gives, NAME-*.safetensors without a slash. Files of the list are
 * removed, so a list that someone edited must not lead to any other file, or out of the folder. */
static bool is_own_name(const kept *list, const char *file)
{
    size_t prefix = strlen(list->name), length = file ? strlen(file) : 0, suffix = strlen(SUFFIX);
    return length > prefix + suffix && strncmp(file, list->name, prefix) == 0 && file[prefix] == '-' &&
           strcmp(file + length - suffix, SUFFIX) == 0 && !strchr(file, '/');
}

/* Forgets entries without a file: a crash came between the list and the file, or someone removed the file.
 * The .tmp file of an interrupted save goes with its entry. */
static sgm_status forget_missing(kept *list)
{
    for (size_t i = json_array_size(list->items); i-- > 0;) {
        char *path = path_in(list, file_of(list, i), ""), *rest = path_in(list, file_of(list, i), ".tmp");
        if (path && rest && !sgm__file_exists(path)) {
            unlink(rest);
            json_array_remove(list->items, i);
        }
        bool failed = !path || !rest;
        sgm__free(path);
        sgm__free(rest);
        if (failed)
            return SGM_ERROR_MEMORY;
    }
    return SGM_OK;
}

/* Fails rather than starts a new list when the file is damaged: a new one would lose track of files that
 * are there. MAXIMUM_CHECKPOINTS + 1, because the list has one entry more while an old file is still to
 * go. */
static sgm_status read_list(kept *list, bool best)
{
    char *text;
    size_t length;
    if (!sgm__file_exists(list->path)) {
        list->items = json_array();
        return list->items ? SGM_OK : sgm__fail_memory(64);
    }
    SGM_TRY(sgm__file_read(list->path, LARGEST_LIST, &text, &length));
    list->items = json_loadb(text, length, 0, NULL);
    sgm__free(text);
    bool good = json_is_array(list->items) && json_array_size(list->items) <= MAXIMUM_CHECKPOINTS + 1;
    for (size_t i = 0; good && i < json_array_size(list->items); i++)
        good = is_own_name(list, file_of(list, i)) &&
               (!best || json_is_number(json_object_get(json_array_get(list->items, i), "value")));
    if (!good)
        return sgm_fail(SGM_ERROR_FORMAT,
                        "'%s' is no list of the checkpoints %s-*: repair it, or remove it and the files that "
                        "are not wanted",
                        list->path, list->name);
    return forget_missing(list);
}

/* 17 digits give each value back exactly, so that comparisons are the same after a resume. */
static sgm_status write_list(const kept *list)
{
    char *text = json_dumps(list->items, JSON_INDENT(1) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(17));
    sgm_status status =
        text ? sgm__file_write_atomic(list->path, text, strlen(text)) : sgm__fail_memory(LARGEST_LIST);
    free(text);
    return status;
}

/* The value that the checkpoint at `index` was made with. */
static double value_at(const kept *list, size_t index)
{
    return json_number_value(json_object_get(json_array_get(list->items, index), "value"));
}

/* Where a new checkpoint belongs: in front for the newest, and by its value for the best, behind those
 * that are as good, so that of equal values the earlier one stays longer. */
static size_t place_of(const kept *list, const checkpoint_request *wanted)
{
    size_t at = 0;
    while (wanted->best && at < json_array_size(list->items) &&
           (wanted->extremum == SGM_MAXIMUM ? value_at(list, at) >= wanted->value
                                            : value_at(list, at) <= wanted->value))
        at++;
    return at;
}

/* --- keeping one more --- */

/* The name without .safetensors: unique for each iteration of a run. 6 digits of the value are for the
 * reader; the list has all of them. */
static char *stem_of(const checkpoint_request *wanted, const sgm_trainer *trainer)
{
    const sgm__trainer_view view = sgm__trainer_look(trainer);
    long long epoch = (long long)view.epoch, iteration = (long long)view.iteration;
    return wanted->best
               ? sgm__format("%s-epoch%lld-iteration%lld-%.6g", wanted->name, epoch, iteration, wanted->value)
               : sgm__format("%s-epoch%lld-iteration%lld", wanted->name, epoch, iteration);
}

/* Takes out the entry of a checkpoint that is made again, after a resume from an earlier iteration; its
 * file is this hook's, and is overwritten. Returns whether there was one. */
static bool drop_entry(kept *list, const char *file)
{
    for (size_t i = 0; i < json_array_size(list->items); i++)
        if (strcmp(file_of(list, i), file) == 0) {
            json_array_remove(list->items, i);
            return true;
        }
    return false;
}

/* Refuses to overwrite a file that is not this hook's. */
static sgm_status check_free(const kept *list, const char *file)
{
    char *path = path_in(list, file, "");
    sgm_status status = path ? SGM_OK : SGM_ERROR_MEMORY;
    if (path && sgm__file_exists(path))
        status = sgm_fail(SGM_ERROR_STATE, "'%s' is there already and not in '%s': it is left as it is", path,
                          list->path);
    sgm__free(path);
    return status;
}

/* Removes the files behind the first `count` entries, then writes the list: a crash in between leaves
 * entries without a file, which forget_missing drops. A file that cannot be removed is no reason to fail. */
static sgm_status remove_surplus(kept *list, int64_t count)
{
    if ((int64_t)json_array_size(list->items) <= count)
        return SGM_OK;
    while ((int64_t)json_array_size(list->items) > count) {
        size_t last = json_array_size(list->items) - 1;
        char *path = path_in(list, file_of(list, last), "");
        if (!path)
            return SGM_ERROR_MEMORY;
        unlink(path);
        sgm__free(path);
        json_array_remove(list->items, last);
    }
    return write_list(list);
}

/* Makes one checkpoint: the entry first, then the file, then what is too much goes. So for a moment there
 * is one file more than `count`, and never one fewer.
 *
 * A value that does not belong among the best `count` ends it without a file; a checkpoint that was listed
 * before (`again`) is written in any case, since its file must match the entry. */
static sgm_status save_as(kept *list, const checkpoint_request *wanted, sgm_trainer *trainer,
                          const char *stem, const char *file)
{
    bool again = drop_entry(list, file);
    size_t at = place_of(list, wanted);
    if (!again && (int64_t)at >= wanted->count)
        return SGM_OK;
    if (!again)
        SGM_TRY(check_free(list, file));
    const sgm__trainer_view view = sgm__trainer_look(trainer);
    json_t *item = json_object();
    json_object_set_new(item, "file", json_string(file));
    json_object_set_new(item, "epoch", json_integer(view.epoch));
    json_object_set_new(item, "iteration", json_integer(view.iteration));
    if (wanted->best)
        json_object_set_new(item, "value", json_real(wanted->value));
    if (json_array_insert_new(list->items, at, item) != 0)
        return sgm__fail_memory(256);
    SGM_TRY(write_list(list));
    SGM_TRY(sgm__run_folder_save_as(trainer, list->folder, stem));
    return remove_surplus(list, wanted->count);
}

/* The act, on the training's thread between two iterations. The folder is looked up now: it is there, as
 * ask() has seen to it, and a process that follows another one (ranks) does not carry out acts. */
static sgm_status keep(void *user, sgm_trainer *trainer)
{
    const checkpoint_request *wanted = user;
    const char *folder = sgm__trainer_look(trainer).folder;
    kept list = {.folder = sgm__strdup(folder), .name = wanted->name};
    char *stem = stem_of(wanted, trainer), *file = stem ? sgm__format("%s%s", stem, SUFFIX) : NULL;
    list.path = sgm__format("%s/%s.json", folder, wanted->name);
    sgm_status status = list.folder && list.path && file ? read_list(&list, wanted->best) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = save_as(&list, wanted, trainer, stem, file);
    json_decref(list.items);
    sgm__free(list.folder);
    sgm__free(list.path);
    sgm__free(stem);
    sgm__free(file);
    return status;
}

static void free_request(void *user)
{
    checkpoint_request *wanted = user;
    sgm__free(wanted->name);
    sgm__free(wanted);
}

/* --- the hook --- */

/* Gives the value to compare; false: there is no checkpoint this time, and *status says whether that is an
 * error. A missing value is none (data may be measured every other epoch), but the first time is worth a
 * warning, as the identifier may be misspelt. NaN and infinity are never among the best. */
static bool find_value(keeper *self, sgm_hook_call *call, double *value, sgm_status *status)
{
    *value = 0;
    if (!self->identifier)
        return true;
    *status = sgm_hook_number(call, self->identifier, value);
    if (*status == SGM_ERROR_NOT_FOUND) {
        if (!self->told_missing)
            sgm__log(SGM_LOG_WARNING, call->trainer, "no checkpoints %s-* yet: %s", self->name,
                     sgm_last_error());
        self->told_missing = true;
        *status = SGM_OK;
        return false;
    }
    return *status == SGM_OK && isfinite(*value);
}

/* invoke(). A process that follows another one has no folder, and asks all the same: with sharded
 * optimiser states all processes must make the same requests, since each brings its part of what is saved. */
static sgm_status ask(void *state, sgm_hook_call *call)
{
    keeper *self = state;
    const sgm_trainer *trainer = sgm_hook_trainer(call);
    double value;
    sgm_status status = SGM_OK;
    if (!trainer || (!sgm__trainer_look(trainer).folder && !sgm__trainer_follows(trainer)))
        return sgm_fail(SGM_ERROR_STATE, "the run has no folder to keep checkpoints %s-* in: give it one",
                        self->name);
    if (!find_value(self, call, &value, &status))
        return status;
    checkpoint_request *wanted = sgm__calloc(1, sizeof *wanted);
    if (!wanted)
        return SGM_ERROR_MEMORY;
    *wanted = (checkpoint_request){.name = sgm__strdup(self->name),
                                   .count = self->count,
                                   .best = self->identifier != NULL,
                                   .extremum = self->extremum,
                                   .value = value};
    if (wanted->name)
        return sgm__hook_request_act(call, keep, wanted, free_request);
    free_request(wanted);
    return SGM_ERROR_MEMORY;
}

static bool equal_texts(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* A hook is its options: `told_missing` does not make two of them different. */
static bool is_equal(const void *a, const void *b)
{
    const keeper *left = a, *right = b;
    return left->count == right->count && strcmp(left->name, right->name) == 0 &&
           equal_texts(left->identifier, right->identifier) && left->extremum == right->extremum;
}

static void free_keeper(void *state)
{
    keeper *self = state;
    sgm__free(self->name);
    sgm__free(self->identifier);
    sgm__free(self);
}

/* Two types because a type's name is the hook's name in lists and texts. There is no get_state(): the list
 * of checkpoints is in the run's folder, where a resumed run finds it as it is, also after a crash. */
static const sgm_hook_type last_type = {.api = SGM_HOOK_API,
                                        .name = "last_checkpoints",
                                        .doc = "keeps the newest checkpoints",
                                        .invoke = ask,
                                        .equal = is_equal,
                                        .free = free_keeper,
                                        .only_global = "it saves the trainer, with all workers"},
                           best_type = {.api = SGM_HOOK_API,
                                        .name = "best_checkpoints",
                                        .doc = "keeps the checkpoints with the best values",
                                        .invoke = ask,
                                        .equal = is_equal,
                                        .free = free_keeper,
                                        .only_global = "it saves the trainer, with all workers"};

/* "best-" and the identifier, with '_' for characters that no file should have in its name. */
static char *default_name(const char *identifier)
{
    char *name = sgm__format("best-%s", identifier);
    for (char *c = name; c && *c; c++)
        if (strchr("/*<>, \t", *c))
            *c = '_';
    return name;
}

/* Checks what the caller gave, with one message for both arguments. */
static bool check(int64_t count, const char *name)
{
    bool good_name = !name || (name[0] && name[0] != '.' && !strchr(name, '/'));
    if (count >= 1 && count <= MAXIMUM_CHECKPOINTS && good_name)
        return true;
    sgm_fail(SGM_ERROR_ARGUMENT,
             "checkpoints to keep: expected 1 to %d of them and a name without a slash or a dot in front; "
             "got %lld and '%s'",
             MAXIMUM_CHECKPOINTS, (long long)count, name ? name : "");
    return false;
}

/* The common constructor. `identifier` NULL: the newest stay. The options' criteria belong to the hook in
 * the end, and are freed on each way out before. */
static sgm_hook *create(int64_t count, const char *identifier, sgm_extremum extremum, sgm_time_step when,
                        const sgm_checkpoints_options *given)
{
    sgm_checkpoints_options options;
    if (sgm__options_read(&options, sizeof options, given,
                          identifier != NULL ? "sgm_best_checkpoints" : "sgm_last_checkpoints") != SGM_OK)
        return NULL;
    keeper *self = check(count, options.name) ? sgm__calloc(1, sizeof *self) : NULL;
    if (!self) {
        sgm_criteria_free(options.only_if);
        return NULL;
    }
    *self = (keeper){.count = count, .identifier = sgm__strdup(identifier), .extremum = extremum};
    self->name = options.name ? sgm__strdup(options.name)
                 : identifier ? default_name(identifier)
                              : sgm__strdup("last");
    if (!self->name || (identifier && !self->identifier)) {
        free_keeper(self);
        sgm_criteria_free(options.only_if);
        return NULL;
    }
    return sgm_hook_create(identifier ? &best_type : &last_type, self, .when = when,
                           .only_if = options.only_if, .priority = CHECKPOINTS_PRIORITY);
}

sgm_hook *sgm_last_checkpoints_with(int64_t count, sgm_time_step when, const sgm_checkpoints_options *options)
{
    return create(count, NULL, SGM_MINIMUM, when, options);
}

/* Without an identifier create() would take it for the other hook, so that is refused here. */
sgm_hook *sgm_best_checkpoints_with(int64_t count, const char *identifier, sgm_extremum extremum,
                                    sgm_time_step when, const sgm_checkpoints_options *options)
{
    if (identifier && identifier[0])
        return create(count, identifier, extremum, when, options);
    sgm_fail(SGM_ERROR_ARGUMENT, "best checkpoints: expected the identifier of a value, got none");
    if (options)
        sgm_criteria_free(options->only_if);
    return NULL;
}

/* --- as text --- */

/* `count` has its default in the row. */
static sgm_hook *parse_last(const sgm__call *call, sgm_time_step when)
{
    return sgm_last_checkpoints(sgm__call_integer(call, "count"), when, .name = sgm__call_text(call, "name"));
}

#define COUNT_ARGUMENT                                                                                       \
    {                                                                                                        \
        "count", SGM_KIND_INTEGER, .default_value = 3, .doc = "how many stay", .minimum = 1,                 \
                                   .maximum = MAXIMUM_CHECKPOINTS                                            \
    }
/* The name is optional in texts; its default differs, so only the help has it. */
#define NAME_ARGUMENT(default_name)                                                                          \
    {                                                                                                        \
        "name", SGM_KIND_TEXT, .doc = "files begin with it; if not given: " default_name                     \
    }

const sgm__hook_row sgm__last_checkpoints_row = {
    .name = "last_checkpoints",
    .example = "every 2 epochs last_checkpoints(5)",
    .doc = "keeps the newest checkpoints in the folder of the run",
    .when = {SGM_EPOCH, 1, 0},
    .arguments = {COUNT_ARGUMENT, NAME_ARGUMENT("last")},
    .create = parse_last,
    .global = true,
};

/* Without `extremum` the name of the value tells which way is better (sgm__is_better_below). */
static sgm_hook *parse_best(const sgm__call *call, sgm_time_step when)
{
    const char *identifier = sgm__call_text(call, "value");
    bool falls = sgm__call_has(call, "extremum") ? sgm__call_choice(call, "extremum") == 1
                                                 : sgm__is_better_below(identifier);
    return sgm_best_checkpoints(sgm__call_integer(call, "count"), identifier,
                                falls ? SGM_MINIMUM : SGM_MAXIMUM, when,
                                .name = sgm__call_text(call, "name"));
}

static const char *const extrema[] = {"maximum", "minimum", NULL};

const sgm__hook_row sgm__best_checkpoints_row = {
    .name = "best_checkpoints",
    .example = "best_checkpoints(validation.loss, 3)",
    .doc = "keeps the checkpoints with the best values in the folder of the run",
    .when = {SGM_EPOCH, 1, 0},
    .arguments = {{"value", SGM_KIND_TEXT, .identifier = true, .required = true, .doc = "what is compared"},
                  COUNT_ARGUMENT,
                  {"extremum", SGM_KIND_TEXT, .choices = extrema,
                   .doc = "if not given: the minimum of losses, costs and errors, else the maximum"},
                  NAME_ARGUMENT("best and the value")},
    .create = parse_best,
    .global = true,
};
