/* Environments among each other; preparing, beginning paused, removing trainers, the end. */
#include "environment_test.h"

#include "monitors/monitor.h"
#include <pthread.h>
#include <time.h>

static void pause_for(double seconds) /* less than one */
{
    nanosleep(&(struct timespec){.tv_nsec = (long)(seconds * 1e9)}, NULL);
}

TEST(environments_are_found_by_name)
{
    CHECK(sgm_env_find("first") == NULL);
    CHECK(sgm_env_find(NULL) == NULL);
    sgm_env *first = sgm_env_create("first", .handler = "reference");
    sgm_env *second = sgm_env_create("second", .handler = "reference");
    sgm_env *again = sgm_env_create("first", .handler = "reference");
    CHECK_STR(sgm_env_name(second), "second");
    CHECK_STR(sgm_env_name(NULL), "");
    CHECK(sgm_env_find("second") == second);
    CHECK(sgm_env_find("first") == again); /* the newest */
    sgm_env_free(again);
    CHECK(sgm_env_find("first") == first);
    sgm_env_free(first);
    CHECK(sgm_env_find("first") == NULL);
    CHECK(sgm_env_find("second") == second);
    sgm_env_free(second);
    CHECK(sgm_env_find("second") == NULL);
}

static void *come_and_go(void *user)
{
    for (int i = 0; i < 200; i++) {
        sgm_env *env = sgm_env_create(user, .handler = "reference");
        CHECK(sgm_env_find(user) == env);
        sgm_env_free(env);
    }
    return NULL;
}

TEST(environments_come_and_go_on_several_threads)
{
    pthread_t threads[3];
    static char names[3][8] = {"one", "two", "three"};
    for (int i = 0; i < 3; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, come_and_go, names[i]), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    CHECK(sgm_env_find("two") == NULL);
}

/* --- preparing --- */

typedef struct counting_monitor {
    sgm_monitor base;
    int *started;
} counting_monitor;

static sgm_status start_counting(sgm_monitor *monitor)
{
    int *started = ((counting_monitor *)monitor)->started;
    return ++*started < 3 ? SGM_OK : sgm_fail(SGM_ERROR_NETWORK, "the port is taken");
}

static bool ignore_progress(sgm_monitor *monitor, const sgm_training_progress *progress)
{
    (void)monitor, (void)progress;
    return true;
}

static void free_counting(sgm_monitor *monitor)
{
    sgm__free(monitor);
}

static sgm_monitor *counting(int *started)
{
    counting_monitor *self = sgm__calloc(1, sizeof *self);
    self->base = (sgm_monitor){.start = start_counting, .progress = ignore_progress, .free = free_counting};
    self->started = started;
    return &self->base;
}

TEST(preparing_initialises_trainers_and_begins_monitors_once)
{
    int started = 0;
    size_t count;
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    sgm_trainer *trainer = line_trainer(env, "a"),
                *unscheduled = give_parts(sgm_trainer_create_unscheduled(env, "unscheduled"));
    CHECK_OK(sgm_env_add_monitor(env, counting(&started)));
    sgm_trainer_parameters(trainer, &count);
    CHECK_INT(count, 0);
    CHECK_OK(sgm_env_prepare(env));
    sgm_trainer_parameters(trainer, &count);
    CHECK_INT(count, 2);
    sgm_trainer_parameters(unscheduled, &count);
    CHECK_INT(count, 2);
    CHECK_INT(started, 1);
    CHECK_OK(sgm_env_prepare(env));
    CHECK_OK(sgm_env_run(env, .epochs = 1));
    CHECK_INT(started, 1);
    CHECK_OK(sgm_env_add_monitor(env, counting(&started)));
    CHECK_OK(sgm_env_run(env, .epochs = 2));
    CHECK_INT(started, 2);
    CHECK_OK(sgm_env_add_monitor(env, counting(&started)));
    CHECK_ERROR(sgm_env_prepare(env), "e: the port is taken");
    CHECK_ERROR(sgm_env_run(env, .epochs = 3), "the port is taken");
    sgm_env_free(env);
    CHECK_ERROR(sgm_env_prepare(NULL), "expected an environment");
}

TEST(what_cannot_be_prepared_is_named)
{
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    CHECK_OK(sgm_trainer_create(env, "empty"));
    CHECK_ERROR(sgm_env_prepare(env), "e: trainer 'empty': has no network yet");
    sgm_env_free(env);
}

/* --- removing --- */

