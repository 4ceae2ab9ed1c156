/* Searches: checks and copies the options of sgm_search_create, and answers questions about a search.
 *
 * Planning is in search_plan.c and running in search_run.c; the map of all files is in search.h. After
 * creation a search depends on nothing of the caller's but the environment and the functions in its
 * options: all texts are copied. Also here is how set_up reads the values of a trial, since that decides
 * which of them the search sets itself. */
#include "environment/search.h"
#include "hooks/when/criteria.h"
#include "metrics/metrics.h"

#include <math.h>
#include <stdio.h>

/* --- checks --- */

/* Choices must differ: two equal ones would be the same trial twice. */
static sgm_status check_choices(const sgm_search_values *values)
{
    if (values->choices[0] == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "values of '%s': expected at least one choice", values->name);
    for (size_t i = 0; values->choices[i] != NULL; i++) {
        if (i >= SGM_SEARCH_MAXIMUM_TRIALS)
            return sgm_fail(SGM_ERROR_ARGUMENT, "values of '%s': expected at most %d choices", values->name,
                            SGM_SEARCH_MAXIMUM_TRIALS);
        for (size_t k = 0; k < i; k++)
            if (strcmp(values->choices[i], values->choices[k]) == 0)
                return sgm_fail(SGM_ERROR_ARGUMENT, "values of '%s': '%.60s' is there twice", values->name,
                                values->choices[i]);
    }
    return SGM_OK;
}

/* A grid has points only where a range has steps. Whole numbers are limited to 1e15 so that doubles hold
 * them exactly, also after arithmetic. */
static sgm_status check_range(const sgm_search_values *values, sgm_search_method method)
{
    if (!isfinite(values->from) || !isfinite(values->to) || !(values->from < values->to))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "values of '%s': expected choices, or a range from a number to a larger one; got "
                        "%.9g to %.9g",
                        values->name, values->from, values->to);
    if (values->logarithmic && !(values->from > 0))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "values of '%s': a logarithmic range must begin above 0, not at %.9g", values->name,
                        values->from);
    if (values->whole && (values->from != floor(values->from) || values->to != floor(values->to) ||
                          fabs(values->from) > 1e15 || fabs(values->to) > 1e15))
        return sgm_fail(SGM_ERROR_ARGUMENT, "values of '%s': expected a range of whole numbers",
                        values->name);
    if (values->steps == 0 && method == SGM_SEARCH_GRID)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "values of '%s': a grid wants choices, or a range with steps; or search at random",
                        values->name);
    if (values->steps != 0 && (values->steps < 2 || values->steps > SGM_SEARCH_MAXIMUM_TRIALS))
        return sgm_fail(SGM_ERROR_ARGUMENT, "values of '%s': steps: expected 2 to %d, got %lld", values->name,
                        SGM_SEARCH_MAXIMUM_TRIALS, (long long)values->steps);
    return SGM_OK;
}

/* The table ends with the first entry without a name; *count is the number of entries. */
static sgm_status check_values(const sgm_search_options *options, size_t *count)
{
    const sgm_search_values *values = options->values;
    for (*count = 0; *count < SGM_SEARCH_VALUES && values[*count].name != NULL; ++*count) {
        const sgm_search_values *own = &values[*count];
        if (own->name[0] == '\0')
            return sgm_fail(SGM_ERROR_ARGUMENT, "values %zu: expected a name", *count + 1);
        for (size_t k = 0; k < *count; k++)
            if (strcmp(values[k].name, own->name) == 0)
                return sgm_fail(SGM_ERROR_ARGUMENT, "values of '%s' are there twice", own->name);
        SGM_TRY(own->choices != NULL ? check_choices(own) : check_range(own, options->method));
    }
    return *count > 0 ? SGM_OK
                      : sgm_fail(SGM_ERROR_ARGUMENT,
                                 "expected values to search, such as {\"optimiser.learning_rate\", "
                                 "SGM_CHOICES(\"0.1\", \"0.01\")}");
}

