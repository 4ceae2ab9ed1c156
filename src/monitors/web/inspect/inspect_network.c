/* GET /api/network: the layers of a network, how they are connected, what memory they need and how long they
 * take.
 *
 * The trainer is locked only to copy its notation, arguments and times. The description comes from a
 * network that is parsed from the notation and recorded for one example here, so that no lock is held
 * while it is made. With time=1 the trainer is asked to measure its next steps (trainer/layer_times.h),
 * and the answer has the times once they exist. */
#include "monitors/web/inspect/inspect.h"
#include "network/layout.h"
#include "trainer/layer_times.h"
#include "trainer/trainer_lock.h"

#include <math.h>

/* Steps that are measured after each request for times. */
#define MEASURED_STEPS 5

/* What the answer is made of. */
typedef struct drawing {
    char *notation;
    sgm__text arguments; /* of all layers one after the other, each followed by a 0 byte */
    sgm_dtype dtype;
    sgm_network *network;
    sgm_graph *graph;
    sgm_recording recording;
    /* Sums over the layers, added up while these are written. */
    int64_t parameters, bytes;
    bool timed; /* the request wants times */
    /* Mean times of a step for each of time_count layers, and behind them those of what belongs to no
     * layer; NULL: not measured yet. */
    sgm__layer_time *times;
    size_t time_count;
    double seconds; /* of a whole step */
} drawing;

/* With the trainer's lock. Asks for further measurements and copies those that exist. Where workers of an
 * operator do the steps, nothing is measured. */
static sgm_status copy_times(drawing *own, sgm_trainer *trainer)
{
    SGM_TRY(sgm__layer_times_want(trainer, MEASURED_STEPS));
    const sgm__layer_times *times = sgm__layer_times_of(trainer);
    if (!(times->steps > 0))
        return SGM_OK;
    own->times = sgm__calloc(times->count + 1, sizeof *own->times);
    if (own->times == NULL)
        return SGM_ERROR_MEMORY;
    own->time_count = times->count;
    own->seconds = times->seconds / times->steps;
    for (size_t i = 0; i <= times->count; i++)
        for (int k = 0; k < SGM__PHASE_COUNT; k++)
            own->times[i].seconds[k] = times->layers[i].seconds[k] / times->steps;
    return SGM_OK;
}

/* With the trainer's lock. Arguments are taken from the live network, since some may be changed while it
 * trains. */
static sgm_status copy_description(drawing *own, const sgm__web_trainer *watched)
{
    SGM_TRY(sgm__inspect_notation(watched, &own->notation));
    const sgm__trainer_view view = sgm__trainer_look(watched->trainer);
    const sgm_network *network = view.network;
    own->dtype = view.precision;
    for (size_t i = 0; i < sgm_network_layers(network); i++) {
        SGM_TRY(sgm__network_write_arguments(&own->arguments, network, i));
        sgm__text_append_bytes(&own->arguments, "", 1);
    }
    return own->arguments.failed ? SGM_ERROR_MEMORY : SGM_OK;
}

/* Parses and records the copy for one example, with its costs. */
static sgm_status record(drawing *own)
{
    const sgm_recording_options options = {
        .struct_size = sizeof options, .batch = 1, .dtype = own->dtype, .costs = true, .prefix = ""};
    own->network = sgm_network_parse(own->notation);
    own->graph = own->network != NULL ? sgm_graph_create() : NULL;
    if (own->graph == NULL)
        return sgm__last_failure();
    SGM_TRY(sgm_network_record(own->network, own->graph, &options, &own->recording));
    return sgm_graph_status(own->graph);
}

static void release(drawing *own)
{
    sgm_graph_free(own->graph);
    sgm_network_free(own->network);
    sgm_string_free(own->notation);
    sgm__text_free(&own->arguments);
    sgm__free(own->times);
}

/* Times of layer number `layer`, in milliseconds, and their share of the whole step; null: not measured.
 * The number behind the last layer stands for everything else. */
static void append_time(sgm__text *text, const drawing *own, size_t layer)
{
    static const char *const names[] = {"forward", "backward", "update"};
    bool known = own->times != NULL && layer <= own->time_count;
    const double *seconds = known ? own->times[layer].seconds : NULL;
    double sum = known ? seconds[0] + seconds[1] + seconds[2] : NAN;
    sgm__web_append_member(text, "milliseconds", 1000 * sum);
    sgm__web_append_member(text, "share", known && own->seconds > 0 ? sum / own->seconds : NAN);
    for (int k = 0; k < SGM__PHASE_COUNT; k++)
        sgm__web_append_member(text, names[k], known ? 1000 * seconds[k] : NAN);
}

/* Names of the layers whose results this layer takes. */
static void append_inputs(sgm__text *text, const drawing *own, size_t layer)
{
    int32_t count;
    const int32_t *inputs = sgm__network_inputs(own->network, layer, &count);
    sgm__text_append(text, ",\"inputs\":[");
    for (int32_t i = 0; i < count; i++) {
        sgm__text_append(text, i > 0 ? "," : "");
        sgm__web_append_text(text, sgm_network_layer_name(own->network, (size_t)inputs[i]));
    }
    sgm__text_append(text, "]");
}

