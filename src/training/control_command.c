/* What the lines of the control socket ask for. Pausing and stopping answer at once; what reads or changes
 * values waits for the step that is running. */
#include "training/control_answer.h"
#include "training/control_socket.h"
#include "training/control_tensor.h"
#include "training/hooks_ready/hook_text.h"
#include "training/run_folder.h"
#include "training/trainer_lock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define WHO "ctl"
#define MOST_LEVELS 16 /* of a list */
#define MOST_FIELDS 3

/* --- the trainer's lock --- */

/* Between two steps, unless the run ends before: then its thread waits for this one, and holds the lock. */
static sgm_status lock_trainer(const sgm__control_call *call)
{
    sgm_trainer *trainer = call->trainer;
    int error = ETIMEDOUT;
    atomic_fetch_add(&trainer->waiting, 1);
    while (error != 0 && !atomic_load(call->ending)) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 20000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        error = pthread_mutex_timedlock(&trainer->lock, &until);
    }
    atomic_fetch_sub(&trainer->waiting, 1);
    if (error != 0)
        return sgm_fail(SGM_ERROR_STATE, "the run has just ended");
    sgm__trainer_was_locked(trainer);
    return SGM_OK;
}

/* --- commands: each reads fields that are texts, and adds to the answer --- */

typedef struct command {
    const sgm__control_call *call;
    const json_t *request;
    json_t *answer;
    bool has_set;
} command;

static const char *field(const command *c, const char *name)
{
    return json_string_value(json_object_get(c->request, name));
}

static sgm_status do_pause(command *c)
{
    return sgm_trainer_pause(c->call->trainer);
}

static sgm_status do_resume(command *c)
{
    return sgm_trainer_resume(c->call->trainer);
}

static sgm_status do_step(command *c)
{
    int64_t iterations;
    const char *text = field(c, "iterations");
    if (!sgm__parse_int64(text, &iterations))
        return sgm_fail(SGM_ERROR_ARGUMENT, "step: expected a number of iterations, got '%.100s'", text);
    return sgm_trainer_step(c->call->trainer, iterations);
}

static sgm_status do_stop(command *c)
{
    const char *text = field(c, "reason");
    char *reason = text != NULL ? sgm__format(WHO ": %s", text) : sgm__strdup(WHO);
    sgm_status status = reason != NULL ? sgm_trainer_stop(c->call->trainer, reason) : SGM_ERROR_MEMORY;
    sgm__free(reason);
    return status;
}

static sgm_status do_save(command *c)
{
    const char *name = field(c, "name");
    SGM_TRY(sgm__run_folder_save_as(c->call->trainer, c->call->folder, name));
    char *file = sgm__format("%s.safetensors", name);
    json_object_set_new(c->answer, "file", sgm__answer_text(file != NULL ? file : name));
    sgm__free(file);
    return SGM_OK;
}

static sgm_status do_reset(command *c)
{
    return sgm__trainer_order(c->call->trainer, SGM__ORDER_RESET, (sgm__order_texts){.who = WHO},
                              c->call->ending);
}

/* Of the folder only: a path would be one of this process, not of who asks. */
static sgm_status do_restore(command *c)
{
    const char *name = field(c, "name");
    if (*name == '\0' || *name == '.' || strchr(name, '/') != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "restore takes the name of a checkpoint in the folder, not '%.100s'", name);
    return sgm__trainer_order(c->call->trainer, SGM__ORDER_RESTORE,
                              (sgm__order_texts){.who = WHO, .what = name}, c->call->ending);
}

/* --- hooks --- */

static sgm_status do_attach(command *c)
{
    char *name = NULL;
    sgm_hook *hook = sgm_hook_parse(field(c, "hook"));
    sgm_status status = hook != NULL
                            ? sgm__trainer_attach(c->call->trainer, hook, WHO, &name, c->call->ending)
                            : sgm__last_failure();
    if (status == SGM_OK)
        json_object_set_new(c->answer, "name", sgm__answer_text(name));
    sgm__free(name);
    sgm_hook_free(hook);
    return status;
}

static sgm_status do_detach(command *c)
{
    return sgm__trainer_detach(c->call->trainer, field(c, "name"), WHO, c->call->ending);
}

