/* What commands ask for: reading a request, finding its command, doing it, telling the log. */
#include "base/json_text.h"
#include "training/change_record.h"
#include "training/checkpoints.h"
#include "training/control_internal.h"
#include "training/ranks.h"
#include "training/trainer_lock.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#define MOST_FIELDS 3

/* --- the trainer's lock --- */

static bool is_ending(const sgm__control_call *call)
{
    return call->ending != NULL && atomic_load(call->ending);
}

/* Between two steps, unless the run ends before: then its thread waits for this one, and holds the lock. */
sgm_status sgm__control_lock(const sgm__control_call *call)
{
    sgm_trainer *trainer = call->trainer;
    int error = ETIMEDOUT;
    atomic_fetch_add(&trainer->waiting, 1);
    while (error != 0 && !is_ending(call)) {
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

const char *sgm__command_field(const sgm__command *c, const char *name)
{
    return json_string_value(json_object_get(c->request, name));
}

static sgm_status do_pause(sgm__command *c)
{
    return sgm_trainer_pause(c->call->trainer);
}

static sgm_status do_resume(sgm__command *c)
{
    return sgm_trainer_resume(c->call->trainer);
}

static sgm_status do_step(sgm__command *c)
{
    int64_t iterations;
    const char *text = sgm__command_field(c, "iterations");
    if (!sgm__parse_int64(text, &iterations))
        return sgm_fail(SGM_ERROR_ARGUMENT, "step: expected a number of iterations, got '%.100s'", text);
    return sgm_trainer_step(c->call->trainer, iterations);
}

static sgm_status do_stop(sgm__command *c)
{
    const char *text = sgm__command_field(c, "reason"), *who = c->call->who;
    char *reason = text != NULL ? sgm__format("%s: %s", who, text) : sgm__strdup(who);
    sgm_status status = reason != NULL ? sgm_trainer_stop(c->call->trainer, reason) : SGM_ERROR_MEMORY;
    sgm__free(reason);
    return status;
}

static sgm_status do_reset(sgm__command *c)
{
    return sgm__trainer_order(c->call->trainer, SGM__ORDER_RESET, (sgm__order_texts){.who = c->call->who},
                              c->call->ending);
}

/* --- checkpoints: by names only, as a path would be one of this process, not of who asks --- */

/* The name that is asked for, or one of the iteration that is not taken; sgm__free. */
static char *name_to_save(const sgm__command *c)
{
    const char *given = sgm__command_field(c, "name");
    if (given != NULL)
        return sgm__strdup(given);
    long long iteration = (long long)c->call->trainer->position.iteration;
    char *name = sgm__format("iteration-%lld", iteration);
    for (int again = 2; name != NULL && sgm__checkpoint_exists(c->call->trainer, name); again++) {
        sgm__free(name);
        name = sgm__format("iteration-%lld-%d", iteration, again);
    }
    return name;
}

static sgm_status save_as(const sgm__command *c, const char *name)
{
    const char *word = sgm__command_field(c, "replace");
    bool replace = word != NULL && (strcmp(word, "true") == 0 || strcmp(word, "replace") == 0);
    char *path = NULL;
    if (word != NULL && !replace && strcmp(word, "false") != 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "save: expected 'replace' behind the name, got '%.100s'", word);
    SGM_TRY(sgm__checkpoint_path(c->call->trainer, name, true, &path));
    sgm_status status =
        !replace && sgm__checkpoint_exists(c->call->trainer, name)
            ? sgm_fail(SGM_ERROR_STATE,
                       "there is a checkpoint '%s' already; choose another name, or say 'replace'", name)
            : sgm_trainer_save(c->call->trainer, path);
    sgm__free(path);
    return status;
}

static sgm_status do_save(sgm__command *c)
{
    char *name = name_to_save(c);
    sgm_status status = name != NULL ? save_as(c, name) : SGM_ERROR_MEMORY;
    char *file = status == SGM_OK ? sgm__format("%s.safetensors", name) : NULL;
    if (file != NULL)
        json_object_set_new(c->answer, "file", sgm__answer_text(file));
    sgm__free(file);
    sgm__free(name);
    return status;
}

static sgm_status do_restore(sgm__command *c)
{
    char *path = NULL;
    sgm_status status = sgm__checkpoint_path(c->call->trainer, sgm__command_field(c, "name"), false, &path);
    if (status == SGM_OK)
        status = sgm__trainer_order(c->call->trainer, SGM__ORDER_RESTORE,
                                    (sgm__order_texts){.who = c->call->who, .what = path}, c->call->ending);
    sgm__free(path);
    return status;
}

/* --- changes --- */

static sgm_status do_changes(sgm__command *c)
{
    json_t *list = sgm__changes_json(c->call->trainer, 0);
    return json_object_set_new(c->answer, "changes", list) == 0 ? SGM_OK : sgm__fail_memory(64);
}

static sgm_status do_undo(sgm__command *c)
{
    const char *text = sgm__command_field(c, "number");
    int64_t number = 0, undone = 0;
    sgm__hook_undo hook;
    if (text != NULL && (!sgm__parse_int64(text, &number) || number < 1))
        return sgm_fail(SGM_ERROR_ARGUMENT, "undo: expected the number of a change, from 1, got '%.100s'",
                        text);
    SGM_TRY(sgm__control_lock(c->call));
    sgm_status status = sgm__changes_undo(c->call->trainer, number, c->call->who, &undone, &hook);
    sgm__trainer_unlock(c->call->trainer);
    if (status == SGM_OK && hook.name != NULL)
        status = sgm__command_undo_hook(c, undone, &hook);
    sgm__hook_undo_clear(&hook);
    SGM_TRY(status);
    json_object_set_new(c->answer, "undone", json_integer(undone));
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

static sgm_status add_numbers(sgm__command *c)
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

static sgm_status do_status(sgm__command *c)
{
    static const char *const names[] = {"idle", "running", "paused"};
    json_object_set_new(c->answer, "trainer", sgm__answer_text(c->call->trainer->name));
    json_object_set_new(c->answer, "state", json_string(names[sgm_trainer_state_of(c->call->trainer)]));
    return add_numbers(c);
}

/* --- requests --- */

typedef struct command_row {
    const char *name;
    sgm_status (*act)(sgm__command *c);
    const char *fields[MOST_FIELDS];
    size_t needed; /* of them */
    bool locks;    /* holds the trainer's lock */
    bool told;     /* in the log */
    bool shared;   /* all ranks do it; the others move to where the first one is, or wait for it */
} command_row;

static const command_row rows[] = {
    {"status", do_status, {NULL}, 0, true, false, false},
    {"pause", do_pause, {NULL}, 0, false, true, false},
    {"resume", do_resume, {NULL}, 0, false, true, false},
    {"step", do_step, {"iterations"}, 1, false, true, false},
    {"stop", do_stop, {"reason"}, 0, false, true, false},
    {"reset", do_reset, {NULL}, 0, false, true, false},
    {"save", do_save, {"name", "replace"}, 0, true, true, false},
    {"restore", do_restore, {"name"}, 1, false, true, false},
    {"get", sgm__command_get, {"identifier", "file"}, 1, true, false, false},
    {"set", sgm__command_set, {"identifier", "value", "file"}, 1, true, true, true},
    {"undo", do_undo, {"number"}, 0, false, true, true},
    {"changes", do_changes, {NULL}, 0, false, false, false},
    {"list", sgm__command_list, {"identifier", "values"}, 0, false, false, false},
    {"attach", sgm__command_attach, {"hook"}, 1, false, true, true},
    {"detach", sgm__command_detach, {"name"}, 1, false, true, true},
    {"hooks", sgm__command_hooks, {NULL}, 0, false, false, false},
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

static sgm_status fail_unknown_field(const command_row *row, const char *key)
{
    sgm__text there = {0};
    for (int i = 0; i < MOST_FIELDS && row->fields[i] != NULL; i++)
        sgm__text_append(&there, "%s%s", i > 0 ? ", " : "; there is ", row->fields[i]);
    sgm_status status = sgm_fail(SGM_ERROR_ARGUMENT, "%s has no field '%.100s'%s", row->name, key,
                                 there.data != NULL ? there.data : "");
    sgm__text_free(&there);
    return status;
}

/* Numbers, booleans and values that are lists become texts, as a person would type them; nothing else may
 * come. */
static sgm_status read_field(json_t *request, const command_row *row, const char *key, json_t *value)
{
    if (strcmp(key, "command") == 0)
        return SGM_OK;
    bool known = false;
    for (int i = 0; i < MOST_FIELDS; i++)
        known |= row->fields[i] != NULL && strcmp(key, row->fields[i]) == 0;
    if (!known)
        return fail_unknown_field(row, key);
    if (json_is_string(value))
        return SGM_OK;
    bool list = json_is_array(value) && strcmp(key, "value") == 0; /* of a tensor */
    if (!json_is_number(value) && !json_is_boolean(value) && !list)
        return sgm_fail(SGM_ERROR_TYPE, "%s: '%s' must be a text, a number, true or false", row->name, key);
    char *text = sgm__json_text(value);
    int failed = text != NULL ? json_object_set_new(request, key, json_string(text)) : -1;
    sgm__free(text);
    return failed == 0 ? SGM_OK : sgm__fail_memory(32);
}

static sgm_status read_request(const sgm__command *c, const command_row *row, json_t *request)
{
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(request, next, key, value)
    {
        SGM_TRY(read_field(request, row, key, value));
    }
    if (!c->call->files && json_object_get(request, "file") != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: files cannot be named from here", row->name);
    for (size_t i = 0; i < row->needed; i++)
        if (json_object_get(request, row->fields[i]) == NULL)
            return sgm_fail(SGM_ERROR_ARGUMENT, "%s needs the field '%s'", row->name, row->fields[i]);
    return SGM_OK;
}

/* Pausing and stopping do not wait for the step: the run tells where that was. */
static void tell(const sgm__command *c, const command_row *row)
{
    sgm_trainer *trainer = c->call->trainer;
    char place[80] = "";
    bool waits = row->act != do_pause && row->act != do_stop;
    if (waits && sgm__control_lock(c->call) == SGM_OK) {
        snprintf(place, sizeof place, ", after epoch %lld, iteration %lld",
                 (long long)trainer->position.epoch, (long long)trainer->position.iteration);
        sgm__trainer_unlock(trainer);
    }
    const char *words[2] = {NULL, NULL};
    for (int i = 0, n = 0; i < MOST_FIELDS && n < 2; i++)
        if (row->fields[i] != NULL && sgm__command_field(c, row->fields[i]) != NULL)
            words[n++] = sgm__command_field(c, row->fields[i]);
    sgm__log(SGM_LOG_INFO, trainer->name, "%s: %s%s%.200s%s%.200s%s", c->call->who, row->name,
             words[0] != NULL ? " " : "", words[0] != NULL ? words[0] : "", words[1] != NULL ? " " : "",
             words[1] != NULL ? words[1] : "", place);
}

sgm_status sgm__control_obey(const sgm__control_call *call, json_t *request, json_t *answer)
{
    sgm__command c = {.call = call, .request = request, .answer = answer};
    const command_row *row = NULL;
    if (!json_is_object(request))
        return sgm_fail(SGM_ERROR_FORMAT,
                        "expected a JSON object on a line, such as {\"command\": \"status\"}");
    SGM_TRY(find_row(json_string_value(json_object_get(request, "command")), &row));
    SGM_TRY(read_request(&c, row, request));
    bool noted = row->shared && sgm__trainer_ranks(call->trainer) != NULL;
    if (row->locks || noted)
        SGM_TRY(sgm__control_lock(call));
    sgm_status status = row->act(&c);
    if (status == SGM_OK && noted)
        sgm__ranks_note(call->trainer, call->who, request);
    if (row->locks || noted)
        sgm__trainer_unlock(call->trainer);
    if (status == SGM_OK && row->told)
        tell(&c, row);
    return status;
}

char *sgm__control_answer(const sgm__control_call *call, const char *line, size_t length)
{
    json_t *request = json_loadb(line, length, JSON_REJECT_DUPLICATES, NULL), *answer = json_object();
    json_object_set_new(answer, "ok", json_true());
    if (sgm__control_obey(call, request, answer) != SGM_OK) {
        json_object_clear(answer);
        json_object_set_new(answer, "ok", json_false());
        json_object_set_new(answer, "error", sgm__answer_text(sgm_last_error()));
    }
    char *text = sgm__json_text(answer);
    json_decref(answer);
    json_decref(request);
    return text;
}
