/* `sigma eval`: loss, accuracy and metrics of a checkpoint on data.
 *
 * The library measures: sgm_trainer_evaluate gives loss and accuracy, sgm_trainer_evaluate_metrics all
 * metrics that suit the network, as entries of a registry. This file chooses between the two, opens the data,
 * and prints the registry's entries for people or as JSON. Without --data and a table it takes the validation
 * and test data of the run. */
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
/* Of the worst mistakes, so many are printed. */
#define SHOWN_MISTAKES 3

static const char usage_text[] =
    "Usage: sigma eval CHECKPOINT|FOLDER [--data NAME | FILE.csv | FILE.jsonl | CLASSES/] [--masks MASKS/]\n"
    "                  [--metrics LIST] [--json] [--plot FILE.svg|FILE.png] [--unknown=ignore|refuse]\n"
    "                  [--int8]\n\n"
    "Measures a trained network: loss, and, where the targets are classes, accuracy, precision, recall, F1,\n"
    "area under the ROC curve and the confusion matrix; of other targets the errors, of transcripts the "
    "share\n"
    "of wrong characters and of texts without a mistake.\n\n"
    "  --data NAME     a ready-made dataset ('sigma info' lists them), or training, validation, test as the\n"
    "                  run's config.yaml has them; default: validation and test\n"
    "  FILE.csv        a table with the columns, and targets, of the one that the network was trained on by "
    "its\n"
    "                  columns' names; errors are in the units of the target, the loss is not\n"
    "  FILE.jsonl      lines of texts with labels, or of pairs of texts, for an encoder that 'sigma "
    "finetune'\n"
    "                  trained on such. Of a model of others, imported or not, and of a run on chats: lines "
    "with\n"
    "                  text and label if it has classes, else lines as 'sigma finetune' reads them, of whose "
    "next\n"
    "                  tokens perplexity, loss and accuracy are measured\n"
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
    "                  embeddings, layers below 4,096 weights), their inputs while they are computed. Loss "
    "and\n"
    "                  accuracy without it are told, too\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.\n";

/* --- as JSON --- */

/* A list, or for rank 2 a list of rows. */
static void print_json_tensor(const sgm_tensor *tensor)
{
    const sgm_shape *shape = sgm_tensor_shape(tensor);
    bool is_matrix = shape->rank == 2;
    printf("[");
    for (int64_t i = 0; i < shape->dims[0]; i++) {
        fputs(i > 0 ? ", " : "", stdout);
        if (is_matrix)
            printf("[");
        for (int64_t j = 0; j < (is_matrix ? shape->dims[1] : 1); j++) {
            const int64_t indices[] = {i, j};
            fputs(j > 0 ? ", " : "", stdout);
            print_json_number(sgm_tensor_get(tensor, indices));
        }
        if (is_matrix)
            printf("]");
    }
    printf("]");
}

/* Whether print_metrics, or the beginning of the JSON object, has shown this entry already. */
static bool is_shown_first(const char *name)
{
    return strcmp(name, "loss") == 0 || strcmp(name, "accuracy") == 0 || strcmp(name, "examples") == 0;
}

/* Errors of a target of numbers are brought back into the units of its table; other results stay, as do the
 * errors of several targets together. */
static double in_units(const config *c, const char *name, int64_t target, double value)
{
    static const char *const errors[] = {"mean_absolute_error", "root_mean_squared_error", "maximum_error"};
    const sgm_pipeline *pipeline = c->data.pipeline;
    bool is_each = ends_with(name, "_per_target");
    if (pipeline == NULL || sgm_pipeline_classes(pipeline) != NULL ||
        (sgm_pipeline_width(pipeline, "targets") != 1 && !is_each))
        return value;
    size_t length = strlen(name) - (is_each ? strlen("_per_target") : 0), at = (size_t)target;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (strlen(errors[i]) == length && strncmp(name, errors[i], length) == 0)
            return value * (sgm_pipeline_restore(pipeline, at, 1) - sgm_pipeline_restore(pipeline, at, 0));
    return value;
}

/* The numbers of each target, in its units. */
static void print_json_targets(const config *c, const char *name, const sgm_tensor *numbers)
{
    for (int64_t i = 0; i < sgm_tensor_shape(numbers)->dims[0]; i++) {
        fputs(i == 0 ? "[" : ", ", stdout);
        print_json_number(in_units(c, name, i, sgm_tensor_get(numbers, &i)));
    }
    putchar(']');
}

