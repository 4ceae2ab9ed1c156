/* A tokenizer of a folder as metadata of a file of GGUF. What such a file cannot say, so that llama.cpp would
 * make other tokens, is an error. */
#include "text.h"
#include "tokenizer/gguf/tokens.h"

#include <stdlib.h>
#include <string.h>

#define KEY(name) "tokenizer.ggml." name

/* A tokenizer that is being written. */
typedef struct writing {
    sgm__gguf_draft *draft;
    const char *folder;
    const json_t *config;
    sgm_pretrained_tokenizer *tokenizer;
    uint32_t count;      /* of the tokens that the model has vectors for */
    uint32_t begin, end; /* what stands around a text; SGM__NONE: nothing */
    int32_t *types;
    struct ranks {
        uint32_t lowest, highest, id;
    } * ranks; /* of the pairs that a token is made of */
    size_t pairs;
} writing;

static sgm_status fail(const writing *w, const char *why)
{
    return sgm_fail(
        SGM_ERROR_UNSUPPORTED,
        "the tokenizer of '%s' cannot be written into a file of GGUF, where llama.cpp would make other "
        "tokens: %s; 'sigma export --hf' writes the model with its tokenizer as it is",
        w->folder, why);
}

/* --- steps --- */

/* A text with whatever splitters tell apart: letters of both cases, digits, marks, spaces, ends of lines. */
static const char probe[] =
    "The quick  brown   Fox's DON'T we'Ll 1 22 333 4444 55555 x1y2\t\ttabs \n\n lines\r\n \r\n a.b,c;d!?/// "
    "((x)) "
    "e\u0301a\u0300 \u00e9t\u00e9 \ufb01n \u1e9b\u0323 \u4e2d\u6587\u5206 \ud55c\uad6d \u0430\u0411\u0412 "
    "\u0663\u0664 \u2167 \U0001f600\U0001f469\u200d\U0001f4bb \u3000\u00a0x camelCaseWORDSand \u01c5o "
    "$1,234.50  ";

/* The pieces of the probe, at the beginning of a text or behind an added token; call sgm__pieces_free for
 * both also on failure. */
static sgm_status split_probe(const sgm_pretrained_tokenizer *tokenizer, bool first, sgm__pieces pieces[2])
{
    sgm__matcher matcher = {0};
    sgm__buffer normal[2] = {{0}};
    sgm_status status =
        sgm__normalize(&tokenizer->normalizers, &matcher, probe, sizeof probe - 1, normal, NULL);
    if (status == SGM_OK)
        status = sgm__split(&tokenizer->splitters, &matcher, normal[0].data, normal[0].size, first, pieces);
    sgm__matcher_free(&matcher);
    sgm__buffer_free(&normal[0]);
    sgm__buffer_free(&normal[1]);
    return status;
}

static bool are_equal(const sgm__pieces *a, const sgm__pieces *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        const sgm__piece *one = &a->list[i], *other = &b->list[i];
        if (one->size != other->size ||
            memcmp(a->text.data + one->at, b->text.data + other->at, one->size) != 0)
            return false;
    }
    return true;
}

/* Whether the steps of both do the same to the probe. */
static sgm_status compare_steps(const sgm_pretrained_tokenizer *a, const sgm_pretrained_tokenizer *b,
                                bool first, bool *equal)
{
    sgm__pieces pieces[4] = {{{0}, NULL, 0, 0}};
    sgm_status status = split_probe(a, first, pieces);
    if (status == SGM_OK)
        status = split_probe(b, first, pieces + 2);
    *equal = status == SGM_OK && are_equal(&pieces[0], &pieces[2]);
    for (size_t i = 0; i < 4; i++)
        sgm__pieces_free(&pieces[i]);
    return status;
}

/* Whether the tokenizer's steps are those of a way of splitting; NULL: of SentencePiece's spaces. */
static sgm_status has_steps(const writing *w, const sgm__gguf_splitting *splitting, bool before, bool *equal)
{
    sgm_pretrained_tokenizer *other = sgm__allocate_zero(1, sizeof *other);
    sgm_status status = other == NULL       ? SGM_ERROR_MEMORY
                        : splitting != NULL ? sgm__gguf_add_splitting(other, splitting)
                                            : sgm__gguf_add_spaces(other, before);
    if (status == SGM_OK)
        status = compare_steps(w->tokenizer, other, true, equal);
    if (status == SGM_OK && *equal)
        status = compare_steps(w->tokenizer, other, false, equal);
    sgm_pretrained_tokenizer_free(other);
    return status;
}

