/* Searches: which trials there are, who goes on, what becomes of failures and interruptions. */
#include "test.h"

#include <sigma/sigma.h>
#include <unistd.h>

static char folder[64];

static const char *new_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/sigma-search-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    return folder;
}

static void remove_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    CHECK_INT(system(command), 0);
}

/* --- what is searched: a small regression; the objective is made up where a test wants one --- */

#define RECORDS 24
static double (*score)(int64_t trial, int64_t epoch);

static sgm_dataset *sines(void)
{
    static const char *const sections[] = {"inputs", "targets"};
    float x[RECORDS * 3], y[RECORDS];
    for (int i = 0; i < RECORDS * 3; i++)
        x[i] = (float)sin(1.3 * i + 0.2);
    for (int i = 0; i < RECORDS; i++)
        y[i] = x[3 * i] * x[3 * i + 1] - x[3 * i + 2];
    sgm_shape inputs = sgm_shape_of(RECORDS, 3), targets = sgm_shape_of(RECORDS, 1);
    sgm_tensor *tensors[] = {sgm_tensor_from(SGM_FLOAT32, &inputs, x),
                             sgm_tensor_from(SGM_FLOAT32, &targets, y)};
    sgm_dataset *dataset = sgm_dataset_from("sines", sections, tensors, 2);
    sgm_tensor_free(tensors[0]);
    sgm_tensor_free(tensors[1]);
    return dataset;
}

static void publish_score(sgm_trainer *trainer, double value)
{
    sgm_content shared;
    CHECK_OK(sgm_resolve_one(sgm_trainer_registry(trainer), "shared", &shared));
    CHECK_OK(sgm_registry_set(shared.as.registry, "score", sgm_number_content(value)));
    sgm_content_clear(&shared);
}

static bool make_score_up(void *user, const sgm_training_progress *progress)
{
    int64_t trial = strtoll(progress->trainer + strlen("trial-"), NULL, 10);
    if (progress->kind == SGM_PROGRESS_EPOCH && score != NULL)
        publish_score(user, score(trial, progress->epoch));
    return true;
}

static sgm_status fill(sgm_trainer *trainer)
{
    sgm_dataset *dataset = sines();
    sgm_trainer_network(trainer, "input(3) + dense(5, tanh) + dropout(0.2) + dense(1) + mean_squared");
    sgm_trainer_data(trainer, sgm_minibatches(dataset, .size = 8));
    sgm_trainer_add_data(trainer, "validation", sgm_undivided(dataset));
    sgm_dataset_free(dataset);
    return sgm_trainer_optimiser(trainer,
                                 sgm_momentum(.learning_rate = 0.05, .schedule = {.kind = SGM_COSINE}));
}

static sgm_status set_up(void *user, const sgm_trial *trial, sgm_trainer *trainer)
{
    (void)user;
    (void)trial;
    if (fill(trainer) != SGM_OK)
        return sgm_last_status();
    return sgm_trainer_on_progress(trainer, make_score_up, trainer);
}

static sgm_env *make_env(void)
{
    sgm_env *env = sgm_env_create("e", .seed = 3, .threads = 1);
    CHECK_OK(env);
    return env;
}

static const char *value(const sgm_search *search, size_t trial, const char *name)
{
    return sgm_trial_text(sgm_search_trial(search, trial), name);
}

static double number(const sgm_search *search, size_t trial, const char *name)
{
    return sgm_trial_number(sgm_search_trial(search, trial), name);
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
        CHECK_STR(sgm_search_trial(search, i)->name, name);
        CHECK_INT(sgm_search_trial(search, i)->number, i + 1);
    }
    CHECK(sgm_search_trial(search, 6) == NULL);
    CHECK_ERROR(sgm_trial_text(sgm_search_trial(search, 0), "colour"), "no values of 'colour'");
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

