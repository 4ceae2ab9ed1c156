/* Optimisers as the trainer uses them. Internal. */
#ifndef SGM_TRAINING_OPTIMISER_H
#define SGM_TRAINING_OPTIMISER_H

#include "training/modifier.h"

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

/* What an update is made of. */
typedef struct sgm__update_request {
    sgm_value cost;
    const sgm__trained_parameter *parameters;
    size_t count;
    const sgm__modifier_rule *modifiers;
    size_t modifier_count;
    bool update; /* false: this minibatch's gradients are only accumulated */
} sgm__update_request;
/* Records gradients of the cost and what becomes of them. */
sgm_status sgm__optimiser_record(const sgm_optimiser *optimiser, sgm_graph *graph,
                                 const sgm__update_request *request);

#endif
