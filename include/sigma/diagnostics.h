/* Ready-made hooks that keep checkpoints, and that say what goes on inside a training.
 *
 *     sgm_trainer_hook(t, sgm_last_checkpoints(3, sgm_every(100, SGM_ITERATION)));
 *     sgm_trainer_hook(t, sgm_best_checkpoints(3, "validation.loss", SGM_MINIMUM, sgm_every(1, SGM_EPOCH)));
 *     sgm_trainer_hook(t, sgm_nan_watch());
 *
 * As those of hooks.h: a constructor returns NULL when it fails (sgm_last_error()).
 */
#ifndef SIGMA_DIAGNOSTICS_H
#define SIGMA_DIAGNOSTICS_H

#include <sigma/hooks.h>
#include <sigma/training.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- checkpoints ---
 * Both keep `count` checkpoints in the run's folder beside the one that a resume goes on from, and write down
 * in NAME.json which these are: files that are not in there are neither replaced nor removed. An older file
 * goes when the new one is whole. Since the list lies beside the files, it is right after a crash, too. */
typedef struct sgm_checkpoints_options {
    size_t struct_size;
    const char *name;      /* files begin with it; default "last", or "best-" and the identifier */
    sgm_criteria *only_if; /* taken over */
} sgm_checkpoints_options;
/* The newest: last-epoch3-iteration120.safetensors. */
#define sgm_last_checkpoints(count, ...) SGM_LAST_CHECKPOINTS(count, __VA_ARGS__, )
#define SGM_LAST_CHECKPOINTS(count, when, ...)                                                               \
    sgm_last_checkpoints_create(count, when, SGM_OPTIONS(sgm_checkpoints_options, __VA_ARGS__))
SGM_API sgm_hook *sgm_last_checkpoints_create(int64_t count, sgm_time_step when,
                                              const sgm_checkpoints_options *options);
/* Those with the largest or smallest values, of equal ones the earlier:
 * best-validation.loss-epoch3-iteration120-0.0423.safetensors. NaN is never among them. */
#define sgm_best_checkpoints(count, identifier, extremum, ...)                                               \
    SGM_BEST_CHECKPOINTS(count, identifier, extremum, __VA_ARGS__, )
#define SGM_BEST_CHECKPOINTS(count, identifier, extremum, when, ...)                                         \
    sgm_best_checkpoints_create(count, identifier, extremum, when,                                           \
                                SGM_OPTIONS(sgm_checkpoints_options, __VA_ARGS__))
SGM_API sgm_hook *sgm_best_checkpoints_create(int64_t count, const char *identifier, sgm_extremum extremum,
                                              sgm_time_step when, const sgm_checkpoints_options *options);

/* --- a loss or a parameter that is no number ---
 * Keeps the training as it was in memory every `every` iterations. When the loss or a state is NaN or
 * infinite, it goes back there, does the steps again up to the first bad one, and that one instruction by
 * instruction on the handler debug:NAME. The message names the first bad instruction, its layer and the files
 * that it leaves in the run's folder: nan-ITERATION.safetensors, a checkpoint from before this step, and
 * nan-ITERATION-batch.safetensors, its minibatch. Then the run fails with SGM_ERROR_NUMERIC, or pauses before
 * that step (the log has the message), so that values can be changed. Steps of several workers are not done
 * again: then it only tells what was bad. */
typedef struct sgm_nan_watch_options {
    size_t struct_size;
    int64_t every; /* iterations, at most 250; default 100 */
    bool pause;
} sgm_nan_watch_options;
/* sgm_nan_watch(), sgm_nan_watch(.pause = true) */
#define sgm_nan_watch(...) sgm_nan_watch_create(SGM_OPTIONS(sgm_nan_watch_options, __VA_ARGS__))
SGM_API sgm_hook *sgm_nan_watch_create(const sgm_nan_watch_options *options);

/* --- weights, gradients, updates in numbers ---
 * For each tensor that matches the identifiers (separated by spaces; "network.layers.*.weights"), without its
 * values that are not finite: shared.PREFIX_mean, _standard_deviation (of the population), _minimum,
 * _maximum, _norm (L2), _zeros (share), _not_finite (number), and _histogram (float64 (bins): counts); PREFIX
 * is the identifier with
 * '_' for dots. For optimiser.gradients.X and optimiser.updates.X also _ratio: the norm over that of the
 * parameter network.layers.X. A run with a folder gets a line for each tensor in its histograms.jsonl. */
typedef struct sgm_statistics_options {
    size_t struct_size;
    /* Equal parts between least and most; the last includes most. Default 20, at most 1000. */
    int64_t bins;
    /* Values beyond count in the outer bins. Equal: the smallest and the largest value of the tensor, or 0.5
     * around it when all are equal. */
    double minimum, maximum;
    bool no_file;
    sgm_criteria *only_if; /* taken over */
} sgm_statistics_options;
#define sgm_statistics(identifiers, ...) SGM_STATISTICS(identifiers, __VA_ARGS__, )
#define SGM_STATISTICS(identifiers, when, ...)                                                               \
    sgm_statistics_create(identifiers, when, SGM_OPTIONS(sgm_statistics_options, __VA_ARGS__))
