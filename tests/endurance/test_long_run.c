/* A long run with ten hooks takes no more memory, descriptors or threads at its end than near its beginning.
 * SIGMA_ENDURANCE_STEPS: another number of iterations than 100,000. */
#include "training/waves.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(SIGMA_ADDRESS_SANITIZER) || defined(SIGMA_THREAD_SANITIZER)
#define STEPS 12000 /* sanitizers are slow, and keep freed memory: only the rest is compared */
#define IS_SANITIZED true
#else
#define STEPS 100000
#define IS_SANITIZED false
#endif
#define SETTLED 10000             /* iterations until everything has been allocated once */
#define ALLOWED_GROWTH 256 * 1024 /* bytes: 3 a step, of 100,000 */

typedef struct usage {
    int64_t resident; /* bytes */
    int descriptors, threads;
} usage;

static int count_entries(const char *path)
{
    int count = 0;
    DIR *folder = opendir(path);
    CHECK(folder != NULL);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

static usage usage_now(void)
{
    long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%*d %lld", &pages) == 1);
    fclose(file);
    return (usage){pages * sysconf(_SC_PAGESIZE), count_entries("/proc/self/fd") - 1,
                   count_entries("/proc/self/task")};
}

typedef struct measured {
    usage settled, ended;
    int64_t steps, reports, epochs;
    atomic_int background_reports;
} measured;

static bool measure(void *user, const sgm_training_progress *progress)
{
    measured *m = user;
    if (progress->kind == SGM_PROGRESS_ITERATION && progress->iteration == SETTLED)
        m->settled = usage_now();
    if (progress->kind == SGM_PROGRESS_ITERATION && progress->iteration == m->steps)
        m->ended = usage_now();
    m->epochs += progress->kind == SGM_PROGRESS_EPOCH;
    return true;
}

static void report(void *user, const char *line)
{
    CHECK(strstr(line, " = ") != NULL);
    ((measured *)user)->reports++;
}

static void report_in_background(void *user, const char *line)
{
    CHECK(strstr(line, " = ") != NULL);
    atomic_fetch_add(&((measured *)user)->background_reports, 1);
}

static void attach_ten(sgm_trainer *trainer, measured *m)
{
    CHECK_OK(sgm_trainer_add_hook(trainer, sgm_value_reporter("training.* optimiser.*rate",
                                                              sgm_every(10, SGM_ITERATION), .report = report,
                                                              .user = m, .with_time = true)));
    CHECK_OK(sgm_trainer_add_hook(
        trainer, sgm_value_reporter("shared.* network.layers.*.weights", sgm_every(5, SGM_ITERATION),
                                    .report = report_in_background, .user = m, .background = true)));
    CHECK_OK(
        sgm_trainer_add_hook(trainer, sgm_accumulator("optimiser.loss", .mean = true, .each_epoch = true)));
    CHECK_OK(sgm_trainer_add_hook(trainer, sgm_accumulator("training.accuracy", .reset_every = 100)));
    CHECK_OK(sgm_trainer_add_hook(trainer, sgm_running_time(SGM_ITERATION)));
    /* so often that the record of changes, which is bounded, is full before memory is measured */
    CHECK_OK(sgm_trainer_add_hook(trainer, sgm_rule_hook("every 8 iterations if training.loss > 0 then "
                                                         "set optimiser.learning_rate *= 0.99999")));
    CHECK_OK(sgm_trainer_add_hook(trainer,
                                  sgm_rule_hook("if optimiser.loss becomes < 0.01 and not external "
                                                "\"button\" then set optimiser.learning_rate *= 1.0001")));
    CHECK_OK(sgm_trainer_add_hook(
        trainer, sgm_early_stopper("validation.loss", 1000000, SGM_MINIMUM, sgm_every(1, SGM_EPOCH))));
    CHECK_OK(sgm_trainer_add_hook(
        trainer, sgm_save_hook(sgm_every(2000, SGM_ITERATION), "at-{iteration}",
                               .only_if = sgm_threshold_criteria("iteration", SGM_AT_MOST, 14000, false))));
    CHECK_OK(sgm_trainer_add_hook(trainer, sgm_save_hook(sgm_every(1000, SGM_ITERATION), "newest")));
    CHECK_INT(sgm__hooks_count(trainer->hooks),
              11); /* the early stopper has a second one, which keeps weights */
}

static void check_flat(const measured *m, const usage *before)
{
    int64_t growth = m->ended.resident - m->settled.resident;
    if (growth > ALLOWED_GROWTH && !IS_SANITIZED)
        TEST_FAIL("resident memory grew by %lld bytes in %lld steps", (long long)growth,
                  (long long)(m->steps - SETTLED));
    CHECK_INT(m->ended.descriptors, m->settled.descriptors);
    CHECK_INT(m->ended.threads, m->settled.threads);
    usage after = usage_now();
    CHECK_INT(after.descriptors, before->descriptors);
    CHECK_INT(after.threads, before->threads);
}

TEST(a_long_run_with_ten_hooks_stays_as_small_as_it_was)
{
    char folder[64] = "/tmp/sigma-test-XXXXXX", command[128];
    const char *wanted = getenv("SIGMA_ENDURANCE_STEPS");
    measured m = {.steps = wanted != NULL ? strtoll(wanted, NULL, 10) : STEPS};
    CHECK(m.steps > SETTLED && mkdtemp(folder) != NULL);
    usage before = usage_now();
    wave_trainer made = make_wave_trainer((wave_options){
        .handler = "cpu",
        .network = "input(6) + dense(8, tanh) + dropout(0.1) + dense(3) + softmax_cross_entropy",
        .optimiser = sgm_adam(.learning_rate = 0.001, .average = 0.99),
        .shuffle = true});
    sgm_dataset *held_out = wave_dataset();
    CHECK_OK(sgm_trainer_add_data(made.trainer, "validation", sgm_by_block(held_out)));
    sgm_dataset_free(held_out);
    attach_ten(made.trainer, &m);
    CHECK_OK(sgm_trainer_on_progress(made.trainer, measure, &m));
    CHECK_OK(
        sgm_trainer_run(made.trainer, .iterations = m.steps, .folder = folder, .checkpoint_every = 5000));
    free_wave_trainer(made);
    check_flat(&m, &before);
    CHECK_INT(m.reports, m.steps / 10);
    CHECK(m.background_reports > 0 && m.epochs >= m.steps / 4 - 1);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    CHECK_INT(system(command), 0);
}
