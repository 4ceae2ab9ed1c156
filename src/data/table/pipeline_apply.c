/* Cells of rows into the numbers of examples, by a pipeline. See pipeline.h. */
#include "data/table/pipeline.h"

#include <float.h>
#include <math.h>

/* --- columns --- */

/* Whether the column number `index` of a header is the one that a table calls `name`: sgm_table_open calls a
 * column without a name by its number, such as the first one of a file that pandas has written. */
static bool is_column(const char *const *names, size_t index, const char *name)
{
    int64_t number;
    if (names[index] != NULL && *names[index] != '\0')
        return strcmp(names[index], name) == 0;
    return sgm__parse_int64(name, &number) && number >= 0 && (uint64_t)number == index;
}

sgm_status sgm__pipeline_find(const sgm_pipeline *pipeline, const char *name, const char *const *names,
                              size_t count, bool inputs_only, int32_t *columns)
{
    for (size_t i = 0; i < pipeline->part_count; i++) {
        const sgm__pipeline_part *part = &pipeline->parts[i];
        columns[i] = -1;
        for (size_t k = 0; k < count; k++) {
            if (!is_column(names, k, part->name))
                continue;
            if (columns[i] >= 0)
                return sgm_fail(SGM_ERROR_FORMAT, "%s has two columns '%s'; remove one of them", name,
                                part->name);
            columns[i] = (int32_t)k;
        }
        if (columns[i] < 0 && !part->is_weight && !(inputs_only && part->is_target))
            return sgm__table_fail_unknown(name, part->name, names, count);
    }
    return SGM_OK;
}

/* --- cells --- */

bool sgm__pipeline_find_category(const sgm__cell_format *format, const sgm__pipeline_part *part,
                                 const char *cell, uintptr_t *at)
{
    char text[32];
    double number;
    if (sgm__name_index_find(&part->index, cell, at))
        return true;
    return sgm__cell_read(format, cell, &number) == SGM__CELL_NUMBER &&
           sgm__name_index_find(&part->index, sgm__pipeline_number_category(number, text, sizeof text), at);
}

/* A number, or the place of a category; *is_missing if there is none. */
static sgm_status read_category(const sgm__cell_format *format, const sgm__pipeline_part *part,
                                const char *cell, bool ignore_unknown, double *value, bool *is_missing)
{
    uintptr_t at;
    if (sgm__pipeline_find_category(format, part, cell, &at)) {
        *value = (double)at;
        return SGM_OK;
    }
    *is_missing = true;
    if (ignore_unknown && !part->is_target)
        return SGM_OK;
    return sgm_fail(
        SGM_ERROR_FORMAT,
        "\"%.60s\" is none of the %zu categories that the pipeline knows (%.40s%s%.40s%s); correct it%s",
        cell, part->category_count, part->categories[0], part->category_count > 1 ? ", " : "",
        part->category_count > 1 ? part->categories[1] : "", part->category_count > 2 ? ", ..." : "",
        part->is_target ? "" : ", leave it empty, or ignore unknown ones");
}

/* Whether the cell is a number, or a date, that can be written. */
static sgm_status check_number(const sgm__pipeline_part *part, const char *cell, sgm__cell_kind kind,
                               double value)
{
    sgm__cell_kind wanted = part->kind == SGM_COLUMN_DATE ? SGM__CELL_DATE : SGM__CELL_NUMBER;
    if (kind != wanted)
        return sgm_fail(SGM_ERROR_FORMAT, "\"%.60s\" is no %s; correct it, or leave it empty", cell,
                        sgm_column_kind_name(part->kind));
    if (part->is_weight && value < 0)
        return sgm_fail(SGM_ERROR_FORMAT, "\"%.60s\" is below 0, and a weight is 0 or more", cell);
    double scaled = (sgm__pipeline_number(part, value) - part->offset) / part->factor;
    return fabs(scaled) <= (double)FLT_MAX
               ? SGM_OK
               : sgm_fail(SGM_ERROR_NUMERIC,
                          "\"%.60s\" is too large for float32; drop the column, or scale it", cell);
}

/* A number, or those of a date. */
static void write_number(const sgm__pipeline_part *part, double value, float *numbers)
{
    numbers[0] = (float)((sgm__pipeline_number(part, value) - part->offset) / part->factor);
    sgm__pipeline_write_date(part, value, numbers + 1);
}

