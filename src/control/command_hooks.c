/* Commands about hooks: what is attached, attaching, detaching, pressing buttons of rules.
 *
 * Each reads fields that are texts, and adds to the answer; command_table.c has the rows. The public
 * functions of the same purpose are in src/runs/trainer_attach.c. */
#include "control/control_internal.h"
#include "hooks/hooks.h"
#include "runs/trainer_commands.h"
#include "trainer/trainer.h"

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

/* The file allows rules to run programs; whose they may be is a matter of the role, as with files. What an
 * administrator has approved of counts as his. */
static sgm_status check_role(const sgm__control_request *c, const sgm_hook *hook)
{
    if (!sgm__hook_runs_commands(hook) || c->call->approved != NULL)
        return SGM_OK;
    return sgm__role_check("attaching a rule that runs a command", c->call->role, SGM__ROLE_ADMIN);
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
    if (status == SGM_OK && undoes == 0)
        status = check_role(c, hook);
    if (status == SGM_OK)
        status = sgm__trainer_attach(c->call->trainer, hook, change_by(c, undoes), &name);
    if (status == SGM_OK)
        json_object_set_new(c->answer, "name", sgm__answer_text(name));
    sgm__free(name);
    sgm_hook_free(hook);
    return status;
}

sgm_status sgm__control_attach(sgm__control_request *c)
{
    return attach(c, sgm__control_field(c, "hook"), 0);
}

sgm_status sgm__control_detach(sgm__control_request *c)
{
    return sgm__trainer_detach(c->call->trainer, sgm__control_field(c, "name"), change_by(c, 0));
}

sgm_status sgm__control_press(sgm__control_request *c)
{
    return sgm__trainer_press(c->call->trainer, sgm__control_field(c, "name"), c->call->who);
}

/* A hook that was detached and attached again has another number in its name, but the same text. */
static sgm_status find_to_detach(const sgm__control_request *c, int64_t number, const sgm__hook_undo *undo,
                                 char **name)
{
    *name = sgm__trainer_hook_of(c->call->trainer, undo->detach);
    return *name != NULL
               ? SGM_OK
               : sgm_fail(SGM_ERROR_STATE, "change %lld cannot be taken back: %s is not attached any more",
                          (long long)number, undo->name);
}

sgm_status sgm__control_undo_hook(sgm__control_request *c, int64_t number, const sgm__hook_undo *undo)
{
    if (undo->attach != NULL)
        return attach(c, undo->attach, number);
    char *name = NULL;
    SGM_TRY(find_to_detach(c, number, undo, &name));
    sgm_status status = sgm__trainer_detach(c->call->trainer, name, change_by(c, number));
    sgm__free(name);
    return status;
}

sgm_status sgm__control_try_undo_hook(const sgm__control_request *c, int64_t number,
                                      const sgm__hook_undo *undo)
{
    char *name = NULL;
    if (undo->detach == NULL)
        return SGM_OK;
    SGM_TRY(find_to_detach(c, number, undo, &name));
    sgm__free(name);
    return SGM_OK;
}

/* Lists the attached hooks in order of running; `seconds` is the mean time of a run. */
sgm_status sgm__control_hooks(sgm__control_request *c)
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

/* --- what they would do --- */

/* The attached hook of this name, and all of them in *list, which the caller frees; NULL: there is none. */
static const sgm_attached_hook *find_hook(const sgm__control_request *c, const char *name,
                                          sgm_attached_hook **list, size_t *count)
{
    if (sgm_trainer_hooks(c->call->trainer, list, count) != SGM_OK)
        return NULL;
    for (size_t i = 0; i < *count; i++)
        if (strcmp((*list)[i].name, name) == 0)
            return &(*list)[i];
    return NULL;
}

static json_t *hook_json(const sgm_attached_hook *hook)
{
    return sgm__answer_text(hook->text != NULL && *hook->text != '\0' ? hook->text : hook->name);
}

static sgm_status would_change_hook(sgm__control_request *c, const char *name, json_t *old, json_t *new)
{
    char *what = sgm__format(SGM__HOOK_CHANGE "%s", name);
    sgm_status status = sgm__would_change(c, what, old, new, NULL);
    sgm__free(what);
    return status;
}

sgm_status sgm__control_try_attach(sgm__control_request *c)
{
    sgm_hook *hook = sgm_hook_parse(sgm__control_field(c, "hook"));
    sgm_status status = hook != NULL ? check(c, hook) : sgm__last_failure();
    if (status == SGM_OK)
        status = check_role(c, hook);
    if (status == SGM_OK)
        status = would_change_hook(c, sgm_hook_name(hook), sgm__answer_text(SGM__NO_HOOK),
                                   sgm__answer_text(sgm__control_field(c, "hook")));
    sgm_hook_free(hook);
    return status;
}

sgm_status sgm__control_try_detach(sgm__control_request *c)
{
    sgm_attached_hook *list = NULL;
    size_t count = 0;
    const char *name = sgm__control_field(c, "name");
    const sgm_attached_hook *hook = find_hook(c, name, &list, &count);
    sgm_status status = hook != NULL
                            ? would_change_hook(c, name, hook_json(hook), sgm__answer_text(SGM__NO_HOOK))
                            : sgm_fail(SGM_ERROR_NOT_FOUND,
                                       "no hook '%.100s' is attached; 'hooks' tells those that "
                                       "are",
                                       name);
    sgm_attached_hooks_free(list, count);
    return status;
}

/* A button that no rule has is found by the function that presses: it lists those that there are. */
sgm_status sgm__control_try_press(sgm__control_request *c)
{
    const char *name = sgm__control_field(c, "name");
    SGM_TRY(sgm__trainer_check_button(c->call->trainer, name));
    char *what = sgm__format(SGM__PRESS_CHANGE "%s", name);
    sgm_status status = sgm__would_change(c, what, json_null(), json_string("pressed"), NULL);
    sgm__free(what);
    return status;
}
