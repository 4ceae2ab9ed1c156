/* Attaching and detaching hooks of a trainer by the program, a person, or another thread, also while it runs.
 *
 * The engine in src/hooks does the attaching; this file decides whether a checkpoint brings the hook back,
 * detaches by name wherever the hook is (the trainer, or replicas of workers), and has each change
 * recorded in the journal. The public functions are at the end; the control socket calls
 * sgm__trainer_attach and sgm__trainer_detach (src/control/command_hooks.c). */
#include "journal/change_record.h"
#include "runs/trainer_commands.h"
#include "show/show.h"
#include "train/train.h"

/* Records the change at once, by a caller who has the trainer's lock, or has the training's thread do it
 * between two iterations. */
static sgm_status note(sgm_trainer *trainer, const sgm__command_fields *fields, bool locked)
{
    return locked ? sgm__change_note_hook(trainer, fields->who, fields->text, fields->before, fields->after,
                                          fields->undoes)
                  : sgm__trainer_command(trainer, SGM__COMMAND_NOTE, *fields);
}

/* Attaching is done already, so a failure to record is only a warning. */
static void record(sgm_trainer *trainer, const char *name, const char *before, const char *after,
                   sgm__hook_change change)
{
    char *what = sgm__format(SGM__HOOK_CHANGE "%s", name);
    const sgm__command_fields fields = {
        .who = change.who, .text = what, .before = before, .after = after, .undoes = change.undoes};
    if (what == NULL || note(trainer, &fields, change.locked) != SGM_OK)
        sgm__log(SGM_LOG_WARNING, sgm_trainer_name(trainer),
                 "the change of hook %s could not be recorded: %s", name, sgm_last_error());
    sgm__free(what);
}

/* A hook that comes while the trainer runs is stored: checkpoints bring it back. Before a run the program
 * attaches its hooks itself, and will do so again before a resume. *name (`name` NULL: not wanted) is
 * freed with sgm__free. */
sgm_status sgm__trainer_attach(sgm_trainer *trainer, sgm_hook *hook, sgm__hook_change change, char **name)
{
    bool attached = false;
    char *made = NULL;
    bool runs = sgm_trainer_get_state(trainer) != SGM_TRAINER_IDLE;
    sgm__attachment how = runs ? SGM__ATTACHED_STORED : SGM__ATTACHED_AS_SETUP;
    sgm_status status = sgm__trainer_attach_as(trainer, hook, how, &attached, &made);
    if (status == SGM_OK && made == NULL)
        status = SGM_ERROR_MEMORY;
    else if (status == SGM_OK && !attached)
        status = sgm_fail(SGM_ERROR_STATE, "an equal hook is attached already, as '%s'", made);
    else if (status == SGM_OK && runs) {
        const char *text = sgm__hook_source(hook);
        record(trainer, made, NULL, text != NULL ? text : sgm_hook_name(hook), change);
    }
    if (name != NULL && status == SGM_OK) {
        *name = made;
        return SGM_OK;
    }
    sgm__free(made);
    return status;
}

/* Looks among the trainer's hooks, then among those of replicas. If neither has it, the error is the
 * trainer's, which lists names. What a detached metric has left in the registry goes with it. *full and *text
 * as for sgm__hooks_detach_named. */
static sgm_status detach(sgm_trainer *trainer, const char *name, char **full, char **text)
{
    const sgm__strategy *strategy = sgm__sharing_of(trainer)->strategy;
    sgm__detached detached;
    sgm_status status = sgm__hooks_detach_named(sgm__hooks_of(trainer), name, full, text, &detached);
    if (status == SGM_OK)
        sgm__trainer_drop_left(trainer, &detached);
    if (status == SGM_ERROR_NOT_FOUND && strategy != NULL) {
        char *message =
            sgm__strdup(sgm_last_error()); /* lists the trainer's names; the next error does not */
        sgm__free(*full);
        sgm__free(*text);
        status = strategy->detach(trainer, name, full, text);
        if (status == SGM_ERROR_NOT_FOUND && message != NULL)
            sgm_fail(status, "%s", message);
        sgm__free(message);
    }
    return status;
}

