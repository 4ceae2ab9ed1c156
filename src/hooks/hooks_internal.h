/* What the files of the hook engine share. Internal to them. */
#ifndef SGM_HOOKS_HOOKS_INTERNAL_H
#define SGM_HOOKS_HOOKS_INTERNAL_H

#include "hooks/hooks.h"
#include <stdatomic.h>

struct sgm_hook {
    atomic_int references;
    atomic_bool was_attached; /* from then on it requires no further hooks */
    atomic_bool taken_off;    /* by its name, since it was attached last */
    pthread_mutex_t lock;     /* recursive */
    const sgm_hook_type *type;
    void *self;
    sgm_time_step when;
    sgm_criteria *criteria;
    bool missing_logged; /* of the criteria; under `turn` */
    bool reads_checked, has_run;
    int64_t first_epoch; /* in which it was due, once it has_run; under `turn`, too */
    char **reads;
    size_t read_count;
    sgm_hook **required;
    size_t required_count, required_capacity;
    int32_t priority;
    bool background, local;
    double time_limit;
    sgm_hook_failure failure;
    char *text;          /* that it was parsed from; NULL: a program made it */
    double *first_state; /* before it ran, for a reset; NULL: it has none, or none yet */
    size_t first_count;
    sgm_hook *origin;      /* of a worker's copy that has no self of its own: whose it uses; NULL: none */
    pthread_mutex_t *turn; /* the lock that is held while one of the type's functions runs on self */
};

sgm_hook *sgm__hook_allocate(void);
/* hook_local.c: whether its type can be local. */
sgm_status sgm__hook_check_local(const sgm_hook *hook);
/* A worker's copy, without what it requires. */
sgm_hook *sgm__hook_copy(sgm_hook *hook);
/* Same type, self, time step and options, and equal required hooks. */
bool sgm__hook_equal(const sgm_hook *a, const sgm_hook *b);
/* What tells hooks apart in checkpoints; doubles hold both. */
typedef struct sgm__hook_identity {
    uint32_t kind; /* of type, time step, options and what it reads */
    uint32_t text; /* of the text that it was parsed from; 0: it has none */
} sgm__hook_identity;
sgm__hook_identity sgm__hook_identify(const sgm_hook *hook);

/* A hook that is attached to one holder, and what the holder counts of it. All of it is guarded by the
 * holder's lock. */
typedef struct sgm__hook_entry sgm__hook_entry;
struct sgm__hook_entry {
    sgm_hook *hook;
    sgm__hook_entry **required; /* the entries in use: equal hooks are shared */
    size_t required_count;
    sgm_time_count count;
    sgm__hook_identity identity;
    size_t record;  /* of the state that is being set, from 1; 0: none is of it */
    int64_t number; /* in order of attachment */
    int ordinal;    /* among those of its name, from 1: "save#2" */
    bool stored;    /* attached to a running trainer by text: checkpoints bring it back */
    bool copied;    /* from another trainer, and no state was set since */
    atomic_llong runs, nanoseconds;
    int references; /* of the list, of an event that runs it, of a batch */
    bool chosen;    /* attached by the program, not only because another requires it */
    bool early;     /* attached before the first event */
    bool background;
    bool attached;
    bool cancelled; /* taken off before its life was over: a batch leaves it out */
    bool due, visited, busy;
    size_t group; /* of background entries that depend on each other: the place of its first in `order` */
    sgm__hook_entry *next; /* in a batch; or of those to be let go */
};

/* A hook that was attached before the first event, and whose life is over: after a resume the program
 * attaches it again, and has to be told. A reset brings back the one that has just lived; `entry` has a
 * reference then, NULL: it was taken off by someone. */
typedef struct sgm__gone {
    sgm__hook_entry *entry;
    sgm__hook_identity identity;
    int64_t number;
    sgm_time_count count;
} sgm__gone;

/* One that was attached before the first event, and that someone took off, or attached again when it had
 * lived: a branch off an earlier checkpoint makes it anew. */
typedef struct sgm__taken_off {
    int64_t number;
    char *text; /* that it was parsed from */
} sgm__taken_off;

/* A thread for one batch at a time: the due hooks of one background group, in order. */
typedef struct sgm__bucket {
    sgm__hooks *hooks;
    pthread_t thread;
    pthread_cond_t wake;
    sgm__hook_entry *first; /* the batch; NULL: the bucket is free */
    bool ready;             /* the copy is complete */
    sgm_hook_call call;
} sgm__bucket;

