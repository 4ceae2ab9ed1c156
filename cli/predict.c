/* `sigma predict`: predictions of a checkpoint, one line for each example.
 *
 * Examples come from a dataset (--data), from a file of arrays or a table, or from the standard input.
 * They are read in chunks of CHUNK examples; each chunk is brought to the shape of the network's input, run
 * through the network (src/infer/signature.c), and its predictions are printed at once, so that memory does
 * not grow with the file. How a prediction is printed follows from the signature: the class and its
 * probability, the class of each step, labels (cost ctc), or the numbers.
 *
 * Numbers of a file go the way of the run's training data: texts of table columns become numbers, and
 * input_range is scaled to 0 to 1. Datasets have done that themselves. */
#include "cli.h"
#include "data/table/pipeline.h"
#include "tensor/tensor_internal.h"

#include <math.h>
#include <stdio.h>

/* Examples that are read and predicted at once. */
#define CHUNK 1000
/* Standard input of at most so many bytes is read whole before the table is parsed. */
#define MAX_STANDARD_INPUT ((size_t)1 << 30)

static const char usage_text[] =
    "Usage: sigma predict CHECKPOINT|FOLDER (--data NAME [--count N] | FILE.npy | FILE.csv | -)\n"
    "                     [--lengths FILE] [--separator C] [--ignore-unknown] [--json]\n\n"
    "Predicts with a trained network. Prints a line for each example: the class (from 0) and its probability "
    "where\n"
    "the network tells classes apart (of sequences the class of each step), the labels that\n"
    "the steps say where it has the cost ctc (the likeliest of each step, without repetitions and blanks),\n"
    "the numbers of its output elsewhere. Numbers of a file are scaled by input_range where the training\n"
    "data of the run were; other scaling must have been done.\n"
    "A network that was trained on a table by its columns' names (target) takes tables with these columns, "
    "in\n"
    "any order; classes have their names, and numbers the units of the table.\n\n"
    "  --data NAME    the inputs of a dataset: a ready-made one, or training, validation, test of the run\n"
    "  FILE.npy       an array (examples, ...); also the only one of a FILE.npz, or FILE.npz:NAME\n"
    "  FILE.csv, -    one example a line, the elements of an input in order; a first line that is no\n"
    "                 numbers is skipped; also packed, FILE.csv.gz; - is the standard input\n"
    "  --count N      so many examples at most\n"
    "  --lengths FILE of a network whose input has lengths: how many steps of each example of the file "
    "count,\n"
    "                 one a line or a .npy; all if not given. --data takes the field of the data\n"
    "  --separator C  of a table; a comma if not given, of a table by names what its first line has most\n"
    "  --ignore-unknown  of a table by names: categories that were in no training row are treated as "
    "missing\n"
    "  --json         one object a line, with all outputs\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.\n";

/* A call of the command: the network, what was wanted, and how far it is. */
typedef struct prediction {
    saved s;
    sgm__signature signature;
    bool ignores_unknown; /* of a table by names: categories that the pipeline does not know are missing */
    bool json, wide;      /* wide: outputs are float64, and printed with as many digits */
    /* numbers of one example; examples wanted (-1: all); examples printed */
    int64_t elements, limit, done;
    double *lengths; /* of all examples of a file (--lengths), owned; NULL: all steps count */
    int64_t length_count;
    int64_t classes;          /* last dimension of the network's output */
    const data_config *table; /* the table that the run learnt from; NULL: it was none */
    sgm_pipeline *pipeline;   /* of a table by names, the trainer's; NULL: there is none */
    bool scales;              /* inputs of files are brought from minimum..maximum to 0..1 */
    double minimum, maximum;
} prediction;

/* The first largest. A NaN in front of the others stays; softmax gives NaN for all or for none. */
static int64_t largest_of(const double *outputs, int64_t count)
{
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        if (outputs[i] > outputs[best])
            best = i;
    return best;
}

/* What a class is called, if a pipeline knows that; else its number. */
static void print_class_name(const prediction *p, int64_t class)
{
    const char *const *names = p->pipeline != NULL ? sgm_pipeline_classes(p->pipeline) : NULL;
    int64_t known = 0;
    while (names != NULL && known <= class && names[known] != NULL)
        known++;
    if (names == NULL || known <= class)
        printf("%lld", (long long)class);
    else if (p->json)
        print_json_text(names[class]);
    else
        print_name(names[class]);
}

/* The class and its probability. A single output is the probability of class 1 (a sigmoid). The steps of a
 * NaN prediction have no class: "?" or null. */
