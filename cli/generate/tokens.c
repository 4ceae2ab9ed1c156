/* Tokens of texts and chats for `sigma generate`. With --numbers tokens are numbers, and no tokenizer is
 * needed. */
#include "generate/generate.h"

sgm_status tokens_open(generation *g)
{
    if (g->numbers || text_codec_open(&g->codec, &g->s, g->tokenizer_path) == SGM_OK)
        return SGM_OK;
    if (g->codec.tokenizer == NULL)
        return sgm__last_failure();
    return sgm_fail(sgm_last_status(),
                    "%s; --tokenizer names another, --numbers takes and prints numbers of tokens",
                    sgm_last_error());
}

/* Numbers of a text as a list of tokens; NULL and an error if one is not whole. */
static sgm_tensor *read_numbers(const char *text)
{
    size_t count;
    char **words = sgm__words(text, &count);
    sgm_shape shape = sgm_shape_of((int64_t)count);
    sgm_tensor *tokens = words != NULL ? sgm_tensor_create(SGM_INT64, &shape) : NULL;
    for (size_t i = 0; i < count && tokens != NULL; i++)
        if (!sgm__parse_int64(words[i], (int64_t *)sgm_tensor_data(tokens) + i)) {
            sgm_fail(SGM_ERROR_ARGUMENT, "the text: expected whole numbers, got '%s'", words[i]);
            sgm_tensor_free(tokens);
            tokens = NULL;
        }
    sgm__free(words);
    return tokens;
}

sgm_tensor *tokens_of(const generation *g, const char *given)
{
    const char *text = given != NULL ? given : g->numbers ? "0" : "\n";
    const sgm_chat_message messages[] = {{"system", g->system}, {"user", text}};
    const size_t first = g->system != NULL ? 0 : 1;
    if (g->chat)
        return text_codec_encode_chat(&g->codec, messages + first, 2 - first);
    return g->numbers ? read_numbers(text) : text_codec_encode(&g->codec, text);
}

void tokens_tell_left_out(const generation *g, const sgm_tensor *begin, size_t line)
{
    const int64_t count = sgm_tensor_shape(begin)->dims[0], places = sgm_generator_places(g->generator);
    char where[32] = "";
    if (places == 0 || count <= places)
        return;
    if (g->texts != NULL)
        snprintf(where, sizeof where, "line %zu: ", line);
    complain("warning: %sthe text has %lld tokens, but the network has room for %lld: its beginning is left "
             "out\n",
             where, (long long)count, (long long)places);
}
