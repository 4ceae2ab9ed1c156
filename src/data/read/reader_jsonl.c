/* A reader of JSON Lines: an object on each line, whose members are the cells of a row.
 *
 *     {"species": "cat", "age": 4.5, "town": null}
 *
 * The members of the first object name the columns, and are given as the first row, as a table's header is. A
 * member that a later object lacks, and null, is a missing cell; one that the first object has not is an
 * error, since it would be lost without a word. Numbers become the shortest decimals that read back the same.
 * The format is described at jsonlines.org. */
#include "base/name_index.h"
#include "data/read/reader.h"
#include "text/json_text.h"

#define LONGEST_LINE ((size_t)16 << 20)
#define EXPECTED "an object in one line was expected, such as {\"age\": 4, \"kind\": \"cat\"}"
#define NO_TEXT SIZE_MAX /* start of a missing cell */

/* Cells are noted as offsets, since `text` moves when it grows; pointers are made when a run is complete. */
typedef struct jsonl_reader {
    sgm__input input;
    int64_t line;   /* of the last one that was read, from 1 */
    sgm__text read; /* that line */
    char **names;   /* of the columns, owned */
    size_t name_count;
    sgm__name_index columns; /* finds them */
    json_t *first;           /* the first object, until it is given as a row; NULL: it was */
    bool gave_names;
    char *text;
    size_t text_length, text_capacity;
    size_t *starts;
    size_t start_count, start_capacity;
    const char **cells;
    size_t cell_capacity;
    int64_t *lines;
    size_t line_capacity;
} jsonl_reader;

/* --- lines --- */

/* Reads a line without its end; *has_line is false at the end of the file. */
static sgm_status read_line(jsonl_reader *self, bool *has_line)
{
    sgm__input *input = &self->input;
    self->read.length = 0;
    *has_line = false;
    for (;;) {
        if (input->begin == input->end)
            SGM_TRY(sgm__input_fill(input));
        if (input->begin == input->end)
            break;
        *has_line = true;
        const unsigned char *begin = input->buffer + input->begin,
                            *end = memchr(begin, '\n', input->end - input->begin);
        size_t length = end != NULL ? (size_t)(end - begin) : input->end - input->begin;
        sgm__text_append_bytes(&self->read, (const char *)begin, length);
        input->begin += length + (end != NULL);
        input->position += length + (end != NULL);
        if (self->read.failed)
            return SGM_ERROR_MEMORY;
        if (self->read.length > LONGEST_LINE)
            return sgm_fail(SGM_ERROR_FORMAT,
                            "%s: line %lld has more than %zu bytes; one object a line was expected",
                            input->stream->name, (long long)self->line + 1, LONGEST_LINE);
        if (end != NULL)
            break;
    }
    self->line += *has_line;
    return SGM_OK;
}

static bool is_blank(const sgm__text *line)
{
    return line->length == 0 || strspn(line->data, " \t\r") == line->length;
}

