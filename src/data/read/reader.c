/* Readers as such, their buffers, and the readers of raw bytes and of characters.
 *
 * sgm_reader_read and its neighbours stand between extractors (extractor.c:sgm__chunks_read) and all readers,
 * also those that programs write: they check arguments and results, and keep a reader that failed from being
 * read on. The other readers are in files of their own: ../csv/reader_csv.c, reader_idx.c, reader_npy.c,
 * reader_image.c. reader.h says what the buffers are for. */
#include "data/read/reader.h"

/* A reader of any type. `self` is the concrete reader, which type.free frees. */
struct sgm_reader {
    sgm_reader_type type;
    void *self;
    char *name;
    bool is_prepared, has_failed;   /* has_failed: the position is unknown until a rewind succeeds */
    sgm__reader_describes describe; /* NULL: it does not say what its examples depend on */
};

/* Takes over `self`, also on failure. Copies the type. */
sgm_reader *sgm__reader_create(const sgm_reader_type *type, void *self, const char *source_name,
                               sgm__reader_describes describe)
{
    if (type == NULL || type->read == NULL || type->rewind == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT,
                 "a reader type with the functions read and rewind was expected; fill them in");
    } else {
        sgm_reader *reader = sgm__calloc(1, sizeof *reader);
        if (reader != NULL)
            reader->name = sgm__strdup(source_name != NULL ? source_name : "reader");
        if (reader != NULL && reader->name != NULL) {
            reader->type = *type;
            reader->self = self;
            reader->describe = describe;
            return reader;
        }
        sgm__free(reader);
    }
    if (type != NULL && type->free != NULL)
        type->free(self);
    return NULL;
}

sgm_reader *sgm_reader_create(const sgm_reader_type *type, void *self, const char *source_name)
{
    return sgm__reader_create(type, self, source_name, NULL);
}

void sgm__reader_describe(const sgm_reader *reader, sgm__key *key)
{
    sgm__key_add_text(key, reader->type.name);
    if (reader->describe != NULL)
        reader->describe(reader->self, key);
    else
        sgm__key_refuse(key, reader->name);
}

/* A preparation that failed is tried again at the next call. */
sgm_status sgm_reader_prepare(sgm_reader *reader)
{
    if (reader == NULL)
        return sgm__fail_missing("reader");
    if (!reader->is_prepared && reader->type.prepare != NULL)
        SGM_TRY(reader->type.prepare(reader->self));
    reader->is_prepared = true;
    return SGM_OK;
}

/* Checks what a reader gave: no more than was asked for, and either an array with the examples as first
 * dimension or text cells. */
static sgm_status check_examples(const sgm_reader *reader, int64_t asked, const sgm_examples *examples)
{
    if (examples->count < 0 || examples->count > asked)
        return sgm_fail(SGM_ERROR_FORMAT,
                        "%s: the reader '%s' gave %lld examples, up to %lld were asked for; correct it",
                        reader->name, reader->type.name != NULL ? reader->type.name : "?",
                        (long long)examples->count, (long long)asked);
    bool is_right = examples->count == 0;
    if (!is_right && examples->values != NULL) {
        const sgm_shape *shape = sgm_tensor_shape(examples->values);
        is_right = examples->cells == NULL && shape->rank > 0 && shape->dims[0] == examples->count;
    } else if (!is_right) {
        is_right = examples->cells != NULL && examples->columns > 0;
    }
    if (is_right)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_FORMAT,
                    "%s: the reader '%s' must give either values, examples first, or text cells; correct it",
                    reader->name, reader->type.name != NULL ? reader->type.name : "?");
}

/* Examples belong to the reader until its next call. After a failure the reader refuses to read until it was
 * rewound, because its position is unknown; the caller never sees half of a result. */
sgm_status sgm_reader_read(sgm_reader *reader, int64_t count, sgm_examples *examples)
{
    memset(examples, 0, sizeof *examples);
    SGM_TRY(sgm_reader_prepare(reader));
    if (count <= 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: at least one example must be asked for, %lld were",
                        reader->name, (long long)count);
    if (reader->has_failed) /* its position is unknown */
        return sgm_fail(SGM_ERROR_STATE, "%s: reading failed before; rewind the reader first", reader->name);
    sgm_status status = reader->type.read(reader->self, count, examples);
    if (status == SGM_OK)
        status = check_examples(reader, count, examples);
    if (status != SGM_OK) {
        reader->has_failed = true;
        memset(examples, 0, sizeof *examples);
    }
    return status;
}

