/* Parts that the readers share: buffered input, memory for examples, arrays of fixed-size elements. Internal
 * to src/data/read.
 *
 * A reader turns the bytes of a source into examples: arrays (idx, npy, bytes, characters, images) or rows of
 * text cells (csv). Extractors (extractor.h) call readers through the public functions (sgm_reader_read and
 * so on in reader.c), which check them, since programs write readers, too. Examples belong to the reader and
 * are valid until its next call. A reader runs on one thread at a time. */
#ifndef SGM_DATA_READ_READER_H
#define SGM_DATA_READ_READER_H

#include "data/read/source.h"

/* Buffered input for readers that look at single bytes. Owns its source. Zeroed: nothing is open. Byte
 * buffer[begin] is the next one, and is at `position` in the stream. */
typedef struct sgm__input {
    sgm_source *source;
    sgm_stream *stream;
    unsigned char *buffer;
    size_t begin, end; /* what of the buffer was not taken yet */
    uint64_t position; /* of the next byte in the stream, for messages */
} sgm__input;
/* Opens the source, or opens it again from its start. */
sgm_status sgm__input_open(sgm__input *input);
void sgm__input_close(sgm__input *input);
/* Reads more if the buffer is empty; if it is empty afterwards, the stream has ended. */
sgm_status sgm__input_fill(sgm__input *input);

/* As sgm_reader_create, for a reader that says what its examples depend on, options and sources. */
typedef void (*sgm__reader_describes)(const void *self, sgm__key *key);
sgm_reader *sgm__reader_create(const sgm_reader_type *type, void *self, const char *source_name,
                               sgm__reader_describes describe);
void sgm__reader_describe(const sgm_reader *reader, sgm__key *key);

/* Memory for a run of examples that is used again for the next run. It grows with what really arrives: a
 * header that promises a huge array must not allocate it. */
typedef struct sgm__bytes {
    unsigned char *data;
    size_t length, capacity;
    sgm_tensor *tensor; /* around `data`, for sgm__bytes_publish; freed before `data` moves */
} sgm__bytes;
/* Makes room for `more` bytes behind the present ones. `length` stays. */
sgm_status sgm__bytes_reserve(sgm__bytes *bytes, size_t more);
/* Replaces the content by up to `count` examples of `size` bytes each from the stream. *whole becomes the
 * number of whole examples that came; if the stream ended within one, bytes->length is larger than *whole *
 * size. */
sgm_status sgm__bytes_read(sgm__bytes *bytes, sgm_stream *stream, int64_t count, uint64_t size,
                           int64_t *whole);
/* Puts a tensor (count, dims of `example`) around the bytes into `examples`. Tensor and bytes stay the
 * buffer's. */
sgm_status sgm__bytes_publish(sgm__bytes *bytes, sgm_dtype dtype, int64_t count, const sgm_shape *example,
                              sgm_examples *examples);
void sgm__bytes_free(sgm__bytes *bytes);

/* How numbers are stored in a file, and which type they become. */
typedef struct sgm__element {
    sgm_dtype dtype; /* what they become */
    uint8_t size;    /* in the file */
    char kind;       /* b: bool, i: signed integer, u: unsigned integer, f: floating point */
    bool swapped;    /* the file's byte order is not the processor's */
} sgm__element;
/* The state of a reader of one array in a binary file (reader_idx.c, reader_npy.c): a header that the reader
 * itself parses, then `count` examples of `example_size` bytes each, read by reader_array.c. */
typedef struct sgm__array_input {
    sgm_source *source;
    sgm_stream *stream; /* NULL before the first rewind and after one that failed to open it */
    sgm__element element;
    int64_t count, next;    /* examples of the array; number of the next one */
    sgm_shape example;      /* of one */
    uint64_t example_size;  /* bytes in the file */
    uint64_t data_offset;   /* where the first example begins */
    sgm__bytes raw, values; /* as in the file; converted to another size of elements, where that differs */
} sgm__array_input;
/* Takes over the shape of a whole array, examples first, from a header that was just read: sets count,
 * example, example_size. An array without dimensions or with empty examples is an error. `format` is named in
 * messages. */
sgm_status sgm__array_set_shape(sgm__array_input *array, const char *format, const sgm_shape *shape);
/* Reads up to `count` examples from the present position on; examples->count is 0 at the end. A file that
 * ends early, or goes on behind the last example, is an error. */
sgm_status sgm__array_read(sgm__array_input *array, int64_t count, sgm_examples *examples);
void sgm__array_free(sgm__array_input *array);

/* The `self` of a reader if its type has this read function, else NULL: a safe cast for functions that want a
 * certain reader. */
void *sgm__reader_self(sgm_reader *reader,
                       sgm_status (*read)(void *self, int64_t count, sgm_examples *examples));

/* Decodes a PNG or JPEG file and appends it to `bytes`: height * width * channels bytes, row by row, channels
 * (1 or 3) together. The image is scaled to *width x *height by area average; if both are 0, it keeps its own
 * size, which is written there, unless decoding fails. */
sgm_status sgm__image_decode(const char *path, int32_t *width, int32_t *height, int32_t channels,
                             sgm__bytes *bytes);
/* The same of a file that is in memory; `name` is for messages. */
sgm_status sgm__image_decode_memory(const char *name, const void *image, size_t length, int32_t *width,
                                    int32_t *height, int32_t channels, sgm__bytes *bytes);
/* How a picture is brought to another size: by the mean of what a pixel covers, or by a filter of Pillow's.
 */
typedef enum sgm__image_filter { SGM__IMAGE_AREA, SGM__IMAGE_BILINEAR, SGM__IMAGE_BICUBIC } sgm__image_filter;
/* "bilinear". */
const char *sgm__image_filter_name(sgm__image_filter filter);
bool sgm__image_filter_find(const char *name, sgm__image_filter *filter);
/* Pixels row by row with their channels together. */
typedef struct sgm__image {
    const unsigned char *pixels;
    int32_t width, height, channels;
} sgm__image;
/* Writes width * height * channels bytes to `to`. Not for SGM__IMAGE_AREA, which sgm__image_decode does. */
sgm_status sgm__image_resize(sgm__image_filter filter, const sgm__image *from, int32_t width, int32_t height,
                             unsigned char *to);
/* Appends the values of a mask, a PNG file with a palette or of grey, one byte for each pixel; scaled to
 * *width x *height by taking the nearest pixel, or if both are 0 in its own size, which is written there. */
sgm_status sgm__mask_decode(const char *path, int32_t *width, int32_t *height, sgm__bytes *bytes);
/* Writes such a file, with a palette. */
sgm_status sgm__mask_write(const char *path, int32_t width, int32_t height, const unsigned char *values);
/* The size that a PNG or JPEG file states, without decoding its pixels. */
sgm_status sgm__image_size(const char *path, int32_t *width, int32_t *height);

#endif
