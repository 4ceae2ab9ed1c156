/* Changes as text, what a resumed run makes of them, and values that are not what the program set. Internal.
 */
#ifndef SGM_JOURNAL_CHANGES_H
#define SGM_JOURNAL_CHANGES_H

#include "journal/change_record.h"

/* --- changes.c --- */
/* A value as changes.jsonl and answers to requests show it: numbers as they are; a tensor by its shape, its
 * norm and its first eight elements. NULL: out of memory. */
json_t *sgm__content_change_json(const sgm_content *content);
/* After a resume: reads from changes.jsonl what a person or the program set after the checkpoint, to be made
 * again at the same iterations. Lines of hooks' changes are dropped, as the hooks make them again; a change
 * that cannot be made again is logged as a warning. */
sgm_status sgm__changes_read(sgm_trainer *trainer);
/* Makes the changes again that are due at the present iteration. */
void sgm__changes_remake(sgm_trainer *trainer);
/* The value was set anew at this iteration: changes of it from here on are not made again. */
void sgm__changes_supersede(sgm_trainer *trainer, const char *identifier, int64_t iteration);
void sgm__changes_forget(sgm_trainer *trainer);
/* Seconds that the training had been running at its present position, by the lines of metrics.jsonl. */
double sgm__run_folder_seconds(const sgm_trainer *trainer, const char *folder);

/* --- settings.c: values that differ from what the program set, which checkpoints keep --- */
sgm_status sgm__settings_note(sgm_trainer *trainer, const char *identifier, const char *before,
                              const char *after);
/* Sets an entry of the registry from a text, as the type that the entry has. */
sgm_status sgm__settings_set(sgm_trainer *trainer, const char *identifier, const char *text);
void sgm__settings_forget(sgm_trainer *trainer);
json_t *sgm__settings_describe(const sgm_trainer *trainer);
/* Makes the changes of a checkpoint and takes all others back. Where the program sets another value now, that
 * value stays, and the log says so. */
void sgm__settings_restore(sgm_trainer *trainer, const json_t *settings);
/* Copies the list of changed settings: what was changed in `from` counts as changed in `to`. */
sgm_status sgm__settings_copy(const sgm_trainer *from, sgm_trainer *to);

#endif
