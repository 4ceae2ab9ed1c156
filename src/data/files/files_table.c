/* Lists files with transcripts: a table with the columns `file` and `text`; see files.h. */
#include "data/files/files.h"
#include "data/read/extractor.h"
#include "data/read/source.h"
#include "data/table/table.h"

/* Rows that are read at once. */
#define CHUNK 1024

static const char *const columns[] = {"file", "text"};

const char *sgm__next_character(const char *text, char character[5])
{
    const unsigned char *first = (const unsigned char *)text;
    size_t length = *first < 0x80 ? *first != '\0' : sgm__utf8_length(first);
    if (length == 0)
        return NULL;
    memcpy(character, text, length);
    character[length] = '\0';
    return text + length;
}

static sgm_status check_transcript(const sgm_files *files, int64_t line, const char *text)
{
    char character[5];
    const char *at = text, *next;
    while ((next = sgm__next_character(at, character)) != NULL)
        at = next;
    if (at == text || *at != '\0')
        return sgm_fail(SGM_ERROR_FORMAT, "%s: line %lld: the text of a sound was expected, in UTF-8%s",
                        files->path, (long long)line, *text == '\0' ? "; the cell is empty" : "");
    return SGM_OK;
}

/* A path in a table begins where the table is. */
static char *path_of(const sgm_files *files, const char *name)
{
    const char *slash = strrchr(files->path, '/');
    if (name[0] == '/' || slash == NULL)
        return sgm__strdup(name);
    return sgm__format("%.*s/%s", (int)(slash - files->path), files->path, name);
}

static sgm_status add_row(sgm_files *files, int64_t line, const char *name, const char *text)
{
    sgm__class_folder *folder = &files->folder;
    if (name == NULL || *name == '\0')
        return sgm_fail(SGM_ERROR_FORMAT, "%s: line %lld: the name of a file was expected", files->path,
                        (long long)line);
    SGM_TRY(check_transcript(files, line, text != NULL ? text : ""));
    size_t room = folder->capacity;
    SGM_TRY(sgm__reserve(&files->transcripts, &room, folder->count + 1, sizeof *files->transcripts));
    SGM_TRY(sgm__reserve(&folder->files, &folder->capacity, folder->count + 1, sizeof *folder->files));
    char *path = path_of(files, name), *transcript = sgm__strdup(text);
    if (path == NULL || transcript == NULL) {
        sgm__free(path);
        sgm__free(transcript);
        return SGM_ERROR_MEMORY;
    }
    files->transcripts[folder->count] = transcript;
    folder->files[folder->count++] = (sgm__class_file){.path = path, .class = -1};
    return SGM_OK;
}

/* Where the columns are, by the first row. */
static sgm_status find_columns(const sgm_files *files, const sgm_examples *header, int64_t places[2])
{
    for (size_t i = 0; i < 2; i++) {
        places[i] = 0;
        while (places[i] < header->columns &&
               (header->count == 0 || strcmp(header->cells[places[i]], columns[i]) != 0))
            places[i]++;
        if (header->count == 0 || places[i] == header->columns)
            return sgm_fail(
                SGM_ERROR_FORMAT,
                "%s: the column '%s' is missing: a table of %s has the columns 'file' and 'text', "
                "named by its first line",
                files->path, columns[i], files->kind->names->several);
    }
    return SGM_OK;
}

static sgm_status read_rows(sgm_files *files, sgm__chunks *chunks)
{
    sgm_examples rows;
    int64_t places[2];
    SGM_TRY(sgm__chunks_read(chunks, 1, &rows));
    SGM_TRY(find_columns(files, &rows, places));
    do {
        SGM_TRY(sgm__chunks_read(chunks, CHUNK, &rows));
        for (int64_t i = 0; i < rows.count; i++) {
            const char *const *cells = rows.cells + i * rows.columns;
            SGM_TRY(add_row(files, rows.lines[i], cells[places[0]], cells[places[1]]));
        }
    } while (rows.count > 0);
    return files->folder.count > 0 ? SGM_OK
                                   : sgm_fail(SGM_ERROR_NOT_FOUND, "%s: the table has no row", files->path);
}

sgm_status sgm__files_list_table(sgm_files *files)
{
    char separator = '\0';
    sgm__chunks chunks = {.reader =
                              sgm__table_reader(sgm__unpacked_path_source(files->path), &separator, false)};
    sgm_status status = chunks.reader != NULL ? read_rows(files, &chunks) : sgm__last_failure();
    sgm_reader_free(chunks.reader);
    return status;
}
