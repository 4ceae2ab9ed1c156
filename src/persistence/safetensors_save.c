/* Writes bundles as safetensors files.
 *
 * sgm_bundle_save lays out the tensors, describes them as JSON, fills in the checksums and writes length,
 * header and the tensors' bytes with sgm__file_write_pieces: a reader sees the old file or the complete new
 * one. Bytes are written from where they lie, so that a model needs no second copy of itself in memory. Equal
 * bundles give equal files: nothing depends on time or addresses. Paths that end in .npz go to npz.c. */
#include "persistence/safetensors.h"
#include "tensor/tensor_internal.h"

#include <stdlib.h>

static const char *const dtype_names[SGM_DTYPE_COUNT] = {
    [SGM_FLOAT32] = "F32", [SGM_FLOAT64] = "F64", [SGM_INT32] = "I32",     [SGM_INT64] = "I64",
    [SGM_UINT8] = "U8",    [SGM_BOOL] = "BOOL",   [SGM_BFLOAT16] = "BF16",
};

/* "F32"; NULL if the format has no such type. */
static const char *dtype_name(sgm_dtype dtype)
{
    return (unsigned)dtype < SGM_DTYPE_COUNT ? dtype_names[dtype] : NULL;
}

bool sgm__safetensors_dtype_parse(const char *name, sgm_dtype *dtype)
{
    for (int i = 0; i < SGM_DTYPE_COUNT; i++)
        if (strcmp(dtype_names[i], name) == 0) {
            *dtype = (sgm_dtype)i;
            return true;
        }
    return false;
}

/* Where a tensor's bytes go: number of the tensor in the bundle, bytes of an element, and offsets from the
 * first byte behind the header; and what they are. */
typedef struct place {
    size_t tensor, element, begin, end;
    sgm_tensor *flat;  /* with its bytes one behind the other, owned */
    void *halves;      /* made of these, owned; NULL: they are written as they are */
    const void *bytes; /* either */
} place;

/* Large elements first: then every tensor is aligned to its element's size, whatever the lengths, since the
 * header is padded to 8 bytes. Other programs map such files into memory. */
static int compare_places(const void *a, const void *b)
{
    const place *first = a, *second = b;
    if (first->element != second->element)
        return first->element > second->element ? -1 : 1;
    return first->tensor < second->tensor ? -1 : 1;
}

static int compare_tensors(const void *a, const void *b)
{
    const place *first = a, *second = b;
    return first->tensor < second->tensor ? -1 : first->tensor > second->tensor;
}

/* Bytes of an element in the file. */
static size_t element_size(const sgm__bundle_tensor *entry)
{
    return entry->half ? sizeof(uint16_t) : sgm_dtype_size(sgm_tensor_dtype(entry->tensor));
}

/* Gives each tensor its place; the result is in the order of the bundle. */
static sgm_status lay_out(const sgm_bundle *bundle, place **places)
{
    place *all = sgm__calloc(bundle->count, sizeof(place));
    if (all == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < bundle->count; i++)
        all[i] = (place){.tensor = i, .element = element_size(&bundle->tensors[i])};
    qsort(all, bundle->count, sizeof(place), compare_places);
    size_t total = 0;
    for (size_t i = 0; i < bundle->count; i++) {
        size_t elements = (size_t)sgm_shape_elements(sgm_tensor_shape(bundle->tensors[all[i].tensor].tensor)),
               bytes;
        all[i].begin = total;
        if (sgm__mul_overflows(elements, all[i].element, &bytes) ||
            sgm__add_overflows(total, bytes, &total)) {
            sgm__free(all);
            return sgm_fail(SGM_ERROR_ARGUMENT, "the bundle has more bytes than memory can address");
        }
        all[i].end = total;
    }
    qsort(all, bundle->count, sizeof(place), compare_tensors);
    *places = all;
    return SGM_OK;
}

/* Failures of jansson need no checks in between: its functions take NULL and fail. */
static json_t *describe_tensor(const sgm__bundle_tensor *entry, const place *where)
{
    const sgm_shape *shape = sgm_tensor_shape(entry->tensor);
    const char *type = entry->half ? "F16" : dtype_name(sgm_tensor_dtype(entry->tensor));
    json_t *dims = json_array();
    for (int32_t i = 0; i < shape->rank; i++)
        json_array_append_new(dims, json_integer(shape->dims[i]));
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", type, "shape", dims, "data_offsets",
                     (json_int_t)where->begin, (json_int_t)where->end);
}

/* The checksums' texts come first, as safetensors_checksum.c needs them. */
static bool describe_texts(const sgm_bundle *bundle, json_t *header)
{
    json_t *texts = json_object();
    bool good = json_object_set_new(header, "__metadata__", texts) == 0 &&
                sgm__checksums_describe(texts, bundle->count);
    for (size_t i = 0; i < bundle->text_count && good; i++)
        good = json_object_set_new(texts, bundle->texts[i].key, json_string(bundle->texts[i].text)) == 0;
    return good;
}

