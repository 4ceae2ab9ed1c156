/* Iterators: minibatches in an order that is a function of seed and epoch, whole blocks, or all blocks as
 * one. */
#include "data/dataset.h"
#include "registry/option_check.h"

#define NO_EPOCH (-1)

typedef enum { MINIBATCHES, UNDIVIDED, UNIFIED } iterator_kind;

struct sgm_iterator {
    iterator_kind kind;
    sgm_dataset *dataset;
    int64_t size;
    uint64_t seed;
    bool shuffle, drop_last, prefetches;
    sgm_iterator_options wanted; /* from the next epoch on; defaults filled in */
    sgm_iterator_state state;

    /* the blocks, as far as they had to be counted */
    bool counted;
    int64_t block_count, record_count;

    /* where it stands; unplaced after a failure and a change of state */
    bool placed;
    int64_t *order; /* of blocks, when shuffled; that of `order_epoch` */
    int64_t order_epoch;
    int64_t place; /* in the order */
    int64_t used;  /* records of the block there */

    sgm__run run;  /* the block at hand; its block NULL: none */
    int64_t *rows; /* the order of its records, when shuffled */
    size_t rows_capacity;
    bool no_thread; /* there is none to be had */
    sgm__prefetch *prefetch;

    sgm_block *full, *rest; /* the batch, and its front part for a smaller one */
    const sgm_block *held;  /* undivided, unified: a block of the dataset's */
    int64_t held_index;
    sgm_block *joined; /* unified: several blocks as one */
};

/* --- what may change --- */

