/* From a configuration to the library's parts. */
#ifndef SGM_CLI_CONFIG_EXPERIMENT_H
#define SGM_CLI_CONFIG_EXPERIMENT_H

#include "config/config.h"
#include "infer/signature.h"

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

#endif
