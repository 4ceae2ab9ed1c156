/* Mean, deviation, extrema, norm and histogram of tensors: parameters, gradients, updates (statistics).
 *
 * The hook reads tensors of the registry by identifier, computes in double precision whatever their type,
 * leaves the numbers as shared.PREFIX_mean and so on for other hooks and monitors, and appends a line for
 * each tensor to histograms.jsonl in the run's folder (src/journal/changes.c writes it, the web monitor
 * draws it). Statistics of predictions are metrics (src/metrics). Values that are not finite are counted,
 * and left out of all else, so that one NaN does not hide what the other values do. */
#include "hooks/hook_text.h"
#include "journal/run_lines.h"

#include <jansson.h>
#include <math.h>
#include <sigma/hooks.h>
#include <stdio.h>

#define DEFAULT_BINS 20
#define MAXIMUM_BINS 1000

/* The self; `options` as given, with `bins` filled in. The same self serves all workers: it is only read. */
typedef struct statistics {
    char **list; /* of identifiers, NULL at the end */
    sgm_statistics_options options;
} statistics;

/* What there is to report of one tensor. `finite` values make up everything but `elements`. */
typedef struct summary {
    int64_t elements, finite, zeros; /* numbers of values; zeros are among the finite ones */
    double mean, standard_deviation, minimum, maximum, norm; /* NaN: there is no finite value */
    double ratio; /* norm over the parameter's; NaN: it is no gradient or update */
    double histogram_minimum, histogram_maximum; /* outer bounds of the bins */
    double *counts;                              /* `bins` of them, whole numbers */
} summary;

/* --- numbers --- */

/* Mean, deviation of the population (1 / n), extrema, and the L2 norm sqrt(sum of squares). The deviation
 * takes a second pass: sum of squares minus square of the sum would cancel where the mean is large beside
 * it. */
static void find_moments(const double *values, summary *result)
{
    double sum = 0, squares = 0;
    result->minimum = INFINITY;
    result->maximum = -INFINITY;
    for (int64_t i = 0; i < result->elements; i++) {
        if (!isfinite(values[i]))
            continue;
        result->finite++;
        result->zeros += values[i] == 0;
        sum += values[i];
        squares += values[i] * values[i];
        result->minimum = values[i] < result->minimum ? values[i] : result->minimum;
        result->maximum = values[i] > result->maximum ? values[i] : result->maximum;
    }
    double count = (double)result->finite, spread = 0;
    if (result->finite == 0) {
        result->mean = result->standard_deviation = result->minimum = result->maximum = result->norm = NAN;
        return;
    }
    result->mean = sum / count;
    result->norm = sqrt(squares);
    for (int64_t i = 0; i < result->elements; i++)
        if (isfinite(values[i]))
            spread += (values[i] - result->mean) * (values[i] - result->mean);
    result->standard_deviation = sqrt(spread / count);
}

/* Counts values in bins of equal width, bin = floor((value - minimum) / width * bins). With bounds given,
 * values beyond them count in the outer bins; without, the bounds are the smallest and the largest value.
 * The largest value itself would fall behind the last bin, and counts in it. Values that are all equal get
 * a bin of width 1 / bins around them. */
static void count_bins(const statistics *self, const double *values, summary *result)
{
    bool given = self->options.minimum < self->options.maximum;
    result->histogram_minimum = given ? self->options.minimum : result->finite > 0 ? result->minimum : 0;
    result->histogram_maximum = given ? self->options.maximum : result->finite > 0 ? result->maximum : 0;
    if (result->histogram_minimum == result->histogram_maximum) {
        result->histogram_minimum -= 0.5;
        result->histogram_maximum += 0.5;
    }
    double bins = (double)self->options.bins, width = result->histogram_maximum - result->histogram_minimum;
    for (int64_t i = 0; i < result->elements; i++) {
        if (!isfinite(values[i]))
            continue;
        double place = floor((values[i] - result->histogram_minimum) / width * bins);
        place = place < 0 ? 0 : place >= bins ? bins - 1 : place;
        result->counts[(size_t)place]++;
    }
}

/* All elements as doubles in new memory (sgm__free, also after a failure). */
static sgm_status read_values(const sgm_tensor *tensor, double **values, int64_t *count)
{
    *count = sgm_shape_elements(sgm_tensor_shape(tensor));
    *values = sgm__alloc((size_t)*count * sizeof(double));
    return *values ? sgm_tensor_read(tensor, *values, (size_t)*count) : SGM_ERROR_MEMORY;
}

