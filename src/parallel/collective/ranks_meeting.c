/* Between two iterations of a run with ranks: rank 0 does what it was asked for, and the others do the same.
 */
#include "loop/trainer_run.h"
#include "parallel/collective/ranks.h"
#include "runs/trainer_commands.h"
#include "trainer/trainer_lock.h"

/* Seconds after which the others hear again that rank 0 is paused. */
static double patience(const sgm__ranks *ranks)
{
    double quarter = ranks->options.timeout / 4;
    return quarter < 1 ? quarter : 1;
}

/* What background hooks of rank 0 have asked for, and all do. */
static void do_kept(sgm_trainer *trainer)
{
    sgm__command *command;
    while ((command = sgm__ranks_take_kept(trainer)) != NULL)
        sgm__trainer_do_for_hook(trainer, command);
}

/* What rank 0 was told since the last meeting; followers hear now and then that it is still paused. */
static sgm_status lead(sgm__training_run *run)
{
    sgm_trainer *trainer = run->trainer;
    const sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    sgm__rank_news news = {0};
    sgm__trainer_let_others(trainer);
    do_kept(trainer);
    SGM_TRY(sgm__run_do_commands(run));
    if (sgm__control_wants_pause(sgm__control_of(trainer))) {
        SGM_TRY(sgm__run_begin_pause(run));
        for (bool goes_on = false; !goes_on;) {
            news.paused = true;
            SGM_TRY(sgm__ranks_meet(trainer, run->stopped, &news));
            if (ranks->someone_stops)
                SGM_TRY(sgm_trainer_resume(trainer));
            SGM_TRY(sgm__run_wait_paused(run, patience(ranks), &goes_on));
        }
        SGM_TRY(sgm__run_end_pause(run));
    }
    sgm__run_look_for_signals(run);
    run->stopped |= ranks->someone_stops;
    news = (sgm__rank_news){.interrupted = run->stopped,
                            .stopped = run->stopped || sgm__control_stops(sgm__control_of(trainer), NULL, 0)};
    run->agreed = news.stopped;
    return sgm__ranks_meet(trainer, run->stopped, &news);
}

static sgm_status follow(sgm__training_run *run)
{
    sgm__rank_news news = {0};
    bool paused = false;
    sgm__trainer_let_others(run->trainer);
    for (;;) {
        sgm__run_look_for_signals(run);
        SGM_TRY(sgm__ranks_meet(run->trainer, run->stopped, &news));
        SGM_TRY(sgm__run_do_commands(run));
        if (!news.paused)
            break;
        if (!paused)
            SGM_TRY(sgm__run_begin_pause(run));
        paused = true;
    }
    run->agreed = news.stopped;
    run->stopped |= news.interrupted; /* what this rank wants, and has not told yet, stays */
    return paused ? sgm__run_end_pause(run) : SGM_OK;
}

sgm_status sgm__ranks_meeting(sgm__training_run *run)
{
    sgm__ranks *ranks = sgm__trainer_ranks(run->trainer);
    ranks->wants_stop = run->stopped;
    ranks->meeting = ranks->meets;
    if (!ranks->meets)
        return SGM_OK;
    sgm__trainer_note_whereabouts(run->trainer, "meeting the other ranks");
    SGM_TRY(ranks->rank > 0 ? follow(run) : lead(run));
    ranks->meeting = false;
    return SGM_OK;
}
