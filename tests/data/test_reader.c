/* Readers of bytes, characters and idx files: values, places in messages, a file that is larger than memory
 * may be. */
#include "reader_test.h"
#include <fcntl.h>
#include <sys/resource.h>

/* --- the generic reader --- */

typedef struct fake {
    int64_t gives;
    int freed;
    const char *const *cells;
} fake;

static sgm_status fake_read(void *self, int64_t count, sgm_examples *examples)
{
    (void)count;
    examples->count = ((fake *)self)->gives;
    examples->cells = ((fake *)self)->cells;
    examples->columns = 1;
    return SGM_OK;
}

static sgm_status fake_rewind(void *self)
{
    (void)self;
    return SGM_OK;
}

static void fake_free(void *self)
{
    ((fake *)self)->freed++;
}

TEST(a_reader_from_outside_is_checked)
{
    const sgm_reader_type type = {"fake", NULL, fake_read, fake_rewind, fake_free};
    const char *const cells[] = {"a", "b", "c"};
    fake self = {.gives = 3, .cells = cells};
    sgm_reader *reader = sgm_reader_create(&type, &self, "fake source");
    sgm_examples examples;
    CHECK_STR(sgm_reader_name(reader), "fake source");
    CHECK_OK(sgm_reader_read(reader, 3, &examples));
    CHECK_INT(examples.count, 3);
    CHECK_ERROR(sgm_reader_read(reader, 2, &examples),
                "fake source: the reader 'fake' gave 3 examples, up to 2");
    CHECK_INT(examples.count, 0);
    CHECK_ERROR(sgm_reader_read(reader, 3, &examples), "rewind");
    CHECK_OK(sgm_reader_rewind(reader));
    CHECK_OK(sgm_reader_read(reader, 3, &examples));
    self.cells = NULL;
    CHECK_ERROR(sgm_reader_read(reader, 3, &examples), "either values");
    CHECK_OK(sgm_reader_rewind(reader));
    CHECK_ERROR(sgm_reader_read(reader, 0, &examples), "at least one example");
    sgm_reader_free(reader);
    CHECK_INT(self.freed, 1);
    const sgm_reader_type incomplete = {"incomplete", NULL, NULL, NULL, fake_free};
    CHECK_ERROR(sgm_reader_create(&incomplete, &self, "x"), "read and rewind");
    CHECK_INT(self.freed, 2);
    sgm_clear_error();
    CHECK_ERROR(sgm_reader_prepare(NULL), "NULL");
    CHECK_ERROR(sgm_reader_read(NULL, 1, &examples), "NULL");
}

/* --- bytes --- */

TEST(bytes_after_a_header)
{
    sgm_reader *reader = sgm_byte_reader(memory("HDaabbccddee"), 2, 2);
    sgm_examples examples;
    CHECK_OK(sgm_reader_read(reader, 3, &examples));
    CHECK_INT(examples.count, 3);
    CHECK_INT(sgm_tensor_dtype(examples.values), SGM_UINT8);
    CHECK(sgm_shape_equal(sgm_tensor_shape(examples.values), &(sgm_shape[]){sgm_shape_of(3, 2)}[0]));
    CHECK_INT(at(&examples, 5), 'c');
    CHECK_OK(sgm_reader_read(reader, 3, &examples));
    CHECK_INT(examples.count, 2);
    CHECK_INT(at(&examples, 3), 'e');
    CHECK_OK(sgm_reader_read(reader, 3, &examples));
    CHECK_INT(examples.count, 0);
    CHECK_OK(sgm_reader_rewind(reader));
    CHECK_OK(sgm_reader_read(reader, 100, &examples));
    CHECK_INT(examples.count, 5);
    CHECK_INT(at(&examples, 0), 'a');
    sgm_reader_free(reader);
}

TEST(bytes_that_do_not_fit)
{
    sgm_examples examples;
    sgm_reader *reader = sgm_byte_reader(memory("HDaabbc"), 2, 2);
    CHECK_OK(sgm_reader_read(reader, 2, &examples));
    CHECK_ERROR(sgm_reader_read(reader, 2, &examples),
                "m.txt: examples of 2 bytes were expected, but the last one, at "
                "byte 6, has 1");
    sgm_reader_free(reader);
    reader = sgm_byte_reader(memory("HD"), 3, 2);
    CHECK_ERROR(sgm_reader_prepare(reader), "m.txt");
    sgm_reader_free(reader);
    reader = sgm_byte_reader(memory("HDaa"), 0, (int64_t)1 << 60); /* nothing of that size is allocated */
    CHECK_ERROR(sgm_reader_read(reader, (int64_t)1 << 60, &examples), "at byte 0, has 4");
    sgm_reader_free(reader);
    CHECK_ERROR(sgm_byte_reader(memory("x"), 0, 0), "at least 1 byte");
}

