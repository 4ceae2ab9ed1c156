/* What the subcommands share. */
#ifndef SGM_CLI_CLI_H
#define SGM_CLI_CLI_H

#include "config/arguments.h"
#include "config/experiment.h"

/* --- subcommands: argv[0] is the name --- */
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
/* Into how many threads a training step is divided. */
int inspect_threads(const char *path);
int monitor_run(int argc, char **argv);
int info_run(int argc, char **argv);
int data_run(int argc, char **argv);

/* --- train.c --- */
/* Makes a folder for a run, "runs/NAME-TIME", and names it in *c. */
sgm_status train_new_folder(config *c);
bool train_has_checkpoint(const config *c); /* in its folder */
/* config.yaml in the folder of *c. */
sgm_status train_save_config(config *c);
/* Also checks that the network can take its examples; `name` is training, validation or test. */
sgm_status train_open_data(const config *c, const data_config *data, const char *name, sgm_dataset **dataset);

/* --- signals.c --- */
/* SIGINT, SIGTERM and SIGHUP (unless it is ignored) wait for signals_wait(): to be called before threads
 * start, which inherit what is held. */
void signals_hold(void);
void signals_wait(void);
/* Output that nobody reads any more, as of `sigma train | head`, ends nothing: what trains goes on, and the
 * command's code says at the end that its output was lost. */
void signals_outlive_readers(void);
/* SIGINT and SIGTERM end the process with CLI_INTERRUPTED and "sigma COMMAND: words", until
 * signals_as_before(); a run that begins meanwhile catches them itself. */
void signals_end_at_once(const char *command, const char *words);
void signals_as_before(void);

/* --- saved.c: a checkpoint, or the folder of a run --- */
typedef struct saved {
    char *checkpoint, *network;
    config c;
    bool has_config;
    sgm_env *env;
    sgm_trainer *trainer;
} saved;
bool is_folder(const char *path);
char *saved_path(const char *path); /* of the checkpoint in a folder, or the path itself; sgm__free */
sgm_status saved_open(saved *s, const char *path);
/* The same in two parts: what network it is, and how it was trained; then the trainer, with what it learnt.
 */
sgm_status saved_describe(saved *s, const char *path);
sgm_status saved_load(saved *s);
void saved_close(saved *s);
/* Gives a trainer what its configuration begins with; says so unless `quiet`, and in any case what was left.
 */
sgm_status saved_start_from(sgm_trainer *trainer, const start_config *start, bool quiet);
/* `name` is a ready-made dataset or one of the run's: training, validation, test. */
sgm_dataset *saved_dataset(const saved *s, const char *name);

#endif
