/* Two trainers in one environment: the command, in a process of its own, pauses and changes one of them while
 * the other goes on. */
#include "test.h"

#include <sigma/sigma.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

static void add(sgm_env *env, const char *name)
{
    sgm_dataset *iris = sgm_dataset_open("iris");
    sgm_trainer *trainer = sgm_trainer_create(env, name);
    CHECK_OK(iris);
    CHECK_OK(
        sgm_trainer_set_network(trainer, "input(4) + dense(8, tanh) + dense(3) + softmax_cross_entropy"));
    CHECK_OK(sgm_trainer_set_data(trainer, sgm_minibatches(iris, .size = 10)));
    CHECK_OK(sgm_trainer_set_optimiser(trainer, sgm_gradient_descent(.learning_rate = 0.01)));
    sgm_dataset_free(iris);
}

/* Runs the command; its output goes to `out`. */
static int ctl(const char *words, char *out, size_t size)
{
    char command[512];
    const char *build = getenv("SIGMA_BUILD_DIR");
    CHECK(build != NULL);
    snprintf(command, sizeof command, "'%s/sigma' ctl '%s'/%s 2>&1", build, folder, words);
    FILE *pipe = popen(command, "r");
    CHECK(pipe != NULL);
    size_t length = fread(out, 1, size - 1, pipe);
    out[length] = '\0';
    return pclose(pipe);
}

static void must(const char *words, const char *expected)
{
    char out[4096];
    int code = ctl(words, out, sizeof out);
    if (code != 0 || strstr(out, expected) == NULL)
        printf("%s: %s\n", words, out);
    CHECK_INT(code, 0);
    CHECK(strstr(out, expected) != NULL);
}

static double number_of(const sgm_env *env, const char *identifier)
{
    sgm_content content;
    CHECK_OK(sgm_registry_resolve_one(sgm_env_registry((sgm_env *)(uintptr_t)env), identifier, &content));
    return content.kind == SGM_KIND_NUMBER ? content.as.number : (double)content.as.integer;
}

/* A parameter, as the trainer has it. */
static double bias_of(const sgm_env *env, const char *trainer, int64_t index)
{
    char identifier[100];
    sgm_content content;
    snprintf(identifier, sizeof identifier, "%s.network.layers.2-dense.biases", trainer);
    CHECK_OK(sgm_registry_resolve_one(sgm_env_registry((sgm_env *)(uintptr_t)env), identifier, &content));
    double value = sgm_tensor_get(content.as.tensor, &index);
    sgm_content_clear(&content);
    return value;
}

static void wait_until(const sgm_env *env, const char *identifier, double minimum)
{
    for (int i = 0; i < 10000 && number_of(env, identifier) < minimum; i++)
        usleep(1000);
    CHECK(number_of(env, identifier) >= minimum);
}

static void read_journal(const char *trainer, char *text, size_t size)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s/journal.jsonl", folder, trainer);
    FILE *file = fopen(path, "r");
    text[0] = '\0';
    if (file == NULL)
        return;
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
}

TEST(one_is_paused_and_changed_while_the_other_goes_on)
{
    char text[8192], wanted[200];
    strcpy(folder, "/tmp/sigma-test-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    sgm_env *env = sgm_env_create("two", .seed = 3, .threads = 2);
    add(env, "still");
    add(env, "going");
    CHECK_OK(sgm_env_run_background(env, .epochs = 100000000, .folder = folder, .checkpoint_every = -1));
    wait_until(env, "still.iteration", 20);
    wait_until(env, "going.iteration", 20);
    must("still pause", "");
    for (int i = 0; i < 200; i++) {
        ctl("still status", text, sizeof text);
        if (strstr(text, "paused") != NULL)
            break;
        usleep(10000);
    }
    must("still status", "paused");
    must("going status", "running");
    double still = number_of(env, "still.iteration"), going = number_of(env, "going.iteration");
    double bias = bias_of(env, "still", 0);

    must("still set optimiser.learning_rate 0", "optimiser.learning_rate = 0\n");
    must("still set network.layers.2-dense.biases '[0.5, -0.25, 1]'", "network.layers.2-dense.biases");
    CHECK_INT(ctl("still set network.layers.2-dense.biases '[0.5, 1]'", text, sizeof text) != 0, 1);
    CHECK(strstr(text, "expected values of shape (3,), got (2,)") != NULL);
    wait_until(env, "going.iteration", going + 200);
    CHECK_NEAR(number_of(env, "still.iteration"), still, 0);
    CHECK(bias != 0.5);
    CHECK_NEAR(bias_of(env, "still", 0), 0.5, 0);
    CHECK_NEAR(number_of(env, "still.optimiser.learning_rate"), 0, 0);
    CHECK_NEAR(number_of(env, "going.optimiser.learning_rate"), 0.01, 0);

    /* With a rate of 0 the value that was set stays, however long it trains. */
    must("still resume", "");
    wait_until(env, "still.iteration", still + 50);
    CHECK_NEAR(bias_of(env, "still", 0), 0.5, 0);
    CHECK_NEAR(bias_of(env, "still", 1), -0.25, 0);
    CHECK_NEAR(bias_of(env, "still", 2), 1, 0);
    read_journal("still", text, sizeof text);
    snprintf(wanted, sizeof wanted,
             "\"iteration\":%.0f,\"who\":\"ctl\",\"what\":\"optimiser.learning_rate\",\"old\":0.01,"
             "\"new\":0.0",
             still);
    CHECK(strstr(text, wanted) != NULL);
    CHECK(strstr(text, "\"what\":\"network.layers.2-dense.biases\"") != NULL);
    CHECK(strstr(text, "-0.25") != NULL);
    read_journal("going", text, sizeof text);
    CHECK(strstr(text, "\"event\":\"change\"") == NULL);

    must("still stop enough", "");
    must("going stop enough", "");
    CHECK_OK(sgm_env_wait(env));
    sgm_env_free(env);
    snprintf(text, sizeof text, "rm -r '%s'", folder);
    CHECK_INT(system(text), 0);
}
