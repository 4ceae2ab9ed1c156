/* Searches that run: who goes on, what becomes of failures and interruptions. */
#include "search_test.h"

#include "environment/search.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Trials 3, 7 and 5 are best after an epoch, 7 is after three. */
static double changing_score(int64_t trial, int64_t epoch)
{
    static const double early[] = {0.5, 0.1, 0.9, 0.3, 0.7, 0.2, 0.8, 0.6, 0.4};
    return epoch < 3 ? early[trial - 1] : trial == 3 ? 0.2 : trial == 7 ? 0.95 : 0.9;
}

static sgm_tensor *weights_of(const char *path)
{
    sgm_bundle *bundle = sgm_bundle_load(path);
    CHECK_OK(bundle);
    sgm_tensor *weights = sgm_tensor_retain(sgm_bundle_get(bundle, "1-dense.weights"));
    sgm_bundle_free(bundle);
    return weights;
}

TEST(halving_goes_on_with_the_best)
{
    static const char wanted[] = "trial,shared.score,optimiser.learning_rate,epochs,,state,error\n"
                                 "7,0.95,0.07,9,,done,\n"
                                 "5,0.9,0.05,3,,dropped,\n"
                                 "3,0.2,0.03,3,,dropped,\n"
                                 "8,0.6,0.08,1,,dropped,\n"
                                 "1,0.5,0.01,1,,dropped,\n"
                                 "9,0.4,0.09,1,,dropped,\n"
                                 "4,0.3,0.04,1,,dropped,\n"
                                 "6,0.2,0.06,1,,dropped,\n"
                                 "2,0.1,0.02,1,,dropped,\n";
    char *table, path[128];
    open_folder();
    score = changing_score;
    sgm_search_options options = default_value(SGM_SEARCH_HALVING);
    CHECK_OK(run(&options, &table));
    drop_seconds(table);
    CHECK_STR(table, wanted);
    sgm_string_free(table);

    /* The winner is what it is when it is trained in one go, though the schedule is over all epochs. */
    sgm_env *env = make_env();
    sgm_trainer *trainer = sgm_trainer_create(env, "alone");
    CHECK_OK(fill(trainer));
    CHECK_OK(sgm_registry_resolve_set(sgm_trainer_registry(trainer), "optimiser.learning_rate",
                                      sgm_number_content(0.07), NULL, NULL));
    CHECK_OK(sgm_env_run(env, .epochs = 9));
    sgm_tensor *alone = sgm_trainer_get(trainer, "1-dense.weights");
    snprintf(path, sizeof path, "%s/trial-007/checkpoint.safetensors", folder);
    sgm_tensor *found = weights_of(path);
    double a[15], b[15];
    CHECK_OK(sgm_tensor_read(alone, a, 15));
    CHECK_OK(sgm_tensor_read(found, b, 15));
    CHECK(memcmp(a, b, sizeof a) == 0);
    sgm_tensor_free(alone);
    sgm_tensor_free(found);
    sgm_env_free(env);
    close_folder();
}

TEST(side_by_side_is_the_same)
{
    char *one, *three;
    sgm_search_options options = default_value(SGM_SEARCH_HALVING);
    options.objective = NULL; /* validation.loss */
    open_folder();
    CHECK_OK(run(&options, &one));
    close_folder();
    open_folder();
    options.folder = folder;
    options.at_once = 3;
    CHECK_OK(run(&options, &three));
    close_folder();
    drop_seconds(one);
    drop_seconds(three);
    CHECK(strstr(one, "validation.loss") != NULL);
    CHECK_STR(three, one);
    sgm_string_free(one);
    sgm_string_free(three);
}

static double plain_score(int64_t trial, int64_t epoch)
{
    return (double)trial / 10 + (double)epoch / 1000;
}

static double holey_score(int64_t trial, int64_t epoch)
{
    return trial == 9 && epoch == 3 ? NAN : plain_score(trial, epoch);
}

