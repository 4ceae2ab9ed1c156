/* GET /api/model, POST /api/predict, and the page serve.html that says how to use them.
 *
 * A request goes: JSON of the body -> numbers of all examples (read_examples, read_lengths; rows.c for
 * objects by the columns of a table, files.c for files such as pictures, texts.c for texts) -> prediction
 * (infer/signature.c) -> JSON (predictions.c). Both routes run on lanes of the server
 * (monitors/http/lanes.c): `predict` on one thread, `tell` on the other, which only copies a text that was
 * made at the start. So nothing here needs a lock: after the start, sgm__serve is read only. */
#include "monitors/serve/serve.h"
#include "control/control_answer.h"
#include "infer/signature.h"
#include "monitors/http/http.h"
#include "monitors/serve/files.h"
#include "monitors/serve/predictions.h"
#include "monitors/serve/routes.h"
#include "monitors/serve/rows.h"
#include "monitors/serve/texts.h"

#include <math.h>
#include <stdlib.h>

/* Limit of a request's JSON or files in bytes. */
#define LONGEST_BODY ((size_t)8 << 20)

/* All that a request needs; constant after the start. */
struct sgm__serve {
    sgm_trainer *trainer;
    sgm_pipeline *pipeline;      /* of a table by names, or of files, a reference; NULL: there is none */
    const sgm__file_kind *takes; /* what the pipeline is of; NULL: no files */
    char **classes;              /* NULL behind the last; NULL: no names */
    sgm__serve_texts texts;
    bool scales, ignores_unknown;
    double minimum, maximum;
    sgm_network *network;
    sgm__signature signature;
    int64_t elements; /* numbers of one example of the input */
    bool wide;        /* outputs are float64 and are written with all of their digits */
    char *about_text; /* the response of /api/model, from jansson */
    size_t about_length;
    sgm__http *http;
};

/* --- what the network is --- */

/* Numbers in the parameters of one layer, whose names begin with "LAYER."; of all layers with "". */
static int64_t parameters_of(const sgm_recording *recording, const char *layer)
{
    int64_t elements = 0;
    size_t length = strlen(layer);
    for (size_t i = 0; i < recording->parameter_count; i++) {
        const char *name = recording->parameters[i].name;
        if (length == 0 || (strncmp(name, layer, length) == 0 && name[length] == '.'))
            elements += sgm_shape_elements(&recording->parameters[i].type.shape);
    }
    return elements;
}

static json_t *layers_json(const sgm__serve *serve, const sgm_recording *recording)
{
    json_t *layers = json_array();
    for (size_t i = 0; i < sgm_network_layers(serve->network); i++) {
        const char *name = sgm_network_layer_name(serve->network, i);
        const sgm_layer_type *type = sgm_network_layer_type(serve->network, i);
        json_array_append_new(layers,
                              json_pack("{s:o, s:s, s:I}", "name", sgm__answer_text(name), "type", type->name,
                                        "parameters", (json_int_t)parameters_of(recording, name)));
    }
    return layers;
}

static json_t *classes_json(const sgm__serve *serve)
{
    json_t *classes = json_array();
    for (size_t i = 0; serve->classes != NULL && serve->classes[i] != NULL; i++)
        json_array_append_new(classes, sgm__answer_text(serve->classes[i]));
    return classes;
}

