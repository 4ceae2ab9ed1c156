#include "registry/pattern.h"
#include "test.h"

TEST(literal_patterns_match_only_themselves)
{
    CHECK(sgm__pattern_matches("2-dense.weights", "2-dense.weights"));
    CHECK(!sgm__pattern_matches("2-dense.weights", "2-dense.weight"));
    CHECK(!sgm__pattern_matches("2-dense.weight", "2-dense.weights"));
    CHECK(!sgm__pattern_matches("2-dense.weights", "2-dense"));
    CHECK(!sgm__pattern_matches("2-dense", "2-dense.weights"));
    /* no character but the star is special */
    CHECK(!sgm__pattern_matches("a.b", "axb"));
}

TEST(a_star_stands_for_a_run_in_one_part)
{
    CHECK(sgm__pattern_matches("*.weights", "2-dense.weights"));
    CHECK(sgm__pattern_matches("*.*", "2-dense.weights"));
    CHECK(sgm__pattern_matches("2-*.w*s", "2-dense.weights"));
    CHECK(sgm__pattern_matches("*dense*.weights", "2-dense.weights"));
    CHECK(sgm__pattern_matches("*-dense.weights*", "2-dense.weights"));
    CHECK(sgm__pattern_matches("**.weights", "2-dense.weights"));
    CHECK(!sgm__pattern_matches("*.biases", "2-dense.weights"));
    CHECK(!sgm__pattern_matches("*", "2-dense.weights"));
    CHECK(!sgm__pattern_matches("*weights", "2-dense.weights"));
    CHECK(!sgm__pattern_matches("*.weights", "layers.2-dense.weights"));
    CHECK(!sgm__pattern_matches("*.*.*", "2-dense.weights"));
    CHECK(sgm__pattern_matches("layers.*.weights", "layers.2-dense.weights"));
}

TEST(stars_are_tried_again_when_the_rest_does_not_fit)
{
    CHECK(sgm__pattern_matches("a*ab", "aabaab"));
    CHECK(sgm__pattern_matches("*ab*ab", "xabyabzab"));
    CHECK(!sgm__pattern_matches("*ab*ab", "xab"));
    CHECK(!sgm__pattern_matches("a*a", "a"));
    CHECK(sgm__pattern_matches("a*", "a"));
}

TEST(many_stars_do_not_take_exponential_time)
{
    char pattern[400] = "", text[400];
    for (int i = 0; i < 100; i++)
        strcat(pattern, "a*");
    strcat(pattern, "b");
    memset(text, 'a', 399);
    text[399] = '\0';
    CHECK(!sgm__pattern_matches(pattern, text));
}

TEST(more_literal_characters_are_more_specific)
{
    CHECK(sgm__pattern_compare("*.weights", "*.*") > 0);
    CHECK(sgm__pattern_compare("2-*.weights", "*.weights") > 0);
    CHECK(sgm__pattern_compare("a.b", "2-dense-with-a-long-name*.weights") > 0);
}

TEST(patterns_are_in_order)
{
    /* from the least to the most specific */
    static const char *const order[] = {"*",          "w*",          "weights",      "*.*",     "*.weights",
                                        "w*.*eights", "2-*.weights", "d*.*.weights", "*.*.*.*", "a.b.c.d"};
    for (int i = 0; i < 10; i++) {
        for (int j = 0; j < 10; j++) {
            int result = sgm__pattern_compare(order[i], order[j]);
            CHECK_INT((result > 0) - (result < 0), (i > j) - (i < j));
        }
    }
    CHECK_INT(sgm__pattern_compare("a.*", "b.*"), 0);
    CHECK(sgm__pattern_compare("ab*.c*", "a*.bc*") > 0); /* as many: the first part decides */
}

TEST(patterns_are_checked)
{
    CHECK_OK(sgm__pattern_check("layers.*-dense.weights"));
    CHECK_OK(sgm__pattern_check("*"));
    CHECK_ERROR(sgm__pattern_check(""), "empty");
    CHECK_ERROR(sgm__pattern_check(NULL), "empty");
    CHECK_ERROR(sgm__pattern_check(".weights"), "column 1: a part is empty");
    CHECK_ERROR(sgm__pattern_check("a..b"), "column 3: a part is empty");
    CHECK_ERROR(sgm__pattern_check("a.b."), "column 4: a part is empty");
    CHECK_ERROR(sgm__pattern_check("a b"),
                "column 2: expected letters, digits, '_', '-', '*' and '.', found a space");
    char longest[1200];
    memset(longest, 'a', sizeof longest);
    longest[1199] = '\0';
    CHECK_ERROR(sgm__pattern_check(longest), "longer than 1000 bytes");
}
