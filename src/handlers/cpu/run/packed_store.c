/* Keeps what kernels made of constants; packed_store.h says how.
 *
 * Bytes of one size are compared one with the other, which mostly ends in their first numbers. */
#include "handlers/cpu/run/packed_store.h"

#include "handlers/host.h"

/* A new block is as large as all before it, so that there are few, but no larger than this, unless one
 * packing is. */
#define LARGEST_BLOCK ((size_t)32 << 20)

typedef struct block {
    unsigned char *memory; /* NULL: the place in the list is free */
    size_t size;
    size_t entries; /* that lie in it */
} block;

typedef struct entry {
    unsigned char *bytes;
    size_t size, block;
    size_t users;
} entry;

struct sgm__packed_store {
    pthread_mutex_t busy;
    entry *entries;
    size_t entry_count, entry_capacity;
    block *blocks;
    size_t block_count, block_capacity;
    size_t bytes; /* of all blocks */
    /* The block that is being filled has `room` bytes left at `free`; NULL: there is none. */
    size_t newest;
    unsigned char *free;
    size_t room;
};

sgm__packed_store *sgm__packed_store_create(void)
{
    sgm__packed_store *store = sgm__calloc(1, sizeof *store);
    if (store != NULL)
        pthread_mutex_init(&store->busy, NULL);
    return store;
}

void sgm__packed_store_free(sgm__packed_store *store)
{
    if (store == NULL)
        return;
    for (size_t i = 0; i < store->block_count; i++)
        sgm__host_release(NULL, store->blocks[i].memory);
    pthread_mutex_destroy(&store->busy);
    sgm__free(store->blocks);
    sgm__free(store->entries);
    sgm__free(store);
}

size_t sgm__packed_store_bytes(sgm__packed_store *store)
{
    pthread_mutex_lock(&store->busy);
    size_t bytes = store->bytes;
    pthread_mutex_unlock(&store->busy);
    return bytes;
}

/* --- blocks --- */

static size_t free_place(const sgm__packed_store *store)
{
    size_t i = 0;
    while (i < store->block_count && store->blocks[i].memory != NULL)
        i++;
    return i;
}

static sgm_status add_block(sgm__packed_store *store, size_t bytes)
{
    size_t size = store->bytes < LARGEST_BLOCK ? store->bytes : LARGEST_BLOCK, at = free_place(store);
    void *memory;
    size = size > bytes ? size : bytes;
    SGM_TRY(sgm__reserve(&store->blocks, &store->block_capacity, at + 1, sizeof *store->blocks));
    SGM_TRY(sgm__host_allocate(NULL, size, &memory));
    store->blocks[at] = (block){.memory = memory, .size = size};
    store->block_count = at < store->block_count ? store->block_count : at + 1;
    store->bytes += size;
    store->newest = at;
    store->free = memory;
    store->room = size;
    return SGM_OK;
}

static void remove_block(sgm__packed_store *store, size_t at)
{
    sgm__host_release(NULL, store->blocks[at].memory);
    store->bytes -= store->blocks[at].size;
    store->blocks[at] = (block){0};
    if (store->newest == at) {
        store->free = NULL;
        store->room = 0;
    }
}

/* --- taking and releasing --- */

static entry *find_equal(const sgm__packed_store *store, const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < store->entry_count; i++)
        if (store->entries[i].size == size && memcmp(store->entries[i].bytes, bytes, size) == 0)
            return &store->entries[i];
    return NULL;
}

/* What was packed at `free` is not kept: the next one finds zeros there. */
static void give_back(sgm__packed_store *store, size_t size)
{
    if (store->blocks[store->newest].entries == 0)
        remove_block(store, store->newest);
    else
        memset(store->free, 0, size);
}

/* Packs into the room at `free`, and keeps that unless there is an equal one. */
static sgm_status take(sgm__packed_store *store, const sgm__cpu_kernel *kernel, const sgm__cpu_call *call,
                       size_t size, const unsigned char **packed)
{
    SGM_TRY(sgm__reserve(&store->entries, &store->entry_capacity, store->entry_count + 1,
                         sizeof *store->entries));
    if (store->free == NULL || size > store->room)
        SGM_TRY(add_block(store, size));
    sgm_status status = kernel->pack(call, store->free);
    entry *known = status == SGM_OK ? find_equal(store, store->free, size) : NULL;
    if (status != SGM_OK || known != NULL) {
        give_back(store, size);
        SGM_TRY(status);
        known->users++;
        *packed = known->bytes;
        return SGM_OK;
    }
    store->entries[store->entry_count++] = (entry){store->free, size, store->newest, 1};
    store->blocks[store->newest].entries++;
    *packed = store->free;
    store->free += size;
    store->room -= size;
    return SGM_OK;
}

sgm_status sgm__packed_store_take(sgm__packed_store *store, const sgm__cpu_kernel *kernel,
                                  const sgm__cpu_call *call, size_t size, const unsigned char **packed)
{
    pthread_mutex_lock(&store->busy);
    sgm_status status = take(store, kernel, call, sgm__align(size), packed);
    pthread_mutex_unlock(&store->busy);
    return status;
}

void sgm__packed_store_release(sgm__packed_store *store, const unsigned char *packed)
{
    pthread_mutex_lock(&store->busy);
    size_t i = 0;
    while (store->entries[i].bytes != packed)
        i++;
    entry *released = &store->entries[i];
    if (--released->users == 0) {
        size_t at = released->block;
        *released = store->entries[--store->entry_count];
        if (--store->blocks[at].entries == 0)
            remove_block(store, at);
    }
    pthread_mutex_unlock(&store->busy);
}
