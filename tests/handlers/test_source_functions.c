/* The functions that exported files bring along, against those of the C library. */
#include "compiled.h"

#include "handlers/source/source.h"

typedef double (*real_function)(double x);

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double gelu(double x)
{
    return x < -40 ? 0 : x * erfc(-x / sqrt(2)) / 2;
}

/* Tolerances are relative beyond 1. */
static const struct compared {
    const char *name;
    real_function expected;
    double minimum, maximum, in_double, in_float;
} compared[] = {
    {"exp", exp, -700, 700, 2e-13, 1e-5},
    {"exp", exp, -1, 1, 1e-15, 3e-7},
    {"exp", exp, 709.4, 709.7, 2e-13, INFINITY},
    {"exp", exp, 88.3, 88.7, 2e-13, 2e-5},
    {"log", log, 1e-300, 1e-200, 1e-14, INFINITY},
    {"log", log, 1e-30, 1e30, 1e-14, 3e-6},
    {"log", log, 0.5, 2, 1e-15, 3e-7},
    {"log1p", log1p, -0.999, 20, 1e-14, 1e-6},
    {"log1p", log1p, -1e-9, 1e-9, 1e-23, 1e-15},
    {"sqrt", sqrt, 0, 1e30, 1e-15, 3e-7},
    {"sqrt", sqrt, 0, 1e-20, 1e-25, 1e-16},
    {"sigmoid", sigmoid, -60, 60, 1e-15, 3e-7},
    {"tanh", tanh, -12, 12, 1e-15, 3e-7},
    {"tanh", tanh, -1e-6, 1e-6, 1e-21, 1e-13},
    {"erf", erf, -6, 6, 1e-15, 6e-7},
    {"erf", erf, -1e-9, 1e-9, 1e-24, 1e-15},
    {"erf", erf, 1e-30, 1e-20, 1e-35, 1e-26},
    {"erfc", erfc, -6, 26, 1e-15, 6e-7},
    {"gelu", gelu, -45, 45, 1e-14, 2e-6},
    {"sin", sin, -100, 100, 1e-13, 1e-5},
    {"cos", cos, -100, 100, 1e-13, 1e-5},
    {"tan", tan, -1.5, 1.5, 1e-13, 1e-5},
    {"atan", atan, -1000, 1000, 1e-15, 5e-7},
    {"asin", asin, -1, 1, 1e-14, 2e-6},
    {"acos", acos, -1, 1, 1e-14, 2e-6},
    {"acos", acos, 1 - 1e-12, 1, 1e-21, INFINITY},
    {"acos", acos, 1 - 1e-6, 1, 1e-17, 1e-9},
    {"floor", floor, -1e6, 1e6, 0, 1},
};

static sgm__text write_all(const sgm__source_request *request)
{
    sgm__text text = {0};
    char real[SGM__SOURCE_NAME];
    sgm__source_real(request, real, sizeof real);
    sgm__text_append(&text, "#include <stdint.h>\n#define ALL_REAL float\n");
    sgm__source_write_functions(request, ((uint32_t)1 << SGM__SOURCE_FUNCTION_COUNT) - 1, &text);
    for (size_t i = 0; i < sizeof compared / sizeof *compared; i++) {
        bool known = false;
        for (size_t k = 0; k < i && !known; k++)
            known = strcmp(compared[k].name, compared[i].name) == 0;
        if (!known)
            sgm__text_append(&text, "double test_%s(double x) { return (double)all_%s((%s)x); }\n",
                             compared[i].name, compared[i].name, real);
    }
    sgm__text_append(
        &text,
        "double test_power(double x, double y) { return (double)all_power((%s)x, (%s)y); }\n"
        "double test_integer(double x) { return (double)all_integer((%s)x, -5, 255); }\n"
        "double test_complement(double x, double k) { return (double)all_complement(x, (int64_t)k); }\n"
        "double test_within(double x) { return (double)all_within((int64_t)x, -5, 255); }\n"
        "void test_draw(uint64_t seed, uint64_t step, uint64_t stream, long block, uint32_t *words)\n"
        "{ all_draw(seed, step, stream, block, words); }\n"
        "double test_gradient(double x) { return (double)all_gelu_gradient((%s)x); }\n",
        real, real, real, real);
    return text;
}

static void *load(sgm_dtype dtype)
{
    sgm__text text = write_all(&(sgm__source_request){.name = "all", .real = dtype});
    return load_c(&text, "-O1");
}

static void find(void *library, const char *name, void *function)
{
    char symbol[64];
    snprintf(symbol, sizeof symbol, "test_%s", name);
    find_c(library, symbol, function);
}

static void check_all(sgm_dtype dtype)
{
    void *library = load(dtype);
    for (size_t i = 0; i < sizeof compared / sizeof *compared; i++) {
        const struct compared *c = &compared[i];
        bool single = dtype == SGM_FLOAT32;
        double tolerance = single ? c->in_float : c->in_double;
        real_function own;
        find(library, c->name, &own);
        for (int k = 0; k <= 2000 && tolerance < INFINITY; k++) {
            double x = c->minimum + (c->maximum - c->minimum) * k / 2000;
            x = single ? (double)(float)x : x;
            double expected = c->expected(x), got = own(x);
            if (single && fabs(expected) > 3e38)
                continue;
            if (!(fabs(got - expected) <= tolerance * fmax(fabs(expected), 1)))
                TEST_FAIL("%s(%.17g) in %s is %.17g, expected %.17g", c->name, x, sgm_dtype_name(dtype), got,
                          expected);
        }
    }
    dlclose(library);
}

