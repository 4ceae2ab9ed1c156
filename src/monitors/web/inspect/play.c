/* The part `play`: predictions for inputs that a person draws, inputs that the network takes for a class,
 * text as the network would continue it.
 *
 * Every request makes a copy of the network with the current parameters (network_copy.h) and computes with
 * that, so a training step waits no longer than copying takes. The copy is dropped at the end of the
 * request. Routes: GET /api/play says what the network wants, GET /api/samples what the hook `sample` has
 * said, POST /api/predict, /api/maximise and /api/sample compute. All run on the lane for slow functions, one
 * after the other. */
#include "control/control_answer.h"
#include "hooks_ready/target_maximiser.h"
#include "monitors/web/inspect/network_copy.h"
#include "trainer/trainer_lock.h"

#include <math.h>

/* Limits: bytes of JSON with inputs, examples in it, steps of a search for an input, bytes of a text,
 * depth of nested lists. */
#define LONGEST_INPUTS ((size_t)4 << 20)
#define MAXIMUM_EXAMPLES 1000
#define MAXIMUM_STEPS 5000
#define MAXIMUM_CHARACTERS 2000
#define DEEPEST_LIST 16

/* --- a copy of a network --- */

/* A copy of a network with one input, compiled for `examples` examples. */
typedef struct copy {
    sgm__web_copy network;
    int64_t examples;
    sgm_program *program;
    const char *input, *output; /* names, of the recording */
    sgm_shape shape;            /* of one example of the input */
    int64_t elements;           /* numbers of one example of the input */
    bool classifies;
} copy;

/* Fails unless the network has one input and an output. The batch axis is taken off the shape. */
static sgm_status find_ends(copy *own)
{
    const sgm_recording *recording = &own->network.copied.recording;
    if (recording->input_count != 1 || recording->output_count == 0)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "one can play with a network of one input and an output; this one has %zu and %zu",
                        recording->input_count, recording->output_count);
    own->input = recording->inputs[0].name;
    own->output = recording->outputs[0].name;
    own->classifies = recording->classifies;
    sgm_shape batch = sgm_value_type(own->network.copied.graph, recording->inputs[0].value).shape;
    own->shape = sgm_shape_create(batch.rank - 1, batch.dims + 1);
    own->elements = sgm_shape_elements(&own->shape);
    return SGM_OK;
}

/* The caller frees own->network.copied, also after a failure. */
static sgm_status copy_network(copy *own, sgm__web_trainer *watched, int64_t examples)
{
    *own = (copy){.examples = examples};
    SGM_TRY(sgm__web_copy_network(&own->network, watched, examples, SGM__WEB_PREPARED));
    SGM_TRY(find_ends(own));
    sgm_graph_add_output(own->network.copied.graph, own->output,
                         own->network.copied.recording.outputs[0].value);
    own->program = sgm__inference_copy_prepare(&own->network.copied);
    return own->program != NULL ? SGM_OK : sgm__last_failure();
}

/* Predicts for `inputs`, examples * elements numbers, whatever the input's type is. Returns a new tensor
 * (examples, ...); NULL: failed. */
static sgm_tensor *predict_for(const copy *own, const double *inputs)
{
    sgm_shape batch = {.rank = own->shape.rank + 1, .dims = {own->examples}};
    memcpy(batch.dims + 1, own->shape.dims, (size_t)own->shape.rank * sizeof *batch.dims);
    sgm_type type = sgm_value_type(own->network.copied.graph, own->network.copied.recording.inputs[0].value);
    sgm_tensor *fed = sgm_tensor_create(type.dtype, &batch);
    sgm_type given = sgm_program_output_type(own->program, own->output);
    sgm_tensor *made = fed != NULL ? sgm_tensor_create(given.dtype, &given.shape) : NULL;
    sgm_status status = made != NULL ? SGM_OK : sgm__last_failure();
    if (status == SGM_OK)
        status = sgm_tensor_write(fed, inputs, (size_t)(own->examples * own->elements));
    if (status == SGM_OK)
        status = sgm_session_feed(own->network.copied.session, own->program, own->input, fed);
    if (status == SGM_OK)
        status = sgm_session_run(own->network.copied.session, own->program);
    if (status == SGM_OK)
        status = sgm_session_read(own->network.copied.session, own->program, own->output, made);
    sgm_tensor_free(fed);
    if (status == SGM_OK)
        return made;
    sgm_tensor_free(made);
    return NULL;
}

/* --- requests --- */

