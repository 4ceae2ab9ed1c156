/* The control socket: what it answers, and what cannot disturb the run. */
#include "waves.h"

#include "trainer/trainer_lock.h"

#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

typedef struct running {
    wave_trainer made;
    char folder[256], socket[300];
    pthread_t thread;
    sgm_status status;
} running;

static void *run_for_long(void *user)
{
    running *r = user;
    sgm_run_options options = {
        .struct_size = sizeof options, .epochs = 1000000000, .folder = r->folder, .checkpoint_every = -1};
    r->status = sgm_trainer_run_with(r->made.trainer, &options);
    return NULL;
}

static void begin(running *r)
{
    *r = (running){.folder = "/tmp/sigma-test-XXXXXX"};
    CHECK(mkdtemp(r->folder) != NULL);
    snprintf(r->socket, sizeof r->socket, "%s/control.sock", r->folder);
    r->made = make_wave_trainer((wave_options){0});
    CHECK_INT(pthread_create(&r->thread, NULL, run_for_long, r), 0);
    for (int i = 0; i < 5000 && !sgm__file_exists(r->socket); i++)
        usleep(1000);
    CHECK(sgm__file_exists(r->socket));
}

static void end(running *r)
{
    char command[400];
    pthread_join(r->thread, NULL);
    CHECK_INT(r->status, SGM_OK);
    CHECK(!sgm__file_exists(r->socket));
    free_wave_trainer(r->made);
    snprintf(command, sizeof command, "rm -r '%s'", r->folder);
    CHECK_INT(system(command), 0);
}

/* The socket has its name a moment before it listens. */
static int dial(const running *r)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = 20};
    snprintf(address.sun_path, sizeof address.sun_path, "%.100s", r->socket);
    int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    for (int i = 0; i < 1000; i++) {
        if (connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0)
            return descriptor;
        usleep(1000);
    }
    TEST_FAIL("cannot connect to %s", r->socket);
    return -1;
}

static void say(int descriptor, const char *text)
{
    CHECK_INT(send(descriptor, text, strlen(text), MSG_NOSIGNAL), (int)strlen(text));
}

static char answer_text[65536];

/* The next line, "" at the end. */
static const char *hear(int descriptor)
{
    size_t length = 0;
    while (length + 1 < sizeof answer_text && recv(descriptor, answer_text + length, 1, 0) == 1 &&
           answer_text[length] != '\n')
        length++;
    answer_text[length] = '\0';
    return answer_text;
}

static const char *ask(const running *r, const char *line)
{
    int descriptor = dial(r);
    say(descriptor, line);
    say(descriptor, "\n");
    hear(descriptor);
    close(descriptor);
    return answer_text;
}

#define CHECK_ANSWER(r, line, part)                                                                          \
    do {                                                                                                     \
        if (strstr(ask(r, line), part) == NULL)                                                              \
            TEST_FAIL("%s gives %.500s, expected %s in it", line, answer_text, part);                        \
    } while (0)

static void stop(running *r)
{
    CHECK_STR(ask(r, "{\"command\":\"stop\"}"), "{\"ok\":true}");
    end(r);
}

static long long number_in(const char *text, const char *key)
{
    const char *place = strstr(text, key);
    return place != NULL ? strtoll(place + strlen(key), NULL, 10) : -1;
}

static long long iteration_of(const running *r)
{
    return number_in(ask(r, "{\"command\":\"status\"}"), "\"iteration\":");
}

static void wait_until_paused(const running *r)
{
    for (int i = 0; i < 5000; i++) {
        if (strstr(ask(r, "{\"command\":\"status\"}"), "\"state\":\"paused\"") != NULL)
            return;
        usleep(1000);
    }
    TEST_FAIL("never paused: %s", answer_text);
}

TEST(only_the_owner_may_use_it)
{
    running r;
    struct stat about;
    begin(&r);
    CHECK_INT(stat(r.socket, &about), 0);
    CHECK(S_ISSOCK(about.st_mode));
    CHECK_INT(about.st_mode & 07777, 0600);
    stop(&r);
}

