/* Template: convolutions of few channels, whose lanes are neighbouring pixels of a row. Internal.
 *
 * Where a tile's lanes are filters (vector_convolution.h), a group of one filter would use one lane of
 * each vector. Here an image lies in memory so that all products of one weight and a row of results are
 * neighbours, whatever the stride (kernels/convolution/convolution_slide.c). A block of some rows by two
 * vectors of results stays in registers, and each vector of the image is loaded once for all rows of the
 * block and of the window that meet there: with windows of three rows and blocks of four, half a load for
 * each multiplication. For that, height and stride of windows are constants: those below, others go by single
 * rows. */
#include "handlers/cpu/vector/vector.h"

#define SLIDE_ROWS 4
#define SLIDE_VECTORS 4
#define SLIDE_HEIGHT 5 /* the highest window that is a constant */

/* Results of `rows` rows by `vectors` vectors from (row, at) on, of which the last vector may be a part.
 * `rows`, `vectors`, `height` and `stride` are constants where this is inlined; `image` is where the first
 * result's window begins. In `_any` the window's height is none, and there is one row. */
#define DEFINE_SLIDE_BLOCK(name, element, vector, letter, LETTER, lanes)                                     \
    static inline __attribute__((always_inline)) void name##_finish(                                         \
        const sgm__slide *s, vector(*sums)[SLIDE_VECTORS], int64_t row, int64_t at, int rows, int vectors)   \
    {                                                                                                        \
        element *to = (element *)s->to + row * s->columns + at;                                              \
        int64_t last = s->columns - at - (vectors - 1) * (lanes);                                            \
        UNROLL for (int r = 0; r < rows; r++, to += s->columns)                                              \
        {                                                                                                    \
            UNROLL for (int v = 0; v < vectors; v++) sums[r][v] =                                            \
                limit_##letter(sums[r][v], (element)s->limits.low, (element)s->limits.high);                 \
            UNROLL for (int v = 0; v < vectors - 1; v++) store_##letter(to + v * (lanes), sums[r][v]);       \
            if (last >= (lanes))                                                                             \
                store_##letter(to + (vectors - 1) * (lanes), sums[r][vectors - 1]);                          \
            else                                                                                             \
                store_part_##letter(to + (vectors - 1) * (lanes), sums[r][vectors - 1], last);               \
        }                                                                                                    \
    }                                                                                                        \
    static inline __attribute__((always_inline)) void name##_block(                                          \
        const sgm__slide *s, int64_t row, int64_t at, int rows, int vectors, int height, int stride)         \
    {                                                                                                        \
        const element *image = (const element *)s->image + row * stride * s->line + at;                      \
        const element *weights = s->weights;                                                                 \
        vector sums[SLIDE_ROWS][SLIDE_VECTORS], factors[SLIDE_HEIGHT];                                       \
        vector bias = splat_##letter(s->bias != NULL ? *(const element *)s->bias : 0);                       \
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++) sums[r][v] = bias;    \
        for (int64_t c = 0; c < s->channels; c++, weights += height * s->width)                              \
            for (int64_t j = 0; j < s->width; j++) {                                                         \
                const element *from = image + c * s->channel + s->steps[j];                                  \
                UNROLL for (int k = 0; k < height; k++) factors[k] =                                         \
                    splat_##letter(weights[k * s->width + j]);                                               \
                UNROLL for (int y = 0; y < (rows - 1) * stride + height; y++, from += s->line)               \
                    UNROLL for (int v = 0; v < vectors; v++)                                                 \
                {                                                                                            \
                    vector x = load_##letter(from + v * (lanes));                                            \
                    UNROLL for (int r = 0; r < rows; r++) if (y >= r * stride && y < r * stride + height)    \
                        sums[r][v] = FMA_##LETTER(factors[y - r * stride], x, sums[r][v]);                   \
                }                                                                                            \
            }                                                                                                \
        name##_finish(s, sums, row, at, rows, vectors);                                                      \
    }                                                                                                        \
    static inline __attribute__((always_inline)) void name##_any(const sgm__slide *s, int64_t row,           \
                                                                 int64_t at, int vectors)                    \
    {                                                                                                        \
        const element *image = (const element *)s->image + row * s->stride * s->line + at;                   \
        const element *weights = s->weights;                                                                 \
        vector sums[1][SLIDE_VECTORS];                                                                       \
        UNROLL for (int v = 0; v < vectors; v++) sums[0][v] =                                                \
            splat_##letter(s->bias != NULL ? *(const element *)s->bias : 0);                                 \
        for (int64_t c = 0; c < s->channels; c++, image += s->channel)                                       \
            for (int64_t k = 0; k < s->height; k++, weights += s->width)                                     \
                for (int64_t j = 0; j < s->width; j++) {                                                     \
                    const element *from = image + k * s->dilation * s->line + s->steps[j];                   \
                    vector factor = splat_##letter(weights[j]);                                              \
                    UNROLL for (int v = 0; v < vectors; v++) sums[0][v] =                                    \
                        FMA_##LETTER(factor, load_##letter(from + v * (lanes)), sums[0][v]);                 \
                }                                                                                            \
        name##_finish(s, sums, row, at, 1, vectors);                                                         \
    }