/* Makes about_text, the response of /api/model. A part that is NULL for want of memory makes `about` NULL. */
static sgm_status describe(sgm__serve *serve, const sgm__serve_options *options,
                           const sgm_recording *recording)
{
    json_t *about = json_pack(
        "{s:o, s:o, s:o, s:b, s:o, s:s, s:I, s:o, s:i}", "network", sgm__answer_text(options->network),
        "input", sgm__answer_shape(&serve->signature.example, 0), "output",
        sgm__answer_shape(&serve->signature.output, 0), "classifies", serve->signature.classifies, "classes",
        classes_json(serve), "precision", sgm_dtype_name(options->precision), "parameters",
        (json_int_t)parameters_of(recording, ""), "layers", layers_json(serve, recording), "maximum_examples",
        SGM__SERVE_MAXIMUM_EXAMPLES);
    if (about != NULL && serve->signature.lengths[0] != '\0')
        json_object_set_new(about, "lengths", json_true());
    if (about != NULL && serve->signature.blank >= 0)
        json_object_set_new(about, "blank", json_integer(serve->signature.blank));
    if (about != NULL && serve->scales)
        json_object_set_new(about, "input_range", json_pack("[f, f]", serve->minimum, serve->maximum));
    if (about != NULL && serve->pipeline != NULL && serve->takes == NULL)
        json_object_set_new(about, "row", sgm__serve_empty_row(serve->pipeline));
    if (about != NULL && sgm__serve_takes_texts(serve))
        json_object_set_new(about, "texts", json_true());
    if (about == NULL)
        return sgm__fail_memory(1);
    serve->about_text = json_dumps(about, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(about);
    serve->about_length = serve->about_text != NULL ? strlen(serve->about_text) : 0;
    return serve->about_text != NULL ? SGM_OK : sgm__fail_memory(1);
}

/* --- requests --- */

/* An error that says which shape an example must have; `what` names the mistake. */
static sgm_status wrong_shape(const sgm__serve *serve, int64_t example, const char *what)
{
    char shape[128];
    return sgm_fail(
        SGM_ERROR_SHAPE,
        "example %lld of 'input': expected the shape %s, as nested lists or one list of %lld numbers; %s",
        (long long)example, sgm_shape_text(&serve->signature.example, shape, sizeof shape),
        (long long)serve->elements, what);
}

/* Reads the numbers of nested lists in order into *to, which it advances. The lists must have exactly the
 * lengths of `shape` from `axis` on. False: *bad says what is wrong. */
static bool read_nested(const json_t *value, const sgm_shape *shape, int32_t axis, double **to,
                        const char **bad)
{
    if (axis == shape->rank) {
        *(*to)++ = json_number_value(value);
        *bad = json_is_number(value) ? NULL : "there is something that is no number";
        return *bad == NULL;
    }
    if (!json_is_array(value) || (int64_t)json_array_size(value) != shape->dims[axis]) {
        *bad = json_is_array(value)    ? "a list has another length"
               : json_is_number(value) ? "there is a number in place of a list"
                                       : "there is something that is no list of numbers";
        return false;
    }
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!read_nested(json_array_get(value, i), shape, axis + 1, to, bad))
            return false;
    return true;
}

/* Reads one example, as lists nested like its shape or as one flat list. A number that is no finite
 * float32 is refused: it would spread over all results. The range is scaled in double precision. */
static sgm_status read_example(const sgm__serve *serve, const json_t *value, int64_t number, double *to)
{
    sgm_shape flat = sgm_shape_of(serve->elements);
    bool is_flat = json_is_array(value) && (int64_t)json_array_size(value) == serve->elements &&
                   !json_is_array(json_array_get(value, 0));
    const char *bad = NULL;
    double *next = to;
    if (!read_nested(value, is_flat ? &flat : &serve->signature.example, 0, &next, &bad))
        return wrong_shape(serve, number, bad);
    for (int64_t i = 0; i < serve->elements; i++)
        if (!isfinite((float)to[i]))
            return sgm_fail(SGM_ERROR_NUMERIC,
                            "example %lld of 'input', number %lld (from 0): %g is too large for float32",
                            (long long)number, (long long)i, to[i]);
    for (int64_t i = 0; i < serve->elements && serve->scales; i++)
        to[i] = (to[i] - serve->minimum) / (serve->maximum - serve->minimum);
    return SGM_OK;
}

/* The next power of two: the number of examples that a program is compiled for. */
static int64_t rounded(int64_t examples)
{
    int64_t room = 1;
    while (room < examples)
        room *= 2;
    return room;
}

static sgm_status check_count(int64_t count)
{
    return count <= SGM__SERVE_MAXIMUM_EXAMPLES
               ? SGM_OK
               : sgm_fail(SGM_ERROR_ARGUMENT, "'input' has %lld examples; at most %d are predicted at once",
                          (long long)count, SGM__SERVE_MAXIMUM_EXAMPLES);
}

/* Makes the input tensor (rounded(*count), ...). Rows beyond the *count examples of the request repeat
 * the first one, so that they cost nothing but time and cause no infinities. */
