/* Finds what a graph computes of constants alone, cuts it out, and puts results in its place; see
 * constants.h.
 *
 * Sessions do this when they make a program (src/handlers/session_fold.c): weights that are scaled, square
 * roots of statistics and the like are then computed once instead of in each run. */
#include "graph/constants.h"

#include "graph/passes.h"
#include "graph/rebuild.h"
#include "ops/ops.h"

#include <stdio.h>

/* Elements up to which a result may be larger than all that it is made of. */
#define SMALL 65536

/* What several processes compute together is no constant, whatever goes into it. */
static sgm__constancy of_instruction(const sgm_graph *graph, const sgm__instruction *instruction,
                                     const sgm__constancy *known)
{
    if (instruction->op == &sgm__op_constant)
        return SGM__CONSTANTS;
    if (instruction->op == &sgm__op_number)
        return sgm__number_is_live(instruction) ? SGM__CHANGES : SGM__NUMBERS;
    if (instruction->input_count == 0 || instruction->op == &sgm__op_all_reduce)
        return SGM__CHANGES;
    sgm__constancy found = SGM__NUMBERS;
    for (int32_t k = 0; k < instruction->input_count; k++) {
        sgm__constancy operand = known[graph->operands[instruction->first_input + k].index];
        if (operand == SGM__CHANGES)
            return SGM__CHANGES;
        found = operand > found ? operand : found;
    }
    return found;
}

sgm__constancy *sgm__constancy_of(const sgm_graph *graph)
{
    sgm__constancy *constancy = sgm__alloc((graph->count + 1) * sizeof *constancy);
    for (size_t i = 0; i < graph->count && constancy != NULL; i++)
        constancy[i] = of_instruction(graph, &graph->instructions[i], constancy);
    return constancy;
}

static bool is_view(const sgm__instruction *instruction)
{
    return (instruction->op->flags & SGM_OP_VIEW) != 0;
}

/* Elements of the constants that each value is made of; those that it is made of in several ways count as
 * often. */
static void count_sources(const sgm_graph *graph, double *sources)
{
    for (size_t i = 0; i < graph->count; i++) {
        const sgm__instruction *instruction = &graph->instructions[i];
        bool constant = instruction->op == &sgm__op_constant;
        sources[i] = constant ? (double)sgm_shape_elements(&instruction->type.shape) : 0;
        for (int32_t k = 0; k < instruction->input_count; k++)
            sources[i] += sources[graph->operands[instruction->first_input + k].index];
    }
}

/* Backwards, so that readers come before what they read. A value that is too large is computed in each run,
 * and so are those that it is made of unless they are chosen. */
static void choose(const sgm_graph *graph, const sgm__constancy *constancy, const double *sources, bool *read,
                   bool *chosen)
{
    for (size_t i = graph->count; i-- > 0;) {
        const sgm__instruction *instruction = &graph->instructions[i];
        bool large = (double)sgm_shape_elements(&instruction->type.shape) > SMALL + sources[i];
        bool runs = constancy[i] == SGM__CHANGES || (read[i] && (is_view(instruction) || large));
        bool source = (instruction->op->flags & SGM_OP_SOURCE) != 0;
        chosen[i] = read[i] && !runs && !source && constancy[i] == SGM__CONSTANTS;
        for (int32_t k = 0; k < instruction->input_count && runs; k++)
            read[graph->operands[instruction->first_input + k].index] = true;
    }
}

sgm_status sgm__constants_choose(const sgm_graph *graph, const sgm__constancy *constancy, bool *chosen)
{
    bool *read = sgm__calloc(graph->count + 1, sizeof *read);
    double *sources = sgm__alloc((graph->count + 1) * sizeof *sources);
    if (read != NULL && sources != NULL) {
        count_sources(graph, sources);
        choose(graph, constancy, sources, read, chosen);
    }
    sgm_status status = read != NULL && sources != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    sgm__free(read);
    sgm__free(sources);
    return status;
}

const char *sgm__constant_name(size_t value, char text[SGM__CONSTANT_NAME])
{
    snprintf(text, SGM__CONSTANT_NAME, "%zu", value);
    return text;
}

/* Backwards from the chosen values, so that readers come before what they read. NULL: out of memory. */
static bool *find_needed(const sgm_graph *graph, const bool *chosen)
{
    bool *needed = sgm__calloc(graph->count + 1, sizeof *needed);
    for (size_t i = graph->count; i-- > 0 && needed != NULL;) {
        const sgm__instruction *instruction = &graph->instructions[i];
        needed[i] = needed[i] || chosen[i];
        for (int32_t k = 0; k < instruction->input_count && needed[i]; k++)
            needed[graph->operands[instruction->first_input + k].index] = true;
    }
    return needed;
}

sgm_graph *sgm__constants_slice(const sgm_graph *graph, const bool *chosen)
{
    sgm__rebuild work;
    char name[SGM__CONSTANT_NAME];
    bool *needed = find_needed(graph, chosen);
    if (needed == NULL || !sgm__rebuild_begin(&work, graph)) {
        sgm__free(needed);
        return NULL;
    }
    for (size_t i = 0; i < graph->count && work.graph->status == SGM_OK; i++) {
        if (!needed[i])
            continue;
        sgm__rebuild_map(&work, &graph->instructions[i]);
        work.map[i] = sgm__rebuild_transcribe(&work, &graph->instructions[i]);
        if (chosen[i])
            sgm_graph_add_output(work.graph, sgm__constant_name(i, name), work.map[i]);
    }
    sgm__free(needed);
    sgm__rebuild_end(&work);
    return work.graph;
}

/* Appends a constant that keeps the tensor. */
static sgm_value append(sgm__rebuild *work, const sgm__instruction *instruction, sgm_tensor *tensor)
{
    sgm__instruction constant = {.op = &sgm__op_constant, .type = instruction->type};
    if (!sgm__rebuild_label(work, instruction))
        return (sgm_value){-1};
    constant.constant = sgm__graph_add_constant(work->graph, tensor);
    if (constant.constant < 0)
        return (sgm_value){-1};
    return sgm__graph_append(work->graph, &constant, NULL);
}

sgm_graph *sgm__constants_replace(const sgm_graph *graph, const bool *chosen, sgm_tensor *const *tensors)
{
    sgm__rebuild work;
    if (!sgm__rebuild_begin(&work, graph))
        return NULL;
    for (size_t i = 0; i < graph->count && work.graph->status == SGM_OK; i++) {
        sgm__rebuild_map(&work, &graph->instructions[i]);
        work.map[i] = chosen[i] ? append(&work, &graph->instructions[i], tensors[i])
                                : sgm__rebuild_transcribe(&work, &graph->instructions[i]);
    }
    return sgm__rebuild_finish(&work);
}
