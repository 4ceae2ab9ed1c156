/* The holder of one trainer's hooks: attaching, events, states, and what hooks ask for. Internal.
 *
 * Comments call the files of this folder together the hook engine; sgm__hooks, the holder, is its object.
 * A trainer makes one holder, and so does each worker's replica; the training's thread tells it of events
 * (src/loop/trainer_run.c). Functions may be called by any thread unless they say otherwise. A hook itself
 * is made by sgm_hook_create (hook.c) or read from a text (hook_text.h). */
#ifndef SGM_HOOKS_HOOKS_H
#define SGM_HOOKS_HOOKS_H

#include "hooks/commands.h"

typedef struct sgm__hooks sgm__hooks;

/* Asks the trainer to call act(user, trainer) after all hooks of the event: for what has no kind of
 * command of its own. `release(user)` is called once, also on failure. */
sgm_status sgm__hook_request_act(sgm_hook_call *call, sgm__action_function act, void *user,
                                 void (*release)(void *user));

/* Freezes the parameters that a pattern matches (`freeze`), or has them trained again. Only of a hook that is
 * not local. */
sgm_status sgm__hook_request_freeze(sgm_hook_call *call, const char *pattern, bool freeze);

/* As sgm_hook_request_set, for some time (journal/temporary.h). Only of a hook that is not local. */
sgm_status sgm__hook_request_set_for(sgm_hook_call *call, const char *identifier, sgm_content content,
                                     sgm__command_period period);

/* Makes the holder of trainer `trainer` (its name). Identifiers are resolved in `registry` (retained),
 * which gets a child "shared" if it has none. */
sgm__hooks *sgm__hooks_create(const char *trainer, sgm_registry *registry,
                              sgm_trainer *owner); /* `owner`: what sgm_hook_trainer returns; may be NULL */
/* Makes this the holder of a worker's local hooks, whose results also go to `results` (retained). Before
 * the first event. */
void sgm__hooks_of_worker(sgm__hooks *hooks, int32_t worker, sgm_registry *results);
void sgm__hooks_free(sgm__hooks *hooks); /* waits until no background hook runs */
/* Attaches a hook (retained) and those it requires. *attached false: an equal hook is attached already.
 * Refused, with nothing attached: a required hook that is not in the same place (foreground or
 * background), or whose time step does not cover its dependent's. (Circles: sgm_hook_require refuses
 * them.) */
sgm_status sgm__hooks_attach(sgm__hooks *hooks, sgm_hook *hook, bool *attached);
typedef enum sgm__attachment {
    SGM__ATTACHED_AS_SETUP, /* by the program, before it runs the trainer; the program attaches it again
                               before a resume */
    SGM__ATTACHED_STORED,   /* to a running trainer: a checkpoint brings it back, if it has a text */
    SGM__ATTACHED_AGAIN,    /* the same, as a checkpoint brings it: an equal hook that the program has set up
                               counts as stored from now on */
    SGM__ATTACHED_COPY /* a copy of another trainer's hook: the first state that is set takes it off if the
                          state has no record of it */
} sgm__attachment;
/* As sgm__hooks_attach. *name (`name` NULL: not wanted) becomes the name of the hook, or of its equal, as
 * in "save#2"; free with sgm__free. */
sgm_status sgm__hooks_attach_as(sgm__hooks *hooks, sgm_hook *hook, sgm__attachment how, bool *attached,
                                char **name);
/* Takes a hook off, with required hooks that no other hook needs; refused while another hook requires it. */
sgm_status sgm__hooks_detach(sgm__hooks *hooks, sgm_hook *hook);
/* The self of the first attached hook of a type; NULL: no hook of the type is attached. */
void *sgm__hooks_find(sgm__hooks *hooks, const sgm_hook_type *type);
/* Whether this very hook is attached; an equal one does not count. */
bool sgm__hooks_has(sgm__hooks *hooks, const sgm_hook *hook);
/* The hook that is being called; NULL for a call that the program made itself. */
const sgm_hook *sgm__hook_of_call(const sgm_hook_call *call);
#define SGM__MAXIMUM_DETACHED 64
/* Addresses of a hook that was taken off, and of the required hooks that went with it; only for comparing. */
typedef struct sgm__detached {
    sgm_hook *hooks[SGM__MAXIMUM_DETACHED];
    size_t count;
} sgm__detached;
/* Whether the hook was detached by name since it was attached last. It may be running at that moment, and
 * what it leaves afterwards is dropped (src/train/trainer_pass.c). */
bool sgm__hook_is_taken_off(const sgm_hook *hook);
/* Detaches by a name of sgm__hooks_list; "#2" may be left out if there is only one. *full becomes the name
 * with the number; *text the text that the hook was made from, NULL if a program made it. Both are freed
 * with sgm__free, also on failure. `detached` NULL: not wanted. */
sgm_status sgm__hooks_detach_named(sgm__hooks *hooks, const char *name, char **full, char **text,
                                   sgm__detached *detached);
/* Lets one more check of all external criteria of this name fire; *count is raised by the number of hooks
 * that have one. Called between two events. */
