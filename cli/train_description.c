/* What `sigma train` is told to train: a file, the folder of a run, or a table or a folder of pictures and
 * the like itself.
 *
 * Data stands for a file that says what most would write of it: the target, a part for validation, a stop
 * when that gets no better. The run keeps it as config.yaml, where it can be read and changed. */
#include "cli.h"
#include "config/files.h"
#include "text/json_text.h"

bool description_is_table(const char *path)
{
    return table_ending(path) != NULL;
}

/* The columns of "a,b" as a list. */
static json_t *targets_of(const char *text)
{
    json_t *list = json_array();
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        json_array_append_new(list, json_stringn(at, length));
        at += length;
        if (*at == '\0')
            return list;
    }
}

/* The file for training data, which is taken. JSON is YAML, and quotes every name as it is. NULL: out of
 * memory, or a name that is not UTF-8. */
static char *text_of(json_t *training)
{
    json_t *root = json_pack("{s:{s:o, s:f}, s:i, s:[s]}", "data", "training", training, "split", 0.8,
                             "epochs", 100, "hooks", "early_stopper(validation.loss, patience=10)");
    char *text = sgm__json_text(root);
    json_decref(root);
    return text;
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

sgm_status description_of_table(train_description *description, const char *table, const char *target)
{
    const char *ending = table_ending(table);
    if (target == NULL)
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "'%s' is a table: say what to predict, --target COLUMN; 'sigma data %s' shows the columns", table,
            table);
    description->file = sgm__format("%.*s.yaml", (int)(ending - table), table);
    description->text = text_of(json_pack("{s:s, s:o}", "csv", name_of(table), "target", targets_of(target)));
    if (description->file != NULL && description->text != NULL)
        return SGM_OK;
    return description->file == NULL
               ? SGM_ERROR_MEMORY
               : sgm_fail(SGM_ERROR_ARGUMENT, "'%s', --target '%s': expected UTF-8", table, target);
}

/* The key of the kind. */
static const file_key *key_of(const char *kind)
{
    const file_key *key;
    for (size_t i = 0; (key = file_key_at(i)) != NULL && strcmp(key->kind, kind) != 0;)
        i++;
    return key;
}

/* The file lies beside the folder, whose name is looked up, as it may be "." or "..". */
sgm_status description_of_files(train_description *description, const char *folder, const char *kind)
{
    char *path = realpath(folder, NULL);
    if (path == NULL)
        return sgm_fail(SGM_ERROR_FILE, "cannot open '%s'", folder);
    description->file = sgm__format("%s.yaml", path);
    description->text = text_of(json_pack("{s:s}", key_of(kind)->name, name_of(path)));
    free(path);
    if (description->file != NULL && description->text != NULL)
        return SGM_OK;
    return description->file == NULL ? SGM_ERROR_MEMORY
                                     : sgm_fail(SGM_ERROR_ARGUMENT, "'%s': expected UTF-8", folder);
}

void description_free(train_description *description)
{
    sgm__free(description->file);
    sgm__free(description->text);
    *description = (train_description){0};
}

sgm_status description_load(config *c, const train_description *description, const char *const *overrides,
                            size_t count)
{
    const char *text = description->text;
    return text != NULL ? config_parse(c, description->file, text, strlen(text), overrides, count)
                        : config_load(c, description->file, overrides, count);
}