TEST(pauses_steps_resumes_and_stops)
{
    running r;
    begin(&r);
    CHECK_ANSWER(&r, "{\"command\":\"status\"}", "{\"ok\":true,\"trainer\":\"waves\",\"state\":\"running\"");
    CHECK_ANSWER(&r, "{\"command\":\"pause\"}", "{\"ok\":true}");
    wait_until_paused(&r);
    long long before = iteration_of(&r);
    usleep(20000);
    CHECK_INT(iteration_of(&r), before);
    CHECK_ANSWER(&r, "{\"command\":\"step\",\"iterations\":3}", "{\"ok\":true}");
    for (int i = 0; i < 5000 && iteration_of(&r) < before + 3; i++)
        usleep(1000);
    wait_until_paused(&r);
    CHECK_INT(iteration_of(&r), before + 3);
    CHECK_ANSWER(&r, "{\"command\":\"step\",\"iterations\":0}", "at least 1 iteration, not 0");
    CHECK_ANSWER(&r, "{\"command\":\"step\",\"iterations\":\"many\"}", "got 'many'");
    CHECK_ANSWER(&r, "{\"command\":\"resume\"}", "{\"ok\":true}");
    for (int i = 0; i < 5000 && iteration_of(&r) < before + 10; i++)
        usleep(1000);
    CHECK(iteration_of(&r) >= before + 10);
    CHECK_ANSWER(&r, "{\"command\":\"stop\",\"reason\":\"seen enough\"}", "{\"ok\":true}");
    end(&r);
}

TEST(reads_and_sets_values)
{
    running r;
    char path[300], *text;
    size_t length;
    begin(&r);
    CHECK_ANSWER(&r, "{\"command\":\"get\",\"identifier\":\"optimiser.momentum\"}",
                 "\"values\":[{\"identifier\":\"optimiser.momentum\",\"kind\":\"number\",\"value\":0.9");
    CHECK_ANSWER(&r, "{\"command\":\"get\",\"identifier\":\"network.layers.*<dense>.weights\"}",
                 "\"identifier\":\"network.layers.2-dense.weights\",\"kind\":\"tensor\",\"value\":null,"
                 "\"text\":\"float32 (8, 5), ");
    CHECK_ANSWER(&r, "{\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":\"0.25\"}",
                 "\"value\":0.25,\"text\":\"0.25\"");
    CHECK_ANSWER(&r, "{\"command\":\"set\",\"identifier\":\"optimiser.momentum\",\"value\":0.5}",
                 "{\"ok\":true,");
    CHECK_ANSWER(&r, "{\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":\"much\"}",
                 "{\"ok\":false,\"error\":\"optimiser.learning_rate: expected a number, got 'much'\"}");
    CHECK_ANSWER(&r, "{\"command\":\"set\",\"identifier\":\"optimiser.momentum\",\"value\":1.5}",
                 "optimiser.momentum: expected a number from 0 to");
    CHECK_ANSWER(&r, "{\"command\":\"set\",\"identifier\":\"epoch\",\"value\":3}", "{\"ok\":false,");
    CHECK_ANSWER(&r, "{\"command\":\"set\",\"identifier\":\"optimiser.rate\",\"value\":3}", "optimiser.rate");
    CHECK_ANSWER(&r, "{\"command\":\"get\",\"identifier\":\"epoc\"}", "epoch");
    CHECK_ANSWER(&r, "{\"command\":\"list\",\"identifier\":\"optimiser.learning_rate\"}",
                 "\"entries\":[{\"identifier\":\"optimiser.learning_rate\",\"kind\":\"number\","
                 "\"settable\":true,\"minimum\":0.0,\"maximum\":1e30");
    CHECK_ANSWER(&r, "{\"command\":\"list\",\"identifier\":\"optimiser\"}", "\"optimiser.beta1\"");
    CHECK_ANSWER(&r, "{\"command\":\"list\"}", "\"network.layers.3-dense.biases\"");
    CHECK(strstr(answer_text, "{\"identifier\":\"epoch\",\"kind\":\"integer\",\"settable\":false") != NULL);
    CHECK_ANSWER(&r, "{\"command\":\"set\",\"identifier\":\"data.batch\",\"value\":3}",
                 "is iterator.minibatch_size of");
    CHECK_ANSWER(&r, "{\"command\":\"list\"}", "\"network.layers.3-dense.biases\"");
    CHECK(strstr(answer_text, "3-dense.biases\",\"kind\":\"tensor\",\"settable\":true") != NULL);
    CHECK_ANSWER(&r, "{\"command\":\"get\",\"identifier\":\"network.layers.3-dense.biases\"}", ", mean ");
    snprintf(path, sizeof path, "%s/log.txt", r.folder);
    CHECK_OK(sgm__file_read(path, 65536, &text, &length));
    CHECK(strstr(text, "ctl: set optimiser.learning_rate 0.25, after epoch ") != NULL);
    sgm__free(text);
    snprintf(path, sizeof path, "%s/journal.jsonl", r.folder);
    CHECK_OK(sgm__file_read(path, 65536, &text, &length));
    CHECK(strstr(text, "\"who\":\"ctl\",\"what\":\"optimiser.learning_rate\",\"old\":0.1") != NULL);
    CHECK(strstr(text, "\"new\":0.25") != NULL);
    sgm__free(text);
    stop(&r);
}

