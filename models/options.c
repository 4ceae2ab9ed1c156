#include "options.h"

#include <string.h>

sgm_status sgm__take_options(void *own, size_t size, const void *given)
{
    size_t given_size = sizeof given_size;
    if (given)
        memcpy(&given_size, given, sizeof given_size);
    if (given_size < sizeof given_size)
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "struct_size of the options is %zu, set it to the size of their struct, and give options by "
            "name",
            given_size);
    memset(own, 0, size);
    if (given)
        memcpy(own, given, given_size < size ? given_size : size);
    return SGM_OK;
}
