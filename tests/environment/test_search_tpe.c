/* What TPE chooses, and which values matter: by results that the tests make up, without training. */
#include "base/allocator.h"
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

/* --- the estimator --- */

/* log_pdf of Optuna's _ParzenEstimator (5.0.0) for a FloatDistribution(0, 1), with its sampler's default
 * weights, consider_magic_clip and without consider_endpoints. */
TEST(densities_are_those_of_optuna)
{
    static const double
        places[] = {0, 0.13, 0.5, 0.97},
        five[] = {0.9, 0.1, 0.55, 0.55, 0.3},
        wanted[][4] = {
            {-0.08402219950905043, -0.027472199509050443, 0.04097780049094957, -0.06947219950905037},
            {0.008846912606699897, 0.04964651252932506, 0.0478911357428794, -0.19480754453234295},
            {-0.19092718590164792, 0.07933496470232049, 0.11143095890453858, -0.4332602684131944},
            {-1.6878879173860395, 0.21493098110906295, 0.027867168349417493, 0.21704463335166646},
        };
    double one = 0.2, sixty[60];
    for (int i = 0; i < 60; i++)
        sixty[i] = (double)(i * 37 % 60) / 60 + 0.004;
    for (int i = 0; i < 4; i++) {
        CHECK_NEAR(sgm__parzen_log_density(NULL, 0, places[i]), wanted[0][i], 1e-12);
        CHECK_NEAR(sgm__parzen_log_density(&one, 1, places[i]), wanted[1][i], 1e-12);
        CHECK_NEAR(sgm__parzen_log_density(five, 5, places[i]), wanted[2][i], 1e-12);
        CHECK_NEAR(sgm__parzen_log_density(sixty, 60, places[i]), wanted[3][i], 1e-12);
    }
}

/* --- searches with results that are computed --- */

typedef double (*function)(const sgm_trial *trial);

/* What sgm_search_run does, without the training. */
static void run(sgm_search *search, function objective)
{
    for (size_t i = 0; i < search->trial_count; i++) {
        sgm__trial *trial = &search->trials[i];
        if (trial->open)
            CHECK_OK(sgm__search_suggest(search, trial));
        trial->shown.objective = objective(&trial->shown);
        trial->shown.state = isnan(trial->shown.objective) ? SGM_TRIAL_FAILED : SGM_TRIAL_DONE;
        trial->shown.rung = 1;
        trial->shown.epochs = 1;
    }
}

static sgm_search *create(sgm_env *env, sgm_search_method method, uint64_t seed, int64_t trials)
{
    sgm_search *search = sgm_search_create(env, .method = method, .folder = "none", .set_up = set_up,
                                           .seed = seed, .trials = trials, .goal = SGM_SEARCH_MINIMUM,
                                           .values = {{"rate", .from = 1e-5, .to = 1, .logarithmic = true},
                                                      {"momentum", .from = 0, .to = 1},
                                                      {"units", .from = 1, .to = 64, .whole = true},
                                                      {"kind", SGM_CHOICES("a", "b", "c", "d")}});
    CHECK_OK(search);
    CHECK_INT(sgm_search_count(search), trials);
    return search;
}

/* Smallest, 0, at rate 0.003, momentum 0.8, 40 units and kind c. */
static double bowl(const sgm_trial *trial)
{
    double rate = log10(sgm_trial_number(trial, "rate") / 0.003),
           momentum = sgm_trial_number(trial, "momentum") - 0.8,
           units = (sgm_trial_number(trial, "units") - 40) / 64;
    return rate * rate / 4 + 4 * momentum * momentum + 2 * units * units +
           (strcmp(sgm_trial_text(trial, "kind"), "c") == 0 ? 0 : 0.3);
}

/* Fails where a training would: at high rates. */
static double bowl_with_failures(const sgm_trial *trial)
{
    return sgm_trial_number(trial, "rate") > 0.05 ? NAN : bowl(trial);
}

static double mean_of_bests(sgm_search_method method, function objective)
{
    enum { SEEDS = 20 };
    double sum = 0;
    sgm_env *env = make_env();
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        sgm_search *search = create(env, method, seed, 60);
        run(search, objective);
        sum += sgm_search_best(search)->objective;
        sgm_search_free(search);
    }
    sgm_env_free(env);
    return sum / SEEDS;
}

