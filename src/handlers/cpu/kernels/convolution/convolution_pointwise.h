/* Convolutions of one place (1 x 1) in steps of one, without padding and groups: products of the weights with
 * each image. Internal. convolution.c asks sgm__pointwise_is_faster and calls these. */
#ifndef SGM_HANDLERS_CPU_KERNELS_CONVOLUTION_CONVOLUTION_POINTWISE_H
#define SGM_HANDLERS_CPU_KERNELS_CONVOLUTION_CONVOLUTION_POINTWISE_H

#include "handlers/cpu/kernels/convolution/convolution.h"

/* Whether it can be done so, and takes no more multiplications of vectors than panels of filters. */
bool sgm__pointwise_is_faster(const sgm__convolution *c);
/* A call's scratch memory, and the call, which posts a loop. */
size_t sgm__pointwise_scratch(const sgm__cpu_call *call, const sgm__convolution *c);
void sgm__pointwise_run(const sgm__cpu_call *call, const sgm__convolution *c);
/* One example, whose result goes to `to`, for run/fused.c. */
void sgm__pointwise_part(const sgm__cpu_call *call, const sgm__convolution *c, int64_t example,
                         int32_t thread, unsigned char *to);

#endif
