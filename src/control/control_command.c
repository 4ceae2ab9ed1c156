/* Commands to a running trainer: reading a request, finding its command in the table, doing it, telling the
 * log.
 *
 * A request is a JSON object that names a command, as the control socket (control_socket.c) and the page
 * give it to sgm__control_obey. The table `rows` says for each command which fields it takes, whether it
 * needs the trainer's lock, and whether other processes of the run carry it out too. Most commands only
 * call public functions of the trainer; get, set and list are in control_values.c. Whoever wants to change
 * a training from inside it makes a command of another kind (src/hooks/commands.h). */
#include "control/control_internal.h"
#include "hooks/hooks.h"
#include "journal/change_record.h"
#include "runs/checkpoints.h"
#include "runs/trainer_commands.h"
#include "text/json_text.h"
#include "trainer/strategy.h"
#include "trainer/trainer.h"
#include "trainer/trainer_lock.h"

#include <stdio.h>

/* --- hooks --- */

/* Has a new hook check whether it can do what it is told, so that the asker hears of a wrong name at once.
 * A trainer that does not run yet has its hooks checked when the run begins; a local hook is checked there
 * only, as it belongs to workers. */
static sgm_status check(const sgm__control_request *c, sgm_hook *hook)
{
    sgm_trainer *trainer = c->call->trainer;
    if (sgm_trainer_get_state(trainer) == SGM_TRAINER_IDLE || sgm__hook_is_local(hook))
        return SGM_OK;
    return sgm__hooks_check_new(sgm__hooks_of(trainer), trainer, hook);
}

/* How the record of changes is to name the asker, and which change this one takes back (0: none). Commands
 * about hooks have the trainer's lock. */
static sgm__hook_change change_by(const sgm__control_request *c, int64_t undoes)
{
    return (sgm__hook_change){.who = c->call->who, .undoes = undoes, .locked = true};
}

/* Attaches the hook that a text describes and answers with its name. `undoes`: number of the change that
 * this takes back, 0: none. */
static sgm_status attach(sgm__control_request *c, const char *text, int64_t undoes)
{
    char *name = NULL;
    sgm_hook *hook = sgm_hook_parse(text);
    sgm_status status = hook != NULL ? check(c, hook) : sgm__last_failure();
    if (status == SGM_OK)
        status = sgm__trainer_attach(c->call->trainer, hook, change_by(c, undoes), &name);
    if (status == SGM_OK)
        json_object_set_new(c->answer, "name", sgm__answer_text(name));
    sgm__free(name);
    sgm_hook_free(hook);
    return status;
}

/* The commands about hooks read their fields here; the public functions of the same purpose are in
 * src/runs/trainer_attach.c. */
static sgm_status do_attach(sgm__control_request *c)
{
    return attach(c, sgm__control_field(c, "hook"), 0);
}

static sgm_status do_detach(sgm__control_request *c)
{
    return sgm__trainer_detach(c->call->trainer, sgm__control_field(c, "name"), change_by(c, 0));
}

static sgm_status do_press(sgm__control_request *c)
{
    return sgm__trainer_press(c->call->trainer, sgm__control_field(c, "name"), c->call->who);
}

/* Takes back the change of a hook: attaches what was detached, detaches what was attached. */
static sgm_status undo_hook(sgm__control_request *c, int64_t number, const sgm__hook_undo *undo)
{
    if (undo->attach != NULL)
        return attach(c, undo->attach, number);
    /* A hook that was detached and attached again has another number in its name, but the same text. */
    char *name = sgm__trainer_hook_of(c->call->trainer, undo->detach);
    sgm_status status = name != NULL ? sgm__trainer_detach(c->call->trainer, name, change_by(c, number))
                                     : sgm_fail(SGM_ERROR_STATE, "%s is not attached any more", undo->name);
    sgm__free(name);
    return status;
}

