/* What was done to a run, as the page over a folder of runs shows it, and the replays that it begins. The
 * replaying command is a script here: that sigma replay gives the same bits is shown by tests/cli. */
#include "browser.h"
#include "environment/environment_test.h"
#include "monitors/runs/runs.h"
#include "monitors/web_client.h"

#include <sys/stat.h>

/* Writes down what it was told; "-fast" in the run's name: copies the run; "-bad": refuses; else waits. */
static const char script_text[] = "echo \"$@\" >>\"$(dirname \"$1\")/../told\"\n"
                                  "case $1 in\n"
                                  "*-fast) cp -r \"$1\" \"$5\" ;;\n"
                                  "*-bad) case \"$*\" in *--inexact*) cp -r \"$1\" \"$5\" ;;\n"
                                  "  *) echo \"the replay of '$1' cannot give the same bits:\" >&2\n"
                                  "     echo \"  the seed was '3' when it began, and is '4'\"\n"
                                  "     exit 1 ;; esac ;;\n"
                                  "*) echo $$ >\"$(dirname \"$1\")/../process\"; exec sleep 60 ;;\n"
                                  "esac\n";

typedef struct place {
    char folder[64], script[96], runs_folder[96];
    const char *words[3];
    sgm__runs *runs;
    web_client client;
} place;

static json_t *no_configuration(const char *text, size_t length)
{
    (void)text;
    (void)length;
    return json_object();
}

/* A run of three epochs whose learning rate the program set six times, or never: lines 3 to 8 of its journal.
 */
static void train_as(const place *p, const char *name, bool steered)
{
    char path[200];
    sgm_dataset *data = line_dataset();
    sgm_env *env = sgm_env_create("page", .seed = 3, .handler = "reference");
    sgm_trainer *trainer = sgm_trainer_create(env, "lines");
    CHECK_OK(sgm_trainer_set_network(trainer, "input(1) + dense(1) + mean_squared"));
    CHECK_OK(sgm_trainer_set_data(trainer, sgm_minibatches(data, .size = 10)));
    CHECK_OK(sgm_trainer_set_optimiser(trainer, sgm_gradient_descent(.learning_rate = 0.1)));
    snprintf(path, sizeof path, "%s/%s", p->runs_folder, name);
    CHECK_OK(sgm_env_run_background(env, .epochs = 3, .folder = path, .paused = true));
    for (int i = 0; i < 10000 && sgm_trainer_get_state(trainer) != SGM_TRAINER_PAUSED; i++)
        usleep(1000);
    static const double rates[] = {0.05, 0.0625, 0.125, 0.25, 0.125, 0.0625};
    for (size_t i = 0; i < sizeof rates / sizeof *rates && steered; i++)
        CHECK_OK(sgm_registry_resolve_set(sgm_trainer_registry(trainer), "optimiser.learning_rate",
                                          sgm_number_content(rates[i]), NULL, NULL));
    CHECK_OK(sgm_trainer_resume(trainer));
    CHECK_OK(sgm_env_wait(env));
    CHECK_OK(sgm_env_status(env));
    snprintf(path, sizeof path, "%s/%s/config.yaml", p->runs_folder, name);
    CHECK_OK(sgm__file_write_atomic(path, "a: 1\n", 5));
    sgm_env_free(env);
    sgm_dataset_free(data);
}

static void train(const place *p, const char *name)
{
    train_as(p, name, true);
}

static void begin(place *p, bool replays)
{
    *p = (place){.folder = "/tmp/sigma-replays-XXXXXX"};
    CHECK(mkdtemp(p->folder) != NULL);
    snprintf(p->script, sizeof p->script, "%s/script", p->folder);
    snprintf(p->runs_folder, sizeof p->runs_folder, "%s/runs", p->folder);
    CHECK_OK(sgm__make_folders(p->runs_folder));
    CHECK_OK(sgm__file_write_atomic(p->script, script_text, sizeof script_text - 1));
    p->words[0] = "/bin/sh";
    p->words[1] = p->script;
    p->runs = sgm__runs_start(&(sgm__runs_options){
        .folder = p->runs_folder, .configuration = no_configuration, .replay = replays ? p->words : NULL});
    CHECK(p->runs != NULL);
    p->client = web_client_of(sgm__runs_url(p->runs));
}

static void end(place *p)
{
    char command[128];
    web_client_close(&p->client);
    sgm__runs_stop(p->runs);
    snprintf(command, sizeof command, "rm -rf '%s'", p->folder);
    CHECK_INT(system(command), 0);
}

static const json_t *intervention(place *p, const char *run, size_t index)
{
    char path[100];
    snprintf(path, sizeof path, "/api/run-interventions/%s", run);
    return json_array_get(web_at(web_got(&p->client, path), "interventions"), index);
}

