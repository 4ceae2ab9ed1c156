/* The inputs of single pictures, by a pipeline. */
#include "data/pictures/picture.h"

/* Bytes stand row by row with the channels of a pixel together; inputs have one plane for each channel. */
static void normalise(const sgm__picture_form *form, const unsigned char *bytes, float *to)
{
    size_t pixels = (size_t)form->width * (size_t)form->height, channels = (size_t)form->channels;
    for (size_t c = 0; c < channels; c++) {
        float values[256];
        for (int byte = 0; byte < 256; byte++)
            values[byte] = (float)((byte / 255.0 - form->mean[c]) / form->deviation[c]);
        for (size_t i = 0; i < pixels; i++)
            to[c * pixels + i] = values[bytes[i * channels + c]];
    }
}

sgm_status sgm__picture_read(const sgm_pipeline *pipeline, const sgm_picture *picture, sgm__bytes *bytes,
                             float *to)
{
    const sgm__picture_form *form = &pipeline->pictures;
    int32_t width = form->width, height = form->height;
    bytes->length = 0;
    SGM_TRY(picture->bytes != NULL
                ? sgm__image_decode_memory(picture->name, picture->bytes, picture->length, &width, &height,
                                           form->channels, bytes)
                : sgm__image_decode(picture->name, &width, &height, form->channels, bytes));
    normalise(form, bytes->data, to);
    return SGM_OK;
}

static sgm_status read_all(const sgm_pipeline *pipeline, const sgm_picture *pictures, size_t count,
                           sgm__builder *builder)
{
    sgm_shape shape;
    sgm__bytes bytes = {0};
    sgm_pipeline_picture_shape(pipeline, &shape);
    SGM_TRY(sgm__builder_add_field(builder, "inputs", &shape));
    SGM_TRY(sgm__builder_reserve(builder, (int64_t)count));
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < count && status == SGM_OK; i++) {
        status = sgm__picture_read(pipeline, &pictures[i], &bytes, sgm__builder_end(builder, 0));
        builder->count++;
    }
    sgm__bytes_free(&bytes);
    return status;
}

sgm_block *sgm_pipeline_pictures(const sgm_pipeline *pipeline, const sgm_picture *pictures, size_t count)
{
    sgm__builder builder = {0};
    if (pipeline == NULL || pictures == NULL || count == 0 || !sgm__pipeline_is_of_pictures(pipeline)) {
        sgm_fail(SGM_ERROR_ARGUMENT,
                 "sgm_pipeline_pictures: a pipeline of pictures and at least one picture were expected");
        return NULL;
    }
    if (read_all(pipeline, pictures, count, &builder) == SGM_OK)
        return sgm__builder_take(&builder);
    sgm__builder_free(&builder);
    return NULL;
}
