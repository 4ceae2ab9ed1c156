/* Blocks that are kept for other runs: what finds them again, what does not, and what damage does. */
#include "base/allocator.h"
#include "base/base.h"
#include "data_test.h"
#include "image_files.h"
#include <sigma/picture.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIDE 4
#define PICTURES 6

/* Picture k of the folder, in class a or b. */
static const char *picture_path(int k)
{
    static char path[512];
    mkdir(data_path("pets"), 0755);
    snprintf(path, sizeof path, "%s/%s", data_path("pets"), k % 2 ? "b" : "a");
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/%s/%d.png", data_path("pets"), k % 2 ? "b" : "a", k);
    return path;
}

static void write_picture(int k, int value)
{
    unsigned char pixels[SIDE * SIDE * 3];
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (unsigned char)(value + (int)i);
    if (k % 3 == 1)
        image_write_jpeg(picture_path(k), SIDE, SIDE, 3, pixels, 0);
    else
        image_write_png(picture_path(k), SIDE, SIDE, PNG_COLOR_TYPE_RGB, 8, PNG_INTERLACE_NONE, pixels);
}

static const char *cache(void)
{
    static char path[512];
    snprintf(path, sizeof path, "%s", data_path("cache"));
    return path;
}

/* New pictures and an empty cache. */
static void begin(void)
{
    for (int k = 0; k < PICTURES; k++)
        write_picture(k, 20 * k);
    CHECK_OK(sgm_kept_data_clear(cache()));
}

static int64_t files(void)
{
    int64_t count, bytes;
    CHECK_OK(sgm_kept_data_measure(cache(), &count, &bytes));
    return count;
}

/* The name of the newest kept file. */
static const char *kept_path(void)
{
    static char path[1024];
    DIR *folder = opendir(cache());
    for (const struct dirent *entry; folder && (entry = readdir(folder)) != NULL;)
        if (entry->d_name[0] == 'b')
            snprintf(path, sizeof path, "%s/%s", cache(), entry->d_name);
    closedir(folder);
    return path;
}

/* In blocks of 2, of which one fits in memory. */
static sgm_dataset *open_pets(int32_t width, int64_t limit)
{
    sgm_files *folder = sgm_files_open(data_path("pets"), "pictures");
    sgm_pipeline *pipeline = sgm_picture_pipeline(folder, .width = width, .height = SIDE);
    sgm_dataset *pets = sgm_dataset_create(
        "pets", .extractor = sgm_files_extractor(pipeline, data_path("pets")), .block_size = 2,
        .memory_limit = 500, .keep = true, .cache = cache(), .keep_limit = limit);
    CHECK(pets != NULL);
    sgm_pipeline_free(pipeline);
    sgm_files_free(folder);
    return pets;
}

/* A hash of all inputs and targets, which are read in an order that goes back. */
static uint64_t content(sgm_dataset *dataset)
{
    uint64_t hash = 0;
    for (int64_t i = PICTURES / 2 - 1; i >= 0; i--) {
        const sgm_block *block;
        CHECK_OK(sgm_dataset_fetch_block(dataset, i, &block));
        CHECK(block != NULL);
        for (int32_t f = 0; f < block->field_count; f++) {
            const sgm_tensor *values = block->fields[f].values;
            size_t bytes = (size_t)sgm_shape_elements(sgm_tensor_shape(values)) * sizeof(float);
            hash = sgm__hash(sgm_tensor_const_data(values), bytes, hash);
        }
        sgm_dataset_release_block(dataset, block);
    }
    int64_t examples;
    CHECK_OK(sgm_dataset_examples(dataset, &examples));
    CHECK_INT(examples, PICTURES);
    return hash;
}

