/* Tiles of integers of 8 bits for x86-64 with AVX512_VNNI: vpdpbusd on vectors of 64 bytes.
 *
 * It multiplies unsigned bytes, the weights, by signed ones, and adds four products to a sum of 32 bits. The
 * whole file is compiled for it (CMakeLists.txt). */
#if defined(__x86_64__)
#include <immintrin.h>

#define VECTOR_BYTES 64
#define INT8_UNSIGNED
#define INT8_STEP(sum, weights, x)                                                                           \
    ((int8_sums)_mm512_dpbusd_epi32((__m512i)(sum), (__m512i)(weights), _mm512_set1_epi32(x)))

#include "handlers/cpu/vector/vector_int8.h"

DEFINE_INT8_TILE(1, 8)
DEFINE_INT8_TILE(2, 4)
DEFINE_INT8_TILE(3, 2)
DEFINE_INT8_TILE(4, 2)
DEFINE_INT8_TILE(5, 1)
DEFINE_INT8_TILE(6, 1)
DEFINE_INT8_TILE(7, 1)
DEFINE_INT8_TILE(8, 1)

const sgm__int8_tiles sgm__int8_avx512_vnni =
    INT8_TILES("AVX512_VNNI", 8, tile_int8_1, tile_int8_2, tile_int8_3, tile_int8_4, tile_int8_5, tile_int8_6,
               tile_int8_7, tile_int8_8);
#endif
