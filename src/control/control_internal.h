/* What the files of commands share: a request that is being carried out. Internal to control_command.c and
 * control_values.c. */
#ifndef SGM_CONTROL_CONTROL_INTERNAL_H
#define SGM_CONTROL_CONTROL_INTERNAL_H

#include "control/control.h"
#include "control/control_answer.h"
#include "journal/change_record.h"

/* One request while a command acts on it; nothing of it belongs to the command. */
typedef struct sgm__control_request {
    const sgm__control_call *call;
    const json_t *request;
    json_t *answer;
    bool locked; /* this thread has the trainer's lock */
} sgm__control_request;

/* The text of a field of the request; NULL: the request has none of that name. */
const char *sgm__control_field(const sgm__control_request *c, const char *name);

/* --- control_values.c --- */
/* Both with the trainer's lock, but get also without it, for values that need none. */
sgm_status sgm__control_get(sgm__control_request *c);
sgm_status sgm__control_set(sgm__control_request *c);
/* Lists the entries of the registry; with the field "values" also their values. Takes the lock itself, for
 * short times, so that a long list does not hold up the training. */
sgm_status sgm__control_list(sgm__control_request *c);

#endif
