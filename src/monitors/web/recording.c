/* What of a trainer is recorded: the list of values, where each is read, and the buffer of samples.
 *
 * Each trainer records the values of default_identifiers, its costs and its validation; people on the page
 * add others (sgm__web_watch). A value is an item, whose series holds the curve. Reading it at each sample
 * must be fast, so the item keeps the registry that the value is in, and no identifier is parsed then.
 * sampler.c calls the functions with "sampling" in their comments; curves.c those for watching. Locks: the
 * trainer's lock comes before recording->sampling, so whatever may wait for the trainer is done without
 * that one. */
#include "monitors/web/web_internal.h"
#include "registry/pattern.h"
#include "trainer/trainer_lock.h"

#include <math.h>

/* Limits of memory: items; identifiers that wait for a match; samples and values in the buffer. */
#define MAXIMUM_ITEMS 1000
#define MAXIMUM_PENDING 100
#define MAXIMUM_SAMPLES 8192
#define MAXIMUM_VALUES 65536
/* Points of a series of the defaults and of one that a person has added; ticks of the clock. */
#define DEFAULT_POINTS ((size_t)1 << 17)
#define WATCHED_POINTS ((size_t)1 << 16)
#define CLOCK_TICKS ((size_t)1 << 16)

static const char *const default_identifiers[] = {"optimiser.loss", "training.loss", "training.accuracy",
                                                  "optimiser.current_learning_rate"};

/* --- items --- */

sgm__web_item *sgm__web_find_item(sgm__web_item *const *items, size_t count, const char *identifier)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(items[i]->identifier, identifier) == 0)
            return items[i];
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

/* `points` is the series' maximum, of at most 36 bytes each. */
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

/* With the sampling lock. A new item is not active yet. */
sgm__web_item *sgm__web_add_item(sgm__web_recording *recording, const char *identifier, bool is_default)
{
    sgm__web_item *item = sgm__web_find_item(recording->items, recording->item_count, identifier);
    if (item != NULL)
        return item;
    if (recording->item_count >= MAXIMUM_ITEMS) {
        sgm_fail(SGM_ERROR_UNSUPPORTED, "%d values are recorded already, which is all there is room for",
                 MAXIMUM_ITEMS);
        return NULL;
    }
    if (sgm__reserve(&recording->items, &recording->item_capacity, recording->item_count + 1,
                     sizeof(sgm__web_item *)) != SGM_OK)
        return NULL;
    item = create_item(identifier, is_default ? DEFAULT_POINTS : WATCHED_POINTS);
    if (item != NULL) {
        item->is_default = is_default;
        item->index = recording->item_count;
        recording->items[recording->item_count++] = item;
    }
    return item;
}

/* Sets the registry that has the item's value, with a reference; identifiers without a dot are in the
 * root. If it does not exist, the item is skipped until the next look. */
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
        if (sgm_registry_resolve_one(root, parent, &content) == SGM_OK && content.kind == SGM_KIND_REGISTRY)
            item->parent = sgm_registry_retain(content.as.registry);
        sgm_content_clear(&content);
    }
    sgm__free(parent);
}

void sgm__web_find_parents(sgm__web_recording *recording)
{
    sgm_registry *root = sgm_trainer_registry(recording->watched->trainer);
    for (size_t i = 0; i < recording->item_count; i++) {
        sgm__web_item *item = recording->items[i];
        if (item->active && !item->told && item->parent == NULL)
            find_parent(root, item);
    }
}

/* Each of several costs has a curve of its own; a single cost is the loss itself. */
void sgm__web_add_costs(sgm__web_recording *recording)
{
    sgm_matches matches = {0};
    sgm_registry *root = sgm_trainer_registry(recording->watched->trainer);
    if (sgm_registry_resolve(root, "optimiser.costs.*.partial", &matches) != SGM_OK)
        return;
    for (size_t i = 0; i < matches.count && matches.count > 1; i++) {
        sgm__web_item *item = sgm__web_add_item(recording, matches.items[i].identifier, true);
        if (item != NULL)
            item->active = true;
    }
    sgm_matches_free(&matches);
}

/* --- values --- */

/* The value as a number; false: it is no number. */
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

/* Reads the value. If that fails, the registry is forgotten, so that the attempt is not repeated at each
 * iteration; the next event looks it up again. */
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

/* Adds to the newest sample. Values before the first finite one are dropped: a metric is NaN until it is
 * first measured. */
void sgm__web_add_value(sgm__web_samples *samples, sgm__web_item *item, double value)
{
    item->begun = item->begun || isfinite(value);
    if (!item->begun || samples->value_count >= MAXIMUM_VALUES ||
        sgm__reserve(&samples->values, &samples->value_capacity, samples->value_count + 1,
                     sizeof *samples->values) != SGM_OK)
        return;
    samples->values[samples->value_count++] = (sgm__web_value){item, value};
    samples->samples[samples->count - 1].count++;
}

