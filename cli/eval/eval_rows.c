/* `sigma eval` on a table of which the model knows no names of columns: a model of ONNX, which runs as it is,
 * or a network that was imported or trained on arrays.
 *
 * The inputs are the columns in their order, as `sigma predict` takes them, and the target is the last one,
 * or the one that --target names. Where the model gives several numbers for one target these are scores of
 * classes; else the targets are numbers, as many as the model gives. All rows are kept, as metrics are of all
 * of them together. */
#include "data/table/table.h"
#include "eval/rows.h"
#include "plot/eval_plot.h"
#include "tensor/tensor_internal.h"

#include <math.h>
#include <stdio.h>

/* Rows that are read and predicted at once. */
#define CHUNK 1000
/* With more classes only loss and accuracy are measured, if metrics are not asked for: a table of all of them
 * would not fit a screen. */
#define MOST_SHOWN_CLASSES 30

static long long line_of(const sgm_examples *rows, int64_t row)
{
    return (long long)(rows->lines != NULL ? rows->lines[row] : rows->first_line + row);
}

/* --- columns --- */

/* Whether the first row is a heading: none of its cells is a number but perhaps that of the target. */
static bool is_heading(const eval_rows *r, const sgm_examples *rows)
{
    double number;
    int64_t inputs = r->elements < rows->columns ? r->elements : rows->columns;
    for (int64_t i = 0; i < inputs; i++)
        if (rows->cells[i] == NULL || sgm__parse_double(rows->cells[i], &number))
            return false;
    return true;
}

/* The columns of the inputs are all others. */
static sgm_status find_target(eval_rows *r, const sgm_examples *rows, bool has_heading)
{
    r->target_column = (int32_t)r->elements;
    if (rows->columns <= r->elements)
        return sgm_fail(
            SGM_ERROR_SHAPE,
            "there are %d columns, and the model takes %lld numbers: the target is missing, which "
            "stands behind them%s",
            rows->columns, (long long)r->elements,
            rows->columns == r->elements ? "; 'sigma predict' needs none" : "");
    if (r->target == NULL)
        return SGM_OK;
    if (!has_heading)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "--target: the first line has numbers, and no names of columns; without --target the "
                        "last column is the target");
    for (r->target_column = 0; r->target_column < rows->columns; r->target_column++)
        if (rows->cells[r->target_column] != NULL && strcmp(rows->cells[r->target_column], r->target) == 0)
            return rows->columns == r->elements + 1
                       ? SGM_OK
                       : sgm_fail(SGM_ERROR_SHAPE,
                                  "there are %d columns beside the target, and the model takes %lld numbers: "
                                  "leave others out",
                                  rows->columns - 1, (long long)r->elements);
    return sgm_fail(SGM_ERROR_NOT_FOUND, "--target: there is no column '%.60s'", r->target);
}

/* What the targets are follows from the first predictions. */
static sgm_status find_kind(eval_rows *r, int32_t columns)
{
    int64_t targets = columns - r->elements;
    bool may_be_several = !r->tells && !r->signature.classifies;
    char several[64] = "";
    r->classifies = !may_be_several || (targets == 1 && r->each > 1);
    if (targets == 1 || (may_be_several && targets == r->each))
        return SGM_OK;
    if (may_be_several && r->each > 1)
        snprintf(several, sizeof several, ", or %lld targets", (long long)r->each);
    return sgm_fail(SGM_ERROR_SHAPE,
                    "there are %d columns; expected %lld: %lld numbers that the model takes, and behind them "
                    "%s%s: leave other columns out",
                    columns, (long long)r->elements + 1, (long long)r->elements,
                    may_be_several && r->each == 1 ? "the target" : "the class", several);
}

/* --- one chunk --- */