static sgm_status read_examples(const sgm__serve *serve, const json_t *body, sgm_tensor **inputs,
                                int64_t *count)
{
    const json_t *list = json_object_get(body, "input");
    char shape[128];
    sgm_shape_text(&serve->signature.example, shape, sizeof shape);
    *count = (int64_t)json_array_size(list);
    if (!json_is_array(list) || *count == 0)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "expected {\"input\": [EXAMPLE, ...]}, where an example has the shape %s%s%s%s",
                        shape,
                        serve->takes != NULL            ? "; or files of one of the types "
                        : sgm__serve_takes_texts(serve) ? ", or is a text"
                        : serve->pipeline != NULL       ? ", or is an object with the table's columns"
                                                        : "",
                        serve->takes != NULL ? serve->takes->media_types : "",
                        serve->takes != NULL ? " or multipart/form-data" : "");
    SGM_TRY(check_count(*count));
    int64_t room = rounded(*count);
    sgm_shape batch = {.rank = serve->signature.example.rank + 1, .dims = {room}};
    memcpy(batch.dims + 1, serve->signature.example.dims,
           (size_t)serve->signature.example.rank * sizeof *batch.dims);
    double *numbers = sgm__calloc((size_t)(room * serve->elements) + 1, sizeof *numbers);
    sgm_status status = numbers != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    for (int64_t i = 0; i < *count && status == SGM_OK; i++)
        status = read_example(serve, json_array_get(list, (size_t)i), i, numbers + i * serve->elements);
    for (int64_t i = *count; i < room && status == SGM_OK; i++)
        memcpy(numbers + i * serve->elements, numbers, (size_t)serve->elements * sizeof *numbers);
    *inputs = status == SGM_OK ? sgm_tensor_create(SGM_FLOAT32, &batch) : NULL;
    if (status == SGM_OK)
        status = *inputs != NULL ? sgm_tensor_write(*inputs, numbers, (size_t)(room * serve->elements))
                                 : sgm__last_failure();
    sgm__free(numbers);
    return status;
}

/* Reads how many steps of each example count, as rounded(count) numbers that the caller frees; NULL: all
 * steps of all examples. Examples beyond the request have the length of the first. */
static sgm_status read_lengths(const sgm__serve *serve, const json_t *body, int64_t count, double **lengths)
{
    const json_t *list = json_object_get(body, "lengths");
    int64_t steps = serve->signature.example.rank > 0 ? serve->signature.example.dims[0] : 0,
            room = rounded(count);
    *lengths = NULL;
    if (list == NULL)
        return SGM_OK;
    if (serve->signature.lengths[0] == '\0')
        return sgm_fail(SGM_ERROR_ARGUMENT, "'lengths': the network's input has none");
    if ((int64_t)json_array_size(list) != count)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "'lengths': expected a list of %lld numbers, one for each example", (long long)count);
    *lengths = sgm__calloc((size_t)room, sizeof **lengths);
    if (*lengths == NULL)
        return SGM_ERROR_MEMORY;
    for (int64_t i = 0; i < room; i++) {
        const json_t *length = json_array_get(list, i < count ? (size_t)i : 0);
        (*lengths)[i] = json_number_value(length);
        if (json_is_integer(length) && (*lengths)[i] >= 0 && (*lengths)[i] <= (double)steps)
            continue;
        sgm__free(*lengths);
        *lengths = NULL;
        return sgm_fail(SGM_ERROR_ARGUMENT, "'lengths', example %lld: expected a whole number from 0 to %lld",
                        (long long)i, (long long)steps);
    }
    return SGM_OK;
}

/* --- predictions --- */

/* Numbers that the pipeline has scaled are brought back into the units of the table; shares of classes stay.
 */
static void restore_units(const sgm__serve *serve, double *numbers, int64_t count)
{
    int64_t elements = sgm_shape_elements(&serve->signature.output);
    for (int64_t i = 0; i < count && serve->pipeline != NULL; i++)
        numbers[i] = sgm_pipeline_restore(serve->pipeline, (size_t)(i % elements), numbers[i]);
}

/* Writes the response for outputs, which it takes; NULL is a failure that is passed on. Outputs are read as
 * doubles whatever their type is. */
