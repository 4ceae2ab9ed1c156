/* One step of training: feeding the step's program, running it, and reading the loss; and what follows from
 * the loss (its check, the plateau schedule).
 *
 * sgm__trainer_step is what src/loop calls for each minibatch. With an operator the strategy's `iterate`
 * does the step, by workers; else it is: find the program (trainer_program.c), feed it, run it, add up loss
 * and correct predictions, move the position on. The order of examples is a function of the position (epoch
 * and batch), so a resumed run reads the examples that the interrupted one would have read.
 *
 * A step of a small network takes microseconds, less than comparing the names of its inputs. So each
 * program notes the places of inputs and outputs that every step needs when it is first fed. */
#include "data/dataset.h"
#include "handlers/session.h"
#include "network/rerecord.h"
#include "show/show.h"
#include "train/train.h"
#include "trainer/layer_times.h"
#include "trainer/trainer_struct.h"

#include <math.h>

enum { LOSS = SGM__FED_COUNT, CORRECT, PLACE_COUNT }; /* after the places of the numbers that are fed */
_Static_assert(PLACE_COUNT <= SGM__NOTED_PLACES, "a program notes all places");

/* The places of the numbers that are fed and read in each step; -1: the program does not have it. Found by
 * name once. */
static const int32_t *places_in(sgm_program *program)
{
    if (!program->noted) {
        for (int i = 0; i < SGM__FED_COUNT; i++)
            program->places[i] = sgm__program_input(program, sgm__fed_names[i]);
        program->places[LOSS] = sgm__program_output(program, SGM__LOSS);
        program->places[CORRECT] = sgm__program_output(program, SGM__CORRECT);
        program->noted = true;
    }
    return program->places;
}

/* Makes the message of a field that does not fit as the network wants it: shapes of one example, without
 * the minibatch's dimension. The failure of the session stays where the elements do fit, as it is about
 * something else then. */
sgm_status sgm__trainer_shape_mismatch(const sgm_trainer *trainer, const sgm_program *program, int32_t input,
                                       const sgm_tensor *values)
{
    const sgm_shape *fed = sgm_tensor_shape(values), *shape = &program->plan->inputs[input].type.shape;
    if (fed->rank == 0 || shape->rank == 0)
        return sgm_last_status();
    sgm_shape there = sgm_shape_create(fed->rank - 1, fed->dims + 1),
              wanted = sgm_shape_create(shape->rank - 1, shape->dims + 1);
    if (sgm_shape_elements(&there) == sgm_shape_elements(&wanted))
        return sgm_last_status();
    return sgm__network_shape_mismatch(trainer->learner.network, program->graph,
                                       sgm_program_input_at(program, (size_t)input), &there, &wanted);
}

/* Whether an input is one of the numbers of an update, not a field of the data. */
static bool is_fed_number(const int32_t *places, int32_t input)
{
    bool found = false;
    for (int i = 0; i < SGM__FED_COUNT && !found; i++)
        found = places[i] == input;
    return found;
}

/* Feeds by the names of the program's own inputs: the trainer's newest recording may be another program's. */
sgm_status sgm__trainer_feed(sgm_trainer *trainer, sgm_program *program, const sgm_block *block)
{
    const int32_t *places = places_in(program);
    const char *name;
    for (int32_t i = 0; (name = sgm_program_input_at(program, (size_t)i)) != NULL; i++) {
        if (is_fed_number(places, i))
            continue;
        sgm_tensor *values = sgm_block_field(block, name);
        if (values == NULL)
            return sgm_last_status();
        sgm_status status = sgm__session_feed_at(trainer->learner.session, program, i, values);
        if (status != SGM_OK)
            return status == SGM_ERROR_SHAPE ? sgm__trainer_shape_mismatch(trainer, program, i, values)
                                             : status;
    }
    return SGM_OK;
}

/* Learning rate, number of the update and bias corrections are inputs, not constants: so one program serves
 * the whole training. They are computed in double, whatever type they are fed in. */
