/* Template: the loops of elementwise operations on float32, bfloat16 and float64, and their table. Internal.
 *
 * A loop computes whole vectors; the last, partial one goes the same way with zeros in the rest, so that an
 * element's bits do not depend on where in the array it lies. bfloat16 is widened to float32, computed and
 * rounded. Loops are found by sgm__vector_find (vector.c) and called by elementwise_run.c; with vectors of 32
 * and 64 bytes the same functions are also callable for one vector, from machine code (generate.c). Integers
 * and the C library's functions are in vector.c.
 *
 * Letters: f float32, h bfloat16 in memory (float32 in registers), d float64, mask_f and mask_d results that
 * are bool. */
#include "handlers/cpu/vector/vector.h"
#include "ops/ops.h"

typedef uint8_t bool_8;

/* Lanes narrowed and widened between 1, 2, 4 and 8 bytes: by halves, each of which compilers make one
 * instruction. */
typedef uint16_t short_f __attribute__((vector_size(VECTOR_BYTES / 2)));
typedef uint16_t short_d __attribute__((vector_size(VECTOR_BYTES / 4)));
typedef uint32_t word_d __attribute__((vector_size(VECTOR_BYTES / 2)));
#define NARROW_F(mask) __builtin_convertvector(__builtin_convertvector(mask, short_f), byte_f)
#define NARROW_D(mask)                                                                                       \
    __builtin_convertvector(__builtin_convertvector(__builtin_convertvector(mask, word_d), short_d), byte_d)
#define WIDEN_F(bytes) __builtin_convertvector(__builtin_convertvector(bytes, short_f), vec_i)
#define WIDEN_D(bytes)                                                                                       \
    __builtin_convertvector(__builtin_convertvector(__builtin_convertvector(bytes, short_d), word_d), vec_l)

/* Results that are bool: masks (all ones or zeros in a lane) narrowed to bytes of 0 or 1. */
static inline void store_mask_f(bool_8 *to, vec_i mask)
{
    byte_f bytes = NARROW_F(mask) & 1;
    memcpy(to, &bytes, sizeof bytes);
}

static inline void store_mask_d(bool_8 *to, vec_l mask)
{
    byte_d bytes = NARROW_D(mask) & 1;
    memcpy(to, &bytes, sizeof bytes);
}

static inline void store_part_mask_f(bool_8 *to, vec_i mask, int64_t n)
{
    bool_8 all[LANES];
    store_mask_f(all, mask);
    memcpy(to, all, (size_t)n);
}

static inline void store_part_mask_d(bool_8 *to, vec_l mask, int64_t n)
{
    bool_8 all[LANES_D];
    store_mask_d(all, mask);
    memcpy(to, all, (size_t)n);
}

/* Conditions: bytes widened to masks; any byte but 0 is true. */
static inline vec_i load_condition_f(const bool_8 *from)
{
    byte_f bytes;
    memcpy(&bytes, from, sizeof bytes);
    return WIDEN_F(bytes) != 0;
}

static inline vec_l load_condition_d(const bool_8 *from)
{
    byte_d bytes;
    memcpy(&bytes, from, sizeof bytes);
    return WIDEN_D(bytes) != 0;
}

static inline vec_i load_part_condition_f(const bool_8 *from, int64_t n)
{
    bool_8 all[LANES] = {0};
    memcpy(all, from, (size_t)n);
    return load_condition_f(all);
}

static inline vec_l load_part_condition_d(const bool_8 *from, int64_t n)
{
    bool_8 all[LANES_D] = {0};
    memcpy(all, from, (size_t)n);
    return load_condition_d(all);
}

/* A loop over n elements. `in` and `out` are the letters of access functions, `lanes` is the number of
 * elements in a vector, `formula` the result for vectors x (and y). Still operands are read at index 0 each
 * time: a vector of repetitions is there. */
#define UNARY(name, element, in, result, out, lanes, vector, formula)                                        \
    static void name(int64_t n, void *target, const void *const *operands, uint32_t still)                   \
    {                                                                                                        \
        const element *a = operands[0];                                                                      \
        int64_t at = SGM__MOVES(still, 0);                                                                   \
        result *to = target;                                                                                 \
        int64_t i = 0;                                                                                       \
        for (; i + (lanes) <= n; i += (lanes)) {                                                             \
            vector x = load_##in(a + (i & at));                                                              \
            store_##out(to + i, formula);                                                                    \
        }                                                                                                    \
        if (i < n) {                                                                                         \
            vector x = load_part_##in(a + (i & at), n - i);                                                  \
            store_part_##out(to + i, formula, n - i);                                                        \
        }                                                                                                    \
    }
