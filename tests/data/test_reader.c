/* Readers: values, positions in messages, files that are larger than memory may be. */
#include "data_test.h"
#include "image_files.h"
#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/resource.h>

static sgm_source *memory(const char *text)
{
    return sgm_memory_source("m.txt", text, strlen(text));
}

/* Element `index` in row-major order. */
static double at(const sgm_records *records, int64_t index)
{
    const sgm_shape *shape = sgm_tensor_shape(records->values);
    int64_t indices[SGM_MAX_RANK];
    for (int i = shape->rank - 1; i >= 0; i--) {
        indices[i] = index % shape->dims[i];
        index /= shape->dims[i];
    }
    return sgm_tensor_get(records->values, indices);
}

static const char *cell(const sgm_records *records, int64_t row, int column)
{
    return records->cells[row * records->columns + column];
}

/* --- the generic reader --- */

typedef struct fake {
    int64_t gives;
    int freed;
    const char *const *cells;
} fake;

static sgm_status fake_read(void *self, int64_t count, sgm_records *records)
{
    (void)count;
    records->count = ((fake *)self)->gives;
    records->cells = ((fake *)self)->cells;
    records->columns = 1;
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
    sgm_records records;
    CHECK_STR(sgm_reader_name(reader), "fake source");
    CHECK_OK(sgm_reader_read(reader, 3, &records));
    CHECK_INT(records.count, 3);
    CHECK_ERROR(sgm_reader_read(reader, 2, &records),
                "fake source: the reader 'fake' gave 3 records, up to 2");
    CHECK_INT(records.count, 0);
    CHECK_ERROR(sgm_reader_read(reader, 3, &records), "rewind");
    CHECK_OK(sgm_reader_rewind(reader));
    CHECK_OK(sgm_reader_read(reader, 3, &records));
    self.cells = NULL;
    CHECK_ERROR(sgm_reader_read(reader, 3, &records), "either values");
    CHECK_OK(sgm_reader_rewind(reader));
    CHECK_ERROR(sgm_reader_read(reader, 0, &records), "at least one record");
    sgm_reader_free(reader);
    CHECK_INT(self.freed, 1);
    const sgm_reader_type incomplete = {"incomplete", NULL, NULL, NULL, fake_free};
    CHECK_ERROR(sgm_reader_create(&incomplete, &self, "x"), "read and rewind");
    CHECK_INT(self.freed, 2);
    sgm_clear_error();
    CHECK_ERROR(sgm_reader_prepare(NULL), "NULL");
    CHECK_ERROR(sgm_reader_read(NULL, 1, &records), "NULL");
}

/* --- bytes --- */

TEST(bytes_after_a_header)
{
    sgm_reader *reader = sgm_byte_reader(memory("HDaabbccddee"), 2, 2);
    sgm_records records;
    CHECK_OK(sgm_reader_read(reader, 3, &records));
    CHECK_INT(records.count, 3);
    CHECK_INT(sgm_tensor_dtype(records.values), SGM_UINT8);
    CHECK(sgm_shape_equal(sgm_tensor_shape(records.values), &(sgm_shape[]){sgm_shape_of(3, 2)}[0]));
    CHECK_INT(at(&records, 5), 'c');
    CHECK_OK(sgm_reader_read(reader, 3, &records));
    CHECK_INT(records.count, 2);
    CHECK_INT(at(&records, 3), 'e');
    CHECK_OK(sgm_reader_read(reader, 3, &records));
    CHECK_INT(records.count, 0);
    CHECK_OK(sgm_reader_rewind(reader));
    CHECK_OK(sgm_reader_read(reader, 100, &records));
    CHECK_INT(records.count, 5);
    CHECK_INT(at(&records, 0), 'a');
    sgm_reader_free(reader);
}

