/* Kinds of panels that programs and plug-ins add to the page: sgm_register_panel.
 *
 * The module of one is a file of the page, panels/added/NAME.js, and the session has the names; web/main.js
 * imports them before it lays panels out. Panels are only added, and stay. */
#include "monitors/http/assets.h"
#include "monitors/web/web_internal.h"

#include <pthread.h>
#include <stdio.h>

#define MAXIMUM_ADDED 64
#define LONGEST_NAME 40

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const sgm_panel_type *added[MAXIMUM_ADDED];
static size_t added_count;

/* A name is a part of an address, of a class in style sheets and of a text's key. */
static bool is_name(const char *name)
{
    size_t length = strlen(name);
    return length <= LONGEST_NAME && name[0] >= 'a' && name[0] <= 'z' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == length;
}

static sgm_status check(const sgm_panel_type *type)
{
    if (type == NULL || type->name == NULL || type->module == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_register_panel wants a .name and a .module");
    if (type->api != SGM_PANEL_API)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "panel '%s' has the API number %u, this library wants %d: compile it again",
                        type->name, (unsigned)type->api, SGM_PANEL_API);
    if (!is_name(type->name))
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "a panel cannot be called '%s': expected at most %d of a-z, 0-9, '_' and '-', a letter first",
            type->name, LONGEST_NAME);
    return SGM_OK;
}

/* With the lock. */
static bool is_added(const sgm_panel_type *type)
{
    for (size_t i = 0; i < added_count; i++)
        if (added[i] == type)
            return true;
    return false;
}

/* With the lock. The path stays with the file. */
static sgm_status add(const sgm_panel_type *type)
{
    char own[sizeof "/panels/.js" + LONGEST_NAME];
    snprintf(own, sizeof own, "/panels/%s.js", type->name);
    char *path = sgm__format("/panels/added/%s.js", type->name);
    if (path == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = SGM_OK;
    if (sgm__asset_find(own) != NULL || sgm__asset_find(path) != NULL)
        status =
            sgm_fail(SGM_ERROR_ARGUMENT, "there is a panel '%s' already; choose another name", type->name);
    else if (added_count == MAXIMUM_ADDED)
        status = sgm_fail(SGM_ERROR_STATE, "%d panels are registered, which is all there is room for",
                          MAXIMUM_ADDED);
    else
        status = sgm__asset_add(path, type->module, strlen(type->module));
    if (status == SGM_OK)
        added[added_count++] = type;
    else
        sgm__free(path);
    return status;
}

sgm_status sgm_register_panel(const sgm_panel_type *type)
{
    SGM_TRY(check(type));
    pthread_mutex_lock(&lock);
    sgm_status status = is_added(type) ? SGM_OK : add(type);
    pthread_mutex_unlock(&lock);
    return status;
}

void sgm__web_append_panels(sgm__text *text)
{
    pthread_mutex_lock(&lock);
    sgm__text_append(text, "[");
    for (size_t i = 0; i < added_count; i++)
        sgm__text_append(text, "%s\"%s\"", i > 0 ? "," : "", added[i]->name);
    sgm__text_append(text, "]");
    pthread_mutex_unlock(&lock);
}
