/* The pass fetches block after block of the dataset, collects the examples that its user wants until a
 * batch is full, predicts, and hands each example with its outputs to the user. The dataset is shared with
 * the training; any thread may fetch its blocks. */
#include "monitors/web/inspect/example_pass.h"
#include "network/layout.h"
#include "trainer/trainer_lock.h"

#include <math.h>
#include <stdio.h>

/* The name in the graph of the layer's output; no layer's name has a colon. */
#define LAYER_OUTPUT "layer:output"

/* --- a copy of the network, and the data --- */

/* ["training", VALIDATION, ...] */
static sgm_status list_data(sgm__example_pass *own, const sgm_trainer *trainer)
{
    sgm__text text = {0};
    sgm__text_append(&text, "[\"training\"");
    const char *name;
    for (size_t i = 0; (name = sgm__trainer_data_name(trainer, i)) != NULL; i++) {
        sgm__text_append(&text, ",");
        sgm__web_append_text(&text, name);
    }
    sgm__text_append(&text, "]");
    own->data = sgm__text_take(&text);
    return own->data != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* With the trainer's lock. Takes a reference to the dataset of this name; NULL: the first validation set,
 * or the training data without one. */
static sgm_status find_data(sgm__example_pass *own, const sgm__web_trainer *watched, const char *data)
{
    const sgm_trainer *trainer = watched->trainer;
    sgm_iterator *iterator;
    SGM_TRY(list_data(own, trainer));
    if (data == NULL)
        data = sgm__trainer_data_name(trainer, 0);
    if (data == NULL)
        data = "training";
    SGM_TRY(sgm__trainer_find_data(trainer, data, &iterator));
    own->dataset = sgm_dataset_retain(sgm_iterator_dataset(iterator));
    const char *targets = sgm__trainer_look(trainer).target_field;
    snprintf(own->targets, sizeof own->targets, "%s", targets[0] != '\0' ? targets : "targets");
    return SGM_OK;
}

bool sgm__example_pass_layer(const sgm__example_pass *own, size_t index, int64_t *width)
{
    const sgm__inference_copy *copied = &own->network.copied;
    if ((sgm_network_layer_type(copied->network, index)->flags & SGM_LAYER_COST) != 0)
        return false;
    sgm_shape shape = sgm_value_type(copied->graph, sgm__network_value(copied->network, index)).shape;
    *width = sgm_shape_elements(&shape) / SGM__PASS_BATCH;
    return shape.rank > 0 && shape.dims[0] == SGM__PASS_BATCH && *width > 0;
}

/* Marks what the layer gives as an output of the graph. */
static sgm_status add_layer(sgm__example_pass *own, const char *name)
{
    const sgm__inference_copy *copied = &own->network.copied;
    const char *last = copied->recording.outputs[0].name;
    size_t index = 0, count = sgm_network_layers(copied->network);
    int64_t width;
    name = *name != '\0' ? name : last;
    while (index < count && strcmp(sgm_network_layer_name(copied->network, index), name) != 0)
        index++;
    if (index == count)
        return sgm_fail(
            SGM_ERROR_NOT_FOUND,
            "the network has no layer '%.80s': ask for one that GET /api/network names, such as '%s'", name,
            last);
    if (!sgm__example_pass_layer(own, index, &width))
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "layer '%s' gives nothing for each example: ask for another, such as '%s'", name,
                        last);
    if (width > SGM__PASS_WIDEST)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "layer '%s' gives %lld numbers for each example, more than %d: ask for a narrower "
                        "one, such as '%s'",
                        name, (long long)width, SGM__PASS_WIDEST, last);
    own->layer_name = sgm_network_layer_name(copied->network, index);
    sgm_graph_add_output(copied->graph, LAYER_OUTPUT, sgm__network_value(copied->network, index));
    return sgm_graph_status(copied->graph);
}

/* Makes what an output of the program is read into. */
static sgm_status make_output(sgm__pass_output *output, sgm_type type)
{
    int64_t elements = sgm_shape_elements(&type.shape);
    output->width = elements / SGM__PASS_BATCH;
    output->made = sgm_tensor_create(type.dtype, &type.shape);
    output->values = sgm__calloc((size_t)elements, sizeof *output->values);
    return output->made != NULL && output->values != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* Makes the tensors of inputs and outputs, marks the network's first output, and that of the layer, in the
 * graph and compiles it. */
static sgm_status make_ends(sgm__example_pass *own, const char *layer)
{
    const sgm_recording *recording = &own->network.copied.recording;
    if (recording->input_count == 0 || recording->output_count == 0)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "this network has no inputs, or no outputs");
    for (size_t i = 0; i < recording->input_count; i++) {
        sgm_type type = sgm_value_type(own->network.copied.graph, recording->inputs[i].value);
        own->fed[i] = sgm_tensor_create(SGM_FLOAT32, &type.shape);
        if (own->fed[i] == NULL)
            return SGM_ERROR_MEMORY;
    }
    const char *name = recording->outputs[0].name;
    sgm_graph_add_output(own->network.copied.graph, name, recording->outputs[0].value);
    if (layer != NULL)
        SGM_TRY(add_layer(own, layer));
    own->program = sgm__inference_copy_prepare(&own->network.copied);
    if (own->program == NULL)
        return sgm__last_failure();
    sgm_type type = sgm_program_output_type(own->program, name);
    own->classifies = recording->classifies && type.shape.rank == 2;
    if (layer != NULL)
        SGM_TRY(make_output(&own->layer, sgm_program_output_type(own->program, LAYER_OUTPUT)));
    return make_output(&own->prediction, type);
}

