/* Tokenizers of models of others: the same tokens as the library `tokenizers` makes.
 *
 *     sgm_pretrained_tokenizer *tokenizer = sgm_pretrained_tokenizer_open("downloads/gpt2");
 *     sgm_tensor *tokens = sgm_pretrained_tokenizer_encode(tokenizer, text, strlen(text));
 *     ...
 *     char *answer = sgm_pretrained_tokenizer_decode(tokenizer, ids, count, NULL, .skip_special = true);
 *
 * This header is of the library sigma_models. (sgm_tokenizer, in <sigma/text.h>, is the one that learns from
 * your own text.) It knows tokenizer.json with byte pair encoding (of bytes, or of characters with bytes for
 * what is missing), WordPiece and unigram models; vocab.json beside merges.txt, as GPT-2 has them;
 * vocab.txt, as BERT has it; and files of GGUF. What a file asks for and is not known is an error that names
 * it: tokens are never silently others.
 *
 * A tokenizer does not change once it is open: any number of threads may use it at once. Texts are UTF-8;
 * bytes that are not become U+FFFD, one for the longest beginning of a character, as Python's
 * errors="replace" makes it.
 */
#ifndef SIGMA_TOKENIZER_H
#define SIGMA_TOKENIZER_H

#include <sigma/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sgm_pretrained_tokenizer sgm_pretrained_tokenizer;

/* Opens tokenizer.json, vocab.json (merges.txt lies beside it), vocab.txt or FILE.gguf, or a folder with one
 * of them, taken in this order, where the last is tokenizer.gguf; of a run's folder those in its model/. A
 * tokenizer_config.json beside it says how chats are written (if there is no chat_template.jinja), and
 * whether vocab.txt means small letters. NULL and an error that names the file, the place in it and what is
 * wrong. */
SGM_API sgm_pretrained_tokenizer *sgm_pretrained_tokenizer_open(const char *path);
SGM_API void sgm_pretrained_tokenizer_free(sgm_pretrained_tokenizer *tokenizer);

/* Which model it is: "byte pairs", "WordPiece", "unigram"; the string is constant. */
SGM_API const char *sgm_pretrained_tokenizer_kind(const sgm_pretrained_tokenizer *tokenizer);
/* One more than the largest number of a token; there may be numbers below it that no token has. */
SGM_API int64_t sgm_pretrained_tokenizer_count(const sgm_pretrained_tokenizer *tokenizer);
/* The number of a token, written as the files have it ("\u0120the"); -1: there is none. */
SGM_API int64_t sgm_pretrained_tokenizer_id(const sgm_pretrained_tokenizer *tokenizer, const char *token);
/* A token as the files have it, as long as the tokenizer is open; NULL: no token has this number. */
SGM_API const char *sgm_pretrained_tokenizer_token(const sgm_pretrained_tokenizer *tokenizer, int64_t id);

/* The token that ends a text, and in a chat an answer: "eos_token" of tokenizer_config.json, else the first
 * "eos_token_id" of generation_config.json, else of config.json. -1: none is named. */
SGM_API int64_t sgm_pretrained_tokenizer_end(const sgm_pretrained_tokenizer *tokenizer);
/* All tokens with which a text ends, as long as it is open: that one first, then all of "eos_token_id". */
SGM_API const int64_t *sgm_pretrained_tokenizer_ends(const sgm_pretrained_tokenizer *tokenizer,
                                                     size_t *count);

typedef struct sgm_pretrained_encode_options {
    size_t struct_size;
    const char *pair; /* a second text, of `pair_size` bytes, as BERT takes questions and answers */
    size_t pair_size; /* bytes of `pair` */
    bool no_special;  /* without the tokens that the model wants around a text ([CLS], <s>) */
    int64_t longest;  /* tokens at most, special ones included: text is cut at its end, of a pair the longer
                       * one first; default: no limit */
    sgm_tensor **segments; /* gets int64 (count): which of the two texts each token is of, as BERT numbers
                            * them; the caller frees it. NULL: not wanted */
} SGM_BY_NAME sgm_pretrained_encode_options;
/* The tokens of `size` bytes: int64 (count), which the caller frees. NULL on failure. */
#define sgm_pretrained_tokenizer_encode(...)                                                                 \
    SGM_WITH_OPTIONS_3(sgm_pretrained_tokenizer_encode_with, sgm_pretrained_encode_options, __VA_ARGS__)
