/* What is learnt of a column of a table while its cells come by. Internal to src/data/table.
 *
 * table.c gives each cell to sgm__column_add, and at the end asks sgm__column_finish for the summary that
 * sigma/table.h describes. What a column holds is known only behind its last cell, so numbers, dates and
 * different texts are followed at the same time. */
#ifndef SGM_DATA_TABLE_COLUMN_H
#define SGM_DATA_TABLE_COLUMN_H

#include "base/base.h"
#include "base/name_index.h"
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

/* --- columns (column.c) --- */

/* Evenly spaced values: each `stride`-th one. When the room is used up, every second is dropped and the
 * stride doubles, so that the whole column is covered alike whatever its length. */
typedef struct sgm__samples {
    double *values;
    size_t count, capacity;
    int64_t stride; /* 0 before the first value, which means 1 */
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
    int64_t counts[SGM__CELL_KINDS];
    sgm__moments moments[SGM__CELL_KINDS]; /* of numbers and of dates; the others stay empty */
    /* The first cell of each kind, owned, and its line: the exceptions, if the column turns out to be of
     * another kind. */
    char *first[SGM__CELL_KINDS];
    int64_t first_line[SGM__CELL_KINDS];
    sgm_category *categories; /* texts are owned */
    size_t category_count, category_capacity;
    sgm__name_index index; /* finds categories by their texts */
    bool is_varied;        /* more than SGM_MAX_CATEGORIES were seen; none are kept */
    bool has_times;        /* a date had a time other than midnight */
} sgm__column;

/* `cell` stays the caller's. Only what is `measured` counts in the moments. */
sgm_status sgm__column_add(sgm__column *column, const sgm__cell_format *format, const char *cell,
                           int64_t line, bool measured);
/* Decides the kind and fills in `summary`. */
void sgm__column_finish(sgm__column *column);
/* The values that decide a histogram; NULL for a column that holds neither numbers nor dates. */
const sgm__moments *sgm__column_moments(const sgm__column *column);
void sgm__column_free(sgm__column *column);

#endif
