/* Iterators: every example once an epoch, an order of seed and epoch, going on from a state, no memory taken.
 */
#include "pipeline_test.h"

#include "data/dataset.h"

#define TOTAL 103

static sgm_dataset *numbers(int64_t block_size)
{
    return sgm_dataset_create("numbers", .extractor = counting_extractor(TOTAL, 2), .block_size = block_size);
}

/* One epoch's examples in their order; checks batch sizes and alignment. Gives the number of batches. */
static int epoch(sgm_iterator *iterator, int64_t size, int *order)
{
    int64_t seen = 0;
    int batches = 0;
    for (;; batches++) {
        const sgm_block *batch;
        CHECK_OK(sgm_iterator_next(iterator, &batch));
        if (!batch)
            break;
        CHECK(batch->count == size || seen + batch->count == TOTAL);
        for (int64_t i = 0; i < batch->count; i++) {
            double example = pipeline_at(batch, "targets", i, 0);
            CHECK_NEAR(pipeline_at(batch, "inputs", i, 1), example + 0.5, 0);
            order[seen++] = (int)example;
        }
    }
    CHECK_INT(seen, TOTAL);
    return batches;
}

static void check_all_once(const int *order)
{
    bool seen[TOTAL] = {false};
    for (int i = 0; i < TOTAL; i++) {
        CHECK(order[i] >= 0 && order[i] < TOTAL && !seen[order[i]]);
        seen[order[i]] = true;
    }
}

static int differences(const int *a, const int *b)
{
    int count = 0;
    for (int i = 0; i < TOTAL; i++)
        count += a[i] != b[i];
    return count;
}

TEST(every_example_once_an_epoch)
{
    const int64_t blocks[] = {1, 10, 17, 200}, sizes[] = {1, 10, 16, 103, 500};
    for (int b = 0; b < 4; b++) {
        sgm_dataset *dataset = numbers(blocks[b]);
        for (int s = 0; s < 5; s++) {
            int first[TOTAL], second[TOTAL];
            sgm_iterator *iterator = sgm_minibatches(dataset, .size = sizes[s], .seed = 3);
            CHECK_INT(epoch(iterator, sizes[s], first), (TOTAL + sizes[s] - 1) / sizes[s]);
            epoch(iterator, sizes[s], second);
            check_all_once(first);
            check_all_once(second);
            CHECK(differences(first, second) > 60);
            int64_t batches;
            CHECK_OK(sgm_iterator_batches(iterator, &batches));
            CHECK_INT(batches, (TOTAL + sizes[s] - 1) / sizes[s]);
            sgm_iterator_free(iterator);
        }
        sgm_dataset_free(dataset);
    }
    CHECK_INT(atomic_load(&allocator_live), 0);
}

/* Short examples are copied otherwise than long ones. */
TEST(examples_of_any_width)
{
    for (int32_t width = 1; width <= 40; width++) {
        sgm_dataset *dataset =
            sgm_dataset_create("wide", .extractor = counting_extractor(TOTAL, width), .block_size = 10);
        sgm_iterator *iterator = sgm_minibatches(dataset, .size = 7, .seed = 1);
        const sgm_block *batch;
        for (;;) {
            CHECK_OK(sgm_iterator_next(iterator, &batch));
            if (!batch)
                break;
            for (int64_t i = 0; i < batch->count; i++)
                for (int32_t k = 0; k < width; k++)
                    CHECK_NEAR(pipeline_at(batch, "inputs", i, k),
                               pipeline_at(batch, "targets", i, 0) + 0.5 * k, 0);
        }
        sgm_iterator_free(iterator);
        sgm_dataset_free(dataset);
    }
}

