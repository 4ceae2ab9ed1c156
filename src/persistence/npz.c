/* Reads and writes bundles as .npz files: zip archives of .npy files, as numpy.savez writes and numpy.load
 * reads them.
 *
 * sgm_bundle_save comes here for paths that end in .npz, sgm_bundle_load for files that begin like a zip
 * archive. libarchive does the zip format, uncompressed for writing, compressed or not for reading. Files may
 * come from anywhere: before memory is taken for an array, its size is checked against the file's, so that a
 * small file cannot claim terabytes; and the sum of all arrays is bounded, so that a small file cannot really
 * unpack to terabytes. */
#include "persistence/bundle.h"
#include "tensor/npy.h"
#include "tensor/tensor_internal.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdio.h>
#include <sys/stat.h>

#define TEXT_PREFIX "__text__/" /* member names of the bundle's texts */
#define FORMAT_KEY "format"     /* text by which safetensors files say who made them: not written here */
#define LONGEST_NAME (UINT16_MAX - strlen(".npy"))
#define BLOCK 65536 /* bytes read at a time */
/* Deflate, the usual compression of zip, never expands a byte to more than 1032 (258 bytes for 2 bits): a
 * larger claim is false. */
#define DEFLATE_MAXIMUM 1100

/* What the arrays of a file may unpack to, all together: 64 times the file's size, or 256 MiB for small
 * files. Parameters hardly compress; zeros do by the thousandfold. */
#define MAXIMUM_TIMES 64
#define ALWAYS_UNPACKED ((uint64_t)256 << 20)

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), other = strlen(end);
    return length >= other && strcmp(text + length - other, end) == 0;
}

bool sgm__npz_is_named(const char *path)
{
    return ends_with(path, ".npz");
}

/* "PK" 3 4 begins the first member, "PK" 5 6 an empty archive. Read as safetensors, the first 8 bytes are a
 * length; with zeros in the last four of them it would be a header of 64 MB, which is possible, so these four
 * must not all be zero. */
bool sgm__npz_begins(const char *path)
{
    char start[8] = {0};
    FILE *file = sgm__file_open_stream(path);
    size_t got = file != NULL ? fread(start, 1, sizeof start, file) : 0;
    if (file != NULL)
        fclose(file);
    bool is_entry = memcmp(start, "PK\3\4", 4) == 0 && memcmp(start + 4, "\0\0\0\0", 4) != 0;
    return got == sizeof start && (is_entry || memcmp(start, "PK\5\6", 4) == 0);
}

static bool is_text_name(const char *name)
{
    return sgm__begins_with(name, TEXT_PREFIX);
}

/* --- saving --- */

/* libarchive's callback for output: collects the archive in memory, so that the file is replaced in one go.
 */
static la_ssize_t append(struct archive *archive, void *user, const void *bytes, size_t length)
{
    sgm__text *file = user;
    sgm__text_append_bytes(file, bytes, length);
    if (!file->failed)
        return (la_ssize_t)length;
    archive_set_error(archive, -1, "out of memory");
    return -1;
}

/* libarchive's own message, if it has one. */
static sgm_status fail_archive(struct archive *archive, const char *path)
{
    const char *text = archive_error_string(archive);
    return sgm_fail(SGM_ERROR_FORMAT, "'%s': %s", path, text != NULL ? text : "no zip archive");
}

/* Sets the time of the member to 1980, the earliest that zip knows, so that equal bundles are equal files.
 * Zip counts the bytes of a name in 16 bits, and libarchive writes longer ones beyond its own memory. */
