/* Predictions for texts: tokens of all, put in order of their number, so that texts of like lengths are
 * computed together, by a program for that many steps.
 *
 * Steps are rounded up and examples are powers of two, so that there are few programs, which the trainer
 * keeps. */
#include "options.h"

#include <sigma/models.h>
#include <sigma/tokenizer.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Texts that are computed at once, and their tokens: so many that weights are read seldom, and no more, so
 * that what is between two layers stays in the cache of a core. */
#define MOST_TOGETHER 32
#define MOST_TOKENS 128

/* A text's tokens, and where its prediction belongs. */
typedef struct text_tokens {
    sgm_tensor *tokens;   /* int64 (count) */
    sgm_tensor *segments; /* the same; NULL: the network takes none, or all are of the first */
    int64_t count;
    size_t place;
} text_tokens;

typedef struct work {
    sgm_trainer *trainer;
    sgm_pretrained_texts_options options;
    text_tokens *texts; /* the longest first, once they are sorted */
    size_t count;
    sgm_tensor *result; /* (count, ...), made by the first group */
} work;

/* The steps of the network's input; 0: it has none that is a sequence of numbers. */
static int64_t steps_of(sgm_trainer *trainer)
{
    char *notation = sgm_trainer_network(trainer);
    sgm_network *network = notation != NULL ? sgm_network_parse(notation) : NULL;
    sgm_content shape = {0};
    char *end = NULL;
    long long steps = 0;
    if (network != NULL && sgm_network_get_argument(network, 0, "shape", &shape) == SGM_OK &&
        shape.kind == SGM_KIND_TEXT)
        steps = strtoll(shape.as.text, &end, 10);
    if (end != NULL && *end != '\0')
        steps = 0;
    sgm_content_clear(&shape);
    sgm_network_free(network);
    sgm_string_free(notation);
    return steps;
}

static sgm_status read_options(work *w, const sgm_pretrained_texts_options *given)
{
    sgm_status status = sgm__take_options(&w->options, sizeof w->options, given);
    if (status != SGM_OK)
        return status;
    if (w->options.inputs == NULL)
        w->options.inputs = "inputs";
    if (w->options.lengths == NULL)
        w->options.lengths = "lengths";
    if (w->options.longest <= 0 && w->trainer != NULL)
        w->options.longest = steps_of(w->trainer);
    if (w->options.longest <= 0 && w->trainer != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "predicting texts needs .longest, how many tokens the network takes, as its first "
                        "layer is no input(STEPS)");
    return SGM_OK;
}

static int longer_first(const void *a, const void *b)
{
    const text_tokens *first = a, *second = b;
    if (first->count != second->count)
        return first->count < second->count ? 1 : -1;
    return first->place < second->place ? -1 : first->place > second->place;
}

/* Tokens that were given, which must be as those of a tokenizer; NULL and an error if they are not. */
static sgm_tensor *take_tokens(const work *w, size_t index)
{
    const sgm_tensor *given = w->options.tokens[index];
    const sgm_shape *shape = given != NULL ? sgm_tensor_shape(given) : NULL;
    if (shape != NULL && sgm_tensor_dtype(given) == SGM_INT64 && shape->rank == 1 && shape->dims[0] > 0 &&
        shape->dims[0] <= w->options.longest)
        return sgm_tensor_retain((sgm_tensor *)(uintptr_t)given);
    sgm_fail(SGM_ERROR_ARGUMENT, "the tokens of text %zu are to be int64 (count), 1 to %lld of them", index,
             (long long)w->options.longest);
    return NULL;
}

/* The tokens of a text, or of a pair of texts; the segments with them where the network takes some. */
static sgm_status encode_text(work *w, const sgm_pretrained_tokenizer *tokenizer, const char *content,
                              const char *pair, text_tokens *text)
{
    const sgm_pretrained_texts_options *options = &w->options;
    text->tokens = sgm_pretrained_tokenizer_encode(
        tokenizer, content, strlen(content), .longest = options->no_cut ? 0 : options->longest, .pair = pair,
        .pair_size = pair != NULL ? strlen(pair) : 0,
        .segments = options->segments != NULL ? &text->segments : NULL);
    if (text->tokens == NULL)
        return sgm_last_status();
    const int64_t count = sgm_tensor_shape(text->tokens)->dims[0];
    return count <= options->longest
               ? SGM_OK
               : sgm_fail(SGM_ERROR_ARGUMENT,
                          "it has %lld tokens, and the network reads %lld at most; shorten it",
                          (long long)count, (long long)options->longest);
}

static sgm_status encode(work *w, const sgm_pretrained_tokenizer *tokenizer, const char *const *texts)
{
    for (size_t i = 0; i < w->count; i++) {
        text_tokens *text = &w->texts[i];
        text->place = i;
        const char *pair = w->options.pairs != NULL ? w->options.pairs[i] : NULL;
        if (w->options.tokens != NULL) {
            if ((text->tokens = take_tokens(w, i)) == NULL)
                return sgm_last_status();
        } else if (encode_text(w, tokenizer, texts[i], pair, text) != SGM_OK)
            return sgm_fail(sgm_last_status(), "text %zu (from 0): %s", i, sgm_last_error());
        text->count = sgm_tensor_shape(text->tokens)->dims[0];
    }
    qsort(w->texts, w->count, sizeof *w->texts, longer_first);
    return SGM_OK;
}

/* To a 32nd of the next power of two: texts of up to 32 tokens have no others behind them, longer ones few.
 */
