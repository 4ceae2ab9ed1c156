/* Makes constants of states: a pass, for graphs of networks that only predict.
 *
 * What is computed of constants alone is computed once, and kernels pack constant weights once; neither is
 * possible with states, which may be others in the next run. States that the graph assigns to stay states,
 * and so does a table for those who look rows up in it: nothing is made of it, and programs would each have a
 * copy. */
#include "graph/passes.h"
#include "graph/rebuild.h"
#include "ops/ops.h"

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

/* Whether rows are looked up in operand 0, which would be a constant. */
static bool looks_up(const sgm_graph *graph, const sgm__instruction *instruction, const bool *assigned)
{
    if (instruction->op != &sgm__op_gather)
        return false;
    int32_t table = graph->operands[instruction->first_input].index;
    return graph->instructions[table].op == &sgm__op_state && !assigned[table];
}

/* The instruction itself. A table is recorded as the state that it is, by the first who reads it. */
static sgm_value transcribe(sgm__rebuild *work, const sgm__instruction *instruction, const bool *assigned,
                            sgm_value *tables)
{
    if (!looks_up(work->old, instruction, assigned)) {
        sgm__rebuild_map(work, instruction);
        return sgm__rebuild_transcribe(work, instruction);
    }
    int32_t table = work->old->operands[instruction->first_input].index;
    if (tables[table].index < 0)
        tables[table] = sgm__rebuild_transcribe(work, &work->old->instructions[table]);
    sgm__rebuild_map(work, instruction);
    work->inputs[0] = tables[table];
    return sgm__rebuild_transcribe(work, instruction);
}

static void rebuild(sgm__rebuild *work, const bool *assigned, sgm_value *tables, sgm__value_function get,
                    void *user)
{
    const sgm_graph *graph = work->old;
    for (size_t i = 0; i < graph->count && work->graph->status == SGM_OK; i++) {
        const sgm__instruction *instruction = &graph->instructions[i];
        bool constant = instruction->op == &sgm__op_state && !assigned[i];
        tables[i] = (sgm_value){-1};
        work->map[i] = constant ? record_constant(work, instruction, get, user)
                                : transcribe(work, instruction, assigned, tables);
    }
}

sgm_graph *sgm__pass_constant_states(const sgm_graph *graph, sgm__value_function get, void *user)
{
    sgm__rebuild work;
    bool *assigned = sgm__calloc(graph->count + 1, sizeof *assigned);
    sgm_value *tables = sgm__alloc((graph->count + 1) * sizeof *tables);
    bool begun = assigned != NULL && tables != NULL && sgm__rebuild_begin(&work, graph);
    if (begun) {
        find_assigned(graph, assigned);
        rebuild(&work, assigned, tables, get, user);
    }
    sgm__free(assigned);
    sgm__free(tables);
    return begun ? sgm__rebuild_finish(&work) : NULL;
}
