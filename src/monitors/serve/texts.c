/* A list of texts and pairs of texts from JSON, for the functions of sgm__serve_texts. */
#include "monitors/serve/texts.h"

bool sgm__serve_is_text(const json_t *example)
{
    return json_is_string(example) || json_is_string(json_object_get(example, "text"));
}

/* Borrowed from the request. */
static sgm_status read_text(const json_t *example, size_t number, const char **text, const char **pair)
{
    const json_t *second = json_object_get(example, "pair");
    *text = json_string_value(json_is_string(example) ? example : json_object_get(example, "text"));
    *pair = json_string_value(second);
    if (*text == NULL || (second != NULL && *pair == NULL))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "example %zu of 'input': expected a text%s, or an object with text and pair: "
                        "{\"text\": TEXT, \"pair\": TEXT}",
                        number, number > 0 ? ", as the first one is" : "");
    return SGM_OK;
}

/* What is computed of each text has to be what the network gives for one example: a network that gives
 * something for each token has other shapes for other texts. */
static sgm_status check_outputs(const sgm__signature *signature, const sgm_tensor *outputs, size_t count)
{
    sgm_shape expected = {.rank = signature->output.rank + 1, .dims = {(int64_t)count}};
    memcpy(expected.dims + 1, signature->output.dims, (size_t)signature->output.rank * sizeof *expected.dims);
    if (sgm_shape_equal(sgm_tensor_shape(outputs), &expected))
        return SGM_OK;
    return sgm_fail(
        SGM_ERROR_ARGUMENT,
        "'input': the network gives something for each token, not for a text; send lists of numbers "
        "of tokens, and 'lengths'");
}

sgm_tensor *sgm__serve_predict_texts(const sgm__serve_texts *texts, const sgm__signature *signature,
                                     const json_t *list)
{
    size_t count = json_array_size(list);
    const char **first = sgm__calloc(2 * count + 1, sizeof *first), **pairs = first + count;
    sgm_status status = first != NULL ? SGM_OK : sgm__last_failure();
    for (size_t i = 0; i < count && status == SGM_OK; i++)
        status = read_text(json_array_get(list, i), i, &first[i], &pairs[i]);
    sgm_tensor *outputs = status == SGM_OK ? texts->predict(texts->user, first, pairs, count) : NULL;
    if (status == SGM_OK && outputs == NULL)
        sgm__fail_within("'input'");
    if (outputs != NULL && check_outputs(signature, outputs, count) != SGM_OK) {
        sgm_tensor_free(outputs);
        outputs = NULL;
    }
    sgm__free(first);
    return outputs;
}