TEST(a_trainer_that_is_removed_is_gone)
{
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    CHECK_OK(line_trainer(env, "a"));
    sgm_trainer *b = line_trainer(env, "b.c");
    CHECK_OK(sgm_env_run(env, .epochs = 1));
    CHECK_OK(sgm_env_remove_trainer(env, b));
    CHECK_ERROR(sgm_trainer_create(env, "a"), "there is a trainer 'a' already");
    sgm_env_free(env);
    env = sgm_env_create("e", .handler = "reference");
    sgm_trainer *a = line_trainer(env, "a");
    b = line_trainer(env, "b.c");
    CHECK_OK(sgm_env_remove_trainer(env, a));
    CHECK_OK(a = line_trainer(env, "a")); /* the name is free again */
    CHECK_OK(sgm_env_run(env, .epochs = 1));
    sgm_matches found = {0};
    CHECK_OK(sgm_registry_resolve(sgm_env_registry(env), "*.epoch", &found));
    CHECK_INT(found.count, 2);
    sgm_matches_free(&found);
    CHECK_OK(sgm_env_remove_trainer(env, a));
    CHECK_OK(sgm_registry_resolve(sgm_env_registry(env), "*.epoch", &found));
    CHECK_INT(found.count, 1);
    CHECK_STR(found.items[0].identifier, "b_c.epoch");
    sgm_matches_free(&found);
    CHECK_OK(sgm_env_remove_trainer(env, b));
    CHECK_ERROR(sgm_env_run(env, .epochs = 2), "there is no trainer to run");
    sgm_env_free(env);
}

static bool try_to_remove(void *user, const sgm_training_progress *progress)
{
    sgm_trainer *trainer = user;
    sgm_env *env = sgm_env_find("removing");
    if (progress->kind == SGM_PROGRESS_EPOCH)
        CHECK_ERROR(sgm_env_remove_trainer(env, trainer), "trainer 'a' cannot be removed while");
    return true;
}

TEST(a_trainer_that_runs_stays)
{
    sgm_env *env = sgm_env_create("removing", .handler = "reference");
    sgm_env *other = sgm_env_create("other", .handler = "reference");
    sgm_trainer *trainer = line_trainer(env, "a");
    CHECK_OK(sgm_trainer_on_progress(trainer, try_to_remove, trainer));
    CHECK_OK(sgm_env_run(env, .epochs = 1));
    CHECK_OK(sgm_trainer_run(trainer, .epochs = 2)); /* by itself */
    CHECK_ERROR(sgm_env_remove_trainer(other, trainer), "belongs to another environment");
    CHECK_ERROR(sgm_env_remove_trainer(env, NULL), "expected a trainer");
    CHECK_ERROR(sgm_env_remove_trainer(NULL, trainer), "expected an environment");
    CHECK_INT(sgm_env_status(env), SGM_OK); /* what changed nothing does not stay */
    sgm_env_free(other);
    sgm_env_free(env);
}

TEST(a_models_trainer_stays)
{
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    sgm_model *model = sgm_sequential(env, sgm_dense(.size = 1));
    float values[] = {0, 1, 2, 3};
    sgm_shape shape = sgm_shape_of(4, 1);
    sgm_tensor *numbers = sgm_tensor_create_from(SGM_FLOAT32, &shape, values);
    CHECK_OK(sgm_model_train(model, numbers, numbers, .epochs = 1));
    CHECK_ERROR(sgm_env_remove_trainer(env, sgm_model_trainer(model)), "is a model's");
    sgm_tensor_free(numbers);
    sgm_env_free(env);
}

/* --- the end --- */

typedef struct ending {
    char *order;
    char letter;
    sgm_env *env;
    sgm_trainer *trainer;
} ending;

static void note_end(void *user)
{
    ending *self = user;
    size_t length = strlen(self->order);
    self->order[length] = self->letter;
    self->order[length + 1] = '\0';
    CHECK(sgm_env_find("ends") == NULL);
    CHECK_STR(sgm_env_error(self->env), "");                           /* still there */
    CHECK_INT(sgm_trainer_get_state(self->trainer), SGM_TRAINER_IDLE); /* its run has ended */
}

TEST(functions_of_the_end_are_called_newest_first)
{
    char order[8] = "";
    sgm_env *env = sgm_env_create("ends", .handler = "reference");
    sgm_trainer *trainer = line_trainer(env, "t");
    ending a = {order, 'a', env, trainer}, b = {order, 'b', env, trainer};
    CHECK_OK(sgm_env_on_shutdown(env, note_end, &a));
    CHECK_OK(sgm_env_on_shutdown(env, note_end, &b));
    CHECK_OK(sgm_env_run_background(env, .epochs = 1000000));
    while (sgm_trainer_get_state(trainer) != SGM_TRAINER_RUNNING)
        pause_for(0.001);
    sgm_env_free(env);
    CHECK_STR(order, "ba");
    CHECK_ERROR(sgm_env_on_shutdown(NULL, note_end, &a), "expected an environment");
}

