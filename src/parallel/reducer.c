/* Reducers: how the values that several workers have of one state become one value.
 *
 * A reducer has a kind and rules for some states: the rule with the most specific matching pattern decides,
 * whatever the order in which rules were added; without a match the reducer itself decides. Rules do not
 * nest.
 *
 * operator_state.c calls sgm__reducer_reduce for parameters, and sgm__merge_weighted for states that are
 * always averaged (running statistics, optimiser states). Sums of gradients use neither: they are recorded
 * (operator_record.c) or made by the ranks (collective/ranks_merge.c).
 *
 * All functions that merge read contiguous arrays in the host's memory, and add in double in the order of the
 * workers, so that each run gives the same bits. */
#include "parallel/operator.h"

#include "registry/pattern.h"
#include "tensor/tensor_internal.h"
#include "text/call_text.h"
#include "trainer/strategy.h"

#include <math.h>

/* The mean; the largest value of each element; a weighted sum. */
typedef enum reducer_kind { AVERAGE, MAXIMUM, WEIGHTED } reducer_kind;

/* Which reducer is used for states that match the pattern. A rule owns both. */
typedef struct reducer_rule {
    char *pattern;
    sgm_reducer *reducer;
} reducer_rule;

struct sgm_reducer {
    reducer_kind kind;
    double weights[SGM__MAXIMUM_WORKERS]; /* one for each worker; divided by their sum, so that they add up to
                                             1 */
    size_t weight_count;                  /* 0 unless the kind is WEIGHTED */
    reducer_rule *rules;
    size_t rule_count, rule_capacity;
};

/* --- making --- */

static sgm_reducer *create(reducer_kind kind)
{
    sgm_reducer *reducer = sgm__calloc(1, sizeof(sgm_reducer));
    if (reducer != NULL)
        reducer->kind = kind;
    return reducer;
}

sgm_reducer *sgm_average_reducer(void)
{
    return create(AVERAGE);
}

sgm_reducer *sgm_maximum_reducer(void)
{
    return create(MAXIMUM);
}

/* *sum: the sum of the weights. `!(weight >= 0)` also finds NaN. */
static sgm_status check_weights(const double *weights, size_t count, double *sum)
{
    if (weights == NULL || count < 1 || count > SGM__MAXIMUM_WORKERS)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a weighted reducer wants 1 to %d weights, one for each worker",
                        SGM__MAXIMUM_WORKERS);
    *sum = 0;
    for (size_t i = 0; i < count; i++) {
        if (!(weights[i] >= 0) || isinf(weights[i]))
            return sgm_fail(SGM_ERROR_ARGUMENT,
                            "weighted reducer: weight %zu is %g, expected a finite number from 0", i,
                            weights[i]);
        *sum += weights[i];
    }
    return *sum > 0 && isfinite(*sum)
               ? SGM_OK
               : sgm_fail(SGM_ERROR_ARGUMENT, "weighted reducer: the sum of the weights is %g", *sum);
}

sgm_reducer *sgm_weighted_reducer(const double *weights, size_t count)
{
    double sum;
    sgm_reducer *reducer = check_weights(weights, count, &sum) == SGM_OK ? create(WEIGHTED) : NULL;
    if (reducer == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++)
        reducer->weights[i] = weights[i] / sum;
    reducer->weight_count = count;
    return reducer;
}

/* Reads the numbers of "weighted(3, 8)", from behind the word "weighted". */
static sgm_reducer *read_weights(sgm__phrase *phrase)
{
    static const sgm_option rows[] = {{"weights", SGM_KIND_NUMBER, .required = true, .list = true,
                                       .doc = "one for each worker, as in 3, 8"}};
    sgm__call call = {.name = "weighted", .rows = rows, .row_count = 1};
    sgm_reducer *reducer = NULL;
    if (sgm__call_finish(phrase, &call) == SGM_OK)
        reducer = sgm_weighted_reducer(call.values[0].numbers, call.values[0].count);
    sgm__call_free(&call);
    return reducer;
}