static sgm_status write_member(struct archive *archive, const char *path, const char *name,
                               const sgm_tensor *tensor)
{
    if (strlen(name) > LONGEST_NAME)
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "'%s': a name of at most %zu bytes was expected in an .npz file, '%.40s...' has %zu: save it "
            "as safetensors",
            path, LONGEST_NAME, name, strlen(name));
    sgm__text array = {0};
    struct archive_entry *entry = archive_entry_new();
    char *full = sgm__format("%s.npy", name);
    sgm_status status = entry != NULL && full != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = sgm__npy_append(&array, path, tensor);
    if (status == SGM_OK) {
        archive_entry_set_pathname_utf8(entry, full);
        archive_entry_set_size(entry, (la_int64_t)array.length);
        archive_entry_set_filetype(entry, AE_IFREG);
        archive_entry_set_perm(entry, 0644);
        archive_entry_set_mtime(entry, 315532800, 0); /* 1 January 1980 */
        if (archive_write_header(archive, entry) < ARCHIVE_WARN ||
            archive_write_data(archive, array.data, array.length) != (la_ssize_t)array.length)
            status = fail_archive(archive, path);
    }
    sgm__text_free(&array);
    sgm__free(full);
    archive_entry_free(entry);
    return status;
}

/* A text becomes an array of its bytes: uint8 (length). */
static sgm_status write_text(struct archive *archive, const char *path, const sgm__bundle_text *text)
{
    sgm_shape shape = sgm_shape_of((int64_t)strlen(text->text));
    sgm_tensor *bytes = sgm_tensor_create(SGM_UINT8, &shape);
    char *name = sgm__format(TEXT_PREFIX "%s", text->key);
    sgm_status status = bytes != NULL && name != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    if (status == SGM_OK) {
        memcpy(sgm_tensor_data(bytes), text->text, strlen(text->text));
        status = write_member(archive, path, name, bytes);
    }
    sgm__free(name);
    sgm_tensor_free(bytes);
    return status;
}

/* Bytes with the name of a text would come back as one. */
static sgm_status write_tensor(struct archive *archive, const char *path, const sgm__bundle_tensor *tensor)
{
    if (is_text_name(tensor->name) && sgm_tensor_dtype(tensor->tensor) == SGM_UINT8)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "'%s': '%.100s' is a tensor, but names that begin with '" TEXT_PREFIX
                        "' are those of texts in an .npz file: give it another one",
                        path, tensor->name);
    return write_member(archive, path, tensor->name, tensor->tensor);
}

/* libarchive marks names as UTF-8 if the characters of the thread's locale are that. */
static sgm_status write_members(struct archive *archive, const char *path, const sgm_bundle *bundle)
{
    sgm_status status = SGM_OK;
    locale_t own = sgm__use_c_locale();
    for (size_t i = 0; i < bundle->count && status == SGM_OK; i++)
        status = write_tensor(archive, path, &bundle->tensors[i]);
    for (size_t i = 0; i < bundle->text_count && status == SGM_OK; i++)
        if (strcmp(bundle->texts[i].key, FORMAT_KEY) != 0)
            status = write_text(archive, path, &bundle->texts[i]);
    uselocale(own);
    return status;
}

/* bytes_in_last_block 1 keeps libarchive from padding the file to whole blocks. */
sgm_status sgm__npz_save(const sgm_bundle *bundle, const char *path)
{
    sgm__text file = {0};
    struct archive *archive = archive_write_new();
    if (archive == NULL)
        return sgm_fail(SGM_ERROR_MEMORY, "'%s': no memory for a zip archive", path);
    sgm_status status = SGM_OK;
    if (archive_write_set_format_zip(archive) != ARCHIVE_OK ||
        archive_write_set_options(archive, "zip:compression=store") != ARCHIVE_OK ||
        archive_write_set_bytes_in_last_block(archive, 1) != ARCHIVE_OK ||
        archive_write_open(archive, &file, NULL, append, NULL) != ARCHIVE_OK)
        status = fail_archive(archive, path);
    if (status == SGM_OK)
        status = write_members(archive, path, bundle);
    if (status == SGM_OK && archive_write_close(archive) != ARCHIVE_OK)
        status = fail_archive(archive, path);
    archive_write_free(archive);
    if (status == SGM_OK)
        status = file.failed ? SGM_ERROR_MEMORY : sgm__file_write_atomic(path, file.data, file.length);
    sgm__text_free(&file);
    return status;
}