/* The inputs of the rows from `first` on, (rows, ...) as the model takes them; NULL and an error. */
static sgm_tensor *read_inputs(const eval_rows *r, const sgm_examples *rows, int64_t first)
{
    const sgm_shape *example = &r->signature.example;
    sgm_shape shape = {.rank = example->rank + 1, .dims = {rows->count - first}};
    memcpy(shape.dims + 1, example->dims, (size_t)example->rank * sizeof *shape.dims);
    sgm_tensor *inputs = sgm_tensor_create(SGM_FLOAT64, &shape);
    double *to = inputs != NULL ? sgm_tensor_data(inputs) : NULL;
    for (int64_t row = first; to != NULL && row < rows->count; row++)
        for (int32_t i = 0, put = 0; put < r->elements; i++) {
            const char *cell = rows->cells[row * rows->columns + i];
            if (i == r->target_column)
                continue;
            put++;
            if (cell == NULL || !sgm__parse_double(cell, to) || !isfinite((float)*to)) {
                sgm_fail(SGM_ERROR_FORMAT,
                         "line %lld, column %d (from 0): expected a number that fits float32, got '%.40s'",
                         line_of(rows, row), i, cell != NULL ? cell : "");
                sgm_tensor_free(inputs);
                return NULL;
            }
            if (r->scales)
                *to = (*to - r->minimum) / (r->maximum - r->minimum);
            to++;
        }
    return inputs;
}

static sgm_tensor *predict(eval_rows *r, sgm_tensor *inputs)
{
    sgm_tensor *outputs = r->onnx.onnx != NULL
                              ? onnx_model_predict(&r->onnx, inputs)
                              : sgm__signature_predict(&r->signature, r->s->trainer, inputs, NULL);
    r->blamed = outputs != NULL ? r->path : r->model;
    return outputs;
}

/* The probability of "yes" as those of both classes, in place. */
static void spread(double *numbers, int64_t count)
{
    for (int64_t i = count; i-- > 0;) {
        double yes = numbers[i];
        numbers[2 * i] = 1 - yes;
        numbers[2 * i + 1] = yes;
    }
}

/* The class that the model itself tells of each row, where it does; whole numbers alone are classes, too. */
static sgm_status keep_told(eval_rows *r, int64_t count)
{
    const char *name;
    SGM_TRY(sgm__reserve(&r->told, &r->told_capacity, (size_t)(r->count + count), sizeof *r->told));
    int64_t *to = r->told + r->count;
    for (int64_t i = 0; i < count; i++)
        if (!onnx_model_class(&r->onnx, i, &to[i], &name))
            to[i] = (int64_t)r->outputs[r->count + i];
    return SGM_OK;
}

/* Nothing can be compared with a NaN. A score may be infinite, as a logarithm of 0 is; a number may not. */
static sgm_status check_numbers(const double *outputs, int64_t each, const sgm_examples *rows, int64_t first)
{
    for (int64_t i = 0; i < (rows->count - first) * each; i++)
        if (isnan(outputs[i]) || (each == 1 && isinf(outputs[i])))
            return sgm_fail(SGM_ERROR_NUMERIC,
                            "line %lld: the model gives %s for it, which is no finite number: its numbers "
                            "are too large for the model, or its weights are not finite",
                            line_of(rows, first + i / each), isnan(outputs[i]) ? "nan" : "inf");
    return SGM_OK;
}

/* Appends the predictions of the rows from `first` on. */
static sgm_status keep_outputs(eval_rows *r, const sgm_tensor *outputs, const sgm_examples *rows,
                               int64_t first)
{
    const sgm_shape *shape = sgm_tensor_shape(outputs);
    int64_t count = rows->count - first, numbers = sgm_shape_elements(shape), each = numbers / count;
    char text[128];
    if (shape->rank > 2 && shape->dims[shape->rank - 1] != each)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "the model gives %s: a table has one class, or numbers, for each of %lld rows",
                        sgm_shape_text(shape, text, sizeof text), (long long)count);
    bool is_share = r->signature.classifies && each == 1;
    r->each = is_share ? 2 : each;
    r->tells = r->onnx.classes != NULL || (!sgm_dtype_is_float(sgm_tensor_dtype(outputs)) && each == 1);
    SGM_TRY(sgm__reserve(&r->outputs, &r->output_capacity, (size_t)((r->count + count) * r->each),
                         sizeof *r->outputs));
    double *to = r->outputs + r->count * r->each;
    SGM_TRY(sgm_tensor_read(outputs, to, (size_t)numbers));
    SGM_TRY(check_numbers(to, each, rows, first));
    if (is_share)
        spread(to, count);
    return r->tells ? keep_told(r, count) : SGM_OK;
}

