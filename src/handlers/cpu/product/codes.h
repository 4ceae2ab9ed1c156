/* The instruction code_matmul: products of floats with codes of 8 bits. Internal. */
#ifndef SGM_HANDLERS_CPU_PRODUCT_CODES_H
#define SGM_HANDLERS_CPU_PRODUCT_CODES_H

#include "handlers/cpu/cpu.h"

extern const sgm__cpu_kernel sgm__cpu_code_matmul;

#endif
