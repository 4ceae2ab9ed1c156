/* sgm_quantize for tensors in memory: what adapters keep as codes of 8 bits is rounded as it is loaded, row
 * after row, without a graph and without further copies of the matrix. */
#include "ops/quantized.h"

#include "base/base.h"

#include <math.h>

/* Element `index` of a contiguous tensor of float32 or float64. */
static double number_at(const sgm_tensor *tensor, int64_t index)
{
    const void *data = sgm_tensor_const_data(tensor);
    return sgm_tensor_dtype(tensor) == SGM_FLOAT32 ? (double)((const float *)data)[index]
                                                   : ((const double *)data)[index];
}

static void put_number(sgm_tensor *tensor, int64_t index, double value)
{
    void *data = sgm_tensor_data(tensor);
    if (sgm_tensor_dtype(tensor) == SGM_FLOAT32)
        ((float *)data)[index] = (float)value;
    else
        ((double *)data)[index] = value;
}

/* Scales of the columns; `scales` has zeros. */
static void find_scales(const sgm_tensor *matrix, sgm_tensor *scales)
{
    const sgm_shape *shape = sgm_tensor_shape(matrix);
    const int64_t columns = shape->dims[1], count = shape->dims[0] * columns;
    for (int64_t i = 0; i < count; i++) {
        const double magnitude = fabs(number_at(matrix, i));
        if (!(magnitude <= number_at(scales, i % columns))) /* also NaN */
            put_number(scales, i % columns, magnitude);
    }
    for (int64_t j = 0; j < columns; j++)
        put_number(scales, j, fmax(number_at(scales, j), SGM__QUANTIZED_TINY) / SGM__QUANTIZED_LARGEST);
}

static void round_codes(const sgm_tensor *matrix, const sgm_tensor *scales, unsigned char *codes)
{
    const sgm_shape *shape = sgm_tensor_shape(matrix);
    const int64_t columns = shape->dims[1], count = shape->dims[0] * columns;
    for (int64_t i = 0; i < count; i++) {
        const double code = floor(number_at(matrix, i) / number_at(scales, i % columns) + 0.5);
        codes[i] = (unsigned char)(SGM__QUANTIZED_ZERO +
                                   (int)fmin(fmax(code, -SGM__QUANTIZED_LARGEST), SGM__QUANTIZED_LARGEST));
    }
}

/* Whether all numbers are finite: no code stands for another one. */
static bool is_finite(const sgm_tensor *matrix)
{
    const int64_t count = sgm_shape_elements(sgm_tensor_shape(matrix));
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(number_at(matrix, i)))
            return false;
    return true;
}

sgm_status sgm__quantize_tensor(const sgm_tensor *matrix, sgm_tensor **codes, sgm_tensor **scales)
{
    const sgm_shape *shape = sgm_tensor_shape(matrix), line = sgm_shape_of(shape->dims[1]);
    *codes = *scales = NULL;
    if (!is_finite(matrix))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "it has numbers that are not finite, which have no codes of 8 bits");
    *codes = sgm_tensor_create(SGM_UINT8, shape);
    *scales = sgm_tensor_create(sgm_tensor_dtype(matrix), &line);
    if (*codes == NULL || *scales == NULL) {
        sgm_tensor_free(*codes);
        sgm_tensor_free(*scales);
        return SGM_ERROR_MEMORY;
    }
    find_scales(matrix, *scales);
    round_codes(matrix, *scales, sgm_tensor_data(*codes));
    return SGM_OK;
}

sgm_tensor *sgm__dequantize_tensor(const sgm_tensor *codes, const sgm_tensor *scales)
{
    const sgm_shape *shape = sgm_tensor_shape(codes);
    const unsigned char *code = sgm_tensor_const_data(codes);
    sgm_tensor *matrix = sgm_tensor_create(sgm_tensor_dtype(scales), shape);
    const int64_t columns = shape->dims[1], count = matrix != NULL ? sgm_shape_elements(shape) : 0;
    for (int64_t i = 0; i < count; i++)
        put_number(matrix, i, (code[i] - SGM__QUANTIZED_ZERO) * number_at(scales, i % columns));
    return matrix;
}