TEST(three_gigabytes_in_little_memory)
{
    const int64_t size = (int64_t)3 << 30, example = 1 << 20;
    /* In memory a file of holes costs nothing; on a disk the kernel would fill its cache with 3 GB of zeros.
     */
    char shared[64];
    sprintf(shared, "/dev/shm/sigma-sparse-%d", (int)getpid());
    const char *path = access("/dev/shm", W_OK) == 0 ? shared : data_path("sparse.bin");
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0 && ftruncate(file, size) == 0);
    CHECK_INT(pwrite(file, "*", 1, size - 1), 1);
    close(file);
    sgm_reader *reader = sgm_byte_reader(sgm_file_source(path), 0, example);
    sgm_examples examples = {0};
    int64_t count = 0, last = 0;
    do {
        CHECK_OK(sgm_reader_read(reader, 32, &examples));
        count += examples.count;
        if (examples.count > 0)
            last = (int64_t)at(&examples, examples.count * example - 1);
    } while (examples.count > 0);
    CHECK_INT(count, size / example);
    CHECK_INT(last, '*');
    sgm_reader_free(reader);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    CHECK(usage.ru_maxrss < 300 * 1024);
    unlink(path);
}

/* --- characters --- */

static void check_windows(int64_t length, int64_t stride, int64_t step, const char *expected)
{
    sgm_reader *reader = sgm_character_reader(memory("abcdefghij"), length, stride);
    char text[256] = "";
    sgm_examples examples;
    for (int pass = 0; pass < 2; pass++) {
        text[0] = '\0';
        do {
            CHECK_OK(sgm_reader_read(reader, step, &examples));
            for (int64_t i = 0; i < examples.count * length; i++) {
                char letter[] = {(char)at(&examples, i), i % length == length - 1 ? ' ' : '\0', '\0'};
                strcat(text, letter);
            }
        } while (examples.count > 0);
        CHECK_STR(text, expected);
        CHECK_OK(sgm_reader_rewind(reader));
    }
    sgm_reader_free(reader);
}

TEST(windows_of_characters)
{
    check_windows(3, 0, 2, "abc def ghi ");
    check_windows(3, 3, 100, "abc def ghi ");
    check_windows(4, 1, 3, "abcd bcde cdef defg efgh fghi ghij ");
    check_windows(4, 2, 1, "abcd cdef efgh ghij ");
    check_windows(2, 5, 1, "ab fg ");
    check_windows(1, 9, 7, "a j ");
    check_windows(10, 1, 7, "abcdefghij ");
    sgm_reader *reader = sgm_character_reader(memory("abc"), (int64_t)1 << 50, 1);
    sgm_examples examples;
    CHECK_ERROR(sgm_reader_read(reader, 1, &examples), "the whole text has 3");
    sgm_reader_free(reader);
    CHECK_ERROR(sgm_character_reader(memory("abc"), 0, 0), "m.txt");
}

/* --- idx --- */

static void check_idx(unsigned char type, const char *elements, size_t length, sgm_dtype dtype,
                      const double *expected)
{
    char bytes[64] = {0, 0, (char)type, 2, 0, 0, 0, 2, 0, 0, 0, 1};
    memcpy(bytes + 12, elements, length);
    sgm_reader *reader = sgm_idx_reader(sgm_memory_source("a.idx", bytes, 12 + length));
    sgm_examples r;
    CHECK_OK(sgm_reader_read(reader, 10, &r));
    CHECK_INT(r.count, 2);
    CHECK_INT(sgm_tensor_dtype(r.values), dtype);
    CHECK_NEAR(at(&r, 0), expected[0], 0);
    CHECK_NEAR(at(&r, 1), expected[1], 0);
    sgm_reader_free(reader);
}

