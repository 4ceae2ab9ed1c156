/* Sampling: what the training's thread does for those who watch, and how little of it.
 *
 * An observer of the trainer reads the recorded values out of the registry, in between two iterations, and
 * leaves them in a buffer that the monitor's thread empties. How long that takes is measured, and how long an
 * iteration: so many are left out that sampling takes less than half a hundredth of the time. Nobody is
 * waited for: an iteration at which the buffer is being taken is not sampled, the next one is. */
#include "monitors/web/web_internal.h"
#include "registry/pattern.h"

#include <math.h>
#include <stdio.h>

#define SHARE 0.002         /* of the time, for iterations, and as much for epochs */
#define SHORT_STEP 2e-5     /* seconds; below, what a sample drives out of the caches costs as much again */
#define REPORT_SECONDS 1e-7 /* what a trainer's report takes beside its observers */
#define LONGEST_GAP 0.05    /* seconds between samples */
#define MOST_ITEMS 1000
#define MOST_SAMPLES 8192 /* that wait for the monitor's thread */
#define MOST_VALUES 65536
#define STANDARD_POINTS ((size_t)1 << 17)
#define WATCHED_POINTS ((size_t)1 << 16)
#define CLOCK_TICKS ((size_t)1 << 16)

static const char *const standard[] = {"optimiser.cost_total", "training.loss", "training.accuracy",
                                       "optimiser.current_learning_rate"};

/* --- items --- */

static sgm__web_item *find_item(const sgm__web_recording *recording, const char *identifier)
{
    for (size_t i = 0; i < recording->item_count; i++)
        if (strcmp(recording->items[i]->identifier, identifier) == 0)
            return recording->items[i];
    return NULL;
}

static void free_item(sgm__web_item *item)
{
    if (item == NULL)
        return;
    sgm_registry_free(item->parent);
    sgm__series_free(item->series);
    sgm__free(item->identifier);
    sgm__free(item);
}

static sgm__web_item *create_item(const char *identifier, size_t points)
{
    sgm__web_item *item = sgm__calloc(1, sizeof *item);
    if (item == NULL)
        return NULL;
    item->identifier = sgm__strdup(identifier);
    item->series = sgm__series_create(points);
    if (item->identifier == NULL || item->series == NULL) {
        free_item(item);
        return NULL;
    }
    const char *dot = strrchr(item->identifier, '.');
    item->name = dot != NULL ? dot + 1 : item->identifier;
    return item;
}

/* With the sampling lock, like all that is static here but for the observer. The one of that name, made if it
 * is not there. NULL: an error says why. */
static sgm__web_item *add_item(sgm__web_recording *recording, const char *identifier, bool is_standard)
{
    sgm__web_item *item = find_item(recording, identifier);
    if (item != NULL)
        return item;
    if (recording->item_count >= MOST_ITEMS) {
        sgm_fail(SGM_ERROR_UNSUPPORTED, "%d values are recorded already, which is all there is room for",
                 MOST_ITEMS);
        return NULL;
    }
    if (sgm__reserve(&recording->items, &recording->item_capacity, recording->item_count + 1,
                     sizeof(sgm__web_item *)) != SGM_OK)
        return NULL;
    item = create_item(identifier, is_standard ? STANDARD_POINTS : WATCHED_POINTS);
    if (item != NULL) {
        item->standard = is_standard;
        item->index = recording->item_count;
        recording->items[recording->item_count++] = item;
    }
    return item;
}

/* The registry that an item is in; an item without one is left out until the next epoch. */
static void find_parent(sgm_registry *root, sgm__web_item *item)
{
    sgm_content content = {0};
    char *parent = sgm__strndup(item->identifier, (size_t)(item->name - item->identifier));
    if (parent == NULL)
        return;
    if (parent[0] == '\0') {
        item->parent = sgm_registry_retain(root);
    } else {
        parent[strlen(parent) - 1] = '\0';
        if (sgm_resolve_one(root, parent, &content) == SGM_OK && content.kind == SGM_KIND_REGISTRY)
            item->parent = sgm_registry_retain(content.as.registry);
        sgm_content_clear(&content);
    }
    sgm__free(parent);
}

static void find_parents(sgm__web_recording *recording)
{
    sgm_registry *root = sgm_trainer_registry(recording->watched->trainer);
    for (size_t i = 0; i < recording->item_count; i++) {
        sgm__web_item *item = recording->items[i];
        if (item->active && !item->told && item->parent == NULL)
            find_parent(root, item);
    }
}

