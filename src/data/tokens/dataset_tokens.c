/* Makes a dataset of a text's tokens: windows as inputs, and the same windows one token on as targets.
 *
 * sgm_token_dataset is called by programs and by the command (cli/config/experiment.c) to train networks
 * that predict the next token. The tokens come from a tokenizer (tokenizer.c); the windows are kept in memory
 * (sgm_dataset_create_from), as float32, which holds every token up to 2^20 exactly. Both fields are
 * (examples, window). Texts that are too large for memory can be read in windows of characters instead
 * (read/reader.c).
 */
#include "base/base.h"
#include <sigma/data.h>

#define DEFAULT_WINDOW 64
#define MAXIMUM (1 << 24) /* of each option; keeps all products below far from overflow */

/* Window e begins at token e * step. The windows are shared out over `streams` parts of the text, of examples
 * / streams windows each. */
typedef struct windows {
    const int64_t *tokens;
    int64_t examples, window, step, streams; /* examples: a multiple of the streams */
} windows;

/* The windows as a tensor (examples, window), each shifted by `first` tokens: 0 gives inputs, 1 targets.
 * Example i is window i / streams of stream i mod streams; so a minibatch of `streams` examples has the next
 * window of each stream, and a recurrent network that keeps its state goes on where it stopped in each. */
static sgm_tensor *examples_of(const windows *w, int64_t first)
{
    sgm_shape shape = sgm_shape_of(w->examples, w->window);
    sgm_tensor *result = sgm_tensor_create(SGM_FLOAT32, &shape);
    float *to = result != NULL ? sgm_tensor_data(result) : NULL;
    int64_t of_stream = w->examples / w->streams;
    for (int64_t i = 0; i < w->examples && result != NULL; i++) {
        int64_t example = i % w->streams * of_stream + i / w->streams;
        for (int64_t k = 0; k < w->window; k++)
            to[i * w->window + k] = (float)w->tokens[first + example * w->step + k];
    }
    return result;
}

/* The last window needs one token behind it as its last target. Windows that would make one stream longer
 * than another are left out. */
static sgm_dataset *make(const char *name, const sgm_tensor *tokens, windows w)
{
    int64_t count = sgm_tensor_shape(tokens)->dims[0];
    w.tokens = sgm_tensor_const_data(tokens);
    w.examples = count > w.window ? (count - w.window - 1) / w.step + 1 : 0;
    w.examples -= w.examples % w.streams;
    if (w.examples == 0) {
        sgm_fail(SGM_ERROR_SHAPE,
                 "the text has %lld tokens; %lld window%s of %lld and what follows need %lld",
                 (long long)count, (long long)w.streams, w.streams == 1 ? "" : "s", (long long)w.window,
                 (long long)((w.streams - 1) * w.step + w.window + 1));
        return NULL;
    }
    sgm_tensor *fields[] = {examples_of(&w, 0), examples_of(&w, 1)};
    sgm_dataset *dataset =
        fields[0] != NULL && fields[1] != NULL
            ? sgm_dataset_create_from(name, (const char *const[]){"inputs", "targets"}, fields, 2)
            : NULL;
    sgm_tensor_free(fields[0]);
    sgm_tensor_free(fields[1]);
    return dataset;
}

sgm_dataset *sgm_token_dataset(const char *name, const sgm_tokenizer *tokenizer, const void *text,
                               size_t size, const sgm_token_options *given)
{
    sgm_token_options options;
    if (sgm__options_read(&options, sizeof options, given, "sgm_token_dataset") != SGM_OK)
        return NULL;
    windows w = {.window = options.window > 0 ? options.window : DEFAULT_WINDOW,
                 .streams = options.streams > 0 ? options.streams : 1};
    w.step = options.step > 0 ? options.step : w.window;
    if (options.window < 0 || options.step < 0 || options.streams < 0 || w.window > MAXIMUM ||
        w.step > MAXIMUM || w.streams > MAXIMUM) {
        sgm_fail(SGM_ERROR_ARGUMENT, "window, step and streams are 1 to %d, not %lld, %lld and %lld", MAXIMUM,
                 (long long)options.window, (long long)options.step, (long long)options.streams);
        return NULL;
    }
    sgm_tensor *tokens = sgm_tokenizer_encode(tokenizer, text, size);
    sgm_dataset *dataset = tokens != NULL ? make(name, tokens, w) : NULL;
    sgm_tensor_free(tokens);
    return dataset;
}
