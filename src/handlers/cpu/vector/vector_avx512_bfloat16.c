/* Tiles of bfloat16 for x86-64 with AVX512_BF16: vdpbf16ps multiplies 16 pairs and adds both products.
 *
 * The whole file is compiled for these instructions (CMakeLists.txt); bfloat16.c puts its tiles into a table
 * of AVX-512 where the processor has them. */
#include "handlers/cpu/vector/vector.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define VECTOR_BYTES 64
#define TILE_ROWS 14
#define FMA_F(a, b, c) ((vec_f)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define FMA_D(a, b, c) ((vec_d)_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#define SQRT_F(x) ((vec_f)_mm512_sqrt_ps((__m512)(x)))
#define SQRT_D(x) ((vec_d)_mm512_sqrt_pd((__m512d)(x)))
#define FLOOR_F(x) ((vec_f)_mm512_roundscale_ps((__m512)(x), _MM_FROUND_TO_NEG_INF))
#define FLOOR_D(x) ((vec_d)_mm512_roundscale_pd((__m512d)(x), _MM_FROUND_TO_NEG_INF))
#define SHUFFLE_f(a, b, lanes) ((vec_f)_mm512_permutex2var_ps((__m512)(a), (__m512i)(lanes), (__m512)(b)))
#define MULTIPLY_PAIRS(a, b, sum) ((vec_f)_mm512_dpbf16_ps((__m512)(sum), (__m512bh)(a), (__m512bh)(b)))
#define STORE_ROUNDED(to, x)                                                                                 \
    _mm256_storeu_si256((__m256i *)(void *)(to), (__m256i)_mm512_cvtneps_pbh((__m512)(x)))

#include "handlers/cpu/vector/vector_math.h"

#include "handlers/cpu/vector/vector_pairs.h"

const sgm__tiles sgm__pairs_avx512 = PAIR_TILES;
#endif
