/* Finds things by their names in constant time. The names stay their owner's. Internal. */
#ifndef SGM_BASE_NAME_INDEX_H
#define SGM_BASE_NAME_INDEX_H

#include "base/base.h"

typedef struct sgm__name_slot {
    const char *name; /* NULL: free */
    uintptr_t value;
} sgm__name_slot;

/* A hash table with open addressing, at most half full; zeroed, it is empty. */
typedef struct sgm__name_index {
    sgm__name_slot *slots;
    size_t count, capacity;
} sgm__name_index;

/* Whether the name is there; *value is what was given with it, a place in the owner's list or a pointer. */
bool sgm__name_index_find(const sgm__name_index *index, const char *name, uintptr_t *value);
/* Makes room for so many more names, which can then be added without failing. */
sgm_status sgm__name_index_reserve(sgm__name_index *index, size_t more);
/* `name` must not be in the index yet, and must stay where it is while it is. Room was reserved. */
void sgm__name_index_add(sgm__name_index *index, const char *name, uintptr_t value);
/* `name` is in the index. */
void sgm__name_index_remove(sgm__name_index *index, const char *name);
/* Empty again; clearing keeps the memory for the names to come. */
void sgm__name_index_clear(sgm__name_index *index);
void sgm__name_index_free(sgm__name_index *index);

#endif
