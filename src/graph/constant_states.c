/* Makes constants of states: a pass, for graphs of networks that only predict.
 *
 * What is computed of constants alone is computed once, and kernels pack constant weights once; neither is
 * possible with states, which may be others in the next run. States that the graph assigns to stay states. */
#include "graph/passes.h"
#include "graph/rebuild.h"

/* Sets `assigned` for each state that the graph assigns to. */
static void find_assigned(const sgm_graph *graph, bool *assigned)
{
    for (size_t i = 0; i < graph->assignment_count; i++)
        assigned[graph->assignments[i].state.index] = true;
}

/* A constant with the value of a state. */
static sgm_value record_constant(sgm__rebuild *work, const sgm__instruction *state, sgm__value_function get,
                                 void *user)
{
    sgm_tensor *tensor = get(user, sgm__graph_string(work->old, state->name));
    if (tensor == NULL)
        return sgm_graph_fail(work->graph, sgm_last_status(), "%s", sgm_last_error());
    sgm__instruction constant = {.op = &sgm__op_constant, .type = state->type};
    constant.constant = sgm__graph_add_constant(work->graph, tensor);
    sgm_tensor_free(tensor);
    return constant.constant >= 0 ? sgm__graph_append(work->graph, &constant, NULL) : (sgm_value){-1};
}

sgm_graph *sgm__pass_constant_states(const sgm_graph *graph, sgm__value_function get, void *user)
{
    sgm__rebuild work;
    bool *assigned = sgm__calloc(graph->count + 1, sizeof *assigned);
    if (assigned == NULL || !sgm__rebuild_begin(&work, graph)) {
        sgm__free(assigned);
        return NULL;
    }
    find_assigned(graph, assigned);
    for (size_t i = 0; i < graph->count && work.graph->status == SGM_OK; i++) {
        const sgm__instruction *instruction = &graph->instructions[i];
        bool constant = instruction->op == &sgm__op_state && !assigned[i];
        sgm__rebuild_map(&work, instruction);
        work.map[i] = constant ? record_constant(&work, instruction, get, user)
                               : sgm__rebuild_transcribe(&work, instruction);
    }
    sgm__free(assigned);
    return sgm__rebuild_finish(&work);
}