/* The target of a row in one of its columns. */
static sgm_status read_target(eval_rows *r, const sgm_examples *rows, int64_t row, int64_t column, double *to)
{
    const char *cell = rows->cells[row * rows->columns + column];
    if (cell == NULL || *cell == '\0')
        return sgm_fail(SGM_ERROR_FORMAT, "line %lld: the target is missing", line_of(rows, row));
    if (r->classifies) {
        int64_t class = eval_rows_class(r, cell, line_of(rows, row));
        *to = (double)class;
        return class >= 0 ? SGM_OK : sgm__last_failure();
    }
    if (!sgm__parse_double(cell, to) || !isfinite(*to))
        return sgm_fail(SGM_ERROR_FORMAT,
                        "line %lld: the model gives numbers, so its target is one, too: got '%.40s'",
                        line_of(rows, row), cell);
    return SGM_OK;
}

static sgm_status keep_targets(eval_rows *r, const sgm_examples *rows, int64_t first)
{
    int64_t count = rows->count - first, width = r->classifies ? 1 : r->each;
    SGM_TRY(sgm__reserve(&r->targets, &r->target_capacity, (size_t)((r->count + count) * width),
                         sizeof *r->targets));
    double *to = r->targets + r->count * width;
    for (int64_t row = first; row < rows->count; row++)
        for (int64_t i = 0; i < width; i++)
            SGM_TRY(read_target(r, rows, row, r->target_column + i, to++));
    return SGM_OK;
}

/* Reads, predicts and keeps the rows from `first` on. */
static sgm_status take_rows(eval_rows *r, const sgm_examples *rows, int64_t first)
{
    int64_t count = rows->count - first;
    if (count == 0)
        return SGM_OK;
    sgm_tensor *inputs = read_inputs(r, rows, first);
    sgm_tensor *outputs = inputs != NULL ? predict(r, inputs) : NULL;
    sgm_status status = outputs != NULL ? keep_outputs(r, outputs, rows, first) : sgm__last_failure();
    sgm_tensor_free(outputs);
    sgm_tensor_free(inputs);
    SGM_TRY(status);
    if (r->count == 0)
        SGM_TRY(find_kind(r, rows->columns));
    SGM_TRY(keep_targets(r, rows, first));
    r->count += count;
    return SGM_OK;
}

/* --- the table --- */

static sgm_status read_table(eval_rows *r, sgm_reader *reader)
{
    sgm_examples rows;
    SGM_TRY(sgm_reader_prepare(reader));
    for (bool begins = true;; begins = false) {
        SGM_TRY(sgm_reader_read(reader, CHUNK, &rows));
        if (rows.count == 0)
            break;
        bool has_heading = begins && is_heading(r, &rows);
        if (begins)
            SGM_TRY(find_target(r, &rows, has_heading));
        SGM_TRY(take_rows(r, &rows, has_heading ? 1 : 0));
    }
    return r->count > 0 ? SGM_OK : sgm_fail(SGM_ERROR_FORMAT, "there are no examples");
}

static sgm_status read_file(eval_rows *r)
{
    char separator = '\0';
    sgm_reader *reader = sgm__table_reader(file_source(r->path), &separator, false);
    sgm_status status = reader != NULL ? read_table(r, reader) : sgm__last_failure();
    sgm_reader_free(reader);
    return status == SGM_OK ? SGM_OK : sgm__fail_within("%s", r->blamed);
}

static double mean_squared_error(const eval_rows *r)
{
    double sum = 0;
    int64_t count = r->count * r->each;
    for (int64_t i = 0; i < count; i++)
        sum += (r->outputs[i] - r->targets[i]) * (r->outputs[i] - r->targets[i]);
    return sum / (double)count;
}

