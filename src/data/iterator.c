/* Iterators over a dataset: settings, state, and batches that are whole blocks.
 *
 * There are three kinds: minibatches (made in iterator_batches.c), whole blocks one after the other, and all
 * blocks as one. The trainer (src/train/trainer_step.c) calls sgm_iterator_next for one batch after the
 * other; NULL ends an epoch. The order of minibatches is a function of seed and epoch, so an iterator's state
 * is two numbers, and a run that was interrupted goes on with the same examples in another process. Changes
 * of size, shuffle and drop_last wait for the next epoch: see `wanted` in iterator.h. Used by one thread at a
 * time, without a lock. */
#include "data/iterator.h"
#include "registry/option_check.h"

/* --- what may change --- */

/* The settings of iterators over minibatches, for the registry and for the command. Their defaults are
 * written as the user sees them, while in the options struct 0 means default; hence `inverted` for shuffle,
 * whose member is no_shuffle. The last AUGMENTING_COUNT rows are settings only of iterators that augment. */
static const sgm_setting settings[] = {
    {.option = {.name = "minibatch_size",
                .kind = SGM_KIND_INTEGER,
                .unit = "examples",
                .minimum = 1,
                .maximum = 1e7,
                .default_value = 32,
                .live = true,
                .doc = "size of a minibatch",
                .effect = "from the next epoch on"},
     SGM_MEMBER(sgm_iterator_options, size)},
    {.option = {.name = "shuffle",
                .kind = SGM_KIND_BOOLEAN,
                .default_value = true,
                .live = true,
                .doc = "another order in each epoch",
                .effect = "from the next epoch on"},
     SGM_MEMBER(sgm_iterator_options, no_shuffle),
     .inverted = true},
    {.option = {.name = "drop_last",
                .kind = SGM_KIND_BOOLEAN,
                .live = true,
                .doc = "leave a smaller last minibatch out",
                .effect = "from the next epoch on"},
     SGM_MEMBER(sgm_iterator_options, drop_last)},
    /* the last ones, AUGMENTING_COUNT: only of those that augment */
    {.option = {.name = "augment",
                .kind = SGM_KIND_TEXT,
                .read_only = true,
                .doc = "changes of the examples that are learnt from, \"rotate(10) + shift(2)\""},
     SGM_MEMBER(sgm_iterator_options, augment)},
    {.option = {.name = "prefetch_threads",
                .kind = SGM_KIND_INTEGER,
                .minimum = 1,
                .maximum = 64,
                .default_value = 1,
                .read_only = true,
                .doc = "threads that augment the next minibatches"},
     SGM_MEMBER(sgm_iterator_options, prefetch_threads)},
};
#define SETTING_COUNT (sizeof settings / sizeof *settings)
#define AUGMENTING_COUNT 2

const sgm_setting *sgm_iterator_settings(size_t *count)
{
    *count = SETTING_COUNT;
    return settings;
}

/* Iterators over whole blocks have no settings; the augmentation's rows are last in the table, so a shorter
 * count leaves them out. */
size_t sgm__iterator_setting_count(const sgm_iterator *iterator)
{
    return iterator->kind != SGM__MINIBATCHES ? 0
           : iterator->ahead != NULL          ? SETTING_COUNT
                                              : SETTING_COUNT - AUGMENTING_COUNT;
}

/* The iterator's setting of this name; NULL and an error if it has none. */
static const sgm_setting *find_setting(const sgm_iterator *iterator, const char *name)
{
    if (!iterator || !name) {
        sgm__missing_part("a setting of an iterator: an iterator and a name");
        return NULL;
    }
    const sgm_setting *setting =
        iterator->kind == SGM__MINIBATCHES ? sgm_setting_find(settings, SETTING_COUNT, name) : NULL;
    if (setting && (!setting->option.read_only || iterator->ahead))
        return setting;
    sgm_fail(SGM_ERROR_NOT_FOUND, "the iterator of \"%s\" has no setting '%.100s'%s",
             sgm_dataset_name(iterator->dataset), name,
             setting                              ? ": it does not augment"
             : iterator->kind == SGM__MINIBATCHES ? ""
                                                  : ": it gives whole blocks");
    return NULL;
}

