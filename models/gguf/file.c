/* Opening a file of GGUF: its header is read once, from front to end, and checked; tensors are read when they
 * are asked for. */
#include "gguf/gguf.h"
#include "text.h"
#include "tokenizer/text/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Bytes of a header that are believed: the largest vocabularies take some MB. */
#define MOST_HEADER ((uint64_t)512 << 20)
#define MOST_KEY 1000
#define MOST_NAME 255
#define MOST_ALIGNMENT (1u << 20)
/* The remedy for whatever no program would have written. */
#define DAMAGED "; the file is cut off or damaged, get it anew"
/* Of the header at a time. */
#define CHUNK ((size_t)1 << 16)

/* A file whose header is being read. */
typedef struct reader {
    sgm__gguf *gguf;
    uint64_t file_size;
    size_t at;        /* of the header */
    char place[1100]; /* what is read: "the key 'general.name'" */
} reader;

bool sgm__is_gguf(const char *path)
{
    size_t length = strlen(path);
    return length > 5 && strcmp(path + length - 5, ".gguf") == 0;
}

static sgm_status fail(const reader *r, sgm_status status, const char *format, ...) SGM_PRINTF(3, 4);
static sgm_status fail(const reader *r, sgm_status status, const char *format, ...)
{
    char message[1400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return sgm_fail(status, "'%s': %s at byte %zu: %s", r->gguf->path, r->place, r->at, message);
}

/* --- bytes --- */

/* Has the next `size` bytes of the header read. */
static sgm_status need(reader *r, uint64_t size)
{
    sgm__buffer *header = &r->gguf->header;
    const uint64_t left = r->file_size - r->at;
    if (size > left)
        return fail(r, SGM_ERROR_FORMAT, "%llu bytes are wanted, but only %llu follow" DAMAGED,
                    (unsigned long long)size, (unsigned long long)left);
    if (size > MOST_HEADER - r->at)
        return fail(r, SGM_ERROR_LIMIT, "the header has over %llu bytes, more than that of any model",
                    (unsigned long long)MOST_HEADER);
    while (header->size < r->at + size) {
        const uint64_t rest = r->file_size - header->size;
        const size_t count = rest < CHUNK ? (size_t)rest : CHUNK;
        SGM__PASS(sgm__buffer_reserve(header, count));
        if (fread(header->data + header->size, 1, count, r->gguf->file) != count)
            return fail(r, SGM_ERROR_FILE, "cannot be read");
        header->size += count;
    }
    return SGM_OK;
}

/* A number of `size` bytes. */
static sgm_status take(reader *r, size_t size, uint64_t *out)
{
    SGM__PASS(need(r, size));
    *out = 0;
    memcpy(out, r->gguf->header.data + r->at, size);
    r->at += size;
    return SGM_OK;
}

/* A text: its size, then its bytes, at *start of the header. */
static sgm_status take_text(reader *r, uint64_t most, size_t *start, size_t *size)
{
    uint64_t count = 0;
    SGM__PASS(take(r, 8, &count));
    if (count > most)
        return fail(r, SGM_ERROR_FORMAT, "a text of %llu bytes, where at most %llu are possible" DAMAGED,
                    (unsigned long long)count, (unsigned long long)most);
    SGM__PASS(need(r, count));
    *start = r->at;
    *size = (size_t)count;
    const char *text = r->gguf->header.data + *start;
    if (count > 0 && (memchr(text, 0, *size) != NULL || !sgm__utf8_is_valid(text, *size)))
        return fail(r, SGM_ERROR_FORMAT, "a text that is no UTF-8, or has a 0 in it" DAMAGED);
    r->at += *size;
    return SGM_OK;
}

/* A copy of a name that must not be empty. */
static sgm_status take_name(reader *r, uint64_t most, char **out)
{
    size_t start, size = 0;
    SGM__PASS(take_text(r, most, &start, &size));
    if (size == 0)
        return fail(r, SGM_ERROR_FORMAT, "a name without a letter" DAMAGED);
    *out = sgm__copy_text(r->gguf->header.data + start, size);
    return *out != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* --- metadata --- */

/* Bytes of one value; 0: they differ. */
static size_t kind_size(sgm__gguf_kind kind)
{
    static const unsigned char sizes[SGM__GGUF_KINDS] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return sizes[kind];
}

static sgm_status take_kind(reader *r, sgm__gguf_kind *kind)
{
    uint64_t number = 0;
    SGM__PASS(take(r, 4, &number));
    if (number >= SGM__GGUF_KINDS)
        return fail(r, SGM_ERROR_FORMAT,
                    "%llu is no type of a value; the file is damaged, or of a newer version",
                    (unsigned long long)number);
    *kind = (sgm__gguf_kind)number;
    return SGM_OK;
}

static sgm_status pass_texts(reader *r, uint64_t count)
{
    size_t start, size;
    for (uint64_t i = 0; i < count; i++)
        SGM__PASS(take_text(r, MOST_HEADER, &start, &size));
    return SGM_OK;
}

static sgm_status take_elements(reader *r, sgm__gguf_value *value)
{
    const size_t size = kind_size(value->kind);
    if (value->kind == SGM__GGUF_ARRAY)
        return fail(r, SGM_ERROR_UNSUPPORTED, "an array of arrays, which no model of the known ones has");
    if (value->count > r->file_size || value->count > MOST_HEADER)
        return fail(r, SGM_ERROR_FORMAT, "an array of %llu elements in a file of %llu bytes" DAMAGED,
                    (unsigned long long)value->count, (unsigned long long)r->file_size);
    value->at = r->at;
    if (size == 0) {
        SGM__PASS(pass_texts(r, value->count));
    } else {
        SGM__PASS(need(r, value->count * size));
        r->at += (size_t)value->count * size;
    }
    value->size = r->at - value->at;
    return SGM_OK;
}

static sgm_status take_value(reader *r)
{
    sgm__gguf *gguf = r->gguf;
    void *values = gguf->values;
    SGM__PASS(sgm__array_reserve(&values, &gguf->value_room, gguf->value_count + 1, sizeof *gguf->values));
    gguf->values = values;
    sgm__gguf_value *value = &gguf->values[gguf->value_count];
    *value = (sgm__gguf_value){.start = r->at, .count = 1};
    SGM__PASS(take_name(r, MOST_KEY, &value->key));
    gguf->value_count++;
    snprintf(r->place, sizeof r->place, "the key '%s'", value->key);
    SGM__PASS(take_kind(r, &value->kind));
    value->array = value->kind == SGM__GGUF_ARRAY;
    if (value->array) {
        SGM__PASS(take_kind(r, &value->kind));
        SGM__PASS(take(r, 8, &value->count));
    }
    return take_elements(r, value);
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(((const sgm__gguf_value *)a)->key, ((const sgm__gguf_value *)b)->key);
}

static sgm_status take_values(reader *r, uint64_t count)
{
    sgm__gguf *gguf = r->gguf;
    for (uint64_t i = 0; i < count; i++) {
        snprintf(r->place, sizeof r->place, "key %llu of %llu", (unsigned long long)i + 1,
                 (unsigned long long)count);
        SGM__PASS(take_value(r));
    }
    if (gguf->value_count > 0)
        qsort(gguf->values, gguf->value_count, sizeof *gguf->values, compare_keys);
    for (size_t i = 1; i < gguf->value_count; i++)
        if (compare_keys(&gguf->values[i - 1], &gguf->values[i]) == 0)
            return sgm_fail(SGM_ERROR_FORMAT, "'%s': the key '%s' is there twice" DAMAGED, gguf->path,
                            gguf->values[i].key);
    return SGM_OK;
}

/* --- tensors --- */

static sgm_status take_type(reader *r, sgm__gguf_tensor *tensor)
{
    uint64_t number = 0;
    SGM__PASS(take(r, 4, &number));
    tensor->type = sgm__gguf_type_of((uint32_t)number);
    if (tensor->type == NULL)
        return fail(r, SGM_ERROR_UNSUPPORTED,
                    "%llu is no known type of tensors; the file is damaged, or of a newer version",
                    (unsigned long long)number);
    if (tensor->type->block == 0)
        return fail(
            r, SGM_ERROR_UNSUPPORTED,
            "its type %s is not read; these are: F32, F16, BF16, Q8_0, Q4_0. Take the model's file of such "
            "a type, or let llama.cpp write one: llama-quantize --allow-requantize FILE OUT.gguf Q8_0",
            tensor->type->name);
    return SGM_OK;
}

/* The file has the innermost dimension first. */
static sgm_status take_shape(reader *r, sgm__gguf_tensor *tensor)
{
    uint64_t rank = 0, dim = 0, dims[4];
    SGM__PASS(take(r, 4, &rank));
    if (rank > 4)
        return fail(r, SGM_ERROR_FORMAT, "%llu dimensions, where at most 4 are possible" DAMAGED,
                    (unsigned long long)rank);
    for (uint64_t i = 0; i < rank; i++) {
        SGM__PASS(take(r, 8, &dim));
        if (dim == 0 || dim > INT64_MAX)
            return fail(r, SGM_ERROR_FORMAT, "a dimension of %llu" DAMAGED, (unsigned long long)dim);
        dims[rank - 1 - i] = dim;
    }
    tensor->shape.rank = (int32_t)rank;
    for (uint64_t i = 0; i < rank; i++)
        tensor->shape.dims[i] = (int64_t)dims[i];
    return SGM_OK;
}

/* How many bytes it has. */
static sgm_status measure(const reader *r, sgm__gguf_tensor *tensor)
{
    const sgm__gguf_type *type = tensor->type;
    const int64_t count = sgm_shape_elements(&tensor->shape);
    const int64_t row = tensor->shape.rank > 0 ? tensor->shape.dims[tensor->shape.rank - 1] : 1;
    if (count < 0 || (uint64_t)count > r->file_size * type->block)
        return fail(r, SGM_ERROR_FORMAT, "more numbers than a file of %llu bytes can have" DAMAGED,
                    (unsigned long long)r->file_size);
    if (row % type->block != 0)
        return fail(r, SGM_ERROR_FORMAT,
                    "rows of %lld numbers, which are no blocks of %d, as %s has them" DAMAGED, (long long)row,
                    type->block, type->name);
    tensor->size = (uint64_t)count / type->block * type->bytes;
    return SGM_OK;
}

static sgm_status take_tensor(reader *r)
{
    sgm__gguf *gguf = r->gguf;
    void *tensors = gguf->tensors;
    SGM__PASS(
        sgm__array_reserve(&tensors, &gguf->tensor_room, gguf->tensor_count + 1, sizeof *gguf->tensors));
    gguf->tensors = tensors;
    sgm__gguf_tensor *tensor = &gguf->tensors[gguf->tensor_count];
    *tensor = (sgm__gguf_tensor){0};
    SGM__PASS(take_name(r, MOST_NAME, &tensor->name));
    gguf->tensor_count++;
    snprintf(r->place, sizeof r->place, "the tensor '%s'", tensor->name);
    SGM__PASS(take_shape(r, tensor));
    SGM__PASS(take_type(r, tensor));
    SGM__PASS(measure(r, tensor));
    return take(r, 8, &tensor->at);
}

static sgm_status take_tensors(reader *r, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        snprintf(r->place, sizeof r->place, "tensor %llu of %llu", (unsigned long long)i + 1,
                 (unsigned long long)count);
        SGM__PASS(take_tensor(r));
    }
    return SGM_OK;
}

/* --- where the numbers are --- */

static int compare_places(const void *a, const void *b)
{
    const sgm__gguf_tensor *first = *(const sgm__gguf_tensor *const *)a,
                           *second = *(const sgm__gguf_tensor *const *)b;
    return first->at < second->at ? -1 : first->at > second->at;
}

static int compare_names(const void *a, const void *b)
{
    const sgm__gguf_tensor *first = *(const sgm__gguf_tensor *const *)a,
                           *second = *(const sgm__gguf_tensor *const *)b;
    return strcmp(first->name, second->name);
}

/* No tensor is there twice, and no two have bytes in common. `sorted` is room for all. */
static sgm_status check_pairs(const sgm__gguf *gguf, const sgm__gguf_tensor **sorted)
{
    for (size_t i = 0; i < gguf->tensor_count; i++)
        sorted[i] = &gguf->tensors[i];
    if (gguf->tensor_count > 0)
        qsort(sorted, gguf->tensor_count, sizeof *sorted, compare_names);
    for (size_t i = 1; i < gguf->tensor_count; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            return sgm_fail(SGM_ERROR_FORMAT, "'%s': the tensor '%s' is there twice" DAMAGED, gguf->path,
                            sorted[i]->name);
    if (gguf->tensor_count > 0)
        qsort(sorted, gguf->tensor_count, sizeof *sorted, compare_places);
    for (size_t i = 1; i < gguf->tensor_count; i++)
        if (sorted[i]->at - sorted[i - 1]->at < sorted[i - 1]->size)
            return sgm_fail(SGM_ERROR_FORMAT, "'%s': the tensors '%s' and '%s' have bytes in common" DAMAGED,
                            gguf->path, sorted[i - 1]->name, sorted[i]->name);
    return SGM_OK;
}

/* From here on a tensor's place is one in the file. */
static sgm_status place_tensors(const reader *r, uint64_t alignment)
{
    const sgm__gguf *gguf = r->gguf;
    const uint64_t start = (r->at + alignment - 1) / alignment * alignment;
    for (size_t i = 0; i < gguf->tensor_count; i++) {
        sgm__gguf_tensor *tensor = &gguf->tensors[i];
        if (tensor->at % alignment != 0)
            return sgm_fail(SGM_ERROR_FORMAT,
                            "'%s': the tensor '%s' begins at %llu, which is no multiple of %llu" DAMAGED,
                            gguf->path, tensor->name, (unsigned long long)tensor->at,
                            (unsigned long long)alignment);
        if (start > r->file_size || tensor->at > r->file_size - start ||
            tensor->size > r->file_size - start - tensor->at)
            return sgm_fail(SGM_ERROR_FORMAT,
                            "'%s': the %llu bytes of the tensor '%s' end behind the file" DAMAGED, gguf->path,
                            (unsigned long long)tensor->size, tensor->name);
        tensor->at += start;
    }
    return SGM_OK;
}

static sgm_status check_tensors(const reader *r)
{
    int64_t alignment = SGM__GGUF_ALIGNMENT;
    SGM__PASS(sgm__gguf_integer(r->gguf, "general.alignment", &alignment));
    if (alignment < 1 || alignment > MOST_ALIGNMENT || (alignment & (alignment - 1)) != 0)
        return sgm__gguf_fail(r->gguf, "general.alignment", "is %lld; a power of 2 up to %u is wanted",
                              (long long)alignment, MOST_ALIGNMENT);
    SGM__PASS(place_tensors(r, (uint64_t)alignment));
    const sgm__gguf_tensor **sorted = sgm__allocate_zero(r->gguf->tensor_count, sizeof *sorted);
    sgm_status status = sorted != NULL ? check_pairs(r->gguf, sorted) : SGM_ERROR_MEMORY;
    free(sorted);
    return status;
}

/* --- opening --- */

static sgm_status check_version(const reader *r, uint64_t version)
{
    if (version == 2 || version == 3)
        return SGM_OK;
    if (version == 1)
        return fail(r, SGM_ERROR_UNSUPPORTED,
                    "version 1, of August 2023, is not read; get a newer file of the model");
    if (version % 65536 == 0 && version != 0)
        return fail(r, SGM_ERROR_UNSUPPORTED, "the file is big endian; get the little-endian one");
    return fail(r, SGM_ERROR_UNSUPPORTED, "version %llu is not known; 2 and 3 are",
                (unsigned long long)version);
}

static sgm_status read_header(reader *r)
{
    uint64_t magic = 0, version = 0, tensors = 0, values = 0;
    strcpy(r->place, "the beginning");
    SGM__PASS(need(r, 4));
    SGM__PASS(take(r, 4, &magic));
    if (magic != 0x46554747) /* "GGUF" */
        return sgm_fail(SGM_ERROR_FORMAT, "'%s' does not begin with GGUF, so it is no such file",
                        r->gguf->path);
    SGM__PASS(take(r, 4, &version));
    SGM__PASS(check_version(r, version));
    SGM__PASS(take(r, 8, &tensors));
    SGM__PASS(take(r, 8, &values));
    SGM__PASS(take_values(r, values));
    SGM__PASS(take_tensors(r, tensors));
    return check_tensors(r);
}

static sgm_status open_file(reader *r, const char *path)
{
    struct stat information;
    r->gguf->path = sgm__new_text("%s", path);
    if (r->gguf->path == NULL)
        return SGM_ERROR_MEMORY;
    r->gguf->file = fopen(path, "rb");
    if (r->gguf->file == NULL)
        return sgm_fail(SGM_ERROR_FILE, "cannot read '%s': %s", path, strerror(errno));
    if (fstat(fileno(r->gguf->file), &information) != 0 || !S_ISREG(information.st_mode))
        return sgm_fail(SGM_ERROR_FILE, "'%s' is not a regular file", path);
    r->file_size = (uint64_t)information.st_size;
    return read_header(r);
}

sgm__gguf *sgm__gguf_open(const char *path)
{
    reader r = {.gguf = sgm__allocate_zero(1, sizeof *r.gguf)};
    if (r.gguf == NULL)
        return NULL;
    if (open_file(&r, path) == SGM_OK)
        return r.gguf;
    sgm__gguf_close(r.gguf);
    return NULL;
}

void sgm__gguf_close(sgm__gguf *gguf)
{
    if (gguf == NULL)
        return;
    if (gguf->file != NULL)
        fclose(gguf->file);
    for (size_t i = 0; i < gguf->value_count; i++)
        free(gguf->values[i].key);
    for (size_t i = 0; i < gguf->tensor_count; i++)
        free(gguf->tensors[i].name);
    free(gguf->values);
    free(gguf->tensors);
    sgm__buffer_free(&gguf->header);
    free(gguf->path);
    free(gguf);
}

/* --- tensors --- */

/* Reads the numbers in parts that stay in a cache. */
static sgm_status read_numbers(const sgm__gguf *gguf, const sgm__gguf_tensor *tensor, float *numbers)
{
    enum { BLOCKS = 1024 };
    const sgm__gguf_type *type = tensor->type;
    uint64_t left = tensor->size / type->bytes;
    unsigned char *bytes = sgm__allocate_zero(BLOCKS, type->bytes);
    sgm_status status = bytes != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    while (status == SGM_OK && left > 0) {
        const size_t count = left < BLOCKS ? (size_t)left : BLOCKS;
        if (fread(bytes, type->bytes, count, gguf->file) != count)
            status =
                sgm_fail(SGM_ERROR_FILE, "'%s': the tensor '%s' cannot be read: %s", gguf->path, tensor->name,
                         ferror(gguf->file) ? strerror(errno) : "the file has become shorter");
        else
            type->read(bytes, numbers, count * type->block);
        numbers += count * type->block;
        left -= count;
    }
    free(bytes);
    return status;
}

sgm_tensor *sgm__gguf_read(const sgm__gguf *gguf, const sgm__gguf_tensor *tensor)
{
    sgm_tensor *numbers = sgm_tensor_create(SGM_FLOAT32, &tensor->shape);
    sgm_status status = numbers != NULL ? SGM_OK : sgm_last_status();
    if (status == SGM_OK && fseeko(gguf->file, (off_t)tensor->at, SEEK_SET) != 0)
        status = sgm_fail(SGM_ERROR_FILE, "cannot read '%s': %s", gguf->path, strerror(errno));
    if (status == SGM_OK)
        status = read_numbers(gguf, tensor, sgm_tensor_data(numbers));
    if (status == SGM_OK)
        return numbers;
    sgm_tensor_free(numbers);
    return NULL;
}
