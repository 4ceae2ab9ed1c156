/* Lines of numbers: their columns, one line, all lines of a file. */
#include "monitors/runs/lines.h"

#include "base/characters.h"
#include "base/number/parse_double.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <unistd.h>

/* Bytes that are read at once; a line is shorter. */
#define PORTION ((size_t)4 << 20)

/* --- columns --- */

void sgm__run_columns_free(sgm__run_columns *columns)
{
    for (size_t i = 0; i < columns->count; i++)
        sgm__free(columns->columns[i].name);
    sgm__free(columns->columns);
    *columns = (sgm__run_columns){0};
}

static bool is_named(const sgm__run_column *column, const char *name, size_t length)
{
    return column->length == length && memcmp(column->name, name, length) == 0;
}

static sgm__run_column *add_column(sgm__run_columns *columns, const char *name, size_t length)
{
    if (columns->count >= SGM__RUNS_MAXIMUM_METRICS ||
        sgm__reserve(&columns->columns, &columns->capacity, columns->count + 1, sizeof *columns->columns) !=
            SGM_OK)
        return NULL;
    sgm__run_column *column = &columns->columns[columns->count];
    *column = (sgm__run_column){
        .name = sgm__strndup(name, length), .length = length, .minimum = INFINITY, .maximum = -INFINITY};
    columns->count += column->name != NULL;
    return column->name != NULL ? column : NULL;
}

sgm__run_column *sgm__run_column_of(sgm__run_columns *columns, const char *name, size_t length, bool *is_new)
{
    *is_new = false;
    for (size_t i = 0; i < columns->count; i++) {
        size_t place = columns->next + i;
        place -= place >= columns->count ? columns->count : 0;
        if (!is_named(&columns->columns[place], name, length))
            continue;
        columns->next = place + 1 < columns->count ? place + 1 : 0;
        return &columns->columns[place];
    }
    columns->next = 0;
    *is_new = true;
    return add_column(columns, name, length);
}

const sgm__run_column *sgm__run_column_named(const sgm__run_columns *columns, const char *name)
{
    for (size_t i = 0; i < columns->count; i++)
        if (strcmp(columns->columns[i].name, name) == 0)
            return &columns->columns[i];
    return NULL;
}

/* --- a line --- */

static char *skip_spaces(char *at)
{
    while (*at == ' ' || *at == '\t' || *at == '\r')
        at++;
    return at;
}

/* Behind one digit or more; NULL: there is none. */
static char *skip_digits(char *at)
{
    if (!sgm__is_digit(*at))
        return NULL;
    while (sgm__is_digit(*at))
        at++;
    return at;
}

/* Behind the number at `at`, as JSON has them; NULL: there is none. */
static char *skip_number(char *at)
{
    at += *at == '-';
    if (*at == '0' && sgm__is_digit(at[1]))
        return NULL;
    at = skip_digits(at);
    if (at != NULL && *at == '.')
        at = skip_digits(at + 1);
    if (at != NULL && (*at == 'e' || *at == 'E')) {
        at++;
        at = skip_digits(at + (*at == '-' || *at == '+'));
    }
    return at;
}

/* Behind the name in quotes at `at`; NULL: it is none, or one with escapes or other letters than ASCII's. */
static char *skip_name(char *at)
{
    if (*at++ != '"')
        return NULL;
    while (*at != '"' && *at != '\\' && *at >= ' ' && *at < 127)
        at++;
    return *at == '"' ? at + 1 : NULL;
}

/* A member: name, colon, and a number or null. Returns what is behind it, and whether it has a number. */
typedef struct member {
    const char *name;
    size_t length;
    double value;
} member;

static char *take_member(char *at, member *taken, bool *has_number)
{
    char *end = skip_name(at);
    if (end == NULL)
        return NULL;
    *taken = (member){.name = at + 1, .length = (size_t)(end - at) - 2};
    end = skip_spaces(end);
    if (*end++ != ':')
        return NULL;
    end = skip_spaces(end);
    *has_number = strncmp(end, "null", 4) != 0;
    if (!*has_number)
        return end + 4;
    char *number = end;
    end = skip_number(number);
    if (end == NULL)
        return NULL;
    char behind = *end;
    *end = '\0';
    bool good = sgm__parse_double_padded(number, &taken->value) && isfinite(taken->value);
    *end = behind;
    return good ? end : NULL;
}

/* The members of a line that has nothing unusual; SIZE_MAX: it has. */
static size_t take_plain(char *line, const char *end, member *members)
{
    size_t count = 0;
    char *at = skip_spaces(line);
    if (*at++ != '{')
        return SIZE_MAX;
    for (;;) {
        bool has_number;
        at = count < SGM__RUNS_MAXIMUM_METRICS ? take_member(skip_spaces(at), &members[count], &has_number)
                                               : NULL;
        if (at == NULL)
            return SIZE_MAX;
        count += has_number;
        at = skip_spaces(at);
        if (*at == '}')
            return skip_spaces(at + 1) == end ? count : SIZE_MAX;
        if (*at++ != ',')
            return SIZE_MAX;
    }
}

bool sgm__run_line_numbers(char *line, size_t length, sgm__run_number_function *number, void *user)
{
    member members[SGM__RUNS_MAXIMUM_METRICS];
    char behind = line[length];
    line[length] = '\0';
    size_t count = take_plain(line, line + length, members);
    line[length] = behind;
    if (count != SIZE_MAX) {
        for (size_t i = 0; i < count; i++)
            number(user, members[i].name, members[i].length, members[i].value);
        return true;
    }
    json_t *values = json_loadb(line, length, 0, NULL), *value;
    const char *name;
    bool is_object = json_is_object(values);
    json_object_foreach(values, name, value) if (json_is_number(value))
        number(user, name, strlen(name), json_number_value(value));
    json_decref(values);
    return is_object;
}

/* --- all lines --- */

/* Tells the complete lines of a portion that begins at `offset`; returns how many bytes they have. */
static size_t tell_lines(char *text, size_t length, off_t offset, off_t to, sgm__run_line_function *line,
                         void *user)
{
    size_t start = 0;
    while (start < length && offset + (off_t)start < to) {
        const char *end = memchr(text + start, '\n', length - start);
        if (end == NULL)
            break;
        size_t count = (size_t)(end - (text + start));
        if (count > 0)
            line(user, text + start, count, offset + (off_t)start);
        start += count + 1;
    }
    return start;
}

sgm_status sgm__run_each_line(int file, off_t from, off_t to, sgm__run_line_function *line, void *user,
                              off_t *next)
{
    *next = from;
    char *text = sgm__calloc(1, PORTION + SGM__RUN_LINE_PADDING);
    if (text == NULL)
        return SGM_ERROR_MEMORY;
    ssize_t count = 0;
    while (*next < to && (count = pread(file, text, PORTION, *next)) > 0) {
        size_t taken = tell_lines(text, (size_t)count, *next, to, line, user);
        if (taken == 0 && (size_t)count < PORTION)
            break; /* the last line is not complete yet */
        if (taken == 0)
            line(user, NULL, (size_t)count, *next);
        *next += taken > 0 ? (off_t)taken : (off_t)count;
    }
    sgm__free(text);
    return count >= 0
               ? SGM_OK
               : sgm_fail(SGM_ERROR_FILE, "a run's metrics cannot be read: %s", sgm__errno_text(errno));
}
