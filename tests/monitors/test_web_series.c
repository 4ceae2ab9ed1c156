/* Series of the web monitor: nothing is hidden, memory has bounds. */
#include "base/allocator.h"
#include "test.h"

#include "monitors/web/web_internal.h"

#define ROOM 1000

static sgm__series_bucket buckets[ROOM + 2];

static sgm__series *ramp(size_t maximum, int64_t count)
{
    sgm__series *series = sgm__series_create(maximum);
    CHECK_OK(series);
    for (int64_t i = 1; i <= count; i++)
        CHECK_OK(sgm__series_append(series, i, (double)i * 0.5));
    return series;
}

TEST(few_points_come_back_as_they_are)
{
    sgm__series *series = ramp(64, 5);
    CHECK_INT(sgm__series_count(series), 5);
    CHECK_INT(sgm__series_reduce(series, INT64_MIN, INT64_MAX, ROOM, buckets), 5);
    for (int i = 0; i < 5; i++) {
        CHECK_INT(buckets[i].iteration, i + 1);
        CHECK_NEAR(buckets[i].minimum, (i + 1) * 0.5, 0);
        CHECK_NEAR(buckets[i].maximum, (i + 1) * 0.5, 0);
        CHECK_NEAR(buckets[i].last, (i + 1) * 0.5, 0);
        CHECK_INT(buckets[i].count, 1);
        CHECK_INT(buckets[i].bad, 0);
    }
    sgm__series_free(series);
    series = ramp(64, 0);
    CHECK_INT(sgm__series_reduce(series, INT64_MIN, INT64_MAX, ROOM, buckets), 0);
    int64_t iteration;
    double value;
    CHECK(!sgm__series_last(series, &iteration, &value));
    sgm__series_free(series);
    sgm__series_free(NULL);
}

TEST(a_window_has_its_neighbours)
{
    sgm__series *series = ramp(64, 20);
    CHECK_INT(sgm__series_reduce(series, 5, 8, ROOM, buckets), 6);
    CHECK_INT(buckets[0].iteration, 4);
    CHECK_INT(buckets[5].iteration, 9);
    CHECK_INT(sgm__series_reduce(series, 30, 40, ROOM, buckets), 1);
    CHECK_INT(buckets[0].iteration, 20);
    CHECK_INT(sgm__series_reduce(series, -5, 0, ROOM, buckets), 1);
    CHECK_INT(buckets[0].iteration, 1);
    CHECK_INT(sgm__series_reduce(series, 8, 5, 2, buckets), 1); /* nothing is in between */
    CHECK_INT(sgm__series_reduce(series, 19, 20, 1, buckets), 2);
    CHECK_INT(buckets[1].iteration, 20);
    CHECK_NEAR(buckets[1].minimum, 9.5, 0);
    CHECK_INT(buckets[1].count, 2);
    sgm__series_free(series);
}

/* Whatever was thrown together since: of a million points each extreme is found in the reduction. */
TEST(no_spike_of_a_million_points_is_hidden)
{
    const int64_t count = 1000000, spikes[] = {1, 77, 131071, 500000, 934465, 999999, 1000000};
    sgm__series *series = sgm__series_create(1 << 14);
    for (int64_t i = 1; i <= count; i++) {
        double value = sin((double)i);
        for (size_t k = 0; k < sizeof spikes / sizeof *spikes; k++)
            if (spikes[k] == i)
                value = k % 2 == 0 ? 100 + (double)k : -100 - (double)k;
        CHECK_OK(sgm__series_append(series, i, value));
    }
    CHECK_INT(sgm__series_count(series), count);
    for (size_t room = 1; room <= ROOM; room *= 10) {
        size_t made = sgm__series_reduce(series, 1, count, room, buckets), found = 0;
        uint64_t points = 0;
        CHECK(made >= 1 && made <= room);
        CHECK_INT(buckets[made - 1].iteration, count);
        for (size_t i = 0; i < made; i++) {
            CHECK(i == 0 || buckets[i].iteration > buckets[i - 1].iteration);
            CHECK(buckets[i].minimum <= buckets[i].last && buckets[i].last <= buckets[i].maximum);
            points += buckets[i].count;
        }
        CHECK_INT(points, count);
        for (size_t k = 0; k < sizeof spikes / sizeof *spikes && room == ROOM; k++) {
            size_t i = 0;
            while (buckets[i].iteration < spikes[k])
                i++;
            double wanted = k % 2 == 0 ? 100 + (double)k : -100 - (double)k;
            found += buckets[i].maximum == wanted || buckets[i].minimum == wanted;
        }
        CHECK_INT(found, room == ROOM ? 7 : 0);
    }
    /* columns are of equal width, however fine each time is kept */
    size_t made = sgm__series_reduce(series, 1, count, ROOM, buckets);
    CHECK(made > ROOM * 9 / 10);
    for (size_t i = 1; i < made; i++)
        CHECK(buckets[i].iteration - buckets[i - 1].iteration <= 2 * count / ROOM);
    /* the newest points are all there */
    CHECK_INT(sgm__series_reduce(series, count - 899, count, ROOM, buckets), 901);
    for (size_t i = 0; i < 901; i++)
        CHECK_INT(buckets[i].count, 1);
    sgm__series_free(series);
}

