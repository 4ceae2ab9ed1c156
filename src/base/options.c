/* Reads structs of options of callers that may have been compiled against an older or newer header.
 *
 * Every function with options (SGM_WITH_OPTIONS in sigma/base.h) calls sgm__options_read first and then
 * uses its own copy alone. The caller's struct_size says how many bytes its struct has: options are only ever
 * added at the end, and 0 always means the default, so a shorter struct is filled up with zeros. A longer one
 * comes from a newer header; it is accepted as long as the members that this library does not know are 0. */
#include "base/base.h"

static bool is_zero(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

/* A struct_size too small to hold itself means that the macro found a value without a name (SGM_OPTIONS_SIZE
 * gives 0 then), or that a caller without the macro forgot to set it; one message covers both. */
sgm_status sgm__options_read(void *own, size_t size, const void *given, const char *what)
{
    size_t given_size = size;
    memset(own, 0, size);
    if (given != NULL)
        memcpy(&given_size, given, sizeof given_size); /* struct_size is the first member */
    if (given_size < sizeof given_size)
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "%s: options have names, as .name = value, and the first one here has none; without the macro: "
            "struct_size of the options is %zu, set it to the size of their struct",
            what, given_size);
    if (given_size > size && !is_zero((const unsigned char *)given + size, given_size - size))
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "%s: has options of %zu bytes, of which this library knows %zu: it is older than the headers",
            what, given_size, size);
    if (given != NULL)
        memcpy(own, given, given_size < size ? given_size : size);
    memcpy(own, &size, sizeof size);
    return SGM_OK;
}