/* Rows are about values that are given; the struct's 0 is the default. */
static const sgm_setting settings[] = {
    {.option = {.name = "minibatch_size",
                .kind = SGM_KIND_INTEGER,
                .unit = "records",
                .least = 1,
                .most = 1e7,
                .standard = 32,
                .live = true,
                .doc = "size of a minibatch",
                .effect = "from the next epoch on"},
     SGM_MEMBER(sgm_iterator_options, size)},
    {.option = {.name = "shuffle",
                .kind = SGM_KIND_BOOLEAN,
                .standard = true,
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
};
#define SETTING_COUNT (sizeof settings / sizeof *settings)

const sgm_setting *sgm_iterator_settings(size_t *count)
{
    *count = SETTING_COUNT;
    return settings;
}

static sgm_status find_setting(const sgm_iterator *iterator, const char *name, const sgm_setting **setting)
{
    if (!iterator || !name)
        return sgm__missing_part("a setting of an iterator: an iterator and a name");
    *setting = iterator->kind == MINIBATCHES ? sgm_setting_find(settings, SETTING_COUNT, name) : NULL;
    return *setting ? SGM_OK
                    : sgm_fail(SGM_ERROR_NOT_FOUND, "the iterator of \"%s\" has no setting '%.100s'%s",
                               sgm_dataset_name(iterator->dataset), name,
                               iterator->kind == MINIBATCHES ? "" : ": it gives whole blocks");
}

static void use(sgm_iterator *iterator, int64_t size, bool no_shuffle, bool drop_last)
{
    if (iterator->size != size) {
        sgm_block_free(iterator->full);
        sgm_block_free(iterator->rest);
        iterator->full = iterator->rest = NULL;
    }
    if (iterator->shuffle == no_shuffle)
        iterator->order_epoch = NO_EPOCH;
    iterator->size = size;
    iterator->shuffle = !no_shuffle;
    iterator->drop_last = drop_last;
    iterator->placed = false;
}

/* At the beginning of an epoch. */
static void take_wanted(sgm_iterator *iterator)
{
    if (iterator->kind == MINIBATCHES)
        use(iterator, iterator->wanted.size, iterator->wanted.no_shuffle, iterator->wanted.drop_last);
}

sgm_status sgm_iterator_set(sgm_iterator *iterator, const char *name, const sgm_content *content)
{
    const sgm_setting *setting = NULL;
    SGM_TRY(find_setting(iterator, name, &setting));
    if (!content)
        return sgm__missing_part("sgm_iterator_set: a content");
    return sgm_setting_set(setting, &iterator->wanted, NULL, content);
}

sgm_status sgm_iterator_get(const sgm_iterator *iterator, const char *name, sgm_content *content)
{
    const sgm_setting *setting = NULL;
    SGM_TRY(find_setting(iterator, name, &setting));
    return sgm_setting_get(setting, &iterator->wanted, content);
}

/* --- blocks --- */

static sgm_status count_blocks(sgm_iterator *iterator)
{
    if (iterator->counted)
        return SGM_OK;
    int64_t count = 0, sum = 0;
    for (int64_t records;; count++, sum += records) {
        SGM_TRY(sgm__dataset_block_records(iterator->dataset, count, &records));
        if (records == 0)
            break;
    }
    iterator->block_count = count;
    iterator->record_count = sum;
    iterator->counted = true;
    return SGM_OK;
}

/* Block `index`, and the request for the one after it; `next` -1: none. */
static sgm_status acquire(sgm_iterator *iterator, int64_t index, int64_t next, sgm__run *run)
{
    SGM_TRY(iterator->prefetch ? sgm__prefetch_take(iterator->prefetch, index, run)
                               : sgm__dataset_fetch_run(iterator->dataset, index, run));
    if (!iterator->prefetches || iterator->no_thread || !run->block || next < 0 || next == index ||
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

/* --- the order of minibatches --- */

/* Streams of random numbers: for each epoch one for the blocks, then one for the records of each block. */
static sgm__random random_of(const sgm_iterator *iterator, int64_t part)
{
    sgm__random epoch = sgm__random_make(iterator->seed, (uint64_t)iterator->state.epoch);
    uint64_t seed = sgm__random_uint32(&epoch);
    seed = seed << 32 | sgm__random_uint32(&epoch);
    return sgm__random_make(seed, (uint64_t)part);
}

static sgm_status order_blocks(sgm_iterator *iterator)
{
    if (!iterator->shuffle || iterator->order_epoch == iterator->state.epoch)
        return SGM_OK;
    SGM_TRY(count_blocks(iterator));
    if (!iterator->order)
        iterator->order = sgm__calloc((size_t)iterator->block_count, sizeof *iterator->order);
    if (!iterator->order)
        return SGM_ERROR_MEMORY;
    sgm__random random = random_of(iterator, 0);
    sgm__permutation(&random, iterator->order, iterator->block_count);
    iterator->order_epoch = iterator->state.epoch;
    return SGM_OK;
}

/* The block at a place of the order, -1 past the last one; unshuffled, the dataset knows where it ends. */
static int64_t block_at(const sgm_iterator *iterator, int64_t place)
{
    if (!iterator->shuffle)
        return place;
    return place < iterator->block_count ? iterator->order[place] : -1;
}

static sgm_status open_block(sgm_iterator *iterator)
{
    int64_t index = block_at(iterator, iterator->place);
    if (index < 0)
        return SGM_OK;
    SGM_TRY(acquire(iterator, index, block_at(iterator, iterator->place + 1), &iterator->run));
    if (!iterator->run.block || !iterator->shuffle)
        return SGM_OK;
    int64_t count = iterator->run.end - iterator->run.begin;
    SGM_TRY(sgm__reserve(&iterator->rows, &iterator->rows_capacity, (size_t)count, sizeof *iterator->rows));
    sgm__random random = random_of(iterator, index + 1);
    sgm__permutation(&random, iterator->rows, count);
    return SGM_OK;
}

static void close_block(sgm_iterator *iterator)
{
    sgm__run_release(&iterator->run);
    iterator->place++;
    iterator->used = 0;
}

/* Goes to where the state says, from the start of its epoch. */
static sgm_status find_place(sgm_iterator *iterator)
{
    sgm__run_release(&iterator->run);
    iterator->place = 0;
    iterator->used = 0;
    SGM_TRY(order_blocks(iterator));
    int64_t left;
    if (__builtin_mul_overflow(iterator->state.batches, iterator->size, &left))
        left = INT64_MAX;
    while (left > 0) {
        int64_t index = block_at(iterator, iterator->place), records = 0;
        if (index >= 0)
            SGM_TRY(sgm__dataset_block_records(iterator->dataset, index, &records));
        if (records == 0)
            break;
        if (left < records) {
            iterator->used = left;
            break;
        }
        left -= records;
        iterator->place++;
    }
    iterator->placed = true;
    return SGM_OK;
}

/* --- minibatches --- */

static sgm_block *make_batch(const sgm_block *like, int64_t count)
{
    sgm_block *batch = sgm_block_create(count);
    for (int32_t i = 0; batch && i < like->section_count; i++) {
        sgm_shape shape = *sgm_tensor_shape(like->sections[i].values);
        shape.dims[0] = count;
        sgm_tensor *values = sgm_tensor_create(SGM_FLOAT32, &shape);
        if (!values || sgm_block_add(batch, like->sections[i].name, values) != SGM_OK) {
            sgm_block_free(batch);
            batch = NULL;
        }
    }
    return batch;
}

/* The first `count` records of the full batch; the same block each time the count is the same. */
static sgm_status cut_rest(sgm_iterator *iterator, int64_t count)
{
    if (iterator->rest && iterator->rest->count == count)
        return SGM_OK;
    sgm_block_free(iterator->rest);
    iterator->rest = sgm_block_create(count);
    if (!iterator->rest)
        return sgm_last_status();
    for (int32_t i = 0; i < iterator->full->section_count; i++) {
        const sgm_section *section = &iterator->full->sections[i];
        sgm_tensor *front = sgm_tensor_slice(section->values, 0, 0, count, 1);
        sgm_status status = front ? sgm_block_add(iterator->rest, section->name, front) : sgm_last_status();
        if (status != SGM_OK) {
            sgm_block_free(iterator->rest);
            iterator->rest = NULL;
            return status;
        }
    }
    return SGM_OK;
}

/* A record of few numbers is over before a call would be: two pieces of fixed size that overlap. */
static inline void copy_record(float *to, const float *from, size_t elements)
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

/* Copies `count` records of the block at hand to the batch, from its record `got` on. */
static void gather(sgm_iterator *iterator, int64_t got, int64_t count)
{
    const sgm__run *run = &iterator->run;
    for (int32_t s = 0; s < iterator->full->section_count; s++) {
        sgm_tensor *target = iterator->full->sections[s].values;
        size_t elements = (size_t)(sgm_shape_elements(sgm_tensor_shape(target)) / iterator->full->count);
        const float *from = (const float *)sgm_tensor_const_data(run->block->sections[s].values) +
                            (size_t)run->begin * elements;
        float *to = (float *)sgm_tensor_data(target) + (size_t)got * elements;
        if (!iterator->shuffle) {
            memcpy(to, from + (size_t)iterator->used * elements, (size_t)count * elements * sizeof *to);
            continue;
        }
        for (int64_t i = 0; i < count; i++, to += elements)
            copy_record(to, from + (size_t)iterator->rows[iterator->used + i] * elements, elements);
    }
}

/* Fills the batch; *got is smaller at the end of the epoch only. */
static sgm_status fill_batch(sgm_iterator *iterator, int64_t *got)
{
    *got = 0;
    while (*got < iterator->size) {
        if (!iterator->run.block)
            SGM_TRY(open_block(iterator));
        if (!iterator->run.block)
            break;
        if (!iterator->full) {
            bool all = iterator->counted && iterator->record_count < iterator->size;
            iterator->full = make_batch(iterator->run.block, all ? iterator->record_count : iterator->size);
            if (!iterator->full)
                return sgm_last_status();
        }
        int64_t records = iterator->run.end - iterator->run.begin;
        int64_t count = records - iterator->used, room = iterator->size - *got;
        if (count > room)
            count = room;
        gather(iterator, *got, count);
        *got += count;
        iterator->used += count;
        if (iterator->used == records)
            close_block(iterator);
    }
    return SGM_OK;
}

static sgm_status next_minibatch(sgm_iterator *iterator, const sgm_block **batch)
{
    int64_t got;
    if (iterator->state.batches == 0)
        take_wanted(iterator);
    if (!iterator->placed)
        SGM_TRY(find_place(iterator));
    SGM_TRY(fill_batch(iterator, &got));
    if (got == 0 || (got < iterator->size && iterator->drop_last))
        return SGM_OK;
    if (got < iterator->full->count) {
        SGM_TRY(cut_rest(iterator, got));
        *batch = iterator->rest;
    } else {
        *batch = iterator->full;
    }
    return SGM_OK;
}

/* --- whole blocks --- */

static void let_go(sgm_iterator *iterator)
{
    sgm_dataset_release(iterator->dataset, iterator->held);
    iterator->held = NULL;
}

/* Block `index` of the dataset's, without a copy; the same one is not fetched again. */
static sgm_status hold_block(sgm_iterator *iterator, int64_t index, const sgm_block **batch)
{
    if (!iterator->held || iterator->held_index != index) {
        sgm__run run;
        SGM_TRY(acquire(iterator, index, index + 1, &run));
        if (!run.block)
            return SGM_OK;
        const sgm_block *block = sgm__run_block(&run);
        if (!block)
            return sgm_last_status();
        let_go(iterator);
        iterator->held = block;
        iterator->held_index = index;
    }
    *batch = iterator->held;
    return SGM_OK;
}

static sgm_status join_blocks(sgm_iterator *iterator)
{
    sgm__builder builder = {0};
    sgm_status status = SGM_OK;
    for (int64_t i = 0; status == SGM_OK && i < iterator->block_count; i++) {
        sgm__run run;
        status = acquire(iterator, i, i + 1 < iterator->block_count ? i + 1 : -1, &run);
        if (status == SGM_OK && run.block)
            status = sgm__builder_append(&builder, run.block, run.begin, run.end);
        sgm__run_release(&run);
    }
    if (status == SGM_OK) {
        iterator->joined = sgm__builder_take(&builder);
        status = iterator->joined ? SGM_OK : sgm_last_status();
    }
    sgm__builder_free(&builder);
    return status;
}

static sgm_status next_unified(sgm_iterator *iterator, const sgm_block **batch)
{
    SGM_TRY(count_blocks(iterator));
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

bool sgm__iterator_is_ready(const sgm_iterator *iterator)
{
    return iterator->kind == MINIBATCHES && iterator->run.block != NULL &&
           iterator->run.end - iterator->run.begin - iterator->used >= iterator->size;
}

static sgm_status next_batch(sgm_iterator *iterator, const sgm_block **batch)
{
    if (iterator->kind == MINIBATCHES)
        return next_minibatch(iterator, batch);
    return iterator->kind == UNDIVIDED ? hold_block(iterator, iterator->state.batches, batch)
                                       : next_unified(iterator, batch);
}

sgm_status sgm_iterator_next(sgm_iterator *iterator, const sgm_block **batch)
{
    if (!iterator || !batch)
        return sgm__missing_part("sgm_iterator_next: an iterator and a place for the batch");
    *batch = NULL;
    sgm_status status = next_batch(iterator, batch);
    if (status != SGM_OK) {
        *batch = NULL;
        iterator->placed = false; /* the next call tries the same batch again */
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

/* Of the epoch at hand. */
static sgm_status count_batches(sgm_iterator *iterator, int64_t *batches)
{
    SGM_TRY(count_blocks(iterator));
    if (iterator->kind == MINIBATCHES)
        *batches = iterator->record_count / iterator->size +
                   (!iterator->drop_last && iterator->record_count % iterator->size != 0);
    else
        *batches = iterator->kind == UNDIVIDED ? iterator->block_count : iterator->block_count > 0;
    return SGM_OK;
}

void sgm_iterator_get_state(const sgm_iterator *iterator, sgm_iterator_state *state)
{
    *state = iterator ? iterator->state : (sgm_iterator_state){0};
    if (!iterator || state->batches == 0 ||
        (iterator->size == iterator->wanted.size && iterator->shuffle != iterator->wanted.no_shuffle &&
         iterator->drop_last == iterator->wanted.drop_last))
        return;
    state->size = iterator->size;
    state->no_shuffle = !iterator->shuffle;
    state->drop_last = iterator->drop_last;
}

sgm_status sgm_iterator_set_state(sgm_iterator *iterator, const sgm_iterator_state *state)
{
    if (!iterator || !state)
        return sgm__missing_part("sgm_iterator_set_state: an iterator and a state");
    int64_t batches, size = iterator->size;
    bool no_shuffle = !iterator->shuffle, drop_last = iterator->drop_last;
    if (state->size > 0 && state->batches > 0 && iterator->kind == MINIBATCHES)
        use(iterator, state->size, state->no_shuffle, state->drop_last);
    else
        take_wanted(iterator);
    sgm_status status = count_batches(iterator, &batches);
    if (status == SGM_OK && (state->epoch < 0 || state->batches < 0 || state->batches > batches))
        status = sgm_fail(SGM_ERROR_ARGUMENT,
                          "iterator of \"%s\": batch %lld of epoch %lld; an epoch has %lld batches",
                          sgm_dataset_name(iterator->dataset), (long long)state->batches,
                          (long long)state->epoch, (long long)batches);
    if (status != SGM_OK) {
        use(iterator, size, no_shuffle, drop_last);
        return status;
    }
    iterator->state = (sgm_iterator_state){.epoch = state->epoch, .batches = state->batches};
    iterator->placed = false;
    return SGM_OK;
}

sgm_dataset *sgm_iterator_dataset(sgm_iterator *iterator)
{
    return iterator ? iterator->dataset : NULL;
}

sgm_status sgm_iterator_batches(sgm_iterator *iterator, int64_t *batches)
{
    if (!iterator || !batches)
        return sgm__missing_part("sgm_iterator_batches: an iterator and a place for the number");
    if (iterator->state.batches == 0)
        take_wanted(iterator);
    return count_batches(iterator, batches);
}

static sgm_iterator *create(sgm_dataset *dataset, iterator_kind kind, const sgm_iterator_options *options)
{
    if (!dataset) {
        sgm__missing_part("an iterator's dataset");
        return NULL;
    }
    if (sgm__setting_check(&settings[0], options, sgm_dataset_name(dataset)) != SGM_OK)
        return NULL;
    sgm_iterator *made = sgm__calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->kind = kind;
    made->dataset = sgm_dataset_retain(dataset);
    made->wanted = *options;
    if (made->wanted.size == 0)
        made->wanted.size = (int64_t)settings[0].option.standard;
    made->wanted.no_shuffle |= kind != MINIBATCHES;
    made->size = made->wanted.size;
    made->seed = options->seed;
    made->shuffle = !made->wanted.no_shuffle;
    made->drop_last = options->drop_last;
    made->prefetches = !options->no_prefetch;
    made->order_epoch = NO_EPOCH;
    return made;
}

sgm_iterator *sgm_minibatches_create(sgm_dataset *dataset, const sgm_iterator_options *options)
{
    sgm_iterator_options copy;
    if (sgm__options_read(&copy, sizeof copy, options, "sgm_minibatches") != SGM_OK)
        return NULL;
    return create(dataset, MINIBATCHES, &copy);
}

sgm_iterator *sgm_undivided(sgm_dataset *dataset)
{
    return create(dataset, UNDIVIDED, &(sgm_iterator_options){0});
}

sgm_iterator *sgm_unified(sgm_dataset *dataset)
{
    return create(dataset, UNIFIED, &(sgm_iterator_options){0});
}

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
    sgm__run_release(&iterator->run);
    let_go(iterator);
    sgm_block_free(iterator->joined);
    sgm_block_free(iterator->rest);
    sgm_block_free(iterator->full);
    sgm__free(iterator->rows);
    sgm__free(iterator->order);
    sgm_dataset_free(iterator->dataset);
    sgm__free(iterator);
}
