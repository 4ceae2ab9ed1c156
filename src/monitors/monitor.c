/* Frees a monitor that no environment has taken. Monitors that belong to an environment are freed by the
 * environment (src/environment/env.c), so that sgm_monitor_free on one of those does nothing. */
#include "monitors/monitor.h"

void sgm_monitor_free(sgm_monitor *monitor)
{
    if (monitor != NULL && !monitor->owned)
        monitor->free(monitor);
}
