/* Texts in a pipeline: columns of a table that become tokens. See pipeline.h. */
#include "data/table/pipeline.h"

/* --- fitting --- */

int64_t sgm__pipeline_window_of(const sgm_table_column *column, const sgm_pipeline_options *options)
{
    if (options->window > 0)
        return options->window;
    return column->longest > 0 && column->longest < SGM__DEFAULT_WINDOW ? column->longest
                                                                        : SGM__DEFAULT_WINDOW;
}

sgm_status sgm__pipeline_fail_without_inputs(const sgm_table *table, const sgm_pipeline_options *options)
{
    const char *text = NULL;
    for (size_t i = 0; i < table->column_count && text == NULL; i++) {
        const sgm_table_column *column = &table->columns[i].summary;
        bool is_other = SGM__LISTED(options->targets, column->name) != NULL ||
                        SGM__LISTED(options->drop, column->name) != NULL;
        text = column->kind == SGM_COLUMN_TEXT && !is_other ? column->name : NULL;
    }
    return sgm_fail(SGM_ERROR_ARGUMENT, "%s: no column is left to predict the targets from%s%s%s",
                    table->path, text != NULL ? "; text_columns: [" : "", text != NULL ? text : "",
                    text != NULL ? "] would read its texts as tokens" : "");
}

sgm_status sgm__pipeline_keep_tokenizer(sgm_pipeline *pipeline, const sgm_pipeline_options *options)
{
    if (options->text_columns[0] == NULL)
        return options->tokenizer == NULL && options->window == 0
                   ? SGM_OK
                   : sgm_fail(SGM_ERROR_ARGUMENT,
                              "tokenizer and window are for text_columns, of which there are none");
    pipeline->tokenizer =
        options->tokenizer != NULL ? sgm__tokenizer_copy(options->tokenizer) : sgm_byte_tokenizer();
    return pipeline->tokenizer != NULL ? SGM_OK : sgm__last_failure();
}

/* --- fields --- */

sgm_status sgm__pipeline_place_text(sgm_pipeline *pipeline, sgm__pipeline_part *part, const char *field,
                                    int64_t window)
{
    char length[SGM__FIELD_NAME + sizeof SGM__LENGTH_OF];
    snprintf(length, sizeof length, "%.*s" SGM__LENGTH_OF, (int)SGM__FIELD_NAME, field);
    SGM_TRY(sgm__token_window_check(window));
    sgm__pipeline_field *tokens = sgm__pipeline_add_field(pipeline, field),
                        *lengths = tokens != NULL ? sgm__pipeline_add_field(pipeline, length) : NULL;
    if (lengths == NULL)
        return sgm__last_failure();
    part->field = (int32_t)(tokens - pipeline->fields);
    part->width = tokens->width = (int32_t)window;
    lengths->width = 1;
    lengths->is_length = true;
    tokens->is_input = lengths->is_input = true;
    return SGM_OK;
}

sgm_status sgm__pipeline_write_text(const sgm_pipeline *pipeline, const sgm__pipeline_part *part,
                                    const char *cell, float *tokens, float *length)
{
    double value;
    int32_t count;
    bool is_missing = sgm__cell_read(&pipeline->format, cell, &value) == SGM__CELL_MISSING;
    const char *text = is_missing ? "" : cell;
    if (is_missing && part->is_required)
        return sgm_fail(SGM_ERROR_FORMAT, SGM__MISSING_INPUT);
    SGM_TRY(sgm__token_window(pipeline->tokenizer, text, strlen(text), part->width, tokens, &count));
    *length = (float)count;
    return SGM_OK;
}