/* --- loading --- */

/* Reading one archive, member by member. */
typedef struct npz_reader {
    const char *path;
    struct archive *archive;
    uint64_t size;     /* of the file, in bytes */
    uint64_t unpacked; /* bytes of all arrays so far */
    char *name;        /* of the current member, without ".npy" */
} npz_reader;

/* Fewer bytes than asked for mean that the member ends too early. */
static sgm_status read_exactly(const npz_reader *r, void *target, size_t length)
{
    la_ssize_t got = length > 0 ? archive_read_data(r->archive, target, length) : 0;
    if (got < 0)
        return fail_archive(r->archive, r->path);
    return (size_t)got == length ? SGM_OK
                                 : sgm_fail(SGM_ERROR_FORMAT, "'%s': '%s' ends too early", r->path, r->name);
}

/* Parses the beginning of a member; versions 2 and 3 have a length of 4 bytes. */
static sgm_status read_header(const npz_reader *r, sgm__npy_header *header)
{
    unsigned char start[SGM__NPY_MAGIC_SIZE + 2], length[4] = {0};
    SGM_TRY(read_exactly(r, start, sizeof start));
    unsigned version = start[SGM__NPY_MAGIC_SIZE];
    if (memcmp(start, SGM__NPY_MAGIC, SGM__NPY_MAGIC_SIZE) != 0 || version < 1 || version > 3)
        return sgm_fail(SGM_ERROR_FORMAT, "'%s': '%s' is no .npy file of version 1 to 3", r->path, r->name);
    SGM_TRY(read_exactly(r, length, version == 1 ? 2 : 4));
    size_t size =
        (size_t)length[0] | (size_t)length[1] << 8 | (size_t)length[2] << 16 | (size_t)length[3] << 24;
    if (size > SGM__NPY_LONGEST_HEADER)
        return sgm_fail(SGM_ERROR_FORMAT, "'%s': '%s' has a header of %zu bytes, at most %d are allowed",
                        r->path, r->name, size, SGM__NPY_LONGEST_HEADER);
    char *text = sgm__calloc(1, size + 1);
    sgm_status status = text != NULL ? read_exactly(r, text, size) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = sgm__npy_header_parse(r->name, text, header);
    sgm__free(text);
    return status;
}

/* `*element` is the size of an element in the file: float16 has 2 bytes there, and is read as float32.
 * Big-endian and complex types are refused. */
static sgm_status read_type(const npz_reader *r, const char *descr, sgm_dtype *dtype, size_t *element)
{
    static const struct {
        const char *descr;
        sgm_dtype dtype;
        size_t element;
    } types[] = {{"<f4", SGM_FLOAT32, 4}, {"<f8", SGM_FLOAT64, 8}, {"<f2", SGM_FLOAT32, 2},
                 {"<i4", SGM_INT32, 4},   {"<i8", SGM_INT64, 8},   {"|u1", SGM_UINT8, 1},
                 {"|b1", SGM_BOOL, 1}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(descr, types[i].descr) == 0) {
            *dtype = types[i].dtype;
            *element = types[i].element;
            return SGM_OK;
        }
    return sgm_fail(
        SGM_ERROR_UNSUPPORTED,
        "'%s': '%s' has elements of type '%s'; float16, float32, float64, int32, int64, uint8 and bool, "
        "little-endian, are supported",
        r->path, r->name, descr);
}

/* An array in Fortran's order is, as bytes, the transpose of one in C's order: read with its dimensions
 * reversed, it is transposed here. Takes over the tensor. */
