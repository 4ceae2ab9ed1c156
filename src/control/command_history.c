/* Commands that go back in a training, or keep it: reset, checkpoints, changes and taking them back.
 *
 * Each reads fields that are texts, and adds to the answer; command_table.c has the rows. Checkpoints are
 * known by names only, as a path would be one of this process, not of the asker's. */
#include "control/control_internal.h"
#include "runs/checkpoints.h"
#include "runs/trainer_commands.h"
#include "trainer/trainer.h"

sgm_status sgm__control_reset(sgm__control_request *c)
{
    return sgm__trainer_command(c->call->trainer, SGM__COMMAND_RESET,
                                (sgm__command_fields){.who = c->call->who, .reason = c->reason});
}

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

/* A checkpoint that is replaced is gone. What an administrator has approved of counts as his. */
static sgm_status check_role(const sgm__control_request *c)
{
    return c->call->approved != NULL
               ? SGM_OK
               : sgm__role_check("replacing a checkpoint", c->call->role, SGM__ROLE_ADMIN);
}

/* The file to write. Refuses to replace a checkpoint unless the request says so. */
static sgm_status path_to_save(const sgm__control_request *c, const char *name, char **path)
{
    const char *word = sgm__control_field(c, "replace");
    bool replace = word != NULL && (strcmp(word, "true") == 0 || strcmp(word, "replace") == 0);
    if (word != NULL && !replace && strcmp(word, "false") != 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "save: expected 'replace' behind the name, got '%.100s'", word);
    if (replace)
        SGM_TRY(check_role(c));
    SGM_TRY(sgm__checkpoint_path(c->call->trainer, name, true, path));
    if (replace || !sgm__checkpoint_exists(c->call->trainer, name))
        return SGM_OK;
    return sgm_fail(SGM_ERROR_STATE,
                    "there is a checkpoint '%s' already; choose another name, or say 'replace'", name);
}

static sgm_status save_as(const sgm__control_request *c, const char *name)
{
    char *path = NULL;
    sgm_status status = path_to_save(c, name, &path);
    if (status == SGM_OK)
        status = sgm_trainer_save(c->call->trainer, path);
    if (status == SGM_OK)
        status = sgm__checkpoint_tell(c->call->trainer, SGM__ENTRY_SAVE, c->call->who, name, path);
    sgm__free(path);
    return status;
}

sgm_status sgm__control_save(sgm__control_request *c)
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
sgm_status sgm__control_restore(sgm__control_request *c)
{
    char *path = NULL;
    sgm_status status = sgm__checkpoint_path(c->call->trainer, sgm__control_field(c, "name"), false, &path);
    if (status == SGM_OK)
        status = sgm__trainer_command(
            c->call->trainer, SGM__COMMAND_RESTORE,
            (sgm__command_fields){.who = c->call->who, .text = path, .reason = c->reason});
    sgm__free(path);
    return status;
}

/* --- changes --- */

sgm_status sgm__control_changes(sgm__control_request *c)
{
    json_t *list = sgm__changes_json(c->call->trainer, 0);
    return json_object_set_new(c->answer, "changes", list) == 0 ? SGM_OK : sgm__fail_memory(64);
}

/* 0: none is given. */
static sgm_status read_number(const sgm__control_request *c, int64_t *number)
{
    const char *text = sgm__control_field(c, "number");
    if (text != NULL && (!sgm__parse_int64(text, number) || *number < 1))
        return sgm_fail(SGM_ERROR_ARGUMENT, "undo: expected the number of a change, from 1, got '%.100s'",
                        text);
    return SGM_OK;
}

/* What would be taken back, into `list`; *first: the number of the newest change of it. */
static sgm_status look_at_undo(sgm__control_request *c, int64_t number, json_t *list, int64_t *first)
{
    sgm__hook_undo hook = {0};
    sgm_status status = sgm__changes_would_undo(c->call->trainer, number, list, first, &hook);
    if (status == SGM_OK)
        status = sgm__control_try_undo_hook(c, *first, &hook);
    sgm__hook_undo_clear(&hook);
    return status;
}

/* Whether a listed change could be taken back in the place of the newest one. */
static bool can_undo(sgm__control_request *c, const json_t *change)
{
    int64_t number = json_integer_value(json_object_get(change, "number")), first;
    json_t *list = json_array();
    bool can = json_is_true(json_object_get(change, "undoable")) &&
               json_is_null(json_object_get(change, "undoes")) &&
               look_at_undo(c, number, list, &first) == SGM_OK;
    json_decref(list);
    return can;
}

