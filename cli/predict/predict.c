/* `sigma predict`: predictions of a checkpoint or an ONNX model, one line for each example.
 *
 * Examples come from a dataset (--data), from a file of arrays or a table, or from the standard input.
 * They are read in chunks; each chunk is brought to the shape of the network's input, run through the network
 * (src/infer/signature.c), and its predictions are printed at once, so that memory does not grow with the
 * file. Predictions for --output are kept until all are there. Datasets have scaled their inputs themselves.
 */
#include "predict/predict.h"
#include "data/table/pipeline.h"
#include "tensor/tensor_internal.h"
#include "texts/texts.h"
#include <sigma/models.h>
#include <sigma/text_data.h>

#include <stdio.h>
#include <sys/stat.h>

static const char usage_text[] =
    "Usage: sigma predict CHECKPOINT|FOLDER|MODEL.onnx\n"
    "                     (--data NAME [--count N] | FILE.npy | FILE.csv | -\n"
    "                     | PICTURE... | SOUND... | TEXT... | --text TEXT [--pair TEXT])\n"
    "                     [--output FILE.csv [--id COLUMNS]] [--probabilities] [--lengths FILE]\n"
    "                     [--separator C] [--unknown=ignore|refuse] [--json] [--int8]\n\n"
    "Predicts with a trained network. Prints a line for each example: where the network tells classes\n"
    "apart, the class (from 0) and its probability, of sequences the class of each step; where it has the\n"
    "cost ctc, the labels that the steps say (the likeliest of each step, without repetitions and blanks);\n"
    "elsewhere the numbers of its output, with the ends of an interval of 95 % where it has the cost\n"
    "gaussian_nll. Numbers of a file are scaled by input_range where the training\n"
    "data of the run were; any other scaling is for you to do before.\n"
    "A network that was trained on a table by its columns' names (target) takes tables with these columns,\n"
    "in any order; classes have their names, and numbers the units of the table.\n"
    "A network that was trained on pictures (images) takes PNG and JPEG files of any size, one that was\n"
    "trained on sounds WAV and FLAC files, one that was trained on texts (text_folder) TXT files, or one\n"
    "from the standard input: printed are for each its name, the class and the probabilities of all "
    "classes.\n"
    "An encoder of others (sigma import) takes texts: --text TEXT, each line of FILE.txt, or\n"
    "of FILE.jsonl, {\"text\": \"...\"}, {\"text\": ..., \"pair\": ...};\n"
    "printed are its class or its vector, or of a masked language model the likeliest words for a\n"
    "[MASK]. One of pictures that tells no classes makes vectors of PNG\n"
    "and JPEG files.\n"
    "An ONNX model takes FILE.npy and FILE.csv if it has one input, else FILE.npz with an array for each,\n"
    "called as the inputs are. Printed are its first output of floats, behind the class if it has a name.\n\n"
    "  --data NAME       the inputs of a dataset: a ready-made one, or training, validation or test of\n"
    "                    the run\n"
    "  --text TEXT       of an encoder: this text; -: each line of the standard input\n"
    "  --pair TEXT       of --text: a second text, as BERT takes questions with answers\n"
    "  FILE.npy          an array (examples, ...); also the only one of a FILE.npz, or FILE.npz:NAME\n"
    "  FILE.csv, -       one example a line, the elements of an input in order; a first line that is no\n"
    "                    numbers is skipped; also packed, FILE.csv.gz; - is the standard input\n"
    "  --output FILE     writes a table instead of printing: a header, then a line for each example, with\n"
    "                    the class and the probability of each class, or the numbers; FILE.csv.gz is\n"
    "                    packed. The file is written whole or not at all. Of pictures and the like the "
    "first\n"
    "                    column is the file's name; with masks the mask itself is written, FILE.png,\n"
    "                    or a folder for the masks of several pictures\n"
    "  --id COLUMNS      of a table by names: these columns of the input, as in id,date, come first in\n"
    "                    --output\n"
    "  --probabilities   all classes with their probabilities, the likeliest first; --output has them\n"
    "  --count N         so many examples at most\n"
    "  --lengths FILE    of a network whose input has lengths: how many steps of each example of the file\n"
    "                    count, one a line or a .npy; all if not given. --data takes the field of the data\n"
    "  --separator C     of a table; a comma if not given, of a table by names what its first line has most\n"
    "  --unknown=ignore  of a table by names: categories that were in no training row count as missing; if\n"
    "                    not given, --unknown=refuse, they are an error\n"
    "  --json            one object a line, with all numbers of the output\n"
    "  --int8            dynamic quantization: weights of dense and recurrent layers and of attention are\n"
    "                    rounded to 8 bits in advance, their inputs while they are computed: faster;\n"
    "                    'sigma eval --int8' tells the error\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.\n";

