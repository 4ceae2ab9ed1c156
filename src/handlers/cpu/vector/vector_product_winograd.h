/* Template: Winograd's transforms of float32 (vector_winograd.h), and those of the products back to results.
 * Internal. */
#include "handlers/cpu/vector/vector_winograd.h"

DEFINE_WINOGRAD_INPUT(winograd_input_f32, float, store_f)
DEFINE_WINOGRAD_WEIGHTS(winograd_weights_f32, float, store_f)
DEFINE_WINOGRAD_RESULTS(winograd_results_f32, float, store_f)

/* A' M A + bias, kept between limits, for `count` tiles and on to the end of a vector: result (i, k) of the
 * tiles goes to to + (2 * i + k) * to_stride. */
static void winograd_output_f32(int64_t count, float *to, int64_t to_stride, const float *from,
                                int64_t from_stride, float bias, sgm__limits limits)
{
    float low = (float)limits.low, high = (float)limits.high;
    for (int64_t n = 0; n < count; n += LANES) {
        vec_f upper[4], lower[4], shift = splat_f(bias);
        UNROLL for (int k = 0; k < 4; k++)
        {
            const float *m = from + k * from_stride + n;
            vec_f m0 = load_f(m), m1 = load_f(m + 4 * from_stride);
            vec_f m2 = load_f(m + 8 * from_stride), m3 = load_f(m + 12 * from_stride);
            upper[k] = m0 + m1 + m2;
            lower[k] = m1 - m2 - m3;
        }
        store_f(to + n, limit_f(upper[0] + upper[1] + upper[2] + shift, low, high));
        store_f(to + to_stride + n, limit_f(upper[1] - upper[2] - upper[3] + shift, low, high));
        store_f(to + 2 * to_stride + n, limit_f(lower[0] + lower[1] + lower[2] + shift, low, high));
        store_f(to + 3 * to_stride + n, limit_f(lower[1] - lower[2] - lower[3] + shift, low, high));
    }
}

/* out = G' x: of four rows (or columns). */
#define WINOGRAD_KERNELS(out, x0, x1, x2, x3)                                                                \
    do {                                                                                                     \
        vec_f even = ((x1) + (x2)) * splat_f(0.5f);                                                          \
        (out)[0] = (x0) + even;                                                                              \
        (out)[1] = ((x1) - (x2)) * splat_f(0.5f);                                                            \
        (out)[2] = even + (x3);                                                                              \
    } while (0)

/* G' s G for `count` kernels and on to the end of a vector: element e of 16 lies at from + e * from_stride,
 * place (i, k) of the kernels goes to to + (3 * i + k) * to_stride. */
static void winograd_kernels_f32(int64_t count, float *to, int64_t to_stride, const float *from,
                                 int64_t from_stride)
{
    for (int64_t n = 0; n < count; n += LANES) {
        vec_f columns[4][3], out[3];
        UNROLL for (int k = 0; k < 4; k++)
        {
            const float *s = from + k * from_stride + n;
            WINOGRAD_KERNELS(columns[k], load_f(s), load_f(s + 4 * from_stride), load_f(s + 8 * from_stride),
                             load_f(s + 12 * from_stride));
        }
        UNROLL for (int i = 0; i < 3; i++)
        {
            WINOGRAD_KERNELS(out, columns[0][i], columns[1][i], columns[2][i], columns[3][i]);
            UNROLL for (int k = 0; k < 3; k++) store_f(to + (3 * i + k) * to_stride + n, out[k]);
        }
    }
}

#define WINOGRAD_f32                                                                                         \
    {                                                                                                        \
        .input = winograd_input_f32, .weights = winograd_weights_f32, .results = winograd_results_f32,       \
        .output = winograd_output_f32, .kernels = winograd_kernels_f32                                       \
    }
#define WINOGRAD_f64                                                                                         \
    {                                                                                                        \
        .input = NULL                                                                                        \
    }
