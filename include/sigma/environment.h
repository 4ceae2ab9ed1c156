/* The environment owns trainers and monitors, and gives them seed, handler and precision. */
#ifndef SIGMA_ENVIRONMENT_H
#define SIGMA_ENVIRONMENT_H

#include <sigma/monitor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sgm_env sgm_env;
typedef struct sgm_env_options {
    size_t struct_size;
    uint64_t seed;       /* of all that is random; the default 0 is a seed like any other */
    const char *handler; /* default "cpu" */
    int threads;         /* default: one per processor */
    sgm_dtype precision; /* SGM_FLOAT32 (default) or SGM_FLOAT64 */
} sgm_env_options;
#define sgm_env_create(...) SGM_WITH_OPTIONS(sgm_env_create_options, sgm_env_options, __VA_ARGS__)
SGM_API sgm_env *sgm_env_create_options(const char *name, const sgm_env_options *options);
/* Frees all that was created from it, newest first. */
SGM_API void sgm_env_free(sgm_env *env);
/* The first failure that stays in the environment, which later calls repeat, sgm_run first of all: "digits:
 * trainer 'a': column 14: unknown layer ..."; "" if there was none. What fails and changes nothing does not
 * stay (evaluating, predicting, saving, loading), so behind a call print sgm_last_error(), which has both. */
SGM_API const char *sgm_env_error(const sgm_env *env);
SGM_API sgm_status sgm_env_status(const sgm_env *env);
SGM_API sgm_handler *sgm_env_handler(sgm_env *env);
/* The trainers' registries under the trainers' names: "digits.optimiser.learning_rate". What
 * a part of an identifier cannot hold (dots, spaces, ...) is an underscore there. Belongs to the environment.
 */
SGM_API sgm_registry *sgm_env_registry(sgm_env *env);

/* Belongs to the environment; NULL when that has failed. A name twice is an error. */
SGM_API sgm_trainer *sgm_trainer_create(sgm_env *env, const char *name);

SGM_API sgm_status sgm_env_monitor(sgm_env *env, sgm_monitor *monitor); /* takes it */

/* Runs all trainers, one after the other, with these options. */
#define sgm_run(...) SGM_WITH_OPTIONS(sgm_run_env, sgm_run_options, __VA_ARGS__)
SGM_API sgm_status sgm_run_env(sgm_env *env, const sgm_run_options *options);

#ifdef __cplusplus
}
#endif
#endif
