/* What one cell of a table holds: nothing, a number, a date or a text.
 *
 * Called for each cell of a file (column.c), so the common cases are decided by the first character: what
 * begins with a letter is compared with the marks of missing values and is a text otherwise. Dates are those
 * that can be read in one way only. 03/04/2026 is April or March, depending on the country, and stays a text.
 */
#include "base/characters.h"
#include "base/number/digits.h"
#include "base/number/parse_double.h"
#include "data/table/column.h"

#include <math.h>

#define LONGEST_NUMBER 64 /* bytes; longer cells are texts, where a comma is before decimals */
#define LONGEST_MARK 4

/* The words that pandas and scikit-learn take for a missing value, and '?', which the older collections have.
 */
const char *const sgm__cell_missing_marks[] = {"NA",  "N/A",  "n/a",  "#N/A", "<NA>", "NaN",
                                               "nan", "NULL", "null", "None", "?",    NULL};

static bool is_missing_mark(const char *cell)
{
    bool may_be = *cell == 'N' || *cell == 'n' || *cell == '#' || *cell == '<' || *cell == '?';
    if (!may_be || strnlen(cell, LONGEST_MARK + 1) > LONGEST_MARK) /* most cells */
        return false;
    for (size_t i = 0; sgm__cell_missing_marks[i] != NULL; i++)
        if (cell[1] == sgm__cell_missing_marks[i][1] && strcmp(cell, sgm__cell_missing_marks[i]) == 0)
            return true;
    return false;
}

/* Reads `digits` digits into *value; NULL if others come. */
static const char *take_digits(const char *text, int digits, int *value)
{
    *value = 0;
    for (; digits > 0; digits--, text++) {
        if (!sgm__is_digit(*text))
            return NULL;
        *value = *value * 10 + (*text - '0');
    }
    return text;
}

/* Days from 1970-01-01 to a day of the Gregorian calendar. The year is taken to begin in March, so that the
 * day that leap years add is its last one; 400 years have 146,097 days. */
static int64_t days_of(int year, int month, int day)
{
    int64_t shifted = (int64_t)year - (month <= 2);
    int64_t era = (shifted >= 0 ? shifted : shifted - 399) / 400, year_of_era = shifted - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

static bool is_day(int year, int month, int day)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month >= 1 && month <= 12 && day >= 1 && day <= lengths[month - 1] + (month == 2 && leap);
}

/* 2026-11-23, 2026/11/23 or 23.11.2026; what follows is returned, NULL if there is no date. */
static const char *take_date(const char *text, int64_t *days)
{
    int year, month, day;
    const char *rest = take_digits(text, 4, &year);
    if (rest != NULL && (*rest == '-' || *rest == '/')) {
        char sign = *rest;
        rest = take_digits(rest + 1, 2, &month);
        rest = rest != NULL && *rest == sign ? take_digits(rest + 1, 2, &day) : NULL;
    } else {
        rest = take_digits(text, 2, &day);
        rest = rest != NULL && *rest == '.' ? take_digits(rest + 1, 2, &month) : NULL;
        rest = rest != NULL && *rest == '.' ? take_digits(rest + 1, 4, &year) : NULL;
    }
    if (rest == NULL || !is_day(year, month, day))
        return NULL;
    *days = days_of(year, month, day);
    return rest;
}

/* 12:30, 12:30:05 or 12:30:05.25, as a fraction of the day; what follows is returned, NULL if there is no
 * time. */
static const char *take_time(const char *text, double *fraction)
{
    int hour, minute, second = 0;
    double part = 0;
    const char *rest = take_digits(text, 2, &hour);
    rest = rest != NULL && *rest == ':' ? take_digits(rest + 1, 2, &minute) : NULL;
    if (rest != NULL && *rest == ':')
        rest = take_digits(rest + 1, 2, &second);
    if (rest == NULL || hour > 23 || minute > 59 || second > 59)
        return NULL;
    if (*rest == '.') {
        double unit = 0.1;
        for (rest++; sgm__is_digit(*rest); rest++, unit /= 10)
            part += unit * (*rest - '0');
    }
    *fraction = (hour * 3600 + minute * 60 + second + part) / 86400;
    return rest;
}

