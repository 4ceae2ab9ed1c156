#include "tokenizer/added.h"
#include "tokenizer/text/characters.h"
#include "tokenizer/text/utf8.h"

#include <stdlib.h>

void sgm__added_free(sgm__added *added)
{
    for (size_t i = 0; i < added->count; i++)
        free(added->tokens[i].content);
    free(added->tokens);
    sgm__vocabulary_free(&added->names);
    sgm__trie_free(&added->raw);
    sgm__trie_free(&added->normal);
    *added = (sgm__added){0};
}

sgm_status sgm__added_look_for(sgm__added *added, size_t index, const char *text, size_t size)
{
    const bool normalized = added->tokens[index].normalized;
    if (size == 0)
        return SGM_OK;
    added->begins[normalized][(unsigned char)text[0]] = true;
    return sgm__trie_add(normalized ? &added->normal : &added->raw, text, size, (uint32_t)index);
}

const sgm__added_token *sgm__added_find(const sgm__added *added, uint32_t id)
{
    for (size_t i = 0; i < added->count; i++)
        if (added->tokens[i].id == id)
            return &added->tokens[i];
    return NULL;
}

static bool is_word_before(const char *text, size_t at)
{
    if (at == 0)
        return false;
    at = sgm__utf8_before(text, at);
    return sgm__unicode_is_word(sgm__utf8_next(text, &at));
}

static bool is_word_behind(const char *text, size_t size, size_t at)
{
    return at < size && sgm__unicode_is_word(sgm__utf8_next(text, &at));
}

static size_t skip_spaces_back(const char *text, size_t at, size_t first)
{
    while (at > first) {
        const size_t start = sgm__utf8_before(text, at);
        size_t next = start;
        if (!sgm__unicode_is_space(sgm__utf8_next(text, &next)))
            break;
        at = start;
    }
    return at;
}

static size_t skip_spaces(const char *text, size_t size, size_t at)
{
    size_t next = at;
    while (at < size && sgm__unicode_is_space(sgm__utf8_next(text, &next)))
        at = next;
    return at;
}

/* The longest token that stands at a place, and where it ends; NULL: none does. */
static const sgm__added_token *longest_at(const sgm__added *added, const sgm__trie *trie, const char *text,
                                          size_t size, size_t at, size_t *end)
{
    const sgm__added_token *longest = NULL;
    uint32_t node = 0;
    while (at < size && (node = sgm__trie_next(trie, node, text[at++])) != SGM__NONE)
        if (trie->values[node] != SGM__NONE) {
            longest = &added->tokens[trie->values[node]];
            *end = at;
        }
    return longest;
}

static sgm_status add_part(sgm__parts *out, size_t start, size_t end, const sgm__added_token *token)
{
    void *list = out->list;
    SGM__PASS(sgm__array_reserve(&list, &out->room, out->count + 1, sizeof *out->list));
    out->list = list;
    out->list[out->count++] = (sgm__part){start, end, token};
    return SGM_OK;
}

sgm_status sgm__added_cut(const sgm__added *added, bool normalized, const char *text, size_t size,
                          sgm__parts *out)
{
    const sgm__trie *trie = normalized ? &added->normal : &added->raw;
    size_t done = 0;

    out->count = 0;
    for (size_t at = 0; trie->count > 0 && at < size;) {
        const sgm__added_token *token = NULL;
        size_t start = at, end = at + 1;
        if (added->begins[normalized][(unsigned char)text[at]])
            token = longest_at(added, trie, text, size, at, &end);
        at = end;
        if (!token ||
            (token->single_word && (is_word_before(text, start) || is_word_behind(text, size, end))))
            continue;
        if (token->left) {
            start = start > done ? skip_spaces_back(text, start, done) : done;
            if (start >= end) /* the token before took these spaces along */
                continue;
        }
        if (token->right)
            end = skip_spaces(text, size, end);
        if (done < start)
            SGM__PASS(add_part(out, done, start, NULL));
        SGM__PASS(add_part(out, start, end, token));
        done = end;
    }
    return done < size ? add_part(out, done, size, NULL) : SGM_OK;
}