#define SGM__ATTENTION (1u << SGM_TIME_SCALE_COUNT) /* an event of any scale has something to do */

struct sgm__hooks {
    char *trainer;
    sgm_registry *registry, *shared;
    sgm_registry *mirror; /* of a worker: its results once more, where the trainer shows them; else NULL */
    int32_t worker;       /* its number */
    sgm_trainer *owner;
    atomic_uint wanted; /* bit of each scale that has a hook */
    pthread_mutex_t lock;
    /* All that is attached, in order of attachment and in order of running. */
    sgm__hook_entry **entries, **order;
    size_t count, entry_capacity, order_capacity;
    sgm__gone *gone;
    size_t gone_count, gone_capacity;
    sgm__taken_off *taken_off;
    size_t taken_off_count, taken_off_capacity;
    int64_t attachments, version; /* the version changes with `order` */
    bool had_event;
    int64_t skipped;

    sgm__bucket **buckets; /* at least as many as there are background groups */
    size_t bucket_count, bucket_capacity, busy_buckets;
    pthread_cond_t idle; /* no bucket is busy */
    bool quit;
    sgm_status stop_status; /* of a background hook whose failure stops the run */
    char *stop_text;

    pthread_mutex_t command_lock;
    sgm__command_queue commands; /* that hooks asked for */
};

/* What call->control points to. */
typedef struct sgm__hook_control {
    sgm__hooks *hooks;
    const sgm_hook *hook;
} sgm__hook_control;

/* --- hooks.c; the lock is held --- */
/* Orders what is attached and finds groups and scales anew. */
void sgm__hooks_arrange(sgm__hooks *hooks);
size_t sgm__hooks_group_count(const sgm__hooks *hooks);
bool sgm__hook_entry_is_required(const sgm__hooks *hooks, const sgm__hook_entry *entry);
/* Takes an entry off, then required ones that nobody needs any more; they go to `garbage`. `remember`: a
 * resumed run takes it off, too. Then call sgm__hooks_arrange. */
void sgm__hook_entry_take_off(sgm__hooks *hooks, sgm__hook_entry *entry, bool remember,
                              sgm__hook_entry **garbage);
/* With the lock held. */
bool sgm__hook_is_attached(const sgm__hooks *hooks, const sgm_hook *hook);
/* What sgm__hooks_detach does. */
sgm_status sgm__hook_entry_detach(sgm__hooks *hooks, sgm__hook_entry *entry, sgm__hook_entry **garbage);
/* Before someone's taking it off. */
sgm_status sgm__hook_entry_note_taken_off(sgm__hooks *hooks, const sgm__hook_entry *entry);
/* Drops a reference; the last puts the entry to `garbage`. */
void sgm__hook_entry_drop(sgm__hook_entry *entry, sgm__hook_entry **garbage);
/* Without the lock: frees entries and lets go of their hooks. */
void sgm__hook_entries_free(sgm__hook_entry *garbage);

/* --- hooks_run.c; without the lock --- */
/* Calls the hook; a failure is logged and dealt with. Returns a failure only if it stops the run. */
sgm_status sgm__hook_entry_run(sgm__hooks *hooks, sgm__hook_entry *entry, sgm_hook_call call);
/* Does what the hook's options say of a failure with the thread's error; returns as above. */
sgm_status sgm__hook_entry_failed(sgm__hooks *hooks, sgm__hook_entry *entry, sgm_status status,
                                  const sgm_hook_call *call);

/* --- hooks_background.c --- */
/* Whose batch this thread runs; NULL: none. */
const sgm__hooks *sgm__hooks_of_background(void);
/* Makes sure that each group has a bucket; with the lock. */
sgm_status sgm__buckets_reserve(sgm__hooks *hooks, size_t count);
/* Hands what is due in the background to its buckets; with the lock, which it lets go while it copies. */
void sgm__buckets_fill(sgm__hooks *hooks, const sgm_hook_call *call);
/* Waits for all buckets, and ends their threads; without the lock. */
void sgm__buckets_end(sgm__hooks *hooks);

/* --- hook.c --- */
/* Notes the state that a hook begins with, and those that it requires; without any lock. */
sgm_status sgm__hook_remember_first(sgm_hook *hook);
/* Back to that state, criteria too; without any lock. */
sgm_status sgm__hook_restart(sgm_hook *hook);

/* --- hook_snapshot.c ---
 * Copies what matches the identifiers into `target`. */
sgm_status sgm__copy_matches(sgm_registry *source, const char *identifier, sgm_registry *target);

#endif
