/* The hooks of one trainer: what is attached, in which order it runs, and where. Internal. */
#ifndef SGM_HOOKS_HOOKS_H
#define SGM_HOOKS_HOOKS_H

#include "hooks/commands.h"

typedef struct sgm__hooks sgm__hooks;

/* Asks for something that has no kind of its own: act(user, trainer), after all hooks of the event. `user` is
 * released once, also on failure. */
sgm_status sgm__hook_request_act(sgm_hook_call *call, sgm__action_function act, void *user,
                                 void (*release)(void *user));

/* `registry` (retained) is what identifiers are resolved in; it gets a child "shared" if it has none. */
sgm__hooks *sgm__hooks_create(const char *trainer, sgm_registry *registry,
                              sgm_trainer *owner); /* `owner`: for sgm_hook_trainer, may be NULL */
/* These are hooks of a worker, whose results also go to this registry (retained); before the first event. */
void sgm__hooks_of_worker(sgm__hooks *hooks, int32_t worker, sgm_registry *results);
void sgm__hooks_free(sgm__hooks *hooks); /* waits for background hooks */
/* Attaches a hook (retained) and those it requires; *attached false: an equal one is there already. Refused,
 * with nothing attached: a required hook that is not in the same place (foreground or background), or whose
 * time step does not cover its dependent's. (Circles: sgm_hook_require refuses them.) Any thread. */
sgm_status sgm__hooks_attach(sgm__hooks *hooks, sgm_hook *hook, bool *attached);
typedef enum sgm__attachment {
    SGM__ATTACHED_AS_SETUP, /* by the program, which attaches it again before a resume */
    SGM__ATTACHED_STORED,   /* to a running trainer: a checkpoint brings it back, if it has a text */
    SGM__ATTACHED_COPY /* from another trainer: the first state that is set takes it off if it knows none */
} sgm__attachment;
/* The same. *name (NULL: not wanted): of the hook or of its equal, as in "save#2", freed with sgm__free. */
sgm_status sgm__hooks_attach_as(sgm__hooks *hooks, sgm_hook *hook, sgm__attachment how, bool *attached,
                                char **name);
/* Also takes off required hooks that nobody else needs; refused while another hook requires it. */
sgm_status sgm__hooks_detach(sgm__hooks *hooks, sgm_hook *hook);
/* The self of the first attached hook of a type, NULL: there is none. */
void *sgm__hooks_find(sgm__hooks *hooks, const sgm_hook_type *type);
/* Whether it is attached: only the address counts. */
bool sgm__hooks_has(sgm__hooks *hooks, const sgm_hook *hook);
/* The hook that is called; not in the background. */
const sgm_hook *sgm__hook_of_call(const sgm_hook_call *call);
/* Addresses of a hook that was taken off, and of those it required that went with it. */
#define SGM__MAXIMUM_DETACHED 64
typedef struct sgm__detached {
    sgm_hook *hooks[SGM__MAXIMUM_DETACHED];
    size_t count;
} sgm__detached;
/* Somebody detached it by name, and it may be in the middle of its work. */
bool sgm__hook_is_taken_off(const sgm_hook *hook);
/* By the name of a list; without "#2" if there is only one. *full: the name with it; *text: what it was made
 * from, NULL if that is no text; both are freed with sgm__free, also on failure. `detached` NULL: not wanted.
 */
sgm_status sgm__hooks_detach_named(sgm__hooks *hooks, const char *name, char **full, char **text,
                                   sgm__detached *detached);
/* What is attached, in order of running; free with sgm_attached_hooks_free. */
sgm_status sgm__hooks_list(sgm__hooks *hooks, sgm_attached_hook **list, size_t *count);
/* The texts of stored hooks, in order of attachment; each and the list freed with sgm__free. */
sgm_status sgm__hooks_stored(sgm__hooks *hooks, char ***texts, size_t *count);
/* Back to before the first event: what has lived is attached again, states and criteria are as they were
 * first, counts of iterations and epochs begin anew. Waits for background hooks; the thread of the events. */
sgm_status sgm__hooks_restart(sgm__hooks *hooks);
/* Takes off a local hook, which is the caller's then; NULL: there is none. */
sgm_hook *sgm__hooks_take_local(sgm__hooks *hooks);
bool sgm__hook_is_local(const sgm_hook *hook);
size_t sgm__hooks_count(sgm__hooks *hooks); /* with those attached for others */
/* How often a background hook did not run because its group was still busy, all hooks together. */
int64_t sgm__hooks_skipped(sgm__hooks *hooks);
/* Runs what is due at an event of `scale`: foreground hooks now, background ones on their threads. Without a
 * hook of the scale it costs a comparison. An error only from a hook whose failure stops the run (a
 * background hook's: at the next event of any scale). A required hook runs whenever one that requires it is
 * due. One thread at a time; hooks may attach and detach hooks. */
sgm_status sgm__hooks_event(sgm__hooks *hooks, sgm_time_scale scale, int64_t epoch, int64_t iteration);
/* Reads once what hooks say they read, so that values which are kept only for readers are there in time. */
void sgm__hooks_ask(sgm__hooks *hooks, sgm_registry *registry);
void sgm__hooks_wait(sgm__hooks *hooks); /* until no background hook runs; not from one */
/* The oldest command that a hook has asked for, NULL: none; sgm__command_free. */
sgm__command *sgm__hooks_take_command(sgm__hooks *hooks);
/* Counts and states of all hooks as numbers: for checkpoints. `numbers` NULL: only *count; else there is room
 * for *count. Waits for background hooks. A hook finds its state again by name, time step, priority and what
 * it reads; hooks whose life was over are taken off again, states of hooks that are not attached are dropped.
 * Called by the thread of the events, between them. */
sgm_status sgm__hooks_get_state(sgm__hooks *hooks, double *numbers, size_t *count);
sgm_status sgm__hooks_set_state(sgm__hooks *hooks, const double *numbers, size_t count);
/* The state in new memory, also while other threads attach and detach hooks; free with sgm__free. */
sgm_status sgm__hooks_copy_state(sgm__hooks *hooks, double **numbers, size_t *count);

/* --- hook.c, hook_local.c --- */
/* One more condition, checked before those that it has; taken over, also on failure. Before the hook
 * is attached. */
sgm_status sgm__hook_add_condition(sgm_hook *hook, sgm_criteria *condition);
/* "worker 1: " if the call is of a local hook, else "". */
const char *sgm__hook_worker_text(const sgm_hook_call *call, char *buffer, size_t size);
/* The self of the first hook that the one which is called requires: a worker's has a copy of its own. */
void *sgm__hook_required_self(const sgm_hook_call *call);
/* What it was parsed from, kept for checkpoints and lists. */
sgm_status sgm__hook_set_text(sgm_hook *hook, const char *text);
const char *sgm__hook_source(const sgm_hook *hook); /* NULL: it was made by a program */

#endif