static int64_t round_steps(const work *w, int64_t count)
{
    int64_t unit = 1;
    while (32 * unit < count)
        unit *= 2;
    int64_t steps = (count + unit - 1) / unit * unit;
    return steps < w->options.longest ? steps : w->options.longest;
}

/* (count, steps) as the network takes numbers; those behind a text do not count, so that any number fits, and
 * 0 is one of every vocabulary. NULL: out of memory. */
static sgm_tensor *rows_of(const text_tokens *texts, int64_t count, int64_t steps, bool segments)
{
    sgm_shape shape = sgm_shape_of(count, steps);
    sgm_tensor *rows = sgm_tensor_create(SGM_FLOAT32, &shape);
    for (int64_t i = 0; rows != NULL && i < count; i++) {
        const sgm_tensor *own = segments ? texts[i].segments : texts[i].tokens;
        const int64_t *numbers = own != NULL ? sgm_tensor_const_data(own) : NULL;
        float *to = (float *)sgm_tensor_data(rows) + i * steps;
        for (int64_t k = 0; numbers != NULL && k < texts[i].count; k++)
            to[k] = (float)numbers[k];
    }
    return rows;
}

static sgm_status fill_group(const work *w, const text_tokens *texts, sgm_block *block)
{
    int64_t steps = round_steps(w, texts[0].count), count = block->count;
    sgm_shape line = sgm_shape_of(count);
    sgm_tensor *lengths = sgm_tensor_create(SGM_FLOAT32, &line);
    for (int64_t i = 0; lengths != NULL && i < count; i++)
        ((float *)sgm_tensor_data(lengths))[i] = (float)texts[i].count;
    /* The block takes each, also where there is none. */
    sgm_status status = sgm_block_add(block, w->options.inputs, rows_of(texts, count, steps, false));
    sgm_status other = sgm_block_add(block, w->options.lengths, lengths);
    if (status == SGM_OK && other == SGM_OK && w->options.segments != NULL)
        status = sgm_block_add(block, w->options.segments, rows_of(texts, count, steps, true));
    return status != SGM_OK ? status : other;
}

static sgm_status keep_rows(work *w, const text_tokens *texts, int64_t count, sgm_tensor *rows)
{
    sgm_shape shape = *sgm_tensor_shape(rows);
    shape.dims[0] = (int64_t)w->count;
    if (w->result == NULL)
        w->result = sgm_tensor_create(sgm_tensor_dtype(rows), &shape);
    if (w->result == NULL)
        return sgm_last_status();
    if (!sgm_shape_equal(sgm_tensor_shape(w->result), &shape))
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "texts of different lengths have predictions of different shapes: the network gives "
                        "something for each token, not for a text");
    size_t bytes =
        (size_t)(sgm_shape_elements(&shape) / shape.dims[0]) * sgm_dtype_size(sgm_tensor_dtype(rows));
    for (int64_t i = 0; i < count; i++)
        memcpy((char *)sgm_tensor_data(w->result) + texts[i].place * bytes,
               (const char *)sgm_tensor_const_data(rows) + (size_t)i * bytes, bytes);
    return SGM_OK;
}

static sgm_status predict_group(work *w, const text_tokens *texts, int64_t count)
{
    sgm_block *block = sgm_block_create(count);
    sgm_tensor *rows = NULL;
    sgm_status status = block != NULL ? fill_group(w, texts, block) : sgm_last_status();
    if (status == SGM_OK) {
        rows = sgm_trainer_predict_block(w->trainer, block, NULL);
        status = rows != NULL ? keep_rows(w, texts, count, rows) : sgm_last_status();
    }
    sgm_tensor_free(rows);
    sgm_block_free(block);
    return status;
}

static sgm_status predict_all(work *w)
{
    int64_t count;
    for (size_t first = 0; first < w->count; first += (size_t)count) {
        if (w->options.proceed != NULL && !w->options.proceed(w->options.user))
            return sgm_fail(SGM_ERROR_INTERRUPTED, "`proceed` has ended the prediction of texts");
        int64_t steps = round_steps(w, w->texts[first].count);
        count = MOST_TOGETHER;
        while (count > 1 && (count > (int64_t)(w->count - first) || count * steps > MOST_TOKENS))
            count /= 2;
        sgm_status status = predict_group(w, &w->texts[first], count);
        if (status != SGM_OK)
            return status;
    }
    return SGM_OK;
}

sgm_tensor *sgm_pretrained_predict_texts_with(sgm_trainer *trainer, const sgm_pretrained_tokenizer *tokenizer,
                                              const char *const *texts, size_t count,
                                              const sgm_pretrained_texts_options *options)
{
    work w = {.trainer = trainer, .count = count};
    sgm_status status = read_options(&w, options);
    if (status != SGM_OK)
        return NULL;
    if (trainer == NULL || count == 0 || (w.options.tokens == NULL && (tokenizer == NULL || texts == NULL))) {
        sgm_fail(SGM_ERROR_ARGUMENT,
                 "predicting texts needs a trainer, a tokenizer and texts, or .tokens in place of these");
        return NULL;
    }
    text_tokens *list = calloc(count, sizeof *list);
    if (list == NULL) {
        sgm_fail(SGM_ERROR_MEMORY, "no memory for the tokens of %zu texts", count);
        return NULL;
    }
    w.texts = list;
    status = encode(&w, tokenizer, texts);
    if (status == SGM_OK)
        status = predict_all(&w);
    for (size_t i = 0; i < count; i++) {
        sgm_tensor_free(list[i].tokens);
        sgm_tensor_free(list[i].segments);
    }
    free(list);
    if (status == SGM_OK)
        return w.result;
    sgm_tensor_free(w.result);
    return NULL;
}