/* --- tokens --- */

static int32_t type_of(const writing *w, uint32_t id)
{
    const sgm__added_token *added = sgm__added_find(&w->tokenizer->added, id);
    const sgm__model *model = &w->tokenizer->model;
    size_t size;
    const char *text = sgm__tokenizer_text(w->tokenizer, id, &size);
    if (text == NULL)
        return SGM__GGUF_UNUSED;
    if (id == model->unknown && model->byte_fallback)
        return SGM__GGUF_UNKNOWN;
    if (added != NULL)
        return added->special ? SGM__GGUF_CONTROL : SGM__GGUF_USER_DEFINED;
    for (size_t i = 0; model->byte_fallback && i < 256; i++)
        if (model->bytes[i] == id)
            return SGM__GGUF_BYTE;
    return SGM__GGUF_NORMAL;
}

static sgm_status check_tokens(const writing *w)
{
    const sgm__added *added = &w->tokenizer->added;
    if (w->tokenizer->count > w->count)
        return fail(w, "it has more tokens than the model has vectors");
    for (size_t i = 0; i < added->count; i++)
        if (added->tokens[i].left || added->tokens[i].right || added->tokens[i].single_word)
            return fail(w, "an added token takes spaces along, or is only found as a word");
    return SGM_OK;
}

static sgm_status put_tokens(writing *w)
{
    SGM__PASS(check_tokens(w));
    w->types = sgm__allocate_zero(w->count, sizeof *w->types);
    if (w->types == NULL)
        return SGM_ERROR_MEMORY;
    sgm__gguf_put_array(w->draft, KEY("tokens"), SGM__GGUF_TEXT, w->count);
    for (uint32_t id = 0; id < w->count; id++) {
        char unused[24];
        size_t size = (size_t)snprintf(unused, sizeof unused, "[PAD%u]", id);
        const char *text = sgm__tokenizer_text(w->tokenizer, id, &size);
        sgm__gguf_add_text(w->draft, text != NULL ? text : unused, size);
        w->types[id] = type_of(w, id);
    }
    sgm__gguf_put_array(w->draft, KEY("token_type"), SGM__GGUF_INT32, w->count);
    for (uint32_t id = 0; id < w->count; id++)
        sgm__gguf_add_int32(w->draft, w->types[id]);
    return w->draft->status;
}

/* --- byte-level pairs --- */

static int compare_ranks(const void *a, const void *b)
{
    const uint32_t first = ((const sgm__entry *)a)->first, second = ((const sgm__entry *)b)->first;
    return first < second ? -1 : first > second;
}

static void put_merge(const writing *w, const sgm__entry *entry, sgm__buffer *line)
{
    const sgm__vocabulary *vocabulary = &w->tokenizer->model.vocabulary;
    size_t sizes[2];
    const char *first = sgm__vocabulary_token(vocabulary, (uint32_t)(entry->key >> 32), &sizes[0]);
    const char *second = sgm__vocabulary_token(vocabulary, (uint32_t)entry->key, &sizes[1]);
    line->size = 0;
    if (w->draft->status == SGM_OK)
        w->draft->status = sgm__buffer_add(line, first, sizes[0]);
    if (w->draft->status == SGM_OK)
        w->draft->status = sgm__buffer_put(line, ' ');
    if (w->draft->status == SGM_OK)
        w->draft->status = sgm__buffer_add(line, second, sizes[1]);
    sgm__gguf_add_text(w->draft, line->data, line->size);
}

/* Pairs in their order, the first to be put together first. */
static sgm_status put_merges(const writing *w)
{
    const sgm__table *merges = &w->tokenizer->model.bpe.merges;
    sgm__entry *sorted = sgm__allocate_zero(merges->count, sizeof *sorted);
    sgm__buffer line = {0};
    size_t count = 0;
    if (sorted == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; merges->entries != NULL && i <= merges->mask; i++)
        if (merges->entries[i].key != UINT64_MAX)
            sorted[count++] = merges->entries[i];
    if (count > 0)
        qsort(sorted, count, sizeof *sorted, compare_ranks);
    sgm__gguf_put_array(w->draft, KEY("merges"), SGM__GGUF_TEXT, count);
    for (size_t i = 0; i < count; i++)
        put_merge(w, &sorted[i], &line);
    sgm__buffer_free(&line);
    free(sorted);
    return w->draft->status;
}

