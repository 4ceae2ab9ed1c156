/* Several trainers of one environment at once; runs in the background; unscheduled trainers. */
#include "environment_test.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#define EXAMPLES 48
#define FOR_LONG 100000000

static void give_sines(sgm_trainer *trainer, double rate)
{
    sgm_dataset *dataset = sine_dataset(EXAMPLES);
    CHECK_OK(trainer);
    CHECK_OK(sgm_trainer_set_network(trainer,
                                     "input(3) + dense(7, tanh) + dropout(0.2) + dense(1) + mean_squared"));
    CHECK_OK(sgm_trainer_set_data(trainer, sgm_minibatches(dataset, .size = 8)));
    CHECK_OK(sgm_trainer_add_data(trainer, "validation", sgm_by_block(dataset)));
    CHECK_OK(sgm_trainer_set_optimiser(trainer, sgm_momentum(.learning_rate = rate)));
    sgm_dataset_free(dataset);
}

static sgm_env *make_env(void)
{
    sgm_env *env = sgm_env_create("e", .seed = 7, .threads = 2);
    CHECK_OK(env);
    return env;
}

static sgm_trainer *add(sgm_env *env, const char *name, double rate)
{
    sgm_trainer *trainer = sgm_trainer_create(env, name);
    give_sines(trainer, rate);
    return trainer;
}

static int64_t iterations(sgm_env *env, const char *trainer)
{
    char identifier[64];
    sgm_content content;
    snprintf(identifier, sizeof identifier, "%s.iteration", trainer);
    CHECK_OK(sgm_registry_resolve_one(sgm_env_registry(env), identifier, &content));
    return content.as.integer;
}

static void wait_for_iteration(sgm_env *env, const char *trainer, int64_t minimum)
{
    for (int i = 0; i < 20000 && iterations(env, trainer) < minimum; i++)
        usleep(500);
    CHECK(iterations(env, trainer) >= minimum);
}

static void wait_for_state(sgm_trainer *trainer, sgm_trainer_state state)
{
    for (int i = 0; i < 20000 && sgm_trainer_get_state(trainer) != state; i++)
        usleep(500);
    CHECK_INT(sgm_trainer_get_state(trainer), state);
}

/* --- the same results --- */

static void read_weights(sgm_trainer *trainer, double *values)
{
    sgm_tensor *weights = sgm_trainer_get(trainer, "1-dense.weights");
    CHECK_OK(weights);
    CHECK_OK(sgm_tensor_read(weights, values, 21));
    sgm_tensor_free(weights);
}

static const char *const names[] = {"slow", "fast", "middle"};
static const double rates[] = {0.001, 0.05, 0.01};

TEST(trainers_compute_what_they_compute_alone)
{
    double alone[3][21], together[3][21];
    for (int i = 0; i < 3; i++) {
        sgm_env *env = make_env();
        sgm_trainer *trainer = add(env, names[i], rates[i]);
        CHECK_OK(sgm_env_run(env, .epochs = 30));
        read_weights(trainer, alone[i]);
        sgm_env_free(env);
    }
    sgm_env *env = make_env();
    sgm_trainer *trainers[3];
    for (int i = 0; i < 3; i++)
        trainers[i] = add(env, names[i], rates[i]);
    CHECK_OK(sgm_env_run(env, .epochs = 30));
    for (int i = 0; i < 3; i++) {
        CHECK_INT(iterations(env, names[i]), 180);
        read_weights(trainers[i], together[i]);
    }
    CHECK(memcmp(alone, together, sizeof alone) == 0);
    CHECK(memcmp(alone[0], alone[1], sizeof alone[0]) != 0);
    sgm_env_free(env);
}

/* --- really at once --- */

typedef struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int arrived;
    bool met;
} meeting;

/* Returns when both trainers have come here, which they cannot one after the other. */
static bool meet(void *user, const sgm_training_progress *progress)
{
    meeting *self = user;
    if (progress->kind != SGM_PROGRESS_START)
        return true;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    pthread_mutex_lock(&self->lock);
    self->arrived++;
    pthread_cond_broadcast(&self->changed);
    while (self->arrived < 2 && pthread_cond_timedwait(&self->changed, &self->lock, &until) == 0)
        ;
    self->met = self->arrived == 2;
    pthread_mutex_unlock(&self->lock);
    return true;
}

