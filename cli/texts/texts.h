/* Texts that a trained network continues, for `sigma generate` and `sigma serve --openai`: which tokenizer is
 * its own and how chats are written (codec.c), what is said with tokens and where it ends (speech.c), which
 * characters bytes are (characters.c), what it says while it is trained (sample.c), and which models continue
 * none (purpose.c). Texts that an encoder predicts for `sigma serve` are in served.c. */
#ifndef SGM_CLI_TEXTS_TEXTS_H
#define SGM_CLI_TEXTS_TEXTS_H

#include "config/saved.h"

#include <sigma/tokenizer.h>

/* --- codec.c --- */
/* How texts become tokens of a network, and tokens texts. Of the first two one is there; none: tokens are
 * numbers. */
typedef struct text_codec {
    sgm_tokenizer *tokenizer;         /* of 'sigma tokenize', or bytes */
    sgm_pretrained_tokenizer *others; /* of a model of others */
    const int64_t *ends;              /* its tokens that end a text, `end_count` of them */
    size_t end_count;
} text_codec;
/* Opens the tokenizer at `path`; if that is NULL, the one of the run's training data, else that of the model
 * of others that it began with, else bytes. Needs saved_describe only. On failure it may be closed as well.
 */
sgm_status text_codec_open(text_codec *codec, const saved *s, const char *path);
/* Opens that of a training's data, else that of the model which it begins with, else bytes. */
sgm_status text_codec_open_config(text_codec *codec, const config *c);
void text_codec_close(text_codec *codec);
/* The tokens of a text; a new tensor, int64 (count). NULL and an error on failure, as below. */
sgm_tensor *text_codec_encode(const text_codec *codec, const char *text);
/* Those of a chat up to the beginning of the answer. */
sgm_tensor *text_codec_encode_chat(const text_codec *codec, const sgm_chat_message *messages, size_t count);

/* --- purpose.c --- */
/* What the model of others at `path`, or that of the run there, is for: "makes vectors of texts". NULL: it is
 * none, or not known. */
const char *purpose_of(const char *path);
/* Whether it may be to continue texts. */
bool purpose_is_to_continue(const char *purpose);
/* Whether a network takes numbers of tokens; true also for a notation that cannot be read. */
bool network_takes_tokens(const char *notation);

/* --- characters.c --- */
/* Appends to `whole` the characters of `waiting` and of more bytes; the beginning of one that may be
 * completed waits. What is no UTF-8, one for the longest beginning of a character, and the character 0 become
 * U+FFFD; with `is_end` nothing waits. */
void take_characters(sgm__text *waiting, const char *bytes, size_t size, bool is_end, sgm__text *whole);

/* --- speech.c --- */
/* What is said of one text. The first members are borrowed and set before speech_begin, the others zero. */
typedef struct speech {
    const text_codec *codec;
    const char *const *stops; /* texts before which it ends, none of them empty ... */
    size_t stop_count;        /* ... and how many */
    /* Gets each part of the text, which may end within a character if the tokenizer is no model's of others;
     * called for each token, with a size of 0 where nothing is certain yet. False ends the text. */
    bool (*say)(void *user, const char *text, size_t size);
    void *user;
    int64_t drawn;                 /* tokens */
    bool has_ended;                /* with the token of an end, or before a text of `stops` */
    sgm_pretrained_stream *stream; /* what turns tokens of a model of others into text */
    sgm__text held;                /* what may be the beginning of a text of `stops` */
    bool stopped;                  /* such a text came */
    sgm_status status;             /* a failure, which ends the text */
} speech;
sgm_status speech_begin(speech *s);
/* The generator's callback for each token; `user` is the speech. False ends the text: at its last token, at a
 * text of `stops`, after a failure, or as `say` wants. */
bool speech_take(void *user, int64_t token);
/* Says what was held back and comes after all. A failure: not all tokens became text. */
sgm_status speech_end(speech *s);
void speech_free(speech *s);

#endif