/* Several costs have curves of their own. */
static void add_costs(sgm__web_recording *recording)
{
    sgm_matches matches = {0};
    sgm_registry *root = sgm_trainer_registry(recording->watched->trainer);
    if (sgm_resolve(root, "optimiser.costs.*.partial", &matches) != SGM_OK)
        return;
    for (size_t i = 0; i < matches.count && matches.count > 1; i++) {
        sgm__web_item *item = add_item(recording, matches.items[i].identifier, true);
        if (item != NULL)
            item->active = true;
    }
    sgm_matches_free(&matches);
}

/* --- values --- */

static bool number_of(const sgm_content *content, double *value)
{
    switch (content->kind) {
    case SGM_KIND_BOOLEAN:
        *value = content->as.boolean;
        return true;
    case SGM_KIND_INTEGER:
        *value = (double)content->as.integer;
        return true;
    case SGM_KIND_NUMBER:
        *value = content->as.number;
        return true;
    default:
        return false;
    }
}

/* What cannot be read is not tried again at each iteration. */
static bool read_item(sgm__web_item *item, double *value)
{
    sgm_content content = {0};
    bool good = sgm_registry_get(item->parent, item->name, &content) == SGM_OK && number_of(&content, value);
    sgm_content_clear(&content);
    if (!good) {
        sgm_registry_free(item->parent);
        item->parent = NULL;
    }
    return good;
}

static void add_value(sgm__web_samples *samples, sgm__web_item *item, double value)
{
    item->begun = item->begun || isfinite(value);
    if (!item->begun || samples->value_count >= MOST_VALUES ||
        sgm__reserve(&samples->values, &samples->value_capacity, samples->value_count + 1,
                     sizeof *samples->values) != SGM_OK)
        return;
    samples->values[samples->value_count++] = (sgm__web_value){item, value};
    samples->samples[samples->count - 1].count++;
}

/* False: there is no room, until the monitor's thread has come. */
static bool begin_sample(sgm__web_samples *samples, sgm__web_moment moment)
{
    if (samples->count >= MOST_SAMPLES || samples->value_count >= MOST_VALUES ||
        sgm__reserve(&samples->samples, &samples->capacity, samples->count + 1, sizeof *samples->samples) !=
            SGM_OK)
        return false;
    samples->samples[samples->count++] = (sgm__web_sample){.moment = moment, .first = samples->value_count};
    return true;
}

static void take_values(sgm__web_recording *recording)
{
    double value = NAN;
    if (!begin_sample(&recording->samples, recording->status.moment))
        return;
    for (size_t i = 0; i < recording->item_count; i++) {
        sgm__web_item *item = recording->items[i];
        if (item->active && item->parent != NULL && read_item(item, &value))
            add_value(&recording->samples, item, value);
    }
}

/* --- the status --- */

static double epoch_of(const sgm_training_progress *progress)
{
    double part = progress->batches > 0 ? (double)progress->batch / (double)progress->batches : 0;
    return (double)progress->epoch + fmin(part, 1);
}

/* Of the progress only an iteration knows it. */
static double seconds_left(const sgm__web_recording *recording, const sgm_training_progress *progress)
{
    double done = epoch_of(progress) - recording->start, left = (double)progress->epochs - epoch_of(progress);
    return progress->epochs > 0 && done > 0 && left >= 0 ? progress->seconds * left / done : -1;
}

static sgm__web_moment moment_of(const sgm__web_recording *recording, const sgm_training_progress *progress)
{
    return (sgm__web_moment){.iteration = progress->iteration,
                             .epoch = epoch_of(progress),
                             .seconds = recording->base + progress->seconds};
}

static void take_status(sgm__web_recording *recording, const sgm_training_progress *progress)
{
    sgm__web_status *status = &recording->status;
    status->progress = *progress;
    status->progress.trainer = recording->watched->name;
    status->progress.validation = NULL;
    status->progress.scores = NULL;
    status->progress.validation_count = status->progress.score_count = 0;
    status->progress.reason = NULL;
    status->progress.seconds_left = seconds_left(recording, progress);
    if (progress->kind == SGM_PROGRESS_START)
        status->reason[0] = '\0';
    if (progress->reason != NULL)
        snprintf(status->reason, sizeof status->reason, "%s", progress->reason);
    status->moment = moment_of(recording, progress);
    status->stride = recording->stride;
    status->version++;
}