/* A date, and a time behind a space or a T. Z may follow it; other time zones are not read. */
static bool parse_date(const char *text, double *value)
{
    int64_t days;
    double fraction = 0;
    const char *rest = take_date(text, &days);
    if (rest != NULL && (*rest == ' ' || *rest == 'T'))
        rest = take_time(rest + 1, &fraction);
    if (rest != NULL && *rest == 'Z')
        rest++;
    if (rest == NULL || *rest != '\0')
        return false;
    *value = (double)days + fraction;
    return true;
}

/* With a decimal comma, a dot is no part of a number: 1.234 would be another one than the file's author
 * meant. */
static bool parse_number(const sgm__cell_format *format, const char *cell, bool is_padded, double *value)
{
    char own[LONGEST_NUMBER];
    if (format->decimal == ',') {
        size_t length = strlen(cell);
        if (length >= sizeof own || strchr(cell, '.') != NULL)
            return false;
        memcpy(own, cell, length + 1);
        char *comma = strchr(own, ',');
        if (comma != NULL)
            *comma = '.';
        cell = own;
        is_padded = false;
    }
    double parsed;
    bool is_number = is_padded ? sgm__parse_double_padded(cell, &parsed) : sgm__parse_double(cell, &parsed);
    if (!is_number || !isfinite(parsed))
        return false;
    *value = parsed;
    return true;
}

/* Whether a text that begins with a digit has the first sign of a date where dates have it: such a text is no
 * number, which would be slower to find out. */
static bool may_be_date(const char *cell)
{
    if (cell[1] == '\0' || cell[2] == '\0' || cell[3] == '\0')
        return false;
    return cell[4] == '-' || cell[4] == '/' || (cell[2] == '.' && cell[4] != '\0' && cell[5] == '.');
}

bool sgm__cell_is_missing(const sgm__cell_format *format, const char *cell)
{
    return cell == NULL || *cell == '\0' || is_missing_mark(cell) ||
           (format->missing != NULL && strcmp(cell, format->missing) == 0);
}

static sgm__cell_kind read_cell(const sgm__cell_format *format, const char *cell, bool is_padded,
                                double *value)
{
    if (sgm__cell_is_missing(format, cell))
        return SGM__CELL_MISSING;
    bool is_digit = sgm__is_digit(*cell), is_date = is_digit && may_be_date(cell);
    if (is_date)
        return parse_date(cell, value) ? SGM__CELL_DATE : SGM__CELL_TEXT;
    bool may_be_number = is_digit || *cell == '+' || *cell == '-' || *cell == '.' || *cell == ',';
    return may_be_number && parse_number(format, cell, is_padded, value) ? SGM__CELL_NUMBER : SGM__CELL_TEXT;
}

sgm__cell_kind sgm__cell_read(const sgm__cell_format *format, const char *cell, double *value)
{
    return read_cell(format, cell, false, value);
}

/* A cell behind which eight bytes may be read, of a table with a decimal point and no mark of its own for
 * missing values. What begins like a date or a number mostly is one; what is not is looked at again. */
static inline sgm__cell_kind read_padded(const sgm__cell_format *format, const char *cell, double *value)
{
    if (cell != NULL && *cell > ' ' && *cell < 'A') {
        bool may_be = (cell[4] == '-') | (cell[4] == '/') | ((cell[2] == '.') & (cell[5] == '.'));
        if (may_be && sgm__is_digit(*cell) && parse_date(cell, value))
            return SGM__CELL_DATE;
        if (sgm__parse_eight_digits(cell, value))
            return SGM__CELL_NUMBER;
    }
    return read_cell(format, cell, true, value);
}

void sgm__cells_read(const sgm__cell_format *format, const sgm__csv_rows *rows, size_t first, int64_t count,
                     uint8_t *kinds, double *values)
{
    const char *const *cell = rows->cells + first;
    bool is_plain = rows->are_padded && format->missing == NULL && format->decimal != ',';
    for (int64_t row = 0; row < count; row++, cell += rows->columns) {
        double value = 0;
        kinds[row] = (uint8_t)(is_plain ? read_padded(format, *cell, &value)
                                        : read_cell(format, *cell, rows->are_padded, &value));
        values[row] = value;
    }
}

bool sgm__has_decimal_comma(const char *text)
{
    size_t digits = text != NULL ? strspn(text, "+-0123456789") : 0;
    return digits > 0 && text[digits] == ',' && text[digits + 1] != '\0' &&
           strspn(text + digits + 1, "0123456789") == strlen(text + digits + 1);
}