/* Reads all, and returns how many pictures were opened for it, which the system counts. */
static int opened(sgm_dataset *dataset, uint64_t *hash)
{
    int watch = inotify_init1(IN_NONBLOCK), count = 0;
    char events[16384], path[600];
    for (int c = 0; c < 2; c++) {
        snprintf(path, sizeof path, "%s/%s", data_path("pets"), c ? "b" : "a");
        CHECK(inotify_add_watch(watch, path, IN_OPEN) >= 0);
    }
    *hash = content(dataset);
    for (ssize_t length; (length = read(watch, events, sizeof events)) > 0;)
        for (ssize_t at = 0; at < length;) {
            const struct inotify_event *event = (const struct inotify_event *)(events + at);
            count += !(event->mask & IN_ISDIR);
            at += (ssize_t)(sizeof *event + event->len);
        }
    close(watch);
    return count;
}

static int opened_pets(int32_t width, uint64_t *hash)
{
    sgm_dataset *pets = open_pets(width, 0);
    int count = opened(pets, hash);
    sgm_dataset_free(pets);
    return count;
}

TEST(a_second_run_opens_no_picture)
{
    uint64_t first, second;
    begin();
    CHECK(opened_pets(SIDE, &first) >= PICTURES);
    CHECK_INT(files(), 1);
    CHECK_INT(opened_pets(SIDE, &second), 0);
    CHECK(first == second);
    CHECK_INT(files(), 1);
    CHECK_INT(atomic_load(&allocator_live), 0);
}

TEST(another_file_or_pipeline_is_another_entry)
{
    uint64_t first, second, other;
    begin();
    opened_pets(SIDE, &first);
    CHECK(opened_pets(SIDE / 2, &other) >= PICTURES); /* another width */
    CHECK_INT(files(), 2);
    /* Its time is set back: the time of its description tells. */
    struct stat before;
    CHECK_INT(stat(picture_path(3), &before), 0);
    write_picture(3, 61);
    utimensat(AT_FDCWD, picture_path(3), (struct timespec[]){before.st_atim, before.st_mtim}, 0);
    CHECK(opened_pets(SIDE, &second) >= PICTURES);
    CHECK(first != second);
    CHECK_INT(files(), 3);
    CHECK_INT(opened_pets(SIDE, &other), 0);
    CHECK(second == other);
    CHECK_INT(unlink(picture_path(5)), 0);
    write_picture(5, 100); /* the same bytes in a new file */
    CHECK(opened_pets(SIDE, &other) >= PICTURES);
    CHECK(second == other);
}

/* Bits and failures are the same for any number of threads. */
TEST(threads_change_nothing)
{
    begin();
    for (int k = 0; k < 40; k++)
        write_picture(k, 5 * k);
    uint64_t hashes[3];
    const int32_t threads[] = {1, 2, 7};
    sgm_files *folder = sgm_files_open(data_path("pets"), "pictures");
    for (int i = 0; i < 3; i++) {
        sgm_pipeline *pipeline = sgm_picture_pipeline(folder, .width = 3, .height = 2, .threads = threads[i]);
        char *json = sgm_pipeline_json(pipeline);
        sgm_extractor *extractor = sgm_files_extractor(pipeline, data_path("pets"), .threads = threads[i]);
        sgm_block *block;
        CHECK_OK(sgm_extractor_extract(extractor, 40, &block));
        CHECK_INT(block->count, 40);
        hashes[i] = sgm__hash_text(json);
        for (int32_t f = 0; f < 2; f++)
            hashes[i] =
                sgm__hash(sgm_tensor_const_data(block->fields[f].values), f ? 40 * 8 : 40 * 72, hashes[i]);
        sgm_block_free(block);
        data_write("pets/a/20.png", "no picture", 10);
        data_write("pets/b/31.png", "no picture", 10);
        CHECK_OK(sgm_extractor_rewind(extractor));
        CHECK_ERROR(sgm_extractor_extract(extractor, 40, &block), "a/20.png");
        write_picture(20, 100);
        write_picture(31, 155);
        sgm_extractor_free(extractor);
        sgm_string_free(json);
        sgm_pipeline_free(pipeline);
    }
    CHECK(hashes[0] == hashes[1] && hashes[0] == hashes[2]);
    sgm_files_free(folder);
    for (int k = PICTURES; k < 40; k++)
        remove(picture_path(k));
}

