/* The loops over arrays in memory that the cpu handler is made of, as one table of functions for each
 * instruction set. Internal.
 *
 * The tables (sgm__vector) are compiled from the same templates: vector_math.h (vector types and functions),
 * vector_kernels.h (elementwise loops), vector_fast.h (approximations), vector_rows.h (sums, softmax),
 * vector_product.h (tiles of matrix products), vector_product_convolution.h (of convolutions, with poolings),
 * vector_pairs.h (both of bfloat16), vector_slide.h (convolutions of few channels), vector_random.h; and
 * vector_int8.h (tiles of integers of 8 bits, in tables of their own).
 * They use the compilers' vector types; vector_portable.c, vector_avx2.c, vector_avx512.c,
 * vector_avx512_bfloat16.c (tiles alone), vector_neon.c and vector_int8_*.c only say how wide a vector is and
 * name a few instructions. vector.c chooses a table at run time and has the loops that need no vectors.
 * Nothing here knows of threads, plans or strides of more than two dimensions. */
#ifndef SGM_HANDLERS_CPU_VECTOR_VECTOR_H
#define SGM_HANDLERS_CPU_VECTOR_VECTOR_H

#include "handlers/sizes.h"
#include <math.h>
#include <sigma/graph.h>

/* A vector function computes out[i] = operation(in[0][i], in[1][i], ...) for n contiguous elements; `out` may
 * be one of the operands. Bit k of `still` says that operand k is a single number: SGM__STILL_BYTES of its
 * repetitions, a vector of the widest instruction set, are at in[k]. */
#define SGM__STILL_BYTES 64
/* A mask for indices into operand k: all bits set if the operand moves along with the result, none if it is
 * still. */
#define SGM__MOVES(still, k) ((int64_t)((still) >> (k)&1) - 1)
typedef void (*sgm__vector_function)(int64_t n, void *out, const void *const *in, uint32_t still);

/* A loop by operation and types. */
typedef struct sgm__vector_entry {
    const sgm_op *op;
    sgm_dtype from, to; /* of the first operand (of select: the second), of the result */
    sgm__vector_function function;
} sgm__vector_entry;

/* y = operation(x) for one vector of float32, as machine code calls it (generate.c). The real type has no
 * name in C: x comes and y goes in ymm0 or zmm0, as the ABI (System V, AMD64) has it for vectors of 32 and 64
 * bytes. Compilers keep to that in files that are compiled for AVX2 or AVX-512 as a whole (CMakeLists.txt).
 * Where only an attribute of the function says so, clang passes vectors in memory. */
typedef void (*sgm__one_vector)(void);
typedef struct sgm__vector_call {
    const sgm_op *op;
    sgm__one_vector function;
} sgm__vector_call;

/* Two functions of the same vector in one: the first result is returned in ymm0 or zmm0, the second one is
 * stored at the address in the second argument (rdi). */
typedef struct sgm__vector_pair {
    const sgm_op *first, *second;
    sgm__one_vector function; /* (vector, float *second) */
} sgm__vector_pair;

/* One tile of a matrix product: c (rows x columns, row stride `c_stride`) = or += a times b; rows and columns
 * belong to the function. a: each of `depth` steps has `rows` numbers, which are contiguous and `a_step`
 * numbers after those of the step before; for functions `apart` the steps of a row are contiguous, and rows
 * are `a_row` numbers apart. b: one row of a panel for each step, `b_stride` numbers after the one before.
 * Functions `keep` also store the rows of b contiguously in `keep`, and fetch those `keep_ahead` steps ahead.
 * Those of bfloat16 multiply a pair of numbers in each step, and distances count pairs; their c is float32
 * until it `rounds`. */
typedef struct sgm__tile {
    int64_t depth;
    const void *a, *b;
    int64_t a_row, a_step;
    int64_t b_stride;
    void *keep;
    int64_t keep_ahead;
    void *c;
    int64_t c_stride;
    bool add; /* to c; else c is overwritten */
    /* bfloat16: where the sums of the steps so far are, in float32, and those of these steps go, unless this
     * tile has the last ones: then it rounds them, and c is written. */
    float *sums;
    int64_t sums_stride;
    bool rounds;
    /* For a block alone, which has no function of its own for each size: */
    int32_t rows, columns; /* up to SGM__BLOCK_ROWS; SGM__BLOCK_COLUMNS or half of them */
    int32_t *configured;   /* rows that this thread's registers are set up for; 0: none yet */
} sgm__tile;
typedef void (*sgm__tile_function)(const sgm__tile *tile);
/* A block: a tile of bfloat16 as AMX multiplies it, whose rows of a lie apart. For SGM__BLOCK_STEPS steps at
 * a time each result gets the sum of its even products plus that of its odd ones; the last steps are filled
 * up with zeros. */
