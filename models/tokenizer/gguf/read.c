/* Tokenizers of files of GGUF: SentencePiece's pairs by their scores ("llama"), and byte-level pairs by their
 * order ("gpt2"). */
#include "tokenizer/gguf/tokens.h"
#include "tokenizer/text/utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KEY(name) "tokenizer.ggml." name

/* A tokenizer that is being read. */
typedef struct reading {
    const sgm__gguf *file;
    sgm_pretrained_tokenizer *tokenizer;
    size_t count;
    int32_t *types;  /* of the tokens: sgm__gguf_token */
    uint32_t *ranks; /* of SentencePiece's tokens: 0 is put together first */
    size_t pairs;
} reading;

/* --- tokens --- */

static sgm_status read_types(reading *r)
{
    sgm__gguf_list list;
    r->types = sgm__allocate_zero(r->count, sizeof *r->types);
    if (r->types == NULL)
        return SGM_ERROR_MEMORY;
    SGM__PASS(sgm__gguf_list_of(r->file, KEY("token_type"), SGM__GGUF_INT32, &list));
    if (list.at != NULL && list.count != r->count)
        return sgm__gguf_fail(r->file, KEY("token_type"), "has %llu elements for %zu tokens",
                              (unsigned long long)list.count, r->count);
    for (size_t i = 0; i < r->count; i++)
        r->types[i] = list.at != NULL ? sgm__gguf_next_int32(&list) : SGM__GGUF_NORMAL;
    return SGM_OK;
}

/* One that texts are cut at, before anything else is done to them. */
static sgm_status add_token(reading *r, const char *text, size_t size, uint32_t id)
{
    const bool special = r->types[id] != SGM__GGUF_USER_DEFINED;
    char *content = sgm__copy_text(text, size);
    const sgm__added_token token = {.content = content, .size = size, .id = id, .special = special};
    sgm_status status = content != NULL ? sgm__tokenizer_add_token(r->tokenizer, &token) : SGM_ERROR_MEMORY;
    free(content);
    return status;
}

/* Byte-level files have texts of numbers that the model has no token for, [PAD7]: those are left out. */
static sgm_status read_token(reading *r, const char *text, size_t size, uint32_t id, bool pieces)
{
    sgm__vocabulary *vocabulary = &r->tokenizer->model.vocabulary;
    const int32_t type = r->types[id];
    if (size == 0 || (!pieces && type == SGM__GGUF_UNUSED))
        return SGM_OK;
    if (sgm__vocabulary_find(vocabulary, text, size) != SGM__NONE ||
        sgm__vocabulary_find(&r->tokenizer->added.names, text, size) != SGM__NONE)
        return sgm__gguf_fail(r->file, KEY("tokens"), "has '%.*s' twice", (int)(size < 60 ? size : 60), text);
    if (type == SGM__GGUF_CONTROL || type == SGM__GGUF_UNKNOWN || type == SGM__GGUF_USER_DEFINED)
        SGM__PASS(add_token(r, text, size, id));
    return pieces || type == SGM__GGUF_NORMAL || type == SGM__GGUF_BYTE
               ? sgm__vocabulary_add(vocabulary, text, size, id)
               : SGM_OK;
}

static sgm_status read_tokens(reading *r, bool pieces)
{
    sgm__gguf_list list;
    const char *text;
    size_t size;
    SGM__PASS(sgm__gguf_list_of(r->file, KEY("tokens"), SGM__GGUF_TEXT, &list));
    if (list.count == 0)
        return sgm__gguf_fail(r->file, KEY("tokens"), "is missing; the file has no tokenizer");
    if (list.count > SGM__MOST_TOKENS)
        return sgm__gguf_fail(r->file, KEY("tokens"), "has %llu elements; at most %u are read",
                              (unsigned long long)list.count, SGM__MOST_TOKENS);
    r->count = (size_t)list.count;
    SGM__PASS(read_types(r));
    for (uint32_t id = 0; id < r->count; id++) {
        sgm__gguf_next_text(&list, &text, &size);
        SGM__PASS(read_token(r, text, size, id, pieces));
    }
    return SGM_OK;
}

/* The number of a token by its key; SGM__NONE: there is none. */
static sgm_status read_id(const reading *r, const char *key, uint32_t *id)
{
    int64_t number = -1;
    SGM__PASS(sgm__gguf_integer(r->file, key, &number));
    *id = SGM__NONE;
    if (number >= (int64_t)r->count)
        return sgm__gguf_fail(r->file, key, "is %lld, but there are %zu tokens", (long long)number, r->count);
    if (number >= 0)
        *id = (uint32_t)number;
    return SGM_OK;
}

/* --- what stands around a text --- */

static sgm_status add_part(sgm__template *template, uint32_t kind, uint32_t id, uint32_t segment)
{
    sgm__template_part part = {.id = id, .segment = segment};
    part.kind = kind == 0 ? SGM__TEXT_A : kind == 1 ? SGM__TEXT_B : SGM__SPECIAL;
    return sgm__template_add(template, part);
}

