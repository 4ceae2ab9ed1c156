/* The table of loops for x86-64 with AVX-512 (F, BW, DQ, VL): vectors of 64 bytes.
 *
 * The whole file is compiled for these instructions (CMakeLists.txt); vector.c calls it only where the
 * processor has them. Tiles of 14 rows by two vectors take 28 of 32 registers. Only this table has functions
 * for machine code (generate.c). */
#include "handlers/cpu/vector/vector.h"
#include "ops/ops.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <math.h>

#define VECTOR_BYTES 64
#define TILE_ROWS 14
#define FMA_F(a, b, c) ((vec_f)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define FMA_D(a, b, c) ((vec_d)_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#define SQRT_F(x) ((vec_f)_mm512_sqrt_ps((__m512)(x)))
#define SQRT_D(x) ((vec_d)_mm512_sqrt_pd((__m512d)(x)))
#define FLOOR_F(x) ((vec_f)_mm512_roundscale_ps((__m512)(x), _MM_FROUND_TO_NEG_INF))
#define FLOOR_D(x) ((vec_d)_mm512_roundscale_pd((__m512d)(x), _MM_FROUND_TO_NEG_INF))
#define SHUFFLE_f(a, b, lanes) ((vec_f)_mm512_permutex2var_ps((__m512)(a), (__m512i)(lanes), (__m512)(b)))
#define SHUFFLE_d(a, b, lanes) ((vec_d)_mm512_permutex2var_pd((__m512d)(a), (__m512i)(lanes), (__m512d)(b)))
#define MULTIPLY_WORDS(a, b) ((vec_w)_mm512_mul_epu32((__m512i)(a), (__m512i)(b)))

#include "handlers/cpu/vector/vector_math.h"

#include "handlers/cpu/vector/vector_kernels.h"

#include "handlers/cpu/vector/vector_fast.h"
#include "handlers/cpu/vector/vector_pairs.h"
#include "handlers/cpu/vector/vector_product.h"
#include "handlers/cpu/vector/vector_product_gather.h"
#include "handlers/cpu/vector/vector_product_winograd.h"
#include "handlers/cpu/vector/vector_random.h"
#include "handlers/cpu/vector/vector_rows.h"
#include "handlers/cpu/vector/vector_slide.h"
#include "handlers/cpu/vector/vector_table.h"

const sgm__vector sgm__vector_avx512 = VECTOR_TABLE("avx512");
#endif
