/* The run folder: run.json, checkpoint.safetensors, metrics.jsonl, changes.jsonl and log.txt. Internal. */
#ifndef SGM_TRAINING_RUN_FOLDER_H
#define SGM_TRAINING_RUN_FOLDER_H

#include "training/change_record.h"
#include <jansson.h>

#define SGM__RUN_FILE "run.json" /* {"version": of the folder's files} */
#define SGM__CHECKPOINT_FILE "checkpoint.safetensors"
#define SGM__METRICS_FILE "metrics.jsonl"
#define SGM__HISTOGRAMS_FILE "histograms.jsonl"
#define SGM__CHANGES_FILE "changes.jsonl"
#define SGM__BRANCHES_FILE "branches.jsonl"
#define SGM__LOG_FILE "log.txt"

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
/* --- run_folder_lines.c --- */
/* Appends a line of text to a file. */
sgm_status sgm__run_folder_append(const char *folder, const char *file, const char *line);
/* Appends who changed what. */
sgm_status sgm__run_folder_change(const char *folder, const sgm__noted_change *change);
/* --- change_text.c --- */
json_t *sgm__content_change_json(const sgm_content *content);
/* JSON of a value, a number in the shortest form that reads back the same, those of a tensor to six digits;
 * free(). */
char *sgm__change_value_text(const json_t *value);
/* The members of `head`, then these; sgm__free. */
char *sgm__change_line(const json_t *head, const json_t *before, const json_t *after, int64_t branch);
/* --- changes.c --- */
/* After a resume: finds what ctl or the program set after the checkpoint, to be made again when training is
 * there. Lines of what hooks changed go, as they do it again; what cannot be made again is warned of. */
sgm_status sgm__changes_read(sgm_trainer *trainer);
void sgm__changes_remake(sgm_trainer *trainer); /* what was set by now */
/* It was set otherwise at this iteration. */
void sgm__changes_supersede(sgm_trainer *trainer, const char *identifier, int64_t iteration);
void sgm__changes_forget(sgm_trainer *trainer);
/* How long the training that stands here had been running, as the newest epoch's line in the folder says. */
double sgm__run_folder_seconds(const sgm_trainer *trainer, const char *folder);
/* --- run_folder_lines.c; branches: each reset or restore leaves one and begins the next --- */
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
/* NAME.safetensors; "checkpoint" is the one that a resume goes on from. */
sgm_status sgm__run_folder_save_as(sgm_trainer *trainer, const char *folder, const char *name);
sgm_status sgm__run_folder_save(sgm_trainer *trainer, const char *folder);

#endif