/* The replay at `index` of a run, when it has ended. */
static const json_t *ended(place *p, const char *run, size_t index)
{
    const json_t *one = NULL;
    char path[100];
    snprintf(path, sizeof path, "/api/run-interventions/%s", run);
    for (int i = 0; i < 1000; i++) {
        one = json_array_get(web_at(web_got(&p->client, path), "replays"), index);
        if (strcmp(web_string(one, "state"), "running") != 0)
            break;
        usleep(10000);
    }
    return one;
}

static bool was_told(const place *p, const char *words)
{
    char path[100], *text = NULL;
    size_t length;
    snprintf(path, sizeof path, "%s/told", p->folder);
    CHECK_OK(sgm__file_read(path, 1 << 16, &text, &length));
    bool has = strstr(text, words) != NULL;
    sgm__free(text);
    return has;
}

TEST(what_was_done_is_shown_with_its_moment)
{
    place p;
    begin(&p, true);
    train(&p, "a");
    const json_t *first = intervention(&p, "a", 0);
    CHECK_INT(p.client.code, 200);
    CHECK_STR(web_string(first, "text"), "optimiser.learning_rate was set to 0.05");
    CHECK_STR(web_string(first, "who"), "program");
    CHECK_STR(web_string(first, "event"), "change");
    CHECK(json_is_string(json_object_get(first, "reason"))); /* none was given */
    CHECK(json_is_true(json_object_get(first, "removable")));
    CHECK_INT(json_integer_value(json_object_get(first, "iteration")), 0);
    CHECK(json_is_true(json_object_get(p.client.answer, "can_replay")));
    CHECK_STR(web_string(intervention(&p, "a", 1), "text"), "optimiser.learning_rate was set to 0.0625");
    CHECK_INT(json_array_size(json_object_get(p.client.answer, "replays")), 0);
    web_got(&p.client, "/api/run-interventions/b");
    CHECK_INT(p.client.code, 404);

    /* A damaged journal is told with its line, here as everywhere. */
    char command[300];
    snprintf(command, sizeof command, "sed -i '3s/0.05/0.06/' '%s/a/journal.jsonl'", p.runs_folder);
    CHECK_INT(system(command), 0);
    web_got(&p.client, "/api/run-interventions/a");
    CHECK(p.client.code != 200);
    CHECK(strstr(web_string(p.client.answer, "error"), "/a': 'journal.jsonl', line 3") != NULL);
    end(&p);
}

TEST(a_replay_is_a_process_beside_the_run)
{
    place p;
    begin(&p, true);
    train(&p, "a-fast");
    CHECK_STR(web_string(web_posted(&p.client, "/api/run-replay", "{\"name\":\"a-fast\"}"), "into"),
              "a-fast-again");
    CHECK_INT(p.client.code, 200);
    CHECK_STR(web_string(ended(&p, "a-fast", 0), "state"), "ended");
    CHECK(was_told(&p, "/runs/a-fast --quiet --no-keys --into "));
    CHECK(was_told(&p, "/runs/a-fast-again\n"));
    CHECK_STR(web_string(web_posted(&p.client, "/api/run-replay",
                                    "{\"name\":\"a-fast\",\"without\":[3,4],\"inexact\":true}"),
                         "into"),
              "a-fast-without-3-4");
    CHECK_STR(web_string(ended(&p, "a-fast", 1), "state"), "ended");
    CHECK(was_told(&p, "/runs/a-fast-without-3-4 --inexact --without 3,4\n"));
    CHECK_STR(web_string(web_posted(&p.client, "/api/run-replay", "{\"name\":\"a-fast\"}"), "into"),
              "a-fast-again-2");
    CHECK_STR(web_string(ended(&p, "a-fast", 2), "into"), "a-fast-again-2");
    CHECK_STR(web_string(
                  web_posted(&p.client, "/api/run-replay", "{\"name\":\"a-fast\",\"without\":[3,4,5,6,7,8]}"),
                  "into"),
              "a-fast-without-3-4-5-6-and-2-more");
    CHECK_STR(web_string(ended(&p, "a-fast", 3), "state"), "ended");
    CHECK_INT(json_array_size(web_at(web_got(&p.client, "/api/runs"), "runs")), 5);
    web_posted(&p.client, "/api/run-replay", "{\"name\":\"a-fast\",\"without\":[4,99]}");
    CHECK_INT(p.client.code, 404);
    CHECK(strstr(web_string(p.client.answer, "error"), "99 is no intervention of 'a-fast'") != NULL);
    end(&p);
}

