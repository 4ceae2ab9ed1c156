/* write_at: an array with a part of it replaced, from a place on that is known when the program runs.
 *
 * It is how a state is written that grows place by place, such as the keys and values of a sequence that is
 * read step by step (src/network/layers/heads.c). Where nothing reads the old value behind it, the planner
 * lets the result lie where the old one did, also where that is a state (src/handlers/plan/plan_nodes.c): a
 * kernel then writes the part alone. Handlers without a kernel select. */
#include "ops/rules.h"

/* integers: axis. Inputs: all, part, place (one index). `part` is as `all`, but may be shorter along the
 * axis. */
static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count;
    char all[SGM__TYPE_TEXT], part[SGM__TYPE_TEXT];
    SGM_TRY(sgm__want_integers(attributes, 1));
    SGM_TRY(sgm__want_axis(&inputs[0], attributes->integers[0]));
    SGM_TRY(sgm__want_place(&inputs[2]));
    int64_t axis = attributes->integers[0], size = inputs[0].shape.dims[axis];
    sgm_type whole = inputs[1];
    bool fits = whole.shape.rank == inputs[0].shape.rank && whole.shape.dims[axis] >= 1 &&
                whole.shape.dims[axis] <= size;
    whole.shape.dims[axis] = size;
    if (!fits || whole.dtype != inputs[0].dtype || !sgm_shape_equal(&whole.shape, &inputs[0].shape))
        return sgm_fail(
            SGM_ERROR_SHAPE,
            "wants a part that is as %s but for axis %lld, of which it has 1 to %lld entries, got "
            "%s",
            sgm__type_text(&inputs[0], all), (long long)axis, (long long)size,
            sgm__type_text(&inputs[1], part));
    *result = inputs[0];
    return SGM_OK;
}

/* The numbers 0 to count - 1. */
static sgm_value count_up(sgm_graph *graph, int64_t count)
{
    sgm_shape line = sgm_shape_of(count);
    return sgm_iota(graph, SGM_INT64, &line, 0);
}

/* The indices that the part goes to. They are looked up in a list of all that there are, so that one out of
 * range is an error. */
static sgm_value indices_of(sgm_graph *graph, const sgm_value *inputs, int64_t size, int64_t entries)
{
    sgm_value first = sgm_cast(graph, inputs[2], SGM_INT64);
    return sgm_gather(graph, count_up(graph, size), sgm_add(graph, count_up(graph, entries), first), 0);
}

/* Each entry of the axis is one of the part, or one of `all`. */
static sgm_value compose(sgm_graph *graph, const sgm_value *inputs, int32_t count,
                         const sgm_attributes *attributes)
{
    (void)count;
    int32_t axis = (int32_t)attributes->integers[0];
    sgm_shape all = sgm_value_type(graph, inputs[0]).shape, line = {.rank = all.rank};
    int64_t size = all.dims[axis], entries = sgm_value_type(graph, inputs[1]).shape.dims[axis];
    for (int32_t i = 0; i < line.rank; i++)
        line.dims[i] = i == axis ? size : 1;
    sgm_value indices = indices_of(graph, inputs, size, entries), part = inputs[1];
    sgm_value number = sgm_subtract(graph, count_up(graph, size), sgm_slice(graph, indices, 0, 0, 1, 1));
    sgm_value within = sgm_logical_and(graph, sgm_greater_equal(graph, number, sgm_number(graph, 0)),
                                       sgm_less(graph, number, sgm_number(graph, (double)entries)));
    if (entries > 1)
        part = sgm_gather(graph, part, sgm_clip(graph, number, 0, (double)entries - 1), axis);
    return sgm_select(graph, sgm_reshape(graph, within, &line), part, inputs[0]);
}

/* `all` gets nothing where it was replaced, `part` the entries that it became. */
static void gradient(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    int32_t axis = (int32_t)call->attributes->integers[0];
    sgm_value part = call->inputs[1], place = call->inputs[2];
    int64_t size = sgm_value_type(graph, call->output).shape.dims[axis],
            entries = sgm_value_type(graph, part).shape.dims[axis];
    if (call->wanted[0])
        gradients[0] = sgm_write_at(graph, call->gradient, sgm_filled_like(graph, part, 0), place, axis);
    if (call->wanted[1])
        gradients[1] =
            sgm_gather(graph, call->gradient, indices_of(graph, call->inputs, size, entries), axis);
}

const sgm_op sgm__op_write_at = {
    SGM__OP("write_at", 3, "an array with a part in place of what was at an index of an axis"),
    .flags = SGM_OP_IN_PLACE, .compose = compose, .infer = infer, .gradient = gradient};

sgm_value sgm_write_at(sgm_graph *graph, sgm_value all, sgm_value part, sgm_value place, int32_t axis)
{
    if (!sgm__resolve_axis(graph, "write_at", all, &axis))
        return (sgm_value){-1};
    return sgm_record(graph, &sgm__op_write_at, (sgm_value[]){all, part, place}, 3, &SGM__INTEGERS(axis));
}
