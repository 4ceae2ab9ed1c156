/* The kernels of the cpu handler other than matrix products and random numbers, a file for each family.
 * Internal.
 *
 * The table in run/kernels.c lists them; cpu.h says what a kernel is. Declared here are also the parts of a
 * sum and of a concatenation that run/ needs. */
#ifndef SGM_HANDLERS_CPU_KERNELS_KERNELS_H
#define SGM_HANDLERS_CPU_KERNELS_KERNELS_H

#include "handlers/cpu/cpu.h"

extern const sgm__cpu_kernel sgm__cpu_convolution, sgm__cpu_convolution_input_gradient,
    sgm__cpu_convolution_weights_gradient;
extern const sgm__cpu_kernel sgm__cpu_convolution_bfloat16, sgm__cpu_convolution_input_gradient_bfloat16,
    sgm__cpu_convolution_weights_gradient_bfloat16;
extern const sgm__cpu_kernel sgm__cpu_max_pooling, sgm__cpu_max_pooling_gradient, sgm__cpu_average_pooling,
    sgm__cpu_average_pooling_gradient;
extern const sgm__cpu_kernel sgm__cpu_reduce_sum, sgm__cpu_reduce_max, sgm__cpu_reduce_min;
extern const sgm__cpu_kernel sgm__cpu_softmax, sgm__cpu_log_softmax, sgm__cpu_softmax_cross_entropy,
    sgm__cpu_softmax_cross_entropy_gradient, sgm__cpu_class_cross_entropy,
    sgm__cpu_class_cross_entropy_gradient;
extern const sgm__cpu_kernel sgm__cpu_self_attention, sgm__cpu_self_attention_gradient,
    sgm__cpu_self_attention_bfloat16, sgm__cpu_self_attention_gradient_bfloat16, sgm__cpu_attention_at;
extern const sgm__cpu_kernel sgm__cpu_packed_attention, sgm__cpu_packed_attention_gradient,
    sgm__cpu_packed_attention_bfloat16, sgm__cpu_packed_attention_gradient_bfloat16;
extern const sgm__cpu_kernel sgm__cpu_layer_norm, sgm__cpu_layer_norm_gradient, sgm__cpu_rms_norm,
    sgm__cpu_rms_norm_gradient;
extern const sgm__cpu_kernel sgm__cpu_concatenate, sgm__cpu_pad, sgm__cpu_write_at, sgm__cpu_gather,
    sgm__cpu_scatter_add;
extern const sgm__cpu_kernel sgm__cpu_arg_max, sgm__cpu_arg_min, sgm__cpu_accuracy;

/* --- movement.c --- */
/* Whether the node is a concatenation whose operands were all made in its memory, where they belong, so that
 * nothing is left to do. */
bool sgm__cpu_is_put_together(const sgm__plan *plan, const sgm__node *node);

/* --- reduce.c --- */
/* For sums whose terms come part by part (run/summed.c), each part a run of consecutive elements: how many
 * parts there are; in *maximum the elements of the largest; in *unit the number of which all parts begin at
 * multiples. 0: the sum cannot be computed so. `call` is one with its plan. */
int64_t sgm__cpu_sum_parts(const sgm__cpu_call *call, int64_t *maximum, int64_t *unit);
/* Part `part` is terms *first to *last - 1. */
void sgm__cpu_sum_range(const sgm__cpu_call *call, int64_t part, int64_t *first, int64_t *last);
/* How many numbers `partial` has below. */
int64_t sgm__cpu_sum_partials(const sgm__cpu_call *call);
/* Adds up a part's terms, which begin at `terms`. Sums that are complete go to their places in `result`,
 * others to `partial`. Parts may be added by different threads at once. */
void sgm__cpu_sum_part(const sgm__cpu_call *call, int64_t part, const void *terms, double *partial,
                       void *result);
/* When all parts are added: adds up `partial` in the order of the terms. */
void sgm__cpu_sum_end(const sgm__cpu_call *call, const double *partial, void *result);

#endif
