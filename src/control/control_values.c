/* Commands about values: list (which entries there are), get (what they are now) and set.
 *
 * Identifiers may have wildcards; a set changes all that match or none. Values come and go as texts,
 * tensors also as nested lists or .npy files. The registry checks and sets; src/show/ binds its entries to
 * the trainer and notes changes in the journal. The functions here read texts, and turn what the registry
 * says into JSON (control_answer.c). control_command.c has the table of all commands and calls these. */
#include "control/control_internal.h"
#include "journal/changes.h"
#include "show/show.h"
#include "show/tensor_file.h"
#include "show/trainer_publish.h"
#include "trainer/trainer.h"
#include "trainer/trainer_lock.h"

#include <jansson.h>

/* --- texts --- */

/* The shape of a nested list, read along its first elements; fill() finds where other parts differ. */
static sgm_status shape_of(const json_t *value, sgm_shape *shape)
{
    *shape = sgm_scalar_shape();
    for (; json_is_array(value); value = json_array_get(value, 0)) {
        if (shape->rank == SGM_MAX_RANK || json_array_size(value) == 0)
            return sgm_fail(SGM_ERROR_FORMAT, "the list is empty, or nested too deeply");
        shape->dims[shape->rank++] = (int64_t)json_array_size(value);
    }
    return SGM_OK;
}

/* Writes the numbers of a nested list to *to in row-major order. `depth`: the dimension that `value` is a
 * part along; at depth == rank it is a number. */
static sgm_status fill(const json_t *value, const sgm_shape *shape, int32_t depth, double **to)
{
    if (depth == shape->rank) {
        if (!json_is_number(value))
            return sgm_fail(SGM_ERROR_FORMAT, "the list has something in it that is no number, or is uneven");
        *(*to)++ = json_number_value(value);
        return SGM_OK;
    }
    if (!json_is_array(value) || (int64_t)json_array_size(value) != shape->dims[depth])
        return sgm_fail(SGM_ERROR_FORMAT, "the list is uneven: its parts have different lengths");
    for (size_t i = 0; i < json_array_size(value); i++)
        SGM_TRY(fill(json_array_get(value, i), shape, depth + 1, to));
    return SGM_OK;
}

/* A float64 tensor of a nested list, or of a number; NULL with an error. */
static sgm_tensor *tensor_of(const json_t *list)
{
    sgm_shape shape;
    if (shape_of(list, &shape) != SGM_OK)
        return NULL;
    double *values = sgm__calloc((size_t)sgm_shape_elements(&shape) + 1, sizeof *values), *to = values;
    sgm_tensor *tensor = NULL;
    if (values != NULL && fill(list, &shape, 0, &to) == SGM_OK)
        tensor = sgm_tensor_create_from(SGM_FLOAT64, &shape, values);
    sgm__free(values);
    return tensor;
}

/* Reads a tensor of the type of `like` from JSON. */
static sgm_status tensor_parse(const char *text, const sgm_tensor *like, sgm_tensor **made)
{
    *made = NULL;
    json_t *list = json_loads(text, JSON_DECODE_ANY, NULL);
    sgm_status status =
        json_is_array(list) || json_is_number(list)
            ? sgm__tensor_convert(tensor_of(list), like, made)
            : sgm_fail(SGM_ERROR_FORMAT, "expected a list such as [0, 1, 2], or a .npy file, got '%.60s'",
                       text);
    json_decref(list);
    return status;
}

/* --- list: identifiers with their rows and, where that is asked for, their values --- */

#define MAXIMUM_LEVELS 16     /* of registries below each other; what is deeper is not listed */
#define MAXIMUM_SECONDS 0.002 /* the longest time that listing keeps the trainer's lock */

/* A list in the making. While it takes a break the registry may change: an entry that goes meanwhile is
 * missing, or listed although it is gone. */
typedef struct listing {
    const sgm__control_request *command;
    json_t *entries;
    bool values;   /* list also values, and the tags of each entry's registry */
    bool settings; /* leave out what cannot be set */
    bool locked;   /* this thread has the trainer's lock, since: */
    double since;
} listing;

