/* Optimisers as trainers use them: recording an update, the numbers that it is fed, and checking settings.
 * Internal. */
#ifndef SGM_OPTIM_OPTIMISER_H
#define SGM_OPTIM_OPTIMISER_H

#include "optim/modifier.h"
#include "registry/option_check.h"

/* An optimiser has no states of its own: what it remembers of a parameter are states of the session, under
 * the prefixes below. One optimiser belongs to one trainer and its replicas. */
struct sgm_optimiser {
    const sgm_optimiser_type *type;
    sgm_optimiser_options options; /* defaults filled in */
};

/* Names of states, and of the entries of the registry that show them:
 *
 *     state of the session               entry of the registry
 *     2-dense.weights                    network.layers.2-dense.weights
 *     optimiser.momentum.2-dense.weights optimiser.slots.momentum.2-dense.weights
 *     average.2-dense.weights            network.averages.2-dense.weights
 *     trainer.gradients.2-dense.weights  optimiser.gradients.2-dense.weights
 *     trainer.updates.2-dense.weights    optimiser.updates.2-dense.weights
 *
 * The macros are the beginnings of the names of states. */
#define SGM__SLOT_PREFIX "optimiser."
#define SGM__AVERAGE_PREFIX "average."
/* What a method without gradients remembers of all parameters together, float64 (numbers). */
#define SGM__SEARCH_STATE SGM__SLOT_PREFIX "search.all.numbers"
#define SGM__KEPT_PREFIX "trainer." /* of states that only readers need: no checkpoint has them */
#define SGM__GRADIENT_PREFIX SGM__KEPT_PREFIX "gradients."
#define SGM__UPDATE_PREFIX SGM__KEPT_PREFIX "updates."

/* The numbers that each update is fed: inputs of rank 0, of the parameters' type. */
typedef enum sgm__fed_number {
    SGM__FED_LEARNING_RATE,
    SGM__FED_STEP,
    SGM__FED_BIAS_CORRECTION1, /* 1 - beta1^step */
    SGM__FED_BIAS_CORRECTION2, /* 1 - beta2^step */
    SGM__FED_COUNT
} sgm__fed_number;
extern const char *const sgm__fed_names[SGM__FED_COUNT];
/* The value of a fed number for update `step` (from 1), computed in double whatever type the input has. */
double sgm__fed_value(const sgm_optimiser *optimiser, sgm__fed_number number, double rate, int64_t step);
/* The fed number whose input has this name; SGM__FED_COUNT: none of them has it. */
sgm__fed_number sgm__fed_number_of(const char *input);

/* A parameter that an update changes. The name is the network's or, with an operator, the operator's. */
typedef struct sgm__trained_parameter {
    const char *name;
    sgm_value value;
    bool sparse;    /* only rows with a gradient are updated (sgm_parameter) */
    bool elsewhere; /* another rank updates it */
} sgm__trained_parameter;

#define SGM__SCHEDULE_PREFIX "schedule."

/* --- option_tables.c --- */
/* The row of "beta1" or "schedule.kind", and *options: the struct that has its member; NULL: there is none.
 */
const sgm_setting *sgm__optimiser_setting(sgm_optimiser *optimiser, const char *name, void **options);
/* Whether the type reads this row of sgm_optimiser_settings. Settings that it does not read are refused
 * wherever they come from: options, files, a running training. */
bool sgm__optimiser_type_uses(const sgm_optimiser_type *type, const sgm_setting *setting);
/* The names of all rows that the type reads, "learning_rate, beta1, ..."; sgm__free. NULL: no memory. */
char *sgm__optimiser_type_settings(const sgm_optimiser_type *type);
/* Fails with SGM_ERROR_STATE for a setting that this optimiser does not use, such as adam's momentum. */
sgm_status sgm__optimiser_check_used(const sgm_optimiser *optimiser, const char *name);
/* The same for all options that are not 0. */
sgm_status sgm__optimiser_check_given(const sgm_optimiser_type *type, const sgm_optimiser_options *options);
/* Fails, naming it, if an option is out of its bounds. */
sgm_status sgm__optimiser_check(const char *type, const sgm_optimiser_options *options);
sgm_status sgm__run_options_check(const sgm_run_options *options);
extern const char *const sgm__schedule_kind_names[]; /* by kind; NULL at the end */

/* --- optimiser.c --- */
/* Everything that an update is recorded from. */
typedef struct sgm__update_request {
    sgm_value cost;             /* the loss, whose gradients are recorded */
    const sgm_value *gradients; /* gradients that are known already; NULL: those of `cost` */
    const sgm__trained_parameter *parameters;
    size_t count;
    const sgm__modifier_rule *modifiers;
    size_t modifier_count;
    bool update;                       /* false: this minibatch's gradients are only accumulated */
    bool keep_gradients, keep_updates; /* as states, under the prefixes above */
    bool averages_apart;               /* moving averages are recorded by another program */
} sgm__update_request;
/* Whether an update needs all gradients before it can begin: the norm of all together is limited, or
 * gradients of several minibatches are averaged. */
bool sgm__optimiser_looks_across(const sgm_optimiser *optimiser);
/* Records the update of the parameters' moving averages by their present values. */
sgm_status sgm__optimiser_record_averages(const sgm_optimiser *optimiser, sgm_graph *graph,
                                          const sgm__trained_parameter *parameters, size_t count);
/* Records the gradients and the update of all parameters. */
sgm_status sgm__optimiser_record(const sgm_optimiser *optimiser, sgm_graph *graph,
                                 const sgm__update_request *request);

#endif
