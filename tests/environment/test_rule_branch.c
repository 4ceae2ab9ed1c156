/* Branches that a rule begins: at its moment, beside the run, which goes on as it would without. */
#include "base/folder.h"
#include "environment_test.h"

#include "base/base.h"
#include "environment/environment.h"
#include "train/train.h"
#include "trainer/trainer_struct.h"
#include <jansson.h>
#include <sigma/replay.h>
#include <stdio.h>
#include <unistd.h>

#define RATE "optimiser.learning_rate"

typedef struct grove {
    sgm_env *env;
    sgm_trainer *first;
} grove;

static grove plant(const char *const *rules)
{
    grove made = {.env = sgm_env_create("grove", .seed = 7, .handler = "reference")};
    sgm_dataset *data = sine_dataset(64);
    made.first = sgm_trainer_create(made.env, "first");
    CHECK_OK(made.first);
    CHECK_OK(sgm_trainer_set_network(made.first,
                                     "input(3) + dense(6, tanh) + dropout(0.2) + dense(1) + mean_squared"));
    CHECK_OK(sgm_trainer_set_data(made.first, sgm_minibatches(data, .size = 8, .seed = 3)));
    CHECK_OK(sgm_trainer_set_optimiser(made.first, sgm_adam(.learning_rate = 0.01)));
    for (size_t i = 0; rules[i] != NULL; i++)
        CHECK_OK(sgm_trainer_add_hook(made.first, sgm_hook_parse(rules[i])));
    sgm_dataset_free(data);
    return made;
}

static double value_of(const grove *g, const char *identifier)
{
    sgm_content content;
    CHECK_OK(sgm_registry_resolve_one(sgm_env_registry(g->env), identifier, &content));
    return content.kind == SGM_KIND_NUMBER ? content.as.number : (double)content.as.integer;
}

static bool same_weights(const grove *g, const char *a, const char *b)
{
    sgm_content one, other;
    char name[128];
    snprintf(name, sizeof name, "%s.network.layers.1-dense.weights", a);
    CHECK_OK(sgm_registry_resolve_one(sgm_env_registry(g->env), name, &one));
    snprintf(name, sizeof name, "%s.network.layers.1-dense.weights", b);
    CHECK_OK(sgm_registry_resolve_one(sgm_env_registry(g->env), name, &other));
    bool same = sgm_content_equal(&one, &other);
    sgm_content_clear(&one);
    sgm_content_clear(&other);
    return same;
}

static bool has_line(const char *file, const char *words)
{
    char *text = NULL;
    size_t length;
    CHECK_OK(sgm__file_read(in_folder(file), 1 << 20, &text, &length));
    bool has = strstr(text, words) != NULL;
    sgm__free(text);
    return has;
}

static bool same_files(const char *one, const char *other)
{
    char command[500];
    snprintf(command, sizeof command, "cmp -s '%s/%.140s' '%s/%.140s'", folder, one, folder, other);
    return system(command) == 0;
}

/* An epoch has 8 iterations. One branch has another rate, the other one none: it stays the same to the bit.
 */
