/* Which trials a search has; mistakes that are found before anything runs. */
#include "environment/search.h"
#include "test.h"

#include <sigma/sigma.h>

/* Wanted of a search, and called when it runs: none does here. */
static sgm_status set_up(void *user, const sgm_trial *trial, sgm_trainer *trainer)
{
    (void)user, (void)trial, (void)trainer;
    return SGM_OK;
}

static sgm_env *make_env(void)
{
    sgm_env *env = sgm_env_create("e", .seed = 3, .threads = 1);
    CHECK_OK(env);
    return env;
}

static const char *value(const sgm_search *search, size_t trial, const char *name)
{
    return sgm_trial_text(sgm_search_trial_at(search, trial), name);
}

static double number(const sgm_search *search, size_t trial, const char *name)
{
    return sgm_trial_number(sgm_search_trial_at(search, trial), name);
}

/* --- which trials there are --- */

TEST(a_grid_has_every_combination_in_order)
{
    static const char *const wanted[] = {"x 1", "x 2", "x 3", "y 1", "y 2", "y 3"};
    sgm_env *env = make_env();
    sgm_search *search = sgm_search_create(
        env, .folder = "none", .set_up = set_up,
        .values = {{"letter", SGM_CHOICES("x", "y")}, {"digit", SGM_CHOICES("1", "2", "3")}});
    CHECK_OK(search);
    CHECK_INT(sgm_search_count(search), 6);
    for (size_t i = 0; i < 6; i++) {
        char text[16], name[16];
        snprintf(text, sizeof text, "%s %s", value(search, i, "letter"), value(search, i, "digit"));
        snprintf(name, sizeof name, "trial-%03zu", i + 1);
        CHECK_STR(text, wanted[i]);
        CHECK_STR(sgm_search_trial_at(search, i)->name, name);
        CHECK_INT(sgm_search_trial_at(search, i)->number, i + 1);
    }
    CHECK(sgm_search_trial_at(search, 6) == NULL);
    CHECK_ERROR(sgm_trial_text(sgm_search_trial_at(search, 0), "colour"), "no values of 'colour'");
    sgm_search_free(search);
    sgm_env_free(env);
}

TEST(steps_of_a_range_are_a_grid)
{
    sgm_env *env = make_env();
    sgm_search *search =
        sgm_search_create(env, .folder = "none", .set_up = set_up,
                          .values = {{"rate", .from = 1e-4, .to = 0.1, .logarithmic = true, .steps = 4},
                                     {"units", .from = 1, .to = 2, .whole = true, .steps = 2}});
    CHECK_OK(search);
    CHECK_INT(sgm_search_count(search), 8);
    for (size_t i = 0; i < 4; i++)
        CHECK_NEAR(number(search, 2 * i, "rate") / pow(10, (double)i - 4), 1, 1e-5);
    CHECK_STR(value(search, 1, "units"), "2");
    sgm_search_free(search);
    sgm_env_free(env);
}

static sgm_search *draw(sgm_env *env, uint64_t seed, int64_t trials)
{
    sgm_search *search = sgm_search_create(env, .method = SGM_SEARCH_RANDOM, .folder = "none",
                                           .set_up = set_up, .seed = seed, .trials = trials,
                                           .values = {{"rate", .from = 1e-4, .to = 0.1, .logarithmic = true},
                                                      {"momentum", .from = 0.5, .to = 0.9},
                                                      {"units", .from = 3, .to = 5, .whole = true},
                                                      {"kind", SGM_CHOICES("a", "b", "c", "d")}});
    CHECK_OK(search);
    CHECK_INT(sgm_search_count(search), trials);
    return search;
}

TEST(draws_fill_their_ranges_evenly)
{
    enum { TRIALS = 3000 };
    sgm_env *env = make_env();
    sgm_search *search = draw(env, 1, TRIALS);
    int decade[3] = {0}, units[6] = {0}, kinds[4] = {0};
    double sum = 0;
    for (size_t i = 0; i < TRIALS; i++) {
        double rate = number(search, i, "rate"), momentum = number(search, i, "momentum"),
               unit = number(search, i, "units");
        CHECK(rate >= 1e-4 && rate <= 0.1 && momentum >= 0.5 && momentum <= 0.9);
        CHECK(unit == 3 || unit == 4 || unit == 5);
        decade[rate < 1e-3 ? 0 : rate < 1e-2 ? 1 : 2]++;
        units[(int)unit]++;
        kinds[value(search, i, "kind")[0] - 'a']++;
        sum += momentum;
    }
    for (int i = 0; i < 3; i++) { /* five standard deviations are 0.043 */
        CHECK_NEAR(decade[i] / (double)TRIALS, 1.0 / 3, 0.043);
        CHECK_NEAR(units[i + 3] / (double)TRIALS, 1.0 / 3, 0.043);
    }
    for (int i = 0; i < 4; i++)
        CHECK_NEAR(kinds[i] / (double)TRIALS, 0.25, 0.04);
    CHECK_NEAR(sum / TRIALS, 0.7, 0.011);
    sgm_search_free(search);
    sgm_env_free(env);
}

