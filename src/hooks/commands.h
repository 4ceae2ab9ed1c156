/* Commands: what is to be done to a training between two of its iterations, and the queues they wait in.
 *
 * A hook, the program, the control socket or a page makes a command. Only the training's thread carries
 * commands out, so nothing changes in the middle of an iteration. This file has the record and the queue;
 * src/runs/trainer_commands.c puts commands in and carries them out. Pausing, resuming and stepping by
 * other threads are no commands but flags (src/trainer/trainer_control.c), since they say whether the
 * training goes on at all. Internal. */
#ifndef SGM_HOOKS_COMMANDS_H
#define SGM_HOOKS_COMMANDS_H

#include "base/base.h"
#include <sigma/hooks.h>
#include <stdatomic.h>

typedef enum sgm__command_kind {
    SGM__COMMAND_STOP,     /* text: the reason */
    SGM__COMMAND_SAVE,     /* text: the checkpoint's name */
    SGM__COMMAND_SET,      /* text: the identifier; content: its value; period: for how long */
    SGM__COMMAND_PAUSE,    /* text: the text of the hook that asks; shown as the reason */
    SGM__COMMAND_RESET,    /* back to the beginning */
    SGM__COMMAND_ACT,      /* act(user, trainer) */
    SGM__COMMAND_RESTORE,  /* text: a checkpoint's name in the run's folder, or a path */
    SGM__COMMAND_FREEZE,   /* text: a pattern of parameters, which become frozen */
    SGM__COMMAND_UNFREEZE, /* the same, which are trained again */
    SGM__COMMAND_PRESS,    /* text: the name of external criteria */
    SGM__COMMAND_NOTE      /* records that a hook was attached or detached, which has been done: text, before,
                              after, undoes */
} sgm__command_kind;

/* How long a value stays set: so many epochs or iterations; a count of 0: for good. */
typedef struct sgm__command_period {
    sgm_time_scale scale; /* SGM_EPOCH or SGM_ITERATION */
    int64_t count;
} sgm__command_period;

typedef sgm_status (*sgm__action_function)(void *user, sgm_trainer *trainer);

typedef struct sgm__command {
    sgm__command_kind kind;
    char *who;            /* the asker's name in the record of changes: a hook's name, "ctl", "program" */
    char *text;           /* see the kind; never NULL */
    char *reason;         /* why, as the asker says; NULL: that is not said */
    char *before, *after; /* of a note: texts of the hook; NULL: none */
    int64_t undoes;       /* of a note: number of the change that it takes back; 0: none */
    sgm_content content;  /* of a set */
    sgm__command_period period;
    sgm_trainer *asker; /* of a hook's command: the hook's trainer, which may be a replica; else NULL */
    bool background;    /* the asker is a background hook */
    sgm__action_function act;
    void *user;
    void (*release)(void *user); /* called once with `user` when the command is freed; NULL: not needed */
    /* What follows is guarded by the lock of the queue. A command whose asker waits (`waited`) stays the
     * asker's, who frees it. */
    bool waited, taken, done;
    sgm_status status; /* how the command ended, with the message of its error (NULL: it has none) */
    char *message;
    struct sgm__command *next;
} sgm__command;

/* The fields of a command that is to be made; texts may be NULL: none. */
typedef struct sgm__command_fields {
    const char *who, *text, *reason, *before, *after;
    int64_t undoes;
} sgm__command_fields;

/* Makes a command with copies of the texts; NULL: out of memory. */
sgm__command *sgm__command_create(sgm__command_kind kind, sgm__command_fields fields);
void sgm__command_free(sgm__command *command);

/* First in, first out; zeros are an empty queue. The queue's owner holds a lock around these functions;
 * `has_any` may be read by any thread. */
typedef struct sgm__command_queue {
    sgm__command *first;
    atomic_bool has_any;
} sgm__command_queue;

void sgm__commands_append(sgm__command_queue *queue, sgm__command *command);
sgm__command *sgm__commands_take(sgm__command_queue *queue); /* the oldest; NULL: none */
void sgm__commands_remove(sgm__command_queue *queue, const sgm__command *command); /* if it is in there */

#endif
