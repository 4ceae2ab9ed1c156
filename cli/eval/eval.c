/* `sigma eval`: loss, accuracy and metrics of a checkpoint on data.
 *
 * The library measures: sgm_trainer_evaluate gives loss and accuracy, sgm_trainer_evaluate_metrics all
 * metrics that suit the network, as entries of a registry. This file chooses between the two and opens the
 * data; eval_print.c prints the entries. Without --data and a table it takes the validation and test data of
 * the run. */
#include "eval/eval.h"
#include "config/files.h"
#include "data/table/pipeline.h"
#include "plot/eval_plot.h"
#include "plot/plot.h"

#include <math.h>
#include <sigma/text_data.h>
#include <stdio.h>

/* Without --metrics, targets with more classes than this are measured by loss and accuracy only: a table
 * of what was taken for what would not fit a screen. */
#define MAXIMUM_CLASSES 30

static const char usage_text[] =
    "Usage: sigma eval CHECKPOINT|FOLDER|MODEL.onnx|MODEL.gguf\n"
    "                  [--data NAME | FILE.csv [--target COLUMN] | FILE.jsonl | CLASSES/] [--masks MASKS/]\n"
    "                  [--metrics LIST] [--json] [--plot FILE.svg|FILE.png] [--unknown=ignore|refuse]\n"
    "                  [--int8]\n\n"
    "Measures a trained network: loss, and, where the targets are classes, accuracy, precision, recall, F1,\n"
    "area under the ROC curve and the confusion matrix; of other targets the errors, of transcripts the "
    "share\n"
    "of wrong characters and of texts without a mistake. FOLDER is that of a run, what 'sigma import' "
    "wrote,\n"
    "or a model as the library transformers keeps it.\n\n"
    "  --data NAME     a ready-made dataset ('sigma info' lists them), or training, validation, test as the\n"
    "                  run's config.yaml has them, so that of a share of a file that share alone is "
    "counted;\n"
    "                  default: validation and test\n"
    "  FILE.csv        a table with the columns, and targets, of the one that the network was trained on by "
    "its\n"
    "                  columns' names; errors are in the units of the target, the loss is not. Of\n"
    "                  MODEL.onnx, run as it is, and of a network that was imported or trained on arrays:\n"
    "                  its inputs in their order, and behind them the class, by name or by number from 0,\n"
    "                  or numbers; loss is the cross-entropy, of probabilities, or the mean squared error\n"
    "  --target COLUMN  of such a table, whose first line has names: the target, if it is not the last\n"
    "  FILE.jsonl      lines of texts with labels, or of pairs of texts, for an encoder that 'sigma "
    "finetune'\n"
    "                  trained on such. Of a model of others, imported or not, and of a run on chats: lines "
    "with\n"
    "                  text and label if it has classes, else lines as 'sigma finetune' reads them, of whose "
    "next\n"
    "                  tokens perplexity, loss and accuracy are measured, with the token that ends each "
    "text\n"
    "  CLASSES/        a folder with a folder of files for each class, for a network that was trained on "
    "such "
    "a\n"
    "                  one (" FILE_KEYS "); classes are found by their names\n"
    "  --masks MASKS/  the masks of the pictures in CLASSES/, which need no classes then\n"
    "  --metrics LIST  only these, as in \"confusion,f1,top_k(1,3)\" ('sigma info --hooks' lists metrics);\n"
    "                  none: only loss and accuracy\n"
    "  --json          one object a line, with the metrics of each class, and names of classes or targets\n"
    "  --plot FILE     draws the confusion matrix, or predicted against true numbers: .svg or .png\n"
    "  --unknown=ignore  of FILE.csv: categories that were in no training row count as missing; if not "
    "given,\n"
    "                  --unknown=refuse, they are an error\n"
    "  --int8          dynamic quantization, as predict, serve and generate have it: weights of dense and\n"
    "                  recurrent layers and of attention are rounded to 8 bits in advance (not "
    "convolutions,\n"
    "                  embeddings, layers below 4,096 weights), their inputs while they are computed. Loss\n"
    "                  and accuracy without it are told, too, but of a table of MODEL.onnx and the like, by\n"
    "                  the name of the run's precision: loss_float32, loss_bfloat16\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.\n";

