/* Makes minibatches: the order of blocks and of examples in each block, and the copies that the trainer gets.
 *
 * In a shuffled epoch the blocks come in a random order, and the examples of each block in a random order of
 * their own; the two levels let a dataset be larger than memory, as only the current block and the next one
 * have to be there. A minibatch may begin in one block and end in another. Orders are drawn from Philox
 * streams (base/random.c) of seed, epoch and block, so any place of any epoch can be computed without going
 * through the ones before. Called by iterator.c:sgm_iterator_next. Minibatches are either copied into one
 * buffer, or, with augmentation, into the slots of a ring whose threads change them (augmentation_ring.c). */
#include "data/iterator.h"

/* --- the order of minibatches --- */

/* The random numbers of one order of the current epoch: part 0 is the order of blocks, part b + 1 the order
 * of the examples of block b. The epoch's seed is the first half of what Philox gives for (seed, epoch,
 * counter 0); augmenting_seed takes the second half. */
static sgm__random random_of(const sgm_iterator *iterator, int64_t part)
{
    sgm__random epoch = sgm__random_make(iterator->seed, (uint64_t)iterator->state.epoch);
    uint64_t seed = sgm__random_uint32(&epoch);
    seed = seed << 32 | sgm__random_uint32(&epoch);
    return sgm__random_make(seed, (uint64_t)part);
}

/* Draws the order of blocks once an epoch. It needs the number of blocks, so the first shuffled epoch counts
 * them. */
static sgm_status order_blocks(sgm_iterator *iterator)
{
    if (!iterator->shuffle || iterator->order_epoch == iterator->state.epoch)
        return SGM_OK;
    SGM_TRY(sgm__iterator_count_blocks(iterator));
    if (!iterator->order)
        iterator->order = sgm__calloc((size_t)iterator->block_count, sizeof *iterator->order);
    if (!iterator->order)
        return SGM_ERROR_MEMORY;
    sgm__random random = random_of(iterator, 0);
    sgm__permutation(&random, iterator->order, iterator->block_count);
    iterator->order_epoch = iterator->state.epoch;
    return SGM_OK;
}

/* The block at a place of the epoch's order, -1 past the last one. Unshuffled, any place is a block's index:
 * how many there are need not be known, since fetching past the end gives no block. */
static int64_t block_at(const sgm_iterator *iterator, int64_t place)
{
    if (!iterator->shuffle)
        return place;
    return place < iterator->block_count ? iterator->order[place] : -1;
}

/* The order of the examples of a block. Those that belong together stay in a row: groups are permuted, each
 * then spread over the places of its examples, the last one first, as `rows` has the groups' numbers in
 * front. */
static void permute_rows(const sgm_iterator *iterator, int64_t block, int64_t *rows, int64_t count)
{
    const int64_t group = sgm_dataset_get_group(iterator->dataset);
    sgm__random random = random_of(iterator, block + 1);
    sgm__permutation(&random, rows, count / group);
    for (int64_t i = group > 1 ? count - 1 : -1; i >= 0; i--)
        rows[i] = rows[i / group] * group + i % group;
}

/* Fetches the block at the current place, has the block after it prefetched, and draws the order of the
 * fetched block's examples. `range` stays empty at the end of the epoch. */
static sgm_status open_block(sgm_iterator *iterator)
{
    int64_t index = block_at(iterator, iterator->place);
    if (index < 0)
        return SGM_OK;
    SGM_TRY(
        sgm__iterator_acquire(iterator, index, block_at(iterator, iterator->place + 1), &iterator->range));
    if (!iterator->range.block)
        return SGM_OK;
    int64_t count = iterator->range.end - iterator->range.begin;
    if (count % sgm_dataset_get_group(iterator->dataset) != 0)
        return sgm_fail(
            SGM_ERROR_SHAPE,
            "dataset \"%s\": a block has %lld examples, of which %lld in a row belong together; a "
            "multiple of that is wanted",
            sgm_dataset_name(iterator->dataset), (long long)count,
            (long long)sgm_dataset_get_group(iterator->dataset));
    if (!iterator->shuffle)
        return SGM_OK;
    SGM_TRY(sgm__reserve(&iterator->rows, &iterator->rows_capacity, (size_t)count, sizeof *iterator->rows));
    permute_rows(iterator, index, iterator->rows, count);
    return SGM_OK;
}

