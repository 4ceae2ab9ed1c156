/* Refuses files of another version by name, before anything is read from them or written beside them. */
#include "runs/files_version.h"

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
