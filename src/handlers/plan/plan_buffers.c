/* Planning: operands of concatenations are computed where the concatenation needs them.
 *
 * Then nothing is left to copy. A concatenation may itself be an operand of another one. It works along the
 * first axis, where each part is one contiguous block, and along the last axis, where a part's rows have gaps
 * between them; such gaps only an elementwise step can write. Recurrent layers, which put together the values
 * of all time steps, gain most. Only for handlers with SGM__HANDLER_PARTS. The result, build->buffers, is
 * used by plan_nodes.c (strides) and plan_places.c (memory).
 */
#include "handlers/plan/plan_build.h"
#include "ops/ops.h"

/* Bytes: parts must begin where vectors may begin, like all other values. */
#define ALIGNMENT 64
/* Bytes of a part's row. Shorter rows are better computed contiguously and copied than written one by one. */
#define MINIMUM_ROW 128

static const sgm__instruction *at(const sgm__plan_build *build, int32_t value)
{
    return &build->graph->instructions[value];
}

/* A value can be computed elsewhere if a step computes it (sources and views are not), if no other
 * concatenation has it already, and if it is no output, as outputs need contiguous memory of their own. */
static bool may_move(const sgm__plan_build *build, int32_t value, const bool *outputs)
{
    return (at(build, value)->op->flags & (SGM_OP_SOURCE | SGM_OP_VIEW)) == 0 && !outputs[value] &&
           build->buffers[value].value < 0;
}

/* Whether the axis is the first that is longer than 1: parts along it are contiguous. */
static bool is_first_axis(const sgm_shape *shape, int64_t axis)
{
    for (int32_t i = 0; i < axis; i++)
        if (shape->dims[i] != 1)
            return false;
    return true;
}

/* Elements of one entry of the axis: the product of all dimensions behind it. */
static int64_t elements_below(const sgm_shape *shape, int64_t axis)
{
    int64_t elements = 1;
    for (int32_t i = (int32_t)axis + 1; i < shape->rank; i++)
        elements *= shape->dims[i];
    return elements;
}

/* Moves the operands of the concatenation `value`, which itself begins `offset` elements into the memory of
 * `buffer`. A part along the first axis that is a reshape of another value lets that value be computed there:
 * its elements are in the same order. */
static void move_operands(sgm__plan_build *build, int32_t value, int32_t buffer, int64_t offset,
                          const bool *outputs)
{
    const sgm__instruction *whole = at(build, value);
    int64_t axis = whole->attributes->integers[0], size = (int64_t)sgm_dtype_size(whole->type.dtype);
    bool blocks = is_first_axis(&whole->type.shape, axis), rows = axis == whole->type.shape.rank - 1;
    for (int32_t k = 0; k < whole->input_count && (blocks || rows); k++) {
        int32_t part = build->graph->operands[whole->first_input + k].index;
        int64_t length = at(build, part)->type.shape.dims[axis], start = offset;
        offset += length * elements_below(&whole->type.shape, axis);
        while (blocks && at(build, part)->op == &sgm__op_reshape)
            part = build->graph->operands[at(build, part)->first_input].index;
        bool fits = start * size % ALIGNMENT == 0 &&
                    (blocks || (sgm__plan_is_fusable(at(build, part)->op) && length * size >= MINIMUM_ROW));
        if (fits && may_move(build, part, outputs))
            build->buffers[part] = (sgm__plan_buffer){buffer, blocks ? -1 : value, start};
    }
}

/* Goes through values from the last to the first, so that an outer concatenation has its place before the
 * inner ones. */
sgm_status sgm__plan_find_buffers(sgm__plan_build *build)
{
    size_t count = build->graph->count + 1;
    build->buffers = sgm__alloc(count * sizeof *build->buffers);
    bool *outputs = sgm__calloc(count, sizeof(bool));
    for (size_t i = 0; i < count && build->buffers != NULL; i++)
        build->buffers[i] = (sgm__plan_buffer){-1, -1, 0};
    bool can = (build->handler->type->flags & SGM__HANDLER_PARTS) != 0;
    if (build->buffers != NULL && outputs != NULL && can) {
        for (size_t i = 0; i < build->graph->output_count; i++)
            outputs[build->graph->outputs[i].value.index] = true;
        for (int32_t i = (int32_t)build->graph->count; i-- > 0;) {
            const sgm__plan_buffer *buffer = &build->buffers[i];
            if (at(build, i)->op == &sgm__op_concatenate)
                move_operands(build, i, buffer->value >= 0 ? buffer->value : i, buffer->offset, outputs);
        }
    }
    sgm_status status = build->buffers != NULL && outputs != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    sgm__free(outputs);
    return status;
}