bool sgm__web_begin_sample(sgm__web_samples *samples, sgm__web_moment moment)
{
    if (samples->count >= MAXIMUM_SAMPLES || samples->value_count >= MAXIMUM_VALUES ||
        sgm__reserve(&samples->samples, &samples->capacity, samples->count + 1, sizeof *samples->samples) !=
            SGM_OK)
        return false;
    samples->samples[samples->count++] = (sgm__web_sample){.moment = moment, .first = samples->value_count};
    return true;
}

/* At the beginning of a run NaN means that nothing was measured yet, and would make a gap in the curve of
 * a resumed training. */
void sgm__web_take_values(sgm__web_recording *recording, bool begins)
{
    double value = NAN;
    if (!sgm__web_begin_sample(&recording->samples, recording->status.moment))
        return;
    for (size_t i = 0; i < recording->item_count; i++) {
        sgm__web_item *item = recording->items[i];
        if (item->active && item->parent != NULL && read_item(item, &value) && !(begins && isnan(value)))
            sgm__web_add_value(&recording->samples, item, value);
    }
}

/* --- beginning and end --- */

/* Begins with the default items active; their registries are found at the first event. */
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
    for (size_t i = 0; i < sizeof default_identifiers / sizeof *default_identifiers && good; i++) {
        sgm__web_item *item = sgm__web_add_item(recording, default_identifiers[i], true);
        good = item != NULL;
        if (good)
            item->active = true;
    }
    if (good)
        return recording;
    sgm__web_recording_free(recording);
    return NULL;
}

/* Drops the references to the trainer's registries. `settled` is reset because another trainer may come
 * under the same name. */
void sgm__web_recording_leave(sgm__web_recording *recording)
{
    pthread_mutex_lock(&recording->sampling);
    for (size_t i = 0; i < recording->item_count; i++) {
        sgm_registry_free(recording->items[i]->parent);
        recording->items[i]->parent = NULL;
    }
    recording->settled = false;
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
    for (size_t i = 0; i < recording->pending_count; i++)
        sgm__free(recording->pending[i]);
    sgm__free(recording->pending);
    for (size_t i = 0; i < SGM__WEB_VALIDATIONS; i++)
        sgm__free(recording->newest[i].name);
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

/* --- watching --- */

/* All matches of an identifier, which may have wildcards. If there is none, sgm_registry_resolve_one is asked
 * for its error, which names the nearest identifiers. */
static sgm_status resolve(sgm_registry *root, const char *identifier, sgm_matches *matches)
{
    SGM_TRY(sgm_registry_resolve(root, identifier, matches));
    if (matches->count > 0)
        return SGM_OK;
    sgm_content none = {0};
    sgm_matches_free(matches);
    SGM_TRY(sgm_registry_resolve_one(root, identifier, &none));
    sgm_content_clear(&none);
    return SGM_OK;
}

/* Whether the identifier is the loss or accuracy of a validation set. Such values come with the progress
 * of epochs; in between nothing in the registry changes. Takes the trainer's lock. */
static bool is_validation(const sgm__web_recording *recording, const char *identifier)
{
    sgm_trainer *trainer = recording->watched->trainer;
    const char *end = strrchr(identifier, '.');
    bool is = false;
    if (end == NULL || (strcmp(end, ".loss") != 0 && strcmp(end, ".accuracy") != 0))
        return false;
    if (sgm__trainer_enter(trainer) != SGM_OK)
        return false;
    const char *name;
    for (size_t i = 0; !is && (name = sgm__trainer_data_name(trainer, i)) != NULL; i++) {
        char *part = sgm__identifier_part(name);
        size_t length = part != NULL ? strlen(part) : 0;
        is = part != NULL && length == (size_t)(end - identifier) && memcmp(identifier, part, length) == 0;
        sgm__free(part);
    }
    sgm__trainer_unlock(trainer);
    return is;
}

/* With the sampling lock. Activates the item of a match, and adds its current value so that the curve
 * begins at once. `told`: values come with the progress. */
static sgm_status record_match(sgm__web_recording *recording, const sgm_match *match, double value, bool told)
{
    sgm__web_item *item = sgm__web_add_item(recording, match->identifier, false);
    if (item == NULL)
        return sgm__last_failure();
    if (told)
        item->active = item->told = true;
    if (item->active && (told || !item->told))
        return SGM_OK;
    item->active = true;
    item->told = false;
    if (item->parent == NULL)
        find_parent(sgm_trainer_registry(recording->watched->trainer), item);
    if (sgm__web_begin_sample(&recording->samples, recording->status.moment))
        sgm__web_add_value(&recording->samples, item, value);
    return SGM_OK;
}

/* With the sampling lock. Keeps a copy of the identifier, once. */
static sgm_status keep_pending(sgm__web_recording *recording, const char *identifier)
{
    for (size_t i = 0; i < recording->pending_count; i++)
        if (strcmp(recording->pending[i], identifier) == 0)
            return SGM_OK;
    if (recording->pending_count == MAXIMUM_PENDING)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "%d values are waited for already", MAXIMUM_PENDING);
    SGM_TRY(sgm__reserve(&recording->pending, &recording->pending_capacity, recording->pending_count + 1,
                         sizeof(char *)));
    char *copy = sgm__strdup(identifier);
    if (copy == NULL)
        return SGM_ERROR_MEMORY;
    recording->pending[recording->pending_count++] = copy;
    return SGM_OK;
}

