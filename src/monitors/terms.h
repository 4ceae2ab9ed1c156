/* The terms of a POST to a page that is no command of a training: who asks and why, in which role, and
 * whether it only wants to try (control/request_terms.h). Internal to the monitors. */
#ifndef SGM_MONITORS_TERMS_H
#define SGM_MONITORS_TERMS_H

#include "control/request_terms.h"
#include "monitors/http/http.h"

/* Author of changes from a page, in logs and journals; with the name of its token, if that has one:
 * "monitor:anna". */
#define SGM__MONITOR_WHO "monitor"
#define SGM__MONITOR_WHO_SIZE 64
void sgm__monitor_who(const sgm__http_request *request, char who[SGM__MONITOR_WHO_SIZE]);

/* Reads the terms of a body (NULL has none) and removes all but the reason from it. Such requests cannot be
 * tried, so one that is to change nothing is refused; so is one that lowers its role below that of its route.
 * terms->who is freed with sgm__free, also after a failure; terms->reason belongs to the body. */
sgm_status sgm__monitor_terms(const sgm__http_request *request, json_t *body, sgm__terms *terms);
/* Tells the log what was done, by whom and why: "monitor:anna: the run 'a' was deleted: not needed". */
SGM_PRINTF(3, 4)
void sgm__terms_log(const char *source, const sgm__terms *terms, const char *format, ...);

#endif
