#include "tokenizer/text/buffer.h"
#include "tokenizer/text/utf8.h"

#include <stdlib.h>
#include <string.h>

sgm_status sgm__array_reserve(void **array, size_t *room, size_t count, size_t size)
{
    size_t wanted = *room < 16 ? 16 : *room;
    void *grown;

    if (count <= *room && *array)
        return SGM_OK;
    while (wanted < count && wanted <= SIZE_MAX / 2)
        wanted *= 2;
    if (wanted < count || wanted > SIZE_MAX / size || !(grown = realloc(*array, wanted * size)))
        return sgm_fail(SGM_ERROR_MEMORY, "out of memory for %zu elements of %zu bytes of a tokenizer", count,
                        size);
    *array = grown;
    *room = wanted;
    return SGM_OK;
}

void *sgm__allocate_zero(size_t count, size_t size)
{
    void *memory = calloc(count > 0 ? count : 1, size);
    if (!memory)
        sgm_fail(SGM_ERROR_MEMORY, "out of memory for %zu elements of %zu bytes of a tokenizer", count, size);
    return memory;
}

char *sgm__copy_text(const char *text, size_t size)
{
    char *copy = sgm__allocate_zero(size + 1, 1);
    if (copy && size > 0)
        memcpy(copy, text, size);
    return copy;
}

void sgm__buffer_free(sgm__buffer *buffer)
{
    free(buffer->data);
    *buffer = (sgm__buffer){0};
}

sgm_status sgm__buffer_reserve(sgm__buffer *buffer, size_t more)
{
    void *data = buffer->data;
    if (more > SIZE_MAX - buffer->size)
        return sgm_fail(SGM_ERROR_MEMORY, "out of memory for a text of a tokenizer");
    SGM__PASS(sgm__array_reserve(&data, &buffer->room, buffer->size + more, 1));
    buffer->data = data;
    return SGM_OK;
}

sgm_status sgm__buffer_add(sgm__buffer *buffer, const char *text, size_t size)
{
    SGM__PASS(sgm__buffer_reserve(buffer, size));
    if (size > 0)
        memcpy(buffer->data + buffer->size, text, size);
    buffer->size += size;
    return SGM_OK;
}

sgm_status sgm__buffer_put(sgm__buffer *buffer, uint32_t character)
{
    SGM__PASS(sgm__buffer_reserve(buffer, 4));
    buffer->size += sgm__utf8_put(character, buffer->data + buffer->size);
    return SGM_OK;
}

sgm_status sgm__check_growth(size_t before, size_t now)
{
    if (now / 64 <= before + 64)
        return SGM_OK;
    return sgm_fail(
        SGM_ERROR_LIMIT,
        "the tokenizer's steps make over %zu bytes of a text of %zu; its tokenizer.json is no honest one",
        now, before);
}
