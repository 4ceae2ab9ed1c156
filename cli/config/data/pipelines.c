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
    return sgm_table_open(data->csv, .separator = data->separator != NULL ? data->separator[0] : 0,
                          .decimal = data->decimal != NULL ? data->decimal[0] : 0, .missing = data->missing,
                          .skip_ragged = data->skip_ragged, .split = split, .part = part,
                          .other_parts = others);
}

/* What is learnt of the table is learnt of the rows that are trained on. */
static sgm_pipeline *fit(const data_group *group)
{
    const data_config *data = &group->training;
    int32_t part;
    bool others;
    split_part_of(group, data, &part, &others);
    sgm_table *table = named_table_open(data, group->parts, part, others);
    if (table == NULL)
        return NULL;
    sgm_pipeline_options options = {.struct_size = sizeof options,
                                    .scale = (sgm_scale)place_of(scale_names, SCALE_NAMES, data->scale),
                                    .impute = (sgm_impute)place_of(impute_names, IMPUTE_NAMES, data->impute)};
    copy_list(options.targets, &data->target);
    copy_list(options.drop, &data->drop);
    if (group->split.group != NULL)
        options.drop[data->drop.count] = group->split.group;
    copy_list(options.categorical, &data->categorical);
    copy_list(options.embedding, &data->embedding);
    sgm_pipeline *pipeline = sgm_pipeline_fit_with(table, &options);
    sgm_table_free(table);
    return pipeline;
}

/* --- both --- */

sgm_status experiment_prepare(config *c, const char *checkpoint)
{
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
    return c->network != NULL ? SGM_OK : sgm__last_failure();
}

sgm_extractor *named_table_extractor(const data_group *group, const data_config *data)
{
    const sgm_pipeline_extractor_options options = {.struct_size = sizeof options,
                                                    .separator =
                                                        data->separator != NULL ? data->separator[0] : 0,
                                                    .skip_ragged = data->skip_ragged};
    return sgm__pipeline_extractor_of(group->pipeline, file_source(data->csv), &options);
}
