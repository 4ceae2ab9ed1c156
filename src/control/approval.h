/* Requests that wait for an administrator's leave. Internal.
 *
 * A trainer has patterns (sgm_trainer_require_approval): of commands and of identifiers. What an asker of a
 * lower role than "admin" requests of these is kept, with a number, until an administrator approves of it or
 * denies it, or until it expires. Those that are decided are kept for a while, so that the asker can look. */
#ifndef SGM_CONTROL_APPROVAL_H
#define SGM_CONTROL_APPROVAL_H

#include "control/control_internal.h"

#define SGM__APPROVAL_SECONDS 600.0 /* after which a request expires */

/* When a run begins and all values have their names: warns of patterns that match none, which protect
 * nothing. */
void sgm__approval_check(sgm_trainer *trainer);
/* Whether the request has to wait. */
bool sgm__approval_needed(const sgm__control_request *c);
/* Keeps it, and answers with {"pending": NUMBER, "expires": SECONDS since 1970}. */
sgm_status sgm__approval_ask(sgm__control_request *c);
#endif
