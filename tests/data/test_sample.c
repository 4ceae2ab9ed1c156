/* Drawing by probabilities: how often what comes, what is never drawn, what is wrong. */
#include "test.h"

#include <sigma/text.h>

#include <math.h>

#define DRAWS 20000
static const double probabilities[] = {0.1, 0.4, 0, 0.2, 0.3};
#define COUNT 5

static void count_draws(int64_t counts[COUNT], const sgm_sample_options *options)
{
    for (int64_t i = 0; i < COUNT; i++)
        counts[i] = 0;
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        int64_t number = sgm_probabilities_sample(probabilities, COUNT, 7, draw, options);
        CHECK(number >= 0 && number < COUNT);
        counts[number]++;
    }
}

/* Within four standard deviations. */
static void check_shares(const sgm_sample_options *options, const double expected[COUNT])
{
    int64_t counts[COUNT];
    count_draws(counts, options);
    for (int64_t i = 0; i < COUNT; i++)
        CHECK_NEAR((double)counts[i] / DRAWS, expected[i], 4 * sqrt(expected[i] * (1 - expected[i]) / DRAWS));
}
#define CHECK_SHARES(option, ...) check_shares(SGM_SAMPLING(option), (const double[]){__VA_ARGS__})

TEST(what_is_likely_is_drawn_often)
{
    CHECK_SHARES(.temperature = 1, 0.1, 0.4, 0, 0.2, 0.3);
    /* squares: 0.01, 0.16, 0.04, 0.09 of 0.3 */
    CHECK_SHARES(.temperature = 0.5, 0.01 / 0.3, 0.16 / 0.3, 0, 0.04 / 0.3, 0.09 / 0.3);
    CHECK_SHARES(.top_k = 2, 0, 0.4 / 0.7, 0, 0, 0.3 / 0.7);
    CHECK_SHARES(.top_k = 99, 0.1, 0.4, 0, 0.2, 0.3);
    CHECK_SHARES(.top_p = 0.65, 0, 0.4 / 0.7, 0, 0, 0.3 / 0.7);
    CHECK_SHARES(.top_p = 0.75, 0, 0.4 / 0.9, 0, 0.2 / 0.9, 0.3 / 0.9);
    CHECK_SHARES(.greedy = true, 0, 1, 0, 0, 0);
    CHECK_SHARES(.temperature = 1e-9, 0, 1, 0, 0, 0);
}

/* Of transformers 5.24: TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper and MinPLogitsWarper,
 * those that are named here, in this order, on the logarithms of the probabilities. */
TEST(options_together_are_applied_in_the_order_of_transformers)
{
    CHECK_SHARES(.min_p = 0.6, 0, 0.571428571428571, 0, 0, 0.428571428571429);
    CHECK_SHARES(.min_p = 0.3, 0, 0.444444444444444, 0, 0.222222222222222, 0.333333333333333);
    check_shares(SGM_SAMPLING(.temperature = 2, .min_p = 0.6),
                 (const double[]){0, 0.388631414212121, 0, 0.274803908371509, 0.33656467741637});
    check_shares(SGM_SAMPLING(.top_k = 3, .top_p = 0.9, .min_p = 0.7),
                 (const double[]){0, 0.571428571428571, 0, 0, 0.428571428571429});
    check_shares(SGM_SAMPLING(.temperature = 0.5, .top_k = 3, .top_p = 0.8, .min_p = 0.5),
                 (const double[]){0, 0.64, 0, 0, 0.36});
    CHECK_SHARES(.min_p = 1, 0, 1, 0, 0, 0);
}

TEST(the_same_seed_draws_the_same)
{
    int64_t differing = 0;
    for (uint64_t draw = 0; draw < 200; draw++) {
        CHECK_INT(sgm_probabilities_sample(probabilities, COUNT, 3, draw, NULL),
                  sgm_probabilities_sample(probabilities, COUNT, 3, draw, NULL));
        differing += sgm_probabilities_sample(probabilities, COUNT, 3, draw, NULL) !=
                     sgm_probabilities_sample(probabilities, COUNT, 4, draw, NULL);
    }
    CHECK(differing > 50);
    /* probabilities need not add up to 1, and tiny ones are no zeros */
    CHECK_INT(
        sgm_probabilities_sample((const double[]){0, 1e-300, 0}, 3, 1, 0, SGM_SAMPLING(.temperature = 0.1)),
        1);
    CHECK_INT(sgm_probabilities_sample((const double[]){1e300, 0}, 2, 1, 0, SGM_SAMPLING(.temperature = 0.1)),
              0);
}

TEST(wrong_chances_and_options_are_told)
{
    CHECK_INT(sgm_probabilities_sample(probabilities, 0, 1, 0, SGM_SAMPLING(.top_k = 1)), -1);
    CHECK(strstr(sgm_last_error(), "the probabilities of at least 1 number are wanted") != NULL);
    CHECK_INT(sgm_probabilities_sample(probabilities, COUNT, 1, 0, SGM_SAMPLING(.temperature = -1)), -1);
    CHECK(strstr(sgm_last_error(), "the temperature is above 0, not -1") != NULL);
    CHECK_INT(sgm_probabilities_sample(probabilities, COUNT, 1, 0, SGM_SAMPLING(.top_p = 1.5)), -1);
    CHECK(strstr(sgm_last_error(), "top_p is above 0 and at most 1, not 1.5") != NULL);
    CHECK_INT(sgm_probabilities_sample(probabilities, COUNT, 1, 0, SGM_SAMPLING(.min_p = 1.5)), -1);
    CHECK(strstr(sgm_last_error(), "min_p is from 0 to 1, not 1.5") != NULL);
    CHECK_INT(sgm_probabilities_sample(probabilities, COUNT, 1, 0, SGM_SAMPLING(.top_k = -2)), -1);
    CHECK(strstr(sgm_last_error(), "top_k is at least 1, not -2") != NULL);
    CHECK_INT(sgm_probabilities_sample((const double[]){0.5, (double)NAN}, 2, 1, 0, SGM_SAMPLING(.top_k = 1)),
              -1);
    CHECK(strstr(sgm_last_error(), "the chance of number 1 is nan") != NULL);
    CHECK_INT(sgm_probabilities_sample((const double[]){0, 0}, 2, 1, 0, SGM_SAMPLING(.top_k = 1)), -1);
    CHECK(strstr(sgm_last_error(), "none of 2 numbers has a chance") != NULL);
}
