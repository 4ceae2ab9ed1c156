/* Gives the blocks of a dataset by index, from memory, from a cache file or from the source.
 *
 * Blocks stay in memory up to a limit of bytes; the one that was unused for longest is evicted first. A block
 * that is not in memory is read from the cache file if there is one (dataset_cache.c), else extracted again.
 * An extractor only goes forward, so going back to an earlier block means rewinding the source and skipping
 * the blocks before. sgm__dataset_fetch_range is the entry, called by iterators, by prefetch.c and, for their
 * base, by views (dataset_view.c). Creation and options are in dataset_create.c, extraction itself in
 * read/extractor.c. Any thread may call the public functions: see dataset_internal.h for what the mutex
 * guards, and what the busy thread owns. */
#include "data/dataset_internal.h"
#include "data/read/extractor.h"
#include "data/read/source.h"

/* The size of a block that was not asked for: as many examples as fit in BLOCK_BYTES, and no more than
 * MAXIMUM_EXAMPLES, so that tables with few columns come in blocks, too. A shuffled order mixes blocks and
 * the examples in a block: large blocks mix better, small ones let more than one fit in memory. */
#define MAXIMUM_EXAMPLES 65536
#define BLOCK_BYTES ((size_t)32 << 20)

/* --- layout --- */

static void learn_layout(sgm__layout *layout, const sgm_block *block)
{
    layout->field_count = block->field_count;
    layout->example_bytes = sgm__block_bytes(block) / (size_t)block->count;
    for (int32_t i = 0; i < block->field_count; i++) {
        memcpy(layout->names[i], block->fields[i].name, SGM__FIELD_NAME);
        layout->examples[i] = sgm__example_shape(block->fields[i].values);
    }
}

/* Makes all fields of a new block contiguous, and checks that names and example shapes are those of the
 * blocks before. Everything behind the dataset relies on it: iterators copy rows with memcpy, the cache file
 * has no headers. */
static sgm_status settle_block(sgm_dataset *dataset, sgm_block *block, int64_t index)
{
    const sgm__layout *layout = &dataset->layout;
    if (layout->field_count > 0 && layout->field_count != block->field_count)
        return sgm_fail(SGM_ERROR_FORMAT, "block %lld has %d fields, those before have %d", (long long)index,
                        (int)block->field_count, (int)layout->field_count);
    for (int32_t i = 0; i < block->field_count; i++) {
        sgm_field *field = &block->fields[i];
        float *values;
        SGM_TRY(sgm__field_values(field, &values));
        sgm_shape example = sgm__example_shape(field->values);
        if (layout->field_count > 0 && (strcmp(layout->names[i], field->name) != 0 ||
                                        !sgm_shape_equal(&layout->examples[i], &example))) {
            char now[128], before[128];
            return sgm_fail(
                SGM_ERROR_FORMAT,
                "block %lld has examples %s in field \"%s\", where those before have %s in \"%s\"",
                (long long)index, sgm_shape_text(&example, now, sizeof now), field->name,
                sgm_shape_text(&layout->examples[i], before, sizeof before), layout->names[i]);
        }
    }
    return SGM_OK;
}

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
static void make_room(sgm_dataset *dataset, size_t bytes)
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
static void insert(sgm_dataset *dataset, sgm_block *block, int64_t index)
{
    sgm__block *whole = (sgm__block *)block;
    whole->owner = dataset;
    whole->index = index;
    dataset->slots[index].block = whole;
    dataset->bytes += sgm__block_bytes(block);
    if (dataset->extractor)
        list_add(dataset, whole);
}

/* --- extraction, by the one thread that is busy --- */

/* Fixes how many examples make a block, by extracting one example as a probe where no size was asked for.
 * Adaptive preprocessors learn first (sgm__extractor_fit): that goes over the whole source and rewinds it,
 * which must not happen in the middle of a pass. */
