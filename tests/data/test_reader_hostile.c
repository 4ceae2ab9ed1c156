/* Readers given damaged files: cut anywhere, with bits flipped, promising more than there is, and with no
 * memory left. The outcome is success or an error that names the file; never a crash, never an allocation out
 * of proportion. */
#include "data_test.h"
#include "image_files.h"
#include <archive.h>
#include <archive_entry.h>
#include <zlib.h>

/* --- memory that can run out, and that notices large requests --- */

static size_t largest_request;
static long allocations_left = -1; /* -1: no limit */

static void *test_reallocate(void *user, void *memory, size_t size)
{
    (void)user;
    largest_request = size > largest_request ? size : largest_request;
    if (allocations_left == 0)
        return NULL;
    allocations_left -= allocations_left > 0;
    return realloc(memory, size);
}

static void test_release(void *user, void *memory)
{
    (void)user;
    free(memory);
}

__attribute__((constructor)) static void use_test_memory(void)
{
    static const sgm_allocator allocator = {test_reallocate, test_release, NULL};
    sgm_set_allocator(&allocator);
}

static uint32_t random_state = 1;

static uint32_t random_number(void)
{
    random_state = random_state * 1664525 + 1013904223;
    return random_state >> 8;
}

/* --- one reader over one content --- */

typedef struct test_subject {
    const char *name;
    sgm_reader *(*create)(const unsigned char *bytes, size_t length);
    unsigned char bytes[4096];
    size_t length;
    int64_t examples; /* in the undamaged content */
} test_subject;

#define FILE_NAME "hostile.bin"

static sgm_reader *create_bytes(const unsigned char *bytes, size_t length)
{
    return sgm_byte_reader(sgm_memory_source(FILE_NAME, bytes, length), 4, 6);
}

static sgm_reader *create_characters(const unsigned char *bytes, size_t length)
{
    return sgm_character_reader(sgm_memory_source(FILE_NAME, bytes, length), 10, 3);
}

static sgm_reader *create_csv(const unsigned char *bytes, size_t length)
{
    return sgm_csv_reader(sgm_memory_source(FILE_NAME, bytes, length), .skip_rows = 1, .missing = "?");
}

static sgm_reader *create_idx(const unsigned char *bytes, size_t length)
{
    return sgm_idx_reader(sgm_memory_source(FILE_NAME, bytes, length));
}

static sgm_reader *create_packed_idx(const unsigned char *bytes, size_t length)
{
    return sgm_idx_reader(sgm_compressed_source(sgm_memory_source(FILE_NAME, bytes, length), NULL));
}

static sgm_reader *create_npy(const unsigned char *bytes, size_t length)
{
    return sgm_npy_reader(sgm_memory_source(FILE_NAME, bytes, length), NULL);
}

static sgm_reader *create_npz(const unsigned char *bytes, size_t length)
{
    return sgm_npy_reader(sgm_memory_source(FILE_NAME, bytes, length), "x");
}

static sgm_reader *create_images(const unsigned char *bytes, size_t length)
{
    mkdir(data_path("images"), 0755);
    mkdir(data_path("images/hostile.bin"), 0755); /* the class, so that the name is in every message */
    data_write("images/hostile.bin/1.png", bytes, length);
    return sgm_image_reader(data_path("images"), .width = 3, .height = 3);
}

static volatile int64_t touched;

/* Touches all that a reader gave. */
static int64_t use(const sgm_examples *examples)
{
    if (examples->values != NULL) {
        const unsigned char *bytes = sgm_tensor_const_data(examples->values);
        int64_t size = sgm_shape_elements(sgm_tensor_shape(examples->values)) *
                       (int64_t)sgm_dtype_size(sgm_tensor_dtype(examples->values));
        for (int64_t i = 0; i < size; i++)
            touched += bytes[i];
    }
    for (int64_t i = 0; examples->cells != NULL && i < examples->count * examples->columns; i++)
        touched += examples->cells[i] != NULL ? (int64_t)strlen(examples->cells[i]) : 0;
    return examples->count;
}

/* Reads everything; -1 on failure. */
static int64_t read_all(const test_subject *subject, const unsigned char *bytes, size_t length)
{
    sgm_clear_error();
    sgm_reader *reader = subject->create(bytes, length);
    int64_t count = 0;
    sgm_status status = reader != NULL ? sgm_reader_prepare(reader) : sgm_last_status();
    for (sgm_examples examples = {.count = 1}; status == SGM_OK && examples.count > 0;) {
        status = sgm_reader_read(reader, 7, &examples);
        count += use(&examples);
    }
    sgm_reader_free(reader);
    return status == SGM_OK ? count : -1;
}

static void check_outcome(const test_subject *subject, int64_t count, const char *damage, size_t place)
{
    if (count < 0 && (strstr(sgm_last_error(), FILE_NAME) == NULL || strlen(sgm_last_error()) < 40))
        TEST_FAIL("%s, %s at %zu: the message is '%s'", subject->name, damage, place, sgm_last_error());
    if (largest_request > (size_t)4 << 20)
        TEST_FAIL("%s, %s at %zu: %zu bytes were allocated", subject->name, damage, place, largest_request);
}