sgm_reducer *sgm_reducer_parse(const char *text)
{
    static const char *const names[] = {"average", "maximum", "weighted"};
    sgm__phrase phrase;
    if (text == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT, "a reducer expects a text, such as \"average\"; got NULL");
        return NULL;
    }
    if (strcmp(text, names[AVERAGE]) == 0)
        return sgm_average_reducer();
    if (strcmp(text, names[MAXIMUM]) == 0)
        return sgm_maximum_reducer();
    if (sgm__phrase_begin(&phrase, text) != SGM_OK)
        return NULL;
    if (sgm__phrase_take(&phrase, names[WEIGHTED]))
        return read_weights(&phrase);
    const char *near = sgm__nearest(text, names, 3);
    sgm_fail(SGM_ERROR_NOT_FOUND,
             "unknown reducer '%.60s'%s%s%s; there are average, maximum and weighted(3, 8)", text,
             near != NULL ? " (did you mean '" : "", near != NULL ? near : "", near != NULL ? "'?)" : "");
    return NULL;
}

/* Takes over `other` only if it succeeds. A reducer with rules of its own is refused, so that one look into
 * one list finds the rule for a state. */
static sgm_status add_rule(sgm_reducer *reducer, const char *pattern, sgm_reducer *other)
{
    SGM_TRY(sgm__pattern_check(pattern));
    if (other->rule_count > 0)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "the reducer for '%s' has patterns of its own: add them to the first", pattern);
    for (size_t i = 0; i < reducer->rule_count; i++)
        if (strcmp(reducer->rules[i].pattern, pattern) == 0)
            return sgm_fail(SGM_ERROR_ARGUMENT, "there is a reducer for '%s' already", pattern);
    SGM_TRY(sgm__reserve(&reducer->rules, &reducer->rule_capacity, reducer->rule_count + 1,
                         sizeof(reducer_rule)));
    char *copy = sgm__strdup(pattern);
    if (copy == NULL)
        return SGM_ERROR_MEMORY;
    reducer->rules[reducer->rule_count++] = (reducer_rule){copy, other};
    return SGM_OK;
}

/* Takes over `other`, also if it fails. A reducer that is added to itself is refused and not freed, as the
 * caller still has it. */
sgm_status sgm_reducer_add(sgm_reducer *reducer, const char *pattern, sgm_reducer *other)
{
    sgm_status status =
        reducer == NULL || other == NULL || reducer == other
            ? sgm_fail(SGM_ERROR_ARGUMENT, "adding a reducer wants two of them; see why one is NULL")
            : add_rule(reducer, pattern, other);
    if (status != SGM_OK && other != reducer)
        sgm_reducer_free(other);
    return status;
}

static sgm_status fail_without(const sgm_reducer *reducer, const char *pattern)
{
    sgm__text known = {0};
    for (size_t i = 0; i < reducer->rule_count; i++)
        sgm__text_append(&known, "%s%s", i > 0 ? ", " : "; it has ", reducer->rules[i].pattern);
    sgm_status status = sgm_fail(SGM_ERROR_NOT_FOUND, "the reducer has no pattern '%.100s'%s", pattern,
                                 known.data != NULL ? known.data : "");
    sgm__text_free(&known);
    return status;
}

sgm_status sgm_reducer_remove(sgm_reducer *reducer, const char *pattern)
{
    size_t i = 0;
    if (reducer == NULL || pattern == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_reducer_remove: expected a reducer and a pattern, got NULL");
    while (i < reducer->rule_count && strcmp(reducer->rules[i].pattern, pattern) != 0)
        i++;
    if (i == reducer->rule_count)
        return fail_without(reducer, pattern);
    sgm__free(reducer->rules[i].pattern);
    sgm_reducer_free(reducer->rules[i].reducer);
    for (reducer->rule_count--; i < reducer->rule_count; i++)
        reducer->rules[i] = reducer->rules[i + 1];
    return SGM_OK;
}

void sgm_reducer_free(sgm_reducer *reducer)
{
    if (reducer == NULL)
        return;
    for (size_t i = 0; i < reducer->rule_count; i++) {
        sgm__free(reducer->rules[i].pattern);
        sgm_reducer_free(reducer->rules[i].reducer);
    }
    sgm__free(reducer->rules);
    sgm__free(reducer);
}

/* A deep copy: patterns and reducers of rules, too. */
sgm_reducer *sgm__reducer_copy(const sgm_reducer *reducer)
{
    sgm_reducer *copy = create(reducer->kind);
    if (copy == NULL)
        return NULL;
    memcpy(copy->weights, reducer->weights, sizeof copy->weights);
    copy->weight_count = reducer->weight_count;
    copy->rules = sgm__calloc(reducer->rule_count + 1, sizeof(reducer_rule));
    if (copy->rules == NULL) {
        sgm__free(copy);
        return NULL;
    }
    copy->rule_capacity = reducer->rule_count;
    for (; copy->rule_count < reducer->rule_count; copy->rule_count++) {
        reducer_rule *rule = &copy->rules[copy->rule_count];
        rule->pattern = sgm__strdup(reducer->rules[copy->rule_count].pattern);
        rule->reducer = sgm__reducer_copy(reducer->rules[copy->rule_count].reducer);
        if (rule->pattern != NULL && rule->reducer != NULL)
            continue;
        copy->rule_count++; /* so that sgm_reducer_free also frees the rule that was copied in part */
        sgm_reducer_free(copy);
        return NULL;
    }
    return copy;
}

const char *sgm__reducer_pattern(const sgm_reducer *reducer, size_t index)
{
    return index < reducer->rule_count ? reducer->rules[index].pattern : NULL;
}

/* Weights belong to workers by number, so there must be as many weights as workers, in every rule. */
sgm_status sgm__reducer_check(const sgm_reducer *reducer, size_t workers)
{
    if (reducer->kind == WEIGHTED && reducer->weight_count != workers)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a weighted reducer has %zu weight%s for %zu worker%s",
                        reducer->weight_count, reducer->weight_count == 1 ? "" : "s", workers,
                        workers == 1 ? "" : "s");
    for (size_t i = 0; i < reducer->rule_count; i++)
        SGM_TRY(sgm__reducer_check(reducer->rules[i].reducer, workers));
    return SGM_OK;
}