static sgm_status choose_block_size(sgm_dataset *dataset)
{
    SGM_TRY(sgm__extractor_fit(dataset->extractor, dataset->block_size));
    if (dataset->block_size > 0)
        return SGM_OK;
    sgm_block *probe;
    SGM_TRY(sgm_extractor_extract(dataset->extractor, 1, &probe));
    size_t bytes = probe ? sgm__block_bytes(probe) / (size_t)probe->count : 1;
    sgm_block_free(probe);
    SGM_TRY(sgm_extractor_rewind(dataset->extractor));
    dataset->block_size = sgm__examples_in(BLOCK_BYTES, bytes, MAXIMUM_EXAMPLES);
    return SGM_OK;
}

/* Bytes of a block that is not read yet, for making room before: a full block, but no more than the limit. */
static size_t expected_bytes(const sgm_dataset *dataset)
{
    size_t bytes = dataset->layout.example_bytes;
    if (bytes == 0)
        return BLOCK_BYTES;
    return dataset->block_size > (int64_t)(dataset->limit / bytes) ? dataset->limit
                                                                   : (size_t)dataset->block_size * bytes;
}

/* Makes the slot of block `index`, which has just been read. A block that had been read before must have as
 * many examples as then: other numbers mean that the source has changed, and orders and positions that were
 * computed would be wrong. Blocks are read in order, so a new index is always slot_count. Under the mutex,
 * except while the dataset is being created. */
static sgm_status add_slot(sgm_dataset *dataset, int64_t index, int64_t examples)
{
    if (index < (int64_t)dataset->slot_count)
        return dataset->slots[index].examples == examples
                   ? SGM_OK
                   : sgm_fail(
                         SGM_ERROR_FORMAT, "block %lld has %lld examples, but %lld when it was read before",
                         (long long)index, (long long)examples, (long long)dataset->slots[index].examples);
    SGM_TRY(sgm__reserve(&dataset->slots, &dataset->slot_capacity, (size_t)index + 1, sizeof(sgm__slot)));
    dataset->slots[index] = (sgm__slot){.examples = examples, .disk = -1};
    dataset->slot_count = (size_t)index + 1;
    return SGM_OK;
}

static void note_end(sgm_dataset *dataset)
{
    pthread_mutex_lock(&dataset->mutex);
    dataset->ended = true;
    pthread_mutex_unlock(&dataset->mutex);
    sgm__kept_advance(dataset);
}

/* Makes an extracted block known: checks it, makes its slot, and writes it to the cache file unless it is
 * there already. The write happens outside the mutex, so that threads that need blocks in memory go on. */
static sgm_status register_block(sgm_dataset *dataset, sgm_block *block, int64_t index)
{
    SGM_TRY(settle_block(dataset, block, index));
    if (dataset->layout.field_count == 0)
        learn_layout(&dataset->layout, block);
    pthread_mutex_lock(&dataset->mutex);
    sgm_status status = add_slot(dataset, index, block->count);
    bool stored = status == SGM_OK && dataset->slots[index].disk >= 0;
    pthread_mutex_unlock(&dataset->mutex);
    if (status != SGM_OK || stored || !dataset->cache)
        return status;
    int64_t where;
    uint64_t check;
    sgm__cache_write(dataset, block, &where, &check);
    pthread_mutex_lock(&dataset->mutex);
    dataset->slots[index].disk = where;
    dataset->slots[index].check = check;
    pthread_mutex_unlock(&dataset->mutex);
    sgm__kept_advance(dataset);
    return SGM_OK;
}

/* Extracts the block at dataset->position; *block is NULL at the end of the source. Called by the busy
 * thread. */
static sgm_status extract_next(sgm_dataset *dataset, sgm_block **block)
{
    SGM_TRY(sgm_extractor_extract(dataset->extractor, dataset->block_size, block));
    if (!*block) {
        note_end(dataset);
        return SGM_OK;
    }
    sgm_status status = register_block(dataset, *block, dataset->position);
    if (status == SGM_OK) {
        dataset->position++;
        return SGM_OK;
    }
    sgm_block_free(*block);
    *block = NULL;
    return status;
}

/* Moves the extractor past one block without making it: the source is read, but nothing is converted to
 * float32, preprocessed or copied. Called by the busy thread. */
