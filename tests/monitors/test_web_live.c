/* The web monitor, seen by programs that watch it. */
#include "environment/environment_test.h"
#include "monitors/web_client.h"

#include <stdatomic.h>

#define PATIENCE 20.0

/* --- a training to watch --- */

typedef struct watched {
    sgm_env *env;
    sgm_trainer *trainer;
    sgm_monitor *monitor;
    web_client client;
    double *costs; /* of iterations, as an observer sees them */
    int64_t iterations;
    double delay; /* seconds in each iteration */
    sgm_registry *registry;
} watched;

static bool note_cost(void *user, const sgm_training_progress *progress)
{
    watched *w = user;
    if (progress->kind != SGM_PROGRESS_ITERATION)
        return true;
    if (w->costs != NULL && progress->iteration <= w->iterations) {
        sgm_content cost;
        CHECK_OK(sgm_registry_resolve_one(w->registry, "optimiser.loss", &cost));
        w->costs[progress->iteration] = cost.as.number;
    }
    if (w->delay > 0)
        usleep((useconds_t)(w->delay * 1e6));
    return true;
}

/* In place, for observers have its address. */
static void open_watched(watched *w)
{
    w->env = sgm_env_create("watched", .handler = "reference", .seed = 11);
    w->trainer = line_trainer(w->env, "line");
    w->registry = sgm_trainer_registry(w->trainer);
    w->monitor = sgm_web_monitor(.quiet = true, .title = "A title", .configuration = "epochs: 3\n");
    CHECK_OK(w->monitor);
    CHECK_STR(sgm_web_monitor_url(w->monitor), "");
    CHECK_OK(sgm_trainer_on_progress(w->trainer, note_cost, w));
    CHECK_OK(sgm_env_add_monitor(w->env, w->monitor));
}

static void serve(watched *w)
{
    CHECK_OK(sgm_env_prepare(w->env));
    w->client = web_client_of(sgm_web_monitor_url(w->monitor));
}

static void close_watched(watched *w)
{
    sgm_env_free(w->env);
    sgm__free(w->costs);
}

/* Until the curve goes up to this iteration. */
static void await_iteration(watched *w, const char *identifier, double iteration)
{
    char path[200];
    snprintf(path, sizeof path, "/api/series?id=%s&from=%g&points=2", identifier, iteration);
    double end = sgm__now() + PATIENCE, newest = NAN;
    while (newest != iteration) {
        json_t *json = web_get(&w->client, path);
        size_t count = json_array_size(web_at(json, "series/0/x"));
        if (count > 0)
            newest = json_number_value(json_array_get(web_at(json, "series/0/x"), count - 1));
        json_decref(json);
        if (sgm__now() > end)
            TEST_FAIL("the curve of %s goes up to %g, not %g", identifier, newest, iteration);
        usleep(10000);
    }
}

TEST(the_session_tells_of_trainers)
{
    watched w = {0};
    open_watched(&w);
    give_parts(sgm_trainer_create_unscheduled(w.env, "unscheduled"));
    serve(&w);
    json_t *session = web_get(&w.client, "/api/session");
    CHECK_STR(web_string(session, "name"), "watched");
    CHECK_STR(web_string(session, "title"), "A title");
    CHECK_STR(web_string(session, "handler"), "reference");
    CHECK_STR(web_string(session, "precision"), "float32");
    CHECK_STR(web_string(session, "version"), sgm_version());
    CHECK(json_is_null(web_at(session, "tabs")));
    CHECK_INT(json_array_size(web_at(session, "trainers")), 2);
    CHECK_STR(web_string(session, "trainers/0/name"), "line");
    CHECK_STR(web_string(session, "trainers/0/state"), "idle");
    CHECK_STR(web_string(session, "trainers/0/network"), "input(1) + dense(1) + mean_squared");
    CHECK_NEAR(web_number(session, "trainers/0/parameters"), 2, 0);
    CHECK(json_is_false(web_at(session, "trainers/0/unscheduled")));
    CHECK(json_is_false(web_at(session, "trainers/0/gone")));
    CHECK(json_is_true(web_at(session, "trainers/1/unscheduled")));
    CHECK(json_is_null(web_at(session, "trainers/0/loss")));
    json_decref(session);
    CHECK_OK(sgm_env_run(w.env, .epochs = 3));
    session = web_get(&w.client, "/api/session");
    CHECK_STR(web_string(session, "trainers/0/state"), "idle");
    CHECK_NEAR(web_number(session, "trainers/0/epoch"), 3, 0);
    CHECK_NEAR(web_number(session, "trainers/0/epochs"), 3, 0);
    CHECK_NEAR(web_number(session, "trainers/0/iteration"), 12, 0);
    CHECK_NEAR(web_number(session, "trainers/0/batches"), 4, 0);
    CHECK_NEAR(web_number(session, "trainers/0/learning_rate"), 0.1, 0);
    CHECK(web_number(session, "trainers/0/seconds") > 0);
    CHECK(web_number(session, "trainers/0/rate") > 0);
    CHECK(json_is_null(web_at(session, "trainers/0/seconds_left")));
    sgm_content loss; /* that of the last epoch stays when the run has ended */
    CHECK_OK(sgm_registry_resolve_one(w.registry, "training.loss", &loss));
    CHECK_NEAR(web_number(session, "trainers/0/loss"), loss.as.number, 1e-8 * loss.as.number);
    json_decref(session);
    json_t *configuration = web_get(&w.client, "/api/configuration");
    CHECK_STR(web_string(configuration, "text"), "epochs: 3\n");
    CHECK_STR(web_string(configuration, "seed"), "11");
    CHECK(strstr(web_string(configuration, "command/0"), "test_web_live") != NULL);
    json_decref(configuration);
    close_watched(&w);
}