/* Makes the next call search its place from `state` again. Minibatches that were augmented ahead belong to
 * the old place and are dropped. */
static void displace(sgm_iterator *iterator)
{
    iterator->placed = false;
    if (iterator->ahead)
        sgm__ahead_drop(iterator->ahead, false);
}

/* Takes over settings for the current epoch. Buffers of another size go; a switch of `shuffle` makes the
 * order invalid. */
static void use(sgm_iterator *iterator, int64_t size, bool no_shuffle, bool drop_last)
{
    if (iterator->size != size) {
        sgm__iterator_free_batches(iterator);
    }
    if (iterator->shuffle == no_shuffle)
        iterator->order_epoch = SGM__NO_EPOCH;
    iterator->size = size;
    iterator->shuffle = !no_shuffle;
    iterator->drop_last = drop_last;
    displace(iterator);
}

/* Takes over what was set; only at the beginning of an epoch, so that each epoch has every example once. */
static void take_wanted(sgm_iterator *iterator)
{
    if (iterator->kind == SGM__MINIBATCHES)
        use(iterator, iterator->wanted.size, iterator->wanted.no_shuffle, iterator->wanted.drop_last);
}

/* Minibatches begin and end between the groups of examples that belong together. */
static sgm_status check_size(const sgm_dataset *dataset, int64_t size)
{
    const int64_t group = sgm_dataset_get_group(dataset);
    return size % group == 0
               ? SGM_OK
               : sgm_fail(SGM_ERROR_ARGUMENT,
                          "minibatch_size: %lld examples of \"%s\" in a row belong together, and %lld is no "
                          "multiple of that; %lld would do",
                          (long long)group, sgm_dataset_name(dataset), (long long)size,
                          (long long)((size / group + 1) * group));
}

/* Changes `wanted` alone: the current epoch goes on as it began. */
sgm_status sgm_iterator_set(sgm_iterator *iterator, const char *name, const sgm_content *content)
{
    const sgm_setting *setting = find_setting(iterator, name);
    if (!setting)
        return sgm_last_status();
    if (!content)
        return sgm__missing_part("sgm_iterator_set: a content");
    if (setting->option.read_only)
        return sgm_fail(SGM_ERROR_STATE, "%s: is said when the iterator is created, and stays", name);
    const int64_t before = iterator->wanted.size;
    SGM_TRY(sgm_setting_set(setting, &iterator->wanted, NULL, content));
    sgm_status status = check_size(iterator->dataset, iterator->wanted.size);
    if (status != SGM_OK)
        iterator->wanted.size = before;
    return status;
}

sgm_status sgm_iterator_get(const sgm_iterator *iterator, const char *name, sgm_content *content)
{
    const sgm_setting *setting = find_setting(iterator, name);
    return setting ? sgm_setting_get(setting, &iterator->wanted, content) : sgm_last_status();
}

/* --- blocks --- */

sgm_status sgm__iterator_block_examples(sgm_iterator *iterator, int64_t index, int64_t *examples)
{
    SGM_TRY(sgm__dataset_block_examples(iterator->dataset, index, examples));
    if (*examples > iterator->limit)
        *examples = iterator->limit;
    return SGM_OK;
}

/* A block of 0 examples is past the end of the dataset. */
sgm_status sgm__iterator_count_blocks(sgm_iterator *iterator)
{
    if (iterator->counted)
        return SGM_OK;
    int64_t count = 0, sum = 0;
    for (int64_t examples;; count++, sum += examples) {
        SGM_TRY(sgm__iterator_block_examples(iterator, count, &examples));
        if (examples == 0)
            break;
    }
    iterator->block_count = count;
    iterator->example_count = sum;
    iterator->counted = true;
    return SGM_OK;
}

/* A block that was prefetched is taken from the thread, any other fetched here. Nothing is prefetched from a
 * dataset that is known to have one block only, or if the next block is this one. */