static sgm_status do_hooks(command *c)
{
    sgm_attached_hook *hooks;
    size_t count;
    SGM_TRY(sgm_trainer_hooks(c->call->trainer, &hooks, &count));
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *item = json_object();
        json_object_set_new(item, "name", sgm__answer_text(hooks[i].name));
        json_object_set_new(item, "when", sgm__answer_text(hooks[i].when));
        json_object_set_new(item, "condition", sgm__answer_text(hooks[i].condition));
        json_object_set_new(item, "background", json_boolean(hooks[i].background));
        json_object_set_new(item, "due", json_integer(hooks[i].due));
        json_object_set_new(item, "runs", json_integer(hooks[i].runs));
        json_object_set_new(item, "seconds", sgm__answer_number(hooks[i].seconds));
        json_object_set_new(item, "text", sgm__answer_text(hooks[i].text));
        json_array_append_new(list, item);
    }
    json_object_set_new(c->answer, "hooks", list);
    sgm_attached_hooks_free(hooks, count);
    return SGM_OK;
}

/* --- status --- */

typedef struct status_row {
    const char *key, *identifier;
} status_row;

static const status_row status_rows[] = {
    {"epoch", "epoch"},
    {"iteration", "iteration"},
    {"loss", "training.loss"},
    {"accuracy", "training.accuracy"},
    {"learning_rate", "optimiser.current_learning_rate"},
    {"seconds", "running_time"},
};

static sgm_status add_numbers(command *c)
{
    for (size_t i = 0; i < sizeof status_rows / sizeof *status_rows; i++) {
        sgm_content content = {0};
        SGM_TRY(sgm_resolve_one(c->call->trainer->registry, status_rows[i].identifier, &content));
        json_object_set_new(c->answer, status_rows[i].key, sgm__answer_content(&content));
        sgm_content_clear(&content);
    }
    if (c->call->trainer->epochs > 0)
        json_object_set_new(c->answer, "epochs", json_integer(c->call->trainer->epochs));
    return SGM_OK;
}

static sgm_status do_status(command *c)
{
    static const char *const names[] = {"idle", "running", "paused"};
    json_object_set_new(c->answer, "trainer", sgm__answer_text(c->call->trainer->name));
    json_object_set_new(c->answer, "state", json_string(names[sgm_trainer_state_of(c->call->trainer)]));
    return add_numbers(c);
}

/* --- values --- */

/* All that match; none is an error, which names the nearest. */
static sgm_status find(const command *c, const char *identifier, sgm_matches *matches)
{
    sgm_registry *root = c->call->trainer->registry;
    SGM_TRY(sgm_resolve(root, identifier, matches));
    if (matches->count > 0)
        return SGM_OK;
    sgm_matches_free(matches); /* of none, too */
    sgm_content none = {0};
    sgm_status status = sgm_resolve_one(root, identifier, &none);
    if (status != SGM_OK && strcmp(identifier, "data.batch") == 0) /* as it is called in a file */
        return sgm_fail(status, "'data.batch' of a file is iterator.minibatch_size of a run");
    SGM_TRY(status);
    sgm_content_clear(&none);
    return SGM_OK;
}

/* For get with a file: the tensor of a single match. */
static sgm_status save_tensor(const command *c, const sgm_matches *matches)
{
    const char *file = field(c, "file");
    if (matches->count != 1 || matches->items[0].content.kind != SGM_KIND_TENSOR)
        return sgm_fail(SGM_ERROR_TYPE, "a file takes one tensor, but '%.100s' is %s", field(c, "identifier"),
                        matches->count == 1 ? sgm_kind_name(matches->items[0].content.kind)
                                            : "several values");
    return sgm_npy_save(file, matches->items[0].content.as.tensor);
}

static sgm_status do_get(command *c)
{
    sgm_matches matches = {0};
    SGM_TRY(find(c, field(c, "identifier"), &matches));
    json_t *list = json_array();
    for (size_t i = 0; i < matches.count; i++)
        sgm__answer_add(list, matches.items[i].identifier, &matches.items[i].content);
    json_object_set_new(c->answer, "values", list);
    sgm_status status = SGM_OK;
    if (field(c, "file") != NULL && !c->has_set)
        status = save_tensor(c, &matches);
    sgm_matches_free(&matches);
    return status;
}

/* The text is read as the first match's kind; a match of another kind is the registry's to refuse. */
static sgm_status parse_value(const command *c, sgm_content *content)
{
    const char *identifier = field(c, "identifier");
    sgm_matches matches = {0};
    SGM_TRY(find(c, identifier, &matches));
    sgm_status status = SGM_OK;
    if (matches.count > 0) {
        status = sgm_content_parse(field(c, "value"), matches.items[0].content.kind, content);
        if (status != SGM_OK)
            sgm__fail_within("%s", matches.items[0].identifier);
    }
    sgm_matches_free(&matches);
    return status;
}

