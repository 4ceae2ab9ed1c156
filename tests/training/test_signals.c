/* Signals that end a run: with a checkpoint, before the next step; and those that are somebody else's. */
#include "base/folder.h"
#include "waves.h"

#include <signal.h>

/* What a child process does with a trainer whose run is to be ended by a signal. */
typedef struct plan {
    int number;             /* the signal */
    sgm_progress_kind when; /* it comes */
    int64_t iteration;
    bool paused, twice;
} plan;

static bool raise_it(void *user, const sgm_training_progress *progress)
{
    const plan *p = user;
    if (progress->kind == p->when && progress->iteration == p->iteration)
        for (int i = 0; i < 1 + p->twice; i++)
            raise(p->number);
    return true;
}

/* The status of 12 iterations, of which the signal may leave some out. */
static sgm_status run_with(plan p, int64_t *iteration)
{
    wave_trainer made = make_wave_trainer((wave_options){.seed = 4});
    CHECK_OK(sgm_trainer_on_progress(made.trainer, raise_it, &p));
    sgm_status status = sgm_trainer_run(made.trainer, .iterations = 12, .folder = folder, .resume = true,
                                        .catch_interrupt = true, .paused = p.paused);
    *iteration = made.trainer->position.iteration;
    free_wave_trainer(made);
    return status;
}

static void check_interrupted_at(plan p, int64_t expected)
{
    int64_t iteration;
    CHECK_INT(run_with(p, &iteration), SGM_ERROR_INTERRUPTED);
    CHECK_INT(iteration, expected);
    wave_trainer saved = make_wave_trainer((wave_options){.seed = 4});
    CHECK_OK(sgm_trainer_load(saved.trainer, in_folder("checkpoint.safetensors")));
    CHECK_INT(saved.trainer->position.iteration, expected);
    free_wave_trainer(saved);
}

static const int endings[] = {SIGINT, SIGTERM, SIGHUP, SIGXCPU, SIGUSR1, SIGUSR2};
#define ENDINGS ((int)(sizeof endings / sizeof *endings))

TEST(signals_end_a_run_with_a_checkpoint)
{
    for (int i = 0; i < ENDINGS; i++) {
        open_folder();
        check_interrupted_at((plan){endings[i], SGM_PROGRESS_ITERATION, 3, false, false}, 3);
        struct sigaction now;
        CHECK_INT(sigaction(endings[i], NULL, &now), 0);
        CHECK(now.sa_handler == SIG_DFL);
        close_folder();
    }
}

/* Who closes a terminal sends SIGHUP to a shell and its jobs, and the shell to its jobs; timeout(1) sends
 * SIGTERM to its child and then to its group; SIGXCPU comes each second. */
TEST(signals_that_come_again_leave_a_run_its_checkpoint)
{
    for (int i = 1; i < ENDINGS; i++) { /* but for SIGINT */
        open_folder();
        check_interrupted_at((plan){endings[i], SGM_PROGRESS_ITERATION, 3, false, true}, 3);
        close_folder();
    }
}

/* Nothing is trained any more, be it while the run begins or while it waits to begin. */
TEST(a_signal_before_the_first_iteration_trains_none)
{
    static const plan plans[] = {{SIGTERM, SGM_PROGRESS_START, 0, false, false},
                                 {SIGTERM, SGM_PROGRESS_START, 0, true, false},
                                 {SIGTERM, SGM_PROGRESS_PAUSE, 0, true, false},
                                 {SIGHUP, SGM_PROGRESS_PAUSE, 0, true, false}};
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        open_folder();
        check_interrupted_at(plans[i], 0);
        close_folder();
    }
}

static sgm_bundle *finished(void)
{
    wave_trainer made = make_wave_trainer((wave_options){.seed = 4});
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 12, .folder = folder, .resume = true));
    free_wave_trainer(made);
    sgm_bundle *bundle = sgm_bundle_load(in_folder("checkpoint.safetensors"));
    CHECK_OK(bundle);
    return bundle;
}

TEST(a_run_that_a_signal_ended_goes_on_as_if_it_had_not)
{
    open_folder();
    sgm_bundle *whole = finished();
    close_folder();
    for (int64_t at = 0; at < 12; at += 5) {
        open_folder();
        check_interrupted_at(
            (plan){SIGHUP, at > 0 ? SGM_PROGRESS_ITERATION : SGM_PROGRESS_START, at, false, false}, at);
        sgm_bundle *resumed = finished();
        CHECK_STR(sgm_bundle_get_text(resumed, "sigma.state"), sgm_bundle_get_text(whole, "sigma.state"));
        for (size_t i = 0; i < sgm_bundle_count(whole); i++) {
            const char *name = sgm_bundle_name_at(whole, i);
            check_near_tensors(sgm_bundle_get(whole, name), sgm_bundle_get(resumed, name), 0);
        }
        sgm_bundle_free(resumed);
        close_folder();
    }
    sgm_bundle_free(whole);
}

static volatile sig_atomic_t came;

static void count(int number)
{
    (void)number;
    came++;
}

TEST(what_is_ignored_or_handled_stays_so)
{
    for (int i = 2; i < ENDINGS; i++) { /* but for SIGINT and SIGTERM */
        const plan p = {endings[i], SGM_PROGRESS_ITERATION, 3, false, false};
        int64_t iteration;
        open_folder();
        signal(endings[i], SIG_IGN); /* nohup */
        CHECK_OK(run_with(p, &iteration));
        CHECK_INT(iteration, 12);
        close_folder();
        open_folder();
        came = 0;
        signal(endings[i], count);
        CHECK_OK(run_with(p, &iteration));
        CHECK_INT(iteration, 12);
        CHECK_INT(came, 1);
        signal(endings[i], SIG_DFL);
        close_folder();
    }
}