/* A number of the body from `minimum` to `maximum`; `default_value` if it is not there. */
static sgm_status read_number(const json_t *body, const char *name, double default_value, double minimum,
                              double maximum, double *number)
{
    const json_t *value = json_object_get(body, name);
    *number = value != NULL ? json_number_value(value) : default_value;
    if (value != NULL && (!json_is_number(value) || !(*number >= minimum && *number <= maximum)))
        return sgm_fail(SGM_ERROR_ARGUMENT, "'%s' must be a number from %g to %g", name, minimum, maximum);
    return SGM_OK;
}

static json_t *numbers_json(const double *numbers, int64_t count)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++)
        json_array_append_new(list, sgm__answer_number(numbers[i]));
    return list;
}

/* --- what can be played with --- */

/* Names of the classes in the training data, if there are as many as `classes`; otherwise null. Takes the
 * trainer's lock. */
static json_t *class_names(sgm__web_trainer *watched, int64_t classes)
{
    sgm_iterator *iterator = NULL;
    json_t *list = json_array();
    if (sgm__trainer_enter(watched->trainer) == SGM_OK) {
        const char *const *names = NULL;
        if (sgm__trainer_find_data(watched->trainer, "training", &iterator) == SGM_OK && iterator != NULL)
            names = sgm_dataset_get_class_names(sgm_iterator_dataset(iterator));
        for (size_t i = 0; names != NULL && names[i] != NULL; i++)
            json_array_append_new(list, json_string(names[i]));
        sgm__trainer_unlock(watched->trainer);
    }
    if ((int64_t)json_array_size(list) == classes)
        return list;
    json_decref(list);
    return json_null();
}

/* Whether a hook says how the trainer's network goes on with texts, which it leaves as shared.samples. */
static bool samples(sgm_trainer *trainer)
{
    sgm_attached_hook *hooks;
    size_t count;
    bool found = false;
    if (sgm_trainer_hooks(trainer, &hooks, &count) != SGM_OK)
        return false;
    for (size_t i = 0; i < count && !found; i++)
        found = sgm__begins_with(hooks[i].name, "sample#");
    sgm_attached_hooks_free(hooks, count);
    return found;
}

/* GET /api/play: shapes of input and output, without the batch, names of classes, whether texts are sampled.
 */
static sgm_status get_play(void *watched, const sgm__http_request *request, sgm__http_answer *answer)
{
    copy own;
    (void)request;
    sgm_status status = copy_network(&own, watched, 1);
    if (status == SGM_OK) {
        sgm_type type = sgm_program_output_type(own.program, own.output);
        int64_t classes = type.shape.rank == 2 ? type.shape.dims[1] : 0;
        json_t *made =
            json_pack("{s:I, s:o, s:o, s:b, s:o, s:b}", "iteration", (json_int_t)own.network.iteration,
                      "input", sgm__answer_shape(&own.shape, 0), "output", sgm__answer_shape(&type.shape, 1),
                      "classifies", own.classifies, "names", class_names(watched, classes), "samples",
                      samples(((sgm__web_trainer *)watched)->trainer));
        status = sgm__http_answer_json(answer, made);
    }
    sgm__inference_copy_free(&own.network.copied);
    return status;
}

/* --- predictions --- */

/* A growing list of numbers. */
typedef struct numbers {
    double *items;
    size_t count, capacity;
} numbers;

/* Appends the numbers of lists that are nested in any way: a drawing may come as rows or as one list. */
static sgm_status flatten(numbers *all, const json_t *value, int level)
{
    if (json_is_number(value)) {
        SGM_TRY(sgm__reserve(&all->items, &all->capacity, all->count + 1, sizeof *all->items));
        all->items[all->count++] = json_number_value(value);
        return SGM_OK;
    }
    if (!json_is_array(value) || level >= DEEPEST_LIST)
        return sgm_fail(SGM_ERROR_ARGUMENT, "'inputs' must be a list of numbers, or lists of such lists");
    const json_t *item;
    size_t i;
    json_array_foreach(value, i, item)
    {
        SGM_TRY(flatten(all, item, level + 1));
    }
    return SGM_OK;
}

/* The ten likeliest classes with their shares, the likeliest first. */
static json_t *ranked(const double *shares, int64_t classes)
{
    json_t *list = json_array();
    bool *taken = sgm__calloc((size_t)classes, sizeof *taken);
    for (int64_t rank = 0; rank < classes && rank < 10 && taken != NULL; rank++) {
        int64_t best = -1;
        for (int64_t i = 0; i < classes; i++)
            if (!taken[i] && (best < 0 || shares[i] > shares[best]))
                best = i;
        taken[best] = true;
        json_array_append_new(list, json_pack("{s:I, s:o}", "class", (json_int_t)best, "share",
                                              sgm__answer_number(shares[best])));
    }
    sgm__free(taken);
    return list;
}

