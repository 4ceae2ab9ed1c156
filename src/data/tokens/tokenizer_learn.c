/* Learns a tokenizer from a text by byte pair encoding: the most frequent pair of neighbouring tokens becomes
 * a token, again and again (Sennrich et al., 2016).
 *
 * sgm_tokenizer_learn is called by programs and by the command `sigma tokenize`; tokenizer.c uses the result.
 * Counting all pairs of the text for each new token would take vocabulary * text; instead
 *   - equal pieces of the text are kept once, with the number of times that they occur;
 *   - each pair has a list of the pieces that it occurs in, so a new token touches only these;
 *   - a heap finds the most frequent pair.
 * The result depends on the text alone: of equally frequent pairs the one with the lowest tokens comes first.
 */
#include "data/tokens/tokenizer.h"

/* A piece that occurs in the text, with its present tokens: learner.row[first] to learner.row[first + tokens
 * - 1]. Merging only makes them fewer, so a piece keeps its place in the row. */
typedef struct piece {
    const unsigned char *text; /* in the caller's text, where it occurs first */
    size_t size;
    size_t first, tokens; /* in `row` */
    int64_t times;
} piece;

/* A pair that occurs in pieces, or did before it was merged. */
typedef struct candidate {
    int32_t left, right;
    int64_t number; /* how often it occurs in the text: in each piece, times that piece's `times` */
    size_t place;   /* the newest entry of its list in `places`, plus 1; 0: none */
} candidate;

/* An entry in the list of a pair: a piece that had the pair when the entry was made, and the entry before,
 * plus 1. The piece may have lost the pair since: merging then finds nothing to do in it. */
typedef struct place {
    size_t piece, before;
} place;

/* An entry of the heap: a candidate with the number that it had when the entry was made. By now the number
 * may be lower, never higher, so the top of the heap is an upper bound (see take_best). */
typedef struct bid {
    int64_t number;
    size_t candidate;
} bid;

typedef struct learner {
    piece *pieces;
    size_t count, capacity;
    size_t *table, room; /* hash table of pieces by content: piece number + 1; 0: empty */
    int32_t *row;        /* the tokens of all pieces */
    sgm__pairs pairs;    /* the number of a pair is that of its candidate, plus 1 */
    candidate *candidates;
    size_t candidate_count, candidate_room;
    place *places;
    size_t place_count, place_room;
    bid *heap;
    size_t heap_count, heap_room;
} learner;

/* --- counting pieces --- */

/* Where a piece with this content is in the hash table, or the empty slot where it would go. */
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

/* Doubles the hash table and enters all pieces anew. */
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

/* Counts one occurrence of a piece. */
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

/* The candidate of a pair, made if there is none; NULL and an error when memory ends. The pointer is valid
 * until the next call, since the array may move. */
static candidate *candidate_of(learner *l, int32_t left, int32_t right)
{
    struct sgm__pair *pair = sgm__pairs_add(&l->pairs, left, right);
    if (pair == NULL)
        return NULL;
    if (pair->number == 0) {
        if (sgm__reserve(&l->candidates, &l->candidate_room, l->candidate_count + 1, sizeof *l->candidates) !=
            SGM_OK)
            return NULL;
        l->candidates[l->candidate_count++] = (candidate){.left = left, .right = right};
        pair->number = (int64_t)l->candidate_count;
    }
    return &l->candidates[pair->number - 1];
}

/* Adds piece `number` to the list of a pair. The pieces are gone through one after the other, so it is enough
 * to compare with the newest entry to have each piece once. */
static sgm_status note_place(learner *l, candidate *c, size_t number)
{
    if (c->place > 0 && l->places[c->place - 1].piece == number)
        return SGM_OK;
    SGM_TRY(sgm__reserve(&l->places, &l->place_room, l->place_count + 1, sizeof *l->places));
    l->places[l->place_count++] = (place){.piece = number, .before = c->place};
    c->place = l->place_count;
    return SGM_OK;
}

/* Adds `times` (negative: subtracts) to the number of each pair in piece `number`. The piece is noted in the
 * lists of pairs that have the token `noted`, or of all pairs if `noted` is -1. */
static sgm_status count_pairs(learner *l, size_t number, int64_t times, int32_t noted)
{
    const piece *p = &l->pieces[number];
    const int32_t *tokens = l->row + p->first;
    for (size_t i = 0; i + 1 < p->tokens; i++) {
        candidate *c = candidate_of(l, tokens[i], tokens[i + 1]);
        if (c == NULL)
            return SGM_ERROR_MEMORY;
        c->number += times;
        if (noted < 0 || c->left == noted || c->right == noted)
            SGM_TRY(note_place(l, c, number));
    }
    return SGM_OK;
}

/* --- the most frequent pair --- */

/* The order of the heap: the higher number first; of equal numbers the lower left token, then the lower right
 * one. */
static bool is_better(const learner *l, const bid *a, const bid *b)
{
    const candidate *x = &l->candidates[a->candidate], *y = &l->candidates[b->candidate];
    if (a->number != b->number)
        return a->number > b->number;
    return x->left != y->left ? x->left < y->left : x->right < y->right;
}

