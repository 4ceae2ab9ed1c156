/* Buffers in host memory: the memory functions of handlers whose buffers are ordinary memory (host.h says
 * which). */
#include "handlers/host.h"

#include <sys/mman.h>
#include <unistd.h>

/* Bytes behind each buffer that may be read: the width of the widest vectors (AVX-512). */
#define PADDING 64
/* The size of a huge page in bytes, 2 MiB: on x86-64, and on arm64 with pages of 4 KiB. */
#define HUGE_PAGE ((uintptr_t)1 << 21)

/* Asks the system to back the whole 2 MiB pages of a buffer by huge pages. A row of 1024 numbers takes a page
 * of 4 KiB, so that a walk down a column looks up a page for each element, which costs as much as reading it.
 * The result of madvise is ignored: a system without huge pages, or without a free one, only runs slower. It
 * must come before the first write, as that is when pages are chosen. */
static void ask_for_huge_pages(void *memory, size_t bytes)
{
    uintptr_t first = ((uintptr_t)memory + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
    uintptr_t last = ((uintptr_t)memory + bytes) & ~(HUGE_PAGE - 1);
    if (bytes >= HUGE_PAGE && first < last)
        (void)madvise((unsigned char *)memory + (first - (uintptr_t)memory), last - first, MADV_HUGEPAGE);
}

sgm_status sgm__host_open(const sgm_handler_options *options, void **self)
{
    (void)options;
    *self = NULL;
    return SGM_OK;
}

void sgm__host_close(void *self)
{
    (void)self;
}

sgm_status sgm__host_allocate(void *self, size_t bytes, void **buffer)
{
    (void)self;
    size_t padded;
    if (sgm__add_overflows(bytes, PADDING, &padded))
        return sgm__fail_memory(bytes);
    *buffer = sgm__calloc_aligned(padded);
    if (*buffer == NULL)
        return SGM_ERROR_MEMORY;
    ask_for_huge_pages(*buffer, padded);
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
