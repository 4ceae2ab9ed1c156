/* A checkpoint, the folder of a run, or a model of others, opened for a subcommand. */
#ifndef SGM_CLI_CONFIG_SAVED_H
#define SGM_CLI_CONFIG_SAVED_H

#include "config/experiment.h"
#include <sigma/models.h>

/* A trained network that a subcommand opened: its checkpoint, the configuration of its run, and the
 * trainer with the loaded parameters. All members are owned by it; free with saved_close. */
typedef struct saved {
    char *checkpoint, *network; /* path of the file, or of the model of others; notation of the network */
    sgm_pretrained *model;      /* of others, which was not imported; NULL: it is a checkpoint */
    config c;        /* of the run; made from the checkpoint alone if there is no config.yaml beside it */
    bool has_config; /* a config.yaml was there */
    bool has_pairs;  /* saved_take_pairs has changed the network */
    sgm_env *env;
    sgm_trainer *trainer;
} saved;
bool has_file(const char *folder, const char *name);
/* Whether it is a model of others, and not a run. */
bool is_model_of_others(const char *path);
/* Whether it is the folder of a run that began with one, which is kept in it. */
bool is_run_of_model(const char *path);
/* Writes the file `name` of a folder, and frees the text. A text of NULL is a failure that was reported. */
sgm_status save_text(const char *folder, const char *name, char *text);
/* The path of the file `name` in a folder, or the path itself if it is none; sgm__free. NULL: out of memory.
 */
char *file_of(const char *path, const char *name);
/* The folder of the run below `folder`, FOLDER/NAME, whose `file` was written last; sgm__free. NULL: none has
 * such a file. */
char *newest_run(const char *folder, const char *file);
/* The error of a folder that is given in place of one of the runs in it: the folder, and newest_run. */
#define FOLDER_OF_RUNS "'%s' is a folder of runs: name one of them, such as the newest, %s"
/* The checkpoint in the folder of a run, or the path itself if it is a file; sgm__free. NULL and an error
 * that says what is there instead. */
char *saved_path(const char *path);
/* saved_describe, then saved_load; with the optimiser where the trainer's `updates` are wanted, too. On
 * failure *s is closed. */
sgm_status saved_open(saved *s, const char *path, bool updates);
/* The same with all that its training had: hooks, modifiers, operator, and the whole checkpoint. */
sgm_status saved_open_training(saved *s, const char *path);
/* The two parts of saved_open: first which network it is and how it was trained, then a trainer with what
 * the network learnt, for inference: what only its training used is not there, and nothing is said of it.
 * Between them a subcommand can check arguments that need no trainer. */
sgm_status saved_describe(saved *s, const char *path);
sgm_status saved_load(saved *s);
/* Between the two: has the network of a BERT, for which all tokens are of one segment, take the segments of
 * pairs of texts, as its parameters do. A network without segments stays as it is. */
sgm_status saved_take_pairs(saved *s);
/* Has the trainer predict and evaluate as one that does not train: parameters are constants. `int8`: and
 * products are of integers of 8 bits (--int8). */
sgm_status saved_infer(const saved *s, bool int8);
void saved_close(saved *s);
/* Loads what the configuration's start_from names into a trainer, and prints what was taken unless
 * `quiet`; states that were left out are printed in any case. */
sgm_status saved_start_from(sgm_trainer *trainer, const start_config *start, bool quiet);
/* The folder with the tokenizer of a model of others that 'sigma import' kept beside the checkpoint, or
 * beside the folder that the checkpoint is in, else the tokenizer that a run on texts was trained by;
 * sgm__free. NULL: there is none, or no memory. */
char *saved_tokenizer(const saved *s);
/* The folder of a model of others, or of a run that began with one, which should have a tokenizer and has
 * none; sgm__free. NULL: it has one, or it is another run, or no memory. */
char *saved_missing_tokenizer(const saved *s);
/* What a tokenizer is called in a folder, for messages. */
#define TOKENIZER_FILES "tokenizer.json, vocab.json or vocab.txt"
/* That a folder has none. */
#define NO_TOKENIZER                                                                                         \
    "texts are read by the tokenizer of the model, and there is no " TOKENIZER_FILES " in '%s'"
/* What sgm_pretrained_open reads of a model that has a tokenizer: the path itself, or the folder of the run
 * that keeps it; sgm__free. NULL: there is none, or no memory. */
char *saved_model(const saved *s);
/* Whether a folder has a tokenizer of a model of others, or is a file of GGUF. */
bool has_tokenizer(const char *folder);
/* The ends of the training data's input_range, which is brought to 0 to 1. False: numbers stay as they are.
 */
bool saved_range(const saved *s, double *minimum, double *maximum);
/* Whether what --data was given is the path of a file, and not the name of a dataset; not if it is NULL. */
bool is_file_of_data(const char *name);
/* A dataset by name: training, validation or test of the run, else a ready-made one. The caller frees it. */
sgm_dataset *saved_dataset(saved *s, const char *name);

/* --- the key `from` --- */
/* Gives a configuration without a network that of `from`. */
sgm_status from_take_network(config *c);
/* Loads the parameters of `from`, then those of `start_from`, and prints so unless `quiet`. */
sgm_status from_load(sgm_trainer *trainer, const config *c, bool quiet);
/* Keeps in the run's folder what writes a model of others back, if `from` is one. */
sgm_status from_keep(const config *c);

/* --- start/adapters.c: adapters of the network that a training begins with --- */
/* The network of a run's newest checkpoint, if it has adapters; sgm_network_free. NULL: it has none, there is
 * no run at this path, or none that can be read, and the error of that is left to who loads it. */
sgm_network *adapted_network_of_run(const char *path);
/* The notation of these adapters, "lora(8), lora(4, name=values)"; sgm__free. NULL: as above. */
char *adapters_of_run(const char *path);
/* Takes out of the key `adapters` those that the network has already. */
void adapters_take_known(config *c);
/* A network with one more layer, " + info_nce", which is put in front of its adapters; sgm__free. NULL and an
 * error. */
char *network_with_layer(const char *notation, const char *layer);

#endif
