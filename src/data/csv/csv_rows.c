/* Splits pieces of a text table into rows and cells, where they lie. See csv.h.
 *
 * The bytes that mean something (separators, line ends, quotes, and 0, which is an error) are found 64 at a
 * time; everything between two of them is passed over. A cell without quotes is what lies between two marks,
 * without blanks around. Within quotes marks are text, and only behind a doubled quote bytes have to move. */
#include "data/csv/csv.h"

#include "data/csv/csv_scan.h"

/* The state within a piece. */
typedef struct split {
    const sgm__csv_format *format;
    sgm__csv_piece *piece;
    sgm__csv_rows *rows;
    char separator;
    bool is_spaced; /* blanks separate, and tabs are among them */
    char marks[6];  /* the bytes that mean something; the last one only with is_spaced */
    char *begin;    /* of the next row */
    char *end;      /* of the piece; a line end lies here */
    char *block;    /* 64 bytes, and those of their marks that are still to come */
    uint64_t mask;
    int64_t line;     /* of the next byte */
    int64_t row_line; /* of the present row */
    size_t row_cells; /* cells before the present row */
} split;

/* --- messages --- */

/* The number of the present cell in its row, from 0, as extractors count. */
static long long column(const split *s)
{
    return (long long)(s->rows->cell_count - s->row_cells);
}

/* The bound catches a quote that is never closed before it swallows a huge file. */
static sgm_status fail_endless(const split *s)
{
    return sgm_fail(
        SGM_ERROR_FORMAT,
        "%s: line %lld: the row has more than %zu bytes; look for a quote (\") that is not closed",
        s->format->name, (long long)s->line, SGM__CSV_LONGEST_ROW);
}

/* A zero byte would end the cell's text early, and means that the file is no text. */
static sgm_status fail_binary(const split *s, const char *at)
{
    return sgm_fail(SGM_ERROR_FORMAT,
                    "%s: line %lld, column %lld (from 0): text was expected, a zero byte came at byte %llu; "
                    "the file is packed, UTF-16, or no text at all: unpack it (sgm_compressed_source in C), "
                    "or save it as UTF-8",
                    s->format->name, (long long)s->line, column(s),
                    (unsigned long long)(s->piece->position + (uint64_t)(at - s->piece->text)));
}

static sgm_status fail_unclosed(const split *s, int64_t opened)
{
    return sgm_fail(
        SGM_ERROR_FORMAT,
        "%s: line %lld, column %lld (from 0): the quote (\") that opens the cell is never closed; "
        "close it, or "
        "double it if it is part of the text",
        s->format->name, (long long)opened, column(s));
}

static sgm_status fail_behind_quote(const split *s, char byte)
{
    return sgm_fail(
        SGM_ERROR_FORMAT,
        "%s: line %lld, column %lld (from 0): the end of the cell was expected after its closing quote, '%c' "
        "came; double a quote that is part of the text",
        s->format->name, (long long)s->line, column(s), byte);
}

/* --- marks --- */

static inline uint64_t find_marks(const split *s, const char *block)
{
    return s->is_spaced ? sgm__scan_find_any(block, s->marks, 6) : sgm__scan_find_any(block, s->marks, 5);
}

/* Takes the next mark. There is one: at the latest the line end behind the piece. */
static inline char *next_mark(split *s)
{
    while (s->mask == 0) {
        s->block += 64;
        s->mask = find_marks(s, s->block);
    }
    char *mark = s->block + __builtin_ctzll(s->mask);
    s->mask &= s->mask - 1;
    return mark;
}

static inline bool is_blank(const split *s, char byte)
{
    return sgm__csv_is_blank(s->separator, byte);
}

/* Goes behind the line end at `mark`, which was `byte`, and takes the \n of \r\n. */
static inline void pass_line_end(split *s, const char *mark, char byte)
{
    s->line++;
    if (byte == '\r' && mark[1] == '\n')
        mark = next_mark(s);
    s->begin = s->block + (mark + 1 - s->block);
}

/* --- cells --- */

/* The lengths come last, so that there is room for as many cells as their capacity says, also after a
 * failure. */
static sgm_status reserve_cells(sgm__csv_rows *rows)
{
    SGM_TRY(sgm__reserve(&rows->cells, &rows->cell_capacity, rows->cell_count + 1, sizeof *rows->cells));
    return sgm__reserve(&rows->lengths, &rows->length_capacity, rows->cell_capacity, sizeof *rows->lengths);
}

static inline bool is_missing(const sgm__csv_format *format, const char *text, size_t length)
{
    return length == 0 || (format->missing != NULL && length == format->missing_length &&
                           memcmp(text, format->missing, length) == 0);
}

/* Adds the cell [first, end), and ends it by 0. */
static inline sgm_status add_cell(split *s, char *first, char *end)
{
    sgm__csv_rows *rows = s->rows;
    size_t length = (size_t)(end - first);
    if (rows->cell_count == rows->length_capacity)
        SGM_TRY(reserve_cells(rows));
    *end = '\0';
    rows->cells[rows->cell_count] = is_missing(s->format, first, length) ? NULL : first;
    rows->lengths[rows->cell_count++] = (uint32_t)length;
    return SGM_OK;
}