TEST(bytes_that_do_not_fit)
{
    sgm_records records;
    sgm_reader *reader = sgm_byte_reader(memory("HDaabbc"), 2, 2);
    CHECK_OK(sgm_reader_read(reader, 2, &records));
    CHECK_ERROR(sgm_reader_read(reader, 2, &records),
                "m.txt: records of 2 bytes were expected, but the last one, at "
                "byte 6, has 1");
    sgm_reader_free(reader);
    reader = sgm_byte_reader(memory("HD"), 3, 2);
    CHECK_ERROR(sgm_reader_prepare(reader), "m.txt");
    sgm_reader_free(reader);
    reader = sgm_byte_reader(memory("HDaa"), 0, (int64_t)1 << 60); /* nothing of that size is allocated */
    CHECK_ERROR(sgm_reader_read(reader, (int64_t)1 << 60, &records), "at byte 0, has 4");
    sgm_reader_free(reader);
    CHECK_ERROR(sgm_byte_reader(memory("x"), 0, 0), "at least 1 byte");
}

TEST(three_gigabytes_in_little_memory)
{
    const int64_t size = (int64_t)3 << 30, record = 1 << 20;
    /* In memory a file of holes costs nothing; on a disk the kernel would fill its cache with 3 GB of zeros.
     */
    char shared[64];
    sprintf(shared, "/dev/shm/sigma-sparse-%d", (int)getpid());
    const char *path = access("/dev/shm", W_OK) == 0 ? shared : data_path("sparse.bin");
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0 && ftruncate(file, size) == 0);
    CHECK_INT(pwrite(file, "*", 1, size - 1), 1);
    close(file);
    sgm_reader *reader = sgm_byte_reader(sgm_file_source(path), 0, record);
    sgm_records records = {0};
    int64_t count = 0, last = 0;
    do {
        CHECK_OK(sgm_reader_read(reader, 32, &records));
        count += records.count;
        if (records.count > 0)
            last = (int64_t)at(&records, records.count * record - 1);
    } while (records.count > 0);
    CHECK_INT(count, size / record);
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
    sgm_records records;
    for (int pass = 0; pass < 2; pass++) {
        text[0] = '\0';
        do {
            CHECK_OK(sgm_reader_read(reader, step, &records));
            for (int64_t i = 0; i < records.count * length; i++) {
                char letter[] = {(char)at(&records, i), i % length == length - 1 ? ' ' : '\0', '\0'};
                strcat(text, letter);
            }
        } while (records.count > 0);
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
    sgm_records records;
    CHECK_ERROR(sgm_reader_read(reader, 1, &records), "the whole text has 3");
    sgm_reader_free(reader);
    CHECK_ERROR(sgm_character_reader(memory("abc"), 0, 0), "m.txt");
}

/* --- csv --- */

TEST(csv_cells)
{
    sgm_reader *reader = sgm_csv_reader(memory("\xEF\xBB\xBFname,value,note\n"
                                               " a , 1.5 ,\"x, \"\"y\"\"\nz\"\r\n"
                                               "\n   \n"
                                               "b,?,\r"
                                               "\" c \"  ,  , last one"),
                                        .skip_rows = 1, .missing = "?");
    sgm_records r;
    CHECK_OK(sgm_reader_read(reader, 2, &r));
    CHECK_INT(r.count, 2);
    CHECK_INT(r.columns, 3);
    CHECK_INT(r.first_line, 2);
    CHECK(r.values == NULL);
    CHECK_STR(cell(&r, 0, 0), "a");
    CHECK_STR(cell(&r, 0, 1), "1.5");
    CHECK_STR(cell(&r, 0, 2), "x, \"y\"\nz");
    CHECK_STR(cell(&r, 1, 0), "b");
    CHECK_STR(cell(&r, 1, 1), NULL);
    CHECK_STR(cell(&r, 1, 2), NULL);
    CHECK_OK(sgm_reader_read(reader, 2, &r));
    CHECK_INT(r.count, 1);
    CHECK_INT(r.first_line, 7);
    CHECK_STR(cell(&r, 0, 0), " c ");
    CHECK_STR(cell(&r, 0, 1), NULL);
    CHECK_STR(cell(&r, 0, 2), "last one");
    CHECK_OK(sgm_reader_read(reader, 2, &r));
    CHECK_INT(r.count, 0);
    CHECK_OK(sgm_reader_rewind(reader));
    CHECK_OK(sgm_reader_read(reader, 9, &r));
    CHECK_INT(r.count, 3);
    sgm_reader_free(reader);
}

