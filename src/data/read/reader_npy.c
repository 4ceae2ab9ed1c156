/* Reads NumPy's .npy files (format versions 1 to 3), and arrays of .npz files, which are zip archives of .npy
 * files.
 *
 * The text of the header is parsed by src/tensor/npy.h, which parameters in .npy files share; elements are
 * read by reader_array.c; members of an archive come from source_archive.c. Only numbers in C order are read:
 * Python objects, text and Fortran order are refused with a hint how to save the array. The kind of file is
 * told by its first bytes, not by its name. */
#include "data/read/reader.h"
#include "tensor/npy.h"

typedef struct npy_reader {
    sgm__array_input input; /* first, so that a pointer to it is one to the reader */
    char *array; /* name of the member of an .npz; NULL: its only one, which was not looked up yet */
} npy_reader;

/* Finds the element type by NumPy's description: a byte order ('<' little, '>' big, '|' none, '=' the
 * processor's) and a code such as "f4". '|' is for elements of one byte only. */
static sgm_status set_element(sgm__element *element, const char *name, const sgm__npy_header *header)
{
    static const struct {
        const char *code;
        sgm__element element;
    } types[] = {
        {"b1", {SGM_BOOL, 1, 'b', false}},    {"u1", {SGM_UINT8, 1, 'u', false}},
        {"i1", {SGM_INT32, 1, 'i', false}},   {"u2", {SGM_INT32, 2, 'u', false}},
        {"i2", {SGM_INT32, 2, 'i', false}},   {"i4", {SGM_INT32, 4, 'i', false}},
        {"u4", {SGM_INT64, 4, 'u', false}},   {"i8", {SGM_INT64, 8, 'i', false}},
        {"u8", {SGM_INT64, 8, 'u', false}},   {"f2", {SGM_FLOAT32, 2, 'f', false}},
        {"f4", {SGM_FLOAT32, 4, 'f', false}}, {"f8", {SGM_FLOAT64, 8, 'f', false}},
    };
    const char *descr = header->descr;
    const bool is_little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    for (size_t i = 0; i < sizeof types / sizeof *types && *descr != '\0'; i++) {
        if (strchr("<>|=", *descr) == NULL || strcmp(descr + 1, types[i].code) != 0)
            continue;
        if (*descr == '|' && types[i].element.size > 1)
            break;
        *element = types[i].element;
        element->swapped = (*descr == '<' && !is_little) || (*descr == '>' && is_little);
        return SGM_OK;
    }
    const char *what = strchr(descr, 'O') != NULL ? "these are Python objects, which only Python can read: "
                       : strpbrk(descr, "US") != NULL ? "this is text: "
                                                      : "";
    return sgm_fail(SGM_ERROR_UNSUPPORTED,
                    "%s: elements of type bool, integer (8 to 64 bits) or float (16 to 64 bits) were "
                    "expected, '%s' came; %ssave the array as numbers, e.g. with astype('float32')",
                    name, descr, what);
}

/* The version, then the header's length, little-endian: 2 bytes in version 1, else 4. The length is bounded,
 * since it is allocated. */
static sgm_status read_header_size(sgm_stream *stream, size_t *size)
{
    unsigned char version[2], length[4] = {0};
    SGM_TRY(sgm__stream_read_exactly(stream, version, sizeof version, "the npy version"));
    if (version[0] < 1 || version[0] > 3 || version[1] != 0)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "%s: npy format 1.0, 2.0 or 3.0 was expected, %d.%d came; save it again "
                        "with numpy.save",
                        stream->name, version[0], version[1]);
    SGM_TRY(sgm__stream_read_exactly(stream, length, version[0] == 1 ? 2 : 4, "the npy header's length"));
    *size = (size_t)length[0] | (size_t)length[1] << 8 | (size_t)length[2] << 16 | (size_t)length[3] << 24;
    if (*size > SGM__NPY_LONGEST_HEADER)
        return sgm_fail(SGM_ERROR_FORMAT,
                        "%s: an npy header of at most %d bytes was expected, %zu came; the file is "
                        "damaged",
                        stream->name, SGM__NPY_LONGEST_HEADER, *size);
    return SGM_OK;
}

/* Takes over type and shape from the header's text. */
static sgm_status interpret(npy_reader *self, const char *text)
{
    sgm__npy_header header;
    const char *name = self->input.stream->name;
    SGM_TRY(sgm__npy_header_parse(name, text, &header));
    SGM_TRY(set_element(&self->input.element, name, &header));
    SGM_TRY(sgm__array_set_shape(&self->input, "npy", &header.shape));
    if (header.is_fortran && header.shape.rank > 1)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "%s: an array in C order was expected, this one is in Fortran order, so that its "
                        "examples are not in one piece; save numpy.ascontiguousarray(a)",
                        name);
    return SGM_OK;
}

