/* Template: loops over a row that give one number (sums, largest) or use one (scaling, softmax). Internal.
 *
 * Called through sgm__vector by kernels/ (reduce.c, softmax.c, normalise.c, attention.c). Sums are kept in
 * double and added in an order that depends on the length alone: several running sums, then the lanes by
 * halves, then the rest. Rows of products and elementwise operations are elsewhere (vector_product.h,
 * vector_kernels.h). */

/* The sum of all lanes: halves are added until one lane is left. */
static inline double sum_lanes(vec_d x)
{
#if VECTOR_BYTES == 64
    return _mm512_reduce_add_pd((__m512d)x);
#else
    double lanes[LANES_D];
    store_d(lanes, x);
    for (int d = LANES_D / 2; d > 0; d /= 2)
        for (int k = 0; k < d; k++)
            lanes[k] += lanes[k + d];
    return lanes[0];
#endif
}

/* The largest lane; NaN if one of them is. */
static inline float largest_lane(vec_f x)
{
#if VECTOR_BYTES == 64
    bool nan = _mm512_cmp_ps_mask((__m512)x, (__m512)x, _CMP_UNORD_Q) != 0;
    return nan ? NAN : _mm512_reduce_max_ps((__m512)x);
#else
    float lanes[LANES];
    store_f(lanes, x);
    for (int d = LANES / 2; d > 0; d /= 2)
        for (int k = 0; k < d; k++) {
            float other = lanes[k + d];
            lanes[k] = other > lanes[k] || other != other ? other : lanes[k];
        }
    return lanes[0];
#endif
}

/* The first n lanes, with zeros behind them. */
static inline vec_f first_lanes(vec_f x, int64_t n)
{
#if VECTOR_BYTES == 64
    return (vec_f)_mm512_maskz_mov_ps((__mmask16)((1u << n) - 1), (__m512)x);
#else
    float lanes[LANES];
    store_f(lanes, x);
    return load_part_f(lanes, n);
#endif
}

/* As many floats as a vector has doubles, as doubles. */
static inline vec_d widen_half(const float *from)
{
    half_f x;
    memcpy(&x, from, sizeof x);
    return __builtin_convertvector(x, vec_d);
}

/* Four running sums, so that an addition need not wait for the one before it. */
static double sum_f32(int64_t n, const float *x)
{
    vec_d sums[4] = {0};
    int64_t i = 0;
    for (; i + 4 * LANES_D <= n; i += 4 * LANES_D)
        for (int k = 0; k < 4; k++)
            sums[k] += widen_half(x + i + k * LANES_D);
    for (; i + LANES_D <= n; i += LANES_D)
        sums[0] += widen_half(x + i);
    double rest = 0;
    for (; i < n; i++)
        rest += (double)x[i];
    return sum_lanes((sums[0] + sums[1]) + (sums[2] + sums[3])) + rest;
}

static double sum_f64(int64_t n, const double *x)
{
    vec_d sums[4] = {0};
    int64_t i = 0;
    for (; i + 4 * LANES_D <= n; i += 4 * LANES_D)
        for (int k = 0; k < 4; k++)
            sums[k] += load_d(x + i + k * LANES_D);
    double rest = 0;
    for (; i < n; i++)
        rest += x[i];
    return sum_lanes((sums[0] + sums[1]) + (sums[2] + sums[3])) + rest;
}

/* sums[i] += the rows' elements i, a few rows at a time, as the processor fetches only a few streams ahead.
 */
#define DEFINE_ADD(name, element, load_row)                                                                  \
    static void name(int64_t n, double *sums, const element *x, int64_t rows, int64_t stride)                \
    {                                                                                                        \
        int64_t i = 0;                                                                                       \
        for (; i + LANES_D <= n; i += LANES_D) {                                                             \
            vec_d sum = load_d(sums + i);                                                                    \
            for (int64_t row = 0; row < rows; row++)                                                         \
                sum += load_row(x + row * stride + i);                                                       \
            store_d(sums + i, sum);                                                                          \
        }                                                                                                    \
        for (; i < n; i++)                                                                                   \
            for (int64_t row = 0; row < rows; row++)                                                         \
                sums[i] += (double)x[row * stride + i];                                                      \
    }
DEFINE_ADD(add_few_f32, float, widen_half)
DEFINE_ADD(add_few_f64, double, load_d)

/* sums[i] = the sum over the rows, for rows that lie in the first cache, `stride` elements apart: a sum stays
 * in a register over all rows. The last vector overlaps the one before it. */
