/* Kinds of panels that programs and plug-ins add to the page: sgm_register_panel.
 *
 * The module of one is a file of the page, panels/added/NAME.js, and the session has the names; web/main.js
 * imports them before it lays panels out. Panels are only added, and stay. */
#include "monitors/http/assets.h"
#include "monitors/web/web_internal.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define MAXIMUM_ADDED 64
#define LONGEST_NAME 40
#define LONGEST_MODULE ((size_t)1 << 20) /* bytes of a file */
#define ENDING ".js"

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

/* --- panels that are files --- */

/* The table of a panel whose module was read: it stays, as those of programs do. */
static sgm_status register_text(const char *name, const char *text)
{
    sgm_panel_type *type = sgm__calloc(1, sizeof *type);
    if (type == NULL)
        return SGM_ERROR_MEMORY;
    *type = (sgm_panel_type){.api = SGM_PANEL_API, .name = name, .module = text};
    sgm_status status = sgm_register_panel(type);
    if (status != SGM_OK)
        sgm__free(type);
    return status;
}

/* NAME.js of the folder. */
static sgm_status register_file(const char *folder, const char *file)
{
    char *path = sgm__format("%s/%s", folder, file), *text = NULL;
    char *name = sgm__strndup(file, strlen(file) - strlen(ENDING));
    size_t length = 0;
    sgm_status status = path != NULL && name != NULL ? sgm__file_read(path, LONGEST_MODULE, &text, &length)
                                                     : SGM_ERROR_MEMORY;
    if (status == SGM_OK && strlen(text) != length)
        status = sgm_fail(SGM_ERROR_FORMAT, "there is a byte 0 in it, so it is no text");
    if (status == SGM_OK)
        status = register_text(name, text);
    if (status != SGM_OK) {
        sgm__free(name);
        sgm__free(text);
        if (path != NULL)
            status = sgm__fail_within("'%s'", path);
    }
    sgm__free(path);
    return status;
}

static int is_module(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name), end = strlen(ENDING);
    return entry->d_name[0] != '.' && length > end && strcmp(entry->d_name + length - end, ENDING) == 0;
}

/* In the order of their names, so that the page is the same each time. */
sgm_status sgm_register_panels(const char *folder)
{
    struct dirent **entries = NULL;
    if (folder == NULL)
        return sgm__fail_null("sgm_register_panels: expected a folder, got NULL");
    int count = scandir(folder, &entries, is_module, alphasort);
    sgm_status status =
        count > 0 ? SGM_OK
        : count == 0
            ? sgm_fail(SGM_ERROR_NOT_FOUND, "the folder '%s' has no panels: expected files NAME.js", folder)
            : sgm_fail(SGM_ERROR_FILE, "cannot read the folder '%s': %s", folder, sgm__errno_text(errno));
    for (int i = 0; i < count; i++) {
        if (status == SGM_OK)
            status = register_file(folder, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
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