SGM_API sgm_tensor *sgm_pretrained_tokenizer_encode_with(const sgm_pretrained_tokenizer *tokenizer,
                                                         const void *text, size_t size,
                                                         const sgm_pretrained_encode_options *options);

typedef struct sgm_pretrained_decode_options {
    size_t struct_size;
    bool skip_special; /* without special tokens, such as <s> */
} SGM_BY_NAME sgm_pretrained_decode_options;
/* The text of `count` tokens, and a 0 behind; `size` (NULL: not wanted) without that. Numbers that no token
 * has give no text. Free with sgm_string_free. NULL: out of memory. */
#define sgm_pretrained_tokenizer_decode(...)                                                                 \
    SGM_WITH_OPTIONS_4(sgm_pretrained_tokenizer_decode_with, sgm_pretrained_decode_options, __VA_ARGS__)
SGM_API char *sgm_pretrained_tokenizer_decode_with(const sgm_pretrained_tokenizer *tokenizer,
                                                   const int64_t *tokens, size_t count, size_t *size,
                                                   const sgm_pretrained_decode_options *options);

/* --- decoding while tokens come --- */
/* What turns tokens into text one by one; used by one thread at a time, no longer than its tokenizer. */
typedef struct sgm_pretrained_stream sgm_pretrained_stream;
#define sgm_pretrained_stream_create(...)                                                                    \
    SGM_WITH_OPTIONS(sgm_pretrained_stream_create_with, sgm_pretrained_decode_options, __VA_ARGS__)
SGM_API sgm_pretrained_stream *
sgm_pretrained_stream_create_with(const sgm_pretrained_tokenizer *tokenizer,
                                  const sgm_pretrained_decode_options *options);
SGM_API void sgm_pretrained_stream_free(sgm_pretrained_stream *stream);
/* The text that one more token makes certain: whole characters, "" while one is not complete. It is valid
 * until the next call. NULL: out of memory. */
SGM_API const char *sgm_pretrained_stream_next(sgm_pretrained_stream *stream, int64_t token);
/* What is left at the end, with U+FFFD for a character that was never completed; then begins anew. */
SGM_API const char *sgm_pretrained_stream_end(sgm_pretrained_stream *stream);

/* --- chats --- */
/* One message of a chat. */
typedef struct sgm_chat_message {
    const char *role;    /* "system", "user", "assistant" */
    const char *content; /* what was said */
} sgm_chat_message;
/* The chat as the model was taught to read it, ready to be encoded with .no_special; `answer`: with the
 * beginning of an answer behind it. Templates are programs in their own language, which is not run: the one
 * in tokenizer_config.json or chat_template.jinja must be, as a whole, one that is known, else this is an
 * error: write the text as the model wants it, and encode that with .no_special then. That of Llama 3.2 has
 * the day in it, which is that of the system's clock where the program runs. Messages are not escaped: one
 * with "<|im_end|>" in it ends there. Free with sgm_string_free. */
SGM_API char *sgm_pretrained_tokenizer_chat(const sgm_pretrained_tokenizer *tokenizer,
                                            const sgm_chat_message *messages, size_t count, bool answer);
/* How it writes chats: "chatml" (SmolLM, Qwen2, Qwen2.5), "qwen3", "zephyr" (Zephyr, TinyLlama), "llama-3",
 * "llama-3.1", "llama-3.2", "mistral" (0.2); NULL: its template is none of these, or it has none. */
SGM_API const char *sgm_pretrained_tokenizer_chat_family(const sgm_pretrained_tokenizer *tokenizer);
/* Whether its files have a template, known or not. */
SGM_API bool sgm_pretrained_tokenizer_has_template(const sgm_pretrained_tokenizer *tokenizer);

#ifdef __cplusplus
}
#endif
#endif
