/* Loads the plug-ins of a command line and of files, and keeps the list of those that the user has loaded.
 *
 * The list is the file "plugins" in the user's state folder, a line with an absolute path for each. It is
 * read whole and only grows. options.h has the rule; arguments.c and config.c call. A list that cannot be
 * written is a warning: the plug-in is loaded, and has to be named again for its runs. */
#include "config/options.h"
#include <sigma/plugin.h>

#include <stdio.h>
#include <stdlib.h>

#define LIST_FILE "plugins"
#define LARGEST_LIST ((size_t)1 << 20) /* bytes */

/* The file's name without its folders. */
static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* The path of the list; sgm__free. NULL: no home is known, or no memory. */
static char *list_path(void)
{
    char *folder = sgm_folder_path(SGM_FOLDER_STATE);
    char *path = folder != NULL ? sgm__format("%s/" LIST_FILE, folder) : NULL;
    sgm_string_free(folder);
    return path;
}

/* The lines of the list, "" if there is none yet; sgm__free. */
static sgm_status read_list(const char *path, char **text)
{
    size_t length;
    if (sgm__file_exists(path))
        return sgm__file_read(path, LARGEST_LIST, text, &length);
    *text = sgm__strdup("");
    return *text != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* Whether one of the lines is the path. */
static bool has_line(const char *text, const char *path)
{
    size_t length = strlen(path);
    for (const char *line = text; *line != '\0'; line += line[0] == '\n') {
        size_t own = strcspn(line, "\n");
        if (own == length && memcmp(line, path, length) == 0)
            return true;
        line += own;
    }
    return false;
}

/* Whether the user has loaded the plug-in before. A list that cannot be read says no. */
static bool is_remembered(const char *path)
{
    char *list = list_path(), *text = NULL;
    bool is = list != NULL && read_list(list, &text) == SGM_OK && has_line(text, path);
    sgm__free(text);
    sgm__free(list);
    return is;
}

/* Appends the path, unless it is there. */
static sgm_status append_to(const char *list, const char *path)
{
    char *text = NULL, *folder = sgm__strndup(list, (size_t)(name_of(list) - list));
    sgm_status status = folder != NULL ? read_list(list, &text) : SGM_ERROR_MEMORY;
    if (status == SGM_OK && !has_line(text, path)) {
        char *longer = sgm__format("%s%s\n", text, path);
        status = longer != NULL ? sgm__make_folders(folder) : SGM_ERROR_MEMORY;
        if (status == SGM_OK)
            status = sgm__file_write_atomic(list, longer, strlen(longer));
        sgm__free(longer);
    }
    sgm__free(text);
    sgm__free(folder);
    return status;
}

/* A path with a line end would be two lines, and is not kept. */
static void remember(const char *path)
{
    char *list = strchr(path, '\n') == NULL ? list_path() : NULL;
    if (list == NULL || append_to(list, path) != SGM_OK)
        sgm_log_message(
            SGM_LOG_WARNING, "plug-ins",
            "'%s' is loaded, but cannot be remembered (%s): name it by --plugin for its runs, too", path,
            list != NULL ? sgm_last_error() : "no folder is known for that");
    sgm__free(list);
}

/* The absolute path without links; sgm__free. NULL: there is no such file. */
static char *real_path(const char *path)
{
    char *real = realpath(path, NULL), *own = sgm__strdup(real);
    free(real);
    return own;
}

sgm_status plugins_load(const char *path)
{
    SGM_TRY(sgm_plugin_load(path));
    char *real = real_path(path);
    if (real != NULL)
        remember(real);
    sgm__free(real);
    return SGM_OK;
}

/* Whether a loaded plug-in has this path, or, if `by_name`, only the name of its file: one that was moved and
 * given anew stands for the one that a run names. */
static bool is_loaded(const char *path, bool by_name)
{
    const char *own;
    for (size_t i = 0; sgm_plugin_at(i, &own) != NULL; i++)
        if (strcmp(own, path) == 0 || (by_name && strcmp(name_of(own), name_of(path)) == 0))
            return true;
    return false;
}

/* Whether the file is one that a run keeps in its folder. */
static bool is_of_a_run(const char *name)
{
    return strcmp(name_of(name), "config.yaml") == 0 || strcmp(name_of(name), "search.yaml") == 0;
}

/* One plug-in that a file names. */
static sgm_status load_one(const char *name, const char *path)
{
    char *real = real_path(path);
    bool is_there = real != NULL, is_run = is_of_a_run(name);
    bool is_here = is_loaded(is_there ? real : path, is_run);
    bool is_allowed = is_here || !is_run || (is_there && is_remembered(real));
    sgm__free(real);
    if (is_here)
        return SGM_OK;
    if (!is_there)
        return sgm_fail(SGM_ERROR_FILE,
                        "%s: plugins: there is no '%s'; build it, or say where it is now with --plugin FILE",
                        name, path);
    if (!is_allowed)
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "%s: plugins: '%s' is code that you have not loaded before, and the folder of a run does "
            "not load it by itself; if you trust it, add --plugin '%s'",
            name, path, path);
    return plugins_load(path) == SGM_OK ? SGM_OK : sgm__fail_within("%s: plugins", name);
}

static bool has_item(const text_list *list, const char *path)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], path) == 0)
            return true;
    return false;
}

/* Replaces what stands for the plug-in in the list, by its name, or appends it. */
static sgm_status keep(text_list *list, const char *path)
{
    char *copy = sgm__strdup(path);
    if (copy == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(name_of(list->items[i]), name_of(path)) == 0) {
            sgm__free(list->items[i]);
            list->items[i] = copy;
            return SGM_OK;
        }
    if (sgm__reserve(&list->items, &list->capacity, list->count + 1, sizeof *list->items) != SGM_OK) {
        sgm__free(copy);
        return SGM_ERROR_MEMORY;
    }
    list->items[list->count++] = copy;
    return SGM_OK;
}

sgm_status plugins_load_of(const char *name, text_list *paths)
{
    const char *path;
    for (size_t i = 0; i < paths->count; i++)
        SGM_TRY(load_one(name, paths->items[i]));
    for (size_t i = 0; sgm_plugin_at(i, &path) != NULL; i++)
        if (!has_item(paths, path))
            SGM_TRY(keep(paths, path));
    return SGM_OK;
}