/* Lists the attached hooks in order of running; `seconds` is the mean time of a run. */
static sgm_status do_hooks(sgm__control_request *c)
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
        json_t *buttons = json_array();
        for (char **button = hooks[i].buttons; *button != NULL; button++)
            json_array_append_new(buttons, sgm__answer_text(*button));
        json_object_set_new(item, "buttons", buttons);
        json_array_append_new(list, item);
    }
    json_object_set_new(c->answer, "hooks", list);
    sgm_attached_hooks_free(hooks, count);
    return SGM_OK;
}

/* --- limits --- */

#define MAXIMUM_FIELDS 3
#define SOON 0.5              /* seconds that a command which only reads waits for the end of a step */
#define WITHIN "within"       /* a field that every command takes: seconds to wait */
#define MAXIMUM_SECONDS 86400 /* the largest value of "within" */

/* --- commands: each reads fields that are texts, and adds to the answer --- */

const char *sgm__control_field(const sgm__control_request *c, const char *name)
{
    return json_string_value(json_object_get(c->request, name));
}

static sgm_status do_pause(sgm__control_request *c)
{
    return sgm_trainer_pause(c->call->trainer);
}

static sgm_status do_resume(sgm__control_request *c)
{
    return sgm_trainer_resume(c->call->trainer);
}

static sgm_status do_step(sgm__control_request *c)
{
    int64_t iterations;
    const char *text = sgm__control_field(c, "iterations");
    if (!sgm__parse_int64(text, &iterations))
        return sgm_fail(SGM_ERROR_ARGUMENT, "step: expected a number of iterations, got '%.100s'", text);
    return sgm_trainer_step(c->call->trainer, iterations);
}

static sgm_status do_stop(sgm__control_request *c)
{
    const char *text = sgm__control_field(c, "reason"), *who = c->call->who;
    char *reason = text != NULL ? sgm__format("%s: %s", who, text) : sgm__strdup(who);
    sgm_status status = reason != NULL ? sgm_trainer_stop(c->call->trainer, reason) : SGM_ERROR_MEMORY;
    sgm__free(reason);
    return status;
}

static sgm_status do_reset(sgm__control_request *c)
{
    return sgm__trainer_command(c->call->trainer, SGM__COMMAND_RESET,
                                (sgm__command_fields){.who = c->call->who});
}

/* --- checkpoints: by names only, as a path would be one of this process, not of the asker's --- */

/* The name that the request gives, else one that the iteration makes and no checkpoint has yet; sgm__free. */
static char *name_to_save(const sgm__control_request *c)
{
    const char *given = sgm__control_field(c, "name");
    if (given != NULL)
        return sgm__strdup(given);
    long long iteration = (long long)sgm__position_of(c->call->trainer)->iteration;
    char *name = sgm__format("iteration-%lld", iteration);
    for (int again = 2; name != NULL && sgm__checkpoint_exists(c->call->trainer, name); again++) {
        sgm__free(name);
        name = sgm__format("iteration-%lld-%d", iteration, again);
    }
    return name;
}

/* Refuses to replace a checkpoint unless the request says so. */
static sgm_status save_as(const sgm__control_request *c, const char *name)
{
    const char *word = sgm__control_field(c, "replace");
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
    if (status == SGM_OK)
        status = sgm__checkpoint_tell(c->call->trainer, SGM__ENTRY_SAVE, c->call->who, name, path);
    sgm__free(path);
    return status;
}

static sgm_status do_save(sgm__control_request *c)
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

/* Queues the command; the training's thread restores between two iterations. */
static sgm_status do_restore(sgm__control_request *c)
{
    char *path = NULL;
    sgm_status status = sgm__checkpoint_path(c->call->trainer, sgm__control_field(c, "name"), false, &path);
    if (status == SGM_OK)
        status = sgm__trainer_command(c->call->trainer, SGM__COMMAND_RESTORE,
                                      (sgm__command_fields){.who = c->call->who, .text = path});
    sgm__free(path);
    return status;
}

