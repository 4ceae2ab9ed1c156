/* What an environment tells its monitors, and what observers are told and when. */
#include "base/folder.h"
#include "environment_test.h"

#include "loop/trainer_run.h"
#include "monitors/monitor.h"
#include "trainer/trainer_struct.h"

#include <unistd.h>

/* --- coming and going --- */

typedef struct noting_monitor {
    sgm_monitor base;
    sgm__text *notes;
} noting_monitor;

static sgm__text *notes_of(sgm_monitor *monitor)
{
    return ((noting_monitor *)monitor)->notes;
}

static sgm_status note_join(sgm_monitor *monitor, const sgm__monitor_host *host)
{
    sgm__text_append(notes_of(monitor), "join %s %s %d %llu;", host->name, host->handler, host->threads,
                     (unsigned long long)host->seed);
    CHECK(host->registry == sgm_env_registry(host->env));
    return SGM_OK;
}

static sgm_status note_attach(sgm_monitor *monitor, sgm_trainer *trainer)
{
    sgm__text_append(notes_of(monitor), " +%s", sgm_trainer_name(trainer));
    return SGM_OK;
}

static void note_detach(sgm_monitor *monitor, sgm_trainer *trainer)
{
    sgm__text_append(notes_of(monitor), " -%s", sgm_trainer_name(trainer));
}

static void note_finish(sgm_monitor *monitor)
{
    sgm__text_append(notes_of(monitor), " finish");
}

static void free_noting(sgm_monitor *monitor)
{
    sgm__text_append(notes_of(monitor), " free");
    sgm__free(monitor);
}

static sgm_monitor *noting(sgm__text *notes)
{
    noting_monitor *self = sgm__calloc(1, sizeof *self);
    self->base = (sgm_monitor){.join = note_join,
                               .attach = note_attach,
                               .detach = note_detach,
                               .finish = note_finish,
                               .free = free_noting};
    self->notes = notes;
    return &self->base;
}

/* It ends as with the environment, and hears nothing of what comes later; the others stay. */
TEST(a_monitor_is_taken_away)
{
    sgm__text first = {0}, second = {0};
    sgm_env *env = sgm_env_create("going", .seed = 7, .threads = 1),
            *other = sgm_env_create("other", .seed = 1);
    sgm_monitor *one = noting(&first), *two = noting(&second);
    CHECK_OK(sgm_env_add_monitor(env, one));
    CHECK_OK(sgm_env_add_monitor(env, two));
    line_trainer(env, "a");
    CHECK_OK(sgm_env_prepare(env));
    CHECK_ERROR(sgm_env_remove_monitor(other, one),
                "other: the monitor to remove is none of this environment's");
    CHECK_OK(sgm_env_remove_monitor(env, one));
    const char *told = strstr(first.data, " finish -a free");
    CHECK(told != NULL && strcmp(told, " finish -a free") == 0);
    line_trainer(env, "b");
    CHECK_OK(sgm_env_run(env, .epochs = 1));
    CHECK(strstr(first.data, "+b") == NULL);
    CHECK(strstr(second.data, "+b") != NULL);
    CHECK_ERROR(sgm_env_remove_monitor(env, NULL), "expected a monitor, got NULL");
    sgm_env_free(env);
    sgm_env_free(other);
    CHECK(strstr(second.data, " free") != NULL);
    sgm__text_free(&first);
    sgm__text_free(&second);
}

TEST(monitors_are_told_of_trainers_that_come_and_go)
{
    sgm__text notes = {0};
    sgm_env *env = sgm_env_create("home", .seed = 7, .handler = "reference", .threads = 1);
    line_trainer(env, "first");
    CHECK_OK(sgm_env_add_monitor(env, noting(&notes)));
    sgm_trainer *second = line_trainer(env, "second");
    give_parts(sgm_trainer_create_unscheduled(env, "unscheduled"));
    CHECK_OK(sgm_env_run(env, .epochs = 1));
    CHECK_OK(sgm_env_remove_trainer(env, second));
    sgm_env_free(env);
    CHECK_STR(notes.data,
              "join home reference 1 7; +first +second +unscheduled -second finish -unscheduled -first free");
    sgm__text_free(&notes);
}

static sgm_status give_line(void *user, const sgm_trial *trial, sgm_trainer *trainer)
{
    (void)user, (void)trial;
    return give_parts(trainer) != NULL ? SGM_OK : sgm_last_status();
}

