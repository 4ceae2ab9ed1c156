/* The names of roles, and their order: see role.h. */
#include "control/role.h"

static const char *const names[SGM__ROLE_COUNT] = {
    [SGM__ROLE_LOOK] = "look", [SGM__ROLE_STEER] = "steer", [SGM__ROLE_ADMIN] = "admin"};

const char *sgm__role_name(sgm__role role)
{
    return names[role];
}

sgm_status sgm__role_parse(const char *text, sgm__role *role)
{
    for (size_t i = 0; text != NULL && i < SGM__ROLE_COUNT; i++)
        if (strcmp(text, names[i]) == 0) {
            *role = (sgm__role)i;
            return SGM_OK;
        }
    return sgm_fail(SGM_ERROR_ARGUMENT, "a role is 'look', 'steer' or 'admin', not '%.100s'",
                    text != NULL ? text : "");
}

sgm_status sgm__role_check(const char *what, sgm__role has, sgm__role needed)
{
    return has >= needed ? SGM_OK
                         : sgm_fail(SGM_ERROR_PERMISSION, "%s needs the role '%s', this is '%s'", what,
                                    names[needed], names[has]);
}