/* --- measuring --- */

/* What is measured of classes of pixels, which are too many for an area under a curve. */
#define OF_MASKS "mean_iou confusion f1"

static bool has_masks(const saved *s)
{
    const sgm_pipeline *pipeline = s->c.data.pipeline;
    return pipeline != NULL && pipeline->kind != NULL && pipeline->kind->target_shape != NULL;
}

/* Whether all metrics are asked for without --metrics: where the targets have few classes. Of a network that
 * gives shares of classes these are counted, since the targets may be numbers of classes, one for each step.
 */
static bool wants_report(const saved *s, sgm_dataset *dataset)
{
    sgm_shape shape;
    sgm__signature signature;
    if (sgm_dataset_field_shape(dataset, "targets", &shape) != SGM_OK)
        return false;
    if (shape.rank > 0 && experiment_describe(s->network, &signature) == SGM_OK && signature.classifies)
        shape = signature.output;
    return shape.rank == 0 || shape.dims[shape.rank - 1] <= MAXIMUM_CLASSES;
}

/* Fills *metrics, and `results` where metrics are wanted. Outputs of another shape than the targets can be
 * judged by the cost only (SGM_ERROR_SHAPE); that is an error only if metrics were asked for. */
static sgm_status score(const saved *s, sgm_iterator *iterator, const char *wanted, sgm_metrics *metrics,
                        sgm_registry *results)
{
    if (wanted != NULL ? strcmp(wanted, "none") == 0
                       : !has_masks(s) && !wants_report(s, sgm_iterator_dataset(iterator)))
        return sgm_trainer_evaluate(s->trainer, iterator, metrics);
    if (wanted == NULL && has_masks(s))
        wanted = OF_MASKS;
    sgm_status status = sgm_trainer_evaluate_metrics(s->trainer, iterator, wanted, results);
    if (status == SGM_ERROR_SHAPE &&
        wanted == NULL) /* outputs that are unlike targets: only the cost knows */
        return sgm_trainer_evaluate(s->trainer, iterator, metrics);
    SGM_TRY(status);
    if (sgm_registry_get_number(results, "accuracy", &metrics->accuracy) != SGM_OK)
        metrics->accuracy = NAN;
    SGM_TRY(sgm_registry_get_number(results, "loss", &metrics->loss));
    return sgm_registry_get_integer(results, "examples", &metrics->examples);
}

sgm_status eval_add_number(sgm_registry *results, const char *name, double number, const char *doc)
{
    const sgm_option row = {.name = name, .kind = SGM_KIND_NUMBER, .doc = doc};
    SGM_TRY(sgm_registry_define(results, &row));
    return sgm_registry_set(results, name, sgm_number_content(number));
}

sgm_status eval_add_trained(const saved *s, const sgm_metrics *trained, sgm_registry *results)
{
    static const char doc[] = "as it was trained, without int8";
    const char *precision = sgm_dtype_name(config_precision(&s->c));
    char name[64];
    snprintf(name, sizeof name, "loss_%s", precision);
    SGM_TRY(eval_add_number(results, name, trained->loss, doc));
    if (isnan(trained->accuracy))
        return SGM_OK;
    snprintf(name, sizeof name, "accuracy_%s", precision);
    return eval_add_number(results, name, trained->accuracy, doc);
}

/* From what is measured with integers of 8 bits the reader wants to see what they change: loss and accuracy
 * of the network as it was trained are added to the results. From then on integers are used. */
static sgm_status turn_to_int8(const saved *s, sgm_iterator *iterator, sgm_registry *results)
{
    sgm_metrics trained;
    SGM_TRY(saved_infer(s, false));
    SGM_TRY(sgm_trainer_evaluate(s->trainer, iterator, &trained));
    SGM_TRY(eval_add_trained(s, &trained, results));
    return saved_infer(s, true);
}

