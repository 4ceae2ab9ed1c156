/* Template: approximations of exp and tanh for the handler's option `approximate`. Internal.
 *
 * They take the place of the exact functions of vector_math.h in elementwise steps only (sgm__vector_find,
 * function_of in generate.c); softmax and attention stay exact. Errors are those that docs/performance.md
 * (Approximations) states and tests/handlers/test_cpu_functions.c asserts. */
#include "handlers/cpu/vector/vector.h"
#include "ops/ops.h"

/* e^x = 2^n e^r as in exp_f, with a polynomial of degree 3 for e^r: relative error at most 0.011 %. x is
 * limited to -87 .. 88, where 2^n needs no care. NaN stays NaN. */
static inline vec_f exp_fast_f(vec_f x)
{
    vec_f low = splat_f(-87.0f), high = splat_f(88.0f), magic = splat_f(12582912.0f); /* 1.5 * 2^23 */
    x = select_f(x < low, low, select_f(x > high, high, x));
    vec_f shifted = FMA_F(x, splat_f(1.44269504f), magic), n = shifted - magic;
    vec_f r = FMA_F(n, splat_f(-0.693147181f), x);
    vec_f p = splat_f(0.1651783f);
    p = FMA_F(p, r, splat_f(0.5041345f));
    p = FMA_F(p, r, splat_f(1.00019623f));
    p = FMA_F(p, r, splat_f(1.0f));
    return p * (vec_f)(((vec_i)shifted - (vec_i)magic + 127) << 23);
}

/* Lambert's continued fraction of tanh, to its seventh part: x (z^3 + 378 z^2 + 17325 z + 135135) / (28 z^3 +
 * 3150 z^2 + 62370 z + 135135) with z = x^2. x is limited to 4.97, where the fraction is 0.0001 from 1. */
static inline vec_f tanh_fast_f(vec_f x)
{
    vec_f low = splat_f(-4.97f), high = splat_f(4.97f);
    x = select_f(x < low, low, select_f(x > high, high, x));
    vec_f z = x * x, p = z + 378.0f, q = FMA_F(z, splat_f(28.0f), splat_f(3150.0f));
    p = FMA_F(p, z, splat_f(17325.0f));
    p = FMA_F(p, z, splat_f(135135.0f));
    q = FMA_F(q, z, splat_f(62370.0f));
    q = FMA_F(q, z, splat_f(135135.0f));
    return x * p / q;
}

UNARY_F(exp_fast, exp_fast_f(x))
UNARY_F(tanh_fast, tanh_fast_f(x))

static const sgm__vector_entry fast_entries[] = {
    {&sgm__op_exp, SGM_FLOAT32, SGM_FLOAT32, exp_fast_f32},
    {&sgm__op_exp, SGM_BFLOAT16, SGM_BFLOAT16, exp_fast_bf16},
    {&sgm__op_tanh, SGM_FLOAT32, SGM_FLOAT32, tanh_fast_f32},
    {&sgm__op_tanh, SGM_BFLOAT16, SGM_BFLOAT16, tanh_fast_bf16},
};

#if VECTOR_BYTES >= 32
DEFINE_FUNCTION(exp_fast)
DEFINE_FUNCTION(tanh_fast)
static const sgm__vector_call fast_functions[] = {{&sgm__op_exp, (sgm__one_vector)exp_fast_vector},
                                                  {&sgm__op_tanh, (sgm__one_vector)tanh_fast_vector}};
#define FAST_FUNCTIONS fast_functions
#define FAST_FUNCTION_COUNT ((int32_t)(sizeof fast_functions / sizeof *fast_functions))
#else
#define FAST_FUNCTIONS NULL
#define FAST_FUNCTION_COUNT 0
#endif