/* The outputs of each example as one list; for classifiers also the ranking. */
static json_t *prediction_json(const copy *own, const sgm_shape *shape, const double *outputs)
{
    int64_t each = sgm_shape_elements(shape) / own->examples;
    json_t *examples = json_array(), *ranks = json_array();
    for (int64_t i = 0; i < own->examples; i++) {
        json_array_append_new(examples, numbers_json(outputs + i * each, each));
        if (own->classifies && shape->rank == 2)
            json_array_append_new(ranks, ranked(outputs + i * each, each));
    }
    return json_pack("{s:I, s:o, s:o, s:o}", "iteration", (json_int_t)own->network.iteration, "shape",
                     sgm__answer_shape(shape, 1), "outputs", examples, "ranked", ranks);
}

static sgm_status predict_inputs(const copy *own, const numbers *inputs, sgm__http_answer *answer)
{
    sgm_tensor *outputs = predict_for(own, inputs->items);
    if (outputs == NULL)
        return sgm__last_failure();
    const sgm_shape *shape = sgm_tensor_shape(outputs);
    size_t count = (size_t)sgm_shape_elements(shape);
    double *values = sgm__calloc(count, sizeof *values);
    sgm_status status = values != NULL ? sgm_tensor_read(outputs, values, count) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = sgm__http_answer_json(answer, prediction_json(own, shape, values));
    sgm__free(values);
    sgm_tensor_free(outputs);
    return status;
}

/* How many examples the numbers are; fails if they are no whole number of examples. */
static sgm_status count_examples(const copy *one, const numbers *inputs, int64_t *examples)
{
    char text[128];
    *examples = (int64_t)inputs->count / one->elements;
    if (*examples >= 1 && *examples <= MAXIMUM_EXAMPLES && (int64_t)inputs->count % one->elements == 0)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_SHAPE,
                    "'inputs' has %zu numbers; expected 1 to %d examples of %lld, of the shape %s",
                    inputs->count, MAXIMUM_EXAMPLES, (long long)one->elements,
                    sgm_shape_text(&one->shape, text, sizeof text));
}

/* Makes the copy. How many examples the numbers are is known only once a copy tells the size of one; that
 * first copy, for one example, is mostly the one that is needed. */
static sgm_status copy_for(copy *network, sgm__web_trainer *watched, const numbers *inputs)
{
    int64_t examples;
    SGM_TRY(copy_network(network, watched, 1));
    SGM_TRY(count_examples(network, inputs, &examples));
    if (examples == 1)
        return SGM_OK;
    sgm__inference_copy_free(&network->network.copied);
    return copy_network(network, watched, examples);
}

/* {"trainer", "inputs": numbers of one example or of several} */
static sgm_status predict(void *watched, const sgm__http_request *request, sgm__http_answer *answer)
{
    numbers inputs = {0};
    copy network = {0};
    sgm_status status = flatten(&inputs, json_object_get(sgm__http_object(request), "inputs"), 0);
    if (status == SGM_OK)
        status = copy_for(&network, watched, &inputs);
    if (status == SGM_OK)
        status = predict_inputs(&network, &inputs, answer);
    sgm__inference_copy_free(&network.network.copied);
    sgm__free(inputs.items);
    return status;
}

/* --- inputs that the network takes for a class --- */

/* sgm__trainer_unlock as a function of void *. */
static void unlock(void *trainer)
{
    sgm__trainer_unlock(trainer);
}

/* {"trainer", "class", "steps"}. The search is that of the hook (hooks_ready/target_maximiser.c), which
 * releases the trainer's lock through `unlock` as soon as it has copied what it needs, also on failure. */
