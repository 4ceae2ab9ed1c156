/* What the subcommands of `sigma` share: their entry points, and helpers for runs, signals and
 * checkpoints.
 *
 * Each subcommand is a file of this folder with one function NAME_run, which main.c calls; it reads its
 * arguments (config/arguments.c), does its work by calls of the library, and returns one of the exit codes
 * CLI_*. What a configuration file says, and the library's parts made of it, is in config/. Errors of the
 * library are printed by report_error, wrong usage by usage_error; both print to stderr. */
#ifndef SGM_CLI_CLI_H
#define SGM_CLI_CLI_H

#include "config/arguments.h"
#include "config/experiment.h"

/* --- subcommands: argv[0] is the name --- */
/* A row of main.c's table. `run` gets argv with the subcommand's name as argv[0], and returns the exit
 * code. */
typedef struct subcommand {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} subcommand;
int train_run(int argc, char **argv);
int search_run(int argc, char **argv);
int find_rate_run(int argc, char **argv);
int ctl_run(int argc, char **argv);
int eval_run(int argc, char **argv);
int predict_run(int argc, char **argv);
int export_run(int argc, char **argv);
int serve_run(int argc, char **argv);
int generate_run(int argc, char **argv);
int tokenize_run(int argc, char **argv);
int inspect_run(int argc, char **argv);
/* For `sigma info PATH`: prints into how many threads a training step is divided, and why. Returns the
 * exit code. */
int inspect_threads(const char *path);
int monitor_run(int argc, char **argv);
int info_run(int argc, char **argv);
int data_run(int argc, char **argv);
/* For `sigma data FILE.csv` (data_table.c): prints what the columns of a table hold. Returns the exit code.
 */
int data_show_table(const char *path, const sgm_table_options *options);

/* --- train.c --- */
/* Makes a new folder "runs/NAME-TIME" and puts its path into c->folder. */
sgm_status train_new_folder(config *c);
/* Whether c->folder has a checkpoint. */
bool train_has_checkpoint(const config *c);
/* Writes config.yaml into c->folder: the effective configuration. */
sgm_status train_save_config(config *c);
/* Opens a dataset and checks that the network can take its examples. `name` is training, validation or
 * test, for messages. The caller frees *dataset; on failure it may be set as well. */
sgm_status train_open_data(const config *c, const data_config *data, const char *name, sgm_dataset **dataset);

/* --- signals.c --- */
/* Blocks SIGINT, SIGTERM and SIGHUP (unless SIGHUP is ignored) until signals_wait. To be called before
 * threads start: they inherit the mask, so that no other thread takes the signal. */
void signals_hold(void);
void signals_wait(void);
/* Ignores SIGPIPE: if the reader of the output ends, as in `sigma train | head`, the training goes on, and
 * main.c reports with the exit code that output was lost. */
void signals_outlive_readers(void);
/* Until signals_as_before, SIGINT and SIGTERM print "sigma COMMAND: WORDS" and end the process with
 * CLI_INTERRUPTED. A run that begins meanwhile installs its own handling. */
void signals_end_at_once(const char *command, const char *words);
void signals_as_before(void);

/* --- saved.c: a checkpoint, or the folder of a run --- */
/* A trained network that a subcommand opened: its checkpoint, the configuration of its run, and the
 * trainer with the loaded parameters. All members are owned by it; free with saved_close. */
typedef struct saved {
    char *checkpoint, *network; /* path of the file; notation of the network */
    config c;        /* of the run; made from the checkpoint alone if there is no config.yaml beside it */
    bool has_config; /* a config.yaml was there */
    sgm_env *env;
    sgm_trainer *trainer;
} saved;
bool has_file(const char *folder, const char *name);
/* Writes the file `name` of a folder, and frees the text. A text of NULL is a failure that was reported. */
sgm_status save_text(const char *folder, const char *name, char *text);
/* The path of the file `name` in a folder, or the path itself if it is none; sgm__free. NULL: out of memory.
 */
char *file_of(const char *path, const char *name);
/* The checkpoint in the folder of a run, or the path itself if it is a file; sgm__free. NULL and an error
 * that says what is there instead. */
char *saved_path(const char *path);
/* saved_describe, then saved_load. On failure *s is closed. */
sgm_status saved_open(saved *s, const char *path);
/* The two parts of saved_open: first which network it is and how it was trained, then the trainer with
 * what it learnt. Between them a subcommand can check arguments that need no trainer. */
sgm_status saved_describe(saved *s, const char *path);
sgm_status saved_load(saved *s);
void saved_close(saved *s);
/* Loads what the configuration's start_from names into a trainer, and prints what was taken unless
 * `quiet`; states that were left out are printed in any case. */
sgm_status saved_start_from(sgm_trainer *trainer, const start_config *start, bool quiet);
/* The ends of the training data's input_range, which is brought to 0 to 1. False: numbers stay as they are.
 */
bool saved_range(const saved *s, double *minimum, double *maximum);
/* A dataset by name: training, validation or test of the run, else a ready-made one. The caller frees it. */
sgm_dataset *saved_dataset(const saved *s, const char *name);

#endif