TEST(two_trainers_run_at_once)
{
    meeting place = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    sgm_env *env = make_env();
    CHECK_OK(sgm_trainer_on_progress(add(env, "a", 0.01), meet, &place));
    CHECK_OK(sgm_trainer_on_progress(add(env, "b", 0.01), meet, &place));
    CHECK_OK(sgm_env_run(env, .epochs = 1));
    CHECK(place.met);
    sgm_env_free(env);
}

TEST(each_line_of_the_terminal_monitor_has_its_name)
{
    sgm_env *env = make_env();
    CHECK_OK(sgm_env_add_monitor(env, sgm_terminal_monitor()));
    add(env, "a", 0.01);
    add(env, "b", 0.01);
    FILE *file = tmpfile();
    CHECK(file != NULL);
    fflush(stdout);
    int old = dup(STDOUT_FILENO);
    dup2(fileno(file), STDOUT_FILENO);
    sgm_status status = sgm_env_run(env, .epochs = 20);
    fflush(stdout);
    dup2(old, STDOUT_FILENO);
    close(old);
    CHECK_OK(status);
    rewind(file);
    char line[256], expected[32];
    int epochs[2] = {0, 0};
    while (fgets(line, sizeof line, file) != NULL) {
        int which = line[0] - 'a';
        CHECK(which == 0 || which == 1);
        snprintf(expected, sizeof expected, "%c: epoch %d/20 loss ", line[0], ++epochs[which]);
        CHECK(strncmp(line, expected, strlen(expected)) == 0);
    }
    CHECK_INT(epochs[0], 20);
    CHECK_INT(epochs[1], 20);
    fclose(file);
    sgm_env_free(env);
}

/* --- failures and signals --- */

static bool keep_reason(void *user, const sgm_training_progress *progress)
{
    if (progress->kind == SGM_PROGRESS_STOP && progress->reason != NULL)
        snprintf(user, 128, "%s", progress->reason);
    return true;
}

TEST(a_failure_stops_the_others)
{
    char reason[128] = "";
    sgm_env *env = make_env();
    sgm_trainer *good = add(env, "good", 0.01), *bad = add(env, "bad", 1e30);
    CHECK_OK(sgm_trainer_on_progress(good, keep_reason, reason));
    CHECK_ERROR(sgm_env_run(env, .epochs = FOR_LONG), "e: trainer 'bad': the loss is");
    CHECK_INT(sgm_env_status(env), SGM_ERROR_NUMERIC);
    CHECK(strncmp(sgm_env_error(env), "e: trainer 'bad': the loss is", 29) == 0);
    CHECK_STR(reason, "the failure of trainer 'bad'");
    CHECK_OK(sgm_trainer_status(good));
    CHECK_INT(sgm_trainer_status(bad), SGM_ERROR_NUMERIC);
    CHECK_INT(sgm_trainer_get_state(good), SGM_TRAINER_IDLE);
    CHECK_ERROR(sgm_env_run(env, .epochs = 1), "e: trainer 'bad'");
    sgm_env_free(env);
}

TEST(nothing_begins_when_one_cannot)
{
    sgm_env *env = make_env();
    add(env, "good", 0.01);
    sgm_trainer *bad = sgm_trainer_create(env, "bad");
    CHECK_ERROR(sgm_trainer_set_network(bad, "input(3) + desne(1)"), "desne");
    CHECK_ERROR(sgm_env_run(env, .epochs = 1), "e: trainer 'bad': network");
    CHECK_INT(iterations(env, "good"), 0);
    sgm_env_free(env);
}

static bool raise_interrupt(void *user, const sgm_training_progress *progress)
{
    (void)user;
    if (progress->kind == SGM_PROGRESS_ITERATION && progress->iteration == 3)
        raise(SIGINT);
    return true;
}

static volatile sig_atomic_t signals_of_ours;

static void count_signal(int number)
{
    (void)number;
    signals_of_ours++;
}

