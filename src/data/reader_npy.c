/* NumPy's .npy files (format versions 1 to 3), and arrays of .npz files, which are zip archives of them.
 *
 * The header is the text of a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
 * It is parsed as exactly that, each of the three keys once.
 */
#include "data/reader.h"

#define MAGIC "\x93NUMPY"
#define MAGIC_SIZE 6
#define LONGEST_HEADER 65536 /* NumPy itself refuses more than 10,000 by default */

typedef struct npy_reader {
    sgm__array_input input; /* first, so that the functions for arrays take it */
    char *array;            /* member of an npz; NULL: the first */
} npy_reader;

/* A place in the header's text. */
typedef struct npy_header {
    const char *name; /* of the file */
    const char *text, *at;
    bool has_descr, has_order, has_shape, is_fortran;
    char descr[32];
    sgm_shape shape;
} npy_header;

static sgm_status fail_header(const npy_header *header, const char *expected)
{
    return sgm_fail(
        SGM_ERROR_FORMAT,
        "%s: in the npy header, at its character %d, %s was expected, '%.12s' came; the file is damaged, or "
        "was not written by NumPy",
        header->name, (int)(header->at - header->text) + 1, expected, header->at);
}

static void skip_blanks(npy_header *header)
{
    header->at += strspn(header->at, " \t\n");
}

static bool accept(npy_header *header, const char *token)
{
    size_t length = strlen(token);
    skip_blanks(header);
    if (strncmp(header->at, token, length) != 0)
        return false;
    header->at += length;
    return true;
}

static sgm_status parse_string(npy_header *header, char *out, size_t size)
{
    skip_blanks(header);
    char quote = *header->at;
    if (quote != '\'' && quote != '"')
        return fail_header(header, "a quoted text");
    const char *end = strchr(header->at + 1, quote);
    if (end == NULL || (size_t)(end - header->at) > size)
        return fail_header(header, "a short quoted text");
    size_t length = (size_t)(end - header->at - 1);
    memcpy(out, header->at + 1, length);
    out[length] = '\0';
    header->at = end + 1;
    return SGM_OK;
}

static sgm_status parse_dimension(npy_header *header, int64_t *dimension)
{
    const char *start = header->at;
    *dimension = 0;
    while (*header->at >= '0' && *header->at <= '9')
        if (__builtin_mul_overflow(*dimension, (int64_t)10, dimension) ||
            __builtin_add_overflow(*dimension, *header->at++ - '0', dimension))
            return fail_header(header, "a dimension below 2^63");
    if (header->at == start)
        return fail_header(header, "a dimension");
    if (*header->at == 'L') /* as Python 2 wrote long numbers */
        header->at++;
    return SGM_OK;
}

/* (), (3,), (3, 4), (3, 4,) */
static sgm_status parse_shape(npy_header *header)
{
    if (!accept(header, "("))
        return fail_header(header, "a shape such as (3, 4)");
    bool has_comma = true;
    while (!accept(header, ")")) {
        if (!has_comma)
            return fail_header(header, "a comma or a closing parenthesis");
        if (header->shape.rank == SGM_MAX_RANK)
            return fail_header(header, "the end of the shape after at most 8 dimensions");
        SGM_TRY(parse_dimension(header, &header->shape.dims[header->shape.rank++]));
        has_comma = accept(header, ",");
    }
    if (header->shape.rank == 1 && !has_comma)
        return fail_header(header, "a comma in the shape of one dimension");
    return SGM_OK;
}

static sgm_status parse_descr(npy_header *header)
{
    skip_blanks(header);
    if (*header->at == '[')
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "%s: a plain number type was expected, the array has structured elements; save each "
                        "of its fields "
                        "as an array of its own",
                        header->name);
    return parse_string(header, header->descr, sizeof header->descr);
}

