/* How reporters write their lines, and how their options are compared; both are in report.c. Internal. */
#ifndef SGM_HOOKS_READY_REPORTING_H
#define SGM_HOOKS_READY_REPORTING_H

#include <sigma/hooks.h>

/* Writes `what` as one line to the options' function, else to the log. In front come "worker N: " for a
 * local hook, and with `with_time` "epoch E, iteration I: ". */
sgm_status sgm__report(const sgm_value_reporter_options *options, const sgm_hook_call *call,
                       const char *what);
/* Whether two reporters write in the same way to the same place; what they write is not compared. */
bool sgm__reports_alike(const sgm_value_reporter_options *a, const sgm_value_reporter_options *b);

#endif
