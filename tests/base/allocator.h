/* An allocator that counts what is alive, and fails at the n-th allocation, or from it on. */
#ifndef SIGMA_TEST_ALLOCATOR_H
#define SIGMA_TEST_ALLOCATOR_H

#include <sigma/base.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

static atomic_long allocator_live, allocator_calls, allocator_fail_at; /* fail_at 0: never */
static atomic_bool allocator_fail_once; /* only that call, else all from there on */

static void *allocator_reallocate(void *user, void *memory, size_t size)
{
    (void)user;
    long call = atomic_fetch_add(&allocator_calls, 1) + 1;
    long fail_at = atomic_load(&allocator_fail_at);
    if (fail_at > 0 && (atomic_load(&allocator_fail_once) ? call == fail_at : call >= fail_at))
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
    atomic_store(&allocator_fail_once, false);
    sgm_set_allocator(&counting);
}

/* Only the `fail_at`-th fails. */
__attribute__((unused)) static void allocator_start_once(long fail_at)
{
    allocator_start(fail_at);
    atomic_store(&allocator_fail_once, true);
}

__attribute__((unused)) static void allocator_stop(void)
{
    sgm_set_allocator(NULL);
}

#endif
