/* Pipelines: what makes examples of the rows of a table, whose columns are found by their names, or of a
 * folder of files (files.c); and the network that is proposed for them.
 *
 * A pipeline is fitted to the training data once, or comes from a checkpoint, and is kept in the
 * configuration's data, from where experiment.c makes all datasets with it. */
#include "config/arguments.h"
#include "config/config_checks.h"
#include "config/experiment.h"
#include "config/files.h"
#include "data/table/pipeline.h"

#include <stdio.h>

#define DATE_TEXT 64 /* bytes; longer texts are no dates */

/* The place of a name in a list of the library's, 0 if none is given: its default. */
static int place_of(const char *const *names, int count, const char *name)
{
    for (int i = 0; name != NULL && i < count; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return 0;
}

/* The lists have room for as many as check_named lets pass. */
static void copy_list(const char **to, const text_list *from)
{
    for (size_t i = 0; i < from->count; i++)
        to[i] = from->items[i];
}

sgm_table *named_table_open(const data_config *data, const sgm_split *split, int32_t part, bool others)
{
    sgm_table_options options = {.struct_size = sizeof options,
                                 .separator = data->separator != NULL ? data->separator[0] : 0,
                                 .decimal = data->decimal != NULL ? data->decimal[0] : 0,
                                 .missing = data->missing,
                                 .skip_ragged = data->skip_ragged,
                                 .split = split,
                                 .part = part,
                                 .other_parts = others};
    if (data->missing_target != NULL && strcmp(data->missing_target, "skip") == 0)
        copy_list(options.skip_missing, &data->target);
    return sgm_table_open_with(data->csv, &options);
}

/* What the maps of the file say of single columns, and under EVERY_COLUMN of all others. */
static void choose_columns(const data_config *data, sgm_pipeline_options *options)
{
    const char *scale = text_map_get(&data->scale, EVERY_COLUMN),
               *impute = text_map_get(&data->impute, EVERY_COLUMN);
    options->scale = (sgm_scale)place_of(scale_names, SCALE_NAMES, scale);
    options->impute = (sgm_impute)place_of(impute_names, IMPUTE_NAMES, impute);
    size_t at = 0;
    for (size_t i = 0; i < data->scale.count; i++)
        if (data->scale.values[i] != scale)
            options->scales[at++] = (sgm_column_scale){
                data->scale.keys[i], (sgm_scale)place_of(scale_names, SCALE_NAMES, data->scale.values[i])};
    at = 0;
    for (size_t i = 0; i < data->impute.count; i++)
        if (data->impute.values[i] != impute)
            options->imputes[at++] =
                (sgm_column_impute){data->impute.keys[i],
                                    (sgm_impute)place_of(impute_names, IMPUTE_NAMES, data->impute.values[i])};
    for (size_t i = 0; i < data->embedding.count; i++) {
        int64_t size = 0; /* auto */
        sgm__parse_int64(data->embedding.values[i], &size);
        options->embedding[i] = (sgm_column_embedding){data->embedding.keys[i], (int32_t)size};
    }
}

/* "age", "age(2026-01-31)": what is in brackets goes to `until`, which has room for any cell that is a date.
 */
static void choose_dates(const data_config *data, sgm_pipeline_options *options, char (*until)[DATE_TEXT])
{
    for (size_t i = 0; i < data->dates.count; i++) {
        const char *value = data->dates.values[i], *bracket = strchr(value, '(');
        options->dates[i] = (sgm_column_dates){
            .column = data->dates.keys[i],
            .form = bracket != NULL ? SGM_DATE_AGE : (sgm_date_form)place_of(date_names, DATE_NAMES, value)};
        if (bracket == NULL)
            continue;
        snprintf(until[i], sizeof until[i], "%.*s", (int)strcspn(bracket + 1, ")"), bracket + 1);
        options->dates[i].until = until[i];
    }
}

/* What is said about columns of texts. The options point to *tokenizer, which the caller frees. */
static sgm_status texts_options(const data_config *data, sgm_pipeline_options *options,
                                sgm_tokenizer **tokenizer)
{
    copy_list(options->text_columns, &data->text_columns);
    if (data->text_columns.count == 0)
        return SGM_OK;
    options->window = data->window != OPTION_UNSET ? data->window : 0;
    options->tokenizer = *tokenizer = experiment_tokenizer(data);
    return *tokenizer != NULL ? SGM_OK : sgm__last_failure();
}

/* What is learnt of the table is learnt of the rows that are trained on. */
static sgm_pipeline *fit(const data_group *group)
{
    const data_config *data = &group->training;
    int32_t part;
    bool others;
    char until[SGM_MAX_LISTED][DATE_TEXT];
    split_part_of(group, data, &part, &others);
    sgm_table *table = named_table_open(data, group->parts, part, others);
    if (table == NULL)
        return NULL;
    sgm_pipeline_options options = {.struct_size = sizeof options};
    copy_list(options.targets, &data->target);
    copy_list(options.drop, &data->drop);
    bool is_dropped = false;
    for (size_t i = 0; i < data->drop.count && group->split.group != NULL; i++)
        is_dropped = is_dropped || strcmp(data->drop.items[i], group->split.group) == 0;
    if (group->split.group != NULL && !is_dropped)
        options.drop[data->drop.count] = group->split.group;
    copy_list(options.categorical, &data->categorical);
    options.weights = data->weights;
    choose_columns(data, &options);
    choose_dates(data, &options, until);
    sgm_tokenizer *tokenizer = NULL;
    sgm_pipeline *pipeline = NULL;
    if (texts_options(data, &options, &tokenizer) == SGM_OK)
        pipeline = sgm_pipeline_fit_with(table, &options);
    sgm_tokenizer_free(tokenizer);
    sgm_table_free(table);
    return pipeline;
}

/* --- both --- */

/* The cost of a network that was given gets the field of weights, unless the network names one. */
static sgm_status weigh(config *c)
{
    static const char argument[] = "weights=";
    for (const char *at = c->network; (at = strstr(at, argument)) != NULL; at++)
        if (at == c->network || at[-1] != '_') /* class_weights are others */
            return SGM_OK;
    const char *cost = network_find_cost(c->network);
    if (cost == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "weights: the network does not have one cost; give weights=weights to those that the "
                        "weights are for");
    char *network = network_with_argument(c->network, cost, "weights=weights");
    if (network == NULL)
        return SGM_ERROR_MEMORY;
    sgm__free(c->network);
    c->network = network;
    return SGM_OK;
}

sgm_status experiment_prepare(config *c, const char *checkpoint)
{
    c->data.threads = c->threads != OPTION_UNSET ? (int32_t)c->threads : 0;
    SGM_TRY(experiment_split(&c->data, c->seed));
    if (!data_config_has_pipeline(&c->data.training) || c->data.pipeline != NULL)
        return SGM_OK;
    if (checkpoint != NULL)
        SGM_TRY(sgm_checkpoint_pipeline(checkpoint, &c->data.pipeline));
    if (c->data.pipeline == NULL)
        c->data.pipeline = data_config_files(&c->data.training) != NULL ? files_fit(&c->data) : fit(&c->data);
    if (c->data.pipeline == NULL)
        return sgm__fail_within("data.training");
    if (c->network == NULL)
        c->network = sgm_pipeline_network(c->data.pipeline);
    else if (sgm_pipeline_width(c->data.pipeline, "weights") > 0)
        SGM_TRY(weigh(c));
    return c->network != NULL ? SGM_OK : sgm__last_failure();
}

sgm_extractor *named_table_extractor(const data_group *group, const data_config *data)
{
    const sgm_pipeline_extractor_options options = {.struct_size = sizeof options,
                                                    .separator =
                                                        data->separator != NULL ? data->separator[0] : 0,
                                                    .skip_ragged = data->skip_ragged,
                                                    .ignore_unknown = data->ignores_unknown};
    return sgm__pipeline_extractor_of(group->pipeline, file_source(data->csv), &options);
}
