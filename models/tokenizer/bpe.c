/* Byte pair encoding (Sennrich et al., 2016): characters become tokens, then the pair with the lowest rank
 * becomes one, the leftmost of equals first, until no pair is left that is in the table. */
#include "tokenizer/model.h"
#include "tokenizer/text/utf8.h"

#include <stdlib.h>
#include <string.h>

/* --- the pairs of a piece, the next one to merge first --- */
static void sink(uint64_t *heap, size_t count, size_t at)
{
    const uint64_t value = heap[at];
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        child += child + 1 < count && heap[child + 1] < heap[child];
        if (heap[child] >= value)
            break;
        heap[at] = heap[child];
    }
    heap[at] = value;
}

static void push(sgm__scratch *scratch, uint64_t pair)
{
    size_t at = scratch->heap_count++;
    for (; at > 0 && scratch->heap[(at - 1) / 2] > pair; at = (at - 1) / 2)
        scratch->heap[at] = scratch->heap[(at - 1) / 2];
    scratch->heap[at] = pair;
}

/* Looks the pair at a place up, and has it wait if it is one. */
static void look_up(const sgm__bpe *bpe, sgm__scratch *scratch, uint32_t at)
{
    sgm__symbol *symbol = &scratch->symbols[at];
    const sgm__entry *entry = NULL;
    if (symbol->next != SGM__NONE)
        entry = sgm__table_find(&bpe->merges, (uint64_t)symbol->id << 32 | scratch->symbols[symbol->next].id);
    symbol->rank = entry ? entry->first : SGM__NONE;
    symbol->merged = entry ? entry->second : SGM__NONE;
    if (entry)
        push(scratch, (uint64_t)entry->first << 32 | at);
}

/* Each merge takes one symbol away and adds two pairs at most: there is room for all. */
static sgm_status merge(const sgm__bpe *bpe, sgm__scratch *scratch, size_t count)
{
    void *heap = scratch->heap;
    SGM__PASS(sgm__array_reserve(&heap, &scratch->heap_room, count * 3, sizeof *scratch->heap));
    scratch->heap = heap;
    scratch->heap_count = 0;
    for (size_t i = 0; i < count; i++)
        look_up(bpe, scratch, (uint32_t)i);
    while (scratch->heap_count > 0) {
        const uint32_t at = (uint32_t)scratch->heap[0], rank = (uint32_t)(scratch->heap[0] >> 32);
        sgm__symbol *symbol = &scratch->symbols[at];
        scratch->heap[0] = scratch->heap[--scratch->heap_count];
        sink(scratch->heap, scratch->heap_count, 0);
        if (symbol->rank != rank) /* another pair stands there now */
            continue;
        symbol->id = symbol->merged;
        scratch->symbols[symbol->next].rank = SGM__NONE;
        symbol->next = scratch->symbols[symbol->next].next;
        if (symbol->next != SGM__NONE)
            scratch->symbols[symbol->next].before = at;
        look_up(bpe, scratch, at);
        if (symbol->before != SGM__NONE)
            look_up(bpe, scratch, symbol->before);
    }
    return SGM_OK;
}

/* --- the symbols that a piece begins with --- */
typedef struct unmerged {
    const sgm__model *model;
    sgm__scratch *scratch;
    size_t count;
    bool has_unknown; /* the last characters are unknown, and no token stands for them yet */
} unmerged;

static sgm_status add_symbol(unmerged *word, uint32_t id)
{
    void *symbols = word->scratch->symbols;
    if (word->count >= SGM__NONE / 4)
        return sgm_fail(SGM_ERROR_LIMIT, "a piece of text with over %zu characters; split the text",
                        word->count);
    SGM__PASS(
        sgm__array_reserve(&symbols, &word->scratch->symbol_room, word->count + 1, sizeof(sgm__symbol)));
    word->scratch->symbols = symbols;
    word->scratch->symbols[word->count] =
        (sgm__symbol){.id = id, .before = (uint32_t)word->count - 1, .next = (uint32_t)word->count + 1};
    word->count++;
    return SGM_OK;
}

static sgm_status add_unknown(unmerged *word)
{
    if (!word->has_unknown)
        return SGM_OK;
    word->has_unknown = false;
    return add_symbol(word, word->model->unknown);
}

/* A character as the vocabulary has it: with the word's prefix unless it is first, its suffix if it is last.
 */
static sgm_status add_affixes(unmerged *word, const char **text, size_t *size, bool is_first, bool is_last)
{
    const sgm__bpe *bpe = &word->model->bpe;
    const char *prefix = is_first ? NULL : bpe->prefix, *suffix = is_last ? bpe->suffix : NULL;
    sgm__buffer *whole = &word->scratch->text;

    if (!prefix && !suffix)
        return SGM_OK;
    whole->size = 0;
    if (prefix)
        SGM__PASS(sgm__buffer_add(whole, prefix, strlen(prefix)));
    SGM__PASS(sgm__buffer_add(whole, *text, *size));
    if (suffix)
        SGM__PASS(sgm__buffer_add(whole, suffix, strlen(suffix)));
    *text = whole->data;
    *size = whole->size;
    return SGM_OK;
}

