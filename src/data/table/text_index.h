/* Finds texts of cells in a list: a hash table for whoever looks up hundreds of millions of them. Internal to
 * src/data/table.
 *
 * Unlike sgm__name_index it takes the length of a text, which splitting a row has found already, and goes
 * through texts word by word. Texts stay the owner's, each at its address. */
#ifndef SGM_DATA_TABLE_TEXT_INDEX_H
#define SGM_DATA_TABLE_TEXT_INDEX_H

#include "base/base.h"

/* Zeroed: empty. */
typedef struct sgm__text_index {
    struct sgm__indexed_text {
        const char *text;
        uint64_t head; /* its first bytes, which tell most texts apart */
        uint32_t length, hash;
    } * texts; /* in the order in which they were added */
    size_t count, capacity;
    uint32_t *places;   /* of texts, from 1; 0: free. At most half are taken. */
    size_t place_count; /* a power of two, or 0 */
} sgm__text_index;

/* Whether the text is there; *at becomes its place in the order of adding, from 0. */
bool sgm__text_index_find(const sgm__text_index *index, const char *text, size_t length, size_t *at);
/* The text must not be there yet. */
sgm_status sgm__text_index_add(sgm__text_index *index, const char *text, size_t length);
void sgm__text_index_free(sgm__text_index *index);

#endif
