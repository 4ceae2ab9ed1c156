/* Everything of a checkpoint that is no tensor, as JSON: where training stands, what hooks remember, what was
 * measured and changed. */
#include "journal/changes.h"
#include "registry/pattern.h"
#include "runs/files_version.h"
#include "runs/parts.h"
#include "train/trainer_hooks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define LARGEST_COUNT ((int64_t)1 << 53) /* far from overflow, however long training goes on */
#define TIME_PREFIX "time_"              /* of shared results that no two runs have in common */

/* --- writing --- */

static json_t *number_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* Seventeen digits, as a text: JSON has no infinity, and hooks remember some. */
static json_t *exact_number(double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.17g", value);
    return json_string(text);
}

/* What preprocessors of the training data have learnt. */
static sgm_status append_dataset(const sgm_trainer *trainer, json_t *state)
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
        json_array_append_new(list, json_real(numbers[i]));
    json_object_set_new(state, "dataset", list);
    sgm__free(numbers);
    return status;
}

static sgm_status append_hooks(const sgm_trainer *trainer, json_t *state)
{
    size_t count = 0;
    double *numbers = NULL;
    SGM_TRY(sgm__hooks_copy_state(sgm__hooks_of(trainer), &numbers, &count));
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, exact_number(numbers[i]));
    json_object_set_new(state, "hooks", list);
    sgm__free(numbers);
    return SGM_OK;
}

static json_t *shared_value(const sgm_content *content)
{
    switch (content->kind) {
    case SGM_KIND_BOOLEAN:
        return json_boolean(content->as.boolean);
    case SGM_KIND_INTEGER:
        return json_integer(content->as.integer);
    case SGM_KIND_NUMBER:
        return json_pack("[o]", exact_number(content->as.number)); /* so that it is no text */
    case SGM_KIND_TEXT:
        return json_string(content->as.text);
    default:
        return NULL;
    }
}

/* Results of hooks: a hook that reads one may be due before the hook that makes it. Keys are sorted when
 * written, as which hook was first to share something may depend on the clock. */
static sgm_status append_shared(const sgm_trainer *trainer, json_t *state)
{
    sgm_matches matches;
    json_t *shared = json_object();
    SGM_TRY(sgm_registry_resolve(sgm__registry_of(trainer), "shared.*", &matches));
    for (size_t i = 0; i < matches.count; i++) {
        const char *name = matches.items[i].identifier + strlen("shared.");
        json_t *value = !sgm__begins_with(name, TIME_PREFIX) ? shared_value(&matches.items[i].content) : NULL;
        if (value != NULL)
            json_object_set_new(shared, name, value);
    }
    sgm_matches_free(&matches);
    json_object_set_new(state, "shared", shared);
    return SGM_OK;
}

/* What metrics of hooks have left beside loss and accuracy: "validation.f1". */
static sgm_status append_scores_of(const sgm_trainer *trainer, const char *data, json_t *scores)
{
    sgm_matches matches;
    char *part = sgm__identifier_part(data), *pattern = part != NULL ? sgm__format("%s.*", part) : NULL;
    sgm_status status = pattern != NULL ? sgm_registry_resolve(sgm__registry_of(trainer), pattern, &matches)
                                        : SGM_ERROR_MEMORY;
    if (status == SGM_OK) {
        json_t *own = json_object();
        for (size_t i = 0; i < matches.count; i++) {
            const char *name = matches.items[i].identifier + strlen(part) + 1;
            if (matches.items[i].content.kind == SGM_KIND_NUMBER && strcmp(name, "loss") != 0 &&
                strcmp(name, "accuracy") != 0)
                json_object_set_new(own, name, exact_number(matches.items[i].content.as.number));
        }
        json_object_set_new(scores, data, own);
        sgm_matches_free(&matches);
    }
    sgm__free(pattern);
    sgm__free(part);
    return status;
}

static sgm_status append_scores(const sgm_trainer *trainer, json_t *state)
{
    const sgm__trainer_data *data = sgm__data_of(trainer);
    json_t *scores = json_object();
    json_object_set_new(state, "scores", scores);
    SGM_TRY(append_scores_of(trainer, "training", scores));
    for (size_t i = 0; i < data->validation_count; i++)
        SGM_TRY(append_scores_of(trainer, data->validation[i].name, scores));
    return SGM_OK;
}

static void append_metrics(const sgm_trainer *trainer, json_t *state)
{
    const sgm__trainer_data *data = sgm__data_of(trainer);
    json_t *metrics = json_object();
    for (size_t i = 0; i < data->validation_count; i++) {
        const sgm_named_metrics *own = &data->metrics[i];
        if (own->metrics.examples > 0)
            json_object_set_new(metrics, own->name,
                                json_pack("{s:o, s:o, s:I}", "loss", exact_number(own->metrics.loss),
                                          "accuracy", exact_number(own->metrics.accuracy), "examples",
                                          (json_int_t)own->metrics.examples));
    }
    json_object_set_new(state, "metrics", metrics);
    json_object_set_new(state, "cost", exact_number(sgm__progress_of(trainer)->newest_loss));
}

