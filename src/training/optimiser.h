/* Optimisers as the trainer uses them. Internal. */
#ifndef SGM_TRAINING_OPTIMISER_H
#define SGM_TRAINING_OPTIMISER_H

#include "base/base.h"
#include <sigma/training.h>

struct sgm_optimiser {
    const sgm_optimiser_type *type;
    sgm_optimiser_options options; /* defaults filled in */
};

#define SGM__LEARNING_RATE "optimiser.learning_rate"
#define SGM__STEP "optimiser.step"
#define SGM__SLOT_PREFIX "optimiser."
#define SGM__AVERAGE_PREFIX "average."

typedef struct sgm__trained_parameter {
    const char *name;
    sgm_value value;
} sgm__trained_parameter;

/* Records gradients of `cost` and what becomes of them. `update` false: this minibatch's gradients are only
 * accumulated. */
sgm_status sgm__optimiser_record(const sgm_optimiser *optimiser, sgm_graph *graph, sgm_value cost,
                                 const sgm__trained_parameter *parameters, size_t count, bool update);

#endif
