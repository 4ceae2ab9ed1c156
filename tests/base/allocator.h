/* An allocator that counts what is alive, and fails from the n-th allocation on. */
#ifndef SIGMA_TEST_ALLOCATOR_H
#define SIGMA_TEST_ALLOCATOR_H

#include <sigma/status.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_long allocator_live, allocator_calls, allocator_fail_at;

static void *allocator_reallocate(void *user, void *memory, size_t size)
{
    (void)user;
    long call = atomic_fetch_add(&allocator_calls, 1) + 1;
    if (atomic_load(&allocator_fail_at) > 0 && call >= atomic_load(&allocator_fail_at))
        return NULL;
    void *grown = realloc(memory, size);
    if (grown && !memory)
        atomic_fetch_add(&allocator_live, 1);
    return grown;
}

static void allocator_release(void *user, void *memory)
{
    (void)user;
    if (memory)
        atomic_fetch_sub(&allocator_live, 1);
    free(memory);
}

/* Counts from 0; every allocation from the `fail_at`-th on fails (0: none does). */
static void allocator_start(long fail_at)
{
    static const sgm_allocator counting = {allocator_reallocate, allocator_release, NULL};
    atomic_store(&allocator_live, 0);
    atomic_store(&allocator_calls, 0);
    atomic_store(&allocator_fail_at, fail_at);
    sgm_set_allocator(&counting);
}

static void allocator_stop(void)
{
    sgm_set_allocator(NULL);
}

#endif
