/* What the files of `sigma eval` share.
 *
 * eval.c reads the command line and measures, eval_texts.c measures transcripts, eval_lines.c lines of a
 * model of others, eval_rows.c tables without names of columns, eval_names.c knows which file an example is,
 * eval_counted.c which share of a file is measured, eval_print.c prints. */
#ifndef SGM_CLI_EVAL_EVAL_H
#define SGM_CLI_EVAL_EVAL_H

#include "config/arguments.h"
#include "config/experiment.h"
#include "config/saved.h"

/* What was asked for; of `data` and `file` at most one is not NULL. */
typedef struct eval_options {
    const char *data, *file, *masks, *metrics, *plot, *unknown, *target;
    bool json, ignores_unknown, int8;
} eval_options;

/* The subcommand, for main.c's table (cli.h). */
int eval_run(int argc, char **argv);
/* One more result; `doc` NULL: none. */
sgm_status eval_add_number(sgm_registry *results, const char *name, double number, const char *doc);
/* Loss and accuracy without int8, beside which those with it are read: "loss_bfloat16" of a network that was
 * trained in that precision. No accuracy (NaN) is left out. */
sgm_status eval_add_trained(const saved *s, const sgm_metrics *trained, sgm_registry *results);
/* --- eval_texts.c --- */
/* Of transcripts: adds character_error_rate, mistakes for each character of
 * the texts, and text_accuracy, the share of texts that are heard without one. */
sgm_status eval_texts(const saved *s, sgm_dataset *dataset, sgm_registry *results);
/* --- eval_lines.c --- */
/* Whether the file is one of JSON Lines, and the network that of a model of others, or of a run on chats. */
bool eval_lines_takes(const saved *s, const char *file);
/* The examples of such a file, by what the model is for: with classes, which the configuration gets, or with
 * next tokens as targets. NULL and an error: the model is for neither, or the lines are others. */
sgm_dataset *eval_lines_dataset(saved *s, const char *file, const char *name);
/* Of next tokens: loss and accuracy, means over all tokens that are to be learnt; adds perplexity and the
 * number of tokens. `int8`: with integers of 8 bits, and adds the loss without them. */
sgm_status eval_next_tokens(const saved *s, sgm_dataset *dataset, bool int8, sgm_metrics *metrics,
                            sgm_registry *results);
/* --- eval_rows.c --- */
/* Measures a model of ONNX on the table of its inputs and targets that is the options' file, and prints. */
sgm_status eval_rows_of_onnx(const char *model, const eval_options *options);
/* Whether the network has one input, for which the file is a table of numbers and targets. */
bool eval_rows_takes(const saved *s, const char *file);
/* The same of such a network. */
sgm_status eval_rows_of_network(saved *s, const eval_options *options);
/* --- eval_names.c --- */
/* The files whose examples are measured: of the run's data called `name`, or of the folder
 * `path`. There are none where the examples are no files, or are measured in another order. */
typedef struct eval_names {
    sgm_files *files; /* NULL: there are none */
    const sgm_split *split;
    int32_t part; /* of the split */
    bool others;
} eval_names;
/* The run's data of that name, training, validation or test; NULL: it is a ready-made dataset. */
const data_config *eval_data_of(const saved *s, const char *name);
sgm_status eval_names_open(eval_names *names, const saved *s, const char *name, const char *path);
/* NULL: the example has none. */
const char *eval_name_of(const eval_names *names, int64_t example);
void eval_names_close(eval_names *names);
/* --- eval_counted.c --- */
/* A share of a file that is measured, and how many examples the whole file has. */
typedef struct eval_counted {
    const data_config *data; /* NULL: it is no share */
    sgm_dataset_status all;
    int64_t group; /* texts of a line of pairs; 0: lines are no groups */
} eval_counted;
/* Of the run's data called `name`, once it was read. */
sgm_status eval_count(eval_counted *counted, const saved *s, const char *name, sgm_dataset *dataset);
/* "  counted: the last 30 % of the 24 examples in FILE.jsonl"; nothing where it is no share. */
void eval_print_counted(const eval_counted *counted);
void eval_print_json_counted(const eval_counted *counted);
/* A hint that the run `path` was trained on a part of the file that is measured, and how to measure the rest.
 */
void eval_hint_trained(const saved *s, const char *path, const char *file);
/* --- eval_print.c --- */
/* The names of so many classes; NULL: they have numbers alone. */
const char *const *eval_class_names(const config *c, int64_t classes);
void eval_print_json(const char *name, const sgm_metrics *metrics, const eval_counted *counted,
                     const sgm_matches *results, const config *c, const eval_names *names);
/* The numbers on one line, then those of each target, the confusion matrix and the worst mistakes. Mistakes
 * are named by the number of the example if each example has one prediction, which the sum of the matrix
 * tells. */
sgm_status eval_print_results(const sgm_matches *results, const sgm_metrics *metrics, const config *c,
                              const eval_names *names);

#endif
