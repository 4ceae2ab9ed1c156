/* Reads safetensors files, which may come from anywhere: nothing in them is believed before it is checked
 * against the file's size.
 *
 * The order is: length of the header against the file's size; header as JSON; its checksum, if it has one;
 * each tensor's type, shape and position (a "claim"), whose bytes must fit; all positions together, which
 * must cover the data without gap and overlap; only then is memory taken and the data read, in the order of
 * the file, each tensor compared with its checksum. float16 is widened to float32. Entry points:
 * sgm_bundle_load, sgm__bundle_load_texts for callers that need only the texts, and sgm_tensor_file_open for
 * those that read one tensor at a time. Files of NumPy go to npz.c. */
#include "persistence/safetensors.h"
#include "tensor/tensor_internal.h"
#include "text/json_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* A tensor as the header describes it. */
typedef struct claim {
    const char *name; /* owned by the parsed header */
    sgm_dtype dtype;
    size_t element; /* bytes of one in the file: 2 of float16, which is read as float32 */
    sgm_shape shape;
    uint64_t begin, end; /* counted from the first byte behind the header */
    size_t order;        /* number of the tensor in the header, which also numbers its checksum */
    sgm_tensor *tensor;  /* read, and not in the bundle yet */
} claim;

/* Reading one file. load() frees what it holds, whatever fails. */
typedef struct reader {
    const char *path;
    FILE *file;
    uint64_t size, data; /* of the file; offset at which the tensors' bytes begin */
    json_t *header;
    claim *claims;
    size_t count;
    bool only_texts;
    bool sealed; /* the header has checksums, and its own is right */
} reader;

static sgm_status fail_file(const char *action, const char *path)
{
    return sgm_fail(SGM_ERROR_FILE, "cannot %s '%s': %s", action, path, sgm__errno_text(errno));
}

/* --- the header's text --- */

/* How files of other programs begin. Read as the length of a header, these bytes give an absurdly large
 * number: so they are looked at only then. */
static const struct foreign {
    const char *begin, *what;
} foreign[] = {
    {"GGUF", "a GGUF file: convert its tensors to safetensors"},
    {"\x80\x02", "a file of torch.save (or another pickle): save model.state_dict() with "
                 "safetensors.torch.save_file"},
    {"\x89HDF", "an HDF5 file: save its arrays with numpy.savez"},
    {"\x93NUMPY", "one array of numpy.save: save it by its name with numpy.savez"},
    {"\x1f\x8b", "packed by gzip: unpack it"},
    {"\x08", "perhaps a model of ONNX: sgm_onnx_load reads those"},
};

/* `length` is compared in memory as it was in the file: the machine is little-endian. */
static sgm_status check_foreign(uint64_t length)
{
    char begin[sizeof length];
    memcpy(begin, &length, sizeof length);
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (sgm__begins_with(begin, foreign[i].begin))
            return sgm_fail(SGM_ERROR_FORMAT, "expected safetensors or .npz, it is %s", foreign[i].what);
    return SGM_OK;
}

/* Too large a length is either another format, or a file that is cut off. */
static sgm_status check_length(reader *r, uint64_t length)
{
    if (length > SGM__SAFETENSORS_MAXIMUM_HEADER)
        SGM_TRY(check_foreign(length));
    if (length < 2 || length > SGM__SAFETENSORS_MAXIMUM_HEADER)
        return sgm_fail(
            SGM_ERROR_FORMAT,
            "it is no safetensors file: its first %d bytes give no length of a header, from 2 to %d",
            SGM__SAFETENSORS_LENGTH_BYTES, SGM__SAFETENSORS_MAXIMUM_HEADER);
    if (length > r->size - SGM__SAFETENSORS_LENGTH_BYTES)
        return sgm_fail(
            SGM_ERROR_FORMAT,
            "it is cut off, or no safetensors file: its first %d bytes give a header of %llu bytes, but "
            "it has %llu",
            SGM__SAFETENSORS_LENGTH_BYTES, (unsigned long long)length, (unsigned long long)r->size);
    r->data = SGM__SAFETENSORS_LENGTH_BYTES + length;
    return SGM_OK;
}

/* A short read without an error means that the file became shorter since fstat. */
static sgm_status read_bytes(reader *r, void *target, size_t length)
{
    if (fread(target, 1, length, r->file) == length)
        return SGM_OK;
    if (ferror(r->file) != 0)
        return fail_file("read", r->path);
    return sgm_fail(SGM_ERROR_FORMAT, "the file ended while it was read");
}

