/* Quantities as people read them. */
#include "test.h"

#include <sigma/base.h>

TEST(durations)
{
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {
        {0, "0.0 s"},
        {2.5e-6, "2.5 us"},
        {0.0031, "3.1 ms"},
        {0.99994, "999.9 ms"},
        {0.99996, "1.0 s"},
        {12.42, "12.4 s"},
        {59.94, "59.9 s"},
        {59.96, "1 min"},
        {60, "1 min"},
        {61, "1 min 1 s"},
        {3599.4, "59 min 59 s"},
        {3599.6, "1 h"},
        {3720, "1 h 2 min"},
        {86399, "23 h 59 min"},
        {90000, "1 d 1 h"},
        {604800, "1 w"},
        {1209600 + 172800, "2 w 2 d"},
        {31536000, "1 y"},
        {31536000 + 3 * 604800, "1 y 3 w"},
        {-3720, "-1 h 2 min"},
        {-0.5, "-500.0 ms"},
        {(double)INFINITY, "unknown"},
        {(double)NAN, "unknown"},
    };
    char buffer[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_STR(sgm_duration_text(cases[i].seconds, buffer, sizeof buffer), cases[i].text);
}

TEST(rates_choose_their_unit)
{
    char buffer[64];
    CHECK_STR(sgm_rate_text(12.42, "examples", buffer, sizeof buffer), "12.4 examples/s");
    CHECK_STR(sgm_rate_text(123456.7, "examples", buffer, sizeof buffer), "123457 examples/s");
    CHECK_STR(sgm_rate_text(3.5 / 60, "epochs", buffer, sizeof buffer), "3.5 epochs/min");
    CHECK_STR(sgm_rate_text(2.0 / 3600, "epochs", buffer, sizeof buffer), "2.0 epochs/h");
    CHECK_STR(sgm_rate_text(0.5 / 86400, "epochs", buffer, sizeof buffer), "0.5 epochs/d");
    CHECK_STR(sgm_rate_text(0, "epochs", buffer, sizeof buffer), "0.0 epochs/s");
    CHECK_STR(sgm_rate_text(-1, "epochs", buffer, sizeof buffer), "unknown");
    CHECK_STR(sgm_rate_text((double)NAN, "epochs", buffer, sizeof buffer), "unknown");
}

TEST(clocks)
{
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {
        {0, "0:00"},       {12.4, "0:12"},        {59.6, "1:00"},    {187, "3:07"},
        {3599.4, "59:59"}, {3599.5, "1:00:00"},   {3723, "1:02:03"}, {360000, "100:00:00"},
        {-5, "0:00"},      {(double)NAN, "0:00"}, {1e300, "0:00"},
    };
    char buffer[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_STR(sgm_clock_text(cases[i].seconds, buffer, sizeof buffer), cases[i].text);
}

TEST(counts)
{
    char buffer[64];
    CHECK_STR(sgm_count_text(0, buffer, sizeof buffer), "0");
    CHECK_STR(sgm_count_text(999, buffer, sizeof buffer), "999");
    CHECK_STR(sgm_count_text(1000, buffer, sizeof buffer), "1,000");
    CHECK_STR(sgm_count_text(-123456, buffer, sizeof buffer), "-123,456");
    CHECK_STR(sgm_count_text(INT64_MIN, buffer, sizeof buffer), "-9,223,372,036,854,775,808");
}

TEST(bytes)
{
    static const struct {
        double bytes;
        const char *text;
    } cases[] = {
        {0, "0 bytes"},       {999, "999 bytes"}, {1000, "1.0 kB"},         {9912422, "9.9 MB"},
        {999949, "999.9 kB"}, {999950, "1.0 MB"}, {1.5e9, "1.5 GB"},        {2.5e12, "2.5 TB"},
        {3e15, "3000.0 TB"},  {-1, "unknown"},    {(double)NAN, "unknown"},
    };
    char buffer[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_STR(sgm_bytes_text(cases[i].bytes, buffer, sizeof buffer), cases[i].text);
}

TEST(short_buffers_hold_a_beginning)
{
    char buffer[8];
    CHECK_STR(sgm_duration_text(-100, buffer, 3), "-1");
    CHECK_STR(sgm_duration_text(-100, buffer, 1), "");
    CHECK_STR(sgm_clock_text(3723, buffer, 4), "1:0");
    CHECK_STR(sgm_bytes_text(12, buffer, 4), "12 ");
    CHECK_STR(sgm_count_text(123456, buffer, 1), "");
}