/* The object of the next line that is not blank; NULL at the end. The caller frees it. */
static sgm_status read_object(jsonl_reader *self, json_t **object)
{
    json_error_t error;
    bool has_line = true;
    *object = NULL;
    do
        SGM_TRY(read_line(self, &has_line));
    while (has_line && is_blank(&self->read));
    if (!has_line)
        return SGM_OK;
    /* A byte order mark, which some editors put before UTF-8. */
    size_t mark = self->line == 1 && strncmp(self->read.data, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    *object = json_loadb(self->read.data + mark, self->read.length - mark, JSON_REJECT_DUPLICATES, &error);
    if (json_is_object(*object))
        return SGM_OK;
    sgm_status status = *object == NULL ? sgm_fail(SGM_ERROR_FORMAT, "%s: line %lld, byte %d: %s; " EXPECTED,
                                                   self->input.stream->name, (long long)self->line,
                                                   error.position, sgm__json_mistake(&error))
                                        : sgm_fail(SGM_ERROR_FORMAT, "%s: line %lld: " EXPECTED,
                                                   self->input.stream->name, (long long)self->line);
    json_decref(*object);
    *object = NULL;
    return status;
}

/* --- cells --- */

/* Where the next cell begins becomes starts[at]. */
static sgm_status put_cell(jsonl_reader *self, size_t at, const char *cell, size_t length)
{
    SGM_TRY(sgm__reserve(&self->text, &self->text_capacity, self->text_length + length + 1, 1));
    self->starts[at] = self->text_length;
    memcpy(self->text + self->text_length, cell, length);
    self->text_length += length;
    self->text[self->text_length++] = '\0';
    return SGM_OK;
}

static sgm_status put_number(jsonl_reader *self, size_t at, const json_t *value)
{
    sgm__text text = {0};
    sgm__json_append(&text, value);
    sgm_status status = text.failed ? SGM_ERROR_MEMORY : put_cell(self, at, text.data, text.length);
    sgm__text_free(&text);
    return status;
}

static sgm_status put_value(jsonl_reader *self, size_t at, const char *name, const json_t *value)
{
    if (json_is_null(value) || (json_is_string(value) && json_string_length(value) == 0))
        return SGM_OK;
    if (json_is_string(value))
        return put_cell(self, at, json_string_value(value), json_string_length(value));
    if (json_is_boolean(value))
        return put_cell(self, at, json_is_true(value) ? "true" : "false", json_is_true(value) ? 4 : 5);
    if (json_is_number(value))
        return put_number(self, at, value);
    return sgm_fail(
        SGM_ERROR_FORMAT,
        "%s: line %lld: the member '%s' is a %s; a number, a text, true, false or null was expected",
        self->input.stream->name, (long long)self->line, name, json_is_array(value) ? "list" : "map");
}

/* Room for one more row of cells, all missing; their first one is *first. */
static sgm_status add_row(jsonl_reader *self, int64_t row, size_t *first)
{
    *first = self->start_count;
    SGM_TRY(sgm__reserve(&self->starts, &self->start_capacity, self->start_count + self->name_count,
                         sizeof *self->starts));
    SGM_TRY(sgm__reserve(&self->lines, &self->line_capacity, (size_t)row + 1, sizeof *self->lines));
    for (size_t i = 0; i < self->name_count; i++)
        self->starts[self->start_count++] = NO_TEXT;
    self->lines[row] = self->line;
    return SGM_OK;
}

static sgm_status put_object(jsonl_reader *self, int64_t row, json_t *object)
{
    size_t first;
    uintptr_t at;
    const char *name;
    json_t *value;
    SGM_TRY(add_row(self, row, &first));
    json_object_foreach(object, name, value)
    {
        if (!sgm__name_index_find(&self->columns, name, &at))
            return sgm_fail(
                SGM_ERROR_FORMAT,
                "%s: line %lld: '%s' is no member of the first line's object, which names the columns; add "
                "it there, as null if need be",
                self->input.stream->name, (long long)self->line, name);
        SGM_TRY(put_value(self, first + at, name, value));
    }
    return SGM_OK;
}

static sgm_status put_names(jsonl_reader *self, int64_t row)
{
    size_t first;
    SGM_TRY(add_row(self, row, &first));
    for (size_t i = 0; i < self->name_count; i++)
        if (self->names[i][0] != '\0') /* a column without a name is called by its number */
            SGM_TRY(put_cell(self, first + i, self->names[i], strlen(self->names[i])));
    return SGM_OK;
}

/* --- the reader --- */

static void forget_names(jsonl_reader *self)
{
    for (size_t i = 0; i < self->name_count; i++)
        sgm__free(self->names[i]);
    sgm__free(self->names);
    sgm__name_index_free(&self->columns);
    json_decref(self->first);
    self->names = NULL;
    self->first = NULL;
    self->name_count = 0;
}

/* Reads the first object and names the columns by its members. */
static sgm_status find_names(jsonl_reader *self)
{
    const char *name;
    json_t *value;
    SGM_TRY(read_object(self, &self->first));
    size_t count = json_object_size(self->first);
    if (self->first == NULL)
        return SGM_OK;
    if (count == 0)
        return sgm_fail(SGM_ERROR_FORMAT,
                        "%s: line %lld: the first object has no member, and names no column",
                        self->input.stream->name, (long long)self->line);
    self->names = sgm__calloc(count, sizeof *self->names);
    if (self->names == NULL)
        return SGM_ERROR_MEMORY;
    SGM_TRY(sgm__name_index_reserve(&self->columns, count));
    json_object_foreach(self->first, name, value)
    {
        char *own = sgm__strdup(name);
        if (own == NULL)
            return SGM_ERROR_MEMORY;
        sgm__name_index_add(&self->columns, own, self->name_count);
        self->names[self->name_count++] = own;
    }
    return SGM_OK;
}

/* The next row: names, then the first object, then those of the lines that follow. */
static sgm_status read_row(jsonl_reader *self, int64_t row, bool *has_row)
{
    json_t *object = self->first;
    *has_row = self->name_count > 0 && !self->gave_names;
    if (*has_row) {
        self->gave_names = true;
        return put_names(self, row);
    }
    self->first = NULL;
    if (object == NULL)
        SGM_TRY(read_object(self, &object));
    *has_row = object != NULL;
    sgm_status status = *has_row ? put_object(self, row, object) : SGM_OK;
    json_decref(object);
    return status;
}

static sgm_status jsonl_read(void *user, int64_t count, sgm_examples *examples)
{
    jsonl_reader *self = user;
    int64_t rows = 0;
    bool has_row = true;
    self->text_length = self->start_count = 0;
    for (; rows < count; rows++) {
        SGM_TRY(read_row(self, rows, &has_row));
        if (!has_row)
            break;
    }
    if (rows == 0)
        return SGM_OK;
    SGM_TRY(sgm__reserve(&self->cells, &self->cell_capacity, self->start_count, sizeof *self->cells));
    for (size_t i = 0; i < self->start_count; i++)
        self->cells[i] = self->starts[i] == NO_TEXT ? NULL : self->text + self->starts[i];
    examples->count = rows;
    examples->columns = (int32_t)self->name_count;
    examples->cells = self->cells;
    examples->first_line = self->lines[0];
    examples->lines = self->lines;
    return SGM_OK;
}

static sgm_status jsonl_rewind(void *user)
{
    jsonl_reader *self = user;
    forget_names(self);
    self->line = 0;
    self->gave_names = false;
    SGM_TRY(sgm__input_open(&self->input));
    return find_names(self);
}

static void jsonl_free(void *user)
{
    jsonl_reader *self = user;
    sgm__input_close(&self->input);
    forget_names(self);
    sgm__text_free(&self->read);
    sgm__free(self->text);
    sgm__free(self->starts);
    sgm__free(self->cells);
    sgm__free(self->lines);
    sgm__free(self);
}

static void jsonl_describe(const void *pointer, sgm__key *key)
{
    const jsonl_reader *self = pointer;
    sgm__source_describe(self->input.source, key);
}

sgm_reader *sgm_jsonl_reader(sgm_source *source)
{
    static const sgm_reader_type type = {"jsonl", jsonl_rewind, jsonl_read, jsonl_rewind, jsonl_free};
    if (source == NULL) {
        sgm__fail_missing("source");
        return NULL;
    }
    jsonl_reader *self = sgm__calloc(1, sizeof *self);
    if (self == NULL) {
        sgm_source_free(source);
        return NULL;
    }
    self->input.source = source;
    return sgm__reader_create(&type, self, source->name, jsonl_describe);
}
