/* Pictures in the body of a request, for networks that were trained on pictures (sigma/picture.h): one as the
 * body itself, or several as the files of a form. Internal to src/monitors/serve.
 *
 *     curl -H 'Content-Type: image/png' --data-binary @cat.png ADDRESS
 *     curl -F picture=@cat.png -F picture=@dog.jpg ADDRESS
 */
#ifndef SGM_MONITORS_SERVE_PICTURES_H
#define SGM_MONITORS_SERVE_PICTURES_H

#include "monitors/http/http.h"
#include <sigma/picture.h>

/* Media types of such bodies, as a route names them. */
#define SGM__SERVE_PICTURE_TYPES "image/png image/jpeg multipart/form-data"

/* Whether the body is declared to be pictures. */
bool sgm__serve_has_pictures(const sgm__http_request *request);
/* Pictures of a request; their bytes are the request's. */
typedef struct sgm__serve_pictures {
    sgm_picture *pictures;
    char **names; /* of the files, for messages */
    size_t count, capacity, name_capacity;
} sgm__serve_pictures;
/* Finds the pictures of a body, into a zeroed list. On failure the list may be freed like any other. */
sgm_status sgm__serve_find_pictures(const sgm__http_request *request, sgm__serve_pictures *found);
void sgm__serve_pictures_free(sgm__serve_pictures *found);

#endif
