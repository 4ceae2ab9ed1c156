/* Steering over the web monitor: commands, changes, checkpoints, branches. */
#include "base/folder.h"
#include "environment/environment_test.h"
#include "monitors/web_client.h"

#include <stdatomic.h>

#define PATIENCE 20.0
#define LOOK "0123456789abcdef-LOOK0"
#define STEER "0123456789abcdef-STEER"

typedef struct steered {
    sgm_env *env;
    sgm_trainer *trainer;
    web_client client;
} steered;

static void begin(steered *s, const char *run_folder)
{
    *s = (steered){.env = sgm_env_create("steered", .handler = "reference", .seed = 5)};
    s->trainer = line_trainer(s->env, "line");
    CHECK_OK(s->trainer);
    sgm_monitor *monitor = sgm_web_monitor(.quiet = true, .changes_per_second = -1,
                                           .tokens = "look " LOOK "\nsteer " STEER " anna");
    CHECK_OK(sgm_env_add_monitor(s->env, monitor));
    CHECK_OK(sgm_env_run_background(s->env, .epochs = 100000000, .paused = true, .folder = run_folder));
    s->client = web_client_of(sgm_web_monitor_url(monitor));
}

static void end(steered *s)
{
    web_client_close(&s->client);
    CHECK_OK(sgm_env_stop(s->env, "seen enough"));
    CHECK_OK(sgm_env_wait(s->env));
    sgm_env_free(s->env);
}

static const json_t *command(steered *s, const char *fields)
{
    char body[600];
    snprintf(body, sizeof body, "{\"trainer\":\"line\",%s}", fields);
    return web_posted(&s->client, "/api/command", body);
}

static double status_of(steered *s, const char *trainer, const char *key)
{
    char body[200];
    snprintf(body, sizeof body, "{\"trainer\":\"%s\",\"command\":\"status\"}", trainer);
    double value = web_number(web_posted(&s->client, "/api/command", body), key);
    CHECK_DONE(&s->client);
    return value;
}

static void await_iteration(steered *s, const char *trainer, double iteration)
{
    double limit = sgm__now() + PATIENCE;
    while (status_of(s, trainer, "iteration") < iteration)
        if (sgm__now() > limit)
            TEST_FAIL("%s does not get to iteration %g", trainer, iteration);
}

static void await_state(steered *s, const char *state)
{
    double limit = sgm__now() + PATIENCE;
    while (strcmp(web_string(command(s, "\"command\":\"status\""), "state"), state) != 0) {
        if (sgm__now() > limit)
            TEST_FAIL("the state is %s, not %s", web_string(s->client.answer, "state"), state);
        usleep(5000);
    }
}

static void step(steered *s, int iterations)
{
    char fields[100];
    double before = status_of(s, "line", "iteration"), limit = sgm__now() + PATIENCE;
    snprintf(fields, sizeof fields, "\"command\":\"step\",\"iterations\":%d", iterations);
    command(s, fields);
    CHECK_DONE(&s->client);
    while (status_of(s, "line", "iteration") < before + iterations && sgm__now() < limit)
        usleep(2000);
    await_state(s, "paused");
    CHECK_NEAR(status_of(s, "line", "iteration"), before + iterations, 0);
}

/* --- values --- */

TEST(a_trainer_is_paused_stepped_and_resumed)
{
    steered s;
    begin(&s, NULL);
    await_state(&s, "paused");
    step(&s, 7);
    command(&s, "\"command\":\"resume\"");
    CHECK_DONE(&s.client);
    await_iteration(&s, "line", 20);
    web_posted(&s.client, "/api/command", "{\"command\":\"pause\"}"); /* the only trainer */
    CHECK_DONE(&s.client);
    await_state(&s, "paused");
    double iteration = status_of(&s, "line", "iteration");
    usleep(30000);
    CHECK_NEAR(status_of(&s, "line", "iteration"), iteration, 0);
    command(&s, "\"command\":\"step\",\"iterations\":0");
    CHECK_REFUSED(&s.client, 400, "stepping takes at least 1 iteration, not 0");
    command(&s, "\"command\":\"pauze\"");
    CHECK_REFUSED(&s.client, 404, "unknown command 'pauze' (did you mean 'pause'?)");
    CHECK_POST_REFUSED(&s.client, "/api/command", "{\"trainer\":\"lines\",\"command\":\"pause\"}", 404,
                       "there is no trainer 'lines'");
    CHECK_POST_REFUSED(&s.client, "/api/command", "{\"trainer\":3,\"command\":\"pause\"}", 400,
                       "'trainer' must be a text");
    web_posted(&s.client, "/api/command", "[]");
    CHECK_INT(s.client.code, 400);
    end(&s);
}