TEST(order_depends_on_seed_and_epoch_only)
{
    int reference[3][TOTAL], order[TOTAL];
    sgm_dataset *dataset = numbers(10);
    sgm_iterator *iterator = sgm_minibatches(dataset, .seed = 5, .size = 10);
    for (int e = 0; e < 3; e++)
        epoch(iterator, 10, reference[e]);
    sgm_iterator_free(iterator);
    /* Another batch size, no thread, less memory, a fresh dataset, epochs in another order: the same
     * examples.
     */
    sgm_dataset *other = sgm_dataset_create("other", .extractor = counting_extractor(TOTAL, 2),
                                            .block_size = 10, .memory_limit = 300);
    iterator = sgm_minibatches(other, .seed = 5, .size = 7, .no_prefetch = true);
    for (int e = 2; e >= 0; e--) {
        CHECK_OK(sgm_iterator_set_state(iterator, &(sgm_iterator_state){.epoch = e}));
        epoch(iterator, 7, order);
        CHECK_INT(differences(order, reference[e]), 0);
    }
    sgm_iterator_free(iterator);
    iterator = sgm_minibatches(other, .seed = 6, .size = 10);
    epoch(iterator, 10, order);
    CHECK(differences(order, reference[0]) > 60);
    sgm_iterator_free(iterator);
    iterator = sgm_minibatches(other, .no_shuffle = true, .size = 10);
    epoch(iterator, 10, order);
    for (int i = 0; i < TOTAL; i++)
        CHECK_INT(order[i], i);
    sgm_iterator_free(iterator);
    sgm_dataset_free(other);
    sgm_dataset_free(dataset);
}

/* The order for a seed is part of what a run is: other bits of it, and old checkpoints go on otherwise.
 * Blocks of 10 examples, and all in one block. */
TEST(the_order_of_a_seed_never_changes)
{
    enum { LOOKED_AT = 24 };
    static const struct {
        int64_t block_size, epoch;
        uint64_t seed;
        int order[LOOKED_AT];
    } golden[] = {
        {10, 0, 5, {94, 96, 95, 93, 90, 99, 92, 91, 97, 98, 53, 51,
                    55, 59, 56, 54, 57, 52, 50, 58, 48, 44, 42, 49}},
        {10, 1, 5, {79, 77, 74, 71, 70, 72, 73, 75, 78, 76, 29, 28,
                    24, 26, 23, 27, 25, 22, 21, 20, 96, 92, 91, 99}},
        {10, 2, 6, {26, 24, 21, 27, 29, 25, 20, 22, 28, 23, 69, 67,
                    60, 64, 63, 68, 66, 62, 61, 65, 73, 76, 75, 78}},
        {200, 0, 5, {18, 87, 43, 41, 78, 4,  35, 22,  32, 100, 58, 44,
                     46, 86, 33, 15, 67, 94, 53, 102, 71, 66,  3,  21}},
        {200, 7, 123456789, {65, 64, 13, 73, 72, 59, 22, 2,   17, 67, 15, 42,
                             70, 81, 9,  37, 68, 35, 60, 102, 97, 50, 53, 16}},
    };
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        int order[TOTAL];
        sgm_dataset *dataset = numbers(golden[i].block_size);
        sgm_iterator *iterator = sgm_minibatches(dataset, .seed = golden[i].seed, .size = 8);
        CHECK_OK(sgm_iterator_set_state(iterator, &(sgm_iterator_state){.epoch = golden[i].epoch}));
        epoch(iterator, 8, order);
        for (int k = 0; k < LOOKED_AT; k++)
            CHECK_INT(order[k], golden[i].order[k]);
        sgm_iterator_free(iterator);
        sgm_dataset_free(dataset);
    }
}

/* From amid a block, in the middle of an epoch; not behind all data. */
TEST(a_state_is_gone_to_from_anywhere)
{
    int reference[TOTAL], order[TOTAL];
    sgm_dataset *dataset = numbers(10);
    sgm_iterator *iterator = sgm_minibatches(dataset, .size = 7, .seed = 5);
    const sgm_block *batch;
    epoch(iterator, 7, reference);
    for (int done = 1; done < 14; done++) {
        CHECK_OK(sgm_iterator_set_state(iterator, &(sgm_iterator_state){.batches = done % 3}));
        for (int i = 0; i < done; i++)
            CHECK_OK(sgm_iterator_next(iterator, &batch));
        CHECK_OK(sgm_iterator_set_state(iterator, &(sgm_iterator_state){0}));
        epoch(iterator, 7, order);
        CHECK_INT(differences(order, reference), 0);
    }
    CHECK_ERROR(sgm_iterator_set_state(iterator, &(sgm_iterator_state){.epoch = 3, .batches = INT64_MAX / 2}),
                "batch 4611686018427387903 of epoch 3; an epoch has 15 batches");
    sgm_iterator_free(iterator);
    sgm_dataset_free(dataset);
}

