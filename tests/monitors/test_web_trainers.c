/* The web monitor beside trainers that pause, go back, come and go, fail, and end. */
#include "base/folder.h"
#include "environment/environment_test.h"
#include "monitors/monitor.h"
#include "monitors/web_client.h"
#include "trainer/trainer.h"

#include <pthread.h>
#include <stdatomic.h>

#define PATIENCE 20.0

static web_client serve(sgm_env *env, sgm_monitor *monitor)
{
    CHECK_OK(sgm_env_add_monitor(env, monitor));
    CHECK_OK(sgm_env_prepare(env));
    return web_client_of(sgm_web_monitor_url(monitor));
}

/* The session once `at` is that text, with the number of a trainer's iteration. */
static double await_state(web_client *client, const char *state)
{
    double end = sgm__now() + PATIENCE;
    for (;;) {
        json_t *session = web_get(client, "/api/session");
        bool there = strcmp(web_string(session, "trainers/0/state"), state) == 0;
        double iteration = web_number(session, "trainers/0/iteration");
        json_decref(session);
        if (there)
            return iteration;
        if (sgm__now() > end)
            TEST_FAIL("the trainer is not %s", state);
        usleep(10000);
    }
}

static double seconds_of(web_client *client)
{
    json_t *session = web_get(client, "/api/session");
    double seconds = web_number(session, "trainers/0/seconds");
    json_decref(session);
    return seconds;
}

static size_t length_of(web_client *client, const char *path, double *newest)
{
    json_t *series = web_get(client, path);
    const json_t *xs = web_at(series, "series/0/x");
    size_t count = json_array_size(xs);
    *newest = count > 0 ? json_number_value(json_array_get(xs, count - 1)) : -1;
    json_decref(series);
    return count;
}

static void await_newest(web_client *client, const char *path, double wanted)
{
    double end = sgm__now() + PATIENCE, newest;
    while (length_of(client, path, &newest), newest != wanted) {
        if (sgm__now() > end)
            TEST_FAIL("%s goes up to %g, not %g", path, newest, wanted);
        usleep(10000);
    }
}

TEST(a_pause_is_exact)
{
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    sgm_trainer *trainer = line_trainer(env, "a");
    web_client client = serve(env, sgm_web_monitor(.quiet = true));
    CHECK_OK(sgm_env_run_background(env, .iterations = 10000000, .paused = true));
    CHECK_NEAR(await_state(&client, "paused"), 0, 0);
    for (int64_t step = 1; step <= 1000; step *= 10) {
        double before = await_state(&client, "paused"), end = sgm__now() + PATIENCE;
        CHECK_OK(sgm_trainer_step(trainer, step));
        while (await_state(&client, "paused") == before && sgm__now() < end)
            usleep(1000);
        CHECK_NEAR(await_state(&client, "paused"), before + (double)step, 0);
    }
    await_newest(&client, "/api/series?id=optimiser.loss", 1111);
    CHECK_OK(sgm_trainer_resume(trainer));
    CHECK(await_state(&client, "running") >= 1111);
    CHECK_OK(sgm_env_stop(env, "enough"));
    CHECK_OK(sgm_env_wait(env));
    await_state(&client, "idle");
    json_t *session = web_get(&client, "/api/session");
    CHECK_STR(web_string(session, "trainers/0/reason"), "enough");
    json_decref(session);
    sgm_env_free(env);
}

