/* Tables: what the columns of a file hold, by their names.
 *
 *     sgm_table *pets = sgm_table_open("pets.csv");
 *     for (size_t i = 0; i < sgm_table_columns(pets); i++)
 *         printf("%s: %s\n", sgm_table_column(pets, i)->name, sgm_column_kind_name(sgm_table_column(pets,
 * i)->kind)); sgm_table_free(pets);
 *
 * Opening reads the whole file once, row by row, and keeps what describes it, not the rows: memory is bounded
 * by the number of columns. Nothing is guessed that the cells do not say: a column holds numbers if all its
 * cells that have a value are numbers. */
#ifndef SIGMA_TABLE_H
#define SIGMA_TABLE_H

#include <sigma/data.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Different values that are counted in a column; one with more of them has no categories. */
#define SGM_MAX_CATEGORIES 1000

typedef enum sgm_column_kind {
    SGM_COLUMN_EMPTY,  /* no cell has a value */
    SGM_COLUMN_NUMBER, /* all values are finite numbers */
    SGM_COLUMN_DATE, /* all values are dates: 2026-11-23, 2026/11/23, 23.11.2026, each with a time or without
                      */
    SGM_COLUMN_CATEGORY, /* texts of which there are few: at most 20 different ones, or no more than half as
                          * many as values, up to SGM_MAX_CATEGORIES */
    SGM_COLUMN_TEXT      /* other texts */
} sgm_column_kind;
SGM_API const char *sgm_column_kind_name(sgm_column_kind kind); /* "number" and so on */

/* A text of a column, and how many cells have it. */
typedef struct sgm_category {
    const char *text;
    int64_t count;
} sgm_category;

typedef struct sgm_table_column {
    const char *name; /* of the header; its number from 0 where there is none */
    sgm_column_kind kind;
    int64_t missing; /* cells without a value */
    /* Of the values of a number column, and of a date column as days since 1970-01-01; NaN for other kinds.
     * The standard deviation divides by the number of values, as preprocessing has it. */
    double minimum, maximum, mean, standard_deviation;
    /* The different values, the most frequent first, then by their bytes, of every kind of column. None where
     * there are more than SGM_MAX_CATEGORIES. */
    const sgm_category *categories;
    size_t category_count;
    /* The first text in a column that otherwise holds numbers, or dates: in at least nine of ten values.
     * NULL: none. */
    const char *exception;
    int64_t exception_line; /* in the file */
} sgm_table_column;

/* Whether the first line names the columns. */
typedef enum sgm_header {
    SGM_HEADER_FOUND, /* it does unless one of its cells is a number or a date */
    SGM_HEADER_NONE,  /* it is a row like the others, and columns are called by their numbers from 0 */
    SGM_HEADER_FIRST_LINE
} sgm_header;

typedef struct sgm_table_options {
    size_t struct_size;
    char separator; /* default: a tab for .tsv, else that of , ; tab and | which the first line has most */
    char decimal;   /* in numbers: '.', the default, or ',' */
    const char *missing; /* a cell with this text has no value, beside empty ones and those with one of
                          * NA N/A n/a #N/A <NA> NaN nan NULL null None ? */
    sgm_header header; /* default: found */
    bool skip_ragged;    /* rows with another number of cells are left out and logged, instead of an error */
} SGM_BY_NAME sgm_table_options;

typedef struct sgm_table sgm_table;
/* Reads a file of text: .csv, .tsv and the like, unpacked if its name says that it is packed (.csv.gz). The
 * caller frees it; NULL on failure: a row with another number of cells than the first, a quote that is not
 * closed, two columns of one name. */
#define sgm_table_open(...) SGM_WITH_OPTIONS(sgm_table_open_with, sgm_table_options, __VA_ARGS__)
SGM_API sgm_table *sgm_table_open_with(const char *path, const sgm_table_options *options);
SGM_API void sgm_table_free(sgm_table *table);
SGM_API int64_t sgm_table_rows(const sgm_table *table); /* without the header */
SGM_API bool sgm_table_has_header(const sgm_table *table);
SGM_API char sgm_table_separator(const sgm_table *table);
SGM_API size_t sgm_table_columns(const sgm_table *table);
/* Lives as long as the table; NULL past the last column. */
SGM_API const sgm_table_column *sgm_table_column_at(const sgm_table *table, size_t index);
/* The number of the column with this name; -1 and an error with the nearest name if there is none. */
SGM_API int64_t sgm_table_find_column(const sgm_table *table, const char *name);
/* How many values of a number or date column lie in each of `count` parts of equal width from minimum to
 * maximum. Of more than 65,536 values evenly spaced rows are counted, so that counts tell the shape, not the
 * sum. Other kinds of columns are errors. */
SGM_API sgm_status sgm_table_histogram(const sgm_table *table, size_t column, int64_t *counts, size_t count);

#ifdef __cplusplus
}
#endif
#endif