/* Stops after `done` batches of the second epoch, and goes on in another iterator. */
static void check_resume(int64_t block_size, int64_t size, int done, bool no_shuffle)
{
    int whole[TOTAL], order[TOTAL];
    sgm_iterator_state state;
    sgm_dataset *dataset = numbers(block_size), *fresh = numbers(block_size);
    sgm_iterator *iterator = sgm_minibatches(dataset, .size = size, .seed = 9, .no_shuffle = no_shuffle);
    epoch(iterator, size, order);
    for (int i = 0; i < done; i++) {
        const sgm_block *batch;
        CHECK_OK(sgm_iterator_next(iterator, &batch));
        for (int64_t k = 0; k < batch->count; k++)
            whole[i * size + k] = (int)pipeline_at(batch, "targets", k, 0);
    }
    sgm_iterator_get_state(iterator, &state);
    CHECK(state.epoch == 1 && state.batches == done);
    sgm_iterator_free(iterator);
    iterator = sgm_minibatches(fresh, .size = size, .seed = 9, .no_shuffle = no_shuffle);
    CHECK_OK(sgm_iterator_set_state(iterator, &state));
    int64_t seen = done * size < TOTAL ? done * size : TOTAL;
    for (const sgm_block *batch; sgm_iterator_next(iterator, &batch) == SGM_OK && batch;)
        for (int64_t k = 0; k < batch->count && seen < TOTAL; k++)
            whole[seen++] = (int)pipeline_at(batch, "targets", k, 0);
    CHECK_INT(seen, TOTAL);
    check_all_once(whole);
    sgm_iterator_get_state(iterator, &state);
    CHECK(state.epoch == 2 && state.batches == 0);
    sgm_iterator_set_state(iterator, &(sgm_iterator_state){.epoch = 1});
    epoch(iterator, size, order);
    CHECK_INT(differences(order, whole), 0);
    sgm_iterator_free(iterator);
    sgm_dataset_free(dataset);
    sgm_dataset_free(fresh);
}

TEST(resume_in_the_middle_of_an_epoch)
{
    check_resume(10, 7, 4, false);
    check_resume(10, 10, 3, false);
    check_resume(10, 16, 7, false); /* all batches given, the epoch not yet ended */
    check_resume(200, 16, 1, false);
    check_resume(10, 7, 4, true);
    sgm_dataset *dataset = numbers(10);
    sgm_iterator *iterator = sgm_minibatches(dataset, .size = 50);
    CHECK_ERROR(sgm_iterator_set_state(iterator, &(sgm_iterator_state){.batches = 4}),
                "an epoch has 3 batches");
    sgm_iterator_free(iterator);
    CHECK_ERROR(sgm_minibatches(dataset, .size = -5),
                "minibatch_size: expected an integer from 1 to 10000000 examples, got -5");
    sgm_dataset_free(dataset);
}

TEST(drop_last)
{
    sgm_dataset *dataset = numbers(10);
    sgm_iterator *iterator = sgm_minibatches(dataset, .size = 25, .drop_last = true);
    int64_t batches;
    CHECK_OK(sgm_iterator_batches(iterator, &batches));
    CHECK_INT(batches, 4);
    for (int e = 0; e < 2; e++) {
        const sgm_block *batch;
        for (int i = 0; i < 4; i++) {
            CHECK_OK(sgm_iterator_next(iterator, &batch));
            CHECK(batch != NULL && batch->count == 25);
        }
        CHECK_OK(sgm_iterator_next(iterator, &batch));
        CHECK(batch == NULL);
    }
    sgm_iterator_free(iterator);
    sgm_dataset_free(dataset);
}

