/* The checkpoints of a trainer by name: NAME.safetensors in the folder of its newest run, or, while it has
 * had no run with a folder, in a temporary folder of the trainer's own, which is removed with it. Internal.
 *
 * Any thread may call these functions; only adding waits for a step. Names come from outside the process,
 * so a name can never be a path. */
#ifndef SGM_RUNS_CHECKPOINTS_H
#define SGM_RUNS_CHECKPOINTS_H

#include "journal/history.h"
#include "trainer/view.h"

#define SGM__CHECKPOINT_NAME 200 /* longest name, in bytes, without ".safetensors" */

/* A run in this folder begins: from now on checkpoints are kept there. */
sgm_status sgm__checkpoints_begin(sgm_trainer *trainer, const char *folder);

/* Fails unless a checkpoint can be called so: 1 to 200 bytes without '/' and control characters, not
 * beginning with '.'. */
sgm_status sgm__checkpoint_name_check(const char *name);
/* The checkpoint that a branch began with (origin.h); it can be read like all others. */
#define SGM__ORIGIN_NAME "origin"
/* Fails also for SGM__ORIGIN_NAME: nothing that is asked for is written under it. */
sgm_status sgm__checkpoint_name_is_free(const char *name);
/* As sgm_trainer_save, but calls `before_rename` before the file takes its place; if that fails, the old one
 * stays (trainer_checkpoint.c). */
sgm_status sgm__trainer_save_with_callback(sgm_trainer *trainer, const char *path,
                                           sgm__before_rename_function before_rename, void *user);
/* The path of a checkpoint that exists, or, with `make`, of one that is to be written; free with
 * sgm__free. A name of no checkpoint is SGM_ERROR_NOT_FOUND, with the nearest name. */
sgm_status sgm__checkpoint_path(sgm_trainer *trainer, const char *name, bool make, char **path);
bool sgm__checkpoint_exists(sgm_trainer *trainer, const char *name);

typedef struct sgm__checkpoint {
    char name[SGM__CHECKPOINT_NAME + 1];
    uint64_t bytes;
    double time;              /* when it was written, seconds since 1970 */
    int64_t epoch, iteration; /* -1: the file does not say, or another program wrote it */
    bool newest;              /* no other checkpoint was written later */
} sgm__checkpoint;
/* Newest first; free with sgm__free. Only the headers of files are read. */
sgm_status sgm__checkpoints_list(sgm_trainer *trainer, sgm__checkpoint **list, size_t *count);
/* Adds a copy of `file`, a descriptor that is read from its present offset to its end, in the name of `who`,
 * for a reason (NULL: none is said). The whole file is checked first, with its checksums, and whether it fits
 * the trainer. A name that exists is refused; a refused file leaves nothing behind. */
sgm_status sgm__checkpoint_add(sgm_trainer *trainer, const char *name, const char *who, const char *reason,
                               int file);
/* Has the journal tell that a checkpoint was saved or uploaded: replays need it if it is restored later. With
 * the trainer's lock. */
sgm_status sgm__checkpoint_tell(sgm_trainer *trainer, sgm__entry_kind kind, const char *who, const char *name,
                                const char *path);
/* Removes a checkpoint. "checkpoint" in a run folder, from which a resume goes on, is refused. */
sgm_status sgm__checkpoint_remove(sgm_trainer *trainer, const char *name);

#endif