/* --- beginning paused --- */

static bool wait_for_state(sgm_trainer *trainer, sgm_trainer_state state)
{
    for (int i = 0; i < 2000; i++) {
        if (sgm_trainer_get_state(trainer) == state)
            return true;
        pause_for(0.001);
    }
    return false;
}

static int64_t integer(sgm_env *env, const char *identifier)
{
    sgm_content content = {0};
    CHECK_OK(sgm_registry_resolve_one(sgm_env_registry(env), identifier, &content));
    return content.as.integer;
}

TEST(a_run_begins_paused_and_waits_for_commands)
{
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    sgm_trainer *trainer = line_trainer(env, "a");
    CHECK_OK(sgm_env_run_background(env, .epochs = 5, .paused = true));
    CHECK(wait_for_state(trainer, SGM_TRAINER_PAUSED));
    pause_for(0.02);
    CHECK_INT(integer(env, "a.iteration"), 0);
    CHECK_OK(sgm_trainer_step(trainer, 3));
    for (int i = 0; i < 2000 && integer(env, "a.iteration") < 3; i++)
        pause_for(0.001);
    CHECK(wait_for_state(trainer, SGM_TRAINER_PAUSED));
    CHECK_INT(integer(env, "a.iteration"), 3);
    CHECK_OK(sgm_trainer_resume(trainer));
    CHECK_OK(sgm_env_wait(env));
    CHECK_INT(integer(env, "a.iteration"), 20);
    sgm_env_free(env);
}

TEST(play_at_once_is_not_lost_and_a_paused_run_can_be_stopped)
{
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    sgm_trainer *trainer = line_trainer(env, "a");
    for (int i = 1; i <= 20; i++) {
        CHECK_OK(sgm_env_run_background(env, .epochs = i, .paused = true));
        CHECK_OK(sgm_trainer_resume(trainer));
        CHECK_OK(sgm_env_wait(env));
        CHECK_INT(integer(env, "a.epoch"), i);
    }
    CHECK_OK(sgm_env_run_background(env, .epochs = 100, .paused = true));
    CHECK_OK(sgm_env_stop(env, "enough"));
    CHECK_OK(sgm_env_wait(env));
    CHECK_INT(integer(env, "a.epoch"), 20);
    sgm_env_free(env);
}

static double running_time(sgm_env *env)
{
    sgm_content content = {0};
    CHECK_OK(sgm_registry_resolve_one(sgm_env_registry(env), "a.running_time", &content));
    return content.as.number;
}

static bool keep_seconds(void *user, const sgm_training_progress *progress)
{
    if (progress->kind == SGM_PROGRESS_STOP)
        *(double *)user = progress->seconds;
    return true;
}

TEST(running_time_counts_only_while_running)
{
    double seconds = -1;
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    sgm_trainer *trainer = line_trainer(env, "a");
    CHECK_OK(sgm_trainer_on_progress(trainer, keep_seconds, &seconds));
    CHECK_OK(sgm_env_run_background(env, .iterations = 100000000));
    for (int i = 0; i < 2000 && integer(env, "a.iteration") == 0; i++)
        pause_for(0.001);
    pause_for(0.05);
    CHECK_OK(sgm_trainer_pause(trainer));
    CHECK(wait_for_state(trainer, SGM_TRAINER_PAUSED));
    double before = running_time(env);
    CHECK(before >= 0.05);
    pause_for(0.2);
    CHECK_NEAR(running_time(env), before, 0);
    CHECK_OK(sgm_trainer_resume(trainer));
    CHECK(wait_for_state(trainer, SGM_TRAINER_RUNNING));
    CHECK_OK(sgm_env_stop(env, "enough"));
    CHECK_OK(sgm_env_wait(env));
    double after = running_time(env);
    CHECK(after >= before && after < before + 0.19);
    CHECK_NEAR(seconds, after, 0.05); /* what observers are told of the run */
    pause_for(0.02);
    CHECK_NEAR(running_time(env), after, 0);
    CHECK_OK(sgm_env_run(env, .iterations = 1)); /* nothing is left to do: hardly any time */
    CHECK(running_time(env) >= after && running_time(env) < after + 0.1);
    sgm_env_free(env);
}

/* What an observer is told at the end. */
static bool keep_progress(void *user, const sgm_training_progress *progress)
{
    if (progress->kind == SGM_PROGRESS_STOP)
        *(sgm_training_progress *)user = *progress;
    return true;
}

