/* Opens a table: finds its header, reads all rows once, and keeps a summary of each column.
 *
 * Rows come from the reader of table_file.c, with several threads (../csv/pass.h). These add cells to tallies
 * and leave the numbers in slots, which go to the columns (column.c) in the order of the file. */
#include "data/table/table.h"
#include "base/name_index.h"
#include "data/csv/pass.h"

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

/* The columns that a row needs. They can be told once all columns have names. */
static sgm_status find_needed(sgm_table *table, const sgm_table_options *options)
{
    sgm__needed *needed = &table->needed;
    for (; needed->count < SGM_MAX_TARGETS && options->skip_missing[needed->count] != NULL; needed->count++) {
        int64_t at = sgm_table_find_column(table, options->skip_missing[needed->count]);
        if (at < 0)
            return sgm__fail_within(
                strstr(table->path, ".jsonl") != NULL
                    ? "skip_missing (the first object names the columns: add it there, as null if need be)"
                    : "skip_missing");
        needed->columns[needed->count] = (int32_t)at;
    }
    return SGM_OK;
}

/* --- rows --- */

/* What the cells of a piece hold, column by column. */
typedef struct values {
    int64_t rows, skipped;
    uint8_t *kinds;
    double *numbers;
    size_t kind_capacity, number_capacity;
} values;

typedef struct reading {
    sgm_table *table;
    const sgm_table_options *options;
    values slots[SGM__PASS_SLOTS];
    sgm__tally *tallies[SGM__PASS_MAXIMUM_THREADS]; /* of each worker: one for each column; NULL: none yet */
    bool *measured;                                 /* rows of a slot; used with a split */
    size_t measured_capacity;
} reading;

/* The rows of a piece, on a thread of the pass. */
static sgm_status add_rows(void *user, size_t slot, size_t worker, sgm__csv_rows *rows)
{
    reading *self = user;
    values *into = &self->slots[slot];
    into->skipped = sgm__needed_leave_out(&self->table->needed, &self->table->format, rows);
    into->rows = rows->count;
    if (rows->count == 0)
        return SGM_OK;
    size_t columns = self->table->column_count, cells = columns * (size_t)rows->count;
    if (self->tallies[worker] == NULL)
        self->tallies[worker] = sgm__calloc(columns, sizeof *self->tallies[worker]);
    if (self->tallies[worker] == NULL)
        return SGM_ERROR_MEMORY;
    SGM_TRY(sgm__reserve(&into->kinds, &into->kind_capacity, cells, sizeof *into->kinds));
    SGM_TRY(sgm__reserve(&into->numbers, &into->number_capacity, cells, sizeof *into->numbers));
    for (size_t i = 0; i < columns; i++)
        SGM_TRY(sgm__tally_add(&self->tallies[worker][i], &self->table->format, rows, i,
                               into->kinds + i * (size_t)rows->count,
                               into->numbers + i * (size_t)rows->count));
    return SGM_OK;
}

/* Which rows of a slot are of the part that is measured; NULL: all. */
static sgm_status find_measured(reading *self, int64_t rows, const bool **measured)
{
    const sgm_table_options *options = self->options;
    *measured = NULL;
    if (options->split == NULL)
        return SGM_OK;
    SGM_TRY(sgm__reserve(&self->measured, &self->measured_capacity, (size_t)rows, sizeof *self->measured));
    for (int64_t row = 0; row < rows; row++)
        self->measured[row] = (sgm_split_part_of(options->split, self->table->rows + row) == options->part) !=
                              options->other_parts;
    *measured = self->measured;
    return SGM_OK;
}

/* The slots are given in the order of the file. */
static sgm_status measure(reading *self, size_t slot)
{
    sgm_table *table = self->table;
    const values *from = &self->slots[slot];
    const bool *measured;
    SGM_TRY(find_measured(self, from->rows, &measured));
    for (size_t i = 0; i < table->column_count && from->rows > 0; i++)
        SGM_TRY(sgm__column_measure(&table->columns[i], from->kinds + i * (size_t)from->rows,
                                    from->numbers + i * (size_t)from->rows, measured, from->rows));
    table->rows += from->rows;
    table->skipped += from->skipped;
    return SGM_OK;
}