static sgm_status check_halving(const sgm_search_options *o)
{
    if (o->pruning != SGM_PRUNING_NONE)
        return sgm_fail(SGM_ERROR_ARGUMENT, "halving stops trials itself: leave pruning out");
    if (o->factor != 0 && !(o->factor >= 2 && o->factor <= 1000))
        return sgm_fail(SGM_ERROR_ARGUMENT, "factor: expected 2 to 1000, got %g", o->factor);
    if (o->epochs == 0 || o->iterations != 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "halving shares out epochs: give them, and no iterations");
    if (o->minimum_epochs > o->epochs)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "minimum_epochs: expected at most the %lld epochs of a whole "
                        "training, got %lld",
                        (long long)o->epochs, (long long)o->minimum_epochs);
    return SGM_OK;
}

/* 0 stands for a default throughout, which `fill` puts in. */
static sgm_status check_numbers(const sgm_search_options *o)
{
    if (o->trials < 0 || o->trials > SGM_SEARCH_MAXIMUM_TRIALS)
        return sgm_fail(SGM_ERROR_ARGUMENT, "trials: expected 1 to %d, got %lld", SGM_SEARCH_MAXIMUM_TRIALS,
                        (long long)o->trials);
    if (o->at_once < 0 || o->at_once > 256)
        return sgm_fail(SGM_ERROR_ARGUMENT, "at_once: expected 1 to 256, got %lld", (long long)o->at_once);
    if (o->epochs < 0 || o->iterations < 0 || o->minimum_epochs < 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "epochs, iterations and minimum_epochs must not be negative");
    if (o->startup_trials < 0 || o->startup_trials > SGM_SEARCH_MAXIMUM_TRIALS)
        return sgm_fail(SGM_ERROR_ARGUMENT, "startup_trials: expected 1 to %d, got %lld",
                        SGM_SEARCH_MAXIMUM_TRIALS, (long long)o->startup_trials);
    if (o->prune_after_trials < 0 || o->prune_after_epochs < 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "prune_after_trials and prune_after_epochs must not be negative");
    return o->method == SGM_SEARCH_HALVING ? check_halving(o) : SGM_OK;
}