/* Parameters are named "LAYER.PARAMETER". */
static bool belongs_to(const sgm_parameter *parameter, const char *layer)
{
    size_t length = strlen(layer);
    return strncmp(parameter->name, layer, length) == 0 && parameter->name[length] == '.';
}

static void append_tensor(sgm__text *text, const sgm_parameter *parameter)
{
    sgm__text_append(text, "{\"name\":");
    sgm__web_append_text(text, parameter->name);
    sgm__text_append(text,
                     ",\"identifier\":\"network.layers.%s\",\"trainable\":%s,\"shape\":", parameter->name,
                     parameter->trainable && !parameter->frozen ? "true" : "false");
    sgm__inspect_append_shape(text, &parameter->type.shape, 0);
    sgm__text_append(text, "}");
}

/* The layer's tensors. "parameters" counts trainable numbers only, "bytes" is the memory of all. */
static void append_tensors(sgm__text *text, drawing *own, const char *layer)
{
    int64_t parameters = 0, bytes = 0;
    sgm__text_append(text, ",\"tensors\":[");
    for (size_t i = 0; i < own->recording.parameter_count; i++) {
        const sgm_parameter *parameter = &own->recording.parameters[i];
        if (!belongs_to(parameter, layer))
            continue;
        int64_t elements = sgm_shape_elements(&parameter->type.shape);
        sgm__web_separate(text);
        append_tensor(text, parameter);
        parameters += parameter->trainable ? elements : 0;
        bytes += elements * (int64_t)sgm_dtype_size(parameter->type.dtype);
    }
    sgm__text_append(text, "]");
    sgm__web_append_member(text, "parameters", (double)parameters);
    sgm__web_append_member(text, "bytes", (double)bytes);
    own->parameters += parameters;
    own->bytes += bytes;
}

/* "shape" is that of one example; "activation" is the size in bytes of what the layer gives for it. */
static void append_layer(sgm__text *text, drawing *own, size_t layer, const char *arguments)
{
    const char *name = sgm_network_layer_name(own->network, layer);
    const sgm_layer_type *type = sgm_network_layer_type(own->network, layer);
    sgm_type given = sgm_value_type(own->graph, sgm__network_value(own->network, layer));
    sgm__text_append(text, "{\"name\":");
    sgm__web_append_text(text, name);
    sgm__text_append(text, ",\"type\":\"%s\",\"arguments\":", type->name);
    sgm__web_append_text(text, arguments);
    append_inputs(text, own, layer);
    sgm__text_append(text, ",\"cost\":%s,\"shape\":", (type->flags & SGM_LAYER_COST) != 0 ? "true" : "false");
    sgm__inspect_append_shape(text, &given.shape, 1);
    sgm__web_append_member(text, "activation",
                           (double)(sgm_shape_elements(&given.shape) * (int64_t)sgm_dtype_size(given.dtype)));
    append_tensors(text, own, name);
    if (own->timed)
        append_time(text, own, layer);
    sgm__text_append(text, "}");
}

static sgm_status describe(drawing *own, sgm__http_answer *answer)
{
    sgm__text text = {0};
    const char *arguments = own->arguments.data;
    sgm__text_append(&text, "{\"layers\":[");
    for (size_t i = 0; i < sgm_network_layers(own->network); i++) {
        sgm__text_append(&text, i > 0 ? "," : "");
        append_layer(&text, own, i, arguments);
        arguments += strlen(arguments) + 1;
    }
    sgm__text_append(&text, "],\"notation\":");
    sgm__web_append_text(&text, own->notation);
    sgm__web_append_member(&text, "parameters", (double)own->parameters);
    sgm__web_append_member(&text, "bytes", (double)own->bytes);
    if (own->timed) {
        bool known = own->times != NULL;
        sgm__text_append(&text, ",\"time\":{\"other\":{\"name\":null");
        append_time(&text, own, sgm_network_layers(own->network));
        sgm__text_append(&text, "}");
        sgm__web_append_member(&text, "milliseconds", known ? 1000 * own->seconds : NAN);
        sgm__text_append(&text, "}");
    }
    sgm__text_append(&text, "}");
    return sgm__web_answer(answer, &text);
}

/* Three phases: copy with the lock, record, describe. */
sgm_status sgm__inspect_network(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    sgm__web_trainer *watched = user;
    drawing own = {0};
    int64_t time;
    SGM_TRY(sgm__inspect_count(request, "time", 0, 0, 1, &time));
    own.timed = time == 1;
    sgm_status status = sgm__trainer_enter(watched->trainer);
    if (status == SGM_OK) {
        status = copy_description(&own, watched);
        if (status == SGM_OK && own.timed)
            status = copy_times(&own, watched->trainer);
        sgm__trainer_unlock(watched->trainer);
    }
    if (status == SGM_OK)
        status = record(&own);
    if (status == SGM_OK)
        status = describe(&own, answer);
    release(&own);
    return status;
}