/* A first row that is no header. */
static sgm_status add_first(reading *self, const sgm_examples *first)
{
    sgm__csv_rows rows = {0};
    sgm_status status = sgm__csv_rows_copy(&rows, first);
    if (status == SGM_OK)
        status = add_rows(self, 0, 0, &rows);
    sgm__csv_rows_free(&rows);
    return status == SGM_OK ? measure(self, 0) : status;
}

static sgm_status add_all(reading *self, sgm__pass *pass)
{
    size_t slot;
    if (pass == NULL)
        return SGM_ERROR_MEMORY;
    for (;;) {
        SGM_TRY(sgm__pass_next(pass, &slot));
        if (slot == SGM__PASS_SLOTS)
            return SGM_OK;
        SGM_TRY(measure(self, slot));
    }
}

/* The tallies of the workers add up to those of the columns. */
static sgm_status finish_columns(reading *self)
{
    for (size_t i = 0; i < self->table->column_count; i++) {
        sgm__column *column = &self->table->columns[i];
        for (size_t worker = 0; worker < SGM__PASS_MAXIMUM_THREADS; worker++)
            if (self->tallies[worker] != NULL)
                SGM_TRY(sgm__tally_merge(&column->tally, &self->tallies[worker][i]));
        sgm__column_finish(column);
    }
    return SGM_OK;
}

static void free_reading(reading *self)
{
    for (size_t i = 0; i < SGM__PASS_SLOTS; i++) {
        sgm__free(self->slots[i].kinds);
        sgm__free(self->slots[i].numbers);
    }
    for (size_t worker = 0; worker < SGM__PASS_MAXIMUM_THREADS; worker++) {
        for (size_t i = 0; self->tallies[worker] != NULL && i < self->table->column_count; i++)
            sgm__tally_free(&self->tallies[worker][i]);
        sgm__free(self->tallies[worker]);
    }
    sgm__free(self->measured);
}

static sgm_status read_all(reading *self, sgm_reader *reader)
{
    sgm_table *table = self->table;
    const sgm_table_options *options = self->options;
    sgm_examples first;
    SGM_TRY(sgm_reader_read(reader, 1, &first));
    if (first.count == 0)
        return sgm_fail(SGM_ERROR_FORMAT, "%s: the table is empty: it has no line with a cell", table->path);
    SGM_TRY(name_columns(table, &first, options));
    SGM_TRY(find_needed(table, options));
    if (!table->has_header)
        SGM_TRY(add_first(self, &first));
    sgm__pass *pass = sgm__pass_create(reader, options->threads, 1, add_rows, self);
    sgm_status status = add_all(self, pass);
    sgm__pass_free(pass);
    SGM_TRY(status);
    if (table->rows == 0 && table->skipped > 0)
        return sgm_fail(SGM_ERROR_FORMAT, "%s: all rows are left out, as none has a value in column '%s'%s",
                        table->path, options->skip_missing[0],
                        table->needed.count > 1 ? " and the others" : "");
    if (options->split != NULL && sgm_split_examples(options->split) != table->rows)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: the table has %lld rows, and the split is of %lld",
                        table->path, (long long)table->rows, (long long)sgm_split_examples(options->split));
    return finish_columns(self);
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
    reading self = {.table = table, .options = options};
    sgm__extraction_begin(table->path);
    sgm_status status = read_all(&self, reader);
    sgm__extraction_end(status);
    free_reading(&self);
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

int64_t sgm_table_skipped(const sgm_table *table)
{
    return table->skipped;
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
    sgm__moments_histogram(moments, counts, count);
    return SGM_OK;
}
