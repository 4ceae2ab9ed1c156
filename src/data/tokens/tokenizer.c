/* Tokenizers by byte pair encoding (Gage, 1994; Sennrich et al., 2016): bytes to tokens and back, and their
 * file.
 *
 * Learning a tokenizer is in tokenizer_learn.c, which shares the table of pairs, the cutting into pieces and
 * the merging with this file. sgm_tokenizer_encode is called by dataset_tokens.c and, through a program, for
 * prompts; decode for generated text. A text is cut into pieces (sgm__piece), each is encoded by itself. All
 * bytes are tokens, so any input can be encoded and decodes to the same bytes. The file is text: a heading,
 * then a line "LEFT RIGHT" for each token from 256 on. */
#include "data/tokens/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>

#define HEADING "sigma-bpe 1"
#define MAXIMUM_OF_FILE ((size_t)64 << 20) /* bytes; the largest vocabulary needs 17 million */

/* --- pairs --- */

/* Where the pair is in the table, or the empty slot where it would go. The table is never full, so the search
 * ends. */
static size_t slot_of(const sgm__pairs *pairs, int32_t left, int32_t right)
{
    size_t at = sgm__hash((const int32_t[]){left, right}, 2 * sizeof left, 0) & (pairs->room - 1);
    while (pairs->slots[at].left >= 0 && (pairs->slots[at].left != left || pairs->slots[at].right != right))
        at = (at + 1) & (pairs->room - 1);
    return at;
}

/* Doubles the table and enters all pairs anew. */
static sgm_status grow(sgm__pairs *pairs)
{
    sgm__pairs larger = {.count = pairs->count, .room = pairs->room > 0 ? 2 * pairs->room : 64};
    larger.slots = sgm__calloc(larger.room, sizeof *larger.slots);
    if (larger.slots == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < larger.room; i++)
        larger.slots[i].left = -1;
    for (size_t i = 0; i < pairs->room; i++)
        if (pairs->slots[i].left >= 0)
            larger.slots[slot_of(&larger, pairs->slots[i].left, pairs->slots[i].right)] = pairs->slots[i];
    sgm__free(pairs->slots);
    *pairs = larger;
    return SGM_OK;
}

struct sgm__pair *sgm__pairs_add(sgm__pairs *pairs, int32_t left, int32_t right)
{
    if (2 * (pairs->count + 1) > pairs->room && grow(pairs) != SGM_OK)
        return NULL;
    struct sgm__pair *slot = &pairs->slots[slot_of(pairs, left, right)];
    if (slot->left < 0) {
        *slot = (struct sgm__pair){.left = left, .right = right};
        pairs->count++;
    }
    return slot;
}

/* NULL without an error if the pair is not in the table. */
static const struct sgm__pair *find_pair(const sgm__pairs *pairs, int32_t left, int32_t right)
{
    if (pairs->room == 0)
        return NULL;
    const struct sgm__pair *slot = &pairs->slots[slot_of(pairs, left, right)];
    return slot->left >= 0 ? slot : NULL;
}

void sgm__pairs_free(sgm__pairs *pairs)
{
    sgm__free(pairs->slots);
    memset(pairs, 0, sizeof *pairs);
}

/* --- tables --- */

sgm_tokenizer *sgm_byte_tokenizer(void)
{
    sgm_tokenizer *tokenizer = sgm__calloc(1, sizeof *tokenizer);
    if (tokenizer != NULL)
        tokenizer->vocabulary = SGM__BYTES;
    return tokenizer;
}

void sgm_tokenizer_free(sgm_tokenizer *tokenizer)
{
    if (tokenizer == NULL)
        return;
    sgm__pairs_free(&tokenizer->tokens);
    sgm__free(tokenizer->parts);
    sgm__free(tokenizer->sizes);
    sgm__free(tokenizer);
}

int64_t sgm_tokenizer_vocabulary(const sgm_tokenizer *tokenizer)
{
    return tokenizer != NULL ? tokenizer->vocabulary : 0;
}

