/* What tests of requests share: a request as text, the text of its answer, and the record of changes. */
#ifndef SIGMA_REQUESTS_TEST_H
#define SIGMA_REQUESTS_TEST_H

#include "commands_test.h"
#include "control/control.h"
#include "journal/change_record.h"

static char answer[1 << 20]; /* to the newest request */

/* Obeys a request of this caller. `answer` is then the text of the answer, or of the error. */
static sgm_status obey(const sgm__control_call *call, const char *request)
{
    json_t *asked = json_loads(request, 0, NULL), *made = json_object();
    CHECK(asked != NULL);
    sgm_status status = sgm__control_obey(call, asked, made);
    char *text = json_dumps(made, JSON_COMPACT | JSON_PRESERVE_ORDER);
    snprintf(answer, sizeof answer, "%s", status == SGM_OK ? text : sgm_last_error());
    free(text);
    json_decref(asked);
    json_decref(made);
    return status;
}

/* A request of an administrator at `sigma ctl`. */
__attribute__((unused)) static sgm_status ask(sgm_trainer *trainer, const char *request)
{
    return obey(&(sgm__control_call){.trainer = trainer, .who = "ctl", .role = SGM__ROLE_ADMIN}, request);
}

/* The answer, or the error, must contain `part`. */
#define CHECK_OBEYED(call, request, part)                                                                    \
    do {                                                                                                     \
        obey(call, request);                                                                                 \
        if (strstr(answer, part) == NULL)                                                                    \
            TEST_FAIL("%s gives %.600s, expected %s in it", request, answer, part);                          \
    } while (0)

__attribute__((unused)) static size_t change_count(sgm_trainer *trainer)
{
    json_t *list = sgm__changes_json(trainer, 0);
    size_t count = json_array_size(list);
    json_decref(list);
    return count;
}

/* "" if there is none. */
__attribute__((unused)) static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

#endif
