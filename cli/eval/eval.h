/* What the files of `sigma eval` share.
 *
 * eval.c reads the command line, measures and prints, eval_texts.c measures transcripts, eval_names.c knows
 * which file an example is. */
#ifndef SGM_CLI_EVAL_EVAL_H
#define SGM_CLI_EVAL_EVAL_H

#include "config/arguments.h"
#include "config/experiment.h"
#include "config/saved.h"

/* The subcommand, for main.c's table (cli.h). */
int eval_run(int argc, char **argv);
/* --- eval_texts.c --- */
/* Of transcripts: adds character_error_rate, mistakes for each character of
 * the texts, and text_accuracy, the share of texts that are heard without one. */
sgm_status eval_texts(const saved *s, sgm_dataset *dataset, sgm_registry *results);
/* --- eval_names.c --- */
/* The files whose examples are measured: of the run's data called `name`, or of the folder
 * `path`. There are none where the examples are no files, or are measured in another order. */
typedef struct eval_names {
    sgm_files *files; /* NULL: there are none */
    const sgm_split *split;
    int32_t part; /* of the split */
    bool others;
} eval_names;
sgm_status eval_names_open(eval_names *names, const saved *s, const char *name, const char *path);
/* NULL: the example has none. */
const char *eval_name_of(const eval_names *names, int64_t example);
void eval_names_close(eval_names *names);

#endif
