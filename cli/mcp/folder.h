/* The runs that the server was started for, by the names that the page over a folder of runs has: "digits",
 * or "letters/digits" for a run in a folder of runs.
 *
 * Names are looked up among the runs that were found, never made into paths: no name leads out of the folder,
 * and links are not followed. Used by one thread. Internal to `sigma mcp`. */
#ifndef SIGMA_CLI_MCP_FOLDER_H
#define SIGMA_CLI_MCP_FOLDER_H

#include "monitors/runs/runs_internal.h"

typedef struct mcp_folder {
    sgm__runs *runs;
    char *only; /* the server was started for this run alone, and those in it; NULL: for all of the folder */
} mcp_folder;

/* `path`: a folder of runs, or that of a run. */
sgm_status mcp_folder_open(mcp_folder *folder, const char *path);
void mcp_folder_close(mcp_folder *folder);

/* Looks what runs there are, and reads all that is new of them. */
sgm_status mcp_folder_look(mcp_folder *folder);

/* A run that was asked for, until the next look at the folder. */
typedef struct mcp_run {
    const sgm__run *run;
    int descriptor; /* of its folder */
    char *path;     /* of its folder, for messages */
    char reach[40]; /* another path of it, by the descriptor, that no link can lead elsewhere */
} mcp_run;
/* Looks what there is, and finds a run; `name` NULL: the only one. Closed with mcp_run_close, also after a
 * failure. */
sgm_status mcp_run_open(mcp_folder *folder, const char *name, mcp_run *run);
/* The same for a run of the newest look at the folder, without another one. */
sgm_status mcp_run_again(mcp_folder *folder, const char *name, mcp_run *run);
void mcp_run_close(mcp_run *run);
const char *mcp_run_state(const sgm__run *run);
/* Fails unless the run has a regular file of this name, and no link that leads elsewhere: before functions of
 * the library that open files by path. */
sgm_status mcp_run_check_file(const mcp_run *run, const char *name);
/* A new folder of a run beside the others, or within the only run: its path, to be freed with sgm__free.
 * `name` NULL: one that begins with `like`. *made: the name that the run will have, to be freed likewise. */
sgm_status mcp_folder_place(mcp_folder *folder, const char *name, const char *like, char **path, char **made);

#endif
