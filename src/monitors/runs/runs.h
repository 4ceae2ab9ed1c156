/* A folder of runs, running and finished ones, and a page over it, for the command `sigma monitor`
 * (cli/monitor.c). What runs there are, and what their files say, is known without a page, too
 * (runs_internal.h; cli/mcp/ reads it).
 *
 * Only the files of runs are read, so the programs that made them may be gone or be on another machine.
 * The page of a single running process is web/web.c instead. Uses the server of monitors/http/. Internal. */
#ifndef SGM_MONITORS_RUNS_RUNS_H
#define SGM_MONITORS_RUNS_RUNS_H

#include "base/base.h"
#include <jansson.h>

typedef struct sgm__runs sgm__runs;

/* Turns the text of a config.yaml into one flat object, {"optimiser.type": "adam", ...}; NULL, with an error,
 * if the text is wrong. */
typedef json_t *(*sgm__runs_configuration)(const char *text, size_t length);

/* Without a page; NULL: failed, with an error. `configuration` may be NULL, as below. */
sgm__runs *sgm__runs_open(const char *folder, sgm__runs_configuration configuration);
/* NULL is allowed. */
void sgm__runs_close(sgm__runs *runs);

typedef struct sgm__runs_options {
    const char *folder; /* runs are its sub-folders, and the sub-folders of these */
    /* Called on the server's thread. NULL: configurations are not shown. */
    sgm__runs_configuration configuration;
    /* The first words of a command that replays a run, such as `sigma replay`, at most 3 and then NULL; it is
     * told the run's folder and the options of that command. NULL: people cannot begin replays. */
    const char *const *replay;
    int port;           /* 0: the first free port from 8080 on */
    const char *token;  /* NULL: a random token */
    const char *tokens; /* for others, as sgm_web_monitor_options has them; NULL: none */
} sgm__runs_options;
/* NULL: failed, with an error. */
sgm__runs *sgm__runs_start(const sgm__runs_options *options);
/* The address that opens the page; it contains the token. */
const char *sgm__runs_url(const sgm__runs *runs);
/* NULL is allowed. */
void sgm__runs_stop(sgm__runs *runs);

#endif
