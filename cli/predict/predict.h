/* What the files of `sigma predict` share.
 *
 * predict.c reads the command line and runs the network, predict_table.c reads tables and arrays,
 * predict_print.c prints a prediction, predict_answers.c puts it into a table of answers. */
#ifndef SGM_CLI_PREDICT_PREDICT_H
#define SGM_CLI_PREDICT_PREDICT_H

#include "config/arguments.h"
#include "config/saved.h"
#include "config/start/onnx_model.h"

/* Examples that are read and predicted at once. */
#define PREDICT_CHUNK 1000

/* A table of answers that is being made; see predict_answers.c. */
typedef struct answers answers;

/* A call of the command: the network, what was wanted, and how far it is. */
typedef struct prediction {
    saved s;
    onnx_model onnx;              /* in the place of a trained network; onnx.onnx NULL: there is none */
    struct sgm_pretrained *model; /* of others, owned, whose classes have names; NULL: there is none */
    sgm__signature signature;
    bool has_labels;      /* of the model's classes each is a label by itself, yes or no */
    bool ignores_unknown; /* of a table by names: categories that the pipeline does not know are missing */
    bool int8;            /* products are of integers of 8 bits */
    bool json, wide;      /* wide: outputs are float64, and printed with as many digits */
    bool probabilities;   /* those of all classes are printed */
    /* numbers of one example; examples wanted (-1: all); examples printed */
    int64_t elements, limit, done;
    double *lengths; /* of all examples of a file (--lengths), owned; NULL: all steps count */
    int64_t length_count;
    int64_t classes;          /* last dimension of the network's output */
    const data_config *table; /* the table that the run learnt from; NULL: it was none */
    sgm_pipeline *pipeline;   /* of a table by names, the trainer's; NULL: there is none */
    bool scales;              /* inputs of files are brought from minimum..maximum to 0..1 */
    double minimum, maximum;
    const char *output, *id; /* --output and --id; NULL: not given */
    answers *answers;        /* of --output, owned; NULL: predictions are printed */
} prediction;

/* The prediction for one example: `count` numbers, the number of steps that count, for the cost ctc the
 * labels, which end at -1, else NULL, and the class that an ONNX model tells, if it does. */
typedef struct output_row {
    const double *outputs;
    int64_t count, steps;
    const int64_t *labels;
    bool told;              /* there is such a class: */
    int64_t class_told;     /* its number, */
    const char *class_name; /* and its name, or NULL */
} output_row;

/* --- predict.c --- */
/* The subcommand, for main.c's table (cli.h). */
int predict_run(int argc, char **argv);
/* Whether --count examples have been predicted. */
bool predict_is_done(const prediction *p);
/* Predicts for `values` (examples, anything with the right number of elements) up to the limit, and prints.
 * `lengths` NULL: those of --lengths, if it was given. */
sgm_status predict_chunk(prediction *p, sgm_tensor *values, const double *lengths);
/* Prints predictions (examples, ...) up to the limit, and frees them. `outputs` NULL: predicting failed, and
 * the error is passed on. `lengths` has one entry for each example, or is NULL. */
sgm_status predict_outputs(prediction *p, sgm_tensor *outputs, const double *lengths);
/* The same for a block with the fields of the network's inputs. */
sgm_status predict_block(prediction *p, const sgm_block *block);

/* --- predict_table.c --- */
/* Appends all bytes of the standard input. */
sgm_status predict_read_standard_input(sgm__text *text);
/* A table whose columns the pipeline finds by their names, among which those of targets may be missing. */
sgm_status predict_named(prediction *p, const char *path, char separator);
/* Arrays, and tables of the elements of an input in order. `lengths`: the file of --lengths, or NULL. */
sgm_status predict_file(prediction *p, const char *path, const char *lengths, char separator);

/* --- predict_print.c: the terms in which predictions are told --- */
/* The class of `count` outputs and its probability; -1 if that is NaN. */
int64_t predict_class(const double *outputs, int64_t count, double *probability);
/* What a class is called; NULL: it has a number only. */
const char *predict_class_name(const prediction *p, int64_t class);
/* Whether a row has a class for each of its steps. */
bool predict_has_steps(const prediction *p, const output_row *a);
/* A number of the output, in the units of the table if a pipeline has scaled it; NaN has no sign. */
double predict_in_units(const prediction *p, int64_t output, double value);
/* The ends of the interval around the prediction of a target, in the units of the table: of a network whose
 * outputs are means, then standard deviations (signature.deviates). */
void predict_interval(const prediction *p, const output_row *a, int64_t target, double *lower, double *upper);
/* Prints one line. */
void predict_print(const prediction *p, const output_row *a);

/* --- predict_answers.c: a table of answers --- */
/* Begins the table that p->output names. */
sgm_status predict_answers_begin(prediction *p);
/* Reads the columns of p->id from the table once more, beside its examples, so that each answer gets those of
 * its row. Takes the source; NULL passes a failure on. `separator` 0: found as sigma/table.h describes. */
sgm_status predict_answers_identify(prediction *p, sgm_source *source, char separator);
/* Appends the next example's answer. */
sgm_status predict_answers_add(prediction *p, const output_row *a);
/* Appends the answer for a file, behind its name; or what is said in it. */
sgm_status predict_answers_add_file(prediction *p, const char *file, const output_row *a);
sgm_status predict_answers_add_text(prediction *p, const char *file, const char *text);
/* Writes the file, whole or not at all, and says so on the standard output. */
sgm_status predict_answers_write(prediction *p);
void predict_answers_free(prediction *p);

/* --- predict_files.c --- */
/* For `sigma predict RUN cat.png ...`: prints the class of each file, or puts it into the table of answers if
 * there is one. The pipeline is of files. */
sgm_status predict_files(prediction *p, const char *const *files, size_t count);
/* --- predict_texts.c --- */
/* Whether the network is an encoder with a tokenizer of a model of others. */
bool predict_takes_texts(const prediction *p);
/* Prints a prediction for one text ("-": for each line of the standard input) or a text and its pair (NULL:
 * none), or where that is NULL for each line of a file. */
sgm_status predict_texts(prediction *p, const char *text, const char *pair, const char *path);
/* --- predict_fill.c --- */
/* Whether what is printed are words for masked tokens: of an open masked language model, without --output. */
bool predict_fills(const prediction *p);
/* Prints the likeliest words for each masked token of the texts. */
sgm_status predict_fill(prediction *p, const struct sgm_pretrained_tokenizer *tokenizer, char *const *lines,
                        size_t count);
/* --- predict_masks.c --- */
/* For pictures with masks: prints which classes each picture has, and writes its mask to `output` (NULL:
 * nowhere), a file or a folder. */
sgm_status predict_masks(saved *s, const char *const *files, size_t count, const char *output, bool json);

#endif