static sgm_status parse_entry(npy_header *header)
{
    char key[32];
    const char *start = header->at;
    SGM_TRY(parse_string(header, key, sizeof key));
    if (!accept(header, ":"))
        return fail_header(header, "a colon");
    if (strcmp(key, "descr") == 0 && !header->has_descr) {
        header->has_descr = true;
        return parse_descr(header);
    }
    if (strcmp(key, "shape") == 0 && !header->has_shape) {
        header->has_shape = true;
        return parse_shape(header);
    }
    if (strcmp(key, "fortran_order") == 0 && !header->has_order) {
        header->has_order = true;
        header->is_fortran = accept(header, "True");
        return header->is_fortran || accept(header, "False") ? SGM_OK : fail_header(header, "True or False");
    }
    header->at = start;
    return fail_header(header, "one of the keys descr, fortran_order and shape, each once,");
}

static sgm_status parse_header(npy_header *header)
{
    if (!accept(header, "{"))
        return fail_header(header, "{");
    for (bool has_comma = true; !accept(header, "}");) {
        if (!has_comma)
            return fail_header(header, "a comma or }");
        SGM_TRY(parse_entry(header));
        has_comma = accept(header, ",");
    }
    skip_blanks(header);
    if (*header->at != '\0')
        return fail_header(header, "nothing but blanks after }");
    if (!header->has_descr || !header->has_order || !header->has_shape)
        return fail_header(header, "descr, fortran_order and shape before the end");
    return SGM_OK;
}

/* '<f4', '|u1', '>i8', '=f8' ... */
static sgm_status set_element(sgm__element *element, const npy_header *header)
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
                    "expected, '%s' came; "
                    "%ssave the array as numbers, e.g. with astype('float32')",
                    header->name, descr, what);
}

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
    if (*size > LONGEST_HEADER)
        return sgm_fail(SGM_ERROR_FORMAT,
                        "%s: an npy header of at most %d bytes was expected, %zu came; the file is "
                        "damaged",
                        stream->name, LONGEST_HEADER, *size);
    return SGM_OK;
}

static sgm_status interpret(npy_reader *self, const char *text)
{
    npy_header header = {.name = self->input.stream->name, .text = text, .at = text};
    SGM_TRY(parse_header(&header));
    SGM_TRY(set_element(&self->input.element, &header));
    SGM_TRY(sgm__array_set_shape(&self->input, "npy", &header.shape));
    if (header.is_fortran && header.shape.rank > 1)
        return sgm_fail(
            SGM_ERROR_UNSUPPORTED,
            "%s: an array in C order was expected, this one is in Fortran order, so that its records are not "
            "in one piece; save numpy.ascontiguousarray(a)",
            header.name);
    return SGM_OK;
}

static sgm_status read_header(npy_reader *self)
{
    sgm_stream *stream = self->input.stream;
    char magic[MAGIC_SIZE];
    size_t size = 0;
    SGM_TRY(sgm__stream_read_exactly(stream, magic, sizeof magic, "the npy magic"));
    if (memcmp(magic, MAGIC, MAGIC_SIZE) != 0)
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

/* The stream of the array itself: the file, or a member of it. */
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
    stream = sgm_source_open(self->input.source); /* again from the start: not every stream can go back */
    if (stream == NULL)
        return sgm__last_failure();
    self->input.stream = is_zip ? sgm__archive_open(stream, self->array) : stream;
    return self->input.stream != NULL ? SGM_OK : sgm__last_failure();
}

static sgm_status npy_rewind(void *user)
{
    npy_reader *self = user;
    sgm_stream_close(self->input.stream);
    self->input.stream = NULL;
    SGM_TRY(open_array(self));
    return read_header(self);
}

static sgm_status npy_read(void *user, int64_t count, sgm_records *records)
{
    return sgm__array_read(&((npy_reader *)user)->input, count, records);
}

static void npy_free(void *user)
{
    npy_reader *self = user;
    sgm__array_free(&self->input);
    sgm__free(self->array);
    sgm__free(self);
}

static char *member_name(const char *array)
{
    size_t length = strlen(array);
    bool is_file = length > 4 && strcmp(array + length - 4, ".npy") == 0;
    return sgm__format("%s%s", array, is_file ? "" : ".npy");
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
    return sgm_reader_create(&type, self, source->name);
}