TEST(whole_blocks_and_all_as_one)
{
    sgm_dataset *dataset = numbers(40), *view = sgm_dataset_split_examples(dataset, 0.5, 0.5);
    sgm_iterator *whole = sgm_by_block(dataset), *one = sgm_full_batch(dataset), *part = sgm_full_batch(view);
    const int64_t counts[] = {40, 40, 23};
    const sgm_block *batch;
    for (int e = 0; e < 2; e++) {
        for (int i = 0; i < 3; i++) {
            CHECK_OK(sgm_iterator_next(whole, &batch));
            CHECK_INT(batch->count, counts[i]);
            CHECK_NEAR(pipeline_at(batch, "inputs", 22, 1), i * 40 + 22.5, 0);
        }
        CHECK_OK(sgm_iterator_next(whole, &batch));
        CHECK(batch == NULL);
        CHECK_OK(sgm_iterator_next(one, &batch));
        CHECK_INT(batch->count, TOTAL);
        for (int i = 0; i < TOTAL; i++)
            CHECK_NEAR(pipeline_at(batch, "targets", i, 0), i, 0);
        CHECK_OK(sgm_iterator_next(one, &batch));
        CHECK(batch == NULL);
        CHECK_OK(sgm_iterator_next(part, &batch));
        CHECK_INT(batch->count, 51); /* 20 + 20 + 11 */
        CHECK_NEAR(pipeline_at(batch, "targets", 20, 0), 60, 0);
        CHECK_NEAR(pipeline_at(batch, "targets", 50, 0), 102, 0);
        CHECK_OK(sgm_iterator_next(part, &batch));
        CHECK(batch == NULL);
    }
    CHECK(sgm_iterator_dataset(part) == view);
    sgm_iterator_free(whole);
    sgm_iterator_free(one);
    sgm_iterator_free(part);
    sgm_dataset_free(view);
    sgm_dataset_free(dataset);
    CHECK_INT(atomic_load(&allocator_live), 0);
}

/* --- memory --- */

static void run_epoch(sgm_iterator *iterator)
{
    for (const sgm_block *batch; sgm_iterator_next(iterator, &batch) == SGM_OK && batch;)
        CHECK(batch->count > 0);
}

static void check_steady(sgm_iterator *iterator)
{
    run_epoch(iterator);
    run_epoch(iterator);
    long calls = atomic_load(&allocator_calls);
    for (int e = 0; e < 3; e++)
        run_epoch(iterator);
    CHECK_INT(atomic_load(&allocator_calls) - calls, 0);
    sgm_iterator_free(iterator);
}

TEST(no_memory_after_the_first_epoch)
{
    sgm_dataset *dataset = numbers(10), *view = sgm_dataset_split_examples(dataset, 0.2, 0.5);
    sgm_dataset *iris = sgm_dataset_open("iris");
    check_steady(sgm_minibatches(dataset, .size = 16));
    check_steady(sgm_minibatches(dataset, .size = 16, .no_prefetch = true));
    check_steady(sgm_minibatches(view, .size = 16));
    check_steady(sgm_minibatches(iris, .size = 10));
    check_steady(sgm_by_block(dataset));
    check_steady(sgm_by_block(iris));
    check_steady(sgm_full_batch(view));
    sgm_dataset_free(iris);
    sgm_dataset_free(view);
    sgm_dataset_free(dataset);
}

/* False: something failed, with a message. */
static bool use_iris(bool split)
{
    sgm_dataset *iris = sgm_dataset_open(split ? "digits-test" : "iris");
    sgm_iterator *batches = iris ? sgm_minibatches(iris, .size = 40) : NULL;
    sgm_iterator *whole = batches ? sgm_full_batch(iris) : NULL;
    bool good = whole != NULL;
    for (int e = 0; good && e < 2; e++) {
        const sgm_block *batch;
        int64_t seen = 0;
        while ((good = sgm_iterator_next(batches, &batch) == SGM_OK) && batch)
            seen += batch->count;
        good = good && seen == (split ? 297 : 150) && sgm_iterator_next(whole, &batch) == SGM_OK && batch &&
               sgm_iterator_next(whole, &batch) == SGM_OK && !batch;
    }
    sgm_iterator_free(whole);
    sgm_iterator_free(batches);
    sgm_dataset_free(iris);
    return good;
}

