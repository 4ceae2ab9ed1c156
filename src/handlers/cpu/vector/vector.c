/* Chooses the instruction set, finds the loop of an operation, and has the loops that are the same for all
 * instruction sets.
 *
 * The first half are plain C loops for what the templates do not vectorise by hand: functions of the C
 * library (all of float64's, and float32's trigonometric ones and powers), integers, bool, and casts.
 * sgm__vector_find looks in the table of the instruction set first and then here. Callers are
 * elementwise_compile.c (loops for instructions), cpu.c (choice of the table) and product/dense.c. */
#include "handlers/cpu/vector/vector.h"

#include "ops/ops.h"

#include <math.h>

/* --- plain loops: libm in double precision, integers, bool --- */

/* A loop over contiguous elements. `formula` computes one element from x (and y); a still operand is read at
 * index 0 each time, since its index is masked. */
#define UNARY(name, type, result, formula)                                                                   \
    static void name(int64_t n, void *out, const void *const *in, uint32_t still)                            \
    {                                                                                                        \
        const type *a = in[0];                                                                               \
        int64_t at = SGM__MOVES(still, 0);                                                                   \
        result *to = out;                                                                                    \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            type x = a[i & at];                                                                              \
            to[i] = (result)(formula);                                                                       \
        }                                                                                                    \
    }
#define BINARY(name, type, result, formula)                                                                  \
    static void name(int64_t n, void *out, const void *const *in, uint32_t still)                            \
    {                                                                                                        \
        const type *a = in[0], *b = in[1];                                                                   \
        int64_t at_a = SGM__MOVES(still, 0), at_b = SGM__MOVES(still, 1);                                    \
        result *to = out;                                                                                    \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            type x = a[i & at_a], y = b[i & at_b];                                                           \
            to[i] = (result)(formula);                                                                       \
        }                                                                                                    \
    }
#define SELECT(name, type)                                                                                   \
    static void name(int64_t n, void *out, const void *const *in, uint32_t still)                            \
    {                                                                                                        \
        const uint8_t *condition = in[0];                                                                    \
        const type *a = in[1], *b = in[2];                                                                   \
        int64_t at_c = SGM__MOVES(still, 0), at_a = SGM__MOVES(still, 1), at_b = SGM__MOVES(still, 2);       \
        type *to = out;                                                                                      \
        for (int64_t i = 0; i < n; i++)                                                                      \
            to[i] = condition[i & at_c] != 0 ? a[i & at_a] : b[i & at_b];                                    \
    }

/* Operations of the C library: name, function in double, function in float. */
#define LIBM_LIST(X)                                                                                         \
    X(sin, sin, sinf)                                                                                        \
    X(cos, cos, cosf)                                                                                        \
    X(tan, tan, tanf)                                                                                        \
    X(asin, asin, asinf)                                                                                     \
    X(acos, acos, acosf)                                                                                     \
    X(atan, atan, atanf)
/* The same in double only: float32 has vectors of these in vector_kernels.h. */
#define LIBM_DOUBLE_LIST(X)                                                                                  \
    X(exp, exp)                                                                                              \
    X(log, log)                                                                                              \
    X(log1p, log1p)                                                                                          \
    X(tanh, tanh)                                                                                            \
    X(erf, erf)
