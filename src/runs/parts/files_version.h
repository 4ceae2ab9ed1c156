/* The version of the files that Sigma writes for itself: checkpoints, run folders, logs of searches.
 * Internal. */
#ifndef SGM_RUNS_FILES_VERSION_H
#define SGM_RUNS_FILES_VERSION_H

#include "base/base.h"
#include <jansson.h>

/* Grows with each release that changes a key, the name of a state or a word of the notation. */
#define SGM__FILES_VERSION 2

/* Fails if the member "version" of an object is not SGM__FILES_VERSION. Files of version 1 may lack it.
 * The caller adds the name of the file to the message, with sgm__fail_within. */
sgm_status sgm__files_version_check(const json_t *object);

#endif
