/* The files of a run's folder, and lines that are appended to them: metrics, and events of the journal.
 * Internal.
 *
 * changes.c has the functions; src/runs/run_folder.c opens the folder and cuts files back after a resume. */
#ifndef SGM_JOURNAL_RUN_LINES_H
#define SGM_JOURNAL_RUN_LINES_H

#include "journal/change_record.h"
#include "journal/history.h"
#include "journal/journal_file.h"

#define SGM__RUN_FILE "run.json" /* {"version": of the folder's files} */
#define SGM__CHECKPOINT_FILE "checkpoint.safetensors"
#define SGM__METRICS_FILE "metrics.jsonl"
#define SGM__HISTOGRAMS_FILE "histograms.jsonl"
#define SGM__SAMPLES_FILE "samples.jsonl" /* texts of language models while they are trained */
#define SGM__LOG_FILE "log.txt"
#define SGM__TENSORS_FOLDER "changes/" /* of tensors that persons set */

/* Appends a line, given without its end, to a file of the folder, in one write. The journal is appended to by
 * the functions below. */
sgm_status sgm__run_folder_append(const char *folder, const char *file, const char *line);
/* Appends a change to journal.jsonl. */
sgm_status sgm__run_folder_change(const char *folder, const sgm__noted_change *change);
/* Appends that a button was pressed. */
sgm_status sgm__run_folder_press(const char *folder, const sgm__noted_change *change);
/* Appends another event at the trainer's position, if the run has a folder. `more`: members of the line
 * behind the position, taken over; NULL: none. */
sgm_status sgm__run_folder_event(const sgm_trainer *trainer, sgm__entry_kind kind, json_t *more);

/* Writes a tensor that was set to changes/ITERATION-NUMBER.npy of the folder. *file: that name, below the
 * folder; sgm__free. */
sgm_status sgm__run_folder_tensor(const char *folder, int64_t iteration, const sgm_tensor *tensor,
                                  char **file);
/* The path of such a file; sgm__free. NULL: it is no such name, or memory is short. */
char *sgm__run_folder_tensor_path(const char *folder, const char *file);

/* --- branches: a reset or a restore ends one branch of the run and begins another --- */
typedef struct sgm__branch {
    const char *who;    /* the asker of the reset or restore */
    int64_t number, of; /* numbers of the new branch and of the one that was left; a run begins with 0 */
    int64_t left_epoch, left_iteration; /* where branch `of` was left */
    char left[64];                      /* name of the checkpoint that was made there */
} sgm__branch;
/* A number for a new branch, which the journal does not have yet. */
sgm_status sgm__run_folder_next_branch(const sgm_trainer *trainer, int64_t *number);
/* Appends that a branch was left for one that begins at the trainer's position. `from`: the checkpoint that
 * it begins with; NULL: it is a reset. `path`: of that checkpoint, for its checksum. */
sgm_status sgm__run_folder_move(const sgm_trainer *trainer, const sgm__branch *branch, const char *from,
                                const char *path);

#endif
