/* Splits the rows of a file by one of its columns: reads that column alone as keys (sigma/split.h).
 *
 * The table knows its header and the kind of the column; its file is read once more for the keys. */
#include "base/name_index.h"
#include "data/block/block.h"
#include "data/table/table.h"

#include <math.h>

#define ROWS_AT_ONCE 1024

/* Keys of the rows while they are read. */
typedef struct keys {
    const sgm_table *table;
    size_t column;
    bool takes_missing; /* rows without a value are of one key */
    double *keys;
    int64_t count;
    sgm__name_index texts; /* the different ones, to their keys; names are owned */
    char **names;
    size_t name_count, name_capacity;
} keys;

static sgm_status key_of_text(keys *k, const char *cell, double *key)
{
    uintptr_t at;
    if (sgm__name_index_find(&k->texts, cell, &at)) {
        *key = (double)at;
        return SGM_OK;
    }
    SGM_TRY(sgm__reserve(&k->names, &k->name_capacity, k->name_count + 1, sizeof *k->names));
    SGM_TRY(sgm__name_index_reserve(&k->texts, 1));
    char *name = sgm__strdup(cell);
    if (name == NULL)
        return SGM_ERROR_MEMORY;
    sgm__name_index_add(&k->texts, name, k->name_count);
    *key = (double)k->name_count;
    k->names[k->name_count++] = name;
    return SGM_OK;
}

static sgm_status add_key(keys *k, const char *cell, int64_t line)
{
    const sgm__column *column = &k->table->columns[k->column];
    double key;
    sgm__cell_kind kind = sgm__cell_read(&k->table->format, cell, &key);
    if (kind == SGM__CELL_MISSING && !k->takes_missing)
        return sgm_fail(
            SGM_ERROR_FORMAT,
            "%s, line %lld: column '%s' has no value, but decides to which part the row belongs; fill "
            "it in or remove the row",
            k->table->path, (long long)line, column->name);
    if (kind == SGM__CELL_MISSING)
        key = -INFINITY; /* no other key is */
    else if (sgm__column_moments(column) == NULL)
        SGM_TRY(key_of_text(k, cell, &key));
    k->keys[k->count++] = key;
    return SGM_OK;
}

static sgm_status add_rows(keys *k, const sgm_examples *rows)
{
    const sgm_table *table = k->table;
    for (int64_t row = 0; row < rows->count; row++) {
        const char *const *cells = rows->cells + (size_t)row * table->column_count;
        if (sgm__needed_lacks(&table->needed, &table->format, cells))
            continue;
        if (k->count == table->rows)
            return sgm_fail(SGM_ERROR_FORMAT, "%s has changed while it was read", table->path);
        SGM_TRY(add_key(k, cells[k->column], rows->lines[row]));
    }
    return SGM_OK;
}

static sgm_status read_rows(keys *k, sgm_reader *reader)
{
    sgm_examples rows;
    if (k->table->has_header)
        SGM_TRY(sgm_reader_read(reader, 1, &rows));
    do {
        SGM_TRY(sgm_reader_read(reader, ROWS_AT_ONCE, &rows));
        SGM_TRY(add_rows(k, &rows));
    } while (rows.count > 0);
    return SGM_OK;
}

static sgm_status read_keys(keys *k)
{
    char separator = k->table->separator;
    k->keys = sgm__calloc((size_t)k->table->rows + 1, sizeof *k->keys);
    sgm_reader *reader = k->keys == NULL ? NULL
                                         : sgm__table_reader(sgm__unpacked_path_source(k->table->path),
                                                             &separator, k->table->skips_ragged);
    if (reader == NULL)
        return sgm__last_failure();
    sgm__extraction_begin(k->table->path);
    sgm_status status = read_rows(k, reader);
    sgm__extraction_end(status);
    sgm_reader_free(reader);
    return status;
}

static void free_keys(keys *k)
{
    for (size_t i = 0; i < k->name_count; i++)
        sgm__free(k->names[i]);
    sgm__free(k->names);
    sgm__name_index_free(&k->texts);
    sgm__free(k->keys);
}

/* Texts have no order: the rows would go by where each text appears first. A column without a value fails at
 * its first row. */
static sgm_status check_column(const sgm_table *table, int64_t at, sgm_split_kind kind)
{
    if (at < 0)
        return sgm__last_failure();
    const sgm__column *column = &table->columns[at];
    bool has_order = column->summary.kind == SGM_COLUMN_EMPTY || sgm__column_moments(column) != NULL;
    if (kind != SGM_SPLIT_TIME || has_order)
        return SGM_OK;
    sgm__cell_kind other = column->tally.counts[SGM__CELL_TEXT] > 0 ? SGM__CELL_TEXT : SGM__CELL_DATE;
    return sgm_fail(
        SGM_ERROR_FORMAT,
        "%s, line %lld: column '%s' has \"%.40s\"; a split by time expects numbers alone, or dates "
        "alone, such as 2026-11-23",
        table->path, (long long)column->tally.first_line[other], column->name, column->tally.first[other]);
}

sgm_split *sgm_table_split_with(const sgm_table *table, const char *column, const sgm_split_options *given)
{
    sgm_split_options options;
    if (sgm__options_read(&options, sizeof options, given, "sgm_table_split") != SGM_OK)
        return NULL;
    if (table == NULL) {
        sgm__missing_part("sgm_table_split: a table");
        return NULL;
    }
    if (table->rows == 0) {
        sgm_fail(SGM_ERROR_FORMAT, "%s: the table has no rows%s", table->path,
                 table->has_header ? " below its header" : "");
        return NULL;
    }
    if (column == NULL)
        return sgm_split_create_with(table->rows, NULL, &options);
    int64_t at = sgm_table_find_column(table, column);
    keys k = {.table = table, .column = (size_t)at, .takes_missing = options.kind == SGM_SPLIT_STRATIFIED};
    bool good = check_column(table, at, options.kind) == SGM_OK && read_keys(&k) == SGM_OK;
    sgm_split *split = good ? sgm_split_create_with(table->rows, k.keys, &options) : NULL;
    if (good && split == NULL)
        sgm__fail_within("%s", table->path);
    free_keys(&k);
    return split;
}
