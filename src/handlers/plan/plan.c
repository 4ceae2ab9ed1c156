/* Makes plans: lowers a graph for a handler, runs the parts of the planner, and prints plans.
 *
 * sgm_session_prepare (../session.c) and the export to C (src/infer/export/export_c.c) call sgm__plan_create.
 * The passes that rewrite graphs are in src/graph/passes.h; the parts that turn the lowered graph into nodes,
 * steps and places are listed in plan_build.h. The lowered graph is needed only during planning and is freed
 * at the end.
 */
#include "handlers/plan/plan_build.h"

#include "graph/passes.h"
#include "handlers/host.h"

#include <stdio.h>

/* For sgm__pass_widen: operations that the handler wants computed in float32 between casts. */
static bool widens(void *user, const sgm_op *op, sgm_dtype dtype)
{
    const sgm_handler *handler = user;
    return strcmp(handler->type->support(handler->self, op, dtype), SGM__THROUGH_FLOAT32) == 0;
}

/* For sgm__pass_expand: composed operations that stay one instruction. One that is widened must stay whole,
 * too, as the pass that widens comes after the expansion. */
static bool keeps_whole(void *user, const sgm_op *op, sgm_dtype dtype)
{
    const sgm_handler *handler = user;
    return strcmp(handler->type->support(handler->self, op, dtype), "kernel") == 0 || widens(user, op, dtype);
}

/* Most graphs have no bfloat16 and need no pass that widens it. */
static bool has_bfloat16(const sgm_graph *graph)
{
    for (size_t i = 0; i < graph->count; i++)
        if (graph->instructions[i].type.dtype == SGM_BFLOAT16)
            return true;
    return false;
}

typedef sgm_graph *(*pass)(const sgm_graph *graph);
/* The passes after expansion, in order. Each but the last may leave dead or duplicate instructions, and so is
 * followed by sgm__pass_simplify. */
static const pass passes[] = {
    sgm__pass_powers,   sgm__pass_simplify,           sgm__pass_sums, sgm__pass_simplify, sgm__pass_runs,
    sgm__pass_simplify, sgm__pass_transposed_products};

/* Returns a new graph; NULL: a pass failed, and the thread's error says why. */
static sgm_graph *lower(const sgm_graph *graph, const sgm_handler *handler)
{
    void *user = (void *)(uintptr_t)handler;
    sgm_graph *expanded = sgm__pass_expand(graph, keeps_whole, user);
    if (expanded != NULL && has_bfloat16(expanded)) {
        const sgm__handler_type *type = handler->type;
        const sgm__widening how = {.widens = widens,
                                   .user = user,
                                   .rounds = type->rounds != NULL && type->rounds(handler->self),
                                   .reads_halves =
                                       type->reads_halves != NULL && type->reads_halves(handler->self)};
        sgm_graph *wide = sgm__pass_widen(expanded, &how);
        sgm_graph_free(expanded);
        expanded = wide;
    }
    if (expanded == NULL)
        return NULL;
    for (size_t i = 0; i < sizeof passes / sizeof *passes && expanded != NULL; i++) {
        sgm_graph *better = passes[i](expanded);
        sgm_graph_free(expanded);
        expanded = better;
    }
    return expanded;
}

/* Lists the reads of every root by a counting sort, in O(nodes + operands): count the reads of each root,
 * turn the counts into beginnings, then fill in. The counts are shifted by one place so that after filling,
 * when each beginning has advanced to its end, first_reader[root] is the beginning again. Nodes and operands
 * must not change afterwards. */
static sgm_status index_readers(sgm__plan_build *build)
{
    const sgm__plan *plan = build->plan;
    size_t nodes = (size_t)plan->node_count, reads = 0;
    for (size_t i = 0; i < nodes; i++)
        reads += (size_t)plan->nodes[i].input_count;
    build->first_reader = sgm__calloc(nodes + 2, sizeof(int32_t));
    build->readers = sgm__calloc(reads + 1, sizeof(sgm__plan_reader));
    if (build->first_reader == NULL || build->readers == NULL)
        return SGM_ERROR_MEMORY;
    int32_t *next = build->first_reader + 1;
    for (size_t i = 0; i < nodes; i++)
        for (int32_t k = 0; k < plan->nodes[i].input_count; k++)
            next[build->notes[plan->operands[plan->nodes[i].first_input + k]].root + 1]++;
    for (size_t i = 0; i < nodes; i++)
        next[i + 1] += next[i];
    for (size_t i = 0; i < nodes; i++)
        for (int32_t k = 0; k < plan->nodes[i].input_count; k++) {
            int32_t operand = plan->operands[plan->nodes[i].first_input + k];
            build->readers[next[build->notes[operand].root]++] = (sgm__plan_reader){(int32_t)i, operand};
        }
    return SGM_OK;
}

