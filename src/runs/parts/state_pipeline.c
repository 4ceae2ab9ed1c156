/* What a checkpoint has of the pipeline of a table (sigma/table.h): it belongs to the network, as only with
 * it the rows of another file become the numbers that the network has learnt from.
 *
 * The pipeline is that of the training data. A trainer without data keeps the one that it was loaded with, so
 * that saving it again loses nothing. */
#include "persistence/bundle.h"
#include "runs/parts/state.h"
#include <sigma/graph.h>

#include <stdlib.h>

/* That of the training data, else that of the checkpoint that was loaded. */
sgm_pipeline *sgm_trainer_get_pipeline(const sgm_trainer *trainer)
{
    const sgm__trainer_data *data = sgm__data_of(trainer);
    sgm_pipeline *own =
        data->training != NULL ? sgm_dataset_get_pipeline(sgm_iterator_dataset(data->training)) : NULL;
    return own != NULL ? own : data->pipeline;
}

sgm_status sgm_trainer_set_pipeline(sgm_trainer *trainer, sgm_pipeline *pipeline)
{
    if (trainer == NULL || pipeline == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "setting a pipeline needs a trainer and a pipeline, got NULL");
    SGM_TRY(sgm__trainer_open(trainer));
    sgm__trainer_data *data = sgm__data_of(trainer);
    sgm_pipeline *before = data->pipeline;
    data->pipeline = sgm_pipeline_retain(pipeline);
    sgm_pipeline_free(before);
    return sgm__trainer_close(trainer, SGM_OK);
}

static sgm_status describe_pipeline(const sgm_trainer *trainer, json_t *state)
{
    const sgm_pipeline *pipeline = sgm_trainer_get_pipeline(trainer);
    if (pipeline == NULL)
        return SGM_OK;
    char *text = sgm_pipeline_json(pipeline);
    json_t *json = text != NULL ? json_loads(text, 0, NULL) : NULL;
    sgm_status status = text != NULL ? SGM_OK : sgm_last_status();
    sgm_string_free(text);
    if (status == SGM_OK && json_object_set_new(state, "pipeline", json) != 0)
        status = sgm__fail_memory(1024);
    return status;
}

static sgm_status read_pipeline(sgm__saved_state *state)
{
    const json_t *json = json_object_get(state->json, "pipeline");
    if (json == NULL)
        return SGM_OK;
    char *text = json_dumps(json, JSON_REAL_PRECISION(17) | JSON_ENCODE_ANY);
    state->pipeline = text != NULL ? sgm_pipeline_parse(text) : NULL;
    free(text);
    return state->pipeline != NULL ? SGM_OK : sgm_last_status();
}

/* Whether two pipelines would make the same numbers of the same rows. */
static sgm_status compare(const sgm_pipeline *one, const sgm_pipeline *other)
{
    char *a = sgm_pipeline_json(one), *b = sgm_pipeline_json(other);
    sgm_status status = SGM_OK;
    if (a == NULL || b == NULL)
        status = sgm_last_status();
    else if (strcmp(a, b) != 0)
        status = sgm_fail(
            SGM_ERROR_FORMAT,
            "the pipeline of the training data is another one than that of the checkpoint, so the network "
            "would see other numbers; make the data with the checkpoint's (sgm_checkpoint_pipeline)");
    sgm_string_free(a);
    sgm_string_free(b);
    return status;
}

/* A file whose network and pipeline do not belong together would fail only when rows are asked for. The
 * network is parsed again, as recording it anew would change what the trainer has. */
static sgm_status check_widths(const sgm_network *network, const sgm_pipeline *pipeline)
{
    char *text = sgm_network_text(network);
    sgm_network *copy = text != NULL ? sgm_network_parse(text) : NULL;
    sgm_graph *graph = copy != NULL ? sgm_graph_create() : NULL;
    sgm_recording recording = {.input_count = 0};
    const sgm_recording_options options = {.struct_size = sizeof options, .batch = 1, .dtype = SGM_FLOAT32};
    sgm_status status =
        graph != NULL ? sgm_network_record(copy, graph, &options, &recording) : sgm__last_failure();
    for (size_t i = 0; status == SGM_OK && i < recording.input_count; i++) {
        const sgm_named_value *input = &recording.inputs[i];
        sgm_shape shape = sgm_value_type(graph, input->value).shape;
        int64_t width = sgm_pipeline_width(pipeline, input->name), wanted = sgm_shape_elements(&shape);
        if (width > 0 && width != wanted)
            status =
                sgm_fail(SGM_ERROR_FORMAT,
                         "the network takes %lld numbers of '%s', and the pipeline makes %lld: they are of "
                         "different trainings",
                         (long long)wanted, input->name, (long long)width);
    }
    sgm_graph_free(graph);
    sgm_network_free(copy);
    sgm_string_free(text);
    return status;
}

/* Nothing is set here: this is where a checkpoint can be refused. */
static sgm_status learn_pipeline(sgm_trainer *trainer, const sgm__saved_state *state,
                                 sgm__number_list *before)
{
    (void)before;
    const sgm__trainer_data *data = sgm__data_of(trainer);
    const sgm_network *network = sgm__learner_of(trainer)->network;
    const sgm_pipeline *own =
        data->training != NULL ? sgm_dataset_get_pipeline(sgm_iterator_dataset(data->training)) : NULL;
    if (state->pipeline != NULL && network != NULL)
        SGM_TRY(check_widths(network, state->pipeline));
    return own != NULL && state->pipeline != NULL ? compare(own, state->pipeline) : SGM_OK;
}

static sgm_status set_pipeline(sgm_trainer *trainer, const sgm__saved_state *state, unsigned parts)
{
    (void)parts;
    sgm__trainer_data *data = sgm__data_of(trainer);
    sgm_pipeline *before = data->pipeline;
    data->pipeline = state->pipeline != NULL ? sgm_pipeline_retain(state->pipeline) : NULL;
    sgm_pipeline_free(before);
    return SGM_OK;
}

const sgm__section sgm__pipeline_section = {.part = SGM_PART_NETWORK,
                                            .describe = describe_pipeline,
                                            .read = read_pipeline,
                                            .learn = learn_pipeline,
                                            .set = set_pipeline};

sgm_status sgm_checkpoint_pipeline(const char *path, sgm_pipeline **pipeline)
{
    sgm__saved_state state;
    *pipeline = NULL;
    sgm_bundle *bundle = sgm__bundle_load_texts(path);
    if (bundle == NULL)
        return sgm_last_status();
    sgm_status status = sgm__state_open(&state, bundle, path);
    if (status == SGM_OK && state.pipeline != NULL)
        *pipeline = sgm_pipeline_retain(state.pipeline);
    sgm__state_close(&state);
    sgm_bundle_free(bundle);
    return status;
}
