/* The fields that every request may have: how long the asker waits, why it asks, under which name and role,
 * and whether it only wants to know what would change. Internal.
 *
 * command_table.h has a row for each (sgm__request_terms). */
#ifndef SGM_CONTROL_REQUEST_TERMS_H
#define SGM_CONTROL_REQUEST_TERMS_H

#include "control/control.h"

typedef struct sgm__terms {
    double within;      /* seconds that the asker waits; 0: it does not say */
    const char *reason; /* NULL: none; borrowed from the request */
    sgm__role role;
    bool dry;
    char *who; /* with the name that the asker gave itself; sgm__free */
} sgm__terms;
/* Reads and checks the terms, and removes all but the reason from the request. */
sgm_status sgm__terms_read(const sgm__control_call *call, json_t *request, sgm__terms *terms);

#endif
