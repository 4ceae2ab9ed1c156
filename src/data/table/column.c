/* The summary of a column, cell by cell: see column.h.
 *
 * Memory is bounded: of numbers and dates the moments and some evenly spaced values are kept, of the
 * different texts the first SGM_MAX_CATEGORIES, which are dropped when there is one more. */
#include "data/table/column.h"

#include <math.h>
#include <stdlib.h>

#define MAXIMUM_SAMPLES 65536
/* Texts of at most so many kinds are categories even in a table of few rows. */
#define FEW_CATEGORIES 20
/* A column in which this share of values are numbers was meant to hold numbers. */
#define MOSTLY 0.9

/* --- values --- */

static sgm_status add_sample(sgm__samples *samples, int64_t number, double value)
{
    if (samples->stride == 0)
        samples->stride = 1;
    if ((number & (samples->stride - 1)) != 0) /* a power of two */
        return SGM_OK;
    if (samples->count == MAXIMUM_SAMPLES) {
        for (size_t i = 0; i < MAXIMUM_SAMPLES / 2; i++)
            samples->values[i] = samples->values[2 * i];
        samples->count = MAXIMUM_SAMPLES / 2;
        samples->stride *= 2;
        if ((number & (samples->stride - 1)) != 0)
            return SGM_OK;
    }
    SGM_TRY(sgm__reserve(&samples->values, &samples->capacity, samples->count + 1, sizeof *samples->values));
    samples->values[samples->count++] = value;
    return SGM_OK;
}

/* Adds the block's values to mean and squares: those of the block by themselves, then both together (Chan,
 * Golub and LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979). */
static void add_block(sgm__moments *moments)
{
    double own = (double)moments->block_count, before = (double)moments->count - own, sum = 0, squares = 0;
    if (moments->block_count == 0)
        return;
    for (size_t i = 0; i < moments->block_count; i++)
        sum += moments->block[i];
    double mean = sum / own, distance = mean - moments->mean;
    for (size_t i = 0; i < moments->block_count; i++)
        squares += (moments->block[i] - mean) * (moments->block[i] - mean);
    moments->mean += distance * (own / (double)moments->count);
    moments->squares += squares;
    if (before > 0)
        moments->squares += distance * distance * (before * own / (double)moments->count);
    moments->block_count = 0;
}

static sgm_status add_value(sgm__moments *moments, double value)
{
    SGM_TRY(add_sample(&moments->samples, moments->count, value));
    if (moments->count == 0 || value < moments->minimum)
        moments->minimum = value;
    if (moments->count == 0 || value > moments->maximum)
        moments->maximum = value;
    moments->count++;
    moments->block[moments->block_count++] = value;
    if (moments->block_count == SGM__MOMENTS_BLOCK)
        add_block(moments);
    return SGM_OK;
}

/* --- different texts --- */

static void drop_categories(sgm__column *column)
{
    for (size_t i = 0; i < column->category_count; i++)
        sgm__free((char *)(uintptr_t)column->categories[i].text);
    sgm__free(column->categories);
    sgm__name_index_free(&column->index);
    column->categories = NULL;
    column->category_count = column->category_capacity = 0;
}

static sgm_status add_text(sgm__column *column, const char *cell)
{
    uintptr_t at;
    if (column->is_varied)
        return SGM_OK;
    if (sgm__name_index_find(&column->index, cell, &at)) {
        column->categories[at].count++;
        return SGM_OK;
    }
    if (column->category_count == SGM_MAX_CATEGORIES) {
        drop_categories(column);
        column->is_varied = true;
        return SGM_OK;
    }
    SGM_TRY(sgm__reserve(&column->categories, &column->category_capacity, column->category_count + 1,
                         sizeof *column->categories));
    SGM_TRY(sgm__name_index_reserve(&column->index, 1));
    char *text = sgm__strdup(cell);
    if (text == NULL)
        return SGM_ERROR_MEMORY;
    column->categories[column->category_count] = (sgm_category){text, 1};
    sgm__name_index_add(&column->index, text, column->category_count++);
    return SGM_OK;
}