/* Reads magic and header; the stream then stands at the first element. A zero byte in the text would end it
 * early for the parser, so it is an error. */
static sgm_status read_header(npy_reader *self)
{
    sgm_stream *stream = self->input.stream;
    char magic[SGM__NPY_MAGIC_SIZE];
    size_t size = 0;
    SGM_TRY(sgm__stream_read_exactly(stream, magic, sizeof magic, "the npy magic"));
    if (memcmp(magic, SGM__NPY_MAGIC, SGM__NPY_MAGIC_SIZE) != 0)
        return sgm_fail(SGM_ERROR_FORMAT,
                        "%s: neither an .npy nor an .npz file: it does not begin with \\x93NUMPY or PK; "
                        "save it with numpy.save",
                        stream->name);
    SGM_TRY(read_header_size(stream, &size));
    char *text = sgm__calloc(1, size + 1);
    if (text == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = sgm__stream_read_exactly(stream, text, size, "the npy header");
    if (status == SGM_OK && strlen(text) != size)
        status = sgm_fail(SGM_ERROR_FORMAT,
                          "%s: the npy header, which is text, has a zero byte at byte %llu; the file is "
                          "damaged",
                          stream->name, (unsigned long long)(stream->position - size + strlen(text)));
    if (status == SGM_OK)
        status = interpret(self, text);
    sgm__free(text);
    return status;
}

/* An .npz without a named array must have a single one: which array is meant must not depend on the order in
 * which they were saved. */
static sgm_status find_only_array(npy_reader *self)
{
    sgm_stream *stream = sgm_source_open(self->input.source);
    self->array = stream != NULL ? sgm__archive_only_member(stream) : NULL;
    return self->array != NULL ? SGM_OK : sgm__last_failure();
}

/* Opens the array itself: the file, or a member of it. The file is opened once more to see its first bytes.
 */
static sgm_status open_array(npy_reader *self)
{
    char magic[2] = {0};
    size_t got;
    sgm_stream *stream = sgm_source_open(self->input.source);
    if (stream == NULL)
        return sgm__last_failure();
    sgm_status status = sgm_stream_read(stream, magic, sizeof magic, &got);
    bool is_zip = memcmp(magic, "PK", 2) == 0;
    if (status == SGM_OK && !is_zip && self->array != NULL)
        status = sgm_fail(SGM_ERROR_NOT_FOUND,
                          "%s: the array '%s' was asked for, but this is not an .npz file; give NULL "
                          "as the array of an .npy file",
                          stream->name, self->array);
    sgm_stream_close(stream);
    SGM_TRY(status);
    /* Again from the start: not every stream can go back. */
    if (is_zip && self->array == NULL)
        SGM_TRY(find_only_array(self));
    stream = sgm_source_open(self->input.source);
    if (stream == NULL)
        return sgm__last_failure();
    self->input.stream = is_zip ? sgm__archive_open(stream, self->array) : stream;
    return self->input.stream != NULL ? SGM_OK : sgm__last_failure();
}

/* Opens the array anew, as packed streams cannot go back, and reads its header again. */
static sgm_status npy_rewind(void *user)
{
    npy_reader *self = user;
    sgm_stream_close(self->input.stream);
    self->input.stream = NULL;
    SGM_TRY(open_array(self));
    return read_header(self);
}

static sgm_status npy_read(void *user, int64_t count, sgm_examples *examples)
{
    return sgm__array_read(&((npy_reader *)user)->input, count, examples);
}

static void npy_free(void *user)
{
    npy_reader *self = user;
    sgm__array_free(&self->input);
    sgm__free(self->array);
    sgm__free(self);
}

/* The name of an array's file in the archive: numpy.savez adds ".npy". */
static char *member_name(const char *array)
{
    size_t length = strlen(array);
    bool is_file = length > 4 && strcmp(array + length - 4, ".npy") == 0;
    return sgm__format("%s%s", array, is_file ? "" : ".npy");
}

static void npy_describe(const void *pointer, sgm__key *key)
{
    const npy_reader *self = pointer;
    sgm__source_describe(self->input.source, key);
    sgm__key_add_text(key, self->array);
}

sgm_reader *sgm_npy_reader(sgm_source *source, const char *array)
{
    static const sgm_reader_type type = {"npy", npy_rewind, npy_read, npy_rewind, npy_free};
    if (source == NULL) {
        sgm__fail_missing("source");
        return NULL;
    }
    npy_reader *self = sgm__calloc(1, sizeof *self);
    if (self == NULL) {
        sgm_source_free(source);
        return NULL;
    }
    self->input.source = source;
    if (array != NULL && (self->array = member_name(array)) == NULL) {
        npy_free(self);
        return NULL;
    }
    return sgm__reader_create(&type, self, source->name, npy_describe);
}
