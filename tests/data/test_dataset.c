/* Datasets: blocks by index, memory limits, the cache, views, state, the ready-made ones, more data than
 * memory. */
#include "pipeline_test.h"

#include <sys/resource.h>
#include <unistd.h>

static const sgm_block *fetch(sgm_dataset *dataset, int64_t index)
{
    const sgm_block *block;
    CHECK_OK(sgm_dataset_fetch_block(dataset, index, &block));
    return block;
}

static int64_t examples_of(sgm_dataset *dataset)
{
    int64_t examples = -1;
    CHECK_OK(sgm_dataset_examples(dataset, &examples));
    return examples;
}

TEST(blocks_by_index)
{
    sgm_dataset *numbers =
        sgm_dataset_create("numbers", .extractor = counting_extractor(25, 2), .block_size = 10);
    const int64_t order[] = {2, 0, 1, 1};
    for (int i = 0; i < 4; i++) {
        const sgm_block *block = fetch(numbers, order[i]);
        CHECK_INT(block->count, order[i] == 2 ? 5 : 10);
        CHECK_NEAR(pipeline_at(block, "inputs", 4, 1), (double)order[i] * 10 + 4.5, 0);
        sgm_dataset_release_block(numbers, block);
    }
    CHECK(fetch(numbers, 3) == NULL);
    CHECK(fetch(numbers, 1000) == NULL);
    CHECK_INT(examples_of(numbers), 25);
    CHECK_INT(counting_newest->reads, 25); /* all blocks stayed in memory: read once */
    CHECK_STR(sgm_dataset_name(numbers), "numbers");
    sgm_shape shape;
    CHECK_OK(sgm_dataset_field_shape(numbers, "inputs", &shape));
    CHECK_INT(shape.rank, 1);
    CHECK_INT(shape.dims[0], 2);
    CHECK_ERROR(sgm_dataset_field_shape(numbers, "outputs", &shape),
                "dataset \"numbers\": there is no field");
    const sgm_block *block;
    CHECK_ERROR(sgm_dataset_fetch_block(numbers, -1, &block), "block -1");
    sgm_dataset_free(numbers);
    CHECK_INT(atomic_load(&allocator_live), 0);
}

/* Room for two blocks of 100 examples of 3 floats. */
static sgm_dataset *tight(int64_t total, const char *cache)
{
    return sgm_dataset_create("tight", .extractor = counting_extractor(total, 2), .block_size = 100,
                              .memory_limit = 2500, .cache = cache);
}

static void visit(sgm_dataset *dataset, int64_t index)
{
    const sgm_block *block = fetch(dataset, index);
    for (int64_t i = 0; i < block->count; i++) {
        CHECK_NEAR(pipeline_at(block, "inputs", i, 1), (double)(index * 100 + i) + 0.5, 0);
        CHECK_NEAR(pipeline_at(block, "targets", i, 0), (double)(index * 100 + i), 0);
    }
    sgm_dataset_release_block(dataset, block);
}

TEST(more_than_the_memory_limit)
{
    const int64_t order[] = {9, 0, 5, 4, 5, 4, 3, 9, 0};
    sgm_dataset *without = tight(950, NULL), *with;
    const counting_reader *reader = counting_newest;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        visit(without, order[i]);
    int64_t reads = reader->reads;
    CHECK(reads > 2000); /* going back: from the start again */
    visit(without, 0);
    CHECK_INT(reader->reads, reads); /* the newest is still there */
    sgm_dataset_free(without);

    char folder[] = "/tmp/sigma-test-XXXXXX";
    CHECK(mkdtemp(folder) != NULL);
    with = tight(950, folder);
    reader = counting_newest;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        visit(with, order[i]);
    CHECK_INT(reader->reads, 950); /* the rest came from the cache */
    CHECK_INT(examples_of(with), 950);
    sgm_dataset_free(with);
    CHECK_INT(rmdir(folder), 0); /* nothing stays behind */
    CHECK_INT(atomic_load(&allocator_live), 0);
}

