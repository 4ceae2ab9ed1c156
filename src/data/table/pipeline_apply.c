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
                                 const char *cell, size_t length, size_t *at)
{
    char text[32];
    double number;
    if (sgm__text_index_find(&part->index, cell, length, at))
        return true;
    if (sgm__cell_read(format, cell, &number) != SGM__CELL_NUMBER)
        return false;
    sgm__pipeline_number_category(number, text, sizeof text);
    return sgm__text_index_find(&part->index, text, strlen(text), at);
}

/* A number, or the place of a category; *is_missing if there is none. */
static sgm_status read_category(const sgm__cell_format *format, const sgm__pipeline_part *part,
                                const char *cell, size_t length, bool ignore_unknown, double *value,
                                bool *is_missing)
{
    size_t at;
    if (sgm__pipeline_find_category(format, part, cell, length, &at)) {
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
        part->is_target ? "" : ", leave it empty, or ignore unknown ones (--unknown=ignore, ignore_unknown)");
}

/* How a cell should be written that is something else, if that is likely the reason; else "". */
static const char *cell_hint(const sgm__pipeline_part *part, const sgm__cell_format *format, const char *cell)
{
    double number;
    if (part->kind == SGM_COLUMN_DATE)
        return ", such as 2026-11-23 or 23.11.2026";
    if (format->decimal == ',' && sgm__parse_double(cell, &number))
        return ", as the table of the training has a decimal comma";
    if (format->decimal != ',' && sgm__has_decimal_comma(cell))
        return ", as the table of the training has a decimal point";
    return "";
}

/* Why a cell cannot be written that should be a number, or a date. */
static sgm_status fail_number(const sgm__pipeline_part *part, const sgm__cell_format *format,
                              const char *cell, sgm__cell_kind kind)
{
    sgm__cell_kind wanted = part->kind == SGM_COLUMN_DATE ? SGM__CELL_DATE : SGM__CELL_NUMBER;
    if (kind != wanted)
        return sgm_fail(SGM_ERROR_FORMAT, "\"%.60s\" is no %s%s; correct it, or leave it empty", cell,
                        sgm_column_kind_name(part->kind), cell_hint(part, format, cell));
    if (part->is_weight)
        return sgm_fail(SGM_ERROR_FORMAT, "\"%.60s\" is below 0, and a weight is 0 or more", cell);
    return sgm_fail(SGM_ERROR_NUMERIC, "\"%.60s\" is too large for float32; drop the column, or scale it",
                    cell);
}

static sgm_status fail_missing(const sgm__pipeline_part *part)
{
    return sgm_fail(SGM_ERROR_FORMAT, "%s",
                    part->is_target   ? "the target is missing; fill it in, or leave such rows out: "
                                        "missing_target: skip, in C skip_missing of the table"
                    : part->is_weight ? "the weight is missing; a row with the weight 0 does not count"
                                      : SGM__MISSING_INPUT);
}

/* How the rows are read, and what is done with their cells of one column. */
typedef struct cell_place {
    const sgm_pipeline *pipeline;
    const sgm__pipeline_part *part;
    const sgm__pipeline_rows *how;
} cell_place;

/* Writes a number, or those of a date, which came from the cell. */
static inline sgm_status write_number(const cell_place *at, const char *cell, sgm__cell_kind kind,
                                      double value, float *numbers)
{
    const sgm__pipeline_part *part = at->part;
    bool is_date = part->kind == SGM_COLUMN_DATE, is_missing = kind == SGM__CELL_MISSING;
    if (is_missing && part->is_required)
        return fail_missing(part);
    if (is_missing)
        value = part->fill;
    else if (kind != (is_date ? SGM__CELL_DATE : SGM__CELL_NUMBER) || (part->is_weight && value < 0))
        return fail_number(part, &at->pipeline->format, cell, kind);
    double scaled = ((is_date ? sgm__pipeline_number(part, value) : value) - part->offset) / part->factor;
    if (!is_missing && !(fabs(scaled) <= (double)FLT_MAX))
        return fail_number(part, &at->pipeline->format, cell, kind);
    numbers[0] = (float)scaled;
    if (is_date)
        sgm__pipeline_write_date(part, value, numbers + 1);
    if (part->has_flag)
        numbers[part->width - 1] = is_missing;
    return SGM_OK;
}

