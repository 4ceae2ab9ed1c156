/* Ready-made hooks, for sgm_trainer_hook(). A constructor returns NULL when it fails (sgm_last_error()). With
 * an operator, sgm_hook_make_local() lets one run for each worker, with sums, times and series of its own;
 * those that save, measure on a data set, modify or search the trainer refuse that.
 *
 *     sgm_trainer_hook(t, sgm_value_reporter("training.loss optimiser.*", sgm_every(1, SGM_EPOCH)));
 *     sgm_trainer_hook(t, sgm_early_stopper("validation.loss", 5, SGM_MINIMUM, sgm_every(1, SGM_EPOCH)));
 *     sgm_trainer_hook(t, sgm_save_hook(sgm_every(1, SGM_EPOCH), "best",
 *                         .only_if = sgm_criteria_extremum("validation.accuracy", SGM_MAXIMUM)));
 *     sgm_trainer_hook(t, sgm_rule_hook("if training.loss increases 3 times "
 *                                       "then set optimiser.learning_rate *= 0.5"));
 */
#ifndef SIGMA_HOOKS_H
#define SIGMA_HOOKS_H

#include <sigma/hook.h>
#include <sigma/rule.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- reporting --- */
typedef void (*sgm_report_function)(void *user, const char *line);
typedef struct sgm_value_reporter_options {
    size_t struct_size;
    sgm_report_function report; /* default: the log */
    void *user;
    void (*release)(void *user); /* once, also when the constructor fails */
    bool with_time;              /* lines begin with "epoch 2, iteration 350: " */
    bool background;
    sgm_criteria *only_if; /* taken over */
} sgm_value_reporter_options;
/* Reports "optimiser.rate = 0.01, training.loss = 0.25": all that match the identifiers (separated by
 * spaces). */
#define sgm_value_reporter(identifiers, ...) SGM_VALUE_REPORTER(identifiers, __VA_ARGS__, )
#define SGM_VALUE_REPORTER(identifiers, when, ...)                                                           \
    sgm_value_reporter_create(identifiers, when, SGM_OPTIONS(sgm_value_reporter_options, __VA_ARGS__))
SGM_API sgm_hook *sgm_value_reporter_create(const char *identifiers, sgm_time_step when,
                                            const sgm_value_reporter_options *options);

/* --- computing; before reporters --- */
typedef struct sgm_accumulator_options {
    size_t struct_size;
    const char *name;    /* of the result: "shared.NAME"; default: "training_loss_mean" or "..._sum" */
    sgm_time_step when;  /* default: every iteration */
    bool mean;           /* instead of the sum */
    int64_t reset_every; /* begins anew after so many values; 0: never */
    bool each_epoch;     /* begins anew in each epoch */
} sgm_accumulator_options;
/* Sum or mean of a value so far. While it has no value, nothing is added. */
#define sgm_accumulator(...) SGM_WITH_OPTIONS(sgm_accumulator_create, sgm_accumulator_options, __VA_ARGS__)
SGM_API sgm_hook *sgm_accumulator_create(const char *identifier, const sgm_accumulator_options *options);

typedef struct sgm_running_time_options {
    size_t struct_size;
    int32_t span; /* the average is of so many times, without the most unusual ones; default 4, at most 64 */
} sgm_running_time_options;
/* Seconds between events of a scale: shared.time_SCALE_last, _average, _min and _max. They are taken from
 * `running_time` of the registry, which stands still in a pause, else from the clock. */
#define sgm_running_time(...) SGM_WITH_OPTIONS(sgm_running_time_create, sgm_running_time_options, __VA_ARGS__)
SGM_API sgm_hook *sgm_running_time_create(sgm_time_scale scale, const sgm_running_time_options *options);

/* --- acting; after all others --- */
typedef struct sgm_stop_options {
    size_t struct_size;
    const char *reason;    /* default: the time step */
    sgm_criteria *only_if; /* taken over */
} sgm_stop_options;
#define sgm_stop_hook(...) SGM_WITH_OPTIONS(sgm_stop_hook_create, sgm_stop_options, __VA_ARGS__)
SGM_API sgm_hook *sgm_stop_hook_create(sgm_time_step when, const sgm_stop_options *options);
/* Stops when the value had no new extremum for `patience` checks in a row. */
SGM_API sgm_hook *sgm_early_stopper(const char *identifier, int64_t patience, sgm_extremum extremum,
                                    sgm_time_step when);

typedef struct sgm_save_options {
    size_t struct_size;
    sgm_criteria *only_if; /* taken over */
} sgm_save_options;
/* Saves under a name in which values may stand, as in "epoch-{epoch}" (sgm_resolve_text). */
#define sgm_save_hook(when, ...) SGM_SAVE_HOOK(when, __VA_ARGS__, )
#define SGM_SAVE_HOOK(when, name, ...)                                                                       \
    sgm_save_hook_create(when, name, SGM_OPTIONS(sgm_save_options, __VA_ARGS__))
SGM_API sgm_hook *sgm_save_hook_create(sgm_time_step when, const char *name, const sgm_save_options *options);

/* Does what a rule says (rule.h). `set` changes each value that matches, from its own value on. */
SGM_API sgm_hook *sgm_rule_hook(const char *text);

/* --- as text --- */
/* A ready-made hook, or a rule:
 *
 *     every 2 epochs value_reporter(training.loss optimiser.*rate, with_time=true) if epoch > 3
 *     early_stopper(validation.accuracy, patience=5)
 *     at epoch 3 save("epoch-{epoch}")
 *     after 10 iterations set optimiser.learning_rate *= 0.5
 *     local every 1 epoch accumulator(optimiser.loss, mean=true)
 *
 * `[local] [STEP] NAME(VALUE, ARGUMENT=VALUE, ...) [if CRITERIA]`: STEP is as in sgm_time_step_parse, without
 * it the hook's own; CRITERIA as in sgm_criteria_parse; `local`, also in front of a rule, does what
 * sgm_hook_make_local does. Several identifiers or numbers have spaces or commas between them. What begins
 * with `if`, or has an action behind the step, is a rule. Errors name column and argument, and the nearest
 * name. */
SGM_API sgm_hook *sgm_hook_parse(const char *text);
SGM_API const char *sgm_hook_name_at(size_t index); /* of what can be parsed; NULL: past the last */
/* How it is written, what it does, its arguments: lines; free with sgm_string_free. */
SGM_API char *sgm_hook_help(const char *name);

#ifdef __cplusplus
}
#endif
#endif
