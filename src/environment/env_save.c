/* Saving and loading all trainers of an environment at once: a checkpoint for each, and a list of them.
 *
 * The list, environment.json, is written last and taken away first, so a folder with a list has all
 * checkpoints that it names. Loading compares list, files and environment before it changes anything. */
#include "environment/environment.h"
#include "persistence/bundle.h"
#include "registry/pattern.h"
#include "trainer/trainer.h"

#include <errno.h>
#include <jansson.h>
#include <unistd.h>

#define LIST "environment.json"
#define MAXIMUM_LIST (16 << 20) /* bytes */

static char *list_path(const char *folder)
{
    return sgm__format("%s/" LIST, folder);
}

/* FOLDER/NAME.safetensors; what no identifier can hold in the name is an underscore. */
static char *path_of(const char *folder, const char *trainer)
{
    char *part = sgm__identifier_part(trainer);
    char *path = part != NULL ? sgm__format("%s/%s.safetensors", folder, part) : NULL;
    sgm__free(part);
    return path;
}

/* --- saving --- */

static sgm_status remove_list(const char *folder)
{
    char *path = list_path(folder);
    if (path == NULL)
        return SGM_ERROR_MEMORY;
    bool gone = unlink(path) == 0 || errno == ENOENT;
    sgm_status status =
        gone ? SGM_OK : sgm_fail(SGM_ERROR_FILE, "cannot remove %s: %s", path, strerror(errno));
    sgm__free(path);
    return status;
}

/* Saves one trainer, and appends its entry to the list. */
static sgm_status save_trainer(sgm_trainer *trainer, const char *folder, json_t *list)
{
    char *path = path_of(folder, sgm_trainer_name(trainer)), checksum[SGM__CHECKSUM_DIGITS + 1];
    if (path == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = sgm_trainer_save(trainer, path);
    if (status == SGM_OK && !sgm__checksum_of_file(path, checksum))
        status = sgm_fail(SGM_ERROR_FILE, "cannot read %s, which was written just now", path);
    const char *slash = strrchr(path, '/');
    if (status == SGM_OK &&
        json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "name", sgm_trainer_name(trainer), "file",
                                              slash + 1, "checksum", checksum)) != 0)
        status = SGM_ERROR_MEMORY;
    sgm__free(path);
    return status;
}

static sgm_status write_list(const sgm_env *env, const char *folder, json_t *list)
{
    json_t *all =
        json_pack("{s:s, s:s, s:O}", "sigma", sgm_version(), "environment", env->name, "trainers", list);
    char *text = all != NULL ? json_dumps(all, JSON_INDENT(2)) : NULL, *path = list_path(folder);
    sgm_status status =
        text != NULL && path != NULL ? sgm__file_write_atomic(path, text, strlen(text)) : SGM_ERROR_MEMORY;
    json_decref(all);
    free(text);
    sgm__free(path);
    return status;
}

static sgm_status save(sgm_env *env, const char *folder)
{
    SGM_TRY(sgm__make_folders(folder));
    SGM_TRY(remove_list(folder));
    json_t *list = json_array();
    sgm_status status = list != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    for (size_t i = 0; i < env->trainer_count && status == SGM_OK; i++)
        status = save_trainer(env->trainers[i], folder, list);
    if (status == SGM_OK)
        status = write_list(env, folder, list);
    json_decref(list);
    return status;
}

