/* Planning: values that are only made to be put together are made where they will lie.
 *
 * The operands of a concatenation are computed in its memory, so that nothing is left to copy; a
 * concatenation may lie in another one. Parts along the first axis are whole blocks. Parts along the last one
 * have gaps between their rows; elementwise results can be written so. */
#include "handlers/plan/plan_build.h"
#include "ops/ops.h"

#define ALIGNMENT 64
#define MINIMUM_ROW 128 /* bytes of a part's row that are worth a way of their own */

static const sgm__instruction *at(const sgm__plan_build *build, int32_t value)
{
    return &build->graph->instructions[value];
}

/* It is computed, nowhere else yet, and no output, which has memory of its own. */
static bool may_move(const sgm__plan_build *build, int32_t value, const bool *outputs)
{
    return (at(build, value)->op->flags & (SGM_OP_SOURCE | SGM_OP_VIEW)) == 0 && !outputs[value] &&
           build->buffers[value].value < 0;
}

static bool is_first_axis(const sgm_shape *shape, int64_t axis)
{
    for (int32_t i = 0; i < axis; i++)
        if (shape->dims[i] != 1)
            return false;
    return true;
}

static int64_t elements_below(const sgm_shape *shape, int64_t axis)
{
    int64_t elements = 1;
    for (int32_t i = (int32_t)axis + 1; i < shape->rank; i++)
        elements *= shape->dims[i];
    return elements;
}

/* The operands of a concatenation that lies at `offset` in `buffer`. */
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
