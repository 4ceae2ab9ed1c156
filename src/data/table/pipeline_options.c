/* The options of sgm_pipeline_fit: lists of columns, and what contradicts itself in them. See pipeline.h. */
#include "data/table/pipeline.h"

/* Names are the first members of what the lists hold. */
const void *sgm__pipeline_listed(const void *list, size_t room, size_t size, const char *name)
{
    for (const char *item = list; room > 0; room--, item += size) {
        const char *listed = *(const char *const *)(const void *)item;
        if (listed == NULL)
            return NULL;
        if (strcmp(listed, name) == 0)
            return item;
    }
    return NULL;
}

/* All names of a list must be columns, and differ from each other. */
static sgm_status check_list(const sgm_table *table, const void *list, size_t room, size_t size,
                             const char *option)
{
    const char *item = list;
    for (size_t i = 0; i < room; i++, item += size) {
        const char *name = *(const char *const *)(const void *)item;
        if (name == NULL)
            return SGM_OK;
        if (sgm_table_find_column(table, name) < 0)
            return sgm__fail_within("%s", option);
        if (sgm__pipeline_listed(list, i, size, name) != NULL)
            return sgm_fail(SGM_ERROR_ARGUMENT, "%s: %s: column '%s' is named twice", table->path, option,
                            name);
    }
    return SGM_OK;
}

#define CHECK_LIST(table, list, option)                                                                      \
    check_list(table, list, sizeof(list) / sizeof *(list), sizeof *(list), option)

static sgm_status check_lists(const sgm_table *table, const sgm_pipeline_options *options)
{
    SGM_TRY(CHECK_LIST(table, options->targets, "targets"));
    SGM_TRY(CHECK_LIST(table, options->drop, "drop"));
    SGM_TRY(CHECK_LIST(table, options->categorical, "categorical"));
    SGM_TRY(CHECK_LIST(table, options->embedding, "embedding"));
    SGM_TRY(CHECK_LIST(table, options->text_columns, "text_columns"));
    SGM_TRY(CHECK_LIST(table, options->scales, "scale"));
    SGM_TRY(CHECK_LIST(table, options->imputes, "impute"));
    return CHECK_LIST(table, options->dates, "dates");
}

