/* Datasets that grow while iterators read them: what an epoch has, what is refused, what a dataset tells. */
#include "pipeline_test.h"

#include <sigma/split.h>
#include <string.h>
#include <unistd.h>

static const char *const fields[] = {"inputs", "targets"};

/* Examples first, first + 1, ...: inputs (i, i + 0.5), targets (i). */
static void make(int64_t first, int64_t count, sgm_tensor *tensors[2])
{
    sgm_shape pairs = sgm_shape_of(count, 2), numbers = sgm_shape_of(count, 1);
    tensors[0] = sgm_tensor_create(SGM_FLOAT64, &pairs);
    tensors[1] = sgm_tensor_create(SGM_INT64, &numbers);
    for (int64_t i = 0; i < count; i++) {
        ((double *)sgm_tensor_data(tensors[0]))[2 * i] = (double)(first + i);
        ((double *)sgm_tensor_data(tensors[0]))[2 * i + 1] = (double)(first + i) + 0.5;
        ((int64_t *)sgm_tensor_data(tensors[1]))[i] = first + i;
    }
}

static sgm_dataset *counted(int64_t count)
{
    sgm_tensor *tensors[2];
    make(0, count, tensors);
    sgm_dataset *made = sgm_dataset_create_from("counted", fields, tensors, 2);
    CHECK_OK(made);
    sgm_tensor_free(tensors[0]);
    sgm_tensor_free(tensors[1]);
    return made;
}

static void append(sgm_dataset *dataset, int64_t first, int64_t count)
{
    sgm_tensor *tensors[2];
    make(first, count, tensors);
    CHECK_OK(sgm_dataset_append(dataset, fields, tensors, 2));
    sgm_tensor_free(tensors[0]);
    sgm_tensor_free(tensors[1]);
}

/* Reads `batches` minibatches, or to the end of the epoch (-1); appends the targets to `order`. Gives their
 * number. */
static int64_t take(sgm_iterator *iterator, int64_t batches, int *order)
{
    int64_t seen = 0;
    const sgm_block *batch = NULL;
    for (int64_t b = 0; batches < 0 || b < batches; b++) {
        CHECK_OK(sgm_iterator_next(iterator, &batch));
        if (batch == NULL)
            break;
        for (int64_t i = 0; i < batch->count; i++) {
            double example = pipeline_at(batch, "targets", i, 0);
            CHECK_NEAR(pipeline_at(batch, "inputs", i, 1), example + 0.5, 0);
            order[seen++] = (int)example;
        }
    }
    return seen;
}

static void check_all_once(const int *order, int count)
{
    bool seen[512] = {false};
    for (int i = 0; i < count; i++) {
        CHECK(order[i] >= 0 && order[i] < count && !seen[order[i]]);
        seen[order[i]] = true;
    }
}

TEST(an_epoch_has_what_was_there_when_it_began)
{
    sgm_dataset *dataset = counted(20);
    sgm_iterator *iterator = sgm_minibatches(dataset, .size = 6, .seed = 4), *whole = sgm_full_batch(dataset),
                 *blocks = sgm_by_block(dataset);
    const sgm_block *all;
    int order[512];
    int64_t batches, examples;
    int64_t seen = take(iterator, 2, order);
    CHECK_OK(sgm_iterator_next(whole, &all));
    CHECK_INT(all->count, 20);
    append(dataset, 20, 5);
    append(dataset, 25, 2);
    CHECK_OK(sgm_iterator_batches(iterator, &batches));
    CHECK_INT(batches, 4);
    seen += take(iterator, -1, order + seen);
    CHECK_INT(seen, 20);
    check_all_once(order, 20);
    CHECK_INT(take(iterator, -1, order), 27);
    check_all_once(order, 27);
    CHECK_OK(sgm_iterator_next(whole, &all));
    CHECK(all == NULL);
    CHECK_OK(sgm_iterator_next(whole, &all));
    CHECK_INT(all->count, 27);
    CHECK_OK(sgm_iterator_next(blocks, &all));
    CHECK_INT(all->count, 27);
    CHECK_OK(sgm_dataset_examples(dataset, &examples));
    CHECK_INT(examples, 27);
    sgm_iterator_free(iterator);
    sgm_iterator_free(whole);
    sgm_iterator_free(blocks);
    sgm_dataset_free(dataset);
    CHECK_INT(atomic_load(&allocator_live), 0);
}