TEST(saves_between_steps)
{
    running r;
    char path[300];
    begin(&r);
    CHECK_ANSWER(&r, "{\"command\":\"save\",\"name\":\"now\"}", "{\"ok\":true,\"file\":\"now.safetensors\"}");
    snprintf(path, sizeof path, "%s/now.safetensors", r.folder);
    CHECK(sgm__file_exists(path));
    wave_trainer other = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_load(other.trainer, path));
    free_wave_trainer(other);
    CHECK_ANSWER(&r, "{\"command\":\"save\",\"name\":\"../now\"}", "cannot be named '../now'");
    CHECK_ANSWER(&r, "{\"command\":\"save\",\"name\":\"now\"}", "there is a checkpoint 'now' already");
    CHECK_ANSWER(&r, "{\"command\":\"save\",\"name\":\"now\",\"replace\":\"yes\"}",
                 "expected 'replace' behind the name, got 'yes'");
    CHECK_ANSWER(&r, "{\"command\":\"save\",\"name\":\"now\",\"replace\":true}", "{\"ok\":true");
    stop(&r);
}

TEST(a_save_without_a_name_is_called_after_its_iteration)
{
    running r;
    begin(&r);
    CHECK_ANSWER(&r, "{\"command\":\"pause\"}", "{\"ok\":true}");
    wait_until_paused(&r);
    CHECK_ANSWER(&r, "{\"command\":\"save\"}", "{\"ok\":true,\"file\":\"iteration-");
    CHECK_ANSWER(&r, "{\"command\":\"save\"}", "-2.safetensors\"}");
    CHECK_ANSWER(&r, "{\"command\":\"save\"}", "-3.safetensors\"}");
    stop(&r);
}

TEST(what_is_no_command_is_told)
{
    running r;
    begin(&r);
    CHECK_ANSWER(&r, "", "{\"ok\":false,\"error\":\"expected a JSON object");
    CHECK_ANSWER(&r, "pause", "expected a JSON object");
    CHECK_ANSWER(&r, "[1, 2]", "expected a JSON object");
    CHECK_ANSWER(&r, "{\"command\":\"pause\"", "expected a JSON object");
    CHECK_ANSWER(&r, "\xff\xfe\x01{}{}{}", "expected a JSON object");
    CHECK_ANSWER(&r, "{}", "there is no command");
    CHECK_ANSWER(&r, "{\"command\":7}", "there is no command");
    CHECK_ANSWER(&r, "{\"command\":\"puase\"}", "did you mean 'pause'?");
    CHECK_ANSWER(&r, "{\"command\":\"restore\"}", "restore needs the field 'name'");
    CHECK_ANSWER(&r, "{\"command\":\"save\",\"name\":[1]}", "'name' must be a text");
    CHECK_ANSWER(&r, "{\"command\":\"pause\",\"name\":\"a\"}", "pause has no field 'name'");
    CHECK_ANSWER(&r, "{\"command\":\"step\",\"count\":3}", "step has no field 'count'; there is iterations");
    /* A message that is cut in the middle of a character is an answer nevertheless. */
    char line[600] = "{\"command\":\"a";
    for (int i = 0; i < 100; i++)
        strcat(line, "\xc3\xa4");
    strcat(line, "\"}");
    CHECK_ANSWER(&r, line, "{\"ok\":false,\"error\":\"unknown command 'a\xc3\xa4\xc3\xa4");
    stop(&r);
}

