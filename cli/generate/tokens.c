/* Which tokenizer `sigma generate` takes, and tokens of texts and chats. With --numbers tokens are numbers,
 * and no tokenizer is needed. A model of others has its own tokenizer, of <sigma/tokenizer.h>. */
#include "generate/generate.h"

/* Where the tokenizer of a model of others is: the folder of --tokenizer, or the one that 'sigma import'
 * kept, or that of the run's chats; sgm__free. NULL: there is none, or no memory. */
static char *folder_of_others(const generation *g)
{
    if (g->tokenizer_path != NULL)
        return has_tokenizer(g->tokenizer_path) ? sgm__strdup(g->tokenizer_path) : NULL;
    char *folder = saved_tokenizer(&g->s);
    return folder == NULL && g->s.has_config && g->s.c.data.training.chats != NULL
               ? sgm__strdup(g->s.c.data.training.tokenizer)
               : folder;
}

static sgm_status open_others(generation *g, const char *folder)
{
    g->others = sgm_pretrained_tokenizer_open(folder);
    g->end = g->others != NULL ? sgm_pretrained_tokenizer_end(g->others) : -1;
    return g->others != NULL ? SGM_OK : sgm__last_failure();
}

sgm_status tokens_open(generation *g)
{
    if (g->numbers)
        return SGM_OK;
    if (g->tokenizer_path != NULL || !g->s.has_config || g->s.c.data.training.tokenizer == NULL ||
        g->s.c.data.training.chats != NULL) {
        char *folder = folder_of_others(g);
        sgm_status status = folder != NULL ? open_others(g, folder) : SGM_OK;
        sgm__free(folder);
        if (g->others != NULL || status != SGM_OK)
            return status;
    }
    data_config named = {.tokenizer = g->tokenizer_path};
    const data_config *data = g->tokenizer_path == NULL && g->s.has_config ? &g->s.c.data.training : &named;
    g->tokenizer = experiment_tokenizer(data);
    if (g->tokenizer == NULL)
        return sgm__last_failure();
    if (experiment_check_tokens(g->s.network, g->tokenizer, data->tokenizer) == SGM_OK)
        return SGM_OK;
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

/* The chat up to the beginning of the answer. */
static sgm_tensor *read_chat(const generation *g, const char *said)
{
    const sgm_chat_message messages[] = {{"system", g->system}, {"user", said}};
    size_t first = g->system != NULL ? 0 : 1;
    if (g->others == NULL) {
        sgm_fail(SGM_ERROR_UNSUPPORTED,
                 "--chat is for models of others, whose tokenizers say how chats are written");
        return NULL;
    }
    char *text = sgm_pretrained_tokenizer_chat(g->others, messages + first, 2 - first, true);
    sgm_tensor *tokens =
        text != NULL ? sgm_pretrained_tokenizer_encode(g->others, text, strlen(text), .no_special = true)
                     : NULL;
    sgm_string_free(text);
    return tokens;
}

sgm_tensor *tokens_of(const generation *g, const char *given)
{
    const char *text = given != NULL ? given : g->numbers ? "0" : "\n";
    if (g->chat)
        return read_chat(g, text);
    if (g->others != NULL)
        return sgm_pretrained_tokenizer_encode(g->others, text, strlen(text));
    return g->numbers ? read_numbers(text) : sgm_tokenizer_encode(g->tokenizer, text, strlen(text));
}
