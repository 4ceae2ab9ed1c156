/* The moments of a column, and its summary: see column.h.
 *
 * Memory is bounded: of numbers and dates the moments and some evenly spaced values are kept. */
#include "data/table/column.h"

#include <math.h>
#include <stdlib.h>

#define MAXIMUM_SAMPLES 65536
/* Texts of at most so many kinds are categories even in a table of few rows. */
#define FEW_CATEGORIES 20
/* A column in which this share of values are numbers was meant to hold numbers. */
#define MOSTLY 0.9

/* --- values --- */

/* Drops every second value. */
static void thin_out(sgm__samples *samples)
{
    for (size_t i = 0; i < MAXIMUM_SAMPLES / 2; i++)
        samples->values[i] = samples->values[2 * i];
    samples->count = MAXIMUM_SAMPLES / 2;
    samples->stride *= 2;
    samples->next = (int64_t)samples->count * samples->stride;
}

/* Of the values number `first` and on, those whose turn it is. */
static sgm_status add_samples(sgm__samples *samples, int64_t first, const double *values, int64_t count)
{
    if (samples->stride == 0)
        samples->stride = 1;
    while (samples->next < first + count) {
        if (samples->count == MAXIMUM_SAMPLES) {
            thin_out(samples);
            continue;
        }
        SGM_TRY(
            sgm__reserve(&samples->values, &samples->capacity, samples->count + 1, sizeof *samples->values));
        samples->values[samples->count++] = values[samples->next - first];
        samples->next += samples->stride;
    }
    return SGM_OK;
}

#define LANES 8 /* sums side by side, since each addition waits for the one before */

