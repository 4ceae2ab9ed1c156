/* Datasets that grow: examples are appended to one that is in memory, while iterators read it.
 *
 * Such a dataset has a single block. Its fields are slices of longer tensors, the room; an append copies
 * behind the last example, where no reader looks, and puts a block of longer slices in the place of the one
 * before, which goes when its last user releases it. When the room is full it is made twice as large, so that
 * many small appends cost no more than copying everything twice. An iterator decides at the beginning of an
 * epoch how many examples that epoch has (iterator.c: begin_epoch), so what comes later never changes an
 * order that has begun. Also here: what a dataset says of its blocks. */
#include "data/dataset_internal.h"

bool sgm__dataset_grows(const sgm_dataset *dataset)
{
    return dataset->kind == SGM__BLOCKS && dataset->extractor == NULL;
}

static sgm_status check(sgm_dataset *dataset)
{
    if (!sgm__dataset_grows(dataset))
        return sgm_fail(SGM_ERROR_STATE, "%s; only one in memory can grow: sgm_dataset_create_from",
                        dataset->base ? "it is a part of another dataset" : "it is read from a source");
    if (atomic_load(&dataset->views) > 0)
        return sgm_fail(
            SGM_ERROR_STATE,
            "there are parts of it, whose examples would become others; append to a dataset of the "
            "training's own");
    return SGM_OK;
}

/* The field of the new examples that goes to field `index` of the dataset. */
static const sgm_tensor *match(const sgm__layout *layout, int32_t index, const sgm_block *added)
{
    char wanted[128], got[128];
    const sgm_tensor *values = sgm_block_field(added, layout->names[index]);
    if (!values)
        return NULL;
    sgm_shape example = sgm__example_shape(values);
    if (sgm_shape_equal(&example, &layout->examples[index]))
        return values;
    sgm_fail(SGM_ERROR_SHAPE, "field \"%s\" has examples %s, those that are there are %s",
             layout->names[index], sgm_shape_text(&example, got, sizeof got),
             sgm_shape_text(&layout->examples[index], wanted, sizeof wanted));
    return NULL;
}

static sgm_status check_fields(const sgm__layout *layout, const sgm_block *added)
{
    if (added->field_count != layout->field_count)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%d fields are given, it has %d", (int)added->field_count,
                        (int)layout->field_count);
    for (int32_t i = 0; i < layout->field_count; i++)
        if (!match(layout, i, added))
            return sgm_last_status();
    return SGM_OK;
}

/* Bytes of an example of a field. */
static size_t example_bytes(const sgm__layout *layout, int32_t field)
{
    return (size_t)sgm_shape_elements(&layout->examples[field]) * sizeof(float);
}

/* Room for `count` examples, with those of `block` at its front. */
static sgm_status make_room(sgm_dataset *dataset, const sgm_block *block, int64_t count)
{
    sgm_tensor *rooms[SGM_MAX_FIELDS] = {NULL};
    const sgm__layout *layout = &dataset->layout;
    if (count <= dataset->room_examples)
        return SGM_OK;
    int64_t wanted = count > INT64_MAX / 2 ? count : 2 * count;
    for (int32_t i = 0; i < layout->field_count; i++) {
        sgm_shape shape = sgm__examples_shape(wanted, &layout->examples[i]);
        rooms[i] = sgm_tensor_create(SGM_FLOAT32, &shape);
        if (!rooms[i]) {
            while (i-- > 0)
                sgm_tensor_free(rooms[i]);
            return sgm_last_status();
        }
        memcpy(sgm_tensor_data(rooms[i]), sgm_tensor_const_data(block->fields[i].values),
               (size_t)block->count * example_bytes(layout, i));
    }
    for (int32_t i = 0; i < layout->field_count; i++) {
        sgm_tensor_free(dataset->room[i]);
        dataset->room[i] = rooms[i];
    }
    dataset->room_examples = wanted;
    return SGM_OK;
}

/* A block of the first `count` examples of the room. */
static sgm_block *front(const sgm_dataset *dataset, int64_t count)
{
    sgm_block *block = sgm_block_create(count);
    for (int32_t i = 0; block && i < dataset->layout.field_count; i++) {
        sgm_tensor *values = sgm_tensor_slice(dataset->room[i], 0, 0, count, 1);
        if (!values || sgm_block_add(block, dataset->layout.names[i], values) != SGM_OK) {
            sgm_block_free(block);
            return NULL;
        }
    }
    return block;
}