TEST(a_source_that_became_shorter_is_told)
{
    const sgm_block *block;
    sgm_dataset *dataset = tight(950, NULL);
    for (int64_t i = 0; i < 10; i++)
        visit(dataset, i);
    counting_newest->total = 300; /* three blocks of a hundred */
    visit(dataset, 0);
    CHECK_ERROR(sgm_dataset_fetch_block(dataset, 3, &block),
                "block 3 had 100 examples when it was read before, and the source ends before it now");
    CHECK_ERROR(sgm_dataset_fetch_block(dataset, 7, &block),
                "block 7 had 100 examples when it was read before");
    visit(dataset, 1);
    sgm_dataset_free(dataset);
    CHECK_INT(atomic_load(&allocator_live), 0);
}

TEST(one_block_larger_than_the_limit_stays)
{
    sgm_dataset *whole = sgm_dataset_create("whole", .extractor = counting_extractor(1000, 2),
                                            .block_size = -1, .memory_limit = 100);
    for (int i = 0; i < 3; i++) {
        const sgm_block *block = fetch(whole, 0);
        CHECK_INT(block->count, 1000);
        sgm_dataset_release_block(whole, block);
    }
    CHECK(fetch(whole, 1) == NULL);
    CHECK_INT(counting_newest->reads, 1000);
    sgm_dataset_free(whole);
}

TEST(a_cache_that_cannot_be_written)
{
    CHECK_ERROR(tight(10, "/proc/none/such"), "/proc");
}

TEST(from_memory)
{
    sgm_shape shape = sgm_shape_of(3, 2), other = sgm_shape_of(2);
    sgm_tensor *bytes = sgm_tensor_create_from(SGM_UINT8, &shape, (const uint8_t[]){1, 2, 3, 4, 5, 6});
    sgm_tensor *labels = sgm_tensor_create_from(SGM_INT64, &other, (const int64_t[]){7, 8});
    sgm_dataset *made = sgm_dataset_create_from("made", (const char *const[]){"inputs"}, &bytes, 1);
    const sgm_block *block = fetch(made, 0);
    CHECK_NEAR(pipeline_at(block, "inputs", 2, 1), 6, 0);
    sgm_dataset_release_block(made, block);
    CHECK(fetch(made, 1) == NULL);
    sgm_dataset_free(made);
    CHECK_ERROR(sgm_dataset_create_from("made", (const char *const[]){"inputs", "targets"},
                                        (sgm_tensor *[]){bytes, labels}, 2),
                "field \"targets\" has shape (2,) in a block of 3 examples; its first dimension has to be 3");
    sgm_tensor_free(bytes);
    sgm_tensor_free(labels);
    CHECK_INT(atomic_load(&allocator_live), 0);
}

/* Marks every example that the view gives; each may come once. */
static int64_t mark(sgm_dataset *view, int *seen)
{
    int64_t sum = 0;
    const sgm_block *block;
    for (int64_t b = 0; (block = fetch(view, b)) != NULL; b++) {
        CHECK(block->count > 0);
        for (int64_t i = 0; i < block->count; i++) {
            int example = (int)pipeline_at(block, "targets", i, 0);
            CHECK_NEAR(pipeline_at(block, "inputs", i, 1), example + 0.5, 0);
            seen[example]++;
        }
        sum += block->count;
        sgm_dataset_release_block(view, block);
    }
    CHECK_INT(examples_of(view), sum);
    return sum;
}