/* --- changes --- */

static sgm_status do_changes(sgm__control_request *c)
{
    json_t *list = sgm__changes_json(c->call->trainer, 0);
    return json_object_set_new(c->answer, "changes", list) == 0 ? SGM_OK : sgm__fail_memory(64);
}

/* Takes back the change of a number, or all changes of the newest command. */
static sgm_status do_undo(sgm__control_request *c)
{
    const char *text = sgm__control_field(c, "number");
    int64_t number = 0, undone = 0;
    sgm__hook_undo hook;
    if (text != NULL && (!sgm__parse_int64(text, &number) || number < 1))
        return sgm_fail(SGM_ERROR_ARGUMENT, "undo: expected the number of a change, from 1, got '%.100s'",
                        text);
    sgm_status status = sgm__changes_undo(c->call->trainer, number, c->call->who, &undone, &hook);
    if (status == SGM_OK && hook.name != NULL)
        status = undo_hook(c, undone, &hook);
    sgm__hook_undo_clear(&hook);
    SGM_TRY(status);
    json_object_set_new(c->answer, "undone", json_integer(undone));
    return SGM_OK;
}

/* --- status --- */

typedef struct status_row {
    const char *key, *identifier;
} status_row;

/* Keys of the answer to `status`, and the identifiers of the values that they show. */
static const status_row status_rows[] = {
    {"epoch", "epoch"},
    {"iteration", "iteration"},
    {"loss", "training.loss"},
    {"accuracy", "training.accuracy"},
    {"learning_rate", "optimiser.current_learning_rate"},
    {"seconds", "running_time"},
};

/* Reads the values of status_rows, which need the trainer's lock. */
static sgm_status add_numbers(sgm__control_request *c)
{
    for (size_t i = 0; i < sizeof status_rows / sizeof *status_rows; i++) {
        sgm_content content = {0};
        SGM_TRY(sgm_registry_resolve_one(sgm__registry_of(c->call->trainer), status_rows[i].identifier,
                                         &content));
        json_object_set_new(c->answer, status_rows[i].key, sgm__answer_content(&content));
        sgm_content_clear(&content);
    }
    if (sgm__progress_of(c->call->trainer)->epochs > 0)
        json_object_set_new(c->answer, "epochs", json_integer(sgm__progress_of(c->call->trainer)->epochs));
    return SGM_OK;
}

/* What the training's thread leaves in atomic members for threads that cannot wait for it: what it is
 * doing, and the position when it last said so. */
static void add_whereabouts(sgm__control_request *c)
{
    sgm__whereabouts *place = &sgm__control_of(c->call->trainer)->whereabouts;
    const char *doing = atomic_load(&place->doing);
    json_object_set_new(c->answer, "epoch", json_integer(atomic_load(&place->epoch)));
    json_object_set_new(c->answer, "iteration", json_integer(atomic_load(&place->iteration)));
    json_object_set_new(c->answer, "busy", json_string(doing != NULL ? doing : "busy"));
}

/* Adds a text, which is freed; NULL: there is nothing to add. */
static void add_text(sgm__control_request *c, const char *key, char *text)
{
    if (text != NULL)
        json_object_set_new(c->answer, key, sgm__answer_text(text));
    sgm__free(text);
}

/* Never fails because the trainer is busy: without the lock it tells the whereabouts instead of the
 * values. */
static sgm_status do_status(sgm__control_request *c)
{
    static const char *const names[] = {"idle", "running", "paused"};
    sgm_trainer *trainer = c->call->trainer;
    json_object_set_new(c->answer, "trainer", sgm__answer_text(sgm_trainer_name(trainer)));
    json_object_set_new(c->answer, "state", json_string(names[sgm_trainer_get_state(trainer)]));
    if (c->locked)
        SGM_TRY(add_numbers(c));
    else
        add_whereabouts(c);
    add_text(c, "paused_by", sgm__trainer_paused_by(trainer));
    add_text(c, "silent", sgm__trainer_silent(trainer));
    return SGM_OK;
}

