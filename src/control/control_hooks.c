/* Commands about hooks: attaching one that is given as text, taking one off, listing. */
#include "control/control_internal.h"
#include "hooks/hooks.h"
#include "runs/trainer_commands.h"
#include "trainer/trainer.h"
#include "trainer/trainer_lock.h"

/* A run that has begun asks no hook whether it can do what it is told: a person hears of a wrong name at
 * once. */
static sgm_status check(const sgm__control_request *c, sgm_hook *hook)
{
    sgm_trainer *trainer = c->call->trainer;
    if (sgm_trainer_state_of(trainer) == SGM_TRAINER_IDLE || sgm__hook_is_local(hook))
        return SGM_OK;
    SGM_TRY(sgm__trainer_enter(trainer));
    sgm_status status = sgm__hooks_check_new(sgm__hooks_of(trainer), trainer, hook);
    sgm__trainer_unlock(trainer);
    return status;
}

static sgm__hook_change change_by(const sgm__control_request *c, int64_t undoes)
{
    return (sgm__hook_change){.who = c->call->who, .undoes = undoes};
}

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

sgm_status sgm__control_attach(sgm__control_request *c)
{
    return attach(c, sgm__control_field(c, "hook"), 0);
}

sgm_status sgm__control_detach(sgm__control_request *c)
{
    return sgm__trainer_detach(c->call->trainer, sgm__control_field(c, "name"), change_by(c, 0));
}

/* One that was taken off and put back has another name, but its text: there is only one with that. */
static char *name_of(sgm_trainer *trainer, const sgm__hook_undo *undo)
{
    sgm_attached_hook *hooks;
    size_t count;
    char *name = NULL;
    if (sgm_trainer_hooks(trainer, &hooks, &count) != SGM_OK)
        return NULL;
    for (size_t i = 0; i < count && name == NULL; i++)
        if (hooks[i].text != NULL && strcmp(hooks[i].text, undo->detach) == 0)
            name = sgm__strdup(hooks[i].name);
    sgm_attached_hooks_free(hooks, count);
    if (name == NULL)
        sgm_fail(SGM_ERROR_STATE, "%s is not attached any more", undo->name);
    return name;
}

sgm_status sgm__control_undo_hook(sgm__control_request *c, int64_t number, const sgm__hook_undo *undo)
{
    if (undo->attach != NULL)
        return attach(c, undo->attach, number);
    char *name = name_of(c->call->trainer, undo);
    sgm_status status = name != NULL ? sgm__trainer_detach(c->call->trainer, name, change_by(c, number))
                                     : sgm__last_failure();
    sgm__free(name);
    return status;
}

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
        json_array_append_new(list, item);
    }
    json_object_set_new(c->answer, "hooks", list);
    sgm_attached_hooks_free(hooks, count);
    return SGM_OK;
}