/* The newest change cannot be taken back, as the error says: it also offers the newest one before it that
 * can. Taking that one back unasked would surprise who has the newest one in mind. */
static sgm_status offer_another(sgm__control_request *c, sgm_status status, int64_t newest)
{
    char *message = sgm__strdup(sgm_last_error());
    json_t *list = sgm__changes_json(c->call->trainer, 0);
    const json_t *other = NULL;
    for (size_t i = json_array_size(list); i-- > 0 && other == NULL;) {
        const json_t *change = json_array_get(list, i);
        if (json_integer_value(json_object_get(change, "number")) < newest && can_undo(c, change))
            other = change;
    }
    if (other != NULL)
        sgm_fail(status, "%s; 'undo %lld' takes back the one before it, of %s",
                 message != NULL ? message : "",
                 (long long)json_integer_value(json_object_get(other, "number")),
                 json_string_value(json_object_get(other, "identifier")));
    else
        sgm_fail(status, "%s", message != NULL ? message : "no memory");
    json_decref(list);
    sgm__free(message);
    return status;
}

/* Takes back the change of a number, or all changes of the newest command. */
sgm_status sgm__control_undo(sgm__control_request *c)
{
    int64_t number = 0, undone = 0;
    sgm__hook_undo hook;
    SGM_TRY(read_number(c, &number));
    sgm_status status = sgm__changes_undo(c->call->trainer, number, c->call->who, &undone, &hook);
    if (status == SGM_OK && hook.name != NULL)
        status = sgm__control_undo_hook(c, undone, &hook);
    sgm__hook_undo_clear(&hook);
    if (status != SGM_OK)
        return number == 0 ? offer_another(c, status, undone) : status;
    json_object_set_new(c->answer, "undone", json_integer(undone));
    return SGM_OK;
}

/* --- what they would do --- */

/* "epoch 3, iteration 120" */
static json_t *position_json(const sgm_trainer *trainer)
{
    const sgm__whereabouts *place = &sgm__control_of(trainer)->whereabouts;
    char *text = sgm__format("epoch %lld, iteration %lld", (long long)atomic_load(&place->epoch),
                             (long long)atomic_load(&place->iteration));
    json_t *json = json_string(text);
    sgm__free(text);
    return json;
}

sgm_status sgm__control_try_reset(sgm__control_request *c)
{
    return sgm__would_change(c, SGM__POSITION_CHANGE, position_json(c->call->trainer),
                             json_string("epoch 0, iteration 0"), NULL);
}

sgm_status sgm__control_try_save(sgm__control_request *c)
{
    char *name = name_to_save(c), *path = NULL;
    sgm_status status = name != NULL ? path_to_save(c, name, &path) : SGM_ERROR_MEMORY;
    if (status == SGM_OK) {
        bool exists = sgm__checkpoint_exists(c->call->trainer, name);
        status = sgm__would_change(c, "checkpoint", exists ? sgm__answer_text(name) : json_null(),
                                   sgm__answer_text(name), NULL);
    }
    sgm__free(path);
    sgm__free(name);
    return status;
}

sgm_status sgm__control_try_restore(sgm__control_request *c)
{
    char *path = NULL;
    const char *name = sgm__control_field(c, "name");
    SGM_TRY(sgm__checkpoint_path(c->call->trainer, name, false, &path));
    sgm__free(path);
    return sgm__would_change(c, SGM__POSITION_CHANGE, position_json(c->call->trainer), sgm__answer_text(name),
                             NULL);
}

sgm_status sgm__control_try_undo(sgm__control_request *c)
{
    int64_t number = 0, newest = 0;
    SGM_TRY(read_number(c, &number));
    json_t *list = json_array();
    sgm_status status = look_at_undo(c, number, list, &newest);
    if (status != SGM_OK && number == 0)
        offer_another(c, status, newest);
    for (size_t i = 0; i < json_array_size(list) && status == SGM_OK; i++) {
        const json_t *change = json_array_get(list, i);
        status = sgm__would_change(c, json_string_value(json_object_get(change, "identifier")),
                                   json_incref(json_object_get(change, "after")),
                                   json_incref(json_object_get(change, "before")), NULL);
    }
    json_decref(list);
    return status;
}