TEST(parts_of_a_split_are_entries_of_their_own)
{
    begin();
    sgm_files *folder = sgm_files_open(data_path("pets"), "pictures");
    sgm_pipeline *pipeline = sgm_picture_pipeline(folder);
    sgm_split *split = sgm_files_split(folder, .shares = {0.5, 0.5});
    for (int round = 0; round < 2; round++)
        for (int32_t part = 0; part < 2; part++) {
            sgm_dataset *data = sgm_dataset_create(
                "part",
                .extractor = sgm_files_extractor(pipeline, data_path("pets"), .split = split, .part = part),
                .keep = true, .cache = cache());
            int64_t examples;
            CHECK_OK(sgm_dataset_examples(data, &examples));
            CHECK_INT(examples, PICTURES / 2);
            sgm_dataset_free(data);
        }
    CHECK_INT(files(), 2);
    sgm_split_free(split);
    sgm_pipeline_free(pipeline);
    sgm_files_free(folder);
}

/* Each byte of a small file, and each length that it may be cut to, changes nothing but the work. */
TEST(a_damaged_entry_is_made_anew)
{
    uint64_t first, again;
    begin();
    opened_pets(SIDE, &first);
    struct stat whole;
    CHECK_INT(stat(kept_path(), &whole), 0);
    for (int64_t at = 0; at < whole.st_size; at += 97) {
        int file = open(kept_path(), O_RDWR);
        unsigned char byte;
        CHECK_INT(pread(file, &byte, 1, at), 1);
        byte ^= 0x40;
        CHECK_INT(pwrite(file, &byte, 1, at), 1);
        close(file);
        CHECK(opened_pets(SIDE, &again) > 0);
        CHECK(first == again);
        opened_pets(SIDE,
                    &again); /* a damaged block is found while the entry is used: the next run makes it */
        CHECK_INT(files(), 1);
        CHECK_INT(opened_pets(SIDE, &again), 0);
        CHECK(first == again);
    }
    for (int64_t length = 0; length < whole.st_size; length += 211) {
        CHECK_INT(truncate(kept_path(), length), 0);
        CHECK(opened_pets(SIDE, &again) > 0);
        CHECK(first == again);
        CHECK_INT(files(), 1);
    }
}

/* Ends without a word in the middle of writing. */
static void be_killed(void)
{
    sgm_dataset *pets = open_pets(SIDE, 0);
    const sgm_block *block;
    sgm_dataset_fetch_block(pets, 1, &block);
    raise(SIGKILL);
}

TEST(a_killed_run_leaves_nothing_that_is_used)
{
    uint64_t hash;
    int status;
    begin();
    pid_t child = fork();
    if (child == 0)
        be_killed();
    waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    CHECK_INT(files(), 1); /* what it had written */
    CHECK(opened_pets(SIDE, &hash) >= PICTURES);
    CHECK_INT(files(), 1); /* the whole one; the other one is gone */
    CHECK_INT(opened_pets(SIDE, &hash), 0);
}

