/* What ready-made hooks and monitors have a trainer do: passes over data, results in its registry. Internal.
 */
#ifndef SGM_TRAIN_MEASURE_H
#define SGM_TRAIN_MEASURE_H

#include "metrics/metrics.h"
#include "trainer/view.h"
#include <sigma/hook.h>

/* --- trainer_setup.c --- */
sgm_status sgm__trainer_add_observer(sgm_trainer *trainer, sgm_training_function function, void *user);

/* --- trainer_predict.c --- */
/* As sgm_trainer_prepare, for whoever looks, or saves: that there is no network yet does
 * not stay as the trainer's failure. With the lock. */
sgm_status sgm__trainer_prepare(sgm_trainer *trainer);

/* --- trainer_pass.c --- */
/* Leaves outputs, targets and cost of data ("training", or a name of validation data) in the registry, unless
 * they are there; `each_epoch`: the next validation may do it. output, field NULL: the first. `owner`: the
 * hook that wants it. */
sgm_status sgm__trainer_pass_for_hooks(sgm_trainer *trainer, const sgm_hook *owner, const char *data,
                                       const char *output, const char *field, bool each_epoch);
/* "outputs", or "outputs_OF"; free with sgm__free. */
char *sgm__passed_name(const char *base, const char *of);

/* --- trainer_predict.c --- */
/* Parameters and their moving averages change places; of a trainer that is prepared, with
 * its lock. */
sgm_status sgm__trainer_swap_averages(sgm_trainer *trainer);

/* --- trainer_pass.c --- */
/* DATA.NAME of the registry; numbers also for the epoch's line, by weight. It goes with the hook
 * `owner`; NULL: it stays. */
sgm_status sgm__trainer_leave(sgm_trainer *trainer, const sgm_hook *owner, const char *data, const char *name,
                              const sgm_content *content, sgm__weight weight);

#endif
