/* Changes as text, what a resumed run makes of them, and values that are not what the program set. Internal.
 */
#ifndef SGM_JOURNAL_CHANGES_H
#define SGM_JOURNAL_CHANGES_H

#include "journal/change_record.h"

/* --- changes.c --- */
/* A value as the record and answers tell it: numbers as they are; of a tensor its shape, its norm and its
 * first eight elements. NULL: out of memory. */
json_t *sgm__content_change_json(const sgm_content *content);
/* After a resume: finds what ctl or the program set after the checkpoint, to be made again when training is
 * there. Lines of what hooks changed go, as they do it again; what cannot be made again is warned of. */
sgm_status sgm__changes_read(sgm_trainer *trainer);
void sgm__changes_remake(sgm_trainer *trainer); /* what was set by now */
/* It was set otherwise at this iteration. */
void sgm__changes_supersede(sgm_trainer *trainer, const char *identifier, int64_t iteration);
void sgm__changes_forget(sgm_trainer *trainer);
/* How long the training that stands here had been running, as the newest epoch's line in the folder says. */
double sgm__run_folder_seconds(const sgm_trainer *trainer, const char *folder);
/* --- settings.c: values that were changed while the trainer ran --- */
sgm_status sgm__settings_note(sgm_trainer *trainer, const char *identifier, const char *before,
                              const char *after);
/* As the kind that the entry has. */
sgm_status sgm__settings_set(sgm_trainer *trainer, const char *identifier, const char *text);
void sgm__settings_forget(sgm_trainer *trainer);
json_t *sgm__settings_describe(const sgm_trainer *trainer);
/* Makes these changes, and takes others back. One that was set otherwise by the program stays so: that is
 * logged. */
void sgm__settings_restore(sgm_trainer *trainer, const json_t *settings);
/* What was changed in `from` counts as changed in `to`. */
sgm_status sgm__settings_copy(const sgm_trainer *from, sgm_trainer *to);

#endif