static sgm_status set_plain(command *c)
{
    sgm_content content = {0};
    if (field(c, "file") != NULL)
        return sgm_fail(SGM_ERROR_TYPE, "'%.100s' is no tensor: a file is for tensors",
                        field(c, "identifier"));
    SGM_TRY(parse_value(c, &content));
    sgm_status status =
        sgm_resolve_set(c->call->trainer->registry, field(c, "identifier"), content, NULL, NULL);
    sgm_content_clear(&content);
    return status;
}

/* Puts the new values in the place of the old ones. */
static sgm_status read_tensors(const command *c, sgm_matches *matches)
{
    const char *file = field(c, "file"), *text = field(c, "value");
    for (size_t i = 0; i < matches->count; i++) {
        sgm_content *content = &matches->items[i].content;
        sgm_tensor *made = NULL;
        if (content->kind != SGM_KIND_TENSOR)
            return sgm_fail(SGM_ERROR_TYPE, "%s is no tensor", matches->items[i].identifier);
        sgm_status status = file != NULL ? sgm__tensor_load(file, content->as.tensor, &made)
                                         : sgm__tensor_parse(text, content->as.tensor, &made);
        if (status != SGM_OK)
            return sgm__fail_within("%s", matches->items[i].identifier);
        sgm_tensor_free(content->as.tensor);
        content->as.tensor = made;
    }
    return SGM_OK;
}

/* All are read before the first is set. */
static sgm_status set_tensors(const command *c, sgm_matches *matches)
{
    SGM_TRY(read_tensors(c, matches));
    for (size_t i = 0; i < matches->count; i++)
        SGM_TRY(sgm_resolve_set(c->call->trainer->registry, matches->items[i].identifier,
                                matches->items[i].content, NULL, NULL));
    return SGM_OK;
}

static sgm_status do_set(command *c)
{
    sgm_trainer *trainer = c->call->trainer;
    const char *before = trainer->changed_by;
    sgm_matches matches = {0};
    if (field(c, "value") == NULL && field(c, "file") == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "set needs a value or a file");
    SGM_TRY(find(c, field(c, "identifier"), &matches));
    bool tensors = matches.count > 0 && matches.items[0].content.kind == SGM_KIND_TENSOR;
    trainer->changed_by = WHO;
    sgm_status status = tensors ? set_tensors(c, &matches) : set_plain(c);
    trainer->changed_by = before;
    sgm_matches_free(&matches);
    c->has_set = true;
    return status == SGM_OK ? do_get(c) : status;
}

/* --- list: what there is, without reading it --- */

/* Only what can be read from a text, or a file, may be set from here. */
static bool is_settable(sgm_kind kind, const sgm_option *option)
{
    return (option == NULL || !option->read_only) && kind >= SGM_KIND_BOOLEAN && kind <= SGM_KIND_TENSOR;
}

static void add_entry(json_t *list, const char *identifier, sgm_kind kind, const sgm_option *option)
{
    json_t *item = json_object();
    json_object_set_new(item, "identifier", sgm__answer_text(identifier));
    json_object_set_new(item, "kind", json_string(sgm_kind_name(kind)));
    json_object_set_new(item, "settable", json_boolean(is_settable(kind, option)));
    if (option != NULL && option->unit != NULL)
        json_object_set_new(item, "unit", sgm__answer_text(option->unit));
    if (option != NULL && option->least != option->most) {
        json_object_set_new(item, "least", sgm__answer_number(option->least));
        json_object_set_new(item, "most", sgm__answer_number(option->most));
    }
    if (option != NULL && option->choices != NULL) {
        json_t *choices = json_array();
        for (size_t i = 0; option->choices[i] != NULL; i++)
            json_array_append_new(choices, sgm__answer_text(option->choices[i]));
        json_object_set_new(item, "choices", choices);
    }
    if (option != NULL && option->doc != NULL)
        json_object_set_new(item, "doc", sgm__answer_text(option->doc));
    json_array_append_new(list, item);
}

static sgm_status list_below(json_t *list, sgm_registry *registry, const char *prefix, int level);

