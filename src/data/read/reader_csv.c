/* A reader of text tables: rows of cells with quoting as in RFC 4180, separated by a character of choice.
 *
 * It reads byte by byte through sgm__input and copies the cells of a run into one buffer, each terminated; a
 * cell is kept as text, and extractors (extractor_csv.c) make numbers of it. A missing cell (empty, or equal
 * to the option `missing`) is NULL. Blank lines are no rows. Lines end with \n, \r\n or \r; blanks around
 * unquoted cells are dropped. With ' ' as separator any number of blanks and tabs separates. All rows must
 * have as many cells as the first one; others are errors, or left out with the option skip_ragged. Messages
 * name line and column. */
#include "data/read/reader.h"

#define LONGEST_ROW ((size_t)16 << 20) /* a quote that is never closed must not swallow a huge file */
/* Warnings about rows that were left out, for each pass over the file. */
#define MAXIMUM_LOGGED 10
#define NO_TEXT SIZE_MAX /* start of a missing cell */

/* The reader's state. Cells are noted as offsets, since `text` moves when it grows; pointers are made when a
 * run is complete. */
typedef struct csv_reader {
    sgm__input input;
    char separator;
    bool ends_cell[256]; /* of a byte: it is no part of a cell without quotes, or has to be looked at */
    int skip_rows;
    char *missing;
    bool skip_ragged;

    int64_t line;                  /* of the next byte, from 1 */
    int64_t columns, columns_line; /* of the first row; 0: none yet */
    int64_t ragged;                /* rows that were skipped */
    char *text;                    /* all cells of the run, each terminated */
    size_t text_length, text_capacity;
    size_t *starts; /* of the cells in `text` */
    size_t start_count, start_capacity;
    const char **cells;
    size_t cell_capacity;
    size_t row_text, row_starts; /* lengths before the present row */
    int64_t row_line;
    int64_t *lines; /* of the rows of the run */
    size_t line_capacity;
} csv_reader;

#define END (-1)

/* The next byte without taking it, END at the end; a failure is returned. */
static inline sgm_status peek(csv_reader *self, int *byte)
{
    sgm__input *input = &self->input;
    if (input->begin == input->end)
        SGM_TRY(sgm__input_fill(input));
    *byte = input->begin < input->end ? input->buffer[input->begin] : END;
    return SGM_OK;
}

/* Takes the byte that peek has shown. */
static inline void advance(csv_reader *self)
{
    self->input.begin++;
    self->input.position++;
}

static bool is_row_end(int byte)
{
    return byte == '\n' || byte == '\r' || byte == END;
}

/* A tab that separates is no blank; a space that separates is one, since several of them separate once. */
static bool is_blank(const csv_reader *self, int byte)
{
    return (byte == ' ' || byte == '\t') && (byte != self->separator || self->separator == ' ');
}

/* The number of the present cell in its row, from 0, as extractors count. */
static int64_t column(const csv_reader *self)
{
    return (int64_t)(self->start_count - self->row_starts);
}

/* The bound catches a quote that is never closed before it swallows a huge file. */
static sgm_status fail_long_row(const csv_reader *self)
{
    return sgm_fail(
        SGM_ERROR_FORMAT,
        "%s: line %lld: the row has more than %zu bytes; look for a quote (\") that is not closed",
        self->input.stream->name, (long long)self->row_line, LONGEST_ROW);
}

/* Adds a byte to the present cell. */
static sgm_status append(csv_reader *self, char byte)
{
    if (self->text_length == self->text_capacity)
        SGM_TRY(sgm__reserve(&self->text, &self->text_capacity, self->text_length + 1, 1));
    if (self->text_length - self->row_text > LONGEST_ROW)
        return fail_long_row(self);
    self->text[self->text_length++] = byte;
    return SGM_OK;
}

/* Takes the end of a line: \n, \r\n or \r. */
static sgm_status take_line_end(csv_reader *self)
{
    int byte;
    SGM_TRY(peek(self, &byte));
    if (byte == END)
        return SGM_OK;
    advance(self);
    self->line++;
    if (byte == '\r') {
        SGM_TRY(peek(self, &byte));
        if (byte == '\n')
            advance(self);
    }
    return SGM_OK;
}

/* A zero byte would end the cell's text early, and means that the file is no text. */
static sgm_status fail_binary(const csv_reader *self)
{
    return sgm_fail(SGM_ERROR_FORMAT,
                    "%s: line %lld, column %lld (from 0): text was expected, a zero byte came at byte %llu; "
                    "the file is packed, UTF-16, or no text at all: unpack it (sgm_compressed_source in C), "
                    "or save it as "
                    "UTF-8",
                    self->input.stream->name, (long long)self->line, (long long)column(self),
                    (unsigned long long)self->input.position);
}

