/* Training, validation and test data as parts of one source: the section data.split.
 *
 * The split is made once (experiment_split) and kept in the configuration's data, from where experiment.c
 * takes each part. What decides it is read from the source: a column of a table by names, else the targets of
 * all examples. */
#include "config/config_checks.h"
#include "config/experiment.h"
#include "config/files.h"
#include "data/table/pipeline.h"

#include <math.h>
#include <stdio.h>

bool data_group_is_split(const data_group *group)
{
    return group->split.share.count > 0 || group->split.folds != OPTION_UNSET;
}

bool data_group_has(const data_group *group, const data_config *data)
{
    if (!data_config_is_empty(data))
        return true;
    if (!data_group_is_split(group) || data_config_is_empty(&group->training))
        return false;
    return data == &group->validation || (data == &group->test && split_has_test(&group->split));
}

/* --- what the file says --- */

static double share_at(const split_config *split, size_t index)
{
    double share = 0;
    if (index < split->share.count)
        sgm__parse_double(split->share.items[index], &share); /* the table has checked it */
    return share;
}

bool split_has_test(const split_config *split)
{
    if (split->folds != OPTION_UNSET)
        return false;
    return split->share.count == 3 ||
           (split->share.count == 2 && share_at(split, 0) + share_at(split, 1) < 1 - 1e-9);
}

/* Keys of the split that contradict each other. */
static sgm_status check_keys(const char *name, const split_config *split)
{
    if ((split->group != NULL) + (split->time != NULL) + (split->by != NULL) > 1)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: data.split: expected one of by, group and time", name);
    if (split->folds != OPTION_UNSET && split->time != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: data.split: folds of a time would train on the future; use share with time",
                        name);
    if (split->fold != OPTION_UNSET && (split->folds == OPTION_UNSET || split->fold >= split->folds))
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: data.split.fold: is one of `folds`, which count from 0",
                        name);
    double sum = 0;
    for (size_t i = 0; i < split->share.count; i++)
        sum += share_at(split, i);
    if (split->share.count > 3 || sum > 1 + 1e-9 || (split->share.count == 1 && sum > 1 - 1e-9))
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "%s: data.split.share: expected the share of training, such as 0.8, or those of training, "
            "validation and test, such as [0.7, 0.15, 0.15]",
            name);
    return SGM_OK;
}

sgm_status split_check(const char *name, const data_group *group)
{
    const data_config *training = &group->training;
    if (!data_group_is_split(group))
        return group->split.by != NULL || group->split.group != NULL || group->split.time != NULL ||
                       group->split.fold != OPTION_UNSET
                   ? sgm_fail(SGM_ERROR_ARGUMENT,
                              "%s: data.split: share or folds is missing, such as share: 0.8", name)
                   : SGM_OK;
    SGM_TRY(check_keys(name, &group->split));
    if (training->csv == NULL && training->inputs == NULL && data_config_files(training) == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: data.split: is for csv, inputs and " FILE_KEYS " in data.training", name);
    if (training->shuffled || !isnan(training->begin) || !isnan(training->share))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: data.split: takes the place of shuffled, begin and share in data.training",
                        name);
    if (!data_config_is_empty(&group->validation) ||
        (split_has_test(&group->split) && !data_config_is_empty(&group->test)))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: data.split: makes the %s data of data.training; remove data.%s or data.split",
                        name, data_config_is_empty(&group->validation) ? "test" : "validation",
                        data_config_is_empty(&group->validation) ? "test" : "validation");
    if (group->split.group != NULL && training->drop.count >= SGM_MAX_LISTED)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: data.training.drop: at most %d columns were expected beside a group", name,
                        SGM_MAX_LISTED - 1);
    if (!data_config_is_named(training) && (group->split.group != NULL || group->split.time != NULL))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: data.split: group and time are columns of a csv by their names, with `target`",
                        name);
    return SGM_OK;
}

/* --- the split --- */

/* The library's options, without the kind. Folds take the place of shares, so that a command can ask for them
 * whatever the file has. */
static sgm_split_options options_of(const split_config *split, int64_t seed)
{
    sgm_split_options options = {.struct_size = sizeof options, .seed = (uint64_t)seed};
    for (size_t i = 0; split->folds == OPTION_UNSET && i < split->share.count; i++)
        options.shares[i] = share_at(split, i);
    for (int64_t i = 0; split->folds != OPTION_UNSET && i < split->folds; i++)
        options.shares[i] = 1 / (double)split->folds;
    return options;
}

static bool is_listed(const text_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], name) == 0)
            return true;
    return false;
}

/* Whether the target of a table is classes, of which each part should have its share. */
static bool has_classes(const data_config *data, const sgm_table *table)
{
    int64_t at = sgm_table_find_column(table, data->target.items[0]);
    return at >= 0 && (sgm_table_column_at(table, (size_t)at)->kind == SGM_COLUMN_CATEGORY ||
                       is_listed(&data->categorical, data->target.items[0]));
}

/* Group and time are columns; else rows are mixed, by default so that each part has its share of each class.
 */