SGM_API sgm_hook *sgm_statistics_create(const char *identifiers, sgm_time_step when,
                                        const sgm_statistics_options *options);

/* --- how fast it goes ---
 * Over the newest `span` iterations: shared.time_throughput_examples and _iterations (a second of running
 * time), _waiting (share of it that went by until the data gave a minibatch) and _waited (how many iterations
 * waited for longer than a tenth of their time). Time spent in hooks and measuring counts as running. */
typedef struct sgm_throughput_options {
    size_t struct_size;
    int64_t span;  /* default 100, at most 10000 */
    int64_t every; /* iterations between two results; default 10 */
} sgm_throughput_options;
/* sgm_throughput(), sgm_throughput(.span = 1000) */
#define sgm_throughput(...) sgm_throughput_create(SGM_OPTIONS(sgm_throughput_options, __VA_ARGS__))
SGM_API sgm_hook *sgm_throughput_create(const sgm_throughput_options *options);

/* --- values over time ---
 * For each number that matches the identifiers (separated by spaces) the newest `capacity` values, as
 * shared.PREFIX_series: float64 (n, 2), iteration and value, the oldest first; PREFIX as in statistics. What
 * was noted is part of checkpoints. */
typedef struct sgm_time_series_options {
    size_t struct_size;
    int64_t capacity; /* default 1000, at most 1000000 */
    const char
        *file; /* also FILE.csv in the run's folder, all values: iteration,identifier,value; NULL: none */
} sgm_time_series_options;
#define sgm_time_series(identifiers, ...) SGM_TIME_SERIES(identifiers, __VA_ARGS__, )
#define SGM_TIME_SERIES(identifiers, when, ...)                                                              \
    sgm_time_series_create(identifiers, when, SGM_OPTIONS(sgm_time_series_options, __VA_ARGS__))
SGM_API sgm_hook *sgm_time_series_create(const char *identifiers, sgm_time_step when,
                                         const sgm_time_series_options *options);

/* --- more reporters; options as those of sgm_value_reporter, without background --- */
/* "epoch 2, iteration 350", before all others. */
#define sgm_progress_reporter(...) SGM_PROGRESS_REPORTER(__VA_ARGS__, )
#define SGM_PROGRESS_REPORTER(when, ...)                                                                     \
    sgm_progress_reporter_create(when, SGM_OPTIONS(sgm_value_reporter_options, __VA_ARGS__))
SGM_API sgm_hook *sgm_progress_reporter_create(sgm_time_step when, const sgm_value_reporter_options *options);
/* "12.4 iterations/s, on average 80.6 ms, last 81.2 ms": of the iterations or epochs of its step, by
 * sgm_running_time, which it requires. */
#define sgm_running_time_reporter(...) SGM_RUNNING_TIME_REPORTER(__VA_ARGS__, )
#define SGM_RUNNING_TIME_REPORTER(when, ...)                                                                 \
    sgm_running_time_reporter_create(when, SGM_OPTIONS(sgm_value_reporter_options, __VA_ARGS__))
SGM_API sgm_hook *sgm_running_time_reporter_create(sgm_time_step when,
                                                   const sgm_value_reporter_options *options);
/* "optimiser.loss = 0.25 (mean of 100)": of a number at each iteration since the last report. */
#define sgm_mean_reporter(identifier, ...) SGM_MEAN_REPORTER(identifier, __VA_ARGS__, )
#define SGM_MEAN_REPORTER(identifier, when, ...)                                                             \
    sgm_mean_reporter_create(identifier, when, SGM_OPTIONS(sgm_value_reporter_options, __VA_ARGS__))
SGM_API sgm_hook *sgm_mean_reporter_create(const char *identifier, sgm_time_step when,
                                           const sgm_value_reporter_options *options);

/* --- changing values ---
 * At its step, makes of each number or float tensor that matches the identifier what the modifier makes of it
 * (taken over, also on failure): sgm_modifier_hook("network.layers.*.weights", sgm_modifier_parse("clip(-1,
 * 1)"), sgm_every(10, SGM_ITERATION)). It counts from the next iteration on. */
SGM_API sgm_hook *sgm_modifier_hook(const char *identifier, sgm_modifier *modifier, sgm_time_step when);

/* --- what the network sees ---
 * Looks for an input that a inference copy of the network takes for what is wanted: gradient descent (Adam)
 * on the input from Gaussian noise, until the cost is below desired_cost. Results: shared.NAME_input (the
 * input, without a first dimension), shared.NAME_cost, shared.NAME_found (a boolean). The network has one
 * input and one target. */
typedef struct sgm_target_options {
    size_t struct_size;
    const char *name;    /* default "target_" and the class */
    sgm_tensor *targets; /* retained: wanted instead of one class; as many elements as an example's targets */
    double desired_cost; /* default 0.06 */
    double rate;         /* of the descent; default 0.05 */
    double standard_deviation; /* of the start; default 0.01 */
    int64_t steps;             /* of an attempt; default 1024 */
    int64_t attempts;          /* default 2; the best one counts if none succeeds */
} sgm_target_options;
#define sgm_target_maximiser(wanted_class, ...) SGM_TARGET_MAXIMISER(wanted_class, __VA_ARGS__, )
#define SGM_TARGET_MAXIMISER(wanted_class, when, ...)                                                        \
    sgm_target_maximiser_create(wanted_class, when, SGM_OPTIONS(sgm_target_options, __VA_ARGS__))
