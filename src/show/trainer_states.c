/* How values of a trainer become entries of its registry, the part that all files of this folder share; and
 * the entries of states: parameters, the optimiser state, gradients and updates.
 *
 * An entry is bound to where its value is: reading calls `get`, setting calls `set`, both with the
 * trainer's lock, so they wait for the step that is running. A set that changes something is noted in the
 * journal (who, when, from what, to what), for undo, for journal.jsonl and for checkpoints. Tensors live
 * in the session and are copied when they are read; workers' results are collected first. The other values
 * are in trainer_values.c, trainer_settings.c, trainer_layers.c and trainer_iterators.c. */
#include "journal/change_record.h"
#include "journal/changes.h"
#include "network/rerecord.h"
#include "optim/optimiser.h"
#include "show/show.h"
#include "show/trainer_publish.h"
#include "trainer/trainer.h"
#include "trainer/trainer_lock.h"

#include <math.h>

/* A value as a person would type it: "0.1", "true", a text as it is; free with sgm__free. */
static char *plain_text(const sgm_content *content)
{
    switch (content->kind) {
    case SGM_KIND_BOOLEAN:
        return sgm__strdup(content->as.boolean ? "true" : "false");
    case SGM_KIND_INTEGER:
        return sgm__format("%lld", (long long)content->as.integer);
    case SGM_KIND_NUMBER:
        return sgm_content_describe(content);
    case SGM_KIND_TEXT:
        return sgm__strdup(content->as.text);
    case SGM_KIND_NOTHING:
    case SGM_KIND_TENSOR:
    case SGM_KIND_REGISTRY:
        break;
    }
    return sgm__strdup(sgm_kind_name(content->kind));
}

/* Notes a change for checkpoints (settings.c) and in the record (change_record.c), both in src/journal.
 * The value has been set already, so a failure to note it is only a warning. A replica's change is noted
 * with its owner. */
static void note_change(sgm_trainer *trainer, const char *identifier, const sgm_content *before,
                        const sgm_content *after)
{
    char *old = plain_text(before), *new = plain_text(after);
    trainer = sgm__sharing_of(trainer)->owner;
    sgm_status status =
        old != NULL && new != NULL ? sgm__settings_note(trainer, identifier, old, new) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = sgm__change_note(trainer, identifier, before, after);
    if (status != SGM_OK)
        sgm__log(SGM_LOG_WARNING, sgm_trainer_name(trainer), "the change of %s could not be recorded: %s",
                 identifier, sgm_last_error());
    sgm__free(old);
    sgm__free(new);
}

/* The registry calls this to read an entry. Values that another lock guards are read without the
 * trainer's, so they can be seen during a long step. */
static sgm_status get_bound(void *user, sgm_content *content)
{
    const sgm__bound *bound = user;
    if (bound->access->guarded)
        return bound->access->get(bound, content);
    SGM_TRY(sgm__trainer_enter(bound->trainer));
    sgm_status status = bound->access->get(bound, content);
    sgm__trainer_unlock(bound->trainer);
    return status;
}

/* Sets a value and notes the change, with the lock. Setting a value to the one it has is no change. */
static sgm_status change(const sgm__bound *bound, const sgm_content *content)
{
    sgm_content before = {0};
    SGM_TRY(bound->access->get(bound, &before));
    sgm_status status = SGM_OK;
    if (!sgm_content_equal(&before, content)) {
        status = bound->access->set(bound, content);
        if (status == SGM_OK)
            note_change(bound->trainer, bound->identifier, &before, content);
    }
    sgm_content_clear(&before);
    return status;
}

/* The registry calls this to set an entry. The trainer's lock is held over reading the old value and
 * setting the new one. */
static sgm_status set_bound(void *user, const sgm_content *content)
{
    const sgm__bound *bound = user;
    SGM_TRY(sgm__trainer_enter(bound->trainer));
    sgm_status status = change(bound, content);
    sgm__trainer_unlock(bound->trainer);
    return status;
}

sgm_status sgm__publish_value(sgm_trainer *trainer, sgm_registry *registry, const char *prefix,
                              const sgm_option *option, const sgm__access *access, const void *row)
{
    size_t prefix_size = strlen(prefix), name_size = strlen(option->name) + 1;
    sgm__bound *bound = sgm__calloc(1, sizeof(sgm__bound) + prefix_size + name_size);
    if (bound == NULL)
        return SGM_ERROR_MEMORY;
    bound->trainer = trainer;
    bound->access = access;
    bound->row = row;
    memcpy(bound->identifier, prefix, prefix_size);
    memcpy(bound->identifier + prefix_size, option->name, name_size);
    const sgm_binding binding = {
        .get = get_bound, .set = access->set != NULL ? set_bound : NULL, .release = sgm__free, .user = bound};
    return sgm_registry_bind(registry, option, &binding);
}