/* An entry with a row says its kind; another one is got to see whether it is a registry. */
static sgm_status list_entry(json_t *list, sgm_registry *registry, const char *name, const char *prefix,
                             int level)
{
    const sgm_option *option = sgm_registry_option(registry, name);
    sgm_content content = {0};
    if (option == NULL || option->kind == SGM_KIND_REGISTRY)
        SGM_TRY(sgm_registry_get(registry, name, &content));
    sgm_kind kind = option != NULL ? option->kind : content.kind;
    char *identifier = sgm__format("%s%s%s", prefix, *prefix != '\0' ? "." : "", name);
    sgm_status status = identifier != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    if (status == SGM_OK && content.kind == SGM_KIND_REGISTRY)
        status = list_below(list, content.as.registry, identifier, level + 1);
    else if (status == SGM_OK)
        add_entry(list, identifier, kind, option);
    sgm__free(identifier);
    sgm_content_clear(&content);
    return status;
}

static sgm_status list_below(json_t *list, sgm_registry *registry, const char *prefix, int level)
{
    char **names;
    size_t count;
    sgm_status status = SGM_OK;
    if (level > MOST_LEVELS)
        return SGM_OK;
    SGM_TRY(sgm_registry_names(registry, &names, &count));
    for (size_t i = 0; i < count && status == SGM_OK; i++)
        status = list_entry(list, registry, names[i], prefix, level);
    sgm_names_free(names, count);
    return status;
}

/* A match that is no registry is listed as its parent knows it. */
static sgm_status list_match(json_t *list, sgm_registry *root, const sgm_match *match)
{
    if (match->content.kind == SGM_KIND_REGISTRY)
        return list_below(list, match->content.as.registry, match->identifier, 1);
    const char *dot = strrchr(match->identifier, '.');
    if (dot == NULL)
        return list_entry(list, root, match->identifier, "", 1);
    char *parent = sgm__strndup(match->identifier, (size_t)(dot - match->identifier));
    sgm_content content = {0};
    sgm_status status = parent != NULL ? sgm_resolve_one(root, parent, &content) : SGM_ERROR_MEMORY;
    if (status == SGM_OK && content.kind == SGM_KIND_REGISTRY)
        status = list_entry(list, content.as.registry, dot + 1, parent, 1);
    sgm_content_clear(&content);
    sgm__free(parent);
    return status;
}

static sgm_status do_list(command *c)
{
    sgm_registry *root = c->call->trainer->registry;
    const char *identifier = field(c, "identifier");
    json_t *list = json_array();
    json_object_set_new(c->answer, "entries", list);
    if (identifier == NULL)
        return list_below(list, root, "", 0);
    sgm_matches matches = {0};
    SGM_TRY(find(c, identifier, &matches));
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < matches.count && status == SGM_OK; i++)
        status = list_match(list, root, &matches.items[i]);
    sgm_matches_free(&matches);
    return status;
}

/* --- lines --- */

typedef struct command_row {
    const char *name;
    sgm_status (*act)(command *c);
    const char *fields[MOST_FIELDS];
    size_t needed; /* of them */
    bool locks;    /* holds the trainer's lock */
    bool told;     /* in the log */
} command_row;

static const command_row rows[] = {
    {"status", do_status, {NULL}, 0, true, false},
    {"pause", do_pause, {NULL}, 0, false, true},
    {"resume", do_resume, {NULL}, 0, false, true},
    {"step", do_step, {"iterations"}, 1, false, true},
    {"stop", do_stop, {"reason"}, 0, false, true},
    {"reset", do_reset, {NULL}, 0, false, true},
    {"save", do_save, {"name"}, 1, true, true},
    {"restore", do_restore, {"name"}, 1, false, true},
    {"get", do_get, {"identifier", "file"}, 1, true, false},
    {"set", do_set, {"identifier", "value", "file"}, 1, true, true},
    {"list", do_list, {"identifier"}, 0, true, false},
    {"attach", do_attach, {"hook"}, 1, false, true},
    {"detach", do_detach, {"name"}, 1, false, true},
    {"hooks", do_hooks, {NULL}, 0, false, false},
};
#define ROW_COUNT (sizeof rows / sizeof *rows)

