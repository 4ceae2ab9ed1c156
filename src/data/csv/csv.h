/* Text tables on the way from bytes to cells. Internal to src/data.
 *
 * A file is cut into pieces of whole rows (csv_cut.c), and each piece is then split into cells where it lies
 * (csv_rows.c): cells are ended by a 0 in place of the byte that ended them, and nothing is copied. Only
 * cutting has to go through the file from the beginning, since quotes decide whether a line end ends a row,
 * and it is the smaller part of the work: pieces can be split by several threads at once (pass.h). Where a
 * piece ends depends on the bytes alone, and so do all results.
 *
 * The grammar: quoting as in RFC 4180, cells separated by a character of choice. A quote opens a cell only if
 * it is its first byte after blanks; elsewhere it is text. Lines end with \n, \r\n or \r; blanks around cells
 * without quotes are dropped; lines of blanks are no rows. With ' ' as separator any number of blanks and
 * tabs separates. */
#ifndef SGM_DATA_CSV_CSV_H
#define SGM_DATA_CSV_CSV_H

#include "base/base.h"
#include <sigma/data.h>

#define SGM__CSV_LONGEST_ROW                                                                                 \
    ((size_t)16 << 20) /* a quote that is never closed must not swallow a huge file */
/* Warnings about rows that were left out, for each pass over the file. */
#define SGM__CSV_RAGGED_LOGGED 10

/* How a file is written. */
typedef struct sgm__csv_format {
    const char *name; /* of the file, for messages */
    char separator;
    const char *missing; /* a text that means "no value"; NULL: none */
    size_t missing_length;
    bool skip_ragged;              /* rows with other numbers of columns are left out, not errors */
    int64_t columns, columns_line; /* of the first row, which all others must have; 0: none came yet */
} sgm__csv_format;

/* A tab that separates is no blank; a space that separates is one, since several of them separate once. */
static inline bool sgm__csv_is_blank(char separator, char byte)
{
    return (byte == ' ' || byte == '\t') && (byte != separator || separator == ' ');
}

static inline bool sgm__csv_is_line_end(char byte)
{
    return byte == '\n' || byte == '\r';
}

/* --- pieces (csv_cut.c) --- */

/* Whole rows as they stand in the file. Zeroed: empty; memory is used again. Behind them lies a line end, and
 * SGM__CSV_PADDING bytes may be read. */
#define SGM__CSV_PADDING 128
typedef struct sgm__csv_piece {
    char *text;
    size_t length, capacity;
    size_t done;       /* bytes that were split into cells already */
    int64_t line;      /* of the next row, from 1 */
    uint64_t position; /* of `text` in the file */
    bool is_endless;   /* a single row that is longer than SGM__CSV_LONGEST_ROW, and not whole */
} sgm__csv_piece;

/* Cuts a stream into pieces. Zeroed but for the stream: at its beginning. */
typedef struct sgm__csv_cutter {
    sgm_stream *stream; /* the caller's */
    char separator;
    char *carry; /* bytes of the row that the last piece did not have whole */
    size_t carry_length, carry_capacity;
    int64_t lines; /* line ends that were cut off */
    uint64_t position;
    bool at_end; /* of the stream */
} sgm__csv_cutter;
/* Passes over a byte order mark and `lines` lines, whatever quotes they have. */
sgm_status sgm__csv_cut_begin(sgm__csv_cutter *cutter, int lines);
/* Fills the piece with the next rows, some ten kilobytes of them, or one row if that is longer; length 0: the
 * file has ended. */
sgm_status sgm__csv_cut(sgm__csv_cutter *cutter, sgm__csv_piece *piece);
void sgm__csv_cutter_free(sgm__csv_cutter *cutter);

/* --- rows (csv_rows.c) --- */

/* Rows with another number of columns, which were left out. */
typedef struct sgm__csv_ragged {
    int64_t count;
    struct {
        int64_t line, columns;
    } first[SGM__CSV_RAGGED_LOGGED];
} sgm__csv_ragged;

/* Rows as cells. Zeroed: none; memory is used again. */
typedef struct sgm__csv_rows {
    int64_t count, columns;
    /* Row by row, each ended by 0, in the pieces or whoever has made them; NULL is a missing cell. */
    const char **cells;
    uint32_t *lengths; /* of the cells */
    int64_t *lines;    /* of the rows */
    bool are_padded;   /* 8 bytes behind each cell may be read */
    size_t cell_count;
    size_t cell_capacity, length_capacity, line_capacity;
    sgm__csv_ragged ragged;
} sgm__csv_rows;
void sgm__csv_rows_clear(sgm__csv_rows *rows);
/* Splits up to `most` further rows of the piece and adds them. With format->columns 0 the first row decides
 * the number of columns: it is set in the rows, for the caller to keep. */
sgm_status sgm__csv_split(const sgm__csv_format *format, sgm__csv_piece *piece, int64_t most,
                          sgm__csv_rows *rows);
/* Makes them the rows that a reader has given, whose cells stay where they are, and are not padded. */
sgm_status sgm__csv_rows_copy(sgm__csv_rows *rows, const sgm_examples *examples);
/* Keeps row number `from` as number `to`, which is no later one. Who has done so with all that stay sets
 * the count. */
static inline void sgm__csv_rows_keep(sgm__csv_rows *rows, int64_t from, int64_t to)
{
    size_t columns = (size_t)rows->columns, source = (size_t)from * columns, target = (size_t)to * columns;
    memmove(rows->cells + target, rows->cells + source, columns * sizeof *rows->cells);
    memmove(rows->lengths + target, rows->lengths + source, columns * sizeof *rows->lengths);
    rows->lines[to] = rows->lines[from];
}
void sgm__csv_rows_free(sgm__csv_rows *rows);

#endif