static sgm_status maximise(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    sgm__web_trainer *watched = user;
    const json_t *body = sgm__http_object(request);
    double wanted, steps;
    SGM_TRY(read_number(body, "class", 0, 0, 1e6, &wanted));
    SGM_TRY(read_number(body, "steps", 512, 1, MAXIMUM_STEPS, &steps));
    const sgm_target_options options = {.steps = (int64_t)steps, .attempts = 1};
    sgm__target_found found = {0};
    SGM_TRY(sgm__trainer_enter(watched->trainer));
    if (sgm__trainer_look(watched->trainer).network == NULL) {
        sgm__trainer_unlock(watched->trainer);
        return sgm_fail(SGM_ERROR_STATE, "trainer '%s' has no network yet", watched->name);
    }
    SGM_TRY(
        sgm__target_maximise(watched->trainer, (int64_t)wanted, &options, unlock, request->ending, &found));
    const sgm_shape *shape = sgm_tensor_shape(found.input);
    size_t count = (size_t)sgm_shape_elements(shape);
    double *values = sgm__calloc(count, sizeof *values);
    sgm_status status = values != NULL ? sgm_tensor_read(found.input, values, count) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = sgm__http_answer_json(answer,
                                       json_pack("{s:o, s:o, s:o, s:b}", "shape", sgm__answer_shape(shape, 0),
                                                 "values", numbers_json(values, (int64_t)count), "cost",
                                                 sgm__answer_number(found.cost), "found", found.found));
    sgm__free(values);
    sgm_tensor_free(found.input);
    return status;
}

/* --- text --- */

/* A network that reads bytes and predicts the next one, and the state of writing with it. */
typedef struct writer {
    copy network;
    int64_t time, classes; /* bytes of its window; 256 */
    bool one_hot;          /* the input is (time, 256) instead of numbers (time) */
    bool per_step;         /* outputs are (time, 256), one for each byte; else (256) for the last byte */
    double *inputs;        /* one example of the input */
    double *outputs;       /* one example of the output */
    sgm__random random;
    double temperature;
} writer;

/* Finds out by the shapes how the network reads and answers; fails if they are not those of a network for
 * text. */
static sgm_status check_writer(writer *own)
{
    const sgm_shape *in = &own->network.shape;
    sgm_type type = sgm_program_output_type(own->network.program, own->network.output);
    own->time = in->rank > 0 ? in->dims[0] : 0;
    own->one_hot = in->rank == 2 && in->dims[1] == 256;
    own->classes = type.shape.dims[type.shape.rank - 1];
    int64_t outputs = sgm_shape_elements(&type.shape);
    own->per_step = outputs == own->time * own->classes && own->time > 1;
    if ((in->rank != 1 && !own->one_hot) || own->classes != 256 ||
        (!own->per_step && outputs != own->classes)) {
        char from[128], to[128];
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "text is written by networks that read bytes, (time) or (time, 256), and give 256 "
                        "shares; this one makes %s of %s",
                        sgm_shape_text(&type.shape, to, sizeof to), sgm_shape_text(in, from, sizeof from));
    }
    own->inputs = sgm__calloc((size_t)own->network.elements, sizeof *own->inputs);
    own->outputs = sgm__calloc((size_t)outputs, sizeof *own->outputs);
    return own->inputs != NULL && own->outputs != NULL ? SGM_OK : sgm__fail_memory((size_t)outputs);
}

/* Fills the inputs with the last bytes of the text. A text that is shorter than the window stands at its
 * beginning where each step has an output, and at its end where only the last step has one; the rest is
 * spaces. Returns the step whose output predicts the next byte. */
static int64_t show_window(writer *own, const unsigned char *text, int64_t length)
{
    int64_t count = length < own->time ? length : own->time, at = own->per_step ? 0 : own->time - count;
    memset(own->inputs, 0, (size_t)own->network.elements * sizeof *own->inputs);
    for (int64_t i = 0; i < own->time; i++) {
        unsigned char byte = i >= at && i < at + count ? text[length - count + i - at] : ' ';
        if (own->one_hot)
            own->inputs[i * 256 + byte] = 1;
        else
            own->inputs[i] = byte;
    }
    return own->per_step ? count - 1 : 0;
}

/* Draws a byte with probabilities proportional to share^(1 / temperature). Shares are divided by the
 * largest first, so that small powers do not all underflow. Temperature 0, or no positive share: the
 * likeliest byte. */
static unsigned char draw(writer *own, const double *shares)
{
    double weights[256], sum = 0, maximum = 0;
    int best = 0;
    for (int i = 0; i < 256; i++)
        if (shares[i] > shares[best])
            best = i;
    maximum = shares[best];
    if (own->temperature == 0 || !(maximum > 0))
        return (unsigned char)best;
    for (int i = 0; i < 256; i++)
        sum += weights[i] = shares[i] > 0 ? pow(shares[i] / maximum, 1 / own->temperature) : 0;
    double left = sum * sgm__random_uniform(&own->random);
    for (int i = 0; i < 256; i++)
        if ((left -= weights[i]) < 0)
            return (unsigned char)i;
    return (unsigned char)best;
}