static double add_lanes(const double *lanes)
{
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

/* Adds the block's values to mean and squares: those of the block by themselves, then both together (Chan,
 * Golub and LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979). A
 * block that is not full is filled up: with the first value for the extremes, with what adds nothing for the
 * sums. */
static void add_block(sgm__moments *moments)
{
    double *block = moments->block, sums[LANES] = {0}, squares[LANES] = {0}, low[LANES], high[LANES];
    size_t count = moments->block_count;
    double own = (double)count, before = (double)moments->count - own;
    if (count == 0)
        return;
    if (before == 0)
        moments->minimum = moments->maximum = block[0];
    for (size_t k = 0; k < LANES; k++)
        low[k] = high[k] = block[0];
    memset(block + count, 0, (SGM__MOMENTS_BLOCK - count) * sizeof *block);
    for (size_t i = 0; i < SGM__MOMENTS_BLOCK; i += LANES)
        for (size_t k = 0; k < LANES; k++)
            sums[k] += block[i + k];
    double mean = add_lanes(sums) / own, distance = mean - moments->mean;
    for (size_t i = count; i < SGM__MOMENTS_BLOCK; i++)
        block[i] = mean;
    for (size_t i = 0; i < SGM__MOMENTS_BLOCK; i += LANES)
        for (size_t k = 0; k < LANES; k++)
            squares[k] += (block[i + k] - mean) * (block[i + k] - mean);
    for (size_t i = count; i < SGM__MOMENTS_BLOCK; i++)
        block[i] = block[0];
    for (size_t i = 0; i < SGM__MOMENTS_BLOCK; i += LANES) {
        for (size_t k = 0; k < LANES; k++) {
            low[k] = block[i + k] < low[k] ? block[i + k] : low[k];
            high[k] = block[i + k] > high[k] ? block[i + k] : high[k];
        }
    }
    for (size_t k = 0; k < LANES; k++) {
        moments->minimum = low[k] < moments->minimum ? low[k] : moments->minimum;
        moments->maximum = high[k] > moments->maximum ? high[k] : moments->maximum;
    }
    moments->mean += distance * (own / (double)moments->count);
    moments->squares += add_lanes(squares);
    if (before > 0)
        moments->squares += distance * distance * (before * own / (double)moments->count);
    moments->block_count = 0;
}

static sgm_status add_values(sgm__moments *moments, const double *values, int64_t count)
{
    SGM_TRY(add_samples(&moments->samples, moments->count, values, count));
    while (count > 0) {
        size_t room = SGM__MOMENTS_BLOCK - moments->block_count;
        size_t some = (size_t)count < room ? (size_t)count : room;
        memcpy(moments->block + moments->block_count, values, some * sizeof *values);
        moments->block_count += some;
        moments->count += (int64_t)some;
        if (moments->block_count == SGM__MOMENTS_BLOCK)
            add_block(moments);
        values += some;
        count -= (int64_t)some;
    }
    return SGM_OK;
}

/* The end of the rows from `row` on that are of one kind, and measured alike. */
static int64_t find_end(const uint8_t *kinds, const bool *measured, int64_t row, int64_t count)
{
    uint8_t kind = kinds[row];
    int64_t end = row + 1;
    if (measured == NULL)
        for (uint64_t word, same = kind * UINT64_C(0x0101010101010101); end + 8 <= count; end += 8) {
            memcpy(&word, kinds + end, sizeof word);
            if (word != same)
                break;
        }
    while (end < count && kinds[end] == kind && (measured == NULL || measured[end] == measured[row]))
        end++;
    return end;
}

sgm_status sgm__column_measure(sgm__column *column, const uint8_t *kinds, const double *values,
                               const bool *measured, int64_t count)
{
    for (int64_t row = 0, end; row < count; row = end) {
        end = find_end(kinds, measured, row, count);
        bool has_values = kinds[row] == SGM__CELL_NUMBER || kinds[row] == SGM__CELL_DATE;
        if (has_values && (measured == NULL || measured[row]))
            SGM_TRY(add_values(&column->moments[kinds[row]], values + row, end - row));
    }
    return SGM_OK;
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
    if (column->tally.counts[SGM__CELL_NUMBER] == values)
        return SGM_COLUMN_NUMBER;
    if (column->tally.counts[SGM__CELL_DATE] == values)
        return SGM_COLUMN_DATE;
    bool are_few =
        column->tally.category_count <= FEW_CATEGORIES || (int64_t)column->tally.category_count <= values / 2;
    return !column->tally.is_varied && are_few ? SGM_COLUMN_CATEGORY : SGM_COLUMN_TEXT;
}

/* Of a column of texts that was meant to hold numbers, or dates: the first cell that holds none. */
static void find_exception(sgm__column *column, int64_t values)
{
    sgm_table_column *summary = &column->summary;
    static const sgm__cell_kind meant[] = {SGM__CELL_NUMBER, SGM__CELL_DATE};
    for (size_t i = 0; i < sizeof meant / sizeof *meant; i++) {
        if ((double)column->tally.counts[meant[i]] < MOSTLY * (double)values)
            continue;
        for (int kind = SGM__CELL_NUMBER; kind < SGM__CELL_KINDS; kind++) {
            bool is_other = kind != (int)meant[i] && column->tally.counts[kind] > 0;
            if (is_other &&
                (summary->exception == NULL || column->tally.first_line[kind] < summary->exception_line)) {
                summary->exception = column->tally.first[kind];
                summary->exception_line = column->tally.first_line[kind];
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

void sgm__moments_histogram(const sgm__moments *moments, int64_t *counts, size_t count)
{
    double scale = (double)count / (moments->maximum - moments->minimum);
    memset(counts, 0, count * sizeof *counts);
    for (size_t i = 0; i < moments->samples.count; i++) {
        double place = (moments->samples.values[i] - moments->minimum) * scale;
        counts[place >= (double)count ? count - 1 : place > 0 ? (size_t)place : 0]++;
    }
}

void sgm__column_finish(sgm__column *column)
{
    sgm_table_column *summary = &column->summary;
    int64_t values = column->tally.counts[SGM__CELL_NUMBER] + column->tally.counts[SGM__CELL_DATE] +
                     column->tally.counts[SGM__CELL_TEXT];
    for (int kind = 0; kind < SGM__CELL_KINDS; kind++)
        add_block(&column->moments[kind]);
    if (column->tally.category_count > 0)
        qsort(column->tally.categories, column->tally.category_count, sizeof *column->tally.categories,
              by_frequency);
    sgm__text_index_free(&column->tally.index); /* it knows the places from before */
    *summary = (sgm_table_column){.name = column->name,
                                  .kind = kind_of(column, values),
                                  .missing = column->tally.counts[SGM__CELL_MISSING],
                                  .minimum = NAN,
                                  .maximum = NAN,
                                  .mean = NAN,
                                  .standard_deviation = NAN,
                                  .longest = column->tally.longest,
                                  .first_text = column->tally.first[SGM__CELL_TEXT],
                                  .categories = column->tally.categories,
                                  .category_count = column->tally.category_count};
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
    sgm__tally_free(&column->tally);
    for (int kind = 0; kind < SGM__CELL_KINDS; kind++)
        sgm__free(column->moments[kind].samples.values);
    sgm__free(column->name);
}
