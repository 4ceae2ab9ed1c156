/* Template: vector types, memory access, and the mathematical functions of single precision. Internal.
 *
 * The file that includes it defines VECTOR_BYTES, and FMA_F, FMA_D, SQRT_F, SQRT_D, FLOOR_F and FLOOR_D on
 * its vectors. Letters: f float32, d float64, i int32, l int64, u uint32, h bfloat16. Functions have no
 * branches: special cases are computed in all lanes and selected. Polynomials are minimax fits (Remez) of
 * relative error below 1e-8 on the intervals named, unless said otherwise.
 *
 * Errors, in units in the last place of the true value, for all floats (tests/handlers/test_cpu_functions.c
 * asserts them): exp at most 1.1, log 1, log1p and erf 2, tanh 2.5, gelu 12. */
#include <math.h>
#include <string.h>

/* Elements of float32 and of float64 in a vector. */
#define LANES (VECTOR_BYTES / 4)
#define LANES_D (VECTOR_BYTES / 8)
typedef float vec_f __attribute__((vector_size(VECTOR_BYTES)));
typedef int32_t vec_i __attribute__((vector_size(VECTOR_BYTES)));
typedef double vec_d __attribute__((vector_size(VECTOR_BYTES)));
typedef int64_t vec_l __attribute__((vector_size(VECTOR_BYTES)));
typedef uint32_t vec_u __attribute__((vector_size(VECTOR_BYTES)));
typedef uint16_t vec_h __attribute__((vector_size(VECTOR_BYTES / 2)));
typedef float half_f __attribute__((vector_size(VECTOR_BYTES / 2)));
/* As many bytes as a vector has floats. */
typedef uint8_t byte_f __attribute__((vector_size(VECTOR_BYTES / 4)));
/* As many bytes as a vector has doubles. */
typedef uint8_t byte_d __attribute__((vector_size(VECTOR_BYTES / 8)));

/* --- access: whole vectors, and the first `n` elements with zeros for the rest --- */

/* load, store: whole vectors at any address. load_part, store_part: the first `n` elements, with zeros for
 * the rest; nothing behind them is touched. */
#define DEFINE_WHOLE(letter, element)                                                                        \
    static inline vec_##letter load_##letter(const element *from)                                            \
    {                                                                                                        \
        vec_##letter x;                                                                                      \
        memcpy(&x, from, sizeof x);                                                                          \
        return x;                                                                                            \
    }                                                                                                        \
    static inline void store_##letter(element *to, vec_##letter x)                                           \
    {                                                                                                        \
        memcpy(to, &x, sizeof x);                                                                            \
    }
DEFINE_WHOLE(f, float)
DEFINE_WHOLE(d, double)
#if defined(__AVX2__) && VECTOR_BYTES == 32
/* Ones, then zeros: from element LANES - n on there are n ones, as a mask of vectors. */
static const int32_t part_mask[2 * LANES] = {-1, -1, -1, -1, -1, -1, -1, -1};

static inline vec_f load_part_f(const float *from, int64_t n)
{
    return (vec_f)_mm256_maskload_ps(from, _mm256_loadu_si256((const __m256i *)(part_mask + LANES - n)));
}

static inline vec_d load_part_d(const double *from, int64_t n)
{
    const __m256i *mask = (const __m256i *)(part_mask + LANES - 2 * n);
    return (vec_d)_mm256_maskload_pd(from, _mm256_loadu_si256(mask));
}

/* In halves, as storing by a mask takes some processors twenty operations. */
static inline void store_part_f(float *to, vec_f x, int64_t n)
{
    __m128 half = _mm256_castps256_ps128((__m256)x);
    if (n >= LANES) {
        store_f(to, x);
        return;
    }
    if ((n & 4) != 0) {
        _mm_storeu_ps(to, half);
        half = _mm256_extractf128_ps((__m256)x, 1);
        to += 4;
    }
    if ((n & 2) != 0) {
        _mm_storel_pi((__m64 *)(void *)to, half);
        half = _mm_movehl_ps(half, half);
        to += 2;
    }
    if ((n & 1) != 0)
        _mm_store_ss(to, half);
}

