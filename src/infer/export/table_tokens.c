/* The function of C that reads the tokens of a text in an exported network, as sgm_tokenizer_encode and
 * data/table/pipeline_texts.c do. `$` stands for the prefix of names (sgm__source_write_template). See
 * table_export.h. */
#include "data/tokens/tokenizer.h"
#include "infer/export/table_export.h"

#include <stdlib.h>

static const char byte_words[] =
    "/* The bytes of a text, as many as the window has, which ~_NO_TOKEN fills up; returns their number. */\n"
    "static long $_read_text(const char *text, @ *tokens, long window)\n"
    "{\n"
    "    long count = 0;\n"
    "    for (; count < window && text[count] != '\\0'; count++)\n"
    "        tokens[count] = (@)(unsigned char)text[count];\n"
    "    for (long i = count; i < window; i++)\n"
    "        tokens[i] = ~_NO_TOKEN;\n"
    "    return count;\n"
    "}\n\n";

static const char pair_words[] =
    "/* The token of two tokens; -1: there is none. */\n"
    "static long $_pair(long left, long right)\n"
    "{\n"
    "    long begin = 0, end = (long)(sizeof $_pairs / sizeof *$_pairs);\n"
    "    while (begin < end) {\n"
    "        long middle = begin + (end - begin) / 2;\n"
    "        const long *pair = $_pairs[middle];\n"
    "        if (pair[0] == left && pair[1] == right)\n"
    "            return pair[2];\n"
    "        if (pair[0] < left || (pair[0] == left && pair[1] < right))\n"
    "            begin = middle + 1;\n"
    "        else\n"
    "            end = middle;\n"
    "    }\n"
    "    return -1;\n"
    "}\n\n"
    "/* Space, digit, letter or another byte. */\n"
    "static int $_byte_kind(unsigned char c)\n"
    "{\n"
    "    if (c == ' ' || (c >= '\\t' && c <= '\\r'))\n"
    "        return 0;\n"
    "    if (c >= '0' && c <= '9')\n"
    "        return 1;\n"
    "    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 128 ? 2 : 3;\n"
    "}\n\n"
    "/* Bytes of the word, number or the like that a text begins with; no token goes beyond it. */\n"
    "static long $_piece(const unsigned char *text)\n"
    "{\n"
    "    long end = text[0] == ' ' && text[1] != 0 && $_byte_kind(text[1]) != 0;\n"
    "    int kind = $_byte_kind(text[end]);\n"
    "    while (text[end] != 0 && end < ~_PIECE && $_byte_kind(text[end]) == kind)\n"
    "        end++;\n"
    "    return end - (kind == 0 && end > 1 && text[end] != 0 && text[end - 1] == ' ');\n"
    "}\n\n"
    "/* The tokens of a piece: its bytes, of which pairs are merged, those of the lowest token first. */\n"
    "static long $_merge(const unsigned char *text, long count, long *tokens)\n"
    "{\n"
    "    for (long i = 0; i < count; i++)\n"
    "        tokens[i] = text[i];\n"
    "    for (;;) {\n"
    "        long lowest = -1, kept = 0, left = 0, right = 0;\n"
    "        for (long i = 0; i + 1 < count; i++) {\n"
    "            long pair = $_pair(tokens[i], tokens[i + 1]);\n"
    "            if (pair >= 0 && (lowest < 0 || pair < lowest)) {\n"
    "                lowest = pair;\n"
    "                left = tokens[i];\n"
    "                right = tokens[i + 1];\n"
    "            }\n"
    "        }\n"
    "        if (lowest < 0)\n"
    "            return count;\n"
    "        for (long i = 0; i < count; i++)\n"
    "            if (i + 1 < count && tokens[i] == left && tokens[i + 1] == right) {\n"
    "                tokens[kept++] = lowest;\n"
    "                i++;\n"
    "            } else {\n"
    "                tokens[kept++] = tokens[i];\n"
    "            }\n"
    "        count = kept;\n"
    "    }\n"
    "}\n\n"
    "/* The tokens of a text, as many as the window has, which ~_NO_TOKEN fills up; returns their number. "
    "*/\n"
    "static long $_read_text(const char *text, @ *tokens, long window)\n"
    "{\n"
    "    const unsigned char *rest = (const unsigned char *)text;\n"
    "    long count = 0, piece[~_PIECE];\n"
    "    while (*rest != 0 && count < window) {\n"
    "        long size = $_piece(rest), merged = $_merge(rest, size, piece);\n"
    "        for (long i = 0; i < merged && count < window; i++)\n"
    "            tokens[count++] = (@)piece[i];\n"
    "        rest += size;\n"
    "    }\n"
    "    for (long i = count; i < window; i++)\n"
    "        tokens[i] = ~_NO_TOKEN;\n"
    "    return count;\n"
    "}\n\n";

/* A pair of tokens with the token that it is. */
typedef struct numbered_pair {
    int32_t left, right, token;
} numbered_pair;

static int by_pair(const void *one, const void *other)
{
    const numbered_pair *a = one, *b = other;
    if (a->left != b->left)
        return a->left < b->left ? -1 : 1;
    return (a->right > b->right) - (a->right < b->right);
}

/* The pairs in an order in which they are quickly found. */
static void write_pairs(const sgm__source_request *request, const sgm_tokenizer *tokenizer, sgm__text *text)
{
    size_t count = (size_t)(tokenizer->vocabulary - SGM__BYTES);
    numbered_pair *pairs = sgm__calloc(count, sizeof *pairs);
    if (pairs == NULL) {
        text->failed = true;
        return;
    }
    for (size_t i = 0; i < count; i++)
        pairs[i] = (numbered_pair){tokenizer->parts[i][0], tokenizer->parts[i][1], (int32_t)(SGM__BYTES + i)};
    qsort(pairs, count, sizeof *pairs, by_pair);
    sgm__source_write_template(request,
                               "/* Two tokens, and the token that they are together. */\n"
                               "static const long $_pairs[][3] = {\n",
                               text);
    for (size_t i = 0; i < count; i++)
        sgm__text_append(text, "    {%d, %d, %d},\n", (int)pairs[i].left, (int)pairs[i].right,
                         (int)pairs[i].token);
    sgm__text_append(text, "};\n\n");
    sgm__free(pairs);
}

void sgm__table_write_tokens(const sgm__source_request *request, const sgm_tokenizer *tokenizer,
                             sgm__text *text)
{
    bool has_pairs = tokenizer->vocabulary > SGM__BYTES;
    sgm__source_write_template(request, "#define ~_NO_TOKEN ", text);
    sgm__text_append(text, "%lld\n", (long long)tokenizer->vocabulary);
    if (has_pairs) {
        sgm__source_write_template(request, "#define ~_PIECE ", text);
        sgm__text_append(text, "%d /* bytes of the longest token */\n", SGM__MAX_PIECE);
    }
    sgm__text_append(text, "\n");
    if (has_pairs)
        write_pairs(request, tokenizer, text);
    sgm__source_write_template(request, has_pairs ? pair_words : byte_words, text);
}
