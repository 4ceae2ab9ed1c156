/* `sigma data FILE.npz` and FILE.npy: what the arrays of a file hold, before anything is trained on them.
 *
 * One line for each array, as data_table.c has for a column: its name, the type it is read as, its shape with
 * the examples first, how many numbers are NaN or infinite, and the range of the others. An array of one
 * number for each example has a histogram. */
#include "data/data.h"
#include "data/data_show.h"
#include "data/read/extractor.h"
#include "data/read/source.h"
#include "data/table/column.h"

#include <math.h>
#include <stdio.h>

/* What is known of an array after the examples so far. */
typedef struct array_summary {
    sgm__column column; /* of its numbers; no value: those that are not finite */
    sgm_dtype dtype;
    sgm_shape shape; /* examples first; rank 0: it has none */
    char *refusal;   /* why it cannot be read; NULL: it can */
} array_summary;

/* --- looking at numbers --- */

static sgm_status add_numbers(sgm__column *column, const double *numbers, uint8_t *kinds, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        kinds[i] = isfinite(numbers[i]) ? SGM__CELL_NUMBER : SGM__CELL_MISSING;
        column->tally.counts[kinds[i]]++;
    }
    return sgm__column_measure(column, kinds, numbers, NULL, count);
}

static sgm_status add_examples(array_summary *s, sgm_tensor *values)
{
    int64_t count = sgm_shape_elements(sgm_tensor_shape(values)),
            before = s->shape.rank > 0 ? s->shape.dims[0] : 0;
    double *numbers = sgm__calloc((size_t)count, sizeof *numbers);
    uint8_t *kinds = sgm__calloc((size_t)count, sizeof *kinds);
    sgm_status status =
        numbers != NULL && kinds != NULL ? sgm_tensor_read(values, numbers, (size_t)count) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = add_numbers(&s->column, numbers, kinds, count);
    sgm__free(numbers);
    sgm__free(kinds);
    s->dtype = sgm_tensor_dtype(values);
    s->shape = *sgm_tensor_shape(values);
    s->shape.dims[0] += before;
    return status;
}

/* Takes the reader; NULL passes a failure on. */
static sgm_status read_array(array_summary *s, sgm_reader *reader)
{
    sgm__chunks chunks = {.reader = reader};
    sgm_examples examples = {.count = 1};
    sgm_status status = reader != NULL ? SGM_OK : sgm__last_failure();
    while (status == SGM_OK && examples.count > 0) {
        status = sgm__chunks_read(&chunks, INT64_MAX, &examples);
        if (status == SGM_OK && examples.count > 0)
            status = add_examples(s, examples.values);
    }
    sgm_reader_free(reader);
    sgm__column_finish(&s->column);
    return status;
}

/* An array that is no numbers, or not as Sigma reads them, is told of in its line. */
static sgm_status summarise(array_summary *s, sgm_reader *reader)
{
    sgm_status status = read_array(s, reader);
    if (status != SGM_ERROR_UNSUPPORTED)
        return status;
    s->refusal = sgm__strdup(sgm_last_error());
    sgm_clear_error();
    return s->refusal != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

static void free_summary(array_summary *s)
{
    sgm__column_free(&s->column);
    sgm__free(s->refusal);
}

/* --- lines --- */

static void append_distribution(sgm__text *to, const array_summary *s)
{
    int64_t counts[DATA_BARS] = {0};
    const sgm__moments *moments = sgm__column_moments(&s->column);
    bool is_number = s->shape.rank == 1 || (s->shape.rank == 2 && s->shape.dims[1] == 1);
    if (is_number && moments != NULL)
        sgm__moments_histogram(moments, counts, DATA_BARS);
    data_append_bars(to, counts);
}

static void append_array(sgm__text *to, const array_summary *s, const char *name, size_t width)
{
    char shape[128];
    const sgm_table_column *numbers = &s->column.summary;
    sgm__text_append(to, "  ");
    data_append_name(to, name, width);
    if (s->refusal != NULL || s->shape.rank == 0) {
        sgm__text_append(to, "  %s\n", s->refusal != NULL ? s->refusal : "no examples");
        return;
    }
    sgm__text_append(to, "  %-8s  %-16s  ", sgm_dtype_name(s->dtype),
                     sgm_shape_text(&s->shape, shape, sizeof shape));
    data_append_missing(to, numbers->missing, sgm_shape_elements(&s->shape));
    append_distribution(to, s);
    sgm__text_append(to, "  ");
    if (numbers->kind == SGM_COLUMN_NUMBER)
        data_append_numbers(to, numbers);
    else
        sgm__text_append(to, "no finite number");
    sgm__text_append(to, "\n");
}

static void append_heading(sgm__text *to, size_t width)
{
    sgm__text_append(to, "  %-*s  %-8s  %-16s  %-15s%-*s  %s\n", (int)width, "array", "type", "shape",
                     "not finite", DATA_BARS, "distribution", "values");
}

/* --- files --- */

/* The name that numpy.savez was given. */
static void cut_ending(char *member)
{
    if (ends_with(member, ".npy"))
        member[strlen(member) - strlen(".npy")] = '\0';
}

static sgm_status append_one(sgm__text *to, sgm_reader *reader, const char *name, size_t width)
{
    array_summary s = {0};
    sgm_status status = summarise(&s, reader);
    if (status == SGM_OK)
        append_array(to, &s, name, width);
    free_summary(&s);
    return status;
}

static sgm_status append_archive(sgm__text *to, const char *path, char **names, size_t count)
{
    size_t width = strlen("array");
    for (size_t i = 0; i < count; i++) {
        cut_ending(names[i]);
        size_t length = sgm__utf8_count(names[i]);
        width = length > width && length <= DATA_WIDEST_NAME ? length : width;
    }
    sgm__text_append(to, "%s: %zu array%s\n", path, count, count == 1 ? "" : "s");
    append_heading(to, width);
    for (size_t i = 0; i < count; i++)
        SGM_TRY(append_one(to, sgm_npy_reader(sgm__path_source(path), names[i]), names[i], width));
    return SGM_OK;
}

/* All arrays of an archive, or the one that the path names. */
static sgm_status append_arrays(sgm__text *to, const char *path)
{
    char **names;
    size_t count;
    if (!ends_with(path, ".npz")) {
        append_heading(to, sgm__utf8_count(path));
        return append_one(to, numpy_reader(path), path, sgm__utf8_count(path));
    }
    sgm_source *source = sgm__path_source(path);
    sgm_stream *stream =
        source != NULL && sgm_source_prepare(source) == SGM_OK ? sgm_source_open(source) : NULL;
    sgm_status status = stream != NULL ? sgm__archive_members(stream, &names, &count) : sgm__last_failure();
    sgm_source_free(source);
    SGM_TRY(status);
    status = append_archive(to, path, names, count);
    sgm__archive_free_members(names, count);
    return status;
}

int data_show_arrays(const char *path)
{
    sgm__text text = {0};
    sgm_status status = append_arrays(&text, path);
    char *shown = sgm__text_take(&text);
    if (status == SGM_OK && shown != NULL)
        printf("%s", sgm__make_printable(shown));
    sgm__free(shown);
    if (status == SGM_OK && shown != NULL)
        return CLI_OK;
    return report_error("data", status == SGM_ERROR_NOT_FOUND ? CLI_USAGE : CLI_FAILED);
}