sgm_status sgm__iterator_acquire(sgm_iterator *iterator, int64_t index, int64_t next,
                                 sgm__example_range *range)
{
    SGM_TRY(iterator->prefetch ? sgm__prefetch_take(iterator->prefetch, index, range)
                               : sgm__dataset_fetch_range(iterator->dataset, index, range));
    if (range->block && range->end - range->begin > iterator->limit)
        range->end = range->begin + iterator->limit;
    if (!iterator->prefetches || iterator->no_thread || !range->block || next < 0 || next == index ||
        sgm__dataset_ends_at(iterator->dataset, 1))
        return SGM_OK;
    if (!iterator->prefetch) {
        iterator->prefetch = sgm__prefetch_create(iterator->dataset);
        iterator->no_thread = !iterator->prefetch; /* it works without, only slower */
    }
    if (iterator->prefetch)
        sgm__prefetch_request(iterator->prefetch, next);
    return SGM_OK;
}

/* Releases the whole block that was given last. */
static void let_go(sgm_iterator *iterator)
{
    sgm_dataset_release_block(iterator->dataset, iterator->held);
    iterator->held = NULL;
}

/* The current epoch of a dataset that grows has so many examples from now on. What was made for another
 * number is made anew: counts, buffers, the whole block, the order. */
static void limit_epoch(sgm_iterator *iterator, int64_t examples)
{
    iterator->limited = iterator->state.epoch;
    if (iterator->limit == examples)
        return;
    iterator->limit = examples;
    iterator->counted = false;
    iterator->order_epoch = SGM__NO_EPOCH;
    sgm__iterator_free_batches(iterator);
    let_go(iterator);
    displace(iterator);
}

/* The first call in an epoch decides how many examples it has, if the dataset grows. */
static sgm_status begin_epoch(sgm_iterator *iterator)
{
    int64_t examples;
    if (!sgm__dataset_grows(iterator->dataset) || iterator->limited == iterator->state.epoch)
        return SGM_OK;
    SGM_TRY(sgm__dataset_block_examples(iterator->dataset, 0, &examples));
    limit_epoch(iterator, examples);
    return SGM_OK;
}

/* --- whole blocks --- */

/* Gives block `index` of the dataset, or of a view the slices of it, without a copy. Keeps the block in use
 * until another one is asked for, so that a dataset of a single block is fetched once. */
static sgm_status hold_block(sgm_iterator *iterator, int64_t index, const sgm_block **batch)
{
    if (!iterator->held || iterator->held_index != index) {
        sgm__example_range range;
        SGM_TRY(sgm__iterator_acquire(iterator, index, index + 1, &range));
        if (!range.block)
            return SGM_OK;
        const sgm_block *block = sgm__example_range_block(&range);
        if (!block)
            return sgm_last_status();
        let_go(iterator);
        iterator->held = block;
        iterator->held_index = index;
    }
    *batch = iterator->held;
    return SGM_OK;
}

/* Copies all blocks into one. Each block is released as soon as it is copied. */
static sgm_status join_blocks(sgm_iterator *iterator)
{
    sgm__builder builder = {0};
    sgm_status status = SGM_OK;
    for (int64_t i = 0; status == SGM_OK && i < iterator->block_count; i++) {
        sgm__example_range range;
        status = sgm__iterator_acquire(iterator, i, i + 1 < iterator->block_count ? i + 1 : -1, &range);
        if (status == SGM_OK && range.block)
            status = sgm__builder_append(&builder, range.block, range.begin, range.end);
        sgm__example_range_release(&range);
    }
    if (status == SGM_OK) {
        iterator->joined = sgm__builder_take(&builder);
        status = iterator->joined ? SGM_OK : sgm_last_status();
    }
    sgm__builder_free(&builder);
    return status;
}

/* One batch per epoch; a single block is given as it is, without a copy. */
static sgm_status next_full_batch(sgm_iterator *iterator, const sgm_block **batch)
{
    SGM_TRY(sgm__iterator_count_blocks(iterator));
    if (iterator->block_count == 0 || iterator->state.batches > 0)
        return SGM_OK;
    if (iterator->block_count == 1)
        return hold_block(iterator, 0, batch);
    if (!iterator->joined)
        SGM_TRY(join_blocks(iterator));
    *batch = iterator->joined;
    return SGM_OK;
}

/* --- for everyone --- */

