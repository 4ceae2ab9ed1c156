#include "tokenizer/decode.h"
#include "tokenizer/normalize.h"
#include "tokenizer/split.h"
#include "tokenizer/text/utf8.h"

#include <stdlib.h>
#include <string.h>

void sgm__decoders_free(sgm__decoders *decoders)
{
    for (size_t i = 0; i < decoders->count; i++) {
        sgm__pattern_free(&decoders->steps[i].pattern);
        free(decoders->steps[i].text);
    }
    free(decoders->steps);
    *decoders = (sgm__decoders){0};
}

void sgm__texts_free(sgm__texts *texts)
{
    sgm__buffer_free(&texts->text);
    free(texts->ends);
    *texts = (sgm__texts){0};
}

/* What was added to the text since the last end is a token. */
static sgm_status end_token(sgm__texts *texts)
{
    void *ends = texts->ends;
    SGM__PASS(sgm__array_reserve(&ends, &texts->room, texts->count + 1, sizeof *texts->ends));
    texts->ends = ends;
    texts->ends[texts->count++] = texts->text.size;
    return SGM_OK;
}

sgm_status sgm__texts_add(sgm__texts *texts, const char *text, size_t size)
{
    SGM__PASS(sgm__buffer_add(&texts->text, text, size));
    return end_token(texts);
}

static bool begins(const char *text, size_t size, const char *with, size_t with_size)
{
    return with_size > 0 && size >= with_size && memcmp(text, with, with_size) == 0;
}

/* Each `what` replaced. */
static sgm_status replace(const char *text, size_t size, const char *what, size_t what_size, const char *by,
                          sgm__buffer *out)
{
    for (size_t at = 0; at < size;) {
        if (begins(text + at, size - at, what, what_size)) {
            SGM__PASS(sgm__buffer_add(out, by, strlen(by)));
            at += what_size;
        } else {
            SGM__PASS(sgm__buffer_add(out, text + at++, 1));
        }
    }
    return SGM_OK;
}

/* --- steps that make one text of all --- */
/* The bytes that a token's characters stand for; one with a character that stands for none is taken as it is.
 */
static sgm_status add_bytes(const char *text, size_t size, sgm__buffer *out)
{
    const size_t before = out->size;
    SGM__PASS(sgm__buffer_reserve(out, size));
    for (size_t at = 0; at < size;) {
        const int byte = sgm__character_byte(sgm__utf8_next(text, &at));
        if (byte < 0) {
            out->size = before;
            return sgm__buffer_add(out, text, size);
        }
        out->data[out->size++] = (char)byte;
    }
    return SGM_OK;
}

static sgm_status decode_bytes(const sgm__texts *in, sgm__texts *out)
{
    sgm__buffer bytes = {0};
    sgm_status status = SGM_OK;
    for (size_t i = 0, start = 0; i < in->count && status == SGM_OK; start = in->ends[i++])
        status = add_bytes(in->text.data + start, in->ends[i] - start, &bytes);
    if (status == SGM_OK)
        status = sgm__buffer_reserve(&out->text, bytes.size * 3);
    if (status == SGM_OK)
        out->text.size += sgm__utf8_clean(bytes.data, bytes.size, out->text.data + out->text.size);
    sgm__buffer_free(&bytes);
    return status == SGM_OK ? end_token(out) : status;
}

static sgm_status fuse(const sgm__texts *in, sgm__texts *out)
{
    return sgm__texts_add(out, in->text.data, in->text.size);
}

/* --- bytes that have tokens of their own --- */
static int hexadecimal(char digit)
{
    return digit >= '0' && digit <= '9'   ? digit - '0'
           : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10
           : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                                          : -1;
}

static int byte_of(const char *text, size_t size)
{
    if (size != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>' || hexadecimal(text[3]) < 0 ||
        hexadecimal(text[4]) < 0)
        return -1;
    return hexadecimal(text[3]) * 16 + hexadecimal(text[4]);
}

/* A run of bytes is a text if it is valid, else U+FFFD for each. */
static sgm_status end_run(sgm__buffer *run, sgm__texts *out)
{
    const bool is_valid = sgm__utf8_is_valid(run->data, run->size);
    if (run->size > 0 && is_valid)
        SGM__PASS(sgm__texts_add(out, run->data, run->size));
    for (size_t i = 0; !is_valid && i < run->size; i++)
        SGM__PASS(sgm__texts_add(out, SGM__REPLACEMENT, strlen(SGM__REPLACEMENT)));
    run->size = 0;
    return SGM_OK;
}