static void take_facts(sgm__web_recording *recording)
{
    sgm_trainer *trainer = recording->watched->trainer;
    sgm_registry *root = sgm_trainer_registry(trainer);
    sgm__web_status *status = &recording->status;
    sgm_content content = {0};
    if (sgm_resolve_one(root, "network.notation", &content) == SGM_OK && content.kind == SGM_KIND_TEXT) {
        sgm__free(status->network);
        status->network = sgm__strdup(content.as.text);
    }
    sgm_content_clear(&content);
    if (sgm_resolve_one(root, "network.parameter_count", &content) == SGM_OK &&
        content.kind == SGM_KIND_INTEGER)
        status->parameters = content.as.integer;
    sgm_content_clear(&content);
    status->has_folder = trainer->folder != NULL;
    status->version++;
}

/* The time of runs before, of this process or of another one that is resumed. */
static void begin_run(sgm__web_recording *recording, const sgm_training_progress *progress)
{
    sgm_content content = {0};
    sgm_registry *root = sgm_trainer_registry(recording->watched->trainer);
    if (sgm_resolve_one(root, "running_time", &content) == SGM_OK && content.kind == SGM_KIND_NUMBER)
        recording->base = fmax(content.as.number - progress->seconds, 0);
    sgm_content_clear(&content);
    recording->start = epoch_of(progress);
}

/* --- epochs: what was measured since the one before --- */

static sgm__web_item *told_item(sgm__web_recording *recording, const char *data, const char *name)
{
    char *part = sgm__identifier_part(data);
    char *identifier = part != NULL ? sgm__format("%s.%s", part, name) : NULL;
    sgm__web_item *item = identifier != NULL ? add_item(recording, identifier, true) : NULL;
    sgm__free(identifier);
    sgm__free(part);
    return item;
}

static void add_told(sgm__web_recording *recording, sgm__web_item *item, double value)
{
    if (item == NULL || (item->active && !item->told))
        return; /* it is watched, and read */
    item->active = item->told = true;
    add_value(&recording->samples, item, value);
}

/* Remembers an epoch's validation, which is cheap, also where its curves get only some epochs. */
static void keep_validation(sgm__web_recording *recording, const sgm_training_progress *progress)
{
    sgm__web_epoch *kept = &recording->epoch;
    kept->moment = moment_of(recording, progress);
    kept->count =
        progress->validation_count < SGM__WEB_VALIDATIONS ? progress->validation_count : SGM__WEB_VALIDATIONS;
    for (size_t i = 0; i < kept->count; i++) {
        kept->losses[i] = progress->validation[i].metrics.loss;
        kept->accuracies[i] = progress->validation[i].metrics.accuracy;
        kept->names[i] = progress->validation[i].name;
    }
}

static void take_validation(sgm__web_recording *recording)
{
    sgm__web_epoch *kept = &recording->epoch;
    if (kept->count == 0 || !begin_sample(&recording->samples, kept->moment))
        return;
    for (size_t i = 0; i < kept->count; i++) {
        if (kept->loss_items[i] == NULL)
            kept->loss_items[i] = told_item(recording, kept->names[i], "loss");
        if (kept->accuracy_items[i] == NULL)
            kept->accuracy_items[i] = told_item(recording, kept->names[i], "accuracy");
        add_told(recording, kept->loss_items[i], kept->losses[i]);
        add_told(recording, kept->accuracy_items[i], kept->accuracies[i]);
    }
    kept->count = 0;
}

static void take_scores(sgm__web_recording *recording, const sgm_training_progress *progress)
{
    if (progress->score_count == 0 || !begin_sample(&recording->samples, recording->status.moment))
        return;
    for (size_t i = 0; i < progress->score_count; i++)
        add_told(recording, told_item(recording, progress->scores[i].data, progress->scores[i].name),
                 progress->scores[i].value);
}

/* --- the observer --- */

