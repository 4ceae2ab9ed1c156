/* Reads files of JSON Lines, a line at a time. */
#include "tokenizer/json_lines.h"
#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_blank(const char *line, size_t length)
{
    return strspn(line, " \t\r\n") == length;
}

/* Bytes of a byte order mark, which some editors put before UTF-8. */
static size_t mark_of(const char *line, size_t length)
{
    return length >= 3 && memcmp(line, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
}

/* jansson's own words for a 0 character name a flag of its C functions, which means nothing to a user. */
static const char *mistake_of(const json_error_t *mistake)
{
    return json_error_code(mistake) == json_error_null_character
               ? "\\u0000 is not allowed, as a text ends there; take it out"
               : mistake->text;
}

/* What the file is instead, where its first line can tell that; "": it cannot. */
static const char *kind_of(const char *path, const char *line, size_t length, bool is_first)
{
    const size_t blanks = strspn(line, " \t");
    if (is_first && blanks < length && line[blanks] == '[')
        return "this is a list of JSON, and a file of JSON Lines is wanted, one object on each line without "
               "the list around them, as 'jq -c .[] FILE' writes them; ";
    return sgm__has_ending(path, ".csv") || sgm__has_ending(path, ".tsv")
               ? "this is a table, and a file of JSON Lines is wanted, an object for each row; "
               : "";
}

static sgm_status add_line(const char *path, const char *line, size_t length, bool is_first,
                           const char *expected, sgm_status (*add)(void *user, const json_t *object),
                           void *user)
{
    json_error_t mistake;
    json_t *object = json_loadb(line, length, JSON_REJECT_DUPLICATES, &mistake);
    const char *kind = json_is_object(object) ? "" : kind_of(path, line, length, is_first);
    const sgm_status status = *kind    ? sgm_fail(SGM_ERROR_FORMAT, "%s%s", kind, expected)
                              : object ? add(user, object)
                                       : sgm_fail(SGM_ERROR_FORMAT, "byte %d: %s; %s", mistake.position,
                                                  mistake_of(&mistake), expected);
    json_decref(object);
    return status;
}

sgm_status sgm__json_lines_read(const char *path, size_t most, const char *expected,
                                sgm_status (*add)(void *user, const json_t *object), void *user,
                                int64_t *line_number)
{
    FILE *file = fopen(path, "rb");
    char *line = NULL;
    size_t capacity = 0, read = 0;
    ssize_t length;
    sgm_status status = SGM_OK;
    if (!file)
        return sgm_fail(SGM_ERROR_FILE, "cannot read '%s': %s", path, strerror(errno));
    for (long long number = 1;
         status == SGM_OK && (most == 0 || read < most) && (length = getline(&line, &capacity, file)) >= 0;
         number++) {
        const size_t mark = number == 1 ? mark_of(line, (size_t)length) : 0;
        if (is_blank(line + mark, (size_t)length - mark))
            continue;
        if (line_number != NULL)
            *line_number = number;
        status = add_line(path, line + mark, (size_t)length - mark, read == 0, expected, add, user);
        read++;
        if (status != SGM_OK)
            sgm_fail(status, "%s:%lld: %s", path, number, sgm_last_error());
    }
    if (status == SGM_OK && ferror(file))
        status = sgm_fail(SGM_ERROR_FILE, "cannot read '%s': %s", path, strerror(errno));
    free(line);
    fclose(file);
    return status;
}