/* The text between quotes, where "" stands for one quote and line ends are part of the text. The opening
 * quote is the next byte. */
static sgm_status read_quoted(csv_reader *self)
{
    int64_t opened = self->line;
    int byte;
    advance(self);
    for (;;) {
        SGM_TRY(peek(self, &byte));
        if (byte == END)
            return sgm_fail(
                SGM_ERROR_FORMAT,
                "%s: line %lld, column %lld (from 0): the quote (\") that opens the cell is never closed; "
                "close it, or "
                "double it if it is part of the text",
                self->input.stream->name, (long long)opened, (long long)column(self));
        if (byte == 0)
            return fail_binary(self);
        advance(self);
        if (byte == '\n')
            self->line++;
        if (byte == '\r') { /* a line end of its own, unless it begins "\r\n" */
            int next;
            SGM_TRY(peek(self, &next));
            self->line += next != '\n';
        }
        if (byte == '"') {
            SGM_TRY(peek(self, &byte));
            if (byte != '"')
                return SGM_OK;
            advance(self);
        }
        SGM_TRY(append(self, (char)byte));
    }
}

/* After a closing quote only blanks may follow. */
static sgm_status skip_to_cell_end(csv_reader *self, int *byte)
{
    SGM_TRY(peek(self, byte));
    while (is_blank(self, *byte) && self->separator != ' ') {
        advance(self);
        SGM_TRY(peek(self, byte));
    }
    if (is_row_end(*byte) || *byte == self->separator || is_blank(self, *byte))
        return SGM_OK;
    return sgm_fail(
        SGM_ERROR_FORMAT,
        "%s: line %lld, column %lld (from 0): the end of the cell was expected after its closing quote, "
        "'%c' came; double "
        "a quote that is part of the text",
        self->input.stream->name, (long long)self->line, (long long)column(self), *byte);
}

/* Takes the bytes that are in the buffer up to the first that may end a cell, all at once. */
static sgm_status take_run(csv_reader *self)
{
    sgm__input *input = &self->input;
    const unsigned char *first = input->buffer + input->begin, *end = input->buffer + input->end, *at = first;
    while (at < end && !self->ends_cell[*at])
        at++;
    size_t length = (size_t)(at - first);
    SGM_TRY(sgm__reserve(&self->text, &self->text_capacity, self->text_length + length + 1, 1));
    if (self->text_length - self->row_text + length > LONGEST_ROW)
        return fail_long_row(self);
    memcpy(self->text + self->text_length, first, length);
    self->text_length += length;
    input->begin += length;
    input->position += length;
    return SGM_OK;
}

/* Text without quotes up to the end of the cell, without blanks around. */
static sgm_status read_plain(csv_reader *self, int *byte)
{
    size_t start = self->text_length;
    for (;;) {
        SGM_TRY(peek(self, byte));
        if (*byte == 0)
            return fail_binary(self);
        if (*byte == END || self->ends_cell[*byte])
            break;
        SGM_TRY(take_run(self));
    }
    while (self->text_length > start && is_blank(self, self->text[self->text_length - 1]))
        self->text_length--;
    return SGM_OK;
}

/* Reads one cell and notes where its text begins. *byte is the cell's first byte, and afterwards the byte
 * that ends it, which is not taken. */
static sgm_status read_cell(csv_reader *self, int *byte)
{
    size_t start = self->text_length;
    if (*byte == '"') {
        SGM_TRY(read_quoted(self));
        SGM_TRY(skip_to_cell_end(self, byte));
    } else {
        SGM_TRY(read_plain(self, byte));
    }
    SGM_TRY(append(self, '\0'));
    const char *text = self->text + start;
    bool is_missing = *text == '\0' || (self->missing != NULL && strcmp(text, self->missing) == 0);
    SGM_TRY(sgm__reserve(&self->starts, &self->start_capacity, self->start_count + 1, sizeof *self->starts));
    self->starts[self->start_count++] = is_missing ? NO_TEXT : start;
    return SGM_OK;
}

/* *byte becomes the next byte that is no blank. */
static sgm_status skip_blanks(csv_reader *self, int *byte)
{
    SGM_TRY(peek(self, byte));
    while (is_blank(self, *byte)) {
        advance(self);
        SGM_TRY(peek(self, byte));
    }
    return SGM_OK;
}

/* --- rows without quotes, which are most --- */

static bool has_byte(const unsigned char *bytes, char byte, size_t length)
{
    return memchr(bytes, byte, length) != NULL;
}

/* The length of the present line without its end, if all of it is in the buffer and it has neither quotes nor
 * anything else to look at; else 0. */