/* True if the current block has enough examples left for a minibatch. Otherwise the next block is needed:
 * even if that one is being prefetched, taking it may have to wait, so the answer is false. */
bool sgm__iterator_is_ready(const sgm_iterator *iterator)
{
    if (iterator->ahead)
        return sgm__ahead_is_ready(iterator->ahead);
    return iterator->kind == SGM__MINIBATCHES && iterator->range.block != NULL &&
           iterator->range.end - iterator->range.begin - iterator->used >= iterator->size;
}

/* *batch stays NULL at the end of the epoch. */
static sgm_status next_batch(sgm_iterator *iterator, const sgm_block **batch)
{
    SGM_TRY(begin_epoch(iterator));
    if (iterator->kind == SGM__MINIBATCHES) {
        if (iterator->state.batches == 0)
            take_wanted(iterator);
        return sgm__iterator_next_minibatch(iterator, batch);
    }
    return iterator->kind == SGM__BY_BLOCK ? hold_block(iterator, iterator->state.batches, batch)
                                           : next_full_batch(iterator, batch);
}

/* After a failure the state is as before, so that the next call tries the same batch again. The state moves
 * on here alone. */
sgm_status sgm_iterator_next(sgm_iterator *iterator, const sgm_block **batch)
{
    if (!iterator || !batch)
        return sgm__missing_part("sgm_iterator_next: an iterator and a place for the batch");
    *batch = NULL;
    sgm_status status = next_batch(iterator, batch);
    if (status != SGM_OK) {
        *batch = NULL;
        iterator->placed = false;
        return status;
    }
    if (*batch) {
        iterator->state.batches++;
        return SGM_OK;
    }
    iterator->state = (sgm_iterator_state){.epoch = iterator->state.epoch + 1};
    iterator->placed = false;
    return SGM_OK;
}

/* The number of batches of an epoch with the settings of the current one; a smaller last minibatch counts
 * unless it is dropped. */
static sgm_status count_batches(sgm_iterator *iterator, int64_t *batches)
{
    SGM_TRY(sgm__iterator_count_blocks(iterator));
    if (iterator->kind == SGM__MINIBATCHES)
        *batches = iterator->example_count / iterator->size +
                   (!iterator->drop_last && iterator->example_count % iterator->size != 0);
    else
        *batches = iterator->kind == SGM__BY_BLOCK ? iterator->block_count : iterator->block_count > 0;
    return SGM_OK;
}

/* The settings of the current epoch are part of the state only if others have been set for the next one:
 * without them the position, a number of batches, would mean other examples after a resume. */
void sgm_iterator_get_state(const sgm_iterator *iterator, sgm_iterator_state *state)
{
    *state = iterator ? iterator->state : (sgm_iterator_state){0};
    if (iterator && sgm__dataset_grows(iterator->dataset) && iterator->limited == state->epoch)
        state->examples = iterator->limit;
    if (!iterator || state->batches == 0 || iterator->kind != SGM__MINIBATCHES ||
        (iterator->size == iterator->wanted.size && iterator->shuffle != iterator->wanted.no_shuffle &&
         iterator->drop_last == iterator->wanted.drop_last))
        return;
    state->size = iterator->size;
    state->no_shuffle = !iterator->shuffle;
    state->drop_last = iterator->drop_last;
}

/* How many examples the epoch of a state has, if the dataset grows: as many as the state says; else, in the
 * middle of an epoch that this iterator has begun, as many as that has. A new epoch takes what is there. */
static sgm_status limit_by_state(sgm_iterator *iterator, const sgm_iterator_state *state)
{
    int64_t examples = 0;
    if (!sgm__dataset_grows(iterator->dataset))
        return SGM_OK;
    SGM_TRY(sgm__dataset_block_examples(iterator->dataset, 0, &examples));
    if (state->examples < 0 || state->examples > examples)
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "iterator of \"%s\": its epoch %lld began with %lld examples, and there are %lld; append "
            "the others first",
            sgm_dataset_name(iterator->dataset), (long long)state->epoch, (long long)state->examples,
            (long long)examples);
    bool goes_on = state->batches > 0 && iterator->limited == state->epoch;
    limit_epoch(iterator, state->examples > 0 ? state->examples : goes_on ? iterator->limit : examples);
    return SGM_OK;
}

