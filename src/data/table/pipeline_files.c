/* Pipelines of files (sigma/files.h) as pipelines: a field of what a file becomes, and one target of classes.
 * What makes numbers of files is in src/data/kinds and src/data/files. */
#include "data/table/pipeline.h"

sgm_status sgm__pipeline_expect_table(const sgm_pipeline *pipeline)
{
    return pipeline->kind == NULL
               ? SGM_OK
               : sgm_fail(
                     SGM_ERROR_ARGUMENT,
                     "a pipeline of a table was expected, one of %s came; give it %s (sgm_pipeline_files)",
                     pipeline->kind->name, pipeline->kind->names->file);
}

static sgm_status set_form(sgm_pipeline *pipeline, const void *form)
{
    const sgm__file_kind *kind = pipeline->kind;
    SGM_TRY(kind->check(form));
    sgm_shape shape = kind->shape(form);
    pipeline->fields[0] =
        (sgm__pipeline_field){.name = "inputs", .width = (int32_t)sgm_shape_elements(&shape)};
    pipeline->field_count = 1;
    return SGM_OK;
}

sgm_pipeline *sgm__pipeline_of_files(const sgm__file_kind *kind, void *form)
{
    sgm_pipeline *pipeline = sgm__pipeline_create(1);
    void *copy = pipeline != NULL ? sgm__alloc(kind->form_size) : NULL;
    if (copy == NULL) {
        if (kind->release != NULL)
            kind->release(form);
        sgm_pipeline_free(pipeline);
        return NULL;
    }
    pipeline->kind = kind;
    pipeline->form = memcpy(copy, form, kind->form_size);
    if (set_form(pipeline, form) == SGM_OK)
        return pipeline;
    sgm_pipeline_free(pipeline);
    return NULL;
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

const char *sgm_pipeline_kind(const sgm_pipeline *pipeline)
{
    return pipeline->kind != NULL ? pipeline->kind->name : "table";
}

sgm_shape sgm__pipeline_field_shape(const sgm_pipeline *pipeline, int32_t index)
{
    return pipeline->kind != NULL && index == 0 ? pipeline->kind->shape(pipeline->form)
                                                : sgm_shape_of(pipeline->fields[index].width);
}

sgm_status sgm_pipeline_shape(const sgm_pipeline *pipeline, const char *field, sgm_shape *shape)
{
    for (int32_t i = 0; i < pipeline->field_count; i++)
        if (strcmp(pipeline->fields[i].name, field) == 0) {
            *shape = sgm__pipeline_field_shape(pipeline, i);
            return SGM_OK;
        }
    return sgm_fail(SGM_ERROR_NOT_FOUND, "the pipeline has no field '%s'", field);
}
