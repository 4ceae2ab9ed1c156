/* `sigma predict RUN photo.png --output mask.png`: the class of each pixel, for networks that were trained on
 * pictures with masks (data.training.masks).
 *
 * A line for each picture: its name, and which share of its pixels each class has. With --output its mask is
 * written in the picture's own size, as a PNG file with a palette whose values are those of the masks of the
 * training data. */
#include "data/kinds/masked_picture.h"
#include "data/table/pipeline.h"
#include "predict/predict.h"

#include <stdio.h>

/* The mask of one picture, as large as the network's output. */
typedef struct predicted {
    const char *file; /* the picture */
    int64_t width, height, counts[SGM__MASK_VALUES];
    unsigned char *values;
} predicted;

/* --- printing --- */

static void print_json(const predicted *p, const sgm_pipeline *pipeline)
{
    const char *const *classes = sgm_pipeline_classes(pipeline);
    printf("{\"file\": ");
    print_json_text(p->file);
    printf(", \"shares\": {");
    for (size_t i = 0; classes[i] != NULL; i++) {
        fputs(i > 0 ? ", " : "", stdout);
        print_json_text(classes[i]);
        printf(": ");
        print_json_number((double)p->counts[i] / (double)(p->width * p->height));
    }
    printf("}}\n");
}

static void print_line(const predicted *p, const sgm_pipeline *pipeline)
{
    const char *const *classes = sgm_pipeline_classes(pipeline);
    print_name(p->file);
    for (size_t i = 0; classes[i] != NULL; i++) {
        fputs(i > 0 ? ", " : ": ", stdout);
        print_name(classes[i]);
        printf(" %.2f %%", 100 * (double)p->counts[i] / (double)(p->width * p->height));
    }
    printf("\n");
}

/* --- files --- */

/* OUTPUT, or where that is a folder OUTPUT/STEM.png. NULL without memory. */
static char *mask_path(const char *output, const char *picture)
{
    const char *slash = strrchr(picture, '/'), *name = slash != NULL ? slash + 1 : picture,
               *dot = strrchr(name, '.');
    return ends_with(output, ".png")
               ? sgm__strdup(output)
               : sgm__format("%s/%.*s.png", output, (int)(dot != NULL ? (size_t)(dot - name) : strlen(name)),
                             name);
}

/* In the picture's size, each pixel the nearest of the network's. */
static sgm_status write_mask(const predicted *p, const char *path)
{
    int32_t width, height;
    SGM_TRY(sgm__image_size(p->file, &width, &height));
    unsigned char *values = sgm__alloc((size_t)width * (size_t)height);
    if (values == NULL)
        return SGM_ERROR_MEMORY;
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++)
            values[y * width + x] = p->values[(2 * y + 1) * p->height / (2 * height) * p->width +
                                              (2 * x + 1) * p->width / (2 * width)];
    sgm_status status = sgm__mask_write(path, width, height, values);
    sgm__free(values);
    return status;
}

static sgm_status keep(const predicted *p, const char *output)
{
    char *path = output != NULL ? mask_path(output, p->file) : NULL;
    if (output == NULL || path == NULL)
        return output == NULL ? SGM_OK : SGM_ERROR_MEMORY;
    sgm_status status = write_mask(p, path);
    sgm__free(path);
    return status;
}

/* --- predicting --- */

/* The likeliest class of each pixel of outputs (1, height, width, classes). */
static sgm_status choose(predicted *p, const sgm__masked_form *form, const sgm_tensor *outputs)
{
    const sgm_shape *shape = sgm_tensor_shape(outputs);
    int64_t classes = form->class_count, pixels = p->width * p->height;
    if (sgm_shape_elements(shape) != pixels * classes)
        return sgm_fail(SGM_ERROR_SHAPE, "the network does not tell one of %d classes for each pixel",
                        (int)classes);
    double *shares = sgm__calloc((size_t)(pixels * classes), sizeof *shares);
    sgm_status status =
        shares != NULL ? sgm_tensor_read(outputs, shares, (size_t)(pixels * classes)) : SGM_ERROR_MEMORY;
    for (int64_t i = 0; status == SGM_OK && i < pixels; i++) {
        int64_t best = 0;
        for (int64_t k = 1; k < classes; k++)
            if (shares[i * classes + k] > shares[i * classes + best])
                best = k;
        p->values[i] = form->values[best];
        p->counts[best]++;
    }
    sgm__free(shares);
    return status;
}

static sgm_status answer(saved *s, const char *file, const char *output, bool json)
{
    const sgm_pipeline *pipeline = s->c.data.pipeline;
    const sgm__masked_form *form = pipeline->form;
    predicted p = {.file = file, .width = form->picture.width, .height = form->picture.height};
    sgm_block *block = sgm_pipeline_files(pipeline, &(const sgm_file){.name = file}, 1);
    sgm_tensor *outputs = block != NULL ? sgm_trainer_predict_block(s->trainer, block, NULL) : NULL;
    p.values = outputs != NULL ? sgm__alloc((size_t)(p.width * p.height)) : NULL;
    sgm_status status = p.values != NULL ? choose(&p, form, outputs) : sgm__last_failure();
    if (status == SGM_OK)
        status = keep(&p, output);
    if (status == SGM_OK)
        (json ? print_json : print_line)(&p, pipeline);
    sgm__free(p.values);
    sgm_tensor_free(outputs);
    sgm_block_free(block);
    return status;
}

sgm_status predict_masks(saved *s, const char *const *files, size_t count, const char *output, bool json)
{
    if (output != NULL && ends_with(output, ".png") && count > 1)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "--output: %s is one mask, and there are %zu pictures; name a folder for their masks",
                        output, count);
    if (output != NULL && !ends_with(output, ".png"))
        SGM_TRY(sgm__make_folders(output));
    for (size_t i = 0; i < count; i++)
        SGM_TRY(answer(s, files[i], output, json));
    return SGM_OK;
}
