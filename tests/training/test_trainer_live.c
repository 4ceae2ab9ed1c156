/* A trainer while it runs: values by name, changes and their record, commands from another thread. */
#include "base/german.h"
#include "by_name.h"

#include <stdlib.h>
#include <unistd.h>

TEST(everything_has_a_name)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 6));
    CHECK_NEAR(number_of(made.trainer, "iteration"), 6, 0);
    CHECK_NEAR(number_of(made.trainer, "epoch"), 1, 0);
    CHECK_NEAR(number_of(made.trainer, "batch"), 2, 0);
    CHECK_NEAR(number_of(made.trainer, "optimiser.learning_rate"), 0.1, 0);
    CHECK(number_of(made.trainer, "optimiser.loss") > 0);
    CHECK(number_of(made.trainer, "training.loss") > 0);
    CHECK(number_of(made.trainer, "running_time") > 0);
    sgm_matches matches;
    CHECK_OK(sgm_registry_resolve(sgm_trainer_registry(made.trainer), "network.layers.*<dense>.weights",
                                  &matches));
    CHECK_INT(matches.count, 3);
    CHECK_STR(matches.items[1].identifier, "network.layers.2-dense.weights");
    CHECK_INT(sgm_tensor_shape(matches.items[1].content.as.tensor)->dims[1], 5);
    sgm_matches_free(&matches);
    sgm_content velocity;
    CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(made.trainer),
                                      "optimiser.slots.momentum.2-dense.weights", &velocity));
    sgm_content_clear(&velocity);
    free_wave_trainer(made);
}

TEST(a_value_that_does_not_fit_is_refused)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    sgm_registry *registry = sgm_trainer_registry(made.trainer);
    CHECK_ERROR(
        sgm_registry_resolve_set(registry, "optimiser.learning_rate", sgm_text_content("banana"), NULL, NULL),
        "banana");
    CHECK_ERROR(sgm_registry_resolve_set(registry, "optimiser.momentum", sgm_number_content(1.5), NULL, NULL),
                "optimiser.momentum");
    CHECK_ERROR(sgm_registry_resolve_set(registry, "iteration", sgm_integer_content(3), NULL, NULL),
                "iteration");
    CHECK_NEAR(number_of(made.trainer, "optimiser.learning_rate"), 0.1, 0);
    free_wave_trainer(made);
}

/* A learning rate of 0 from the third iteration on: parameters stay from then on. */
static bool set_rate_to_zero(void *user, const sgm_training_progress *progress)
{
    if (progress->kind == SGM_PROGRESS_ITERATION && progress->iteration == 2)
        CHECK_OK(sgm_registry_resolve_set(sgm_trainer_registry(user), "optimiser.learning_rate",
                                          sgm_number_content(0), NULL, NULL));
    return true;
}

TEST(a_change_counts_from_the_next_iteration_on_and_is_recorded)
{
    char folder[64] = "/tmp/sigma-test-XXXXXX", path[128], *text;
    size_t length;
    CHECK(mkdtemp(folder) != NULL);
    wave_trainer two =
        make_wave_trainer((wave_options){.optimiser = sgm_gradient_descent(.learning_rate = 0.1)});
    CHECK_OK(sgm_trainer_run(two.trainer, .iterations = 2));
    wave_trainer made =
        make_wave_trainer((wave_options){.optimiser = sgm_gradient_descent(.learning_rate = 0.1)});
    CHECK_OK(sgm_trainer_on_progress(made.trainer, set_rate_to_zero, made.trainer));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 5, .folder = folder));
    CHECK(weight_of(made.trainer, "1-dense.weights") == weight_of(two.trainer, "1-dense.weights"));
    snprintf(path, sizeof path, "%s/journal.jsonl", folder);
    CHECK_OK(sgm__file_read(path, 65536, &text, &length));
    CHECK(strstr(text, "\"iteration\":2,\"who\":\"program\",\"what\":\"optimiser.learning_rate\"") != NULL);
    CHECK(strstr(text, "\"new\":0.0") != NULL);
    sgm__free(text);
    free_wave_trainer(two);
    free_wave_trainer(made);
    snprintf(path, sizeof path, "rm -r '%s'", folder);
    CHECK_INT(system(path), 0);
}

/* Other numbers are part of the program, which is re-recorded. */
static bool change_momentum(void *user, const sgm_training_progress *progress)
{
    if (progress->kind == SGM_PROGRESS_ITERATION && progress->iteration == 1)
        CHECK_OK(sgm_registry_resolve_set(sgm_trainer_registry(user), "optimiser.momentum",
                                          sgm_number_content(0.5), NULL, NULL));
    return true;
}

