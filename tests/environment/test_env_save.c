/* All trainers of an environment saved and loaded at once. */
#include "base/folder.h"
#include "environment/environment_test.h"

#include <sigma/sigma.h>
#include <unistd.h>

static void check_same(sgm_trainer *a, sgm_trainer *b, const char *state)
{
    sgm_tensor *x = sgm_trainer_get(a, state), *y = sgm_trainer_get(b, state);
    CHECK_OK(x);
    CHECK_OK(y);
    CHECK_NEAR(sgm_tensor_get(x, (const int64_t[]){0, 0}), sgm_tensor_get(y, (const int64_t[]){0, 0}), 0);
    sgm_tensor_free(x);
    sgm_tensor_free(y);
}

/* Two trainers, which have trained for 1 and 2 epochs; "b.c" has a name that is no part of identifiers. */
static sgm_env *trained(sgm_trainer *trainers[2])
{
    sgm_env *env = sgm_env_create("first", .seed = 1);
    trainers[0] = line_trainer(env, "a");
    trainers[1] = line_trainer(env, "b.c");
    CHECK_OK(sgm_trainer_run(trainers[0], .epochs = 1));
    CHECK_OK(sgm_trainer_run(trainers[1], .epochs = 2));
    return env;
}

/* Another process: trainers of other seeds go on as the saved ones do, to the bit. */
TEST(trainers_go_on_from_a_saved_environment)
{
    sgm_trainer *saved[2], *loaded[2];
    sgm_env *env = trained(saved), *other = sgm_env_create("second", .seed = 9);
    CHECK_OK(sgm_env_save(env, open_folder()));
    loaded[0] = line_trainer(other, "a");
    loaded[1] = line_trainer(other, "b.c");
    CHECK_OK(sgm_env_load(other, folder));
    for (int i = 0; i < 2; i++) {
        check_same(saved[i], loaded[i], "1-dense.weights");
        CHECK_OK(sgm_trainer_run(saved[i], .epochs = 4));
        CHECK_OK(sgm_trainer_run(loaded[i], .epochs = 4));
        check_same(saved[i], loaded[i], "1-dense.weights");
    }
    CHECK_OK(sgm_env_save(env, folder)); /* over what is there */
    sgm_env_free(env);
    sgm_env_free(other);
    close_folder();
}

TEST(missing_trainers_are_created)
{
    sgm_trainer *saved[2];
    sgm_env *env = trained(saved), *empty = sgm_env_create("empty", .seed = 4);
    CHECK_OK(sgm_env_save(env, open_folder()));
    CHECK_OK(sgm_env_load(empty, folder));
    CHECK_ERROR(sgm_trainer_create(empty, "b.c"), "there is a trainer 'b.c' already");
    CHECK_STR(sgm_trainer_name(sgm_env_trainer(empty, "b.c")), "b.c");
    CHECK(sgm_env_trainer(empty, "b") == NULL);
    sgm_env_free(env);
    sgm_env_free(empty);
    close_folder();
}

TEST(a_folder_that_is_not_whole_changes_nothing)
{
    sgm_trainer *saved[2];
    sgm_env *env = trained(saved), *other = sgm_env_create("second", .seed = 9);
    sgm_trainer *a = line_trainer(other, "a");
    CHECK_OK(sgm_env_save(env, open_folder()));
    CHECK_OK(sgm_trainer_prepare(a));
    sgm_tensor *before = sgm_trainer_get(a, "1-dense.weights");
    line_trainer(other, "z");
    CHECK_ERROR(sgm_env_load(other, folder), "second: loading from ");
    CHECK(strstr(sgm_last_error(), "it has nothing of trainer 'z'") != NULL);
    char command[200];
    snprintf(command, sizeof command, "cp '%s/b_c.safetensors' '%s/a.safetensors'", folder, folder);
    CHECK_INT(system(command), 0);
    CHECK_ERROR(sgm_env_load(env, folder),
                "trainer 'a': a.safetensors is not the file that was saved: it was changed since");
    unlink(in_folder("a.safetensors"));
    CHECK_ERROR(sgm_env_load(env, folder), "trainer 'a': ");
    unlink(in_folder("environment.json"));
    CHECK_ERROR(sgm_env_load(env, folder), "environment.json");
    sgm_tensor *after = sgm_trainer_get(a, "1-dense.weights");
    CHECK_NEAR(sgm_tensor_get(after, (const int64_t[]){0, 0}),
               sgm_tensor_get(before, (const int64_t[]){0, 0}), 0);
    sgm_tensor_free(before);
    sgm_tensor_free(after);
    CHECK_ERROR(sgm_env_save(env, NULL), "expected an environment and a folder, got NULL");
    sgm_env_free(env);
    sgm_env_free(other);
    close_folder();
}
