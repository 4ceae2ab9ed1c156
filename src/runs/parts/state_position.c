/* What a checkpoint has of where training stands: averages, the optimiser's numbers, what preprocessors have
 * learnt, and the position in epochs, minibatches and the data.
 *
 * Four sections of state.c, each with its writer, its check and its setter side by side. Tensors of the
 * optimiser are in the bundle (trainer_checkpoint.c). Equal trainings must write equal files, on one
 * worker or on several, before or after a resume: so nothing here depends on the clock, and sums that only
 * some of them still have are written as zeros. */
#include "runs/parts/setup.h"
#include "runs/parts/state.h"
#include "train/train.h"

#include <math.h>

/* JSON has no NaN and no infinity. */
static json_t *number_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* A number of the object; `otherwise` if the key is missing or null. */
static double get_number(const json_t *state, const char *key, double otherwise)
{
    const json_t *number = json_object_get(state, key);
    return json_is_number(number) ? json_number_value(number) : otherwise;
}

/* --- averages: whether parameters are their averages --- */

/* The key is only there if it is true: parameters and their averages have changed places. */
static sgm_status describe_averages(const sgm_trainer *trainer, json_t *state)
{
    if (sgm__learner_of(trainer)->averages_in)
        json_object_set_new(state, "averages_in", json_true());
    return SGM_OK;
}

/* Programs read parameters or averages by this flag, so they are recorded anew when it changes. */
static sgm_status set_averages(sgm_trainer *trainer, const sgm__saved_state *state, unsigned parts)
{
    (void)parts;
    sgm__learner *learner = sgm__learner_of(trainer);
    if (learner->averages_in != json_is_true(json_object_get(state->json, "averages_in"))) {
        learner->averages_in = !learner->averages_in;
        sgm__trainer_forget_programs(trainer);
    }
    return SGM_OK;
}

const sgm__section sgm__averages_section = {
    .part = SGM_PART_PARAMETERS, .describe = describe_averages, .set = set_averages};

/* --- the optimiser --- */

static sgm_status describe_optimiser(const sgm_trainer *trainer, json_t *state)
{
    const sgm__learner *learner = sgm__learner_of(trainer);
    const sgm__training_position *position = sgm__position_of(trainer);
    json_object_set_new(state, "updates", json_integer(position->updates));
    json_object_set_new(state, "best_loss", number_or_null(position->best_loss));
    json_object_set_new(state, "bad_epochs", json_integer(position->bad_epochs));
    json_object_set_new(state, "reductions", json_integer(position->reductions));
    if (learner->optimiser == NULL)
        return SGM_OK;
    json_object_set_new(state, "optimiser", json_string(learner->optimiser->type->name));
    json_object_set_new(state, "accumulated", json_integer(position->accumulated));
    json_object_set_new(state, "accumulate", json_integer(learner->optimiser->options.accumulate));
    return sgm__setup_describe_optimiser(trainer, state);
}

/* Also reads the optimiser's name, for the comparison with the trainer's (trainer_checkpoint.c). */
static bool check_optimiser(sgm__saved_state *state)
{
    sgm__training_position *position = &state->position;
    position->best_loss = get_number(state->json, "best_loss", INFINITY);
    state->optimiser = json_string_value(json_object_get(state->json, "optimiser"));
    return sgm__state_count(state->json, "updates", &position->updates) &&
           sgm__state_count(state->json, "bad_epochs", &position->bad_epochs) &&
           sgm__state_count(state->json, "reductions", &position->reductions);
}

static sgm_status set_optimiser(sgm_trainer *trainer, const sgm__saved_state *state, unsigned parts)
{
    (void)parts;
    sgm__training_position *position = sgm__position_of(trainer);
    position->updates = state->position.updates;
    position->best_loss = state->position.best_loss;
    position->bad_epochs = state->position.bad_epochs;
    position->reductions = state->position.reductions;
    sgm__kept_of(trainer)->from =
        position->updates; /* gradients and updates that are kept for readers are of another position */
    return SGM_OK;
}

