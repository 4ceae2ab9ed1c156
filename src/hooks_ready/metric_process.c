/* A function of values of the registry, averaged over all values that match, as a result for other hooks
 * (metric_processor).
 *
 * For example the mean standard deviation of all weights: "network.layers.*.weights" with
 * sgm_metric_standard_deviation. Despite the name the hook measures nothing on data: metrics of
 * predictions are metric.c. As it only reads the registry, it may run in the background, on copies of what
 * it reads. */
#include "base/base.h"
#include <math.h>
#include <sigma/hooks.h>

#define PROCESS_PRIORITY (-1000) /* before accumulators and reporters, which may read the result */

/* The self. `function` must be safe on another thread if the hook runs in the background. */
typedef struct processor {
    char **list; /* of identifiers, NULL at the end */
    size_t count;
    char *name;
    sgm_metric_function function;
    sgm_metric_processor_options options;
} processor;

/* Sum and number of the function's values so far, over all matches of one call. */
typedef struct mean {
    double sum;
    int64_t count;
} mean;

static sgm_status process_content(const processor *self, const sgm_content *content, mean *results);

/* Goes through a registry that matched: all that is in it counts, at any depth. */
static sgm_status process_below(const processor *self, sgm_registry *registry, mean *results)
{
    sgm_matches below;
    SGM_TRY(sgm_registry_resolve(registry, "*", &below));
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < below.count && status == SGM_OK; i++)
        status = process_content(self, &below.items[i].content, results);
    sgm_matches_free(&below);
    return status;
}

/* Adds one value. NaN from the function means that a value does not count, for example because it is a text.
 */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tree */
static sgm_status process_content(const processor *self, const sgm_content *content, mean *results)
{
    if (content->kind == SGM_KIND_REGISTRY)
        return process_below(self, content->as.registry, results);
    double value = self->function(self->options.user, content);
    if (isnan(value))
        return SGM_OK;
    results->sum += value;
    results->count++;
    return SGM_OK;
}

/* invoke(). Each match counts once, whatever its number of elements: the mean is over values, not over
 * elements. Without any value nothing is shared, and the result of an earlier call stays. */
static sgm_status process(void *state, sgm_hook_call *call)
{
    const processor *self = state;
    mean results = {0};
    for (size_t i = 0; i < self->count; i++) {
        sgm_matches matches;
        sgm_status status = SGM_OK;
        SGM_TRY(sgm_registry_resolve(call->registry, self->list[i], &matches));
        for (size_t j = 0; j < matches.count && status == SGM_OK; j++)
            status = process_content(self, &matches.items[j].content, &results);
        sgm_matches_free(&matches);
        SGM_TRY(status);
    }
    return results.count > 0
               ? sgm_hook_share(call, self->name, sgm_number_content(results.sum / (double)results.count))
               : SGM_OK;
}

/* What is read, the engine compares. */
static bool is_equal(const void *a, const void *b)
{
    const processor *left = a, *right = b;
    return left->function == right->function && left->options.user == right->options.user &&
           strcmp(left->name, right->name) == 0;
}

static void free_processor(void *state)
{
    processor *self = state;
    if (self->options.release != NULL)
        self->options.release(self->options.user);
    sgm__free(self->list);
    sgm__free(self->name);
    sgm__free(self);
}

/* Without copy(): a worker's calls only read the self, and take turns. Without state: each call begins
 * anew. */
static const sgm_hook_type processor_type = {.api = SGM_HOOK_API,
                                             .name = "metric_processor",
                                             .doc = "mean of a function of values",
                                             .invoke = process,
                                             .equal = is_equal,
                                             .free = free_processor};

/* Cuts the identifiers into a list. What a failure leaves is freed with self. */
static sgm_status fill_in(processor *self, const char *identifiers, const char *name)
{
    if (self->function == NULL || name == NULL || name[0] == '\0')
        return sgm_fail(SGM_ERROR_ARGUMENT, "a metric processor needs %s",
                        self->function == NULL ? "a function" : "a name for its result");
    self->name = sgm__strdup(name);
    self->list = sgm__words(identifiers, &self->count);
    if (self->name == NULL || self->list == NULL)
        return SGM_ERROR_MEMORY;
    return self->count > 0
               ? SGM_OK
               : sgm_fail(SGM_ERROR_ARGUMENT,
                          "a metric processor needs identifiers, as in \"network.layers.*.weights\"");
}

/* `user` is released on every way out: here, or with the hook. */
sgm_hook *sgm_metric_processor_with(const char *identifiers, sgm_metric_function function, const char *name,
                                    const sgm_metric_processor_options *given)
{
    sgm_metric_processor_options options;
    if (sgm__options_read(&options, sizeof options, given, "sgm_metric_processor") != SGM_OK)
        return NULL;
    processor *self = sgm__calloc(1, sizeof *self);
    if (self == NULL) {
        if (options.release != NULL)
            options.release(options.user);
        return NULL;
    }
    self->options = options;
    self->function = function;
    if (fill_in(self, identifiers, name) != SGM_OK) {
        free_processor(self);
        return NULL;
    }
    return sgm_hook_create(&processor_type, self, .when = options.when,
                           .reads = (const char *const *)self->list, .background = options.background,
                           .priority = PROCESS_PRIORITY);
}

/* --- functions for it --- */

/* All elements of a tensor, or a number as the only one, in new memory (sgm__free). *count 0: the content
 * is of another kind, or memory is short; the functions below give NaN then. */
static double *elements_of(const sgm_content *content, size_t *count)
{
    *count = 0;
    if (content->kind == SGM_KIND_TENSOR) {
        int64_t elements = sgm_shape_elements(sgm_tensor_shape(content->as.tensor));
        double *numbers = sgm__calloc((size_t)elements, sizeof *numbers);
        if (numbers != NULL && sgm_tensor_read(content->as.tensor, numbers, (size_t)elements) == SGM_OK)
            *count = (size_t)elements;
        return numbers;
    }
    if (content->kind != SGM_KIND_NUMBER && content->kind != SGM_KIND_INTEGER)
        return NULL;
    double *number = sgm__alloc(sizeof *number);
    if (number == NULL)
        return NULL;
    *number = content->kind == SGM_KIND_NUMBER ? content->as.number : (double)content->as.integer;
    *count = 1;
    return number;
}

/* NaN of no elements. */
static double mean_of(const double *numbers, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += numbers[i];
    return count > 0 ? sum / (double)count : NAN;
}

/* A sgm_metric_function: the mean of a tensor's elements; a number is its own mean. */
double sgm_metric_mean(void *user, const sgm_content *content)
{
    size_t count;
    (void)user;
    double *numbers = elements_of(content, &count), result = mean_of(numbers, count);
    sgm__free(numbers);
    return result;
}

/* Of the population, 1 / n, in two passes: sum of squares minus square of the sum would cancel where the
 * mean is large beside the deviation. */
double sgm_metric_standard_deviation(void *user, const sgm_content *content)
{
    size_t count;
    (void)user;
    double *numbers = elements_of(content, &count), mean_value = mean_of(numbers, count), squares = 0;
    for (size_t i = 0; i < count; i++)
        squares += (numbers[i] - mean_value) * (numbers[i] - mean_value);
    sgm__free(numbers);
    return count > 0 ? sqrt(squares / (double)count) : NAN;
}
