/* Windows of the tokens of a text, each with the same one token on. */
#include "base/base.h"
#include <sigma/data.h>

#define STANDARD_WINDOW 64
#define MOST (1 << 24)

typedef struct windows {
    const int64_t *tokens;
    int64_t records, window, step, lanes; /* records: a multiple of the lanes */
} windows;

/* Record i is the one of number i / lanes in lane i % lanes; from token `first` of it on. */
static sgm_tensor *records_of(const windows *w, int64_t first)
{
    sgm_shape shape = sgm_shape_of(w->records, w->window);
    sgm_tensor *result = sgm_tensor_create(SGM_FLOAT32, &shape);
    float *to = result != NULL ? sgm_tensor_data(result) : NULL;
    int64_t of_lane = w->records / w->lanes;
    for (int64_t i = 0; i < w->records && result != NULL; i++) {
        int64_t record = i % w->lanes * of_lane + i / w->lanes;
        for (int64_t k = 0; k < w->window; k++)
            to[i * w->window + k] = (float)w->tokens[first + record * w->step + k];
    }
    return result;
}

static sgm_dataset *make(const char *name, const sgm_tensor *tokens, windows w)
{
    int64_t count = sgm_tensor_shape(tokens)->dims[0];
    w.tokens = sgm_tensor_const_data(tokens);
    w.records = count > w.window ? (count - w.window - 1) / w.step + 1 : 0;
    w.records -= w.records % w.lanes;
    if (w.records == 0) {
        sgm_fail(SGM_ERROR_SHAPE,
                 "the text has %lld tokens; %lld window%s of %lld and what follows need %lld",
                 (long long)count, (long long)w.lanes, w.lanes == 1 ? "" : "s", (long long)w.window,
                 (long long)((w.lanes - 1) * w.step + w.window + 1));
        return NULL;
    }
    sgm_tensor *sections[] = {records_of(&w, 0), records_of(&w, 1)};
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
    windows w = {.window = options.window > 0 ? options.window : STANDARD_WINDOW,
                 .lanes = options.lanes > 0 ? options.lanes : 1};
    w.step = options.step > 0 ? options.step : w.window;
    if (options.window < 0 || options.step < 0 || options.lanes < 0 || w.window > MOST || w.step > MOST ||
        w.lanes > MOST) {
        sgm_fail(SGM_ERROR_ARGUMENT, "window, step and lanes are 1 to %d, not %lld, %lld and %lld", MOST,
                 (long long)options.window, (long long)options.step, (long long)options.lanes);
        return NULL;
    }
    sgm_tensor *tokens = sgm_tokenizer_encode(tokenizer, text, size);
    sgm_dataset *dataset = tokens != NULL ? make(name, tokens, w) : NULL;
    sgm_tensor_free(tokens);
    return dataset;
}