/* "*" finds all entries of the registry. */
static sgm_status print_all(const saved *s, const char *name, sgm_dataset *dataset,
                            const sgm_metrics *metrics, sgm_registry *results, const eval_options *options)
{
    sgm_matches all;
    eval_names names;
    eval_counted counted = {.data = NULL};
    if (options->file == NULL)
        SGM_TRY(eval_count(&counted, s, name, dataset));
    SGM_TRY(eval_names_open(&names, s, name, options->file));
    sgm_status status = sgm_registry_resolve(results, "*", &all);
    if (status == SGM_OK && options->json) {
        eval_print_json(name, metrics, &counted, &all, &s->c, &names);
    } else if (status == SGM_OK) {
        print_metrics(name, metrics);
        eval_print_counted(&counted);
        status = eval_print_results(&all, metrics, &s->c, &names);
    }
    sgm_matches_free(&all);
    eval_names_close(&names);
    return status;
}

/* A dataset by its name, lines of texts, a table by its columns' names, or a folder of files. */
static sgm_dataset *open_dataset(saved *s, const char *name, const eval_options *options)
{
    if (options->file == NULL)
        return saved_dataset(s, name);
    if (eval_lines_takes(s, options->file))
        return eval_lines_dataset(s, options->file, name);
    if (data_config_has_texts(&s->c.data.training)) {
        data_config texts = s->c.data.training;
        texts.begin = texts.share = NAN;
        *(texts.text_pairs != NULL ? &texts.text_pairs : &texts.labelled_texts) =
            (char *)(uintptr_t)options->file;
        return text_dataset(&s->c.data, &texts, name);
    }
    char *tokenizer = s->c.data.pipeline == NULL ? saved_tokenizer(s) : NULL;
    const bool takes_lines = tokenizer != NULL;
    sgm__free(tokenizer);
    if (takes_lines) {
        sgm_fail(SGM_ERROR_ARGUMENT,
                 "%s: the model takes lines of JSON, in a file whose name ends in .jsonl, or the data that "
                 "--data names",
                 options->file);
        return NULL;
    }
    char *missing = ends_with(options->file, ".jsonl") ? saved_missing_tokenizer(s) : NULL;
    if (missing != NULL) {
        sgm_fail(SGM_ERROR_NOT_FOUND, NO_TOKENIZER "; put it there", missing);
        sgm__free(missing);
        return NULL;
    }
    if (s->c.data.pipeline == NULL) {
        sgm_fail(
            SGM_ERROR_ARGUMENT,
            "%s: files are for networks that were trained on a table by its columns' names (target), on "
            "folders of files (" FILE_KEYS
            "), or on labelled_texts and text_pairs; lines of JSON are for models with a tokenizer, too, "
            "and tables of numbers for networks with one input that were trained on none; say which data "
            "with --data NAME",
            options->file);
        return NULL;
    }
    const sgm_pipeline *pipeline = s->c.data.pipeline;
    if (strcmp(sgm_pipeline_kind(pipeline), "table") == 0 && sgm__is_folder(options->file)) {
        sgm_fail(SGM_ERROR_ARGUMENT,
                 "%s: is a folder, but the network was trained on a table: name one, FILE.csv",
                 options->file);
        return NULL;
    }
    if (strcmp(sgm_pipeline_kind(pipeline), "table") != 0 && options->unknown != NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT,
                 "--unknown is for categories of a table, and the network was trained on %s; leave it out",
                 sgm_pipeline_kind(pipeline));
        return NULL;
    }
    data_config data = {.csv = (char *)(uintptr_t)options->file};
    if (strcmp(sgm_pipeline_kind(pipeline), "table") != 0)
        data = data_config_of_files(pipeline, options->file);
    data.masks = (char *)(uintptr_t)options->masks;
    data.ignores_unknown = options->ignores_unknown;
    return sgm_dataset_create(name, .extractor = experiment_extractor(&s->c.data, &data));
}

/* The confusion matrix that was measured, or is now; of a network that does not classify its numbers. */
static sgm_status draw(const saved *s, sgm_iterator *iterator, sgm_registry *results,
                       const eval_options *options)
{
    sgm__signature signature;
    sgm_matches found;
    SGM_TRY(experiment_describe(s->network, &signature));
    if (!signature.classifies)
        SGM_TRY(plot_regression(s, iterator, options->plot));
    else if (!sgm_registry_has(results, "confusion"))
        SGM_TRY(sgm_trainer_evaluate_metrics(s->trainer, iterator, "confusion", results));
    if (signature.classifies) {
        SGM_TRY(sgm_registry_resolve(results, "confusion", &found));
        const sgm_tensor *confusion = found.items[0].content.as.tensor;
        sgm_status status = plot_confusion(
            confusion, eval_class_names(&s->c, sgm_tensor_shape(confusion)->dims[0]), options->plot);
        sgm_matches_free(&found);
        SGM_TRY(status);
    }
    if (!options->json)
        printf("plot: %s\n", options->plot);
    return SGM_OK;
}

