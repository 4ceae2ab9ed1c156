/* How fast tiles of bfloat16 are on this processor, measured in a millisecond. Internal: for bfloat16.c. What
 * was measured first counts for the process, so that all of its handlers decide alike. */
#ifndef SGM_HANDLERS_CPU_PRODUCT_BFLOAT16_SPEED_H
#define SGM_HANDLERS_CPU_PRODUCT_BFLOAT16_SPEED_H

#include "handlers/cpu/vector/vector.h"

/* How many times as many multiplications a second a table's tiles of pairs do as its tiles of float32; 0,
 * with an error set: out of memory. */
double sgm__bfloat16_speed(const sgm__vector *vector);

#endif