/* Larger minibatches than there are examples at first: buffers grow with the data. */
TEST(minibatches_may_be_larger_than_the_data)
{
    sgm_dataset *dataset = counted(3);
    sgm_iterator *iterator = sgm_minibatches(dataset, .size = 8);
    int order[512];
    CHECK_INT(take(iterator, -1, order), 3);
    append(dataset, 3, 10);
    CHECK_INT(take(iterator, -1, order), 13);
    check_all_once(order, 13);
    sgm_iterator_free(iterator);
    sgm_dataset_free(dataset);
}

/* Another process has all examples from the beginning; the state says how many its epoch has. */
TEST(a_state_goes_on_exactly_in_another_process)
{
    sgm_dataset *grown = counted(20), *later = counted(27), *fewer = counted(19);
    sgm_iterator *a = sgm_minibatches(grown, .size = 6, .seed = 4),
                 *b = sgm_minibatches(later, .size = 6, .seed = 4),
                 *c = sgm_minibatches(fewer, .size = 6, .seed = 4);
    int rest[512], same[512];
    sgm_iterator_state state;
    take(a, 2, rest);
    append(grown, 20, 7);
    sgm_iterator_get_state(a, &state);
    CHECK_INT(state.examples, 20);
    CHECK_OK(sgm_iterator_set_state(b, &state));
    int64_t count = take(a, -1, rest);
    CHECK_INT(count, 8);
    CHECK_INT(take(b, -1, same), count);
    CHECK(memcmp(rest, same, (size_t)count * sizeof(int)) == 0);
    CHECK_INT(take(a, -1, rest), 27);
    CHECK_INT(take(b, -1, same), 27);
    CHECK(memcmp(rest, same, 27 * sizeof(int)) == 0);
    CHECK_ERROR(
        sgm_iterator_set_state(c, &state),
        "iterator of \"counted\": its epoch 0 began with 20 examples, and there are 19; append the others "
        "first");
    CHECK_INT(take(c, -1, same), 19);
    sgm_iterator *all[] = {a, b, c};
    for (int i = 0; i < 3; i++)
        sgm_iterator_free(all[i]);
    sgm_dataset_free(grown);
    sgm_dataset_free(later);
    sgm_dataset_free(fewer);
}

TEST(mistakes_in_appending)
{
    sgm_dataset *dataset = counted(4), *part = sgm_dataset_split_examples(dataset, 0, 0.5),
                *read = sgm_dataset_create("read", .extractor = counting_extractor(10, 2));
    sgm_tensor *tensors[2];
    make(0, 2, tensors);
    CHECK_ERROR(
        sgm_dataset_append(dataset, fields, tensors, 2),
        "appending to dataset \"counted\": there are parts of it, whose examples would become others");
    CHECK_ERROR(sgm_dataset_append(part, fields, tensors, 2), "it is a part of another dataset");
    CHECK_ERROR(sgm_dataset_append(read, fields, tensors, 2), "it is read from a source; only one in memory");
    sgm_dataset_free(part);
    CHECK_OK(sgm_dataset_append(dataset, fields, tensors, 2));
    CHECK_ERROR(sgm_dataset_append(dataset, fields, tensors, 1), "1 fields are given, it has 2");
    sgm_tensor *turned[] = {tensors[1], tensors[0]};
    CHECK_ERROR(sgm_dataset_append(dataset, fields, turned, 2),
                "field \"inputs\" has examples (1,), those that are there are (2,)");
    CHECK_OK(sgm_dataset_append(dataset, (const char *const[]){"targets", "inputs"}, turned, 2));
    CHECK_ERROR(sgm_dataset_append(dataset, (const char *const[]){"inputs", "x"}, tensors, 2), "targets");
    CHECK_ERROR(sgm_dataset_append(dataset, NULL, NULL, 0), "needs at least one field");
    int64_t examples;
    CHECK_OK(sgm_dataset_examples(dataset, &examples));
    CHECK_INT(examples, 8);
    sgm_tensor_free(tensors[0]);
    sgm_tensor_free(tensors[1]);
    sgm_dataset_free(dataset);
    sgm_dataset_free(read);
    CHECK_INT(atomic_load(&allocator_live), 0);
}

static void *append_often(void *dataset)
{
    for (int i = 0; i < 100; i++)
        append(dataset, 10 + 3 * i, 3);
    return NULL;
}