bool predict_is_done(const prediction *p)
{
    return p->limit >= 0 && p->done >= p->limit;
}

sgm_status predict_outputs(prediction *p, sgm_tensor *outputs, const double *lengths)
{
    sgm_tensor *labels = NULL;
    if (outputs == NULL)
        return sgm__last_failure();
    const sgm_shape *shape = sgm_tensor_shape(outputs);
    int64_t count = sgm_shape_elements(shape), each = count / shape->dims[0];
    p->wide = sgm_tensor_dtype(outputs) == SGM_FLOAT64;
    p->classes = shape->rank > 1 ? shape->dims[shape->rank - 1] : 1;
    double *numbers = sgm__calloc((size_t)count + 1, sizeof *numbers);
    sgm_status status =
        numbers != NULL ? sgm_tensor_read(outputs, numbers, (size_t)count) : sgm__last_failure();
    if (status == SGM_OK && p->signature.blank >= 0) {
        labels = sgm__signature_labels(&p->signature, outputs, lengths);
        status = labels != NULL ? SGM_OK : sgm__last_failure();
    }
    for (int64_t i = 0; i < shape->dims[0] && status == SGM_OK && !predict_is_done(p); i++, p->done++) {
        output_row a = {.outputs = numbers + i * each, .count = each};
        a.told = onnx_model_class(&p->onnx, i, &a.class_told, &a.class_name);
        if (p->classes > 0)
            a.steps = sgm__signature_steps(lengths, i, each / p->classes);
        if (labels != NULL)
            a.labels = (const int64_t *)sgm_tensor_const_data(labels) + i * (each / p->classes);
        if (p->answers != NULL)
            status = predict_answers_add(p, &a);
        else
            predict_print(p, &a);
    }
    sgm__free(numbers);
    sgm_tensor_free(labels);
    sgm_tensor_free(outputs);
    return status;
}

/* The lengths of the next `examples` examples, within p->lengths. */
static sgm_status lengths_of_file(const prediction *p, int64_t examples, const double **lengths)
{
    *lengths = NULL;
    if (p->lengths == NULL)
        return SGM_OK;
    if (p->length_count - p->done < examples)
        return sgm_fail(SGM_ERROR_SHAPE, "--lengths: there are %lld lengths, and more examples",
                        (long long)p->length_count);
    *lengths = p->lengths + p->done;
    return SGM_OK;
}

/* Predicts for `values` (examples, anything with the right number of elements): reshapes them to the
 * network's input, leaves out what is beyond the limit, and prints. `lengths` NULL: those of --lengths, if
 * it was given. Numbers beyond float32 are refused, as training refuses them. */
sgm_status predict_chunk(prediction *p, sgm_tensor *values, const double *lengths)
{
    const sgm_shape *input = &p->signature.example, *given = sgm_tensor_shape(values);
    sgm_shape shape = {.rank = input->rank + 1};
    int64_t examples = given->rank > 0 ? given->dims[0] : 0;
    if (examples == 0)
        return SGM_OK;
    /* Any shape will do whose examples have the right number of elements: rows of a table, flat pictures. */
    if (sgm_shape_elements(given) / examples != p->elements) {
        char got[128], wanted[128];
        sgm_shape example = sgm_shape_create(given->rank - 1, given->dims + 1);
        return sgm_fail(SGM_ERROR_SHAPE, "expected examples of the shape %s, as the network's input, got %s",
                        sgm_shape_text(input, wanted, sizeof wanted),
                        sgm_shape_text(&example, got, sizeof got));
    }
    SGM_TRY(sgm__tensor_fits_float32(values, p->done));
    /* What is beyond --count is cut off before the network runs. */
    if (p->limit >= 0 && examples > p->limit - p->done)
        examples = p->limit - p->done;
    shape.dims[0] = given->dims[0];
    for (int32_t i = 0; i < input->rank; i++)
        shape.dims[i + 1] = input->dims[i];
    if (lengths == NULL)
        SGM_TRY(lengths_of_file(p, examples, &lengths));
    sgm_tensor *shaped = sgm_tensor_reshape(values, &shape);
    sgm_tensor *wanted = shaped != NULL ? sgm_tensor_slice(shaped, 0, 0, examples, 1) : NULL;
    sgm_tensor *outputs = NULL;
    if (wanted != NULL)
        outputs = p->onnx.onnx != NULL ? onnx_model_predict(&p->onnx, wanted)
                                       : sgm__signature_predict(&p->signature, p->s.trainer, wanted, lengths);
    sgm_status status = predict_outputs(p, outputs, lengths);
    sgm_tensor_free(wanted);
    sgm_tensor_free(shaped);
    return status;
}