/* Writes the category of a cell; the numbers were 0. */
static sgm_status write_category(const cell_place *at, const char *cell, size_t length, float *numbers)
{
    const sgm__pipeline_part *part = at->part;
    const sgm__cell_format *format = &at->pipeline->format;
    double value = 0, number;
    bool is_missing = false;
    size_t place;
    if (cell != NULL && sgm__text_index_find(&part->index, cell, length, &place)) { /* most cells */
        value = (double)place;
    } else {
        is_missing = sgm__cell_read(format, cell, &number) == SGM__CELL_MISSING;
        if (is_missing && part->is_required)
            return fail_missing(part);
        if (!is_missing)
            SGM_TRY(read_category(format, part, cell, length, at->how->ignore_unknown, &value, &is_missing));
    }
    if (is_missing)
        value = part->fill;
    if (part->has_flag)
        numbers[part->width - 1] = is_missing;
    if (at->pipeline->fields[part->field].is_index)
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
static sgm_status fail_at(const sgm__pipeline_rows *how, int64_t line, const sgm__pipeline_part *part)
{
    return how->are_numbered
               ? sgm__fail_within("%s %lld, column '%s'", how->name, (long long)line, part->name)
               : sgm__fail_within("%s: line %lld, column '%s'", how->name, (long long)line, part->name);
}

/* A column of the rows, on the way to the numbers of one part. */
typedef struct column {
    cell_place at;
    const sgm__csv_rows *rows;
    size_t cell;    /* the column's, in the row */
    float *numbers; /* of the part, in the row; they were 0 */
    float *steps;   /* of a text: its length, in the row */
    int32_t width;  /* numbers from one row to the next */
    int64_t row;    /* the next one */
} column;

static inline void pass_row(column *c)
{
    c->row++;
    c->cell += (size_t)c->rows->columns;
    c->numbers += c->width;
}

/* Numbers and dates are read some at a time, which is faster. */
static sgm_status append_numbers(column *c)
{
    enum { AT_ONCE = 256 };
    uint8_t kinds[AT_ONCE];
    double values[AT_ONCE];
    const sgm__csv_rows *rows = c->rows;
    while (c->row < rows->count) {
        int64_t count = rows->count - c->row < AT_ONCE ? rows->count - c->row : AT_ONCE;
        sgm__cells_read(&c->at.pipeline->format, rows, c->cell, count, kinds, values);
        for (int64_t i = 0; i < count; i++, pass_row(c))
            SGM_TRY(write_number(&c->at, rows->cells[c->cell], kinds[i], values[i], c->numbers));
    }
    return SGM_OK;
}

static sgm_status append_categories(column *c)
{
    for (; c->row < c->rows->count; pass_row(c))
        SGM_TRY(write_category(&c->at, c->rows->cells[c->cell], c->rows->lengths[c->cell], c->numbers));
    return SGM_OK;
}

static sgm_status append_texts(column *c)
{
    for (; c->row < c->rows->count; pass_row(c))
        SGM_TRY(sgm__pipeline_write_text(c->at.pipeline, c->at.part, c->rows->cells[c->cell], c->numbers,
                                         c->steps + c->row));
    return SGM_OK;
}

/* The weights of a file that has none. */
static sgm_status append_ones(column *c)
{
    for (; c->row < c->rows->count; pass_row(c))
        c->numbers[0] = 1;
    return SGM_OK;
}

static sgm_status append_column(column *c, bool is_there)
{
    if (!is_there)
        return append_ones(c);
    if (c->at.part->kind == SGM_COLUMN_TEXT)
        return append_texts(c);
    return c->at.part->kind == SGM_COLUMN_CATEGORY ? append_categories(c) : append_numbers(c);
}

/* Column by column. Fields of inputs are the first ones, so that they have the same numbers in all builders.
 */
sgm_status sgm__pipeline_append(const sgm_pipeline *pipeline, const sgm__pipeline_rows *how,
                                const sgm__csv_rows *rows, sgm__builder *builder)
{
    SGM_TRY(sgm__builder_reserve(builder, rows->count));
    for (int32_t i = 0; i < builder->field_count; i++)
        memset(sgm__builder_end(builder, i), 0,
               (size_t)rows->count * (size_t)pipeline->fields[i].width * sizeof(float));
    for (size_t i = 0; i < pipeline->part_count; i++) {
        const sgm__pipeline_part *part = &pipeline->parts[i];
        if (how->inputs_only && !sgm__pipeline_is_input(part))
            continue;
        bool is_text = part->kind == SGM_COLUMN_TEXT;
        column c = {.at = {pipeline, part, how},
                    .rows = rows,
                    .cell = (size_t)how->columns[i],
                    .numbers = sgm__builder_end(builder, part->field) + part->first,
                    .steps = is_text ? sgm__builder_end(builder, part->field + 1) : NULL,
                    .width = pipeline->fields[part->field].width};
        if (append_column(&c, how->columns[i] >= 0) != SGM_OK)
            return fail_at(how, rows->lines[c.row], part);
    }
    builder->count += rows->count;
    return SGM_OK;
}

static sgm_block *apply(const sgm_pipeline *pipeline, const sgm__pipeline_rows *how,
                        const sgm__csv_rows *rows)
{
    sgm__builder builder = {0};
    if (sgm__pipeline_begin(pipeline, true, &builder) == SGM_OK &&
        sgm__pipeline_append(pipeline, how, rows, &builder) == SGM_OK)
        return sgm__builder_take(&builder);
    sgm__builder_free(&builder);
    return NULL;
}

sgm_block *sgm_pipeline_apply(const sgm_pipeline *pipeline, const char *const *names, size_t count,
                              const char *const *cells, int64_t rows)
{
    return sgm__pipeline_apply(pipeline, names, count, cells, rows, false);
}

sgm_block *sgm__pipeline_apply(const sgm_pipeline *pipeline, const char *const *names, size_t count,
                               const char *const *cells, int64_t rows, bool ignore_unknown)
{
    if (rows < 1) {
        sgm_fail(SGM_ERROR_ARGUMENT, "at least one row was expected, %lld came", (long long)rows);
        return NULL;
    }
    if (sgm__pipeline_expect_table(pipeline) != SGM_OK)
        return NULL;
    int32_t *columns = sgm__calloc(pipeline->part_count, sizeof *columns);
    const sgm_examples examples = {.count = rows, .columns = (int32_t)count, .cells = cells, .first_line = 1};
    sgm__csv_rows split = {0};
    sgm_block *block = NULL;
    if (columns != NULL && sgm__csv_rows_copy(&split, &examples) == SGM_OK &&
        sgm__pipeline_find(pipeline, "what is asked", names, count, true, columns) == SGM_OK)
        block = apply(pipeline,
                      &(const sgm__pipeline_rows){.columns = columns,
                                                  .inputs_only = true,
                                                  .ignore_unknown = ignore_unknown,
                                                  .are_numbered = true,
                                                  .name = "row"},
                      &split);
    sgm__csv_rows_free(&split);
    sgm__free(columns);
    return block;
}