#define SGM__BLOCK_ROWS 32
#define SGM__BLOCK_COLUMNS 32
#define SGM__BLOCK_STEPS 16
#define SGM__ROW_PANELS 4
#define SGM__MAXIMUM_TILE_ROWS 14
/* A block whose operands are gathered, as convolutions need: step k, of SGM__BLOCK_STEPS pairs, reads them at
 * a_steps[k] and b_steps[k] from where they begin. Its two halves of SGM__BLOCK_COLUMNS / 2 columns are apart
 * in b and in the result, and of either just some columns may be wanted. Strides and steps count pairs. */
typedef struct sgm__block_gather {
    int64_t steps;
    const unsigned char *a, *b[2];
    int64_t a_row, b_row;
    const int64_t *a_steps, *b_steps;
    int32_t rows;       /* up to SGM__BLOCK_ROWS; rows of a are there, to the next multiple of 16 */
    int32_t columns[2]; /* 0: the block has no such half */
    float *sums;        /* a whole block */
    bool add;           /* to those in `sums` */
    /* Sums, with the bias of each row (bfloat16; NULL: 0), are kept between limits, rounded, and go to c;
     * else they stay in `sums`. */
    bool rounds;
    uint16_t *c[2];
    int64_t c_row;
    /* Of the columns of a half each `piece` go to a result of their own, `c_apart` elements from the one
     * before: images that are side by side. */
    int32_t piece;
    int64_t c_apart;
    const uint16_t *biases;
    float low, high;
    int32_t *configured; /* sgm__tile has it */
} sgm__block_gather;
typedef void (*sgm__block_gather_function)(const sgm__block_gather *block);
/* A function for each number of rows, so that no row is computed that is thrown away. Wide tiles have two
 * vectors of columns, narrow ones one. */
typedef struct sgm__tile_functions {
    sgm__tile_function wide[SGM__MAXIMUM_TILE_ROWS], narrow[SGM__MAXIMUM_TILE_ROWS]; /* by rows - 1 */
    sgm__tile_function keep; /* wide, with the largest number of rows; also stores b */
} sgm__tile_functions;
/* A product too small for packing, c = a b: rows of b and c are contiguous, a has any strides. */
typedef struct sgm__small_product {
    int64_t m, n, k;
    const void *a;
    int64_t a_row, a_column;
    const void *b;
    int64_t b_row;
    void *c;
    int64_t c_row;
} sgm__small_product;
/* A tile of a product whose left operand is read in place by two lists of offsets (in elements), as
 * convolutions need: the element of row i and step k is a[rows[i] + steps[k]]. b: a packed panel, one row
 * after the other. Row i of the result goes to row c_rows[i] of c, whose rows are as long as those of the
 * panel. */
typedef struct sgm__gather {
    int64_t depth;
    const void *a, *b;
    const int64_t *rows, *steps, *c_rows;
    void *c;
    bool add; /* add to c; else c is overwritten */
} sgm__gather;
typedef void (*sgm__gather_function)(const sgm__gather *tile);
#define SGM__GATHER_ROWS 6
/* Between which results are kept: what is `low` or less becomes `low`, what is `high` or more `high`;
 * infinities leave all as it is, and NaN stays NaN. */
typedef struct sgm__limits {
    double low, high;
} sgm__limits;
#define SGM__NO_LIMITS ((sgm__limits){-INFINITY, INFINITY})
/* Rows of a convolution whose lanes are neighbouring pixels of a row: result (r, i) = bias + the sum over
 * channels c and places (k, j) of the window, height x width, of weights[c][k][j] * image[c * channel + (r *
 * stride + k * dilation) * line + steps[j] + i], for r < rows and i < columns. The image may be read to the
 * end of a vector. */
