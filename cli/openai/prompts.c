/* Texts of a request, alone or in a list, and texts that are given as tokens. */
#include "openai/asking.h"

#include <stdio.h>

static sgm_status check_text(asking *ask, const char *name, const json_t *text)
{
    if (!json_is_string(text))
        return ask_refuse(ask, name, "expected a text or a list of texts");
    return json_string_length(text) > 0 ? SGM_OK : ask_refuse(ask, name, "expected a text that is not empty");
}

static sgm_status check_size(asking *ask, const char *name, size_t most, size_t size)
{
    return size > 0 && size <= most ? SGM_OK
                                    : ask_refuse(ask, name, "expected 1 to %zu texts, got %zu", most, size);
}

sgm_status ask_texts(asking *ask, const char *name, size_t most, const char ***texts, size_t *count)
{
    const json_t *given = ask_value(ask, name);
    bool is_list = json_is_array(given);
    size_t size = is_list ? json_array_size(given) : 1;
    SGM_TRY(check_size(ask, name, most, size));
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

/* --- tokens --- */

/* Refuses an element of a parameter, or of `place` in it. */
static sgm_status refuse_element(asking *ask, const char *place, size_t index, const char *why)
{
    char param[80];
    snprintf(param, sizeof param, "%s[%zu]", place, index);
    return ask_refuse(ask, param, "%s", why);
}

/* The tokens of a list of numbers at `place`. */
static sgm_status read_numbers(asking *ask, const char *place, const json_t *numbers, sgm_tensor **tokens)
{
    const size_t count = json_array_size(numbers);
    const sgm_shape shape = sgm_shape_of((int64_t)count);
    const int64_t vocabulary = ask->server->vocabulary;
    char why[96];
    if (count == 0)
        return ask_refuse(ask, place, "expected at least 1 token");
    if ((*tokens = sgm_tensor_create(SGM_INT64, &shape)) == NULL)
        return sgm__last_failure();
    for (size_t i = 0; i < count; i++) {
        const json_t *number = json_array_get(numbers, i);
        const json_int_t token = json_integer_value(number);
        snprintf(why, sizeof why, "expected a token, a whole number from 0 to %lld",
                 (long long)vocabulary - 1);
        if (!json_is_integer(number) || token < 0 || token >= vocabulary)
            return refuse_element(ask, place, i, why);
        ((int64_t *)sgm_tensor_data(*tokens))[i] = token;
    }
    return SGM_OK;
}

/* An element of a list of texts, or of lists of tokens, as the first one is; or the parameter itself. */
static sgm_status read_element(asking *ask, const char *place, const json_t *element, sgm_tensor **tokens)
{
    if (json_is_array(element))
        return read_numbers(ask, place, element, tokens);
    if (!json_is_string(element))
        return ask_refuse(ask, place,
                          "expected a text, a list of texts, a list of tokens, or a list of such");
    if (json_string_length(element) == 0)
        return ask_refuse(ask, place, "expected a text that is not empty");
    *tokens = text_codec_encode(&ask->server->codec, json_string_value(element));
    return *tokens != NULL ? SGM_OK : sgm__last_failure();
}

static sgm_status read_list(asking *ask, const char *name, const json_t *list, token_lists *lists)
{
    char place[64];
    const json_t *first = json_array_get(list, 0);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *element = json_array_get(list, i);
        snprintf(place, sizeof place, "%s[%zu]", name, i);
        if (json_typeof(element) != json_typeof(first))
            return ask_refuse(ask, place, "expected %s, as the first one",
                              json_is_string(first) ? "a text" : "a list of tokens");
        lists->count = i + 1;
        SGM_TRY(read_element(ask, place, element, &lists->items[i]));
    }
    return SGM_OK;
}

/* A list that begins with a number is one text; what is none of the kinds is one as well, and is refused. */
sgm_status ask_tokens(asking *ask, const char *name, size_t most, token_lists *lists)
{
    const json_t *given = ask_value(ask, name);
    const bool is_one = !json_is_array(given) || json_is_number(json_array_get(given, 0));
    const size_t size = is_one ? 1 : json_array_size(given);
    SGM_TRY(check_size(ask, name, most, size));
    lists->items = sgm__calloc(size, sizeof(sgm_tensor *));
    if (lists->items == NULL)
        return SGM_ERROR_MEMORY;
    if (!is_one)
        return read_list(ask, name, given, lists);
    lists->count = 1;
    return read_element(ask, name, given, &lists->items[0]);
}

void token_lists_free(token_lists *lists)
{
    for (size_t i = 0; i < lists->count; i++)
        sgm_tensor_free(lists->items[i]);
    sgm__free(lists->items);
    *lists = (token_lists){0};
}
