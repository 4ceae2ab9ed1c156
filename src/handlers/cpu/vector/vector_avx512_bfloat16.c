/* Tiles of bfloat16 for x86-64 with AVX512_BF16: vdpbf16ps multiplies 16 pairs and adds both products.
 *
 * The whole file is compiled for these instructions (CMakeLists.txt); bfloat16.c puts its tiles into a table
 * of AVX-512 where the processor has them. */
#include "handlers/cpu/vector/vector.h"

#if defined(__x86_64__)
#include "handlers/cpu/vector/vector_avx512.h"

#define MULTIPLY_PAIRS(a, b, sum) ((vec_f)_mm512_dpbf16_ps((__m512)(sum), (__m512bh)(a), (__m512bh)(b)))
#define STORE_ROUNDED(to, x)                                                                                 \
    _mm256_storeu_si256((__m256i *)(void *)(to), (__m256i)_mm512_cvtneps_pbh((__m512)(x)))
#define ROUNDED_WORDS(x) ((vec_u)_mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh((__m512)(x))))

#include "handlers/cpu/vector/vector_math.h"

#include "handlers/cpu/vector/vector_pairs.h"

const sgm__tiles sgm__pairs_avx512 = PAIR_TILES;
#endif
