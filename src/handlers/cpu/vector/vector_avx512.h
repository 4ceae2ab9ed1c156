/* What the templates need to know of AVX-512: for vector_avx512.c and vector_avx512_bfloat16.c. Internal. No
 * include guard, as each file includes it once. */
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
