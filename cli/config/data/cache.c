/* What is kept of data for other runs: the keys data.cache and data.cache_folder. Blocks are kept by the
 * library; here it is decided which, and pipelines that were fitted to files are kept beside them, so that a
 * second run on the same files opens none of them. */
#include "base/cache/cache_folder.h"
#include "config/config_checks.h"
#include "config/experiment.h"
#include "config/files.h"
#include "data/dataset.h"
#include "data/files/files.h"

#include <stdio.h>

/* Whether the blocks of these data are kept. Files such as pictures are decoded far slower than their blocks
 * are read back; numbers of a table gain less than what it takes to keep a second copy. */
static bool are_kept(const data_group *group, const data_config *source)
{
    return group->cache != NULL ? strcmp(group->cache, "true") == 0 : data_config_files(source) != NULL;
}

/* The folder to keep data in, which the caller frees; NULL: none. A machine may lack one, which is no error
 * unless that was asked for: the library tells then. */
static char *folder_of(const data_group *group)
{
    char *folder = sgm__kept_folder(group->cache_folder);
    if (folder == NULL && group->cache == NULL)
        sgm_clear_error();
    return folder;
}

sgm_dataset *extracted_dataset(const data_group *group, const data_config *source, sgm_extractor *extractor,
                               const char *name)
{
    char *folder = are_kept(group, source) ? folder_of(group) : NULL;
    sgm_dataset_options options = {.struct_size = sizeof options,
                                   .extractor = extractor,
                                   .block_size = source->shuffled ? -1 : 0,
                                   .keep = folder != NULL,
                                   .cache = folder};
    sgm_dataset *dataset = sgm_dataset_create_with(name, &options);
    sgm__free(folder);
    return dataset;
}

/* All that a pipeline depends on: files, the part of them, the keys beside their folder, the library. */
static sgm__key key_of(const data_group *group, const sgm_files *files, int32_t part, bool others)
{
    sgm__key key = {0};
    char *keys = config_data_text(&group->training);
    sgm__key_add_text(&key, sgm_version());
    sgm__key_add_text(&key, keys);
    sgm__files_describe(files, &key);
    sgm__split_describe(group->parts, part, others, &key);
    sgm__free(keys);
    return key;
}

static sgm_pipeline *fit(const data_group *group, const sgm_files *files, int32_t part, bool others)
{
    const data_config *data = &group->training;
    return data_config_files(data)->fit(files, data, group->parts, part, others);
}

/* The pipeline that an earlier run has left; NULL: none. */
static sgm_pipeline *take_kept(const char *folder, const char *name)
{
    size_t length;
    char *text = sgm__cache_file_read(folder, name, &length);
    sgm_pipeline *pipeline = text != NULL ? sgm_pipeline_parse(text) : NULL;
    if (text != NULL && pipeline == NULL)
        sgm_clear_error();
    sgm__free(text);
    return pipeline;
}

static void keep(const char *folder, const char *name, const sgm_pipeline *pipeline)
{
    char *text = sgm_pipeline_json(pipeline);
    if (text != NULL)
        sgm__cache_file_write(folder, name, text, strlen(text));
    sgm__free(text);
}

static sgm_pipeline *fit_once(const data_group *group, const sgm_files *files, int32_t part, bool others,
                              const char *folder)
{
    sgm__key key = key_of(group, files, part, others);
    char name[64];
    snprintf(name, sizeof name, "pipeline-%016llx%016llx", (unsigned long long)key.halves[0],
             (unsigned long long)key.halves[1]);
    bool good = key.refused[0] == '\0' && sgm__key_is_settled(&key);
    sgm_pipeline *pipeline = good ? take_kept(folder, name) : NULL;
    if (pipeline != NULL)
        return pipeline;
    pipeline = fit(group, files, part, others);
    if (pipeline != NULL && good && key_of(group, files, part, others).files == key.files)
        keep(folder, name, pipeline);
    return pipeline;
}

sgm_pipeline *files_fit(const data_group *group)
{
    int32_t part;
    bool others;
    split_part_of(group, &group->training, &part, &others);
    sgm_files *files = data_config_open_files(&group->training);
    if (files == NULL)
        return NULL;
    char *folder = are_kept(group, &group->training) ? folder_of(group) : NULL;
    sgm_pipeline *pipeline =
        folder != NULL ? fit_once(group, files, part, others, folder) : fit(group, files, part, others);
    sgm__free(folder);
    sgm_files_free(files);
    return pipeline;
}