static void close_block(sgm_iterator *iterator)
{
    sgm__example_range_release(&iterator->range);
    iterator->place++;
    iterator->used = 0;
}

/* Goes to the example at which minibatch number state.batches of the epoch begins, by counting the examples
 * of the blocks before; none of these blocks needs to be in memory. All minibatches before are of `size`
 * examples. */
static sgm_status find_place(sgm_iterator *iterator)
{
    sgm__example_range_release(&iterator->range);
    iterator->place = 0;
    iterator->used = 0;
    SGM_TRY(order_blocks(iterator));
    int64_t left;
    if (__builtin_mul_overflow(iterator->state.batches, iterator->size, &left))
        left = INT64_MAX;
    while (left > 0) {
        int64_t index = block_at(iterator, iterator->place), examples = 0;
        if (index >= 0)
            SGM_TRY(sgm__iterator_block_examples(iterator, index, &examples));
        if (examples == 0)
            break;
        if (left < examples) {
            iterator->used = left;
            break;
        }
        left -= examples;
        iterator->place++;
    }
    iterator->placed = true;
    iterator->filled = iterator->state.batches;
    iterator->all_filled = false;
    return SGM_OK;
}

/* --- minibatches --- */

/* A buffer for `count` examples with the fields of a block. */
static sgm_block *make_batch(const sgm_block *like, int64_t count)
{
    sgm_block *batch = sgm_block_create(count);
    for (int32_t i = 0; batch && i < like->field_count; i++) {
        sgm_shape shape = *sgm_tensor_shape(like->fields[i].values);
        shape.dims[0] = count;
        sgm_tensor *values = sgm_tensor_create(SGM_FLOAT32, &shape);
        if (!values || sgm_block_add(batch, like->fields[i].name, values) != SGM_OK) {
            sgm_block_free(batch);
            batch = NULL;
        }
    }
    return batch;
}

/* Makes *rest a block of slices of the first `count` examples of `full`. Keeps the one that is there if it
 * has as many: in each epoch the last minibatch has the same size. */
static sgm_status cut_rest(const sgm_block *full, int64_t count, sgm_block **rest)
{
    if (*rest && (*rest)->count == count)
        return SGM_OK;
    sgm_block_free(*rest);
    *rest = sgm_block_create(count);
    if (!*rest)
        return sgm_last_status();
    for (int32_t i = 0; i < full->field_count; i++) {
        const sgm_field *field = &full->fields[i];
        sgm_tensor *front = sgm_tensor_slice(field->values, 0, 0, count, 1);
        sgm_status status = front ? sgm_block_add(*rest, field->name, front) : sgm_last_status();
        if (status != SGM_OK) {
            sgm_block_free(*rest);
            *rest = NULL;
            return status;
        }
    }
    return SGM_OK;
}

/* Copies a few floats without the cost of a call to memcpy: sizes known to the compiler become one or two
 * moves. An example of 3, 5 to 7 or 9 to 15 numbers is covered by two copies of a fixed size that overlap in
 * the middle, and both write the same numbers there. Shuffled tables, whose examples are such rows, are
 * copied row by row. */
static inline void copy_example(float *to, const float *from, size_t elements)
{
    if (elements > 16 || elements < 2) {
        memcpy(to, from, elements * sizeof *to);
    } else if (elements >= 8) {
        memcpy(to, from, 8 * sizeof *to);
        memcpy(to + elements - 8, from + elements - 8, 8 * sizeof *to);
    } else if (elements >= 4) {
        memcpy(to, from, 4 * sizeof *to);
        memcpy(to + elements - 4, from + elements - 4, 4 * sizeof *to);
    } else {
        memcpy(to, from, 2 * sizeof *to);
        memcpy(to + elements - 2, from + elements - 2, 2 * sizeof *to);
    }
}

