/* Registering optimisers: what is refused, and that there is room for as many as are promised. */
#include "test.h"

#include <sigma/sigma.h>

#define ROOM 32

static sgm_value stand(const sgm_update_call *call)
{
    return call->parameter;
}

static size_t count_types(void)
{
    size_t count = 0;
    while (sgm_optimiser_type_at(count) != NULL)
        count++;
    return count;
}

TEST(what_is_no_optimiser_is_refused)
{
    static const char *const wanted =
        "an optimiser wants .api = SGM_OPTIMISER_API, a name, and an update or a search";
    static const sgm_optimiser_type refused[] = {
        {.api = SGM_OPTIMISER_API + 1, .name = "of_tomorrow", .update = stand},
        {.api = SGM_OPTIMISER_API, .update = stand},
        {.api = SGM_OPTIMISER_API, .name = "idle"},
    };
    size_t before = count_types();
    CHECK_ERROR(sgm_register_optimiser(NULL), wanted);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        CHECK_ERROR(sgm_register_optimiser(&refused[i]), wanted);
    CHECK_INT(count_types(), before);
}

TEST(names_are_given_once)
{
    static const sgm_optimiser_type own = {.api = SGM_OPTIMISER_API, .name = "stand", .update = stand},
                                    same = {.api = SGM_OPTIMISER_API, .name = "stand", .update = stand},
                                    known = {.api = SGM_OPTIMISER_API, .name = "adam", .update = stand};
    size_t before = count_types();
    CHECK_ERROR(sgm_register_optimiser(&known), "there is an optimiser 'adam' already");
    CHECK_OK(sgm_register_optimiser(&own));
    CHECK_OK(sgm_register_optimiser(&own)); /* the same one again changes nothing */
    CHECK_ERROR(sgm_register_optimiser(&same), "there is an optimiser 'stand' already");
    CHECK_INT(count_types(), before + 1);
    CHECK(sgm_optimiser_type_at(before) == &own);
    sgm_optimiser *made = sgm_optimiser_create("stand", NULL);
    CHECK_OK(made);
    sgm_optimiser_free(made);
}

TEST(all_places_are_used_and_no_more)
{
    static sgm_optimiser_type types[ROOM + 1];
    static char names[ROOM + 1][16];
    size_t built_in = 0, before = count_types();
    while (built_in < before && strcmp(sgm_optimiser_type_at(built_in)->name, "stand") != 0)
        built_in++; /* "stand" of the test before, if that ran, is the first registered type */
    size_t free_places = ROOM - (before - built_in);
    for (size_t i = 0; i <= free_places; i++) {
        snprintf(names[i], sizeof names[i], "stand_%zu", i);
        types[i] = (sgm_optimiser_type){.api = SGM_OPTIMISER_API, .name = names[i], .update = stand};
        if (i < free_places)
            CHECK_OK(sgm_register_optimiser(&types[i]));
    }
    CHECK_ERROR(sgm_register_optimiser(&types[free_places]),
                "32 optimisers are registered, which is all there is room for");
    CHECK(sgm_optimiser_type_at(before + free_places - 1) == &types[free_places - 1]);
    CHECK(sgm_optimiser_type_at(before + free_places) == NULL);
    CHECK(sgm_optimiser_type_at(before + free_places + 1) == NULL);
    CHECK_OK(sgm_register_optimiser(&types[0])); /* which is there */
}