/* Takes the blanks around [*first, *end) away. */
static inline void trim(char separator, char **first, char **end)
{
    while (*first < *end && sgm__csv_is_blank(separator, **first))
        (*first)++;
    while (*first < *end && sgm__csv_is_blank(separator, (*end)[-1]))
        (*end)--;
}

/* The cell [first, end) without quotes, and without the blanks around it. */
static inline sgm_status add_plain(split *s, char *first, char *end)
{
    trim(s->separator, &first, &end);
    return add_cell(s, first, end);
}

/* Adds cells without quotes as long as separators follow them. *begin becomes the beginning of the cell
 * behind, and *mark the mark that is no separator, which is taken. Most cells come by here, so what changes
 * with each is kept out of memory: a byte that is written might be part of anything there, and all would be
 * read again. */
static sgm_status add_separated(split *s, char **begin, char **mark)
{
    sgm__csv_rows *rows = s->rows;
    const sgm__csv_format format = *s->format;
    const char **cells = rows->cells;
    uint32_t *lengths = rows->lengths;
    size_t count = rows->cell_count, capacity = rows->length_capacity;
    uint64_t mask = s->mask;
    char *block = s->block, *next = *begin, *at;
    for (;;) {
        while (mask == 0) {
            block += 64;
            mask = find_marks(s, block);
        }
        at = block + __builtin_ctzll(mask);
        mask &= mask - 1;
        if (*at != format.separator)
            break;
        if (count == capacity) {
            rows->cell_count = count;
            SGM_TRY(reserve_cells(rows));
            cells = rows->cells;
            lengths = rows->lengths;
            capacity = rows->length_capacity;
        }
        char *first = next, *end = at;
        trim(format.separator, &first, &end);
        *end = '\0';
        cells[count] = is_missing(&format, first, (size_t)(end - first)) ? NULL : first;
        lengths[count++] = (uint32_t)(end - first);
        next = at + 1;
    }
    rows->cell_count = count;
    s->mask = mask;
    s->block = block;
    *begin = next;
    *mark = at;
    return SGM_OK;
}

/* Marks in quotes up to the closing one, which is returned, or to the end of the piece. Takes the second one
 * of two quotes out of the text, which ends at *to then. */
static sgm_status find_closing(split *s, char *from, char **to, char **closing)
{
    *to = from;
    for (;;) {
        char *mark = next_mark(s);
        size_t length = (size_t)(mark - from);
        if (*to != from)
            memmove(*to, from, length);
        *to += length;
        from = mark;
        *closing = mark;
        if (mark == s->end)
            return SGM_OK;
        if (*mark == '\0')
            return fail_binary(s, mark);
        if (*mark == '\n')
            s->line++;
        if (*mark == '\r') /* a line end of its own, unless it begins "\r\n" */
            s->line += mark[1] != '\n';
        if (*mark != '"')
            continue;
        if (mark[1] != '"')
            return SGM_OK;
        from = next_mark(s);
    }
}

/* The cell whose opening quote was taken. *mark becomes the one that ends the cell: after a closing quote
 * only blanks may follow. */
static sgm_status add_quoted(split *s, char *quote, char **mark)
{
    int64_t opened = s->line;
    char *to, *closing, *first = quote + 1;
    SGM_TRY(find_closing(s, first, &to, &closing));
    if (closing == s->end)
        return fail_unclosed(s, opened);
    char *behind = closing + 1;
    while (!s->is_spaced && is_blank(s, *behind))
        behind++;
    if (!sgm__csv_is_line_end(*behind) && *behind != s->separator && !is_blank(s, *behind))
        return fail_behind_quote(s, *behind);
    *mark = next_mark(s);
    return add_cell(s, first, to);
}

/* --- rows --- */

/* With blanks as separators: those behind a cell are one, and at the end of a line they begin no cell. *mark
 * becomes the last one of them, or the line's end; the byte there is returned. */
static char pass_blanks(split *s, char **mark)
{
    char byte = ' ';
    while (is_blank(s, (*mark)[1]))
        *mark = next_mark(s);
    if (sgm__csv_is_line_end((*mark)[1])) {
        *mark = next_mark(s);
        byte = **mark;
    }
    return byte;
}

/* Whether only blanks are between the beginning of a cell and `mark`. */
static bool is_first(const split *s, const char *begin, const char *mark)
{
    while (begin < mark && is_blank(s, *begin))
        begin++;
    return begin == mark;
}

/* Adds the cells of the row at s->begin, and goes to the next one. */
static sgm_status split_cells(split *s)
{
    char *begin = s->begin, *mark;
    for (;;) {
        if (s->is_spaced)
            mark = next_mark(s);
        else
            SGM_TRY(add_separated(s, &begin, &mark));
        char byte = *mark;
        if (byte == '"') {
            if (!is_first(s, begin, mark))
                continue; /* a quote within a text */
            SGM_TRY(add_quoted(s, mark, &mark));
            byte = *mark;
        } else if (byte == '\0') {
            return fail_binary(s, mark);
        } else {
            SGM_TRY(add_plain(s, begin, mark));
        }
        if (s->is_spaced && !sgm__csv_is_line_end(byte))
            byte = pass_blanks(s, &mark);
        if (sgm__csv_is_line_end(byte)) {
            pass_line_end(s, mark, byte);
            return SGM_OK;
        }
        begin = mark + 1;
    }
}

