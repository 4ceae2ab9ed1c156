/* The table of loops for x86-64 with AVX-512 (F, BW, DQ, VL): vectors of 64 bytes.
 *
 * The whole file is compiled for these instructions (CMakeLists.txt); vector.c calls it only where the
 * processor has them. Tiles of 14 rows by two vectors take 28 of 32 registers. */
#include "handlers/cpu/vector/vector.h"
#include "ops/ops.h"

#if defined(__x86_64__)
#include "handlers/cpu/vector/vector_avx512.h"

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

const sgm__vector sgm__vector_avx512 = VECTOR_TABLE("avx512");
#endif
