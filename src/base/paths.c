/* Finds the user's folders for data, downloads and state, following the XDG base directory specification.
 *
 * For each folder, in this order: the variable of Sigma's own (SIGMA_DATA_DIR), taken as it is; "sigma" below
 * the XDG variable; "sigma" below the specification's default in HOME. The specification says to ignore
 * relative values. Nothing is created here: sources that download (src/data/read) do that. */
#include "base/base.h"
#include <sigma/base.h>

#include <stdlib.h>

/* `name` is for the message; `own_variable` belongs to Sigma, `variable` to XDG; `below_home` is the default
 * of the specification. */
typedef struct known_folder {
    const char *name, *own_variable, *variable, *below_home;
} known_folder;

static const known_folder folders[] = {
    [SGM_FOLDER_DATA] = {"data", "SIGMA_DATA_DIR", "XDG_DATA_HOME", ".local/share"},
    [SGM_FOLDER_CACHE] = {"downloaded files", "SIGMA_CACHE_DIR", "XDG_CACHE_HOME", ".cache"},
    [SGM_FOLDER_STATE] = {"state", "SIGMA_STATE_DIR", "XDG_STATE_HOME", ".local/state"},
};

char *sgm_folder_path(sgm_folder folder)
{
    if ((size_t)folder >= sizeof folders / sizeof *folders) {
        sgm_fail(SGM_ERROR_ARGUMENT, "there is no folder %d", (int)folder);
        return NULL;
    }
    const known_folder *f = &folders[folder];
    const char *own = getenv(f->own_variable), *base = getenv(f->variable), *home = getenv("HOME");
    if (own != NULL && own[0] != '\0')
        return sgm__strdup(own);
    if (base != NULL && base[0] == '/')
        return sgm__format("%s/sigma", base);
    if (home != NULL && home[0] == '/')
        return sgm__format("%s/%s/sigma", home, f->below_home);
    sgm_fail(
        SGM_ERROR_FILE,
        "there is no folder for %s, because %s is not set, and neither %s nor HOME is an absolute path; set "
        "one of them",
        f->name, f->own_variable, f->variable);
    return NULL;
}