#define DEFINE_ADD_ROWS(name, element, load_row)                                                             \
    static void name(int64_t n, double *sums, const element *x, int64_t rows, int64_t stride)                \
    {                                                                                                        \
        for (int64_t i = 0; i < n && n >= LANES_D; i += LANES_D) {                                           \
            int64_t at = i + LANES_D <= n ? i : n - LANES_D;                                                 \
            vec_d sum = {0};                                                                                 \
            for (int64_t row = 0; row < rows; row++)                                                         \
                sum += load_row(x + row * stride + at);                                                      \
            store_d(sums + at, sum);                                                                         \
        }                                                                                                    \
        for (int64_t i = 0; i < n && n < LANES_D; i++) {                                                     \
            double sum = 0;                                                                                  \
            for (int64_t row = 0; row < rows; row++)                                                         \
                sum += (double)x[row * stride + i];                                                          \
            sums[i] = sum;                                                                                   \
        }                                                                                                    \
    }
DEFINE_ADD_ROWS(add_rows_f32, float, widen_half)
DEFINE_ADD_ROWS(add_rows_f64, double, load_d)

/* -infinity if n is 0. A NaN wins over everything before it, and nothing wins over it but another one. */
static float largest_f32(int64_t n, const float *x)
{
    vec_f largest = splat_f(-INFINITY);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vec_f now = load_f(x + i);
        largest = select_f((now > largest) | (now != now), now, largest);
    }
    if (i < n && i > 0) { /* the last vector overlaps the one before */
        vec_f now = load_f(x + n - LANES);
        return largest_lane(select_f((now > largest) | (now != now), now, largest));
    }
    float result = largest_lane(largest);
    for (; i < n; i++)
        result = x[i] > result || x[i] != x[i] ? x[i] : result;
    return result;
}

/* out = exp(x * scale - shift); returns the sum of that. `out` may be NULL or x. */
static inline __attribute__((always_inline)) double exp_scaled_f32(int64_t n, float *out, const float *x,
                                                                   float scale, float shift)
{
    vec_f factor = splat_f(scale), by = splat_f(-shift);
    vec_d sums[2] = {0};
    for (int64_t i = 0; i < n; i += LANES) {
        int64_t left = n - i < LANES ? n - i : LANES;
        vec_f value = exp_f(FMA_F(left == LANES ? load_f(x + i) : load_part_f(x + i, left), factor, by));
        if (left == LANES && out != NULL) {
            store_f(out + i, value);
        } else if (left < LANES) {
            if (out != NULL)
                store_part_f(out + i, value, left);
            value = first_lanes(value, left);
        }
        half_f halves[2];
        memcpy(halves, &value, sizeof halves);
        sums[0] += __builtin_convertvector(halves[0], vec_d);
        sums[1] += __builtin_convertvector(halves[1], vec_d);
    }
    return sum_lanes(sums[0] + sums[1]);
}

static double exp_shifted_f32(int64_t n, float *out, const float *x, float shift)
{
    return exp_scaled_f32(n, out, x, 1, shift);
}

static void scale_f32(int64_t n, float *out, const float *x, float factor)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = x[i] * factor;
}

static void shift_f32(int64_t n, float *out, const float *x, float shift)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = x[i] - shift;
}

static void blend_f32(int64_t n, float *out, const float *a, float left, const float *b, float right,
                      float shift)
{
    vec_f x = splat_f(left), y = splat_f(right), z = splat_f(shift);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store_f(out + i, FMA_F(load_f(a + i), x, FMA_F(load_f(b + i), y, z)));
    if (i < n)
        store_part_f(out + i, FMA_F(load_part_f(a + i, n - i), x, FMA_F(load_part_f(b + i, n - i), y, z)),
                     n - i);
}

static double dot_f32(int64_t n, const float *a, const float *b)
{
    vec_d sums[4] = {0};
    int64_t i = 0;
    for (; i + 4 * LANES_D <= n; i += 4 * LANES_D)
        for (int k = 0; k < 4; k++)
            sums[k] = FMA_D(widen_half(a + i + k * LANES_D), widen_half(b + i + k * LANES_D), sums[k]);
    for (; i + LANES_D <= n; i += LANES_D)
        sums[0] = FMA_D(widen_half(a + i), widen_half(b + i), sums[0]);
    double rest = 0;
    for (; i < n; i++)
        rest += (double)a[i] * (double)b[i];
    return sum_lanes((sums[0] + sums[1]) + (sums[2] + sums[3])) + rest;
}

/* softmax(x * scale), shifted by the largest x * scale so that nothing overflows. */
static void softmax_row_f32(int64_t n, float *out, const float *x, float scale)
{
    double sum = exp_scaled_f32(n, out, x, scale, largest_f32(n, x) * scale);
    scale_f32(n, out, out, (float)(1 / sum));
}

