/* What the files of the steering share. Internal to them. */
#ifndef SGM_MONITORS_WEB_STEER_H
#define SGM_MONITORS_WEB_STEER_H

#include "monitors/web/web.h"

#define SGM__WEB_WHO "monitor" /* in the log, and in the record of changes */

/* --- steer.c --- */
/* A command of control/control.h to a trainer; `request` and `answer` stay the caller's. */
sgm_status sgm__web_command(const sgm__http_request *request, sgm__web_trainer *watched, json_t *command,
                            json_t *answer);

/* --- routes: tree.c, checkpoints.c, branch.c --- */
sgm_status sgm__web_get_tree(void *web, const sgm__http_request *request, sgm__http_answer *answer);
sgm_status sgm__web_get_checkpoints(void *web, const sgm__http_request *request, sgm__http_answer *answer);
sgm_status sgm__web_get_checkpoint(void *web, const sgm__http_request *request, sgm__http_answer *answer);
sgm_status sgm__web_add_checkpoint(void *web, const sgm__http_request *request, sgm__http_answer *answer);
sgm_status sgm__web_delete_checkpoint(void *web, const sgm__http_request *request, sgm__http_answer *answer);
sgm_status sgm__web_branch(void *web, const sgm__http_request *request, sgm__http_answer *answer);

#endif