static void check_damage(const test_subject *subject, int mutations)
{
    unsigned char bytes[sizeof subject->bytes];
    largest_request = 0;
    CHECK_INT(read_all(subject, subject->bytes, subject->length), subject->examples);
    for (size_t cut = 0; cut < subject->length; cut++)
        check_outcome(subject, read_all(subject, subject->bytes, cut), "cut", cut);
    for (int i = 0; i < mutations; i++) {
        memcpy(bytes, subject->bytes, subject->length);
        size_t place = 0;
        for (uint32_t changes = 1 + random_number() % 4; changes > 0; changes--) {
            place = random_number() % subject->length;
            if (random_number() % 2)
                bytes[place] ^= (unsigned char)(1u << random_number() % 8);
            else
                bytes[place] = (unsigned char[]){0, 0xff, 0x7f, 0x80, '"', ','}[random_number() % 6];
        }
        check_outcome(subject, read_all(subject, bytes, subject->length), "mutation", (size_t)i);
    }
}

/* Fails the first allocation, the second, and so on, until it works. */
static void check_memory(const test_subject *subject)
{
    for (long n = 0; n < 1000; n++) {
        allocations_left = n;
        int64_t count = read_all(subject, subject->bytes, subject->length);
        allocations_left = -1;
        if (count >= 0) {
            CHECK_INT(count, subject->examples);
            CHECK(n > 2);
            return;
        }
        CHECK(sgm_last_status() == SGM_ERROR_MEMORY);
    }
    TEST_FAIL("%s: never enough memory", subject->name);
}

static void check_all(const test_subject *subject, int mutations)
{
    check_damage(subject, mutations);
    check_memory(subject);
}

/* --- contents --- */

TEST(hostile_bytes)
{
    test_subject s = {.name = "bytes", .create = create_bytes, .length = 4 + 60, .examples = 10};
    check_all(&s, 500);
}

TEST(hostile_characters)
{
    test_subject s = {.name = "characters", .create = create_characters, .length = 100, .examples = 31};
    check_all(&s, 500);
}

TEST(hostile_csv)
{
    test_subject s = {.name = "csv", .create = create_csv, .examples = 5};
    s.length =
        (size_t)sprintf((char *)s.bytes, "a,b,c\n1,2,3\n\"x \"\"y\"\"\",?, z \r\n,,\n\n4,\"5\n5\",6\n7,8,9");
    check_all(&s, 5000);
}

static size_t put_idx(unsigned char *bytes)
{
    const unsigned char header[] = {0, 0, 0x0B, 3, 0, 0, 0, 10, 0, 0, 0, 2, 0, 0, 0, 3};
    memcpy(bytes, header, sizeof header);
    for (size_t i = 0; i < 120; i++)
        bytes[sizeof header + i] = (unsigned char)(i * 7);
    return sizeof header + 120;
}

TEST(hostile_idx)
{
    test_subject s = {.name = "idx", .create = create_idx, .examples = 10};
    s.length = put_idx(s.bytes);
    check_all(&s, 5000);
}

TEST(hostile_packed_idx)
{
    test_subject s = {.name = "idx.gz", .create = create_packed_idx, .examples = 10};
    unsigned char plain[256];
    z_stream deflater = {.next_in = plain, .avail_in = (uInt)put_idx(plain)};
    deflateInit2(&deflater, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY);
    deflater.next_out = s.bytes;
    deflater.avail_out = sizeof s.bytes;
    deflate(&deflater, Z_FINISH);
    s.length = deflater.total_out;
    deflateEnd(&deflater);
    check_all(&s, 3000);
}

static size_t put_npy(unsigned char *bytes)
{
    const char header[] = "{'descr': '>f4', 'fortran_order': False, 'shape': (12, 3), }     \n";
    memcpy(bytes, "\x93NUMPY\x01\0", 8);
    bytes[8] = sizeof header - 1;
    bytes[9] = 0;
    memcpy(bytes + 10, header, sizeof header - 1);
    for (size_t i = 0; i < 144; i++)
        bytes[10 + sizeof header - 1 + i] = (unsigned char)i;
    return 10 + sizeof header - 1 + 144;
}

TEST(hostile_npy)
{
    test_subject s = {.name = "npy", .create = create_npy, .examples = 12};
    s.length = put_npy(s.bytes);
    check_all(&s, 5000);
}