static size_t plain_length(const csv_reader *self)
{
    const sgm__input *input = &self->input;
    const unsigned char *first = input->buffer + input->begin,
                        *end = memchr(first, '\n', input->end - input->begin);
    size_t length = end != NULL ? (size_t)(end - first) : 0;
    if (length > 0 && first[length - 1] == '\r')
        length--;
    if (self->separator == ' ' || length == 0 || has_byte(first, '"', length) ||
        has_byte(first, '\r', length) || has_byte(first, '\0', length))
        return 0;
    return length;
}

/* Notes the cell [first, end) of `text`, without blanks around, and ends it by 0. */
static void note_cell(csv_reader *self, char *first, char *end)
{
    while (first < end && is_blank(self, *first))
        first++;
    while (first < end && is_blank(self, end[-1]))
        end--;
    *end = '\0';
    bool is_missing = first == end || (self->missing != NULL && strcmp(first, self->missing) == 0);
    self->starts[self->start_count++] = is_missing ? NO_TEXT : (size_t)(first - self->text);
}

/* Copies the line as it stands, and ends each cell where its separator was. */
static sgm_status take_plain_row(csv_reader *self, size_t length)
{
    SGM_TRY(sgm__reserve(&self->text, &self->text_capacity, self->text_length + length + 1, 1));
    char *at = self->text + self->text_length, *line_end = at + length, *end;
    memcpy(at, self->input.buffer + self->input.begin, length);
    self->text_length += length + 1;
    self->input.begin += length;
    self->input.position += length;
    do {
        end = memchr(at, self->separator, (size_t)(line_end - at));
        if (self->start_count == self->start_capacity)
            SGM_TRY(sgm__reserve(&self->starts, &self->start_capacity, self->start_count + 1,
                                 sizeof *self->starts));
        note_cell(self, at, end != NULL ? end : line_end);
        at = end != NULL ? end + 1 : line_end;
    } while (end != NULL);
    return take_line_end(self);
}

/* The cells of the present line. With blanks as separators those at its end begin no cell. */
static sgm_status read_cells(csv_reader *self)
{
    int byte;
    SGM_TRY(skip_blanks(self, &byte));
    size_t length = plain_length(self);
    if (length > 0)
        return take_plain_row(self, length);
    for (;;) {
        SGM_TRY(read_cell(self, &byte));
        if (is_row_end(byte))
            break;
        if (self->separator != ' ')
            advance(self);
        SGM_TRY(skip_blanks(self, &byte));
        if (self->separator == ' ' && is_row_end(byte))
            break;
    }
    return take_line_end(self);
}

/* Passes blank lines; *has_row is false at the end. */
static sgm_status find_row(csv_reader *self, bool *has_row)
{
    int byte;
    for (;;) {
        SGM_TRY(skip_blanks(self, &byte));
        if (!is_row_end(byte) || byte == END)
            break;
        SGM_TRY(take_line_end(self));
    }
    *has_row = byte != END;
    return SGM_OK;
}

/* A row with another number of cells than the first: an error, or a warning and the row's cells are dropped.
 */
static sgm_status reject_row(csv_reader *self, int64_t columns)
{
    if (!self->skip_ragged)
        return sgm_fail(
            SGM_ERROR_FORMAT,
            "%s: line %lld: %lld columns were expected as in line %lld, %lld came; correct the row, or set "
            "skip_ragged to leave such rows out",
            self->input.stream->name, (long long)self->row_line, (long long)self->columns,
            (long long)self->columns_line, (long long)columns);
    if (self->ragged++ < MAXIMUM_LOGGED)
        sgm__log(SGM_LOG_WARNING, "data", "%s: line %lld has %lld columns instead of %lld and is left out%s",
                 self->input.stream->name, (long long)self->row_line, (long long)columns,
                 (long long)self->columns,
                 self->ragged == MAXIMUM_LOGGED ? "; further ones are not reported" : "");
    self->text_length = self->row_text;
    self->start_count = self->row_starts;
    return SGM_OK;
}

/* Adds the next row that fits; *has_row is false at the end. */
static sgm_status read_row(csv_reader *self, bool *has_row)
{
    for (;;) {
        SGM_TRY(find_row(self, has_row));
        if (!*has_row)
            return SGM_OK;
        self->row_text = self->text_length;
        self->row_starts = self->start_count;
        self->row_line = self->line;
        SGM_TRY(read_cells(self));
        int64_t columns = (int64_t)(self->start_count - self->row_starts);
        if (self->columns == 0) {
            self->columns = columns;
            self->columns_line = self->row_line;
        }
        if (columns == self->columns)
            return SGM_OK;
        SGM_TRY(reject_row(self, columns));
    }
}

