/* Gives the blocks of a dataset by index to any thread.
 *
 * Blocks stay in memory up to a limit of bytes; the one that was unused for longest is evicted first. A block
 * that is not in memory is read again by one thread at a time (dataset_extract.c). sgm__dataset_fetch_range
 * is the entry, called by iterators, by prefetch.c and, for their base, by views (dataset_view.c). Creation
 * and options are in dataset_create.c. Any thread may call the public functions: see dataset_internal.h for
 * what the mutex guards, and what the busy thread owns. */
#include "data/dataset_internal.h"
#include "data/read/extractor.h"

/* --- blocks in memory: a list by last use of those nobody uses, under the mutex --- */

/* The list has the blocks in memory that nobody uses, newest first. A block leaves the list when it gets its
 * first user and comes back, as the newest, when its last user releases it; so the order is that of last use.
 * Datasets from memory (no extractor) do not use the list, which keeps their only block from being evicted.
 */
static void list_remove(sgm_dataset *dataset, sgm__block *block)
{
    *(block->newer ? &block->newer->older : &dataset->newest) = block->older;
    *(block->older ? &block->older->newer : &dataset->oldest) = block->newer;
    block->newer = block->older = NULL;
}

static void list_add(sgm_dataset *dataset, sgm__block *block)
{
    block->older = dataset->newest;
    *(dataset->newest ? &dataset->newest->newer : &dataset->oldest) = block;
    dataset->newest = block;
}

static void evict(sgm_dataset *dataset, sgm__block *block)
{
    list_remove(dataset, block);
    dataset->bytes -= sgm__block_bytes(&block->block);
    dataset->slots[block->index].block = NULL;
    sgm_block_free(&block->block);
}

/* Evicts until `bytes` more fit into the limit, or nothing is left to evict. The comparison is written as a
 * subtraction, since dataset->bytes + bytes might overflow. */
void sgm__dataset_make_room(sgm_dataset *dataset, size_t bytes)
{
    while (dataset->oldest && (bytes > dataset->limit || dataset->bytes > dataset->limit - bytes))
        evict(dataset, dataset->oldest);
}

/* Counts one more user of a block. Under the mutex. */
static const sgm_block *use(sgm_dataset *dataset, sgm__block *block)
{
    if (block->users++ == 0 && dataset->extractor)
        list_remove(dataset, block);
    return &block->block;
}

/* Takes a block into memory, at first without users. The slot must exist and have no block. Under the mutex,
 * except while the dataset is being created. */
void sgm__dataset_insert(sgm_dataset *dataset, sgm_block *block, int64_t index)
{
    sgm__block *whole = (sgm__block *)block;
    whole->owner = dataset;
    whole->index = index;
    dataset->slots[index].block = whole;
    dataset->bytes += sgm__block_bytes(block);
    if (dataset->extractor)
        list_add(dataset, whole);
}

/* --- one thread at a time --- */

/* Becomes the busy thread, after waiting for the present one. Holds the mutex before and after. */
static void begin_work(sgm_dataset *dataset)
{
    while (dataset->busy)
        pthread_cond_wait(&dataset->idle, &dataset->mutex);
    dataset->busy = true;
}

static void end_work(sgm_dataset *dataset)
{
    dataset->busy = false;
    pthread_cond_broadcast(&dataset->idle);
}

/* After a failure the extractor's position is unknown, so the next use rewinds it. Names the dataset in the
 * message. */
static sgm_status fail_work(sgm_dataset *dataset)
{
    dataset->position = -1;
    return sgm__fail_within("dataset \"%s\"", dataset->name);
}

/* Waits until block `index` is in memory or known not to exist (false), or until this thread has become the
 * busy one and has to read it (true). Asks again after each wait, since the busy thread may have read this
 * very block. Under the mutex. */
static bool must_read(sgm_dataset *dataset, int64_t index)
{
    for (;;) {
        bool seen = index < (int64_t)dataset->slot_count;
        if ((seen && dataset->slots[index].block) || (!seen && dataset->ended))
            return false;
        if (!dataset->busy) {
            begin_work(dataset);
            return true;
        }
        pthread_cond_wait(&dataset->idle, &dataset->mutex);
    }
}

/* sgm__dataset_fetch_range for a dataset with blocks of its own. The user is counted under the same lock
 * under which the block was inserted, so that no other thread can evict it in between. A failure of another
 * thread's reading is not seen here: this thread then tries by itself. */
