/* Which tokenizer a network's texts need, and their tokens. */
#include "texts/texts.h"

/* Where the tokenizer of a model of others is: the folder `path`, or the one that 'sigma import' kept, or
 * that of the run's chats or texts; sgm__free. NULL: there is none, or no memory. */
static char *folder_of_others(const saved *s, const char *path)
{
    if (path != NULL)
        return has_tokenizer(path) ? sgm__strdup(path) : NULL;
    char *folder = saved_tokenizer(s);
    return folder == NULL && s->has_config && data_config_is_of_model(&s->c.data.training)
               ? sgm__strdup(s->c.data.training.tokenizer)
               : folder;
}

static sgm_status open_others(text_codec *codec, const char *folder)
{
    codec->others = sgm_pretrained_tokenizer_open(folder);
    if (codec->others == NULL)
        return sgm__last_failure();
    codec->ends = sgm_pretrained_tokenizer_ends(codec->others, &codec->end_count);
    return SGM_OK;
}

/* One of ours must have as many tokens as the network knows (experiment_check_tokens), otherwise the text
 * would be nonsense. */
sgm_status text_codec_open(text_codec *codec, const saved *s, const char *path)
{
    *codec = (text_codec){0};
    if (path != NULL || !s->has_config || s->c.data.training.tokenizer == NULL ||
        data_config_is_of_model(&s->c.data.training)) {
        char *folder = folder_of_others(s, path);
        sgm_status status = folder != NULL ? open_others(codec, folder) : SGM_OK;
        sgm__free(folder);
        if (codec->others != NULL || status != SGM_OK)
            return status;
    }
    data_config named = {.tokenizer = (char *)(uintptr_t)path};
    const data_config *data = path == NULL && s->has_config ? &s->c.data.training : &named;
    codec->tokenizer = experiment_tokenizer(data);
    return codec->tokenizer != NULL ? experiment_check_tokens(s->network, codec->tokenizer, data->tokenizer)
                                    : sgm__last_failure();
}

sgm_status text_codec_open_config(text_codec *codec, const config *c)
{
    const data_config *data = &c->data.training;
    *codec = (text_codec){0};
    if (data_config_is_of_model(data))
        return open_others(codec, data->tokenizer);
    char *folder =
        data->text == NULL && data->tokenizer == NULL && c->from != NULL ? model_tokenizer(c->from) : NULL;
    sgm_status status = folder != NULL ? open_others(codec, folder) : SGM_OK;
    sgm__free(folder);
    if (codec->others != NULL || status != SGM_OK)
        return status;
    codec->tokenizer = experiment_tokenizer(data);
    return codec->tokenizer != NULL ? experiment_check_tokens(c->network, codec->tokenizer, data->tokenizer)
                                    : sgm__last_failure();
}

void text_codec_close(text_codec *codec)
{
    sgm_tokenizer_free(codec->tokenizer);
    sgm_pretrained_tokenizer_free(codec->others);
    *codec = (text_codec){0};
}

sgm_tensor *text_codec_encode(const text_codec *codec, const char *text)
{
    return codec->others != NULL ? sgm_pretrained_tokenizer_encode(codec->others, text, strlen(text))
                                 : sgm_tokenizer_encode(codec->tokenizer, text, strlen(text));
}

sgm_tensor *text_codec_encode_chat(const text_codec *codec, const sgm_chat_message *messages, size_t count)
{
    if (codec->others == NULL) {
        sgm_fail(SGM_ERROR_UNSUPPORTED,
                 "chats are for models of others, whose tokenizers say how chats are written");
        return NULL;
    }
    char *text = sgm_pretrained_tokenizer_chat(codec->others, messages, count, true);
    sgm_tensor *tokens =
        text != NULL ? sgm_pretrained_tokenizer_encode(codec->others, text, strlen(text), .no_special = true)
                     : NULL;
    sgm_string_free(text);
    return tokens;
}
