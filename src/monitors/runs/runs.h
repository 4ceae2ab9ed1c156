/* A page over a folder of runs: those that run, and those that are over. Nothing but their files is asked, so
 * the programs that made them may be gone. Internal. */
#ifndef SGM_MONITORS_RUNS_RUNS_H
#define SGM_MONITORS_RUNS_RUNS_H

#include "base/base.h"
#include <jansson.h>

typedef struct sgm__runs sgm__runs;

typedef struct sgm__runs_options {
    const char *folder; /* whose sub-folders, and theirs, are looked at */
    /* What a config.yaml says as one flat object, {"optimiser.type": "adam", ...}; NULL: an error says what
     * is wrong with it. Called by the server's thread. NULL: configurations are not shown. */
    json_t *(*configuration)(const char *text, size_t length);
    int port;          /* 0: the first free one from 8080 on */
    const char *token; /* NULL: a random one */
} sgm__runs_options;
/* NULL: an error says why. */
sgm__runs *sgm__runs_start(const sgm__runs_options *options);
const char *sgm__runs_url(const sgm__runs *runs); /* opens the page by one click */
void sgm__runs_stop(sgm__runs *runs);             /* NULL: nothing to do */

#endif