/* L2 norm of a parameter. */
static double norm_of(const sgm_tensor *tensor)
{
    double *values, squares = 0;
    int64_t count;
    if (read_values(tensor, &values, &count) != SGM_OK)
        count = 0;
    for (int64_t i = 0; i < count; i++)
        squares += values[i] * values[i];
    sgm__free(values);
    return sqrt(squares);
}

/* The norm of a gradient or an update over that of the parameter it belongs to; NaN for other tensors. For
 * updates about 0.001 is a common rule of thumb: with much more, steps are too large, with much less,
 * training hardly moves. */
static double find_ratio(sgm_hook_call *call, const char *identifier, double norm)
{
    static const char *const prefixes[] = {"optimiser.gradients.", "optimiser.updates."};
    for (int i = 0; i < 2; i++) {
        size_t length = strlen(prefixes[i]);
        if (strncmp(identifier, prefixes[i], length) != 0)
            continue;
        sgm_content content;
        double ratio = NAN;
        char *parameter = sgm__format("network.layers.%s", identifier + length);
        if (parameter && sgm_hook_get(call, parameter, &content) == SGM_OK) {
            if (content.kind == SGM_KIND_TENSOR)
                ratio = norm / norm_of(content.as.tensor);
            sgm_content_clear(&content);
        }
        sgm__free(parameter);
        return ratio;
    }
    return NAN;
}

/* --- results --- */

/* The identifier with '_' for dots: a name below `shared` has one part. Free with sgm__free. */
static char *prefix_of(const char *identifier)
{
    char *prefix = sgm__strdup(identifier);
    for (char *c = prefix; c && *c; c++)
        if (*c == '.')
            *c = '_';
    return prefix;
}

/* As shared.PREFIX_WHAT. */
static sgm_status share(sgm_hook_call *call, const char *prefix, const char *what, sgm_content content)
{
    char *name = sgm__format("%s_%s", prefix, what);
    sgm_status status = name ? sgm_hook_share(call, name, content) : SGM_ERROR_MEMORY;
    sgm__free(name);
    return status;
}

/* All numbers as results for other hooks, also those that are NaN; the histogram as a tensor, float64
 * (bins), which shared retains. Zeros are a share of the finite values, not_finite a number. */