/* Up to `count` rows. Cells and lines belong to the reader and are valid until its next call. */
static sgm_status csv_read(void *user, int64_t count, sgm_examples *examples)
{
    csv_reader *self = user;
    int64_t rows = 0;
    bool has_row = true;
    self->text_length = self->start_count = 0;
    for (; rows < count; rows++) {
        SGM_TRY(read_row(self, &has_row));
        if (!has_row)
            break;
        SGM_TRY(sgm__reserve(&self->lines, &self->line_capacity, (size_t)rows + 1, sizeof *self->lines));
        self->lines[rows] = self->row_line;
    }
    if (rows == 0)
        return SGM_OK;
    SGM_TRY(sgm__reserve(&self->cells, &self->cell_capacity, self->start_count, sizeof *self->cells));
    for (size_t i = 0; i < self->start_count; i++)
        self->cells[i] = self->starts[i] == NO_TEXT ? NULL : self->text + self->starts[i];
    examples->count = rows;
    examples->columns = (int32_t)self->columns;
    examples->cells = self->cells;
    examples->first_line = self->lines[0];
    examples->lines = self->lines;
    return SGM_OK;
}

/* Skips the byte order mark that some editors put before UTF-8. */
static sgm_status skip_mark(csv_reader *self)
{
    sgm__input *input = &self->input;
    SGM_TRY(sgm__input_fill(input));
    if (input->end - input->begin >= 3 && memcmp(input->buffer, "\xEF\xBB\xBF", 3) == 0) {
        input->begin += 3;
        input->position += 3;
    }
    return SGM_OK;
}

/* Opens the source from its beginning and skips the rows that the options name. Skipped rows are lines,
 * whatever quotes they have. */
static sgm_status csv_rewind(void *user)
{
    csv_reader *self = user;
    SGM_TRY(sgm__input_open(&self->input));
    self->line = 1;
    self->columns = self->ragged = 0;
    SGM_TRY(skip_mark(self));
    for (int i = 0; i < self->skip_rows; i++) {
        int byte;
        SGM_TRY(peek(self, &byte));
        while (!is_row_end(byte)) {
            advance(self);
            SGM_TRY(peek(self, &byte));
        }
        SGM_TRY(take_line_end(self));
    }
    return SGM_OK;
}

static void csv_free(void *user)
{
    csv_reader *self = user;
    sgm__input_close(&self->input);
    sgm__free(self->missing);
    sgm__free(self->text);
    sgm__free(self->starts);
    sgm__free(self->cells);
    sgm__free(self->lines);
    sgm__free(self);
}

/* With blanks as separators a tab is one, too. A zero byte is an error. */
static void mark_ends(csv_reader *self)
{
    self->ends_cell[0] = self->ends_cell['\n'] = self->ends_cell['\r'] = true;
    self->ends_cell[(unsigned char)self->separator] = true;
    self->ends_cell['\t'] |= self->separator == ' ';
}

static sgm_status check_arguments(const sgm_source *source, const sgm_csv_options *options)
{
    if (source == NULL)
        return sgm__fail_missing("source");
    if (options->skip_rows < 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: at least 0 rows to skip were expected, %d came",
                        source->name, options->skip_rows);
    if (options->separator < 0 ||
        (options->separator != '\0' && strchr("\"\n\r", options->separator) != NULL))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: an ASCII separator other than quotes and line ends was expected, character "
                        "%d came",
                        source->name, options->separator);
    return SGM_OK;
}

static void csv_describe(const void *pointer, sgm__key *key)
{
    const csv_reader *self = pointer;
    sgm__source_describe(self->input.source, key);
    sgm__key_add_number(key, self->separator);
    sgm__key_add_number(key, self->skip_rows);
    sgm__key_add_text(key, self->missing);
    sgm__key_add_number(key, self->skip_ragged);
}

/* Takes the source, also on failure. */
sgm_reader *sgm_csv_reader_with(sgm_source *source, const sgm_csv_options *given)
{
    static const sgm_reader_type type = {"csv", csv_rewind, csv_read, csv_rewind, csv_free};
    sgm_csv_options options;
    bool good = sgm__options_read(&options, sizeof options, given, "sgm_csv_reader") == SGM_OK &&
                check_arguments(source, &options) == SGM_OK;
    csv_reader *self = good ? sgm__calloc(1, sizeof *self) : NULL;
    if (self == NULL) {
        sgm_source_free(source);
        return NULL;
    }
    self->input.source = source;
    self->separator = options.separator != '\0' ? options.separator : ',';
    mark_ends(self);
    self->skip_rows = options.skip_rows;
    self->skip_ragged = options.skip_ragged;
    self->missing = sgm__strdup(options.missing);
    if (options.missing != NULL && self->missing == NULL) {
        csv_free(self);
        return NULL;
    }
    return sgm__reader_create(&type, self, source->name, csv_describe);
}
