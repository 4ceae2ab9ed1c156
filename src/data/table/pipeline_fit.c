/* Fits a pipeline to a table: which column becomes which numbers. See pipeline.h.
 *
 * The roles of columns come from the options, all else from the summaries that the table has made of its
 * columns. */
#include "base/characters.h"
#include "data/table/pipeline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MAXIMUM_CLASS_NUMBERS 20 /* a target of the numbers 0 to 19 at most may be classes */

/* --- categories --- */

static int by_bytes(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

char *sgm__pipeline_number_category(double number, char *text, size_t size)
{
    return sgm__number_text(number + 0.0, text, size); /* -0 becomes 0 */
}

/* Texts of numbers in their order: 1 and 1.0 are one category. *count becomes the number of different ones.
 */
static sgm_status number_categories(const sgm__cell_format *format, const sgm_table_column *column,
                                    char **texts, size_t *count)
{
    double *numbers = sgm__calloc(column->category_count, sizeof *numbers);
    sgm_status status = numbers != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    char text[32];
    for (size_t i = 0; i < column->category_count && status == SGM_OK; i++)
        sgm__cell_read(format, column->categories[i].text, &numbers[i]);
    if (status == SGM_OK)
        qsort(numbers, column->category_count, sizeof *numbers, by_value);
    for (size_t i = 0; i < column->category_count && status == SGM_OK; i++) {
        if (i > 0 && numbers[i] == numbers[i - 1])
            continue;
        texts[*count] = sgm__strdup(sgm__pipeline_number_category(numbers[i], text, sizeof text));
        status = texts[*count] != NULL ? SGM_OK : SGM_ERROR_MEMORY;
        *count += status == SGM_OK;
    }
    sgm__free(numbers);
    return status;
}

static sgm_status text_categories(const sgm_table_column *column, char **texts, size_t *count)
{
    for (; *count < column->category_count; (*count)++) {
        texts[*count] = sgm__strdup(column->categories[*count].text);
        if (texts[*count] == NULL)
            return SGM_ERROR_MEMORY;
    }
    qsort(texts, *count, sizeof *texts, by_bytes);
    return SGM_OK;
}

static sgm_status fit_categories(sgm__pipeline_part *part, const sgm_table *table,
                                 const sgm_table_column *column)
{
    if (column->category_count == 0)
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "%s: column '%s' has more than %d different values, which are too many for categories; drop it",
            table->path, column->name, SGM_MAX_CATEGORIES);
    char **texts = sgm__calloc(column->category_count + 1, sizeof *texts);
    size_t count = 0;
    if (texts == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = column->kind == SGM_COLUMN_NUMBER
                            ? number_categories(&table->format, column, texts, &count)
                            : text_categories(column, texts, &count);
    if (status == SGM_OK)
        return sgm__pipeline_set_categories(part, texts, count);
    sgm__pipeline_free_categories(texts, count);
    return status;
}

/* --- numbers --- */

/* The value below which a share of the sorted ones lies, between two of them in proportion, as NumPy's
 * default. */
static double quantile(const double *sorted, size_t count, double share)
{
    double place = share * (double)(count - 1);
    size_t below = (size_t)place;
    double rest = place - (double)below;
    return rest > 0 ? sorted[below] + rest * (sorted[below + 1] - sorted[below]) : sorted[below];
}

/* What a scale may need to know of the values of a column. */
typedef struct spread {
    double minimum, maximum, mean, deviation;
    double lower, median, upper; /* quartiles */
} spread;

static void find_moments(const double *values, size_t count, spread *found)
{
    for (size_t i = 0; i < count; i++)
        found->mean += values[i] / (double)count;
    for (size_t i = 0; i < count; i++)
        found->deviation += (values[i] - found->mean) * (values[i] - found->mean) / (double)count;
    found->deviation = sqrt(found->deviation);
}

/* Of the samples that the table keeps, as the numbers that `part` makes of them; with `is_of_part` the
 * moments, too. */
static sgm_status find_quartiles(const sgm__pipeline_part *part, const sgm__samples *samples, bool is_of_part,
                                 spread *found)
{
    double *sorted = sgm__alloc(samples->count * sizeof *sorted);
    if (sorted == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < samples->count; i++)
        sorted[i] = is_of_part ? sgm__pipeline_number(part, samples->values[i]) : samples->values[i];
    qsort(sorted, samples->count, sizeof *sorted, by_value);
    found->lower = quantile(sorted, samples->count, 0.25);
    found->median = quantile(sorted, samples->count, 0.5);
    found->upper = quantile(sorted, samples->count, 0.75);
    if (is_of_part)
        find_moments(sorted, samples->count, found);
    sgm__free(sorted);
    return SGM_OK;
}

/* Of the numbers that the part makes of the cells. An age is a number with its sign turned, and shifted;
 * years are counted anew. */
static sgm_status find_spread(const sgm__pipeline_part *part, const sgm__column *column, bool has_quartiles,
                              spread *found)
{
    const sgm_table_column *summary = &column->summary;
    bool is_age = part->form == SGM_DATE_AGE, is_year = part->form == SGM_DATE_PARTS;
    double first = sgm__pipeline_number(part, summary->minimum),
           last = sgm__pipeline_number(part, summary->maximum);
    *found = (spread){.minimum = is_age ? last : first, .maximum = is_age ? first : last};
    if (has_quartiles || is_year)
        SGM_TRY(find_quartiles(part, &sgm__column_moments(column)->samples, is_age || is_year, found));
    if (!is_year) {
        found->mean = sgm__pipeline_number(part, summary->mean);
        found->deviation = summary->standard_deviation;
    }
    return SGM_OK;
}

static sgm_status find_most_frequent(const sgm_table *table, const sgm_table_column *column, double *value)
{
    if (column->category_count == 0)
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "%s: column '%s' has more than %d different values, of which none is the most frequent; impute "
            "the mean or the median",
            table->path, column->name, SGM_MAX_CATEGORIES);
    sgm__cell_read(&table->format, column->categories[0].text, value);
    return SGM_OK;
}

