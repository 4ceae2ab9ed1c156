/* Runs a search: one rung after the other, each with several trials side by side.
 *
 * sgm_search_run claims the environment and the folder, reads the log of an earlier run, and calls
 * run_rungs. In each rung, `at_once` threads take trials from a list until it is empty (run_jobs);
 * search_trial.c trains one. At the end of a rung the thread that runs the search alone decides which
 * trials go on (select_best). Functions between two rungs take no lock for the trials, because no other
 * thread is at work then. */
#include "environment/search.h"
#include "runs/run_folder.h"
#include "trainer/signals.h"
#include "trainer/trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* --- what happens on the way --- */

/* Trials notice the flag at their next progress call. */
void sgm__search_stop(sgm_search *search)
{
    atomic_store(&search->stopping, true);
}

void sgm__search_fail(sgm_search *search, sgm_status status)
{
    atomic_store(&search->stopping, true);
    if (search->status != SGM_OK)
        return;
    search->status = status;
    snprintf(search->message, sizeof search->message, "%s", sgm_last_error());
}

/* An estimate by the mean time of an epoch so far; by the time of a trial where only iterations are
 * counted. Negative: unknown. With the lock. */
static double seconds_left(const sgm_search *search)
{
    double done = (double)search->epochs_done, left = (double)(search->epochs_wanted - search->epochs_done);
    if (search->options.epochs == 0) {
        done = (double)search->ended;
        left = (double)(search->jobs - search->ended);
    }
    return done > 0 && left >= 0 ? (sgm__now() - search->began) * left / done : -1;
}

/* A progress function that returns false stops the search. */
void sgm__search_tell(sgm_search *search, sgm_search_event event, const sgm__trial *trial)
{
    const sgm__trial *best = sgm__search_best(search);
    const sgm_search_progress progress = {.event = event,
                                          .trial = trial != NULL ? &trial->shown : NULL,
                                          .rung = search->rung,
                                          .rungs = search->rung_count,
                                          .ended = search->ended,
                                          .trials = search->jobs,
                                          .best = best != NULL ? &best->shown : NULL,
                                          .objective = trial != NULL ? trial->newest : NAN,
                                          .seconds_left = seconds_left(search)};
    if (search->options.progress != NULL && !search->options.progress(search->options.user, &progress))
        atomic_store(&search->stopping, true);
}

/* --- a rung --- */

/* The trials of a rung that are to be trained, for the threads to take. */
typedef struct rung_jobs {
    sgm_search *search;
    sgm__trial **trials;
    size_t count, next; /* `next` is guarded by the search's lock */
} rung_jobs;

/* Values that are chosen now are logged before they are trained with: other results may be there when the
 * search is resumed, and the trial's checkpoint belongs to these values. With the lock. */
static bool choose_values(sgm_search *search, sgm__trial *trial)
{
    if (!trial->open)
        return true;
    sgm_status status = sgm__search_suggest(search, trial);
    if (status == SGM_OK)
        status = sgm__search_log_begin(search, trial);
    if (status != SGM_OK)
        sgm__search_fail(search, status);
    return status == SGM_OK;
}

/* NULL: none is left, or the search stops. */
static sgm__trial *next_job(rung_jobs *jobs)
{
    sgm__trial *trial = NULL;
    pthread_mutex_lock(&jobs->search->lock);
    if (jobs->next < jobs->count && !atomic_load(&jobs->search->stopping))
        trial = jobs->trials[jobs->next++];
    if (trial != NULL && !choose_values(jobs->search, trial))
        trial = NULL;
    pthread_mutex_unlock(&jobs->search->lock);
    return trial;
}

/* One thread of a rung. */
static void *work(void *argument)
{
    rung_jobs *jobs = argument;
    for (sgm__trial *trial; (trial = next_job(jobs)) != NULL;)
        sgm__search_train(jobs->search, trial);
    return NULL;
}

/* The calling thread is one of the workers. If the system refuses threads, or memory for their list, the
 * others do all the work, only later. */
