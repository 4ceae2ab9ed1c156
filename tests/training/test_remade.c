/* A run that was killed gets back what persons did after its newest checkpoint, and ends with the bits of the
 * run that nobody killed. */
#include "requests_test.h"

#include "journal/journal_file.h"

#define ITERATIONS 20 /* four of an epoch; checkpoints are made at the end of each */
#define RULE "every 3 iterations set optimiser.learning_rate = 0.02"
#define OTHER_RULE "every 2 iterations set optimiser.beta1 = 0.8"

/* What a person does after so many iterations, as JSON. */
typedef struct deed {
    int64_t iteration;
    const char *request;
} deed;

static const deed deeds[] = {
    {9, "{\"command\":\"attach\",\"hook\":\"" RULE "\"}"},
    {9, "{\"command\":\"set\",\"identifier\":\"network.layers.3-dense.biases\",\"value\":[1,2,3]}"},
    {9, "{\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":0.005}"},
    {10, "{\"command\":\"attach\",\"hook\":\"" OTHER_RULE "\"}"},
    {10, "{\"command\":\"set\",\"identifier\":\"network.layers.3-dense.biases\",\"value\":[0.5,0.25,1]}"},
    {11, "{\"command\":\"detach\",\"name\":\"rule#1\"}"},
};
#define DEEDS (sizeof deeds / sizeof *deeds)

#define COPIED_AT 12 /* the iteration after which the folder is copied, as kill -9 would leave it */

static bool act(void *user, const sgm_training_progress *progress)
{
    sgm_trainer *trainer = user;
    char command[512];
    if (progress->kind != SGM_PROGRESS_ITERATION)
        return true;
    for (size_t i = 0; i < DEEDS; i++)
        if (deeds[i].iteration == progress->iteration)
            CHECK_OK(ask(trainer, deeds[i].request));
    if (progress->iteration == COPIED_AT) {
        snprintf(command, sizeof command,
                 "rm -rf '%s/killed' && mkdir '%s/killed' && cp -r '%s/run/.' '%s/killed'", folder, folder,
                 folder, folder);
        CHECK_INT(system(command), 0);
    }
    return true;
}

/* A run with a person beside it, who acts from its thread; or one that goes on from the copy. */
static wave_trainer run(const char *name, bool resume)
{
    char where[160];
    wave_trainer made = make();
    snprintf(where, sizeof where, "%s/%s", folder, name);
    if (!resume)
        CHECK_OK(sgm_trainer_on_progress(made.trainer, act, made.trainer));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = ITERATIONS, .folder = where, .resume = resume,
                             .checkpoint_every = 2));
    return made;
}

static void check_same_files(const char *one, const char *other)
{
    char command[400];
    snprintf(command, sizeof command, "cmp '%s/%s' '%s/%s'", folder, one, folder, other);
    CHECK_INT(system(command), 0);
}

TEST(tensors_and_hooks_come_back_after_a_kill)
{
    open_folder();
    wave_trainer whole = run("run", false), again = run("killed", true);
    CHECK(same_states(whole.trainer, again.trainer));
    check_same_files("run/checkpoint.safetensors", "killed/checkpoint.safetensors");
    free_wave_trainer(again);
    free_wave_trainer(whole);
    CHECK_INT(lines_with("killed/log.txt",
                         "network.layers.3-dense.biases was set by ctl after the checkpoint: "
                         "that is made again at iteration 9",
                         ""),
              1);
    CHECK_INT(lines_with("killed/log.txt", "hook rule#1 was attached: " RULE " by ctl", "iteration 9"), 1);
    CHECK_INT(lines_with("killed/log.txt", "hook rule#1 was detached by ctl", "iteration 11"), 1);
    CHECK_INT(lines_with("killed/log.txt", "lost", ""), 0);
    close_folder();
}

/* What cannot be made again is told, and the run goes on. */
TEST(a_tensor_whose_file_is_gone_is_told)
{
    char command[256];
    open_folder();
    free_wave_trainer(run("run", false));
    snprintf(command, sizeof command, "rm '%s/killed/changes/9-1.npy'", folder);
    CHECK_INT(system(command), 0);
    free_wave_trainer(run("killed", true));
    CHECK_INT(lines_with("killed/log.txt", "3-dense.biases was set by ctl, which cannot be made again",
                         "changes/9-1.npy"),
              1);
    close_folder();
}

/* A line names a file of its own folder alone. */
TEST(a_line_with_another_path_is_no_way_out)
{
    char path[160];
    open_folder();
    free_wave_trainer(run("run", false));
    snprintf(path, sizeof path, "%s/killed", folder);
    CHECK_OK(sgm__journal_append(
        path, "{\"event\":\"change\",\"branch\":0,\"epoch\":2,\"iteration\":13,\"who\":\"ctl\",\"what\":"
              "\"network.layers.3-dense.biases\",\"old\":null,\"new\":{\"shape\":[3],\"file\":"
              "\"changes/../../run/changes/9-1.npy\"}}"));
    free_wave_trainer(run("killed", true));
    CHECK_INT(lines_with("killed/log.txt", "3-dense.biases was set by ctl, which cannot be made again",
                         "'changes/../../run/changes/9-1.npy' is no file of changes/"),
              1);
    close_folder();
}

/* --- taking back after a resume --- */

#define UNDO "{\"command\":\"undo\"}"
#define SET(name, value) "{\"command\":\"set\",\"identifier\":\"" name "\",\"value\":" value "}"

/* A request after so many iterations, and a part of its answer or error. */
typedef struct asked {
    int64_t iteration;
    const char *request, *part;
} asked;

