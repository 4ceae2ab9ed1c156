#include "training/asked.h"

#include <stdio.h>

/* The section of lengths that an input layer names, if it is this one; and whether there is a ctc. */
static void look_at_layers(const sgm_network *network, sgm__asked *asked)
{
    for (size_t i = 0; i < sgm_network_layers(network); i++) {
        const char *type = sgm_network_layer_type(network, i)->name;
        bool input = strcmp(type, "input") == 0;
        sgm_content content;
        if (!input && strcmp(type, "ctc") != 0)
            continue;
        if (sgm_network_argument(network, i, input ? "lengths" : "blank", &content) != SGM_OK)
            continue;
        if (!input)
            asked->blank = content.as.integer;
        else if (content.kind == SGM_KIND_TEXT && content.as.text[0] != '\0')
            snprintf(asked->lengths, sizeof asked->lengths, "%s", content.as.text);
        sgm_content_clear(&content);
    }
}

static sgm_shape record_of(const sgm_graph *graph, sgm_value value)
{
    sgm_shape batch = sgm_value_type(graph, value).shape;
    return batch.rank > 0 ? sgm_shape_make(batch.rank - 1, batch.dims + 1) : batch;
}

sgm_status sgm__asked_find(const sgm_network *network, const sgm_graph *graph, const sgm_recording *recording,
                           sgm__asked *asked)
{
    *asked = (sgm__asked){.blank = -1, .classifies = recording->classifies};
    look_at_layers(network, asked);
    for (size_t i = 0; i < recording->input_count; i++) {
        if (strcmp(recording->inputs[i].name, asked->lengths) == 0)
            continue;
        asked->inputs++;
        snprintf(asked->input, sizeof asked->input, "%s", recording->inputs[i].name);
        asked->record = record_of(graph, recording->inputs[i].value);
    }
    if (asked->inputs == 0 || recording->output_count == 0)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "a network with inputs and an output can be asked; this one has %zu and %zu",
                        asked->inputs, recording->output_count);
    asked->output = record_of(graph, recording->outputs[0].value);
    return SGM_OK;
}

sgm_status sgm__asked_check_one(const sgm__asked *asked)
{
    return asked->inputs == 1
               ? SGM_OK
               : sgm_fail(SGM_ERROR_UNSUPPORTED,
                          "a question is the records of one input; this network has %zu", asked->inputs);
}

/* A network may not look at them, and its answers are cut by them all the same. */
static sgm_status check_lengths(const sgm__asked *asked, int64_t count, const double *lengths)
{
    double most = asked->record.rank > 0 ? (double)asked->record.dims[0] : 0;
    for (int64_t i = 0; i < count && lengths != NULL; i++)
        if (!(lengths[i] >= 0 && lengths[i] <= most) || lengths[i] != (double)(int64_t)lengths[i])
            return sgm_fail(SGM_ERROR_ARGUMENT,
                            "'%s' at [%lld]: expected a whole number from 0 to %.15g, got %.9g",
                            asked->lengths, (long long)i, most, lengths[i]);
    return SGM_OK;
}

/* (count), all steps where nothing is given. */
static sgm_tensor *lengths_tensor(const sgm__asked *asked, int64_t count, const double *lengths)
{
    sgm_shape shape = sgm_shape_of(count);
    sgm_tensor *made = sgm_tensor_create(SGM_FLOAT32, &shape);
    float *values = made != NULL ? sgm_tensor_data(made) : NULL;
    for (int64_t i = 0; i < count && values != NULL; i++)
        values[i] = lengths != NULL ? (float)lengths[i] : (float)asked->record.dims[0];
    return made;
}

sgm_tensor *sgm__asked_answer(const sgm__asked *asked, sgm_trainer *trainer, sgm_tensor *records,
                              const double *lengths)
{
    if (asked->lengths[0] == '\0')
        return sgm_trainer_predict(trainer, records, NULL);
    int64_t count = sgm_tensor_shape(records)->dims[0];
    if (check_lengths(asked, count, lengths) != SGM_OK)
        return NULL;
    sgm_tensor *steps = lengths_tensor(asked, count, lengths);
    if (steps == NULL)
        return NULL;
    sgm_block block = {
        .count = count, .section_count = 2, .sections = {{.values = records}, {.values = steps}}};
    memcpy(block.sections[0].name, asked->input, sizeof asked->input);
    memcpy(block.sections[1].name, asked->lengths, sizeof asked->lengths);
    sgm_tensor *answer = sgm_trainer_predict_block(trainer, &block, NULL);
    sgm_tensor_free(steps);
    return answer;
}

int64_t sgm__asked_steps(const double *lengths, int64_t record, int64_t steps)
{
    return lengths != NULL && lengths[record] < (double)steps ? (int64_t)lengths[record] : steps;
}

sgm_tensor *sgm__asked_labels(const sgm__asked *asked, const sgm_tensor *answers, const double *lengths)
{
    const sgm_shape *shape = sgm_tensor_shape(answers);
    int64_t *steps = sgm__calloc((size_t)shape->dims[0] + 1, sizeof *steps);
    if (steps == NULL)
        return NULL;
    for (int64_t i = 0; i < shape->dims[0]; i++)
        steps[i] = sgm__asked_steps(lengths, i, shape->rank > 1 ? shape->dims[1] : 0);
    sgm_tensor *labels = sgm_ctc_decode(answers, steps, asked->blank);
    sgm__free(steps);
    return labels;
}