TEST(branches_begin_at_the_rule_s_moment)
{
    const char *const rules[] = {"every 3 epochs set " RATE " *= 0.9",
                                 "after 2 epochs branch \"slow\" with " RATE " *= 0.5 and save \"behind\"",
                                 "after 21 iterations branch \"same\"", NULL};
    open_folder();
    grove g = plant(rules);
    CHECK_OK(sgm_env_run(g.env, .epochs = 5, .folder = in_folder("run")));
    CHECK_NEAR(value_of(&g, "first." RATE), 0.01 * 0.9, 1e-12);
    CHECK_NEAR(value_of(&g, "slow." RATE), 0.005 * 0.9, 1e-12);
    CHECK_NEAR(value_of(&g, "same." RATE), 0.01 * 0.9, 1e-12);
    CHECK_NEAR(value_of(&g, "slow.iteration"), 40, 0);
    CHECK_NEAR(value_of(&g, "same.iteration"), 40, 0);
    CHECK(same_weights(&g, "first", "same"));
    CHECK(!same_weights(&g, "first", "slow"));
    CHECK(has_line("run/journal.jsonl", "\"event\":\"branch\""));
    CHECK(has_line("run/journal.jsonl", "\"epoch\":2,\"iteration\":16,\"who\":\"rule\","
                                        "\"reason\":\"after 2 epochs branch \\\"slow\\\" with " RATE
                                        " *= 0.5 and save \\\"behind\\\"\",\"name\":\"slow\","
                                        "\"checkpoint\":\"slow.safetensors\",\"of\":\""));
    CHECK(has_line("run/journal.jsonl", "\"set\":{\"" RATE "\":\"0.005\"}"));
    CHECK(has_line("run/journal.jsonl", "\"epoch\":2,\"iteration\":21,\"who\":\"rule\","
                                        "\"reason\":\"after 21 iterations branch \\\"same\\\"\","
                                        "\"name\":\"same\""));
    CHECK(sgm__file_exists(in_folder("run-slow/checkpoint.safetensors")));
    CHECK(has_line("run-slow/journal.jsonl", "\"event\":\"begin\""));
    CHECK(has_line("run-slow/journal.jsonl", "\"epoch\":2,\"iteration\":16"));
    CHECK(sgm__file_exists(in_folder("run/behind.safetensors")));
    CHECK_OK(sgm_env_status(g.env));
    sgm_env_free(g.env);

    /* The run did what it would have done without: all but the list of its rules is the same. */
    grove without = plant((const char *const[]){rules[0], NULL});
    CHECK_OK(sgm_env_run(without.env, .epochs = 5, .folder = in_folder("without")));
    sgm_bundle *one = sgm_bundle_load(in_folder("run/checkpoint.safetensors")),
               *other = sgm_bundle_load(in_folder("without/checkpoint.safetensors"));
    CHECK_OK(one);
    CHECK_OK(other);
    CHECK_INT(sgm_bundle_count(one), sgm_bundle_count(other));
    for (size_t i = 0; i < sgm_bundle_count(one); i++) {
        const char *name = sgm_bundle_name_at(one, i);
        sgm_content a = sgm_tensor_content(sgm_bundle_get(one, name)),
                    b = sgm_tensor_content(sgm_bundle_get(other, name));
        CHECK(sgm_content_equal(&a, &b));
    }
    sgm_bundle_free(other);
    sgm_bundle_free(one);
    sgm_env_free(without.env);
    close_folder();
}

/* The rule does it again by itself: its checkpoint, and the line, but no other training. */
TEST(a_replay_begins_none)
{
    const char *const rules[] = {"after 2 epochs branch \"slow\" with " RATE " = 0.001", NULL};
    char run[160];
    open_folder();
    snprintf(run, sizeof run, "%s/run", folder);
    grove g = plant(rules);
    CHECK_OK(sgm_env_run(g.env, .epochs = 4, .folder = run));
    CHECK_NEAR(value_of(&g, "slow." RATE), 0.001, 0);
    sgm_env_free(g.env);
    grove again = plant(rules);
    CHECK_OK(sgm_env_run(again.env, .folder = in_folder("again"), .replay = sgm_replay_of(.run = run)));
    CHECK(same_files("run/checkpoint.safetensors", "again/checkpoint.safetensors"));
    CHECK(same_files("run/slow.safetensors", "again/slow.safetensors"));
    CHECK(has_line("again/journal.jsonl", "\"event\":\"branch\""));
    CHECK(!sgm__file_exists(in_folder("again-slow")));
    sgm_env_free(again.env);
    close_folder();
}

static char seen_log[4000];

static void keep_log(void *user, sgm_log_level level, const char *source, const char *message)
{
    size_t length = strlen(seen_log);
    (void)user;
    (void)level;
    snprintf(seen_log + length, sizeof seen_log - length, "%s: %s\n", source, message);
}

/* A failure is told, and the run goes on. The branch has the rule too, and begins none. */
TEST(a_name_that_is_taken_is_told)
{
    const char *const rules[] = {"every 2 epochs branch \"twin\"", NULL};
    open_folder();
    grove g = plant(rules);
    seen_log[0] = '\0';
    sgm_set_logger(keep_log, NULL, SGM_LOG_ERROR);
    CHECK_OK(sgm_env_run(g.env, .epochs = 4, .folder = in_folder("run")));
    sgm_set_logger(NULL, NULL, SGM_LOG_ERROR);
    CHECK_NEAR(value_of(&g, "first.epoch"), 4, 0);
    CHECK_NEAR(value_of(&g, "twin.epoch"), 4, 0);
    CHECK(strstr(seen_log, "first: rule: ") != NULL);
    CHECK(strstr(seen_log, "run-twin', which holds a run already; choose another name") != NULL ||
          strstr(seen_log, "already") != NULL);
    CHECK(strstr(seen_log, "twin: rule") == NULL);
    CHECK(!sgm__file_exists(in_folder("run-twin-twin")));
    CHECK_INT(g.env->trainer_count, 2);
    sgm_env_free(g.env);
    close_folder();
}