TEST(several_lines_and_parts_of_lines)
{
    running r;
    begin(&r);
    int descriptor = dial(&r);
    say(descriptor, "{\"command\":\"get\",\"identifier\":\"optimiser.momentum\"}\n{\"comm");
    CHECK(strstr(hear(descriptor), "0.9") != NULL);
    usleep(10000);
    say(descriptor, "and\":\"statu\"}\n\n");
    CHECK(strstr(hear(descriptor), "did you mean 'status'?") != NULL);
    CHECK(strstr(hear(descriptor), "expected a JSON object") != NULL);
    close(descriptor);
    stop(&r);
}

TEST(a_line_that_is_too_long_ends_the_connection)
{
    running r;
    begin(&r);
    int descriptor = dial(&r);
    char part[1024];
    memset(part, ' ', sizeof part);
    for (int i = 0; i < 64; i++)
        if (send(descriptor, part, sizeof part, MSG_NOSIGNAL) < 0)
            break;
    CHECK_STR(hear(descriptor), "{\"ok\":false,\"error\":\"a command has at most 16384 bytes\"}");
    CHECK_STR(hear(descriptor), "");
    close(descriptor);
    stop(&r);
}

/* More silent clients than there are places, and one that never reads its answers. */
TEST(silent_clients_delay_nobody)
{
    running r;
    int silent[40];
    begin(&r);
    for (int i = 0; i < 20; i++)
        silent[i] = dial(&r);
    int deaf = dial(&r);
    for (int i = 0; i < 2000; i++)
        if (send(deaf, "{\"command\":\"list\"}\n", 19, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
            break;
    long long before = iteration_of(&r);
    for (int i = 20; i < 40; i++)
        silent[i] = dial(&r);
    for (int i = 0; i < 5000 && iteration_of(&r) < before + 100; i++)
        usleep(1000);
    CHECK(iteration_of(&r) >= before + 100);
    CHECK_ANSWER(&r, "{\"command\":\"pause\"}", "{\"ok\":true}");
    wait_until_paused(&r);
    stop(&r);
    for (int i = 0; i < 40; i++)
        close(silent[i]);
    close(deaf);
}

TEST(runs_in_different_folders_have_their_own)
{
    running a, b;
    begin(&a);
    begin(&b);
    CHECK_ANSWER(&a, "{\"command\":\"pause\"}", "{\"ok\":true}");
    wait_until_paused(&a);
    CHECK_ANSWER(&b, "{\"command\":\"set\",\"identifier\":\"optimiser.momentum\",\"value\":\"0.25\"}",
                 "\"value\":0.25");
    CHECK_ANSWER(&a, "{\"command\":\"get\",\"identifier\":\"optimiser.momentum\"}", "\"value\":0.9");
    CHECK_ANSWER(&b, "{\"command\":\"status\"}", "\"state\":\"running\"");
    stop(&a);
    stop(&b);
}

TEST(what_a_dead_run_left_is_replaced)
{
    running r = {.folder = "/tmp/sigma-test-XXXXXX"};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    CHECK(mkdtemp(r.folder) != NULL);
    snprintf(r.socket, sizeof r.socket, "%s/control.sock", r.folder);
    snprintf(address.sun_path, sizeof address.sun_path, "%.100s", r.socket);
    int stale = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_INT(bind(stale, (struct sockaddr *)&address, sizeof address), 0);
    close(stale);
    r.made = make_wave_trainer((wave_options){0});
    CHECK_INT(pthread_create(&r.thread, NULL, run_for_long, &r), 0);
    CHECK_ANSWER(&r, "{\"command\":\"status\"}", "\"state\":\"running\"");
    stop(&r);
}

/* --- runs that go on without --- */

static char logged[2048];

static void keep_log(void *user, sgm_log_level level, const char *component, const char *message)
{
    (void)user;
    (void)level;
    snprintf(logged, sizeof logged, "%s: %s", component, message);
}

TEST(a_path_that_is_too_long_is_a_warning)
{
    char base[64] = "/tmp/sigma-test-XXXXXX", folder[300], command[400];
    CHECK(mkdtemp(base) != NULL);
    snprintf(folder, sizeof folder, "%s/%0120d", base, 0);
    wave_trainer made = make_wave_trainer((wave_options){0});
    sgm_set_logger(keep_log, NULL, SGM_LOG_WARNING);
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 2, .folder = folder));
    sgm_set_logger(NULL, NULL, SGM_LOG_WARNING);
    CHECK(strstr(logged, "waves: the run takes no commands from other processes: the path") != NULL);
    free_wave_trainer(made);
    snprintf(command, sizeof command, "rm -r '%s'", base);
    CHECK_INT(system(command), 0);
}

