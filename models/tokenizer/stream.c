/* Tokens become a text: all at once, or one by one. */
#include "options.h"
#include "tokenizer/text/utf8.h"
#include "tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

static bool is_special(const sgm_pretrained_tokenizer *tokenizer, int64_t id)
{
    size_t size;
    const sgm__added_token *token = NULL;
    if (id >= 0 && id < SGM__MOST_TOKENS &&
        sgm__vocabulary_token(&tokenizer->added.names, (uint32_t)id, &size))
        token = sgm__added_find(&tokenizer->added, (uint32_t)id);
    return token && token->special;
}

static sgm_status decode_texts(const sgm_pretrained_tokenizer *tokenizer, const int64_t *tokens, size_t count,
                               bool skip_special, sgm__texts *texts)
{
    sgm__matcher matcher = {0};
    sgm_status status = SGM_OK;

    for (size_t i = 0; i < count && status == SGM_OK; i++) {
        size_t size;
        const char *text = sgm__tokenizer_text(tokenizer, tokens[i], &size);
        if (!text || (skip_special && is_special(tokenizer, tokens[i])))
            continue;
        if (tokenizer->joins_by_space && texts[0].count > 0)
            status = sgm__texts_add(&texts[0], " ", 1);
        if (status == SGM_OK)
            status = sgm__texts_add(&texts[0], text, size);
    }
    if (status == SGM_OK)
        status = sgm__decode(&tokenizer->decoders, &matcher, texts);
    sgm__matcher_free(&matcher);
    return status;
}

char *sgm_pretrained_tokenizer_decode_with(const sgm_pretrained_tokenizer *tokenizer, const int64_t *tokens,
                                           size_t count, size_t *size,
                                           const sgm_pretrained_decode_options *options)
{
    sgm_pretrained_decode_options given;
    sgm__texts texts[2] = {{.count = 0}};
    char *text = NULL;

    if (sgm__take_options(&given, sizeof given, options) != SGM_OK)
        return NULL;
    if (!tokenizer || (!tokens && count > 0)) {
        sgm_fail(SGM_ERROR_ARGUMENT, "decoding needs a tokenizer, and tokens where their count is over 0");
        return NULL;
    }
    if (decode_texts(tokenizer, tokens, count, given.skip_special, texts) == SGM_OK) {
        text = sgm_string_create(texts[0].text.data, texts[0].text.size);
        if (text && size)
            *size = texts[0].text.size;
    }
    sgm__texts_free(&texts[0]);
    sgm__texts_free(&texts[1]);
    return text;
}

/* --- one by one --- */
/* A token's text may depend on the one before (a space, part of a character). So some tokens that have been
 * told are kept and decoded again; what is longer than their text was is new. */
struct sgm_pretrained_stream {
    const sgm_pretrained_tokenizer *tokenizer;
    bool skip_special;
    int64_t *tokens; /* kept ones, of which the first `told` have been told */
    size_t count, room, told;
    size_t told_size; /* bytes of their text */
    sgm__texts texts[2];
    sgm__buffer out; /* what the last call has told */
};

sgm_pretrained_stream *sgm_pretrained_stream_create_with(const sgm_pretrained_tokenizer *tokenizer,
                                                         const sgm_pretrained_decode_options *options)
{
    sgm_pretrained_decode_options given;
    sgm_pretrained_stream *stream;

    if (sgm__take_options(&given, sizeof given, options) != SGM_OK)
        return NULL;
    if (!tokenizer) {
        sgm_fail(SGM_ERROR_ARGUMENT, "a stream needs a tokenizer");
        return NULL;
    }
    if (!(stream = sgm__allocate_zero(1, sizeof *stream)))
        return NULL;
    stream->tokenizer = tokenizer;
    stream->skip_special = given.skip_special;
    return stream;
}

void sgm_pretrained_stream_free(sgm_pretrained_stream *stream)
{
    if (!stream)
        return;
    sgm__texts_free(&stream->texts[0]);
    sgm__texts_free(&stream->texts[1]);
    sgm__buffer_free(&stream->out);
    free(stream->tokens);
    free(stream);
}

/* The text of all kept tokens, with a 0 behind. */
static sgm_status decode_kept(sgm_pretrained_stream *stream)
{
    sgm__buffer *text = &stream->texts[0].text;
    for (int i = 0; i < 2; i++)
        stream->texts[i].count = stream->texts[i].text.size = 0;
    SGM__PASS(
        decode_texts(stream->tokenizer, stream->tokens, stream->count, stream->skip_special, stream->texts));
    SGM__PASS(sgm__buffer_reserve(text, 1));
    text->data[text->size] = 0;
    return SGM_OK;
}

static bool ends_unfinished(const sgm__buffer *text)
{
    const size_t size = strlen(SGM__REPLACEMENT);
    return text->size >= size && memcmp(text->data + text->size - size, SGM__REPLACEMENT, size) == 0;
}

/* Tells what is new. Tokens that were told before go, those of the new text are kept for the next one. */
static sgm_status tell(sgm_pretrained_stream *stream)
{
    const sgm__buffer *text = &stream->texts[0].text;
    size_t start = stream->told_size < text->size ? stream->told_size : text->size;

    while (start < text->size && ((unsigned char)text->data[start] & 0xc0) == 0x80)
        start++; /* what was told has become another text, of other characters */
    SGM__PASS(sgm__buffer_add(&stream->out, text->data + start, text->size - start + 1));
    memmove(stream->tokens, stream->tokens + stream->told,
            (stream->count - stream->told) * sizeof *stream->tokens);
    stream->count -= stream->told;
    stream->told = stream->count;
    SGM__PASS(decode_kept(stream));
    stream->told_size = text->size;
    return SGM_OK;
}

static sgm_status next(sgm_pretrained_stream *stream, int64_t token)
{
    void *tokens = stream->tokens;
    SGM__PASS(sgm__array_reserve(&tokens, &stream->room, stream->count + 1, sizeof *stream->tokens));
    stream->tokens = tokens;
    stream->tokens[stream->count++] = token;
    SGM__PASS(decode_kept(stream));
    if (stream->texts[0].text.size <= stream->told_size || ends_unfinished(&stream->texts[0].text))
        return sgm__buffer_add(&stream->out, "", 1);
    return tell(stream);
}

const char *sgm_pretrained_stream_next(sgm_pretrained_stream *stream, int64_t token)
{
    stream->out.size = 0;
    return next(stream, token) == SGM_OK ? stream->out.data : NULL;
}

const char *sgm_pretrained_stream_end(sgm_pretrained_stream *stream)
{
    sgm_status status = SGM_OK;
    stream->out.size = 0;
    if (stream->count == 0)
        status = sgm__buffer_add(&stream->out, "", 1);
    else if ((status = decode_kept(stream)) == SGM_OK)
        status = tell(stream);
    stream->count = stream->told = stream->told_size = 0;
    return status == SGM_OK ? stream->out.data : NULL;
}
