/* Numbers of float32 as text: they read back as the same, and nothing shorter does. */
#include "test.h"

#include "base/base.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>

static void check(float number, const char *expected)
{
    char text[SGM__FLOAT_TEXT];
    CHECK_STR(sgm__float_text(number, text, sizeof text), expected);
}

TEST(numbers_that_a_person_writes)
{
    check(0, "0");
    check(-0.0f, "-0");
    check(1, "1");
    check(-2.5f, "-2.5");
    check(0.1f, "0.1");
    check(0.00012f, "0.00012");
    check(0.000012f, "0.000012");
    check(0.0000012f, "1.2e-6");
    check(100, "100");
    check(123456.7f, "123456.7");
    check(16777216, "16777216");
    check(3e15f, "3000000000000000");
    check(3e16f, "3e16");
    check(1.0f / 3, "0.33333334");
    check(FLT_MAX, "3.4028235e38");
    check(FLT_MIN, "1.1754944e-38");
    check(1e-45f, "1e-45");
    check(0.99999994f, "0.99999994");
    check(9.9999998e-5f, "0.0001");
}

static size_t digits_in(const char *text)
{
    size_t count = 0, zeros = 0;
    bool begun = false;
    for (; *text != '\0' && *text != 'e'; text++) {
        if (*text < '0' || *text > '9')
            continue;
        begun = begun || *text != '0';
        zeros = *text == '0' ? zeros + 1 : 0;
        count += begun;
    }
    return count - (begun ? zeros : 0);
}

TEST(any_number_reads_back_and_nothing_shorter_does)
{
    uint32_t state = 12345;
    for (int i = 0; i < 200000; i++) {
        float number, again;
        char text[SGM__FLOAT_TEXT], other[32];
        state = state * 1664525u + 1013904223u;
        uint32_t bits = i % 2 == 0 ? state : (state & 0x81ffffffu) + 0x3c000000u; /* any; near 1 */
        memcpy(&number, &bits, sizeof number);
        if (!isfinite(number) || number == 0)
            continue;
        sgm__float_text(number, text, sizeof text);
        again = strtof(text, NULL);
        if (memcmp(&again, &number, sizeof number) != 0)
            TEST_FAIL("%.9g is written as %s", (double)number, text);
        size_t shortest = 1;
        do
            snprintf(other, sizeof other, "%.*g", (int)shortest, (double)number);
        while (strtof(other, NULL) != number && shortest++ < 9);
        if (digits_in(text) > shortest)
            TEST_FAIL("%.9g is written as %s, where %s would do", (double)number, text, other);
    }
}