TEST(a_file_of_that_name_stays)
{
    char folder[64] = "/tmp/sigma-test-XXXXXX", path[128], command[128];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/control.sock", folder);
    CHECK_OK(sgm__file_write_atomic(path, "mine", 4));
    wave_trainer made = make_wave_trainer((wave_options){0});
    sgm_set_logger(keep_log, NULL, SGM_LOG_WARNING);
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 2, .folder = folder));
    sgm_set_logger(NULL, NULL, SGM_LOG_WARNING);
    CHECK(strstr(logged, "is there already, and is no socket") != NULL);
    CHECK(sgm__file_exists(path));
    free_wave_trainer(made);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    CHECK_INT(system(command), 0);
}

/* --- a run that does not let anybody look --- */

static atomic_bool holds, held;

static sgm_status hold(void *self, sgm_hook_call *call)
{
    (void)self, (void)call;
    while (atomic_load(&holds)) {
        atomic_store(&held, true);
        usleep(1000);
    }
    atomic_store(&held, false);
    return SGM_OK;
}

static const sgm_hook_type holder = {.api = SGM_HOOK_API, .name = "holder", .invoke = hold};

/* From here on its thread is in a hook. */
static void hold_up(running *r)
{
    static int self;
    atomic_store(&holds, true);
    CHECK_OK(sgm_trainer_add_hook(r->made.trainer,
                                  sgm_hook_create(&holder, &self, .when = sgm_every(1, SGM_ITERATION))));
    for (int i = 0; i < 10000 && !atomic_load(&held); i++)
        usleep(1000);
    CHECK(atomic_load(&held));
}

static void let_go(void)
{
    atomic_store(&holds, false);
}

#define RATE "{\"command\":\"get\",\"identifier\":\"optimiser.learning_rate\""

/* As log.txt of the run has it. */
static void wait_for_log(const running *r, const char *part)
{
    char path[320], *text;
    size_t length;
    snprintf(path, sizeof path, "%s/log.txt", r->folder);
    for (int i = 0; i < 5000; i++) {
        CHECK_OK(sgm__file_read(path, 1 << 24, &text, &length));
        bool there = strstr(text, part) != NULL;
        sgm__free(text);
        if (there)
            return;
        usleep(1000);
    }
    TEST_FAIL("log.txt does not come to have '%s'", part);
}

TEST(a_busy_run_answers_in_time_and_does_nothing_later)
{
    static const char set[] =
        "{\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":0.75,"
        "\"within\":0.2}";
    running r;
    begin(&r);
    hold_up(&r);
    CHECK_ANSWER(&r, set, "\"ok\":false");
    CHECK(strstr(answer_text, "'waves' has not let anybody look for 0.2") != NULL);
    CHECK(strstr(answer_text, "seconds: it is running hooks after epoch ") != NULL);
    CHECK(strstr(answer_text, "; nothing was done, so ask again, or wait for longer") != NULL);
    CHECK_ANSWER(&r, RATE ",\"within\":0.2}", "it is running hooks after epoch ");
    CHECK_ANSWER(&r, "{\"command\":\"list\",\"identifier\":\"optimiser\",\"within\":0.1}",
                 "nothing was done");
    CHECK_ANSWER(&r, "{\"command\":\"restore\",\"name\":\"checkpoint\",\"within\":0.1}", "\"ok\":false");
    CHECK_ANSWER(&r, "{\"command\":\"reset\",\"within\":0.1}", "nothing was done");
    CHECK_ANSWER(&r, "{\"command\":\"get\",\"identifier\":\"optimiser.*\",\"within\":0.1}", /* all or none */
                 "nothing was done");
    CHECK_ANSWER(&r, "{\"command\":\"undo\",\"within\":0.1}", "nothing was done");
    CHECK_ANSWER(&r, "{\"command\":\"save\",\"within\":0.1}", "nothing was done");
    CHECK_ANSWER(&r, "{\"command\":\"save\",\"within\":0}", "'within' must be a number of seconds");
    let_go();
    CHECK_ANSWER(&r, RATE "}", "\"value\":0.1,");
    stop(&r);
}