static void check_rungs(int64_t trials, int64_t epochs, double factor, int64_t least, size_t count,
                        const int64_t (*wanted)[2])
{
    sgm_env *env = make_env();
    sgm_search *search =
        sgm_search_create(env, .method = SGM_SEARCH_HALVING, .folder = "none", .set_up = set_up,
                          .trials = trials, .epochs = epochs, .factor = factor, .least_epochs = least,
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
    BAD("factor: expected 2 to 1000, got 1.5", .method = SGM_SEARCH_HALVING, .epochs = 9, .factor = 1.5,
        .values = {{"a", SGM_CHOICES("1")}});
    CHECK_ERROR(sgm_search_create(env, .set_up = set_up, .values = {{"a", SGM_CHOICES("1")}}),
                "expected a folder");
    CHECK_ERROR(sgm_search_create(env, .folder = "x", .values = {{"a", SGM_CHOICES("1")}}), ".set_up");
    CHECK_OK(sgm_env_status(env));
    sgm_env_free(env);
}

/* --- running --- */

static const char *const rates[] = {"0.01", "0.02", "0.03", "0.04", "0.05",
                                    "0.06", "0.07", "0.08", "0.09", NULL};

static sgm_search_options standard(sgm_search_method method)
{
    return (sgm_search_options){.struct_size = sizeof(sgm_search_options),
                                .method = method,
                                .set_up = set_up,
                                .folder = folder,
                                .objective = "shared.score",
                                .epochs = 9,
                                .checkpoint_every = -1,
                                .values = {{"optimiser.learning_rate", rates}}};
}

static sgm_status run(const sgm_search_options *options, char **table)
{
    sgm_env *env = make_env();
    sgm_search *search = sgm_search_create_options(env, options);
    CHECK_OK(search);
    sgm_status status = sgm_search_run(search);
    if (table != NULL)
        *table = sgm_search_csv(search);
    sgm_search_free(search);
    char message[1024];
    snprintf(message, sizeof message, "%s", sgm_last_error());
    sgm_env_free(env);
    return status == SGM_OK ? SGM_OK : sgm_fail(status, "%s", message);
}

/* Without the seconds, which are never the same. */
static void drop_seconds(char *table)
{
    char *out = table;
    for (char *line = strtok(table, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        int commas = 0;
        for (char *c = line; *c != '\0'; c++) {
            commas += *c == ',';
            if (commas != 4 || *c == ',')
                *out++ = *c;
        }
        *out++ = '\n';
    }
    *out = '\0';
}

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
    new_folder();
    score = changing_score;
    sgm_search_options options = standard(SGM_SEARCH_HALVING);
    CHECK_OK(run(&options, &table));
    drop_seconds(table);
    CHECK_STR(table, wanted);
    sgm_string_free(table);

    /* The winner is what it is when it is trained in one go, though the schedule is over all epochs. */
    sgm_env *env = make_env();
    sgm_trainer *trainer = sgm_trainer_create(env, "alone");
    CHECK_OK(fill(trainer));
    CHECK_OK(sgm_resolve_set(sgm_trainer_registry(trainer), "optimiser.learning_rate",
                             sgm_number_content(0.07), NULL, NULL));
    CHECK_OK(sgm_run(env, .epochs = 9));
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
    remove_folder();
}

TEST(side_by_side_is_the_same)
{
    char *one, *three;
    sgm_search_options options = standard(SGM_SEARCH_HALVING);
    options.objective = NULL; /* validation.loss */
    new_folder();
    CHECK_OK(run(&options, &one));
    remove_folder();
    new_folder();
    options.folder = folder;
    options.at_once = 3;
    CHECK_OK(run(&options, &three));
    remove_folder();
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
    new_folder();
    score = holey_score;
    sgm_search_options options = standard(SGM_SEARCH_GRID);
    options.values[0].choices = SGM_CHOICES("1", "2", "3", "4", "5", "6", "100000", "0.08", "0.09");
    options.epochs = 4;
    sgm_env *env = make_env();
    sgm_search *search = sgm_search_create_options(env, &options);
    CHECK_OK(sgm_search_run(search));
    const sgm_trial *wild = sgm_search_trial(search, 6), *ninth = sgm_search_trial(search, 8);
    CHECK_INT(wild->state, SGM_TRIAL_FAILED);
    CHECK(strncmp(wild->error, "the loss is ", 12) == 0);
    CHECK_INT(ninth->state, SGM_TRIAL_FAILED);
    CHECK_STR(ninth->error, "shared.score is not a finite number after epoch 3");
    CHECK_INT(ninth->epochs, 3);
    CHECK_INT(sgm_search_trial(search, 7)->state, SGM_TRIAL_DONE);
    CHECK_STR(sgm_search_best(search)->name, "trial-008");
    char *text = sgm_search_text(search);
    CHECK(strstr(text, "failed: shared.score is not a finite number after epoch 3\n") != NULL);
    sgm_string_free(text);
    CHECK_ERROR(sgm_search_run(search), "a search runs once");
    sgm_search_free(search);
    sgm_env_free(env);
    remove_folder();
}

TEST(what_all_trials_lack_is_a_failure)
{
    new_folder();
    sgm_search_options options = standard(SGM_SEARCH_GRID);
    options.objective = "validation.los";
    CHECK_ERROR(run(&options, NULL), "did you mean 'validation.loss'");
    remove_folder();
    new_folder();
    options = standard(SGM_SEARCH_GRID);
    options.epochs = 0; /* and no validation before the end */
    options.iterations = 2;
    options.objective = "validation.loss";
    CHECK_ERROR(run(&options, NULL), "the objective, looked for after 0 epochs of trial-001: ");
    remove_folder();
    new_folder();
    options = standard(SGM_SEARCH_GRID);
    options.objective = "network";
    CHECK_ERROR(run(&options, NULL), "'network' is no number");
    remove_folder();
    new_folder();
    options = standard(SGM_SEARCH_GRID);
    options.values[0].name = "optimiser.learning_rat";
    CHECK_ERROR(run(&options, NULL), "all 9 trials have failed, the first one so:");
    remove_folder();
}

/* --- going on --- */

typedef struct patience {
    int64_t events;
} patience;

static bool lose_patience(void *user, const sgm_search_progress *progress)
{
    patience *p = user;
    (void)progress;
    return p->events-- > 0;
}

static char *undisturbed(sgm_search_options *options)
{
    char *table;
    new_folder();
    options->folder = folder;
    CHECK_OK(run(options, &table));
    remove_folder();
    drop_seconds(table);
    return table;
}

TEST(an_interrupted_search_goes_on_to_the_same_table)
{
    sgm_search_options options = standard(SGM_SEARCH_HALVING);
    score = NULL;
    options.objective = NULL;
    char *wanted = undisturbed(&options), *table = NULL;
    for (int64_t events = 1; events < 30; events += 14) {
        int runs = 0;
        new_folder();
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
        remove_folder();
    }
    sgm_string_free(wanted);
    sgm_string_free(table);
}

/* Keeps `lines` of search.jsonl, and half of the next one: what a crash leaves. */
static void cut_log(int lines)
{
    char path[128], text[65536];
    snprintf(path, sizeof path, "%s/search.jsonl", folder);
    FILE *file = fopen(path, "r+");
    CHECK(file != NULL);
    size_t length = fread(text, 1, sizeof text - 1, file), at = 0;
    text[length] = '\0';
    for (int i = 0; i < lines; i++)
        at += strcspn(text + at, "\n") + 1;
    CHECK(at < length);
    CHECK_INT(ftruncate(fileno(file), (off_t)(at + strcspn(text + at, "\n") / 2)), 0);
    fclose(file);
}

static void crash_and_resume(const char *objective, double (*own)(int64_t, int64_t))
{
    sgm_search_options options = standard(SGM_SEARCH_HALVING);
    char *table;
    score = own;
    options.objective = objective;
    char *wanted = undisturbed(&options);
    for (int lines = 3; lines < 14; lines += 8) {
        new_folder();
        options.folder = folder;
        options.resume = false;
        CHECK_OK(run(&options, NULL));
        cut_log(lines); /* the checkpoints are from after the last line */
        options.resume = true;
        CHECK_OK(run(&options, &table));
        drop_seconds(table);
        CHECK_STR(table, wanted);
        sgm_string_free(table);
        remove_folder();
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

TEST(another_search_is_not_gone_on_with)
{
    new_folder();
    score = plain_score;
    sgm_search_options options = standard(SGM_SEARCH_GRID);
    options.epochs = 2;
    CHECK_OK(run(&options, NULL));
    CHECK_ERROR(run(&options, NULL), "holds a search already");
    options.resume = true;
    CHECK_OK(run(&options, NULL));
    options.epochs = 3;
    CHECK_ERROR(run(&options, NULL), "its epochs was 2, is 3");
    options.epochs = 2;
    options.values[0].choices = SGM_CHOICES("0.5");
    CHECK_ERROR(run(&options, NULL), "has another search: its trials was 9, is 1");
    remove_folder();
}

/* --- the environment meanwhile --- */

static bool try_to_disturb(void *user, const sgm_search_progress *progress)
{
    sgm_env *env = user;
    if (progress->event == SGM_SEARCH_TRIAL_BEGINS && progress->trial->number == 1) {
        CHECK_ERROR(sgm_run(env, .epochs = 1), "is running already");
        CHECK_ERROR(sgm_trainer_create(env, "other"), "takes no new trainer");
    }
    if (progress->event == SGM_SEARCH_TRIAL_ENDS && progress->trial->number == 4)
        CHECK_OK(sgm_stop(env, "seen enough"));
    return true;
}

TEST(a_search_has_its_environment_for_itself_and_can_be_stopped)
{
    new_folder();
    score = plain_score;
    sgm_search_options options = standard(SGM_SEARCH_GRID);
    sgm_env *env = make_env();
    options.epochs = 2;
    options.user = env;
    options.progress = try_to_disturb;
    sgm_search *search = sgm_search_create_options(env, &options);
    CHECK_INT(sgm_search_run(search), SGM_ERROR_INTERRUPTED);
    CHECK_INT(sgm_search_trial(search, 3)->state, SGM_TRIAL_DONE);
    CHECK_INT(sgm_search_trial(search, 4)->state, SGM_TRIAL_WAITING);
    sgm_search_free(search);
    CHECK_OK(sgm_env_status(env));
    CHECK_OK(sgm_trainer_create(env, "trial-001")); /* the trials' trainers are gone */
    sgm_env_free(env);
    remove_folder();
}
