/* Checks that concern several keys of one dataset, or of several: exactly one source, and only keys that
 * refine that source. Called by config.c when the whole file is read. */
#include "config/config_checks.h"
#include "config/files.h"
#include "config/saved.h"

/* All keys that say where data comes from. */
#define SOURCES "dataset, csv, inputs, " FILE_KEYS ", text, chats, labelled_texts, text_pairs"

bool data_config_is_empty(const data_config *data)
{
    return data->dataset == NULL && data->csv == NULL && data->inputs == NULL && data->text == NULL &&
           !data_config_is_of_model(data) && data_config_files(data) == NULL;
}

bool data_config_is_named(const data_config *data)
{
    return data->csv != NULL && data->fields.count == 0;
}

bool data_config_has_pipeline(const data_config *data)
{
    return data_config_is_named(data) || data_config_files(data) != NULL;
}

static bool names_columns(const data_config *data)
{
    return data->target.count + data->drop.count + data->categorical.count + data->embedding.count +
                   data->text_columns.count + data->scale.count + data->impute.count + data->dates.count >
               0 ||
           data->weights != NULL || data->missing_target != NULL;
}

/* A table by names. What its columns are is said with the training data; the other data have the same
 * columns. */
static sgm_status check_named(const char *name, const char *role, const data_config *data)
{
    bool is_training = strcmp(role, "training") == 0;
    bool has_columns = names_columns(data) || data->tokenizer != NULL || data->window != OPTION_UNSET ||
                       data->decimal != NULL || data->missing != NULL;
    if (data->class_names.count + data->texts.count + data->input_range.count > 0 ||
        data->classes != OPTION_UNSET || data->skip_rows != OPTION_UNSET)
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "%s: data.%s: class_names, texts, classes, input_range and skip_rows are for columns by their "
            "numbers, which 'fields' names; 'target' finds all of that in the table",
            name, role);
    if (is_training && data->target.count == 0)
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "%s: data.training: expected a target, such as target: species, or columns by their numbers, "
            "such as fields: {inputs: 0-3, targets: 4}",
            name);
    if (!is_training && has_columns)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: data.%s: target, drop, categorical, embedding, text_columns, tokenizer, "
                        "window, scale, impute, missing_target, dates, weights, decimal and missing stand in "
                        "data.training, and count for all data",
                        name, role);
    if (data->target.count > SGM_MAX_TARGETS || data->drop.count > SGM_MAX_LISTED ||
        data->categorical.count > SGM_MAX_LISTED || data->embedding.count > SGM_MAX_FIELDS - 2 ||
        data->scale.count > SGM_MAX_LISTED || data->impute.count > SGM_MAX_LISTED ||
        data->dates.count > SGM_MAX_LISTED || data->text_columns.count > SGM_MAX_TEXTS)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: data.%s: at most %d targets, %d embeddings, %d text_columns, and %d columns in "
                        "each of drop, categorical, scale, impute and dates were expected",
                        name, role, SGM_MAX_TARGETS, SGM_MAX_FIELDS - 2, SGM_MAX_TEXTS, SGM_MAX_LISTED);
    return SGM_OK;
}

/* Keys that say what the columns of a table are do not go with `fields`, which says it by numbers; and the
 * data of another kind has no columns. */
static sgm_status check_columns_by_name(const char *name, const char *role, const data_config *data)
{
    if (data_config_is_named(data) || !names_columns(data))
        return SGM_OK;
    return sgm_fail(
        SGM_ERROR_ARGUMENT,
        "%s: data.%s: target, drop, categorical, embedding, text_columns, scale, impute, "
        "missing_target, dates and weights are for columns of a csv by their names, and do not go "
        "with %s",
        name, role, data->csv != NULL ? "fields" : "other data");
}

/* Keys of one kind of files. How they become inputs is said with the training data, for all data. */
static sgm_status check_key(const char *name, const char *role, const data_config *data, const file_key *key)
{
    bool is_training = strcmp(role, "training") == 0;
    if (!key->has_form(data))
        return SGM_OK;
    if (file_key_path(key, data) == NULL || !is_training)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: data.%s: %s are for %s, stand in data.training, and count for all data", name,
                        role, key->form, key->name);
    if (key->check == NULL)
        return SGM_OK;
    char *where = sgm__format("%s: data.%s", name, role);
    sgm_status status = where != NULL ? key->check(where, data) : SGM_ERROR_MEMORY;
    sgm__free(where);
    return status;
}

/* Folders of files. */
static sgm_status check_files(const char *name, const char *role, const data_config *data)
{
    if (data->masks != NULL && data->images == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: data.%s: masks are those of images, which are missing", name,
                        role);
    const file_key *key;
    for (size_t i = 0; (key = file_key_at(i)) != NULL; i++)
        SGM_TRY(check_key(name, role, data, key));
    key = data_config_files(data);
    if (key != NULL &&
        (data->classes != OPTION_UNSET || data->class_names.count + data->input_range.count > 0 ||
         data->fields.count > 0 || data->targets != NULL))
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "%s: data.%s: targets, fields, classes, class_names and input_range are for other data; "
            "classes of %s are their folders, and inputs are scaled by themselves",
            name, role, key->name);
    return SGM_OK;
}

/* How many of the keys that say where data comes from are given. */
static int count_sources(const data_config *data)
{
    const file_key *key;
    int count = (data->dataset != NULL) + (data->csv != NULL) + (data->inputs != NULL) +
                (data->text != NULL) + (data->chats != NULL) + (data->labelled_texts != NULL) +
                (data->text_pairs != NULL);
    for (size_t i = 0; (key = file_key_at(i)) != NULL; i++)
        count += file_key_path(key, data) != NULL;
    return count;
}

