/* Kernels that only move elements, and kernels that are the loops of C with work-items for the outer ones.
 *
 * A work-item computes one result. Concatenation writes parts that were not computed in place
 * (plan/plan_buffers.c); padding computes for each result whether it is an element or a zero, so that no pass
 * of zeros comes first as in C.
 */
#include "handlers/device/code/code_internal.h"

/* Operations whose writer in handlers/source/ opens its loops over results by sgm__source_turns, which are
 * work-items here: positions, running sums, iota, poolings. */
sgm_status sgm__device_write_shared(sgm__device_render *r, int32_t node)
{
    sgm__device_begin(r);
    if (!sgm__source_find_kernel(sgm__device_node(r, node)->op)(&r->writer, node))
        r->writer.failed = true;
    return sgm__device_end(r);
}

/* --- concatenation --- */

/* A kernel for each part that does not lie in the result's memory already. */
sgm_status sgm__device_write_concatenate(sgm__device_render *r, int32_t number)
{
    sgm__source_writer *w = &r->writer;
    const sgm__node *node = sgm__device_node(r, number);
    int32_t axis = (int32_t)node->attributes.integers[0];
    int64_t start = 0;
    for (int32_t k = 0; k < node->input_count; k++) {
        const sgm__node *part = sgm__device_operand(r, number, k);
        if (!sgm__source_lies_there(part, node, axis, start) && sgm_shape_elements(&part->type.shape) > 0) {
            const char *from[SGM_MAX_RANK] = {NULL}, *to[SGM_MAX_RANK];
            sgm__device_begin(r);
            sgm__source_turns(w, &part->type.shape, ~(uint32_t)0, from);
            memcpy(to, from, sizeof to);
            if (start > 0)
                to[axis] = sgm__source_plus(w, sgm__source_format(w, "%lld", (long long)start), from[axis]);
            sgm__source_store(w, number, to, sgm__source_element(w, sgm__source_operand(w, number, k), from));
            SGM_TRY(sgm__device_end(r));
        }
        start += part->type.shape.dims[axis];
    }
    return SGM_OK;
}

/* --- padding --- */

/* The result at `to` is element (to - before) / step of the operand along the axis if that is whole and
 * within; otherwise 0. */
sgm_status sgm__device_write_pad(sgm__device_render *r, int32_t number)
{
    sgm__source_writer *w = &r->writer;
    const sgm__node *node = sgm__device_node(r, number), *x = sgm__device_operand(r, number, 0);
    const int64_t *integers = node->attributes.integers;
    const char *to[SGM_MAX_RANK] = {NULL}, *from[SGM_MAX_RANK];
    int64_t size = x->type.shape.dims[integers[0]], step = integers[3] + 1;
    sgm__device_begin(r);
    sgm__source_turns(w, &node->type.shape, ~(uint32_t)0, to);
    memcpy(from, to, sizeof from);
    const char *axis = to[integers[0]] != NULL ? to[integers[0]] : "0";
    sgm__source_line(w, "const %s at = %s - %lld;", sgm__device_counter(r), axis, (long long)integers[1]);
    const char *inside = sgm__source_format(w, "at >= 0 && at < %lld", (long long)(size * step));
    if (step > 1)
        inside = sgm__source_format(w, "%s && at %% %lld == 0", inside, (long long)step);
    from[integers[0]] = step > 1 ? sgm__source_format(w, "at / %lld", (long long)step) : "at";
    const char *value = size > 0 ? sgm__source_element(w, sgm__source_operand(w, number, 0), from) : "0";
    sgm__source_store(w, number, to, sgm__source_format(w, "%s ? %s : 0", inside, value));
    return sgm__device_end(r);
}
