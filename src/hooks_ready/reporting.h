/* How all reporters say their lines. Internal. */
#ifndef SGM_HOOKS_READY_REPORTING_H
#define SGM_HOOKS_READY_REPORTING_H

#include <sigma/hooks.h>

/* To the options' function, else to the log; behind worker and time, where those are wanted. */
sgm_status sgm__report(const sgm_value_reporter_options *options, const sgm_hook_call *call,
                       const char *what);
/* Whether both say the same to the same. */
bool sgm__reports_alike(const sgm_value_reporter_options *a, const sgm_value_reporter_options *b);

#endif
