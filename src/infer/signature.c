/* What a network takes and gives, for whoever predicts for examples of their own: sigma predict, sigma serve,
 * the page.
 *
 * The input is the examples of one field, and for networks of sequences of different lengths the number of
 * steps of each example, which is fed as a second field. Predictions of a network with a ctc cost are decoded
 * to labels. */
#include "infer/signature.h"

#include <stdio.h>

/* The argument of a layer that the signature has; NULL: of this type it has none. */
static const char *argument_of(const char *type)
{
    return strcmp(type, "input") == 0       ? "lengths"
           : strcmp(type, "positions") == 0 ? "segments"
           : strcmp(type, "ctc") == 0       ? "blank"
                                            : NULL;
}

/* Finds the fields of lengths and segments that layers name, and the blank label of a ctc cost. */
static void look_at_layers(const sgm_network *network, sgm__signature *signature)
{
    for (size_t i = 0; i < sgm_network_layers(network); i++) {
        const char *type = sgm_network_layer_type(network, i)->name;
        const char *argument = argument_of(type);
        sgm_content content;
        if (argument == NULL || sgm_network_get_argument(network, i, argument, &content) != SGM_OK)
            continue;
        if (strcmp(argument, "blank") == 0)
            signature->blank = content.as.integer;
        else if (content.kind == SGM_KIND_TEXT && content.as.text[0] != '\0')
            snprintf(type[0] == 'i' ? signature->lengths : signature->segments, sizeof signature->lengths,
                     "%s", content.as.text);
        sgm_content_clear(&content);
    }
}

/* The shape of one example: without the first dimension. */
static sgm_shape example_of(const sgm_graph *graph, sgm_value value)
{
    sgm_shape batch = sgm_value_type(graph, value).shape;
    return batch.rank > 0 ? sgm_shape_create(batch.rank - 1, batch.dims + 1) : batch;
}

sgm_status sgm__signature_find(const sgm_network *network, const sgm_graph *graph,
                               const sgm_recording *recording, sgm__signature *signature)
{
    *signature =
        (sgm__signature){.blank = -1, .classifies = recording->classifies, .deviates = recording->deviates};
    look_at_layers(network, signature);
    for (size_t i = 0; i < recording->input_count; i++) {
        if (strcmp(recording->inputs[i].name, signature->lengths) == 0 ||
            strcmp(recording->inputs[i].name, signature->segments) == 0)
            continue;
        signature->inputs++;
        snprintf(signature->input, sizeof signature->input, "%s", recording->inputs[i].name);
        signature->example = example_of(graph, recording->inputs[i].value);
    }
    if (signature->inputs == 0 || recording->output_count == 0)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "predicting takes a network with inputs and an output; this one has %zu and %zu",
                        signature->inputs, recording->output_count);
    signature->output = example_of(graph, recording->outputs[0].value);
    return SGM_OK;
}

sgm_status sgm__signature_check_one(const sgm__signature *signature)
{
    return signature->inputs == 1
               ? SGM_OK
               : sgm_fail(SGM_ERROR_UNSUPPORTED, "a network with one input was expected; this one has %zu",
                          signature->inputs);
}

/* Checked here because a network need not look at the lengths, while its predictions are cut by them anyway.
 */
static sgm_status check_lengths(const sgm__signature *signature, int64_t count, const double *lengths)
{
    double maximum = signature->example.rank > 0 ? (double)signature->example.dims[0] : 0;
    for (int64_t i = 0; i < count && lengths != NULL; i++)
        if (!(lengths[i] >= 0 && lengths[i] <= maximum) || lengths[i] != (double)(int64_t)lengths[i])
            return sgm_fail(SGM_ERROR_ARGUMENT,
                            "'%s' at [%lld]: expected a whole number from 0 to %.15g, got %.9g",
                            signature->lengths, (long long)i, maximum, lengths[i]);
    return SGM_OK;
}

/* A tensor (count) of lengths; without `lengths` all steps of each example count. */
static sgm_tensor *lengths_tensor(const sgm__signature *signature, int64_t count, const double *lengths)
{
    sgm_shape shape = sgm_shape_of(count);
    sgm_tensor *made = sgm_tensor_create(SGM_FLOAT32, &shape);
    float *values = made != NULL ? sgm_tensor_data(made) : NULL;
    for (int64_t i = 0; i < count && values != NULL; i++)
        values[i] = lengths != NULL ? (float)lengths[i] : (float)signature->example.dims[0];
    return made;
}

sgm_tensor *sgm__signature_predict(const sgm__signature *signature, sgm_trainer *trainer,
                                   sgm_tensor *examples, const double *lengths)
{
    if (signature->lengths[0] == '\0')
        return sgm_trainer_predict(trainer, examples, NULL);
    int64_t count = sgm_tensor_shape(examples)->dims[0];
    if (check_lengths(signature, count, lengths) != SGM_OK)
        return NULL;
    sgm_tensor *steps = lengths_tensor(signature, count, lengths);
    if (steps == NULL)
        return NULL;
    const bool has_segments = signature->segments[0] != '\0';
    sgm_tensor *first = has_segments ? sgm_tensor_create(SGM_FLOAT32, sgm_tensor_shape(examples)) : NULL;
    sgm_block block = {.count = count,
                       .field_count = has_segments ? 3 : 2,
                       .fields = {{.values = examples}, {.values = steps}, {.values = first}}};
    memcpy(block.fields[0].name, signature->input, sizeof signature->input);
    memcpy(block.fields[1].name, signature->lengths, sizeof signature->lengths);
    memcpy(block.fields[2].name, signature->segments, sizeof signature->segments);
    sgm_tensor *prediction =
        first != NULL || !has_segments ? sgm_trainer_predict_block(trainer, &block, NULL) : NULL;
    sgm_tensor_free(steps);
    sgm_tensor_free(first);
    return prediction;
}

/* 97.5 % of a normal distribution are below so many deviations. */
void sgm__signature_interval(double mean, double deviation, double *lower, double *upper)
{
    double half = 1.959963984540054 * deviation;
    *lower = mean - half;
    *upper = mean + half;
}

int64_t sgm__signature_steps(const double *lengths, int64_t example, int64_t steps)
{
    return lengths != NULL && lengths[example] < (double)steps ? (int64_t)lengths[example] : steps;
}

sgm_tensor *sgm__signature_labels(const sgm__signature *signature, const sgm_tensor *predictions,
                                  const double *lengths)
{
    const sgm_shape *shape = sgm_tensor_shape(predictions);
    int64_t *steps = sgm__calloc((size_t)shape->dims[0] + 1, sizeof *steps);
    if (steps == NULL)
        return NULL;
    for (int64_t i = 0; i < shape->dims[0]; i++)
        steps[i] = sgm__signature_steps(lengths, i, shape->rank > 1 ? shape->dims[1] : 0);
    sgm_tensor *labels = sgm_ctc_decode(predictions, steps, signature->blank);
    sgm__free(steps);
    return labels;
}