void sgm__hooks_press(sgm__hooks *hooks, const char *name, size_t *count);
/* All attached hooks, in order of running; free with sgm_attached_hooks_free. */
sgm_status sgm__hooks_list(sgm__hooks *hooks, sgm_attached_hook **list, size_t *count);
/* The texts of stored hooks, in order of attachment; each and the list freed with sgm__free. */
sgm_status sgm__hooks_stored(sgm__hooks *hooks, char ***texts, size_t *count);
/* What the program has attached before the first event, for a checkpoint. */
typedef struct sgm__hooks_setup {
    char **texts; /* in order of attachment, each once, with those of hooks whose life is over or that were
                     taken off; stored hooks are not among them */
    size_t text_count;
    char **names; /* types of attached hooks without a text */
    size_t name_count;
} sgm__hooks_setup;
/* Appends to *setup, which begins with zeros; sgm__hooks_setup_clear, also after a failure. */
sgm_status sgm__hooks_set_up(sgm__hooks *hooks, sgm__hooks_setup *setup);
void sgm__hooks_setup_clear(sgm__hooks_setup *setup);
/* Puts all hooks back to before the first event: those whose life is over are attached again, states and
 * criteria are as they were at first, counts of iterations and epochs begin anew. Waits for background
 * hooks; called by the training's thread. */
sgm_status sgm__hooks_restart(sgm__hooks *hooks);
/* Takes off one local hook and hands it to the caller, who frees it; NULL: there is none left. */
sgm_hook *sgm__hooks_take_local(sgm__hooks *hooks);
bool sgm__hook_is_local(const sgm_hook *hook);
size_t sgm__hooks_count(sgm__hooks *hooks); /* with those attached only because others require them */
/* How often a background hook did not run because its group was still busy, all hooks together. */
int64_t sgm__hooks_skipped(sgm__hooks *hooks);
/* Runs what is due at an event of `scale`: foreground hooks now, background hooks on their threads.
 * Without a hook of the scale it costs a comparison. It fails only if a hook fails whose failure stops the
 * run (a background hook's failure: at the next event of any scale). A required hook of the same scale
 * runs whenever one that requires it is due. One thread at a time; hooks may attach and detach hooks. */
sgm_status sgm__hooks_event(sgm__hooks *hooks, sgm_time_scale scale, int64_t epoch, int64_t iteration);
/* Before the first step: resolves each identifier that a hook reads. This counts as a reading, so values that
 * steps keep only for readers (gradients, updates) are kept from the first step on. */
void sgm__hooks_ask(sgm__hooks *hooks, sgm_registry *registry);
/* Returns when no background hook runs. A background hook must not call it: it would wait for itself. */
void sgm__hooks_wait(sgm__hooks *hooks);
/* The same, without the turn locks of this thread meanwhile (base/turn_lock.h). */
void sgm__hooks_wait_giving_way(sgm__hooks *hooks);
/* Takes the oldest command that a hook has asked for; NULL: none. Free with sgm__command_free. */
sgm__command *sgm__hooks_take_command(sgm__hooks *hooks);
/* Hooks that no other thread runs: their turns are held. */
typedef struct sgm__held_hooks {
    sgm_hook **items;
    size_t count;
} sgm__held_hooks;
/* Waits until this thread holds the turns of all attached hooks and of those whose life is over, and no
 * background hook runs. The trainer's
 * lock, which the thread has, may be given up meanwhile, as a hook that another trainer runs may be waiting
 * for it. */
sgm_status sgm__hooks_hold(sgm__hooks *hooks, sgm__held_hooks *held);
void sgm__hooks_let_go(sgm__held_hooks *held);
/* Writes counts and states of all hooks as numbers, for checkpoints. `numbers` NULL: only *count; else
 * there is room for *count. Waits for background hooks. A hook finds its state again by its name, time
 * step, priority and what it reads. Setting a state takes off hooks whose life was over in it, and drops
 * records of hooks that are not attached. Called by the training's thread, between events. */
sgm_status sgm__hooks_get_state(sgm__hooks *hooks, double *numbers, size_t *count);
sgm_status sgm__hooks_set_state(sgm__hooks *hooks, const double *numbers, size_t count);
/* Writes the state into new memory, while other threads may attach and detach hooks; free with sgm__free. */
sgm_status sgm__hooks_copy_state(sgm__hooks *hooks, double **numbers, size_t *count);

/* --- hook_clock.c --- */
/* Appends a sentence, on a line of its own, for each hook whose doing depends on the clock: it runs in the
 * background, has a time limit, or reads the running time. */
void sgm__hook_describe_clock(const sgm_hook *hook, sgm__text *reasons);
void sgm__hooks_describe_clocks(sgm__hooks *hooks, sgm__text *reasons);

/* --- hook.c, hook_local.c --- */
/* Adds a condition that is checked before those that the hook has; `condition` is taken over, also on
 * failure. Only before the hook is attached. */
sgm_status sgm__hook_add_condition(sgm_hook *hook, sgm_criteria *condition);
/* "worker 1: " if the call is of a local hook, else "". */
const char *sgm__hook_worker_text(const sgm_hook_call *call, char *buffer, size_t size);
/* The self of the first hook that the called one requires. For a worker's hook it is the worker's own
 * copy, unlike the one that the constructor saw. */
void *sgm__hook_required_self(const sgm_hook_call *call);
/* Notes that the hook runs a program, which trainers must allow; whether it, or one that it requires, does.
 */
void sgm__hook_set_runs_commands(sgm_hook *hook);
bool sgm__hook_runs_commands(const sgm_hook *hook);
/* Notes an address that the hook sends to, which trainers must allow. */
sgm_status sgm__hook_add_webhook(sgm_hook *hook, const char *address);
/* The first address, of the hook or one that it requires, that is not allowed; NULL: there is none. */
const char *sgm__hook_refused_webhook(const sgm_hook *hook,
                                      bool (*is_allowed)(const void *user, const char *address),
                                      const void *user);
/* Notes the text that the hook was made from; checkpoints and lists show it, and branches make the hook
 * anew from it. */
sgm_status sgm__hook_set_text(sgm_hook *hook, const char *text);
const char *sgm__hook_source(const sgm_hook *hook); /* the text; NULL: a program made the hook */

#endif
