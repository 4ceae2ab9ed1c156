/* Folders of files as data: which key names which kind, and what the keys beside it say; see files.h. */
#include "config/files.h"
#include "config/config_checks.h"
#include "config/experiment.h"

#include <math.h>

/* --- images --- */

/* A number of the list `size`, which is [width, height] or one number for both; 0: it is not given. */
static int32_t side_of(const data_config *data, size_t index)
{
    int64_t side = 0;
    if (data->size.count > 0)
        sgm__parse_int64(data->size.items[index < data->size.count ? index : 0], &side); /* was checked */
    return (int32_t)side;
}

/* Height and width of the pictures that a network takes, of input(3, 224, 224); false: it takes others. */
static bool takes_pictures(const char *notation, int64_t *height, int64_t *width)
{
    sgm_network *network = sgm_network_parse(notation);
    sgm_content shape = {0};
    long long channels, sides[2];
    const bool found = network != NULL && sgm_network_get_argument(network, 0, "shape", &shape) == SGM_OK &&
                       sscanf(shape.as.text, "%lld, %lld, %lld", &channels, &sides[0], &sides[1]) == 3;
    sgm_content_clear(&shape);
    sgm_network_free(network);
    if (found) {
        *height = sides[0];
        *width = sides[1];
    }
    return found;
}

sgm_status files_complete(config *c)
{
    text_list *size = &c->data.training.size;
    int64_t height, width;
    if (c->from == NULL || c->network == NULL || c->data.training.images == NULL || size->count > 0 ||
        !takes_pictures(c->network, &height, &width))
        return SGM_OK;
    size->items = sgm__calloc(2, sizeof *size->items);
    if (size->items == NULL)
        return SGM_ERROR_MEMORY;
    size->items[0] = sgm__format("%lld", (long long)width);
    size->items[1] = sgm__format("%lld", (long long)height);
    size->count = size->capacity = 2;
    return size->items[0] != NULL && size->items[1] != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

static bool has_picture_form(const data_config *data)
{
    return data->size.count > 0 || data->channels != OPTION_UNSET;
}

static sgm_status check_pictures(const char *where, const data_config *data)
{
    if (data->size.count > 2)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s.size: expected [width, height], got %zu numbers", where,
                        data->size.count);
    if (data->channels == 2)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s.channels: expected 1 (grey) or 3 (colours), got 2", where);
    return SGM_OK;
}

static sgm_pipeline *fit_pictures(const sgm_files *files, const data_config *data, const sgm_split *split,
                                  int32_t part, bool others)
{
    return sgm_picture_pipeline(files, .width = side_of(data, 0), .height = side_of(data, 1),
                                .channels = data->channels != OPTION_UNSET ? (int32_t)data->channels : 0,
                                .split = split, .part = part, .other_parts = others);
}

/* --- sounds --- */

static bool has_sound_form(const data_config *data)
{
    return data->rate != OPTION_UNSET || !isnan(data->seconds) || data->features != NULL ||
           data->mels != OPTION_UNSET || data->hop != OPTION_UNSET ||
           (data->sounds != NULL && data->window != OPTION_UNSET);
}

static bool is_waveform(const data_config *data)
{
    return data->features != NULL && strcmp(data->features, features_names[SGM_SOUND_WAVEFORM]) == 0;
}

static sgm_status check_sounds(const char *where, const data_config *data)
{
    if (is_waveform(data) &&
        (data->mels != OPTION_UNSET || data->window != OPTION_UNSET || data->hop != OPTION_UNSET))
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: mels, window and hop are for features: log_mel", where);
    return SGM_OK;
}

/* 0 leaves a value to the library. */
static int32_t given(int64_t value)
{
    return value != OPTION_UNSET ? (int32_t)value : 0;
}

static sgm_pipeline *fit_sounds(const sgm_files *files, const data_config *data, const sgm_split *split,
                                int32_t part, bool others)
{
    return sgm_sound_pipeline(files, .rate = given(data->rate),
                              .seconds = isnan(data->seconds) ? 0 : data->seconds,
                              .features = is_waveform(data) ? SGM_SOUND_WAVEFORM : SGM_SOUND_LOG_MEL,
                              .mels = given(data->mels), .window = given(data->window),
                              .hop = given(data->hop), .split = split, .part = part, .other_parts = others);
}

/* --- text_folder --- */

/* The keys are those of other texts, too. */
static bool has_text_form(const data_config *data)
{
    return data->text_folder != NULL && (data->tokenizer != NULL || data->window != OPTION_UNSET);
}

static sgm_pipeline *fit_texts(const sgm_files *files, const data_config *data, const sgm_split *split,
                               int32_t part, bool others)
{
    (void)split, (void)part, (void)others; /* nothing is learnt of the texts */
    sgm_tokenizer *tokenizer = experiment_tokenizer(data);
    sgm_pipeline *pipeline =
        tokenizer != NULL ? sgm_text_pipeline(files, .tokenizer = tokenizer,
                                              .window = data->window != OPTION_UNSET ? data->window : 0)
                          : NULL;
    sgm_tokenizer_free(tokenizer);
    return pipeline;
}

/* --- all kinds --- */

static const file_key keys[] = {
    {"images", "pictures", offsetof(data_config, images), "size and channels", has_picture_form,
     check_pictures, fit_pictures},
    {"sounds", "sounds", offsetof(data_config, sounds), "rate, seconds, features, mels, window and hop",
     has_sound_form, check_sounds, fit_sounds},
    {"text_folder", "texts", offsetof(data_config, text_folder), "tokenizer and window", has_text_form, NULL,
     fit_texts},
};

const file_key *file_key_at(size_t index)
{
    return index < sizeof keys / sizeof *keys ? &keys[index] : NULL;
}

const char *file_key_path(const file_key *key, const data_config *data)
{
    return *(char *const *)(const void *)((const char *)data + key->offset);
}

const file_key *data_config_files(const data_config *data)
{
    const file_key *key;
    for (size_t i = 0; (key = file_key_at(i)) != NULL; i++)
        if (file_key_path(key, data) != NULL)
            return key;
    return NULL;
}

data_config data_config_of_files(const sgm_pipeline *pipeline, const char *path)
{
    data_config data = {0};
    const file_key *key;
    for (size_t i = 0; (key = file_key_at(i)) != NULL; i++)
        if (strcmp(key->kind, sgm_pipeline_kind(pipeline)) == 0 ||
            (strcmp(key->kind, "pictures") == 0 &&
             strcmp(sgm_pipeline_kind(pipeline), "masked pictures") == 0))
            *(const char **)(void *)((char *)&data + key->offset) = path;
    return data;
}

sgm_files *data_config_open_files(const data_config *data)
{
    if (data->masks != NULL)
        return sgm_masked_pictures_open(data->images, data->masks);
    const file_key *key = data_config_files(data);
    return sgm_files_open(file_key_path(key, data), key->kind);
}

/* --- parts of an experiment (experiment.h) --- */

sgm_extractor *files_extractor(const data_group *group, const data_config *data, const data_config *part_of)
{
    sgm_files_extractor_options options = {
        .struct_size = sizeof options, .threads = group->threads, .masks = data->masks};
    if (part_of != NULL) {
        options.split = group->parts;
        split_part_of(group, part_of, &options.part, &options.other_parts);
    }
    return sgm_files_extractor_with(group->pipeline, file_key_path(data_config_files(data), data), &options);
}
