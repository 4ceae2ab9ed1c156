/* Turns JSON objects into rows of cells, as a file would have them, and these into the network's inputs; see
 * rows.h.
 *
 * A number becomes the shortest text that reads back as it, with the table's sign before decimals, so that a
 * category of digits is found as well. */
#include "monitors/serve/rows.h"
#include "data/table/pipeline.h"

#include <stdio.h>

/* Columns of inputs stand before those of targets. */
static size_t input_columns(const sgm_pipeline *pipeline)
{
    size_t count = 0;
    while (count < pipeline->part_count && sgm__pipeline_is_input(&pipeline->parts[count]))
        count++;
    return count;
}

/* Cells of all rows. Texts are the JSON's; numbers are written into `numbers`. */
typedef struct rows {
    const char **names, **cells;
    char (*numbers)[32];
} rows;

static void number_cell(const sgm_pipeline *pipeline, const json_t *value, char *text)
{
    if (json_is_integer(value))
        snprintf(text, 32, "%lld", (long long)json_integer_value(value));
    else
        sgm__number_text(json_real_value(value), text, 32);
    char *point = strchr(text, '.');
    if (point != NULL)
        *point = pipeline->format.decimal;
}

static sgm_status read_cell(const sgm_pipeline *pipeline, const json_t *object, int64_t row, size_t column,
                            rows *to)
{
    size_t at = (size_t)row * input_columns(pipeline) + column;
    const char *name = to->names[column];
    const json_t *value = json_object_get(object, name);
    if (value == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "row %lld of 'input' has no column '%s'; null says that there is no value",
                        (long long)row + 1, name);
    if (json_is_array(value) || json_is_object(value) || json_is_boolean(value))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "row %lld of 'input', column '%s': a text, a number or null was expected",
                        (long long)row + 1, name);
    to->cells[at] = json_string_value(value);
    if (json_is_number(value)) {
        number_cell(pipeline, value, to->numbers[at]);
        to->cells[at] = to->numbers[at];
    }
    return SGM_OK;
}

static sgm_status read_rows(const sgm_pipeline *pipeline, const json_t *list, int64_t room, rows *to)
{
    size_t columns = input_columns(pipeline);
    int64_t count = (int64_t)json_array_size(list);
    for (int64_t row = 0; row < room; row++) {
        const json_t *object = json_array_get(list, row < count ? (size_t)row : 0);
        if (!json_is_object(object))
            return sgm_fail(SGM_ERROR_ARGUMENT,
                            "row %lld of 'input': an object with the table's columns was expected",
                            (long long)row + 1);
        for (size_t i = 0; i < columns; i++)
            SGM_TRY(read_cell(pipeline, object, row, i, to));
    }
    return SGM_OK;
}

sgm_block *sgm__serve_rows(const sgm_pipeline *pipeline, const json_t *list, int64_t room,
                           bool ignore_unknown)
{
    size_t columns = input_columns(pipeline), count = columns * (size_t)room;
    rows all = {.names = sgm__calloc(columns, sizeof *all.names),
                .cells = sgm__calloc(count, sizeof *all.cells),
                .numbers = sgm__calloc(count, sizeof *all.numbers)};
    sgm_block *block = NULL;
    bool good = all.names != NULL && all.cells != NULL && all.numbers != NULL;
    for (size_t i = 0; i < columns && good; i++)
        all.names[i] = pipeline->parts[i].name;
    if (good && read_rows(pipeline, list, room, &all) == SGM_OK)
        block = sgm__pipeline_apply(pipeline, all.names, columns, all.cells, room, ignore_unknown);
    sgm__free(all.names);
    sgm__free(all.cells);
    sgm__free(all.numbers);
    return block;
}

json_t *sgm__serve_empty_row(const sgm_pipeline *pipeline)
{
    json_t *row = json_object();
    for (size_t i = 0; i < input_columns(pipeline); i++)
        json_object_set_new(row, pipeline->parts[i].name, json_null());
    return row;
}
