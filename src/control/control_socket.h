/* The control socket of a run: commands from other processes, over a Unix socket in the run's folder.
 * Internal.
 *
 * A line is a JSON object, and so is the answer: {"command":"set","identifier":"optimiser.learning_rate",
 * "value":"0.01"} gives {"ok":true,...} or {"ok":false,"error":"..."}. docs/manual/12-watching.md has all
 * commands. */
#ifndef SGM_CONTROL_CONTROL_SOCKET_H
#define SGM_CONTROL_CONTROL_SOCKET_H

#include "trainer/view.h"

#define SGM__CONTROL_FILE "control.sock"
#define SGM__LONGEST_COMMAND ((size_t)16384) /* bytes of a line, without its newline */

typedef struct sgm__control_server sgm__control_server;
/* Listens on FOLDER/control.sock. The caller holds the folder's lock, and keeps the text `folder` alive
 * until the server has stopped. NULL: the socket could not be made; a warning is logged, and the run goes
 * on without one. */
sgm__control_server *sgm__control_server_start(sgm_trainer *trainer, const char *folder);
void sgm__control_server_stop(sgm__control_server *server); /* the caller may hold the trainer's lock */

#endif