static void fail_each_in_turn(bool once)
{
    sgm_set_logger(NULL, NULL, SGM_LOG_NONE);
    atomic_store(&allocator_fail_once, once);
    for (int split = 0; split < 2; split++) {
        bool done = false;
        long failures = 0;
        for (long n = 1; !done; n += split ? 3 : 1, failures++) {
            long live = atomic_load(&allocator_live);
            sgm_clear_error();
            atomic_store(&allocator_calls, 0);
            atomic_store(&allocator_fail_at, n);
            bool good = use_iris(split);
            done = atomic_load(&allocator_calls) < n;
            atomic_store(&allocator_fail_at, 0);
            CHECK(good || !done);
            CHECK_INT(atomic_load(&allocator_live), live);
            if (!good) /* what failed may also be something that one can do without: the thread */
                CHECK_INT(sgm_last_status(), SGM_ERROR_MEMORY);
        }
        CHECK(failures > 20);
    }
}

TEST(memory_ends_at_any_allocation)
{
    fail_each_in_turn(false);
}

TEST(any_one_allocation_fails)
{
    fail_each_in_turn(true);
}

/* --- failures of the source --- */

static sgm_status broken_read(void *pointer, int64_t count, sgm_examples *examples)
{
    counting_reader *self = pointer;
    if (self->next >= 40 && self->reads < 200)
        return sgm_fail(SGM_ERROR_FILE, "the disk is on fire");
    return counting_read(pointer, count < 10 ? count : 10, examples);
}

TEST(failures_come_through_and_can_be_tried_again)
{
    static const sgm_reader_type type = {
        .name = "broken", .read = broken_read, .rewind = counting_rewind, .free = counting_free};
    for (int prefetch = 0; prefetch < 2; prefetch++) {
        counting_reader *self = calloc(1, sizeof *self);
        *self = (counting_reader){.total = TOTAL, .width = 2};
        sgm_extractor *examples = sgm_array_extractor(
            sgm_reader_create(&type, self, "broken"),
            .regions = {{.field = "inputs"}, {"targets", sgm_shape_of(0), sgm_shape_of(1), {0}, 0}});
        sgm_dataset *dataset = sgm_dataset_create("broken", .extractor = examples, .block_size = 20);
        sgm_iterator *iterator =
            sgm_minibatches(dataset, .size = 15, .no_shuffle = true, .no_prefetch = prefetch == 0);
        const sgm_block *batch;
        CHECK_OK(sgm_iterator_next(iterator, &batch));
        CHECK_OK(sgm_iterator_next(iterator, &batch));
        CHECK_ERROR(sgm_iterator_next(iterator, &batch), "dataset \"broken\": the disk is on fire");
        self->reads = 200; /* put out */
        int64_t seen = 30;
        for (; sgm_iterator_next(iterator, &batch) == SGM_OK && batch; seen += batch->count)
            CHECK_NEAR(pipeline_at(batch, "targets", 0, 0), (double)seen, 0);
        CHECK_INT(seen, TOTAL);
        sgm_iterator_free(iterator);
        sgm_dataset_free(dataset);
    }
    CHECK_INT(atomic_load(&allocator_live), 0);
}