TEST(a_trial_that_fails_does_not_stop_the_others)
{
    open_folder();
    score = holey_score;
    sgm_search_options options = default_value(SGM_SEARCH_GRID);
    options.values[0].choices = SGM_CHOICES("1", "2", "3", "4", "5", "6", "100000", "0.08", "0.09");
    options.epochs = 4;
    sgm_env *env = make_env();
    sgm_search *search = sgm_search_create_with(env, &options);
    CHECK_OK(sgm_search_run(search));
    const sgm_trial *wild = sgm_search_trial_at(search, 6), *ninth = sgm_search_trial_at(search, 8);
    CHECK_INT(wild->state, SGM_TRIAL_FAILED);
    CHECK(strncmp(wild->error, "the loss is ", 12) == 0);
    CHECK_INT(ninth->state, SGM_TRIAL_FAILED);
    CHECK_STR(ninth->error, "shared.score is not a finite number after epoch 3");
    CHECK_INT(ninth->epochs, 3);
    CHECK_INT(sgm_search_trial_at(search, 7)->state, SGM_TRIAL_DONE);
    CHECK_STR(sgm_search_best(search)->name, "trial-008");
    char *text = sgm_search_text(search);
    CHECK(strstr(text, "failed: shared.score is not a finite number after epoch 3\n") != NULL);
    sgm_string_free(text);
    CHECK_ERROR(sgm_search_run(search), "a search runs once");
    sgm_search_free(search);
    sgm_env_free(env);
    close_folder();
}

TEST(what_all_trials_lack_is_a_failure)
{
    open_folder();
    sgm_search_options options = default_value(SGM_SEARCH_GRID);
    options.objective = "validation.los";
    CHECK_ERROR(run(&options, NULL), "did you mean 'validation.loss'");
    close_folder();
    open_folder();
    options = default_value(SGM_SEARCH_GRID);
    options.epochs = 0; /* and no validation before the end */
    options.iterations = 2;
    options.objective = "validation.loss";
    CHECK_ERROR(run(&options, NULL), "the objective, looked for after 0 epochs of trial-001: ");
    close_folder();
    open_folder();
    options = default_value(SGM_SEARCH_GRID);
    options.objective = "network";
    CHECK_ERROR(run(&options, NULL), "'network' is no number");
    close_folder();
    open_folder();
    options = default_value(SGM_SEARCH_GRID);
    options.values[0].name = "optimiser.learning_rat";
    CHECK_ERROR(run(&options, NULL), "all 9 trials have failed, the first one so:");
    close_folder();
}

/* --- going on --- */

TEST(an_interrupted_search_goes_on_to_the_same_table)
{
    sgm_search_options options = default_value(SGM_SEARCH_HALVING);
    score = NULL;
    options.objective = NULL;
    char *wanted = undisturbed(&options), *table = NULL;
    for (int64_t events = 1; events < 30; events += 14) {
        int runs = 0;
        open_folder();
        options.folder = folder;
        options.resume = true;
        options.progress = lose_patience;
        for (sgm_status status = SGM_ERROR_INTERRUPTED; status == SGM_ERROR_INTERRUPTED; runs++) {
            patience own = {events};
            options.user = &own;
            sgm_string_free(table);
            status = run(&options, &table);
            CHECK(status == SGM_OK || status == SGM_ERROR_INTERRUPTED);
            CHECK(runs < 100);
        }
        CHECK(runs > 1);
        drop_seconds(table);
        CHECK_STR(table, wanted);
        close_folder();
    }
    sgm_string_free(wanted);
    sgm_string_free(table);
}

/* From 2 to 1 and back, in the first line of search.jsonl. */
static void change_version(void)
{
    static const char key[] = "{\"version\":";
    char path[512], text[sizeof key];
    snprintf(path, sizeof path, "%s/search.jsonl", folder);
    FILE *file = fopen(path, "r+");
    CHECK(file != NULL);
    CHECK_INT(fread(text, 1, sizeof text, file), sizeof text);
    CHECK(memcmp(text, key, sizeof key - 1) == 0);
    CHECK_INT(fseek(file, sizeof key - 1, SEEK_SET), 0);
    fputc(text[sizeof key - 1] == '2' ? '1' : '2', file);
    fclose(file);
}

static void crash_and_resume(const char *objective, double (*own)(int64_t, int64_t))
{
    sgm_search_options options = default_value(SGM_SEARCH_HALVING);
    char *table;
    score = own;
    options.objective = objective;
    char *wanted = undisturbed(&options);
    for (int lines = 3; lines < 14; lines += 8) {
        open_folder();
        options.folder = folder;
        options.resume = false;
        CHECK_OK(run(&options, NULL));
        cut_log(lines); /* the checkpoints are from after the last line */
        options.resume = true;
        CHECK_OK(run(&options, &table));
        drop_seconds(table);
        CHECK_STR(table, wanted);
        sgm_string_free(table);
        close_folder();
    }
    sgm_string_free(wanted);
}

