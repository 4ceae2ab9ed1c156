/* Buffers in host memory, for handlers that keep nothing else (reference, null; cpu takes most of it).
 * Internal.
 *
 * The functions have the signatures of sgm__handler_type and ignore `self`.
 */
#ifndef SGM_HANDLERS_HOST_H
#define SGM_HANDLERS_HOST_H

#include "handlers/handler.h"

/* For handlers without a state of their own: `self` becomes NULL. */
sgm_status sgm__host_open(const sgm_handler_options *options, void **self);
void sgm__host_close(void *self);
/* All bytes are 0, and 64 bytes more than asked for may be read behind the end, so that vector loops need no
 * remainder for reading. */
sgm_status sgm__host_allocate(void *self, size_t bytes, void **buffer);
void sgm__host_release(void *self, void *buffer);
sgm_status sgm__host_write(void *self, void *buffer, size_t offset, const void *host, size_t bytes);
sgm_status sgm__host_read(void *self, void *buffer, size_t offset, void *host, size_t bytes);
/* Returns at once: `run` of these handlers returns when the run has ended. */
sgm_status sgm__host_wait(void *self);
/* A handler type's fields for these buffers. */
#define SGM__HOST_BUFFERS                                                                                    \
    .allocate = sgm__host_allocate, .release = sgm__host_release, .write = sgm__host_write,                  \
    .read = sgm__host_read, .wait = sgm__host_wait

#endif
