/* Commands about hooks: attaching one that is given as text, taking one off, listing. */
#include "training/control_internal.h"
#include "training/hooks_ready/hook_text.h"
#include "training/trainer_lock.h"

/* A run that has begun asks no hook whether it can do what it is told: a person hears of a wrong name at
 * once. */
static sgm_status check(const sgm__command *c, sgm_hook *hook)
{
    sgm_trainer *trainer = c->call->trainer;
    if (sgm_trainer_state_of(trainer) == SGM_TRAINER_IDLE || sgm__hook_is_local(hook))
        return SGM_OK;
    SGM_TRY(sgm__control_lock(c->call));
    sgm_status status = sgm__hooks_check_new(trainer->hooks, trainer, hook);
    sgm__trainer_unlock(trainer);
    return status;
}

sgm_status sgm__command_attach(sgm__command *c)
{
    char *name = NULL;
    sgm_hook *hook = sgm_hook_parse(sgm__command_field(c, "hook"));
    sgm_status status = hook != NULL ? check(c, hook) : sgm__last_failure();
    if (status == SGM_OK)
        status = sgm__trainer_attach(c->call->trainer, hook, c->call->who, &name, c->call->ending);
    if (status == SGM_OK)
        json_object_set_new(c->answer, "name", sgm__answer_text(name));
    sgm__free(name);
    sgm_hook_free(hook);
    return status;
}

sgm_status sgm__command_detach(sgm__command *c)
{
    return sgm__trainer_detach(c->call->trainer, sgm__command_field(c, "name"), c->call->who,
                               c->call->ending);
}

sgm_status sgm__command_hooks(sgm__command *c)
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