static sgm_status own_fetch_range(sgm_dataset *dataset, int64_t index, sgm__example_range *range)
{
    sgm_status status = SGM_OK;
    pthread_mutex_lock(&dataset->mutex);
    if (must_read(dataset, index)) {
        sgm_block *block;
        pthread_mutex_unlock(&dataset->mutex);
        status = sgm__dataset_load(dataset, index, &block);
        if (status != SGM_OK)
            status = fail_work(dataset);
        pthread_mutex_lock(&dataset->mutex);
        if (block)
            sgm__dataset_insert(dataset, block, index);
        end_work(dataset);
    }
    if (status == SGM_OK && index < (int64_t)dataset->slot_count) {
        const sgm_block *block = use(dataset, dataset->slots[index].block);
        *range = (sgm__example_range){dataset, block, 0, block->count};
    }
    pthread_mutex_unlock(&dataset->mutex);
    return status;
}

sgm_status sgm__dataset_fetch_range(sgm_dataset *dataset, int64_t index, sgm__example_range *range)
{
    *range = (sgm__example_range){0};
    if (index < 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "dataset \"%s\": block %lld; the first is 0", dataset->name,
                        (long long)index);
    return dataset->kind == SGM__BLOCKS ? own_fetch_range(dataset, index, range)
                                        : sgm__view_fetch_range(dataset, index, range);
}

/* The last user's release makes the block evictable, or frees it if the dataset's state has changed meanwhile
 * (stale). Blocks in use may have exceeded the limit, so the excess is evicted here, except for the block
 * that was released just now: it is the one most likely to be fetched next, and may alone be larger than the
 * limit. */
void sgm__example_range_release(sgm__example_range *range)
{
    if (!range->block)
        return;
    sgm_dataset *owner = range->owner;
    sgm__block *block = (sgm__block *)(uintptr_t)range->block;
    pthread_mutex_lock(&owner->mutex);
    bool last = --block->users == 0;
    if (last && block->stale) {
        sgm_block_free(&block->block);
    } else if (last && owner->extractor) {
        list_add(owner, block);
        while (owner->bytes > owner->limit && owner->oldest != owner->newest)
            evict(owner, owner->oldest); /* the newest may be all there is, however large */
    }
    pthread_mutex_unlock(&owner->mutex);
    *range = (sgm__example_range){0};
}

/* Reads on until block `index` has a slot, or the end is known; its number of examples is then known even if
 * the block is not kept. Looks again after begin_work, since the thread before may have read as far. */
static sgm_status see_block(sgm_dataset *dataset, int64_t index)
{
    sgm_status status = SGM_OK;
    pthread_mutex_lock(&dataset->mutex);
    while (status == SGM_OK && index >= (int64_t)dataset->slot_count && !dataset->ended) {
        begin_work(dataset);
        if (index >= (int64_t)dataset->slot_count && !dataset->ended) {
            pthread_mutex_unlock(&dataset->mutex);
            status = sgm__dataset_read_past(dataset, index);
            if (status != SGM_OK)
                status = fail_work(dataset);
            pthread_mutex_lock(&dataset->mutex);
        }
        end_work(dataset);
    }
    pthread_mutex_unlock(&dataset->mutex);
    return status;
}

sgm_status sgm__dataset_block_examples(sgm_dataset *dataset, int64_t index, int64_t *examples)
{
    *examples = 0;
    if (dataset->kind != SGM__BLOCKS)
        return sgm__view_block_examples(dataset, index, examples);
    SGM_TRY(see_block(dataset, index));
    pthread_mutex_lock(&dataset->mutex);
    if (index < (int64_t)dataset->slot_count)
        *examples = dataset->slots[index].examples;
    pthread_mutex_unlock(&dataset->mutex);
    return SGM_OK;
}

sgm_status sgm__dataset_number(sgm_dataset *dataset, int64_t index, int64_t row, int64_t *number)
{
    if (dataset->kind != SGM__BLOCKS)
        return sgm__view_number(dataset, index, row, number);
    int64_t examples;
    *number = row;
    for (int64_t i = 0; i < index; i++, *number += examples)
        SGM_TRY(sgm__dataset_block_examples(dataset, i, &examples));
    return SGM_OK;
}

bool sgm__dataset_ends_at(sgm_dataset *dataset, int64_t count)
{
    if (dataset->kind != SGM__BLOCKS)
        return dataset->kind == SGM__VIEW_EXAMPLES && sgm__dataset_ends_at(dataset->base, count);
    pthread_mutex_lock(&dataset->mutex);
    bool ends = dataset->ended && (int64_t)dataset->slot_count <= count;
    pthread_mutex_unlock(&dataset->mutex);
    return ends;
}

