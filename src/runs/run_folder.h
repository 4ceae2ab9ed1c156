/* The run folder: run.json, checkpoint.safetensors, metrics.jsonl, changes.jsonl and log.txt. Internal. */
#ifndef SGM_RUNS_RUN_FOLDER_H
#define SGM_RUNS_RUN_FOLDER_H

#include "journal/run_lines.h"

/* Makes the folder and keeps other runs out of it until it is closed; with `resume`, loads its checkpoint if
 * there is one and drops metrics and histograms that are newer than it. Without a checkpoint those that are
 * there are kept under other names. */
sgm_status sgm__run_folder_open(sgm_trainer *trainer, const char *folder, bool resume, int *lock);
/* Keeps others out of a folder that is there, until it is closed. */
sgm_status sgm__run_folder_lock(const char *folder, int *lock);
void sgm__run_folder_close(int lock); /* -1: nothing to do */
/* What the process logs from now on, from SGM_LOG_INFO on, goes to the folder too; NULL (and a warning): it
 * does not. */
sgm_log_sink *sgm__run_folder_log(const sgm_trainer *trainer, const char *folder);
/* Appends the line of an epoch that has just ended. */
sgm_status sgm__run_folder_epoch(const sgm_trainer *trainer, const char *folder, double seconds);
/* NAME.safetensors; "checkpoint" is the one that a resume goes on from. */
sgm_status sgm__run_folder_save_as(sgm_trainer *trainer, const char *folder, const char *name);
sgm_status sgm__run_folder_save(sgm_trainer *trainer, const char *folder);

#endif
