/* The command that begins a branch: another trainer that goes on beside this one, to the same end, from a
 * checkpoint or from where this one is, with some values set in it alone.
 *
 * The environment makes and starts that trainer (src/environment/env_branch.c), which takes locks of both: so
 * the command acts without the lock, and has it only to save where the training is. */
#include "control/control_internal.h"
#include "runs/checkpoints.h"
#include "text/json_text.h"
#include "trainer/trainer.h"
#include "trainer/trainer_lock.h"

#include <unistd.h>

#define MAXIMUM_VALUES 64 /* that are set by one request */

/* What is set in the branch. Identifiers and texts are borrowed from the request, but for `made`. */
typedef struct branch_values {
    const char *identifiers[MAXIMUM_VALUES], *texts[MAXIMUM_VALUES];
    char *made[MAXIMUM_VALUES]; /* JSON of values that are no texts; owned */
    size_t count;
} branch_values;

/* The registry parses texts; numbers, booleans and lists are their JSON. */
static sgm_status add_value(branch_values *values, const char *identifier, const json_t *value)
{
    size_t i = values->count;
    if (i == MAXIMUM_VALUES)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a branch begins with at most %d values", MAXIMUM_VALUES);
    if (json_is_null(value) || json_is_object(value))
        return sgm_fail(SGM_ERROR_TYPE, "%.100s: expected a text, a number, true, false or a list",
                        identifier);
    if (!json_is_string(value) && (values->made[i] = sgm__json_text(value)) == NULL)
        return sgm__fail_memory(64);
    values->identifiers[i] = identifier;
    values->texts[i] = json_is_string(value) ? json_string_value(value) : values->made[i];
    values->count++;
    return SGM_OK;
}

static void clear_values(branch_values *values)
{
    for (size_t i = 0; i < MAXIMUM_VALUES; i++)
        sgm__free(values->made[i]);
}

/* The name becomes a part of identifiers, and of the name of a folder. */
static sgm_status read_values(const sgm__control_request *c, branch_values *values)
{
    const char *name = sgm__control_field(c, "name"), *identifier;
    json_t *value;
    if (!sgm__is_plain_name(name))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "the branch cannot be named '%.100s': expected 1 to %d letters, digits, '-', '_' "
                        "and '.', beginning with a letter, a digit or '_'",
                        name, SGM__PLAIN_NAME_LONGEST);
    json_object_foreach(json_object_get(c->request, "set"), identifier, value)
    {
        SGM_TRY(add_value(values, identifier, value));
    }
    return SGM_OK;
}

/* The file to begin with: a checkpoint that is there, or one of the branch's name that is to be written.
 * sgm__free. */
static sgm_status find_path(const sgm__control_request *c, char **path)
{
    sgm_trainer *trainer = c->call->trainer;
    const char *checkpoint = sgm__control_field(c, "checkpoint"), *name = sgm__control_field(c, "name");
    if (sgm__membership_of(trainer)->branch == NULL)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "trainer '%s' belongs to no environment that could run a "
                        "branch of it",
                        sgm_trainer_name(trainer));
    if (checkpoint == NULL && sgm__checkpoint_exists(trainer, name))
        return sgm_fail(SGM_ERROR_STATE,
                        "there is a checkpoint '%s' already, as which the branch's beginning would be saved: "
                        "choose another name, or say from which checkpoint it is to begin",
                        name);
    return sgm__checkpoint_path(trainer, checkpoint != NULL ? checkpoint : name, checkpoint == NULL, path);
}

/* Saves where the training is, between two iterations; the journal has it like any checkpoint. */
static sgm_status save_here(const sgm__control_request *c, const char *path)
{
    sgm_trainer *trainer = c->call->trainer;
    SGM_TRY(sgm__trainer_enter(trainer));
    sgm__journal_of(trainer)->reason = c->reason;
    sgm_status status = sgm_trainer_save(trainer, path);
    if (status == SGM_OK)
        status =
            sgm__checkpoint_tell(trainer, SGM__ENTRY_SAVE, c->call->who, sgm__control_field(c, "name"), path);
    sgm__journal_of(trainer)->reason = NULL;
    sgm__trainer_unlock(trainer);
    return status;
}

static sgm_status begin(const sgm__control_request *c, const branch_values *values, const char *path)
{
    const sgm__membership *membership = sgm__membership_of(c->call->trainer);
    const char *paused = sgm__control_field(c, "paused");
    const sgm__branch_request request = {.name = sgm__control_field(c, "name"),
                                         .checkpoint = path,
                                         .who = c->call->who,
                                         .reason = c->reason,
                                         .identifiers = values->identifiers,
                                         .values = values->texts,
                                         .count = values->count,
                                         .paused = paused != NULL && strcmp(paused, "true") == 0};
    bool saved = sgm__control_field(c, "checkpoint") == NULL;
    if (saved)
        SGM_TRY(save_here(c, path));
    sgm_status status = membership->branch(membership->env, c->call->trainer, &request);
    if (status != SGM_OK && saved)
        unlink(path); /* a later try may have the same name */
    return status;
}

/* What a `set` of each value would tell of this trainer, whose values the branch begins with. */
static sgm_status try_values(sgm__control_request *c, const branch_values *values)
{
    SGM_TRY(sgm__trainer_enter(c->call->trainer));
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < values->count && status == SGM_OK; i++) {
        sgm__control_request one = *c;
        json_t *set =
            json_pack("{s:s, s:s}", "identifier", values->identifiers[i], "value", values->texts[i]);
        one.request = set;
        one.locked = true;
        status = set != NULL ? sgm__control_try_set(&one) : sgm__fail_memory(64);
        json_decref(set);
    }
    sgm__trainer_unlock(c->call->trainer);
    return status;
}

/* Whether the values can be set, before anything is saved for a branch that could not begin. */
static sgm_status check_values(const sgm__control_request *c, const branch_values *values)
{
    sgm__control_request tried = *c;
    tried.answer = json_pack("{s:[]}", "would_change");
    sgm_status status = tried.answer != NULL ? try_values(&tried, values) : sgm__fail_memory(64);
    json_decref(tried.answer);
    return status;
}

sgm_status sgm__control_branch(sgm__control_request *c)
{
    branch_values values = {.count = 0};
    char *path = NULL;
    const char *name = sgm__control_field(c, "name"), *checkpoint = sgm__control_field(c, "checkpoint");
    sgm_status status = read_values(c, &values);
    if (status == SGM_OK)
        status = find_path(c, &path);
    if (status == SGM_OK)
        status = check_values(c, &values);
    if (status == SGM_OK)
        status = begin(c, &values, path);
    if (status == SGM_OK) {
        json_object_set_new(c->answer, "trainer", sgm__answer_text(name));
        json_object_set_new(c->answer, "from", sgm__answer_text(sgm_trainer_name(c->call->trainer)));
        json_object_set_new(c->answer, "checkpoint",
                            sgm__answer_text(checkpoint != NULL ? checkpoint : name));
    }
    sgm__free(path);
    clear_values(&values);
    return status;
}

sgm_status sgm__control_try_branch(sgm__control_request *c)
{
    branch_values values = {.count = 0};
    char *path = NULL, *what = sgm__format("branch %s", sgm__control_field(c, "name"));
    sgm_status status = read_values(c, &values);
    if (status == SGM_OK)
        status = find_path(c, &path);
    if (status == SGM_OK)
        status = sgm__would_change(c, what, json_null(), json_string("trains"), NULL);
    if (status == SGM_OK)
        status = try_values(c, &values);
    sgm__free(what);
    sgm__free(path);
    clear_values(&values);
    return status;
}
