/* Files that `sigma predict` reads: tables by their columns' names, tables of the elements of an input in
 * order, and arrays.
 *
 * Numbers of a file go the way of the run's training data: texts of table columns become numbers, and
 * input_range is scaled to 0 to 1. */
#include "data/table/pipeline.h"
#include "predict/predict.h"

#include <math.h>
#include <stdio.h>

/* Standard input of at most so many bytes is read whole before the table is parsed. */
#define MAX_STANDARD_INPUT ((size_t)1 << 30)

sgm_status predict_read_standard_input(sgm__text *text)
{
    char part[65536];
    size_t got;
    while (text->length <= MAX_STANDARD_INPUT && (got = fread(part, 1, sizeof part, stdin)) > 0)
        sgm__text_append_bytes(text, part, got);
    if (text->length > MAX_STANDARD_INPUT)
        return sgm_fail(SGM_ERROR_FORMAT, "more than %zu bytes on the standard input", MAX_STANDARD_INPUT);
    return text->failed ? sgm__fail_memory(text->length) : SGM_OK;
}

/* A source with its own copy of the bytes; NULL on failure. */
static sgm_source *memory_source(const sgm__text *text)
{
    return sgm_memory_source("standard input", text->data != NULL ? text->data : "", text->length);
}

/* The standard input as a source; NULL on failure. */
static sgm_source *standard_input(void)
{
    sgm__text text = {0};
    sgm_source *source = predict_read_standard_input(&text) == SGM_OK ? memory_source(&text) : NULL;
    sgm__text_free(&text);
    return source;
}

/* Predicts for the rows that an extractor reads, which it takes; NULL passes a failure on. */
static sgm_status predict_extracted(prediction *p, sgm_extractor *extractor)
{
    sgm_status status = extractor != NULL ? SGM_OK : sgm__last_failure();
    while (status == SGM_OK && !predict_is_done(p)) {
        sgm_block *block = NULL;
        status = sgm_extractor_extract(extractor, PREDICT_CHUNK, &block);
        if (status != SGM_OK || block == NULL)
            break;
        status = predict_block(p, block);
        sgm_block_free(block);
    }
    sgm_extractor_free(extractor);
    return status;
}

/* The standard input is read once, though --id reads the table beside its examples. */
sgm_status predict_named(prediction *p, const char *path, char separator)
{
    const sgm_pipeline_extractor_options options = {.struct_size = sizeof options,
                                                    .inputs_only = true,
                                                    .ignore_unknown = p->ignores_unknown,
                                                    .separator = separator};
    sgm__text text = {0};
    bool is_standard = strcmp(path, "-") == 0;
    sgm_status status = is_standard ? predict_read_standard_input(&text) : SGM_OK;
    if (status == SGM_OK && p->id != NULL)
        status =
            predict_answers_identify(p, is_standard ? memory_source(&text) : file_source(path), separator);
    if (status == SGM_OK)
        status = predict_extracted(
            p, sgm__pipeline_extractor_of(p->pipeline, is_standard ? memory_source(&text) : file_source(path),
                                          &options));
    sgm__text_free(&text);
    if (status == SGM_OK && p->done == 0)
        return sgm_fail(SGM_ERROR_FORMAT, "%s: there are no examples", path);
    return status;
}

/* What the run's configuration says about its own training data, for files that are to be read the same
 * way. */
static void find_table(prediction *p)
{
    const data_config *training = &p->s.c.data.training;
    p->table = p->s.has_config && training->csv != NULL ? training : NULL;
    p->scales = saved_range(&p->s, &p->minimum, &p->maximum);
}

/* Scales numbers of a file, (x - minimum) / (maximum - minimum), in float64, then predicts. */
static sgm_status predict_values(prediction *p, sgm_tensor *values)
{
    if (!p->scales)
        return predict_chunk(p, values, NULL);
    sgm_tensor *scaled = sgm_tensor_cast(values, SGM_FLOAT64);
    if (scaled == NULL)
        return sgm_last_status();
    double *numbers = sgm_tensor_data(scaled);
    int64_t count = sgm_shape_elements(sgm_tensor_shape(scaled));
    for (int64_t i = 0; i < count; i++)
        numbers[i] = (numbers[i] - p->minimum) / (p->maximum - p->minimum);
    sgm_status status = predict_chunk(p, scaled, NULL);
    sgm_tensor_free(scaled);
    return status;
}