sgm_status sgm__trainer_detach(sgm_trainer *trainer, const char *name, sgm__hook_change change)
{
    char *full, *text;
    sgm_status status = detach(trainer, name, &full, &text);
    if (status == SGM_OK)
        record(trainer, full, text != NULL ? text : full, NULL, change);
    sgm__free(full);
    sgm__free(text);
    return status;
}

char *sgm__trainer_hook_of(sgm_trainer *trainer, const char *text)
{
    sgm_attached_hook *hooks;
    size_t count;
    char *name = NULL;
    if (sgm_trainer_hooks(trainer, &hooks, &count) != SGM_OK)
        return NULL;
    for (size_t i = 0; i < count && name == NULL; i++)
        if (hooks[i].text != NULL && strcmp(hooks[i].text, text) == 0)
            name = sgm__strdup(hooks[i].name);
    sgm_attached_hooks_free(hooks, count);
    return name;
}

sgm_status sgm__trainer_attach_again(sgm_trainer *trainer, sgm_hook *hook, const char *who)
{
    bool attached = false;
    char *name = NULL;
    const char *text = sgm__hook_source(hook);
    sgm_status status = sgm__trainer_attach_as(trainer, hook, SGM__ATTACHED_AGAIN, &attached, &name);
    if (status == SGM_OK && attached)
        record(trainer, name, NULL, text != NULL ? text : name,
               (sgm__hook_change){.who = who, .locked = true});
    sgm__free(name);
    return status;
}

sgm_status sgm__trainer_detach_again(sgm_trainer *trainer, const char *text, const char *who)
{
    char *name = sgm__trainer_hook_of(trainer, text);
    sgm_status status =
        name != NULL ? sgm__trainer_detach(trainer, name, (sgm__hook_change){.who = who, .locked = true})
                     : SGM_OK;
    sgm__free(name);
    return status;
}

/* `hook` is taken over on every path; NULL means that its constructor has failed, whose error stands. */
sgm_status sgm_trainer_attach_hook(sgm_trainer *trainer, sgm_hook *hook, char **name)
{
    sgm_status status = SGM_OK;
    if (name != NULL)
        *name = NULL;
    if (trainer == NULL)
        status = sgm__fail_null("the trainer is NULL");
    else if (hook == NULL)
        status = sgm__last_failure();
    else
        status = sgm__trainer_attach(trainer, hook, (sgm__hook_change){.who = "program"}, name);
    sgm_hook_free(hook);
    return status;
}

sgm_status sgm_trainer_detach_hook(sgm_trainer *trainer, const char *name)
{
    if (trainer == NULL)
        return sgm__fail_null("the trainer is NULL");
    return sgm__trainer_detach(trainer, name, (sgm__hook_change){.who = "program"});
}

/* Appends the hooks of workers to the list; on failure the list is as it was. */
static sgm_status add_local(sgm_trainer *trainer, sgm_attached_hook **list, size_t *count)
{
    sgm_attached_hook *local;
    size_t more;
    SGM_TRY(sgm__sharing_of(trainer)->strategy->list_hooks(trainer, &local, &more));
    sgm_attached_hook *all = sgm__realloc(*list, (*count + more + 1) * sizeof *all);
    if (all == NULL) {
        sgm_attached_hooks_free(local, more);
        return SGM_ERROR_MEMORY;
    }
    memcpy(all + *count, local, more * sizeof *all);
    sgm__free(local);
    *list = all;
    *count += more;
    return SGM_OK;
}

