/* What a trainer is like at this moment: its first failure, its state, its learning rate, its data by name;
 * whether other workers or processes are involved; and setting states so that all of them know.
 *
 * Everything that asks the strategy goes through one function here, which does nothing where there is no
 * strategy: so the folders above need not know whether a trainer has workers. */
#include "network/rerecord.h"
#include "trainer/frozen.h"
#include "trainer/trainer_struct.h"

#include <math.h>
#include <stdio.h>

sgm_status sgm_trainer_status(const sgm_trainer *trainer)
{
    if (trainer == NULL)
        return sgm__fail_null("the trainer is NULL");
    return trainer->status == SGM_OK ? SGM_OK : sgm_fail(trainer->status, "%s", trainer->message);
}

const char *sgm__trainer_failure(const sgm_trainer *trainer, sgm_status *status)
{
    *status = trainer->status;
    return *status == SGM_OK ? "" : trainer->message;
}

/* Keeps the thread's newest error as the trainer's, once: a trainer that has failed stays failed, and every
 * later call reports its first failure. An interruption is no failure. The message is written before the
 * status is visible. */
sgm_status sgm__trainer_keep(sgm_trainer *trainer, sgm_status status)
{
    if (status == SGM_OK || status == SGM_ERROR_INTERRUPTED || trainer->status != SGM_OK)
        return status;
    sgm__fail_within("trainer '%s'", trainer->name);
    pthread_mutex_lock(&trainer->control.lock);
    if (trainer->status == SGM_OK) {
        snprintf(trainer->message, sizeof trainer->message, "%s", sgm_last_error());
        trainer->status = status;
    }
    pthread_mutex_unlock(&trainer->control.lock);
    return status;
}

bool sgm__trainer_is_frozen(const sgm_trainer *trainer, const char *parameter)
{
    const sgm_parameter *known = sgm__network_parameter(trainer->learner.network, parameter);
    return sgm__frozen_has(&trainer->patterns.frozen, parameter) || (known != NULL && known->frozen);
}

/* Any thread; the state may be another one as soon as the lock is free. */
sgm_trainer_state sgm_trainer_get_state(sgm_trainer *trainer)
{
    pthread_mutex_lock(&trainer->control.lock);
    sgm_trainer_state state = trainer->control.state;
    pthread_mutex_unlock(&trainer->control.lock);
    return state;
}

/* Means over the examples; NaN where there are none, or where no accuracy is defined. */
sgm_metrics sgm__metrics_of(const sgm__metric_sums *sums)
{
    double examples = (double)sums->examples;
    return (sgm_metrics){.loss = sums->examples > 0 ? sums->loss / examples : NAN,
                         .accuracy =
                             sums->examples > 0 && sums->has_accuracy ? sums->correct / examples : NAN,
                         .examples = sums->examples};
}

/* The schedule sees epochs as a fraction, so that the rate also changes within an epoch. `batches`: of an
 * epoch; 0: unknown. */
double sgm__trainer_learning_rate(const sgm_trainer *trainer, int64_t batches)
{
    trainer = trainer->sharing.owner; /* replicas run when it does */
    const sgm__training_position *position = &trainer->position;
    const sgm_optimiser_options *options = &trainer->learner.optimiser->options;
    double epoch = (double)position->epoch;
    if (batches > 0)
        epoch += (double)position->batch / (double)batches;
    return options->learning_rate * sgm_schedule_factor(&options->schedule, epoch,
                                                        (double)trainer->progress.epochs,
                                                        position->reductions);
}

sgm_status sgm__trainer_find_data(const sgm_trainer *trainer, const char *data, sgm_iterator **iterator)
{
    sgm__text known = {0};
    *iterator = NULL;
    for (size_t i = 0; i < trainer->data.validation_count && *iterator == NULL; i++) {
        if (strcmp(trainer->data.validation[i].name, data) == 0)
            *iterator = trainer->data.validation[i].iterator;
        sgm__text_append(&known, "%s, ", trainer->data.validation[i].name);
    }
    if (*iterator == NULL && strcmp(data, "training") == 0)
        *iterator = trainer->data.training;
    sgm_status status = SGM_OK;
    if (*iterator == NULL && trainer->data.validation_count == 0 && trainer->data.training == NULL)
        status = sgm_fail(SGM_ERROR_STATE, "trainer '%s' has no data yet", trainer->name);
    else if (*iterator == NULL)
        status = sgm_fail(SGM_ERROR_NOT_FOUND, "the trainer has no data '%s'; it has %s%s", data,
                          known.data != NULL ? known.data : "",
                          trainer->data.training != NULL ? "training" : "none for training");
    sgm__text_free(&known);
    return status;
}

