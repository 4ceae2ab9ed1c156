/* `sigma data FILE.csv`: what the columns of a table hold, before anything is trained on it.
 *
 * One line for each column: its number and name, its kind, how many cells have no value, what its values are,
 * and their distribution. Numbers and dates have a range and a histogram, categories the most frequent ones
 * with their shares. What looks like a mistake in the file is told below: a text in a column of numbers, a
 * column that always has the same value. */
#include "data/data.h"
#include "data/data_show.h"
#include "data/table/column.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Categories that are named in a line, and characters that are shown of a text. */
#define SHOWN_CATEGORIES 4
#define SHOWN_CHARACTERS 20

/* Days since 1970-01-01 as a date of the Gregorian calendar, in UTC. */
static void append_date(sgm__text *to, double days)
{
    time_t seconds = (time_t)(floor(days) * 86400);
    struct tm date;
    char text[32];
    if (gmtime_r(&seconds, &date) == NULL || strftime(text, sizeof text, "%Y-%m-%d", &date) == 0)
        sgm__text_append(to, "%.0f days after 1970-01-01", days);
    else
        sgm__text_append(to, "%s", text);
}

/* A text of the file, cut to a length that fits. */
static void append_cell(sgm__text *to, const char *cell)
{
    size_t length = sgm__utf8_prefix(cell, SHOWN_CHARACTERS);
    sgm__text_append_bytes(to, cell, length);
    if (cell[length] != '\0')
        sgm__text_append(to, "...");
}

static void append_categories(sgm__text *to, const sgm_table_column *column, int64_t values)
{
    char number[32];
    size_t count = column->category_count;
    if (count == 0) {
        sgm__text_append(to, "more than %s different",
                         sgm_count_text(SGM_MAX_CATEGORIES, number, sizeof number));
        if (column->longest > 0)
            sgm__text_append(to, ", up to %s bytes", sgm_count_text(column->longest, number, sizeof number));
        return;
    }
    sgm__text_append(to, "%zu different: ", count);
    size_t shown = count < SHOWN_CATEGORIES ? count : SHOWN_CATEGORIES;
    for (size_t i = 0; i < shown; i++) {
        sgm__text_append(to, "%s", i > 0 ? ", " : "");
        append_cell(to, column->categories[i].text);
        sgm__text_append(to, " %.3g %%", 100.0 * (double)column->categories[i].count / (double)values);
    }
    sgm__text_append(to, "%s", shown < count ? ", ..." : "");
}

/* A histogram of numbers and dates, the counts of the most frequent categories; blank for other kinds. */
static sgm_status append_distribution(sgm__text *to, const sgm_table *table, size_t index)
{
    const sgm_table_column *column = sgm_table_column_at(table, index);
    int64_t counts[DATA_BARS] = {0};
    if (column->kind == SGM_COLUMN_NUMBER || column->kind == SGM_COLUMN_DATE)
        SGM_TRY(sgm_table_histogram(table, index, counts, DATA_BARS));
    else if (column->kind == SGM_COLUMN_CATEGORY)
        for (size_t i = 0; i < column->category_count && i < DATA_BARS; i++)
            counts[i] = column->categories[i].count;
    data_append_bars(to, counts);
    return SGM_OK;
}

/* The values of a column in words. */
static void append_values(sgm__text *to, const sgm_table *table, const sgm_table_column *column)
{
    switch (column->kind) {
    case SGM_COLUMN_NUMBER:
        data_append_numbers(to, column);
        return;
    case SGM_COLUMN_DATE:
        append_date(to, column->minimum);
        sgm__text_append(to, " to ");
        append_date(to, column->maximum);
        return;
    case SGM_COLUMN_CATEGORY:
    case SGM_COLUMN_TEXT:
        append_categories(to, column, sgm_table_rows(table) - column->missing);
        return;
    case SGM_COLUMN_EMPTY:
        sgm__text_append(to, "no value in any row");
    }
}

static size_t name_width(const sgm_table *table)
{
    size_t width = strlen("column");
    for (size_t i = 0; i < sgm_table_columns(table); i++) {
        size_t length = sgm__utf8_count(sgm_table_column_at(table, i)->name);
        width = length > width && length <= DATA_WIDEST_NAME ? length : width;
    }
    return width;
}

