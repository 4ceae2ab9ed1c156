/* Tables whose columns are found by their names: the pipeline that makes examples of their rows, and the
 * network that is proposed for it.
 *
 * A pipeline is fitted to the training data once, or comes from a checkpoint, and is kept in the
 * configuration's data, from where experiment.c makes all datasets with it. */
#include "config/arguments.h"
#include "config/config_checks.h"
#include "config/experiment.h"
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

static sgm_pipeline *fit(const data_config *data)
{
    sgm_table *table =
        sgm_table_open(data->csv, .separator = data->separator != NULL ? data->separator[0] : 0,
                       .decimal = data->decimal != NULL ? data->decimal[0] : 0, .missing = data->missing,
                       .skip_ragged = data->skip_ragged);
    if (table == NULL)
        return NULL;
    sgm_pipeline_options options = {.struct_size = sizeof options,
                                    .scale = (sgm_scale)place_of(scale_names, SCALE_NAMES, data->scale),
                                    .impute = (sgm_impute)place_of(impute_names, IMPUTE_NAMES, data->impute)};
    copy_list(options.targets, &data->target);
    copy_list(options.drop, &data->drop);
    copy_list(options.categorical, &data->categorical);
    copy_list(options.embedding, &data->embedding);
    sgm_pipeline *pipeline = sgm_pipeline_fit_with(table, &options);
    sgm_table_free(table);
    return pipeline;
}

sgm_status experiment_prepare(config *c, const char *checkpoint)
{
    if (!data_config_is_named(&c->data.training) || c->data.pipeline != NULL)
        return SGM_OK;
    if (checkpoint != NULL)
        SGM_TRY(sgm_checkpoint_pipeline(checkpoint, &c->data.pipeline));
    if (c->data.pipeline == NULL)
        c->data.pipeline = fit(&c->data.training);
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