static inline void store_part_d(double *to, vec_d x, int64_t n)
{
    store_part_f((float *)(void *)to, (vec_f)x, 2 * n);
}
#elif VECTOR_BYTES < 64
#define DEFINE_PARTS(letter, element, lanes)                                                                 \
    static inline vec_##letter load_part_##letter(const element *from, int64_t n)                            \
    {                                                                                                        \
        element all[lanes] = {0};                                                                            \
        for (int64_t i = 0; i < n; i++)                                                                      \
            all[i] = from[i];                                                                                \
        return load_##letter(all);                                                                           \
    }                                                                                                        \
    static inline void store_part_##letter(element *to, vec_##letter x, int64_t n)                           \
    {                                                                                                        \
        element all[lanes];                                                                                  \
        store_##letter(all, x);                                                                              \
        for (int64_t i = 0; i < n; i++)                                                                      \
            to[i] = all[i];                                                                                  \
    }
DEFINE_PARTS(f, float, LANES)
DEFINE_PARTS(d, double, LANES_D)
#else /* AVX-512 loads and stores by masks */
#define DEFINE_MASKED_PARTS(letter, element, bits, suffix, type)                                             \
    static inline vec_##letter load_part_##letter(const element *from, int64_t n)                            \
    {                                                                                                        \
        return (vec_##letter)_mm512_maskz_loadu_##suffix((__mmask##bits)((1u << n) - 1), from);              \
    }                                                                                                        \
    static inline void store_part_##letter(element *to, vec_##letter x, int64_t n)                           \
    {                                                                                                        \
        _mm512_mask_storeu_##suffix(to, (__mmask##bits)((1u << n) - 1), (type)x);                            \
    }
DEFINE_MASKED_PARTS(f, float, 16, ps, __m512)
DEFINE_MASKED_PARTS(d, double, 8, pd, __m512d)
#endif

/* A vector of one number. x - 0 is x, also for -0, so compilers leave no operation. */
static inline vec_f splat_f(float x)
{
    return x - (vec_f){0};
}

static inline vec_d splat_d(double x)
{
    return x - (vec_d){0};
}

/* The smaller one of a bound and x, and below the larger one; x if that is NaN. */
static inline vec_f smaller_f(vec_f bound, vec_f x)
{
#if VECTOR_BYTES == 64
    return (vec_f)_mm512_min_ps((__m512)bound, (__m512)x);
#else
    vec_i over = x > bound;
    return (vec_f)((over & (vec_i)bound) | (~over & (vec_i)x));
#endif
}

static inline vec_f larger_f(vec_f bound, vec_f x)
{
#if VECTOR_BYTES == 64
    return (vec_f)_mm512_max_ps((__m512)bound, (__m512)x);
#else
    vec_i under = x < bound;
    return (vec_f)((under & (vec_i)bound) | (~under & (vec_i)x));
#endif
}

/* x 2^n for a whole n, also where the result overflows or is subnormal: without the instruction for it, in
 * two halves, as 2^n alone may not be a float. */
static inline vec_f scale_f(vec_f x, vec_f n)
{
#if VECTOR_BYTES == 64
    return (vec_f)_mm512_scalef_ps((__m512)x, (__m512)n);
#else
    vec_i power = __builtin_convertvector(n, vec_i), half = power >> 1;
    return x * (vec_f)((half + 127) << 23) * (vec_f)((power - half + 127) << 23);
#endif
}

/* a / b, right to the last bit but one, if neither a / b nor 1 / b is near the ends of what floats reach: an
 * estimate of 1 / b, improved once by Newton's method, and the quotient's rest. A third of a division's time.
 */
static inline vec_f quotient_f(vec_f a, vec_f b)
{
#if VECTOR_BYTES == 64
    vec_f inverse = (vec_f)_mm512_rcp14_ps((__m512)b);
    inverse = FMA_F(inverse, FMA_F(-b, inverse, splat_f(1.0f)), inverse);
    vec_f near = a * inverse;
    return FMA_F(inverse, FMA_F(-b, near, a), near);
#else
    return a / b;
#endif
}

/* mask (all ones or zeros) ? a : b */
static inline vec_f select_f(vec_i mask, vec_f a, vec_f b)
{
    return (vec_f)((mask & (vec_i)a) | (~mask & (vec_i)b));
}

static inline vec_d select_d(vec_l mask, vec_d a, vec_d b)
{
    return (vec_d)((mask & (vec_l)a) | (~mask & (vec_l)b));
}

/* sgm__limits of one vector. */
#define DEFINE_LIMIT(letter, element)                                                                        \
    static inline vec_##letter limit_##letter(vec_##letter x, element low, element high)                     \
    {                                                                                                        \
        vec_##letter least = splat_##letter(low), most = splat_##letter(high);                               \
        x = select_##letter(x <= least, least, x);                                                           \
        return select_##letter(x >= most, most, x);                                                          \
    }
DEFINE_LIMIT(f, float)
DEFINE_LIMIT(d, double)

#if VECTOR_BYTES < 64 /* lanes of a and b, numbered one after the other */
static inline vec_f shuffle_lanes_f(vec_f a, vec_f b, vec_i lanes)
{
#if defined(__clang__)
    for (int i = 0; i < LANES; i++)
        lanes[i] = (int32_t)(lanes[i] < LANES ? (vec_i)a : (vec_i)b)[lanes[i] % LANES];
    return (vec_f)lanes;
#else
    return __builtin_shuffle(a, b, lanes);
#endif
}

static inline vec_d shuffle_lanes_d(vec_d a, vec_d b, vec_l lanes)
{
#if defined(__clang__)
    for (int i = 0; i < LANES_D; i++)
        lanes[i] = (lanes[i] < LANES_D ? (vec_l)a : (vec_l)b)[lanes[i] % LANES_D];
    return (vec_d)lanes;
#else
    return __builtin_shuffle(a, b, lanes);
#endif
}
#endif

static inline vec_f absolute_f(vec_f x)
{
    return (vec_f)((vec_i)x & 0x7fffffff);
}

static inline vec_d absolute_d(vec_d x)
{
    return (vec_d)((vec_l)x & INT64_MAX);
}

/* `magnitude`, which may have any sign, with the sign of `sign`. */
static inline vec_f copy_sign_f(vec_f magnitude, vec_f sign)
{
    return (vec_f)(((vec_i)magnitude & 0x7fffffff) | ((vec_i)sign & INT32_MIN));
}

static inline vec_i is_nan_f(vec_f x)
{
    return x != x;
}

/* --- bfloat16: the upper half of a float, rounded to nearest even --- */

static inline vec_f widen_h(vec_h x)
{
    return (vec_f)(__builtin_convertvector(x, vec_u) << 16);
}

/* Adds 0x7fff and the lowest bit that stays, so that ties go to even. NaN keeps its upper bits and becomes
 * quiet: rounding could make it infinite. */
static inline vec_h narrow_h(vec_f x)
{
    vec_u bits = (vec_u)x, odd = (bits >> 16) & 1;
    vec_u rounded = (bits + 0x7fff + odd) >> 16, quiet = (bits >> 16) | 0x40;
    vec_u nan = (vec_u)is_nan_f(x);
    return __builtin_convertvector((nan & quiet) | (~nan & rounded), vec_h);
}

static inline vec_f load_h(const uint16_t *from)
{
    vec_h x;
    memcpy(&x, from, sizeof x);
    return widen_h(x);
}

static inline void store_h(uint16_t *to, vec_f x)
{
    vec_h narrow = narrow_h(x);
    memcpy(to, &narrow, sizeof narrow);
}

#if VECTOR_BYTES == 64
static inline vec_f load_part_h(const uint16_t *from, int64_t n)
{
    return widen_h((vec_h)_mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1), from));
}

