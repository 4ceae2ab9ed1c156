#include "tokenizer/text/table.h"

#include <stdlib.h>
#include <string.h>

/* --- numbers --- */
void sgm__table_free(sgm__table *table)
{
    free(table->entries);
    *table = (sgm__table){0};
}

static sgm__entry *free_entry(sgm__table *table, uint64_t key)
{
    size_t at = (key ^ key >> 32) * 0x9e3779b97f4a7c15u >> 32 & table->mask;
    while (table->entries[at].key != UINT64_MAX)
        at = (at + 1) & table->mask;
    return &table->entries[at];
}

static bool grow_table(sgm__table *table)
{
    sgm__table grown = {.mask = table->entries ? table->mask * 2 + 1 : 255, .count = table->count};
    grown.entries = sgm__allocate_zero(grown.mask + 1, sizeof *grown.entries);
    if (!grown.entries)
        return false;
    memset(grown.entries, 0xff, (grown.mask + 1) * sizeof *grown.entries);
    for (size_t i = 0; table->entries && i <= table->mask; i++)
        if (table->entries[i].key != UINT64_MAX)
            *free_entry(&grown, table->entries[i].key) = table->entries[i];
    free(table->entries);
    *table = grown;
    return true;
}

sgm__entry *sgm__table_add(sgm__table *table, uint64_t key)
{
    const sgm__entry *known = sgm__table_find(table, key);
    sgm__entry *entry;
    if (known)
        return &table->entries[known - table->entries];
    if ((!table->entries || table->count * 2 > table->mask) && !grow_table(table))
        return NULL;
    table->count++;
    entry = free_entry(table, key);
    entry->key = key;
    return entry;
}

/* --- tokens --- */
static uint64_t hash_of(const char *text, size_t size)
{
    const uint64_t factor = 0x9fb21c651e98df25u;
    uint64_t hash = size * factor, word;
    for (; size >= 8; text += 8, size -= 8) {
        memcpy(&word, text, 8);
        hash = (hash ^ word) * factor;
        hash ^= hash >> 32;
    }
    word = 0;
    memcpy(&word, text, size);
    hash = (hash ^ word) * factor;
    return hash ^ hash >> 32;
}

void sgm__vocabulary_free(sgm__vocabulary *vocabulary)
{
    sgm__buffer_free(&vocabulary->text);
    free(vocabulary->tokens);
    free(vocabulary->slots);
    *vocabulary = (sgm__vocabulary){0};
}

/* The slot of a text, or the free one where it belongs. */
static size_t slot_of(const sgm__vocabulary *vocabulary, const char *text, size_t size)
{
    size_t at = hash_of(text, size) & vocabulary->mask;
    for (;; at = (at + 1) & vocabulary->mask) {
        const uint32_t id = vocabulary->slots[at];
        if (id == SGM__NONE || (vocabulary->tokens[id].size == size &&
                                memcmp(vocabulary->text.data + vocabulary->tokens[id].at, text, size) == 0))
            return at;
    }
}

static sgm_status grow_slots(sgm__vocabulary *vocabulary)
{
    uint32_t *old = vocabulary->slots;
    const size_t old_count = old ? vocabulary->mask + 1 : 0, count = old ? old_count * 2 : 1024;
    uint32_t *slots = sgm__allocate_zero(count, sizeof *slots);
    if (!slots)
        return SGM_ERROR_MEMORY;
    memset(slots, 0xff, count * sizeof *slots);
    vocabulary->slots = slots;
    vocabulary->mask = count - 1;
    for (size_t i = 0; i < old_count; i++)
        if (old[i] != SGM__NONE) {
            const sgm__token *token = &vocabulary->tokens[old[i]];
            slots[slot_of(vocabulary, vocabulary->text.data + token->at, token->size)] = old[i];
        }
    free(old);
    return SGM_OK;
}

sgm_status sgm__vocabulary_add(sgm__vocabulary *vocabulary, const char *text, size_t size, uint32_t id)
{
    void *tokens = vocabulary->tokens;
    const size_t count = (size_t)id + 1, at = vocabulary->text.size;
    size_t slot;

    if (!vocabulary->slots || vocabulary->used * 2 > vocabulary->mask)
        SGM__PASS(grow_slots(vocabulary));
    SGM__PASS(sgm__array_reserve(&tokens, &vocabulary->room, count, sizeof *vocabulary->tokens));
    vocabulary->tokens = tokens;
    for (; vocabulary->count < count; vocabulary->count++)
        vocabulary->tokens[vocabulary->count] = (sgm__token){0, SGM__NONE};
    SGM__PASS(sgm__buffer_add(&vocabulary->text, text, size));
    SGM__PASS(sgm__buffer_add(&vocabulary->text, "", 1));
    slot = slot_of(vocabulary, text, size);
    vocabulary->used += vocabulary->slots[slot] == SGM__NONE;
    vocabulary->slots[slot] = id;
    vocabulary->tokens[id] = (sgm__token){at, (uint32_t)size};
    return SGM_OK;
}

uint32_t sgm__vocabulary_find(const sgm__vocabulary *vocabulary, const char *text, size_t size)
{
    return vocabulary->slots ? vocabulary->slots[slot_of(vocabulary, text, size)] : SGM__NONE;
}

const char *sgm__vocabulary_token(const sgm__vocabulary *vocabulary, uint32_t id, size_t *size)
{
    if (id >= vocabulary->count || vocabulary->tokens[id].size == SGM__NONE)
        return NULL;
    *size = vocabulary->tokens[id].size;
    return vocabulary->text.data + vocabulary->tokens[id].at;
}

/* --- prefixes --- */
void sgm__trie_free(sgm__trie *trie)
{
    sgm__table_free(&trie->children);
    free(trie->values);
    *trie = (sgm__trie){0};
}

static sgm_status add_node(sgm__trie *trie)
{
    void *values = trie->values;
    SGM__PASS(sgm__array_reserve(&values, &trie->room, trie->count + 1, sizeof *trie->values));
    trie->values = values;
    trie->values[trie->count++] = SGM__NONE;
    return SGM_OK;
}

sgm_status sgm__trie_add(sgm__trie *trie, const char *text, size_t size, uint32_t value)
{
    uint32_t node = 0;
    if (trie->count == 0)
        SGM__PASS(add_node(trie));
    for (size_t i = 0; i < size; i++) {
        sgm__entry *entry = sgm__table_add(&trie->children, (uint64_t)node << 8 | (unsigned char)text[i]);
        if (!entry)
            return SGM_ERROR_MEMORY;
        if (entry->first == SGM__NONE) {
            entry->first = (uint32_t)trie->count;
            SGM__PASS(add_node(trie));
        }
        node = entry->first;
    }
    trie->values[node] = value;
    return SGM_OK;
}
