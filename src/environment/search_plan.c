/* Plans a search: which trials with which values, and how many trials and epochs each rung has.
 *
 * Called once, by sgm_search_create. A grid has all combinations, the last value changing fastest. Random
 * search draws (Bergstra and Bengio, 2012; search_draw.c). Successive halving (Jamieson and Talwalkar, 2016)
 * draws like random search, or takes all combinations, and divides the epochs among rungs as in Hyperband (Li
 * et al., 2018). TPE draws its first trials, and chooses the values of the others when they begin
 * (search_tpe.c). The plan is a function of the options alone, so a resumed search finds the same trials. */
#include "environment/search.h"

#include <math.h>

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

sgm_status sgm__search_show_values(const sgm_search *search, sgm__trial *trial)
{
    for (size_t i = 0; i < search->value_count; i++) {
        char *brief = brief_text(&search->options.values[i], trial->values[i].text);
        if (brief == NULL)
            return SGM_ERROR_MEMORY;
        sgm_string_free((char *)(uintptr_t)trial->values[i].brief);
        trial->values[i].brief = brief;
    }
    trial->shown.value_count = trial->open ? 0 : search->value_count;
    return SGM_OK;
}

/* Sets the pointers of `shown` and the short texts. Last, as adding trials moves the array. */
static sgm_status show(sgm_search *search)
{
    for (size_t i = 0; i < search->trial_count; i++) {
        sgm__trial *trial = &search->trials[i];
        trial->shown.name = trial->name;
        trial->shown.folder = trial->folder;
        trial->shown.values = trial->values;
        SGM_TRY(sgm__search_show_values(search, trial));
    }
    return SGM_OK;
}

/* Every combination, the last value changing fastest. */
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
        SGM_TRY(sgm__search_set_point(search, trial, point));
    }
    return SGM_OK;
}

static void remove_last_trial(sgm_search *search)
{
    sgm__trial *trial = &search->trials[--search->trial_count];
    sgm__search_clear_values(search, trial);
    sgm__free(trial->name);
    sgm__free(trial->folder);
}

/* Adds `count` trials with combinations that are new. Where there are fewer (a range that is narrower than
 * the digits of its numbers), the search has as many trials as were found. */
static sgm_status plan_random(sgm_search *search, int64_t count)
{
    sgm__search_points points = {0};
    sgm_status status = SGM_OK;
    bool found = true;
    for (int64_t number = 0; number < count && found && status == SGM_OK; number++) {
        sgm__trial *trial;
        status = add_trial(search, &trial);
        if (status == SGM_OK)
            status = sgm__search_draw(search, trial, &points, &found);
        if (status == SGM_OK && !found)
            remove_last_trial(search);
    }
    sgm__free(points.used);
    return status;
}

/* The first trials of TPE are drawn; the values of the others stay open until they begin. */
static sgm_status plan_tpe(sgm_search *search)
{
    const sgm_search_options *o = &search->options;
    SGM_TRY(plan_random(search, o->startup_trials < o->trials ? o->startup_trials : o->trials));
    while (search->trial_count >= (size_t)o->startup_trials && search->trial_count < (size_t)o->trials) {
        sgm__trial *trial;
        SGM_TRY(add_trial(search, &trial));
        trial->open = true;
        for (size_t i = 0; i < search->value_count; i++)
            SGM_TRY(sgm__search_set_value(search, trial, i, sgm__strdup("")));
    }
    return SGM_OK;
}

/* Draws only if there are more combinations than trials; otherwise every combination is a trial. */
sgm_status sgm__search_plan(sgm_search *search)
{
    const sgm_search_options *o = &search->options;
    double combinations = sgm__search_count_points(search);
    bool all = o->method == SGM_SEARCH_GRID || o->trials == 0 || combinations <= (double)o->trials;
    SGM_TRY(all                           ? plan_grid(search, combinations)
            : o->method == SGM_SEARCH_TPE ? plan_tpe(search)
                                          : plan_random(search, o->trials));
    SGM_TRY(show(search));
    plan_rungs(search);
    return SGM_OK;
}
