/* The interface of a monitor: a table of functions by which an environment tells it about trainings.
 *
 * src/environment/ (env.c, env_life.c, env_run.c) is the only caller of these functions. terminal.c,
 * json_lines.c, tensorboard.c and web/web.c each fill in one table. A monitor sees a trainer through its
 * progress calls and its registry; it has no access to training itself, and a training runs the same with
 * or without monitors. The public functions that make monitors are in include/sigma/environment.h. Internal.
 */
#ifndef SGM_MONITORS_MONITOR_H
#define SGM_MONITORS_MONITOR_H

#include "base/base.h"
#include "trainer/view.h"
#include <sigma/environment.h>

/* What an environment tells a monitor about itself in `join`. The texts and the registry belong to the
 * environment and remain valid until the monitor's `finish` has returned. */
typedef struct sgm__monitor_host {
    const char *name, *handler; /* of the environment; of the backend, for example "cpu" */
    uint64_t seed;
    int threads; /* 0: one per processor */
    sgm_dtype precision;
    sgm_registry *registry; /* of all trainers: "TRAINER.optimiser.learning_rate" */
    sgm_env *env;           /* for a program's own monitors */
} sgm__monitor_host;

/* A monitor. A concrete monitor is a larger struct with this one as first member, and casts between the
 * two. A function pointer that is NULL is not called. */
struct sgm_monitor {
    /* Called once, when the environment takes the monitor. `host` itself is valid only during the call:
     * copy it. */
    sgm_status (*join)(sgm_monitor *self, const sgm__monitor_host *host);
    /* Called for each trainer of the environment, also for trainers made before the monitor was added, and
     * before the monitor hears of that trainer in any other way; one call at a time. `detach` follows once
     * for each successful attach. No run of the trainer is active at `detach`, and the monitor must not
     * use the trainer afterwards. */
    sgm_status (*attach)(sgm_monitor *self, sgm_trainer *trainer);
    void (*detach)(sgm_monitor *self, sgm_trainer *trainer);
    /* Called once, before the first run or in sgm_env_prepare. */
    sgm_status (*start)(sgm_monitor *self);
    /* Says how many trainers are about to run side by side; 1 again when they have ended. */
    void (*expect)(sgm_monitor *self, size_t trainers);
    /* Receives the same events as a trainer's observers, on the trainer's thread. With several trainers,
     * several threads may call at once. Returning false stops that trainer's run. */
    bool (*progress)(sgm_monitor *self, const sgm_training_progress *progress);
    /* Called when the environment is about to be freed and no trainer runs any more. The monitor may block
     * here until people have finished watching, then ends its own threads. Trainers are detached
     * afterwards. */
    void (*finish)(sgm_monitor *self);
    /* Frees the monitor, including the struct itself. */
    void (*free)(sgm_monitor *self);
    bool owned; /* an environment has taken the monitor and frees it */
};

#endif