sgm_status sgm__trainer_feed_update(sgm_trainer *trainer, sgm_program *program, double rate, int64_t step)
{
    const int32_t *places = places_in(program);
    for (int i = 0; i < SGM__FED_COUNT; i++)
        if (places[i] >= 0)
            SGM_TRY(sgm__session_feed_number_at(
                trainer->learner.session, program, places[i],
                sgm__fed_value(trainer->learner.optimiser, (sgm__fed_number)i, rate, step)));
    return SGM_OK;
}

/* Adds a minibatch's mean loss, weighted by its examples, and its number of correct predictions to the
 * sums. All sums are doubles: float32 would lose examples of large epochs. */
sgm_status sgm__trainer_count(sgm_trainer *trainer, sgm_program *program, int64_t examples,
                              sgm__metric_sums *sums)
{
    const int32_t *places = places_in(program);
    double loss, correct = 0;
    if (places[LOSS] < 0)
        /* There is no such output: this fails with a list of those that there are. */
        return sgm_session_read_number(trainer->learner.session, program, SGM__LOSS, &loss);
    SGM_TRY(sgm__session_read_number_at(trainer->learner.session, program, places[LOSS], &loss));
    if (places[CORRECT] >= 0)
        SGM_TRY(sgm__session_read_number_at(trainer->learner.session, program, places[CORRECT], &correct));
    sums->loss += loss * (double)examples;
    sums->correct += correct * (double)examples;
    sums->examples += examples;
    sums->has_accuracy = places[CORRECT] >= 0;
    return SGM_OK;
}

/* --- after a step --- */

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
sgm_status sgm__trainer_next_minibatch(sgm_trainer *trainer, const sgm_block **minibatch)
{
    bool waits = !sgm__iterator_is_ready(trainer->data.training);
    double start = waits ? sgm__now() : 0;
    SGM_TRY(sgm_iterator_next(trainer->data.training, minibatch));
    if (waits)
        trainer->progress.waited += sgm__now() - start;
    trainer->progress.newest_examples = *minibatch != NULL ? (*minibatch)->count : 0;
    return SGM_OK;
}

/* Reads the costs of the newest minibatch. A single cost without an output of its own is the loss. */
sgm_status sgm__trainer_read_costs(sgm_trainer *trainer, sgm_program *program)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    for (size_t i = 0; i < learner->cost_count; i++) {
        sgm__cost *cost = learner->costs[i];
        if (sgm_program_has_output(program, cost->output))
            SGM_TRY(sgm_session_read_number(learner->session, program, cost->output, &cost->newest));
        else if (learner->cost_count == 1)
            cost->newest = sgm__progress_of(trainer)->newest_loss;
    }
    return SGM_OK;
}

/* --- the step --- */

/* One step. The learning rate is kept by iteration number for nan_watch, which repeats steps. An update
 * happens with every `accumulate`-th minibatch; the others only add their gradients. The newest loss is the
 * difference of the sums, divided by the examples, since sums are what checkpoints keep. */
sgm_status sgm__trainer_step(sgm_trainer *trainer, const sgm_block *minibatch, double rate)
{
    sgm__training_position *position = &trainer->position;
    trainer->progress.rates[position->iteration % SGM__KEPT_RATES] = rate;
    if (trainer->sharing.strategy != NULL)
        return trainer->sharing.strategy->iterate(trainer, minibatch, rate);
    if (trainer->learner.optimiser->type->search != NULL)
        return sgm__trainer_search(trainer, minibatch, rate);
    bool update = sgm__trainer_updates_next(trainer);
    sgm_program *program =
        sgm__trainer_program(trainer, update ? SGM__UPDATE : SGM__ACCUMULATE, minibatch->count);
    if (program == NULL)
        return sgm_last_status();
    SGM_TRY(sgm__trainer_feed(trainer, program, minibatch));
    SGM_TRY(sgm__trainer_feed_update(trainer, program, rate, position->updates + 1));
    SGM_TRY(sgm__trainer_run_program(trainer, program));
    double before = position->sums.loss;
    SGM_TRY(sgm__trainer_count(trainer, program, minibatch->count, &position->sums));
    trainer->progress.newest_loss = (position->sums.loss - before) / (double)minibatch->count;
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
