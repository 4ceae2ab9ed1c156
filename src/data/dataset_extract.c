/* Reads the blocks of a dataset that are not in memory: from the cache file if there is one
 * (dataset_cache.c), else from the source by read/extractor.c.
 *
 * An extractor only goes forward, so going back to an earlier block means rewinding the source and skipping
 * the blocks before. All is called by the one thread that is busy with the dataset (dataset.c), but for the
 * layout and the slot of one that is being made from memory. */
#include "data/dataset_internal.h"
#include "data/read/extractor.h"
#include "data/read/source.h"

/* The size of a block that was not asked for: as many examples as fit in BLOCK_BYTES, and no more than
 * MAXIMUM_EXAMPLES, so that tables with few columns come in blocks, too. A shuffled order mixes blocks and
 * the examples in a block: large blocks mix better, small ones let more than one fit in memory. */
#define MAXIMUM_EXAMPLES 65536
#define BLOCK_BYTES ((size_t)32 << 20)

/* --- layout --- */

void sgm__dataset_learn_layout(sgm__layout *layout, const sgm_block *block)
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

/* --- extraction --- */

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
sgm_status sgm__dataset_add_slot(sgm_dataset *dataset, int64_t index, int64_t examples)
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
        sgm__dataset_learn_layout(&dataset->layout, block);
    pthread_mutex_lock(&dataset->mutex);
    sgm_status status = sgm__dataset_add_slot(dataset, index, block->count);
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
    sgm_status status = sgm__dataset_add_slot(dataset, dataset->position, examples);
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
        sgm__dataset_insert(dataset, block, index);
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
sgm_status sgm__dataset_load(sgm_dataset *dataset, int64_t index, sgm_block **block)
{
    *block = NULL;
    sgm__kept_begin(dataset);
    if (has_ended_before(dataset, index))
        return SGM_OK;
    pthread_mutex_lock(&dataset->mutex);
    bool seen = index < (int64_t)dataset->slot_count;
    sgm__slot slot = seen ? dataset->slots[index] : (sgm__slot){.disk = -1};
    sgm__dataset_make_room(dataset, seen && dataset->layout.example_bytes > 0
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

sgm_status sgm__dataset_read_past(sgm_dataset *dataset, int64_t index)
{
    sgm__kept_begin(dataset);
    if (dataset->kept && dataset->kept->is_complete)
        return SGM_OK;
    sgm__extraction_begin(dataset->name);
    sgm_status status = move_to(dataset, index + 1);
    sgm__extraction_end(status);
    return status;
}
