/* What the files of commands share: a request that is being carried out, and the functions of the rows of
 * command_table.c. Internal to this folder. */
#ifndef SGM_CONTROL_CONTROL_INTERNAL_H
#define SGM_CONTROL_CONTROL_INTERNAL_H

#include "control/command_table.h"
#include "control/control.h"
#include "control/control_answer.h"
#include "control/request_terms.h"
#include "journal/change_record.h"

/* One request while a command acts on it; nothing of it belongs to the command. */
typedef struct sgm__control_request {
    const sgm__control_call *call; /* `who` has the name that the asker gave itself; `role` may be lowered */
    const sgm__command_row *row;
    const json_t *request;
    json_t *answer;
    const char *reason; /* why, as the asker says; NULL: that is not said */
    bool dry;           /* only what would change is told */
    bool locked;        /* this thread has the trainer's lock */
} sgm__control_request;

/* --- request_terms.c: fields of requests, of which every request may have some --- */
/* The text of a field of the request; NULL: the request has none of that name. */
const char *sgm__control_field(const sgm__control_request *c, const char *name);
/* Adds to the answer of a dry run what would change; `old` and `new` are taken over. `when`: at which moment;
 * NULL: that of the command's row. */
sgm_status sgm__would_change(sgm__control_request *c, const char *identifier, json_t *old, json_t *new,
                             const char *when);
/* --- control_values.c --- */
/* Both with the trainer's lock, but get also without it, for values that need none. */
sgm_status sgm__control_get(sgm__control_request *c);
sgm_status sgm__control_set(sgm__control_request *c);
sgm_status sgm__control_try_set(sgm__control_request *c);
sgm_status sgm__control_freeze(sgm__control_request *c);
sgm_status sgm__control_try_freeze(sgm__control_request *c);
sgm_status sgm__control_unfreeze(sgm__control_request *c);
sgm_status sgm__control_try_unfreeze(sgm__control_request *c);
/* Lists the entries of the registry; with the field "values" also their values. Takes the lock itself, for
 * short times, so that a long list does not hold up the training. */
sgm_status sgm__control_list(sgm__control_request *c);
/* Adds those that can be set, as "settings". */
sgm_status sgm__control_list_settings(sgm__control_request *c);

/* --- command_run.c --- */
sgm_status sgm__control_status(sgm__control_request *c);
sgm_status sgm__control_pause(sgm__control_request *c);
sgm_status sgm__control_try_pause(sgm__control_request *c);
sgm_status sgm__control_resume(sgm__control_request *c);
sgm_status sgm__control_try_resume(sgm__control_request *c);
sgm_status sgm__control_step(sgm__control_request *c);
sgm_status sgm__control_try_step(sgm__control_request *c);
sgm_status sgm__control_stop(sgm__control_request *c);
sgm_status sgm__control_try_stop(sgm__control_request *c);

/* --- command_history.c --- */
sgm_status sgm__control_reset(sgm__control_request *c);
sgm_status sgm__control_try_reset(sgm__control_request *c);
sgm_status sgm__control_save(sgm__control_request *c);
sgm_status sgm__control_try_save(sgm__control_request *c);
sgm_status sgm__control_restore(sgm__control_request *c);
sgm_status sgm__control_try_restore(sgm__control_request *c);
/* --- command_branch.c: without the trainer's lock --- */
sgm_status sgm__control_branch(sgm__control_request *c);
sgm_status sgm__control_try_branch(sgm__control_request *c);
sgm_status sgm__control_changes(sgm__control_request *c);
sgm_status sgm__control_undo(sgm__control_request *c);
sgm_status sgm__control_try_undo(sgm__control_request *c);

/* --- command_hooks.c --- */
sgm_status sgm__control_hooks(sgm__control_request *c);
sgm_status sgm__control_attach(sgm__control_request *c);
sgm_status sgm__control_try_attach(sgm__control_request *c);
sgm_status sgm__control_detach(sgm__control_request *c);
sgm_status sgm__control_try_detach(sgm__control_request *c);
sgm_status sgm__control_press(sgm__control_request *c);
sgm_status sgm__control_try_press(sgm__control_request *c);
/* Takes back the change `number` of a hook: attaches what was detached, detaches what was attached. */
sgm_status sgm__control_undo_hook(sgm__control_request *c, int64_t number, const sgm__hook_undo *undo);
/* Fails where that would, as the hook that is to be detached is gone. An empty `undo` is no hook's. */
sgm_status sgm__control_try_undo_hook(const sgm__control_request *c, int64_t number,
                                      const sgm__hook_undo *undo);

/* --- approval.c --- */
sgm_status sgm__control_pending(sgm__control_request *c);
sgm_status sgm__control_approve(sgm__control_request *c);
sgm_status sgm__control_try_approve(sgm__control_request *c);
sgm_status sgm__control_deny(sgm__control_request *c);
sgm_status sgm__control_try_deny(sgm__control_request *c);

/* --- command_describe.c --- */
sgm_status sgm__control_describe(sgm__control_request *c);

#endif
