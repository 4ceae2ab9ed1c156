/* Where things of the user lie, as the XDG base directory specification says (relative values are ignored).
 */
#ifndef SIGMA_PATHS_H
#define SIGMA_PATHS_H

#include <sigma/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sgm_folder {
    SGM_FOLDER_DATA, /* data sets of the user: SIGMA_DATA_DIR, $XDG_DATA_HOME/sigma or ~/.local/share/sigma */
    SGM_FOLDER_CACHE /* what was fetched: SIGMA_CACHE_DIR, $XDG_CACHE_HOME/sigma or ~/.cache/sigma */
} sgm_folder;
/* The path, whether there is such a folder or not; free with sgm_string_free. NULL: no home is known. */
SGM_API char *sgm_folder_path(sgm_folder folder);

#ifdef __cplusplus
}
#endif
#endif