/* A value of that name is an error: a data set cannot be called "epoch". */
sgm_status sgm__publish_child(sgm_registry *registry, const char *name, const char *tag, sgm_registry **child)
{
    sgm_content content = {0};
    if (sgm_registry_has(registry, name)) {
        SGM_TRY(sgm_registry_get(registry, name, &content));
        bool is_registry = content.kind == SGM_KIND_REGISTRY;
        *child = is_registry ? content.as.registry : NULL;
        sgm_content_clear(&content);
        return is_registry ? SGM_OK
                           : sgm_fail(SGM_ERROR_ARGUMENT,
                                      "'%s' is a value of the trainer; choose another name", name);
    }
    sgm_registry *made = sgm_registry_create();
    sgm_status status = made != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    if (status == SGM_OK && tag != NULL)
        status = sgm_registry_add_tag(made, tag);
    if (status == SGM_OK)
        status = sgm_registry_put(registry, name, made);
    *child = made;
    sgm_registry_free(made);
    return status;
}

/* Walks down the parts of "2-dense.inner." that end with a dot, and makes the registries that are missing.
 * The text behind the dash of a part becomes its tag, by which patterns find it. */
static sgm_status publish_path(sgm_registry *registry, const char *path, sgm_registry **child)
{
    char part[128];
    const char *dot;
    *child = registry;
    for (; (dot = strchr(path, '.')) != NULL; path = dot + 1) {
        size_t length = (size_t)(dot - path);
        if (length >= sizeof part)
            return sgm_fail(SGM_ERROR_ARGUMENT, "the name '%.140s' has a part that is too long", path);
        memcpy(part, path, length);
        part[length] = '\0';
        const char *dash = strchr(part, '-');
        SGM_TRY(sgm__publish_child(*child, part, dash != NULL ? dash + 1 : NULL, child));
    }
    return SGM_OK;
}

/* Equal rows share one copy, so recording a network anew does not let the list grow. */
const sgm_option *sgm__trainer_keep_row(sgm_trainer *trainer, const sgm_option *row)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    for (size_t i = 0; i < learner->row_count; i++) {
        const sgm_option *known = learner->rows[i];
        if (strcmp(known->name, row->name) == 0 && known->doc == row->doc && known->kind == row->kind &&
            known->effect == row->effect)
            return known;
    }
    if (sgm__reserve(&learner->rows, &learner->row_capacity, learner->row_count + 1, sizeof(sgm_option *)) !=
        SGM_OK)
        return NULL;
    size_t size = strlen(row->name) + 1;
    sgm_option *copy = sgm__alloc(sizeof *copy + size);
    if (copy == NULL)
        return NULL;
    *copy = *row;
    copy->name = memcpy(copy + 1, row->name, size);
    learner->rows[learner->row_count++] = copy;
    return copy;
}

/* --- states --- */

/* Where states go in the registry, by the beginning of their names in the session; the first row that fits
 * counts. */
static const struct place {
    const char *prefix;
    const char *parents[2]; /* names of registries from the trainer's down; NULL: there is only one */
    const char *doc;
} places[] = {
    {SGM__SLOT_PREFIX, {"optimiser", "slots"}, "the optimiser state of a parameter"},
    {SGM__AVERAGE_PREFIX, {"network", "averages"}, "the moving average of a parameter"},
    {"random.", {"random", NULL}, "where the stream of random numbers is"},
    {"", {"network", "layers"}, "a parameter"},
};

/* The last row fits every name. */
static const struct place *place_of(const char *name)
{
    const struct place *place = places;
    while (!sgm__begins_with(name, place->prefix))
        place++;
    return place;
}

/* Whether the identifier is below these parents; *name becomes the rest: "2-dense.weights" of
 * "network.layers.2-dense.weights". */
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

/* Turns the identifier back into the name of a state and asks the session for its type. Gradients and
 * updates have the type of their parameter. With ranks that divide the optimiser's states, the strategy
 * knows those of other ranks. */
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
        found = name_in(kept[i], identifier, &name);
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

/* The moving average of a parameter; sgm_tensor_free. NULL: it has none. */
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