TEST(functions_in_double)
{
    check_all(SGM_FLOAT64);
}

TEST(functions_in_float)
{
    check_all(SGM_FLOAT32);
}

static void check_limits(sgm_dtype dtype)
{
    void *library = load(dtype);
    real_function own_exp, own_log, own_log1p, own_sqrt, own_tanh, own_sigmoid, own_erf, own_sin, own_floor,
        integer, within;
    double (*power)(double x, double y), (*complement)(double x, double k);
    find(library, "exp", &own_exp);
    find(library, "log", &own_log);
    find(library, "log1p", &own_log1p);
    find(library, "sqrt", &own_sqrt);
    find(library, "tanh", &own_tanh);
    find(library, "sigmoid", &own_sigmoid);
    find(library, "erf", &own_erf);
    find(library, "sin", &own_sin);
    find(library, "floor", &own_floor);
    find(library, "integer", &integer);
    find(library, "within", &within);
    find(library, "power", &power);
    find(library, "complement", &complement);
    CHECK_NEAR(own_exp(INFINITY), INFINITY, 0);
    CHECK_NEAR(own_exp(1e30), INFINITY, 0);
    CHECK_NEAR(own_exp(-INFINITY), 0, 0);
    CHECK_NEAR(own_exp(-1e30), 0, 0);
    CHECK_NEAR(own_log(0), -INFINITY, 0);
    CHECK_NEAR(own_log(INFINITY), INFINITY, 0);
    CHECK(isnan(own_log(-1)) && isnan(own_sqrt(-1)) && isnan(own_sin(INFINITY)));
    CHECK_NEAR(own_log1p(-1), -INFINITY, 0);
    CHECK_NEAR(own_log1p(INFINITY), INFINITY, 0);
    CHECK_NEAR(own_sqrt(INFINITY), INFINITY, 0);
    CHECK_NEAR(own_tanh(INFINITY), 1, 0);
    CHECK_NEAR(own_tanh(-INFINITY), -1, 0);
    CHECK_NEAR(own_sigmoid(-INFINITY), 0, 0);
    CHECK_NEAR(own_sigmoid(INFINITY), 1, 0);
    CHECK_NEAR(own_erf(INFINITY), 1, 0);
    CHECK_NEAR(own_floor(-INFINITY), -INFINITY, 0);
    CHECK_NEAR(own_floor(-0.5), -1, 0);
    CHECK_NEAR(own_floor(7), 7, 0);
    const real_function all[] = {own_exp,     own_log, own_log1p, own_sqrt, own_tanh,
                                 own_sigmoid, own_erf, own_sin,   own_floor};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        CHECK(isnan(all[i](NAN)));
    CHECK_NEAR(integer(NAN), 0, 0);
    CHECK_NEAR(integer(-2.9), -2, 0);
    CHECK_NEAR(integer(1e30), 255, 0);
    CHECK_NEAR(integer(-1e30), -5, 0);
    CHECK_NEAR(within(-4), -4, 0);
    CHECK_NEAR(within(256), 255, 0);
    CHECK_NEAR(within(-6), -5, 0);
    CHECK_NEAR(power(2, 10), 1024, 0);
    CHECK_NEAR(power(-2, 3), -8, 0);
    CHECK_NEAR(power(2, -2), 0.25, 0);
    CHECK_NEAR(power(0.9, 100), pow(0.9, 100), 1e-9);
    CHECK_NEAR(power(2, 0.5), sqrt(2), 1e-6);
    CHECK_NEAR(power(0, 0), 1, 0);
    CHECK_NEAR(power(0, 0.5), 0, 0);
    CHECK_NEAR(power(0, -1), INFINITY, 0);
    static const double bases[] = {0, -0.0, 1, -1, 0.5, -0.5, 2, -2, INFINITY, -INFINITY, NAN};
    static const double exponents[] = {0,   -0.0, 1,    -1,    2,        3,         -3,
                                       0.5, -0.5, 1e10, -1e10, INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++)
        for (size_t k = 0; k < sizeof exponents / sizeof *exponents; k++) {
            double expected = pow(bases[i], exponents[k]), got = power(bases[i], exponents[k]);
            if (isnan(expected) ? !isnan(got) : !(fabs(got - expected) <= 1e-6 || got == expected))
                TEST_FAIL("power(%g, %g) in %s is %g, expected %g", bases[i], exponents[k],
                          sgm_dtype_name(dtype), got, expected);
        }
    CHECK_NEAR(complement(0.999999, 1) * 1e6, 1, 1e-7);
    CHECK_NEAR(complement(0.999, 1000), 1 - pow(0.999, 1000), 1e-7);
    CHECK_NEAR(complement(0.9, 1000000), 1, 0);
    CHECK_NEAR(complement(0.5, 0), 0, 0);
    dlclose(library);
}

TEST(limits_of_functions)
{
    check_limits(SGM_FLOAT64);
    check_limits(SGM_FLOAT32);
}

TEST(random_words_are_those_of_the_library)
{
    void *library = load(SGM_FLOAT32);
    void (*draw)(uint64_t seed, uint64_t step, uint64_t stream, long block, uint32_t *words);
    find(library, "draw", &draw);
    for (uint64_t i = 0; i < 20; i++) {
        uint32_t own[4], expected[4];
        uint64_t seed = 0x123456789abcdef0u * (i + 1), step = 0xfedcba9876543210u * i;
        draw(seed, step, i * 1000, (long)i * 123456, own);
        sgm__philox(seed, step, (i * 1000) << 40 | i * 123456, expected);
        CHECK(memcmp(own, expected, sizeof own) == 0);
    }
    dlclose(library);
}
