/* Commands to a running trainer: reading a request, doing what the table says, telling the log.
 *
 * A request is a JSON object that names a command, as the control socket (control_socket.c) and the page
 * give it to sgm__control_obey. command_table.c says for each command which fields it takes, who may ask for
 * it, whether it needs the trainer's lock, and whether other processes of the run carry it out too. What the
 * commands do is in the files command_*.c and control_values.c; most only call public functions of the
 * trainer. Whoever wants to change a training from inside it makes a command of another kind
 * (src/hooks/commands.h). */
#include "control/approval.h"
#include "text/json_text.h"
#include "trainer/strategy.h"
#include "trainer/trainer.h"
#include "trainer/trainer_lock.h"

#include <stdio.h>

#define SOON 0.5 /* seconds that a command which only reads waits for the end of a step */

/* The error lists the fields that the command has. */
static sgm_status fail_unknown_field(const sgm__command_row *row, const char *key)
{
    sgm__text there = {0};
    for (size_t i = 0; i < row->field_count; i++)
        sgm__text_append(&there, "%s%s", i > 0 ? ", " : "; there is ", row->fields[i].name);
    sgm_status status = sgm_fail(SGM_ERROR_ARGUMENT, "%s has no field '%.100s'%s", row->name, key,
                                 there.data != NULL ? there.data : "");
    sgm__text_free(&there);
    return status;
}

static const sgm_option *find_field(const sgm__command_row *row, const char *key)
{
    for (size_t i = 0; i < row->field_count; i++)
        if (strcmp(row->fields[i].name, key) == 0)
            return &row->fields[i];
    return NULL;
}

/* Values by their identifiers stay an object. A text is read as one, as a person types it; null is as none.
 */
static sgm_status read_values(json_t *request, const sgm__command_row *row, const char *key, json_t *value)
{
    if (json_is_object(value) || json_is_null(value))
        return SGM_OK;
    json_t *read =
        json_is_string(value) ? json_loads(json_string_value(value), JSON_REJECT_DUPLICATES, NULL) : NULL;
    if (json_is_object(read))
        return json_object_set_new(request, key, read) == 0 ? SGM_OK : sgm__fail_memory(64);
    json_decref(read);
    return sgm_fail(SGM_ERROR_TYPE,
                    "%s: '%s' must be an object of identifiers and values, such as "
                    "{\"optimiser.learning_rate\": 0.001}",
                    row->name, key);
}

/* Makes a field of the request a text: numbers, booleans and, for `value`, lists become what a person
 * would type; other JSON is refused. */
