/* The instruction quantized_matmul: products of integers of 8 bits. Internal. */
#ifndef SGM_HANDLERS_CPU_PRODUCT_QUANTIZED_H
#define SGM_HANDLERS_CPU_PRODUCT_QUANTIZED_H

#include "handlers/cpu/cpu.h"

extern const sgm__cpu_kernel sgm__cpu_quantized_matmul;
/* The fastest tiles of integers that this processor has, among those of an instruction set. */
const sgm__int8_tiles *sgm__int8_tiles_for(const sgm__vector *vector);

#endif