static double accuracy(const eval_rows *r)
{
    int64_t right = 0;
    for (int64_t i = 0; i < r->count; i++)
        right += largest_of(r->outputs + i * r->each, r->each) == (int64_t)r->targets[i];
    return (double)right / (double)r->count;
}

/* Rows of numbers as a tensor (rows, width); NULL and an error. */
static sgm_tensor *tensor_of(const double *numbers, int64_t rows, int64_t width)
{
    sgm_shape shape = sgm_shape_of(rows, width);
    sgm_tensor *tensor = sgm_tensor_create(SGM_FLOAT64, &shape);
    if (tensor != NULL)
        memcpy(sgm_tensor_data(tensor), numbers, (size_t)(rows * width) * sizeof *numbers);
    return tensor;
}

static sgm_status compute(const eval_rows *r, const char *wanted, sgm_registry *results)
{
    if (wanted == NULL && r->classifies && r->each > MOST_SHOWN_CLASSES)
        wanted = "none";
    if (wanted == NULL)
        wanted = r->classifies ? "confusion f1 roc_auc" : "regression";
    if (strcmp(wanted, "none") == 0)
        return SGM_OK;
    sgm_tensor *outputs = tensor_of(r->outputs, r->count, r->each);
    sgm_tensor *targets = tensor_of(r->targets, r->count, r->classifies ? 1 : r->each);
    sgm_status status = outputs != NULL && targets != NULL
                            ? sgm_metrics_compute(wanted, outputs, targets, results)
                            : sgm__last_failure();
    if (status != SGM_OK)
        status = sgm__fail_within("metrics '%s'", wanted);
    sgm_tensor_free(outputs);
    sgm_tensor_free(targets);
    return status;
}

/* --- what was measured --- */

/* A loss that nobody knows, of scores that are no probabilities, is left out. */
static void print_first(const eval_rows *r, const sgm_metrics *metrics)
{
    char examples[64];
    printf("%s: ", r->path);
    if (!r->classifies)
        printf("mean squared error %.6g", metrics->loss);
    else if (!isnan(metrics->loss))
        printf("loss %.4f, ", metrics->loss);
    if (r->classifies)
        printf("accuracy %.2f %%", 100 * metrics->accuracy);
    printf(" (%s examples)\n", sgm_count_text(metrics->examples, examples, sizeof examples));
}

static sgm_status draw(const eval_rows *r, sgm_registry *results, const eval_options *options)
{
    sgm_matches found;
    if (options->plot == NULL)
        return SGM_OK;
    if (!sgm_registry_has(results, "confusion"))
        SGM_TRY(compute(r, "confusion", results));
    SGM_TRY(sgm_registry_resolve(results, "confusion", &found));
    sgm_status status =
        plot_confusion(found.items[0].content.as.tensor, (const char *const *)r->names, options->plot);
    sgm_matches_free(&found);
    if (status == SGM_OK && !options->json)
        printf("plot: %s\n", options->plot);
    return status;
}

static sgm_status print(const eval_rows *r, const sgm_metrics *metrics, sgm_registry *results,
                        const eval_options *options)
{
    const config c = {.data.training.class_names = {.items = r->names, .count = (size_t)r->name_count}};
    const eval_names names = {.files = NULL};
    const eval_counted counted = {.data = NULL};
    sgm_matches all;
    SGM_TRY(sgm_registry_resolve(results, "*", &all));
    sgm_status status = SGM_OK;
    if (options->json) {
        eval_print_json(r->path, metrics, &counted, &all, &c, &names);
    } else {
        print_first(r, metrics);
        status = eval_print_results(&all, metrics, &c, &names);
    }
    sgm_matches_free(&all);
    return status;
}