static sgm_status share_all(const statistics *self, sgm_hook_call *call, const char *prefix,
                            const summary *result)
{
    const struct {
        const char *name;
        double value;
    } numbers[] = {
        {"mean", result->mean},
        {"standard_deviation", result->standard_deviation},
        {"minimum", result->minimum},
        {"maximum", result->maximum},
        {"norm", result->norm},
        {"zeros", result->finite > 0 ? (double)result->zeros / (double)result->finite : NAN},
        {"not_finite", (double)(result->elements - result->finite)},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        SGM_TRY(share(call, prefix, numbers[i].name, sgm_number_content(numbers[i].value)));
    if (!isnan(result->ratio))
        SGM_TRY(share(call, prefix, "ratio", sgm_number_content(result->ratio)));
    sgm_shape shape = sgm_shape_of(self->options.bins);
    sgm_tensor *histogram = sgm_tensor_create_from(SGM_FLOAT64, &shape, result->counts);
    sgm_status status =
        histogram ? share(call, prefix, "histogram", sgm_tensor_content(histogram)) : SGM_ERROR_MEMORY;
    sgm_tensor_free(histogram);
    return status;
}

/* JSON has no NaN and no infinity: such a number is left out. */
static void set_number(json_t *line, const char *key, double value)
{
    if (isfinite(value))
        json_object_set_new(line, key, json_real(value));
}

/* The line of histograms.jsonl. Members that could not be made are missing from it; the whole is NULL
 * without memory, which json_dumps passes on. */
static json_t *describe(const statistics *self, const sgm_hook_call *call, const char *identifier,
                        const summary *result)
{
    const sgm__trainer_view view = sgm__trainer_look(sgm_hook_trainer(call));
    json_t *line = json_object(), *counts = json_array();
    json_object_set_new(line, "epoch", json_integer(call->epoch));
    json_object_set_new(line, "iteration", json_integer(call->iteration));
    if (sgm__trainer_is_replica(sgm_hook_trainer(call)))
        json_object_set_new(line, "worker", json_integer(view.worker));
    json_object_set_new(line, "identifier", json_string(identifier));
    json_object_set_new(line, "elements", json_integer(result->elements));
    json_object_set_new(line, "not_finite", json_integer(result->elements - result->finite));
    json_object_set_new(line, "zeros", json_integer(result->zeros));
    set_number(line, "mean", result->mean);
    set_number(line, "standard_deviation", result->standard_deviation);
    set_number(line, "minimum", result->minimum);
    set_number(line, "maximum", result->maximum);
    set_number(line, "norm", result->norm);
    set_number(line, "ratio", result->ratio);
    set_number(line, "histogram_minimum", result->histogram_minimum);
    set_number(line, "histogram_maximum", result->histogram_maximum);
    for (int64_t i = 0; i < self->options.bins; i++)
        json_array_append_new(counts, json_integer((json_int_t)result->counts[i]));
    json_object_set_new(line, "counts", counts);
    json_object_set_new(line, "branch", json_integer(view.branch));
    return line;
}

/* Nothing for a hook without a trainer (in the background), without a run folder, or that wants no file. */
static sgm_status write_line(const statistics *self, const sgm_hook_call *call, const char *identifier,
                             const summary *result)
{
    const sgm_trainer *trainer = sgm_hook_trainer(call);
    const char *folder = trainer ? sgm__trainer_look(trainer).folder : NULL;
    if (self->options.no_file || !folder)
        return SGM_OK;
    json_t *line = describe(self, call, identifier, result);
    char *text = json_dumps(line, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
    sgm_status status =
        text ? sgm__run_folder_append(folder, SGM__HISTOGRAMS_FILE, text) : sgm__fail_memory(1024);
    free(text);
    json_decref(line);
    return status;
}

/* Everything for one tensor that matched. */
static sgm_status summarise(const statistics *self, sgm_hook_call *call, const sgm_match *match)
{
    summary result = {.counts = sgm__calloc((size_t)self->options.bins, sizeof(double))};
    double *values = NULL;
    char *prefix = prefix_of(match->identifier);
    sgm_status status = result.counts && prefix
                            ? read_values(match->content.as.tensor, &values, &result.elements)
                            : SGM_ERROR_MEMORY;
    if (status == SGM_OK) {
        find_moments(values, &result);
        count_bins(self, values, &result);
        result.ratio = find_ratio(call, match->identifier, result.norm);
        status = share_all(self, call, prefix, &result);
    }
    if (status == SGM_OK)
        status = write_line(self, call, match->identifier, &result);
    sgm__free(values);
    sgm__free(prefix);
    sgm__free(result.counts);
    return status;
}

/* --- the hook --- */

/* A match that is no tensor is an error, as the identifier was probably meant for another entry. */
static sgm_status summarise_matches(const statistics *self, sgm_hook_call *call, const char *identifier)
{
    sgm_matches matches;
    SGM_TRY(sgm_registry_resolve(call->registry, identifier, &matches));
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < matches.count && status == SGM_OK; i++)
        if (matches.items[i].content.kind == SGM_KIND_TENSOR)
            status = summarise(self, call, &matches.items[i]);
        else
            status = sgm_fail(SGM_ERROR_TYPE, "'%s' is %s, expected a tensor", matches.items[i].identifier,
                              sgm_kind_name(matches.items[i].content.kind));
    sgm_matches_free(&matches);
    return status;
}

/* invoke(): all tensors of all identifiers. Gradients and updates are kept by the trainer only while a
 * hook reads them; that this one does, the engine knows from its list of reads. */
static sgm_status look(void *state, sgm_hook_call *call)
{
    const statistics *self = state;
    for (size_t i = 0; self->list[i]; i++)
        SGM_TRY(summarise_matches(self, call, self->list[i]));
    return SGM_OK;
}

/* The identifiers are compared by the engine, among what the hooks read. */
static bool is_equal(const void *a, const void *b)
{
    const sgm_statistics_options *left = &((const statistics *)a)->options,
                                 *right = &((const statistics *)b)->options;
    return left->bins == right->bins && left->minimum == right->minimum && left->maximum == right->maximum &&
           left->no_file == right->no_file;
}

/* NULL is fine: sgm_statistics_with calls it on each failure. */
static void free_statistics(void *state)
{
    statistics *self = state;
    if (!self)
        return;
    sgm__free(self->list);
    sgm__free(self);
}

/* Without copy(): a call only reads the self. Without state: each call begins anew. */
static const sgm_hook_type statistics_type = {.api = SGM_HOOK_API,
                                              .name = "statistics",
                                              .doc = "mean, spread, norm and histogram of tensors",
                                              .invoke = look,
                                              .equal = is_equal,
                                              .free = free_statistics};

/* Cuts the identifiers at their spaces; false: none came, or memory was short. */
static bool cut(statistics *self, const char *identifiers)
{
    size_t count;
    self->list = sgm__words(identifiers, &count);
    if (self->list && count == 0)
        sgm_fail(SGM_ERROR_ARGUMENT, "statistics: expected identifiers of tensors, got none");
    return self->list && count > 0;
}

/* Equal bounds mean that none were given. */
static bool check(const sgm_statistics_options *options)
{
    if (options->bins >= 1 && options->bins <= MAXIMUM_BINS && isfinite(options->minimum) &&
        isfinite(options->maximum) && options->minimum <= options->maximum)
        return true;
    sgm_fail(SGM_ERROR_ARGUMENT,
             "statistics: expected 1 to %d bins from .minimum to .maximum, got %lld from %g to %g",
             MAXIMUM_BINS, (long long)options->bins, options->minimum, options->maximum);
    return false;
}

/* Priority -500, before reporters and rules, which may read the results. */
sgm_hook *sgm_statistics_with(const char *identifiers, sgm_time_step when,
                              const sgm_statistics_options *given)
{
    sgm_statistics_options options;
    if (sgm__options_read(&options, sizeof options, given, "sgm_statistics") != SGM_OK)
        return NULL;
    if (options.bins == 0)
        options.bins = DEFAULT_BINS;
    statistics *self = check(&options) ? sgm__calloc(1, sizeof *self) : NULL;
    if (!self || !cut(self, identifiers ? identifiers : "")) {
        free_statistics(self);
        sgm_criteria_free(options.only_if);
        return NULL;
    }
    self->options = options;
    self->options.only_if = NULL;
    return sgm_hook_create(&statistics_type, self, .when = when, .reads = (const char *const *)self->list,
                           .only_if = options.only_if, .priority = -500);
}

/* --- as text --- */

/* Bounds count only if both are given. */
static sgm_hook *parse_statistics(const sgm__call *call, sgm_time_step when)
{
    bool bounded = sgm__call_has(call, "minimum") && sgm__call_has(call, "maximum");
    return sgm_statistics(sgm__call_text(call, "values"), when, .bins = sgm__call_integer(call, "bins"),
                          .minimum = bounded ? sgm__call_number(call, "minimum") : 0,
                          .maximum = bounded ? sgm__call_number(call, "maximum") : 0,
                          .no_file = !sgm__call_flag(call, "file"));
}

/* Every epoch by default: reading all parameters back from a device at each iteration would slow it down. */
const sgm__hook_row sgm__statistics_row = {
    .name = "statistics",
    .example = "statistics(network.layers.*.weights)",
    .doc = "mean, deviation, minimum, maximum, norm, share of zeros and histogram of tensors, as "
           "shared.IDENTIFIER_mean and so on, and in histograms.jsonl",
    .when = {SGM_EPOCH, 1, 0},
    .arguments = {{"values", SGM_KIND_TEXT, .identifier = true, .list = true, .required = true,
                   .doc = "tensors, as in network.layers.*.weights"},
                  {"bins", SGM_KIND_INTEGER, .default_value = 20, .doc = "of the histogram", .minimum = 1,
                   .maximum = MAXIMUM_BINS},
                  {"minimum", SGM_KIND_NUMBER, .default_value = NAN,
                   .doc = "of the histogram, with maximum; if not given: the smallest value"},
                  {"maximum", SGM_KIND_NUMBER, .default_value = NAN,
                   .doc = "of the histogram; if not given: the largest value"},
                  {"file", SGM_KIND_BOOLEAN, .default_value = true, .doc = "write histograms.jsonl"}},
    .create = parse_statistics,
};
