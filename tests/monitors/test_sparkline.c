/* Curves as a line of text. */
#include "monitors/sparkline.h"
#include "test.h"

static void check_drawn(const sgm__sparkline *line, size_t columns, const char *wanted)
{
    sgm__text text = {0};
    sgm__sparkline_append(&text, line, columns);
    CHECK_STR(text.data != NULL ? text.data : "", wanted);
    sgm__text_free(&text);
}

TEST(bars_reach_from_the_minimum_to_the_maximum)
{
    sgm__sparkline line = {0};
    check_drawn(&line, 8, "");
    sgm__sparkline_add(&line, 1);
    check_drawn(&line, 8, "");
    sgm__sparkline_add(&line, NAN);
    sgm__sparkline_add(&line, INFINITY);
    check_drawn(&line, 8, "");
    sgm__sparkline_add(&line, 1);
    check_drawn(&line, 8, "▁▁"); /* nothing to see in equal ones */
    for (int i = 2; i <= 8; i++)
        sgm__sparkline_add(&line, i);
    check_drawn(&line, 9, "▁▁▂▃▄▅▆▇█");
    check_drawn(&line, 3, "▁▄█"); /* means 4/3, 4, 7 */
    check_drawn(&line, 1, "");
}

TEST(long_runs_keep_their_beginning)
{
    sgm__sparkline line = {0};
    for (int i = 0; i < 100000; i++)
        sgm__sparkline_add(&line, 100000 - i);
    CHECK(line.count >= SGM__SPARKLINE_POINTS / 2 && line.count < SGM__SPARKLINE_POINTS);
    check_drawn(&line, 8, "█▇▆▅▄▃▂▁");
    CHECK(line.points[0] > 95000);
}

TEST(far_apart_numbers_are_drawn_by_their_logarithms)
{
    sgm__sparkline line = {0};
    for (int i = 0; i < 8; i++)
        sgm__sparkline_add(&line, pow(2, -i)); /* 1 to 1/128: each bar is one lower */
    check_drawn(&line, 8, "█▇▆▅▄▃▂▁");
    sgm__sparkline_add(&line, -1); /* has no logarithm */
    check_drawn(&line, 9, "█▇▆▅▅▅▅▅▁");
}