/* What has no token, with its affixes: its bytes' tokens, or the unknown one, or nothing. */
static sgm_status add_other(unmerged *word, const char *text, size_t size)
{
    const sgm__model *model = word->model;
    if (model->byte_fallback && sgm__model_has_bytes(model, text, size)) {
        for (size_t i = 0; i < size; i++)
            SGM__PASS(add_symbol(word, model->bytes[(unsigned char)text[i]]));
        return SGM_OK;
    }
    if (model->unknown == SGM__NONE)
        return SGM_OK;
    if (!model->bpe.fuse_unknown)
        SGM__PASS(add_unknown(word));
    word->has_unknown = true;
    return SGM_OK;
}

static sgm_status add_characters(unmerged *word, const char *text, size_t size)
{
    const sgm__bpe *bpe = &word->model->bpe;
    const bool is_plain = !bpe->prefix && !bpe->suffix;
    size_t at = 0;

    while (at < size) {
        const char *character = text + at;
        const size_t start = at;
        const uint32_t number = sgm__utf8_next(text, &at);
        size_t length = at - start;
        uint32_t id;
        if (!is_plain)
            SGM__PASS(add_affixes(word, &character, &length, start == 0, at == size));
        id = is_plain && number < sizeof bpe->characters / sizeof *bpe->characters
                 ? bpe->characters[number]
                 : sgm__vocabulary_find(&word->model->vocabulary, character, length);
        if (id == SGM__NONE) {
            SGM__PASS(add_other(word, character, length));
        } else {
            SGM__PASS(add_unknown(word));
            SGM__PASS(add_symbol(word, id));
        }
    }
    SGM__PASS(add_unknown(word));
    if (word->count > 0)
        word->scratch->symbols[word->count - 1].next = SGM__NONE;
    return SGM_OK;
}

static sgm_status encode_by_merges(const sgm__model *model, sgm__scratch *scratch, const char *text,
                                   size_t size, sgm__ids *out)
{
    unmerged word = {model, scratch, 0, false};
    SGM__PASS(add_characters(&word, text, size));
    if (word.count == 0)
        return SGM_OK;
    SGM__PASS(merge(&model->bpe, scratch, word.count));
    for (uint32_t at = 0; at != SGM__NONE; at = scratch->symbols[at].next)
        SGM__PASS(sgm__ids_add(out, scratch->symbols[at].id));
    return SGM_OK;
}

/* Most words of a text are tokens: of which it is known that merging would give them. */
sgm_status sgm__bpe_encode(const sgm__model *model, sgm__scratch *scratch, const char *text, size_t size,
                           sgm__ids *out)
{
    const uint32_t whole = sgm__vocabulary_find(&model->vocabulary, text, size);
    if (whole != SGM__NONE && model->bpe.whole[whole])
        return sgm__ids_add(out, whole);
    return encode_by_merges(model, scratch, text, size, out);
}

sgm_status sgm__bpe_add_merge(sgm__model *model, sgm__buffer *joined, const char *const texts[2],
                              const size_t sizes[2], uint32_t rank)
{
    const sgm__vocabulary *vocabulary = &model->vocabulary;
    const size_t prefix = model->bpe.prefix ? strlen(model->bpe.prefix) : 0;
    const size_t cut = prefix < sizes[1] ? prefix : sizes[1];
    uint32_t ids[3];
    sgm__entry *entry;

    joined->size = 0;
    SGM__PASS(sgm__buffer_add(joined, texts[0], sizes[0]));
    SGM__PASS(sgm__buffer_add(joined, texts[1] + cut, sizes[1] - cut));
    ids[0] = sgm__vocabulary_find(vocabulary, texts[0], sizes[0]);
    ids[1] = sgm__vocabulary_find(vocabulary, texts[1], sizes[1]);
    ids[2] = sgm__vocabulary_find(vocabulary, joined->data, joined->size);
    for (int i = 0; i < 3; i++) {
        const char *missing = i < 2 ? texts[i] : joined->data;
        const size_t size = i < 2 ? sizes[i] : joined->size;
        if (ids[i] == SGM__NONE)
            return sgm_fail(SGM_ERROR_NOT_FOUND, "a merge wants '%.*s', which is not in the vocabulary",
                            (int)(size < 60 ? size : 60), missing);
    }
    if (!(entry = sgm__table_add(&model->bpe.merges, (uint64_t)ids[0] << 32 | ids[1])))
        return SGM_ERROR_MEMORY;
    entry->first = rank;
    entry->second = ids[2];
    return SGM_OK;
}

sgm_status sgm__bpe_prepare(sgm__model *model)
{
    sgm__bpe *bpe = &model->bpe;
    sgm__scratch scratch = {0};
    sgm__ids ids = {0};
    sgm_status status = SGM_OK;
    char text[4];

    for (uint32_t character = 0; character < sizeof bpe->characters / sizeof *bpe->characters; character++)
        bpe->characters[character] =
            sgm__vocabulary_find(&model->vocabulary, text, sgm__utf8_put(character, text));
    bpe->whole = sgm__allocate_zero(model->vocabulary.count, 1);
    if (!bpe->whole)
        return SGM_ERROR_MEMORY;
    for (uint32_t id = 0; id < model->vocabulary.count && status == SGM_OK; id++) {
        size_t size;
        const char *token = sgm__vocabulary_token(&model->vocabulary, id, &size);
        ids.count = 0;
        if (token && size > 0 && !bpe->ignore_merges)
            status = encode_by_merges(model, &scratch, token, size, &ids);
        bpe->whole[id] = bpe->ignore_merges || (ids.count == 1 && ids.list[0] == id);
    }
    free(ids.list);
    sgm__scratch_free(&scratch);
    return status;
}
