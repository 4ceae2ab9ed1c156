/* What ready-made hooks and monitors may ask of a trainer: passes over data, results in its registry.
 * Internal.
 */
#ifndef SGM_TRAIN_MEASURE_H
#define SGM_TRAIN_MEASURE_H

#include "metrics/metrics.h"
#include "trainer/view.h"
#include <sigma/hooks.h>

/* --- trainer_setup.c --- */
/* Has function(user, progress) called for each event of the trainer's runs. */
sgm_status sgm__trainer_add_observer(sgm_trainer *trainer, sgm_training_function function, void *user);
void sgm__trainer_remove_observer(sgm_trainer *trainer, sgm_training_function function, const void *user);

/* --- trainer_predict.c --- */
/* As sgm_trainer_prepare, for callers that only look or save: a missing network fails this call, but does not
 * stay as the trainer's failure. With the trainer's lock. */
sgm_status sgm__trainer_prepare(sgm_trainer *trainer);

/* --- trainer_pass.c --- */
/* Leaves outputs, targets and loss of data ("training", or the name of validation data) in the registry, if
 * they are not there already. `each_epoch`: the next validation leaves them, too. `output`: a layer,
 * `field`: a target; NULL: the first. `owner`: the hook that reads them. */
sgm_status sgm__trainer_pass_for_hooks(sgm_trainer *trainer, const sgm_hook *owner, const char *data,
                                       const char *output, const char *field, bool each_epoch);
/* The name under which they are left: BASE, or "BASE_OF" where `of` names a layer or field; free with
 * sgm__free. */
char *sgm__passed_name(const char *base, const char *of);

/* --- trainer_predict.c --- */
/* Exchanges parameters and their moving averages. The trainer is prepared; with its lock. */
sgm_status sgm__trainer_swap_averages(sgm_trainer *trainer);

/* --- trainer_results.c --- */
/* Leaves a result as DATA.NAME in the registry; numbers also in the epoch's line of metrics.jsonl, by
 * `weight`. It is removed together with the hook `owner`; NULL: it stays. */
sgm_status sgm__trainer_leave(sgm_trainer *trainer, const sgm_hook *owner, const char *data, const char *name,
                              const sgm_content *content, sgm__weight weight);

#endif
