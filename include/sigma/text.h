/* Texts as sequences of numbers: tokenizers, drawing the next token, what the outputs of CTC say. */
#ifndef SIGMA_TEXT_H
#define SIGMA_TEXT_H

#include <sigma/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- tokenizers --- */
/* A table of byte pairs: tokens 0 to 255 are the bytes, each further one is two tokens before it that are
 * often side by side (Gage, 1994; Sennrich et al., 2016: byte pair encoding). Any bytes become tokens and
 * come back as they were. Pairs never go across the border of a word, a number or a run of other characters;
 * a space belongs to the word behind it. Never changes once made, so any thread may use it. */
typedef struct sgm_tokenizer sgm_tokenizer;
/* A tokenizer of bytes alone: 256 tokens. */
SGM_API sgm_tokenizer *sgm_byte_tokenizer(void);
/* Learns pairs from `size` bytes of text until there are `vocabulary` tokens (at least 256, at most 2^20), or
 * no pair comes twice. The same text gives the same tokens. */
SGM_API sgm_tokenizer *sgm_tokenizer_learn(const void *text, size_t size, int64_t vocabulary);
/* Reads a tokenizer from its file: text, "sigma-bpe 1", then a line for each pair from token 256 on. */
SGM_API sgm_tokenizer *sgm_tokenizer_load(const char *path);
/* Writes the file that sgm_tokenizer_load reads, through a temporary one. */
SGM_API sgm_status sgm_tokenizer_save(const sgm_tokenizer *tokenizer, const char *path);
SGM_API void sgm_tokenizer_free(sgm_tokenizer *tokenizer);
/* How many tokens there are, from 0. */
SGM_API int64_t sgm_tokenizer_vocabulary(const sgm_tokenizer *tokenizer);
/* The tokens of `size` bytes: int64 (count), which the caller frees. */
SGM_API sgm_tensor *sgm_tokenizer_encode(const sgm_tokenizer *tokenizer, const void *text, size_t size);
/* The bytes of `count` tokens, and a 0 behind; `size` (NULL: not wanted) without that. Free with
 * sgm_string_free. A number that is no token is an error. */
SGM_API char *sgm_tokenizer_decode(const sgm_tokenizer *tokenizer, const int64_t *tokens, size_t count,
                                   size_t *size);

/* --- drawing --- */
/* How the next token is drawn. */
typedef struct sgm_sample_options {
    size_t struct_size;
    double temperature; /* probabilities to the power of 1 / temperature: below 1 sharper, above 1 flatter;
                         * default 1 */
    int64_t top_k;      /* only so many of the likeliest; default all (Fan et al., 2018) */
    double top_p;       /* only as many of the likeliest as have this share together; default all (Holtzman et
                         * al., 2019) */
    bool greedy;        /* always the likeliest */
    double min_p; /* only those at least this share as likely as the likeliest, both with the temperature;
                   * 0 to 1, default all (Nguyen et al., 2024) */
} SGM_BY_NAME sgm_sample_options;
/* Draws one of `count` numbers with these probabilities, 0 or more, that need not add up to 1. The same seed
 * and number of the draw give the same result. -1 and an error if nothing is probable, or an option is out of
 * bounds. */
SGM_API int64_t sgm_probabilities_sample(const double *probabilities, int64_t count, uint64_t seed,
                                         uint64_t draw, const sgm_sample_options *options);
/* Options for sgm_probabilities_sample: SGM_SAMPLING(.temperature = 0.8). */
#define SGM_SAMPLING(...) SGM_OPTIONS(sgm_sample_options, __VA_ARGS__)

/* --- CTC --- */
/* What the steps of a network with the cost `ctc` say: the likeliest class of each step, of equal neighbours
 * one, without the class `blank` (Graves et al., 2006, best path). `outputs`: (batch, time, classes);
 * `lengths`: how many steps of each example count, or NULL for all. (batch, time) of int64, which the caller
 * frees, -1 behind an example's last label; NULL on failure. */
SGM_API sgm_tensor *sgm_ctc_decode(const sgm_tensor *outputs, const int64_t *lengths, int64_t blank);

#ifdef __cplusplus
}
#endif
#endif