/* What a missing value becomes, as a cell would have it. */
static sgm_status fit_fill(sgm__pipeline_part *part, const sgm_table *table, const sgm__column *column,
                           sgm_impute impute)
{
    spread found;
    part->fill = column->summary.mean;
    if (impute == SGM_IMPUTE_MEDIAN) {
        SGM_TRY(find_quartiles(part, &sgm__column_moments(column)->samples, false, &found));
        part->fill = found.median;
    }
    return impute == SGM_IMPUTE_MOST_FREQUENT && column->summary.missing > 0
               ? find_most_frequent(table, &column->summary, &part->fill)
               : SGM_OK;
}

/* A column in which all values are equal is only shifted: its factor stays 1. */
static sgm_status fit_scale(sgm__pipeline_part *part, const sgm__column *column, sgm_scale scale)
{
    spread found;
    SGM_TRY(find_spread(part, column, scale == SGM_SCALE_ROBUST, &found));
    part->offset = scale == SGM_SCALE_STANDARD  ? found.mean
                   : scale == SGM_SCALE_MIN_MAX ? found.minimum
                   : scale == SGM_SCALE_ROBUST  ? found.median
                                                : 0;
    part->factor = scale == SGM_SCALE_STANDARD  ? found.deviation
                   : scale == SGM_SCALE_MIN_MAX ? found.maximum - found.minimum
                   : scale == SGM_SCALE_ROBUST  ? found.upper - found.lower
                                                : 1;
    part->factor = part->factor != 0 ? part->factor : 1; /* NaN stays, and is refused */
    return SGM_OK;
}

/* --- choices --- */

/* What the options say of one column, or of all. */
typedef struct choice {
    sgm_scale scale;
    sgm_impute impute;
    const sgm_column_dates *dates;         /* NULL: days */
    const sgm_column_embedding *embedding; /* NULL: none */
    bool is_category;
} choice;

/* Categories are texts that are taken for such, and what the options name. */
static choice choose(const sgm_pipeline_options *options, const sgm_table_column *column)
{
    const sgm_column_scale *scale = SGM__LISTED(options->scales, column->name);
    const sgm_column_impute *impute = SGM__LISTED(options->imputes, column->name);
    choice made = {.scale = scale != NULL ? scale->scale : options->scale,
                   .impute = impute != NULL ? impute->impute : options->impute,
                   .dates = SGM__LISTED(options->dates, column->name),
                   .embedding = SGM__LISTED(options->embedding, column->name)};
    made.is_category = column->kind == SGM_COLUMN_CATEGORY || made.embedding != NULL ||
                       SGM__LISTED(options->categorical, column->name) != NULL;
    return made;
}

