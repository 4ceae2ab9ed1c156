#include "base/allocator.h"
#include "base/german.h"
#include "test.h"

#include <sigma/tensor.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *path_of(const char *name)
{
    static char folder[64], path[128];
    if (folder[0] == '\0') {
        strcpy(folder, "/tmp/sigma-bundle-XXXXXX");
        if (mkdtemp(folder) == NULL)
            abort();
    }
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_bytes(const char *path, const void *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(bytes, 1, length, file) == length);
    fclose(file);
}

static size_t read_bytes(const char *path, unsigned char *bytes, size_t maximum)
{
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    size_t length = fread(bytes, 1, maximum, file);
    fclose(file);
    return length;
}

/* A file of this header and data; the header's length is written as it is. */
static const char *make_file(const char *header, const void *data, size_t data_length)
{
    static unsigned char file[1 << 20];
    const char *path = path_of("made.safetensors");
    uint64_t length = strlen(header);
    memcpy(file, &length, 8);
    memcpy(file + 8, header, length);
    if (data_length > 0)
        memcpy(file + 8 + length, data, data_length);
    write_bytes(path, file, 8 + length + data_length);
    return path;
}

static sgm_tensor *iota(sgm_dtype dtype, int64_t rows, int64_t columns)
{
    sgm_shape shape = sgm_shape_of(rows, columns);
    sgm_tensor *tensor = sgm_tensor_create(dtype, &shape);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            sgm_tensor_set(tensor, (int64_t[]){i, j},
                           dtype == SGM_BOOL ? (double)((i + j) % 2) : (double)(i * columns + j));
    return tensor;
}

TEST(all_types_come_back)
{
    sgm_bundle *bundle = sgm_bundle_create();
    for (int i = 0; i < SGM_DTYPE_COUNT; i++) {
        sgm_tensor *tensor = iota((sgm_dtype)i, 3, 5);
        CHECK_OK(sgm_bundle_add(bundle, sgm_dtype_name((sgm_dtype)i), tensor));
        sgm_tensor_free(tensor);
    }
    CHECK_OK(sgm_bundle_set_text(bundle, "epoch", "17"));
    CHECK_OK(sgm_bundle_set_text(bundle, "network", "input(4) + \"dense\"\n\xc3\xa4"));
    CHECK_OK(sgm_bundle_set_text(bundle, "epoch", "18"));
    CHECK_OK(sgm_bundle_save(bundle, path_of("all.safetensors")));
    sgm_bundle *loaded = sgm_bundle_load(path_of("all.safetensors"));
    CHECK_OK(loaded);
    CHECK_INT(sgm_bundle_count(loaded), SGM_DTYPE_COUNT);
    CHECK_STR(sgm_bundle_get_text(loaded, "epoch"), "18");
    CHECK_STR(sgm_bundle_get_text(loaded, "network"), "input(4) + \"dense\"\n\xc3\xa4");
    for (int i = 0; i < SGM_DTYPE_COUNT; i++) {
        sgm_tensor *tensor = sgm_bundle_get(loaded, sgm_dtype_name((sgm_dtype)i));
        CHECK_OK(tensor);
        CHECK_STR(sgm_bundle_name_at(loaded, (size_t)i), sgm_dtype_name((sgm_dtype)i));
        CHECK_INT(sgm_tensor_dtype(tensor), i);
        CHECK_INT(sgm_tensor_shape(tensor)->rank, 2);
        CHECK_NEAR(sgm_tensor_get(tensor, (int64_t[]){2, 4}), i == SGM_BOOL ? 0 : 14, 0);
        CHECK_NEAR(sgm_tensor_get(tensor, (int64_t[]){1, 2}), i == SGM_BOOL ? 1 : 7, 0);
    }
    sgm_bundle_free(loaded);
    sgm_bundle_free(bundle);
}

TEST(scalars_empty_tensors_and_views_come_back)
{
    sgm_bundle *bundle = sgm_bundle_create();
    sgm_shape scalar = sgm_scalar_shape(), empty = sgm_shape_of(0, 7);
    sgm_tensor *number = sgm_tensor_create_from(SGM_INT64, &scalar, &(int64_t){1234567890123});
    sgm_tensor *nothing = sgm_tensor_create(SGM_FLOAT32, &empty);
    sgm_tensor *table = iota(SGM_FLOAT32, 2, 3),
               *transposed = sgm_tensor_permute(table, (const int32_t[]){1, 0});
    CHECK_OK(sgm_bundle_add(bundle, "number", number));
    CHECK_OK(sgm_bundle_add(bundle, "nothing", nothing));
    CHECK_OK(sgm_bundle_add(bundle, "transposed", transposed));
    CHECK_OK(sgm_bundle_save(bundle, path_of("views.safetensors")));
    sgm_bundle *loaded = sgm_bundle_load(path_of("views.safetensors"));
    CHECK_OK(loaded);
    CHECK_NEAR(sgm_tensor_get(sgm_bundle_get(loaded, "number"), NULL), 1234567890123, 0);
    CHECK_INT(sgm_tensor_shape(sgm_bundle_get(loaded, "nothing"))->dims[1], 7);
    CHECK_NEAR(sgm_tensor_get(sgm_bundle_get(loaded, "transposed"), (int64_t[]){2, 1}), 5, 0);
    CHECK_NEAR(sgm_tensor_get(sgm_bundle_get(loaded, "transposed"), (int64_t[]){1, 0}), 1, 0);
    sgm_bundle_free(loaded);
    sgm_bundle_free(bundle);
    sgm_tensor_free(transposed);
    sgm_tensor_free(table);
    sgm_tensor_free(nothing);
    sgm_tensor_free(number);
}

