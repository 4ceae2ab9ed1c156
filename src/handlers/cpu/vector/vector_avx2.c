/* The table of loops for x86-64 with AVX2 and FMA: vectors of 32 bytes.
 *
 * The whole file is compiled for these instructions (CMakeLists.txt); vector.c calls it only where the
 * processor has them. Tiles of 6 rows by two vectors take 12 of 16 registers. */
#include "handlers/cpu/vector/vector.h"
#include "ops/ops.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <math.h>

#define VECTOR_BYTES 32
#define TILE_ROWS 6
#define FMA_F(a, b, c) ((vec_f)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define FMA_D(a, b, c) ((vec_d)_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#define SQRT_F(x) ((vec_f)_mm256_sqrt_ps((__m256)(x)))
#define SQRT_D(x) ((vec_d)_mm256_sqrt_pd((__m256d)(x)))
#define FLOOR_F(x) ((vec_f)_mm256_floor_ps((__m256)(x)))
#define FLOOR_D(x) ((vec_d)_mm256_floor_pd((__m256d)(x)))
#define SHUFFLE_f(a, b, lanes) shuffle_lanes_f(a, b, lanes)
#define SHUFFLE_d(a, b, lanes) shuffle_lanes_d(a, b, lanes)
#define MULTIPLY_WORDS(a, b) ((vec_w)_mm256_mul_epu32((__m256i)(a), (__m256i)(b)))

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

const sgm__vector sgm__vector_avx2 = VECTOR_TABLE("avx2");
#endif
