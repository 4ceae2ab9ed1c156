/* Opens a table: finds its header, reads all rows once, and keeps a summary of each column.
 *
 * Rows come from table_file.c, cells go to the columns (column.c). */
#include "data/table/table.h"

#define ROWS_AT_ONCE 1024

/* --- the header --- */

/* A first row without numbers and dates is a header. */
static bool is_header(const sgm_table *table, const sgm_examples *first)
{
    double value;
    for (int32_t i = 0; i < first->columns; i++) {
        sgm__cell_kind kind = sgm__cell_read(&table->format, first->cells[i], &value);
        if (kind == SGM__CELL_NUMBER || kind == SGM__CELL_DATE)
            return false;
    }
    return true;
}

/* Two columns of one name could not be told apart by whoever asks for it. */
static sgm_status check_names(const sgm_table *table)
{
    sgm__name_index index = {0};
    sgm_status status = sgm__name_index_reserve(&index, table->column_count);
    for (size_t i = 0; i < table->column_count && status == SGM_OK; i++) {
        uintptr_t other;
        if (sgm__name_index_find(&index, table->columns[i].name, &other))
            status = sgm_fail(SGM_ERROR_FORMAT,
                              "%s: the columns %zu and %zu (from 0) are both called '%s'; rename one of them",
                              table->path, (size_t)other, i, table->columns[i].name);
        else
            sgm__name_index_add(&index, table->columns[i].name, i);
    }
    sgm__name_index_free(&index);
    return status;
}

/* Names columns by the first row if it is a header, else by their numbers; so are columns without a name. */
static sgm_status name_columns(sgm_table *table, const sgm_examples *first, const sgm_table_options *options)
{
    table->has_header = options->header == SGM_HEADER_FIRST_LINE || sgm__table_is_jsonl(table->path) ||
                        (options->header == SGM_HEADER_FOUND && is_header(table, first));
    table->columns = sgm__calloc((size_t)first->columns, sizeof *table->columns);
    if (table->columns == NULL)
        return SGM_ERROR_MEMORY;
    table->column_count = (size_t)first->columns;
    for (size_t i = 0; i < table->column_count; i++) {
        const char *name = table->has_header ? first->cells[i] : NULL;
        table->columns[i].name = name != NULL ? sgm__strdup(name) : sgm__format("%zu", i);
        if (table->columns[i].name == NULL)
            return SGM_ERROR_MEMORY;
    }
    return check_names(table);
}

/* --- rows --- */

/* Whether what is measured is of this row, too. */
static bool is_measured(const sgm_table_options *options, int64_t row)
{
    return options->split == NULL ||
           (sgm_split_part_of(options->split, row) == options->part) != options->other_parts;
}

static sgm_status add_rows(sgm_table *table, const sgm_examples *rows, const sgm_table_options *options)
{
    for (int64_t row = 0; row < rows->count; row++) {
        bool measured = is_measured(options, table->rows + row);
        for (size_t i = 0; i < table->column_count; i++)
            SGM_TRY(sgm__column_add(&table->columns[i], &table->format,
                                    rows->cells[(size_t)row * table->column_count + i], rows->lines[row],
                                    measured));
    }
    table->rows += rows->count;
    return SGM_OK;
}

static sgm_status read_all(sgm_table *table, sgm_reader *reader, const sgm_table_options *options)
{
    sgm_examples rows;
    SGM_TRY(sgm_reader_read(reader, 1, &rows));
    if (rows.count == 0)
        return sgm_fail(SGM_ERROR_FORMAT, "%s: the table is empty: it has no line with a cell", table->path);
    SGM_TRY(name_columns(table, &rows, options));
    if (!table->has_header)
        SGM_TRY(add_rows(table, &rows, options));
    do {
        SGM_TRY(sgm_reader_read(reader, ROWS_AT_ONCE, &rows));
        SGM_TRY(add_rows(table, &rows, options));
    } while (rows.count > 0);
    if (options->split != NULL && sgm_split_examples(options->split) != table->rows)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: the table has %lld rows, and the split is of %lld",
                        table->path, (long long)table->rows, (long long)sgm_split_examples(options->split));
    for (size_t i = 0; i < table->column_count; i++)
        sgm__column_finish(&table->columns[i]);
    return SGM_OK;
}