TEST(a_bundle_without_anything_comes_back)
{
    sgm_bundle *bundle = sgm_bundle_create();
    CHECK_OK(sgm_bundle_save(bundle, path_of("empty.safetensors")));
    sgm_bundle_free(bundle);
    sgm_bundle *loaded = sgm_bundle_load(path_of("empty.safetensors"));
    CHECK_OK(loaded);
    CHECK_INT(sgm_bundle_count(loaded), 0);
    sgm_bundle_free(loaded);
}

/* As the format's page describes it: a header of 64 bytes, then 1.5 and -2. */
static const unsigned char by_hand[8 + 64 + 8] =
    "\x40\0\0\0\0\0\0\0"
    "{\"w\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]}}        "
    "\0\0\xc0\x3f\0\0\0\xc0";

TEST(the_bytes_are_those_of_the_format)
{
    write_bytes(path_of("hand.safetensors"), by_hand, sizeof by_hand);
    sgm_bundle *loaded = sgm_bundle_load(path_of("hand.safetensors"));
    CHECK_OK(loaded);
    CHECK_NEAR(sgm_tensor_get(sgm_bundle_get(loaded, "w"), (int64_t[]){0, 0}), 1.5, 0);
    CHECK_NEAR(sgm_tensor_get(sgm_bundle_get(loaded, "w"), (int64_t[]){1, 0}), -2, 0);
    CHECK_OK(sgm_bundle_save(loaded, path_of("again.safetensors")));
    unsigned char again[400];
    size_t length = read_bytes(path_of("again.safetensors"), again, sizeof again - 1);
    sgm_bundle_free(loaded);
    /* ours has metadata in front, and pads the header to a multiple of 8 only */
    CHECK_INT(again[0] % 8, 0);
    CHECK_INT(length, 8u + again[0] + 8u);
    CHECK(memcmp(again + 8, "{\"__metadata__\":{\"", 18) == 0);
    again[length] = '\0';
    CHECK(strstr((char *)again + 8, "},\"w\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]}}") !=
          NULL);
    CHECK(memcmp(again + length - 8, by_hand + 72, 8) == 0);
}

/* Zeros, subnormal numbers, the smallest normal one, the largest, infinities and a NaN with its payload. */
static const uint16_t halves[12] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x3c00,
                                    0xbc01, 0x3555, 0x7bff, 0x7c00, 0xfc00, 0x7e01};
static const uint32_t as_floats[12] = {0x00000000, 0x80000000, 0x33800000, 0xb87fc000,
                                       0x38800000, 0x3f800000, 0xbf802000, 0x3eaaa000,
                                       0x477fe000, 0x7f800000, 0xff800000, 0x7fc02000};

TEST(float16_is_read_as_float32_to_the_bit)
{
    sgm_bundle *loaded =
        sgm_bundle_load(make_file("{\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[24,25]},"
                                  "\"h\":{\"dtype\":\"F16\",\"shape\":[3,4],\"data_offsets\":[0,24]}}",
                                  memcpy((char[25]){[24] = 9}, halves, sizeof halves), 25));
    CHECK_OK(loaded);
    const sgm_tensor *read = sgm_bundle_get(loaded, "h");
    sgm_shape shape = sgm_shape_of(3, 4);
    CHECK_INT(sgm_tensor_dtype(read), SGM_FLOAT32);
    CHECK(sgm_shape_equal(sgm_tensor_shape(read), &shape));
    CHECK(memcmp(sgm_tensor_const_data(read), as_floats, sizeof as_floats) == 0);
    CHECK_NEAR(sgm_tensor_get(sgm_bundle_get(loaded, "b"), (int64_t[]){0}), 9, 0);
    sgm_bundle_free(loaded);
}

/* The bits of the only tensor of a file, which is float16. */
static void read_halves(const char *path, uint16_t *bits, size_t count)
{
    static unsigned char file[1 << 18];
    size_t length = read_bytes(path, file, sizeof file);
    CHECK(strstr((const char *)file + 8, "\"dtype\":\"F16\"") != NULL);
    memcpy(bits, file + length - count * sizeof *bits, count * sizeof *bits);
}

