/* Implements the frame of all passes: an old graph, a new one, and where the values of the old one are in the
 * new one.
 *
 * See rebuild.h for how a pass uses it. Names and labels are interned anew, constants are shared (retained).
 * The new graph keeps the first failure as every graph does, so a pass checks graph->status in its loop and
 * the rest is left to sgm__rebuild_finish. */
#include "graph/rebuild.h"

void sgm__rebuild_end(sgm__rebuild *work)
{
    sgm__free(work->map);
    sgm__free(work->inputs);
    sgm__free(work->buckets);
}

bool sgm__rebuild_begin(sgm__rebuild *work, const sgm_graph *old)
{
    size_t count = old->count + 1, widest = 1;
    for (size_t i = 0; i < old->count; i++)
        if ((size_t)old->instructions[i].input_count > widest)
            widest = (size_t)old->instructions[i].input_count;
    *work = (sgm__rebuild){.old = old, .graph = sgm_graph_create()};
    work->map = sgm__alloc(count * sizeof(sgm_value));
    work->inputs = sgm__alloc(widest * sizeof(sgm_value));
    if (work->graph == NULL || work->map == NULL || work->inputs == NULL) {
        sgm_graph_free(work->graph);
        sgm__rebuild_end(work);
        return false;
    }
    for (size_t i = 0; i < count; i++)
        work->map[i] = (sgm_value){-1};
    return true;
}

void sgm__rebuild_map(sgm__rebuild *work, const sgm__instruction *instruction)
{
    for (int32_t k = 0; k < instruction->input_count; k++)
        work->inputs[k] = work->map[work->old->operands[instruction->first_input + k].index];
}

/* Instructions keep the label of the layer that recorded them; append() takes it from the graph, so it is set
 * there. */
sgm_value sgm__rebuild_transcribe(sgm__rebuild *work, const sgm__instruction *instruction)
{
    sgm__instruction copy = *instruction;
    if (instruction->name > 0)
        copy.name = sgm__graph_name(work->graph, sgm__graph_string(work->old, instruction->name));
    if (instruction->constant >= 0)
        copy.constant = sgm__graph_add_constant(work->graph, work->old->constants[instruction->constant]);
    work->graph->label_name = sgm__graph_name(work->graph, sgm__graph_string(work->old, instruction->label));
    if (copy.name < 0 || work->graph->label_name < 0 || (instruction->constant >= 0 && copy.constant < 0))
        return sgm_graph_fail(work->graph, SGM_ERROR_MEMORY, "no memory to copy a graph of %zu instructions",
                              work->old->count);
    return sgm__graph_append(work->graph, &copy, work->inputs);
}

/* Assignments before outputs, each in their old order: the structural hash depends on it. */
static void transcribe_ends(sgm__rebuild *work)
{
    const sgm_graph *old = work->old;
    for (size_t i = 0; i < old->assignment_count; i++)
        sgm_assign(work->graph, work->map[old->assignments[i].state.index],
                   work->map[old->assignments[i].value.index]);
    for (size_t i = 0; i < old->output_count; i++)
        sgm_graph_add_output(work->graph, sgm__graph_string(old, old->outputs[i].name),
                             work->map[old->outputs[i].value.index]);
}

/* Verifying every pass's result costs time, so only builds with assertions do it. */
sgm_graph *sgm__rebuild_finish(sgm__rebuild *work)
{
    transcribe_ends(work);
    sgm_graph *graph = work->graph;
    sgm__rebuild_end(work);
    sgm_status status = sgm_graph_status(graph);
#ifndef NDEBUG
    if (status == SGM_OK)
        status = sgm_graph_verify(graph);
#endif
    if (status == SGM_OK)
        return graph;
    sgm_graph_free(graph);
    return NULL;
}

/* For passes that record with sgm_record and its like instead of transcribing. */
bool sgm__rebuild_label(sgm__rebuild *work, const sgm__instruction *instruction)
{
    work->graph->label_name = sgm__graph_name(work->graph, sgm__graph_string(work->old, instruction->label));
    if (work->graph->label_name >= 0)
        return true;
    sgm_graph_fail(work->graph, SGM_ERROR_MEMORY, "no memory for labels");
    return false;
}
