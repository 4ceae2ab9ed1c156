/* The scheme by which products are quantized to 8 bits (quantized_matmul.c has the formula). Internal. */
#ifndef SGM_OPS_QUANTIZED_H
#define SGM_OPS_QUANTIZED_H

#include <sigma/tensor.h>
#include <stdint.h>

#define SGM__QUANTIZED_ZERO 128    /* the code of 0 among weights, which are uint8 */
#define SGM__QUANTIZED_LARGEST 127 /* the largest distance of another code from it */
/* The smallest that the largest magnitude of a row counts as: 127 / m stays finite, and so do scales. */
#define SGM__QUANTIZED_TINY 0x1p-100
/* Products whose sum surely fits into 31 bits: 127 * 127 * 2^17 < 2^31. */
#define SGM__QUANTIZED_MAXIMUM_DEPTH ((int64_t)1 << 17)

/* Codes (uint8) and scales of a contiguous matrix of float32 or float64, as sgm_quantize has them; numbers
 * that are not finite are refused. */
sgm_status sgm__quantize_tensor(const sgm_tensor *matrix, sgm_tensor **codes, sgm_tensor **scales);
/* The matrix that they stand for; NULL: out of memory. */
sgm_tensor *sgm__dequantize_tensor(const sgm_tensor *codes, const sgm_tensor *scales);

#endif