static inline void store_part_h(uint16_t *to, vec_f x, int64_t n)
{
    _mm256_mask_storeu_epi16(to, (__mmask16)((1u << n) - 1), (__m256i)narrow_h(x));
}
#else
static inline vec_f load_part_h(const uint16_t *from, int64_t n)
{
    uint16_t all[LANES] = {0};
    memcpy(all, from, (size_t)n * sizeof *from);
    return load_h(all);
}

static inline void store_part_h(uint16_t *to, vec_f x, int64_t n)
{
    uint16_t all[LANES];
    store_h(all, x);
    memcpy(to, all, (size_t)n * sizeof *to);
}
#endif

/* --- functions --- */

/* *n is the whole number nearest to x / ln 2; returns e^r - 1 for r = x - n ln 2, |r| <= ln 2 / 2. For -104 <
 * x < 89. Adding and subtracting 1.5 * 2^23 rounds to a whole number; ln 2 is subtracted in two parts, of
 * which n times the first is exact (Cody and Waite, 1980). */
static inline vec_f exp_parts_f(vec_f x, vec_f *n)
{
    vec_f magic = splat_f(12582912.0f); /* 1.5 * 2^23 */
    *n = FMA_F(x, splat_f(1.44269504f), magic) - magic;
    vec_f r = FMA_F(*n, splat_f(-0.693359375f), x);
    r = FMA_F(*n, splat_f(2.12194440e-4f), r);
    vec_f p = splat_f(0.00139507942f);
    p = FMA_F(p, r, splat_f(0.00836906582f));
    p = FMA_F(p, r, splat_f(0.0416662022f));
    p = FMA_F(p, r, splat_f(0.166665167f));
    p = FMA_F(p, r, splat_f(0.5f));
    return FMA_F(p * r, r, r);
}