static sgm_status answer_outputs(const sgm__serve *serve, sgm_tensor *outputs, const double *lengths,
                                 int64_t examples, sgm__http_answer *answer)
{
    sgm_tensor *labels = NULL;
    if (outputs == NULL)
        return sgm__last_failure();
    int64_t count = sgm_shape_elements(sgm_tensor_shape(outputs));
    double *numbers = sgm__calloc((size_t)count + 1, sizeof *numbers);
    sgm_status status = numbers != NULL ? sgm_tensor_read(outputs, numbers, (size_t)count) : SGM_ERROR_MEMORY;
    if (status == SGM_OK && serve->signature.blank >= 0 &&
        (labels = sgm__signature_labels(&serve->signature, outputs, lengths)) == NULL)
        status = sgm__last_failure();
    if (status == SGM_OK) {
        restore_units(serve, numbers, count);
        status = sgm__serve_write(&(sgm__serve_predictions){&serve->signature, serve->classes, serve->wide,
                                                            numbers, lengths, labels, examples},
                                  answer);
    }
    sgm__free(numbers);
    sgm_tensor_free(labels);
    sgm_tensor_free(outputs);
    return status;
}

/* Examples as lists of numbers. */
static sgm_status predict_numbers(const sgm__serve *serve, const json_t *body, int64_t *examples,
                                  sgm__http_answer *answer)
{
    sgm_tensor *inputs = NULL;
    double *lengths = NULL;
    if (serve->signature.inputs > 1)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "'input': the network has several inputs; expected objects with the table's columns");
    sgm_status status = read_examples(serve, body, &inputs, examples);
    if (status == SGM_OK)
        status = read_lengths(serve, body, *examples, &lengths);
    if (status == SGM_OK)
        status =
            answer_outputs(serve, sgm__signature_predict(&serve->signature, serve->trainer, inputs, lengths),
                           lengths, *examples, answer);
    sgm_tensor_free(inputs);
    sgm__free(lengths);
    return status;
}

/* Examples as objects by the table's columns. */
static sgm_status predict_rows(const sgm__serve *serve, const json_t *body, int64_t *examples,
                               sgm__http_answer *answer)
{
    const json_t *list = json_object_get(body, "input");
    *examples = (int64_t)json_array_size(list);
    SGM_TRY(check_count(*examples));
    sgm_block *block = sgm__serve_rows(serve->pipeline, list, rounded(*examples), serve->ignores_unknown);
    if (block == NULL)
        return sgm__last_failure();
    sgm_status status = answer_outputs(serve, sgm_trainer_predict_block(serve->trainer, block, NULL), NULL,
                                       *examples, answer);
    sgm_block_free(block);
    return status;
}

/* Examples as texts, which no numbers stand between. */
static sgm_status predict_texts(const sgm__serve *serve, const json_t *body, int64_t *examples,
                                sgm__http_answer *answer)
{
    const json_t *list = json_object_get(body, "input");
    *examples = (int64_t)json_array_size(list);
    SGM_TRY(check_count(*examples));
    if (serve->texts.predict == NULL)
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "example 0 of 'input' is a text, and the network is served without a tokenizer; texts are "
            "for encoders that 'sigma import' or 'sigma finetune' read with theirs");
    if (json_object_get(body, "lengths") != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "'lengths': texts have lengths of their own; leave it out");
    return answer_outputs(serve, sgm__serve_predict_texts(&serve->texts, &serve->signature, list), NULL,
                          *examples, answer);
}

/* The inputs of the files, filled up to the next number of examples that a program is compiled for. */
static sgm_block *decode(const sgm__serve *serve, const sgm__serve_files *found)
{
    size_t room = (size_t)rounded((int64_t)found->count);
    sgm_file *files = sgm__calloc(room, sizeof *files);
    for (size_t i = 0; files != NULL && i < room; i++)
        files[i] = found->files[i < found->count ? i : 0];
    sgm_block *block = files != NULL ? sgm_pipeline_files(serve->pipeline, files, room) : NULL;
    sgm__free(files);
    return block;
}

/* How many steps of each example count, a new list, where that is a field; else NULL. */
static sgm_status lengths_of(const sgm__serve *serve, const sgm_block *block, double **lengths)
{
    *lengths = NULL;
    if (sgm_pipeline_characters(serve->pipeline) == NULL)
        return SGM_OK;
    sgm_tensor *field = sgm_block_field(block, "lengths");
    *lengths = field != NULL ? sgm__calloc((size_t)block->count, sizeof **lengths) : NULL;
    return *lengths != NULL ? sgm_tensor_read(field, *lengths, (size_t)block->count) : sgm__last_failure();
}