static void tell_parts(sgm__web_recording *recording, const sgm_training_progress *progress)
{
    sgm__web_trainer *watched = recording->watched;
#define TELL_PART(part)                                                                                      \
    if (sgm__web_##part.progress != NULL)                                                                    \
        sgm__web_##part.progress(watched, watched->states[SGM__WEB_##part], progress);
    SGM__WEB_PARTS(TELL_PART)
#undef TELL_PART
}

/* Follows a measurement; one that another program has disturbed counts little. */
static void follow(double *mean, double measured)
{
    *mean = *mean > 0 ? *mean + (fmin(measured, 4 * *mean) - *mean) / 8 : measured;
}

static int64_t stride_of(double cost, double step)
{
    if (!(step > 0))
        return 1;
    double stride = ceil(cost / ((step < SHORT_STEP ? SHARE / 2 : SHARE) * step));
    return (int64_t)fmax(fmin(stride, LONGEST_GAP / step), 1);
}

static void observe_iteration(sgm__web_recording *recording, const sgm_training_progress *progress)
{
    double start = sgm__now();
    if (pthread_mutex_trylock(&recording->sampling) != 0)
        return;
    take_validation(recording);
    take_status(recording, progress);
    take_values(recording);
    pthread_mutex_unlock(&recording->sampling);
    tell_parts(recording, progress);
    double end = sgm__now();
    if (recording->sampled > 0 && progress->iteration > recording->iteration)
        follow(&recording->step,
               (start - recording->sampled) / (double)(progress->iteration - recording->iteration));
    follow(&recording->cost, end - start + REPORT_SECONDS);
    recording->sampled = end;
    recording->iteration = progress->iteration;
    recording->stride = stride_of(recording->cost, recording->step);
    recording->next_iteration = progress->iteration + recording->stride;
    sgm__observer_next(recording->next_iteration);
}

/* A trainer may run without its environment, too. */
static void note_run(sgm__web *web, const sgm_training_progress *progress)
{
    if (progress->kind == SGM_PROGRESS_STOP)
        atomic_store(&web->interrupted, progress->interrupted);
    if (progress->kind != SGM_PROGRESS_START)
        return;
    atomic_store(&web->ran, true);
    atomic_store(&web->interrupted, false);
    if (sgm__web_start(web) != SGM_OK)
        sgm__log(SGM_LOG_ERROR, "monitor", "%s", sgm_last_error());
}

static void observe_event(sgm__web_recording *recording, const sgm_training_progress *progress)
{
    note_run(recording->watched->web, progress);
    pthread_mutex_lock(&recording->sampling);
    if (progress->kind == SGM_PROGRESS_START) {
        begin_run(recording, progress);
        memset(&recording->epoch, 0, sizeof recording->epoch); /* it may have other data now */
    } else {
        take_validation(recording);
    }
    if (progress->kind == SGM_PROGRESS_START || progress->kind == SGM_PROGRESS_MOVE) {
        take_facts(recording);
        add_costs(recording);
    }
    find_parents(recording);
    take_status(recording, progress);
    take_values(recording);
    pthread_mutex_unlock(&recording->sampling);
    tell_parts(recording, progress);
    recording->sampled = 0;
    recording->next_epoch = recording->next_iteration = 0;
    sgm_clear_error(); /* of values that are not there */
}

static void observe_epoch(sgm__web_recording *recording, const sgm_training_progress *progress)
{
    bool is_due = progress->iteration >= recording->next_epoch || progress->score_count > 0;
    double start = is_due ? sgm__now() : 0;
    pthread_mutex_lock(&recording->sampling);
    keep_validation(recording, progress);
    if (is_due) {
        find_parents(recording);
        take_validation(recording);
        take_status(recording, progress);
        take_values(recording);
        take_scores(recording, progress);
    }
    pthread_mutex_unlock(&recording->sampling);
    if (is_due) {
        tell_parts(recording, progress);
        sgm_clear_error();
        follow(&recording->epoch_cost, sgm__now() - start);
        recording->next_epoch = progress->iteration + stride_of(recording->epoch_cost, recording->step);
    }
    sgm__observer_next(recording->next_iteration);
}

bool sgm__web_observe(void *user, const sgm_training_progress *progress)
{
    sgm__web_recording *recording = user;
    if (progress->kind == SGM_PROGRESS_ITERATION)
        observe_iteration(recording, progress);
    else if (progress->kind == SGM_PROGRESS_EPOCH)
        observe_epoch(recording, progress);
    else
        observe_event(recording, progress);
    return true;
}

/* --- for other threads --- */

sgm__web_recording *sgm__web_recording_create(sgm__web_trainer *watched)
{
    sgm__web_recording *recording = sgm__calloc(1, sizeof *recording);
    if (recording == NULL)
        return NULL;
    pthread_mutex_init(&recording->sampling, NULL);
    pthread_mutex_init(&recording->store, NULL);
    recording->watched = watched;
    recording->stride = 1;
    recording->status.progress = (sgm_training_progress){.trainer = watched->name,
                                                         .training = {.loss = NAN, .accuracy = NAN},
                                                         .learning_rate = NAN,
                                                         .seconds_left = -1};
    recording->clock = sgm__clock_create(CLOCK_TICKS);
    bool good = recording->clock != NULL;
    for (size_t i = 0; i < sizeof standard / sizeof *standard && good; i++) {
        sgm__web_item *item = add_item(recording, standard[i], true);
        good = item != NULL;
        if (good)
            item->active = true;
    }
    if (good)
        return recording;
    sgm__web_recording_free(recording);
    return NULL;
}

void sgm__web_recording_leave(sgm__web_recording *recording)
{
    pthread_mutex_lock(&recording->sampling);
    for (size_t i = 0; i < recording->item_count; i++) {
        sgm_registry_free(recording->items[i]->parent);
        recording->items[i]->parent = NULL;
    }
    recording->status.version++;
    pthread_mutex_unlock(&recording->sampling);
}

static void free_samples(sgm__web_samples *samples)
{
    sgm__free(samples->samples);
    sgm__free(samples->values);
}

void sgm__web_recording_free(sgm__web_recording *recording)
{
    if (recording == NULL)
        return;
    for (size_t i = 0; i < recording->item_count; i++)
        free_item(recording->items[i]);
    sgm__free(recording->items);
    free_samples(&recording->samples);
    free_samples(&recording->drained);
    sgm__free(recording->item_copies);
    sgm__free(recording->points);
    sgm__free(recording->starts);
    sgm__clock_free(recording->clock);
    sgm__free(recording->status.network);
    pthread_mutex_destroy(&recording->sampling);
    pthread_mutex_destroy(&recording->store);
    sgm__free(recording);
}

void sgm__web_refresh(sgm__web_recording *recording)
{
    pthread_mutex_lock(&recording->sampling);
    take_facts(recording);
    pthread_mutex_unlock(&recording->sampling);
    sgm_clear_error();
}

/* All that match; none is an error, which names the nearest. */
static sgm_status resolve(sgm_registry *root, const char *identifier, sgm_matches *matches)
{
    SGM_TRY(sgm_resolve(root, identifier, matches));
    if (matches->count > 0)
        return SGM_OK;
    sgm_content none = {0};
    sgm_matches_free(matches);
    SGM_TRY(sgm_resolve_one(root, identifier, &none));
    sgm_content_clear(&none);
    return SGM_OK;
}

static sgm_status watch_match(sgm__web_recording *recording, const sgm_match *match, double value)
{
    sgm_registry *root = sgm_trainer_registry(recording->watched->trainer);
    sgm_status status = SGM_OK;
    pthread_mutex_lock(&recording->sampling);
    sgm__web_item *item = add_item(recording, match->identifier, false);
    if (item == NULL) {
        status = sgm__last_failure();
    } else if (!item->active || item->told) {
        item->active = true;
        item->told = false;
        if (item->parent == NULL)
            find_parent(root, item);
        if (begin_sample(&recording->samples, recording->status.moment))
            add_value(&recording->samples, item, value);
    }
    pthread_mutex_unlock(&recording->sampling);
    return status;
}

sgm_status sgm__web_watch(sgm__web_recording *recording, const char *identifier, json_t *identifiers)
{
    sgm_matches matches = {0};
    double value = NAN;
    size_t found = 0;
    SGM_TRY(resolve(sgm_trainer_registry(recording->watched->trainer), identifier, &matches));
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < matches.count && status == SGM_OK; i++) {
        if (!number_of(&matches.items[i].content, &value))
            continue;
        found++;
        status = watch_match(recording, &matches.items[i], value);
        if (status == SGM_OK)
            json_array_append_new(identifiers, json_string(matches.items[i].identifier));
    }
    sgm_matches_free(&matches);
    if (status == SGM_OK && found == 0)
        status =
            sgm_fail(SGM_ERROR_TYPE, "%.200s is no number: only numbers can be drawn as curves", identifier);
    return status;
}