/* Bytes of a token. */
static int32_t size_of(const sgm_tokenizer *tokenizer, int64_t token)
{
    return token < SGM__BYTES ? 1 : tokenizer->sizes[token - SGM__BYTES];
}

/* All memory is reserved before anything changes, but for the pair's entry: if it is made and the rest fails,
 * it has number 0, which no pair of a table has, since tokens of pairs begin at 256. */
sgm_status sgm__tokenizer_add(sgm_tokenizer *tokenizer, int32_t left, int32_t right)
{
    size_t merges = (size_t)(tokenizer->vocabulary - SGM__BYTES);
    int32_t size = size_of(tokenizer, left) + size_of(tokenizer, right);
    if (size > SGM__MAX_PIECE)
        return sgm_fail(SGM_ERROR_FORMAT, "token %lld would be %d bytes long; %d is the maximum",
                        (long long)tokenizer->vocabulary, size, SGM__MAX_PIECE);
    if (tokenizer->vocabulary >= SGM__MAX_VOCABULARY)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a tokenizer has at most %lld tokens",
                        (long long)SGM__MAX_VOCABULARY);
    SGM_TRY(sgm__reserve(&tokenizer->parts, &tokenizer->part_room, merges + 1, sizeof *tokenizer->parts));
    SGM_TRY(sgm__reserve(&tokenizer->sizes, &tokenizer->size_room, merges + 1, sizeof *tokenizer->sizes));
    struct sgm__pair *slot = sgm__pairs_add(&tokenizer->tokens, left, right);
    if (slot == NULL)
        return SGM_ERROR_MEMORY;
    if (slot->number != 0)
        return sgm_fail(SGM_ERROR_FORMAT, "the pair %d %d is there twice", left, right);
    slot->number = tokenizer->vocabulary++;
    tokenizer->parts[merges][0] = left;
    tokenizer->parts[merges][1] = right;
    tokenizer->sizes[merges] = size;
    return SGM_OK;
}

sgm_tokenizer *sgm__tokenizer_copy(const sgm_tokenizer *tokenizer)
{
    sgm_tokenizer *copy = sgm_byte_tokenizer();
    for (int64_t i = 0; copy != NULL && i < tokenizer->vocabulary - SGM__BYTES; i++)
        if (sgm__tokenizer_add(copy, tokenizer->parts[i][0], tokenizer->parts[i][1]) != SGM_OK) {
            sgm_tokenizer_free(copy);
            return NULL;
        }
    return copy;
}

/* --- pieces --- */

/* Kinds of bytes, for cutting a text into pieces. Bytes from 128 on belong to characters of other scripts in
 * UTF-8 and count as letters, so that no character is cut in two except at SGM__MAX_PIECE. */
typedef enum kind { SPACE, DIGIT, LETTER, OTHER } kind;

static kind kind_of(unsigned char c)
{
    if (c == ' ' || (c >= '\t' && c <= '\r'))
        return SPACE;
    if (c >= '0' && c <= '9')
        return DIGIT;
    /* from 128 on: parts of letters of other scripts in UTF-8 */
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 128 ? LETTER : OTHER;
}

/* A piece is a run of bytes of one kind, with one space before it if there is one. A run of spaces therefore
 * leaves its last space to the word behind it. */
size_t sgm__piece(const unsigned char *text, size_t left)
{
    size_t begin = left > 1 && text[0] == ' ' && kind_of(text[1]) != SPACE ? 1 : 0, end = begin;
    kind k = kind_of(text[begin]);
    while (end < left && end < SGM__MAX_PIECE && kind_of(text[end]) == k)
        end++;
    /* the space before a word goes with the word */
    if (k == SPACE && end > 1 && end < left && text[end - 1] == ' ')
        end--;
    return end;
}

/* --- bytes to tokens --- */

