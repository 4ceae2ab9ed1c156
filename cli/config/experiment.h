/* From a configuration (config.h) to the library's parts: datasets, environment, trainer, iterators; and
 * checks that data and network fit together.
 *
 * experiment.c makes the parts, data/table.c what concerns CSV tables, data/pipelines.c what concerns
 * pipelines of tables, data/files.c folders of files. The subcommands call these functions; ownership is said
 * with each. */
#ifndef SGM_CLI_CONFIG_EXPERIMENT_H
#define SGM_CLI_CONFIG_EXPERIMENT_H

#include "config/config.h"
#include "infer/signature.h"

/* Bytes of a text, which is read whole. */
#define MAXIMUM_OF_TEXT ((size_t)1 << 30)

/* --- experiment.c: from a configuration to the library's parts --- */
/* The dataset that `data`, one of the group's, describes; the caller frees it. `name` is training, validation
 * or test, `seed` orders files that are `shuffled`. Tables by names and files need experiment_prepare
 * before. NULL and an error on failure. */
sgm_dataset *experiment_dataset(const data_group *group, const data_config *data, const char *name,
                                uint64_t seed);
/* The two ends of input_range. False: it is not given. */
bool experiment_range(const data_config *data, double *minimum, double *maximum);
/* The tokenizer of a text, or one of bytes if the data name none; the caller frees it. */
sgm_tokenizer *experiment_tokenizer(const data_config *data);
/* The environment with handler, threads, precision and seed of the configuration; the caller frees it. */
sgm_env *experiment_env(const config *c);
/* Whether several workers are asked for: a type that is not "none". */
bool experiment_has_operator(const operator_config *o);
/* The library's operator; the caller owns it. NULL and an error on failure. Only if there is one. */
sgm_operator *experiment_operator(const operator_config *o);
/* A trainer with network, optimiser, initialisers, modifiers, hooks and operator, but no data. It belongs
 * to the environment. NULL and an error on failure. */
sgm_trainer *experiment_trainer(sgm_env *env, const config *c);
/* The same for a trainer that exists already (those of a search). */
sgm_status experiment_fill(sgm_trainer *trainer, const config *c);
/* What of it inference needs: the network, and the optimiser if parameters have averages or `updates` are
 * wanted, too. */
sgm_status experiment_fill_inference(sgm_trainer *trainer, const config *c, bool updates);
/* Gives the trainer minibatches to train on, and what is measured after each epoch (NULL: nothing). The
 * caller keeps its references to the datasets. */
sgm_status experiment_feed(sgm_trainer *trainer, const config *c, sgm_dataset *training,
                           sgm_dataset *validation);
/* Minibatches in order, for measuring; the caller frees them and keeps the dataset. */
sgm_iterator *experiment_measuring(sgm_dataset *dataset, const config *c);
/* The extractor of a table, of arrays or of files, before a split; NULL and an error on failure. */
sgm_extractor *experiment_extractor(const data_group *group, const data_config *data);
/* The inputs of a network from the arrays of an archive, FILE.npz, which are called as they are. */
sgm_extractor *experiment_archive(const char *network, const char *path);
/* --- data/split.c: data.split --- */
/* Makes the group's split, if it has one and it is not made yet. */
sgm_status experiment_split(data_group *group, int64_t seed);
/* Whether a part of the training data is for tests. */
bool split_has_test(const split_config *split);
/* The part of the training data that `data` of the group is, or with *others all but that one. */
void split_part_of(const data_group *group, const data_config *data, int32_t *part, bool *others);
/* The part of the training data, whose extractor it takes over, that `data` of the group is. */
sgm_extractor *split_extractor(const data_group *group, const data_config *data, sgm_extractor *extractor);
/* --- data/pipelines.c: a CSV file whose columns are found by their names --- */
/* Makes the split of the data, if one is asked for. If the training data is such a table, or files: sets
 * its pipeline, that of the checkpoint (NULL: there is none) or one that is fitted to the data, and, if none
 * is given, the network that is proposed for it. */
sgm_status experiment_prepare(config *c, const char *checkpoint);
/* The table of a configuration, with what is measured of a part of its rows (sgm_table_options). */
sgm_table *named_table_open(const data_config *data, const sgm_split *split, int32_t part, bool others);
/* The examples of data->csv by the group's pipeline; NULL and an error on failure. */
sgm_extractor *named_table_extractor(const data_group *group, const data_config *data);
/* --- data/cache.c: what is kept for other runs --- */
/* The dataset of an extractor, which it takes; `source` is the data that the extractor reads. */
sgm_dataset *extracted_dataset(const data_group *group, const data_config *source, sgm_extractor *extractor,
                               const char *name);
/* A pipeline that is fitted to the files that are trained on, or was by an earlier run; the caller frees it.
 */
