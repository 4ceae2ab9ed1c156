/* Reads arrays of numbers from binary files whose header is known: shape, element types, byte order.
 *
 * reader_idx.c and reader_npy.c parse their headers into an sgm__array_input (reader.h) and call
 * sgm__array_read. Elements become one of Sigma's types: where their size stays, they are converted in place;
 * where it grows (small integers to int32, half to float32), into a second buffer. Sizes in headers are
 * checked before they are used, as files come from anywhere. */
#include "data/read/reader.h"
#include "tensor/tensor_internal.h"

/* The header was read, so the stream stands at the first example. */
sgm_status sgm__array_set_shape(sgm__array_input *array, const char *format, const sgm_shape *shape)
{
    const char *name = array->stream->name;
    char text[128];
    if (shape->rank == 0)
        return sgm_fail(
            SGM_ERROR_UNSUPPORTED,
            "%s: the %s array has no dimension, at least one (the examples) was expected; save it with one",
            name, format);
    array->count = shape->dims[0];
    array->next = 0;
    array->example = sgm_shape_create(shape->rank - 1, shape->dims + 1);
    int64_t elements = sgm_shape_elements(&array->example);
    if (elements <= 0 ||
        __builtin_mul_overflow((uint64_t)elements, array->element.size, &array->example_size))
        return sgm_fail(
            SGM_ERROR_FORMAT,
            "%s: the %s header gives the shape %s, whose examples are empty or too large for any memory; "
            "the file is damaged, or of another format",
            name, format, sgm_shape_text(shape, text, sizeof text));
    array->data_offset = array->stream->position;
    return SGM_OK;
}

/* The bits of one element of 1, 2, 4 or 8 bytes, in the processor's byte order. memcpy, since elements of a
 * file need not be aligned. */
static uint64_t load(const unsigned char *bytes, uint8_t size, bool swapped)
{
    uint64_t value8;
    uint32_t value4;
    uint16_t value2;
    switch (size) {
    case 1:
        return *bytes;
    case 2:
        memcpy(&value2, bytes, sizeof value2);
        return swapped ? __builtin_bswap16(value2) : value2;
    case 4:
        memcpy(&value4, bytes, sizeof value4);
        return swapped ? __builtin_bswap32(value4) : value4;
    default:
        memcpy(&value8, bytes, sizeof value8);
        return swapped ? __builtin_bswap64(value8) : value8;
    }
}

/* For elements whose size stays: booleans become 0 or 1, others have their bytes swapped if need be. */
static void convert_in_place(unsigned char *data, size_t elements, const sgm__element *element)
{
    size_t size = element->size;
    if (element->dtype == SGM_BOOL) {
        for (size_t i = 0; i < elements; i++)
            data[i] = data[i] != 0;
    } else if (element->swapped && size > 1) {
        for (size_t i = 0; i < elements; i++) {
            uint64_t value = load(data + i * size, element->size, true);
            uint32_t low = (uint32_t)value;
            memcpy(data + i * size, size == 4 ? (const void *)&low : (const void *)&value, size);
        }
    }
}

/* For elements that become a larger type: half becomes float32, integers become int32 or int64. A signed
 * element is shifted to the top of 64 bits and back, which extends its sign. The value is then stored by its
 * low bytes. */
static void widen(const unsigned char *data, unsigned char *out, size_t elements, const sgm__element *element)
{
    size_t width = sgm_dtype_size(element->dtype);
    unsigned shift = 64u - 8u * element->size;
    for (size_t i = 0; i < elements; i++) {
        uint64_t bits = load(data + i * element->size, element->size, element->swapped);
        if (element->kind == 'f') {
            float value = sgm__float16_to_float((uint16_t)bits);
            memcpy(out + i * width, &value, width);
            continue;
        }
        int64_t wide = element->kind == 'i' ? (int64_t)(bits << shift) >> shift : (int64_t)bits;
        int32_t narrow = (int32_t)wide;
        memcpy(out + i * width, width == 4 ? (const void *)&narrow : (const void *)&wide, width);
    }
}

/* uint64 becomes int64; numbers that do not fit are an error. (i * 8 / example_size) is the example within
 * this run. */
static sgm_status check_range(const sgm__array_input *array, size_t elements)
{
    for (size_t i = 0; i < elements; i++)
        if (load(array->raw.data + i * 8, 8, array->element.swapped) > INT64_MAX)
            return sgm_fail(
                SGM_ERROR_UNSUPPORTED,
                "%s: example %lld has an unsigned number above 9223372036854775807, which fits no type here; "
                "save the array as float64",
                array->stream->name, (long long)(array->next + (int64_t)(i * 8 / array->example_size)));
    return SGM_OK;
}

/* Converts `count` examples in `raw` and publishes them from there or from `values`. */
static sgm_status convert(sgm__array_input *array, int64_t count, sgm_examples *examples)
{
    const sgm__element *element = &array->element;
    size_t elements = (size_t)count * (size_t)(array->example_size / element->size);
    size_t width = sgm_dtype_size(element->dtype), size;
    if (element->kind == 'u' && element->size == 8)
        SGM_TRY(check_range(array, elements));
    if (width == element->size) {
        convert_in_place(array->raw.data, elements, element);
        return sgm__bytes_publish(&array->raw, element->dtype, count, &array->example, examples);
    }
    if (sgm__mul_overflows(elements, width, &size))
        return sgm__fail_memory(SIZE_MAX);
    array->values.length = 0;
    SGM_TRY(sgm__bytes_reserve(&array->values, size));
    widen(array->raw.data, array->values.data, elements, element);
    return sgm__bytes_publish(&array->values, element->dtype, count, &array->example, examples);
}

/* Reads one byte to see that nothing follows the last example: bytes there mean that the header does not
 * describe this file. */
static sgm_status check_end(const sgm__array_input *array)
{
    char byte;
    size_t got;
    SGM_TRY(sgm_stream_read(array->stream, &byte, 1, &got));
    if (got == 0)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_FORMAT,
                    "%s: %lld examples were expected, but the file goes on at byte %llu; it is damaged, or "
                    "holds more than one array: save one array in a file",
                    array->stream->name, (long long)array->count,
                    (unsigned long long)(array->stream->position - 1));
}

/* The end of the file is checked with the last examples, not at the next call, which may never come. */
sgm_status sgm__array_read(sgm__array_input *array, int64_t count, sgm_examples *examples)
{
    int64_t left = array->count - array->next, wanted = count < left ? count : left, whole = 0;
    if (wanted > 0)
        SGM_TRY(sgm__bytes_read(&array->raw, array->stream, wanted, array->example_size, &whole));
    if (whole < wanted)
        return sgm_fail(
            SGM_ERROR_FORMAT,
            "%s: the header promises %lld examples of %llu bytes, but the file ends in example %lld, at byte "
            "%llu; it is incomplete: get it again",
            array->stream->name, (long long)array->count, (unsigned long long)array->example_size,
            (long long)(array->next + whole), (unsigned long long)array->stream->position);
    if (whole > 0)
        SGM_TRY(convert(array, whole, examples));
    array->next += whole;
    return array->next == array->count ? check_end(array) : SGM_OK;
}

void sgm__array_free(sgm__array_input *array)
{
    sgm_stream_close(array->stream);
    sgm_source_free(array->source);
    sgm__bytes_free(&array->raw);
    sgm__bytes_free(&array->values);
}
