/* The registry of layer types: those that come with the library and those that programs register.
 *
 * Built-in types are the constants that SGM__LAYERS in network_internal.h names, one for each type in
 * src/network/layers. Registered types come after them in the order of registration and are never removed,
 * so a type that was found once stays valid. The lock guards the list of registered types; any thread may
 * register and search. The notation, sgm_layer_create and the lists of the command and the web page all find
 * types here. A type is checked when it is registered, so that nothing behind this file meets a table of
 * arguments that contradicts itself. */
#include "network/network_internal.h"

static const sgm_layer_type *const built_in[] = {
#define ADDRESS(name) &sgm__layer_##name,
    SGM__LAYERS(ADDRESS)};
#define BUILT_IN_COUNT (sizeof built_in / sizeof built_in[0])

/* Guards the three variables below. Types belong to their modules and must stay as long as the process. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const sgm_layer_type **added;
static size_t added_count, added_capacity;

const sgm_layer_type *sgm_layer_type_at(size_t index)
{
    if (index < BUILT_IN_COUNT)
        return built_in[index];
    index -= BUILT_IN_COUNT;
    pthread_mutex_lock(&lock);
    const sgm_layer_type *type = index < added_count ? added[index] : NULL;
    pthread_mutex_unlock(&lock);
    return type;
}

/* Linear search: there are some 60 types, and the parser searches once for each layer of the text. */
const sgm_layer_type *sgm__layer_type_find(const char *name)
{
    const sgm_layer_type *type;
    for (size_t i = 0; (type = sgm_layer_type_at(i)) != NULL; i++)
        if (strcmp(type->name, name) == 0)
            return type;
    return NULL;
}

/* The names of all types and then `more`, such as values that a text defines; sgm__free. NULL: out of memory.
 */
static const char **all_names(const char *const *more, size_t more_count, size_t *count)
{
    size_t types = 0;
    while (sgm_layer_type_at(types) != NULL)
        types++;
    *count = types + more_count;
    const char **names = sgm__calloc(*count, sizeof(const char *));
    for (size_t i = 0; names != NULL && i < types; i++)
        names[i] = sgm_layer_type_at(i)->name;
    for (size_t i = 0; names != NULL && i < more_count; i++)
        names[types + i] = more[i];
    return names;
}

const sgm_layer_type *sgm__layer_type_meant(const char *name, const sgm__name_row **row)
{
    size_t count;
    const char **names = all_names(NULL, 0, &count);
    const char *real = names != NULL ? sgm__name_real(SGM__NAME_LAYER, name, names, count, row) : NULL;
    sgm__free(names);
    return real != NULL ? sgm__layer_type_find(real) : NULL;
}

/* Without memory there is no hint, as it is only part of another error's message. */
char *sgm__layer_type_hint(const char *name, const char *const *more, size_t more_count,
                           char hint[SGM__NAME_HINT])
{
    size_t count;
    const char **names = all_names(more, more_count, &count);
    hint[0] = '\0';
    if (names != NULL)
        sgm__name_hint(SGM__NAME_LAYER, name, names, count, hint);
    sgm__free(names);
    return hint;
}

/* The table of a registered type: unique words as names, known kinds, bounds in order. "name" is reserved
 * for the layer's own name, which all layers can be given. */
static sgm_status check_arguments(const sgm_layer_type *type)
{
    if (type->argument_count > 0 && type->arguments == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "layer '%s' has %zu arguments but no table of them", type->name,
                        type->argument_count);
    for (size_t i = 0; i < type->argument_count; i++) {
        const sgm_option *argument = &type->arguments[i];
        if (argument->name == NULL || !sgm__is_word(argument->name) || strcmp(argument->name, "name") == 0 ||
            strcmp(argument->name, "share") == 0)
            return sgm_fail(SGM_ERROR_ARGUMENT,
                            "argument %zu of layer '%s' needs a name of letters, digits and '_' other than "
                            "'name', which all layers have",
                            i, type->name);
        bool numeric = argument->kind == SGM_KIND_INTEGER || argument->kind == SGM_KIND_NUMBER;
        bool known = numeric || (!argument->list &&
                                 (argument->kind == SGM_KIND_BOOLEAN || argument->kind == SGM_KIND_TEXT));
        if (!known || !(argument->minimum <= argument->maximum))
            return sgm_fail(SGM_ERROR_ARGUMENT,
                            "argument '%s' of layer '%s' has an unknown kind or bounds "
                            "in the wrong order",
                            argument->name, type->name);
        if (sgm__argument_find(type, argument->name) != (int32_t)i)
            return sgm_fail(SGM_ERROR_ARGUMENT, "layer '%s' has two arguments '%s'", type->name,
                            argument->name);
    }
    return SGM_OK;
}

/* Everything that the parser and the recorder rely on. The number of the interface comes first, because the
 * struct of another interface may have other members in the place of those that follow. */
static sgm_status check_type(const sgm_layer_type *type)
{
    if (type == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "the layer type to register is NULL");
    if (type->api != SGM_LAYER_API)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "the layer type was made for interface %u, this library has %u: compile it again",
                        type->api, (unsigned)SGM_LAYER_API);
    if (type->name == NULL || !sgm__is_word(type->name) || strchr(type->name, '#') != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a layer type needs a name of letters, digits and '_'");
    SGM_TRY(sgm__name_check(type->name, "a layer type", false));
    if (type->forward == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "layer '%s' has no forward function", type->name);
    bool join = (type->flags & SGM_LAYER_JOIN) != 0;
    if (type->min_inputs < 0 || type->max_inputs < type->min_inputs || (!join && type->max_inputs > 1))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "layer '%s' takes %d to %d inputs; only layers that join branches take more than 1",
                        type->name, type->min_inputs, type->max_inputs);
    if ((type->flags & SGM_LAYER_COST) != 0 && type->min_inputs < 1)
        return sgm_fail(SGM_ERROR_ARGUMENT, "cost layer '%s' must take an input, the prediction", type->name);
    return check_arguments(type);
}

/* Registering the same type twice is no error, as several parts of a program may do it; another type of a
 * known name is one. The search under the lock goes over both lists, so that two threads cannot both
 * register one name. */
sgm_status sgm_register_layer(const sgm_layer_type *type)
{
    SGM_TRY(check_type(type));
    sgm_status status = SGM_OK;
    pthread_mutex_lock(&lock);
    const sgm_layer_type *known = NULL;
    for (size_t i = 0; i < BUILT_IN_COUNT + added_count && known == NULL; i++) {
        const sgm_layer_type *other = i < BUILT_IN_COUNT ? built_in[i] : added[i - BUILT_IN_COUNT];
        if (strcmp(other->name, type->name) == 0)
            known = other;
    }
    if (known != NULL && known != type)
        status =
            sgm_fail(SGM_ERROR_ARGUMENT, "there is a layer '%s' already; choose another name", type->name);
    else if (known == NULL)
        status = sgm__reserve(&added, &added_capacity, added_count + 1, sizeof(const sgm_layer_type *));
    if (status == SGM_OK && known == NULL)
        added[added_count++] = type;
    pthread_mutex_unlock(&lock);
    return status;
}
