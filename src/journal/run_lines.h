/* The files of a run's folder, and lines that are appended to them: metrics, changes, branches. Internal. */
#ifndef SGM_JOURNAL_RUN_LINES_H
#define SGM_JOURNAL_RUN_LINES_H

#include "journal/change_record.h"

#define SGM__RUN_FILE "run.json" /* {"version": of the folder's files} */
#define SGM__CHECKPOINT_FILE "checkpoint.safetensors"
#define SGM__METRICS_FILE "metrics.jsonl"
#define SGM__HISTOGRAMS_FILE "histograms.jsonl"
#define SGM__CHANGES_FILE "changes.jsonl"
#define SGM__BRANCHES_FILE "branches.jsonl"
#define SGM__LOG_FILE "log.txt"

/* Appends a line of text to a file. */
sgm_status sgm__run_folder_append(const char *folder, const char *file, const char *line);
/* Appends who changed what. */
sgm_status sgm__run_folder_change(const char *folder, const sgm__noted_change *change);

/* --- branches: each reset or restore leaves one and begins the next --- */
typedef struct sgm__branch {
    const char *who;
    int64_t number, of; /* 0 is the first */
    int64_t left_epoch, left_iteration;
    char left[64]; /* name of the checkpoint of where `of` was left */
} sgm__branch;
/* One that branches.jsonl does not know. */
sgm_status sgm__run_folder_next_branch(const sgm_trainer *trainer, int64_t *number);
/* Appends a branch that begins where the trainer stands: `from` a checkpoint, NULL: from the beginning. */
sgm_status sgm__run_folder_branch(const sgm_trainer *trainer, const sgm__branch *branch, const char *from);

#endif
