/* Pipelines of pictures (sigma/picture.h) as pipelines: a field of pixels, and one target of classes. What
 * makes numbers of pictures is in src/data/pictures. */
#include "data/table/pipeline.h"

#include <math.h>

#define LARGEST_SIDE 32768
#define MOST_NUMBERS (1 << 27) /* of a picture */

bool sgm__pipeline_is_of_pictures(const sgm_pipeline *pipeline)
{
    return pipeline->pictures.channels > 0;
}

sgm_status sgm__pipeline_expect_table(const sgm_pipeline *pipeline)
{
    return !sgm__pipeline_is_of_pictures(pipeline)
               ? SGM_OK
               : sgm_fail(SGM_ERROR_ARGUMENT,
                          "a pipeline of a table was expected, one of pictures came; give it PNG or JPEG "
                          "pictures (sgm_pipeline_pictures)");
}

static sgm_status check_form(const sgm__picture_form *form)
{
    if (form->width < 1 || form->height < 1 || form->width > LARGEST_SIDE || form->height > LARGEST_SIDE ||
        (int64_t)form->width * form->height * form->channels > MOST_NUMBERS)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "pictures of 1 to %d pixels on a side and %d numbers at most were expected, %d x %d "
                        "of %d channels came",
                        LARGEST_SIDE, MOST_NUMBERS, (int)form->width, (int)form->height, (int)form->channels);
    for (int32_t i = 0; i < form->channels; i++)
        if (!isfinite(form->mean[i]) || !(form->deviation[i] > 0) || !isfinite(form->deviation[i]))
            return sgm_fail(SGM_ERROR_FORMAT, "channel %d: a mean and a deviation above 0 were expected",
                            (int)i);
    return SGM_OK;
}

sgm_status sgm__pipeline_set_pictures(sgm_pipeline *pipeline, const sgm__picture_form *form)
{
    if (form->channels != 1 && form->channels != 3)
        return sgm_fail(SGM_ERROR_ARGUMENT, "1 or 3 channels of a picture were expected, %d came",
                        (int)form->channels);
    SGM_TRY(check_form(form));
    pipeline->pictures = *form;
    pipeline->fields[0] =
        (sgm__pipeline_field){.name = "inputs", .width = form->width * form->height * form->channels};
    pipeline->field_count = 1;
    return SGM_OK;
}

sgm_status sgm__pipeline_set_classes(sgm_pipeline *pipeline, char **classes, size_t count)
{
    sgm__pipeline_part *part = &pipeline->parts[0];
    *part = (sgm__pipeline_part){
        .name = sgm__strdup("class"), .is_target = true, .kind = SGM_COLUMN_CATEGORY, .is_required = true};
    pipeline->part_count = 1;
    SGM_TRY(sgm__pipeline_set_categories(part, classes, count));
    return part->name != NULL ? sgm__pipeline_place(pipeline, part, "targets") : SGM_ERROR_MEMORY;
}

bool sgm_pipeline_picture_shape(const sgm_pipeline *pipeline, sgm_shape *shape)
{
    const sgm__picture_form *form = &pipeline->pictures;
    if (!sgm__pipeline_is_of_pictures(pipeline))
        return false;
    *shape = sgm_shape_of(form->channels, form->height, form->width);
    return true;
}