TEST(splits_are_disjoint_and_complete)
{
    /* Blocks of 7, 7, 7 and 2: odd sizes, and shares whose sums are not exact. */
    const double shares[] = {0.1, 0.2, 0.3, 0.05, 0.35};
    int seen[23] = {0};
    int64_t sum = 0;
    double begin = 0;
    sgm_dataset *all = sgm_dataset_create("all", .extractor = counting_extractor(23, 2), .block_size = 7);
    for (int i = 0; i < 5; i++) {
        sgm_dataset *part = sgm_dataset_split_examples(all, begin, shares[i]);
        sum += mark(part, seen);
        sgm_dataset_free(part);
        begin += shares[i];
    }
    CHECK_INT(sum, 23);
    for (int i = 0; i < 23; i++)
        CHECK_INT(seen[i], 1);

    memset(seen, 0, sizeof seen);
    sgm_dataset *even = sgm_dataset_split_blocks(all, 0, -1, 2),
                *odd = sgm_dataset_split_blocks(all, 1, 4, 2);
    sgm_dataset_free(all); /* the views keep it */
    CHECK_INT(mark(even, seen), 14);
    CHECK_INT(mark(odd, seen), 9);
    for (int i = 0; i < 23; i++)
        CHECK_INT(seen[i], 1);
    sgm_dataset *half = sgm_dataset_split_examples(odd, 0.5, 0.5); /* a view of a view */
    memset(seen, 0, sizeof seen);
    CHECK_INT(mark(half, seen), 4);
    CHECK(seen[11] == 1 && seen[10] == 0 && seen[22] == 1 && seen[21] == 0);
    sgm_dataset_free(half);
    CHECK_ERROR(sgm_dataset_split_examples(odd, 0.6, 0.5), "from 0.6 on, would end at 1.1");
    CHECK_ERROR(sgm_dataset_split_blocks(odd, 0, -1, 0), "interval of 1 or more");
    sgm_dataset_free(even);
    sgm_dataset_free(odd);
    CHECK_INT(atomic_load(&allocator_live), 0);
}

static sgm_dataset *learning(int64_t total)
{
    sgm_extractor *inputs = sgm_adaptive_per_index(counting_extractor(total, 2), .field = "inputs");
    return sgm_dataset_create("learning", .block_size = 4,
                              .extractor = sgm_adaptive_normalise(inputs, .field = "targets"));
}

TEST(state_of_adaptive_preprocessors)
{
    sgm_dataset *first = learning(11), *second = learning(21);
    double numbers[16];
    size_t count = 0;
    CHECK_OK(sgm_dataset_get_state(first, NULL, &count));
    CHECK_INT(count, 10); /* 1 + (1 + 2 * 2), then 1 + (1 + 2) */
    CHECK_ERROR(sgm_dataset_get_state(first, numbers, &(size_t){9}), "room for 9 numbers");
    count = 16;
    CHECK_OK(sgm_dataset_get_state(first, numbers, &count));
    const double expected[] = {5, 2, 0, 10, 0.5, 10.5, 3, 1, 0, 10};
    for (int i = 0; i < 10; i++)
        CHECK_NEAR(numbers[i], expected[i], 0);

    const sgm_block *held = fetch(second, 0); /* with its own range, and in use while the state changes */
    CHECK_NEAR(pipeline_at(held, "inputs", 2, 0), 0.1, 1e-7);
    CHECK_OK(sgm_dataset_set_state(second, numbers, count));
    CHECK_NEAR(pipeline_at(held, "inputs", 2, 0), 0.1, 1e-7);
    const sgm_block *block = fetch(second, 0);
    CHECK_NEAR(pipeline_at(block, "inputs", 2, 0), 0.2, 1e-7);
    CHECK_NEAR(pipeline_at(block, "targets", 3, 0), 0.3, 1e-7);
    sgm_dataset_release_block(second, block);
    sgm_dataset_release_block(second, held);
    block = fetch(second, 5);
    CHECK_NEAR(pipeline_at(block, "targets", 0, 0), 2, 1e-7); /* beyond what was learnt */
    sgm_dataset_release_block(second, block);

    CHECK_ERROR(sgm_dataset_set_state(second, numbers, 9), "do not fit");
    CHECK_ERROR(sgm_dataset_set_state(second, expected + 1, 9), "do not fit");
    numbers[1] = NAN;
    CHECK_ERROR(sgm_dataset_set_state(second, numbers, 10), "no number of ranges that fits");
    sgm_dataset_free(first);

    first = learning(11); /* set before anything was read: nothing is learnt then */
    numbers[1] = 2;
    numbers[3] = 100;
    CHECK_OK(sgm_dataset_set_state(first, numbers, 10));
    block = fetch(first, 0);
    CHECK_NEAR(pipeline_at(block, "inputs", 2, 0), 0.02, 1e-8);
    sgm_dataset_release_block(first, block);
    sgm_dataset_free(first);
    sgm_dataset_free(second);
    CHECK_INT(atomic_load(&allocator_live), 0);
}