TEST(a_training_that_goes_back_takes_its_curves_along)
{
    open_folder();
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    sgm_trainer *trainer = line_trainer(env, "a");
    sgm_dataset *dataset = line_dataset();
    CHECK_OK(sgm_trainer_add_data(trainer, "check", sgm_by_block(dataset)));
    sgm_dataset_free(dataset);
    web_client client = serve(env, sgm_web_monitor(.quiet = true));
    web_listener listener = web_listen(&client);
    json_decref(web_event(&listener, "system", NULL, PATIENCE));
    CHECK_OK(sgm_env_run_background(env, .iterations = 10000000, .folder = folder, .paused = true));
    CHECK_OK(sgm_trainer_step(trainer, 201));
    await_newest(&client, "/api/series?id=optimiser.loss", 201);
    await_newest(&client, "/api/series?id=check.loss", 200);
    json_decref(web_post(&client, "/api/watch", "{\"identifier\": \"check.loss\"}"));
    CHECK_INT(client.code, 200);
    CHECK_OK(sgm_trainer_step(trainer, 2));
    await_newest(&client, "/api/series?id=optimiser.loss", 203);
    await_newest(&client, "/api/series?id=check.loss", 200); /* measured at the ends of epochs only */
    json_t *session = web_get(&client, "/api/session");
    CHECK(json_is_true(web_at(session, "trainers/0/folder")));
    json_decref(session);
    CHECK_OK(sgm_trainer_resume(trainer));
    usleep(300000); /* a time that the training has no more when it is where it began */
    CHECK_OK(sgm_trainer_pause(trainer));
    await_state(&client, "paused");
    CHECK(seconds_of(&client) > 0.2);
    CHECK_OK(sgm_trainer_reset(trainer));
    await_newest(&client, "/api/series?id=check.loss", -1);
    CHECK(seconds_of(&client) < 0.2);
    json_t *event = web_event(&listener, "points", "\"cut\"", PATIENCE);
    CHECK_NEAR(web_number(event, "cut"), 0, 0);
    json_decref(event);
    double rest; /* nothing is measured yet: no value that is no number */
    CHECK_INT(length_of(&client, "/api/series?id=training.loss", &rest), 0);
    CHECK_NEAR(await_state(&client, "paused"), 0, 0);
    CHECK_OK(sgm_trainer_step(trainer, 9));
    await_newest(&client, "/api/series?id=optimiser.loss", 9);
    await_newest(&client, "/api/series?id=check.loss", 8);
    CHECK_OK(sgm_env_stop(env, "enough"));
    CHECK_OK(sgm_env_wait(env));
    CHECK_OK(sgm_env_run(env, .iterations = 20, .folder = folder, .resume = true)); /* another run goes on */
    await_newest(&client, "/api/series?id=optimiser.loss", 20);
    double newest;
    CHECK(length_of(&client, "/api/series?id=optimiser.loss&axis=seconds", &newest) > 2);
    CHECK(newest > 0);
    web_listener_close(&listener);
    sgm_env_free(env);
    close_folder();
}

/* --- coming and going --- */

typedef struct asker {
    pthread_t thread;
    web_client client;
    atomic_bool ends;
    atomic_int answers;
} asker;

/* Whatever there is just now: never a crash, never an answer without sense. */
static void *ask_much(void *user)
{
    static const char *const paths[] = {"/api/session", "/api/series?trainer=b&id=optimiser.loss",
                                        "/api/series/list?trainer=a", "/api/log", "/api/tasks"};
    asker *self = user;
    for (size_t i = 0; !atomic_load(&self->ends); i++) {
        web_client client = self->client;
        json_decref(web_get(&client, paths[i % 5]));
        CHECK(client.code == 200 || client.code == 404);
        json_decref(web_post(&client, "/api/watch",
                             i % 2 ? "{\"trainer\": \"b\", \"identifier\": \"optimiser.*\"}"
                                   : "{\"trainer\": \"a\", \"identifier\": \"iteration\"}"));
        CHECK(client.code == 200 || client.code == 404 || client.code == 409);
        json_decref(web_post(&client, "/api/unwatch", "{\"trainer\": \"a\", \"identifier\": \"iter*\"}"));
        atomic_fetch_add(&self->answers, 1);
        usleep(30000); /* who asks too often is refused */
    }
    return NULL;
}

TEST(trainers_come_and_go_while_somebody_watches)
{
    asker self = {0};
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    line_trainer(env, "a");
    self.client = serve(env, sgm_web_monitor(.quiet = true));
    web_listener listener = web_listen(&self.client);
    CHECK_INT(pthread_create(&self.thread, NULL, ask_much, &self), 0);
    double end = sgm__now() + PATIENCE;
    for (int i = 1; i <= 10 || (atomic_load(&self.answers) < 20 && sgm__now() < end); i++) {
        sgm_trainer *b = line_trainer(env, "b");
        CHECK_OK(b);
        CHECK_OK(sgm_env_run(env, .iterations = 200 * i));
        CHECK_OK(sgm_env_remove_trainer(env, b));
    }
    atomic_store(&self.ends, true);
    pthread_join(self.thread, NULL);
    json_t *session = web_get(&self.client, "/api/session");
    CHECK_INT(json_array_size(web_at(session, "trainers")), 2);
    CHECK_STR(web_string(session, "trainers/1/state"), "idle");
    CHECK(json_is_true(web_at(session, "trainers/1/gone")));
    json_decref(session);
    json_t *refused = web_post(&self.client, "/api/watch", "{\"trainer\": \"b\", \"identifier\": \"epoch\"}");
    CHECK_INT(self.client.code, 409);
    CHECK(strstr(web_string(refused, "error"), "'b' is gone") != NULL);
    json_decref(refused);
    web_listener_close(&listener);
    sgm_env_free(env);
}

