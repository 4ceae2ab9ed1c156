/* States in the registry: parameters, and the optimiser state. */
#include "journal/change_record.h"
#include "optim/optimiser.h"
#include "show/show.h"
#include "show/trainer_publish.h"
#include "trainer/trainer.h"
#include "trainer/trainer_lock.h"

/* Where states go whose names begin so; the first one that fits. */
static const struct place {
    const char *prefix;
    const char *parents[2]; /* from the trainer's registry down; NULL: no more */
    const char *doc;
} places[] = {
    {SGM__SLOT_PREFIX, {"optimiser", "slots"}, "the optimiser state of a parameter"},
    {SGM__AVERAGE_PREFIX, {"network", "averages"}, "the moving average of a parameter"},
    {"random.", {"random", NULL}, "where the stream of random numbers is"},
    {"", {"network", "layers"}, "a parameter"},
};

static const struct place *place_of(const char *name)
{
    const struct place *place = places;
    while (strncmp(name, place->prefix, strlen(place->prefix)) != 0)
        place++;
    return place;
}

/* *name gets what comes behind the place's parents: "2-dense.weights" of "network.layers.2-dense.weights".
 * False: it is elsewhere. */
static bool name_in(const char *const parents[2], const char *identifier, const char **name)
{
    for (int i = 0; i < 2 && parents[i] != NULL; i++) {
        size_t length = strlen(parents[i]);
        if (strncmp(identifier, parents[i], length) != 0 || identifier[length] != '.')
            return false;
        identifier += length + 1;
    }
    *name = identifier;
    return true;
}

sgm_status sgm__trainer_tensor_type(const sgm_trainer *trainer, const char *identifier, sgm_type *type)
{
    const sgm__strategy *strategy = sgm__sharing_of(trainer)->strategy;
    static const char *const kept[][2] = {{"optimiser", "gradients"}, {"optimiser", "updates"}};
    const char *name = "", *prefix = "";
    bool found = false;
    for (size_t i = 0; i < sizeof places / sizeof *places && !found; i++) {
        found = name_in(places[i].parents, identifier, &name);
        prefix = places[i].prefix;
    }
    for (size_t i = 0; i < sizeof kept / sizeof *kept && !found; i++) {
        found = name_in(kept[i], identifier, &name); /* as large as their parameter */
        prefix = "";
    }
    if (!found)
        return sgm_fail(SGM_ERROR_NOT_FOUND, "'%s' is no state of the trainer", identifier);
    char *state = sgm__format("%s%s", prefix, name);
    sgm_status status = state != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    bool elsewhere = status == SGM_OK && strategy != NULL && strategy->type_elsewhere(trainer, state, type);
    if (status == SGM_OK && !elsewhere)
        status = sgm_session_state_type(sgm__learner_of(trainer)->session, state, type);
    sgm__free(state);
    return status;
}

/* NULL: it has none. */
static sgm_tensor *average_of(const sgm_trainer *trainer, const char *name)
{
    const sgm__learner *learner = sgm__learner_of(trainer);
    char *average = sgm__format(SGM__AVERAGE_PREFIX "%s", name);
    bool has = average != NULL && sgm_session_has(learner->session, average);
    sgm_tensor *value = has ? sgm_session_get(learner->session, average) : NULL;
    sgm__free(average);
    return value;
}

/* --- in the registry --- */

typedef struct bound_state {
    sgm_trainer *trainer;
    sgm_option option;
    char name[]; /* in the session, then the entry's */
} bound_state;

/* sgm_tensor_free; NULL: it failed. */
static sgm_tensor *value_of(const bound_state *bound)
{
    sgm_trainer *trainer = bound->trainer;
    if (sgm__trainer_collect(trainer) != SGM_OK)
        return NULL;
    return sgm__trainer_has_state(trainer, bound->name)
               ? sgm_session_get(sgm__learner_of(trainer)->session, bound->name)
               : sgm__sharing_of(trainer)->strategy->get_elsewhere(trainer, bound->name);
}

static sgm_status get_state(void *user, sgm_content *content)
{
    const bound_state *bound = user;
    SGM_TRY(sgm__trainer_enter(bound->trainer));
    sgm_tensor *value = value_of(bound);
    sgm__trainer_unlock(bound->trainer);
    if (value == NULL)
        return sgm_last_status();
    *content = sgm_tensor_content(value);
    return SGM_OK;
}

