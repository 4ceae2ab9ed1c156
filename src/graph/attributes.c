/* Keeps attributes of instructions once per graph where they are equal.
 *
 * A network says the same in every layer (a factor of the optimiser, a shape), and attributes take 232 bytes,
 * so copies in every instruction would cost a multiple of all else. A hash table with linear probing, at most
 * half full, holds one allocation for each distinct set; instructions point to it, and the address is stable,
 * so that rerecord.c compares pointers. Entries are never removed one by one. */
#include "graph/graph_internal.h"

#define FIRST_SLOTS 16 /* a power of two, as all counts of slots are */

/* Bit for bit: 0 and -0 differ, and a NaN equals itself. */
bool sgm__attributes_equal(const sgm_attributes *a, const sgm_attributes *b)
{
    return a->integer_count == b->integer_count && a->number_count == b->number_count &&
           memcmp(a->integers, b->integers, (size_t)a->integer_count * sizeof(int64_t)) == 0 &&
           memcmp(a->numbers, b->numbers, (size_t)a->number_count * sizeof(double)) == 0;
}

uint64_t sgm__attributes_hash(const sgm_attributes *attributes, uint64_t seed)
{
    uint64_t hash =
        sgm__hash(attributes->integers, (size_t)attributes->integer_count * sizeof(int64_t), seed);
    return sgm__hash(attributes->numbers, (size_t)attributes->number_count * sizeof(double), hash);
}

/* The slot that has equal attributes, or else the free one where they belong. */
static sgm_attributes **find_slot(sgm_attributes **slots, size_t count, const sgm_attributes *attributes)
{
    size_t at = (size_t)sgm__attributes_hash(attributes, 0) & (count - 1);
    while (slots[at] != NULL && !sgm__attributes_equal(slots[at], attributes))
        at = (at + 1) & (count - 1);
    return &slots[at];
}

/* Makes room for one more entry with half of the slots free. */
static sgm_status make_slots(sgm_graph *graph)
{
    if (2 * (graph->attribute_count + 1) <= graph->attribute_slots)
        return SGM_OK;
    size_t count = graph->attribute_slots > 0 ? 2 * graph->attribute_slots : FIRST_SLOTS;
    sgm_attributes **slots = sgm__calloc(count, sizeof *slots);
    if (slots == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < graph->attribute_slots; i++)
        if (graph->attributes[i] != NULL)
            *find_slot(slots, count, graph->attributes[i]) = graph->attributes[i];
    sgm__free(graph->attributes);
    graph->attributes = slots;
    graph->attribute_slots = count;
    return SGM_OK;
}

/* No attributes at all, the most frequent case, is one static value. */
const sgm_attributes *sgm__graph_attributes(sgm_graph *graph, const sgm_attributes *given)
{
    static const sgm_attributes none = {0};
    if (given == NULL || (given->integer_count == 0 && given->number_count == 0))
        return &none;
    if (given->integer_count < 0 || given->integer_count > SGM_MAX_INTEGERS || given->number_count < 0 ||
        given->number_count > SGM_MAX_NUMBERS) {
        sgm_fail(SGM_ERROR_ARGUMENT, "attributes have up to %d integers and %d numbers, not %d and %d",
                 SGM_MAX_INTEGERS, SGM_MAX_NUMBERS, given->integer_count, given->number_count);
        return NULL;
    }
    if (make_slots(graph) != SGM_OK)
        return NULL;
    sgm_attributes **slot = find_slot(graph->attributes, graph->attribute_slots, given);
    if (*slot != NULL)
        return *slot;
    if ((*slot = sgm__alloc(sizeof **slot)) == NULL)
        return NULL;
    **slot = *given;
    graph->attribute_count++;
    return *slot;
}

void sgm__graph_free_attributes(sgm_graph *graph)
{
    for (size_t i = 0; i < graph->attribute_slots; i++)
        sgm__free(graph->attributes[i]);
    sgm__free(graph->attributes);
    graph->attributes = NULL;
    graph->attribute_slots = graph->attribute_count = 0;
}
