/* What the subcommands share. */
#ifndef SGM_CLI_CLI_H
#define SGM_CLI_CLI_H

#include "config.h"
#include "infer/signature.h"

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_INTERRUPTED = 130 };

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

/* --- arguments.c --- */
typedef enum argument_kind {
    ARGUMENT_FLAG,
    ARGUMENT_TEXT,
    ARGUMENT_COUNT,
    ARGUMENT_PORT,
    ARGUMENT_MAYBE /* a text behind '=', or "" */
} argument_kind;
typedef struct argument_rule {
    const char *name; /* "--folder" */
    argument_kind kind;
    void *target; /* bool, const char *, int64_t (at least 1; of a port at most 65535), const char * */
} argument_rule;
typedef struct arguments {
    const argument_rule *rules;
    size_t rule_count;
    const char *help;
    const char **words; /* what is no option, in order; as many as argc at most */
    size_t word_count;
} arguments;
/* False: stop with *code (--help was printed, or the mistake was). */
bool arguments_read(arguments *a, int argc, char **argv, int *code);
void arguments_free(arguments *a);
/* Prints to stderr; whatever the texts are, they do not steer a terminal. */
void complain(const char *format, ...) SGM_PRINTF(1, 2);
/* "sigma COMMAND: MESSAGE" and where help is; returns CLI_USAGE. */
int usage_error(const char *command, const char *format, ...) SGM_PRINTF(2, 3);
/* "sigma COMMAND: the newest error"; returns `code`. */
int report_error(const char *command, int code);
/* "process 2 on beta: ", as somebody may have to look there; empty where there are not several. Returns
 * `text`. */
const char *this_process(char *text, size_t size);

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

/* --- text.c --- */
void print_metrics(const char *name, const sgm_metrics *metrics);
void print_json_number(double value);
/* Of a tensor of float32, or float64 (wide): the shortest that reads back as the same. */
void print_json_element(double value, bool wide);
void print_json_text(const char *text);
bool ends_with(const char *text, const char *end);
/* A name of .npy or .npz, or of an array in an .npz: FILE.npz:NAME. */
bool is_numpy(const char *path);
sgm_reader *numpy_reader(const char *path);

/* --- experiment.c: from a configuration to the library's parts --- */
sgm_dataset *experiment_dataset(const data_config *data, const char *name, uint64_t seed);
/* Of a text; bytes if the data name none. */
sgm_tokenizer *experiment_tokenizer(const data_config *data);
sgm_env *experiment_env(const config *c);
/* Network, optimiser, initialisers; no data. Belongs to the environment. */
sgm_trainer *experiment_trainer(sgm_env *env, const config *c);
/* The same for a trainer that is there. */
sgm_status experiment_fill(sgm_trainer *trainer, const config *c);
/* Minibatches to train on, and what is measured after each epoch (NULL: nothing). Takes nothing. */
sgm_status experiment_feed(sgm_trainer *trainer, const config *c, sgm_dataset *training,
                           sgm_dataset *validation);
/* In order, for measuring. Takes nothing. */
sgm_iterator *experiment_measuring(sgm_dataset *dataset, const config *c);
/* --- table.c: a CSV file as the configuration describes it --- */
sgm_extractor *table_extractor(const data_config *data);
/* NULL at the end; NULL: no memory. The names are the configuration's; sgm__free. */
const char **table_class_names(const data_config *data);
/* "red, green" as its words, NULL at the end; NULL: no memory. sgm__free */
char **table_split(const char *texts);
/* The number that a cell (NULL: missing) of the inputs stands for; false: none. data NULL: no table is known.
 */
bool table_input_number(const data_config *data, int64_t element, const char *cell, double *number);
const char *table_input_texts(const data_config *data,
                              int64_t element); /* those that may stand there; or NULL */

/* The fields that the network wants, with examples of the shapes that it wants. Reads the beginning. data
 * (NULL: not known): a tokenizer must have as many tokens as layers know. */
sgm_status experiment_check(const char *network, const data_config *data, sgm_dataset *dataset);
/* The same of a tokenizer that was read from `file` (NULL: bytes, of which a text may use some). */
sgm_status experiment_check_tokens(const char *network, const sgm_tokenizer *tokenizer, const char *file);
/* Warns when a part of a file, taken in the file's order, lacks a class: it may be sorted. */
void experiment_warn_sorted(const data_config *data, const char *name, sgm_dataset *dataset);
/* What the network wants of a question. */
sgm_status experiment_describe(const char *network, sgm__signature *signature);

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
