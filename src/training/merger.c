/* Mergers: how states of several workers become one. */
#include "training/operator.h"

#include "base/tensor_internal.h"
#include "registry/pattern.h"
#include "training/trainer_copy.h"

#include <math.h>

typedef enum merger_kind { AVERAGE, MAXIMUM, WEIGHTED } merger_kind;

typedef struct merger_rule {
    char *pattern;
    sgm_merger *merger;
} merger_rule;

struct sgm_merger {
    merger_kind kind;
    double weights[SGM__MOST_WORKERS]; /* of sum 1 */
    size_t weight_count;               /* weighted only */
    merger_rule *rules;
    size_t rule_count, rule_capacity;
};

/* --- making --- */

static sgm_merger *create(merger_kind kind)
{
    sgm_merger *merger = sgm__calloc(1, sizeof(sgm_merger));
    if (merger != NULL)
        merger->kind = kind;
    return merger;
}

sgm_merger *sgm_average_merger(void)
{
    return create(AVERAGE);
}

sgm_merger *sgm_maximum_merger(void)
{
    return create(MAXIMUM);
}

static sgm_status check_weights(const double *weights, size_t count, double *sum)
{
    if (weights == NULL || count < 1 || count > SGM__MOST_WORKERS)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a weighted merger wants 1 to %d weights, one for each worker",
                        SGM__MOST_WORKERS);
    *sum = 0;
    for (size_t i = 0; i < count; i++) {
        if (!(weights[i] >= 0) || isinf(weights[i]))
            return sgm_fail(SGM_ERROR_ARGUMENT,
                            "weighted merger: weight %zu is %g, expected a finite number from 0", i,
                            weights[i]);
        *sum += weights[i];
    }
    return *sum > 0 && isfinite(*sum)
               ? SGM_OK
               : sgm_fail(SGM_ERROR_ARGUMENT, "weighted merger: the sum of the weights is %g", *sum);
}

sgm_merger *sgm_weighted_merger(const double *weights, size_t count)
{
    double sum;
    sgm_merger *merger = check_weights(weights, count, &sum) == SGM_OK ? create(WEIGHTED) : NULL;
    if (merger == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++)
        merger->weights[i] = weights[i] / sum;
    merger->weight_count = count;
    return merger;
}

/* "3, 8)" */
static sgm_merger *parse_weights(const char *text)
{
    double weights[SGM__MOST_WORKERS];
    size_t count = 0;
    char number[64];
    for (const char *at = text; count < SGM__MOST_WORKERS; at++) {
        size_t length = strcspn(at, ",)");
        if (at[length] == '\0' || length >= sizeof number)
            break;
        memcpy(number, at, length);
        number[length] = '\0';
        if (!sgm__parse_double(number, &weights[count]))
            break;
        count++;
        at += length;
        if (*at == ')' && at[1] == '\0')
            return sgm_weighted_merger(weights, count);
        if (*at == ')')
            break;
    }
    sgm_fail(SGM_ERROR_FORMAT,
             "merger 'weighted': expected at most %d numbers, as in weighted(3, 8), got '(%s'",
             SGM__MOST_WORKERS, text);
    return NULL;
}

sgm_merger *sgm_merger_parse(const char *text)
{
    static const char *const names[] = {"average", "maximum", "weighted"};
    static const char weighted[] = "weighted(";
    if (text == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT, "a merger expects a text, such as \"average\"; got NULL");
        return NULL;
    }
    if (strcmp(text, names[AVERAGE]) == 0)
        return sgm_average_merger();
    if (strcmp(text, names[MAXIMUM]) == 0)
        return sgm_maximum_merger();
    if (strncmp(text, weighted, strlen(weighted)) == 0)
        return parse_weights(text + strlen(weighted));
    const char *near = sgm__nearest(text, names, 3);
    sgm_fail(SGM_ERROR_NOT_FOUND,
             "unknown merger '%.60s'%s%s%s; there are average, maximum and weighted(3, 8)", text,
             near != NULL ? " (did you mean '" : "", near != NULL ? near : "", near != NULL ? "'?)" : "");
    return NULL;
}