/* Everything that may fail before the first block. */
static sgm_status prepare(sgm__example_pass *own, sgm__web_trainer *watched, const sgm__http_request *request,
                          const char *layer)
{
    SGM_TRY(sgm__trainer_enter(watched->trainer));
    sgm_status status = find_data(own, watched, sgm__http_query(request, "data", 0));
    sgm__trainer_unlock(watched->trainer);
    SGM_TRY(status);
    SGM_TRY(sgm_dataset_examples(own->dataset, &own->examples));
    SGM_TRY(sgm__web_copy_network(&own->network, watched, SGM__PASS_BATCH, SGM__WEB_AS_IT_IS));
    return make_ends(own, layer);
}

static void free_output(sgm__pass_output *output)
{
    sgm_tensor_free(output->made);
    sgm__free(output->values);
}

void sgm__example_pass_free(sgm__example_pass *own)
{
    for (size_t i = 0; i < SGM_MAX_FIELDS; i++)
        sgm_tensor_free(own->fed[i]);
    free_output(&own->prediction);
    free_output(&own->layer);
    sgm__free(own->data);
    sgm_dataset_free(own->dataset);
    sgm__inference_copy_free(&own->network.copied);
    sgm__free(own);
}

sgm__example_pass *sgm__example_pass_begin(sgm__web_trainer *watched, const sgm__http_request *request,
                                           const char *layer)
{
    sgm__example_pass *own = sgm__calloc(1, sizeof *own);
    if (own == NULL)
        return NULL;
    own->ending = request->ending;
    if (prepare(own, watched, request, layer) == SGM_OK)
        return own;
    sgm__example_pass_free(own);
    return NULL;
}

int64_t sgm__example_pass_classes(const sgm__example_pass *own)
{
    return own->prediction.width > 1 ? own->prediction.width : 2;
}

static void append_names(sgm__text *text, const sgm__example_pass *own)
{
    const char *const *names = sgm_dataset_get_class_names(own->dataset);
    int64_t classes = sgm__example_pass_classes(own), count = 0;
    while (names != NULL && names[count] != NULL)
        count++;
    sgm__text_append(text, ",\"names\":%s", own->classifies && count == classes ? "[" : "null");
    for (int64_t i = 0; own->classifies && count == classes && i < count; i++) {
        sgm__text_append(text, i > 0 ? "," : "");
        sgm__web_append_text(text, names[i]);
        sgm__text_append(text, i == count - 1 ? "]" : "");
    }
}

void sgm__example_pass_append_head(sgm__text *text, const sgm__example_pass *own)
{
    sgm__text_append(text, "{\"iteration\":%lld,\"data\":%s", (long long)own->network.iteration, own->data);
    sgm__web_append_member(text, "examples", (double)own->examples);
    sgm__web_append_member(text, "classes", own->classifies ? (double)sgm__example_pass_classes(own) : NAN);
    append_names(text, own);
}

void sgm__example_append_head(sgm__text *text, const sgm__example *taken)
{
    sgm__text_append(text, text->length > 0 ? ",{\"index\":%lld" : "{\"index\":%lld",
                     (long long)taken->index);
    sgm__web_append_member(text, "target", taken->target >= 0 ? (double)taken->target : NAN);
    sgm__web_append_member(text, "prediction", taken->prediction >= 0 ? (double)taken->prediction : NAN);
}

/* --- examples --- */

const float *sgm__example_values(const sgm_block *block, const char *field, int64_t row, int64_t *count)
{
    const sgm_tensor *all = sgm_block_field(block, field);
    *count = all != NULL ? sgm_shape_elements(sgm_tensor_shape(all)) / block->count : 0;
    return all != NULL ? (const float *)sgm_tensor_const_data(all) + row * *count : NULL;
}

/* A single output says whether it is the second class; of several, the largest says which class. */
static int64_t class_of(const double *outputs, int64_t width)
{
    int64_t best = 0;
    if (width == 1)
        return outputs[0] > 0.5;
    for (int64_t i = 1; i < width; i++)
        if (outputs[i] > outputs[best])
            best = i;
    return best;
}

/* The class in an example's targets, which are probabilities of all classes or the number of one. -1: the
 * network does not classify, or the number is no class. */
