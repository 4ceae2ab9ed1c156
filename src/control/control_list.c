/* Commands about what there is: identifiers with their rows and, where that is asked for, their values. */
#include "control/control_internal.h"
#include "show/trainer_publish.h"
#include "trainer/trainer.h"
#include "trainer/trainer_lock.h"

#define MAXIMUM_LEVELS 16
#define MAXIMUM_SECONDS 0.002 /* that a training waits for a part of a long list */

typedef struct listing {
    const sgm__control_request *command;
    json_t *entries;
    bool values; /* what they are, and which tags their registry has */
    bool locked; /* the trainer, since: */
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

/* Between two entries. */
static sgm_status let_train(listing *l)
{
    if (sgm__now() - l->since < MAXIMUM_SECONDS)
        return SGM_OK;
    unlock(l);
    return lock(l);
}

/* --- entries --- */

/* Only what can be read from a text, or a file, may be set from here. */
static bool is_settable(sgm_kind kind, const sgm_option *option)
{
    return (option == NULL || !option->read_only) && kind >= SGM_KIND_BOOLEAN && kind <= SGM_KIND_TENSOR;
}

/* A default of 0 often stands for another one that depends on something else. */
static json_t *default_of(const sgm_option *option)
{
    if (option->kind == SGM_KIND_BOOLEAN)
        return json_boolean(option->default_value != 0);
    if (option->kind == SGM_KIND_TEXT && option->default_text != NULL)
        return sgm__answer_text(option->default_text);
    if (option->kind == SGM_KIND_INTEGER && option->default_value != 0)
        return json_integer((json_int_t)option->default_value);
    return option->kind == SGM_KIND_NUMBER && option->default_value != 0
               ? sgm__answer_number(option->default_value)
               : NULL;
}

static void add_row(json_t *item, const sgm_option *option, bool settable)
{
    if (option->unit != NULL)
        json_object_set_new(item, "unit", sgm__answer_text(option->unit));
    if (option->minimum != option->maximum) {
        json_object_set_new(item, "minimum", sgm__answer_number(option->minimum));
        json_object_set_new(item, "maximum", sgm__answer_number(option->maximum));
    }
    if (option->choices != NULL) {
        json_t *choices = json_array();
        for (size_t i = 0; option->choices[i] != NULL; i++)
            json_array_append_new(choices, sgm__answer_text(option->choices[i]));
        json_object_set_new(item, "choices", choices);
    }
    if (option->doc != NULL)
        json_object_set_new(item, "doc", sgm__answer_text(option->doc));
    json_object_set_new(item, "live", json_boolean(option->live));
    json_t *default_value = settable ? default_of(option) : NULL;
    if (default_value != NULL)
        json_object_set_new(item, "default", default_value);
}

/* Tensors are not read: that would copy all parameters, and have gradients kept from now on. */
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
    sgm_clear_error(); /* what is not there just now */
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

static sgm_status add_entry(listing *l, sgm_registry *registry, const char *name, const char *identifier,
                            sgm_kind kind)
{
    SGM_TRY(let_train(l));
    const sgm_option *option = sgm_registry_option(registry, name);
    bool settable = is_settable(kind, option);
    json_t *item = json_object();
    json_object_set_new(item, "identifier", sgm__answer_text(identifier));
    json_object_set_new(item, "kind", json_string(sgm_kind_name(kind)));
    json_object_set_new(item, "settable", json_boolean(settable));
    if (option != NULL)
        add_row(item, option, settable);
    if (settable)
        json_object_set_new(item, "effect", sgm__answer_text(sgm__option_effect(option)));
    json_array_append_new(l->entries, item);
    if (!l->values)
        return SGM_OK;
    add_value(l, item, identifier, registry, name, kind);
    return add_tags(item, registry);
}

static sgm_status list_below(listing *l, sgm_registry *registry, const char *prefix, int level);

/* An entry with a row says its kind; another one is got to see whether it is a registry. */
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

/* The registry that has an entry, retained, and the entry's name in it. */
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
    sgm_status status = path != NULL ? sgm_resolve_one(root, path, &content) : SGM_ERROR_MEMORY;
    sgm__free(path);
    if (status == SGM_OK && content.kind == SGM_KIND_REGISTRY)
        *parent = content.as.registry;
    else
        sgm_content_clear(&content);
    return status;
}

const sgm_option *sgm__control_option(sgm_registry *root, const char *identifier)
{
    sgm_registry *parent;
    const char *name;
    if (parent_of(root, identifier, &parent, &name) != SGM_OK || parent == NULL)
        return NULL;
    const sgm_option *option = sgm_registry_option(parent, name);
    sgm_registry_free(parent);
    return option;
}

/* A match that is no registry is listed as its parent knows it. */
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

/* All of the tree, or what an identifier matches. */
static sgm_status list_all(listing *l, const char *identifier)
{
    sgm_registry *root = sgm__registry_of(l->command->call->trainer);
    sgm_matches matches = {0};
    if (identifier == NULL)
        return list_below(l, root, "", 0);
    SGM_TRY(sgm__control_find(l->command, identifier, &matches));
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < matches.count && status == SGM_OK; i++)
        status = list_match(l, root, &matches.items[i]);
    sgm_matches_free(&matches);
    return status;
}

sgm_status sgm__control_list(sgm__control_request *c)
{
    const char *values = sgm__control_field(c, "values");
    if (values != NULL && strcmp(values, "true") != 0 && strcmp(values, "false") != 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "list: 'values' is true or false, not '%.100s'", values);
    listing l = {
        .command = c, .entries = json_array(), .values = values != NULL && strcmp(values, "true") == 0};
    json_object_set_new(c->answer, "entries", l.entries);
    sgm_status status = lock(&l);
    if (status == SGM_OK)
        status = list_all(&l, sgm__control_field(c, "identifier"));
    unlock(&l);
    return status;
}