TEST(idx_element_types)
{
    check_idx(0x08, "\x01\xff", 2, SGM_UINT8, (double[]){1, 255});
    check_idx(0x09, "\x01\xff", 2, SGM_INT32, (double[]){1, -1});
    check_idx(0x0B, "\x01\x02\xff\xfe", 4, SGM_INT32, (double[]){258, -2});
    check_idx(0x0C, "\x00\x00\x01\x00\xff\xff\xff\x00", 8, SGM_INT32, (double[]){256, -256});
    check_idx(0x0D, "\x3f\xc0\x00\x00\xc0\x00\x00\x00", 8, SGM_FLOAT32, (double[]){1.5, -2});
    check_idx(0x0E, "\x3f\xf8\0\0\0\0\0\0\xc0\0\0\0\0\0\0\0", 16, SGM_FLOAT64, (double[]){1.5, -2});
}

static void check_idx_error(const char *bytes, size_t length, const char *part)
{
    sgm_examples r;
    sgm_reader *reader = sgm_idx_reader(sgm_memory_source("bad.idx", bytes, length));
    CHECK_ERROR(sgm_reader_read(reader, INT64_MAX, &r), part);
    CHECK_CONTAINS(sgm_last_error(), "bad.idx");
    sgm_reader_free(reader);
}

TEST(idx_errors)
{
    check_idx_error("\0\0\x08\x01\0\0\0\x03"
                    "ab",
                    10, "promises 3 examples of 1 bytes, but the file ends in example 2, at byte 10");
    check_idx_error("\0\0\x08\x01\0\0\0\x02"
                    "abc",
                    11, "2 examples were expected, but the file goes on at byte 10");
    check_idx_error("\0\0\x0A\x01\0\0\0\x02", 8, "begins with 00 00");
    check_idx_error("\x1f\x8b\x08\x01\0\0\0\x02", 8, "sgm_compressed_source");
    check_idx_error("\0\0\x08\x09\0\0\0\x02", 8, "at most 8 dimensions");
    check_idx_error("\0\0\x08\0", 4, "no dimension");
    check_idx_error("\0\0\x08\x02\0\0\0\x02\0\0\0\0", 12, "(2, 0)");
    check_idx_error("\0\0\x0E\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16, "too large");
    check_idx_error("\0\0\x08\x03\xff\xff\xff\xff\x0f\xff\xff\xff\x0f\xff\xff\xff", 16, "ends in example 0");
}

TEST(idx_without_examples)
{
    sgm_reader *reader = sgm_idx_reader(sgm_memory_source("none.idx", "\0\0\x08\x01\0\0\0\0", 8));
    sgm_examples r;
    CHECK_OK(sgm_reader_read(reader, 5, &r));
    CHECK_INT(r.count, 0);
    sgm_reader_free(reader);
}

TEST(mnist)
{
    if (getenv("SIGMA_DATA_DIR") == NULL)
        SKIP("SIGMA_DATA_DIR is not set");
    sgm_source *images = sgm_known_source("train-images-idx3-ubyte", NULL, NULL);
    sgm_source *labels = sgm_known_source("train-labels-idx1-ubyte", NULL, NULL);
    if (!sgm_source_exists(images) || !sgm_source_exists(labels)) {
        sgm_source_free(images);
        sgm_source_free(labels);
        SKIP("SIGMA_DATA_DIR has no MNIST");
    }
    sgm_reader *reader = sgm_idx_reader(images), *label_reader = sgm_idx_reader(labels);
    sgm_examples r;
    int64_t sum = 0, first = 0, count = 0;
    for (;;) {
        CHECK_OK(sgm_reader_read(reader, 1000, &r));
        if (r.count == 0)
            break;
        const unsigned char *pixels = sgm_tensor_const_data(r.values);
        for (int64_t i = 0; i < r.count * 784; i++) {
            sum += pixels[i];
            first += count == 0 && i < 784 ? pixels[i] : 0;
        }
        count += r.count;
    }
    CHECK_INT(count, 60000);
    CHECK_INT(first, 27525);
    CHECK_NEAR((double)sum / 60000 / 784 / 255, 0.1307, 0.00005);
    CHECK_OK(sgm_reader_read(label_reader, 100000, &r));
    CHECK_INT(r.count, 60000);
    const int expected[] = {5, 0, 4, 1, 9},
              per_class[] = {5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949};
    for (int i = 0; i < 5; i++)
        CHECK_INT(at(&r, i), expected[i]);
    int counts[10] = {0};
    const unsigned char *classes = sgm_tensor_const_data(r.values);
    for (int64_t i = 0; i < r.count; i++)
        counts[classes[i] % 10]++;
    for (int i = 0; i < 10; i++)
        CHECK_INT(counts[i], per_class[i]);
    sgm_reader_free(reader);
    sgm_reader_free(label_reader);
}
