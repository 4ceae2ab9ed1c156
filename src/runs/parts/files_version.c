/* The check of the version that Sigma's own files carry: other versions are refused by number.
 *
 * Called before anything is read from a file or written beside it: by run_folder.c for run.json, by
 * state.c for checkpoints, by searches for their logs, by monitors for folders that they list. There is no
 * reader of older versions, as a key whose meaning has changed would be read wrongly without a word. */
#include "runs/parts/files_version.h"

/* An object without a version, and NULL, count as version 1, whose files had none. */
sgm_status sgm__files_version_check(const json_t *object)
{
    const json_t *version = json_object_get(object, "version");
    long long found = version != NULL ? (long long)json_integer_value(version) : 1;
    if (found == SGM__FILES_VERSION)
        return SGM_OK;
    return sgm_fail(
        SGM_ERROR_FORMAT,
        "its version is %lld, this library reads version %d; use the library that wrote it, or train "
        "anew in another folder",
        found, SGM__FILES_VERSION);
}