typedef struct sgm__slide {
    int64_t rows, columns;
    int64_t channels, height, width, stride, dilation;
    const void *image;
    int64_t channel, line;
    const int64_t *steps;
    const void *weights, *bias; /* bias NULL: 0 */
    void *to;                   /* rows follow each other */
    sgm__limits limits;
} sgm__slide;
/* Its gradient by the weights: lane i % lanes of sums[c][k][j] += factors[r * columns + i] times that element
 * of the image; sums are vectors, `lanes` numbers. The image's elements behind a row, to the end of a vector,
 * are multiplied by 0. */
typedef struct sgm__slide_sums {
    int64_t rows, columns;
    int64_t channels, height, width, stride, dilation;
    const void *image;
    int64_t channel, line;
    const int64_t *steps;
    const void *factors;
    void *sums;
} sgm__slide_sums;
/* Transforms of Winograd's convolutions (vector_convolution.h); `count` is rounded up to whole vectors,
 * strides count the numbers that are multiplied. */
typedef struct sgm__winograd {
    void (*input)(int64_t count, void *to, int64_t to_stride, const float *from, int64_t plane,
                  int64_t pitch);
    /* Of bfloat16: the same as the first and as the second numbers of pairs, which the first ones clear. */
    void (*input_first)(int64_t count, void *to, int64_t to_stride, const float *from, int64_t plane,
                        int64_t pitch);
    void (*input_second)(int64_t count, void *to, int64_t to_stride, const float *from, int64_t plane,
                         int64_t pitch);
    void (*weights)(int64_t count, void *to, int64_t to_stride, const float *from, int64_t from_stride);
    void (*results)(int64_t count, void *to, int64_t to_stride, const float *from, int64_t plane);
    /* Of float32 alone, as all sums are. */
    void (*output)(int64_t count, float *to, int64_t to_stride, const float *from, int64_t from_stride,
                   float bias, sgm__limits limits);
    void (*kernels)(int64_t count, float *to, int64_t to_stride, const float *from, int64_t from_stride);
} sgm__winograd;
/* All that matrix products and convolutions of one type need. */
typedef struct sgm__tiles {
    int32_t rows;    /* of the largest tile */
    int32_t columns; /* of a panel that is two vectors wide; `narrow` panels have half */
    sgm__tile_functions packed, transposed, apart; /* how a lies: as packed panels; in place with contiguous
                                                      columns; in place with contiguous rows */
    /* One row by SGM__ROW_PANELS neighbouring wide panels of b, which lie `apart` numbers from each other: as
     * many tiles of one row, whose sums wait for each other less. */
    void (*row)(const sgm__tile *tile, int64_t apart);
    /* Of bfloat16: a block of any size, in place of all functions above; NULL: there is none. Once a thread
     * has done its last block of a task, it calls block_end, unless that is NULL. */
    sgm__tile_function block;
    sgm__block_gather_function block_gather;
    void (*block_end)(void);
    /* A whole small product. */
    void (*small)(const sgm__small_product *product);
    /* Packing: target[k * padded + i] = element i of step k for i < width, zeros for i from width to padded.
     * Element i of step k is source[k * stride + i] for `copy_rows`, source[i * stride + k] for `transpose`.
     */
    void (*copy_rows)(void *target, int64_t padded, const void *source, int64_t stride, int64_t width,
                      int64_t depth);
    void (*transpose)(void *target, int64_t padded, const void *source, int64_t stride, int64_t width,
                      int64_t depth);
    int32_t gather_columns; /* of a wide panel; narrow ones have half */
    sgm__gather_function gather_wide[SGM__GATHER_ROWS], gather_narrow[SGM__GATHER_ROWS]; /* by rows - 1 */
    /* Transposes and adds: target[r * to_stride + c] = source[c * from_stride + r] + biases[r] (biases NULL:
     * 0), kept between limits, for r < rows, c < columns. Reads rows of the source to the end of a vector. */
    void (*spread)(void *target, int64_t to_stride, const void *source, int64_t from_stride, int64_t rows,
                   int64_t columns, const void *biases, sgm__limits limits);
    /* row[i] + bias (a number; NULL: 0), kept between limits, for i < n, in place. */
    void (*finish)(int64_t n, void *row, const void *bias, sgm__limits limits);
    int32_t vector_lanes; /* elements of a vector */
    void (*slide)(const sgm__slide *slide);
    void (*slide_sums)(const sgm__slide_sums *slide);
    /* Copies rows of `width` elements; zeros follow, to the end of a vector. */
    void (*copy_lines)(void *target, int64_t to_stride, const void *source, int64_t from_stride,
                       int64_t width, int64_t rows);
    /* evens[i] = pairs[2 * i], odds[i] = pairs[2 * i + 1], for i < n; and the other way round. */
    void (*split_pairs)(int64_t n, void *evens, void *odds, const void *pairs);
    void (*join_pairs)(int64_t n, void *pairs, const void *evens, const void *odds);
    /* Of float32 alone (else NULL): to[q][i] = fours[4 * i + q]; and the other way round. */
    void (*split_fours)(int64_t n, void *const *to, const void *fours);
    void (*join_fours)(int64_t n, void *fours, const void *const *from);
    sgm__winograd winograd;       /* by tiles of 2 x 2 results */
    sgm__winograd winograd_fours; /* by tiles of 4 x 4: of float32 alone */
} sgm__tiles;