TEST(draws_are_a_function_of_seed_and_number)
{
    sgm_env *env = make_env();
    sgm_search *few = draw(env, 7, 10), *many = draw(env, 7, 50), *other = draw(env, 8, 10);
    sgm_search *alone =
        sgm_search_create(env, .method = SGM_SEARCH_RANDOM, .folder = "none", .set_up = set_up, .seed = 7,
                          .trials = 10, .values = {{"momentum", .from = 0.5, .to = 0.9}});
    int same = 0;
    for (size_t i = 0; i < 10; i++) {
        CHECK_STR(value(few, i, "rate"), value(many, i, "rate"));
        CHECK_STR(value(few, i, "kind"), value(many, i, "kind"));
        CHECK_STR(value(few, i, "momentum"), value(alone, i, "momentum"));
        same += strcmp(value(few, i, "rate"), value(other, i, "rate")) == 0;
    }
    CHECK_INT(same, 0);
    sgm_search_free(few);
    sgm_search_free(many);
    sgm_search_free(other);
    sgm_search_free(alone);
    sgm_env_free(env);
}

TEST(nothing_is_drawn_twice)
{
    sgm_env *env = make_env();
    sgm_search *whole =
        sgm_search_create(env, .method = SGM_SEARCH_RANDOM, .folder = "none", .set_up = set_up,
                          .values = {{"units", .from = 1, .to = 3, .whole = true}});
    CHECK_INT(sgm_search_count(whole), 3);
    sgm_search *choices = sgm_search_create(
        env, .method = SGM_SEARCH_RANDOM, .folder = "none", .set_up = set_up, .trials = 5,
        .values = {{"letter", SGM_CHOICES("x", "y")}, {"digit", SGM_CHOICES("1", "2", "3")}});
    CHECK_INT(sgm_search_count(choices), 5);
    for (size_t i = 0; i < 5; i++)
        for (size_t k = 0; k < i; k++)
            CHECK(strcmp(value(choices, i, "letter"), value(choices, k, "letter")) != 0 ||
                  strcmp(value(choices, i, "digit"), value(choices, k, "digit")) != 0);
    sgm_search_free(whole);
    sgm_search_free(choices);
    sgm_env_free(env);
}

/* A logarithmic range of whole numbers draws small ones again and again: those that are left are taken. */
TEST(what_is_left_of_whole_numbers_is_found)
{
    enum { TRIALS = 3000 };
    static bool there[TRIALS + 11];
    sgm_env *env = make_env();
    sgm_search *search = sgm_search_create(
        env, .method = SGM_SEARCH_RANDOM, .folder = "none", .set_up = set_up, .trials = TRIALS,
        .values = {{"units", .from = 1, .to = TRIALS + 10, .whole = true, .logarithmic = true}});
    CHECK_INT(sgm_search_count(search), TRIALS);
    for (size_t i = 0; i < TRIALS; i++) {
        size_t units = (size_t)number(search, i, "units");
        CHECK(units >= 1 && units <= TRIALS + 10 && !there[units]);
        there[units] = true;
    }
    sgm_search_free(search);
    sgm_env_free(env);
}

/* Columns are as wide as the characters in them, however many bytes those are; long texts are cut behind one.
 */
TEST(tables_count_characters)
{
    static const char wanted[] =
        "trial  training.loss  word                                      epochs  seconds  state\n"
        "    1              -  ÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄ...  1       0.0      waiting\n"
        "    2              -  größer                                    1       0.0      waiting\n";
    sgm_env *env = make_env();
    sgm_search *search = sgm_search_create(
        env, .folder = "none", .set_up = set_up, .objective = "training.loss",
        .values = {{"word", SGM_CHOICES("ÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄ", "größer")}});
    CHECK_OK(search);
    search->trials[0].shown.epochs = search->trials[1].shown.epochs = 1;
    char *text = sgm_search_text(search);
    CHECK_STR(text, wanted);
    sgm_string_free(text);
    sgm_search_free(search);
    sgm_env_free(env);
}