static void append_optimiser(const sgm_trainer *trainer, json_t *state)
{
    const sgm__learner *learner = sgm__learner_of(trainer);
    const sgm__training_position *position = sgm__position_of(trainer);
    json_object_set_new(state, "updates", json_integer(position->updates));
    json_object_set_new(state, "best_loss", number_or_null(position->best_loss));
    json_object_set_new(state, "bad_epochs", json_integer(position->bad_epochs));
    json_object_set_new(state, "reductions", json_integer(position->reductions));
    if (learner->optimiser == NULL)
        return;
    json_object_set_new(state, "optimiser", json_string(learner->optimiser->type->name));
    json_object_set_new(state, "accumulated", json_integer(position->accumulated));
    json_object_set_new(state, "accumulate", json_integer(learner->optimiser->options.accumulate));
}

/* If another size of minibatches was set for the next epoch, the epoch that is under way has the old one:
 * that is saved. */
static void append_iterator(const sgm_trainer *trainer, json_t *state)
{
    const sgm__trainer_data *data = sgm__data_of(trainer);
    sgm_iterator_state place = {0};
    if (data->training != NULL)
        sgm_iterator_get_state(data->training, &place);
    if (place.size == 0)
        return;
    json_object_set_new(state, "batch_size", json_integer(place.size));
    json_object_set_new(state, "no_shuffle", json_boolean(place.no_shuffle));
    json_object_set_new(state, "drop_last", json_boolean(place.drop_last));
}

/* A run that a hook has ended is marked, so that a resume does not train on; a stop by a person is one to
 * go on from. */
static void append_end(const sgm_trainer *trainer, json_t *state)
{
    const sgm__trainer_progress *progress = sgm__progress_of(trainer);
    if (progress->ended_by != NULL)
        json_object_set_new(state, "ended",
                            json_pack("{s:s, s:I, s:I}", "by", progress->ended_by, "epochs",
                                      (json_int_t)progress->epochs, "iterations",
                                      (json_int_t)progress->maximum));
}

/* Sums of the epoch that ended last: the registry shows them until the next epoch has a minibatch. */
static void append_epoch_before(const sgm_trainer *trainer, json_t *state)
{
    const sgm__training_position *position = sgm__position_of(trainer);
    bool at_end = position->batch == 0 && position->sums.examples > 0;
    const sgm__metric_sums *sums = at_end ? &position->sums : &sgm__progress_of(trainer)->ended;
    if (sums->examples == 0 || sgm__trainer_is_replica(trainer)) /* which shows none */
        return;
    json_object_set_new(state, "epoch_before",
                        json_pack("{s:o, s:o, s:I, s:b}", "loss_sum", exact_number(sums->loss), "correct_sum",
                                  exact_number(sums->correct), "example_sum", (json_int_t)sums->examples,
                                  "has_accuracy", (int)sums->has_accuracy));
}

/* At the end of an epoch its sums are told already: they are saved as zeros, whether this process still has
 * them or not. */
static sgm_status append_position(const sgm_trainer *trainer, json_t *state)
{
    const sgm__training_position *position = sgm__position_of(trainer);
    /* At the end of an epoch they are told already: a worker may have them still, a resumed one has not. */
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
    return append_dataset(trainer, state);
}

sgm_status sgm__state_describe(const sgm_trainer *trainer, unsigned parts, json_t *state)
{
    json_t *names = json_array();
    for (unsigned part = 1; part <= parts; part <<= 1)
        if ((parts & part) != 0)
            json_array_append_new(names, json_string(sgm_part_name(part)));
    json_object_set_new(state, "version", json_integer(SGM__FILES_VERSION));
    json_object_set_new(state, "parts", names);
    if ((parts & SGM_PART_PARAMETERS) != 0 && sgm__learner_of(trainer)->averages_in)
        json_object_set_new(state, "averages_in", json_true());
    if ((parts & SGM_PART_POSITION) != 0)
        SGM_TRY(append_position(trainer, state));
    if ((parts & SGM_PART_OPTIMISER) != 0)
        append_optimiser(trainer, state);
    if ((parts & SGM_PART_HOOKS) != 0) {
        SGM_TRY(append_hooks(trainer, state)); /* waits for those in the background, so it comes first */
        SGM_TRY(sgm__trainer_save_hooks(trainer, state));
        SGM_TRY(append_shared(trainer, state));
    }
    if ((parts & SGM_PART_METRICS) != 0) {
        append_metrics(trainer, state);
        SGM_TRY(append_scores(trainer, state));
    }
    if ((parts & SGM_PART_SETTINGS) != 0)
        json_object_set_new(state, "settings", sgm__settings_describe(trainer));
    return SGM_OK;
}