/* Each text with its tokens, begin A end begin B end. */
static sgm_status add_templates(reading *r, uint32_t begin, uint32_t end)
{
    sgm__template *templates[] = {&r->tokenizer->single, &r->tokenizer->pair};
    if (begin == SGM__NONE && end == SGM__NONE)
        return SGM_OK;
    for (uint32_t texts = 1; texts <= 2; texts++)
        for (uint32_t text = 0; text < texts; text++) {
            if (begin != SGM__NONE)
                SGM__PASS(add_part(templates[texts - 1], 2, begin, text));
            SGM__PASS(add_part(templates[texts - 1], text, 0, text));
            if (end != SGM__NONE)
                SGM__PASS(add_part(templates[texts - 1], 2, end, text));
        }
    return SGM_OK;
}

/* The first and the last token of a text, and how chats are written. */
static sgm_status read_ends(reading *r, bool begins)
{
    uint32_t ids[2];
    bool adds[2] = {begins, false};
    const char *names[2] = {"", ""}, *template = NULL;
    size_t size = 0;
    SGM__PASS(read_id(r, KEY("bos_token_id"), &ids[0]));
    SGM__PASS(read_id(r, KEY("eos_token_id"), &ids[1]));
    SGM__PASS(sgm__gguf_flag(r->file, KEY("add_bos_token"), &adds[0]));
    SGM__PASS(sgm__gguf_flag(r->file, KEY("add_eos_token"), &adds[1]));
    SGM__PASS(add_templates(r, adds[0] ? ids[0] : SGM__NONE, adds[1] ? ids[1] : SGM__NONE));
    for (size_t i = 0; i < 2; i++) {
        const char *text = ids[i] != SGM__NONE ? sgm__tokenizer_text(r->tokenizer, ids[i], &size) : NULL;
        names[i] = text != NULL ? text : "";
    }
    SGM__PASS(sgm__gguf_text(r->file, "tokenizer.chat_template", &template, &size));
    return sgm__chat_take(&r->tokenizer->chat, template, size, names[0], names[1]);
}

/* --- SentencePiece --- */

typedef struct scored {
    float score;
    uint32_t id;
} scored;

static int compare_scores(const void *a, const void *b)
{
    const float first = ((const scored *)a)->score, second = ((const scored *)b)->score;
    return first > second ? -1 : first < second;
}

/* Tokens of one score are equals, of which the leftmost one is put together first. */
static sgm_status rank_tokens(reading *r, sgm__gguf_list *scores)
{
    scored *sorted = sgm__allocate_zero(r->count, sizeof *sorted);
    sgm_status status = sorted != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    uint32_t rank = 0;
    for (uint32_t id = 0; status == SGM_OK && id < r->count; id++) {
        sorted[id] = (scored){sgm__gguf_next_float32(scores), id};
        if (!isfinite(sorted[id].score))
            status = sgm__gguf_fail(r->file, KEY("scores"), "has no number for token %u", id);
    }
    if (status == SGM_OK)
        qsort(sorted, r->count, sizeof *sorted, compare_scores);
    for (size_t i = 0; status == SGM_OK && i < r->count; i++) {
        rank += i > 0 && sorted[i].score != sorted[i - 1].score;
        r->ranks[sorted[i].id] = rank;
    }
    free(sorted);
    return status;
}

static sgm_status add_pair(void *user, uint32_t first, uint32_t second, uint32_t both)
{
    reading *r = user;
    sgm__entry *entry;
    if (r->pairs++ > 16 * r->count + 1024)
        return sgm__gguf_fail(r->file, KEY("tokens"),
                              "consist of each other in more ways than those of any model");
    entry = sgm__table_add(&r->tokenizer->model.bpe.merges, (uint64_t)first << 32 | second);
    if (entry == NULL)
        return SGM_ERROR_MEMORY;
    entry->first = r->ranks[both];
    entry->second = both;
    return SGM_OK;
}

static sgm_status read_pairs(reading *r)
{
    sgm__gguf_list scores;
    SGM__PASS(sgm__gguf_list_of(r->file, KEY("scores"), SGM__GGUF_FLOAT32, &scores));
    if (scores.count != r->count)
        return sgm__gguf_fail(r->file, KEY("scores"), "has %llu elements for %zu tokens",
                              (unsigned long long)scores.count, r->count);
    r->ranks = sgm__allocate_zero(r->count, sizeof *r->ranks);
    SGM__PASS(r->ranks != NULL ? rank_tokens(r, &scores) : SGM_ERROR_MEMORY);
    return sgm__gguf_pairs(&r->tokenizer->model.vocabulary, r->types, add_pair, r);
}