/* e^x = 2^n (1 + (e^r - 1)). Beyond the limits of x the result is 0 or infinite anyway. */
static inline vec_f exp_f(vec_f x)
{
    vec_f n, p = exp_parts_f(smaller_f(splat_f(89.0f), larger_f(splat_f(-104.0f), x)), &n);
    return scale_f(p + 1.0f, n);
}

/* ln x = k ln 2 + ln m with m in [sqrt(1/2), sqrt(2)); ln m = 2 atanh(s) with s = (m - 1) / (m + 1), a
 * polynomial of s^2. Subnormal x are multiplied by 2^25 first. m - 1 = f is added last, as the largest part
 * of the sum. The last three lines are 0, negative numbers and NaN, and infinity. */
static inline vec_f log_f(vec_f x)
{
    vec_i tiny = x < 1.17549435e-38f;
    vec_f scaled = select_f(tiny, x * 33554432.0f, x);
    vec_i bits = (vec_i)absolute_f(scaled), k = (bits - 0x3f3504f3) >> 23;
    vec_f f = (vec_f)(bits - (k << 23)) - 1.0f;
    vec_f n = __builtin_convertvector(k + (tiny & -25), vec_f);
    vec_f s = f / (f + 2.0f), z = s * s, half = f * f * 0.5f;
    vec_f p = splat_f(0.298722595f);
    p = FMA_F(p, z, splat_f(0.399775237f));
    p = FMA_F(p, z, splat_f(0.666667759f));
    vec_f tail = FMA_F(s, FMA_F(p, z, half), n * -2.12194440e-4f);
    vec_f result = FMA_F(n, splat_f(0.693359375f), f - (half - tail));
    result = select_f(x == 0.0f, splat_f(-INFINITY), result);
    result = select_f((x < 0.0f) | is_nan_f(x), splat_f(NAN), result);
    return select_f(x == INFINITY, x, result);
}

/* ln(1 + x) = ln u + (x - (u - 1)) / u with u = 1 + x rounded: the second part is what rounding took from x
 * (Kahan). */
static inline vec_f log1p_f(vec_f x)
{
    vec_f u = x + 1.0f;
    vec_f result = log_f(u) + (x - (u - 1.0f)) / u;
    return select_f((u == INFINITY) | (u == 0.0f), log_f(u), select_f(u == 1.0f, x, result));
}

/* t / (t + 2) for t = e^(2 |x|) - 1, which is exact for small x, too; the sign is put back. From |x| = 10 on
 * the result rounds to 1. */
static inline vec_f tanh_f(vec_f x)
{
    vec_f n, size = smaller_f(splat_f(10.0f), absolute_f(x)), p = exp_parts_f(size + size, &n);
    vec_f power = scale_f(splat_f(1.0f), n), t = FMA_F(p, power, power - 1.0f);
    return copy_sign_f(quotient_f(t, t + 2.0f), x);
}

/* 1 / (1 + e^-x). -x is limited to 88: e^88 is still finite, and its reciprocal so small that it becomes zero
 * while a program runs, so that x * sigmoid(x) also ends at zero. */
static inline vec_f sigmoid_f(vec_f x)
{
    vec_f n, p = exp_parts_f(smaller_f(splat_f(88.0f), larger_f(splat_f(-104.0f), -x)), &n);
    return quotient_f(splat_f(1.0f), scale_f(p + 1.0f, n) + 1.0f);
}

