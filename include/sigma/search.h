/* Search: many trainings with different values, and which of them is best.
 *
 *     static sgm_status set_up(void *user, const sgm_trial *trial, sgm_trainer *trainer)
 *     {
 *         sgm_trainer_network(trainer, "input(4) + dense(16, tanh) + dense(3) + softmax_cross_entropy");
 *         sgm_trainer_data(trainer, sgm_minibatches(iris, .size = (int64_t)sgm_trial_number(trial,
 * "batch"))); return sgm_trainer_optimiser(trainer, sgm_adam(.learning_rate = 0.01));
 *     }
 *
 *     sgm_search *search = sgm_search_create(env, .method = SGM_SEARCH_HALVING, .set_up = set_up, .trials =
 * 27, .values = {{"optimiser.learning_rate", .from = 1e-4, .to = 0.1, .logarithmic = true},
 *                                                       {"batch", SGM_CHOICES("8", "16", "32")}},
 *                                            .objective = "training.loss", .epochs = 27, .folder = "found");
 *     if (sgm_search_run(search) == SGM_OK)
 *         printf("%s\n", sgm_search_best(search)->name);
 *     sgm_search_free(search);
 *
 * A trial is a trainer of the environment that lives while it runs, with a folder of its own below the
 * search's: FOLDER/trial-007. FOLDER/search.jsonl has a line for each piece of training that has ended, so
 * that a search that was interrupted or killed goes on where it was; FOLDER/results.csv is the table. */
#ifndef SIGMA_SEARCH_H
#define SIGMA_SEARCH_H

#include <sigma/environment.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SGM_SEARCH_VALUES 32
#define SGM_SEARCH_MAXIMUM_TRIALS 10000

typedef enum sgm_search_method {
    SGM_SEARCH_GRID,   /* every combination; the last value changes fastest */
    SGM_SEARCH_RANDOM, /* drawn independently (Bergstra and Bengio, 2012); no combination twice */
    /* Successive halving (Jamieson and Talwalkar, 2016), with rungs as Hyperband has them (Li et al., 2018):
     * all trials train a little, the best 1/factor of them go on from their checkpoints, and so on. */
    SGM_SEARCH_HALVING
} sgm_search_method;
typedef enum sgm_search_goal {
    SGM_SEARCH_BY_NAME, /* minimum where the last part contains "loss", "cost", "error", "perplexity" */
    SGM_SEARCH_MAXIMUM,
    SGM_SEARCH_MINIMUM
} sgm_search_goal;

/* What one value may be: choices, or a number in a range. */
typedef struct sgm_search_values {
    const char *name;           /* an identifier of the trainer, or a name that only set_up knows */
    const char *const *choices; /* texts, NULL behind the last; NULL: a range */
    double from, to;            /* a range, both ends included; not for a grid, unless there are steps */
    bool logarithmic;           /* the logarithm is uniform; from > 0 */
    bool whole;                 /* whole numbers only */
    int64_t steps;              /* at least 2: so many choices, evenly spread; 0: any number of the range */
} sgm_search_values;
#define SGM_CHOICES(...)                                                                                     \
    (const char *const[])                                                                                    \
    {                                                                                                        \
        __VA_ARGS__, NULL                                                                                    \
    }

typedef enum sgm_trial_state {
    SGM_TRIAL_WAITING, /* has not begun, or was interrupted */
    SGM_TRIAL_RUNNING,
    SGM_TRIAL_DONE,    /* to the last epoch, or to where a rule or a command has stopped it */
    SGM_TRIAL_DROPPED, /* halving: others were better */
    SGM_TRIAL_FAILED   /* `error` says why; the search goes on without it */
} sgm_trial_state;
SGM_API const char *sgm_trial_state_name(sgm_trial_state state);

typedef struct sgm_trial_value {
    const char *name, *text;
    const char *brief; /* the text without what all choices of it have in common, if it is long */
    double number;     /* NaN if the text is none */
} sgm_trial_value;
typedef struct sgm_trial {
    int64_t number;     /* from 1 */
    const char *name;   /* "trial-007": the trainer's */
    const char *folder; /* of its run */
    const sgm_trial_value *values;
    size_t value_count;
    sgm_trial_state state;
    int64_t rung;     /* rungs that it has climbed: 0 or 1 but for halving */
    int64_t epochs;   /* trained so far */
    double objective; /* of 9 digits, at the end of the newest rung that it has climbed; NaN: of none */
    double seconds;   /* of training, without what a crash has lost */
    const char *error;
} sgm_trial;
/* A value by name, for set_up; one that the search does not have is NULL or NaN, with an error. */
SGM_API const char *sgm_trial_text(const sgm_trial *trial, const char *name);
SGM_API double sgm_trial_number(const sgm_trial *trial, const char *name);

