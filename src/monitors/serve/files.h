/* Files in the body of a request, for networks that were trained on such (sigma/files.h), as pictures: one as
 * the body itself, or several as the files of a form. Internal to src/monitors/serve.
 *
 *     curl -H 'Content-Type: image/png' --data-binary @cat.png ADDRESS
 *     curl -F picture=@cat.png -F picture=@dog.jpg ADDRESS
 */
#ifndef SGM_MONITORS_SERVE_FILES_H
#define SGM_MONITORS_SERVE_FILES_H

#include "data/kinds/kind.h"
#include "monitors/http/http.h"

/* Media types of such bodies, as a route names them. */
#define SGM__SERVE_FILE_TYPES SGM__FILE_TYPES " multipart/form-data"

/* Whether the body is declared to be files. */
bool sgm__serve_has_files(const sgm__http_request *request);
/* Files of a request; their bytes are the request's. */
typedef struct sgm__serve_files {
    sgm_file *files;
    char **names; /* of the files, for messages */
    size_t count, capacity, name_capacity;
} sgm__serve_files;
/* Finds the files of a body, into a zeroed list; a request may be expected to have some of `kind`. On failure
 * the list may be freed like any other. */
sgm_status sgm__serve_find_files(const sgm__http_request *request, const sgm__file_kind *kind,
                                 sgm__serve_files *found);
void sgm__serve_files_free(sgm__serve_files *found);

#endif
