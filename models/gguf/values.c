/* Metadata of a file of GGUF, by its keys. */
#include "gguf/gguf.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *key, const void *value)
{
    return strcmp(key, ((const sgm__gguf_value *)value)->key);
}

const sgm__gguf_value *sgm__gguf_find(const sgm__gguf *file, const char *key)
{
    return file->value_count > 0
               ? bsearch(key, file->values, file->value_count, sizeof *file->values, compare)
               : NULL;
}

sgm_status sgm__gguf_fail(const sgm__gguf *file, const char *key, const char *format, ...)
{
    char message[500];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return sgm_fail(SGM_ERROR_FORMAT, "'%s': '%s' %s", file->path, key, message);
}

static const unsigned char *bytes_of(const sgm__gguf *file, const sgm__gguf_value *value)
{
    return (const unsigned char *)file->header.data + value->at;
}

static sgm_status fail_kind(const sgm__gguf *file, const sgm__gguf_value *value, const char *wanted)
{
    static const char *const kinds[SGM__GGUF_KINDS] = {
        "uint8",         "int8",   "uint16",   "int16",  "uint32", "int32",  "float32",
        "a truth value", "a text", "an array", "uint64", "int64",  "float64"};
    return sgm__gguf_fail(file, value->key, "is %s%s; %s is wanted", value->array ? "an array of " : "",
                          kinds[value->kind], wanted);
}

/* A whole number in its type, of which uint64 may be too large. */
static bool to_whole(sgm__gguf_kind kind, const unsigned char *bytes, int64_t *out)
{
    uint64_t u64 = 0;
#define CASE(name, type)                                                                                     \
    case name: {                                                                                             \
        type number;                                                                                         \
        memcpy(&number, bytes, sizeof number);                                                               \
        *out = number;                                                                                       \
        return true;                                                                                         \
    }
    switch (kind) {
        CASE(SGM__GGUF_UINT8, uint8_t)
        CASE(SGM__GGUF_UINT16, uint16_t)
        CASE(SGM__GGUF_INT16, int16_t)
        CASE(SGM__GGUF_UINT32, uint32_t)
        CASE(SGM__GGUF_INT32, int32_t)
        CASE(SGM__GGUF_INT64, int64_t)
    case SGM__GGUF_INT8:
        *out = bytes[0] < 128 ? bytes[0] : bytes[0] - 256;
        return true;
    case SGM__GGUF_UINT64:
        memcpy(&u64, bytes, sizeof u64);
        *out = u64 <= INT64_MAX ? (int64_t)u64 : INT64_MAX;
        return true;
    default:
        return false;
    }
#undef CASE
}

sgm_status sgm__gguf_integer(const sgm__gguf *file, const char *key, int64_t *out)
{
    const sgm__gguf_value *value = sgm__gguf_find(file, key);
    if (value == NULL)
        return SGM_OK;
    return !value->array && to_whole(value->kind, bytes_of(file, value), out)
               ? SGM_OK
               : fail_kind(file, value, "a whole number");
}

/* The decimal number of the fewest digits that float32 holds as this one, which is what was meant: 1e-05. */
static double shortest(float number)
{
    char text[32];
    for (int digits = 6; digits <= 9 && isfinite(number); digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)number);
        if (strtof(text, NULL) == number)
            return strtod(text, NULL);
    }
    return number;
}

sgm_status sgm__gguf_number(const sgm__gguf *file, const char *key, double *out)
{
    const sgm__gguf_value *value = sgm__gguf_find(file, key);
    float number;
    if (value == NULL)
        return SGM_OK;
    if (value->array || (value->kind != SGM__GGUF_FLOAT32 && value->kind != SGM__GGUF_FLOAT64))
        return fail_kind(file, value, "a float");
    if (value->kind == SGM__GGUF_FLOAT64) {
        memcpy(out, bytes_of(file, value), sizeof *out);
        return SGM_OK;
    }
    memcpy(&number, bytes_of(file, value), sizeof number);
    *out = shortest(number);
    return SGM_OK;
}

sgm_status sgm__gguf_flag(const sgm__gguf *file, const char *key, bool *out)
{
    const sgm__gguf_value *value = sgm__gguf_find(file, key);
    if (value == NULL)
        return SGM_OK;
    if (value->array || value->kind != SGM__GGUF_BOOL)
        return fail_kind(file, value, "a truth value");
    *out = *bytes_of(file, value) != 0;
    return SGM_OK;
}

static void split_text(const unsigned char *bytes, const char **text, size_t *size)
{
    uint64_t count;
    memcpy(&count, bytes, sizeof count);
    *text = (const char *)bytes + sizeof count;
    *size = (size_t)count;
}

sgm_status sgm__gguf_text(const sgm__gguf *file, const char *key, const char **out, size_t *size)
{
    const sgm__gguf_value *value = sgm__gguf_find(file, key);
    if (value == NULL)
        return SGM_OK;
    if (value->array || value->kind != SGM__GGUF_TEXT)
        return fail_kind(file, value, "a text");
    split_text(bytes_of(file, value), out, size);
    return SGM_OK;
}

sgm_status sgm__gguf_list_of(const sgm__gguf *file, const char *key, sgm__gguf_kind kind, sgm__gguf_list *out)
{
    const sgm__gguf_value *value = sgm__gguf_find(file, key);
    *out = (sgm__gguf_list){0};
    if (value == NULL)
        return SGM_OK;
    if (!value->array || value->kind != kind)
        return fail_kind(file, value,
                         kind == SGM__GGUF_TEXT      ? "an array of texts"
                         : kind == SGM__GGUF_FLOAT32 ? "an array of float32"
                                                     : "an array of int32");
    *out = (sgm__gguf_list){.at = bytes_of(file, value), .count = value->count};
    return SGM_OK;
}

void sgm__gguf_next_text(sgm__gguf_list *list, const char **text, size_t *size)
{
    split_text(list->at, text, size);
    list->at += sizeof(uint64_t) + *size;
}

int32_t sgm__gguf_next_int32(sgm__gguf_list *list)
{
    int32_t number;
    memcpy(&number, list->at, sizeof number);
    list->at += sizeof number;
    return number;
}

float sgm__gguf_next_float32(sgm__gguf_list *list)
{
    float number;
    memcpy(&number, list->at, sizeof number);
    list->at += sizeof number;
    return number;
}