/* What passes measured belongs to the old parameters: the next hook that wants it has a pass of its own. */
void sgm__trainer_parameters_changed(sgm_trainer *trainer)
{
    for (size_t i = 0; i < trainer->results.pass_count; i++)
        trainer->results.passes[i].current = false;
}

/* --- workers and other processes --- */

bool sgm__trainer_is_replica(const sgm_trainer *trainer)
{
    return trainer->sharing.owner != trainer;
}

bool sgm__trainer_follows(const sgm_trainer *trainer)
{
    return trainer->sharing.strategy != NULL && trainer->sharing.strategy->follows(trainer);
}

bool sgm__trainer_has_ranks(const sgm_trainer *trainer)
{
    return trainer->sharing.strategy != NULL && trainer->sharing.strategy->meet != NULL;
}

sgm_status sgm__trainer_collect(sgm_trainer *trainer)
{
    return trainer->sharing.strategy != NULL ? trainer->sharing.strategy->collect(trainer) : SGM_OK;
}

void sgm__trainer_restart_workers(sgm_trainer *trainer)
{
    if (trainer->sharing.strategy != NULL)
        trainer->sharing.strategy->restart(trainer);
}

sgm_status sgm__trainer_state_was_set(sgm_trainer *trainer, const char *name)
{
    return trainer->sharing.strategy != NULL ? trainer->sharing.strategy->state_was_set(trainer, name)
                                             : SGM_OK;
}

bool sgm__trainer_has_state(const sgm_trainer *trainer, const char *name)
{
    return trainer->sharing.strategy == NULL || trainer->sharing.strategy->has_state(trainer, name);
}

sgm_status sgm__trainer_check_set(const sgm_trainer *trainer, const char *name)
{
    return trainer->sharing.strategy != NULL ? trainer->sharing.strategy->check_set(trainer, name) : SGM_OK;
}

char *sgm__trainer_silent(const sgm_trainer *trainer)
{
    return trainer->sharing.strategy != NULL ? trainer->sharing.strategy->silent(trainer) : NULL;
}

/* --- states that are set --- */

/* Sets a state in the trainer's session and in the copies that workers have. */
static sgm_status put(sgm_trainer *trainer, const char *name, const sgm_tensor *value)
{
    SGM_TRY(sgm_session_set(trainer->learner.session, name, value));
    return sgm__trainer_state_was_set(trainer, name);
}

/* The moving average of a parameter that is set begins anew at the new value: evaluation reads the average,
 * and an average of the old values would tell nothing about the new one. */
static sgm_status put_average(sgm_trainer *trainer, const char *name, const sgm_tensor *value)
{
    char *average = sgm__format(SGM__AVERAGE_PREFIX "%s", name);
    if (average == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status =
        sgm_session_has(trainer->learner.session, average) ? put(trainer, average, value) : SGM_OK;
    sgm__free(average);
    return status;
}

/* Rounds a matrix that is kept as 8 bits. Both parts have their final shapes already, so that the second does
 * not fail once the first is set. */
static sgm_status put_matrix(sgm_trainer *trainer, const char *name, const sgm_tensor *value)
{
    const sgm_network *network = trainer->learner.network;
    sgm_tensor *codes, *scales;
    SGM_TRY(sgm__trainer_quantize(trainer, name, value, &codes, &scales));
    sgm_status status = put(trainer, sgm__network_codes(network, name)->name, codes);
    if (status == SGM_OK)
        status = put(trainer, sgm__network_scales(network, name)->name, scales);
    sgm_tensor_free(codes);
    sgm_tensor_free(scales);
    return status;
}

sgm_status sgm__trainer_put_state(sgm_trainer *trainer, const char *name, const sgm_tensor *value)
{
    if (sgm__trainer_has_codes(trainer, name))
        return put_matrix(trainer, name, value);
    SGM_TRY(put(trainer, name, value));
    return put_average(trainer, name, value);
}

sgm_status sgm__trainer_put_average(sgm_trainer *trainer, const char *identifier, const sgm_tensor *value)
{
    static const char layers[] = "network.layers.";
    size_t length = strlen(layers);
    return strncmp(identifier, layers, length) == 0 ? put_average(trainer, identifier + length, value)
                                                    : SGM_OK;
}