sgm_status sgm_dataset_examples(sgm_dataset *dataset, int64_t *examples)
{
    if (!dataset || !examples)
        return sgm__missing_part("sgm_dataset_examples: a dataset and a place for the number");
    int64_t sum = 0, count = 1;
    for (int64_t i = 0; count > 0; i++) {
        SGM_TRY(sgm__dataset_block_examples(dataset, i, &count));
        sum += count;
    }
    *examples = sum;
    return SGM_OK;
}

/* --- what is known of a dataset --- */

sgm_status sgm_dataset_field_shape(sgm_dataset *dataset, const char *field, sgm_shape *shape)
{
    if (!dataset || !field || !shape)
        return sgm__missing_part("sgm_dataset_field_shape: a dataset, a field and a place for the shape");
    while (dataset->base)
        dataset = dataset->base;
    sgm__example_range range;
    SGM_TRY(sgm__dataset_fetch_range(dataset, 0, &range));
    if (!range.block)
        return sgm_fail(SGM_ERROR_NOT_FOUND, "dataset \"%s\" has no examples", dataset->name);
    const sgm_tensor *values = sgm_block_field(range.block, field);
    if (values)
        *shape = sgm__example_shape(values);
    sgm__example_range_release(&range);
    return values ? SGM_OK : sgm__fail_within("dataset \"%s\"", dataset->name);
}

/* The state of adaptive preprocessors, which learn here if nothing was read yet. Called by the busy thread.
 */
static sgm_status own_state(sgm_dataset *dataset, double *numbers, size_t *count)
{
    if (!dataset->extractor) {
        *count = 0;
        return SGM_OK;
    }
    SGM_TRY(sgm__extractor_fit(dataset->extractor, dataset->block_size));
    return sgm__extractor_get_state(dataset->extractor, numbers, count);
}

sgm_status sgm_dataset_get_state(sgm_dataset *dataset, double *numbers, size_t *count)
{
    if (!dataset || !count)
        return sgm__missing_part("sgm_dataset_get_state: a dataset and a place for the count");
    while (dataset->base)
        dataset = dataset->base;
    pthread_mutex_lock(&dataset->mutex);
    begin_work(dataset);
    pthread_mutex_unlock(&dataset->mutex);
    sgm_status status = own_state(dataset, numbers, count);
    if (status != SGM_OK)
        status = fail_work(dataset);
    pthread_mutex_lock(&dataset->mutex);
    end_work(dataset);
    pthread_mutex_unlock(&dataset->mutex);
    return status;
}

/* Forgets all blocks, since they were extracted with another state of the preprocessors. Blocks in use go
 * when their last user releases them; their bytes count no more. Slots keep their numbers of examples, which
 * the state does not change. The cache file is written from its beginning again. Under the mutex, by the busy
 * thread. */
static void drop_blocks(sgm_dataset *dataset)
{
    while (dataset->oldest)
        evict(dataset, dataset->oldest);
    for (size_t i = 0; i < dataset->slot_count; i++) {
        sgm__slot *slot = &dataset->slots[i];
        if (slot->block) {
            slot->block->stale = true;
            dataset->bytes -= sgm__block_bytes(&slot->block->block);
            slot->block = NULL;
        }
        slot->disk = -1;
    }
    dataset->disk_end = 0;
    sgm__kept_free(dataset); /* it is of the other state */
}

/* Holds the mutex while the numbers are set, so no thread fetches a block of the old state in between. A
 * view's state is its base's. */
sgm_status sgm_dataset_set_state(sgm_dataset *dataset, const double *numbers, size_t count)
{
    if (!dataset || (count > 0 && !numbers))
        return sgm__missing_part("sgm_dataset_set_state: a dataset and its numbers");
    while (dataset->base)
        dataset = dataset->base;
    pthread_mutex_lock(&dataset->mutex);
    begin_work(dataset);
    sgm_status status = SGM_OK;
    if (dataset->extractor)
        status = sgm__extractor_set_state(dataset->extractor, numbers, count);
    else if (count > 0)
        status = sgm_fail(SGM_ERROR_FORMAT, "expected no numbers of state, got %zu", count);
    if (status == SGM_OK && count > 0)
        drop_blocks(dataset);
    else if (status != SGM_OK)
        status = fail_work(dataset);
    end_work(dataset);
    pthread_mutex_unlock(&dataset->mutex);
    return status;
}
