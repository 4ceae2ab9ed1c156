/* The struct behind sgm_pretrained_tokenizer, and what its files share.
 *
 * A text goes through these, in this order: added tokens are cut out (added.h), the rest is normalised
 * (normalize.h), cut again at tokens that are looked for in normalised text, split into pieces (split.h),
 * which become tokens (model.h); a template puts special tokens around them. Decoders (decode.h) go the way
 * back. Each is a table that a reader in read/ fills. */
#ifndef SIGMA_MODELS_TOKENIZER_H
#define SIGMA_MODELS_TOKENIZER_H

#include "tokenizer/added.h"
#include "tokenizer/decode.h"
#include "tokenizer/model.h"
#include "tokenizer/normalize.h"
#include "tokenizer/split.h"

#include <sigma/tokenizer.h>
#include <time.h>

/* A part of a template: a text, or a special token. */
typedef struct sgm__template_part {
    enum { SGM__TEXT_A, SGM__TEXT_B, SGM__SPECIAL } kind;
    uint32_t id;      /* of the special token */
    uint32_t segment; /* which text its tokens count to */
} sgm__template_part;

#define SGM__MOST_ENDS 64

typedef struct sgm__template {
    sgm__template_part *parts;
    size_t count, room;
} sgm__template;

struct sgm_pretrained_tokenizer {
    sgm__added added;
    sgm__normalizers normalizers;
    sgm__splitters splitters;
    sgm__model model;
    sgm__template single, pair; /* with each text once; empty: the text alone, or both */
    sgm__decoders decoders;
    bool joins_by_space; /* there is no decoder: texts of tokens are joined by spaces */
    size_t count;        /* one more than the largest number of a token */
    struct sgm__chat {
        const struct sgm__family *family; /* NULL: none */
        char *begin, *end;                /* tokens at the begin and end of a text; "": none */
        char *template;                   /* as the files have it, of `template_size` bytes; NULL: none */
        size_t template_size;
        const char *problem; /* why there is no family */
    } chat;
    struct sgm__ends {
        int64_t ids[SGM__MOST_ENDS]; /* tokens that end a text, first that of `chat` */
        size_t count;
    } ends;
};

/* What every reader does at the end: tables that are made of others, added tokens that are looked for,
 * limits. */
sgm_status sgm__tokenizer_complete(sgm_pretrained_tokenizer *tokenizer);
/* Adds an added token; `content` is copied. */
sgm_status sgm__tokenizer_add_token(sgm_pretrained_tokenizer *tokenizer, const sgm__added_token *token);
/* Adds a part to a template. */
sgm_status sgm__template_add(sgm__template *template, sgm__template_part part);
/* The text of a token, of whatever kind; NULL: there is none. */
const char *sgm__tokenizer_text(const sgm_pretrained_tokenizer *tokenizer, int64_t id, size_t *size);
/* The whole of a file, with a 0 behind, at most 512 MB. */
sgm_status sgm__read_file(const char *path, sgm__buffer *out);

/* Steps that stand for what GPT-2's and BERT's files do not say, and tokenizer.json says by one word. */
sgm_status sgm__add_byte_splitters(sgm__splitters *splitters, bool space_before, bool by_words);
sgm_status sgm__add_bert_splitters(sgm__splitters *splitters);
sgm_status sgm__add_bert_normalizers(sgm__normalizers *normalizers, bool clean, bool ideographs, bool accents,
                                     bool lowercase);
/* Room for one more step, all zero; NULL: out of memory. */
sgm__normalizer *sgm__new_normalizer(sgm__normalizers *normalizers, sgm__normalizer_kind kind);
sgm__splitter *sgm__new_splitter(sgm__splitters *splitters, sgm__splitter_kind kind);
sgm__decoder *sgm__new_decoder(sgm__decoders *decoders, sgm__decoder_kind kind);

/* Readers of files; errors name the file and the place in it. */
sgm_status sgm__read_tokenizer_json(sgm_pretrained_tokenizer *tokenizer, const char *path);
sgm_status sgm__read_gpt2_files(sgm_pretrained_tokenizer *tokenizer, const char *vocabulary,
                                const char *merges);
sgm_status sgm__read_bert_file(sgm_pretrained_tokenizer *tokenizer, const char *path, const char *config);
/* Also how chats are written. */
sgm_status sgm__read_gguf(sgm_pretrained_tokenizer *tokenizer, const char *path);
/* Takes the family of chats by its template, of `size` bytes (NULL: there is none), and the tokens at the
 * ends of a text. */
sgm_status sgm__chat_take(struct sgm__chat *chat, const char *template, size_t size, const char *begin,
                          const char *end);
/* Takes the family of chats, and what it writes, from tokenizer_config.json and chat_template.jinja; there
 * may be no such files. */
sgm_status sgm__read_chat(sgm_pretrained_tokenizer *tokenizer, const char *config, const char *template);
/* The first `shown` messages as they are written at the time `now` within the whole chat, whose later
 * messages may change what earlier ones look like; otherwise sgm_pretrained_tokenizer_chat. */
char *sgm__chat_beginning(const sgm_pretrained_tokenizer *tokenizer, const sgm_chat_message *messages,
                          size_t count, time_t now, size_t shown, bool answer);
/* Takes the token that ends a text from what was read about chats. */
void sgm__take_end(sgm_pretrained_tokenizer *tokenizer);
/* The same, and "eos_token_id" of generation_config.json, or of config.json if it has none; there may be no
 * such files. Of a tokenizer that names no end the first of these is it. */
sgm_status sgm__read_ends(sgm_pretrained_tokenizer *tokenizer, const char *generation, const char *config);

#endif