static sgm_status predict_files(const sgm__serve *serve, const sgm__http_request *request, int64_t *examples,
                                sgm__http_answer *answer)
{
    sgm__serve_files found = {0};
    sgm_block *block = NULL;
    double *lengths = NULL;
    if (serve->takes == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "the network was not trained on folders of files, so it is not known how a file "
                        "becomes its inputs; send numbers as application/json");
    sgm_status status = sgm__serve_find_files(request, serve->takes, &found);
    *examples = (int64_t)found.count;
    if (status == SGM_OK)
        status = check_count(*examples);
    if (status == SGM_OK) {
        block = decode(serve, &found);
        status = block != NULL ? lengths_of(serve, block, &lengths) : sgm__last_failure();
    }
    if (status == SGM_OK)
        status = answer_outputs(serve, sgm_trainer_predict_block(serve->trainer, block, NULL), lengths,
                                *examples, answer);
    sgm__free(lengths);
    sgm_block_free(block);
    sgm__serve_files_free(&found);
    return status;
}

static sgm_status predict_json(const sgm__serve *serve, const sgm__http_request *request, int64_t *examples,
                               sgm__http_answer *answer)
{
    json_t *body = sgm__http_object(request);
    if (body == NULL)
        return sgm__last_failure();
    const json_t *first = json_array_get(json_object_get(body, "input"), 0);
    bool by_name = serve->pipeline != NULL && serve->takes == NULL && json_is_object(first);
    bool is_text = sgm__serve_is_text(first) || (serve->texts.predict != NULL && json_is_object(first));
    return by_name   ? predict_rows(serve, body, examples, answer)
           : is_text ? predict_texts(serve, body, examples, answer)
                     : predict_numbers(serve, body, examples, answer);
}

/* POST /api/predict, on the lane of slow functions. */
static sgm_status predict(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    const sgm__serve *serve = user;
    double begun = sgm__now();
    int64_t examples = 0;
    sgm_status status = sgm__serve_has_files(request) ? predict_files(serve, request, &examples, answer)
                                                      : predict_json(serve, request, &examples, answer);
    if (status == SGM_OK)
        sgm_log_message(SGM_LOG_DEBUG, "serve", "predicted %lld example%s in %.3f ms", (long long)examples,
                        examples == 1 ? "" : "s", 1000 * (sgm__now() - begun));
    else
        sgm_log_message(SGM_LOG_DEBUG, "serve", "refused: %s", sgm_last_error());
    return status;
}