TEST(csv_separators)
{
    sgm_records r;
    sgm_reader *reader = sgm_csv_reader(memory("  1 \t 2   3  \n\"4 4\"\t5 6\n"), .separator = ' ');
    CHECK_OK(sgm_reader_read(reader, 9, &r));
    CHECK_INT(r.count, 2);
    CHECK_INT(r.columns, 3);
    CHECK_STR(cell(&r, 0, 0), "1");
    CHECK_STR(cell(&r, 0, 2), "3");
    CHECK_STR(cell(&r, 1, 0), "4 4");
    CHECK_STR(cell(&r, 1, 2), "6");
    sgm_reader_free(reader);
    reader = sgm_csv_reader(memory("1\t\t2 3\n\t\t\n"), .separator = '\t');
    CHECK_OK(sgm_reader_read(reader, 9, &r));
    CHECK_INT(r.count, 2);
    CHECK_STR(cell(&r, 0, 1), NULL);
    CHECK_STR(cell(&r, 0, 2), "2 3");
    CHECK_STR(cell(&r, 1, 2), NULL);
    sgm_reader_free(reader);
    CHECK_ERROR(sgm_csv_reader(memory("a"), .separator = '"'), "separator");
    CHECK_ERROR(sgm_csv_reader(memory("a"), .separator = '\n'), "separator");
}

static int ragged_warnings;

static void count_warnings(void *user, sgm_log_level level, const char *component, const char *message)
{
    (void)user, (void)component;
    ragged_warnings += level == SGM_LOG_WARNING && strstr(message, "m.txt: line ") != NULL;
}

TEST(csv_ragged_rows)
{
    sgm_records r;
    sgm_reader *reader = sgm_csv_reader(memory("# header\n1,2\n3,4\n5\n6,7\n8,9,10\n"), .skip_rows = 1);
    CHECK_OK(sgm_reader_read(reader, 2, &r));
    CHECK_ERROR(sgm_reader_read(reader, 2, &r),
                "m.txt: line 4: 2 columns were expected as in line 2, 1 came");
    CHECK_CONTAINS(sgm_last_error(), "skip_ragged");
    sgm_reader_free(reader);
    reader =
        sgm_csv_reader(memory("# header\n1,2\n3,4\n5\n6,7\n8,9,10\n"), .skip_rows = 1, .skip_ragged = true);
    sgm_set_logger(count_warnings, NULL, SGM_LOG_WARNING);
    CHECK_OK(sgm_reader_read(reader, 9, &r));
    sgm_set_logger(NULL, NULL, SGM_LOG_NONE);
    CHECK_INT(ragged_warnings, 2);
    CHECK_INT(r.count, 3);
    CHECK_STR(cell(&r, 2, 0), "6");
    sgm_reader_free(reader);
}

static void check_csv_error(const char *text, size_t length, const char *part)
{
    sgm_records r;
    sgm_reader *reader = sgm_csv_reader(sgm_memory_source("bad.csv", text, length), .skip_rows = 0);
    CHECK_ERROR(sgm_reader_read(reader, 100, &r), part);
    sgm_reader_free(reader);
}

TEST(csv_errors_name_the_place)
{
    check_csv_error("a,b\nc,\"d\ne,f\n", 12,
                    "bad.csv: line 2, column 1 (from 0): the quote (\") that opens the cell is never");
    check_csv_error("a,b\nc,\"d\"e\n", 11,
                    "bad.csv: line 2, column 1 (from 0): the end of the cell was expected");
    check_csv_error("a,b\nc,d\0\n", 9,
                    "bad.csv: line 2, column 1 (from 0): text was expected, a zero byte came at byte 7");
    static char row[20 << 20];
    memset(row, 'x', sizeof row);
    row[0] = '"';
    check_csv_error(row, sizeof row, "bad.csv: line 1: the row has more than 16777216 bytes");
}

