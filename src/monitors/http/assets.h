/* The files of web/ and of dygraphs, which the build puts into the library, so that an installed program
 * needs no files beside it; and those that the program adds. Internal. */
#ifndef SGM_MONITORS_HTTP_ASSETS_H
#define SGM_MONITORS_HTTP_ASSETS_H

#include "base/base.h"

/* One file; all of it is constant for the life of the process. */
typedef struct sgm__asset {
    const char *path; /* in the server: "/main.js" */
    const char *bytes;
    size_t length;
    const char *type; /* media type */
    char tag[36];     /* strong ETag, with its quotes */
} sgm__asset;
/* NULL: there is no such file. */
const sgm__asset *sgm__asset_find(const char *path);
/* Those that the build put into the library. */
const sgm__asset *sgm__assets(size_t *count);
/* Adds a file; path and bytes must stay. Any thread. Whoever has the page may read it without the page token
 * (guard.c): it must hold nothing but what is the same for everybody. */
sgm_status sgm__asset_add(const char *path, const char *bytes, size_t length);

#endif