TEST(two_processes_at_once)
{
    uint64_t hash, again;
    int status;
    begin();
    pid_t children[4];
    for (int i = 0; i < 4; i++)
        if ((children[i] = fork()) == 0) {
            opened_pets(SIDE, &hash);
            _exit(atomic_load(&test_has_failed));
        }
    for (int i = 0; i < 4; i++) {
        waitpid(children[i], &status, 0);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    CHECK_INT(files(), 1);
    CHECK_INT(opened_pets(SIDE, &hash), 0);
    CHECK_OK(sgm_kept_data_clear(cache()));
    opened_pets(SIDE, &again);
    CHECK(hash == again);
}

TEST(a_run_that_reads_does_not_lose_its_file)
{
    uint64_t first;
    begin();
    opened_pets(SIDE, &first);
    sgm_dataset *pets = open_pets(SIDE, 0);
    int64_t examples;
    CHECK_OK(sgm_dataset_examples(pets, &examples));
    CHECK_OK(sgm_kept_data_clear(cache()));
    CHECK_INT(files(), 0);
    CHECK(content(pets) == first);
    sgm_dataset_free(pets);
}

TEST(the_oldest_go_beyond_the_limit)
{
    uint64_t hash;
    begin();
    opened_pets(SIDE, &hash);
    struct stat one;
    CHECK_INT(stat(kept_path(), &one), 0);
    sgm_dataset *pets = open_pets(SIDE / 2, one.st_size + 100);
    content(pets);
    sgm_dataset_free(pets);
    CHECK_INT(files(), 1);
    CHECK_INT(opened_pets(SIDE / 2, &hash), 0);
    pets = open_pets(SIDE, 700); /* larger than all that may be kept */
    content(pets);
    sgm_dataset_free(pets);
    CHECK_INT(files(), 1);
    CHECK_INT(opened_pets(SIDE / 2, &hash), 0);
}

/* Rows of a CSV file as inputs and one-hot targets, mixed. */
static sgm_dataset *table(double maximum)
{
    sgm_extractor *extractor = sgm_csv_extractor(sgm_csv_reader(sgm_file_source(data_path("t.csv"))),
                                                 .fields = {{"inputs", 0, 1}, {"targets", 2, 2}});
    extractor = sgm_one_hot(extractor, .field = "targets", .classes = 2);
    extractor = sgm_normalise(extractor, .field = "inputs", .input_max = maximum);
    return sgm_dataset_create("table", .extractor = sgm_shuffle(extractor, .seed = 3), .block_size = 3,
                              .keep = true, .cache = cache());
}

TEST(tables_and_preprocessors_are_kept_by_their_options)
{
    const double maxima[] = {8, 8, 9};
    begin();
    data_write("t.csv", "1,2,0\n3,4,1\n5,6,0\n7,8,1\n", 24);
    for (int i = 0; i < 3; i++) {
        sgm_dataset *data = table(maxima[i]);
        const sgm_block *block;
        double sum = 0;
        for (int64_t b = 0; b < 2; b++) {
            CHECK_OK(sgm_dataset_fetch_block(data, b, &block));
            for (int64_t row = 0; row < block->count; row++)
                sum += sgm_tensor_get(sgm_block_field(block, "inputs"), (int64_t[]){row, 1});
            sgm_dataset_release_block(data, block);
        }
        CHECK_NEAR(sum, 20 / maxima[i], 1e-5);
        int64_t examples;
        CHECK_OK(sgm_dataset_examples(data, &examples));
        sgm_dataset_free(data);
        CHECK_INT(files(), i < 2 ? 1 : 2);
    }
}

TEST(what_learns_from_the_data_is_not_kept)
{
    begin();
    sgm_extractor *extractor =
        sgm_csv_extractor(sgm_csv_reader(sgm_file_source(data_path("t.csv"))), .fields = {{"inputs", 0, 2}});
    sgm_dataset *data = sgm_dataset_create("table", .extractor = sgm_adaptive_normalise(extractor),
                                           .keep = true, .cache = cache());
    int64_t examples;
    CHECK_OK(sgm_dataset_examples(data, &examples));
    CHECK_INT(examples, 4);
    sgm_dataset_free(data);
    CHECK_INT(files(), 0);
    CHECK(sgm_dataset_create("bad",
                             .extractor = sgm_csv_extractor(sgm_csv_reader(sgm_file_source("t.csv")),
                                                            .fields = {{"inputs", 0, 2}}),
                             .keep = true, .keep_limit = -1) == NULL);
    CHECK(strstr(sgm_last_error(), "keep_limit -1") != NULL);
    sgm_clear_error();
    CHECK_INT(atomic_load(&allocator_live), 0);
}