TEST(values_that_are_no_numbers_are_marks)
{
    sgm__series *series = sgm__series_create(16);
    double values[] = {1, NAN, 3, INFINITY, -INFINITY, 2};
    for (int i = 0; i < 6; i++)
        CHECK_OK(sgm__series_append(series, i, values[i]));
    CHECK_INT(sgm__series_reduce(series, 0, 5, 2, buckets), 2);
    CHECK_NEAR(buckets[0].minimum, 1, 0);
    CHECK_NEAR(buckets[0].maximum, 3, 0);
    CHECK_INT(buckets[0].bad, 1);
    CHECK_NEAR(buckets[1].minimum, 2, 0);
    CHECK_NEAR(buckets[1].maximum, 2, 0);
    CHECK_INT(buckets[1].bad, 2);
    CHECK_INT(sgm__series_reduce(series, 0, 5, 6, buckets), 6);
    CHECK_NEAR(buckets[1].minimum, NAN, 0);
    CHECK_NEAR(buckets[3].last, INFINITY, 0);
    for (int i = 6; i < 1000; i++) /* also when they are old */
        CHECK_OK(sgm__series_append(series, i, 2));
    CHECK_INT(sgm__series_reduce(series, 0, 999, 1, buckets), 1);
    CHECK_NEAR(buckets[0].minimum, 1, 0);
    CHECK_NEAR(buckets[0].maximum, 3, 0);
    CHECK_INT(buckets[0].bad, 3);
    CHECK_INT(buckets[0].count, 1000);
    sgm__series_free(series);
}

TEST(a_training_that_goes_back_is_followed)
{
    sgm__series *series = ramp(32, 500);
    int64_t iteration;
    double value;
    CHECK_OK(sgm__series_append(series, 490, -1)); /* among the newest */
    CHECK_INT(sgm__series_count(series), 490);
    CHECK(sgm__series_last(series, &iteration, &value));
    CHECK_INT(iteration, 490);
    CHECK_NEAR(value, -1, 0);
    CHECK_INT(sgm__series_reduce(series, 489, 600, ROOM, buckets), 3);
    CHECK_NEAR(buckets[1].last, 244.5, 0);
    CHECK_OK(sgm__series_append(series, 490, -2)); /* the same again */
    CHECK_INT(sgm__series_count(series), 490);
    CHECK_OK(sgm__series_append(series, 200, -3)); /* among buckets: the one that it is in goes */
    CHECK(sgm__series_count(series) > 1 && sgm__series_count(series) <= 200);
    CHECK_INT(sgm__series_reduce(series, 201, INT64_MAX, ROOM, buckets), 1);
    CHECK_NEAR(buckets[0].last, -3, 0);
    uint64_t points = 0;
    size_t made = sgm__series_reduce(series, 0, INT64_MAX, ROOM, buckets);
    for (size_t i = 0; i < made; i++) {
        CHECK(buckets[i].maximum < 100);
        points += buckets[i].count;
    }
    CHECK_INT(points, sgm__series_count(series));
    CHECK_OK(sgm__series_append(series, 0, 5));
    CHECK_INT(sgm__series_count(series), 1);
    for (int64_t i = 1; i < 300; i++)
        CHECK_OK(sgm__series_append(series, i, 5));
    CHECK_INT(sgm__series_count(series), 300);
    sgm__series_free(series);
}

/* Whichever allocation of it fails: the point is not there, all others are, once. */
TEST(a_point_that_does_not_fit_disturbs_no_other)
{
    enum { POINTS = 256 };
    for (long failing = 1, failed = true; failed; failing++) {
        allocator_start(0);
        sgm__series *series = ramp(POINTS, POINTS);
        atomic_store(&allocator_fail_once, true);
        atomic_store(&allocator_fail_at, atomic_load(&allocator_calls) + failing);
        failed = sgm__series_append(series, POINTS + 1, 0) != SGM_OK;
        CHECK_OK(sgm__series_append(series, POINTS + 2, 0));
        CHECK_INT(sgm__series_count(series), POINTS + 2 - failed);
        size_t made = sgm__series_reduce(series, 1, INT64_MAX, ROOM, buckets), points = 0;
        for (size_t i = 0; i < made; i++) {
            CHECK(i == 0 || buckets[i].iteration > buckets[i - 1].iteration);
            points += buckets[i].count;
        }
        CHECK_INT(points, POINTS + 2 - failed);
        CHECK(failing > 1 || failed);
        sgm__series_free(series);
        CHECK_INT(atomic_load(&allocator_live), 0);
        allocator_stop();
    }
}