size_t sgm__merge_pairs(int32_t *tokens, size_t count, int32_t left, int32_t right, int32_t merged)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (i + 1 < count && tokens[i] == left && tokens[i + 1] == right) {
            tokens[kept++] = merged;
            i++;
        } else {
            tokens[kept++] = tokens[i];
        }
    return kept;
}

/* The tokens of a piece: its bytes, in which pairs are merged in the order in which they were learnt, that
 * is, by the lowest token first. Merging in this order gives what learning made of the same piece. `tokens`
 * has room for `size` tokens; returns their number. */
static size_t encode_piece(const sgm_tokenizer *tokenizer, const unsigned char *text, size_t size,
                           int32_t *tokens)
{
    size_t count = size;
    for (size_t i = 0; i < size; i++)
        tokens[i] = text[i];
    while (count > 1) {
        const struct sgm__pair *first = NULL;
        for (size_t i = 0; i + 1 < count; i++) {
            const struct sgm__pair *pair = find_pair(&tokenizer->tokens, tokens[i], tokens[i + 1]);
            if (pair != NULL && (first == NULL || pair->number < first->number))
                first = pair;
        }
        if (first == NULL)
            break;
        count = sgm__merge_pairs(tokens, count, first->left, first->right, (int32_t)first->number);
    }
    return count;
}

/* A text without bytes gives a tensor of no elements, (0). */
sgm_tensor *sgm_tokenizer_encode(const sgm_tokenizer *tokenizer, const void *text, size_t size)
{
    int64_t *all = NULL;
    size_t room = 0, count = 0;
    if (tokenizer == NULL || (text == NULL && size > 0)) {
        sgm_fail(SGM_ERROR_ARGUMENT, "sgm_tokenizer_encode wants a tokenizer and a text, got NULL");
        return NULL;
    }
    for (size_t at = 0; at < size;) {
        int32_t tokens[SGM__MAX_PIECE + 1];
        size_t piece = sgm__piece((const unsigned char *)text + at, size - at);
        size_t made = encode_piece(tokenizer, (const unsigned char *)text + at, piece, tokens);
        if (sgm__reserve(&all, &room, count + made, sizeof *all) != SGM_OK) {
            sgm__free(all);
            return NULL;
        }
        for (size_t i = 0; i < made; i++)
            all[count++] = tokens[i];
        at += piece;
    }
    sgm_shape shape = sgm_shape_of((int64_t)count);
    sgm_tensor *result =
        count > 0 ? sgm_tensor_create_from(SGM_INT64, &shape, all) : sgm_tensor_create(SGM_INT64, &shape);
    sgm__free(all);
    return result;
}

/* --- and back --- */

/* Writes the bytes of a token and returns the end. A token is a binary tree of pairs whose leaves are bytes;
 * the right part waits on a stack while the left one is written. The stack never holds more entries than the
 * token has bytes. */
static char *write_token(const sgm_tokenizer *tokenizer, int64_t token, char *to)
{
    int32_t waiting[SGM__MAX_PIECE + 1];
    size_t count = 0;
    waiting[count++] = (int32_t)token;
    while (count > 0) {
        int32_t next = waiting[--count];
        if (next < SGM__BYTES) {
            *to++ = (char)(unsigned char)next;
            continue;
        }
        waiting[count++] = tokenizer->parts[next - SGM__BYTES][1];
        waiting[count++] = tokenizer->parts[next - SGM__BYTES][0];
    }
    return to;
}

