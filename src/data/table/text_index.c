/* A hash table with linear probing: see text_index.h. */
#include "data/table/text_index.h"

#define FIRST_PLACES 32 /* a power of two */

static inline uint64_t load_8(const char *text)
{
    uint64_t word;
    memcpy(&word, text, sizeof word);
    return word;
}

static inline uint64_t load_4(const char *text)
{
    uint32_t word;
    memcpy(&word, text, sizeof word);
    return word;
}

/* The first 8 bytes of a text, or, if it is shorter, something that tells it from others of its length. */
static inline uint64_t load_head(const char *text, size_t length)
{
    if (length >= 8)
        return load_8(text);
    if (length >= 4)
        return load_4(text) << 32 | load_4(text + length - 4);
    if (length == 0)
        return 0;
    return (uint64_t)(unsigned char)text[0] << 16 | (uint64_t)(unsigned char)text[length / 2] << 8 |
           (unsigned char)text[length - 1];
}

/* Words are multiplied in by an odd number with its bits all over; the high bits of a product, which depend
 * on all others, are moved down. */
static inline uint64_t mix(uint64_t hash, uint64_t word)
{
    return (hash ^ hash >> 32 ^ word) * UINT64_C(0x9e3779b97f4a7c15); /* 2^64 divided by the golden ratio */
}

static inline uint32_t hash_text(const char *text, size_t length, uint64_t head)
{
    uint64_t hash = mix(length, head);
    for (size_t at = 8; at + 8 < length; at += 8)
        hash = mix(hash, load_8(text + at));
    if (length > 8)
        hash = mix(hash, load_8(text + length - 8));
    return (uint32_t)(hash >> 32);
}

/* Whether two texts of this length, with the same head, are the same. */
static inline bool is_equal(const char *a, const char *b, size_t length)
{
    for (size_t at = 8; at + 8 < length; at += 8)
        if (load_8(a + at) != load_8(b + at))
            return false;
    return length <= 8 || load_8(a + length - 8) == load_8(b + length - 8);
}

/* Where the text is, or, with 0 there, where it belongs. */
static inline uint32_t *find_place(const sgm__text_index *index, const char *text, size_t length,
                                   uint64_t head, uint32_t hash)
{
    size_t mask = index->place_count - 1, at = hash & mask;
    for (; index->places[at] != 0; at = (at + 1) & mask) {
        const struct sgm__indexed_text *known = &index->texts[index->places[at] - 1];
        if (known->head == head && known->length == length && is_equal(known->text, text, length))
            break;
    }
    return &index->places[at];
}

bool sgm__text_index_find(const sgm__text_index *index, const char *text, size_t length, size_t *at)
{
    if (index->count == 0)
        return false;
    uint64_t head = load_head(text, length);
    uint32_t place = *find_place(index, text, length, head, hash_text(text, length, head));
    *at = (size_t)place - 1;
    return place != 0;
}

/* Doubles the table when it is half full. */
static sgm_status reserve_place(sgm__text_index *index)
{
    size_t count = index->place_count > 0 ? 2 * index->place_count : FIRST_PLACES;
    if (2 * (index->count + 1) <= index->place_count)
        return SGM_OK;
    uint32_t *places = sgm__calloc(count, sizeof *places);
    if (places == NULL)
        return SGM_ERROR_MEMORY;
    sgm__free(index->places);
    index->places = places;
    index->place_count = count;
    for (size_t i = 0; i < index->count; i++) {
        const struct sgm__indexed_text *text = &index->texts[i];
        *find_place(index, text->text, text->length, text->head, text->hash) = (uint32_t)i + 1;
    }
    return SGM_OK;
}

sgm_status sgm__text_index_add(sgm__text_index *index, const char *text, size_t length)
{
    uint64_t head = load_head(text, length);
    uint32_t hash = hash_text(text, length, head);
    SGM_TRY(reserve_place(index));
    SGM_TRY(sgm__reserve(&index->texts, &index->capacity, index->count + 1, sizeof *index->texts));
    *find_place(index, text, length, head, hash) = (uint32_t)index->count + 1;
    index->texts[index->count++] =
        (struct sgm__indexed_text){.text = text, .head = head, .length = (uint32_t)length, .hash = hash};
    return SGM_OK;
}

void sgm__text_index_free(sgm__text_index *index)
{
    sgm__free(index->texts);
    sgm__free(index->places);
    *index = (sgm__text_index){0};
}