static void print_class(const prediction *p, const double *outputs, int64_t count)
{
    int64_t best = largest_of(outputs, count);
    double probability = outputs[best];
    if (count == 1) { /* of class 1 */
        best = outputs[0] > 0.5;
        probability = best ? outputs[0] : 1 - outputs[0];
    }
    if (isnan(probability)) { /* so are all of softmax's */
        fputs(p->json ? ", \"class\": null, \"probability\": null" : "? nan\n", stdout);
    } else {
        fputs(p->json ? ", \"class\": " : "", stdout);
        print_class_name(p, best);
        fputs(p->json ? ", \"probability\": " : " ", stdout);
        if (p->json)
            print_json_number(probability);
        else
            printf("%.4f\n", probability);
    }
}

/* The prediction for one example: `count` numbers, the number of steps that count, and for the cost ctc
 * the labels, which end at -1; else NULL. */
typedef struct output_row {
    const double *outputs;
    int64_t count, steps;
    const int64_t *labels;
} output_row;

/* What separates entry i from the one before. */
static const char *between(const prediction *p, int64_t i)
{
    return i == 0 ? "" : p->json ? ", " : " ";
}

/* The class of each step of a sequence, up to its length. */
static void print_steps(const prediction *p, const output_row *a)
{
    fputs(p->json ? ", \"classes\": [" : "", stdout);
    for (int64_t i = 0; i < a->steps; i++)
        printf("%s%lld", between(p, i), (long long)largest_of(a->outputs + i * p->classes, p->classes));
    fputs(p->json ? "]" : "\n", stdout);
}

/* At most as many labels as the output has steps. */
static void print_labels(const prediction *p, const output_row *a)
{
    fputs(p->json ? ", \"labels\": [" : "", stdout);
    for (int64_t i = 0; i < a->count / p->classes && a->labels[i] >= 0; i++)
        printf("%s%lld", between(p, i), (long long)a->labels[i]);
    fputs(p->json ? "]" : "\n", stdout);
}

/* The form that suits a network which tells classes apart. */
static void print_row(const prediction *p, const output_row *a)
{
    if (a->labels != NULL)
        print_labels(p, a);
    else if (p->classes < a->count && p->classes > 1)
        print_steps(p, a);
    else
        print_class(p, a->outputs, a->count);
}

/* Numbers that a pipeline has scaled are turned back into the units of the table; shares of classes stay. */
static double in_units(const prediction *p, int64_t output, double value)
{
    return p->pipeline != NULL ? sgm_pipeline_restore(p->pipeline, (size_t)output, value) : value;
}

/* One line. Printed NaN has no sign: the sign of a NaN means nothing and differs between processors. */
static void print_example(const prediction *p, const output_row *a)
{
    bool tells = p->signature.classifies || a->labels != NULL;
    if (p->json) {
        printf("{\"example\": %lld", (long long)p->done);
        if (tells)
            print_row(p, a);
        printf(", \"outputs\": [");
        for (int64_t i = 0; i < a->count; i++) {
            fputs(i > 0 ? ", " : "", stdout);
            print_json_element(in_units(p, i, a->outputs[i]), p->wide);
        }
        printf("]}\n");
    } else if (tells) {
        print_row(p, a);
    } else {
        for (int64_t i = 0; i < a->count; i++)
            printf("%s%.7g", i > 0 ? " " : "", isnan(a->outputs[i]) ? NAN : in_units(p, i, a->outputs[i]));
        putchar('\n');
    }
}

/* Whether --count examples have been printed. */
static bool is_done(const prediction *p)
{
    return p->limit >= 0 && p->done >= p->limit;
}

/* Prints predictions (examples, ...) up to the limit, and frees them. `outputs` NULL: predicting failed, and
 * the error is passed on. `lengths` has one entry for each example, or is NULL. */
static sgm_status print_outputs(prediction *p, sgm_tensor *outputs, const double *lengths)
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
    for (int64_t i = 0; i < shape->dims[0] && status == SGM_OK && !is_done(p); i++, p->done++) {
        output_row a = {.outputs = numbers + i * each, .count = each};
        if (p->classes > 0)
            a.steps = sgm__signature_steps(lengths, i, each / p->classes);
        if (labels != NULL)
            a.labels = (const int64_t *)sgm_tensor_const_data(labels) + i * (each / p->classes);
        print_example(p, &a);
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
static sgm_status predict_chunk(prediction *p, sgm_tensor *values, const double *lengths)
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
    sgm_status status =
        wanted != NULL
            ? print_outputs(p, sgm__signature_predict(&p->signature, p->s.trainer, wanted, lengths), lengths)
            : sgm__last_failure();
    sgm_tensor_free(wanted);
    sgm_tensor_free(shaped);
    return status;
}

