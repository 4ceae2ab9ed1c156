/* Template: tiles of products whose left operand is read where it lies, by offsets, as convolutions want it;
 * poolings of two by two. Internal. After vector_product.h. */

#if VECTOR_BYTES == 64
#define GATHER_VECTORS 4 /* of a panel: 24 of 32 registers are sums */
#else
#define GATHER_VECTORS 2
#endif

#define DEFINE_GATHER(name, element, vector, letter, LETTER, lanes)                                          \
    static inline __attribute__((always_inline)) void name(const sgm__gather *t, int rows, int vectors)      \
    {                                                                                                        \
        const element *a[SGM__GATHER_ROWS], *b = t->b;                                                       \
        vector sums[SGM__GATHER_ROWS][GATHER_VECTORS];                                                       \
        UNROLL for (int i = 0; i < rows; i++)                                                                \
        {                                                                                                    \
            a[i] = (const element *)t->a + t->rows[i];                                                       \
            UNROLL for (int v = 0; v < vectors; v++) sums[i][v] = (vector){0};                               \
        }                                                                                                    \
        for (int64_t k = 0; k < t->depth; k++) {                                                             \
            int64_t step = t->steps[k];                                                                      \
            vector right[GATHER_VECTORS];                                                                    \
            UNROLL for (int v = 0; v < vectors; v++) right[v] = load_##letter(b + v * (lanes));              \
            UNROLL for (int i = 0; i < rows; i++)                                                            \
            {                                                                                                \
                vector factor = splat_##letter(a[i][step]);                                                  \
                UNROLL for (int v = 0; v < vectors; v++) sums[i][v] =                                        \
                    FMA_##LETTER(factor, right[v], sums[i][v]);                                              \
            }                                                                                                \
            b += vectors * (lanes);                                                                          \
        }                                                                                                    \
        UNROLL for (int i = 0; i < rows; i++)                                                                \
        {                                                                                                    \
            element *c = (element *)t->c + t->c_rows[i] * vectors * (lanes);                                 \
            UNROLL for (int v = 0; v < vectors; v++, c += (lanes))                                           \
                store_##letter(c, t->add ? load_##letter(c) + sums[i][v] : sums[i][v]);                      \
        }                                                                                                    \
    }
DEFINE_GATHER(gather_f32, float, vec_f, f, F, LANES)
DEFINE_GATHER(gather_f64, double, vec_d, d, D, LANES_D)

#define DEFINE_GATHERS(type, rows)                                                                           \
    static void gather_wide_##type##_##rows(const sgm__gather *t)                                            \
    {                                                                                                        \
        gather_##type(t, rows, GATHER_VECTORS);                                                              \
    }                                                                                                        \
    static void gather_narrow_##type##_##rows(const sgm__gather *t)                                          \
    {                                                                                                        \
        gather_##type(t, rows, GATHER_VECTORS / 2);                                                          \
    }
#define DEFINE_ALL_GATHERS(rows) DEFINE_GATHERS(f32, rows) DEFINE_GATHERS(f64, rows)
DEFINE_ALL_GATHERS(1)
DEFINE_ALL_GATHERS(2)
DEFINE_ALL_GATHERS(3)
DEFINE_ALL_GATHERS(4)
DEFINE_ALL_GATHERS(5)
DEFINE_ALL_GATHERS(6)
#define GATHER_TABLE(kind)                                                                                   \
    {                                                                                                        \
        kind##_1, kind##_2, kind##_3, kind##_4, kind##_5, kind##_6                                           \
    }

/* to[r * to_stride + c] = from[c * from_stride + r] + biases[r]; rows of `from` may be read to the end of a
 * vector. */
#define DEFINE_SPREAD(name, square, element, vector, letter, lanes)                                          \
    static void name(void *target, int64_t to_stride, const void *source, int64_t from_stride, int64_t rows, \
                     int64_t columns, const void *biases)                                                    \
    {                                                                                                        \
        element block[(lanes) * (lanes)], edge[(lanes) * (lanes)];                                           \
        for (int64_t r = 0; r < rows; r += (lanes))                                                          \
            for (int64_t c = 0; c < columns; c += (lanes)) {                                                 \
                const element *from = (const element *)source + c * from_stride + r;                         \
                element *to = (element *)target + r * to_stride + c;                                         \
                int64_t filled = least(columns - c, lanes), kept = least(rows - r, lanes);                   \
                if (filled == (lanes)) {                                                                     \
                    square(block, lanes, from, from_stride);                                                 \
                } else {                                                                                     \
                    for (int64_t i = 0; i < filled; i++)                                                     \
                        store_##letter(edge + i * (lanes), load_##letter(from + i * from_stride));           \
                    for (int64_t i = filled; i < (lanes); i++)                                               \
                        store_##letter(edge + i * (lanes), splat_##letter(0));                               \
                    square(block, lanes, edge, lanes);                                                       \
                }                                                                                            \
                for (int64_t i = 0; i < kept; i++, to += to_stride) {                                        \
                    element bias = biases != NULL ? ((const element *)biases)[r + i] : 0;                    \
                    vector row = load_##letter(block + i * (lanes)) + splat_##letter(bias);                  \
                    if (filled == (lanes))                                                                   \
                        store_##letter(to, row);                                                             \
                    else                                                                                     \
                        store_part_##letter(to, row, filled);                                                \
                }                                                                                            \
            }                                                                                                \
    }
DEFINE_SPREAD(spread_f32, square_f32, float, vec_f, f, LANES)
DEFINE_SPREAD(spread_f64, square_f64, double, vec_d, d, LANES_D)
