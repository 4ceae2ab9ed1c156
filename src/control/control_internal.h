/* What the commands share. Internal to them. */
#ifndef SGM_CONTROL_CONTROL_INTERNAL_H
#define SGM_CONTROL_CONTROL_INTERNAL_H

#include "control/control.h"
#include "control/control_answer.h"
#include "journal/change_record.h"

typedef struct sgm__command {
    const sgm__control_call *call;
    const json_t *request;
    json_t *answer;
    bool locked; /* with the trainer's lock */
} sgm__command;

/* A field of the request, which is a text; NULL: it is not there. */
const char *sgm__command_field(const sgm__command *c, const char *name);

/* --- control_values.c: get, set, list; with the trainer's lock --- */
/* All that match; none is an error, which names the nearest. */
sgm_status sgm__command_find(const sgm__command *c, const char *identifier, sgm_matches *matches);
sgm_status sgm__command_get(sgm__command *c);
sgm_status sgm__command_set(sgm__command *c);
/* control_list.c: what there is; with "values": what it is, too. Takes the lock itself, bit by bit. */
sgm_status sgm__command_list(sgm__command *c);
/* The row of an entry, by its identifier; NULL: it has none. */
const sgm_option *sgm__command_option(sgm_registry *root, const char *identifier);

/* --- control_hooks.c --- */
sgm_status sgm__command_attach(sgm__command *c);
sgm_status sgm__command_detach(sgm__command *c);
/* Takes off the hook of a change, or puts it back; without the trainer's lock. */
sgm_status sgm__command_undo_hook(sgm__command *c, int64_t number, const sgm__hook_undo *undo);
sgm_status sgm__command_hooks(sgm__command *c);

#endif