/* A network with several inputs takes the whole block, whose fields have their names. */
static sgm_status ask_block(prediction *p, const sgm_block *block, const double *lengths)
{
    if (p->signature.inputs > 1)
        return print_outputs(p, sgm_trainer_predict_block(p->s.trainer, block, NULL), lengths);
    sgm_tensor *inputs = sgm_block_field(block, p->signature.input);
    return inputs != NULL ? predict_chunk(p, inputs, lengths) : sgm__last_failure();
}

/* Reads the lengths of a block's examples, where the network's input has some. */
static sgm_status predict_block(prediction *p, const sgm_block *block)
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
        dataset != NULL ? sgm_minibatches(dataset, .size = CHUNK, .no_shuffle = true) : NULL;
    sgm_status status = batches != NULL ? SGM_OK : sgm__last_failure();
    while (status == SGM_OK && !is_done(p)) {
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

/* The standard input as a source with its own copy of the bytes; NULL on failure. */
static sgm_source *standard_input(void)
{
    sgm__text text = {0};
    char part[65536];
    size_t got;
    while (text.length <= MAX_STANDARD_INPUT && (got = fread(part, 1, sizeof part, stdin)) > 0)
        sgm__text_append_bytes(&text, part, got);
    sgm_source *source = NULL;
    if (text.length > MAX_STANDARD_INPUT)
        sgm_fail(SGM_ERROR_FORMAT, "more than %zu bytes on the standard input", MAX_STANDARD_INPUT);
    else if (text.failed)
        sgm__fail_memory(text.length);
    else
        source = sgm_memory_source("standard input", text.data != NULL ? text.data : "", text.length);
    sgm__text_free(&text);
    return source;
}

/* A table whose columns the pipeline finds by their names, among which those of targets may be missing. */
static sgm_status predict_named(prediction *p, const char *path, char separator)
{
    const sgm_pipeline_extractor_options options = {.struct_size = sizeof options,
                                                    .inputs_only = true,
                                                    .ignore_unknown = p->ignores_unknown,
                                                    .separator = separator};
    sgm_source *source = strcmp(path, "-") == 0 ? standard_input() : file_source(path);
    sgm_extractor *extractor = sgm__pipeline_extractor_of(p->pipeline, source, &options);
    sgm_status status = extractor != NULL ? SGM_OK : sgm__last_failure();
    while (status == SGM_OK && !is_done(p)) {
        sgm_block *block = NULL;
        status = sgm_extractor_extract(extractor, CHUNK, &block);
        if (status != SGM_OK || block == NULL)
            break;
        status = predict_block(p, block);
        sgm_block_free(block);
    }
    sgm_extractor_free(extractor);
    if (status == SGM_OK && p->done == 0)
        return sgm_fail(SGM_ERROR_FORMAT, "%s: there are no examples", path);
    return status;
}

/* What the run's configuration says about its own training data, for files that are to be read the same
 * way. */
static void find_table(prediction *p)
{
    const data_config *training = &p->s.c.data.training;
    p->table = p->s.has_config && training->csv != NULL ? training : NULL;
    p->scales = saved_range(&p->s, &p->minimum, &p->maximum);
}

/* Scales numbers of a file, (x - minimum) / (maximum - minimum), in float64, then predicts. */
static sgm_status predict_values(prediction *p, sgm_tensor *values)
{
    if (!p->scales)
        return predict_chunk(p, values, NULL);
    sgm_tensor *scaled = sgm_tensor_cast(values, SGM_FLOAT64);
    if (scaled == NULL)
        return sgm_last_status();
    double *numbers = sgm_tensor_data(scaled);
    int64_t count = sgm_shape_elements(sgm_tensor_shape(scaled));
    for (int64_t i = 0; i < count; i++)
        numbers[i] = (numbers[i] - p->minimum) / (p->maximum - p->minimum);
    sgm_status status = predict_chunk(p, scaled, NULL);
    sgm_tensor_free(scaled);
    return status;
}

/* The line of the file that a row stands in, for messages; readers that skip lines keep a list. */
static long long line_of(const sgm_examples *rows, int64_t row)
{
    return (long long)(rows->lines != NULL ? rows->lines[row] : rows->first_line + row);
}

/* The error for cell number `cell`, counted row after row. It says what is expected there: one of the
 * column's texts, a number, or a number that fits float32. */
static sgm_status fail_cell(const prediction *p, const sgm_examples *rows, int64_t cell)
{
    int64_t column = cell % rows->columns;
    const char *text = rows->cells[cell], *texts = table_input_texts(p->table, column);
    double number;
    bool large = table_input_number(p->table, column, text, &number) && isfinite(number);
    long long line = line_of(rows, cell / rows->columns);
    return sgm_fail(
        SGM_ERROR_FORMAT, "line %lld, column %lld (from 0): expected %s%s, got '%.40s'%s", line,
        (long long)column,
        texts != NULL ? "one of "
        : large       ? "a number that fits float32"
                      : "a number",
        texts != NULL ? texts : "", text != NULL ? text : "",
        line == 1 && !large ? "; a first line with headings is skipped if none of them is a number" : "");
}

/* Cells of the rows from `first` on as numbers: *values (rows, columns) in float64, which the caller
 * frees. */
static sgm_status read_rows(const prediction *p, const sgm_examples *rows, int64_t first, sgm_tensor **values)
{
    if (rows->columns != p->elements)
        return sgm_fail(
            SGM_ERROR_SHAPE, "line %lld: expected %lld numbers, as the network's input, got %d: %s",
            line_of(rows, first), (long long)p->elements, rows->columns,
            rows->columns > p->elements
                ? "leave other columns out; --data training predicts for the data of the run itself"
                : "--separator says what stands between them");
    sgm_shape shape = sgm_shape_of(rows->count - first, p->elements);
    sgm_tensor *table = sgm_tensor_create(SGM_FLOAT64, &shape);
    if (table == NULL)
        return sgm__last_failure();
    double *out = sgm_tensor_data(table);
    for (int64_t i = first * rows->columns; i < rows->count * rows->columns; i++) {
        const char *cell = rows->cells[i];
        int64_t column = i % rows->columns;
        if (!table_input_number(p->table, column, cell, out) || !isfinite((float)*out++)) {
            sgm_tensor_free(table);
            return fail_cell(p, rows, i);
        }
    }
    *values = table;
    return SGM_OK;
}

/* Whether the first row is a heading: it has a cell for each number of an example, and none of them is a
 * number. */
static bool is_heading(const prediction *p, const sgm_examples *rows)
{
    double number;
    if (rows->columns != p->elements)
        return false;
    for (int32_t i = 0; i < rows->columns; i++)
        if (rows->cells[i] == NULL || table_input_number(p->table, i, rows->cells[i], &number))
            return false;
    return true;
}

/* Rows of a table from `first` on; none is no error here. */
static sgm_status predict_rows(prediction *p, const sgm_examples *rows, int64_t first)
{
    sgm_tensor *values = NULL;
    if (first == rows->count)
        return SGM_OK;
    SGM_TRY(read_rows(p, rows, first, &values));
    sgm_status status = predict_values(p, values);
    sgm_tensor_free(values);
    return status;
}

/* Reads and predicts chunk by chunk. The first chunk may begin with a heading; a file without any example is
 * an error. */
static sgm_status predict_reader(prediction *p, sgm_reader *reader)
{
    sgm_examples examples;
    if (reader == NULL)
        return sgm__last_failure();
    SGM_TRY(sgm_reader_prepare(reader));
    for (bool begin = true; !is_done(p); begin = false) {
        SGM_TRY(sgm_reader_read(reader, CHUNK, &examples));
        sgm_status status = SGM_OK;
        if (examples.count == 0 && p->done > 0)
            break;
        if (examples.count == 0)
            status = sgm_fail(SGM_ERROR_FORMAT,
                              begin ? "there are no examples" : "there are no examples behind the heading");
        else if (examples.values != NULL)
            status = predict_values(p, examples.values);
        else
            status = predict_rows(p, &examples, begin && is_heading(p, &examples) ? 1 : 0);
        if (status != SGM_OK)
            return sgm__fail_within("%s", sgm_reader_name(reader));
    }
    return SGM_OK;
}

/* A reader for standard input, arrays or a table. A NULL source is passed on as a failure. */
static sgm_reader *open_reader(const char *path, char separator, const char *missing)
{
    if (strcmp(path, "-") == 0)
        return sgm_csv_reader(standard_input(), .separator = separator, .missing = missing);
    if (is_numpy(path))
        return numpy_reader(path);
    return sgm_csv_reader(file_source(path), .separator = separator, .missing = missing);
}

/* Appends the lengths in `examples`, which are an array or a table of one column. */
static sgm_status add_lengths(prediction *p, const sgm_examples *examples)
{
    double *longer = sgm__realloc(p->lengths, (size_t)(p->length_count + examples->count) * sizeof *longer);
    if (longer == NULL)
        return SGM_ERROR_MEMORY;
    p->lengths = longer;
    double *to = longer + p->length_count;
    if (examples->values != NULL && sgm_shape_elements(sgm_tensor_shape(examples->values)) != examples->count)
        return sgm_fail(SGM_ERROR_SHAPE, "expected one number for each example");
    if (examples->values != NULL)
        SGM_TRY(sgm_tensor_read(examples->values, to, (size_t)examples->count));
    for (int64_t i = 0; i < examples->count && examples->values == NULL; i++)
        if (examples->columns != 1 || examples->cells[i] == NULL ||
            !sgm__parse_double(examples->cells[i], &to[i]))
            return sgm_fail(SGM_ERROR_FORMAT,
                            "line %lld: expected one number, how many steps of an example count",
                            line_of(examples, i));
    p->length_count += examples->count;
    return SGM_OK;
}

/* Reads all of --lengths before the examples: they are few numbers. */
static sgm_status read_lengths(prediction *p, const char *path)
{
    sgm_examples examples;
    if (p->signature.lengths[0] == '\0')
        return sgm_fail(SGM_ERROR_ARGUMENT, "--lengths: the network's input has no lengths");
    sgm_reader *reader = open_reader(path, ',', NULL);
    sgm_status status = reader != NULL ? sgm_reader_prepare(reader) : sgm__last_failure();
    for (bool more = true; more && status == SGM_OK;) {
        status = sgm_reader_read(reader, CHUNK, &examples);
        more = status == SGM_OK && examples.count > 0;
        if (more)
            status = add_lengths(p, &examples);
    }
    sgm_reader_free(reader);
    return status == SGM_OK ? SGM_OK : sgm__fail_within("--lengths %s", path);
}

/* A file has one input, so networks with several are refused. */
static sgm_status predict_file(prediction *p, const char *path, const char *lengths, char separator)
{
    if (p->signature.inputs != 1)
        return sgm_fail(
            SGM_ERROR_UNSUPPORTED,
            "%s: a file has one input, but the network has %zu; --data NAME takes data with all of them",
            path, p->signature.inputs);
    find_table(p);
    if (lengths != NULL)
        SGM_TRY(read_lengths(p, lengths));
    sgm_reader *reader = open_reader(path, separator, p->table != NULL ? p->table->missing : NULL);
    sgm_status status = predict_reader(p, reader);
    sgm_reader_free(reader);
    return status;
}

/* `file` and `data`: exactly one is not NULL. Returns an exit code. */
static int predict(const char *checkpoint, const char *file, const char *data, prediction *p,
                   const char *lengths, char separator)
{
    sgm_status status = saved_open(&p->s, checkpoint);
    if (status == SGM_OK)
        status = experiment_describe(p->s.network, &p->signature);
    if (status == SGM_OK) {
        p->elements = sgm_shape_elements(&p->signature.example);
        p->pipeline = sgm_trainer_get_pipeline(p->s.trainer);
        if (data != NULL)
            status = predict_dataset(p, data);
        else if (p->pipeline != NULL && !is_numpy(file))
            status = predict_named(p, file, separator);
        else
            status = predict_file(p, file, lengths, separator != '\0' ? separator : ',');
    }
    int code = status == SGM_OK ? CLI_OK : report_error("predict", CLI_FAILED);
    saved_close(&p->s);
    sgm__free(p->lengths);
    return code;
}

/* A checkpoint is the first word; the file is the second one, unless --data names a dataset. */
int predict_run(int argc, char **argv)
{
    const char *data = NULL, *lengths = NULL, *separator = "";
    prediction p = {.limit = -1};
    const argument_rule rules[] = {
        {"--data", ARGUMENT_TEXT, &data},       {"--count", ARGUMENT_COUNT, &p.limit},
        {"--lengths", ARGUMENT_TEXT, &lengths}, {"--separator", ARGUMENT_TEXT, &separator},
        {"--json", ARGUMENT_FLAG, &p.json},     {"--ignore-unknown", ARGUMENT_FLAG, &p.ignores_unknown},
    };
    arguments a = {.rules = rules, .rule_count = sizeof rules / sizeof *rules, .help = usage_text};
    int code;
    if (arguments_read(&a, argc, argv, &code)) {
        if (strlen(separator) > 1)
            code = usage_error("predict", "--separator: expected one character, got '%s'", separator);
        else if (a.word_count != (data != NULL ? 1 : 2))
            code = usage_error("predict", "expected a checkpoint and --data NAME or a file");
        else if (data != NULL && lengths != NULL)
            code = usage_error("predict", "--lengths is for files; --data has a field of them");
        else
            code = predict(a.words[0], data != NULL ? NULL : a.words[1], data, &p, lengths, separator[0]);
    }
    arguments_free(&a);
    return code;
}
