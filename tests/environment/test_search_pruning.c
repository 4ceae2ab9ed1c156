/* Trials that are pruned, and TPE: searches that run, and go on after interruptions and crashes. */
#include "search_test.h"

#include "base/base.h"

/* --- the median rule --- */

/* After epoch e the trials have these objectives; larger is better. The first five are trained to their end.
 * After three epochs their median is 0.5, after four 0.7. */
static double climbing(int64_t trial, int64_t epoch)
{
    static const double at[9][5] = {
        {0.1, 0.2, 0.3, 0.5, 0.9}, {0.1, 0.3, 0.5, 0.7, 0.8}, {0.2, 0.3, 0.7, 0.9, 0.7},
        {0.2, 0.3, 0.4, 0.6, 0.6}, {0.3, 0.3, 0.6, 0.8, 0.5}, {0.0, 0.0, 0.4, 0.9, 0.9}, /* 0.4 < 0.5 */
        {0.6, 0.1, 0.1, 0.9, 1.0},                                                       /* had 0.6 before */
        {0.0, 0.0, 0.6, 0.6, 0.9}, /* 0.6 < 0.7, the median with trial 7 too */
        {0.0, 0.0, 0.5, 0.8, 0.1},
    };
    return at[trial - 1][epoch - 1];
}

static sgm_search_options pruned_search(void)
{
    sgm_search_options options = default_value(SGM_SEARCH_GRID);
    options.epochs = 5;
    options.pruning = SGM_PRUNING_MEDIAN;
    options.prune_after_epochs = 3;
    return options;
}

static const char pruned_table[] = "trial,shared.score,optimiser.learning_rate,epochs,,state,error\n"
                                   "7,1,0.07,5,,done,\n"
                                   "1,0.9,0.01,5,,done,\n"
                                   "2,0.8,0.02,5,,done,\n"
                                   "3,0.7,0.03,5,,done,\n"
                                   "4,0.6,0.04,5,,done,\n"
                                   "5,0.5,0.05,5,,done,\n"
                                   "9,0.1,0.09,5,,done,\n"
                                   "8,0.6,0.08,4,,dropped,\n"
                                   "6,0.4,0.06,3,,dropped,\n";

TEST(trials_below_the_median_are_pruned)
{
    score = climbing;
    sgm_search_options options = pruned_search();
    char *table = undisturbed(&options);
    CHECK_STR(table, pruned_table);
    sgm_string_free(table);
    /* None before as many trials have ended. */
    options.prune_after_trials = 9;
    table = undisturbed(&options);
    CHECK(strstr(table, "dropped") == NULL);
    sgm_string_free(table);
}

TEST(a_trial_that_was_pruned_says_so)
{
    open_folder();
    score = climbing;
    sgm_search_options options = pruned_search();
    sgm_env *env = make_env();
    sgm_search *search = sgm_search_create_with(env, &options);
    CHECK_OK(sgm_search_run(search));
    const sgm_trial *sixth = sgm_search_trial_at(search, 5);
    CHECK_INT(sixth->state, SGM_TRIAL_DROPPED);
    CHECK_INT(sixth->epochs, 3);
    CHECK_INT(sixth->rung, 0);
    CHECK_NEAR(sixth->objective, 0.4, 0);
    CHECK_STR(sgm_search_best(search)->name, "trial-007");
    sgm_search_free(search);
    sgm_env_free(env);
    close_folder();
}

/* --- going on --- */

static void interrupt(sgm_search_options *options, const char *wanted)
{
    for (int64_t events = 1; events < 30; events += 14) {
        char *table = NULL;
        sgm_status status = SGM_ERROR_INTERRUPTED;
        open_folder();
        options->folder = folder;
        options->resume = true;
        options->progress = lose_patience;
        for (int runs = 0; status == SGM_ERROR_INTERRUPTED; runs++) {
            patience own = {events};
            options->user = &own;
            sgm_string_free(table);
            status = run(options, &table);
            CHECK(status == SGM_OK || status == SGM_ERROR_INTERRUPTED);
            CHECK(runs < 100);
        }
        drop_seconds(table);
        CHECK_STR(table, wanted);
        sgm_string_free(table);
        close_folder();
    }
    options->progress = NULL;
}