#define BINARY(name, element, in, result, out, lanes, vector, formula)                                       \
    static void name(int64_t n, void *target, const void *const *operands, uint32_t still)                   \
    {                                                                                                        \
        const element *a = operands[0], *b = operands[1];                                                    \
        int64_t at_a = SGM__MOVES(still, 0), at_b = SGM__MOVES(still, 1);                                    \
        result *to = target;                                                                                 \
        int64_t i = 0;                                                                                       \
        for (; i + (lanes) <= n; i += (lanes)) {                                                             \
            vector x = load_##in(a + (i & at_a)), y = load_##in(b + (i & at_b));                             \
            store_##out(to + i, formula);                                                                    \
        }                                                                                                    \
        if (i < n) {                                                                                         \
            vector x = load_part_##in(a + (i & at_a), n - i);                                                \
            vector y = load_part_##in(b + (i & at_b), n - i);                                                \
            store_part_##out(to + i, formula, n - i);                                                        \
        }                                                                                                    \
    }
#define SELECT(name, element, in, width, lanes, vector, mask, choose)                                        \
    static void name(int64_t n, void *target, const void *const *operands, uint32_t still)                   \
    {                                                                                                        \
        const bool_8 *c = operands[0];                                                                       \
        const element *a = operands[1], *b = operands[2];                                                    \
        int64_t at_c = SGM__MOVES(still, 0), at_a = SGM__MOVES(still, 1), at_b = SGM__MOVES(still, 2);       \
        element *to = target;                                                                                \
        int64_t i = 0;                                                                                       \
        for (; i + (lanes) <= n; i += (lanes)) {                                                             \
            vector x = load_##in(a + (i & at_a)), y = load_##in(b + (i & at_b));                             \
            mask which = load_condition_##width(c + (i & at_c));                                             \
            store_##in(to + i, choose(which, x, y));                                                         \
        }                                                                                                    \
        if (i < n) {                                                                                         \
            vector x = load_part_##in(a + (i & at_a), n - i);                                                \
            vector y = load_part_##in(b + (i & at_b), n - i);                                                \
            mask which = load_part_condition_##width(c + (i & at_c), n - i);                                 \
            store_part_##in(to + i, choose(which, x, y), n - i);                                             \
        }                                                                                                    \
    }

/* Loops for several types at once: F for float32 and bfloat16, which are computed by the same formula, FD for
 * float64, too. */