/* --- merging --- */

/* The reducer for a state: that of the most specific rule that matches, or `reducer` itself. */
static const sgm_reducer *reducer_for(const sgm_reducer *reducer, const char *state)
{
    const reducer_rule *best = NULL;
    for (size_t i = 0; i < reducer->rule_count; i++)
        if (sgm__pattern_matches(reducer->rules[i].pattern, state) &&
            (best == NULL || sgm__pattern_compare(reducer->rules[i].pattern, best->pattern) > 0))
            best = &reducer->rules[i];
    return best != NULL ? best->reducer : reducer;
}

/* result[i] = sum over k of weights[k] values[k][i]. The sum is in double: a float32 sum over many workers
 * would depend on their number in its last digits. */
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

/* Merges arrays of any type, element by element, by way of double: the weighted sum, rounded to nearest for
 * integers; or, with `weights` NULL, the largest value. NaN of any worker gives NaN: no later value compares
 * greater than NaN. */
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

/* `count` is the number of workers that have the state. The mean is a sum with equal weights. */
void sgm__reducer_reduce(const sgm_reducer *reducer, const char *state, const sgm_type *type, void *result,
                         const void *const *values, size_t count)
{
    double equal[SGM__MAXIMUM_WORKERS];
    const sgm_reducer *own = reducer_for(reducer, state);
    for (size_t i = 0; i < count; i++)
        equal[i] = 1.0 / (double)count;
    if (own->kind == MAXIMUM)
        merge_elements(NULL, type->dtype, result, values, count, sgm_shape_elements(&type->shape));
    else
        sgm__merge_weighted(own->kind == WEIGHTED ? own->weights : equal, type, result, values, count);
}

/* For the public function, whose tensors come from a program: the merging loops take arrays of one length and
 * type, without strides. */
static sgm_status check_values(const sgm_tensor *const *values, size_t count, const sgm_tensor *result)
{
    if (values == NULL || result == NULL || count < 1 || count > SGM__MAXIMUM_WORKERS)
        return sgm_fail(SGM_ERROR_ARGUMENT, "merging wants 1 to %d tensors, and one for the result",
                        SGM__MAXIMUM_WORKERS);
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

sgm_status sgm_reducer_apply(const sgm_reducer *reducer, const char *state, const sgm_tensor *const *values,
                             size_t count, sgm_tensor *result)
{
    if (reducer == NULL || state == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "merging wants a reducer, and the name of a state");
    SGM_TRY(check_values(values, count, result));
    SGM_TRY(sgm__reducer_check(reducer, count));
    const void *memory[SGM__MAXIMUM_WORKERS];
    for (size_t i = 0; i < count; i++)
        memory[i] = sgm_tensor_const_data(values[i]);
    const sgm_type type = {sgm_tensor_dtype(result), *sgm_tensor_shape(result)};
    sgm__reducer_reduce(reducer, state, &type, sgm_tensor_data(result), memory, count);
    return SGM_OK;
}
