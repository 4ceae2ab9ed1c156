/* GET /api/model, POST /api/predict, and the page serve.html that says how to use them.
 *
 * A request goes: JSON of the body -> numbers of all examples (numbers.c; rows.c for
 * objects by the columns of a table, files.c for files such as pictures, texts.c for texts) -> prediction
 * (infer/signature.c, or the model that stands in a network's place) -> JSON (predictions.c). Both routes run
 * on lanes of the server (monitors/http/lanes.c): `predict` on one thread, `tell` on the other, which only
 * copies a text that was made at the start. So nothing here needs a lock: after the start, sgm__serve is read
 * only. */
#include "monitors/serve/serve.h"
#include "control/control_answer.h"
#include "infer/signature.h"
#include "monitors/http/http.h"
#include "monitors/serve/files.h"
#include "monitors/serve/numbers.h"
#include "monitors/serve/predictions.h"
#include "monitors/serve/routes.h"
#include "monitors/serve/rows.h"
#include "monitors/serve/texts.h"

#include <stdlib.h>

/* Limit of a request's JSON or files in bytes. */
#define LONGEST_BODY ((size_t)8 << 20)

/* --- what the network is --- */

/* Numbers in the parameters of one layer, whose names begin with "LAYER."; of all layers with "". A model
 * (`recording` NULL) has none that are known here. */
static int64_t parameters_of(const sgm_recording *recording, const char *layer)
{
    int64_t elements = 0;
    size_t length = strlen(layer);
    for (size_t i = 0; recording != NULL && i < recording->parameter_count; i++) {
        const char *name = recording->parameters[i].name;
        if (length == 0 || (strncmp(name, layer, length) == 0 && name[length] == '.'))
            elements += sgm_shape_elements(&recording->parameters[i].type.shape);
    }
    return elements;
}

