/* The built-in operations, and what their attributes hold. Internal.
 *
 * | operation                      | integers                                  | numbers |
 * | cast                           | dtype                                     |         |
 * | reduce_sum, _max, _min         | bit mask of axes, keep                    |         |
 * | arg_max, arg_min               | axis                                      |         |
 * | cumulative_sum                 | axis, reverse                             |         |
 * | reshape, broadcast             | dims of the result                        |         |
 * | permute                        | axes                                      |         |
 * | slice                          | axis, start, stop, step (start <= stop)   |         |
 * | flip, concatenate, gather, write_at | axis                                 |         |
 * | pad                            | axis, before, after, between              |         |
 * | scatter_add                    | axis, size                                |         |
 * | argsort                        | axis, descending                          |         |
 * | iota                           | dtype, axis, dims                         |         |
 * | one_hot                        | dtype, classes                            |         |
 * | all_reduce                     | a number that no other one has            |         |
 * | random_uniform                 | stream, dtype, dims                       |         |
 * | matmul                         | 1 if the right operand is rounded, or none |         |
 * | softmax family, accuracy, attention_at |                                   |         |
 * | layer_norm, rms_norm, gradients   |                                           | epsilon |
 * | self_attention, its gradient      | heads, causal                             |         |
 * | ctc and its parts              | blank, skip                               |         |
 * | convolution and pooling        | see ops/window.h                          |         |
 *
 * Only the planner records a matmul that rounds its right operand (float32) to what bfloat16 can say, and
 * only for handlers that say that they do so (`rounds` in handlers/handler.h).
 *
 * Axes are not negative here. Inputs of random_uniform: seed, step (int64, rank 0); element i is the 32-bit
 * word i % 4 of sgm__philox(seed, step, stream << 40 | i / 4), its upper 24 bits divided by 2^24.
 */
#ifndef SGM_OPS_OPS_H
#define SGM_OPS_OPS_H

#include "base/base.h"
#include "graph/graph_internal.h"
#include <sigma/graph.h>

/* Stands in int64 for a field's number that is a fraction, where a class or a label was expected; one_hot
 * and ctc fail when they meet it. */
#define SGM__NO_WHOLE_NUMBER 4611686018427387904.0 /* 2^62 */

/* Operations with loops of their own that are not elementwise; every handler computes them as one
 * instruction. */
#define SGM__NATIVE_LIST(X)                                                                                  \
    X(reduce_sum)                                                                                            \
    X(reduce_max)                                                                                            \
    X(reduce_min)                                                                                            \
    X(arg_max)                                                                                               \
    X(arg_min)                                                                                               \
    X(accuracy)                                                                                              \
    X(cumulative_sum)                                                                                        \
    X(reshape)                                                                                               \
    X(permute)                                                                                               \
    X(broadcast)                                                                                             \
    X(slice)                                                                                                 \
    X(flip)                                                                                                  \
    X(pad)                                                                                                   \
    X(concatenate)                                                                                           \
    X(gather)                                                                                                \
    X(scatter_add)                                                                                           \
    X(argsort)                                                                                               \
    X(iota)                                                                                                  \
    X(one_hot)                                                                                               \
    X(matmul)                                                                                                \
    X(convolution)                                                                                           \
    X(convolution_input_gradient)                                                                            \
    X(convolution_weights_gradient)                                                                          \
    X(max_pooling)                                                                                           \
    X(max_pooling_pick)                                                                                      \
    X(max_pooling_gradient)                                                                                  \
    X(average_pooling)                                                                                       \
    X(average_pooling_gradient)                                                                              \
    X(inverse)                                                                                               \
    X(determinant)                                                                                           \
    X(ctc_alphas)                                                                                            \
    X(ctc_states)                                                                                            \
    X(ctc_classes)                                                                                           \
    X(random_uniform)
/* Operations that are composed of others, but stay one instruction for handlers that have a kernel for them.
 */
#define SGM__WHOLE_LIST(X)                                                                                   \
    X(softplus)                                                                                              \
    X(softmax)                                                                                               \
    X(log_softmax)                                                                                           \
    X(softmax_cross_entropy)                                                                                 \
    X(softmax_cross_entropy_gradient)                                                                        \
    X(class_cross_entropy)                                                                                   \
    X(class_cross_entropy_gradient)                                                                          \
    X(layer_norm)                                                                                            \
    X(layer_norm_gradient)                                                                                   \
    X(rms_norm)                                                                                              \
    X(rms_norm_gradient)                                                                                     \
    X(self_attention)                                                                                        \
    X(self_attention_gradient)                                                                               \
    X(packed_attention)                                                                                      \
    X(packed_attention_gradient)                                                                             \
    X(attention_at)                                                                                          \
    X(write_at)                                                                                              \
    X(quantized_matmul)                                                                                      \
    X(code_matmul)                                                                                           \
    X(ctc)

#define SGM__DECLARE_OP(name) extern const sgm_op sgm__op_##name;
#define SGM__DECLARE_DOCUMENTED_OP(name, doc) SGM__DECLARE_OP(name)
SGM_UNARY_LIST(SGM__DECLARE_DOCUMENTED_OP)
SGM_COMPOSED_UNARY_LIST(SGM__DECLARE_DOCUMENTED_OP)
SGM_BINARY_LIST(SGM__DECLARE_DOCUMENTED_OP)
SGM__NATIVE_LIST(SGM__DECLARE_OP)
SGM__WHOLE_LIST(SGM__DECLARE_OP)
SGM__DECLARE_OP(select)
SGM__DECLARE_OP(cast)
SGM__DECLARE_OP(all_reduce)
#undef SGM__DECLARE_DOCUMENTED_OP
#undef SGM__DECLARE_OP

/* Whether a matmul rounds its right operand. */
static inline bool sgm__matmul_rounds(const sgm_attributes *attributes)
{
    return attributes != NULL && attributes->integer_count > 0;
}

/* Errors that stop a run: an index that is not in its axis, and a number that is no class. */
sgm_status sgm__fail_entry(int64_t index, int64_t axis, int64_t entries);
sgm_status sgm__fail_class(int64_t index, int64_t classes);
#define sgm__fail_entry(...) sgm__failed(sgm__fail_entry(__VA_ARGS__))
#define sgm__fail_class(...) sgm__failed(sgm__fail_class(__VA_ARGS__))

/* The sum of `x` over the workers that share a minibatch. All of them must record it alike, in equal types.
 * Networks cannot name this operation. */
sgm_value sgm__all_reduce(sgm_graph *graph, sgm_value x);

/* Sums `gradient` over the axes that a broadcast has added or repeated, so that it has the shape of `type`,
 * the operand's. */
sgm_value sgm__unbroadcast(sgm_graph *graph, sgm_value gradient, const sgm_type *type);

#endif