/* A network with several inputs takes the whole block, whose fields have their names. */
static sgm_status ask_block(prediction *p, const sgm_block *block, const double *lengths)
{
    if (p->signature.inputs > 1)
        return predict_outputs(p, sgm_trainer_predict_block(p->s.trainer, block, NULL), lengths);
    sgm_tensor *inputs = sgm_block_field(block, p->signature.input);
    return inputs != NULL ? predict_chunk(p, inputs, lengths) : sgm__last_failure();
}

/* Reads the lengths of a block's examples, where the network's input has some. */
sgm_status predict_block(prediction *p, const sgm_block *block)
{
    if (p->signature.lengths[0] == '\0')
        return ask_block(p, block, NULL);
    sgm_tensor *field = sgm_block_field(block, p->signature.lengths);
    double *lengths = field != NULL ? sgm__calloc((size_t)block->count + 1, sizeof *lengths) : NULL;
    if (lengths == NULL)
        return sgm__last_failure();
    sgm_status status = sgm_tensor_read(field, lengths, (size_t)block->count);
    if (status == SGM_OK)
        status = ask_block(p, block, lengths);
    sgm__free(lengths);
    return status;
}

/* All examples in their order. */
static sgm_status predict_dataset(prediction *p, const char *name)
{
    sgm_dataset *dataset = saved_dataset(&p->s, name);
    sgm_iterator *batches =
        dataset != NULL ? sgm_minibatches(dataset, .size = PREDICT_CHUNK, .no_shuffle = true) : NULL;
    sgm_status status = batches != NULL ? SGM_OK : sgm__last_failure();
    while (status == SGM_OK && !predict_is_done(p)) {
        const sgm_block *block;
        status = sgm_iterator_next(batches, &block);
        if (status != SGM_OK || block == NULL)
            break;
        status = predict_block(p, block);
    }
    sgm_iterator_free(batches);
    sgm_dataset_free(dataset);
    return status;
}

/* What the words and options of a call name; either `data` or `text` is not NULL, or there are files. */
typedef struct predict_words {
    const char *checkpoint, *data, *lengths, *separator, *unknown, *pair;
    const char *text; /* the first of `texts` */
    argument_texts texts;
    const char *const *files; /* of which only pictures and the like can be several */
    size_t file_count;
} predict_words;

/* Whether the network was trained on files, such as pictures. */
static bool is_of_files(const prediction *p)
{
    return p->pipeline != NULL && strcmp(sgm_pipeline_kind(p->pipeline), "table") != 0;
}

/* Whether it was trained on pictures with masks. */
static bool is_of_masks(const prediction *p)
{
    const sgm__file_kind *kind = p->pipeline != NULL ? p->pipeline->kind : NULL;
    return kind != NULL && kind->target_shape != NULL;
}

/* Whether texts are given as such, for a model of others that has a tokenizer. */
static bool is_of_texts(const prediction *p, const predict_words *words)
{
    const char *file = words->file_count == 1 ? words->files[0] : "";
    return words->text != NULL || ((ends_with(file, ".txt") || ends_with(file, ".jsonl")) &&
                                   p->pipeline == NULL && predict_takes_texts(p));
}