TEST(what_cannot_branch_is_told_before)
{
    static const char *const misspelt[] = {"after 1 epoch branch \"b\" with optimiser.learning_rat = 1",
                                           NULL};
    grove g = plant(misspelt);
    CHECK_ERROR(sgm_env_run(g.env, .epochs = 2), "did you mean");
    sgm_env_free(g.env);
    const sgm__trainer_settings settings = {.seed = 5, .handler = sgm_handler_create("reference")};
    sgm_trainer *alone = sgm__trainer_create("alone", &settings);
    sgm_dataset *data = line_dataset();
    CHECK_OK(sgm_trainer_set_network(alone, "input(1) + dense(1) + mean_squared"));
    CHECK_OK(sgm_trainer_set_data(alone, sgm_minibatches(data, .size = 10)));
    CHECK_OK(sgm_trainer_set_optimiser(alone, sgm_gradient_descent(.learning_rate = 0.1)));
    CHECK_OK(sgm_trainer_add_hook(alone, sgm_rule_hook("after 1 epoch branch \"b\"")));
    CHECK_ERROR(sgm_trainer_run(alone, .epochs = 2),
                "a rule begins branches of trainers that an environment runs (sgm_env_run), and this one has "
                "none");
    sgm__trainer_free(alone);
    sgm_handler_free(settings.handler);
    sgm_dataset_free(data);
    CHECK_ERROR(sgm_hook_parse("local every epoch branch \"b\""),
                "cannot be local: what it restores, runs, branches");
}

/* The folder of a branch has the state that it began with, values and all, so it is repeated by itself. */
static void check_again(const char *const *rules, const char *run, const char *again)
{
    char path[160], own[160], other[160];
    grove g = plant(rules);
    snprintf(path, sizeof path, "%s/%s", folder, run);
    CHECK_OK(sgm_env_run(g.env, .folder = in_folder(again), .replay = sgm_replay_of(.run = path)));
    snprintf(own, sizeof own, "%s/checkpoint.safetensors", run);
    snprintf(other, sizeof other, "%s/checkpoint.safetensors", again);
    CHECK(same_files(own, other));
    CHECK_INT(g.env->trainer_count, 1);
    sgm_env_free(g.env);
}

TEST(a_branch_is_repeated_from_where_it_began)
{
    const char *const rules[] = {"every 3 epochs set " RATE " *= 0.9",
                                 "after 2 epochs branch \"slow\" with " RATE " *= 0.5", NULL};
    sgm_intervention *list;
    size_t count;
    char path[160];
    open_folder();
    grove g = plant(rules);
    CHECK_OK(sgm_env_run(g.env, .epochs = 5, .folder = in_folder("run")));
    sgm_env_free(g.env);
    check_again(rules, "run-slow", "again");
    check_again(rules, "again", "once-more"); /* a replay is a run like any other */
    CHECK(same_files("run-slow/origin.safetensors", "again/origin.safetensors"));
    snprintf(path, sizeof path, "%s/run-slow", folder);
    CHECK_OK(sgm_run_interventions(path, &list, &count));
    CHECK_INT(count, 1);
    CHECK_STR(list[0].event, "branched");
    CHECK_STR(list[0].who, "rule");
    CHECK_STR(list[0].text, "began as a branch of first, from slow.safetensors, with " RATE " = 0.005");
    CHECK_INT(list[0].iteration, 16);
    CHECK(!list[0].removable);
    sgm_interventions_free(list, count);

    /* Without that state, or with another one, it cannot be the same. */
    CHECK_INT(unlink(in_folder("run-slow/origin.safetensors")), 0);
    grove without = plant(rules);
    CHECK_ERROR(sgm_env_run(without.env, .folder = in_folder("none"), .replay = sgm_replay_of(.run = path)),
                "origin.safetensors', the state that the run began with, is gone, or another one by now");
    CHECK(!sgm__file_exists(in_folder("none")));
    sgm_env_free(without.env);
    close_folder();
}

/* What the page does. */
static void branch_off(const grove *g, const char *name, const char *checkpoint, bool paused)
{
    static const char *const identifiers[] = {RATE}, *const values[] = {"0.02"};
    const sgm__branch_request request = {.name = name,
                                         .checkpoint = checkpoint,
                                         .who = "monitor",
                                         .identifiers = identifiers,
                                         .values = values,
                                         .count = 1,
                                         .paused = paused};
    const sgm__membership *membership = sgm__membership_of(g->first);
    CHECK_OK(membership->branch(membership->env, g->first, &request));
}