/* The line of the file that a row stands in, for messages; readers that skip lines keep a list. */
static long long line_of(const sgm_examples *rows, int64_t row)
{
    return (long long)(rows->lines != NULL ? rows->lines[row] : rows->first_line + row);
}

/* The error for cell number `cell`, counted row after row. It says what is expected there: one of the
 * column's texts, a number, or a number that fits float32. */
static sgm_status fail_cell(const prediction *p, const sgm_examples *rows, int64_t cell)
{
    int64_t column = cell % rows->columns;
    const char *text = rows->cells[cell], *texts = table_input_texts(p->table, column);
    double number;
    bool large = table_input_number(p->table, column, text, &number) && isfinite(number);
    long long line = line_of(rows, cell / rows->columns);
    return sgm_fail(
        SGM_ERROR_FORMAT, "line %lld, column %lld (from 0): expected %s%s, got '%.40s'%s", line,
        (long long)column,
        texts != NULL ? "one of "
        : large       ? "a number that fits float32"
                      : "a number",
        texts != NULL ? texts : "", text != NULL ? text : "",
        line == 1 && !large ? "; a first line with headings is skipped if none of them is a number" : "");
}

/* Cells of the rows from `first` on as numbers: *values (rows, columns) in float64, which the caller
 * frees. */
static sgm_status read_rows(const prediction *p, const sgm_examples *rows, int64_t first, sgm_tensor **values)
{
    if (rows->columns != p->elements)
        return sgm_fail(
            SGM_ERROR_SHAPE, "line %lld: expected %lld numbers, as the network's input, got %d: %s",
            line_of(rows, first), (long long)p->elements, rows->columns,
            rows->columns > p->elements
                ? "leave other columns out; --data training predicts for the data of the run itself"
                : "--separator says what stands between them");
    sgm_shape shape = sgm_shape_of(rows->count - first, p->elements);
    sgm_tensor *table = sgm_tensor_create(SGM_FLOAT64, &shape);
    if (table == NULL)
        return sgm__last_failure();
    double *out = sgm_tensor_data(table);
    for (int64_t i = first * rows->columns; i < rows->count * rows->columns; i++) {
        const char *cell = rows->cells[i];
        int64_t column = i % rows->columns;
        if (!table_input_number(p->table, column, cell, out) || !isfinite((float)*out++)) {
            sgm_tensor_free(table);
            return fail_cell(p, rows, i);
        }
    }
    *values = table;
    return SGM_OK;
}

/* Whether the first row is a heading: it has a cell for each number of an example, and none of them is a
 * number. */
static bool is_heading(const prediction *p, const sgm_examples *rows)
{
    double number;
    if (rows->columns != p->elements)
        return false;
    for (int32_t i = 0; i < rows->columns; i++)
        if (rows->cells[i] == NULL || table_input_number(p->table, i, rows->cells[i], &number))
            return false;
    return true;
}

/* Rows of a table from `first` on; none is no error here. */
static sgm_status predict_rows(prediction *p, const sgm_examples *rows, int64_t first)
{
    sgm_tensor *values = NULL;
    if (first == rows->count)
        return SGM_OK;
    SGM_TRY(read_rows(p, rows, first, &values));
    sgm_status status = predict_values(p, values);
    sgm_tensor_free(values);
    return status;
}

/* Reads and predicts chunk by chunk. The first chunk may begin with a heading; a file without any example is
 * an error. */