/* --- the table, and reading requests --- */

/* Whether the trainer's lock is held while a command acts. */
typedef enum locking {
    OPEN,   /* the command needs no lock, or takes the lock itself */
    LOCKED, /* the lock is held; if it cannot be had in time the command fails */
    EITHER  /* the lock is held if it can be had soon; else the command does what is possible without */
} locking;

/* A row of the table of commands. What changes the training is LOCKED, so that it is done between two
 * iterations, and a resumed run can do it there again. The first `needed` of `fields` must be in the request.
 */
typedef struct command_row {
    const char *name;
    sgm_status (*act)(sgm__control_request *c);
    const char *fields[MAXIMUM_FIELDS];
    size_t needed;
    locking lock;
    bool quick;  /* never waits for a step, or for at most SOON: the server's own thread does it */
    bool told;   /* the log has a line for each time */
    bool shared; /* in a run of several processes all of them do it, at the same iteration */
} command_row;

static const command_row rows[] = {
    {"status", do_status, {NULL}, 0, EITHER, .quick = true},
    {"pause", do_pause, {NULL}, 0, OPEN, .quick = true, .told = true},
    {"resume", do_resume, {NULL}, 0, OPEN, .quick = true, .told = true},
    {"step", do_step, {"iterations"}, 1, OPEN, .quick = true, .told = true},
    {"stop", do_stop, {"reason"}, 0, OPEN, .quick = true, .told = true},
    {"reset", do_reset, {NULL}, 0, OPEN, .told = true},
    {"save", do_save, {"name", "replace"}, 0, LOCKED, .told = true},
    {"restore", do_restore, {"name"}, 1, OPEN, .told = true},
    {"get", sgm__control_get, {"identifier", "file"}, 1, .lock = EITHER},
    {"set", sgm__control_set, {"identifier", "value", "file"}, 1, LOCKED, .told = true, .shared = true},
    {"undo", do_undo, {"number"}, 0, LOCKED, .told = true, .shared = true},
    {"changes", do_changes, {NULL}, 0, OPEN, .quick = true},
    {"list", sgm__control_list, {"identifier", "values"}, 0, .lock = OPEN},
    {"attach", do_attach, {"hook"}, 1, LOCKED, .told = true, .shared = true},
    {"detach", do_detach, {"name"}, 1, LOCKED, .told = true, .shared = true},
    {"press", do_press, {"name"}, 1, LOCKED, .told = true, .shared = true},
    {"hooks", do_hooks, {NULL}, 0, OPEN, .quick = true},
};
#define ROW_COUNT (sizeof rows / sizeof *rows)

/* The row of a command, by its name; the error names the nearest. */
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

/* The error lists the fields that the command has. */
static sgm_status fail_unknown_field(const command_row *row, const char *key)
{
    sgm__text there = {0};
    for (int i = 0; i < MAXIMUM_FIELDS && row->fields[i] != NULL; i++)
        sgm__text_append(&there, "%s%s", i > 0 ? ", " : "; there is ", row->fields[i]);
    sgm_status status = sgm_fail(SGM_ERROR_ARGUMENT, "%s has no field '%.100s'%s", row->name, key,
                                 there.data != NULL ? there.data : "");
    sgm__text_free(&there);
    return status;
}

/* Makes a field of the request a text: numbers, booleans and, for `value`, lists become what a person
 * would type; other JSON is refused. */