/* The format demands '{' as the first byte; jansson alone would skip spaces. Duplicate names are refused, as
 * readers disagree on which one counts. */
static sgm_status parse_header(reader *r, const char *text, size_t length)
{
    if (text[0] != '{')
        return sgm_fail(SGM_ERROR_FORMAT, "byte %d: the header must begin with '{'",
                        SGM__SAFETENSORS_LENGTH_BYTES);
    json_error_t error;
    r->header = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (r->header == NULL)
        return sgm_fail(SGM_ERROR_FORMAT, "byte %d: %s",
                        SGM__SAFETENSORS_LENGTH_BYTES + (error.position > 0 ? error.position : 0),
                        sgm__json_mistake(&error));
    return SGM_OK;
}

static sgm_status read_header(reader *r)
{
    uint64_t length;
    if (r->size < SGM__SAFETENSORS_LENGTH_BYTES)
        return sgm_fail(SGM_ERROR_FORMAT, "the file has %llu bytes: too few for a safetensors file",
                        (unsigned long long)r->size);
    SGM_TRY(read_bytes(r, &length, sizeof length));
    SGM_TRY(check_length(r, length));
    char *text = sgm__alloc((size_t)length);
    if (text == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = read_bytes(r, text, (size_t)length);
    if (status == SGM_OK)
        status = parse_header(r, text, (size_t)length);
    if (status == SGM_OK)
        status = sgm__checksums_check_header(r->header, text, (size_t)length, &r->sealed);
    sgm__free(text);
    return status;
}

/* --- the header's contents --- */

/* `*element` is the size of an element in the file, 2 bytes for F16, which becomes float32. */
static sgm_status read_dtype(const json_t *entry, sgm_dtype *dtype, size_t *element)
{
    const char *name = json_string_value(json_object_get(entry, "dtype"));
    if (name == NULL)
        return sgm_fail(SGM_ERROR_FORMAT, "'dtype' is missing or no text");
    bool is_half = strcmp(name, "F16") == 0;
    if (!sgm__safetensors_dtype_parse(is_half ? "F32" : name, dtype))
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "its type is %.20s; convert it to one of F64, F32, F16, BF16, I64, I32, U8, BOOL",
                        name);
    *element = is_half ? sizeof(uint16_t) : sgm_dtype_size(*dtype);
    return SGM_OK;
}

/* Dimensions are checked one by one here, their product in read_claim. */
static sgm_status read_shape(const json_t *entry, sgm_shape *shape)
{
    const json_t *dims = json_object_get(entry, "shape");
    if (!json_is_array(dims))
        return sgm_fail(SGM_ERROR_FORMAT, "'shape' is missing or no list");
    if (json_array_size(dims) > SGM_MAX_RANK)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "its shape has %zu dimensions, at most %d are supported",
                        json_array_size(dims), SGM_MAX_RANK);
    *shape = (sgm_shape){.rank = (int32_t)json_array_size(dims)};
    for (int32_t i = 0; i < shape->rank; i++) {
        const json_t *dim = json_array_get(dims, (size_t)i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return sgm_fail(SGM_ERROR_FORMAT, "dimension %d of its shape is not a whole number from 0 on", i);
        shape->dims[i] = json_integer_value(dim);
    }
    return SGM_OK;
}

/* How many bytes of data all tensors of the header take, for messages. */
static uint64_t data_wanted(const reader *r)
{
    uint64_t wanted = 0;
    for (void *at = json_object_iter(r->header); at != NULL; at = json_object_iter_next(r->header, at)) {
        const json_t *offsets = json_object_get(json_object_iter_value(at), "data_offsets");
        const json_int_t end = json_integer_value(json_array_get(offsets, 1));
        wanted = end > 0 && (uint64_t)end > wanted ? (uint64_t)end : wanted;
    }
    return wanted;
}