static sgm_status read_field(json_t *request, const sgm__command_row *row, const char *key, json_t *value)
{
    if (strcmp(key, "command") == 0 || strcmp(key, "reason") == 0)
        return SGM_OK;
    const sgm_option *field = find_field(row, key);
    if (field == NULL)
        return fail_unknown_field(row, key);
    if (field->kind == SGM_KIND_REGISTRY)
        return read_values(request, row, key, value);
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

/* A file is one of this process's, so naming one takes more than steering. */
static sgm_status check_file(const sgm__control_request *c)
{
    if (json_object_get(c->request, "file") == NULL)
        return SGM_OK;
    if (!c->call->files)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: files cannot be named from here", c->row->name);
    return sgm__role_check("naming a file", c->call->role, SGM__ROLE_ADMIN);
}

/* Checks and converts all fields. json_object_foreach_safe, as read_field replaces values of the object. */
static sgm_status read_request(const sgm__control_request *c, json_t *request)
{
    const sgm__command_row *row = c->row;
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(request, next, key, value)
    {
        SGM_TRY(read_field(request, row, key, value));
    }
    SGM_TRY(check_file(c));
    for (size_t i = 0; i < row->field_count; i++)
        if (row->fields[i].required && json_object_get(request, row->fields[i].name) == NULL)
            return sgm_fail(SGM_ERROR_ARGUMENT, "%s needs the field '%s'", row->name, row->fields[i].name);
    return SGM_OK;
}

/* " iris.learning_rate 0.1": the first two fields of a request, shortened, for the log; sgm__free. */
static char *words_of(const sgm__control_request *c)
{
    const char *words[2] = {NULL, NULL};
    for (size_t i = 0, n = 0; i < c->row->field_count && n < 2; i++)
        if (sgm__control_field(c, c->row->fields[i].name) != NULL)
            words[n++] = sgm__control_field(c, c->row->fields[i].name);
    return sgm__format("%s%.200s%s%.200s", words[0] != NULL ? " " : "", words[0] != NULL ? words[0] : "",
                       words[1] != NULL ? " " : "", words[1] != NULL ? words[1] : "");
}

/* Logs a command with the position at which it was done. Pause and stop only set a flag and take effect
 * later, so their lines have no position. */
static void tell(const sgm__control_request *c)
{
    sgm_trainer *trainer = c->call->trainer;
    char place[80] = "";
    if (c->row->act != sgm__control_pause && c->row->act != sgm__control_stop)
        snprintf(place, sizeof place, ", after epoch %lld, iteration %lld",
                 (long long)atomic_load(&sgm__control_of(trainer)->whereabouts.epoch),
                 (long long)atomic_load(&sgm__control_of(trainer)->whereabouts.iteration));
    char *words = words_of(c);
    sgm__log(SGM_LOG_INFO, sgm_trainer_name(trainer), "%s: %s%s%s", c->call->who, c->row->name,
             words != NULL ? words : "", place);
    sgm__free(words);
}

/* Logs that a command was not done because its asker has left, as nobody is there to read the answer.
 * Keeps the thread's error and returns its status. */
static sgm_status tell_withdrawn(const sgm__control_request *c, sgm_status status)
{
    char *words = words_of(c), *message = sgm__strdup(sgm_last_error());
    if (status == SGM_ERROR_INTERRUPTED && sgm__patience_has_left() && c->row->told)
        sgm__log(SGM_LOG_WARNING, sgm_trainer_name(c->call->trainer),
                 "%s: %s%s was not done: who asked has left", c->call->who, c->row->name,
                 words != NULL ? words : "");
    sgm_fail(status, "%s", message != NULL ? message : "no memory");
    sgm__free(message);
    sgm__free(words);
    return status;
}

/* Does what the row says, or only tells what that would change. */
static sgm_status do_row(sgm__control_request *c)
{
    return c->dry ? c->row->try(c) : c->row->act(c);
}

/* Acts with the trainer's lock. `noted`: other processes are to do the command too; it is noted for them
 * while the lock is held, so that all do it at the same iteration. The asker may have left during the
 * wait: then nothing is done. The journal has the asker's reason for the time of the command. */
static sgm_status act_locked(sgm__control_request *c, bool noted)
{
    sgm_trainer *trainer = c->call->trainer;
    SGM_TRY(sgm__trainer_enter(trainer));
    c->locked = true;
    sgm__journal_of(trainer)->reason = c->reason;
    sgm_status status = sgm__patience_has_left() ? sgm__patience_check(trainer) : do_row(c);
    sgm__journal_of(trainer)->reason = NULL;
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
static sgm_status act_soon(sgm__control_request *c, double seconds, bool *busy)
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
        status = do_row(c);
    if (c->locked)
        sgm__trainer_unlock(trainer);
    c->locked = false;
    sgm__patience_set(usual);
    return status;
}

/* First waits for a moment only; if the command fails without the lock, it waits as long as the asker
 * will. */
static sgm_status act_either(sgm__control_request *c)
{
    bool busy;
    sgm_status status = act_soon(c, SOON, &busy);
    return status != SGM_OK && busy && sgm__patience_check(c->call->trainer) == SGM_OK ? act_locked(c, false)
                                                                                       : status;
}

/* Chooses how to act by the row's `lock`. A command that other processes carry out too always needs the
 * lock. */
static sgm_status act(sgm__control_request *c)
{
    const sgm__strategy *strategy = sgm__sharing_of(c->call->trainer)->strategy;
    const sgm__command_row *row = c->row;
    bool noted = row->shared && !c->dry && strategy != NULL &&
                 strategy->meet != NULL; /* other processes carry it out, too */
    if (sgm__patience_has_left())
        return sgm__patience_check(c->call->trainer);
    if (row->lock == SGM__LOCKED || noted)
        return act_locked(c, noted);
    return row->lock == SGM__EITHER ? act_either(c) : do_row(c);
}

/* A command that only reads has nothing to try. */
static sgm_status begin_dry(const sgm__control_request *c)
{
    if (c->row->try == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s changes nothing: leave 'dry_run' out", c->row->name);
    json_object_set_new(c->answer, "dry_run", json_true());
    return json_object_set_new(c->answer, "would_change", json_array()) == 0 ? SGM_OK : sgm__fail_memory(64);
}

/* Finds the command, reads its fields, acts, and tells the log. */
static sgm_status obey(sgm__control_request *c, json_t *request)
{
    SGM_TRY(sgm__command_find(json_string_value(json_object_get(request, "command")), &c->row));
    SGM_TRY(sgm__role_check(c->row->name, c->call->role, c->row->role));
    SGM_TRY(read_request(c, request));
    if (c->dry)
        SGM_TRY(begin_dry(c));
    else if (c->row->when != NULL)
        SGM_TRY(sgm__rate_take(c->call->changes));
    if (!c->dry && sgm__approval_needed(c))
        return sgm__approval_ask(c);
    sgm_status status = act(c);
    if (status != SGM_OK)
        return tell_withdrawn(c, status);
    if (c->row->told && !c->dry)
        tell(c);
    return SGM_OK;
}

/* Sets the thread's patience for the time of the command: the time that the asker wants to wait, else the
 * thread's usual one. A thread without any, for an asker that says nothing, waits for ever. */
static sgm_status obey_in_time(sgm__control_request *c, json_t *request, double within)
{
    const sgm__patience *before = sgm__patience_now();
    sgm__patience patience = before != NULL ? *before : (sgm__patience){.asked = sgm__now()};
    if (within > 0)
        patience.until = patience.asked + within;
    if (before != NULL || within > 0)
        sgm__patience_set(&patience);
    sgm_status status = obey(c, request);
    sgm__patience_set(before);
    return status;
}

sgm_status sgm__control_obey(const sgm__control_call *call, json_t *request, json_t *answer)
{
    sgm__terms terms = {0};
    if (!json_is_object(request))
        return sgm_fail(SGM_ERROR_FORMAT,
                        "expected a JSON object on a line, such as {\"command\": \"status\"}");
    sgm_status status = sgm__terms_read(call, request, &terms);
    if (status == SGM_OK) {
        sgm__control_call own = *call;
        own.who = terms.who;
        own.role = terms.role;
        sgm__control_request c = {.call = &own,
                                  .request = request,
                                  .answer = answer,
                                  .reason = call->approved != NULL ? call->approved : terms.reason,
                                  .dry = terms.dry};
        status = obey_in_time(&c, request, terms.within);
    }
    sgm__free(terms.who);
    return status;
}

bool sgm__control_is_quick(const char *line, size_t length)
{
    const sgm__command_row *row = NULL;
    json_t *request = json_loadb(line, length, JSON_REJECT_DUPLICATES, NULL);
    bool known = sgm__command_find(json_string_value(json_object_get(request, "command")), &row) == SGM_OK;
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