/* `from` is the model that the training begins with; NULL: none. */
static sgm_status fail_without_tokenizer(const char *name, const char *role, const data_config *data,
                                         const char *from)
{
    const char *what = data->chats != NULL ? "chats" : "texts";
    if (from != NULL)
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "%s: data.%s: %s are read by the tokenizer of the model, and there is no " TOKENIZER_FILES
            " in '%s%s'; put it there, or name another, data.%s.tokenizer: FILE",
            name, role, what, from, is_run_of_model(from) ? "/model" : "", role);
    return sgm_fail(SGM_ERROR_ARGUMENT,
                    "%s: data.%s: %s are read by the tokenizer of a model; name the model, from: FOLDER, or "
                    "its tokenizer, tokenizer: FILE",
                    name, role, what);
}

/* One of the three. */
static sgm_status check_data(const char *name, const char *role, const data_config *data, const char *from)
{
    const char *given = options_first_given(&data_table, data);
    int sources = count_sources(data);
    if (sources > 1)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: data.%s: expected one of " SOURCES "; got %d of them", name,
                        role, sources);
    /* Keys that refine a source are useless without one, and each belongs to certain sources. */
    if (sources == 0 && given != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: data.%s: expected one of " SOURCES " beside %s; got none",
                        name, role, given);
    if (data->packing && data->chats == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: data.%s: packing is for chats", name, role);
    if (data->text == NULL && (data->step != OPTION_UNSET || data->streams != OPTION_UNSET))
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: data.%s: step and streams are for text", name, role);
    bool has_window = data->window != OPTION_UNSET && data->sounds == NULL; /* sounds have one, too */
    bool is_other_table = data_config_is_named(data) && strcmp(role, "training") != 0; /* check_named tells */
    if (data->text == NULL && !data_config_is_of_model(data) && data->text_folder == NULL &&
        data->text_columns.count == 0 && !is_other_table && (data->tokenizer != NULL || has_window))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: data.%s: tokenizer and window are for text, chats, labelled_texts, text_pairs, "
                        "text_folder, and "
                        "text_columns of a csv",
                        name, role);
    if (data_config_is_of_model(data) && data->tokenizer == NULL)
        return fail_without_tokenizer(name, role, data, from);
    if (data->shuffled && (data->dataset != NULL || data->text != NULL || data_config_is_of_model(data)))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: data.%s.shuffled: is for csv, inputs and " FILE_KEYS
                        "; ready-made datasets are shuffled where that makes sense",
                        name, role);
    SGM_TRY(check_files(name, role, data));
    if (data->arrays.count > 0 && data->inputs == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: data.%s.arrays: are more fields beside inputs, which is missing", name, role);
    if (data->arrays.count > SGM_MAX_FIELDS - 2)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: data.%s.arrays: at most %d, got %zu", name, role,
                        SGM_MAX_FIELDS - 2, data->arrays.count);
    SGM_TRY(check_columns_by_name(name, role, data));
    if (data_config_is_named(data))
        return check_named(name, role, data);
    if (data->csv != NULL && text_map_get(&data->fields, "inputs") == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: data.%s.fields: 'inputs' is missing: expected columns for inputs, such as "
                        "{inputs: 0-3, targets: 4}",
                        name, role);
    /* Limits of the library's extractors: mappings of texts, two ends of a range, fields of an example. */
    SGM_TRY(check_texts_of(name, role, data));
    if (data->input_range.count != 0 && data->input_range.count != 2)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: data.%s.input_range: expected [minimum, maximum], got %zu numbers", name, role,
                        data->input_range.count);
    if (data->fields.count > SGM_MAX_FIELDS)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: data.%s.fields: at most %d, got %zu", name, role,
                        SGM_MAX_FIELDS, data->fields.count);
    return SGM_OK;
}

/* Validation and test become what training says. */
static sgm_status check_together(const char *name, const data_group *group)
{
    const data_config *training = &group->training, *others[] = {&group->validation, &group->test};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (data_config_is_named(others[i]) && !data_config_is_named(training))
            return sgm_fail(SGM_ERROR_ARGUMENT,
                            "%s: data: a csv without fields has the columns of data.training, which has to "
                            "be a csv with a target then",
                            name);
        if ((others[i]->labelled_texts != NULL && training->labelled_texts == NULL) ||
            (others[i]->text_pairs != NULL && training->text_pairs == NULL))
            return sgm_fail(SGM_ERROR_ARGUMENT,
                            "%s: data: labelled_texts and text_pairs are measured of a training on the same: "
                            "data.training has to be that, too",
                            name);
        const file_key *key = data_config_files(others[i]);
        if (key != NULL && (others[i]->masks != NULL) != (training->masks != NULL))
            return sgm_fail(SGM_ERROR_ARGUMENT,
                            "%s: data: either all images have masks, or none: those of data.training %s",
                            name, training->masks != NULL ? "do" : "do not");
        if (key != NULL && key != data_config_files(training))
            return sgm_fail(
                SGM_ERROR_ARGUMENT,
                "%s: data: %s become inputs as those of data.training do, which has to be %s then", name,
                key->name, key->name);
    }
    return SGM_OK;
}

sgm_status check_datasets(const char *name, const data_group *group, const char *from)
{
    SGM_TRY(check_data(name, "training", &group->training, from));
    SGM_TRY(check_data(name, "validation", &group->validation, from));
    SGM_TRY(check_data(name, "test", &group->test, from));
    return check_together(name, group);
}
