/* How fast tiles of bfloat16 are on this processor, measured in a millisecond. Internal: for bfloat16.c. What
 * was measured first counts for the process, so that all of its handlers decide alike. */
#ifndef SGM_HANDLERS_CPU_PRODUCT_BFLOAT16_SPEED_H
#define SGM_HANDLERS_CPU_PRODUCT_BFLOAT16_SPEED_H

#include "handlers/cpu/vector/vector.h"

/* How many times as many multiplications a second the largest of these tiles of bfloat16 (pairs, or blocks
 * for AMX) does as that of float32; 0, with an error set: out of memory. */
double sgm__bfloat16_speed(const sgm__tiles *halves, const sgm__tiles *singles);

#endif