/* Sums up the lengths first, so that one allocation holds the text. */
char *sgm_tokenizer_decode(const sgm_tokenizer *tokenizer, const int64_t *tokens, size_t count, size_t *size)
{
    size_t length = 0;
    if (tokenizer == NULL || (tokens == NULL && count > 0)) {
        sgm_fail(SGM_ERROR_ARGUMENT, "sgm_tokenizer_decode wants a tokenizer and tokens, got NULL");
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        if (tokens[i] < 0 || tokens[i] >= tokenizer->vocabulary) {
            sgm_fail(SGM_ERROR_ARGUMENT, "%lld is no token: there are %lld, numbered from 0",
                     (long long)tokens[i], (long long)tokenizer->vocabulary);
            return NULL;
        }
        length += (size_t)size_of(tokenizer, tokens[i]);
    }
    char *text = sgm__alloc(length + 1), *to = text;
    for (size_t i = 0; i < count && text != NULL; i++)
        to = write_token(tokenizer, tokens[i], to);
    if (text == NULL)
        return NULL;
    *to = '\0';
    if (size != NULL)
        *size = length;
    return text;
}

/* --- files --- */

sgm_status sgm_tokenizer_save(const sgm_tokenizer *tokenizer, const char *path)
{
    sgm__text text = {0};
    if (tokenizer == NULL || path == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_tokenizer_save wants a tokenizer and a path, got NULL");
    sgm__text_append(&text, HEADING "\n");
    for (int64_t i = 0; i < tokenizer->vocabulary - SGM__BYTES; i++)
        sgm__text_append(&text, "%d %d\n", tokenizer->parts[i][0], tokenizer->parts[i][1]);
    size_t length = text.length;
    char *all = sgm__text_take(&text);
    if (all == NULL)
        return sgm__last_failure();
    sgm_status status = sgm__file_write_atomic(path, all, length);
    sgm__free(all);
    return status;
}

/* Reads a decimal number below `below` at *at and moves *at behind it; false if there is none. A digit must
 * come first, as strtol would also take spaces and signs. */
static bool read_token(const char **at, int64_t below, int32_t *token)
{
    char *end;
    if (!sgm__is_digit(**at))
        return false;
    long number = strtol(*at, &end, 10);
    if (number >= below)
        return false;
    *token = (int32_t)number;
    *at = end;
    return true;
}

/* Reads one pair a line. Its tokens must exist already, so a table cannot be circular; sgm__tokenizer_add
 * refuses pairs that come twice or become too long. */
static sgm_status read_pairs(sgm_tokenizer *tokenizer, const char *at)
{
    for (int64_t line = 2; *at != '\0'; line++) {
        int32_t left, right;
        bool right_form = read_token(&at, tokenizer->vocabulary, &left) && *at++ == ' ' &&
                          read_token(&at, tokenizer->vocabulary, &right) && *at++ == '\n';
        if (!right_form)
            return sgm_fail(SGM_ERROR_FORMAT,
                            "line %lld: expected two tokens below %lld with a space between them",
                            (long long)line, (long long)tokenizer->vocabulary);
        if (sgm__tokenizer_add(tokenizer, left, right) != SGM_OK)
            return sgm__fail_within("line %lld", (long long)line);
    }
    return SGM_OK;
}

/* The file is checked throughout, since it may come from anywhere: a zero byte in it, for one, makes strlen
 * differ from length. */
sgm_tokenizer *sgm_tokenizer_load(const char *path)
{
    char *text;
    size_t length;
    if (path == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT, "sgm_tokenizer_load wants a path, got NULL");
        return NULL;
    }
    if (sgm__file_read(path, MAXIMUM_OF_FILE, &text, &length) != SGM_OK)
        return NULL;
    sgm_tokenizer *tokenizer = sgm_byte_tokenizer();
    sgm_status status = tokenizer != NULL ? SGM_OK : sgm__last_failure();
    if (status == SGM_OK && (strlen(text) != length || strncmp(text, HEADING "\n", sizeof HEADING) != 0))
        status = sgm_fail(SGM_ERROR_FORMAT, "this is no tokenizer: its first line is not \"" HEADING "\"");
    if (status == SGM_OK)
        status = read_pairs(tokenizer, text + sizeof HEADING);
    sgm__free(text);
    if (status == SGM_OK)
        return tokenizer;
    sgm__fail_within("%s", path);
    sgm_tokenizer_free(tokenizer);
    return NULL;
}
