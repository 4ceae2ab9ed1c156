/* The files of web/ and of dygraphs, which the build puts into the library. Internal. */
#ifndef SGM_MONITORS_HTTP_ASSETS_H
#define SGM_MONITORS_HTTP_ASSETS_H

#include "base/base.h"

typedef struct sgm__asset {
    const char *path; /* "/main.js" */
    const char *bytes;
    size_t length;
    const char *type; /* of its content */
    char tag[36];     /* a strong ETag, with its quotes */
} sgm__asset;
/* NULL: there is none. */
const sgm__asset *sgm__asset_find(const char *path);
const sgm__asset *sgm__assets(size_t *count);

#endif