static sgm_status give_line(void *user, const sgm_trial *trial, sgm_trainer *trainer)
{
    (void)user, (void)trial;
    return give_parts(trainer) != NULL ? SGM_OK : sgm_last_status();
}

TEST(the_trials_of_a_search_have_curves)
{
    static const char *const rates[] = {"0.1", "0.2", "0.3", NULL};
    open_folder();
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    web_client client = serve(env, sgm_web_monitor(.quiet = true));
    sgm_search *search = sgm_search_create(
        env, .method = SGM_SEARCH_GRID, .set_up = give_line, .folder = folder, .objective = "training.loss",
        .epochs = 4, .checkpoint_every = -1, .values = {{"optimiser.learning_rate", rates}});
    CHECK_OK(sgm_search_run(search));
    json_t *session = web_get(&client, "/api/session");
    CHECK_INT(json_array_size(web_at(session, "trainers")), 3);
    json_decref(session);
    await_newest(&client, "/api/series?trainer=trial-003&id=optimiser.loss", 16);
    json_t *refused = web_get(&client, "/api/series?id=epoch");
    CHECK_STR(web_string(refused, "error"), "there are 3 trainers: say which one, as 'trainer'");
    json_decref(refused);
    sgm_search_free(search);
    sgm_env_free(env);
    close_folder();
}

/* --- what is trained --- */

TEST(a_training_that_is_watched_is_the_same)
{
    char *checkpoints[2];
    size_t lengths[2];
    open_folder();
    for (int watched = 0; watched < 2; watched++) {
        sgm_env *env = sgm_env_create("e", .seed = 4, .threads = 1);
        line_trainer(env, "a");
        if (watched) {
            web_client client = serve(env, sgm_web_monitor(.quiet = true));
            json_decref(web_post(&client, "/api/watch", "{\"identifier\": \"*\"}"));
            CHECK_INT(client.code, 200);
        }
        char *own = sgm__format("%s/%d", folder, watched);
        CHECK_OK(sgm_env_run(env, .epochs = 50, .folder = own));
        char *path = sgm__format("%s/checkpoint.safetensors", own);
        CHECK_OK(sgm__file_read(path, 1 << 24, &checkpoints[watched], &lengths[watched]));
        sgm__free(path);
        sgm__free(own);
        sgm_env_free(env);
    }
    CHECK_INT(lengths[0], lengths[1]);
    CHECK(memcmp(checkpoints[0], checkpoints[1], lengths[0]) == 0);
    sgm__free(checkpoints[0]);
    sgm__free(checkpoints[1]);
    close_folder();
}

TEST(workers_costs_and_a_loss_that_is_no_number_are_shown)
{
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    sgm_trainer *trainer = sgm_trainer_create(env, "two");
    sgm_dataset *dataset = line_dataset();
    sgm_trainer_set_network(
        trainer, "body = input(1) + dense(1); body + mean_squared; body + mean_squared(importance=0.5)");
    sgm_trainer_set_data(trainer, sgm_minibatches(dataset, .size = 10));
    sgm_trainer_set_optimiser(trainer, sgm_gradient_descent(.learning_rate = 0.1));
    sgm_trainer_set_operator(trainer, sgm_gradient_operator(.workers = 2));
    sgm_dataset_free(dataset);
    CHECK_OK(sgm_trainer_status(trainer));
    web_client client = serve(env, sgm_web_monitor(.quiet = true));
    CHECK_OK(sgm_env_run(env, .iterations = 12));
    await_newest(&client, "/api/series?id=optimiser.loss", 12);
    json_t *list = web_get(&client, "/api/series/list");
    size_t partial = 0, count = json_array_size(web_at(list, "series"));
    for (size_t i = 0; i < count; i++)
        partial += strstr(web_string(json_array_get(web_at(list, "series"), i), "id"), ".partial") != NULL;
    CHECK_INT(partial, 2);
    json_decref(list);
    CHECK_OK(sgm_registry_set(sgm_trainer_registry(trainer), "none", sgm_number_content(1)));
    json_decref(web_post(&client, "/api/watch", "{\"identifier\": \"none\"}"));
    CHECK_OK(sgm_registry_set(sgm_trainer_registry(trainer), "none", sgm_number_content(NAN)));
    CHECK_OK(sgm_env_run(env, .iterations = 13));
    await_newest(&client, "/api/series?id=none", 13);
    json_t *series = web_get(&client, "/api/series?id=none");
    size_t last = json_array_size(web_at(series, "series/0/x")) - 1;
    CHECK(json_is_null(json_array_get(web_at(series, "series/0/last"), last)));
    CHECK_INT(json_integer_value(json_array_get(web_at(series, "series/0/bad"), last)), 1);
    json_decref(series);
    sgm_env_free(env);
}