const sgm__section sgm__optimiser_section = {.part = SGM_PART_OPTIMISER,
                                             .describe = describe_optimiser,
                                             .check = check_optimiser,
                                             .set = set_optimiser};

/* --- preprocessors of the training data --- */

/* Numbers that preprocessors of the training data have learnt from it, such as means and ranges. */
static sgm_status describe_preprocessors(const sgm_trainer *trainer, json_t *state)
{
    const sgm__trainer_data *data = sgm__data_of(trainer);
    if (data->training == NULL)
        return SGM_OK;
    size_t count = 0;
    sgm_dataset *dataset = sgm_iterator_dataset(data->training);
    SGM_TRY(sgm_dataset_get_state(dataset, NULL, &count));
    double *numbers = sgm__calloc(count + 1, sizeof(double));
    if (numbers == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = sgm_dataset_get_state(dataset, numbers, &count);
    json_t *list = json_array();
    for (size_t i = 0; i < count && status == SGM_OK; i++)
        json_array_append_new(list,
                              isfinite(numbers[i]) ? json_real(numbers[i]) : sgm__state_number(numbers[i]));
    json_object_set_new(state, "dataset", list);
    sgm__free(numbers);
    return status;
}

/* Sets what preprocessors have learnt (means, ranges); `before` gets what was there, or stays empty if
 * nothing is set. */
static sgm_status learn_preprocessors(sgm_trainer *trainer, const sgm__saved_state *state,
                                      sgm__number_list *before)
{
    const sgm__trainer_data *data = sgm__data_of(trainer);
    const json_t *json = json_object_get(state->json, "dataset");
    sgm__number_list list = {0};
    if (data->training == NULL || json_array_size(json) == 0)
        return SGM_OK;
    sgm_dataset *dataset = sgm_iterator_dataset(data->training);
    sgm_status status = sgm__state_read_list(json, "dataset", &list);
    if (status == SGM_OK)
        status = sgm_dataset_get_state(dataset, NULL, &before->count);
    if (status == SGM_OK && (before->items = sgm__calloc(before->count + 1, sizeof(double))) == NULL)
        status = SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = sgm_dataset_get_state(dataset, before->items, &before->count);
    if (status == SGM_OK)
        status = sgm_dataset_set_state(dataset, list.items, list.count);
    sgm__free(list.items);
    return status;
}

static void put_back_preprocessors(sgm_trainer *trainer, const sgm__number_list *before)
{
    sgm_dataset_set_state(sgm_iterator_dataset(sgm__data_of(trainer)->training), before->items,
                          before->count);
}

const sgm__section sgm__preprocessors_section = {.part = SGM_PART_POSITION,
                                                 .describe = describe_preprocessors,
                                                 .learn = learn_preprocessors,
                                                 .put_back = put_back_preprocessors};

/* --- the position: writing --- */

/* Settings of the iterator for the epoch that is under way. If another minibatch size was set for the next
 * epoch, this epoch still has the old one, and only with that its place in the data can be found again;
 * likewise with the number of examples that it began with, if the data grow. */
static void append_iterator(const sgm_trainer *trainer, json_t *state)
{
    const sgm__trainer_data *data = sgm__data_of(trainer);
    sgm_iterator_state place = {0};
    if (data->training != NULL)
        sgm_iterator_get_state(data->training, &place);
    if (place.examples > 0)
        json_object_set_new(state, "epoch_examples", json_integer(place.examples));
    if (place.size == 0)
        return;
    json_object_set_new(state, "batch_size", json_integer(place.size));
    json_object_set_new(state, "no_shuffle", json_boolean(place.no_shuffle));
    json_object_set_new(state, "drop_last", json_boolean(place.drop_last));
}

/* A run that a hook has ended is marked, so that a resume does not train on; a stop by a person is not
 * marked, as the person may go on. */
static void append_end(const sgm_trainer *trainer, json_t *state)
{
    const sgm__trainer_progress *progress = sgm__progress_of(trainer);
    if (progress->ended_by != NULL)
        json_object_set_new(state, "ended",
                            json_pack("{s:s, s:I, s:I}", "by", progress->ended_by, "epochs",
                                      (json_int_t)progress->epochs, "iterations",
                                      (json_int_t)progress->iterations));
}

/* Sums of the epoch that ended last: the registry shows them until the next epoch has a minibatch. At the
 * end of an epoch the position has these sums itself. */
static void append_epoch_before(const sgm_trainer *trainer, json_t *state)
{
    const sgm__training_position *position = sgm__position_of(trainer);
    bool at_end = position->batch == 0 && position->sums.examples > 0;
    const sgm__metric_sums *sums = at_end ? &position->sums : &sgm__progress_of(trainer)->last_epoch;
    if (sums->examples == 0 || sgm__trainer_is_replica(trainer)) /* a replica shows none */
        return;
    json_object_set_new(state, "epoch_before",
                        json_pack("{s:o, s:o, s:I, s:b}", "loss_sum", sgm__state_number(sums->loss),
                                  "correct_sum", sgm__state_number(sums->correct), "example_sum",
                                  (json_int_t)sums->examples, "has_accuracy", (int)sums->has_accuracy));
}

/* At the end of an epoch, metrics.jsonl has its sums, and a resumed run begins the next epoch without any:
 * they are written as zeros whether this process still has them or not. */
static sgm_status describe_position(const sgm_trainer *trainer, json_t *state)
{
    const sgm__training_position *position = sgm__position_of(trainer);
    /* zeros at the end of an epoch: one worker may still have them, a resumed one has not */
    sgm__metric_sums sums = position->batch > 0 ? position->sums : (sgm__metric_sums){0};
    json_object_set_new(state, "epoch", json_integer(position->epoch));
    json_object_set_new(state, "batch", json_integer(position->batch));
    json_object_set_new(state, "iteration", json_integer(position->iteration));
    json_object_set_new(state, "loss_sum", number_or_null(sums.loss));
    json_object_set_new(state, "correct_sum", number_or_null(sums.correct));
    json_object_set_new(state, "example_sum", json_integer(sums.examples));
    json_object_set_new(state, "has_accuracy", json_boolean(sums.has_accuracy));
    append_iterator(trainer, state);
    append_end(trainer, state);
    append_epoch_before(trainer, state);
    json_object_set_new(state, "branch", json_integer(sgm__journal_of(trainer)->branch));
    return SGM_OK;
}

/* --- the position: reading and setting --- */

/* Sums may be null (NaN) only where an epoch has no minibatch yet. */
static bool check_position(sgm__saved_state *state)
{
    const json_t *json = state->json;
    sgm__training_position *position = &state->position;
    position->sums.loss = get_number(json, "loss_sum", NAN);
    position->sums.correct = get_number(json, "correct_sum", NAN);
    position->sums.has_accuracy = json_is_true(json_object_get(json, "has_accuracy"));
    return sgm__state_count(json, "epoch", &position->epoch) &&
           sgm__state_count(json, "batch", &position->batch) &&
           sgm__state_count(json, "iteration", &position->iteration) &&
           sgm__state_count(json, "example_sum", &position->sums.examples) &&
           (position->batch == 0 || json_is_number(json_object_get(json, "loss_sum")));
}

/* In the middle of an accumulation, the number of minibatches with which it began counts until its end; the
 * number that the optimiser has now counts after that. */
static void set_accumulation(sgm_trainer *trainer, const sgm__saved_state *state)
{
    sgm__trainer_progress *progress = sgm__progress_of(trainer);
    sgm__learner *learner = sgm__learner_of(trainer);
    int64_t accumulated, accumulate;
    if (learner->optimiser == NULL)
        return;
    sgm_optimiser_options *options = &learner->optimiser->options;
    bool known = sgm__state_count(state->json, "accumulated", &accumulated) &&
                 sgm__state_count(state->json, "accumulate", &accumulate) && accumulated < accumulate;
    sgm__position_of(trainer)->accumulated =
        known ? accumulated : state->position.iteration % options->accumulate;
    if (!known || accumulated == 0 || accumulate == options->accumulate)
        return;
    if (progress->next_accumulate == 0)
        progress->next_accumulate = options->accumulate;
    options->accumulate = accumulate;
}

/* Keeps how the saved run was ended, for the run that resumes it: if a hook ended it and the new run is no
 * longer, there is nothing to train. */
static sgm_status set_end(sgm_trainer *trainer, const sgm__saved_state *state)
{
    sgm__trainer_progress *progress = sgm__progress_of(trainer);
    const json_t *ended = json_object_get(state->json, "ended");
    const char *by = json_string_value(json_object_get(ended, "by"));
    sgm__free(progress->resumed_end.by);
    progress->resumed_end = (sgm__ending){.by = by != NULL ? sgm__strdup(by) : NULL};
    if (by == NULL)
        return SGM_OK;
    progress->resumed_end.epochs = json_integer_value(json_object_get(ended, "epochs"));
    progress->resumed_end.iterations = json_integer_value(json_object_get(ended, "iterations"));
    return progress->resumed_end.by != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* Sets the sums of the epoch that ended last; zeros if the file has none. */
static void set_epoch_before(sgm_trainer *trainer, const json_t *saved)
{
    sgm__metric_sums read = {.has_accuracy = json_is_true(json_object_get(saved, "has_accuracy"))};
    bool known = sgm__state_exact(json_object_get(saved, "loss_sum"), &read.loss) &&
                 sgm__state_exact(json_object_get(saved, "correct_sum"), &read.correct) &&
                 sgm__state_count(saved, "example_sum", &read.examples);
    sgm__progress_of(trainer)->last_epoch = known ? read : (sgm__metric_sums){0};
}

/* The position, and the place in the data. Sums of an epoch that has just ended are not taken, so that the
 * next epoch begins with none. If the data have changed so that the place does not exist, the epoch begins
 * anew. */
static sgm_status set_place(sgm_trainer *trainer, const sgm__saved_state *state)
{
    sgm__trainer_data *data = sgm__data_of(trainer);
    SGM_TRY(set_end(trainer, state));
    const sgm__training_position *saved = &state->position;
    sgm__training_position *position = sgm__position_of(trainer);
    position->epoch = saved->epoch;
    position->batch = saved->batch;
    position->iteration = saved->iteration;
    /* in the middle of an epoch its sums go on; at its end they are done */
    position->sums = saved->batch > 0 ? saved->sums : (sgm__metric_sums){0};
    set_epoch_before(trainer, json_object_get(state->json, "epoch_before"));
    if (data->training == NULL)
        return SGM_OK;
    sgm_iterator_state place = {.epoch = saved->epoch, .batches = saved->batch};
    if (sgm__state_count(state->json, "batch_size", &place.size)) {
        place.no_shuffle = json_is_true(json_object_get(state->json, "no_shuffle"));
        place.drop_last = json_is_true(json_object_get(state->json, "drop_last"));
    } else {
        place.size = 0;
    }
    if (!sgm__state_count(state->json, "epoch_examples", &place.examples))
        place.examples = 0;
    if (sgm_iterator_set_state(data->training, &place) == SGM_OK)
        return SGM_OK;
    sgm__log(SGM_LOG_WARNING, sgm_trainer_name(trainer), "the epoch of the checkpoint begins anew: %s",
             sgm_last_error());
    place = (sgm_iterator_state){.epoch = saved->epoch};
    return sgm_iterator_set_state(data->training, &place);
}

static sgm_status set_position(sgm_trainer *trainer, const sgm__saved_state *state, unsigned parts)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    if ((parts & SGM_PART_OPTIMISER) != 0)
        set_accumulation(trainer, state);
    if (!sgm__state_count(state->json, "branch",
                          &journal->branch)) /* a file without a branch is of the first one */
        journal->branch = 0;
    return set_place(trainer, state);
}

const sgm__section sgm__position_section = {
    .part = SGM_PART_POSITION, .describe = describe_position, .check = check_position, .set = set_position};
