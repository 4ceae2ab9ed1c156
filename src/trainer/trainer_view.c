/* What others see of a trainer: its groups (trainer.h) for the folders that train, and the view (view.h) for
 * monitors and ready-made hooks.
 *
 * Only src/trainer, src/train and src/loop know the struct sgm_trainer; all other folders get their part of
 * it here. Functions are called with the trainer's lock or on the run's thread, unless their header says
 * otherwise. */
#include "trainer/trainer_struct.h"
#include "trainer/view.h"

/* --- groups --- */

/* One set of functions serves callers that read and callers that write, so constness is cast away here. A
 * caller with a const trainer declares the group const. */
static sgm_trainer *within(const sgm_trainer *trainer)
{
    return (sgm_trainer *)(uintptr_t)trainer;
}

#define GROUP(type, name, member)                                                                            \
    type *name(const sgm_trainer *trainer)                                                                   \
    {                                                                                                        \
        return &within(trainer)->member;                                                                     \
    }
GROUP(sgm__learner, sgm__learner_of, learner)
GROUP(sgm__trainer_settings, sgm__settings_of, settings)
GROUP(sgm__training_position, sgm__position_of, position)
GROUP(sgm__trainer_progress, sgm__progress_of, progress)
GROUP(sgm__trainer_data, sgm__data_of, data)
GROUP(sgm__trainer_patterns, sgm__patterns_of, patterns)
GROUP(sgm__trainer_webhooks, sgm__webhooks_of, webhooks)
GROUP(sgm__trainer_results, sgm__results_of, results)
GROUP(sgm__trainer_journal, sgm__journal_of, journal)
GROUP(sgm__trainer_kept, sgm__kept_of, kept)
GROUP(sgm__control, sgm__control_of, control)
GROUP(sgm__sharing, sgm__sharing_of, sharing)
GROUP(sgm__membership, sgm__membership_of, membership)

sgm__hooks *sgm__hooks_of(const sgm_trainer *trainer)
{
    return trainer->hooks;
}

bool sgm__trainer_can_train(const sgm_trainer *trainer)
{
    return sgm__data_of(trainer)->training != NULL;
}

sgm_registry *sgm__registry_of(const sgm_trainer *trainer)
{
    return trainer->registry;
}

const char *sgm_trainer_name(const sgm_trainer *trainer)
{
    return trainer != NULL ? trainer->name : "";
}

sgm_registry *sgm_trainer_registry(sgm_trainer *trainer)
{
    return trainer != NULL ? trainer->registry : NULL;
}

/* --- the view --- */

/* The shape of one example of the first input: recorded inputs have the minibatch as first dimension, which
 * is left out. */
static sgm_shape input_of(const sgm_trainer *trainer)
{
    if (trainer->learner.graph == NULL || trainer->learner.recording.input_count == 0)
        return sgm_scalar_shape();
    sgm_shape batch =
        sgm_value_type(trainer->learner.graph, trainer->learner.recording.inputs[0].value).shape;
    return batch.rank > 1 ? sgm_shape_create(batch.rank - 1, batch.dims + 1) : sgm_scalar_shape();
}

/* Running time and waits are measured by the run, and so are the owner's, also in the view of a replica. */
sgm__trainer_view sgm__trainer_look(const sgm_trainer *trainer)
{
    const sgm_trainer *owner = trainer->sharing.owner;
    bool runs = owner->progress.running_since > 0;
    return (sgm__trainer_view){
        .name = trainer->name,
        .folder = trainer->journal.folder,
        .network = trainer->learner.network,
        .session = trainer->learner.session,
        .handler = trainer->settings.handler,
        .precision = trainer->settings.precision,
        .seed = trainer->settings.seed,
        .epoch = trainer->position.epoch,
        .iteration = trainer->position.iteration,
        .branch = trainer->journal.branch,
        .examples = trainer->progress.newest_examples,
        .seconds = owner->progress.running_time + (runs ? sgm__now() - owner->progress.running_since : 0),
        .waited = owner->progress.waited,
        .worker = trainer->sharing.worker,
        .target_field = trainer->learner.first_targets,
        .input = input_of(trainer),
    };
}

bool sgm__trainer_is_unscheduled(const sgm_trainer *trainer)
{
    return trainer->membership.unscheduled;
}

const char *sgm__trainer_data_name(const sgm_trainer *trainer, size_t index)
{
    return index < trainer->data.validation_count ? trainer->data.validation[index].name : NULL;
}

bool sgm__trainer_is_held(sgm_trainer *trainer)
{
    return sgm__control_is_held(&trainer->control);
}

void sgm__trainer_read_for(sgm_trainer *trainer, double seconds)
{
    trainer->kept.read_for = seconds;
}
