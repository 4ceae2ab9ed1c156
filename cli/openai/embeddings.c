/* POST /v1/embeddings: a vector for each text, as numbers or as the bytes of float32 in base64. */
#include "openai/asking.h"
#include "text/json_text.h"

#include <math.h>
#include <nettle/base64.h>

#define MOST_TEXTS 2048

/* Tokens of all texts. The vector of one that is cut would be that of a part. */
static sgm_status count_tokens(asking *ask, const token_lists *texts, int64_t *tokens)
{
    const openai *server = ask->server;
    *tokens = 0;
    for (size_t i = 0; i < texts->count; i++) {
        int64_t own = sgm_tensor_shape(texts->items[i])->dims[0];
        *tokens += own;
        if (own <= server->longest)
            continue;
        ask->code = "context_length_exceeded";
        return ask_refuse(ask, "input", "text %zu has %lld tokens; this model takes %lld", i, (long long)own,
                          (long long)server->longest);
    }
    return SGM_OK;
}

static void append_numbers(sgm__text *text, const float *vector, int64_t size)
{
    char digits[64];
    for (int64_t i = 0; i < size; i++) {
        const char *number = sgm__float_text(vector[i], digits, sizeof digits);
        sgm__text_append_bytes(text, i > 0 ? "," : "[", 1);
        sgm__text_append_bytes(text, number, strlen(number));
    }
    sgm__text_append_bytes(text, "]", 1);
}

/* The bytes are little-endian, as Sigma's machines are. */
static void append_base64(sgm__text *text, const float *vector, int64_t size)
{
    size_t bytes = (size_t)size * sizeof *vector, length = BASE64_ENCODE_RAW_LENGTH(bytes);
    char *encoded = sgm__alloc(length + 1);
    if (encoded == NULL) {
        text->failed = true;
        return;
    }
    base64_encode_raw(encoded, bytes, (const uint8_t *)vector);
    encoded[length] = '\0';
    sgm__text_append(text, "\"%s\"", encoded);
    sgm__free(encoded);
}

/* Vectors are written as text at once, since there may be millions of numbers. */
static sgm_status write_answer(const asking *ask, const sgm_tensor *vectors, bool in_base64, int64_t tokens,
                               sgm__http_answer *answer)
{
    const int64_t count = sgm_tensor_shape(vectors)->dims[0];
    const int64_t size = sgm_shape_elements(sgm_tensor_shape(vectors)) / count;
    const float *numbers = sgm_tensor_const_data(vectors);
    json_t *name = json_string(ask->server->name);
    char *model = sgm__json_text(name);
    sgm__text text = {0};
    sgm__text_append(&text, "{\"object\":\"list\",\"data\":[");
    for (int64_t i = 0; i < count; i++, numbers += size) {
        sgm__text_append(&text, "%s{\"object\":\"embedding\",\"index\":%lld,\"embedding\":", i > 0 ? "," : "",
                         (long long)i);
        (in_base64 ? append_base64 : append_numbers)(&text, numbers, size);
        sgm__text_append_bytes(&text, "}", 1);
    }
    sgm__text_append(&text, "],\"model\":%s,\"usage\":{\"prompt_tokens\":%lld,\"total_tokens\":%lld}}",
                     model != NULL ? model : "null", (long long)tokens, (long long)tokens);
    json_decref(name);
    sgm__free(model);
    answer->length = text.length;
    answer->body = sgm__text_take(&text);
    return answer->body != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

static sgm_status read_format(asking *ask, bool *in_base64)
{
    const json_t *format = ask_value(ask, "encoding_format");
    const char *name = format == NULL ? "float" : json_string_value(format);
    *in_base64 = name != NULL && strcmp(name, "base64") == 0;
    return *in_base64 || (name != NULL && strcmp(name, "float") == 0)
               ? SGM_OK
               : ask_refuse(ask, "encoding_format", "expected \"float\" or \"base64\"");
}

/* JSON has no NaN and no infinity. */
static bool all_are_finite(const sgm_tensor *vectors)
{
    const float *numbers = sgm_tensor_const_data(vectors);
    int64_t count = sgm_shape_elements(sgm_tensor_shape(vectors));
    while (count > 0 && isfinite(numbers[count - 1]))
        count--;
    return count == 0;
}

/* The vectors as float32, a row for each text. */
static sgm_status embed(asking *ask, const token_lists *texts, int64_t dimensions, sgm_tensor **vectors)
{
    const openai *server = ask->server;
    sgm_tensor *made = sgm_pretrained_predict_texts(
        server->saved->trainer, NULL, NULL, texts->count, .longest = server->longest,
        .tokens = (const sgm_tensor *const *)texts->items, .proceed = ask_proceed, .user = ask);
    *vectors = made != NULL ? sgm_tensor_cast(made, SGM_FLOAT32) : NULL;
    sgm_tensor_free(made);
    if (*vectors == NULL && sgm_last_status() == SGM_ERROR_INTERRUPTED)
        return sgm_fail(SGM_ERROR_INTERRUPTED, "nobody waits for the answer any more");
    if (*vectors == NULL)
        return ask_fail_inside(ask, sgm__last_failure());
    if (!all_are_finite(*vectors))
        return ask_fail_inside(ask,
                               sgm_fail(SGM_ERROR_NUMERIC, "the model gives numbers that are not finite"));
    int64_t size = sgm_shape_elements(sgm_tensor_shape(*vectors)) / (int64_t)texts->count;
    /* A part of a vector would be another answer. */
    return dimensions == 0 || dimensions == size
               ? SGM_OK
               : ask_refuse(ask, "dimensions", "a vector of this model has %lld numbers", (long long)size);
}

sgm_status answer_embeddings(asking *ask, sgm__http_answer *answer)
{
    token_lists texts = {0};
    bool in_base64;
    int64_t tokens, dimensions = 0;
    sgm_tensor *vectors = NULL;
    SGM_TRY(read_format(ask, &in_base64));
    SGM_TRY(ask_integer(ask, "dimensions", 1, INT64_MAX, &dimensions));
    sgm_status status = ask_tokens(ask, "input", MOST_TEXTS, &texts);
    if (status == SGM_OK)
        status = count_tokens(ask, &texts, &tokens);
    if (status == SGM_OK)
        status = embed(ask, &texts, dimensions, &vectors);
    if (status == SGM_OK)
        status = write_answer(ask, vectors, in_base64, tokens, answer);
    sgm_tensor_free(vectors);
    token_lists_free(&texts);
    return status;
}
