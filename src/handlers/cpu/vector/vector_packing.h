/* Template: macros that make the functions that pack operands of products, for one type. Internal.
 *
 * vector_product.h makes those of float32 and float64, vector_pairs.h those of bfloat16; what they do is said
 * at sgm__tiles in vector.h. */
#ifndef SGM_HANDLERS_CPU_VECTOR_VECTOR_PACKING_H
#define SGM_HANDLERS_CPU_VECTOR_VECTOR_PACKING_H

#include "handlers/cpu/vector/vector.h"

/* Packs rows of `width` contiguous numbers, `stride` apart, filled up with zeros to `padded`. */
#define DEFINE_COPY_ROWS(name, element, letter, lanes)                                                       \
    static void name(void *target, int64_t padded, const void *source, int64_t stride, int64_t width,        \
                     int64_t depth)                                                                          \
    {                                                                                                        \
        for (int64_t k = 0; k < depth; k++) {                                                                \
            element *to = (element *)target + k * padded;                                                    \
            const element *from = (const element *)source + k * stride;                                      \
            int64_t i = 0;                                                                                   \
            for (; i + (lanes) <= width; i += (lanes))                                                       \
                store_##letter(to + i, load_##letter(from + i));                                             \
            for (int64_t left = width - i; i < padded; i += (lanes), left = 0)                               \
                store_part_##letter(to + i, load_part_##letter(from + i, left),                              \
                                    padded - i < (lanes) ? padded - i : (lanes));                            \
        }                                                                                                    \
    }

#if VECTOR_BYTES == 64
#define LANE_NUMBERS_f                                                                                       \
    {                                                                                                        \
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15                                                 \
    }
#define LANE_NUMBERS_d                                                                                       \
    {                                                                                                        \
        0, 1, 2, 3, 4, 5, 6, 7                                                                               \
    }
#elif VECTOR_BYTES == 32
#define LANE_NUMBERS_f                                                                                       \
    {                                                                                                        \
        0, 1, 2, 3, 4, 5, 6, 7                                                                               \
    }
#define LANE_NUMBERS_d                                                                                       \
    {                                                                                                        \
        0, 1, 2, 3                                                                                           \
    }
#else
#define LANE_NUMBERS_f                                                                                       \
    {                                                                                                        \
        0, 1, 2, 3                                                                                           \
    }
#define LANE_NUMBERS_d                                                                                       \
    {                                                                                                        \
        0, 1                                                                                                 \
    }
#endif

/* Transposes a square of as many rows as a vector has lanes, in registers: in stage d = lanes / 2, ..., 2, 1
 * rows i and i + d exchange the lanes in which bit d of the number differs. `_part`: rows from `filled` on
 * count as zeros, and of each row of the result the first `kept` elements are stored. */
#define DEFINE_SQUARE(name, element, letter, integer, lanes)                                                 \
    static inline void name##_lanes(vec_##letter *rows)                                                      \
    {                                                                                                        \
        UNROLL for (int d = (lanes) / 2; d > 0; d /= 2)                                                      \
        {                                                                                                    \
            const vec_##integer lane = LANE_NUMBERS_##letter, upper = (lane & d) != 0;                       \
            const vec_##integer low = lane + (upper & ((lanes)-d));                                          \
            const vec_##integer high = lane + d + (upper & ((lanes)-d));                                     \
            UNROLL for (int i = 0; i < (lanes); i++)                                                         \
            {                                                                                                \
                if ((i & d) != 0)                                                                            \
                    continue;                                                                                \
                vec_##letter a = rows[i], b = rows[i + d];                                                   \
                rows[i] = SHUFFLE_##letter(a, b, low);                                                       \
                rows[i + d] = SHUFFLE_##letter(a, b, high);                                                  \
            }                                                                                                \
        }                                                                                                    \
    }                                                                                                        \
    static void name(element *to, int64_t to_stride, const element *from, int64_t stride)                    \
    {                                                                                                        \
        vec_##letter rows[lanes];                                                                            \
        UNROLL for (int i = 0; i < (lanes); i++, from += stride) rows[i] = load_##letter(from);              \
        name##_lanes(rows);                                                                                  \
        UNROLL for (int i = 0; i < (lanes); i++, to += to_stride) store_##letter(to, rows[i]);               \
    }                                                                                                        \
    static void name##_part(element *to, int64_t to_stride, int64_t kept, const element *from,               \
                            int64_t stride, int64_t filled)                                                  \
    {                                                                                                        \
        static const element zeros[lanes];                                                                   \
        vec_##letter rows[lanes];                                                                            \
        UNROLL for (int i = 0; i < (lanes); i++) rows[i] =                                                   \
            load_##letter(i < filled ? from + i * stride : zeros);                                           \
        name##_lanes(rows);                                                                                  \
        UNROLL for (int i = 0; i < (lanes); i++, to += to_stride) store_part_##letter(to, rows[i], kept);    \
    }

/* Packs by transposing: squares, then squares with missing rows, then steps that do not fill a square
 * (`_edge`), which go by way of memory that is large enough. */
#define DEFINE_TRANSPOSE(name, square, element, letter, lanes)                                               \
    static void name##_edge(element *to, int64_t padded, int64_t kept, const element *from, int64_t stride,  \
                            int64_t filled, int64_t steps)                                                   \
    {                                                                                                        \
        element in[(lanes) * (lanes)], out[(lanes) * (lanes)];                                               \
        for (int64_t i = 0; i < (lanes); i++) {                                                              \
            vec_##letter row = {0};                                                                          \
            if (i < filled)                                                                                  \
                row = steps == (lanes) ? load_##letter(from + i * stride)                                    \
                                       : load_part_##letter(from + i * stride, steps);                       \
            store_##letter(in + i * (lanes), row);                                                           \
        }                                                                                                    \
        square(out, lanes, in, lanes);                                                                       \
        for (int64_t k = 0; k < steps; k++)                                                                  \
            store_part_##letter(to + k * padded, load_##letter(out + k * (lanes)), kept);                    \
    }                                                                                                        \
    static void name(void *target, int64_t padded, const void *source, int64_t stride, int64_t width,        \
                     int64_t depth)                                                                          \
    {                                                                                                        \
        for (int64_t i = 0; i < padded; i += (lanes)) {                                                      \
            int64_t filled = sgm__minimum(width - i, lanes);                                                 \
            int64_t kept = sgm__minimum(padded - i, lanes);                                                  \
            const element *from = (const element *)source + i * stride;                                      \
            element *to = (element *)target + i;                                                             \
            int64_t k = 0;                                                                                   \
            for (; filled == (lanes) && k + (lanes) <= depth; k += (lanes))                                  \
                square(to + k * padded, padded, from + k, stride);                                           \
            for (; k + (lanes) <= depth; k += (lanes))                                                       \
                square##_part(to + k * padded, padded, kept, from + k, stride, filled);                      \
            for (; k < depth; k += (lanes))                                                                  \
                name##_edge(to + k * padded, padded, kept, from + k, stride, filled,                         \
                            sgm__minimum(depth - k, lanes));                                                 \
        }                                                                                                    \
    }

#endif
