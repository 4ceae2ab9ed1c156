/* Programs for inference: states that a graph does not assign to are constants in them, with the values that
 * the session has when such a program is made.
 *
 * So what is computed of weights alone is computed once, batch norms go into convolutions, and kernels pack
 * weights once; and products can be made ones of integers of 8 bits. The price is a copy of the weights, and
 * that a program is out of date when a state changes: sessions count changes, and whoever keeps such programs
 * asks for that (sgm__session_is_outdated) before each run. */
#include "graph/passes.h"
#include "handlers/session.h"
#include "ops/ops.h"

/* Bytes of states up to which a copy of them is made for speed alone: larger ones would take much memory a
 * second time. States that are cast, as those of mixed precision are, do not count: the copy is of the
 * results, so that no run casts and packs them anew. */
#define MAXIMUM_COPY ((int64_t)256 << 20)

sgm_status sgm__quantize_read(const char *quantize, bool *int8)
{
    *int8 = quantize != NULL;
    return quantize == NULL || strcmp(quantize, "int8") == 0
               ? SGM_OK
               : sgm_fail(SGM_ERROR_ARGUMENT, "quantize is '%s'; \"int8\" is the only way there is",
                          quantize);
}

/* Sets `cast` for each state that is cast to another type. */
static void find_cast(const sgm_graph *graph, bool *cast)
{
    for (size_t i = 0; i < graph->count; i++) {
        const sgm__instruction *instruction = &graph->instructions[i];
        if (instruction->op == &sgm__op_cast)
            cast[graph->operands[instruction->first_input].index] = true;
    }
}

/* Whether states that are not cast are larger than what is copied for speed alone. */
static sgm_status find_large(const sgm_graph *graph, bool *large)
{
    double bytes = 0;
    bool *cast = sgm__calloc(graph->count + 1, sizeof *cast);
    if (cast == NULL)
        return SGM_ERROR_MEMORY;
    find_cast(graph, cast);
    for (size_t i = 0; i < graph->source_count; i++) {
        int32_t at = (int32_t)graph->sources[i];
        const sgm__instruction *source = &graph->instructions[at];
        if (source->op == &sgm__op_state && !cast[at])
            bytes += (double)sgm__type_bytes(&source->type);
    }
    sgm__free(cast);
    *large = bytes > MAXIMUM_COPY;
    return SGM_OK;
}

/* The value of a state; on the host it is not copied, as it is read only while the program is made. */
static sgm_tensor *state_value(void *user, const char *name)
{
    const sgm_session *session = user;
    void *memory = sgm__session_state_memory(session, name);
    if (memory == NULL)
        return sgm_session_get(user, name);
    const sgm__session_state *state = sgm__session_find(session, name);
    return sgm_tensor_wrap(state->type.dtype, &state->type.shape, memory, NULL, NULL);
}

static sgm_graph *quantize(const sgm_graph *graph)
{
    int32_t count;
    sgm_graph *quantized = sgm__pass_quantized_products(graph, &count);
    if (quantized == NULL || count > 0)
        return quantized;
    sgm_graph_free(quantized);
    sgm_fail(
        SGM_ERROR_UNSUPPORTED,
        "int8: there is nothing to quantize, as no product of float32 has constant weights of at least 4,096 "
        "numbers (dense layers, recurrent ones and projections of attention have such); leave int8 out");
    return NULL;
}

sgm_status sgm__session_specialise(sgm_session *session, const sgm_graph *graph, uint32_t inference,
                                   sgm_graph **special)
{
    *special = sgm__pass_constant_states(graph, state_value, session);
    if (*special != NULL && (inference & SGM__INFERENCE_INT8) != 0) {
        sgm_graph *constant = *special;
        *special = quantize(constant);
        sgm_graph_free(constant);
    }
    return *special != NULL ? SGM_OK : sgm__last_failure();
}

sgm_program *sgm__session_prepare_inference(sgm_session *session, const sgm_graph *graph, uint32_t inference)
{
    const sgm_handler *handler = session->handler;
    bool large = false;
    if (handler->type->packs == NULL || !handler->type->packs(handler->self))
        inference &= ~(uint32_t)SGM__INFERENCE_ANY_SIZE;
    if (inference == SGM__INFERENCE_CONSTANTS && find_large(graph, &large) != SGM_OK)
        return NULL;
    if (sgm__session_is_outdated(session) && sgm__session_drop_inference(session) != SGM_OK)
        return NULL;
    return sgm__session_prepare_as(session, graph, NULL, large ? 0 : inference);
}

bool sgm__session_is_outdated(const sgm_session *session)
{
    return session->inference_programs > 0 && session->inference_changes != session->changes;
}