/* What the session says, and what is pushed though the trainer is paused. */
static void check_undoable(steered *s, web_listener *listener, bool wanted)
{
    web_got(&s->client, "/api/session");
    CHECK(json_is_boolean(web_at(s->client.answer, "trainers/0/undoable")));
    CHECK(json_is_true(web_at(s->client.answer, "trainers/0/undoable")) == wanted);
    json_t *event =
        web_event(listener, "progress", wanted ? "\"undoable\":true" : "\"undoable\":false", PATIENCE);
    CHECK(event != NULL);
    json_decref(event);
}

TEST(a_value_is_changed_and_taken_back)
{
    steered s;
    begin(&s, open_folder());
    web_listener listener = web_listen(&s.client);
    await_state(&s, "paused");
    step(&s, 3);
    check_undoable(&s, &listener, false);
    command(&s, "\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":0.025");
    CHECK_DONE(&s.client);
    CHECK_NEAR(web_number(s.client.answer, "values/0/value"), 0.025, 0);
    CHECK_STR(web_string(s.client.answer, "values/0/effect"), "from the next iteration on");
    json_t *event = web_event(&listener, "change", "learning_rate", PATIENCE);
    CHECK_NEAR(web_number(event, "after"), 0.025, 0);
    CHECK_NEAR(web_number(event, "iteration"), 3, 0);
    CHECK_STR(web_string(event, "who"), "monitor");
    json_decref(event);
    web_got(&s.client, "/api/changes?trainer=line");
    CHECK_INT(json_array_size(web_at(s.client.answer, "changes")), 1);
    CHECK_NEAR(web_number(s.client.answer, "changes/0/number"), 1, 0);
    CHECK_NEAR(web_number(s.client.answer, "changes/0/before"), 0.1, 0);
    CHECK(json_is_true(web_at(s.client.answer, "changes/0/undoable")));
    check_undoable(&s, &listener, true);
    command(&s, "\"command\":\"undo\",\"number\":1");
    CHECK_DONE(&s.client);
    check_undoable(&s, &listener, false);
    web_got(&s.client, "/api/tree?trainer=line&identifier=optimiser.learning_rate");
    CHECK_NEAR(web_number(s.client.answer, "entries/0/value"), 0.1, 0);
    CHECK(json_is_true(web_at(s.client.answer, "entries/0/settable")));
    CHECK_STR(web_string(s.client.answer, "entries/0/tags/0"), "optimiser");
    web_got(&s.client, "/api/changes?trainer=line");
    CHECK_INT(json_array_size(web_at(s.client.answer, "changes")), 2);
    CHECK(json_is_false(web_at(s.client.answer, "changes/0/undoable")));
    CHECK_NEAR(web_number(s.client.answer, "changes/1/undoes"), 1, 0);
    command(&s, "\"command\":\"undo\",\"number\":1");
    CHECK_REFUSED(&s.client, 409, "was taken back already");
    command(&s, "\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":\"much\"");
    CHECK_REFUSED(&s.client, 400, "optimiser.learning_rate: expected a number, got 'much'");
    command(&s, "\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":-1");
    CHECK_REFUSED(&s.client, 400, "optimiser.learning_rate: expected a number of at least 0, got -1");
    command(&s,
            "\"command\":\"get\",\"identifier\":\"network.layers.1-dense.weights\",\"file\":\"/tmp/stolen\"");
    CHECK_REFUSED(&s.client, 400, "files cannot be named from here");
    web_listener_close(&listener);
    end(&s);
    char *text;
    size_t length;
    CHECK_OK(sgm__file_read(in_folder("journal.jsonl"), 65536, &text, &length));
    CHECK(
        strstr(text, "\"who\":\"monitor\",\"what\":\"optimiser.learning_rate\",\"old\":0.1,\"new\":0.025") !=
        NULL);
    sgm__free(text);
    close_folder();
}

/* --- a trainer that does not let anybody look --- */

static atomic_bool holds, held;

static sgm_status hold(void *self, sgm_hook_call *call)
{
    (void)self, (void)call;
    for (atomic_store(&held, true); atomic_load(&holds); usleep(1000))
        continue;
    return SGM_OK;
}

/* Sends a command, and closes the connection before there is an answer. */
static void ask_and_leave(const steered *s, const char *body)
{
    char text[1000];
    int length = snprintf(text, sizeof text,
                          "POST /api/command HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer "
                          "%s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                          s->client.port, s->client.token, strlen(body), body);
    int descriptor = client_connect(s->client.port);
    CHECK(client_send(descriptor, text, (size_t)length));
    usleep(50000);
    close(descriptor);
}

TEST(a_busy_trainer_is_told_of_in_time_and_changed_by_nobody_who_left)
{
    static const sgm_hook_type holder = {.api = SGM_HOOK_API, .name = "holder", .invoke = hold};
    static int self;
    steered s;
    open_folder();
    begin(&s, folder);
    await_state(&s, "paused");
    atomic_store(&holds, true);
    CHECK_OK(sgm_trainer_add_hook(s.trainer,
                                  sgm_hook_create(&holder, &self, .when = sgm_every(1, SGM_ITERATION))));
    command(&s, "\"command\":\"step\",\"iterations\":1");
    CHECK_DONE(&s.client);
    for (double limit = sgm__now() + PATIENCE; !atomic_load(&held) && sgm__now() < limit; usleep(1000))
        continue;
    CHECK(atomic_load(&held));
    CHECK_STR(web_string(command(&s, "\"command\":\"status\""), "busy"), "running hooks");
    command(&s,
            "\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":0.75,\"within\":0.2");
    CHECK_REFUSED(&s.client, 503, "trainer 'line' has not let anybody look for 0.");
    ask_and_leave(&s, "{\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":0.75}");
    for (double limit = sgm__now() + PATIENCE; sgm__now() < limit; usleep(5000)) {
        char *log;
        size_t length;
        CHECK_OK(sgm__file_read(in_folder("log.txt"), 1 << 24, &log, &length));
        bool told = strstr(log, "monitor: set optimiser.learning_rate 0.75 was not done: who asked has left");
        sgm__free(log);
        if (told)
            break;
    }
    atomic_store(&holds, false);
    await_state(&s, "paused");
    command(&s, "\"command\":\"get\",\"identifier\":\"optimiser.learning_rate\"");
    CHECK(web_number(s.client.answer, "values/0/value") < 0.7);
    CHECK_INT(json_array_size(web_at(web_got(&s.client, "/api/changes?trainer=line"), "changes")), 0);
    end(&s);
    close_folder();
}

TEST(a_pause_names_the_rule_on_the_page)
{
    steered s;
    begin(&s, NULL);
    web_listener listener = web_listen(&s.client);
    await_state(&s, "paused");
    command(&s, "\"command\":\"attach\",\"hook\":\"if training.loss > 0 then pause\"");
    CHECK_DONE(&s.client);
    command(&s, "\"command\":\"resume\"");
    json_t *event = web_event(&listener, "progress",
                              "\"held\":\"paused by rule (if training.loss > 0 then pause)\"", PATIENCE);
    CHECK(event != NULL);
    json_decref(event);
    web_listener_close(&listener);
    end(&s);
}

TEST(the_tree_has_all_there_is)
{
    steered s;
    begin(&s, NULL);
    await_state(&s, "paused");
    const json_t *entries = web_at(web_got(&s.client, "/api/tree?trainer=line"), "entries");
    size_t i, found = 0;
    const json_t *entry;
    json_array_foreach(entries, i, entry)
    {
        const char *identifier = web_string(entry, "identifier");
        if (strcmp(identifier, "network.layers.1-dense.weights") == 0) {
            CHECK(json_is_null(web_at(entry, "value")));
            CHECK_STR(web_string(entry, "text"), "float32 (1, 1)");
            found++;
        }
        if (strcmp(identifier, "iterator.minibatch_size") == 0) {
            CHECK_NEAR(web_number(entry, "value"), 10, 0);
            CHECK_STR(web_string(entry, "effect"), "from the next epoch on");
            CHECK_STR(web_string(entry, "unit"), "examples");
            found++;
        }
        if (strcmp(identifier, "optimiser.schedule.kind") == 0) {
            CHECK_STR(web_string(entry, "choices/0"), "constant");
            CHECK_STR(web_string(entry, "value"), "constant");
            found++;
        }
    }
    CHECK_INT(found, 3);
    web_got(&s.client, "/api/tree?trainer=line&identifier=optimiser.learning_rat");
    CHECK_REFUSED(&s.client, 404, "learning_rate");
    end(&s);
}

TEST(rules_come_as_text)
{
    steered s;
    begin(&s, NULL);
    await_state(&s, "paused");
    command(&s, "\"command\":\"attach\",\"hook\":\"every 2 iterations if epoch >= 0 then set "
                "optimiser.clip_norm += 1\"");
    CHECK_DONE(&s.client);
    char *name = sgm__strdup(web_string(s.client.answer, "name"));
    step(&s, 4);
    web_got(&s.client, "/api/changes?trainer=line");
    CHECK_STR(web_string(s.client.answer, "changes/1/identifier"), "optimiser.clip_norm");
    CHECK(json_is_false(web_at(s.client.answer, "changes/1/person")));
    CHECK(json_is_false(web_at(s.client.answer, "changes/1/undoable")));
    command(&s, "\"command\":\"hooks\"");
    CHECK_NEAR(web_number(s.client.answer, "hooks/0/runs"), 2, 0);
    char fields[200];
    snprintf(fields, sizeof fields, "\"command\":\"detach\",\"name\":\"%s\"", name);
    command(&s, fields);
    CHECK_DONE(&s.client);
    command(&s, "\"command\":\"hooks\"");
    CHECK_INT(json_array_size(web_at(s.client.answer, "hooks")), 0);
    command(&s, "\"command\":\"attach\",\"hook\":\"every 2 epochs if loss fals then stop\"");
    CHECK_REFUSED(&s.client, 400, "column");
    command(&s, fields);
    CHECK_REFUSED(&s.client, 404, "");
    sgm__free(name);
    end(&s);
}

TEST(a_button_of_a_rule_is_pressed)
{
    steered s;
    begin(&s, NULL);
    await_state(&s, "paused");
    command(&s, "\"command\":\"press\",\"name\":\"go\"");
    CHECK_REFUSED(&s.client, 404, "no rule waits for external");
    command(&s, "\"command\":\"attach\",\"hook\":\"every iteration if external \\\"go\\\" then set "
                "optimiser.clip_norm = 3\"");
    CHECK_DONE(&s.client);
    command(&s, "\"command\":\"hooks\"");
    CHECK_STR(web_string(s.client.answer, "hooks/0/buttons/0"), "go");
    command(&s, "\"command\":\"press\",\"name\":\"go\"");
    CHECK_DONE(&s.client);
    step(&s, 2);
    command(&s, "\"command\":\"hooks\"");
    CHECK_NEAR(web_number(s.client.answer, "hooks/0/runs"), 1, 0);
    web_got(&s.client, "/api/changes?trainer=line");
    CHECK_STR(web_string(s.client.answer, "changes/1/identifier"), "button go");
    CHECK_STR(web_string(s.client.answer, "changes/1/who"), "monitor");
    CHECK_STR(web_string(s.client.answer, "changes/2/identifier"), "optimiser.clip_norm");
    command(&s, "\"command\":\"press\"");
    CHECK_REFUSED(&s.client, 400, "press needs the field 'name'");
    end(&s);
}

/* --- checkpoints --- */

/* A body of any bytes. */
static void send_bytes(steered *s, const char *path, const char *type, const char *bytes, size_t length)
{
    char *head = sgm__format("POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n"
                             "Content-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
                             path, s->client.port, s->client.token, type, length);
    sgm__text all = {0};
    sgm__text_append_bytes(&all, head, strlen(head));
    sgm__text_append_bytes(&all, bytes, length);
    json_decref(s->client.answer);
    s->client.answer = web_read(&s->client, client_ask_bytes(s->client.port, all.data, all.length));
    sgm__text_free(&all);
    sgm__free(head);
}

static void upload(steered *s, const char *path, const char *bytes, size_t length)
{
    send_bytes(s, path, "application/octet-stream", bytes, length);
}

static client_answer download(const steered *s, const char *path)
{
    return client_ask(s->client.port,
                      "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\nConnection: "
                      "close\r\n\r\n",
                      path, s->client.port, s->client.token);
}

/* All is well with the file, but the trainer could not be restored from it. */
static void upload_of_another_network(steered *s)
{
    static char bytes[1 << 16];
    char path[] = "/tmp/sigma-upload-XXXXXX";
    int file = mkstemp(path);
    CHECK(file >= 0);
    sgm_env *env = sgm_env_create("other", .handler = "reference", .seed = 5);
    sgm_trainer *other = sgm_trainer_create(env, "other");
    CHECK_OK(sgm_trainer_set_network(other, "input(1) + dense(2) + mean_squared"));
    CHECK_OK(sgm_trainer_save(other, path));
    sgm_env_free(env);
    close(file);
    FILE *saved = fopen(path, "rb");
    CHECK(saved != NULL);
    size_t length = fread(bytes, 1, sizeof bytes, saved);
    fclose(saved);
    unlink(path);
    upload(s, "/api/checkpoint/foreign?trainer=line", bytes, length);
    CHECK_REFUSED(&s->client, 400, "'foreign' does not fit the trainer: it is of the network");
    web_got(&s->client, "/api/checkpoint/foreign?trainer=line");
    CHECK_REFUSED(&s->client, 404, "has no checkpoint 'foreign'");
}

/* One bit of the tensors is another one. */
static void upload_damaged(steered *s, const char *bytes, size_t length)
{
    char *copy = malloc(length);
    CHECK(copy != NULL);
    for (size_t at = length - 8; at < length; at += 3) {
        memcpy(copy, bytes, length);
        copy[at] = (char)(copy[at] ^ 4);
        upload(s, "/api/checkpoint/flipped?trainer=line", copy, length);
        CHECK_REFUSED(&s->client, 400, "'flipped' is no checkpoint: tensor ");
    }
    free(copy);
}

static void round_of_checkpoints(steered *s)
{
    await_state(s, "paused");
    step(s, 5);
    command(s, "\"command\":\"save\",\"name\":\"five\"");
    CHECK_DONE(&s->client);
    step(s, 4);
    client_answer file = download(s, "/api/checkpoint/five?trainer=line");
    CHECK_INT(file.code, 200);
    char header[200];
    CHECK(strstr(client_header(&file, "Content-Disposition", header, sizeof header), "five.safetensors") !=
          NULL);
    size_t length = file.length - (size_t)(file.body - file.all);
    CHECK(length > 500);
    upload(s, "/api/checkpoint/again?trainer=line", file.body, length);
    CHECK_DONE(&s->client);
    upload(s, "/api/checkpoint/again?trainer=line", file.body, length);
    CHECK_REFUSED(&s->client, 409, "there is a checkpoint 'again' already");
    for (size_t cut = 0; cut < length; cut += length / 5 + 1) {
        upload(s, "/api/checkpoint/cut?trainer=line", file.body, cut);
        CHECK_REFUSED(&s->client, 400, "'cut' is no checkpoint: ");
    }
    upload_damaged(s, file.body, length);
    upload_of_another_network(s);
    upload(s, "/api/checkpoint/..%2fup?trainer=line", file.body, length);
    CHECK(s->client.code >= 400);
    upload(s, "/api/checkpoint/.hidden?trainer=line", file.body, length);
    CHECK(s->client.code >= 400);
    web_got(&s->client, "/api/checkpoint/nothing?trainer=line");
    CHECK_REFUSED(&s->client, 404, "trainer 'line' has no checkpoint 'nothing'");
    client_free(&file);
    web_got(&s->client, "/api/checkpoints?trainer=line");
    size_t found = 0, i;
    const json_t *one;
    json_array_foreach(web_at(s->client.answer, "checkpoints"), i, one)
    {
        bool wanted =
            strcmp(web_string(one, "name"), "five") == 0 || strcmp(web_string(one, "name"), "again") == 0;
        if (!wanted)
            continue;
        found++;
        CHECK_NEAR(web_number(one, "iteration"), 5, 0);
        CHECK_NEAR(web_number(one, "epoch"), 1, 0);
        CHECK_NEAR(web_number(one, "bytes"), (double)length, 0);
    }
    CHECK_INT(found, 2);
    CHECK_NEAR(status_of(s, "line", "iteration"), 9, 0);
    command(s, "\"command\":\"restore\",\"name\":\"again\"");
    CHECK_DONE(&s->client);
    CHECK_NEAR(status_of(s, "line", "iteration"), 5, 0);
    web_posted(&s->client, "/api/checkpoint-delete", "{\"trainer\":\"line\",\"name\":\"again\"}");
    CHECK_DONE(&s->client);
    command(s, "\"command\":\"restore\",\"name\":\"again\"");
    CHECK_REFUSED(&s->client, 404, "has no checkpoint 'again'");
    CHECK_POST_REFUSED(&s->client, "/api/checkpoint-delete", "{\"trainer\":\"line\",\"name\":\"../five\"}",
                       400, "cannot be named");
    web_got(&s->client, "/api/changes?trainer=line");
    CHECK_STR(web_string(s->client.answer, "changes/0/identifier"), "position");
    CHECK(strstr(web_string(s->client.answer, "changes/0/after"), "again") != NULL);
}

/* The most memory, in MiB, that this process has had. */
static double peak_memory(void)
{
    char line[200];
    double kilobytes = NAN;
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        sscanf(line, "VmHWM: %lf", &kilobytes);
    if (status != NULL)
        fclose(status);
    return kilobytes / 1024;
}

#define LARGE_UPLOAD ((size_t)160 << 20)

/* An upload is as large as a checkpoint may be, and is refused or taken without being held in memory. */
TEST(large_uploads_take_no_memory)
{
    steered s;
    begin(&s, open_folder());
    await_state(&s, "paused");
    int descriptor = client_connect(s.client.port);
    char *piece = sgm__alloc(1 << 20);
    CHECK_OK(piece);
    memset(piece, 'x', 1 << 20);
    char *head = sgm__format("POST /api/checkpoint/large?trainer=line HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                             "Authorization: Bearer %s\r\nContent-Type: application/octet-stream\r\n"
                             "Content-Length: %zu\r\n\r\n",
                             s.client.token, LARGE_UPLOAD);
    double before = peak_memory();
    CHECK(client_send(descriptor, head, strlen(head)));
    for (size_t sent = 0; sent < LARGE_UPLOAD; sent += 1 << 20)
        CHECK(client_send(descriptor, piece, 1 << 20));
    json_decref(s.client.answer);
    s.client.answer = web_read(&s.client, client_read(descriptor));
    CHECK_REFUSED(&s.client, 400, "'large' is no checkpoint: ");
    CHECK(peak_memory() - before < 64);
    close(descriptor);
    sgm__free(head);
    sgm__free(piece);
    end(&s);
    close_folder();
}

TEST(checkpoints_come_and_go_in_a_folder)
{
    steered s;
    begin(&s, open_folder());
    round_of_checkpoints(&s);
    command(&s, "\"command\":\"save\",\"name\":\"checkpoint\"");
    CHECK_REFUSED(&s.client, 409, "there is a checkpoint 'checkpoint' already");
    command(&s, "\"command\":\"save\",\"name\":\"checkpoint\",\"replace\":true");
    CHECK_DONE(&s.client);
    CHECK_POST_REFUSED(&s.client, "/api/checkpoint-delete", "{\"name\":\"checkpoint\"}", 409,
                       "goes on from when it is resumed");
    CHECK_POST_REFUSED(&s.client, "/api/checkpoint-delete", "{\"name\":\"checkpoint.safetensors\"}", 409,
                       "goes on from when it is resumed");
    end(&s);
    CHECK(sgm__file_exists(in_folder("five.safetensors")));
    close_folder();
}

TEST(checkpoints_come_and_go_without_a_folder)
{
    steered s;
    begin(&s, NULL);
    round_of_checkpoints(&s);
    end(&s);
}

/* --- branches --- */

#define BRANCH "\"command\":\"branch\""

TEST(a_branch_runs_side_by_side)
{
    steered s;
    begin(&s, NULL);
    await_state(&s, "paused");
    step(&s, 6);
    command(&s, "\"command\":\"save\",\"name\":\"six\"");
    CHECK_DONE(&s.client);
    step(&s, 2);
    web_posted(&s.client, "/api/command",
               "{\"command\":\"branch\",\"trainer\":\"line\",\"checkpoint\":\"six\",\"name\":\"slow\","
               "\"set\":{\"optimiser.learning_"
               "rate\":0.001,"
               "\"optimiser.schedule.kind\":\"step\"},\"paused\":true}");
    CHECK_DONE(&s.client);
    CHECK_STR(web_string(s.client.answer, "trainer"), "slow");
    CHECK_NEAR(status_of(&s, "slow", "iteration"), 6, 0);
    CHECK_NEAR(status_of(&s, "line", "iteration"), 8, 0);
    web_got(&s.client, "/api/tree?trainer=slow&identifier=optimiser.learning_rate");
    CHECK_NEAR(web_number(s.client.answer, "entries/0/value"), 0.001, 0);
    web_got(&s.client, "/api/changes?trainer=slow");
    CHECK_STR(web_string(s.client.answer, "changes/0/identifier"), "optimiser.learning_rate");
    CHECK_NEAR(web_number(s.client.answer, "changes/0/iteration"), 6, 0);
    web_posted(&s.client, "/api/command", "{\"trainer\":\"slow\",\"command\":\"resume\"}");
    CHECK_DONE(&s.client);
    await_iteration(&s, "slow", 12);
    CHECK_NEAR(status_of(&s, "line", "iteration"), 8, 0);
    web_got(&s.client, "/api/session");
    CHECK_INT(json_array_size(web_at(s.client.answer, "trainers")), 2);
    CHECK_STR(web_string(s.client.answer, "trainers/1/name"), "slow");
    CHECK_STR(web_string(s.client.answer, "trainers/1/state"), "running");
    double limit = sgm__now() + PATIENCE, first = NAN;
    while (!(first >= 6) && sgm__now() < limit) { /* its curve begins where it branched off */
        web_got(&s.client, "/api/series?trainer=slow&id=optimiser.loss&points=50");
        first = web_number(s.client.answer, "series/0/x/0");
        usleep(20000);
    }
    CHECK(first >= 6);
    end(&s);
}

TEST(a_branch_that_cannot_be_is_refused)
{
    steered s;
    begin(&s, NULL);
    await_state(&s, "paused");
    step(&s, 2);
    command(&s, "\"command\":\"save\",\"name\":\"two\"");
    static const struct refused {
        const char *body, *part;
        int code;
    } cases[] = {
        {"{" BRANCH ",\"checkpoint\":\"three\",\"name\":\"b\"}", "has no checkpoint 'three'", 404},
        {"{" BRANCH ",\"checkpoint\":\"two\"}", "'name'", 400},
        {"{" BRANCH ",\"checkpoint\":\"two\",\"name\":\"a/b\"}", "the branch cannot be named 'a/b'", 400},
        {"{" BRANCH ",\"checkpoint\":\"two\",\"name\":\"line\"}", "there is a trainer 'line' already", 400},
        {"{" BRANCH ",\"checkpoint\":\"two\",\"name\":\"b\",\"set\":[]}", "'set' must be an object", 400},
        {"{" BRANCH ",\"checkpoint\":\"two\",\"name\":\"b\",\"set\":{\"optimiser.learning_rate\":{}}}",
         "optimiser.learning_rate: expected a text, a number", 400},
        {"{" BRANCH ",\"checkpoint\":\"two\",\"name\":\"b\",\"set\":{\"optimiser.learning_rate\":\"fast\"}}",
         "optimiser.learning_rate: expected a number, got 'fast'", 400},
        {"{" BRANCH ",\"checkpoint\":\"../two\",\"name\":\"b\"}", "a checkpoint cannot be named '../two'",
         400},
        {"{" BRANCH ",\"trainer\":\"none\",\"checkpoint\":\"two\",\"name\":\"b\"}",
         "there is no trainer 'none'", 404},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        web_posted(&s.client, "/api/command", cases[i].body);
        CHECK_REFUSED(&s.client, cases[i].code, cases[i].part);
    }
    CHECK(!sgm_registry_has(sgm_env_registry(s.env), "b"));
    web_posted(&s.client, "/api/command", "{" BRANCH ",\"checkpoint\":\"two\",\"name\":\"b\"}");
    CHECK_DONE(&s.client);
    end(&s);
}

/* The branch's beginning is saved as its name, which would be in the way of a better request. */
TEST(a_branch_that_is_refused_leaves_nothing_behind)
{
    steered s;
    begin(&s, open_folder());
    await_state(&s, "paused");
    step(&s, 2);
    command(&s, BRANCH ",\"name\":\"b\",\"set\":{\"optimiser.nix\":1}");
    CHECK_REFUSED(&s.client, 404, "optimiser.nix");
    command(&s, BRANCH ",\"name\":\"b\",\"set\":{\"optimiser.learning_rate\":-1}");
    CHECK_REFUSED(&s.client, 400, "optimiser.learning_rate");
    command(&s, BRANCH ",\"name\":\"line\"");
    CHECK_REFUSED(&s.client, 400, "there is a trainer 'line' already");
    CHECK(!sgm__file_exists(in_folder("b.safetensors")) && !sgm__file_exists(in_folder("line.safetensors")));
    command(&s, BRANCH ",\"name\":\"b\",\"set\":{\"optimiser.learning_rate\":0.001}");
    CHECK_DONE(&s.client);
    CHECK(sgm__file_exists(in_folder("b.safetensors")));
    end(&s);
    close_folder();
}

/* --- askers --- */

TEST(askers_have_roles_and_names)
{
    steered s;
    begin(&s, NULL);
    await_state(&s, "paused");
    char admin[sizeof s.client.token];
    memcpy(admin, s.client.token, sizeof admin);
    CHECK_STR(web_string(web_got(&s.client, "/api/session"), "role"), "admin");
    snprintf(s.client.token, sizeof s.client.token, "%s", LOOK);
    CHECK_STR(web_string(web_got(&s.client, "/api/session"), "role"), "look");
    command(&s, "\"command\":\"status\"");
    CHECK_DONE(&s.client);
    command(&s, "\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":0.5");
    CHECK_REFUSED(&s.client, 403, "set needs the role 'steer', this is 'look'");
    web_posted(&s.client, "/api/command", "{" BRANCH ",\"checkpoint\":\"a\",\"name\":\"b\"}");
    CHECK_REFUSED(&s.client, 403, "branch needs the role 'steer', this is 'look'");
    snprintf(s.client.token, sizeof s.client.token, "%s", STEER);
    command(&s, "\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":0.5,"
                "\"dry_run\":true");
    CHECK_DONE(&s.client);
    CHECK_INT(json_array_size(json_object_get(s.client.answer, "would_change")), 1);
    CHECK_INT(json_array_size(json_object_get(web_got(&s.client, "/api/changes"), "changes")), 0);
    command(&s, "\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":0.5,"
                "\"reason\":\"faster\"");
    CHECK_DONE(&s.client);
    const json_t *change = json_array_get(json_object_get(web_got(&s.client, "/api/changes"), "changes"), 0);
    CHECK_STR(web_string(change, "who"), "monitor:anna");
    CHECK_STR(web_string(change, "reason"), "faster");
    command(&s, "\"command\":\"undo\",\"by\":\"mcp:claude\""); /* the token's name stays */
    CHECK_DONE(&s.client);
    change = json_array_get(json_object_get(web_got(&s.client, "/api/changes"), "changes"), 1);
    CHECK_STR(web_string(change, "who"), "monitor:anna:mcp:claude");
    command(&s, "\"command\":\"save\",\"name\":\"here\"");
    CHECK_DONE(&s.client);
    command(&s, "\"command\":\"save\",\"name\":\"here\",\"replace\":true");
    CHECK_REFUSED(&s.client, 403, "replacing a checkpoint needs the role 'admin', this is 'steer'");
    web_posted(&s.client, "/api/command",
               "{" BRANCH ",\"checkpoint\":\"here\",\"name\":\"b\",\"dry_run\":true}");
    CHECK_STR(web_string(s.client.answer, "would_change/0/identifier"), "branch b");
    CHECK(!sgm_registry_has(sgm_env_registry(s.env), "b"));
    web_posted(&s.client, "/api/checkpoint-delete", "{\"name\":\"here\"}");
    CHECK_REFUSED(&s.client, 403, "/api/checkpoint-delete needs the role 'admin', this is 'steer'");
    memcpy(s.client.token, admin, sizeof admin);
    web_posted(&s.client, "/api/checkpoint-delete", "{\"name\":\"here\",\"role\":\"steer\"}");
    CHECK_REFUSED(&s.client, 403, "/api/checkpoint-delete needs the role 'admin', this is 'steer'");
    web_posted(&s.client, "/api/checkpoint-delete", "{\"name\":\"here\",\"reason\":\"not needed\"}");
    CHECK_DONE(&s.client);
    end(&s);
}

TEST(commands_of_a_token_are_limited)
{
    steered s = {.env = sgm_env_create("steered", .handler = "reference", .seed = 5)};
    s.trainer = line_trainer(s.env, "line");
    CHECK_OK(s.trainer);
    sgm_monitor *monitor = sgm_web_monitor(.quiet = true, .changes_per_second = 0.1);
    CHECK_OK(sgm_env_add_monitor(s.env, monitor));
    CHECK_OK(sgm_env_run_background(s.env, .epochs = 100000000, .paused = true));
    s.client = web_client_of(sgm_web_monitor_url(monitor));
    await_state(&s, "paused");
    for (int i = 0; i < 20; i++) {
        command(&s, "\"command\":\"pause\"");
        CHECK_DONE(&s.client);
    }
    command(&s, "\"command\":\"pause\"");
    CHECK_REFUSED(&s.client, 429, "too many changes: at most 20 at once and 0.1 a second; wait ");
    command(&s, "\"command\":\"status\"");
    CHECK_DONE(&s.client);
    end(&s);
}

TEST(branches_and_files_follow_roles_and_approval)
{
    steered s = {.env = sgm_env_create("steered", .handler = "reference", .seed = 5)};
    s.trainer = line_trainer(s.env, "line");
    CHECK_OK(s.trainer);
    CHECK_OK(sgm_trainer_require_approval(s.trainer, "optimiser.*"));
    sgm_monitor *monitor = sgm_web_monitor(.quiet = true, .tokens = "steer " STEER " anna");
    CHECK_OK(sgm_env_add_monitor(s.env, monitor));
    CHECK_OK(sgm_env_run_background(s.env, .epochs = 100000000, .paused = true));
    s.client = web_client_of(sgm_web_monitor_url(monitor));
    await_state(&s, "paused");
    char admin[sizeof s.client.token];
    memcpy(admin, s.client.token, sizeof admin);
    command(&s, "\"command\":\"save\",\"name\":\"here\"");
    CHECK_DONE(&s.client);
    command(&s, "\"command\":\"save\",\"name\":\"origin\"");
    CHECK_REFUSED(&s.client, 400, "'origin' is the state that a branch began with");
    send_bytes(&s, "/api/checkpoint/more?trainer=line&dry_run=true", "application/octet-stream", "x", 1);
    CHECK_REFUSED(&s.client, 400, "/api/checkpoint/ cannot be tried");
    send_bytes(&s, "/api/checkpoint/more?trainer=line&role=steer", "application/octet-stream", "x", 1);
    CHECK_REFUSED(&s.client, 403, "/api/checkpoint/ needs the role 'admin', this is 'steer'");
    web_posted(&s.client, "/api/finish", "{\"dry_run\":true}");
    CHECK_REFUSED(&s.client, 400, "/api/finish cannot be tried");
    web_posted(&s.client, "/api/task-cancel", "{\"task\":1,\"role\":\"look\"}");
    CHECK_REFUSED(&s.client, 403, "/api/task-cancel needs the role 'steer', this is 'look'");

    snprintf(s.client.token, sizeof s.client.token, "%s", STEER);
    const char *fast =
        "{" BRANCH ",\"trainer\":\"line\",\"checkpoint\":\"here\",\"name\":\"fast\",\"paused\":true,"
        "\"set\":{\"optimiser.learning_rate\":0.5}}";
    web_posted(&s.client, "/api/command", fast);
    CHECK_INT(s.client.code, 202);
    CHECK_NEAR(web_number(s.client.answer, "pending"), 1, 0);
    CHECK(!sgm_registry_has(sgm_env_registry(s.env), "fast"));
    web_posted(&s.client, "/api/command",
               "{" BRANCH ",\"trainer\":\"line\",\"checkpoint\":\"here\",\"name\":\"same\",\"paused\":true}");
    CHECK_DONE(&s.client); /* and what is protected is protected in the branch, too */
    web_posted(&s.client, "/api/command",
               "{\"trainer\":\"same\",\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\","
               "\"value\":0.5}");
    CHECK_INT(s.client.code, 202);
    memcpy(s.client.token, admin, sizeof admin);
    web_posted(&s.client, "/api/command",
               "{\"trainer\":\"line\",\"command\":\"approve\",\"number\":1,\"reason\":\"try it\"}");
    CHECK_DONE(&s.client);
    CHECK_STR(web_string(s.client.answer, "trainer"), "fast");
    web_got(&s.client, "/api/tree?trainer=fast&identifier=optimiser.learning_rate");
    CHECK_NEAR(web_number(s.client.answer, "entries/0/value"), 0.5, 0);
    web_got(&s.client, "/api/changes?trainer=fast");
    CHECK_STR(web_string(s.client.answer, "changes/0/who"), "monitor:anna");
    CHECK_STR(web_string(s.client.answer, "changes/0/reason"), "approved by monitor: try it");
    end(&s);
}