TEST(epochs_and_times_are_found_by_iterations_and_back)
{
    sgm__clock *clock = sgm__clock_create(64);
    CHECK_NEAR(sgm__clock_at(clock, 5).seconds, 0, 0);
    CHECK_INT(sgm__clock_find(clock, SGM__AXIS_SECONDS, 1), INT64_MAX);
    for (int64_t i = 0; i <= 1000; i++)
        CHECK_OK(sgm__clock_append(clock, (sgm__clock_tick){10 * i, (double)i / 5, (double)i * 0.25}));
    for (int64_t i = 0; i <= 10000; i += 5) {
        sgm__clock_tick tick = sgm__clock_at(clock, i);
        CHECK_INT(tick.iteration, i);
        CHECK_NEAR(tick.epoch, (double)i / 50, 1e-9);
        CHECK_NEAR(tick.seconds, (double)i / 40, 1e-9);
    }
    CHECK_NEAR(sgm__clock_at(clock, -7).seconds, 0, 0);
    CHECK_NEAR(sgm__clock_at(clock, 20000).epoch, 200, 0);
    CHECK_INT(sgm__clock_find(clock, SGM__AXIS_SECONDS, 50), 2000);
    CHECK_INT(sgm__clock_find(clock, SGM__AXIS_SECONDS, 50.01), 2001);
    CHECK_INT(sgm__clock_find(clock, SGM__AXIS_EPOCH, 100), 5000);
    CHECK_INT(sgm__clock_find(clock, SGM__AXIS_EPOCH, -1), 0);
    CHECK_INT(sgm__clock_find(clock, SGM__AXIS_EPOCH, 201), INT64_MAX);
    CHECK_INT(sgm__clock_find(clock, SGM__AXIS_ITERATION, 12.5), 13);
    CHECK_INT(sgm__clock_find(clock, SGM__AXIS_ITERATION, -INFINITY), INT64_MIN);
    CHECK_OK(sgm__clock_append(clock, (sgm__clock_tick){9000, 180, 300})); /* it has gone back */
    CHECK_NEAR(sgm__clock_at(clock, 9500).seconds, 300, 0);
    CHECK_NEAR(sgm__clock_at(clock, 0).seconds, 0, 0);
    sgm__clock_free(clock);
    sgm__clock_free(NULL);
}

static void check_number(double value)
{
    sgm__text text = {0};
    sgm__web_append_number(&text, value);
    char *end;
    double read = strtod(text.data, &end);
    CHECK(*end == '\0' && text.length < 30);
    CHECK_NEAR(read, value, 1e-8 * fabs(value));
    sgm__text_free(&text);
}

TEST(numbers_are_written_to_nine_digits)
{
    static const struct {
        double value;
        const char *text;
    } exact[] = {{0, "0"},
                 {-3, "-3"},
                 {0.1, "0.1"},
                 {1.0 / 3, "0.333333333"},
                 {-2.0 / 3, "-0.666666667"},
                 {1234.5, "1234.5"},
                 {0.99999999999, "1"},
                 {99999999.99, "100000000"},
                 {1e300, "1e+300"},
                 {12345.678901234, "12345.6789"},
                 {0.00012345678949, "0.000123456789"},
                 {5e-7, "5e-07"}};
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++) {
        sgm__text text = {0};
        sgm__web_append_number(&text, exact[i].value);
        CHECK_STR(text.data, exact[i].text);
        sgm__text_free(&text);
    }
    sgm__random random = sgm__random_make(3, 0);
    for (int i = 0; i < 100000; i++) {
        double size = pow(10, 40 * sgm__random_uniform(&random) - 20);
        check_number(sgm__random_normal(&random) * size);
        check_number(size);
    }
    for (double value = 1e-5; value < 1e16; value *= 10) {
        check_number(value);
        check_number(nextafter(value, 0));
        check_number(nextafter(value, INFINITY));
    }
    sgm__text none = {0};
    sgm__web_append_number(&none, NAN);
    sgm__web_append_number(&none, -INFINITY);
    CHECK_STR(none.data, "nullnull");
    sgm__text_free(&none);
}