sgm_status sgm__column_add(sgm__column *column, const sgm__cell_format *format, const char *cell,
                           int64_t line, bool measured)
{
    double value;
    sgm__cell_kind kind = sgm__cell_read(format, cell, &value);
    if (kind == SGM__CELL_MISSING) {
        column->counts[kind]++;
        return SGM_OK;
    }
    if (column->counts[kind] == 0) {
        column->first[kind] = sgm__strdup(cell);
        column->first_line[kind] = line;
        if (column->first[kind] == NULL)
            return SGM_ERROR_MEMORY;
    }
    column->counts[kind]++;
    column->has_times |= kind == SGM__CELL_DATE && value != floor(value);
    if (kind != SGM__CELL_TEXT && measured)
        SGM_TRY(add_value(&column->moments[kind], value));
    return add_text(column, cell);
}

/* --- the end --- */

static int by_frequency(const void *left, const void *right)
{
    const sgm_category *a = left, *b = right;
    if (a->count != b->count)
        return a->count < b->count ? 1 : -1;
    return strcmp(a->text, b->text);
}

static sgm_column_kind kind_of(const sgm__column *column, int64_t values)
{
    if (values == 0)
        return SGM_COLUMN_EMPTY;
    if (column->counts[SGM__CELL_NUMBER] == values)
        return SGM_COLUMN_NUMBER;
    if (column->counts[SGM__CELL_DATE] == values)
        return SGM_COLUMN_DATE;
    bool are_few = column->category_count <= FEW_CATEGORIES || (int64_t)column->category_count <= values / 2;
    return !column->is_varied && are_few ? SGM_COLUMN_CATEGORY : SGM_COLUMN_TEXT;
}

/* Of a column of texts that was meant to hold numbers, or dates: the first cell that holds none. */
static void find_exception(sgm__column *column, int64_t values)
{
    sgm_table_column *summary = &column->summary;
    static const sgm__cell_kind meant[] = {SGM__CELL_NUMBER, SGM__CELL_DATE};
    for (size_t i = 0; i < sizeof meant / sizeof *meant; i++) {
        if ((double)column->counts[meant[i]] < MOSTLY * (double)values)
            continue;
        for (int kind = SGM__CELL_NUMBER; kind < SGM__CELL_KINDS; kind++) {
            bool is_other = kind != (int)meant[i] && column->counts[kind] > 0;
            if (is_other &&
                (summary->exception == NULL || column->first_line[kind] < summary->exception_line)) {
                summary->exception = column->first[kind];
                summary->exception_line = column->first_line[kind];
            }
        }
    }
}

const sgm__moments *sgm__column_moments(const sgm__column *column)
{
    if (column->summary.kind == SGM_COLUMN_NUMBER)
        return &column->moments[SGM__CELL_NUMBER];
    return column->summary.kind == SGM_COLUMN_DATE ? &column->moments[SGM__CELL_DATE] : NULL;
}

void sgm__column_finish(sgm__column *column)
{
    sgm_table_column *summary = &column->summary;
    int64_t values =
        column->counts[SGM__CELL_NUMBER] + column->counts[SGM__CELL_DATE] + column->counts[SGM__CELL_TEXT];
    for (int kind = 0; kind < SGM__CELL_KINDS; kind++)
        add_block(&column->moments[kind]);
    if (column->category_count > 0)
        qsort(column->categories, column->category_count, sizeof *column->categories, by_frequency);
    sgm__name_index_free(&column->index); /* it knows the places from before */
    *summary = (sgm_table_column){.name = column->name,
                                  .kind = kind_of(column, values),
                                  .missing = column->counts[SGM__CELL_MISSING],
                                  .minimum = NAN,
                                  .maximum = NAN,
                                  .mean = NAN,
                                  .standard_deviation = NAN,
                                  .categories = column->categories,
                                  .category_count = column->category_count};
    const sgm__moments *moments = sgm__column_moments(column);
    if (moments == NULL) {
        find_exception(column, values);
        return;
    }
    if (moments->count == 0)
        return;
    summary->minimum = moments->minimum;
    summary->maximum = moments->maximum;
    summary->mean = moments->mean;
    summary->standard_deviation = sqrt(moments->squares / (double)moments->count);
}

void sgm__column_free(sgm__column *column)
{
    drop_categories(column);
    for (int kind = 0; kind < SGM__CELL_KINDS; kind++) {
        sgm__free(column->first[kind]);
        sgm__free(column->moments[kind].samples.values);
    }
    sgm__free(column->name);
}
