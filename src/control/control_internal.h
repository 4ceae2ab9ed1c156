/* What the commands share. Internal to them. */
#ifndef SGM_CONTROL_CONTROL_INTERNAL_H
#define SGM_CONTROL_CONTROL_INTERNAL_H

#include "control/control.h"
#include "control/control_answer.h"
#include "journal/change_record.h"

typedef struct sgm__control_request {
    const sgm__control_call *call;
    const json_t *request;
    json_t *answer;
    bool locked; /* with the trainer's lock */
} sgm__control_request;

/* A field of the request, which is a text; NULL: it is not there. */
const char *sgm__control_field(const sgm__control_request *c, const char *name);

/* --- control_values.c --- */
/* With the trainer's lock. */
sgm_status sgm__control_get(sgm__control_request *c);
sgm_status sgm__control_set(sgm__control_request *c);
/* What there is; with "values": what it is, too. Takes the lock itself, bit by bit. */
sgm_status sgm__control_list(sgm__control_request *c);

#endif