typedef struct asking {
    sgm_trainer *trainer;
    const asked *list; /* ends in one without a request */
} asking;

static bool ask_all(void *user, const sgm_training_progress *progress)
{
    const asking *a = user;
    const sgm__control_call call = {.trainer = a->trainer, .who = "ctl", .role = SGM__ROLE_ADMIN};
    for (const asked *at = a->list; progress->kind == SGM_PROGRESS_ITERATION && at->request != NULL; at++) {
        if (at->iteration != progress->iteration)
            continue;
        char *given = sgm__control_answer(&call, at->request, strlen(at->request));
        if (strstr(given, at->part) == NULL)
            TEST_FAIL("%s: answered %s, expected %s in it", at->request, given, at->part);
        sgm__free(given);
    }
    return true;
}

static wave_trainer run_asking(const asked *list, int64_t iterations, bool resume)
{
    wave_trainer made = make();
    asking all = {made.trainer, list};
    CHECK_OK(sgm_trainer_on_progress(made.trainer, ask_all, &all));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = iterations, .folder = in_folder("run"),
                             .resume = resume, .checkpoint_every = 2));
    return made;
}

static double value_of(sgm_trainer *trainer, const char *identifier)
{
    sgm_content content;
    CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(trainer), identifier, &content));
    return content.as.number;
}

/* The record of changes of the process that made them is gone: the journal has them. */
TEST(what_was_done_before_a_resume_is_taken_back_after_it)
{
    static const asked before[] = {
        {3, SET("optimiser.learning_rate", "0.05"), "true"},
        {4, "{\"command\":\"attach\",\"hook\":\"if training.loss < 0 then stop\"}", "rule#1"},
        {5, SET("optimiser.beta*", "0.5"), "true"},
        {6, SET("optimiser.epsilon", "0.25"), "true"},
        {7, UNDO, "\"undone\":5"}, /* epsilon: changes 1 to 5 are those above, of which the third is two */
        {8, SET("network.layers.3-dense.biases", "[1,2,3]"), "true"},
        {0}};
    static const asked after[] = {
        {9, "{\"command\":\"changes\"}",
         "\"identifier\":\"optimiser.learning_rate\",\"before\":0.01,\"after\":0.05"},
        {9, UNDO, "\"undone\":4"},
        {10, UNDO, "\"undone\":2"},
        {10, "{\"command\":\"hooks\"}", "\"hooks\":[]"},
        {11, UNDO, "\"undone\":1"},
        {12, UNDO, "there is no change of a person to take back"},
        {0}};
    open_folder();
    free_wave_trainer(run_asking(before, 8, false));
    wave_trainer resumed = run_asking(after, 14, true);
    CHECK_NEAR(value_of(resumed.trainer, "optimiser.learning_rate"), 0.01, 0);
    CHECK_NEAR(value_of(resumed.trainer, "optimiser.beta1"), 0.9, 0);
    CHECK_NEAR(value_of(resumed.trainer, "optimiser.beta2"), 0.999, 0);
    CHECK_NEAR(value_of(resumed.trainer, "optimiser.epsilon"), 1e-8, 0);
    free_wave_trainer(resumed);
    /* And what the first resume has taken back is so for the second. */
    static const asked later[] = {{15, UNDO, "there is no change of a person to take back"}, {0}};
    free_wave_trainer(run_asking(later, 16, true));
    close_folder();
}

TEST(a_button_that_was_pressed_is_told_after_a_resume)
{
    static const asked before[] = {
        {2, "{\"command\":\"attach\",\"hook\":\"if external \\\"slower\\\" then set optimiser.beta1 = 0.5\"}",
         "rule#1"},
        {3, "{\"command\":\"press\",\"name\":\"slower\"}", "true"},
        {0}};
    static const asked after[] = {{7, "{\"command\":\"changes\"}",
                                   "\"identifier\":\"button slower\",\"before\":null,\"after\":\"pressed\""},
                                  {0}};
    open_folder();
    free_wave_trainer(run_asking(before, 6, false));
    free_wave_trainer(run_asking(after, 8, true));
    close_folder();
}

/* The process was killed four iterations after its newest checkpoint: what was done and taken back since is
 * done and taken back again, and counts for an undo as it did. */
TEST(what_is_made_again_is_taken_back_as_before)
{
    static const asked before[] = {{3, SET("optimiser.epsilon", "0.25"), "true"},
                                   {9, SET("optimiser.learning_rate", "0.05"), "true"},
                                   {10, SET("optimiser.learning_rate", "0.07"), "true"},
                                   {11, UNDO, "\"undone\":3"},
                                   {12, "{\"command\":\"stop\"}", "true"},
                                   {0}};
    static const asked after[] = {{13, UNDO, "\"undone\":2"}, {14, UNDO, "\"undone\":1"}, {0}};
    char command[600];
    open_folder();
    free_wave_trainer(run_asking(before, 8, false)); /* the checkpoint of iteration 8 */
    snprintf(command, sizeof command, "cp '%s/run/checkpoint.safetensors' '%s/old'", folder, folder);
    CHECK_INT(system(command), 0);
    free_wave_trainer(run_asking(before, 20, true));
    snprintf(command, sizeof command, "cp '%s/old' '%s/run/checkpoint.safetensors'", folder, folder);
    CHECK_INT(system(command), 0);
    wave_trainer resumed = run_asking(after, 16, true);
    CHECK_NEAR(value_of(resumed.trainer, "optimiser.learning_rate"), 0.01, 0);
    CHECK_NEAR(value_of(resumed.trainer, "optimiser.epsilon"), 1e-8, 0);
    free_wave_trainer(resumed);
    close_folder();
}
