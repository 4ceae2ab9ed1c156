/* Commands to a trainer as JSON, for whoever steers it while it runs: the control socket
 * (control_socket.c) and the page (src/monitors/). docs/manual/12-watching.md describes all commands.
 * Internal. */
#ifndef SGM_CONTROL_CONTROL_H
#define SGM_CONTROL_CONTROL_H

#include "control/rate.h"
#include "control/role.h"
#include "trainer/view.h"
#include <jansson.h>

typedef struct sgm__control_call {
    sgm_trainer *trainer; /* in whatever state, with or without a folder */
    const char *who;      /* the asker's name in the log and in the record of changes: "ctl", "monitor" */
    sgm__role role;       /* which a request may lower */
    /* The request was approved, and this is the reason for the journal; NULL: it may have to wait for that.
     */
    const char *approved;
    sgm__rate *changes; /* how often changes may come; NULL: as often as they come */
    bool files; /* requests may name files, which are read and written with the rights of this process */
} sgm__control_call;

/* Carries out {"command": ..., ...}, as command_table.h has it, and adds its results to the object `answer`.
 * Numbers, booleans and lists in the request become texts, in place. Errors name the field or the identifier,
 * what was expected and what came. Any thread. Quick commands are carried out at once; `status` leaves out
 * what needs the trainer's lock if the trainer is busy. All other commands wait for the step that is running:
 * as long as the thread's patience allows (trainer_lock.h), or as many seconds as the field "within" says. If
 * the wait is over, or the asker has left, the command changes nothing. */
sgm_status sgm__control_obey(const sgm__control_call *call, json_t *request, json_t *answer);
/* A number that grows with each change of the list of requests that wait for approval; any thread. */
unsigned sgm__control_pending_version(const sgm_trainer *trainer);
/* Whether the command on this line never waits for a step, or only for a fraction of a second: pausing,
 * resuming, stopping, and reading what needs no lock. A line that is no command is quick, too. */
bool sgm__control_is_quick(const char *line, size_t length);
/* Carries out the command on a line of text and answers with one line: {"ok":true,...} or
 * {"ok":false,"error":"..."}, without a newline; free with sgm__free. NULL: out of memory. */
char *sgm__control_answer(const sgm__control_call *call, const char *line, size_t length);

#endif