static sgm_status read_llama(reading *r)
{
    sgm__model *model = &r->tokenizer->model;
    bool before = true, squeezes = false;
    model->kind = SGM__BPE;
    model->byte_fallback = model->bpe.fuse_unknown = true;
    SGM__PASS(sgm__gguf_flag(r->file, KEY("add_space_prefix"), &before));
    SGM__PASS(sgm__gguf_flag(r->file, KEY("remove_extra_whitespaces"), &squeezes));
    if (squeezes)
        return sgm__gguf_fail(r->file, KEY("remove_extra_whitespaces"),
                              "is true; it is only read where it is false");
    SGM__PASS(read_tokens(r, true));
    SGM__PASS(read_id(r, KEY("unknown_token_id"), &model->unknown));
    SGM__PASS(read_pairs(r));
    SGM__PASS(sgm__gguf_add_spaces(r->tokenizer, before));
    return read_ends(r, true);
}

/* --- byte-level pairs --- */

/* "FIRST SECOND"; a first token that begins with a space is none of those that bytes become. */
static sgm_status read_merges(reading *r)
{
    sgm__gguf_list list;
    sgm__buffer joined = {0};
    sgm_status status;
    SGM__PASS(sgm__gguf_list_of(r->file, KEY("merges"), SGM__GGUF_TEXT, &list));
    status = list.at != NULL ? SGM_OK : sgm__gguf_fail(r->file, KEY("merges"), "is missing; 'gpt2' has some");
    for (uint64_t i = 0; status == SGM_OK && i < list.count; i++) {
        const char *text;
        size_t size;
        sgm__gguf_next_text(&list, &text, &size);
        const char *space = memchr(text, ' ', size);
        const size_t first = space != NULL ? (size_t)(space - text) : 0;
        if (first == 0 || first + 1 == size)
            status = sgm__gguf_fail(r->file, KEY("merges"),
                                    "has '%.*s', where two tokens with a space between are wanted",
                                    (int)(size < 60 ? size : 60), text);
        else
            status = sgm__bpe_add_merge(&r->tokenizer->model, &joined, (const char *[]){text, space + 1},
                                        (size_t[]){first, size - first - 1}, (uint32_t)i);
    }
    sgm__buffer_free(&joined);
    return status;
}

/* Whether a name is one of several with blanks between. */
static bool is_among(const char *names, const char *name, size_t size)
{
    for (const char *at = names; size > 0 && *at != '\0'; at += strcspn(at, " "), at += strspn(at, " "))
        if (strcspn(at, " ") == size && memcmp(at, name, size) == 0)
            return true;
    return false;
}

/* NULL and an error: the file does not say it, or says what is not known. */
static const sgm__gguf_splitting *find_splitting(const reading *r)
{
    const sgm__gguf_splitting *splitting;
    const char *name = NULL;
    size_t size = 0;
    if (sgm__gguf_text(r->file, KEY("pre"), &name, &size) != SGM_OK)
        return NULL;
    for (size_t i = 0; name != NULL && (splitting = sgm__gguf_splitting_at(i)) != NULL; i++)
        if (is_among(splitting->names, name, size))
            return splitting;
    if (name == NULL)
        sgm__gguf_fail(r->file, KEY("pre"),
                       "is missing, so it is not known how texts are split; 'gguf-new-metadata "
                       "--pre-tokenizer NAME' of the package gguf says it");
    else
        sgm__gguf_fail(r->file, KEY("pre"),
                       "is '%.*s', which is not known; these are: gpt-2, llama-bpe, qwen2, smollm, tekken",
                       (int)(size < 60 ? size : 60), name);
    return NULL;
}

static sgm_status read_gpt2(reading *r)
{
    sgm_pretrained_tokenizer *tokenizer = r->tokenizer;
    const sgm__gguf_splitting *splitting = find_splitting(r);
    if (splitting == NULL)
        return sgm_last_status();
    tokenizer->model.kind = SGM__BPE;
    tokenizer->model.bpe.ignore_merges = splitting->ignore_merges;
    SGM__PASS(read_tokens(r, false));
    SGM__PASS(read_merges(r));
    SGM__PASS(sgm__gguf_add_splitting(tokenizer, splitting));
    return read_ends(r, splitting->begins);
}

/* --- opening --- */

static sgm_status read_file(reading *r)
{
    const char *model = NULL;
    size_t size = 0;
    SGM__PASS(sgm__gguf_text(r->file, KEY("model"), &model, &size));
    if (model == NULL)
        return sgm__gguf_fail(r->file, KEY("model"), "is missing; the file has no tokenizer");
    if (size == 5 && memcmp(model, "llama", size) == 0)
        return read_llama(r);
    if (size == 4 && memcmp(model, "gpt2", size) == 0)
        return read_gpt2(r);
    return sgm__gguf_fail(r->file, KEY("model"), "is '%.*s', which is not known; these are: llama, gpt2",
                          (int)(size < 60 ? size : 60), model);
}

sgm_status sgm__read_gguf(sgm_pretrained_tokenizer *tokenizer, const char *path)
{
    sgm__gguf *file = sgm__gguf_open(path);
    reading r = {.file = file, .tokenizer = tokenizer};
    const sgm_status status = file != NULL ? read_file(&r) : sgm_last_status();
    free(r.types);
    free(r.ranks);
    sgm__gguf_close(file);
    return status;
}
