/* Fits a pipeline to a table: which column becomes which numbers. See pipeline.h.
 *
 * The roles of columns come from the options, all else from the summaries that the table has made of its
 * columns. */
#include "data/table/pipeline.h"
#include "base/characters.h"

#include <math.h>
#include <stdlib.h>

/* --- pipelines --- */

sgm_pipeline *sgm__pipeline_create(size_t parts)
{
    sgm_pipeline *pipeline = sgm__calloc(1, sizeof *pipeline);
    if (pipeline == NULL)
        return NULL;
    atomic_init(&pipeline->references, 1);
    pipeline->parts = sgm__calloc(parts, sizeof *pipeline->parts);
    if (pipeline->parts != NULL)
        return pipeline;
    sgm__free(pipeline);
    return NULL;
}

sgm_pipeline *sgm_pipeline_retain(sgm_pipeline *pipeline)
{
    atomic_fetch_add(&pipeline->references, 1);
    return pipeline;
}

static void free_categories(char **categories, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sgm__free(categories[i]);
    sgm__free(categories);
}

void sgm_pipeline_free(sgm_pipeline *pipeline)
{
    if (pipeline == NULL || atomic_fetch_sub(&pipeline->references, 1) > 1)
        return;
    for (size_t i = 0; i < pipeline->part_count; i++) {
        sgm__pipeline_part *part = &pipeline->parts[i];
        free_categories(part->categories, part->category_count);
        sgm__name_index_free(&part->index);
        sgm__free(part->name);
    }
    if (pipeline->form != NULL && pipeline->kind->release != NULL)
        pipeline->kind->release(pipeline->form);
    sgm__free(pipeline->form);
    sgm__free(pipeline->parts);
    sgm__free(pipeline->format.missing);
    sgm__free(pipeline);
}

sgm_status sgm__pipeline_set_categories(sgm__pipeline_part *part, char **categories, size_t count)
{
    part->categories = categories;
    part->category_count = count;
    SGM_TRY(sgm__name_index_reserve(&part->index, count));
    for (size_t i = 0; i < count; i++) {
        uintptr_t other;
        if (sgm__name_index_find(&part->index, categories[i], &other))
            return sgm_fail(SGM_ERROR_FORMAT, "column '%s' has the category '%s' twice", part->name,
                            categories[i]);
        sgm__name_index_add(&part->index, categories[i], i);
    }
    return SGM_OK;
}

static sgm__pipeline_field *field_of(sgm_pipeline *pipeline, const char *name)
{
    for (int32_t i = 0; i < pipeline->field_count; i++)
        if (strcmp(pipeline->fields[i].name, name) == 0)
            return &pipeline->fields[i];
    return NULL;
}

sgm_status sgm__pipeline_place(sgm_pipeline *pipeline, sgm__pipeline_part *part, const char *field)
{
    sgm__pipeline_field *there = field_of(pipeline, field);
    if (there == NULL) {
        if (pipeline->field_count == SGM_MAX_FIELDS)
            return sgm_fail(SGM_ERROR_ARGUMENT, "there can be %d fields, inputs and targets among them",
                            SGM_MAX_FIELDS);
        there = &pipeline->fields[pipeline->field_count];
        SGM_TRY(sgm__field_name(there->name, field, "sgm_pipeline_fit"));
        pipeline->field_count++;
        there->is_target = part->is_target;
        there->is_index = !part->is_target && strcmp(field, "inputs") != 0;
    }
    bool is_one_hot = part->kind == SGM_COLUMN_CATEGORY && !there->is_index;
    part->field = (int32_t)(there - pipeline->fields);
    part->first = there->width;
    part->width = (is_one_hot ? (int32_t)part->category_count : 1) + part->has_flag;
    there->width += part->width;
    return SGM_OK;
}

/* --- roles --- */

static bool is_listed(const char *const *list, size_t room, const char *name)
{
    for (size_t i = 0; i < room && list[i] != NULL; i++)
        if (strcmp(list[i], name) == 0)
            return true;
    return false;
}

#define IS_LISTED(list, name) is_listed(list, sizeof(list) / sizeof *(list), name)

/* All names of a list must be columns. */
static sgm_status check_list(const sgm_table *table, const char *const *list, size_t room, const char *option)
{
    for (size_t i = 0; i < room && list[i] != NULL; i++)
        if (sgm_table_find_column(table, list[i]) < 0)
            return sgm__fail_within("%s", option);
    return SGM_OK;
}