/* A target is needed in each row, and of a date it is days, which predictions are turned back into. */
static sgm_status check_targets(const sgm_table *table, const sgm_pipeline_options *options)
{
    if (options->targets[0] == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: targets: which column is to be predicted?", table->path);
    for (size_t i = 0; i < SGM_MAX_TARGETS && options->targets[i] != NULL; i++) {
        const char *target = options->targets[i];
        if (SGM__LISTED(options->drop, target) != NULL || SGM__LISTED(options->embedding, target) != NULL ||
            SGM__LISTED(options->text_columns, target) != NULL ||
            SGM__LISTED(options->imputes, target) != NULL || SGM__LISTED(options->dates, target) != NULL)
            return sgm_fail(SGM_ERROR_ARGUMENT, "%s: column '%s' is a target, and named once more",
                            table->path, target);
    }
    return SGM_OK;
}

/* Rows that are left out of the table must be left out of other files, of which the pipeline reads its own
 * columns. */
static sgm_status check_skipped(const sgm_table *table, const sgm_pipeline_options *options)
{
    for (size_t i = 0; i < table->needed.count; i++) {
        const char *name = table->columns[table->needed.columns[i]].name;
        if (SGM__LISTED(options->targets, name) == NULL)
            return sgm_fail(SGM_ERROR_ARGUMENT,
                            "%s: skip_missing: column '%s' is no target, and a pipeline leaves out rows "
                            "without a target alone; open the table without it",
                            table->path, name);
    }
    return SGM_OK;
}

/* A column of texts is nothing else: what would be said of its numbers or categories has no meaning. */
static sgm_status check_texts(const sgm_table *table, const sgm_pipeline_options *options)
{
    for (size_t i = 0; i < SGM_MAX_TEXTS && options->text_columns[i] != NULL; i++) {
        const char *text = options->text_columns[i];
        if (SGM__LISTED(options->drop, text) != NULL || SGM__LISTED(options->categorical, text) != NULL ||
            SGM__LISTED(options->embedding, text) != NULL || SGM__LISTED(options->scales, text) != NULL ||
            SGM__LISTED(options->dates, text) != NULL)
            return sgm_fail(SGM_ERROR_ARGUMENT, "%s: text_columns: column '%s' is named once more",
                            table->path, text);
    }
    return options->window == 0 || sgm__token_window_check(options->window) == SGM_OK
               ? SGM_OK
               : sgm__fail_within("%s", table->path);
}

/* Fields that have names of their own. */
static bool names_a_field(const sgm_pipeline_options *options)
{
    static const char *const taken[] = {"inputs", "targets", "weights"};
    bool found = false;
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        found = found || SGM__LISTED(options->embedding, taken[i]) != NULL ||
                SGM__LISTED(options->text_columns, taken[i]) != NULL;
    return found;
}

/* A scale, impute and form of dates are small numbers, which a program may have got from anywhere. */
static sgm_status check_numbers(const sgm_table *table, const sgm_pipeline_options *options)
{
    bool good = (unsigned)options->scale <= SGM_SCALE_NONE && (unsigned)options->impute <= SGM_IMPUTE_REFUSE;
    for (size_t i = 0; i < SGM_MAX_LISTED; i++)
        good = good && (unsigned)options->scales[i].scale <= SGM_SCALE_NONE &&
               (unsigned)options->imputes[i].impute <= SGM_IMPUTE_REFUSE &&
               (unsigned)options->dates[i].form <= SGM_DATE_PARTS;
    if (!good)
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "%s: a scale from 0 to %d, an impute from 0 to %d and dates from 0 to %d were expected",
            table->path, SGM_SCALE_NONE, SGM_IMPUTE_REFUSE, SGM_DATE_PARTS);
    for (size_t i = 0; i < SGM_MAX_FIELDS - 2; i++)
        if (options->embedding[i].size < 0 || options->embedding[i].size > SGM__LARGEST_EMBEDDING)
            return sgm_fail(SGM_ERROR_ARGUMENT,
                            "%s: embedding: column '%s': a size from 1 to %d was expected, %d came",
                            table->path, options->embedding[i].column, SGM__LARGEST_EMBEDDING,
                            (int)options->embedding[i].size);
    for (size_t i = 0; i < SGM_MAX_LISTED && options->dates[i].column != NULL; i++)
        if (options->dates[i].until != NULL && options->dates[i].form != SGM_DATE_AGE)
            return sgm_fail(SGM_ERROR_ARGUMENT, "%s: dates: column '%s': only an age has a reference date",
                            table->path, options->dates[i].column);
    return SGM_OK;
}

sgm_status sgm__pipeline_check_options(const sgm_table *table, const sgm_pipeline_options *options)
{
    SGM_TRY(check_lists(table, options));
    SGM_TRY(check_targets(table, options));
    SGM_TRY(check_skipped(table, options));
    SGM_TRY(check_texts(table, options));
    SGM_TRY(check_numbers(table, options));
    const char *weights = options->weights;
    if (weights != NULL &&
        (SGM__LISTED(options->targets, weights) != NULL || SGM__LISTED(options->drop, weights) != NULL ||
         SGM__LISTED(options->embedding, weights) != NULL ||
         SGM__LISTED(options->text_columns, weights) != NULL))
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: column '%s' has the weights, and is named once more",
                        table->path, weights);
    if (names_a_field(options))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: embedding, text_columns: a field cannot be called 'inputs', 'targets' or "
                        "'weights' as others are; rename the column",
                        table->path);
    return SGM_OK;
}