static sgm_status check(const sgm_search_options *options, size_t *value_count)
{
    if (options->method > SGM_SEARCH_TPE || options->goal > SGM_SEARCH_MINIMUM ||
        options->pruning > SGM_PRUNING_MEDIAN)
        return sgm_fail(SGM_ERROR_ARGUMENT, "unknown method %d, goal %d or pruning %d", (int)options->method,
                        (int)options->goal, (int)options->pruning);
    if (options->set_up == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected a function that sets up a trial's trainer: .set_up");
    if (options->folder == NULL || options->folder[0] == '\0')
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected a folder for the search: .folder");
    SGM_TRY(check_numbers(options));
    return check_values(options, value_count);
}

/* --- copies --- */

/* The casts remove const from texts that this search has allocated. */
static void free_values(sgm_search_values *values)
{
    for (size_t i = 0; values->choices != NULL && values->choices[i] != NULL; i++)
        sgm_string_free((char *)(uintptr_t)values->choices[i]);
    sgm__free((void *)(uintptr_t)values->choices);
    sgm_string_free((char *)(uintptr_t)values->name);
}

double sgm__search_between(const sgm_search_values *values, double share)
{
    double from = values->from, to = values->to;
    return values->logarithmic ? exp(log(from) + share * (log(to) - log(from))) : from + share * (to - from);
}

/* The text of step `step` of a range. The last step is the end of the range itself, without the rounding of
 * the formula. 6 digits: the number that is shown is the number that is trained with. */
static char *step_text(const sgm_search_values *values, int64_t step)
{
    int64_t last = values->steps - 1;
    double number = step == last ? values->to : sgm__search_between(values, (double)step / (double)last);
    return values->whole ? sgm__format("%.0f", number) : sgm__format("%.6g", number);
}

/* Texts of the choices, NULL behind the last: those that were given, or those of a range's steps. Whole
 * steps that round to the same number are adjacent and become one. */
static sgm_status copy_choices(sgm_search_values *own, const sgm_search_values *given)
{
    size_t count = 0, made = 0;
    while (given->choices != NULL && given->choices[count] != NULL)
        count++;
    if (given->choices == NULL)
        count = (size_t)given->steps;
    const char **choices = sgm__calloc(count + 1, sizeof *choices);
    if (choices == NULL)
        return SGM_ERROR_MEMORY;
    own->choices = choices;
    for (size_t i = 0; i < count; i++) {
        char *text = given->choices != NULL ? sgm__strdup(given->choices[i]) : step_text(given, (int64_t)i);
        if (text == NULL)
            return sgm__last_failure();
        if (given->choices == NULL && made > 0 && strcmp(choices[made - 1], text) == 0)
            sgm__free(text);
        else
            choices[made++] = text;
    }
    return SGM_OK;
}

/* A range without steps keeps choices == NULL: its numbers are drawn. */
static sgm_status copy_values(sgm_search_values *own, const sgm_search_values *given)
{
    *own = *given;
    own->choices = NULL;
    own->name = sgm__strdup(given->name);
    if (own->name == NULL)
        return SGM_ERROR_MEMORY;
    return given->choices != NULL || given->steps > 0 ? copy_choices(own, given) : SGM_OK;
}

static bool is_all_choices(const sgm_search *search)
{
    for (size_t i = 0; i < search->value_count; i++)
        if (search->options.values[i].choices == NULL)
            return false;
    return true;
}

/* Copies the options and puts in the defaults, then plans. A failure leaves a search that sgm_search_free
 * can free. */
static sgm_status fill(sgm_search *search, const sgm_search_options *given)
{
    sgm_search_options *own = &search->options;
    *own = *given;
    own->folder = own->objective = NULL;
    memset(own->values, 0, sizeof own->values);
    for (size_t i = 0; i < search->value_count; i++)
        SGM_TRY(copy_values(&own->values[i], &given->values[i]));
    own->folder = sgm__strdup(given->folder);
    own->objective = sgm__strdup(given->objective != NULL ? given->objective : "validation.loss");
    if (own->folder == NULL || own->objective == NULL)
        return SGM_ERROR_MEMORY;
    search->minimum = own->goal == SGM_SEARCH_MINIMUM ||
                      (own->goal == SGM_SEARCH_BY_NAME && sgm__is_better_below(own->objective));
    if (own->epochs == 0 && own->iterations == 0)
        own->epochs = 1;
    if (own->at_once == 0)
        own->at_once = 1;
    if (own->factor == 0)
        own->factor = 3;
    if (own->minimum_epochs == 0)
        own->minimum_epochs = 1;
    if (own->startup_trials == 0)
        own->startup_trials = 10;
    if (own->prune_after_trials == 0)
        own->prune_after_trials = 5;
    if (own->prune_after_epochs == 0)
        own->prune_after_epochs = 1;
    bool draws = own->method == SGM_SEARCH_RANDOM || own->method == SGM_SEARCH_TPE;
    if (own->trials == 0 && (draws || !is_all_choices(search)))
        own->trials = 20;
    return sgm__search_plan(search);
}

sgm_search *sgm_search_create_with(sgm_env *env, const sgm_search_options *given)
{
    sgm_search_options options;
    size_t value_count = 0;
    if (env == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT, "sgm_search_create: expected an environment, got NULL");
        return NULL;
    }
    if (sgm__env_check(env) != SGM_OK ||
        sgm__options_read(&options, sizeof options, given, "sgm_search_create") != SGM_OK)
        return NULL;
    if (check(&options, &value_count) != SGM_OK) {
        sgm__fail_within("search");
        return NULL;
    }
    sgm_search *search = sgm__calloc(1, sizeof *search);
    if (search == NULL)
        return NULL;
    pthread_mutex_init(&search->making, NULL);
    pthread_mutex_init(&search->lock, NULL);
    search->env = env;
    search->log = -1;
    search->value_count = value_count;
    if (fill(search, &options) != SGM_OK) {
        sgm__fail_within("search");
        sgm_search_free(search);
        return NULL;
    }
    return search;
}