#define CHECK_LIST(table, options, list)                                                                     \
    check_list(table, (options)->list, sizeof(options)->list / sizeof *(options)->list, #list)

static sgm_status check_options(const sgm_table *table, const sgm_pipeline_options *options)
{
    SGM_TRY(CHECK_LIST(table, options, targets));
    SGM_TRY(CHECK_LIST(table, options, drop));
    SGM_TRY(CHECK_LIST(table, options, categorical));
    SGM_TRY(CHECK_LIST(table, options, embedding));
    if (options->targets[0] == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: targets: which column is to be predicted?", table->path);
    for (size_t i = 0; i < SGM_MAX_TARGETS && options->targets[i] != NULL; i++)
        if (IS_LISTED(options->drop, options->targets[i]) ||
            IS_LISTED(options->embedding, options->targets[i]) ||
            is_listed(options->targets, i, options->targets[i]))
            return sgm_fail(SGM_ERROR_ARGUMENT, "%s: column '%s' is a target, and named once more",
                            table->path, options->targets[i]);
    if (IS_LISTED(options->embedding, "inputs") || IS_LISTED(options->embedding, "targets"))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: embedding: a field cannot be called 'inputs' or 'targets' as the others are; "
                        "rename the column",
                        table->path);
    if ((unsigned)options->scale > SGM_SCALE_NONE || (unsigned)options->impute > SGM_IMPUTE_REFUSE)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: a scale from 0 to %d and an impute from 0 to %d were expected, "
                        "%d and %d came",
                        table->path, SGM_SCALE_NONE, SGM_IMPUTE_REFUSE, (int)options->scale,
                        (int)options->impute);
    return SGM_OK;
}

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
    free_categories(texts, count);
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

typedef struct quartiles {
    double lower, median, upper;
} quartiles;

static sgm_status find_quartiles(const sgm__samples *samples, quartiles *found)
{
    double *sorted = sgm__alloc(samples->count * sizeof *sorted);
    if (sorted == NULL)
        return SGM_ERROR_MEMORY;
    memcpy(sorted, samples->values, samples->count * sizeof *sorted);
    qsort(sorted, samples->count, sizeof *sorted, by_value);
    *found = (quartiles){quantile(sorted, samples->count, 0.25), quantile(sorted, samples->count, 0.5),
                         quantile(sorted, samples->count, 0.75)};
    sgm__free(sorted);
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

/* A column in which all values are equal is only shifted: its factor stays 1. */
static sgm_status fit_number(sgm__pipeline_part *part, const sgm_table *table, const sgm__column *column,
                             const sgm_pipeline_options *options)
{
    const sgm_table_column *summary = &column->summary;
    quartiles found = {0};
    if (sgm__column_moments(column)->count == 0)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: column '%s' has no value in the rows that are trained on; drop it", table->path,
                        summary->name);
    part->factor = 1;
    part->fill = summary->mean;
    if (options->scale == SGM_SCALE_ROBUST || options->impute == SGM_IMPUTE_MEDIAN)
        SGM_TRY(find_quartiles(&sgm__column_moments(column)->samples, &found));
    if (options->impute == SGM_IMPUTE_MEDIAN)
        part->fill = found.median;
    if (options->impute == SGM_IMPUTE_MOST_FREQUENT && summary->missing > 0)
        SGM_TRY(find_most_frequent(table, summary, &part->fill));
    if (options->scale == SGM_SCALE_STANDARD) {
        part->offset = summary->mean;
        part->factor = summary->standard_deviation;
    } else if (options->scale == SGM_SCALE_MIN_MAX) {
        part->offset = summary->minimum;
        part->factor = summary->maximum - summary->minimum;
    } else if (options->scale == SGM_SCALE_ROBUST) {
        part->offset = found.median;
        part->factor = found.upper - found.lower;
    }
    part->factor = part->factor != 0 ? part->factor : 1; /* NaN stays, and is refused */
    if (isfinite(part->fill) && isfinite(part->offset) && isfinite(part->factor))
        return SGM_OK;
    return sgm_fail(SGM_ERROR_NUMERIC,
                    "%s: the numbers of column '%s' are too large for their mean or range; drop the column",
                    table->path, summary->name);
}

/* --- fitting --- */

/* Whether a column has values that can be learnt from; if it has none, a warning says that it is left out. */
static bool is_usable(const sgm_table *table, const sgm_table_column *column, bool is_category)
{
    if (column->kind != SGM_COLUMN_EMPTY && (column->kind != SGM_COLUMN_TEXT || is_category))
        return true;
    sgm__log(SGM_LOG_WARNING, "data", "%s: column '%s' is left out: %s", table->path, column->name,
             column->kind == SGM_COLUMN_EMPTY ? "no cell has a value"
                                              : "it holds texts that are no categories");
    return false;
}

static sgm_status check_target(const sgm_table *table, const sgm_table_column *column, bool is_category,
                               bool is_alone)
{
    if (column->kind == SGM_COLUMN_EMPTY)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: the target '%s' has no value in any row", table->path,
                        column->name);
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

/* Categories are texts that are taken for such, and what the options name. */
static bool is_category_of(const sgm_table_column *column, const sgm_pipeline_options *options)
{
    return column->kind == SGM_COLUMN_CATEGORY || IS_LISTED(options->embedding, column->name) ||
           IS_LISTED(options->categorical, column->name);
}

static sgm_status fit_part(sgm__pipeline_part *part, const sgm_table *table, const sgm__column *column,
                           const sgm_pipeline_options *options)
{
    if (part->kind != SGM_COLUMN_CATEGORY)
        return fit_number(part, table, column, options);
    SGM_TRY(fit_categories(part, table, &column->summary));
    uintptr_t most = 0;
    bool fills = options->impute == SGM_IMPUTE_MOST_FREQUENT &&
                 sgm__pipeline_find_category(&table->format, part, column->summary.categories[0].text, &most);
    part->fill = fills ? (double)most : -1;
    return SGM_OK;
}

