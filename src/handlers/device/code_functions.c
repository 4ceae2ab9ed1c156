/* The functions that a text brings along: what the languages do not have. */
#include "handlers/device/code_internal.h"

/* `@` stands for the type of numbers, `%` for the end of its constants. */
static const struct {
    sgm__source_function function;
    bool of_numbers; /* there is one for each type */
    const char *words;
} functions[] = {
    {SGM__SOURCE_SIGMOID, true,
     "FUNCTION @ sgm_sigmoid(@ x)\n"
     "{\n"
     "    const @ e = sgm_exp(x < 0 ? x : -x);\n"
     "    return (x < 0 ? e : 1) / (1 + e);\n"
     "}\n"},
    {SGM__SOURCE_GELU, true,
     "FUNCTION @ sgm_gelu(@ x)\n"
     "{\n"
     "    return x < -40 ? 0 : x * sgm_erfc(x * -0.7071067811865476%) / 2;\n"
     "}\n"},
    {SGM__SOURCE_GELU_SLOPE, true,
     "FUNCTION @ sgm_gelu_slope(@ x)\n"
     "{\n"
     "    const @ bell = x * sgm_exp(x * x / -2) * 0.3989422804014327%;\n"
     "    return x > 40 || x < -40 ? x > 0 : sgm_erfc(x * -0.7071067811865476%) / 2 + bell;\n"
     "}\n"},
    {SGM__SOURCE_INTEGER, true,
     "/* A number without its fraction, within limits; what is no number is 0. */\n"
     "FUNCTION int64_t sgm_integer(@ x, int64_t least, int64_t most)\n"
     "{\n"
     "    return x != x ? 0 : x >= (@)most ? most : x <= (@)least ? least : (int64_t)x;\n"
     "}\n"},
    {SGM__SOURCE_WITHIN, false,
     "/* A whole number within limits. */\n"
     "FUNCTION int64_t sgm_within(int64_t x, int64_t least, int64_t most)\n"
     "{\n"
     "    return x > most ? most : x < least ? least : x;\n"
     "}\n"},
    {SGM__SOURCE_DRAW, false,
     "/* Random words, a function of seed, step, stream and number: Philox4x32-10 (Salmon et al., 2011). */\n"
     "FUNCTION void sgm_draw(uint64_t seed, uint64_t step, uint64_t stream, uint64_t block, uint32_t "
     "*words)\n"
     "{\n"
     "    const uint64_t counter = (stream << 40) + block;\n"
     "    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);\n"
     "    uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32);\n"
     "    uint32_t c2 = (uint32_t)step, c3 = (uint32_t)(step >> 32);\n"
     "    for (int round = 0; round < 10; round++) {\n"
     "        const uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;\n"
     "        c0 = (uint32_t)(b >> 32) ^ c1 ^ key0;\n"
     "        c1 = (uint32_t)b;\n"
     "        c2 = (uint32_t)(a >> 32) ^ c3 ^ key1;\n"
     "        c3 = (uint32_t)a;\n"
     "        key0 += 0x9E3779B9u;\n"
     "        key1 += 0xBB67AE85u;\n"
     "    }\n"
     "    words[0] = c0;\n"
     "    words[1] = c1;\n"
     "    words[2] = c2;\n"
     "    words[3] = c3;\n"
     "}\n"
     "\n"
     "FUNCTION uint32_t sgm_word(uint64_t seed, uint64_t step, uint64_t stream, int64_t number)\n"
     "{\n"
     "    uint32_t words[4];\n"
     "    const int place = (int)(number & 3);\n"
     "    sgm_draw(seed, step, stream, (uint64_t)number / 4, words);\n"
     "    return place < 2 ? (place == 0 ? words[0] : words[1]) : (place == 2 ? words[2] : words[3]);\n"
     "}\n"},
};

static void write_function(const char *words, const char *type, const char *end, sgm__text *text)
{
    for (const char *c = words; *c != '\0'; c++)
        if (*c == '@' || *c == '%')
            sgm__text_append(text, "%s", *c == '@' ? type : end);
        else
            sgm__text_append_bytes(text, c, 1);
    sgm__text_append(text, "\n");
}

void sgm__device_write_functions(uint32_t needed, bool wide, sgm__text *text)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if ((needed >> functions[i].function & 1) == 0)
            continue;
        write_function(functions[i].words, "float", "f", text);
        if (wide && functions[i].of_numbers)
            write_function(functions[i].words, "double", "", text);
    }
}