/* --- beginnings and ends --- */

TEST(a_trainer_that_runs_by_itself_is_served_too)
{
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    sgm_trainer *trainer = line_trainer(env, "a");
    sgm_monitor *monitor = sgm_web_monitor(.quiet = true, .token = "0123456789abcdef");
    CHECK_OK(sgm_env_add_monitor(env, monitor));
    CHECK_OK(sgm_trainer_run(trainer, .epochs = 2));
    CHECK(strstr(sgm_web_monitor_url(monitor), "token=0123456789abcdef") != NULL);
    web_client client = web_client_of(sgm_web_monitor_url(monitor));
    await_newest(&client, "/api/series?id=training.loss", 8);
    sgm_env_free(env);
}

TEST(what_cannot_be_served_is_said)
{
    CHECK_ERROR(sgm_web_monitor(.port = 70000), "expected a port from 1 to 65535, got 70000");
    CHECK_ERROR(sgm_web_monitor(.tabs = "[{]"), "tabs are no JSON: line 1");
    CHECK_ERROR(sgm_web_monitor(.tabs = "{}"), "a JSON array of tabs");
    CHECK_ERROR(sgm_web_monitor(.colours = "{\"a\": }"), "colours are no JSON: line 1");
    CHECK_ERROR(sgm_web_monitor(.colours = "[1]"), "a JSON object of names of trainers");
    CHECK_ERROR(sgm_web_monitor(.colours = "{\"a\": 9}"), "colour of 'a' is a number from 1 to 8");
    CHECK_ERROR(sgm_web_monitor(.colours = "{\"a\": \"#12345g\"}"), "colour of 'a' is a number from 1 to 8");
    CHECK_ERROR(sgm_web_monitor(.token = "short"),
                "the web monitor: a token has 16 to 128 of the characters");
    CHECK_ERROR(sgm_web_monitor(.address = "0.0.0.0"), "the web monitor: others could read along");
    CHECK_ERROR(sgm_web_monitor(.public_host = "example.org"), "behind a proxy, and only there");
    sgm_monitor_free(sgm_web_monitor());
    CHECK_STR(sgm_web_monitor_url(NULL), "");
    sgm_env *env = sgm_env_create("e", .handler = "reference"), *other = sgm_env_create("o");
    line_trainer(env, "a");
    line_trainer(other, "a");
    web_client client = serve(env, sgm_web_monitor(.quiet = true, .tabs = "[{\"title\": \"Mine\"}]"));
    json_t *session = web_get(&client, "/api/session");
    CHECK_STR(web_string(session, "tabs/0/title"), "Mine");
    json_decref(session);
    CHECK_OK(sgm_env_add_monitor(other, sgm_web_monitor(.port = client.port)));
    CHECK_ERROR(sgm_env_run(other, .epochs = 1), "the web monitor: ");
    sgm_env_free(other);
    sgm_env_free(env);
}

static bool sleep_long(void *user, const sgm_training_progress *progress)
{
    if (progress->kind == SGM_PROGRESS_ITERATION && progress->iteration == 2)
        usleep(*(useconds_t *)user);
    return true;
}

typedef struct late_request {
    pthread_t thread;
    web_client client;
} late_request;

static void *ask_late(void *user)
{
    late_request *self = user;
    json_decref(web_post(&self->client, "/api/watch", "{\"identifier\": \"optimiser.*\"}"));
    return NULL;
}

/* A request waits for the trainer, another client reads nothing: freeing the environment waits for neither.
 */