/* Runs the parts of the planner. A graph has at most as many inputs and states as instructions. */
static sgm_status build_plan(sgm__plan_build *build)
{
    const sgm_graph *graph = build->graph;
    sgm__plan *plan = build->plan;
    plan->inputs = sgm__calloc(graph->count + 1, sizeof(sgm__binding));
    plan->states = sgm__calloc(graph->count + 1, sizeof(sgm__binding));
    plan->outputs = sgm__calloc(graph->output_count + 1, sizeof(sgm__binding));
    build->node_of = sgm__calloc(graph->count + 1, sizeof(int32_t));
    build->products = sgm__calloc(graph->count + 1, sizeof(int32_t));
    if (plan->inputs == NULL || plan->states == NULL || plan->outputs == NULL || build->node_of == NULL ||
        build->products == NULL)
        return SGM_ERROR_MEMORY;
    SGM_TRY(sgm__plan_find_buffers(build));
    SGM_TRY(sgm__plan_build_nodes(build));
    SGM_TRY(index_readers(build));
    SGM_TRY(sgm__plan_build_steps(build));
    return sgm__plan_build_places(build);
}

/* All that is needed only during planning is freed here, in success and failure. */
sgm_status sgm__plan_lowered(const sgm_graph *lowered, const sgm_handler *handler, sgm__plan **plan)
{
    sgm__plan_build build = {.graph = lowered, .handler = handler, .plan = sgm__calloc(1, sizeof(sgm__plan))};
    sgm_status status = build.plan != NULL ? build_plan(&build) : SGM_ERROR_MEMORY;
    sgm__free(build.first_reader);
    sgm__free(build.readers);
    sgm__free(build.notes);
    sgm__free(build.node_of);
    sgm__free(build.products);
    sgm__free(build.buffers);
    if (status != SGM_OK) {
        sgm__plan_free(build.plan);
        return status;
    }
    build.plan->unsaved_bytes = build.plan->arena_bytes;
    *plan = build.plan;
    return SGM_OK;
}

sgm_status sgm__plan_create_within(const sgm_graph *graph, const sgm_handler *handler,
                                   const sgm__memory_budget *budget, sgm__plan **plan)
{
    SGM_TRY(sgm_graph_status(graph));
    sgm_graph *lowered = lower(graph, handler);
    if (lowered == NULL)
        return sgm_last_status() != SGM_OK ? sgm_last_status() : SGM_ERROR_MEMORY;
    sgm_status status = sgm__plan_lowered(lowered, handler, plan);
    if (status == SGM_OK && budget != NULL)
        status = sgm__plan_save_memory(lowered, handler, budget, plan);
    sgm_graph_free(lowered);
    return status;
}

sgm_status sgm__plan_create(const sgm_graph *graph, const sgm_handler *handler, sgm__plan **plan)
{
    return sgm__plan_create_within(graph, handler, NULL, plan);
}

void sgm__plan_free(sgm__plan *plan)
{
    if (plan == NULL)
        return;
    sgm__free(plan->nodes);
    sgm__free(plan->operands);
    sgm__free(plan->order);
    sgm__free(plan->steps);
    sgm__free(plan->inputs);
    sgm__free(plan->states);
    sgm__free(plan->outputs);
    sgm__plan_end_fills(plan);
    sgm__host_release(NULL, plan->constants);
    sgm__text_free(&plan->names);
    sgm__free(plan);
}

const char *sgm__plan_string(const sgm__plan *plan, int32_t name)
{
    return plan->names.data + name;
}

char *sgm__plan_describe(const sgm__plan *plan, int32_t node, char *buffer, size_t size)
{
    const char *label = sgm__plan_string(plan, plan->nodes[node].label);
    snprintf(buffer, size, "instruction %%%d = %s%s%s", node, plan->nodes[node].op->name,
             *label != '\0' ? ", layer " : "", label);
    return buffer;
}

int32_t sgm__plan_readers(const sgm__plan *plan, int32_t node)
{
    int32_t readers = 0;
    for (int32_t i = 0; i < plan->operand_count; i++)
        readers += plan->operands[i] == node;
    for (int32_t i = 0; i < plan->output_count; i++)
        readers += plan->outputs[i].node == node;
    return readers;
}

bool sgm__step_makes(const sgm__plan *plan, const sgm__step *step, int32_t node)
{
    for (int32_t i = 0; i < step->count; i++)
        if (plan->order[step->first + i] == node)
            return true;
    return false;
}

