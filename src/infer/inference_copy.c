/* A network for inference, apart from any trainer: its own recording and session, with copies of the
 * parameters.
 *
 * Three steps: record the network from its notation, fill the parameters by a function of the caller's
 * (from a trainer, a checkpoint, ...), prepare the program. Hooks that run in the background use it
 * (hooks_ready/network_pass.c, target_maximiser.c), since a trainer's own session is busy meanwhile. */
#include "infer/inference_copy.h"
#include "network/rerecord.h"

sgm_status sgm__inference_copy_record(sgm__inference_copy *copy, sgm_handler *handler, const char *notation,
                                      int64_t batch, sgm_dtype dtype, bool costs)
{
    copy->network = sgm_network_parse(notation);
    copy->graph = copy->network != NULL ? sgm_graph_create() : NULL;
    copy->session = copy->graph != NULL ? sgm_session_create(handler) : NULL;
    if (copy->session == NULL)
        return sgm_last_status();
    sgm_recording_options options = {
        .struct_size = sizeof options, .batch = batch, .dtype = dtype, .costs = costs, .prefix = ""};
    SGM_TRY(sgm_network_record(copy->network, copy->graph, &options, &copy->recording));
    return sgm_graph_status(copy->graph);
}

sgm_status sgm__inference_copy_fill(sgm__inference_copy *copy, sgm__parameter_function get, void *user)
{
    for (size_t i = 0; i < copy->recording.parameter_count; i++) {
        const char *name = copy->recording.parameters[i].name;
        sgm_tensor *value = get(user, name);
        sgm_status status = value != NULL ? sgm_session_set(copy->session, name, value) : sgm_last_status();
        sgm_tensor_free(value);
        SGM_TRY(status);
    }
    return SGM_OK;
}

sgm_program *sgm__inference_copy_prepare(sgm__inference_copy *copy)
{
    sgm_program *program = sgm_session_prepare(copy->session, copy->graph);
    bool checks = program != NULL && sgm__network_expect_indices(copy->network, program) == SGM_OK;
    return checks ? program : NULL;
}

void sgm__inference_copy_free(sgm__inference_copy *copy)
{
    sgm_session_free(copy->session);
    sgm_graph_free(copy->graph);
    sgm_network_free(copy->network);
    memset(copy, 0, sizeof *copy);
}
