/* A training as it was at one moment, in memory: to go back to, or to do steps again. Internal. */
#ifndef SGM_TRAIN_SNAPSHOT_H
#define SGM_TRAIN_SNAPSHOT_H

#include "trainer/trainer.h"

typedef struct sgm__snapshot {
    sgm__training_position position;
    double newest_loss;
    sgm_bundle *states;
    bool has_data;
    sgm_iterator_state place; /* of the training data */
    double *dataset;
    size_t dataset_count;
} sgm__snapshot;

/* Everything a step changes: states, position, the place in the data. The trainer is prepared. */
sgm__snapshot *sgm__snapshot_take(sgm_trainer *trainer);
/* States that came later stay as they are. */
sgm_status sgm__snapshot_restore(sgm_trainer *trainer, const sgm__snapshot *snapshot);
void sgm__snapshot_free(sgm__snapshot *snapshot);
/* A state whose values are not all finite, NULL: there is none. */
const char *sgm__snapshot_bad_state(const sgm__snapshot *snapshot);

#endif
