/* A reader of text tables: rows of cells, whose grammar csv.h has.
 *
 * A cell is kept as text, and extractors (extractor_csv.c) make numbers of it. A missing cell (empty, or
 * equal to the option `missing`) is NULL. All rows must have as many cells as the first one; others are
 * errors, or left out with the option skip_ragged. Messages name line and column. Rows are read from pieces
 * of the file in turn, or pieces are taken as a whole by a pass (pass.h). */
#include "data/csv/reader_csv.h"

#include "data/read/reader.h"

/* The pieces that rows were read from are kept until the next call, since the cells lie in them. */
struct sgm__csv_reader {
    sgm_source *source;
    sgm_stream *stream;
    int skip_rows;
    char *missing;
    sgm__csv_format format;
    sgm__csv_cutter cutter;
    sgm__csv_piece *pieces;
    size_t piece_count, piece_capacity; /* of the run; of those with memory */
    sgm__csv_rows rows;
    int64_t ragged; /* rows that were left out, as far as they are logged */
};

/* --- pieces --- */

/* The first piece, which has rows left or none, becomes the only one. */
static void keep_last_piece(sgm__csv_reader *self)
{
    if (self->piece_count < 2)
        return;
    sgm__csv_piece last = self->pieces[self->piece_count - 1];
    self->pieces[self->piece_count - 1] = self->pieces[0];
    self->pieces[0] = last;
    self->piece_count = 1;
}

/* Makes the last piece one with rows; *has_rows is false at the end. */
static sgm_status find_piece(sgm__csv_reader *self, bool *has_rows)
{
    size_t before = self->piece_capacity;
    *has_rows = true;
    if (self->piece_count > 0 &&
        self->pieces[self->piece_count - 1].done < self->pieces[self->piece_count - 1].length)
        return SGM_OK;
    SGM_TRY(sgm__reserve(&self->pieces, &self->piece_capacity, self->piece_count + 1, sizeof *self->pieces));
    if (self->piece_capacity > before)
        memset(self->pieces + before, 0, (self->piece_capacity - before) * sizeof *self->pieces);
    SGM_TRY(sgm__csv_cut(&self->cutter, &self->pieces[self->piece_count]));
    *has_rows = self->pieces[self->piece_count].length > 0;
    self->piece_count += *has_rows;
    return SGM_OK;
}

sgm_status sgm__csv_reader_cut(sgm__csv_reader *self, sgm__csv_piece *piece)
{
    keep_last_piece(self);
    if (self->piece_count == 0 || self->pieces[0].done == self->pieces[0].length)
        return sgm__csv_cut(&self->cutter, piece);
    sgm__csv_piece left = self->pieces[0];
    self->pieces[0] = *piece;
    *piece = left;
    self->piece_count = 0;
    return SGM_OK;
}

/* --- rows --- */

void sgm__csv_reader_note_columns(sgm__csv_reader *self, const sgm__csv_rows *rows)
{
    if (self->format.columns > 0 || rows->count == 0)
        return;
    self->format.columns = rows->columns;
    self->format.columns_line = rows->lines[0];
}

void sgm__csv_reader_log_ragged(sgm__csv_reader *self, const sgm__csv_ragged *ragged)
{
    for (int64_t i = 0; i < ragged->count && self->ragged < SGM__CSV_RAGGED_LOGGED; i++) {
        self->ragged++;
        sgm__log(SGM_LOG_WARNING, "data", "%s: line %lld has %lld columns instead of %lld and is left out%s",
                 self->format.name, (long long)ragged->first[i].line, (long long)ragged->first[i].columns,
                 (long long)self->format.columns,
                 self->ragged == SGM__CSV_RAGGED_LOGGED ? "; further ones are not reported" : "");
    }
}

