/* Puts what a checkpoint says beside its tensors into a trainer; parts_state.c has read and checked it.
 *
 * First what can still be refused (states of preprocessors and hooks, whose own functions judge them): a
 * refusal puts the old states back. Then everything else, which cannot fail but for memory: position,
 * schedules, metrics, settings, shared results. */
#include "journal/changes.h"
#include "runs/parts.h"
#include "show/show.h"
#include "train/train.h"
#include "train/trainer_hooks.h"

#include <math.h>
#include <stdio.h>

/* --- what can be refused --- */

typedef struct number_list {
    double *items;
    size_t count;
} number_list;

static sgm_status make_list(number_list *list, size_t count)
{
    *list = (number_list){sgm__calloc(count + 1, sizeof(double)), count};
    return list->items != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* Numbers are JSON numbers, or texts where JSON has no number for them (infinities). */
static sgm_status read_list(const json_t *json, const char *what, number_list *list)
{
    SGM_TRY(make_list(list, json_array_size(json)));
    for (size_t i = 0; i < list->count; i++) {
        const json_t *item = json_array_get(json, i);
        if (json_is_number(item))
            list->items[i] = json_number_value(item);
        else if (!sgm__state_exact(item, &list->items[i]))
            return sgm_fail(SGM_ERROR_FORMAT, "number %zu of the state of the %s is none", i, what);
    }
    return SGM_OK;
}

/* Restores hooks' states after a failure, whose message stays the reported one. */
static void put_back(sgm__hooks *hooks, const number_list *before)
{
    char message[1024];
    sgm_status status = sgm_last_status();
    snprintf(message, sizeof message, "%s", sgm_last_error());
    if (sgm__hooks_set_state(hooks, before->items, before->count) == SGM_OK)
        sgm_fail(status, "%s", message);
}

static sgm_status set_hooks(sgm__hooks *hooks, const json_t *json)
{
    number_list list = {0}, before = {0};
    sgm_status status = read_list(json, "hooks", &list);
    if (status == SGM_OK && list.count > 0) {
        status = sgm__hooks_copy_state(hooks, &before.items, &before.count);
        if (status == SGM_OK)
            status = sgm__hooks_set_state(hooks, list.items, list.count);
        if (status != SGM_OK && before.items != NULL)
            put_back(hooks, &before);
    }
    sgm__free(list.items);
    sgm__free(before.items);
    return status;
}

/* Sets what preprocessors have learnt (means, ranges); `before` gets what was there, or stays empty if
 * nothing is set. */
static sgm_status set_dataset(const sgm_trainer *trainer, const json_t *json, number_list *before)
{
    const sgm__trainer_data *data = sgm__data_of(trainer);
    number_list list = {0};
    if (data->training == NULL || json_array_size(json) == 0)
        return SGM_OK;
    sgm_dataset *dataset = sgm_iterator_dataset(data->training);
    sgm_status status = read_list(json, "dataset", &list);
    if (status == SGM_OK)
        status = sgm_dataset_get_state(dataset, NULL, &before->count);
    if (status == SGM_OK)
        status = make_list(before, before->count);
    if (status == SGM_OK)
        status = sgm_dataset_get_state(dataset, before->items, &before->count);
    if (status == SGM_OK)
        status = sgm_dataset_set_state(dataset, list.items, list.count);
    sgm__free(list.items);
    return status;
}

/* The dataset first, then hooks: if hooks refuse, the dataset gets its own numbers back, which it cannot
 * refuse. */
sgm_status sgm__state_set_learnt(sgm_trainer *trainer, const sgm__saved_state *state, unsigned parts)
{
    number_list before = {0};
    sgm_status status = SGM_OK;
    if ((parts & SGM_PART_POSITION) != 0)
        status = set_dataset(trainer, json_object_get(state->json, "dataset"), &before);
    if (status == SGM_OK && (parts & SGM_PART_HOOKS) != 0) {
        sgm__loaded_hooks loaded = {0};
        sgm__trainer_load_hooks(trainer, state->json, &loaded);
        status = set_hooks(sgm__hooks_of(trainer), json_object_get(state->json, "hooks"));
        sgm__loaded_hooks_end(trainer, &loaded, status == SGM_OK);
        if (status != SGM_OK && before.items != NULL) /* its own numbers are not refused */
            sgm_dataset_set_state(sgm_iterator_dataset(sgm__data_of(trainer)->training), before.items,
                                  before.count);
    }
    sgm__free(before.items);
    return status;
}

/* --- the rest --- */

/* One result of a hook. A number is in a list of one, so that it can be told from a text. */
static sgm_status share_again(sgm_registry *shared, const char *name, const json_t *value)
{
    double number;
    if (json_is_boolean(value))
        return sgm_registry_set(shared, name, sgm_boolean_content(json_is_true(value)));
    if (json_is_integer(value))
        return sgm_registry_set(shared, name, sgm_integer_content(json_integer_value(value)));
    if (json_is_string(value))
        return sgm_registry_set(shared, name, sgm_text_content(json_string_value(value)));
    if (sgm__state_exact(json_array_get(value, 0), &number))
        return sgm_registry_set(shared, name, sgm_number_content(number));
    return SGM_OK;
}

static void share_all_again(const sgm_trainer *trainer, sgm_registry *shared, json_t *json)
{
    for (void *at = json_object_iter(json); at != NULL; at = json_object_iter_next(json, at)) {
        const char *name = json_object_iter_key(at);
        if (share_again(shared, name, json_object_iter_value(at)) != SGM_OK)
            sgm__log(SGM_LOG_WARNING, sgm_trainer_name(trainer),
                     "shared.%.60s of the checkpoint is left out: %s", name, sgm_last_error());
    }
}

/* Results of hooks, as shared.NAME; those of a worker are also shown by its trainer. */
static void set_shared(const sgm_trainer *trainer, json_t *json)
{
    sgm_content shared;
    if (sgm__trainer_is_replica(trainer))
        share_all_again(trainer, sgm__sharing_of(sgm__sharing_of(trainer)->owner)->strategy->results(trainer),
                        json);
    if (sgm_registry_get(sgm__registry_of(trainer), "shared", &shared) != SGM_OK)
        return;
    share_all_again(trainer, shared.as.registry, json);
    sgm_content_clear(&shared);
}

/* Results of metrics; data sets that this trainer does not have are passed over. */
static void set_scores(sgm_trainer *trainer, json_t *scores)
{
    for (void *at = json_object_iter(scores); at != NULL; at = json_object_iter_next(scores, at)) {
        const char *data = json_object_iter_key(at);
        json_t *own = json_object_iter_value(at);
        for (void *of = json_object_iter(own); of != NULL; of = json_object_iter_next(own, of)) {
            double number;
            bool known = sgm__state_exact(json_object_iter_value(of), &number);
            sgm_content content = sgm_number_content(known ? number : (double)NAN);
            if (sgm__trainer_leave(trainer, NULL, data, json_object_iter_key(of), &content, SGM__QUIET) !=
                SGM_OK)
                break;
        }
    }
}

static sgm_status set_metrics(sgm_trainer *trainer, const json_t *state)
{
    sgm__trainer_data *data = sgm__data_of(trainer);
    const json_t *metrics = json_object_get(state, "metrics");
    for (size_t i = 0; i < data->validation_count; i++) {
        const json_t *saved = json_object_get(metrics, data->metrics[i].name);
        sgm_metrics read;
        if (sgm__state_exact(json_object_get(saved, "loss"), &read.loss) &&
            sgm__state_exact(json_object_get(saved, "accuracy"), &read.accuracy) &&
            sgm__state_count(saved, "examples", &read.examples))
            data->metrics[i].metrics = read;
    }
    sgm__state_exact(json_object_get(state, "cost"), &sgm__progress_of(trainer)->newest_loss);
    set_scores(trainer, json_object_get(state, "scores"));
    return sgm__trainer_publish_metrics(trainer);
}

static void set_optimiser(sgm_trainer *trainer, const sgm__saved_state *state)
{
    sgm__training_position *position = sgm__position_of(trainer);
    position->updates = state->position.updates;
    position->best_loss = state->position.best_loss;
    position->bad_epochs = state->position.bad_epochs;
    position->reductions = state->position.reductions;
    sgm__kept_of(trainer)->from = position->updates; /* gradients and updates are of another place */
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

static sgm_status set_end(sgm_trainer *trainer, const sgm__saved_state *state)
{
    sgm__trainer_progress *progress = sgm__progress_of(trainer);
    const json_t *ended = json_object_get(state->json, "ended");
    const char *by = json_string_value(json_object_get(ended, "by"));
    sgm__free(progress->ending.by);
    progress->ending = (sgm__ending){.by = by != NULL ? sgm__strdup(by) : NULL};
    if (by == NULL)
        return SGM_OK;
    progress->ending.epochs = json_integer_value(json_object_get(ended, "epochs"));
    progress->ending.iterations = json_integer_value(json_object_get(ended, "iterations"));
    return progress->ending.by != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

static void set_epoch_before(sgm_trainer *trainer, const json_t *saved)
{
    sgm__metric_sums read = {.has_accuracy = json_is_true(json_object_get(saved, "has_accuracy"))};
    bool known = sgm__state_exact(json_object_get(saved, "loss_sum"), &read.loss) &&
                 sgm__state_exact(json_object_get(saved, "correct_sum"), &read.correct) &&
                 sgm__state_count(saved, "example_sum", &read.examples);
    sgm__progress_of(trainer)->ended = known ? read : (sgm__metric_sums){0};
}

/* The position, and the place in the data. Sums of an epoch that has just ended are told already, so the
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
    /* Saved at the end of an epoch its sums are told already. */
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
    if (sgm_iterator_set_state(data->training, &place) == SGM_OK)
        return SGM_OK;
    sgm__log(SGM_LOG_WARNING, sgm_trainer_name(trainer), "the epoch of the checkpoint begins anew: %s",
             sgm_last_error());
    place = (sgm_iterator_state){.epoch = saved->epoch};
    return sgm_iterator_set_state(data->training, &place);
}

sgm_status sgm__state_set_position(sgm_trainer *trainer, const sgm__saved_state *state, unsigned parts)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    sgm__learner *learner = sgm__learner_of(trainer);
    if ((parts & SGM_PART_PARAMETERS) != 0 &&
        learner->averages_in != json_is_true(json_object_get(state->json, "averages_in"))) {
        learner->averages_in = !learner->averages_in;
        sgm__trainer_forget_programs(trainer);
    }
    if ((parts & SGM_PART_OPTIMISER) != 0)
        set_optimiser(trainer, state);
    if ((parts & SGM_PART_HOOKS) != 0)
        set_shared(trainer, json_object_get(state->json, "shared"));
    if ((parts & SGM_PART_SETTINGS) != 0)
        sgm__settings_restore(trainer, json_object_get(state->json, "settings"));
    if ((parts & SGM_PART_OPTIMISER) != 0 && (parts & SGM_PART_POSITION) != 0)
        set_accumulation(trainer, state);
    if ((parts & SGM_PART_METRICS) != 0)
        SGM_TRY(set_metrics(trainer, state->json));
    if ((parts & SGM_PART_POSITION) == 0)
        return SGM_OK;
    if (!sgm__state_count(state->json, "branch", &journal->branch)) /* from before there were branches */
        journal->branch = 0;
    return set_place(trainer, state);
}