/* ", "classes": ["cat", "dog"]", or the names of targets that are numbers, in whose units errors are. */
static void print_json_names(const config *c)
{
    const sgm_pipeline *pipeline = c->data.pipeline;
    const char *const *classes = pipeline != NULL ? sgm_pipeline_classes(pipeline) : NULL;
    const sgm__pipeline_part *part;
    const text_list *labels = &c->data.training.class_names;
    for (size_t i = 0; pipeline == NULL && i < labels->count; i++) {
        fputs(i == 0 ? ", \"classes\": [" : ", ", stdout);
        print_json_text(labels->items[i]);
    }
    for (size_t i = 0; classes != NULL && classes[i] != NULL; i++) {
        fputs(i == 0 ? ", \"classes\": [" : ", ", stdout);
        print_json_text(classes[i]);
    }
    for (size_t i = 0;
         classes == NULL && pipeline != NULL && (part = sgm__pipeline_target(pipeline, i)) != NULL; i++) {
        fputs(i == 0 ? ", \"targets\": [" : ", ", stdout);
        print_json_text(part->name);
    }
    if (pipeline != NULL || labels->count > 0)
        putchar(']');
}

/* ", "worst_mistakes_files": ["cat/3.png", ...]": those of the rows of worst_mistakes. */
static void print_json_files(const sgm_tensor *mistakes, const eval_names *names)
{
    for (int64_t i = 0; i < sgm_tensor_shape(mistakes)->dims[0] && names->files != NULL; i++) {
        const char *file = eval_name_of(names, (int64_t)sgm_tensor_get(mistakes, (const int64_t[]){i, 0}));
        fputs(i == 0 ? ", \"worst_mistakes_files\": [" : ", ", stdout);
        print_json_text(file != NULL ? file : "");
        fputs(i + 1 == sgm_tensor_shape(mistakes)->dims[0] ? "]" : "", stdout);
    }
}

/* One object on a line: name, loss, accuracy, examples, then all other results in the registry's order. */
static void print_json(const char *name, const sgm_metrics *metrics, const sgm_matches *results,
                       const config *c, const eval_names *names)
{
    printf("{\"data\": ");
    print_json_text(name);
    printf(", \"loss\": ");
    print_json_number(metrics->loss);
    printf(", \"accuracy\": ");
    print_json_number(metrics->accuracy);
    printf(", \"examples\": %lld", (long long)metrics->examples);
    print_json_names(c);
    for (size_t i = 0; i < results->count; i++) {
        const sgm_match *result = &results->items[i];
        if (is_shown_first(result->identifier))
            continue;
        printf(", ");
        print_json_text(result->identifier);
        printf(": ");
        if (ends_with(result->identifier, "_per_target"))
            print_json_targets(c, result->identifier, result->content.as.tensor);
        else if (result->content.kind == SGM_KIND_TENSOR)
            print_json_tensor(result->content.as.tensor);
        else
            print_json_number(in_units(c, result->identifier, 0, result->content.as.number));
        if (strcmp(result->identifier, "worst_mistakes") == 0)
            print_json_files(result->content.as.tensor, names);
    }
    printf("}\n");
}

/* --- for people --- */

/* The names of the classes, if the pipeline or the configuration has as many as there are classes; else NULL:
 * numbers are shown. */
static const char *const *class_names(const config *c, int64_t classes)
{
    const text_list *names = &c->data.training.class_names;
    const char *const *known = c->data.pipeline != NULL ? sgm_pipeline_classes(c->data.pipeline) : NULL;
    int64_t count = 0;
    while (known != NULL && known[count] != NULL)
        count++;
    if (known != NULL && count == classes)
        return known;
    return (int64_t)names->count == classes ? (const char *const *)names->items : NULL;
}

static void print_class(const char *const *names, int64_t class)
{
    if (names != NULL)
        print_name(names[class]);
    else
        printf("%lld", (long long)class);
}

/* Each row of `mistakes` is (number, class, predicted class, output of the network for that class), the
 * worst first. `what` is what the number counts: "example", or "prediction" where an example has several. A
 * file is named instead. */
static void print_mistakes(const sgm_tensor *mistakes, const char *const *names, const char *what,
                           const eval_names *files)
{
    int64_t count = sgm_tensor_shape(mistakes)->dims[0];
    for (int64_t i = 0; i < count && i < SHOWN_MISTAKES; i++) {
        double numbers[4];
        for (int64_t j = 0; j < 4; j++)
            numbers[j] = sgm_tensor_get(mistakes, (const int64_t[]){i, j});
        const char *file = eval_name_of(files, (int64_t)numbers[0]);
        printf(i == 0 ? "  worst mistakes: " : "; ");
        if (file != NULL)
            print_name(file);
        else
            printf("%s %lld", what, (long long)numbers[0]);
        printf(", ");
        print_class(names, (int64_t)numbers[1]);
        printf(" predicted as ");
        print_class(names, (int64_t)numbers[2]);
        printf(" (%.3f)", numbers[3]);
    }
    if (count > 0)
        printf("\n");
}

