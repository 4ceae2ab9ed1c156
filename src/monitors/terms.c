/* The terms of requests that are no commands of a training: see terms.h. */
#include "monitors/terms.h"

#include <stdarg.h>
#include <stdio.h>

void sgm__monitor_who(const sgm__http_request *request, char who[SGM__MONITOR_WHO_SIZE])
{
    snprintf(who, SGM__MONITOR_WHO_SIZE, SGM__MONITOR_WHO "%s%s", request->name[0] != '\0' ? ":" : "",
             request->name);
}

sgm_status sgm__monitor_terms(const sgm__http_request *request, json_t *body, sgm__terms *terms)
{
    char who[SGM__MONITOR_WHO_SIZE];
    sgm__monitor_who(request, who);
    const sgm__control_call call = {.who = who, .role = request->role};
    SGM_TRY(sgm__terms_read(&call, body, terms));
    if (terms->dry)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s cannot be tried: leave 'dry_run' out", request->route->path);
    return sgm__role_check(request->route->path, terms->role, request->route->role);
}

void sgm__terms_log(const char *source, const sgm__terms *terms, const char *format, ...)
{
    char what[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    sgm__log(SGM_LOG_INFO, source, "%s: %s%s%s", terms->who, what, terms->reason != NULL ? ": " : "",
             terms->reason != NULL ? terms->reason : "");
}