static sgm_status skip_next(sgm_dataset *dataset)
{
    int64_t examples;
    SGM_TRY(sgm__extractor_skip(dataset->extractor, dataset->block_size, &examples));
    if (examples == 0) {
        note_end(dataset);
        return SGM_OK;
    }
    pthread_mutex_lock(&dataset->mutex);
    sgm_status status = add_slot(dataset, dataset->position, examples);
    pthread_mutex_unlock(&dataset->mutex);
    if (status == SGM_OK)
        dataset->position++;
    return status;
}

/* Moves the extractor past one block on the way to another one. The block is extracted and kept if that
 * evicts no other block, and extracted and written if there is a cache; it is skipped if it is in memory or
 * in the cache, or would find no room. The first block of all is always extracted, since the layout is learnt
 * from it. */
static sgm_status pass_next(sgm_dataset *dataset)
{
    pthread_mutex_lock(&dataset->mutex);
    const sgm__slot *slot =
        dataset->position < (int64_t)dataset->slot_count ? &dataset->slots[dataset->position] : NULL;
    bool there = slot && (slot->block || slot->disk >= 0);
    bool room = dataset->bytes + expected_bytes(dataset) <= dataset->limit;
    pthread_mutex_unlock(&dataset->mutex);
    if (there || (!room && !dataset->cache && dataset->layout.field_count > 0))
        return skip_next(dataset);
    int64_t index = dataset->position;
    sgm_block *block;
    SGM_TRY(extract_next(dataset, &block));
    if (!block)
        return SGM_OK;
    pthread_mutex_lock(&dataset->mutex);
    if (dataset->bytes + sgm__block_bytes(block) <= dataset->limit)
        insert(dataset, block, index);
    else
        sgm_block_free(block);
    pthread_mutex_unlock(&dataset->mutex);
    return SGM_OK;
}

/* True if the end of the source is known and block `index` lies behind it. */
static bool has_ended_before(sgm_dataset *dataset, int64_t index)
{
    pthread_mutex_lock(&dataset->mutex);
    bool ended = dataset->ended && index >= (int64_t)dataset->slot_count;
    pthread_mutex_unlock(&dataset->mutex);
    return ended;
}

/* Restarts the extractor at block 0. `position` is -1 meanwhile, so that a failure leaves it unknown. Tells
 * the user once if the reason is that blocks were evicted: a cache folder saves reading the source over and
 * over. */
static sgm_status rewind_source(sgm_dataset *dataset, int64_t index)
{
    if (dataset->position > index && index > 0 && !dataset->told_of_rereading) {
        dataset->told_of_rereading = true;
        sgm__log(SGM_LOG_INFO, "data",
                 "dataset \"%s\" does not fit in its memory limit: its source is read again from the start "
                 "whenever the order goes back; a .cache folder saves that",
                 dataset->name);
    }
    dataset->position = -1;
    SGM_TRY(sgm_extractor_rewind(dataset->extractor));
    dataset->position = 0;
    return SGM_OK;
}

/* Brings the extractor to block `index`, or to the end if that comes before. */
static sgm_status move_to(sgm_dataset *dataset, int64_t index)
{
    if (dataset->position < 0)
        SGM_TRY(rewind_source(dataset, index));
    SGM_TRY(choose_block_size(dataset));
    if (dataset->position > index)
        SGM_TRY(rewind_source(dataset, index));
    int64_t before = -1; /* a source that has become shorter ends earlier than it did */
    while (dataset->position < index && dataset->position > before &&
           !has_ended_before(dataset, dataset->position)) {
        before = dataset->position;
        SGM_TRY(pass_next(dataset));
    }
    return SGM_OK;
}

/* Extracts block `index`; *block stays NULL past the end. */
static sgm_status extract(sgm_dataset *dataset, int64_t index, sgm_block **block)
{
    SGM_TRY(move_to(dataset, index));
    if (dataset->position < index || has_ended_before(dataset, index))
        return SGM_OK;
    return extract_next(dataset, block);
}

/* Reads block `index`, which is not in memory, from the cache file or from the source. Room is made before
 * reading, so that the old blocks and the new one are not in memory at once. Called by the busy thread
 * without the mutex; the extraction is shown to the user as a task. */