TEST(the_end_comes_promptly)
{
    useconds_t pause = 500000;
    late_request late = {0};
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    sgm_trainer *trainer = line_trainer(env, "a");
    CHECK_OK(sgm_trainer_on_progress(trainer, sleep_long, &pause));
    late.client = serve(env, sgm_web_monitor(.quiet = true));
    web_listener silent = web_listen(&late.client);
    CHECK_OK(sgm_env_run_background(env, .iterations = 1000000000));
    await_state(&late.client, "running");
    CHECK_INT(pthread_create(&late.thread, NULL, ask_late, &late), 0);
    usleep(100000);
    double start = sgm__now();
    sgm_env_free(env);
    CHECK(sgm__now() - start < 5);
    pthread_join(late.thread, NULL);
    web_listener_close(&silent);
}

/* --- a request that does not return --- */

static atomic_bool branching, returns;

/* The `branch` of a trainer, in the middle of its work until `returns`. */
static sgm_status branch_without_end(void *env, sgm_trainer *from, const struct sgm__branch_request *request)
{
    (void)env, (void)from, (void)request;
    atomic_store(&branching, true);
    while (!atomic_load(&returns))
        usleep(1000);
    return SGM_OK;
}

static void *ask_for_branch(void *user)
{
    web_client *client = user;
    static const char body[] = "{\"command\":\"branch\",\"checkpoint\":\"here\",\"name\":\"b\"}";
    client_answer answer = client_ask(
        client->port,
        "POST /api/command HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\nContent-Type: "
        "application/json\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
        client->port, client->token, strlen(body), body);
    client_free(&answer); /* empty: the server has ended meanwhile */
    return NULL;
}

/* The monitor of that test, which stays; and whether its memory was released. */
static sgm_monitor *kept;
static atomic_bool released;

static void *reallocate(void *user, void *memory, size_t size)
{
    (void)user;
    return realloc(memory, size);
}

static void release_and_look(void *user, void *memory)
{
    (void)user;
    if (memory != NULL && memory == kept)
        atomic_store(&released, true);
    free(memory);
}

/* The end waits five seconds for it, and then leaves it the monitor. The allocator stays: threads that the
 * server has left behind may still free. */
TEST(a_request_that_does_not_return_keeps_the_monitor)
{
    static const sgm_allocator looking = {reallocate, release_and_look, NULL};
    sgm_set_allocator(&looking);
    pthread_t thread;
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    sgm_trainer *trainer = line_trainer(env, "a");
    const sgm__monitor_host host = {.name = "e", .handler = "reference", .registry = sgm_env_registry(env)};
    sgm__membership_of(trainer)->branch = branch_without_end;
    kept = sgm_web_monitor(.quiet = true);
    CHECK_OK(kept->join(kept, &host));
    CHECK_OK(kept->attach(kept, trainer));
    CHECK_OK(sgm_env_run(env, .epochs = 1));
    web_client client = web_client_of(sgm_web_monitor_url(kept));
    json_decref(web_post(&client, "/api/command", "{\"command\":\"save\",\"name\":\"here\"}"));
    CHECK_INT(client.code, 200);
    CHECK_INT(pthread_create(&thread, NULL, ask_for_branch, &client), 0);
    while (!atomic_load(&branching))
        usleep(1000);
    kept->finish(kept);
    kept->free(kept);
    CHECK(!atomic_load(&released));
    atomic_store(&returns, true);
    kept->detach(kept, trainer); /* waits until the request has given the trainer back */
    pthread_join(thread, NULL);
    sgm_env_free(env);
}

static void *end_waiting(void *user)
{
    web_client *client = user;
    double end = sgm__now() + PATIENCE;
    bool waiting = false;
    while (!waiting && sgm__now() < end) {
        json_t *session = web_get(client, "/api/session");
        waiting = json_is_true(web_at(session, "waiting"));
        json_decref(session);
        usleep(10000);
    }
    CHECK(waiting);
    json_decref(web_post(client, "/api/finish", "{}"));
    CHECK_INT(client->code, 200);
    return NULL;
}

TEST(the_end_waits_for_people_where_it_is_asked_to)
{
    pthread_t thread;
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    line_trainer(env, "a");
    web_client client = serve(env, sgm_web_monitor(.quiet = true, .wait = true));
    sgm_env_free(env); /* nothing was run */
    env = sgm_env_create("e", .handler = "reference");
    line_trainer(env, "a");
    client = serve(env, sgm_web_monitor(.quiet = true, .wait = true));
    CHECK_OK(sgm_env_run(env, .epochs = 1));
    CHECK_INT(pthread_create(&thread, NULL, end_waiting, &client), 0);
    sgm_env_free(env);
    pthread_join(thread, NULL);
}