/* A tile of a product of integers of 8 bits (vector_int8.h): c (rows x SGM__INT8_COLUMNS, row stride `c_row`)
 * = a times b, scaled. Four neighbouring numbers along the depth are a group. a: codes of rows, -127 to 127,
 * `a_row` bytes apart, 0 behind their end. b: a packed panel of weights; group after group it has four of
 * each column. */
#define SGM__INT8_GROUP 4
#define SGM__INT8_COLUMNS 16
#define SGM__INT8_ROWS 8
typedef struct sgm__int8_tile {
    int64_t groups;
    const int8_t *a;
    int64_t a_row;
    const unsigned char *b;
    /* Of each row: what is added to its sums, and its scale. */
    const int32_t *corrections;
    const float *row_scales;
    const float *scales; /* of each column */
    float *c;
    int64_t c_row;
} sgm__int8_tile;
typedef struct sgm__int8_tiles {
    const char *name;
    int32_t rows; /* of the largest tile */
    int32_t zero; /* what packed weights are too large by: 0, or 128 */
    /* The bits of the largest magnitude: above those of infinity if there is a NaN. */
    uint32_t (*largest)(int64_t n, const float *x);
    /* to[i] = floor(x[i] * factor + 1 / 2); returns the sum of them. */
    int32_t (*round)(int64_t n, int8_t *to, const float *x, float factor);
    void (*tiles[SGM__INT8_ROWS])(const sgm__int8_tile *tile); /* by rows - 1 */
} sgm__int8_tiles;

/* The table of one instruction set. Loops on rows take contiguous elements; sums are kept in double, in an
 * order that depends on n alone, as rows are summed by different threads. */
