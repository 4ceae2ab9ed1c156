/* The table of loops for 64-bit ARM: vectors of 16 bytes with the instructions that each such processor has
 * (NEON).
 *
 * Tested under emulation (tests/cross/run.sh); nothing was measured. */
#include "handlers/cpu/vector/vector.h"
#include "ops/ops.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#include <math.h>

#define VECTOR_BYTES 16
#define TILE_ROWS 14 /* two vectors each: 28 of the 32 registers */
#define FMA_F(a, b, c) ((vec_f)vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b)))
#define FMA_D(a, b, c) ((vec_d)vfmaq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b)))
#define SQRT_F(x) ((vec_f)vsqrtq_f32((float32x4_t)(x)))
#define SQRT_D(x) ((vec_d)vsqrtq_f64((float64x2_t)(x)))
#define FLOOR_F(x) ((vec_f)vrndmq_f32((float32x4_t)(x)))
#define FLOOR_D(x) ((vec_d)vrndmq_f64((float64x2_t)(x)))
#define SHUFFLE_f(a, b, lanes) shuffle_lanes_f(a, b, lanes)
#define SHUFFLE_d(a, b, lanes) shuffle_lanes_d(a, b, lanes)
#define MULTIPLY_WORDS(a, b)                                                                                 \
    ((vec_w)vmull_u32(vmovn_u64((uint64x2_t)(a)), vmovn_u64((uint64x2_t)(b)))) /* the upper halves are 0 */

#include "handlers/cpu/vector/vector_math.h"

#include "handlers/cpu/vector/vector_kernels.h"

#include "handlers/cpu/vector/vector_fast.h"
#include "handlers/cpu/vector/vector_pairs.h"
#include "handlers/cpu/vector/vector_product.h"
#include "handlers/cpu/vector/vector_product_convolution.h"
#include "handlers/cpu/vector/vector_random.h"
#include "handlers/cpu/vector/vector_rows.h"
#include "handlers/cpu/vector/vector_slide.h"
#include "handlers/cpu/vector/vector_table.h"

const sgm__vector sgm__vector_neon = VECTOR_TABLE("neon");
#endif