static void run_jobs(rung_jobs *jobs)
{
    size_t wanted = (size_t)jobs->search->options.at_once, started = 0;
    pthread_t *threads = sgm__calloc(wanted, sizeof *threads);
    for (; threads != NULL && started + 1 < wanted && started + 1 < jobs->count; started++)
        if (pthread_create(&threads[started], NULL, work, jobs) != 0)
            break;
    work(jobs);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    sgm__free(threads);
}

/* --- who goes on --- */

/* A trial for sorting; `search` is there because qsort passes no context. */
typedef struct climber {
    const sgm_search *search;
    sgm__trial *trial;
    double objective;
} climber;

/* Better objectives first, then smaller numbers, so that the order is the same on every run. */
static int compare(const void *left, const void *right)
{
    const climber *a = left, *b = right;
    if (a->objective != b->objective)
        return sgm__search_is_better(a->search, a->objective, b->objective) ? -1 : 1;
    return a->trial->shown.number < b->trial->shown.number ? -1 : 1;
}

static int by_number(const void *left, const void *right)
{
    sgm__trial *const *a = left, *const *b = right;
    return (*a)->shown.number < (*b)->shown.number ? -1 : 1;
}

/* Keeps those of the first `count` trials that go on to the next rung, in the order of their numbers at
 * the front of `trials`, and returns how many they are. The others are marked as dropped. A trial that has
 * an objective at this rung may since have failed in a later one, in the run before a resume; it still
 * takes its place here, as it did then. */
static size_t select_best(sgm_search *search, sgm__trial **trials, size_t count, size_t rung)
{
    size_t good = 0, kept = (size_t)search->rungs[rung + 1].trials;
    climber *list = sgm__calloc(count + 1, sizeof *list);
    if (list == NULL) {
        sgm__search_fail(search, SGM_ERROR_MEMORY);
        return 0;
    }
    for (size_t i = 0; i < count; i++)
        if (!isnan(trials[i]->objectives[rung]))
            list[good++] = (climber){search, trials[i], trials[i]->objectives[rung]};
    qsort(list, good, sizeof *list, compare);
    kept = kept < good ? kept : good;
    for (size_t i = 0; i < kept; i++)
        trials[i] = list[i].trial;
    for (size_t i = kept; i < good; i++)
        list[i].trial->shown.state = SGM_TRIAL_DROPPED;
    qsort(trials, kept, sizeof *trials, by_number);
    sgm__free(list);
    return kept;
}

/* --- all rungs --- */

/* Whether a trial takes its objective to the next rung without training. A trial that its own rules have
 * stopped has nothing to go on with, so it competes with the objective that it has. */
static bool climbs_alone(sgm_search *search, sgm__trial *trial, size_t rung)
{
    if (!trial->stopped || rung == 0 || trial->shown.rung != (int64_t)rung)
        return false;
    trial->objectives[rung] = trial->shown.objective = trial->objectives[rung - 1];
    trial->shown.rung = (int64_t)rung + 1;
    search->epochs_wanted -= search->rungs[rung].epochs - search->rungs[rung - 1].epochs;
    return true;
}

/* Whether a trial is to be trained in the current rung: it has not failed, was not pruned, has not finished
 * the rung before a resume, and was not stopped. */
static bool is_wanted(sgm_search *search, sgm__trial *trial)
{
    return trial->shown.state != SGM_TRIAL_FAILED && trial->shown.state != SGM_TRIAL_DROPPED &&
           trial->shown.rung <= (int64_t)search->rung && !climbs_alone(search, trial, search->rung);
}

/* Trains the first `count` trials of `trials` as far as they need it; `jobs` is room for as many. Returns
 * whether there was anything to train. */
static bool run_rung(sgm_search *search, sgm__trial **trials, size_t count, sgm__trial **jobs)
{
    rung_jobs own = {.search = search, .trials = jobs};
    for (size_t i = 0; i < count; i++)
        if (is_wanted(search, trials[i]))
            jobs[own.count++] = trials[i];
    pthread_mutex_lock(&search->lock);
    search->jobs = count;
    search->ended = count - own.count;
    pthread_mutex_unlock(&search->lock);
    if (own.count > 0)
        run_jobs(&own);
    return own.count > 0;
}

static bool goes_on(const sgm_search *search)
{
    return search->status == SGM_OK && !atomic_load(&search->stopping);
}