sgm_status sgm_trainer_hooks(sgm_trainer *trainer, sgm_attached_hook **list, size_t *count)
{
    *list = NULL;
    *count = 0;
    if (trainer == NULL)
        return sgm__fail_null("the trainer is NULL");
    sgm_status status = sgm__hooks_list(sgm__hooks_of(trainer), list, count);
    if (status != SGM_OK || sgm__sharing_of(trainer)->strategy == NULL)
        return status;
    status = add_local(trainer, list, count);
    if (status == SGM_OK)
        return SGM_OK;
    sgm_attached_hooks_free(*list, *count);
    *list = NULL;
    *count = 0;
    return status;
}

/* --- buttons --- */

/* Appends the names of buttons that the list of hooks has, each once. */
static void append_buttons(sgm__text *names, const sgm_attached_hook *hooks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (char **button = hooks[i].buttons; *button != NULL; button++) {
            char *quoted = sgm__format("\"%s\"", *button);
            bool known = quoted == NULL || (names->data != NULL && strstr(names->data, quoted) != NULL);
            if (!known)
                sgm__text_append(names, "%s%s", names->length > 0 ? ", " : "", quoted);
            sgm__free(quoted);
        }
}

/* The error for a name that no hook has: the names that there are, or how to make a button. */
static sgm_status fail_button(sgm_trainer *trainer, const char *name)
{
    sgm_attached_hook *hooks;
    size_t count;
    sgm__text names = {0};
    SGM_TRY(sgm_trainer_hooks(trainer, &hooks, &count));
    append_buttons(&names, hooks, count);
    sgm_attached_hooks_free(hooks, count);
    sgm_status status =
        names.length > 0
            ? sgm_fail(SGM_ERROR_NOT_FOUND, "no rule waits for external \"%.100s\": there are %.400s", name,
                       names.data)
            : sgm_fail(SGM_ERROR_NOT_FOUND,
                       "no rule waits for external \"%.100s\", nor for any other: attach one, such as 'if "
                       "external \"%.100s\" then pause'",
                       name, name);
    sgm__text_free(&names);
    return status;
}

sgm_status sgm__trainer_check_button(sgm_trainer *trainer, const char *name)
{
    sgm_attached_hook *hooks;
    size_t count;
    bool found = false;
    SGM_TRY(sgm_trainer_hooks(trainer, &hooks, &count));
    for (size_t i = 0; i < count; i++)
        for (char **button = hooks[i].buttons; *button != NULL; button++)
            found |= strcmp(*button, name) == 0;
    sgm_attached_hooks_free(hooks, count);
    return found ? SGM_OK : fail_button(trainer, name);
}

sgm_status sgm__trainer_press(sgm_trainer *trainer, const char *name, const char *who)
{
    const sgm__strategy *strategy = sgm__sharing_of(trainer)->strategy;
    size_t count = 0;
    sgm__hooks_press(sgm__hooks_of(trainer), name, &count);
    if (strategy != NULL)
        strategy->press(trainer, name, &count);
    return count > 0 ? sgm__change_note_press(trainer, who, name) : fail_button(trainer, name);
}

sgm_status sgm_trainer_press(sgm_trainer *trainer, const char *name)
{
    if (trainer == NULL)
        return sgm__fail_null("the trainer is NULL");
    if (name == NULL || *name == '\0')
        return sgm_fail(SGM_ERROR_ARGUMENT, "pressing needs the name of a button, as of external \"go\"");
    return sgm__trainer_command(trainer, SGM__COMMAND_PRESS,
                                (sgm__command_fields){.who = "program", .text = name});
}

/* Prepares the trainer first, so that a hook that reads a parameter or a gradient finds it. */
sgm_status sgm__trainer_check_hooks(sgm_trainer *trainer)
{
    sgm__training_position *position = sgm__position_of(trainer);
    SGM_TRY(sgm_trainer_prepare(trainer));
    SGM_TRY(sgm__trainer_publish_states(trainer));
    return sgm__hooks_check(sgm__hooks_of(trainer), position->epoch, position->iteration);
}