/* Nothing matches, and the thread's newest error says so. Before the first epoch has ended the trainer may
 * not have all of its values yet, so the identifier is kept; afterwards the error stands. */
static sgm_status wait_for(sgm__web_recording *recording, const char *identifier, bool *pending)
{
    pthread_mutex_lock(&recording->sampling);
    *pending = !recording->settled;
    sgm_status status = *pending ? keep_pending(recording, identifier) : sgm__last_failure();
    pthread_mutex_unlock(&recording->sampling);
    if (status == SGM_OK)
        sgm_clear_error();
    return status;
}

bool sgm__web_may_come(sgm__web_recording *recording, const char *identifier)
{
    pthread_mutex_lock(&recording->sampling);
    bool may = !recording->settled;
    for (size_t i = 0; i < recording->pending_count && !may; i++)
        may = sgm__pattern_matches(recording->pending[i], identifier);
    pthread_mutex_unlock(&recording->sampling);
    return may;
}

/* The caller frees it. */
static char *take_pending(sgm__web_recording *recording, size_t index)
{
    char *taken = recording->pending[index];
    recording->pending[index] = recording->pending[--recording->pending_count];
    return taken;
}

/* Records all matches that are numbers and counts them in *found. Takes the sampling lock for each, not
 * throughout: is_validation takes the trainer's lock, which comes first. */
static sgm_status record_matches(sgm__web_recording *recording, const sgm_matches *matches,
                                 json_t *identifiers, size_t *found)
{
    double value = NAN;
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < matches->count && status == SGM_OK; i++) {
        if (!number_of(&matches->items[i].content, &value))
            continue;
        ++*found;
        bool told = is_validation(recording, matches->items[i].identifier);
        pthread_mutex_lock(&recording->sampling);
        status = record_match(recording, &matches->items[i], value, told);
        pthread_mutex_unlock(&recording->sampling);
        if (status == SGM_OK && identifiers != NULL)
            json_array_append_new(identifiers, json_string(matches->items[i].identifier));
    }
    return status;
}

/* Takes the first pending identifier that something matches by now out of the list, and its matches; the
 * caller frees both. NULL: there is none. */
static char *take_found(sgm__web_recording *recording, sgm_matches *matches)
{
    char *found = NULL;
    pthread_mutex_lock(&recording->sampling);
    sgm_registry *root = sgm_trainer_registry(recording->watched->trainer);
    for (size_t i = 0; i < recording->pending_count && found == NULL; i++) {
        if (sgm_registry_resolve(root, recording->pending[i], matches) != SGM_OK)
            continue;
        if (matches->count > 0)
            found = take_pending(recording, i);
        else
            sgm_matches_free(matches);
    }
    pthread_mutex_unlock(&recording->sampling);
    return found;
}

void sgm__web_take_pending(sgm__web_recording *recording)
{
    sgm_matches matches = {0};
    size_t numbers = 0;
    char *found;
    while ((found = take_found(recording, &matches)) != NULL) {
        if (record_matches(recording, &matches, NULL, &numbers) != SGM_OK)
            sgm__log(SGM_LOG_WARNING, "monitor", "%s is not recorded: %s", found, sgm_last_error());
        sgm_matches_free(&matches);
        matches = (sgm_matches){0};
        sgm__free(found);
    }
}

/* See web_internal.h. Matches that are no numbers are ignored, but at least one must be a number. */
sgm_status sgm__web_watch(sgm__web_recording *recording, const char *identifier, json_t *identifiers,
                          bool *pending)
{
    sgm_matches matches = {0};
    size_t found = 0;
    *pending = false;
    sgm_status status = resolve(sgm_trainer_registry(recording->watched->trainer), identifier, &matches);
    if (status == SGM_ERROR_NOT_FOUND)
        return wait_for(recording, identifier, pending);
    SGM_TRY(status);
    status = record_matches(recording, &matches, identifiers, &found);
    sgm_matches_free(&matches);
    if (status == SGM_OK && found == 0)
        status = sgm_fail(SGM_ERROR_TYPE, "%.200s %s: only numbers can be drawn as curves", identifier,
                          strchr(identifier, '*') != NULL ? "matches no number" : "is no number");
    return status;
}

/* Defaults cannot be removed, as every page shows them. */
void sgm__web_unwatch(sgm__web_recording *recording, const char *identifier, json_t *identifiers)
{
    pthread_mutex_lock(&recording->sampling);
    for (size_t i = recording->pending_count; i-- > 0;)
        if (strcmp(recording->pending[i], identifier) == 0)
            sgm__free(take_pending(recording, i));
    for (size_t i = 0; i < recording->item_count; i++) {
        sgm__web_item *item = recording->items[i];
        if (!item->active || item->is_default || !sgm__pattern_matches(identifier, item->identifier))
            continue;
        item->active = false;
        json_array_append_new(identifiers, json_string(item->identifier));
    }
    pthread_mutex_unlock(&recording->sampling);
}