static void check_rungs(int64_t trials, int64_t epochs, double factor, int64_t minimum, size_t count,
                        const int64_t (*wanted)[2])
{
    sgm_env *env = make_env();
    sgm_search *search =
        sgm_search_create(env, .method = SGM_SEARCH_HALVING, .folder = "none", .set_up = set_up,
                          .trials = trials, .epochs = epochs, .factor = factor, .minimum_epochs = minimum,
                          .values = {{"momentum", .from = 0.5, .to = 0.9}});
    CHECK_OK(search);
    int64_t own[2];
    for (size_t i = 0; i < count; i++) {
        CHECK(sgm_search_rung(search, i, &own[0], &own[1]));
        CHECK_INT(own[0], wanted[i][0]);
        CHECK_INT(own[1], wanted[i][1]);
    }
    CHECK(!sgm_search_rung(search, count, &own[0], &own[1]));
    sgm_search_free(search);
    sgm_env_free(env);
}

TEST(rungs_share_out_epochs)
{
    check_rungs(9, 27, 0, 0, 3, (const int64_t[][2]){{9, 3}, {3, 9}, {1, 27}});
    check_rungs(27, 27, 3, 0, 4, (const int64_t[][2]){{27, 1}, {9, 3}, {3, 9}, {1, 27}});
    check_rungs(20, 10, 2, 0, 4, (const int64_t[][2]){{20, 1}, {10, 2}, {5, 5}, {2, 10}});
    check_rungs(20, 10, 2, 2, 3, (const int64_t[][2]){{20, 2}, {10, 5}, {5, 10}});
    check_rungs(1000, 100, 10, 0, 3, (const int64_t[][2]){{1000, 1}, {100, 10}, {10, 100}});
    check_rungs(5, 2, 3, 0, 1, (const int64_t[][2]){{5, 2}});
}

/* --- mistakes --- */

#define BAD(message, ...)                                                                                    \
    CHECK_ERROR(sgm_search_create(env, .set_up = set_up, .folder = "none", __VA_ARGS__), message)

TEST(mistakes_are_found_before_anything_runs)
{
    sgm_env *env = make_env();
    BAD("expected values to search", .epochs = 1);
    BAD("'digit': expected at least one choice",
        .values = {{"digit", .choices = (const char *const[]){NULL}}});
    BAD("'digit': '1' is there twice", .values = {{"digit", SGM_CHOICES("1", "2", "1")}});
    BAD("values of 'digit' are there twice",
        .values = {{"digit", SGM_CHOICES("1")}, {"digit", SGM_CHOICES("2")}});
    BAD("'rate': a grid wants choices", .values = {{"rate", .from = 0, .to = 1}});
    BAD("a range from a number to a larger one; got 1 to 1", .method = SGM_SEARCH_RANDOM,
        .values = {{"rate", .from = 1, .to = 1}});
    BAD("must begin above 0", .method = SGM_SEARCH_RANDOM,
        .values = {{"rate", .to = 1, .logarithmic = true}});
    BAD("range of whole numbers", .method = SGM_SEARCH_RANDOM,
        .values = {{"rate", .from = 0.5, .to = 2, .whole = true}});
    BAD("the grid has 1000000 points, more than the 10000",
        .values = {{"a", .to = 1, .steps = 1000}, {"b", .to = 1, .steps = 1000}});
    BAD("trials: expected 1 to 10000, got -1", .trials = -1, .values = {{"a", SGM_CHOICES("1")}});
    BAD("halving shares out epochs", .method = SGM_SEARCH_HALVING, .values = {{"a", SGM_CHOICES("1")}});
    BAD("epochs, iterations and minimum_epochs must not be negative", .minimum_epochs = -1,
        .values = {{"a", SGM_CHOICES("1")}});
    BAD("factor: expected 2 to 1000, got 1.5", .method = SGM_SEARCH_HALVING, .epochs = 9, .factor = 1.5,
        .values = {{"a", SGM_CHOICES("1")}});
    CHECK_ERROR(sgm_search_create(env, .set_up = set_up, .values = {{"a", SGM_CHOICES("1")}}),
                "expected a folder");
    CHECK_ERROR(sgm_search_create(env, .folder = "x", .values = {{"a", SGM_CHOICES("1")}}), ".set_up");
    CHECK_OK(sgm_env_status(env));
    sgm_env_free(env);
}