/* Others hear meanwhile how things are, and may pause and stop. */
TEST(status_needs_no_step_to_end)
{
    running r;
    begin(&r);
    hold_up(&r);
    int waits = dial(&r);
    say(waits, RATE "}\n");
    CHECK_ANSWER(&r, "{\"command\":\"status\"}", "{\"ok\":true,\"trainer\":\"waves\",\"state\":\"running\",");
    CHECK(strstr(answer_text, "\"busy\":\"running hooks\"") != NULL);
    CHECK(number_in(answer_text, "\"iteration\":") >= 0);
    CHECK(strstr(answer_text, "\"loss\"") == NULL); /* that would need the lock */
    CHECK_ANSWER(&r, "{\"command\":\"pause\"}", "{\"ok\":true}");
    CHECK_ANSWER(&r, "{\"command\":\"hooks\"}", "holder#1");
    let_go();
    CHECK(strstr(hear(waits), "\"value\":0.1,") != NULL);
    close(waits);
    wait_until_paused(&r);
    CHECK(strstr(answer_text, "\"busy\"") == NULL);
    stop(&r);
}

/* Its hooks have run: whoever holds the trainer meanwhile is not they. */
TEST(a_pause_that_is_held_up_is_called_a_pause)
{
    running r;
    begin(&r);
    CHECK_ANSWER(&r, "{\"command\":\"pause\"}", "{\"ok\":true}");
    wait_until_paused(&r);
    sgm__trainer_lock(r.made.trainer);
    CHECK_ANSWER(&r, "{\"command\":\"status\"}", "\"state\":\"paused\"");
    CHECK(strstr(answer_text, "\"busy\":\"paused\"") != NULL);
    CHECK_ANSWER(&r, RATE ",\"within\":0.1}", "seconds: it is paused after epoch ");
    sgm__trainer_unlock(r.made.trainer);
    stop(&r);
}

TEST(who_has_left_changes_nothing)
{
    running r;
    begin(&r);
    hold_up(&r);
    int leaves = dial(&r);
    say(leaves, "{\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":0.75}\n");
    usleep(50000);
    close(leaves);
    wait_for_log(&r, "ctl: set optimiser.learning_rate 0.75 was not done: who asked has left");
    leaves = dial(&r); /* gone before anybody has read it */
    say(leaves, "{\"command\":\"attach\",\"hook\":\"every 2 epochs save(late)\"}\n");
    close(leaves);
    wait_for_log(&r, "ctl: attach every 2 epochs save(late) was not done: who asked has left");
    let_go();
    CHECK_ANSWER(&r, RATE "}", "\"value\":0.1,");
    CHECK_ANSWER(&r, "{\"command\":\"hooks\"}", "holder#1");
    CHECK(strstr(answer_text, "save") == NULL);
    stop(&r);
}

TEST(a_run_that_ends_says_so_to_those_who_wait)
{
    running r;
    begin(&r);
    hold_up(&r);
    int waits = dial(&r);
    say(waits, RATE "}\n");
    CHECK_STR(ask(&r, "{\"command\":\"stop\"}"), "{\"ok\":true}");
    let_go();
    const char *answer = hear(waits); /* it came in time, or not */
    CHECK(strstr(answer, "\"value\":0.1,") != NULL || strstr(answer, "the run has just ended") != NULL);
    close(waits);
    end(&r);
}

TEST(a_pause_names_the_rule_that_wanted_it)
{
    running r;
    begin(&r);
    CHECK_ANSWER(&r, "{\"command\":\"attach\",\"hook\":\"if training.loss > 0 then pause\"}", "rule#1");
    wait_until_paused(&r);
    CHECK(strstr(answer_text, "\"paused_by\":\"rule (if training.loss > 0 then pause)\"") != NULL);
    wait_for_log(&r, "paused by rule (if training.loss > 0 then pause) after epoch ");
    CHECK_ANSWER(&r, "{\"command\":\"detach\",\"name\":\"rule\"}", "{\"ok\":true}");
    CHECK_ANSWER(&r, "{\"command\":\"step\",\"iterations\":2}", "{\"ok\":true}");
    wait_until_paused(&r);
    CHECK(strstr(answer_text, "paused_by") == NULL);
    stop(&r);
}
