/* The environment owns trainers and monitors, and gives them seed, handler and precision.
 *
 *     sgm_run(env, .epochs = 20);              (all trainers, side by side, to their ends)
 *
 *     sgm_run_background(env, .epochs = 20);   (the same, while this thread does something else)
 *     sgm_trainer_pause(trainer);
 *     sgm_stop(env, "seen enough");
 *     sgm_wait(env);
 *
 * An environment is set up by one thread at a time; sgm_stop, sgm_env_status and sgm_env_error may be called
 * from any thread while it runs, and so may the commands to its trainers and its registry. */
#ifndef SIGMA_ENVIRONMENT_H
#define SIGMA_ENVIRONMENT_H

#include <sigma/monitor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sgm_env sgm_env;
typedef struct sgm_env_options {
    size_t struct_size;
    uint64_t seed;       /* of all that is random; the default 0 is a seed like any other: without one, every
                          * run is the same. The log.txt of a run with a folder has it */
    const char *handler; /* default "cpu" */
    int threads;         /* default: one per processor */
    sgm_dtype precision; /* SGM_FLOAT32 (default) or SGM_FLOAT64; SGM_BFLOAT16: layers compute in bfloat16,
                          * while parameters, optimisers and costs stay float32 (mixed precision) */
} sgm_env_options;
#define sgm_env_create(...) SGM_WITH_OPTIONS(sgm_env_create_options, sgm_env_options, __VA_ARGS__)
SGM_API const sgm_setting *sgm_env_settings(size_t *count); /* members of sgm_env_options */
SGM_API sgm_env *sgm_env_create_options(const char *name, const sgm_env_options *options);
/* Frees all that was created from it, newest first; stops and awaits what runs in the background. */
SGM_API void sgm_env_free(sgm_env *env);
SGM_API const char *sgm_env_name(const sgm_env *env);
/* The newest environment of this name in the process, from any thread; NULL (and no error) if there is none.
 * Several may have one name, as parts of a program know nothing of each other. Whoever asks must know that it
 * is not freed meanwhile. */
SGM_API sgm_env *sgm_env_find(const char *name);
/* Called once when the environment is freed, after all that runs has ended and before anything is freed;
 * newest first. Not called if this fails. */
typedef void (*sgm_shutdown_function)(void *user);
SGM_API sgm_status sgm_env_on_shutdown(sgm_env *env, sgm_shutdown_function function, void *user);
/* The first failure that stays in the environment, which later calls repeat, sgm_run first of all: "digits:
 * trainer 'a': column 14: unknown layer ..."; "" if there was none. What fails and changes nothing does not
 * stay (evaluating, predicting, saving, loading), so behind a call print sgm_last_error(), which has both. */
SGM_API const char *sgm_env_error(const sgm_env *env);
SGM_API sgm_status sgm_env_status(const sgm_env *env);
SGM_API sgm_handler *sgm_env_handler(sgm_env *env);
/* The trainers' registries under the trainers' names: "digits.optimiser.learning_rate". What
 * a part of an identifier cannot hold (dots, spaces, ...) is an underscore there. "env.seed" is the seed,
 * with a sign if it is 2^63 or more. Belongs to the environment. */
SGM_API sgm_registry *sgm_env_registry(sgm_env *env);

/* Belongs to the environment; NULL when that has failed, and while it runs. Names must differ, also as
 * parts of identifiers: "a.b" and "a_b" are an error. */
SGM_API sgm_trainer *sgm_trainer_create(sgm_env *env, const char *name);
/* A trainer that sgm_run does not run, but prepares: for predictions and evaluations, with parameters that
 * come from a checkpoint or from another trainer. Everything else is as with other trainers. */
SGM_API sgm_trainer *sgm_unscheduled_trainer_create(sgm_env *env, const char *name);

/* Frees a trainer and takes it from the registry. SGM_ERROR_STATE while it or the environment runs, and for
 * the trainer of a model, which goes with its environment. */
SGM_API sgm_status sgm_env_remove_trainer(sgm_env *env, sgm_trainer *trainer);

SGM_API sgm_status sgm_env_monitor(sgm_env *env, sgm_monitor *monitor); /* takes it */

/* What sgm_run does first, without running: parameters of all trainers, unscheduled ones too, are
 * initialised, and monitors begin. */
SGM_API sgm_status sgm_env_prepare(sgm_env *env);

/* Runs all trainers with these options: one on this thread, several side by side, each on a thread of its own
 * and with a folder of its own below `folder`. Each computes what it would compute alone. They share the
 * handler: `cpu` gives its threads to one step at a time, so that no time is lost to trainers in each other's
 * way, nor gained but where one reads data while another computes.
 *
 * When a trainer fails, the others are stopped, and the first failure is the environment's. A signal
 * (.catch_interrupt) stops all. Observers and hooks of a trainer are called on its thread, so what several
 * trainers' functions have in common needs a lock. */
#define sgm_run(...) SGM_WITH_OPTIONS(sgm_run_env, sgm_run_options, __VA_ARGS__)
SGM_API sgm_status sgm_run_env(sgm_env *env, const sgm_run_options *options);
/* The same on another thread; returns when trainers take commands. Every one that succeeded wants a sgm_wait.
 */
#define sgm_run_background(...) SGM_WITH_OPTIONS(sgm_run_background_env, sgm_run_options, __VA_ARGS__)
SGM_API sgm_status sgm_run_background_env(sgm_env *env, const sgm_run_options *options);
/* Waits for the end of what runs in the background, and returns what sgm_run would have; not from observers
 * and hooks. */
SGM_API sgm_status sgm_wait(sgm_env *env);
/* Stops all trainers that run, as sgm_trainer_stop does; from any thread. */
SGM_API sgm_status sgm_stop(sgm_env *env, const char *reason);

#ifdef __cplusplus
}
#endif
#endif