TEST(momentum_may_change_too)
{
    wave_trainer plain = make_wave_trainer((wave_options){0}), made = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_on_progress(made.trainer, change_momentum, made.trainer));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 4));
    CHECK_OK(sgm_trainer_run(plain.trainer, .iterations = 4));
    CHECK(weight_of(made.trainer, "1-dense.weights") != weight_of(plain.trainer, "1-dense.weights"));
    free_wave_trainer(plain);
    free_wave_trainer(made);
}

/* --- commands --- */

static void *run_for_long(void *trainer)
{
    sgm_run_options options = {.struct_size = sizeof options, .epochs = 1000000};
    static sgm_status status;
    status = sgm_trainer_run_with(trainer, &options);
    return &status;
}

static void wait_for(sgm_trainer *trainer, sgm_trainer_state state)
{
    for (int i = 0; i < 5000 && sgm_trainer_get_state(trainer) != state; i++)
        usleep(1000);
    CHECK_INT(sgm_trainer_get_state(trainer), state);
}

/* The rate and its schedule are fed in each step; momentum is recorded. */
TEST(another_learning_rate_needs_no_other_program)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    sgm_registry *registry = sgm_trainer_registry(made.trainer);
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 2));
    size_t programs = made.trainer->learner.program_count;
    CHECK(programs > 0);
    CHECK_OK(
        sgm_registry_resolve_set(registry, "optimiser.learning_rate", sgm_number_content(0.05), NULL, NULL));
    CHECK_OK(sgm_registry_resolve_set(registry, "optimiser.schedule.kind", sgm_text_content("exponential"),
                                      NULL, NULL));
    CHECK_INT(made.trainer->learner.program_count, programs);
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 4));
    CHECK_INT(made.trainer->learner.program_count, programs);
    CHECK_OK(sgm_registry_resolve_set(registry, "optimiser.momentum", sgm_number_content(0.5), NULL, NULL));
    CHECK_INT(made.trainer->learner.program_count, 0);
    free_wave_trainer(made);
}

TEST(commands_act_between_iterations)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_ERROR(sgm_trainer_pause(made.trainer), "is idle and cannot be paused");
    pthread_t thread;
    CHECK_INT(pthread_create(&thread, NULL, run_for_long, made.trainer), 0);
    wait_for(made.trainer, SGM_TRAINER_RUNNING);
    CHECK_OK(sgm_trainer_pause(made.trainer));
    wait_for(made.trainer, SGM_TRAINER_PAUSED);
    double before = number_of(made.trainer, "iteration"), time = number_of(made.trainer, "running_time");
    usleep(20000);
    CHECK_NEAR(number_of(made.trainer, "iteration"), before, 0);
    CHECK_NEAR(number_of(made.trainer, "running_time"), time, 0);
    CHECK_OK(sgm_trainer_step(made.trainer, 3));
    for (int i = 0; i < 5000 && number_of(made.trainer, "iteration") < before + 3; i++)
        usleep(1000);
    wait_for(made.trainer, SGM_TRAINER_PAUSED);
    CHECK_NEAR(number_of(made.trainer, "iteration"), before + 3, 0);
    CHECK_OK(sgm_registry_resolve_set(sgm_trainer_registry(made.trainer), "optimiser.learning_rate",
                                      sgm_number_content(0.01), NULL, NULL));
    CHECK_OK(sgm_trainer_resume(made.trainer));
    for (int i = 0; i < 5000 && number_of(made.trainer, "iteration") < before + 10; i++)
        usleep(1000);
    CHECK_OK(sgm_trainer_stop(made.trainer, "seen enough"));
    void *result;
    pthread_join(thread, &result);
    CHECK_INT(*(sgm_status *)result, SGM_OK);
    CHECK_ERROR(sgm_trainer_stop(made.trainer, NULL), "is idle");
    free_wave_trainer(made);
}

/* --- hooks --- */

static sgm_status stop_below(void *self, sgm_hook_call *call)
{
    double loss;
    SGM_TRY(sgm_hook_number(call, "training.loss", &loss));
    return loss < *(double *)self ? sgm_hook_request_stop(call, "low enough") : SGM_OK;
}

static const sgm_hook_type stopper = {.api = SGM_HOOK_API, .name = "stop_below", .invoke = stop_below};

TEST(a_hook_sees_values_and_stops_the_run)
{
    static double limit = 1.05;
    static const char *const reads[] = {"training.loss", NULL};
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_add_hook(
        made.trainer, sgm_hook_create(&stopper, &limit, .when = sgm_every(1, SGM_EPOCH), .reads = reads)));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 500));
    CHECK(number_of(made.trainer, "epoch") < 500);
    CHECK(number_of(made.trainer, "epoch") >= 1);
    free_wave_trainer(made);
}

