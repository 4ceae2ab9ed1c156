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

/* --- control_values.c: get, set, list; with the trainer's lock --- */
/* All that match; none is an error, which names the nearest. */
sgm_status sgm__control_find(const sgm__control_request *c, const char *identifier, sgm_matches *matches);
sgm_status sgm__control_get(sgm__control_request *c);
sgm_status sgm__control_set(sgm__control_request *c);
/* control_list.c: what there is; with "values": what it is, too. Takes the lock itself, bit by bit. */
sgm_status sgm__control_list(sgm__control_request *c);
/* The row of an entry, by its identifier; NULL: it has none. */
const sgm_option *sgm__control_option(sgm_registry *root, const char *identifier);

/* --- control_hooks.c --- */
sgm_status sgm__control_attach(sgm__control_request *c);
sgm_status sgm__control_detach(sgm__control_request *c);
/* Takes off the hook of a change, or puts it back; without the trainer's lock. */
sgm_status sgm__control_undo_hook(sgm__control_request *c, int64_t number, const sgm__hook_undo *undo);
sgm_status sgm__control_hooks(sgm__control_request *c);

#endif