static sgm_tensor *transposed(sgm_tensor *tensor)
{
    int32_t axes[SGM_MAX_RANK], rank = sgm_tensor_shape(tensor)->rank;
    for (int32_t i = 0; i < rank; i++)
        axes[i] = rank - 1 - i;
    sgm_tensor *seen = sgm_tensor_permute(tensor, axes);
    sgm_tensor *copy = seen != NULL ? sgm_tensor_copy(seen) : NULL;
    sgm_tensor_free(seen);
    sgm_tensor_free(tensor);
    return copy;
}

/* Keeps the sum of all arrays within the limit. The subtraction cannot be negative, as the sum never exceeds
 * the limit. */
static sgm_status count_unpacked(npz_reader *r, size_t bytes)
{
    uint64_t maximum = r->size < ALWAYS_UNPACKED / MAXIMUM_TIMES ? ALWAYS_UNPACKED : r->size * MAXIMUM_TIMES;
    if (bytes > maximum - r->unpacked)
        return sgm_fail(SGM_ERROR_FORMAT,
                        "'%s': with '%s' its arrays unpack to more than %llu bytes, which is all that is "
                        "unpacked of a file of %llu (256 MiB, or %d times the file's size): save it with "
                        "numpy.savez, which does not compress",
                        r->path, r->name, (unsigned long long)maximum, (unsigned long long)r->size,
                        MAXIMUM_TIMES);
    r->unpacked += bytes;
    return SGM_OK;
}

/* Rejects an array that no compression of a file of this size could hold, before memory is taken for it. */
static sgm_status check_bytes(npz_reader *r, const sgm_shape *shape, sgm_dtype dtype, size_t *bytes)
{
    int64_t elements = sgm_shape_elements(shape);
    if (elements < 0 || sgm__mul_overflows((size_t)elements, sgm_dtype_size(dtype), bytes) ||
        *bytes / DEFLATE_MAXIMUM > r->size)
        return sgm_fail(SGM_ERROR_FORMAT, "'%s': '%s' would have more elements than the file can hold",
                        r->path, r->name);
    return count_unpacked(r, *bytes);
}

/* float16 values are read into the end of the tensor's memory and widened in place; other types fill it.
 * Booleans become 0 or 1, since NumPy reads any other byte as true. The read behind the last byte must find
 * nothing, and makes libarchive compare the member's checksum. On failure the caller frees *tensor. */
static sgm_status read_array(npz_reader *r, sgm_tensor **tensor)
{
    sgm__npy_header header = {0};
    sgm_dtype dtype = SGM_FLOAT32;
    size_t bytes = 0, element = 0;
    char more;
    SGM_TRY(read_header(r, &header));
    SGM_TRY(read_type(r, header.descr, &dtype, &element));
    sgm_shape shape = header.shape;
    for (int32_t i = 0; i < shape.rank && header.is_fortran; i++)
        shape.dims[i] = header.shape.dims[shape.rank - 1 - i];
    SGM_TRY(check_bytes(r, &shape, dtype, &bytes));
    *tensor = sgm_tensor_create(dtype, &shape);
    if (*tensor == NULL)
        return sgm_last_status();
    size_t count = bytes / sgm_dtype_size(dtype);
    unsigned char *data = sgm_tensor_data(*tensor);
    SGM_TRY(read_exactly(r, data + (bytes - count * element), count * element));
    if (element < sgm_dtype_size(dtype))
        sgm_floats_from_halves(sgm_tensor_data(*tensor), data + (bytes - count * element), count);
    for (size_t i = 0; i < bytes && dtype == SGM_BOOL; i++)
        data[i] = data[i] != 0;
    la_ssize_t rest = archive_read_data(r->archive, &more, 1);
    if (rest < 0)
        return fail_archive(r->archive, r->path);
    if (rest > 0)
        return sgm_fail(SGM_ERROR_FORMAT, "'%s': '%s' has more bytes than its shape takes", r->path, r->name);
    if (header.is_fortran && shape.rank > 1)
        *tensor = transposed(*tensor);
    return *tensor != NULL ? SGM_OK : sgm_last_status();
}

