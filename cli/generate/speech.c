/* What `sigma generate` says: texts of tokens, up to the text of --stop, printed as they come or collected.
 *
 * A token may be part of a character only, so bytes are written as they are. A network may have more tokens
 * than the tokenizer; those say nothing. */
#include "generate/generate.h"

#include <inttypes.h>
#include <stdio.h>

sgm_status speech_begin(speech *s, const generation *g, bool collects)
{
    *s = (speech){.g = g, .collects = collects};
    if (g->others != NULL)
        s->stream = sgm_pretrained_stream_create(g->others, .skip_special = true);
    return g->others == NULL || s->stream != NULL ? SGM_OK : sgm__last_failure();
}

static void write_out(speech *s, const char *text, size_t size)
{
    if (s->collects) {
        sgm__text_append_bytes(&s->said, text, size);
        return;
    }
    fwrite(text, 1, size, stdout);
    fflush(stdout);
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

/* Writes what is held but for what may be the beginning of --stop, or all before that text. */
static void write_held(speech *s)
{
    const char *stop = s->g->stop;
    const char *found = s->held.length > 0 ? memmem(s->held.data, s->held.length, stop, strlen(stop)) : NULL;
    size_t ready = found != NULL ? (size_t)(found - s->held.data) : s->held.length - overlap(&s->held, stop);
    s->stopped = found != NULL;
    if (ready == 0)
        return;
    write_out(s, s->held.data, ready);
    s->held.length -= ready;
    memmove(s->held.data, s->held.data + ready, s->held.length);
}

/* Writes a text, of which with --stop what may be its beginning waits for more. False: that text has come,
 * the output is closed, or there is no memory. */
static bool say(speech *s, const char *text, size_t size)
{
    if (s->g->stop == NULL) {
        write_out(s, text, size);
    } else {
        sgm__text_append_bytes(&s->held, text, size);
        write_held(s);
    }
    return !s->stopped && !s->held.failed && !s->said.failed && ferror(stdout) == 0;
}

bool speech_say(void *user, int64_t token)
{
    speech *s = user;
    const generation *g = s->g;
    if (s->stream != NULL) {
        const char *text = token != g->end ? sgm_pretrained_stream_next(s->stream, token) : NULL;
        return text != NULL && say(s, text, strlen(text));
    }
    if (g->tokenizer == NULL) {
        char number[32];
        int size = snprintf(number, sizeof number, " %" PRId64, token);
        return say(s, number, (size_t)size);
    }
    if (token >= sgm_tokenizer_vocabulary(g->tokenizer))
        return true;
    size_t size;
    char *bytes = sgm_tokenizer_decode(g->tokenizer, &token, 1, &size);
    bool goes_on = bytes != NULL && say(s, bytes, size);
    sgm_string_free(bytes);
    return goes_on;
}

void speech_end(speech *s)
{
    const char *rest = s->stream != NULL ? sgm_pretrained_stream_end(s->stream) : NULL;
    if (!s->stopped && rest != NULL)
        say(s, rest, strlen(rest));
    if (!s->stopped && s->held.length > 0)
        write_out(s, s->held.data, s->held.length);
}

void speech_free(speech *s)
{
    sgm_pretrained_stream_free(s->stream);
    sgm__text_free(&s->held);
    sgm__text_free(&s->said);
}
