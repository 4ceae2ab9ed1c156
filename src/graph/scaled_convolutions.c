/* Takes constant factors and terms of a convolution's channels into its weights and biases: a pass.
 *
 * convolution(x, w) * f is convolution(x, w * f), and convolution(x, w) + c a convolution with biases, where
 * f and c are one number, or one for each channel. So a batch norm that predicts, whose statistics are known,
 * costs nothing behind a convolution. Only where weights, biases, factors and terms are constant: what is
 * recorded here is then computed once (src/handlers/session_fold.c); and only where nothing else reads the
 * convolution. Results differ from the original's in their last digits. */
#include "graph/constants.h"
#include "graph/passes.h"
#include "graph/rebuild.h"
#include "ops/ops.h"

#include <sigma/graph.h>

/* What the pass knows of the old graph, by value. */
typedef struct search {
    sgm__rebuild work;
    sgm__constancy *constancy;
    int32_t *reads; /* how many operands and ends it is */
    bool *ready;    /* in the new graph it is a convolution, all of whose operands but x are constant */
} search;

static const sgm__instruction *at(const search *s, sgm_value value)
{
    return &s->work.old->instructions[value.index];
}

static void count_reads(const sgm_graph *graph, int32_t *reads)
{
    for (size_t i = 0; i < graph->operand_count; i++)
        reads[graph->operands[i].index]++;
    for (size_t i = 0; i < graph->output_count; i++)
        reads[graph->outputs[i].value.index]++;
    for (size_t i = 0; i < graph->assignment_count; i++)
        reads[graph->assignments[i].value.index]++;
}

static bool is_ready_convolution(const search *s, const sgm__instruction *instruction)
{
    bool ready = instruction->op == &sgm__op_convolution && sgm_dtype_is_float(instruction->type.dtype);
    for (int32_t k = 1; k < instruction->input_count && ready; k++)
        ready = s->constancy[s->work.old->operands[instruction->first_input + k].index] != SGM__CHANGES;
    return ready;
}

/* Whether a constant operand has one number, or one for each channel (the second axis) of a result of this
 * rank; *numbers is the value before the broadcast that makes it fit. */
static bool is_by_channel(const search *s, sgm_value value, int32_t rank, sgm_value *numbers)
{
    if (s->constancy[value.index] == SGM__CHANGES)
        return false;
    while (at(s, value)->op == &sgm__op_broadcast)
        value = s->work.old->operands[at(s, value)->first_input];
    const sgm_shape *shape = &at(s, value)->type.shape;
    for (int32_t i = 0; i < shape->rank; i++)
        if (shape->dims[i] != 1 && i + rank - shape->rank != 1)
            return false;
    *numbers = value;
    return true;
}

/* Finds a convolution (a value of the old graph) that only this instruction reads, and what it does to it. */
static bool find_change(const search *s, const sgm__instruction *instruction, sgm_value *convolution,
                        sgm_value *numbers)
{
    const sgm_op *op = instruction->op;
    bool commutes = op == &sgm__op_multiply || op == &sgm__op_add;
    if (!commutes && op != &sgm__op_divide && op != &sgm__op_subtract)
        return false;
    const sgm_value *operands = s->work.old->operands + instruction->first_input;
    for (int32_t k = 0; k <= (int32_t)commutes; k++)
        if (s->ready[operands[k].index] && s->reads[operands[k].index] == 1 &&
            is_by_channel(s, operands[1 - k], instruction->type.shape.rank, numbers)) {
            *convolution = operands[k];
            return true;
        }
    return false;
}

/* weights * numbers or weights / numbers, one of them for each filter. */
static sgm_value scale_weights(sgm_graph *graph, const sgm_op *op, sgm_value weights, sgm_value numbers)
{
    sgm_type type = sgm_value_type(graph, numbers);
    sgm_shape by_filter = {.rank = type.shape.rank > 0 ? sgm_value_type(graph, weights).shape.rank : 0};
    for (int32_t i = 0; i < by_filter.rank; i++)
        by_filter.dims[i] = i == 0 ? type.shape.dims[0] : 1;
    return sgm_record(graph, op, (sgm_value[]){weights, sgm_reshape(graph, numbers, &by_filter)}, 2, NULL);
}

/* Records the convolution with other weights and biases in place of the instruction behind it. `numbers` are
 * the new graph's, as is the convolution. */
static sgm_value record(sgm__rebuild *work, const sgm__instruction *instruction, sgm_value convolution,
                        sgm_value numbers)
{
    sgm_graph *graph = work->graph;
    const sgm_op *op = instruction->op;
    if (!sgm_value_exists(convolution) || !sgm__rebuild_label(work, instruction))
        return (sgm_value){-1};
    const sgm__instruction old =
        graph->instructions[convolution.index]; /* a copy: recording moves the array */
    sgm_value inputs[3] = {{-1}, {-1}, {-1}};
    memcpy(inputs, graph->operands + old.first_input, (size_t)old.input_count * sizeof *inputs);
    int64_t filters = sgm_value_type(graph, inputs[1]).shape.dims[0];
    sgm_shape one = {.rank = 0}, each = sgm_shape_of(filters);
    sgm_type type = sgm_value_type(graph, numbers);
    numbers = sgm_reshape(graph, numbers, sgm_shape_elements(&type.shape) == 1 ? &one : &each);
    if (op == &sgm__op_multiply || op == &sgm__op_divide)
        inputs[1] = scale_weights(graph, op, inputs[1], numbers);
    if (sgm_value_exists(inputs[2]))
        inputs[2] = sgm_record(graph, op, (sgm_value[]){inputs[2], numbers}, 2, NULL);
    else if (op == &sgm__op_add || op == &sgm__op_subtract)
        inputs[2] = sgm_broadcast(graph, op == &sgm__op_add ? numbers : sgm_negate(graph, numbers), &each);
    return sgm_record(graph, &sgm__op_convolution, inputs, sgm_value_exists(inputs[2]) ? 3 : 2,
                      old.attributes);
}

static void rebuild(search *s)
{
    sgm__rebuild *work = &s->work;
    for (size_t i = 0; i < work->old->count && work->graph->status == SGM_OK; i++) {
        const sgm__instruction *instruction = &work->old->instructions[i];
        sgm_value convolution, numbers;
        sgm__rebuild_map(work, instruction);
        bool changes = find_change(s, instruction, &convolution, &numbers);
        s->ready[i] = changes || is_ready_convolution(s, instruction);
        work->map[i] = changes
                           ? record(work, instruction, work->map[convolution.index], work->map[numbers.index])
                           : sgm__rebuild_transcribe(work, instruction);
    }
}

sgm_graph *sgm__pass_scaled_convolutions(const sgm_graph *graph)
{
    search s = {.constancy = sgm__constancy_of(graph)};
    s.reads = sgm__calloc(graph->count + 1, sizeof *s.reads);
    s.ready = sgm__calloc(graph->count + 1, sizeof *s.ready);
    sgm_graph *changed = NULL;
    if (s.constancy != NULL && s.reads != NULL && s.ready != NULL && sgm__rebuild_begin(&s.work, graph)) {
        count_reads(graph, s.reads);
        rebuild(&s);
        changed = sgm__rebuild_finish(&s.work);
    }
    sgm__free(s.constancy);
    sgm__free(s.reads);
    sgm__free(s.ready);
    return changed;
}