static sgm_status add_text(const npz_reader *r, sgm_bundle *bundle, const char *key, const sgm_tensor *bytes)
{
    size_t length = (size_t)sgm_shape_elements(sgm_tensor_shape(bytes));
    char *text = sgm__strndup(sgm_tensor_const_data(bytes), length);
    if (text == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status =
        strlen(text) == length
            ? sgm_bundle_set_text(bundle, key, text)
            : sgm_fail(SGM_ERROR_FORMAT, "'%s': '%s' has a 0 byte at %zu, which no text of a bundle holds",
                       r->path, r->name, strlen(text));
    sgm__free(text);
    return status;
}

/* torch.save also writes zip archives, which get a message of their own. Arrays of bytes under the prefix are
 * the bundle's texts. */
static sgm_status read_member(npz_reader *r, struct archive_entry *entry, sgm_bundle *bundle)
{
    const char *name = archive_entry_pathname(entry);
    if (name != NULL && (ends_with(name, "/data.pkl") || ends_with(name, "/.format_version")))
        return sgm_fail(SGM_ERROR_FORMAT,
                        "'%s': expected safetensors or .npz, it is a file of torch.save: save "
                        "model.state_dict() with safetensors.torch.save_file",
                        r->path);
    if (name == NULL || !ends_with(name, ".npy"))
        return sgm_fail(SGM_ERROR_FORMAT, "'%s': its member '%.100s' is no .npy file", r->path,
                        name != NULL ? name : "");
    r->name = sgm__strndup(name, strlen(name) - strlen(".npy"));
    sgm_tensor *tensor = NULL;
    sgm_status status = r->name != NULL ? read_array(r, &tensor) : SGM_ERROR_MEMORY;
    bool is_text = status == SGM_OK && is_text_name(r->name);
    if (is_text && sgm_tensor_dtype(tensor) == SGM_UINT8)
        status = add_text(r, bundle, r->name + strlen(TEXT_PREFIX), tensor);
    else if (status == SGM_OK)
        status = sgm_bundle_add(bundle, r->name, tensor);
    sgm_tensor_free(tensor);
    sgm__free(r->name);
    return status;
}

/* libarchive converts names to the characters of the thread's locale, which have to be UTF-8. */
static sgm_status read_members(npz_reader *r, sgm_bundle *bundle)
{
    struct archive_entry *entry;
    sgm_status status = SGM_OK;
    int result = ARCHIVE_OK;
    locale_t own = sgm__use_c_locale();
    while (status == SGM_OK &&
           ((result = archive_read_next_header(r->archive, &entry)) == ARCHIVE_OK || result == ARCHIVE_WARN))
        status = read_member(r, entry, bundle);
    uselocale(own);
    if (status == SGM_OK && result != ARCHIVE_EOF)
        status = fail_archive(r->archive, r->path);
    return status;
}

/* Each member of a zip archive has a CRC-32, which libarchive has compared: so the bundle counts as verified.
 */
sgm_bundle *sgm__npz_load(const char *path)
{
    struct stat about;
    npz_reader r = {.path = path, .archive = archive_read_new()};
    sgm_bundle *bundle = sgm_bundle_create();
    sgm_status status = r.archive != NULL && bundle != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    if (status == SGM_OK) {
        archive_read_support_format_zip(r.archive);
        if (stat(path, &about) != 0 || archive_read_open_filename(r.archive, path, BLOCK) != ARCHIVE_OK)
            status = fail_archive(r.archive, path);
        else
            r.size = (uint64_t)about.st_size;
    }
    if (status == SGM_OK)
        status = read_members(&r, bundle);
    archive_read_free(r.archive);
    if (status == SGM_OK) {
        bundle->verified = true;
        return bundle;
    }
    sgm_bundle_free(bundle);
    return NULL;
}