TEST(tpe_finds_minima_that_random_search_does_not)
{
    double random = mean_of_bests(SGM_SEARCH_RANDOM, bowl), tpe = mean_of_bests(SGM_SEARCH_TPE, bowl);
    printf("# mean of the best of 60: random %.4f, tpe %.4f\n", random, tpe);
    CHECK(tpe < 0.35 * random);
    random = mean_of_bests(SGM_SEARCH_RANDOM, bowl_with_failures);
    tpe = mean_of_bests(SGM_SEARCH_TPE, bowl_with_failures);
    printf("# with failures: random %.4f, tpe %.4f\n", random, tpe);
    CHECK(tpe < 0.35 * random);
}

TEST(tpe_begins_as_random_search_and_repeats_nothing)
{
    sgm_env *env = make_env();
    sgm_search *random = create(env, SGM_SEARCH_RANDOM, 5, 40), *tpe = create(env, SGM_SEARCH_TPE, 5, 40),
               *again = create(env, SGM_SEARCH_TPE, 5, 40);
    CHECK_INT(sgm_search_trial_at(tpe, 10)->value_count, 0);
    CHECK_ERROR(sgm_trial_text(sgm_search_trial_at(tpe, 10), "rate"), "no values of 'rate'");
    run(tpe, bowl);
    run(again, bowl);
    for (size_t i = 0; i < 40; i++) {
        const sgm_trial *own = sgm_search_trial_at(tpe, i), *other = sgm_search_trial_at(random, i);
        CHECK_INT(own->value_count, 4);
        CHECK_INT(strcmp(sgm_trial_text(own, "rate"), sgm_trial_text(other, "rate")) == 0, i < 10);
        CHECK_STR(sgm_trial_text(own, "rate"), sgm_trial_text(sgm_search_trial_at(again, i), "rate"));
        CHECK_STR(sgm_trial_text(own, "kind"), sgm_trial_text(sgm_search_trial_at(again, i), "kind"));
        CHECK(sgm__search_is_new(tpe, &tpe->trials[i]));
        double rate = sgm_trial_number(own, "rate"), units = sgm_trial_number(own, "units");
        CHECK(rate >= 1e-5 && rate <= 1);
        CHECK(units >= 1 && units <= 64 && units == floor(units));
    }
    sgm_search_free(random);
    sgm_search_free(tpe);
    sgm_search_free(again);
    sgm_env_free(env);
}

static double by_size(const sgm_trial *trial)
{
    return sgm_trial_number(trial, "units");
}

/* 200 combinations, 190 trials: when the estimator has no new ones any more, those that are left are taken.
 */
TEST(tpe_uses_up_a_small_space)
{
    sgm_env *env = make_env();
    sgm_search *search =
        sgm_search_create(env, .method = SGM_SEARCH_TPE, .folder = "none", .set_up = set_up, .trials = 190,
                          .startup_trials = 3, .goal = SGM_SEARCH_MINIMUM,
                          .values = {{"units", .from = 1, .to = 100, .whole = true, .logarithmic = true},
                                     {"kind", SGM_CHOICES("a", "b")}});
    CHECK_OK(search);
    CHECK_INT(sgm_search_trial_at(search, 3)->value_count, 0);
    run(search, by_size);
    for (size_t i = 0; i < 190; i++)
        CHECK(sgm__search_is_new(search, &search->trials[i]));
    sgm_search_free(search);
    /* As many trials as combinations: all of them, and nothing to choose. */
    search = sgm_search_create(env, .method = SGM_SEARCH_TPE, .folder = "none", .set_up = set_up,
                               .trials = 20, .values = {{"units", .from = 1, .to = 20, .whole = true}});
    CHECK_OK(search);
    for (size_t i = 0; i < 20; i++)
        CHECK_NEAR(sgm_trial_number(sgm_search_trial_at(search, i), "units"), (double)i + 1, 0);
    sgm_search_free(search);
    sgm_env_free(env);
}

/* --- importance --- */

/* The rate explains 9/13 of the variance of this sum, the momentum 4/13. */
static double weighted_sum(const sgm_trial *trial)
{
    return 3 * (log10(sgm_trial_number(trial, "rate")) + 5) / 5 + 2 * sgm_trial_number(trial, "momentum");
}

/* Nothing but the kind matters, and c is better than all others. */
static double only_kind(const sgm_trial *trial)
{
    return strcmp(sgm_trial_text(trial, "kind"), "c") == 0 ? 0 : 1e6 + (double)trial->number;
}

