/* What a pipeline is made of: its parts, fields and categories, and what is asked of it. See pipeline.h. */
#include "data/table/pipeline.h"

/* --- pipelines --- */

sgm_pipeline *sgm__pipeline_create(size_t parts)
{
    sgm_pipeline *pipeline = sgm__calloc(1, sizeof *pipeline);
    if (pipeline == NULL)
        return NULL;
    atomic_init(&pipeline->references, 1);
    pipeline->parts = sgm__calloc(parts, sizeof *pipeline->parts);
    if (pipeline->parts != NULL)
        return pipeline;
    sgm__free(pipeline);
    return NULL;
}

sgm_pipeline *sgm_pipeline_retain(sgm_pipeline *pipeline)
{
    atomic_fetch_add(&pipeline->references, 1);
    return pipeline;
}

void sgm__pipeline_free_categories(char **categories, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sgm__free(categories[i]);
    sgm__free(categories);
}

void sgm_pipeline_free(sgm_pipeline *pipeline)
{
    if (pipeline == NULL || atomic_fetch_sub(&pipeline->references, 1) > 1)
        return;
    for (size_t i = 0; i < pipeline->part_count; i++) {
        sgm__pipeline_part *part = &pipeline->parts[i];
        sgm__pipeline_free_categories(part->categories, part->category_count);
        sgm__text_index_free(&part->index);
        sgm__free(part->name);
    }
    if (pipeline->form != NULL && pipeline->kind->release != NULL)
        pipeline->kind->release(pipeline->form);
    sgm__free(pipeline->form);
    sgm__free(pipeline->parts);
    sgm_tokenizer_free(pipeline->tokenizer);
    sgm__free(pipeline->format.missing);
    sgm__free(pipeline);
}

sgm_status sgm__pipeline_set_categories(sgm__pipeline_part *part, char **categories, size_t count)
{
    part->categories = categories;
    part->category_count = count;
    for (size_t i = 0; i < count; i++) {
        size_t other, length = strlen(categories[i]);
        if (sgm__text_index_find(&part->index, categories[i], length, &other))
            return sgm_fail(SGM_ERROR_FORMAT, "column '%s' has the category '%s' twice", part->name,
                            categories[i]);
        SGM_TRY(sgm__text_index_add(&part->index, categories[i], length));
    }
    return SGM_OK;
}

sgm__pipeline_field *sgm__pipeline_find_field(sgm_pipeline *pipeline, const char *name)
{
    for (int32_t i = 0; i < pipeline->field_count; i++)
        if (strcmp(pipeline->fields[i].name, name) == 0)
            return &pipeline->fields[i];
    return NULL;
}

sgm__pipeline_field *sgm__pipeline_add_field(sgm_pipeline *pipeline, const char *name)
{
    sgm__pipeline_field *field = &pipeline->fields[pipeline->field_count];
    if (pipeline->field_count == SGM_MAX_FIELDS)
        sgm_fail(SGM_ERROR_ARGUMENT,
                 "there can be %d fields, inputs and targets among them, and two of each text",
                 SGM_MAX_FIELDS);
    else if (sgm__pipeline_find_field(pipeline, name) != NULL)
        sgm_fail(SGM_ERROR_ARGUMENT, "two columns would be the field '%s'; rename one", name);
    else if (sgm__field_name(field->name, name, "sgm_pipeline_fit") == SGM_OK)
        return &pipeline->fields[pipeline->field_count++];
    return NULL;
}

sgm_status sgm__pipeline_place(sgm_pipeline *pipeline, sgm__pipeline_part *part, const char *field)
{
    sgm__pipeline_field *there = sgm__pipeline_find_field(pipeline, field);
    if (there == NULL) {
        there = sgm__pipeline_add_field(pipeline, field);
        if (there == NULL)
            return sgm__last_failure();
        there->is_input = sgm__pipeline_is_input(part);
        there->is_index = there->is_input && strcmp(field, "inputs") != 0;
    }
    bool is_one_hot = part->kind == SGM_COLUMN_CATEGORY && !there->is_index;
    part->field = (int32_t)(there - pipeline->fields);
    part->first = there->width;
    part->width = (is_one_hot                      ? (int32_t)part->category_count
                   : part->kind == SGM_COLUMN_DATE ? sgm__pipeline_date_width(part)
                                                   : 1) +
                  part->has_flag;
    there->width += part->width;
    return SGM_OK;
}

bool sgm__pipeline_is_input(const sgm__pipeline_part *part)
{
    return !part->is_target && !part->is_weight;
}

/* --- looking --- */

int64_t sgm_pipeline_width(const sgm_pipeline *pipeline, const char *field)
{
    for (int32_t i = 0; i < pipeline->field_count; i++)
        if (strcmp(pipeline->fields[i].name, field) == 0)
            return pipeline->fields[i].width;
    return 0;
}

const char *sgm_pipeline_column(const sgm_pipeline *pipeline, size_t index)
{
    return index < pipeline->part_count ? pipeline->parts[index].name : NULL;
}

const sgm__pipeline_part *sgm__pipeline_target(const sgm_pipeline *pipeline, size_t index)
{
    for (size_t i = 0; i < pipeline->part_count; i++)
        if (pipeline->parts[i].is_target && index-- == 0)
            return &pipeline->parts[i];
    return NULL;
}

const char *const *sgm_pipeline_classes(const sgm_pipeline *pipeline)
{
    const sgm__pipeline_part *target = sgm__pipeline_target(pipeline, 0);
    return pipeline->labels == 0 && target != NULL ? (const char *const *)target->categories : NULL;
}

void sgm__pipeline_units(const sgm_pipeline *pipeline, size_t index, double *factor, double *offset)
{
    size_t targets = (size_t)sgm_pipeline_width(pipeline, "targets");
    const sgm__pipeline_part *mean = sgm__pipeline_target(pipeline, index),
                             *part = mean != NULL || index < targets
                                         ? mean
                                         : sgm__pipeline_target(pipeline, index - targets);
    bool is_number = part != NULL && part->kind != SGM_COLUMN_CATEGORY;
    *factor = is_number ? part->factor : 1;
    *offset = is_number && mean != NULL ? part->offset : 0;
}

double sgm_pipeline_restore(const sgm_pipeline *pipeline, size_t index, double prediction)
{
    double factor, offset;
    sgm__pipeline_units(pipeline, index, &factor, &offset);
    return prediction * factor + offset;
}