/* A hook may use its trainer in between two iterations. */
static sgm_status look_at_weights(void *self, sgm_hook_call *call)
{
    sgm_tensor *weights = sgm_trainer_get(sgm_hook_trainer(call), "2-dense.weights");
    if (weights == NULL)
        return sgm_last_status();
    *(int64_t *)self = sgm_tensor_shape(weights)->dims[1];
    sgm_tensor_free(weights);
    return SGM_OK;
}

static const sgm_hook_type looker = {.api = SGM_HOOK_API, .name = "looker", .invoke = look_at_weights};

TEST(a_hook_may_use_its_trainer)
{
    int64_t columns = 0;
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_OK(
        sgm_trainer_add_hook(made.trainer, sgm_hook_create(&looker, &columns, .failure = SGM_HOOK_STOP)));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 1));
    CHECK_INT(columns, 5);
    free_wave_trainer(made);
}

/* --- rules --- */

static sgm_hook *patience(void)
{
    return sgm_rule_hook("every epoch if training.loss stalls 4 epochs then stop \"no progress\"");
}

static wave_trainer stalled_trainer(void)
{
    wave_trainer made =
        make_wave_trainer((wave_options){.optimiser = sgm_gradient_descent(.learning_rate = 0.1)});
    CHECK_OK(sgm_trainer_freeze(made.trainer, "*-dense.weights"));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, patience()));
    CHECK_OK(sgm_trainer_prepare(made.trainer));
    CHECK_OK(sgm_registry_resolve_set(sgm_trainer_registry(made.trainer), "optimiser.learning_rate",
                                      sgm_number_content(0), NULL, NULL));
    return made;
}

TEST(an_early_stopper_does_not_forget_over_a_resume)
{
    char folder[64] = "/tmp/sigma-test-XXXXXX", command[128];
    CHECK(mkdtemp(folder) != NULL);
    wave_trainer whole = stalled_trainer();
    CHECK_OK(sgm_trainer_run(whole.trainer, .epochs = 100));
    double epochs = number_of(whole.trainer, "epoch");
    CHECK(epochs < 10);
    wave_trainer first = stalled_trainer();
    CHECK_OK(sgm_trainer_run(first.trainer, .epochs = 3, .folder = folder));
    wave_trainer second = stalled_trainer();
    CHECK_OK(sgm_trainer_run(second.trainer, .epochs = 100, .folder = folder, .resume = true));
    CHECK_NEAR(number_of(second.trainer, "epoch"), epochs, 0);
    free_wave_trainer(whole);
    free_wave_trainer(first);
    free_wave_trainer(second);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    CHECK_INT(system(command), 0);
}

TEST(values_of_changes_are_written_alike_whatever_the_locale)
{
    char folder[64] = "/tmp/sigma-test-XXXXXX", path[128], *text;
    size_t length;
    if (!speak_german())
        SKIP("no locale can be made here");
    wave_trainer made = make_wave_trainer((wave_options){0});
    bool done =
        mkdtemp(folder) != NULL &&
        sgm_trainer_add_hook(made.trainer,
                             sgm_rule_hook("after 1 epoch set optimiser.learning_rate *= 0.5")) == SGM_OK &&
        sgm_trainer_run(made.trainer, .epochs = 2, .folder = folder) == SGM_OK;
    speak_c();
    CHECK(done);
    snprintf(path, sizeof path, "%s/journal.jsonl", folder);
    CHECK_OK(sgm__file_read(path, 1 << 16, &text, &length));
    if (strstr(text, "\"old\":0.1,\"new\":0.05") == NULL)
        TEST_FAIL("%s", text);
    sgm__free(text);
    free_wave_trainer(made);
    snprintf(path, sizeof path, "rm -r '%s'", folder);
    CHECK_INT(system(path), 0);
}

TEST(a_rule_changes_a_value_and_saves)
{
    char folder[64] = "/tmp/sigma-test-XXXXXX", path[128], *text;
    size_t length;
    CHECK(mkdtemp(folder) != NULL);
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_add_hook(
        made.trainer, sgm_rule_hook("after 2 epochs set optimiser.learning_rate *= 0.5 and save \"half\"")));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 4, .folder = folder));
    CHECK_NEAR(number_of(made.trainer, "optimiser.learning_rate"), 0.05, 1e-15);
    snprintf(path, sizeof path, "%s/half.safetensors", folder);
    CHECK(sgm__file_exists(path));
    snprintf(path, sizeof path, "%s/journal.jsonl", folder);
    CHECK_OK(sgm__file_read(path, 65536, &text, &length));
    CHECK(strstr(text, "\"epoch\":2,") != NULL);
    sgm__free(text);
    free_wave_trainer(made);
    snprintf(path, sizeof path, "rm -r '%s'", folder);
    CHECK_INT(system(path), 0);
}