TEST(csv_over_buffer_borders)
{
    static char text[400000];
    size_t length = 0;
    for (int i = 0; i < 20000; i++)
        length += (size_t)sprintf(text + length, "%d,\"q%d\"\r\n", i, i * 7);
    sgm_reader *reader = sgm_csv_reader(sgm_memory_source("long.csv", text, length), .skip_rows = 0);
    sgm_records r;
    char expected[32];
    int64_t done = 0;
    for (;;) {
        CHECK_OK(sgm_reader_read(reader, 777, &r));
        if (r.count == 0)
            break;
        CHECK_INT(r.first_line, done + 1);
        for (int64_t i = 0; i < r.count; i++, done++) {
            sprintf(expected, "%d", (int)done);
            CHECK_STR(cell(&r, i, 0), expected);
            sprintf(expected, "q%d", (int)done * 7);
            CHECK_STR(cell(&r, i, 1), expected);
        }
    }
    CHECK_INT(done, 20000);
    sgm_reader_free(reader);
}

/* --- idx --- */

static void check_idx(unsigned char type, const char *elements, size_t length, sgm_dtype dtype,
                      const double *expected)
{
    char bytes[64] = {0, 0, (char)type, 2, 0, 0, 0, 2, 0, 0, 0, 1};
    memcpy(bytes + 12, elements, length);
    sgm_reader *reader = sgm_idx_reader(sgm_memory_source("a.idx", bytes, 12 + length));
    sgm_records r;
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
    sgm_records r;
    sgm_reader *reader = sgm_idx_reader(sgm_memory_source("bad.idx", bytes, length));
    CHECK_ERROR(sgm_reader_read(reader, INT64_MAX, &r), part);
    CHECK_CONTAINS(sgm_last_error(), "bad.idx");
    sgm_reader_free(reader);
}

