/* The folder of a run: run.json, checkpoint.safetensors, metrics.jsonl, histograms.jsonl, journal.jsonl and
 * log.txt. Internal.
 *
 * The training's thread calls these functions; journal/run_lines.h has the names of the files, and appends
 * lines. */
#ifndef SGM_RUNS_RUN_FOLDER_H
#define SGM_RUNS_RUN_FOLDER_H

#include "journal/run_lines.h"

/* Makes the folder and locks it against other runs until *lock is closed. With `resume`, loads the
 * checkpoint if there is one, and drops lines of metrics and histograms that are newer. Without a
 * checkpoint, existing lines are kept in files of other names. */
sgm_status sgm__run_folder_open(sgm_trainer *trainer, const char *folder, bool resume, int *lock);
/* Refuses a folder whose files are of another version, before anything in it is read or changed. */
sgm_status sgm__run_folder_check(const char *folder);
/* Locks an existing folder against other runs until *lock is closed. */
sgm_status sgm__run_folder_lock(const char *folder, int *lock);
void sgm__run_folder_close(int lock); /* -1: nothing to do */
/* Writes all that the process logs, from SGM_LOG_INFO on, to the folder's log.txt as well, until the sink
 * is removed. NULL, with a warning: it cannot be written. */
sgm_log_sink *sgm__run_folder_log(const sgm_trainer *trainer, const char *folder);
/* Appends the line of an epoch that has just ended. */
sgm_status sgm__run_folder_epoch(const sgm_trainer *trainer, const char *folder, double seconds);
/* Saves NAME.safetensors. */
sgm_status sgm__run_folder_save_as(sgm_trainer *trainer, const char *folder, const char *name);
/* Saves checkpoint.safetensors, from which a resume goes on. The journal has a line for it; a replay compares
 * it with that of the run that it repeats. */
sgm_status sgm__run_folder_save(sgm_trainer *trainer, const char *folder);
/* The journal's line for the beginning of a process: what the run is made of, how long it is to be, and the
 * state that it begins with if that is one of another training (origin.h). */
sgm_status sgm__run_folder_begin(sgm_trainer *trainer, bool resumed);

#endif