/* The header as text, which jansson allocates: free with free(). NULL on failure. */
static char *describe(const sgm_bundle *bundle, const place *places)
{
    json_t *header = json_object();
    bool good = header != NULL && describe_texts(bundle, header);
    for (size_t i = 0; i < bundle->count && good; i++)
        good = json_object_set_new(header, bundle->tensors[i].name,
                                   describe_tensor(&bundle->tensors[i], &places[i])) == 0;
    char *text = good ? json_dumps(header, JSON_COMPACT) : NULL;
    json_decref(header);
    if (text == NULL)
        sgm_fail(SGM_ERROR_MEMORY, "cannot allocate the header of %zu tensors", bundle->count);
    return text;
}

/* Finds a tensor's bytes; those that are not as they stand in the file are made. */
static sgm_status find_bytes(const sgm__bundle_tensor *entry, place *where)
{
    size_t size = where->end - where->begin;
    where->flat = sgm_tensor_is_contiguous(entry->tensor) ? sgm_tensor_retain(entry->tensor)
                                                          : sgm_tensor_copy(entry->tensor);
    if (where->flat == NULL)
        return sgm_last_status();
    where->bytes = sgm_tensor_const_data(where->flat);
    if (!entry->half || size == 0)
        return SGM_OK;
    where->halves = sgm__alloc(size);
    if (where->halves == NULL)
        return SGM_ERROR_MEMORY;
    sgm_halves_from_floats(where->halves, where->bytes, size / sizeof(uint16_t));
    where->bytes = where->halves;
    return SGM_OK;
}

/* Finds the bytes of all tensors, and writes their checksums into the header's text. */
static sgm_status find_all_bytes(const sgm_bundle *bundle, place *places, char *header)
{
    for (size_t i = 0; i < bundle->count; i++) {
        SGM_TRY(find_bytes(&bundle->tensors[i], &places[i]));
        sgm__checksums_write(header, i, places[i].bytes, places[i].end - places[i].begin);
    }
    return SGM_OK;
}

static void free_places(place *places, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sgm_tensor_free(places[i].flat);
        sgm__free(places[i].halves);
    }
    sgm__free(places);
}

/* Writes the header, with its length in front, and the tensors in the order of their places. */
static sgm_status write_pieces(place *places, size_t count, const char *start, size_t start_size,
                               const char *path, sgm__before_rename_function before_rename, void *user)
{
    sgm__file_piece *pieces = sgm__calloc(count + 1, sizeof *pieces);
    if (pieces == NULL)
        return SGM_ERROR_MEMORY;
    qsort(places, count, sizeof *places, compare_places);
    pieces[0] = (sgm__file_piece){start, start_size};
    for (size_t i = 0; i < count; i++)
        pieces[i + 1] = (sgm__file_piece){places[i].bytes, places[i].end - places[i].begin};
    sgm_status status = sgm__file_write_pieces(path, pieces, count + 1, before_rename, user);
    sgm__free(pieces);
    return status;
}

/* The header is padded with spaces to a multiple of 8 bytes. The seal comes last, as it covers the tensors'
 * checksums. */
static sgm_status write_file(const sgm_bundle *bundle, place *places, const char *header, const char *path,
                             sgm__before_rename_function before_rename, void *user)
{
    size_t length = strlen(header), padded = (length + 7) / 8 * 8;
    if (padded > SGM__SAFETENSORS_MAXIMUM_HEADER)
        return sgm_fail(SGM_ERROR_ARGUMENT, "names, shapes and texts take %zu bytes; the format allows %d",
                        padded, SGM__SAFETENSORS_MAXIMUM_HEADER);
    char *start = sgm__alloc(SGM__SAFETENSORS_LENGTH_BYTES + padded);
    if (start == NULL)
        return SGM_ERROR_MEMORY;
    uint64_t stored = padded;
    char *text = start + sizeof stored;
    memcpy(start, &stored, sizeof stored);
    memcpy(text, header, length);
    memset(text + length, ' ', padded - length);
    sgm_status status = find_all_bytes(bundle, places, text);
    sgm__checksums_seal(text, padded);
    if (status == SGM_OK)
        status = write_pieces(places, bundle->count, start, SGM__SAFETENSORS_LENGTH_BYTES + padded, path,
                              before_rename, user);
    sgm__free(start);
    return status;
}

sgm_status sgm__bundle_save_with_callback(const sgm_bundle *bundle, const char *path,
                                          sgm__before_rename_function before_rename, void *user)
{
    place *places = NULL;
    SGM_TRY(lay_out(bundle, &places));
    char *header = describe(bundle, places);
    sgm_status status =
        header != NULL ? write_file(bundle, places, header, path, before_rename, user) : sgm_last_status();
    free(header);
    free_places(places, bundle->count);
    return status;
}

sgm_status sgm_bundle_save(const sgm_bundle *bundle, const char *path)
{
    if (bundle == NULL || path == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "saving a bundle needs the bundle and a path");
    return sgm__npz_is_named(path) ? sgm__npz_save(bundle, path)
                                   : sgm__bundle_save_with_callback(bundle, path, NULL, NULL);
}