/* The parts of a minibatch side by side: its examples in their order, none twice, none lost. */
static void check_parts(sgm_dataset *dataset, int64_t size, int32_t parts, bool drop_last)
{
    sgm_iterator *iterators[5],
        *whole = sgm_minibatches(dataset, .size = size, .seed = 9, .drop_last = drop_last);
    CHECK_OK(whole);
    for (int32_t p = 0; p < parts; p++) {
        iterators[p] = sgm_minibatches(dataset, .size = size, .seed = 9, .drop_last = drop_last);
        CHECK_OK(iterators[p]);
        sgm__iterator_set_part(iterators[p], p, parts);
    }
    for (int ended = 0; ended < 2;) {
        const sgm_block *all, *batch;
        CHECK_OK(sgm_iterator_next(whole, &all));
        for (int32_t p = 0; p < parts; p++) {
            sgm__given_part given;
            CHECK_OK(sgm_iterator_next(iterators[p], &batch));
            CHECK((batch == NULL) == (all == NULL));
            if (all == NULL)
                continue;
            sgm__iterator_given(iterators[p], batch, &given);
            CHECK_INT(given.whole, all->count);
            CHECK_INT(batch->count, given.count);
            CHECK_INT(given.first, all->count < parts ? 0 : all->count * p / parts);
            CHECK_INT(given.count,
                      all->count < parts ? all->count : all->count * (p + 1) / parts - given.first);
            for (int64_t i = 0; i < batch->count; i++)
                CHECK_NEAR(pipeline_at(batch, "targets", i, 0),
                           pipeline_at(all, "targets", given.first + i, 0), 0);
        }
        ended += all == NULL;
    }
    for (int32_t p = 0; p < parts; p++)
        sgm_iterator_free(iterators[p]);
    sgm_iterator_free(whole);
}

TEST(parts_of_minibatches_make_the_whole)
{
    const int64_t blocks[] = {7, 50, 200}, sizes[] = {3, 10, 34, 500};
    for (int b = 0; b < 3; b++) {
        sgm_dataset *dataset = numbers(blocks[b]);
        for (int s = 0; s < 4; s++)
            for (int32_t parts = 1; parts <= 5; parts++)
                check_parts(dataset, sizes[s], parts, s == 1);
        sgm_dataset_free(dataset);
    }
}

/* Who skips a minibatch has the next one as if it had been given, whole or in part. */
TEST(what_is_skipped_is_passed_over)
{
    sgm_dataset *dataset = numbers(20);
    for (int32_t parts = 1; parts <= 3; parts += 2) {
        sgm_iterator *first = sgm_minibatches(dataset, .size = 10, .seed = 2);
        sgm_iterator *second = sgm_minibatches(dataset, .size = 10, .seed = 2);
        const sgm_block *a, *b;
        sgm__iterator_set_part(first, parts - 1, parts);
        sgm__iterator_set_part(second, parts - 1, parts);
        for (int i = 0; i < 6; i++) {
            CHECK_OK(sgm_iterator_next(first, &a));
            if (i % 2 == 0)
                sgm__iterator_skip_next(second);
            CHECK_OK(sgm_iterator_next(second, &b));
            CHECK(b != NULL);
            for (int64_t k = 0; i % 2 == 1 && k < a->count; k++)
                CHECK_NEAR(pipeline_at(a, "targets", k, 0), pipeline_at(b, "targets", k, 0), 0);
        }
        sgm_iterator_free(first);
        sgm_iterator_free(second);
    }
    sgm_dataset_free(dataset);
}

TEST(a_part_goes_on_from_a_state)
{
    sgm_dataset *dataset = numbers(20);
    sgm_iterator *first = sgm_minibatches(dataset, .size = 10, .seed = 2);
    sgm_iterator *second = sgm_minibatches(dataset, .size = 10, .seed = 2);
    const sgm_block *a, *b;
    sgm_iterator_state state;
    sgm__iterator_set_part(first, 1, 3);
    for (int i = 0; i < 4; i++)
        CHECK_OK(sgm_iterator_next(first, &a));
    sgm_iterator_get_state(first, &state);
    CHECK_OK(sgm_iterator_set_state(second, &state));
    sgm__iterator_set_part(second, 1, 3);
    CHECK_OK(sgm_iterator_next(first, &a));
    CHECK_OK(sgm_iterator_next(second, &b));
    CHECK_INT(a->count, 3);
    CHECK_INT(b->count, 3);
    for (int64_t i = 0; i < a->count; i++)
        CHECK_NEAR(pipeline_at(a, "targets", i, 0), pipeline_at(b, "targets", i, 0), 0);
    sgm_iterator_free(first);
    sgm_iterator_free(second);
    sgm_dataset_free(dataset);
}

/* A failure about any example of any minibatch names that example as the dataset numbers it: its own number.
 */