TEST(a_crash_loses_no_more_than_a_line)
{
    crash_and_resume("validation.loss", NULL);
}

TEST(an_objective_that_no_file_has_is_computed_again)
{
    crash_and_resume("shared.score", plain_score);
}

/* As on a disk that is full: `room` bytes of the next line fit into the log. */
static sgm_status append_with_room(sgm_search *search, rlim_t room)
{
    struct stat log;
    struct rlimit before, limit;
    CHECK_INT(fstat(search->log, &log), 0);
    CHECK_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){.rlim_cur = (rlim_t)log.st_size + room, .rlim_max = before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
    sgm_status status = sgm__search_log_append(search, &search->trials[0], "interrupted", 1);
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    return status;
}

TEST(a_line_that_does_not_fit_leaves_no_half)
{
    open_folder();
    sgm_search_options options = default_value(SGM_SEARCH_GRID);
    options.resume = true;
    sgm_env *env = make_env();
    for (int i = 0; i < 2; i++) { /* the second time from the file of the first */
        sgm_search *search = sgm_search_create_with(env, &options);
        CHECK_OK(search);
        CHECK_OK(sgm__search_log_open(search));
        CHECK_NEAR(search->trials[0].shown.seconds, i, 0);
        CHECK_ERROR(append_with_room(search, 20), "cannot write to search.jsonl: No space left on device");
        CHECK_ERROR(append_with_room(search, 0), "cannot write to search.jsonl: File too large");
        CHECK_OK(append_with_room(search, 4096));
        close(search->log);
        sgm_search_free(search);
    }
    sgm_env_free(env);
    close_folder();
}

TEST(another_search_is_not_gone_on_with)
{
    open_folder();
    score = plain_score;
    sgm_search_options options = default_value(SGM_SEARCH_GRID);
    options.epochs = 2;
    CHECK_OK(run(&options, NULL));
    CHECK_ERROR(run(&options, NULL), "holds a search already");
    options.resume = true;
    CHECK_OK(run(&options, NULL));
    options.epochs = 3;
    CHECK_ERROR(run(&options, NULL), "its epochs was 2, is 3");
    options.epochs = 2;
    change_version();
    CHECK_ERROR(run(&options, NULL), "search.jsonl:1: its version is 1, this library reads version 2");
    change_version();
    options.values[0].choices = SGM_CHOICES("0.5");
    CHECK_ERROR(run(&options, NULL), "has another search: its trials was 9, is 1");
    close_folder();
}

/* --- the environment meanwhile --- */

static bool try_to_disturb(void *user, const sgm_search_progress *progress)
{
    sgm_env *env = user;
    if (progress->event == SGM_SEARCH_TRIAL_BEGINS && progress->trial->number == 1) {
        CHECK_ERROR(sgm_env_run(env, .epochs = 1), "is running already");
        CHECK_ERROR(sgm_trainer_create(env, "other"), "takes no new trainer");
    }
    if (progress->event == SGM_SEARCH_TRIAL_ENDS && progress->trial->number == 4)
        CHECK_OK(sgm_env_stop(env, "seen enough"));
    return true;
}

TEST(a_search_has_its_environment_for_itself_and_can_be_stopped)
{
    open_folder();
    score = plain_score;
    sgm_search_options options = default_value(SGM_SEARCH_GRID);
    sgm_env *env = make_env();
    options.epochs = 2;
    options.user = env;
    options.progress = try_to_disturb;
    sgm_search *search = sgm_search_create_with(env, &options);
    CHECK_INT(sgm_search_run(search), SGM_ERROR_INTERRUPTED);
    CHECK_INT(sgm_search_trial_at(search, 3)->state, SGM_TRIAL_DONE);
    CHECK_INT(sgm_search_trial_at(search, 4)->state, SGM_TRIAL_WAITING);
    sgm_search_free(search);
    CHECK_OK(sgm_env_status(env));
    CHECK_OK(sgm_trainer_create(env, "trial-001")); /* the trials' trainers are gone */
    sgm_env_free(env);
    close_folder();
}
