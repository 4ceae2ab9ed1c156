/* The index of names, beside a list that is searched. */
#include "base/name_index.h"

#include "base/allocator.h"
#include "test.h"

#define NAMES 500

static char names[NAMES][24];

static void fill_names(void)
{
    for (int i = 0; i < NAMES; i++)
        snprintf(names[i], sizeof names[i], "%d-dense", i);
}

TEST(names_are_found_whatever_came_and_went)
{
    sgm__name_index index = {0};
    bool there[NAMES] = {false};
    size_t count = 0;
    sgm__random random = sgm__random_make(7, 0);
    fill_names();
    for (int step = 0; step < 20000; step++) {
        /* A third of the time few names are left, so that holes appear between those that collide. */
        size_t i = sgm__random_below(&random, step / 2000 % 3 == 0 ? 40 : NAMES);
        if (there[i]) {
            sgm__name_index_remove(&index, names[i]);
            count--;
        } else {
            CHECK_OK(sgm__name_index_reserve(&index, 1));
            sgm__name_index_add(&index, names[i], 10 * i);
            count++;
        }
        there[i] = !there[i];
        CHECK_INT(index.count, count);
        if (step % 100 != 0)
            continue;
        for (size_t k = 0; k < NAMES; k++) {
            char copy[24];
            uintptr_t value = 1;
            strcpy(copy, names[k]);
            CHECK_INT(sgm__name_index_find(&index, copy, &value), there[k]);
            CHECK(!there[k] || value == 10 * k);
        }
    }
    sgm__name_index_free(&index);
}

TEST(an_index_is_cleared_and_filled_again)
{
    sgm__name_index index = {0};
    uintptr_t value;
    fill_names();
    CHECK(!sgm__name_index_find(&index, "x", &value));
    for (int round = 0; round < 2; round++) {
        CHECK_OK(sgm__name_index_reserve(&index, NAMES));
        for (uintptr_t i = 0; i < NAMES; i++)
            sgm__name_index_add(&index, names[i], i);
        for (uintptr_t i = 0; i < NAMES; i++)
            CHECK(sgm__name_index_find(&index, names[i], &value) && value == i);
        CHECK(!sgm__name_index_find(&index, "500-dense", &value));
        sgm__name_index_clear(&index);
        CHECK(!sgm__name_index_find(&index, names[3], &value));
    }
    sgm__name_index_free(&index);
}

TEST(without_memory_it_stays_as_it_was)
{
    sgm__name_index index = {0};
    uintptr_t value;
    allocator_start(2);
    CHECK_OK(sgm__name_index_reserve(&index, 1));
    sgm__name_index_add(&index, "a", 3);
    CHECK_ERROR(sgm__name_index_reserve(&index, 1000), "memory");
    CHECK(sgm__name_index_find(&index, "a", &value) && value == 3);
    sgm__name_index_free(&index);
    CHECK_INT(allocator_live, 0);
    allocator_stop();
}
