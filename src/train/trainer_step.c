/* One step of training: the learning rate of the iteration, the program for its minibatch, and what the
 * step tells.
 *
 * sgm__trainer_step is what src/loop calls for each minibatch. With an operator the strategy's `iterate`
 * does the step, by workers; else it is: find the program (trainer_program.c), feed it (trainer_feed.c),
 * run it, add up loss and correct predictions, move the position on. The order of examples is a function of
 * the position (epoch and batch), so a resumed run reads the examples that the interrupted one would have
 * read. */
#include "data/dataset.h"
#include "show/show.h"
#include "train/train.h"
#include "trainer/layer_times.h"
#include "trainer/trainer_struct.h"

#include <math.h>

/* The plateau schedule: after `period` epochs (5 if it is not given) without a smaller loss, one more
 * reduction of the learning rate. NaN is no smaller loss. */
void sgm__trainer_watch_plateau(sgm_trainer *trainer, double loss)
{
    sgm__training_position *position = &trainer->position;
    const sgm_schedule *schedule = &trainer->learner.optimiser->options.schedule;
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

/* Sets the iterator to the training's position, whoever has used the data meanwhile. If the data of a
 * resumed run are fewer than before and the epoch would be over already, the epoch begins anew. */
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

/* Time is measured only when the minibatch is not ready: reading a clock costs more than copying a small
 * minibatch that lies in memory. */
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

/* One step. The learning rate is kept by iteration number for nan_watch, which repeats steps. An update
 * happens with every `accumulate`-th minibatch; the others only add their gradients. The newest loss is the
 * difference of the sums, divided by the examples, since sums are what checkpoints keep. */
sgm_status sgm__trainer_step(sgm_trainer *trainer, const sgm_block *block, double rate)
{
    sgm__training_position *position = &trainer->position;
    trainer->progress.rates[position->iteration % SGM__KEPT_RATES] = rate;
    if (trainer->sharing.strategy != NULL)
        return trainer->sharing.strategy->iterate(trainer, block, rate);
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

/* Fails if the loss is not finite: every later value would be NaN, and the newest checkpoint is from
 * before. The sum of the epoch is tested, as one NaN in it stays. */
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