/* Copies from the current block to the minibatch. The minibatch has `got` examples already; the next `count`
 * examples of the block become its examples got to got + count - 1, of which only those in given.first to
 * given.first + given.count - 1 are copied, to the front of `full`. Rows are counted from the range's begin,
 * since a view's range may begin inside a block. */
static void gather(const sgm_iterator *iterator, sgm_block *full, int64_t got, int64_t count)
{
    const sgm__example_range *range = &iterator->range;
    const sgm__given_part *given = &iterator->given;
    int64_t first = got > given->first ? got : given->first, end = given->first + given->count;
    int64_t used = iterator->used + first - got;
    count = (got + count < end ? got + count : end) - first;
    if (count <= 0)
        return;
    got = first - given->first;
    for (int32_t s = 0; s < full->field_count; s++) {
        sgm_tensor *target = full->fields[s].values;
        size_t elements = (size_t)(sgm_shape_elements(sgm_tensor_shape(target)) / full->count);
        const float *from = (const float *)sgm_tensor_const_data(range->block->fields[s].values) +
                            (size_t)range->begin * elements;
        float *to = (float *)sgm_tensor_data(target) + (size_t)got * elements;
        if (!iterator->shuffle) {
            memcpy(to, from + (size_t)used * elements, (size_t)count * elements * sizeof *to);
            continue;
        }
        for (int64_t i = 0; i < count; i++, to += elements)
            copy_example(to, from + (size_t)iterator->rows[used + i] * elements, elements);
    }
}

/* Examples that the buffer must hold when a minibatch has `examples` of them: the largest part, which is at
 * most examples / parts + 1. The last minibatch of an epoch may have fewer examples than there are parts, and
 * is then given whole to everybody: room for these is needed, too. */
static int64_t room_for(const sgm_iterator *iterator, int64_t examples)
{
    int64_t whole = iterator->parts < examples ? iterator->parts : examples,
            part = examples / iterator->parts + 1;
    return iterator->parts == 1 ? examples : whole > part ? whole : part;
}

/* Decides which examples of the next minibatch are copied. A minibatch that is skipped gets an empty part
 * behind its last example. With several parts the size of the last minibatch of an epoch must be known before
 * it is filled, so that all ranks cut it in the same way: hence the count of examples. Fewer examples than
 * parts are given whole to everybody. */
static sgm_status choose_part(sgm_iterator *iterator)
{
    int64_t whole = iterator->size, parts = iterator->parts, part = iterator->part;
    iterator->given = (sgm__given_part){.count = whole, .whole = whole};
    if (iterator->skips && !iterator->ahead)
        iterator->given = (sgm__given_part){.first = whole, .whole = whole};
    if (parts == 1 || iterator->skips)
        return SGM_OK;
    SGM_TRY(sgm__iterator_count_blocks(iterator));
    int64_t left = iterator->example_count - iterator->state.batches * iterator->size;
    whole = left < whole ? left : whole;
    iterator->given = (sgm__given_part){.count = whole, .whole = whole};
    if (whole >= parts) {
        iterator->given.first = whole * part / parts;
        iterator->given.count = whole * (part + 1) / parts - iterator->given.first;
    }
    return SGM_OK;
}

/* Copies the next `size` examples into *full, which is made if it is NULL, from as many blocks as it takes.
 * *got is how many there were; it is below `size` only at the end of the epoch. The buffer is made no larger
 * than the dataset, if the number of its examples is known. */