static sgm_status load(sgm_dataset *dataset, int64_t index, sgm_block **block)
{
    *block = NULL;
    sgm__kept_begin(dataset);
    if (has_ended_before(dataset, index))
        return SGM_OK;
    pthread_mutex_lock(&dataset->mutex);
    bool seen = index < (int64_t)dataset->slot_count;
    sgm__slot slot = seen ? dataset->slots[index] : (sgm__slot){.disk = -1};
    make_room(dataset, seen && dataset->layout.example_bytes > 0
                           ? (size_t)slot.examples * dataset->layout.example_bytes
                           : expected_bytes(dataset));
    pthread_mutex_unlock(&dataset->mutex);
    if (slot.disk >= 0) {
        sgm_status status = sgm__cache_read(dataset, &slot, block);
        if (status == SGM_OK || !dataset->kept)
            return status;
        sgm__kept_forget(dataset);
    }
    sgm__extraction_begin(dataset->name);
    sgm_status status = extract(dataset, index, block);
    if (status == SGM_OK && seen && *block == NULL)
        status = sgm_fail(SGM_ERROR_FORMAT,
                          "block %lld had %lld examples when it was read before, and the source ends before "
                          "it now",
                          (long long)index, (long long)slot.examples);
    sgm__extraction_end(status);
    return status;
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
        status = load(dataset, index, &block);
        if (status != SGM_OK)
            status = fail_work(dataset);
        pthread_mutex_lock(&dataset->mutex);
        if (block)
            insert(dataset, block, index);
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

/* Reads on until block `index` was passed, unless an earlier run has left all blocks. Called by the busy
 * thread without the mutex. */
static sgm_status see_on(sgm_dataset *dataset, int64_t index)
{
    sgm__kept_begin(dataset);
    if (dataset->kept && dataset->kept->is_complete)
        return SGM_OK;
    sgm__extraction_begin(dataset->name);
    sgm_status status = move_to(dataset, index + 1);
    sgm__extraction_end(status);
    return status == SGM_OK ? SGM_OK : fail_work(dataset);
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
            status = see_on(dataset, index);
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

/* --- from memory --- */

/* The first tensor's first dimension is the number of examples; sgm_block_add refuses a tensor with another
 * one. */
sgm_block *sgm__block_of(const char *const *fields, sgm_tensor *const *tensors, size_t count)
{
    sgm_block *block = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!fields[i] || !tensors[i] || sgm_tensor_shape(tensors[i])->rank < 1) {
            sgm_fail(SGM_ERROR_ARGUMENT,
                     "field %zu needs a name and a tensor with examples as first dimension", i);
            break;
        }
        if (!block)
            block = sgm_block_create(sgm_tensor_shape(tensors[i])->dims[0]);
        sgm_tensor *values = block ? sgm_tensor_cast(tensors[i], SGM_FLOAT32) : NULL;
        if (!values || sgm_block_add(block, fields[i], values) != SGM_OK)
            break;
        if (i + 1 == count)
            return block;
    }
    if (count == 0)
        sgm_fail(SGM_ERROR_ARGUMENT, "a dataset needs at least one field");
    sgm_block_free(block);
    return NULL;
}

/* No lock is needed before the dataset is returned, since no other thread knows it. */
sgm_dataset *sgm_dataset_create_from(const char *name, const char *const *fields, sgm_tensor *const *tensors,
                                     size_t count)
{
    if (count > 0 && (!fields || !tensors)) {
        sgm__missing_part("sgm_dataset_create_from: lists of names and tensors");
        return NULL;
    }
    sgm_dataset *made = sgm__dataset_allocate(name, SGM__BLOCKS);
    if (!made)
        return NULL;
    sgm_block *block = sgm__block_of(fields, tensors, count);
    if (!block || add_slot(made, 0, block->count) != SGM_OK) {
        sgm__fail_within("dataset \"%s\"", made->name);
        sgm_block_free(block);
        sgm_dataset_free(made);
        return NULL;
    }
    learn_layout(&made->layout, block);
    insert(made, block, 0);
    made->ended = true;
    return made;
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
