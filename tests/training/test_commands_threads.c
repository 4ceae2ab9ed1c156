/* Everything that may be asked of a training, from four threads at once, while it runs, ends and begins. */
#include "waves.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define SECONDS 1.5

static char folder[64];
static atomic_bool ends;
static atomic_long done, failed;

static void count(sgm_status status)
{
    atomic_fetch_add(&done, 1);
    if (status == SGM_OK || status == SGM_ERROR_STATE || status == SGM_ERROR_NOT_FOUND ||
        status == SGM_ERROR_ARGUMENT)
        return;
    atomic_fetch_add(&failed, 1);
    printf("%s\n", sgm_last_error());
}

static void act(sgm_trainer *trainer, uint32_t what)
{
    static const char *const texts[] = {
        "accumulator(training.loss, sum%u)",
        "every 3 iterations value_reporter(epoch, background=true) if epoch > %u",
        "after 5 iterations save(hook) if epoch > %u", "early_stopper(epoch, 1%u)"};
    static const char *const names[] = {"accumulator#1", "value_reporter#2", "early_stopper#1", "rule",
                                        "save"};
    char text[120];
    sgm_attached_hook *list;
    size_t hooks;
    switch (what % 12) {
    case 0:
        count(sgm_trainer_pause(trainer));
        break;
    case 1:
    case 2:
        count(sgm_trainer_resume(trainer));
        break;
    case 3:
        count(sgm_trainer_step(trainer, 1 + what / 12 % 5));
        break;
    case 4:
        count(sgm_trainer_reset(trainer));
        break;
    case 5:
        count(sgm_trainer_restore(trainer, "start"));
        break;
    case 6:
        count(sgm_registry_resolve_set(sgm_trainer_registry(trainer), "optimiser.learning_rate",
                                       sgm_number_content(0.001 * (1 + what % 7)), NULL, NULL));
        break;
    case 7:
    case 8:
        snprintf(text, sizeof text, texts[what / 12 % 4], (unsigned)(what / 48 % 5));
        count(sgm_trainer_attach_hook(trainer, sgm_hook_parse(text), NULL));
        break;
    case 9:
        count(sgm_trainer_detach_hook(trainer, names[what / 12 % 5]));
        break;
    case 10:
        count(sgm_trainer_hooks(trainer, &list, &hooks));
        sgm_attached_hooks_free(list, hooks);
        break;
    default:
        if (what % 7 == 0)
            count(sgm_trainer_stop(trainer, NULL));
    }
}

typedef struct worker {
    sgm_trainer *trainer;
    uint32_t seed;
} worker;

static void *ask(void *user)
{
    worker *self = user;
    while (!atomic_load(&ends)) {
        self->seed = self->seed * 1664525 + 1013904223;
        act(self->trainer, self->seed >> 8);
    }
    return NULL;
}

static void ask_for_everything(sgm_operator *workers_of)
{
    char path[128];
    wave_trainer made = make_wave_trainer((wave_options){.shuffle = true, .seed = 3, .handler = "reference"});
    strcpy(folder, "/tmp/sigma-test-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    atomic_store(&ends, false);
    atomic_store(&done, 0);
    if (workers_of != NULL)
        CHECK_OK(sgm_trainer_set_operator(made.trainer, workers_of));
    sgm_set_logger(NULL, NULL, SGM_LOG_ERROR);
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_rule_hook("every 70 iterations reset")));
    snprintf(path, sizeof path, "%s/start.safetensors", folder);
    CHECK_OK(sgm_trainer_save(made.trainer, path));
    worker workers[4];
    pthread_t threads[4];
    double begin = sgm__now();
    for (uint32_t i = 0; i < 4; i++) {
        workers[i] = (worker){made.trainer, i * 7919 + 1};
        CHECK_INT(pthread_create(&threads[i], NULL, ask, &workers[i]), 0);
    }
    int runs = 0;
    for (; sgm__now() - begin < SECONDS; runs++)
        CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1000000000, .folder = folder, .resume = true));
    atomic_store(&ends, true);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK(runs > 0);
    CHECK(atomic_load(&done) > 100);
    CHECK_INT(atomic_load(&failed), 0);
    CHECK_OK(sgm_trainer_reset(made.trainer));
    free_wave_trainer(made);
    snprintf(path, sizeof path, "rm -r '%s'", folder);
    CHECK_INT(system(path), 0);
}

TEST(four_threads_ask_for_everything)
{
    ask_for_everything(NULL);
}

TEST(also_of_a_trainer_with_workers)
{
    ask_for_everything(sgm_parameter_operator(.workers = 2, .every = 3));
}