/* --- the trainer's lock, with breaks --- */

static sgm_status lock(listing *l)
{
    SGM_TRY(sgm__trainer_enter(l->command->call->trainer));
    l->locked = true;
    l->since = sgm__now();
    return SGM_OK;
}

static void unlock(listing *l)
{
    if (l->locked)
        sgm__trainer_unlock(l->command->call->trainer);
    l->locked = false;
}

/* Between two entries: gives the lock to the training for a moment when it was held for MAXIMUM_SECONDS. */
static sgm_status let_train(listing *l)
{
    if (sgm__now() - l->since < MAXIMUM_SECONDS)
        return SGM_OK;
    unlock(l);
    return lock(l);
}

/* --- entries --- */

/* Only values that can be read from a text, or a file, may be set from here: booleans, numbers, texts and
 * tensors, but no registries. */
static bool is_settable(sgm_kind kind, const sgm_option *option)
{
    return (option == NULL || !option->read_only) && kind >= SGM_KIND_BOOLEAN && kind <= SGM_KIND_TENSOR;
}

/* Adds the present value. Of tensors only the type is told: reading them would copy all parameters, and
 * would have gradients and updates kept by every step from now on (src/show/trainer_states.c). An entry
 * that cannot be read just now gets an empty text. */
static void add_value(listing *l, json_t *item, const char *identifier, sgm_registry *registry,
                      const char *name, sgm_kind kind)
{
    sgm_content content = {0};
    sgm_type type;
    char *text = NULL;
    char shape[128];
    if (kind == SGM_KIND_TENSOR) {
        if (sgm__trainer_tensor_type(l->command->call->trainer, identifier, &type) == SGM_OK)
            text = sgm__format("%s %s", sgm_dtype_name(type.dtype),
                               sgm_shape_text(&type.shape, shape, sizeof shape));
    } else if (sgm_registry_get(registry, name, &content) == SGM_OK) {
        text = sgm_content_describe(&content);
    }
    json_object_set_new(item, "value", sgm__answer_content(&content));
    json_object_set_new(item, "text", sgm__answer_text(text != NULL ? text : ""));
    sgm_string_free(text);
    sgm_content_clear(&content);
    sgm_clear_error(); /* of a value that cannot be read just now */
}

static sgm_status add_tags(json_t *item, sgm_registry *registry)
{
    char **tags;
    size_t count;
    json_t *list = json_array();
    json_object_set_new(item, "tags", list);
    SGM_TRY(sgm_registry_tags(registry, &tags, &count));
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, sgm__answer_text(tags[i]));
    sgm_names_free(tags, count);
    return SGM_OK;
}

/* Adds one entry to the list; `kind` is that of its row, or of its value. */
static sgm_status add_entry(listing *l, sgm_registry *registry, const char *name, const char *identifier,
                            sgm_kind kind)
{
    SGM_TRY(let_train(l));
    const sgm_option *option = sgm_registry_option(registry, name);
    bool settable = is_settable(kind, option);
    if (l->settings && !settable)
        return SGM_OK;
    json_t *item = json_object();
    json_object_set_new(item, "identifier", sgm__answer_text(identifier));
    json_object_set_new(item, "kind", json_string(sgm_kind_name(kind)));
    json_object_set_new(item, "settable", json_boolean(settable));
    if (option != NULL) {
        sgm__answer_option(item, option, settable);
        json_object_set_new(item, "live", json_boolean(option->live));
    }
    if (settable)
        json_object_set_new(item, "effect", sgm__answer_text(sgm__option_effect(option)));
    json_array_append_new(l->entries, item);
    if (!l->values)
        return SGM_OK;
    add_value(l, item, identifier, registry, name, kind);
    return add_tags(item, registry);
}

static sgm_status list_below(listing *l, sgm_registry *registry, const char *prefix, int level);

/* Lists an entry, or what is below it. An entry with a row says its kind; one without is read to see
 * whether it is a registry. */
