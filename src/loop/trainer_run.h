/* A run of a trainer: beginning one, and what strategies call between two of its iterations. Internal. */
#ifndef SGM_LOOP_TRAINER_RUN_H
#define SGM_LOOP_TRAINER_RUN_H

#include "control/control_socket.h"
#include "trainer/view.h"
#include <sigma/rules.h>

/* Runs a trainer that sgm__trainer_reserve has reserved; afterwards it is idle. */
sgm_status sgm__trainer_run_reserved(sgm_trainer *trainer, const sgm_run_options *options);
/* For an observer, during its own call: it is not called again for iterations before this one. All other
 * events are still told to it; the first of them ends this, unless the observer calls this again. An
 * iteration that no observer wants costs one comparison. */
void sgm__observer_next(int64_t iteration);

/* What belongs to one run, from sgm_trainer_run_with to its return; it lies on the stack of the run's thread.
 */
typedef struct sgm__training_run {
    sgm_trainer *trainer;
    const sgm_run_options *options;
    double ran_before; /* the trainer's running time at the beginning */
    int64_t examples;  /* that this run has trained on */
    bool begun;        /* observers have been told of its beginning */
    bool stopped;      /* a signal, an observer or a hook has stopped it */
    bool agreed;       /* all ranks have agreed to stop here */
    bool saved;        /* the folder's checkpoint is of the present position */
    int lock;          /* file descriptor of the folder's lock; -1: none */
    sgm_log_sink *log;
    sgm_task task;
    sgm__control_server *server;
} sgm__training_run;

/* --- trainer_run.c --- */
/* Notes whether a signal has come, which stops the run. */
void sgm__run_look_for_signals(sgm__training_run *run);
/* Tells observers of an event. */
void sgm__run_report(sgm__training_run *run, sgm_progress_kind kind);
/* Seconds that this run has trained, without the time of pauses and without those of runs before it. */
double sgm__run_seconds(const sgm__training_run *run);

/* --- run_between.c --- */
/* Whether several processes train together: they agree in a meeting on what is done between two iterations,
 * so that none goes on alone. */
bool sgm__run_meets(const sgm__training_run *run);
/* Runs the hooks of an event, and carries out what they ask for. */
sgm_status sgm__run_hooks(sgm__training_run *run, sgm_time_scale scale);
/* Carries out what was commanded since the iteration before (with ranks: in a meeting), and what a resumed
 * run or a replay has to do again at this position. */
sgm_status sgm__run_do_between(sgm__training_run *run);
/* At the end of an epoch, before its checkpoint: the changes that the run which is replayed made there. */
sgm_status sgm__run_replay_changes(sgm__training_run *run);
/* Carries out the commands that are queued now. */
sgm_status sgm__run_do_commands(sgm__training_run *run);
/* Stops the training's clock: adds the time since the run began, or since its last pause ended, to the
 * training's running time. Time that is spent paused does not count. */
void sgm__run_stop_clock(sgm_trainer *trainer);
/* If a pause is wanted: pauses, carries out commands that come meanwhile, and returns when the pause ends. */
sgm_status sgm__run_pause_if_wanted(sgm__training_run *run);
sgm_status sgm__run_begin_pause(sgm__training_run *run);
/* Waits until the pause ends (*goes_on), or for `seconds`; carries out commands that are queued meanwhile. */
sgm_status sgm__run_wait_paused(sgm__training_run *run, double seconds, bool *goes_on);
sgm_status sgm__run_end_pause(sgm__training_run *run);
/* Says what the run's thread is doing, for threads that cannot wait for the lock. `doing`: a string literal.
 */
void sgm__trainer_note_whereabouts(sgm_trainer *trainer, const char *doing);

#endif