static sgm_status target_of(const sgm__example_pass *own, const sgm_block *block, int64_t row,
                            int64_t *target)
{
    const float *values;
    int64_t count, best = 0;
    *target = -1;
    if (!own->classifies)
        return SGM_OK;
    values = sgm__example_values(block, own->targets, row, &count);
    if (values == NULL)
        return sgm__last_failure();
    if (count != own->prediction.width && count != 1)
        return sgm_fail(SGM_ERROR_SHAPE, "targets have %lld numbers, the network gives %lld",
                        (long long)count, (long long)own->prediction.width);
    for (int64_t i = 1; i < count; i++)
        if (values[i] > values[best])
            best = i;
    if (own->prediction.width == 1)
        *target = values[0] > 0.5F;
    else if (count > 1)
        *target = best;
    else if (values[0] >= 0 && values[0] < (float)own->prediction.width)
        *target = (int64_t)values[0];
    return SGM_OK;
}

/* Copies the pending examples into the input tensors and feeds these to the session. */
static sgm_status feed(const sgm__example_pass *own)
{
    const sgm_recording *recording = &own->network.copied.recording;
    for (size_t i = 0; i < recording->input_count; i++) {
        const float *values;
        float *to = sgm_tensor_data(own->fed[i]);
        int64_t count, wanted = sgm_shape_elements(sgm_tensor_shape(own->fed[i])) / SGM__PASS_BATCH;
        for (int64_t k = 0; k < own->count; k++) {
            values = sgm__example_values(own->block, recording->inputs[i].name, own->pending[k].row, &count);
            if (values == NULL)
                return sgm__last_failure();
            if (count != wanted)
                return sgm_fail(SGM_ERROR_SHAPE,
                                "field '%s' has examples of %lld numbers, the network wants %lld",
                                recording->inputs[i].name, (long long)count, (long long)wanted);
            memcpy(to + k * count, values, (size_t)count * sizeof *values);
        }
        SGM_TRY(sgm_session_feed(own->network.copied.session, own->program, recording->inputs[i].name,
                                 own->fed[i]));
    }
    return SGM_OK;
}

static sgm_status read_output(const sgm__example_pass *own, const char *name, sgm__pass_output *output)
{
    SGM_TRY(sgm_session_read(own->network.copied.session, own->program, name, output->made));
    return sgm_tensor_read(output->made, output->values, (size_t)(output->width * SGM__PASS_BATCH));
}

/* Predicts the pending examples and hands them on. The batch has a fixed size: rows behind `count` still
 * hold earlier examples, are computed too, and are ignored. */
static sgm_status predict_pending(sgm__example_pass *own, const sgm__example_looker *who)
{
    if (own->count == 0)
        return SGM_OK;
    if (atomic_load(own->ending))
        return sgm_fail(SGM_ERROR_STATE, "the monitor is to stop");
    SGM_TRY(feed(own));
    SGM_TRY(sgm_session_run(own->network.copied.session, own->program));
    SGM_TRY(read_output(own, own->network.copied.recording.outputs[0].name, &own->prediction));
    if (own->layer_name != NULL)
        SGM_TRY(read_output(own, LAYER_OUTPUT, &own->layer));
    for (int64_t i = 0; i < own->count; i++) {
        sgm__example *one = &own->pending[i];
        one->outputs = own->prediction.values + i * own->prediction.width;
        one->layer = own->layer_name != NULL ? own->layer.values + i * own->layer.width : NULL;
        one->prediction = own->classifies ? class_of(one->outputs, own->prediction.width) : -1;
        SGM_TRY(who->take(who->user, own, one));
    }
    own->count = 0;
    return SGM_OK;
}

static bool has_all(const sgm__example_looker *who)
{
    return who->has_all != NULL && who->has_all(who->user);
}

/* The looker chooses among every stride-th example. */
static int64_t stride_of(const sgm__example_pass *own, const sgm__example_looker *who)
{
    return who->maximum > 0 && own->examples > who->maximum
               ? (own->examples + who->maximum - 1) / who->maximum
               : 1;
}

/* `first` is the index of the block's first example. Pending examples refer to the block, so the last
 * incomplete batch is predicted before the block is released. */
static sgm_status look_at_block(sgm__example_pass *own, const sgm__example_looker *who, int64_t first)
{
    int64_t target, stride = stride_of(own, who);
    for (int64_t row = 0; row < own->block->count && !has_all(who); row++) {
        int64_t index = first + row;
        SGM_TRY(target_of(own, own->block, row, &target));
        if (index % stride != 0 || (who->wants != NULL && !who->wants(who->user, index, target)))
            continue;
        own->pending[own->count++] = (sgm__example){.index = index, .row = row, .target = target};
        if (own->count == SGM__PASS_BATCH)
            SGM_TRY(predict_pending(own, who));
    }
    return predict_pending(own, who);
}

sgm_status sgm__example_pass_look(sgm__example_pass *own, const sgm__example_looker *who)
{
    int64_t first = 0;
    for (int64_t i = 0; !has_all(who); i++) {
        if (atomic_load(own->ending))
            return sgm_fail(SGM_ERROR_STATE, "the monitor is to stop");
        SGM_TRY(sgm_dataset_fetch_block(own->dataset, i, &own->block));
        if (own->block == NULL)
            return SGM_OK;
        sgm_status status = look_at_block(own, who, first);
        first += own->block->count;
        sgm_dataset_release_block(own->dataset, own->block);
        SGM_TRY(status);
    }
    return SGM_OK;
}