/* What the entry of a state is bound to; the registry's binding owns it. */
typedef struct bound_state {
    sgm_trainer *trainer;
    sgm_option option;
    char name[]; /* the state's name in the session, a 0, then the entry's name, to which the option points */
} bound_state;

/* A copy of the state, for sgm_tensor_free, collected from workers or other ranks first; NULL: that
 * failed. With the trainer's lock. */
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

/* Notes that a state was set, with its identifier in the registry. It is not noted for checkpoints, which
 * have the tensor itself. */
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

/* Sets a state between two steps. Old value and old average are read first, for the record: setting a
 * parameter begins its average anew. Results of earlier passes over data are dropped even if setting
 * failed in the middle. */
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

/* Makes the entry `entry` for the state `state`. */
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

/* "2-dense.weights" becomes PARENT.2-dense.weights. Where a layer has an argument of the parameter's name,
 * the parameter takes its place. */
static sgm_status publish_state(sgm_trainer *trainer, sgm_registry *parent, const char *path,
                                const char *state, const char *doc)
{
    const char *dot = strrchr(path, '.'), *entry = dot != NULL ? dot + 1 : path;
    SGM_TRY(publish_path(parent, path, &parent));
    const sgm_option *known = sgm_registry_has(parent, entry) ? sgm_registry_option(parent, entry) : NULL;
    if (known != NULL && known->kind == SGM_KIND_TENSOR)
        return SGM_OK;
    if (sgm_registry_has(parent, entry))
        SGM_TRY(sgm_registry_remove(parent, entry));
    return bind_state(trainer, parent, entry, state, doc);
}

/* Shows a state of the session. */
static sgm_status publish(sgm_trainer *trainer, const char *name)
{
    const struct place *place = place_of(name);
    sgm_registry *parent = sgm__registry_of(trainer);
    for (int i = 0; i < 2 && place->parents[i] != NULL; i++)
        SGM_TRY(sgm__publish_child(parent, place->parents[i], place->parents[i], &parent));
    return publish_state(trainer, parent, name + strlen(place->prefix), name, place->doc);
}

/* --- gradients and updates --- */

/* Gradients and updates cost nothing until somebody reads one. Then the training step is recorded anew,
 * with states that keep them from the next iteration on. The step is recorded without them again once all
 * readers have said for how long they read, and that time is over. */
typedef struct kept_kind {
    sgm_option option;  /* a row for all, without a name */
    const char *prefix; /* of identifiers; state_prefix: of names in the session */
    const char *state_prefix;
    bool updates;
} kept_kind;

static const kept_kind kinds[] = {
    {{.kind = SGM_KIND_TENSOR,
      .read_only = true,
      .doc =
          "gradient of the newest update, averaged over its minibatches, before clipping and weight decay"},
     "optimiser.gradients.",
     SGM__GRADIENT_PREFIX,
     false},
    {{.kind = SGM_KIND_TENSOR,
      .read_only = true,
      .doc = "the step that the newest update took: the parameter after it less the one before"},
     "optimiser.updates.",
     SGM__UPDATE_PREFIX,
     true},
};

/* Has gradients or updates kept from the next iteration on: until the time that the reader has given
 * (sgm__trainer_read_for), or, without one, as long as the trainer lives. A later end wins over an earlier
 * one. `from` notes the update at which keeping began, as older values are not there. */
static void ask(sgm_trainer *trainer, const kept_kind *kind)
{
    double *until =
        kind->updates ? &sgm__kept_of(trainer)->updates_until : &sgm__kept_of(trainer)->gradients_until;
    bool kept = *until > 0;
    *until = fmax(*until, sgm__kept_of(trainer)->read_for > 0 ? sgm__now() + sgm__kept_of(trainer)->read_for
                                                              : INFINITY);
    if (kept)
        return;
    sgm__kept_of(trainer)->from = sgm__position_of(trainer)->updates;
    sgm__trainer_forget_programs(trainer);
}

/* `until` is 0 while nothing is kept, and infinite where a reader gave no end. */
void sgm__trainer_let_go_of_kept(sgm_trainer *trainer)
{
    sgm__trainer_kept *kept = sgm__kept_of(trainer);
    double *const ends[] = {&kept->gradients_until, &kept->updates_until};
    for (size_t i = 0; i < 2; i++)
        if (*ends[i] > 0 && isfinite(*ends[i]) && sgm__now() > *ends[i]) {
            *ends[i] = 0;
            sgm__trainer_forget_programs(trainer);
        }
}