static sgm_status add_rule(sgm_merger *merger, const char *pattern, sgm_merger *other)
{
    SGM_TRY(sgm__pattern_check(pattern));
    if (other->rule_count > 0)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "the merger for '%s' has patterns of its own: add them to the first", pattern);
    for (size_t i = 0; i < merger->rule_count; i++)
        if (strcmp(merger->rules[i].pattern, pattern) == 0)
            return sgm_fail(SGM_ERROR_ARGUMENT, "there is a merger for '%s' already", pattern);
    SGM_TRY(
        sgm__reserve(&merger->rules, &merger->rule_capacity, merger->rule_count + 1, sizeof(merger_rule)));
    char *copy = sgm__strdup(pattern);
    if (copy == NULL)
        return SGM_ERROR_MEMORY;
    merger->rules[merger->rule_count++] = (merger_rule){copy, other};
    return SGM_OK;
}

sgm_status sgm_merger_add(sgm_merger *merger, const char *pattern, sgm_merger *other)
{
    sgm_status status =
        merger == NULL || other == NULL || merger == other
            ? sgm_fail(SGM_ERROR_ARGUMENT, "adding a merger wants two of them; see why one is NULL")
            : add_rule(merger, pattern, other);
    if (status != SGM_OK && other != merger)
        sgm_merger_free(other);
    return status;
}

void sgm_merger_free(sgm_merger *merger)
{
    if (merger == NULL)
        return;
    for (size_t i = 0; i < merger->rule_count; i++) {
        sgm__free(merger->rules[i].pattern);
        sgm_merger_free(merger->rules[i].merger);
    }
    sgm__free(merger->rules);
    sgm__free(merger);
}

sgm_merger *sgm__merger_copy(const sgm_merger *merger)
{
    sgm_merger *copy = create(merger->kind);
    if (copy == NULL)
        return NULL;
    memcpy(copy->weights, merger->weights, sizeof copy->weights);
    copy->weight_count = merger->weight_count;
    copy->rules = sgm__calloc(merger->rule_count + 1, sizeof(merger_rule));
    if (copy->rules == NULL) {
        sgm__free(copy);
        return NULL;
    }
    copy->rule_capacity = merger->rule_count;
    for (; copy->rule_count < merger->rule_count; copy->rule_count++) {
        merger_rule *rule = &copy->rules[copy->rule_count];
        rule->pattern = sgm__strdup(merger->rules[copy->rule_count].pattern);
        rule->merger = sgm__merger_copy(merger->rules[copy->rule_count].merger);
        if (rule->pattern != NULL && rule->merger != NULL)
            continue;
        copy->rule_count++; /* what there is of it is freed, too */
        sgm_merger_free(copy);
        return NULL;
    }
    return copy;
}

const char *sgm__merger_pattern(const sgm_merger *merger, size_t index)
{
    return index < merger->rule_count ? merger->rules[index].pattern : NULL;
}

sgm_status sgm__merger_check(const sgm_merger *merger, size_t workers)
{
    if (merger->kind == WEIGHTED && merger->weight_count != workers)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a weighted merger has %zu weights for %zu workers",
                        merger->weight_count, workers);
    for (size_t i = 0; i < merger->rule_count; i++)
        SGM_TRY(sgm__merger_check(merger->rules[i].merger, workers));
    return SGM_OK;
}

/* --- merging --- */

static const sgm_merger *merger_for(const sgm_merger *merger, const char *state)
{
    const merger_rule *best = NULL;
    for (size_t i = 0; i < merger->rule_count; i++)
        if (sgm__pattern_matches(merger->rules[i].pattern, state) &&
            (best == NULL || sgm__pattern_compare(merger->rules[i].pattern, best->pattern) > 0))
            best = &merger->rules[i];
    return best != NULL ? best->merger : merger;
}

static void sum_float(float *result, const void *const *values, const double *weights, size_t count,
                      int64_t elements)
{
    for (int64_t i = 0; i < elements; i++) {
        double sum = 0;
        for (size_t k = 0; k < count; k++)
            sum += weights[k] * (double)((const float *)values[k])[i];
        result[i] = (float)sum;
    }
}

