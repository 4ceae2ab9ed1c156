/* Tokens become a text, up to one of those to stop at, said as they come.
 *
 * A token may be part of a character only, so bytes are said as they are. A network may have more tokens than
 * the tokenizer; those say nothing. */
#include "texts/texts.h"

#include <inttypes.h>
#include <stdio.h>

sgm_status speech_begin(speech *s)
{
    if (s->codec->others != NULL)
        s->stream = sgm_pretrained_stream_create(s->codec->others, .skip_special = true);
    return s->codec->others == NULL || s->stream != NULL ? SGM_OK : sgm__last_failure();
}

/* How much of the end of a text may be the beginning of `stop`. */
static size_t overlap(const sgm__text *text, const char *stop)
{
    size_t length = strlen(stop) - 1;
    length = length < text->length ? length : text->length;
    while (length > 0 && memcmp(text->data + text->length - length, stop, length) != 0)
        length--;
    return length;
}

/* How much of what is held can be said: up to the first text to stop at, else all but what may be the
 * beginning of one. */
static size_t ready(speech *s)
{
    const sgm__text *held = &s->held;
    size_t end = held->length, waits = 0;
    for (size_t i = 0; held->length > 0 && i < s->stop_count; i++) {
        const char *stop = s->stops[i], *found = memmem(held->data, held->length, stop, strlen(stop));
        size_t part = overlap(held, stop), before = found != NULL ? (size_t)(found - held->data) : end;
        s->stopped = s->stopped || found != NULL;
        end = before < end ? before : end;
        waits = part > waits ? part : waits;
    }
    return s->stopped ? end : end - waits;
}

/* Says a text, of which what may be the beginning of one to stop at waits for more. False: it has ended. */
static bool say(speech *s, const char *text, size_t size)
{
    if (s->stop_count == 0)
        return s->say(s->user, text, size);
    sgm__text_append_bytes(&s->held, text, size);
    size_t part = ready(s);
    bool goes_on = s->say(s->user, part > 0 ? s->held.data : "", part);
    if (part > 0) {
        s->held.length -= part;
        memmove(s->held.data, s->held.data + part, s->held.length);
    }
    s->has_ended = s->stopped;
    if (s->held.failed)
        s->status = SGM_ERROR_MEMORY;
    return goes_on && !s->stopped && !s->held.failed;
}

/* Says a text that a token became; NULL: it failed. */
static bool say_decoded(speech *s, const char *text, size_t size)
{
    if (text == NULL)
        s->status = sgm__last_failure();
    return text != NULL && say(s, text, size);
}

static bool is_end(const text_codec *codec, int64_t token)
{
    for (size_t i = 0; i < codec->end_count; i++)
        if (codec->ends[i] == token)
            return true;
    return false;
}

bool speech_take(void *user, int64_t token)
{
    speech *s = user;
    const text_codec *codec = s->codec;
    s->drawn++;
    if (s->stream != NULL) {
        s->has_ended = is_end(codec, token);
        if (s->has_ended)
            return false;
        const char *text = sgm_pretrained_stream_next(s->stream, token);
        return say_decoded(s, text, text != NULL ? strlen(text) : 0);
    }
    if (codec->tokenizer == NULL) {
        char number[32];
        int size = snprintf(number, sizeof number, " %" PRId64, token);
        return say(s, number, (size_t)size);
    }
    if (token >= sgm_tokenizer_vocabulary(codec->tokenizer))
        return say(s, "", 0);
    size_t size;
    char *bytes = sgm_tokenizer_decode(codec->tokenizer, &token, 1, &size);
    bool goes_on = say_decoded(s, bytes, size);
    sgm_string_free(bytes);
    return goes_on;
}

sgm_status speech_end(speech *s)
{
    const char *rest = s->stream != NULL ? sgm_pretrained_stream_end(s->stream) : NULL;
    if (!s->stopped && rest != NULL && *rest != '\0')
        say(s, rest, strlen(rest));
    if (!s->stopped && s->held.length > 0)
        s->say(s->user, s->held.data, s->held.length);
    return s->status;
}

void speech_free(speech *s)
{
    sgm_pretrained_stream_free(s->stream);
    sgm__text_free(&s->held);
}
