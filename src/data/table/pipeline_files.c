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
    pipeline->fields[0] = (sgm__pipeline_field){
        .name = "inputs", .width = (int32_t)sgm_shape_elements(&shape), .is_input = true};
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

sgm_status sgm__pipeline_set_characters(sgm_pipeline *pipeline, char **characters, size_t count,
                                        int32_t labels)
{
    sgm__pipeline_part *part = &pipeline->parts[0];
    *part = (sgm__pipeline_part){.name = sgm__strdup("text"),
                                 .is_target = true,
                                 .kind = SGM_COLUMN_CATEGORY,
                                 .is_required = true,
                                 .field = 2,
                                 .width = labels};
    pipeline->part_count = 1;
    pipeline->labels = labels;
    pipeline->fields[1] =
        (sgm__pipeline_field){.name = "lengths", .width = 1, .is_input = true, .is_length = true};
    pipeline->fields[2] = (sgm__pipeline_field){.name = "targets", .width = labels};
    pipeline->field_count = 3;
    SGM_TRY(sgm__pipeline_set_categories(part, characters, count));
    return part->name != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

sgm_status sgm__pipeline_read_file(const sgm_pipeline *pipeline, const sgm_file *file, sgm__bytes *memory,
                                   sgm__builder *builder)
{
    float *inputs = sgm__builder_end(builder, 0);
    return pipeline->labels == 0 ? pipeline->kind->read(pipeline->form, file, memory, inputs)
                                 : pipeline->kind->read_sequence(pipeline->form, file, memory, inputs,
                                                                 sgm__builder_end(builder, 1));
}

const char *const *sgm_pipeline_characters(const sgm_pipeline *pipeline)
{
    return pipeline->labels > 0 ? (const char *const *)pipeline->parts[0].categories : NULL;
}

const char *sgm_pipeline_kind(const sgm_pipeline *pipeline)
{
    return pipeline->kind != NULL ? pipeline->kind->name : "table";
}

sgm_shape sgm__pipeline_field_shape(const sgm_pipeline *pipeline, int32_t index)
{
    const sgm__pipeline_field *field = &pipeline->fields[index];
    const sgm__file_kind *kind = pipeline->kind;
    if (kind != NULL && index == 0)
        return kind->shape(pipeline->form);
    if (kind != NULL && kind->target_shape != NULL)
        return kind->target_shape(pipeline->form);
    return field->is_length ? sgm_scalar_shape() : sgm_shape_of(field->width);
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
