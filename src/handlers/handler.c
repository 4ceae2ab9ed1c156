/* Opens handlers by name: sgm_handler_create_with, the functions of sgm_handler, and checks of names.
 *
 * A name is a type ("cpu"), optionally with options in brackets ("cpu(dense=onednn)", parsed in
 * handler_text.c), optionally behind "debug:". The types themselves are tables in the folders below
 * (sgm__handler_type in handler.h); sessions, which call them, are in session.c. Devices (opencl, cuda) load
 * a plug-in only when they are opened, so that their names are known on every machine.
 */
#include "handlers/handler.h"
#include "handlers/handler_text.h"
#include "text/names.h"

#include <stdio.h>

/* The handlers that compute by themselves; the debugging handler wraps one of them. The list makes the table
 * of types and the names that sgm_handler_name_at returns. */
#define HANDLERS(X)                                                                                          \
    X(cpu)                                                                                                   \
    X(reference)                                                                                             \
    X(opencl)                                                                                                \
    X(cuda)                                                                                                  \
    X(null)

#define HANDLER_TYPE(name) &sgm__##name##_handler,
#define HANDLER_NAME(name) #name,
#define WATCHED_NAME(name) "debug:" #name,
static const sgm__handler_type *const types[] = {HANDLERS(HANDLER_TYPE)};
static const char *const names[] = {HANDLERS(HANDLER_NAME) HANDLERS(WATCHED_NAME)};
#define TYPE_COUNT (sizeof types / sizeof types[0])
#define NAME_COUNT (sizeof names / sizeof names[0])

#define WATCHING "debug:"

/* The type with the name in front of the brackets. NULL: there is none. */
static const sgm__handler_type *find_type(const char *name)
{
    size_t length = sgm__handler_text_name(name);
    for (size_t i = 0; i < TYPE_COUNT; i++)
        if (strncmp(types[i]->name, name, length) == 0 && types[i]->name[length] == '\0')
            return types[i];
    return NULL;
}

/* A hint such as " (did you mean 'cpu'?)"; "" if no known name is meant. */
static const char *guess(const char *name, char hint[SGM__NAME_HINT])
{
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)sgm__handler_text_name(name), name);
    return sgm__name_hint(SGM__NAME_HANDLER, word, names, NAME_COUNT, hint);
}

bool sgm__handler_describe(size_t index, sgm__described *described, const sgm_setting **settings,
                           size_t *count)
{
    if (index >= TYPE_COUNT)
        return false;
    const sgm__handler_type *type = types[index];
    *described = (sgm__described){.name = type->name, .doc = type->doc, .example = type->example};
    *settings = type->settings;
    *count = type->setting_count;
    return true;
}

static sgm_status fail_unknown(const char *name)
{
    char list[256] = "", hint[SGM__NAME_HINT];
    for (size_t i = 0, length = 0; i < TYPE_COUNT && length < sizeof list; i++)
        length += (size_t)snprintf(list + length, sizeof list - length, "%s, ", types[i]->name);
    return sgm_fail(SGM_ERROR_NOT_FOUND, "there is no handler '%.60s'%s; there are %sand " WATCHING "NAME",
                    name, guess(name, hint), list);
}

/* Copies the caller's options, whose struct may be older and shorter (struct_size), and checks their
 * ranges. */
static sgm_status read_options(const sgm_handler_options *given, sgm_handler_options *options)
{
    SGM_TRY(sgm__options_read(options, sizeof *options, given, "sgm_handler_create"));
    if (options->threads < 0)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "handler options: threads is %d; expected 1 or more, or 0 for one per processor",
                        options->threads);
    if (options->device < 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "handler options: device is %d; devices are numbered from 0",
                        options->device);
    return SGM_OK;
}

/* Reads the options in brackets. They take precedence over `options`. */
static sgm_status read_text(const sgm__handler_type *type, const char *name,
                            const sgm_handler_options *options, sgm__handler_text *text)
{
    if (type->setting_count == 0 && name[sgm__handler_text_name(name)] != '\0')
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "handler '%s': only cpu, opencl and cuda have options in brackets: leave them out",
                        name);
    return sgm__handler_text_read(name, type, options, text);
}

/* Opens handler->type. A failure repeats the whole text only if it had brackets: otherwise the message names
 * the type already. `text` lives on this stack frame, so `open` must copy the strings that it keeps. */
static sgm_status open_type(sgm_handler *handler, const char *name, const sgm_handler_options *options)
{
    sgm__handler_text text;
    SGM_TRY(read_text(handler->type, name, options, &text));
    sgm_status status = handler->type->open(&text.options, &handler->self);
    bool has_options = name[sgm__handler_text_name(name)] != '\0';
    return status == SGM_OK || !has_options ? status : sgm__fail_within("handler '%s'", name);
}

