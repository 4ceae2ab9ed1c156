/* Functions that kernels bring along, because the languages of devices do not have them.
 *
 * In the texts, `@` stands for float or double. What OpenCL C and CUDA C++ have (exp, log, ...) is defined by
 * the preludes; functions of C files are in handlers/source/source_functions.c.
 */
#include "handlers/device/code/code_internal.h"

#define BIT(function) ((uint32_t)1 << SGM__SOURCE_##function)

/* In an order in which functions come before those that call them. GELU of float and its gradient do not use
 * the languages' erfc: sgm_bell gives the density and the area of the normal distribution with one exp. */
static const struct {
    uint32_t users;  /* functions that need this text, itself or others: bits of sgm__source_function */
    bool of_numbers; /* there is one for float and one for double */
    const char *words;
    const char *narrow; /* the text for float, where it is another one; otherwise NULL */
} functions[] = {
    {BIT(SIGMOID), true,
     "FUNCTION @ sgm_sigmoid(@ x)\n"
     "{\n"
     "    const @ e = sgm_exp(x < 0 ? x : -x);\n"
     "    return (x < 0 ? e : 1) / (1 + e);\n"
     "}\n",
     NULL},
    {BIT(GELU) | BIT(GELU_GRADIENT), false,
     "/* e^(-x^2 / 2), and the area of the normal distribution from |x| on as a share of that: with t = |x| "
     "/\n"
     " * sqrt(2) half of a polynomial of (t - 2.5) / (t + 2.5) (minimax, error below 3e-8 up to 9.6). */\n"
     "FUNCTION float sgm_bell(float x, float *share)\n"
     "{\n"
     "    const float square = x * x, lost = sgm_fma(x, x, -square);\n"
     "    const float t = (x < 0 ? -x : x) * 0.707106781f, s = (t - 2.5f) / (t + 2.5f);\n"
     "    float p = sgm_fma(-5.33368111e-05f, s, 0.000217032866f);\n"
     "    p = sgm_fma(p, s, 0.000815575011f);\n"
     "    p = sgm_fma(p, s, -0.00264466321f);\n"
     "    p = sgm_fma(p, s, -0.00397495832f);\n"
     "    p = sgm_fma(p, s, 0.0399233662f);\n"
     "    p = sgm_fma(p, s, -0.125035375f);\n"
     "    p = sgm_fma(p, s, 0.251713187f);\n"
     "    p = sgm_fma(p, s, -0.371736646f);\n"
     "    p = sgm_fma(p, s, 0.210806370f);\n"
     "    *share = p / 2;\n"
     "    return sgm_exp(square / -2) * sgm_fma(lost, -0.5f, 1.0f);\n"
     "}\n",
     NULL},
    {BIT(GELU), true,
     "FUNCTION @ sgm_gelu(@ x)\n"
     "{\n"
     "    return x < -40 ? 0 : x * sgm_erfc(x * -0.7071067811865476) / 2;\n"
     "}\n",
     "FUNCTION float sgm_gelu(float x)\n"
     "{\n"
     "    float share;\n"
     "    const float low = x < -40 ? -40 : x, close = low > 40 ? 40 : low;\n"
     "    const float tail = sgm_bell(close, &share) * share;\n"
     "    return low * (x < 0 ? tail : 1 - tail);\n"
     "}\n"},
    {BIT(GELU_GRADIENT), true,
     "FUNCTION @ sgm_gelu_gradient(@ x)\n"
     "{\n"
     "    const @ bell = x * sgm_exp(x * x / -2) * 0.3989422804014327;\n"
     "    return x > 40 || x < -40 ? x > 0 : sgm_erfc(x * -0.7071067811865476) / 2 + bell;\n"
     "}\n",
     "FUNCTION float sgm_gelu_gradient(float x)\n"
     "{\n"
     "    float share;\n"
     "    const float low = x < -40 ? -40 : x, close = low > 40 ? 40 : low;\n"
     "    const float bell = sgm_bell(close, &share), tail = bell * share;\n"
     "    return sgm_fma(close * bell, 0.398942280f, x < 0 ? tail : 1 - tail);\n"
     "}\n"},
    {BIT(INTEGER), true,
     "/* A number without its fraction, within limits; what is no number is 0. */\n"
     "FUNCTION int64_t sgm_integer(@ x, int64_t minimum, int64_t maximum)\n"
     "{\n"
     "    return x != x ? 0 : x >= (@)maximum ? maximum : x <= (@)minimum ? minimum : (int64_t)x;\n"
     "}\n",
     NULL},
    {BIT(WITHIN), false,
     "/* A whole number within limits. */\n"
     "FUNCTION int64_t sgm_within(int64_t x, int64_t minimum, int64_t maximum)\n"
     "{\n"
     "    return x > maximum ? maximum : x < minimum ? minimum : x;\n"
     "}\n",
     NULL},
    {BIT(DRAW), false,
     "/* Random words, a function of seed, step, stream and number: Philox4x32-10 (Salmon et al., 2011). */\n"
     "FUNCTION void sgm_draw(uint64_t seed, uint64_t step, uint64_t stream, uint64_t block, uint32_t "
     "*words)\n"
     "{\n" SGM__SOURCE_PHILOX "}\n"
     "\n"
     "FUNCTION uint32_t sgm_word(uint64_t seed, uint64_t step, uint64_t stream, int64_t number)\n"
     "{\n"
     "    uint32_t words[4];\n"
     "    const int place = (int)(number & 3);\n"
     "    sgm_draw(seed, step, stream, (uint64_t)number / 4, words);\n"
     "    return place < 2 ? (place == 0 ? words[0] : words[1]) : (place == 2 ? words[2] : words[3]);\n"
     "}\n",
     NULL},
};

static void write_function(const char *words, const char *type, sgm__text *text)
{
    for (const char *c = words; *c != '\0'; c++)
        if (*c == '@')
            sgm__text_append(text, "%s", type);
        else
            sgm__text_append_bytes(text, c, 1);
    sgm__text_append(text, "\n");
}

void sgm__device_write_functions(uint32_t needed, bool wide, sgm__text *text)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if ((needed & functions[i].users) == 0)
            continue;
        write_function(functions[i].narrow != NULL ? functions[i].narrow : functions[i].words, "float", text);
        if (wide && functions[i].of_numbers)
            write_function(functions[i].words, "double", text);
    }
}