static sgm_status read_field(json_t *request, const command_row *row, const char *key, json_t *value)
{
    if (strcmp(key, "command") == 0 || strcmp(key, WITHIN) == 0)
        return SGM_OK;
    bool known = false;
    for (int i = 0; i < MAXIMUM_FIELDS; i++)
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

/* Checks and converts all fields. json_object_foreach_safe, as read_field replaces values of the object. */
static sgm_status read_request(const sgm__control_request *c, const command_row *row, json_t *request)
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

/* " iris.learning_rate 0.1": the first two fields of a request, shortened, for the log; sgm__free. */
static char *words_of(const sgm__control_request *c, const command_row *row)
{
    const char *words[2] = {NULL, NULL};
    for (int i = 0, n = 0; i < MAXIMUM_FIELDS && n < 2; i++)
        if (row->fields[i] != NULL && sgm__control_field(c, row->fields[i]) != NULL)
            words[n++] = sgm__control_field(c, row->fields[i]);
    return sgm__format("%s%.200s%s%.200s", words[0] != NULL ? " " : "", words[0] != NULL ? words[0] : "",
                       words[1] != NULL ? " " : "", words[1] != NULL ? words[1] : "");
}

/* Logs a command with the position at which it was done. Pause and stop only set a flag and take effect
 * later, so their lines have no position. */
static void tell(const sgm__control_request *c, const command_row *row)
{
    sgm_trainer *trainer = c->call->trainer;
    char place[80] = "";
    if (row->act != do_pause && row->act != do_stop)
        snprintf(place, sizeof place, ", after epoch %lld, iteration %lld",
                 (long long)atomic_load(&sgm__control_of(trainer)->whereabouts.epoch),
                 (long long)atomic_load(&sgm__control_of(trainer)->whereabouts.iteration));
    char *words = words_of(c, row);
    sgm__log(SGM_LOG_INFO, sgm_trainer_name(trainer), "%s: %s%s%s", c->call->who, row->name,
             words != NULL ? words : "", place);
    sgm__free(words);
}

/* Logs that a command was not done because its asker has left, as nobody is there to read the answer.
 * Keeps the thread's error and returns its status. */
static sgm_status tell_withdrawn(const sgm__control_request *c, const command_row *row, sgm_status status)
{
    char *words = words_of(c, row), *message = sgm__strdup(sgm_last_error());
    if (status == SGM_ERROR_INTERRUPTED && sgm__patience_has_left() && row->told)
        sgm__log(SGM_LOG_WARNING, sgm_trainer_name(c->call->trainer),
                 "%s: %s%s was not done: who asked has left", c->call->who, row->name,
                 words != NULL ? words : "");
    sgm_fail(status, "%s", message != NULL ? message : "no memory");
    sgm__free(message);
    sgm__free(words);
    return status;
}

/* Acts with the trainer's lock. `noted`: other processes are to do the command too; it is noted for them
 * while the lock is held, so that all do it at the same iteration. The asker may have left during the
 * wait: then nothing is done. */
static sgm_status act_locked(sgm__control_request *c, const command_row *row, bool noted)
{
    sgm_trainer *trainer = c->call->trainer;
    SGM_TRY(sgm__trainer_enter(trainer));
    c->locked = true;
    sgm_status status = sgm__patience_has_left() ? sgm__patience_check(trainer) : row->act(c);
    if (status == SGM_OK && noted && sgm__sharing_of(trainer)->strategy != NULL)
        sgm__sharing_of(trainer)->strategy->note(trainer, c->call->who, c->request);
    sgm__trainer_unlock(trainer);
    c->locked = false;
    return status;
}

/* Waits for the lock for at most `seconds`, or for as long as the asker's own patience allows if that is
 * shorter, then acts, with the lock or without: values that need no lock can be read during a long step.
 * *busy: the lock was not to be had. If the lock was refused for another reason than time, the command
 * does not act. */
static sgm_status act_soon(sgm__control_request *c, const command_row *row, double seconds, bool *busy)
{
    sgm_trainer *trainer = c->call->trainer;
    const sgm__patience *usual = sgm__patience_now();
    sgm__patience little = usual != NULL ? *usual : (sgm__patience){.asked = sgm__now()};
    double until = sgm__now() + seconds;
    little.until = little.until > 0 && little.until < until ? little.until : until;
    sgm__patience_set(&little);
    sgm_status status = sgm__trainer_enter(trainer);
    c->locked = status == SGM_OK;
    *busy = !c->locked;
    if (c->locked || sgm__now() >= until) /* the time is over: act without the lock */
        status = row->act(c);
    if (c->locked)
        sgm__trainer_unlock(trainer);
    c->locked = false;
    sgm__patience_set(usual);
    return status;
}

/* First waits for a moment only; if the command fails without the lock, it waits as long as the asker
 * will. */
static sgm_status act_either(sgm__control_request *c, const command_row *row)
{
    bool busy;
    sgm_status status = act_soon(c, row, SOON, &busy);
    return status != SGM_OK && busy && sgm__patience_check(c->call->trainer) == SGM_OK
               ? act_locked(c, row, false)
               : status;
}

/* Chooses how to act by the row's `lock`. A command that other processes carry out too always needs the
 * lock. */
static sgm_status act(sgm__control_request *c, const command_row *row)
{
    const sgm__strategy *strategy = sgm__sharing_of(c->call->trainer)->strategy;
    bool noted =
        row->shared && strategy != NULL && strategy->meet != NULL; /* other processes carry it out, too */
    if (sgm__patience_has_left())
        return sgm__patience_check(c->call->trainer);
    if (row->lock == LOCKED || noted)
        return act_locked(c, row, noted);
    return row->lock == EITHER ? act_either(c, row) : row->act(c);
}

/* The time that the asker wants to wait ("within"), else the thread's usual patience; the field is removed
 * from the request, as it is no matter of the command. */
static sgm_status read_patience(json_t *request, sgm__patience *patience)
{
    const json_t *within = json_object_get(request, WITHIN);
    const sgm__patience *usual = sgm__patience_now();
    *patience = usual != NULL ? *usual : (sgm__patience){.asked = sgm__now()};
    if (within == NULL)
        return SGM_OK;
    double seconds = json_is_number(within) ? json_number_value(within) : 0;
    if (!(seconds > 0 && seconds <= MAXIMUM_SECONDS))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "'" WITHIN "' must be a number of seconds, more than 0 and at most "
                        "%d",
                        MAXIMUM_SECONDS);
    patience->until = patience->asked + seconds;
    json_object_del(request, WITHIN);
    return SGM_OK;
}

