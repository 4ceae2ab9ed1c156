/* Declares where what kernels make of constants is kept, once for all programs of a handler. Internal.
 *
 * Programs that read the same weights, those of several sizes of a batch, say, or of a step and of a piece of
 * a text, pack them to the same bytes. So what was packed is compared with all that is there already.
 *
 * All lies in a few large blocks, as only these can have huge pages: a matrix of the network of a small
 * language model is less than such a page, and a processor that reads it from memory does not fetch ahead
 * across the end of a page of 4 KiB. */
#ifndef SGM_HANDLERS_CPU_RUN_PACKED_STORE_H
#define SGM_HANDLERS_CPU_RUN_PACKED_STORE_H

#include "handlers/cpu/cpu.h"

/* Several threads may use one store. NULL: out of memory. */
sgm__packed_store *sgm__packed_store_create(void);
/* What was taken must have been released. */
void sgm__packed_store_free(sgm__packed_store *store);
/* Packs the call's second operand, whose address the call has, to `size` bytes, unless these are there
 * already. They stay until as many releases as takes. */
sgm_status sgm__packed_store_take(sgm__packed_store *store, const sgm__cpu_kernel *kernel,
                                  const sgm__cpu_call *call, size_t size, const unsigned char **packed);
void sgm__packed_store_release(sgm__packed_store *store, const unsigned char *packed);
/* Of all blocks. */
size_t sgm__packed_store_bytes(sgm__packed_store *store);

#endif