static sgm_status list_entry(listing *l, sgm_registry *registry, const char *name, const char *prefix,
                             int level)
{
    const sgm_option *option = sgm_registry_option(registry, name);
    sgm_content content = {0};
    if (option == NULL || option->kind == SGM_KIND_REGISTRY)
        SGM_TRY(sgm_registry_get(registry, name, &content));
    sgm_kind kind = option != NULL ? option->kind : content.kind;
    char *identifier = sgm__format("%s%s%s", prefix, *prefix != '\0' ? "." : "", name);
    sgm_status status = identifier != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    if (status == SGM_OK && content.kind == SGM_KIND_REGISTRY)
        status = list_below(l, content.as.registry, identifier, level + 1);
    else if (status == SGM_OK)
        status = add_entry(l, registry, name, identifier, kind);
    sgm__free(identifier);
    sgm_content_clear(&content);
    return status;
}

/* Lists all entries of a registry whose identifier is `prefix`, and those below. */
static sgm_status list_below(listing *l, sgm_registry *registry, const char *prefix, int level)
{
    char **names;
    size_t count;
    sgm_status status = SGM_OK;
    if (level > MAXIMUM_LEVELS)
        return SGM_OK;
    SGM_TRY(sgm_registry_names(registry, &names, &count));
    for (size_t i = 0; i < count && status == SGM_OK; i++)
        status = list_entry(l, registry, names[i], prefix, level);
    sgm_names_free(names, count);
    return status;
}

/* Gives the registry that has an entry, retained, and the entry's name in it, which points into
 * `identifier`. *parent NULL: there is no such registry. */
static sgm_status parent_of(sgm_registry *root, const char *identifier, sgm_registry **parent,
                            const char **name)
{
    const char *dot = strrchr(identifier, '.');
    sgm_content content = {0};
    *name = dot != NULL ? dot + 1 : identifier;
    *parent = NULL;
    if (dot == NULL) {
        *parent = sgm_registry_retain(root);
        return SGM_OK;
    }
    char *path = sgm__strndup(identifier, (size_t)(dot - identifier));
    sgm_status status = path != NULL ? sgm_registry_resolve_one(root, path, &content) : SGM_ERROR_MEMORY;
    sgm__free(path);
    if (status == SGM_OK && content.kind == SGM_KIND_REGISTRY)
        *parent = content.as.registry;
    else
        sgm_content_clear(&content);
    return status;
}

/* The row of an entry; NULL: it has none. The row outlives the reference to its registry, as the trainer
 * keeps it. */
static const sgm_option *row_of(sgm_registry *root, const char *identifier)
{
    sgm_registry *parent;
    const char *name;
    if (parent_of(root, identifier, &parent, &name) != SGM_OK || parent == NULL)
        return NULL;
    const sgm_option *option = sgm_registry_option(parent, name);
    sgm_registry_free(parent);
    return option;
}

/* Lists what is below a registry that matches; any other match is listed with its row, which its parent
 * has. */
static sgm_status list_match(listing *l, sgm_registry *root, const sgm_match *match)
{
    if (match->content.kind == SGM_KIND_REGISTRY)
        return list_below(l, match->content.as.registry, match->identifier, 1);
    sgm_registry *parent;
    const char *name;
    SGM_TRY(parent_of(root, match->identifier, &parent, &name));
    sgm_status status =
        parent != NULL ? add_entry(l, parent, name, match->identifier, match->content.kind) : SGM_OK;
    sgm_registry_free(parent);
    return status;
}

/* All entries that match. No match is an error, which names the nearest entries; one that has come into
 * being since gives no matches and no error. */
static sgm_status find(const sgm__control_request *c, const char *identifier, sgm_matches *matches)
{
    sgm_registry *root = sgm__registry_of(c->call->trainer);
    SGM_TRY(sgm_registry_resolve(root, identifier, matches));
    if (matches->count > 0)
        return SGM_OK;
    sgm_matches_free(matches); /* of none, too */
    sgm_content none = {0};
    sgm_status status = sgm_registry_resolve_one(root, identifier, &none);
    if (status != SGM_OK && strcmp(identifier, "data.batch") == 0) /* the key in a file of settings */
        return sgm_fail(status, "'data.batch' of a file is iterator.minibatch_size of a run");
    SGM_TRY(status);
    sgm_content_clear(&none);
    return SGM_OK;
}