int64_t sgm__plan_memory_bytes(const sgm__plan *plan, const sgm__place *place)
{
    switch (place->store) {
    case SGM__STORE_ARENA:
        return plan->arena_bytes;
    case SGM__STORE_CONSTANT:
        return plan->constant_bytes;
    case SGM__STORE_INPUT:
        return place->index < plan->input_count ? (int64_t)sgm__type_bytes(&plan->inputs[place->index].type)
                                                : -1;
    case SGM__STORE_STATE:
        return place->index < plan->state_count ? (int64_t)sgm__type_bytes(&plan->states[place->index].type)
                                                : -1;
    case SGM__STORE_NONE:
        break;
    }
    return -1;
}

sgm__span sgm__node_span(const sgm__node *node)
{
    int64_t size = (int64_t)sgm_dtype_size(node->type.dtype), stride = 1;
    sgm__span span = {node->place.offset, node->place.offset, false};
    if (sgm_shape_elements(&node->type.shape) == 0)
        return span;
    span.last += size;
    for (int32_t i = node->type.shape.rank; i-- > 0;) {
        int64_t dim = node->type.shape.dims[i], reach = (dim - 1) * node->place.strides[i] * size;
        *(reach < 0 ? &span.first : &span.last) += reach;
        span.gaps = span.gaps || (dim != 1 && node->place.strides[i] != stride);
        stride *= dim;
    }
    return span;
}

sgm_array sgm__plan_array(const sgm__plan *plan, int32_t node, const sgm__memory *memory)
{
    const sgm__node *value = &plan->nodes[node];
    sgm_array array = {.dtype = value->type.dtype,
                       .shape = value->type.shape,
                       .data = sgm__place_address(&value->place, memory)};
    memcpy(array.strides, value->place.strides, sizeof array.strides);
    return array;
}

/* --- text --- */

/* The name of an input or state; "?" if the index is out of range. */
static const char *binding_name(const sgm__plan *plan, const sgm__binding *bindings, int32_t count,
                                int32_t index)
{
    return index < count ? sgm__plan_string(plan, bindings[index].name) : "?";
}

/* "at 4096" means the offset in the arena, in bytes; "in passing" a value that is never in memory. */
static void append_place(sgm__text *text, const sgm__plan *plan, const sgm__node *node)
{
    switch (node->place.store) {
    case SGM__STORE_NONE:
        sgm__text_append(text, "in passing");
        break;
    case SGM__STORE_ARENA:
        sgm__text_append(text, "at %lld", (long long)node->place.offset);
        break;
    case SGM__STORE_INPUT:
        sgm__text_append(text, "input '%s'",
                         binding_name(plan, plan->inputs, plan->input_count, node->place.index));
        break;
    case SGM__STORE_STATE:
        sgm__text_append(text, "state '%s'",
                         binding_name(plan, plan->states, plan->state_count, node->place.index));
        break;
    case SGM__STORE_CONSTANT:
        sgm__text_append(text, "constant at %lld", (long long)node->place.offset);
        break;
    }
}

/* A line such as "%12 = add %3 %7 : float32 (100, 10) at 4096  # 2-dense". */
static void append_node(sgm__text *text, const sgm__plan *plan, int32_t index)
{
    const sgm__node *node = &plan->nodes[index];
    char shape[128];
    sgm__text_append(text, "  %%%d = %s", index, node->op->name);
    for (int32_t k = 0; k < node->input_count; k++)
        sgm__text_append(text, " %%%d", plan->operands[node->first_input + k]);
    sgm__text_append(text, " : %s %s ", sgm_dtype_name(node->type.dtype),
                     sgm_shape_text(&node->type.shape, shape, sizeof shape));
    append_place(text, plan, node);
    const char *label = sgm__plan_string(plan, node->label);
    sgm__text_append(text, "%s%s\n", *label != '\0' ? "  # " : "", label);
}

char *sgm__plan_text(const sgm__plan *plan)
{
    sgm__text text = {0};
    sgm__text_append(&text, "sources and views\n");
    for (int32_t i = 0; i < plan->node_count; i++)
        if ((plan->nodes[i].op->flags & (SGM_OP_SOURCE | SGM_OP_VIEW)) != 0)
            append_node(&text, plan, i);
    for (int32_t s = 0; s < plan->step_count; s++) {
        sgm__text_append(&text, "step %d%s\n", s,
                         plan->steps[s].kind == SGM__STEP_ELEMENTWISE ? " elementwise" : "");
        for (int32_t p = 0; p < plan->steps[s].count; p++)
            append_node(&text, plan, plan->order[plan->steps[s].first + p]);
    }
    for (int32_t i = 0; i < plan->output_count; i++)
        sgm__text_append(&text, "output '%s' = %%%d\n", sgm__plan_string(plan, plan->outputs[i].name),
                         plan->outputs[i].node);
    return sgm__text_take(&text);
}