/* Offsets must lie within the data, before anything is computed from them. */
static sgm_status read_offsets(const reader *r, const json_t *entry, claim *c)
{
    const json_t *offsets = json_object_get(entry, "data_offsets");
    const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end))
        return sgm_fail(SGM_ERROR_FORMAT, "'data_offsets' is missing or not two whole numbers");
    json_int_t first = json_integer_value(begin), last = json_integer_value(end);
    uint64_t bytes = r->size - r->data;
    if (first < 0 || last < first)
        return sgm_fail(SGM_ERROR_FORMAT, "it would be at bytes %lld to %lld of the data", (long long)first,
                        (long long)last);
    if ((uint64_t)last > bytes)
        return sgm_fail(SGM_ERROR_FORMAT,
                        "it would be at bytes %lld to %lld of the data, which has %llu: the file is cut off, "
                        "by its header it has %llu bytes, but there are %llu",
                        (long long)first, (long long)last, (unsigned long long)bytes,
                        (unsigned long long)(r->data + data_wanted(r)), (unsigned long long)r->size);
    c->begin = (uint64_t)first;
    c->end = (uint64_t)last;
    return SGM_OK;
}

/* Checks a single tensor: its shape must take exactly the bytes between its offsets. */
static sgm_status read_claim(const reader *r, const json_t *entry, claim *c)
{
    if (!json_is_object(entry) || json_object_size(entry) != 3)
        return sgm_fail(SGM_ERROR_FORMAT, "expected exactly 'dtype', 'shape' and 'data_offsets'");
    SGM_TRY(read_dtype(entry, &c->dtype, &c->element));
    SGM_TRY(read_shape(entry, &c->shape));
    SGM_TRY(read_offsets(r, entry, c));
    int64_t elements = sgm_shape_elements(&c->shape);
    size_t bytes;
    char text[128];
    if (elements < 0 || sgm__mul_overflows((size_t)elements, c->element, &bytes) ||
        bytes != c->end - c->begin)
        return sgm_fail(SGM_ERROR_FORMAT, "its shape %s of %s does not take the %llu bytes that it is given",
                        sgm_shape_text(&c->shape, text, sizeof text),
                        c->element < sgm_dtype_size(c->dtype) ? "float16" : sgm_dtype_name(c->dtype),
                        (unsigned long long)(c->end - c->begin));
    return SGM_OK;
}

/* Copies the texts of the metadata, without the checksums. Keys are unique already (JSON_REJECT_DUPLICATES).
 */
static sgm_status read_texts(json_t *texts, sgm_bundle *bundle)
{
    if (!json_is_object(texts))
        return sgm_fail(SGM_ERROR_FORMAT, "'__metadata__' is not an object");
    bundle->texts = sgm__calloc(json_object_size(texts), sizeof(sgm__bundle_text));
    if (bundle->texts == NULL)
        return SGM_ERROR_MEMORY;
    bundle->text_capacity = json_object_size(texts);
    for (void *at = json_object_iter(texts); at != NULL; at = json_object_iter_next(texts, at)) {
        const char *key = json_object_iter_key(at);
        const json_t *value = json_object_iter_value(at);
        if (!json_is_string(value))
            return sgm_fail(SGM_ERROR_FORMAT, "'%.100s' in '__metadata__' is not text", key);
        if (sgm__is_checksum_key(key))
            continue;
        sgm__bundle_text *text = &bundle->texts[bundle->text_count];
        *text = (sgm__bundle_text){sgm__strdup(key), sgm__strdup(json_string_value(value))};
        bundle->text_count++;
        if (text->key == NULL || text->text == NULL)
            return SGM_ERROR_MEMORY;
    }
    return SGM_OK;
}

/* jansson keeps members in the order of the file, which becomes the order of the bundle. */
static sgm_status read_claims(reader *r, sgm_bundle *bundle)
{
    r->claims = sgm__calloc(json_object_size(r->header), sizeof(claim));
    if (r->claims == NULL)
        return SGM_ERROR_MEMORY;
    for (void *at = json_object_iter(r->header); at != NULL; at = json_object_iter_next(r->header, at)) {
        const char *name = json_object_iter_key(at);
        if (strcmp(name, "__metadata__") == 0) {
            SGM_TRY(read_texts(json_object_iter_value(at), bundle));
            continue;
        }
        claim *c = &r->claims[r->count];
        *c = (claim){.name = name, .order = r->count};
        r->count++;
        if (read_claim(r, json_object_iter_value(at), c) != SGM_OK)
            return sgm__fail_within("tensor '%.100s'", name);
    }
    return r->sealed ? sgm__checksums_check_count(r->header, r->count) : SGM_OK;
}

/* --- the data --- */

