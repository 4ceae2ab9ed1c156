/* The inside of a search. Internal. */
#ifndef SGM_ENVIRONMENT_SEARCH_H
#define SGM_ENVIRONMENT_SEARCH_H

#include "environment/environment.h"
#include <sigma/search.h>
#include <stdatomic.h>

#define SGM__SEARCH_RUNGS 32

typedef struct sgm__rung {
    int64_t trials, epochs; /* epochs 0: the iterations end it */
} sgm__rung;

/* A trial with what only the search knows of it. */
typedef struct sgm__trial {
    sgm_trial shown; /* first: a pointer to it is one to the whole */
    sgm_trial_value values[SGM_SEARCH_VALUES];
    bool taken[SGM_SEARCH_VALUES]; /* set_up has asked for it */
    char *name, *folder, *error;
    bool stopped;                         /* by a rule or a command: there is nothing to go on with */
    double newest;                        /* objective, while it trains */
    double objectives[SGM__SEARCH_RUNGS]; /* at the end of each rung */
} sgm__trial;

struct sgm_search {
    sgm_env *env;
    sgm_search_options options; /* defaults filled in; texts are its own */
    size_t value_count;
    bool minimum;
    sgm__trial *trials;
    size_t trial_count, trial_capacity;
    sgm__rung rungs[SGM__SEARCH_RUNGS];
    size_t rung_count;
    bool ran;
    /* while it runs */
    atomic_bool stopping;   /* no new trials; those that run stop */
    pthread_mutex_t making; /* held while a trial's trainer is made or freed */
    pthread_mutex_t lock;   /* guards what follows, and the trials */
    sgm_status status;      /* first failure of the search itself */
    char message[800];
    bool interrupted;
    int log; /* descriptor of search.jsonl; -1: closed */
    size_t rung, ended, jobs;
    double began, written;
    int64_t epochs_done, epochs_wanted; /* done: in this run; wanted: in all that is left at its beginning */
};

/* search_plan.c: rungs, and the trials with their values. */
sgm_status sgm__search_plan(sgm_search *search);

/* search_log.c: FOLDER/search.jsonl. Opening reads what is there into the trials. */
sgm_status sgm__search_log_open(sgm_search *search);
/* Appends how a piece of a trial's training has ended; `state` is "done", "failed" or "interrupted". */
sgm_status sgm__search_log_append(sgm_search *search, const sgm__trial *trial, const char *state,
                                  double seconds);
/* The objective in the last line of the metrics of a trial's run. */
bool sgm__search_last_metric(const sgm_search *search, const sgm__trial *trial, double *value);

/* search_table.c */
sgm_status sgm__search_write_table(sgm_search *search);
/* The best of those that have climbed most, NULL: none. */
const sgm__trial *sgm__search_best(const sgm_search *search);
/* Whether `a` comes before `b`, both with an objective. */
bool sgm__search_is_better(const sgm_search *search, double a, double b);
/* 9 digits, as files have them, so that numbers that come from a file are the same. */
double sgm__search_round(double value);

/* search.c: calls set_up, and notes what it asks for. */
sgm_status sgm__search_set_up(const sgm_search *search, sgm__trial *trial, sgm_trainer *trainer);
/* search_trial.c: one piece of one trial's training, to the end of the rung; keeps what came of it. */
void sgm__search_train(sgm_search *search, sgm__trial *trial);
/* search_run.c */
/* Keeps the thread's newest error as the search's, and stops it. With the lock. */
void sgm__search_fail(sgm_search *search, sgm_status status);
void sgm__search_tell(sgm_search *search, sgm_search_event event, const sgm__trial *trial);

#endif