/* Gives a part a field of its own, called as its column. Input layers are named after fields, and take ASCII
 * letters, digits, '_' and '-' only. */
static sgm_status place_alone(sgm_pipeline *pipeline, sgm__pipeline_part *part)
{
    char *name = sgm__strdup(part->name);
    if (name == NULL)
        return SGM_ERROR_MEMORY;
    for (char *c = name; *c != '\0'; c++)
        if (!sgm__is_alphanumeric(*c) && *c != '-')
            *c = '_';
    sgm_status status =
        field_of(pipeline, name) != NULL
            ? sgm_fail(SGM_ERROR_ARGUMENT,
                       "embedding: column '%s' and another one would both be the field '%s'; rename one",
                       part->name, name)
            : sgm__pipeline_place(pipeline, part, name);
    sgm__free(name);
    return status;
}

/* Adds what is done with one column. The part counts from the beginning, so that a failure frees it. */
static sgm_status add_part(sgm_pipeline *pipeline, const sgm_table *table, size_t index,
                           const sgm_pipeline_options *options, bool is_target)
{
    const sgm__column *column = &table->columns[index];
    const sgm_table_column *summary = &column->summary;
    bool is_category = is_category_of(summary, options),
         is_field = IS_LISTED(options->embedding, summary->name);
    if (is_target)
        SGM_TRY(check_target(table, summary, is_category, options->targets[1] == NULL));
    else if (!is_usable(table, summary, is_category))
        return SGM_OK;
    sgm__pipeline_part *part = &pipeline->parts[pipeline->part_count++];
    part->name = sgm__strdup(summary->name);
    if (part->name == NULL)
        return SGM_ERROR_MEMORY;
    part->is_target = is_target;
    part->kind = is_category ? SGM_COLUMN_CATEGORY : summary->kind;
    part->is_required = is_target || options->impute == SGM_IMPUTE_REFUSE;
    part->has_flag = !is_target && !is_field && options->impute == SGM_IMPUTE_FLAG && summary->missing > 0;
    SGM_TRY(fit_part(part, table, column, options));
    return is_field ? place_alone(pipeline, part)
                    : sgm__pipeline_place(pipeline, part, is_target ? "targets" : "inputs");
}

static sgm_status fit(sgm_pipeline *pipeline, const sgm_table *table, const sgm_pipeline_options *options)
{
    pipeline->has_header = table->has_header;
    pipeline->format = (sgm__cell_format){table->format.decimal, sgm__strdup(table->format.missing)};
    if (table->format.missing != NULL && pipeline->format.missing == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < table->column_count; i++) {
        const char *name = table->columns[i].name;
        if (!IS_LISTED(options->targets, name) && !IS_LISTED(options->drop, name))
            SGM_TRY(add_part(pipeline, table, i, options, false));
    }
    if (pipeline->part_count == 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: no column is left to predict the targets from", table->path);
    for (size_t i = 0; i < SGM_MAX_TARGETS && options->targets[i] != NULL; i++) {
        int64_t at = sgm_table_find_column(table, options->targets[i]);
        SGM_TRY(at >= 0 ? add_part(pipeline, table, (size_t)at, options, true) : sgm_last_status());
    }
    return SGM_OK;
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
    sgm_pipeline *pipeline =
        check_options(table, &options) == SGM_OK ? sgm__pipeline_create(table->column_count) : NULL;
    if (pipeline != NULL && fit(pipeline, table, &options) != SGM_OK) {
        sgm_pipeline_free(pipeline);
        return NULL;
    }
    return pipeline;
}

/* --- looking --- */

int64_t sgm_pipeline_width(const sgm_pipeline *pipeline, const char *field)
{
    for (int32_t i = 0; i < pipeline->field_count; i++)
        if (strcmp(pipeline->fields[i].name, field) == 0)
            return pipeline->fields[i].width;
    return 0;
}

const char *sgm_pipeline_column(const sgm_pipeline *pipeline, size_t index)
{
    return index < pipeline->part_count ? pipeline->parts[index].name : NULL;
}

/* The parts of targets are the last ones. */
const sgm__pipeline_part *sgm__pipeline_target(const sgm_pipeline *pipeline, size_t index)
{
    for (size_t i = 0; i < pipeline->part_count; i++)
        if (pipeline->parts[i].is_target && index-- == 0)
            return &pipeline->parts[i];
    return NULL;
}

const char *const *sgm_pipeline_classes(const sgm_pipeline *pipeline)
{
    return pipeline->labels == 0 ? (const char *const *)sgm__pipeline_target(pipeline, 0)->categories : NULL;
}

double sgm_pipeline_restore(const sgm_pipeline *pipeline, size_t index, double prediction)
{
    const sgm__pipeline_part *part = sgm__pipeline_target(pipeline, index);
    if (part == NULL || part->kind == SGM_COLUMN_CATEGORY)
        return prediction;
    return prediction * part->factor + part->offset;
}
