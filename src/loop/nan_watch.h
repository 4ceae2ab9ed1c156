/* What a run tells its NaN watch, if it has one. Internal. */
#ifndef SGM_LOOP_NAN_WATCH_H
#define SGM_LOOP_NAN_WATCH_H

#include "trainer/view.h"

/* At the start of a run: the watch takes its first snapshot, unless no watch is attached. */
sgm_status sgm__nan_watch_begin(sgm_trainer *trainer);
/* After a step that failed with SGM_ERROR_NUMERIC and the thread's error. Returns the same status with a
 * message that names the step and, if possible, the instruction; or SGM_OK: the trainer is set back to before
 * the bad step, and a pause was asked for. */
sgm_status sgm__nan_watch_look(sgm_trainer *trainer, sgm_status status);

#endif
