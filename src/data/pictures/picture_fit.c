/* Fits a pipeline to the pictures of a folder: their size, and mean and deviation of their channels. */
#include "data/pictures/picture.h"

#include <math.h>

#define DEFAULT_CHANNELS 3

/* Sums over the bytes of each channel, which are exact: 2^48 pixels would fit. */
typedef struct sums {
    uint64_t pixels, sum[3], squares[3];
} sums;

static void add_bytes(sums *s, const sgm__bytes *bytes, int32_t channels)
{
    for (size_t i = 0; i < bytes->length; i++) {
        uint64_t byte = bytes->data[i];
        s->sum[i % (size_t)channels] += byte;
        s->squares[i % (size_t)channels] += byte * byte;
    }
    s->pixels += bytes->length / (size_t)channels;
}

/* A channel that does not vary has the deviation 1. */
static void set_normalisation(sgm__picture_form *form, const sums *s)
{
    for (int32_t c = 0; c < form->channels; c++) {
        double mean = (double)s->sum[c] / (double)s->pixels;
        double variance = (double)s->squares[c] / (double)s->pixels - mean * mean;
        form->mean[c] = mean / 255;
        form->deviation[c] = variance > 1e-6 ? sqrt(variance) / 255 : 1;
    }
}

/* Pictures that are not scaled must be of one size, those of all parts, since all are seen by one network. */
static sgm_status find_size(const sgm_picture_folder *folder, sgm__picture_form *form)
{
    const sgm__image_file *files = folder->images.files;
    SGM_TRY(sgm__image_size(files[0].path, &form->width, &form->height));
    for (size_t i = 1; i < folder->images.count; i++) {
        int32_t width, height;
        SGM_TRY(sgm__image_size(files[i].path, &width, &height));
        if (width != form->width || height != form->height)
            return sgm_fail(SGM_ERROR_SHAPE,
                            "%s is %d x %d pixels, but %s is %d x %d; a network takes pictures of one size: "
                            "say to which all are scaled, such as size: [%d, %d]",
                            files[i].path, (int)width, (int)height, files[0].path, (int)form->width,
                            (int)form->height, (int)form->width, (int)form->height);
    }
    return SGM_OK;
}

static sgm_status read_part(const sgm_picture_folder *folder, const sgm_picture_options *options,
                            sgm__picture_form *form)
{
    sums s = {0};
    sgm__bytes bytes = {0};
    sgm_status status = SGM_OK;
    for (int64_t i = 0; i < sgm_picture_folder_count(folder) && status == SGM_OK; i++) {
        if (!sgm__picture_is_of_part(options->split, options->part, options->other_parts, i))
            continue;
        bytes.length = 0;
        status = sgm__image_decode(folder->images.files[i].path, &form->width, &form->height, form->channels,
                                   &bytes);
        if (status == SGM_OK)
            add_bytes(&s, &bytes, form->channels);
    }
    sgm__bytes_free(&bytes);
    SGM_TRY(status);
    if (s.pixels == 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: the part of the split has no picture", folder->path);
    set_normalisation(form, &s);
    return SGM_OK;
}

static sgm_status check_options(const sgm_picture_folder *folder, const sgm_picture_options *options)
{
    if ((options->width == 0) != (options->height == 0) || options->width < 0 || options->height < 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a width and a height were expected, or neither, %d and %d came",
                        (int)options->width, (int)options->height);
    if (folder->images.class_count < 2)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: there is a single class, '%s'; at least two folders with pictures were "
                        "expected, one for each class",
                        folder->path, folder->images.classes[0]);
    if (folder->images.class_count > SGM_MAX_CATEGORIES)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "%s: at most %d classes (folders) were expected, there are %zu; join some",
                        folder->path, SGM_MAX_CATEGORIES, folder->images.class_count);
    return sgm__picture_check_split(folder, options->split, options->part, options->other_parts);
}

/* Copies the names of the classes into a pipeline. */
static sgm_status name_classes(sgm_pipeline *pipeline, const sgm__image_folder *images)
{
    char **names = sgm__calloc(images->class_count + 1, sizeof *names);
    bool good = names != NULL;
    for (size_t i = 0; good && i < images->class_count; i++) {
        names[i] = sgm__strdup(images->classes[i]);
        good = names[i] != NULL;
    }
    if (good)
        return sgm__pipeline_set_classes(pipeline, names, images->class_count);
    for (size_t i = 0; names != NULL && names[i] != NULL; i++)
        sgm__free(names[i]);
    sgm__free(names);
    return SGM_ERROR_MEMORY;
}

static sgm_status fit(sgm_pipeline *pipeline, const sgm_picture_folder *folder,
                      const sgm_picture_options *options)
{
    sgm__picture_form form = {.width = options->width,
                              .height = options->height,
                              .channels = options->channels != 0 ? options->channels : DEFAULT_CHANNELS,
                              .deviation = {1, 1, 1}};
    SGM_TRY(check_options(folder, options));
    if (form.width == 0)
        SGM_TRY(find_size(folder, &form));
    /* Size and channels are checked before anything is decoded by them. */
    SGM_TRY(sgm__pipeline_set_pictures(pipeline, &form));
    SGM_TRY(read_part(folder, options, &form));
    SGM_TRY(sgm__pipeline_set_pictures(pipeline, &form));
    return name_classes(pipeline, &folder->images);
}

sgm_pipeline *sgm_picture_pipeline_with(const sgm_picture_folder *folder, const sgm_picture_options *given)
{
    sgm_picture_options options;
    if (sgm__options_read(&options, sizeof options, given, "sgm_picture_pipeline") != SGM_OK)
        return NULL;
    if (folder == NULL) {
        sgm__missing_part("sgm_picture_pipeline: a folder");
        return NULL;
    }
    sgm_pipeline *pipeline = sgm__pipeline_create(1);
    if (pipeline == NULL || fit(pipeline, folder, &options) == SGM_OK)
        return pipeline;
    sgm_pipeline_free(pipeline);
    return NULL;
}
