/* What the files of the hook engine share: hooks, entries, the holder, and the functions between these files.
 *
 * Internal to src/hooks, and to three files that look into a holder: src/trainer/hooks_check.c,
 * src/trainer/trainer_lock.c and src/runs/trainer_copy.c. Two kinds of lock: `lock` of the holder guards
 * entries and lists, and is held while no function of a hook runs but equal(); `turn` of a hook is held while
 * any other runs. */
#ifndef SGM_HOOKS_HOOKS_INTERNAL_H
#define SGM_HOOKS_HOOKS_INTERNAL_H

#include "hooks/hooks.h"
#include <stdatomic.h>

/* A hook: what it was made with, which stays as it is once it is attached, and what changes when it runs,
 * under `turn`. */
struct sgm_hook {
    atomic_int references;
    atomic_bool was_attached; /* to any holder, at any time: what the hook requires is fixed */
    atomic_bool taken_off;    /* detached by name since it was attached last */
    pthread_mutex_t lock;     /* recursive */
    const sgm_hook_type *type;
    void *self;
    sgm_time_step when;
    sgm_criteria *criteria;
    bool missing_logged; /* the log has said that a value of the criteria is missing; under `turn` */
    bool reads_checked, has_run;
    int64_t first_epoch; /* the epoch of the first call, once has_run; all three under `turn` */
    char **reads;
    size_t read_count;
    sgm_hook **required;
    size_t required_count, required_capacity;
    int32_t priority;
    bool background, local;
    bool runs_commands; /* it is a rule that runs a program */
    char **webhooks;    /* addresses that its rule sends to, owned, NULL at the end; NULL: none */
    double time_limit;
    sgm_hook_failure failure;
    char *text;          /* the text that it was parsed from; NULL: a program made it */
    double *first_state; /* its numbers before it ran, for a reset; NULL: its type has no state, or it was
                            never attached */
    size_t first_count;
    sgm_hook *origin;      /* of a copy without a self of its own: the hook whose self it uses; else NULL */
    pthread_mutex_t *turn; /* held while a function of the type runs on self: `lock`, or that of the origin */
};

/* A hook of zeros with one reference; its type, self and options are still to be set. */
sgm_hook *sgm__hook_allocate(void);
/* SGM_ERROR_UNSUPPORTED if hooks of its type cannot be local (hook_local.c). */
sgm_status sgm__hook_check_local(const sgm_hook *hook);
/* A copy for a worker, or for another trainer, without the hooks that it requires. */
sgm_hook *sgm__hook_copy(sgm_hook *hook);
/* Same type, self, time step and options, and equal required hooks. */
bool sgm__hook_equal(const sgm_hook *a, const sgm_hook *b);
/* Hashes that tell hooks apart in checkpoints; 32 bits each, which doubles hold exactly. */
typedef struct sgm__hook_identity {
    uint32_t kind; /* hash of type, time step, priority, place (background, local) and what it reads */
    uint32_t text; /* hash of the text that it was parsed from; 0: it has none */
} sgm__hook_identity;
sgm__hook_identity sgm__hook_identify(const sgm_hook *hook);

typedef struct sgm__hook_entry sgm__hook_entry;
/* A hook that is attached to one holder, and what the holder keeps of it: how often it was due and ran, who
 * refers to it, and where it runs. Guarded by the holder's lock. */
struct sgm__hook_entry {
    sgm_hook *hook;
    sgm__hook_entry **required; /* equal hooks share one entry */
    size_t required_count;
    sgm_time_count count;
    sgm__hook_identity identity;
    size_t record;  /* number of its record in the state that is being set, from 1; 0: no record is its own */
    int64_t number; /* place in the order of attachment */
    int ordinal;    /* distinguishes hooks of one type, from 1: the 2 of "save#2" */
    bool stored;    /* attached to a running trainer by text: checkpoints bring it back */
    bool copied;    /* copied from another trainer's hook, and no state was set since */
    atomic_llong runs, nanoseconds;
    int references; /* one for the list, one for an event that runs it, one for a batch, one for sgm__gone */
    bool chosen;    /* somebody attached it; false: it is here only because another hook requires it */
    bool early;     /* attached before the first event, by the program, which sets it up so each time */
    bool background;
    bool attached;
    bool cancelled; /* taken off by someone or by a failure: a batch leaves it out */
    bool due, visited, busy;
    size_t group; /* the group of background entries that it depends on or that depend on it: the place of the
                     group's first entry in `order` */
    sgm__hook_entry *next; /* in a batch, in a plan, or in a list of garbage */
};

/* The record of a hook that was attached before the first event and whose life is over, or that was
 * detached. After a resume the program attaches the hook again, and the state takes it off. A reset
 * attaches those again whose life was over: `entry` has a reference to them; it is NULL for one that was
 * detached. */
typedef struct sgm__gone {
    sgm__hook_entry *entry;
    sgm__hook_identity identity;
    int64_t number;
    sgm_time_count count;
} sgm__gone;

/* The text of a hook that was attached before the first event and that someone took off, or attached again
 * after its life was over: a branch off an earlier checkpoint begins with it (src/runs/trainer_copy.c). */
typedef struct sgm__taken_off {
    int64_t number;
    char *text; /* the text that it was parsed from */
} sgm__taken_off;

/* A thread that runs one batch at a time: the due hooks of one background group, in order. */
typedef struct sgm__bucket {
    sgm__hooks *hooks;
    pthread_t thread;
    pthread_cond_t wake;
    sgm__hook_entry *first; /* the batch; NULL: the bucket is free */
    bool ready;             /* the copy of what the batch reads is complete */
    sgm_hook_call call;
} sgm__bucket;

