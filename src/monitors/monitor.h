/* What a monitor is: someone who is told about training. Internal. */
#ifndef SGM_MONITORS_MONITOR_H
#define SGM_MONITORS_MONITOR_H

#include "base/base.h"
#include <sigma/monitor.h>

/* Another trainer that goes on from a checkpoint of one that is there, with some values set otherwise. */
typedef struct sgm__branch_request {
    const char *name;                               /* of the new one */
    const char *checkpoint;                         /* a path */
    const char *who;                                /* sets the values */
    const char *const *identifiers, *const *values; /* as text */
    size_t count;
    bool paused; /* begins so */
} sgm__branch_request;

/* What a monitor may know of its environment, and have done by it. It all stays until `finish` returns. */
typedef struct sgm__monitor_host {
    const char *name, *handler; /* of the environment, of the handler: "cpu" */
    uint64_t seed;
    int threads; /* 0: one per processor */
    sgm_dtype precision;
    sgm_registry *registry; /* "TRAINER.optimiser.learning_rate" */
    void *env;              /* for the functions */
    /* Makes a trainer of the same parts as `from` and runs it side by side with those that run, to the same
     * end, in a folder of its own beside that of `from` if there is one. Its failure is its own. When it
     * fails there is no new trainer. Not with any trainer's lock. NULL: it cannot. */
    sgm_status (*branch)(void *env, sgm_trainer *from, const sgm__branch_request *request);
} sgm__monitor_host;

/* Functions that are NULL are not called. */
struct sgm_monitor {
    /* Once, when the environment takes it. */
    sgm_status (*join)(sgm_monitor *self, const sgm__monitor_host *host);
    /* Each trainer, those of before and of later too, before anything is told of it; one call at a time.
     * After `detach`, which comes once for each attach that succeeded, nothing of the monitor may use the
     * trainer; no run of it goes on then. */
    sgm_status (*attach)(sgm_monitor *self, sgm_trainer *trainer);
    void (*detach)(sgm_monitor *self, sgm_trainer *trainer);
    /* Once, before the first run or at sgm_env_prepare. */
    sgm_status (*start)(sgm_monitor *self);
    /* How many trainers are about to run side by side. */
    void (*expect)(sgm_monitor *self, size_t trainers);
    /* Told what a trainer's observers are told, on the trainer's thread, so that several may call at once;
     * false stops the run. */
    bool (*progress)(sgm_monitor *self, const sgm_training_progress *progress);
    /* The environment is about to be freed, and nothing runs any more: it may wait for people who watch, and
     * ends what it does. Trainers are detached after that. */
    void (*finish)(sgm_monitor *self);
    void (*free)(sgm_monitor *self); /* frees the struct too, which is the first member of a larger one */
    bool owned;                      /* by an environment */
};

#endif
