/* Plans a search: which trials with which values, and how many trials and epochs each rung has.
 *
 * Called once, by sgm_search_create. A grid has all combinations, the last value changing fastest. Random
 * search draws (Bergstra and Bengio, 2012). Successive halving (Jamieson and Talwalkar, 2016) draws like
 * random search, or takes all combinations, and divides the epochs among rungs as in Hyperband (Li et al.,
 * 2018). The plan is a function of the options alone, so a resumed search finds the same trials. */
#include "environment/search.h"

#include <math.h>

/* Draws for one trial after which its combination is taken to be unobtainable: nearly all are used. */
#define ATTEMPTS 65536

/* --- rungs --- */

/* With T trials, E epochs, factor f and s further rungs, rung i has floor(T / f^i) trials, which train to
 * floor(E / f^(s-i)) epochs in all. s is the largest number for which the last rung has at least one trial
 * and the first at least minimum_epochs. Without halving s is 0. */
static void plan_rungs(sgm_search *search)
{
    const sgm_search_options *o = &search->options;
    double trials = (double)search->trial_count, epochs = (double)o->epochs;
    const double slack = 1e-9;
    size_t steps = 0;
    double power = o->factor;
    while (o->method == SGM_SEARCH_HALVING && steps + 1 < SGM__SEARCH_RUNGS && trials / power >= 1 - slack &&
           epochs / power >= (double)o->minimum_epochs - slack) {
        steps++;
        power *= o->factor;
    }
    search->rung_count = steps + 1;
    for (size_t i = 0; i <= steps; i++) {
        double below = pow(o->factor, (double)i), above = pow(o->factor, (double)(steps - i));
        search->rungs[i].trials = (int64_t)floor(trials / below + slack);
        search->rungs[i].epochs = (int64_t)floor(epochs / above + slack);
    }
}

/* --- trials --- */

/* Appends a trial with the next number. The array may move here; nothing points into it before `show`. */
static sgm_status add_trial(sgm_search *search, sgm__trial **added)
{
    SGM_TRY(sgm__reserve(&search->trials, &search->trial_capacity, search->trial_count + 1,
                         sizeof *search->trials));
    sgm__trial *trial = &search->trials[search->trial_count];
    memset(trial, 0, sizeof *trial);
    trial->shown.number = (int64_t)search->trial_count + 1;
    trial->shown.objective = trial->newest = NAN;
    for (size_t i = 0; i < SGM__SEARCH_RUNGS; i++)
        trial->objectives[i] = NAN;
    search->trial_count++;
    trial->name = sgm__format("trial-%03lld", (long long)trial->shown.number);
    trial->folder = sgm__format("%s/trial-%03lld", search->options.folder, (long long)trial->shown.number);
    *added = trial;
    return trial->name != NULL && trial->folder != NULL ? SGM_OK : sgm__last_failure();
}

/* Takes `text`. The number is NaN if the text is none. */
static sgm_status set_value(const sgm_search *search, sgm__trial *trial, size_t index, char *text)
{
    if (text == NULL)
        return sgm__last_failure();
    sgm_trial_value *value = &trial->values[index];
    value->name = search->options.values[index].name;
    value->text = text;
    if (!sgm__parse_double(text, &value->number))
        value->number = NAN;
    return SGM_OK;
}

static size_t count_choices(const sgm_search_values *values)
{
    size_t count = 0;
    while (values->choices[count] != NULL)
        count++;
    return count;
}

/* How many bytes all choices share at their beginning (*front) and at their end (*back), cut back to
 * borders between layers of the network notation (" + "). Both 0 if they overlap in the shortest choice. */
static void measure_common(const sgm_search_values *values, size_t *front, size_t *back)
{
    const char *first = values->choices[0];
    size_t length = strlen(first), shortest = length;
    *front = *back = length;
    for (size_t i = 1; values->choices[i] != NULL; i++) {
        const char *other = values->choices[i];
        size_t own = strlen(other), same = 0;
        shortest = own < shortest ? own : shortest;
        while (same < *front && other[same] == first[same])
            same++;
        *front = same;
        for (same = 0; same < *back && same < own && other[own - 1 - same] == first[length - 1 - same];)
            same++;
        *back = same;
    }
    while (*front > 0 && (*front < 3 || strncmp(first + *front - 3, " + ", 3) != 0))
        --*front;
    while (*back > 0 && strncmp(first + length - *back, " + ", 3) != 0)
        --*back;
    if (*front + *back > shortest)
        *front = *back = 0;
}

/* Bytes beyond which a choice is shortened in tables. */
#define LONG_TEXT 20

/* The text without what all choices of the value have in common, with "..." in its place: of networks that
 * differ in one layer, that layer. */
static char *brief_text(const sgm_search_values *values, const char *text)
{
    size_t front = 0, back = 0, length = strlen(text);
    if (values->choices != NULL && values->choices[1] != NULL && length > LONG_TEXT)
        measure_common(values, &front, &back);
    return sgm__format("%s%.*s%s", front > 0 ? "..." : "", (int)(length - front - back), text + front,
                       back > 0 ? "..." : "");
}

/* Sets the pointers of `shown` and the short texts. Last, as adding trials moves the array. */
static sgm_status show(sgm_search *search)
{
    for (size_t i = 0; i < search->trial_count; i++) {
        sgm__trial *trial = &search->trials[i];
        trial->shown.name = trial->name;
        trial->shown.folder = trial->folder;
        trial->shown.values = trial->values;
        trial->shown.value_count = search->value_count;
        for (size_t k = 0; k < search->value_count; k++) {
            trial->values[k].brief = brief_text(&search->options.values[k], trial->values[k].text);
            if (trial->values[k].brief == NULL)
                return SGM_ERROR_MEMORY;
        }
    }
    return SGM_OK;
}