static void check_named(sgm_iterator *iterator, int epochs)
{
    int64_t named = 0;
    for (int e = 0; e < epochs; e++)
        for (const sgm_block *batch;;) {
            CHECK_OK(sgm_iterator_next(iterator, &batch));
            if (!batch)
                break;
            for (int64_t i = 0; i < batch->count; i++, named++) {
                char expected[80];
                snprintf(expected, sizeof expected, "dataset \"numbers\", example %.0f (from 0): bad",
                         pipeline_at(batch, "targets", i, 0));
                sgm_fail(SGM_ERROR_ARGUMENT, "bad");
                sgm_status status = sgm__fail_example(i);
                CHECK_INT(sgm__iterator_fail(iterator, status), SGM_ERROR_ARGUMENT);
                CHECK_STR(sgm_last_error(), expected);
            }
        }
    CHECK(named > TOTAL / 4);
    sgm_iterator_free(iterator);
}

TEST(failures_name_the_example)
{
    static const int64_t blocks[] = {1, 10, 200};
    for (int b = 0; b < 3; b++) {
        sgm_dataset *all = numbers(blocks[b]);
        sgm_dataset *views[] = {all, sgm_dataset_split_examples(all, 0.4, 0.6),
                                sgm_dataset_split_blocks(all, 0, -1, 2)};
        for (int v = 0; v < 3; v++) {
            check_named(sgm_minibatches(views[v], .size = 7, .seed = 3), 2);
            check_named(sgm_minibatches(views[v], .size = 16, .no_shuffle = true), 2);
            check_named(sgm_minibatches(views[v], .size = 7, .seed = 4, .augment = "noise(0)"), 2);
            check_named(sgm_by_block(views[v]), 2);
            check_named(sgm_full_batch(views[v]), 2);
            sgm_iterator *part = sgm_minibatches(views[v], .size = 16, .seed = 5);
            sgm__iterator_set_part(part, 1, 2);
            check_named(part, 2);
        }
        for (int v = 0; v < 3; v++)
            sgm_dataset_free(views[v]);
    }
    CHECK_INT(atomic_load(&allocator_live), 0);
}

TEST(failures_about_no_example_stay_as_they_are)
{
    sgm_dataset *dataset = numbers(10);
    sgm_iterator *iterator = sgm_minibatches(dataset, .size = 7);
    const sgm_block *batch;
    sgm_fail(SGM_ERROR_ARGUMENT, "bad");
    sgm_status status = sgm__fail_example(0);
    CHECK_INT(sgm__iterator_fail(iterator, status), SGM_ERROR_ARGUMENT); /* no minibatch was given */
    CHECK_STR(sgm_last_error(), "bad");
    CHECK_OK(sgm_iterator_next(iterator, &batch));
    status = sgm_fail(SGM_ERROR_ARGUMENT, "bad");
    CHECK_INT(sgm__iterator_fail(iterator, status), SGM_ERROR_ARGUMENT);
    CHECK_STR(sgm_last_error(), "bad");
    status = sgm__fail_example(1000); /* no such example */
    CHECK_INT(sgm__iterator_fail(iterator, status), SGM_ERROR_ARGUMENT);
    CHECK_STR(sgm_last_error(), "bad");
    sgm_iterator_free(iterator);
    sgm_dataset_free(dataset);
}

#define SIZE_OF_BATCHES .size = 16

TEST(options_of_size_zero_are_refused)
{
    sgm_dataset *dataset = numbers(50);
    CHECK_ERROR(sgm_minibatches_with(dataset, &(sgm_iterator_options){.size = 16}),
                "options have names, as .name = value");
    sgm_dataset_free(dataset);
}

TEST(names_of_options_may_be_macros)
{
    sgm_dataset *dataset = numbers(50);
    sgm_iterator *named = sgm_minibatches(dataset, SIZE_OF_BATCHES), *none = sgm_minibatches(dataset);
    CHECK(named != NULL && none != NULL);
    sgm_iterator_free(named);
    sgm_iterator_free(none);
    sgm_dataset_free(dataset);
}

