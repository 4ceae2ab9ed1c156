/* Optimisers as the trainer uses them. Internal. */
#ifndef SGM_OPTIM_OPTIMISER_H
#define SGM_OPTIM_OPTIMISER_H

#include "optim/modifier.h"
#include "registry/option_check.h"

struct sgm_optimiser {
    const sgm_optimiser_type *type;
    sgm_optimiser_options options; /* defaults filled in */
};

#define SGM__SLOT_PREFIX "optimiser."
#define SGM__AVERAGE_PREFIX "average."
#define SGM__KEPT_PREFIX "trainer." /* states for whoever looks, no part of a checkpoint */
#define SGM__GRADIENT_PREFIX SGM__KEPT_PREFIX "gradients."
#define SGM__STEP_PREFIX SGM__KEPT_PREFIX "updates."

/* The numbers that each update is fed: inputs of rank 0, of the parameters' type. */
typedef enum sgm__fed_number {
    SGM__FED_LEARNING_RATE,
    SGM__FED_STEP,
    SGM__FED_BIAS_CORRECTION1, /* 1 - beta1^step */
    SGM__FED_BIAS_CORRECTION2, /* 1 - beta2^step */
    SGM__FED_COUNT
} sgm__fed_number;
extern const char *const sgm__fed_names[SGM__FED_COUNT];
/* Computed in double, whatever type it is fed in. */
double sgm__fed_value(const sgm_optimiser *optimiser, sgm__fed_number number, double rate, int64_t step);
/* Which of them has this name; SGM__FED_COUNT: the input is none of them. */
sgm__fed_number sgm__fed_number_of(const char *input);

typedef struct sgm__trained_parameter {
    const char *name;
    sgm_value value;
    bool sparse;    /* as that of sgm_parameter */
    bool elsewhere; /* another rank updates it */
} sgm__trained_parameter;

/* option_tables.c: the row of "beta1" or "schedule.kind", and the struct that has its member; NULL: none. */
#define SGM__SCHEDULE_PREFIX "schedule."
const sgm_setting *sgm__optimiser_setting(sgm_optimiser *optimiser, const char *name, void **options);
/* SGM_ERROR_STATE for a setting of other types, such as the momentum of adam. */
sgm_status sgm__optimiser_check_used(const sgm_optimiser *optimiser, const char *name);
sgm_status sgm__optimiser_check(const char *type, const sgm_optimiser_options *options);
sgm_status sgm__run_options_check(const sgm_run_options *options);
extern const char *const sgm__schedule_kind_names[]; /* by kind; NULL at the end */

/* What an update is made of. */
typedef struct sgm__update_request {
    sgm_value cost;             /* whose gradients are taken */
    const sgm_value *gradients; /* what they are, where that is known; NULL: it is not */
    const sgm__trained_parameter *parameters;
    size_t count;
    const sgm__modifier_rule *modifiers;
    size_t modifier_count;
    bool update;                       /* false: this minibatch's gradients are only accumulated */
    bool keep_gradients, keep_updates; /* in states of these prefixes */
    bool averages_apart;               /* they are recorded by themselves */
} sgm__update_request;
/* Whether the update of a parameter needs the gradients of all. */
bool sgm__optimiser_looks_across(const sgm_optimiser *optimiser);
/* Moving averages of the parameters, as they are now. */
sgm_status sgm__optimiser_record_averages(const sgm_optimiser *optimiser, sgm_graph *graph,
                                          const sgm__trained_parameter *parameters, size_t count);
/* Records gradients of the cost and what becomes of them. */
sgm_status sgm__optimiser_record(const sgm_optimiser *optimiser, sgm_graph *graph,
                                 const sgm__update_request *request);

#endif
