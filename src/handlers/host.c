/* Buffers in host memory. */
#include "handlers/host.h"

#define PADDING 64 /* bytes of the widest vectors */

sgm_status sgm__host_allocate(void *self, size_t bytes, void **buffer)
{
    (void)self;
    size_t padded;
    if (sgm__add_overflows(bytes, PADDING, &padded))
        return sgm__fail_memory(bytes);
    *buffer = sgm__alloc_aligned(padded);
    if (*buffer == NULL)
        return SGM_ERROR_MEMORY;
    memset(*buffer, 0, padded);
    return SGM_OK;
}

void sgm__host_release(void *self, void *buffer)
{
    (void)self;
    sgm__free_aligned(buffer);
}

sgm_status sgm__host_write(void *self, void *buffer, size_t offset, const void *host, size_t bytes)
{
    (void)self;
    memcpy((unsigned char *)buffer + offset, host, bytes);
    return SGM_OK;
}

sgm_status sgm__host_read(void *self, void *buffer, size_t offset, void *host, size_t bytes)
{
    (void)self;
    memcpy(host, (const unsigned char *)buffer + offset, bytes);
    return SGM_OK;
}

sgm_status sgm__host_wait(void *self)
{
    (void)self;
    return SGM_OK;
}
