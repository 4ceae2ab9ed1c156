/* Another trainer of the same parts. */
#include "runs/trainer_copy.h"
#include "data/dataset.h"
#include "journal/changes.h"
#include "optim/optimiser.h"
#include "trainer/trainer.h"
#include "trainer/trainer_lock.h"

static sgm_status copy_network(sgm_trainer *to, const sgm_trainer *from)
{
    const sgm__learner *learner = sgm__learner_of(from);
    if (learner->network == NULL)
        return sgm_fail(SGM_ERROR_STATE, "trainer '%s' has no network yet", sgm_trainer_name(from));
    char *notation = sgm_network_text(learner->network);
    if (notation == NULL)
        return sgm__last_failure();
    sgm_status status = sgm_trainer_network(to, notation);
    sgm_string_free(notation);
    return status;
}

static sgm_status copy_data(sgm_trainer *to, const sgm_trainer *from)
{
    const sgm__trainer_data *data = sgm__data_of(from);
    if (data->training == NULL)
        return sgm_fail(SGM_ERROR_STATE, "trainer '%s' has no data yet", sgm_trainer_name(from));
    SGM_TRY(sgm_trainer_data(to, sgm__iterator_copy(data->training)));
    for (size_t i = 0; i < data->validation_count; i++)
        SGM_TRY(sgm_trainer_add_data(to, data->validation[i].name,
                                     sgm__iterator_copy(data->validation[i].iterator)));
    return SGM_OK;
}

static sgm_status copy_optimiser(sgm_trainer *to, const sgm_trainer *from)
{
    const sgm__learner *learner = sgm__learner_of(from);
    if (learner->optimiser == NULL)
        return sgm_fail(SGM_ERROR_STATE, "trainer '%s' has no optimiser yet", sgm_trainer_name(from));
    sgm_optimiser *copy = sgm__calloc(1, sizeof *copy);
    if (copy == NULL)
        return SGM_ERROR_MEMORY;
    *copy = *learner->optimiser;
    sgm__progress_of(to)->next_accumulate = sgm__progress_of(from)->next_accumulate;
    return sgm_trainer_optimiser(to, copy);
}

static sgm_status copy_rules(sgm_trainer *to, const sgm_trainer *from)
{
    const sgm__trainer_patterns *patterns = sgm__patterns_of(from);
    for (size_t i = 0; i < patterns->rule_count; i++)
        SGM_TRY(sgm_trainer_initialiser(to, patterns->rules[i].pattern,
                                        sgm__initialiser_copy(patterns->rules[i].initialiser)));
    for (size_t i = 0; i < patterns->modifier_count; i++)
        SGM_TRY(sgm_trainer_modifier(to, patterns->modifiers[i].pattern,
                                     sgm__modifier_copy(patterns->modifiers[i].modifier)));
    for (size_t i = 0; i < patterns->frozen_count; i++)
        SGM_TRY(sgm_trainer_freeze(to, patterns->frozen[i]));
    return SGM_OK;
}

static sgm_status copy_all(sgm_trainer *to, sgm_trainer *from)
{
    const sgm__strategy *strategy = sgm__sharing_of(from)->strategy;
    sgm__settings_of(to)->seed = sgm__settings_of(from)->seed;
    SGM_TRY(copy_network(to, from));
    SGM_TRY(copy_data(to, from));
    SGM_TRY(copy_optimiser(to, from));
    SGM_TRY(copy_rules(to, from));
    if (strategy != NULL)
        SGM_TRY(strategy->copy(to, from));
    SGM_TRY(sgm__hooks_copy(from, to));
    return sgm__settings_copy(from, to);
}

sgm_status sgm__trainer_copy_setup(sgm_trainer *to, sgm_trainer *from)
{
    sgm__trainer_lock(to); /* first: whoever waits for a second lock lets go of the one it has */
    sgm_status status = sgm__trainer_enter(from);
    if (status == SGM_OK) {
        status = copy_all(to, from);
        sgm__trainer_unlock(from);
    }
    sgm__trainer_unlock(to);
    return status;
}