/* Empty tensors come before the one that begins at the same byte. */
static int compare_begin(const void *a, const void *b)
{
    const claim *first = a, *second = b;
    if (first->begin != second->begin)
        return first->begin < second->begin ? -1 : 1;
    return first->end < second->end ? -1 : first->end > second->end;
}

static int compare_order(const void *a, const void *b)
{
    const claim *first = a, *second = b;
    return first->order < second->order ? -1 : first->order > second->order;
}

/* Every byte of the data must belong to exactly one tensor: a gap could hide data, an overlap would let a
 * small file claim much memory. Leaves the claims in the order of the data, so that reading needs no seeking.
 */
static sgm_status check_layout(reader *r)
{
    if (r->count > 0)
        qsort(r->claims, r->count, sizeof(claim), compare_begin);
    uint64_t next = 0;
    for (size_t i = 0; i < r->count; i++) {
        if (r->claims[i].begin != next)
            return sgm_fail(SGM_ERROR_FORMAT,
                            "tensor '%.100s': it begins at byte %llu of the data, %s at %llu",
                            r->claims[i].name, (unsigned long long)r->claims[i].begin,
                            r->claims[i].begin < next ? "but the one before it ends" : "which leaves a gap",
                            (unsigned long long)next);
        next = r->claims[i].end;
    }
    if (next != r->size - r->data)
        return sgm_fail(SGM_ERROR_FORMAT, "the tensors take %llu bytes of the data, but it has %llu",
                        (unsigned long long)next, (unsigned long long)(r->size - r->data));
    return SGM_OK;
}

/* Elements smaller than the tensor's (float16) are read to the end of its memory and widened in place. The
 * checksum is that of the bytes in the file, so it is compared before widening. */
static sgm_status read_tensor(reader *r, claim *c)
{
    c->tensor = sgm_tensor_create(c->dtype, &c->shape);
    if (c->tensor == NULL)
        return sgm_last_status();
    size_t bytes = (size_t)(c->end - c->begin), count = bytes / c->element;
    unsigned char *data = sgm_tensor_data(c->tensor);
    data += count * (sgm_dtype_size(c->dtype) - c->element);
    if (bytes > 0)
        SGM_TRY(read_bytes(r, data, bytes));
    if (r->sealed)
        SGM_TRY(sgm__checksums_check_tensor(r->header, c->order, data, bytes));
    for (size_t i = 0; i < bytes && c->dtype == SGM_BOOL; i++)
        if (data[i] > 1)
            return sgm_fail(SGM_ERROR_FORMAT, "element %zu is %d, but it is of type BOOL: 0 or 1", i,
                            data[i]);
    if (c->element < sgm_dtype_size(c->dtype))
        sgm_floats_from_halves(sgm_tensor_data(c->tensor), data, count);
    return SGM_OK;
}

/* Hands the tensors to the bundle in the order of the header. */
static sgm_status read_data(reader *r, sgm_bundle *bundle)
{
    for (size_t i = 0; i < r->count; i++)
        if (read_tensor(r, &r->claims[i]) != SGM_OK)
            return sgm__fail_within("tensor '%.100s'", r->claims[i].name);
    if (r->count > 0)
        qsort(r->claims, r->count, sizeof(claim), compare_order);
    for (size_t i = 0; i < r->count; i++) {
        sgm_tensor *tensor = r->claims[i].tensor;
        r->claims[i].tensor = NULL;
        SGM_TRY(sgm__bundle_append(bundle, r->claims[i].name, tensor));
        bundle->tensors[i].half = r->claims[i].element < sgm_dtype_size(r->claims[i].dtype);
    }
    return SGM_OK;
}

/* Sizes of pipes and devices are unknown, and all checks depend on the size: only regular files are read. */
static sgm_status read_claims_of_file(reader *r, sgm_bundle *bundle)
{
    struct stat information;
    if (fstat(fileno(r->file), &information) != 0)
        return fail_file("read", r->path);
    if (!S_ISREG(information.st_mode))
        return sgm_fail(SGM_ERROR_FILE, "it is not a regular file");
    r->size = (uint64_t)information.st_size;
    SGM_TRY(read_header(r));
    SGM_TRY(read_claims(r, bundle));
    return check_layout(r);
}

static sgm_status read_all(reader *r, sgm_bundle *bundle)
{
    SGM_TRY(read_claims_of_file(r, bundle));
    bundle->verified = r->sealed;
    return r->only_texts ? SGM_OK : read_data(r, bundle);
}