/* The value of the newest update since keeping began. Before that there is none, and the error says to
 * read again after the next update. With an operator the value may be in a worker: find_kept says which
 * trainer has it. */
static sgm_status get_kept(const sgm__bound *bound, sgm_content *content)
{
    sgm_trainer *trainer = bound->trainer, *owner = sgm__sharing_of(trainer)->owner;
    const kept_kind *kind = bound->row;
    const char *what = kind->updates ? "updates" : "gradients";
    const char *name = bound->identifier + strlen(kind->prefix);
    const sgm_parameter *parameter = sgm__network_parameter(sgm__learner_of(trainer)->network, name);
    if (parameter == NULL || sgm__trainer_is_frozen(trainer, name))
        return sgm_fail(SGM_ERROR_STATE, "%s is frozen and has no %s", name, what);
    if (sgm__sharing_of(owner)->strategy != NULL)
        SGM_TRY(sgm__sharing_of(owner)->strategy->find_kept(bound->trainer, name, what, &trainer));
    ask(owner, kind);
    SGM_TRY(sgm__trainer_collect(trainer));
    char *state = sgm__format("%s%s", kind->state_prefix, name);
    if (state == NULL)
        return SGM_ERROR_MEMORY;
    bool is_there = sgm__position_of(trainer)->updates > sgm__kept_of(owner)->from &&
                    sgm_session_has(sgm__learner_of(trainer)->session, state);
    sgm_tensor *value = is_there ? sgm_session_get(sgm__learner_of(trainer)->session, state) : NULL;
    sgm__free(state);
    if (!is_there)
        return sgm_fail(
            SGM_ERROR_STATE,
            "%s are kept from now on, as somebody reads them: there are some after the next update", what);
    *content = sgm_tensor_content(value);
    return value != NULL ? SGM_OK : sgm_last_status();
}

static const sgm__access kept_access = {.get = get_kept};

/* "2-dense.weights" becomes PREFIX2-dense.weights, for gradients and for updates. */
static sgm_status publish_kept(sgm_trainer *trainer, sgm_registry *parent, const kept_kind *kind,
                               const char *parameter)
{
    const char *dot = strrchr(parameter, '.');
    const char *entry = dot != NULL ? dot + 1 : parameter;
    sgm_option row = kind->option;
    row.name = entry;
    const sgm_option *kept = sgm__trainer_keep_row(trainer, &row);
    char *prefix = sgm__format("%s%.*s", kind->prefix, (int)(entry - parameter), parameter);
    sgm_status status = kept != NULL && prefix != NULL
                            ? publish_path(parent, prefix + strlen(kind->prefix), &parent)
                            : SGM_ERROR_MEMORY;
    if (status == SGM_OK && !sgm_registry_has(parent, entry))
        status = sgm__publish_value(trainer, parent, prefix, kept, &kept_access, kind);
    sgm__free(prefix);
    return status;
}

/* Shows gradients and updates of all trainable parameters of the recording. */
static sgm_status publish_all_kept(sgm_trainer *trainer)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    static const char *const names[] = {"gradients", "updates"};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        sgm_registry *parent;
        SGM_TRY(sgm__publish_child(sgm__registry_of(trainer), "optimiser", "optimiser", &parent));
        SGM_TRY(sgm__publish_child(parent, names[k], names[k], &parent));
        for (size_t i = 0; i < learner->recording.parameter_count; i++)
            if (learner->recording.parameters[i].trainable)
                SGM_TRY(publish_kept(trainer, parent, &kinds[k], learner->recording.parameters[i].name));
    }
    return SGM_OK;
}

/* Parameters become network.layers.LAYER.NAME, slots optimiser.slots.SLOT.LAYER.NAME; then come gradients
 * and updates. `published` is the number of the session's states that have entries, as the session only
 * appends. */
sgm_status sgm__trainer_publish_states(sgm_trainer *trainer)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    const sgm__strategy *strategy = sgm__sharing_of(trainer)->strategy;
    const char *name;
    for (; (name = sgm_session_state_at(learner->session, learner->published)) != NULL; learner->published++)
        if (!sgm__begins_with(name, SGM__KEPT_PREFIX))
            SGM_TRY(publish(trainer, name));
    while (strategy != NULL && (name = strategy->next_elsewhere(trainer)) != NULL)
        SGM_TRY(publish(trainer, name));
    return learner->optimiser != NULL ? publish_all_kept(trainer) : SGM_OK;
}