DEFINE_SLIDE_BLOCK(slide_f32, float, vec_f, f, F, LANES)
DEFINE_SLIDE_BLOCK(slide_f64, double, vec_d, d, D, LANES_D)

/* Results by blocks: of one kind of window, and of any. */
#define DEFINE_SLIDE(name, lanes)                                                                            \
    static inline __attribute__((always_inline)) void name##_rows(const sgm__slide *s, int64_t row,          \
                                                                  int rows, int height, int stride)          \
    {                                                                                                        \
        int64_t at = 0;                                                                                      \
        for (; at + (lanes) < s->columns; at += 2 * (lanes))                                                 \
            name##_block(s, row, at, rows, 2, height, stride);                                               \
        if (at < s->columns)                                                                                 \
            name##_block(s, row, at, rows, 1, height, stride);                                               \
    }                                                                                                        \
    static inline                                                                                            \
        __attribute__((always_inline)) void name##_windows(const sgm__slide *s, int height, int stride)      \
    {                                                                                                        \
        int64_t row = 0;                                                                                     \
        for (; row + 4 <= s->rows; row += 4)                                                                 \
            name##_rows(s, row, 4, height, stride);                                                          \
        for (; row + 2 <= s->rows; row += 2)                                                                 \
            name##_rows(s, row, 2, height, stride);                                                          \
        if (row < s->rows)                                                                                   \
            name##_rows(s, row, 1, height, stride);                                                          \
    }                                                                                                        \
    static void name##_3_1(const sgm__slide *s)                                                              \
    {                                                                                                        \
        name##_windows(s, 3, 1);                                                                             \
    }                                                                                                        \
    static void name##_3_2(const sgm__slide *s)                                                              \
    {                                                                                                        \
        name##_windows(s, 3, 2);                                                                             \
    }                                                                                                        \
    static void name##_5_1(const sgm__slide *s)                                                              \
    {                                                                                                        \
        name##_windows(s, 5, 1);                                                                             \
    }                                                                                                        \
    static void name(const sgm__slide *s)                                                                    \
    {                                                                                                        \
        bool close = s->dilation == 1;                                                                       \
        if (close && s->height == 3 && s->stride <= 2) {                                                     \
            (s->stride == 1 ? name##_3_1 : name##_3_2)(s);                                                   \
            return;                                                                                          \
        }                                                                                                    \
        if (close && s->height == 5 && s->stride == 1) {                                                     \
            name##_5_1(s);                                                                                   \
            return;                                                                                          \
        }                                                                                                    \
        for (int64_t row = 0; row < s->rows; row++) {                                                        \
            int64_t at = 0;                                                                                  \
            for (; at + 3 * (lanes) < s->columns; at += 4 * (lanes))                                         \
                name##_any(s, row, at, 4);                                                                   \
            for (; at < s->columns; at += (lanes))                                                           \
                name##_any(s, row, at, 1);                                                                   \
        }                                                                                                    \
    }
DEFINE_SLIDE(slide_f32, LANES)
DEFINE_SLIDE(slide_f64, LANES_D)

/* The gradient by the weights of `height` rows of the window from `first` on, which are constants, and
 * `steps` of its columns from `j` on, whose sums stay in registers. Rows of factors are taken four at a time,
 * then one at a time. */
#define DEFINE_SLIDE_SUMS(name, element, vector, letter, LETTER, lanes)                                      \
    static inline __attribute__((always_inline)) void name##_rows(                                           \
        const sgm__slide_sums *s, const element *image, int64_t j, int64_t row, vector(*sums)[4], int rows,  \
        int height, int64_t stride, int steps)                                                               \
    {                                                                                                        \
        const element *factors = (const element *)s->factors + row * s->columns;                             \
        image += row * stride * s->line;                                                                     \
        for (int64_t at = 0; at < s->columns; at += (lanes)) {                                               \
            vector factor[SLIDE_ROWS];                                                                       \
            int64_t n = s->columns - at < (lanes) ? s->columns - at : (lanes);                               \
            UNROLL for (int r = 0; r < rows; r++) factor[r] =                                                \
                load_part_##letter(factors + r * s->columns + at, n);                                        \
            UNROLL for (int y = 0; y < (rows - 1) * (int)stride + height; y++)                               \
                UNROLL for (int i = 0; i < steps; i++)                                                       \
            {                                                                                                \
                vector x = load_##letter(image + y * s->line + s->steps[j + i] + at);                        \
                UNROLL for (int r = 0; r < rows; r++) if (y >= r * stride && y < r * stride + height)        \
                    sums[y - r * stride][i] = FMA_##LETTER(factor[r], x, sums[y - r * stride][i]);           \
            }                                                                                                \
        }                                                                                                    \
    }                                                                                                        \
    static inline __attribute__((always_inline)) void name##_block(                                          \
        const sgm__slide_sums *s, int64_t channel, int64_t first, int64_t j, int height, int64_t stride,     \
        int rows, int steps)                                                                                 \
    {                                                                                                        \
        const element *image = (const element *)s->image + channel * s->channel;                             \
        element *to = (element *)s->sums + ((channel * s->height + first) * s->width + j) * (lanes);         \
        vector sums[SLIDE_HEIGHT][4];                                                                        \
        int64_t row = 0;                                                                                     \
        image += first * s->dilation * s->line;                                                              \
        UNROLL for (int k = 0; k < height; k++) UNROLL for (int i = 0; i < steps; i++) sums[k][i] =          \
            load_##letter(to + (k * s->width + i) * (lanes));                                                \
        for (; row + rows <= s->rows; row += rows)                                                           \
            name##_rows(s, image, j, row, sums, rows, height, stride, steps);                                \
        for (; row < s->rows; row++)                                                                         \
            name##_rows(s, image, j, row, sums, 1, height, stride, steps);                                   \
        UNROLL for (int k = 0; k < height; k++) UNROLL for (int i = 0; i < steps; i++)                       \
            store_##letter(to + (k * s->width + i) * (lanes), sums[k][i]);                                   \
    }                                                                                                        \
    static void name##_3_1(const sgm__slide_sums *s, int64_t channel)                                        \
    {                                                                                                        \
        int64_t j = 0;                                                                                       \
        for (; j + 3 <= s->width; j += 3)                                                                    \
            name##_block(s, channel, 0, j, 3, 1, 4, 3);                                                      \
        for (; j < s->width; j++)                                                                            \
            name##_block(s, channel, 0, j, 3, 1, 4, 1);                                                      \
    }                                                                                                        \
    static void name##_3_2(const sgm__slide_sums *s, int64_t channel)                                        \
    {                                                                                                        \
        int64_t j = 0;                                                                                       \
        for (; j + 3 <= s->width; j += 3)                                                                    \
            name##_block(s, channel, 0, j, 3, 2, 4, 3);                                                      \
        for (; j < s->width; j++)                                                                            \
            name##_block(s, channel, 0, j, 3, 2, 4, 1);                                                      \
    }                                                                                                        \
    static void name##_5_1(const sgm__slide_sums *s, int64_t channel)                                        \
    {                                                                                                        \
        int64_t j = 0;                                                                                       \
        for (; j + 2 <= s->width; j += 2)                                                                    \
            name##_block(s, channel, 0, j, 5, 1, 4, 2);                                                      \
        for (; j < s->width; j++)                                                                            \
            name##_block(s, channel, 0, j, 5, 1, 4, 1);                                                      \
    }                                                                                                        \
    static void name##_any(const sgm__slide_sums *s, int64_t channel)                                        \
    {                                                                                                        \
        for (int64_t k = 0; k < s->height; k++) {                                                            \
            int64_t j = 0;                                                                                   \
            for (; j + 4 <= s->width; j += 4)                                                                \
                name##_block(s, channel, k, j, 1, s->stride, 1, 4);                                          \
            for (; j < s->width; j++)                                                                        \
                name##_block(s, channel, k, j, 1, s->stride, 1, 1);                                          \
        }                                                                                                    \
    }                                                                                                        \
    static void name(const sgm__slide_sums *s)                                                               \
    {                                                                                                        \
        bool close = s->dilation == 1;                                                                       \
        for (int64_t channel = 0; channel < s->channels; channel++)                                          \
            if (close && s->height == 3 && s->stride <= 2)                                                   \
                (s->stride == 1 ? name##_3_1 : name##_3_2)(s, channel);                                      \
            else                                                                                             \
                (close && s->height == 5 && s->stride == 1 ? name##_5_1 : name##_any)(s, channel);           \
    }
DEFINE_SLIDE_SUMS(slide_sums_f32, float, vec_f, f, F, LANES)
DEFINE_SLIDE_SUMS(slide_sums_f64, double, vec_d, d, D, LANES_D)

/* Rows of `width` numbers from `from_stride` to `to_stride` apart; vectors that end a row end in zeros, which
 * go beyond its width. */
#define DEFINE_COPY_LINES(name, element, letter, lanes)                                                      \
    static void name(void *target, int64_t to_stride, const void *source, int64_t from_stride,               \
                     int64_t width, int64_t rows)                                                            \
    {                                                                                                        \
        element *to = target;                                                                                \
        const element *from = source;                                                                        \
        for (int64_t row = 0; row < rows; row++, to += to_stride, from += from_stride) {                     \
            int64_t i = 0;                                                                                   \
            for (; i + (lanes) <= width; i += (lanes))                                                       \
                store_##letter(to + i, load_##letter(from + i));                                             \
            if (i < width)                                                                                   \
                store_##letter(to + i, load_part_##letter(from + i, width - i));                             \
        }                                                                                                    \
    }
DEFINE_COPY_LINES(copy_lines_f32, float, f, LANES)
DEFINE_COPY_LINES(copy_lines_f64, double, d, LANES_D)

/* 2n numbers to those at even and those at odd places, and back: how the pixels of a stride of two come to
 * lie together. */
#define DEFINE_PAIRS(type, element, vector, integer, letter, lanes)                                          \
    static void split_pairs_##type(int64_t n, void *evens, void *odds, const void *pairs)                    \
    {                                                                                                        \
        const integer lane = LANE_NUMBERS_##letter, even = lane * 2, odd = even + 1;                         \
        const element *from = pairs;                                                                         \
        element *left = evens, *right = odds;                                                                \
        int64_t i = 0;                                                                                       \
        for (; i + (lanes) <= n; i += (lanes)) {                                                             \
            vector a = load_##letter(from + 2 * i), b = load_##letter(from + 2 * i + (lanes));               \
            store_##letter(left + i, SHUFFLE_##letter(a, b, even));                                          \
            store_##letter(right + i, SHUFFLE_##letter(a, b, odd));                                          \
        }                                                                                                    \
        if (i < n) {                                                                                         \
            int64_t count = 2 * (n - i), rest = count > (lanes) ? count - (lanes) : 0;                       \
            vector a = load_part_##letter(from + 2 * i, count - rest);                                       \
            vector b = load_part_##letter(from + 2 * i + (count - rest), rest);                              \
            store_part_##letter(left + i, SHUFFLE_##letter(a, b, even), n - i);                              \
            store_part_##letter(right + i, SHUFFLE_##letter(a, b, odd), n - i);                              \
        }                                                                                                    \
    }                                                                                                        \
    static void join_pairs_##type(int64_t n, void *pairs, const void *evens, const void *odds)               \
    {                                                                                                        \
        const integer lane = LANE_NUMBERS_##letter, low = (lane >> 1) + (lane & 1) * (lanes);                \
        const integer high = low + (lanes) / 2;                                                              \
        const element *left = evens, *right = odds;                                                          \
        element *to = pairs;                                                                                 \
        int64_t i = 0;                                                                                       \
        for (; i + (lanes) <= n; i += (lanes)) {                                                             \
            vector a = load_##letter(left + i), b = load_##letter(right + i);                                \
            store_##letter(to + 2 * i, SHUFFLE_##letter(a, b, low));                                         \
            store_##letter(to + 2 * i + (lanes), SHUFFLE_##letter(a, b, high));                              \
        }                                                                                                    \
        for (; i < n; i++) {                                                                                 \
            to[2 * i] = left[i];                                                                             \
            to[2 * i + 1] = right[i];                                                                        \
        }                                                                                                    \
    }
DEFINE_PAIRS(f32, float, vec_f, vec_i, f, LANES)
DEFINE_PAIRS(f64, double, vec_d, vec_l, d, LANES_D)

/* The same for a stride of four: number q of each of n groups goes to to[q], or comes from from[q]. */
static void split_fours_f32(int64_t n, void *const *to, const void *fours)
{
    const float *from = fours;
    const vec_i lane = LANE_NUMBERS_f, even = lane * 2, odd = even + 1;
    for (int64_t i = 0; i < n; i += LANES) {
        int64_t count = sgm__minimum(n - i, LANES), left = 4 * count;
        vec_f x[4], evens[2], odds[2];
        UNROLL for (int v = 0; v < 4; v++, left -= LANES) x[v] =
            left >= LANES ? load_f(from + 4 * i + v * LANES)
            : left > 0    ? load_part_f(from + 4 * i + v * LANES, left)
                          : splat_f(0);
        UNROLL for (int v = 0; v < 2; v++)
        {
            evens[v] = SHUFFLE_f(x[2 * v], x[2 * v + 1], even);
            odds[v] = SHUFFLE_f(x[2 * v], x[2 * v + 1], odd);
        }
        store_part_f((float *)to[0] + i, SHUFFLE_f(evens[0], evens[1], even), count);
        store_part_f((float *)to[1] + i, SHUFFLE_f(odds[0], odds[1], even), count);
        store_part_f((float *)to[2] + i, SHUFFLE_f(evens[0], evens[1], odd), count);
        store_part_f((float *)to[3] + i, SHUFFLE_f(odds[0], odds[1], odd), count);
    }
}

static void join_fours_f32(int64_t n, void *fours, const void *const *from)
{
    float *to = fours;
    const vec_i lane = LANE_NUMBERS_f, low = (lane >> 1) + (lane & 1) * LANES, high = low + LANES / 2;
    for (int64_t i = 0; i < n; i += LANES) {
        int64_t count = sgm__minimum(n - i, LANES), left = 4 * count;
        vec_f x[4], out[4];
        UNROLL for (int q = 0; q < 4; q++) x[q] = load_part_f((const float *)from[q] + i, count);
        vec_f evens[2] = {SHUFFLE_f(x[0], x[2], low), SHUFFLE_f(x[0], x[2], high)};
        vec_f odds[2] = {SHUFFLE_f(x[1], x[3], low), SHUFFLE_f(x[1], x[3], high)};
        UNROLL for (int v = 0; v < 2; v++)
        {
            out[2 * v] = SHUFFLE_f(evens[v], odds[v], low);
            out[2 * v + 1] = SHUFFLE_f(evens[v], odds[v], high);
        }
        UNROLL for (int v = 0; v < 4; v++, left -= LANES)
        {
            if (left >= LANES)
                store_f(to + 4 * i + v * LANES, out[v]);
            else if (left > 0)
                store_part_f(to + 4 * i + v * LANES, out[v], left);
        }
    }
}
#define FOURS_f32 .split_fours = split_fours_f32, .join_fours = join_fours_f32
#define FOURS_f64 .split_fours = NULL, .join_fours = NULL
