/* What the files of the part `steer` share: commands, tree of values, checkpoints.
 *
 * steer.c has the table of the part with all routes; tree.c and checkpoints.c have the functions
 * of some of them. Internal to these files. */
#ifndef SGM_MONITORS_WEB_STEER_H
#define SGM_MONITORS_WEB_STEER_H

#include "monitors/terms.h"
#include "monitors/web/web.h"

/* --- steer.c --- */
/* Who asks, and of which trainer. The texts of `call` are kept in `who`. */
sgm__control_call sgm__web_call(const sgm__web_trainer *watched, const sgm__http_request *request,
                                char who[SGM__MONITOR_WHO_SIZE]);
/* Carries out a command of control/control.h on a borrowed trainer, and answers with what that gives.
 * `command` stays the caller's. */
sgm_status sgm__web_command(const sgm__web_trainer *watched, const sgm__http_request *request,
                            json_t *command, sgm__http_answer *answer);

/* --- actions on a trainer (sgm__web_on_trainer): tree.c, checkpoints.c --- */
sgm_status sgm__web_get_tree(void *watched, const sgm__http_request *request, sgm__http_answer *answer);
sgm_status sgm__web_get_checkpoints(void *watched, const sgm__http_request *request,
                                    sgm__http_answer *answer);
sgm_status sgm__web_get_checkpoint(void *watched, const sgm__http_request *request, sgm__http_answer *answer);
sgm_status sgm__web_add_checkpoint(void *watched, const sgm__http_request *request, sgm__http_answer *answer);
sgm_status sgm__web_delete_checkpoint(void *watched, const sgm__http_request *request,
                                      sgm__http_answer *answer);

#endif
