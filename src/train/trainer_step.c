/* One step of training: its minibatch, its learning rate, what it says. */
#include "data/dataset.h"
#include "show/show.h"
#include "train/train.h"
#include "trainer/layer_times.h"
#include "trainer/trainer.h"

#include <math.h>

void sgm__trainer_watch_plateau(sgm_trainer *trainer, double loss)
{
    sgm__training_position *position = &trainer->position;
    const sgm_schedule *schedule = &trainer->optimiser->options.schedule;
    double patience = schedule->period > 0 ? schedule->period : 5;
    if (schedule->kind != SGM_PLATEAU)
        return;
    if (loss < position->best_loss) {
        position->best_loss = loss;
        position->bad_epochs = 0;
    } else if ((double)++position->bad_epochs >= patience) {
        position->bad_epochs = 0;
        position->reductions++;
    }
}

/* --- data --- */

/* The order of examples is a function of the position. */
sgm_status sgm__trainer_place_data(sgm_trainer *trainer)
{
    sgm__training_position *position = &trainer->position;
    sgm_iterator_state state;
    SGM_TRY(sgm_iterator_batches(trainer->data.training, &trainer->progress.batches));
    if (position->batch > trainer->progress.batches) { /* of other data, whose epoch ends here */
        position->batch = 0;
        position->sums = (sgm__metric_sums){0};
    }
    sgm_iterator_get_state(trainer->data.training, &state);
    if (state.epoch == position->epoch && state.batches == position->batch)
        return SGM_OK;
    state = (sgm_iterator_state){.epoch = position->epoch, .batches = position->batch};
    return sgm_iterator_set_state(trainer->data.training, &state);
}

sgm_status sgm__trainer_next_block(sgm_trainer *trainer, const sgm_block **block)
{
    bool waits =
        !sgm__iterator_is_ready(trainer->data.training); /* a clock costs more than a small minibatch */
    double start = waits ? sgm__now() : 0;
    SGM_TRY(sgm_iterator_next(trainer->data.training, block));
    if (waits)
        trainer->progress.waited += sgm__now() - start;
    trainer->progress.given = *block != NULL ? (*block)->count : 0;
    return SGM_OK;
}

/* --- the step --- */

sgm_status sgm__trainer_step(sgm_trainer *trainer, const sgm_block *block, double rate)
{
    sgm__training_position *position = &trainer->position;
    trainer->progress.rates[position->iteration % SGM__KEPT_RATES] = rate;
    if (trainer->strategy != NULL)
        return trainer->strategy->iterate(trainer, block, rate);
    bool update = sgm__trainer_updates_next(trainer);
    sgm_program *program =
        sgm__trainer_program(trainer, update ? SGM__UPDATE : SGM__ACCUMULATE, block->count);
    if (program == NULL)
        return sgm_last_status();
    SGM_TRY(sgm__trainer_feed(trainer, program, block));
    SGM_TRY(sgm__trainer_feed_update(trainer, program, rate, position->updates + 1));
    SGM_TRY(sgm__layer_times_run(trainer, program));
    double before = position->sums.loss;
    SGM_TRY(sgm__trainer_count(trainer, program, block->count, &position->sums));
    trainer->progress.newest_loss = (position->sums.loss - before) / (double)block->count;
    SGM_TRY(sgm__trainer_read_costs(trainer, program));
    position->updates += update;
    position->accumulated = update ? 0 : position->accumulated + 1;
    position->iteration++;
    position->batch++;
    return SGM_OK;
}

/* Nothing good comes after a loss that is no number; the newest checkpoint is from before it. */
sgm_status sgm__trainer_check_loss(const sgm_trainer *trainer)
{
    const sgm__training_position *position = &trainer->position;
    if (isfinite(position->sums.loss))
        return SGM_OK;
    const char *handler = sgm_handler_name(trainer->settings.handler);
    bool debug = strncmp(handler, "debug:", 6) == 0;
    return sgm_fail(SGM_ERROR_NUMERIC,
                    "the loss is %s at iteration %lld, in epoch %lld: lower the learning rate (%g now), clip "
                    "gradients, or look for such values in the data%s%s%s",
                    isnan(position->sums.loss) ? "not a number" : "infinite", (long long)position->iteration,
                    (long long)position->epoch + 1,
                    sgm__trainer_learning_rate(trainer, trainer->progress.batches),
                    debug ? "" : "; the hook nan_watch, or handler debug:", debug ? "" : handler,
                    debug ? "" : ", names the instruction that it comes from");
}
