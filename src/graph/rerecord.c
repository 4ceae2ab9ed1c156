/* Compares a new recording with the previous one while it is made: cheaper than recording, and shows that a
 * program can be kept.
 *
 * A dynamic network is recorded at each iteration (src/network/rerecord.c), mostly with the same result.
 * sgm__graph_compare keeps the old recording in place and notes its end in `kept`; sgm__graph_go_to sets the
 * counts back. Recording then asks the sgm__graph_repeats functions, which compare the new thing with the one
 * that lies at the current count, and only advance the count if they are equal. If everything repeats, the
 * graph and the program compiled from it are as they were. At the first difference the rest is dropped and
 * recording goes on as usual, behind the part that was equal. */
#include "graph/graph_internal.h"
#include "tensor/tensor_internal.h"

/* Bytes: names of recordings that differed are never removed, so the graph is cleared when they become many.
 */
#define MAXIMUM_NAMES 65536

sgm__graph_mark sgm__graph_mark_now(const sgm_graph *graph)
{
    return (sgm__graph_mark){.count = graph->count,
                             .operand_count = graph->operand_count,
                             .source_count = graph->source_count,
                             .constant_count = graph->constant_count,
                             .output_count = graph->output_count,
                             .assignment_count = graph->assignment_count};
}

bool sgm__graph_marks_equal(const sgm__graph_mark *a, const sgm__graph_mark *b)
{
    return a->count == b->count && a->operand_count == b->operand_count &&
           a->source_count == b->source_count && a->constant_count == b->constant_count &&
           a->output_count == b->output_count && a->assignment_count == b->assignment_count;
}

bool sgm__graph_compare(sgm_graph *graph)
{
    if (graph->status != SGM_OK || graph->label_depth != 0 || graph->names.length > MAXIMUM_NAMES ||
        graph->attribute_count > SGM__MAXIMUM_ATTRIBUTES)
        return false;
    graph->kept = sgm__graph_mark_now(graph);
    graph->compares = true;
    return true;
}

void sgm__graph_go_to(sgm_graph *graph, const sgm__graph_mark *mark)
{
    graph->count = mark->count;
    graph->operand_count = mark->operand_count;
    graph->source_count = mark->source_count;
    graph->constant_count = mark->constant_count;
    graph->output_count = mark->output_count;
    graph->assignment_count = mark->assignment_count;
}

void sgm__graph_restore(sgm_graph *graph)
{
    sgm__graph_go_to(graph, &graph->kept);
    graph->compares = false;
}

/* Only constants own anything; all else is overwritten by what is recorded next. */
void sgm__graph_drop_kept(sgm_graph *graph)
{
    if (!graph->compares)
        return;
    for (size_t i = graph->constant_count; i < graph->kept.constant_count; i++)
        sgm_tensor_free(graph->constants[i]);
    graph->compares = false;
}

static bool is_source(const sgm_op *op)
{
    return op == &sgm__op_input || op == &sgm__op_state;
}

/* Names, labels and attributes are interned, so offsets and pointers are compared. first_input is compared
 * with the present count, as the old operands must lie exactly where new ones would. */
static bool is_same(const sgm_graph *graph, const sgm__instruction *old, const sgm__instruction *instruction,
                    const sgm_value *inputs)
{
    return old->op == instruction->op && old->input_count == instruction->input_count &&
           (size_t)old->first_input == graph->operand_count && old->label == graph->label_name &&
           old->name == instruction->name && old->constant == instruction->constant &&
           old->type.dtype == instruction->type.dtype &&
           sgm_shape_equal(&old->type.shape, &instruction->type.shape) &&
           old->attributes == instruction->attributes &&
           (old->input_count == 0 || memcmp(graph->operands + old->first_input, inputs,
                                            (size_t)old->input_count * sizeof(sgm_value)) == 0);
}

bool sgm__graph_repeats(sgm_graph *graph, const sgm__instruction *instruction, const sgm_value *inputs)
{
    if (graph->count >= graph->kept.count ||
        !is_same(graph, &graph->instructions[graph->count], instruction, inputs)) {
        sgm__graph_drop_kept(graph);
        return false;
    }
    graph->count++;
    graph->operand_count += (size_t)instruction->input_count;
    graph->source_count += is_source(instruction->op);
    return true;
}

/* Compares the elements, as a constant is a new copy in each recording. */
static bool are_same_tensors(const sgm_tensor *a, const sgm_tensor *b)
{
    sgm_dtype dtype = sgm_tensor_dtype(a);
    const sgm_shape *shape = sgm_tensor_shape(a);
    return dtype == sgm_tensor_dtype(b) && sgm_shape_equal(shape, sgm_tensor_shape(b)) &&
           sgm_tensor_is_contiguous(a) && sgm_tensor_is_contiguous(b) &&
           memcmp(sgm_tensor_const_data(a), sgm_tensor_const_data(b),
                  (size_t)sgm_shape_elements(shape) * sgm_dtype_size(dtype)) == 0;
}

bool sgm__graph_repeats_constant(sgm_graph *graph, const sgm_tensor *constant)
{
    if (graph->constant_count >= graph->kept.constant_count ||
        !are_same_tensors(graph->constants[graph->constant_count], constant)) {
        sgm__graph_drop_kept(graph);
        return false;
    }
    graph->constant_count++;
    return true;
}

bool sgm__graph_repeats_output(sgm_graph *graph, sgm__named output)
{
    const sgm__named *old = graph->outputs + graph->output_count;
    if (graph->output_count >= graph->kept.output_count || old->name != output.name ||
        old->value.index != output.value.index) {
        sgm__graph_drop_kept(graph);
        return false;
    }
    graph->output_count++;
    return true;
}

bool sgm__graph_repeats_assignment(sgm_graph *graph, sgm__assignment assignment)
{
    const sgm__assignment *old = graph->assignments + graph->assignment_count;
    if (graph->assignment_count >= graph->kept.assignment_count ||
        old->state.index != assignment.state.index || old->value.index != assignment.value.index) {
        sgm__graph_drop_kept(graph);
        return false;
    }
    graph->assignment_count++;
    return true;
}