static sgm_status predict_reader(prediction *p, sgm_reader *reader)
{
    sgm_examples examples;
    if (reader == NULL)
        return sgm__last_failure();
    SGM_TRY(sgm_reader_prepare(reader));
    for (bool begin = true; !predict_is_done(p); begin = false) {
        SGM_TRY(sgm_reader_read(reader, PREDICT_CHUNK, &examples));
        sgm_status status = SGM_OK;
        if (examples.count == 0 && p->done > 0)
            break;
        if (examples.count == 0)
            status = sgm_fail(SGM_ERROR_FORMAT,
                              begin ? "there are no examples" : "there are no examples behind the heading");
        else if (examples.values != NULL)
            status = predict_values(p, examples.values);
        else
            status = predict_rows(p, &examples, begin && is_heading(p, &examples) ? 1 : 0);
        if (status != SGM_OK)
            return sgm__fail_within("%s", sgm_reader_name(reader));
    }
    return SGM_OK;
}

/* A reader for standard input, arrays or a table. A NULL source is passed on as a failure. */
static sgm_reader *open_reader(const char *path, char separator, const char *missing)
{
    if (strcmp(path, "-") == 0)
        return sgm_csv_reader(standard_input(), .separator = separator, .missing = missing);
    if (is_numpy(path))
        return numpy_reader(path);
    return sgm_csv_reader(file_source(path), .separator = separator, .missing = missing);
}

/* Appends the lengths in `examples`, which are an array or a table of one column. */
static sgm_status add_lengths(prediction *p, const sgm_examples *examples)
{
    double *longer = sgm__realloc(p->lengths, (size_t)(p->length_count + examples->count) * sizeof *longer);
    if (longer == NULL)
        return SGM_ERROR_MEMORY;
    p->lengths = longer;
    double *to = longer + p->length_count;
    if (examples->values != NULL && sgm_shape_elements(sgm_tensor_shape(examples->values)) != examples->count)
        return sgm_fail(SGM_ERROR_SHAPE, "expected one number for each example");
    if (examples->values != NULL)
        SGM_TRY(sgm_tensor_read(examples->values, to, (size_t)examples->count));
    for (int64_t i = 0; i < examples->count && examples->values == NULL; i++)
        if (examples->columns != 1 || examples->cells[i] == NULL ||
            !sgm__parse_double(examples->cells[i], &to[i]))
            return sgm_fail(SGM_ERROR_FORMAT,
                            "line %lld: expected one number, how many steps of an example count",
                            line_of(examples, i));
    p->length_count += examples->count;
    return SGM_OK;
}

/* Reads all of --lengths before the examples: they are few numbers. */
static sgm_status read_lengths(prediction *p, const char *path)
{
    sgm_examples examples;
    if (p->signature.lengths[0] == '\0')
        return sgm_fail(SGM_ERROR_ARGUMENT, "--lengths: the network's input has no lengths");
    sgm_reader *reader = open_reader(path, ',', NULL);
    sgm_status status = reader != NULL ? sgm_reader_prepare(reader) : sgm__last_failure();
    for (bool more = true; more && status == SGM_OK;) {
        status = sgm_reader_read(reader, PREDICT_CHUNK, &examples);
        more = status == SGM_OK && examples.count > 0;
        if (more)
            status = add_lengths(p, &examples);
    }
    sgm_reader_free(reader);
    return status == SGM_OK ? SGM_OK : sgm__fail_within("--lengths %s", path);
}

/* A network with several inputs takes an archive with an array for each; other files have one input. */
sgm_status predict_file(prediction *p, const char *path, const char *lengths, char separator)
{
    if (p->signature.inputs > 1 && ends_with(path, ".npz") && p->onnx.onnx != NULL)
        return predict_outputs(p, onnx_model_predict_archive(&p->onnx, path), NULL);
    if (p->signature.inputs > 1 && ends_with(path, ".npz"))
        return predict_extracted(p, experiment_archive(p->s.network, path));
    if (p->signature.inputs != 1)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "%s: a file has one input, but the network has %zu; FILE.npz with an array for each, "
                        "called as the inputs are, or --data NAME has all of them",
                        path, p->signature.inputs);
    find_table(p);
    if (lengths != NULL)
        SGM_TRY(read_lengths(p, lengths));
    sgm_reader *reader = open_reader(path, separator, p->table != NULL ? p->table->missing : NULL);
    sgm_status status = predict_reader(p, reader);
    sgm_reader_free(reader);
    return status;
}
