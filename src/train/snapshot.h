/* A snapshot of a training in memory: states, position and place in the data at one moment, to return to or
 * to repeat steps from. What is written to a file is a checkpoint (src/runs). Internal. */
#ifndef SGM_TRAIN_SNAPSHOT_H
#define SGM_TRAIN_SNAPSHOT_H

#include "trainer/trainer.h"

/* Everything that a step changes. The snapshot owns `states` and `dataset`. */
typedef struct sgm__snapshot {
    sgm__training_position position;
    double newest_loss;
    sgm_bundle *states;
    bool has_data; /* whether the trainer had training data; without them `place` and `dataset` are unset */
    sgm_iterator_state place; /* of the training data's iterator */
    double *dataset;          /* what the preprocessors of the training data have learnt */
    size_t dataset_count;
} sgm__snapshot;

/* Takes a snapshot of everything that a step changes. The trainer is prepared. NULL: it failed. */
sgm__snapshot *sgm__snapshot_take(sgm_trainer *trainer);
/* Sets the trainer back to the snapshot. States that are newer than it stay as they are. */
sgm_status sgm__snapshot_restore(sgm_trainer *trainer, const sgm__snapshot *snapshot);
void sgm__snapshot_free(sgm__snapshot *snapshot);
/* The name of a state with a value that is NaN or infinite; NULL: there is none. */
const char *sgm__snapshot_bad_state(const sgm__snapshot *snapshot);

#endif