TEST(idx_errors)
{
    check_idx_error("\0\0\x08\x01\0\0\0\x03"
                    "ab",
                    10, "promises 3 records of 1 bytes, but the file ends in record 2, at byte 10");
    check_idx_error("\0\0\x08\x01\0\0\0\x02"
                    "abc",
                    11, "2 records were expected, but the file goes on at byte 10");
    check_idx_error("\0\0\x0A\x01\0\0\0\x02", 8, "begins with 00 00");
    check_idx_error("\x1f\x8b\x08\x01\0\0\0\x02", 8, "sgm_compressed_source");
    check_idx_error("\0\0\x08\x09\0\0\0\x02", 8, "at most 8 dimensions");
    check_idx_error("\0\0\x08\0", 4, "no dimension");
    check_idx_error("\0\0\x08\x02\0\0\0\x02\0\0\0\0", 12, "(2, 0)");
    check_idx_error("\0\0\x0E\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16, "too large");
    check_idx_error("\0\0\x08\x03\xff\xff\xff\xff\x0f\xff\xff\xff\x0f\xff\xff\xff", 16, "ends in record 0");
}

TEST(idx_without_records)
{
    sgm_reader *reader = sgm_idx_reader(sgm_memory_source("none.idx", "\0\0\x08\x01\0\0\0\0", 8));
    sgm_records r;
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
    sgm_records r;
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

/* --- npy --- */

/* A file of format version `version` with this dictionary; returns its length. */
static size_t make_npy(char *out, int version, const char *header, const char *elements, size_t length)
{
    size_t text = strlen(header), prefix = version == 1 ? 10 : 12;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (char)version;
    out[7] = 0;
    memset(out + 8, 0, 4);
    out[8] = (char)(text & 255);
    out[9] = (char)(text >> 8);
    memcpy(out + prefix, header, text);
    memcpy(out + prefix + text, elements, length);
    return prefix + text + length;
}

static void check_npy(int version, const char *header, const char *elements, size_t length, sgm_dtype dtype,
                      const double *expected)
{
    char bytes[1024];
    size_t size = make_npy(bytes, version, header, elements, length);
    sgm_reader *reader = sgm_npy_reader(sgm_memory_source("a.npy", bytes, size), NULL);
    sgm_records r;
    CHECK_OK(sgm_reader_read(reader, 10, &r));
    CHECK_INT(r.count, 2);
    CHECK_INT(sgm_tensor_dtype(r.values), dtype);
    CHECK_NEAR(at(&r, 0), expected[0], 0);
    CHECK_NEAR(at(&r, 1), expected[1], 0);
    CHECK_OK(sgm_reader_read(reader, 10, &r));
    CHECK_INT(r.count, 0);
    sgm_reader_free(reader);
}

#define HEADER(descr) "{'descr': '" descr "', 'fortran_order': False, 'shape': (2,), }            \n"

TEST(npy_element_types_and_byte_orders)
{
    check_npy(1, HEADER("|u1"), "\x01\xff", 2, SGM_UINT8, (double[]){1, 255});
    check_npy(1, HEADER("|b1"), "\0\x01", 2, SGM_BOOL, (double[]){0, 1});
    check_npy(1, HEADER("|i1"), "\x01\xff", 2, SGM_INT32, (double[]){1, -1});
    check_npy(1, HEADER("<i2"), "\x02\x01\xfe\xff", 4, SGM_INT32, (double[]){258, -2});
    check_npy(1, HEADER(">u2"), "\x01\x02\xff\xfe", 4, SGM_INT32, (double[]){258, 65534});
    check_npy(1, HEADER("<i4"), "\0\x01\0\0\0\xff\xff\xff", 8, SGM_INT32, (double[]){256, -256});
    check_npy(1, HEADER("<u4"), "\0\x01\0\0\xff\xff\xff\xff", 8, SGM_INT64, (double[]){256, 4294967295.0});
    check_npy(2, HEADER(">i8"), "\0\0\0\0\0\0\0\x07\xff\xff\xff\xff\xff\xff\xff\xfe", 16, SGM_INT64,
              (double[]){7, -2});
    check_npy(2, HEADER("<u8"), "\x07\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0", 16, SGM_INT64, (double[]){7, 256});
    check_npy(3, HEADER("<f4"), "\0\0\xc0\x3f\0\0\0\xc0", 8, SGM_FLOAT32, (double[]){1.5, -2});
    check_npy(3, HEADER(">f4"), "\x3f\xc0\0\0\xc0\0\0\0", 8, SGM_FLOAT32, (double[]){1.5, -2});
    check_npy(1, HEADER(">f8"), "\x3f\xf8\0\0\0\0\0\0\xc0\0\0\0\0\0\0\0", 16, SGM_FLOAT64,
              (double[]){1.5, -2});
    /* half precision: the largest number, and the smallest subnormal one, negative; then infinity and NaN */
    check_npy(1, HEADER("<f2"), "\xff\x7b\x01\x80", 4, SGM_FLOAT32, (double[]){65504, -0x1p-24});
    check_npy(1, HEADER("<f2"), "\x55\x35\x00\xfc", 4, SGM_FLOAT32, (double[]){0.333251953125, -INFINITY});
    check_npy(1, HEADER("<f2"), "\x00\x7e\x00\x80", 4, SGM_FLOAT32, (double[]){NAN, -0.0});
}

TEST(npy_header_forms)
{
    const double expected[] = {1, 2};
    check_npy(1, "{\"shape\":(2L,1),\"fortran_order\":False,\"descr\":\"|u1\"}", "\1\2", 2, SGM_UINT8,
              expected);
    check_npy(1, "{ 'fortran_order' : True, 'descr': '|u1', 'shape': (2 ,) } \n", "\1\2", 2, SGM_UINT8,
              expected);
    check_npy(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 1, 1, 1, 1, 1, 1, 1,)}", "\1\2", 2,
              SGM_UINT8, expected);
}

static void check_npy_error(const char *header, const char *part)
{
    char bytes[1024];
    size_t size = make_npy(bytes, 1, header, "\1\2\3\4\5\6\7\xff\1\2\3\4\5\6\7\xff", 16);
    sgm_reader *reader = sgm_npy_reader(sgm_memory_source("bad.npy", bytes, size), NULL);
    sgm_records r;
    CHECK_ERROR(sgm_reader_read(reader, INT64_MAX, &r), part);
    CHECK_CONTAINS(sgm_last_error(), "bad.npy");
    sgm_reader_free(reader);
}