static void wait_for_pause(sgm_trainer *trainer)
{
    for (int i = 0; i < 10000 && sgm_trainer_get_state(trainer) != SGM_TRAINER_PAUSED; i++)
        usleep(1000);
    CHECK_INT(sgm_trainer_get_state(trainer), SGM_TRAINER_PAUSED);
}

/* The folder of a branch whose process dies before it has trained is that of the branch, not of a training
 * that begins at its beginning. */
TEST(a_branch_that_has_not_trained_yet_is_resumed)
{
    char path[160], command[400];
    open_folder();
    grove g = plant((const char *const[]){NULL});
    CHECK_OK(sgm_env_run_background(g.env, .epochs = 3, .folder = in_folder("run"), .paused = true));
    wait_for_pause(g.first);
    CHECK_OK(sgm_trainer_step(g.first, 5));
    for (int i = 0; i < 10000 && value_of(&g, "first.iteration") < 5; i++)
        usleep(1000);
    wait_for_pause(g.first);
    snprintf(path, sizeof path, "%s/run/here.safetensors", folder);
    CHECK_OK(sgm_trainer_save(g.first, path));
    branch_off(&g, "mine", path, true);
    wait_for_pause(g.env->trainers[1]);
    snprintf(command, sizeof command, "cp -r '%s/run-mine' '%s/cut'", folder, folder);
    CHECK_INT(system(command), 0);
    CHECK_OK(sgm_trainer_resume(g.env->trainers[1]));
    CHECK_OK(sgm_trainer_resume(g.first));
    CHECK_OK(sgm_env_wait(g.env));
    sgm_env_free(g.env);
    grove resumed = plant((const char *const[]){NULL});
    CHECK_OK(sgm_env_run(resumed.env, .epochs = 3, .folder = in_folder("cut"), .resume = true));
    CHECK_NEAR(value_of(&resumed, "first." RATE), 0.02, 0);
    CHECK(same_files("run-mine/checkpoint.safetensors", "cut/checkpoint.safetensors"));
    sgm_env_free(resumed.env);
    check_again((const char *const[]){NULL}, "run-mine", "again");
    check_again((const char *const[]){NULL}, "cut", "again-cut");
    close_folder();
}

/* A person's branch, through the environment, is told by the journal as well. */
TEST(the_page_s_branches_are_told)
{
    open_folder();
    grove g = plant((const char *const[]){NULL});
    char path[160];
    CHECK_OK(sgm_env_run_background(g.env, .epochs = 3, .folder = in_folder("run"), .paused = true));
    wait_for_pause(g.first);
    snprintf(path, sizeof path, "%s/run/here.safetensors", folder);
    CHECK_OK(sgm_trainer_save(g.first, path));
    branch_off(&g, "mine", path, false);
    CHECK_OK(sgm_trainer_resume(g.first));
    CHECK_OK(sgm_env_wait(g.env));
    CHECK(has_line("run/journal.jsonl", "\"event\":\"branch\""));
    CHECK(has_line("run/journal.jsonl",
                   "\"who\":\"monitor\",\"name\":\"mine\",\"checkpoint\":\"here.safetensors\""));
    CHECK(has_line("run-mine/journal.jsonl",
                   "\"branched\":{\"who\":\"monitor\",\"from\":\"first\","
                   "\"checkpoint\":\"here.safetensors\",\"set\":{\"" RATE "\":\"0.02\"}}"));
    CHECK(!has_line("run-mine/journal.jsonl", "\"event\":\"change\""));
    sgm_env_free(g.env);
    sgm_intervention *list;
    size_t count;
    snprintf(path, sizeof path, "%s/run", folder);
    CHECK_OK(sgm_run_interventions(path, &list, &count));
    CHECK_INT(count, 1);
    CHECK_STR(list[0].text, "branch mine was begun");
    CHECK(!list[0].removable);
    sgm_interventions_free(list, count);
    grove again = plant((const char *const[]){NULL});
    CHECK_OK(sgm_env_run(again.env, .folder = in_folder("again"), .replay = sgm_replay_of(.run = path)));
    CHECK(same_files("run/checkpoint.safetensors", "again/checkpoint.safetensors"));
    sgm_env_free(again.env);
    close_folder();
}