/* The reference of an age is the newest date of the rows that are measured, unless one is given. */
static sgm_status fit_dates(sgm__pipeline_part *part, const sgm_table *table, const sgm__column *column,
                            const sgm_column_dates *dates)
{
    if (dates == NULL)
        return SGM_OK;
    part->form = dates->form;
    part->has_time = part->form == SGM_DATE_PARTS && column->tally.has_times;
    part->reference = part->form == SGM_DATE_AGE ? column->summary.maximum : 0;
    if (dates->until != NULL &&
        sgm__cell_read(&table->format, dates->until, &part->reference) != SGM__CELL_DATE)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: dates: column '%s': \"%.60s\" is no date, such as 2026-11-23", table->path,
                        part->name, dates->until);
    return SGM_OK;
}

static sgm_status fit_number(sgm__pipeline_part *part, const sgm_table *table, const sgm__column *column,
                             const choice *chosen)
{
    if (sgm__column_moments(column)->count == 0)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: column '%s' has no value in the rows that are trained on; drop it", table->path,
                        part->name);
    SGM_TRY(fit_dates(part, table, column, chosen->dates));
    SGM_TRY(fit_fill(part, table, column, chosen->impute));
    SGM_TRY(fit_scale(part, column, chosen->scale));
    if (isfinite(part->fill) && isfinite(part->offset) && isfinite(part->factor))
        return SGM_OK;
    return sgm_fail(SGM_ERROR_NUMERIC,
                    "%s: the numbers of column '%s' are too large for their mean or range; drop the column",
                    table->path, part->name);
}

/* --- weights --- */

/* With a mean of 1 in training the learning rate means the same as without weights. */
static sgm_status add_weights(sgm_pipeline *pipeline, const sgm_table *table, const char *name)
{
    int64_t at = sgm_table_find_column(table, name);
    if (at < 0)
        return sgm__last_failure();
    const sgm_table_column *column = sgm_table_column_at(table, (size_t)at);
    if (column->kind != SGM_COLUMN_NUMBER || !(column->mean > 0))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: weights: column '%s' should hold numbers from 0 on, of which some are above 0",
                        table->path, name);
    sgm__pipeline_part *part = &pipeline->parts[pipeline->part_count++];
    *part = (sgm__pipeline_part){.name = sgm__strdup(name),
                                 .is_weight = true,
                                 .kind = SGM_COLUMN_NUMBER,
                                 .is_required = true,
                                 .factor = column->mean};
    return part->name != NULL ? sgm__pipeline_place(pipeline, part, "weights") : SGM_ERROR_MEMORY;
}

/* --- fitting --- */

/* Whether the texts of a column are numbers that are written with another decimal sign than the table's. */
static bool is_other_decimal(const sgm_table *table, const sgm_table_column *column)
{
    return column->kind != SGM_COLUMN_NUMBER && table->format.decimal != ',' &&
           sgm__has_decimal_comma(column->first_text);
}

/* Whether a column has values that can be learnt from; if it has none, a warning says that it is left out. */
static bool is_usable(const sgm_table *table, const sgm_table_column *column, bool is_category)
{
    if (is_other_decimal(table, column))
        sgm__log(SGM_LOG_WARNING, "data",
                 "%s: column '%s': '%s' looks like a number with a decimal comma: decimal: \",\" reads it",
                 table->path, column->name, column->first_text);
    if (column->kind != SGM_COLUMN_EMPTY && (column->kind != SGM_COLUMN_TEXT || is_category))
        return true;
    sgm__log(SGM_LOG_WARNING, "data", "%s: column '%s' is left out: %s", table->path, column->name,
             column->kind == SGM_COLUMN_EMPTY
                 ? "no cell has a value"
                 : "it holds texts that are no categories; 'text_columns' has it read");
    return false;
}

/* A cell that is no number in a column of numbers would make it a column of texts: what was meant is asked
 * for, instead of learning without the column, or with a category for each number. */
static sgm_status check_exception(const sgm_table *table, const sgm_table_column *column)
{
    if (column->exception == NULL)
        return SGM_OK;
    return sgm_fail(
        SGM_ERROR_FORMAT,
        "%s: column '%s': line %lld has '%.60s' where the others are numbers or dates: correct it, "
        "leave it empty, say 'missing: %.60s', or name the column in 'drop' or 'categorical'",
        table->path, column->name, (long long)column->exception_line, column->exception, column->exception);
}

