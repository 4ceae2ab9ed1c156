#include "monitors/monitor.h"

void sgm_monitor_free(sgm_monitor *monitor)
{
    if (monitor != NULL && !monitor->owned)
        monitor->free(monitor);
}