/* --- ready-made --- */

static void check_one_hot(const sgm_block *block, int64_t classes, int64_t *counts)
{
    for (int64_t i = 0; i < block->count; i++) {
        double sum = 0;
        for (int64_t k = 0; k < classes; k++) {
            double value = pipeline_at(block, "targets", i, k);
            CHECK(value == 0 || value == 1);
            counts[k] += value == 1;
            sum += value;
        }
        CHECK_NEAR(sum, 1, 0);
    }
}

static void check_ready(const char *name, int64_t examples, const char *inputs, int64_t classes,
                        int64_t *counts)
{
    sgm_dataset *dataset = sgm_dataset_open(name);
    CHECK_OK(dataset);
    CHECK_INT(examples_of(dataset), examples);
    const sgm_block *block = fetch(dataset, 0);
    CHECK_STR(pipeline_shape(block, "inputs"), inputs);
    check_one_hot(block, classes, counts);
    sgm_dataset_release_block(dataset, block);
    sgm_dataset_free(dataset);
    CHECK_INT(atomic_load(&allocator_live), 0);
}

TEST(iris)
{
    int64_t counts[3] = {0};
    check_ready("iris", 150, "(150, 4)", 3, counts);
    CHECK(counts[0] == 50 && counts[1] == 50 && counts[2] == 50);
    sgm_dataset *flowers = sgm_dataset_open("iris");
    const sgm_block *block = fetch(flowers, 0);
    double minimum = 1, maximum = 0, sum = 0;
    for (int i = 0; i < 150; i++) {
        double value = pipeline_at(block, "inputs", i, 0);
        minimum = fmin(minimum, value);
        maximum = fmax(maximum, value);
        sum += value;
    }
    CHECK(minimum == 0 && maximum == 1);
    CHECK_NEAR(sum / 150, (5.843333 - 4.3) / 3.6, 1e-5); /* the well-known mean of the sepal lengths */
    sgm_dataset_release_block(flowers, block);
    sgm_dataset_free(flowers);
}

TEST(digits_and_their_test)
{
    int64_t counts[10] = {0};
    check_ready("digits", 1500, "(1500, 8, 8)", 10, counts);
    check_ready("digits-test", 297, "(297, 8, 8)", 10, counts); /* adds up with the training part */
    const int64_t all[] = {178, 182, 177, 183, 181, 182, 181, 179, 174, 180};
    for (int i = 0; i < 10; i++)
        CHECK_INT(counts[i], all[i]);
}

TEST(small_ones)
{
    int64_t counts[3] = {0};
    check_ready("xor", 4, "(4, 2)", 2, counts);
    CHECK(counts[0] == 2 && counts[1] == 2);
    memset(counts, 0, sizeof counts);
    check_ready("and", 4, "(4, 2)", 2, counts);
    CHECK(counts[0] == 3 && counts[1] == 1);
    memset(counts, 0, sizeof counts);
    check_ready("wdbc", 569, "(569, 30)", 2, counts);
    CHECK(counts[0] == 212 && counts[1] == 357);
    memset(counts, 0, sizeof counts);
    check_ready("tictactoe", 958, "(958, 9)", 3, counts);
    CHECK(counts[0] == 626 && counts[1] == 316 && counts[2] == 16);
}

TEST(mnist)
{
    if (!getenv("SIGMA_DATA_DIR"))
        SKIP("SIGMA_DATA_DIR is not set, and a test downloads nothing");
    int64_t counts[10] = {0};
    check_ready("mnist-test", 10000, "(10000, 28, 28)", 10, counts);
    CHECK(counts[0] == 980 && counts[1] == 1135 && counts[9] == 1009);
    sgm_dataset *test = sgm_dataset_open("mnist-test");
    const sgm_block *block = fetch(test, 0);
    double minimum = 1, maximum = 0, sum = 0;
    const float *values = sgm_tensor_const_data(sgm_block_field(block, "inputs"));
    for (int i = 0; i < 7840000; i++) {
        minimum = fmin(minimum, (double)values[i]);
        maximum = fmax(maximum, (double)values[i]);
        sum += (double)values[i];
    }
    CHECK(minimum == 0 && maximum == 1);
    CHECK_NEAR(sum / 7840000, 0.1325, 1e-4);               /* the well-known mean of the test images */
    CHECK_NEAR(pipeline_at(block, "targets", 0, 7), 1, 0); /* the first one is a seven */
    sgm_dataset_release_block(test, block);
    sgm_dataset_free(test);
}