/* Up to `count` rows. Cells and lines belong to the reader and are valid until its next call. */
static sgm_status csv_read(void *user, int64_t count, sgm_examples *examples)
{
    sgm__csv_reader *self = user;
    sgm__csv_rows *rows = &self->rows;
    bool has_rows = true;
    sgm__csv_rows_clear(rows);
    keep_last_piece(self);
    if (self->piece_count > 0 && self->pieces[0].done == self->pieces[0].length)
        self->piece_count = 0;
    while (rows->count < count) {
        SGM_TRY(find_piece(self, &has_rows));
        if (!has_rows)
            break;
        SGM_TRY(
            sgm__csv_split(&self->format, &self->pieces[self->piece_count - 1], count - rows->count, rows));
    }
    sgm__csv_reader_note_columns(self, rows);
    sgm__csv_reader_log_ragged(self, &rows->ragged);
    if (rows->count == 0)
        return SGM_OK;
    examples->count = rows->count;
    examples->columns = (int32_t)rows->columns;
    examples->cells = rows->cells;
    examples->first_line = rows->lines[0];
    examples->lines = rows->lines;
    return SGM_OK;
}

/* Opens the source from its beginning and skips the rows that the options name. Skipped rows are lines,
 * whatever quotes they have. */
static sgm_status csv_rewind(void *user)
{
    sgm__csv_reader *self = user;
    sgm_stream_close(self->stream);
    sgm__csv_cutter_free(&self->cutter);
    self->piece_count = 0;
    self->format.columns = self->ragged = 0;
    self->stream = sgm_source_open(self->source);
    if (self->stream == NULL)
        return sgm_last_status();
    self->format.name = self->stream->name;
    self->cutter = (sgm__csv_cutter){.stream = self->stream, .separator = self->format.separator};
    return sgm__csv_cut_begin(&self->cutter, self->skip_rows);
}

static void csv_free(void *user)
{
    sgm__csv_reader *self = user;
    for (size_t i = 0; i < self->piece_capacity; i++)
        sgm__free(self->pieces[i].text);
    sgm__free(self->pieces);
    sgm__csv_cutter_free(&self->cutter);
    sgm__csv_rows_free(&self->rows);
    sgm_stream_close(self->stream);
    sgm_source_free(self->source);
    sgm__free(self->missing);
    sgm__free(self);
}

sgm__csv_reader *sgm__csv_reader_of(sgm_reader *reader)
{
    return sgm__reader_self(reader, csv_read);
}

const sgm__csv_format *sgm__csv_reader_format(const sgm__csv_reader *self)
{
    return &self->format;
}

/* --- creation --- */

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
    const sgm__csv_reader *self = pointer;
    sgm__source_describe(self->source, key);
    sgm__key_add_number(key, self->format.separator);
    sgm__key_add_number(key, self->skip_rows);
    sgm__key_add_text(key, self->missing);
    sgm__key_add_number(key, self->format.skip_ragged);
}

/* Takes the source, also on failure. */
sgm_reader *sgm_csv_reader_with(sgm_source *source, const sgm_csv_options *given)
{
    static const sgm_reader_type type = {"csv", csv_rewind, csv_read, csv_rewind, csv_free};
    sgm_csv_options options;
    bool good = sgm__options_read(&options, sizeof options, given, "sgm_csv_reader") == SGM_OK &&
                check_arguments(source, &options) == SGM_OK;
    sgm__csv_reader *self = good ? sgm__calloc(1, sizeof *self) : NULL;
    if (self == NULL) {
        sgm_source_free(source);
        return NULL;
    }
    self->source = source;
    self->missing = sgm__strdup(options.missing);
    self->skip_rows = options.skip_rows;
    self->format = (sgm__csv_format){.separator = options.separator != '\0' ? options.separator : ',',
                                     .missing = self->missing,
                                     .missing_length = self->missing != NULL ? strlen(self->missing) : 0,
                                     .skip_ragged = options.skip_ragged};
    if (options.missing != NULL && self->missing == NULL) {
        csv_free(self);
        return NULL;
    }
    return sgm__reader_create(&type, self, source->name, csv_describe);
}
