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

#include <sigma/hook.h>

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
#define sgm_last_checkpoints(count, ...)                                                                     \
    SGM_LAST_CHECKPOINTS(count, __VA_ARGS__, .struct_size = sizeof(sgm_checkpoints_options))
#define SGM_LAST_CHECKPOINTS(count, when, ...)                                                               \
    sgm_last_checkpoints_create(count, when, &(const sgm_checkpoints_options){__VA_ARGS__})
SGM_API sgm_hook *sgm_last_checkpoints_create(int64_t count, sgm_time_step when,
                                              const sgm_checkpoints_options *options);
/* Those with the largest or smallest values, of equal ones the earlier:
 * best-validation.loss-epoch3-iteration120-0.0423.safetensors. NaN is never among them. */
#define sgm_best_checkpoints(count, identifier, extremum, ...)                                               \
    SGM_BEST_CHECKPOINTS(count, identifier, extremum, __VA_ARGS__,                                           \
                         .struct_size = sizeof(sgm_checkpoints_options))
#define SGM_BEST_CHECKPOINTS(count, identifier, extremum, when, ...)                                         \
    sgm_best_checkpoints_create(count, identifier, extremum, when,                                           \
                                &(const sgm_checkpoints_options){__VA_ARGS__})
SGM_API sgm_hook *sgm_best_checkpoints_create(int64_t count, const char *identifier, sgm_extremum extremum,
                                              sgm_time_step when, const sgm_checkpoints_options *options);

/* --- a loss or a parameter that is no number ---
 * Keeps the training as it was in memory every `every` iterations. When the loss or a state is NaN or
 * infinite, it goes back there, does the steps again up to the first bad one, and that one instruction by
 * instruction on the handler debug:NAME. The message names the first bad instruction, its layer and the files
 * that it leaves in the run's folder: nan-ITERATION.safetensors, a checkpoint from before this step, and
 * nan-ITERATION-batch.safetensors, its minibatch. Then the run fails with SGM_ERROR_NUMERIC, or pauses before
 * that step (the log has the message), so that values can be changed. */
typedef struct sgm_nan_watch_options {
    size_t struct_size;
    int64_t every; /* iterations, at most 250; default 100 */
    bool pause;
} sgm_nan_watch_options;
/* sgm_nan_watch(), sgm_nan_watch(.pause = true) */
#define sgm_nan_watch(...)                                                                                   \
    sgm_nan_watch_create(                                                                                    \
        &(const sgm_nan_watch_options){.struct_size = sizeof(sgm_nan_watch_options), __VA_ARGS__})
SGM_API sgm_hook *sgm_nan_watch_create(const sgm_nan_watch_options *options);

#ifdef __cplusplus
}
#endif
#endif