/* A block that is held stays as it was; a reader sees whole examples only. */
TEST(threads_append_while_others_read)
{
    sgm_dataset *dataset = counted(10);
    sgm_iterator *iterator = sgm_minibatches(dataset, .size = 7, .seed = 1);
    const sgm_block *held;
    pthread_t thread;
    int order[512];
    int64_t before = 0;
    CHECK_OK(sgm_dataset_fetch_block(dataset, 0, &held));
    CHECK_INT(pthread_create(&thread, NULL, append_often, dataset), 0);
    for (int i = 0; i < 20; i++) {
        int64_t seen = take(iterator, -1, order);
        CHECK(seen >= before);
        check_all_once(order, (int)seen);
        before = seen;
    }
    pthread_join(thread, NULL);
    CHECK_INT(held->count, 10);
    CHECK_NEAR(pipeline_at(held, "targets", 9, 0), 9, 0);
    sgm_dataset_release_block(dataset, held);
    CHECK_INT(take(iterator, -1, order), 310);
    check_all_once(order, 310);
    sgm_iterator_free(iterator);
    sgm_dataset_free(dataset);
    CHECK_INT(atomic_load(&allocator_live), 0);
}

TEST(a_dataset_tells_of_its_blocks)
{
    sgm_dataset *dataset = counted(6),
                *read = sgm_dataset_create("read", .extractor = counting_extractor(10, 2), .block_size = 4,
                                           .memory_limit = 100);
    sgm_dataset_status status;
    sgm_block_status one;
    const sgm_block *block;
    CHECK_OK(sgm_dataset_get_status(dataset, &status));
    CHECK(status.grows && status.complete);
    CHECK_INT(status.examples, 6);
    CHECK_INT(status.bytes, 6 * 3 * 4);
    CHECK_OK(sgm_dataset_get_status(read, &status));
    CHECK(!status.grows && !status.complete);
    CHECK_INT(status.blocks, 0);
    CHECK_OK(sgm_dataset_get_block_status(read, 0, &one));
    CHECK_INT(one.examples, -1);
    CHECK(!one.in_memory);
    CHECK_OK(sgm_dataset_fetch_block(read, 0, &block));
    CHECK_OK(sgm_dataset_get_block_status(read, 0, &one));
    CHECK(one.in_memory && one.users == 1 && one.examples == 4 && !one.on_disk);
    CHECK_INT(one.bytes, 4 * 3 * 4);
    sgm_dataset_release_block(read, block);
    CHECK_OK(sgm_dataset_fetch_block(read, 2, &block));
    CHECK_OK(sgm_dataset_get_status(read, &status));
    CHECK_INT(status.blocks, 3);
    CHECK_INT(status.examples, 10);
    CHECK_INT(status.blocks_in_use, 1);
    CHECK_INT(status.memory_limit, 100);
    int64_t bytes = 0, in_memory = 0;
    for (int64_t i = 0; i < 4; i++) {
        CHECK_OK(sgm_dataset_get_block_status(read, i, &one));
        bytes += one.in_memory ? one.bytes : 0;
        in_memory += one.in_memory;
    }
    CHECK_INT(status.bytes, bytes);
    CHECK_INT(status.blocks_in_memory, in_memory);
    sgm_dataset_release_block(read, block);
    sgm_dataset *part = sgm_dataset_split_examples(dataset, 0, 0.5);
    CHECK_OK(sgm_dataset_get_status(part, &status));
    CHECK(!status.grows);
    CHECK_ERROR(sgm_dataset_get_block_status(part, 0, &one),
                "is a part of another one, which has the blocks");
    sgm_dataset_free(part);
    sgm_dataset_free(dataset);
    sgm_dataset_free(read);
}

/* Nobody asks for block 1: the iterator that has begun with block 0 has it read. */
TEST(the_next_block_is_there_before_it_is_asked_for)
{
    sgm_dataset *read = sgm_dataset_create("read", .extractor = counting_extractor(10, 2), .block_size = 4),
                *alone = sgm_dataset_create("alone", .extractor = counting_extractor(10, 2), .block_size = 4);
    sgm_iterator *ahead = sgm_minibatches(read, .size = 2, .no_shuffle = true),
                 *none = sgm_minibatches(alone, .size = 2, .no_shuffle = true, .no_prefetch = true);
    sgm_block_status next = {.in_memory = false}, not_asked;
    int order[512];
    take(ahead, 1, order);
    take(none, 1, order);
    for (int i = 0; i < 2000 && !next.in_memory; i++) {
        CHECK_OK(sgm_dataset_get_block_status(read, 1, &next));
        usleep(1000);
    }
    CHECK(next.in_memory);
    CHECK_OK(sgm_dataset_get_block_status(alone, 1, &not_asked));
    CHECK(!not_asked.in_memory);
    sgm_iterator_free(ahead);
    sgm_iterator_free(none);
    sgm_dataset_free(read);
    sgm_dataset_free(alone);
}
