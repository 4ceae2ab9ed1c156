/* Time scales, steps and their counts. */
#include "base/allocator.h"
#include "test.h"

#include <locale.h>
#include <sigma/rules.h>

/* The events (numbered from 1) of `total` at which the step is due, as "2 4 6". */
static char *due_events(sgm_time_step step, int total, char *buffer, size_t size)
{
    sgm_time_count count = {0};
    size_t length = 0;
    buffer[0] = '\0';
    for (int i = 1; i <= total; i++)
        if (sgm_time_count_event(&step, &count, step.scale))
            length += (size_t)snprintf(buffer + length, size - length, length ? " %d" : "%d", i);
    return buffer;
}

TEST(steps_are_due_at_the_nth_event_and_live_as_long_as_told)
{
    static const struct {
        sgm_time_step step;
        const char *due;
    } cases[] = {
        {{SGM_EPOCH, 1, 0}, "1 2 3 4 5 6 7 8 9 10"},
        {{SGM_EPOCH, 0, 0}, "1 2 3 4 5 6 7 8 9 10"},
        {{SGM_EPOCH, -4, -1}, "1 2 3 4 5 6 7 8 9 10"},
        {{SGM_ITERATION, 3, 0}, "3 6 9"},
        {{SGM_ITERATION, 3, 2}, "3 6"},
        {{SGM_ITERATION, 4, 1}, "4"},
        {{SGM_START, 1, 0}, "1 2 3 4 5 6 7 8 9 10"},
        {{SGM_PAUSE, 11, 0}, ""},
    };
    char buffer[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_STR(due_events(cases[i].step, 10, buffer, sizeof buffer), cases[i].due);
    CHECK_STR(due_events(sgm_after(4, SGM_EPOCH), 10, buffer, sizeof buffer), "4");
    CHECK_STR(due_events(sgm_live(sgm_every(2, SGM_EPOCH), 3), 10, buffer, sizeof buffer), "2 4 6");
}

TEST(only_events_of_the_scale_count)
{
    sgm_time_step step = sgm_every(2, SGM_EPOCH);
    sgm_time_count count = {0};
    for (int i = 0; i < 10; i++)
        CHECK(!sgm_time_count_event(&step, &count, SGM_ITERATION));
    CHECK(!sgm_time_count_event(&step, &count, SGM_EPOCH));
    CHECK(!sgm_time_count_event(&step, &count, SGM_RESET));
    CHECK(sgm_time_count_event(&step, &count, SGM_EPOCH));
}

TEST(every_holder_counts_for_itself)
{
    sgm_time_step step = sgm_every(2, SGM_ITERATION);
    sgm_time_count one = {0}, other = {0};
    CHECK(!sgm_time_count_event(&step, &one, SGM_ITERATION));
    CHECK(sgm_time_count_event(&step, &one, SGM_ITERATION));
    CHECK(!sgm_time_count_event(&step, &other, SGM_ITERATION));
    CHECK_INT(one.used, 1);
    CHECK_INT(other.used, 0);
}

TEST(a_step_that_has_lived_is_dead)
{
    sgm_time_step step = sgm_after(2, SGM_EPOCH), endless = sgm_every(1, SGM_EPOCH);
    sgm_time_count count = {0};
    sgm_time_count_event(&step, &count, SGM_EPOCH);
    CHECK(!sgm_time_count_is_dead(&step, &count));
    CHECK(sgm_time_count_event(&step, &count, SGM_EPOCH));
    CHECK(sgm_time_count_is_dead(&step, &count));
    for (int i = 0; i < 5; i++)
        CHECK(!sgm_time_count_event(&step, &count, SGM_EPOCH));
    CHECK_INT(count.used, 1);
    CHECK(!sgm_time_count_is_dead(&endless, &(sgm_time_count){.used = INT64_MAX}));
}

TEST(a_count_that_is_saved_goes_on_where_it_was)
{
    sgm_time_step step = sgm_every(3, SGM_EPOCH), shorter = sgm_every(2, SGM_EPOCH);
    sgm_time_count count = {0};
    sgm_time_count_event(&step, &count, SGM_EPOCH);
    sgm_time_count saved = count;
    CHECK(!sgm_time_count_event(&step, &saved, SGM_EPOCH));
    CHECK(sgm_time_count_event(&step, &saved, SGM_EPOCH));
    saved = (sgm_time_count){.left = 100}; /* of a longer interval */
    CHECK(!sgm_time_count_event(&shorter, &saved, SGM_EPOCH));
    CHECK(sgm_time_count_event(&shorter, &saved, SGM_EPOCH));
}

TEST(equality_is_of_scale_interval_and_live)
{
    sgm_time_step a = sgm_every(2, SGM_EPOCH);
    CHECK(sgm_time_step_equal(&a, &(sgm_time_step){SGM_EPOCH, 2, 0}));
    CHECK(sgm_time_step_equal(&a, &(sgm_time_step){SGM_EPOCH, 2, -1}));
    CHECK(sgm_time_step_equal(&(sgm_time_step){SGM_STOP, 0, 0}, &(sgm_time_step){SGM_STOP, 1, 0}));
    CHECK(!sgm_time_step_equal(&a, &(sgm_time_step){SGM_EPOCH, 3, 0}));
    CHECK(!sgm_time_step_equal(&a, &(sgm_time_step){SGM_ITERATION, 2, 0}));
    CHECK(!sgm_time_step_equal(&a, &(sgm_time_step){SGM_EPOCH, 2, 1}));
}

TEST(a_required_step_covers_its_dependents)
{
    static const struct {
        sgm_time_step a, b;
        bool covers;
    } cases[] = {
        {{SGM_EPOCH, 1, 0}, {SGM_EPOCH, 3, 0}, true},
        {{SGM_EPOCH, 2, 0}, {SGM_EPOCH, 3, 0}, false},
        {{SGM_EPOCH, 3, 0}, {SGM_EPOCH, 1, 0}, false},
        {{SGM_ITERATION, 5, 0}, {SGM_EPOCH, 1, 0}, true},
        {{SGM_ITERATION, 5, 9}, {SGM_EPOCH, 1, 0}, false},
        {{SGM_EPOCH, 1, 0}, {SGM_ITERATION, 5, 0}, false},
        {{SGM_START, 1, 0}, {SGM_START, 2, 0}, true},
        {{SGM_START, 1, 0}, {SGM_STOP, 1, 0}, false},
        {{SGM_ITERATION, 1, 0}, {SGM_START, 1, 0}, false},
        {{SGM_START, 1, 0}, {SGM_EPOCH, 1, 0}, false},
        {{SGM_EPOCH, 1, 5}, {SGM_EPOCH, 1, 0}, false},
        {{SGM_EPOCH, 1, 6}, {SGM_EPOCH, 3, 2}, true},
        {{SGM_EPOCH, 1, 5}, {SGM_EPOCH, 3, 2}, false},
        {{SGM_EPOCH, 1, 5}, {SGM_EPOCH, INT64_MAX, INT64_MAX}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (sgm_time_step_covers(&cases[i].a, &cases[i].b) != cases[i].covers)
            TEST_FAIL("case %zu", i);
}

/* A scale that begins or ends something says nothing about iterations or epochs, nor about another such. */
TEST(lifecycle_scales_go_with_themselves_only)
{
    for (int a = 0; a < SGM_TIME_SCALE_COUNT; a++)
        for (int b = 0; b < SGM_TIME_SCALE_COUNT; b++) {
            sgm_time_step required = sgm_every(1, (sgm_time_scale)a), hook = sgm_every(1, (sgm_time_scale)b);
            bool expected = a == b || (a == SGM_ITERATION && b == SGM_EPOCH);
            if (sgm_time_step_covers(&required, &hook) != expected)
                TEST_FAIL("%s for %s", sgm_time_scale_name((sgm_time_scale)a),
                          sgm_time_scale_name((sgm_time_scale)b));
        }
}

TEST(equality_ignores_how_far_the_counts_are)
{
    sgm_time_step a = sgm_live(sgm_every(3, SGM_EPOCH), 2), b = a;
    sgm_time_count count = {0};
    for (int i = 0; i < 10; i++) {
        sgm_time_count_event(&a, &count, SGM_EPOCH);
        CHECK(sgm_time_step_equal(&a, &b));
    }
    CHECK(sgm_time_count_is_dead(&a, &count));
    CHECK(!sgm_time_count_is_dead(&b, &(sgm_time_count){0}));
}

TEST(steps_read_and_write)
{
    static const struct {
        const char *text;
        sgm_time_step step;
        const char *written;
    } cases[] = {
        {"every epoch", {SGM_EPOCH, 1, 0}, "every epoch"},
        {"  every 1 epoch\t", {SGM_EPOCH, 1, 0}, "every epoch"},
        {"every 5 epochs", {SGM_EPOCH, 5, 0}, "every 5 epochs"},
        {"every 5 epoch", {SGM_EPOCH, 5, 0}, "every 5 epochs"},
        {"every 2 iterations, 3 times", {SGM_ITERATION, 2, 3}, "every 2 iterations, 3 times"},
        {"every 2 iterations, once", {SGM_ITERATION, 2, 1}, "after 2 iterations"},
        {"after 100 iterations", {SGM_ITERATION, 100, 1}, "after 100 iterations"},
        {"after 1 epoch", {SGM_EPOCH, 1, 1}, "after 1 epoch"},
        {"at epoch 5", {SGM_EPOCH, 5, 1}, "after 5 epochs"},
        {"at start", {SGM_START, 1, 0}, "at start"},
        {"at stop", {SGM_STOP, 1, 0}, "at stop"},
        {"at pause, 2 times", {SGM_PAUSE, 1, 2}, "at pause, 2 times"},
        {"every 2 resumes", {SGM_RESUME, 2, 0}, "every 2 resumes"},
        {"every reset", {SGM_RESET, 1, 0}, "at reset"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sgm_time_step step, again;
        char buffer[96];
        CHECK_OK(sgm_time_step_parse(cases[i].text, &step));
        CHECK(sgm_time_step_equal(&step, &cases[i].step));
        CHECK_STR(sgm_time_step_text(&step, buffer, sizeof buffer), cases[i].written);
        CHECK_OK(sgm_time_step_parse(buffer, &again));
        CHECK(sgm_time_step_equal(&step, &again));
    }
}

TEST(errors_of_steps_name_the_column)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {NULL, "column 1: expected every, after or at, found the end"},
        {"", "column 1: expected every, after or at, found the end"},
        {"evry epoch", "column 1: expected every, after or at, found 'evry'; did you mean 'every'?"},
        {"every 5 epohcs", "column 9: expected epochs, iterations or an event (start, stop, pause, resume, "
                           "reset), found 'epohcs'; did you mean 'epochs'?"},
        {"every", "column 6: expected epochs"},
        {"every 0 epochs", "column 7: a number of events is a whole number from 1 to 2^53, not '0'"},
        {"every -2 epochs", "column 7: a number of events is a whole number"},
        {"every 1.5 epochs", "not '1.5'"},
        {"every 99999999999999999999 epochs", "column 7"},
        {"every 9223372036854775807 epochs", "column 7"},
        {"after epochs", "column 7: expected a number of events, found 'epochs'"},
        {"at epoch", "column 9: expected a number of the event, found the end"},
        {"every epoch, 3", "column 15: expected times, found the end"},
        {"every epoch please", "column 13: expected nothing more, found 'please'"},
        {"every \xc3\xa9poch", "column 7: expected epochs"},
        {"\xc2\xa0 every", "column 1: "},
        {"every \"epoch\"", "found a text in quotes"},
        {"every \"epoch", "column 7: the text that begins here has no closing '\"'"},
        {"every \x07", "found character 0x07"},
    };
    sgm_time_step step = {SGM_STOP, 7, 7};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_ERROR(sgm_time_step_parse(cases[i].text, &step), cases[i].error);
    CHECK(step.scale == SGM_STOP && step.interval == 7 && step.live == 7);
}

TEST(scales_have_names)
{
    sgm_time_scale scale;
    for (int i = 0; i < SGM_TIME_SCALE_COUNT; i++) {
        CHECK_OK(sgm_time_scale_parse(sgm_time_scale_name((sgm_time_scale)i), &scale));
        CHECK_INT(scale, i);
    }
    CHECK_STR(sgm_time_scale_name(SGM_EPOCH), "epoch");
    CHECK_STR(sgm_time_scale_name((sgm_time_scale)99), "unknown");
    CHECK_ERROR(sgm_time_scale_parse("epocch", &scale), "did you mean 'epoch'?");
    CHECK_ERROR(sgm_time_scale_parse(NULL, &scale), "unknown time scale ''.");
}

TEST(texts_fit_short_buffers)
{
    char buffer[8];
    sgm_time_step step = sgm_every(100, SGM_ITERATION);
    CHECK_STR(sgm_time_step_text(&step, buffer, sizeof buffer), "every 1");
}

TEST(memory_that_fails_is_reported)
{
    sgm_time_step step = {SGM_STOP, 7, 7};
    for (long fail_at = 1;; fail_at++) {
        allocator_start(fail_at);
        sgm_status status = sgm_time_step_parse("every 5 epochs, 3 times", &step);
        allocator_stop();
        CHECK_INT(allocator_live, 0);
        if (status == SGM_OK)
            break;
        CHECK_INT(status, SGM_ERROR_MEMORY);
    }
    CHECK_INT(step.interval, 5);
}
