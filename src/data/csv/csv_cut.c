/* Cuts a stream of text into pieces that end with a row.
 *
 * This is what has to be done from the beginning of a file to its end, one byte after another, and so it does
 * as little as possible: of 64 bytes without a quote three masks tell everything, and only quotes are looked
 * at one by one. Lines are counted on the way, so that each piece knows its place. See csv.h. */
#include "data/csv/csv.h"

#include "data/csv/csv_scan.h"

#define PIECE ((size_t)24 << 10) /* bytes: text, cells and numbers of a piece stay in the second cache */

/* How far a piece was looked at, and what was found. */
typedef struct scan {
    const char *text;
    char separator;
    size_t at; /* a multiple of 64 */
    bool in_quotes;
    size_t behind_quote; /* the place behind the last closing quote; a quote there means that none closed */
    int64_t lines;       /* line ends before `at` */
    size_t end;          /* of the last whole row; 0: none yet */
    int64_t end_lines;   /* line ends before it */
} scan;

/* Whether a quote outside of quotes is the first byte of a cell. */
static bool opens_cell(const scan *s, size_t at)
{
    size_t first = at;
    while (first > 0 && sgm__csv_is_blank(s->separator, s->text[first - 1]))
        first--;
    if (first == 0 || (s->separator == ' ' && first < at))
        return true;
    char before = s->text[first - 1];
    return before == s->separator || sgm__csv_is_line_end(before);
}

static void pass_quote(scan *s, size_t at)
{
    if (s->in_quotes) {
        s->in_quotes = false;
        s->behind_quote = at + 1;
    } else {
        s->in_quotes = (s->behind_quote == at && at > 0) || opens_cell(s, at);
    }
}

/* 64 bytes with quotes among them, or within quotes: one mark after the other. */
static void scan_quoted(scan *s, uint64_t quotes, uint64_t line_ends)
{
    for (uint64_t marks = quotes | line_ends; marks != 0; marks &= marks - 1) {
        size_t at = s->at + (size_t)__builtin_ctzll(marks);
        if ((quotes & marks & -marks) != 0) {
            pass_quote(s, at);
            continue;
        }
        s->lines++;
        if (!s->in_quotes) {
            s->end = at + 1;
            s->end_lines = s->lines;
        }
    }
}

/* Looks at `length` bytes, but for those of the last 64 at most: the byte behind a \r must be known. */
static void scan_text(scan *s, size_t length)
{
    for (; s->at + 64 < length; s->at += 64) {
        const char *text = s->text + s->at;
        uint64_t feeds = sgm__scan_find(text, '\n'), returns = sgm__scan_find(text, '\r'),
                 quotes = sgm__scan_find(text, '"');
        if (returns != 0) /* those of \r\n are no line ends of their own */
            returns &= ~(feeds >> 1 | (uint64_t)(text[64] == '\n') << 63);
        uint64_t line_ends = feeds | returns;
        if (s->in_quotes || quotes != 0) {
            scan_quoted(s, quotes, line_ends);
        } else if (line_ends != 0) {
            for (uint64_t marks = line_ends; marks != 0; marks &= marks - 1)
                s->lines++; /* few: faster than counting bits without an instruction for it */
            s->end = s->at + 64 - (size_t)__builtin_clzll(line_ends);
            s->end_lines = s->lines;
        }
    }
}

/* Reads until the piece has at least a row, and says in s->end where its last whole one ends. */
static sgm_status fill(sgm__csv_cutter *cutter, sgm__csv_piece *piece, scan *s)
{
    size_t filled = cutter->carry_length, target = PIECE > 2 * filled ? PIECE : 2 * filled, got;
    for (;; target *= 2) {
        SGM_TRY(sgm__reserve(&piece->text, &piece->capacity, target + SGM__CSV_PADDING, 1));
        s->text = piece->text;
        if (s->at == 0 && filled > 0)
            memcpy(piece->text, cutter->carry, filled);
        if (!cutter->at_end) {
            SGM_TRY(sgm_stream_read(cutter->stream, piece->text + filled, target - filled, &got));
            cutter->at_end = got < target - filled;
            filled += got;
        }
        piece->length = filled;
        if (cutter->at_end && filled <= SGM__CSV_LONGEST_ROW) {
            s->end = filled;
            return SGM_OK;
        }
        scan_text(s, filled);
        piece->is_endless = s->end == 0 && filled > SGM__CSV_LONGEST_ROW;
        if (s->end > 0 || piece->is_endless)
            return SGM_OK;
    }
}

/* What is behind the rows goes to the next piece. */
sgm_status sgm__csv_cut(sgm__csv_cutter *cutter, sgm__csv_piece *piece)
{
    scan s = {.separator = cutter->separator};
    piece->done = piece->length = 0;
    piece->line = cutter->lines + 1;
    piece->position = cutter->position;
    piece->is_endless = false;
    if (cutter->at_end && cutter->carry_length == 0)
        return SGM_OK;
    SGM_TRY(fill(cutter, piece, &s));
    if (piece->is_endless)
        s.end = piece->length;
    size_t carry = piece->length - s.end;
    SGM_TRY(sgm__reserve(&cutter->carry, &cutter->carry_capacity, carry, 1));
    if (carry > 0)
        memcpy(cutter->carry, piece->text + s.end, carry);
    cutter->carry_length = carry;
    cutter->lines += s.end_lines;
    cutter->position += s.end;
    piece->length = s.end;
    memset(piece->text + s.end, '\n', SGM__CSV_PADDING);
    return SGM_OK;
}

/* The bytes that were read before it is known what to do with them are carried to the first piece. */
static sgm_status carry_more(sgm__csv_cutter *cutter)
{
    size_t got;
    SGM_TRY(
        sgm__reserve(&cutter->carry, &cutter->carry_capacity, cutter->carry_length + PIECE, sizeof(char)));
    SGM_TRY(sgm_stream_read(cutter->stream, cutter->carry + cutter->carry_length, PIECE, &got));
    cutter->at_end = got < PIECE;
    cutter->carry_length += got;
    return SGM_OK;
}

static void drop(sgm__csv_cutter *cutter, size_t length)
{
    cutter->carry_length -= length;
    cutter->position += length;
    memmove(cutter->carry, cutter->carry + length, cutter->carry_length);
}

/* Drops a line that lies in what is carried; false if it does not end there. */
static bool drop_line(sgm__csv_cutter *cutter)
{
    const char *text = cutter->carry;
    size_t end = 0, length = cutter->carry_length;
    while (end < length && !sgm__csv_is_line_end(text[end]))
        end++;
    if (!cutter->at_end && end + 1 >= length) /* the byte behind a \r must be known */
        return false;
    if (end < length)
        cutter->lines++;
    end += end + 1 < length && text[end] == '\r' && text[end + 1] == '\n';
    drop(cutter, end < length ? end + 1 : length);
    return true;
}

sgm_status sgm__csv_cut_begin(sgm__csv_cutter *cutter, int lines)
{
    SGM_TRY(carry_more(cutter));
    if (cutter->carry_length >= 3 && memcmp(cutter->carry, "\xEF\xBB\xBF", 3) == 0)
        drop(cutter, 3);
    while (lines > 0) {
        if (drop_line(cutter))
            lines--;
        else
            SGM_TRY(carry_more(cutter));
    }
    return SGM_OK;
}

void sgm__csv_cutter_free(sgm__csv_cutter *cutter)
{
    sgm__free(cutter->carry);
    *cutter = (sgm__csv_cutter){0};
}