static void check_npz(const char *options)
{
    test_subject s = {.name = "npz", .create = create_npz, .examples = 12};
    unsigned char npy[512];
    size_t size = put_npy(npy);
    struct archive *archive = archive_write_new();
    archive_write_set_format_zip(archive);
    archive_write_set_options(archive, options);
    archive_write_set_bytes_in_last_block(archive, 1);
    archive_write_open_memory(archive, s.bytes, sizeof s.bytes, &s.length);
    struct archive_entry *entry = archive_entry_new();
    archive_entry_set_pathname(entry, "x.npy");
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, (la_int64_t)size);
    archive_write_header(archive, entry);
    archive_write_data(archive, npy, size);
    archive_entry_free(entry);
    archive_write_close(archive);
    archive_write_free(archive);
    check_all(&s, 2000);
}

TEST(hostile_npz)
{
    check_npz("zip:compression=store");
    check_npz("zip:compression=deflate");
}

static void check_image_file(const char *path, const char *name)
{
    test_subject s = {.name = name, .create = create_images, .examples = 1};
    FILE *file = fopen(path, "rb");
    s.length = fread(s.bytes, 1, sizeof s.bytes, file);
    fclose(file);
    check_all(&s, 1000);
}

TEST(hostile_images)
{
    char path[256];
    strcpy(path, data_path("sound.png"));
    unsigned char pixels[8 * 8 * 3];
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (unsigned char)(i * i);
    image_write_png(path, 8, 8, PNG_COLOR_TYPE_RGB, 8, 0, pixels);
    check_image_file(path, "png");
    image_write_png(path, 8, 8, PNG_COLOR_TYPE_RGB, 8, 1, pixels);
    check_image_file(path, "interlaced png");
    image_write_png(path, 4, 8, PNG_COLOR_TYPE_GRAY, 16, 0, pixels);
    check_image_file(path, "16-bit png");
    image_write_jpeg(path, 16, 16, 3, pixels + 40, 0);
    check_image_file(path, "jpeg");
    image_write_jpeg(path, 16, 16, 3, pixels + 40, 1);
    check_image_file(path, "progressive jpeg");
}

TEST(cut_images_are_errors)
{
    char path[256];
    strcpy(path, data_path("cut.jpg"));
    const unsigned char colour[] = {10, 200, 30};
    test_subject s = {.name = "cut", .create = create_images, .examples = 1};
    for (int kind = 0; kind < 2; kind++) {
        image_write_jpeg(path, 64, 64, 3, colour, kind);
        FILE *file = fopen(path, "rb");
        s.length = fread(s.bytes, 1, sizeof s.bytes, file);
        fclose(file);
        CHECK_INT(read_all(&s, s.bytes, s.length), 1);
        CHECK_INT(read_all(&s, s.bytes, s.length - 40), -1);
        CHECK_CONTAINS(sgm_last_error(), "hostile.bin/1.png: cannot be decoded");
    }
}

TEST(large_images_are_refused)
{
    /* the header of a PNG file of 30000 x 30000 pixels */
    const unsigned char png[] = {0x89, 'P', 'N', 'G',  13,   10, 26, 10,   0,    0, 0, 13, 'I', 'H', 'D',
                                 'R',  0,   0,   0x75, 0x30, 0,  0,  0x75, 0x30, 8, 2, 0,  0,   0};
    test_subject s = {.name = "large", .create = create_images};
    memcpy(s.bytes, png, sizeof png);
    uint32_t sum = (uint32_t)crc32(0, png + 12, 17);
    for (int i = 0; i < 4; i++)
        s.bytes[sizeof png + (size_t)i] = (unsigned char)(sum >> (24 - 8 * i));
    memcpy(s.bytes + sizeof png + 4, "\0\0\0\0IDAT\x35\xaf\x06\x1e", 12);
    largest_request = 0;
    CHECK_INT(read_all(&s, s.bytes, sizeof png + 16), -1);
    CHECK_CONTAINS(sgm_last_error(), "30000 x 30000");
    CHECK(largest_request < 1 << 20);
}

TEST(promises_are_not_believed)
{
    largest_request = 0;
    const unsigned char idx[] = {0, 0, 0x0E, 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4};
    test_subject s = {.name = "promise", .create = create_idx};
    CHECK_INT(read_all(&s, idx, sizeof idx), -1);
    CHECK_CONTAINS(sgm_last_error(), FILE_NAME ": the header promises 4294967295 examples");
    const char header[] = "{'descr': '<f8', 'fortran_order': False, 'shape': (1152921504606846976, 1048576)}";
    unsigned char npy[256] = "\x93NUMPY\x02\0";
    npy[8] = sizeof header - 1;
    memcpy(npy + 12, header, sizeof header - 1);
    s.create = create_npy;
    CHECK_INT(read_all(&s, npy, sizeof npy), -1);
    CHECK_CONTAINS(sgm_last_error(), FILE_NAME ": the header promises 1152921504606846976 examples");
    memset(npy + 8, 0xff, 4);
    CHECK_INT(read_all(&s, npy, sizeof npy), -1);
    CHECK_CONTAINS(sgm_last_error(), FILE_NAME ": an npy header of at most");
    CHECK(largest_request <= (size_t)2 << 20);
}