/* Goes back to the first example. If that fails, the reader counts as failed. */
sgm_status sgm_reader_rewind(sgm_reader *reader)
{
    SGM_TRY(sgm_reader_prepare(reader));
    reader->has_failed = true; /* unless this succeeds */
    SGM_TRY(reader->type.rewind(reader->self));
    reader->has_failed = false;
    return SGM_OK;
}

const char *sgm_reader_name(const sgm_reader *reader)
{
    return reader != NULL ? reader->name : "";
}

void sgm_reader_free(sgm_reader *reader)
{
    if (reader == NULL)
        return;
    if (reader->type.free != NULL)
        reader->type.free(reader->self);
    sgm__free(reader->name);
    sgm__free(reader);
}

/* The read function identifies the type, since every type of reader has one of its own. */
void *sgm__reader_self(sgm_reader *reader,
                       sgm_status (*read)(void *self, int64_t count, sgm_examples *examples))
{
    return reader != NULL && reader->type.read == read ? reader->self : NULL;
}

/* --- buffered input --- */

/* Bytes that sgm__input_fill reads at once. */
#define INPUT_SIZE 65536

/* The buffer is kept for the next pass over the source. */
sgm_status sgm__input_open(sgm__input *input)
{
    sgm_stream_close(input->stream);
    input->stream = NULL;
    input->begin = input->end = 0;
    input->position = 0;
    if (input->buffer == NULL && (input->buffer = sgm__alloc(INPUT_SIZE)) == NULL)
        return SGM_ERROR_MEMORY;
    input->stream = sgm_source_open(input->source);
    return input->stream != NULL ? SGM_OK : sgm_last_status();
}

void sgm__input_close(sgm__input *input)
{
    sgm_stream_close(input->stream);
    sgm_source_free(input->source);
    sgm__free(input->buffer);
}

sgm_status sgm__input_fill(sgm__input *input)
{
    if (input->begin < input->end)
        return SGM_OK;
    input->begin = input->end = 0;
    return sgm_stream_read(input->stream, input->buffer, INPUT_SIZE, &input->end);
}

/* --- memory for examples --- */

/* Bytes that sgm__bytes_read asks for at first. */
#define FIRST_CHUNK ((size_t)1 << 20)

sgm_status sgm__bytes_reserve(sgm__bytes *bytes, size_t more)
{
    size_t needed;
    if (sgm__add_overflows(bytes->length, more, &needed))
        return sgm__fail_memory(SIZE_MAX);
    if (needed <= bytes->capacity)
        return SGM_OK;
    sgm_tensor_free(bytes->tensor); /* its memory moves away */
    bytes->tensor = NULL;
    return sgm__reserve(&bytes->data, &bytes->capacity, needed, 1);
}

/* Reads into the room that is there, and doubles it when that is full: so memory is at most about twice what
 * the file really has, whatever its header says. */
sgm_status sgm__bytes_read(sgm__bytes *bytes, sgm_stream *stream, int64_t count, uint64_t size,
                           int64_t *whole)
{
    uint64_t wanted;
    if (__builtin_mul_overflow((uint64_t)count, size, &wanted))
        wanted = UINT64_MAX;
    bytes->length = 0;
    for (bool at_end = false; !at_end && bytes->length < wanted;) {
        size_t chunk = bytes->capacity - bytes->length;
        if (chunk == 0)
            chunk = bytes->length > FIRST_CHUNK ? bytes->length : FIRST_CHUNK;
        if (wanted - bytes->length < chunk)
            chunk = (size_t)(wanted - bytes->length);
        SGM_TRY(sgm__bytes_reserve(bytes, chunk));
        size_t got;
        SGM_TRY(sgm_stream_read(stream, bytes->data + bytes->length, chunk, &got));
        bytes->length += got;
        at_end = got < chunk;
    }
    *whole = (int64_t)(bytes->length / size);
    return SGM_OK;
}

