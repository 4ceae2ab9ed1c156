/* A run: for whoever begins one, and for strategies that decide what is done between two of its iterations.
 * Internal. */
#ifndef SGM_LOOP_TRAINER_RUN_H
#define SGM_LOOP_TRAINER_RUN_H

#include "control/control_socket.h"
#include "trainer/view.h"
#include <sigma/task.h>

/* Runs a trainer that was reserved, which it is no longer afterwards. */
sgm_status sgm__trainer_run_reserved(sgm_trainer *trainer, const sgm_run_options *options);
/* For an observer that is being called: of iterations it wants to be told from this one on. All else is told
 * as ever, and ends this. When no observer wants an iteration, it costs a comparison. */
void sgm__observer_next(int64_t iteration);

typedef struct sgm__training_run {
    sgm_trainer *trainer;
    const sgm_run_options *options;
    double ran_before; /* the trainer's running time at the beginning */
    int64_t examples;  /* trained on in this run */
    bool begun;        /* observers were told of its beginning */
    bool stopped;      /* by a signal, an observer or a hook */
    bool agreed;       /* with other processes: all stop here */
    bool saved;
    int lock; /* of the folder */
    sgm_log_sink *log;
    sgm_task task;
    sgm__control_server *server;
} sgm__training_run;

/* A signal stops the run. */
void sgm__run_look_for_signals(sgm__training_run *run);
/* Those that are there: what they lead to comes after the next iteration. */
sgm_status sgm__run_do_commands(sgm__training_run *run);
sgm_status sgm__run_begin_pause(sgm__training_run *run);
/* Until the pause ends, or for so many seconds; what came meanwhile is done. */
sgm_status sgm__run_wait_paused(sgm__training_run *run, double seconds, bool *goes_on);
sgm_status sgm__run_end_pause(sgm__training_run *run);
/* For those who cannot look while this thread has the lock; a string that stays. */
void sgm__trainer_note_whereabouts(sgm_trainer *trainer, const char *doing);

#endif