/* What this thread reads from now on is shown as a task. */
static sgm_status open_table(sgm_table *table, const sgm_table_options *options)
{
    table->separator = options->separator;
    table->skips_ragged = options->skip_ragged;
    sgm_reader *reader =
        sgm__table_reader(sgm__unpacked_path_source(table->path), &table->separator, options->skip_ragged);
    if (reader == NULL)
        return sgm_last_status();
    sgm__extraction_begin(table->path);
    sgm_status status = read_all(table, reader, options);
    sgm__extraction_end(status);
    sgm_reader_free(reader);
    return status;
}

/* --- opening --- */

static sgm_status check_options(const char *path, const sgm_table_options *options)
{
    if (path == NULL)
        return sgm__fail_missing("path");
    if (options->decimal != '\0' && options->decimal != '.' && options->decimal != ',')
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: the sign before decimals is '.' or ',', not character %d",
                        path, options->decimal);
    if (options->decimal == ',' && options->separator == ',')
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: a comma cannot be before decimals and between cells", path);
    return SGM_OK;
}

sgm_table *sgm_table_open_with(const char *path, const sgm_table_options *given)
{
    sgm_table_options options;
    if (sgm__options_read(&options, sizeof options, given, "sgm_table_open") != SGM_OK ||
        check_options(path, &options) != SGM_OK)
        return NULL;
    sgm_table *table = sgm__calloc(1, sizeof *table);
    if (table == NULL)
        return NULL;
    table->path = sgm__strdup(path);
    table->format = (sgm__cell_format){options.decimal == ',' ? ',' : '.', sgm__strdup(options.missing)};
    bool has_texts = table->path != NULL && (options.missing == NULL || table->format.missing != NULL);
    if (!has_texts || open_table(table, &options) != SGM_OK) {
        sgm_table_free(table);
        return NULL;
    }
    return table;
}

void sgm_table_free(sgm_table *table)
{
    if (table == NULL)
        return;
    for (size_t i = 0; i < table->column_count; i++)
        sgm__column_free(&table->columns[i]);
    sgm__free(table->columns);
    sgm__free(table->format.missing);
    sgm__free(table->path);
    sgm__free(table);
}

/* --- looking --- */

int64_t sgm_table_rows(const sgm_table *table)
{
    return table->rows;
}

bool sgm_table_has_header(const sgm_table *table)
{
    return table->has_header;
}

char sgm_table_separator(const sgm_table *table)
{
    return table->separator;
}

size_t sgm_table_columns(const sgm_table *table)
{
    return table->column_count;
}

const sgm_table_column *sgm_table_column_at(const sgm_table *table, size_t index)
{
    return index < table->column_count ? &table->columns[index].summary : NULL;
}

const char *sgm_column_kind_name(sgm_column_kind kind)
{
    static const char *const names[] = {"empty", "number", "date", "category", "text"};
    return (size_t)kind < sizeof names / sizeof *names ? names[kind] : "unknown";
}

int64_t sgm_table_find_column(const sgm_table *table, const char *name)
{
    const char **names = sgm__calloc(table->column_count, sizeof *names);
    int64_t found = -1;
    if (names == NULL)
        return -1;
    for (size_t i = 0; i < table->column_count; i++) {
        names[i] = table->columns[i].name;
        found = strcmp(names[i], name) == 0 ? (int64_t)i : found;
    }
    if (found < 0)
        sgm__table_fail_unknown(table->path, name, names, table->column_count);
    sgm__free(names);
    return found;
}

sgm_status sgm_table_histogram(const sgm_table *table, size_t column, int64_t *counts, size_t count)
{
    if (column >= table->column_count || count == 0)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: a column below %zu and at least one part were expected, column %zu "
                        "and %zu parts came",
                        table->path, table->column_count, column, count);
    const sgm__moments *moments = sgm__column_moments(&table->columns[column]);
    if (moments == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: column '%s' holds neither numbers nor dates, and has no histogram", table->path,
                        table->columns[column].name);
    double scale = (double)count / (moments->maximum - moments->minimum);
    memset(counts, 0, count * sizeof *counts);
    for (size_t i = 0; i < moments->samples.count; i++) {
        double place = (moments->samples.values[i] - moments->minimum) * scale;
        counts[place >= (double)count ? count - 1 : place > 0 ? (size_t)place : 0]++;
    }
    return SGM_OK;
}
