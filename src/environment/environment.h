/* The inside of an environment. Internal. */
#ifndef SGM_ENVIRONMENT_ENVIRONMENT_H
#define SGM_ENVIRONMENT_ENVIRONMENT_H

#include "base/base.h"
#include <sigma/environment.h>

/* Gives `object` to the environment, which frees it before everything that it was given earlier. On failure
 * the object is freed at once. */
sgm_status sgm__env_own(sgm_env *env, void *object, void (*release)(void *object));
/* Keeps the thread's newest error, with the environment's name in front, unless there is one already. */
sgm_status sgm__env_keep(sgm_env *env, sgm_status status);
/* 1, 2, ...: for the names of what nobody named. */
int64_t sgm__env_number(sgm_env *env);
uint64_t sgm__env_seed(const sgm_env *env);
/* The environment's first failure, again as this thread's newest; SGM_OK if there is none. */
sgm_status sgm__env_check(const sgm_env *env);

#endif