/* Passes blank lines, and blanks before the next row; false at the end. */
static bool find_row(split *s)
{
    while (s->begin < s->end) {
        while (is_blank(s, *s->begin)) {
            s->begin++;
            if (s->is_spaced)
                next_mark(s);
        }
        if (!sgm__csv_is_line_end(*s->begin))
            return true;
        char *mark = next_mark(s);
        pass_line_end(s, mark, *mark);
    }
    return false;
}

/* A row with another number of cells than the first: an error, or noted, and its cells are dropped. */
static sgm_status reject_row(split *s, int64_t columns)
{
    sgm__csv_rows *rows = s->rows;
    const sgm__csv_format *format = s->format;
    if (!format->skip_ragged)
        return sgm_fail(
            SGM_ERROR_FORMAT,
            "%s: line %lld: %lld columns were expected as in line %lld, %lld came; correct the row, or set "
            "skip_ragged to leave such rows out",
            format->name, (long long)s->row_line, (long long)rows->columns,
            (long long)(format->columns > 0 ? format->columns_line : rows->lines[0]), (long long)columns);
    if (rows->ragged.count < SGM__CSV_RAGGED_LOGGED) {
        rows->ragged.first[rows->ragged.count].line = s->row_line;
        rows->ragged.first[rows->ragged.count].columns = columns;
    }
    rows->ragged.count++;
    rows->cell_count = s->row_cells;
    return SGM_OK;
}

static sgm_status split_row(split *s)
{
    sgm__csv_rows *rows = s->rows;
    s->row_cells = rows->cell_count;
    s->row_line = s->line;
    SGM_TRY(split_cells(s));
    int64_t columns = (int64_t)(rows->cell_count - s->row_cells);
    if (rows->columns == 0)
        rows->columns = columns;
    if (columns != rows->columns)
        return reject_row(s, columns);
    if ((size_t)rows->count == rows->line_capacity)
        SGM_TRY(
            sgm__reserve(&rows->lines, &rows->line_capacity, (size_t)rows->count + 1, sizeof *rows->lines));
    rows->lines[rows->count++] = s->row_line;
    return SGM_OK;
}

sgm_status sgm__csv_split(const sgm__csv_format *format, sgm__csv_piece *piece, int64_t most,
                          sgm__csv_rows *rows)
{
    split s = {.format = format,
               .piece = piece,
               .rows = rows,
               .separator = format->separator,
               .is_spaced = format->separator == ' ',
               .marks = {format->separator, '\n', '\r', '"', '\0', '\t'},
               .begin = piece->text + piece->done,
               .end = piece->text + piece->length,
               .line = piece->line};
    rows->are_padded = true;
    if (format->columns > 0)
        rows->columns = format->columns;
    if (piece->is_endless)
        return fail_endless(&s);
    s.block = s.begin;
    if (piece->done < piece->length)
        s.mask = find_marks(&s, s.block);
    for (int64_t last = rows->count + most; rows->count < last && find_row(&s);)
        SGM_TRY(split_row(&s));
    piece->done = s.begin < s.end ? (size_t)(s.begin - piece->text) : piece->length;
    piece->line = s.line;
    return SGM_OK;
}

void sgm__csv_rows_clear(sgm__csv_rows *rows)
{
    rows->count = rows->columns = rows->ragged.count = 0;
    rows->cell_count = 0;
}

sgm_status sgm__csv_rows_copy(sgm__csv_rows *rows, const sgm_examples *examples)
{
    sgm__csv_rows_clear(rows);
    size_t cells = (size_t)examples->count * (size_t)examples->columns;
    SGM_TRY(sgm__reserve(&rows->cells, &rows->cell_capacity, cells, sizeof *rows->cells));
    SGM_TRY(sgm__reserve(&rows->lengths, &rows->length_capacity, cells, sizeof *rows->lengths));
    SGM_TRY(sgm__reserve(&rows->lines, &rows->line_capacity, (size_t)examples->count, sizeof *rows->lines));
    for (size_t i = 0; i < cells; i++) {
        size_t length = examples->cells[i] != NULL ? strlen(examples->cells[i]) : 0;
        rows->cells[i] = examples->cells[i];
        rows->lengths[i] = length < UINT32_MAX ? (uint32_t)length : UINT32_MAX;
    }
    for (int64_t i = 0; i < examples->count; i++)
        rows->lines[i] = examples->lines != NULL ? examples->lines[i] : examples->first_line + i;
    rows->count = examples->count;
    rows->columns = examples->columns;
    rows->are_padded = false;
    return SGM_OK;
}

void sgm__csv_rows_free(sgm__csv_rows *rows)
{
    sgm__free(rows->cells);
    sgm__free(rows->lengths);
    sgm__free(rows->lines);
}