/* Whether these are lines whose next tokens are measured, and not classes. */
static bool has_next_tokens(const saved *s, sgm_dataset *dataset, const eval_options *options)
{
    sgm_shape shape;
    return options->file != NULL && eval_lines_takes(s, options->file) &&
           sgm_dataset_field_shape(dataset, "lengths", &shape) != SGM_OK;
}

/* Next tokens, of which there is nothing to choose and to draw. */
static sgm_status measure_next_tokens(const saved *s, sgm_dataset *dataset, const char *name,
                                      const eval_options *options)
{
    sgm_metrics metrics;
    if (options->metrics != NULL || options->plot != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: loss, accuracy and perplexity of next tokens are measured; leave out --metrics "
                        "and --plot",
                        options->file);
    sgm_registry *results = sgm_registry_create();
    sgm_status status = results != NULL ? saved_infer(s, false) : sgm__last_failure();
    if (status == SGM_OK)
        status = eval_next_tokens(s, dataset, options->int8, &metrics, results);
    if (status == SGM_OK)
        status = print_all(s, name, dataset, &metrics, results, options);
    sgm_registry_free(results);
    return status;
}

/* Measures one dataset and prints the results. */
static sgm_status measure(saved *s, const char *name, const eval_options *options)
{
    sgm_dataset *dataset = open_dataset(s, name, options);
    if (dataset != NULL && has_next_tokens(s, dataset, options)) {
        sgm_status status = measure_next_tokens(s, dataset, name, options);
        sgm_dataset_free(dataset);
        return status;
    }
    if (dataset != NULL && experiment_check(s->network, dataset) != SGM_OK) {
        sgm_dataset_free(dataset);
        return sgm__fail_within("data '%s'", name);
    }
    sgm_iterator *iterator = dataset != NULL ? experiment_measuring(dataset, &s->c) : NULL;
    sgm_registry *results = iterator != NULL ? sgm_registry_create() : NULL;
    sgm_metrics metrics;
    sgm_status status = results != NULL ? SGM_OK : sgm__last_failure();
    if (status == SGM_OK && options->int8)
        status = turn_to_int8(s, iterator, results);
    if (status == SGM_OK)
        status = score(s, iterator, options->metrics, &metrics, results);
    const sgm_pipeline *pipeline = s->c.data.pipeline;
    if (status == SGM_OK && options->metrics == NULL && pipeline != NULL &&
        sgm_pipeline_characters(pipeline) != NULL)
        status = eval_texts(s, dataset, results);
    if (status == SGM_OK)
        status = print_all(s, name, dataset, &metrics, results, options);
    if (status == SGM_OK && options->plot != NULL)
        status = draw(s, iterator, results, options);
    sgm_registry_free(results);
    sgm_iterator_free(iterator);
    sgm_dataset_free(dataset);
    return status;
}

/* A model reads the lines of a file as pairs of texts if they are some. */
static sgm_status open_saved(saved *s, const char *path, const char *file)
{
    SGM_TRY(saved_describe(s, path));
    if (file != NULL && ends_with(file, ".jsonl") && sgm_labelled_text_has_pairs(file)) {
        sgm_status status = saved_take_pairs(s);
        if (status != SGM_OK) {
            saved_close(s);
            return status;
        }
    }
    return saved_load(s);
}

/* A model of ONNX runs as it is, as 'sigma predict' runs it, whether or not it becomes a network. */
static int eval_onnx(const char *path, const eval_options *options)
{
    if (options->file == NULL)
        return usage_error("eval",
                           "%s has no data of its own: say what to measure it on: sigma eval %s FILE.csv",
                           path, path);
    return eval_rows_of_onnx(path, options) == SGM_OK ? CLI_OK : report_error("eval", CLI_FAILED);
}

