/* Fits a pipeline to pictures: their size, and mean and deviation of their channels. */
#include "data/files/files.h"
#include "data/kinds/picture.h"
#include <sigma/picture.h>

#include <math.h>

#define DEFAULT_CHANNELS 3

sgm_status sgm_picture_size(const char *path, int32_t *width, int32_t *height)
{
    return sgm__image_size(path, width, height);
}

/* What a thread has seen: sums over the bytes of each channel, which are exact: 2^48 pixels would fit. */
typedef struct sums {
    sgm__bytes bytes;
    uint64_t pixels, sum[3], squares[3];
} sums;

typedef struct learner {
    sgm__picture_form form;
    sums sums[SGM__MAXIMUM_FILE_THREADS];
} learner;

static sgm_status learn(void *pointer, int32_t thread, const sgm_file *file)
{
    learner *self = pointer;
    sums *own = &self->sums[thread];
    int32_t width = self->form.width, height = self->form.height;
    size_t channels = (size_t)self->form.channels;
    own->bytes.length = 0;
    SGM_TRY(sgm__image_decode(file->name, &width, &height, self->form.channels, &own->bytes));
    for (size_t c = 0; c < channels; c++) {
        uint64_t sum = 0, squares = 0;
        for (size_t i = c; i < own->bytes.length; i += channels) {
            uint64_t byte = own->bytes.data[i];
            sum += byte;
            squares += byte * byte;
        }
        own->sum[c] += sum;
        own->squares[c] += squares;
    }
    own->pixels += own->bytes.length / channels;
    return SGM_OK;
}

/* Into those of the first thread. */
static void add_up(learner *self)
{
    sums *first = &self->sums[0];
    for (int32_t i = 1; i < SGM__MAXIMUM_FILE_THREADS; i++) {
        const sums *own = &self->sums[i];
        first->pixels += own->pixels;
        for (int32_t c = 0; c < 3; c++) {
            first->sum[c] += own->sum[c];
            first->squares[c] += own->squares[c];
        }
    }
}

/* A channel that does not vary has the deviation 1. */
static void set_normalisation(learner *self)
{
    const sums *all = &self->sums[0];
    for (int32_t c = 0; c < self->form.channels; c++) {
        double mean = (double)all->sum[c] / (double)all->pixels;
        double variance = (double)all->squares[c] / (double)all->pixels - mean * mean;
        self->form.mean[c] = mean / 255;
        self->form.deviation[c] = variance > 1e-6 ? sqrt(variance) / 255 : 1;
    }
}

/* Pictures that are not scaled must be of one size, those of all parts, since all are seen by one network. */
static sgm_status find_size(const sgm_files *files, sgm__picture_form *form)
{
    const char *first = sgm_files_path(files, 0);
    SGM_TRY(sgm__image_size(first, &form->width, &form->height));
    for (int64_t i = 1; i < sgm_files_count(files); i++) {
        int32_t width, height;
        const char *path = sgm_files_path(files, i);
        SGM_TRY(sgm__image_size(path, &width, &height));
        if (width != form->width || height != form->height)
            return sgm_fail(SGM_ERROR_SHAPE,
                            "%s is %d x %d pixels, but %s is %d x %d; a network takes pictures of one size: "
                            "say to which all are scaled, such as size: [%d, %d]",
                            path, (int)width, (int)height, first, (int)form->width, (int)form->height,
                            (int)form->width, (int)form->height);
    }
    return SGM_OK;
}

static sgm_status fit(learner *self, const sgm_files *files, const sgm_picture_options *options)
{
    const sgm__files_part part = {options->split, options->part, options->other_parts};
    sgm__picture_form *form = &self->form;
    if ((options->width == 0) != (options->height == 0) || options->width < 0 || options->height < 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a width and a height were expected, or neither, %d and %d came",
                        (int)options->width, (int)options->height);
    const sgm__file_kind *kind = files != NULL && files->masks != NULL ? files->kind : &sgm__pictures;
    SGM_TRY(sgm__files_check_fit(files, kind, &part, "sgm_picture_pipeline"));
    *form = (sgm__picture_form){.width = options->width,
                                .height = options->height,
                                .channels = options->channels != 0 ? options->channels : DEFAULT_CHANNELS,
                                .deviation = {1, 1, 1}};
    if (form->width == 0)
        SGM_TRY(find_size(files, form));
    /* Size and channels are checked before anything is decoded by them. */
    SGM_TRY(sgm__pictures.check(form));
    SGM_TRY(sgm__files_learn(files, &part, sgm__files_threads(options->threads), learn, self));
    add_up(self);
    set_normalisation(self);
    return SGM_OK;
}

sgm_pipeline *sgm_picture_pipeline_with(const sgm_files *files, const sgm_picture_options *given)
{
    sgm_picture_options options;
    learner self = {0};
    if (sgm__options_read(&options, sizeof options, given, "sgm_picture_pipeline") != SGM_OK)
        return NULL;
    sgm_status status = fit(&self, files, &options);
    for (int32_t i = 0; i < SGM__MAXIMUM_FILE_THREADS; i++)
        sgm__bytes_free(&self.sums[i].bytes);
    if (status != SGM_OK)
        return NULL;
    return files->masks != NULL ? sgm__masked_pipeline(files, &self.form, sgm__files_threads(options.threads))
                                : sgm__files_pipeline(files, &self.form);
}