#define DEFINE_LIBM(name, in_double, in_float)                                                               \
    UNARY(name##_f64, double, double, in_double(x))                                                          \
    UNARY(name##_f32, float, float, in_float(x))
#define DEFINE_LIBM_DOUBLE(name, in_double) UNARY(name##_f64, double, double, in_double(x))
LIBM_LIST(DEFINE_LIBM)
LIBM_DOUBLE_LIST(DEFINE_LIBM_DOUBLE)
UNARY(sign_f32, float, float, (float)((x > 0) - (x < 0)))
UNARY(sign_f64, double, double, (x > 0) - (x < 0))
BINARY(power_f32, float, float, powf(x, y))
BINARY(power_f64, double, double, pow(x, y))

/* Arithmetic of int64 wraps around (computed unsigned, where that is defined); results of int32 are limited
 * to what int32 holds. */
static inline int32_t limit(int64_t x)
{
    return (int32_t)(x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : x);
}
BINARY(add_i64, uint64_t, uint64_t, x + y)
BINARY(subtract_i64, uint64_t, uint64_t, x - y)
BINARY(multiply_i64, uint64_t, uint64_t, x *y)
BINARY(add_i32, int32_t, int32_t, limit((int64_t)x + y))
BINARY(subtract_i32, int32_t, int32_t, limit((int64_t)x - y))
BINARY(multiply_i32, int32_t, int32_t, limit((int64_t)x *y))

/* Comparisons of integers, for which NaN is no concern. */
#define DEFINE_ORDER(suffix, type)                                                                           \
    BINARY(maximum_##suffix, type, type, x >= y ? x : y)                                                     \
    BINARY(minimum_##suffix, type, type, x <= y ? x : y)                                                     \
    BINARY(equal_##suffix, type, uint8_t, x == y)                                                            \
    BINARY(not_equal_##suffix, type, uint8_t, x != y)                                                        \
    BINARY(less_##suffix, type, uint8_t, x < y)                                                              \
    BINARY(less_equal_##suffix, type, uint8_t, x <= y)                                                       \
    BINARY(greater_##suffix, type, uint8_t, x > y)                                                           \
    BINARY(greater_equal_##suffix, type, uint8_t, x >= y)
DEFINE_ORDER(i32, int32_t)
DEFINE_ORDER(i64, int64_t)
DEFINE_ORDER(u8, uint8_t)
UNARY(logical_not_b, uint8_t, uint8_t, x == 0)
BINARY(logical_and_b, uint8_t, uint8_t, (x != 0) & (y != 0))
BINARY(logical_or_b, uint8_t, uint8_t, (x != 0) | (y != 0))
SELECT(select_8, uint8_t)
SELECT(select_32, int32_t)
SELECT(select_64, int64_t)
UNARY(cast_u8_f32, uint8_t, float, x)
UNARY(cast_u8_f64, uint8_t, double, x)
UNARY(cast_i32_f32, int32_t, float, x)
UNARY(cast_i32_f64, int32_t, double, x)
UNARY(cast_i64_f32, int64_t, float, x)
UNARY(cast_i64_f64, int64_t, double, x)
UNARY(cast_u8_i64, uint8_t, int64_t, x)
UNARY(cast_i32_i64, int32_t, int64_t, x)
UNARY(cast_f32_f64, float, double, x)
UNARY(cast_f64_f32, double, float, x)
UNARY(cast_bool_f32, uint8_t, float, x != 0)
UNARY(cast_bool_f64, uint8_t, double, x != 0)
UNARY(cast_bool_i64, uint8_t, int64_t, x != 0)
UNARY(cast_bool_u8, uint8_t, uint8_t, x != 0)
/* Towards 0, within the limits of the type; NaN becomes 0. */
UNARY(cast_f32_u8, float, uint8_t, (uint8_t)(x >= 255 ? 255 : x > 0 ? (int32_t)x : 0))

/* Rows of the table below. */
#define LIBM_ENTRIES(name, in_double, in_float)                                                              \
    {&sgm__op_##name, SGM_FLOAT64, SGM_FLOAT64, name##_f64},                                                 \
        {&sgm__op_##name, SGM_FLOAT32, SGM_FLOAT32, name##_f32},
#define LIBM_DOUBLE_ENTRIES(name, in_double) {&sgm__op_##name, SGM_FLOAT64, SGM_FLOAT64, name##_f64},
#define ORDER_ENTRIES(type, suffix)                                                                          \
    {&sgm__op_maximum, SGM_##type, SGM_##type, maximum_##suffix},                                            \
        {&sgm__op_minimum, SGM_##type, SGM_##type, minimum_##suffix},                                        \
        {&sgm__op_equal, SGM_##type, SGM_BOOL, equal_##suffix},                                              \
        {&sgm__op_not_equal, SGM_##type, SGM_BOOL, not_equal_##suffix},                                      \
        {&sgm__op_less, SGM_##type, SGM_BOOL, less_##suffix},                                                \
        {&sgm__op_less_equal, SGM_##type, SGM_BOOL, less_equal_##suffix},                                    \
        {&sgm__op_greater, SGM_##type, SGM_BOOL, greater_##suffix},                                          \
        {&sgm__op_greater_equal, SGM_##type, SGM_BOOL, greater_equal_##suffix},

/* Bool and uint8 share loops where they have the same bytes. */
static const sgm__vector_entry entries[] = {
    LIBM_LIST(LIBM_ENTRIES) LIBM_DOUBLE_LIST(LIBM_DOUBLE_ENTRIES) ORDER_ENTRIES(INT32, i32)
        ORDER_ENTRIES(INT64, i64) ORDER_ENTRIES(UINT8, u8){&sgm__op_sign, SGM_FLOAT32, SGM_FLOAT32, sign_f32},
    {&sgm__op_sign, SGM_FLOAT64, SGM_FLOAT64, sign_f64},
    {&sgm__op_power, SGM_FLOAT32, SGM_FLOAT32, power_f32},
    {&sgm__op_power, SGM_FLOAT64, SGM_FLOAT64, power_f64},
    {&sgm__op_add, SGM_INT64, SGM_INT64, add_i64},
    {&sgm__op_subtract, SGM_INT64, SGM_INT64, subtract_i64},
    {&sgm__op_multiply, SGM_INT64, SGM_INT64, multiply_i64},
    {&sgm__op_add, SGM_INT32, SGM_INT32, add_i32},
    {&sgm__op_subtract, SGM_INT32, SGM_INT32, subtract_i32},
    {&sgm__op_multiply, SGM_INT32, SGM_INT32, multiply_i32},
    {&sgm__op_logical_not, SGM_BOOL, SGM_BOOL, logical_not_b},
    {&sgm__op_logical_and, SGM_BOOL, SGM_BOOL, logical_and_b},
    {&sgm__op_logical_or, SGM_BOOL, SGM_BOOL, logical_or_b},
    {&sgm__op_select, SGM_BOOL, SGM_BOOL, select_8},
    {&sgm__op_select, SGM_UINT8, SGM_UINT8, select_8},
    {&sgm__op_select, SGM_INT32, SGM_INT32, select_32},
    {&sgm__op_select, SGM_INT64, SGM_INT64, select_64},
    {&sgm__op_cast, SGM_BOOL, SGM_FLOAT32, cast_bool_f32},
    {&sgm__op_cast, SGM_UINT8, SGM_FLOAT32, cast_u8_f32},
    {&sgm__op_cast, SGM_BOOL, SGM_FLOAT64, cast_bool_f64},
    {&sgm__op_cast, SGM_UINT8, SGM_FLOAT64, cast_u8_f64},
    {&sgm__op_cast, SGM_INT32, SGM_FLOAT32, cast_i32_f32},
    {&sgm__op_cast, SGM_INT32, SGM_FLOAT64, cast_i32_f64},
    {&sgm__op_cast, SGM_INT64, SGM_FLOAT32, cast_i64_f32},
    {&sgm__op_cast, SGM_INT64, SGM_FLOAT64, cast_i64_f64},
    {&sgm__op_cast, SGM_BOOL, SGM_INT64, cast_bool_i64},
    {&sgm__op_cast, SGM_UINT8, SGM_INT64, cast_u8_i64},
    {&sgm__op_cast, SGM_INT32, SGM_INT64, cast_i32_i64},
    {&sgm__op_cast, SGM_FLOAT32, SGM_FLOAT64, cast_f32_f64},
    {&sgm__op_cast, SGM_FLOAT64, SGM_FLOAT32, cast_f64_f32},
    {&sgm__op_cast, SGM_BOOL, SGM_UINT8, cast_bool_u8},
    {&sgm__op_cast, SGM_FLOAT32, SGM_UINT8, cast_f32_u8},
};

/* --- choice --- */

/* X(name, whether this processor runs it) of all instruction sets that are compiled in, the best one last. */
#if defined(__x86_64__)
#define VECTORS(X)                                                                                           \
    X(portable, true)                                                                                        \
    X(avx2, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))                                 \
    X(avx512, __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&                     \
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
#elif defined(__aarch64__)
#define VECTORS(X)                                                                                           \
    X(portable, true)                                                                                        \
    X(neon, true)
#else
#define VECTORS(X) X(portable, true)
#endif
#define NAME(name, runs) #name,
#define TABLE(name, runs) {&sgm__vector_##name, runs},

const char *const sgm__vector_names[] = {VECTORS(NAME) NULL};

const sgm__vector *sgm__vector_at(int32_t index, bool *runs_here)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
#endif
    const struct {
        const sgm__vector *table;
        bool runs_here;
    } all[] = {VECTORS(TABLE)};
    const bool is_there = index >= 0 && (size_t)index < sizeof all / sizeof *all;
    *runs_here = is_there && all[index].runs_here;
    return is_there ? all[index].table : NULL;
}

const sgm__vector *sgm__vector_best(void)
{
    const sgm__vector *best = NULL, *candidate;
    bool runs_here;
    for (int32_t i = 0; (candidate = sgm__vector_at(i, &runs_here)) != NULL; i++)
        best = runs_here ? candidate : best;
    return best;
}

static void fail_unknown(const char *name)
{
    sgm__text names = {0};
    for (size_t i = 0; sgm__vector_names[i] != NULL; i++)
        sgm__text_append(&names, "%s%s", i > 0 ? ", " : "", sgm__vector_names[i]);
    if (!names.failed)
        sgm_fail(SGM_ERROR_ARGUMENT, "instructions is '%s'; for this kind of processor there are: %s", name,
                 names.data);
    sgm__text_free(&names);
}

/* An unknown name and an instruction set that this processor lacks are different errors. */
const sgm__vector *sgm__vector_named(const char *name)
{
    const sgm__vector *candidate;
    bool runs_here, known = false;
    for (int32_t i = 0; (candidate = sgm__vector_at(i, &runs_here)) != NULL; i++) {
        if (strcmp(candidate->name, name) != 0)
            continue;
        if (runs_here)
            return candidate;
        known = true;
    }
    if (known)
        sgm_fail(SGM_ERROR_UNSUPPORTED, "instructions is '%s', which this processor has not", name);
    else
        fail_unknown(name);
    return NULL;
}

static sgm__vector_function find(const sgm__vector_entry *table, size_t count, const sgm_op *op,
                                 sgm_dtype from, sgm_dtype to)
{
    for (size_t i = 0; i < count; i++)
        if (table[i].op == op && table[i].from == from && table[i].to == to)
            return table[i].function;
    return NULL;
}

sgm__vector_function sgm__vector_find(const sgm__vector *vector, const sgm_op *op, sgm_dtype from,
                                      sgm_dtype to)
{
    sgm__vector_function fast =
        vector->approximate ? find(vector->fast_entries, (size_t)vector->fast_count, op, from, to) : NULL;
    if (fast != NULL)
        return fast;
    sgm__vector_function found = find(vector->entries, (size_t)vector->entry_count, op, from, to);
    return found != NULL ? found : find(entries, sizeof entries / sizeof *entries, op, from, to);
}
