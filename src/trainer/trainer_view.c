/* What monitors and ready-made hooks see of a trainer. */
#include "trainer/trainer.h"
#include "trainer/view.h"

/* Inputs are recorded with a minibatch in front. */
static sgm_shape input_of(const sgm_trainer *trainer)
{
    if (trainer->graph == NULL || trainer->recording.input_count == 0)
        return sgm_shape_scalar();
    sgm_shape batch = sgm_value_type(trainer->graph, trainer->recording.inputs[0].value).shape;
    return batch.rank > 1 ? sgm_shape_make(batch.rank - 1, batch.dims + 1) : sgm_shape_scalar();
}

/* Time and data of a replica are its owner's. */
sgm__trainer_view sgm__trainer_look(const sgm_trainer *trainer)
{
    const sgm_trainer *owner = trainer->owner;
    bool runs = owner->progress.running_since > 0;
    return (sgm__trainer_view){
        .name = trainer->name,
        .folder = trainer->journal.folder,
        .network = trainer->network,
        .session = trainer->session,
        .handler = trainer->settings.handler,
        .precision = trainer->settings.precision,
        .seed = trainer->settings.seed,
        .epoch = trainer->position.epoch,
        .iteration = trainer->position.iteration,
        .branch = trainer->journal.branch,
        .examples = trainer->progress.given,
        .seconds = owner->progress.running_time + (runs ? sgm__now() - owner->progress.running_since : 0),
        .waited = owner->progress.waited,
        .worker = trainer->worker,
        .target_field = trainer->recorded.first_targets,
        .input = input_of(trainer),
    };
}

bool sgm__trainer_is_unscheduled(const sgm_trainer *trainer)
{
    return trainer->unscheduled;
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