static void close_reader(reader *r)
{
    for (size_t i = 0; i < r->count; i++)
        sgm_tensor_free(r->claims[i].tensor);
    sgm__free(r->claims);
    json_decref(r->header);
    if (r->file != NULL)
        fclose(r->file);
}

/* The content decides between the formats, not the file's name. */
static sgm_bundle *load(const char *path, bool only_texts)
{
    if (path == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT, "the path of the bundle is NULL");
        return NULL;
    }
    if (sgm__npz_begins(path))
        return sgm__npz_load(path);
    reader r = {.path = path, .file = sgm__file_open_stream(path), .only_texts = only_texts};
    if (r.file == NULL)
        return NULL;
    sgm_bundle *bundle = sgm_bundle_create();
    sgm_status status = bundle != NULL ? read_all(&r, bundle) : SGM_ERROR_MEMORY;
    close_reader(&r);
    if (status == SGM_OK)
        return bundle;
    sgm__fail_within("'%s'", path);
    sgm_bundle_free(bundle);
    return NULL;
}

sgm_bundle *sgm_bundle_load(const char *path)
{
    return load(path, false);
}

sgm_bundle *sgm__bundle_load_texts(const char *path)
{
    return load(path, true);
}

/* --- one tensor at a time --- */

/* Claims are in the order of the header. */
struct sgm_tensor_file {
    char *path;
    reader reader;
};

static sgm_status open_claims(sgm_tensor_file *file)
{
    reader *r = &file->reader;
    if (sgm__npz_begins(file->path))
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "its tensors are read together: sgm_bundle_load reads .npz files");
    r->path = file->path;
    r->file = sgm__file_open_stream(file->path);
    if (r->file == NULL)
        return sgm_last_status();
    sgm_bundle *texts = sgm_bundle_create();
    sgm_status status = texts != NULL ? read_claims_of_file(r, texts) : SGM_ERROR_MEMORY;
    sgm_bundle_free(texts);
    if (status == SGM_OK && r->count > 0)
        qsort(r->claims, r->count, sizeof(claim), compare_order);
    return status;
}

sgm_tensor_file *sgm_tensor_file_open(const char *path)
{
    if (path == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT, "the path of the file of tensors is NULL");
        return NULL;
    }
    sgm_tensor_file *file = sgm__calloc(1, sizeof *file);
    if (file == NULL)
        return NULL;
    file->path = sgm__strdup(path);
    sgm_status status = file->path != NULL ? open_claims(file) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        return file;
    sgm__fail_within("'%s'", path);
    sgm_tensor_file_close(file);
    return NULL;
}

void sgm_tensor_file_close(sgm_tensor_file *file)
{
    if (file == NULL)
        return;
    close_reader(&file->reader);
    sgm__free(file->path);
    sgm__free(file);
}

size_t sgm_tensor_file_count(const sgm_tensor_file *file)
{
    return file != NULL ? file->reader.count : 0;
}

bool sgm_tensor_file_entry(const sgm_tensor_file *file, size_t index, sgm_tensor_entry *entry)
{
    if (index >= sgm_tensor_file_count(file))
        return false;
    const claim *c = &file->reader.claims[index];
    *entry = (sgm_tensor_entry){
        .name = c->name, .dtype = c->dtype, .half = c->element < sgm_dtype_size(c->dtype), .shape = c->shape};
    return true;
}

sgm_tensor *sgm_tensor_file_read(sgm_tensor_file *file, size_t index)
{
    if (index >= sgm_tensor_file_count(file)) {
        sgm_fail(SGM_ERROR_ARGUMENT, "there is no tensor %zu in the file, which has %zu", index,
                 sgm_tensor_file_count(file));
        return NULL;
    }
    reader *r = &file->reader;
    claim *c = &r->claims[index];
    sgm_status status = fseeko(r->file, (off_t)(r->data + c->begin), SEEK_SET) == 0
                            ? read_tensor(r, c)
                            : fail_file("read", file->path);
    sgm_tensor *tensor = c->tensor;
    c->tensor = NULL;
    if (status == SGM_OK)
        return tensor;
    sgm__fail_within("'%s': tensor '%.100s'", file->path, c->name);
    sgm_tensor_free(tensor);
    return NULL;
}