/* The log is cut behind some line, in the middle of the next one: what a crash leaves. */
static void crash(sgm_search_options *options, const char *wanted)
{
    for (int lines = 2; lines < 10; lines += 3) {
        char *table;
        open_folder();
        options->folder = folder;
        options->resume = false;
        CHECK_OK(run(options, NULL));
        cut_log(lines);
        options->resume = true;
        CHECK_OK(run(options, &table));
        drop_seconds(table);
        CHECK_STR(table, wanted);
        sgm_string_free(table);
        close_folder();
    }
    options->resume = false;
}

TEST(a_pruned_search_goes_on_to_the_same_table)
{
    score = climbing;
    sgm_search_options options = pruned_search();
    interrupt(&options, pruned_table);
    crash(&options, pruned_table);
    /* With curves that the metrics have. */
    options.objective = NULL;
    options.prune_after_epochs = 0;
    options.prune_after_trials = 2;
    score = NULL;
    char *wanted = undisturbed(&options);
    CHECK(strstr(wanted, "dropped") != NULL);
    interrupt(&options, wanted);
    crash(&options, wanted);
    sgm_string_free(wanted);
}

static sgm_search_options tpe_search(void)
{
    sgm_search_options options = default_value(SGM_SEARCH_TPE);
    options.objective = NULL;
    options.epochs = 3;
    options.trials = 9;
    options.startup_trials = 4;
    options.values[0] =
        (sgm_search_values){"optimiser.learning_rate", .from = 1e-4, .to = 0.1, .logarithmic = true};
    return options;
}

TEST(tpe_goes_on_to_the_same_table)
{
    score = NULL;
    sgm_search_options options = tpe_search();
    char *wanted = undisturbed(&options);
    interrupt(&options, wanted);
    crash(&options, wanted);
    options.pruning = SGM_PRUNING_MEDIAN;
    options.prune_after_trials = 2;
    char *pruned = undisturbed(&options);
    CHECK(strstr(pruned, "dropped") != NULL);
    interrupt(&options, pruned);
    crash(&options, pruned);
    sgm_string_free(pruned);
    sgm_string_free(wanted);
}

/* Which trials have ended when another one begins is chance; that each has values of its own is not. */
TEST(tpe_with_trials_side_by_side)
{
    open_folder();
    score = NULL;
    sgm_search_options options = tpe_search();
    options.folder = folder;
    options.at_once = 3;
    sgm_env *env = make_env();
    sgm_search *search = sgm_search_create_with(env, &options);
    CHECK_OK(sgm_search_run(search));
    for (size_t i = 0; i < 9; i++) {
        const sgm_trial *trial = sgm_search_trial_at(search, i);
        CHECK_INT(trial->state, SGM_TRIAL_DONE);
        CHECK_INT(trial->value_count, 1);
        for (size_t k = 0; k < i; k++)
            CHECK(strcmp(trial->values[0].text, sgm_search_trial_at(search, k)->values[0].text) != 0);
    }
    sgm_search_free(search);
    options.resume = true;
    options.at_once = 1;
    search = sgm_search_create_with(env, &options);
    CHECK_OK(sgm_search_run(search)); /* all values are those of the log */
    CHECK_INT(sgm_search_trial_at(search, 8)->value_count, 1);
    sgm_search_free(search);
    sgm_env_free(env);
    close_folder();
}

TEST(values_of_a_log_are_checked)
{
    open_folder();
    score = NULL;
    sgm_search_options options = tpe_search();
    options.folder = folder;
    CHECK_OK(run(&options, NULL));
    char path[512], *text, *value;
    size_t length;
    snprintf(path, sizeof path, "%s/search.jsonl", folder);
    CHECK_OK(sgm__file_read(path, 1 << 20, &text, &length));
    value = strstr(text, "\"begun\"");
    CHECK(value != NULL);
    value = strstr(value, "rate\":\"") + strlen("rate\":\"");
    *value = '9'; /* larger than the range */
    CHECK_OK(sgm__file_write_atomic(path, text, length));
    sgm__free(text);
    options.resume = true;
    CHECK_ERROR(run(&options, NULL), "search.jsonl:6: trial-005 has other values");
    close_folder();
}