/* Moves an entry down the heap until both entries below are worse. */
static void sink(learner *l, size_t at)
{
    bid moved = l->heap[at];
    for (size_t below = 2 * at + 1; below < l->heap_count; below = 2 * at + 1) {
        if (below + 1 < l->heap_count && is_better(l, &l->heap[below + 1], &l->heap[below]))
            below++;
        if (!is_better(l, &l->heap[below], &moved))
            break;
        l->heap[at] = l->heap[below];
        at = below;
    }
    l->heap[at] = moved;
}

/* Puts a candidate on the heap with its present number. A pair that occurs once is not worth a token. */
static sgm_status offer(learner *l, size_t number)
{
    if (l->candidates[number].number < 2)
        return SGM_OK;
    SGM_TRY(sgm__reserve(&l->heap, &l->heap_room, l->heap_count + 1, sizeof *l->heap));
    bid made = {l->candidates[number].number, number};
    size_t at = l->heap_count++;
    for (; at > 0 && is_better(l, &made, &l->heap[(at - 1) / 2]); at = (at - 1) / 2)
        l->heap[at] = l->heap[(at - 1) / 2];
    l->heap[at] = made;
    return SGM_OK;
}

/* Takes the most frequent candidate from the heap; NULL if no pair occurs twice. Numbers have only become
 * lower since the entries were made, so an entry whose number still holds is the best; another one gets its
 * present number and sinks to where that belongs. This is cheaper than finding and moving the entries
 * whenever a number changes. */
static const candidate *take_best(learner *l)
{
    while (l->heap_count > 0) {
        bid best = l->heap[0];
        const candidate *c = &l->candidates[best.candidate];
        l->heap[0].number = c->number;
        if (c->number < 2 || c->number == best.number)
            l->heap[0] = l->heap[--l->heap_count];
        if (l->heap_count > 0)
            sink(l, 0);
        if (c->number >= 2 && c->number == best.number)
            return c;
    }
    return NULL;
}

/* --- learning --- */

/* Lays the bytes of all pieces into the row as their first tokens, counts all pairs, and fills the heap. */
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
        SGM_TRY(count_pairs(l, i, p->times, -1));
    }
    for (size_t i = 0; i < l->candidate_count; i++)
        SGM_TRY(offer(l, i));
    return SGM_OK;
}

/* Makes the pair one token, `merged`, in all pieces of its list: the piece's pairs are subtracted, the piece
 * is merged, and its new pairs are added. Only pairs that have the new token become more frequent, and none
 * of them existed before, so only new candidates are offered to the heap. `pair` points into an array that
 * may move, so its tokens and its list are read before anything is counted. */
static sgm_status merge(learner *l, const candidate *pair, int32_t merged)
{
    const int32_t left = pair->left, right = pair->right;
    size_t known = l->candidate_count;
    for (size_t at = pair->place; at > 0; at = l->places[at - 1].before) {
        size_t number = l->places[at - 1].piece;
        piece *p = &l->pieces[number];
        SGM_TRY(count_pairs(l, number, -p->times, merged));
        p->tokens = sgm__merge_pairs(l->row + p->first, p->tokens, left, right, merged);
        SGM_TRY(count_pairs(l, number, p->times, merged));
    }
    for (size_t i = known; i < l->candidate_count; i++)
        SGM_TRY(offer(l, i));
    return SGM_OK;
}

/* Stops at the wanted vocabulary, or earlier if no pair occurs twice. */
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
        const candidate *best = take_best(l);
        if (best == NULL)
            break;
        int32_t merged = (int32_t)tokenizer->vocabulary;
        SGM_TRY(sgm__tokenizer_add(tokenizer, best->left, best->right));
        SGM_TRY(merge(l, best, merged));
    }
    return SGM_OK;
}

static void free_learner(learner *l)
{
    sgm__free(l->pieces);
    sgm__free(l->table);
    sgm__free(l->row);
    sgm__free(l->candidates);
    sgm__free(l->places);
    sgm__free(l->heap);
    sgm__pairs_free(&l->pairs);
}

sgm_tokenizer *sgm_tokenizer_learn(const void *text, size_t size, int64_t vocabulary)
{
    learner l = {0};
    if (text == NULL || size == 0) {
        sgm_fail(SGM_ERROR_ARGUMENT, "there is no text to train a tokenizer on: it is empty");
        return NULL;
    }
    if (vocabulary < SGM__BYTES || vocabulary > SGM__MAX_VOCABULARY) {
        sgm_fail(SGM_ERROR_ARGUMENT, "a tokenizer has %d to %lld tokens, not %lld", SGM__BYTES,
                 (long long)SGM__MAX_VOCABULARY, (long long)vocabulary);
        return NULL;
    }
    sgm_tokenizer *tokenizer = sgm_byte_tokenizer();
    sgm_status status = tokenizer != NULL ? learn(&l, tokenizer, text, size, vocabulary) : SGM_ERROR_MEMORY;
    free_learner(&l);
    if (status == SGM_OK)
        return tokenizer;
    sgm_tokenizer_free(tokenizer);
    return NULL;
}
