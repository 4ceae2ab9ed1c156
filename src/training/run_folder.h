/* The run directory: checkpoint.safetensors and metrics.jsonl. Internal. */
#ifndef SGM_TRAINING_RUN_FOLDER_H
#define SGM_TRAINING_RUN_FOLDER_H

#include "training/trainer.h"

#define SGM__CHECKPOINT_FILE "checkpoint.safetensors"
#define SGM__METRICS_FILE "metrics.jsonl"

/* Makes the folder and keeps other runs out of it until it is closed; with `resume`, loads its checkpoint if
 * there is one and drops metrics that are newer than it. */
sgm_status sgm__run_folder_open(sgm_trainer *trainer, const char *folder, bool resume, int *lock);
void sgm__run_folder_close(int lock); /* -1: nothing to do */
/* Appends the line of an epoch that has just ended. */
sgm_status sgm__run_folder_epoch(const sgm_trainer *trainer, const char *folder, double seconds);
sgm_status sgm__run_folder_save(sgm_trainer *trainer, const char *folder);

#endif