/* Gives the trainer network, data, optimiser, ... One trial at a time, but on any thread. Values that it asks
 * for are its business; the others are set in the trainer's registry afterwards, where they must be. A value
 * named "seed" is the trainer's seed. */
typedef sgm_status (*sgm_search_set_up)(void *user, const sgm_trial *trial, sgm_trainer *trainer);

typedef enum sgm_search_event {
    SGM_SEARCH_TRIAL_BEGINS,
    SGM_SEARCH_EPOCH,
    SGM_SEARCH_TRIAL_ENDS, /* this piece of it: halving may go on with it */
    SGM_SEARCH_RUNG_ENDS   /* `trial` is the best so far, NULL: none */
} sgm_search_event;
typedef struct sgm_search_progress {
    sgm_search_event event;
    const sgm_trial *trial;
    size_t rung, rungs;    /* from 0 */
    size_t ended, trials;  /* of this rung */
    const sgm_trial *best; /* NULL: none yet */
    double objective;      /* EPOCH: just now; NaN: it is not there yet */
    double seconds_left;   /* negative: unknown */
} sgm_search_progress;
/* One call at a time, on the trials' threads; false ends the search, with checkpoints. It must not read what
 * is another running trial's trainer's, which may be waiting for it. */
typedef bool (*sgm_search_function)(void *user, const sgm_search_progress *progress);

typedef struct sgm_search_options {
    size_t struct_size;
    sgm_search_method method;
    sgm_search_values values[SGM_SEARCH_VALUES]; /* the first one without a name ends them */
    const char
        *objective; /* a number of the trainer's registry after its last epoch; default "validation.loss" */
    sgm_search_goal goal;
    int64_t trials;         /* random, halving: default 20, but halving over choices only: all combinations */
    uint64_t seed;          /* of what is drawn; trial n is a function of it and n */
    double factor;          /* halving: from 2; default 3 */
    int64_t minimum_epochs; /* halving: of the first rung at least; default 1 */
    int64_t at_once;        /* trials side by side; default 1 */
    int64_t epochs;         /* of a whole training, which schedules refer to also in earlier rungs */
    int64_t iterations;     /* not for halving */
    int64_t checkpoint_every;
    const char *folder; /* of the search; must be given */
    bool resume;        /* go on with what the folder has, if anything; what was searched must be the same */
    bool catch_interrupt; /* as in sgm_run_options */
    sgm_search_set_up set_up;
    sgm_search_function progress;
    void *user; /* of both */
} sgm_search_options;
typedef struct sgm_search sgm_search;
/* Plans: every trial has its values then. NULL on failure. Free it before the environment. */
#define sgm_search_create(...) SGM_WITH_OPTIONS(sgm_search_create_options, sgm_search_options, __VA_ARGS__)
SGM_API sgm_search *sgm_search_create_options(sgm_env *env, const sgm_search_options *options);
SGM_API void sgm_search_free(sgm_search *search);

SGM_API size_t sgm_search_count(const sgm_search *search);
/* In order of their numbers, from 0. Stays; while the search runs only its own functions may look. */
SGM_API const sgm_trial *sgm_search_trial(const sgm_search *search, size_t index);
/* How many trials get so many epochs in all; false: there are not so many rungs. */
SGM_API bool sgm_search_rung(const sgm_search *search, size_t rung, int64_t *trials, int64_t *epochs);

/* Runs the trials, once. The environment takes no other trainers and runs meanwhile; sgm_stop ends it, with
 * checkpoints. SGM_ERROR_INTERRUPTED: stopped before the end. A trial that fails does not stop the others;
 * that all did, or that the objective is nowhere after the first epoch, is a failure of the search. */
SGM_API sgm_status sgm_search_run(sgm_search *search);
/* The best of those on the highest rung; NULL: there is none. */
SGM_API const sgm_trial *sgm_search_best(const sgm_search *search);
/* The trials, best first, failed ones last: for people, those that have begun; as in results.csv, all. Free
 * with sgm_string_free. */
SGM_API char *sgm_search_text(const sgm_search *search);
SGM_API char *sgm_search_csv(const sgm_search *search);

#ifdef __cplusplus
}
#endif
#endif
