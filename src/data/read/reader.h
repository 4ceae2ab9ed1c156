/* What the readers share: buffered input, memory for examples. Internal to the data pipeline. */
#ifndef SGM_DATA_READ_READER_H
#define SGM_DATA_READ_READER_H

#include "data/read/source.h"

/* Buffered input from a source, which it owns; remembers the place for messages. Zeroed: nothing is open. */
typedef struct sgm__input {
    sgm_source *source;
    sgm_stream *stream;
    unsigned char *buffer;
    size_t begin, end; /* what of the buffer was not yet taken */
    uint64_t position; /* of the next byte */
} sgm__input;
/* Opens (from the start, also again). */
sgm_status sgm__input_open(sgm__input *input);
void sgm__input_close(sgm__input *input);
/* Refills an empty buffer; afterwards it is empty only at the end. */
sgm_status sgm__input_fill(sgm__input *input);

/* Bytes for a run of examples, which grow with what really arrives, not with what a file promises. */
typedef struct sgm__bytes {
    unsigned char *data;
    size_t length, capacity;
    sgm_tensor *tensor; /* around `data` */
} sgm__bytes;
/* Makes room for `more` bytes behind the present ones. */
sgm_status sgm__bytes_reserve(sgm__bytes *bytes, size_t more);
/* Replaces the content by up to `count` examples of `size` bytes each from the stream; *whole is set to the
 * number of whole examples that came; bytes->length tells whether a part of one follows. */
sgm_status sgm__bytes_read(sgm__bytes *bytes, sgm_stream *stream, int64_t count, uint64_t size,
                           int64_t *whole);
/* Makes a tensor (count, dims of `example`) around the bytes, which stay the buffer's, and puts it into
 * `examples`. */
sgm_status sgm__bytes_publish(sgm__bytes *bytes, sgm_dtype dtype, int64_t count, const sgm_shape *example,
                              sgm_examples *examples);
void sgm__bytes_free(sgm__bytes *bytes);

/* State shared by the readers of fixed-size examples. Elements are stored in the file as `type` says. */
typedef struct sgm__element {
    sgm_dtype dtype; /* what they become */
    uint8_t size;    /* in the file */
    char kind;       /* b: bool, i: signed, u: unsigned, f: floating */
    bool swapped;    /* the file's byte order is not the processor's */
} sgm__element;
typedef struct sgm__array_input {
    sgm_source *source;
    sgm_stream *stream; /* NULL before prepare and after the end of an aborted rewind */
    sgm__element element;
    int64_t count, next;   /* examples in all; the next one */
    sgm_shape example;     /* of one */
    uint64_t example_size; /* bytes in the file */
    uint64_t data_offset;  /* where the first example begins */
    sgm__bytes raw, values;
} sgm__array_input;
/* Checks the shape of a whole array (examples first) and sets count, example, example_size; `format` for
 * messages. */
sgm_status sgm__array_set_shape(sgm__array_input *array, const char *format, const sgm_shape *shape);
/* Examples from the present position on; checks at the end that nothing follows. */
sgm_status sgm__array_read(sgm__array_input *array, int64_t count, sgm_examples *examples);
void sgm__array_free(sgm__array_input *array);

/* The `self` of a reader of this type (recognised by its read function), NULL for another type. */
void *sgm__reader_self(sgm_reader *reader,
                       sgm_status (*read)(void *self, int64_t count, sgm_examples *examples));

/* Decodes one image file as uint8 rows, scaled by area average to width x height; both 0: its own size is
 * kept and written there. `channels` is 1 or 3. Appends height * width * channels bytes. */
sgm_status sgm__image_decode(const char *path, int32_t *width, int32_t *height, int32_t channels,
                             sgm__bytes *bytes);

#endif
