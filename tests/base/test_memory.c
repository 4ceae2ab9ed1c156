#include "allocator.h"
#include "base/base.h"
#include "test.h"

TEST(sizes_of_zero_are_valid)
{
    void *memory = sgm__alloc(0);
    CHECK_OK(memory);
    sgm__free(memory);
    sgm__free(NULL);
    sgm__free_aligned(NULL);
}

TEST(calloc_zeroes_and_checks)
{
    unsigned char *bytes = sgm__calloc(100, 3);
    CHECK_OK(bytes);
    for (int i = 0; i < 300; i++)
        CHECK_INT(bytes[i], 0);
    sgm__free(bytes);
    CHECK_ERROR(sgm__calloc(SIZE_MAX / 2, 3), "cannot allocate");
    CHECK_INT(sgm_last_status(), SGM_ERROR_MEMORY);
}

TEST(impossible_sizes_fail)
{
    CHECK_ERROR(sgm__alloc(SIZE_MAX), "cannot allocate");
    CHECK_ERROR(sgm__alloc_aligned(SIZE_MAX - 8), "cannot allocate");
}

TEST(aligned_blocks_are_aligned_and_whole)
{
    allocator_start(0);
    unsigned char *blocks[20];
    for (size_t i = 0; i < 20; i++) {
        blocks[i] = sgm__alloc_aligned(i * 7);
        CHECK_OK(blocks[i]);
        CHECK_INT((uintptr_t)blocks[i] % 64, 0);
        memset(blocks[i], (int)i, i * 7);
    }
    for (size_t i = 0; i < 20; i++) {
        for (size_t k = 0; k < i * 7; k++)
            CHECK_INT(blocks[i][k], i);
        sgm__free_aligned(blocks[i]);
    }
    CHECK_INT(allocator_live, 0);
    allocator_stop();
}

TEST(the_set_allocator_gets_every_call)
{
    allocator_start(0);
    void *memory = sgm__alloc(10);
    char *text = sgm__strdup("text");
    CHECK_INT(allocator_live, 2);
    memory = sgm__realloc(memory, 1000);
    CHECK_INT(allocator_live, 2);
    CHECK_INT(allocator_calls, 3);
    sgm__free(memory);
    sgm__free(text);
    CHECK_INT(allocator_live, 0);
    allocator_stop();
}

TEST(failed_allocations_set_the_error)
{
    allocator_start(1);
    CHECK_ERROR(sgm__alloc(77), "77 bytes");
    CHECK_ERROR(sgm__calloc(11, 7), "77 bytes");
    CHECK_ERROR(sgm__alloc_aligned(5), "cannot allocate");
    CHECK_ERROR(sgm__strdup("abc"), "4 bytes");
    CHECK_ERROR(sgm__format("%d", 1), "cannot allocate");
    allocator_stop();
}

TEST(reserve_grows_and_keeps)
{
    int *items = NULL;
    size_t capacity = 0;
    for (size_t i = 0; i < 1000; i++) {
        CHECK_OK(sgm__reserve(&items, &capacity, i + 1, sizeof *items));
        CHECK(capacity > i);
        items[i] = (int)i;
    }
    for (int i = 0; i < 1000; i++)
        CHECK_INT(items[i], i);
    size_t before = capacity;
    CHECK_ERROR(sgm__reserve(&items, &capacity, SIZE_MAX / 2, sizeof *items), "cannot allocate");
    CHECK_INT(capacity, before);
    CHECK_INT(items[999], 999);
    sgm__free(items);
}

TEST(strings_are_copied)
{
    char *part = sgm__strndup("abcdef", 3);
    CHECK_STR(part, "abc");
    sgm__free(part);
    char *whole = sgm__strndup("ab", 100);
    CHECK_STR(whole, "ab");
    sgm__free(whole);
    sgm_clear_error();
    CHECK(sgm__strdup(NULL) == NULL);
    CHECK_INT(sgm_last_status(), SGM_OK);
}

TEST(overflows_are_seen)
{
    size_t result;
    CHECK(sgm__mul_overflows(SIZE_MAX / 2, 3, &result));
    CHECK(!sgm__mul_overflows(6, 7, &result));
    CHECK_INT(result, 42);
    CHECK(sgm__add_overflows(SIZE_MAX, 1, &result));
    CHECK(!sgm__add_overflows(SIZE_MAX - 1, 1, &result));
    CHECK(result == SIZE_MAX);
}