/* Whether a column has the numbers 0, 1, ... of classes. Those of a part of the rows may be fewer. */
static bool looks_like_classes(const sgm_table_column *column)
{
    return column->kind == SGM_COLUMN_NUMBER && column->category_count >= 2 &&
           column->category_count <= MAXIMUM_CLASS_NUMBERS && column->minimum == 0 &&
           column->maximum == (double)(column->category_count - 1);
}

static sgm_status check_target(const sgm_table *table, const sgm_table_column *column, bool is_category,
                               bool is_alone)
{
    if (column->kind == SGM_COLUMN_EMPTY)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: the target '%s' has no value in any row", table->path,
                        column->name);
    if (!is_category && is_alone && looks_like_classes(column))
        sgm__log(
            SGM_LOG_WARNING, "data",
            "%s: the target '%s' holds the numbers 0 to %zu, which are learnt as sizes: if they are classes, "
            "name it in 'categorical'",
            table->path, column->name, column->category_count - 1);
    if (is_other_decimal(table, column) && !is_category)
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "%s: the target '%s' has '%s', which looks like a number with a decimal comma: decimal: "
            "\",\" reads it",
            table->path, column->name, column->first_text);
    if (column->kind == SGM_COLUMN_TEXT && !is_category)
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "%s: the target '%s' has too many different texts to be classes; if they are classes, name it "
            "in 'categorical'",
            table->path, column->name);
    if (is_category && column->category_count == 1)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: the target '%s' has one class in all rows, so there is nothing to tell apart",
                        table->path, column->name);
    if (is_category && !is_alone)
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "%s: the target '%s' holds categories, and there are other targets; several targets have to be "
            "numbers",
            table->path, column->name);
    return SGM_OK;
}

/* What was said of one column must be possible for what it holds. */
static sgm_status check_choice(const sgm_table *table, const sgm_table_column *column, const choice *chosen,
                               const sgm_pipeline_options *options)
{
    const char *kind = chosen->is_category ? "categories" : "numbers";
    if (chosen->dates != NULL && (chosen->is_category || column->kind != SGM_COLUMN_DATE))
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: dates: column '%s' holds %s and no dates", table->path,
                        column->name, kind);
    if (chosen->is_category && SGM__LISTED(options->scales, column->name) != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: scale: column '%s' holds categories, which have no scale",
                        table->path, column->name);
    return SGM_OK;
}

static sgm_status fit_part(sgm__pipeline_part *part, const sgm_table *table, const sgm__column *column,
                           const choice *chosen)
{
    if (part->kind == SGM_COLUMN_TEXT)
        return SGM_OK;
    if (part->kind != SGM_COLUMN_CATEGORY)
        return fit_number(part, table, column, chosen);
    SGM_TRY(fit_categories(part, table, &column->summary));
    const char *frequent = column->summary.categories[0].text;
    size_t most = 0;
    bool fills = chosen->impute == SGM_IMPUTE_MOST_FREQUENT &&
                 sgm__pipeline_find_category(&table->format, part, frequent, strlen(frequent), &most);
    part->fill = fills ? (double)most : -1;
    return SGM_OK;
}

/* Gives a part a field of its own, called as its column, as far as its name fits; to a text two of them, so
 * that the name of its length has to fit. Input layers are named after fields, and take ASCII letters,
 * digits, '_' and '-' only. */
static sgm_status place_alone(sgm_pipeline *pipeline, sgm__pipeline_part *part, int64_t window)
{
    char name[SGM__FIELD_NAME];
    bool is_text = part->kind == SGM_COLUMN_TEXT;
    snprintf(name, is_text ? sizeof name - strlen(SGM__LENGTH_OF) : sizeof name, "%s", part->name);
    for (char *c = name; *c != '\0'; c++)
        if (!sgm__is_alphanumeric(*c) && *c != '-')
            *c = '_';
    if (sgm__pipeline_find_field(pipeline, name) != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: column '%s' and another one would both be the field '%s'; rename one",
                        is_text ? "text_columns" : "embedding", part->name, name);
    return is_text ? sgm__pipeline_place_text(pipeline, part, name, window)
                   : sgm__pipeline_place(pipeline, part, name);
}

/* Whether the table has left out the rows without a value in this column. */
static bool skips_missing(const sgm_table *table, size_t index)
{
    for (size_t i = 0; i < table->needed.count; i++)
        if ((size_t)table->needed.columns[i] == index)
            return true;
    return false;
}