SGM_API sgm_hook *sgm_target_maximiser_create(int64_t wanted_class, sgm_time_step when,
                                              const sgm_target_options *options);
/* A tensor of rank 1 to 3 (with up to 4 channels, of which the mean counts) as lines of text, each value two
 * characters from ' ' (the smallest) to '@' (the largest); free with sgm_string_free. */
SGM_API char *sgm_tensor_art(const sgm_tensor *tensor);
/* Reports tensors as such text: shared.target_3_input. */
#define sgm_art_reporter(identifier, ...) SGM_ART_REPORTER(identifier, __VA_ARGS__, )
#define SGM_ART_REPORTER(identifier, when, ...)                                                              \
    sgm_art_reporter_create(identifier, when, SGM_OPTIONS(sgm_value_reporter_options, __VA_ARGS__))
SGM_API sgm_hook *sgm_art_reporter_create(const char *identifier, sgm_time_step when,
                                          const sgm_value_reporter_options *options);
/* In the background, with copies of the parameters: the first output of the network (in the notation of the
 * trainer's) for the fields of `block` (copied), handed to `receive`, whose tensor stays the trainer's. */
typedef void (*sgm_pass_function)(void *user, int64_t iteration, sgm_tensor *output);
SGM_API sgm_hook *sgm_network_pass(const char *network, const sgm_block *block, sgm_pass_function receive,
                                   void *user, sgm_time_step when);

/* --- averaged parameters (optimiser option .average) ---
 * Exchanges the parameters and their moving averages, to the bit; the second call puts them back. While the
 * averages are in, they are what is predicted with, measured, got and saved as the parameters (checkpoints
 * say so), and training is refused. For good: swap, then sgm_trainer_copy_parts of the parameters to another
 * trainer. Not while several workers train. */
SGM_API sgm_status sgm_trainer_swap_averages(sgm_trainer *trainer);
SGM_API bool sgm_trainer_averages_are_in(const sgm_trainer *trainer);
/* Saves NAME.safetensors in the run's folder at its step, with the averages in; training goes on without. */
SGM_API sgm_hook *sgm_averages_saver(const char *name, sgm_time_step when);

/* --- which learning rate? (Smith, 2015) ---
 * Trains from where the trainer stands with rates that rise geometrically, and then puts everything back as
 * it was: parameters, the optimiser state, random numbers, the place in the data. (A trainer that was not
 * prepared is prepared then.) Ends early when the smoothed loss is beyond `divergence` times the lowest one,
 * or a loss is no number. */
typedef struct sgm_rate_finder_options {
    size_t struct_size;
    double minimum, maximum; /* default 1e-7 and 10 */
    int64_t iterations;      /* default 100, at least 10, at most 100000 */
    double smoothing;  /* of the mean that fades: weight of the past; default 0.9, below 1; negative: none */
    double divergence; /* default 4 */
} sgm_rate_finder_options;
typedef struct sgm_rate_point {
    double rate, loss, smoothed;
} sgm_rate_point;
typedef struct sgm_rate_curve {
    sgm_rate_point *points;
    size_t count;
    bool diverged; /* it ended early */
    /* Where the smoothed loss falls fastest over the logarithm of the rate (the slope of a line through the
     * point and up to three on both sides), before its lowest point; NaN: it fell nowhere, or not clearly, by
     * less than a hundredth or than 1.5 times the noise. */
    double proposed;
    double lowest; /* rate at the lowest smoothed loss */
    double fall;   /* from the mean loss of the first tenth to the lowest smoothed one behind it */
    double noise;  /* standard deviation of losses of nearly the same rate, until about there */
} sgm_rate_curve;
/* NULL: it failed. The trainer has network, data, optimiser and no several workers, and does not run. */
#define sgm_learning_rate_finder(...)                                                                        \
    SGM_WITH_OPTIONS(sgm_learning_rate_finder_run, sgm_rate_finder_options, __VA_ARGS__)
SGM_API sgm_rate_curve *sgm_learning_rate_finder_run(sgm_trainer *trainer,
                                                     const sgm_rate_finder_options *options);
SGM_API void sgm_rate_curve_free(sgm_rate_curve *curve);
/* A line of JSON for each point: iteration, rate, loss, smoothed. */
SGM_API sgm_status sgm_rate_curve_save(const sgm_rate_curve *curve, const char *path);
/* A plot in text, the logarithm of the rate to the right, `columns` by `rows` characters for the points (20
 * to 200, 5 to 100); free with sgm_string_free. */
SGM_API char *sgm_rate_curve_text(const sgm_rate_curve *curve, int32_t columns, int32_t rows);

#ifdef __cplusplus
}
#endif
#endif