static sgm_status fill_batch(sgm_iterator *iterator, sgm_block **full, int64_t *got)
{
    *got = 0;
    while (*got < iterator->size) {
        if (!iterator->range.block)
            SGM_TRY(open_block(iterator));
        if (!iterator->range.block)
            break;
        if (!*full) {
            bool all = iterator->counted && iterator->example_count < iterator->size;
            int64_t maximum = all ? iterator->example_count : iterator->size;
            *full = make_batch(iterator->range.block, room_for(iterator, maximum));
            if (!*full)
                return sgm_last_status();
        }
        int64_t examples = iterator->range.end - iterator->range.begin;
        int64_t count = examples - iterator->used, room = iterator->size - *got;
        if (count > room)
            count = room;
        gather(iterator, *full, *got, count);
        *got += count;
        iterator->used += count;
        if (iterator->used == examples)
            close_block(iterator);
    }
    return SGM_OK;
}

/* --- augmented ones: filled in their order here, changed by threads --- */

/* The seed for the random numbers of augmentation in this epoch: the half of Philox's block for (seed, epoch)
 * that the orders do not use. */
static uint64_t augmenting_seed(const sgm_iterator *iterator)
{
    uint32_t numbers[4];
    sgm__philox(iterator->seed, (uint64_t)iterator->state.epoch, 0, numbers);
    return (uint64_t)numbers[2] << 32 | numbers[3];
}

/* Fills one slot of the ring and submits it, unless the epoch has no more minibatches (then all_filled is
 * set). Room for the augmentation is made when the slot is used for the first time, and whether the data can
 * be augmented is checked there. */
static sgm_status fill_slot(sgm_iterator *iterator, sgm__ahead_slot *slot)
{
    int64_t got;
    size_t scratch;
    SGM_TRY(fill_batch(iterator, &slot->full, &got));
    iterator->all_filled = got < iterator->size;
    if (got == 0 || (got < iterator->size && iterator->drop_last))
        return SGM_OK;
    if (!slot->scratch) {
        sgm_status status = sgm__augmentation_fits(sgm__ahead_chain(iterator->ahead), slot->full, &scratch);
        slot->scratch = status == SGM_OK ? sgm__calloc(scratch, sizeof(float)) : NULL;
        if (!slot->scratch) {
            sgm_block_free(slot->full);
            slot->full = NULL;
            return status != SGM_OK ? status : SGM_ERROR_MEMORY;
        }
    }
    if (got < slot->full->count)
        SGM_TRY(cut_rest(slot->full, got, &slot->rest));
    slot->count = got;
    slot->seed = augmenting_seed(iterator);
    slot->first = iterator->filled * iterator->size;
    iterator->filled++;
    sgm__ahead_submit(iterator->ahead);
    return SGM_OK;
}

/* Fills all free slots of the ring. A failure is kept back while the ring has minibatches from before it:
 * they are given first, `placed` is false meanwhile, and when the ring is empty the same minibatch is tried
 * again and reports its failure. */
static sgm_status fill_ring(sgm_iterator *iterator)
{
    sgm__ahead_slot *slot;
    while (iterator->placed && !iterator->all_filled && (slot = sgm__ahead_room(iterator->ahead))) {
        sgm_status status = fill_slot(iterator, slot);
        iterator->placed = status == SGM_OK;
        if (status != SGM_OK && sgm__ahead_is_empty(iterator->ahead))
            return status;
    }
    return SGM_OK;
}

/* Gives back the slot of the minibatch before, fills what is free, and takes the oldest minibatch. */
static sgm_status next_augmented(sgm_iterator *iterator, const sgm_block **batch)
{
    sgm__ahead_release(iterator->ahead);
    SGM_TRY(fill_ring(iterator));
    const sgm__ahead_slot *slot = sgm__ahead_take(iterator->ahead);
    if (slot)
        *batch = slot->count < slot->full->count ? slot->rest : slot->full;
    return SGM_OK;
}

/* --- the next one --- */

/* With a ring the place is searched only when the ring is empty: otherwise it has minibatches to give, and
 * after a failure the place would be that of the oldest of these. */