static void check_refused(web_client *client, json_t *answer, int code, const char *why)
{
    CHECK_INT(client->code, code);
    if (strstr(web_string(answer, "error"), why) == NULL)
        TEST_FAIL("the error is '%s', without '%s'", web_string(answer, "error"), why);
    json_decref(answer);
}

TEST(curves_have_the_values_that_there_were)
{
    watched w = {.iterations = 80, .delay = 0.005};
    w.costs = sgm__calloc(81, sizeof *w.costs);
    open_watched(&w);
    serve(&w);
    CHECK_OK(sgm_env_run(w.env, .epochs = 20));
    await_iteration(&w, "optimiser.loss", 80);
    json_t *list = web_get(&w.client, "/api/series/list?trainer=line");
    CHECK_STR(web_string(list, "series/0/id"), "optimiser.loss");
    json_decref(list);
    json_t *series = web_get(&w.client, "/api/series?trainer=line&id=optimiser.loss&id=training.loss");
    CHECK_STR(web_string(series, "axis"), "iteration");
    CHECK_STR(web_string(series, "series/1/id"), "training.loss");
    const json_t *xs = web_at(series, "series/0/x");
    size_t count = json_array_size(xs);
    CHECK(count >= 8 && count <= 80); /* a busy machine makes sampling look expensive */
    double minimum = INFINITY, maximum = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t iteration = json_integer_value(json_array_get(xs, i));
        double cost = json_number_value(json_array_get(web_at(series, "series/0/last"), i));
        CHECK(iteration >= 1 && iteration <= 80);
        CHECK_NEAR(cost, w.costs[iteration], 1e-8 * w.costs[iteration]);
        if (iteration >= 20 && iteration <= 40) {
            minimum = fmin(minimum, cost);
            maximum = fmax(maximum, cost);
        }
    }
    json_decref(series);
    /* a window, in epochs, with extremes */
    series = web_get(&w.client, "/api/series?id=optimiser.loss&axis=epoch&from=5&to=10&points=2");
    CHECK_INT(json_array_size(web_at(series, "series/0/x")), 4);
    CHECK(web_number(series, "series/0/x/0") < 5 && web_number(series, "series/0/x/3") > 10);
    CHECK(web_number(series, "series/0/x/2") > 6 && web_number(series, "series/0/x/2") <= 10);
    CHECK_NEAR(fmax(web_number(series, "series/0/max/1"), web_number(series, "series/0/max/2")), maximum, 0);
    CHECK_NEAR(fmin(web_number(series, "series/0/min/1"), web_number(series, "series/0/min/2")), minimum, 0);
    json_decref(series);
    json_t *refused = web_get(&w.client, "/api/series?id=training.loss&from=nan");
    check_refused(&w.client, refused, 400, "'from': expected a number, got 'nan'");
    check_refused(&w.client, web_get(&w.client, "/api/series?id=optimiser.los"), 404,
                  "nothing named 'optimiser.los' is recorded of trainer 'line' (did you mean "
                  "'optimiser.loss'?); there are optimiser.loss, training.loss, ");
    close_watched(&w);
}