static void importance_of(sgm_env *env, function objective, int64_t trials, double shares[4])
{
    sgm_search *search = create(env, SGM_SEARCH_RANDOM, 2, trials);
    run(search, objective);
    CHECK_OK(sgm_search_importance(search, shares, 4));
    printf("# importance: rate %.3f, momentum %.3f, units %.3f, kind %.3f\n", shares[0], shares[1], shares[2],
           shares[3]);
    sgm_search_free(search);
}

TEST(importance_is_the_variance_that_a_value_explains)
{
    sgm_env *env = make_env();
    double shares[4];
    importance_of(env, weighted_sum, 400, shares);
    CHECK_NEAR(shares[0], 9.0 / 13, 0.06);
    CHECK_NEAR(shares[1], 4.0 / 13, 0.06);
    CHECK(shares[2] < 0.02 && shares[3] < 0.02);
    for (int64_t trials = 20; trials <= 100; trials += 40) {
        importance_of(env, weighted_sum, trials, shares);
        CHECK(shares[0] > shares[1] && shares[1] > shares[2] && shares[1] > shares[3]);
    }
    importance_of(env, only_kind, 60, shares);
    CHECK(shares[3] > shares[0] && shares[3] > shares[1] && shares[3] > shares[2]);
    sgm_search *search = create(env, SGM_SEARCH_TPE, 1, 20);
    CHECK_ERROR(sgm_search_importance(search, shares, 4), "can be told from 10 trials on; 0 have ended");
    CHECK_ERROR(sgm_search_importance(search, shares, 3), "room for a number for each value");
    sgm_search_free(search);
    sgm_env_free(env);
}

/* --- memory that runs out --- */

/* The n-th allocation fails, for n = 1, 2, ... until all succeed: a trial stays open, and nothing is lost. */
TEST(memory_that_runs_out_is_an_error)
{
    sgm_env *env = make_env();
    sgm_search *search = create(env, SGM_SEARCH_TPE, 3, 30), *wanted = create(env, SGM_SEARCH_TPE, 3, 30);
    double shares[4];
    run(wanted, bowl);
    for (size_t i = 0; i < 20; i++) {
        sgm__trial *trial = &search->trials[i];
        sgm_status status = trial->open ? SGM_ERROR_MEMORY : SGM_OK;
        for (long n = 1; status != SGM_OK; n++) {
            allocator_start_once(n);
            status = sgm__search_suggest(search, trial);
            allocator_stop();
            CHECK(status == SGM_OK || (status == SGM_ERROR_MEMORY && trial->open));
            CHECK_INT(trial->shown.value_count, status == SGM_OK ? 4 : 0);
            CHECK(status == SGM_OK || n < 1000);
        }
        CHECK_STR(trial->values[0].text, wanted->trials[i].values[0].text);
        trial->shown.objective = bowl(&trial->shown);
        trial->shown.state = SGM_TRIAL_DONE;
        trial->shown.rung = 1;
        trial->shown.epochs = 1;
    }
    sgm_status status = SGM_ERROR_MEMORY;
    long failures = 0;
    for (; status != SGM_OK; failures++) {
        allocator_start_once(failures + 1);
        status = sgm_search_importance(search, shares, 4);
        CHECK_INT(atomic_load(&allocator_live), 0);
        allocator_stop();
        CHECK(status == SGM_OK || status == SGM_ERROR_MEMORY);
    }
    CHECK_INT(failures, 7); /* six allocations, and none that fails */
    sgm_search_free(search);
    sgm_search_free(wanted);
    sgm_env_free(env);
}

/* --- mistakes --- */

TEST(mistakes_of_tpe_and_pruning)
{
    sgm_env *env = make_env();
    CHECK_ERROR(sgm_search_create(env, .method = SGM_SEARCH_TPE, .set_up = set_up, .folder = "none",
                                  .startup_trials = -1, .values = {{"a", .from = 0, .to = 1}}),
                "startup_trials: expected 1 to 10000, got -1");
    CHECK_ERROR(sgm_search_create(env, .set_up = set_up, .folder = "none", .prune_after_epochs = -1,
                                  .values = {{"a", SGM_CHOICES("1")}}),
                "prune_after_trials and prune_after_epochs must not be negative");
    CHECK_ERROR(sgm_search_create(env, .method = SGM_SEARCH_HALVING, .set_up = set_up, .folder = "none",
                                  .epochs = 9, .pruning = SGM_PRUNING_MEDIAN,
                                  .values = {{"a", SGM_CHOICES("1", "2")}}),
                "halving stops trials itself: leave pruning out");
    sgm_env_free(env);
}