sgm_status sgm__state_add(sgm_trainer *trainer, unsigned parts, sgm_bundle *bundle)
{
    const sgm__strategy *strategy = sgm__sharing_of(trainer)->strategy;
    json_t *state = json_object();
    sgm_status status = sgm__state_describe(trainer, parts, state);
    if (status == SGM_OK && parts == SGM_PART_EVERYTHING && strategy != NULL)
        status = strategy->describe_state(trainer, state);
    char *text =
        status == SGM_OK ? json_dumps(state, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(state);
    if (text == NULL)
        return status != SGM_OK ? status : sgm__fail_memory(1024);
    status = sgm_bundle_set_text(bundle, SGM__STATE_KEY, text);
    free(text);
    return status;
}

/* --- reading --- */

bool sgm__state_count(const json_t *state, const char *key, int64_t *value)
{
    const json_t *number = json_object_get(state, key);
    *value = json_is_integer(number) ? json_integer_value(number) : -1;
    return *value >= 0 && *value <= LARGEST_COUNT;
}

static double get_number(const json_t *state, const char *key, double otherwise)
{
    const json_t *number = json_object_get(state, key);
    return json_is_number(number) ? json_number_value(number) : otherwise;
}

bool sgm__state_exact(const json_t *text, double *value)
{
    return json_is_string(text) && sgm__parse_double(json_string_value(text), value);
}

sgm_status sgm__state_read(sgm__saved_state *state, const char *source)
{
    sgm__training_position *position = &state->position;
    const json_t *json = state->json;
    bool good = true;
    if ((state->parts & SGM_PART_POSITION) != 0)
        good = sgm__state_count(json, "epoch", &position->epoch) &&
               sgm__state_count(json, "batch", &position->batch) &&
               sgm__state_count(json, "iteration", &position->iteration) &&
               sgm__state_count(json, "example_sum", &position->sums.examples) &&
               (position->batch == 0 || json_is_number(json_object_get(json, "loss_sum")));
    if (good && (state->parts & SGM_PART_OPTIMISER) != 0)
        good = sgm__state_count(json, "updates", &position->updates) &&
               sgm__state_count(json, "bad_epochs", &position->bad_epochs) &&
               sgm__state_count(json, "reductions", &position->reductions);
    if (!good)
        return sgm_fail(SGM_ERROR_FORMAT, "'%s': its training state lacks a number, or one is out of bounds",
                        source);
    position->sums.loss = get_number(json, "loss_sum", NAN);
    position->sums.correct = get_number(json, "correct_sum", NAN);
    position->sums.has_accuracy = json_is_true(json_object_get(json, "has_accuracy"));
    position->best_loss = get_number(json, "best_loss", INFINITY);
    state->optimiser = json_string_value(json_object_get(json, "optimiser"));
    return SGM_OK;
}

static sgm_status read_parts(sgm__saved_state *state, const char *source)
{
    const json_t *names = json_object_get(state->json, "parts");
    if (!json_is_array(names))
        return sgm_fail(SGM_ERROR_FORMAT, "'%s': its training state does not name its parts", source);
    state->parts = 0;
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        unsigned part = 0;
        if (name == NULL || sgm_parts_parse(name, &part) != SGM_OK)
            return sgm_fail(SGM_ERROR_FORMAT, "'%s': its training state names an unknown part '%.40s'",
                            source, name != NULL ? name : "");
        state->parts |= part;
    }
    return SGM_OK;
}

sgm_status sgm__state_open(sgm__saved_state *state, const sgm_bundle *bundle, const char *source)
{
    const char *text = sgm_bundle_get_text(bundle, SGM__STATE_KEY);
    *state = (sgm__saved_state){.json = text != NULL ? json_loads(text, 0, NULL) : NULL};
    bool has_network = sgm_bundle_get_text(bundle, SGM__NETWORK_KEY) != NULL;
    if (text == NULL) { /* of another program, or of one's own */
        state->parts = SGM_PART_PARAMETERS | (has_network ? SGM_PART_NETWORK : 0);
        return SGM_OK;
    }
    if (!json_is_object(state->json))
        return sgm_fail(SGM_ERROR_FORMAT, "'%s' is no checkpoint: its training state is not readable",
                        source);
    if (sgm__files_version_check(state->json) != SGM_OK)
        return sgm__fail_within("'%s'", source);
    SGM_TRY(read_parts(state, source));
    if ((state->parts & SGM_PART_NETWORK) != 0 && !has_network)
        return sgm_fail(SGM_ERROR_FORMAT, "'%s' is no checkpoint: it has tensors, but no network", source);
    return sgm__state_read(state, source);
}

void sgm__state_close(sgm__saved_state *state)
{
    json_decref(state->json);
    state->json = NULL;
}