TEST(anything_that_is_a_number_can_be_watched)
{
    watched w = {.delay = 0.001};
    open_watched(&w);
    serve(&w);
    json_t *answer = web_post(&w.client, "/api/watch", "{\"identifier\": \"optimiser.learn*\"}");
    CHECK_INT(w.client.code, 200);
    CHECK_STR(web_string(answer, "identifiers/0"), "optimiser.learning_rate");
    json_decref(answer);
    answer = web_post(&w.client, "/api/watch", "{\"trainer\": \"line\", \"identifier\": \"iteration\"}");
    CHECK_STR(web_string(answer, "identifiers/0"), "iteration");
    json_decref(answer);
    CHECK_OK(sgm_env_run(w.env, .iterations = 6));
    await_iteration(&w, "iteration", 6);
    json_t *series = web_get(&w.client, "/api/series?id=iteration&id=optimiser.learning_rate");
    CHECK_NEAR(web_number(series, "series/0/x/0"), 0, 0); /* what it was when it was asked for */
    for (size_t i = 0; i < json_array_size(web_at(series, "series/0/x")); i++) {
        CHECK_NEAR(json_number_value(json_array_get(web_at(series, "series/0/last"), i)),
                   json_number_value(json_array_get(web_at(series, "series/0/x"), i)), 0);
        CHECK_NEAR(json_number_value(json_array_get(web_at(series, "series/1/last"), i)), 0.1, 0);
    }
    json_decref(series);
    answer = web_post(&w.client, "/api/unwatch", "{\"identifier\": \"iterat*\"}");
    CHECK_STR(web_string(answer, "identifiers/0"), "iteration");
    json_decref(answer);
    CHECK_OK(sgm_env_run(w.env, .iterations = 8));
    await_iteration(&w, "optimiser.learning_rate", 8);
    await_iteration(&w, "iteration", 6);
    web_client *c = &w.client;
    check_refused(c, web_post(c, "/api/watch", "{\"identifier\": \"optimiser.rate\"}"), 404, "rate");
    check_refused(c, web_post(c, "/api/watch", "{\"identifier\": \"name\"}"), 400, "name is no number");
    check_refused(c, web_post(c, "/api/watch", "{\"trainer\": \"x\", \"identifier\": \"name\"}"), 404,
                  "there is no trainer 'x'");
    check_refused(c, web_post(c, "/api/watch", "{\"trainer\": 7, \"identifier\": \"name\"}"), 400,
                  "'trainer' must be a text");
    check_refused(c, web_post(c, "/api/watch", "{}"), 400, "expected a text 'identifier'");
    check_refused(c, web_post(c, "/api/watch", "[]"), 400, "JSON object");
    check_refused(c, web_get(c, "/api/series?axis=days"), 400, "axis");
    check_refused(c, web_get(c, "/api/series?points=1"), 400, "points");
    check_refused(c, web_get(c, "/api/series?from=soon"), 400, "'from'");
    check_refused(c, web_get(c, "/api/series?trainer=other"), 404, "no trainer 'other'");
    check_refused(c, web_post(c, "/api/finish", "{}"), 409, "does not wait");
    close_watched(&w);
}

/* A number that takes long to read: 20 times as long as an iteration. */
static sgm_status read_slowly(void *user, sgm_content *content)
{
    atomic_fetch_add((atomic_int *)user, 1);
    usleep(20000);
    *content = sgm_number_content(1);
    return SGM_OK;
}

/* Samples of 20 ms, every 50 ms, would take two fifths of the time. At the beginning, before it is known what
 * a sample and a step cost, a few are taken. */
TEST(values_that_take_long_to_read_are_sampled_rarely)
{
    static const sgm_option row = {.name = "slow", .kind = SGM_KIND_NUMBER, .read_only = true};
    atomic_int reads = 0;
    sgm_content shared;
    watched w = {.delay = 0.001};
    open_watched(&w);
    serve(&w);
    CHECK_OK(sgm_registry_resolve_one(w.registry, "shared", &shared));
    CHECK_OK(sgm_registry_bind(shared.as.registry, &row, &(sgm_binding){.get = read_slowly, .user = &reads}));
    sgm_content_clear(&shared);
    json_decref(web_post(&w.client, "/api/watch", "{\"identifier\": \"shared.slow\"}"));
    CHECK_INT(w.client.code, 200);
    CHECK_OK(sgm_env_run(w.env, .iterations = 400));
    CHECK(atomic_load(&reads) <= 12);
    await_iteration(&w, "shared.slow", 400); /* the last one is there */
    close_watched(&w);
}