TEST(a_refusal_is_told_with_its_reasons)
{
    place p;
    begin(&p, true);
    train(&p, "a-bad");
    web_posted(&p.client, "/api/run-replay", "{\"name\":\"a-bad\"}");
    CHECK_INT(p.client.code, 200);
    const json_t *refused = ended(&p, "a-bad", 0);
    CHECK_STR(web_string(refused, "state"), "failed");
    CHECK(strstr(web_string(refused, "message"), "cannot give the same bits:\n  the seed was '3'") != NULL);
    web_posted(&p.client, "/api/run-replay", "{\"name\":\"a-bad\",\"without\":[\"x\"]}");
    CHECK_INT(p.client.code, 400);
    CHECK_STR(web_string(p.client.answer, "error"), "'without' must be numbers of interventions");
    web_posted(&p.client, "/api/run-replay", "{\"name\":\"a-bad\",\"without\":7}");
    CHECK_INT(p.client.code, 400);
    web_posted(&p.client, "/api/run-replay", "{\"name\":\"../a-bad\"}");
    CHECK_INT(p.client.code, 404);
    end(&p);
}

/* The number that the script wrote down. */
static pid_t process_of(const place *p)
{
    char path[100];
    int number = 0;
    snprintf(path, sizeof path, "%s/process", p->folder);
    for (int i = 0; i < 1000 && number == 0; i++) {
        FILE *file = fopen(path, "r");
        if (file == NULL || fscanf(file, "%d", &number) != 1)
            usleep(10000);
        if (file != NULL)
            fclose(file);
    }
    CHECK(number > 0);
    return number;
}

TEST(few_train_at_a_time_and_none_is_left_behind)
{
    place p;
    begin(&p, true);
    train(&p, "a");
    for (int i = 0; i < 2; i++) {
        web_posted(&p.client, "/api/run-replay", "{\"name\":\"a\"}");
        CHECK_INT(p.client.code, 200);
    }
    web_posted(&p.client, "/api/run-replay", "{\"name\":\"a\"}");
    CHECK_INT(p.client.code, 409);
    CHECK(strstr(web_string(p.client.answer, "error"), "2 replays train already") != NULL);
    pid_t process = process_of(&p);
    CHECK_INT(kill(process, 0), 0);
    end(&p);
    CHECK_INT(kill(process, 0), -1); /* it has ended, and was waited for */

    begin(&p, false);
    train(&p, "a");
    CHECK(json_is_false(web_at(web_got(&p.client, "/api/run-interventions/a"), "can_replay")));
    web_posted(&p.client, "/api/run-replay", "{\"name\":\"a\"}");
    CHECK_STR(web_string(p.client.answer, "error"), "this page replays no runs");
    end(&p);
}

TEST(a_person_leaves_something_out)
{
    place p;
    browser b = browser_open();
    begin(&p, true);
    train(&p, "a-fast");
    train(&p, "b-bad");
    train_as(&p, "c-alone", false);
    browser_go(&b, sgm__runs_url(p.runs));
    browser_await(&b, "document.querySelectorAll('[data-run]').length === 3");
    browser_click(&b, "[data-open='c-alone']");
    browser_await(&b, "[...document.querySelectorAll('.run-section')].some((one) => !one.hidden && "
                      "one.innerText.includes('Nothing was done to this run from outside.'))");
    browser_click(&b, "dialog .icon-button");
    browser_await(&b, "document.querySelector('dialog') === null");
    browser_click(&b, "[data-open='a-fast']");
    browser_await(&b, "document.querySelectorAll('.run-section tbody input[type=checkbox]').length === 6");
    CHECK(browser_is(&b, "document.querySelector('.run-replay button').textContent === 'Replay'"));
    browser_click(&b, ".run-section tbody input[type=checkbox]");
    CHECK(browser_is(&b, "document.querySelector('.run-replay button').textContent === 'Replay without 1'"));
    browser_click(&b, ".run-replay button");
    browser_await(&b, "document.querySelector('.run-replays')?.textContent === 'a-fast-without-3 is done.'");
    browser_await(&b, "document.querySelector('.run-detail .runs-canvas').getAttribute('aria-label')"
                      ".includes('; a-fast-without-3, loss: ')");
    browser_click(&b, "dialog .icon-button");
    browser_await(&b, "document.querySelector('dialog') === null");
    browser_click(&b, "[data-open='b-bad']");
    browser_await(&b, "document.querySelector('.run-replay button') !== null && "
                      "!document.querySelector('.run-replay button').hidden");
    browser_click(&b, ".run-replay button");
    browser_await(&b, "document.querySelector('.run-refusal')?.textContent.includes(\"the seed was '3'\")");
    browser_click(&b, ".run-replays button");
    browser_await(&b, "document.querySelector('.run-replays').textContent.includes('b-bad-again is done.')");
    browser_check_errors(&b);
    browser_close(&b);
    end(&p);
}