TEST(float16_is_written_as_it_was_read)
{
    static uint16_t all[1 << 16], written[1 << 16];
    for (size_t i = 0; i < 1 << 16; i++)
        all[i] = (uint16_t)i;
    sgm_bundle *loaded = sgm_bundle_load(make_file(
        "{\"h\":{\"dtype\":\"F16\",\"shape\":[256,256],\"data_offsets\":[0,131072]}}", all, sizeof all));
    CHECK_OK(loaded);
    CHECK(sgm_bundle_is_half(loaded, "h"));
    const char *path = path_of("halves.safetensors");
    CHECK_OK(sgm_bundle_save(loaded, path));
    read_halves(path, written, 1 << 16);
    CHECK(memcmp(all, written, sizeof all) == 0);
    sgm_bundle_free(loaded);
}

TEST(float32_is_rounded_to_the_nearest_float16)
{
    const float values[] = {0x1.002p0f, 0x1.006p0f, 65519,        65520,   1e30f,      -0x1.8p-25f,
                            0x1.8p-25f, 0x1p-25f,   0x1.ffep-15f, -1e-30f, 0x1.554p-2f};
    const uint16_t bits[] = {0x3c00, 0x3c02, 0x7bff, 0x7c00, 0x7c00, 0x8001,
                             0x0001, 0x0000, 0x0400, 0x8000, 0x3555};
    sgm_shape shape = sgm_shape_of(11), scalar = sgm_scalar_shape();
    sgm_tensor *tensor = sgm_tensor_create_from(SGM_FLOAT32, &shape, values);
    sgm_tensor *whole = sgm_tensor_create(SGM_INT64, &scalar);
    sgm_bundle *bundle = sgm_bundle_create();
    uint16_t written[11];
    CHECK_OK(sgm_bundle_add(bundle, "h", tensor));
    CHECK(!sgm_bundle_is_half(bundle, "h"));
    CHECK_OK(sgm_bundle_set_half(bundle, "h", true));
    CHECK_OK(sgm_bundle_save(bundle, path_of("rounded.safetensors")));
    read_halves(path_of("rounded.safetensors"), written, 11);
    for (int i = 0; i < 11; i++)
        CHECK_INT(written[i], bits[i]);
    CHECK_OK(sgm_bundle_add(bundle, "n", whole));
    CHECK_ERROR(sgm_bundle_set_half(bundle, "n", true), "'n' is int64; float16 in a file is for tensors of");
    CHECK_ERROR(sgm_bundle_set_half(bundle, "x", true), "no tensor 'x'");
    sgm_bundle_free(bundle);
    sgm_tensor_free(tensor);
    sgm_tensor_free(whole);
}

TEST(tensors_of_a_file_are_read_one_by_one)
{
    sgm_tensor *numbers[] = {iota(SGM_FLOAT32, 2, 3), iota(SGM_FLOAT64, 4, 1)};
    sgm_bundle *bundle = sgm_bundle_create();
    CHECK_OK(sgm_bundle_add(bundle, "a", numbers[0]));
    CHECK_OK(sgm_bundle_add(bundle, "b", numbers[1]));
    CHECK_OK(sgm_bundle_set_half(bundle, "a", true));
    const char *path = path_of("two.safetensors");
    CHECK_OK(sgm_bundle_save(bundle, path));
    sgm_tensor_file *file = sgm_tensor_file_open(path);
    CHECK_OK(file);
    CHECK_INT(sgm_tensor_file_count(file), 2);
    sgm_tensor_entry entry;
    CHECK(sgm_tensor_file_entry(file, 0, &entry) && entry.half && entry.dtype == SGM_FLOAT32);
    CHECK_STR(entry.name, "a");
    CHECK_INT(entry.shape.dims[1], 3);
    CHECK(sgm_tensor_file_entry(file, 1, &entry) && !entry.half);
    CHECK(!sgm_tensor_file_entry(file, 2, &entry));
    for (int i = 1; i >= 0; i--) {
        sgm_tensor *read = sgm_tensor_file_read(file, (size_t)i);
        CHECK_OK(read);
        size_t bytes = (size_t)sgm_shape_elements(sgm_tensor_shape(read)) * (i == 0 ? 4 : 8);
        CHECK(memcmp(sgm_tensor_const_data(read), sgm_tensor_const_data(numbers[i]), bytes) == 0);
        sgm_tensor_free(read);
        sgm_tensor_free(numbers[i]);
    }
    CHECK_ERROR(sgm_tensor_file_read(file, 2) == NULL ? sgm_last_status() : SGM_OK,
                "no tensor 2 in the file");
    sgm_tensor_file_close(file);
    sgm_bundle_free(bundle);
}