/* The names of layers come with the run, those of validation with the first epoch: whoever asks before gets
 * an empty curve, and what was watched is recorded once it is there. */
TEST(what_is_not_there_yet_is_waited_for)
{
    watched w = {.delay = 0.001};
    open_watched(&w);
    serve(&w);
    json_t *answer = web_post(&w.client, "/api/watch", "{\"identifier\": \"later.*\"}");
    CHECK_INT(w.client.code, 200);
    CHECK_INT(json_array_size(web_at(answer, "identifiers")), 0);
    CHECK(json_is_true(web_at(answer, "pending")));
    json_decref(answer);
    json_decref(web_post(&w.client, "/api/watch", "{\"identifier\": \"nevr.there\"}"));
    CHECK_INT(w.client.code, 200);
    json_decref(web_post(&w.client, "/api/watch", "{\"identifier\": \"let.go\"}"));
    json_decref(web_post(&w.client, "/api/unwatch", "{\"identifier\": \"let.go\"}"));
    json_decref(web_get(&w.client, "/api/series?id=anything"));
    CHECK_INT(w.client.code, 200);
    static const sgm_option value = {.name = "value", .kind = SGM_KIND_NUMBER};
    sgm_registry *later = sgm_registry_create();
    CHECK_OK(sgm_registry_define(later, &value));
    CHECK_OK(sgm_registry_set(later, "value", sgm_number_content(7)));
    CHECK_OK(sgm_registry_put(sgm_trainer_registry(w.trainer), "later", later));
    CHECK_OK(sgm_env_run(w.env, .iterations = 6));
    await_iteration(&w, "later.value", 6);
    json_t *series = web_get(&w.client, "/api/series?id=later.value&id=nevr.there");
    CHECK_INT(w.client.code, 200);
    CHECK_NEAR(web_number(series, "series/0/last/0"), 7, 0);
    CHECK_NEAR(web_number(series, "series/1/count"), 0, 0);
    json_decref(series);
    check_refused(&w.client, web_get(&w.client, "/api/series?id=let.go"), 404, "nothing named 'let.go'");
    sgm_registry_free(later);
    close_watched(&w);
}

TEST(what_moves_is_pushed)
{
    watched w = {.delay = 0.002};
    open_watched(&w);
    serve(&w);
    web_listener listener = web_listen(&w.client);
    json_decref(web_event(&listener, "system", NULL, PATIENCE));
    CHECK_OK(sgm_env_run_background(w.env, .iterations = 300));
    json_t *event = web_event(&listener, "task", "\"running\"", PATIENCE);
    CHECK_STR(web_string(event, "kind"), "train");
    CHECK_STR(web_string(event, "description"), "line");
    json_decref(event);
    event = web_event(&listener, "progress", "\"running\"", PATIENCE);
    CHECK_STR(web_string(event, "name"), "line");
    json_decref(event);
    event = web_event(&listener, "points", "optimiser.loss", PATIENCE);
    CHECK_STR(web_string(event, "trainer"), "line");
    const json_t *point = web_at(event, "series/optimiser.loss/0");
    CHECK_INT(json_array_size(point), 4);
    CHECK_NEAR(web_number(point, "1"), web_number(point, "0") / 4, 1e-9);
    json_decref(event);
    sgm_log_message(SGM_LOG_WARNING, "somebody", "a \"message\"\n");
    event = web_event(&listener, "log", "somebody", PATIENCE);
    CHECK_STR(web_string(event, "level"), "warning");
    CHECK_STR(web_string(event, "message"), "a \"message\"\n");
    json_decref(event);
    event = web_event(&listener, "task", "\"ended\"", PATIENCE);
    CHECK_STR(web_string(event, "status"), "ended");
    json_decref(event);
    listener.read = 0; /* in whatever order they came */
    event = web_event(&listener, "progress",
                      "\"state\":\"idle\",\"unscheduled\":false,\"gone\":false,\"epoch\":74", PATIENCE);
    CHECK_NEAR(web_number(event, "iteration"), 300, 0);
    json_decref(event);
    CHECK_OK(sgm_env_wait(w.env));
    CHECK_OK(sgm_trainer_create(w.env, "another"));
    json_decref(web_event(&listener, "trainers", NULL, PATIENCE));
    web_listener_close(&listener);
    close_watched(&w);
}

