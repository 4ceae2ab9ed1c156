/* Lines of journal.jsonl, and the values that differ from what the program set. Internal.
 *
 * With the trainer's lock, but for sgm__content_change_json. */
#ifndef SGM_JOURNAL_CHANGES_H
#define SGM_JOURNAL_CHANGES_H

#include "journal/change_record.h"

/* --- changes.c --- */
/* A value as journal.jsonl and answers to requests show it: numbers as they are; a tensor by its shape, its
 * norm and its first eight elements. NULL: out of memory. */
json_t *sgm__content_change_json(const sgm_content *content);
/* Seconds that the training had been running at its present position, as metrics.jsonl tells; 0: it has no
 * line for it. */
double sgm__run_folder_seconds(const sgm_trainer *trainer, const char *folder);

/* --- settings.c: values that differ from what the program set, which checkpoints keep --- */
/* Notes that a value was changed, both values as texts. Identifiers and texts are copied. */
sgm_status sgm__settings_note(sgm_trainer *trainer, const char *identifier, const char *before,
                              const char *after);
/* Sets an entry of the registry from a text, as the type that the entry has. */
sgm_status sgm__settings_set(sgm_trainer *trainer, const char *identifier, const char *text);
/* Whether an entry has the value that the text means: "0.10" and "0.1" are the same number. */
bool sgm__settings_is_now(const sgm_trainer *trainer, const char *identifier, const char *text);
/* Empties the list. */
void sgm__settings_forget(sgm_trainer *trainer);
/* The list as a JSON object for a checkpoint: {IDENTIFIER: [FIRST, NEWEST], ...}. */
json_t *sgm__settings_describe(const sgm_trainer *trainer);
/* Sets the values that a checkpoint lists, and sets all others in this trainer's list back to what the
 * program set. Where the program sets a value otherwise than it did at first, that stays, and the log says
 * so. */
void sgm__settings_restore(sgm_trainer *trainer, const json_t *settings);
/* Sets the changed values of `from` in `to` as well, where they count as changed, too. */
sgm_status sgm__settings_copy(const sgm_trainer *from, sgm_trainer *to);

#endif
