/* Reads idx files, the format of MNIST (LeCun, Cortes and Burges, 1998): an array of numbers of any shape.
 *
 * The header is two zero bytes, a byte for the element type, a byte for the number of dimensions, and each
 * dimension as 4 bytes; all numbers are big-endian. The first dimension counts the examples. Elements are
 * read by reader_array.c. Opening the file and parsing its header are one function, idx_rewind, which also
 * prepares the reader. ready_made.c uses this reader for MNIST. */
#include "data/read/reader.h"

/* Type codes of the format, and what their elements become. `swapped` is set when the type is found: it
 * depends on the processor. */
static const struct {
    unsigned char code;
    sgm__element element;
} idx_types[] = {
    {0x08, {SGM_UINT8, 1, 'u', false}},   {0x09, {SGM_INT32, 1, 'i', false}},
    {0x0B, {SGM_INT32, 2, 'i', false}},   {0x0C, {SGM_INT32, 4, 'i', false}},
    {0x0D, {SGM_FLOAT32, 4, 'f', false}}, {0x0E, {SGM_FLOAT64, 8, 'f', false}},
};

static sgm_status find_type(sgm__array_input *self, const unsigned char *magic)
{
    for (size_t i = 0; i < sizeof idx_types / sizeof *idx_types; i++) {
        if (magic[0] == 0 && magic[1] == 0 && magic[2] == idx_types[i].code) {
            self->element = idx_types[i].element;
            self->element.swapped = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
            return SGM_OK;
        }
    }
    return sgm_fail(SGM_ERROR_FORMAT,
                    "%s: an idx file begins with 00 00 and a type (08, 09, 0b, 0c, 0d, 0e), this one with "
                    "%02x %02x %02x; %s",
                    self->stream->name, magic[0], magic[1], magic[2],
                    magic[0] == 0x1f && magic[1] == 0x8b ? "it is gzipped: use sgm_compressed_source"
                                                         : "it is of another format, or damaged");
}

/* Opens the file from its start and parses the header. The dimensions are put together byte by byte, the
 * first byte being the highest. */
static sgm_status idx_rewind(void *user)
{
    sgm__array_input *self = user;
    unsigned char magic[4], sizes[4 * SGM_MAX_RANK];
    sgm_stream_close(self->stream);
    self->stream = sgm_source_open(self->source);
    if (self->stream == NULL)
        return sgm_last_status();
    SGM_TRY(sgm__stream_read_exactly(self->stream, magic, sizeof magic, "the idx header"));
    SGM_TRY(find_type(self, magic));
    if (magic[3] > SGM_MAX_RANK)
        return sgm_fail(SGM_ERROR_FORMAT,
                        "%s: at most %d dimensions are possible, the idx header gives %d; the file is "
                        "damaged or of another format",
                        self->stream->name, SGM_MAX_RANK, magic[3]);
    SGM_TRY(sgm__stream_read_exactly(self->stream, sizes, (size_t)magic[3] * 4, "the idx header"));
    sgm_shape shape = {.rank = magic[3]};
    for (int i = 0; i < shape.rank; i++)
        shape.dims[i] =
            (int64_t)sizes[4 * i] << 24 | sizes[4 * i + 1] << 16 | sizes[4 * i + 2] << 8 | sizes[4 * i + 3];
    return sgm__array_set_shape(self, "idx", &shape);
}

static sgm_status idx_read(void *user, int64_t count, sgm_examples *examples)
{
    return sgm__array_read(user, count, examples);
}

static void idx_free(void *user)
{
    sgm__array_free(user);
    sgm__free(user);
}

static void idx_describe(const void *pointer, sgm__key *key)
{
    const sgm__array_input *self = pointer;
    sgm__source_describe(self->source, key);
}

sgm_reader *sgm_idx_reader(sgm_source *source)
{
    static const sgm_reader_type type = {"idx", idx_rewind, idx_read, idx_rewind, idx_free};
    if (source == NULL) {
        sgm__fail_missing("source");
        return NULL;
    }
    sgm__array_input *self = sgm__calloc(1, sizeof *self);
    if (self == NULL) {
        sgm_source_free(source);
        return NULL;
    }
    self->source = source;
    return sgm__reader_create(&type, self, source->name, idx_describe);
}