static sgm_status decode_fallback(const sgm__texts *in, sgm__texts *out)
{
    sgm__buffer run = {0};
    sgm_status status = SGM_OK;
    for (size_t i = 0, start = 0; i < in->count && status == SGM_OK; start = in->ends[i++]) {
        const char *text = in->text.data + start;
        const size_t size = in->ends[i] - start;
        const char byte = (char)byte_of(text, size);
        if (byte_of(text, size) >= 0) {
            status = sgm__buffer_add(&run, &byte, 1);
            continue;
        }
        status = end_run(&run, out);
        if (status == SGM_OK)
            status = sgm__texts_add(out, text, size);
    }
    if (status == SGM_OK)
        status = end_run(&run, out);
    sgm__buffer_free(&run);
    return status;
}

/* --- steps for each token --- */
/* English as it is written: no space before punctuation and within contractions; one after the other. */
static sgm_status clean_up(sgm__buffer *text, size_t from)
{
    static const char *const changes[][2] = {
        {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
        {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        sgm__buffer changed = {0};
        const char *token = text->data + from;
        sgm_status status =
            replace(token, text->size - from, changes[i][0], strlen(changes[i][0]), changes[i][1], &changed);
        text->size = from; /* no change makes it longer */
        if (status == SGM_OK)
            status = sgm__buffer_add(text, changed.data, changed.size);
        sgm__buffer_free(&changed);
        SGM__PASS(status);
    }
    return SGM_OK;
}

static sgm_status decode_wordpiece(const sgm__decoder *step, const char *text, size_t size, bool first,
                                   sgm__buffer *out)
{
    const size_t before = out->size;
    if (!first && (step->size == 0 || begins(text, size, step->text, step->size))) {
        text += step->size;
        size -= step->size;
    } else if (!first) {
        SGM__PASS(sgm__buffer_add(out, " ", 1));
    }
    SGM__PASS(sgm__buffer_add(out, text, size));
    return step->flag ? clean_up(out, before) : SGM_OK;
}

static sgm_status decode_strip(const sgm__decoder *step, const char *text, size_t size, sgm__buffer *out)
{
    for (size_t i = 0; i < step->left && begins(text, size, step->text, step->size); i++) {
        text += step->size;
        size -= step->size;
    }
    for (size_t i = 0; i < step->right && size >= step->size &&
                       begins(text + size - step->size, step->size, step->text, step->size);
         i++)
        size -= step->size;
    return sgm__buffer_add(out, text, size);
}

static sgm_status decode_token(const sgm__decoder *step, sgm__matcher *matcher, const char *text, size_t size,
                               bool first, bool last, sgm__buffer *out)
{
    switch (step->kind) {
    case SGM__DECODE_WORDPIECE:
        return decode_wordpiece(step, text, size, first, out);
    case SGM__DECODE_METASPACE:
        return replace(text, size, step->text, step->size, first && !step->flag ? "" : " ", out);
    case SGM__DECODE_SUFFIX:
        return replace(text, size, step->text, step->size, last ? "" : " ", out);
    case SGM__DECODE_STRIP:
        return decode_strip(step, text, size, out);
    case SGM__DECODE_REPLACE:
        return sgm__replace(&step->pattern, matcher, text, size, step->text, step->size, out);
    case SGM__DECODE_BYTES:
    case SGM__DECODE_FALLBACK:
    case SGM__DECODE_FUSE:
        break;
    }
    return SGM_OK;
}

static sgm_status decode_tokens(const sgm__decoder *step, sgm__matcher *matcher, const sgm__texts *in,
                                sgm__texts *out)
{
    for (size_t i = 0, start = 0; i < in->count; start = in->ends[i++]) {
        SGM__PASS(decode_token(step, matcher, in->text.data + start, in->ends[i] - start, i == 0,
                               i + 1 == in->count, &out->text));
        SGM__PASS(end_token(out));
    }
    return SGM_OK;
}

sgm_status sgm__decode(const sgm__decoders *decoders, sgm__matcher *matcher, sgm__texts *texts)
{
    const size_t size = texts[0].text.size;
    for (size_t i = 0; i < decoders->count; i++) {
        const sgm__decoder *step = &decoders->steps[i];
        sgm__texts swap;
        texts[1].count = texts[1].text.size = 0;
        SGM__PASS(step->kind == SGM__DECODE_BYTES      ? decode_bytes(&texts[0], &texts[1])
                  : step->kind == SGM__DECODE_FUSE     ? fuse(&texts[0], &texts[1])
                  : step->kind == SGM__DECODE_FALLBACK ? decode_fallback(&texts[0], &texts[1])
                                                       : decode_tokens(step, matcher, &texts[0], &texts[1]));
        SGM__PASS(sgm__check_growth(size, texts[1].text.size));
        swap = texts[0];
        texts[0] = texts[1];
        texts[1] = swap;
    }
    return SGM_OK;
}