/* Writes the numbers of one cell; they were 0. */
static sgm_status write_cell(const sgm_pipeline *pipeline, const sgm__pipeline_part *part, const char *cell,
                             bool ignore_unknown, float *numbers)
{
    double value = 0;
    sgm__cell_kind kind = sgm__cell_read(&pipeline->format, cell, &value);
    bool is_missing = kind == SGM__CELL_MISSING, is_category = part->kind == SGM_COLUMN_CATEGORY;
    if (is_missing && part->is_required)
        return sgm_fail(SGM_ERROR_FORMAT, "%s",
                        part->is_target ? "the target is missing; leave the row out"
                        : part->is_weight
                            ? "the weight is missing; a row with the weight 0 does not count"
                            : "the value is missing, which 'impute' refuses; leave the row out");
    if (!is_missing && is_category)
        SGM_TRY(read_category(&pipeline->format, part, cell, ignore_unknown, &value, &is_missing));
    else if (!is_missing)
        SGM_TRY(check_number(part, cell, kind, value));
    if (is_missing)
        value = part->fill;
    if (part->has_flag)
        numbers[part->width - 1] = is_missing;
    if (!is_category)
        write_number(part, value, numbers);
    else if (pipeline->fields[part->field].is_index)
        numbers[0] = value >= 0 ? (float)value : (float)part->category_count;
    else if (value >= 0)
        numbers[(int64_t)value] = 1;
    return SGM_OK;
}

/* --- rows --- */

sgm_status sgm__pipeline_begin(const sgm_pipeline *pipeline, bool inputs_only, sgm__builder *builder)
{
    for (int32_t i = 0; i < pipeline->field_count; i++) {
        const sgm__pipeline_field *field = &pipeline->fields[i];
        sgm_shape example = sgm__pipeline_field_shape(pipeline, i);
        if (!inputs_only || field->is_input)
            SGM_TRY(sgm__builder_add_field(builder, field->name, &example));
    }
    return SGM_OK;
}

/* "pets.csv: line 17, column 'age'". */
static sgm_status fail_at(const sgm__pipeline_rows *rows, int64_t row, const sgm__pipeline_part *part)
{
    return rows->lines != NULL
               ? sgm__fail_within("%s: line %lld, column '%s'", rows->name, (long long)rows->lines[row],
                                  part->name)
               : sgm__fail_within("%s %lld, column '%s'", rows->name, (long long)row + 1, part->name);
}

/* Fields of inputs are the first ones, so that they have the same numbers in all builders. */
sgm_status sgm__pipeline_append(const sgm_pipeline *pipeline, const sgm__pipeline_rows *rows,
                                const char *const *cells, size_t width, int64_t count, sgm__builder *builder)
{
    SGM_TRY(sgm__builder_reserve(builder, count));
    for (int32_t i = 0; i < builder->field_count; i++)
        memset(sgm__builder_end(builder, i), 0,
               (size_t)count * (size_t)pipeline->fields[i].width * sizeof(float));
    for (size_t i = 0; i < pipeline->part_count; i++) {
        const sgm__pipeline_part *part = &pipeline->parts[i];
        if (rows->inputs_only && !sgm__pipeline_is_input(part))
            continue;
        float *numbers = sgm__builder_end(builder, part->field) + part->first;
        for (int64_t row = 0; row < count; row++, numbers += pipeline->fields[part->field].width)
            if (rows->columns[i] < 0)
                numbers[0] = 1; /* a weight that the file does not have */
            else if (write_cell(pipeline, part, cells[(size_t)row * width + (size_t)rows->columns[i]],
                                rows->ignore_unknown, numbers) != SGM_OK)
                return fail_at(rows, row, part);
    }
    builder->count += count;
    return SGM_OK;
}

static sgm_block *apply(const sgm_pipeline *pipeline, const sgm__pipeline_rows *rows,
                        const char *const *cells, size_t width, int64_t count)
{
    sgm__builder builder = {0};
    if (sgm__pipeline_begin(pipeline, true, &builder) == SGM_OK &&
        sgm__pipeline_append(pipeline, rows, cells, width, count, &builder) == SGM_OK)
        return sgm__builder_take(&builder);
    sgm__builder_free(&builder);
    return NULL;
}

sgm_block *sgm_pipeline_apply(const sgm_pipeline *pipeline, const char *const *names, size_t count,
                              const char *const *cells, int64_t rows)
{
    if (rows < 1) {
        sgm_fail(SGM_ERROR_ARGUMENT, "at least one row was expected, %lld came", (long long)rows);
        return NULL;
    }
    if (sgm__pipeline_expect_table(pipeline) != SGM_OK)
        return NULL;
    int32_t *columns = sgm__calloc(pipeline->part_count, sizeof *columns);
    sgm_block *block = NULL;
    if (columns != NULL &&
        sgm__pipeline_find(pipeline, "what is asked", names, count, true, columns) == SGM_OK)
        block = apply(pipeline,
                      &(const sgm__pipeline_rows){.columns = columns, .inputs_only = true, .name = "row"},
                      cells, count, rows);
    sgm__free(columns);
    return block;
}
