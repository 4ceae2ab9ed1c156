/* Texts of a request, alone or in a list. */
#include "openai/asking.h"

static sgm_status check_text(asking *ask, const char *name, const json_t *text)
{
    if (!json_is_string(text))
        return ask_refuse(ask, name, "expected a text or a list of texts; tokens are not taken here");
    return json_string_length(text) > 0 ? SGM_OK : ask_refuse(ask, name, "expected a text that is not empty");
}

sgm_status ask_texts(asking *ask, const char *name, size_t most, const char ***texts, size_t *count)
{
    const json_t *given = ask_value(ask, name);
    bool is_list = json_is_array(given);
    size_t size = is_list ? json_array_size(given) : 1;
    if (size == 0 || size > most)
        return ask_refuse(ask, name, "expected 1 to %zu texts, got %zu", most, size);
    const char **list = sgm__calloc(size, sizeof *list);
    sgm_status status = list != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    for (size_t i = 0; i < size && status == SGM_OK; i++) {
        const json_t *text = is_list ? json_array_get(given, i) : given;
        status = check_text(ask, name, text);
        if (status == SGM_OK)
            list[i] = json_string_value(text);
    }
    if (status != SGM_OK) {
        sgm__free(list);
        return status;
    }
    *texts = list;
    *count = size;
    return SGM_OK;
}

sgm_status prompts_read(asking *ask, sgm_tensor *prompts[MOST_PROMPTS], size_t *count)
{
    const char **texts = NULL;
    size_t size = 0;
    SGM_TRY(ask_texts(ask, "prompt", MOST_PROMPTS, &texts, &size));
    sgm_status status = SGM_OK;
    for (*count = 0; *count < size && status == SGM_OK; ++*count) {
        prompts[*count] = text_codec_encode(&ask->server->codec, texts[*count]);
        status = prompts[*count] != NULL ? SGM_OK : sgm__last_failure();
    }
    sgm__free(texts);
    return status;
}
