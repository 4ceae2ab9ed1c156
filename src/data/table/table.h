/* A table and its file, from the inside. Internal to src/data/table. */
#ifndef SGM_DATA_TABLE_TABLE_H
#define SGM_DATA_TABLE_TABLE_H

#include "data/read/source.h"
#include "data/table/column.h"

/* Columns without whose values a row is left out (needed.c). Zeroed: no row is. */
typedef struct sgm__needed {
    int32_t columns[SGM_MAX_TARGETS]; /* their numbers */
    size_t count;
} sgm__needed;
/* Whether a row lacks one of the values. */
bool sgm__needed_lacks(const sgm__needed *needed, const sgm__cell_format *format, const char *const *cells);
/* Takes the rows out that do, and says how many there were. */
int64_t sgm__needed_leave_out(const sgm__needed *needed, const sgm__cell_format *format, sgm__csv_rows *rows);

struct sgm_table {
    char *path;
    sgm__column *columns;
    size_t column_count;
    int64_t rows, skipped; /* skipped: for the columns that are needed; they are not among the rows */
    sgm__needed needed;
    char separator;
    bool has_header, skips_ragged;
    sgm__cell_format format; /* `missing` is owned; NULL: none */
};

/* --- files (table_file.c) --- */

/* A reader of a table's rows, the header among them; takes the source, also NULL. `separator` 0: found as
 * sigma/table.h describes; *separator is set. */
sgm_reader *sgm__table_reader(sgm_source *source, char *separator, bool skip_ragged);
/* Whether a file of this name holds JSON Lines, whose first row names the columns. */
bool sgm__table_is_jsonl(const char *path);
/* Whether a file of this name is a table. */
bool sgm__table_is_name(const char *path);
/* Fails with "NAME has no column 'x'; did you mean 'y'?", or with the columns that are there. */
sgm_status sgm__table_fail_unknown(const char *name, const char *column, const char *const *columns,
                                   size_t count);

#endif
