/* What a program computes of constants alone is computed here, once, when the program is made.
 *
 * The constant part of the graph becomes programs of its own on the same handler, so its results have the
 * bits that each run would have given; they are put into the graph as constants. A graph that has nothing to
 * compute of constants, as those of training have, is left as it is. A program of constants alone folds
 * nothing, as only what is read by something that changes is chosen: so this does not call itself again. */
#include "handlers/session.h"

#include "graph/constants.h"
#include "graph/passes.h"

/* Bytes of results that one program makes, about. A program holds what it reads: one for all results would
 * hold all weights of a network once more. */
#define MAXIMUM_RESULTS ((int64_t)32 << 20)

static bool any(const bool *chosen, size_t count)
{
    bool found = false;
    for (size_t i = 0; i < count; i++)
        found = found || chosen[i];
    return found;
}

/* Runs the slice and reads the chosen values. */
static sgm_status compute(sgm_session *session, const sgm_graph *graph, const sgm_graph *slice,
                          const bool *chosen, sgm_tensor **tensors)
{
    char name[SGM__CONSTANT_NAME];
    sgm_program *program = sgm_session_prepare(session, slice);
    if (program == NULL)
        return sgm__last_failure();
    SGM_TRY(sgm_session_run(session, program));
    for (size_t i = 0; i < graph->count; i++) {
        const sgm_type *type = &graph->instructions[i].type;
        if (!chosen[i])
            continue;
        tensors[i] = sgm_tensor_create(type->dtype, &type->shape);
        if (tensors[i] == NULL)
            return sgm__last_failure();
        SGM_TRY(sgm_session_read(session, program, sgm__constant_name(i, name), tensors[i]));
    }
    return SGM_OK;
}

/* In a session of its own, so that all memory is free again afterwards. */
static sgm_status compute_apart(sgm_handler *handler, const sgm_graph *graph, const bool *chosen,
                                sgm_tensor **tensors)
{
    sgm_graph *slice = sgm__constants_slice(graph, chosen);
    sgm_session *session = slice != NULL ? sgm_session_create(handler) : NULL;
    sgm_status status =
        session != NULL ? compute(session, graph, slice, chosen, tensors) : sgm__last_failure();
    sgm_session_free(session);
    sgm_graph_free(slice);
    return status;
}

/* Moves chosen values from `*at` on to `some`, which is false for all, up to MAXIMUM_RESULTS; at least one,
 * if there is one. */
static void take_some(const sgm_graph *graph, const bool *chosen, size_t *at, bool *some)
{
    int64_t bytes = 0;
    for (; *at < graph->count && bytes < MAXIMUM_RESULTS; ++*at) {
        some[*at] = chosen[*at];
        bytes += chosen[*at] ? (int64_t)sgm__type_bytes(&graph->instructions[*at].type) : 0;
    }
}

static sgm_status compute_all(sgm_handler *handler, const sgm_graph *graph, const bool *chosen,
                              sgm_tensor **tensors)
{
    bool *some = sgm__alloc((graph->count + 1) * sizeof *some);
    sgm_status status = some != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    for (size_t at = 0; at < graph->count && status == SGM_OK;) {
        memset(some, 0, graph->count * sizeof *some);
        take_some(graph, chosen, &at, some);
        if (any(some, graph->count))
            status = compute_apart(handler, graph, some, tensors);
    }
    sgm__free(some);
    return status;
}

static sgm_graph *fold(sgm_handler *handler, const sgm_graph *graph, const bool *chosen)
{
    sgm_tensor **tensors = sgm__calloc(graph->count + 1, sizeof *tensors);
    sgm_graph *folded = NULL;
    if (tensors != NULL && compute_all(handler, graph, chosen, tensors) == SGM_OK)
        folded = sgm__constants_replace(graph, chosen, tensors);
    for (size_t i = 0; i < graph->count && tensors != NULL; i++)
        sgm_tensor_free(tensors[i]);
    sgm__free(tensors);
    return folded;
}

/* As sgm__session_fold, of a graph whose convolutions are scaled. */
static sgm_status fold_scaled(sgm_handler *handler, const sgm_graph *graph, sgm_graph **folded)
{
    sgm__constancy *constancy = sgm__constancy_of(graph);
    bool *chosen = sgm__calloc(graph->count + 1, sizeof *chosen);
    sgm_status status = SGM_ERROR_MEMORY;
    if (constancy != NULL && chosen != NULL) {
        status = sgm__constants_choose(graph, constancy, chosen);
        if (status == SGM_OK && any(chosen, graph->count)) {
            *folded = fold(handler, graph, chosen);
            status = *folded != NULL ? SGM_OK : sgm__last_failure();
        }
    }
    sgm__free(constancy);
    sgm__free(chosen);
    return status;
}

sgm_status sgm__session_fold(sgm_handler *handler, const sgm_graph *graph, sgm_graph **folded)
{
    *folded = NULL;
    if (graph->constant_count == 0)
        return SGM_OK;
    bool scales = (handler->type->flags & SGM__HANDLER_SCALES) != 0;
    sgm_graph *scaled = scales ? sgm__pass_scaled_convolutions(graph) : NULL;
    sgm_graph *simple = scaled != NULL || !scales ? sgm__pass_simplify(scales ? scaled : graph) : NULL;
    sgm_status status = simple != NULL ? fold_scaled(handler, simple, folded) : sgm__last_failure();
    sgm_graph_free(scaled);
    sgm_graph_free(simple);
    return status;
}