/* GET /api/model, on the lane of quick functions. */
static sgm_status tell(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    (void)request;
    const sgm__serve *serve = user;
    answer->body = sgm__strdup(serve->about_text);
    answer->length = serve->about_length;
    sgm_log_message(SGM_LOG_DEBUG, "serve", "told what the network is");
    return answer->body != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

const sgm__http_route sgm__serve_routes[] = {
    {"GET", "/api/model", .act = tell, .quick = true},
    {"POST", "/api/predict", .act = predict, .longest_body = LONGEST_BODY,
     .type = "application/json " SGM__SERVE_FILE_TYPES},
};
const size_t sgm__serve_route_count = sizeof sgm__serve_routes / sizeof *sgm__serve_routes;

/* --- beginning and end --- */

static void release(sgm__serve *serve)
{
    for (size_t i = 0; serve->classes != NULL && serve->classes[i] != NULL; i++)
        sgm__free(serve->classes[i]);
    sgm__free(serve->classes);
    sgm_pipeline_free(serve->pipeline);
    free(serve->about_text); /* allocated by jansson with malloc */
    sgm_network_free(serve->network);
    sgm__free(serve);
}

/* On failure `release` frees what was copied so far. */
static sgm_status copy_classes(sgm__serve *serve, const char *const *classes)
{
    /* The first label of a transcript is the blank, which says nothing. */
    const char *const *characters = serve->pipeline != NULL ? sgm_pipeline_characters(serve->pipeline) : NULL;
    size_t count = 0, first = characters != NULL;
    classes = characters != NULL ? characters : classes;
    while (classes != NULL && classes[count] != NULL)
        count++;
    if (count == 0)
        return SGM_OK;
    serve->classes = sgm__calloc(first + count + 1, sizeof *serve->classes);
    for (size_t i = 0; serve->classes != NULL && i < first + count; i++)
        if ((serve->classes[i] = sgm__strdup(i < first ? "" : classes[i - first])) == NULL)
            return SGM_ERROR_MEMORY;
    return serve->classes != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* Predicts for one example of zeros: compiles the program, and shows that the network can predict. With
 * several inputs the first request does so. */
static sgm_status try_once(const sgm__serve *serve)
{
    if (serve->signature.inputs > 1)
        return SGM_OK;
    sgm_shape batch = {.rank = serve->signature.example.rank + 1, .dims = {1}};
    memcpy(batch.dims + 1, serve->signature.example.dims,
           (size_t)serve->signature.example.rank * sizeof *batch.dims);
    sgm_tensor *zeros = sgm_tensor_create(SGM_FLOAT32, &batch);
    sgm_tensor *prediction =
        zeros != NULL ? sgm__signature_predict(&serve->signature, serve->trainer, zeros, NULL) : NULL;
    sgm_status status = prediction != NULL ? SGM_OK : sgm__last_failure();
    sgm_tensor_free(prediction);
    sgm_tensor_free(zeros);
    return status;
}

/* Records the network for one example, with its costs, since these say whether it classifies. What the
 * predictions need is taken from the recording; the graph is dropped. */
static sgm_status look_at_network(sgm__serve *serve, const sgm__serve_options *options)
{
    sgm_recording_options recording_options = {.struct_size = sizeof recording_options,
                                               .batch = 1,
                                               .dtype = SGM_FLOAT32,
                                               .costs = true,
                                               .prefix = ""};
    sgm_recording recording;
    serve->network = sgm_network_parse(options->network);
    sgm_graph *graph = serve->network != NULL ? sgm_graph_create() : NULL;
    sgm_status status = graph != NULL
                            ? sgm_network_record(serve->network, graph, &recording_options, &recording)
                            : sgm__last_failure();
    if (status == SGM_OK)
        status = sgm__signature_find(serve->network, graph, &recording, &serve->signature);
    if (status == SGM_OK && serve->pipeline == NULL)
        status = sgm__signature_check_one(&serve->signature);
    serve->elements = sgm_shape_elements(&serve->signature.example);
    serve->wide = options->precision == SGM_FLOAT64;
    if (status == SGM_OK)
        status = describe(serve, options, &recording);
    sgm_graph_free(graph);
    return status;
}

static sgm_status begin(sgm__serve *serve, const sgm__serve_options *options)
{
    SGM_TRY(copy_classes(serve, options->classes));
    SGM_TRY(look_at_network(serve, options));
    SGM_TRY(try_once(serve));
    const sgm__http_options serving = {.port = options->port,
                                       .token = options->token,
                                       .page = "serve.html",
                                       .routes = sgm__serve_routes,
                                       .route_count = sgm__serve_route_count,
                                       .user = serve,
                                       .hurry = options->hurry};
    serve->http = sgm__http_start(&serving);
    return serve->http != NULL ? SGM_OK : sgm__last_failure();
}

/* `release` is enough after a failure: the server is the last thing that is started. */
sgm__serve *sgm__serve_start(const sgm__serve_options *options)
{
    sgm__serve *serve = sgm__calloc(1, sizeof *serve);
    if (serve == NULL)
        return NULL;
    sgm_pipeline *pipeline = sgm_trainer_get_pipeline(options->trainer);
    serve->trainer = options->trainer;
    serve->pipeline = pipeline != NULL ? sgm_pipeline_retain(pipeline) : NULL;
    if (pipeline != NULL && strcmp(sgm_pipeline_kind(pipeline), "table") != 0)
        serve->takes = sgm__file_kind_find(sgm_pipeline_kind(pipeline));
    serve->texts = options->texts;
    serve->scales = options->scales;
    serve->ignores_unknown = options->ignores_unknown;
    serve->minimum = options->minimum;
    serve->maximum = options->maximum;
    if (begin(serve, options) == SGM_OK)
        return serve;
    release(serve);
    return NULL;
}

const char *sgm__serve_url(const sgm__serve *serve)
{
    return sgm__http_url(serve->http);
}

int sgm__serve_port(const sgm__serve *serve)
{
    return sgm__http_port(serve->http);
}

int64_t sgm__serve_elements(const sgm__serve *serve)
{
    return serve->elements;
}

bool sgm__serve_takes_texts(const sgm__serve *serve)
{
    return serve->texts.predict != NULL && serve->signature.output.rank <= 1;
}

/* If a prediction does not return in time, its thread still uses `serve`, which then stays allocated. */
bool sgm__serve_stop(sgm__serve *serve)
{
    if (serve == NULL)
        return true;
    bool ended = sgm__http_stop(serve->http);
    if (ended)
        release(serve);
    return ended;
}
