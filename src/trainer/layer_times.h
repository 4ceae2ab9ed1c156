/* How long a training step spends in each layer, measured in a few steps on request. Internal.
 *
 * An instruction belongs to the layer that recorded it: forward if an output of the step, such as the cost,
 * is made from it, else backward; those of the optimiser belong to the layer of the parameter, as its update.
 * A pass that computes several instructions at once is divided by the work of each: elements of the result,
 * for products times the elements that are summed for one. The time of instructions of no layer (accuracy,
 * clipping by the norm of all gradients) is kept apart, so that the sum of all times is the whole step. */
#ifndef SGM_TRAINER_LAYER_TIMES_H
#define SGM_TRAINER_LAYER_TIMES_H

#include "handlers/session.h"
#include "trainer/view.h"

typedef enum sgm__layer_phase {
    SGM__FORWARD,
    SGM__BACKWARD,
    SGM__UPDATING,
    SGM__PHASE_COUNT
} sgm__layer_phase;

typedef struct sgm__layer_time {
    double seconds[SGM__PHASE_COUNT];
} sgm__layer_time;

typedef struct sgm__layer_times {
    int32_t wanted; /* steps still to be measured */
    double steps; /* measured steps, of which older ones count less and less; all times are sums over them */
    double seconds;
    sgm__layer_time *layers; /* one for each layer, and one more for instructions of no layer */
    size_t count;            /* number of layers */
    sgm__step_time *measured;
    double *works;
    bool *forward;
    size_t measured_capacity, works_capacity,
        forward_capacity; /* room for the steps and nodes of a program */
} sgm__layer_times;

/* Has the next `steps` steps measured, unless steps are being measured already. With the trainer's lock. */
sgm_status sgm__layer_times_want(sgm_trainer *trainer, int32_t steps);
/* Runs a step's program: sgm_session_run, or, while steps are wanted, measured step by step. On the run's
 * thread. */
sgm_status sgm__trainer_run_program(sgm_trainer *trainer, sgm_program *program);
/* The times measured so far; NULL: nothing was measured yet. */
const sgm__layer_times *sgm__layer_times_of(const sgm_trainer *trainer);
/* Drops what was measured, as the trainer gets another network. With the trainer's lock. */
void sgm__layer_times_forget(sgm_trainer *trainer);
void sgm__layer_times_free(sgm__layer_times *times);

#endif