sgm_status sgm_env_save(sgm_env *env, const char *folder)
{
    if (env == NULL || folder == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_env_save: expected an environment and a folder, got NULL");
    SGM_TRY(sgm__env_check(env));
    return save(env, folder) == SGM_OK ? SGM_OK : sgm__fail_within("%s: saving into %s", env->name, folder);
}

/* --- loading --- */

static json_t *read_list(const char *folder)
{
    json_error_t error;
    char *path = list_path(folder), *text;
    size_t length;
    json_t *all = NULL;
    if (path == NULL || sgm__file_read(path, (size_t)MAXIMUM_LIST, &text, &length) != SGM_OK) {
        sgm__free(path);
        return NULL;
    }
    all = json_loadb(text, length, 0, &error);
    if (all == NULL || !json_is_array(json_object_get(all, "trainers"))) {
        sgm_fail(SGM_ERROR_FORMAT, "%s is no list of an environment's trainers%s%s", path,
                 all == NULL ? ": " : "", all == NULL ? error.text : "");
        json_decref(all);
        all = NULL;
    }
    sgm__free(text);
    sgm__free(path);
    return all;
}

static sgm_trainer *find_trainer(const sgm_env *env, const char *name)
{
    for (size_t i = 0; i < env->trainer_count; i++)
        if (strcmp(sgm_trainer_name(env->trainers[i]), name) == 0)
            return env->trainers[i];
    return NULL;
}

/* The file of an entry is there, and the one that was saved. */
static sgm_status check_entry(const char *folder, const json_t *entry)
{
    char checksum[SGM__CHECKSUM_DIGITS + 1];
    const char *name = json_string_value(json_object_get(entry, "name"));
    const char *file = json_string_value(json_object_get(entry, "file"));
    const char *saved = json_string_value(json_object_get(entry, "checksum"));
    if (name == NULL || file == NULL || saved == NULL || strchr(file, '/') != NULL)
        return sgm_fail(SGM_ERROR_FORMAT, LIST " has an entry without name, file or checksum");
    char *path = sgm__format("%s/%s", folder, file);
    if (path == NULL)
        return SGM_ERROR_MEMORY;
    bool there = sgm__checksum_of_file(path, checksum);
    sgm__free(path);
    if (!there)
        return sgm__fail_within("trainer '%s'", name);
    if (strcmp(saved, checksum) != 0)
        return sgm_fail(SGM_ERROR_FORMAT,
                        "trainer '%s': %s is not the file that was saved: it was changed since", name, file);
    return SGM_OK;
}

/* Each trainer has an entry, each entry a file. */
static sgm_status check_list(const sgm_env *env, const char *folder, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        SGM_TRY(check_entry(folder, json_array_get(list, i)));
    for (size_t i = 0; i < env->trainer_count; i++) {
        bool found = false;
        for (size_t k = 0; k < json_array_size(list) && !found; k++)
            found = strcmp(json_string_value(json_object_get(json_array_get(list, k), "name")),
                           sgm_trainer_name(env->trainers[i])) == 0;
        if (!found)
            return sgm_fail(SGM_ERROR_NOT_FOUND, "it has nothing of trainer '%s'",
                            sgm_trainer_name(env->trainers[i]));
    }
    return SGM_OK;
}

static sgm_status load_entry(sgm_env *env, const char *folder, const json_t *entry)
{
    const char *name = json_string_value(json_object_get(entry, "name"));
    sgm_trainer *trainer = find_trainer(env, name);
    if (trainer == NULL)
        SGM_TRY(sgm__env_add_trainer(env, name, false, &trainer));
    char *path = sgm__format("%s/%s", folder, json_string_value(json_object_get(entry, "file")));
    sgm_status status = path != NULL ? sgm_trainer_load(trainer, path) : SGM_ERROR_MEMORY;
    sgm__free(path);
    return status;
}

static sgm_status load(sgm_env *env, const char *folder)
{
    json_t *all = read_list(folder);
    if (all == NULL)
        return sgm_last_status();
    const json_t *list = json_object_get(all, "trainers");
    sgm_status status = check_list(env, folder, list);
    for (size_t i = 0; i < json_array_size(list) && status == SGM_OK; i++)
        status = load_entry(env, folder, json_array_get(list, i));
    json_decref(all);
    return status;
}

sgm_status sgm_env_load(sgm_env *env, const char *folder)
{
    if (env == NULL || folder == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_env_load: expected an environment and a folder, got NULL");
    SGM_TRY(sgm__env_check(env));
    if (!sgm__env_is_free(env, "checkpoint"))
        return SGM_ERROR_STATE;
    return load(env, folder) == SGM_OK ? SGM_OK : sgm__fail_within("%s: loading from %s", env->name, folder);
}
