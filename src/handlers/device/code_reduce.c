/* Reductions. */
#include "handlers/device/code_internal.h"

sgm_status sgm__device_write_reduction(sgm__device_render *r, int32_t number)
{
    return sgm__device_write_shared(r, number);
}
