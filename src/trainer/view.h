/* What monitors and ready-made hooks see of a trainer: they include this header, and not trainer.h, whose
 * struct is for the rooms that train. Internal.
 *
 * With the trainer's lock (trainer_lock.h), or on its thread.
 */
#ifndef SGM_TRAINER_VIEW_H
#define SGM_TRAINER_VIEW_H

#include "base/base.h"
#include <sigma/training.h>

/* As it is at this moment; pointers are the trainer's. */
typedef struct sgm__trainer_view {
    const char *name, *folder;  /* folder: of the run; NULL: it has none */
    const sgm_network *network; /* NULL: none yet */
    sgm_session *session;
    sgm_handler *handler;
    sgm_dtype precision;
    uint64_t seed;
    int64_t epoch, iteration, branch;
    int64_t examples;         /* of the newest minibatch; of a replica, of its part */
    double seconds;           /* that the training has been running */
    double waited;            /* seconds of these that the data took */
    int32_t worker;           /* number of a replica */
    const char *target_field; /* of the first cost; "": not recorded yet */
    sgm_shape input;          /* of an example of the first input; rank 0: not known */
} sgm__trainer_view;
sgm__trainer_view sgm__trainer_look(const sgm_trainer *trainer);

bool sgm__trainer_is_unscheduled(const sgm_trainer *trainer); /* it does not run with its environment */
/* Of validation data, in the order in which they were added; NULL: no more. */
const char *sgm__trainer_data_name(const sgm_trainer *trainer, size_t index);
/* A pause is there, or comes after this step. Any thread. */
bool sgm__trainer_is_held(sgm_trainer *trainer);
/* Values that are kept only because somebody reads them are kept for so many seconds by reads from here on;
 * 0: for good. */
void sgm__trainer_read_for(sgm_trainer *trainer, double seconds);

/* --- trainer_status.c --- */
/* Whether a trainer computes for another one. */
bool sgm__trainer_is_replica(const sgm_trainer *trainer);
/* Whether this is one of several processes of which another leads. */
bool sgm__trainer_follows(const sgm_trainer *trainer);
/* Before anyone looks at the states: they are as all workers have learnt them. */
sgm_status sgm__trainer_collect(sgm_trainer *trainer);
/* The iterator of that name; an error tells those there are. */
sgm_status sgm__trainer_find_data(const sgm_trainer *trainer, const char *data, sgm_iterator **iterator);

/* "rank 1 (beta, process 4711) has not answered since 12:34:56"; sgm__free. NULL: all answer, or there is
 * nobody else. Any thread. */
char *sgm__trainer_silent(const sgm_trainer *trainer);

/* --- trainer_control.c --- */
/* Of the pause that there is, or is to be; sgm__free. NULL: no hook's. */
char *sgm__trainer_paused_by(sgm_trainer *trainer);

/* --- hooks_check.c --- */
/* What must be there at the beginning, or never is: false of shared.* and of what is measured on the
 * trainer's data. */
bool sgm__hooks_is_known_early(sgm_trainer *trainer, const char *identifier);

#endif
