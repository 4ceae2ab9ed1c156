/* Schedules at hand-computed points. */
#include "test.h"

#include <sigma/training.h>

static double factor(sgm_schedule schedule, double epoch, double epochs, int64_t reductions)
{
    return sgm_schedule_factor(&schedule, epoch, epochs, reductions);
}

TEST(constant_is_one)
{
    CHECK_NEAR(factor((sgm_schedule){0}, 17.5, 20, 0), 1, 0);
}

TEST(step_multiplies_at_each_period)
{
    sgm_schedule schedule = {SGM_STEP, .period = 3, .factor = 0.5};
    CHECK_NEAR(factor(schedule, 2.9, 10, 0), 1, 0);
    CHECK_NEAR(factor(schedule, 3, 10, 0), 0.5, 1e-15);
    CHECK_NEAR(factor(schedule, 9.5, 10, 0), 0.125, 1e-15);
}

TEST(exponential_falls_all_the_time)
{
    CHECK_NEAR(factor((sgm_schedule){SGM_EXPONENTIAL, .period = 2, .factor = 0.25}, 3, 10, 0), 0.125, 1e-15);
}

TEST(cosine_ends_at_its_factor)
{
    sgm_schedule schedule = {SGM_COSINE, .factor = 0.1};
    CHECK_NEAR(factor(schedule, 0, 20, 0), 1, 1e-15);
    CHECK_NEAR(factor(schedule, 10, 20, 0), 0.55, 1e-15);
    CHECK_NEAR(factor(schedule, 20, 20, 0), 0.1, 1e-15);
    CHECK_NEAR(factor(schedule, 30, 20, 0), 0.1, 1e-15);
}

TEST(warm_up_rises_linearly_and_then_hands_over)
{
    sgm_schedule schedule = {SGM_COSINE, .warm_up = 4};
    CHECK_NEAR(factor(schedule, 1, 20, 0), 0.25, 1e-15);
    CHECK_NEAR(factor(schedule, 4, 20, 0), 1, 1e-15);
    CHECK_NEAR(factor(schedule, 12, 20, 0), 0.5, 1e-15);
}

TEST(one_cycle_rises_and_falls)
{
    sgm_schedule schedule = {SGM_ONE_CYCLE, .factor = 0.04};
    CHECK_NEAR(factor(schedule, 0, 10, 0), 0.04, 1e-15);
    CHECK_NEAR(factor(schedule, 3, 10, 0), 1, 1e-12);
    CHECK_NEAR(factor(schedule, 10, 10, 0), 4e-6, 1e-12);
}

TEST(plateau_follows_the_reductions)
{
    CHECK_NEAR(factor((sgm_schedule){SGM_PLATEAU, .factor = 0.5}, 7, 10, 3), 0.125, 1e-15);
}

TEST(kinds_have_names)
{
    sgm_schedule_kind kind;
    CHECK_OK(sgm_schedule_kind_parse("one_cycle", &kind));
    CHECK_INT(kind, SGM_ONE_CYCLE);
    CHECK_STR(sgm_schedule_kind_name(SGM_PLATEAU), "plateau");
    CHECK_ERROR(sgm_schedule_kind_parse("cosin", &kind), "did you mean 'cosine'");
    CHECK_ERROR(sgm_schedule_kind_parse(NULL, &kind), "expects a name");
}