TEST(a_signal_stops_all_and_is_the_programs_own_again)
{
    struct sigaction ours = {.sa_handler = count_signal}, before;
    sigaction(SIGINT, &ours, &before);
    sgm_env *env = make_env();
    sgm_trainer *first = add(env, "a", 0.01);
    sgm_trainer *second = add(env, "b", 0.01);
    CHECK_OK(sgm_trainer_on_progress(second, raise_interrupt, NULL));
    CHECK_INT(sgm_env_run(env, .epochs = FOR_LONG, .catch_interrupt = true), SGM_ERROR_INTERRUPTED);
    CHECK(strstr(sgm_last_error(), "training was stopped after iteration") != NULL);
    CHECK_OK(sgm_env_status(env));
    CHECK_INT(sgm_trainer_get_state(first), SGM_TRAINER_IDLE);
    CHECK_INT(signals_of_ours, 0);
    raise(SIGINT);
    CHECK_INT(signals_of_ours, 1);
    sigaction(SIGINT, &before, NULL);
    sgm_env_free(env);
}

/* --- commands while they run --- */

TEST(one_is_paused_and_changed_while_the_other_goes_on)
{
    sgm_env *env = make_env();
    sgm_trainer *a = add(env, "a", 0.01), *b = add(env, "b", 0.01);
    CHECK_OK(sgm_env_run_background(env, .epochs = FOR_LONG));
    CHECK_OK(sgm_trainer_pause(a)); /* commands reach trainers at once */
    wait_for_state(a, SGM_TRAINER_PAUSED);
    int64_t stands = iterations(env, "a"), b_before = iterations(env, "b");
    CHECK_OK(sgm_registry_resolve_set(sgm_env_registry(env), "a.optimiser.learning_rate",
                                      sgm_number_content(0.002), NULL, NULL));
    wait_for_iteration(env, "b", b_before + 50);
    CHECK_INT(iterations(env, "a"), stands);
    CHECK_INT(sgm_trainer_get_state(b), SGM_TRAINER_RUNNING);
    CHECK_OK(sgm_trainer_resume(a));
    wait_for_iteration(env, "a", stands + 5);
    sgm_content rate;
    CHECK_OK(sgm_registry_resolve_one(sgm_env_registry(env), "a.optimiser.current_learning_rate", &rate));
    CHECK_NEAR(rate.as.number, 0.002, 1e-12);
    CHECK_OK(sgm_registry_resolve_one(sgm_env_registry(env), "b.optimiser.current_learning_rate", &rate));
    CHECK_NEAR(rate.as.number, 0.01, 1e-12);
    CHECK_OK(sgm_env_stop(env, "seen enough"));
    CHECK_OK(sgm_env_wait(env));
    sgm_env_free(env);
}

/* --- in the background --- */

TEST(a_run_in_the_background_is_awaited_once)
{
    char reason[128] = "";
    sgm_env *env = make_env();
    sgm_trainer *only = add(env, "only", 0.01);
    CHECK_OK(sgm_trainer_on_progress(only, keep_reason, reason));
    CHECK_ERROR(sgm_env_wait(env), "nothing was begun");
    CHECK_ERROR(sgm_env_stop(env, "why not"), "e: does not run");
    CHECK_OK(sgm_env_run_background(env, .epochs = FOR_LONG));
    CHECK_ERROR(sgm_env_run(env, .epochs = 1), "e: is running already");
    CHECK_ERROR(sgm_trainer_run(only, .epochs = 1), "'only' is running and cannot be run again");
    CHECK_ERROR(sgm_trainer_create(env, "late"), "takes no new trainer");
    CHECK_ERROR(sgm_env_add_monitor(env, sgm_terminal_monitor()), "takes no new monitor");
    CHECK_STR(sgm_env_error(env), "");
    wait_for_iteration(env, "only", 10);
    CHECK_OK(sgm_env_stop(env, "seen enough"));
    wait_for_state(only, SGM_TRAINER_IDLE);
    CHECK_OK(sgm_env_wait(env));
    CHECK_STR(reason, "seen enough");
    CHECK_ERROR(sgm_env_wait(env), "nothing was begun");
    CHECK_OK(sgm_env_run(env, .iterations = iterations(env, "only") + 4)); /* it goes on */
    CHECK_OK(sgm_env_status(env));
    sgm_env_free(env);
}

TEST(waiting_gives_the_failure)
{
    sgm_env *env = make_env();
    add(env, "bad", 1e30);
    CHECK_OK(sgm_env_run_background(env, .epochs = FOR_LONG));
    CHECK_ERROR(sgm_env_wait(env), "e: trainer 'bad': the loss is");
    sgm_env_free(env);
    env = make_env();
    CHECK_ERROR(sgm_env_run_background(env, .epochs = 1), "e: there is no trainer to run");
    sgm_env_free(env);
    CHECK_ERROR(sgm_env_run_background(NULL, .epochs = 1), "");
    CHECK_ERROR(sgm_env_wait(NULL), "expected an environment");
    CHECK_ERROR(sgm_env_stop(NULL, ""), "expected an environment");
}