/* `trials` and `jobs` are arrays of trial_count pointers. A rung that a resumed search finds finished is
 * not reported again. */
static void run_rungs(sgm_search *search, sgm__trial **trials, sgm__trial **jobs)
{
    size_t count = search->trial_count;
    for (size_t i = 0; i < count; i++)
        trials[i] = &search->trials[i];
    for (size_t rung = 0; rung < search->rung_count && count > 0 && goes_on(search); rung++) {
        search->rung = rung;
        bool ran = run_rung(search, trials, count, jobs);
        if (!goes_on(search))
            break;
        if (rung + 1 < search->rung_count)
            count = select_best(search, trials, count, rung);
        if (!ran)
            continue;
        pthread_mutex_lock(&search->lock);
        sgm__search_tell(search, SGM_SEARCH_RUNG_ENDS, sgm__search_best(search));
        pthread_mutex_unlock(&search->lock);
    }
}

/* --- beginning and end --- */

/* Adds up the epochs that are left to train, as far as they are known before it is known which trials go
 * on: the number of trials in each rung is. */
static void count_epochs(sgm_search *search)
{
    for (size_t rung = 0; rung < search->rung_count; rung++) {
        int64_t before = rung > 0 ? search->rungs[rung - 1].epochs : 0, left = search->rungs[rung].trials;
        for (size_t i = 0; i < search->trial_count; i++)
            left -= search->trials[i].shown.rung > (int64_t)rung;
        if (left > 0)
            search->epochs_wanted += left * (search->rungs[rung].epochs - before);
    }
}

/* The failure of the search; else an interruption; else whether any trial has a result. */
static sgm_status outcome(const sgm_search *search)
{
    if (search->status != SGM_OK)
        return sgm_fail(search->status, "%s", search->message);
    if (search->interrupted || atomic_load(&search->stopping))
        return sgm_fail(SGM_ERROR_INTERRUPTED, "the search was stopped before its end");
    const sgm__trial *first = &search->trials[0];
    if (sgm__search_best(search) == NULL)
        return sgm_fail(SGM_ERROR_STATE, "all %zu trials have failed, the first one so: %s",
                        search->trial_count, first->error != NULL ? first->error : "unknown");
    return SGM_OK;
}

/* With the folder locked. The table is written in any case, since an interrupted search has results too. */
static sgm_status run_in_folder(sgm_search *search)
{
    sgm__trial **trials = sgm__calloc(search->trial_count * 2, sizeof *trials);
    if (trials == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = sgm__search_log_open(search);
    if (status == SGM_OK) {
        count_epochs(search);
        search->began = search->written = sgm__now();
        run_rungs(search, trials, trials + search->trial_count);
        status = sgm__search_write_table(search);
        sgm_status whole = outcome(search);
        status = whole != SGM_OK ? whole : status;
    }
    if (search->log >= 0)
        close(search->log);
    search->log = -1;
    sgm__free(trials);
    return status;
}

/* Locks the folder against another process that would run the same search. */
static sgm_status run(sgm_search *search)
{
    int lock = -1;
    SGM_TRY(sgm__make_folders(search->options.folder));
    sgm_status status = sgm__run_folder_lock(search->options.folder, &lock);
    if (status == SGM_OK)
        status = run_in_folder(search);
    sgm__run_folder_close(lock);
    return status;
}

/* Signals are caught for the whole search, so that one that comes between two trials is not lost. Monitors
 * expect at_once trainers. */
sgm_status sgm_search_run(sgm_search *search)
{
    if (search == NULL)
        return sgm__fail_null("expected a search, got NULL");
    if (search->ran)
        return sgm_fail(SGM_ERROR_STATE, "a search runs once; make another one to go on with the folder");
    SGM_TRY(sgm__env_begin_search(search->env, search));
    search->ran = true;
    sgm__signals_catch(search->options.catch_interrupt);
    sgm__env_expect(search->env, (size_t)search->options.at_once);
    sgm_status status = run(search);
    sgm__env_expect(search->env, 1);
    sgm__signals_release(search->options.catch_interrupt);
    sgm__env_end_search(search->env);
    return status;
}