TEST(npy_errors)
{
    check_npy_error("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2)}", "ascontiguousarray");
    check_npy_error("{'descr': '|O', 'fortran_order': False, 'shape': (2,)}", "Python objects");
    check_npy_error("{'descr': '<U5', 'fortran_order': False, 'shape': (2,)}", "this is text");
    check_npy_error("{'descr': '<c8', 'fortran_order': False, 'shape': (2,)}", "'<c8' came");
    check_npy_error("{'descr': '|i4', 'fortran_order': False, 'shape': (2,)}", "'|i4' came");
    check_npy_error("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", "structured");
    check_npy_error("{'descr': '|u1', 'fortran_order': False, 'shape': ()}", "no dimension");
    check_npy_error("{'descr': '|u1', 'fortran_order': False, 'shape': (2)}", "a comma in the shape");
    check_npy_error("{'descr': '|u1', 'fortran_order': False, 'shape': (-2,)}",
                    "a dimension was expected, '-2,)}' came");
    check_npy_error("{'descr': '|u1', 'fortran_order': False, 'shape': (9223372036854775808,)}",
                    "below 2^63");
    check_npy_error("{'descr': '|u1', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", "at most 8");
    check_npy_error("{'descr': '|u1', 'fortran_order': False, 'shape': (1, 9223372036854775807, 4)}",
                    "too large");
    check_npy_error(
        "{'descr': '|u1', 'fortran_order': False, 'shape': (9223372036854775807, 576460752303423487)}",
        "ends in record 0");
    check_npy_error("{'descr': '|u1', 'fortran_order': False}", "descr, fortran_order and shape");
    check_npy_error("{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (2,)}", "each once");
    check_npy_error("{'descr': '|u1', 'fortran_order': 0, 'shape': (2,)}", "True or False");
    check_npy_error("{'descr': '|u1', 'fortran_order': False, 'shape': (2,)} x", "nothing but blanks");
    check_npy_error("{'descr': '|u1' 'fortran_order': False, 'shape': (2,)}", "a comma or }");
    check_npy_error("{'descr': '|u1", "quoted text");
    check_npy_error("", "{ was expected");
    check_npy_error(HEADER("|u1"), "the file goes on at byte");
    check_npy_error("{'descr': '<u8', 'fortran_order': False, 'shape': (2,)}",
                    "record 0 has an unsigned number above");
    check_npy_error("{'descr': '|u1', 'fortran_order': False, 'shape': (17,)}", "promises 17 records");
}

/* An archive as numpy.savez makes it. */
static const char *write_npz(const char *name, const char *compression)
{
    const char *path = data_path(name);
    char bytes[1024];
    struct archive *archive = archive_write_new();
    archive_write_set_format_zip(archive);
    archive_write_set_options(archive, compression);
    archive_write_open_filename(archive, path);
    const char *names[] = {"x.npy", "y.npy"};
    for (int i = 0; i < 2; i++) {
        size_t size = make_npy(bytes, 1, HEADER("|u1"), i == 0 ? "\1\2" : "\3\4", 2);
        struct archive_entry *entry = archive_entry_new();
        archive_entry_set_pathname(entry, names[i]);
        archive_entry_set_filetype(entry, AE_IFREG);
        archive_entry_set_perm(entry, 0644);
        archive_entry_set_size(entry, (la_int64_t)size);
        archive_write_header(archive, entry);
        archive_write_data(archive, bytes, size);
        archive_entry_free(entry);
    }
    archive_write_close(archive);
    archive_write_free(archive);
    return path;
}

static void check_npz(const char *path, const char *array, double expected)
{
    sgm_reader *reader = sgm_npy_reader(sgm_file_source(path), array);
    sgm_records r;
    for (int pass = 0; pass < 2; pass++) {
        CHECK_OK(sgm_reader_read(reader, 1, &r));
        CHECK_INT(r.count, 1);
        CHECK_NEAR(at(&r, 0), expected, 0);
        CHECK_OK(sgm_reader_rewind(reader));
    }
    sgm_reader_free(reader);
}

TEST(npz_members)
{
    const char *compressions[] = {"zip:compression=store", "zip:compression=deflate"};
    for (int i = 0; i < 2; i++) {
        const char *path = write_npz(i == 0 ? "store.npz" : "deflate.npz", compressions[i]);
        check_npz(path, NULL, 1);
        check_npz(path, "x", 1);
        check_npz(path, "y", 3);
        check_npz(path, "y.npy", 3);
        sgm_reader *reader = sgm_npy_reader(sgm_file_source(path), "z");
        CHECK_ERROR(sgm_reader_prepare(reader), "z.npy; it has: x.npy, y.npy");
        sgm_reader_free(reader);
    }
    sgm_reader *reader = sgm_npy_reader(memory("\x93NUMPY\1"), "x");
    CHECK_ERROR(sgm_reader_prepare(reader), "not an .npz");
    sgm_reader_free(reader);
}

