/* Damage to files of tensors: whatever bit of a saved file flips, it is found; files without checksums, from
 * elsewhere or from before there were any, are read as they are. */
#include "persistence/bundle.h"
#include "test.h"

#include <sigma/tensor.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *path_of(const char *name)
{
    static char folder[64], path[128];
    if (folder[0] == '\0') {
        strcpy(folder, "/tmp/sigma-checksums-XXXXXX");
        if (mkdtemp(folder) == NULL)
            abort();
    }
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

typedef struct bytes {
    unsigned char data[1 << 14];
    size_t length;
} bytes;

static bytes read_file(const char *path)
{
    bytes all = {.length = 0};
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    all.length = fread(all.data, 1, sizeof all.data, file);
    CHECK(all.length < sizeof all.data);
    fclose(file);
    return all;
}

static void write_file(const char *path, const void *data, size_t length)
{
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(data, 1, length, file) == length);
    fclose(file);
}

/* Thousands of damaged files are written in memory. */
static const char *put_damaged(const void *data, size_t length)
{
    static char path[64];
    static int file = -1;
    if (file < 0)
        file = memfd_create("damaged", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    CHECK(file >= 0 && ftruncate(file, (off_t)length) == 0);
    CHECK(pwrite(file, data, length, 0) == (ssize_t)length);
    return path;
}

static void add(sgm_bundle *bundle, const char *name, sgm_dtype dtype, int64_t rows, int64_t columns)
{
    sgm_shape shape = sgm_shape_of(rows, columns);
    sgm_tensor *tensor = sgm_tensor_create(dtype, &shape);
    CHECK_OK(tensor);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            sgm_tensor_set(tensor, (int64_t[]){i, j},
                           dtype == SGM_BOOL ? (double)((i + j) % 2) : (double)(i * columns + j));
    CHECK_OK(sgm_bundle_add(bundle, name, tensor));
    sgm_tensor_free(tensor);
}

/* All kinds of types, a tensor without elements, texts with quotes. */
static sgm_bundle *make_bundle(void)
{
    sgm_bundle *bundle = sgm_bundle_create();
    add(bundle, "bytes", SGM_UINT8, 1, 3);
    add(bundle, "0-dense.weights", SGM_FLOAT32, 2, 3);
    add(bundle, "doubles", SGM_FLOAT64, 2, 1);
    add(bundle, "truth", SGM_BOOL, 1, 3);
    add(bundle, "none", SGM_FLOAT32, 0, 2);
    CHECK_OK(sgm_bundle_set_text(bundle, "sigma.network", "input(4) + \"dense\""));
    CHECK_OK(sgm_bundle_set_text(bundle, "sigma.state", "{\"version\":1,\"epoch\":17}"));
    return bundle;
}

/* What `b` has under a name of `a` is the same. */
static void check_values(const sgm_bundle *a, const sgm_bundle *b)
{
    for (size_t i = 0; i < sgm_bundle_count(a); i++) {
        const char *name = sgm_bundle_name_at(a, i);
        if (!sgm_bundle_has(b, name))
            continue;
        const sgm_tensor *x = sgm_bundle_get(a, name), *y = sgm_bundle_get(b, name);
        CHECK_INT(sgm_tensor_dtype(x), sgm_tensor_dtype(y));
        CHECK(sgm_shape_equal(sgm_tensor_shape(x), sgm_tensor_shape(y)));
        size_t elements = (size_t)sgm_shape_elements(sgm_tensor_shape(x));
        CHECK(elements == 0 || memcmp(sgm_tensor_const_data(x), sgm_tensor_const_data(y),
                                      elements * sgm_dtype_size(sgm_tensor_dtype(x))) == 0);
    }
    for (size_t i = 0; i < b->text_count; i++) {
        const char *text = sgm_bundle_get_text(a, b->texts[i].key);
        CHECK(text == NULL || strcmp(text, b->texts[i].text) == 0);
    }
}

TEST(every_flipped_bit_of_a_saved_file_is_found)
{
    sgm_bundle *bundle = make_bundle();
    const char *path = path_of("whole.safetensors");
    CHECK_OK(sgm_bundle_save(bundle, path));
    sgm_bundle_free(bundle);
    bytes all = read_file(path);
    for (size_t bit = 0; bit < all.length * 8; bit++) {
        all.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        CHECK_ERROR(sgm_bundle_load(put_damaged(all.data, all.length)), "/proc/self/fd/");
        all.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
}

/* Zeros where a disk lost a sector, a byte that is another one. */
TEST(other_damage_is_found)
{
    sgm_bundle *bundle = make_bundle();
    const char *path = path_of("other.safetensors");
    CHECK_OK(sgm_bundle_save(bundle, path));
    sgm_bundle_free(bundle);
    bytes all = read_file(path);
    for (size_t at = 0; at + 8 <= all.length; at++) {
        bytes damaged = all;
        memset(damaged.data + at, at % 3 == 0 ? 0xff : 0, 8);
        if (memcmp(damaged.data, all.data, all.length) == 0)
            continue;
        CHECK_ERROR(sgm_bundle_load(put_damaged(damaged.data, all.length)), "/proc/self/fd/");
    }
}

TEST(the_texts_of_a_damaged_header_are_not_believed)
{
    sgm_bundle *bundle = make_bundle();
    const char *path = path_of("texts.safetensors");
    CHECK_OK(sgm_bundle_save(bundle, path));
    sgm_bundle_free(bundle);
    bytes all = read_file(path);
    size_t header = 8 + (size_t)all.data[0] + ((size_t)all.data[1] << 8);
    for (size_t bit = 0; bit < header * 8; bit++) {
        all.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        CHECK_ERROR(sgm__bundle_load_texts(put_damaged(all.data, all.length)), "/proc/self/fd/");
        all.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
}

TEST(damage_is_told_with_its_place_and_a_remedy)
{
    sgm_bundle *bundle = make_bundle();
    const char *path = path_of("told.safetensors");
    CHECK_OK(sgm_bundle_save(bundle, path));
    sgm_bundle_free(bundle);
    bytes all = read_file(path);
    all.data[all.length - 1] ^= 1;
    write_file(path, all.data, all.length);
    CHECK_ERROR(sgm_bundle_load(path), "told.safetensors': tensor 'truth': its bytes are damaged");
    CHECK_ERROR(sgm_bundle_load(path), "take another copy of the file");
    all.data[all.length - 1] ^= 1;
    char *epoch = strstr((char *)all.data + 8, "epoch");
    CHECK(epoch != NULL);
    *epoch = 'E';
    write_file(path, all.data, all.length);
    CHECK_ERROR(sgm_bundle_load(path), "told.safetensors': the header is damaged, or another program wrote");
    CHECK_ERROR(sgm_bundle_load(path), "leaves the texts 'sigma.checksum.*' of its metadata out");
}

/* Checksums by Python's zlib.crc32: of 1.5f and -2.0f, and of the header with its length and zeros for its
 * own digits. */
static const char sealed[] = "{\"__metadata__\":{\"sigma.checksum.header\":\"crc32 704edfed\","
                             "\"sigma.checksum.tensors\":\"crc32 ccdf2c3a\"},"
                             "\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";

TEST(checksums_are_those_of_others)
{
    sgm_bundle *bundle = sgm_bundle_create();
    sgm_shape shape = sgm_shape_of(2);
    sgm_tensor *tensor = sgm_tensor_create_from(SGM_FLOAT32, &shape, (float[]){1.5f, -2.0f});
    CHECK_OK(sgm_bundle_add(bundle, "w", tensor));
    CHECK_OK(sgm_bundle_save(bundle, path_of("sealed.safetensors")));
    bytes all = read_file(path_of("sealed.safetensors"));
    size_t length = strlen(sealed);
    CHECK_INT(all.data[0], (length + 7) / 8 * 8);
    CHECK(memcmp(all.data + 8, sealed, length) == 0);
    sgm_tensor_free(tensor);
    sgm_bundle_free(bundle);
}

/* As files from elsewhere are, and those that were saved before there were checksums. */
TEST(a_file_without_checksums_is_read)
{
    static const char header[] = "{\"__metadata__\":{\"sigma.network\":\"input(4)\"},"
                                 "\"w\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}";
    unsigned char file[256];
    uint64_t length = strlen(header);
    memcpy(file, &length, 8);
    memcpy(file + 8, header, length);
    memcpy(file + 8 + length, "\5\7", 2);
    write_file(path_of("old.safetensors"), file, 8 + length + 2);
    sgm_bundle *loaded = sgm_bundle_load(path_of("old.safetensors"));
    CHECK_OK(loaded);
    CHECK(!loaded->verified);
    CHECK_NEAR(sgm_tensor_get(sgm_bundle_get(loaded, "w"), (int64_t[]){1}), 7, 0);
    CHECK_OK(sgm_bundle_save(loaded, path_of("new.safetensors")));
    sgm_bundle *again = sgm_bundle_load(path_of("new.safetensors"));
    CHECK_OK(again);
    CHECK(again->verified);
    CHECK_STR(sgm_bundle_get_text(again, "sigma.network"), "input(4)");
    sgm_bundle_free(again);
    sgm_bundle_free(loaded);
}

/* A file that says it has checksums, but has none that could be compared. */
TEST(made_up_checksums_are_refused)
{
    static const char *const headers[] = {
        "{\"__metadata__\":{\"sigma.checksum.header\":\"crc32 00000000\"}}",
        "{\"__metadata__\":{\"sigma.checksum.tensors\":\"crc32\"}}",
        "{\"__metadata__\":{\"sigma.checksum.header\":\"crc32 0000000\",\"sigma.checksum.tensors\":\"\"}}",
        "{\"__metadata__\":{\"sigma.checksum.header\":\"crc32 ",
        ("{\"__metadata__\": {\"sigma.checksum.tensors\":\"crc32\",\"sigma.checksum.header\":\"crc32 "
         "12345678\"}}"),
        "{\"__metadata__\":{\"sigma.checksum.header\":7,\"sigma.checksum.tensors\":[]}}",
    };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        unsigned char file[256];
        uint64_t length = strlen(headers[i]);
        memcpy(file, &length, 8);
        memcpy(file + 8, headers[i], length);
        write_file(path_of("made.safetensors"), file, 8 + length);
        CHECK_ERROR(sgm_bundle_load(path_of("made.safetensors")), "made.safetensors': ");
    }
    sgm_bundle *bundle = sgm_bundle_create();
    CHECK_ERROR(sgm_bundle_set_text(bundle, "sigma.checksum.header", "x"), "is for the checksums");
    sgm_bundle_free(bundle);
}

/* Headers whose own checksum is right (by Python's zlib.crc32), with lists that are none. */
TEST(lists_of_checksums_must_be_whole)
{
    static const char *const headers[] = {
        "{\"__metadata__\":{\"sigma.checksum.header\":\"crc32 "
        "a0dc8891\",\"sigma.checksum.tensors\":\"crc32\"},\"w\":{\"dtype\":\"U8\",\"shape\":[2],\"data_"
        "offsets\":[0,2]}}",
        "{\"__metadata__\":{\"sigma.checksum.header\":\"crc32 f30f13af\",\"sigma.checksum.tensors\":\"crc32 "
        "0000000x\"},\"w\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}",
    };
    static const char *const messages[] = {"is no list of 1 checksums", "has no checksum number 0"};
    for (size_t i = 0; i < 2; i++) {
        unsigned char file[256];
        uint64_t length = strlen(headers[i]);
        memcpy(file, &length, 8);
        memcpy(file + 8, headers[i], length);
        memcpy(file + 8 + length, "\5\7", 2);
        CHECK_ERROR(sgm_bundle_load(put_damaged(file, 8 + length + 2)), messages[i]);
    }
}

/* A zip archive has checksums of its members, but not of their names, nor of what nothing depends on. */
TEST(flipped_bits_of_an_archive_change_no_value)
{
    size_t refused = 0;
    const char *path = path_of("whole.npz");
    sgm_bundle *bundle = make_bundle();
    CHECK_OK(sgm_bundle_save(bundle, path));
    bytes all = read_file(path);
    for (size_t bit = 0; bit < all.length * 8; bit += 5) {
        all.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        sgm_bundle *loaded = sgm_bundle_load(put_damaged(all.data, all.length));
        if (loaded != NULL)
            check_values(bundle, loaded);
        refused += loaded == NULL;
        sgm_bundle_free(loaded);
        all.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    CHECK(refused > 0);
    sgm_bundle_free(bundle);
}
