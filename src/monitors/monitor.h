/* What a monitor is: someone who is told about training. Internal. */
#ifndef SGM_MONITORS_MONITOR_H
#define SGM_MONITORS_MONITOR_H

#include "base/base.h"
#include <sigma/monitor.h>

struct sgm_monitor {
    /* Once, before the first run or at sgm_env_prepare; NULL: there is nothing to begin. */
    sgm_status (*start)(sgm_monitor *self);
    /* How many trainers are about to run side by side; NULL: it does not matter. */
    void (*expect)(sgm_monitor *self, size_t trainers);
    /* Told what a trainer's observers are told, on the trainer's thread, so that several may call at once;
     * false stops the run. */
    bool (*progress)(sgm_monitor *self, const sgm_training_progress *progress);
    void (*free)(sgm_monitor *self); /* frees the struct too, which is the first member of a larger one */
    bool owned;                      /* by an environment */
};

#endif
