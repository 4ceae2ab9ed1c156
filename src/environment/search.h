/* The struct behind sgm_search, and what the files search*.c share.
 *
 * search.c checks and copies what was asked for; search_plan.c makes trials and rungs from it, with values
 * that search_draw.c draws; search_run.c runs rung after rung on several threads; search_trial.c trains one
 * trial to the end of a rung; search_tpe.c chooses values by the results so far; search_prune.c stops trials
 * that others leave behind; search_log.c keeps FOLDER/search.jsonl, from which an interrupted search goes on;
 * search_metrics.c reads what trials have left in their folders; search_table.c ranks the results and
 * writes tables; search_importance.c says which values matter. Terms: a trial is one combination of values; a
 * rung is a stage of successive halving, at whose end only the best trials go on (grid and random search have
 * one rung).
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
    bool open;                   /* TPE has not chosen its values yet: they are texts "" */
    bool stopped;                /* a rule or a command has ended its training: later rungs do not train it */
    double newest;               /* objective after the newest epoch of the current piece of training */
    double objectives[SGM__SEARCH_RUNGS]; /* at the end of each rung; NaN: not reached */
    /* With pruning: the objective after each epoch, NaN where it is not known. */
    double *curve;
    size_t curve_length, curve_capacity;
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

/* Makes the short texts of a trial's values anew, and shows the values unless they are still open
 * (search_plan.c). */
sgm_status sgm__search_show_values(const sgm_search *search, sgm__trial *trial);

/* --- search_draw.c --- */
/* Takes `text` (NULL: memory was short). The value's number is NaN if the text is none. */
sgm_status sgm__search_set_value(const sgm_search *search, sgm__trial *trial, size_t index, char *text);
void sgm__search_clear_values(const sgm_search *search, sgm__trial *trial);
size_t sgm__search_count_choices(const sgm_search_values *values);
/* The place of a text among the choices; their number: it is none of them. */
size_t sgm__search_find_choice(const sgm_search_values *values, const char *text);
/* The number of combinations, infinite if a range is not of whole numbers; a double, as the product may
 * exceed integers. Combination `point` is written in a mixed radix, the last value changing fastest. */
double sgm__search_count_points(const sgm_search *search);
sgm_status sgm__search_set_point(const sgm_search *search, sgm__trial *trial, size_t point);
/* Where a value lies in the unit interval: linear, or by the logarithm, in a range; whole numbers and choices
 * in the middle of equal parts. The other one gives the number of a range. */
double sgm__search_unit_of(const sgm_search_values *values, const sgm_trial_value *value);
double sgm__search_number_at(const sgm_search_values *values, double unit);
/* A number of a range as a trial's text, rounded and kept within the range. */
char *sgm__search_number_text(const sgm_search_values *values, double number);
/* Whether no other trial has the same values. */
bool sgm__search_is_new(const sgm_search *search, const sgm__trial *trial);
/* What drawing knows from trial to trial; zeros at first. Free `used` with sgm__free. */
typedef struct sgm__search_points {
    bool crowded; /* most combinations are used up: those that are left are counted off */
    bool *used;   /* by point; NULL: not needed so far, or too many to count */
    size_t count;
} sgm__search_points;
/* Draws values for a trial that no other one has; *found false: there are none left. */
sgm_status sgm__search_draw(const sgm_search *search, sgm__trial *trial, sgm__search_points *points,
                            bool *found);

/* --- search_tpe.c --- */
/* Chooses the values of a trial by the results of the others. With the lock. */
sgm_status sgm__search_suggest(const sgm_search *search, sgm__trial *trial);
/* The logarithm at `x` of a Parzen estimator's density on the unit interval, given observations in the order
 * of their trials. For tests; `count` may be 0. NaN: out of memory. */
double sgm__parzen_log_density(const double *observations, size_t count, double x);

/* --- search_prune.c --- */
/* Keeps the objective after an epoch (from 1) in the trial's curve. */
sgm_status sgm__search_curve_set(sgm__trial *trial, int64_t epoch, double objective);
/* Whether the trial is to end after `epoch` epochs. With the lock. */
bool sgm__search_prunes(const sgm_search *search, const sgm__trial *trial, int64_t epoch);

/* --- search_log.c --- */
/* Opens FOLDER/search.jsonl; with `resume`, reads its lines into the trials first. */
sgm_status sgm__search_log_open(sgm_search *search);
/* Appends a line about how a piece of a trial's training has ended; `state` is "done", "pruned",
 * "failed" or "interrupted", `seconds` the duration of this piece. With the lock. */
sgm_status sgm__search_log_append(sgm_search *search, const sgm__trial *trial, const char *state,
                                  double seconds);
/* Appends a line about a trial of TPE that begins: its values. */
sgm_status sgm__search_log_begin(sgm_search *search, const sgm__trial *trial);

/* --- search_metrics.c --- */
/* Cuts the trial's curve to so many epochs, and reads what it lacks of them from its metrics.jsonl; what is
 * not there stays unknown. */
sgm_status sgm__search_read_curve(const sgm_search *search, sgm__trial *trial, int64_t epochs);
/* Reads the objective from the last line of the trial's metrics.jsonl. False: it is not there. */
bool sgm__search_last_metric(const sgm_search *search, const sgm__trial *trial, double *value);

/* --- search_table.c --- */
/* Writes FOLDER/results.csv. With the lock, or when no trial runs. */
sgm_status sgm__search_write_table(sgm_search *search);
/* All trials in the order of the tables; the caller frees the list. NULL: out of memory. */
typedef struct sgm__ranked {
    const sgm_search *search;
    const sgm__trial *trial;
} sgm__ranked;
sgm__ranked *sgm__search_rank(const sgm_search *search);
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