#define UNARY_F(name, formula)                                                                               \
    UNARY(name##_f32, float, f, float, f, LANES, vec_f, formula)                                             \
    UNARY(name##_bf16, uint16_t, h, uint16_t, h, LANES, vec_f, formula)
#define UNARY_FD(name, formula, formula_d)                                                                   \
    UNARY_F(name, formula)                                                                                   \
    UNARY(name##_f64, double, d, double, d, LANES_D, vec_d, formula_d)
#define BINARY_FD(name, formula, formula_d)                                                                  \
    BINARY(name##_f32, float, f, float, f, LANES, vec_f, formula)                                            \
    BINARY(name##_bf16, uint16_t, h, uint16_t, h, LANES, vec_f, formula)                                     \
    BINARY(name##_f64, double, d, double, d, LANES_D, vec_d, formula_d)
#define TEST_FD(name, formula, formula_d)                                                                    \
    UNARY(name##_f32, float, f, bool_8, mask_f, LANES, vec_f, formula)                                       \
    UNARY(name##_bf16, uint16_t, h, bool_8, mask_f, LANES, vec_f, formula)                                   \
    UNARY(name##_f64, double, d, bool_8, mask_d, LANES_D, vec_d, formula_d)
#define COMPARE_FD(name, formula)                                                                            \
    BINARY(name##_f32, float, f, bool_8, mask_f, LANES, vec_f, formula)                                      \
    BINARY(name##_bf16, uint16_t, h, bool_8, mask_f, LANES, vec_f, formula)                                  \
    BINARY(name##_f64, double, d, bool_8, mask_d, LANES_D, vec_d, formula)

/* The operations. maximum and minimum give NaN if either operand is NaN: x if that is, else the comparison
 * fails and y remains. */
UNARY_FD(negate, -x, -x)
UNARY_FD(absolute, absolute_f(x), absolute_d(x))
UNARY_FD(square_root, SQRT_F(x), SQRT_D(x))
UNARY_FD(floor, FLOOR_F(x), FLOOR_D(x))
UNARY_F(exp, exp_f(x))
UNARY_F(log, log_f(x))
UNARY_F(log1p, log1p_f(x))
UNARY_F(tanh, tanh_f(x))
UNARY_F(erf, erf_f(x))
UNARY_F(sigmoid, sigmoid_f(x))
UNARY_F(gelu, gelu_f(x))
UNARY_F(gelu_gradient, gelu_gradient_f(x))
TEST_FD(is_nan, x != x, x != x)
TEST_FD(is_finite, absolute_f(x) < INFINITY, absolute_d(x) < (double)INFINITY)
BINARY_FD(add, x + y, x + y)
BINARY_FD(subtract, x - y, x - y)
BINARY_FD(multiply, x *y, x *y)
BINARY_FD(divide, x / y, x / y)
BINARY_FD(maximum, select_f((x >= y) | (x != x), x, y), select_d((x >= y) | (x != x), x, y))
BINARY_FD(minimum, select_f((x <= y) | (x != x), x, y), select_d((x <= y) | (x != x), x, y))
COMPARE_FD(equal, x == y)
COMPARE_FD(not_equal, x != y)
COMPARE_FD(less, x < y)
COMPARE_FD(less_equal, x <= y)
COMPARE_FD(greater, x > y)
COMPARE_FD(greater_equal, x >= y)
SELECT(select_f32, float, f, f, LANES, vec_f, vec_i, select_f)
SELECT(select_bf16, uint16_t, h, f, LANES, vec_f, vec_i, select_f)
SELECT(select_f64, double, d, d, LANES_D, vec_d, vec_l, select_d)
UNARY(widen_bf16, uint16_t, h, float, f, LANES, vec_f, x)
UNARY(narrow_f32, float, f, uint16_t, h, LANES, vec_f, x)

/* Rows of the table, one for each type. */
#define ENTRIES_FD(name)                                                                                     \
    {&sgm__op_##name, SGM_FLOAT32, SGM_FLOAT32, name##_f32},                                                 \
        {&sgm__op_##name, SGM_BFLOAT16, SGM_BFLOAT16, name##_bf16},                                          \
        {&sgm__op_##name, SGM_FLOAT64, SGM_FLOAT64, name##_f64},
#define ENTRIES_F(name)                                                                                      \
    {&sgm__op_##name, SGM_FLOAT32, SGM_FLOAT32, name##_f32},                                                 \
        {&sgm__op_##name, SGM_BFLOAT16, SGM_BFLOAT16, name##_bf16},
#define ENTRIES_TEST(name)                                                                                   \
    {&sgm__op_##name, SGM_FLOAT32, SGM_BOOL, name##_f32},                                                    \
        {&sgm__op_##name, SGM_BFLOAT16, SGM_BOOL, name##_bf16},                                              \
        {&sgm__op_##name, SGM_FLOAT64, SGM_BOOL, name##_f64},

static const sgm__vector_entry entries[] = {
    ENTRIES_FD(negate) ENTRIES_FD(absolute) ENTRIES_FD(square_root) ENTRIES_FD(floor) ENTRIES_F(exp)
        ENTRIES_F(log) ENTRIES_F(log1p) ENTRIES_F(tanh) ENTRIES_F(erf) ENTRIES_F(sigmoid) ENTRIES_F(gelu)
            ENTRIES_F(gelu_gradient) ENTRIES_TEST(is_nan) ENTRIES_TEST(is_finite) ENTRIES_FD(add)
                ENTRIES_FD(subtract) ENTRIES_FD(multiply) ENTRIES_FD(divide) ENTRIES_FD(maximum)
                    ENTRIES_FD(minimum) ENTRIES_TEST(equal) ENTRIES_TEST(not_equal) ENTRIES_TEST(less)
                        ENTRIES_TEST(less_equal) ENTRIES_TEST(greater) ENTRIES_TEST(greater_equal)
                            ENTRIES_FD(select){&sgm__op_cast, SGM_BFLOAT16, SGM_FLOAT32, widen_bf16},
    {&sgm__op_cast, SGM_FLOAT32, SGM_BFLOAT16, narrow_f32}};

/* For machine code: functions of one vector. */
#if VECTOR_BYTES >= 32
/* For machine code: the same functions for one vector, which comes and goes in ymm0 or zmm0. */
#define DEFINE_FUNCTION(name)                                                                                \
    static vec_f name##_vector(vec_f x)                                                                      \
    {                                                                                                        \
        return name##_f(x);                                                                                  \
    }
DEFINE_FUNCTION(exp)
DEFINE_FUNCTION(log)
DEFINE_FUNCTION(log1p)
DEFINE_FUNCTION(tanh)
DEFINE_FUNCTION(erf)
DEFINE_FUNCTION(sigmoid)
DEFINE_FUNCTION(gelu)
DEFINE_FUNCTION(gelu_gradient)
#define FUNCTION(name)                                                                                       \
    {                                                                                                        \
        &sgm__op_##name, (sgm__one_vector)name##_vector                                                      \
    }
static const sgm__vector_call functions[] = {FUNCTION(exp),  FUNCTION(log),          FUNCTION(log1p),
                                             FUNCTION(tanh), FUNCTION(erf),          FUNCTION(sigmoid),
                                             FUNCTION(gelu), FUNCTION(gelu_gradient)};
static vec_f gelu_both_vector(vec_f x, float *gradient)
{
    vec_f second, first = gelu_both_f(x, &second);
    store_f(gradient, second);
    return first;
}
static const sgm__vector_pair gelu_pair = {&sgm__op_gelu, &sgm__op_gelu_gradient,
                                           (sgm__one_vector)gelu_both_vector};
#define PAIR &gelu_pair
#define FUNCTIONS functions
#define FUNCTION_COUNT ((int32_t)(sizeof functions / sizeof *functions))
#else
#define PAIR NULL
#define FUNCTIONS NULL
#define FUNCTION_COUNT 0
#endif