/* Appends `length` bytes, one prediction for each; stops early when the server ends. */
static sgm_status write_on(writer *own, sgm__text *text, int64_t length, const atomic_bool *ending)
{
    sgm_type type = sgm_program_output_type(own->network.program, own->network.output);
    for (int64_t i = 0; i < length && !atomic_load(ending); i++) {
        int64_t step = show_window(own, (const unsigned char *)text->data, (int64_t)text->length);
        sgm_tensor *outputs = predict_for(&own->network, own->inputs);
        if (outputs == NULL)
            return sgm__last_failure();
        sgm_status status = sgm_tensor_read(outputs, own->outputs, (size_t)sgm_shape_elements(&type.shape));
        sgm_tensor_free(outputs);
        SGM_TRY(status);
        char byte = (char)draw(own, own->outputs + step * own->classes);
        sgm__text_append_bytes(text, &byte, 1);
    }
    return text->failed ? sgm__fail_memory(text->length) : SGM_OK;
}

/* What was written, of any bytes, as JSON. Those that are no UTF-8, and zeros, become '?', each for itself.
 */
static json_t *written_json(const sgm__text *text)
{
    for (size_t i = 0; i < text->length;) {
        unsigned char *byte = (unsigned char *)text->data + i;
        size_t length = *byte > 0 && *byte < 0x80 ? 1 : sgm__utf8_length(byte);
        if (length == 0)
            *byte = '?';
        i += length > 0 ? length : 1;
    }
    return json_string(text->data);
}

/* {"trainer", "text", "length", "temperature", "seed"}; without a seed the time is one. "given" in the answer
 * is the number of bytes of the text that were given. */
static sgm_status sample(void *watched, const sgm__http_request *request, sgm__http_answer *answer)
{
    const json_t *body = sgm__http_object(request);
    double length, seed;
    const char *begin;
    writer w = {0};
    sgm__text text = {0};
    SGM_TRY(sgm__web_text(body, "text", true, &begin));
    SGM_TRY(read_number(body, "length", 200, 1, MAXIMUM_CHARACTERS, &length));
    SGM_TRY(read_number(body, "temperature", 0.7, 0, 10, &w.temperature));
    SGM_TRY(read_number(body, "seed", sgm__now(), 0, 9e15, &seed));
    if (*begin == '\0')
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "'text' is what the network goes on from: at least one character");
    w.random = sgm__random_make((uint64_t)seed, 0);
    sgm_status status = copy_network(&w.network, watched, 1);
    if (status == SGM_OK)
        status = check_writer(&w);
    sgm__text_append(&text, "%s", begin);
    if (status == SGM_OK)
        status = write_on(&w, &text, (int64_t)length, request->ending);
    if (status == SGM_OK)
        status = sgm__http_answer_json(
            answer, json_pack("{s:I, s:o, s:I}", "iteration", (json_int_t)w.network.network.iteration, "text",
                              written_json(&text), "given", (json_int_t)strlen(begin)));
    sgm__text_free(&text);
    sgm__free(w.inputs);
    sgm__free(w.outputs);
    sgm__inference_copy_free(&w.network.network.copied);
    return status;
}

/* GET /api/samples: how the network went on with the prompts of hooks, the newest of each. What hooks share
 * needs no lock of the trainer. */
static sgm_status get_samples(void *watched, const sgm__http_request *request, sgm__http_answer *answer)
{
    sgm_content shared = {0};
    sgm_registry *registry = sgm_trainer_registry(((sgm__web_trainer *)watched)->trainer);
    (void)request;
    bool has = sgm_registry_resolve_one(registry, "shared.samples", &shared) == SGM_OK &&
               shared.kind == SGM_KIND_TEXT;
    json_t *list = has ? json_loads(shared.as.text, 0, NULL) : NULL;
    if (!json_is_array(list)) {
        json_decref(list);
        list = json_array();
    }
    sgm_content_clear(&shared);
    sgm_clear_error();
    return sgm__http_answer_json(answer, json_pack("{s:o}", "samples", list));
}

static const sgm__http_route routes[] = {
    {"GET", "/api/samples", .act = sgm__web_on_trainer, .action = get_samples},
    {"GET", "/api/play", .act = sgm__web_on_trainer, .action = get_play},
    {"POST", "/api/predict", .act = sgm__web_on_trainer, .action = predict, .longest_body = LONGEST_INPUTS},
    {"POST", "/api/maximise", .act = sgm__web_on_trainer, .action = maximise},
    {"POST", "/api/sample", .act = sgm__web_on_trainer, .action = sample},
};

const sgm__web_part sgm__web_play = {.routes = routes, .route_count = sizeof routes / sizeof *routes};