static sgm_status append_column(sgm__text *to, const sgm_table *table, size_t index, size_t width)
{
    const sgm_table_column *column = sgm_table_column_at(table, index);
    sgm__text_append(to, "  %3zu  ", index);
    data_append_name(to, column->name, width);
    sgm__text_append(to, "  %-8s  ", sgm_column_kind_name(column->kind));
    data_append_missing(to, column->missing, sgm_table_rows(table));
    SGM_TRY(append_distribution(to, table, index));
    sgm__text_append(to, "  ");
    append_values(to, table, column);
    sgm__text_append(to, "\n");
    return SGM_OK;
}

/* --- what looks like a mistake --- */

/* A first line of texts above numbers is told once: it is about all columns. */
static void append_exception(sgm__text *to, const sgm_table_column *column, bool *told_of_first_line)
{
    bool is_first_line = column->exception_line == 1;
    if (column->exception == NULL || (is_first_line && *told_of_first_line))
        return;
    *told_of_first_line |= is_first_line;
    sgm__text_append(to, "  %s: line %lld has '", column->name, (long long)column->exception_line);
    append_cell(to, column->exception);
    sgm__text_append(to, "' where the others are numbers or dates: %s\n",
                     is_first_line ? "if that line names the columns, say --header yes"
                                   : "correct it, leave it empty, or name it by --missing");
}

static void append_notes(sgm__text *to, const sgm_table *table, const sgm_table_column *column)
{
    bool is_text = column->kind == SGM_COLUMN_CATEGORY || column->kind == SGM_COLUMN_TEXT;
    if (is_text && sgm__has_decimal_comma(column->first_text))
        sgm__text_append(to, "  %s: '%s' looks like a number with a decimal comma: try --decimal ,\n",
                         column->name, column->first_text);
    if (column->category_count == 1 && sgm_table_rows(table) > 1 && column->missing == 0)
        sgm__text_append(to, "  %s: all rows have the same value, from which nothing can be learnt\n",
                         column->name);
}

/* --- the whole --- */

static const char *separator_name(char separator, char *text)
{
    if (separator == '\t')
        return "a tab";
    if (separator == '\0')
        return ""; /* an object a line */
    snprintf(text, 8, "'%c'", separator);
    return text;
}

static sgm_status append_table(sgm__text *to, const char *path, const sgm_table *table)
{
    char number[32], separator[8];
    size_t width = name_width(table), columns = sgm_table_columns(table);
    int64_t rows = sgm_table_rows(table);
    sgm__text_append(to, "%s: %s row%s, %zu column%s, %s%s%s\n", path,
                     sgm_count_text(rows, number, sizeof number), rows == 1 ? "" : "s", columns,
                     columns == 1 ? "" : "s",
                     sgm_table_separator(table) == '\0' ? "an object a line" : "separated by ",
                     separator_name(sgm_table_separator(table), separator),
                     sgm_table_has_header(table) ? "" : "; no header: columns are called by their numbers");
    sgm__text_append(to, "    #  %-*s  %-8s  %-15s%-*s  %s\n", (int)width, "column", "kind", "missing",
                     DATA_BARS, "distribution", "values");
    for (size_t i = 0; i < columns; i++)
        SGM_TRY(append_column(to, table, i, width));
    int64_t skipped = sgm_table_skipped(table);
    if (skipped > 0)
        sgm__text_append(to, "  %s row%s without a value %s left out\n",
                         sgm_count_text(skipped, number, sizeof number), skipped == 1 ? "" : "s",
                         skipped == 1 ? "is" : "are");
    bool told_of_first_line = false;
    for (size_t i = 0; i < columns; i++) {
        append_exception(to, sgm_table_column_at(table, i), &told_of_first_line);
        append_notes(to, table, sgm_table_column_at(table, i));
    }
    return SGM_OK;
}

int data_show_table(const char *path, const sgm_table_options *options)
{
    sgm__text text = {0};
    sgm_table *table = sgm_table_open_with(path, options);
    sgm_status status = table != NULL ? append_table(&text, path, table) : sgm_last_status();
    char *shown = sgm__text_take(&text);
    sgm_table_free(table);
    if (status != SGM_OK || shown == NULL) {
        sgm__free(shown);
        return report_error("data", status == SGM_ERROR_NOT_FOUND ? CLI_USAGE : CLI_FAILED);
    }
    printf("%s", sgm__make_printable(shown));
    sgm__free(shown);
    return CLI_OK;
}
