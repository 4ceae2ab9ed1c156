/* Tokens of texts and chats for `sigma generate`. With --numbers tokens are numbers, and no tokenizer is
 * needed. */
#include "generate/generate.h"

#include <stdio.h>

/* Whether the network has a tokenizer of others, also where numbers are read and printed. */
static bool is_of_others(const generation *g)
{
    char *folder = g->numbers ? saved_tokenizer(&g->s) : NULL;
    bool found = g->codec.others != NULL || folder != NULL;
    sgm__free(folder);
    return found;
}

/* Bytes stand for a tokenizer that is missing only where a run was trained on them. */
static sgm_status check_tokenizer(const generation *g)
{
    const data_config *data = g->s.has_config ? &g->s.c.data.training : NULL;
    bool has_own = g->numbers || g->tokenizer_path != NULL ||
                   (data != NULL && (data->tokenizer != NULL || data->text != NULL));
    char *folder = !has_own ? saved_missing_tokenizer(&g->s) : NULL;
    if (folder == NULL)
        return SGM_OK;
    sgm_fail(SGM_ERROR_NOT_FOUND,
             "there is no " TOKENIZER_FILES " in '%s'; --tokenizer names the folder of one, --numbers takes "
             "and prints numbers of tokens",
             folder);
    sgm__free(folder);
    return SGM_ERROR_NOT_FOUND;
}

sgm_status tokens_open(generation *g)
{
    SGM_TRY(check_tokenizer(g));
    if (g->numbers || text_codec_open(&g->codec, &g->s, g->tokenizer_path) == SGM_OK) {
        g->ends_at_last_place = is_of_others(g);
        return SGM_OK;
    }
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

/* The library names the templates that are known, not what a user may do without one. */
static sgm_tensor *encode_chat(const generation *g, const sgm_chat_message *messages, size_t count)
{
    sgm_tensor *tokens = text_codec_encode_chat(&g->codec, messages, count);
    if (tokens == NULL && sgm_last_status() == SGM_ERROR_UNSUPPORTED)
        sgm_fail(SGM_ERROR_UNSUPPORTED,
                 "%s; without --chat the text is read as it is: write it as the model wants it, with what "
                 "stands around a message",
                 sgm_last_error());
    return tokens;
}

sgm_tensor *tokens_of(const generation *g, const char *given)
{
    const char *text = given != NULL ? given : g->numbers ? "0" : "\n";
    const sgm_chat_message messages[] = {{"system", g->system}, {"user", text}};
    const size_t first = g->system != NULL ? 0 : 1;
    if (g->chat)
        return encode_chat(g, messages + first, 2 - first);
    return g->numbers ? read_numbers(text) : text_codec_encode(&g->codec, text);
}

/* "line 3: " of several texts. */
static const char *place_of(const generation *g, size_t line, char *where, size_t size)
{
    *where = '\0';
    if (g->texts != NULL)
        snprintf(where, size, "line %zu: ", line);
    return where;
}

/* A network that was trained on windows of a text goes on for ever: the library goes on with its newest half
 * when all places are taken. A model of others has to end there. If the text leaves no place, half of them,
 * or as many as may follow, are left to what follows. */
span tokens_span(const generation *g, const sgm_tensor *begin, size_t line)
{
    const int64_t given = sgm_tensor_shape(begin)->dims[0], places = sgm_generator_places(g->generator);
    const int64_t most = g->ends_at_last_place ? places - 1 : places;
    char where[32];
    int64_t kept = given, count = g->count;
    if (places > 0 && given > most) {
        complain("warning: %sthe text has %lld tokens, but the network has room for %lld%s: its beginning is "
                 "left out\n",
                 place_of(g, line, where, sizeof where), (long long)given, (long long)places,
                 g->ends_at_last_place ? " with what follows" : "");
        if (g->ends_at_last_place)
            kept = count < places / 2 ? places - count : places - places / 2;
    }
    if (places > 1 && g->ends_at_last_place && count > places - kept)
        count = places - kept;
    return (span){(const int64_t *)sgm_tensor_const_data(begin) + (given - kept), (size_t)kept,
                  (size_t)count};
}

void tokens_tell_end(const generation *g, const span *of, const speech *said, size_t line)
{
    char where[32];
    if (of->count < (size_t)g->count && !said->has_ended && said->drawn >= (int64_t)of->count)
        complain("note: %sthe text ends after %zu of %lld tokens: the network has %lld places, and all are "
                 "taken\n",
                 place_of(g, line, where, sizeof where), of->count, (long long)g->count,
                 (long long)sgm_generator_places(g->generator));
}