void sgm__web_unwatch(sgm__web_recording *recording, const char *identifier, json_t *identifiers)
{
    pthread_mutex_lock(&recording->sampling);
    for (size_t i = 0; i < recording->item_count; i++) {
        sgm__web_item *item = recording->items[i];
        if (!item->active || item->standard || !sgm__pattern_matches(identifier, item->identifier))
            continue;
        item->active = false;
        json_array_append_new(identifiers, json_string(item->identifier));
    }
    pthread_mutex_unlock(&recording->sampling);
}

/* A training that has gone back forgets also what it has not told anew. */
static void cut_all(sgm__web_recording *recording, int64_t iteration)
{
    for (size_t i = 0; i < recording->drained_items; i++)
        sgm__series_cut(recording->item_copies[i]->series, iteration);
}

static sgm_status store_sample(sgm__web_recording *recording, const sgm__web_sample *sample)
{
    int64_t iteration = sample->moment.iteration;
    const sgm__web_value *values = recording->drained.values + sample->first;
    if (iteration < recording->stored) {
        cut_all(recording, iteration);
        recording->cut = iteration < recording->cut ? iteration : recording->cut;
    }
    recording->stored = iteration;
    SGM_TRY(sgm__clock_append(recording->clock,
                              (sgm__clock_tick){iteration, sample->moment.epoch, sample->moment.seconds}));
    for (size_t i = 0; i < sample->count; i++)
        SGM_TRY(sgm__series_append(values[i].item->series, iteration, values[i].value));
    return SGM_OK;
}