/* Indents the library's table by two columns. */
static sgm_status print_confusion(const sgm_tensor *confusion, const config *c)
{
    char *text = sgm_confusion_text(confusion, class_names(c, sgm_tensor_shape(confusion)->dims[0]));
    if (text == NULL)
        return sgm__last_failure();
    char *rest = text, *line;
    while ((line = strtok_r(rest, "\n", &rest)) != NULL)
        printf("  %s\n", line);
    sgm_string_free(text);
    return SGM_OK;
}

/* Averages over classes taken in other ways, which only the JSON shows. */
static bool is_detail(const char *name)
{
    return ends_with(name, "_macro") || ends_with(name, "_weighted") || ends_with(name, "_micro");
}

/* The number of predictions in a confusion matrix. */
static int64_t total_of(const sgm_tensor *confusion)
{
    const sgm_shape *shape = sgm_tensor_shape(confusion);
    int64_t total = 0;
    for (int64_t i = 0; i < shape->dims[0]; i++)
        for (int64_t j = 0; j < shape->dims[1]; j++)
            total += (int64_t)sgm_tensor_get(confusion, (const int64_t[]){i, j});
    return total;
}

/* Shares and scaled errors have four decimals; larger numbers six digits. Printed NaN has no sign. */
static const char *number_text(double number, char *text, size_t size)
{
    snprintf(text, size, fabs(number) < 100 ? "%.4f" : "%.6g", isnan(number) ? NAN : number);
    return text;
}

/* Of several targets of a table a line each, "  price: mean_absolute_error 2104, ...", in their units. */
static void print_targets(const sgm_matches *results, const config *c)
{
    static const char end[] = "_per_target";
    const sgm__pipeline_part *part;
    for (size_t i = 0; c->data.pipeline != NULL && (part = sgm__pipeline_target(c->data.pipeline, i)) != NULL;
         i++) {
        int64_t at = (int64_t)i, shown = 0;
        for (size_t k = 0; k < results->count; k++) {
            const sgm_match *result = &results->items[k];
            char text[32];
            if (!ends_with(result->identifier, end) ||
                at >= sgm_tensor_shape(result->content.as.tensor)->dims[0])
                continue;
            if (shown++ == 0) {
                printf("  ");
                print_name(part->name);
            }
            double number =
                in_units(c, result->identifier, at, sgm_tensor_get(result->content.as.tensor, &at));
            printf("%s%.*s %s", shown == 1 ? ": " : ", ", (int)(strlen(result->identifier) - strlen(end)),
                   result->identifier, number_text(number, text, sizeof text));
        }
        if (shown > 0)
            putchar('\n');
    }
}

/* The numbers on one line, then those of each target, the confusion matrix and the worst mistakes. Mistakes
 * are named by the number of the example if each example has one prediction, which the sum of the matrix
 * tells. */
static sgm_status print_results(const sgm_matches *results, const sgm_metrics *metrics, const config *c,
                                const eval_names *names)
{
    bool any = false;
    char text[32];
    const sgm_tensor *confusion = NULL, *mistakes = NULL;
    for (size_t i = 0; i < results->count; i++) {
        const sgm_match *result = &results->items[i];
        if (strcmp(result->identifier, "confusion") == 0)
            confusion = result->content.as.tensor;
        else if (strcmp(result->identifier, "worst_mistakes") == 0)
            mistakes = result->content.as.tensor;
        if (result->content.kind != SGM_KIND_NUMBER || is_shown_first(result->identifier) ||
            is_detail(result->identifier))
            continue;
        double number = in_units(c, result->identifier, 0, result->content.as.number);
        printf("%s%s %s", any ? ", " : "  ", result->identifier, number_text(number, text, sizeof text));
        any = true;
    }
    if (any)
        printf("\n");
    print_targets(results, c);
    if (confusion != NULL)
        SGM_TRY(print_confusion(confusion, c));
    if (confusion != NULL && mistakes != NULL)
        print_mistakes(mistakes, class_names(c, sgm_tensor_shape(confusion)->dims[0]),
                       total_of(confusion) == metrics->examples ? "example" : "prediction", names);
    return SGM_OK;
}

/* --- measuring --- */

/* What is measured of classes of pixels, which are too many for an area under a curve. */
#define OF_MASKS "mean_iou confusion f1"

static bool has_masks(const saved *s)
{
    const sgm_pipeline *pipeline = s->c.data.pipeline;
    return pipeline != NULL && pipeline->kind != NULL && pipeline->kind->target_shape != NULL;
}