/* The number of combinations; infinite if there is a range. A double, as the product may exceed integers. */
static double count_combinations(const sgm_search *search)
{
    double count = 1;
    for (size_t i = 0; i < search->value_count; i++) {
        const sgm_search_values *values = &search->options.values[i];
        count *= values->choices != NULL ? (double)count_choices(values) : INFINITY;
    }
    return count;
}

/* Point number `point` is written in a mixed radix: the remainders give the index of each value's choice,
 * from the last value to the first. */
static sgm_status plan_grid(sgm_search *search, double points)
{
    if (points > SGM_SEARCH_MAXIMUM_TRIALS)
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "the grid has %.0f points, more than the %d that a search may have: leave choices out, "
            "or draw some at random",
            points, SGM_SEARCH_MAXIMUM_TRIALS);
    for (size_t point = 0; point < (size_t)points; point++) {
        sgm__trial *trial;
        SGM_TRY(add_trial(search, &trial));
        size_t rest = point;
        for (size_t i = search->value_count; i-- > 0;) {
            const sgm_search_values *values = &search->options.values[i];
            size_t count = count_choices(values);
            SGM_TRY(set_value(search, trial, i, sgm__strdup(values->choices[rest % count])));
            rest /= count;
        }
    }
    return SGM_OK;
}

/* Uniform in [0, 1), 53 bits, from the counter-based generator Philox (Salmon et al., 2011) with the seed
 * as key and (name, trial, attempt) as counter. So a number depends on these alone: another value beside
 * it, or more trials, change none of the others. */
static double draw_uniform(const sgm_search *search, const char *name, size_t trial, size_t attempt)
{
    uint32_t words[4];
    sgm__philox(search->options.seed, sgm__hash_text(name), (uint64_t)trial << 20 | attempt, words);
    return (double)((words[0] | (uint64_t)words[1] << 32) >> 11) * 0x1p-53;
}

/* Maps a uniform number to the range. A whole range gives each number the same probability, a logarithmic
 * one is rounded after the exponential. Both ends are kept to. */
static char *draw_number(const sgm_search_values *values, double uniform)
{
    double from = values->from, to = values->to;
    double number = values->whole && !values->logarithmic ? floor(from + uniform * (to - from + 1))
                                                          : sgm__search_between(values, uniform);
    if (values->whole)
        return sgm__format("%.0f", fmin(fmax(round(number), from), to));
    /* Training uses the number that the table shows, hence the rounding to 6 digits; where that leaves the
     * range, the number keeps all digits. */
    char *text = sgm__format("%.6g", number);
    double back;
    if (text == NULL || (sgm__parse_double(text, &back) && back >= from && back <= to))
        return text;
    sgm__free(text);
    return sgm__format("%.17g", fmin(fmax(number, from), to));
}

/* The text of value `index` for a trial: one of the choices, or a number of the range. */
static char *draw(const sgm_search *search, size_t index, size_t trial, size_t attempt)
{
    const sgm_search_values *values = &search->options.values[index];
    double uniform = draw_uniform(search, values->name, trial, attempt);
    if (values->choices == NULL)
        return draw_number(values, uniform);
    return sgm__strdup(values->choices[(size_t)(uniform * (double)count_choices(values))]);
}

/* Whether no earlier trial has the same texts; `trial` is the last one. */
static bool is_new(const sgm_search *search, const sgm__trial *trial)
{
    for (size_t i = 0; i + 1 < search->trial_count; i++) {
        size_t same = 0;
        while (same < search->value_count &&
               strcmp(search->trials[i].values[same].text, trial->values[same].text) == 0)
            same++;
        if (same == search->value_count)
            return false;
    }
    return true;
}

static void clear_values(const sgm_search *search, sgm__trial *trial)
{
    for (size_t i = 0; i < search->value_count; i++) {
        sgm_string_free((char *)(uintptr_t)trial->values[i].text);
        trial->values[i].text = NULL;
    }
}

/* Draws until each combination is new. Where there are fewer combinations than trials were asked for
 * (whole numbers), the search has as many trials as were found. */
static sgm_status plan_random(sgm_search *search)
{
    for (int64_t number = 0; number < search->options.trials; number++) {
        sgm__trial *trial;
        bool new = false;
        SGM_TRY(add_trial(search, &trial));
        for (size_t attempt = 0; attempt < ATTEMPTS && !new; attempt++) {
            clear_values(search, trial);
            for (size_t i = 0; i < search->value_count; i++)
                SGM_TRY(set_value(search, trial, i, draw(search, i, (size_t)number, attempt)));
            new = is_new(search, trial);
        }
        if (new)
            continue;
        clear_values(search, trial);
        sgm__free(trial->name);
        sgm__free(trial->folder);
        search->trial_count--;
        break;
    }
    return SGM_OK;
}

/* Draws only if there are more combinations than trials; otherwise every combination is a trial. */
sgm_status sgm__search_plan(sgm_search *search)
{
    const sgm_search_options *o = &search->options;
    double combinations = count_combinations(search);
    bool all = o->method == SGM_SEARCH_GRID || o->trials == 0 || combinations <= (double)o->trials;
    SGM_TRY(all ? plan_grid(search, combinations) : plan_random(search));
    SGM_TRY(show(search));
    plan_rungs(search);
    return SGM_OK;
}