/* 40 examples after a pause of half a second: were it counted, there would be fewer than 80 a second. */
TEST(a_pause_counts_in_no_rate)
{
    sgm_training_progress last = {.rate = -1};
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    sgm_trainer *trainer = line_trainer(env, "a");
    CHECK_OK(sgm_trainer_on_progress(trainer, keep_progress, &last));
    CHECK_OK(sgm_env_run_background(env, .epochs = 1, .paused = true));
    CHECK_OK(sgm_trainer_wait_for(trainer, SGM_TRAINER_PAUSED, 60));
    pause_for(0.5);
    CHECK_OK(sgm_trainer_resume(trainer));
    CHECK_OK(sgm_env_wait(env));
    CHECK(last.seconds < 0.4);
    CHECK(last.rate > 100);
    CHECK_NEAR(last.rate * last.seconds, 40, 1e-6);
    sgm_env_free(env);
}

/* --- the events of a run --- */

static const sgm_time_scale scales[] = {SGM_START, SGM_STOP,      SGM_PAUSE, SGM_RESUME,
                                        SGM_EPOCH, SGM_ITERATION, SGM_RESET};

typedef struct event_count {
    sgm_time_scale scale;
    atomic_int count;
} event_count;

static sgm_status count_event(void *self, sgm_hook_call *call)
{
    (void)call;
    atomic_fetch_add(&((event_count *)self)->count, 1);
    return SGM_OK;
}

static bool same_event(const void *a, const void *b)
{
    return a == b;
}

TEST(every_scale_counts_its_events)
{
    static const sgm_hook_type type = {
        .api = SGM_HOOK_API, .name = "event", .invoke = count_event, .equal = same_event};
    static const int expected[] = {1, 1, 2, 2, 5, 20, 0};
    event_count counts[7], second = {0};
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    sgm_trainer *trainer = line_trainer(env, "a");
    for (int i = 0; i < 7; i++) {
        counts[i].scale = scales[i];
        atomic_init(&counts[i].count, 0);
        CHECK_OK(sgm_trainer_add_hook(trainer,
                                      sgm_hook_create(&type, &counts[i], .when = sgm_every(1, scales[i]))));
    }
    CHECK_OK(sgm_trainer_add_hook(trainer, sgm_hook_create(&type, &second, .when = sgm_after(2, SGM_PAUSE))));
    CHECK_OK(sgm_env_run_background(env, .epochs = 5, .paused = true));
    CHECK(wait_for_state(trainer, SGM_TRAINER_PAUSED));
    CHECK_INT(atomic_load(&second.count), 0);
    CHECK_OK(sgm_trainer_step(trainer, 7));
    for (int i = 0; i < 2000 && atomic_load(&counts[2].count) < 2; i++)
        pause_for(0.001);
    CHECK(wait_for_state(trainer, SGM_TRAINER_PAUSED));
    CHECK_INT(atomic_load(&counts[5].count), 7);
    CHECK_OK(sgm_trainer_resume(trainer));
    CHECK_OK(sgm_env_wait(env));
    for (int i = 0; i < 7; i++)
        if (atomic_load(&counts[i].count) != expected[i])
            TEST_FAIL("%s: %d events, expected %d", sgm_time_scale_name(scales[i]),
                      atomic_load(&counts[i].count), expected[i]);
    CHECK_INT(atomic_load(&second.count), 1);
    sgm_env_free(env);
}

/* Another thread sees each state as it comes, without asking again and again. */
TEST(a_state_is_waited_for)
{
    sgm_env *env = sgm_env_create("waiting", .seed = 7, .threads = 1);
    sgm_trainer *trainer = line_trainer(env, "a");
    CHECK_OK(sgm_trainer_wait_for(trainer, SGM_TRAINER_IDLE, 0));
    CHECK_ERROR(sgm_trainer_wait_for(trainer, SGM_TRAINER_PAUSED, 0.02),
                "trainer 'a' is idle, not paused, after 0.02 s");
    CHECK_OK(sgm_env_run_background(env, .epochs = 1000000, .paused = true));
    CHECK_OK(sgm_trainer_wait_for(trainer, SGM_TRAINER_PAUSED, INFINITY));
    CHECK_OK(sgm_trainer_resume(trainer));
    CHECK_OK(sgm_trainer_wait_for(trainer, SGM_TRAINER_RUNNING, 60));
    CHECK_OK(sgm_trainer_pause(trainer));
    CHECK_OK(sgm_trainer_wait_for(trainer, SGM_TRAINER_PAUSED, 60));
    CHECK_OK(sgm_trainer_stop(trainer, NULL));
    CHECK_OK(sgm_trainer_wait_for(trainer, SGM_TRAINER_IDLE, 60));
    CHECK_OK(sgm_env_wait(env));
    CHECK_ERROR(sgm_trainer_wait_for(trainer, SGM_TRAINER_IDLE, -1), "a time of 0 or more");
    sgm_env_free(env);
}
