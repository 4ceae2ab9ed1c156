/* Tables that are filled once and only read after: tokens by their text, numbers by pairs of numbers, and
 * prefixes. */
#ifndef SIGMA_MODELS_TABLE_H
#define SIGMA_MODELS_TABLE_H

#include "tokenizer/text/buffer.h"

#define SGM__NONE UINT32_MAX
/* Numbers of tokens are below this. */
#define SGM__MOST_TOKENS (1u << 24)

/* --- two numbers by a number of 64 bits, which is not UINT64_MAX --- */
typedef struct sgm__entry {
    uint64_t key; /* UINT64_MAX: free */
    uint32_t first, second;
} sgm__entry;
typedef struct sgm__table {
    sgm__entry *entries;
    size_t mask, count; /* as many entries as mask + 1 */
} sgm__table;

void sgm__table_free(sgm__table *table);
/* The entry of a key: a new one, with SGM__NONE twice, unless it is there. NULL: out of memory. Other entries
 * move. */
sgm__entry *sgm__table_add(sgm__table *table, uint64_t key);
/* The entry of a key; NULL: it is not there. */
static inline const sgm__entry *sgm__table_find(const sgm__table *table, uint64_t key)
{
    uint64_t mixed = (key ^ key >> 32) * 0x9e3779b97f4a7c15u;
    if (!table->entries)
        return NULL;
    for (size_t at = mixed >> 32 & table->mask;; at = (at + 1) & table->mask) {
        if (table->entries[at].key == key)
            return &table->entries[at];
        if (table->entries[at].key == UINT64_MAX)
            return NULL;
    }
}

/* --- tokens: a text for each number, a number for each text --- */
typedef struct sgm__token {
    size_t at;
    uint32_t size; /* SGM__NONE: no token has this number */
} sgm__token;
typedef struct sgm__vocabulary {
    sgm__buffer text;
    sgm__token *tokens; /* `count`, by number */
    size_t count, room;
    uint32_t *slots; /* numbers by hash of the text; as many as mask + 1 */
    size_t mask, used;
} sgm__vocabulary;

void sgm__vocabulary_free(sgm__vocabulary *vocabulary);
/* A token of a number that has none. A text that is there already has the number that came last. */
sgm_status sgm__vocabulary_add(sgm__vocabulary *vocabulary, const char *text, size_t size, uint32_t id);
/* The number of a token; SGM__NONE: there is none. */
uint32_t sgm__vocabulary_find(const sgm__vocabulary *vocabulary, const char *text, size_t size);
/* The text of a token, with a 0 behind; NULL: no token has this number. */
const char *sgm__vocabulary_token(const sgm__vocabulary *vocabulary, uint32_t id, size_t *size);

/* --- texts by what they begin with --- */
typedef struct sgm__trie {
    sgm__table children; /* by node and byte: the node behind */
    uint32_t *values;    /* of nodes; SGM__NONE: no text ends there */
    size_t count, room;
} sgm__trie;

void sgm__trie_free(sgm__trie *trie);
sgm_status sgm__trie_add(sgm__trie *trie, const char *text, size_t size, uint32_t value);
/* The node behind a node (the first one is 0) and a byte; SGM__NONE: no text goes on like this. */
static inline uint32_t sgm__trie_next(const sgm__trie *trie, uint32_t node, char byte)
{
    const sgm__entry *entry = sgm__table_find(&trie->children, (uint64_t)node << 8 | (unsigned char)byte);
    return entry ? entry->first : SGM__NONE;
}

#endif