static sgm_status put_gpt2(writing *w)
{
    const sgm__model *model = &w->tokenizer->model;
    const sgm__gguf_splitting *splitting = NULL;
    bool equal = false;
    for (size_t i = 0; !equal && (splitting = sgm__gguf_splitting_at(i)) != NULL; i++)
        if (splitting->ignore_merges == model->bpe.ignore_merges)
            SGM__PASS(has_steps(w, splitting, false, &equal));
    if (!equal)
        return fail(w, "it splits texts as none of gpt-2, llama-bpe, qwen2, smollm, tekken");
    sgm__gguf_put_text(w->draft, KEY("model"), "gpt2", 4);
    sgm__gguf_put_text(w->draft, KEY("pre"), splitting->names, strcspn(splitting->names, " "));
    SGM__PASS(put_tokens(w));
    return put_merges(w);
}

/* --- SentencePiece --- */

/* The pair must be one of the tokenizer's. */
static sgm_status add_rank(void *user, uint32_t first, uint32_t second, uint32_t both)
{
    writing *w = user;
    const sgm__entry *entry =
        sgm__table_find(&w->tokenizer->model.bpe.merges, (uint64_t)first << 32 | second);
    struct ranks *ranks = &w->ranks[both];
    if (entry == NULL || entry->second != both)
        return fail(w, "there are tokens that it does not put together, though a third one consists of them");
    ranks->lowest = entry->first < ranks->lowest ? entry->first : ranks->lowest;
    ranks->highest = entry->first > ranks->highest ? entry->first : ranks->highest;
    w->pairs++;
    return SGM_OK;
}

/* Pairs of tokens that texts are made of; others have texts that are cut out before. */
static size_t count_normal(const writing *w)
{
    const sgm__table *merges = &w->tokenizer->model.bpe.merges;
    size_t count = 0;
    for (size_t i = 0; merges->entries != NULL && i <= merges->mask; i++) {
        const sgm__entry *entry = &merges->entries[i];
        count += entry->key != UINT64_MAX && w->types[entry->key >> 32] == SGM__GGUF_NORMAL &&
                 w->types[entry->key & UINT32_MAX] == SGM__GGUF_NORMAL &&
                 w->types[entry->second] == SGM__GGUF_NORMAL;
    }
    return count;
}

static int compare_lowest(const void *a, const void *b)
{
    const uint32_t first = ((const struct ranks *)a)->lowest, second = ((const struct ranks *)b)->lowest;
    return first < second ? -1 : first > second;
}

/* All pairs that make a token come before all that make the next one; so a score for each token says their
 * order. Tokens that no pair makes come last. */
static sgm_status score_tokens(writing *w, float *scores)
{
    for (uint32_t id = 0; id < w->count; id++)
        w->ranks[id] = (struct ranks){.lowest = SGM__NONE, .id = id};
    SGM__PASS(sgm__gguf_pairs(&w->tokenizer->model.vocabulary, w->types, add_rank, w));
    if (w->pairs != count_normal(w))
        return fail(w, "it puts other tokens together than SentencePiece would");
    qsort(w->ranks, w->count, sizeof *w->ranks, compare_lowest);
    for (uint32_t i = 0; i < w->count; i++) {
        const struct ranks *ranks = &w->ranks[i];
        if (i > 0 && ranks->lowest != SGM__NONE && w->ranks[i - 1].highest >= ranks->lowest)
            return fail(w, "its pairs are in no order that scores of tokens say");
        scores[ranks->id] = w->types[ranks->id] == SGM__GGUF_NORMAL ? -(float)i : 0;
    }
    return SGM_OK;
}

static sgm_status put_scores(writing *w)
{
    float *scores = sgm__allocate_zero(w->count, sizeof *scores);
    w->ranks = sgm__allocate_zero(w->count, sizeof *w->ranks);
    sgm_status status = scores != NULL && w->ranks != NULL ? score_tokens(w, scores) : SGM_ERROR_MEMORY;
    if (status == SGM_OK) {
        sgm__gguf_put_array(w->draft, KEY("scores"), SGM__GGUF_FLOAT32, w->count);
        for (uint32_t id = 0; id < w->count; id++)
            sgm__gguf_add_float32(w->draft, scores[id]);
    }
    free(scores);
    return status;
}

/* llama.cpp writes a character that is no token as its bytes, each of which must be one. */
static bool has_bytes(const sgm__model *model)
{
    for (size_t i = 0; i < 256; i++)
        if (!model->byte_fallback || model->bytes[i] == SGM__NONE)
            return false;
    return true;
}

