/* The kernels, a file for each family. Internal. */
#ifndef SGM_HANDLERS_CPU_KERNELS_KERNELS_H
#define SGM_HANDLERS_CPU_KERNELS_KERNELS_H

#include "handlers/cpu/cpu.h"

extern const sgm__cpu_kernel sgm__cpu_convolution, sgm__cpu_convolution_input_gradient,
    sgm__cpu_convolution_weights_gradient;
extern const sgm__cpu_kernel sgm__cpu_max_pooling, sgm__cpu_max_pooling_gradient, sgm__cpu_average_pooling,
    sgm__cpu_average_pooling_gradient;
extern const sgm__cpu_kernel sgm__cpu_reduce_sum, sgm__cpu_reduce_max, sgm__cpu_reduce_min;
extern const sgm__cpu_kernel sgm__cpu_softmax, sgm__cpu_log_softmax, sgm__cpu_softmax_cross_entropy,
    sgm__cpu_softmax_cross_entropy_gradient;
extern const sgm__cpu_kernel sgm__cpu_self_attention, sgm__cpu_self_attention_gradient;
extern const sgm__cpu_kernel sgm__cpu_layer_norm, sgm__cpu_layer_norm_gradient, sgm__cpu_rms_norm,
    sgm__cpu_rms_norm_gradient;
extern const sgm__cpu_kernel sgm__cpu_concatenate, sgm__cpu_pad, sgm__cpu_gather, sgm__cpu_scatter_add;
extern const sgm__cpu_kernel sgm__cpu_arg_max, sgm__cpu_arg_min, sgm__cpu_accuracy;

/* --- movement.c --- */
/* A concatenation whose operands were made where they belong: nothing is left to do. */
bool sgm__cpu_is_put_together(const sgm__plan *plan, const sgm__node *node);

/* --- reduce.c --- */
/* A sum whose terms come part by part, each a run of elements: how many parts, elements of the largest, and
 * of what they are multiples; 0: not this one. */
int64_t sgm__cpu_sum_parts(const sgm__cpu_call *call, int64_t *maximum, int64_t *unit);
void sgm__cpu_sum_range(const sgm__cpu_call *call, int64_t part, int64_t *first, int64_t *last);
/* Adds up the terms of a part, into `partial` or, where none is needed, into the result. */
void sgm__cpu_sum_part(const sgm__cpu_call *call, int64_t part, const void *terms, double *partial,
                       void *result);
void sgm__cpu_sum_end(const sgm__cpu_call *call, int64_t parts, const double *partial, void *result);

#endif
