/* all_reduce: the sum over the workers that share a minibatch.
 *
 * An instruction only marks where that sum is made: its kernel copies what this worker has, and whoever runs
 * the program for several workers stops behind that step, adds up the copies and writes the sum to each. A
 * program that nobody stops is that of a worker without others. */
#include "ops/rules.h"

/* integers: a number, which no other one in the graph has: two of them never become one, as all workers make
 * the same sums, whatever else is equal for one of them */
static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count;
    SGM_TRY(sgm__want_integers(attributes, 1));
    SGM_TRY(sgm__want_float(&inputs[0]));
    *result = inputs[0];
    return SGM_OK;
}

/* The copy of this worker's part: the sum is made outside of the program. */
static sgm_status forward(const sgm_kernel_call *call)
{
    sgm__array_pack(&call->inputs[0], &call->output);
    return SGM_OK;
}

/* Every worker's summand is in the sum that all costs depend on, so the gradient is the sum of all workers'
 * gradients: all_reduce again. */
static void gradient(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    if (call->wanted[0])
        gradients[0] = sgm__all_reduce(graph, call->gradient);
}

/* It is not in the list of ops/registry.c, as a network cannot name it. */
const sgm_op sgm__op_all_reduce = {
    SGM__OP("all_reduce", 1, "the sum over the workers that share a minibatch"), .flags = SGM_OP_STRIDED,
    .infer = infer, .gradient = gradient, .forward = forward};

/* The number of instructions so far serves as the number that no other one has. */
sgm_value sgm__all_reduce(sgm_graph *graph, sgm_value x)
{
    return sgm__record_one(graph, &sgm__op_all_reduce, x, &SGM__INTEGERS(sgm_graph_count(graph)));
}