static void sum_double(double *result, const void *const *values, const double *weights, size_t count,
                       int64_t elements)
{
    for (int64_t i = 0; i < elements; i++) {
        double sum = 0;
        for (size_t k = 0; k < count; k++)
            sum += weights[k] * ((const double *)values[k])[i];
        result[i] = sum;
    }
}

/* Any type, element by element; sums of integers are rounded to nearest. `weights` NULL: the largest. */
static void merge_elements(const double *weights, sgm_dtype dtype, void *result, const void *const *values,
                           size_t count, int64_t elements)
{
    bool rounds = dtype != SGM_FLOAT32 && dtype != SGM_FLOAT64 && dtype != SGM_BFLOAT16;
    size_t size = sgm_dtype_size(dtype);
    for (int64_t i = 0; i < elements; i++) {
        double merged = 0;
        for (size_t k = 0; k < count; k++) {
            double value = sgm__element_load(dtype, (const unsigned char *)values[k] + (size_t)i * size);
            if (weights != NULL)
                merged += weights[k] * value;
            else if (k == 0 || value > merged || isnan(value))
                merged = value;
        }
        sgm__element_store(dtype, (unsigned char *)result + (size_t)i * size, rounds ? rint(merged) : merged);
    }
}

void sgm__merge_weighted(const double *weights, const sgm_type *type, void *result, const void *const *values,
                         size_t count)
{
    int64_t elements = sgm_shape_elements(&type->shape);
    if (type->dtype == SGM_FLOAT32)
        sum_float(result, values, weights, count, elements);
    else if (type->dtype == SGM_FLOAT64)
        sum_double(result, values, weights, count, elements);
    else
        merge_elements(weights, type->dtype, result, values, count, elements);
}

void sgm__merger_merge(const sgm_merger *merger, const char *state, const sgm_type *type, void *result,
                       const void *const *values, size_t count)
{
    double equal[SGM__MOST_WORKERS];
    const sgm_merger *own = merger_for(merger, state);
    for (size_t i = 0; i < count; i++)
        equal[i] = 1.0 / (double)count;
    if (own->kind == MAXIMUM)
        merge_elements(NULL, type->dtype, result, values, count, sgm_shape_elements(&type->shape));
    else
        sgm__merge_weighted(own->kind == WEIGHTED ? own->weights : equal, type, result, values, count);
}

static sgm_status check_values(const sgm_tensor *const *values, size_t count, const sgm_tensor *result)
{
    if (values == NULL || result == NULL || count < 1 || count > SGM__MOST_WORKERS)
        return sgm_fail(SGM_ERROR_ARGUMENT, "merging wants 1 to %d tensors, and one for the result",
                        SGM__MOST_WORKERS);
    for (size_t i = 0; i <= count; i++) {
        const sgm_tensor *value = i < count ? values[i] : result;
        if (value == NULL || sgm_tensor_dtype(value) != sgm_tensor_dtype(values[0]) ||
            !sgm_shape_equal(sgm_tensor_shape(value), sgm_tensor_shape(values[0])) ||
            !sgm_tensor_is_contiguous(value))
            return sgm_fail(SGM_ERROR_SHAPE,
                            "merging wants contiguous tensors of one shape and type; %s is different",
                            i < count ? "one" : "the result");
    }
    return SGM_OK;
}

sgm_status sgm_merger_apply(const sgm_merger *merger, const char *state, const sgm_tensor *const *values,
                            size_t count, sgm_tensor *result)
{
    if (merger == NULL || state == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "merging wants a merger, and the name of a state");
    SGM_TRY(check_values(values, count, result));
    SGM_TRY(sgm__merger_check(merger, count));
    const void *memory[SGM__MOST_WORKERS];
    for (size_t i = 0; i < count; i++)
        memory[i] = sgm_tensor_const_data(values[i]);
    const sgm_type type = {sgm_tensor_dtype(result), *sgm_tensor_shape(result)};
    sgm__merger_merge(merger, state, &type, sgm_tensor_data(result), memory, count);
    return SGM_OK;
}