static json_t *layers_json(const sgm__serve *serve, const sgm_recording *recording)
{
    json_t *layers = json_array();
    for (size_t i = 0; serve->network != NULL && i < sgm_network_layers(serve->network); i++) {
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

/* Makes about_text, the response of /api/model. A part that is NULL for want of memory makes `about` NULL.
 * `recording` NULL: of a model. */
static sgm_status describe(sgm__serve *serve, const sgm__serve_options *options,
                           const sgm_recording *recording)
{
    json_t *about =
        json_pack("{s:o, s:o, s:o, s:b, s:o, s:s, s:o, s:i}", "network", sgm__answer_text(options->network),
                  "input", sgm__answer_shape(&serve->signature.example, 0), "output",
                  sgm__answer_shape(&serve->signature.output, 0), "classifies",
                  serve->signature.classifies || serve->tells, "classes", classes_json(serve), "precision",
                  sgm_dtype_name(serve->wide ? SGM_FLOAT64 : options->precision), "layers",
                  layers_json(serve, recording), "maximum_examples", SGM__SERVE_MAXIMUM_EXAMPLES);
    if (about != NULL && recording != NULL)
        json_object_set_new(about, "parameters", json_integer((json_int_t)parameters_of(recording, "")));
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

/* --- predictions --- */

/* What was predicted, before it is written. */
typedef struct predicted {
    sgm_tensor *outputs;    /* owned; NULL: it failed, with an error */
    const sgm_tensor *told; /* the classes that a model tells, or NULL */
    const double *lengths;  /* or NULL */
    int64_t examples;       /* of the request; there may be more outputs */
} predicted;

/* A model may give another shape for other examples than for the one that it was described by, and numbers
 * are read by the described one. NULL passes. */
static sgm_status check_shape(const sgm__serve *serve, const sgm_tensor *outputs, int64_t examples)
{
    char given[128], described[128];
    if (outputs == NULL || serve->model.predict == NULL)
        return SGM_OK;
    const sgm_shape *shape = sgm_tensor_shape(outputs);
    sgm_shape one = sgm_shape_create(shape->rank > 0 ? shape->rank - 1 : 0, shape->dims + 1);
    if (shape->rank > 0 && shape->dims[0] >= examples && sgm_shape_equal(&one, &serve->signature.output))
        return SGM_OK;
    return sgm_fail(SGM_ERROR_SHAPE,
                    "the model gives %s for %lld examples, not the shape %s for each, which it gave for one: "
                    "export it so that an example's prediction does not depend on how many there are",
                    sgm_shape_text(shape, given, sizeof given), (long long)examples,
                    sgm_shape_text(&serve->signature.output, described, sizeof described));
}

/* The predictions of a network with one input, or of the model. */
static sgm_tensor *ask(const sgm__serve *serve, sgm_tensor *inputs, const double *lengths,
                       const sgm_tensor **told)
{
    *told = NULL;
    return serve->model.predict != NULL
               ? serve->model.predict(serve->model.user, inputs, told)
               : sgm__signature_predict(&serve->signature, serve->trainer, inputs, lengths);
}

/* Numbers that the pipeline has scaled are brought back into the units of the table; shares of classes stay.
 */
static void restore_units(const sgm__serve *serve, double *numbers, int64_t count)
{
    int64_t elements = sgm_shape_elements(&serve->signature.output);
    for (int64_t i = 0; i < count && serve->pipeline != NULL; i++)
        numbers[i] = sgm_pipeline_restore(serve->pipeline, (size_t)(i % elements), numbers[i]);
}

/* Writes the response for outputs, which it takes. They are read as doubles whatever their type is. */
static sgm_status answer_outputs(const sgm__serve *serve, predicted p, sgm__http_answer *answer)
{
    sgm_tensor *outputs = p.outputs, *labels = NULL;
    if (outputs == NULL)
        return sgm__last_failure();
    int64_t count = sgm_shape_elements(sgm_tensor_shape(outputs));
    double *numbers = sgm__calloc((size_t)count + 1, sizeof *numbers);
    sgm_status status = numbers != NULL ? sgm_tensor_read(outputs, numbers, (size_t)count) : SGM_ERROR_MEMORY;
    if (status == SGM_OK && serve->signature.blank >= 0 &&
        (labels = sgm__signature_labels(&serve->signature, outputs, p.lengths)) == NULL)
        status = sgm__last_failure();
    if (status == SGM_OK) {
        restore_units(serve, numbers, count);
        status = sgm__serve_write(
            &(sgm__serve_predictions){.signature = &serve->signature,
                                      .classes = serve->classes,
                                      .wide = serve->wide,
                                      .numbers = numbers,
                                      .lengths = p.lengths,
                                      .labels = labels,
                                      .told = p.told != NULL ? sgm_tensor_const_data(p.told) : NULL,
                                      .examples = p.examples},
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
    sgm_status status = sgm__serve_read_examples(serve, body, &inputs, examples);
    if (status == SGM_OK)
        status = sgm__serve_read_lengths(serve, body, *examples, &lengths);
    if (status == SGM_OK) {
        predicted p = {.lengths = lengths, .examples = *examples};
        p.outputs = ask(serve, inputs, lengths, &p.told);
        status = check_shape(serve, p.outputs, *examples);
        if (status == SGM_OK)
            status = answer_outputs(serve, p, answer);
        else
            sgm_tensor_free(p.outputs);
    }
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
    SGM_TRY(sgm__serve_check_count(*examples));
    sgm_block *block =
        sgm__serve_rows(serve->pipeline, list, sgm__serve_rounded(*examples), serve->ignores_unknown);
    if (block == NULL)
        return sgm__last_failure();
    predicted p = {.outputs = sgm_trainer_predict_block(serve->trainer, block, NULL), .examples = *examples};
    sgm_status status = answer_outputs(serve, p, answer);
    sgm_block_free(block);
    return status;
}

/* Examples as texts, which no numbers stand between. */
static sgm_status predict_texts(const sgm__serve *serve, const json_t *body, int64_t *examples,
                                sgm__http_answer *answer)
{
    const json_t *list = json_object_get(body, "input");
    *examples = (int64_t)json_array_size(list);
    SGM_TRY(sgm__serve_check_count(*examples));
    if (serve->texts.predict == NULL)
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "example 0 of 'input' is a text, and the network is served without a tokenizer; texts are "
            "for encoders that 'sigma import' or 'sigma finetune' read with theirs");
    if (json_object_get(body, "lengths") != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "'lengths': texts have lengths of their own; leave it out");
    predicted p = {.outputs = sgm__serve_predict_texts(&serve->texts, &serve->signature, list),
                   .examples = *examples};
    return answer_outputs(serve, p, answer);
}

/* The inputs of the files, filled up to the next number of examples that a program is compiled for. */
static sgm_block *decode(const sgm__serve *serve, const sgm__serve_files *found)
{
    size_t room = (size_t)sgm__serve_rounded((int64_t)found->count);
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
        status = sgm__serve_check_count(*examples);
    if (status == SGM_OK) {
        block = decode(serve, &found);
        status = block != NULL ? lengths_of(serve, block, &lengths) : sgm__last_failure();
    }
    if (status == SGM_OK) {
        predicted p = {.outputs = sgm_trainer_predict_block(serve->trainer, block, NULL),
                       .lengths = lengths,
                       .examples = *examples};
        status = answer_outputs(serve, p, answer);
    }
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
 * several inputs the first request does so. What a model gives is known only by this. */
static sgm_status try_once(sgm__serve *serve)
{
    const sgm_tensor *told;
    if (serve->signature.inputs > 1)
        return SGM_OK;
    sgm_shape batch = {.rank = serve->signature.example.rank + 1, .dims = {1}};
    memcpy(batch.dims + 1, serve->signature.example.dims,
           (size_t)serve->signature.example.rank * sizeof *batch.dims);
    sgm_tensor *zeros = sgm_tensor_create(sgm__serve_dtype(serve), &batch);
    sgm_tensor *prediction = zeros != NULL ? ask(serve, zeros, NULL, &told) : NULL;
    sgm_status status = prediction != NULL ? SGM_OK : sgm__last_failure();
    if (status == SGM_OK && serve->model.predict != NULL) {
        const sgm_shape *shape = sgm_tensor_shape(prediction);
        serve->signature.output = sgm_shape_create(shape->rank - 1, shape->dims + 1);
        serve->wide = sgm_tensor_dtype(prediction) == SGM_FLOAT64;
        serve->tells = told != NULL;
    }
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

/* A model is described by what it predicts. */
static sgm_status look_at_model(sgm__serve *serve, const sgm__serve_options *options)
{
    serve->signature = (sgm__signature){.inputs = 1, .example = options->model.example, .blank = -1};
    serve->elements = sgm_shape_elements(&serve->signature.example);
    SGM_TRY(try_once(serve));
    return describe(serve, options, NULL);
}

static sgm_status begin(sgm__serve *serve, const sgm__serve_options *options)
{
    SGM_TRY(copy_classes(serve, options->classes));
    if (options->model.predict != NULL) {
        SGM_TRY(look_at_model(serve, options));
    } else {
        SGM_TRY(look_at_network(serve, options));
        SGM_TRY(try_once(serve));
    }
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
    sgm_pipeline *pipeline = options->trainer != NULL ? sgm_trainer_get_pipeline(options->trainer) : NULL;
    serve->trainer = options->trainer;
    serve->model = options->model;
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