static sgm_split *split_table(const data_group *group, sgm_split_options *options)
{
    const split_config *split = &group->split;
    sgm_table *table = named_table_open(&group->training, NULL, 0, false);
    const char *column = split->group != NULL ? split->group : split->time;
    if (table == NULL) {
        sgm__fail_within("data.training");
        return NULL;
    }
    options->kind = split->group != NULL  ? SGM_SPLIT_GROUP
                    : split->time != NULL ? SGM_SPLIT_TIME
                                          : SGM_SPLIT_RANDOM;
    bool stratified = split->by != NULL ? strcmp(split->by, "stratified") == 0
                                        : column == NULL && has_classes(&group->training, table);
    if (stratified) {
        options->kind = SGM_SPLIT_STRATIFIED;
        column = group->training.target.items[0];
    }
    sgm_split *made = sgm_table_split_with(table, column, options);
    if (made == NULL)
        sgm__fail_within("data.split");
    sgm_table_free(table);
    return made;
}

/* Keys of examples while they are read. */
typedef struct keys {
    double *keys;
    size_t count, capacity;
    bool are_classes;
} keys;

/* One-hot targets are classes, whose number is the key. */
static sgm_status add_targets(keys *k, const sgm_block *block)
{
    SGM_TRY(sgm__reserve(&k->keys, &k->capacity, k->count + (size_t)block->count, sizeof *k->keys));
    sgm_tensor *targets = sgm_block_field(block, "targets");
    const sgm_shape *shape = targets != NULL ? sgm_tensor_shape(targets) : NULL;
    k->are_classes = shape != NULL && shape->rank == 2 && shape->dims[1] > 1;
    for (int64_t i = 0; i < block->count; i++) {
        int64_t best = 0;
        for (int64_t class = 1; k->are_classes && class < shape->dims[1]; class ++)
            if (sgm_tensor_get(targets, (int64_t[]){i, class}) >
                sgm_tensor_get(targets, (int64_t[]){i, best}))
                best = class;
        k->keys[k->count++] = (double)best;
    }
    return SGM_OK;
}

static sgm_split *split_examples(const data_group *group, sgm_split_options *options)
{
    keys k = {0};
    sgm_block *block = NULL;
    sgm_extractor *extractor = experiment_extractor(group, &group->training);
    sgm_status status = extractor != NULL ? SGM_OK : sgm__last_failure();
    while (status == SGM_OK && (status = sgm_extractor_extract(extractor, 4096, &block)) == SGM_OK &&
           block != NULL) {
        status = add_targets(&k, block);
        sgm_block_free(block);
    }
    bool stratified = group->split.by != NULL ? strcmp(group->split.by, "stratified") == 0 : k.are_classes;
    options->kind = stratified ? SGM_SPLIT_STRATIFIED : SGM_SPLIT_RANDOM;
    sgm_split *made = status == SGM_OK ? sgm_split_create_with((int64_t)k.count, k.keys, options) : NULL;
    if (made == NULL)
        sgm__fail_within(status == SGM_OK ? "data.split" : "data.training");
    sgm_extractor_free(extractor);
    sgm__free(k.keys);
    return made;
}

/* Classes are known from the folders; no file is read. */
static sgm_split *split_files(const data_group *group, sgm_split_options *options)
{
    sgm_files *files = data_config_open_files(&group->training);
    bool is_random = group->split.by != NULL && strcmp(group->split.by, "random") == 0;
    options->kind = is_random ? SGM_SPLIT_RANDOM : SGM_SPLIT_STRATIFIED;
    sgm_split *made = files != NULL ? sgm_files_split_with(files, options) : NULL;
    if (made == NULL)
        sgm__fail_within(files != NULL ? "data.split" : "data.training");
    sgm_files_free(files);
    return made;
}

sgm_status experiment_split(data_group *group, int64_t seed)
{
    if (!data_group_is_split(group) || group->parts != NULL)
        return SGM_OK;
    sgm_split_options options = options_of(&group->split, seed);
    group->parts = data_config_is_named(&group->training)        ? split_table(group, &options)
                   : data_config_files(&group->training) != NULL ? split_files(group, &options)
                                                                 : split_examples(group, &options);
    return group->parts != NULL ? SGM_OK : sgm__last_failure();
}

/* --- parts --- */

/* Validation of folds is the one that training leaves out. */
void split_part_of(const data_group *group, const data_config *data, int32_t *part, bool *others)
{
    bool is_folds = group->split.folds != OPTION_UNSET;
    int32_t fold = is_folds && group->split.fold != OPTION_UNSET ? (int32_t)group->split.fold : 0;
    *others = is_folds && data == &group->training;
    *part = is_folds || data == &group->training ? fold : data == &group->validation ? 1 : 2;
}

sgm_extractor *split_extractor(const data_group *group, const data_config *data, sgm_extractor *extractor)
{
    int32_t part;
    bool others;
    split_part_of(group, data, &part, &others);
    return sgm_split_extractor(extractor, group->parts, part, others);
}
