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