/* The ticker's own list of items, as the other one grows. */
static sgm_status copy_items(sgm__web_recording *recording)
{
    SGM_TRY(sgm__reserve(&recording->item_copies, &recording->item_copy_capacity, recording->item_count,
                         sizeof(sgm__web_item *)));
    for (; recording->drained_items < recording->item_count; recording->drained_items++)
        recording->item_copies[recording->drained_items] = recording->items[recording->drained_items];
    return SGM_OK;
}

void sgm__web_drain(sgm__web_recording *recording)
{
    pthread_mutex_lock(&recording->sampling);
    sgm__web_samples taken = recording->samples;
    recording->samples = recording->drained;
    recording->samples.count = recording->samples.value_count = 0;
    recording->drained = taken;
    sgm_status status = copy_items(recording);
    recording->drained_stride = recording->status.stride;
    pthread_mutex_unlock(&recording->sampling);
    recording->cut = INT64_MAX;
    if (status != SGM_OK)
        recording->drained.count = recording->drained.value_count = 0; /* of items that have no copy */
    if (recording->drained.count == 0)
        return;
    pthread_mutex_lock(&recording->store);
    for (size_t i = 0; i < recording->drained.count && status == SGM_OK; i++)
        status = store_sample(recording, &recording->drained.samples[i]);
    pthread_mutex_unlock(&recording->store);
}

/* After the newest sample that went back. */
static size_t first_after_cut(const sgm__web_samples *samples)
{
    size_t first = 0;
    for (size_t i = 1; i < samples->count; i++)
        if (samples->samples[i].moment.iteration < samples->samples[i - 1].moment.iteration)
            first = i;
    return first;
}

bool sgm__web_sort_drained(sgm__web_recording *recording)
{
    const sgm__web_samples *drained = &recording->drained;
    size_t items = recording->drained_items;
    if (drained->value_count == 0 ||
        sgm__reserve(&recording->points, &recording->point_capacity, drained->value_count,
                     sizeof *recording->points) != SGM_OK ||
        sgm__reserve(&recording->starts, &recording->start_capacity, items + 2, sizeof *recording->starts) !=
            SGM_OK)
        return false;
    size_t first_sample = first_after_cut(drained), first = drained->samples[first_sample].first;
    size_t *starts = recording->starts; /* until the end, one place further: each is moved as it fills */
    memset(starts, 0, (items + 2) * sizeof *starts);
    for (size_t i = first; i < drained->value_count; i++)
        starts[drained->values[i].item->index + 2]++;
    for (size_t i = 2; i < items + 2; i++)
        starts[i] += starts[i - 1];
    for (size_t i = first_sample; i < drained->count; i++)
        for (size_t k = 0; k < drained->samples[i].count; k++) {
            const sgm__web_value *value = &drained->values[drained->samples[i].first + k];
            recording->points[starts[value->item->index + 1]++] =
                (sgm__web_point){&drained->samples[i], value->value};
        }
    return true;
}