static sgm_status measure(eval_rows *r, const eval_options *options)
{
    sgm_metrics metrics = {.accuracy = NAN, .loss = NAN};
    SGM_TRY(read_file(r));
    if (!r->classifies && options->plot != NULL)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "--plot draws the classes of such a table; for numbers it needs a network that was "
                        "trained on a table by its columns' names: leave it out");
    metrics.examples = r->count;
    if (r->classifies) {
        if (eval_rows_find_classes(r, &metrics.loss) != SGM_OK)
            return sgm__fail_within("%s", r->path);
        metrics.accuracy = accuracy(r);
    } else {
        metrics.loss = mean_squared_error(r);
    }
    sgm_registry *results = sgm_registry_create();
    sgm_status status = results != NULL ? compute(r, options->metrics, results) : sgm__last_failure();
    if (status == SGM_OK)
        status = print(r, &metrics, results, options);
    if (status == SGM_OK)
        status = draw(r, results, options);
    sgm_registry_free(results);
    return status;
}

/* --- the models --- */

/* Lines of JSON have names for their numbers, and such a model takes numbers by their order. */
static bool is_table(const char *file)
{
    const char *ending = table_ending(file);
    return ending != NULL && strncmp(ending, ".jsonl", strlen(".jsonl")) != 0;
}

static void close_rows(eval_rows *r)
{
    for (size_t i = 0; i < r->class_count; i++)
        sgm__free(r->classes[i].text);
    for (int64_t i = 0; i < r->name_count; i++)
        sgm__free(r->names[i]);
    sgm__free(r->classes);
    sgm__free(r->names);
    sgm__free(r->outputs);
    sgm__free(r->targets);
    sgm__free(r->told);
    onnx_model_close(&r->onnx);
}

static sgm_status check_options(const eval_options *options)
{
    if (options->unknown != NULL || options->masks != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s is for networks that were trained on %s; leave it out",
                        options->unknown != NULL ? "--unknown" : "--masks",
                        options->unknown != NULL ? "a table by its columns' names" : "masks");
    return SGM_OK;
}

sgm_status eval_rows_of_onnx(const char *model, const eval_options *options)
{
    eval_rows r = {.path = options->file, .blamed = options->file, .model = model, .target = options->target};
    sgm_status status = check_options(options);
    if (status == SGM_OK && !is_table(options->file))
        status = sgm_fail(SGM_ERROR_ARGUMENT,
                          "%s: a model of ONNX is measured on a table, FILE.csv: its inputs in their order, "
                          "and behind them the target",
                          options->file);
    if (status == SGM_OK)
        status = onnx_model_open(&r.onnx, model, options->int8);
    r.signature = r.onnx.signature;
    if (status == SGM_OK && r.signature.inputs != 1)
        status =
            sgm_fail(SGM_ERROR_UNSUPPORTED,
                     "'%s' has %zu inputs, and a table has the examples of one; 'sigma predict' takes an "
                     "archive with an array for each",
                     model, r.signature.inputs);
    r.elements = sgm_shape_elements(&r.signature.example);
    if (status == SGM_OK)
        status = measure(&r, options);
    close_rows(&r);
    return status;
}

bool eval_rows_takes(const saved *s, const char *file)
{
    char *tokenizer = saved_tokenizer(s);
    bool has_texts = tokenizer != NULL || data_config_has_texts(&s->c.data.training);
    sgm__signature signature;
    sgm__free(tokenizer);
    return !has_texts && s->c.data.pipeline == NULL && s->c.data.training.csv == NULL && is_table(file) &&
           experiment_describe(s->network, &signature) == SGM_OK && signature.inputs == 1 &&
           signature.lengths[0] == '\0' && signature.blank < 0;
}

sgm_status eval_rows_of_network(saved *s, const eval_options *options)
{
    eval_rows r = {.path = options->file,
                   .blamed = options->file,
                   .model = s->checkpoint,
                   .target = options->target,
                   .s = s};
    SGM_TRY(check_options(options));
    SGM_TRY(experiment_describe(s->network, &r.signature));
    SGM_TRY(saved_infer(s, options->int8));
    r.elements = sgm_shape_elements(&r.signature.example);
    r.scales = saved_range(s, &r.minimum, &r.maximum);
    sgm_status status = measure(&r, options);
    close_rows(&r);
    return status;
}