/* Most runs have as many examples as the one before, so the tensor is kept and used again. */
sgm_status sgm__bytes_publish(sgm__bytes *bytes, sgm_dtype dtype, int64_t count, const sgm_shape *example,
                              sgm_examples *examples)
{
    sgm_shape shape = {.rank = example->rank + 1, .dims = {count}};
    memcpy(shape.dims + 1, example->dims, (size_t)example->rank * sizeof *example->dims);
    if (bytes->tensor != NULL && (sgm_tensor_dtype(bytes->tensor) != dtype ||
                                  !sgm_shape_equal(sgm_tensor_shape(bytes->tensor), &shape))) {
        sgm_tensor_free(bytes->tensor);
        bytes->tensor = NULL;
    }
    if (bytes->tensor == NULL)
        bytes->tensor = sgm_tensor_wrap(dtype, &shape, bytes->data, NULL, NULL);
    if (bytes->tensor == NULL)
        return sgm_last_status();
    examples->count = count;
    examples->values = bytes->tensor;
    return SGM_OK;
}

void sgm__bytes_free(sgm__bytes *bytes)
{
    sgm_tensor_free(bytes->tensor);
    sgm__free(bytes->data);
}

/* --- bytes --- */

/* Reads examples of `example_size` bytes each behind a header of `header_size` bytes: uint8 (count,
 * example_size). */
typedef struct byte_reader {
    sgm_source *source;
    sgm_stream *stream;
    int64_t header_size, example_size;
    sgm__bytes bytes;
} byte_reader;

/* Opens the source anew and skips the header. */
static sgm_status byte_rewind(void *self)
{
    byte_reader *reader = self;
    sgm_stream_close(reader->stream);
    reader->stream = sgm_source_open(reader->source);
    if (reader->stream == NULL)
        return sgm_last_status();
    return sgm_stream_skip(reader->stream, (uint64_t)reader->header_size);
}

/* Whole examples only: bytes that are left at the end mean that the sizes are wrong or the file is cut. */
static sgm_status byte_read(void *self, int64_t count, sgm_examples *examples)
{
    byte_reader *reader = self;
    int64_t whole;
    SGM_TRY(sgm__bytes_read(&reader->bytes, reader->stream, count, (uint64_t)reader->example_size, &whole));
    uint64_t rest = reader->bytes.length % (uint64_t)reader->example_size;
    if (rest > 0)
        return sgm_fail(
            SGM_ERROR_FORMAT,
            "%s: examples of %lld bytes were expected, but the last one, at byte %llu, has %llu; check the "
            "sizes of header and example, or get the file again",
            reader->stream->name, (long long)reader->example_size,
            (unsigned long long)(reader->stream->position - rest), (unsigned long long)rest);
    if (whole == 0)
        return SGM_OK;
    sgm_shape example = sgm_shape_of(reader->example_size);
    return sgm__bytes_publish(&reader->bytes, SGM_UINT8, whole, &example, examples);
}

static void byte_free(void *self)
{
    byte_reader *reader = self;
    sgm_stream_close(reader->stream);
    sgm_source_free(reader->source);
    sgm__bytes_free(&reader->bytes);
    sgm__free(reader);
}

static void byte_describe(const void *pointer, sgm__key *key)
{
    const byte_reader *self = pointer;
    sgm__source_describe(self->source, key);
    sgm__key_add_number(key, (double)self->header_size);
    sgm__key_add_number(key, (double)self->example_size);
}

/* Takes the source, also on failure. */
sgm_reader *sgm_byte_reader(sgm_source *source, int64_t header_size, int64_t example_size)
{
    static const sgm_reader_type type = {"bytes", byte_rewind, byte_read, byte_rewind, byte_free};
    byte_reader *self = NULL;
    if (source == NULL)
        sgm__fail_missing("source");
    else if (header_size < 0 || example_size <= 0)
        sgm_fail(SGM_ERROR_ARGUMENT,
                 "%s: a header of at least 0 and examples of at least 1 byte were expected, %lld and "
                 "%lld came",
                 source->name, (long long)header_size, (long long)example_size);
    else
        self = sgm__calloc(1, sizeof *self);
    if (self == NULL) {
        sgm_source_free(source);
        return NULL;
    }
    self->source = source;
    self->header_size = header_size;
    self->example_size = example_size;
    return sgm__reader_create(&type, self, source->name, byte_describe);
}

/* --- characters --- */

/* Reads windows of `length` characters, each beginning `stride` characters after the one before: uint8
 * (count, length). */
typedef struct character_reader {
    sgm__input input;
    int64_t length, stride;
    sgm__bytes window; /* the newest window, so that the next one can overlap it */
    sgm__bytes bytes;  /* the windows of a run, one behind the other */
    bool has_window, has_ended;
} character_reader;