TEST(a_damaged_tensor_is_found_when_it_is_read)
{
    sgm_tensor_file *file = sgm_tensor_file_open(
        make_file("{\"w\":{\"dtype\":\"BOOL\",\"shape\":[2],\"data_offsets\":[0,2]}}", (char[2]){1, 2}, 2));
    CHECK_OK(file);
    CHECK(sgm_tensor_file_read(file, 0) == NULL);
    CHECK(strstr(sgm_last_error(), "tensor 'w': element 1 is 2") != NULL);
    sgm_tensor_file_close(file);
    CHECK(sgm_tensor_file_open(make_file("{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}",
                                         (char[4]){0}, 4)) == NULL);
    CHECK(strstr(sgm_last_error(), "tensor 'w': its shape (2,) of float32 does not take the 4 bytes") !=
          NULL);
    CHECK(sgm_tensor_file_open(path_of("nothing.safetensors")) == NULL);
}

/* numpy.savez(h=...) of the first six as (2, 3). */
static const unsigned char half_archive[] = {
    0x50, 0x4b, 0x03, 0x04, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x21, 0x00, 0x5f, 0x54, 0x60,
    0xe0, 0x8c, 0x00, 0x00, 0x00, 0x8c, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x68, 0x2e, 0x6e, 0x70,
    0x79, 0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 0x01, 0x00, 0x76, 0x00, 0x7b, 0x27, 0x64, 0x65, 0x73, 0x63,
    0x72, 0x27, 0x3a, 0x20, 0x27, 0x3c, 0x66, 0x32, 0x27, 0x2c, 0x20, 0x27, 0x66, 0x6f, 0x72, 0x74, 0x72,
    0x61, 0x6e, 0x5f, 0x6f, 0x72, 0x64, 0x65, 0x72, 0x27, 0x3a, 0x20, 0x46, 0x61, 0x6c, 0x73, 0x65, 0x2c,
    0x20, 0x27, 0x73, 0x68, 0x61, 0x70, 0x65, 0x27, 0x3a, 0x20, 0x28, 0x32, 0x2c, 0x20, 0x33, 0x29, 0x2c,
    0x20, 0x7d, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20,
    0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20,
    0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20,
    0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x0a, 0x00, 0x00, 0x00, 0x80, 0x01, 0x00, 0xff,
    0x83, 0x00, 0x04, 0x00, 0x3c, 0x50, 0x4b, 0x01, 0x02, 0x14, 0x03, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x21, 0x00, 0x5f, 0x54, 0x60, 0xe0, 0x8c, 0x00, 0x00, 0x00, 0x8c, 0x00, 0x00, 0x00, 0x05,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80, 0x01, 0x00, 0x00, 0x00, 0x00,
    0x68, 0x2e, 0x6e, 0x70, 0x79, 0x50, 0x4b, 0x05, 0x06, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x01, 0x00,
    0x33, 0x00, 0x00, 0x00, 0xaf, 0x00, 0x00, 0x00, 0x00, 0x00,
};

TEST(float16_of_numpy_is_read_as_float32_to_the_bit)
{
    write_bytes(path_of("half.npz"), half_archive, sizeof half_archive);
    sgm_bundle *loaded = sgm_bundle_load(path_of("half.npz"));
    CHECK_OK(loaded);
    const sgm_tensor *read = sgm_bundle_get(loaded, "h");
    sgm_shape shape = sgm_shape_of(2, 3);
    CHECK_INT(sgm_tensor_dtype(read), SGM_FLOAT32);
    CHECK(sgm_shape_equal(sgm_tensor_shape(read), &shape));
    CHECK(memcmp(sgm_tensor_const_data(read), as_floats, 6 * sizeof *as_floats) == 0);
    sgm_bundle_free(loaded);
}

TEST(tensors_are_aligned_whatever_their_order)
{
    sgm_bundle *bundle = sgm_bundle_create();
    sgm_tensor *bytes = iota(SGM_UINT8, 1, 3), *doubles = iota(SGM_FLOAT64, 1, 1);
    CHECK_OK(sgm_bundle_add(bundle, "bytes", bytes));
    CHECK_OK(sgm_bundle_add(bundle, "doubles", doubles));
    CHECK_OK(sgm_bundle_save(bundle, path_of("aligned.safetensors")));
    unsigned char file[400] = {0};
    size_t length = read_bytes(path_of("aligned.safetensors"), file, sizeof file - 1);
    CHECK_INT(length, 8u + file[0] + 11u);
    CHECK(strstr((char *)file + 8, "\"bytes\":{\"dtype\":\"U8\",\"shape\":[1,3],\"data_offsets\":[8,11]}") !=
          NULL);
    CHECK(strstr((char *)file + 8,
                 "\"doubles\":{\"dtype\":\"F64\",\"shape\":[1,1],\"data_offsets\":[0,8]}") != NULL);
    sgm_tensor_free(bytes);
    sgm_tensor_free(doubles);
    sgm_bundle_free(bundle);
}

TEST(a_file_cut_off_anywhere_is_refused)
{
    for (size_t length = 0; length < sizeof by_hand; length++) {
        write_bytes(path_of("cut.safetensors"), by_hand, length);
        CHECK_ERROR(sgm_bundle_load(path_of("cut.safetensors")), "cut.safetensors': ");
    }
    unsigned char longer[sizeof by_hand + 1] = {0};
    memcpy(longer, by_hand, sizeof by_hand);
    write_bytes(path_of("long.safetensors"), longer, sizeof longer);
    CHECK_ERROR(sgm_bundle_load(path_of("long.safetensors")),
                "the tensors take 8 bytes of the data, but it has 9");
}

