/* Buffers in host memory, for handlers that need no other. Internal. */
#ifndef SGM_HANDLERS_HOST_H
#define SGM_HANDLERS_HOST_H

#include "handlers/handler.h"

/* For those that keep nothing themselves. */
sgm_status sgm__host_open(const sgm_handler_options *options, void **self);
void sgm__host_close(void *self);
/* Zeroed, with a vector's width behind it: loops may read that far. */
sgm_status sgm__host_allocate(void *self, size_t bytes, void **buffer);
void sgm__host_release(void *self, void *buffer);
sgm_status sgm__host_write(void *self, void *buffer, size_t offset, const void *host, size_t bytes);
sgm_status sgm__host_read(void *self, void *buffer, size_t offset, void *host, size_t bytes);
/* Runs are over when they return. */
sgm_status sgm__host_wait(void *self);

#endif
