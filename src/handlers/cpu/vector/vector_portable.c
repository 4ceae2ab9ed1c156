/* The table of loops for any processor: vectors of 16 bytes in plain C, which compilers turn into what the
 * processor has.
 *
 * The file says how wide a vector is, how many rows a tile has (6 rows of two vectors: 12 of 16 registers),
 * and how the few operations are written that the compilers' vector types lack; the loops are those of the
 * templates. FMA_F here rounds twice, so bits differ from those of other instruction sets. */
#include "handlers/cpu/vector/vector.h"
#include "ops/ops.h"

#define VECTOR_BYTES 16
#define TILE_ROWS 6
#define FMA_F(a, b, c) ((a) * (b) + (c))
#define FMA_D(a, b, c) ((a) * (b) + (c))
/* Square roots and floors lane by lane. */
#define EACH_LANE(x, lanes, function)                                                                        \
    for (int i = 0; i < (lanes); i++)                                                                        \
        (x)[i] = function((x)[i]);
#define SQRT_F(x) square_root_lanes_f(x)
#define SQRT_D(x) square_root_lanes_d(x)
#define FLOOR_F(x) floor_lanes_f(x)
#define FLOOR_D(x) floor_lanes_d(x)
#define SHUFFLE_f(a, b, lanes) shuffle_lanes_f(a, b, lanes)
#define SHUFFLE_d(a, b, lanes) shuffle_lanes_d(a, b, lanes)
#define MULTIPLY_WORDS(a, b) ((a) * (b)) /* of 32-bit words in lanes of 64 bits: the upper halves are 0 */

#include "handlers/cpu/vector/vector_math.h"

static inline vec_f square_root_lanes_f(vec_f x)
{
    EACH_LANE(x, LANES, sqrtf)
    return x;
}

static inline vec_d square_root_lanes_d(vec_d x)
{
    EACH_LANE(x, LANES_D, sqrt)
    return x;
}

static inline vec_f floor_lanes_f(vec_f x)
{
    EACH_LANE(x, LANES, floorf)
    return x;
}

static inline vec_d floor_lanes_d(vec_d x)
{
    EACH_LANE(x, LANES_D, floor)
    return x;
}

#include "handlers/cpu/vector/vector_kernels.h"

#include "handlers/cpu/vector/vector_fast.h"
#include "handlers/cpu/vector/vector_int8.h"
#include "handlers/cpu/vector/vector_pairs.h"
#include "handlers/cpu/vector/vector_product.h"
#include "handlers/cpu/vector/vector_product_convolution.h"
#include "handlers/cpu/vector/vector_random.h"
#include "handlers/cpu/vector/vector_rows.h"
#include "handlers/cpu/vector/vector_slide.h"
#include "handlers/cpu/vector/vector_table.h"

const sgm__vector sgm__vector_portable = VECTOR_TABLE("portable");

DEFINE_INT8_TILE(1, 2)
DEFINE_INT8_TILE(2, 1)

const sgm__int8_tiles sgm__int8_portable = INT8_TILES("portable C", 2, tile_int8_1, tile_int8_2);
