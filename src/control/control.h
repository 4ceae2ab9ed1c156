/* Commands to a trainer as JSON, for those who steer it while it runs: the control socket, monitors.
 * docs/manual/12-watching.md has all of them. Internal. */
#ifndef SGM_CONTROL_CONTROL_H
#define SGM_CONTROL_CONTROL_H

#include "trainer/view.h"
#include <jansson.h>

typedef struct sgm__control_call {
    sgm_trainer *trainer; /* in whatever state, with or without a folder */
    const char *who;      /* as the log and the record of changes name it: "ctl", "monitor" */
    bool files;           /* requests may name files: whoever asks may read and write as this process */
} sgm__control_call;

/* Does what {"command": ..., ...} asks for, and adds to the object `answer`. Numbers, booleans and lists in
 * the request become texts. Errors name the field or the identifier, what was expected and what came. Any
 * thread. What is quick is done at once, be it without all that `status` tells; all else waits for the step
 * that is running, with the thread's patience (trainer_lock.h), or as many seconds as "within" says. When
 * that is over, or who asks has left, nothing is done. */
sgm_status sgm__control_obey(const sgm__control_call *call, json_t *request, json_t *answer);
/* Pausing, going on, stopping, and what is only shown: see the table. */
bool sgm__control_is_quick(const char *line, size_t length);
/* For a line of text: {"ok":true,...} or {"ok":false,"error":"..."}, without a newline; free with sgm__free.
 * NULL: out of memory. */
char *sgm__control_answer(const sgm__control_call *call, const char *line, size_t length);

#endif