static sgm_status check_state(sgm_iterator *iterator, const sgm_iterator_state *state)
{
    int64_t batches;
    SGM_TRY(limit_by_state(iterator, state));
    SGM_TRY(count_batches(iterator, &batches));
    if (state->epoch >= 0 && state->batches >= 0 && state->batches <= batches)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_ARGUMENT,
                    "iterator of \"%s\": batch %lld of epoch %lld; an epoch has %lld batches",
                    sgm_dataset_name(iterator->dataset), (long long)state->batches, (long long)state->epoch,
                    (long long)batches);
}

/* Settings in the state hold for the rest of that epoch; without them those that were set last do. On failure
 * all is as before, but for what was prepared ahead. */
sgm_status sgm_iterator_set_state(sgm_iterator *iterator, const sgm_iterator_state *state)
{
    if (!iterator || !state)
        return sgm__missing_part("sgm_iterator_set_state: an iterator and a state");
    int64_t size = iterator->size, limit = iterator->limit, limited = iterator->limited;
    bool no_shuffle = !iterator->shuffle, drop_last = iterator->drop_last;
    if (state->size > 0 && state->batches > 0 && iterator->kind == SGM__MINIBATCHES)
        use(iterator, state->size, state->no_shuffle, state->drop_last);
    else
        take_wanted(iterator);
    sgm_status status = check_state(iterator, state);
    if (status != SGM_OK) {
        use(iterator, size, no_shuffle, drop_last);
        limit_epoch(iterator, limit);
        iterator->limited = limited;
        return status;
    }
    iterator->state = (sgm_iterator_state){.epoch = state->epoch, .batches = state->batches};
    iterator->limited = state->batches > 0 || state->examples > 0 ? state->epoch : SGM__NO_EPOCH;
    displace(iterator);
    return SGM_OK;
}

sgm_dataset *sgm_iterator_dataset(sgm_iterator *iterator)
{
    return iterator ? iterator->dataset : NULL;
}

/* Before the first batch of an epoch the settings for it are final, so the number is that of the epoch to
 * come. */
sgm_status sgm_iterator_batches(sgm_iterator *iterator, int64_t *batches)
{
    if (!iterator || !batches)
        return sgm__missing_part("sgm_iterator_batches: an iterator and a place for the number");
    SGM_TRY(begin_epoch(iterator));
    if (iterator->state.batches == 0)
        take_wanted(iterator);
    return count_batches(iterator, batches);
}

/* Parses the augmentation and starts its ring. The text is copied, since the options are the caller's.
 * no_prefetch means no threads: the ring then augments when a minibatch is taken. */
static sgm_status add_augmentation(sgm_iterator *iterator, const sgm_iterator_options *options)
{
    const char *name = sgm_dataset_name(iterator->dataset);
    iterator->wanted.augment = NULL;
    SGM_TRY(sgm__setting_check(sgm_setting_find(settings, SETTING_COUNT, "prefetch_threads"), options, name));
    if (iterator->wanted.prefetch_threads == 0)
        iterator->wanted.prefetch_threads = 1;
    if (!options->augment)
        return SGM_OK;
    sgm__augmentation *chain = sgm__augmentation_parse(options->augment);
    if (!chain)
        return sgm__fail_within("%s", name);
    iterator->wanted.augment = iterator->augment = sgm__strdup(options->augment);
    iterator->ahead = sgm__ahead_create(chain, options->no_prefetch ? 0 : iterator->wanted.prefetch_threads);
    return iterator->augment && iterator->ahead ? SGM_OK : SGM_ERROR_MEMORY;
}

