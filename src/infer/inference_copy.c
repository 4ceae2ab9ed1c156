#include "infer/inference_copy.h"
#include "network/rerecord.h"

sgm_status sgm__inference_copy_record(sgm__inference_copy *frozen, sgm_handler *handler, const char *notation,
                                      int64_t batch, sgm_dtype dtype, bool costs)
{
    frozen->network = sgm_network_parse(notation);
    frozen->graph = frozen->network != NULL ? sgm_graph_create() : NULL;
    frozen->session = frozen->graph != NULL ? sgm_session_create(handler) : NULL;
    if (frozen->session == NULL)
        return sgm_last_status();
    sgm_recording_options options = {
        .struct_size = sizeof options, .batch = batch, .dtype = dtype, .costs = costs, .prefix = ""};
    SGM_TRY(sgm_network_record(frozen->network, frozen->graph, &options, &frozen->recording));
    return sgm_graph_status(frozen->graph);
}

sgm_status sgm__inference_copy_fill(sgm__inference_copy *frozen, sgm__parameter_function get, void *user)
{
    for (size_t i = 0; i < frozen->recording.parameter_count; i++) {
        const char *name = frozen->recording.parameters[i].name;
        sgm_tensor *value = get(user, name);
        sgm_status status = value != NULL ? sgm_session_set(frozen->session, name, value) : sgm_last_status();
        sgm_tensor_free(value);
        SGM_TRY(status);
    }
    return SGM_OK;
}

sgm_program *sgm__inference_copy_prepare(sgm__inference_copy *frozen)
{
    sgm_program *program = sgm_session_prepare(frozen->session, frozen->graph);
    bool checks = program != NULL && sgm__network_expect_indices(frozen->network, program) == SGM_OK;
    return checks ? program : NULL;
}

void sgm__inference_copy_free(sgm__inference_copy *frozen)
{
    sgm_session_free(frozen->session);
    sgm_graph_free(frozen->graph);
    sgm_network_free(frozen->network);
    memset(frozen, 0, sizeof *frozen);
}