/* The window is emptied, as the first one shares nothing with one before. */
static sgm_status character_rewind(void *self)
{
    character_reader *reader = self;
    reader->window.length = 0;
    reader->has_window = reader->has_ended = false;
    return sgm__input_open(&reader->input);
}

/* Appends up to `count` characters to the window, or passes over them if `keep` is false. *taken is fewer
 * only at the end. */
static sgm_status take(character_reader *reader, uint64_t count, bool keep, uint64_t *taken)
{
    for (*taken = 0; *taken < count;) {
        sgm__input *input = &reader->input;
        SGM_TRY(sgm__input_fill(input));
        size_t part = input->end - input->begin;
        if (part == 0)
            return SGM_OK;
        part = part < count - *taken ? part : (size_t)(count - *taken);
        if (keep) {
            SGM_TRY(sgm__bytes_reserve(&reader->window, part));
            memcpy(reader->window.data + reader->window.length, input->buffer + input->begin, part);
            reader->window.length += part;
        }
        input->begin += part;
        input->position += part;
        *taken += part;
    }
    return SGM_OK;
}

/* Moves the window on by `stride`: what both windows share is moved to the front, what lies between them is
 * passed over. Sets has_ended when no whole window is left; a text that is shorter than its first window is
 * an error. */
static sgm_status next_window(character_reader *reader)
{
    sgm__bytes *window = &reader->window;
    uint64_t length = (uint64_t)reader->length, stride = (uint64_t)reader->stride, taken;
    if (reader->has_window && stride < length) {
        memmove(window->data, window->data + stride, (size_t)(length - stride));
        window->length = (size_t)(length - stride);
    } else if (reader->has_window) {
        window->length = 0;
        SGM_TRY(take(reader, stride - length, false, &taken));
    }
    SGM_TRY(take(reader, length - window->length, true, &taken));
    reader->has_ended = window->length < length;
    if (reader->has_ended && !reader->has_window)
        return sgm_fail(
            SGM_ERROR_FORMAT,
            "%s: windows of %lld characters were expected, but the whole text has %llu; make them smaller",
            reader->input.stream->name, (long long)reader->length,
            (unsigned long long)reader->input.position);
    reader->has_window = true;
    return SGM_OK;
}

/* Copies window after window, as neighbours overlap and so cannot be read in one piece. */
static sgm_status character_read(void *self, int64_t count, sgm_examples *examples)
{
    character_reader *reader = self;
    int64_t done = 0;
    reader->bytes.length = 0;
    while (done < count && !reader->has_ended) {
        SGM_TRY(next_window(reader));
        if (reader->has_ended)
            break;
        SGM_TRY(sgm__bytes_reserve(&reader->bytes, reader->window.length));
        memcpy(reader->bytes.data + reader->bytes.length, reader->window.data, reader->window.length);
        reader->bytes.length += reader->window.length;
        done++;
    }
    if (done == 0)
        return SGM_OK;
    sgm_shape example = sgm_shape_of(reader->length);
    return sgm__bytes_publish(&reader->bytes, SGM_UINT8, done, &example, examples);
}

static void character_free(void *self)
{
    character_reader *reader = self;
    sgm__input_close(&reader->input);
    sgm__bytes_free(&reader->window);
    sgm__bytes_free(&reader->bytes);
    sgm__free(reader);
}

static void character_describe(const void *pointer, sgm__key *key)
{
    const character_reader *self = pointer;
    sgm__source_describe(self->input.source, key);
    sgm__key_add_number(key, (double)self->length);
    sgm__key_add_number(key, (double)self->stride);
}

/* A stride of 0 means the window's length: windows side by side. Takes the source, also on failure. */
sgm_reader *sgm_character_reader(sgm_source *source, int64_t length, int64_t stride)
{
    static const sgm_reader_type type = {"characters", character_rewind, character_read, character_rewind,
                                         character_free};
    character_reader *self = NULL;
    if (source == NULL)
        sgm__fail_missing("source");
    else if (length <= 0 || stride < 0)
        sgm_fail(SGM_ERROR_ARGUMENT,
                 "%s: windows of at least 1 character and a stride of at least 0 were expected, %lld "
                 "and %lld came",
                 source->name, (long long)length, (long long)stride);
    else
        self = sgm__calloc(1, sizeof *self);
    if (self == NULL) {
        sgm_source_free(source);
        return NULL;
    }
    self->input.source = source;
    self->length = length;
    self->stride = stride > 0 ? stride : length;
    return sgm__reader_create(&type, self, source->name, character_describe);
}
