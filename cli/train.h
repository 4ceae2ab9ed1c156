/* A training from a configuration that was read, for the subcommands that train: `sigma train` and
 * `sigma replay`. */
#ifndef SGM_CLI_TRAIN_H
#define SGM_CLI_TRAIN_H

#include "cli.h"

/* How to train, as the command line says. Texts are argv's. */
typedef struct train_arguments {
    const char *folder, *from, *target;
    /* Port of the web monitor; "": any free one; NULL: no monitor. */
    const char *monitor;
    const char *monitor_tokens; /* the file of tokens for others; NULL: there are none */
    const char *panels;         /* a folder of panels of the user's own for the page; NULL: none */
    const char *json_lines;
    /* Folder of the files for TensorBoard; "": one in the run's folder; NULL: none. */
    const char *tensorboard;
    bool resume, quiet, paused, monitor_wait, no_keys;
    const char *command; /* the name of the subcommand, for messages */
    /* What with --into and --resume goes on with the run, where that is not 'sigma train FOLDER --resume'. */
    const char *begun_by;
    const sgm_replay *replay; /* the run that is done again; NULL: none is */
} train_arguments;

/* The whole training: opens data, environment and trainer, checks, runs, and prints the end. Returns an exit
 * code. *validation becomes what the trained network was measured with, if it was. */
int train_configuration(config *c, const train_arguments *given, sgm_metrics *validation);

#endif
