/* What is learnt of a column of a table while its cells come by. Internal to src/data/table.
 *
 * Several threads read rows at once (../csv/pass.h). Each has a tally of each column (tally.c), to which it
 * adds the cells that come to it, in any order. What depends on the order of cells, the moments of numbers
 * and dates, is the column's own (column.c), and is told of them in the order of the file. At the end
 * sgm__column_finish makes of both the summary that sigma/table.h describes. What a column holds is known
 * only behind its last cell, so numbers, dates and different texts are followed at the same time. */
#ifndef SGM_DATA_TABLE_COLUMN_H
#define SGM_DATA_TABLE_COLUMN_H

#include "data/csv/csv.h"
#include "data/table/text_index.h"
#include <sigma/table.h>

/* --- cells (cell.c) --- */

typedef enum sgm__cell_kind {
    SGM__CELL_MISSING,
    SGM__CELL_NUMBER,
    SGM__CELL_DATE,
    SGM__CELL_TEXT,
    SGM__CELL_KINDS
} sgm__cell_kind;
/* Texts that mean "no value" in any table; NULL at the end. */
extern const char *const sgm__cell_missing_marks[];
/* How cells are written. */
typedef struct sgm__cell_format {
    char decimal;  /* '.' or ',' */
    char *missing; /* a text that means "no value", beside the usual ones; NULL: none */
} sgm__cell_format;
/* What a cell holds; NULL is a missing one. *value becomes its number, or days since 1970-01-01; it is left
 * alone for the other kinds. */
sgm__cell_kind sgm__cell_read(const sgm__cell_format *format, const char *cell, double *value);
/* The same of a column's cells in `count` rows, from the cell number `first` of all on: faster. The values of
 * the other kinds become 0. */
void sgm__cells_read(const sgm__cell_format *format, const sgm__csv_rows *rows, size_t first, int64_t count,
                     uint8_t *kinds, double *values);
/* Whether a cell has no value: of kind SGM__CELL_MISSING. */
bool sgm__cell_is_missing(const sgm__cell_format *format, const char *cell);
/* Whether a text is a number with a decimal comma, the usual reason why numbers are taken for texts; not if
 * it is NULL. */
bool sgm__has_decimal_comma(const char *text);

/* --- tallies (tally.c) --- */

/* Zeroed: no cell was seen. */
typedef struct sgm__tally {
    int64_t counts[SGM__CELL_KINDS];
    /* The first cell of each kind, owned, and its line: the exceptions, if the column turns out to be of
     * another kind. */
    char *first[SGM__CELL_KINDS];
    int64_t first_line[SGM__CELL_KINDS];
    sgm_category *categories; /* the different texts, owned, in the order in which they came */
    size_t category_count, category_capacity;
    sgm__text_index index; /* of the categories */
    bool has_times;        /* a date had a time other than midnight */
    bool is_varied;        /* more than SGM_MAX_CATEGORIES were seen; none are kept */
    int64_t longest;       /* bytes of a text */
} sgm__tally;
/* Adds the cells of a column of the rows. kinds[row] becomes what the cell in a row holds, and values[row]
 * its number. */
sgm_status sgm__tally_add(sgm__tally *tally, const sgm__cell_format *format, const sgm__csv_rows *rows,
                          size_t column, uint8_t *kinds, double *values);
/* Adds what another one has seen. */
sgm_status sgm__tally_merge(sgm__tally *tally, const sgm__tally *other);
void sgm__tally_free(sgm__tally *tally);

/* --- columns (column.c) --- */

/* Evenly spaced values: each `stride`-th one. When the room is used up, every second is dropped and the
 * stride doubles, so that the whole column is covered alike whatever its length. */
typedef struct sgm__samples {
    double *values;
    size_t count, capacity;
    int64_t stride; /* 0 before the first value, which means 1 */
    int64_t next;   /* number of the value that is kept next */
} sgm__samples;

#define SGM__MOMENTS_BLOCK 64
/* Numbers, or dates, of a column. Zeroed: none. */
typedef struct sgm__moments {
    int64_t count;
    double minimum, maximum, mean;
    double squares; /* sum of squared distances to the mean */
    /* Values that are not yet in mean and squares: a block at a time needs no division for each value. */
    double block[SGM__MOMENTS_BLOCK];
    size_t block_count;
    sgm__samples samples;
} sgm__moments;

typedef struct sgm__column {
    sgm_table_column summary;
    char *name;
    sgm__moments moments[SGM__CELL_KINDS]; /* of numbers and of dates; the others stay empty */
    sgm__tally tally;                      /* of all threads, at the end */
} sgm__column;

/* Adds numbers and dates of `count` rows to the moments. Only the rows that are `measured` count; NULL: all.
 */
sgm_status sgm__column_measure(sgm__column *column, const uint8_t *kinds, const double *values,
                               const bool *measured, int64_t count);
/* Decides the kind and fills in `summary`. */
void sgm__column_finish(sgm__column *column);
/* The values that decide a histogram; NULL for a column that holds neither numbers nor dates. */
const sgm__moments *sgm__column_moments(const sgm__column *column);
/* How many of them lie in each of `count` parts of equal width. */
void sgm__moments_histogram(const sgm__moments *moments, int64_t *counts, size_t count);
void sgm__column_free(sgm__column *column);

#endif
