/* journal.jsonl of a run's folder: what happened to the run, line by line, with checksums. Internal.
 *
 * Each line is a JSON object that names its "event" first and ends in "checksum": the CRC-32 of the checksum
 * of the line before it ("00000000" for the first line) and of the line's text up to its own checksum. So a
 * line that was changed, removed, added or moved is found, and named by its number. It is no signature. Lines
 * are only ever appended, by the one process that has the folder's lock, in one write each: a process that
 * is killed leaves whole lines. history.h tells what the lines mean together. */
#ifndef SGM_JOURNAL_JOURNAL_FILE_H
#define SGM_JOURNAL_JOURNAL_FILE_H

#include "base/base.h"
#include <jansson.h>

#define SGM__JOURNAL_FILE "journal.jsonl"
#define SGM__JOURNAL_LARGEST ((size_t)1 << 30) /* bytes of a journal that is read */

/* Appends a line. `object` is its text, a JSON object without "checksum". A last line without an end, which a
 * system that went down has left, is cut off first. */
sgm_status sgm__journal_append(const char *folder, const char *object);

/* Called for each line in order; number: from 1. SGM_ERROR_FORMAT: the line makes no sense, which counts as
 * damage. */
typedef sgm_status (*sgm__journal_line_function)(void *user, int64_t number, const json_t *line);
/* Reads all lines; a folder without a journal has none. A line that is damaged, or does not belong behind
 * the one before it, is an error that names it; with `warn_as`, the name of a trainer, it is a warning of
 * that trainer, and a line without JSON is passed over. */
sgm_status sgm__journal_read(const char *folder, const char *warn_as, sgm__journal_line_function function,
                             void *user);

#endif
