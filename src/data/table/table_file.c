/* The file of a table: its source, the character that separates its cells, and a reader of its rows.
 *
 * Files of JSON Lines have no separator, and their own reader. table.c reads all rows to describe them,
 * pipeline_extractor.c to train on them. The file is opened twice: its first line alone decides the
 * separator, which the reader must know before it begins. */
#include "data/table/table.h"

#define LONGEST_FIRST_LINE 65536 /* bytes of it that are looked at */
#define LISTED_COLUMNS 8         /* that a message names */

/* The beginning of the file, ended by 0. */
static sgm_status read_beginning(sgm_source *source, char *text, size_t room)
{
    size_t length = 0, got = 0;
    SGM_TRY(sgm_source_prepare(source));
    sgm_stream *stream = sgm_source_open(source);
    if (stream == NULL)
        return sgm_last_status();
    sgm_status status = sgm_stream_read(stream, text, room - 1, &got);
    length = status == SGM_OK ? got : 0;
    text[length] = '\0';
    sgm_stream_close(stream);
    return status;
}

/* The candidate that the first line has most often outside of quotes; a comma if it has none. */
static char most_frequent_separator(const char *text)
{
    static const char candidates[] = ",;\t|";
    int counts[sizeof candidates] = {0};
    bool quoted = false;
    for (; *text != '\0' && (quoted || (*text != '\n' && *text != '\r')); text++) {
        const char *found = strchr(candidates, *text);
        if (*text == '"')
            quoted = !quoted;
        else if (found != NULL && !quoted)
            counts[found - candidates]++;
    }
    size_t best = 0;
    for (size_t i = 1; candidates[i] != '\0'; i++)
        if (counts[i] > counts[best])
            best = i;
    return candidates[best];
}

/* Whether a name ends like this, or so before the ending of a packed file, and before the checksum that an
 * address may have. */
static bool is_called(const char *path, const char *ending)
{
    static const char *const packed[] = {"", ".gz", ".xz", ".bz2", ".zst", ".Z", ".zip"};
    size_t length = sgm__is_url(path) ? strcspn(path, "?#") : strlen(path), own = strlen(ending);
    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++) {
        size_t behind = strlen(packed[i]);
        if (length >= own + behind && strncmp(path + length - behind, packed[i], behind) == 0 &&
            strncmp(path + length - behind - own, ending, own) == 0)
            return true;
    }
    return false;
}

bool sgm__table_is_jsonl(const char *path)
{
    return is_called(path, ".jsonl") || is_called(path, ".ndjson");
}

bool sgm__table_is_name(const char *path)
{
    return is_called(path, ".csv") || is_called(path, ".tsv") || sgm__table_is_jsonl(path);
}

static sgm_status find_separator(sgm_source *source, char *separator)
{
    if (*separator != '\0')
        return SGM_OK;
    *separator = '\t';
    if (is_called(sgm_source_name(source), ".tsv"))
        return SGM_OK;
    char *beginning = sgm__alloc(LONGEST_FIRST_LINE);
    if (beginning == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = read_beginning(source, beginning, LONGEST_FIRST_LINE);
    if (status == SGM_OK)
        *separator = most_frequent_separator(beginning);
    sgm__free(beginning);
    return status;
}

sgm_reader *sgm__table_reader(sgm_source *source, char *separator, bool skip_ragged)
{
    if (source == NULL)
        return NULL;
    if (sgm__table_is_jsonl(sgm_source_name(source)))
        return sgm_jsonl_reader(source);
    if (find_separator(source, separator) == SGM_OK)
        return sgm_csv_reader(source, .separator = *separator, .skip_ragged = skip_ragged);
    sgm_source_free(source);
    return NULL;
}

/* "; it has a, b, ...": a table of one column was mostly read with a separator that it does not have. */
static void append_columns(sgm__text *to, const char *const *columns, size_t count)
{
    if (count == 1 && columns[0] != NULL) {
        sgm__text_append(to, "; its only column is '%.60s': 'separator' says what is between columns",
                         columns[0]);
        return;
    }
    for (size_t i = 0; i < count && i < LISTED_COLUMNS; i++)
        sgm__text_append(to, "%s%.40s", i > 0 ? ", " : "; it has ", columns[i] != NULL ? columns[i] : "''");
    if (count > LISTED_COLUMNS)
        sgm__text_append(to, ", ...");
}

sgm_status sgm__table_fail_unknown(const char *name, const char *column, const char *const *columns,
                                   size_t count)
{
    const char *nearest = sgm__nearest(column, columns, count);
    if (nearest != NULL)
        return sgm_fail(SGM_ERROR_NOT_FOUND, "%s has no column '%s'; did you mean '%s'?", name, column,
                        nearest);
    if (strchr(column, ',') != NULL)
        return sgm_fail(SGM_ERROR_NOT_FOUND, "%s has no column '%s'; several columns are a list, [a, b]",
                        name, column);
    sgm__text known = {0};
    append_columns(&known, columns, count);
    sgm_status status = sgm_fail(SGM_ERROR_NOT_FOUND, "%s has no column '%s'%s", name, column,
                                 known.data != NULL ? known.data : "");
    sgm__text_free(&known);
    return status;
}