/* Checkpoints have the tensor itself. */
static void note_state(const bound_state *bound, sgm_tensor *before, sgm_tensor *after, sgm_tensor *average)
{
    const struct place *place = place_of(bound->name);
    const char *second = place->parents[1];
    char *identifier = sgm__format("%s%s%s.%s", place->parents[0], second != NULL ? "." : "",
                                   second != NULL ? second : "", bound->name + strlen(place->prefix));
    if (identifier == NULL || before == NULL ||
        sgm__change_note_state(bound->trainer, identifier, before, after, average) != SGM_OK)
        sgm__log(SGM_LOG_WARNING, sgm_trainer_name(bound->trainer),
                 "the change of %s could not be recorded: %s", bound->name, sgm_last_error());
    sgm__free(identifier);
}

static sgm_status set_state(void *user, const sgm_content *content)
{
    const bound_state *bound = user;
    SGM_TRY(sgm__trainer_enter(bound->trainer));
    sgm_status status = sgm__trainer_check_set(bound->trainer, bound->name);
    if (status == SGM_OK)
        status = sgm__trainer_collect(bound->trainer);
    sgm_tensor *before =
        status == SGM_OK ? sgm_session_get(sgm__learner_of(bound->trainer)->session, bound->name) : NULL;
    sgm_tensor *average = status == SGM_OK ? average_of(bound->trainer, bound->name) : NULL;
    if (status == SGM_OK)
        status = sgm__trainer_put_state(bound->trainer, bound->name, content->as.tensor);
    if (status == SGM_OK)
        note_state(bound, before, content->as.tensor, average);
    sgm__trainer_parameters_changed(bound->trainer);
    sgm__trainer_unlock(bound->trainer);
    sgm_tensor_free(before);
    sgm_tensor_free(average);
    return status;
}

static sgm_status bind_state(sgm_trainer *trainer, sgm_registry *registry, const char *entry,
                             const char *state, const char *doc)
{
    size_t state_size = strlen(state) + 1, entry_size = strlen(entry) + 1;
    bound_state *bound = sgm__calloc(1, sizeof(bound_state) + state_size + entry_size);
    if (bound == NULL)
        return SGM_ERROR_MEMORY;
    memcpy(bound->name, state, state_size);
    memcpy(bound->name + state_size, entry, entry_size);
    bound->trainer = trainer;
    bound->option =
        (sgm_option){.name = bound->name + state_size, .kind = SGM_KIND_TENSOR, .live = true, .doc = doc};
    const sgm_binding binding = {.get = get_state, .set = set_state, .release = sgm__free, .user = bound};
    return sgm_registry_bind(registry, &bound->option, &binding);
}

/* "2-dense.weights" becomes PARENT.2-dense.weights. A parameter counts more than an argument of its layer
 * that has its name. */
static sgm_status publish_state(sgm_trainer *trainer, sgm_registry *parent, const char *path,
                                const char *state, const char *doc)
{
    const char *dot = strrchr(path, '.'), *entry = dot != NULL ? dot + 1 : path;
    SGM_TRY(sgm__publish_path(parent, path, &parent));
    const sgm_option *known = sgm_registry_has(parent, entry) ? sgm_registry_option(parent, entry) : NULL;
    if (known != NULL && known->kind == SGM_KIND_TENSOR)
        return SGM_OK;
    if (sgm_registry_has(parent, entry))
        SGM_TRY(sgm_registry_remove(parent, entry));
    return bind_state(trainer, parent, entry, state, doc);
}

static sgm_status publish(sgm_trainer *trainer, const char *name)
{
    const struct place *place = place_of(name);
    sgm_registry *parent = sgm__registry_of(trainer);
    for (int i = 0; i < 2 && place->parents[i] != NULL; i++)
        SGM_TRY(sgm__publish_child(parent, place->parents[i], place->parents[i], &parent));
    return publish_state(trainer, parent, name + strlen(place->prefix), name, place->doc);
}

/* States that came since the last call: parameters as network.layers.LAYER.NAME, slots as
 * optimiser.slots.SLOT.LAYER.NAME; then gradients and updates of what was recorded. */
sgm_status sgm__trainer_publish_states(sgm_trainer *trainer)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    const sgm__strategy *strategy = sgm__sharing_of(trainer)->strategy;
    const char *name;
    for (; (name = sgm_session_state_at(learner->session, learner->published)) != NULL; learner->published++)
        if (strncmp(name, SGM__KEPT_PREFIX, strlen(SGM__KEPT_PREFIX)) != 0)
            SGM_TRY(publish(trainer, name));
    while (strategy != NULL && (name = strategy->next_elsewhere(trainer)) != NULL)
        SGM_TRY(publish(trainer, name));
    return learner->optimiser != NULL ? sgm__publish_kept(trainer) : SGM_OK;
}