/* Adds what is done with one column. The part counts from the beginning, so that a failure frees it. */
static sgm_status add_part(sgm_pipeline *pipeline, const sgm_table *table, size_t index,
                           const sgm_pipeline_options *options, bool is_target)
{
    const sgm__column *column = &table->columns[index];
    const sgm_table_column *summary = &column->summary;
    choice chosen = choose(options, summary);
    bool is_text = SGM__LISTED(options->text_columns, summary->name) != NULL,
         is_field = is_text || chosen.embedding != NULL;
    bool is_told =
        is_text || chosen.embedding != NULL || SGM__LISTED(options->categorical, summary->name) != NULL;
    chosen.is_category = chosen.is_category && !is_text;
    if (!is_told)
        SGM_TRY(check_exception(table, summary));
    if (is_target)
        SGM_TRY(check_target(table, summary, chosen.is_category, options->targets[1] == NULL));
    else if (!is_usable(table, summary, chosen.is_category || is_text))
        return SGM_OK;
    SGM_TRY(check_choice(table, summary, &chosen, options));
    sgm__pipeline_part *part = &pipeline->parts[pipeline->part_count++];
    part->name = sgm__strdup(summary->name);
    if (part->name == NULL)
        return SGM_ERROR_MEMORY;
    part->is_target = is_target;
    part->kind = is_text ? SGM_COLUMN_TEXT : chosen.is_category ? SGM_COLUMN_CATEGORY : summary->kind;
    part->skips_missing = is_target && skips_missing(table, index);
    part->is_required = is_target || chosen.impute == SGM_IMPUTE_REFUSE;
    part->has_flag = !is_target && !is_field && chosen.impute == SGM_IMPUTE_FLAG && summary->missing > 0;
    part->embedding_size = chosen.embedding != NULL ? chosen.embedding->size : 0;
    SGM_TRY(fit_part(part, table, column, &chosen));
    return is_field ? place_alone(pipeline, part, sgm__pipeline_window_of(summary, options))
                    : sgm__pipeline_place(pipeline, part, is_target ? "targets" : "inputs");
}

static sgm_status fit(sgm_pipeline *pipeline, const sgm_table *table, const sgm_pipeline_options *options)
{
    pipeline->has_header = table->has_header;
    pipeline->format = (sgm__cell_format){table->format.decimal, sgm__strdup(table->format.missing)};
    if (table->format.missing != NULL && pipeline->format.missing == NULL)
        return SGM_ERROR_MEMORY;
    if (table->skipped > 0)
        sgm__log(SGM_LOG_WARNING, "data", "%s: %lld row%s without a target %s left out", table->path,
                 (long long)table->skipped, table->skipped == 1 ? "" : "s",
                 table->skipped == 1 ? "is" : "are");
    SGM_TRY(sgm__pipeline_keep_tokenizer(pipeline, options));
    for (size_t i = 0; i < table->column_count; i++) {
        const char *name = table->columns[i].name;
        bool is_weight = options->weights != NULL && strcmp(options->weights, name) == 0;
        if (!is_weight && SGM__LISTED(options->targets, name) == NULL &&
            SGM__LISTED(options->drop, name) == NULL)
            SGM_TRY(add_part(pipeline, table, i, options, false));
    }
    if (pipeline->part_count == 0)
        return sgm__pipeline_fail_without_inputs(table, options);
    for (size_t i = 0; i < SGM_MAX_TARGETS && options->targets[i] != NULL; i++) {
        int64_t at = sgm_table_find_column(table, options->targets[i]);
        SGM_TRY(at >= 0 ? add_part(pipeline, table, (size_t)at, options, true) : sgm_last_status());
    }
    return options->weights != NULL ? add_weights(pipeline, table, options->weights) : SGM_OK;
}

sgm_pipeline *sgm_pipeline_fit_with(const sgm_table *table, const sgm_pipeline_options *given)
{
    sgm_pipeline_options options;
    if (sgm__options_read(&options, sizeof options, given, "sgm_pipeline_fit") != SGM_OK)
        return NULL;
    if (table == NULL) {
        sgm__missing_part("sgm_pipeline_fit: a table");
        return NULL;
    }
    sgm_pipeline *pipeline = sgm__pipeline_check_options(table, &options) == SGM_OK
                                 ? sgm__pipeline_create(table->column_count)
                                 : NULL;
    if (pipeline != NULL && fit(pipeline, table, &options) != SGM_OK) {
        sgm_pipeline_free(pipeline);
        return NULL;
    }
    return pipeline;
}
