/* Events as lines of JSON: their order, their keys, and what cannot be written. */
#include "base/folder.h"
#include "environment/environment_test.h"

#include "base/base.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAXIMUM_LINES 200

static json_t *lines[MAXIMUM_LINES];
static size_t line_count;

/* All lines of a file, which must end in a line's end. */
static void read_lines(const char *path)
{
    char *text = NULL;
    size_t length = 0;
    CHECK_OK(sgm__file_read(path, 1 << 20, &text, &length));
    CHECK(length > 0 && text[length - 1] == '\n');
    line_count = 0;
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        CHECK(line_count < MAXIMUM_LINES);
        lines[line_count] = json_loads(line, 0, NULL);
        if (!json_is_object(lines[line_count]))
            TEST_FAIL("no object: %s", line);
        line_count++;
    }
    sgm__free(text);
}

static void forget_lines(void)
{
    for (size_t i = 0; i < line_count; i++)
        json_decref(lines[i]);
    line_count = 0;
}

static const char *text_at(size_t line, const char *key)
{
    const char *text = line < line_count ? json_string_value(json_object_get(lines[line], key)) : NULL;
    return text != NULL ? text : "(none)";
}

static double number_at(size_t line, const char *key)
{
    const json_t *value = line < line_count ? json_object_get(lines[line], key) : NULL;
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

/* "start epoch epoch stop " */
static const char *events(void)
{
    static char all[4096];
    all[0] = '\0';
    for (size_t i = 0; i < line_count; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s ", text_at(i, "event"));
    return all;
}

static sgm_env *watched_env(const char *path, sgm_trainer **trainer, int64_t every)
{
    sgm_env *env = sgm_env_create("e", .handler = "reference", .seed = 7);
    *trainer = line_trainer(env, "line");
    sgm_dataset *data = line_dataset();
    CHECK_OK(sgm_trainer_add_data(*trainer, "check", sgm_by_block(data)));
    sgm_dataset_free(data);
    CHECK_OK(sgm_env_add_monitor(env, sgm_json_lines_monitor(.path = path, .every_iterations = every)));
    return env;
}

TEST(a_line_for_each_event)
{
    open_folder();
    const char *path = in_folder("events.jsonl");
    sgm_trainer *trainer;
    sgm_env *env = watched_env(path, &trainer, 0);
    CHECK_OK(sgm_env_run(env, .epochs = 2));
    read_lines(path); /* each is there at once */
    CHECK_STR(events(), "start epoch epoch stop ");
    CHECK_STR(text_at(0, "trainer"), "line");
    CHECK_STR(text_at(0, "environment"), "e");
    CHECK_STR(text_at(0, "handler"), "reference");
    CHECK_STR(text_at(0, "precision"), "float32");
    CHECK_NEAR(number_at(0, "seed"), 7, 0);
    CHECK_NEAR(number_at(0, "epochs"), 2, 0);
    CHECK(number_at(0, "time") > 1.7e9);
    CHECK_NEAR(number_at(1, "iteration"), 4, 0);
    CHECK_NEAR(number_at(2, "iteration"), 8, 0);
    CHECK_NEAR(number_at(2, "epoch"), 2, 0);
    CHECK_NEAR(number_at(2, "examples"), 40, 0);
    CHECK_NEAR(number_at(2, "learning_rate"), 0.1, 1e-6);
    CHECK(number_at(2, "loss") < number_at(1, "loss"));
    CHECK(json_is_null(json_object_get(lines[2], "accuracy"))); /* means nothing here */
    json_t *check = json_object_get(json_object_get(lines[2], "validation"), "check");
    CHECK_NEAR(json_number_value(json_object_get(check, "examples")), 40, 0);
    CHECK(json_number_value(json_object_get(check, "loss")) > 0);
    CHECK(json_is_false(json_object_get(lines[3], "interrupted")));
    CHECK(json_is_null(json_object_get(lines[3], "reason")));
    forget_lines();
    sgm_env_free(env);
    close_folder();
}

TEST(iterations_when_they_are_asked_for)
{
    open_folder();
    const char *path = in_folder("events.jsonl");
    sgm_trainer *trainer;
    sgm_env *env = watched_env(path, &trainer, 3);
    CHECK_OK(sgm_env_run(env, .epochs = 2));
    sgm_env_free(env);
    read_lines(path);
    CHECK_STR(events(), "start iteration epoch iteration epoch stop ");
    CHECK_NEAR(number_at(1, "iteration"), 3, 0);
    CHECK_NEAR(number_at(1, "batch"), 3, 0);
    CHECK_NEAR(number_at(1, "examples"), 30, 0);
    CHECK_NEAR(number_at(3, "iteration"), 6, 0);
    forget_lines();
    close_folder();
}

TEST(lines_are_added_and_a_stop_says_why)
{
    open_folder();
    const char *path = in_folder("events.jsonl");
    sgm_trainer *trainer;
    sgm_env *env = watched_env(path, &trainer, 0);
    CHECK_OK(sgm_env_run(env, .epochs = 1));
    sgm_env_free(env);
    env = watched_env(path, &trainer, 0);
    CHECK_OK(sgm_env_run_background(env, .epochs = 1000, .paused = true));
    while (sgm_trainer_get_state(trainer) != SGM_TRAINER_PAUSED)
        usleep(1000);
    CHECK_OK(sgm_registry_resolve_set(sgm_trainer_registry(trainer), "optimiser.learning_rate",
                                      sgm_number_content(0.05), NULL, NULL));
    CHECK_OK(sgm_trainer_stop(trainer, "a \"whim\"\n"));
    CHECK_OK(sgm_env_wait(env));
    sgm_env_free(env);
    read_lines(path);
    CHECK(strstr(events(), "start epoch stop start pause change ") != NULL);
    CHECK_STR(text_at(5, "identifier"), "optimiser.learning_rate");
    CHECK_STR(text_at(5, "who"), "program");
    CHECK_NEAR(number_at(5, "before"), 0.1, 1e-6);
    CHECK_NEAR(number_at(5, "after"), 0.05, 1e-6);
    CHECK_STR(text_at(line_count - 1, "event"), "stop");
    CHECK_STR(text_at(line_count - 1, "reason"), "a \"whim\"\n");
    forget_lines();
    close_folder();
}

/* The state is that of a pause also while a step that was commanded in it runs, so pauses are counted. */
static bool count_pauses(void *user, const sgm_training_progress *progress)
{
    if (progress->kind == SGM_PROGRESS_PAUSE)
        atomic_fetch_add((atomic_int *)user, 1);
    return true;
}

static void wait_for_pause(atomic_int *pauses, int wanted)
{
    while (atomic_load(pauses) < wanted)
        usleep(1000);
}

TEST(a_pause_names_the_hook_that_wanted_it)
{
    open_folder();
    const char *path = in_folder("events.jsonl");
    sgm_trainer *trainer;
    atomic_int pauses = 0;
    sgm_env *env = watched_env(path, &trainer, 0);
    CHECK_OK(sgm_trainer_add_hook(trainer, sgm_rule_hook("at epoch 1 pause")));
    CHECK_OK(sgm_trainer_on_progress(trainer, count_pauses, &pauses));
    CHECK_OK(sgm_env_run_background(env, .epochs = 1000));
    wait_for_pause(&pauses, 1);
    CHECK_OK(sgm_trainer_step(trainer, 1));
    wait_for_pause(&pauses, 2);
    CHECK_OK(sgm_trainer_stop(trainer, NULL));
    CHECK_OK(sgm_env_wait(env));
    sgm_env_free(env);
    read_lines(path);
    const char *told = events();
    CHECK(strstr(told, "start epoch pause resume pause ") == told);
    CHECK_STR(text_at(2, "paused_by"), "rule (at epoch 1 pause)");
    CHECK(json_object_get(lines[3], "paused_by") == NULL);
    CHECK(json_is_null(json_object_get(lines[4], "paused_by")));
    forget_lines();
    close_folder();
}

TEST(a_full_disk_does_not_end_the_training)
{
    if (access("/dev/full", W_OK) != 0)
        SKIP("there is no /dev/full here");
    sgm_trainer *trainer;
    sgm_env *env = watched_env("/dev/full", &trainer, 1);
    CHECK_OK(sgm_env_run(env, .epochs = 2));
    sgm_env_free(env);
}

/* Into a pipe in the folder, which `reader` may read from without waiting. */
static sgm_env *piped_env(sgm_trainer **trainer, int *reader)
{
    open_folder();
    const char *path = in_folder("pipe");
    CHECK_INT(mkfifo(path, 0600), 0);
    *reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    CHECK(*reader >= 0);
    return watched_env(path, trainer, 1);
}

/* More than a pipe and the queue hold: the training ends all the same, and who reads then is told of what is
 * lost. */
TEST(one_who_does_not_read_holds_nobody_up)
{
    sgm_trainer *trainer;
    int reader;
    sgm_env *env = piped_env(&trainer, &reader);
    CHECK_OK(sgm_env_run(env, .epochs = 2500)); /* 10000 iterations */
    sgm__text all = {0};
    long came = 0, lost = 0;
    bool ended = false;
    for (double end = sgm__now() + 20; !ended && sgm__now() < end;) {
        char bytes[65536];
        ssize_t count = read(reader, bytes, sizeof bytes);
        if (count > 0)
            sgm__text_append_bytes(&all, bytes, (size_t)count);
        else
            usleep(1000);
        if (came == 0 && all.length > 1 << 20) { /* there is room again */
            CHECK_OK(sgm_env_run(env, .epochs = 2501));
            came = 1;
        }
        ended = came > 0 && strstr(all.data, "\"dropped\"") != NULL &&
                strstr(strstr(all.data, "\"dropped\""), "\"event\":\"stop\"") != NULL;
    }
    CHECK(ended);
    came = 0;
    for (char *line = strtok(all.data, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        json_t *event = json_loads(line, 0, NULL);
        if (event == NULL)
            TEST_FAIL("no JSON: %s", line);
        if (strcmp(json_string_value(json_object_get(event, "event")), "dropped") == 0)
            lost += (long)json_integer_value(json_object_get(event, "count"));
        else
            came++;
        json_decref(event);
    }
    CHECK(lost > 1000);
    CHECK_INT(came + lost, 2 * 2 + 10004 + 2501); /* starts and stops, iterations, epochs */
    sgm__text_free(&all);
    sgm_env_free(env);
    close(reader);
    close_folder();
}

TEST(a_reader_that_leaves_does_not_end_the_training)
{
    sgm_trainer *trainer;
    int reader;
    sgm_env *env = piped_env(&trainer, &reader);
    close(reader);
    CHECK_OK(sgm_env_run(env, .epochs = 3));
    sgm_env_free(env);
    close_folder();
}

TEST(wrong_options)
{
    CHECK(sgm_json_lines_monitor(.path = "/nowhere/at/all") == NULL);
    CHECK(strstr(sgm_last_error(), "cannot write lines of JSON to /nowhere/at/all: No such file"));
    CHECK(sgm_json_lines_monitor(.every_iterations = -1) == NULL);
    CHECK(strstr(sgm_last_error(), "every_iterations: expected 0 or more, got -1"));
    CHECK(sgm_json_lines_monitor(.every_seconds = -0.5) == NULL);
    CHECK(strstr(sgm_last_error(), "every_seconds: expected 0 or more, got -0.5"));
    sgm_monitor_free(sgm_json_lines_monitor()); /* stdout stays open */
    CHECK(fputs("", stdout) >= 0);
}