/* Groups of `group` numbers in a row, of `examples`, each with its own number as the only input. */
static sgm_dataset *groups(int64_t examples, int64_t group)
{
    const sgm_shape shape = sgm_shape_of(examples, 1);
    sgm_tensor *tensor = sgm_tensor_create(SGM_FLOAT32, &shape);
    for (int64_t i = 0; i < examples; i++)
        ((float *)sgm_tensor_data(tensor))[i] = (float)i;
    sgm_dataset *dataset = sgm_dataset_create_from("groups", (const char *const[]){"inputs"}, &tensor, 1);
    sgm_tensor_free(tensor);
    CHECK_OK(sgm_dataset_set_group(dataset, group));
    return dataset;
}

/* One epoch of whole groups; how many of them are not where they were. */
static int moved_groups(sgm_iterator *iterator, int64_t group, int64_t wanted)
{
    int64_t seen = 0, sum = 0;
    int moved = 0;
    const sgm_block *batch;
    for (;;) {
        CHECK_OK(sgm_iterator_next(iterator, &batch));
        if (!batch)
            break;
        CHECK_INT(batch->count % group, 0);
        for (int64_t i = 0; i < batch->count; i += group) {
            const int64_t first = (int64_t)pipeline_at(batch, "inputs", i, 0);
            CHECK_INT(first % group, 0);
            for (int64_t k = 1; k < group; k++)
                CHECK_INT((int64_t)pipeline_at(batch, "inputs", i + k, 0), first + k);
            moved += first != seen + i;
            sum += first / group;
        }
        seen += batch->count;
    }
    CHECK_INT(seen, wanted);
    CHECK_INT(sum, wanted / group * (wanted / group - 1) / 2);
    return moved;
}

TEST(examples_that_belong_together_stay_in_a_row)
{
    for (int64_t group = 1; group <= 4; group++) {
        sgm_dataset *dataset = groups(20 * group, group);
        CHECK_INT(sgm_dataset_get_group(dataset), group);
        sgm_iterator *iterator = sgm_minibatches(dataset, .size = 3 * group, .seed = 5);
        CHECK(moved_groups(iterator, group, 20 * group) > 10);
        sgm_iterator_free(iterator);
        sgm_dataset *front = sgm_dataset_split_examples(dataset, 0, 0.33);
        CHECK_INT(sgm_dataset_get_group(front), group);
        iterator = sgm_minibatches(front, .size = 3 * group, .no_shuffle = true);
        CHECK_INT(moved_groups(iterator, group, 7 * group), 0);
        sgm_iterator_free(iterator);
        sgm_dataset_free(front);
        sgm_dataset_free(dataset);
    }
}

TEST(minibatches_have_whole_groups)
{
    sgm_dataset *dataset = groups(12, 3), *odd = groups(11, 3);
    CHECK_ERROR(sgm_minibatches(dataset, .size = 32),
                "minibatch_size: 3 examples of \"groups\" in a row belong together, and 32 is no multiple of "
                "that; 33 would do");
    CHECK_ERROR(sgm_minibatches(dataset), "and 32 is no multiple");
    sgm_iterator *iterator = sgm_minibatches(dataset, .size = 6);
    sgm_content content = {.kind = SGM_KIND_INTEGER, .as.integer = 8};
    CHECK_ERROR(sgm_iterator_set(iterator, "minibatch_size", &content), "and 8 is no multiple");
    CHECK_OK(sgm_iterator_get(iterator, "minibatch_size", &content));
    CHECK_INT(content.as.integer, 6);
    sgm_iterator_free(iterator);
    CHECK_OK(iterator = sgm_minibatches(odd, .size = 6));
    const sgm_block *batch;
    CHECK_ERROR(sgm_iterator_next(iterator, &batch),
                "dataset \"groups\": a block has 11 examples, of which 3 in a row belong together");
    sgm_iterator_free(iterator);
    CHECK_ERROR(sgm_dataset_set_group(dataset, 2), "is said once, before there are views");
    CHECK_ERROR(sgm_dataset_set_group(dataset, 0), "1 to 1000 examples belong together, not 0");
    sgm_dataset_free(odd);
    sgm_dataset_free(dataset);
}