/* The whole registry, or what an identifier matches. */
static sgm_status list_all(listing *l, const char *identifier)
{
    sgm_registry *root = sgm__registry_of(l->command->call->trainer);
    sgm_matches matches = {0};
    if (identifier == NULL)
        return list_below(l, root, "", 0);
    SGM_TRY(find(l->command, identifier, &matches));
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < matches.count && status == SGM_OK; i++)
        status = list_match(l, root, &matches.items[i]);
    sgm_matches_free(&matches);
    return status;
}

/* Entries that were listed before an error stay in the answer, which sgm__control_answer then clears. */
static sgm_status list_as(sgm__control_request *c, listing l, const char *key)
{
    l.command = c;
    l.entries = json_array();
    json_object_set_new(c->answer, key, l.entries);
    sgm_status status = lock(&l);
    if (status == SGM_OK)
        status = list_all(&l, sgm__control_field(c, "identifier"));
    unlock(&l);
    return status;
}

sgm_status sgm__control_list(sgm__control_request *c)
{
    const char *values = sgm__control_field(c, "values");
    if (values != NULL && strcmp(values, "true") != 0 && strcmp(values, "false") != 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "list: 'values' is true or false, not '%.100s'", values);
    return list_as(c, (listing){.values = values != NULL && strcmp(values, "true") == 0}, "entries");
}

sgm_status sgm__control_list_settings(sgm__control_request *c)
{
    return list_as(c, (listing){.settings = true}, "settings");
}

/* --- get and set --- */

/* Writes the one tensor that matches to the file that the request names. */
static sgm_status save_tensor(const sgm__control_request *c, const sgm_matches *matches)
{
    const char *file = sgm__control_field(c, "file");
    if (matches->count != 1 || matches->items[0].content.kind != SGM_KIND_TENSOR)
        return sgm_fail(SGM_ERROR_TYPE, "a file takes one tensor, but '%.100s' is %s",
                        sgm__control_field(c, "identifier"),
                        matches->count == 1 ? sgm_kind_name(matches->items[0].content.kind)
                                            : "several values");
    return sgm_npy_save(file, matches->items[0].content.as.tensor);
}

/* Adds identifier, kind, value and text of each match to the answer. */
static sgm_status add_values(sgm__control_request *c, const sgm_matches *matches)
{
    json_t *list = json_array();
    for (size_t i = 0; i < matches->count; i++)
        sgm__answer_add(list, matches->items[i].identifier, &matches->items[i].content);
    return json_object_set_new(c->answer, "values", list) == 0 ? SGM_OK : sgm__fail_memory(64);
}

/* A tensor's elements are in its text if there are few of them; "file" gets all. */
sgm_status sgm__control_get(sgm__control_request *c)
{
    sgm_matches matches = {0};
    SGM_TRY(find(c, sgm__control_field(c, "identifier"), &matches));
    sgm_status status = add_values(c, &matches);
    if (status == SGM_OK && sgm__control_field(c, "file") != NULL)
        status = save_tensor(c, &matches);
    sgm_matches_free(&matches);
    return status;
}

/* Reads the field "value" as the kind of the first match. If other matches have other kinds, the registry
 * refuses to set them. */
static sgm_status parse_value(const sgm__control_request *c, sgm_content *content)
{
    const char *identifier = sgm__control_field(c, "identifier");
    sgm_matches matches = {0};
    SGM_TRY(find(c, identifier, &matches));
    sgm_status status = SGM_OK;
    if (matches.count > 0) {
        status = sgm_content_parse(sgm__control_field(c, "value"), matches.items[0].content.kind, content);
        if (status != SGM_OK)
            sgm__fail_within("%s", matches.items[0].identifier);
    }
    sgm_matches_free(&matches);
    return status;
}

