/* Convolutions of 3 x 3 in steps of one, with 16 products where the definition has 36, or 36 where it has
 * 144. Internal.
 *
 * convolution.c and convolution_weights.c ask whether it is faster so, and call these instead of computing by
 * panels of channels. */
#ifndef SGM_HANDLERS_CPU_KERNELS_CONVOLUTION_CONVOLUTION_WINOGRAD_H
#define SGM_HANDLERS_CPU_KERNELS_CONVOLUTION_CONVOLUTION_WINOGRAD_H

#include "handlers/cpu/kernels/convolution/convolution.h"

/* Which of the two; a gradient by the input is a convolution of the gradient by the weights, turned round. */
typedef enum sgm__winograd_kind { SGM__WINOGRAD_FORWARD, SGM__WINOGRAD_INPUT } sgm__winograd_kind;

/* Whether the shapes are such that it can be done so; never if the handler is `exact`. */
bool sgm__winograd_suits(const sgm__cpu_call *call, const sgm__convolution *c);
/* From one element's matrix to the next, whose rows together have so many numbers (float): transforms write
 * to all of them at once, which therefore begin at different places of a page. */
int64_t sgm__winograd_apart(int64_t numbers);
/* From a row of such a matrix, of so many numbers, to the next: neighbours differ in their place, too. */
int64_t sgm__winograd_stride(int64_t numbers);
/* Fetches the rows of a channel, which is at `plane`, that c->window.out[0] rows of tiles are made of, while
 * the one before is transformed: channels lie pages apart, which processors do not fetch ahead by themselves.
 */
void sgm__winograd_fetch(const sgm__convolution *c, const unsigned char *plane);

/* What the same convolution costs by direct sums, in multiply-adds of Winograd's products by float32: of so
 * many pixels of all images, over so many channels each, in panels of so many lanes. */
double sgm__winograd_direct_cost(const sgm__convolution *c, int64_t pixels, int64_t depth, int64_t lanes);

/* --- forward, and the gradient by the input --- */

/* Whether it can be done so with few enough operations. */
bool sgm__winograd_is_faster(const sgm__cpu_call *call, const sgm__convolution *c, sgm__winograd_kind kind);
/* A call's scratch memory, and the call, which posts loops. */
size_t sgm__winograd_scratch(const sgm__cpu_call *call, const sgm__convolution *c, sgm__winograd_kind kind);
void sgm__winograd_run(const sgm__cpu_call *call, const sgm__convolution *c, sgm__winograd_kind kind);
/* Forward: what comes before all examples, of constant weights. */
size_t sgm__winograd_packed_bytes(const sgm__cpu_call *call, const sgm__convolution *c);
sgm_status sgm__winograd_pack(const sgm__cpu_call *call, const sgm__convolution *c, unsigned char *to);
/* Forward in parts, for run/fused.c: whether an example by itself is large enough for that; what comes before
 * all examples; and one of them, whose result goes to `to`. */
bool sgm__winograd_has_parts(const sgm__cpu_call *call, const sgm__convolution *c);
void sgm__winograd_begin(const sgm__cpu_call *call, const sgm__convolution *c);
void sgm__winograd_part(const sgm__cpu_call *call, const sgm__convolution *c, int64_t example, int32_t thread,
                        void *to);

/* --- the gradient by the weights (convolution_winograd_weights.c) --- */

bool sgm__winograd_weights_is_faster(const sgm__cpu_call *call, const sgm__convolution *c);
size_t sgm__winograd_weights_scratch(const sgm__cpu_call *call, const sgm__convolution *c);
void sgm__winograd_weights_run(const sgm__cpu_call *call, const sgm__convolution *c);

#endif