/* Whether all metrics are asked for without --metrics: where the targets have few classes. */
static bool wants_report(sgm_dataset *dataset)
{
    sgm_shape shape;
    return sgm_dataset_field_shape(dataset, "targets", &shape) == SGM_OK &&
           (shape.rank == 0 || shape.dims[shape.rank - 1] <= MAXIMUM_CLASSES);
}

/* Fills *metrics, and `results` where metrics are wanted. Outputs of another shape than the targets can be
 * judged by the cost only (SGM_ERROR_SHAPE); that is an error only if metrics were asked for. */
static sgm_status score(const saved *s, sgm_iterator *iterator, const char *wanted, sgm_metrics *metrics,
                        sgm_registry *results)
{
    if (wanted != NULL ? strcmp(wanted, "none") == 0
                       : !has_masks(s) && !wants_report(sgm_iterator_dataset(iterator)))
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

/* `data` and `file`: at most one is not NULL. */
typedef struct eval_options {
    const char *data, *file, *masks, *metrics, *plot, *unknown;
    bool json, ignores_unknown, int8;
} eval_options;

sgm_status eval_add_number(sgm_registry *results, const char *name, double number, const char *doc)
{
    const sgm_option row = {.name = name, .kind = SGM_KIND_NUMBER, .doc = doc};
    SGM_TRY(sgm_registry_define(results, &row));
    return sgm_registry_set(results, name, sgm_number_content(number));
}

/* From what is measured with integers of 8 bits the reader wants to see what they change: loss and accuracy
 * of the network as it was trained are added to the results. From then on integers are used. */
static sgm_status turn_to_int8(const saved *s, sgm_iterator *iterator, sgm_registry *results)
{
    static const char doc[] = "as it was trained, without int8";
    sgm_metrics trained;
    SGM_TRY(saved_infer(s, false));
    SGM_TRY(sgm_trainer_evaluate(s->trainer, iterator, &trained));
    SGM_TRY(eval_add_number(results, "loss_float32", trained.loss, doc));
    if (!isnan(trained.accuracy))
        SGM_TRY(eval_add_number(results, "accuracy_float32", trained.accuracy, doc));
    return saved_infer(s, true);
}

/* "*" finds all entries of the registry. */
static sgm_status print_all(const saved *s, const char *name, const sgm_metrics *metrics,
                            sgm_registry *results, const eval_options *options)
{
    sgm_matches all;
    eval_names names;
    SGM_TRY(eval_names_open(&names, s, name, options->file));
    sgm_status status = sgm_registry_resolve(results, "*", &all);
    if (status == SGM_OK && options->json) {
        print_json(name, metrics, &all, &s->c, &names);
    } else if (status == SGM_OK) {
        print_metrics(name, metrics);
        status = print_results(&all, metrics, &s->c, &names);
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
        *(texts.text_pairs != NULL ? &texts.text_pairs : &texts.labelled_texts) =
            (char *)(uintptr_t)options->file;
        return text_dataset(&s->c.data, &texts, name);
    }
    if (s->c.data.pipeline == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT,
                 "%s: files are for networks that were trained on a table by its columns' names (target), on "
                 "folders of files (" FILE_KEYS
                 "), or on labelled_texts and text_pairs; lines of JSON are for "
                 "models with a tokenizer, too; say which data with --data NAME",
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
            confusion, class_names(&s->c, sgm_tensor_shape(confusion)->dims[0]), options->plot);
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
        status = print_all(s, name, &metrics, results, options);
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
        status = print_all(s, name, &metrics, results, options);
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

/* Measures what --data names, or the validation and test data of the run. */
static int eval(const char *path, const eval_options *options)
{
    saved s;
    if (open_saved(&s, path, options->file) != SGM_OK)
        return report_error("eval", CLI_FAILED);
    /* Without a config.yaml both are empty, and --data must be given. */
    bool validation = data_group_has(&s.c.data, &s.c.data.validation),
         test = data_group_has(&s.c.data, &s.c.data.test);
    int code = CLI_OK;
    const char *given = options->file != NULL ? options->file : options->data;
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
    else if (given != NULL ? measure(&s, given, options) != SGM_OK
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
        {"--unknown", ARGUMENT_TEXT, &options.unknown}, {"--json", ARGUMENT_FLAG, &options.json},
        {"--int8", ARGUMENT_FLAG, &options.int8}};
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
        else if (unknown_is_ignored("eval", options.unknown, &options.ignores_unknown, &code))
            code = eval(a.words[0], &options);
    }
    arguments_free(&a);
    return code;
}
