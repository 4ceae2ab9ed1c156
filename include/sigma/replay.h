/* Replays: doing again what was done to a run, to the same bits.
 *
 * The folder of a run has a journal: each beginning, end and checkpoint, and each intervention with its
 * moment, such as a value that was set, a hook that was attached, a reset or a restore. A trainer that is set
 * up as the run's was can repeat all of it:
 *
 *     sgm_trainer_run(trainer, .folder = "runs/again", .replay = sgm_replay_of(.run = "runs/digits"));
 *
 * It ends where the run's newest checkpoint was made, with the same checkpoint. What hooks did they do again
 * by themselves. `without` leaves interventions out, and so shows what they were good for.
 */
#ifndef SIGMA_REPLAY_H
#define SIGMA_REPLAY_H

#include <sigma/training.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which run is replayed, and how much of it. */
typedef struct sgm_replay {
    size_t struct_size;
    const char *run; /* its folder, which is only read */
    int64_t until;   /* ends after so many iterations of the run's last branch; 0: at its newest checkpoint */
    const int64_t *without; /* numbers of interventions that are left out (sgm_run_interventions) */
    size_t without_count;   /* of `without` */
    /* also where it is known beforehand that the result will be another one, as on a processor with other
     * instructions: what is known is a warning then, and no error */
    bool inexact;
    /* only check: nothing is trained, and the folder is not made */
    bool check;
} SGM_BY_NAME sgm_replay;
/* The option `replay` of a run, which must have a new folder; the trainer must not have trained. Epochs and
 * iterations are the run's. A run that went on from another training, as branches do, begins with the state
 * in its origin.safetensors, which the trainer then has, also if the replay is refused. SGM_ERROR_STATE,
 * before anything is trained, with all reasons why the result could not be the same: other data, network,
 * seed, or instructions of the processor; a hook that depends on the clock; an intervention of which the
 * journal has not all. A damaged journal is SGM_ERROR_FORMAT, with its line. Each checkpoint is compared with
 * the run's own: the first that differs ends the replay, with an error that says after which iteration.
 * Paused by a hook, a replay goes on. */
#define sgm_replay_of(...) SGM_OPTIONS(sgm_replay, __VA_ARGS__)

/* What a person or the program did to a run. A branch's first one, "branched", says what it came from. */
typedef struct sgm_intervention {
    int64_t number;                   /* of its line in the journal, from 1 */
    int64_t branch, epoch, iteration; /* so many were done */
    const char *event;  /* "change", "press", "reset", "restore", "save", "upload", "branch", "branched" */
    const char *who;    /* "ctl", "monitor:anna", "mcp:NAME", "program" */
    const char *text;   /* "optimiser.learning_rate was set to 0.01" */
    const char *reason; /* why, as the asker said; "": that was not said */
    bool removable;     /* it can be in `without`: a change, a press */
} sgm_intervention;
/* Those that led to the newest state of the run, in order; *list is freed with sgm_interventions_free. A
 * folder without a journal is SGM_ERROR_NOT_FOUND, a damaged journal SGM_ERROR_FORMAT with the line. */
SGM_API sgm_status sgm_run_interventions(const char *folder, sgm_intervention **list, size_t *count);
SGM_API void sgm_interventions_free(sgm_intervention *list, size_t count);

#ifdef __cplusplus
}
#endif

#endif