/* Puts a longer block in the place of the one that is there. */
static void replace(sgm_dataset *dataset, sgm_block *block)
{
    sgm__slot *slot = &dataset->slots[0];
    sgm__block *whole = (sgm__block *)block;
    dataset->bytes += sgm__block_bytes(block) - sgm__block_bytes(&slot->block->block);
    if (slot->block->users > 0)
        slot->block->stale = true;
    else
        sgm_block_free(&slot->block->block);
    whole->owner = dataset;
    slot->block = whole;
    slot->examples = block->count;
}

/* With the lock: readers wait for a copy of the new examples, seldom of all. */
static sgm_status append(sgm_dataset *dataset, const sgm_block *added)
{
    const sgm_block *before = &dataset->slots[0].block->block;
    int64_t first = before->count, count;
    if (__builtin_add_overflow(first, added->count, &count))
        return sgm_fail(SGM_ERROR_MEMORY, "it would have more examples than can be counted");
    SGM_TRY(check_fields(&dataset->layout, added));
    SGM_TRY(make_room(dataset, before, count));
    for (int32_t i = 0; i < dataset->layout.field_count; i++) {
        size_t bytes = example_bytes(&dataset->layout, i);
        memcpy((char *)sgm_tensor_data(dataset->room[i]) + (size_t)first * bytes,
               sgm_tensor_const_data(match(&dataset->layout, i, added)), (size_t)added->count * bytes);
    }
    sgm_block *block = front(dataset, count);
    if (!block)
        return sgm_last_status();
    replace(dataset, block);
    return SGM_OK;
}

sgm_status sgm_dataset_append(sgm_dataset *dataset, const char *const *fields, sgm_tensor *const *tensors,
                              size_t count)
{
    if (!dataset || (count > 0 && (!fields || !tensors)))
        return sgm__missing_part("sgm_dataset_append: a dataset, and lists of names and tensors");
    sgm_status status = check(dataset);
    sgm_block *added = status == SGM_OK ? sgm__block_of(fields, tensors, count) : NULL;
    if (status == SGM_OK && !added)
        status = sgm_last_status();
    if (status == SGM_OK && added) {
        pthread_mutex_lock(&dataset->mutex);
        status = append(dataset, added);
        pthread_mutex_unlock(&dataset->mutex);
    }
    sgm_block_free(added);
    return status == SGM_OK ? SGM_OK : sgm__fail_within("appending to dataset \"%s\"", dataset->name);
}

/* --- what a dataset says of its blocks --- */

static sgm_dataset *bottom_of(sgm_dataset *dataset)
{
    while (dataset->base)
        dataset = dataset->base;
    return dataset;
}

sgm_status sgm_dataset_get_status(sgm_dataset *dataset, sgm_dataset_status *status)
{
    if (!dataset || !status)
        return sgm__missing_part("sgm_dataset_get_status: a dataset and a place for its status");
    sgm_dataset *bottom = bottom_of(dataset);
    *status = (sgm_dataset_status){.grows = sgm__dataset_grows(dataset) && atomic_load(&dataset->views) == 0};
    pthread_mutex_lock(&bottom->mutex);
    for (size_t i = 0; i < bottom->slot_count; i++) {
        const sgm__block *block = bottom->slots[i].block;
        status->examples += bottom->slots[i].examples;
        status->blocks_in_memory += block != NULL;
        status->blocks_in_use += block && block->users > 0;
    }
    status->blocks = (int64_t)bottom->slot_count;
    status->complete = bottom->ended;
    status->bytes = (int64_t)bottom->bytes;
    status->memory_limit = (int64_t)bottom->limit;
    pthread_mutex_unlock(&bottom->mutex);
    return SGM_OK;
}

/* A block of a view is one of its base's: asking which may read, so views are asked at their base. */
sgm_status sgm_dataset_get_block_status(sgm_dataset *dataset, int64_t index, sgm_block_status *status)
{
    if (!dataset || !status)
        return sgm__missing_part("sgm_dataset_get_block_status: a dataset and a place for the status");
    *status = (sgm_block_status){.examples = -1};
    if (dataset->base)
        return sgm_fail(SGM_ERROR_STATE,
                        "dataset \"%s\" is a part of another one, which has the blocks: ask that",
                        dataset->name);
    pthread_mutex_lock(&dataset->mutex);
    if (index >= 0 && index < (int64_t)dataset->slot_count) {
        const sgm__slot *slot = &dataset->slots[index];
        status->examples = slot->examples;
        status->bytes = (int64_t)((size_t)slot->examples * dataset->layout.example_bytes);
        status->in_memory = slot->block != NULL;
        status->users = slot->block ? slot->block->users : 0;
        status->on_disk = slot->disk >= 0;
    }
    pthread_mutex_unlock(&dataset->mutex);
    return SGM_OK;
}
