/* What monitors and ready-made hooks see of a trainer. They include this header, and not trainer.h, which is
 * for the folders that train. Internal.
 *
 * These functions are called with the trainer's lock (trainer_lock.h), or on the run's thread, where nothing
 * else is said. */
#ifndef SGM_TRAINER_VIEW_H
#define SGM_TRAINER_VIEW_H

#include "base/base.h"
#include <sigma/training.h>

/* The trainer as it is at this moment. Pointers belong to the trainer. */
typedef struct sgm__trainer_view {
    const char *name, *folder;  /* folder: of the run; NULL: it has none */
    const sgm_network *network; /* NULL: none yet */
    sgm_session *session;
    sgm_handler *handler;
    sgm_dtype precision;
    uint64_t seed;
    int64_t epoch, iteration, branch;
    int64_t examples;         /* of the newest minibatch; in a replica, of its part */
    double seconds;           /* of running so far, without pauses */
    double waited;            /* seconds of these in which the run waited for data */
    int32_t worker;           /* a replica's number */
    const char *target_field; /* of the first cost; "": the network is not recorded yet */
    sgm_shape input;          /* shape of one example of the first input; rank 0: not known */
} sgm__trainer_view;
sgm__trainer_view sgm__trainer_look(const sgm_trainer *trainer);
/* Whether a pattern can be frozen (`freeze`) or trained again: fails if it matches none of the parameters
 * that are known, or only such that adapters freeze. */
sgm_status sgm__trainer_check_freeze(const sgm_trainer *trainer, const char *pattern, bool freeze);

/* Asks for a branch: a new trainer that goes on from a checkpoint of an existing one, with some registry
 * values set differently. All texts are borrowed for the duration of the call. */
typedef struct sgm__branch_request {
    const char *name;       /* the new trainer's name */
    const char *checkpoint; /* path of the checkpoint file from which the branch starts */
    const char *who;        /* author of the values' changes, as the journal of changes records it */
    const char *reason;     /* why, which the journal keeps, too; NULL: that is not said */
    /* `count` registry identifiers and their values as text. */
    const char *const *identifiers, *const *values;
    size_t count;
    bool paused; /* the branch starts paused */
} sgm__branch_request;

/* Whether sgm_env_run of the trainer's environment leaves the trainer out. */
bool sgm__trainer_is_unscheduled(const sgm_trainer *trainer);
/* The name of validation data, in the order in which they were added; NULL: there are no more. */
const char *sgm__trainer_data_name(const sgm_trainer *trainer, size_t index);
/* Whether the trainer is paused, or will pause after this step. Any thread. */
bool sgm__trainer_is_held(sgm_trainer *trainer);
/* Gradients and updates are kept only while a reader wants them: from here on, each reading keeps them for
 * `seconds`; 0: for ever. */
void sgm__trainer_read_for(sgm_trainer *trainer, double seconds);

/* --- trainer_status.c --- */
/* Whether a trainer computes for another one. */
bool sgm__trainer_is_replica(const sgm_trainer *trainer);
/* Whether this process is one of several ranks, and not rank 0. */
bool sgm__trainer_follows(const sgm_trainer *trainer);
/* Whether this process is one of several ranks that train together. */
bool sgm__trainer_has_ranks(const sgm_trainer *trainer);
/* Brings the trainer's states up to date with its workers'. Call it before you read states. */
sgm_status sgm__trainer_collect(sgm_trainer *trainer);
/* The iterator of data with this name; the error of an unknown name lists the known ones. */
sgm_status sgm__trainer_find_data(const sgm_trainer *trainer, const char *data, sgm_iterator **iterator);

/* "rank 1 (beta, process 4711) has not answered since 12:34:56"; free with sgm__free. NULL: all ranks answer,
 * or there is one. Any thread. */
char *sgm__trainer_silent(const sgm_trainer *trainer);

/* --- trainer_control.c --- */
/* The hook that made the present or next pause, with its text; free with sgm__free. NULL: no hook did. */
char *sgm__trainer_paused_by(sgm_trainer *trainer);

/* --- hooks_check.c --- */
/* Whether a value with this identifier exists at the beginning of a run if it exists at all: false of
 * shared.* and of what is measured on the trainer's data, which come later. */
bool sgm__hooks_is_known_early(sgm_trainer *trainer, const char *identifier);

#endif