/* What can be asked of this network only; the rest is checked before it is loaded. */
static sgm_status check_network(const prediction *p, const predict_words *words)
{
    bool is_data = words->data != NULL || (words->file_count > 0 && is_numpy(words->files[0]));
    bool is_named = p->pipeline != NULL && !is_of_files(p) && !is_data;
    int32_t rank = p->signature.output.rank;
    if (p->output != NULL && is_of_masks(p) && is_data)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "--output: masks are written of files, as in sigma predict %s cat.png",
                        words->checkpoint);
    if (p->id != NULL && !is_named)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "--id copies columns of a table by its columns' names; this input has no such names");
    if (words->unknown != NULL && !is_named)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "--unknown is for categories of a table by its columns' names; leave it out");
    if (p->probabilities && (!p->signature.classifies || rank > 1))
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "--probabilities: the network does not tell one class for each example; leave it out");
    return SGM_OK;
}

/* The files that --count allows. */
static size_t limited(const prediction *p, size_t count)
{
    return p->limit >= 0 && (size_t)p->limit < count ? (size_t)p->limit : count;
}

static sgm_status answer_files(prediction *p, const predict_words *words)
{
    char separator = words->separator[0];
    const char *file = words->files[0];
    if (is_of_masks(p) && !is_numpy(file))
        return predict_masks(&p->s, words->files, limited(p, words->file_count), p->output, p->json);
    if (is_of_files(p) && !is_numpy(file))
        return predict_files(p, words->files, limited(p, words->file_count));
    if (words->file_count > 1)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: one file was expected, got %zu; only pictures and the like can be several", file,
                        words->file_count);
    if (p->pipeline != NULL && !is_numpy(file))
        return predict_named(p, file, separator);
    sgm_status status = predict_file(p, file, words->lengths, separator != '\0' ? separator : ',');
    return status == SGM_OK || is_numpy(file) || !predict_takes_texts(p)
               ? status
               : sgm_fail(status,
                          "%s; the network reads texts: --text TEXT, FILE.txt with a text on each line, or "
                          "FILE.jsonl with {\"text\": \"...\"}",
                          sgm_last_error());
}

static sgm_status predict_input(prediction *p, const predict_words *words)
{
    if (p->onnx.onnx != NULL && words->data != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "--data names the data of a run, and an ONNX model has none: name a file");
    SGM_TRY(check_network(p, words));
    bool has_table = p->output != NULL && !is_of_masks(p);
    if (has_table)
        SGM_TRY(predict_answers_begin(p));
    if (words->data != NULL)
        SGM_TRY(predict_dataset(p, words->data));
    else if (is_of_texts(p, words))
        SGM_TRY(predict_texts(p, words->text, words->pair, words->file_count > 0 ? words->files[0] : NULL));
    else
        SGM_TRY(answer_files(p, words));
    return has_table ? predict_answers_write(p) : SGM_OK;
}

/* A checkpoint or an ONNX model. */
static sgm_status open_model(prediction *p, const predict_words *words)
{
    const char *path = words->checkpoint;
    if (ends_with(path, ".onnx")) {
        SGM_TRY(onnx_model_open(&p->onnx, path, p->int8));
        p->signature = p->onnx.signature;
        return SGM_OK;
    }
    SGM_TRY(saved_describe(&p->s, path));
    const bool is_lines = words->file_count == 1 && ends_with(words->files[0], ".jsonl");
    if (words->pair != NULL || (is_lines && sgm_labelled_text_has_pairs(words->files[0])))
        SGM_TRY(saved_take_pairs(&p->s));
    const char *purpose = words->text != NULL ? purpose_of(path) : NULL;
    if (purpose != NULL && purpose_is_to_continue(purpose))
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "'%s' continues texts: use 'sigma generate %s --text TEXT'",
                        path, path);
    SGM_TRY(saved_load(&p->s));
    SGM_TRY(experiment_describe(p->s.network, &p->signature));
    p->pipeline = sgm_trainer_get_pipeline(p->s.trainer);
    /* Programs for texts are many, one for each length, and each packs all weights anew: that pays where
     * lengths come again and again. */
    return p->int8 || !is_of_texts(p, words) ? saved_infer(&p->s, p->int8) : SGM_OK;
}

