/* Whether a translated model gives what the model gives: both run on the same examples. */
#include "onnx/translate.h"

#include <math.h>
#include <stdlib.h>

/* Examples that are compared, where the model leaves their number open; batch norms are those of a
 * prediction. */
#define EXAMPLES 2
/* What sums in another order, and other formulas of activations, may differ by. */
#define TOLERANCE 1e-3
/* Of all examples together, so that a small file does not take all memory. */
#define MOST_NUMBERS (1 << 26)

/* Numbers from -1 to 1, the same ones each time, in the type of the input. Whole numbers count something, of
 * which there is a first one: they are all 0. NULL on failure. */
static sgm_tensor *make_examples(const sgm_type *type)
{
    sgm_shape shape = type->shape;
    if (shape.dims[0] < 1)
        shape.dims[0] = EXAMPLES;
    int64_t count = sgm_shape_elements(&shape);
    if (count < 0 || count > MOST_NUMBERS) {
        sgm_fail(SGM_ERROR_UNSUPPORTED, "%lld examples of the model's input have more than %d numbers",
                 (long long)shape.dims[0], MOST_NUMBERS);
        return NULL;
    }
    sgm_tensor *examples = sgm_tensor_create(SGM_FLOAT32, &shape);
    float *numbers = examples != NULL ? sgm_tensor_data(examples) : NULL;
    uint32_t state = 1;
    for (int64_t i = 0; numbers != NULL && i < count && sgm_dtype_is_float(type->dtype); i++) {
        state = state * 1664525 + 1013904223;
        numbers[i] = (float)(int32_t)state / 2147483648.0F;
    }
    sgm_tensor *cast = examples != NULL ? sgm_tensor_cast(examples, type->dtype) : NULL;
    sgm_tensor_free(examples);
    return cast;
}

/* The first output of the network; NULL on failure. */
static sgm_tensor *run_recorded(const sgm__translated *network, const sgm_recording *recording,
                                const sgm_graph *graph, const sgm_tensor *examples, sgm_session *session)
{
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < network->count && status == SGM_OK; i++)
        status = sgm_session_set(session, network->values[i].parameter, network->values[i].value);
    sgm_program *program = status == SGM_OK ? sgm_session_prepare(session, graph) : NULL;
    if (program == NULL ||
        sgm_session_feed(session, program, recording->inputs[0].name, examples) != SGM_OK ||
        sgm_session_run(session, program) != SGM_OK)
        return NULL;
    sgm_type type = sgm_value_type(graph, recording->outputs[0].value);
    sgm_tensor *output = sgm_tensor_create(type.dtype, &type.shape);
    if (output != NULL && sgm_session_read(session, program, recording->outputs[0].name, output) == SGM_OK)
        return output;
    sgm_tensor_free(output);
    return NULL;
}

static int64_t count_untrained(const sgm_recording *recording)
{
    int64_t count = 0;
    for (size_t i = 0; i < recording->parameter_count; i++)
        if (!recording->parameters[i].trainable)
            count += sgm_shape_elements(&recording->parameters[i].type.shape);
    return count;
}

/* In float64 if the model is in that type; whole numbers are fed as float32. */
static sgm_tensor *run_network(sgm__translated *translated, const sgm_tensor *given)
{
    sgm_dtype dtype = sgm_tensor_dtype(given) == SGM_FLOAT64 ? SGM_FLOAT64 : SGM_FLOAT32;
    const sgm_recording_options options = {
        .struct_size = sizeof options, .batch = sgm_tensor_shape(given)->dims[0], .dtype = dtype};
    sgm_recording recording = {0};
    sgm_tensor *output = NULL;
    sgm_handler *handler = sgm_handler_create("cpu");
    sgm_session *session = handler != NULL ? sgm_session_create(handler) : NULL;
    sgm_tensor *examples = session != NULL ? sgm_tensor_cast(given, dtype) : NULL;
    sgm_graph *graph = examples != NULL ? sgm_graph_create() : NULL;
    sgm_network *network = graph != NULL ? sgm_network_parse(translated->text) : NULL;
    if (network != NULL && sgm_network_record(network, graph, &options, &recording) == SGM_OK) {
        translated->untrained = count_untrained(&recording);
        sgm_graph_add_output(graph, recording.outputs[0].name, recording.outputs[0].value);
        output = run_recorded(translated, &recording, graph, examples, session);
    }
    sgm_tensor_free(examples);
    sgm_session_free(session);
    sgm_handler_free(handler);
    sgm_network_free(network);
    sgm_graph_free(graph);
    return output;
}

static sgm_tensor *run_model(sgm_onnx *model, const sgm_tensor *examples)
{
    return sgm_onnx_set(model, sgm_onnx_input_at(model, 0, NULL), examples) == SGM_OK &&
                   sgm_onnx_run(model) == SGM_OK
               ? sgm_onnx_get(model, sgm_onnx_output_at(model, 0))
               : NULL;
}

/* Logits become probabilities, row by row of `columns`. */
static void apply_softmax(double *logits, size_t count, size_t columns)
{
    for (double *row = logits; row < logits + count; row += columns) {
        double largest = row[0], sum = 0;
        for (size_t i = 1; i < columns; i++)
            largest = fmax(largest, row[i]);
        for (size_t i = 0; i < columns; i++)
            sum += row[i] = exp(row[i] - largest);
        for (size_t i = 0; i < columns; i++)
            row[i] /= sum;
    }
}

static sgm_status compare(const char *path, const sgm_tensor *theirs, const sgm_tensor *own,
                          bool adds_softmax)
{
    const sgm_shape *shape = sgm_tensor_shape(own);
    size_t count = (size_t)sgm_shape_elements(shape);
    if ((size_t)sgm_shape_elements(sgm_tensor_shape(theirs)) != count)
        return sgm_fail(SGM_ERROR_SHAPE, "'%s': as a network it gives %zu numbers, as a model %lld", path,
                        count, (long long)sgm_shape_elements(sgm_tensor_shape(theirs)));
    double *a = calloc(2 * count + 1, sizeof *a);
    if (a == NULL)
        return sgm_fail(SGM_ERROR_MEMORY, "no memory to compare '%s'", path);
    double *b = a + count;
    sgm_status status = sgm_tensor_read(theirs, a, count);
    if (status == SGM_OK && adds_softmax)
        apply_softmax(a, count, (size_t)shape->dims[shape->rank - 1]);
    if (status == SGM_OK)
        status = sgm_tensor_read(own, b, count);
    for (size_t i = 0; i < count && status == SGM_OK; i++)
        if (!(fabs(a[i] - b[i]) <= TOLERANCE * (1 + fabs(a[i]))))
            status = sgm_fail(
                SGM_ERROR_UNSUPPORTED,
                "'%s': as a network its output %zu is %.6g, as a model %.6g; 'sigma predict' runs the "
                "model as it is",
                path, i, b[i], a[i]);
    free(a);
    return status;
}

sgm_status sgm__translated_check(const char *path, sgm_onnx *model, sgm__translated *network)
{
    sgm_type type;
    sgm_onnx_input_at(model, 0, &type);
    sgm_tensor *examples = make_examples(&type);
    sgm_tensor *theirs = examples != NULL ? run_model(model, examples) : NULL;
    sgm_tensor *own = theirs != NULL ? run_network(network, examples) : NULL;
    sgm_status status = own != NULL ? compare(path, theirs, own, network->adds_softmax) : sgm_last_status();
    sgm_tensor_free(own);
    sgm_tensor_free(theirs);
    sgm_tensor_free(examples);
    return status;
}