/* A file, or what --data names. */
static sgm_status measure_given(saved *s, const char *name, const eval_options *options)
{
    if (options->file != NULL && eval_rows_takes(s, options->file))
        return eval_rows_of_network(s, options);
    if (options->target != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "--target is for a table without names that the network knows; leave it out");
    return measure(s, name, options);
}

/* Measures what --data names, or the validation and test data of the run. */
static int eval(const char *path, const eval_options *options)
{
    saved s;
    if (ends_with(path, ".onnx") && options->data == NULL)
        return eval_onnx(path, options);
    if (open_saved(&s, path, options->file) != SGM_OK)
        return report_error("eval", CLI_FAILED);
    /* Without a config.yaml both are empty, and --data must be given. */
    bool validation = data_group_has(&s.c.data, &s.c.data.validation),
         test = data_group_has(&s.c.data, &s.c.data.test);
    int code = CLI_OK;
    const char *given = options->file != NULL ? options->file : options->data;
    if (options->file != NULL)
        eval_hint_trained(&s, path, options->file);
    char *tokenizer = given == NULL && !validation && !test ? saved_tokenizer(&s) : NULL;
    if (tokenizer != NULL)
        code = usage_error(
            "eval",
            "%s names no validation or test data: say what to measure it on: sigma eval %s FILE.jsonl", path,
            path);
    else if (given == NULL && !validation && !test)
        code = usage_error("eval", "%s names no validation or test data: say which with --data NAME", path);
    else if (given == NULL && validation && test && options->plot != NULL)
        code =
            usage_error("eval", "--plot draws one of validation and test data: say which with --data NAME");
    else if (given != NULL ? measure_given(&s, given, options) != SGM_OK
                           : (validation && measure(&s, "validation", options) != SGM_OK) ||
                                 (test && measure(&s, "test", options) != SGM_OK))
        code = report_error("eval", CLI_FAILED);
    sgm__free(tokenizer);
    saved_close(&s);
    return code;
}

int eval_run(int argc, char **argv)
{
    eval_options options = {.json = false};
    const argument_rule rules[] = {
        {"--data", ARGUMENT_TEXT, &options.data},       {"--masks", ARGUMENT_TEXT, &options.masks},
        {"--metrics", ARGUMENT_TEXT, &options.metrics}, {"--plot", ARGUMENT_TEXT, &options.plot},
        {"--unknown", ARGUMENT_TEXT, &options.unknown}, {"--target", ARGUMENT_TEXT, &options.target},
        {"--json", ARGUMENT_FLAG, &options.json},       {"--int8", ARGUMENT_FLAG, &options.int8}};
    arguments a = {.rules = rules, .rule_count = sizeof rules / sizeof *rules, .help = usage_text};
    int code;
    if (arguments_read(&a, argc, argv, &code)) {
        options.file = a.word_count == 2 ? a.words[1] : NULL;
        if (a.word_count < 1 || a.word_count > 2)
            code = usage_error(
                "eval",
                "expected one checkpoint or folder, and perhaps a table or folder of files, got %zu words",
                a.word_count);
        else if (options.file != NULL && options.data != NULL)
            code = usage_error("eval", "expected --data NAME or a table or folder of files, got both");
        else if (is_file_of_data(options.data))
            code = usage_error("eval", "--data takes a name; a file stands alone: sigma eval %s %s",
                               a.words[0], options.data);
        else if (options.plot != NULL && !plot_can_write(options.plot))
            code = usage_error("eval", "--plot: expected FILE.svg or FILE.png, got '%s'", options.plot);
        else if (options.unknown != NULL && options.file == NULL)
            code = usage_error("eval", "--unknown is for a table that is named, as in sigma eval %s FILE.csv",
                               a.words[0]);
        else if (options.target != NULL && options.file == NULL)
            code = usage_error("eval", "--target is for a table that is named, as in sigma eval %s FILE.csv",
                               a.words[0]);
        else if (unknown_is_ignored("eval", options.unknown, &options.ignores_unknown, &code))
            code = eval(a.words[0], &options);
    }
    arguments_free(&a);
    return code;
}
