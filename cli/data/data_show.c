/* Parts of the lines that `sigma data` prints of columns and of arrays. See data_show.h. */
#include "data/data_show.h"

#include <math.h>
#include <stdio.h>

/* Draws counts as characters from ▁ to █, a count of 0 as a blank; in a terminal without UTF-8, by shades. */
void data_append_bars(sgm__text *to, const int64_t *counts)
{
    static const char *const bars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const shades[] = {" ", ".", ":", "-", "=", "+", "*", "#", "@"};
    const char *const *drawn = sgm__locale_is_utf8() ? bars : shades;
    int64_t maximum = 1;
    for (int i = 0; i < DATA_BARS; i++)
        maximum = counts[i] > maximum ? counts[i] : maximum;
    for (int i = 0; i < DATA_BARS; i++) /* rounded up, so that a single value is not drawn as none */
        sgm__text_append(to, "%s", drawn[(int)ceil((double)counts[i] / (double)maximum * 8)]);
}

void data_append_numbers(sgm__text *to, const sgm_table_column *column)
{
    sgm__text_append(to, "%.6g to %.6g, mean %.4g, standard deviation %.4g", column->minimum, column->maximum,
                     column->mean, column->standard_deviation);
}

void data_append_missing(sgm__text *to, int64_t missing, int64_t all)
{
    char number[32], text[64];
    double percent = 100.0 * (double)missing / (double)all;
    snprintf(text, sizeof text, percent < 10 ? "%s (%.2g %%)" : "%s (%.0f %%)",
             sgm_count_text(missing, number, sizeof number), percent);
    sgm__text_append(to, "%-15s", missing > 0 ? text : "-");
}

/* A column of the printed table is as wide as its widest name; sgm__utf8_count, as %-*s counts bytes. */
void data_append_name(sgm__text *to, const char *name, size_t width)
{
    size_t length = sgm__utf8_count(name);
    sgm__text_append(to, "%s%*s", name, length < width ? (int)(width - length) : 0, "");
}
