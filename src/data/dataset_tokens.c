/* Windows of the tokens of a text, each with the same one token on. */
#include "base/base.h"
#include <sigma/data.h>

#define STANDARD_WINDOW 64

/* Records of `window` tokens, `step` apart, from token `first` on. */
static sgm_tensor *windows(const sgm_tensor *tokens, int64_t records, int64_t window, int64_t step,
                           int64_t first)
{
    const int64_t *numbers = sgm_tensor_const_data(tokens);
    sgm_shape shape = sgm_shape_of(records, window);
    sgm_tensor *result = sgm_tensor_create(SGM_FLOAT32, &shape);
    float *to = result != NULL ? sgm_tensor_data(result) : NULL;
    for (int64_t i = 0; i < records && result != NULL; i++)
        for (int64_t k = 0; k < window; k++)
            to[i * window + k] = (float)numbers[first + i * step + k];
    return result;
}

static sgm_dataset *make(const char *name, const sgm_tensor *tokens, int64_t window, int64_t step)
{
    int64_t count = sgm_tensor_shape(tokens)->dims[0];
    if (count < window + 1) {
        sgm_fail(SGM_ERROR_SHAPE, "the text has %lld tokens; a window of %lld and what follows it need %lld",
                 (long long)count, (long long)window, (long long)window + 1);
        return NULL;
    }
    int64_t records = (count - window - 1) / step + 1;
    sgm_tensor *sections[] = {windows(tokens, records, window, step, 0),
                              windows(tokens, records, window, step, 1)};
    sgm_dataset *dataset =
        sections[0] != NULL && sections[1] != NULL
            ? sgm_dataset_from(name, (const char *const[]){"inputs", "targets"}, sections, 2)
            : NULL;
    sgm_tensor_free(sections[0]);
    sgm_tensor_free(sections[1]);
    return dataset;
}

sgm_dataset *sgm_dataset_tokens(const char *name, const sgm_tokenizer *tokenizer, const void *text,
                                size_t size, const sgm_token_options *given)
{
    sgm_token_options options;
    if (sgm__options_read(&options, sizeof options, given, "sgm_dataset_tokens") != SGM_OK)
        return NULL;
    int64_t window = options.window > 0 ? options.window : STANDARD_WINDOW;
    int64_t step = options.step > 0 ? options.step : window;
    if (options.window < 0 || options.step < 0 || window > ((int64_t)1 << 24)) {
        sgm_fail(SGM_ERROR_ARGUMENT, "a window has 1 to %d tokens, and a step at least 1, not %lld and %lld",
                 1 << 24, (long long)options.window, (long long)options.step);
        return NULL;
    }
    sgm_tensor *tokens = sgm_tokenizer_encode(tokenizer, text, size);
    sgm_dataset *dataset = tokens != NULL ? make(name, tokens, window, step) : NULL;
    sgm_tensor_free(tokens);
    return dataset;
}