TEST(text_windows)
{
    const char *path = "/tmp/sigma-test-windows.txt";
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    for (int i = 0; i < 64 * 3 + 1; i++)
        fputc('a' + i % 26, file);
    fclose(file);
    char name[64];
    snprintf(name, sizeof name, "text:%s", path);
    sgm_dataset *text = sgm_dataset_open(name);
    const sgm_block *block = fetch(text, 0);
    remove(path);
    CHECK_STR(pipeline_shape(block, "inputs"), "(3, 64, 256)");
    CHECK_NEAR(pipeline_at(block, "inputs", 1, 0 * 256 + 'a' + 64 % 26), 1, 0);
    CHECK_NEAR(pipeline_at(block, "targets", 1, 0 * 256 + 'a' + 65 % 26), 1, 0);
    CHECK_NEAR(pipeline_at(block, "targets", 2, 63 * 256 + 'a' + 192 % 26), 1, 0);
    sgm_dataset_release_block(text, block);
    sgm_dataset_free(text);
}

TEST(names)
{
    size_t count = 0;
    const char *const *names = sgm_dataset_names(&count);
    CHECK(count == 9 && strcmp(names[0], "iris") == 0);
    CHECK_ERROR(sgm_dataset_open("mnits"), "did you mean \"mnist\"?");
    CHECK_ERROR(sgm_dataset_open("text:/nowhere/at/all"), "/nowhere/at/all");
}

/* --- from several threads --- */

static void *fetch_all(void *dataset)
{
    for (int round = 0; round < 5; round++)
        for (int64_t i = 0; i < 10; i++)
            visit(dataset, (i * 7 + round) % 10);
    return NULL;
}

TEST(any_thread)
{
    sgm_dataset *shared = tight(1000, NULL);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, fetch_all, shared), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    sgm_dataset_free(shared);
    CHECK_INT(atomic_load(&allocator_live), 0);
}

/* --- 3 GB of examples that exist nowhere --- */

/* Sanitizers keep what is freed, so memory says nothing there: only the order is looked at. */
#if defined(SIGMA_ADDRESS_SANITIZER) || defined(SIGMA_THREAD_SANITIZER)
#define HUGE_EXAMPLES (3 * 1024 * 16)
#else
#define HUGE_EXAMPLES (3 * 1024 * 256)
#endif

TEST(larger_than_memory)
{
    const int64_t total = HUGE_EXAMPLES, width = 1024; /* examples of 4 KB */
    sgm_extractor *examples =
        sgm_array_extractor(counting_make(total, (int32_t)width), .regions = {{.field = "inputs"}});
    sgm_dataset *huge = sgm_dataset_create("huge", .extractor = examples);
    sgm_iterator *batches = sgm_minibatches(huge, .size = 1000, .no_shuffle = true);
    int64_t seen = 0;
    for (const sgm_block *batch; sgm_iterator_next(batches, &batch) == SGM_OK && batch; seen += batch->count)
        CHECK_NEAR(pipeline_at(batch, "inputs", batch->count - 1, 3), (double)(seen + batch->count) + 0.5, 0);
    CHECK_INT(seen, total);
    CHECK_INT(counting_newest->reads, total + 1); /* one example to choose the size of blocks */
    sgm_iterator_free(batches);
    sgm_dataset_free(huge);
#if !defined(SIGMA_ADDRESS_SANITIZER) && !defined(SIGMA_THREAD_SANITIZER)
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    CHECK(usage.ru_maxrss < 300 * 1024);
#endif
}