/* Each text that is shared by a trial's members is freed once, through its own pointer. */
void sgm_search_free(sgm_search *search)
{
    if (search == NULL)
        return;
    for (size_t i = 0; i < search->trial_count; i++) {
        sgm__trial *trial = &search->trials[i];
        for (size_t k = 0; k < search->value_count; k++) {
            sgm_string_free((char *)(uintptr_t)trial->values[k].text);
            sgm_string_free((char *)(uintptr_t)trial->values[k].brief);
        }
        sgm__free(trial->name);
        sgm__free(trial->folder);
        sgm__free(trial->error);
        sgm__free(trial->curve);
    }
    sgm__free(search->trials);
    for (size_t i = 0; i < search->value_count; i++)
        free_values(&search->options.values[i]);
    sgm_string_free((char *)(uintptr_t)search->options.folder);
    sgm_string_free((char *)(uintptr_t)search->options.objective);
    pthread_mutex_destroy(&search->lock);
    pthread_mutex_destroy(&search->making);
    sgm__free(search);
}

/* --- looking --- */

size_t sgm_search_count(const sgm_search *search)
{
    return search != NULL ? search->trial_count : 0;
}

const sgm_trial *sgm_search_trial_at(const sgm_search *search, size_t index)
{
    return search != NULL && index < search->trial_count ? &search->trials[index].shown : NULL;
}

bool sgm_search_rung(const sgm_search *search, size_t rung, int64_t *trials, int64_t *epochs)
{
    if (search == NULL || rung >= search->rung_count)
        return false;
    *trials = search->rungs[rung].trials;
    *epochs = search->rungs[rung].epochs;
    return true;
}

const sgm_trial *sgm_search_best(const sgm_search *search)
{
    const sgm__trial *best = search != NULL ? sgm__search_best(search) : NULL;
    return best != NULL ? &best->shown : NULL;
}

/* The trial whose set_up runs on this thread. Only values that set_up reads count as taken; reads by other
 * threads, or by progress functions, do not. */
static _Thread_local sgm__trial *in_set_up;

sgm_status sgm__search_set_up(const sgm_search *search, sgm__trial *trial, sgm_trainer *trainer)
{
    in_set_up = trial;
    sgm_status status = search->options.set_up(search->options.user, &trial->shown, trainer);
    in_set_up = NULL;
    return status;
}

/* Finds a value of a trial by name and marks it as taken if set_up of this very trial is reading it.
 * Returns NULL, with an error, if the search has no such value. */
static const sgm_trial_value *find_value(const sgm_trial *trial, const char *name)
{
    for (size_t i = 0; trial != NULL && name != NULL && i < trial->value_count; i++)
        if (strcmp(trial->values[i].name, name) == 0) {
            if (in_set_up != NULL && &in_set_up->shown == trial)
                in_set_up->taken[i] = true;
            return &trial->values[i];
        }
    sgm_fail(SGM_ERROR_NOT_FOUND, "the search has no values of '%.100s'", name != NULL ? name : "");
    return NULL;
}

const char *sgm_trial_text(const sgm_trial *trial, const char *name)
{
    const sgm_trial_value *value = find_value(trial, name);
    return value != NULL ? value->text : NULL;
}

/* NaN, with an error, if the text is no number. */
double sgm_trial_number(const sgm_trial *trial, const char *name)
{
    const sgm_trial_value *value = find_value(trial, name);
    if (value != NULL && isnan(value->number))
        sgm_fail(SGM_ERROR_TYPE, "'%s' of %s is no number: '%.60s'", name, trial->name, value->text);
    return value != NULL ? value->number : NAN;
}
