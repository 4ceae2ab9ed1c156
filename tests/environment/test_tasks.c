/* The tasks of a training: what is told of a run, and a run that is ended by its task. */
#include "test.h"

#include <sigma/sigma.h>

static sgm_dataset *iris(void)
{
    static char text[4096];
    size_t length = 0;
    for (int i = 0; i < 120; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%d,%d\n", i % 7, i % 3);
    return sgm_dataset_create("numbers", .extractor = sgm_csv_extractor(
                                             sgm_csv_reader(sgm_memory_source("numbers.csv", text, length)),
                                             .fields = {{"inputs", 0, 0}, {"targets", 1, 1}}));
}

static sgm_trainer *good_trainer(sgm_env *env, const char *name)
{
    sgm_dataset *dataset = iris();
    sgm_trainer *trainer = sgm_trainer_create(env, name);
    sgm_trainer_set_network(trainer, "input(1) + dense(1) + mean_squared");
    sgm_trainer_set_data(trainer, sgm_minibatches(dataset, .size = 10));
    sgm_trainer_set_optimiser(trainer, sgm_gradient_descent(.learning_rate = 0.01));
    sgm_dataset_free(dataset);
    return sgm_trainer_status(trainer) == SGM_OK ? trainer : NULL;
}

typedef struct seen {
    int begun[SGM_TASK_KIND_COUNT], ended[SGM_TASK_KIND_COUNT];
    sgm_task_info train; /* at its end */
    char saved[160];
} seen;

static void count(void *user, const sgm_task_info *info)
{
    seen *self = user;
    self->begun[info->kind] += info->status == SGM_TASK_RUNNING && info->done == 0;
    self->ended[info->kind] += info->status == SGM_TASK_ENDED;
    if (info->kind == SGM_TASK_TRAIN)
        self->train = *info;
    if (info->kind == SGM_TASK_SAVE)
        strcpy(self->saved, info->description);
}

TEST(a_run_has_tasks)
{
    seen self = {0};
    char folder[] = "/tmp/sigma-tasks-XXXXXX", run[64];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(run, sizeof run, "%s/run", folder);
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    CHECK_OK(sgm_task_watch(count, &self));
    CHECK_OK(good_trainer(env, "numbers"));
    CHECK_OK(sgm_env_run(env, .epochs = 3, .folder = run));
    CHECK_INT(self.ended[SGM_TASK_PREPARE], 1);
    CHECK(self.ended[SGM_TASK_EXTRACT] > 0);
    CHECK_INT(self.ended[SGM_TASK_SAVE], 3);
    CHECK(strstr(self.saved, "/run/checkpoint.safetensors") != NULL);
    CHECK_INT(self.begun[SGM_TASK_TRAIN], 1);
    CHECK_INT(self.train.status, SGM_TASK_ENDED);
    CHECK_STR(self.train.description, "numbers");
    CHECK_STR(self.train.unit, "iterations");
    CHECK_INT(self.train.done, 36);
    CHECK_INT(self.train.total, 36);
    CHECK(self.train.can_cancel && self.train.rate > 0);
    CHECK_OK(sgm_env_run(env, .epochs = 4, .folder = run, .resume = true));
    CHECK_INT(self.ended[SGM_TASK_LOAD], 1);
    CHECK_INT(self.train.done, 48);
    sgm_task_unwatch(count, &self);
    CHECK_INT(sgm_task_list(NULL, 0), 0);
    sgm_env_free(env);
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK_INT(system(command), 0);
}

static bool cancel_own_task(void *user, const sgm_training_progress *progress)
{
    sgm_task_info info = {0};
    if (progress->kind == SGM_PROGRESS_ITERATION && progress->iteration == 5 && sgm_task_list(&info, 1) == 1)
        *(sgm_status *)user = sgm_task_cancel(info.task);
    return true;
}

TEST(a_training_ends_when_its_task_is_cancelled)
{
    sgm_status cancelled = SGM_ERROR_STATE;
    seen self = {0};
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    sgm_trainer *trainer = good_trainer(env, "numbers");
    CHECK_OK(sgm_trainer_on_progress(trainer, cancel_own_task, &cancelled));
    CHECK_OK(sgm_task_watch(count, &self));
    CHECK_ERROR(sgm_env_run(env, .epochs = 100), "training was stopped after iteration 5");
    CHECK_INT(sgm_last_status(), SGM_ERROR_INTERRUPTED);
    sgm_task_unwatch(count, &self);
    CHECK_INT(cancelled, SGM_OK);
    CHECK_INT(self.train.status, SGM_TASK_CANCELLED);
    sgm_env_free(env);
}
