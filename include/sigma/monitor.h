/* Monitors watch the trainers of an environment: sgm_env_monitor(env, sgm_terminal_monitor()). */
#ifndef SIGMA_MONITOR_H
#define SIGMA_MONITOR_H

#include <sigma/training.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sgm_monitor sgm_monitor;
/* Progress on stdout: one line that is drawn again on a terminal, plain lines elsewhere; colour unless
 * NO_COLOR is set. */
SGM_API sgm_monitor *sgm_terminal_monitor(void);
SGM_API void sgm_monitor_free(sgm_monitor *monitor); /* only for one that was given to no environment */

#ifdef __cplusplus
}
#endif
#endif