#define SGM__ATTENTION (1u << SGM_TIME_SCALE_COUNT) /* an event of any scale has something to do */

/* The holder of one trainer's hooks. Members are guarded by `lock`, but for `wanted`, which
 * sgm__hooks_event reads without it, and `commands`, which has command_lock. */
struct sgm__hooks {
    char *trainer;
    sgm_registry *registry, *shared;
    sgm_registry *mirror; /* of a worker: where the trainer shows this worker's results; else NULL */
    int32_t worker;       /* its number */
    sgm_trainer *owner;
    atomic_uint wanted; /* a bit for each scale that has a hook, and SGM__ATTENTION */
    pthread_mutex_t lock;
    /* All attached hooks: `entries` in order of attachment, `order` in order of running. */
    sgm__hook_entry **entries, **order;
    size_t count, entry_capacity, order_capacity;
    sgm__gone *gone;
    size_t gone_count, gone_capacity;
    sgm__taken_off *taken_off;
    size_t taken_off_count, taken_off_capacity;
    int64_t attachments, version; /* `version` changes whenever `order` does */
    bool had_event;               /* an event has had something to do; hooks attached before it are `early` */
    int64_t skipped;              /* how often a background hook was due while its group was busy */

    sgm__bucket **buckets; /* at least as many as there are background groups */
    size_t bucket_count, bucket_capacity, busy_buckets;
    int draining;        /* threads that wait, without the trainer's lock, until no bucket is busy */
    pthread_cond_t idle; /* no bucket is busy */
    bool quit;
    sgm_status stop_status; /* failure of a background hook that the next event reports; SGM_OK: none */
    char *stop_text;

    pthread_mutex_t command_lock;
    sgm__command_queue commands; /* what hooks asked for, until the trainer takes it */
};

/* What call->control points to while a hook runs; the public functions for hooks find the holder by it. */
typedef struct sgm__hook_control {
    sgm__hooks *hooks;
    const sgm_hook *hook;
} sgm__hook_control;

/* --- hooks.c; the lock is held --- */
/* Computes the order of running, the background groups and the scales that have hooks; after each change
 * of `entries`. */
void sgm__hooks_arrange(sgm__hooks *hooks);
size_t sgm__hooks_group_count(const sgm__hooks *hooks);
/* The first attached entry that directly requires `entry`; NULL: none does. */
sgm__hook_entry *sgm__hook_entry_requiring(const sgm__hooks *hooks, const sgm__hook_entry *entry);
bool sgm__hook_entry_is_required(const sgm__hooks *hooks, const sgm__hook_entry *entry);
/* Takes an entry off, then required entries that no other needs; they go to `garbage`. `remember`:
 * checkpoints note that the hook was taken off. sgm__hooks_arrange must follow. */
void sgm__hook_entry_take_off(sgm__hooks *hooks, sgm__hook_entry *entry, bool remember,
                              sgm__hook_entry **garbage);
/* Whether this very hook is attached. */
bool sgm__hook_is_attached(const sgm__hooks *hooks, const sgm_hook *hook);
/* Takes an entry off unless another requires it; arranges what is left. */
sgm_status sgm__hook_entry_detach(sgm__hooks *hooks, sgm__hook_entry *entry, sgm__hook_entry **garbage);
/* Notes the text of an entry that is about to be taken off, for branches; SGM_ERROR_MEMORY is the only
 * failure. */
sgm_status sgm__hook_entry_note_taken_off(sgm__hooks *hooks, const sgm__hook_entry *entry);
/* Drops a reference; the last one puts the entry into `garbage`, to be freed without the lock. */
void sgm__hook_entry_drop(sgm__hook_entry *entry, sgm__hook_entry **garbage);
/* Frees entries and drops their hooks, which may call functions of their types: without the lock. */
void sgm__hook_entries_free(sgm__hook_entry *garbage);

/* --- hooks_run.c; without the lock --- */
/* Calls the hook's criteria and function; a failure is logged and treated as the hook's options say.
 * Returns a failure only if it stops the run. */
sgm_status sgm__hook_entry_run(sgm__hooks *hooks, sgm__hook_entry *entry, sgm_hook_call call);
/* Does what the hook's options say of a failure: takes it off, logs it, or stops the run. The thread's
 * error is the reason. Returns as sgm__hook_entry_run. */
sgm_status sgm__hook_entry_failed(sgm__hooks *hooks, sgm__hook_entry *entry, sgm_status status,
                                  const sgm_hook_call *call);

/* --- hooks_background.c --- */
/* The holder whose batch this thread runs; NULL: this is no thread of background hooks. */
const sgm__hooks *sgm__hooks_of_background(void);
/* Makes sure that each group has a bucket; with the lock. */
sgm_status sgm__buckets_reserve(sgm__hooks *hooks, size_t count);
/* Hands due background entries to their buckets; with the lock, which is released while values are copied. */
void sgm__buckets_fill(sgm__hooks *hooks, const sgm_hook_call *call);
/* Waits for all buckets, and ends their threads; without the lock. */
void sgm__buckets_end(sgm__hooks *hooks);

/* --- hook.c --- */
/* Notes the state that a hook and those it requires begin with; without any lock. */
sgm_status sgm__hook_remember_first(sgm_hook *hook);
/* Sets that state again, and resets the criteria; without any lock. */
sgm_status sgm__hook_restart(sgm_hook *hook);

/* --- hook_snapshot.c --- */
/* Copies all entries that match the identifier from `source` to the same paths of `target`. */
sgm_status sgm__copy_matches(sgm_registry *source, const char *identifier, sgm_registry *target);

#endif
