/* A text as one example: a window of its first tokens, filled up where the text is shorter. See tokenizer.h.
 */
#include "data/tokens/tokenizer.h"

/* The network that is proposed: vectors of tokens, through windows of which features are looked for anywhere
 * in the text (Kim, "Convolutional Neural Networks for Sentence Classification", 2014). */
#define EMBEDDING 16
#define FEATURES " + permute(2, 1) + convolution_1d(128, 7, relu, same) + global_max_pooling + dropout(0.5)"

sgm_status sgm__token_window_check(int64_t window)
{
    return window >= 1 && window <= SGM__MAX_WINDOW
               ? SGM_OK
               : sgm_fail(SGM_ERROR_ARGUMENT, "a window of 1 to %d tokens was expected, %lld came",
                          SGM__MAX_WINDOW, (long long)window);
}

/* The longest token is a piece, and the last piece of a text that is cut may become other tokens. */
size_t sgm__token_window_bytes(int32_t window)
{
    return ((size_t)window + 1) * SGM__MAX_PIECE;
}

sgm_status sgm__token_window(const sgm_tokenizer *tokenizer, const void *text, size_t size, int32_t window,
                             float *tokens, int32_t *length)
{
    size_t most = sgm__token_window_bytes(window);
    sgm_tensor *encoded = sgm_tokenizer_encode(tokenizer, text, size < most ? size : most);
    if (encoded == NULL)
        return sgm__last_failure();
    int64_t count = sgm_tensor_shape(encoded)->dims[0];
    const int64_t *numbers = sgm_tensor_const_data(encoded);
    *length = count < window ? (int32_t)count : window;
    for (int32_t i = 0; i < window; i++)
        tokens[i] = (float)(i < *length ? numbers[i] : tokenizer->vocabulary);
    sgm_tensor_free(encoded);
    return SGM_OK;
}

void sgm__token_window_network(const sgm_tokenizer *tokenizer, int32_t window, const char *field,
                               sgm__text *text)
{
    sgm__text_append(text, "input(%d", (int)window);
    if (field != NULL)
        sgm__text_append(text, ", name=\"%s\"", field);
    sgm__text_append(text, ") + embedding(%lld, %d)" FEATURES, (long long)tokenizer->vocabulary + 1,
                     EMBEDDING);
}
