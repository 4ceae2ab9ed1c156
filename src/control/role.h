/* What an asker may do: look, steer, or all. Internal.
 *
 * What a training does is steered; what would be lost for good, or concerns more than the training, is an
 * administrator's: checkpoints that are replaced, deleted or come from elsewhere, files that are named by
 * their paths, programs that rules run, and what others ask leave for. Roles are ordered: who may steer may
 * look, and an administrator may do both. A role belongs to the way a
 * request comes (the socket, a token of the page); a request may lower it, never raise it. */
#ifndef SGM_CONTROL_ROLE_H
#define SGM_CONTROL_ROLE_H

#include "base/base.h"

typedef enum sgm__role {
    SGM__ROLE_LOOK,  /* read values, curves and what was done */
    SGM__ROLE_STEER, /* and change the training */
    SGM__ROLE_ADMIN, /* and do the rest */
    SGM__ROLE_COUNT
} sgm__role;

/* "look", "steer", "admin". */
const char *sgm__role_name(sgm__role role);
/* SGM_ERROR_ARGUMENT: there is no role of that name. */
sgm_status sgm__role_parse(const char *text, sgm__role *role);
/* SGM_OK if `has` is at least `needed`; else SGM_ERROR_PERMISSION, whose message names `what` and both. */
sgm_status sgm__role_check(const char *what, sgm__role has, sgm__role needed);

#endif
