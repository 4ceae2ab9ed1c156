/* The hooks that programs have added to those that can be written as text: sgm_register_hook, and the rows of
 * metrics that were added (hooks_ready/metric_rows.c).
 *
 * Rows are only added, and stay. hook_text.c reads them through sgm__hook_row_at, where they follow the
 * library's own. create() of a row gets only the call, so the program's table is found by the call's name. */
#include "hooks/hook_text.h"

#include <pthread.h>

#define MAXIMUM_ADDED 64

typedef struct added_row {
    sgm__hook_row row;
    const void *source; /* the program's table */
} added_row;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static added_row added[MAXIMUM_ADDED];
static size_t added_count;

/* The caller holds the lock. */
static const sgm__hook_row *row_at(size_t index)
{
    if (index < sgm__hook_row_count)
        return sgm__hook_rows[index];
    return index - sgm__hook_row_count < added_count ? &added[index - sgm__hook_row_count].row : NULL;
}

const sgm__hook_row *sgm__hook_row_at(size_t index)
{
    pthread_mutex_lock(&lock);
    const sgm__hook_row *row = row_at(index);
    pthread_mutex_unlock(&lock);
    return row;
}

const void *sgm__hook_row_source(const char *name)
{
    const void *source = NULL;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < added_count && source == NULL; i++)
        if (strcmp(added[i].row.name, name) == 0)
            source = added[i].source;
    pthread_mutex_unlock(&lock);
    return source;
}

/* The caller holds the lock. */
static sgm_status append(const sgm__hook_row *row, const void *source, bool *is_new)
{
    const sgm__hook_row *known;
    *is_new = false;
    for (size_t i = 0; i < added_count; i++)
        if (added[i].source == source)
            return SGM_OK;
    for (size_t i = 0; (known = row_at(i)) != NULL; i++)
        if (strcmp(known->name, row->name) == 0)
            return sgm_fail(SGM_ERROR_ARGUMENT, "there is a hook '%s' already", row->name);
    if (added_count == MAXIMUM_ADDED)
        return sgm_fail(SGM_ERROR_STATE, "%d hooks are registered, which is all there is room for",
                        MAXIMUM_ADDED);
    added[added_count++] = (added_row){*row, source};
    *is_new = true;
    return SGM_OK;
}

sgm_status sgm__hook_row_add(const sgm__hook_row *row, const void *source, bool *is_new)
{
    pthread_mutex_lock(&lock);
    sgm_status status = append(row, source, is_new);
    pthread_mutex_unlock(&lock);
    return status;
}

/* --- hooks of programs --- */

/* What create() of a program's table sees of a call. */
struct sgm_hook_arguments {
    const sgm__call *call;
};

double sgm_hook_arguments_number(const sgm_hook_arguments *arguments, const char *name)
{
    return sgm__call_number(arguments->call, name);
}

const char *sgm_hook_arguments_text(const sgm_hook_arguments *arguments, const char *name)
{
    return sgm__call_text(arguments->call, name);
}

/* create() of all rows of programs. */
static sgm_hook *create(const sgm__call *call, sgm_time_step when)
{
    const sgm_hook_text_type *type = sgm__hook_row_source(call->name);
    const sgm_hook_arguments arguments = {call};
    /* The hook that is made keeps nothing of them. */
    /* cppcheck-suppress returnDanglingLifetime */
    return type->create(&arguments, when);
}

sgm_status sgm_register_hook(const sgm_hook_text_type *type)
{
    if (type == NULL || type->api != SGM_HOOK_TEXT_API || type->name == NULL || type->doc == NULL ||
        type->create == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "a hook's text wants .api = SGM_HOOK_TEXT_API, a name, a doc and a create");
    if (type->argument_count > SGM__CALL_ROWS)
        return sgm_fail(SGM_ERROR_ARGUMENT, "the hook '%s' has %zu arguments, of at most %d", type->name,
                        type->argument_count, SGM__CALL_ROWS);
    sgm__hook_row row = {
        .name = type->name, .doc = type->doc, .when = type->when, .create = create, .example = type->example};
    bool is_new;
    if (row.when.interval == 0)
        row.when = (sgm_time_step){SGM_EPOCH, 1, 0};
    for (size_t i = 0; i < type->argument_count; i++)
        row.arguments[i] = type->arguments[i];
    return sgm__hook_row_add(&row, type, &is_new);
}
