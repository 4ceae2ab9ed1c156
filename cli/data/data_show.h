/* Parts of the lines that `sigma data` prints of the columns of a table (data_table.c) and of arrays
 * (data_arrays.c), so that both look alike. */
#ifndef SGM_CLI_DATA_DATA_SHOW_H
#define SGM_CLI_DATA_DATA_SHOW_H

#include "base/base.h"
#include <sigma/table.h>

/* Parts of a histogram, each a character. */
#define DATA_BARS 16
/* Widest name of a column; longer ones move their line to the right. */
#define DATA_WIDEST_NAME 24

/* The DATA_BARS counts of a histogram. */
void data_append_bars(sgm__text *to, const int64_t *counts);
/* Range, mean and standard deviation of a column of numbers. */
void data_append_numbers(sgm__text *to, const sgm_table_column *column);
/* How many of `all` have no value. */
void data_append_missing(sgm__text *to, int64_t missing, int64_t all);
/* A name, and blanks up to the width of the printed column. */
void data_append_name(sgm__text *to, const char *name, size_t width);

#endif