/* Chooses the type and opens it. A debugging handler is opened through sgm__debug_open, which takes the name
 * of the other handler; "debug" alone reaches its `open`, which only fails with the right message.
 * "debug:debug:..." is refused. */
static sgm_status open_handler(sgm_handler *handler, const char *name, const sgm_handler_options *options)
{
    if (!sgm__begins_with(name, WATCHING)) {
        bool alone = strcmp(name, sgm__debug_handler.name) == 0;
        handler->type = alone ? &sgm__debug_handler : find_type(name);
        return handler->type != NULL ? open_type(handler, name, options) : fail_unknown(name);
    }
    const char *watched = name + strlen(WATCHING);
    bool twice = sgm__begins_with(watched, WATCHING);
    if (twice || find_type(watched) == NULL)
        return fail_unknown(twice ? name : watched);
    handler->type = &sgm__debug_handler;
    return sgm__debug_open(watched, options, &handler->self);
}

/* The name is kept in sgm_handler.name, whose size limits it. */
static sgm_status check_name(const char *name)
{
    if (name != NULL && strlen(name) < sizeof((sgm_handler *)NULL)->name)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_ARGUMENT,
                    name == NULL ? "a handler wants a name, such as 'cpu'"
                                 : "a handler's name has at most %zu characters",
                    sizeof((sgm_handler *)NULL)->name - 1);
}

/* The name of the handler that computes: the part behind "debug:" if the name begins so. */
static const char *watched_or_own(const char *name)
{
    return sgm__begins_with(name, WATCHING) ? name + strlen(WATCHING) : name;
}

sgm_status sgm__handler_check_name(const char *name)
{
    SGM_TRY(check_name(name));
    const char *own = watched_or_own(name);
    if (strcmp(name, sgm__debug_handler.name) == 0 || find_type(own) != NULL)
        return SGM_OK;
    return fail_unknown(watched_or_own(own) != own ? name : own);
}

/* Only the cpu handler checks the values of its options here (instruction sets, libraries): whether a device
 * exists is known when it is opened. */
sgm_status sgm__handler_check(const char *name)
{
    const sgm_handler_options none = {.struct_size = sizeof none};
    sgm__handler_text text;
    SGM_TRY(sgm__handler_check_name(name));
    if (strcmp(name, sgm__debug_handler.name) == 0)
        return sgm__debug_handler.open(&none, NULL); /* fails, as it needs another handler */
    const char *own = watched_or_own(name);
    const sgm__handler_type *type = find_type(own);
    SGM_TRY(read_text(type, own, &none, &text));
    if (type == &sgm__cpu_handler && sgm__cpu_check(&text.options) != SGM_OK)
        return sgm__fail_within("handler '%s'", own);
    return SGM_OK;
}

sgm_handler *sgm_handler_create_with(const char *name, const sgm_handler_options *options)
{
    sgm_handler_options checked;
    if (check_name(name) != SGM_OK || read_options(options, &checked) != SGM_OK)
        return NULL;
    sgm_handler *handler = sgm__calloc(1, sizeof(sgm_handler));
    if (handler == NULL)
        return NULL;
    if (open_handler(handler, name, &checked) != SGM_OK) {
        sgm__free(handler);
        return NULL;
    }
    snprintf(handler->name, sizeof handler->name, "%s", name);
    handler->threads = checked.threads;
    return handler;
}

void sgm_handler_free(sgm_handler *handler)
{
    if (handler == NULL)
        return;
    handler->type->close(handler->self);
    sgm__free(handler);
}

const char *sgm_handler_name(const sgm_handler *handler)
{
    return handler != NULL ? handler->name : "";
}

char *sgm_handler_describe(const sgm_handler *handler)
{
    if (handler == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT, "no handler to describe");
        return NULL;
    }
    sgm__text text = {0};
    handler->type->describe(handler->self, &text);
    return sgm__text_take(&text);
}

const char *sgm_handler_bfloat16(const sgm_handler *handler)
{
    if (handler == NULL)
        return "";
    return handler->type->bfloat16 != NULL ? handler->type->bfloat16(handler->self)
                                           : "computed like all others, results rounded";
}

const char *sgm_handler_name_at(size_t index)
{
    return index < NAME_COUNT ? names[index] : NULL;
}

/* An operation with `compose` that the handler does not compute whole is "composed", whatever the handler
 * answered: the planner expands it. */
const char *sgm_handler_support(const sgm_handler *handler, const char *operation, sgm_dtype dtype)
{
    const sgm_op *op = handler != NULL ? sgm_find_op(operation) : NULL;
    if (op == NULL)
        return "none";
    const char *support = handler->type->support(handler->self, op, dtype);
    bool whole = strcmp(support, "kernel") == 0 || strcmp(support, SGM__THROUGH_FLOAT32) == 0;
    return op->compose != NULL && !whole ? "composed" : support;
}