TEST(messages_can_be_searched)
{
    watched w = {0};
    open_watched(&w);
    serve(&w);
    sgm_log_message(SGM_LOG_INFO, "one", "first of all");
    sgm_log_message(SGM_LOG_WARNING, "two", "second");
    sgm_log_message(SGM_LOG_ERROR, "two", "third is the FIRST error");
    json_t *found = web_get(&w.client, "/api/log?search=first&level=info");
    size_t count = json_array_size(web_at(found, "messages"));
    CHECK_INT(count, 2);
    CHECK_STR(web_string(found, "messages/0/message"), "first of all");
    CHECK_STR(web_string(found, "messages/1/level"), "error");
    char path[100];
    snprintf(path, sizeof path, "/api/log?after=%g", web_number(found, "messages/0/number"));
    json_decref(found);
    found = web_get(&w.client, path);
    CHECK_STR(web_string(found, "messages/0/message"), "second");
    json_decref(found);
    found = web_get(&w.client, "/api/log?level=warning&limit=1");
    CHECK_INT(json_array_size(web_at(found, "messages")), 1);
    CHECK_STR(web_string(found, "messages/0/message"), "third is the FIRST error");
    json_decref(found);
    for (int i = 0; i < 6000; i++) /* more than are kept */
        sgm_log_message(SGM_LOG_INFO, "many", "%d", i);
    found = web_get(&w.client, "/api/log?limit=5000");
    CHECK_INT(json_array_size(web_at(found, "messages")), 5000);
    CHECK_STR(web_string(found, "messages/0/message"), "1000");
    CHECK_STR(web_string(found, "messages/4999/message"), "5999");
    json_decref(found);
    check_refused(&w.client, web_get(&w.client, "/api/log?level=loud"), 400, "unknown log level");
    check_refused(&w.client, web_get(&w.client, "/api/log?limit=-1"), 400, "'limit'");
    close_watched(&w);
}

TEST(tasks_and_the_system_can_be_seen)
{
    watched w = {0};
    open_watched(&w);
    serve(&w);
    sgm_task task = sgm_task_begin(SGM_TASK_LOAD, "something", "files");
    sgm_task_allow_cancel(task);
    CHECK(sgm_task_set_progress(task, 3, 12));
    json_t *tasks = web_get(&w.client, "/api/tasks");
    size_t last = json_array_size(web_at(tasks, "tasks")) - 1;
    const json_t *shown = json_array_get(web_at(tasks, "tasks"), last);
    CHECK_STR(web_string(shown, "description"), "something");
    CHECK_STR(web_string(shown, "going"), "loading");
    CHECK_NEAR(web_number(shown, "progress"), 0.25, 0);
    CHECK(json_is_true(web_at(shown, "can_cancel")) && json_is_false(web_at(shown, "paused")));
    char body[64];
    snprintf(body, sizeof body, "{\"task\": %lld}", (long long)web_number(shown, "task"));
    json_decref(tasks);
    json_decref(web_post(&w.client, "/api/task-cancel", body));
    CHECK_INT(w.client.code, 200);
    CHECK(!sgm_task_set_progress(task, 4, 12));
    sgm_task_end(task, SGM_ERROR_INTERRUPTED);
    check_refused(&w.client, web_post(&w.client, "/api/task-cancel", body), 404, "not running");
    check_refused(&w.client, web_post(&w.client, "/api/task-cancel", "{}"), 400, "'task'");
    tasks = web_get(&w.client, "/api/tasks");
    last = json_array_size(web_at(tasks, "tasks")) - 1;
    CHECK_STR(web_string(json_array_get(web_at(tasks, "tasks"), last), "status"), "cancelled");
    json_decref(tasks);
    double end = sgm__now() + PATIENCE;
    json_t *load = web_get(&w.client, "/api/system");
    while (!json_is_number(web_at(load, "cpu")) && sgm__now() < end) { /* a share of time takes time */
        json_decref(load);
        usleep(50000);
        load = web_get(&w.client, "/api/system");
    }
    CHECK(web_number(load, "cpu") >= 0 && web_number(load, "cpu") <= 1);
    CHECK(web_number(load, "process_cpu") >= 0 && web_number(load, "process_cpu") <= 1);
    CHECK(web_number(load, "memory") < web_number(load, "memory_total"));
    CHECK(web_number(load, "process_memory") > 1e6);
    CHECK(web_number(load, "threads") >= 4);
    CHECK_INT(json_array_size(web_at(load, "load")), 3);
    json_decref(load);
    close_watched(&w);
}