/* Returns an exit code. */
static int predict(prediction *p, const predict_words *words)
{
    sgm_status status = open_model(p, words);
    if (status == SGM_OK) {
        p->elements = sgm_shape_elements(&p->signature.example);
        status = predict_input(p, words);
    }
    int code = status == SGM_OK ? CLI_OK : report_error("predict", CLI_FAILED);
    predict_answers_free(p);
    saved_close(&p->s);
    onnx_model_close(&p->onnx);
    sgm_pretrained_free(p->model);
    sgm__free(p->lengths);
    return code;
}

/* Whether the table of answers would take the place of the checkpoint or of a file that is read. */
static bool replaces_input(const arguments *a, const char *output)
{
    for (size_t i = 0; i < a->word_count; i++)
        if (is_same_file(a->words[i], output))
            return true;
    return false;
}

/* Whether the words and options go together; else *code is that of a wrong usage. */
static bool check_words(const arguments *a, prediction *p, const predict_words *words, int *code)
{
    if (strlen(words->separator) > 1)
        *code = usage_error("predict", "--separator: expected one character, got '%s'", words->separator);
    else if (words->texts.count > 1)
        *code = usage_error("predict",
                            "--text is given %zu times; several texts are lines of FILE.txt, or with "
                            "'--text -' of the standard input",
                            words->texts.count);
    else if (words->data != NULL && words->text != NULL)
        *code = usage_error("predict", "expected --data or --text, got both");
    else if (words->data != NULL || words->text != NULL ? a->word_count != 1 : a->word_count < 2)
        *code = usage_error("predict", "expected a checkpoint and --data NAME, --text TEXT or a file");
    else if (words->pair != NULL && (words->text == NULL || strcmp(words->text, "-") == 0))
        *code = usage_error("predict", "--pair: expected with --text TEXT, the first text of the pair");
    else if (is_file_of_data(words->data))
        *code = usage_error("predict", "--data takes a name; a file stands alone: sigma predict %s %s",
                            a->words[0], words->data);
    else if (words->data != NULL && words->lengths != NULL)
        *code = usage_error("predict", "--lengths is for files; --data has a field of them");
    else if (p->id != NULL && p->output == NULL)
        *code = usage_error("predict", "--id is for --output FILE, which gets these columns");
    else if (p->output != NULL && p->json)
        *code = usage_error("predict", "expected --output FILE, which is a table, or --json, got both");
    else if (p->output != NULL && replaces_input(a, p->output))
        *code = usage_error("predict", "--output: '%s' is what is read; name another file for the answers",
                            p->output);
    else
        return unknown_is_ignored("predict", words->unknown, &p->ignores_unknown, code);
    return false;
}

/* A checkpoint is the first word; files are the others, unless --data names a dataset. */
int predict_run(int argc, char **argv)
{
    predict_words words = {.separator = ""};
    prediction p = {.limit = -1};
    const argument_rule rules[] = {
        {"--data", ARGUMENT_TEXT, &words.data},
        {"--count", ARGUMENT_COUNT, &p.limit},
        {"--lengths", ARGUMENT_TEXT, &words.lengths},
        {"--separator", ARGUMENT_TEXT, &words.separator},
        {"--output", ARGUMENT_TEXT, &p.output},
        {"--id", ARGUMENT_TEXT, &p.id},
        {"--probabilities", ARGUMENT_FLAG, &p.probabilities},
        {"--json", ARGUMENT_FLAG, &p.json},
        {"--int8", ARGUMENT_FLAG, &p.int8},
        {"--unknown", ARGUMENT_TEXT, &words.unknown},
        {"--text", ARGUMENT_TEXTS, &words.texts},
        {"--pair", ARGUMENT_TEXT, &words.pair},
    };
    arguments a = {.rules = rules, .rule_count = sizeof rules / sizeof *rules, .help = usage_text};
    int code;
    bool is_right = arguments_read(&a, argc, argv, &code);
    words.text = words.texts.count > 0 ? words.texts.items[0] : NULL;
    if (is_right && check_words(&a, &p, &words, &code)) {
        words.checkpoint = a.words[0];
        words.files = a.words + 1;
        words.file_count = a.word_count - 1;
        code = predict(&p, &words);
    }
    arguments_free(&a);
    return code;
}