static sgm_status find_row(const char *name, const command_row **row)
{
    const char *names[ROW_COUNT];
    if (name == NULL)
        return sgm_fail(SGM_ERROR_FORMAT, "expected {\"command\": ...}, there is no command in it");
    for (size_t i = 0; i < ROW_COUNT; i++) {
        names[i] = rows[i].name;
        *row = &rows[i];
        if (strcmp(name, names[i]) == 0)
            return SGM_OK;
    }
    const char *near = sgm__nearest(name, names, ROW_COUNT);
    return sgm_fail(SGM_ERROR_NOT_FOUND, "unknown command '%.100s'%s%s%s", name,
                    near != NULL ? " (did you mean '" : "", near != NULL ? near : "",
                    near != NULL ? "'?)" : "");
}

/* Numbers and booleans become texts, as a person would type them; nothing else may come. */
static sgm_status read_field(json_t *request, const command_row *row, const char *key, json_t *value)
{
    if (strcmp(key, "command") == 0)
        return SGM_OK;
    bool known = false;
    for (int i = 0; i < MOST_FIELDS; i++)
        known |= row->fields[i] != NULL && strcmp(key, row->fields[i]) == 0;
    if (!known)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s has no field '%.100s'", row->name, key);
    if (json_is_string(value))
        return SGM_OK;
    if (!json_is_number(value) && !json_is_boolean(value))
        return sgm_fail(SGM_ERROR_TYPE, "%s: '%s' must be a text, a number, true or false", row->name, key);
    char *text = json_dumps(value, JSON_ENCODE_ANY);
    int failed = text != NULL ? json_object_set_new(request, key, json_string(text)) : -1;
    free(text);
    return failed == 0 ? SGM_OK : sgm__fail_memory(32);
}

/* Pausing and stopping do not wait for the step: the run tells where that was. */
static void tell(const command *c, const command_row *row)
{
    sgm_trainer *trainer = c->call->trainer;
    char place[80] = "";
    bool waits = row->act != do_pause && row->act != do_stop;
    if (waits && lock_trainer(c->call) == SGM_OK) {
        snprintf(place, sizeof place, ", after epoch %lld, iteration %lld",
                 (long long)trainer->position.epoch, (long long)trainer->position.iteration);
        sgm__trainer_unlock(trainer);
    }
    const char *words[2] = {NULL, NULL};
    for (int i = 0, n = 0; i < MOST_FIELDS && n < 2; i++)
        if (row->fields[i] != NULL && field(c, row->fields[i]) != NULL)
            words[n++] = field(c, row->fields[i]);
    sgm__log(SGM_LOG_INFO, trainer->name, WHO ": %s%s%.200s%s%.200s%s", row->name,
             words[0] != NULL ? " " : "", words[0] != NULL ? words[0] : "", words[1] != NULL ? " " : "",
             words[1] != NULL ? words[1] : "", place);
}

static sgm_status obey(command *c, json_t *request)
{
    const command_row *row = NULL;
    const char *key;
    json_t *value;
    void *next;
    if (!json_is_object(request))
        return sgm_fail(SGM_ERROR_FORMAT,
                        "expected a JSON object on a line, such as {\"command\": \"status\"}");
    SGM_TRY(find_row(json_string_value(json_object_get(request, "command")), &row));
    json_object_foreach_safe(request, next, key, value)
    {
        SGM_TRY(read_field(request, row, key, value));
    }
    for (size_t i = 0; i < row->needed; i++)
        if (json_object_get(request, row->fields[i]) == NULL)
            return sgm_fail(SGM_ERROR_ARGUMENT, "%s needs the field '%s'", row->name, row->fields[i]);
    c->request = request;
    if (row->locks)
        SGM_TRY(lock_trainer(c->call));
    sgm_status status = row->act(c);
    if (row->locks)
        sgm__trainer_unlock(c->call->trainer);
    if (status == SGM_OK && row->told)
        tell(c, row);
    return status;
}

char *sgm__control_answer(const sgm__control_call *call, const char *line, size_t length)
{
    json_t *request = json_loadb(line, length, JSON_REJECT_DUPLICATES, NULL);
    command c = {.call = call, .answer = json_object()};
    json_object_set_new(c.answer, "ok", json_true());
    if (obey(&c, request) != SGM_OK) {
        json_object_clear(c.answer);
        json_object_set_new(c.answer, "ok", json_false());
        json_object_set_new(c.answer, "error", sgm__answer_text(sgm_last_error()));
    }
    char *text = json_dumps(c.answer, JSON_COMPACT | JSON_PRESERVE_ORDER);
    char *copy = sgm__strdup(text);
    free(text);
    json_decref(c.answer);
    json_decref(request);
    return copy;
}