/* An odd polynomial for |x| in [0, 0.93]; else 1 - e^-(t + t q(t)) for t = |x|, with a polynomial q, up to
 * 3.93, from where on it rounds to 1. */
static inline vec_f erf_f(vec_f x)
{
    vec_f t = absolute_f(x), z = x * x;
    vec_f p = splat_f(-0.000595374207f);
    p = FMA_F(p, z, splat_f(0.00498594064f));
    p = FMA_F(p, z, splat_f(-0.02676172f));
    p = FMA_F(p, z, splat_f(0.112816826f));
    p = FMA_F(p, z, splat_f(-0.376124799f));
    p = FMA_F(p, z, splat_f(0.128379151f));
    vec_f near = FMA_F(p, x, x);
    vec_f limited = smaller_f(splat_f(3.93f), t);
    vec_f q = splat_f(-0.000213648513f);
    q = FMA_F(q, limited, splat_f(0.0032121737f));
    q = FMA_F(q, limited, splat_f(-0.0228810124f));
    q = FMA_F(q, limited, splat_f(0.105247825f));
    q = FMA_F(q, limited, splat_f(0.635729015f));
    q = FMA_F(q, limited, splat_f(0.128511176f));
    vec_f far = 1.0f - exp_f(-FMA_F(q, limited, limited));
    far = select_f(t > 3.93f, splat_f(1.0f), far);
    return select_f(t < 0.93f, near, select_f(is_nan_f(x), x, copy_sign_f(far, x)));
}

/* The normal distribution: returns e^(-x^2 / 2), and in *share the area from |x| on as a share of that. With
 * t = |x| / sqrt(2) the share is f(t) / 2, where f is a polynomial of (t - 2.5) / (t + 2.5) (minimax,
 * relative error below 3e-8 up to |x| = 9.6; from there on the first factor is 0 in effect). e^(-x^2 / 2)
 * would lose digits by the rounding of x^2 for large x: what that lost is computed exactly and comes back as
 * a factor. */
static inline vec_f normal_f(vec_f x, vec_f *share)
{
    vec_f size = absolute_f(x), square = size * size;
    /* Both have few enough bits that their products are exact. */
    vec_f high = (vec_f)((vec_i)size & -4096), low = size - high;
    vec_f lost = FMA_F(low, low, FMA_F(high + high, low, FMA_F(high, high, -square)));
    vec_f bell = exp_f(square * -0.5f) * FMA_F(lost, splat_f(-0.5f), splat_f(1.0f));
    vec_f t = size * 0.707106781f, s = quotient_f(t - 2.5f, t + 2.5f);
    vec_f p = splat_f(-5.33368111e-05f);
    p = FMA_F(p, s, splat_f(0.000217032866f));
    p = FMA_F(p, s, splat_f(0.000815575011f));
    p = FMA_F(p, s, splat_f(-0.00264466321f));
    p = FMA_F(p, s, splat_f(-0.00397495832f));
    p = FMA_F(p, s, splat_f(0.0399233662f));
    p = FMA_F(p, s, splat_f(-0.125035375f));
    p = FMA_F(p, s, splat_f(0.251713187f));
    p = FMA_F(p, s, splat_f(-0.371736646f));
    p = FMA_F(p, s, splat_f(0.210806370f));
    *share = p * 0.5f;
    return bell;
}

/* gelu(x) = x P(x) and its derivative P(x) + x p(x), where p is the normal distribution's density and P its
 * integral: both need the same exponential and share. Beyond 40 all that falls is 0, also times 40, so |x| is
 * limited for p and P. */
static inline vec_f gelu_both_f(vec_f x, vec_f *gradient)
{
    vec_f share, low = larger_f(splat_f(-40.0f), x), near = smaller_f(splat_f(40.0f), low);
    vec_f bell = normal_f(near, &share), tail = bell * share;
    *gradient = FMA_F(near * bell, splat_f(0.398942280f), select_f(x < 0.0f, tail, 1.0f - tail));
    return select_f(x < 0.0f, low * bell * share, low * (1.0f - tail));
}

static inline vec_f gelu_f(vec_f x)
{
    vec_f gradient;
    return gelu_both_f(x, &gradient);
}

static inline vec_f gelu_gradient_f(vec_f x)
{
    vec_f gradient;
    gelu_both_f(x, &gradient);
    return gradient;
}
