/* Tiles of integers of 8 bits for x86-64 with AVX2.
 *
 * vpmaddubsw multiplies unsigned bytes by signed ones, and adds two products in 16 bits, which would be too
 * few for 255 * 127 twice. So the unsigned side is the magnitude of a row's codes, at most 127, whose signs
 * go to the weights (vpsignb): 2 * 127 * 127 fits. The whole file is compiled for AVX2 (CMakeLists.txt). */
#if defined(__x86_64__)
#include <immintrin.h>

static inline __attribute__((always_inline)) __m256i multiply_signed(__m256i weights, int x)
{
    __m256i codes = _mm256_set1_epi32(x), signed_weights = _mm256_sign_epi8(weights, codes);
    __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(codes), signed_weights);
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

#define VECTOR_BYTES 32
#define INT8_STEP(sum, weights, x) ((sum) + (int8_sums)multiply_signed((__m256i)(weights), x))

#include "handlers/cpu/vector/vector_int8.h"

DEFINE_INT8_TILE(1, 1)
DEFINE_INT8_TILE(2, 1)
DEFINE_INT8_TILE(3, 1)
DEFINE_INT8_TILE(4, 1)

const sgm__int8_tiles sgm__int8_avx2 =
    INT8_TILES("AVX2", 4, tile_int8_1, tile_int8_2, tile_int8_3, tile_int8_4);
#endif
