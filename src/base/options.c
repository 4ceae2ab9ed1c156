/* Options: structs of callers that may have been compiled with another version of the headers. */
#include "base/base.h"

static bool is_zero(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

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