static sgm_status put_llama(writing *w)
{
    const sgm__model *model = &w->tokenizer->model;
    bool equal = false, before = true;
    SGM__PASS(has_steps(w, NULL, true, &equal));
    if (!equal) {
        before = false;
        SGM__PASS(has_steps(w, NULL, false, &equal));
    }
    if (!equal || model->bpe.ignore_merges)
        return fail(w, "it does more to a text than SentencePiece's files say");
    if (!has_bytes(model))
        return fail(w, "there is no token for each byte");
    sgm__gguf_put_text(w->draft, KEY("model"), "llama", 5);
    SGM__PASS(put_tokens(w));
    SGM__PASS(put_scores(w));
    sgm__gguf_put_flag(w->draft, KEY("add_space_prefix"), before);
    if (model->unknown != SGM__NONE)
        sgm__gguf_put_integer(w->draft, KEY("unknown_token_id"), model->unknown);
    return w->draft->status;
}

/* --- what stands around a text, and chats --- */

static sgm_status read_template(writing *w)
{
    const sgm__template *single = &w->tokenizer->single;
    bool text = single->count == 0;
    for (size_t i = 0; i < single->count; i++) {
        const sgm__template_part *part = &single->parts[i];
        uint32_t *id = text ? &w->end : &w->begin;
        if (part->kind != SGM__SPECIAL)
            text = true;
        else if (*id != SGM__NONE)
            return fail(w, "several tokens stand before or behind a text");
        else
            *id = part->id;
    }
    return SGM_OK;
}

static void put_id(const writing *w, const char *key, int64_t id)
{
    if (id >= 0)
        sgm__gguf_put_integer(w->draft, key, id);
}

/* The token of a name; else that of a template; else what config.json says, of several the first; -1: none.
 */
static int64_t choose_id(const writing *w, const char *name, uint32_t template, const char *key)
{
    const json_t *said = json_object_get(w->config, key);
    if (json_is_array(said))
        said = json_array_get(said, 0);
    if (name != NULL && *name != '\0')
        return sgm_pretrained_tokenizer_id(w->tokenizer, name);
    if (template != SGM__NONE)
        return template;
    return json_is_integer(said) && json_integer_value(said) < w->count ? json_integer_value(said) : -1;
}

static void put_ends(const writing *w)
{
    const struct sgm__chat *chat = &w->tokenizer->chat;
    put_id(w, KEY("bos_token_id"),
           w->begin != SGM__NONE ? w->begin : choose_id(w, chat->begin, SGM__NONE, "bos_token_id"));
    put_id(w, KEY("eos_token_id"), choose_id(w, chat->end, w->end, "eos_token_id"));
    sgm__gguf_put_flag(w->draft, KEY("add_bos_token"), w->begin != SGM__NONE);
    sgm__gguf_put_flag(w->draft, KEY("add_eos_token"), w->end != SGM__NONE);
    if (chat->template != NULL)
        sgm__gguf_put_text(w->draft, "tokenizer.chat_template", chat->template, chat->template_size);
}

/* --- writing --- */

static bool is_byte_level(const sgm_pretrained_tokenizer *tokenizer)
{
    for (size_t i = 0; i < tokenizer->splitters.count; i++)
        if (tokenizer->splitters.steps[i].kind == SGM__BYTES)
            return true;
    return false;
}

static sgm_status put_tokenizer(writing *w)
{
    const sgm__model *model = &w->tokenizer->model;
    SGM__PASS(read_template(w));
    if (model->kind != SGM__BPE || model->bpe.prefix != NULL || model->bpe.suffix != NULL)
        return fail(w, "its tokens are none of byte-level pairs, nor of SentencePiece's pairs");
    SGM__PASS(is_byte_level(w->tokenizer) ? put_gpt2(w) : put_llama(w));
    put_ends(w);
    return w->draft->status;
}

sgm_status sgm__gguf_put_tokenizer(sgm__gguf_draft *draft, const char *folder, const json_t *config,
                                   uint32_t count)
{
    writing w = {.draft = draft,
                 .folder = folder,
                 .config = config,
                 .count = count,
                 .begin = SGM__NONE,
                 .end = SGM__NONE};
    w.tokenizer = sgm_pretrained_tokenizer_open(folder);
    const sgm_status status = w.tokenizer != NULL ? put_tokenizer(&w) : sgm_last_status();
    free(w.types);
    free(w.ranks);
    sgm_pretrained_tokenizer_free(w.tokenizer);
    return status;
}
