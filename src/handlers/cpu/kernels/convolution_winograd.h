/* Convolutions of 3 x 3 in steps of one, with 16 products where the definition has 36. Internal.
 *
 * convolution.c asks sgm__winograd_is_faster and calls these instead of computing by panels of channels. */
#ifndef SGM_HANDLERS_CPU_KERNELS_CONVOLUTION_WINOGRAD_H
#define SGM_HANDLERS_CPU_KERNELS_CONVOLUTION_WINOGRAD_H

#include "handlers/cpu/kernels/convolution.h"

/* Which of the two; a gradient by the input is a convolution of the gradient by the weights, turned round. */
typedef enum sgm__winograd_kind { SGM__WINOGRAD_FORWARD, SGM__WINOGRAD_INPUT } sgm__winograd_kind;

/* Whether it can be done so, with few enough operations; never if the handler is `exact`. */
bool sgm__winograd_is_faster(const sgm__cpu_call *call, const sgm__convolution *c, sgm__winograd_kind kind);
/* A call's scratch memory, and the call, which posts loops. */
size_t sgm__winograd_scratch(const sgm__cpu_call *call, const sgm__convolution *c, sgm__winograd_kind kind);
void sgm__winograd_run(const sgm__cpu_call *call, const sgm__convolution *c, sgm__winograd_kind kind);
/* Forward in parts, for run/fused.c: whether an example by itself is large enough for that; what comes before
 * all examples; and one of them, whose result goes to `to`. */
bool sgm__winograd_has_parts(const sgm__cpu_call *call, const sgm__convolution *c);
void sgm__winograd_begin(const sgm__cpu_call *call, const sgm__convolution *c);
void sgm__winograd_part(const sgm__cpu_call *call, const sgm__convolution *c, int64_t example, int32_t thread,
                        void *to);

#endif
