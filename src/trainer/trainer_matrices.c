/* Matrices that adapters keep as 8 bits, by the name that they have without that: codes and scales are states
 * of their own, and a matrix that is set becomes both, one that is asked for is made of both. So models,
 * checkpoints and programs that know nothing of codes go on working. */
#include "network/rerecord.h"
#include "ops/quantized.h"
#include "trainer/trainer_struct.h"

bool sgm__trainer_has_codes(const sgm_trainer *trainer, const char *matrix)
{
    return sgm__network_codes(trainer->learner.network, matrix) != NULL;
}

/* Whether the value has the shape and the type that the matrix would have. */
static sgm_status check_matrix(const sgm_trainer *trainer, const char *matrix, const sgm_tensor *value)
{
    const sgm_shape *shape = &sgm__network_codes(trainer->learner.network, matrix)->type.shape;
    const sgm_dtype dtype = sgm__network_scales(trainer->learner.network, matrix)->type.dtype;
    char is[128], wanted[128];
    if (sgm_tensor_dtype(value) == dtype && sgm_shape_equal(sgm_tensor_shape(value), shape))
        return SGM_OK;
    return sgm_fail(SGM_ERROR_SHAPE, "state '%s' is %s %s; the value is %s %s", matrix, sgm_dtype_name(dtype),
                    sgm_shape_text(shape, wanted, sizeof wanted), sgm_dtype_name(sgm_tensor_dtype(value)),
                    sgm_shape_text(sgm_tensor_shape(value), is, sizeof is));
}

sgm_status sgm__trainer_quantize(const sgm_trainer *trainer, const char *matrix, const sgm_tensor *value,
                                 sgm_tensor **codes, sgm_tensor **scales)
{
    *codes = *scales = NULL;
    SGM_TRY(check_matrix(trainer, matrix, value));
    sgm_tensor *copy = sgm_tensor_is_contiguous(value) ? NULL : sgm_tensor_copy(value);
    if (copy == NULL && !sgm_tensor_is_contiguous(value))
        return SGM_ERROR_MEMORY;
    sgm_status status = sgm__quantize_tensor(copy != NULL ? copy : value, codes, scales);
    sgm_tensor_free(copy);
    return status == SGM_OK ? SGM_OK : sgm__fail_within("'%s'", matrix);
}

static sgm_tensor *part(const sgm_trainer *trainer, const sgm_parameter *parameter)
{
    return sgm_session_get(trainer->learner.session, parameter->name);
}

sgm_tensor *sgm__trainer_get_matrix(const sgm_trainer *trainer, const char *matrix)
{
    sgm_tensor *codes = part(trainer, sgm__network_codes(trainer->learner.network, matrix));
    sgm_tensor *scales = part(trainer, sgm__network_scales(trainer->learner.network, matrix));
    sgm_tensor *value = codes != NULL && scales != NULL ? sgm__dequantize_tensor(codes, scales) : NULL;
    sgm_tensor_free(codes);
    sgm_tensor_free(scales);
    return value;
}
