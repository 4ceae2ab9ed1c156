/* Learning pairs from a text: the most frequent one becomes a token, again and again. Equal pieces are kept
 * once with their number, so that a pass over all of them is short. */
#include "data/tokenizer.h"

/* A piece that occurs in the text. */
typedef struct piece {
    const unsigned char *text;
    size_t size;
    size_t first, tokens; /* in `row` */
    int64_t times;
} piece;

typedef struct learner {
    piece *pieces;
    size_t count, capacity;
    size_t *table, room; /* piece number + 1 by hash; 0: empty */
    int32_t *row;        /* the tokens of all pieces */
    sgm__pairs pairs;    /* how often each occurs */
} learner;

/* --- counting pieces --- */

static size_t place_of(const learner *l, const unsigned char *text, size_t size)
{
    size_t at = sgm__hash(text, size, 0) & (l->room - 1);
    while (l->table[at] != 0) {
        const piece *p = &l->pieces[l->table[at] - 1];
        if (p->size == size && memcmp(p->text, text, size) == 0)
            break;
        at = (at + 1) & (l->room - 1);
    }
    return at;
}

static sgm_status grow(learner *l)
{
    size_t room = l->room > 0 ? 2 * l->room : 1024;
    size_t *table = sgm__calloc(room, sizeof *table);
    if (table == NULL)
        return SGM_ERROR_MEMORY;
    sgm__free(l->table);
    l->table = table;
    l->room = room;
    for (size_t i = 0; i < l->count; i++)
        l->table[place_of(l, l->pieces[i].text, l->pieces[i].size)] = i + 1;
    return SGM_OK;
}

static sgm_status count_piece(learner *l, const unsigned char *text, size_t size)
{
    if (2 * (l->count + 1) > l->room)
        SGM_TRY(grow(l));
    size_t at = place_of(l, text, size);
    if (l->table[at] == 0) {
        SGM_TRY(sgm__reserve(&l->pieces, &l->capacity, l->count + 1, sizeof *l->pieces));
        l->pieces[l->count++] = (piece){.text = text, .size = size};
        l->table[at] = l->count;
    }
    l->pieces[l->table[at] - 1].times++;
    return SGM_OK;
}

/* --- counting pairs --- */

static sgm_status count_pairs(learner *l, const piece *p, int64_t times)
{
    for (size_t i = 0; i + 1 < p->tokens; i++) {
        struct sgm__pair *pair = sgm__pairs_add(&l->pairs, l->row[p->first + i], l->row[p->first + i + 1]);
        if (pair == NULL)
            return SGM_ERROR_MEMORY;
        pair->number += times;
    }
    return SGM_OK;
}

static sgm_status begin(learner *l)
{
    size_t bytes = 0;
    for (size_t i = 0; i < l->count; i++)
        bytes += l->pieces[i].size;
    l->row = sgm__calloc(bytes + 1, sizeof *l->row);
    if (l->row == NULL)
        return SGM_ERROR_MEMORY;
    bytes = 0;
    for (size_t i = 0; i < l->count; i++) {
        piece *p = &l->pieces[i];
        p->first = bytes;
        p->tokens = p->size;
        for (size_t k = 0; k < p->size; k++)
            l->row[bytes++] = p->text[k];
        SGM_TRY(count_pairs(l, p, p->times));
    }
    return SGM_OK;
}

/* The most frequent, of equal ones the one with the lowest tokens; NULL: none comes twice. */
static const struct sgm__pair *best_of(const sgm__pairs *pairs)
{
    const struct sgm__pair *best = NULL;
    for (size_t i = 0; i < pairs->room; i++) {
        const struct sgm__pair *pair = &pairs->slots[i];
        if (pair->left < 0 || pair->number < 2 || (best != NULL && pair->number < best->number))
            continue;
        if (best == NULL || pair->number > best->number || pair->left < best->left ||
            (pair->left == best->left && pair->right < best->right))
            best = pair;
    }
    return best;
}

static bool has_pair(const learner *l, const piece *p, int32_t left, int32_t right)
{
    const int32_t *tokens = l->row + p->first;
    for (size_t i = 0; i + 1 < p->tokens; i++)
        if (tokens[i] == left && tokens[i + 1] == right)
            return true;
    return false;
}

static sgm_status merge(learner *l, int32_t left, int32_t right, int32_t merged)
{
    for (size_t i = 0; i < l->count; i++) {
        piece *p = &l->pieces[i];
        if (!has_pair(l, p, left, right))
            continue;
        SGM_TRY(count_pairs(l, p, -p->times));
        p->tokens = sgm__merge_pairs(l->row + p->first, p->tokens, left, right, merged);
        SGM_TRY(count_pairs(l, p, p->times));
    }
    return SGM_OK;
}

static sgm_status learn(learner *l, sgm_tokenizer *tokenizer, const unsigned char *text, size_t size,
                        int64_t vocabulary)
{
    for (size_t at = 0; at < size;) {
        size_t length = sgm__piece(text + at, size - at);
        SGM_TRY(count_piece(l, text + at, length));
        at += length;
    }
    SGM_TRY(begin(l));
    while (tokenizer->vocabulary < vocabulary) {
        const struct sgm__pair *best = best_of(&l->pairs);
        if (best == NULL)
            break;
        int32_t left = best->left, right = best->right, merged = (int32_t)tokenizer->vocabulary;
        SGM_TRY(sgm__tokenizer_add(tokenizer, left, right));
        SGM_TRY(merge(l, left, right, merged));
    }
    return SGM_OK;
}

sgm_tokenizer *sgm_tokenizer_learn(const void *text, size_t size, int64_t vocabulary)
{
    learner l = {0};
    if (text == NULL || size == 0) {
        sgm_fail(SGM_ERROR_ARGUMENT, "sgm_tokenizer_learn wants a text, got nothing");
        return NULL;
    }
    if (vocabulary < SGM__BYTES || vocabulary > SGM__MAX_VOCABULARY) {
        sgm_fail(SGM_ERROR_ARGUMENT, "a tokenizer has %d to %lld tokens, not %lld", SGM__BYTES,
                 (long long)SGM__MAX_VOCABULARY, (long long)vocabulary);
        return NULL;
    }
    sgm_tokenizer *tokenizer = sgm_tokenizer_bytes();
    sgm_status status = tokenizer != NULL ? learn(&l, tokenizer, text, size, vocabulary) : SGM_ERROR_MEMORY;
    sgm__free(l.pieces);
    sgm__free(l.table);
    sgm__free(l.row);
    sgm__pairs_free(&l.pairs);
    if (status == SGM_OK)
        return tokenizer;
    sgm_tokenizer_free(tokenizer);
    return NULL;
}