TEST(monitors_are_told_of_the_trials_of_a_search)
{
    static const char *const rates[] = {"0.1", "0.2", NULL};
    sgm__text notes = {0};
    open_folder();
    sgm_env *env = sgm_env_create("home", .handler = "reference");
    CHECK_OK(sgm_env_add_monitor(env, noting(&notes)));
    sgm_search *search = sgm_search_create(
        env, .method = SGM_SEARCH_GRID, .set_up = give_line, .folder = folder, .objective = "training.loss",
        .epochs = 1, .checkpoint_every = -1, .values = {{"optimiser.learning_rate", rates}});
    CHECK_OK(search);
    CHECK_OK(sgm_search_run(search));
    CHECK(strstr(notes.data, " +trial-001 -trial-001 +trial-002 -trial-002") != NULL);
    sgm_search_free(search);
    sgm_env_free(env);
    sgm__text_free(&notes);
    close_folder();
}

/* --- observers --- */

typedef struct seen {
    sgm__text notes;
    int64_t stride, until;
    sgm_trainer *trainer;
} seen;

static bool note_progress(void *user, const sgm_training_progress *progress)
{
    static const char *const kinds[] = {"start", "", "epoch", "stop", "pause", "resume", "move"};
    seen *s = user;
    sgm__text_append(&s->notes, "%s%lld ", kinds[progress->kind], (long long)progress->iteration);
    if (progress->kind == SGM_PROGRESS_ITERATION && s->stride > 0)
        sgm__observer_next(progress->iteration + s->stride);
    return true;
}

TEST(an_observer_says_from_which_iteration_on_it_wants_to_be_told)
{
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    sgm_trainer *trainer = line_trainer(env, "a");
    seen third = {.stride = 3}, never = {.stride = INT64_MAX - 1000}, all = {0};
    CHECK_OK(sgm_trainer_on_progress(trainer, note_progress, &third));
    CHECK_OK(sgm_trainer_on_progress(trainer, note_progress, &never));
    CHECK_OK(sgm_env_run(env, .iterations = 10));
    CHECK_STR(third.notes.data, "start0 1 4 epoch4 5 8 epoch8 9 stop10 ");
    CHECK_STR(never.notes.data, "start0 1 epoch4 5 epoch8 9 stop10 ");
    CHECK_OK(sgm_trainer_on_progress(trainer, note_progress, &all));
    CHECK_OK(sgm_env_run(env, .iterations = 12));
    CHECK_STR(all.notes.data, "start10 11 12 stop12 ");
    CHECK_STR(strstr(third.notes.data, "start10"), "start10 11 stop12 ");
    sgm_env_free(env);
    sgm__text_free(&third.notes);
    sgm__text_free(&never.notes);
    sgm__text_free(&all.notes);
    sgm__observer_next(5); /* of nobody */
}

static bool steer(void *user, const sgm_training_progress *progress)
{
    seen *s = user;
    if (progress->kind == SGM_PROGRESS_ITERATION && progress->iteration == 6 && s->until++ == 0)
        CHECK_OK(sgm_trainer_reset(s->trainer));
    return true;
}

TEST(observers_are_told_of_pauses_and_of_moves)
{
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    seen s = {.trainer = line_trainer(env, "a")};
    CHECK_OK(sgm_trainer_on_progress(s.trainer, note_progress, &s));
    CHECK_OK(sgm_trainer_on_progress(s.trainer, steer, &s));
    CHECK_OK(sgm_env_run_background(env, .iterations = 7, .paused = true));
    while (sgm_trainer_get_state(s.trainer) != SGM_TRAINER_PAUSED)
        usleep(1000);
    CHECK_OK(sgm_trainer_step(s.trainer, 1));
    for (int64_t iteration = 0; iteration < 1; usleep(1000)) /* until then it is paused as before */
        CHECK_OK(sgm_registry_get_integer(sgm_trainer_registry(s.trainer), "iteration", &iteration));
    while (sgm_trainer_get_state(s.trainer) != SGM_TRAINER_PAUSED)
        usleep(1000);
    CHECK_OK(sgm_trainer_resume(s.trainer));
    CHECK_OK(sgm_env_wait(env));
    CHECK_STR(s.notes.data,
              "start0 pause0 resume0 1 pause1 resume1 2 3 4 epoch4 5 6 move0 1 2 3 4 epoch4 5 6 7 stop7 ");
    sgm_env_free(env);
    sgm__text_free(&s.notes);
}
