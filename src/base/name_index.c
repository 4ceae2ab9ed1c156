/* Implements a hash table from names to values, with linear probing (Knuth, The Art of Computer Programming,
 * volume 3, section 6.4).
 *
 * A name lies in the first free slot from its hash's slot on, so a search ends at the first free slot; the
 * table is at most half full, so there always is one. Names are not copied: each must outlive its entry, at
 * the same address. Sessions index their states this way, registries their entries, bundles their tensors and
 * networks their parameters. */
#include "base/name_index.h"

#define FIRST_CAPACITY 16 /* a power of two, as all capacities are */

static size_t first_slot(const sgm__name_index *index, const char *name)
{
    return (size_t)sgm__hash_text(name) & (index->capacity - 1);
}

/* The slot that has the name, else the free one where it belongs. */
static size_t find_slot(const sgm__name_index *index, const char *name)
{
    size_t at = first_slot(index, name);
    while (index->slots[at].name != NULL && strcmp(index->slots[at].name, name) != 0)
        at = (at + 1) & (index->capacity - 1);
    return at;
}

bool sgm__name_index_find(const sgm__name_index *index, const char *name, uintptr_t *value)
{
    if (index->count == 0)
        return false;
    const sgm__name_slot *slot = &index->slots[find_slot(index, name)];
    *value = slot->value;
    return slot->name != NULL;
}

/* Doubles the capacity until at most half of the slots will be taken, and puts all names into a new array:
 * their slots depend on the capacity. On failure the table is as before. */
sgm_status sgm__name_index_reserve(sgm__name_index *index, size_t more)
{
    sgm__name_index larger = {.count = index->count,
                              .capacity = index->capacity > 0 ? index->capacity : FIRST_CAPACITY};
    while (larger.capacity / 2 < index->count + more)
        larger.capacity *= 2;
    if (larger.capacity == index->capacity)
        return SGM_OK;
    larger.slots = sgm__calloc(larger.capacity, sizeof *larger.slots);
    if (larger.slots == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < index->capacity; i++)
        if (index->slots[i].name != NULL)
            larger.slots[find_slot(&larger, index->slots[i].name)] = index->slots[i];
    sgm__free(index->slots);
    *index = larger;
    return SGM_OK;
}

void sgm__name_index_add(sgm__name_index *index, const char *name, uintptr_t value)
{
    index->slots[find_slot(index, name)] = (sgm__name_slot){name, value};
    index->count++;
}

/* Moves later names of the same cluster into the hole, as a search must not meet a free slot before its name:
 * a name may move if its own first slot does not lie after the hole (all distances modulo the capacity).
 * Leaving marks for deleted names instead would slow every later search down. */
void sgm__name_index_remove(sgm__name_index *index, const char *name)
{
    size_t mask = index->capacity - 1, hole = find_slot(index, name);
    for (size_t at = (hole + 1) & mask; index->slots[at].name != NULL; at = (at + 1) & mask) {
        size_t wanted = first_slot(index, index->slots[at].name);
        if (((at - wanted) & mask) < ((at - hole) & mask))
            continue;
        index->slots[hole] = index->slots[at];
        hole = at;
    }
    index->slots[hole] = (sgm__name_slot){0};
    index->count--;
}

void sgm__name_index_clear(sgm__name_index *index)
{
    if (index->count > 0)
        memset(index->slots, 0, index->capacity * sizeof *index->slots);
    index->count = 0;
}

void sgm__name_index_free(sgm__name_index *index)
{
    sgm__free(index->slots);
    *index = (sgm__name_index){0};
}
