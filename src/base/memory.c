/* Every allocation of the library goes through this file, to the allocator that the program may set
 * (sgm_set_allocator).
 *
 * A failed allocation sets the thread's error (sgm__fail_memory) and returns NULL; nothing here aborts.
 * Because all allocations pass sgm__realloc, tests can make the n-th one fail and look for leaks. The
 * allocator is two functions like realloc and free, which know no alignment and no zeroing: both are made
 * here. There is no lock: the allocator is set once, before the first other call. */
#include "base/base.h"

#include <stdlib.h>

#define ALIGNMENT 64 /* bytes: a cache line, and the widest vector (AVX-512) */

static void *default_reallocate(void *user, void *memory, size_t size)
{
    (void)user;
    return realloc(memory, size);
}

static void default_release(void *user, void *memory)
{
    (void)user;
    free(memory);
}

static const sgm_allocator default_allocator = {default_reallocate, default_release, NULL};
static sgm_allocator allocator = {default_reallocate, default_release, NULL};

void sgm_set_allocator(const sgm_allocator *chosen)
{
    allocator = chosen ? *chosen : default_allocator;
}

bool sgm__mul_overflows(size_t a, size_t b, size_t *product)
{
    return __builtin_mul_overflow(a, b, product);
}

bool sgm__add_overflows(size_t a, size_t b, size_t *sum)
{
    return __builtin_add_overflow(a, b, sum);
}

/* Asks for at least 1 byte, so that NULL always means failure. */
void *sgm__realloc(void *memory, size_t size)
{
    /* Sizes beyond PTRDIFF_MAX are always mistakes, and would break pointer differences. */
    void *grown = NULL;
    if (size <= PTRDIFF_MAX)
        grown = allocator.reallocate(allocator.user, memory, size > 0 ? size : 1);
    if (!grown)
        sgm__fail_memory(size);
    return grown;
}

void *sgm__alloc(size_t size)
{
    return sgm__realloc(NULL, size);
}

/* Zeroed here, since the program's allocator has no calloc; the product is checked for overflow. */
void *sgm__calloc(size_t count, size_t size)
{
    size_t bytes;
    if (sgm__mul_overflows(count, size, &bytes)) {
        sgm__fail_memory(SIZE_MAX);
        return NULL;
    }
    void *memory = sgm__alloc(bytes);
    if (memory)
        memset(memory, 0, bytes);
    return memory;
}

void sgm__free(void *memory)
{
    if (memory)
        allocator.release(allocator.user, memory);
}

/* Takes more than asked for and returns the first aligned address that leaves room for a pointer before it.
 * There lies the allocator's own pointer, which sgm__free_aligned needs. */
static void *allocate_aligned(size_t size, void *(*allocate)(size_t bytes))
{
    size_t bytes;
    if (sgm__add_overflows(size, ALIGNMENT + sizeof(void *), &bytes)) {
        sgm__fail_memory(size);
        return NULL;
    }
    char *memory = allocate(bytes);
    if (!memory)
        return NULL;
    uintptr_t first = (uintptr_t)memory + sizeof(void *);
    char *aligned = memory + sizeof(void *) + (ALIGNMENT - first % ALIGNMENT) % ALIGNMENT;
    memcpy(aligned - sizeof(void *), &memory, sizeof(void *));
    return aligned;
}

void *sgm__alloc_aligned(size_t size)
{
    return allocate_aligned(size, sgm__alloc);
}

/* The C library knows which of its memory is new from the system, and zero without being written: pages of it
 * that nobody writes later take no memory. */
static void *allocate_zeroed(size_t bytes)
{
    if (allocator.reallocate != default_reallocate || bytes > PTRDIFF_MAX)
        return sgm__calloc(1, bytes);
    void *memory = calloc(1, bytes);
    if (memory == NULL)
        sgm__fail_memory(bytes);
    return memory;
}

void *sgm__calloc_aligned(size_t size)
{
    return allocate_aligned(size, allocate_zeroed);
}

void sgm__free_aligned(void *memory)
{
    if (!memory)
        return;
    void *original;
    memcpy(&original, (char *)memory - sizeof(void *), sizeof(void *));
    sgm__free(original);
}

/* Grows by half and 8 entries, so that appending n entries copies O(n) in total. `*items` is read and written
 * with memcpy because the pointer's type is unknown here: a cast to void ** would break the aliasing rules.
 */
sgm_status sgm__reserve(void *items, size_t *capacity, size_t needed, size_t size)
{
    if (needed <= *capacity)
        return SGM_OK;
    size_t grown, bytes;
    if (sgm__add_overflows(*capacity, *capacity / 2 + 8, &grown) || grown < needed)
        grown = needed;
    if (sgm__mul_overflows(grown, size, &bytes))
        return sgm__fail_memory(SIZE_MAX);
    void *memory;
    memcpy(&memory, items, sizeof memory);
    memory = sgm__realloc(memory, bytes);
    if (!memory)
        return SGM_ERROR_MEMORY;
    memcpy(items, &memory, sizeof memory);
    *capacity = grown;
    return SGM_OK;
}

/* Copies up to `length` bytes or to the text's end, whichever comes first. */
char *sgm__strndup(const char *text, size_t length)
{
    if (!text)
        return NULL;
    const char *end = memchr(text, '\0', length);
    if (end)
        length = (size_t)(end - text);
    if (length == SIZE_MAX) {
        sgm__fail_memory(length);
        return NULL;
    }
    char *copy = sgm__alloc(length + 1);
    if (!copy)
        return NULL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

char *sgm__strdup(const char *text)
{
    return text ? sgm__strndup(text, strlen(text)) : NULL;
}