/* Iterators over whole blocks are never shuffled; they ignore size and drop_last. */
static sgm_iterator *create(sgm_dataset *dataset, sgm__iterator_kind kind,
                            const sgm_iterator_options *options)
{
    if (!dataset) {
        sgm__missing_part("an iterator's dataset");
        return NULL;
    }
    if (sgm__setting_check(&settings[0], options, sgm_dataset_name(dataset)) != SGM_OK)
        return NULL;
    int64_t size = options->size != 0 ? options->size : (int64_t)settings[0].option.default_value;
    if (kind == SGM__MINIBATCHES && check_size(dataset, size) != SGM_OK)
        return NULL;
    sgm_iterator *made = sgm__calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->kind = kind;
    made->dataset = sgm_dataset_retain(dataset);
    made->wanted = *options;
    made->wanted.size = size;
    made->wanted.no_shuffle |= kind != SGM__MINIBATCHES;
    made->size = made->wanted.size;
    made->parts = 1;
    made->limit = INT64_MAX;
    made->limited = SGM__NO_EPOCH;
    made->seed = options->seed;
    made->shuffle = !made->wanted.no_shuffle;
    made->drop_last = options->drop_last;
    made->prefetches = !options->no_prefetch;
    made->order_epoch = SGM__NO_EPOCH;
    if (add_augmentation(made, options) == SGM_OK)
        return made;
    sgm_iterator_free(made);
    return NULL;
}

sgm_iterator *sgm_minibatches_with(sgm_dataset *dataset, const sgm_iterator_options *options)
{
    sgm_iterator_options copy;
    if (sgm__options_read(&copy, sizeof copy, options, "sgm_minibatches") != SGM_OK)
        return NULL;
    return create(dataset, SGM__MINIBATCHES, &copy);
}

sgm_iterator *sgm_by_block(sgm_dataset *dataset)
{
    return create(dataset, SGM__BY_BLOCK, &(sgm_iterator_options){.struct_size = 0});
}

sgm_iterator *sgm_full_batch(sgm_dataset *dataset)
{
    return create(dataset, SGM__FULL_BATCH, &(sgm_iterator_options){.struct_size = 0});
}

uint64_t sgm__iterator_seed(const sgm_iterator *iterator)
{
    return iterator ? iterator->seed : 0;
}

/* The size that was set last, which may hold only from the next epoch on. */
int64_t sgm__iterator_size(const sgm_iterator *iterator)
{
    return iterator->wanted.size;
}

bool sgm__iterator_shuffles(const sgm_iterator *iterator)
{
    return iterator && iterator->shuffle;
}

/* Augmentation may mix all examples of a minibatch (mixup), so an iterator that augments always makes the
 * whole minibatch. */
void sgm__iterator_set_part(sgm_iterator *iterator, int32_t part, int32_t parts)
{
    if (iterator->kind != SGM__MINIBATCHES || iterator->ahead ||
        (iterator->part == part && iterator->parts == parts))
        return;
    iterator->part = part;
    iterator->parts = parts;
    sgm__iterator_free_batches(iterator);
    displace(iterator);
}

/* The next minibatch moves the position on, but its examples are not copied. */
void sgm__iterator_skip_next(sgm_iterator *iterator)
{
    iterator->skips = true;
}

/* Without parts all examples were copied, and the batch itself knows how many: the last of an epoch may be
 * smaller. */
void sgm__iterator_given(const sgm_iterator *iterator, const sgm_block *batch, sgm__given_part *given)
{
    *given = iterator->given;
    if (iterator->parts == 1)
        *given = (sgm__given_part){.count = batch->count, .whole = batch->count};
}

bool sgm__iterator_augments(const sgm_iterator *iterator)
{
    return iterator && iterator->ahead;
}

/* Another iterator over the same dataset with the same settings, at the beginning of its first epoch. */
sgm_iterator *sgm__iterator_copy(const sgm_iterator *iterator)
{
    sgm_iterator_options options = iterator->wanted;
    options.seed = iterator->seed;
    options.no_prefetch = !iterator->prefetches;
    return create(iterator->dataset, iterator->kind, &options);
}

void sgm_iterator_free(sgm_iterator *iterator)
{
    if (!iterator)
        return;
    sgm__prefetch_free(iterator->prefetch);
    sgm__example_range_release(&iterator->range);
    let_go(iterator);
    sgm_block_free(iterator->joined);
    sgm__iterator_free_batches(iterator);
    sgm__ahead_free(iterator->ahead);
    sgm__free(iterator->augment);
    sgm__free(iterator->rows);
    sgm__free(iterator->order);
    sgm_dataset_free(iterator->dataset);
    sgm__free(iterator);
}
