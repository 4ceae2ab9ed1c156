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
#include "config/saved.h"

/* --- subcommands: argv[0] is the name --- */
/* A row of main.c's table. `run` gets argv with the subcommand's name as argv[0], and returns the exit
 * code. */
typedef struct subcommand {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} subcommand;
/* In the order of the help; NULL: past the last. */
const subcommand *subcommand_at(size_t index);
/* The names of `sigma ctl`; NULL: past the last. */
const char *ctl_command_at(size_t index);
int completion_run(int argc, char **argv);
int train_run(int argc, char **argv);
int replay_run(int argc, char **argv);
int search_run(int argc, char **argv);
int find_rate_run(int argc, char **argv);
int ctl_run(int argc, char **argv);
int import_run(int argc, char **argv);
int finetune_run(int argc, char **argv);
int export_run(int argc, char **argv);
int serve_run(int argc, char **argv);
int tokenize_run(int argc, char **argv);
int monitor_run(int argc, char **argv);
int report_run(int argc, char **argv);
int info_run(int argc, char **argv);

/* --- train_run.c --- */
/* Makes a new folder "runs/NAME-TIME" and puts its path into c->folder. Where that fails, the message names
 * `option`, by which the command takes another folder. */
sgm_status train_new_folder(config *c, const char *folder_option);
/* Whether c->folder has a checkpoint. */
bool train_has_checkpoint(const config *c);
/* Writes config.yaml into c->folder: the effective configuration. */
sgm_status train_save_config(config *c);
/* Opens a dataset and checks that the network can take its examples. `name` is training, validation or
 * test, for messages. The caller frees *dataset; on failure it may be set as well. */
sgm_status train_open_data(const config *c, const data_config *data, const char *name, sgm_dataset **dataset);

/* --- train_description.c --- */
/* What a training is read from: a file, or with `text` what a file of that name would hold. Both are owned.
 */
typedef struct train_description {
    char *file, *text;
} train_description;
/* Whether a path is that of a table (.csv, .tsv, .jsonl, also packed) and not of a description. */
bool description_is_table(const char *path);
/* Describes the training on a table. `target`: columns with commas between them; NULL is an error. The caller
 * frees it in any case. */
sgm_status description_of_table(train_description *description, const char *table, const char *target);
/* Describes the training on a folder of classes with files of such a kind (data_kind_of_files). The caller
 * frees it in any case. */
sgm_status description_of_files(train_description *description, const char *folder, const char *kind);
void description_free(train_description *description);
/* As config_load. */
sgm_status description_load(config *c, const train_description *description, const char *const *overrides,
                            size_t count);

/* --- train_folds.c: k-fold cross-validation --- */
/* What all folds are made from: a description with overrides, and the training of one of them, which returns
 * an exit code and what it was measured with on its validation data. */
typedef struct fold_source {
    const train_description *description;
    const char *const *overrides;
    size_t count;
    bool resume;
    int (*train)(config *c, bool resume, sgm_metrics *validation, const void *user);
    const void *user;
} fold_source;
/* Trains all folds of a configuration, each in a folder of its own in the configuration's, and prints mean
 * and deviation; returns an exit code. */
int train_folds(config *all, const fold_source *source);

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

#endif