/* Finds the command, reads its fields, acts, and tells the log. */
static sgm_status obey(sgm__control_request *c, json_t *request)
{
    const command_row *row = NULL;
    SGM_TRY(find_row(json_string_value(json_object_get(request, "command")), &row));
    SGM_TRY(read_request(c, row, request));
    sgm_status status = act(c, row);
    if (status != SGM_OK)
        return tell_withdrawn(c, row, status);
    if (row->told)
        tell(c, row);
    return SGM_OK;
}

/* Sets the thread's patience for the time of the command. A thread without any, which gives no "within",
 * waits for ever. */
sgm_status sgm__control_obey(const sgm__control_call *call, json_t *request, json_t *answer)
{
    sgm__control_request c = {.call = call, .request = request, .answer = answer};
    sgm__patience patience;
    if (!json_is_object(request))
        return sgm_fail(SGM_ERROR_FORMAT,
                        "expected a JSON object on a line, such as {\"command\": \"status\"}");
    SGM_TRY(read_patience(request, &patience));
    const sgm__patience *before = sgm__patience_now();
    if (before != NULL || patience.until > 0)
        sgm__patience_set(&patience);
    sgm_status status = obey(&c, request);
    sgm__patience_set(before);
    return status;
}

bool sgm__control_is_quick(const char *line, size_t length)
{
    const command_row *row = NULL;
    json_t *request = json_loadb(line, length, JSON_REJECT_DUPLICATES, NULL);
    bool known = find_row(json_string_value(json_object_get(request, "command")), &row) == SGM_OK;
    json_decref(request);
    sgm_clear_error();
    return !known || row->quick; /* an error is quick */
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
