/* The struct behind sgm_search, and what the files search*.c share.
 *
 * search.c checks and copies what was asked for; search_plan.c makes trials and rungs from it; search_run.c
 * runs rung after rung on several threads; search_trial.c trains one trial to the end of a rung; search_log.c
 * keeps FOLDER/search.jsonl, from which an interrupted search goes on; search_table.c ranks the results and
 * writes tables. Terms: a trial is one combination of values; a rung is a stage of successive halving, at
 * whose end only the best trials go on (grid and random search have one rung).
 *
 * Locks, in the order in which they may be taken: `making`, trainers' locks, `lock`. Internal. */
#ifndef SGM_ENVIRONMENT_SEARCH_H
#define SGM_ENVIRONMENT_SEARCH_H

#include "environment/environment.h"
#include <sigma/environment.h>
#include <stdatomic.h>

/* More than a search can have: a factor of 2 and the largest number of trials make 14. */
#define SGM__SEARCH_RUNGS 32

/* How many trials take part in a rung, and up to how many epochs in all they train. */
typedef struct sgm__rung {
    int64_t trials, epochs; /* epochs 0: the search counts iterations */
} sgm__rung;

/* A trial, with what only the search knows of it. While the search runs, its lock guards all of it but
 * what search_trial.c keeps for the thread that trains the trial (`taken`, `stopped`). */
typedef struct sgm__trial {
    /* What the program sees; the first member, so that a pointer to it is one to the whole. */
    sgm_trial shown;
    sgm_trial_value values[SGM_SEARCH_VALUES];
    /* Set_up has read the value, so it is not set in the registry. */
    bool taken[SGM_SEARCH_VALUES];
    char *name, *folder, *error; /* what `shown` points to */
    bool stopped;                /* a rule or a command has ended its training: later rungs do not train it */
    double newest;               /* objective after the newest epoch of the current piece of training */
    double objectives[SGM__SEARCH_RUNGS]; /* at the end of each rung; NaN: not reached */
} sgm__trial;

/* A search. Everything up to `ran` is fixed by sgm_search_create. */
struct sgm_search {
    sgm_env *env;
    sgm_search_options options; /* with defaults filled in; its texts are copies */
    size_t value_count;
    bool minimum; /* a smaller objective is better */
    sgm__trial *trials;
    size_t trial_count, trial_capacity;
    sgm__rung rungs[SGM__SEARCH_RUNGS];
    size_t rung_count;
    bool ran; /* a search runs once */
    /* The rest is used while the search runs. `stopping`: no trial begins any more, and running ones stop. */
    atomic_bool stopping;
    /* Held while a trial's trainer is made or freed, which the environment allows one thread at a time. */
    pthread_mutex_t making;
    pthread_mutex_t lock; /* guards what follows, and the trials */
    sgm_status status;    /* the first failure of the search itself, as opposed to one of a trial */
    char message[800];
    bool interrupted; /* a trial was interrupted */
    int log;          /* descriptor of search.jsonl; -1: closed */
    /* The current rung; how many of its trials have ended; how many trials it has. */
    size_t rung, ended, jobs;
    /* Values of sgm__now() when the search began, and when results.csv was last written. */
    double began, written;
    /* For the time that is left: epochs trained in this run, and all that were to be trained at its
     * beginning, less those that trials will not train because they have failed or stopped early. */
    int64_t epochs_done, epochs_wanted;
};

/* The number of a range at `share`, 0 to 1, of its length, or of that of its logarithms. */
double sgm__search_between(const sgm_search_values *values, double share);
/* Makes the trials with their values, and the rungs (search_plan.c). */
sgm_status sgm__search_plan(sgm_search *search);

/* Opens FOLDER/search.jsonl (search_log.c); with `resume`, reads its lines into the trials first. */
sgm_status sgm__search_log_open(sgm_search *search);
/* Appends a line about how a piece of a trial's training has ended; `state` is "done", "failed" or
 * "interrupted", `seconds` the duration of this piece. With the lock. */
sgm_status sgm__search_log_append(sgm_search *search, const sgm__trial *trial, const char *state,
                                  double seconds);
/* Reads the objective from the last line of the trial's metrics.jsonl. False: it is not there. */
bool sgm__search_last_metric(const sgm_search *search, const sgm__trial *trial, double *value);

/* Writes FOLDER/results.csv (search_table.c). With the lock, or when no trial runs. */
sgm_status sgm__search_write_table(sgm_search *search);
/* The best of the trials that have climbed the most rungs; NULL: none has an objective. */
const sgm__trial *sgm__search_best(const sgm_search *search);
/* Whether objective `a` is better than `b`; neither is NaN. */
bool sgm__search_is_better(const sgm_search *search, double a, double b);
/* Rounds to 9 significant digits, as files have them, so that a number that was read from a file equals
 * the one that was computed. */
double sgm__search_round(double value);

/* Calls the program's set_up, and notes in `taken` which values it reads (search.c). */
sgm_status sgm__search_set_up(const sgm_search *search, sgm__trial *trial, sgm_trainer *trainer);
/* Trains one trial from where it stands to the end of the rung, and keeps the outcome (search_trial.c). */
void sgm__search_train(sgm_search *search, sgm__trial *trial);
/* Keeps the thread's newest error as the failure of the search, unless there is one, and stops the search.
 * With the lock, or when no trial runs (search_run.c). */
void sgm__search_fail(sgm_search *search, sgm_status status);
/* Calls the program's progress function, if there is one. With the lock; `trial` may be NULL. */
void sgm__search_tell(sgm_search *search, sgm_search_event event, const sgm__trial *trial);

#endif
