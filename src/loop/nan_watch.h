/* What a run tells its NaN watch, if it has one. Internal. */
#ifndef SGM_LOOP_NAN_WATCH_H
#define SGM_LOOP_NAN_WATCH_H

#include "trainer/view.h"

/* At the start of a run: the watch keeps what is there. */
sgm_status sgm__nan_watch_begin(sgm_trainer *trainer);
/* After a step that failed with SGM_ERROR_NUMERIC, which the thread's error tells. The same status, with a
 * better message; or SGM_OK: the trainer stands before the bad step again, and is to pause. */
sgm_status sgm__nan_watch_look(sgm_trainer *trainer, sgm_status status);

#endif