/* Without checksums, only another letter in the tensor's name, byte 10, can go unnoticed. */
TEST(flipped_bits_in_the_header_are_refused)
{
    int read = 0;
    for (size_t bit = 0; bit < 72 * 8; bit++) {
        unsigned char copy[sizeof by_hand];
        memcpy(copy, by_hand, sizeof copy);
        copy[bit / 8] ^= (unsigned char)(1u << bit % 8);
        write_bytes(path_of("flip.safetensors"), copy, sizeof copy);
        if (bit / 8 != 10 || copy[10] >= 0x80) {
            CHECK_ERROR(sgm_bundle_load(path_of("flip.safetensors")), "flip.safetensors': ");
            continue;
        }
        sgm_bundle *loaded = sgm_bundle_load(path_of("flip.safetensors"));
        CHECK_OK(loaded);
        CHECK_INT(sgm_bundle_count(loaded), 1);
        CHECK_INT(sgm_bundle_name_at(loaded, 0)[0], copy[10]);
        CHECK_NEAR(sgm_tensor_get(sgm_bundle_get(loaded, sgm_bundle_name_at(loaded, 0)), (int64_t[]){1, 0}),
                   -2, 0);
        sgm_bundle_free(loaded);
        read++;
    }
    CHECK_INT(read, 7);
}

/* The bytes of a tensor are those of its shape, neither more nor fewer: more would be written behind it. */
TEST(a_tensor_is_given_the_bytes_of_its_shape)
{
    CHECK_ERROR(sgm_bundle_load(make_file("{\"w\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,4]}}",
                                          "\1\2\3\4", 4)),
                "its shape (3,) of uint8 does not take the 4 bytes that it is given");
    CHECK_ERROR(sgm_bundle_load(make_file("{\"w\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[0,4]}}",
                                          "\1\2\3\4", 4)),
                "its shape (5,) of uint8 does not take the 4 bytes that it is given");
}

TEST(hostile_headers_are_refused_with_the_reason)
{
    struct {
        const char *header, *message;
    } cases[] = {
        {"[]", "byte 8: the header must begin with '{'"},
        {"{\"w\":", "made.safetensors': byte 13"},
        {"{} x", "byte 1"},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"w\":{}}", "duplicate"},
        {"{\"w\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,4]}}",
         "its shape (1,) of float16 does not take the 4 bytes"},
        {"{\"w\":{\"dtype\":\"U16\",\"shape\":[2],\"data_offsets\":[0,4]}}", "its type is U16"},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", "at bytes -4 to 0"},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", "at bytes 4 to 0"},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
         "at bytes 4 to 8 of the data, which has 4"},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}",
         "its shape (2,) of float32 does not take"},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", "dimension 0"},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}", "dimension 0"},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,4]}}",
         "does not take"},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[4611686018427387905],\"data_offsets\":[0,4]}}",
         "does not take"},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999],\"data_offsets\":[0,4]}}",
         "made.safetensors"},
        {"{\"w\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,4],\"data_offsets\":[0,4]}}", "9 dimensions"},
        {"{\"w\":{\"dtype\":\"U8\",\"shape\":[4]}}", "expected exactly"},
        {"{\"w\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4],\"x\":1}}", "expected exactly"},
        {"{\"w\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0]}}", "not two whole numbers"},
        {"{\"w\":{\"dtype\":8,\"shape\":[4],\"data_offsets\":[0,4]}}", "'dtype' is missing"},
        {"{\"w\":{\"dtype\":\"U8\",\"shape\":4,\"data_offsets\":[0,4]}}", "'shape' is missing"},
        {"{\"w\":[1,2,3]}", "expected exactly"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]}}",
         "tensor 'b': it begins at byte 2 of the data, but the one before it ends at 3"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]}}",
         "which leaves a gap at 1"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
         "take 1 bytes of the data, but it has 4"},
        {"{}", "take 0 bytes of the data, but it has 4"},
        {"{\"__metadata__\":{\"a\":1}}", "'a' in '__metadata__' is not text"},
        {"{\"__metadata__\":[]}", "'__metadata__' is not an object"},
        {"{\"w\\u0000\":1}", "made.safetensors"},
        {"{\"m\":{\"dtype\":\"BOOL\",\"shape\":[4],\"data_offsets\":[0,4]}}", "tensor 'm': element 2 is 7"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK_ERROR(sgm_bundle_load(make_file(cases[i].header, "\0\1\7\1", 4)), cases[i].message);
}