/* Sets all matches, none of which is a tensor, to one value; or, with `check_only`, checks it for them. */
static sgm_status set_plain(sgm__control_request *c, bool check_only)
{
    const sgm_resolve_set_options options = {.struct_size = sizeof options, .check_only = check_only};
    sgm_content content = {0};
    if (sgm__control_field(c, "file") != NULL)
        return sgm_fail(SGM_ERROR_TYPE, "'%.100s' is no tensor: a file is for tensors",
                        sgm__control_field(c, "identifier"));
    SGM_TRY(parse_value(c, &content));
    sgm_status status = sgm_registry_resolve_set(
        sgm__registry_of(c->call->trainer), sgm__control_field(c, "identifier"), content, &options, NULL);
    sgm_content_clear(&content);
    return status;
}

/* Replaces the tensor of each match by one that is read from the request: each is given the shape and type
 * that its own entry has. */
static sgm_status read_tensors(const sgm__control_request *c, sgm_matches *matches)
{
    const char *file = sgm__control_field(c, "file"), *text = sgm__control_field(c, "value");
    for (size_t i = 0; i < matches->count; i++) {
        sgm_content *content = &matches->items[i].content;
        sgm_tensor *made = NULL;
        if (content->kind != SGM_KIND_TENSOR)
            return sgm_fail(SGM_ERROR_TYPE, "%s is no tensor", matches->items[i].identifier);
        sgm_status status = file != NULL ? sgm__tensor_load(file, content->as.tensor, &made)
                                         : tensor_parse(text, content->as.tensor, &made);
        if (status != SGM_OK)
            return sgm__fail_within("%s", matches->items[i].identifier);
        sgm_tensor_free(content->as.tensor);
        content->as.tensor = made;
    }
    return SGM_OK;
}

/* All tensors are read before the first is set, so a text or file that fits only some of them changes
 * nothing. */
static sgm_status set_tensors(const sgm__control_request *c, sgm_matches *matches)
{
    SGM_TRY(read_tensors(c, matches));
    for (size_t i = 0; i < matches->count; i++)
        SGM_TRY(sgm_registry_resolve_set(sgm__registry_of(c->call->trainer), matches->items[i].identifier,
                                         matches->items[i].content, NULL, NULL));
    return SGM_OK;
}

/* Answers with the values as they are after the set, and with when each takes effect. */
static sgm_status answer_set(sgm__control_request *c, const char *set)
{
    sgm_registry *root = sgm__registry_of(c->call->trainer);
    sgm_matches matches = {0};
    size_t i;
    json_t *item;
    SGM_TRY(find(c, set, &matches));
    sgm_status status = add_values(c, &matches);
    sgm_matches_free(&matches);
    json_array_foreach(json_object_get(c->answer, "values"), i, item)
    {
        const char *identifier = json_string_value(json_object_get(item, "identifier"));
        const sgm_option *option = identifier != NULL ? row_of(root, identifier) : NULL;
        json_object_set_new(item, "effect", sgm__answer_text(sgm__option_effect(option)));
    }
    return status;
}

static bool is_of_tensors(const sgm_matches *matches)
{
    return matches->count > 0 && matches->items[0].content.kind == SGM_KIND_TENSOR;
}

/* What a set is about. */
static sgm_status find_to_set(const sgm__control_request *c, sgm_matches *matches)
{
    if (sgm__control_field(c, "value") == NULL && sgm__control_field(c, "file") == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "set needs a value%s", c->call->files ? " or a file" : "");
    return find(c, sgm__control_field(c, "identifier"), matches);
}

/* With the trainer's lock. `changed_by` names the asker to the journal for the time of the set, and
 * changes between sgm__changes_begin and sgm__changes_end are one change for undo. */
sgm_status sgm__control_set(sgm__control_request *c)
{
    sgm_trainer *trainer = c->call->trainer;
    const char *before = sgm__journal_of(trainer)->changed_by;
    sgm_matches matches = {0};
    SGM_TRY(find_to_set(c, &matches));
    bool tensors = is_of_tensors(&matches);
    sgm__journal_of(trainer)->changed_by = c->call->who;
    sgm__changes_begin(trainer);
    sgm_status status = tensors ? set_tensors(c, &matches) : set_plain(c, false);
    sgm__changes_end(trainer);
    sgm__journal_of(trainer)->changed_by = before;
    sgm_matches_free(&matches);
    return status == SGM_OK ? answer_set(c, sgm__control_field(c, "identifier")) : status;
}

