/* Without kernels: every step runs on the host. */
#include "handlers/device/code.h"

void sgm__device_code_free(sgm__device_code *code)
{
    if (code != NULL)
        sgm__free(code->steps);
    sgm__free(code);
}

sgm_status sgm__device_code_create(const sgm__plan *plan, const sgm_device_info *info,
                                   sgm__device_code **code)
{
    (void)info;
    sgm__device_code *made = sgm__calloc(1, sizeof *made);
    if (made == NULL)
        return SGM_ERROR_MEMORY;
    made->steps = sgm__calloc((size_t)plan->step_count + 1, sizeof *made->steps);
    if (made->steps == NULL) {
        sgm__device_code_free(made);
        return SGM_ERROR_MEMORY;
    }
    for (int32_t i = 0; i < plan->step_count; i++)
        made->steps[i].kind = SGM__DEVICE_HOST;
    *code = made;
    return SGM_OK;
}

bool sgm__device_code_has(const sgm_op *op, sgm_dtype dtype)
{
    (void)op, (void)dtype;
    return false;
}