TEST(headers_that_are_too_short_are_refused)
{
    unsigned char file[10] = {0};
    for (size_t length = 0; length < 2; length++) {
        file[0] = (unsigned char)length;
        write_bytes(path_of("short.safetensors"), file, 8 + length);
        CHECK_ERROR(sgm_bundle_load(path_of("short.safetensors")),
                    "it is no safetensors file: its first 8 bytes give no length of a header");
    }
    for (size_t length = 8; length < 72; length++) { /* before memory for the header is taken */
        write_bytes(path_of("short.safetensors"), by_hand, length);
        CHECK_ERROR(
            sgm_bundle_load(path_of("short.safetensors")),
            "it is cut off, or no safetensors file: its first 8 bytes give a header of 64 bytes, but");
    }
    CHECK_ERROR(sgm_bundle_load(make_file("{\"m\":{\"dtype\":\"BOOL\",\"shape\":[2],\"data_offsets\":[0,2]}}",
                                          "\1\2", 2)),
                "tensor 'm': element 1 is 2");
}

TEST(files_of_other_programs_are_named)
{
    static const struct {
        const char *begin, *what;
    } files[] = {
        {"GGUF\3\1\1\1\1\1", "foreign': expected safetensors or .npz, it is a GGUF file: convert"},
        {"\x80\x02}q\1X\1\1\1\1", "it is a file of torch.save (or another pickle): save model.state_dict()"},
        {"\x08\x07\x12\x07pytorch", "it is perhaps a model of ONNX: sgm_onnx_load"},
        {"\x93NUMPY\1\1\1\1", "it is one array of numpy.save"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        write_bytes(path_of("foreign"), files[i].begin, strlen(files[i].begin));
        CHECK_ERROR(sgm_bundle_load(path_of("foreign")), files[i].what);
    }
}

/* As PyTorch 2 writes them: a zip that asks for version 0 of zip, with lengths behind the data. */
TEST(files_of_torch_save_are_named)
{
    static const char file[] = "PK\3\4\0\0\10\10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\12\0\0\0m/data.pkl"
                               "\200\2}q\0.PK\7\10\0\0\0\0\5\0\0\0\5\0\0\0";
    write_bytes(path_of("m.pt"), file, sizeof file - 1);
    CHECK_ERROR(sgm_bundle_load(path_of("m.pt")),
                "m.pt': expected safetensors or .npz, it is a file of torch.save: "
                "save model.state_dict() with safetensors.torch.save_file");
}

/* Such a file may be a thousandth of what it unpacks to; this one is only said to be that large. */
TEST(what_an_archive_unpacks_to_has_a_limit)
{
    static unsigned char file[1 << 20];
    sgm_shape shape = sgm_shape_of(0, 300000000);
    sgm_tensor *pad = iota(SGM_UINT8, 1000, 300), *empty = sgm_tensor_create(SGM_UINT8, &shape);
    sgm_bundle *bundle = sgm_bundle_create();
    CHECK_OK(sgm_bundle_add(bundle, "a", pad));
    CHECK_OK(sgm_bundle_add(bundle, "b", empty));
    CHECK_OK(sgm_bundle_save(bundle, path_of("bomb.npz")));
    size_t length = read_bytes(path_of("bomb.npz"), file, sizeof file);
    unsigned char *at = memmem(file, length, "(0, 300000000)", 14);
    CHECK(at != NULL);
    if (at != NULL)
        at[1] = '1';
    write_bytes(path_of("bomb.npz"), file, length);
    CHECK_ERROR(sgm_bundle_load(path_of("bomb.npz")),
                "bomb.npz': with 'b' its arrays unpack to more than 268435456 bytes");
    sgm_bundle_free(bundle);
    sgm_tensor_free(pad);
    sgm_tensor_free(empty);
}

/* A zip archive, as NumPy writes it, with one member "größe.npy" of the numbers 1.5 and -2. */
static const unsigned char named_archive[] =
    "PK\3\4\24\0\0\10\0\0\0\0!\0\326CK\5\210\0\0\0\210\0\0\0\13\0\0\0gr\303\266\303\237e.npy\223NUMPY\1\0"
    "v\0{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }                                        "
    "                    \12\0\0\300\77\0\0\0\300PK\1\2\24\3\24\0\0\10\0\0\0\0!\0\326CK\5\210\0\0\0\210\0"
    "\0\0\13\0\0\0\0\0\0\0\0\0\0\0\200\1\0\0\0\0gr\303\266\303\237e.npyPK\5\6\0\0\0\0\1\0\1\0009\0\0\0"
    "\261\0\0\0\0\0";
#define SIZE                                                                                                 \
    "gr\xc3\xb6\xc3\x9f"                                                                                     \
    "e"

static void check_names(void)
{
    write_bytes(path_of("numpy.npz"), named_archive, sizeof named_archive - 1);
    sgm_bundle *loaded = sgm_bundle_load(path_of("numpy.npz"));
    const char *key = "\xe9\x8d\xb5";
    CHECK(loaded != NULL);
    CHECK_STR(sgm_bundle_name_at(loaded, 0), SIZE);
    CHECK_OK(sgm_bundle_set_text(loaded, key, "text"));
    CHECK_OK(sgm_bundle_save(loaded, path_of("own.npz")));
    sgm_bundle_free(loaded);
    unsigned char bytes[1024];
    size_t length = read_bytes(path_of("own.npz"), bytes, sizeof bytes);
    CHECK(length > 64 && bytes[7] == 8); /* general purpose bit 11: names are UTF-8, as NumPy wants to know */
    CHECK_INT(memcmp(bytes + 30, SIZE ".npy", strlen(SIZE ".npy")), 0);
    loaded = sgm_bundle_load(path_of("own.npz"));
    CHECK(loaded != NULL);
    CHECK_STR(sgm_bundle_name_at(loaded, 0), SIZE);
    CHECK_NEAR(sgm_tensor_get(sgm_bundle_get(loaded, SIZE), (int64_t[]){1}), -2, 0);
    CHECK_STR(sgm_bundle_get_text(loaded, key), "text");
    sgm_bundle_free(loaded);
}

TEST(names_in_archives_are_utf8)
{
    check_names();
}

TEST(names_in_archives_are_utf8_whatever_the_locale)
{
    if (!speak_german())
        SKIP("no locale can be made here");
    check_names();
    speak_c();
}

/* A zip archive, as NumPy writes it, with one member "__text__/note.npy" of the bytes 'a', 0, 'b'. */
static const unsigned char text_with_zero[] =
    "PK\3\4\24\0\0\0\0\0\0\0!\0F\33\332\361\203\0\0\0\203\0\0\0\21\0\0\0__text__/note.npy\223NUMPY\1\0v\0"
    "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }                                           "
    "                 \12a\0bPK\1\2\24\3\24\0\0\0\0\0\0\0!\0F\33\332\361\203\0\0\0\203\0\0\0\21\0\0\0\0\0"
    "\0\0\0\0\0\0\200\1\0\0\0\0__text__/note.npyPK\5\6\0\0\0\0\1\0\1\0\77\0\0\000\262\0\0\0\0\0";

TEST(texts_with_a_zero_byte_are_refused)
{
    write_bytes(path_of("zero.npz"), text_with_zero, sizeof text_with_zero - 1);
    CHECK_ERROR(sgm_bundle_load(path_of("zero.npz")), "zero.npz': '__text__/note' has a 0 byte at 1");
}

TEST(what_is_saved_in_an_archive_comes_back)
{
    static char name[65532]; /* the longest: zip counts the bytes of "NAME.npy" in 16 bits */
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    sgm_bundle *bundle = sgm_bundle_create();
    sgm_tensor *tensor = iota(SGM_UINT8, 1, 3);
    CHECK_OK(sgm_bundle_add(bundle, name, tensor));
    CHECK_OK(sgm_bundle_save(bundle, path_of("long.npz")));
    sgm_bundle *loaded = sgm_bundle_load(path_of("long.npz"));
    CHECK(loaded != NULL);
    CHECK_STR(sgm_bundle_name_at(loaded, 0), name);
    sgm_bundle_free(loaded);
    /* it would come back as a text */
    CHECK_OK(sgm_bundle_add(bundle, "__text__/n", tensor));
    CHECK_ERROR(sgm_bundle_save(bundle, path_of("text.npz")), "'__text__/n' is a tensor, but names");
    CHECK(access(path_of("text.npz"), F_OK) != 0);
    sgm_tensor_free(tensor);
    sgm_bundle_free(bundle);
}

TEST(names_too_long_for_an_archive_are_refused)
{
    static char name[70000];
    memset(name, 'n', sizeof name - 1);
    sgm_tensor *tensor = iota(SGM_FLOAT32, 1, 3);
    for (size_t length = 65532; length < sizeof name; length += 4000) {
        name[length] = '\0';
        sgm_bundle *bundle = sgm_bundle_create();
        CHECK_OK(sgm_bundle_add(bundle, name, tensor));
        CHECK_ERROR(sgm_bundle_save(bundle, path_of("long.npz")),
                    "a name of at most 65531 bytes was expected");
        CHECK_OK(sgm_bundle_save(bundle, path_of("long.safetensors")));
        sgm_bundle_free(bundle);
        name[length] = 'n';
    }
    sgm_tensor_free(tensor);
}

TEST(enormous_lengths_and_nesting_are_refused)
{
    unsigned char huge[16] = {255, 255, 255, 255, 255, 255, 255, 255, '{', '}'};
    write_bytes(path_of("huge.safetensors"), huge, sizeof huge);
    CHECK_ERROR(sgm_bundle_load(path_of("huge.safetensors")),
                "it is no safetensors file: its first 8 bytes give no length of a header, from 2 to");
    memset(huge, 0, 8);
    huge[3] = 1; /* 16 MiB, allowed, but not there */
    write_bytes(path_of("huge.safetensors"), huge, sizeof huge);
    CHECK_ERROR(sgm_bundle_load(path_of("huge.safetensors")),
                "give a header of 16777216 bytes, but it has 16");
    static char nested[100010] = "{\"w\":";
    memset(nested + 5, '[', 100000);
    CHECK_ERROR(sgm_bundle_load(make_file(nested, NULL, 0)), "made.safetensors': byte ");
}

TEST(names_are_unique_and_errors_name_the_nearest)
{
    sgm_bundle *bundle = sgm_bundle_create();
    sgm_tensor *tensor = iota(SGM_FLOAT32, 1, 1);
    CHECK_OK(sgm_bundle_add(bundle, "2-dense.weights", tensor));
    CHECK_ERROR(sgm_bundle_add(bundle, "2-dense.weights", tensor), "has a tensor '2-dense.weights' already");
    CHECK_ERROR(sgm_bundle_add(bundle, "__metadata__", tensor), "cannot be named '__metadata__'");
    CHECK_ERROR(sgm_bundle_add(bundle, "", tensor), "cannot be named ''");
    CHECK_ERROR(sgm_bundle_add(bundle, "\xff", tensor), "UTF-8");
    CHECK_ERROR(sgm_bundle_set_text(bundle, "a", "\xff"), "UTF-8");
    CHECK_ERROR(sgm_bundle_get(bundle, "2-dense.weight"), "did you mean '2-dense.weights'?");
    CHECK_ERROR((const void *)sgm_bundle_get_text(bundle, "epoch"), "no text 'epoch'");
    CHECK(sgm_bundle_has(bundle, "2-dense.weights") && !sgm_bundle_has(bundle, "x"));
    sgm_tensor_free(tensor);
    sgm_bundle_free(bundle);
}

TEST(a_failed_write_leaves_the_old_file)
{
    sgm_bundle *bundle = sgm_bundle_create();
    sgm_tensor *tensor = iota(SGM_FLOAT64, 100, 100);
    CHECK_OK(sgm_bundle_save(bundle, path_of("old.safetensors")));
    CHECK_OK(sgm_bundle_add(bundle, "w", tensor));
    struct rlimit old, small = {1000, 1000};
    CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
    sgm_status status = sgm_bundle_save(bundle, path_of("old.safetensors"));
    CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
    CHECK_INT(status, SGM_ERROR_FILE);
    CHECK(strstr(sgm_last_error(), "old.safetensors") != NULL);
    sgm_bundle *loaded = sgm_bundle_load(path_of("old.safetensors"));
    CHECK_OK(loaded);
    CHECK_INT(sgm_bundle_count(loaded), 0);
    CHECK(access(path_of("old.safetensors.tmp"), F_OK) != 0);
    CHECK_ERROR(sgm_bundle_save(bundle, path_of("no/such/folder.safetensors")), "no/such/folder");
    CHECK_ERROR(sgm_bundle_load(path_of("absent.safetensors")), "absent.safetensors");
    CHECK_ERROR(sgm_bundle_load("/tmp"), "'/tmp': it is a folder, expected a file");
    sgm_bundle_free(loaded);
    sgm_bundle_free(bundle);
    sgm_tensor_free(tensor);
}

TEST(numpy_files_are_as_numpy_writes_them)
{
    sgm_tensor *tensor = iota(SGM_FLOAT32, 2, 3);
    CHECK_OK(sgm_npy_save(path_of("a.npy"), tensor));
    unsigned char file[300];
    CHECK_INT(read_bytes(path_of("a.npy"), file, sizeof file), 128 + 24);
    char expected[129];
    snprintf(expected, sizeof expected, "%-117s\n",
             "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }");
    CHECK(memcmp(file, "\x93NUMPY\1\0\x76\0", 10) == 0);
    CHECK(memcmp(file + 10, expected, 118) == 0);
    float last;
    memcpy(&last, file + 128 + 20, 4);
    CHECK_NEAR(last, 5, 0);
    sgm_tensor *small = sgm_tensor_cast(tensor, SGM_BFLOAT16);
    CHECK_ERROR(sgm_npy_save(path_of("b.npy"), small), "no type for bfloat16");
    sgm_tensor_free(small);
    sgm_tensor_free(tensor);
}

/* --- every allocation may fail --- */

TEST(failed_allocations_leave_nothing_behind)
{
    static const char header[] = "{\"__metadata__\":{\"a\":\"b\",\"c\":\"d\"},"
                                 "\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[3,4]},"
                                 "\"v\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}";
    char path[128];
    snprintf(path, sizeof path, "%s", make_file(header, "\1\2\3\4", 4));
    bool done = false;
    for (long limit = 0; !done; limit++) {
        CHECK(limit < 200);
        allocator_start(limit + 1);
        sgm_bundle *bundle = sgm_bundle_load(path);
        done = bundle != NULL && sgm_bundle_set_text(bundle, "e", "f") == SGM_OK &&
               sgm_bundle_save(bundle, path_of("saved.safetensors")) == SGM_OK;
        sgm_bundle_free(bundle);
        allocator_stop();
        CHECK_INT(allocator_live, 0);
    }
}
