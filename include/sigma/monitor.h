/* Monitors of your own: what is told of trainings, by a table of functions.
 *
 *     static bool tell(void *self, const sgm_training_progress *progress)
 *     {
 *         if (progress->kind == SGM_PROGRESS_EPOCH)
 *             fprintf(self, "%lld %g\n", (long long)progress->epoch, progress->training.loss);
 *         return true;
 *     }
 *     static const sgm_monitor_type losses = {.api = SGM_MONITOR_API, .name = "losses", .progress = tell};
 *
 *     sgm_env_add_monitor(env, sgm_monitor_create(&losses, stderr));
 *
 * A monitor sees a trainer by its progress and its registry, as the ready-made ones do (environment.h). It
 * has no part in the training: a run is the same with it and without it, to the bit, and checkpoints do not
 * know of it. What changes a training, or is to survive a resume, is a hook (hooks.h).
 */
#ifndef SIGMA_MONITOR_H
#define SIGMA_MONITOR_H

#include <sigma/environment.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of sgm_monitor_type. */
#define SGM_MONITOR_API 1

/* A static table: it outlives its monitors. A function that is NULL is not called. */
typedef struct sgm_monitor_type {
    uint32_t api;     /* SGM_MONITOR_API */
    const char *name; /* of letters, digits, '-' and '_', a letter first */
    const char *doc;  /* what it does, in a line; may be NULL */
    /* Makes a `self` from what stands behind the colon of "NAME:ARGUMENT", "" if nothing does; NULL, after
     * sgm_fail, if it cannot. For sgm_monitor_by_name, and the files of the command. */
    void *(*open)(const char *argument);
    /* The environment has taken the monitor: called once, before anything else. A failure is the
     * environment's. */
    sgm_status (*join)(void *self, sgm_env *env);
    /* A trainer is there, also one that was made before. */
    sgm_status (*attach)(void *self, sgm_trainer *trainer);
    /* It goes: must not be used afterwards. No run of it is active. Once for each attach. */
    void (*detach)(void *self, sgm_trainer *trainer);
    /* Once, before the first run or in sgm_env_prepare. A failure ends the run before it begins. */
    sgm_status (*start)(void *self);
    /* What observers are told (training.h), on the trainer's thread: it should be quick, as the training
     * waits. Trainers that run side by side call at the same time. Returning false stops the trainer's run.
     */
    bool (*progress)(void *self, const sgm_training_progress *progress);
    /* The environment is about to be freed, and no trainer runs any more. It may take its time. */
    void (*finish)(void *self);
    /* Frees `self`: once, also if the monitor could not be made, or was given to no environment. */
    void (*free)(void *self);
} sgm_monitor_type;

/* A monitor for sgm_env_add_monitor, which takes it over. `self` is its own, and taken over, also on failure:
 * NULL, with an error, if the table is wrong. */
SGM_API sgm_monitor *sgm_monitor_create(const sgm_monitor_type *type, void *self);

/* Makes a kind of monitor known by its name, to sgm_monitor_by_name and the command (`monitors: [losses]` in
 * a file). It must have `open`. `type` must stay; the same table again does nothing. Any thread. */
SGM_API sgm_status sgm_register_monitor(const sgm_monitor_type *type);
/* A monitor of a registered kind, of "NAME" or "NAME:ARGUMENT". NULL, with an error that has all names: there
 * is none, or it could not be made. */
SGM_API sgm_monitor *sgm_monitor_by_name(const char *text);
/* The kinds that were registered, in order; NULL: there are no more. */
SGM_API const sgm_monitor_type *sgm_monitor_type_at(size_t index);

#ifdef __cplusplus
}
#endif

#endif