/* With w the softmax's result and g its gradient: (g - sum(g w)) w scale, in place of g. */
static void softmax_gradient_row_f32(int64_t n, float *gradients, const float *weights, float scale)
{
    vec_f mean = splat_f((float)dot_f32(n, gradients, weights)), factor = splat_f(scale);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store_f(gradients + i, (load_f(gradients + i) - mean) * factor * load_f(weights + i));
    if (i < n)
        store_part_f(gradients + i,
                     (load_part_f(gradients + i, n - i) - mean) * factor * load_part_f(weights + i, n - i),
                     n - i);
}

/* --- a vector by a few rows after each other, of float32 or bfloat16; sums are float32 --- */

/* The sum of all lanes: halves are added until one lane is left. */
static inline float sum_lanes_f(vec_f x)
{
#if VECTOR_BYTES == 64
    return _mm512_reduce_add_ps((__m512)x);
#else
    float lanes[LANES];
    store_f(lanes, x);
    for (int d = LANES / 2; d > 0; d /= 2)
        for (int k = 0; k < d; k++)
            lanes[k] += lanes[k + d];
    return lanes[0];
#endif
}

/* Rows at a time: as many sums as hide how long one multiply-add takes. */
#define ROWS_AT_ONCE 4

#define DEFINE_DOT_ROWS(name, element, load, load_part)                                                      \
    static inline __attribute__((always_inline)) void few_##name(int rows, int64_t n, float *dots,           \
                                                                 const float *x, const element *from)        \
    {                                                                                                        \
        vec_f sums[ROWS_AT_ONCE] = {{0}};                                                                    \
        int64_t i = 0;                                                                                       \
        for (; i + LANES <= n; i += LANES)                                                                   \
            for (int k = 0; k < rows; k++)                                                                   \
                sums[k] = FMA_F(load_f(x + i), load(from + k * n + i), sums[k]);                             \
        for (int k = 0; k < rows && i < n; k++)                                                              \
            sums[k] = FMA_F(load_part_f(x + i, n - i), load_part(from + k * n + i, n - i), sums[k]);         \
        for (int k = 0; k < rows; k++)                                                                       \
            dots[k] = sum_lanes_f(sums[k]);                                                                  \
    }                                                                                                        \
    static void name(int64_t count, int64_t n, float *dots, const float *x, const element *rows)             \
    {                                                                                                        \
        int64_t j = 0;                                                                                       \
        for (; j + ROWS_AT_ONCE <= count; j += ROWS_AT_ONCE)                                                 \
            few_##name(ROWS_AT_ONCE, n, dots + j, x, rows + j * n);                                          \
        for (; j < count; j++)                                                                               \
            few_##name(1, n, dots + j, x, rows + j * n);                                                     \
    }
DEFINE_DOT_ROWS(dot_rows_f32, float, load_f, load_part_f)
DEFINE_DOT_ROWS(dot_rows_bf16, uint16_t, load_h, load_part_h)

/* As many vectors of a row at a time, whose sums stay in registers over all rows. */
#define DEFINE_MIX_ROWS(name, element, load, load_part)                                                      \
    static inline __attribute__((always_inline)) void few_##name(                                            \
        int vectors, int64_t count, int64_t n, float *sums, const float *weights, const element *rows)       \
    {                                                                                                        \
        vec_f kept[ROWS_AT_ONCE];                                                                            \
        for (int k = 0; k < vectors; k++)                                                                    \
            kept[k] = load_f(sums + k * LANES);                                                              \
        for (int64_t j = 0; j < count; j++)                                                                  \
            for (int k = 0; k < vectors; k++)                                                                \
                kept[k] = FMA_F(splat_f(weights[j]), load(rows + j * n + k * LANES), kept[k]);               \
        for (int k = 0; k < vectors; k++)                                                                    \
            store_f(sums + k * LANES, kept[k]);                                                              \
    }                                                                                                        \
    static void name(int64_t count, int64_t n, float *sums, const float *weights, const element *rows)       \
    {                                                                                                        \
        int64_t i = 0;                                                                                       \
        for (; i + ROWS_AT_ONCE * LANES <= n; i += ROWS_AT_ONCE * LANES)                                     \
            few_##name(ROWS_AT_ONCE, count, n, sums + i, weights, rows + i);                                 \
        for (; i + LANES <= n; i += LANES)                                                                   \
            few_##name(1, count, n, sums + i, weights, rows + i);                                            \
        if (i == n)                                                                                          \
            return;                                                                                          \
        vec_f kept = load_part_f(sums + i, n - i);                                                           \
        for (int64_t j = 0; j < count; j++)                                                                  \
            kept = FMA_F(splat_f(weights[j]), load_part(rows + j * n + i, n - i), kept);                     \
        store_part_f(sums + i, kept, n - i);                                                                 \
    }
DEFINE_MIX_ROWS(mix_rows_f32, float, load_f, load_part_f)
DEFINE_MIX_ROWS(mix_rows_bf16, uint16_t, load_h, load_part_h)
