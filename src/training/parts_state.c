/* Everything of a checkpoint that is no tensor, as JSON: where training stands, what hooks remember, what was
 * measured and changed. */
#include "registry/pattern.h"
#include "training/metrics.h"
#include "training/operator.h"
#include "training/parts.h"
#include "training/trainer_hooks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define STATE_VERSION 1
#define LARGEST_COUNT ((int64_t)1 << 53) /* far from overflow, however long training goes on */
#define TIME_PREFIX "time_"              /* of shared results that no two runs have in common */

/* --- writing --- */

static json_t *number_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* As a text: JSON has no infinity, and hooks remember some. */
static json_t *exact_number(double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.17g", value);
    return json_string(text);
}

static sgm_status append_dataset(const sgm_trainer *trainer, json_t *state)
{
    if (trainer->training == NULL)
        return SGM_OK;
    size_t count = 0;
    sgm_dataset *dataset = sgm_iterator_dataset(trainer->training);
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
    SGM_TRY(sgm__hooks_copy_state(trainer->hooks, &numbers, &count));
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

/* A hook may be due later than those that read its result. Sorted when written: which hook was the first to
 * share something may depend on the clock. */
static sgm_status append_shared(const sgm_trainer *trainer, json_t *state)
{
    sgm_matches matches;
    json_t *shared = json_object();
    SGM_TRY(sgm_resolve(trainer->registry, "shared.*", &matches));
    for (size_t i = 0; i < matches.count; i++) {
        const char *name = matches.items[i].identifier + strlen("shared.");
        json_t *value = strncmp(name, TIME_PREFIX, strlen(TIME_PREFIX)) != 0
                            ? shared_value(&matches.items[i].content)
                            : NULL;
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
    sgm_status status =
        pattern != NULL ? sgm_resolve(trainer->registry, pattern, &matches) : SGM_ERROR_MEMORY;
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
    json_t *scores = json_object();
    json_object_set_new(state, "scores", scores);
    SGM_TRY(append_scores_of(trainer, "training", scores));
    for (size_t i = 0; i < trainer->validation_count; i++)
        SGM_TRY(append_scores_of(trainer, trainer->validation[i].name, scores));
    return SGM_OK;
}

static void append_metrics(const sgm_trainer *trainer, json_t *state)
{
    json_t *metrics = json_object();
    for (size_t i = 0; i < trainer->validation_count; i++) {
        const sgm_named_metrics *own = &trainer->metrics[i];
        if (own->metrics.records > 0)
            json_object_set_new(metrics, own->name,
                                json_pack("{s:o, s:o, s:I}", "loss", exact_number(own->metrics.loss),
                                          "accuracy", exact_number(own->metrics.accuracy), "records",
                                          (json_int_t)own->metrics.records));
    }
    json_object_set_new(state, "metrics", metrics);
    json_object_set_new(state, "cost", exact_number(trainer->newest_loss));
}

static void append_optimiser(const sgm_trainer *trainer, json_t *state)
{
    const sgm__training_position *position = &trainer->position;
    json_object_set_new(state, "updates", json_integer(position->updates));
    json_object_set_new(state, "best_loss", number_or_null(position->best_loss));
    json_object_set_new(state, "bad_epochs", json_integer(position->bad_epochs));
    json_object_set_new(state, "reductions", json_integer(position->reductions));
    if (trainer->optimiser == NULL)
        return;
    json_object_set_new(state, "optimiser", json_string(trainer->optimiser->type->name));
    json_object_set_new(state, "accumulated", json_integer(position->accumulated));
    json_object_set_new(state, "accumulate", json_integer(trainer->optimiser->options.accumulate));
}

/* Where another size was set for the next epoch, that of this one. */
static void append_iterator(const sgm_trainer *trainer, json_t *state)
{
    sgm_iterator_state place = {0};
    if (trainer->training != NULL)
        sgm_iterator_get_state(trainer->training, &place);
    if (place.size == 0)
        return;
    json_object_set_new(state, "batch_size", json_integer(place.size));
    json_object_set_new(state, "no_shuffle", json_boolean(place.no_shuffle));
    json_object_set_new(state, "drop_last", json_boolean(place.drop_last));
}

/* Who has ended the run, if it was a hook: a stop that was asked for otherwise is one to go on from. */
static void append_end(const sgm_trainer *trainer, json_t *state)
{
    if (trainer->ended_by != NULL)
        json_object_set_new(state, "ended",
                            json_pack("{s:s, s:I, s:I}", "by", trainer->ended_by, "epochs",
                                      (json_int_t)trainer->epochs, "iterations", (json_int_t)trainer->most));
}

static sgm_status append_position(const sgm_trainer *trainer, json_t *state)
{
    const sgm__training_position *position = &trainer->position;
    /* At the end of an epoch they are told already: a worker may have them still, a resumed one has not. */
    sgm__metric_sums sums = position->batch > 0 ? position->sums : (sgm__metric_sums){0};
    json_object_set_new(state, "epoch", json_integer(position->epoch));
    json_object_set_new(state, "batch", json_integer(position->batch));
    json_object_set_new(state, "iteration", json_integer(position->iteration));
    json_object_set_new(state, "loss_sum", number_or_null(sums.loss));
    json_object_set_new(state, "correct_sum", number_or_null(sums.correct));
    json_object_set_new(state, "record_sum", json_integer(sums.records));
    json_object_set_new(state, "has_accuracy", json_boolean(sums.has_accuracy));
    append_iterator(trainer, state);
    append_end(trainer, state);
    json_object_set_new(state, "branch", json_integer(trainer->branch));
    return append_dataset(trainer, state);
}

sgm_status sgm__state_describe(const sgm_trainer *trainer, unsigned parts, json_t *state)
{
    json_t *names = json_array();
    for (unsigned part = 1; part <= parts; part <<= 1)
        if ((parts & part) != 0)
            json_array_append_new(names, json_string(sgm_part_name(part)));
    json_object_set_new(state, "version", json_integer(STATE_VERSION));
    json_object_set_new(state, "parts", names);
    if ((parts & SGM_PART_PARAMETERS) != 0 && trainer->averages_in)
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
    json_t *state = json_object();
    sgm_status status = sgm__state_describe(trainer, parts, state);
    if (status == SGM_OK && parts == SGM_PART_EVERYTHING)
        status = sgm__operator_describe(trainer, state);
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

static bool get_count(const json_t *state, const char *key, int64_t *value)
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

static bool get_exact(const json_t *text, double *value)
{
    return json_is_string(text) && sgm__parse_double(json_string_value(text), value);
}

sgm_status sgm__state_read(sgm__saved_state *state, const char *source)
{
    sgm__training_position *position = &state->position;
    const json_t *json = state->json;
    bool good = true;
    if ((state->parts & SGM_PART_POSITION) != 0)
        good = get_count(json, "epoch", &position->epoch) && get_count(json, "batch", &position->batch) &&
               get_count(json, "iteration", &position->iteration) &&
               get_count(json, "record_sum", &position->sums.records) &&
               (position->batch == 0 || json_is_number(json_object_get(json, "loss_sum")));
    if (good && (state->parts & SGM_PART_OPTIMISER) != 0)
        good = get_count(json, "updates", &position->updates) &&
               get_count(json, "bad_epochs", &position->bad_epochs) &&
               get_count(json, "reductions", &position->reductions);
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

/* Files from before there were parts have all of them. Unknown names are of a newer library. */
static sgm_status read_parts(sgm__saved_state *state, const char *source)
{
    const json_t *names = json_object_get(state->json, "parts");
    state->parts = names == NULL ? SGM_PART_EVERYTHING : 0;
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
    const char *text = sgm_bundle_text(bundle, SGM__STATE_KEY);
    int64_t version;
    *state = (sgm__saved_state){.json = text != NULL ? json_loads(text, 0, NULL) : NULL};
    bool has_network = sgm_bundle_text(bundle, SGM__NETWORK_KEY) != NULL;
    if (text == NULL) { /* of another program, or of one's own */
        state->parts = SGM_PART_PARAMETERS | (has_network ? SGM_PART_NETWORK : 0);
        return SGM_OK;
    }
    if (!json_is_object(state->json))
        return sgm_fail(SGM_ERROR_FORMAT, "'%s' is no checkpoint: its training state is not readable",
                        source);
    if (!get_count(state->json, "version", &version) || version != STATE_VERSION)
        return sgm_fail(SGM_ERROR_FORMAT, "'%s': its training state has version %lld, this library reads %d",
                        source, (long long)version, STATE_VERSION);
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

/* --- taking over --- */

typedef struct number_list {
    double *items;
    size_t count;
} number_list;

static sgm_status make_list(number_list *list, size_t count)
{
    *list = (number_list){sgm__calloc(count + 1, sizeof(double)), count};
    return list->items != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

static sgm_status read_list(const json_t *json, const char *what, number_list *list)
{
    SGM_TRY(make_list(list, json_array_size(json)));
    for (size_t i = 0; i < list->count; i++) {
        const json_t *item = json_array_get(json, i);
        if (json_is_number(item))
            list->items[i] = json_number_value(item);
        else if (!get_exact(item, &list->items[i]))
            return sgm_fail(SGM_ERROR_FORMAT, "number %zu of the state of the %s is none", i, what);
    }
    return SGM_OK;
}

/* After a failure, whose message stays. */
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

/* `before` gets what was there; nothing, if nothing is to be set. */
static sgm_status set_dataset(const sgm_trainer *trainer, const json_t *json, number_list *before)
{
    number_list list = {0};
    if (trainer->training == NULL || json_array_size(json) == 0)
        return SGM_OK;
    sgm_dataset *dataset = sgm_iterator_dataset(trainer->training);
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

sgm_status sgm__state_set_learnt(sgm_trainer *trainer, const sgm__saved_state *state, unsigned parts)
{
    number_list before = {0};
    sgm_status status = SGM_OK;
    if ((parts & SGM_PART_POSITION) != 0)
        status = set_dataset(trainer, json_object_get(state->json, "dataset"), &before);
    if (status == SGM_OK && (parts & SGM_PART_HOOKS) != 0) {
        sgm__loaded_hooks loaded = {0};
        sgm__trainer_load_hooks(trainer, state->json, &loaded);
        status = set_hooks(trainer->hooks, json_object_get(state->json, "hooks"));
        sgm__loaded_hooks_end(trainer, &loaded, status == SGM_OK);
        if (status != SGM_OK && before.items != NULL) /* its own numbers are not refused */
            sgm_dataset_set_state(sgm_iterator_dataset(trainer->training), before.items, before.count);
    }
    sgm__free(before.items);
    return status;
}

static sgm_status share_again(sgm_registry *shared, const char *name, const json_t *value)
{
    double number;
    if (json_is_boolean(value))
        return sgm_registry_set(shared, name, sgm_boolean_content(json_is_true(value)));
    if (json_is_integer(value))
        return sgm_registry_set(shared, name, sgm_integer_content(json_integer_value(value)));
    if (json_is_string(value))
        return sgm_registry_set(shared, name, sgm_text_content(json_string_value(value)));
    if (get_exact(json_array_get(value, 0), &number))
        return sgm_registry_set(shared, name, sgm_number_content(number));
    return SGM_OK;
}

static void share_all_again(const sgm_trainer *trainer, sgm_registry *shared, json_t *json)
{
    for (void *at = json_object_iter(json); at != NULL; at = json_object_iter_next(json, at)) {
        const char *name = json_object_iter_key(at);
        if (share_again(shared, name, json_object_iter_value(at)) != SGM_OK)
            sgm__log(SGM_LOG_WARNING, trainer->name, "shared.%.60s of the checkpoint is left out: %s", name,
                     sgm_last_error());
    }
}

/* A worker's are also shown by its trainer. */
static void set_shared(const sgm_trainer *trainer, json_t *json)
{
    sgm_content shared;
    if (trainer->global != NULL)
        share_all_again(trainer, trainer->global->team->workers[trainer->worker].results, json);
    if (sgm_registry_get(trainer->registry, "shared", &shared) != SGM_OK)
        return;
    share_all_again(trainer, shared.as.registry, json);
    sgm_content_clear(&shared);
}

/* Data that this trainer does not have are passed over. */
static void set_scores(sgm_trainer *trainer, json_t *scores)
{
    for (void *at = json_object_iter(scores); at != NULL; at = json_object_iter_next(scores, at)) {
        const char *data = json_object_iter_key(at);
        json_t *own = json_object_iter_value(at);
        for (void *of = json_object_iter(own); of != NULL; of = json_object_iter_next(own, of)) {
            double number;
            bool known = get_exact(json_object_iter_value(of), &number);
            sgm_content content = sgm_number_content(known ? number : (double)NAN);
            if (sgm__trainer_leave(trainer, NULL, data, json_object_iter_key(of), &content, SGM__QUIET) !=
                SGM_OK)
                break;
        }
    }
}

static sgm_status set_metrics(sgm_trainer *trainer, const json_t *state)
{
    const json_t *metrics = json_object_get(state, "metrics");
    for (size_t i = 0; i < trainer->validation_count; i++) {
        const json_t *saved = json_object_get(metrics, trainer->metrics[i].name);
        sgm_metrics read;
        if (get_exact(json_object_get(saved, "loss"), &read.loss) &&
            get_exact(json_object_get(saved, "accuracy"), &read.accuracy) &&
            get_count(saved, "records", &read.records))
            trainer->metrics[i].metrics = read;
    }
    get_exact(json_object_get(state, "cost"), &trainer->newest_loss);
    set_scores(trainer, json_object_get(state, "scores"));
    return sgm__trainer_publish_metrics(trainer);
}

static void set_optimiser(sgm_trainer *trainer, const sgm__saved_state *state)
{
    trainer->position.updates = state->position.updates;
    trainer->position.best_loss = state->position.best_loss;
    trainer->position.bad_epochs = state->position.bad_epochs;
    trainer->position.reductions = state->position.reductions;
    trainer->kept_from = trainer->position.updates; /* gradients and updates are of another place */
}

/* In the middle of an accumulation the number of minibatches that it began with counts to its end. Older
 * files do not say where they are in it; then the number never changed. */
static void set_accumulation(sgm_trainer *trainer, const sgm__saved_state *state)
{
    int64_t accumulated, accumulate;
    if (trainer->optimiser == NULL)
        return;
    sgm_optimiser_options *options = &trainer->optimiser->options;
    bool known = get_count(state->json, "accumulated", &accumulated) &&
                 get_count(state->json, "accumulate", &accumulate) && accumulated < accumulate;
    trainer->position.accumulated = known ? accumulated : state->position.iteration % options->accumulate;
    if (!known || accumulated == 0 || accumulate == options->accumulate)
        return;
    if (trainer->next_accumulate == 0)
        trainer->next_accumulate = options->accumulate;
    options->accumulate = accumulate;
}

static sgm_status set_end(sgm_trainer *trainer, const sgm__saved_state *state)
{
    const json_t *ended = json_object_get(state->json, "ended");
    const char *by = json_string_value(json_object_get(ended, "by"));
    sgm__free(trainer->ending.by);
    trainer->ending = (sgm__ending){.by = by != NULL ? sgm__strdup(by) : NULL};
    if (by == NULL)
        return SGM_OK;
    trainer->ending.epochs = json_integer_value(json_object_get(ended, "epochs"));
    trainer->ending.iterations = json_integer_value(json_object_get(ended, "iterations"));
    return trainer->ending.by != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

static sgm_status set_place(sgm_trainer *trainer, const sgm__saved_state *state)
{
    SGM_TRY(set_end(trainer, state));
    const sgm__training_position *saved = &state->position;
    sgm__training_position *position = &trainer->position;
    position->epoch = saved->epoch;
    position->batch = saved->batch;
    position->iteration = saved->iteration;
    /* Saved at the end of an epoch its sums are told already. */
    position->sums = saved->batch > 0 ? saved->sums : (sgm__metric_sums){0};
    if (trainer->training == NULL)
        return SGM_OK;
    sgm_iterator_state place = {.epoch = saved->epoch, .batches = saved->batch};
    if (get_count(state->json, "batch_size", &place.size)) {
        place.no_shuffle = json_is_true(json_object_get(state->json, "no_shuffle"));
        place.drop_last = json_is_true(json_object_get(state->json, "drop_last"));
    } else {
        place.size = 0;
    }
    if (sgm_iterator_set_state(trainer->training, &place) == SGM_OK)
        return SGM_OK;
    sgm__log(SGM_LOG_WARNING, trainer->name, "the epoch of the checkpoint begins anew: %s", sgm_last_error());
    place = (sgm_iterator_state){.epoch = saved->epoch};
    return sgm_iterator_set_state(trainer->training, &place);
}

sgm_status sgm__state_set_position(sgm_trainer *trainer, const sgm__saved_state *state, unsigned parts)
{
    if ((parts & SGM_PART_PARAMETERS) != 0 &&
        trainer->averages_in != json_is_true(json_object_get(state->json, "averages_in"))) {
        trainer->averages_in = !trainer->averages_in;
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
    if (!get_count(state->json, "branch", &trainer->branch)) /* from before there were branches */
        trainer->branch = 0;
    return set_place(trainer, state);
}