sgm_status sgm__iterator_next_minibatch(sgm_iterator *iterator, const sgm_block **batch)
{
    int64_t got;
    if (!iterator->placed && (!iterator->ahead || sgm__ahead_is_empty(iterator->ahead)))
        SGM_TRY(find_place(iterator));
    SGM_TRY(choose_part(iterator));
    if (iterator->ahead) {
        iterator->skips = false;
        return next_augmented(iterator, batch);
    }
    bool skipped = iterator->skips;
    /* reset before a failure: a caller that tries again says anew whether it skips */
    iterator->skips = false;
    SGM_TRY(fill_batch(iterator, &iterator->full, &got));
    if (got == 0 || (got < iterator->size && iterator->drop_last))
        return SGM_OK;
    if (skipped) {
        *batch = iterator->full;
        return SGM_OK;
    }
    /* only now is the size of the last minibatch known: it was not counted before */
    if (iterator->parts == 1)
        iterator->given.count = iterator->given.whole = got;
    if (iterator->given.count < iterator->full->count) {
        SGM_TRY(cut_rest(iterator->full, iterator->given.count, &iterator->rest));
        *batch = iterator->rest;
    } else {
        *batch = iterator->full;
    }
    return SGM_OK;
}

/* --- where an example came from --- */

/* Finds the dataset's block, and the row in it, of example `example` of the newest minibatch, by computing
 * the orders again: so minibatches need not carry the numbers of their examples, and only a failure pays.
 * state.batches - 1 is the number of the newest minibatch. */
static sgm_status find_example(sgm_iterator *iterator, int64_t example, int64_t *block, int64_t *row)
{
    bool cut = iterator->kind == SGM__MINIBATCHES && !iterator->ahead && iterator->parts > 1;
    int64_t batches = iterator->state.batches - 1, examples = 0;
    *block = iterator->kind == SGM__BY_BLOCK ? batches : 0;
    *row = example + (cut ? iterator->given.first : 0);
    if (iterator->kind == SGM__BY_BLOCK)
        return SGM_OK;
    if (iterator->kind == SGM__MINIBATCHES)
        *row += batches * iterator->size;
    for (int64_t place = 0;; place++, *row -= examples) {
        *block = iterator->kind == SGM__MINIBATCHES ? block_at(iterator, place) : place;
        examples = 0;
        if (*block >= 0)
            SGM_TRY(sgm__dataset_block_examples(iterator->dataset, *block, &examples));
        if (*row < examples)
            break;
        if (examples == 0)
            return sgm_fail(SGM_ERROR_NOT_FOUND, "dataset \"%s\" ends before",
                            sgm_dataset_name(iterator->dataset));
    }
    if (!iterator->shuffle)
        return SGM_OK;
    int64_t *rows = sgm__calloc((size_t)examples, sizeof *rows);
    if (!rows)
        return SGM_ERROR_MEMORY;
    permute_rows(iterator, *block, rows, examples);
    *row = rows[*row];
    sgm__free(rows);
    return SGM_OK;
}

/* The message is copied first, since searching the example may read the source, fail, and replace the
 * message. */
sgm_status sgm__iterator_fail(sgm_iterator *iterator, sgm_status status)
{
    int64_t example = sgm__failed_example(), block, row, number;
    char *message = example >= 0 && iterator->state.batches > 0 ? sgm__strdup(sgm_last_error()) : NULL;
    if (!message)
        return status;
    bool found = find_example(iterator, example, &block, &row) == SGM_OK &&
                 sgm__dataset_number(iterator->dataset, block, row, &number) == SGM_OK;
    status = found ? sgm_fail(status, "dataset \"%s\", example %lld (from 0): %s",
                              sgm_dataset_name(iterator->dataset), (long long)number, message)
                   : sgm_fail(status, "%s", message);
    sgm__free(message);
    return status;
}

void sgm__iterator_free_batches(sgm_iterator *iterator)
{
    sgm_block_free(iterator->full);
    sgm_block_free(iterator->rest);
    iterator->full = iterator->rest = NULL;
    if (iterator->ahead)
        sgm__ahead_drop(iterator->ahead, true);
}