typedef struct sgm__vector {
    const char *name;
    const sgm__vector_entry *entries;
    int32_t entry_count, function_count, fast_count, fast_function_count;
    const sgm__vector_call *functions; /* NULL: no machine code is made for this instruction set */
    const sgm__vector_pair *pair;      /* the only one there is, or NULL */
    /* Loops and functions that go before the others if `approximate`. */
    const sgm__vector_entry *fast_entries;
    const sgm__vector_call *fast_functions;
    bool approximate;
    sgm__tiles f32, f64;
    /* Tiles of bfloat16, whose steps are pairs of numbers (vector_pairs.h): products `packed` and `apart`,
     * and what convolutions need but for slides. `copy_rows` and `transpose` count single numbers, and what
     * they pack are pairs; evens and odds, and what is spread, are float32. */
    sgm__tiles pairs;
    /* The sum of n elements. */
    double (*sum_f32)(int64_t n, const float *x);
    double (*sum_f64)(int64_t n, const double *x);
    /* sums[i] += x[row * stride + i], row by row; for a few rows at a time. */
    void (*add_f32)(int64_t n, double *sums, const float *x, int64_t rows, int64_t stride);
    void (*add_f64)(int64_t n, double *sums, const double *x, int64_t rows, int64_t stride);
    /* sums[i] = the sum of x[row * stride + i] over the rows, in their order; for so few elements that they
     * lie in the first cache. */
    void (*add_rows_f32)(int64_t n, double *sums, const float *x, int64_t rows, int64_t stride);
    void (*add_rows_f64)(int64_t n, double *sums, const double *x, int64_t rows, int64_t stride);
    float (*largest_f32)(int64_t n, const float *x); /* -infinity if n is 0; NaN if there is one */
    /* out = exp(x - shift); returns the sum. `out` may be NULL or x. */
    double (*exp_shifted_f32)(int64_t n, float *out, const float *x, float shift);
    void (*scale_f32)(int64_t n, float *out, const float *x, float factor); /* out = x * factor */
    void (*shift_f32)(int64_t n, float *out, const float *x, float shift);  /* out = x - shift */
    /* out = softmax(x * scale); scale is above 0. */
    void (*softmax_f32)(int64_t n, float *out, const float *x, float scale);
    /* gradients = (gradients - sum(gradients * weights)) * weights * scale */
    void (*softmax_gradient_f32)(int64_t n, float *gradients, const float *weights, float scale);
    /* out = a * left + b * right + shift */
    void (*blend_f32)(int64_t n, float *out, const float *a, float left, const float *b, float right,
                      float shift);
    double (*dot_f32)(int64_t n, const float *a, const float *b);
    /* For attention of single queries: dots[j] = the sum of x[i] * rows[j * n + i], in float32; and sums[i]
     * += that of weights[j] * rows[j * n + i], in the order of j. Of `_bf16` the rows are bfloat16. */
    void (*dot_rows_f32)(int64_t count, int64_t n, float *dots, const float *x, const float *rows);
    void (*dot_rows_bf16)(int64_t count, int64_t n, float *dots, const float *x, const uint16_t *rows);
    void (*mix_rows_f32)(int64_t count, int64_t n, float *sums, const float *weights, const float *rows);
    void (*mix_rows_bf16)(int64_t count, int64_t n, float *sums, const float *weights, const uint16_t *rows);
    /* Max pooling of two by two: out[i] is the largest of row[2i], row[2i + 1], below[2i], below[2i + 1], the
     * first one of equal ones, or the last NaN. spread_pairs_f32 is its gradient: gradient[i] goes to the
     * element that out[i] came from, 0 to the other three. */
    void (*largest_pairs_f32)(int64_t n, float *out, const float *row, const float *below);
    void (*spread_pairs_f32)(int64_t n, float *out, float *out_below, const float *row, const float *below,
                             const float *gradient);
    /* Numbers in [0, 1): the upper 24 bits of word i % 4 of sgm__philox(seed, stream, counter + i / 4),
     * divided by 2^24. */
    void (*uniform_f32)(int64_t n, float *out, uint64_t seed, uint64_t stream, uint64_t counter);
} sgm__vector;

extern const sgm__vector sgm__vector_portable;
extern const sgm__int8_tiles sgm__int8_portable;
#if defined(__x86_64__)
extern const sgm__vector sgm__vector_avx2, sgm__vector_avx512;
/* For sgm__vector_avx512 on processors that have AVX512_BF16. */
extern const sgm__tiles sgm__pairs_avx512;
extern const sgm__int8_tiles sgm__int8_avx2;
/* With vpdpbusd, which multiplies and adds integers of 8 bits, for processors that have AVX512_VNNI or
 * AVX_VNNI.
 */
extern const sgm__int8_tiles sgm__int8_avx512_vnni, sgm__int8_avx_vnni;
#elif defined(__aarch64__)
extern const sgm__vector sgm__vector_neon;
#endif

/* Table `index` of those compiled in, and whether this processor can run it; NULL past the last. They are
 * ordered, so that the best one is the last that runs here. */
const sgm__vector *sgm__vector_at(int32_t index, bool *runs_here);
const sgm__vector *sgm__vector_best(void);
extern const char *const sgm__vector_names[]; /* of all compiled in; NULL at the end */
/* NULL, with an error set, if the name is unknown or the processor cannot run that table. */
const sgm__vector *sgm__vector_named(const char *name);
/* The loop for an operation and types; NULL: there is none. */
sgm__vector_function sgm__vector_find(const sgm__vector *vector, const sgm_op *op, sgm_dtype from,
                                      sgm_dtype to);

#endif