TEST(freeing_stops_what_runs)
{
    char reasons[2][128] = {"", ""};
    sgm_env *env = make_env();
    CHECK_OK(sgm_trainer_on_progress(add(env, "a", 0.01), keep_reason, reasons[0]));
    CHECK_OK(sgm_trainer_on_progress(add(env, "b", 0.01), keep_reason, reasons[1]));
    CHECK_OK(sgm_env_run_background(env, .epochs = FOR_LONG));
    sgm_env_free(env);
    CHECK_STR(reasons[0], "its environment, which was freed");
    CHECK_STR(reasons[1], reasons[0]);
}

/* --- unscheduled trainers --- */

TEST(an_unscheduled_trainer_is_prepared_but_not_run)
{
    sgm_env *env = make_env();
    sgm_trainer *a = add(env, "a", 0.01), *unscheduled = sgm_trainer_create_unscheduled(env, "unscheduled");
    give_sines(unscheduled, 0.01);
    size_t count;
    CHECK(sgm_trainer_parameters(unscheduled, &count) == NULL);
    CHECK_OK(sgm_env_run(env, .epochs = 3));
    CHECK(sgm_trainer_parameters(unscheduled, &count) != NULL);
    CHECK_INT(iterations(env, "a"), 18);
    CHECK_INT(iterations(env, "unscheduled"), 0);
    double trained[21], untrained[21];
    read_weights(a, trained);
    read_weights(unscheduled, untrained);
    CHECK(memcmp(trained, untrained, sizeof trained) != 0);
    static const char *const states[] = {"1-dense.weights", "1-dense.biases", "3-dense.weights",
                                         "3-dense.biases"};
    for (int i = 0; i < 4; i++) {
        sgm_tensor *value = sgm_trainer_get(a, states[i]);
        CHECK_OK(value);
        CHECK_OK(sgm_trainer_set(unscheduled, states[i], value));
        sgm_tensor_free(value);
    }
    sgm_dataset *dataset = sine_dataset(EXAMPLES);
    sgm_iterator *all = sgm_by_block(dataset);
    sgm_metrics of_a, of_unscheduled;
    CHECK_OK(sgm_trainer_evaluate(a, all, &of_a));
    CHECK_OK(sgm_trainer_evaluate(unscheduled, all, &of_unscheduled));
    CHECK_INT(of_unscheduled.examples, EXAMPLES);
    CHECK(of_a.loss == of_unscheduled.loss);
    sgm_iterator_free(all);
    sgm_dataset_free(dataset);
    sgm_env_free(env);
}

TEST(unscheduled_trainers_alone_are_nothing_to_run)
{
    sgm_env *env = make_env();
    give_sines(sgm_trainer_create_unscheduled(env, "unscheduled"), 0.01);
    CHECK_ERROR(sgm_env_run(env, .epochs = 1), "there is no trainer to run");
    sgm_env_free(env);
}

/* --- the seed --- */

static void keep_message(void *user, sgm_log_level level, const char *component, const char *message)
{
    if (level == SGM_LOG_INFO && strcmp(component, "e") == 0)
        snprintf(user, 128, "%s", message);
}

TEST(the_seed_is_in_registry_and_log)
{
    char logged[128] = "";
    sgm_content seed;
    sgm_env *env = make_env();
    CHECK_OK(sgm_registry_resolve_one(sgm_env_registry(env), "env.seed", &seed));
    CHECK_INT(seed.as.integer, 7);
    CHECK_ERROR(
        sgm_registry_resolve_set(sgm_env_registry(env), "env.seed", sgm_integer_content(8), NULL, NULL),
        "seed");
    add(env, "a", 0.01);
    sgm_set_logger(keep_message, logged, SGM_LOG_INFO);
    CHECK_OK(sgm_env_run(env, .epochs = 1));
    sgm_set_logger(NULL, NULL, SGM_LOG_WARNING);
    CHECK_STR(logged, "running 1 trainer with seed 7");
    CHECK_ERROR(sgm_trainer_create(env, "env"), "'env' is the environment's own name");
    sgm_env_free(env);
}