/* --- images --- */

static const char *image_folder(const char *name)
{
    static char folder[256];
    strcpy(folder, data_path(name));
    mkdir(folder, 0755);
    return folder;
}

static const char *image_path(const char *folder, const char *class, const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, class);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/%s/%s", folder, class, name);
    return path;
}

/* Reads the only image of a folder and compares its values. */
static void check_image(const char *folder, int width, int height, bool grey, const double *expected,
                        double tolerance)
{
    sgm_reader *reader = sgm_image_reader(folder, .width = width, .height = height, .grey = grey);
    sgm_records r;
    CHECK_OK(sgm_reader_read(reader, 5, &r));
    CHECK_INT(r.count, 1);
    int64_t size = sgm_tensor_shape(r.values)->dims[1];
    CHECK_INT(size, width * height * (grey ? 1 : 3) + 1);
    for (int64_t i = 0; i < size - 1; i++)
        CHECK_NEAR(at(&r, i), expected[i], tolerance);
    sgm_reader_free(reader);
}

TEST(image_scaling_averages_areas)
{
    const char *folder = image_folder("scale");
    const char *path = image_path(folder, "a", "1.png");
    image_write_png(path, 4, 4, PNG_COLOR_TYPE_GRAY, 8, 0,
                    (const unsigned char[]){0, 10, 100, 100, 20, 30, 100, 100, 1, 1, 0, 0, 1, 2, 0, 255});
    check_image(folder, 2, 2, true, (double[]){15, 100, 1, 64}, 0); /* 1.25 and 63.75 rounded */
    check_image(folder, 1, 1, true, (double[]){45}, 0);             /* 720 / 16 */
    check_image(folder, 1, 4, true, (double[]){53, 63, 1, 65}, 0);  /* 52.5, 62.5, 0.5, 64.5 */
    image_write_png(path, 3, 1, PNG_COLOR_TYPE_GRAY, 8, 0, (const unsigned char[]){0, 90, 180});
    check_image(folder, 2, 1, true, (double[]){30, 150}, 0);
    check_image(folder, 2, 2, true, (double[]){30, 150, 30, 150}, 0);
    image_write_png(path, 1, 3, PNG_COLOR_TYPE_GRAY, 8, 0, (const unsigned char[]){0, 90, 180});
    check_image(folder, 1, 2, true, (double[]){30, 150}, 0);
    image_write_png(path, 2, 2, PNG_COLOR_TYPE_GRAY, 8, 0, (const unsigned char[]){1, 2, 3, 4});
    check_image(folder, 4, 4, true, (double[]){1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4}, 0);
    check_image(folder, 2, 2, false, (double[]){1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4}, 0);
    image_write_png(path, 2, 2, PNG_COLOR_TYPE_RGB, 8, 1,
                    (const unsigned char[]){1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
    check_image(folder, 2, 2, false, (double[]){1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 0);
    check_image(folder, 1, 1, false, (double[]){6, 7, 8}, 0); /* 5.5 and so on, rounded up */
}

TEST(image_colours)
{
    const char *folder = image_folder("colour");
    const char *path = image_path(folder, "a", "1.png");
    image_write_png(path, 2, 1, PNG_COLOR_TYPE_RGB_ALPHA, 8, 0,
                    (const unsigned char[]){9, 8, 7, 0, 6, 5, 4, 255});
    check_image(folder, 2, 1, false, (double[]){9, 8, 7, 6, 5, 4}, 0);
    image_write_png(path, 2, 1, PNG_COLOR_TYPE_PALETTE, 8, 0, (const unsigned char[]){2, 0});
    check_image(folder, 2, 1, false, (double[]){255, 0, 128, 10, 20, 30}, 0);
    check_image(folder, 2, 1, true, (double[]){90.8, 18.15}, 1); /* 0.299 R + 0.587 G + 0.114 B */
    image_write_png(path, 1, 1, PNG_COLOR_TYPE_GRAY, 16, 0, (const unsigned char[]){0x80, 0x80});
    check_image(folder, 1, 1, true, (double[]){128}, 0);
    image_write_jpeg(path, 16, 8, 3, (const unsigned char[]){200, 100, 50}, 0); /* by content, not by name */
    check_image(folder, 1, 1, false, (double[]){200, 100, 50}, 3);
    check_image(folder, 1, 1, true, (double[]){124.2}, 3);
    image_write_jpeg(path, 16, 8, 1, (const unsigned char[]){77}, 1);
    check_image(folder, 1, 1, false, (double[]){77, 77, 77}, 2);
    image_write_jpeg(path, 16, 8, 4, (const unsigned char[]){1, 2, 3, 4}, 0);
    sgm_reader *reader = sgm_image_reader(folder, .width = 1, .height = 1);
    sgm_records r;
    CHECK_ERROR(sgm_reader_read(reader, 1, &r), "colour/a/1.png: a JPEG file with 1 or 3 channels");
    sgm_reader_free(reader);
}

TEST(image_classes_alternate)
{
    const char *folder = image_folder("classes");
    const unsigned char pixels[6] = {0};
    for (int i = 0; i < 4; i++)
        image_write_png(image_path(folder, "b", (const char *[]){"1.png", "2.PNG", "3.png", "4.png"}[i]), 3,
                        2, PNG_COLOR_TYPE_GRAY, 8, 0, pixels);
    for (int i = 0; i < 2; i++)
        image_write_png(image_path(folder, "a", i == 0 ? "x.png" : "y.png"), 3, 2, PNG_COLOR_TYPE_GRAY, 8, 0,
                        pixels);
    image_write_jpeg(image_path(folder, "c", "z.jpeg"), 20, 30, 1, pixels, 0);
    data_write("classes/c/readme.txt", "no image", 8);
    data_write("classes/list.txt", "no class", 8);
    sgm_reader *reader = sgm_image_reader(folder, .grey = true);
    sgm_shape shape;
    CHECK_OK(sgm_image_reader_shape(reader, &shape));
    CHECK(sgm_shape_equal(&shape, &(sgm_shape[]){sgm_shape_of(2, 3, 1)}[0]));
    const int expected[] = {1, 0, 1, 2, 1, 0, 1}; /* places .125 .25 .375 .5 .625 .75 .875 */
    sgm_records r;
    for (int pass = 0; pass < 2; pass++) {
        CHECK_OK(sgm_reader_read(reader, 100, &r));
        CHECK_INT(r.count, 7);
        for (int i = 0; i < 7; i++)
            CHECK_INT(at(&r, i * 7 + 6), expected[i]);
        CHECK_OK(sgm_reader_read(reader, 100, &r));
        CHECK_INT(r.count, 0);
        CHECK_OK(sgm_reader_rewind(reader));
    }
    sgm_reader_free(reader);
}

TEST(image_errors)
{
    const char *folder = image_folder("wrong");
    sgm_records r;
    sgm_reader *reader = sgm_image_reader(folder, .grey = true);
    CHECK_ERROR(sgm_reader_prepare(reader), "wrong: no image was found");
    data_write("wrong/readme.txt", "x", 1);
    image_path(folder, "a", "");
    data_write("wrong/a/text.png", "this is text", 12);
    CHECK_ERROR(sgm_reader_read(reader, 1, &r), "wrong/a/text.png: a PNG or JPEG image was expected");
    sgm_reader_free(reader);
    CHECK_ERROR(sgm_image_reader(folder, .width = 5), "give both");
    reader = sgm_image_reader_create("/nowhere/at/all", NULL);
    CHECK_ERROR(sgm_reader_prepare(reader), "/nowhere/at/all");
    sgm_reader_free(reader);
    sgm_shape shape;
    reader = sgm_byte_reader(memory("x"), 0, 1);
    CHECK_ERROR(sgm_image_reader_shape(reader, &shape), "a reader of images was expected");
    sgm_reader_free(reader);
}
