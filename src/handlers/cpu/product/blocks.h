/* Blocks of products of bfloat16, as AMX multiplies them (sgm__tiles.block). Internal: for bfloat16.c. */
#ifndef SGM_HANDLERS_CPU_PRODUCT_BLOCKS_H
#define SGM_HANDLERS_CPU_PRODUCT_BLOCKS_H

#include "handlers/cpu/vector/vector.h"

/* Their functions for packing are those of the tiles of pairs that they take the place of. */
#if defined(__x86_64__)
/* For processors that have AMX for bfloat16; `block` is NULL if the compiler does not know AMX. */
extern const sgm__tiles sgm__blocks_amx;
#endif
/* For any processor: the same bits, but where numbers are below 1.2e-38. */
extern const sgm__tiles sgm__blocks_portable;

#endif
