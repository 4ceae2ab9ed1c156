/* Declares a hash table that finds entries of an owner's list by their names in constant time. Names stay the
 * owner's. Internal. */
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

/* Whether the name is in the index; *value is then what was given with it: a position in the owner's list, or
 * a pointer. Otherwise *value is undefined. */
bool sgm__name_index_find(const sgm__name_index *index, const char *name, uintptr_t *value);
/* Makes room for `more` further names, whose sgm__name_index_add can then not fail: an owner reserves first
 * and changes its own list afterwards. */
sgm_status sgm__name_index_reserve(sgm__name_index *index, size_t more);
/* `name` must not be in the index yet, and must stay at its address while it is. Room must have been
 * reserved. */
void sgm__name_index_add(sgm__name_index *index, const char *name, uintptr_t value);
/* `name` must be in the index. */
void sgm__name_index_remove(sgm__name_index *index, const char *name);
/* Removes all names, and keeps the memory for later ones. */
void sgm__name_index_clear(sgm__name_index *index);
void sgm__name_index_free(sgm__name_index *index);

#endif
