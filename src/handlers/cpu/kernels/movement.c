/* The operations concatenate, pad and write_at: strided copies into parts of the result.
 *
 * Other movement (slices, transpositions, broadcasts) needs no kernel, as the planner makes views of it
 * (src/handlers/plan/plan_nodes.c). Operands of a concatenation may have been made in its memory already
 * (plan_buffers.c), and are not copied then; if all were, run/compile.c leaves out the step
 * (sgm__cpu_is_put_together). Copies are shared among threads by sgm__cpu_copy (array.c). */
#include "handlers/cpu/cpu.h"
#include "handlers/cpu/kernels/kernels.h"
#include "ops/ops.h"

/* A view of `array`: shape `shape`, beginning at entry `start` of the axis, with every `step`-th entry of it.
 */
static sgm_array part_of(const sgm_array *array, const sgm_shape *shape, int64_t axis, int64_t start,
                         int64_t step)
{
    sgm_array part = *array;
    int64_t offset = start * array->strides[axis];
    part.shape = *shape;
    part.data = (unsigned char *)array->data + offset * (int64_t)sgm_dtype_size(array->dtype);
    part.strides[axis] *= step;
    return part;
}

/* Whether an operand lies in its part of the result already. */
static bool is_there(const sgm_array *from, const sgm_array *to)
{
    bool same = from->data == to->data;
    for (int32_t i = 0; i < from->shape.rank && same; i++)
        same = from->shape.dims[i] == 1 || from->strides[i] == to->strides[i];
    return same;
}

/* The same by places, for all operands, when the program is compiled. */
bool sgm__cpu_is_put_together(const sgm__plan *plan, const sgm__node *node)
{
    bool there = node->op == &sgm__op_concatenate;
    int64_t axis = there ? node->attributes.integers[0] : 0, offset = node->place.offset;
    for (int32_t k = 0; k < node->input_count && there; k++) {
        const sgm__node *part = &plan->nodes[plan->operands[node->first_input + k]];
        there = part->place.store == node->place.store && part->place.index == node->place.index &&
                part->place.offset == offset;
        for (int32_t i = 0; i < node->type.shape.rank && there; i++)
            there = part->type.shape.dims[i] == 1 || part->place.strides[i] == node->place.strides[i];
        offset += part->type.shape.dims[axis] * node->place.strides[axis] *
                  (int64_t)sgm_dtype_size(node->type.dtype);
    }
    return there;
}

static sgm_status run_concatenate(const sgm__cpu_call *call)
{
    int64_t axis = call->node->attributes.integers[0], start = 0;
    for (int32_t i = 0; i < call->input_count; i++) {
        const sgm_shape *shape = &call->inputs[i].shape;
        sgm_array to = part_of(&call->output, shape, axis, start, 1);
        if (!is_there(&call->inputs[i], &to))
            sgm__cpu_copy(call->cpu, &call->inputs[i], &to);
        start += shape->dims[axis];
    }
    return SGM_OK;
}

/* Zeros first, then the operand into its part, with `between` zeros between entries. */
static sgm_status run_pad(const sgm__cpu_call *call)
{
    const int64_t *integers = call->node->attributes.integers; /* axis, before, after, between */
    size_t bytes = (size_t)sgm_shape_elements(&call->output.shape) * sgm_dtype_size(call->output.dtype);
    memset(call->output.data, 0, bytes);
    if (sgm_shape_elements(&call->inputs[0].shape) == 0)
        return SGM_OK;
    sgm_array to = part_of(&call->output, &call->inputs[0].shape, integers[0], integers[1], integers[3] + 1);
    sgm__cpu_copy(call->cpu, &call->inputs[0], &to);
    return SGM_OK;
}

/* What was there before, unless the planner has put the result in its place, then the part. */
static sgm_status run_write_at(const sgm__cpu_call *call)
{
    int64_t axis = call->node->attributes.integers[0], place;
    const sgm_array *all = &call->inputs[0], *part = &call->inputs[1];
    sgm__pool_ready(call->cpu->pool);
    SGM_TRY(sgm__cpu_index(&call->inputs[2], part->shape.dims[axis], axis, all->shape.dims[axis], &place));
    if (all->data != call->output.data)
        sgm__cpu_copy(call->cpu, all, &call->output);
    sgm_array to = part_of(&call->output, &part->shape, axis, place, 1);
    sgm__cpu_copy(call->cpu, part, &to);
    return SGM_OK;
}

const sgm__cpu_kernel sgm__cpu_write_at = {
    .op = &sgm__op_write_at, .types = SGM__CPU_ALL_TYPES, .posts = true, .run = run_write_at};
const sgm__cpu_kernel sgm__cpu_concatenate = {
    .op = &sgm__op_concatenate, .types = SGM__CPU_ALL_TYPES, .run = run_concatenate};
const sgm__cpu_kernel sgm__cpu_pad = {.op = &sgm__op_pad, .types = SGM__CPU_ALL_TYPES, .run = run_pad};