/* Tells of each match what it is and what it would be. A text is shown as the entry's kind has it. */
static sgm_status tell_plain(sgm__control_request *c, const sgm_matches *matches)
{
    sgm_content value = {0};
    sgm_status status = SGM_OK;
    SGM_TRY(set_plain(c, true));
    for (size_t i = 0; i < matches->count && status == SGM_OK; i++) {
        const sgm_match *match = &matches->items[i];
        status = sgm_content_parse(sgm__control_field(c, "value"), match->content.kind, &value);
        if (status == SGM_OK)
            status = sgm__would_change(
                c, match->identifier, sgm__answer_content(&match->content), sgm__answer_content(&value),
                sgm__option_effect(row_of(sgm__registry_of(c->call->trainer), match->identifier)));
        sgm_content_clear(&value);
    }
    return status;
}

/* Both tensors as the journal would show them. The new ones take the places of the old ones in `matches`. */
static sgm_status tell_tensors(sgm__control_request *c, sgm_matches *matches)
{
    sgm_registry *root = sgm__registry_of(c->call->trainer);
    json_t *old = json_array();
    for (size_t i = 0; i < matches->count; i++)
        json_array_append_new(old, sgm__content_change_json(&matches->items[i].content));
    sgm_status status = read_tensors(c, matches);
    for (size_t i = 0; i < matches->count && status == SGM_OK; i++)
        status = sgm__would_change(c, matches->items[i].identifier, json_incref(json_array_get(old, i)),
                                   sgm__content_change_json(&matches->items[i].content),
                                   sgm__option_effect(row_of(root, matches->items[i].identifier)));
    json_decref(old);
    return status;
}

/* Checks kind, bounds, words and shapes; what the trainer itself refuses beyond that, only a set can tell. */
sgm_status sgm__control_try_set(sgm__control_request *c)
{
    sgm_matches matches = {0};
    SGM_TRY(find_to_set(c, &matches));
    sgm_status status = is_of_tensors(&matches) ? tell_tensors(c, &matches) : tell_plain(c, &matches);
    sgm_matches_free(&matches);
    return status;
}

/* --- freeze and unfreeze: they set the list of what is frozen --- */

static sgm_status change_frozen(sgm__control_request *c, bool freeze)
{
    sgm_trainer *trainer = c->call->trainer;
    const char *before = sgm__journal_of(trainer)->changed_by;
    sgm__journal_of(trainer)->changed_by = c->call->who;
    sgm_status status = sgm__trainer_set_frozen(trainer, sgm__control_field(c, "pattern"), freeze);
    sgm__journal_of(trainer)->changed_by = before;
    return status == SGM_OK ? answer_set(c, SGM__FROZEN) : status;
}

static sgm_status try_frozen(sgm__control_request *c, bool freeze)
{
    sgm_registry *root = sgm__registry_of(c->call->trainer);
    sgm_content now = {0};
    SGM_TRY(sgm_registry_resolve_one(root, SGM__FROZEN, &now));
    char *text = sgm__trainer_frozen_with(c->call->trainer, sgm__control_field(c, "pattern"), freeze);
    sgm_status status =
        text == NULL ? sgm__last_failure()
                     : sgm__would_change(c, SGM__FROZEN, sgm__answer_content(&now), sgm__answer_text(text),
                                         sgm__option_effect(row_of(root, SGM__FROZEN)));
    sgm__free(text);
    sgm_content_clear(&now);
    return status;
}

sgm_status sgm__control_freeze(sgm__control_request *c)
{
    return change_frozen(c, true);
}

sgm_status sgm__control_try_freeze(sgm__control_request *c)
{
    return try_frozen(c, true);
}

sgm_status sgm__control_unfreeze(sgm__control_request *c)
{
    return change_frozen(c, false);
}

sgm_status sgm__control_try_unfreeze(sgm__control_request *c)
{
    return try_frozen(c, false);
}