sgm_pipeline *files_fit(const data_group *group);
/* --- data/files.c: folders of files, such as pictures --- */
/* The examples of the data's folder by the group's pipeline. With `part_of` (NULL: all) only those of the
 * split that belong to that one of the group's data. */
sgm_extractor *files_extractor(const data_group *group, const data_config *data, const data_config *part_of);
/* --- data/table.c: a CSV file as the configuration describes it --- */
/* The examples of data->csv; NULL and an error on failure. */
sgm_extractor *table_extractor(const data_config *data);
/* Names of the classes, NULL at the end. The texts are the configuration's; free the list with sgm__free.
 * NULL: out of memory. */
const char **table_class_names(const data_config *data);
/* The number that a cell of the inputs stands for. `element` counts columns of the inputs from 0; cell
 * NULL: missing; data NULL: no table is known, and cells are numbers. False: it stands for none. */
bool table_input_number(const data_config *data, int64_t element, const char *cell, double *number);
/* The texts that may stand in that column of the inputs, "red, green"; NULL: numbers. */
const char *table_input_texts(const data_config *data,
                              int64_t element); /* those that may stand there; or NULL */

/* Checks that a dataset has the fields that the network wants, with examples of the right shapes, and that it
 * has examples; reads the beginning of the data. */
sgm_status experiment_check(const char *network, sgm_dataset *dataset);
/* Its parts, where messages are to say whose mistake it is. The network alone: what its layers give each
 * other. The data alone: examples, which are read, and a text's tokenizer, which must have as many tokens as
 * the layers know. Both together: fields and shapes. */
sgm_status experiment_check_network(const char *network);
sgm_status experiment_check_data(const char *network, const data_config *data, sgm_dataset *dataset);
sgm_status experiment_check_fit(const char *network, sgm_dataset *dataset);
/* The check of the tokenizer alone. `file` is where it was read from; NULL: one of bytes, of which a text
 * may use some. */
sgm_status experiment_check_tokens(const char *network, const sgm_tokenizer *tokenizer, const char *file);
/* --- data/cost_argument.c --- */
/* The one cost in the text of a network; NULL: there is none, or there are several. */
const char *network_find_cost(const char *network);
/* Whether there is something to train a network by; true also for a notation that cannot be read. */
bool network_has_cost(const char *notation);
/* The text with one more argument of that cost; sgm__free. NULL without memory. */
char *network_with_argument(const char *network, const char *cost, const char *argument);
/* --- data/chats.c: chats and other texts, for models of others --- */
/* Completes a configuration with chats: their tokenizer, by `from` or by the training data's; their window,
 * by the network's steps; and what makes its cost leave out what is not to be learnt. */
sgm_status chats_complete(config *c);
/* The folder with the tokenizer of a model: `folder` itself, or `model` in it, where imported models have it;
 * sgm__free. NULL: there is none, or no memory. */
char *model_tokenizer(const char *folder);
/* " of the whole file" where a share of the file makes the data, for messages that count its lines; else "".
 */
const char *of_file(const data_config *data);
/* Where lines are, for messages: a section by its name, "data.training", or the file that is measured without
 * one. */
const char *lines_place(const char *name, const char *file, char room[32]);
/* The examples, of which a line is printed; NULL and an error on failure. */
sgm_dataset *chats_dataset(const data_config *data, const char *name);
/* The steps of a network's input; 0: it is no sequence of tokens. */
int64_t text_steps(const char *network);
/* --- data/text_data.c: texts with classes and pairs of texts, for encoders --- */
/* Completes a configuration with such texts: their classes, and the network, by `from`. */
sgm_status text_data_complete(config *c);
/* The model `from` of a configuration with such texts: for vectors of pairs; for the classes, which a new
 * last layer is begun for unless they are the model's. The caller frees it. NULL and an error. */
struct sgm_pretrained *text_data_model(const config *c);
/* The examples; what is cut is told. NULL and an error on failure. */
sgm_dataset *text_dataset(const data_group *group, const data_config *data, const char *name);
/* --- data/class_weights.c --- */
/* If class_weights are asked for: puts them into the cost of the network, and takes the key away. */
sgm_status experiment_balance(config *c, sgm_dataset *training);
/* --- data/warnings.c --- */
/* Warns of what looks wrong before training: a target among the inputs, inputs of very different sizes,
 * classes that a part lacks or that are rare, parts with common examples, a softmax too many. `validation`
 * and `test` may be NULL. */
void experiment_warn(const config *c, sgm_dataset *training, sgm_dataset *validation, sgm_dataset *test);
/* What the network wants of a question and what its answers mean (src/infer/signature.h). */
sgm_status experiment_describe(const char *network, sgm__signature *signature);

#endif
